/* The pool: who waits for a thread, and what becomes of a job on its executor's side. */
#include "query/threads.h"

#include <signal.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"
#include "query/threads_internal.h"
#include "store/deferred.h"

#define QUEUE_MAX 1000   /* jobs that wait for a thread */
#define GRACE_US  100000 /* how long behind its time a job may still say so itself */

/* ---- the pool ---- */

struct query_threads *query_threads_new(const struct query_threads_options *o)
{
    struct query_threads *t = mem_zalloc(sizeof *t);
    pthread_condattr_t attr;
    t->options = *o;
    if (t->options.threads > QUERY_THREADS_MAX)
        t->options.threads = QUERY_THREADS_MAX;
    t->stats.threads = t->options.threads;
    t->stats.us = &t->us;
    t->stats.open_us = &t->open_us;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->work, &attr);
    pthread_cond_init(&t->less, &attr);
    pthread_condattr_destroy(&attr);
    return t;
}

/* With the lock held. Signals stay with the threads that were there before. */
static bool start_thread(struct query_threads *t)
{
    struct query_thread *one = &t->threads[t->nthreads];
    sigset_t all, old;
    one->pool = t;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&one->id, NULL, query_thread_run, one);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    t->nthreads += !failed;
    return !failed;
}

/* False: there are too many, or no thread. */
static bool submit(struct query_threads *t, struct query_job *j)
{
    pthread_mutex_lock(&t->lock);
    bool room = !t->stop && t->stats.waiting < QUEUE_MAX;
    if (room && t->idle <= t->stats.waiting && t->nthreads < t->options.threads)
        room = start_thread(t) || t->nthreads;
    if (room) {
        j->next = NULL;
        *(t->last ? &t->last->next : &t->first) = j;
        t->last = j;
        j->queued = true;
        t->stats.waiting++;
        pthread_cond_signal(&t->work);
    } else {
        t->stats.refused++;
    }
    pthread_mutex_unlock(&t->lock);
    return room;
}

/* With the lock held. */
static void take_out(struct query_threads *t, struct query_job *j)
{
    struct query_job **at = &t->first, *before = NULL;
    while (*at != j) {
        before = *at;
        at = &before->next;
    }
    *at = j->next;
    if (!j->next)
        t->last = before;
    j->queued = false;
    t->stats.waiting--;
}

void query_threads_stop(struct query_threads *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    for (uint32_t i = 0; i < t->nthreads; i++)
        if (t->threads[i].job)
            atomic_store(&t->threads[i].job->cancel, true);
    pthread_cond_broadcast(&t->work);
    pthread_cond_broadcast(&t->less);
    uint32_t n = t->nthreads;
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(t->threads[i].id, NULL);
    pthread_mutex_lock(&t->lock);
    t->nthreads = 0;
    struct query_job *j;
    while ((j = t->first)) {
        take_out(t, j);
        query_job_unref(j);
    }
    pthread_mutex_unlock(&t->lock);
}

void query_threads_free(struct query_threads *t)
{
    if (!t)
        return;
    query_threads_stop(t);
    pthread_cond_destroy(&t->work);
    pthread_cond_destroy(&t->less);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

void query_threads_stats(struct query_threads *t, struct query_stats *ret)
{
    pthread_mutex_lock(&t->lock);
    *ret = t->stats;
    pthread_mutex_unlock(&t->lock);
}

/* ---- jobs, on their executor's side ---- */

void query_job_unref(struct query_job *j)
{
    if (atomic_fetch_sub(&j->refs, 1) == 1)
        j->kind->free(j);
}

static struct query_job *job_of(struct block_job *b)
{
    return (struct query_job *)b;
}

/* Nobody waits for it any more. */
static void leave(struct query_job *j, bool late)
{
    struct query_threads *t = j->threads;
    pthread_mutex_lock(&t->lock);
    bool queued = j->queued;
    if (queued)
        take_out(t, j);
    atomic_store(&j->cancel, true);
    *(late ? &t->stats.timed_out : &t->stats.cancelled) += 1;
    pthread_mutex_unlock(&t->lock);
    if (queued)
        query_job_unref(j);
    j->session = NULL;
    j->took_us = clock_mono_us() - j->made_us;
}

void query_job_over(struct executor *s, struct block_job *b)
{
    struct query_job *j = job_of(b);
    if (s && j->session) {
        struct session *c = j->session;
        j->session = NULL;
        j->took_us = clock_mono_us() - j->made_us;
        j->end = j->late ? QUERY_LATE : QUERY_ENDED;
        block_over(s, c);
    }
    query_job_unref(j);
}

/* Behind the commit of its transaction, which it is to see. */
static void start(struct block_job *b, struct session *c)
{
    struct query_job *j = job_of(b);
    j->session = c;
    j->store = engine_store(j->executor->engines[0]);
    j->ticket = store_commits_later(j->store) ? store_last_ticket(j->store) : 0;
    atomic_fetch_add(&j->refs, 1);
    if (submit(j->threads, j))
        return;
    query_job_unref(j);
    j->session = NULL;
    j->end = QUERY_REFUSED;
    block_over(j->executor, c);
}

static void stop(struct block_job *b, enum block_end why)
{
    static const enum query_end ends[] = {
        [BLOCK_TIMED_OUT] = QUERY_LATE,
        [BLOCK_UNBLOCKED] = QUERY_UNBLOCKED,
        [BLOCK_ERROR] = QUERY_UNBLOCKED_BY_ERROR,
        [BLOCK_SHUTDOWN] = QUERY_SHUTDOWN,
    };
    struct query_job *j = job_of(b);
    leave(j, why == BLOCK_TIMED_OUT);
    j->end = ends[why];
}

static void release(struct block_job *b)
{
    struct query_job *j = job_of(b);
    if (j->session)
        leave(j, false);
    query_job_unref(j);
}

static const struct block_job_ops job_ops = {.start = start, .stop = stop, .release = release};

void query_job_init(struct query_job *j, const struct query_job_kind *kind, struct executor *s)
{
    j->base.ops = &job_ops;
    j->kind = kind;
    j->threads = s->server->queries;
    j->executor = s;
    j->made_us = clock_mono_us();
    j->deadline_us = j->made_us + (int64_t)s->config->sql_timeout_ms * 1000;
    j->max_wal = s->config->sql_max_wal;
    atomic_init(&j->cancel, false);
    atomic_init(&j->refs, 1);
}

void query_job_begin(struct query_job *j, struct call *c)
{
    block_for(c, &j->base, j->deadline_us + GRACE_US);
}

bool query_can_move(const struct call *c)
{
    const struct query_threads *t = c->executor->server->queries;
    return t && t->options.threads && !c->script && !txn_running(c->session) && !c->session->several &&
           !block_answered(c);
}

struct query_job *query_job_of(struct call *c, const struct query_job_kind *kind)
{
    struct block_job *b = block_answered(c);
    if (!b || b->ops != &job_ops || job_of(b)->kind != kind)
        return NULL;
    c->elsewhere_us = job_of(b)->took_us;
    return job_of(b);
}
