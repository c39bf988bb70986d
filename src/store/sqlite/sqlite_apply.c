/* Bringing a change set into the tables. Rows go in the order of the tables' trees, whatever the order they
   came in: neighbours share pages, and every page that is touched is written to the log once. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "store/sqlite/sqlite_store.h"

/* Whether the row's number in the table is not known, if it has one. */
static bool unnumbered(const struct key_row *k)
{
    return k->seq == 0 || k->seq >= STORE_PROVISIONAL;
}

static bool is_new(const struct key_row *k)
{
    return unnumbered(k) || k->fresh;
}

/* Known rows by number, then new ones by key. */
static int by_place(const void *a, const void *b)
{
    const struct key_row *x = *(struct key_row *const *)a, *y = *(struct key_row *const *)b;
    if (is_new(x) != is_new(y))
        return is_new(x) ? 1 : -1;
    if (!is_new(x) && x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

static int by_ref(const void *a, const void *b)
{
    return refs_compare(*(const struct item_ref *const *)a, *(const struct item_ref *const *)b);
}

static void bind_key(struct sqlite_stmt *q, const struct key_row *k)
{
    sqlite_bind_i64(q, 2, k->db);
    sqlite_bind_blob(q, 3, k->key);
    sqlite_bind_i64(q, 4, k->type);
    sqlite_bind_i64(q, 5, k->id);
    sqlite_bind_i64(q, 6, k->size);
    sqlite_bind_i64(q, 7, k->first);
    sqlite_bind_i64(q, 8, k->version);
    sqlite_bind_i64(q, 9, k->expire_at);
    sqlite_bind_blob(q, 10, k->value);
    sqlite_bind_i64(q, 11, k->numbers);
}

/* Runs one statement for a row; whether it found what it looks for. */
static enum status try_key(struct sqlite_store *s, enum statement which, const struct key_row *k,
                           bool *ret_done, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, which, &q, err);
    if (st != ST_OK)
        return st;
    if (which != Q_UPDATE_NAMED_KEY && which != Q_DELETE_NAMED_KEY && which != Q_UPSERT_KEY)
        sqlite_bind_i64(q, 1, k->seq);
    if (which == Q_DELETE_KEY_AT || which == Q_DELETE_NAMED_KEY) {
        sqlite_bind_i64(q, 2, k->db);
        sqlite_bind_blob(q, 3, k->key);
    } else {
        bind_key(q, k);
    }
    st = sqlite_run(q, err);
    *ret_done = st == ST_OK && sqlite_changed_rows(s->sql) > 0;
    return st;
}

/* A row that is there under its number. Few change their type. */
static enum status update_key(struct sqlite_store *s, const struct key_row *k, bool *ret_done,
                              struct error *err)
{
    enum status st = try_key(s, Q_UPDATE_SAME_TYPE, k, ret_done, err);
    return st == ST_OK && !*ret_done ? try_key(s, Q_UPDATE_KEY, k, ret_done, err) : st;
}

static enum status put_key(struct sqlite_store *s, struct key_row *k, struct error *err)
{
    bool done;
    struct sqlite_stmt *q;
    if (k->seq) {
        enum status st = update_key(s, k, &done, err);
        if (st == ST_OK && !done)
            st = error_set(err, ST_INTERNAL, "no row %" PRId64 " under the key it was read from", k->seq);
        return st;
    }
    enum status st = stmt_fixed(s, Q_INSERT_KEY, &q, err);
    if (st != ST_OK)
        return st;
    bind_key(q, k);
    st = sqlite_run(q, err);
    if (st == ST_OK)
        k->seq = sqlite_last_id(s->sql);
    return st;
}

/* ---- rows that may come again ---- */

/* Whatever the tables have under this seq and this key: in the end there is one row of the key in the state
   given, or none. What is likely is tried first. */
static enum status put_replayed_key(struct sqlite_store *s, struct key_row *k, struct error *err)
{
    bool gone = k->type == ROW_NONE, done = false;
    enum status st = ST_OK;
    if (unnumbered(k))
        return try_key(s, gone ? Q_DELETE_NAMED_KEY : Q_UPSERT_KEY, k, &done, err);
    if (gone)
        st = try_key(s, Q_DELETE_KEY_AT, k, &done, err);
    else if (!k->fresh)
        st = update_key(s, k, &done, err);
    if (st == ST_OK && !done && gone)
        return try_key(s, Q_DELETE_NAMED_KEY, k, &done, err);
    if (st == ST_OK && !done)
        st = try_key(s, Q_INSERT_KEY_AT, k, &done, err);
    if (st == ST_OK && !done)
        st = try_key(s, Q_UPDATE_NAMED_KEY, k, &done, err);
    if (st != ST_OK || done)
        return st;
    k->seq = 0; /* another key has it */
    return put_key(s, k, err);
}

static enum status put_keys(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    struct key_row **order = sqlite_store_scratch(s, c->nkeys * sizeof *order);
    for (size_t i = 0; i < c->nkeys; i++)
        order[i] = &c->keys[i];
    if (c->nkeys > 1 && !c->replay)
        qsort(order, c->nkeys, sizeof *order, by_place);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < c->nkeys; i++)
        st = c->replay ? put_replayed_key(s, order[i], err) : put_key(s, order[i], err);
    return st;
}

static enum status put_item(struct sqlite_store *s, const struct item_row *r, struct error *err)
{
    enum item_table t = r->ref.table;
    struct sqlite_stmt *q = s->put_item[t];
    enum status st = q ? ST_OK : stmt_put_item(s, t, &q, err);
    if (st != ST_OK)
        return st;
    stmt_bind_ref(q, &r->ref);
    if (item_has(t, COLUMN_VALUE))
        sqlite_bind_blob(q, 3, r->value);
    if (item_has(t, COLUMN_SCORE))
        sqlite_bind_double(q, 4, r->score);
    if (item_has(t, COLUMN_EXPIRY))
        sqlite_bind_i64(q, 5, r->expire_at);
    if (item_has(t, COLUMN_ORD))
        sqlite_bind_i64(q, 6, r->ord);
    return sqlite_run(q, err);
}

static enum status delete_item(struct sqlite_store *s, const struct item_ref *r, struct error *err)
{
    struct sqlite_stmt *q = s->del_item[r->table];
    enum status st = q ? ST_OK : stmt_del_item(s, r->table, &q, err);
    if (st != ST_OK)
        return st;
    stmt_bind_ref(q, r);
    return sqlite_run(q, err);
}

/* by_ref sorts pointers to refs; an item begins with its ref. */
_Static_assert(offsetof(struct item_row, ref) == 0, "an item begins with its ref");

static enum status put_items(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    const struct item_row **order = sqlite_store_scratch(s, c->nitems * sizeof *order);
    for (size_t i = 0; i < c->nitems; i++)
        order[i] = &c->items[i];
    if (c->nitems > 1 && !c->replay)
        qsort(order, c->nitems, sizeof *order, by_ref);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < c->nitems; i++)
        st = put_item(s, order[i], err);
    return st;
}

/* One statement, however many rows it removes. */
static enum status delete_range(struct sqlite_store *s, const struct item_range *r, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_del_range(s, r->table, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, r->id);
    if (r->order == ITEMS_BY_SCORE) {
        sqlite_bind_double(q, 2, r->min_score);
        sqlite_bind_double(q, 3, r->max_score);
        sqlite_bind_blob(q, 5, r->min_name);
        sqlite_bind_blob(q, 6, r->max_name);
    } else {
        sqlite_bind_i64(q, 2, r->min);
        sqlite_bind_i64(q, 3, r->max);
    }
    return sqlite_run(q, err);
}

static enum status delete_ranges(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < c->nranges; i++)
        st = delete_range(s, &c->ranges[i], err);
    return st;
}

/* How many of n items are at one place of a list after the other, from the first on. */
static size_t places_in_a_row(const struct item_ref *const *refs, size_t n)
{
    size_t k = 1;
    while (refs[0]->table == ITEM_LIST && k < n && refs[k]->table == ITEM_LIST &&
           refs[k]->id == refs[0]->id && refs[k]->pos == refs[0]->pos + (int64_t)k)
        k++;
    return k;
}

/* What was popped from a list are places in a row: they go as a range, which costs one search and not one for
   each. */
static enum status delete_items(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    const struct item_ref **order = sqlite_store_scratch(s, c->ngone * sizeof *order);
    for (size_t i = 0; i < c->ngone; i++)
        order[i] = &c->gone[i];
    if (c->ngone > 1 && !c->replay)
        qsort(order, c->ngone, sizeof *order, by_ref);
    enum status st = ST_OK;
    for (size_t i = 0, k; st == ST_OK && i < c->ngone; i += k) {
        const struct item_ref *r = order[i];
        k = places_in_a_row(order + i, c->ngone - i);
        struct item_range all = {.table = r->table,
                                 .id = r->id,
                                 .order = ITEMS_BY_POS,
                                 .min = r->pos,
                                 .max = r->pos + (int64_t)k - 1};
        st = k > 1 ? delete_range(s, &all, err) : delete_item(s, r, err);
    }
    return st;
}

static enum status put_trash(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_PUT_TRASH, &q, err);
    for (size_t i = 0; st == ST_OK && i < c->ntrash; i++) {
        sqlite_bind_i64(q, 1, c->trash[i].id);
        sqlite_bind_i64(q, 2, c->trash[i].type);
        st = sqlite_run(q, err);
    }
    return st;
}

/* A number is new when it is at or above what larder_meta has as the next one. */
static enum status note_number(struct sqlite_store *s, uint32_t number, struct error *err)
{
    enum status st = ST_OK;
    if (s->next_number < 0)
        st = sqlite_store_get_meta(s, "next_db_number", &s->next_number, err);
    if (st != ST_OK || number < s->next_number)
        return st;
    st = sqlite_store_set_meta(s, "next_db_number", (int64_t)number + 1, err);
    if (st == ST_OK)
        s->next_number = (int64_t)number + 1;
    return st;
}

static enum status put_dbs(struct sqlite_store *s, const struct changes *c, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_PUT_DB, &q, err);
    for (size_t i = 0; st == ST_OK && i < c->ndbs; i++) {
        const struct db_row *d = &c->dbs[i];
        st = note_number(s, d->number, err);
        if (st != ST_OK)
            break;
        sqlite_bind_i64(q, 1, d->db);
        sqlite_bind_i64(q, 2, d->number);
        sqlite_bind_i64(q, 3, d->keys);
        sqlite_bind_i64(q, 4, d->expires);
        st = sqlite_run(q, err);
    }
    return st;
}

enum status sqlite_apply(struct store *base, struct changes *c, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    enum status st = ST_OK;
    if (!sqlite_in_transaction(s->sql))
        return error_set(err, ST_INTERNAL, "apply without a transaction");
    if (c->nkeys)
        st = put_keys(s, c, err);
    if (st == ST_OK && c->nranges)
        st = delete_ranges(s, c, err);
    if (st == ST_OK && c->ngone)
        st = delete_items(s, c, err);
    if (st == ST_OK && c->nitems)
        st = put_items(s, c, err);
    if (st == ST_OK && c->ntrash)
        st = put_trash(s, c, err);
    if (st == ST_OK && c->ndbs)
        st = put_dbs(s, c, err);
    if (st == ST_OK && c->next_id)
        st = sqlite_store_set_meta(s, "next_id", c->next_id, err);
    return st;
}
