#include "base/map.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

#define FIRST_BUCKETS  16
#define FIRST_SEGMENTS 4
#define SPARSE         4 /* with fewer entries than one for so many buckets, the map shrinks */

static struct map_link **new_segment(struct map *m, size_t buckets)
{
    struct map_link **segment = mem_zalloc(buckets * sizeof *segment);
    m->bytes += mem_size(segment);
    return segment;
}

static void free_segment(struct map *m, struct map_link **segment)
{
    m->bytes -= mem_size(segment);
    mem_free(segment);
}

static void push(struct map_link **chain, struct map_link *l)
{
    l->next = *chain;
    *chain = l;
}

/* The first buckets, a power of two. */
static void begin(struct map *m, size_t buckets)
{
    size_t most = buckets < MAP_SEGMENT ? buckets : MAP_SEGMENT;
    size_t n = buckets / most;
    m->segments_cap = n < FIRST_SEGMENTS ? FIRST_SEGMENTS : n;
    m->segments = mem_alloc(m->segments_cap * sizeof *m->segments);
    m->low = buckets - 1;
    while (m->nsegments < n)
        m->segments[m->nsegments++] = new_segment(m, most);
}

/* The first segment becomes twice as large. */
static void grow_first(struct map *m)
{
    struct map_link **old = m->segments[0];
    size_t n = m->low + 1;
    m->segments[0] = new_segment(m, n * 2);
    m->low = n * 2 - 1;
    for (size_t i = 0; i < n; i++) {
        for (struct map_link *l = old[i], *next; l; l = next) {
            next = l->next;
            push(map_chain(m, l->hash), l);
        }
    }
    free_segment(m, old);
}

/* Divides one bucket in two. */
static void divide(struct map *m)
{
    size_t fresh = map_buckets(m), bit = m->low + 1;
    if (fresh >> MAP_SEGMENT_BITS == m->nsegments)
        VEC_PUSH(m->segments, m->nsegments, m->segments_cap) = new_segment(m, MAP_SEGMENT);
    struct map_link **from = map_bucket(m, m->split), **to = map_bucket(m, fresh);
    while (*from) {
        struct map_link *l = *from;
        if (l->hash & bit) {
            *from = l->next;
            push(to, l);
        } else {
            from = &l->next;
        }
    }
    if (++m->split > m->low) {
        m->low = m->low * 2 + 1;
        m->split = 0;
    }
}

/* Joins the last bucket with the one that it was divided from. */
static void join(struct map *m)
{
    if (m->split == 0) {
        m->low /= 2;
        m->split = m->low + 1;
    }
    m->split--;
    size_t last = map_buckets(m);
    struct map_link **end = map_bucket(m, m->split);
    while (*end)
        end = &(*end)->next;
    *end = *map_bucket(m, last);
    *map_bucket(m, last) = NULL;
    if (last % MAP_SEGMENT == 0)
        free_segment(m, m->segments[--m->nsegments]);
}

void map_add(struct map *m, struct map_link *l)
{
    if (m->count >= map_buckets(m)) {
        if (!m->segments)
            begin(m, FIRST_BUCKETS);
        else if (m->low + 1 < MAP_SEGMENT)
            grow_first(m);
        else
            divide(m);
    }
    push(map_chain(m, l->hash), l);
    m->count++;
}

static struct map_link **place_of(const struct map *m, const struct map_link *l)
{
    struct map_link **at = map_chain(m, l->hash);
    while (*at != l)
        at = &(*at)->next;
    return at;
}

void map_remove(struct map *m, struct map_link *l)
{
    map_cut(m, place_of(m, l));
    /* So many at a time keep the share of entries as it is. */
    for (int i = 0; i < SPARSE && m->count < map_buckets(m) / SPARSE && m->low + m->split >= MAP_SEGMENT; i++)
        join(m);
}

void map_replace(struct map *m, struct map_link *old, struct map_link *fresh)
{
    struct map_link **at = place_of(m, old);
    fresh->next = old->next;
    *at = fresh;
}

void map_each(const struct map *m, map_fn *fn, void *arg)
{
    size_t n = map_buckets(m);
    for (size_t i = 0; i < n; i++) {
        for (struct map_link *l = *map_bucket(m, i), *next; l; l = next) {
            next = l->next;
            fn(arg, l);
        }
    }
}

void map_reserve(struct map *m, size_t entries)
{
    size_t n = FIRST_BUCKETS;
    if (m->segments || entries == 0)
        return;
    while (n < entries)
        n *= 2;
    begin(m, n);
}

void map_clear(struct map *m)
{
    size_t first = m->low + 1 < MAP_SEGMENT ? m->low + 1 : MAP_SEGMENT;
    for (size_t i = 0; i < m->nsegments; i++)
        memset(m->segments[i], 0, (i ? MAP_SEGMENT : first) * sizeof *m->segments[i]);
    m->count = 0;
}

void map_release(struct map *m)
{
    for (size_t i = 0; i < m->nsegments; i++)
        mem_free(m->segments[i]);
    mem_free(m->segments);
    *m = (struct map){0};
}
