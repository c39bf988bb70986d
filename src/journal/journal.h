/* clang-format off */
/* A store with a journal in front of its tables.

   Two sessions of one database: the owner (the worker's loop) reads through one, the store's thread writes
   through the other. owner.h lists the files of the one side, writer.h those of the other, journal_internal.h
   has the state that they share and its locking.

     owner                                               thread
     store_begin     the tables are still ours
     store_apply     rows into the active memtable
     store_commit    entries into the next group,   ->   What arrived while the last group was written is the
                     a ticket; goes on                   next group: ONE row of the journal, one commit, one
                                                         sync; with it, a slice of the frozen memtable goes
     store_progress  tickets that are durable       <-   into the tables.

   The life of a change set. It moves down; every step under the lock is one in both threads' eyes.

     state      who moves it here                       what makes it so             what a crash leaves of it
     ---------  --------------------------------------  ---------------------------  ---------------------------
     open       owner, owner_apply                      its rows are in the active   nothing
                                                        memtable
     committed  owner, owner_commit (lock)              it has a ticket, and its     nothing
                                                        entries are in a group
     taken      thread, writer_write_next (lock)        the group takes no more      all of its group, or nothing
     durable    thread, written (lock)                  the commit of the journal's  all: a replay brings it in
                                                        row: synced under `always`,
                                                        else within 0.1 s, unsynced
     settled    owner, owner_advance (lock)             it is undone no more;        all
                                                        its replies leave
     frozen     owner, freeze (lock)                    its memtable takes no more   all
     sliced     thread, writer_slice_along or           commits no reply waits for   all: a replay brings it in
                writer_apply_idly                                                    again, which changes nothing
     applied    thread, all_in (lock)                   larder_meta.applied, with    all, by the tables
                                                        the last slice; on a server
                                                        that commit is waited for
     retired    owner, retire (lock)                    its memtable is gone         all, by the tables
     dropped    thread, writer_drop_rows                its row of the journal is    all; the row may come back,
                                                        gone; no reply waits for it  below `applied`: not read

   Other ways:

     direct     Few rows, and nothing waits for the tables: its group goes straight into them (goes_direct), so
                that under light load the tables are always current. From taken to applied with one commit;
                owner_advance takes its rows out of the active memtable.
     outsized   It is too large for the journal (half a gigabyte of value): it is in no group. The active
                memtable is frozen with it and all of that applied in one transaction
                (writer_apply_outsized), which makes it durable and applied at once.
     undone     Its group could not be written, and durability is `always`: the thread says `failed` (lock),
                and owner_progress undoes it and all behind it in the memtables, newest first. Otherwise no
                reply waits for it: the thread tries again until it works, and transactions that write are
                refused.
     inherited  A start without room for what the journal holds (SQLite): all of it is in a memtable already,
                which is the frozen one of the new store. It is read like any other, and the thread tries to
                apply it until it works. Transactions that write are refused until then.

   Slices that were applied are applied again by a replay, which changes nothing: entries are states, not
   differences, and come in order. The rows of a collection that was deleted, or of a flushed database, may be
   applied once more; its entry in the trash is, too.

   On a database server the owner reads the tables only when memory does not know, and a lost connection is
   waited for, up to away_ms. The thread writes the group again that it was writing when the connection was
   lost: whether its commit took place is not known, but the next one removes the row of the journal that it
   may have left (store_journal_forget). So the outcome is known in the end. Direct groups tell larder_meta
   how far the tables are, so that no seq comes twice.

   A database server may crash while we live, and take commits back that were not waited for. Its log is one,
   in order: a commit that is waited for makes all before it durable, and what a crash leaves is everything up
   to one commit. So the frozen memtable is let go, and its rows of the journal with it, only when the commit
   that says `applied` was waited for: by STORE_WRITE under `always`, by store_sync otherwise (apply_some,
   finish_due). A group is kept until then, or, when it went straight into the tables, until any commit behind
   it was waited for (written, writer_sync_idly). reconcile.c compares the database with all that after each
   lost connection, before anything else is read or written. A file crashes only with us: nothing is kept for
   it, and rows of the journal that come back are below an `applied` that comes back with them.

   Sweeping: rows of keys that expired are removed by the owner, as a command would (they may be in the
   memtables); what nothing refers to any more (deleted rows, trash) by the thread. */
/* clang-format on */
#ifndef LARDER_JOURNAL_JOURNAL_H
#define LARDER_JOURNAL_JOURNAL_H

#include "store/store.h"

struct journal_options {
    uint64_t max_bytes; /* of changes that are not in the tables yet; 0: every commit goes into the tables */
    uint32_t lag_ms;    /* how long the tables may be behind */
    uint32_t few_rows;  /* when nothing waits, up to so many go straight into the tables */
    uint32_t lock_ms;   /* how long commits wait for a lock that another process holds ... */
    uint32_t away_ms;   /* ... and for a database server that cannot be reached */
};

/* Opens the database as store_open does, with a journal and a thread that writes: commits become durable
   later. What an earlier process left in the journal is brought into the tables first. */
enum status journal_store_open(const struct store_options *o, const struct journal_options *j,
                               struct store **ret, struct error *err) MUST_CHECK;

/* For store_options.beside of a further session: the one that writes. */
struct store *journal_store_writer(struct store *s);

/* For store_options.replay. */
enum status journal_replay(struct store *s, const char *url, struct error *err) MUST_CHECK;

#endif
