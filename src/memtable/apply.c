/* Handing a frozen memtable out in the order of the tables' trees; writer_passes.c and applier.c bring what
   is handed out into them.

   Rows are taken from the table's map in pieces, and sorted in place when all are there.
   What decides nearly always is copied beside the pointer to a row, so that sorting seldom has to look at the
   row itself, and takes 16 bytes a row.

   Reads the map, states in it, groups' names and ranges, and nothing else of the table: its owner may be
   building orders, and giving back what was settled. */
#include "memtable/memtable_internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/order.h"

#define AHEAD      8  /* rows are all over memory: they are called for before they are needed */
#define FEW        24 /* places that are best sorted one by one */
#define DIGIT_BITS 8
#define DIGITS     (1u << DIGIT_BITS)

/* What a row is sorted by; equal places are told apart by the rows. */
struct place {
    uint64_t rank;
    const struct state *s;
};
_Static_assert(sizeof(struct place) == MEM_APPLY_ROW, "what is said of a row's room");

struct mem_apply {
    const struct memtable *m;
    struct place *places; /* of the rows that were taken, in the end of all, sorted */
    size_t nplaces;
    bool sorted;
    const struct map_link *link; /* the row to be taken next ... */
    size_t bucket;               /* ... and the bucket behind it */
    unsigned id_bits;            /* that ids of items take */
    size_t from, to;             /* the places of what was handed out last */
    size_t left;
    struct item_range *ranges;
    size_t nranges;
    bool ranges_left; /* they are still to be handed out */
    bool ranges_last; /* they were what was handed out last */
    bool extra_left;  /* trash, databases and next_id are still to be handed out */
    bool extra_last;  /* they were what was handed out last */
    /* Room for a slice. */
    struct key_row *keys;
    struct item_row *items;
    struct item_ref *gone;
    size_t room;
    struct trash_row *trash;
    struct db_row *dbs;
};

/* ---- places ---- */

/* Which part of the tables in the highest bits, then what comes first there, as much of it as there is room
   for. */
#define PART_BITS 60
#define DB_BITS   28
_Static_assert(2 + ITEM_TABLES <= 16, "a part has four bits");

static uint64_t rank_in(unsigned part, uint64_t rest)
{
    uint64_t most = ((uint64_t)1 << PART_BITS) - 1;
    return (uint64_t)part << PART_BITS | (rest < most ? rest : most);
}

/* So many bits of a name or number that ascend with it. */
static uint64_t name_bits(struct slice name, size_t common, unsigned bits)
{
    return bits ? rank_of_name(name, common) >> (64 - bits) : 0;
}

static uint64_t number_bits(int64_t v, unsigned bits)
{
    if (bits == 0)
        return 0;
    int64_t half = (int64_t)1 << (bits - 1);
    return v < -half ? 0 : v >= half ? ((uint64_t)half << 1) - 1 : (uint64_t)(v + half);
}

/* Fresh keys come in the order of their names. */
static uint64_t rank_of_key(const struct mem_apply *a, const struct mem_key *k)
{
    size_t common = a->m->keys.common;
    if (!k->fresh && k->row.seq < STORE_PROVISIONAL)
        return rank_in(0, (uint64_t)k->row.seq);
    if (!a->m->many_dbs)
        return rank_in(1, name_bits(k->row.key, common, PART_BITS));
    uint64_t db = k->row.db >> DB_BITS ? (1u << DB_BITS) - 1 : k->row.db;
    uint64_t name = k->row.db >> DB_BITS ? 0 : name_bits(k->row.key, common, PART_BITS - DB_BITS);
    return rank_in(1, db << (PART_BITS - DB_BITS) | name);
}

/* Rows stand in their table in the order in which they came, which is mostly that of their numbers, or in the
   order of their names or positions. */
static uint64_t rank_of_item(const struct mem_apply *a, const struct mem_item *i, const struct group *g)
{
    const struct item_ref *r = &i->row.ref;
    unsigned bits = PART_BITS - a->id_bits;
    uint64_t rest;
    if (item_tables[r->table].by_arrival)
        rest = i->gone ? 0 : number_bits(i->row.ord, bits);
    else
        rest = item_named(r->table) ? name_bits(r->name, g->common, bits) : number_bits(r->pos, bits);
    return rank_in(2 + (unsigned)r->table, (bits == 0 ? 0 : (uint64_t)r->id << bits) | rest);
}

static int compare_rows(const struct memtable *m, const struct state *x, const struct state *y)
{
    if (state_kind(x) == KIND_KEY) {
        struct mem_key a, b;
        state_key(m, x, &a);
        state_key(m, y, &b);
        return keys_compare(KEYS_BY_KEY, &a.row, &b.row);
    }
    struct mem_item a, b;
    state_item(m, x, &a);
    state_item(m, y, &b);
    return refs_compare(&a.row.ref, &b.row.ref);
}

static int compare(const struct memtable *m, const struct place *x, const struct place *y)
{
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return compare_rows(m, x->s, y->s);
}

static int by_place(const void *x, const void *y, void *apply)
{
    return compare(((struct mem_apply *)apply)->m, x, y);
}

/* ---- sorting ---- */

static void take(struct mem_apply *a, const struct state *s)
{
    struct mem_key k;
    struct mem_item i;
    bool key = state_kind(s) == KIND_KEY;
    bool gone = key ? state_type(s) == ROW_NONE : s->link.tag & TAG_GONE;
    if ((gone && s->link.tag & TAG_FRESH) || (!key && item_shaded(s))) {
        a->left--; /* it lived and died in memory, or the range removes it that goes first */
        return;
    }
    struct place *p = &a->places[a->nplaces++];
    p->s = s;
    if (key) {
        state_key(a->m, s, &k);
        p->rank = rank_of_key(a, &k);
    } else {
        state_item(a->m, s, &i);
        p->rank = rank_of_item(a, &i, member_group(s));
    }
}

/* Its numbers and its name. */
static void prefetch_state(const struct state *s)
{
    __builtin_prefetch(s);
    __builtin_prefetch((const char *)s + 64);
}

/* The next row of the table, NULL behind the last. */
static const struct state *next_state(struct mem_apply *a)
{
    const struct map *rows = &a->m->rows;
    size_t buckets = map_buckets(rows);
    const struct state *s;
    do {
        while (!a->link && a->bucket < buckets) {
            a->link = *map_bucket(rows, a->bucket++);
            if (a->bucket + AHEAD < buckets && *map_bucket(rows, a->bucket + AHEAD))
                prefetch_state((const struct state *)*map_bucket(rows, a->bucket + AHEAD));
        }
        s = (const struct state *)a->link;
        a->link = s ? s->link.next : NULL;
    } while (s && state_kind(s) > KIND_KEY); /* those are handed out at the end */
    return s;
}

static void sort_few(const struct memtable *m, struct place *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct place moved = p[i];
        size_t at = i;
        for (; at > 0 && compare(m, &moved, &p[at - 1]) < 0; at--)
            p[at] = p[at - 1];
        p[at] = moved;
    }
}

/* Each into its part: parts end where `ends` says. */
static void distribute(struct place *p, const size_t *ends, unsigned shift)
{
    size_t next[DIGITS];
    next[0] = 0;
    memcpy(next + 1, ends, (DIGITS - 1) * sizeof *next);
    for (unsigned d = 0; d < DIGITS; d++) {
        while (next[d] < ends[d]) {
            struct place moved = p[next[d]];
            unsigned to;
            while ((to = (unsigned)(moved.rank >> shift) % DIGITS) != d) {
                struct place other = p[next[to]];
                p[next[to]++] = moved;
                moved = other;
            }
            p[next[d]++] = moved;
        }
    }
}

/* By the highest bits of the rank in which any two differ, and then each part by what is below; places of one
   rank by their rows. */
static void sort(struct mem_apply *a, struct place *p,
                 size_t n) /* NOLINT(misc-no-recursion): 8 deep at most */
{
    uint64_t differ = 0;
    size_t ends[DIGITS] = {0}, begin = 0;
    if (n <= FEW) {
        sort_few(a->m, p, n);
        return;
    }
    for (size_t i = 1; i < n; i++)
        differ |= p[i].rank ^ p[0].rank;
    if (!differ) {
        qsort_r(p, n, sizeof *p, by_place, a);
        return;
    }
    unsigned top = 63 - (unsigned)__builtin_clzll(differ),
             shift = top >= DIGIT_BITS ? top + 1 - DIGIT_BITS : 0;
    for (size_t i = 0; i < n; i++)
        ends[(p[i].rank >> shift) % DIGITS]++;
    for (unsigned d = 1; d < DIGITS; d++)
        ends[d] += ends[d - 1];
    distribute(p, ends, shift);
    for (unsigned d = 0; d < DIGITS; begin = ends[d++])
        sort(a, p + begin, ends[d] - begin);
}

bool mem_apply_sort(struct mem_apply *a, size_t rows)
{
    if (a->sorted)
        return false;
    const struct state *s = NULL;
    for (size_t n = 0; n < rows && (s = next_state(a)); n++)
        take(a, s);
    if (s)
        return true;
    sort(a, a->places, a->nplaces);
    a->sorted = true;
    return false;
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

static void add_row(struct mem_apply *a, const struct state *s, struct changes *c)
{
    if (state_kind(s) == KIND_KEY) {
        struct mem_key k;
        state_key(a->m, s, &k);
        a->keys[c->nkeys] = k.row;
        a->keys[c->nkeys++].fresh = k.fresh;
        return;
    }
    struct mem_item i;
    state_item(a->m, s, &i);
    if (i.gone) {
        a->gone[c->ngone++] = i.row.ref;
        return;
    }
    a->items[c->nitems] = i.row;
    a->items[c->nitems++].fresh = i.fresh;
}

/* Trash in the order in which it came, the last states of databases and of next_id. */
static void extra(struct mem_apply *a, struct changes *ret, int64_t *ret_next_id)
{
    const struct memtable *m = a->m;
    a->trash = mem_realloc(a->trash, (m->ntrash + 1) * sizeof *a->trash);
    a->dbs = mem_realloc(a->dbs, (m->extra.count + 1) * sizeof *a->dbs);
    for (size_t i = 0; i < m->ntrash; i++)
        a->trash[i] = m->trash[i].row;
    size_t ndbs = 0;
    for (const struct member *x = m->extra.first; x; x = x->later) {
        if (state_kind(&x->state) == KIND_DB)
            a->dbs[ndbs++] = ((const struct member_db *)x)->row;
        else
            *ret_next_id = ((const struct member_next_id *)x)->next_id;
    }
    *ret =
        (struct changes){.trash = a->trash, .ntrash = m->ntrash, .dbs = a->dbs, .ndbs = ndbs, .replay = true};
}

/* What all groups have, by table and id as they came. */
static void take_ranges(struct mem_apply *a)
{
    const struct memtable *m = a->m;
    if (m->nranges == 0)
        return;
    a->ranges = mem_alloc(m->nranges * sizeof *a->ranges); /* there are no more spans than ranges */
    for (const struct group *g = m->first_group; g; g = g->later) {
        for (uint32_t i = 0; i < g->nspans; i++)
            a->ranges[a->nranges++] = g->spans[i];
    }
    a->ranges_left = true;
}

bool mem_apply_next(struct mem_apply *a, size_t rows, struct changes *ret, int64_t *ret_next_id)
{
    assert(rows > 0);
    while (mem_apply_sort(a, rows))
        ;
    *ret_next_id = 0;
    a->from = a->to;
    a->ranges_last = a->ranges_left;
    if (a->ranges_left) {
        a->ranges_left = a->extra_last = false;
        *ret = (struct changes){.ranges = a->ranges, .nranges = a->nranges, .replay = true};
        return true;
    }
    a->to = a->nplaces - a->from < rows ? a->nplaces : a->from + rows;
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
    for (size_t i = a->from; i < a->to; i++) {
        if (i + AHEAD < a->nplaces)
            prefetch_state(a->places[i + AHEAD].s);
        add_row(a, a->places[i].s, ret);
    }
    return true;
}

size_t mem_apply_left(const struct mem_apply *a)
{
    return a->left + (a->ranges_left ? a->nranges : 0) +
           (a->extra_left ? a->m->ntrash + a->m->extra.count : 0);
}

void mem_apply_again(struct mem_apply *a)
{
    a->left += a->to - a->from;
    a->to = a->from;
    a->ranges_left |= a->ranges_last;
    a->ranges_last = false;
    a->extra_left |= a->extra_last;
    a->extra_last = false;
}

struct mem_apply *mem_apply_new(const struct memtable *m)
{
    struct mem_apply *a = mem_zalloc(sizeof *a);
    a->m = m;
    a->places = mem_alloc(m->nrows * sizeof *a->places);
    a->id_bits = m->max_id ? 64 - (unsigned)__builtin_clzll((uint64_t)m->max_id) : 0;
    if (a->id_bits > PART_BITS)
        a->id_bits = PART_BITS;
    a->left = m->nrows;
    a->extra_left = m->ntrash || m->extra.count;
    take_ranges(a);
    return a;
}

void mem_apply_free(struct mem_apply *a)
{
    if (!a)
        return;
    mem_free(a->places);
    mem_free(a->keys);
    mem_free(a->items);
    mem_free(a->gone);
    mem_free(a->trash);
    mem_free(a->dbs);
    mem_free(a->ranges);
    mem_free(a);
}
