/* What a store is opened with. */
#ifndef LARDER_STORE_OPTIONS_H
#define LARDER_STORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct store;

/* What a server does with a shared database: TO_READ writes nothing, whatever it is, a replica or a primary;
   TO_READ_OF_REPLICA does the same until it is a primary that can be written to. */
enum store_use { USE_FULLY, USE_TO_READ, USE_TO_READ_OF_REPLICA };

enum durability { DURABILITY_ALWAYS, DURABILITY_EVERYSEC, DURABILITY_OFF };

/* With the tables to this process alone: brings what is left in their journal into them. url is for
   people. */
typedef enum status store_replay_fn(struct store *s, const char *url, struct error *err);

struct store_options {
    const char *url; /* sqlite:PATH, a bare path, postgres://..., mysql://... */
    enum durability durability;
    uint32_t databases;
    uint64_t page_cache;     /* bytes the database's own cache may take */
    uint32_t busy_ms;        /* how long opening waits for another process's lock; afterwards nothing waits */
    uint32_t timeout_ms;     /* how long a database server may take for an answer; 0: 10 s */
    uint32_t lease_ms;       /* see lease.h */
    bool (*away)(void *arg); /* it is known not to answer: only commits wait to the end. NULL: unknown */
    void *away_arg;
    bool read_only; /* for inspection: no lock, no migration */
    /* Of the sessions of a store with a journal on a database server: the one that writes, the one that reads
       beside it, and one more beside it that writes (applies), whose transactions see to it that the tables
       are still this server's until they have ended. What such a store remembers outlives a lost connection,
       unless another server has had the tables meanwhile: then everything is ST_LOCKED from there on. */
    bool journaled;
    struct store *beside;
    bool applies;
    /* One more session beside one that writes: it only reads, and takes no lock of its own. Each of its
       snapshots tells whether the tables were still ours (store_confirm). beside is looked at while it opens.
     */
    bool peeks;
    /* On a database server, of a store that writes: called when the store enters the tables, because a server
       that did not end well may have left a journal (journal/journal.h has the function). */
    store_replay_fn *replay;
    bool joins; /* a shared store that this process has open already: the tables are as they must be */
    /* A session on a replica: it only reads, opening it succeeds while the replica is away, and timeout_ms
       bounds every wait for it. beside: the session on its primary that the same thread has, if there is one:
       a replica of another database is refused. */
    bool replica;
    enum store_use use;
    /* A database server that has not been proven (sql/proof.h) may be served all the same. */
    bool accept_untested;
};

#endif
