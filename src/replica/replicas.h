/* The primary and its replicas as this process knows them: who is there, how far each has got, how old what
   it has may be at most. Threads of its own (monitor.c), one for each, ask them every 250 ms; workers tell
   what their transactions learn. Everything here locks itself and never waits for a database.

   A replica is in rotation when its last three checks were good and it is at most replica-max-lag behind; it
   leaves at once when a worker's transaction timed out on it (replicas_failed), else after three bad checks.

   Age, without trusting clocks: the primary's positions are samples in a ring, each with the monotonic time
   at which it was ASKED for; what a replica at p has is at most as old as the newest sample that it has
   reached. A primary that is away gives no samples: ages grow, bounded reads fail in time. */
#ifndef LARDER_REPLICA_REPLICAS_H
#define LARDER_REPLICA_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "replica/consistency.h"
#include "store/position.h"

#define REPLICAS_MAX 15

struct replicas;

struct replicas_options {
    const char *primary;     /* URL; of a server on a standby alone (read-only): the standby's */
    const char *const *urls; /* the replicas */
    uint32_t n;
    uint32_t databases;
    uint32_t max_lag_ms, timeout_ms;
    bool read_only; /* there is no primary to write to */
};

/* Starts the thread. Replicas that are away are no failure. */
enum status replicas_start(const struct replicas_options *o, struct replicas **ret,
                           struct error *err) MUST_CHECK;
void replicas_stop(struct replicas *r); /* r may be NULL */

uint32_t replicas_count(const struct replicas *r);

/* Where a read goes: 0 the primary, i the replica i (1 to n), or ROUTE_NONE: nobody can serve it in its mode
   (the primary is away, and no replica is good enough): -STALE. need: what the client has written or seen.
   Spreads over those that qualify, in turn. */
#define ROUTE_NONE (-1)
int replicas_route(struct replicas *r, struct consistency c, const struct position *need);

/* At most how old what a replica has at this position is, in microseconds; INT64_MAX: not known. */
int64_t replicas_age_us(struct replicas *r, const struct position *at);

/* A worker's transaction on i (0: the primary, then a commit's position) learned that it is at p. */
void replicas_learned(struct replicas *r, uint32_t i, const struct position *p);

/* A worker's transaction on i failed. hangs: it did not answer in time; a replica leaves the rotation at
   once. Else that worker's connection broke, or does not stand yet: the database is asked at once, and that
   decides. */
void replicas_failed(struct replicas *r, uint32_t i, bool hangs, const char *why);

/* How many replicas have replayed p (WAIT). Those that have not are asked more often for a second: ask again
   after 10 ms. */
uint32_t replicas_reached(struct replicas *r, const struct position *p);

/* Whether the primary is believed away: it has not answered several checks in a row, or one for long. After
   replicas_failed(r, 0, ...) that is known within a moment. Writers are held meanwhile (failover-wait). */
bool replicas_primary_away(struct replicas *r);

/* CONFIG SET. */
void replicas_set_max_lag(struct replicas *r, uint32_t ms);

/* The primary's latest sampled position. */
void replicas_primary(struct replicas *r, struct position *ret);

/* For INFO, ROLE, /metrics, /health. */
struct replica_state {
    char place[160]; /* "app on db2:5432": no password */
    char host[64];
    int port;
    bool connected, in_rotation;
    struct position at;
    int64_t age_us;    /* INT64_MAX: not known */
    uint64_t behind;   /* position_offset of the primary minus its own */
    uint64_t failures; /* since the start */
    uint64_t left;     /* times that it left the rotation */
    char why[128];     /* why it is not in rotation */
};
void replicas_state(struct replicas *r, uint32_t i, struct replica_state *ret);

#endif
