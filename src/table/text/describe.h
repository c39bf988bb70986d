/* Tables as texts: the words and statements that make them, and views by which the database behind shows
   their rows to psql, sqlite3 and mariadb. */
#ifndef LARDER_TABLE_TEXT_DESCRIBE_H
#define LARDER_TABLE_TEXT_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "table/schema.h"

/* The text that TABLE.CREATE takes to make the same table (ddl_table), and the CREATE TABLE and CREATE INDEX
   statements of SQL, each with a semicolon and a line of its own: for TABLE.INFO, .schema, sqlite_schema.
   Ids, numbers and states of indexes are not in them. */
void schema_describe(const struct schema *s, struct buf *out);
void schema_sql(const struct schema *s, struct slice table, struct buf *out);

/* One index as a CREATE INDEX statement, without its semicolon; the CREATE TABLE statement alone, likewise.
 */
void schema_index_sql(const struct schema *s, struct slice table, const struct table_index *x,
                      struct buf *out);
void schema_table_sql(const struct schema *s, struct slice table, struct buf *out);

/* A constant as it stands behind DEFAULT. */
void schema_literal(enum column_type t, const struct value *v, struct buf *out);

/* A name, in quotes where it is a word of SQL. */
void schema_name(struct slice name, struct buf *out);

/* A CREATE VIEW statement by which the database behind shows the table's live rows with their columns. A
   TIMESTAMP is a moment of UTC: a timestamptz, a DATETIME(3), in SQLite text; a BLOB is bytes, in SQLite
   base64 (it has no function that decodes it). Of a table over hashes it shows the fields as texts. What is
   still in the journal is not seen. The view is of this schema and this table: ALTER, DROP and making it
   again call for another. db is the table's database, id the table's. */
enum schema_dialect { DIALECT_SQLITE, DIALECT_POSTGRES, DIALECT_MARIADB };
void schema_view(const struct schema *s, struct slice table, uint32_t db, int64_t id, enum schema_dialect d,
                 struct buf *out);

#endif
