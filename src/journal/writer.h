/* The thread that writes: private to this folder.

     writer.c            the loop: what is due, and when
     writer_txn.c        transactions of the writer's session
     writer_groups.c     groups into the journal, or straight into the tables
     writer_slices.c     the frozen memtable into the tables, slice by slice or all at once
     writer_failures.c   what becomes of a group or a slice that could not be written
     writer_chores.c     what is done in between: jobs, sweeping, removing rows of the journal, looking

   The thread holds the lock except around every use of the writer's session. Functions say on which side they
   are: "holding the lock" or "without it". Those that hold it may let it go in between. */
#ifndef LARDER_JOURNAL_WRITER_H
#define LARDER_JOURNAL_WRITER_H

#include "journal/journal_internal.h"

#define WRITER_MIN_SLICE 32     /* rows */
#define WRITER_SORT_ROWS 4096   /* in one step */
#define WRITER_MANY_ROWS 16384  /* at a time, where nothing else has to wait */
#define WRITER_RETRY_US  100000 /* after a failure that will not be over soon */

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

/* A group into the tables, within the running transaction, and larder_meta's word on that. Without the
   lock. */
enum status writer_write_direct(struct journal_store *s, const struct journal_group *g,
                                struct error *err) MUST_CHECK;

/* ---- writer_slices.c ---- */

/* Holding the lock. Begins with the frozen memtable; applies some of it; applies all of one that is outsized
   in one transaction. */
void writer_start_slices(struct journal_store *s);
void writer_apply_idly(struct journal_store *s);
void writer_apply_outsized(struct journal_store *s);

/* The transaction that had a slice in it is over. last: it said that all of the memtable is in. Holding the
   lock. */
void writer_slice_over(struct journal_store *s, enum status st, bool last);

/* Along with a group of so many bytes: a bit of sorting, or a slice; and rows of the journal that are not
   needed any more go. Within the running transaction, without the lock. */
enum status writer_slice_along(struct journal_store *s, size_t bytes, enum store_txn kind, bool *ret_last,
                               struct error *err) MUST_CHECK;

/* Begins again: slices may be gone from the tables, and nothing tells which. Without the lock. */
void writer_restart_slices(struct journal_store *s);

/* ---- writer_failures.c; holding the lock ---- */

/* Whether another server has the tables, or acknowledged writes are gone from them: then nothing is written
   or read any more. */
bool writer_is_over(struct journal_store *s, enum status st, const struct error *err);

/* Whether a group that could not be written is tried again. If not, err says what the clients are told. */
bool writer_keeps_trying(struct journal_store *s, struct error *err);

/* The group (NULL: an outsized change set), and all that came behind it, is undone by the owner: the rest
   builds on it. */
void writer_give_up(struct journal_store *s, struct journal_group *g, const struct error *err);

/* A slice could not be applied. The journal has it all, so that nobody needs to know before another process
   has had the lock for long. */
void writer_slice_failed(struct journal_store *s, const struct error *err);

void writer_works_again(struct journal_store *s);

/* ---- writer_chores.c ---- */

/* Removes some rows of the journal that are in the tables. Within the running transaction, without the
   lock. */
enum status writer_drop_rows(struct journal_store *s, struct error *err) MUST_CHECK;

/* Holding the lock. */
void writer_drop_idly(struct journal_store *s);
void writer_run_job(struct journal_store *s);
void writer_sweep(struct journal_store *s);

/* Syncs commits that were not waited for, so that the groups which are kept for them can be freed. */
void writer_sync_idly(struct journal_store *s);

/* Whether the database can be reached: while nothing else finds that out, or writers are refused because it
   could not. */
void writer_look(struct journal_store *s);

#endif
