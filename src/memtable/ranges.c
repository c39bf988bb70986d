/* Range deletes of a memtable.

   A range is not a state of a row: it says of everything older, the frozen table and the tables, that what
   they have inside it is gone. Of rows of this table that are inside it when it comes, the states say from
   then on that they are gone; rows that are put there later are newer than it. So within one table ranges
   come first, and rows behind them, whatever the order in which they came.

   Each range is a change that may be undone, and hangs in a list of its group. What readers ask is the sum of
   them: spans that do not touch each other, in order, so that a row is looked for by halving, however many
   ranges there have been. */
#include <assert.h>

#include "base/mem.h"
#include "base/vec.h"
#include "memtable/memtable_internal.h"
#include "store/order.h"

#define FEW_ROWS 256 /* are looked at one by one */

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

static void make_room(struct memtable *m, struct group *g)
{
    if (g->nspans < g->cap_spans)
        return;
    uint32_t cap = g->cap_spans ? g->cap_spans * 2 : 2;
    struct item_range *spans = memtable_take(m, cap * sizeof *spans);
    if (g->cap_spans) {
        memcpy(spans, g->spans, g->nspans * sizeof *spans);
        memtable_give(m, g->spans, g->cap_spans * sizeof *spans);
    }
    g->spans = spans;
    g->cap_spans = cap;
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
    make_room(m, g);
    memmove(g->spans + from + 1, g->spans + to, (g->nspans - to) * sizeof sum);
    g->spans[from] = sum;
    g->nspans = (uint32_t)(g->nspans + 1 - (to - from));
}

static void sum_again(struct memtable *m, struct group *g)
{
    g->nspans = 0;
    for (const struct range *x = g->ranges; x; x = x->older)
        add_span(m, g, &x->what);
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
    struct group *g = ((struct member *)s)->group;
    s->link.tag &= ~TAG_GONE;
    if (g->orders)
        orders_change(m, g, NULL, s);
}

/* Looks at all rows of a group. */
static void hide_among_all(struct memtable *m, struct group *g, const struct item_range *r)
{
    for (struct member *x = g->first; x; x = x->later) {
        struct mem_item i;
        if (x->state.link.tag & TAG_GONE)
            continue;
        state_item(m, &x->state, &i);
        if (item_in_range(r, &i.row))
            hide(m, g, &x->state);
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

static void hide_rows(struct memtable *m, struct group *g, const struct item_range *r)
{
    bool wide = r->order == ITEMS_BY_POS && (uint64_t)r->max - (uint64_t)r->min >= g->count / 4;
    if (g->count > FEW_ROWS && wide) /* orders are built again faster than kept */
        orders_drop(m, g);
    if (g->count <= FEW_ROWS || wide)
        hide_among_all(m, g, r);
    else
        hide_in_order(m, g, r);
}

void memtable_put_range(struct memtable *m, const struct item_range *r)
{
    assert(r->order == (item_named(r->table) ? ITEMS_BY_SCORE : ITEMS_BY_POS));
    struct group *g = memtable_need_group(m, r->table, r->id);
    struct range *x = new_range(m, g, r);
    VEC_PUSH(m->changes, m->nchanges, m->cap_changes) = (struct change){x->mark, &x->state, NULL};
    add_span(m, g, &x->what);
    hide_rows(m, g, &x->what);
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
    sum_again(m, g);
    give_range(m, x);
    memtable_drop_empty(m, g);
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
