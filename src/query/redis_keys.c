#include "query/redis_keys.h"

#include <string.h>

#include "engine/coll.h"
#include "engine/keeper.h"
#include "store/item_tables.h"

#define PAGE_BYTES (1 << 20) /* of items in memory at a time */

void redis_walk_init(struct redis_walk *w, struct query_engine *e, const struct redis_table *t)
{
    *w = (struct redis_walk){.e = e, .table = t};
}

void redis_walk_release(struct redis_walk *w)
{
    buf_release(&w->last_name);
    buf_release(&w->after);
    arena_release(&w->given);
    arena_release(&w->key_arena);
    arena_release(&w->item_arena);
}

void redis_walk_begin(struct redis_walk *w)
{
    arena_reset(&w->given);
    w->db = 0;
    w->ndbs = view_databases(w->e->q->view);
    w->key = w->name = (struct slice){0};
    w->range = (struct key_range){0};
    w->ended = w->begun = w->more_keys = w->more_items = false;
    w->nkeys = w->at = w->nitems = w->item = 0;
    w->row = 0;
}

/* ---- keys ---- */

static enum status keep_key(void *arg, struct slice key, const struct key_row *row)
{
    struct redis_walk *w = arg;
    if (w->table->type != ROW_NONE && w->table->type != row->type)
        return ST_OK;
    w->keys[w->nkeys++] = (struct redis_key){.key = arena_copy(&w->key_arena, key),
                                             .type = row->type,
                                             .id = row->id,
                                             .size = row->size,
                                             .first = row->first,
                                             .expire_at = row->expire_at,
                                             .version = row->version};
    return ST_OK;
}

/* The next page of keys of the running database; there may be none of the table's type among them. */
static enum status read_keys(struct redis_walk *w)
{
    struct view *v = w->e->q->view;
    const struct row *r;
    w->nkeys = w->at = 0;
    arena_reset(&w->key_arena);
    if (!w->key.p) {
        struct slice last = w->more_keys ? buf_slice(&w->after) : (struct slice){0};
        uint32_t rows = w->begun ? WALK_KEYS : 16;
        enum status st = view_one_state(v); /* of all pages, and of what is read of their keys */
        if (st == ST_OK)
            st = view_page_keys(v, w->db, &w->range, rows, &w->key_arena, &last, keep_key, w);
        if (st != ST_OK)
            return st;
        w->more_keys = last.p != NULL;
        w->after.len = 0;
        if (last.p)
            buf_add_slice(&w->after, last); /* it outlives the page */
        (void)query_count_rows(w->e, w->nkeys ? w->nkeys : 1);
        return st;
    }
    enum status st = view_get(v, w->db, w->key, &r);
    w->more_keys = false;
    (void)query_count_rows(w->e, 1);
    if (st != ST_OK || !r)
        return st;
    struct key_row row = row_to_key(r);
    return keep_key(w, w->key, &row);
}

/* ---- items ---- */

static int64_t sooner(int64_t x, int64_t y)
{
    return x == EXPIRE_NEVER || (y != EXPIRE_NEVER && y < x) ? y : x;
}

static void keep_item(struct redis_walk *w, const struct redis_item *item)
{
    struct redis_item *to = &w->items[w->nitems++];
    *to = *item;
    to->name = arena_copy(&w->item_arena, item->name);
    to->value = arena_copy(&w->item_arena, item->value);
    to->expire_at = sooner(item->expire_at, w->keys[w->at].expire_at);
    w->bytes += item->name.n + item->value.n;
}

static enum status scanned(void *arg, const struct item_row *row)
{
    struct redis_walk *w = arg;
    struct redis_item item = {.name = row->ref.name,
                              .value = row->value,
                              .score = row->score,
                              .position = row->ref.pos - w->keys[w->at].first,
                              .expire_at = row->expire_at};
    if (row->expire_at == EXPIRE_NEVER || row->expire_at > view_now(w->e->q->view))
        keep_item(w, &item);
    if (++w->seen < WALK_ITEMS && w->bytes < PAGE_BYTES)
        return ST_OK;
    w->more_items = true;
    w->last_score = row->score;
    w->last_pos = row->ref.pos;
    w->last_name.len = 0;
    buf_add_slice(&w->last_name, row->ref.name);
    return ST_STOP;
}

static enum item_order order_of(enum item_table t)
{
    return t == ITEM_LIST ? ITEMS_BY_POS : t == ITEM_ZSET ? ITEMS_BY_SCORE : ITEMS_BY_NAME;
}

/* The page of items behind the last one, of the key that the walk is at. */
static enum status read_items(struct redis_walk *w)
{
    enum item_table table = item_table_of(w->table->type);
    struct item_scan q = {.table = table,
                          .id = w->keys[w->at].id,
                          .order = order_of(table),
                          .has_min = w->more_items,
                          .min = w->last_pos,
                          .min_name = buf_slice(&w->last_name),
                          .min_score = w->last_score,
                          .skip = w->more_items ? 1 : 0,
                          .limit = WALK_ITEMS};
    w->more_items = false;
    w->bytes = w->seen = w->nitems = w->item = 0;
    arena_reset(&w->item_arena);
    enum status st = view_scan_items(w->e->q->view, &q, scanned, w);
    (void)query_count_rows(w->e, w->seen ? w->seen : 1);
    return st;
}

/* The one item of a name. */
static enum status read_item(struct redis_walk *w)
{
    struct coll *c;
    struct coll_item found;
    bool wrong, there = false;
    w->nitems = w->item = 0;
    w->more_items = false;
    arena_reset(&w->item_arena);
    enum status st = coll_open(w->e->q->view, w->db, w->keys[w->at].key, w->table->type, &c, &wrong);
    if (st == ST_OK && c)
        st = coll_find(c, w->name, &there, &found);
    (void)query_count_rows(w->e, 1);
    if (st == ST_OK && there)
        keep_item(w, &(struct redis_item){.name = found.name,
                                          .value = found.value,
                                          .score = found.score,
                                          .expire_at = found.expire_at});
    return st;
}

/* ---- all of it ---- */

/* To the next key that there is, of this database or a later one. */
static enum status next_key(struct redis_walk *w)
{
    enum status st = ST_OK;
    w->at++;
    while (st == ST_OK && w->at >= w->nkeys && w->e->stop == STOP_NONE) {
        if (w->begun && !w->more_keys) {
            w->begun = false;
            if (++w->db >= w->ndbs) {
                w->ended = true;
                return ST_OK;
            }
        }
        st = read_keys(w);
        w->begun = true;
    }
    return st;
}

int redis_walk_next(struct redis_walk *w)
{
    struct memory_budget *was = query_leave(w->e);
    enum status st = ST_OK;
    w->row++;
    w->item++;
    if (!w->table->items) {
        st = next_key(w);
        return query_return(w->e, was, st);
    }
    while (st == ST_OK && !w->ended && w->item >= w->nitems && w->e->stop == STOP_NONE) {
        if (w->more_items) {
            st = read_items(w);
            continue;
        }
        st = next_key(w);
        if (st == ST_OK && !w->ended && w->e->stop == STOP_NONE)
            st = w->name.p ? read_item(w) : read_items(w);
    }
    return query_return(w->e, was, st);
}

int redis_tell_size(struct redis_walk *w, sqlite3_context *ctx)
{
    const struct redis_key *k = &w->keys[w->at];
    struct view *v = w->e->q->view;
    const struct row *r;
    struct coll *c = NULL;
    bool wrong;
    int64_t size = k->size;
    enum status st = ST_OK;
    struct memory_budget *was = query_leave(w->e);
    if (k->type == ROW_STRING && k->id == 0) {
        st = view_get(v, w->db, k->key, &r);
        size = st == ST_OK && r ? row_string_size(r) : 0;
    } else if (k->type == ROW_HASH && k->first != 0 && k->first <= view_now(v)) {
        st = coll_open(v, w->db, k->key, ROW_HASH, &c, &wrong);
        size = st == ST_OK && c ? coll_size(c) : 0;
    }
    sqlite3_result_int64(ctx, size);
    return query_return(w->e, was, st);
}

int redis_tell_string(struct redis_walk *w, sqlite3_context *ctx)
{
    struct view *v = w->e->q->view;
    const struct row *r;
    struct arena arena = {0};
    struct value value = {.kind = VALUE_TEXT};
    struct memory_budget *was = query_leave(w->e);
    enum status st = view_get(v, w->db, w->keys[w->at].key, &r);
    bool fits = false;
    if (st == ST_OK && r) {
        fits = row_string_size(r) <= sqlite3_limit(w->e->db, SQLITE_LIMIT_LENGTH, -1);
        if (fits)
            st = view_string(v, r, &arena, &value.s);
    }
    int rc = query_return(w->e, was, st);
    if (rc == SQLITE_OK && r && fits)
        value_to_sqlite(ctx, &value);
    else if (rc == SQLITE_OK && r)
        sqlite3_result_error_toobig(ctx);
    arena_release(&arena);
    return rc;
}
