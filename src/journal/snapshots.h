/* Other threads that read the tables (store/snapshot.h): private to this folder.

   With a log of their own the tables are whole at any moment, because a pass is one transaction: who waits is
   let in as soon as a pass has brought in what it waits for, and holds up nobody. The rest is about database
   servers, where the thread first looks whether the database is as we left it.

   Who waits is in a list, under the lock. The thread that writes looks at it between two of the things that
   it does: while somebody waits for more than the tables have, groups are written at once, the active
   memtable is asked for; when the tables have it, it lets them in and waits for them. */
#ifndef LARDER_JOURNAL_SNAPSHOTS_H
#define LARDER_JOURNAL_SNAPSHOTS_H

#include "journal/journal_internal.h"
#include "store/snapshot.h"

extern const struct snapshot_ops journal_snapshot_ops;

/* Holding the lock. Whether somebody waits for what the tables do not have. */
bool snapshots_are_behind(struct journal_store *s);

/* Holding the lock, by the thread that writes, between two transactions: whether somebody can be let in. */
bool snapshots_are_due(struct journal_store *s);

/* Lets them in and waits for them. */
void snapshots_let_in(struct journal_store *s);

#endif
