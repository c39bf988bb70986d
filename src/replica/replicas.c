#include "replica/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "replica/replicas_internal.h"
#include "sql/url.h"

#define HURRY_US  1000000 /* how long somebody who waits is thought to wait */
#define MARGIN_US 1000    /* what passes at least until a bounded read is answered */

/* ---- routing ---- */

/* Whether `need` is of the branch that replicas are compared by. If not, the primary is asked: it knows
   whether that is behind us, or was lost. */
static bool comparable(const struct replicas *r, const struct position *need)
{
    return need->kind == POSITION_NONE || need->timeline == r->nodes[0].at.timeline;
}

static bool fits(const struct replicas *r, uint32_t i, struct consistency c, const struct position *need,
                 int64_t now)
{
    const struct node *x = &r->nodes[i];
    int64_t passes = 2 * x->took > MARGIN_US ? 2 * x->took : MARGIN_US;
    if (!rotation_has(r, i, now))
        return false;
    switch (c.mode) {
    case READ_STRONG:
        return false;
    case READ_SESSION:
        return position_reached(&x->at, need);
    case READ_BOUNDED:
        return x->reached != INT64_MIN && now - x->reached + passes <= c.bound_ms * 1000;
    case READ_EVENTUAL:
        return true;
    }
    return false;
}

int replicas_route_at(struct replicas *r, struct consistency c, const struct position *need, int64_t now)
{
    if (c.mode == READ_STRONG)
        return 0;
    bool skip = c.mode == READ_SESSION && !comparable(r, need);
    for (uint32_t k = 0; k < r->n && !skip; k++) {
        uint32_t i = (r->turn + k) % r->n + 1;
        if (fits(r, i, c, need, now)) {
            r->turn = i;
            return (int)i;
        }
    }
    return rotation_has(r, 0, now) ? 0 : ROUTE_NONE;
}

int replicas_route(struct replicas *r, struct consistency c, const struct position *need)
{
    if (c.mode == READ_STRONG)
        return 0;
    pthread_mutex_lock(&r->lock);
    int to = replicas_route_at(r, c, need, clock_boot_us());
    pthread_mutex_unlock(&r->lock);
    return to;
}

int64_t replicas_age_us(struct replicas *r, const struct position *at)
{
    pthread_mutex_lock(&r->lock);
    bool known = r->nodes[0].at.kind != POSITION_NONE && at->timeline == r->nodes[0].at.timeline;
    int64_t reached = known ? ring_reached(&r->ring, at) : INT64_MIN;
    pthread_mutex_unlock(&r->lock);
    return reached == INT64_MIN ? INT64_MAX : clock_boot_us() - reached;
}

/* ---- what workers tell ---- */

void replicas_learned(struct replicas *r, uint32_t i, const struct position *p)
{
    if (p->kind == POSITION_NONE)
        return;
    pthread_mutex_lock(&r->lock);
    rotation_learned(r, i, p);
    pthread_mutex_unlock(&r->lock);
}

void replicas_failed(struct replicas *r, uint32_t i, bool hangs, const char *why)
{
    pthread_mutex_lock(&r->lock);
    if (i && hangs)
        rotation_failure(r, i, HANGS, why);
    else
        r->nodes[i].failures++;
    r->nodes[i].hurry_until = clock_boot_us() + HURRY_US;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
}

/* ---- what others ask ---- */

uint32_t replicas_count(const struct replicas *r)
{
    return r->n;
}

/* Those that have not are asked more often for a while: whoever asks this waits for them. */
uint32_t replicas_reached(struct replicas *r, const struct position *p)
{
    uint32_t reached = 0;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 1; i <= r->n; i++) {
        struct node *x = &r->nodes[i];
        if (!x->connected || !comparable(r, &x->at))
            continue;
        if (position_reached(&x->at, p)) {
            reached++;
            continue;
        }
        x->hurry_until = clock_boot_us() + HURRY_US;
        pthread_cond_broadcast(&r->wake);
    }
    pthread_mutex_unlock(&r->lock);
    return reached;
}

void replicas_primary(struct replicas *r, struct position *ret)
{
    pthread_mutex_lock(&r->lock);
    *ret = r->nodes[0].at;
    pthread_mutex_unlock(&r->lock);
}

bool replicas_primary_away(struct replicas *r)
{
    pthread_mutex_lock(&r->lock);
    bool there = rotation_has(r, 0, clock_boot_us());
    pthread_mutex_unlock(&r->lock);
    return !there;
}

void replicas_set_max_lag(struct replicas *r, uint32_t ms)
{
    pthread_mutex_lock(&r->lock);
    r->max_lag = (int64_t)ms * 1000;
    pthread_mutex_unlock(&r->lock);
}

void replicas_state(struct replicas *r, uint32_t i, struct replica_state *ret)
{
    pthread_mutex_lock(&r->lock);
    const struct node *x = &r->nodes[i];
    int64_t now = clock_boot_us();
    uint64_t primary = position_offset(&r->nodes[0].at), own = position_offset(&x->at);
    *ret = (struct replica_state){
        .port = x->port,
        .connected = x->connected,
        .in_rotation = rotation_has(r, i, now),
        .at = x->at,
        .age_us = x->reached == INT64_MIN ? INT64_MAX : now - x->reached,
        .behind = primary > own ? primary - own : 0,
        .failures = x->failures,
        .left = x->left,
    };
    memcpy(ret->place, x->place, sizeof ret->place);
    memcpy(ret->host, x->host, sizeof ret->host);
    snprintf(ret->why, sizeof ret->why, "%s", x->in && !ret->in_rotation ? "it does not answer" : x->why);
    pthread_mutex_unlock(&r->lock);
}

/* ---- the state ---- */

/* Where a database is, for people. */
static void name_place(struct node *x, const char *url)
{
    struct url u;
    x->url = url;
    snprintf(x->place, sizeof x->place, "a database");
    if (url_parse(url, &u, NULL) != ST_OK)
        return;
    const struct url_host *h = u.nhosts ? &u.hosts[0] : NULL;
    long usual = strncmp(u.scheme, "postgres", 8) == 0 ? 5432 : 3306;
    snprintf(x->host, sizeof x->host, "%s", h && h->name[0] ? h->name : "localhost");
    x->port = (int)(h && h->port ? strtol(h->port, NULL, 10) : usual);
    snprintf(x->place, sizeof x->place, "%.60s on %.60s:%d%s", u.database ? u.database : "the database",
             x->host, x->port, u.nhosts > 1 ? " and others" : "");
    url_release(&u);
}

void replicas_init(struct replicas *r, const struct replicas_options *o)
{
    pthread_condattr_t monotonic;
    *r = (struct replicas){
        .n = o->n,
        .max_lag = (int64_t)o->max_lag_ms * 1000,
        .timeout = (int64_t)o->timeout_ms * 1000,
        .read_only = o->read_only,
    };
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (uint32_t i = 0; i <= o->n; i++) {
        struct node *x = &r->nodes[i];
        name_place(x, i ? o->urls[i - 1] : o->primary);
        x->reached = INT64_MIN;
        x->verdict = FEW_GOOD;
        snprintf(x->why, sizeof x->why, "it has not been reached yet");
    }
}

void replicas_release(struct replicas *r)
{
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
}
