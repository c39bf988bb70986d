/* Replies that may not leave yet: what they tell of is not durable. They are in their clients' output
   already, and hold back all that comes behind them, so that every client gets its replies in order.

   A reply waits for a ticket of an engine. Replies are released in the order in which they came; the tickets
   of an engine become durable in order too, so that with one engine no reply waits for longer than it has to.
   When commits fail, the replies that wait for them are replaced by the error. */
#ifndef LARDER_SERVER_HELD_H
#define LARDER_SERVER_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct client;
struct engine;
struct worker;

/* What a reply waits for. */
struct held_for {
    const struct engine *engine;
    int64_t ticket; /* of that engine; 0: nothing any more */
};

/* The ticket of a reply that waits for more than a commit: SAVE's. */
#define HELD_FOR_SYNC INT64_MAX

struct held_reply {
    struct client *client; /* NULL: it has gone */
    uint64_t start, end;   /* in all the output its client has ever had */
    struct held_for what;
    int64_t deadline_us; /* when the client has waited long enough; 0: never */
    uint32_t replies;    /* that stand there */
    uint32_t shape;      /* of them, see struct client_progress */
    uint64_t next;       /* the number of the client's next held reply, 0: none */
};

struct held_replies {
    struct held_reply *ring;
    size_t cap;           /* a power of two */
    uint64_t first, next; /* numbers of held replies, from 1 */
    uint64_t mark;        /* those before it stay as they are: see held_mark */
    size_t ntimed;        /* of them with a deadline */
};

void held_release(struct held_replies *w);

/* What the client has been told from `start` on, an offset in its output buffer, waits for `what`, but not
   longer than until deadline_us (0: as long as it takes). */
void held_add(struct worker *w, struct client *c, size_t start, struct held_for what, int64_t deadline_us);

/* Replies whose deadlines have come are replaced by an error: whether the commit that they wait for will
   succeed is not known yet. A reply that stands behind another one leaves with that. Returns the next
   deadline, 0: there is none. */
int64_t held_expire(struct worker *w, int64_t now_us);

/* How much of a client's output buffer may leave. */
size_t held_free_output(const struct worker *w, const struct client *c);

/* A transaction begins that may have to be run again: what it says is not added to replies that were held
   before, so that held_cut finds these as they were. */
void held_mark(struct worker *w);

/* Forgets the replies held since the mark. The caller restores their clients' held_first and held_last. */
void held_cut(struct worker *w);

/* Lets go of the replies whose tickets are durable: their clients are marked to be flushed. */
void held_settle(struct worker *w);

/* So, in the midst of a transaction: only those whose tickets are durable for certain, none of a client that
   would be brought back if the transaction runs again. */
void held_settle_durable(struct worker *w);

/* The replies that wait for this ticket of the engine, or a later one, become errors. */
void held_fail(struct worker *w, struct held_for from, const struct error *err);

/* What SAVE waited for has happened. */
void held_synced(struct worker *w);

/* The client has gone: its replies are not held any more. */
void held_forget(struct worker *w, struct client *c);

#endif
