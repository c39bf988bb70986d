/* The texts of a server's schema, for remote_schema.c. */
#ifndef LARDER_STORE_REMOTE_REMOTE_SCHEMA_INTERNAL_H
#define LARDER_STORE_REMOTE_REMOTE_SCHEMA_INTERNAL_H

#include "store/remote/remote_schema.h"

#define REMOTE_SCHEMA_TEXTS 1

/* What brings the tables from version - 1 to version. */
struct remote_schema_step {
    int version;
    const char *texts[REMOTE_DIALECTS][REMOTE_SCHEMA_TEXTS]; /* run one after the other; NULL: none */
};

/* The functions and views of this version, see remote_schema_code.c. */
extern const char remote_postgres_functions[], remote_postgres_views[];
extern const char remote_mariadb_functions[], remote_mariadb_views[];

extern const struct remote_schema_step remote_schema_steps[REMOTE_SCHEMA_VERSION];

#endif
