#include "journal/gaps.h"

#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define GAPS_OF_SET 16  /* the oldest goes */
#define SETS        512 /* all of them go: whoever needs one learns it again */

/* A place in the order of scores. top: behind every name with this score. */
struct place {
    double score;
    struct slice name;
    bool top;
};

/* Nothing lives between two places, nor at one that is `in`. The names are the gap's. */
struct gap {
    struct place low, high;
    bool low_in, high_in;
};

struct gapped {
    struct map_link link;
    int64_t id;
    size_t n;
    struct gap at[GAPS_OF_SET];
};

struct gaps {
    struct map sets;
    uint32_t rows;
};

/* ---- places ---- */

static int compare(const struct place *x, const struct place *y)
{
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    if (x->top || y->top)
        return x->top - y->top;
    return slice_cmp(x->name, y->name);
}

static struct place place_of(const struct item_row *row)
{
    return (struct place){.score = row->score, .name = row->ref.name};
}

/* Where the range of a scan begins and ends in ascending order. */
static struct place low_of(const struct item_scan *q)
{
    if (!q->has_min)
        return (struct place){.score = -INFINITY, .name = SLICE("")};
    return (struct place){.score = q->min_score, .name = q->min_name};
}

static struct place high_of(const struct item_scan *q)
{
    if (!q->has_max)
        return (struct place){.score = INFINITY, .top = true};
    if (!q->max_name.p) /* every name with this score, or none of them */
        return (struct place){.score = q->max_score, .name = SLICE(""), .top = !q->below_max};
    return (struct place){.score = q->max_score, .name = q->max_name};
}

/* ---- gaps of one set ---- */

static struct slice own(struct slice name)
{
    char *p = mem_alloc(name.n + 1);
    if (name.n)
        memcpy(p, name.p, name.n);
    return slice_of(p, name.n);
}

static void disown(struct slice name)
{
    mem_free((void *)(uintptr_t)name.p);
}

static void drop(struct gapped *s, size_t i)
{
    disown(s->at[i].low.name);
    disown(s->at[i].high.name);
    s->n--;
    memmove(s->at + i, s->at + i + 1, (s->n - i) * sizeof s->at[0]);
}

/* Takes the names over. */
static void add(struct gapped *s, struct gap gap)
{
    if (s->n == GAPS_OF_SET)
        drop(s, 0);
    s->at[s->n++] = gap;
}

/* Whether nothing lives between a place (with it, if in) and the gap's high end; its low end. */
static bool begins_in(const struct gap *gap, const struct place *p, bool in)
{
    int c = compare(p, &gap->low);
    return (c > 0 || (c == 0 && (gap->low_in || !in))) && compare(p, &gap->high) < 0;
}

static bool ends_in(const struct gap *gap, const struct place *p, bool in)
{
    int c = compare(p, &gap->high);
    return (c < 0 || (c == 0 && (gap->high_in || !in))) && compare(p, &gap->low) > 0;
}

/* Whether two make one: they overlap, or meet where nothing lives. */
static bool touch(const struct gap *x, const struct gap *y)
{
    int a = compare(&x->low, &y->high), b = compare(&y->low, &x->high);
    return (a < 0 || (a == 0 && (x->low_in || y->high_in))) &&
           (b < 0 || (b == 0 && (y->low_in || x->high_in)));
}

static void swap_names(struct slice *x, struct slice *y)
{
    struct slice z = *x;
    *x = *y;
    *y = z;
}

/* The gap becomes as large as both; what it does not need goes to the other one. */
static void unite(struct gap *to, struct gap *with)
{
    int low = compare(&with->low, &to->low), high = compare(&with->high, &to->high);
    if (low < 0) {
        swap_names(&to->low.name, &with->low.name);
        to->low.score = with->low.score;
        to->low_in = with->low_in;
    }
    to->low_in |= low == 0 && with->low_in;
    if (high > 0) {
        swap_names(&to->high.name, &with->high.name);
        to->high.score = with->high.score;
        to->high.top = with->high.top;
        to->high_in = with->high_in;
    }
    to->high_in |= high == 0 && with->high_in;
}

static void learn(struct gapped *s, struct gap gap)
{
    gap.low.name = own(gap.low.name);
    gap.high.name = own(gap.high.name);
    for (size_t i = 0; i < s->n;) {
        if (!touch(&gap, &s->at[i])) {
            i++;
            continue;
        }
        unite(&gap, &s->at[i]);
        drop(s, i);
        i = 0;
    }
    add(s, gap);
}

/* ---- all of them ---- */

static uint32_t hash_of(int64_t id)
{
    return (uint32_t)(((uint64_t)id * 0x9e3779b97f4a7c15u) >> 32);
}

static struct gapped *find(const struct gaps *g, int64_t id)
{
    for (struct map_link *l = map_first(&g->sets, hash_of(id)); l; l = l->next)
        if (((struct gapped *)l)->id == id)
            return (struct gapped *)l;
    return NULL;
}

static void free_set(void *arg, struct map_link *l)
{
    struct gapped *s = (struct gapped *)l;
    (void)arg;
    while (s->n)
        drop(s, s->n - 1);
    mem_free(s);
}

struct gaps *gaps_new(uint32_t rows)
{
    struct gaps *g = mem_zalloc(sizeof *g);
    g->rows = rows;
    return g;
}

bool gaps_worth(const struct gaps *g, uint32_t passed)
{
    return passed >= g->rows;
}

void gaps_clear(struct gaps *g)
{
    if (g->sets.count == 0)
        return;
    map_each(&g->sets, free_set, NULL);
    map_clear(&g->sets);
}

void gaps_free(struct gaps *g)
{
    if (!g)
        return;
    gaps_clear(g);
    map_release(&g->sets);
    mem_free(g);
}

void gaps_put(struct gaps *g, const struct item_row *row)
{
    struct gapped *s = g->sets.count ? find(g, row->ref.id) : NULL;
    struct place p = place_of(row);
    for (size_t i = 0; s && i < s->n; i++) {
        struct gap *gap = &s->at[i];
        int low = compare(&p, &gap->low), high = compare(&p, &gap->high);
        gap->low_in &= low != 0;
        gap->high_in &= high != 0;
        if (low <= 0 || high >= 0)
            continue;
        struct gap upper = {
            .low = {.score = p.score, .name = own(p.name)}, .high = gap->high, .high_in = gap->high_in};
        gap->high = (struct place){.score = p.score, .name = own(p.name)};
        gap->high_in = false;
        add(s, upper);
        return; /* gaps do not overlap */
    }
}

/* Where a scan that begins at *p, and sees it if in, can begin as well. Gaps that meet at a member which has
   left are one from then on. */
static const struct gap *follow(struct gapped *s, bool reverse, struct place *p, bool in, gap_left_fn *left,
                                void *arg)
{
    const struct gap *found = NULL;
    for (size_t i = 0; i < s->n; i++) {
        struct gap *gap = &s->at[i];
        if (found) { /* p is the near end of what is left: does a gap begin there? */
            struct place *near = reverse ? &gap->high : &gap->low;
            bool *near_in = reverse ? &gap->high_in : &gap->low_in;
            if (gap != found && !*near_in && !near->top && compare(near, p) == 0)
                *near_in = left(arg, near->score, near->name);
        }
        if (!(reverse ? ends_in(gap, p, in) : begins_in(gap, p, in)))
            continue;
        found = gap;
        *p = reverse ? gap->low : gap->high;
        in = true;
        i = (size_t)-1; /* from the first again */
    }
    return found;
}

bool gaps_narrow(struct gaps *g, struct item_scan *q, gap_left_fn *left, void *arg)
{
    struct gapped *s = g->sets.count ? find(g, q->id) : NULL;
    if (!s)
        return true;
    struct place p = q->reverse ? high_of(q) : low_of(q);
    if (!follow(s, q->reverse, &p, !(q->reverse && q->has_max && q->below_max), left, arg))
        return true;
    if (q->reverse) {
        q->has_max = true;
        q->below_max = false;
        q->max_score = p.score;
        q->max_name = p.name;
    } else if (!p.top || !q->has_min ||
               q->min_score < p.score) { /* else it begins close to the end as it is */
        q->has_min = true;
        q->min_score = p.score;
        q->min_name = p.top ? SLICE("") : p.name;
    }
    struct place low = low_of(q), high = high_of(q);
    int c = compare(&low, &high);
    return c < 0 || (c == 0 && !(q->has_max && q->below_max));
}

void gaps_learn(struct gaps *g, const struct item_scan *q, const struct item_row *first)
{
    struct gap gap = {.low = low_of(q), .high = high_of(q), .low_in = true};
    gap.high_in = !(q->has_max && q->below_max);
    if (first && q->reverse) {
        gap.low = place_of(first);
        gap.low_in = false;
    } else if (first) {
        gap.high = place_of(first);
        gap.high_in = false;
    }
    if (compare(&gap.low, &gap.high) >= 0)
        return;
    struct gapped *s = find(g, q->id);
    if (!s) {
        if (g->sets.count == SETS)
            gaps_clear(g);
        s = mem_zalloc(sizeof *s);
        s->id = q->id;
        s->link.hash = hash_of(q->id);
        map_add(&g->sets, &s->link);
    }
    learn(s, gap);
}
