/* Starts, stops and holds the worker threads, see workers.h. Which worker gets a connection: listeners.c. */
#include "server/workers.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "script/running.h"
#include "server/worker_internal.h"
#include "server/workers_internal.h"
#include "script/scripts.h"
#include "stats/stats.h"

/* ---- standing still ---- */

/* With the lock held: waits until no worker needs the others to stand still. */
static void stand(struct workers *t)
{
    t->standing++;
    pthread_cond_broadcast(&t->changed);
    while (atomic_load_explicit(&t->held, memory_order_relaxed))
        pthread_cond_wait(&t->changed, &t->lock);
    t->standing--;
}

/* With the lock held: the others go on. */
static void let_go(struct workers *t)
{
    atomic_store_explicit(&t->held, false, memory_order_relaxed);
    pthread_cond_broadcast(&t->changed);
}

bool workers_hold(struct worker *w)
{
    struct workers *t = w->workers;
    if (workers_alone(t))
        return true;
    pthread_mutex_lock(&t->lock);
    while (atomic_load_explicit(&t->held, memory_order_relaxed))
        stand(t);
    atomic_store_explicit(&t->held, true, memory_order_relaxed);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->workers[i] != w)
            worker_wake(t->workers[i]);
    while (t->standing < t->n - 1 && !running_count(&t->server))
        pthread_cond_wait(&t->changed, &t->lock);
    bool all = t->standing == t->n - 1;
    if (!all)
        let_go(t);
    pthread_mutex_unlock(&t->lock);
    return all;
}

void workers_script_busy(struct workers *t)
{
    pthread_mutex_lock(&t->lock);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

void workers_release(struct workers *t)
{
    if (workers_alone(t))
        return;
    pthread_mutex_lock(&t->lock);
    let_go(t);
    pthread_mutex_unlock(&t->lock);
}

bool workers_stand(struct worker *w)
{
    struct workers *t = w->workers;
    if (!atomic_load_explicit(&t->held, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&t->held, memory_order_relaxed))
        stand(t);
    pthread_mutex_unlock(&t->lock);
    return true;
}

void workers_leave(struct worker *w)
{
    struct workers *t = w->workers;
    pthread_mutex_lock(&t->lock);
    t->standing++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* ---- running ---- */

void workers_stop(struct workers *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        worker_stop(t->workers[i]);
}

void workers_reload(struct workers *t)
{
    worker_reload(t->workers[0]);
}

/* A worker's whole life; afterwards the others end as well. */
static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct workers *t = w->workers;
    struct error err;
    enum status st = worker_run(w, &err);
    pthread_mutex_lock(&t->lock);
    if (st != ST_OK && t->failure.code == ST_OK)
        t->failure = err;
    pthread_mutex_unlock(&t->lock);
    workers_leave(w);
    workers_stop(t);
    return NULL;
}

enum status workers_run(struct workers *t, struct error *err)
{
    uint32_t started = 1;
    int failed = 0;
    while (started < t->n && !failed) {
        failed = pthread_create(&t->threads[started], NULL, run_worker, t->workers[started]);
        if (!failed)
            started++;
    }
    if (failed) {
        error_set(&t->failure, ST_INTERNAL, "cannot make a thread: %s", strerror(failed));
        for (uint32_t i = started; i < t->n; i++)
            workers_leave(t->workers[i]);
        workers_stop(t);
    }
    run_worker(t->workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(t->threads[i], NULL);
    if (t->server.queries) /* nothing is frozen for them any more */
        query_threads_stop(t->server.queries);
    /* One session makes durable what all of them have committed. */
    engine_ending(t->workers[0]->executor.engine, t->config->shutdown_timeout_ms);
    enum status synced = engine_sync(t->workers[0]->executor.engine, err);
    if (t->failure.code != ST_OK)
        *err = t->failure;
    return t->failure.code != ST_OK ? t->failure.code : synced;
}

/* ---- life ---- */

enum status workers_new(struct config *config, const struct protocol *const *protocols,
                        struct engine *const *engines, uint32_t n, struct workers **ret, struct error *err)
{
    struct workers *t = mem_zalloc(sizeof *t);
    enum status st = ST_OK;
    assert(n > 0 && n <= WORKERS_MAX);
    t->config = config;
    t->protocols = protocols;
    t->durability = config->durability;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    server_init(&t->server);
    stats_init(&t->server);
    running_init(&t->server);
    t->server.script_cache = script_cache_new();
    for (int i = 0; i < LISTENERS; i++)
        listener_init(&t->listeners[i].listener);
    for (; t->n < n && st == ST_OK; t->n += st == ST_OK)
        st = worker_new(t, engines[t->n], &t->workers[t->n], err);
    for (uint32_t i = 0; i < t->n; i++)
        worker_share_cache(t->workers[i]);
    t->claims = n > 1 ? mem_zalloc(CLAIMS * sizeof *t->claims) : NULL;
    if (st == ST_OK)
        st = certificates_load(t, err);
    if (st == ST_OK)
        st = listeners_open(t, err);
    if (st != ST_OK) {
        workers_free(t);
        return st;
    }
    *ret = t;
    return ST_OK;
}

void workers_use_replicas(struct workers *t, struct replicas *r, struct engine *const *engines, uint32_t each)
{
    t->server.replicas = r;
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t j = 0; j < each; j++)
            worker_add_engine(t->workers[i], engines[i * each + j]);
}

void workers_use_queries(struct workers *t, query_open_fn *open, void *arg)
{
    const struct query_threads_options o = {
        .threads = (uint32_t)t->config->sql_threads,
        .databases = (uint32_t)t->config->databases,
        .open = open,
        .open_arg = arg,
    };
    t->server.queries = query_threads_new(&o);
}

void workers_free(struct workers *t)
{
    if (!t)
        return;
    listeners_close(t);
    if (t->server.queries)
        query_threads_stop(t->server.queries);
    for (uint32_t i = 0; i < t->n; i++)
        worker_free(t->workers[i]);
    stats_release(&t->server);
    running_release(&t->server);
    script_cache_free(t->server.script_cache);
    query_threads_free(t->server.queries);
    server_release(&t->server);
    mem_free(t->claims);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

int workers_port(const struct workers *t)
{
    return t->listeners[LISTEN_RESP].listener.port;
}

int workers_http_port(const struct workers *t)
{
    return t->listeners[LISTEN_HTTP].listener.port;
}

int workers_tls_port(const struct workers *t)
{
    return t->listeners[LISTEN_RESP_TLS].listener.port;
}

int workers_tls_http_port(const struct workers *t)
{
    return t->listeners[LISTEN_HTTP_TLS].listener.port;
}
