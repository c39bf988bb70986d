/* The queues of blocked clients, and serving them, see block.h. */
#include "exec/block.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/num.h"
#include "exec/args.h"
#include "exec/declare.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"

#define POLL_US 10000 /* between two looks of a wait that is for no key */

/* One key that one client waits for, in the queue of that key. */
struct wait {
    struct blocked *owner;
    struct queue *queue;
    struct wait *prev, *next;
};

/* The clients that wait for one key, in the order in which they blocked. */
struct queue {
    struct map_link link; /* first; tagged with the database */
    char *key;
    size_t nkey;
    struct wait *first, *last;
};

struct blocked {
    struct blocked *prev, *next; /* in its executor's list, newest first, while it is not over */
    struct blocked *older;       /* in session->waits */
    struct session *session;
    const struct command *cmd;
    struct slice *argv;
    int argc;
    enum row_type type;
    struct wait *waits;
    int nwaits;
    struct block_poll poll; /* answer is NULL: it waits for keys */
    int64_t deadline_us;    /* of a poll; INT64_MAX: never */
    struct block_job *job;  /* it waits for this one ... */
    bool started;           /* ... which has begun */
    bool over;              /* by what the running transaction did, which may be taken back: counts no more */
    struct arena arena;
};

struct blocking {
    pthread_mutex_t lock; /* of the queues */
    struct map queues;
};

struct blocking *blocking_new(void)
{
    struct blocking *b = mem_zalloc(sizeof *b);
    pthread_mutex_init(&b->lock, NULL);
    return b;
}

void blocking_free(struct blocking *b)
{
    if (!b)
        return;
    assert(b->queues.count == 0);
    pthread_mutex_destroy(&b->lock);
    map_release(&b->queues);
    mem_free(b);
}

/* ---- queues: with the lock held ---- */

static uint32_t queue_hash(uint32_t db, struct slice key)
{
    return (uint32_t)hash_bytes(key, db);
}

static uint32_t queue_db(const struct queue *q)
{
    return q->link.tag;
}

static struct slice queue_key(const struct queue *q)
{
    return slice_of(q->key, q->nkey);
}

/* The queue of a key, or NULL. */
static struct queue *find(const struct blocking *b, uint32_t db, struct slice key, uint32_t hash)
{
    for (struct map_link *l = map_first(&b->queues, hash); l; l = l->next) {
        struct queue *q = (struct queue *)l;
        if (l->hash == hash && l->tag == db && slice_eq(queue_key(q), key))
            return q;
    }
    return NULL;
}

static struct queue *queue_for(struct blocking *b, uint32_t db, struct slice key)
{
    uint32_t hash = queue_hash(db, key);
    struct queue *q = find(b, db, key, hash);
    if (!q) {
        q = mem_alloc(sizeof *q);
        *q = (struct queue){.link = {.hash = hash, .tag = db}, .key = mem_strndup(key), .nkey = key.n};
        map_add(&b->queues, &q->link);
    }
    return q;
}

static void join(struct wait *w)
{
    struct queue *q = w->queue;
    w->prev = q->last;
    *(q->last ? &q->last->next : &q->first) = w;
    q->last = w;
}

static void leave(struct blocking *b, struct wait *w)
{
    struct queue *q = w->queue;
    *(w->prev ? &w->prev->next : &q->first) = w->next;
    *(w->next ? &w->next->prev : &q->last) = w->prev;
    if (q->first)
        return;
    map_remove(&b->queues, &q->link);
    mem_free(q->key);
    mem_free(q);
}

/* ---- waiting ---- */

bool block_timeout_arg(struct call *c, int i, int64_t *ret_us)
{
    long double seconds;
    if (!num_parse_long_double(c->argv[i], &seconds)) {
        reply_error(c->reply, "ERR timeout is not a float or out of range");
        return false;
    }
    /* What does not fit into milliseconds counts as negative, as in Redis. */
    long double ms = ceill(seconds * 1000);
    if (ms < 0 || ms > (long double)INT64_MAX) {
        reply_error(c->reply, "ERR timeout is negative");
        return false;
    }
    *ret_us = ms > (long double)(INT64_MAX / 4000) ? INT64_MAX / 4 : (int64_t)ms * 1000;
    return true;
}

bool block_wants(const struct call *c, struct slice key)
{
    return !c->serving || slice_eq(key, c->serving_key);
}

/* Takes it out of the queues. */
static void free_blocked(struct executor *s, struct blocked *k)
{
    struct blocking *b = s->server->blocking;
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < k->nwaits; i++)
        leave(b, &k->waits[i]);
    pthread_mutex_unlock(&b->lock);
    mem_free(k->waits);
    if (k->job)
        k->job->ops->release(k->job);
    arena_release(&k->arena);
    mem_free(k);
}

static void set_over(struct blocking *b, struct blocked *k, bool over)
{
    pthread_mutex_lock(&b->lock);
    k->over = over;
    pthread_mutex_unlock(&b->lock);
}

/* Where it is listed: who waits for a job waits for nothing that a command could make appear. */
static struct blocked **list_of(struct executor *s, const struct blocked *k)
{
    return k->job ? &s->job_waiters : &s->waiters;
}

/* A client of this executor waits from here on. */
static void begin_wait(struct executor *s, struct blocked *k)
{
    struct blocked **list = list_of(s, k);
    k->prev = NULL;
    k->next = *list;
    if (k->next)
        k->next->prev = k;
    *list = k;
    *(k->job ? &s->njob_waiters : &s->nwaiters) += 1;
    if (k->job)
        return;
    atomic_fetch_add(&s->server->nblocked, 1);
    view_watch_ready(s->view, true);
}

static struct blocked *new_blocked(struct call *c)
{
    struct blocked *k = mem_zalloc(sizeof *k);
    *k = (struct blocked){.session = c->session, .cmd = c->cmd, .argc = c->argc};
    k->argv = arena_alloc(&k->arena, (size_t)c->argc * sizeof *k->argv);
    for (int i = 0; i < c->argc; i++)
        k->argv[i] = arena_copy(&k->arena, c->argv[i]);
    return k;
}

/* The session waits from here on, to be woken at this moment, 0: never. */
static void block_session(struct call *c, struct blocked *k, int64_t wake_us)
{
    k->older = c->session->waits;
    c->session->waits = c->session->state.blocked = k;
    begin_wait(c->executor, k);
    c->session->ops->block(c->session, wake_us);
}

void block_on(struct call *c, enum row_type type, int first, int nkeys, int64_t timeout_us)
{
    if (c->serving)
        return;
    if (txn_running(c->session) || c->session->no_block) {
        reply_null_array(c->reply);
        return;
    }
    struct blocking *b = c->executor->server->blocking;
    struct blocked *k = new_blocked(c);
    k->type = type;
    k->nwaits = nkeys;
    k->waits = mem_zalloc((size_t)nkeys * sizeof *k->waits);
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < nkeys; i++) {
        k->waits[i] = (struct wait){.owner = k, .queue = queue_for(b, call_db(c), c->argv[first + i])};
        join(&k->waits[i]);
    }
    pthread_mutex_unlock(&b->lock);
    block_session(c, k, timeout_us ? clock_mono_us() + timeout_us : 0);
}

/* When a poll is to look again. */
static int64_t next_look(const struct blocked *k)
{
    int64_t soon = clock_mono_us() + POLL_US;
    return k->deadline_us < soon ? k->deadline_us : soon;
}

void block_until(struct call *c, const struct block_poll *p, int64_t timeout_us)
{
    struct blocked *k = new_blocked(c);
    k->poll = *p;
    k->deadline_us = timeout_us ? clock_mono_us() + timeout_us : INT64_MAX;
    block_session(c, k, next_look(k));
}

static void end_wait(struct executor *s, struct blocked *k)
{
    struct blocking *b = s->server->blocking;
    *(k->prev ? &k->prev->next : list_of(s, k)) = k->next;
    if (k->next)
        k->next->prev = k->prev;
    *(k->job ? &s->njob_waiters : &s->nwaiters) -= 1;
    if (!k->job && atomic_fetch_sub(&s->server->nblocked, 1) == 1)
        view_watch_ready(s->view, false);
    set_over(b, k, true);
}

void block_free_unused(struct executor *s, struct session *c)
{
    for (struct blocked **at = &c->waits, *k; (k = *at);) {
        if (k == c->state.blocked || k == c->state.answered) {
            at = &k->older;
        } else {
            *at = k->older;
            free_blocked(s, k);
        }
    }
}

void block_forget(struct executor *s, struct session *c)
{
    if (!c->state.blocked && !c->state.answered)
        return;
    if (c->state.blocked)
        end_wait(s, c->state.blocked);
    c->state.blocked = c->state.answered = NULL;
    if (!c->copies)
        block_free_unused(s, c);
}

void block_restored(struct executor *s, struct session *c)
{
    for (struct blocked *k = c->waits; k; k = k->older)
        if (k != c->state.blocked && !k->over)
            end_wait(s, k);
    if (c->state.blocked && c->state.blocked->over) {
        set_over(s->server->blocking, c->state.blocked, false);
        begin_wait(s, c->state.blocked);
    }
}

/* ---- jobs ---- */

void block_for(struct call *c, struct block_job *job, int64_t deadline_us)
{
    struct blocked *k = mem_zalloc(sizeof *k);
    *k = (struct blocked){.session = c->session, .cmd = c->cmd, .job = job};
    c->executor->jobs_due = c->moved = true;
    block_session(c, k, deadline_us);
}

bool block_waits_for_job(const struct session *c)
{
    return c->state.blocked && c->state.blocked->job;
}

void block_start_jobs(struct executor *s)
{
    s->jobs_due = false;
    for (struct blocked *k = s->job_waiters, *next; k; k = next) {
        next = k->next; /* one that cannot start is over at once */
        bool starts = !k->started;
        k->started = true;
        if (starts)
            k->job->ops->start(k->job, k->session);
    }
}

void block_over(struct executor *s, struct session *c)
{
    struct blocked *k = c->state.blocked;
    c->ops->reply_begin(c); /* says nothing: the call does, when it runs again */
    end_wait(s, k);
    c->state.blocked = NULL;
    c->state.answered = k;
    c->ops->reply_end(c, 0);
}

struct block_job *block_answered(const struct call *c)
{
    return c->session->state.answered ? c->session->state.answered->job : NULL;
}

void block_forget_answer(struct executor *s, struct session *c)
{
    c->state.answered = NULL;
    if (!c->copies)
        block_free_unused(s, c);
}

static void stop_job(struct executor *s, struct session *c, enum block_end why)
{
    struct block_job *job = c->state.blocked->job;
    job->ops->stop(job, why);
    block_over(s, c);
}

void block_end_jobs(struct executor *s)
{
    while (s->job_waiters)
        stop_job(s, s->job_waiters->session, BLOCK_SHUTDOWN);
}

/* ---- the end of a wait ---- */

void block_give_up(struct executor *s, struct session *c, bool error)
{
    if (block_waits_for_job(c)) {
        stop_job(s, c, error ? BLOCK_ERROR : BLOCK_UNBLOCKED);
        return;
    }
    const struct block_poll *poll = &c->state.blocked->poll;
    struct reply *reply = c->ops->reply_begin(c);
    if (error)
        reply_error(reply, "UNBLOCKED client unblocked via CLIENT UNBLOCK");
    else if (poll->answer)
        poll->answer(s, c, reply, poll, true);
    else
        reply_null_array(reply);
    block_forget(s, c);
    c->ops->reply_end(c, 0);
}

void block_timer(struct executor *s, struct session *c)
{
    const struct blocked *k = c->state.blocked;
    if (k->job) {
        stop_job(s, c, BLOCK_TIMED_OUT);
        return;
    }
    if (!k->poll.answer || clock_mono_us() >= k->deadline_us) {
        block_give_up(s, c, false);
        return;
    }
    struct reply *reply = c->ops->reply_begin(c);
    bool answered = k->poll.answer(s, c, reply, &k->poll, false);
    if (answered)
        block_forget(s, c);
    else
        c->ops->block(c, next_look(k));
    c->ops->reply_end(c, 0);
}

/* ---- serving ---- */

void block_begin(struct executor *s)
{
    view_watch_ready(s->view, block_clients(s->server) > 0);
}

/* Runs a waiting command with the key that has something. True when it got its reply. */
static bool serve(struct executor *s, struct blocked *k, struct slice key, const struct error *write_err)
{
    struct session *c = k->session;
    struct reply *reply = c->ops->reply_begin(c);
    size_t mark = reply->ops->mark(reply);
    struct slice *argv = k->argv;
    bool kept = c->copies > 0; /* then it outlives the batch by itself */
    if (!kept)
        arena_adopt(view_arena(s->view), &k->arena);
    struct command_result result = command_serve(s, c, k->cmd, argv, k->argc, reply, key, write_err);
    bool served = reply->ops->mark(reply) != mark;
    if (served) {
        block_forget(s, c);
    } else if (!kept) {
        /* Still waiting: the arguments are needed for longer than this batch. */
        k->argv = arena_alloc(&k->arena, (size_t)k->argc * sizeof *k->argv);
        for (int i = 0; i < k->argc; i++)
            k->argv[i] = arena_copy(&k->arena, argv[i]);
    }
    c->ops->reply_end(c, result.ticket);
    return served;
}

/* The first in a key's queue, behind `after` (NULL: of all), that waits for this type. */
static struct wait *next_in_line(struct blocking *b, uint32_t db, struct slice key, const struct wait *after,
                                 enum row_type type)
{
    const struct queue *q = find(b, db, key, queue_hash(db, key));
    struct wait *w = after ? after->next : q ? q->first : NULL;
    while (w && (w->owner->type != type || w->owner->over || (after && w->owner == after->owner)))
        w = w->next;
    return w;
}

/* Serves the queue of one key while the key has what its clients wait for, up to the first that is another
   executor's. One that gets nothing all the same waits on, and the next has a chance. */
static void serve_key(struct executor *s, uint32_t db, struct slice key, const struct error *write_err)
{
    struct blocking *b = s->server->blocking;
    const struct wait *passed = NULL;
    const struct row *row;
    while (view_get(s->view, db, key, &row) == ST_OK && row) {
        pthread_mutex_lock(&b->lock);
        struct wait *w = next_in_line(b, db, key, passed, (enum row_type)row->type);
        struct executor *whose = w ? w->owner->session->executor : NULL;
        pthread_mutex_unlock(&b->lock);
        if (whose && whose != s)
            s->others_due |= UINT64_C(1) << whose->index;
        if (whose != s)
            return;
        if (!serve(s, w->owner, key, write_err))
            passed = w;
    }
}

void block_serve_all(struct executor *s, const struct error *write_err)
{
    struct arena *arena = view_arena(s->view);
    size_t n = 0, at = 0;
    /* Serving ends waits, so the keys are listed first. */
    for (const struct blocked *k = s->waiters; k; k = k->next)
        n += (size_t)k->nwaits;
    struct key_ref *keys = arena_alloc(arena, (n + 1) * sizeof *keys);
    for (const struct blocked *k = s->waiters; k; k = k->next)
        for (int i = 0; i < k->nwaits; i++) {
            const struct queue *q = k->waits[i].queue;
            keys[at++] = (struct key_ref){queue_db(q), arena_copy(arena, queue_key(q))};
        }
    while (at > 0) { /* from the one that has waited longest */
        at--;
        serve_key(s, keys[at].db, keys[at].key, write_err);
    }
    block_serve(s, write_err);
}

void block_serve_ready(struct executor *s, const struct error *write_err)
{
    uint32_t db;
    struct slice key;
    bool all;
    while (block_clients(s->server) && view_next_ready(s->view, &db, &key, &all)) {
        if (!all) {
            serve_key(s, db, key, write_err);
            continue;
        }
        block_serve_all(s, write_err);
        s->others_due = UINT64_MAX;
    }
}

void block_declare(struct executor *s)
{
    for (const struct blocked *k = s->waiters; k; k = k->next)
        if (k->nwaits)
            declare_keys(s->view, queue_db(k->waits[0].queue), k->cmd, k->argv, k->argc);
}

bool block_anything(struct executor *s)
{
    for (const struct blocked *k = s->waiters; k; k = k->next) {
        for (int i = 0; i < k->nwaits; i++) {
            const struct queue *q = k->waits[i].queue;
            const struct row *row;
            if (view_get(s->view, queue_db(q), queue_key(q), &row) != ST_OK)
                return false;
            if (row && row->type == k->type)
                return true;
        }
    }
    return false;
}
