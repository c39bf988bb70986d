/* Runs of a server on a database that it has for itself: the numbers of its commits, which clients carry in
   tokens, and which of them are still there behind a restart.

   A number is a commit's ticket, counted on from run to run, and belongs to its run. larder_meta has the
   latest runs (`runs`, written as a history of branches, store/history.h: each with the number up to which it
   has what the run before it has told), and how far the last run is (`reached`):

     all      every commit that a reply has told of is in the database: under `always`, where no reply leaves
              before, a commit writes nothing here
     B@T      where a log beside the file has every group (redo/redo.h): number B was ticket T, so that what
              the tables and the log have tells how far. A copy without the log tells of itself alone
     N        that far: where replies leave before, each group says so in its own transaction, which it shares
              with many commits. So a group and its N are there, or neither is, after whatever crash

   The next run begins at N, or where the log has ended, or, behind `all`, so far on that the last one has not
   come there. A position is lost when a later run began below it, or its run is not in the list: the file is
   a copy from before, say. A copy that was made while the server ran, and brought back, has the list of then
   and its `all`: tokens that were given between the copy and the end of that same run count as kept there.
   Behind an end that was no crash N is exact. */
#ifndef LARDER_JOURNAL_RUN_H
#define LARDER_JOURNAL_RUN_H

#include "store/history.h"
#include "store/store.h"

struct journal_run {
    uint64_t database; /* larder_meta's database_id; 0: there are no positions */
    int64_t start;     /* the ticket before its first ... */
    uint64_t base;     /* ... and that one's number */
    struct history history;
};

static inline uint64_t run_number(const struct journal_run *r, int64_t ticket)
{
    return r->base + (uint64_t)(ticket - r->start);
}

/* In a transaction of its own: a new run begins behind this ticket. logged: every group of it goes into a
   log, and the ticket is the last that the tables and the log have. Where nothing can be written now (the
   disk is full, the file read-only) there are no positions, which is no failure. */
enum status run_begin(struct store *writer, enum durability d, bool logged, int64_t ticket,
                      struct journal_run *ret, struct error *err) MUST_CHECK;

/* Within the running transaction: everything up to this ticket is in the database with it. */
enum status run_record(struct store *writer, const struct journal_run *r, int64_t ticket,
                       struct error *err) MUST_CHECK;

/* The same: whatever will be told of is. */
enum status run_all(struct store *writer, struct error *err) MUST_CHECK;

/* At the end: the last ticket that was written. What cannot be said is as after a crash. */
void run_end(struct store *writer, const struct journal_run *r, int64_t ticket);

#endif
