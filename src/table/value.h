/* Values of columns, and the types that columns have.

     type        a value is        text that it is read from (RESP, CSV, parameters of URLs)
     INTEGER     VALUE_INT         decimal, 64 bits
     REAL        VALUE_REAL        a number; no NaN, no infinity
     TEXT        VALUE_TEXT        UTF-8 without NUL
     BLOB        VALUE_BLOB        the bytes themselves
     BOOLEAN     VALUE_BOOL        true, false, 1, 0, t, f, yes, no (case ignored)
     TIMESTAMP   VALUE_INT         milliseconds since the epoch, or 2026-11-16[(T|
   )10:00[:00[.123]][Z|+01:00]] JSON        VALUE_TEXT        a JSON document, kept as it was written, white
   space around it removed

   A value borrows its bytes. */
#ifndef LARDER_TABLE_VALUE_H
#define LARDER_TABLE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "table/fault.h"

enum value_kind { VALUE_NULL, VALUE_INT, VALUE_REAL, VALUE_TEXT, VALUE_BLOB, VALUE_BOOL };

struct value {
    enum value_kind kind;
    union {
        int64_t i; /* VALUE_INT; VALUE_BOOL: 0 or 1 */
        double d;
        struct slice s; /* VALUE_TEXT, VALUE_BLOB */
    };
};

/* They are in rows of larder_key by name ("INTEGER"), never by number. */
enum column_type {
    COLUMN_INTEGER,
    COLUMN_REAL,
    COLUMN_TEXT,
    COLUMN_BLOB,
    COLUMN_BOOLEAN,
    COLUMN_TIMESTAMP,
    COLUMN_JSON
};
#define COLUMN_TYPES 7

const char *column_type_name(enum column_type t);
bool column_type_find(struct slice name,
                      enum column_type *ret); /* case ignored; with the usual aliases: INT, BIGINT, FLOAT,
                                                 DOUBLE, STRING, VARCHAR, BOOL, BYTEA, DATETIME */
enum value_kind column_kind(enum column_type t);

/* The value that a text means in a column. False: none, and the fault says why (FAULT_BAD_TYPE, naming the
   column and the text, cut). The value borrows text, or arena. */
bool value_parse(enum column_type t, struct slice column, struct slice text, struct arena *arena,
                 struct value *ret, struct fault *fault);

/* Converts a value of any kind (from SQL, JSON) to what a column holds, where that loses nothing: 5.0 is an
   INTEGER, 5 a REAL if a double has it, 0 and 1 are BOOLEANs, text is parsed as above but for REAL and
   INTEGER columns also by value_parse. NULL stays NULL. */
bool value_convert(enum column_type t, struct slice column, const struct value *v, struct arena *arena,
                   struct value *ret, struct fault *fault);

/* As SQLite compares values of one column: NULL first, numbers by value, text and blobs by bytes. -0.0 and
   0.0 are equal. */
int value_compare(const struct value *x, const struct value *y);

/* As people read it: for EXPLAIN, errors, CSV. A BLOB as it is. NULL adds nothing. */
void value_print(struct buf *out, enum column_type t, const struct value *v);

#endif
