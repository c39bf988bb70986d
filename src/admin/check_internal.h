/* Private to check.c (what is looked at in the tables), check_remote.c (the same on a database server),
   check_session.c (a database to look at, with its journal) and salvaging (salvage_internal.h). */
#ifndef LARDER_ADMIN_CHECK_INTERNAL_H
#define LARDER_ADMIN_CHECK_INTERNAL_H

#include "admin/check.h"
#include "sql/sqlite.h"
#include "store/journal_rows.h"

#define CHECK_SHOWN 20 /* findings printed of each kind */

/* A database that is being looked at, in a transaction. */
struct check_session {
    struct sqlite *sql;  /* NULL: a database server's */
    struct store *store; /* over it, and closes it */
    struct journal_state state;
    int64_t pending; /* rows of the journal that are not in the tables */
    bool owned;      /* nobody else has the database: the transaction may write */
};

/* Opens a database of this version, for this process alone (ST_LOCKED) or to read, and begins. */
enum status check_open(const char *url, bool owned, struct check_session *ret, struct error *err) MUST_CHECK;

/* Opens it in a way in which its tables can be made to say one thing: as they are, when nothing is pending;
   else for this process alone, or, when a server has it, at a moment when no change is half in the tables. */
enum status check_open_settled(const char *url, struct check_session *ret, struct error *err) MUST_CHECK;

/* The same on a database server. */
enum status remote_check_open(const char *url, bool owned, struct check_session *ret,
                              struct error *err) MUST_CHECK;
enum status remote_check_tables(struct check_session *s, FILE *out, uint64_t *ret_found,
                                struct error *err) MUST_CHECK;

/* Rolls back what has not been committed. */
void check_close(struct check_session *s);

/* Reads the rows of the journal that are pending, prints what is wrong with them, and, when the session is
   owned, brings them into the tables within the transaction. *ret_comparable: the tables say one thing now.
 */
enum status check_journal(struct check_session *s, FILE *out, uint64_t *ret_found, bool *ret_comparable,
                          struct error *err) MUST_CHECK;

/* All that the tables say of each other. */
enum status check_tables(struct check_session *s, FILE *out, uint64_t *ret_found,
                         struct error *err) MUST_CHECK;

#endif
