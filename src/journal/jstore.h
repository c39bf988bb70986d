/* The store with a journal: private to jstore.c (the owner's side), writer.c (the thread that writes) and
   replay.c (what is left to do from last time). Everyone else sees journal/journal.h.

   Two sessions of one database: the owner reads through one, the store's thread writes through the other.

     owner                                            thread
     store_apply    rows into the active memtable     what arrived while the last group was written is the
     store_commit   entries into the next group,  ->  next group: ONE row of the journal, one commit, one
   sync; a ticket; goes on                 with it, a slice of the frozen memtable into the tables
     store_progress tickets that are durable       <-

   Few rows and nothing waiting: the group goes straight into the tables and no journal row is written, so
   that under light load the tables are always current. Otherwise rows collect in the active memtable, until
   there are many, or the oldest has waited for long, or there is nothing else to do: then the table is
   frozen, a new one takes its place, and the thread applies the frozen one in slices, in the order of the
   tables' trees. With the last slice larder_meta says so, in the same transaction; the rows of the journal go
   bit by bit.

   A change set too large for the journal (half a gigabyte of value) is made durable by freezing the active
   table with it and applying all of that in one transaction: `whole`.

   On a database server the owner asks for the tables only when memory does not know, and a lost connection is
   waited for, up to away_ms. What was being written then is written again: whether the commit took place
   nobody knows, but a row of the journal that it may have left is removed with the next one. So the outcome
   is known in the end. Direct groups tell larder_meta how far the tables are, so that no seq comes twice.

   A database server may crash while we live, and take commits back that were not waited for. Its log is one,
   in order: a commit that is waited for makes all before it durable, and what a crash leaves is everything up
   to one commit. So the frozen table is let go, and its rows of the journal with it, only when the commit
   that says `applied` was waited for: by STORE_WRITE under `always`, by store_sync otherwise (apply_some;
   finish_due in writer.c). A group is kept until then, or, when it went straight into the tables, until any
   commit behind it was waited for (written, sync_idly). reconcile.c compares the database with all that after
   each lost connection, before anything else is read or written. A file crashes only with us: nothing is
   kept for it, and rows of the journal that come back are below an `applied` that comes back with them.

   A crash: a group is in the journal (or the tables) or not, by SQLite's own guarantee. Slices that were
   applied are applied again by the replay, which changes nothing: entries are states, not differences, and
   come in order. The rows of a collection that was deleted, or of a flushed database, may be applied once
   more by a replay; its entry in the trash is, too.

   When a group cannot be written: with durability `always` it and all behind it are undone in the memtables,
   and store_progress says so. Otherwise nobody waits for it: the thread tries again until it works, and
   meanwhile transactions that write are refused.

   A start without room for what the journal holds (SQLite): all of it is in a memtable already, which is then
   the frozen one of the new store, `inherited`. It is read like any other, and the thread tries to apply it
   until it works. Nobody may write before.

   Sweeping: rows of keys that expired are removed by the owner, as a command would (they may be in the
   memtables); what nothing refers to any more (deleted rows, trash) by the thread. */
#ifndef LARDER_JOURNAL_JSTORE_H
#define LARDER_JOURNAL_JSTORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "journal/memtable.h"
#include "journal/merge.h"
#include "store/store.h"

/* What one row of the journal will hold: change sets that were committed one after the other. */
struct jgroup {
    struct jgroup *next;
    struct buf row; /* begun, not ended */
    int64_t last;   /* the ticket of its last change set */
    int64_t born_us;
    size_t rows;
    bool lazy;   /* nobody waits for it */
    bool direct; /* it went straight into the tables */
    bool sealed; /* takes no more: a table was frozen behind it */
};

/* A change set that was committed, as the owner remembers it until it is durable. */
struct jmark {
    int64_t ticket;
    struct memtable *mem;
    mem_mark from, to;
    int64_t next_seq; /* behind it */
    size_t bytes;
};

/* A group that is durable, told by the thread. */
struct jdone {
    int64_t last;
    bool direct; /* it went into the tables */
};

enum jjob { JOB_NONE, JOB_SYNC, JOB_DURABILITY };

struct jstore {
    struct store base;
    struct store *reader, *writer;
    struct journal_options options;
    size_t group_bytes; /* no group takes more once it has so many; a larger change set is no group's */

    /* The owner's. */
    struct layers layers;   /* mem[0] active, mem[1] frozen */
    struct memtable *spare; /* an empty one, with its memory: the next active one */
    bool in_txn, writing, lazy;
    bool reading;         /* a read transaction of the reader has begun */
    int64_t committed_us; /* when that was */
    int64_t last_ticket;  /* of the last commit */
    int64_t next_seq, next_id;
    int64_t first_seq;  /* provisional ones below it are of rows that are in the table */
    int64_t frozen_seq; /* what that will be when the frozen table is */
    mem_mark txn_from;
    struct buf entries; /* of the running transaction */
    size_t txn_rows, txn_bytes;
    bool txn_outsized; /* too much for the journal */
    struct jmark *marks;
    size_t nmarks, first_mark, cap_marks;
    size_t active_bytes;             /* of changes in the active table */
    const struct histogram *sync_us; /* the writer's */
    uint64_t commits_seen;           /* of the thread, when the reader last looked */
    bool unsure;                     /* the database has changed, and it is not known by whom */
    uint64_t reader_proven;          /* the reader's connection that was last compared, see reconcile.c */

    /* Of both, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the thread */
    pthread_cond_t told; /* for an owner that waits */
    struct jgroup *first, *tail;
    bool directly; /* a group is on its way straight into the tables */
    struct jdone *done;
    size_t ndone, cap_done;
    struct memtable *frozen; /* to be applied; NULL: none, or done */
    int64_t frozen_upto;     /* the last ticket in it */
    bool frozen_outsized;
    bool inherited; /* it is what an earlier process left, and there was no room for it: nobody may write */
    bool outsized_waits; /* a change set in the active table can only be made durable as a whole */
    bool freeze_wanted;
    int64_t durable;      /* the last ticket of which the thread is done */
    enum status failed;   /* a group was not to be written: the owner has to undo ... */
    enum status failing;  /* ... or a group cannot be written now, and nobody waits for it ... */
    enum status stuck;    /* ... or what is in the journal cannot be brought into the tables now */
    bool over;            /* another server has the tables: nothing is written or read any more */
    struct error undone;  /* of `failed` ... */
    struct error failure; /* ... of the others */
    uint64_t failures;    /* times that one of the two was found out */
    bool locked;          /* another process has the lock */
    bool stop, hurry;
    enum durability durability;
    enum jjob job;
    enum status job_status;
    struct error job_error;
    uint32_t sweep_rows; /* the thread shall sweep up to so many */
    struct db_row *sweep_dbs;
    size_t sweep_ndbs;
    struct sweep_result swept;
    bool idle; /* the thread waits */
    store_wake_fn *wake;
    void *wake_arg;

    atomic_int_fast64_t scanned_us; /* when keys were last scanned by seq */
    atomic_bool others;             /* another process has written */
    atomic_bool committing;         /* the thread is in a transaction that writes ... */
    atomic_uint_fast64_t commits;   /* ... and has, so many times */
    atomic_size_t journal_bytes;    /* of rows in the journal */
    struct histogram commit_us;     /* of groups, from the first change set in them on; the thread adds */

    /* The thread's. */
    pthread_t thread;
    bool counts_doubtful; /* see doubt_counts */
    struct db_row *dbs;   /* room for it */
    size_t ndbs;
    struct memtable *direct; /* for groups that go straight into the tables; empty in between */
    struct mem_apply *apply; /* of `frozen` */
    bool sorting;
    bool saying, said;   /* that `frozen` is partly in the tables: in this transaction, in an earlier one */
    int64_t journaled;   /* the last ticket that went into the journal */
    int64_t applied;     /* ... and up to which that is in the tables; changed under the lock */
    bool dropping;       /* rows up to there may still be in the journal */
    size_t behind_bytes; /* journaled behind `frozen` */
    int64_t behind_us;   /* since when */
    size_t frozen_bytes; /* in the journal of what is being applied */
    bool frozen_counted; /* that is known */
    int64_t apply_began_us; /* when that began */
    int64_t slice_us;       /* when its last slice was taken */
    double row_us;          /* what a row of a slice takes, about */
    int64_t written_us;     /* when a group was last written */
    int64_t lock_since_us;  /* since when another process has the lock, or the server is away */
    bool doubt;             /* a commit may have taken place of which we do not know */
    int64_t looked_us;      /* when the connection was last looked at; under the lock */
    int64_t retry_us;       /* not before, after a failure */
    size_t idle_rows;       /* what a slice takes when there is nothing else to do */

    /* The thread's, on a database server: what that may still take back. */
    enum durability going_by;        /* what the writer's session goes by */
    int64_t synced;                  /* a commit behind this ticket was waited for */
    int64_t safe;                    /* up to this ticket everything is in the tables for good */
    struct jgroup *kept, *kept_tail; /* groups behind that */
    int64_t unsynced_us;             /* since when `synced` is behind `durable` */
    uint64_t proven;                 /* the connection on which the database was last compared */
};

static inline struct jstore *jstore_of(struct store *s)
{
    return (struct jstore *)s;
}

/* ---- jstore.c ---- */

/* What an earlier process left. */
struct jpast {
    int64_t last;         /* the highest seq that the journal has ever had */
    int64_t applied;      /* up to which the tables have it: all of it, unless ... */
    struct memtable *mem; /* ... there was no room; then what they lack, else NULL */
    int64_t next_seq;     /* provisional ones in there are below */
    size_t bytes;         /* of its rows in the journal */
    struct error why;
};

/* Over two sessions of one database, which it closes, also when it fails: one to read, one to write. Takes
   past->mem, too. */
enum status jstore_open(struct store *reader, struct store *writer, const struct jpast *past,
                        const struct store_options *o, const struct journal_options *j, struct store **ret,
                        struct error *err) MUST_CHECK;

static inline void jgroup_free(struct jgroup *g)
{
    buf_release(&g->row);
    mem_free(g);
}

/* ---- writer.c ---- */

void *jthread_run(void *jstore);

/* A group into the tables, within the running transaction of the writer, and larder_meta's word on that. */
enum status jthread_write_direct(struct jstore *s, const struct jgroup *g, struct error *err) MUST_CHECK;

/* Looks whether another process has written; while the thread waits, or by the thread. */
void jthread_check_others(struct jstore *s);

/* ---- reconcile.c ---- */

/* Keeps a group that was written, until the tables have it for good. */
void jback_keep(struct jstore *s, struct jgroup *g);

/* Lets those go that they have. */
void jback_release(struct jstore *s);

/* By the thread, on a connection that was made in the place of a lost one, outside of transactions: compares
   the database with memory, and writes again what it lacks. ST_LOST: it lacks what nobody has any more. */
enum status jback_catch_up(struct jstore *s, struct error *err) MUST_CHECK;

/* By the owner, within a transaction of the reader on a new connection: ST_IO until the database has
   everything that memory takes for written. */
enum status jback_reader(struct jstore *s, struct error *err) MUST_CHECK;

/* ---- replay.c ---- */

/* Brings what the journal holds into the tables. url is for people. */
enum status jrecover(struct store *writer, const char *url, struct jpast *ret, struct error *err) MUST_CHECK;

/* The same, but when there is no room for it in a file, ret->mem has it, the caller's to free, and that is no
   failure. */
enum status jrecover_or_keep(struct store *writer, const char *url, struct jpast *ret,
                             struct error *err) MUST_CHECK;

/* One row of the journal into a memtable; its bytes are copied. Nothing of one that is damaged. */
enum status jrecover_row(struct memtable *m, int64_t seq, struct slice row, struct error *err) MUST_CHECK;

/* All of a memtable into the tables, within the running transaction. */
enum status jrecover_apply(struct store *writer, const struct memtable *m, struct error *err) MUST_CHECK;

#endif
