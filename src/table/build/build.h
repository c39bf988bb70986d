/* Building an index over rows that are already there.

   From the commit on that adds an index to a table's schema (INDEX_BUILDING) every writer maintains its
   entries (rows.c). A walker goes over the rows in the order of their names, in steps, and writes the entries
   that are missing. When it has come to the end, entries are a function of rows, and the index becomes
   INDEX_READY in that very commit; until then no reader uses it.

     what                  where
     that an index is due  in the schema, by its state: several may be; the one of the lowest number is built
     how far it is         larder_entry (id, 00 00 ‖ number): how many rows were passed, the last one's name,
                           who did the last step and when

   A step is a transaction of its own: it opens the table, looks whether the index is still due under the same
   id and at its place in the order of rows, writes up to so many entries and the place behind them. A crash,
   of the server or of the database, leaves all of a step or nothing; the next one goes on from there,
   wherever it runs. DROP INDEX, DROP TABLE, FLUSHDB, expiry: the next step finds nothing to do. RENAME, MOVE
   and SWAPDB: it is found again under another name, and goes on, because its place belongs to the id.

   Over tables that several servers share a step locks the table's key as writers of its rows do. Two walkers
   at one index are harmless, as each step reads where the other has left off; so that they do not wait for
   each other all the time, the place is a lease: for BUILD_LEASE_MS after a step others leave it alone. A
   walker that was frozen for longer finds another's name there and leaves it alone in turn.

   A row that has expired is passed over: it is absent, and its entry would only be removed with it. Two live
   rows with one unique entry, a row whose entry would be too long, or one that cannot be read: the index is
   INDEX_FAILED, its error names the rows, and its entries go to the trash in the same commit. */
#ifndef LARDER_TABLE_BUILD_BUILD_H
#define LARDER_TABLE_BUILD_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "table/rows.h"

#define BUILD_LEASE_MS 2000

/* The index that is built next, or NULL. */
const struct table_index *build_due(const struct schema *s);

/* How many rows have been passed so far for an index that is INDEX_BUILDING; 0: it waits for its turn. */
enum status build_progress(struct rows *r, const struct table_index *i, uint64_t *ret_rows) MUST_CHECK;

enum build_outcome {
    BUILD_IDLE,   /* none of its indexes is due */
    BUILD_TAKEN,  /* another walker is at it */
    BUILD_MORE,   /* rows are left */
    BUILD_AT_END, /* its state has to change: a step that may decide is next. Nothing else was done if the
                     build has failed */
    BUILD_DECIDED /* the index is ready, or has failed */
};

struct build_step {
    uint64_t walker;   /* a number of its own */
    uint32_t max_rows; /* looked at */
    bool decides;      /* the transaction is durable when it has been committed: the state may change */
    uint32_t ret_rows; /* looked at */
    enum build_outcome ret;
};
enum status build_step(struct rows *r, struct build_step *step) MUST_CHECK;

/* For who changes a table: indexes of a new schema that are to be built under numbers which have no entries
   yet. A table of a few rows is not worth a walker.

   build_prepare looks at the rows; when there are at most BUILD_AT_ONCE it marks these indexes INDEX_READY in
   s and has their entries for build_write. A duplicate, or an entry too long, is a fault then. Else the
   indexes stay as they are, for a walker. */
#define BUILD_AT_ONCE 1000
struct build_entries;
enum status build_prepare(struct rows *r, struct schema *s, const uint16_t *numbers, size_t n,
                          struct build_entries **ret, struct fault *fault) MUST_CHECK;
enum status build_write(struct rows *r, const struct build_entries *entries) MUST_CHECK;

/* The entries of an index of the table, of whatever state, and its place in a build go: one row of trash. */
enum status build_discard(struct rows *r, uint16_t number) MUST_CHECK;

#endif
