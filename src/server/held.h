/* Replies that may not leave yet: what they tell of is not durable. They are in their clients' output
   already, and hold back all that comes behind them, so that every client gets its replies in order.

   Released in the order in which they came; tickets become durable in order too, so that hardly one waits for
   longer than it has to. When commits fail, the replies that wait for them are replaced by the error. */
#ifndef LARDER_SERVER_HELD_H
#define LARDER_SERVER_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct client;
struct worker;

struct held_reply {
    struct client *client; /* NULL: it has gone */
    uint64_t start, end;   /* in all the output its client has ever had */
    int64_t ticket;
    int64_t deadline_us; /* when the client has waited long enough; 0: never */
    uint32_t replies;    /* that stand there */
    uint32_t shape;      /* of them, see struct protocol */
    uint64_t next;       /* the client's next wait, 0: none */
};

struct held_replies {
    struct held_reply *ring;
    size_t cap;           /* a power of two */
    uint64_t first, next; /* numbers of waits, from 1 */
    size_t ntimed;        /* of them with a deadline */
};

void held_release(struct held_replies *w);

/* What the client has been told from `start` on, an offset in its output buffer, waits for the ticket, but
   not longer than until deadline_us (0: as long as it takes). */
void held_add(struct worker *w, struct client *c, size_t start, int64_t ticket, int64_t deadline_us);

/* Replies that have waited until their deadlines are replaced: nobody knows yet what will become of what they
   tell. One that stands behind another reply leaves with that. Returns when the next deadline is, 0: there is
   none. */
int64_t held_expire(struct worker *w, int64_t now_us);

/* How much of a client's output buffer may leave. */
size_t held_free_output(const struct worker *w, const struct client *c);

/* Forgets the waits from this number on, the newest. Their clients' own marks are the caller's business. */
void held_cut(struct worker *w, uint64_t from);

/* Lets go of the replies whose tickets are durable: their clients are marked to be flushed. */
void held_settle(struct worker *w);

/* The replies that wait for this ticket or a later one become errors. */
void held_fail(struct worker *w, int64_t from, const struct error *err);

/* A reply that waits for more than a commit: SAVE's. */
#define HELD_FOR_SYNC INT64_MAX

/* What SAVE waited for has happened. */
void held_synced(struct worker *w);

/* The client goes. */
void held_forget(struct worker *w, struct client *c);

#endif
