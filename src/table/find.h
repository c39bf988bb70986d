/* Rows in order: by the primary key or an index, within bounds, with filters, page by page. ROW.QUERY, the
   HTTP API and the virtual tables of SQL all read through this.

   A find goes through one order: the primary key's, or an index's. Its first neq columns have given values;
   the next one may have bounds, in the order of values whatever DESC says; filters are looked at row by row.
   A page is read in two trips at most: a stretch of entries, then the rows that they name. An entry whose row
   is not there, or is not as the entry says, is passed over (over hashes that may be).

   A token tells where the next page begins: it is the place behind the last row, and a check word over the
   find that it belongs to (table id, index, bounds, filters, direction), so that another find's is refused
   (FAULT_BAD_TOKEN). It has no state on the server and holds across restarts. One row more than asked for is
   looked at, so that no token is given at the end. A row that stays where it is in the order is seen once,
   whatever else is written between two pages. */
#ifndef LARDER_TABLE_FIND_H
#define LARDER_TABLE_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "table/keycode.h"
#include "table/rows.h"

enum filter_op {
    FILTER_EQ,
    FILTER_NE,
    FILTER_LT,
    FILTER_LE,
    FILTER_GT,
    FILTER_GE,
    FILTER_LIKE, /* % and _, bytes outside of ASCII as they are, ASCII letters whatever their case */
    FILTER_IN,
    FILTER_IS_NULL,
    FILTER_NOT_NULL
};

struct filter {
    uint16_t column; /* by place */
    enum filter_op op;
    const struct value *values; /* FILTER_IN: several; converted to the column's type */
    size_t nvalues;
};

struct bound {
    bool on;
    bool exclusive;
    struct value value; /* not NULL */
};

struct find {
    const struct table_index *index; /* NULL: the primary key */
    const struct value *eq;          /* of the column's kind each; NULL: those that are NULL */
    size_t neq;
    struct bound low, high; /* of the column behind those; NULLs are outside of any bound */
    struct slice prefix;    /* of that column when it is TEXT or BLOB; p is NULL: none */
    const struct filter *filters;
    size_t nfilters;
    bool reverse;
    uint32_t limit; /* rows handed out at most */
    uint32_t scan;  /* rows looked at at most */
    bool keys_only; /* of the columns only those that the order's names hold (find_holds) are wanted: others
                       are NULL, version is 0, and rows are not fetched where that will do */
};

/* Whether it makes sense for the table: places, types, an index that is ready. Converts nothing. */
bool find_check(const struct table *t, const struct find *f, struct fault *fault);

/* Whether the names of an order (NULL: of the primary key) hold a column, by its place. */
bool find_holds(const struct schema *s, const struct table_index *i, uint16_t column);

/* The bound that a comparison of a column with any constant comes down to. Where the column's type does not
   have the constant, the bound is wider, never narrower: the comparison itself is to be looked at again row
   by row. False: there is none that would be of use. */
bool find_bound(enum column_type t, enum filter_op op, const struct value *v, struct arena *arena,
                struct bound *ret);

/* A row, its values and its name are valid until the arena of rows is reset. */
typedef enum status find_fn(void *arg, const struct table_row *row, struct slice name);

/* Where a find stands: zeroed at the beginning. */
struct find_place {
    bool begun, ended;
    uint16_t nafter;
    char after[KEYCODE_MAX + 4]; /* the name, in the find's order, of the last row or entry looked at */
};

struct find_result {
    uint64_t returned, scanned;
};

/* One page: calls fn for up to limit rows behind place, and moves it. place->ended: there are no more. Else
   there is at least one more, or scan rows were looked at. fn must not use the view; ST_STOP from it ends the
   page behind its row. */
enum status find_page(struct rows *r, const struct find *f, struct find_place *place, find_fn *fn, void *arg,
                      struct find_result *ret) MUST_CHECK;

/* Before a page that has to be of one state with what was read before, in the same call. */
enum status find_goes_on(struct rows *r, const struct find *f) MUST_CHECK;

/* How many rows there are (live ones, filters met) behind place, up to f->scan rows looked at; f->limit means
   nothing. */
enum status find_count(struct rows *r, const struct find *f, struct find_place *place, uint64_t *ret,
                       struct find_result *ret_work) MUST_CHECK;

/* The token of a place that has begun and not ended. */
void find_token(const struct table *t, const struct find *f, const struct find_place *place, struct buf *out);
bool find_resume(const struct table *t, const struct find *f, struct slice token, struct arena *arena,
                 struct find_place *ret, struct fault *fault);

/* "people: by_ssn (ssn = 9088 AND last > 'J'), filter address = 'x', reverse": one line. */
void find_explain(const struct table *t, const struct find *f, struct buf *out);

#endif
