/* Nodes of a Galera cluster: MariaDB servers that replicate to each other, any of which can be written to.
   What the store does differently there is in store/remote/remote_galera.c. */
#ifndef LARDER_SQL_GALERA_H
#define LARDER_SQL_GALERA_H

#include "sql/remote.h"

/* Queues the question whether the server is a node: c->galera.on says so after the next run. */
void galera_ask(struct remote *c);

/* Asks a node how it is, one round trip. ST_IO: it does not have all that the cluster has committed, or will
   not have (it is joining, is a donor, is desynchronized, or has lost the others). */
enum status galera_check(struct remote *c, struct error *err) MUST_CHECK;

/* What a session on a node needs: reads that begin a transaction wait until the node has what was committed
   anywhere before. */
enum status galera_set_up(struct remote *c, struct error *err) MUST_CHECK;

#endif
