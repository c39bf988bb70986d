/* What the files of replica/ share: the state of the primary and its replicas.

   replicas.c   what workers ask and tell; starting and stopping
   rotation.c   what a check means: who comes into rotation, who leaves it, who is the primary, and the log
   ring.c       the primary's positions by the time at which they were asked for
   monitor.c    a thread for each database, which asks it every 250 ms

   Times are microseconds of clock_boot_us: a machine that was suspended has aged. Functions that take `now`
   do so for the tests; whoever calls one holds the lock. */
#ifndef LARDER_REPLICA_REPLICAS_INTERNAL_H
#define LARDER_REPLICA_REPLICAS_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "replica/replicas.h"

#define CHECK_US    INT64_C(250000) /* between two checks of a database */
#define FEW_CHECKS  3 /* so many good ones take a replica into rotation, so many bad ones out of it */
#define UNKNOWN_AGE INT64_MAX

/* ---- ring.c ---- */

/* Samples in ascending order of times and positions: what came to the primary before `asked` is at or before
   `at`. When it is full, samples go that are close together for their age: those of the last seconds all
   stay, and ages of replicas that are hours behind are told by some percent too high, never too low. */
#define RING_SAMPLES 512

struct sample {
    int64_t asked;
    struct position at;
};

struct ring {
    struct sample samples[RING_SAMPLES];
    uint32_t n;
};

void ring_add(struct ring *ring, int64_t asked, const struct position *at);

/* When the newest sample was asked for that somebody at p has reached; INT64_MIN: there is none. */
int64_t ring_reached(const struct ring *ring, const struct position *p);

/* ---- the state ---- */

/* What a database said. Its position names the branch of the database's history that it is on
   (store/history.h): every failover begins another one, with a row that is replicated like all others. A
   replica that has the primary's branch has replayed that row, so it has no history of its own behind it. */
struct answer {
    int64_t asked, answered;
    struct position at;
};

/* Why a replica is not read from. */
enum verdict {
    FIT,
    FEW_GOOD, /* checks so far */
    AWAY,     /* it cannot be reached, or does not answer in time */
    REFUSED,  /* it is no replica, or of no use */
    FOREIGN,  /* of another database */
    DIVERGED, /* of another branch, or one that has not replayed the failover yet */
    LAGS
};

struct node {
    const char *url;
    char place[160], host[64];
    int port;
    bool connected;
    bool in;            /* in rotation. Of the primary: it is there */
    unsigned good, bad; /* checks in a row */
    int64_t counted;    /* when the last of the good ones was asked: hurried ones do not count */
    int64_t checked;    /* when the last good one was asked */
    int64_t took;       /* what that took */
    int64_t reached;    /* when the newest sample was asked for that it has reached; INT64_MIN: none */
    struct position at;
    int64_t hurry_until; /* somebody waits for what it says */
    enum verdict verdict;
    unsigned told; /* 1 << verdict: the log has it, since it was last in rotation */
    uint64_t failures, left;
    char why[128];
};

struct replicas {
    pthread_mutex_t lock; /* of everything below but what never changes after the start */
    pthread_cond_t wake;  /* of the threads */
    struct ring ring;
    struct node nodes[REPLICAS_MAX + 1];
    uint32_t n; /* replicas: nodes[1..n]. nodes[0] is the primary */
    uint32_t turn;
    int64_t max_lag, timeout; /* microseconds */
    bool read_only, stopping;
    struct prober *probers;
};

/* What a state begins as; no thread yet. */
void replicas_init(struct replicas *r, const struct replicas_options *o);
void replicas_release(struct replicas *r);

int replicas_route_at(struct replicas *r, struct consistency c, const struct position *need, int64_t now);

/* ---- rotation.c ---- */

/* A check of i (0: the primary) has been answered ... */
void rotation_answer(struct replicas *r, uint32_t i, const struct answer *a);
/* ... or not. */
enum failure {
    FAILED, /* it cannot be reached */
    HANGS,  /* its time was over, or a worker's was */
    UNFIT   /* it is there, and not what it should be */
};
void rotation_failure(struct replicas *r, uint32_t i, enum failure how, const char *why);

/* A worker learned that a replica is at p, or that the primary answers. */
void rotation_learned(struct replicas *r, uint32_t i, const struct position *p);

/* Whether i may be read from; of the primary: whether it is there. */
bool rotation_has(const struct replicas *r, uint32_t i, int64_t now);

#endif
