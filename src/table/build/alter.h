/* Changes of a table that exists: its schema, which is one key row, and with it what its indexes have. All of
   it is one change set. A change is refused as a whole (a fault), or done; adding an index of many rows is
   done when the index is INDEX_BUILDING, and goes on behind (build.h).

   While an index is built, everything may be altered: columns come and go as ever (one that an index uses
   stays), another index waits for its turn, and dropping the index ends its build. */
#ifndef LARDER_TABLE_BUILD_ALTER_H
#define LARDER_TABLE_BUILD_ALTER_H

#include <stdbool.h>

#include "base/slice.h"
#include "base/status.h"
#include "table/rows.h"

/* One alteration (ddl_alter). Entries of an index that is dropped go to the trash: one row, whatever there is
   of them. *ret_builds: a walker has something to do. */
enum status table_alter(struct rows *r, struct slice text, bool *ret_builds, struct fault *fault) MUST_CHECK;

/* Builds an index anew (its p is NULL: all of them), also one that has failed. It gets another number, so
   that no entry of before is taken for one of its own; until it is ready, readers do without it, since it is
   not to be trusted, and who asks for it by name is told so (FAULT_BUILDING). */
enum status table_rebuild(struct rows *r, struct slice index, bool *ret_builds,
                          struct fault *fault) MUST_CHECK;

#endif
