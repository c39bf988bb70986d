/* A client as commands see it. Its socket and buffers are the server's (server/client.c), reached through
   ops. */
#ifndef LARDER_EXEC_SESSION_H
#define LARDER_EXEC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "replica/consistency.h"
#include "store/position.h"

struct blocked;
struct command;
struct reply;
struct executor;
struct session;
struct txn;

struct session_usage {
    size_t query_buffer, query_buffer_free; /* CLIENT LIST qbuf, qbuf-free */
    size_t output_buffer;                   /* bytes waiting to be sent */
    size_t total;
    char events[4]; /* "r", "rw" */
};

struct session_ops {
    /* Closes the connection: at once, or (when it is the one that asks) behind its reply. */
    void (*close)(struct session *s, bool after_reply);
    /* Sends bytes outside of a reply (MONITOR lines; RESP already). */
    void (*push)(struct session *s, struct slice bytes);
    void (*usage)(const struct session *s, struct session_usage *ret);
    /* A blocking command waits (session->state.blocked is set), or waits on: block_timer is called at this
       moment of the monotonic clock, 0 never. */
    void (*block)(struct session *s, int64_t deadline_us);
    /* Around a reply that the session's own command does not give: to a client that waited. wait: the
       ticket that must be durable before it leaves. When session->state.blocked is NULL at the end, the
       client goes on. */
    struct reply *(*reply_begin)(struct session *s);
    void (*reply_end)(struct session *s, int64_t wait);
};

/* The listener that a client came by. */
enum session_way { WAY_TCP, WAY_UNIX, WAY_TLS, WAY_HTTP, WAY_HTTPS };
#define SESSION_WAYS 5

enum session_reply { SESSION_REPLY_ON, SESSION_REPLY_OFF, SESSION_REPLY_SKIP_NEXT, SESSION_REPLY_SKIP };

/* CLIENT SETNAME, CLIENT SETINFO. */
enum session_text { SESSION_NAME, SESSION_LIB_NAME, SESSION_LIB_VER };
#define SESSION_TEXTS 3

struct session_words; /* one of them, as it was set; it never changes */

/* How far a session has got with MULTI and WATCH (txn.h). Zeroed: there is neither. */
enum txn_phase { TXN_NONE, TXN_OPEN, TXN_RUNNING };
struct txn_state {
    struct txn *txn; /* the queue and the watches, of which the first so many count */
    size_t nqueue, nwatches;
    enum txn_phase phase;
    bool spoilt;                 /* EXEC will refuse all */
    bool writes;                 /* something in the queue may write ... */
    bool must_write;             /* ... is no script, which may do without */
    bool outside, stops_workers; /* ... is CMD_OUTSIDE, CMD_STOPS_WORKERS */
};

/* All that commands change about a session. A copy by value brings it back, whatever has happened since: what
   is a member here is restored without code of its own. What the members point to is not changed in a way
   that a copy would notice, and not freed while there are copies (session_keep). */
struct session_state {
    uint32_t db;
    int resp; /* 2 or 3 */
    bool authenticated;
    bool monitor;
    bool no_evict;
    enum session_reply reply_mode;                    /* CLIENT REPLY */
    const struct session_words *texts[SESSION_TEXTS]; /* NULL: "" */
    const struct command *last;                       /* the last command run, for CLIENT LIST */
    struct blocked *blocked;                          /* waits for a key, see block.h; NULL: it does not */
    struct blocked *answered;                         /* what it waited for is done: its call runs again */
    struct txn_state txn;
    struct consistency consistency; /* what its reads may be served from */
    /* What it has written or seen, so far as that is known (replica/replicas.h). unplaced: it has written
       since, and where that is in the database's log is not known; see session_position in exec/reads.h. */
    struct position position;
    bool unplaced;
};

struct session {
    const struct session_ops *ops;
    struct executor *executor;   /* whose client it is */
    struct session *prev, *next; /* in the executor's list, oldest first */
    uint64_t id;
    struct session_state state;
    bool unix_socket;
    bool no_block; /* HTTP: a blocking command answers at once, as inside EXEC */
    bool several;  /* HTTP: the running command is one of several of one request, none of which can wait */
    enum session_way way;
    char addr[112]; /* "127.0.0.1:5000", "/path:0" */
    char laddr[112];
    int fd;
    int64_t created_us; /* monotonic */
    int64_t active_us;  /* last command or byte, monotonic */
    bool gone;          /* closed; it is freed at the end of the turn */
    void *request;      /* the protocol's own, for handlers of its family: what is being answered */
    /* Before the running transaction, if that may have to be run again and has touched it (undo.h). */
    struct session_state before;
    bool kept;
    struct session *next_kept;
    /* What the state and its copies point to, all of it. Without copies, the state alone. */
    uint32_t copies;
    struct session_words *words;
    struct txn *txns;
    struct blocked *waits;
};

/* Fills a zeroed session with what a new connection starts as: it reads from the primary until the caller
   says otherwise. */
void session_init(struct session *s, const struct session_ops *ops, bool authenticated);
void session_release(struct session *s);

/* Back to a new connection's state (RESET), authentication included when a password is required. What it has
   written and seen it has still. */
void session_reset(struct session *s, bool authenticated);

/* A name; "" when there is none. */
const char *session_text(const struct session *s, enum session_text which);
void session_set_text(struct session *s, enum session_text which, struct slice text);

/* A copy of the state that the session may be brought back to, before session_let_go is called once. Copies
   nest: one that was made later is let go of earlier. */
struct session_state session_keep(struct session *s);
void session_restore(struct session *s, const struct session_state *was);
void session_let_go(struct session *s);

/* Names are printable ASCII without spaces, so that CLIENT LIST stays parseable. */
bool session_name_valid(struct slice name);

/* Connected from this machine. */
bool session_is_local(const struct session *s);

#endif
