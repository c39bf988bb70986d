/* The state of a store with a journal: private to this folder. journal.h says how it works.

   Its fields are grouped by who may touch them, and the access path says it:

     s->owner     the thread that uses the store (the worker's loop), and no other
     s->thread    the thread that writes the tables, and no other
     s->logger    the thread that writes the log, and no other
     s->kept      as s->thread, on a database server: what that may still take back
     s->applier   the applier, where there is one, and no other
     locked(s)    all of them, holding the lock (journal_shared.h): locked() asserts that the caller does
     s->atomics   all of them, without the lock

   What is left of struct journal_store is set before the threads start, and never changed.

   Three exceptions, each at one place:

     durable, applied   The thread that writes the tables alone changes `applied`, and, where there is no log,
                        `durable`: it reads them without the lock: writer_durable, writer_applied.
     sweep.dbs          belongs to the thread while sweep.rows is not 0.
     idle               While a thread waits, an owner that holds the lock may act in its place:
                        writer_check_others, logger_append_here. */
#ifndef LARDER_JOURNAL_JOURNAL_INTERNAL_H
#define LARDER_JOURNAL_JOURNAL_INTERNAL_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/mem.h"
#include "journal/journal.h"
#include "journal/journal_shared.h"
#include "memtable/memtable.h"
#include "journal/merge.h"
#include "journal/run.h"
#include "redo/redo.h"
#include "store/deferred.h"
#include "store/journal_rows.h"

/* A change set that was committed, as the owner remembers it until it is durable. */
struct pending_commit {
    int64_t ticket;
    struct memtable *mem; /* its changes are there, between two marks */
    mem_mark from, to;
    int64_t next_seq; /* behind it */
    size_t bytes;
};

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
    int64_t end_us;       /* nobody waits for the tables any longer; 0: they are waited for */
    int64_t next_seq, next_id;
    int64_t first_seq;       /* rows with provisional numbers below it are in their table */
    int64_t frozen_seq;      /* what first_seq will be when the frozen memtable is applied */
    size_t active_bytes;     /* of changes in the active memtable */
    bool reading;            /* a read transaction of the reader has begun */
    uint64_t commits_seen;   /* of atomics.commits, when the reader last looked */
    bool unsure;             /* the database has changed, and it is not known by whom */
    bool alone;              /* store_alone */
    uint64_t others_seen;    /* of store_others ... */
    bool others_again;       /* ... and the next transaction is told once more */
    uint64_t reads, lookups; /* see struct store_info */
    uint64_t reader_proven;  /* the reader's connection that was last compared, see reconcile.c */
};

/* ---- both, without the lock ---- */

struct journal_atomics {
    atomic_int_fast64_t scanned_us; /* when keys were last scanned by seq */
    atomic_bool others;             /* another process has written */
    atomic_bool committing;         /* the thread is in a transaction that writes ... */
    atomic_uint_fast64_t commits;   /* ... and has been, so many times */
    atomic_size_t journal_bytes;    /* of rows in the journal */
    struct histogram commit_us; /* of groups, from the first change set in them on; the thread alone adds */
};

/* ---- the thread's ---- */

/* The last pass, or the one that runs: writer_passes.c. */
struct writer_pass_state {
    struct mem_apply *apply; /* NULL: it has not begun */
    int64_t upto;            /* the last ticket of the frozen memtable, as it was when it began */
    bool sorting;
    bool begun;   /* rows have been handed out */
    bool counted; /* bytes is known */
    size_t bytes; /* in the journal of what is being applied */
    size_t rows;
    int64_t wall_ms; /* when its memtable was frozen */
    int64_t began_us;
    int64_t unsynced_us; /* since when there is one that is not durable in the tables; 0: there is none */
    int64_t copied_us;   /* when the tables were last made durable, or that was tried ... */
    int64_t retry_us;    /* ... and is not again before, after a failure */
    int64_t said_us;     /* when the log last told of such a failure */
};

struct journal_thread {
    pthread_t id;
    struct writer_pass_state pass;
    struct memtable *direct; /* for groups that go straight into the tables; empty in between */
    bool dropping;           /* rows up to `applied` may still be in the journal */
    int64_t released;        /* up to this ticket the log's segments are given up */
    bool chores_first;       /* a pass has ended: one of the other things comes before the next */
    bool preparing;          /* a segment of the log is to be made ready */
    int64_t lock_since_us;   /* since when another process has the lock, or the server is away ... */
    int64_t pass_since_us;   /* ... or the applier's passes fail */
    bool unanswered;         /* a commit may have taken place of which we do not know */
    bool counts_doubtful;    /* see doubt_counts */
    bool torn;               /* an earlier version may have left some of the frozen memtable in the tables */
    bool records;            /* each group says in larder_meta how far it is: see run.h */
    struct db_row *dbs;      /* room for that */
    size_t ndbs;
};

/* ---- the logger's ---- */

struct journal_logger {
    pthread_t id;
    struct journal_group *first,
        *tail;                   /* in the log, and not synced: a sync that fails takes them away ... */
    struct journal_group *again; /* ... and from this one on they are to be appended again */
    size_t bytes;                /* of them */
    int64_t since_us;            /* when the first of them was appended */
    int64_t marker_us;           /* the marker failed: when it is tried again; 0: at once */
    int64_t renew_us; /* a group was given up: when the log begins a new epoch for that; 0: it need not */
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

/* ---- the applier's ---- */

struct journal_applier {
    pthread_t id;
    uint64_t proven; /* its connection on which the database was last compared, see reconcile.c */
};

/* ---- the store ---- */

struct journal_store {
    struct store base;
    struct store *reader, *writer; /* the owner's session, the thread's session */
    struct store *third; /* the applier's, of a database server; NULL: the thread writes to the tables */
    struct journal_options options;
    struct redo *redo;  /* the log; NULL: groups go into larder_journal, or straight into the tables */
    size_t group_bytes; /* a group that has so many takes no more ... */
    size_t set_bytes;   /* ... and a change set that has more is no group's */
    const struct histogram *sync_us; /* the log's, or the writer's */
    struct journal_run run;          /* its numbers begin behind run.start */

    struct journal_owner owner;
    struct journal_lock lock;
    struct journal_shared under_lock; /* see locked() */
    struct journal_atomics atomics;
    struct journal_thread thread;
    struct journal_logger logger;
    struct journal_kept kept;
    struct journal_applier applier;
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
