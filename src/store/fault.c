#include "store/fault.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "store/deferred.h"
#include "store/journal_rows.h"
#include "store/shared.h"

struct fault_store {
    struct store base;
    struct store *inner;
    pthread_mutex_t lock; /* of the rest: a store with a journal calls from a thread of its own */
    struct store_fault fault;
    uint64_t calls;
    bool happened;
    atomic_uint_fast64_t reconnects;
};

static struct fault_store *fault_of(struct store *s)
{
    return (struct fault_store *)s;
}

/* What is to become of a call. */
struct verdict {
    bool bad, late;
    enum status status;
    uint64_t call;
};

static struct verdict count(struct fault_store *f, bool sync)
{
    struct verdict v = {0};
    pthread_mutex_lock(&f->lock);
    if (f->fault.syncs && !sync) {
        pthread_mutex_unlock(&f->lock);
        return v;
    }
    uint64_t call = ++f->calls, nth = f->fault.nth;
    bool bad = nth && (call == nth || (f->fault.sticky && call > nth));
    v = (struct verdict){bad, f->fault.late, f->fault.status, call};
    f->happened |= bad;
    pthread_mutex_unlock(&f->lock);
    return v;
}

static enum status fail(struct verdict v, struct error *err)
{
    return error_set(err, v.status, "injected failure of call %llu", (unsigned long long)v.call);
}

/* The body of each call: fail before or after it, or not at all. */
#define PASS(call)                                                                                           \
    do {                                                                                                     \
        struct store *inner = fault_of(s)->inner;                                                            \
        struct verdict v = count(fault_of(s), false);                                                        \
        if (v.bad && !v.late)                                                                                \
            return fail(v, err);                                                                             \
        enum status st = call;                                                                               \
        return st == ST_OK && v.bad ? fail(v, err) : st;                                                     \
    } while (0)

/* ---- every store ---- */

static void do_close(struct store *s)
{
    struct fault_store *f = fault_of(s);
    store_close(f->inner);
    pthread_mutex_destroy(&f->lock);
    mem_free(f);
}

/* A begin that fails has begun nothing, whenever it fails. */
static enum status do_begin(struct store *s, enum store_txn kind, const struct store_declared *d,
                            bool *ret_changed, struct error *err)
{
    struct fault_store *f = fault_of(s);
    struct verdict v = count(f, false);
    return v.bad ? fail(v, err) : store_begin(f->inner, kind, d, ret_changed, err);
}

static enum status do_get_keys(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                               void *arg, struct error *err)
{
    PASS(store_get_keys(inner, refs, n, fn, arg, err));
}

static enum status do_get_items(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                                void *arg, struct error *err)
{
    PASS(store_get_items(inner, refs, n, fn, arg, err));
}

static enum status do_scan_keys(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                                struct error *err)
{
    PASS(store_scan_keys(inner, q, fn, arg, err));
}

static enum status do_scan_items(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                                 struct error *err)
{
    PASS(store_scan_items(inner, q, fn, arg, err));
}

static enum status do_count_items(struct store *s, const struct item_scan *q, int64_t *ret, struct error *err)
{
    PASS(store_count_items(inner, q, ret, err));
}

static enum status do_due_rows(struct store *s, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                               size_t *ret_n, struct error *err)
{
    PASS(store_due_rows(inner, now, after, ret_ids, max, ret_n, err));
}

static enum status do_count_dead(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                                 int64_t *ret_expires, struct error *err)
{
    PASS(store_count_dead(inner, db, now, ret_keys, ret_expires, err));
}

static enum status do_count_keys(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                 struct error *err)
{
    PASS(store_count_keys(inner, db, ret_keys, ret_expires, err));
}

static enum status do_load_dbs(struct store *s, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    PASS(store_load_dbs(inner, dbs, n, ret_next_number, err));
}

static enum status do_reserve_ids(struct store *s, int64_t n, int64_t *ret_first, struct error *err)
{
    PASS(store_reserve_ids(inner, n, ret_first, err));
}

static enum status do_apply(struct store *s, struct changes *c, struct error *err)
{
    PASS(store_apply(inner, c, err));
}

static enum status do_mark(struct store *s, struct error *err)
{
    PASS(store_mark(inner, err));
}

static enum status do_undo(struct store *s, struct error *err)
{
    PASS(store_undo(inner, err));
}

/* After a failed commit there is no transaction, whether it took effect or not. */
static enum status do_commit(struct store *s, struct error *err)
{
    struct fault_store *f = fault_of(s);
    struct verdict v = count(f, false);
    if (v.bad && !v.late) {
        store_rollback(f->inner);
        return fail(v, err);
    }
    enum status st = store_commit(f->inner, err);
    return st == ST_OK && v.bad ? fail(v, err) : st;
}

static void do_rollback(struct store *s)
{
    store_rollback(fault_of(s)->inner);
}

/* A sweep that fails has swept nothing. */
static enum status do_sweep(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                            struct error *err)
{
    struct fault_store *f = fault_of(s);
    struct verdict v = count(f, false);
    return v.bad ? fail(v, err) : store_sweep(f->inner, b, ret, err);
}

static enum status do_info(struct store *s, struct store_info *ret, struct error *err)
{
    PASS(store_info(inner, ret, err));
}

static enum status do_set_durability(struct store *s, enum durability d, struct error *err)
{
    PASS(store_set_durability(inner, d, err));
}

static enum status do_sync(struct store *s, struct error *err)
{
    struct fault_store *f = fault_of(s);
    struct verdict v = count(f, true);
    if (v.bad && !v.late)
        return fail(v, err);
    enum status st = store_sync(f->inner, err);
    return st == ST_OK && v.bad ? fail(v, err) : st;
}

static uint64_t do_connection(const struct store *s)
{
    const struct fault_store *f = (const struct fault_store *)s;
    return store_connection(f->inner) + atomic_load(&f->reconnects);
}

static const struct store_ops fault_ops = {
    .close = do_close,
    .begin = do_begin,
    .get_keys = do_get_keys,
    .get_items = do_get_items,
    .scan_keys = do_scan_keys,
    .scan_items = do_scan_items,
    .count_items = do_count_items,
    .due_rows = do_due_rows,
    .count_dead = do_count_dead,
    .count_keys = do_count_keys,
    .load_dbs = do_load_dbs,
    .reserve_ids = do_reserve_ids,
    .apply = do_apply,
    .mark = do_mark,
    .undo = do_undo,
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = do_sweep,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
    .connection = do_connection,
};

/* ---- tables that are shared ---- */

static const struct store *inner_of(const struct store *s)
{
    return ((const struct fault_store *)s)->inner;
}

static int64_t do_now_us(const struct store *s)
{
    return store_now_us(inner_of(s));
}

static bool do_brief(const struct store *s)
{
    return store_brief(inner_of(s));
}

static bool do_listen(struct store *s, bool on, struct store_wakeup *ret)
{
    return store_listen(fault_of(s)->inner, on, ret);
}

static bool do_notified(struct store *s)
{
    return store_notified(fault_of(s)->inner);
}

static void do_counters(const struct store *s, struct store_info *add_to)
{
    store_counters(inner_of(s), add_to);
}

static enum status do_read_whole(struct store *s, enum item_table table, const int64_t *ids, size_t n,
                                 store_item_fn *fn, void *arg, struct error *err)
{
    PASS(store_read_whole(inner, table, ids, n, fn, arg, err));
}

static const struct shared_ops fault_shared_ops = {
    .now_us = do_now_us,
    .brief = do_brief,
    .listen = do_listen,
    .notified = do_notified,
    .counters = do_counters,
    .read_whole = do_read_whole,
};

/* ---- commits that become durable later ---- */

static int64_t do_last_ticket(const struct store *s)
{
    return store_last_ticket(inner_of(s));
}

static int64_t do_durable(struct store *s)
{
    return store_durable(fault_of(s)->inner);
}

static enum status do_progress(struct store *s, struct store_progress *ret, struct error *err)
{
    PASS(store_progress(inner, ret, err));
}

static void do_on_progress(struct store *s, store_wake_fn *fn, void *arg)
{
    store_on_progress(fault_of(s)->inner, fn, arg);
}

static void do_alone(struct store *s, bool alone)
{
    store_alone(fault_of(s)->inner, alone);
}

static void do_ending(struct store *s, int64_t ms)
{
    store_ending(fault_of(s)->inner, ms);
}

static const struct deferred_ops fault_deferred_ops = {
    .last_ticket = do_last_ticket,
    .durable = do_durable,
    .progress = do_progress,
    .on_progress = do_on_progress,
    .alone = do_alone,
    .ending = do_ending,
};

/* ---- tables under a journal ---- */

static enum status do_journal_add(struct store *s, int64_t seq, struct slice row, struct error *err)
{
    PASS(store_journal_add(inner, seq, row, err));
}

static enum status do_journal_each(struct store *s, store_journal_fn *fn, void *arg, struct error *err)
{
    PASS(store_journal_each(inner, fn, arg, err));
}

static enum status do_journal_applied(struct store *s, int64_t seq, struct error *err)
{
    PASS(store_journal_applied(inner, seq, err));
}

static enum status do_journal_drop(struct store *s, int64_t seq, uint32_t max, bool *ret_more,
                                   struct error *err)
{
    PASS(store_journal_drop(inner, seq, max, ret_more, err));
}

static enum status do_journal_state(struct store *s, struct journal_state *ret, struct error *err)
{
    PASS(store_journal_state(inner, ret, err));
}

static enum status do_journal_forget(struct store *s, int64_t after, int64_t applied, struct error *err)
{
    PASS(store_journal_forget(inner, after, applied, err));
}

static enum status do_get_seqs(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                               struct error *err)
{
    PASS(store_get_seqs(inner, refs, n, ret, err));
}

static bool do_same(struct store *s)
{
    return store_same(fault_of(s)->inner);
}

static bool do_others(struct store *s, uint64_t *seen, bool *ret_others)
{
    return store_others(fault_of(s)->inner, seen, ret_others);
}

static enum status do_confirm(struct store *s, struct error *err)
{
    PASS(store_confirm(inner, err));
}

static void do_reconnect(struct store *s)
{
    store_reconnect(fault_of(s)->inner);
}

static enum status do_get_word(struct store *s, const char *name, char *ret, size_t cap, struct error *err)
{
    PASS(store_get_word(inner, name, ret, cap, err));
}

static enum status do_set_word(struct store *s, const char *name, const char *text, struct error *err)
{
    PASS(store_set_word(inner, name, text, err));
}

static enum status do_file(struct store *s, struct store_file *ret, struct error *err)
{
    PASS(store_get_file(inner, ret, err));
}

static enum status do_new_cookie(struct store *s, struct error *err)
{
    PASS(store_new_cookie(inner, err));
}

static enum status do_in_bulk(struct store *s, void (*meanwhile)(void *arg), void *arg, struct error *err)
{
    PASS(store_write_in_bulk(inner, meanwhile, arg, err));
}

static enum status do_checkpoint(struct store *s, struct error *err)
{
    PASS(store_checkpoint(inner, err));
}

static uint64_t do_wal_bytes(struct store *s)
{
    return store_wal_bytes(fault_of(s)->inner);
}

static const struct journal_rows_ops fault_journal_rows_ops = {
    .add = do_journal_add,
    .each = do_journal_each,
    .applied = do_journal_applied,
    .drop = do_journal_drop,
    .forget = do_journal_forget,
    .state = do_journal_state,
    .get_seqs = do_get_seqs,
    .confirm = do_confirm,
    .same = do_same,
    .others = do_others,
    .reconnect = do_reconnect,
    .get_word = do_get_word,
    .set_word = do_set_word,
    .file = do_file,
    .new_cookie = do_new_cookie,
    .in_bulk = do_in_bulk,
    .checkpoint = do_checkpoint,
    .wal_bytes = do_wal_bytes,
};

/* ---- faults ---- */

struct store *fault_new(struct store *inner)
{
    struct fault_store *f = mem_zalloc(sizeof *f);
    f->base = (struct store){
        .ops = &fault_ops,
        .shared = inner->shared ? &fault_shared_ops : NULL,
        .deferred = inner->deferred ? &fault_deferred_ops : NULL,
        .journal_rows = inner->journal_rows ? &fault_journal_rows_ops : NULL,
        .far = inner->far,
        .contended = inner->contended,
    };
    f->inner = inner;
    pthread_mutex_init(&f->lock, NULL);
    return &f->base;
}

void store_fault_set(struct store *s, struct store_fault fault)
{
    struct fault_store *f = fault_of(s);
    pthread_mutex_lock(&f->lock);
    f->fault = fault;
    f->calls = 0;
    f->happened = false;
    pthread_mutex_unlock(&f->lock);
}

void fault_reconnect(struct store *s)
{
    atomic_fetch_add(&fault_of(s)->reconnects, 1);
}

uint64_t fault_calls(struct store *s)
{
    struct fault_store *f = fault_of(s);
    pthread_mutex_lock(&f->lock);
    uint64_t calls = f->calls;
    pthread_mutex_unlock(&f->lock);
    return calls;
}

bool fault_happened(struct store *s)
{
    struct fault_store *f = fault_of(s);
    pthread_mutex_lock(&f->lock);
    bool happened = f->happened;
    pthread_mutex_unlock(&f->lock);
    return happened;
}
