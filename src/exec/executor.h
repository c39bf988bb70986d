/* What commands share across clients: configuration, clients, statistics, logs of slow commands.

   A process has a struct executor for each of its workers (server/workers.h), which that worker's thread
   alone uses, and one struct server for all of them. A command that concerns the whole process
   (CMD_STOPS_WORKERS: INFO, CLIENT KILL, CONFIG SET, ...) runs while the other workers stand still between
   two batches: it may use all servers, and change what all of them read, as if there were one thread. */
#ifndef LARDER_EXEC_EXECUTOR_H
#define LARDER_EXEC_EXECUTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"
#include "config/config.h"
#include "exec/books.h"
#include "exec/session.h"

/* The Redis whose commands and answers these are: clients choose what they send by it. */
#define REDIS_VERSION "7.0.15"

struct engine;
struct view;
struct command;
struct command_result;
struct blocked;
struct blocking;
struct http_api;
struct slowlog;
struct latency;

struct command_stat {
    uint64_t rejected, failed;
    struct histogram us; /* of every call: how many there were, how long they took */
};

/* Something per second, as the mean of the last samples. */
#define RATE_SAMPLES 16
struct rate {
    uint64_t samples[RATE_SAMPLES];
    uint64_t seen; /* the total at the last sample */
};

/* Why a client was turned away, and why a connection was closed that the client had not ended. */
enum rejection { REJECTED_MAXCLIENTS, REJECTED_PROTECTED, REJECTED_DESCRIPTORS, REJECTED_HANDSHAKE };
#define REJECTIONS 4
enum closure {
    CLOSED_IDLE,
    CLOSED_KILLED,
    CLOSED_QUERY_LIMIT,
    CLOSED_OUTPUT_LIMIT,
    CLOSED_UNREAD,
    CLOSED_PROTOCOL
};
#define CLOSURES 6

#define HTTP_STATUS_END 600

struct executor_stats {
    uint64_t accepted[SESSION_WAYS], rejected[REJECTIONS], closed[CLOSURES];
    uint64_t commands;
    uint64_t net_in, net_out;
    uint64_t errors; /* total_error_replies */
    uint64_t acl_denied_auth;
    uint64_t reads, writes; /* of sockets */
    uint64_t peak_memory;
    uint64_t database_errors[STATUSES];
    struct histogram batch_commands;
    uint64_t http_answers[HTTP_STATUS_END]; /* by status */
    uint64_t wakeups;                       /* times that others told of what blocked clients may wait for */
    uint64_t reruns;                        /* transactions whose commands were run again */
    uint64_t sweep_passes;                  /* that found something, each of many steps */
    struct rate ops, input, output;         /* of commands, net_in, net_out */
    unsigned slot;
    int64_t sample_at_us;
};

enum pause_mode { PAUSE_NONE, PAUSE_WRITE, PAUSE_ALL };

#define WORKERS_MAX 64

/* What the servers of a process have in common. What is neither atomic nor locks itself changes only at the
   start, and while all workers but one stand still. */
struct server {
    struct executor *executors[WORKERS_MAX];
    uint32_t nexecutors;
    _Atomic uint64_t next_id;   /* of a session; the first is 1 */
    _Atomic uint32_t nmonitors; /* of all servers */
    struct blocking *blocking;  /* clients that wait for keys; locks itself */
    struct slowlog *slowlog;    /* of stats/, as the next; locks itself */
    struct latency *latency;    /* locks itself */
    char run_id[41];
    int64_t start_us; /* monotonic */
    size_t start_memory;
    int64_t last_save_ms; /* wall */
    uint64_t saves;
    int tcp_port;      /* the one really bound */
    bool sweep_active; /* DEBUG SET-ACTIVE-EXPIRE */
};

struct executor {
    struct server *server;
    uint32_t index; /* in server->executors */
    struct config *config;
    struct engine *engine;
    struct view *view;
    /* Monotonic: the worker sets it when a batch starts, command_run to each command's end, which is the next
       one's start. */
    int64_t clock_us;
    struct session *first, *last; /* every client, oldest first */
    uint32_t nsessions;
    _Atomic uint32_t nmonitors; /* others read it */
    struct books books;
    /* What was posted from the books, and what is counted between transactions. */
    struct executor_stats stats;
    struct command_stat *command_stats; /* by command_index */
    struct error_counts errors;
    struct blocked *waiters; /* its clients that wait for keys */
    uint32_t nwaiters;
    /* For other servers, when the transaction has been committed: 1 << index: a client of that one is the
       next to get what was made. */
    uint64_t others_due;
    struct http_api *http; /* the HTTP API's own; NULL: it is not spoken */
    struct arena call_arena;
    uint64_t saved_dirty; /* the engine's `dirty` when SAVE last succeeded */
    enum pause_mode pause;
    int64_t pause_until_us; /* monotonic */
    bool unreadable;        /* this batch could not begin: what needs the database answers write_err */
    bool may_retry;         /* the running transaction may have to be run again, see retry.h ... */
    struct session *kept;   /* ... and has touched these */
    /* How configuration that lives elsewhere changes at run time; set by the worker. When it cannot, the
       caller puts the old value back; the reason is for the client. What has to follow goes to *result. */
    enum status (*config_changed)(struct executor *s, const struct option *o, struct command_result *result,
                                  struct error *err);
    /* From the threads of other servers, set by the worker: clients of this one may have something to take;
       a line for those of its clients that monitor. */
    void (*look)(struct executor *s);
    void (*tell_monitors)(struct executor *s, struct slice line);
    void *worker;
};

void server_init(struct server *c);
void server_release(struct server *c);

/* Everything but the functions, which the caller sets before. The executor joins the server. */
void executor_init(struct executor *s, struct server *server, struct config *config, struct engine *engine);
void executor_release(struct executor *s);

/* A number for a session: they are in the order in which the clients came. */
uint64_t server_next_id(struct server *all);

void executor_add_session(struct executor *s, struct session *c); /* which has its number */
void executor_remove_session(struct executor *s, struct session *c);

/* The client of this number, of whichever server, or NULL. */
struct session *server_find_session(const struct server *all, uint64_t id);

/* The clients of all servers, oldest first. */
struct session **server_list_sessions(const struct server *all, struct arena *arena, size_t *ret_n);

/* A transaction has ended: tells the other servers what is for them. */
void executor_tell_others(struct executor *s);

/* MONITOR begins or ends for a client of this server. */
void executor_set_monitor(struct executor *s, struct session *c, bool on);

/* Once a second (or so): samples for instantaneous_ops_per_sec, peak memory. */
void executor_tick(struct executor *s);
uint64_t rate_mean(const struct rate *r);

/* Bytes of memory in use (what is resident, where the allocator does not tell); keeps the peak. */
size_t executor_used_memory(struct executor *s);

/* Bytes that clients take, their buffers above all. */
size_t executor_client_memory(const struct executor *s);

/* What SAVE asked for has been done. */
void server_saved(struct server *all);

/* CONFIG RESETSTAT, of this server. */
void executor_reset_stats(struct executor *s);

/* An error reply goes into the books, by its code ("ERR", "WRONGTYPE"). */
void executor_note_error(struct executor *s, const char *code);

/* So does a failure of the database. */
void executor_note_failure(struct executor *s, enum status st);

/* CLIENT PAUSE: a pause only ever becomes longer and stricter, until it ends. */
void executor_pause(struct executor *s, enum pause_mode mode, int64_t mono_us, int64_t until_us);

/* True while commands of this kind must wait (CLIENT PAUSE). */
bool executor_paused(struct executor *s, bool may_write, int64_t mono_us);
#endif
