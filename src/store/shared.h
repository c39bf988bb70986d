/* Tables that several servers write to at any moment: nothing that was read may be remembered beyond the end
   of its transaction, and store_begin is told which keys it will use (struct store_declared). */
#ifndef LARDER_STORE_SHARED_H
#define LARDER_STORE_SHARED_H

#include "store/store.h"

/* Where a shared store tells that something has appeared through another server. */
struct store_wakeup {
    int fd;          /* becomes readable, and stays the store's */
    uint64_t number; /* another connection has another; never 0 */
};

struct shared_ops {
    int64_t (*now_us)(const struct store *s);
    bool (*brief)(const struct store *s);
    bool (*listen)(struct store *s, bool on, struct store_wakeup *ret);
    bool (*notified)(struct store *s);
    void (*counters)(const struct store *s, struct store_info *add_to);
    enum status (*read_whole)(struct store *s, enum item_table table, const int64_t *ids, size_t n,
                              store_item_fn *fn, void *arg, struct error *err);
};

static inline bool store_shared(const struct store *s)
{
    return s->shared != NULL;
}

/* In a transaction: the clock that all servers share, as it was when it began. */
static inline int64_t store_now_us(const struct store *s)
{
    return s->shared->now_us(s);
}

/* In a transaction: whether beginning it has read the rows of the declared keys and nothing else, neither the
   counts of the databases nor where those are whose keys were not declared. Whatever else is asked for, the
   store reads in one state with them, and ends the transaction (ST_CONFLICT) if they have changed. */
static inline bool store_brief(const struct store *s)
{
    return s->shared->brief(s);
}

/* Between transactions: asks to be told when a list or a sorted set appears through another server, or not
   any more. False: no notification will come, because it is not wanted, not possible, or there is no
   connection. To be called again now and then, because a new connection has to be asked anew. What appears in
   the first moments may go unheard. */
static inline bool store_listen(struct store *s, bool on, struct store_wakeup *ret)
{
    return s->shared->listen(s, on, ret);
}

/* Whether something has appeared since the last time. */
static inline bool store_notified(struct store *s)
{
    return s->shared->notified(s);
}

/* In a transaction: every item of several small collections, in one round trip. ids ascend; so do rows, by
   the id, then by ord or, of a list, by pos. */
static inline enum status store_read_whole(struct store *s, enum item_table table, const int64_t *ids,
                                           size_t n, store_item_fn *fn, void *arg, struct error *err)
{
    return status_of_walk(s->shared->read_whole(s, table, ids, n, fn, arg, err));
}

/* Without asking the database: adds the store's reconnects, round trips and conflicts. */
static inline void store_counters(const struct store *s, struct store_info *add_to)
{
    s->shared->counters(s, add_to);
}

#endif
