#include "engine/memo.h"

#include "base/mem.h"
#include "base/vec.h"
#include "engine/blocks.h"

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
    mem_free(m);
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
