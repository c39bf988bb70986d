/* A client's output: sending what may leave, within its limits, and what happens when all of it has left. */
#include "base/vec.h"
#include "server/client_internal.h"
#include "server/worker_internal.h"

/* What need not wait for a commit. */
static size_t sendable(const struct client *c)
{
    return held_free_output(c->worker, c) - c->sent;
}

static void drop_sent(struct client *c)
{
    c->out_base += c->sent;
    buf_consume(&c->out, c->sent);
    c->sent = 0;
}

void client_flush_later(struct client *c)
{
    struct client_vec *flush = &c->worker->flush;
    c->to_flush = true;
    VEC_PUSH(flush->items, flush->len, flush->cap) = c;
}

bool client_over_limit(struct client *c)
{
    const struct config *config = worker_config(c->worker);
    int64_t now_us = worker_now(c->worker);
    size_t n = client_backlog(c);
    bool over = config->output_hard && n > config->output_hard;
    if (config->output_soft && n > config->output_soft) {
        if (c->soft_since_us == 0)
            c->soft_since_us = now_us;
        over |= (uint64_t)(now_us - c->soft_since_us) / 1000 >= config->output_soft_ms;
    } else {
        c->soft_since_us = 0;
    }
    if (!over)
        return false;
    client_log_close(c, LOG_WARNING, "closing a client over client-output-buffer-limit");
    c->worker->executor.stats.closed[CLOSED_OUTPUT_LIMIT]++;
    client_kill(c);
    return true;
}

/* Whether there is something for it to do that has been sent already. */
static bool has_work(const struct client *c)
{
    return c->in_batch || c->run.state == CLIENT_READY || c->run.state == CLIENT_PAUSED;
}

/* All output has left. */
static void drained(struct client *c)
{
    drop_sent(c);
    if (c->out.cap > KEEP_BUFFER * 2)
        buf_shrink(&c->out, KEEP_BUFFER);
    conn_watch_writing(&c->conn, false);
    c->soft_since_us = 0;
    if (c->run.state == CLIENT_DRAINING && c->broken && !c->eof && c->protocol->lingers) {
        conn_end_output(&c->conn);
        client_change_state(c, CLIENT_LINGERING);
    } else if (c->run.state == CLIENT_DRAINING || (c->eof && !has_work(c))) {
        client_kill(c);
    }
}

void client_send(struct client *c)
{
    size_t n = 0;
    if (c->run.state == CLIENT_DEAD || !sendable(c))
        return;
    switch (conn_write(&c->conn, c->out.p + c->sent, sendable(c), &n)) {
    case CONN_OK:
        c->sent += n;
        c->flushed_us = worker_now(c->worker);
        c->worker->executor.stats.net_out += n;
        c->worker->executor.stats.writes++;
        break;
    case CONN_AGAIN:
        break;
    default:
        client_kill(c);
    }
}

void client_flush(struct client *c)
{
    client_send(c);
    if (c->run.state == CLIENT_DEAD)
        return;
    if (c->run.state == CLIENT_STALLED && !c->in_batch && !client_must_stall(c))
        client_change_state(c, CLIENT_READY);
    if (client_backlog(c) == 0) {
        drained(c);
        return;
    }
    if (client_over_limit(c))
        return;
    if (c->sent > KEEP_BUFFER && c->sent > c->out.len / 2)
        drop_sent(c);
    conn_watch_writing(&c->conn, sendable(c) > 0);
}

void client_on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    if (!busy_defers(c->worker, c))
        client_flush(c);
}
