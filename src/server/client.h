/* A connection: its socket, its input with the parser over it, its output, and the session that commands see.

   Input stays where it was read until its commands are committed, because their arguments point into it:

     in.p   [ run )[ parsed: waits in the batch )[ not yet parsed )
            0      done                          parsed            in.len

   Output is one buffer of which `sent` bytes have left. Replies of a batch are appended while it runs and
   leave when what they tell of is durable (held.h).

   Reading and output. Some clients send a whole pipeline before they read the first reply, so a server that
   stops reading because replies pile up may wait for a client that waits for it. Redis reads on and lets the
   replies pile up. Here, while more than CLIENT_HOLD_OUTPUT of replies is unsent, input is still read but not
   run: what waits in memory is then commands, which are small, and not their replies, which may be a
   thousand times larger. When the input grows beyond CLIENT_HOLD_INPUT (or half of client-query-buffer-limit)
   as well, commands run again and the replies pile up as in Redis, within client-output-buffer-limit. */
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

struct http_conn;
struct worker;

#define CLIENT_HOLD_OUTPUT ((size_t)1 << 20)
#define CLIENT_HOLD_INPUT  ((size_t)16 << 20)

enum client_state {
    CLIENT_OPEN,
    CLIENT_DRAINING,  /* reads no more; closed when its output has left */
    CLIENT_LINGERING, /* that has left; what still comes is thrown away, for a while */
    CLIENT_DEAD       /* closed; freed at the end of the turn */
};

struct client {
    struct session session; /* first: commands see only this */
    struct worker *worker;
    const struct protocol *protocol;
    struct conn conn;
    int64_t pause_until_us;   /* when a command that waits for the end of a pause gives up; 0: never */
    int64_t block_until_us;   /* when a blocking command gives up; 0: never */
    struct event block_event; /* the end of a blocking command's patience */
    enum client_state state;
    bool eof;                  /* the peer has sent its last byte */
    bool paused;               /* CLIENT PAUSE: in worker->paused */
    bool ready;                /* has input to parse without waiting for more: in worker->ready */
    bool in_batch;             /* has calls in the batch: in batch->clients */
    bool to_flush;             /* in worker->flush */
    bool stalled;              /* its output stopped it in the middle of the batch */
    bool filled;               /* the last read took all the room there was */
    bool kept;                 /* in worker->retry */
    bool broken;               /* the parser found an error, which is on its way to the client */
    struct resp_parser parser; /* RESP */
    bool exec_chose;           /* RESP: the last to change its database was EXEC ... */
    uint32_t exec_left;     /* ... and left this one, plus 1, in the call that was run last; 0: it did not */
    struct http_conn *http; /* HTTP */
    struct buf in;
    size_t done, parsed;
    struct resp_reply reply;
    struct buf out;
    size_t sent;
    size_t reply_start;             /* in out, of a reply to a blocked client */
    uint64_t out_base;              /* output that has left the buffer */
    uint64_t held_first, held_last; /* numbers of its waits, 0: none */
    int64_t soft_since_us;          /* output has been above the soft limit since; 0: it is not */
    int64_t flushed_us;             /* when output last moved */
};

/* Takes over conn, which was counted for w. */
struct client *client_new(struct worker *w, struct conn conn, const struct protocol *protocol);

/* Only at the end of a turn, when nothing refers to it. */
void client_free(struct client *c);

/* Sends what can be sent now and watches for the rest; closes when that was the last of it. */
void client_flush(struct client *c);

/* Output has been added, or need not wait any more: it leaves at the end of the turn. */
void client_touch(struct client *c);

/* No more input; closes behind the output. */
void client_drain(struct client *c);

/* Closes now; what was not sent is lost. */
void client_kill(struct client *c);

/* CLIENT PAUSE: the commands that did not run wait where they are. until_us: when the first of them has to be
   told that it is too late; 0: never. */
void client_pause(struct client *c, int64_t until_us);
void client_resume(struct client *c);

/* The batch is over: input that was run is given up. */
void client_batch_done(struct client *c);

/* Once a second: idle clients, output limits, memory of quiet clients. */
void client_tick(struct client *c, int64_t now_us);

/* There is still room for input to wait. */
bool client_may_wait(const struct client *c);

/* A client before a transaction that may have to be run again (retry.h), and back to that. */
struct client_before {
    struct client *client;
    enum client_state state;
    bool paused, stalled;
    size_t done, output;
    uint64_t held_first, held_last;
    int64_t block_until_us;
};
struct client_before client_before(struct client *c);
void client_take_back(const struct client_before *was);

/* The output does not keep up: commands wait. */
static inline bool client_held(const struct client *c)
{
    return c->out.len - c->sent > CLIENT_HOLD_OUTPUT && client_may_wait(c);
}

#endif
