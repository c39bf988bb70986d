/* Commits that become durable later: store_commit returns before the change set is, which gets a ticket. */
#ifndef LARDER_STORE_DEFERRED_H
#define LARDER_STORE_DEFERRED_H

#include "store/store.h"

/* How far a store has got whose commits become durable later. */
struct store_progress {
    int64_t durable;   /* every change set up to this ticket is as durable as the durability says */
    int64_t first_seq; /* provisional ones below it belong to rows that are in the table by now */
    size_t memory;     /* that the store takes for what is not in the tables yet */
    size_t borrowed;   /* so much of it, and of what is kept for that, a cache of rows has to do without */
    bool full;         /* too much waits to be brought into the tables: who writes much waits ... */
    bool stops;        /* ... and so does every writer */
    bool locked;       /* another process holds the database's lock: a writer waits */
    bool failing;      /* what was committed cannot be written, which is tried again: a writer is refused */
};

/* Called from another thread; must not call the store. */
typedef void store_wake_fn(void *arg);

struct deferred_ops {
    int64_t (*last_ticket)(const struct store *s);
    int64_t (*durable)(struct store *s);
    enum status (*progress)(struct store *s, struct store_progress *ret, struct error *err);
    void (*on_progress)(struct store *s, store_wake_fn *fn, void *arg);
    void (*alone)(struct store *s, bool alone);
    void (*ending)(struct store *s, int64_t ms);
};

/* Whether store_commit may return before the change set is durable. Such a store gives every change set a
   ticket, ascending by one from commit to commit, and tells by store_progress how far it has got. Other
   stores have no tickets. */
static inline bool store_commits_later(const struct store *s)
{
    return s->deferred != NULL;
}

/* The ticket of the last commit: the next one gets the next number, unless commits fail before that. */
static inline int64_t store_last_ticket(const struct store *s)
{
    return s->deferred->last_ticket(s);
}

/* Between transactions: takes note of what has become durable. Anything but ST_OK: the commits behind
   ret->durable failed, and nothing of them is left; whatever was remembered is void. */
static inline MUST_CHECK enum status store_progress(struct store *s, struct store_progress *ret,
                                                    struct error *err)
{
    return s->deferred->progress(s, ret, err);
}

/* At any time, a transaction may be open: how far it has got by now. Nothing else is taken note of. */
static inline int64_t store_durable(struct store *s)
{
    return s->deferred->durable(s);
}

/* fn is called whenever there may be something new to learn from store_progress. */
static inline void store_on_progress(struct store *s, store_wake_fn *fn, void *arg)
{
    s->deferred->on_progress(s, fn, arg);
}

/* A hint, which holds until the next one: the caller has nothing to do but wait until what it commits is
   durable. Then store_commit may make it so before it returns, which saves waking a thread and being woken;
   store_progress tells the outcome all the same. */
static inline void store_alone(struct store *s, bool alone)
{
    s->deferred->alone(s, alone);
}

/* Nothing more will be committed, and the store is closed soon: store_sync waits `ms` at most for the
   tables, where what they lack is durable elsewhere. */
static inline void store_ending(struct store *s, int64_t ms)
{
    s->deferred->ending(s, ms);
}

#endif
