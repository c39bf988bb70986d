/* Rows of tables: reading and writing single ones. Whoever writes a row writes its entries in the same change
   set, so both are there or neither, in memory, in the journal and in the tables; entries are a function of
   rows at every commit (`larder check` compares them).

   A write reads the row as it stands, expired or not: an expired row is absent to clients, but its entries
   are there until they are removed with it. A unique entry that another row has: when that row has expired,
   it is removed first, entries and all; else FAULT_DUPLICATE. An entry is removed only if it is this row's.

   Everything is checked before anything is written. Values borrow; what a write keeps is copied to
   view_arena(). */
#ifndef LARDER_TABLE_ROWS_H
#define LARDER_TABLE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "table/catalog.h"
#include "table/rowcode.h"

/* Where a table's rows are read and written. */
struct rows {
    struct catalog *catalog;
    struct view *view;
    const struct table *table;
    struct arena *arena; /* of the call: what is read lives there */
};

/* The name of the row with these values in the columns of its primary key, in the arena. False: too long. */
bool rows_name(const struct rows *r, const struct value *values, struct slice *ret, struct fault *fault);

/* The live row of a name (rowcode_name), or *ret_found is false. */
enum status rows_get(struct rows *r, struct slice name, bool *ret_found, struct table_row *ret) MUST_CHECK;

/* The same as it lies in the table, not decoded; its slices are borrowed until the handler returns. */
enum status rows_find(struct rows *r, struct slice name, bool *ret_found, struct item_row *ret) MUST_CHECK;

/* Rows, or entries, in order, as view_scan_items has them: those of a table over hashes are made of them. */
enum status rows_scan(struct rows *r, const struct item_scan *q, store_item_fn *fn, void *arg) MUST_CHECK;

/* Several at once, in one round trip where reads are far: ret[i] for names[i], values NULL: none. */
enum status rows_get_many(struct rows *r, const struct slice *names, size_t n,
                          struct table_row *ret) MUST_CHECK;

enum row_condition { ROW_ALWAYS, ROW_IF_NEW, ROW_IF_THERE, ROW_IF_VERSION };

struct row_write {
    struct value *values; /* by the columns' places */
    bool
        *given; /* which of them were told; of a put the others take their defaults, of an update they stay */
    const bool *increase; /* of an update, NULL: none; values[i] is added to the number that is there */
    enum row_condition condition;
    int64_t version; /* ROW_IF_VERSION */
    bool keep_expiry;
    int64_t expire_at; /* else; 0: never */
};

enum row_outcome { ROW_NEW, ROW_REPLACED, ROW_NOT_MET /* the condition does not hold; nothing was done */ };

/* Puts a whole row. *ret_version (may be NULL) is the new one. */
enum status rows_put(struct rows *r, const struct row_write *w, enum row_outcome *ret, int64_t *ret_version,
                     struct fault *fault) MUST_CHECK;

/* Changes columns of the row of a name that is there (ROW_NOT_MET: it is not). The columns of the primary
   key may change: the row moves. ret_row (may be NULL): as it is now. */
enum status rows_update(struct rows *r, struct slice name, const struct row_write *w, enum row_outcome *ret,
                        struct table_row *ret_row, struct fault *fault) MUST_CHECK;

/* ROW_REPLACED: it was there, and has gone. */
enum status rows_delete(struct rows *r, struct slice name, enum row_condition condition, int64_t version,
                        enum row_outcome *ret) MUST_CHECK;

/* Another expiry; one that has come removes the row. */
enum status rows_expire(struct rows *r, struct slice name, int64_t expire_at,
                        enum row_outcome *ret) MUST_CHECK;

/* Removes up to max expired rows of a table, with their entries. */
enum status rows_sweep(struct rows *r, uint32_t max, uint32_t *ret_removed) MUST_CHECK;

#endif
