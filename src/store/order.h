/* What every holder of rows has to agree on: in which order scans hand rows out, and which rows are in their
   range. The stores' SQL says the same to a database. */
#ifndef LARDER_STORE_ORDER_H
#define LARDER_STORE_ORDER_H

#include "base/arena.h"
#include "store/item_tables.h"
#include "store/scan.h"

/* A scan by score that begins before every member with its first score. */
static inline bool begins_with_score(const struct item_scan *q)
{
    return !q->has_min || q->min_name.n == 0;
}

/* How a scan of items ends: with the last row, or at or below what goes with max; by score, max may be a
   score without a name. Below is for scans by score or by name. */
enum scan_end { END_OPEN, END_AT, END_AT_SCORE, END_BELOW, END_BELOW_SCORE };
#define SCAN_ENDS 5

enum scan_end scan_end_of(const struct item_scan *q);

/* By table, id, and name or position: the order of the tables' trees. */
int refs_compare(const struct item_ref *x, const struct item_ref *y);

/* The ascending order of rows in a scan (KEYS_BY_SEQ_DESC goes through it backwards, as a reverse scan does).
   Where the scan's order leaves two rows equal, what names a row decides: 0 means the same row. */
int keys_compare(enum key_order order, const struct key_row *x, const struct key_row *y);
int items_compare(enum item_order order, const struct item_row *x, const struct item_row *y);

/* Whether a scan is of one database's keys, in the order of their bytes and between bounds. */
bool keys_bounded(const struct key_scan *q);

/* Whether a scan goes through its order backwards. */
bool keys_backward(const struct key_scan *q);

/* Between which keys a bounded scan looks: the lower bound (exclusive: *ret_open), and the first byte string
   behind all that it may have, in the arena's memory where need be. False: there is no such end. */
struct slice keys_low(const struct key_scan *q, bool *ret_open);
bool keys_high(const struct key_scan *q, struct arena *a, struct slice *ret);

/* Whether an order has a row at all: some are of rows with an expiry only. */
bool keys_order_has(enum key_order order, const struct key_row *k);
bool items_order_has(enum item_order order, const struct item_row *i);

/* Whether a row lies before the range of a scan, or behind it, in ascending order. */
bool key_below(const struct key_scan *q, const struct key_row *k);
bool key_above(const struct key_scan *q, const struct key_row *k);
bool item_below(const struct item_scan *q, const struct item_row *i);
bool item_above(const struct item_scan *q, const struct item_row *i);

/* Whether a row is inside a range delete: a row of its table and id, with its place in the range's order. */
bool item_in_range(const struct item_range *r, const struct item_row *i);

/* The scan of what a range delete removes, ascending and without a limit. Its names are the range's. */
struct item_scan range_scan(const struct item_range *r);

#endif
