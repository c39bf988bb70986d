/* An SQLite database: statements, transactions, and what its store needs besides (noticing other writers,
   giving space back, making commits durable). The texts of statements are the caller's. A connection and its
   statements belong to one thread. */
#ifndef LARDER_SQL_SQLITE_H
#define LARDER_SQL_SQLITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"
#include "sql/pace.h"

/* When a commit is durable: before it returns, at most a second or so later, or whenever the system likes. A
   crash never leaves a damaged database, whichever it is. */
enum sqlite_sync { SQL_SYNC_ALWAYS, SQL_SYNC_SECOND, SQL_SYNC_NEVER };

enum sqlite_txn {
    SQL_READ,
    SQL_WRITE,     /* takes the write lock at once */
    SQL_WRITE_LAZY /* so too, but its commit need not be durable before the next one of another kind */
};

struct sqlite_options {
    const char *path;
    enum sqlite_sync sync;
    uint64_t cache_bytes;
    uint32_t busy_ms; /* how long to wait for another process's lock, until sqlite_stop_waiting */
    bool read_only;   /* takes no ownership, creates nothing */
};

struct sqlite_info {
    uint64_t bytes, free_bytes, wal_bytes;
    const struct histogram *sync_us; /* of the log's syncs, as long as the connection lives */
    char engine[64];                 /* "sqlite 3.40.1" */
};

/* Which file a database is. */
struct sqlite_file {
    const char *path;  /* from the root, links resolved; as long as the connection lives */
    char identity[48]; /* of the file itself: a copy, or one that took its place, has another */
    int64_t cookie;    /* of its schema: a backup that was written over the file has another */
};

struct sqlite;
struct sqlite_stmt;

/* The path in a URL (sqlite:PATH), which may be a bare path. ST_INVALID: it has another scheme. */
enum status sqlite_path(const char *url, const char **ret, struct error *err) MUST_CHECK;

/* Opens the database, creating it when there is none, and takes it for this process alone: ST_LOCKED when
   another process has it. */
enum status sqlite_open(const struct sqlite_options *o, struct sqlite **ret, struct error *err) MUST_CHECK;

/* Makes what was committed durable. Every statement has been finalized. c may be NULL. */
void sqlite_close(struct sqlite *c);

/* ---- statements ---- */

/* Runs statements without parameters or results. */
enum status sqlite_exec(struct sqlite *c, const char *text, struct error *err) MUST_CHECK;
enum status sqlite_prepare(struct sqlite *c, const char *text, struct sqlite_stmt **ret,
                           struct error *err) MUST_CHECK;
void sqlite_finalize(struct sqlite_stmt *s); /* s may be NULL */

/* Parameters count from 1, columns from 0. Bound bytes are borrowed until the next reset; a failed bind is
   reported by sqlite_step. */
void sqlite_bind_i64(struct sqlite_stmt *s, int i, int64_t v);
void sqlite_bind_double(struct sqlite_stmt *s, int i, double v);
void sqlite_bind_blob(struct sqlite_stmt *s, int i, struct slice v);
void sqlite_bind_text(struct sqlite_stmt *s, int i, const char *v);
enum status sqlite_step(struct sqlite_stmt *s, bool *ret_row, struct error *err) MUST_CHECK;
int64_t sqlite_column_i64(struct sqlite_stmt *s, int i);
double sqlite_column_double(struct sqlite_stmt *s, int i);
struct slice sqlite_column_blob(struct sqlite_stmt *s, int i); /* until the next step or reset; text, too */
void sqlite_reset(struct sqlite_stmt *s);

/* Steps a statement that returns no rows to its end and resets it. */
enum status sqlite_run(struct sqlite_stmt *s, struct error *err) MUST_CHECK;

int64_t sqlite_last_id(struct sqlite *c); /* the row number that the last insert gave */
int64_t sqlite_changed_rows(struct sqlite *c);

/* ---- transactions ---- */

/* *ret_others: another process has committed since this was last asked. */
enum status sqlite_begin(struct sqlite *c, enum sqlite_txn kind, bool *ret_others,
                         struct error *err) MUST_CHECK;

/* Between transactions, without a lock or a system call: whether nobody, this process included, has committed
   anything since the last transaction of this connection that read (sqlite_begin with ret_others) began.
   False also when that is not known. Relies on the beginning of the log's index, which SQLite itself compares
   at the beginning of every transaction; where that cannot be read it is always false. */
bool sqlite_same(struct sqlite *c);

/* Any thread, of a connection that writes: whether others than this connection have committed since that was
   last asked with the same *seen (at first 0). False: it is not known. */
bool sqlite_others(struct sqlite *c, uint64_t *seen, bool *ret_others);

/* After a failure there is no transaction any more and nothing of it remains, but for ST_UNKNOWN: then it is
   gone from here, and a crash before the next commit may bring it back. */
enum status sqlite_commit(struct sqlite *c, struct error *err) MUST_CHECK;
void sqlite_rollback(struct sqlite *c); /* none running: nothing happens */
bool sqlite_in_transaction(const struct sqlite *c);

/* ---- between transactions ---- */

/* From now on a lock that another process holds is ST_BUSY (almost) at once. */
void sqlite_stop_waiting(struct sqlite *c);
enum status sqlite_set_sync(struct sqlite *c, enum sqlite_sync sync, struct error *err) MUST_CHECK;
enum status sqlite_sync(struct sqlite *c, struct error *err) MUST_CHECK;
/* For an owner that writes in bulk. From now on what is written goes to the disk evenly, and the write-ahead
   log is copied into the database by sqlite_checkpoint alone. */
enum status sqlite_write_in_bulk(struct sqlite *c, struct meanwhile m, struct error *err) MUST_CHECK;

/* Makes all that was committed durable, in the database as far as other processes that read an old state
   allow; if all of it, the log starts over. sqlite_log_bytes: of the log, up to the last commit. */
enum status sqlite_checkpoint(struct sqlite *c, struct error *err) MUST_CHECK;
uint64_t sqlite_log_bytes(const struct sqlite *c);

enum status sqlite_info(struct sqlite *c, struct sqlite_info *ret, struct error *err) MUST_CHECK;

/* Copies what the running transaction sees into another file, which is there and empty. Nobody who writes
   meanwhile is disturbed, and nobody's writing disturbs it. fn is told how many pages of how many are done.
   The copy is not synced. */
typedef void sqlite_copy_fn(void *arg, int64_t done, int64_t all);
enum status sqlite_copy(struct sqlite *c, const char *to, sqlite_copy_fn *fn, void *arg,
                        struct error *err) MUST_CHECK;

/* Within a transaction, too. */
enum status sqlite_file(struct sqlite *c, struct sqlite_file *ret, struct error *err) MUST_CHECK;

/* Within a transaction that writes: gives it a cookie that no copy has. SQLite's copies count theirs up from
   what the file was that they are written to, which may come to the same number. */
enum status sqlite_new_cookie(struct sqlite *c, struct error *err) MUST_CHECK;

/* One small step of giving unused space back to the system, when there is much of it. */
enum status sqlite_reclaim(struct sqlite *c, uint32_t max_pages, bool *ret_more,
                           struct error *err) MUST_CHECK;

#endif
