#include "store/fault.h"

#include "base/mem.h"

struct fault_store {
    struct store base;
    struct store *inner;
    struct fault fault;
    uint64_t calls;
    bool happened;
};

static struct fault_store *fault_of(struct store *s)
{
    return (struct fault_store *)s;
}

/* Counts a call; true when it is one that fails. */
static bool due(struct fault_store *f)
{
    f->calls++;
    bool now = f->fault.nth && (f->calls == f->fault.nth || (f->fault.sticky && f->calls > f->fault.nth));
    f->happened |= now;
    return now;
}

static enum status fail(struct fault_store *f, struct error *err)
{
    return error_set(err, f->fault.status, "injected failure of call %llu", (unsigned long long)f->calls);
}

/* The body of each call: fail before or after it, or not at all. */
#define PASS(call)                                                                                           \
    do {                                                                                                     \
        struct fault_store *f = fault_of(s);                                                                 \
        bool bad = due(f);                                                                                   \
        if (bad && !f->fault.late)                                                                           \
            return fail(f, err);                                                                             \
        enum status st = f->inner->ops->call;                                                                \
        return st == ST_OK && bad ? fail(f, err) : st;                                                       \
    } while (0)

static void do_close(struct store *s)
{
    store_close(fault_of(s)->inner);
    mem_free(s);
}

/* A begin that fails has begun nothing, whenever it fails. */
static enum status do_begin(struct store *s, enum store_txn kind, bool *ret_changed, struct error *err)
{
    struct fault_store *f = fault_of(s);
    return due(f) ? fail(f, err) : store_begin(f->inner, kind, ret_changed, err);
}

static enum status do_get_keys(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                               void *arg, struct error *err)
{
    PASS(get_keys(f->inner, refs, n, fn, arg, err));
}

static enum status do_get_items(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                                void *arg, struct error *err)
{
    PASS(get_items(f->inner, refs, n, fn, arg, err));
}

static enum status do_scan_keys(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                                struct error *err)
{
    PASS(scan_keys(f->inner, q, fn, arg, err));
}

static enum status do_scan_items(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                                 struct error *err)
{
    PASS(scan_items(f->inner, q, fn, arg, err));
}

static enum status do_count_items(struct store *s, const struct item_scan *q, int64_t *ret, struct error *err)
{
    PASS(count_items(f->inner, q, ret, err));
}

static enum status do_count_dead(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                                 int64_t *ret_expires, struct error *err)
{
    PASS(count_dead(f->inner, db, now, ret_keys, ret_expires, err));
}

static enum status do_count_keys(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                 struct error *err)
{
    PASS(count_keys(f->inner, db, ret_keys, ret_expires, err));
}

static enum status do_load_dbs(struct store *s, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    PASS(load_dbs(f->inner, dbs, n, ret_next_number, err));
}

static enum status do_reserve_ids(struct store *s, int64_t n, int64_t *ret_first, struct error *err)
{
    PASS(reserve_ids(f->inner, n, ret_first, err));
}

static enum status do_apply(struct store *s, struct changes *c, struct error *err)
{
    PASS(apply(f->inner, c, err));
}

/* After a failed commit there is no transaction, whether it took effect or not. */
static enum status do_commit(struct store *s, struct error *err)
{
    struct fault_store *f = fault_of(s);
    bool bad = due(f);
    if (bad && !f->fault.late) {
        store_rollback(f->inner);
        return fail(f, err);
    }
    enum status st = store_commit(f->inner, err);
    return st == ST_OK && bad ? fail(f, err) : st;
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
    return due(f) ? fail(f, err) : store_sweep(f->inner, b, ret, err);
}

static enum status do_info(struct store *s, struct store_info *ret, struct error *err)
{
    PASS(info(f->inner, ret, err));
}

static enum status do_set_durability(struct store *s, enum durability d, struct error *err)
{
    PASS(set_durability(f->inner, d, err));
}

static enum status do_sync(struct store *s, struct error *err)
{
    PASS(sync(f->inner, err));
}

static const struct store_ops fault_ops = {
    .close = do_close,
    .begin = do_begin,
    .get_keys = do_get_keys,
    .get_items = do_get_items,
    .scan_keys = do_scan_keys,
    .scan_items = do_scan_items,
    .count_items = do_count_items,
    .count_dead = do_count_dead,
    .count_keys = do_count_keys,
    .load_dbs = do_load_dbs,
    .reserve_ids = do_reserve_ids,
    .apply = do_apply,
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = do_sweep,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
};

struct store *fault_new(struct store *inner)
{
    struct fault_store *f = mem_zalloc(sizeof *f);
    f->base.ops = &fault_ops;
    f->inner = inner;
    return &f->base;
}

void fault_set(struct store *s, struct fault fault)
{
    struct fault_store *f = fault_of(s);
    f->fault = fault;
    f->calls = 0;
    f->happened = false;
}

uint64_t fault_calls(const struct store *s)
{
    return ((const struct fault_store *)s)->calls;
}

bool fault_happened(const struct store *s)
{
    return ((const struct fault_store *)s)->happened;
}
