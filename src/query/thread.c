/* One thread of the pool: takes jobs, opens a snapshot for each, runs it, tells its executor. */
#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "query/threads_internal.h"
#include "store/deferred.h"
#include "store/journal_rows.h"
#include "store/shared.h"
#include "store/snapshot.h"

#define CACHE_BYTES  ((size_t)8 << 20) /* of a thread's engine */
#define RECONNECT_US 2000000           /* how long a job waits for a lost connection to be made anew */
#define PAUSE_US     20000

/* ---- waiting ---- */

static bool job_stops(void *arg)
{
    const struct query_job *j = arg;
    return atomic_load_explicit(&j->cancel, memory_order_relaxed) || clock_mono_us() >= j->deadline_us;
}

/* While the thread has no job (it connects, or closes) nothing is to be waited for. */
static bool thread_stops(void *arg)
{
    const struct query_thread *t = arg;
    return !t->job || job_stops(t->job);
}

static void pause_a_moment(void)
{
    const struct timespec moment = {.tv_nsec = PAUSE_US * 1000L};
    nanosleep(&moment, NULL);
}

static void wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_us)
{
    const struct timespec ts = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(c, lock, &ts);
}

static enum status give_up(struct error *err)
{
    return error_set(err, ST_BUSY, "there was no time left for it");
}

/* ---- a snapshot ---- */

static void close_session(struct query_thread *t)
{
    engine_free(t->engine);
    store_close(t->store);
    t->engine = NULL;
    t->store = NULL;
}

static enum status open_session(struct query_thread *t, struct error *err)
{
    const struct query_threads_options *o = &t->pool->options;
    const struct engine_options e = {.databases = o->databases, .cache_memory = CACHE_BYTES};
    if (t->store)
        return ST_OK;
    enum status st = o->open(o->open_arg, thread_stops, t, &t->store, err);
    if (st == ST_OK)
        st = engine_new(t->store, &e, &t->engine, err);
    if (st != ST_OK)
        close_session(t);
    return st;
}

static bool log_is_long(struct query_thread *t, uint64_t most)
{
    struct store_info info;
    struct error ignored;
    return store_info(t->store, &info, &ignored) == ST_OK && info.wal_bytes > most;
}

/* An old snapshot keeps the log of a file from starting over; a new one would do so for longer. */
static void wait_for_log(struct query_thread *t, struct query_job *j)
{
    struct query_threads *p = t->pool;
    if (t->store->far)
        return;
    pthread_mutex_lock(&p->lock);
    while (p->snapshots > 0 && !job_stops(j)) {
        pthread_mutex_unlock(&p->lock);
        bool is_long = log_is_long(t, j->max_wal);
        pthread_mutex_lock(&p->lock);
        if (!is_long)
            break;
        wait_until(&p->less, &p->lock, clock_mono_us() + PAUSE_US);
    }
    p->snapshots++;
    pthread_mutex_unlock(&p->lock);
}

static void close_snapshot(struct query_thread *t)
{
    struct query_threads *p = t->pool;
    if (t->store->far)
        return;
    pthread_mutex_lock(&p->lock);
    p->snapshots--;
    pthread_cond_broadcast(&p->less);
    pthread_mutex_unlock(&p->lock);
}

/* Begins to read. What the first read sees, all others do. */
static enum status begin(struct query_thread *t, struct error *err)
{
    struct error no_writes;
    engine_forget(t->engine);
    enum status st = engine_begin(t->engine, false, &no_writes, err);
    if (st == ST_OK && !store_shared(t->store) && (st = store_confirm(t->store, err)) != ST_OK)
        engine_abandon(t->engine);
    return st;
}

/* Once. *ret_again: it was too late, or the database is another than it was: nothing is open. */
static enum status try_snapshot(struct query_thread *t, struct query_job *j, bool *ret_again,
                                struct error *err)
{
    const struct snapshot_want want = {.ticket = j->ticket, .stop = job_stops, .arg = j};
    uint64_t number, connection = store_connection(t->store);
    if (!store_has_snapshots(j->store))
        return begin(t, err);
    enum status st = snapshot_enter(j->store, &want, &number, err);
    if (st != ST_OK)
        return st;
    st = begin(t, err);
    *ret_again = !snapshot_leave(j->store, number) || store_connection(t->store) != connection;
    if (st == ST_OK && *ret_again)
        engine_abandon(t->engine);
    return st;
}

static enum status open_snapshot(struct query_thread *t, struct query_job *j, struct error *err)
{
    int64_t patience = clock_mono_us() + RECONNECT_US;
    for (;;) {
        bool again = false;
        enum status st = job_stops(j) ? give_up(err) : try_snapshot(t, j, &again, err);
        if (st == ST_OK && !again)
            return ST_OK;
        if (st != ST_OK && (st != ST_IO || clock_mono_us() >= patience))
            return st;
        if (st != ST_OK)
            pause_a_moment();
    }
}

/* ---- jobs ---- */

static void *tools_for(struct query_thread *t, const struct query_job_kind *kind)
{
    if (t->kind != kind && t->kind)
        t->kind->close(t->tools);
    if (t->kind != kind)
        t->tools = kind->open();
    t->kind = kind;
    return t->tools;
}

static enum status run(struct query_thread *t, struct query_job *j, struct error *err)
{
    void *tools = tools_for(t, j->kind);
    engine_enter(t->engine);
    enum status st = j->kind->run(j, tools, t->engine, err);
    engine_leave(t->engine, st == ST_OK);
    engine_abandon(t->engine);
    engine_drop_tally(t->engine);
    return st;
}

static void run_job(struct query_thread *t, struct query_job *j)
{
    enum status st = open_session(t, &j->err);
    if (st == ST_OK) {
        wait_for_log(t, j);
        st = open_snapshot(t, j, &j->err);
        pthread_mutex_lock(&t->pool->lock);
        histogram_add(&t->pool->open_us, (uint64_t)(clock_mono_us() - j->made_us));
        pthread_mutex_unlock(&t->pool->lock);
        if (st == ST_OK)
            st = run(t, j, &j->err);
        close_snapshot(t);
    }
    if (st == ST_LOCKED || st == ST_CORRUPT) /* the session is good for nothing any more */
        close_session(t);
    j->late |= st != ST_OK && clock_mono_us() >= j->deadline_us;
    j->status = st;
}

static struct query_job *next_job(struct query_thread *t)
{
    struct query_threads *p = t->pool;
    while (!p->first && !p->stop) {
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
    }
    struct query_job *j = p->stop ? NULL : p->first;
    if (!j)
        return NULL;
    p->first = j->next;
    if (!p->first)
        p->last = NULL;
    j->queued = false;
    p->stats.waiting--;
    p->stats.running++;
    t->job = j;
    return j;
}

/* With the lock held: what has become of it. One that nobody waits for was counted when they left. */
static void count(struct query_threads *p, const struct query_job *j)
{
    p->stats.running--;
    histogram_add(&p->us, (uint64_t)(clock_mono_us() - j->made_us));
    if (atomic_load(&j->cancel))
        return;
    p->stats.timed_out += j->late;
    p->stats.failed += j->status != ST_OK && !j->late;
    p->stats.done += j->status == ST_OK && !j->late;
}

void *query_thread_run(void *arg)
{
    struct query_thread *t = arg;
    struct query_threads *p = t->pool;
    struct query_job *j;
    pthread_mutex_lock(&p->lock);
    while ((j = next_job(t))) {
        pthread_mutex_unlock(&p->lock);
        run_job(t, j);
        pthread_mutex_lock(&p->lock);
        t->job = NULL;
        count(p, j);
        pthread_mutex_unlock(&p->lock);
        j->executor->job_over(j->executor, &j->base, query_job_over);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    if (t->kind)
        t->kind->close(t->tools);
    close_session(t);
    return NULL;
}
