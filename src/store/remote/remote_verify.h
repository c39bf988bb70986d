/* Whether the tables on a database server are whole. A dump that was brought back in part looks like a
   database of this program, and a server on it would serve, and build on, what is left of the data. So what a
   server needs is asked for when it starts: tables, their columns and indexes, the sequence where there is
   one, the rows that are always there, and views, the last thing that a dump of MariaDB's brings.

   Functions are not needed by a server and are not in every dump (mariadb-dump without --routines). They hold
   no data, and are made again. */
#ifndef LARDER_STORE_REMOTE_REMOTE_VERIFY_H
#define LARDER_STORE_REMOTE_REMOTE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/remote.h"

/* ST_OK when the tables and rows of a version are whole, and the views when asked for; ST_CORRUPT names what
   is missing. */
enum status remote_verify(struct remote *c, int64_t version, bool views, struct error *err) MUST_CHECK;

/* A query for the views that are missing, one text for each. */
const char *remote_views_text(enum remote_dialect dialect);

/* ST_OK when there is nothing of this program, or what a migration that broke off left, which may begin anew;
   ST_CORRUPT when it is a part of a database with data. For tables without a version. */
enum status remote_verify_nothing(struct remote *c, struct error *err) MUST_CHECK;

/* Whether this version's functions, and the views when asked for, are there, as far as this role can see. */
enum status remote_verify_code(struct remote *c, bool views, bool *ret_there, struct error *err) MUST_CHECK;

/* Makes functions and views again. ST_DENIED when this role may not. */
enum status remote_make_code(struct remote *c, struct error *err) MUST_CHECK;

/* Brings what numbers blocks behind the highest number of a row, where it is not there yet, while nobody else
   does. */
enum status remote_advance_seq(struct remote *c, struct error *err) MUST_CHECK;

#endif
