/* clang-format off */
/* A store with a journal in front of its tables.

   Two sessions of one database: the owner (the worker's loop) reads through one, the store's thread writes
   through the other. owner.h lists the files of the one side, writer.h those of the other, journal_internal.h
   has the state that they share and its locking.

   The journal is a log in files of its own (redo/redo.h) where the database is a file, and journal-max is not 0:
   a third thread, the logger, writes it and uses nothing else. On a database server it is rows of larder_journal,
   which the thread writes, too; there a third thread with a session of its own, the applier (applier.c), brings
   memtables into the tables.

     owner                              logger (without one: the thread)        thread (on a server: applier)
     store_begin     the tables are
                     still ours
     store_apply     rows into the
                     active memtable
     store_commit    entries into the   What arrived while the last group was
                     next group, a      written is the next group: ONE record
                     ticket; goes on    of the log, one write, one sync (ONE
                                        row of larder_journal, one commit).
     store_progress  tickets that are                                           The frozen memtable goes into
                     durable; freezes                                           the tables: ONE transaction.

   The life of a change set. It moves down; every step under the lock is one in all threads' eyes. "writer" is
   the logger, or, where there is no log, the thread.

     state      who moves it here                       what makes it so             what a crash leaves of it
     ---------  --------------------------------------  ---------------------------  ---------------------------
     open       owner, owner_apply                      its rows are in the active   nothing
                                                        memtable
     committed  owner, owner_commit (lock)              it has a ticket, and its     nothing
                                                        entries are in a group
     taken      writer, writer_take_group (lock)        the group takes no more      all of its group, or nothing
     durable    writer, writer_written (lock)           the log's record, or the     all: the next start brings
                                                        commit of the journal's      it in
                                                        row: synced under `always`,
                                                        else within 0.1 s, unsynced
     synced     logger, synced (lock)                   fdatasync of the log:        all
                                                        `always` at once, else each
                                                        second, or before a pass
     settled    owner, owner_advance (lock)             it is undone no more;        all
                                                        its replies leave
     frozen     owner, freeze (lock)                    its memtable takes no more   all
     applied    thread, writer_all_in (lock)            the commit of the pass,      all, by the tables, or by
                                                        which says it in             the journal
                                                        larder_meta; on a server it
                                                        is waited for
     retired    owner, retire (lock)                    its memtable is gone         the same
     dropped    thread, redo_applied or                 log: the tables' own log is  all; a record or row may come
                writer_drop_rows                        synced, the segment used     back, below `applied`: not
                                                        again. Rows: gone, by a      read
                                                        commit no reply waits for

   With a log the tables may have only what the log has for good: a pass begins when all of the frozen memtable is
   synced (writer.c, is_safe), and asks the logger for that. Otherwise a crash of the machine could leave tables
   with a change set whose predecessors are nowhere.

   Other ways:

     direct     Without a log, few rows, and nothing waits for the tables: its group goes straight into them
                (goes_direct), so that under light load the tables are always current. From taken to applied with
                one commit; owner_advance takes its rows out of the active memtable. Where there is a log every
                group goes through it.
     outsized   It is too large for the journal (half a gigabyte of value): it is in no group. The active
                memtable is frozen with it and all of that applied in one transaction
                (writer_apply_outsized), synced, which makes it durable and applied at once. Groups before it
                that were not taken yet are dropped, because their rows are in the same transaction; the one
                that is on its way into the log is waited for; those behind it wait in the queue. Then the log
                gets a record that says so. A crash before the commit leaves what the log has, one behind it
                tables that are ahead of the log.
     undone     Its group could not be written, and durability is `always`: the writer says `failed` (lock),
                and owner_progress undoes it and all behind it in the memtables, newest first, when no group is
                on its way any more. A pass has begun only with what is synced: nothing that it reads is undone.
                Otherwise no reply waits for it: the writer tries again until it works, and transactions that
                write are refused. What the log has not synced when a sync fails it appends again (logger.c).
     inherited  A start without room for what the journal holds (SQLite): all of it is in a memtable already,
                which is the frozen one of the new store. It is read like any other, and the thread tries to
                apply it until it works. Transactions that write are refused until then.

   A pass whose commit is not known of is made again, which changes nothing: entries are states, not
   differences, and come in order. The rows of a collection that was deleted, or of a flushed database, may be
   applied once more; its entry in the trash is, too.

   A range delete is not a state: it removes what was there before it. A memtable's ranges go into the tables
   before its rows, and in one transaction with them and with `applied` (or, of a direct group, with the
   number that says it is there). So the tables never have rows that are newer than a range which comes again:
   either they have neither, or a start, a pass that is made again and reconcile.c know that they have both.

   On a database server the owner reads the tables only when memory does not know, and a lost connection is
   waited for, up to away_ms. The thread writes the group again that it was writing when the connection was
   lost: whether its commit took place is not known, but the next one removes the row of the journal that it
   may have left (store_journal_forget). So the outcome is known in the end. Direct groups tell larder_meta
   how far the tables are, so that no seq comes twice.

   A database server may crash while we live, and take commits back that were not waited for. Its log is one,
   in order: a commit that is waited for makes all before it durable, and what a crash leaves is everything up
   to one commit. So the frozen memtable is let go, and its rows of the journal with it, only when the commit
   that says `applied` was waited for, whatever the durability is (applier.c). A group is kept until then, or, when it went straight into the tables, until any commit behind
   it was waited for (written, writer_sync_idly). reconcile.c compares the database with all that after each
   lost connection, before anything else is read or written. A file crashes only with us: nothing is kept for
   it, and rows of the journal that come back are below an `applied` that comes back with them.

   Sweeping: rows of keys that expired are removed by the owner, as a command would (they may be in the
   memtables); what nothing refers to any more (deleted rows, trash) by the thread, or the applier. */
/* clang-format on */
#ifndef LARDER_JOURNAL_JOURNAL_H
#define LARDER_JOURNAL_JOURNAL_H

#include "store/store.h"

struct journal_options {
    uint64_t max_bytes;  /* of memory for rows that are not in the tables yet; 0: every commit goes there */
    uint64_t loan_bytes; /* and so much more, which who caches rows gives up (store_progress.borrowed) */
    uint64_t log_max;    /* SQLite: of the log beside the database; 0: no bound */
    uint64_t wal_max;    /* SQLite: while its own log is larger, nothing comes into the tables; 0: no bound */
    uint32_t lag_ms;     /* how long the tables may be behind ... */
    uint32_t often_ms;   /* ... and how long they are if it costs little; 0: no less than they may */
    uint32_t few_rows;   /* when nothing waits, up to so many go straight into the tables */
    uint32_t lock_ms;    /* how long commits wait for a lock that another process holds ... */
    uint32_t away_ms;    /* ... and for a database server that cannot be reached */
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
