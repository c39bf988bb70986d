/* How a table is read: what xBestIndex decides and xFilter carries out. It goes from one to the other as
   SQLite's idxNum; idxStr says the same to people. */
#ifndef LARDER_QUERY_PLAN_H
#define LARDER_QUERY_PLAN_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "table/schema.h"

enum plan_bound { PLAN_NONE, PLAN_INCLUSIVE, PLAN_EXCLUSIVE };

/* Values come in this order: those that the first columns of the order equal (an IS NULL among them has the
   value NULL), low, high, prefix, limit. */
struct plan {
    uint16_t index; /* number of the index, 0: the primary key */
    uint8_t neq;
    enum plan_bound low, high;
    bool prefix; /* of what GLOB asks for */
    bool limit;
    bool reverse;
    bool keys_only;
    bool last_null; /* the last of neq is IS NULL */
    bool strict; /* SQLite relies on the order, or on there being one row: all of neq has to be looked for */
};

int plan_pack(const struct plan *p);
struct plan plan_unpack(int number);

/* The parts of an order: an index's, or the primary key's where i is NULL. */
const struct key_part *plan_parts(const struct schema *s, const struct table_index *i, size_t *ret_n);
const struct table_index *plan_index(const struct schema *s, uint16_t number);

int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info);

#endif
