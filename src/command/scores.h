/* Members with scores in memory: where ZUNION, ZINTER and ZDIFF put together their result. Zero-initialised
   (but for the arena) is empty. */
#ifndef LARDER_COMMAND_SCORES_H
#define LARDER_COMMAND_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

struct score {
    struct slice name;
    double score;
    uint32_t hash;
    uint32_t round; /* for the caller */
};

struct scores {
    struct arena *arena; /* names are copied to it */
    struct score *entries;
    size_t len, cap;
    uint32_t *slots; /* open addressing: 1 + place in entries, 0 = free */
    size_t nslots;
};

void scores_release(struct scores *s);

/* The entry of a name or NULL. Valid until one is added. */
struct score *scores_find(const struct scores *s, struct slice name);

/* The entry of a name, made when there is none. */
struct score *scores_add(struct scores *s, struct slice name, bool *ret_added);

/* Keeps only entries of this round, by score and then by name. None can be found by name afterwards. */
void scores_finish(struct scores *s, uint32_t round);

#endif
