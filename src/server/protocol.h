/* What differs between clients by the language they speak: how input becomes calls of the batch, how a call
   is run and answered. All else (reading, batches, waiting for commits, sending) is the same for everyone. */
#ifndef LARDER_SERVER_PROTOCOL_H
#define LARDER_SERVER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/command.h"

struct batch_call;
struct buf;
struct client;
struct worker;

enum parse_result {
    PARSE_MORE,  /* not whole yet */
    PARSE_EMPTY, /* something that asks for nothing has been skipped */
    PARSE_CALL,  /* *ret */
    PARSE_BROKEN /* *ret tells the client what is wrong; what follows cannot be understood */
};

struct protocol {
    void (*open)(struct client *c);
    void (*release)(struct client *c);

    /* Reads on in the client's input, from c->parsed, which moves behind what *ret is. What *ret refers to is
       the client's input, or in the batch's arena. */
    enum parse_result (*parse)(struct worker *w, struct client *c, struct batch_call *ret);

    /* What was parsed has not run: it will be parsed again, from its first byte. */
    void (*parse_again)(struct client *c);

    /* How many bytes, from c->parsed on, the input should have room for (a hint). */
    size_t (*wanted)(const struct client *c);

    /* Whether the call may write, as things are now. */
    bool (*may_write)(const struct batch_call *call);

    /* Whether it may change more than rows and its session, as things are now: see command_goes_outside. */
    bool (*goes_outside)(const struct batch_call *call);

    /* Whether the other workers have to stand still while it runs, as things are now. */
    bool (*stops_workers)(const struct batch_call *call);

    /* Runs the call and appends its answer to the client's output. Returns what has to follow. */
    struct command_result (*run)(struct worker *w, const struct batch_call *call,
                                 const struct error *write_err);

    /* What has to be known of the answer that was given last, if an error has to take its place. NULL:
     * nothing.
     */
    uint32_t (*shape)(const struct client *c);

    /* Adds, to out, errors in the place of n answers of one shape that a failed commit has made untrue. */
    void (*fail)(struct worker *w, struct client *c, uint32_t n, uint32_t shape, const struct error *err,
                 struct buf *out);

    /* Before a transaction that may have to be run again, and back to that (retry.h). NULL: there is nothing
       to remember. */
    void (*keep)(struct client *c);
    void (*take_back)(struct client *c);

    /* Once a second; false: the client has been closed. */
    bool (*tick)(struct client *c, int64_t now_us);

    size_t (*memory)(const struct client *c);

    /* A client that is sent away may be in the middle of a long request, and looks for the answer only when
       it has sent all of it: closing at once would have the system drop that answer. */
    bool lingers;
};

extern const struct protocol resp_protocol;
extern const struct protocol http_protocol;

#endif
