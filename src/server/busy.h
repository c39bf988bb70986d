/* While a script runs for long, on the thread of its worker and inside the transaction of its batch: the
   worker looks around now and then (executor->script_slow, which the interpreter calls between two
   instructions).

   From LOOK_US on, replies of earlier batches leave that have become durable meanwhile. From
   busy-reply-threshold on the script is busy (script/running.h), and each look is a turn of the loop that has
   no transaction: connections are accepted, other clients' commands are read, parsed and answered one by one,
   -BUSY but for those that may run (command_run_busy). Requests of HTTP get 503 and Retry-After.

   - Who has a call in the running transaction waits: the calls point into its input, and its output may have
   to be taken back. So does a client that the transaction has touched otherwise (client->kept). Calls behind
     the script leave the batch (gather_give_back), and are answered.
   - Nothing of a client that is answered here is part of the transaction: it stands if that runs again.
   - A blocked client gives up when the script has ended, as in Redis; so do HTTP's timeout_ms and pauses.
   - A client that goes is noticed, and is freed unless the batch refers to it. The script's own client may
   go, too: the script runs on, as in Redis.
   - SIGTERM waits for the script, as in Redis, so do SHUTDOWN and SIGHUP's certificates: SHUTDOWN is told
     -BUSY, a second SIGTERM ends the process at once, and the transaction with it. SHUTDOWN NOSAVE ends every
     script, what they have written is undone; what else is in their batches runs, is committed and answered,
     then the process ends as it always does.
   - Other workers serve their clients. What needs all workers to stand still (INFO, CONFIG SET) is told -BUSY
     as soon as a script is (workers_hold). But a script inside an EXEC that itself needs that lets the others
     wait until it ends.
   - A crash of the server leaves nothing of the script and its batch; one of the database ends the script
   with the next command that it calls. A script that waits inside the database is bounded by store-timeout.
   One that has written holds its transaction, and what that has locked, until it ends; so it does with what
   calls before it in its batch have written, who wait with it: on a shared database other workers and servers
   may then wait for those rows, inside the database, for up to store-timeout. */
#ifndef LARDER_SERVER_BUSY_H
#define LARDER_SERVER_BUSY_H

#include <stdbool.h>

#include "base/arena.h"
#include "exec/books.h"
#include "script/running.h"

struct batch_call;
struct client;
struct worker;

struct busy {
    bool on;                      /* a look is taken: the loop's events are for other clients */
    bool listed;                  /* the script is busy */
    struct running_script script; /* as others see it then */
    struct arena arena;           /* of what other clients send */
    struct books books;           /* of what they run */
};

/* The executor's scripts call here. */
void busy_init(struct worker *w);
void busy_release(struct worker *w);

/* While w->busy.on: whether what happens to the client waits for the end of the batch. */
bool busy_defers(const struct worker *w, const struct client *c);

/* Answers what the client has sent. */
void busy_answer(struct worker *w, struct client *c);

/* A call of the batch, outside of any transaction, cannot run because a script is busy elsewhere: answers it.
   False: none is any more. */
bool busy_refuse(struct worker *w, const struct batch_call *call);

#endif
