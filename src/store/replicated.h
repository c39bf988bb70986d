/* Stores that tell positions (store/position.h): of a primary's commits, of a replica's snapshots.

   Primary: with `want` on, a commit brings its position in the round trip that it is (behind COMMIT, in the
   same packet), and so does a transaction that only read, behind its snapshot, or that could have written and
   changed nothing, behind its end.
   Replica (store_options.replica): store_begin(STORE_READ) reads how far the replica has got, then takes its
   snapshot, so that the snapshot has at least that (`admitted`); `seen`, asked for when the transaction ends,
   is a position that the snapshot has not more than: what a client may have seen. */
#ifndef LARDER_STORE_REPLICATED_H
#define LARDER_STORE_REPLICATED_H

#include "store/position.h"
#include "store/store.h"

/* What is known of a token's position. */
enum lineage {
    LINEAGE_SAME,    /* on this database's history: compare it */
    LINEAGE_FOREIGN, /* another database's */
    LINEAGE_LOST     /* a failover has cut it off: what was acknowledged there is gone */
};

struct replicated_ops {
    /* From the next transaction on. */
    void (*want)(struct store *s, bool on);
    /* Of the running or last transaction. POSITION_NONE: it is not known. A primary admits everything: none.
     */
    void (*admitted)(const struct store *s, struct position *ret);
    void (*seen)(const struct store *s, struct position *ret);
    /* Now, in a round trip of its own: a primary's durable position, a replica's replayed one. */
    enum status (*now)(struct store *s, struct position *ret, struct error *err);
    /* Whether p lies on the history of the database that this session is connected to. Without a round trip
       once the session knows its lineage. */
    enum status (*judge)(struct store *s, const struct position *p, enum lineage *ret, struct error *err);
    /* Whether nothing can be written, because of store_options.use and what the database is now. Without a
       round trip: as of the last transaction. */
    bool (*only_reads)(const struct store *s);
};

/* What a transaction that would write is told then (ST_READONLY), as Redis tells it. */
#define READ_ONLY_REPLICA "You can't write against a read only replica."

static inline bool store_replicated(const struct store *s)
{
    return s->replicated != NULL;
}

static inline bool store_only_reads(const struct store *s)
{
    return s->replicated && s->replicated->only_reads(s);
}

/* Whether it is known that p is not on the history of this database (any more). */
static inline bool position_lost(struct store *s, const struct position *p)
{
    enum lineage lineage = LINEAGE_SAME;
    struct error err;
    return p->kind != POSITION_NONE && store_replicated(s) &&
           s->replicated->judge(s, p, &lineage, &err) == ST_OK && lineage != LINEAGE_SAME;
}

#endif
