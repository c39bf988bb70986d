#include "server/client.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "exec/block.h"
#include "server/worker_internal.h"

#define READ_MIN     ((size_t)16 << 10) /* room that an ordinary read has at least */
#define READ_MAX     ((size_t)64 << 10) /* a client's share of a turn ... */
#define READ_LARGE   ((size_t)1 << 20)  /* ... and while a large argument comes in */
#define KEEP_BUFFER  ((size_t)64 << 10) /* what an empty buffer may hold on to while its client is busy */
#define QUIET_US     2000000            /* a client silent for so long gives its buffers back */
#define DRAIN_MAX_US 60000000           /* a closing client that takes no output for so long is dropped */
#define LINGER_US    2000000            /* how long a client may go on sending that has been sent away */

static const struct session_ops client_ops;

static struct client *of_session(const struct session *s)
{
    return (struct client *)(uintptr_t)s;
}

static size_t backlog(const struct client *c)
{
    return c->out.len - c->sent;
}

/* Of that, what need not wait for a commit. */
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

static bool push(struct client_list *l, struct client *c, bool *mark)
{
    if (*mark)
        return false;
    *mark = true;
    VEC_PUSH(l->items, l->len, l->cap) = c;
    return true;
}

static void watch_reading(struct client *c, bool on)
{
    conn_watch_reading(&c->conn, on);
}

static void watch_writing(struct client *c, bool on)
{
    conn_watch_writing(&c->conn, on);
}

/* ---- states ---- */

static void log_close(const struct client *c, enum log_level level, const char *why)
{
    char addr[2 * sizeof c->session.addr];
    log_write(level, why, "client=%llu addr=%s", (unsigned long long)c->session.id,
              log_quote(addr, sizeof addr, c->session.addr));
}

static void change_state(struct client *c, enum client_state state)
{
    assert(state > c->state);
    c->state = state;
    watch_reading(c, false);
    if (state != CLIENT_DEAD)
        return;
    watch_writing(c, false);
    held_forget(c->worker, c);
    event_del(&c->block_event);
    block_forget(&c->worker->executor, &c->session);
    conn_close(&c->conn);
    executor_remove_session(&c->worker->executor, &c->session);
    worker_uncount(c->worker);
    VEC_PUSH(c->worker->dead.items, c->worker->dead.len, c->worker->dead.cap) = c;
}

void client_drain(struct client *c)
{
    if (c->state != CLIENT_OPEN)
        return;
    change_state(c, CLIENT_DRAINING);
    client_touch(c);
}

void client_kill(struct client *c)
{
    if (c->state != CLIENT_DEAD)
        change_state(c, CLIENT_DEAD);
}

void client_pause(struct client *c, int64_t until_us)
{
    c->pause_until_us = until_us;
    push(&c->worker->paused, c, &c->paused);
    watch_reading(c, false);
}

void client_resume(struct client *c)
{
    c->paused = false;
    if (c->state != CLIENT_OPEN)
        return;
    push(&c->worker->ready, c, &c->ready);
    watch_reading(c, !c->eof);
}

/* ---- input ---- */

/* Gives up what was run. */
static void consume(struct client *c)
{
    if (c->done == 0)
        return;
    buf_consume(&c->in, c->done);
    c->parsed -= c->done;
    c->done = 0;
}

/* Makes room for the next read and says how much of it to use. */
static size_t make_room(struct client *c)
{
    consume(c);
    size_t have = c->in.len - c->parsed;
    size_t want = c->protocol->wanted(c);
    size_t missing = want > have ? want - have : 0;
    if (missing > READ_MAX)
        buf_reserve(&c->in, missing);
    else if (c->filled)
        buf_reserve(&c->in, READ_MAX);
    else if (c->in.cap - c->in.len < READ_MIN / 2)
        buf_reserve(&c->in, READ_MIN);
    size_t room = c->in.cap - c->in.len;
    size_t most = missing > READ_MAX ? READ_LARGE : READ_MAX;
    return room < most ? room : most;
}

bool client_may_wait(const struct client *c)
{
    uint64_t limit = worker_config(c->worker)->client_query_buffer_limit / 2;
    return c->in.len - c->done < (limit < CLIENT_HOLD_INPUT ? limit : CLIENT_HOLD_INPUT);
}

static void end_of_input(struct client *c)
{
    c->eof = true;
    watch_reading(c, false);
    client_touch(c);
}

static void throw_away(struct client *c)
{
    char waste[READ_MIN];
    size_t n = 0;
    enum conn_io done = conn_read(&c->conn, waste, sizeof waste, &n);
    c->worker->executor.stats.net_in += n;
    if (done == CONN_CLOSED || done == CONN_FAILED)
        client_kill(c);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    struct worker *w = c->worker;
    if (c->state == CLIENT_LINGERING)
        throw_away(c);
    if (c->state != CLIENT_OPEN || c->ready || c->in_batch)
        return;
    size_t room = make_room(c), n = 0;
    switch (conn_read(&c->conn, c->in.p + c->in.len, room, &n)) {
    case CONN_OK:
        break;
    case CONN_AGAIN:
        return;
    case CONN_CLOSED:
        end_of_input(c);
        return;
    case CONN_FAILED:
        client_kill(c);
        return;
    }
    w->executor.stats.net_in += n;
    w->executor.stats.reads++;
    c->session.active_us = worker_now(w);
    c->in.len += n;
    c->filled = n == room;
    if (c->in.len - c->done > worker_config(w)->client_query_buffer_limit) {
        log_close(c, LOG_WARNING, "closing a client that sent more than client-query-buffer-limit");
        w->executor.stats.closed[CLOSED_QUERY_LIMIT]++;
        client_kill(c);
        return;
    }
    gather_calls(w, c);
}

void client_batch_done(struct client *c)
{
    c->in_batch = false;
    if (c->eof)
        client_touch(c);
    if (c->state != CLIENT_OPEN) {
        c->done = c->parsed = c->in.len = 0;
    } else if (c->paused || c->stalled) {
        /* What did not run is parsed again when its time comes. */
        c->parsed = c->done;
        c->stalled = c->broken = false;
        c->protocol->parse_again(c);
        if (!c->paused && !c->session.state.blocked && !client_held(c))
            push(&c->worker->ready, c, &c->ready);
    } else {
        c->done = c->parsed;
    }
    if (c->done == c->in.len) {
        c->done = c->parsed = c->in.len = 0;
        if (c->in.cap > KEEP_BUFFER * 2)
            buf_shrink(&c->in, KEEP_BUFFER);
    }
}

/* ---- output ---- */

void client_touch(struct client *c)
{
    push(&c->worker->flush, c, &c->to_flush);
}

/* True when the client had to go. */
static bool over_limit(struct client *c)
{
    const struct config *config = worker_config(c->worker);
    int64_t now_us = worker_now(c->worker);
    size_t n = backlog(c);
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
    log_close(c, LOG_WARNING, "closing a client over client-output-buffer-limit");
    c->worker->executor.stats.closed[CLOSED_OUTPUT_LIMIT]++;
    client_kill(c);
    return true;
}

static void linger(struct client *c)
{
    change_state(c, CLIENT_LINGERING);
    conn_end_output(&c->conn);
    watch_reading(c, true);
}

/* All output has left. */
static void drained(struct client *c)
{
    drop_sent(c);
    if (c->out.cap > KEEP_BUFFER * 2)
        buf_shrink(&c->out, KEEP_BUFFER);
    watch_writing(c, false);
    c->soft_since_us = 0;
    if (c->state == CLIENT_DRAINING && c->broken && !c->eof && c->protocol->lingers)
        linger(c);
    else if (c->state == CLIENT_DRAINING || (c->eof && !c->ready && !c->paused && !c->in_batch))
        client_kill(c);
}

void client_flush(struct client *c)
{
    if (c->state == CLIENT_DEAD)
        return;
    bool held = client_held(c);
    size_t n = 0;
    if (sendable(c)) {
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
            return;
        }
    }
    if (held && !client_held(c) && c->state == CLIENT_OPEN && !c->paused && !c->session.state.blocked)
        push(&c->worker->ready, c, &c->ready);
    if (backlog(c) == 0) {
        drained(c);
        return;
    }
    if (over_limit(c))
        return;
    if (c->sent > KEEP_BUFFER && c->sent > c->out.len / 2)
        drop_sent(c);
    watch_writing(c, sendable(c) > 0);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    client_flush(arg);
}

/* ---- time ---- */

void client_tick(struct client *c, int64_t now_us)
{
    if (c->state == CLIENT_DEAD)
        return;
    if (c->state == CLIENT_LINGERING) {
        if (now_us - c->flushed_us > LINGER_US)
            client_kill(c);
        return;
    }
    const struct config *config = worker_config(c->worker);
    int64_t idle = now_us - c->session.active_us;
    bool ending = c->state == CLIENT_DRAINING || c->eof;
    if (ending && now_us - c->flushed_us > DRAIN_MAX_US && idle > DRAIN_MAX_US) {
        log_close(c, LOG_INFO, "closing a client that does not take its last replies");
        c->worker->executor.stats.closed[CLOSED_UNREAD]++;
        client_kill(c);
        return;
    }
    if (config->timeout_ms && !c->session.state.monitor && !c->paused && !c->session.state.blocked &&
        (uint64_t)idle / 1000 > config->timeout_ms) {
        log_close(c, LOG_DEBUG, "closing an idle client");
        c->worker->executor.stats.closed[CLOSED_IDLE]++;
        client_kill(c);
        return;
    }
    if (!c->protocol->tick(c, now_us) || (backlog(c) && over_limit(c)))
        return;
    if (idle < QUIET_US)
        return;
    if (c->in.len == 0)
        buf_release(&c->in);
    if (c->out.len == 0)
        buf_release(&c->out);
}

/* ---- what commands may ask of it ---- */

static void session_close(struct session *s, bool after_reply)
{
    if (after_reply)
        client_drain(of_session(s));
    else
        client_kill(of_session(s));
}

static void session_push(struct session *s, struct slice bytes)
{
    struct client *c = of_session(s);
    if (c->state != CLIENT_OPEN)
        return;
    worker_retry_keep(c->worker, c);
    buf_add_slice(&c->out, bytes);
    client_touch(c);
}

static void session_usage(const struct session *s, struct session_usage *ret)
{
    const struct client *c = of_session(s);
    *ret = (struct session_usage){
        .query_buffer = c->in.len - c->done,
        .query_buffer_free = c->in.cap - c->in.len,
        .output_buffer = backlog(c),
        .total = sizeof *c + c->in.cap + c->out.cap + c->protocol->memory(c),
    };
    memcpy(ret->events, c->conn.writing ? "rw" : "r", c->conn.writing ? 3 : 2);
}

static void arm_block_timer(struct client *c)
{
    int64_t left = c->block_until_us - clock_mono_us();
    struct timeval in = {.tv_sec = left > 0 ? left / 1000000 : 0, .tv_usec = left > 0 ? left % 1000000 : 0};
    event_add(&c->block_event, &in);
}

static void session_block(struct session *s, int64_t deadline_us)
{
    struct client *c = of_session(s);
    c->block_until_us = deadline_us;
    if (deadline_us)
        arm_block_timer(c);
}

static struct reply *session_reply_begin(struct session *s)
{
    struct client *c = of_session(s);
    worker_retry_keep(c->worker, c);
    c->reply.base.resp = s->state.resp;
    c->reply_start = c->out.len;
    return &c->reply.base;
}

static void session_reply_end(struct session *s, int64_t wait)
{
    struct client *c = of_session(s);
    if (c->out.len != c->reply_start) {
        client_touch(c);
        if (wait)
            held_add(c->worker, c, c->reply_start, wait, 0);
    }
    if (s->state.blocked)
        return;
    event_del(&c->block_event);
    if (c->state == CLIENT_OPEN && !c->in_batch && c->parsed < c->in.len)
        push(&c->worker->ready, c, &c->ready);
}

static void on_block_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    if (!c->session.state.blocked)
        return;
    /* The loop counts from when it woke up, so a timer that was set in a long turn fires early. */
    if (clock_mono_us() < c->block_until_us)
        arm_block_timer(c);
    else
        block_give_up(&c->worker->executor, &c->session, false);
}

static const struct session_ops client_ops = {
    .close = session_close,
    .push = session_push,
    .usage = session_usage,
    .block = session_block,
    .reply_begin = session_reply_begin,
    .reply_end = session_reply_end,
};

/* ---- running again ---- */

struct client_before client_before(struct client *c)
{
    if (c->protocol->keep)
        c->protocol->keep(c);
    return (struct client_before){
        .client = c,
        .state = c->state,
        .paused = c->paused,
        .stalled = c->stalled,
        .done = c->done,
        .output = c->out.len,
        .held_first = c->held_first,
        .held_last = c->held_last,
        .block_until_us = c->block_until_us,
    };
}

/* One that has ended its connection meanwhile, or that a pause has caught, goes on. */
static void reopen(struct client *c)
{
    c->state = CLIENT_OPEN;
    if (c->paused)
        worker_unpause(c->worker, c);
    watch_reading(c, !c->eof);
}

void client_take_back(const struct client_before *was)
{
    struct client *c = was->client;
    if (c->state == CLIENT_DEAD) {
        block_forget(&c->worker->executor, &c->session);
        return;
    }
    if (c->state != was->state || c->paused != was->paused)
        reopen(c);
    c->stalled = was->stalled;
    c->done = was->done;
    c->out.len = was->output;
    c->held_first = was->held_first;
    c->held_last = was->held_last;
    c->block_until_us = was->block_until_us;
    event_del(&c->block_event);
    if (c->session.state.blocked && c->block_until_us)
        arm_block_timer(c);
    if (c->protocol->take_back)
        c->protocol->take_back(c);
}

/* ---- life ---- */

struct client *client_new(struct worker *w, struct conn conn, const struct protocol *protocol)
{
    struct client *c = mem_zalloc(sizeof *c);
    struct config *config = worker_config(w);
    c->worker = w;
    c->protocol = protocol;
    c->conn = conn;
    session_init(&c->session, &client_ops, config->requirepass[0] == '\0');
    c->session.id = conn.number;
    c->session.fd = conn.fd;
    c->session.unix_socket = conn.local;
    c->session.way = conn.local ? WAY_UNIX : conn.tls ? WAY_TLS : WAY_TCP;
    conn_addresses(&conn, w->workers->listeners[LISTEN_RESP].listener.path, c->session.addr,
                   c->session.laddr);
    conn_tune(&conn, config->tcp_keepalive_ms);
    protocol->open(c);
    conn_attach(&c->conn, w->base, on_readable, on_writable, c);
    evtimer_assign(&c->block_event, w->base, on_block_timeout, c);
    executor_add_session(&w->executor, &c->session);
    watch_reading(c, true);
    return c;
}

void client_free(struct client *c)
{
    assert(c->state == CLIENT_DEAD);
    session_release(&c->session);
    c->protocol->release(c);
    buf_release(&c->in);
    buf_release(&c->out);
    mem_free(c);
}
