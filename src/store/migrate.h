/* `larder migrate`: creates the tables of a database, or brings them to this program's version. */
#ifndef LARDER_STORE_MIGRATE_H
#define LARDER_STORE_MIGRATE_H

#include <stdint.h>

#include "base/status.h"

/* *ret_from is the version that was found, 0 for none; *ret_to the one that is there now. */
enum status store_migrate(const char *url, int64_t *ret_from, int64_t *ret_to, struct error *err) MUST_CHECK;

#endif
