/* Other threads that read the tables between two passes (store/snapshot.h): private to this folder.

   Who waits is in a list, under the lock. The thread that writes looks at it between two of the things that
   it does: while somebody waits for more than the tables have, groups are written at once, the active
   memtable is asked for, and slices are as large as they may be; when the tables have it and no pass is half
   done, it lets them in and waits for them. */
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
