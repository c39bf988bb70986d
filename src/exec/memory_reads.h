/* Calls that are served from what was read a while ago (engine/recent.h), without a round trip: a leg of
   their transaction (server/legs.h) that is no database. A transaction all of whose calls are on it begins
   nowhere.

   A call may be served so that names its keys, and all of whose client's calls ahead of it in this
   transaction only read. Bounded: what is at most as old as it says. Eventual, session: at most
   replica-max-lag; in session mode besides what was read at or after the client's position, and its position
   moves on to what it may have seen then. What such calls read elsewhere is kept for others, and for the next
   time.

   A row that goes while the calls run (the budget is short) fails the call that asks for it: the calls are
   taken back and run again, that one elsewhere. */
#ifndef LARDER_EXEC_MEMORY_READS_H
#define LARDER_EXEC_MEMORY_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/reads.h"
#include "store/position.h"

struct executor;

/* A transaction begins; its calls have been run. */
void memory_reads_start(struct executor *s);
void memory_reads_end(struct executor *s);

/* Whether a call in this mode may be served from memory. If so its keys are declared to the view of
   recent_engine(s->recent), and then: */
bool memory_reads_begin(struct executor *s, const struct reads *r);

/* Whether memory has them. If not, what is read of them is kept. *seen: what the client has seen from memory
   in this transaction, which grows if `placed`, or in session mode; *ret_as_of_us: what it reads is true as
   of then. */
bool memory_reads_serves(struct executor *s, const struct reads *r, bool placed, struct position *seen,
                         int64_t *ret_as_of_us);

#endif
