/* What the files of table/ share of a catalog. */
#ifndef LARDER_TABLE_CATALOG_INTERNAL_H
#define LARDER_TABLE_CATALOG_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "table/catalog.h"

struct known;

struct catalog {
    struct map by_id;
    struct known *old; /* out of the map; freed when no handler can have one any more */
    size_t bytes;      /* of decoded tables, about */
    int64_t version;   /* the greatest that a row got here, or had when it was removed */
    struct buf name;   /* room that is used again and again, for what does not outlive the function */
    struct buf value;
};

/* Whether a row with these values passes the CHECKs of its table, which table_open gave. */
bool table_check(const struct table *t, const struct value *values, struct fault *fault);

#endif
