/* The commands of one turn of the loop, of all clients, in the order they came: gathered while sockets are
   read (gather.h), then run in one transaction or a few (transaction.h). */
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
struct worker;

struct batch_call {
    struct client *client;
    const struct command *cmd; /* NULL: unknown, or (with argc 0) a protocol error to reply */
    struct slice *argv;
    int argc;
    uint32_t db;   /* where its keys are, so far as that is known before the calls ahead of it have run */
    void *request; /* the protocol's own: what the call stands for; NULL: nothing more than the command */
    bool alone;    /* needs a transaction of its own */
    bool placed;   /* its answer tells where in the database's log it was: see command_result.token */
    /* Where it reads, as of the last routing (legs.h). */
    int16_t leg;         /* 0: the primary, i: the replica i, LEG_MEMORY, ROUTE_NONE: nobody can answer it */
    bool off_memory;     /* memory has failed it */
    bool on_primary;     /* a replica has failed it: it goes to no other */
    bool reads;          /* it only reads ... */
    uint8_t mode;        /* ... in this one of enum read_mode */
    int64_t as_of_us;    /* from memory: what it reads is true as of then */
    int64_t deadline_us; /* from then on it runs, and says that it is too late, rather than wait; 0: none */
    bool writes;         /* it may */
    bool keyed;          /* names a key ... */
    bool one_row;        /* ... and hardly asks for anything but its row */
    struct prefetch key; /* ... that the view prefetches */
    size_t end;          /* where it ends in the client's input */
};

struct batch {
    struct batch_call *calls;
    size_t ncalls, cap_calls;
    struct client **clients; /* each once */
    size_t nclients, cap_clients;
    struct arena arena; /* of the argvs */
    bool write;         /* a call may write */
    bool placed;        /* a call's answer tells where it was */
    uint32_t *claimed;  /* of struct workers' claims, those that are this batch's */
    size_t nclaimed, cap_claimed;
    /* Running it (transaction.h). */
    size_t at;     /* the calls before this one have been run for good */
    size_t now;    /* this one runs */
    size_t window; /* where reads are near, the rows of calls before this one have been read; else SIZE_MAX */
    int tries;     /* so often the transaction that begins there has come to nothing */
    bool pending;  /* it has, and runs again when a timer fires: no call is added until the batch has ended */
    bool due;      /* the timer has fired */
};

void batch_release(struct batch *b);

#endif
