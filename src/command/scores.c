/* The entries lie in one array, which moves as it grows and is sorted at the end: so slots with their numbers
   find them by name, and no base/map, whose entries have to stay where they are. */
#include "command/scores.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"

void scores_release(struct scores *s)
{
    mem_free(s->entries);
    mem_free(s->slots);
}

static size_t slot_of(const struct scores *s, struct slice name, uint32_t hash)
{
    size_t i = hash & (s->nslots - 1);
    while (s->slots[i]) {
        const struct score *e = &s->entries[s->slots[i] - 1];
        if (e->hash == hash && slice_eq(e->name, name))
            break;
        i = (i + 1) & (s->nslots - 1);
    }
    return i;
}

static uint32_t hash_name(struct slice name)
{
    return (uint32_t)hash_bytes(name, 0);
}

struct score *scores_find(const struct scores *s, struct slice name)
{
    if (s->len == 0)
        return NULL;
    uint32_t i = s->slots[slot_of(s, name, hash_name(name))];
    return i ? &s->entries[i - 1] : NULL;
}

static void grow(struct scores *s)
{
    s->nslots = s->nslots ? s->nslots * 2 : 64;
    mem_free(s->slots);
    s->slots = mem_zalloc(s->nslots * sizeof *s->slots);
    for (size_t i = 0; i < s->len; i++)
        s->slots[slot_of(s, s->entries[i].name, s->entries[i].hash)] = (uint32_t)i + 1;
}

struct score *scores_add(struct scores *s, struct slice name, bool *ret_added)
{
    if ((s->len + 1) * 2 > s->nslots)
        grow(s);
    uint32_t hash = hash_name(name);
    size_t slot = slot_of(s, name, hash);
    *ret_added = s->slots[slot] == 0;
    if (*ret_added) {
        struct score *e = &VEC_PUSH(s->entries, s->len, s->cap);
        *e = (struct score){.name = arena_copy(s->arena, name), .hash = hash};
        s->slots[slot] = (uint32_t)s->len;
    }
    return &s->entries[s->slots[slot] - 1];
}

static int by_score(const void *a, const void *b)
{
    const struct score *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score < y->score ? -1 : 1;
    return slice_cmp(x->name, y->name);
}

void scores_finish(struct scores *s, uint32_t round)
{
    size_t n = 0;
    for (size_t i = 0; i < s->len; i++)
        if (s->entries[i].round == round)
            s->entries[n++] = s->entries[i];
    s->len = n;
    if (n > 1)
        qsort(s->entries, n, sizeof *s->entries, by_score);
}
