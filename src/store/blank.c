#include "store/blank.h"

#include "base/mem.h"

static enum status not_known(struct error *err)
{
    return error_set(err, ST_STALE, "memory does not have it");
}

static enum status not_written(struct error *err)
{
    return error_set(err, ST_READONLY, "memory alone is not written to");
}

static void do_close(struct store *s)
{
    mem_free(s);
}

/* ---- transactions, of which nothing is left ---- */

static enum status do_begin(struct store *s, enum store_txn kind, const struct store_declared *d,
                            bool *ret_changed, struct error *err)
{
    (void)s, (void)d;
    *ret_changed = false;
    return kind == STORE_READ ? ST_OK : not_written(err);
}

static enum status do_apply(struct store *s, struct changes *c, struct error *err)
{
    (void)s, (void)c;
    return not_written(err);
}

static enum status do_mark(struct store *s, struct error *err)
{
    (void)s;
    return not_written(err);
}

static enum status do_commit(struct store *s, struct error *err)
{
    (void)s, (void)err;
    return ST_OK;
}

static void do_rollback(struct store *s)
{
    (void)s;
}

/* ---- what is not known ---- */

static enum status do_get_keys(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                               void *arg, struct error *err)
{
    (void)s, (void)refs, (void)n, (void)fn, (void)arg;
    return not_known(err);
}

static enum status do_get_items(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                                void *arg, struct error *err)
{
    (void)s, (void)refs, (void)n, (void)fn, (void)arg;
    return not_known(err);
}

static enum status do_scan_keys(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                                struct error *err)
{
    (void)s, (void)q, (void)fn, (void)arg;
    return not_known(err);
}

static enum status do_scan_items(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                                 struct error *err)
{
    (void)s, (void)q, (void)fn, (void)arg;
    return not_known(err);
}

static enum status do_count_items(struct store *s, const struct item_scan *q, int64_t *ret, struct error *err)
{
    (void)s, (void)q;
    *ret = 0;
    return not_known(err);
}

static enum status do_due_rows(struct store *s, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                               size_t *ret_n, struct error *err)
{
    (void)s, (void)now, (void)after, (void)max;
    ret_ids[0] = 0;
    *ret_n = 0;
    return not_known(err);
}

static enum status do_count_dead(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                                 int64_t *ret_expires, struct error *err)
{
    (void)s, (void)db, (void)now;
    *ret_keys = *ret_expires = 0;
    return not_known(err);
}

static enum status do_count_keys(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                 struct error *err)
{
    (void)s, (void)db;
    *ret_keys = *ret_expires = 0;
    return not_known(err);
}

/* How many keys they have is not known, either. */
static enum status do_load_dbs(struct store *s, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    (void)s, (void)err;
    for (size_t i = 0; i < n; i++)
        dbs[i] = (struct db_row){.db = (uint32_t)i, .number = (uint32_t)i, .keys = -1, .expires = -1};
    *ret_next_number = (uint32_t)n;
    return ST_OK;
}

static enum status do_reserve_ids(struct store *s, int64_t n, int64_t *ret_first, struct error *err)
{
    (void)s, (void)n;
    *ret_first = 0;
    return not_written(err);
}

/* ---- what every store does between transactions ---- */

static enum status do_sweep(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                            struct error *err)
{
    (void)s, (void)b, (void)err;
    *ret = (struct sweep_result){0};
    return ST_OK;
}

static enum status do_info(struct store *s, struct store_info *ret, struct error *err)
{
    (void)s, (void)err;
    *ret = (struct store_info){.engine = "memory"};
    return ST_OK;
}

static enum status do_set_durability(struct store *s, enum durability d, struct error *err)
{
    (void)s, (void)d, (void)err;
    return ST_OK;
}

static enum status do_sync(struct store *s, struct error *err)
{
    (void)s, (void)err;
    return ST_OK;
}

static uint64_t do_connection(const struct store *s)
{
    (void)s;
    return 1;
}

static const struct store_ops blank_ops = {
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
    .undo = do_mark, /* nothing was */
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = do_sweep,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
    .connection = do_connection,
};

struct store *blank_new(void)
{
    struct store *s = mem_zalloc(sizeof *s);
    s->ops = &blank_ops;
    return s;
}
