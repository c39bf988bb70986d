#include "server/client.h"

#include <assert.h>

#include "base/mem.h"
#include "exec/auth.h"
#include "exec/block.h"
#include "server/client_internal.h"
#include "server/worker_internal.h"

#define QUIET_US     2000000  /* a client silent for so long gives its buffers back */
#define DRAIN_MAX_US 60000000 /* a closing client that takes no output for so long is dropped */
#define LINGER_US    2000000  /* how long a client may go on sending that has been sent away */

/* ---- states ---- */

#define BIT(state) (1U << CLIENT_##state)

/* Where each state may lead. */
#define ENDS (BIT(DRAINING) | BIT(DEAD))
static const unsigned LEGAL[CLIENT_STATES] = {
    [CLIENT_READING] = BIT(READY) | BIT(BATCHED) | BIT(STALLED) | ENDS,
    [CLIENT_READY] = BIT(READING) | BIT(BATCHED) | BIT(STALLED) | ENDS,
    [CLIENT_BATCHED] = BIT(READING) | BIT(BATCHED_MORE) | BIT(PAUSED) | BIT(BLOCKED) | BIT(STALLED) | ENDS,
    [CLIENT_BATCHED_MORE] = BIT(READY) | BIT(PAUSED) | BIT(BLOCKED) | BIT(STALLED) | ENDS,
    [CLIENT_PAUSED] = BIT(READY) | ENDS,
    [CLIENT_BLOCKED] = BIT(READING) | BIT(READY) | ENDS,
    [CLIENT_STALLED] = BIT(READING) | BIT(READY) | BIT(BATCHED) | ENDS,
    [CLIENT_DRAINING] = BIT(LINGERING) | BIT(DEAD),
    [CLIENT_LINGERING] = BIT(DEAD),
    [CLIENT_DEAD] = 0,
};

#define LISTED (BIT(READY) | BIT(PAUSED) | BIT(DEAD))
#define DEAF   (BIT(PAUSED) | BIT(DRAINING) | BIT(DEAD)) /* nothing is read */

static struct client_list *list_of(struct worker *w, enum client_state state)
{
    switch (state) {
    case CLIENT_READY:
        return &w->ready;
    case CLIENT_PAUSED:
        return &w->paused;
    case CLIENT_DEAD:
        return &w->dead;
    default:
        return NULL;
    }
}

static void leave(struct client_list *l, struct client *c)
{
    *(c->prev ? &c->prev->next : &l->first) = c->next;
    *(c->next ? &c->next->prev : &l->last) = c->prev;
    l->n--;
}

static void join(struct client_list *l, struct client *c)
{
    c->prev = l->last;
    c->next = NULL;
    *(l->last ? &l->last->next : &l->first) = c;
    l->last = c;
    l->n++;
}

/* The lists and the watching of the socket follow the state. */
static void enter(struct client *c, enum client_state to)
{
    enum client_state from = c->run.state;
    unsigned both = 1U << from | 1U << to;
    c->run.state = to;
    if (both & LISTED) {
        struct client_list *old = list_of(c->worker, from), *new = list_of(c->worker, to);
        if (old)
            leave(old, c);
        if (new)
            join(new, c);
    }
    if (both & DEAF)
        conn_watch_reading(&c->conn, !(DEAF >> to & 1) && !c->eof);
}

/* Closes the connection. The session is not listed any more, and waits for nothing. */
static void close_down(struct client *c)
{
    struct worker *w = c->worker;
    conn_watch_writing(&c->conn, false);
    held_forget(w, c);
    event_del(&c->block_event);
    block_forget(&w->executor, &c->session);
    conn_close(&c->conn);
    executor_remove_session(&w->executor, &c->session);
    worker_uncount(w);
}

void client_change_state(struct client *c, enum client_state to)
{
    bool legal = LEGAL[c->run.state] >> to & 1;
    assert(legal);
    (void)legal;
    assert(to != CLIENT_READY || !c->in_batch);
    enter(c, to);
    if (to == CLIENT_DEAD)
        close_down(c);
}

void client_drain(struct client *c)
{
    if (!client_open(c))
        return;
    client_change_state(c, CLIENT_DRAINING);
    client_touch(c);
}

void client_kill(struct client *c)
{
    if (c->run.state != CLIENT_DEAD)
        client_change_state(c, CLIENT_DEAD);
}

void client_pause(struct client *c, int64_t until_us)
{
    c->run.pause_until_us = until_us;
    client_change_state(c, CLIENT_PAUSED);
}

/* ---- time ---- */

void client_log_close(const struct client *c, enum log_level level, const char *why)
{
    char addr[2 * sizeof c->session.addr];
    log_write(level, why, "client=%llu addr=%s", (unsigned long long)c->session.id,
              log_quote(addr, sizeof addr, c->session.addr));
}

void client_tick(struct client *c, int64_t now_us)
{
    if (c->run.state == CLIENT_DEAD)
        return;
    if (c->run.state == CLIENT_LINGERING) {
        if (now_us - c->flushed_us > LINGER_US)
            client_kill(c);
        return;
    }
    const struct config *config = worker_config(c->worker);
    int64_t idle = now_us - c->session.active_us;
    bool ending = c->run.state == CLIENT_DRAINING || c->eof;
    if (ending && now_us - c->flushed_us > DRAIN_MAX_US && idle > DRAIN_MAX_US) {
        client_log_close(c, LOG_INFO, "closing a client that does not take its last replies");
        c->worker->executor.stats.closed[CLOSED_UNREAD]++;
        client_kill(c);
        return;
    }
    if (config->timeout_ms && !c->session.state.monitor && c->run.state != CLIENT_PAUSED &&
        c->run.state != CLIENT_BLOCKED && (uint64_t)idle / 1000 > config->timeout_ms) {
        client_log_close(c, LOG_DEBUG, "closing an idle client");
        c->worker->executor.stats.closed[CLOSED_IDLE]++;
        client_kill(c);
        return;
    }
    if (!c->protocol->tick(c, now_us) || (client_backlog(c) && client_over_limit(c)))
        return;
    if (idle < QUIET_US)
        return;
    if (c->in.len == 0)
        buf_release(&c->in);
    if (c->out.len == 0)
        buf_release(&c->out);
}

/* ---- running again ---- */

struct client_before client_before(struct client *c)
{
    return (struct client_before){.client = c, .run = c->run, .output = c->out.len};
}

void client_take_back(const struct client_before *was)
{
    struct client *c = was->client;
    if (c->run.state == CLIENT_DEAD) {
        block_forget(&c->worker->executor, &c->session);
        return;
    }
    if (c->run.state != was->run.state)
        enter(c, was->run.state);
    c->run = was->run;
    c->out.len = was->output;
    event_del(&c->block_event);
    if (c->session.state.blocked && c->run.block_until_us)
        client_arm_block_timer(c);
}

/* ---- what protocols ask ---- */

int64_t client_now(struct client *c)
{
    return worker_now(c->worker);
}

bool client_is_last_call(const struct client *c)
{
    return c->worker->stop;
}

bool client_is_unread(const struct client *c)
{
    return c->sent < held_free_output(c->worker, c);
}

bool client_is_idle(const struct client *c)
{
    return client_open(c) && c->run.state != CLIENT_PAUSED && client_backlog(c) == 0;
}

/* ---- life ---- */

struct client *client_new(struct worker *w, struct conn conn, const struct protocol *protocol)
{
    struct client *c = mem_zalloc(sizeof *c);
    struct config *config = worker_config(w);
    c->worker = w;
    c->protocol = protocol;
    c->conn = conn;
    session_init(&c->session, &client_session_ops, auth_is_open(config));
    c->session.state.consistency = config->read_consistency;
    c->session.id = conn.number;
    c->session.fd = conn.fd;
    c->session.unix_socket = conn.local;
    c->session.way = conn.local ? WAY_UNIX : conn.tls ? WAY_TLS : WAY_TCP;
    conn_addresses(&conn, w->workers->listeners[LISTEN_RESP].listener.path, c->session.addr,
                   c->session.laddr);
    conn_tune(&conn, config->tcp_keepalive_ms);
    protocol->open(c);
    conn_attach(&c->conn, w->base, client_on_readable, client_on_writable, c);
    evtimer_assign(&c->block_event, w->base, client_on_block_timeout, c);
    executor_add_session(&w->executor, &c->session);
    conn_watch_reading(&c->conn, true);
    return c;
}

void client_free(struct client *c)
{
    assert(c->run.state == CLIENT_DEAD);
    leave(&c->worker->dead, c);
    session_release(&c->session);
    c->protocol->release(c);
    listeners_leave(c->worker->workers, c->protocol);
    buf_release(&c->in);
    buf_release(&c->out);
    mem_free(c);
}
