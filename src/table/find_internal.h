/* What the files of a find share. */
#ifndef LARDER_TABLE_FIND_INTERNAL_H
#define LARDER_TABLE_FIND_INTERNAL_H

#include "table/find.h"

/* The columns that a find's order goes by. */
struct find_order {
    const struct key_part *parts;
    size_t nparts;
};
struct find_order find_order_of(const struct schema *s, const struct table_index *i);

/* Names from min to before max, of rows or of entries. */
struct find_range {
    struct buf min, max;
    bool empty;      /* nothing can be within it */
    bool has_max;    /* else it goes on to the last */
    bool whole_name; /* it is one name at most: min */
};

/* The names that a find's eq, low, high and prefix allow. find_range_release frees. */
void find_range_make(const struct schema *s, const struct find *f, struct find_range *ret);
void find_range_release(struct find_range *range);

/* Narrows it to what is behind a name, in a find's direction. */
void find_range_behind(struct find_range *range, bool reverse, struct slice after);

/* Whether a row has what the filters ask for; of those of columns that held does not have (NULL: all do),
   nothing is asked. */
bool find_filters_meet(const struct find *f, const struct value *values, const bool *held);

/* The SQL LIKE, as FILTER_LIKE describes it. */
bool find_like(struct slice text, struct slice pattern);

/* The values of the columns that an entry holds, the others NULL; row is its row's name. */
enum status find_entry_values(const struct schema *s, const struct table_index *i, struct slice entry,
                              struct slice row, struct arena *arena, struct value *ret,
                              struct error *err) MUST_CHECK;

#endif
