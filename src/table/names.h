/* What a table may be called. Names of a database's tables differ by more than case: SQL would not know which
   one is meant. */
#ifndef LARDER_TABLE_NAMES_H
#define LARDER_TABLE_NAMES_H

#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "table/fault.h"

/* Whether a table may have this name, beside the other tables of the database; those called exactly `name` or
   `except` (p is NULL: none) do not count. FAULT_SYNTAX, FAULT_EXISTS. Costs what there is of tables. */
enum status table_name_check(struct view *v, uint32_t db, struct slice name, struct slice except,
                             struct fault *fault) MUST_CHECK;

/* Whether a table, whose row this is, may go to another name, or another database: RENAME and MOVE. One over
   hashes stays in the database where these are (FAULT_REFUSED). */
enum status table_move_check(struct view *v, const struct row *table, uint32_t from_db, struct slice from,
                             uint32_t to_db, struct slice to, struct fault *fault) MUST_CHECK;

#endif
