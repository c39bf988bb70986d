/* The commands of one turn of the loop, of all clients, in the order they came: gathered while sockets are
   read, then run in one transaction; the replies leave when its commit is durable. */
#ifndef LARDER_SERVER_BATCH_H
#define LARDER_SERVER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "engine/view.h"

struct client;
struct command;
struct http_call;
struct worker;

struct batch_call {
    struct client *client;
    const struct command *cmd; /* NULL: unknown, or (with argc 0) a protocol error to be told */
    struct slice *argv;
    int argc;
    struct http_call *http; /* the request that it stands for, when it came by HTTP */
    bool alone;             /* needs a transaction of its own */
    int64_t deadline_us; /* from then on it runs, and says that it is too late, rather than wait; 0: none */
    bool keyed;          /* names a key ... */
    struct prefetch key; /* ... that the view expects */
    size_t end;          /* where it ends in the client's input */
};

struct batch {
    struct batch_call *calls;
    size_t ncalls, cap_calls;
    struct client **clients; /* each once */
    size_t nclients, cap_clients;
    struct arena arena; /* of the argvs */
    bool write;         /* a call may write */
};

void batch_release(struct batch *b);

/* Parses what the client has sent and adds it to the batch, up to a fair share. */
void batch_gather(struct worker *w, struct client *c);

/* Learns which commits have become durable, or have failed, and lets go of the replies that waited. */
void batch_progress(struct worker *w);

/* Runs what was gathered, commits, and sends what need not wait. */
void batch_run(struct worker *w);

/* Over tables that others write to: serves blocked clients with what came through another server. Whether any
   was served, or would have been if others had not been in the way: it is worth another look soon. */
bool batch_poll(struct worker *w);

#endif
