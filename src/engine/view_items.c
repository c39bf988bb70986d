/* Items of collections and chunks: one, several, ranges. A single one is looked for in the cache, which has
   what this batch changed and what was asked for before, then in the tables; for a range what the batch
   changed is brought into the running transaction first.

   A change makes a dirty item, which takes the place of the clean or dirty one that is in the cache, if any.
   As long as it has not been brought into the running transaction, an item that changes again keeps its entry
   in the list of changes; after that it gets another one. So what has to be brought there is always the end
   of that list.

   A range delete names no items. It is brought into the running transaction at once, behind what the batch
   made of items before, so that the store knows what is inside. What the cache has of that is passed over
   until the batch ends: if it is committed the cache forgets it, if not it is as it was. Of a list nobody
   asks for a place that is not in it any more, so that only ranges by score have to be looked for. */
#include "engine/view_items.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/coll_internal.h"
#include "store/item_tables.h"
#include "store/order.h"

#define ASKED_AT_ONCE 128
#define TABLE_TICKETS (sizeof((struct view *)0)->table_tickets / sizeof(int64_t))
#define KEEP_CHANGES  4096 /* room for so many outlives a batch */

uint32_t view_item_hash(const struct view *v, const struct item_ref *ref)
{
    const struct prefetch *e = v->batch.prefetch;
    bool known = e && e->item.p && e->item.p == ref->name.p && e->item.n == ref->name.n && e->id == ref->id;
    return known ? e->item_hash : item_hash(ref);
}

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

/* Whether the batch has removed an item, which is in the cache, with a range. */
static bool is_removed(const struct view *v, const struct item *i)
{
    const struct item_changes *t = &v->batch.items;
    if (t->nranges == 0 || i->absent)
        return false;
    struct item_row row = item_to_row(i);
    for (size_t k = 0; k < t->nranges; k++)
        if ((!i->dirty || i->change < t->ranges[k].at) && item_in_range(&t->ranges[k].what, &row))
            return true;
    return false;
}

/* The item in memory or NULL; what a reply tells of this batch's own changes waits for its commit. */
static const struct item *look_up(struct view *v, const struct item_ref *ref, uint32_t hash)
{
    struct item *i = cache_item(v->cache, ref, hash);
    saw_table(v, ref->table, ref->id);
    if (i && is_removed(v, i)) {
        view_saw(v, v->batch.ticket);
        return NULL;
    }
    if (i && i->dirty)
        view_saw(v, v->batch.ticket);
    else if (cacheable(ref))
        cache_count_item(v->cache, i);
    return i;
}

/* After a command that failed midway the transaction's tables have what will not be committed; so they may
   behind a range delete. */
static bool tables_are_true(const struct view *v)
{
    return v->batch.poison == ST_OK && v->batch.items.nranges == 0;
}

/* Remembers what the tables say, which was asked for in vain in memory; row is NULL: there is no such item.
 */
static void remember(struct view *v, const struct item_ref *ref, const struct item_row *row, uint32_t hash)
{
    if (cacheable(ref) && (!row || row->value.n <= CACHE_ITEM_VALUE))
        cache_add_item(v->cache, item_new(ref, row, hash));
}

/* The same of one that was read by itself. */
static void remember_asked(struct view *v, const struct item_ref *ref, const struct item_row *row,
                           uint32_t hash)
{
    if (!view_shared(v) && tables_are_true(v))
        remember(v, ref, row, hash);
}

static bool same_ref(const struct item_ref *a, const struct item_ref *b)
{
    return a->table == b->table && a->id == b->id && slice_eq(a->name, b->name);
}

/* ---- reading ahead ---- */

static int by_ref(const void *a, const void *b)
{
    return refs_compare(a, b);
}

/* Those that are worth asking the tables for, in their order, each once. */
static size_t missing_items(const struct view *v, struct item_ref *refs, size_t n)
{
    size_t k = 0;
    if (n > 1)
        qsort(refs, n, sizeof *refs, by_ref);
    for (size_t i = 0; i < n; i++)
        if (cacheable(&refs[i]) && (k == 0 || !same_ref(&refs[k - 1], &refs[i])) &&
            !cache_item(v->cache, &refs[i], item_hash(&refs[i])))
            refs[k++] = refs[i];
    return k;
}

struct ahead_names {
    struct view *v;
    const struct item_ref *asked, *end; /* the next one that may be answered */
};

/* Remembers that the tables have none of those up to this one, or up to the end (NULL). */
static void note_absent(struct ahead_names *a, const struct item_ref *found)
{
    for (; a->asked < a->end && !(found && same_ref(a->asked, found)); a->asked++)
        remember(a->v, a->asked, NULL, item_hash(a->asked));
}

static enum status keep_named(void *arg, const struct item_row *row)
{
    struct ahead_names *a = arg;
    note_absent(a, &row->ref);
    remember(a->v, a->asked, row, item_hash(a->asked));
    a->asked++;
    return ST_OK;
}

/* Brings items into memory that it lacks: as missing_items gives them. */
static enum status read_missing(struct view *v, const struct item_ref *refs, size_t n)
{
    struct ahead_names a = {v, refs, refs + n};
    enum status st = n ? store_get_items(v->store, refs, n, keep_named, &a, v->call.err) : ST_OK;
    if (st == ST_OK)
        note_absent(&a, NULL);
    return st;
}

enum status view_read_items_ahead(struct view *v, struct item_ref *refs, size_t n)
{
    if (!tables_are_true(v))
        return ST_OK;
    n = missing_items(v, refs, n);
    v->stats->ahead_rows += n;
    return read_missing(v, refs, n);
}

/* The item that a mate names, if that has to be read by itself; once, because a large one does not stay. */
static bool mate_item(struct view *v, struct mate *m, struct item_ref *ret)
{
    const struct row *r = m->read ? NULL : view_mate_row(v, m);
    if (!r || r->type == ROW_LIST)
        return false;
    m->read = true;
    int64_t id = row_items(r).id;
    const struct memo *memo = memos_find(&v->memos, id);
    *ret = (struct item_ref){.table = item_table_of((enum row_type)r->type), .id = id};
    ret->name = r->type == ROW_ZSET && m->behind_score.p ? m->behind_score : m->name;
    return ret->name.p && (memo ? !memo->has_members : row_items(r).size > COLL_RESIDENT_LOAD);
}

/* Over a shared store: with the item that is asked for come those that other commands of the batch name. They
   stay in memory for as long as the batch, whose locks or whose one state they were read in. *ret: it is
   there, unless it is too large. */
static enum status read_with_mates(struct view *v, const struct item_ref *ref, bool *ret)
{
    struct view_mates *m = &v->mates;
    *ret = false;
    bool kept = ref->table == ITEM_HASH || ref->table == ITEM_SET || ref->table == ITEM_ZSET;
    if (!view_shared(v) || m->n < 2 || !kept || !cacheable(ref) || !tables_are_true(v))
        return ST_OK;
    struct item_ref *refs = arena_alloc(&v->call.scratch, (m->n + 1) * sizeof *refs);
    size_t n = 1;
    refs[0] = *ref;
    for (size_t i = 0; i < m->n; i++)
        n += mate_item(v, &m->all[i], &refs[n]);
    n = missing_items(v, refs, n);
    *ret = n > 1;
    return n > 1 ? read_missing(v, refs, n) : ST_OK;
}

/* ---- reading ---- */

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
    uint32_t hash = view_item_hash(v, ref);
    const struct item *i = look_up(v, ref, hash);
    if (i) {
        *ret_found = !i->absent;
        *ret = item_to_row(i);
        return ST_OK;
    }
    struct item_read read = {v, ret, false};
    bool together;
    enum status st = read_with_mates(v, ref, &together);
    if (st == ST_OK && together && (i = cache_item(v->cache, ref, hash))) {
        *ret_found = !i->absent;
        *ret = item_to_row(i);
        return ST_OK;
    }
    if (st == ST_OK)
        st = store_get_items(v->store, ref, 1, take_item, &read, v->call.err);
    *ret_found = read.found;
    if (st == ST_OK)
        remember_asked(v, ref, read.found ? ret : NULL, hash);
    return st;
}

struct items_read {
    struct view *v;
    const struct item_ref *asked; /* the next one that may be answered */
    const size_t *places;         /* of those asked for, in found and rows */
    bool *found;
    struct item_row *rows;
};

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
            remember_asked(v, &asked[i], ret_found[places[i]] ? &ret[places[i]] : NULL, hash);
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

struct ahead {
    struct view *v;
    bool large;
};

static enum status keep_ahead(void *arg, const struct item_row *row)
{
    struct ahead *a = arg;
    if (row->value.n <= CACHE_ITEM_VALUE)
        cache_add_item(a->v->cache, item_new(&row->ref, row, item_hash(&row->ref)));
    else
        a->large = true;
    return ST_OK;
}

/* What the batch has changed is in the cache, whether the transaction has it or not, so that what is read
   here is as it was committed. */
enum status view_read_ahead(struct view *v, int64_t id, int64_t first, uint32_t n, bool *ret)
{
    struct ahead a = {v, false};
    struct item_ref *refs = arena_alloc(&v->call.scratch, n * sizeof *refs);
    size_t nrefs = 0;
    for (uint32_t i = 0; i < n; i++) {
        refs[nrefs] = (struct item_ref){.table = ITEM_LIST, .id = id, .pos = first + i};
        nrefs += !cache_item(v->cache, &refs[nrefs], item_hash(&refs[nrefs]));
    }
    bool may = nrefs && !view_shared(v) && v->batch.poison == ST_OK;
    enum status st = may ? store_get_items(v->store, refs, nrefs, keep_ahead, &a, v->call.err) : ST_OK;
    *ret = !a.large;
    return st;
}

enum status view_scan_items(struct view *v, const struct item_scan *q, store_item_fn *fn, void *arg)
{
    enum status st = view_flush(v);
    saw_table(v, q->table, q->id);
    return st == ST_OK ? store_scan_items(v->store, q, fn, arg, v->call.err) : st;
}

struct living {
    struct view *v;
    store_item_fn *fn;
    void *arg;
};

static enum status hand_living(void *arg, const struct item_row *row)
{
    const struct living *l = arg;
    const struct item *i = cache_item(l->v->cache, &row->ref, item_hash(&row->ref));
    return i && i->dirty && i->absent ? ST_OK : l->fn(l->arg, row);
}

/* Removals that the running transaction does not have yet are in the cache, which tells of each row: so a
   batch of nothing but removals, as pops of random members are, does not have to be brought there each time.
 */
enum status view_items_at(struct view *v, enum item_table table, int64_t id, const int64_t *ords, size_t n,
                          store_item_fn *fn, void *arg)
{
    struct item_scan q = {
        .table = table, .id = id, .order = ITEMS_BY_ORD, .ords = ords, .nords = (uint32_t)n};
    const struct item_changes *t = &v->batch.items;
    if (t->puts || t->nranges || t->flushed == t->n)
        return view_scan_items(v, &q, fn, arg);
    struct living l = {v, fn, arg};
    return store_scan_items(v->store, &q, hand_living, &l, v->call.err);
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
    uint32_t hash = view_item_hash(v, ref);
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
    t->puts |= row != NULL;
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

enum status view_add_kept_item(struct view *v, const struct item_row *row)
{
    enum status st = put_item(v, row, true);
    struct item *i = st == ST_OK && cacheable(&row->ref) && !view_shared(v)
                         ? cache_item(v->cache, &row->ref, view_item_hash(v, &row->ref))
                         : NULL;
    if (i)
        i->cached = 1;
    return st;
}

enum status view_del_item(struct view *v, const struct item_ref *ref)
{
    change(v, ref, NULL, false);
    return ST_OK;
}

enum status view_del_range(struct view *v, const struct item_range *r)
{
    struct item_changes *t = &v->batch.items;
    enum status st = view_flush(v);
    if (st != ST_OK)
        return st;
    struct range_change *own = &VEC_PUSH(t->ranges, t->nranges, t->ranges_cap);
    *own = (struct range_change){.what = *r, .at = t->n};
    own->what.min_name = arena_copy(&v->batch.arena, r->min_name);
    own->what.max_name = arena_copy(&v->batch.arena, r->max_name);
    t->any = v->call.wrote = true;
    view_saw(v, v->batch.ticket);
    return view_flush(v);
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
    t->puts = true;
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

/* The transaction has those that go only if it was poisoned, or brought back as well. */
void view_undo_ranges(struct view *v, size_t to)
{
    struct item_changes *t = &v->batch.items;
    t->nranges = to;
    if (t->ranges_flushed > to)
        t->ranges_flushed = to;
}

void view_items_unflushed(struct view *v, size_t from)
{
    struct item_changes *t = &v->batch.items;
    for (size_t i = from; i < t->flushed; i++)
        t->bytes += weight(t->all[i].now);
    t->flushed = from;
    t->puts = true;
}

/* ---- the end of a batch ---- */

static void clear(struct item_changes *t)
{
    t->n = t->nundo = t->flushed = t->bytes = 0;
    t->nranges = t->ranges_flushed = 0;
    t->any = t->puts = false;
    if (t->cap > KEEP_CHANGES || t->undo_cap > KEEP_CHANGES)
        view_release_items(t);
}

/* What is in the cache after the commit in the place of a dirty item: a clean one, if there was one
   before; none for a place in a list that is no more, which nobody will ask for. */
static void settle(struct view *v, struct item_change *c)
{
    struct item *i = c->now;
    bool place = !item_named((enum item_table)(i->link.tag - ITEM_TAGS));
    if (!i->cached || i->nvalue > CACHE_ITEM_VALUE || (i->absent && place)) {
        cache_remove_item(v->cache, i);
        return;
    }
    if (c->was && !c->was->dirty && item_take_over(c->was, i)) {
        cache_replace_item(v->cache, i, c->was);
        c->was = NULL;
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
    for (size_t i = 0; i < t->nranges; i++)
        if (t->ranges[i].what.order == ITEMS_BY_SCORE)
            cache_forget_range(v->cache, &t->ranges[i].what);
    for (size_t i = 0; i < t->n; i++) {
        struct item_change *c = &t->all[i];
        if (!c->now->replaced && is_removed(v, c->now))
            cache_remove_item(v->cache, c->now);
        else if (!c->now->replaced)
            settle(v, c);
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
    mem_free(t->ranges);
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
    if (t->ranges_flushed == t->nranges)
        return;
    struct item_range *ranges =
        arena_alloc(&v->call.scratch, (t->nranges - t->ranges_flushed) * sizeof *ranges);
    for (size_t i = t->ranges_flushed; i < t->nranges; i++)
        ranges[out->nranges++] = t->ranges[i].what;
    out->ranges = ranges;
}

void view_items_flushed(struct view *v)
{
    v->batch.items.flushed = v->batch.items.n;
    v->batch.items.puts = false;
    v->batch.items.ranges_flushed = v->batch.items.nranges;
    v->batch.items.bytes = 0;
}
