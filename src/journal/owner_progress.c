/* The owner takes note of what the thread has done: change sets that are durable are settled, those that
   failed are undone, a frozen memtable that is applied is retired, and a full one is frozen. */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "journal/owner.h"

#define SPARE_FACTOR  2       /* what a memtable of half of journal-max takes, and more */
#define KEEP_SPARE_US 1000000 /* how long memory for the next memtable is kept after the last commit */

/* ---- room ---- */

/* Whether the active memtable is as large as it may become before it is frozen. */
static bool is_large(const struct journal_store *s)
{
    return s->options.max_bytes && s->owner.active_bytes >= s->options.max_bytes / 2;
}

/* Whether it has to wait for the frozen one to be applied before it takes more. */
static bool full(const struct journal_store *s)
{
    return s->owner.layers.mem[1] && is_large(s);
}

bool owner_no_room(struct journal_store *s)
{
    return full(s) || locked(s)->inherited;
}

/* ---- freezing and retiring; holding the lock ---- */

void owner_drop_groups(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    for (struct journal_group *g = l->first, *next; g; g = next) {
        next = g->next;
        journal_group_free(g);
    }
    l->first = l->tail = NULL;
}

/* The thread takes the active memtable; a new one takes its place. */
static void freeze(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    struct journal_shared *l = locked(s);
    struct memtable_stats stats = memtable_stats(active(s));
    l->frozen = o->layers.mem[1] = active(s);
    l->frozen_upto = o->last_ticket;
    l->frozen_outsized = l->outsized_waits;
    o->frozen_seq = o->next_seq;
    o->layers.mem[0] = o->spare ? o->spare : memtable_new(stats.peak);
    o->spare = NULL;
    if (l->tail)
        l->tail->sealed = true;
    if (l->outsized_waits) /* they are applied with the rest */
        owner_drop_groups(s);
    o->active_bytes = 0;
    l->outsized_waits = l->freeze_wanted = false;
    pthread_cond_signal(&s->lock.work);
}

/* Not while a group goes straight into the tables: rows of it that have been changed since are there when it
   is through, which only an active memtable can take note of. */
static bool should_freeze(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (s->owner.layers.mem[1] || l->direct_runs || memtable_stats(active(s)).empty)
        return false;
    return l->freeze_wanted || l->outsized_waits || is_large(s);
}

/* The frozen memtable is applied. Its memory is kept for the next one, unless it is more than an ordinary one
   takes. */
static void retire(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    struct memtable *m = o->layers.mem[1];
    struct memtable_stats stats = memtable_stats(m);
    o->first_seq = o->frozen_seq;
    o->layers.mem[1] = NULL;
    if (o->spare || stats.bytes + stats.spare > s->options.max_bytes * SPARE_FACTOR)
        memtable_free(m);
    else
        o->spare = memtable_renew(m, stats.peak);
}

static void drop_spare(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    if (!o->spare || o->last_ticket != locked(s)->durable ||
        clock_mono_us() - o->committed_us <= KEEP_SPARE_US)
        return;
    memtable_free(o->spare);
    o->spare = NULL;
}

/* ---- settling and undoing; holding the lock ---- */

/* The active memtable has a commit's changes no more. */
static void active_loses(struct journal_store *s, const struct pending_commit *p)
{
    size_t *bytes = &s->owner.active_bytes;
    *bytes -= p->bytes < *bytes ? p->bytes : *bytes;
}

/* A group is durable: what was remembered of its change sets can go. */
static void settle(struct journal_store *s, const struct written_group *w)
{
    struct journal_owner *o = &s->owner;
    while (o->first_pending < o->npending && o->pending[o->first_pending].ticket <= w->last) {
        const struct pending_commit *p = &o->pending[o->first_pending++];
        if (w->direct && p->mem == active(s)) {
            memtable_leave(p->mem, p->from, p->to);
            o->first_seq = p->next_seq;
            active_loses(s, p);
        } else {
            memtable_settle(p->mem, p->to);
        }
    }
    if (o->first_pending == o->npending)
        o->first_pending = o->npending = 0;
}

/* The thread applies the frozen memtable until it knows that all is over, which the owner may have found out
   first: that memtable is left as it is. The owner does not read it any more. */
static bool may_undo(struct journal_store *s, const struct memtable *m)
{
    return m == active(s) || !locked(s)->failures.over;
}

/* Undoes every change set that is not durable, newest first. */
static void undo_failed(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    struct journal_shared *l = locked(s);
    while (o->npending > o->first_pending) {
        const struct pending_commit *p = &o->pending[--o->npending];
        if (may_undo(s, p->mem))
            memtable_undo(p->mem, p->from);
        if (p->mem == active(s))
            active_loses(s, p);
    }
    gaps_clear(o->layers.gaps);
    o->first_pending = o->npending = 0;
    o->last_ticket = l->committed = l->durable;
    owner_drop_groups(s);
    l->outsized_waits = l->frozen_outsized = false;
    if (l->frozen_upto > l->durable)
        l->frozen_upto = l->durable;
    l->failures.failed = ST_OK;
    pthread_cond_signal(&s->lock.work);
}

void owner_advance(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    for (size_t i = 0; i < l->nwritten; i++)
        settle(s, &l->written[i]);
    l->nwritten = 0;
    if (l->failures.failed != ST_OK)
        return;
    if (s->owner.layers.mem[1] && !l->frozen)
        retire(s);
    if (should_freeze(s))
        freeze(s);
    drop_spare(s);
}

/* ---- what the engine is told ---- */

/* Up to which ticket change sets are as durable as the durability says. */
static int64_t durable(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    return l->durability == DURABILITY_ALWAYS ? l->durable : s->owner.last_ticket;
}

int64_t owner_durable(struct store *base)
{
    struct journal_store *s = journal_store_of(base);
    journal_lock(s);
    int64_t ticket = durable(s);
    journal_unlock(s);
    return ticket;
}

static void tell_progress(struct journal_store *s, struct store_progress *ret)
{
    const struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    *ret = (struct store_progress){
        .durable = durable(s),
        .full = full(s) && f->stuck == ST_OK && f->failing == ST_OK, /* else they are refused */
        .locked = l->locked,
        .failing = f->failing != ST_OK || (owner_no_room(s) && f->stuck != ST_OK),
        .first_seq = s->owner.first_seq,
    };
}

enum status owner_progress(struct store *base, struct store_progress *ret, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    assert(!s->owner.txn.open);
    journal_lock(s);
    owner_advance(s);
    const struct journal_failures *f = &locked(s)->failures;
    enum status st = f->over ? f->why.code : f->failed;
    if (st != ST_OK) {
        *err = f->over ? f->why : f->undone;
        undo_failed(s);
    }
    tell_progress(s, ret);
    journal_unlock(s);
    for (int i = 0; i < 2; i++)
        ret->memory += s->owner.layers.mem[i] ? memtable_stats(s->owner.layers.mem[i]).bytes : 0;
    if (s->base.far) /* groups are kept, see reconcile.c */
        ret->memory += atomic_load(&s->atomics.journal_bytes);
    return st;
}

void owner_on_progress(struct store *base, store_wake_fn *fn, void *arg)
{
    struct journal_store *s = journal_store_of(base);
    journal_lock(s);
    locked(s)->wake = fn;
    locked(s)->wake_arg = arg;
    journal_unlock(s);
}
