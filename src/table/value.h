/* Values of columns, and the types that columns have.

     type        a value is        text that it is read from (RESP, CSV, parameters of URLs)
     INTEGER     VALUE_INT         decimal, 64 bits
     REAL        VALUE_REAL        a decimal number; no NaN, no infinity; -0.0 becomes 0.0
     TEXT        VALUE_TEXT        UTF-8 without NUL
     BLOB        VALUE_BLOB        the bytes themselves
     BOOLEAN     VALUE_BOOL        true, false, 1, 0, t, f, yes, no (case ignored)
     TIMESTAMP   VALUE_INT         milliseconds since the epoch, or a date of the Gregorian calendar:
                                   2026-11-16, or with T or a space 10:00, 10:00:00 or 10:00:00.123 behind
                                   it, and then Z, +01:00, +0100 or +01; without those it is UTC. From year
                                   0000 to 9999; what is finer than a millisecond is refused
     JSON        VALUE_TEXT        a JSON document, kept as it was written, white space around it removed;
                                   \u0000 is refused (PostgreSQL cannot read it); the document null is
                                   NULL (VALUE_NULL)

   A value borrows its bytes. */
#ifndef LARDER_TABLE_VALUE_H
#define LARDER_TABLE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "proto/json.h"
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

/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z. */
#define TIMESTAMP_MIN (-62167219200000)
#define TIMESTAMP_MAX 253402300799999

const char *column_type_name(enum column_type t);
/* Case ignored; with the usual aliases: INT, BIGINT, FLOAT, DOUBLE, STRING, VARCHAR, BOOL, BYTEA, DATETIME.
 */
bool column_type_find(struct slice name, enum column_type *ret);
enum value_kind column_kind(enum column_type t);

/* The value that a text means in a column. False: none, and the fault says why (FAULT_BAD_TYPE, naming the
   column and the text, cut). The value borrows text, or arena. */
bool value_parse(enum column_type t, struct slice column, struct slice text, struct arena *arena,
                 struct value *ret, struct fault *fault);

/* Converts a value of any kind (from SQL, JSON) to what a column holds, where that loses nothing: 5.0 is an
   INTEGER, 5 a REAL if a double has it, 0 and 1 are BOOLEANs and those 0 and 1 as INTEGERs; numbers are TEXT
   as they are printed, and JSON; a BLOB of UTF-8 is TEXT; text is parsed as by value_parse. NULL stays NULL.
   A value of the column's own kind is looked at as well (NUL in a text, a time out of range). */
bool value_convert(enum column_type t, struct slice column, const struct value *v, struct arena *arena,
                   struct value *ret, struct fault *fault);

/* As SQLite compares values of one column: NULL first, numbers by value, text and blobs by bytes. -0.0 and
   0.0 are equal. */
int value_compare(const struct value *x, const struct value *y);

/* As people read it: for EXPLAIN, errors, CSV; value_parse gives it back. A BLOB as it is; a TIMESTAMP as
   2026-11-16T10:00:00.000Z; NULL adds nothing. */
void value_print(struct buf *out, enum column_type t, const struct value *v);

/* The shortest digits that give the number back, always with a point or an exponent: 5.0, 0.1, 1e+300. Finite
   numbers alone. Returns the length; no NUL behind it. */
#define VALUE_REAL_CHARS 32
size_t value_print_real(char out[VALUE_REAL_CHARS], double d);

/* As JSON, in a row's value and a schema: a BLOB is base64, a TIMESTAMP milliseconds, JSON itself. Reading
   takes what was written so, and nothing else; the value borrows j or arena. */
void value_add_json(struct buf *out, enum column_type t, const struct value *v);
bool value_read_json(enum column_type t, const struct json *j, struct arena *arena, struct value *ret);

#endif
