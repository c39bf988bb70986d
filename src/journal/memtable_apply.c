/* Handing a frozen memtable out in the order of the tables' trees; writer_slices.c brings what is handed out
   into them.

   Rows are taken from the table's lists in pieces, each piece is sorted, and the sorted runs are merged while
   rows go out: no step costs more than its share. What decides most comparisons is copied beside the pointer
   to a row, so that sorting seldom has to look at the row itself.

   Reads entries and their versions and nothing else of the table: its owner may be building orders. */
#include "journal/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "store/order.h"

/* What a row is sorted by; equal places are told apart by the rows. */
struct place {
    uint64_t major, minor;
    const struct version *v;
};

struct run {
    const struct place *at, *end;
};

struct mem_apply {
    const struct memtable *m;
    struct place *places; /* of all rows that were taken, run by run */
    size_t nplaces;
    bool taken; /* all of them were */
    const struct entry *entry;
    const struct group *group; /* the rows to be taken next */
    struct run *runs;          /* once all rows are taken, a heap: the run with the first row on top */
    size_t nruns, runs_cap;
    /* Rows that were merged: [from, to) is what was handed out last. */
    const struct version **queue;
    size_t from, to, len, cap;
    size_t left;
    bool extra_left; /* trash, databases and next_id are still to be handed out */
    bool extra_last; /* they were what was handed out last */
    /* Room for a slice. */
    struct key_row *keys;
    struct item_row *items;
    struct item_ref *gone;
    size_t room;
    struct trash_row *trash;
    struct db_row *dbs;
};

/* ---- places ---- */

/* Major: which part of the tables in the highest bits, then what comes first there. */
_Static_assert(2 + ITEM_TABLES <= 16, "a part has four bits");

static uint64_t major_of(uint64_t part, uint64_t rest)
{
    return part << 60 | (rest & (((uint64_t)1 << 60) - 1));
}

/* Rows stand in their table in the order in which they came, which is mostly that of their numbers, or in the
   order of their names or positions. */
static uint64_t item_minor(const struct mem_item *i, size_t common)
{
    const struct item_ref *r = &i->row.ref;
    if (item_tables[r->table].by_arrival)
        return i->gone ? 0 : rank_of_number(i->row.ord);
    return item_named(r->table) ? rank_of_name(r->name, common) : rank_of_number(r->pos);
}

static struct place place_of(const struct entry *e, const struct version *v)
{
    size_t common = e->group->common;
    if (e->kind == KIND_KEY) {
        const struct key_row *k = &v->key.row;
        if (v->key.fresh || k->seq >= STORE_PROVISIONAL)
            return (struct place){major_of(1, k->db), rank_of_name(k->key, common), v};
        return (struct place){major_of(0, 0), rank_of_number(k->seq), v};
    }
    const struct item_ref *r = &v->item.row.ref;
    return (struct place){major_of(2 + (uint64_t)r->table, (uint64_t)r->id), item_minor(&v->item, common), v};
}

static int compare(const struct place *x, const struct place *y)
{
    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    if (x->v->entry->kind == KIND_KEY)
        return keys_compare(KEYS_BY_KEY, &x->v->key.row, &y->v->key.row);
    return refs_compare(&x->v->item.row.ref, &y->v->item.row.ref);
}

static int by_place(const void *a, const void *b)
{
    return compare(a, b);
}

/* ---- sorting ---- */

static void take(struct mem_apply *a, const struct entry *e)
{
    const struct version *v = e->now;
    if (e->kind == KIND_KEY ? v->key.fresh && v->key.row.type == ROW_NONE : v->item.fresh && v->item.gone)
        a->left--; /* it lived and died in memory */
    else
        a->places[a->nplaces++] = place_of(e, v);
}

/* The next row of the table, NULL behind the last. */
static const struct entry *next_entry(struct mem_apply *a)
{
    while (!a->entry && a->group) {
        a->entry = a->group->first;
        a->group = a->group->later;
    }
    const struct entry *e = a->entry;
    if (e)
        a->entry = e->later;
    return e;
}

/* The heap has its first row on top but for the run at i. */
static void sink(struct mem_apply *a, size_t i)
{
    struct run moved = a->runs[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= a->nruns)
            break;
        if (child + 1 < a->nruns && compare(a->runs[child + 1].at, a->runs[child].at) < 0)
            child++;
        if (compare(moved.at, a->runs[child].at) < 0)
            break;
        a->runs[i] = a->runs[child];
        i = child;
    }
    a->runs[i] = moved;
}

bool mem_apply_sort(struct mem_apply *a, size_t rows)
{
    if (a->taken)
        return false;
    size_t begin = a->nplaces, n = 0;
    const struct entry *e = NULL;
    while (n < rows && (e = next_entry(a))) {
        take(a, e);
        n++;
    }
    if (a->nplaces > begin) {
        qsort(a->places + begin, a->nplaces - begin, sizeof *a->places, by_place);
        VEC_PUSH(a->runs, a->nruns, a->runs_cap) = (struct run){a->places + begin, a->places + a->nplaces};
    }
    if (e)
        return true;
    a->taken = true;
    for (size_t i = a->nruns / 2; i-- > 0;)
        sink(a, i);
    return false;
}

/* The first row of all runs, NULL when they are empty. */
static const struct version *pop(struct mem_apply *a)
{
    if (a->nruns == 0)
        return NULL;
    struct run *first = &a->runs[0];
    const struct version *v = first->at->v;
    first->at++;
    if (first->at == first->end)
        *first = a->runs[--a->nruns];
    if (a->nruns)
        sink(a, 0);
    return v;
}

/* ---- handing out ---- */

static void make_room(struct mem_apply *a, size_t rows)
{
    if (rows <= a->room)
        return;
    a->keys = mem_realloc(a->keys, rows * sizeof *a->keys);
    a->items = mem_realloc(a->items, rows * sizeof *a->items);
    a->gone = mem_realloc(a->gone, rows * sizeof *a->gone);
    a->room = rows;
}

static void add_row(struct mem_apply *a, const struct version *v, struct changes *c)
{
    if (v->entry->kind == KIND_KEY) {
        struct key_row *k = &a->keys[c->nkeys++];
        *k = v->key.row;
        k->fresh = v->key.fresh;
    } else if (v->item.gone) {
        a->gone[c->ngone++] = v->item.row.ref;
    } else {
        struct item_row *i = &a->items[c->nitems++];
        *i = v->item.row;
        i->fresh = v->item.fresh;
    }
}

/* Trash in the order in which it came, the last states of databases and of next_id. */
static void extra(struct mem_apply *a, struct changes *ret, int64_t *ret_next_id)
{
    const struct memtable *m = a->m;
    a->trash = mem_realloc(a->trash, (m->ntrash + 1) * sizeof *a->trash);
    a->dbs = mem_realloc(a->dbs, (m->extra.count + 1) * sizeof *a->dbs);
    const struct version *v = m->trash;
    for (size_t i = m->ntrash; i-- > 0; v = v->before)
        a->trash[i] = v->trash;
    size_t ndbs = 0;
    for (const struct entry *e = m->extra.first; e; e = e->later) {
        if (e->kind == KIND_DB)
            a->dbs[ndbs++] = e->now->db;
        else
            *ret_next_id = e->now->next_id;
    }
    *ret =
        (struct changes){.trash = a->trash, .ntrash = m->ntrash, .dbs = a->dbs, .ndbs = ndbs, .replay = true};
}

bool mem_apply_next(struct mem_apply *a, size_t rows, struct changes *ret, int64_t *ret_next_id)
{
    assert(rows > 0);
    while (mem_apply_sort(a, rows))
        ;
    *ret_next_id = 0;
    a->from = a->to;
    if (a->from == a->len)
        a->from = a->len = 0;
    while (a->len - a->from < rows && a->nruns)
        VEC_PUSH(a->queue, a->len, a->cap) = pop(a);
    a->to = a->len - a->from < rows ? a->len : a->from + rows;
    a->left -= a->to - a->from;
    a->extra_last = false;
    if (a->from == a->to) {
        if (!a->extra_left)
            return false;
        extra(a, ret, ret_next_id);
        a->extra_left = false;
        a->extra_last = true;
        return true;
    }
    make_room(a, a->to - a->from);
    *ret = (struct changes){.keys = a->keys, .items = a->items, .gone = a->gone, .replay = true};
    for (size_t i = a->from; i < a->to; i++)
        add_row(a, a->queue[i], ret);
    return true;
}

size_t mem_apply_left(const struct mem_apply *a)
{
    return a->left + (a->extra_left ? a->m->ntrash + a->m->extra.count : 0);
}

void mem_apply_again(struct mem_apply *a)
{
    a->left += a->to - a->from;
    a->to = a->from;
    a->extra_left |= a->extra_last;
    a->extra_last = false;
}

struct mem_apply *mem_apply_new(const struct memtable *m)
{
    struct mem_apply *a = mem_zalloc(sizeof *a);
    a->m = m;
    a->places = mem_alloc(m->nrows * sizeof *a->places);
    a->entry = m->keys.first;
    a->group = m->first_group;
    a->left = m->nrows;
    a->extra_left = m->ntrash || m->extra.count;
    return a;
}

void mem_apply_free(struct mem_apply *a)
{
    if (!a)
        return;
    mem_free(a->places);
    mem_free(a->runs);
    mem_free(a->queue);
    mem_free(a->keys);
    mem_free(a->items);
    mem_free(a->gone);
    mem_free(a->trash);
    mem_free(a->dbs);
    mem_free(a);
}
