/* The tables on a database server. They hold what store/sqlite/schema.h describes, under the same names; what
   differs from SQLite's, and why, is in docs/databases.md:

   - An index takes no more than some 2,700 bytes (PostgreSQL) or 3,072 (InnoDB) of a row, so a name that is
     indexed (key, field, member) has at most 1,024. One of up to 1,000 bytes stands as it is. Of a longer one
     the column has the first 992 bytes and the SHA-256 of all of it, and the column called ..._rest what
     follows the 992; it is empty for all others. See remote_names.h.
   - seq comes from blocks of 1,024 numbers, so that a server numbers new rows without asking. PostgreSQL: a
     sequence whose numbers are 1,024 apart. MariaDB: larder_block, a table that has no rows when nobody
   looks; its AUTO_INCREMENT has the next block's number, which a transaction that is rolled back does not
   give back and no other waits for.
   - larder_count has what sessions have added to larder_db's counts since these were last brought up to date,
     in as many rows as there are slots, so that two sessions do not wait for each other.
   - MariaDB's DOUBLE has no infinities and no negative zero: larder_zset keeps the bits of a score beside it,
     and the index is over `place`, an integer in the order of the scores. */
#ifndef LARDER_STORE_REMOTE_REMOTE_SCHEMA_H
#define LARDER_STORE_REMOTE_REMOTE_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "sql/remote.h"

#define REMOTE_SCHEMA_VERSION 4
#define REMOTE_SEQ_BLOCK      1024 /* as the texts say it, too */

/* The version of the tables, 0 when there are none. */
enum status remote_schema_version(struct remote *c, int64_t *ret, struct error *err) MUST_CHECK;

/* Creates the tables, or brings them to this version; views and functions that are missing are made again.
   Two who do so at once wait for each other. ST_NEWER when they are beyond it, ST_DENIED when this role may
   not, ST_CORRUPT when they are not whole. */
enum status remote_schema_migrate(struct remote *c, int64_t *ret_from, bool *ret_mended,
                                  struct error *err) MUST_CHECK;

/* The same over a connection of its own, however long it takes. */
enum status remote_schema_make(const char *url, int64_t *ret_from, bool *ret_mended,
                               struct error *err) MUST_CHECK;

/* ST_OK when the tables are of this version; else what to do about it. */
enum status remote_schema_require(struct remote *c, struct error *err) MUST_CHECK;

/* The same, and they are whole (remote_verify.h): for a server that begins to serve them. Functions that are
   missing are made again, if this role may. */
enum status remote_schema_ready(struct remote *c, struct error *err) MUST_CHECK;

#endif
