/* A hash map of what is elsewhere: each entry holds its own link, and the map only chains them up. It owns no
   entry, compares no keys and calls no function: a caller that looks something up walks over the chain of its
   hash.

     for (struct map_link *l = map_first(m, hash); l; l = l->next)
         if (l->hash == hash && l->tag == db && slice_eq(key_of(l), key))
             return entry_of(l);

   It grows one bucket at a time (linear hashing), so that no insert ever pays for all, and shrinks the same
   way. Zero-initialised is empty. Entries do not move, and their hash does not change while they are in a
   map. */
#ifndef LARDER_BASE_MAP_H
#define LARDER_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_link {
    struct map_link *next; /* in its chain */
    uint32_t hash;
    uint32_t tag; /* the caller's: part of the key, or nothing */
};

#define MAP_SEGMENT_BITS 10
#define MAP_SEGMENT      (1u << MAP_SEGMENT_BITS)

/* Buckets 0 .. low + split are in use, where low + 1 is a power of two: those below split have been divided
   already and are addressed with one bit more. They live in segments of MAP_SEGMENT, which never move, but
   for the first one while it is smaller. */
struct map {
    struct map_link ***segments; /* NULL: nothing was ever added */
    size_t nsegments, segments_cap;
    size_t low, split;
    size_t count; /* entries */
    size_t bytes; /* of all buckets, as the allocator counts them */
};

static inline size_t map_buckets(const struct map *m)
{
    return m->segments ? m->low + 1 + m->split : 0;
}

/* The chain in bucket i < map_buckets(m). */
static inline struct map_link **map_bucket(const struct map *m, size_t i)
{
    return &m->segments[i >> MAP_SEGMENT_BITS][i & (MAP_SEGMENT - 1)];
}

/* The chain that a hash belongs to; something has been added before. */
static inline struct map_link **map_chain(const struct map *m, uint32_t hash)
{
    size_t i = hash & m->low;
    if (i < m->split)
        i = hash & (m->low * 2 + 1);
    return map_bucket(m, i);
}

/* The first entry of the chain that a hash belongs to, or NULL. */
static inline struct map_link *map_first(const struct map *m, uint32_t hash)
{
    return m->segments ? *map_chain(m, hash) : NULL;
}

/* Adds an entry, whose hash is set. */
void map_add(struct map *m, struct map_link *l);

/* Takes an entry out that is there. */
void map_remove(struct map *m, struct map_link *l);

/* Puts fresh, which has the same hash, in the place of old. */
void map_replace(struct map *m, struct map_link *old, struct map_link *fresh);

/* Takes out the entry that *at, a place in a chain, leads to. No other entry changes its chain, so that a
   walk over the buckets may go on. */
static inline void map_cut(struct map *m, struct map_link **at)
{
    *at = (*at)->next;
    m->count--;
}

/* Calls fn for each entry, in no order; fn may free it, and must not use the map. */
typedef void map_fn(void *arg, struct map_link *l);
void map_each(const struct map *m, map_fn *fn, void *arg);

/* A map that has no buckets yet gets them for so many entries: it does not have to grow while those come. */
void map_reserve(struct map *m, size_t entries);

/* Forgets all entries. map_clear keeps the buckets for others. */
void map_clear(struct map *m);
void map_release(struct map *m);

#endif
