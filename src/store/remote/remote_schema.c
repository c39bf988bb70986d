#include "store/remote/remote_schema.h"

#include <inttypes.h>
#include <stdio.h>

#include "store/remote/remote_schema_internal.h"
#include "store/remote/remote_verify.h"

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

/* Whether larder_meta is there: where asking a table that is not there ends the transaction. NULL
   elsewhere. */
static const char *const has_meta_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT (to_regclass('larder_meta') IS NOT NULL)::int::text",
};

static enum status run_step(struct remote *c, const struct remote_schema_step *step, struct error *err)
{
    char mark[96];
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && i < REMOTE_SCHEMA_TEXTS && step->texts[c->dialect][i]; i++)
        st = remote_script(c, step->texts[c->dialect][i], err);
    snprintf(mark, sizeof mark, "UPDATE larder_meta SET value = '%d' WHERE name = 'schema_version'",
             step->version);
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
    for (int i = 0; st == ST_OK && i < REMOTE_SCHEMA_VERSION; i++)
        if (remote_schema_steps[i].version > version)
            st = run_step(c, &remote_schema_steps[i], err);
    if (st == ST_OK && version == REMOTE_SCHEMA_VERSION)
        st = mend(c, ret_mended, err);
    return st == ST_OK ? remote_advance_seq(c, err) : st;
}

/* Ends what begin_text began, well or not. */
static enum status end(struct remote *c, enum status st, struct error *err)
{
    struct error ignored;
    if (st == ST_OK)
        return remote_script(c, end_text[c->dialect], err);
    if (!c->lost)
        (void)(remote_script(c, abort_text[c->dialect], &ignored) == ST_OK);
    return st;
}

enum status remote_schema_migrate(struct remote *c, int64_t *ret_from, bool *ret_mended, struct error *err)
{
    *ret_mended = false;
    enum status st = remote_script(c, begin_text[c->dialect], err);
    return st == ST_OK ? end(c, run_steps(c, ret_from, ret_mended, err), err) : st;
}

/* ---- serving ---- */

static enum status make_functions(struct remote *c, struct error *err)
{
    bool mended;
    enum status st = remote_script(c, begin_text[c->dialect], err);
    return st == ST_OK ? end(c, mend(c, &mended, err), err) : st;
}

static enum status advance_seq(struct remote *c, struct error *err)
{
    enum status st = remote_script(c, begin_text[c->dialect], err);
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
    if (c->galera
            .on) /* only `larder migrate` changes the schema of a cluster; the sequence is not used there */
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
