/* The right-hand side of a comparison, as a column's order can use it. SQLite hands it over as it stands, and
   compares again itself: what is looked for here may be wider than what was asked, never narrower. */
#ifndef LARDER_QUERY_CONSTANT_H
#define LARDER_QUERY_CONSTANT_H

#include <sqlite3.h>

#include "table/find.h"

enum constant {
    CONSTANT_IS,    /* this value of the column, and no other */
    CONSTANT_NEVER, /* no row can match */
    CONSTANT_ANY    /* rows may match that this order does not bring together */
};

/* What `column = v` looks for. Bytes are borrowed. */
enum constant constant_equal(enum column_type t, sqlite3_value *v, struct value *ret);

/* The bound of `column > v` (low) or `column < v`. CONSTANT_ANY: there is none. */
enum constant constant_bound(enum column_type t, sqlite3_value *v, bool low, bool exclusive,
                             struct bound *ret);

/* What every text begins with that a pattern of GLOB matches; p is NULL: nothing is known. */
struct slice constant_prefix(sqlite3_value *pattern);

#endif
