/* A database for check to look at, its journal, and the log beside a file.

   After a crash the journal and the log may hold changes that are not in the tables, or only half. Then the
   database is taken as a server would take it, the journal is brought into the tables within one transaction,
   everything is looked at within that, and it is rolled back: the next server finds what it would have found.
 */
#include <inttypes.h>
#include <time.h>

#include "admin/check_internal.h"
#include "base/clock.h"
#include "journal/replay.h"
#include "sql/remote.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"

#define CACHE_BYTES (16u << 20)
#define BUSY_MS     5000
#define PATIENCE_US 10000000 /* how long a server may be busy */
#define LATE_US     (PATIENCE_US / 2)
#define RETRY_MS    20

/* ---- opening ---- */

static enum status count_pending(struct check_session *s, struct error *err)
{
    struct sqlite_stmt *q;
    bool row;
    enum status st = store_journal_state(s->store, &s->state, err);
    if (st == ST_OK)
        st = sqlite_prepare(s->sql, "SELECT count(*) FROM larder_journal WHERE seq > ?1", &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, s->state.applied);
    st = sqlite_step(q, &row, err);
    s->pending = st == ST_OK && row ? sqlite_column_i64(q, 0) : 0;
    sqlite_finalize(q);
    return st;
}

static enum status count_group(void *arg, const struct redo_record *r)
{
    (void)r;
    ++*(int64_t *)arg;
    return ST_OK;
}

/* What is wrong with the log is no reason to look at nothing. Beside a server it may be a moment's: segments
   are given up while we read. */
static enum status count_log(struct check_session *s, const char *url, struct error *err)
{
    struct redo_found found;
    enum redo_verdict verdict;
    struct error *why = &s->refused;
    enum status st = redo_state_read(s->store, &s->redo, err);
    if (st != ST_OK)
        return st;
    s->in_log = 0;
    st = redo_find(s->redo.file.path, s->redo.known ? &s->redo.id : NULL, &found, why);
    if (st == ST_OK)
        st = redo_judge(&s->redo, &found, url, &verdict, why);
    if (st == ST_OK && verdict == REDO_OURS)
        st = redo_each(s->redo.file.path, &s->redo.id, s->redo.applied, count_group, &s->in_log, why);
    why->code = st;
    return ST_OK;
}

void check_close(struct check_session *s)
{
    if (s->sql)
        sqlite_rollback(s->sql);
    else if (s->store)
        store_rollback(s->store);
    store_close(s->store);
    *s = (struct check_session){0};
}

enum status check_open(const char *url, bool owned, struct check_session *ret, struct error *err)
{
    struct sqlite_options o = {.cache_bytes = CACHE_BYTES, .busy_ms = BUSY_MS, .read_only = !owned};
    struct check_session s = {.owned = owned};
    if (remote_is_url(url))
        return remote_check_open(url, owned, ret, err);
    enum status st = sqlite_path(url, &o.path, err);
    if (st == ST_OK)
        st = sqlite_open(&o, &s.sql, err);
    if (st != ST_OK)
        return st;
    s.store = sqlite_store_over(s.sql);
    st = sqlite_begin(s.sql, owned ? SQL_WRITE : SQL_READ, NULL, err);
    if (st == ST_OK)
        st = schema_require(s.sql, "checks", err);
    if (st == ST_OK)
        st = schema_verify(s.sql, err);
    if (st == ST_OK)
        st = count_pending(&s, err);
    if (st == ST_OK)
        st = count_log(&s, url, err);
    if (st != ST_OK)
        check_close(&s);
    else
        *ret = s;
    return st;
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = RETRY_MS * 1000000L};
    nanosleep(&t, NULL);
}

static enum status say_why_writing(enum status st, struct error *err)
{
    char why[sizeof err->text];
    snprintf(why, sizeof why, "%s", err->text);
    return error_set(
        err, st, "the journal has changes that are not in the tables; to check them takes writing: %s", why);
}

/* Whether the tables say one thing as they are. A log that cannot be read is looked at again beside a server,
   for as long as there is time. */
static bool is_settled(const struct check_session *s, bool served, bool late)
{
    bool nothing_waits = s->pending == 0 && s->in_log == 0;
    return s->state.applying == 0 && (served || nothing_waits) && (late || s->refused.code == ST_OK);
}

enum status check_open_settled(const char *url, struct check_session *ret, struct error *err)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    for (bool served = false;; served = true) {
        enum status st = check_open(url, false, ret, err);
        if (st != ST_OK || is_settled(ret, served, served && clock_mono_us() > until - LATE_US))
            return st;
        check_close(ret); /* a process opens a database once */
        st = check_open(url, true, ret, err);
        if (st == ST_READONLY || st == ST_DENIED)
            return say_why_writing(st, err);
        if (st != ST_LOCKED)
            return st;
        if (clock_mono_us() > until)
            return error_set(
                err, ST_BUSY,
                "a server is busy with the database, and its tables are behind: try again later");
        pause_a_moment();
    }
}

/* ---- the journal ---- */

struct reading {
    struct memtable *mem;
    FILE *out;
    int64_t applied, last;
    uint64_t found;
};

static void find(struct reading *r, const char *text)
{
    if (++r->found <= CHECK_SHOWN)
        fprintf(r->out, "%s  %s\n", r->found == 1 ? "WRONG\n" : "", text);
}

static enum status read_row(void *arg, int64_t seq, struct slice row)
{
    struct reading *r = arg;
    struct error err;
    char text[96];
    if (seq <= r->last) {
        snprintf(text, sizeof text, "row %" PRId64 " of the journal comes after row %" PRId64, seq, r->last);
        find(r, text);
    }
    r->last = seq;
    if (seq > r->applied && replay_row(r->mem, seq, row, &err) != ST_OK)
        find(r, err.text);
    return ST_OK;
}

static void print_summary(const struct check_session *s, const struct reading *r, enum status st)
{
    if (r->found > CHECK_SHOWN)
        fprintf(r->out, "  and %" PRIu64 " more\n", r->found - CHECK_SHOWN);
    if (st != ST_OK)
        fprintf(r->out, "UNREADABLE\n");
    else if (r->found == 0 && s->pending == 0)
        fprintf(r->out, "ok, nothing to be applied\n");
    else if (r->found == 0)
        fprintf(r->out, "ok, %" PRId64 " %s to be applied%s\n", s->pending, s->pending == 1 ? "row" : "rows",
                s->owned ? "" : " by the server");
    fflush(r->out);
}

static enum status read_group(void *arg, const struct redo_record *g)
{
    struct reading *r = arg;
    struct error err;
    if (g->kind == REDO_OUTSIZED)
        find(r, "the tables lack a value that was too large for the log, which says that they have it");
    else if (replay_row(r->mem, g->seq, g->payload, &err) != ST_OK)
        find(r, err.text);
    return ST_OK;
}

/* Beside a server there may be more of them by now, or fewer; what it has was looked at when it was counted.
 */
static enum status check_log(struct check_session *s, struct reading *r, struct error *err)
{
    enum status st = ST_OK;
    uint64_t before = r->found;
    r->found = 0;
    fprintf(r->out, "log ... ");
    fflush(r->out);
    if (s->refused.code != ST_OK)
        find(r, s->refused.text);
    else if (s->in_log && s->owned)
        st = redo_each(s->redo.file.path, &s->redo.id, s->redo.applied, read_group, r, err);
    if (st == ST_OK && r->found == 0 && s->in_log == 0)
        fprintf(r->out, "ok, nothing to be applied\n");
    else if (st == ST_OK && r->found == 0)
        fprintf(r->out, "ok, %" PRId64 " %s to be applied%s\n", s->in_log,
                s->in_log == 1 ? "group" : "groups", s->owned ? "" : " by the server");
    fflush(r->out);
    r->found += before;
    return st;
}

enum status check_journal(struct check_session *s, FILE *out, uint64_t *ret_found, bool *ret_comparable,
                          struct error *err)
{
    struct reading r = {.mem = memtable_new(0), .out = out, .applied = s->state.applied};
    fprintf(out, "journal ... ");
    fflush(out);
    enum status st = store_journal_each(s->store, read_row, &r, err);
    print_summary(s, &r, st);
    if (st == ST_OK && s->sql)
        st = check_log(s, &r, err);
    bool whole = st == ST_OK && r.found == 0;
    if (whole && s->owned)
        st = replay_apply(s->store, r.mem, err);
    memtable_free(r.mem);
    *ret_found = r.found;
    *ret_comparable = s->state.applying == 0 || (whole && s->owned);
    return st;
}
