/* The sessions of the database that a server has, and an engine on each: for every worker one on the database
   itself, and one on each of its replicas. */
#ifndef LARDER_SESSIONS_H
#define LARDER_SESSIONS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "config/config.h"
#include "engine/engine.h"
#include "exec/executor.h"
#include "replica/replicas.h"
#include "replica/urls.h"

struct sessions {
    struct store *stores[WORKERS_MAX];
    struct engine *engines[WORKERS_MAX];
    uint32_t n;
    struct store **replica_stores; /* of worker i for replica j: [i * each + j] */
    struct engine **replica_engines;
    uint32_t each;
    struct replicas *replicas;    /* NULL: there are none */
    struct store_options further; /* of sessions that are opened later, to read */
};

/* Several servers, and several workers, may use the database at once. */
bool sessions_are_shared(const struct config *c);

/* Opens them, and starts what follows the replicas. A database server that is not there yet is waited for, as
   long as store-wait says; *ret_stop: a signal of stops that ends the process came meanwhile. On failure,
   too, they are the caller's to close. They borrow the URLs. */
enum status sessions_open(const struct config *c, const struct replica_urls *urls, const sigset_t *stops,
                          struct sessions *s, bool *ret_stop, struct error *err) MUST_CHECK;
void sessions_close(struct sessions *s);

/* One more that only reads, for a thread that answers queries (a query_open_fn; arg is the struct sessions).
   From any thread while they are open. */
enum status sessions_open_reader(void *arg, bool (*away)(void *arg), void *away_arg, struct store **ret,
                                 struct error *err) MUST_CHECK;

#endif
