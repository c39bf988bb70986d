/* What the files of this folder share. */
#ifndef LARDER_SERVER_WORKER_INTERNAL_H
#define LARDER_SERVER_WORKER_INTERNAL_H

#include <event2/event.h>

#include "base/clock.h"
#include "exec/executor.h"
#include "net/handshake.h"
#include "server/batch.h"
#include "server/busy.h"
#include "server/client.h"
#include "server/gather.h"
#include "server/held.h"
#include "server/legs.h"
#include "server/mailbox.h"
#include "server/poll.h"
#include "server/sweeper.h"
#include "server/transaction.h"
#include "server/undo.h"
#include "server/wakeup.h"
#include "server/worker.h"
#include "server/workers_internal.h"

#define WARN_EVERY_US 10000000

struct client_vec {
    struct client **items;
    size_t len, cap;
};

/* Connections of one listener that come to one worker. */
struct arrival {
    struct worker *worker;
    int listener;
};

/* A job that is over, and what is to be called with it (executor->job_over). */
struct worker_job {
    struct block_job *job;
    void (*fn)(struct executor *s, struct block_job *job);
};

struct worker {
    struct workers *workers;
    struct executor executor;
    struct hashes *hashes; /* keeps the entries of tables over hashes, of the executor's first engine */
    struct event_base *base;
    struct mailbox mailbox;
    struct message look, lines_lost; /* posted at most once: see worker.c */
    bool told_to_look;               /* for what blocked clients wait for */
    _Atomic uint32_t nclients;       /* that were let in and sent here, from then on until they have gone */
    struct arrival arrivals[LISTENERS];
    struct handshakes handshakes;
    struct event *tick, *sweep_timer, *build_timer, *pause_timer, *poll_timer, *retry_timer, *stop_event,
        *wake_event;
    int stop_fd; /* an eventfd: worker_stop writes to it */
    int wake_fd; /* an eventfd: worker_wake, and the store when commits have become durable */
    bool stop;
    struct error fatal; /* why, when it is no good end */
    bool reload;        /* the certificates are to be read */
    bool sweep_due, build_due;
    _Atomic bool builds_asked;                /* by any worker: there may be an index to build */
    int64_t now_us;                           /* monotonic, of this turn; 0 until worker_now is called */
    int64_t commit_warned_us, http_warned_us; /* when it was last logged */
    uint64_t batches;
    /* Another process holds the database's lock. Clients that write wait among the paused ones; clients that
       read go on. */
    int64_t lock_since_us;       /* 0: no client waits for it */
    int64_t lock_retry_us;       /* when to try again */
    int64_t poll_us, poll_at_us; /* how long between two looks for blocked clients, and when is the next */
    int poll_tries;              /* so often serving them has come to nothing in a row */
    struct wakeup wakeup;
    struct batch batch;
    struct {
        const struct client *client; /* of the last batch, where it was one, for comparison alone */
        int fd;                      /* its socket */
        int64_t company_us;          /* when another one had commands, last */
        bool alone;                  /* nobody else has had any for a while */
        bool soon;                   /* what came last came a moment after the batch before it */
        int64_t rest_us;             /* until then the loop does not look out for its commands */
    } lone;
    struct busy busy;
    struct held_replies held;
    struct worker_undo undo;
    struct legs legs;
    struct sweeper sweeper;
    struct {
        struct worker_job *items;
        size_t len, cap;
    } jobs; /* that are over */
    struct builder builder;
    struct client_vec flush;                /* clients whose output may leave now */
    struct client_vec unread;               /* clients that have sent something while a batch is pending */
    struct client_list ready, paused, dead; /* by state */
    struct client nobody;                   /* DEAD, whose calls have left the batch */
};

static inline void worker_arm(struct event *timer, int64_t us)
{
    struct timeval tv = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    event_add(timer, &tv);
}

static inline int64_t worker_now(struct worker *w)
{
    if (w->now_us == 0)
        w->now_us = clock_mono_us();
    return w->now_us;
}

/* True when it is time again to log something that may happen with every batch. */
static inline bool worker_may_warn(struct worker *w, int64_t *last_us)
{
    if (*last_us && worker_now(w) - *last_us < WARN_EVERY_US)
        return false;
    *last_us = worker_now(w);
    return true;
}

/* A ticket of the engine that the running transaction uses. */
static inline struct held_for worker_ticket(const struct worker *w, int64_t ticket)
{
    return (struct held_for){w->executor.engine, ticket};
}

/* Frees the clients that are closed, but for those that a transaction refers to. */
void worker_free_dead(struct worker *w);

/* A connection that was counted for this worker has gone. */
static inline void worker_uncount(struct worker *w)
{
    atomic_fetch_sub_explicit(&w->nclients, 1, memory_order_relaxed);
}

static inline struct config *worker_config(const struct worker *w)
{
    return w->executor.config;
}

#endif
