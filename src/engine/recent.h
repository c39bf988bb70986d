/* Rows that were read a short while ago, from the primary or a replica: what reads of a mode that allows some
   age are served from without a round trip. Beside engines over shared tables, which remember nothing; one
   for each worker, used by its thread alone.

   A row is kept with everything that belongs to its key, or not at all: a short string, a small collection
   with all its items, or that there is no such key. All of that was read in one snapshot and is replaced as a
   whole. A call that uses several keys is served when all of them were read in the same snapshot: it sees one
   state of the database, as everywhere. Long strings and large collections are not kept, nor what would take
   more than a small part of the budget.

   Rows are found by the database that a client selects, not by its number in the tables, so that FLUSHDB and
   SWAPDB are changes of rows like others: what was read before them is used until it is too old.

   Each row has two stamps: the moment as of which it has everything (monotonic: no clock is trusted), and the
   positions of its snapshot (store/position.h). Expiry goes by the database's clock, carried on from the last
   snapshot. What may have expired, or has a field that may have, is not served from here: the database
   decides.

   A server that crashes forgets all of it, and another writer is never waited for. */
#ifndef LARDER_ENGINE_RECENT_H
#define LARDER_ENGINE_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/position.h"

struct engine;
struct recent;

struct recent *recent_new(uint32_t databases, size_t budget);
void recent_free(struct recent *r); /* r may be NULL */

/* Its view serves the calls that recent_serves has admitted. What else a call asks for fails with ST_STALE:
   the call has to run elsewhere. Its cache's budget is that of all rows and collections. */
struct engine *recent_engine(struct recent *r);

/* Around the calls that are served from memory, in the place of engine_begin and engine_commit. now_us:
   monotonic. What recent_serves judges expiry by, and what the calls see, is one clock value. */
void recent_begin(struct recent *r, int64_t now_us);
void recent_end(struct recent *r);

/* What a call may be served from: rows that have everything as of this moment, and of a session that has
   written or seen something (need is not NULL), only rows that were read at or after its position. */
struct recent_demand {
    int64_t as_of_us; /* monotonic */
    const struct position *need;
};

/* What a call is served from. */
struct recent_served {
    int64_t as_of_us;
    const struct position *seen; /* at most that; POSITION_NONE: not known. Valid until recent_take */
};

/* Between recent_begin and recent_end: whether all keys that were declared to the engine's view (there must
   be some) are there, of one snapshot, and meet the demand. If not, the keys are wanted: recent_take looks
   for them. In both cases nothing is declared any more. ret may be NULL. */
bool recent_serves(struct recent *r, const struct recent_demand *d, struct recent_served *ret);

/* A transaction that has read. */
struct recent_snapshot {
    int64_t asked_us; /* monotonic, before it was begun */
    int64_t as_of_us; /* it has everything as of then: asked_us on the primary, less the age of a replica */
    struct position admitted, seen; /* it has at least that, at most that; POSITION_NONE: not known */
};

/* Its transaction has ended well, and nothing reads there any more: takes the rows of wanted keys from an
   engine over shared tables, which would drop them. After a failover that it shows (another timeline) all
   that was read before is forgotten. */
void recent_take(struct recent *r, struct engine *from, const struct recent_snapshot *s);

/* The batch is over: nothing is wanted any more. */
void recent_settle(struct recent *r);

#endif
