/* The rows of larder_journal, and larder_meta's word on how far the tables are. */
#include "store/sqlite/sqlite_store.h"

#include <string.h>

#define APPLIED  "applied"
#define APPLYING "applying"

static enum status do_add(struct store *base, int64_t seq, struct slice row, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(sqlite_store_of(base), Q_JOURNAL_ADD, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, seq);
    sqlite_bind_blob(q, 2, row);
    return sqlite_run(q, err);
}

static enum status do_each(struct store *base, store_journal_fn *fn, void *arg, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(sqlite_store_of(base), Q_JOURNAL_EACH, &q, err);
    if (st != ST_OK)
        return st;
    bool row;
    while ((st = sqlite_step(q, &row, err)) == ST_OK && row) {
        st = fn(arg, sqlite_column_i64(q, 0), sqlite_column_blob(q, 1));
        if (st != ST_OK)
            break;
    }
    sqlite_reset(q);
    return st;
}

static enum status do_applying(struct store *base, int64_t seq, struct error *err)
{
    return sqlite_store_set_meta(sqlite_store_of(base), APPLYING, seq, err);
}

static enum status do_applied(struct store *base, int64_t seq, struct error *err)
{
    enum status st = sqlite_store_set_meta(sqlite_store_of(base), APPLIED, seq, err);
    return st == ST_OK ? do_applying(base, 0, err) : st;
}

static enum status do_drop(struct store *base, int64_t seq, uint32_t max, bool *ret_more, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_JOURNAL_DROP, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, seq);
    sqlite_bind_i64(q, 2, max);
    st = sqlite_run(q, err);
    *ret_more = st == ST_OK && sqlite_changed_rows(s->sql) == (int64_t)max;
    return st;
}

static enum status do_state(struct store *base, struct journal_state *ret, struct error *err)
{
    struct sqlite_stmt *q;
    bool row;
    enum status st = sqlite_store_get_meta(sqlite_store_of(base), APPLIED, &ret->applied, err);
    if (st == ST_OK)
        st = sqlite_store_get_meta(sqlite_store_of(base), APPLYING, &ret->applying, err);
    if (st == ST_OK)
        st = stmt_fixed(sqlite_store_of(base), Q_JOURNAL_LAST, &q, err);
    if (st != ST_OK)
        return st;
    st = sqlite_step(q, &row, err);
    ret->last = st == ST_OK && row ? sqlite_column_i64(q, 0) : 0;
    sqlite_reset(q);
    return st;
}

/* A commit either fails or has taken place. */
static enum status do_forget(struct store *base, int64_t after, int64_t applied, struct error *err)
{
    (void)base;
    (void)after;
    (void)applied;
    (void)err;
    return ST_OK;
}

/* No other process can have the file while this one has it. */
static enum status do_confirm(struct store *base, struct error *err)
{
    (void)base;
    (void)err;
    return ST_OK;
}

static bool do_same(struct store *base)
{
    return sqlite_same(sqlite_store_of(base)->sql);
}

static bool do_others(struct store *base, uint64_t *seen, bool *ret_others)
{
    return sqlite_others(sqlite_store_of(base)->sql, seen, ret_others);
}

static enum status do_get_word(struct store *base, const char *name, char *ret, size_t cap, struct error *err)
{
    return sqlite_store_get_word(sqlite_store_of(base), name, ret, cap, err);
}

static enum status do_set_word(struct store *base, const char *name, const char *text, struct error *err)
{
    return sqlite_store_set_word(sqlite_store_of(base), name, text, err);
}

static enum status do_file(struct store *base, struct store_file *ret, struct error *err)
{
    struct sqlite_file f;
    enum status st = sqlite_file(sqlite_store_of(base)->sql, &f, err);
    if (st != ST_OK)
        return st;
    *ret = (struct store_file){.path = f.path, .cookie = f.cookie};
    memcpy(ret->identity, f.identity, sizeof ret->identity);
    return ST_OK;
}

static enum status do_new_cookie(struct store *base, struct error *err)
{
    return sqlite_new_cookie(sqlite_store_of(base)->sql, err);
}

static enum status do_in_bulk(struct store *base, void (*meanwhile)(void *arg), void *arg, struct error *err)
{
    return sqlite_write_in_bulk(sqlite_store_of(base)->sql, (struct meanwhile){meanwhile, arg}, err);
}

static enum status do_checkpoint(struct store *base, struct error *err)
{
    return sqlite_checkpoint(sqlite_store_of(base)->sql, err);
}

static uint64_t do_wal_bytes(struct store *base)
{
    return sqlite_log_bytes(sqlite_store_of(base)->sql);
}

const struct journal_rows_ops sqlite_journal_rows_ops = {
    .add = do_add,
    .each = do_each,
    .applied = do_applied,
    .drop = do_drop,
    .forget = do_forget,
    .state = do_state,
    .get_seqs = sqlite_read_get_seqs,
    .confirm = do_confirm,
    .same = do_same,
    .others = do_others,
    .get_word = do_get_word,
    .set_word = do_set_word,
    .file = do_file,
    .new_cookie = do_new_cookie,
    .in_bulk = do_in_bulk,
    .checkpoint = do_checkpoint,
    .wal_bytes = do_wal_bytes,
};
