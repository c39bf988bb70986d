/* What commands share across clients: configuration, clients, statistics, logs of slow commands.

   A process has one struct server, and for each of its workers (server/workers.h) a struct executor that the
   worker's thread alone uses. A command that concerns the whole process (CMD_STOPS_WORKERS: INFO, CLIENT
   KILL, CONFIG SET, ...) runs while the other workers stand still between two batches: it may use every
   executor, and change what all of them read, as if there were one thread.

   An executor has one engine, the primary's, or several: then the others are those of the primary's replicas.
   A transaction may use any of them (server/legs.h): executor_use_engine makes one the engine that calls see
   (call->view). But while a call runs that reads from a replica, it is the primary's. */
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
#define REDIS_VERSION     "7.0.15"
#define REDIS_VERSION_NUM (7 << 16 | 0 << 8 | 15)

struct catalog;
struct query_engine;
struct engine;
struct view;
struct command;
struct command_result;
struct blocked;
struct blocking;
struct block_job;
struct query_threads;
struct http_api;
struct slowlog;
struct latency;
struct recent;
struct replicas;
struct running;
struct script_cache;
struct script_run;
struct scripts;

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

#define ENGINES_MAX 16

/* Where reads are served from: by the primary, by the replicas 1 to ENGINES_MAX - 1, from memory. */
#define READ_FROM_MEMORY ENGINES_MAX
#define READ_PLACES      (ENGINES_MAX + 1)

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
    /* Calls that only read and may be served elsewhere than by the primary, of servers with replicas. */
    uint64_t served[READ_MODES][READ_PLACES];
    struct rate ops, input, output; /* of commands, net_in, net_out */
    unsigned slot;
    int64_t sample_at_us;
};

enum pause_mode { PAUSE_NONE, PAUSE_WRITE, PAUSE_ALL };

#define WORKERS_MAX 64

/* The process: what its executors have in common. What is neither atomic nor locks itself changes only at the
   start, and while all workers but one stand still. */
struct server {
    struct executor *executors[WORKERS_MAX];
    uint32_t nexecutors;
    _Atomic uint64_t next_id;          /* of a session; the first is 1 */
    _Atomic uint32_t nmonitors;        /* of all executors */
    struct blocking *blocking;         /* clients that wait for keys; locks itself */
    _Atomic uint32_t nblocked;         /* how many those are */
    struct query_threads *queries;     /* of query/; locks itself. NULL: there are none */
    struct slowlog *slowlog;           /* of stats/, as the next; locks itself */
    struct latency *latency;           /* locks itself */
    struct replicas *replicas;         /* of the database; NULL: it has none; locks itself */
    struct script_cache *script_cache; /* of script/; locks itself */
    struct running *running;           /* scripts that are busy, of script/; locks itself */
    char run_id[41];
    int64_t start_us; /* monotonic */
    size_t start_memory;
    int64_t last_save_ms; /* wall */
    uint64_t saves;
    int tcp_port;      /* the one really bound */
    bool sweep_active; /* DEBUG SET-ACTIVE-EXPIRE */
};

/* The calls of the running transaction that memory serves (memory_reads.h). */
struct from_memory {
    bool begun, ran; /* there are such; there were */
    int64_t now_us;  /* monotonic */
};

struct executor {
    struct server *server;
    uint32_t index; /* in server->executors */
    struct config *config;
    struct http_api *http;      /* the HTTP API's own; NULL: it is not spoken */
    struct query_engine *query; /* what runs SQL, of query/; NULL: none was asked for yet */
    struct catalog *catalog;    /* the tables that it knows, of table/; NULL: none was asked for yet */
    struct scripts *scripts;    /* its interpreters, of script/; NULL: no script has come yet */
    /* Engines. */
    struct engine *engines[ENGINES_MAX];
    uint32_t nengines;
    struct engine *engine; /* of the running transaction ... */
    struct view *view;     /* ... and its view: executor_use_engine sets both */
    struct recent *recent; /* rows that they read a while ago; NULL: nobody else writes to the tables */
    struct from_memory from_memory;
    uint64_t saved_dirty; /* the engines' `dirty` when SAVE last succeeded */
    /* Clients. */
    struct session *first, *last; /* every client, oldest first */
    uint32_t nsessions;
    _Atomic uint32_t nmonitors; /* other threads read it */
    struct blocked *waiters;    /* its clients that wait for keys */
    uint32_t nwaiters;
    struct blocked *job_waiters; /* those that wait for what another thread does (block_for) */
    uint32_t njob_waiters;
    bool jobs_due; /* some of those jobs may not have been started */
    enum pause_mode pause;
    int64_t pause_until_us; /* monotonic */
    /* The running transaction. */
    int64_t clock_us; /* monotonic: its beginning; then the end of each command, where the next one starts */
    struct arena call_arena;
    bool unreadable;                /* it could not begin: what needs the database answers write_err */
    uint32_t place;                 /* where the running call reads: 0 the primary, i the replica i ... */
    int64_t place_age_us;           /* ... and how old that is at most; INT64_MAX: not known */
    uint64_t failures;              /* calls that the database has failed, since the start */
    bool may_retry;                 /* it may have to be run again, see undo.h ... */
    struct session *kept;           /* ... and has touched these */
    uint64_t random, random_before; /* scripts draw numbers from it; before this transaction */
    bool others_stand;              /* the other workers stand still ... */
    bool wants_others_to; /* ... and have to: a script has come to a command that is CMD_STOPS_WORKERS */
    bool builds_asked; /* a command has left an index to be built: the worker looks (table/build/walker.h) */
    uint64_t others_due; /* 1 << index: a client of that executor is the next to get what was made */
    struct books books;
    /* What was posted from the books, and what is counted between transactions. */
    struct executor_stats stats;
    struct command_stat *command_stats; /* by command_index */
    struct error_counts errors;
    uint64_t failed_syncs; /* of SAVE and WAITAOF; a commit that has failed counts as one */
    /* Set by the worker. */
    void *worker;
    /* Configuration that lives elsewhere changes at run time. When it cannot, the caller puts the old value
       back; the reason is for the client. What has to follow goes to *result. */
    enum status (*config_changed)(struct executor *s, const struct option *o, struct command_result *result,
                                  struct error *err);
    /* From the threads of other executors: clients of this one may have something to take; a line for those
       of its clients that monitor. */
    void (*look)(struct executor *s);
    void (*tell_monitors)(struct executor *s, struct slice line);
    /* From another thread: a job is over, and this executor's thread calls fn with it. */
    void (*job_over)(struct executor *s, struct block_job *job,
                     void (*fn)(struct executor *s, struct block_job *job));
    /* A script has run for a while (run->slow_at_us): called now and then until it ends, and may end it
       (script_run_kill); then once more, when it has ended. NULL: nobody cares. */
    void (*script_slow)(struct executor *s, struct script_run *run);
    void (*script_over)(struct executor *s, struct script_run *run);
};

void server_init(struct server *server);
void server_release(struct server *server);

/* Fills in everything but what the worker sets. The executor joins the server; engine is its first. */
void executor_init(struct executor *s, struct server *server, struct config *config, struct engine *engine);
void executor_release(struct executor *s);

void executor_add_engine(struct executor *s, struct engine *engine);

/* From here on calls use this engine. */
void executor_use_engine(struct executor *s, struct engine *engine);

/* A number for a session: they are in the order in which the clients came. */
uint64_t server_next_id(struct server *server);

void executor_add_session(struct executor *s, struct session *c); /* which has its number */
void executor_remove_session(struct executor *s, struct session *c);

/* The client of this number, of whichever executor, or NULL. */
struct session *server_find_session(const struct server *server, uint64_t id);

/* The clients of all executors, oldest first. */
struct session **server_list_sessions(const struct server *server, struct arena *arena, size_t *ret_n);

/* A transaction has ended: tells the other executors what is for them. */
void executor_tell_others(struct executor *s);

/* MONITOR begins or ends for a client of this executor. */
void executor_set_monitor(struct executor *s, struct session *c, bool on);

/* Once a second (or so): samples for instantaneous_ops_per_sec, peak memory. */
void executor_tick(struct executor *s);
uint64_t rate_mean(const struct rate *r);

/* Bytes of memory in use (what is resident, where the allocator does not tell); keeps the peak. */
size_t executor_used_memory(struct executor *s);

/* Bytes that clients take, their buffers above all. */
size_t executor_client_memory(const struct executor *s);

/* What SAVE asked for has been done. */
void server_saved(struct server *server);

/* CONFIG RESETSTAT, of this executor. */
void executor_reset_stats(struct executor *s);

/* An error reply goes into the books, by its code ("ERR", "WRONGTYPE"). */
void executor_note_error(struct executor *s, const char *code);

/* Whether this server only reads its database, as it is now (option read-only). */
bool executor_only_reads(const struct executor *s);

/* So does a failure of the database. */
void executor_note_failure(struct executor *s, enum status st);

/* CLIENT PAUSE: a pause only ever becomes longer and stricter, until it ends. */
void executor_pause(struct executor *s, enum pause_mode mode, int64_t mono_us, int64_t until_us);

/* True while commands of this kind must wait (CLIENT PAUSE). */
bool executor_paused(struct executor *s, bool may_write, int64_t mono_us);
#endif
