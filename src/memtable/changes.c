/* Taking changes back, and no longer being able to.

   Each change that may be undone is in a list, with the state that it made and the one that this replaced.
   When it is settled, or undone, or leaves, one of the two is nobody's any more, and its memory is used
   again: a row that is written over and over takes what its states in flight take. */
#include <assert.h>

#include "base/mem.h"
#include "memtable/memtable_internal.h"

#define KEEP_CHANGES ((size_t)1 << 12) /* room for so many is kept */

mem_mark memtable_mark(const struct memtable *m)
{
    return m->next;
}

/* Those before first_change are over: makes room. */
static void drop_first(struct memtable *m)
{
    if (m->first_change == m->nchanges) {
        m->first_change = m->nchanges = 0;
        if (m->cap_changes > KEEP_CHANGES) {
            mem_free(m->changes);
            m->changes = NULL;
            m->cap_changes = 0;
        }
    } else if (m->first_change > m->nchanges / 2 && m->first_change >= KEEP_CHANGES / 4) {
        m->nchanges -= m->first_change;
        memmove(m->changes, m->changes + m->first_change, m->nchanges * sizeof *m->changes);
        m->first_change = 0;
    }
}

/* Nothing is left: the memory of what has been is used again. */
static void when_empty(struct memtable *m)
{
    if (m->nrows || m->nranges || m->extra.count || m->ntrash)
        return;
    assert(!m->first_group && m->first_change == m->nchanges);
    m->keys = (struct group){.count = 0};
    m->many_dbs = m->based = false;
    m->max_id = 0;
    memtable_drop_blocks(m, m->spare_blocks ? 0 : 1);
}

static void set_fresh(struct state *s, const struct state *as)
{
    s->link.tag = (s->link.tag & ~TAG_FRESH) | (as->link.tag & TAG_FRESH);
}

static void undo(struct memtable *m, const struct change *c)
{
    if (!c->now) {
        m->ntrash--;
        return;
    }
    if (state_kind(c->now) == KIND_RANGE) {
        memtable_undo_range(m, c->now);
        return;
    }
    if (change_hides(c)) {
        memtable_undo_hiding(m, c->now);
        return;
    }
    if (c->before) {
        set_fresh(c->before, c->now); /* which may know better by now */
        memtable_replace(m, c->now, c->before);
    } else {
        memtable_drop(m, c->now);
    }
    state_give(m, c->now);
}

void memtable_undo(struct memtable *m, mem_mark since)
{
    assert(since >= m->settled);
    while (m->nchanges > m->first_change && m->changes[m->nchanges - 1].mark >= since)
        undo(m, &m->changes[--m->nchanges]);
    memtable_sum_ranges(m);
    drop_first(m);
    when_empty(m);
}

/* A change is over: what it replaced comes back no more. */
static void give_before(struct memtable *m, const struct change *c)
{
    if (c->before && !change_hides(c))
        state_give(m, c->before);
}

void memtable_settle(struct memtable *m, mem_mark before)
{
    if (before <= m->settled)
        return;
    m->settled = before;
    for (; m->first_change < m->nchanges && m->changes[m->first_change].mark < before; m->first_change++)
        give_before(m, &m->changes[m->first_change]);
    drop_first(m);
}

/* ---- leaving ---- */

static bool stays(const struct state *s)
{
    return s->link.tag & TAG_STAYS;
}

static bool is_in_map(const struct memtable *m, const struct state *s)
{
    const struct map_link *l = map_first(&m->rows, s->link.hash);
    while (l && l != &s->link)
        l = l->next;
    return l != NULL;
}

static void drop_row(struct memtable *m, struct state *s)
{
    memtable_drop(m, s);
    state_give(m, s);
}

/* Drops all rows but those that stay. Changes before changes[end] leave; those that were settled before are
   not in the list any more. */
static void drop_rows(struct memtable *m, size_t end)
{
    if (m->settled <= m->left) {
        for (size_t i = m->first_change; i < end; i++) {
            struct state *s = change_hides(&m->changes[i]) ? NULL : m->changes[i].now;
            if (s && !stays(s) && is_in_map(m, s)) {
                m->changes[i].now = NULL;
                drop_row(m, s);
            }
        }
        return;
    }
    struct state **all = mem_alloc(m->rows.count * sizeof *all);
    size_t n = 0, buckets = map_buckets(&m->rows);
    for (size_t i = 0; i < buckets; i++)
        for (struct map_link *l = *map_bucket(&m->rows, i); l; l = l->next)
            if (!stays((struct state *)l))
                all[n++] = (struct state *)l;
    for (size_t i = 0; i < n; i++)
        drop_row(m, all[i]);
    mem_free(all);
}

static void drop_trash(struct memtable *m, mem_mark to)
{
    size_t n = 0;
    while (n < m->ntrash && m->trash[n].mark < to)
        n++;
    m->ntrash -= n;
    if (n && m->ntrash)
        memmove(m->trash, m->trash + n, m->ntrash * sizeof *m->trash);
}

/* A change that does not leave: what it would be undone to is in the tables now, if it has left. */
static void cut_off(struct memtable *m, struct change *c)
{
    if (!c->now || !c->before || change_hides(c))
        return;
    if (stays(c->before)) {
        set_fresh(c->now, c->before);
        return;
    }
    state_give(m, c->before);
    c->before = NULL;
    c->now->link.tag &= ~TAG_FRESH;
}

/* The states of changes from changes[end] on. One that was there before, and has gone with a range since, is
   in the tables as it was: from now on it is only the row's end, and undoing that leaves nothing here. */
static void mark_those_that_stay(struct memtable *m, size_t end)
{
    for (size_t i = end; i < m->nchanges; i++)
        if (m->changes[i].now && !change_hides(&m->changes[i]))
            m->changes[i].now->link.tag |= TAG_STAYS;
    for (size_t i = end; i < m->nchanges; i++) {
        struct change *c = &m->changes[i];
        if (!change_hides(c) || stays(c->now))
            continue;
        c->before = NULL;
        c->now->link.tag = (c->now->link.tag & ~TAG_FRESH) | TAG_STAYS;
    }
}

void memtable_leave(struct memtable *m, mem_mark from, mem_mark to)
{
    assert(from >= m->left && to >= from);
    (void)from;
    size_t end = m->first_change;
    while (end < m->nchanges && m->changes[end].mark < to)
        end++;
    mark_those_that_stay(m, end);
    drop_rows(m, end);
    for (; m->first_change < end; m->first_change++)
        give_before(m, &m->changes[m->first_change]);
    for (size_t i = end; i < m->nchanges; i++)
        cut_off(m, &m->changes[i]);
    for (size_t i = end; i < m->nchanges; i++)
        if (m->changes[i].now)
            m->changes[i].now->link.tag &= ~TAG_STAYS;
    drop_trash(m, to);
    memtable_leave_ranges(m, to);
    drop_first(m);
    m->left = to;
    if (to > m->settled)
        m->settled = to;
    when_empty(m);
}
