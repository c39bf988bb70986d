/* The thread that writes: private to this folder.

     writer.c            the loop: what is due, and when
     writer_txn.c        transactions of the writer's session
     writer_groups.c     groups into the journal, or straight into the tables
     writer_passes.c     the frozen memtable into the tables; the sync behind that, and the checkpoint
     writer_failures.c   what becomes of a group or a pass that could not be written
     writer_chores.c     what is done in between: jobs, sweeping, removing rows of the journal, looking
     logger.c            another thread: groups into the log, where there is one
     applier.c           another thread: the frozen memtable into the tables of a database server

   The thread holds the lock except around every use of the writer's session. Functions say on which side they
   are: "holding the lock" or "without it". Those that hold it may let it go in between. */
#ifndef LARDER_JOURNAL_WRITER_H
#define LARDER_JOURNAL_WRITER_H

#include "journal/journal_internal.h"

#define WRITER_MANY_ROWS   16384             /* at a time, where nothing else has to wait */
#define WRITER_RETRY_US    100000            /* after a failure that will not be over soon */
#define WRITER_EAGER_BYTES ((size_t)4 << 20) /* a group of so many is written at once */

/* The thread alone changes them, holding the lock: it needs none to read them. */
static inline int64_t writer_durable(const struct journal_store *s)
{
    return s->under_lock.durable;
}

static inline int64_t writer_applied(const struct journal_store *s)
{
    return s->under_lock.applied;
}

static inline enum store_txn writer_kind_of(const struct journal_group *g)
{
    return g->lazy ? STORE_WRITE_LAZY : STORE_WRITE;
}

static inline enum status writer_connection_lost(struct error *err)
{
    return error_set(err, ST_IO, "the connection to the database was lost");
}

/* ---- writer.c ---- */

void *writer_run(void *journal_store);

/* Wakes an owner that waits, and the loop. Holding the lock. */
void writer_tell(struct journal_store *s);

/* When the first group is to be written, whoever does. Holding the lock. */
int64_t writer_group_due(struct journal_store *s);

/* ---- writer_txn.c; without the lock ---- */

/* A transaction of the writer's session, on a connection on which the database is as we left it. */
enum status writer_begin(struct journal_store *s, enum store_txn kind, struct error *err) MUST_CHECK;

/* Commits it, or rolls it back when st is a failure, which it then returns. */
enum status writer_end(struct journal_store *s, enum status st, struct error *err) MUST_CHECK;

/* What a session that reads sees of a transaction that writes lies between the two. */
void writer_writes_begin(struct journal_store *s);
void writer_writes_end(struct journal_store *s);

/* Whether a commit of such a transaction is durable when it returns, and with it all before it: the databases
   write one log, in order. */
bool writer_waits_for(const struct journal_store *s, enum store_txn kind);

/* Makes everything that was committed durable ... */
enum status writer_sync(struct journal_store *s, struct error *err) MUST_CHECK;

/* ... up to the last group that was committed. Holding the lock. */
void writer_synced(struct journal_store *s);

/* Looks whether another process has written: by the thread, or by the owner while the thread waits. */
void writer_check_others(struct journal_store *s);

/* ---- writer_groups.c ---- */

/* Writes the first group. Holding the lock. */
void writer_write_next(struct journal_store *s);

/* Holding the lock. Takes the first group off the queue; brings it back there, because it has to be tried
   again; says that it is durable, or, if no reply waits for it, written. What is written to the log stays the
   logger's, what is written to a server is kept, what is written to a file freed. */
struct journal_group *writer_take_group(struct journal_store *s);
void writer_put_back(struct journal_store *s, struct journal_group *g);
void writer_written(struct journal_store *s, struct journal_group *g, bool direct);

/* Another process has written, and the owner did not know that when it counted: until it has counted again,
   larder_db says that its counts are not known. Within the running transaction, behind its rows, without the
   lock. */
enum status writer_doubt_counts(struct journal_store *s, struct error *err) MUST_CHECK;

/* A group into the tables, within the running transaction, and larder_meta's word on that. Without the
   lock. */
enum status writer_write_direct(struct journal_store *s, const struct journal_group *g,
                                struct error *err) MUST_CHECK;

/* ---- writer_passes.c ---- */

/* Holding the lock. One transaction brings all of the frozen memtable in: of what the journal has, or of one
   that is outsized and durable by that alone. */
void writer_pass(struct journal_store *s);
void writer_apply_outsized(struct journal_store *s);

/* Holding the lock, also for the applier's: a pass begins, of what is frozen now; and all of it is in the
   tables, by a commit that was waited for if they are a server's, so that the owner may retire it. */
void writer_count_pass(struct journal_store *s);
void writer_all_in(struct journal_store *s);

/* Holding the lock. When what passes have committed is to be made durable, so that segments of the log can be
   used again; does it, and copies the tables' own log into them when that has become long. */
int64_t writer_settle_due(struct journal_store *s);
void writer_settle(struct journal_store *s);

/* Whether a pass may begin: the tables' own log is not longer than wal-max. If it is, and stays so, the time
   for the next look is set. Holding the lock. */
bool writer_wal_is_short(struct journal_store *s);

/* For store_write_in_bulk: what is due for the log while much is written to the tables. */
void writer_meanwhile(void *journal_store);

/* ---- writer_failures.c; holding the lock ---- */

/* Whether another server has the tables, or acknowledged writes are gone from them: then nothing is written
   or read any more. */
bool writer_is_over(struct journal_store *s, enum status st, const struct error *err);

/* Whether a group that could not be written is tried again. If not, err says what the clients are told. */
bool writer_keeps_trying(struct journal_store *s, struct error *err);

/* The group (NULL: an outsized change set), and all that came behind it, is undone by the owner: the rest
   builds on it. */
void writer_give_up(struct journal_store *s, struct journal_group *g, const struct error *err);

/* An outsized change set is undone, but the next start may find its commit in the tables, and takes for
   applied what the log has by the same numbers: nothing is written to the log any more. */
void writer_end_writing(struct journal_store *s, const struct error *err);

/* A pass could not be made, be it the applier's. The journal has it all, so that nobody needs to know
   before another process has had the lock for long. */
void writer_pass_failed(struct journal_store *s, const struct error *err);

void writer_works_again(struct journal_store *s);

/* ---- writer_chores.c ---- */

/* Removes some rows of the journal that are in the tables. Within the running transaction, without the
   lock. */
enum status writer_drop_rows(struct journal_store *s, struct error *err) MUST_CHECK;

/* Holding the lock. */
void writer_drop_idly(struct journal_store *s);
void writer_prepare_log(struct journal_store *s);
void writer_run_job(struct journal_store *s);
void writer_sweep(struct journal_store *s);

/* What is to be swept, and what became of that. */
struct sweep_budget writer_sweep_budget(struct journal_store *s);
void writer_swept(struct journal_store *s, enum status st, const struct sweep_result *r);

/* Syncs commits that were not waited for, so that the groups which are kept for them can be freed. */
void writer_sync_idly(struct journal_store *s);

/* Whether the database can be reached: while nothing else finds that out, or writers are refused because it
   could not. */
void writer_look(struct journal_store *s);

/* ---- logger.c ---- */

void *logger_run(void *journal_store);

/* Holding the lock, by the owner, that has just committed and waits for it: while the logger waits, and the
   first group is the only one, writes that here. False: it cannot, the logger shall. */
bool logger_append_here(struct journal_store *s);

/* Frees what it has kept: it has ended. */
void logger_release(struct journal_store *s);

/* Holding the lock, by any thread: it looks what is due; and it makes everything up to a ticket durable, as
   soon as that is committed. Where there is no log nothing happens. */
void logger_wake(struct journal_store *s);
void logger_ask_sync(struct journal_store *s, int64_t ticket);

/* For whoever makes a pass, without the lock. Between two steps, how many rows are in: ST_LOCKED when another
   server has the tables; and a phase of the throttle begins. */
enum status writer_look_around(struct journal_store *s, size_t done, struct error *err) MUST_CHECK;
void writer_tell_phase(struct journal_store *s, void (*phase)(struct throttle *t, int64_t now));

/* ---- applier.c ---- */

void *applier_run(void *journal_store);

/* By the thread that writes, holding the lock: when there is something for it to ask of the applier, or to
   hear from it; and does that. */
int64_t applier_due(struct journal_store *s);
void applier_proceed(struct journal_store *s);

/* Whether it has a task, or the end of one has not been taken note of. Holding the lock. */
static inline bool applier_is_busy(struct journal_store *s)
{
    return locked(s)->task.kind != APPLIER_NOTHING;
}

/* It ends when it has done what it is doing. Holding the lock. */
void applier_stop(struct journal_store *s);

#endif
