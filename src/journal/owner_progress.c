/* The owner takes note of what the thread has done: change sets that are durable are settled, those that
   failed are undone, a frozen memtable that is applied is retired, and a full one is frozen. */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "journal/owner.h"
#include "journal/writer.h"

#define SMALL_MEMORY  ((size_t)2 << 20) /* memory comes in pieces: below, bytes of rows count alone */
#define KEEP_SPARE_US 1000000 /* how long memory for the next memtable is kept after the last commit */

/* ---- room ---- */

/* All memory that there is for memtables, with what a cache lends. */
static size_t memory_max(const struct journal_store *s)
{
    return s->options.max_bytes ? s->options.max_bytes + s->options.loan_bytes : 0;
}

/* What the active memtable takes, with its part of the room in which one of the two is sorted. */
static size_t active_memory(const struct journal_store *s)
{
    struct memtable_stats stats = memtable_stats(active(s));
    return stats.bytes + stats.rows * MEM_APPLY_ROW / 2;
}

/* Whether the active memtable is as large as it may become before it is frozen: of the two that there are at
   most, each may take half of the memory. */
static bool is_large(const struct journal_store *s)
{
    size_t half = memory_max(s) / 2, memory = active_memory(s);
    bool by_rows = s->owner.active_bytes >= half && (!s->redo || half < SMALL_MEMORY);
    return half && (by_rows || (memory >= half && memory >= SMALL_MEMORY));
}

/* The share that is used of what may be written while the frozen memtable is brought into the tables: of half
   of the memory, and of half of the log. */
static double filled(struct journal_store *s)
{
    double half = (double)memory_max(s) / 2, log = (double)s->options.log_max / 2;
    double memory = (double)active_memory(s) / (half < SMALL_MEMORY ? SMALL_MEMORY : half);
    double logged = log > 0 ? (double)locked(s)->log.bytes / log : 0;
    if ((half < SMALL_MEMORY || !s->redo) && (double)s->owner.active_bytes / half > memory)
        memory = (double)s->owner.active_bytes / half;
    return memory > logged ? memory : logged;
}

/* The same of the log: what the active memtable holds takes half of it. */
static bool log_is_half(struct journal_store *s)
{
    return s->redo && s->options.log_max && locked(s)->log.bytes >= s->options.log_max / 2;
}

/* Whether it has to wait for the frozen one to be applied before it takes more. */
static bool full(struct journal_store *s)
{
    return s->owner.layers.mem[1] && (is_large(s) || log_is_half(s));
}

typedef bool throttle_fn(const struct throttle *t, double filled, int64_t now);

/* Whether writers wait: as above, or because they would fill it before the other is applied (throttle.h);
   says: what decides that, for those who write much or for all. */
static bool waits(struct journal_store *s, throttle_fn *says)
{
    if (!(s->redo || s->third) || !s->owner.layers.mem[1])
        return full(s);
    return full(s) || says(&locked(s)->throttle, filled(s), clock_mono_us());
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
    l->frozen_us = l->active_us;
    l->active_us = 0;
    l->log.bytes = 0;
    l->frozen_wall_ms = clock_wall_us() / 1000;
    throttle_freeze(&l->throttle, stats.rows, clock_mono_us());
    l->outsized_waits = l->freeze_wanted = false;
    pthread_cond_signal(&s->lock.work);
    logger_wake(s);
}

/* Not while a group goes straight into the tables: rows of it that have been changed since are there when it
   is through, which only an active memtable can take note of. */
static bool should_freeze(struct journal_store *s)
{
    const struct journal_shared *l = locked(s);
    if (s->owner.layers.mem[1] || l->direct_runs || memtable_stats(active(s)).empty)
        return false;
    return l->freeze_wanted || l->outsized_waits || is_large(s) || log_is_half(s);
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
    throttle_end(&locked(s)->throttle, clock_mono_us());
    if (o->spare || stats.bytes + stats.spare > memory_max(s))
        memtable_free(m);
    else
        o->spare = memtable_renew(m, stats.peak);
}

static void drop_spare(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    if (o->last_ticket != locked(s)->durable || clock_mono_us() - o->committed_us <= KEEP_SPARE_US)
        return;
    memtable_trim(active(s));
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

/* Changes that went straight into the tables: they leave the active memtable together, because that looks at
   all that stays. */
struct leaving {
    mem_mark from, to;
    bool any;
};

static void let_leave(struct journal_store *s, struct leaving *v)
{
    if (v->any)
        memtable_leave(active(s), v->from, v->to);
    v->any = false;
}

/* A group is durable: what was remembered of its change sets can go. */
static void settle(struct journal_store *s, const struct written_group *w, struct leaving *v)
{
    struct journal_owner *o = &s->owner;
    while (o->first_pending < o->npending && o->pending[o->first_pending].ticket <= w->last) {
        const struct pending_commit *p = &o->pending[o->first_pending++];
        if (w->direct && p->mem == active(s)) {
            if (!v->any)
                v->from = p->from;
            v->any = true;
            v->to = p->to;
            o->first_seq = p->next_seq;
            active_loses(s, p);
        } else {
            let_leave(s, v);
            memtable_settle(p->mem, p->to);
        }
    }
    if (o->first_pending == o->npending)
        o->first_pending = o->npending = 0;
}

static void settle_written(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    struct leaving v = {0};
    for (size_t i = 0; i < l->nwritten; i++)
        settle(s, &l->written[i], &v);
    let_leave(s, &v);
    l->nwritten = 0;
}

/* The thread applies the frozen memtable until it knows that all is over, which the owner may have found out
   first: that memtable is left as it is. The owner does not read it any more. */
static bool may_undo(struct journal_store *s, const struct memtable *m)
{
    return m == active(s) || !locked(s)->failures.over;
}

/* Undoes every change set that is not durable, newest first. A group that is on its way into the log may
   still become so. */
static void undo_failed(struct journal_store *s)
{
    struct journal_owner *o = &s->owner;
    struct journal_shared *l = locked(s);
    while (l->log.busy)
        journal_wait(s, &s->lock.told, INT64_MAX);
    settle_written(s);
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
    if (memtable_stats(active(s)).empty)
        l->active_us = 0;
    pthread_cond_signal(&s->lock.work);
    logger_wake(s);
}

void owner_advance(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    settle_written(s);
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

/* What a memtable takes, with its part of the room for sorting, and what it has taken before and keeps: all
   of it is memory that others cannot have, so that what is borrowed does not go up and down with each pass.
 */
static size_t taken(const struct memtable *m)
{
    struct memtable_stats stats = m ? memtable_stats(m) : (struct memtable_stats){0};
    return stats.bytes + stats.spare + stats.rows * MEM_APPLY_ROW / 2;
}

static size_t borrowed(const struct journal_owner *o, const struct journal_options *j)
{
    size_t all = taken(o->layers.mem[0]) + taken(o->layers.mem[1]) + taken(o->spare);
    return j->loan_bytes && all > j->max_bytes ? all - j->max_bytes : 0;
}

static void tell_progress(struct journal_store *s, struct store_progress *ret)
{
    const struct journal_shared *l = locked(s);
    const struct journal_failures *f = &l->failures;
    bool refused = f->stuck != ST_OK || f->failing != ST_OK, slow = !refused && waits(s, throttle_waits);
    *ret = (struct store_progress){
        .durable = durable(s),
        .full = slow,
        .stops = slow && waits(s, throttle_stops),
        .locked = l->locked,
        .failing = f->failing != ST_OK || (owner_no_room(s) && f->stuck != ST_OK),
        .first_seq = s->owner.first_seq,
        .borrowed = borrowed(&s->owner, &s->options),
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

void owner_alone(struct store *base, bool alone)
{
    journal_store_of(base)->owner.alone = alone;
}

void owner_on_progress(struct store *base, store_wake_fn *fn, void *arg)
{
    struct journal_store *s = journal_store_of(base);
    journal_lock(s);
    locked(s)->wake = fn;
    locked(s)->wake_arg = arg;
    journal_unlock(s);
}
