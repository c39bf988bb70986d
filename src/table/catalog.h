/* The tables of a database, as the running batch sees them. A table is a key of type ROW_TABLE: its row's
   value is the schema, its id owns the rows and entries, so that DEL, RENAME, EXPIRE, FLUSHDB, SWAPDB, undo
   and trash treat it as any collection.

   What was decoded is kept by the table's id, and used again while the key row has the same version and the
   same bytes: an undone or repeated change of a schema needs no other care. An executor has one catalog, and
   so has a thread that answers queries; none is shared. */
#ifndef LARDER_TABLE_CATALOG_H
#define LARDER_TABLE_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "table/fault.h"
#include "table/schema.h"

struct catalog;

struct table {
    int64_t id;
    int64_t version;   /* of the key row */
    int64_t expire_at; /* of the key */
    uint32_t db;
    struct slice name; /* the key */
    struct schema schema;
};

struct catalog *catalog_new(void);
void catalog_free(struct catalog *c);
size_t catalog_bytes(const struct catalog *c);

/* The table under a key. *ret is valid until the handler returns; FAULT_NO_TABLE, FAULT_WRONG_TYPE. */
enum status table_open(struct catalog *c, struct view *v, uint32_t db, struct slice name,
                       const struct table **ret, struct fault *fault) MUST_CHECK;

/* The names of a database's tables, in byte order; fn may use the view. */
typedef enum status table_name_fn(void *arg, struct slice name);
enum status table_each(struct catalog *c, struct view *v, uint32_t db, table_name_fn *fn,
                       void *arg) MUST_CHECK;

/* A new table, or another schema of one that is there (its id and expiry stay). */
enum status table_create(struct view *v, uint32_t db, struct slice name, const struct schema *s,
                         struct fault *fault) MUST_CHECK;
enum status table_change(struct view *v, const struct table *t, const struct schema *s,
                         struct fault *fault) MUST_CHECK;

#endif
