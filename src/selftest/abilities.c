/* What Larder can do without, where a database server lacks it; and what its owner has set. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "selftest/selftest_internal.h"
#include "store/shared.h"

/* It is not there, and a server finds that out by itself. */
static enum status is_missing(struct finding *f)
{
    f->verdict = VERDICT_DOES_NOT;
    f->missing = true;
    return ST_OK;
}

static enum status not_needed(struct finding *f, const char *why)
{
    f->verdict = VERDICT_NOT_NEEDED;
    snprintf(f->text, sizeof f->text, "%s", why);
    return ST_OK;
}

/* ---- the schema ---- */

enum status try_tables(struct selftest *t, struct finding *f, struct error *err)
{
    (void)f;
    enum status st = scratch_open(t, err);
    return st == ST_OK ? remote_try_features(t->x, &t->features, err) : st;
}

enum status try_functions(struct selftest *t, struct finding *f, struct error *err)
{
    struct kept k = {0};
    int64_t n;
    enum status st = t->x->dialect == REMOTE_POSTGRES
                         ? plain_number(t->x, "SELECT 1 FROM larder_set('f:key', 'by a function')", &n, err)
                         : plain_run(t->x, "CALL larder_set('f:key', 'by a function', NULL)", err);
    if (st == ST_OK)
        st = get_string(t->b, SLICE("f:key"), &k, err);
    if (st == ST_OK)
        expect(f, k.found && slice_is(k.row.value, "by a function"), "what a function writes is not seen");
    kept_release(&k);
    return st;
}

/* ---- locks of sessions ---- */

struct lock_texts {
    const char *take, *take_shared; /* NULL: there is only one mode */
};

#define PG_KEY "1818324575::bigint << 32"

static const struct lock_texts locks[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = {"SELECT pg_try_advisory_lock(" PG_KEY ")::int",
                         "SELECT pg_try_advisory_lock_shared(" PG_KEY ")::int"},
    [REMOTE_MARIADB] = {"SELECT GET_LOCK(CONCAT('larder test ', DATABASE()), 0)", NULL},
};

/* The first session dies: the second has its lock soon. */
static enum status outlive_lock(struct selftest *t, struct finding *f, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t deadline = clock_mono_us() + (int64_t)SESSION_MS * 1000, got = 0;
    enum status st = ST_OK;
    plain_cut(t->x);
    while (st == ST_OK && got != 1 && clock_mono_us() < deadline) {
        st = plain_number(t->y, locks[t->y->dialect].take, &got, err);
        if (got != 1)
            nanosleep(&pause, NULL);
    }
    expect(f, st != ST_OK || got == 1, "the lock of a session that is gone stays");
    return st;
}

/* PostgreSQL: a lock that ends with its transaction. */
static enum status try_transaction_lock(struct selftest *t, struct finding *f, struct error *err)
{
    static const char take[] = "SELECT pg_try_advisory_xact_lock((" PG_KEY ") + 1)::int";
    int64_t first = 0, second = 0, third = 0;
    enum status st = plain_run(t->x, "BEGIN", err);
    if (st == ST_OK)
        st = plain_number(t->x, take, &first, err);
    if (st == ST_OK)
        st = plain_number(t->y, take, &second, err);
    if (st == ST_OK)
        st = plain_run(t->x, "COMMIT", err);
    if (st == ST_OK)
        st = plain_number(t->y, take, &third, err);
    if (st == ST_OK)
        expect(f, first == 1 && second == 0 && third == 1,
               "a lock of a transaction does not keep a second session out, or does not end with it");
    return st;
}

enum status try_session_locks(struct selftest *t, struct finding *f, struct error *err)
{
    const struct lock_texts *l = &locks[t->x->dialect];
    int64_t first = 0, second = 0, shared = 0;
    if (!t->features.locks)
        return is_missing(f);
    enum status st = t->x->dialect == REMOTE_POSTGRES ? try_transaction_lock(t, f, err) : ST_OK;
    if (st == ST_OK)
        st = plain_number(t->x, l->take, &first, err);
    if (st == ST_OK)
        st = plain_number(t->y, l->take, &second, err);
    if (st == ST_OK && l->take_shared)
        st = plain_number(t->y, l->take_shared, &shared, err);
    if (st == ST_OK)
        expect(f, first == 1 && second == 0 && shared == 0, "a lock does not keep a second session out");
    return st == ST_OK && f->verdict == VERDICT_HOLDS ? outlive_lock(t, f, err) : st;
}

/* One server alone: no other comes in, and all may when it has gone. */
enum status try_alone(struct selftest *t, struct finding *f, struct error *err)
{
    struct store *first = NULL, *second = NULL;
    if (t->x->galera.on)
        return not_needed(f, "a node of a Galera cluster is always shared");
    if (!t->features.locks)
        return is_missing(f);
    enum status st = scratch_store(t->scratch.alone, false, &first, err);
    if (!expect(f, st == ST_LOCKED, "a server has the tables for itself while others use them")) {
        store_close(first);
        return st == ST_OK ? ST_OK : st;
    }
    scratch_close(t);
    st = scratch_store(t->scratch.alone, false, &first, err);
    if (st != ST_OK)
        return st;
    st = scratch_store(t->scratch.alone, false, &second, err);
    expect(f, st == ST_LOCKED, "two servers have the tables for themselves");
    if (st == ST_LOCKED)
        st = scratch_store(t->scratch.url, false, &second, err);
    expect(f, st == ST_LOCKED, "a server shares tables that another has for itself");
    store_close(second);
    store_close(first);
    return scratch_open(t, err);
}

/* ---- wake-ups ---- */

static enum status appear(struct store *s, int i, struct error *err)
{
    char name[24];
    snprintf(name, sizeof name, "l:%d", i);
    struct key_row row = {.key = slice_str(name), .type = ROW_LIST, .id = 1000 + i, .size = 1, .version = 1};
    const struct item_row item = {
        .ref = {.table = ITEM_LIST, .id = 1000 + i}, .value = SLICE("v"), .fresh = true};
    struct changes c = {.keys = &row, .nkeys = 1, .items = &item, .nitems = 1, .appeared = true};
    enum status st = store_begin(s, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_apply(s, &c, err);
    if (st == ST_OK)
        return store_commit(s, err);
    store_rollback(s);
    return st;
}

#define PUSHES  20
#define PUSH_MS 100

enum status try_listen(struct selftest *t, struct finding *f, struct error *err)
{
    struct store_wakeup w;
    bool heard = false;
    enum status st = ST_OK;
    if (t->x->dialect == REMOTE_MARIADB)
        return not_needed(f, "waiting clients are served by looking");
    if (!t->features.listen)
        return is_missing(f);
    bool listens = store_listen(t->b, true, &w);
    for (int i = 0; listens && st == ST_OK && !heard && i < PUSHES; i++) {
        st = appear(t->a, i, err);
        struct pollfd fd = {.fd = w.fd, .events = POLLIN};
        if (st == ST_OK && poll(&fd, 1, PUSH_MS) > 0)
            heard = store_notified(t->b);
    }
    (void)store_listen(t->b, false, &w);
    expect(f, st != ST_OK || heard, "LISTEN is there, and no notification comes");
    return st;
}

enum status try_skip_locked(struct selftest *t, struct finding *f, struct error *err)
{
    int64_t last = 0;
    if (!t->features.skip_locked)
        return is_missing(f);
    enum status st = plain_hurry(t->y, err);
    if (st == ST_OK)
        st = plain_run(t->x, "BEGIN", err);
    if (st == ST_OK)
        st = plain_run(t->x, "SELECT v FROM larder_scratch WHERE n = 1 FOR UPDATE", err);
    if (st == ST_OK)
        st = plain_number(t->y,
                          "SELECT n FROM larder_scratch WHERE n <= 2 ORDER BY n DESC FOR UPDATE SKIP LOCKED",
                          &last, err);
    expect(f, st != ST_OK || last == 2, "SKIP LOCKED does not skip rows that are locked");
    return kept_out(st) ? error_set(err, st, "SKIP LOCKED waits for rows that are locked") : st;
}

/* ---- settings ---- */

struct said {
    int64_t good;
    char *text;
    size_t cap;
};

static enum status take_said(void *arg, const struct remote_row *row)
{
    struct said *s = arg;
    struct slice text = remote_bytes(row, 1);
    s->good = remote_i64(row, 0);
    snprintf(s->text, s->cap, "%.*s", (int)text.n, text.p ? text.p : "");
    return ST_OK;
}

/* Whether a commit is on the disk when it is answered is not to be seen from here: what the settings say. */
enum status try_durable(struct selftest *t, struct finding *f, struct error *err)
{
    static const char *const text[REMOTE_DIALECTS] = {
        [REMOTE_POSTGRES] =
            "SELECT (current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'"
            "  AND current_setting('full_page_writes') = 'on')::int, 'fsync = ' ||"
            " current_setting('fsync') || ', synchronous_commit = ' ||"
            " current_setting('synchronous_commit') || ', full_page_writes = ' ||"
            " current_setting('full_page_writes')",
        [REMOTE_MARIADB] = "SELECT @@innodb_flush_log_at_trx_commit = 1 AND @@innodb_doublewrite,"
                           " CONCAT('innodb_flush_log_at_trx_commit = ', @@innodb_flush_log_at_trx_commit,"
                           " ', innodb_doublewrite = ', @@innodb_doublewrite, ', innodb_flush_method = ',"
                           " @@innodb_flush_method)",
    };
    struct said s = {.text = f->text, .cap = sizeof f->text};
    struct request r = {.text = text[t->x->dialect], .fn = take_said, .arg = &s};
    remote_add(t->x, &r);
    enum status st = remote_run(t->x, err);
    if (st == ST_OK && s.good != 1)
        f->verdict = VERDICT_DOES_NOT;
    return st;
}
