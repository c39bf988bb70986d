/* Runs batches: every command that is ready in this turn of the loop, in order, in one transaction.

     engine_begin   one clock value, one transaction (a write one when any command of the batch may write)
     per command:   engine_enter → handler → engine_leave (keeps or undoes what the handler did);
                    commands that are one step together (EXEC) are one call, with engine_step between them
     engine_commit  the changed rows go to the store in one commit, which has a ticket

   What was committed becomes durable later, in the order of tickets (with some stores: before engine_commit
   returns). Batches go on meanwhile and see it; but a reply that tells of it waits until its ticket is
   durable: engine_leave says for which one, engine_settled whether it is. So no client ever knows of
   something that a crash could take back. A crash leaves all of a batch or nothing.

   When a commit fails, nothing of it is left, nor of those behind it: engine_commit or engine_progress says
   so and the caller answers an error in the place of every reply that waits for one of them. */
#ifndef LARDER_ENGINE_ENGINE_H
#define LARDER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"
#include "engine/cache.h"
#include "engine/view.h"
#include "store/deferred.h"

struct engine;

struct engine_options {
    uint32_t databases;
    size_t cache_memory;
};

struct engine_stats {
    uint64_t batches, commits, commit_failures, commands, rows_written;
    uint64_t ahead_rows, ahead_slices; /* see engine_read_ahead */
    uint64_t keyspace_hits, keyspace_misses;
    uint64_t expired_on_read;  /* keys, each once */
    uint64_t expired_fields;   /* of hashes, removed by the sweeper */
    uint64_t expired_rows;     /* of tables, removed by the sweeper */
    uint64_t renumbered_items; /* of collections that had too many holes between their numbers */
    uint64_t expired_by_sweep, deleted_by_sweep, items_by_sweep;
    struct histogram sweep_us;  /* of the sweeper's steps that removed something */
    struct histogram commit_us; /* of the commits that went well, until they returned */
    uint64_t external_changes;
    uint64_t dirty; /* changes since the start, as INFO's rdb_changes_since_last_save counts them */
};

/* The engine uses the store but does not own it. */
enum status engine_new(struct store *store, const struct engine_options *o, struct engine **ret,
                       struct error *err) MUST_CHECK;
void engine_free(struct engine *e);

struct view *engine_view(struct engine *e);
const struct engine_stats *engine_get_stats(const struct engine *e);
void engine_reset_stats(struct engine *e);
struct cache *engine_cache(struct engine *e);
struct store *engine_store(struct engine *e);

/* What the commands of a batch have counted. It joins the statistics (engine_post_tally) when the batch has
   ended for good, and is dropped when its commands are run again. */
struct engine_tally {
    uint64_t commands, commit_failures, keyspace_hits, keyspace_misses, expired_on_read, dirty;
};
const struct engine_tally *engine_tally(const struct engine *e);
void engine_post_tally(struct engine *e);
void engine_drop_tally(struct engine *e);

/* Adds what a batch has counted to statistics. */
void engine_add_tally(struct engine_stats *to, const struct engine_tally *t);

/* What the engine has in memory, in bytes. */
struct engine_memory {
    size_t rows;        /* cached rows and their table */
    size_t collections; /* items of small collections, and rank blocks */
    size_t changes;     /* what waits for the commit */
    size_t store;       /* what is committed and not in the tables yet */
};
struct engine_memory engine_memory(const struct engine *e);

/* How many keys a database has as of the last commit, those that expired and are not swept yet included, and
   how many of them have an expiry. False: that is not known, they have to be counted. */
bool engine_counts(const struct engine *e, uint32_t db, int64_t *ret_keys, int64_t *ret_expires);

/* What memory remembers is void from the next batch on: that sees the tables as they are then, and they may
   be older than those before. */
void engine_forget(struct engine *e);

/* A failed begin for writing falls back to reading: *ret_write_err says why no command of this batch may
   write. ST_OK otherwise. Non-OK return: not even reading works. */
enum status engine_begin(struct engine *e, bool write, struct error *ret_write_err,
                         struct error *err) MUST_CHECK;

/* Where the view describes a failure of the running command. */
struct error *engine_error(struct engine *e);

/* Around each command. keep: the handler succeeded. If not, all that was done since engine_enter is
   undone; a reply that only says what failed waits for nothing. */
void engine_enter(struct engine *e);

/* Behind engine_enter, for a command that looks at no row: what it does to its session is done, and its reply
   says so, also when the batch is one that fails. */
void engine_ignore_batch(struct engine *e);

struct engine_trace {
    bool wrote;   /* the command changed rows */
    int64_t wait; /* the ticket that must be durable before its reply may leave; 0: none */
};
struct engine_trace engine_leave(struct engine *e, bool keep);

/* Of a call that consists of several commands: one of them is over. What it borrowed is given back; what it
   did is kept, or undone, with the others. */
void engine_step(struct engine *e);

/* Of such a call: it can be brought back to here by engine_undo_to_mark, which takes back what it has done
   since, also what is in the running transaction by now; what other commands of the call and of the batch
   have done stays. There is one mark: another one, engine_forget_mark and engine_leave end it. Between steps;
   what was borrowed since is given back. On failure (the store's, or a conflict) the call has to fail.

   Costs nothing until it is used, but for a call that has its changes brought into the transaction because
   it scans: that is a savepoint of the store. */
void engine_mark(struct engine *e);
void engine_forget_mark(struct engine *e);
bool engine_is_marked(const struct engine *e);
enum status engine_undo_to_mark(struct engine *e) MUST_CHECK;

/* The running batch conflicts with another writer (ST_CONFLICT): it cannot be committed. Its commands'
   replies are void, and the commands may be run again in another batch. */
bool engine_conflicted(const struct engine *e);

/* Ends the batch. On failure everything since engine_begin is undone: replies that wait for *ret_ticket get
   the error. Otherwise it is the ticket of what the batch changed, if it changed anything. May be NULL. */
enum status engine_commit(struct engine *e, int64_t *ret_ticket, struct error *err) MUST_CHECK;

/* Ends the batch, and everything since engine_begin is undone. */
void engine_abandon(struct engine *e);

/* Between batches: learns how far the store has got. Anything but ST_OK: the commits behind engine_durable
   have failed, after they had been accepted; replies that wait for one of them get the error. */
enum status engine_progress(struct engine *e, struct error *err) MUST_CHECK;

/* In the midst of a transaction: notes what has become durable since (engine_settled), and nothing else. */
void engine_peek(struct engine *e);

/* What has a ticket up to this is durable. */
int64_t engine_durable(const struct engine *e);

/* Whether a reply that waits for this ticket may leave: it is durable, or belongs to a batch that changed
   nothing in the end. */
bool engine_settled(const struct engine *e, int64_t ticket);

/* Whether commands that write should wait, because the store does not keep up: those of clients that write
   much, and those of all. As of the last engine_progress. */
bool engine_full(const struct engine *e);
bool engine_stops(const struct engine *e);

/* Whether the last attempt to write failed, and none has worked since. */
bool engine_cannot_write(const struct engine *e);

/* fn is called, from another thread, whenever engine_progress may have something new to tell. */
void engine_on_progress(struct engine *e, store_wake_fn *fn, void *arg);

/* Until the next call: whoever commits has nothing to do but wait for it (store_alone). */
void engine_alone(struct engine *e, bool alone);

/* The size of what waits for the commit: a caller ends a batch early when it grows beyond reason. */
size_t engine_pending_bytes(const struct engine *e);

/* Expired keys that the sweeper has yet to remove: how many there are, counted up to max, and when the first
   of them expired (milliseconds; 0: there is none). */
struct engine_backlog {
    uint32_t keys;
    int64_t since;
};
enum status engine_backlog(struct engine *e, uint32_t max, struct engine_backlog *ret,
                           struct error *err) MUST_CHECK;

/* Between batches: live tables that may have expired rows. Calls fn for those among the up to max tables with
   the lowest ids above *after, and moves it; 0 at the end. See store_due_rows for what it costs; when there
   are any, all tables of all databases are listed once (without their schemas) to learn their names. fn must
   not use the engine. */
typedef enum status engine_table_fn(void *arg, uint32_t db, struct slice key);
enum status engine_due_tables(struct engine *e, int64_t *after, size_t max, engine_table_fn *fn, void *arg,
                              struct error *err) MUST_CHECK;

/* Rows of tables that a step of the sweeper has removed since start_us (monotonic). */
void engine_swept_rows(struct engine *e, uint64_t rows, int64_t start_us);

/* One bounded step of the sweeper, between batches: removes up to max_rows dead rows. */
enum status engine_sweep(struct engine *e, uint32_t max_rows, bool *ret_more, uint64_t *ret_rows,
                         struct error *err) MUST_CHECK;

/* Another one: gives up to max items of a collection with many holes between its numbers lower ones (see
   coll_numbers.c), if a command has used one. *ret_more: there is more to do. */
enum status engine_renumber(struct engine *e, uint32_t max, bool *ret_more, uint64_t *ret_moved,
                            struct error *err) MUST_CHECK;

/* A transaction of the server's own, between batches, that no reply waits for: fn reads and writes through
   the view as one call. What it did is kept if it returns ST_OK, else undone. Keys that were declared before
   (view_declare) are locked where tables are shared. lazy: its commit need not be durable before the next one
   that has to be, since it would only be done again. */
typedef enum status engine_chore_fn(void *arg, struct view *v);
enum status engine_chore(struct engine *e, bool lazy, engine_chore_fn *fn, void *arg,
                         struct error *err) MUST_CHECK;

/* Between batches, where reads are near: a command that has not come whole will ask for these rows, so that
   those which memory lacks are read now, if it has room for all of them (engine_ahead.c). Only a hint. */
struct engine_ahead {
    uint32_t db;
    struct slice key; /* whose items the names are of; p is NULL: they are keys themselves */
    const struct slice *names;
    size_t n;
    size_t all;  /* how many the command will name */
    bool writes; /* it will write them */
};
void engine_read_ahead(struct engine *e, const struct engine_ahead *a);

/* The last engine_sync is next, and may leave what is durable elsewhere out of the tables: see store_ending.
 */
void engine_ending(struct engine *e, int64_t ms);

/* Makes all that was committed durable, whatever the durability (SAVE, shutdown). */
enum status engine_sync(struct engine *e, struct error *err) MUST_CHECK;

#endif
