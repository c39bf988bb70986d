/* A database for check to look at, and its journal.

   After a crash the journal may hold changes that are not in the tables, or only half. Then the database is
   taken as a server would take it, the journal is brought into the tables within one transaction, everything
   is looked at within that, and it is rolled back: the next server finds what it would have found. */
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

enum status check_open_settled(const char *url, struct check_session *ret, struct error *err)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    for (bool served = false;; served = true) {
        enum status st = check_open(url, false, ret, err);
        if (st != ST_OK || (ret->state.applying == 0 && (served || ret->pending == 0)))
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

enum status check_journal(struct check_session *s, FILE *out, uint64_t *ret_found, bool *ret_comparable,
                          struct error *err)
{
    struct reading r = {.mem = memtable_new(0), .out = out, .applied = s->state.applied};
    fprintf(out, "journal ... ");
    fflush(out);
    enum status st = store_journal_each(s->store, read_row, &r, err);
    print_summary(s, &r, st);
    bool whole = st == ST_OK && r.found == 0;
    if (whole && s->owned)
        st = replay_apply(s->store, r.mem, err);
    memtable_free(r.mem);
    *ret_found = r.found;
    *ret_comparable = s->state.applying == 0 || (whole && s->owned);
    return st;
}
