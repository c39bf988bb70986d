/* What differs between clients by the language they speak: how input becomes calls of the batch, how a call
   is run and answered. All else (reading, batches, waiting for commits, sending) is the same for everyone.

   The server knows no protocol but through this table; which ones are spoken, main.c says (workers_new). */
#ifndef LARDER_SERVER_PROTOCOL_H
#define LARDER_SERVER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "exec/command.h"
#include "exec/reads.h"

struct arena;
struct batch_call;
struct buf;
struct client;
struct config;
struct engine_ahead;
struct executor;
struct worker;

enum parse_result {
    PARSE_MORE,  /* not whole yet */
    PARSE_EMPTY, /* something that asks for nothing has been skipped */
    PARSE_CALL,  /* *ret */
    PARSE_BROKEN /* *ret tells the client what is wrong; what follows cannot be understood */
};

struct protocol {
    /* ---- connections ---- */

    const char *tls_name; /* what TLS calls it (ALPN); NULL: nothing */
    struct slice full;    /* what a connection is told that is one too many ... */
    struct slice denied;  /* ... and one that protected mode turns away */

    /* How many clients of all workers may speak it at once, 0 as many as may come. NULL: 0. */
    int64_t (*max_clients)(const struct config *config);

    /* ---- a client ---- */

    void (*open)(struct client *c);
    void (*release)(struct client *c);

    /* Once a second; false: the client has been closed. */
    bool (*tick)(struct client *c, int64_t now_us);

    size_t (*memory)(const struct client *c);

    /* A client that is sent away may be in the middle of a long request, and looks for the answer only when
       it has sent all of it: closing at once would have the system drop that answer. */
    bool lingers;

    /* ---- its input ---- */

    /* Reads on in the client's input, from c->parsed, which moves behind what *ret is. Fills cmd, argv, argc
       of *ret, and of the others what is not so already; nothing of the session changes. What *ret refers to
       is the client's input, or in the arena, which lives as long as the batch. */
    enum parse_result (*parse)(struct client *c, struct arena *arena, struct batch_call *ret);

    /* What was parsed has not run: it will be parsed again, from its first byte. */
    void (*parse_again)(struct client *c);

    /* How many bytes, from c->parsed on, the input should have room for (a hint). */
    size_t (*wanted)(const struct client *c);

    /* Of a request that is not whole: up to max rows that it will ask for and that it has not told of before.
       False: none. NULL: never. */
    bool (*ahead)(struct client *c, struct arena *arena, size_t max, struct engine_ahead *ret);

    /* ---- a call, as things are now ---- */

    /* Whether it may write. */
    bool (*may_write)(const struct batch_call *call);

    /* Whether it may change more than rows and its session: see command_goes_outside. */
    bool (*goes_outside)(const struct batch_call *call);

    /* Whether the other workers have to stand still while it runs. */
    bool (*stops_workers)(const struct batch_call *call);

    /* Whether it may ask the database for anything. */
    bool (*needs_database)(const struct batch_call *call);

    /* What it may be read from. */
    struct reads (*reads)(const struct batch_call *call);

    /* Declares the keys that it will use (exec/declare.h). Returns how many. */
    size_t (*declare)(const struct batch_call *call);

    /* Runs the call and appends its answer to the client's output. Returns what has to follow. It may be run
       again: what it changes is the session's state, c->run and the output. */
    struct command_result (*run)(const struct batch_call *call, const struct error *write_err);

    /* A script is busy, inside whose transaction, or outside of any, the call is answered: that it cannot run
       now (refusal: "BUSY ..."), but for what may (command_run_busy). */
    struct command_result (*run_busy)(const struct batch_call *call, const char *refusal);

    /* ---- commits that fail ---- */

    /* Adds, to out, errors in the place of n answers of one shape (c->run.shape when they were given) that a
       failed commit has made untrue. */
    void (*fail)(struct client *c, uint32_t n, uint32_t shape, const struct error *err, struct buf *out);

    /* ---- what its clients have in common on one worker; NULL: nothing ---- */

    const struct protocol_shared *shared;
};

/* Answers that are kept beyond their clients, for one. */
struct protocol_shared {
    void (*start)(struct executor *e);
    void (*end)(struct executor *e); /* when the last client has gone */

    /* Commits have become durable; those of this ticket and behind it have failed. */
    void (*settle)(struct executor *e);
    void (*fail)(struct executor *e, int64_t from, const struct error *err);

    /* How much there is; back to that, because the transaction is run again. */
    uint64_t (*mark)(const struct executor *e);
    void (*rewind)(struct executor *e, uint64_t mark);
};

/* What is spoken where: at port, tls-port and unixsocket, at http-port and tls-http-port. A table of
   protocols has one for each; NULL: those ports stay closed. */
enum { PROTOCOL_RESP, PROTOCOL_HTTP, PROTOCOLS };

extern const struct protocol resp_protocol;

/* ---- for the workers: what concerns every protocol ---- */

void protocols_start(struct worker *w);
void protocols_end(struct worker *w);
void protocols_settle(struct worker *w);
void protocols_fail(struct worker *w, int64_t from, const struct error *err);
void protocols_mark(struct worker *w, uint64_t ret[PROTOCOLS]);
void protocols_rewind(struct worker *w, const uint64_t marks[PROTOCOLS]);

#endif
