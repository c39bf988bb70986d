/* A transaction that may have to be run again (exec/retry.h): what it has said to clients by then, where
   their input was, which replies wait. Nothing of it has left before it is committed. */
#ifndef LARDER_SERVER_RETRY_H
#define LARDER_SERVER_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/client.h"
#include "server/protocol.h"

struct worker;

struct worker_retry {
    bool on;
    struct client_before *clients;
    size_t n, cap;
    uint64_t marks[PROTOCOLS]; /* of what their clients have in common */
};

void worker_retry_release(struct worker_retry *r);

void worker_retry_begin(struct worker *w);

/* Before the first thing that happens to a client. */
void worker_retry_keep(struct worker *w, struct client *c);

/* Everything is as it was at worker_retry_begin ... */
void worker_retry_take_back(struct worker *w);

/* ... or what has happened stands. */
void worker_retry_end(struct worker *w);

#endif
