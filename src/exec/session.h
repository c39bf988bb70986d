/* A client as commands see it. Sockets and buffers are the server's (server/client.c), reached through ops.
 */
#ifndef LARDER_EXEC_SESSION_H
#define LARDER_EXEC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct blocked;
struct command;
struct kept;
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
    /* A blocking command waits (session->blocked is set): gives up at this moment of the monotonic clock, 0
     * never. */
    void (*block)(struct session *s, int64_t deadline_us);
    /* Around a reply that the session's own command does not give: to a client that waited. wait: the
       ticket that must be durable before it leaves. When session->blocked is NULL at the end, the client
       goes on. */
    struct reply *(*reply_begin)(struct session *s);
    void (*reply_end)(struct session *s, int64_t wait);
};

/* The listener that a client came by. */
enum session_way { WAY_TCP, WAY_UNIX, WAY_TLS, WAY_HTTP, WAY_HTTPS };
#define SESSION_WAYS 5

enum session_reply { SESSION_REPLY_ON, SESSION_REPLY_OFF, SESSION_REPLY_SKIP_NEXT, SESSION_REPLY_SKIP };

struct session {
    const struct session_ops *ops;
    struct executor *executor;   /* whose client it is */
    struct session *prev, *next; /* in the server's list, oldest first */
    uint64_t id;
    uint32_t db;
    int resp; /* 2 or 3 */
    bool authenticated;
    bool monitor;
    bool no_evict;
    bool unix_socket;
    bool no_block; /* HTTP: a blocking command answers at once, as inside EXEC */
    enum session_way way;
    enum session_reply reply_mode; /* CLIENT REPLY */
    char *name;                    /* "" when none */
    char *lib_name;                /* CLIENT SETINFO */
    char *lib_ver;
    char addr[112]; /* "127.0.0.1:5000", "/path:0" */
    char laddr[112];
    int fd;
    int64_t created_us;         /* monotonic */
    int64_t active_us;          /* last command or byte, monotonic */
    const struct command *last; /* the last command run, for CLIENT LIST */
    struct blocked *blocked;    /* waits for a key, see block.h; NULL: it does not */
    struct txn *txn;            /* MULTI and WATCH, see txn.h; NULL while there is neither */
    struct kept *kept;          /* how it was before the running transaction, see retry.h; or NULL */
};

/* Fills a zeroed session with what a new connection starts as. */
void session_init(struct session *s, const struct session_ops *ops, bool authenticated);
void session_release(struct session *s);

/* Back to a new connection's state (RESET), authentication included when a password is required. */
void session_reset(struct session *s, bool authenticated);

void session_set_name(struct session *s, struct slice name);
void session_set_lib_name(struct session *s, struct slice name);
void session_set_lib_ver(struct session *s, struct slice version);

/* Names are printable ASCII without spaces, so that CLIENT LIST stays parseable. */
bool session_name_valid(struct slice name);

/* Connected from this machine. */
bool session_is_local(const struct session *s);

#endif
