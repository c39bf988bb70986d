/* What the threads of a store with a journal share, holding its lock: private to this folder.
   journal_internal.h says who may touch what. */
#ifndef LARDER_JOURNAL_JOURNAL_SHARED_H
#define LARDER_JOURNAL_JOURNAL_SHARED_H

#include <pthread.h>

#include "base/buf.h"
#include "base/mem.h"
#include "journal/throttle.h"
#include "memtable/memtable.h"
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

/* A group that is durable, told by the thread. */
struct written_group {
    int64_t last;
    bool direct; /* it went into the tables */
};

enum journal_job { JOB_NONE, JOB_SYNC, JOB_DURABILITY };

/* What cannot be done now. */
struct journal_failures {
    enum status failed;  /* a group was given up: the owner has to undo it and all behind it ... */
    enum status failing; /* ... or a group cannot be written now, and no reply waits for it ... */
    enum status stuck;   /* ... or what is in the journal cannot be brought into the tables now */
    bool over;           /* another server has the tables: nothing is read or written any more */
    struct error undone; /* why: of `failed` ... */
    struct error why;    /* ... of `failing` and `over` ... */
    struct error waits;  /* ... of `stuck` */
    uint64_t times;      /* that `failing` or `stuck` was found out */
};

/* Why nothing more can be written, or (tables) brought into the tables. ST_OK: it can. */
static inline enum status journal_failure(const struct journal_failures *f, bool tables, struct error *ret)
{
    if (f->over || f->failing != ST_OK) {
        *ret = f->why;
        return f->over ? f->why.code : f->failing;
    }
    if (!tables || f->stuck == ST_OK)
        return ST_OK;
    *ret = f->waits;
    return f->stuck;
}

/* Other threads that read the tables: snapshots.h. */
struct journal_snapshots {
    struct snapshot_wait *first; /* those who wait to be let in */
    uint32_t inside;             /* those who were let in and have not left */
    bool open;                   /* the thread waits for them */
    uint64_t number;             /* of the last time that it has */
};

/* The log, where there is one. */
struct journal_logging {
    bool busy;        /* a group is on its way into it, and in no queue */
    uint64_t bytes;   /* that were appended since a memtable was last frozen */
    int64_t synced;   /* up to this ticket everything in it is durable */
    int64_t sync_to;  /* somebody waits until `synced` is so far */
    int64_t marker;   /* an outsized change set is in the tables, and the log is to know: its ticket, or 0 */
    int64_t retry_us; /* nothing is tried before, after a failure */
    bool failing;     /* it cannot be written now: failures.failing is its */
    bool idle;        /* the logger waits */
};

/* What the applier is to do, and what became of it: applier.c. The thread that writes gives a task and takes
   its end. */
enum applier_kind { APPLIER_NOTHING, APPLIER_PASS, APPLIER_SWEEP };

struct applier_task {
    enum applier_kind kind;
    bool done;                  /* the rest says how it went */
    const struct memtable *mem; /* of a pass: what is to be brought into the tables ... */
    int64_t upto;               /* ... and its last ticket */
    enum status status;
    struct error err;
    struct sweep_result swept;
    size_t rows;      /* of the pass ... */
    int64_t us;       /* ... and how long it took */
    int64_t retry_us; /* no pass is tried before, after a failure */
    bool stop;        /* the applier shall end */
};

/* What passes do, for INFO. */
struct journal_passes {
    uint64_t count;     /* of them */
    size_t rows;        /* of the last one ... */
    int64_t us;         /* ... from its beginning to its commit ... */
    int64_t settle_us;  /* ... and how long the sync and the copying behind it took */
    uint64_t wal_bytes; /* what SQLite's own log had then */
    bool wal_waits;     /* that is more than wal-max: none begins */
};

struct journal_shared {
    struct journal_group *first, *tail; /* to be written */
    bool direct_runs;                   /* a group is on its way straight into the tables */
    struct written_group *written;      /* which the owner has not taken note of */
    size_t nwritten, cap_written;

    struct memtable *frozen; /* to be applied; NULL: there is none, or all of it is in the tables */
    int64_t frozen_upto;     /* the last ticket in it */
    bool frozen_outsized;    /* not all of it is in the journal: one transaction makes it durable */
    bool inherited; /* an earlier process left it, and there was no room for it: writes are refused */
    int64_t frozen_us, frozen_wall_ms; /* when its first change set was committed; when it was frozen */
    int64_t active_us; /* when the first change set came into the active memtable; 0: it is empty ... */
    int64_t commit_us; /* ... and the last one */
    struct throttle throttle;
    struct journal_passes passes;
    bool outsized_waits; /* the active memtable has a change set that is too large for the journal */
    bool freeze_wanted;

    int64_t committed;   /* the last ticket that was given, unless its commit has failed since */
    int64_t durable;     /* the last ticket that is */
    int64_t applied;     /* the last one up to which the tables have everything ... */
    int64_t in_tables;   /* ... also when it went straight into them, and larder_meta does not say so */
    int64_t journaled;   /* the last one that went into the journal ... */
    int64_t written_us;  /* ... and when a group was last written, there or into the tables */
    size_t behind_bytes; /* journaled behind the frozen memtable */
    int64_t behind_us;   /* since when */
    struct journal_logging log;
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

    struct applier_task task;

    bool idle;        /* the thread waits */
    bool hurry, stop; /* it shall apply everything at once; it shall end ... */
    bool abandon;     /* ... and leave to the log what is not in the tables */
    store_wake_fn *wake;
    void *wake_arg;
};

struct journal_lock {
    pthread_mutex_t mutex;
    pthread_cond_t work;  /* the thread that writes the tables waits for it */
    pthread_cond_t log;   /* the logger waits for it */
    pthread_cond_t task;  /* the applier waits for it */
    pthread_cond_t told;  /* an owner that needs an answer waits for it */
    pthread_cond_t clean; /* those who wait for a snapshot */
    pthread_t holder;     /* if held; for assertions */
    bool held;
};

#endif
