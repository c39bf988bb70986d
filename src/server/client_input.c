/* A client's input: reading it, and giving it up when its calls have run. */
#include "server/client_internal.h"
#include "server/worker_internal.h"

#define READ_MIN   ((size_t)16 << 10) /* room that an ordinary read has at least */
#define READ_MAX   ((size_t)64 << 10) /* a client's share of a turn ... */
#define READ_LARGE ((size_t)1 << 20)  /* ... and while a large argument comes in */

/* Gives up what was run. */
static void consume(struct client *c)
{
    if (c->run.done == 0)
        return;
    buf_consume(&c->in, c->run.done);
    c->parsed -= c->run.done;
    c->run.done = 0;
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
    return c->in.len - c->run.done < (limit < CLIENT_STALL_INPUT ? limit : CLIENT_STALL_INPUT);
}

static void end_of_input(struct client *c)
{
    c->eof = true;
    conn_watch_reading(&c->conn, false);
    client_touch(c);
}

/* Whether input may be read: it stays where it is while calls of the batch point into it. */
static bool takes_input(const struct client *c)
{
    return !c->in_batch && (c->run.state == CLIENT_READING || c->run.state == CLIENT_BLOCKED ||
                            c->run.state == CLIENT_STALLED);
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

void client_on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct client *c = arg;
    struct worker *w = c->worker;
    if (c->run.state == CLIENT_LINGERING)
        throw_away(c);
    if ((w->batch.pending || busy_defers(w, c)) && client_open(c)) {
        gather_later(w, c);
        return;
    }
    if (!takes_input(c))
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
    if (c->in.len - c->run.done > worker_config(w)->client_query_buffer_limit) {
        client_log_close(c, LOG_WARNING, "closing a client that sent more than client-query-buffer-limit");
        w->executor.stats.closed[CLOSED_QUERY_LIMIT]++;
        client_kill(c);
        return;
    }
    if (c->run.state == CLIENT_BLOCKED)
        return;
    if (w->busy.on)
        busy_answer(w, c);
    else
        gather_calls(w, c);
}

static void drop_input(struct client *c)
{
    c->run.done = c->parsed = c->in.len = 0;
    if (c->in.cap > KEEP_BUFFER * 2)
        buf_shrink(&c->in, KEEP_BUFFER);
}

void client_found_nothing(struct client *c)
{
    c->run.done = c->parsed;
    if (c->run.done == c->in.len)
        drop_input(c);
    if (c->eof)
        client_touch(c);
    if (c->run.state != CLIENT_READING)
        client_change_state(c, CLIENT_READING);
}

/* What did not run is parsed again when its time comes. */
static void parse_again(struct client *c)
{
    c->parsed = c->run.done;
    c->broken = false;
    c->protocol->parse_again(c);
    if ((c->run.state == CLIENT_READING && c->run.done < c->in.len) ||
        (c->run.state == CLIENT_STALLED && !client_must_stall(c)))
        client_change_state(c, CLIENT_READY);
}

void client_leave_batch(struct client *c)
{
    c->in_batch = c->declared = false;
    client_change_state(c, c->run.state == CLIENT_BATCHED ? CLIENT_READING : CLIENT_READY);
    parse_again(c);
}

void client_batch_done(struct client *c)
{
    c->in_batch = c->declared = false;
    c->put_off = 0;
    if (c->eof)
        client_touch(c);
    if (client_batched(c)) {
        c->run.done = c->parsed;
        client_change_state(c, c->run.state == CLIENT_BATCHED ? CLIENT_READING : CLIENT_READY);
    } else if (client_open(c)) {
        parse_again(c);
    } else {
        c->run.done = c->in.len;
    }
    if (c->run.done == c->in.len)
        drop_input(c);
}
