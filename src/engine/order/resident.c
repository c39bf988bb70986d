/* The index of names is an array of slots and no base/map: items are small and many, most collections have
   too few for an index, and a link in each would cost them all. */
#include "engine/order/resident.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "engine/order/blocks.h"

#define INDEX_FROM 12 /* fewer names are found faster one by one */

static bool named(const struct resident *r)
{
    return r->table != ITEM_LIST;
}

static struct member *member_new(struct resident *r, struct slice name, struct slice value)
{
    struct member *m = mem_alloc(sizeof *m + name.n + value.n);
    *m = (struct member){.nname = (uint32_t)name.n, .nvalue = (uint32_t)value.n};
    if (name.n)
        memcpy(m->data, name.p, name.n);
    if (value.n)
        memcpy(m->data + name.n, value.p, value.n);
    r->bytes += mem_size(m);
    return m;
}

static void member_free(struct resident *r, struct member *m)
{
    r->bytes -= mem_size(m);
    mem_free(m);
}

void resident_release(struct resident *r)
{
    for (size_t i = 0; i < r->size; i++)
        mem_free(resident_at(r, i));
    mem_free(r->items);
    mem_free(r->slots);
    mem_free(r->sorted);
}

/* ---- the ring of items ---- */

static struct member **place(struct resident *r, size_t i)
{
    return &r->items[(r->head + i) & (r->cap - 1)];
}

static void make_room(struct resident *r)
{
    if (r->size < r->cap)
        return;
    size_t cap = r->cap ? r->cap * 2 : 4;
    struct member **items = mem_alloc(cap * sizeof *items);
    for (size_t i = 0; i < r->size; i++)
        items[i] = resident_at(r, i);
    if (r->items)
        r->bytes -= mem_size(r->items);
    mem_free(r->items);
    r->items = items;
    r->bytes += mem_size(items);
    r->cap = cap;
    r->head = 0;
}

/* Takes a place out of the ring; the shorter side moves. */
static void close_up(struct resident *r, size_t i)
{
    if (i < r->size / 2) {
        for (size_t k = i; k > 0; k--)
            *place(r, k) = *place(r, k - 1);
        r->head = (r->head + 1) & (r->cap - 1);
    } else {
        for (size_t k = i; k + 1 < r->size; k++)
            *place(r, k) = *place(r, k + 1);
    }
    r->size--;
}

/* As many numbers as are holes can be missing before a place, so that without holes there is nothing to
   search. */
size_t resident_place(const struct resident *r, int64_t ord)
{
    int64_t size = (int64_t)r->size, holes = size ? resident_at(r, r->size - 1)->ord + 1 - size : 0;
    int64_t lo = ord > holes ? ord - holes : 0, hi = ord < size ? ord : size;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (resident_at(r, (size_t)mid)->ord < ord)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (size_t)hi;
}

/* ---- the index of names ---- */

static size_t slot_of(const struct resident *r, struct slice name, uint32_t hash)
{
    size_t i = hash & (r->nslots - 1);
    while (r->slots[i] && !(r->slots[i]->hash == hash && slice_eq(member_name(r->slots[i]), name)))
        i = (i + 1) & (r->nslots - 1);
    return i;
}

static void build_index(struct resident *r)
{
    size_t n = 32;
    while (n < r->size * 4)
        n *= 2;
    if (r->slots)
        r->bytes -= mem_size(r->slots);
    mem_free(r->slots);
    r->slots = mem_zalloc(n * sizeof *r->slots);
    r->bytes += mem_size(r->slots);
    r->nslots = n;
    for (size_t i = 0; i < r->size; i++) {
        struct member *m = resident_at(r, i);
        r->slots[slot_of(r, member_name(m), m->hash)] = m;
    }
}

/* Empties a slot; those behind it that could not have their own place move up. */
static void free_slot(struct resident *r, size_t i)
{
    size_t mask = r->nslots - 1;
    for (size_t k = (i + 1) & mask; r->slots[k]; k = (k + 1) & mask) {
        size_t home = r->slots[k]->hash & mask;
        if (((k - home) & mask) >= ((k - i) & mask)) {
            r->slots[i] = r->slots[k];
            i = k;
        }
    }
    r->slots[i] = NULL;
}

struct member *resident_find(const struct resident *r, struct slice name)
{
    if (r->slots)
        return r->slots[slot_of(r, name, (uint32_t)hash_bytes(name, 0))];
    for (size_t i = 0; i < r->size; i++) {
        struct member *m = resident_at(r, i);
        if (slice_eq(member_name(m), name))
            return m;
    }
    return NULL;
}

/* ---- the order of scores ---- */

static int compare_members(const void *a, const void *b)
{
    const struct member *x = *(struct member *const *)a;
    const struct member *y = *(struct member *const *)b;
    return score_compare(x->score, member_name(x), y->score, member_name(y));
}

/* The first place in the sorted array whose member is not before (score, name). */
static size_t lower_bound(const struct resident *r, double score, struct slice name)
{
    size_t lo = 0, hi = r->size;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct member *m = r->sorted[mid];
        if (score_compare(m->score, member_name(m), score, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void sorted_room(struct resident *r)
{
    if (r->sorted_cap >= r->cap)
        return;
    if (r->sorted)
        r->bytes -= mem_size(r->sorted);
    r->sorted_cap = r->cap;
    r->sorted = mem_realloc(r->sorted, r->sorted_cap * sizeof *r->sorted);
    r->bytes += mem_size(r->sorted);
}

struct member *const *resident_sorted(struct resident *r)
{
    if (!r->sorted_valid && r->size) {
        sorted_room(r);
        for (size_t i = 0; i < r->size; i++)
            r->sorted[i] = resident_at(r, i);
        qsort(r->sorted, r->size, sizeof *r->sorted, compare_members);
    }
    r->sorted_valid = true;
    return r->sorted;
}

size_t resident_rank(struct resident *r, double score, struct slice name)
{
    resident_sorted(r);
    return lower_bound(r, score, name);
}

/* m is in the items (size counts it) but not in the sorted array yet. */
static void sorted_insert(struct resident *r, struct member *m)
{
    if (!r->sorted_valid)
        return;
    sorted_room(r);
    r->size--;
    size_t i = lower_bound(r, m->score, member_name(m));
    memmove(r->sorted + i + 1, r->sorted + i, (r->size - i) * sizeof *r->sorted);
    r->sorted[i] = m;
    r->size++;
}

/* m is still counted in size. */
static void sorted_erase(struct resident *r, const struct member *m)
{
    if (!r->sorted_valid)
        return;
    size_t i = lower_bound(r, m->score, member_name(m));
    assert(r->sorted[i] == m);
    memmove(r->sorted + i, r->sorted + i + 1, (r->size - i - 1) * sizeof *r->sorted);
}

/* ---- changing ---- */

void resident_append(struct resident *r, const struct item_row *row)
{
    make_room(r);
    struct member *m = member_new(r, row->ref.name, row->value);
    m->score = row->score;
    m->expire_at = row->expire_at;
    m->ord = row->ord;
    *place(r, r->size++) = m;
    if (!named(r))
        return;
    m->hash = (uint32_t)hash_bytes(row->ref.name, 0);
    if (r->slots && r->size * 2 <= r->nslots)
        r->slots[slot_of(r, row->ref.name, m->hash)] = m;
    else if (r->size >= INDEX_FROM)
        build_index(r);
    sorted_insert(r, m);
}

struct member *resident_update(struct resident *r, struct member *m, struct slice value, double score,
                               int64_t expire_at)
{
    bool moves = m->score < score || m->score > score;
    struct member *fresh = m;
    if (!slice_eq(value, member_value(m))) {
        fresh = member_new(r, member_name(m), value);
        fresh->hash = m->hash;
        fresh->ord = m->ord;
        fresh->score = m->score;
        *place(r, resident_place(r, m->ord)) = fresh;
        if (r->slots)
            r->slots[slot_of(r, member_name(m), m->hash)] = fresh;
        if (r->sorted_valid)
            r->sorted[lower_bound(r, m->score, member_name(m))] = fresh;
        member_free(r, m);
    }
    fresh->expire_at = expire_at;
    if (moves)
        sorted_erase(r, fresh);
    fresh->score = score;
    if (moves)
        sorted_insert(r, fresh);
    return fresh;
}

void resident_remove(struct resident *r, struct member *m)
{
    sorted_erase(r, m);
    if (r->slots)
        free_slot(r, slot_of(r, member_name(m), m->hash));
    close_up(r, resident_place(r, m->ord));
    member_free(r, m);
}

void resident_insert(struct resident *r, size_t i, struct slice value)
{
    make_room(r);
    struct member *m = member_new(r, (struct slice){"", 0}, value);
    if (i < r->size / 2) {
        r->head = (r->head - 1) & (r->cap - 1);
        r->size++;
        for (size_t k = 0; k < i; k++)
            *place(r, k) = *place(r, k + 1);
    } else {
        for (size_t k = r->size++; k > i; k--)
            *place(r, k) = *place(r, k - 1);
    }
    *place(r, i) = m;
}

void resident_set(struct resident *r, size_t i, struct slice value)
{
    member_free(r, resident_at(r, i));
    *place(r, i) = member_new(r, (struct slice){"", 0}, value);
}

void resident_erase(struct resident *r, size_t i)
{
    member_free(r, resident_at(r, i));
    close_up(r, i);
}
