/* Private to the files of the store on a database server: remote_store.c (opening, transactions),
   remote_lock.c, remote_texts.c, remote_read.c, remote_scan.c, remote_apply.c, remote_mark.c,
   remote_journal.c and remote_sweep.c. Everyone else sees store/store.h. */
#ifndef LARDER_STORE_REMOTE_REMOTE_STORE_H
#define LARDER_STORE_REMOTE_REMOTE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "sql/features.h"
#include "sql/remote.h"
#include "store/journal_rows.h"
#include "store/order.h"
#include "store/remote/lease.h"
#include "store/remote/remote_position.h"
#include "store/remote/remote_statements.h"
#include "store/shared.h"

#define STRIPES 512 /* rows of larder_lock, where those are locked */

/* Numbers of classes of keys, ascending, each once: see remote_shared.c. */
struct rclasses {
    int64_t *at;
    size_t n, cap;
};

/* A declared key, as it was read. */
struct rseen {
    int64_t seq; /* 0: it has no row */
    int64_t version;
    bool written; /* by what is applied */
};

/* A transaction that is one statement so far: see remote_brief.c. */
struct rbrief {
    bool on;
    bool writes;         /* it may write: see remote_loose.c ... */
    bool tied;           /* ... and what it only reads stays as it is until it has ended */
    bool items;          /* it may read items ... */
    bool unsure;         /* ... and has: they were those of its rows if these are as they were */
    bool wrote;          /* what it writes is on its way */
    uint32_t db;         /* the logical database that all its keys are in */
    struct key_ref kept; /* with items: the hidden row that was not there; key.n is 0: none was looked for */
    uint32_t locked;     /* how many might be loose and lock, as one was in another's way or asked for more */
    uint32_t penalty;    /* how many did the last time */
    struct rseen *seen;  /* of each of the keys */
    struct db_row *fresh; /* behind widening one that writes (recounted): the databases as they are, ... */
    bool recounted;       /* ... which the caller has not asked for */
    uint32_t not_yet;     /* how many that might be brief are not, because one has asked for more */
    struct key_ref *keys; /* that were read; their bytes are the caller's until it ends */
    size_t n, cap, seen_cap;
    uint64_t sum; /* of what was read */
};

/* What was so when the transaction was last marked: see remote_mark.c. */
struct rmark {
    bool on, everything, told_valid;
    int64_t next_number;
    size_t nclasses;
    struct db_row *told;
};

struct rstore {
    struct store base;
    struct remote *conn; /* NULL: not connected */
    char *url;
    uint32_t timeout_ms, busy_ms;
    remote_away_fn *away; /* whether the database is known to be away; or NULL */
    void *away_arg;
    uint32_t databases;
    bool read_only;
    bool snapshots; /* transactions that read see one state */
    bool soon;      /* commits need not be durable at once: the durability asks for less */
    enum { TXN_NONE, TXN_READ, TXN_LAZY, TXN_WRITE } asked; /* the transaction that the caller is in */
    bool begun;                     /* the server has been told of it, or will be before anything else */
    bool dirty;                     /* it has changed something */
    enum status failed;             /* a statement of it failed so; ST_OK: none */
    bool other;                     /* another server may have written since the last transaction */
    struct rconnecting *connecting; /* a connection that is being made; or NULL */
    int64_t retry_at;               /* not before this is a connection tried again */
    uint32_t backoff_ms;            /* and how long to wait after the next failure */
    uint64_t reconnects, round_trips, conflicts;
    int64_t next_number;       /* larder_meta's next_db_number; -1: has to be read */
    int64_t seq_next, seq_end; /* numbers for new key rows */
    /* See remote_lock.c. */
    char owner[LEASE_OWNER_BYTES]; /* what larder_meta calls us, when we have the tables for ourselves */
    uint32_t lease_ms;
    struct lease own_lease;  /* of one that has them for itself */
    struct lease *lease;     /* that one, or of the session that this one reads beside; NULL: it needs none */
    store_replay_fn *replay; /* what a server that did not end well left in the journal */
    bool holds;              /* this connection has a lock that keeps others out, and they are ours */
    bool beside;             /* is beside the session that has them, and only reads ... */
    bool peeks;              /* ... without a lock of its own; or ... */
    bool applies;            /* ... writes to them, with one */
    bool fenced; /* what is remembered outlives a connection, if no other server has had the tables
                    meanwhile */
    /* Of a store with a journal: see remote_journal.c and remote_apply.c. */
    int64_t dropped_to; /* the journal has no rows up to here */
    int64_t dropped;    /* how many the last statement removed; -1: there was none */
    bool careful;       /* rows were not where they should be: they are looked for by their names */
    /* What the database server can do, see remote_proof.c. */
    struct remote_features features;
    bool lock_rows; /* locks are rows of larder_lock: those of sessions are missing, or do nothing */
    /* Of a shared store, for the running transaction: see remote_shared.c. */
    bool shared;
    bool retrying;           /* the last one was ended because of another server's */
    int64_t give_up_us;      /* when that is told rather than tried again */
    struct rclasses classes; /* that are locked */
    struct rclasses again;   /* that a transaction had which was ended so */
    bool hurries;            /* a lock is asked for that may not be had (R_HURRY) ... */
    bool hurrying;           /* ... and what is asked for next is, too */
    bool everything;         /* all of them are */
    struct db_row *told;     /* the databases as the caller knows them */
    bool told_valid;
    /* told has the numbers of the databases as the caller has them, from a transaction that ended well. Not
       behind one of our own (a step of the sweeper): who asks for a key by the number that its database had
       before would get that of another one, if the two have changed places. */
    bool mapped;
    struct rbrief brief;
    struct rmark mark;
    int64_t now_us;
    int first_host;         /* of the URL's that is tried next */
    struct rgalera *galera; /* of a node of a Galera cluster, see remote_galera.c; else NULL */
    bool appeared;          /* something that others' clients may wait for: see remote_wake.c */
    bool listening;         /* this connection does */
    struct rposition pos;
    struct arena arena; /* for the call that is running */
    struct buf text;    /* of a composed statement */
};

static inline struct rstore *rstore_of(struct store *s)
{
    return (struct rstore *)s;
}

/* ---- remote_texts.c ---- */

const char *rtext(const struct rstore *s, enum remote_statement which);

/* R_LOCK, for who has no store yet. */
const char *rtext_lock(enum remote_dialect dialect);

/* A scan of keys: ?1 db, ?2 and ?3 bounds of keys, ?2 the seq to stay below, ?4 limit, ?5 now, ?6 rows to
   skip. */
const char *rtext_scan_keys(struct rstore *s, const struct key_scan *q, bool has_end);

static inline bool rtext_postgres(const struct rstore *s)
{
    return s->conn->dialect == REMOTE_POSTGRES;
}

/* Ends a text that was composed in s->text with ?1, ?2 ...; it is there until the next one is composed. */
const char *rtext_end(struct rstore *s);

const char *rtext_no_bytes(const struct rstore *s); /* as a constant */

/* ---- remote_item_texts.c ---- */

const char *rtext_get_items(struct rstore *s, enum item_table t);
const char *rtext_read_whole(struct rstore *s, enum item_table t);
const char *rtext_put_items(struct rstore *s, enum item_table t);
const char *rtext_delete_items(struct rstore *s, enum item_table t);
/* From ?2 to ?3; by score from (?2, ?4) to (?3, ?5), as the index has names, and of those that have the
   lowest score none with a name below ?6, of those that have the highest none above ?7. */
const char *rtext_delete_range(struct rstore *s, const struct item_range *r);
const char *rtext_sweep_items(struct rstore *s, enum item_table t, enum trash_part part);
const char *rtext_sweep_trash(struct rstore *s, enum row_type type);

/* A scan of items: ?1 id, ?2 and ?3 bounds, ?4 limit, ?5 and ?6 the names that go with scores, ?7 rows to
   skip; after: only rows behind the place (?8, ?9). Names are compared as the index has them. */
const char *rtext_scan_items(struct rstore *s, const struct item_scan *q, bool after);

/* How many items expire from ?2 to ?3; or how many there are from (?2, ?5) to before (?3, ?6), by score.
   exact: names are compared whole. */
const char *rtext_count_items(struct rstore *s, const struct item_scan *q, bool exact);

/* A score as a parameter: MariaDB compares places. */
struct param rstore_score(const struct rstore *s, double score);
int64_t score_bits(double score);
int64_t score_place(double score);
double score_of_bits(int64_t bits);

/* ---- remote_store.c ---- */

/* Runs what was queued; a lost connection is noted. */
enum status rstore_run(struct rstore *s, struct error *err) MUST_CHECK;

/* Connected, or ST_IO. For what happens outside of transactions. */
enum status rstore_connected(struct rstore *s, struct error *err) MUST_CHECK;

/* What a server that enters the tables leaves in larder_meta and larder_db. */
enum status rstore_set_up(struct rstore *s, struct error *err) MUST_CHECK;

/* Before the first statement of a write: BEGIN goes out with it. */
void rstore_begin_write(struct rstore *s);

/* Before the first statement of a transaction that sees one state. */
void rstore_begin_read(struct rstore *s);

enum status rstore_get_meta(struct rstore *s, const char *name, int64_t *ret, struct error *err) MUST_CHECK;

/* For larder_db: a struct rlisting that grows by each row. */
struct rlisting {
    struct db_row *dbs;
    size_t n, found;
    int64_t now_us; /* when the statement has it */
};
enum status rstore_take_db(void *arg, const struct remote_row *row);
void rstore_add_get_meta(struct rstore *s, const char *name, int64_t *ret);
void rstore_add_set_meta(struct rstore *s, const char *name, const char *value);

/* ---- remote_read.c ---- */

/* What an answer brought, copied into the store's arena. */
struct rfound {
    struct rstore *store;
    enum item_table table;
    struct key_row *keys;
    struct item_row *items;
    size_t n, cap;
};

/* For requests: arg is a struct rfound, which grows by each row. */
enum status rread_take_key(void *arg, const struct remote_row *row);
enum status rread_take_item(void *arg, const struct remote_row *row);
void rread_release(struct rfound *f);

enum status rread_get_keys(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn, void *arg,
                           struct error *err) MUST_CHECK;
enum status rread_get_seqs(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                           struct error *err) MUST_CHECK;
enum status rread_get_items(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err) MUST_CHECK;
enum status rread_whole(struct store *s, enum item_table table, const int64_t *ids, size_t n,
                        store_item_fn *fn, void *arg, struct error *err) MUST_CHECK;
enum status rread_count_items(struct store *s, const struct item_scan *q, int64_t *ret,
                              struct error *err) MUST_CHECK;
enum status rread_due_rows(struct store *s, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err) MUST_CHECK;
enum status rread_count_dead(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err) MUST_CHECK;
enum status rread_count_keys(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err) MUST_CHECK;

/* Two numbers of one row. */
enum status rread_two(void *arg, const struct remote_row *row);

/* ---- remote_scan.c ---- */

enum status rscan_keys(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                       struct error *err) MUST_CHECK;
enum status rscan_items(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                        struct error *err) MUST_CHECK;

/* ---- remote_apply.c ---- */

/* Rows of larder_key, column by column, in the store's arena. */
struct key_columns {
    int64_t *seqs, *dbs, *types, *ids, *sizes, *firsts, *versions, *expiries, *numbers;
    struct slice *keys, *rests, *values;
};
void rapply_fill_keys(struct rstore *s, struct key_row *const *rows, size_t n, struct key_columns *ret);

/* The rows of a change set, each kind in the order of names; the new ones have got their numbers. */
struct key_split {
    struct key_row **known, **fresh;
    size_t nknown, nfresh;
};
enum status rapply_split_keys(struct rstore *s, struct changes *c, struct key_split *ret,
                              struct error *err) MUST_CHECK;

/* Calls for as many rows at a time as a statement should have. */
typedef void rapply_keys_fn(struct rstore *s, struct key_row *const *rows, size_t n);
void rapply_in_pieces(struct rstore *s, struct key_row *const *rows, size_t n, rapply_keys_fn *fn);
void rapply_insert_keys(struct rstore *s, struct key_row *const *rows, size_t n);

void rapply_next_number(struct rstore *s, int64_t next);

/* Rows of larder_db, column by column: filled in, which answers the number behind the highest of theirs; and
   written. */
struct db_columns {
    int64_t *at[4]; /* db, number, keys, expires */
    size_t n;
};
int64_t rapply_fill_dbs(struct rstore *s, const struct db_row *const *rows, size_t n, struct db_columns *ret);
void rapply_put_dbs(struct rstore *s, const struct db_columns *c);

enum status rapply(struct store *s, struct changes *c, struct error *err) MUST_CHECK;
void rapply_trash(struct rstore *s, const struct trash_row *rows, size_t n);

/* ---- remote_mark.c ---- */

enum status rmark(struct store *s, struct error *err) MUST_CHECK;
enum status rmark_undo(struct store *s, struct error *err) MUST_CHECK;

/* ---- remote_sweep.c ---- */

enum status rsweep(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                   struct error *err) MUST_CHECK;

#endif
