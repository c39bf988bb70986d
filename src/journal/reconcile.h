/* After a lost connection: the database is compared with memory before it is used again. Private to this
   folder; reconcile.c says why and how. */
#ifndef LARDER_JOURNAL_RECONCILE_H
#define LARDER_JOURNAL_RECONCILE_H

#include "journal/journal_internal.h"

/* Keeps a group that was written, until the tables have it for good. By the thread. */
void reconcile_keep(struct journal_store *s, struct journal_group *g);

/* Frees the kept groups that the tables have for good. By the thread, holding the lock. */
void reconcile_release(struct journal_store *s);

/* By the thread, on a connection that was made in the place of a lost one, outside of transactions: compares
   the database with memory, and writes again what it lacks. ST_LOST: it lacks what memory does not have any
   more. */
enum status reconcile_writer(struct journal_store *s, struct error *err) MUST_CHECK;

/* By the owner, within a transaction of the reader on a new connection: ST_IO until the database has
   everything that memory takes for written. */
enum status reconcile_reader(struct journal_store *s, struct error *err) MUST_CHECK;

/* The same by the applier, within a transaction of its session. */
enum status reconcile_applier(struct journal_store *s, struct error *err) MUST_CHECK;

#endif
