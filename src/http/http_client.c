/* Clients that speak HTTP: a connection's requests as calls of the batch, its limits of size and of time.

   Requests are pipelined as commands are: all that has come is parsed, runs in one batch, and is answered in
   order. Each stands alone: the session's database and password are those of the request that runs. */
#include "http/http_client.h"

#include "base/mem.h"
#include "exec/block.h"
#include "exec/executor.h"
#include "http/api.h"
#include "server/batch.h"
#include "server/client.h"

/* A body may take a second more for each so many bytes of it. */
#define SLOWEST_BODY ((int64_t)16 << 10)

/* The status of an answer that is none yet. */
#define HTTP_CONTINUE 100

/* The shape of an answer is its dialect, and whether it has no body. */
#define SHAPE_BODILESS 0x80U /* it answers HEAD */

struct http_conn {
    struct http_in in;
    int64_t since_us; /* when the unfinished request began to come; 0: there is none */
    bool head_seen;   /* of the unfinished request: it may go on */
};

static struct http_conn *conn_of(const struct client *c)
{
    return c->protocol_data;
}

static struct http_api *api_of(const struct client *c)
{
    return c->session.executor->http;
}

static void open_http(struct client *c)
{
    struct http_conn *h = mem_zalloc(sizeof *h);
    http_init(&h->in);
    c->protocol_data = h;
    c->session.no_block = true;
    c->session.way = c->conn.tls ? WAY_HTTPS : WAY_HTTP;
}

static void release(struct client *c)
{
    mem_free(c->protocol_data);
}

/* ---- requests ---- */

static enum parse_result broken(struct client *c, struct arena *arena, const struct http_refusal *why,
                                struct batch_call *ret)
{
    ret->request = http_prepare_refusal(why, arena);
    c->session.executor->stats.closed[CLOSED_PROTOCOL]++;
    return PARSE_BROKEN;
}

/* The head is there, the body is to come. A client without the password is refused; one that asked whether to
   go on (Expect: 100-continue) gets that answer behind those to its earlier requests. */
static enum parse_result await_body(struct client *c, struct arena *arena, struct batch_call *ret)
{
    static const struct http_refusal go_on = {HTTP_CONTINUE, NULL, NULL};
    static const struct http_refusal stranger = {401, "unauthorized", "The password is missing, or wrong."};
    struct http_conn *h = conn_of(c);
    if (h->head_seen || !h->in.head_done)
        return PARSE_MORE;
    h->head_seen = true;
    if (!http_authorized(c->session.executor, http_header_seen(&h->in, HTTP_AUTHORIZATION), arena))
        return broken(c, arena, &stranger, ret);
    if (!http_wants_continue(&h->in))
        return PARSE_MORE;
    ret->request = http_prepare_refusal(&go_on, arena);
    return PARSE_CALL;
}

static struct http_limits limits(const struct config *config)
{
    return (struct http_limits){
        .max_uri = config->http_max_uri,
        .max_head = config->http_max_header,
        .max_body = config->http_max_body,
    };
}

static enum parse_result parse(struct client *c, struct arena *arena, struct batch_call *ret)
{
    const struct http_limits most = limits(c->session.executor->config);
    struct http_conn *h = conn_of(c);
    struct slice data = slice_of(c->in.p + c->parsed, c->in.len - c->parsed);
    struct http_request request;
    size_t used;
    if (data.n == 0)
        return PARSE_MORE;
    switch (http_parse(&h->in, data, &most, arena, &request, &used)) {
    case HTTP_MORE:
        if (!h->since_us)
            h->since_us = client_now(c);
        return await_body(c, arena, ret);
    case HTTP_BAD:
        return broken(c, arena, &h->in.refusal, ret);
    case HTTP_WHOLE:
        break;
    }
    c->parsed += used;
    h->since_us = 0;
    h->head_seen = false;
    if (!c->run.queued_us)
        c->run.queued_us = client_now(c);
    struct http_call *x = http_prepare(api_of(c), &request, arena);
    x->received_us = c->run.queued_us;
    ret->request = x;
    ret->db = x->db;
    ret->cmd = x->cmd;
    ret->argv = x->argv;
    ret->argc = x->argc;
    ret->alone = x->alone;
    ret->placed = x->token_name != NULL;
    ret->deadline_us = x->timeout_us ? x->received_us + x->timeout_us : 0;
    return PARSE_CALL;
}

static void parse_again(struct client *c)
{
    http_reset(&conn_of(c)->in);
    conn_of(c)->head_seen = false;
}

static size_t wanted(const struct client *c)
{
    return conn_of(c)->in.want;
}

static const struct http_call *request_of(const struct batch_call *call)
{
    return call->request;
}

static bool may_write(const struct batch_call *call)
{
    return request_of(call)->writes;
}

static bool goes_outside(const struct batch_call *call)
{
    return request_of(call)->outside;
}

static bool stops_workers(const struct batch_call *call)
{
    return http_stops_workers(api_of(call->client), request_of(call));
}

static bool needs_database(const struct batch_call *call)
{
    (void)call;
    return true;
}

static struct reads reads(const struct batch_call *call)
{
    return request_of(call)->reads;
}

static size_t declare(const struct batch_call *call)
{
    return http_declare(api_of(call->client), request_of(call));
}

/* ---- answers ---- */

static bool is_continue(const struct http_call *x)
{
    return x->refusal.status == HTTP_CONTINUE;
}

static struct command_result say_continue(struct client *c)
{
    buf_add_slice(&c->out, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
    return (struct command_result){0};
}

static struct command_result run(const struct batch_call *call, const struct error *write_err)
{
    struct client *c = call->client;
    struct http_call copy = *request_of(call), *x = &copy; /* it may run again, from what it was */
    if (is_continue(x))
        return say_continue(c);
    x->close |= client_is_last_call(c);
    struct command_result result = http_answer(api_of(c), &c->session, x, &c->out, write_err);
    if (block_waits_for_job(&c->session))
        return result;
    c->run.queued_us = 0;
    c->run.shape = (uint32_t)(http_dialect_of(x) | (x->request.method == HTTP_HEAD ? SHAPE_BODILESS : 0));
    if (x->close)
        client_drain(c);
    return result;
}

static struct command_result run_busy(const struct batch_call *call, const char *refusal)
{
    struct client *c = call->client;
    struct http_call copy = *request_of(call), *x = &copy;
    if (is_continue(x))
        return say_continue(c);
    x->close |= client_is_last_call(c);
    struct command_result result = http_answer_busy(api_of(c), &c->session, x, &c->out, refusal);
    c->run.queued_us = 0;
    if (x->close)
        client_drain(c);
    return result;
}

static void fail(struct client *c, uint32_t n, uint32_t of, const struct error *err, struct buf *out)
{
    for (uint32_t i = 0; i < n; i++)
        http_answer_failure(api_of(c), err, (enum http_dialect)(of & ~SHAPE_BODILESS), of & SHAPE_BODILESS,
                            out);
}

/* ---- time ---- */

static bool close_slow(struct client *c, enum closure why)
{
    c->session.executor->stats.closed[why]++;
    client_kill(c);
    return false;
}

static bool tick(struct client *c, int64_t now_us)
{
    static const struct http_refusal late = {408, "request_timeout", "The request took too long to come."};
    const struct config *config = c->session.executor->config;
    const struct http_conn *h = conn_of(c);
    int64_t patience = (int64_t)config->http_request_timeout_ms * 1000;
    int64_t idle = (int64_t)config->http_timeout_ms * 1000;
    if (client_is_unread(c) && now_us - c->flushed_us > patience && now_us - c->session.active_us > patience)
        return close_slow(c, CLOSED_UNREAD);
    if (!client_is_idle(c))
        return true;
    int64_t body_us = (int64_t)(c->in.len - c->parsed) / SLOWEST_BODY * 1000000;
    if (h->since_us && now_us - h->since_us > patience + body_us) {
        struct arena arena = {0};
        http_answer(api_of(c), &c->session, http_prepare_refusal(&late, &arena), &c->out, NULL);
        arena_release(&arena);
        c->session.executor->stats.closed[CLOSED_IDLE]++;
        client_drain(c);
        return false;
    }
    if (!h->since_us && !c->run.queued_us && now_us - c->session.active_us > idle)
        return close_slow(c, CLOSED_IDLE);
    return true;
}

static size_t memory(const struct client *c)
{
    (void)c;
    return sizeof(struct http_conn);
}

/* ---- batches whose outcomes are kept ---- */

static void start(struct executor *e)
{
    e->http = http_api_new(e);
}

static void end(struct executor *e)
{
    http_api_free(e->http);
    e->http = NULL;
}

static void settle(struct executor *e)
{
    http_settle_outcomes(e->http);
}

static void fail_outcomes(struct executor *e, int64_t from, const struct error *err)
{
    http_fail_outcomes(e->http, from, err);
}

static uint64_t mark(const struct executor *e)
{
    return http_outcomes_made(e->http);
}

static void rewind_outcomes(struct executor *e, uint64_t to)
{
    http_drop_outcomes(e->http, to);
}

static const struct protocol_shared outcomes = {
    .start = start,
    .end = end,
    .settle = settle,
    .fail = fail_outcomes,
    .mark = mark,
    .rewind = rewind_outcomes,
};

/* ---- connections ---- */

#define REFUSED(status, body)                                                                                \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body
#define FULL                                                                                                 \
    REFUSED("503 Service Unavailable\r\nRetry-After: 1",                                                     \
            "{\"error\":\"too_many_connections\",\"message\":\"As many connections as allowed are open: "    \
            "try again later.\"}")
#define DENIED                                                                                               \
    REFUSED("403 Forbidden",                                                                                 \
            "{\"error\":\"protected_mode\",\"message\":\"Without a password only this machine is served: "   \
            "set requirepass, or protected-mode no.\"}")

static int64_t max_clients(const struct config *config)
{
    return config->http_max_connections;
}

const struct protocol http_protocol = {
    .tls_name = "http/1.1",
    .full = {FULL, sizeof FULL - 1},
    .denied = {DENIED, sizeof DENIED - 1},
    .max_clients = max_clients,
    .open = open_http,
    .release = release,
    .tick = tick,
    .memory = memory,
    .lingers = true,
    .parse = parse,
    .parse_again = parse_again,
    .wanted = wanted,
    .may_write = may_write,
    .goes_outside = goes_outside,
    .stops_workers = stops_workers,
    .needs_database = needs_database,
    .reads = reads,
    .declare = declare,
    .run = run,
    .run_busy = run_busy,
    .fail = fail,
    .shared = &outcomes,
};
