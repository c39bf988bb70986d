/* Rows and entries of a table as they lie in larder_row and larder_entry.

     larder_row   (id, name)
       name       the codes of the primary key's columns (keycode.h)
       value      a JSON array by the columns' ids: [version, column 1, column 2, …]. A BLOB is base64, a
                  TIMESTAMP milliseconds, JSON itself; what is behind the end is each column's `missing`;
                  dropped columns' places are null. psql, sqlite3 and mariadb can read it
       expire_at  when the row ends, 0: never

     larder_entry (id, name)
       name       the index's number (2 bytes, big-endian), the codes of its columns, and, of one that is not
                  unique or has a NULL among them, the codes of the primary key's columns that are not among
                  them
       value      of a unique one without NULL: the row's name; else empty */
#ifndef LARDER_TABLE_ROWCODE_H
#define LARDER_TABLE_ROWCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "table/schema.h"

/* A row as code handles it: one value for each of the schema's columns, by place. */
struct table_row {
    int64_t version;
    int64_t expire_at;
    struct value *values;
};

/* Each of these adds to out.

   The name of the row with these values (those of the key's columns alone matter). False: it is too long, or
   one of them is NULL (FAULT_CONSTRAINT). */
bool rowcode_name(const struct schema *s, const struct value *values, struct buf *out, struct fault *fault);

void rowcode_encode(const struct schema *s, const struct table_row *row, struct buf *out);

/* Values are in the arena, or borrow what is given. ST_CORRUPT: it was not written so. */
enum status rowcode_decode(const struct schema *s, struct slice name, struct slice value, int64_t expire_at,
                           struct arena *arena, struct table_row *ret, struct error *err) MUST_CHECK;

/* An entry of a row with these values: its name; *ret_unique: it is one that no other row may have, and its
   value is the row's name. False: too long. */
bool rowcode_entry(const struct schema *s, const struct table_index *i, const struct value *values,
                   struct buf *out, bool *ret_unique, struct fault *fault);

/* The name of the row that an entry belongs to. */
enum status rowcode_entry_row(const struct schema *s, const struct table_index *i, struct slice entry,
                              struct slice value, struct buf *out, struct error *err) MUST_CHECK;

#endif
