#include "store/remote/remote_schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/remote/remote_schema_internal.h"
#include "store/remote/remote_store.h"
#include "store/remote/remote_verify.h"

#define PATIENCE_MS 2000
#define RETRY_NS    50000000L

static enum status take_number(void *arg, const struct remote_row *row)
{
    int64_t *ret = arg;
    *ret = 0;
    for (size_t i = 0; i < row->cells[0].n; i++)
        *ret = *ret * 10 + (row->cells[0].p[i] - '0');
    return ST_OK;
}

enum status remote_schema_version(struct remote *c, int64_t *ret, struct error *err)
{
    struct request r = {
        .text = "SELECT value FROM larder_meta WHERE name = 'schema_version'", .fn = take_number, .arg = ret};
    *ret = 0;
    remote_add(c, &r);
    enum status st = remote_run(c, err);
    return st == ST_MISSING ? ST_OK : st;
}

static enum status newer(int64_t version, struct error *err)
{
    return error_set(err, ST_NEWER,
                     "the database has schema version %" PRId64 ", this program knows versions up to %d:"
                     " use the newer program that wrote it",
                     version, REMOTE_SCHEMA_VERSION);
}

enum status remote_schema_require(struct remote *c, struct error *err)
{
    int64_t version;
    enum status st = remote_schema_version(c, &version, err);
    if (st != ST_OK || version == REMOTE_SCHEMA_VERSION)
        return st;
    if (version > REMOTE_SCHEMA_VERSION)
        return newer(version, err);
    if (version == 0)
        return error_set(err, ST_MISSING,
                         "%s has no tables of this program: create them with larder migrate --store URL,"
                         " with a role that may",
                         c->place);
    return error_set(err, ST_INVALID,
                     "%s has schema version %" PRId64 ", this program needs version %d: larder migrate"
                     " --store URL brings it there",
                     c->place, version, REMOTE_SCHEMA_VERSION);
}

/* ---- migrating ---- */

/* PostgreSQL: all of it or nothing, one at a time. MariaDB: one at a time. */
static const char *const begin_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "BEGIN; SELECT pg_advisory_xact_lock(1818324580, hashtext('larder_'))",
    [REMOTE_MARIADB] = "DO GET_LOCK('larder_ migrate', 30)",
};

static const char *const end_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "COMMIT",
    [REMOTE_MARIADB] = "DO RELEASE_LOCK('larder_ migrate')",
};
static const char *const abort_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "ROLLBACK",
    [REMOTE_MARIADB] = "DO RELEASE_LOCK('larder_ migrate')",
};

static const char *const begin_unlocked_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "ROLLBACK; BEGIN",
    [REMOTE_MARIADB] = "DO 0",
};

/* Where there are no such locks, of two at a time one may fail, for what the other has just made is there. */
static enum status begin(struct remote *c, struct error *err)
{
    enum status st = remote_script(c, begin_text[c->dialect], err);
    return st == ST_INTERNAL && !c->lost ? remote_script(c, begin_unlocked_text[c->dialect], err) : st;
}

/* Whether larder_meta is there: where asking a table that is not there ends the transaction. NULL
   elsewhere. */
static const char *const has_meta_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT (to_regclass('larder_meta') IS NOT NULL)::int::text",
};

/* Functions and views hold no data: they are made once, before the tables are called those of this version.
 */
static enum status run_step(struct remote *c, const struct remote_schema_step *step, struct error *err)
{
    char mark[96];
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && i < REMOTE_SCHEMA_TEXTS && step->texts[c->dialect][i]; i++)
        st = remote_script(c, step->texts[c->dialect][i], err);
    snprintf(mark, sizeof mark, "UPDATE larder_meta SET value = '%d' WHERE name = 'schema_version'",
             step->version);
    if (st == ST_OK && step->version == REMOTE_SCHEMA_VERSION)
        st = remote_make_code(c, err);
    return st == ST_OK ? remote_script(c, mark, err) : st;
}

/* The schema of the URL, when there is none yet. */
static enum status make_schema(struct remote *c, struct error *err)
{
    char text[256];
    if (!c->schema[0])
        return ST_OK;
    snprintf(text, sizeof text,
             "DO $$ BEGIN IF to_regnamespace('%s') IS NULL THEN CREATE SCHEMA %s; END IF; END $$", c->schema,
             c->schema);
    return remote_script(c, text, err);
}

/* Views and functions that are missing though the version says that they are there. */
static enum status mend(struct remote *c, bool *ret_mended, struct error *err)
{
    bool there = true;
    enum status st = remote_verify_code(c, true, &there, err);
    if (st == ST_OK && !there)
        st = remote_make_code(c, err);
    *ret_mended = st == ST_OK && !there;
    return st;
}

static enum status take_flag(void *arg, const struct remote_row *row)
{
    *(bool *)arg = remote_i64(row, 0) == 1;
    return ST_OK;
}

/* A server of an earlier version knows nothing of what the new one brings, and would break it: there must be
   none. Each holds a lock of the tables; this connection takes all of them, until it is closed, so that none
   comes meanwhile either. (In a Galera cluster servers have no such locks.) What an application's transaction
   holds is waited for, and so are sessions of servers that have just ended. */
static enum status keep_servers_out(struct remote *c, struct error *err)
{
    int64_t deadline = clock_mono_us() + (int64_t)PATIENCE_MS * 1000;
    for (;;) {
        bool taken = false;
        struct request r = {.text = rtext_lock(c->dialect), .fn = take_flag, .arg = &taken};
        remote_add(c, &r);
        enum status st = remote_run(c, err);
        if (st != ST_OK || taken)
            return st;
        if (clock_mono_us() >= deadline)
            return error_set(err, ST_LOCKED,
                             "%.100s is in use: end all servers on it first, they do not know the tables of"
                             " version %d",
                             c->place, REMOTE_SCHEMA_VERSION);
        const struct timespec pause = {.tv_nsec = RETRY_NS};
        nanosleep(&pause, NULL);
    }
}

/* Within what begin_text began. */
static enum status run_steps(struct remote *c, int64_t *ret_from, bool *ret_mended, struct error *err)
{
    int64_t there = 1, version = 0;
    enum status st = make_schema(c, err);
    if (st == ST_OK && has_meta_text[c->dialect]) {
        struct request r = {.text = has_meta_text[c->dialect], .fn = take_number, .arg = &there};
        remote_add(c, &r);
        st = remote_run(c, err);
    }
    if (st == ST_OK && there)
        st = remote_schema_version(c, &version, err);
    *ret_from = version;
    if (st == ST_OK && version > REMOTE_SCHEMA_VERSION)
        return newer(version, err);
    if (st == ST_OK)
        st = version ? remote_verify(c, version, false, err) : remote_verify_nothing(c, err);
    if (st == ST_OK && version && version < REMOTE_SCHEMA_VERSION && !c->galera.on)
        st = keep_servers_out(c, err);
    for (int i = 0; st == ST_OK && i < REMOTE_SCHEMA_VERSION; i++)
        if (remote_schema_steps[i].version > version) {
            if (version)
                log_info("migrating the tables", "place=\"%s\" from=%" PRId64 " to=%d of=%d", c->place,
                         version, remote_schema_steps[i].version, REMOTE_SCHEMA_VERSION);
            st = run_step(c, &remote_schema_steps[i], err);
        }
    if (st == ST_OK && version == REMOTE_SCHEMA_VERSION)
        st = mend(c, ret_mended, err);
    return st == ST_OK ? remote_advance_seq(c, err) : st;
}

/* Ends what begin_text began, well or not. */
static enum status end(struct remote *c, enum status st, struct error *err)
{
    struct error ignored;
    if (st == ST_OK) {
        st = remote_script(c, end_text[c->dialect], err);
        bool unlocked =
            st == ST_INTERNAL && !c->lost && c->dialect == REMOTE_MARIADB; /* there are no locks */
        return unlocked ? ST_OK : st;
    }
    if (!c->lost)
        (void)(remote_script(c, abort_text[c->dialect], &ignored) == ST_OK);
    return st;
}

enum status remote_schema_migrate(struct remote *c, int64_t *ret_from, bool *ret_mended, struct error *err)
{
    *ret_mended = false;
    enum status st = begin(c, err);
    return st == ST_OK ? end(c, run_steps(c, ret_from, ret_mended, err), err) : st;
}

/* ---- serving ---- */

static enum status make_functions(struct remote *c, struct error *err)
{
    bool mended;
    enum status st = begin(c, err);
    return st == ST_OK ? end(c, mend(c, &mended, err), err) : st;
}

static enum status advance_seq(struct remote *c, struct error *err)
{
    enum status st = begin(c, err);
    return st == ST_OK ? end(c, remote_advance_seq(c, err), err) : st;
}

enum status remote_schema_ready(struct remote *c, struct error *err)
{
    bool there = true;
    enum status st = remote_schema_require(c, err);
    if (st == ST_OK)
        st = remote_verify(c, REMOTE_SCHEMA_VERSION, true, err);
    if (st == ST_OK)
        st = remote_verify_code(c, false, &there, err);
    if (c->galera.on) /* only `larder migrate` changes the schema of a cluster; it has numbers of its own */
        return st;
    if (st == ST_OK && !there && (st = make_functions(c, err)) == ST_DENIED)
        st = ST_OK; /* a server can do without */
    return st == ST_OK ? advance_seq(c, err) : st;
}

#define CONNECT_MS   10000
#define STATEMENT_MS (24 * 3600 * 1000) /* a large table is changed in one statement */

enum status remote_schema_make(const char *url, int64_t *ret_from, bool *ret_mended, struct error *err)
{
    const struct remote_options o = {.url = url, .connect_ms = CONNECT_MS, .timeout_ms = STATEMENT_MS};
    struct remote *c;
    enum status st = remote_open(&o, &c, err);
    if (st != ST_OK)
        return st;
    st = remote_schema_migrate(c, ret_from, ret_mended, err);
    remote_close(c);
    return st;
}
