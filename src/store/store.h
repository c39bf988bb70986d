/* The one interface that the engine sees of a database: rows in, rows out, in transactions.

   A store belongs to one thread. Between store_begin and store_commit or store_rollback, reads see what
   store_apply wrote. Rows handed to a callback borrow the database's memory: a callback that keeps one copies
   it. Rows come as they stand in the tables, expired and deleted ones included, unless a function says
   otherwise; what they mean is the engine's business.

   Every store has the operations of this header. What only some can is a vtable of its own, with a header of
   its own, that others have not:
     store/shared.h        tables that several servers write to
     store/deferred.h      commits that become durable later
     store/journal_rows.h  tables under a journal
     store/replicated.h    positions in a log that replicas replay
     store/snapshot.h      tables that other threads read while they are behind

   Implementations: store/sqlite/ (a file), store/remote/ (a database server), journal/ (a journal in front of
   either); fault.c decorates any of them for tests. store/open.c chooses by the URL. The tables are described
   in store/sqlite/schema.h. tests/contract runs over every implementation. */
#ifndef LARDER_STORE_STORE_H
#define LARDER_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"
#include "store/options.h"
#include "store/rows.h"
#include "store/scan.h"

struct sweep_budget {
    int64_t now;        /* milliseconds: rows with an expiry at or before it are dead */
    uint32_t max_rows;  /* removed at most in this call */
    struct db_row *dbs; /* the logical databases as they stand; what is swept is taken off their counts */
    size_t ndbs;
    store_key_fn *fn; /* called for each key row removed from a database in use (may be NULL) ... */
    void *arg;        /* ... so that its seq is forgotten, which the table may give to another row */
};

struct sweep_result {
    uint64_t expired; /* key rows whose time had come */
    uint64_t deleted; /* key rows that a command had deleted or a flush had left behind */
    uint64_t items;   /* rows of the item tables */
    bool more;        /* there is more to do right now */
};

struct store_info {
    uint64_t bytes;      /* of the database on disk */
    uint64_t free_bytes; /* of them reusable */
    uint64_t wal_bytes;
    uint64_t journal_bytes;      /* of changes that are not in the tables yet ... */
    uint64_t memtable_rows;      /* ... and rows */
    uint64_t lag_ms;             /* how old the oldest change is that is not in the tables */
    uint64_t passes;             /* that have brought rows into the tables ... */
    uint64_t pass_rows, pass_ms; /* ... the last one's rows and time, to its commit ... */
    uint64_t settle_ms;          /* ... and that of the last sync and checkpoint behind one */
    uint64_t log_bytes,
        log_on_disk;      /* of the log beside a file: what is not in the tables; of all its files */
    bool wal_waits;       /* the write-ahead log is longer than wal-max: nothing is brought in */
    uint64_t table_reads; /* transactions of the loop that asked the tables ... */
    uint64_t key_lookups; /* ... and how often they did for rows of keys, one or many at once */
    uint64_t reconnects;  /* times that a lost connection was made anew */
    uint64_t round_trips; /* to a database server, that were waited for */
    uint64_t conflicts;   /* transactions that the database ended because of another server's */
    const struct histogram *sync_us; /* of the log's syncs, as long as the store lives; NULL: not measured */
    const struct histogram *commit_us; /* of commits that become durable later, until they are; else NULL */
    char engine[64];                   /* "sqlite 3.40.1" */
};

enum store_txn {
    STORE_READ,
    STORE_WRITE,
    STORE_WRITE_LAZY /* its commit need not be durable before the next STORE_WRITE's is: for what would only
                        have to be done again */
};

struct store;

struct store_ops {
    void (*close)(struct store *s);
    enum status (*begin)(struct store *s, enum store_txn kind, const struct store_declared *d,
                         bool *ret_changed, struct error *err);
    enum status (*get_keys)(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                            void *arg, struct error *err);
    enum status (*get_items)(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                             void *arg, struct error *err);
    enum status (*scan_keys)(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                             struct error *err);
    enum status (*scan_items)(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                              struct error *err);
    enum status (*count_items)(struct store *s, const struct item_scan *q, int64_t *ret, struct error *err);
    enum status (*due_rows)(struct store *s, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                            size_t *ret_n, struct error *err);
    enum status (*count_dead)(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                              int64_t *ret_expires, struct error *err);
    enum status (*count_keys)(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                              struct error *err);
    enum status (*load_dbs)(struct store *s, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                            struct error *err);
    enum status (*reserve_ids)(struct store *s, int64_t n, int64_t *ret_first, struct error *err);
    enum status (*apply)(struct store *s, struct changes *c, struct error *err);
    enum status (*mark)(struct store *s, struct error *err);
    enum status (*undo)(struct store *s, struct error *err);
    enum status (*commit)(struct store *s, struct error *err);
    void (*rollback)(struct store *s);
    enum status (*sweep)(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                         struct error *err);
    enum status (*info)(struct store *s, struct store_info *ret, struct error *err);
    enum status (*set_durability)(struct store *s, enum durability d, struct error *err);
    enum status (*sync)(struct store *s, struct error *err);
    uint64_t (*connection)(const struct store *s);
};

struct store {
    const struct store_ops *ops;
    const struct shared_ops *shared;             /* NULL: this process has the tables for itself */
    const struct deferred_ops *deferred;         /* NULL: a commit is durable when it returns */
    const struct journal_rows_ops *journal_rows; /* NULL: no tables of its own */
    const struct replicated_ops *replicated;     /* NULL: it tells no positions */
    const struct snapshot_ops *snapshots;        /* NULL: what was committed is in the tables */
    bool far;       /* every read is a round trip: many keys are better asked for at once */
    bool contended; /* another server's transaction may end one of ours (ST_CONFLICT): the same may work when
                       it is tried again */
    bool replica;   /* of store_options: what it reads may be old */
    bool certified; /* whether another server's transaction was in the way is told at the commit: one that may
                       write is committed even if it has changed nothing, and cannot keep others out */
};

/* Opens (creating and migrating) the database and takes it for this process alone:
   ST_LOCKED when another process has it, ST_NEWER when a newer version wrote it. journal/journal.h opens the
   same with a journal in front of the tables. */
enum status store_open(const struct store_options *o, struct store **ret, struct error *err) MUST_CHECK;

/* Waits until everything committed is durable, and in the tables, then closes. s may be NULL. */
static inline void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

/* Starts a transaction. To write: takes the write lock now, so that nothing read from here on can change
   under us. ret_changed: another process has written since our last transaction; whatever was remembered is
   void. d may be NULL. A shared store locks what was declared (when the transaction may write) and reads it
   in the round trip that begins the transaction; what was not declared is locked when it is read. A store
   that is not shared only looks whether it needs to ask its tables at all (rows_only), and calls no fn. */
static inline MUST_CHECK enum status store_begin(struct store *s, enum store_txn kind,
                                                 const struct store_declared *d, bool *ret_changed,
                                                 struct error *err)
{
    return s->ops->begin(s, kind, d, ret_changed, err);
}

/* Calls fn for each of the keys that has a row, in the order asked. One round trip. */
static inline MUST_CHECK enum status store_get_keys(struct store *s, const struct key_ref *refs, size_t n,
                                                    store_key_fn *fn, void *arg, struct error *err)
{
    return status_of_walk(s->ops->get_keys(s, refs, n, fn, arg, err));
}

static inline MUST_CHECK enum status store_get_items(struct store *s, const struct item_ref *refs, size_t n,
                                                     store_item_fn *fn, void *arg, struct error *err)
{
    return status_of_walk(s->ops->get_items(s, refs, n, fn, arg, err));
}

static inline MUST_CHECK enum status store_scan_keys(struct store *s, const struct key_scan *q,
                                                     store_key_fn *fn, void *arg, struct error *err)
{
    return status_of_walk(s->ops->scan_keys(s, q, fn, arg, err));
}

static inline MUST_CHECK enum status store_scan_items(struct store *s, const struct item_scan *q,
                                                      store_item_fn *fn, void *arg, struct error *err)
{
    return status_of_walk(s->ops->scan_items(s, q, fn, arg, err));
}

/* How many members of a sorted set are in a range BY_SCORE that has both ends and is below_max, or how many
   fields of a hash in a range BY_EXPIRY that has both ends; skip and limit do not count. Costs what the range
   holds, but much less than reading it. */
static inline MUST_CHECK enum status store_count_items(struct store *s, const struct item_scan *q,
                                                       int64_t *ret, struct error *err)
{
    return s->ops->count_items(s, q, ret, err);
}

/* The ids of tables (ROW_TABLE) that may have rows with an expiry at or before now: the first up to max of
   them above `after`, ascending. Tables that are dead themselves are among them until they are swept, and
   with a journal such whose rows went a moment ago. One round trip; costs a look-up in the index of rows with
   an expiry for each table of all databases, whatever the number of their rows. */
static inline MUST_CHECK enum status store_due_rows(struct store *s, int64_t now, int64_t after,
                                                    int64_t *ret_ids, size_t max, size_t *ret_n,
                                                    struct error *err)
{
    return s->ops->due_rows(s, now, after, ret_ids, max, ret_n, err);
}

/* How much of what store_count_keys tells is dead by now: rows that have expired, and hashes all of whose
   fields have. By indexes; costs what is dead. */
static inline MUST_CHECK enum status store_count_dead(struct store *s, uint32_t db, int64_t now,
                                                      int64_t *ret_keys, int64_t *ret_expires,
                                                      struct error *err)
{
    return s->ops->count_dead(s, db, now, ret_keys, ret_expires, err);
}

/* Counts the rows of a database number the slow way: all that are not deleted, and those with an expiry. */
static inline MUST_CHECK enum status store_count_keys(struct store *s, uint32_t db, int64_t *ret_keys,
                                                      int64_t *ret_expires, struct error *err)
{
    return s->ops->count_keys(s, db, ret_keys, ret_expires, err);
}

/* Fills dbs[0..n) for the logical databases 0..n-1, and the next number no database has ever had. */
static inline MUST_CHECK enum status store_load_dbs(struct store *s, struct db_row *dbs, size_t n,
                                                    uint32_t *ret_next_number, struct error *err)
{
    return s->ops->load_dbs(s, dbs, n, ret_next_number, err);
}

/* Takes n ids that no collection has ever had: *ret_first and the n - 1 after it. In the running transaction,
   or in one of its own when there is none. */
static inline MUST_CHECK enum status store_reserve_ids(struct store *s, int64_t n, int64_t *ret_first,
                                                       struct error *err)
{
    return s->ops->reserve_ids(s, n, ret_first, err);
}

/* Brings changes into the tables, within the running write transaction. */
static inline MUST_CHECK enum status store_apply(struct store *s, struct changes *c, struct error *err)
{
    return s->ops->apply(s, c, err);
}

/* A place in the running write transaction that it can be brought back to; there is one, the last. */
static inline MUST_CHECK enum status store_mark(struct store *s, struct error *err)
{
    return s->ops->mark(s, err);
}

/* Takes back what was applied since the mark, and ids that were reserved since. The mark stays. On failure
   the transaction cannot be committed. Of a shared store rows that were read since have to be read again; it
   is a conflict where keys were locked since that others may have now: when it is run again, they are locked
   from the beginning. */
static inline MUST_CHECK enum status store_undo(struct store *s, struct error *err)
{
    return s->ops->undo(s, err);
}

/* Ends the transaction. When it returns ST_OK the changes are as durable as the store's durability says;
   on failure nothing of the transaction remains (ST_UNKNOWN: it may). */
static inline MUST_CHECK enum status store_commit(struct store *s, struct error *err)
{
    return s->ops->commit(s, err);
}

static inline void store_rollback(struct store *s)
{
    s->ops->rollback(s);
}

/* Removes dead rows, in a transaction of its own that need not be durable: what a crash brings back is swept
   again. Never touches a row that a client could see. */
static inline MUST_CHECK enum status store_sweep(struct store *s, const struct sweep_budget *b,
                                                 struct sweep_result *ret, struct error *err)
{
    return s->ops->sweep(s, b, ret, err);
}

static inline MUST_CHECK enum status store_info(struct store *s, struct store_info *ret, struct error *err)
{
    return s->ops->info(s, ret, err);
}

static inline MUST_CHECK enum status store_set_durability(struct store *s, enum durability d,
                                                          struct error *err)
{
    return s->ops->set_durability(s, d, err);
}

/* Makes everything committed so far durable now, whatever the durability. */
static inline MUST_CHECK enum status store_sync(struct store *s, struct error *err)
{
    return s->ops->sync(s, err);
}

/* Which connection to the database this is. Another number than before: it may have been down in between, and
   have lost commits that were not waited for. */
static inline uint64_t store_connection(const struct store *s)
{
    return s->ops->connection(s);
}

#endif
