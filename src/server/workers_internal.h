/* The workers together, for the files of this folder. */
#ifndef LARDER_SERVER_WORKERS_INTERNAL_H
#define LARDER_SERVER_WORKERS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "exec/executor.h"
#include "server/listeners.h"
#include "server/protocol.h"
#include "server/workers.h"

#define CLAIMS ((uint32_t)1 << 20) /* so many that two batches hardly meet but in a key */

_Static_assert(WORKERS_MAX < UINT8_MAX, "a claim has a worker's number");

struct workers {
    struct config *config;
    struct server server;
    struct worker *workers[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX]; /* but for the first */
    uint32_t n;
    /* Standing still. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool held;  /* a worker needs the others to stand still */
    uint32_t standing; /* workers that do, and those whose turns are over */
    /* The first failure of a worker, with the lock held. */
    struct error failure;
    /* Listening, on the first worker's loop. */
    struct server_listener listeners[LISTENERS];
    struct event *accept_timer; /* the end of a pause after want of memory or descriptors */
    uint32_t max_clients;       /* as configured, or what the limit of descriptors allows */
    const struct protocol *const *protocols;
    _Atomic uint32_t nspeakers[PROTOCOLS]; /* clients that speak it */
    /* Keys that a batch is about to write, by hash: the number of the worker whose batch it is, from 1 on, or
       0. A hint, which nothing depends on (gather_apart). NULL: there is one worker alone. */
    _Atomic uint8_t *claims;
    int64_t durability; /* the one in force; the option is ahead of it until the end of a batch */
};

static inline bool workers_alone(const struct workers *t)
{
    return t->n == 1;
}

#endif
