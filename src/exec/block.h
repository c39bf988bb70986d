/* Blocking commands: clients that wait for a list or sorted set to have something for them.

   The handler of a blocking command tries its keys. If none has anything and the client may wait (not inside
   EXEC), it calls block_on: its arguments are copied, nothing is replied, and the client's later commands
   wait behind it. When a command, or a whole EXEC, has made a list or sorted set appear under a key,
   the transaction's loop runs the waiting commands again right behind it (block_serve): key by key in the
   order in which they appeared, and for each key the clients in the order in which they blocked. A command
   that is served so looks at that key alone (block_wants). What it takes is gone from the tables in the same
   transaction that brings the other client's push there; a client that disconnects while it waits has taken
   nothing.

   Clients of several executors (workers) wait in the same queues. Each executor runs the commands of its own
   clients only: when the next in a queue is another's, serving stops there, and when the batch has been
   committed that executor is told to look (executor->others_due). So the order holds among all clients of the
   process. The queues have a lock, which is held while they are looked at and changed, and never while a
   command runs; a wait belongs to its executor's thread, and only that thread takes it out. */
#ifndef LARDER_EXEC_BLOCK_H
#define LARDER_EXEC_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "exec/command.h"
#include "exec/executor.h"

struct blocking; /* all clients that wait; one for the process */
struct blocked;  /* one client's wait; session->state.blocked */

struct blocking *blocking_new(void);
void blocking_free(struct blocking *b);

/* How many wait, of all executors; from any thread. */
static inline uint32_t block_clients(const struct server *s)
{
    return atomic_load_explicit(&s->nblocked, memory_order_relaxed);
}

/* Reads a timeout in seconds from argv[i] into microseconds, 0 for none; or replies the error. */
bool block_timeout_arg(struct call *c, int i, int64_t *ret_us);

/* Whether the handler should look at this key: always, unless it is being served with another one. */
bool block_wants(const struct call *c, struct slice key);

/* None of the keys argv[first], argv[first + 1], ... has anything: waits, or (inside EXEC) replies a null.
   While being served, does nothing. */
void block_on(struct call *c, enum row_type type, int first, int nkeys, int64_t timeout_us);

/* A wait that is for no key: until `answer` has replied, which is asked every few milliseconds, outside of
   any transaction, and once more (last) when the time is over, where it has to reply. What it goes by is
   copied. */
struct block_poll {
    bool (*answer)(const struct executor *s, const struct session *c, struct reply *reply,
                   const struct block_poll *p, bool last);
    int64_t replicas; /* so many are to have replayed what the client has written */
    bool local;       /* and this server is asked to have it durable: unless syncs fail from here on */
    uint64_t failed_syncs;
};

/* Waits so, for timeout_us at most, 0: as long as it takes. */
void block_until(struct call *c, const struct block_poll *p, int64_t timeout_us);

/* clang-format off */
/* A wait for what another thread does for the client (a job): a query that takes long. The call is not over: when
   the job is, the same call is parsed and run again, finds the job (block_answered), and answers from it. So the
   answer is made as any other is, in its place among the others, whatever the client speaks.

     made       block_for, by the handler. If the call's transaction is run again, it is dropped: release.
     started    when the transaction stands (block_start_jobs).
     over       told by another thread, which has the worker call block_over. Or somebody gives up: the time
                (block_timer), CLIENT UNBLOCK (block_give_up), the end of the server; then `stop` is told
                why, and the client goes on without waiting for the other thread.
     answered   the call runs again, and the job is released behind it (block_forget_answer).

   A client that goes releases its job in whatever state it is. All of this is on the executor's thread (or while
   that stands still); what the job shares with another thread is its own business. */
/* clang-format on */
enum block_end { BLOCK_TIMED_OUT, BLOCK_UNBLOCKED, BLOCK_ERROR, BLOCK_SHUTDOWN };
struct block_job {
    const struct block_job_ops *ops;
};
struct block_job_ops {
    void (*start)(struct block_job *j, struct session *c);
    void (*stop)(struct block_job *j, enum block_end why);
    void (*release)(struct block_job *j);
};

/* The call waits for the job until deadline_us of the monotonic clock, and then gives up. */
void block_for(struct call *c, struct block_job *job, int64_t deadline_us);

/* Whether the session waits for a job: its call is to be run again. */
bool block_waits_for_job(const struct session *c);

/* A transaction stands: the jobs that it has made begin. */
void block_start_jobs(struct executor *s);

/* The job of a session that waits for one is over. */
void block_over(struct executor *s, struct session *c);

/* The job that the running call has waited for; NULL: it has not. */
struct block_job *block_answered(const struct call *c);

/* The call has run again, whether it has taken the answer or not. */
void block_forget_answer(struct executor *s, struct session *c);

/* The server ends: those who wait for jobs are told so. */
void block_end_jobs(struct executor *s);

/* The moment has come that session_ops.block was told: the wait ends or, of a poll, goes on. */
void block_timer(struct executor *s, struct session *c);

/* When a batch has begun: whether the view is to remember what appears. */
void block_begin(struct executor *s);

/* Between two calls of a transaction: serves the clients that wait for what the first made appear. Costs a
   load while no client waits. */
void block_serve_ready(struct executor *s, const struct error *write_err);
static inline void block_serve(struct executor *s, const struct error *write_err)
{
    if (__builtin_expect(block_clients(s->server) != 0, 0))
        block_serve_ready(s, write_err);
}

/* In a batch: serves this executor's clients that wait for a key which has something now, be it through
   another server. */
void block_serve_all(struct executor *s, const struct error *write_err);

/* Declares all keys that this executor's clients wait for or would write to, see declare.h. */
void block_declare(struct executor *s);

/* Whether anything that one of this executor's clients waits for is there. */
bool block_anything(struct executor *s);

/* The wait is over without anything: the timeout, or CLIENT UNBLOCK (error: with an error). */
void block_give_up(struct executor *s, struct session *c, bool error);

/* The client is gone. */
void block_forget(struct executor *s, struct session *c);

/* For session.c. The session's state has been restored: the client waits again, at its place in the queues,
   or does not wait any more. */
void block_restored(struct executor *s, struct session *c);

/* Frees the waits that the state does not point to, which are over. */
void block_free_unused(struct executor *s, struct session *c);

#endif
