/* What commands may ask of a client: to end, to be sent something, to wait for a key. */
#include <string.h>

#include "base/clock.h"
#include "exec/block.h"
#include "server/client_internal.h"
#include "server/worker_internal.h"

static struct client *of_session(const struct session *s)
{
    return (struct client *)(uintptr_t)s;
}

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
    if (!client_open(c))
        return;
    worker_undo_keep(c->worker, c);
    buf_add_slice(&c->out, bytes);
    client_touch(c);
}

static void session_usage(const struct session *s, struct session_usage *ret)
{
    const struct client *c = of_session(s);
    *ret = (struct session_usage){
        .query_buffer = c->in.len - c->run.done,
        .query_buffer_free = c->in.cap - c->in.len,
        .output_buffer = client_backlog(c),
        .total = sizeof *c + c->in.cap + c->out.cap + c->protocol->memory(c),
    };
    memcpy(ret->events, c->conn.writing ? "rw" : "r", c->conn.writing ? 3 : 2);
}

void client_arm_block_timer(struct client *c)
{
    int64_t left = c->run.block_until_us - clock_mono_us();
    struct timeval in = {.tv_sec = left > 0 ? left / 1000000 : 0, .tv_usec = left > 0 ? left % 1000000 : 0};
    event_add(&c->block_event, &in);
}

static void session_block(struct session *s, int64_t deadline_us)
{
    struct client *c = of_session(s);
    if (c->run.state != CLIENT_BLOCKED)
        client_change_state(c, CLIENT_BLOCKED);
    c->run.block_until_us = deadline_us;
    if (deadline_us)
        client_arm_block_timer(c);
}

static struct reply *session_reply_begin(struct session *s)
{
    struct client *c = of_session(s);
    worker_undo_keep(c->worker, c);
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
            held_add(c->worker, c, c->reply_start, worker_ticket(c->worker, wait), 0);
    }
    if (s->state.blocked)
        return;
    event_del(&c->block_event);
    if (c->run.state == CLIENT_BLOCKED)
        client_change_state(c, !c->in_batch && c->run.done < c->in.len ? CLIENT_READY : CLIENT_READING);
}

void client_on_block_timeout(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    if (!c->session.state.blocked)
        return;
    /* The loop counts from when it woke up, so a timer that was set in a long turn fires early. While a
       script is busy it waits. */
    if (clock_mono_us() < c->run.block_until_us || c->worker->busy.on)
        client_arm_block_timer(c);
    else
        block_timer(&c->worker->executor, &c->session);
}

const struct session_ops client_session_ops = {
    .close = session_close,
    .push = session_push,
    .usage = session_usage,
    .block = session_block,
    .reply_begin = session_reply_begin,
    .reply_end = session_reply_end,
};
