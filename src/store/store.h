/* The one interface that the engine sees of a database: rows in, rows out, in transactions.

   A store belongs to one thread. Between store_begin and store_commit or store_rollback, reads see what
   store_apply wrote. Rows handed to a callback borrow the database's memory: whoever keeps one, copies it.
   Rows come as they stand in the tables, expired and deleted ones included, unless a function says otherwise;
   what they mean is the engine's business.

   Implementations: sqlite_store.c over a driver of sql/; fault.c decorates any of them for tests. The tables
   are described in store/sqlite/schema.h. tests/contract runs over every implementation. */
#ifndef LARDER_STORE_STORE_H
#define LARDER_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"

/* Values of larder_key.type and larder_trash.type: they are in the tables, so they never change. */
enum row_type {
    ROW_NONE = 0, /* a deleted key */
    ROW_STRING = 1,
    ROW_HASH = 2,
    ROW_LIST = 3,
    ROW_SET = 4,
    ROW_ZSET = 5,
    ROW_DB = 100 /* only in larder_trash: id is the number of a flushed database */
};

/* The tables that hold the items of one key, each by the id in the key's row. store/item_tables.c says which
   columns and orders each of them has. The numbers are in the journal, so they never change. */
enum item_table {
    ITEM_CHUNK, /* a long string, in pieces of STORE_CHUNK_BYTES */
    ITEM_HASH,
    ITEM_LIST,
    ITEM_SET,
    ITEM_ZSET,
    ITEM_ZBLOCK /* rank blocks of large sorted sets: pos is a block's number, score and value the place it
                   begins at, ord how many members it has */
};
#define ITEM_TABLES 6

/* A string longer than this does not live in its key row but in larder_chunk, so that no command's cost
   depends on the size of the value it deletes, expires, renames or changes a part of. A chunk that is
   missing, or shorter than its place in the string, counts as zeros: a bitmap costs what was set in it. */
#define STORE_INLINE_BYTES 65536
#define STORE_CHUNK_BYTES  16384

/* What one item may take, name and value together: no database has rows without end (SQLite's end at a
 * billion bytes). */
#define STORE_ITEM_BYTES ((size_t)900 * 1000 * 1000)

/* expire_at: 0 never, -1 deleted, else milliseconds since the epoch. */
#define EXPIRE_NEVER   0
#define EXPIRE_DELETED (-1)

/* Rows that are in memory only have a seq from here on (see journal/owner_txn.c); they get another one,
   below, when they come into the table. Numbers up to 2^53 stay exact in clients that take a cursor for a
   double. */
#define STORE_PROVISIONAL ((int64_t)1 << 52)

struct key_ref {
    uint32_t db; /* the database's number in the tables, not the one a client selects */
    struct slice key;
};

struct key_row {
    int64_t
        seq; /* the row's own number: ascending in order of creation, never changed; 0 = not in the table */
    uint32_t db;
    struct slice key;
    enum row_type type;
    int64_t id;   /* of its items; 0 = none (a short string, a deleted key) */
    int64_t size; /* items; bytes of a string in chunks */
    /* The column first says something else of each type; whoever only carries rows takes it as it is. */
    union {
        int64_t first;
        int64_t first_pos;    /* of a list: the position of its first item */
        int64_t first_expiry; /* of a hash: no field expires before this moment; 0: none does */
        int64_t next_block;   /* of a sorted set: the next rank block's number; 0: it has no blocks */
    };
    struct slice value;
    int64_t version;
    int64_t expire_at;
    int64_t ticket; /* of the change set that made it what it is, see store_commit; 0: it is durable */
    bool fresh;     /* in a change set: the tables do not have it, though its seq is given */
};

struct item_ref {
    enum item_table table;
    int64_t id;
    struct slice name; /* one of these, see item_named */
    int64_t pos;
};

/* Of what follows ref, a table has some columns (item_has); the others are zero. */
struct item_row {
    struct item_ref ref;
    struct slice value;
    double score;
    int64_t expire_at;
    int64_t ord; /* of named items: numbers those of one id from 0 without gaps. A scan BY_SCORE reads the
                    index alone and does not tell it: -1 */
    bool fresh;  /* in a change set: no such item was there before */
};

/* One logical database: which number its rows carry, how many rows it has (expired ones that are not swept
   yet included, deleted ones not), and how many of those have an expiry. */
struct db_row {
    uint32_t db;     /* as SELECT names it */
    uint32_t number; /* as larder_key.db has it */
    int64_t keys;
    int64_t expires;
};

/* Items (or a whole flushed database) that nothing refers to any more; the sweeper removes them. */
struct trash_row {
    int64_t id;
    enum row_type type;
};

/* What a batch did to rows: the last state of each. Everything is borrowed until store_apply returns.
   store_apply brings it into the tables: a key row with seq 0 is inserted and gets its seq, any other is
   updated by its seq (and key: a seq that stands for another key now is an error of ours, ST_INTERNAL). */
struct changes {
    struct key_row *keys; /* at most one for each (db, key); their order is kept */
    size_t nkeys;
    const struct item_row *items; /* inserted or replaced */
    size_t nitems;
    const struct item_ref *gone; /* removed; a ref is in items or in gone, not in both */
    size_t ngone;
    const struct trash_row *trash;
    size_t ntrash;
    const struct db_row *dbs; /* replaced */
    size_t ndbs;
    int64_t next_id; /* ids below it are taken, see store_reserve_ids; 0: nothing new */
    /* Rows may come again after a crash: every row is brought to its state whatever the tables have. Deleted
       keys (ROW_NONE) lose their row. A key row with the seq 0, or a provisional one, is found by its name;
       should another seq stand for another key by now, the row gets a new one (on a database server, also
       when the tables have no such row). The order of all rows is kept. Where rows turn out not to be where
       their numbers say, a database server may answer ST_CONFLICT: it works when the same is tried again. */
    bool replay;
    bool appeared; /* a list or a sorted set is there now where there was none */
};

/* Called for each row. ST_STOP ends the read, which then returns ST_OK; so does anything else but ST_OK, and
   is returned. Must not call the store. */
typedef enum status store_key_fn(void *arg, const struct key_row *row);
typedef enum status store_item_fn(void *arg, const struct item_row *row);

enum key_order {
    KEYS_BY_SEQ_DESC, /* newest first, rows of every database number: the order of SCAN (see docs/schema.md)
                       */
    KEYS_BY_KEY,      /* byte order of the key */
    KEYS_DUE, /* hashes that may have expired fields: those with a first_expiry at or before `now`, earliest
                 first, of every database number */
    KEYS_EXPIRED /* rows whose expiry (not: deletion) is at or before `now`, earliest first, of every database
                    number; they come as they stand */
};

/* A place in the order KEYS_EXPIRED. */
struct expiry_place {
    int64_t expire_at;
    uint32_t db;
    int64_t seq;
};

struct key_scan {
    uint32_t db; /* BY_KEY only */
    enum key_order order;
    int64_t seq_below;   /* BY_SEQ_DESC: only rows with seq < this */
    struct slice prefix; /* BY_KEY: only keys that start so ... */
    struct slice from;   /* ... and are >= this ... */
    struct slice after;  /* ... and > this, when has_after ... */
    struct slice before; /* ... and < this, when has_before */
    bool has_after, has_before;
    bool reverse;               /* BY_KEY: the last one first */
    struct expiry_place behind; /* EXPIRED: only rows behind this place, when has_behind */
    bool has_behind;
    /* A hash whose fields have all expired by then is handed out as ROW_NONE; 0: rows come as they stand. */
    int64_t now;
    bool with_value; /* else row.value is empty: cheaper */
    uint32_t limit;  /* rows handed out at most */
};

enum item_order {
    ITEMS_BY_NAME,
    ITEMS_BY_POS,
    ITEMS_BY_ORD,
    ITEMS_BY_SCORE,
    ITEMS_BY_EXPIRY /* those that have one */
};
#define ITEM_ORDERS 5

/* A range of one id's items, in the order that its table has. Bounds are inclusive and optional. */
struct item_scan {
    enum item_table table;
    int64_t id;
    enum item_order order;
    bool reverse;
    bool has_min, has_max;
    int64_t min, max;                /* BY_POS, BY_ORD, BY_EXPIRY */
    struct slice min_name, max_name; /* BY_NAME; BY_SCORE: they break ties, a max_name of NULL bounds none */
    double min_score, max_score;     /* BY_SCORE */
    bool below_max;                  /* BY_SCORE: what equals max is out of the range */
    uint32_t skip;                   /* rows left out at the start of the range */
    uint32_t limit;
};

struct sweep_budget {
    int64_t now;        /* milliseconds: rows with an expiry at or before it are dead */
    uint32_t max_rows;  /* removed at most in this call */
    struct db_row *dbs; /* the logical databases as they stand; what is swept is taken off their counts */
    size_t ndbs;
    store_key_fn *fn; /* called for each key row removed from a database in use (may be NULL) ... */
    void *arg;        /* ... so that nobody keeps its seq, which the table may give to another row */
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
    uint64_t journal_bytes;          /* of changes that are not in the tables yet ... */
    uint64_t memtable_rows;          /* ... and rows */
    uint64_t reconnects;             /* times that a lost connection was made anew */
    uint64_t round_trips;            /* to a database server, that were waited for */
    uint64_t conflicts;              /* transactions that the database ended because others were in the way */
    const struct histogram *sync_us; /* of the log's syncs, as long as the store lives; NULL: nobody knows */
    const struct histogram *commit_us; /* of commits that become durable later, until they are; else NULL */
    char engine[64];                   /* "sqlite 3.40.1" */
};

enum store_txn {
    STORE_READ,
    STORE_WRITE,
    STORE_WRITE_LAZY /* its commit need not be durable before the next STORE_WRITE's is: for what would only
                        have to be done again */
};

enum durability { DURABILITY_ALWAYS, DURABILITY_EVERYSEC, DURABILITY_OFF };

struct store;

/* How far a store has got whose commits become durable later. */
struct store_progress {
    int64_t durable;   /* every change set up to this ticket is as durable as the durability says */
    int64_t first_seq; /* provisional ones below it belong to rows that are in the table by now */
    size_t memory;     /* that the store takes for what is not in the tables yet */
    bool full;         /* too much waits to be brought into the tables: who writes should wait */
    bool locked;       /* another process holds the database's lock: who writes should wait */
    bool failing;      /* what was committed cannot be written, which is tried again: who writes is refused */
};

/* What larder_meta says of the journal. */
struct journal_state {
    int64_t applied;  /* up to which seq the tables hold what the journal ever said */
    int64_t applying; /* up to which they hold some of it; 0: nothing beyond applied */
    int64_t last;     /* the highest seq of its rows; 0: there are none */
};

/* A row of the journal. Anything but ST_OK ends the reading, and is returned. */
typedef enum status store_journal_fn(void *arg, int64_t seq, struct slice row);

/* Called from another thread; must not call the store. */
typedef void store_wake_fn(void *arg);

/* Where a shared store tells that something has appeared through another server. */
struct store_wakeup {
    int fd;          /* becomes readable, and stays the store's */
    uint64_t number; /* another connection has another; never 0 */
};

/* What a transaction will use, so far as it is known before it begins. */
struct store_expectation {
    const struct key_ref *keys;
    size_t nkeys;
    bool everything;  /* whole databases: nobody else may write meanwhile */
    store_key_fn *fn; /* called by store_begin for each of the keys that has a row, in any order */
    void *arg;
};

struct store_ops {
    void (*close)(struct store *s);
    /* Only of stores that several servers share, see store_shared; else NULL. */
    void (*expect)(struct store *s, const struct store_expectation *e);
    int64_t (*now_us)(const struct store *s);
    bool (*listen)(struct store *s, bool on, struct store_wakeup *ret);
    bool (*rung)(struct store *s);
    void (*counters)(const struct store *s, struct store_info *add_to);
    enum status (*begin)(struct store *s, enum store_txn kind, bool *ret_changed, struct error *err);
    /* NULL: nobody else can have the tables while this process is there. */
    enum status (*confirm)(struct store *s, struct error *err);
    /* The seqs of rows; 0: there is none. NULL where that is no quicker than get_keys. */
    enum status (*get_seqs)(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                            struct error *err);
    enum status (*get_keys)(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                            void *arg, struct error *err);
    enum status (*get_items)(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                             void *arg, struct error *err);
    enum status (*scan_keys)(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                             struct error *err);
    enum status (*scan_items)(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                              struct error *err);
    enum status (*count_items)(struct store *s, const struct item_scan *q, int64_t *ret, struct error *err);
    enum status (*count_dead)(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                              int64_t *ret_expires, struct error *err);
    enum status (*count_keys)(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                              struct error *err);
    enum status (*load_dbs)(struct store *s, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                            struct error *err);
    enum status (*reserve_ids)(struct store *s, int64_t n, int64_t *ret_first, struct error *err);
    enum status (*apply)(struct store *s, struct changes *c, struct error *err);
    enum status (*commit)(struct store *s, struct error *err);
    void (*rollback)(struct store *s);
    enum status (*sweep)(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                         struct error *err);
    enum status (*info)(struct store *s, struct store_info *ret, struct error *err);
    enum status (*set_durability)(struct store *s, enum durability d, struct error *err);
    enum status (*sync)(struct store *s, struct error *err);

    /* Only of stores that have tables, see encoding.h. All within the running transaction. */
    enum status (*journal_add)(struct store *s, int64_t seq, struct slice row, struct error *err);
    enum status (*journal_each)(struct store *s, store_journal_fn *fn, void *arg, struct error *err);
    enum status (*journal_applying)(struct store *s, int64_t seq, struct error *err);
    enum status (*journal_applied)(struct store *s, int64_t seq, struct error *err);
    enum status (*journal_drop)(struct store *s, int64_t seq, uint32_t max, bool *ret_more,
                                struct error *err);
    enum status (*journal_state)(struct store *s, struct journal_state *ret, struct error *err);
    /* NULL: there is only ever one. */
    uint64_t (*connection)(const struct store *s);
    /* NULL: a commit either fails or has taken place. */
    enum status (*journal_forget)(struct store *s, int64_t after, int64_t applied, struct error *err);

    /* Only of stores whose commits become durable later, see store_commits_later; else NULL. */
    int64_t (*last_ticket)(const struct store *s);
    enum status (*progress)(struct store *s, struct store_progress *ret, struct error *err);
    void (*on_progress)(struct store *s, store_wake_fn *fn, void *arg);
};

struct store {
    const struct store_ops *ops;
    bool far;       /* every read is a round trip: many keys are better asked for at once */
    bool contended; /* others are in the way at times (ST_CONFLICT): the same may work when it is tried again
                     */
};

/* With the tables to this process alone: brings what is left in their journal into them. url is for people.
 */
typedef enum status store_replay_fn(struct store *s, const char *url, struct error *err);

struct store_options {
    const char *url; /* sqlite:PATH, a bare path, postgres://..., mysql://... */
    enum durability durability;
    uint32_t databases;
    uint64_t page_cache; /* bytes the database's own cache may take */
    uint32_t busy_ms;    /* how long opening waits for another process's lock; afterwards nothing waits */
    uint32_t timeout_ms; /* how long a database server may take for an answer; 0: 10 s */
    uint32_t lease_ms;   /* see lease.h */
    bool read_only;      /* for inspection: no lock, no migration */
    /* Of the two sessions of a store with a journal on a database server: the one that writes, and the one
       that reads beside it. What such a store remembers outlives a lost connection, unless another server
       has had the tables meanwhile: then everything is ST_LOCKED from there on. */
    bool journaled;
    struct store *beside;
    /* On a database server, of a store that writes: called when the store enters the tables, because a server
       that did not end well may have left a journal (journal/journal.h has the function). */
    store_replay_fn *replay;
    bool joins; /* a shared store that this process has open already: the tables are as they must be */
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

/* Whether other servers may write to the tables at any moment: nothing that was read may be remembered beyond
   the end of its transaction. */
static inline bool store_shared(const struct store *s)
{
    return s->ops->expect != NULL;
}

/* Of a shared store, before store_begin: what the transaction will use is locked (when it may write) and read
   in the round trip that begins it. What is not told is locked when it is read. e is borrowed until
   store_begin has returned. */
static inline void store_expect(struct store *s, const struct store_expectation *e)
{
    s->ops->expect(s, e);
}

/* Of a shared store, in a transaction: the clock that all servers share, as it was when it began. */
static inline int64_t store_now_us(const struct store *s)
{
    return s->ops->now_us(s);
}

/* Of a shared store, between transactions: asks to be told when a list or a sorted set appears through
   another server, or not any more. False: nobody tells, because it is not wanted, not possible, or there is
   no connection. To be called again now and then, because a new connection has to be asked anew. What appears
   in the first moments may go unheard. */
static inline bool store_listen(struct store *s, bool on, struct store_wakeup *ret)
{
    return s->ops->listen && s->ops->listen(s, on, ret);
}

/* Whether something has appeared since the last time. */
static inline bool store_rung(struct store *s)
{
    return s->ops->rung && s->ops->rung(s);
}

/* Of a shared store, without asking the database: adds its reconnects, round trips and conflicts. */
static inline void store_counters(const struct store *s, struct store_info *add_to)
{
    s->ops->counters(s, add_to);
}

/* Starts a transaction. To write: takes the write lock now, so that nothing read from here on can change
   under us. ret_changed: someone else has written since our last transaction; whatever was remembered is
   void. */
static inline MUST_CHECK enum status store_begin(struct store *s, enum store_txn kind, bool *ret_changed,
                                                 struct error *err)
{
    return s->ops->begin(s, kind, ret_changed, err);
}

/* Between transactions: that nobody else has had the tables up to now, or to a moment within this call. Asks
   the database unless it has answered lately (lease.h). ST_LOCKED: somebody has; ST_IO: nobody can tell. */
static inline MUST_CHECK enum status store_confirm(struct store *s, struct error *err)
{
    return s->ops->confirm ? s->ops->confirm(s, err) : ST_OK;
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

/* Ends the transaction. When it returns ST_OK the changes are as durable as the store's durability says;
   on failure nothing of the transaction remains (ST_UNKNOWN: it may). */
static inline MUST_CHECK enum status store_commit(struct store *s, struct error *err)
{
    return s->ops->commit(s, err);
}

/* Whether store_commit may return before the change set is durable. Such a store gives every change set a
   ticket, ascending by one from commit to commit, and tells by store_progress how far it has got. Other
   stores have no tickets. */
static inline bool store_commits_later(const struct store *s)
{
    return s->ops->progress != NULL;
}

/* The ticket of the last commit: the next one gets the next number, unless commits fail before that. */
static inline int64_t store_last_ticket(const struct store *s)
{
    return s->ops->last_ticket(s);
}

/* Between transactions: takes note of what has become durable. Anything but ST_OK: the commits behind
   ret->durable failed, and nothing of them is left; whatever was remembered is void. */
static inline MUST_CHECK enum status store_progress(struct store *s, struct store_progress *ret,
                                                    struct error *err)
{
    return s->ops->progress(s, ret, err);
}

/* fn is called whenever there may be something new to learn from store_progress. */
static inline void store_on_progress(struct store *s, store_wake_fn *fn, void *arg)
{
    if (s->ops->on_progress)
        s->ops->on_progress(s, fn, arg);
}

static inline void store_rollback(struct store *s)
{
    s->ops->rollback(s);
}

/* Adds a row to the journal. */
static inline MUST_CHECK enum status store_journal_add(struct store *s, int64_t seq, struct slice row,
                                                       struct error *err)
{
    return s->ops->journal_add(s, seq, row, err);
}

/* Every row of the journal, in order. */
static inline MUST_CHECK enum status store_journal_each(struct store *s, store_journal_fn *fn, void *arg,
                                                        struct error *err)
{
    return s->ops->journal_each(s, fn, arg, err);
}

/* The tables hold a part of what rows up to seq say: larder_meta says so from now on. */
static inline MUST_CHECK enum status store_journal_applying(struct store *s, int64_t seq, struct error *err)
{
    return s->ops->journal_applying(s, seq, err);
}

/* They hold all of it. */
static inline MUST_CHECK enum status store_journal_applied(struct store *s, int64_t seq, struct error *err)
{
    return s->ops->journal_applied(s, seq, err);
}

/* Removes up to max rows up to seq. *ret_more: there may be more of them. */
static inline MUST_CHECK enum status store_journal_drop(struct store *s, int64_t seq, uint32_t max,
                                                        bool *ret_more, struct error *err)
{
    return s->ops->journal_drop(s, seq, max, ret_more, err);
}

/* After a commit of which nobody knows whether it took place: as if it had not. Rows behind `after` go, and
   the tables are complete up to `applied`. */
static inline MUST_CHECK enum status store_journal_forget(struct store *s, int64_t after, int64_t applied,
                                                          struct error *err)
{
    return s->ops->journal_forget ? s->ops->journal_forget(s, after, applied, err) : ST_OK;
}

static inline MUST_CHECK enum status store_journal_state(struct store *s, struct journal_state *ret,
                                                         struct error *err)
{
    return s->ops->journal_state(s, ret, err);
}

/* Which connection to the database this is. Another number than before: it may have been down in between, and
   have lost commits that were not waited for. */
static inline uint64_t store_connection(const struct store *s)
{
    return s->ops->connection ? s->ops->connection(s) : 0;
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

#endif
