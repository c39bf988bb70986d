/* The sweeper's part for tables: rows that have expired are absent to every reader, and are removed behind
   the scenes, with their entries, through the view: as a command would.

   A removal need not be durable: a row that a crash brings back has expired, comes back with its entries, and
   is removed again. Where tables are shared, a step has the tables' keys locked, as any writer of rows. */
#ifndef LARDER_TABLE_SWEEP_H
#define LARDER_TABLE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/engine.h"
#include "table/catalog.h"

/* One bounded step, between batches: removes up to max rows of tables above the id *after, which it moves.
 *catalog is made when there is anything to do. */
enum status tables_sweep(struct engine *e, struct catalog **catalog, int64_t *after, uint32_t max,
                         bool *ret_more, uint64_t *ret_rows, struct error *err) MUST_CHECK;

#endif
