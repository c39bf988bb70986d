/* `larder migrate`: creates the tables of a database, or brings them to this program's version. */
#ifndef LARDER_ADMIN_MIGRATE_H
#define LARDER_ADMIN_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct migration {
    int64_t from; /* the version that was found, 0 for none */
    int64_t to;   /* the one that is there now */
    bool mended;  /* views or functions of that version were missing, and are there now */
};

enum status store_migrate(const char *url, struct migration *ret, struct error *err) MUST_CHECK;

#endif
