/* A SQLite VFS that joins the writes to the write-ahead log.

   SQLite writes a frame of the log in two pieces, its header and its page, and a commit of hundreds of pages
   in twice as many system calls. Here they are collected and written some thirty frames at a time, the last
   ones together with the commit frame. Each connection has a VFS of its own, which is the default one but for
   what happens to the log; what is in the file when a commit returns, or when another connection can write,
   is the same as without. */
#ifndef LARDER_SQL_WALFILE_H
#define LARDER_SQL_WALFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "sql/pace.h"

struct walfile;

/* For one connection, which is opened with its name. sync_us gets the times of the log's syncs: a commit's
   time is that of its pages and of its sync; which of the two grows tells a busy processor from a slow
   disk. */
struct walfile *walfile_new(struct histogram *sync_us);
const char *walfile_name(const struct walfile *w);

/* Whether another process has cut the log short while it was in use: from then on nothing can be written to
   it. What is missing is gone, and what would be written behind the gap would be gone with the next start. */
bool walfile_is_cut(const struct walfile *w);

/* Whether a sync of the log has failed that commits before it had not waited for (walfile_spread): what is in
   the file may not be on the disk, whatever later syncs say. */
bool walfile_is_doubtful(const struct walfile *w);

/* From now on what is written to the log and, by checkpoints, to the database goes to the disk evenly
   (pace.h). The descriptors are of those files, and stay the caller's. */
void walfile_spread(struct walfile *w, int log_fd, int db_fd, struct meanwhile m);

/* Whether others have committed: wal_turns_others of the connection. */
bool walfile_others(struct walfile *w, uint64_t *seen, bool *ret_others);

/* After the connection is closed. NULL is allowed. */
void walfile_free(struct walfile *w);

#endif
