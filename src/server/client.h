/* A connection: its socket, its input with the parser over it, its output, and the session that commands see.

   Input stays where it was read until its commands are committed, because their arguments point into it:

     in.p   [ run )[ parsed: waits in the batch )[ not yet parsed )
            0      done                          parsed            in.len

   Output is one buffer of which `sent` bytes have left. Replies of a batch are appended while it runs and
   leave when what they tell of is durable (held.h).

   Reading and output. Some clients send a whole pipeline before they read the first reply, so a server that
   stops reading because replies pile up may wait for a client that waits for it. Redis reads on and lets the
   replies pile up. Here, while more than CLIENT_STALL_OUTPUT of replies is unsent, input is still read but
   not run: what waits in memory is then commands, which are small, and not their replies, which may be a
   thousand times larger. When the input grows beyond CLIENT_STALL_INPUT (or half of
   client-query-buffer-limit) as well, commands run again and the replies pile up as in Redis, within
   client-output-buffer-limit. */
#ifndef LARDER_SERVER_CLIENT_H
#define LARDER_SERVER_CLIENT_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/buf.h"
#include "exec/session.h"
#include "net/conn.h"
#include "proto/resp.h"
#include "proto/resp_reply.h"
#include "server/protocol.h"

struct worker;

#define CLIENT_STALL_OUTPUT ((size_t)1 << 20)
#define CLIENT_STALL_INPUT  ((size_t)16 << 20)

/* clang-format off */
/* A client is in one state. client_change_state alone changes it, keeps the list of the state, and turns
   reading on and off.

     accepted                     +---------------- the batch is over -----------------+
        |                         v                                                    |
        +---------------------> READING -- a whole call --> BATCHED -- its share --> BATCHED_MORE
                                 ^ |                        ^  |                       |
           nothing whole is left | | (see below)            |  | the next call has to wait
                                 | v                        |  v                       v
                                READY <---- may go on ---- PAUSED, BLOCKED, STALLED <--+
                                  |                         ^
                                  +---- a whole call -------+ (BATCHED)

     any of these -- QUIT, a parse error, SHUTDOWN, CLIENT KILL of itself --> DRAINING --> LINGERING --> DEAD
     any state    -- failure, limit, CLIENT KILL, the peer has gone ----------------------------------> DEAD

   state          its list         reads  what it is
   READING                         yes    waits for input
   READY          worker->ready    yes    has input that the next turn parses without waiting for more
   BATCHED                         yes    has calls in the batch: all that its input has
   BATCHED_MORE                    yes    ... as many as its share of a turn; the input has more
   PAUSED         worker->paused   no     its next call waits for the end of CLIENT PAUSE, for the database's
                                          lock, or until the store has caught up
   BLOCKED                         yes    a blocking command waits for a key (session->state.blocked)
   STALLED                         yes    its output does not keep up: its next call waits
   DRAINING                        no     nothing more is run; its output leaves
   LINGERING                       yes    its output has left; what still comes is thrown away, for a while
   DEAD           worker->dead     no     closed; freed at the end of the turn, or of its batch

   What happens:
     readable         READING, STALLED: reads and parses. BLOCKED: reads. LINGERING: reads and throws away.
                      Others: nothing. While a batch is pending, in every state: is not read from until that
                      is over (gather_later).
     end of input     sets eof. When its output has left, READING and BLOCKED -> DEAD; the others go on with
                      what they have.
     parse error      sets broken; the last call of the batch tells the client and ends in DRAINING.
     call runs        BATCHED stays; it blocks -> BLOCKED, ends the connection -> DRAINING.
     call must wait   BATCHED -> PAUSED or STALLED. Calls behind it are skipped (only BATCHED runs) and parsed
                      again: their input is still there.
     batch over       BATCHED -> READING, BATCHED_MORE -> READY, STALLED -> READY if it may go on; READING (it
                      was blocked and served in the batch) -> READY if it has skipped calls.
     batch runs again client_take_back restores the state, unless the client is DEAD.
     writable         sends. STALLED -> READY when its output keeps up. DRAINING, all sent -> LINGERING (broken,
                      in a protocol that lingers, and the peer still sends) or DEAD.
     pause over       PAUSED -> READY.
     key, timeout     BLOCKED -> READY when there is input, else READING.
     drain            any state before DRAINING -> DRAINING.
     kill, failure,   any state -> DEAD.
     output limit     */
/* clang-format on */
enum client_state {
    CLIENT_READING,
    CLIENT_READY,
    CLIENT_BATCHED,
    CLIENT_BATCHED_MORE,
    CLIENT_PAUSED,
    CLIENT_BLOCKED,
    CLIENT_STALLED,
    CLIENT_DRAINING,
    CLIENT_LINGERING,
    CLIENT_DEAD
};
#define CLIENT_STATES 10

/* The clients in one of the states that have a list, oldest first. */
struct client_list {
    struct client *first, *last;
    size_t n;
};

/* What running calls changes about a connection, beside its session and its output. A copy by value brings it
   back (client_take_back): what is a member here is restored without code of its own. */
struct client_progress {
    enum client_state state;
    uint32_t shape;  /* of the answer that was given last: what its protocol has to know of it if an error
                        has to take its place */
    bool exec_chose; /* RESP: the last to change its database was EXEC */
    size_t done;     /* input that was run */
    int64_t pause_until_us; /* when a command that waits for the end of a pause gives up; 0: never */
    int64_t paid_us;        /* until when what it wrote counts as much (transaction.c) */
    int64_t stale_from_us; /* when a read that waits for a database with what it has seen gives up; 0: none */
    int64_t block_until_us; /* when a blocking command gives up; 0: never */
    int64_t queued_us;      /* HTTP: when the oldest request that has not run was whole; 0: there is none */
    uint64_t held_first, held_last; /* numbers of its held replies, 0: none */
};

/* Where its calls in a transaction go (legs.h). */
struct client_route {
    uint64_t number;      /* of the routing that this is of */
    int leg;              /* of the last one that others are to follow */
    bool queues;          /* MULTI has come ... */
    bool watches;         /* ... WATCH */
    bool strayed;         /* so has something that does not only read */
    struct position seen; /* what those have seen that memory serves */
};

struct client {
    struct session session; /* first: commands see only this */
    struct worker *worker;
    const struct protocol *protocol;
    struct conn conn;
    struct client_progress run;
    struct client_route route;
    struct client *prev, *next; /* in the list of its state */
    /* True or not in any state. */
    bool in_batch;   /* in batch->clients: calls of the batch point into its input, which stays where it is */
    bool eof;        /* the peer has sent its last byte */
    bool broken;     /* the parser found an error, which is on its way to the client */
    bool unread;     /* in worker->unread: it is read from when the pending batch has ended */
    bool to_flush;   /* in worker->flush */
    bool kept;       /* in worker->undo */
    bool bound;      /* while busy.c looks: it has a call in the running transaction */
    bool declared;   /* a call of the batch has declared keys */
    bool met;        /* while gather_apart looks: a call of it wants a key that another worker has claimed */
    uint8_t put_off; /* so many batches in a row it has left because of that */
    struct event block_event; /* the end of a blocking command's patience */
    /* Input. */
    struct buf in;
    size_t parsed;
    bool filled;               /* the last read took all the room there was: the next has more */
    struct resp_parser parser; /* RESP */
    void *protocol_data;       /* the protocol's own */
    /* Output. */
    struct resp_reply reply;
    struct buf out;
    size_t sent;
    size_t reply_start;    /* in out, of a reply to a blocked client */
    uint64_t out_base;     /* output that has left the buffer */
    int64_t soft_since_us; /* output has been above the soft limit since; 0: it is not */
    int64_t flushed_us;    /* when output last moved */
};

/* Takes over conn, which was counted for w. */
struct client *client_new(struct worker *w, struct conn conn, const struct protocol *protocol);

/* The one place where a client's state changes. Asserts that the change is one of those above. */
void client_change_state(struct client *c, enum client_state to);

/* Only at the end of a turn, when nothing refers to it. */
void client_free(struct client *c);

/* Sends what can be sent now, and leaves it in the buffer. */
void client_send(struct client *c);

/* Sends what can be sent now and watches for the rest; closes when that was the last of it. */
void client_flush(struct client *c);

/* Output has been added, or need not wait any more: it leaves at the end of the turn. */
void client_flush_later(struct client *c);
static inline void client_touch(struct client *c)
{
    if (!c->to_flush)
        client_flush_later(c);
}

/* No more input; closes behind the output. */
void client_drain(struct client *c);

/* Closes now; what was not sent is lost. */
void client_kill(struct client *c);

/* The next call of a client in the batch has to wait. until_us: from then on it runs, and says that it is too
   late; 0: it waits as long as it takes. */
void client_pause(struct client *c, int64_t until_us);

/* Parsing has found nothing whole: waits for more input. */
void client_found_nothing(struct client *c);

/* The batch is over: input that was run is given up, what was skipped will be parsed again. */
void client_batch_done(struct client *c);

/* So, before any of its calls has run. */
void client_leave_batch(struct client *c);

/* Once a second: idle clients, output limits, memory of quiet clients. */
void client_tick(struct client *c, int64_t now_us);

/* A client before a transaction that may have to be run again (undo.h), and back to that. */
struct client_before {
    struct client *client;
    struct client_progress run;
    size_t output; /* how long it was: nothing of it leaves meanwhile */
};
struct client_before client_before(struct client *c);
void client_take_back(const struct client_before *was);

/* A call of it in the batch may run. */
static inline bool client_batched(const struct client *c)
{
    return c->run.state == CLIENT_BATCHED || c->run.state == CLIENT_BATCHED_MORE;
}

/* Its connection has not begun to end. */
static inline bool client_open(const struct client *c)
{
    return c->run.state < CLIENT_DRAINING;
}

static inline size_t client_backlog(const struct client *c)
{
    return c->out.len - c->sent;
}

/* There is still room for input to wait. */
bool client_may_wait(const struct client *c);

/* The output does not keep up: commands wait. */
static inline bool client_must_stall(const struct client *c)
{
    return client_backlog(c) > CLIENT_STALL_OUTPUT && client_may_wait(c);
}

/* ---- what protocols ask ---- */

/* Monotonic, of this turn of the loop. */
int64_t client_now(struct client *c);

/* The server is about to end: connections are closed behind their next answer. */
bool client_is_last_call(const struct client *c);

/* Whether there is output that may leave, and that the peer does not take. */
bool client_is_unread(const struct client *c);

/* Whether it only waits for input: it is not about to be closed, and none of its calls and answers is on its
   way. */
bool client_is_idle(const struct client *c);

#endif
