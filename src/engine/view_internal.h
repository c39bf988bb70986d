/* What view*.c, view_string.c, view_scan.c and engine.c share. */
#ifndef LARDER_ENGINE_VIEW_INTERNAL_H
#define LARDER_ENGINE_VIEW_INTERNAL_H

#include "engine/cache.h"
#include "engine/engine.h"
#include "engine/hidden.h"
#include "engine/memo.h"
#include "engine/view.h"
#include "engine/view_items.h"
#include "engine/view_keep.h"

/* A key that the batch changed: its row before the batch (clean, out of the cache) and now (dirty, in it). */
struct change {
    struct row *was;
    struct row *now;
    bool pending;  /* not in the tables of the running transaction yet */
    uint64_t call; /* the last call of several steps that changed it ... */
    size_t undo;   /* ... and where it noted so, for undoing; only before the running step */
};

/* A key under which something appeared that a blocked client may want. */
struct ready_key {
    uint32_t number;
    struct slice key; /* in the batch's arena; p is NULL: any key */
};

struct row_undo {
    struct row *old;
    struct row *fresh;
};

#define VIEW_EXPIRED_MARKS 4096

/* The databases, by logical number. */
struct view_dbs {
    struct db_row *rows; /* counts as of the last commit; behind the n of clients the hidden one */
    uint32_t n;
    uint32_t next_number;
    int64_t ticket;      /* of the last flush or exchange */
    bool counts_stale;   /* another process wrote: count again before they are used */
    bool counts_unsaved; /* counted again, or not known any more: the next commit says so */
    bool unread;         /* in this batch, but for that whose keys were declared: they are as they were */
};

/* Keys that clients watch (view_watch.c). */
struct view_watches {
    struct map by_key;
    bool touched;         /* one of them, in this batch */
    bool touched_in_call; /* ... in the running call */
};

/* Reserved ids, from next to before end. */
struct view_ids {
    int64_t next, end;
    bool new_block; /* reserved in the running transaction */
};

/* Before a batch: the keys that it will use, and what was read of them (view_shared.c). Where reads are near,
   only those that memory does not have. */
struct view_declared {
    struct key_ref *keys;
    size_t n, cap;
    bool everything, more, few_items, rows_only, tied;
    struct row **loaded;
    size_t nloaded, loaded_cap;
};

/* What the commands of a batch over a shared store will ask for of collections: a key, and the names of an
   item of it that the command may mean, by where most commands have it. Copied, and only hints: what one of
   them asks for is read together with what the others will (coll_load.c, view_items.c). */
struct mate {
    uint32_t db; /* its number in the tables */
    struct slice key;
    struct slice name, behind_score; /* .p is NULL: none; the latter in a sorted set */
    bool read;                       /* the item was asked for */
};

struct view_mates {
    struct mate *all;
    size_t n, cap;
    bool begun; /* they are those of the running batch: what is declared now is for the next one */
    uint32_t whole_at_once; /* how many collections are read together: they were small so far */
    struct arena arena;
};

/* Rows of the hidden database (hidden.c), each a bit by its number. */
struct view_hidden {
    unsigned peeked;                  /* declared, for store_begin */
    unsigned unheld;                  /* that the running batch may have seen without having locked them */
    uint64_t undone;                  /* how often a change of one was undone, or may have been */
    struct key_ref refs[HIDDEN_ROWS]; /* those that are peeked at */
};

/* What belongs to the running batch: end_batch empties it, a commit makes it clean, a rollback puts it back.
   The arrays keep their room for the next one. */
struct view_batch {
    int64_t now_us;
    int64_t ticket;    /* that its changes will have */
    int64_t first_seq; /* see struct store_progress */
    int64_t durable;   /* changes with tickets up to this are durable: replies may tell of them */
    struct change *changes;
    size_t nchanges, changes_cap;
    size_t npending;
    size_t bytes; /* of changed rows, for bounding a batch */
    struct item_changes items;
    struct trash_row *trash;
    size_t ntrash, trash_cap;
    size_t trash_flushed;
    struct db_row *dbs_before; /* the databases before its first change of them, when dbs_changed */
    uint32_t next_number_before;
    int64_t dbs_ticket_before;
    bool dbs_changed, dbs_pending;
    bool *db_written; /* by logical number: its row in larder_db has been written already */
    struct ready_key *ready;
    size_t nready, ready_cap, ready_taken;
    enum status poison; /* a command failed after its writes had reached the transaction: no commit */
    bool doubtful;      /* a call began after that: it may have read those writes, so the batch has to fail */
    bool kept;          /* a call that was kept has changed something; else there is nothing to commit */
    bool ends;          /* nothing is read any more */
    const struct prefetch *prefetch; /* what the next command will ask for, if known */
    struct engine_tally *tally;
    struct arena arena;
};

/* What belongs to the running call: engine_enter begins it, view_accept keeps what it did, view_undo takes it
   back. */
struct view_call {
    uint64_t number;
    struct row_undo *undo;
    size_t nundo, undo_cap;
    size_t step_undo;     /* where the running step's entries of undo begin */
    size_t ntrash_before; /* the lengths of the batch's lists when it began */
    size_t nready_before;
    size_t nranges_before;
    struct db_row *dbs_before; /* the databases before its first change of them, when dbs_changed */
    uint32_t next_number_before;
    bool dbs_changed;
    bool steps_wrote; /* the steps before the running one changed something */
    bool wrote;       /* the running one did */
    bool flushed;     /* something that it wrote is in the running transaction */
    bool counts_lookups;
    bool look_only;
    int64_t wait;      /* the highest ticket of what it wrote or saw */
    struct error *err; /* where its failures are described */
    struct arena scratch;
};

/* A place in the running call that it can be brought back to (view_mark.c). */
struct view_mark {
    bool on;
    uint64_t number; /* the call's, before */
    size_t nundo, nitems, nranges, ntrash, nready;
    bool items_any, steps_wrote, flushed, dbs_changed;
    struct db_row *dbs; /* in the batch's arena, when they have changed since; else NULL */
    uint32_t next_number;
    /* What has come into the running transaction since: from here on the store has a mark as well. */
    bool stored;
    size_t items_flushed, trash_flushed;
    int64_t ids_end;
    struct marked_row *rows;
    size_t nrows, rows_cap;
};

/* A change of a key that came into the running transaction behind a mark, and the seq that it had before. */
struct marked_row {
    size_t change;
    int64_t seq;
};

struct view {
    struct store *store;
    struct cache *cache; /* rows of keys and items */
    struct memos memos;  /* what memory knows of collections */
    struct engine_stats *stats;
    struct rand rnd;
    struct form_limit form_limits[ROW_ZSET + 1];
    uint64_t expired_marks[VIEW_EXPIRED_MARKS]; /* of expired keys that were asked for, see view_get */
    int64_t table_tickets[256];                 /* of the last changes of tables' rows, by their ids */
    bool watch_ready;                           /* a client waits for keys to appear */
    struct view_dbs dbs;
    struct view_ids ids;
    struct view_watches watches;
    struct view_declared declared;
    struct view_mates mates;
    struct view_hidden hidden;
    struct view_keep keep;
    struct view_batch batch;
    struct view_call call;
    struct view_mark mark;
};

/* The running call has seen something that came with this ticket: its reply must not leave before that is
   durable. */
static inline void view_saw(struct view *v, int64_t ticket)
{
    if (ticket > v->call.wait)
        v->call.wait = ticket;
}

/* The row under a key whatever its state, from memory or the tables; never NULL on success. */
enum status view_row(struct view *v, uint32_t number, struct slice key, struct row **ret) MUST_CHECK;

/* A hash of which fields may have expired; when not, none has. */
static inline bool view_hash_due(const struct view *v, const struct row_ext *e)
{
    return e->first_expiry != 0 && e->first_expiry <= view_now(v);
}

/* How many fields of a hash have expired and are still in the tables (coll_expire.c). */
enum status view_expired_fields(struct view *v, const struct row_ext *e, int64_t *ret) MUST_CHECK;

/* Marks who watches a key that appears, or any key that is in one of two databases (view_watch.c). */
void view_touch(struct view *v, uint32_t number, struct slice key);
enum status view_touch_swapped(struct view *v, uint32_t a, uint32_t b) MUST_CHECK;

/* Those that were marked since the running call had this number are not. */
void view_untouch(struct view *v, uint64_t number);

/* The call that marked them is kept or undone; the batch has ended. */
void view_settle_call_watches(struct view *v, bool kept);
void view_settle_watches(struct view *v, bool committed);

/* Notes items that no key will refer to, for the sweeper. */
void view_discard(struct view *v, int64_t id, enum row_type type);

/* Deletes the key of a row, which has one. */
enum status view_bury(struct view *v, struct row *r) MUST_CHECK;

/* Writes a key's row again with a version of the caller's choosing: for changes that no client sees. */
enum status view_amend(struct view *v, struct row *old, const struct row_draft *d,
                       int64_t version) MUST_CHECK;

/* The rows that the batch will look at without locking them (hidden.c). */
size_t view_peeked(struct view *v, const struct key_ref **ret);

/* Of a shared store (view_shared.c): what was declared, for store_begin, which reads its rows into the view;
   when the transaction has begun, makes memory say what was read, and nothing else. */
struct store_declared view_declared(struct view *v);
void view_begin_shared(struct view *v);

/* The row of a mate that is in memory and refers to items, or NULL. */
const struct row *view_mate_row(const struct view *v, const struct mate *m);

/* Before counts are used: a brief batch has not read them. */
enum status view_read_dbs(struct view *v) MUST_CHECK;

/* Of a store that is not shared: reads what was declared and is not in memory, in one go and in order.
   A row that cannot be read fails the command that asks for it. */
enum status view_load_declared(struct view *v, struct error *err);
void view_shared_release(struct view *v);

/* Brings what the batch changed so far into the running transaction, so that the store's scans see it. */
enum status view_flush(struct view *v) MUST_CHECK;

/* Every database as this batch sees it: ret has room for all. */
void view_counts(const struct view *v, struct db_row *ret);

/* A step of the running call is over, and another may come. Costs memory for what the call changed, not for
   how often it did. */
void view_step(struct view *v);

/* The running call can be brought back to here, by view_undo_to_mark; there is one such place. Behind
   view_step. On failure (the store's) the batch cannot be committed. */
void view_mark(struct view *v);
void view_forget_mark(struct view *v);
enum status view_undo_to_mark(struct view *v) MUST_CHECK;

/* Before databases are changed. */
void view_mark_dbs(struct view *v);

/* For view_flush: before anything is brought into the running transaction, and of a change that is. */
enum status view_mark_stored(struct view *v) MUST_CHECK;
void view_mark_row(struct view *v, size_t change);

void view_undo_rows(struct view *v, size_t to); /* so many entries of the call's undo stay */

void view_accept(struct view *v);                /* the running call is kept */
void view_undo(struct view *v, enum status why); /* ... or undone; why: what failed, if anything did */

/* The batch is committed: changed rows become clean. Or it is not: everything is as before. */
void view_committed(struct view *v);
void view_rolled_back(struct view *v);

bool view_has_changes(const struct view *v);

#endif
