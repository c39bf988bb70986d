/* CHECK: expressions over a row's columns, computed by SQLite's engine on a private connection in memory.
   They mean what they mean in SQLite: a NULL passes, as does any number but 0.

   An expression sees its table's columns and nothing else. It has no subqueries, no parameters, and of the
   functions only those whose result depends on their arguments alone and whose work is in proportion to their
   length (check.c has the list). Texts and blobs that a CHECK looks at have at most CHECK_BYTES_MAX.

   One is made for each version of a table by whoever runs it; it belongs to one thread. */
#ifndef LARDER_TABLE_CHECK_H
#define LARDER_TABLE_CHECK_H

#include <stdbool.h>

#include "table/fault.h"
#include "table/schema.h"

#define CHECK_BYTES_MAX 1048576

struct checks;

/* NULL: the schema has none, or the fault is set (FAULT_SYNTAX: one does not compile). The schema is needed
   until checks_free. */
struct checks *checks_new(const struct schema *s, struct fault *fault);
void checks_free(struct checks *c);

/* Whether a row with these values passes them all. False: FAULT_CONSTRAINT names the first that it fails. c
   may be NULL. */
bool checks_run(struct checks *c, const struct value *values, struct fault *fault);

#endif
