/* The log beside a file (redo/redo.h), from the start of a server to its end.

   A start, in this order, each step durable before the next:
     1. rows of larder_journal are in the tables (replay.h): earlier versions, or one without a log, left them
     2. the log is read behind larder_meta.applied, into a memtable, which becomes the frozen one of the new
        store: what it holds is in the log still, so that serving and writing begin at once
     3. a new segment, of a new id, which begins an epoch behind the last record
     4. larder_meta says its id, and that it is open
   A crash between 3 and 4 leaves a segment without records that names the id before it: the next start knows
   the log by that one. Between 4 and the first record there is nothing to lose.

   An end: everything is in the tables and synced; larder_meta says that the log is not open, synced; its
   files are removed. A crash in between leaves a log that holds nothing. When applying takes too long the
   log stays, and the next start goes on with it. */
#ifndef LARDER_JOURNAL_REDO_START_H
#define LARDER_JOURNAL_REDO_START_H

#include "journal/replay.h"
#include "redo/redo.h"

/* Behind replay_or_keep, whose answer past is: adds what the log holds, and the log to write to. Where there
   is no room to begin one, past->why says so, there is none, and past->mem has what the tables lack, if
   anything: that is no failure. */
enum status redo_start(struct store *writer, const char *url, uint64_t log_max, struct journal_past *past,
                       struct error *err) MUST_CHECK;

/* Without a log from here on: brings what it holds into the tables, and removes it. For a server with
   journal-max 0. */
enum status redo_apply_all(struct store *writer, const char *url, struct journal_past *past,
                           struct error *err) MUST_CHECK;

/* The end. everything: the tables have all that the log has ever had. */
enum status redo_end(struct store *writer, struct redo *r, bool everything, struct error *err) MUST_CHECK;

#endif
