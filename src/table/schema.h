/* What a table is: columns, primary key, indexes, checks. It is kept as JSON in the value of the table's key
   row; whoever changes a table writes that anew.

     {"format":1,
      "columns":[{"id":1,"name":"first","type":"TEXT","not_null":true,"default":…,"missing":…}, …],
      "key":[{"column":1},{"column":2,"desc":true}],
      "indexes":[{"number":1,"name":"by_ssn","unique":true,"parts":[{"column":4}],"state":"building","error":"…"},
   …], "checks":["age >= 0", …], "next_column":5,"next_index":2, "prefix":"users:"}

   Ids of columns begin at 1 and are places in a row's value; numbers of indexes run from 1 to 30,000; neither
   is used again under one id of a table, so that what is left behind by a dropped one is never taken for
   another's. "missing" is what rows that were written before the column was added have in it, for ever.
   A table over hashes has a prefix, and its key is the part of the hash's key behind that (column 1, TEXT).
 */
#ifndef LARDER_TABLE_SCHEMA_H
#define LARDER_TABLE_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "table/fault.h"
#include "table/value.h"

#define SCHEMA_NAME_MAX    63 /* [A-Za-z_][A-Za-z0-9_]{0,62}, not larder_… or sqlite_…; case ignored */
#define SCHEMA_COLUMNS_MAX 1000
#define SCHEMA_INDEXES_MAX 64
#define SCHEMA_PARTS_MAX   16
#define SCHEMA_CHECKS_MAX  64
#define SCHEMA_BYTES_MAX   65536 /* as JSON: STORE_INLINE_BYTES */
#define SCHEMA_NUMBER_MAX  30000

struct column {
    struct slice name;
    uint16_t id;
    enum column_type type;
    bool not_null;
    bool has_default;
    struct value default_value; /* of rows that are written without it; NULL where has_default is false */
    struct value missing;       /* of rows that end before it */
};

struct key_part {
    uint16_t column; /* its place in columns, not its id */
    bool desc;
};

enum index_state { INDEX_READY, INDEX_BUILDING, INDEX_FAILED };

struct table_index {
    struct slice name;
    uint16_t number;
    bool unique;
    enum index_state state;
    struct slice error; /* INDEX_FAILED */
    struct key_part *parts;
    size_t nparts;
};

struct schema {
    struct column *columns;
    size_t ncolumns;
    struct key_part *key; /* the primary key; its columns are NOT NULL */
    size_t nkey;
    struct table_index *indexes;
    size_t nindexes;
    struct slice *checks; /* each an expression of SQL (table/check.h) */
    size_t nchecks;
    uint16_t next_column, next_index;
    bool on_hashes;
    struct slice prefix;
};

/* Whether a name can be that of a table, a column or an index. */
bool schema_name_ok(struct slice name);

/* By name, case ignored: its place, or -1. */
int schema_column(const struct schema *s, struct slice name);
int schema_index(const struct schema *s, struct slice name);

/* Whether everything in it fits together (names, limits, types of keys, columns of keys NOT NULL ...). */
bool schema_check(struct schema *s, struct fault *fault);

/* As JSON, and back. Decoding fails (ST_CORRUPT) for what was not written so; all of it is in the arena. */
void schema_encode(const struct schema *s, struct buf *out);
enum status schema_decode(struct slice json, struct arena *arena, struct schema *ret,
                          struct error *err) MUST_CHECK;

#endif
