/* Clients that speak HTTP: a connection's requests as calls of the batch, its limits of size and of time.

   Requests are pipelined as commands are: all that has come is parsed, runs in one batch, and is answered in
   order. Each stands alone: the session's database and password are those of the request that runs. */
#include "server/http_client.h"

#include "base/mem.h"
#include "http/api.h"
#include "server/worker_internal.h"

/* A body may take a second more for each so many bytes of it. */
#define SLOWEST_BODY ((int64_t)16 << 10)

/* The status of an answer that is none yet. */
#define HTTP_CONTINUE 100

/* What running requests changes. */
struct http_progress {
    int64_t queued_us; /* when the oldest request that has not run yet was whole; 0: there is none */
    uint32_t shape;    /* of the last answer: its dialect, and whether it has no body */
};

#define SHAPE_BODILESS 0x80U /* it answers HEAD */

struct http_conn {
    struct http_in in;
    int64_t since_us; /* when the unfinished request began to come; 0: there is none */
    bool head_seen;   /* of the unfinished request: it may go on */
    struct http_progress now, before;
};

static void open_http(struct client *c)
{
    c->http = mem_zalloc(sizeof *c->http);
    http_init(&c->http->in);
    c->session.no_block = true;
    c->session.way = c->conn.tls ? WAY_HTTPS : WAY_HTTP;
}

static void release(struct client *c)
{
    mem_free(c->http);
    atomic_fetch_sub_explicit(&c->worker->workers->nhttp, 1, memory_order_relaxed);
}

/* ---- requests ---- */

static enum parse_result broken(struct worker *w, struct batch_call *ret, const struct http_refusal *why)
{
    ret->http = http_prepare_refusal(why, &w->batch.arena);
    w->executor.stats.closed[CLOSED_PROTOCOL]++;
    return PARSE_BROKEN;
}

/* The head is there, the body is to come: only from those who may, and they are told to go on if they asked,
   behind the answers to what they asked before. */
static enum parse_result expect_body(struct worker *w, struct client *c, struct batch_call *ret)
{
    static const struct http_refusal go_on = {HTTP_CONTINUE, NULL, NULL};
    static const struct http_refusal stranger = {401, "unauthorized", "The password is missing, or wrong."};
    struct http_conn *h = c->http;
    if (h->head_seen || !h->in.head_done)
        return PARSE_MORE;
    h->head_seen = true;
    if (!http_authorized(&w->executor, http_header_seen(&h->in, HTTP_AUTHORIZATION), &w->batch.arena))
        return broken(w, ret, &stranger);
    if (!http_wants_continue(&h->in))
        return PARSE_MORE;
    ret->http = http_prepare_refusal(&go_on, &w->batch.arena);
    return PARSE_CALL;
}

static enum parse_result parse(struct worker *w, struct client *c, struct batch_call *ret)
{
    const struct config *config = worker_config(w);
    const struct http_limits limits = {
        .max_uri = config->http_max_uri,
        .max_head = config->http_max_header,
        .max_body = config->http_max_body,
    };
    struct http_conn *h = c->http;
    struct slice data = slice_of(c->in.p + c->parsed, c->in.len - c->parsed);
    struct http_request request;
    size_t used;
    if (data.n == 0)
        return PARSE_MORE;
    switch (http_parse(&h->in, data, &limits, &w->batch.arena, &request, &used)) {
    case HTTP_MORE:
        if (!h->since_us)
            h->since_us = worker_now(w);
        return expect_body(w, c, ret);
    case HTTP_BAD:
        return broken(w, ret, &h->in.refusal);
    case HTTP_WHOLE:
        break;
    }
    c->parsed += used;
    h->since_us = 0;
    h->head_seen = false;
    if (!h->now.queued_us)
        h->now.queued_us = worker_now(w);
    struct http_call *x = http_prepare(w->http, &request, &w->batch.arena);
    x->received_us = h->now.queued_us;
    c->session.state.db = x->db; /* where its key is looked for ahead of time */
    ret->http = x;
    ret->cmd = x->cmd;
    ret->argv = x->argv;
    ret->argc = x->argc;
    ret->alone = x->alone;
    ret->deadline_us = x->timeout_us ? x->received_us + x->timeout_us : 0;
    return PARSE_CALL;
}

static void parse_again(struct client *c)
{
    http_reset(&c->http->in);
    c->http->head_seen = false;
}

static size_t wanted(const struct client *c)
{
    return c->http->in.want;
}

static bool may_write(const struct batch_call *call)
{
    return call->http->writes;
}

static bool goes_outside(const struct batch_call *call)
{
    return call->http->outside;
}

static bool stops_workers(const struct batch_call *call)
{
    return http_stops_workers(call->client->worker->http, call->http);
}

/* ---- answers ---- */

static struct command_result run(struct worker *w, const struct batch_call *call,
                                 const struct error *write_err)
{
    struct client *c = call->client;
    struct http_call copy = *call->http, *x = &copy; /* it may run again, from what it was */
    if (x->refusal.status == HTTP_CONTINUE) {
        buf_add_slice(&c->out, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
        return (struct command_result){0};
    }
    x->close |= w->stop;
    struct command_result result = http_answer(w->http, &c->session, x, &c->out, write_err);
    c->http->now.queued_us = 0;
    c->http->now.shape =
        (uint32_t)(http_dialect_of(x) | (x->request.method == HTTP_HEAD ? SHAPE_BODILESS : 0));
    if (x->close)
        client_drain(c);
    return result;
}

static uint32_t shape(const struct client *c)
{
    return c->http->now.shape;
}

static void fail(struct worker *w, struct client *c, uint32_t n, uint32_t of, const struct error *err,
                 struct buf *out)
{
    (void)c;
    for (uint32_t i = 0; i < n; i++)
        http_answer_failure(w->http, err, (enum http_dialect)(of & ~SHAPE_BODILESS), of & SHAPE_BODILESS,
                            out);
}

static void keep(struct client *c)
{
    c->http->before = c->http->now;
}

static void take_back(struct client *c)
{
    c->http->now = c->http->before;
}

/* ---- time ---- */

static bool close_slow(struct client *c, enum closure why)
{
    c->worker->executor.stats.closed[why]++;
    client_kill(c);
    return false;
}

static bool tick(struct client *c, int64_t now_us)
{
    static const struct http_refusal late = {408, "request_timeout", "The request took too long to come."};
    const struct config *config = worker_config(c->worker);
    const struct http_conn *h = c->http;
    int64_t patience = (int64_t)config->http_request_timeout_ms * 1000;
    int64_t idle = (int64_t)config->http_timeout_ms * 1000;
    bool unread = c->sent < held_free_output(c->worker, c);
    if (unread && now_us - c->flushed_us > patience && now_us - c->session.active_us > patience)
        return close_slow(c, CLOSED_UNREAD);
    if (!client_open(c) || c->state == CLIENT_PAUSED || c->out.len > c->sent)
        return true;
    int64_t body_us = (int64_t)(c->in.len - c->parsed) / SLOWEST_BODY * 1000000;
    if (h->since_us && now_us - h->since_us > patience + body_us) {
        struct arena arena = {0};
        http_answer(c->worker->http, &c->session, http_prepare_refusal(&late, &arena), &c->out, NULL);
        arena_release(&arena);
        c->worker->executor.stats.closed[CLOSED_IDLE]++;
        client_drain(c);
        return false;
    }
    if (!h->since_us && !h->now.queued_us && now_us - c->session.active_us > idle)
        return close_slow(c, CLOSED_IDLE);
    return true;
}

static size_t memory(const struct client *c)
{
    return sizeof *c->http;
}

const struct protocol http_protocol = {
    .open = open_http,
    .release = release,
    .parse = parse,
    .parse_again = parse_again,
    .wanted = wanted,
    .may_write = may_write,
    .goes_outside = goes_outside,
    .stops_workers = stops_workers,
    .run = run,
    .shape = shape,
    .fail = fail,
    .keep = keep,
    .take_back = take_back,
    .tick = tick,
    .memory = memory,
    .lingers = true,
};

/* ---- who comes ---- */

#define REFUSED(status, body)                                                                                \
    SLICE("HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body)

void http_turn_away(struct conn *conn)
{
    conn_refuse(conn, REFUSED("503 Service Unavailable\r\nRetry-After: 1",
                              "{\"error\":\"too_many_connections\",\"message\":\"As many connections as "
                              "allowed are open: try again later.\"}"));
}

/* Whether there is room for one more, which is then counted. */
static bool enter(struct worker *w)
{
    uint32_t was = atomic_fetch_add_explicit(&w->workers->nhttp, 1, memory_order_relaxed);
    int64_t most = worker_config(w)->http_max_connections;
    if (most == 0 || was < (uint64_t)most)
        return true;
    atomic_fetch_sub_explicit(&w->workers->nhttp, 1, memory_order_relaxed);
    return false;
}

void http_welcome(struct worker *w, struct conn conn)
{
    const struct config *config = worker_config(w);
    struct executor *executor = &w->executor;
    if (config->protected_mode && config->requirepass[0] == '\0' && !conn_is_loopback(&conn)) {
        executor->stats.rejected[REJECTED_PROTECTED]++;
        conn_refuse(
            &conn, REFUSED("403 Forbidden",
                           "{\"error\":\"protected_mode\",\"message\":\"Without a password only this machine "
                           "is served: set requirepass, or protected-mode no.\"}"));
    } else if (!enter(w)) {
        executor->stats.rejected[REJECTED_MAXCLIENTS]++;
        http_turn_away(&conn);
    } else {
        client_new(w, conn, &http_protocol);
        return;
    }
    worker_uncount(w);
}
