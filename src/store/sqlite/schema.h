/* The tables, and how a database of an older version becomes one of this version.

   THE FORMAT (version 4). All times are milliseconds since the epoch. Keys, fields, members and values are
   bytes. Big columns stand last, so that reading the others never follows a long row to its end.

   larder_key     one row for each key, also for dead ones until they are swept
     seq          the row's number: new rows get higher ones, a row keeps its own. SCAN's cursor
     db, key      unique. db is a database's number (larder_db.number), not the one a client selects; or
                  2147483647, for scripts and functions (engine/hidden.h), which no row of larder_db has
     type         1 string, 2 hash, 3 list, 4 set, 5 zset, 6 table; 0 deleted
     id           of its items; 0 when it has none (a string of up to 64 KiB, a deleted key)
     size         how many items; of a string in chunks its bytes; of a table 0
     first        the position of a list's first item; of a hash a moment before which no field expires, 0
                  when none does; of a sorted set see larder_zset_block
     version      never repeats for a key, grows with every change
     expire_at    0 never, -1 deleted, else the moment from which on the key is dead
     value        a string of up to 64 KiB; the schema of a table, in JSON
     numbers      the items of a hash, set or sorted set have an ord below it; 0 when that is size, which is
                  the only thing it may not be otherwise: it is beyond it. 0 for all else

   larder_chunk   (id, pos) · value           longer strings in pieces of 16 KiB, pos from 0. A piece that is
                  missing or short stands for zeros
   larder_hash    (id, field) · expire_at · ord · value
                  expire_at is the field's own: 0 never, else the moment from which on it is not there. A hash
                  none of whose fields is there is not there either. The sweeper removes such rows
   larder_list    (id, pos) · value           contiguous: pos in [first, first + size)
   larder_set     (id, member) · ord
   larder_zset    (id, member) · score · ord
     ord          numbers the items of one id from 0 to size - 1, in no particular order, or with holes up
                  to numbers - 1. For random members and for scans.
   larder_zset_block (id, block) · score · member · count
     count        how many members a sorted set has from (score, member) on, in the order of score and then
                  member, up to where the next block begins. The first one begins before every member. Only
                  large sets have blocks: their key's first is the next number for one, and 0 without any.
   larder_row     (id, name) · expire_at · value   rows of tables: name is the code of the primary key
                  (table/keycode.h), value a JSON array (table/rowcode.h); expire_at is the row's own
   larder_entry   (id, name) · value          entries of their indexes: name is the number of the index (two
                  bytes, big-endian) and the code of its columns. Names of both have up to 1,000 bytes

   larder_db      db · number · keys · expires   logical databases: where they are and what they count.
                  keys counts rows that are not deleted (-1), expired ones included; expires those of them
                  with an expiry.
   larder_trash   (id, type)                  items that no key refers to; with type 100 the number of a
                  database that was flushed; with type 1000 + n the entries of index n of table id. The
                  sweeper removes what they name, then them.
   larder_journal seq · changes               changes that are durable but not in the tables yet
   larder_meta    name · value
     schema_version, created
     next_id          the first id that no collection has had
     next_db_number   the first number that no database has had
     applied          up to which seq of the journal the tables hold what it says ...
     applying         ... and up to which they hold some of it, not all; 0: they are as they were at `applied`
     owner            who has the database open: for people
     redo_id          of the log beside the file (redo/redo.h), another one at each start
     redo_open        1: that log may hold what the tables have not
     redo_inode       which file this was when the log was begun, and redo_cookie what its schema's cookie was

   An id is used once. A collection that is deleted, expired or overwritten leaves its key row at once and its
   items later: nothing refers to them, so no command sees them.

   Rows with large values (chunks, hashes, lists, rows of tables) are in rowid tables with an index over their
   key, because an index tree compares whole rows on its way down and so reads large values that it passes
   (measured for 64 KiB: 4 to 5 times slower). Sets, sorted sets and entries have little but their key, and
   are WITHOUT ROWID. */
#ifndef LARDER_STORE_SQLITE_SCHEMA_H
#define LARDER_STORE_SQLITE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "sql/sqlite.h"

#define SCHEMA_VERSION 4

/* What brings a database from version - 1 to version. */
struct schema_step {
    int version;
    const char *text;
};

extern const struct schema_step schema_steps[SCHEMA_VERSION];

/* The version of the tables, 0 when there are none. In the running transaction, or in one of its own. */
enum status schema_read_version(struct sqlite *c, int64_t *ret, struct error *err) MUST_CHECK;

/* For a command that does not migrate: ST_OK when the tables have the version that this program knows. does:
   what it does with them, for the message. */
enum status schema_require(struct sqlite *c, const char *does, struct error *err) MUST_CHECK;

/* Brings the tables to the version of the last step, in one transaction. ST_NEWER when they are beyond it. */
enum status schema_migrate(struct sqlite *c, const struct schema_step *steps, size_t n,
                           struct error *err) MUST_CHECK;

/* ST_OK when the tables of this version have their columns and the rows that are always there; ST_CORRUPT
   names what is missing, as after a dump that was brought back in part. */
enum status schema_verify(struct sqlite *c, struct error *err) MUST_CHECK;

#endif
