/* `larder check` of a table over hashes: its indexes against the hashes. */
#ifndef LARDER_ADMIN_CHECK_HASHES_H
#define LARDER_ADMIN_CHECK_HASHES_H

#include <stdint.h>

#include "base/status.h"
#include "store/store.h"
#include "table/schema.h"

struct hash_table_check {
    struct store *store;
    uint32_t db; /* the database's number in the tables */
    int64_t id;
    const struct schema *schema;
    int64_t now; /* milliseconds */
    /* Is told what is wrong, in words. */
    void (*found)(void *arg, const char *text);
    void *arg;
};

/* Of each index that is ready: every hash that has not expired has its entry there, and there are no entries
   but those of hashes, expired or not. The hashes are passed once, a page at a time, and the entries counted.
 */
enum status check_hash_table(const struct hash_table_check *c, struct error *err) MUST_CHECK;

#endif
