/* The replicas that a configuration names, taken apart and checked before anything is opened. */
#ifndef LARDER_REPLICA_URLS_H
#define LARDER_REPLICA_URLS_H

#include <stdint.h>

#include "base/status.h"
#include "replica/replicas.h"

struct replica_urls {
    char *text; /* owns what the others point into */
    const char *urls[REPLICAS_MAX];
    uint32_t n;
};

/* list: URLs separated by single spaces, as config has them; empty for none. ST_INVALID, with a message that
   shows no password: the store cannot have replicas, or one of them cannot be a replica of it (another kind
   of database, several hosts, other tables), or they are too many. */
enum status replica_urls_read(const char *store, const char *list, struct replica_urls *ret,
                              struct error *err) MUST_CHECK;
void replica_urls_release(struct replica_urls *u);

#endif
