/* The threads that ask: one for each database, so that one that hangs keeps none of the others waiting. Each
   has a session of its own, and asks in one round trip; replicas a little after the primary, so that they
   have had the time to replay what it said.

   Nothing is written, but by the session on the primary what every session there writes: the branch of a new
   primary (store/history.h). A database that is away costs its thread alone. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "replica/replicas_internal.h"
#include "store/replicated.h"
#include "store/store.h"

#define BEHIND_US       50000 /* the primary, in each period */
#define HURRY_PERIOD_US 10000
#define PRIMARY_MIN_MS  1000 /* for an answer */

struct prober {
    struct replicas *replicas;
    uint32_t i;
    pthread_t thread;
    bool running;
    struct store_options options;
    struct store *store; /* the thread's; NULL: it could not be opened yet */
};

static enum status ask(struct prober *p, struct answer *ret, struct error *err)
{
    if (!p->store) {
        enum status st = store_open(&p->options, &p->store, err);
        if (st != ST_OK) {
            p->store = NULL;
            return st;
        }
    }
    if (!store_replicated(p->store))
        return error_set(err, ST_INVALID, "it tells no positions");
    ret->asked = clock_boot_us();
    return p->store->replicated->now(p->store, &ret->at, err);
}

static enum failure failure_of(const struct prober *p, enum status st, int64_t took)
{
    if (took >= (int64_t)p->options.timeout_ms * 1000)
        return HANGS;
    return st == ST_IO || st == ST_BUSY || st == ST_UNKNOWN ? FAILED : UNFIT;
}

/* One check. The lock is held, and released meanwhile. */
static void check(struct prober *p)
{
    struct replicas *r = p->replicas;
    struct answer a = {0};
    struct error err = {0};
    pthread_mutex_unlock(&r->lock);
    int64_t begun = clock_boot_us();
    enum status st = ask(p, &a, &err);
    a.answered = clock_boot_us();
    pthread_mutex_lock(&r->lock);
    if (r->stopping)
        return;
    if (st == ST_OK)
        rotation_answer(r, p->i, &a);
    else
        rotation_failure(r, p->i, failure_of(p, st, a.answered - begun), err.text);
}

/* Waits until the next check is due: at a fixed place of each period, or soon when somebody waits for it. */
static void await(struct prober *p)
{
    struct replicas *r = p->replicas;
    int64_t last = clock_mono_us();
    int64_t period = (last - (p->i ? BEHIND_US : 0)) / CHECK_US + 1;
    int64_t due = period * CHECK_US + (p->i ? BEHIND_US : 0);
    while (!r->stopping) {
        bool hurry = r->nodes[p->i].hurry_until > clock_boot_us();
        int64_t until = hurry && last + HURRY_PERIOD_US < due ? last + HURRY_PERIOD_US : due;
        struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
        if (clock_mono_us() >= until)
            return;
        pthread_cond_timedwait(&r->wake, &r->lock, &t);
    }
}

static void *watch(void *arg)
{
    struct prober *p = arg;
    struct replicas *r = p->replicas;
    pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        check(p);
        await(p);
    }
    pthread_mutex_unlock(&r->lock);
    store_close(p->store);
    return NULL;
}

static enum status start_prober(struct replicas *r, const struct replicas_options *o, uint32_t i,
                                struct error *err)
{
    struct prober *p = &r->probers[i];
    bool reader = i == 0 && o->read_only;
    *p = (struct prober){
        .replicas = r,
        .i = i,
        .options = {.url = r->nodes[i].url,
                    .databases = o->databases,
                    .durability = DURABILITY_OFF, /* its position covers commits that were not waited for */
                    .timeout_ms = i == 0 && o->timeout_ms < PRIMARY_MIN_MS ? PRIMARY_MIN_MS : o->timeout_ms,
                    .replica = i > 0,
                    .use = reader ? USE_TO_READ : USE_FULLY,
                    .joins = i == 0},
    };
    int failed = pthread_create(&p->thread, NULL, watch, p);
    p->running = !failed;
    return failed ? error_set(err, ST_INTERNAL, "cannot make a thread: %s", strerror(failed)) : ST_OK;
}

enum status replicas_start(const struct replicas_options *o, struct replicas **ret, struct error *err)
{
    struct replicas *r = mem_alloc(sizeof *r);
    enum status st = ST_OK;
    replicas_init(r, o);
    r->probers = mem_zalloc((o->n + 1) * sizeof *r->probers);
    for (uint32_t i = 0; i <= o->n && st == ST_OK; i++)
        st = start_prober(r, o, i, err);
    if (st != ST_OK) {
        replicas_stop(r);
        return st;
    }
    *ret = r;
    return ST_OK;
}

void replicas_stop(struct replicas *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i <= r->n; i++)
        if (r->probers[i].running)
            pthread_join(r->probers[i].thread, NULL);
    mem_free(r->probers);
    replicas_release(r);
    mem_free(r);
}
