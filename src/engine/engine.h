/* Runs batches: every command that is ready in this turn of the loop, in order, in one transaction.

     engine_begin   one clock value, one transaction (a write one when any command of the batch may write)
     per command:   engine_enter → handler → engine_leave (keeps or undoes what the handler did)
     engine_commit  the changed rows go to the tables, one commit, one fsync; only then may replies leave

   A crash before the commit returns leaves nothing of the batch, after it all of it; no reply has left
   before. A failed commit leaves the view as it was before the batch: the caller answers an error to every
   command that wrote or saw something written in this batch (engine_leave tells which). */
#ifndef LARDER_ENGINE_ENGINE_H
#define LARDER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"
#include "engine/cache.h"
#include "engine/view.h"
#include "store/store.h"

struct engine;

struct engine_options {
    uint32_t databases;
    size_t cache_memory;
};

struct engine_stats {
    uint64_t batches, commits, commit_failures, commands, rows_written;
    uint64_t keyspace_hits, keyspace_misses;
    uint64_t expired_on_read;
    uint64_t expired_fields; /* of hashes, removed by the sweeper */
    uint64_t expired_by_sweep, deleted_by_sweep, items_by_sweep;
    struct histogram sweep_us;  /* of the sweeper's steps that removed something */
    struct histogram commit_us; /* of the commits that went well */
    uint64_t commit_us_max;
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

/* What the engine has in memory, in bytes. */
struct engine_memory {
    size_t rows;        /* cached rows and their table */
    size_t collections; /* items of collections that are kept whole */
    size_t changes;     /* what waits for the commit */
};
struct engine_memory engine_memory(const struct engine *e);

/* A failed begin for writing falls back to reading: *ret_write_err says why no command of this batch may
   write. ST_OK otherwise. Non-OK return: not even reading works. */
enum status engine_begin(struct engine *e, bool write, struct error *ret_write_err,
                         struct error *err) MUST_CHECK;

/* Where the view describes a failure of the running command. */
struct error *engine_error(struct engine *e);

/* Around each command. keep: the handler succeeded. */
void engine_enter(struct engine *e);
struct engine_trace {
    bool wrote;   /* the command changed rows */
    bool depends; /* it wrote, or read a row that this batch changed: its reply is only true after the commit
                   */
};
struct engine_trace engine_leave(struct engine *e, bool keep);

/* Ends the batch. On failure everything since engine_begin is undone. */
enum status engine_commit(struct engine *e, struct error *err) MUST_CHECK;

/* The size of what waits for the commit: a caller ends a batch early when it grows beyond reason. */
size_t engine_pending_bytes(const struct engine *e);

/* One bounded step of the sweeper, between batches: removes up to max_rows dead rows. */
enum status engine_sweep(struct engine *e, uint32_t max_rows, bool *ret_more, uint64_t *ret_rows,
                         struct error *err) MUST_CHECK;

/* Makes all that was committed durable, whatever the durability (SAVE, shutdown). */
enum status engine_sync(struct engine *e, struct error *err) MUST_CHECK;

#endif
