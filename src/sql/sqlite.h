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
enum status sqlite_info(struct sqlite *c, struct sqlite_info *ret, struct error *err) MUST_CHECK;

/* One small step of giving unused space back to the system, when there is much of it. */
enum status sqlite_reclaim(struct sqlite *c, uint32_t max_pages, bool *ret_more,
                           struct error *err) MUST_CHECK;

#endif
