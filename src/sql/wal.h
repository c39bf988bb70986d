/* Looks after the write-ahead log of one SQLite file from the background: copies it into the database before
   it grows long (checkpoints), and syncs it once a second when the owner's commits do not.

   An owner that writes in bulk (wal_by_owner) checkpoints itself, whenever it is through with that.

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

/* From now on the owner checkpoints (wal_checkpoint), and nobody else. Before its first commit behind that.
 */
void wal_by_owner(struct wal *w);

/* Between the owner's transactions: syncs the log, copies all of it that readers allow into the database,
   syncs that, and has the log start over unless somebody reads in it. SQLite's code; SQLITE_OK also when
   something was left. */
int wal_checkpoint(struct wal *w, sqlite3 *owner, int busy_ms);

/* How many pages the log has, as the owner's commits have left it. Owner's thread. */
int wal_pages(const struct wal *w);

/* Whether the background syncs the log once a second. */
void wal_set_syncing(struct wal *w, bool on);

/* Syncs the log now. With wal_by_owner a failure is for good: the system may have dropped what commits wrote
   that had not waited for it, and says of the next sync that all is well. The log is neither healthy nor
   without doubt any more, until a start has read it from the disk. */
enum status wal_sync(struct wal *w, struct error *err) MUST_CHECK;

bool wal_is_doubtful(const struct wal *w);

/* ST_OK, or why what was committed may not become durable: the last sync failed, or the log is no longer the
   file under its name. */
enum status wal_healthy(struct wal *w, struct error *err) MUST_CHECK;

#endif
