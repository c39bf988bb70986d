/* A transaction that conflicts with another is tried again. transaction.c does that (try_calls); its rules,
   numbers and timer are here.

   Where other servers write to the same tables the database may end a transaction (ST_CONFLICT). No reply has
   left by then: the worker restores what the calls changed (undo.h), the batch stays as it is, pending, and
   the loop goes on until a timer fires; then the calls from batch->at on run again. No other place runs
   commands again (poll.c and sweeper.c try their own work again), and none sleeps. From try ALONE_TRY on a
   transaction waits, holding nothing, until it is the only one that writes: two transactions that take many
   locks late could end each other for ever. The last of TRIES is run as it is, and answered with what becomes
   of it. Where transactions are certified none can be the only one, and more tries take its place: the store
   ends them when their time is over. A call whose effects cannot be restored (command_goes_outside) is in a
   transaction of its own, which is tried again only while it cannot even begin.

   While a batch is pending:
   - The calls point into their clients' input, and calls of other clients must not overtake them. The worker
     reads and parses no input; it notes the clients that send something, and reads from them when the batch
     has ended (gather_later). It accepts new connections.
   - No other transaction begins on this worker: neither the sweeper's nor one for blocked clients. The store
     remembers what the one that failed had locked, for the next one.
   - Replies of earlier batches leave when they are durable, or late (held.h), blocked clients give up when
     their time is over, other workers' messages are read.
   - A client that closes its connection is noticed when it is read from again: what it has sent runs, as it
     always does. One that is killed is skipped, and freed when the batch has ended.
   - A client that CLIENT PAUSE, the lock or the store has stopped within the batch stays stopped until the
     batch has ended, even if the pause is over before: a call of it may have been skipped already. A pause
     that begins meanwhile holds for what runs again.
   - timeout_ms of an HTTP request is looked at when its call runs again.
   - Another worker may want this one to stand still: it does so at the top of its turn, as it is in no
     transaction. A call that wants the others to stand still asks for that with each try.
   - SHUTDOWN and signals: the batch ends first, which TRIES bounds; then the worker winds up. */
#ifndef LARDER_SERVER_RETRY_H
#define LARDER_SERVER_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* How a transaction is tried again after a conflict, when it has been in vain `tries` times: whether this
   time it keeps other writers out; whether it is the last time; how long to wait before it, which is a few
   milliseconds, more each time and random, so that two servers do not meet again. */
bool retry_alone(const struct worker *w, int tries);
bool retry_is_last(const struct worker *w, int tries);
int64_t retry_pause_us(struct worker *w, int tries);

/* The worker's batch is pending: its calls from batch->at on run again when a timer has fired. */
void retry_later(struct worker *w);

#endif
