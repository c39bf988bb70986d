#include "server/team.h"

#include <assert.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "server/certificates.h"
#include "server/team_internal.h"
#include "server/worker_internal.h"

/* ---- standing still ---- */

/* With the lock held: until nobody asks for it any more. */
static void stand(struct team *t)
{
    t->standing++;
    pthread_cond_broadcast(&t->changed);
    while (atomic_load_explicit(&t->held, memory_order_relaxed))
        pthread_cond_wait(&t->changed, &t->lock);
    t->standing--;
}

void team_hold(struct worker *w)
{
    struct team *t = w->team;
    if (team_alone(t))
        return;
    pthread_mutex_lock(&t->lock);
    while (atomic_load_explicit(&t->held, memory_order_relaxed))
        stand(t);
    atomic_store_explicit(&t->held, true, memory_order_relaxed);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->workers[i] != w)
            worker_wake(t->workers[i]);
    while (t->standing < t->n - 1)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void team_release(struct team *t)
{
    if (team_alone(t))
        return;
    pthread_mutex_lock(&t->lock);
    atomic_store_explicit(&t->held, false, memory_order_relaxed);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

bool team_stand(struct worker *w)
{
    struct team *t = w->team;
    if (!atomic_load_explicit(&t->held, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&t->lock);
    if (atomic_load_explicit(&t->held, memory_order_relaxed))
        stand(t);
    pthread_mutex_unlock(&t->lock);
    return true;
}

void team_leave(struct worker *w)
{
    struct team *t = w->team;
    pthread_mutex_lock(&t->lock);
    t->standing++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* ---- running ---- */

void team_stop(struct team *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        worker_stop(t->workers[i]);
}

void team_reload(struct team *t)
{
    worker_reload(t->workers[0]);
}

/* A worker's whole life; afterwards the others end as well. */
static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct team *t = w->team;
    struct error err;
    enum status st = worker_run(w, &err);
    pthread_mutex_lock(&t->lock);
    if (st != ST_OK && t->failure.code == ST_OK)
        t->failure = err;
    pthread_mutex_unlock(&t->lock);
    team_leave(w);
    team_stop(t);
    return NULL;
}

enum status team_run(struct team *t, struct error *err)
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
            team_leave(t->workers[i]);
        team_stop(t);
    }
    run_worker(t->workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(t->threads[i], NULL);
    /* One session makes durable what all of them have committed. */
    enum status synced = engine_sync(t->workers[0]->server.engine, err);
    if (t->failure.code != ST_OK)
        *err = t->failure;
    return t->failure.code != ST_OK ? t->failure.code : synced;
}

/* ---- life ---- */

enum status team_new(struct config *config, struct engine *const *engines, uint32_t n, struct team **ret,
                     struct error *err)
{
    struct team *t = mem_zalloc(sizeof *t);
    enum status st = ST_OK;
    assert(n > 0 && n <= SERVERS_MAX);
    t->config = config;
    t->durability = config->durability;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    commons_init(&t->commons);
    for (int i = 0; i < ENTRANCES; i++)
        listener_init(&t->entrances[i].listener);
    for (; t->n < n && st == ST_OK; t->n += st == ST_OK)
        st = worker_new(t, engines[t->n], &t->workers[t->n], err);
    if (st == ST_OK)
        st = certificates_load(t, err);
    if (st == ST_OK)
        st = entrances_open(t, err);
    if (st != ST_OK) {
        team_free(t);
        return st;
    }
    *ret = t;
    return ST_OK;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    entrances_close(t);
    for (uint32_t i = 0; i < t->n; i++)
        worker_free(t->workers[i]);
    commons_release(&t->commons);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

int team_port(const struct team *t)
{
    return t->entrances[ENTRANCE_RESP].listener.port;
}

int team_http_port(const struct team *t)
{
    return t->entrances[ENTRANCE_HTTP].listener.port;
}

int team_tls_port(const struct team *t)
{
    return t->entrances[ENTRANCE_RESP_TLS].listener.port;
}

int team_tls_http_port(const struct team *t)
{
    return t->entrances[ENTRANCE_HTTP_TLS].listener.port;
}
