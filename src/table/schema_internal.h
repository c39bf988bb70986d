/* What the files about schemas share. */
#ifndef LARDER_TABLE_SCHEMA_INTERNAL_H
#define LARDER_TABLE_SCHEMA_INTERNAL_H

#include "table/schema.h"

/* ASCII case ignored. */
bool schema_same_name(struct slice x, struct slice y);

/* schema_check without what is asked of new tables alone (names that are reserved, length): a table that is
   there stays readable. */
bool schema_fits(struct schema *s, struct fault *fault);

#endif
