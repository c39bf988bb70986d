/* clang-format off */
/* Reading the tables from another thread, through a session of its own, while a store brings its commits into
   them later and piece by piece (journal/journal.h): the tables alone are older than what was committed, and
   amid such a pass they are torn.

     snapshot_enter   waits until the tables have everything up to a ticket, and nothing of a later commit in
                      part; from here to snapshot_leave nothing is written to them.
     (the caller)     opens the transaction in which its session reads: from its first read on, it sees one
                      state of the tables, whatever is written later.
     snapshot_leave   writing goes on. Whether it was held up for all of the time: if not, the caller was too
                      late, and what it opened may be torn. It closes that and enters again.

   What makes it one state: a pass is over when larder_meta says `applied`, and the next one has not begun; the
   store's thread, which alone writes, waits meanwhile. The database does the rest: a read transaction of
   SQLite's WAL, REPEATABLE READ of a server. What makes it durable: only what the journal has durably, or what
   went straight into the tables by a commit that has returned, is in the tables at that moment. A crash leaves
   nothing of a snapshot: it is memory of a session that only reads.

   Whoever waits at the same moment shares one pass. The store's thread waits for those who have entered, but not
   for long: one that is not scheduled, or whose database does not answer, costs writers no more than that. */
/* clang-format on */
#ifndef LARDER_STORE_SNAPSHOT_H
#define LARDER_STORE_SNAPSHOT_H

#include "store/store.h"

struct snapshot_want {
    int64_t ticket; /* of the store: everything up to it is to be seen */
    /* Asked now and then while it waits, holding the store's lock: true gives up (ST_BUSY). */
    bool (*stop)(void *arg);
    void *arg;
};

struct snapshot_ops {
    enum status (*enter)(struct store *s, const struct snapshot_want *w, uint64_t *ret_number,
                         struct error *err);
    bool (*leave)(struct store *s, uint64_t number);
};

/* Whether the tables are behind the store's commits. Other stores need none of this. */
static inline bool store_has_snapshots(const struct store *s)
{
    return s->snapshots != NULL;
}

/* From any thread but the store's own. On failure there is nothing to leave. */
static inline MUST_CHECK enum status snapshot_enter(struct store *s, const struct snapshot_want *w,
                                                    uint64_t *ret_number, struct error *err)
{
    return s->snapshots->enter(s, w, ret_number, err);
}

static inline MUST_CHECK bool snapshot_leave(struct store *s, uint64_t number)
{
    return s->snapshots->leave(s, number);
}

#endif
