/* What a transaction did to connections is taken back, before it is run again (exec/undo.h): what it has said
   to clients by then, where their input was, which replies wait. Nothing of it has left before it is
   committed. */
#ifndef LARDER_SERVER_UNDO_H
#define LARDER_SERVER_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/client.h"
#include "server/protocol.h"

struct worker;

struct worker_undo {
    bool on;
    struct client_before *clients;
    size_t n, cap;
    uint64_t marks[PROTOCOLS]; /* of what their clients have in common */
};

void worker_undo_release(struct worker_undo *r);

void worker_undo_begin(struct worker *w);

/* Before the first thing that happens to a client. */
void worker_undo_keep(struct worker *w, struct client *c);

/* Everything is as it was at worker_undo_begin ... */
void worker_undo_take_back(struct worker *w);

/* ... or what has happened stands. */
void worker_undo_end(struct worker *w);

#endif
