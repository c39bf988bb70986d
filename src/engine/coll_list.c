/* Lists: item i is the row at position first_pos + i. Pushing and popping touch one row at either end; in the
   middle the shorter side moves by one place. */
#include "engine/coll.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/coll_internal.h"

#define READ_AHEAD 64  /* items of a list that pops ask for, at most */
#define DROP_FEW   64  /* so many rows are removed one by one rather than as a range */
#define KEEP_FEW   256 /* so many are copied, and stay, rather than that all others are removed */

static struct item_ref ref_at(const struct coll *c, int64_t i)
{
    return (struct item_ref){.table = ITEM_LIST, .id = c->id, .pos = c->first_pos + i};
}

enum status coll_index(struct coll *c, int64_t i, struct slice *ret)
{
    assert(i >= 0 && i < c->size);
    if (c->res) {
        *ret = member_value(resident_at(c->res, (size_t)i));
        return ST_OK;
    }
    struct item_ref ref = ref_at(c, i);
    struct item_row row;
    bool found;
    enum status st = view_item(c->v, &ref, &found, &row);
    if (st == ST_OK && !found)
        st = error_set(c->v->call.err, ST_CORRUPT, "list item %lld of %lld is missing", (long long)i,
                       (long long)c->size);
    *ret = row.value;
    return st;
}

/* Item i gets a row of its own, which must not exist yet (fresh) or is replaced. */
static enum status put_row(struct coll *c, int64_t i, struct slice value, bool fresh)
{
    struct item_row row = {.ref = ref_at(c, i), .value = value};
    return fresh ? view_add_item(c->v, &row) : view_put_item(c->v, &row);
}

enum status coll_push(struct coll *c, bool front, struct slice value)
{
    enum status st = coll_prepare(c);
    if (st != ST_OK)
        return st;
    c->first_pos -= front;
    st = put_row(c, front ? 0 : c->size, value, true);
    COLL_RESIDENT(c, resident_insert(c->res, front ? 0 : c->res->size, value));
    c->size++;
    return st;
}

/* Pops of one list tend to come one after the other: each time one asks the tables, twice as many items are
   read as the last time. */
static enum status read_ahead(struct coll *c, bool front)
{
    struct memos *t = &c->v->memos;
    struct item_ref ref = ref_at(c, front ? 0 : c->size - 1);
    if (cache_item(c->v->cache, &ref, item_hash(&ref)))
        return ST_OK;
    if (t->popped.id != c->id) {
        t->popped.id = c->id;
        t->popped.ahead = 1;
        return ST_OK;
    }
    if (t->popped.ahead == 0)
        return ST_OK;
    if (t->popped.ahead < READ_AHEAD)
        t->popped.ahead *= 2;
    uint32_t n = c->size < t->popped.ahead ? (uint32_t)c->size : t->popped.ahead;
    bool small;
    enum status st = view_read_ahead(c->v, c->id, front ? ref.pos : ref.pos - n + 1, n, &small);
    if (!small)
        t->popped.ahead = 0;
    return st;
}

enum status coll_pop(struct coll *c, bool front, struct slice *ret)
{
    int64_t i = front ? 0 : c->size - 1;
    enum status st = c->res ? ST_OK : read_ahead(c, front);
    if (st == ST_OK)
        st = coll_index(c, i, ret);
    if (st != ST_OK)
        return st;
    *ret = arena_copy(&c->v->batch.arena, *ret);
    c->dirty = true;
    struct item_ref ref = ref_at(c, i);
    st = view_del_item(c->v, &ref);
    COLL_RESIDENT(c, resident_erase(c->res, (size_t)i));
    c->first_pos += front;
    c->size--;
    return st;
}

enum status coll_set(struct coll *c, int64_t i, struct slice value)
{
    assert(i >= 0 && i < c->size);
    c->dirty = true;
    enum status st = put_row(c, i, value, false);
    COLL_RESIDENT(c, resident_set(c->res, (size_t)i, value));
    return st;
}

/* Copies item `from` over the row of item `to`, both counted from the same first position. */
static enum status copy_row(struct coll *c, int64_t from, int64_t to)
{
    struct slice value;
    enum status st = coll_index(c, from, &value);
    if (st != ST_OK)
        return st;
    struct item_row row = {.ref = ref_at(c, to), .value = arena_copy(&c->v->batch.arena, value)};
    return view_put_item(c->v, &row);
}

enum status coll_insert(struct coll *c, int64_t i, struct slice value)
{
    assert(i >= 0 && i <= c->size);
    if (i == 0 || i == c->size)
        return coll_push(c, i == 0, value);
    enum status st = ST_OK;
    c->dirty = true;
    if (i < c->size / 2) {
        for (int64_t k = 0; st == ST_OK && k < i; k++)
            st = copy_row(c, k, k - 1);
        c->first_pos--;
    } else {
        for (int64_t k = c->size - 1; st == ST_OK && k >= i; k--)
            st = copy_row(c, k, k + 1);
    }
    if (st != ST_OK)
        return st;
    c->size++;
    st = put_row(c, i, value, false);
    COLL_RESIDENT(c, resident_insert(c->res, (size_t)i, value));
    return st;
}

/* Removes the rows of items [from, to): many at once, but for those of a list in memory, which are not
   many. */
static enum status drop_rows(struct coll *c, int64_t from, int64_t to)
{
    enum status st = ST_OK;
    if (to - from > DROP_FEW && !c->res) {
        struct item_range gone = {.table = ITEM_LIST,
                                  .id = c->id,
                                  .order = ITEMS_BY_POS,
                                  .min = c->first_pos + from,
                                  .max = c->first_pos + to - 1};
        return view_del_range(c->v, &gone);
    }
    for (int64_t i = from; st == ST_OK && i < to; i++) {
        struct item_ref ref = ref_at(c, i);
        st = view_del_item(c->v, &ref);
    }
    return st;
}

enum status coll_erase(struct coll *c, int64_t i, int64_t n)
{
    assert(i >= 0 && n >= 0 && i + n <= c->size);
    enum status st = ST_OK;
    bool left = i < c->size - i - n; /* the side that moves */
    c->dirty = true;
    if (left) {
        for (int64_t k = i - 1; st == ST_OK && k >= 0; k--)
            st = copy_row(c, k, k + n);
        if (st == ST_OK)
            st = drop_rows(c, 0, n);
    } else {
        for (int64_t k = i + n; st == ST_OK && k < c->size; k++)
            st = copy_row(c, k, k - n);
        if (st == ST_OK)
            st = drop_rows(c, c->size - n, c->size);
    }
    if (st != ST_OK)
        return st;
    for (int64_t k = 0; k < n; k++)
        COLL_RESIDENT(c, resident_erase(c->res, (size_t)i));
    c->first_pos += left ? n : 0;
    c->size -= n;
    return ST_OK;
}

/* What stays moves to the front of the list, each item once. */
static enum status close_gaps(struct coll *c, const int64_t *places, size_t n)
{
    enum status st = ST_OK;
    int64_t to = places[n - 1];
    size_t next = n; /* places[next - 1] is the next one that goes */
    for (int64_t from = to; st == ST_OK && from < c->size; from++) {
        if (next && places[next - 1] == from)
            next--;
        else
            st = copy_row(c, from, to++);
    }
    return st == ST_OK ? drop_rows(c, to, c->size) : st;
}

enum status coll_erase_places(struct coll *c, const int64_t *places, size_t n)
{
    enum status st = ST_OK;
    if (n == 0)
        return ST_OK;
    if (n == 1)
        return coll_erase(c, places[0], 1);
    st = close_gaps(c, places, n);
    if (st != ST_OK)
        return st;
    c->dirty = true;
    for (size_t i = 0; i < n; i++)
        COLL_RESIDENT(c, resident_erase(c->res, (size_t)places[i]));
    c->size -= (int64_t)n;
    return ST_OK;
}

enum status coll_range(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn, void *arg)
{
    assert(from >= 0 && to < c->size);
    if (c->res) {
        enum status st = ST_OK;
        for (int64_t n = 0; st == ST_OK && n <= to - from; n++) {
            int64_t i = reverse ? to - n : from + n;
            struct coll_item item = {.value = member_value(resident_at(c->res, (size_t)i))};
            st = fn(arg, &item);
        }
        return status_of_walk(st);
    }
    struct item_scan q = {
        .table = ITEM_LIST,
        .id = c->id,
        .order = ITEMS_BY_POS,
        .reverse = reverse,
        .has_min = true,
        .has_max = true,
        .min = c->first_pos + from,
        .max = c->first_pos + to,
        .limit = UINT32_MAX,
    };
    return to < from ? ST_OK : coll_walk_all(c, &q, to - from + 1, fn, arg);
}

struct copying {
    struct coll *from;
    struct slice *values;
    size_t n;
};

static enum status copy_value(void *arg, const struct coll_item *item)
{
    struct copying *k = arg;
    k->values[k->n++] = arena_copy(&k->from->v->batch.arena, item->value);
    return ST_OK;
}

/* What stays moves to a new id; the rows under the old one go to the trash when the key row is saved. */
static enum status keep_copy(struct coll *c, int64_t from, int64_t to)
{
    struct copying k = {
        .from = c, .values = arena_alloc(&c->v->batch.arena, (size_t)(to - from + 1) * sizeof *k.values)};
    enum status st = coll_range(c, from, to, false, copy_value, &k);
    if (st != ST_OK)
        return st;
    c->id = 0;
    c->size = c->first_pos = 0;
    c->res = NULL;
    for (size_t i = 0; st == ST_OK && i < k.n; i++)
        st = coll_push(c, false, k.values[i]);
    return st;
}

enum status coll_trim(struct coll *c, int64_t from, int64_t to)
{
    assert(from >= 0 && to < c->size);
    if (from > to) {
        c->dirty = true;
        c->size = 0;
        return ST_OK;
    }
    int64_t kept = to - from + 1;
    int64_t gone = c->size - kept;
    if (gone > DROP_FEW && kept < gone && (kept <= KEEP_FEW || c->res))
        return keep_copy(c, from, to);
    enum status st = coll_erase(c, to + 1, c->size - to - 1);
    return st == ST_OK ? coll_erase(c, 0, from) : st;
}
