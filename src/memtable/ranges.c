/* Range deletes of a memtable.

   A range is not a state of a row: it says of everything older, the frozen table and the tables, that what
   they have inside it is gone. Rows of this table that are inside it when it comes are gone as well, and rows
   that are put there later are newer than it. So within one table ranges come first, and rows behind them,
   whatever the order in which they came.

   Of the rows of this table, states say from then on that they are gone, one by one. But a long range by
   place, as the trimming of a list is, costs the same however many rows are inside: it begins an era, and
   throws a shade over its places in which states of earlier eras are gone. Of two shades at one place the
   later one tells. Taking such a range back takes its shade away, and its era, which no state is of any more.

   Each range is a change that may be undone, and hangs in a list of its group. What readers ask is the sum of
   them: spans that do not touch each other, in order, so that a row is looked for by halving, however many
   ranges there have been; shades likewise. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "memtable/memtable_internal.h"
#include "store/order.h"

#define FEW_ROWS 256 /* are looked at one by one, or so many places */

/* ---- places ---- */

struct place {
    int64_t pos;
    double score;
    struct slice name;
};

static struct place low_of(const struct item_range *r)
{
    return (struct place){r->min, r->min_score, r->min_name};
}

static struct place high_of(const struct item_range *r)
{
    return (struct place){r->max, r->max_score, r->max_name};
}

static int compare(enum item_order order, const struct place *x, const struct place *y)
{
    if (order == ITEMS_BY_POS)
        return (x->pos > y->pos) - (x->pos < y->pos);
    int c = (x->score > y->score) - (x->score < y->score);
    return c ? c : slice_cmp(x->name, y->name);
}

/* Whether there is room for a row between a place and a later one. */
static bool apart(enum item_order order, const struct place *x, const struct place *y)
{
    return compare(order, x, y) < 0 && (order != ITEMS_BY_POS || x->pos + 1 < y->pos);
}

/* ---- spans ---- */

/* The first span that ends at or behind a place, or (touch) just before it. */
static size_t first_behind(const struct group *g, const struct place *at, bool touch)
{
    size_t low = 0, high = g->nspans;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct item_range *s = &g->spans[mid];
        struct place end = high_of(s);
        if (touch ? apart(s->order, &end, at) : compare(s->order, &end, at) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* An array of n things of a size, that has room for *cap, has room for one more. */
static void *with_room(struct memtable *m, void *all, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return all;
    uint32_t more = *cap ? *cap * 2 : 2;
    void *larger = memtable_take(m, more * size);
    if (*cap) {
        memcpy(larger, all, n * size);
        memtable_give(m, all, *cap * size);
    }
    *cap = more;
    return larger;
}

/* One of the spans becomes what it and a range are together. */
static void widen(struct item_range *span, const struct item_range *r)
{
    struct place a = low_of(span), b = low_of(r);
    if (compare(r->order, &b, &a) < 0) {
        span->min = r->min;
        span->min_score = r->min_score;
        span->min_name = r->min_name;
    }
    a = high_of(span);
    b = high_of(r);
    if (compare(r->order, &b, &a) > 0) {
        span->max = r->max;
        span->max_score = r->max_score;
        span->max_name = r->max_name;
    }
}

static void add_span(struct memtable *m, struct group *g, const struct item_range *r)
{
    struct place low = low_of(r), high = high_of(r);
    size_t from = first_behind(g, &low, true), to = from;
    struct item_range sum = *r;
    for (; to < g->nspans; to++) {
        struct place begin = low_of(&g->spans[to]);
        if (apart(r->order, &high, &begin))
            break;
        widen(&sum, &g->spans[to]);
    }
    g->spans = with_room(m, g->spans, g->nspans, &g->cap_spans, sizeof sum);
    memmove(g->spans + from + 1, g->spans + to, (g->nspans - to) * sizeof sum);
    g->spans[from] = sum;
    g->nspans = (uint32_t)(g->nspans + 1 - (to - from));
}

bool memtable_has_ranges(const struct memtable *m)
{
    return m->nranges > 0;
}

const struct item_range *memtable_covers(const struct memtable *m, const struct item_row *row)
{
    const struct group *g = m->nranges ? memtable_group(m, row->ref.table, row->ref.id) : NULL;
    if (!g || g->nspans == 0)
        return NULL;
    struct place at = {row->ref.pos, row->score, row->ref.name};
    size_t i = first_behind(g, &at, false);
    if (i == g->nspans)
        return NULL;
    struct place begin = low_of(&g->spans[i]);
    return compare(g->spans[i].order, &begin, &at) <= 0 ? &g->spans[i] : NULL;
}

/* ---- shades ---- */

/* The first one that ends at or behind a place. */
static uint32_t first_shade(const struct group *g, int64_t place)
{
    uint32_t low = 0, high = g->nshades;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (g->shades[mid].max < place)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

bool memtable_in_shade(const struct group *g, const struct state *s)
{
    int64_t place = g->nshades ? state_place(s) : 0;
    uint32_t i = first_shade(g, place);
    return i < g->nshades && g->shades[i].min <= place &&
           ((const struct member *)s)->era->number < g->shades[i].before;
}

static void insert_shade(struct memtable *m, struct group *g, uint32_t at, struct shade s)
{
    g->shades = with_room(m, g->shades, g->nshades, &g->cap_shades, sizeof s);
    memmove(g->shades + at + 1, g->shades + at, (g->nshades - at) * sizeof s);
    g->shades[at] = s;
    g->nshades++;
}

/* One that is later than all others: of those that it meets there stays what is outside of it. */
static void add_shade(struct memtable *m, struct group *g, struct shade s)
{
    uint32_t from = first_shade(g, s.min), to = from;
    while (to < g->nshades && g->shades[to].min <= s.max)
        to++;
    struct shade left = from < to ? g->shades[from] : s, right = from < to ? g->shades[to - 1] : s;
    if (from < to)
        memmove(g->shades + from, g->shades + to, (g->nshades - to) * sizeof s);
    g->nshades -= to - from;
    if (right.max > s.max) {
        right.min = s.max + 1;
        insert_shade(m, g, from, right);
    }
    insert_shade(m, g, from, s);
    if (left.min < s.min) {
        left.max = s.min - 1;
        insert_shade(m, g, from, left);
    }
}

/* ---- sums ---- */

void memtable_drop_sums(struct memtable *m, struct group *g)
{
    if (g->cap_spans)
        memtable_give(m, g->spans, g->cap_spans * sizeof *g->spans);
    if (g->cap_shades)
        memtable_give(m, g->shades, g->cap_shades * sizeof *g->shades);
    for (struct era *e = g->era, *older; e != &g->first_era; e = older) {
        older = e->older;
        memtable_give(m, e, sizeof *e);
    }
}

static void add_shade_of(struct memtable *m, struct group *g, const struct range *x)
{
    if (x->begins)
        add_shade(m, g, (struct shade){x->what.min, x->what.max, x->begins->number});
}

static int by_low(const void *a, const void *b)
{
    const struct item_range *x = &(*(struct range *const *)a)->what, *y = &(*(struct range *const *)b)->what;
    struct place low = low_of(x), other = low_of(y);
    return compare(x->order, &low, &other);
}

/* Shades in the order in which they came, spans in the order of their places, in which none has to make room
   for another. */
static void sum_again(struct memtable *m, struct group *g)
{
    struct range **all = NULL;
    size_t n = 0, cap = 0;
    g->nspans = g->nshades = 0;
    for (struct range *x = g->ranges; x; x = x->older)
        VEC_PUSH(all, n, cap) = x;
    for (size_t i = n; i > 0; i--)
        add_shade_of(m, g, all[i - 1]);
    if (n)
        qsort(all, n, sizeof *all, by_low);
    for (size_t i = 0; i < n; i++)
        add_span(m, g, &all[i]->what);
    mem_free(all);
}

void memtable_sum_ranges(struct memtable *m)
{
    for (struct group *g = m->stale, *next; g; g = next) {
        next = g->next_stale;
        g->stale = false;
        sum_again(m, g);
        memtable_drop_empty(m, g);
    }
    m->stale = NULL;
}

/* ---- coming and going ---- */

static size_t bytes_of(const struct item_range *r)
{
    return sizeof(struct range) + r->min_name.n + r->max_name.n;
}

static struct slice copy_name(char *to, struct slice name)
{
    if (name.n)
        memcpy(to, name.p, name.n);
    return slice_of(to, name.n);
}

static struct range *new_range(struct memtable *m, struct group *g, const struct item_range *r)
{
    struct range *x = memtable_take(m, bytes_of(r));
    *x = (struct range){
        .state.link.tag = KIND_RANGE, .group = g, .older = g->ranges, .mark = m->next++, .what = *r};
    x->what.min_name = copy_name(x->names, r->min_name);
    x->what.max_name = copy_name(x->names + r->min_name.n, r->max_name);
    g->ranges = x;
    m->nranges++;
    return x;
}

/* A row goes with a range: its state says so from now on, and takes no memory more. */
static void hide(struct memtable *m, struct group *g, struct state *s)
{
    VEC_PUSH(m->changes, m->nchanges, m->cap_changes) = (struct change){m->next++, s, s};
    if (g->orders)
        orders_change(m, g, s, NULL);
    s->link.tag |= TAG_GONE;
}

void memtable_undo_hiding(struct memtable *m, struct state *s)
{
    struct group *g = member_group(s);
    s->link.tag &= ~TAG_GONE;
    if (g->orders)
        orders_change(m, g, NULL, s);
}

/* Looks at all rows of a group. */
static void hide_among_all(struct memtable *m, struct group *g, const struct item_range *r)
{
    for (struct member *x = g->first; x; x = x->later) {
        struct mem_item i;
        state_item(m, &x->state, &i);
        if (!i.gone && item_in_range(r, &i.row))
            hide(m, g, &x->state);
    }
}

/* Looks at each place. */
static void hide_at_places(struct memtable *m, struct group *g, const struct item_range *r)
{
    struct item_ref ref = {.table = r->table, .id = r->id, .pos = r->min};
    for (uint64_t left = (uint64_t)r->max - (uint64_t)r->min + 1; left > 0; left--, ref.pos++) {
        struct state *s = memtable_state(m, &ref);
        if (s && !item_gone(s))
            hide(m, g, s);
    }
}

/* Looks at those inside. */
static void hide_in_order(struct memtable *m, struct group *g, const struct item_range *r)
{
    struct item_scan q = range_scan(r);
    struct mem_walk w;
    struct mem_item i;
    struct item_ref *refs = NULL; /* nothing changes during a walk; names lead into states, which stay */
    size_t n = 0, cap = 0;
    memtable_walk_items(m, &q, &w);
    while (mem_walk_item(&w, &i))
        VEC_PUSH(refs, n, cap) = i.row.ref;
    for (size_t k = 0; k < n; k++)
        hide(m, g, memtable_state(m, &refs[k]));
    mem_free(refs);
}

/* Hides all at once. */
static void shade_rows(struct memtable *m, struct group *g, struct range *x)
{
    struct era *e = memtable_take(m, sizeof *e);
    *e = (struct era){g, g->era, g->era->number + 1};
    g->era = x->begins = e;
    orders_cut(m, g, x->what.min, x->what.max);
}

static void hide_rows(struct memtable *m, struct group *g, struct range *x)
{
    bool places = x->what.order == ITEMS_BY_POS;
    if (g->count <= FEW_ROWS)
        hide_among_all(m, g, &x->what);
    else if (!places)
        hide_in_order(m, g, &x->what);
    else if ((uint64_t)x->what.max - (uint64_t)x->what.min < FEW_ROWS)
        hide_at_places(m, g, &x->what);
    else
        shade_rows(m, g, x);
}

void memtable_put_range(struct memtable *m, const struct item_range *r)
{
    assert(r->order == (item_named(r->table) ? ITEMS_BY_SCORE : ITEMS_BY_POS));
    struct group *g = memtable_need_group(m, r->table, r->id);
    struct range *x = new_range(m, g, r);
    VEC_PUSH(m->changes, m->nchanges, m->cap_changes) = (struct change){x->mark, &x->state, NULL};
    hide_rows(m, g, x);
    add_span(m, g, &x->what);
    add_shade_of(m, g, x);
}

static void give_range(struct memtable *m, struct range *x)
{
    m->nranges--;
    memtable_give(m, x, bytes_of(&x->what));
}

void memtable_undo_range(struct memtable *m, struct state *s)
{
    struct range *x = (struct range *)s;
    struct group *g = x->group;
    assert(g->ranges == x);
    g->ranges = x->older;
    if (x->begins) {
        assert(g->era == x->begins);
        orders_drop(m, g); /* what was in the shade is back in them when they are built again */
        g->era = x->begins->older;
        memtable_give(m, x->begins, sizeof *x->begins);
    }
    give_range(m, x);
    if (g->stale)
        return;
    g->stale = true;
    g->next_stale = m->stale;
    m->stale = g;
}

/* Of one group, those before a mark. */
static void leave_group(struct memtable *m, struct group *g, mem_mark to)
{
    struct range **at = &g->ranges;
    while (*at && (*at)->mark >= to)
        at = &(*at)->older;
    if (!*at)
        return;
    struct range *x = *at;
    *at = NULL;
    sum_again(m, g);
    for (struct range *older; x; x = older) {
        older = x->older;
        give_range(m, x);
    }
    memtable_drop_empty(m, g);
}

void memtable_leave_ranges(struct memtable *m, mem_mark to)
{
    for (struct group *g = m->nranges ? m->first_group : NULL, *later; g; g = later) {
        later = g->later;
        leave_group(m, g, to);
    }
}
