#include "engine/memo.h"

#include <assert.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/order/blocks.h"

struct memo *memo_new(int64_t id)
{
    struct memo *m = mem_zalloc(sizeof *m);
    m->id = id;
    m->own_bytes = mem_size(m);
    return m;
}

struct memo *memo_new_members(int64_t id, enum item_table table)
{
    struct memo *m = memo_new(id);
    m->has_members = true;
    m->members.table = table;
    return m;
}

void memo_free(struct memo *m)
{
    resident_release(&m->members);
    blocks_free(m->ranks);
    for (int i = 0; m->ends && i < 2; i++)
        window_release(&m->ends[i]);
    mem_free(m->ends);
    names_free(m->names);
    mem_free(m->holes);
    mem_free(m);
}

void memo_add_hole(struct memo *m, int64_t ord, int64_t numbers)
{
    assert(ord >= 0 && ord < numbers);
    if (numbers > HOLE_NUMBERS)
        return;
    if (ord >= m->nholes) {
        int64_t room = (numbers + numbers / 4 + 1023) / 1024 * 1024;
        m->holes = mem_realloc(m->holes, (size_t)room / 8);
        memset(m->holes + m->nholes / 64, 0, (size_t)(room - m->nholes) / 8);
        m->nholes = room;
    }
    m->holes[ord / 64] |= UINT64_C(1) << (ord % 64);
}

/* ---- names ---- */

#define BLOCK_BITS   512
#define BITS_A_NAME  12
#define LAYER_GROWTH 4

static void add_layer(struct item_names *n, uint64_t room)
{
    struct name_layer *l = &n->layers[n->nlayers++];
    l->nblocks = room * BITS_A_NAME / BLOCK_BITS + 1;
    l->blocks = mem_zalloc(l->nblocks * sizeof *l->blocks);
    n->bytes += mem_size(l->blocks);
    n->room = room;
    n->count = 0;
}

struct item_names *names_new(uint64_t room)
{
    struct item_names *n = mem_zalloc(sizeof *n);
    n->bytes = mem_size(n);
    add_layer(n, room);
    return n;
}

void names_free(struct item_names *n)
{
    if (!n)
        return;
    for (unsigned i = 0; i < n->nlayers; i++)
        mem_free(n->layers[i].blocks);
    mem_free(n);
}

/* All bits of a hash in each of the parts that are used: the block, and where in it. */
static uint64_t spread(uint32_t hash)
{
    uint64_t x = (hash + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return x ^ x >> 32;
}

static uint64_t *block_of(const struct name_layer *l, uint32_t hash)
{
    return l->blocks[(uint64_t)hash * l->nblocks >> 32];
}

void names_add(struct item_names *n, uint32_t hash)
{
    if (n->count == n->room && n->nlayers < NAME_LAYERS)
        add_layer(n, n->room * LAYER_GROWTH);
    uint64_t *block = block_of(&n->layers[n->nlayers - 1], hash);
    uint64_t bits = spread(hash);
    for (int i = 0; i < NAME_BITS; i++, bits >>= 9)
        block[bits >> 6 & 7] |= UINT64_C(1) << (bits & 63);
    n->count++;
}

bool names_may_have(const struct item_names *n, uint32_t hash)
{
    uint64_t all = spread(hash);
    for (unsigned layer = n->nlayers; layer-- > 0;) {
        const uint64_t *block = block_of(&n->layers[layer], hash);
        uint64_t bits = all, found = 1;
        for (int i = 0; i < NAME_BITS; i++, bits >>= 9)
            found &= block[bits >> 6 & 7] >> (bits & 63);
        if (found)
            return true;
    }
    return false;
}

/* ---- all of them ---- */

/* Ids are numbers that this program gave out: clients cannot choose them. */
static uint32_t hash_id(int64_t id)
{
    return (uint32_t)((uint64_t)id * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

void memos_release(struct memos *t)
{
    memos_drop_all(t);
    map_release(&t->by_id);
    mem_free(t->touched);
    while (t->nsparse)
        memos_forget_sparse(t);
    *t = (struct memos){0};
}

static void unlink_use(struct memos *t, struct memo *m)
{
    *(m->prev ? &m->prev->next : &t->newest) = m->next;
    *(m->next ? &m->next->prev : &t->oldest) = m->prev;
}

static void link_use(struct memos *t, struct memo *m)
{
    m->prev = NULL;
    m->next = t->newest;
    *(t->newest ? &t->newest->prev : &t->oldest) = m;
    t->newest = m;
}

struct memo *memos_find(struct memos *t, int64_t id)
{
    struct map_link *l = map_first(&t->by_id, hash_id(id));
    while (l && ((struct memo *)l)->id != id)
        l = l->next;
    struct memo *m = (struct memo *)l;
    if (m && t->newest != m) {
        unlink_use(t, m);
        link_use(t, m);
    }
    return m;
}

void memos_add(struct memos *t, struct memo *m)
{
    m->link.hash = hash_id(m->id);
    map_add(&t->by_id, &m->link);
    link_use(t, m);
    memos_count(t, m);
}

void memos_remove(struct memos *t, struct memo *m)
{
    map_remove(&t->by_id, &m->link);
    unlink_use(t, m);
    t->bytes -= m->counted;
    m->counted = 0;
}

void memos_drop(struct memos *t, struct memo *m)
{
    memos_remove(t, m);
    memo_free(m);
}

void memos_drop_touched(struct memos *t)
{
    for (size_t i = 0; i < t->ntouched; i++) {
        struct memo *m = memos_find(t, t->touched[i]);
        if (m)
            memos_drop(t, m);
    }
    t->ntouched = 0;
}

void memos_drop_all(struct memos *t)
{
    while (t->newest)
        memos_drop(t, t->newest);
}

void memos_note_sparse(struct memos *t, int64_t id, uint32_t db, struct slice key)
{
    for (size_t i = 0; i < t->nsparse; i++)
        if (t->sparse[i].id == id)
            return;
    if (t->nsparse == SPARSE_KEYS)
        return;
    struct sparse_key *k = &t->sparse[t->nsparse++];
    *k = (struct sparse_key){.id = id, .db = db, .key = mem_alloc(key.n + 1), .nkey = key.n};
    if (key.n)
        memcpy(k->key, key.p, key.n);
}

void memos_postpone_sparse(struct memos *t)
{
    struct sparse_key first = t->sparse[0];
    memmove(t->sparse, t->sparse + 1, (t->nsparse - 1) * sizeof *t->sparse);
    t->sparse[t->nsparse - 1] = first;
}

void memos_forget_sparse(struct memos *t)
{
    memos_postpone_sparse(t);
    mem_free(t->sparse[--t->nsparse].key);
}

void memos_touch(struct memos *t, struct memo *m)
{
    if (!m->touched)
        VEC_PUSH(t->touched, t->ntouched, t->touched_cap) = m->id;
    m->touched = true;
}

void memos_count(struct memos *t, struct memo *m)
{
    t->bytes -= m->counted;
    m->counted = memo_bytes(m);
    t->bytes += m->counted;
}

void memos_settle(struct memos *t)
{
    for (size_t i = 0; i < t->ntouched; i++) {
        struct memo *m = memos_find(t, t->touched[i]);
        if (m)
            m->touched = false;
    }
    t->ntouched = 0;
}

void memos_trim(struct memos *t, size_t budget)
{
    while (t->bytes > budget && t->oldest)
        memos_drop(t, t->oldest);
}
