/* The item tables, each described once. Everything that handles items goes by this description: the SQL that
   reads, writes, scans, counts, sweeps and checks them in every dialect, the journal's encoding, the rows in
   memory, and the contract tests. CONTRIBUTING.md says what else a new table needs.

   A row is named by (id, key): the id of its collection, and a name (bytes) or a position (a number). The
   other columns are any of those of struct item_row. A table can be scanned in the order of its key, and in
   the order of each of its indexes.

   Database servers index the beginning of a name and keep the rest in another column, KEY_rest
   (store/remote/remote_names.h). MariaDB keeps a score's bits beside it, and where an index orders by scores,
   a number that has their order (place). */
#ifndef LARDER_STORE_ITEM_TABLES_H
#define LARDER_STORE_ITEM_TABLES_H

#include "store/store.h"

/* The columns behind the key, in the order in which rows are encoded. */
enum item_column { COLUMN_VALUE, COLUMN_SCORE, COLUMN_EXPIRY, COLUMN_ORD };
#define ITEM_COLUMNS 4

struct item_table_desc {
    const char *name;                  /* of the table */
    enum row_type owner;               /* the type of the keys that its items belong to */
    const char *key;                   /* the column of the name or position */
    bool named;                        /* it is a name */
    const char *columns[ITEM_COLUMNS]; /* what they are called; NULL: the table has none such */
    const char *indexes[ITEM_ORDERS];  /* that serve an order; NULL: the table cannot be scanned in it. The
                                          primary key serves the order of the key and is not named here */
    bool by_arrival;                   /* SQLite has its rows in the order in which they came, mostly that of
                                          ord; else in the order of the key */
    uint32_t sweep_weight; /* how many pages a row has, compared with an ordinary one: what it takes
                              off the budget of a local store's sweep */
    const char *title;     /* what `larder check` calls its collections ... */
    const char *items;     /* ... and its rows */
};

/* By enum item_table. The order matters where a type has several: the first one has the items that the key's
   size counts, and they are swept in this order. */
extern const struct item_table_desc item_tables[ITEM_TABLES];

/* Whether a table's items are found by name rather than by position. */
static inline bool item_named(enum item_table t)
{
    return item_tables[t].named;
}

static inline bool item_has(enum item_table t, enum item_column c)
{
    return item_tables[t].columns[c] != NULL;
}

/* The order of a table's key. */
static inline enum item_order item_key_order(enum item_table t)
{
    return item_tables[t].named ? ITEMS_BY_NAME : ITEMS_BY_POS;
}

/* Whether a table can be scanned in an order. */
static inline bool item_ordered(enum item_table t, enum item_order order)
{
    return order == item_key_order(t) || item_tables[t].indexes[order] != NULL;
}

/* Whether it numbers the items of one id, see key_row.numbers. */
static inline bool item_numbered(enum item_table t)
{
    return item_tables[t].indexes[ITEMS_BY_ORD] != NULL;
}

/* Which items a trash row of this type names in a table: all of the id, none, or those whose names begin with
   the number of an index: *ret_low up to before *ret_high, of two bytes each. */
enum trash_part { TRASH_NONE, TRASH_ALL, TRASH_RANGE };
enum trash_part item_trashed(enum item_table t, enum row_type type, char ret_low[2], char ret_high[2]);

/* The column that an order goes by, the first one where there are two. */
const char *item_order_column(enum item_table t, enum item_order order);

/* The table of the items that a key's size counts. The type must be one whose keys have items. */
enum item_table item_table_of(enum row_type type);

#endif
