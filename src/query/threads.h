/* clang-format off */
/* Threads that answer what takes long, so that no other client waits for it. The pool does not know what a job
   does (its kind says that; SQL's is query/move.h): it gives it a thread, and a view of the database that stands
   still.

   Each thread has a session of the database that only reads, and an engine on it, made when the first job comes. A
   job's snapshot, what makes it one state and what it costs others: store/snapshot.h where the tables trail behind
   what was committed (SQLite, mode=exclusive), else a transaction of the database's own (REPEATABLE READ), which
   begins behind every commit that was made when the job was. A client sees what it has written itself.

   The life of a job. The executor's thread owns it, but for the fields that say otherwise.

     made       by a handler, which then waits for it (block_for)
     queued     its transaction stands; so many at most, else it is refused
     running    a thread has it; result fields are that thread's
     over       told to the executor, whose thread then owns it all

   The end, by whatever comes first: it is done; sql-timeout is over, counted from when it was made; the client
   goes, is killed or unblocked; the server ends. `cancel` is what running jobs look at; a wait for the database
   ends by it, too, within 0.1 s, and costs the thread its connection, which is made anew. Nothing is ever written
   here: a crash leaves nothing.

   While the log of a SQLite database is larger than sql-max-wal and another job holds a snapshot, which keeps the
   log from starting over, a job waits for that one's end. */
/* clang-format on */
#ifndef LARDER_QUERY_THREADS_H
#define LARDER_QUERY_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"
#include "engine/engine.h"
#include "exec/block.h"

struct config;
struct query_job;
struct query_threads;

/* Opens a session that only reads, on the thread that will use it. away(away_arg) says whether to stop
   waiting for the database. */
typedef enum status query_open_fn(void *arg, bool (*away)(void *arg), void *away_arg, struct store **ret,
                                  struct error *err);

struct query_threads_options {
    uint32_t threads;   /* at most */
    uint32_t databases; /* as of the server's engines */
    query_open_fn *open;
    void *open_arg;
};

/* Starts no thread: the first job does. */
struct query_threads *query_threads_new(const struct query_threads_options *o);

/* Jobs that run are told to end, those that wait are refused, the threads are joined. More than once is fine.
 */
void query_threads_stop(struct query_threads *t);

/* t may be NULL. Stops it, too. */
void query_threads_free(struct query_threads *t);

/* How it goes; from any thread. */
struct query_stats {
    uint32_t threads;          /* that may be started */
    uint32_t running, waiting; /* jobs: on a thread, for one */
    uint64_t done;             /* answered */
    uint64_t failed;           /* by the database */
    uint64_t cancelled;        /* by whoever waited */
    uint64_t timed_out;        /* by sql-timeout */
    uint64_t refused;          /* too many waited */
    const struct histogram *us,
        *open_us; /* of those that ended on a thread: all, until they had a snapshot */
};
void query_threads_stats(struct query_threads *t, struct query_stats *ret);

/* ---- jobs ---- */

struct query_job_kind {
    /* What a thread has for jobs of this kind; made for the first, freed with the thread. */
    void *(*open)(void);
    void (*close)(void *tools);
    /* On the thread, in a call of a batch of e's that reads. A status is the database's failure, which err
       describes. */
    enum status (*run)(struct query_job *j, void *tools, struct engine *e, struct error *err);
    void (*free)(struct query_job *j);
};

/* Why a job has come to its end; of those that are not DONE nothing else is to be looked at. */
enum query_end {
    QUERY_ENDED,   /* as its kind says, unless status is not ST_OK */
    QUERY_LATE,    /* sql-timeout */
    QUERY_REFUSED, /* too many wait */
    QUERY_UNBLOCKED,
    QUERY_UNBLOCKED_BY_ERROR,
    QUERY_SHUTDOWN
};

struct query_job {
    struct block_job base; /* first */
    const struct query_job_kind *kind;
    struct query_threads *threads;
    struct executor *executor;
    struct session *session; /* that waits for it; NULL: nobody does any more */
    enum query_end end;      /* for who waits */
    int64_t made_us, took_us;
    /* Set before it is queued, never changed then. */
    struct store *store; /* the executor's: of its primary */
    int64_t ticket;      /* what was committed there up to now is seen */
    int64_t deadline_us; /* clock_mono_us */
    uint64_t max_wal;
    /* Every thread's. */
    _Atomic bool cancel;
    atomic_uint refs;
    /* The pool's, with its lock. */
    struct query_job *next;
    bool queued;
    /* Its thread's, until it is over. */
    bool late; /* its time was up: the pool finds out, or its kind says so */
    enum status status;
    struct error err;
};

/* Fills a zeroed job. */
void query_job_init(struct query_job *j, const struct query_job_kind *kind, struct executor *s);

/* The handler's call waits for it; it frees the job if that comes to nothing. */
void query_job_begin(struct query_job *j, struct call *c);

/* Whether there are threads, and the call is one that can wait: not one of several in EXEC, a script or a
   request. */
bool query_can_move(const struct call *c);

/* The job that the running call has waited for, of this kind; NULL: none. The call's time includes the job's.
 */
struct query_job *query_job_of(struct call *c, const struct query_job_kind *kind);

#endif
