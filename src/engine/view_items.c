/* Items of collections and chunks: one, several, ranges. A single one is looked for in the cache, which has
   what this batch changed and what was asked for before, then in the tables; for a range what the batch
   changed is brought into the running transaction first.

   A change makes a dirty item, which takes the place of the clean or dirty one that is in the cache, if any.
   As long as it has not been brought into the running transaction, an item that changes again keeps its entry
   in the list of changes; after that it gets another one. So what has to be brought there is always the end
   of that list. */
#include "engine/view.h"

#include <assert.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/view_internal.h"
#include "store/item_tables.h"

#define ASKED_AT_ONCE 128
#define TABLE_TICKETS (sizeof((struct view *)0)->table_tickets / sizeof(int64_t))
#define KEEP_CHANGES  4096 /* room for so many outlives a batch */

/* ---- reading ---- */

/* Whether the cache may have a clean item of this name. */
static bool cacheable(const struct item_ref *ref)
{
    return item_named(ref->table) && ref->name.n <= CACHE_ITEM_NAME;
}

const struct item *view_changed_item(const struct view *v, const struct item_ref *ref)
{
    if (v->batch.items.n == 0)
        return NULL;
    const struct item *i = cache_item(v->cache, ref, item_hash(ref));
    return i && i->dirty ? i : NULL;
}

/* Rows of tables and their entries come and go without a change of the key's row, so that its ticket does not
   tell when they came. The last one that wrote to a table does: it is kept by the table's id, in an array of
   fixed size, and tables that share a place wait for one another's. */
static int64_t *table_ticket(struct view *v, enum item_table table, int64_t id)
{
    bool of_table = table == ITEM_ROW || table == ITEM_ENTRY;
    return of_table ? &v->table_tickets[(uint64_t)id % TABLE_TICKETS] : NULL;
}

static void saw_table(struct view *v, enum item_table table, int64_t id)
{
    const int64_t *ticket = table_ticket(v, table, id);
    if (ticket)
        view_saw(v, *ticket);
}

/* The item in memory or NULL; what a reply tells of this batch's own changes waits for its commit. */
static const struct item *look_up(struct view *v, const struct item_ref *ref, uint32_t hash)
{
    struct item *i = cache_item(v->cache, ref, hash);
    saw_table(v, ref->table, ref->id);
    if (i && i->dirty)
        view_saw(v, v->batch.ticket);
    else if (cacheable(ref))
        cache_count_item(v->cache, i);
    return i;
}

/* Remembers what the tables say, which was asked for in vain in memory; row is NULL: there is no such item.
   After a command that failed midway the transaction's tables have what will not be committed. */
static void remember(struct view *v, const struct item_ref *ref, const struct item_row *row, uint32_t hash)
{
    if (view_shared(v) || v->batch.poison != ST_OK || !cacheable(ref) ||
        (row && row->value.n > CACHE_ITEM_VALUE))
        return;
    cache_add_item(v->cache, item_new(ref, row, hash));
}

struct item_read {
    struct view *v;
    struct item_row *row;
    bool found;
};

static enum status take_item(void *arg, const struct item_row *row)
{
    struct item_read *r = arg;
    *r->row = *row;
    r->row->ref.name = arena_copy(&r->v->call.scratch, row->ref.name);
    r->row->value = arena_copy(&r->v->call.scratch, row->value);
    r->found = true;
    return ST_OK;
}

enum status view_item(struct view *v, const struct item_ref *ref, bool *ret_found, struct item_row *ret)
{
    uint32_t hash = item_hash(ref);
    const struct item *i = look_up(v, ref, hash);
    if (i) {
        *ret_found = !i->absent;
        *ret = item_to_row(i);
        return ST_OK;
    }
    struct item_read read = {v, ret, false};
    enum status st = store_get_items(v->store, ref, 1, take_item, &read, v->call.err);
    *ret_found = read.found;
    if (st == ST_OK)
        remember(v, ref, read.found ? ret : NULL, hash);
    return st;
}

struct items_read {
    struct view *v;
    const struct item_ref *asked; /* the next one that may be answered */
    const size_t *places;         /* of those asked for, in found and rows */
    bool *found;
    struct item_row *rows;
};

static bool same_ref(const struct item_ref *a, const struct item_ref *b)
{
    return a->table == b->table && a->id == b->id && slice_eq(a->name, b->name);
}

/* Rows come in the order asked, without those that are missing. */
static enum status take_one_of(void *arg, const struct item_row *row)
{
    struct items_read *r = arg;
    while (!same_ref(r->asked, &row->ref)) {
        r->asked++;
        r->places++;
    }
    struct item_read one = {r->v, &r->rows[*r->places], false};
    enum status st = take_item(&one, row);
    r->found[*r->places] = one.found;
    r->asked++;
    r->places++;
    return st;
}

enum status view_get_items(struct view *v, const struct item_ref *refs, size_t n, bool *ret_found,
                           struct item_row *ret)
{
    struct item_ref *asked = arena_alloc(&v->call.scratch, (n + 1) * sizeof *asked);
    size_t *places = arena_alloc(&v->call.scratch, (n + 1) * sizeof *places);
    size_t nasked = 0;
    for (size_t i = 0; i < n; i++) {
        const struct item *item = look_up(v, &refs[i], item_hash(&refs[i]));
        ret_found[i] = item && !item->absent;
        if (item) {
            ret[i] = item_to_row(item);
        } else {
            asked[nasked] = refs[i];
            places[nasked++] = i;
        }
    }
    struct items_read r = {v, asked, places, ret_found, ret};
    enum status st = nasked ? store_get_items(v->store, asked, nasked, take_one_of, &r, v->call.err) : ST_OK;
    for (size_t i = 0; st == ST_OK && i < nasked; i++) {
        uint32_t hash = item_hash(&asked[i]);
        if (!cache_item(v->cache, &asked[i], hash))
            remember(v, &asked[i], ret_found[places[i]] ? &ret[places[i]] : NULL, hash);
    }
    return st;
}

struct presence {
    const struct item_ref *asked; /* the next one that may be answered */
    const size_t *places;         /* of those asked for, in ret */
    bool *ret;
};

/* Rows come in the order asked, without those that are missing. */
static enum status note_presence(void *arg, const struct item_row *row)
{
    struct presence *p = arg;
    while (!slice_eq(p->asked->name, row->ref.name)) {
        p->asked++;
        p->places++;
    }
    p->ret[*p->places] = true;
    p->asked++;
    p->places++;
    return ST_OK;
}

enum status view_has_items(struct view *v, enum item_table table, int64_t id, const struct slice *names,
                           size_t n, bool *ret)
{
    enum status st = ST_OK;
    struct item_ref refs[ASKED_AT_ONCE];
    size_t places[ASKED_AT_ONCE];
    for (size_t i = 0; st == ST_OK && i < n;) {
        size_t nrefs = 0;
        for (; i < n && nrefs < ASKED_AT_ONCE; i++) {
            refs[nrefs] = (struct item_ref){.table = table, .id = id, .name = names[i]};
            places[nrefs] = i;
            const struct item *item = look_up(v, &refs[nrefs], item_hash(&refs[nrefs]));
            ret[i] = item && !item->absent;
            nrefs += !item;
        }
        struct presence p = {refs, places, ret};
        if (nrefs)
            st = store_get_items(v->store, refs, nrefs, note_presence, &p, v->call.err);
    }
    return st;
}

enum status view_scan_items(struct view *v, const struct item_scan *q, store_item_fn *fn, void *arg)
{
    enum status st = view_flush(v);
    saw_table(v, q->table, q->id);
    return st == ST_OK ? store_scan_items(v->store, q, fn, arg, v->call.err) : st;
}

enum status view_count_items(struct view *v, const struct item_scan *q, int64_t *ret)
{
    enum status st = view_flush(v);
    saw_table(v, q->table, q->id);
    return st == ST_OK ? store_count_items(v->store, q, ret, v->call.err) : st;
}

/* ---- writing ---- */

/* What an item adds to the size of what has to be brought into the transaction. */
static size_t weight(const struct item *i)
{
    return i->absent && i->fresh ? 0 : sizeof *i + i->nname + i->nvalue;
}

static bool pending(const struct item_changes *t, const struct item *i)
{
    return i->dirty && i->change >= t->flushed;
}

/* Makes what row says of an item, or its end (row is NULL); fresh: no such item exists. */
static void change(struct view *v, const struct item_ref *ref, const struct item_row *row, bool fresh)
{
    struct item_changes *t = &v->batch.items;
    uint32_t hash = item_hash(ref);
    struct item *old = cache_item(v->cache, ref, hash);
    struct item *now = arena_alloc(&v->batch.arena, sizeof *now);
    item_set(now, ref, row, hash);
    now->dirty = 1;
    now->fresh = fresh && !(old && old->dirty);
    if (old) {
        now->heat = old->heat;
        now->cached = !old->dirty || old->cached;
    }
    if (old && pending(t, old)) {
        now->fresh = old->fresh;
        now->change = old->change;
        t->all[now->change].now = now;
        t->bytes -= weight(old);
    } else {
        if (old && old->dirty)
            old->replaced = 1;
        now->change = (uint32_t)t->n;
        VEC_PUSH(t->all, t->n, t->cap) = (struct item_change){.was = old, .now = now};
    }
    t->bytes += weight(now);
    if (old)
        cache_replace_item(v->cache, old, now);
    else
        cache_add_item(v->cache, now);
    VEC_PUSH(t->undo, t->nundo, t->undo_cap) = (struct item_change){.was = old, .now = now};
    t->any = v->call.wrote = true;
    int64_t *ticket = table_ticket(v, ref->table, ref->id);
    if (ticket)
        *ticket = v->batch.ticket;
    view_saw(v, v->batch.ticket);
}

/* Refused here rather than at the commit, where it would fail the whole batch. */
static enum status put_item(struct view *v, const struct item_row *row, bool fresh)
{
    size_t n = row->ref.name.n + row->value.n;
    if (n > STORE_ITEM_BYTES)
        return error_set(v->call.err, ST_INVALID, "an item of %zu bytes is larger than a row can be", n);
    change(v, &row->ref, row, fresh);
    return ST_OK;
}

enum status view_put_item(struct view *v, const struct item_row *row)
{
    return put_item(v, row, false);
}

enum status view_add_item(struct view *v, const struct item_row *row)
{
    return put_item(v, row, true);
}

enum status view_del_item(struct view *v, const struct item_ref *ref)
{
    change(v, ref, NULL, false);
    return ST_OK;
}

/* ---- the end of a call ---- */

/* Puts back what was in the place of a dirty item. */
static void put_back(struct view *v, const struct item_change *c)
{
    if (c->was)
        cache_replace_item(v->cache, c->now, c->was);
    else
        cache_remove_item(v->cache, c->now);
}

void view_accept_items(struct view *v)
{
    v->batch.items.nundo = 0;
}

/* A change that the running transaction has was undone, so that nothing of the batch will be committed. Until
   then commands may read there, and should find what the view says: changes from this one on are brought
   there once more. */
static void flush_again(struct item_changes *t, size_t from)
{
    if (from >= t->flushed)
        return;
    t->flushed = from;
    for (size_t i = from; i < t->n; i++)
        t->all[i].now->fresh = 0;
}

static void undo_item(struct view *v, const struct item_change *u)
{
    struct item_changes *t = &v->batch.items;
    struct item_change *c = &t->all[u->now->change];
    bool flushed = !pending(t, u->now);
    if (!flushed)
        t->bytes -= weight(u->now);
    put_back(v, u);
    if (c->was != u->was) {
        c->now = u->was;
        if (!flushed)
            t->bytes += weight(u->was);
    } else {
        assert(u->now->change == t->n - 1);
        t->n--;
        if (t->flushed > t->n)
            t->flushed = t->n;
        if (u->was && u->was->dirty)
            u->was->replaced = 0;
    }
    if (flushed && u->was && u->was->dirty)
        flush_again(t, u->was->change);
}

void view_undo_items(struct view *v, size_t to)
{
    while (v->batch.items.nundo > to)
        undo_item(v, &v->batch.items.undo[--v->batch.items.nundo]);
}

void view_items_unflushed(struct view *v, size_t from)
{
    struct item_changes *t = &v->batch.items;
    for (size_t i = from; i < t->flushed; i++)
        t->bytes += weight(t->all[i].now);
    t->flushed = from;
}

/* ---- the end of a batch ---- */

static void clear(struct item_changes *t)
{
    t->n = t->nundo = t->flushed = t->bytes = 0;
    t->any = false;
    if (t->cap > KEEP_CHANGES || t->undo_cap > KEEP_CHANGES)
        view_release_items(t);
}

/* What is in the cache after the commit in the place of a dirty item: a clean one, if there was one
   before. */
static void settle(struct view *v, struct item *i)
{
    if (!i->cached || i->nvalue > CACHE_ITEM_VALUE) {
        cache_remove_item(v->cache, i);
        return;
    }
    struct item_row row = item_to_row(i);
    struct item *clean = item_new(&row.ref, i->absent ? NULL : &row, i->link.hash);
    clean->heat = i->heat;
    cache_replace_item(v->cache, i, clean);
}

void view_items_committed(struct view *v)
{
    struct item_changes *t = &v->batch.items;
    for (size_t i = 0; i < t->n; i++) {
        struct item_change *c = &t->all[i];
        if (!c->now->replaced)
            settle(v, c->now);
        if (c->was && !c->was->dirty)
            item_free(c->was);
    }
    clear(t);
}

void view_items_rolled_back(struct view *v)
{
    struct item_changes *t = &v->batch.items;
    while (t->n)
        put_back(v, &t->all[--t->n]);
    clear(t);
}

void view_release_items(struct item_changes *t)
{
    mem_free(t->all);
    mem_free(t->undo);
    *t = (struct item_changes){0};
}

/* ---- into the tables ---- */

void view_gather_items(struct view *v, struct changes *out)
{
    const struct item_changes *t = &v->batch.items;
    size_t n = t->n - t->flushed + 1;
    struct item_row *rows = arena_alloc(&v->call.scratch, n * sizeof *rows);
    struct item_ref *gone = arena_alloc(&v->call.scratch, n * sizeof *gone);
    for (size_t i = t->flushed; i < t->n; i++) {
        const struct item *now = t->all[i].now;
        if (now->replaced)
            continue;
        if (!now->absent)
            rows[out->nitems++] = item_to_row(now);
        else if (!now->fresh)
            gone[out->ngone++] = item_to_row(now).ref;
    }
    out->items = rows;
    out->gone = gone;
}

void view_items_flushed(struct view *v)
{
    v->batch.items.flushed = v->batch.items.n;
    v->batch.items.bytes = 0;
}
