/* The HTTP API: from a request to the command that it stands for, and from the command to the answer.

   http_prepare finds the route, decodes the target and the body and says which command the request comes down
   to: one of Redis' (POST /, GET /get/k), or one of the "http" family, which is in no public table (http|get,
   http|put, ...). http_answer runs it like any other command, with a sink of its own, and appends the whole
   answer. A request whose decoding failed is a call, too: one that answers what is wrong.

   The table of routes (routes.c) is what dispatches and what /openapi.json is written from. */
#ifndef LARDER_HTTP_API_H
#define LARDER_HTTP_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "exec/reads.h"
#include "proto/http.h"

struct command;
struct http_api; /* what requests share; one for each server */
struct route;
struct executor;
struct session;

/* Parameters of a query, those of the table in routes.c. */
enum http_param {
    PARAM_DB,
    PARAM_CONSISTENT,
    PARAM_ENCODING,
    PARAM_TTL,
    PARAM_TTL_MS,
    PARAM_EXPIRE_AT,
    PARAM_PREFIX,
    PARAM_MATCH,
    PARAM_TYPE,
    PARAM_FROM,
    PARAM_TO,
    PARAM_REVERSE,
    PARAM_VALUES,
    PARAM_LIMIT,
    PARAM_CURSOR,
    PARAM_AT,
    PARAM_SELECT,
    PARAM_ORDER,
    PARAM_INDEX,
    PARAM_SCAN,
    PARAM_INT64,
    PARAM_ATOMIC,
    PARAM_REPLACE,
    HTTP_PARAMS
};

/* How errors are told: by a code and a message as the whole answer, as the text that Redis has, or by a code
   and a message for one operation of a batch. */
enum http_dialect { DIALECT_KEYS, DIALECT_UPSTASH, DIALECT_BATCH };

struct http_page {
    int64_t limit, cursor;
};

/* A parameter that is none of those: a column's filter, of a route that has such. */
struct http_filter {
    struct slice name, value; /* decoded */
};

struct http_call {
    struct http_request request;
    struct http_refusal refusal; /* status is not 0: all there is to say */
    bool in_operation;           /* it is about one operation of a batch ... */
    size_t operation;            /* ... this one */
    struct slice extra;          /* headers that go with it */
    const struct route *route;
    struct slice path[2];            /* {key}, {field}, ...: decoded */
    struct slice coded[2];           /* the same as they came */
    struct slice query[HTTP_PARAMS]; /* decoded; p is NULL: not there */
    struct http_filter *filters;
    size_t nfilters;
    uint32_t db;
    struct http_page page;     /* of a collection's items */
    const struct command *cmd; /* NULL: nothing that concerns the database, or an unknown command */
    struct slice *argv;
    int argc;
    bool writes;              /* may write ... */
    bool must_write;          /* ... by a command that does, other than a script */
    bool close;               /* the connection ends behind the answer */
    bool alone;               /* needs a transaction of its own */
    bool outside;             /* has a command that cannot be taken back, see command_goes_outside */
    bool stops_workers;       /* as CMD_STOPS_WORKERS */
    struct reads reads;       /* what it may be read from */
    bool only_reads;          /* POST /pipeline: all of its commands do */
    bool tells_read;          /* the answer to a read says where from */
    struct slice token;       /* that it comes with; empty: none ... */
    struct position position; /* ... and its position */
    const char *token_name;   /* the header of the answer's token; NULL: it has none */
    int64_t received_us;      /* monotonic */
    int64_t timeout_us; /* so long after that it is to be answered, one way or the other; 0: no matter when */
    void *detail;       /* what the route's own functions made of the body */
    struct arena *arena; /* the batch's */
};

struct http_api *http_api_new(struct executor *s);
void http_api_free(struct http_api *a);

/* The request as a call, in arena. The request's slices stay where they are until the batch is over. */
struct http_call *http_prepare(struct http_api *a, const struct http_request *r, struct arena *arena);

/* The same for one that could not be read; the connection ends behind the answer. */
struct http_call *http_prepare_refusal(const struct http_refusal *why, struct arena *arena);

/* Declares the keys that a call will use, as declare.h does for commands. Returns how many. */
size_t http_declare(const struct http_api *a, const struct http_call *x);

/* Runs a call and appends the answer to out. Returns what has to follow. */
struct command_result http_answer(struct http_api *a, struct session *s, struct http_call *x, struct buf *out,
                                  const struct error *write_err);

/* The same while a script is busy: the answer is 503 `busy`, but for what may run (command_run_busy) and what
   needs no database. */
struct command_result http_answer_busy(struct http_api *a, struct session *s, struct http_call *x,
                                       struct buf *out, const char *refusal);

/* How far behind the beginning of a call's whole answer the room for its token is; 0: there is none. */
uint16_t http_token_place(const struct http_call *x, struct slice answer);

/* Whether other workers have to stand still while the call runs. */
bool http_stops_workers(const struct http_api *a, const struct http_call *x);

/* Which one the call's answer is in. */
enum http_dialect http_dialect_of(const struct http_call *x);

/* Appends the answer to a call whose commit has failed; bodiless: to HEAD. */
void http_answer_failure(struct http_api *a, const struct error *err, enum http_dialect dialect,
                         bool bodiless, struct buf *out);

/* For batches whose clients do not wait, and whose answers are kept: how many there have been; forgets those
   from one on, because they will be run again. */
uint64_t http_outcomes_made(const struct http_api *a);
void http_drop_outcomes(struct http_api *a, uint64_t from);

/* What has become durable is done; the commits of this ticket and of those
   behind it have failed. */
void http_settle_outcomes(struct http_api *a);
void http_fail_outcomes(struct http_api *a, int64_t from, const struct error *err);

/* Whether this Authorization header (p is NULL: none) opens the server. */
bool http_authorized(const struct executor *s, struct slice header, struct arena *arena);

#endif
