/* Looks after the write-ahead log of one SQLite file from the background: copies it into the database before
   it grows long (checkpoints), and syncs it once a second when the owner's commits do not.

   The owner is the thread that writes. It tells of every commit, and now and then is told to checkpoint for
   itself: a log that is written without pause is never copied to its last page from the side, so it would
   never start over and would grow for ever. */
#ifndef LARDER_SQL_WAL_H
#define LARDER_SQL_WAL_H

#include <stdbool.h>
#include <sqlite3.h>

#include "base/histogram.h"
#include "base/status.h"

struct wal;

/* path: the database's. The log exists already. sync_us gets the times of the syncs that are made here. */
enum status wal_start(const char *path, const char *wal_path, int64_t page_size, struct histogram *sync_us,
                      struct wal **ret, struct error *err) MUST_CHECK;
void wal_stop(struct wal *w);

/* Whether the file has all that the owner's last commit left in it. False: another process has cut it short,
   or has copied all of it and had it start over, which the owner's next commit finds out. Until then nothing
   is copied from it. Any thread. */
bool wal_is_complete(const struct wal *w);

/* The owner has committed; the log now has so many pages. */
void wal_committed(struct wal *w, int pages);

/* Between the owner's transactions: copies the whole log when it has become too long. busy_ms: how long the
   owner waits for locks otherwise. */
void wal_keep_short(struct wal *w, sqlite3 *owner, int busy_ms);

/* Whether the background syncs the log once a second. */
void wal_set_syncing(struct wal *w, bool on);

/* Syncs the log now. */
enum status wal_sync(struct wal *w, struct error *err) MUST_CHECK;

/* ST_OK, or why what was committed may not become durable: the last sync failed, or the log is no longer the
   file under its name. */
enum status wal_healthy(struct wal *w, struct error *err) MUST_CHECK;

#endif
