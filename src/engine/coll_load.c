/* Small collections come into memory as wholes, when a command first asks for one.

   Over a shared store nothing stays in memory from one transaction to the next, and each read is a round
   trip: with the collection that is asked for, others come that later commands of the batch will ask for, as
   far as they have been declared (struct mate). Rows it touches: none is written. What the batch has changed
   is brought into the running transaction first, so that what is read has it. The reads are under the locks,
   or in the one state, that reading each by itself would be, so that two clients see no difference; a key
   that has expired meanwhile or was deleted is not asked for, and one that turns out to be damaged is left
   for the command that asks for it, which says so. How many are read at once follows how large they were: a
   megabyte of them is enough. */
#include <stdlib.h>

#include "engine/coll_internal.h"
#include "store/item_tables.h"
#include "store/shared.h"

#define AT_ONCE_FIRST 8
#define AT_ONCE_MOST  1024
#define AT_ONCE_BYTES ((size_t)1 << 20)
#define AT_ONCE_ITEMS 16384

/* One that is read. */
struct whole {
    int64_t id, size, numbers;
    enum item_table table;
    struct memo *memo;
    int64_t next; /* the lowest number that the next item can have */
    bool damaged;
};

static enum status take_item(struct whole *w, const struct item_row *row, struct error *err)
{
    if (item_named(w->table) && (row->ord < w->next || row->ord >= w->numbers))
        return error_set(err, ST_CORRUPT, "an item has the number %lld, others have up to %lld",
                         (long long)row->ord, (long long)w->numbers);
    w->next = row->ord + 1;
    resident_append(&w->memo->members, row);
    return memo_bytes(w->memo) > COLL_RESIDENT_BYTES ? ST_STOP : ST_OK;
}

/* All of it was read: memory knows it from now on, or that it is too large. */
static enum status keep(struct view *v, struct whole *w, struct error *err)
{
    if (memo_bytes(w->memo) > COLL_RESIDENT_BYTES) {
        memo_free(w->memo);
        w->memo = memo_new(w->id);
        w->memo->oversize = true;
        memos_add(&v->memos, w->memo);
        return ST_OK;
    }
    if ((int64_t)w->memo->members.size != w->size) {
        size_t found = w->memo->members.size;
        memo_free(w->memo);
        return error_set(err, ST_CORRUPT, "a key says %lld items but %zu were found", (long long)w->size,
                         found);
    }
    memos_add(&v->memos, w->memo);
    if (view_has_changes(v)) /* it may hold what the batch wrote, and is gone when the batch is */
        memos_touch(&v->memos, w->memo);
    return ST_OK;
}

/* ---- one ---- */

struct load {
    struct whole w;
    struct error *err;
};

static enum status load_item(void *arg, const struct item_row *row)
{
    struct load *l = arg;
    return take_item(&l->w, row, l->err);
}

static enum status load_one(struct coll *c)
{
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = c->table == ITEM_LIST ? ITEMS_BY_POS : ITEMS_BY_ORD,
        .limit = UINT32_MAX,
    };
    struct load l = {{.id = c->id, .size = c->size, .numbers = c->numbers, .table = c->table},
                     c->v->call.err};
    l.w.memo = memo_new_members(c->id, c->table);
    enum status st = view_scan_items(c->v, &q, load_item, &l);
    if (st != ST_OK) {
        memo_free(l.w.memo);
        return st;
    }
    return keep(c->v, &l.w, c->v->call.err);
}

/* ---- with others ---- */

struct wholes {
    struct whole *all; /* by id */
    size_t n, at;
    size_t bytes; /* of what was read */
};

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct whole *)a)->id, y = ((const struct whole *)b)->id;
    return (x > y) - (x < y);
}

/* A mate that will be read when it is asked for. */
static bool is_wanted(const struct coll *c, const struct row *r, struct row_ext *ret)
{
    if (!r || r->type != c->type || !row_live(r, view_now(c->v)))
        return false;
    *ret = row_items(r);
    return ret->size > 0 && ret->size <= COLL_RESIDENT_LOAD && ret->id != c->id &&
           !memos_find(&c->v->memos, ret->id);
}

/* Those that come together, each once. */
static void choose(struct coll *c, struct wholes *ret)
{
    const struct view_mates *m = &c->v->mates;
    size_t most = m->whole_at_once, n = 0, k = 0;
    int64_t items = c->size;
    struct whole *all = arena_alloc(&c->v->call.scratch, (most + 1) * sizeof *all);
    if (c->id)
        all[n++] = (struct whole){.id = c->id, .size = c->size, .numbers = c->numbers, .table = c->table};
    for (size_t i = 0; i < m->n && n < most && items < AT_ONCE_ITEMS; i++) {
        struct row_ext e;
        if (!is_wanted(c, view_mate_row(c->v, &m->all[i]), &e))
            continue;
        all[n++] = (struct whole){
            .id = e.id, .size = e.size, .numbers = e.numbers ? e.numbers : e.size, .table = c->table};
        items += e.size;
    }
    qsort(all, n, sizeof *all, by_id);
    for (size_t i = 0; i < n; i++)
        if (k == 0 || all[k - 1].id != all[i].id)
            all[k++] = all[i];
    *ret = (struct wholes){.all = all, .n = k};
}

static enum status take_of_many(void *arg, const struct item_row *row)
{
    struct wholes *ws = arg;
    struct error ignored;
    while (ws->all[ws->at].id != row->ref.id)
        ws->at++;
    struct whole *w = &ws->all[ws->at];
    ws->bytes += row->ref.name.n + row->value.n;
    if (!w->damaged && memo_bytes(w->memo) <= COLL_RESIDENT_BYTES)
        w->damaged = take_item(w, row, &ignored) == ST_CORRUPT;
    return ST_OK;
}

static void adapt(struct view_mates *m, const struct wholes *ws)
{
    if (ws->bytes > AT_ONCE_BYTES)
        m->whole_at_once = ws->n > 4 ? (uint32_t)ws->n / 4 : 1;
    else if (ws->n >= m->whole_at_once && m->whole_at_once < AT_ONCE_MOST)
        m->whole_at_once *= 2;
}

/* What cannot be kept is as if it had not been read. */
static enum status load_many(struct coll *c, struct wholes *ws)
{
    struct view *v = c->v;
    int64_t *ids = arena_alloc(&v->call.scratch, ws->n * sizeof *ids);
    struct error ignored;
    enum status st = view_flush(v);
    for (size_t i = 0; i < ws->n; i++) {
        ids[i] = ws->all[i].id;
        ws->all[i].memo = memo_new_members(ids[i], c->table);
    }
    if (st == ST_OK)
        st = store_read_whole(v->store, c->table, ids, ws->n, take_of_many, ws, v->call.err);
    for (size_t i = 0; i < ws->n; i++) {
        struct whole *w = &ws->all[i];
        if (st != ST_OK || w->damaged)
            memo_free(w->memo);
        else
            (void)(keep(v, w, &ignored) == ST_OK);
    }
    if (st == ST_OK)
        adapt(&v->mates, ws);
    return st;
}

/* Reads it, unless it is yet to be made, and others with it. */
static enum status load_with_mates(struct coll *c)
{
    struct view_mates *m = &c->v->mates;
    struct wholes ws;
    if (m->whole_at_once == 0)
        m->whole_at_once = AT_ONCE_FIRST;
    if (m->n == 0)
        return ST_OK;
    choose(c, &ws);
    return ws.n > 0 ? load_many(c, &ws) : ST_OK;
}

enum status coll_load_mates(struct coll *c)
{
    return view_shared(c->v) && !view_has_changes(c->v) ? load_with_mates(c) : ST_OK;
}

/* ---- attaching ---- */

void coll_use_members(struct coll *c, struct memo *m)
{
    c->memo = m;
    c->res = &m->members;
}

/* Reads a small collection into memory. */
static enum status load(struct coll *c)
{
    enum status st = view_shared(c->v) ? load_with_mates(c) : ST_OK;
    struct memo *m = st == ST_OK ? memos_find(&c->v->memos, c->id) : NULL;
    if (st == ST_OK && !m && (st = load_one(c)) == ST_OK)
        m = memos_find(&c->v->memos, c->id);
    if (m && m->has_members)
        coll_use_members(c, m);
    return st;
}

enum status coll_attach(struct coll *c)
{
    struct memo *m = memos_find(&c->v->memos, c->id);
    if (m && !m->has_members && !m->oversize && c->size <= COLL_RESIDENT_LOAD) {
        memos_drop(&c->v->memos, m); /* the collection has become small enough for memory */
        m = NULL;
    }
    if (!m)
        return c->size <= COLL_RESIDENT_LOAD ? load(c) : ST_OK;
    if (m->has_members)
        coll_use_members(c, m);
    if (m->touched)
        view_saw(c->v, c->v->batch.ticket);
    return ST_OK;
}
