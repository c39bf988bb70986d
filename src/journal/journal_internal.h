/* The state of a store with a journal: private to this folder. journal.h says how it works.

   Its fields are grouped by who may touch them, and the access path says it:

     s->owner     the thread that uses the store (the worker's loop), and no other
     s->thread    the thread that writes, and no other
     s->kept      as s->thread, on a database server: what that may still take back
     locked(s)    both, holding the lock: locked() asserts that the caller does
     s->atomics   both, without the lock

   What is left of struct journal_store is set before the thread starts, and never changed.

   Three exceptions, each at one place:

     durable, applied   The thread alone changes them, so it reads them without the lock: writer_durable,
                        writer_applied.
     sweep.dbs          belongs to the thread while sweep.rows is not 0.
     idle               While the thread waits, an owner that holds the lock may act in its place:
                        writer_check_others. */
#ifndef LARDER_JOURNAL_JOURNAL_INTERNAL_H
#define LARDER_JOURNAL_JOURNAL_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "journal/memtable.h"
#include "journal/merge.h"
#include "journal/run.h"
#include "store/deferred.h"
#include "store/journal_rows.h"

/* What one row of the journal will hold: change sets that were committed one after the other. */
struct journal_group {
    struct journal_group *next;
    struct buf row; /* begun, not ended */
    int64_t last;   /* the ticket of its last change set */
    int64_t born_us;
    size_t rows;
    bool lazy;   /* no reply waits for it */
    bool direct; /* it went straight into the tables */
    bool sealed; /* it takes no more: the thread is writing it, or its memtable was frozen */
};

static inline void journal_group_free(struct journal_group *g)
{
    buf_release(&g->row);
    mem_free(g);
}

/* A change set that was committed, as the owner remembers it until it is durable. */
struct pending_commit {
    int64_t ticket;
    struct memtable *mem; /* its changes are there, between two marks */
    mem_mark from, to;
    int64_t next_seq; /* behind it */
    size_t bytes;
};

/* A group that is durable, told by the thread. */
struct written_group {
    int64_t last;
    bool direct; /* it went into the tables */
};

enum journal_job { JOB_NONE, JOB_SYNC, JOB_DURABILITY };

/* ---- the owner's ---- */

/* The running transaction. */
struct owner_txn {
    bool open, writing, lazy;
    bool outsized;      /* it is too large for the journal, or stands behind one that is */
    mem_mark from;      /* in the active memtable */
    struct buf entries; /* its encoding for the journal */
    size_t rows, bytes;
    struct {
        mem_mark at;
        size_t entries, rows, bytes;
    } mark; /* store_mark */
};

struct journal_owner {
    struct layers layers;   /* mem[0] is the active memtable, mem[1] the frozen one */
    struct memtable *spare; /* an empty one, with its memory: the next active one */
    struct owner_txn txn;
    struct pending_commit *pending; /* [first_pending, npending) are not durable */
    size_t npending, first_pending, cap_pending;
    int64_t last_ticket;  /* of the last commit */
    int64_t committed_us; /* when that was */
    int64_t next_seq, next_id;
    int64_t first_seq;      /* rows with provisional numbers below it are in their table */
    int64_t frozen_seq;     /* what first_seq will be when the frozen memtable is applied */
    size_t active_bytes;    /* of changes in the active memtable */
    bool reading;           /* a read transaction of the reader has begun */
    uint64_t commits_seen;  /* of atomics.commits, when the reader last looked */
    bool unsure;            /* the database has changed, and it is not known by whom */
    uint64_t reader_proven; /* the reader's connection that was last compared, see reconcile.c */
};

/* ---- both, holding the lock ---- */

/* What cannot be done now. */
struct journal_failures {
    enum status failed;  /* a group was given up: the owner has to undo it and all behind it ... */
    enum status failing; /* ... or a group cannot be written now, and no reply waits for it ... */
    enum status stuck;   /* ... or what is in the journal cannot be brought into the tables now */
    bool over;           /* another server has the tables: nothing is read or written any more */
    struct error undone; /* why: of `failed` ... */
    struct error why;    /* ... of the others */
    uint64_t times;      /* that `failing` or `stuck` was found out */
};

/* Other threads that read the tables: snapshots.h. */
struct journal_snapshots {
    struct snapshot_wait *first; /* those who wait to be let in */
    uint32_t inside;             /* those who were let in and have not left */
    bool open;                   /* the thread waits for them */
    uint64_t number;             /* of the last time that it has */
};

struct journal_shared {
    struct journal_group *first, *tail; /* to be written */
    bool direct_runs;                   /* a group is on its way straight into the tables */
    struct written_group *written;      /* which the owner has not taken note of */
    size_t nwritten, cap_written;

    struct memtable *frozen; /* to be applied; NULL: there is none, or all of it is in the tables */
    int64_t frozen_upto;     /* the last ticket in it */
    bool frozen_outsized;    /* not all of it is in the journal: one transaction makes it durable */
    bool inherited;      /* an earlier process left it, and there was no room for it: writes are refused */
    bool outsized_waits; /* the active memtable has a change set that is too large for the journal */
    bool freeze_wanted;

    int64_t committed; /* the last ticket that was given, unless its commit has failed since */
    int64_t durable;   /* the last ticket that is */
    int64_t applied;   /* the last one up to which the tables have everything ... */
    int64_t in_tables; /* ... also when it went straight into them, and larder_meta does not say so */
    struct journal_snapshots snapshots;

    struct journal_failures failures;
    bool locked;       /* another process has the database's lock */
    int64_t retry_us;  /* nothing is tried before, after a failure */
    int64_t looked_us; /* when the thread last used its connection, or looked whether that stands */

    enum durability durability;
    enum journal_job job; /* the owner waits for it */
    enum status job_status;
    struct error job_error;
    struct {
        uint32_t rows;      /* the thread shall sweep up to so many */
        struct db_row *dbs; /* the thread's while rows is not 0 */
        size_t ndbs;
        struct sweep_result result;
    } sweep;

    bool idle;        /* the thread waits */
    bool hurry, stop; /* it shall apply everything at once; it shall end */
    store_wake_fn *wake;
    void *wake_arg;
};

struct journal_lock {
    pthread_mutex_t mutex;
    pthread_cond_t work;  /* the thread waits for it */
    pthread_cond_t told;  /* an owner that needs an answer waits for it */
    pthread_cond_t clean; /* those who wait for a snapshot */
    pthread_t holder;     /* if held; for assertions */
    bool held;
};

/* ---- both, without the lock ---- */

struct journal_atomics {
    atomic_int_fast64_t scanned_us; /* when keys were last scanned by seq */
    atomic_bool others;             /* another process has written */
    atomic_bool committing;         /* the thread is in a transaction that writes ... */
    atomic_uint_fast64_t commits;   /* ... and has been, so many times */
    atomic_size_t journal_bytes;    /* of rows in the journal */
    atomic_uint snapshots_wanted;   /* by so many threads */
    struct histogram commit_us; /* of groups, from the first change set in them on; the thread alone adds */
};

/* ---- the thread's ---- */

/* How far it is with the frozen memtable. */
struct writer_slices {
    struct mem_apply *apply;    /* NULL: it has not begun */
    const struct memtable *mem; /* the frozen one ... */
    int64_t upto;               /* ... and its last ticket, as they were when it began */
    bool sorting;
    bool saying, said; /* larder_meta says that it is partly in: in this transaction, in an earlier one */
    size_t bytes;      /* in the journal of what is being applied */
    bool counted;      /* that is known */
    int64_t began_us;
    int64_t last_us;  /* when the last slice was taken */
    double row_us;    /* what a row of a slice takes, about */
    size_t idle_rows; /* what a slice takes when there is nothing else to do */
};

struct journal_thread {
    pthread_t id;
    struct writer_slices slices;
    struct memtable *direct; /* for groups that go straight into the tables; empty in between */
    int64_t journaled;       /* the last ticket that went into the journal */
    size_t behind_bytes;     /* journaled behind the frozen memtable */
    int64_t behind_us;       /* since when */
    bool dropping;           /* rows up to `applied` may still be in the journal */
    int64_t written_us;      /* when a group was last written */
    int64_t lock_since_us;   /* since when another process has the lock, or the server is away */
    bool unanswered;         /* a commit may have taken place of which we do not know */
    bool counts_doubtful;    /* see doubt_counts */
    bool torn;               /* a slice may be in the tables of a memtable that is not all in */
    bool records;            /* each group says in larder_meta how far it is: see run.h */
    struct db_row *dbs;      /* room for that */
    size_t ndbs;
};

/* Groups that are written, and not yet in the tables for good: see reconcile.c. */
struct journal_kept {
    enum durability going_by; /* of the writer's session */
    int64_t synced;           /* a commit behind this ticket was waited for */
    int64_t safe;             /* up to this ticket everything is in the tables for good */
    struct journal_group *first, *tail;
    int64_t unsynced_us; /* since when `synced` is behind `durable` */
    uint64_t proven;     /* the connection on which the database was last compared */
};

/* ---- the store ---- */

struct journal_store {
    struct store base;
    struct store *reader, *writer; /* the owner's session, the thread's session */
    struct journal_options options;
    size_t group_bytes; /* a group that has so many takes no more; a larger change set is no group's */
    const struct histogram *sync_us; /* the writer's */
    struct journal_run run;          /* its numbers begin behind run.start */

    struct journal_owner owner;
    struct journal_lock lock;
    struct journal_shared under_lock; /* see locked() */
    struct journal_atomics atomics;
    struct journal_thread thread;
    struct journal_kept kept;
};

static inline struct journal_store *journal_store_of(struct store *s)
{
    return (struct journal_store *)s;
}

static inline void journal_lock(struct journal_store *s)
{
    pthread_mutex_lock(&s->lock.mutex);
    s->lock.holder = pthread_self();
    s->lock.held = true;
}

static inline void journal_unlock(struct journal_store *s)
{
    s->lock.held = false;
    pthread_mutex_unlock(&s->lock.mutex);
}

/* Lets the lock go, waits until `until` (on the monotonic clock; INT64_MAX: without end) or until there is a
   signal, and takes it again. */
void journal_wait(struct journal_store *s, pthread_cond_t *signal, int64_t until);

static inline struct journal_shared *locked(struct journal_store *s)
{
    assert(s->lock.held && pthread_equal(s->lock.holder, pthread_self()));
    return &s->under_lock;
}

/* A store over two sessions of one database, which it closes, also when it fails: one to read, one to write.
   Takes past->mem, too. */
struct journal_past;
enum status journal_store_over(struct store *reader, struct store *writer, const struct journal_past *past,
                               const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err) MUST_CHECK;

#endif
