/* Replies that wait until their commit is durable, see held.h. */
#include "server/held.h"

#include "base/mem.h"
#include "engine/engine.h"
#include "server/worker_internal.h"

#define FIRST_CAP 256

static struct held_reply *at(const struct held_replies *w, uint64_t number)
{
    return &w->ring[number & (w->cap - 1)];
}

void held_release(struct held_replies *w)
{
    mem_free(w->ring);
    *w = (struct held_replies){0};
}

static void grow(struct held_replies *w)
{
    size_t cap = w->cap ? w->cap * 2 : FIRST_CAP;
    struct held_reply *ring = mem_alloc(cap * sizeof *ring);
    for (uint64_t n = w->first; n < w->next; n++)
        ring[n & (cap - 1)] = *at(w, n);
    mem_free(w->ring);
    w->ring = ring;
    w->cap = cap;
}

void held_add(struct worker *worker, struct client *c, size_t start, struct held_for what,
              int64_t deadline_us)
{
    struct held_replies *w = &worker->held;
    uint64_t from = c->out_base + start, to = c->out_base + c->out.len;
    if (c->run.state == CLIENT_DEAD)
        return;
    if (c->run.held_last && c->run.held_last >= w->mark) {
        struct held_reply *last = at(w, c->run.held_last);
        if (last->what.ticket == what.ticket && last->what.engine == what.engine && last->end == from &&
            last->shape == c->run.shape && !last->deadline_us && !deadline_us) {
            last->end = to;
            last->replies++;
            return;
        }
    }
    if (w->first == 0)
        w->first = w->next = 1;
    if (w->next - w->first == w->cap)
        grow(w);
    uint64_t number = w->next++;
    *at(w, number) = (struct held_reply){.client = c,
                                         .start = from,
                                         .end = to,
                                         .what = what,
                                         .deadline_us = deadline_us,
                                         .replies = 1,
                                         .shape = c->run.shape};
    w->ntimed += deadline_us != 0;
    if (c->run.held_last)
        at(w, c->run.held_last)->next = number;
    else
        c->run.held_first = number;
    c->run.held_last = number;
}

void held_mark(struct worker *worker)
{
    struct held_replies *w = &worker->held;
    w->mark = w->next ? w->next : 1;
}

void held_cut(struct worker *worker)
{
    struct held_replies *w = &worker->held;
    uint64_t from = w->mark;
    if (w->next <= from)
        return;
    for (uint64_t n = w->first; n < from; n++)
        if (at(w, n)->next >= from)
            at(w, n)->next = 0;
    for (uint64_t n = from; n < w->next; n++)
        w->ntimed -= at(w, n)->deadline_us != 0;
    w->next = from;
}

size_t held_free_output(const struct worker *w, const struct client *c)
{
    return c->run.held_first ? (size_t)(at(&w->held, c->run.held_first)->start - c->out_base) : c->out.len;
}

/* Takes the first reply of all out; it is its client's first as well. */
static void let_go(struct held_replies *w)
{
    const struct held_reply *head = at(w, w->first++);
    struct client *c = head->client;
    w->ntimed -= head->deadline_us != 0;
    if (!c)
        return;
    c->run.held_first = head->next;
    if (!head->next)
        c->run.held_last = 0;
    client_touch(c);
}

void held_settle(struct worker *worker)
{
    struct held_replies *w = &worker->held;
    while (w->first < w->next) {
        struct held_for what = at(w, w->first)->what;
        if (!engine_settled(what.engine, what.ticket))
            return;
        let_go(w);
    }
}

void held_settle_durable(struct worker *worker)
{
    struct held_replies *w = &worker->held;
    while (w->first < w->next) {
        const struct held_reply *it = at(w, w->first);
        if (it->what.ticket > engine_durable(it->what.engine) || (it->client && it->client->kept))
            return;
        let_go(w);
    }
}

/* ---- failure ---- */

/* Which replies fail: those that wait for this ticket of an engine, or a later one; or one alone, by its
   number. */
struct failed {
    struct held_for from;
    uint64_t only; /* 0: by their tickets */
};

static bool is_among(struct failed which, uint64_t number, struct held_for what)
{
    if (which.only)
        return number == which.only;
    return what.engine == which.from.engine && what.ticket >= which.from.ticket;
}

/* Writes a client's output anew, with errors in the place of the replies that failed. What it has still to
   wait for moves along. */
static void rewrite(struct worker *worker, struct client *c, struct failed which, const struct error *err)
{
    struct held_replies *w = &worker->held;
    struct buf fresh = {0};
    size_t copied = 0;
    for (uint64_t n = c->run.held_first; n; n = at(w, n)->next) {
        struct held_reply *it = at(w, n);
        size_t start = (size_t)(it->start - c->out_base), end = (size_t)(it->end - c->out_base);
        buf_add(&fresh, c->out.p + copied, start - copied);
        it->start = c->out_base + fresh.len;
        if (is_among(which, n, it->what)) {
            c->protocol->fail(c, it->replies, it->shape, err, &fresh);
            it->what.ticket = 0;
        } else {
            buf_add(&fresh, c->out.p + start, end - start);
        }
        it->end = c->out_base + fresh.len;
        copied = end;
    }
    buf_add(&fresh, c->out.p + copied, c->out.len - copied);
    buf_release(&c->out);
    c->out = fresh;
}

void held_fail(struct worker *worker, struct held_for from, const struct error *err)
{
    struct held_replies *w = &worker->held;
    struct failed which = {.from = from};
    for (uint64_t n = w->first; n < w->next; n++) {
        const struct held_reply *it = at(w, n);
        if (it->client && is_among(which, n, it->what))
            rewrite(worker, it->client, which, err);
    }
    held_settle(worker);
}

/* ---- deadlines ---- */

/* The client's first held reply may leave, whatever other clients' replies are in front of it. */
static void release_first(struct held_replies *w, struct client *c)
{
    struct held_reply *it = at(w, c->run.held_first);
    w->ntimed -= it->deadline_us != 0;
    it->deadline_us = 0;
    it->client = NULL;
    c->run.held_first = it->next;
    if (!it->next)
        c->run.held_last = 0;
    client_touch(c);
}

static void give_up(struct worker *worker, uint64_t number)
{
    struct held_replies *w = &worker->held;
    struct client *c = at(w, number)->client;
    struct error err;
    (void)error_set(&err, ST_UNKNOWN,
                    "it ran, and was not committed within timeout_ms: it may still be, or fail as a whole");
    rewrite(worker, c, (struct failed){.only = number}, &err);
    at(w, number)->deadline_us = 0;
    w->ntimed--;
    while (c->run.held_first && at(w, c->run.held_first)->what.ticket == 0)
        release_first(w, c);
}

int64_t held_expire(struct worker *worker, int64_t now_us)
{
    struct held_replies *w = &worker->held;
    int64_t next = 0;
    for (uint64_t n = w->first; w->ntimed && n < w->next; n++) {
        int64_t deadline = at(w, n)->deadline_us;
        if (!deadline || !at(w, n)->client)
            continue;
        if (deadline <= now_us)
            give_up(worker, n);
        else if (!next || deadline < next)
            next = deadline;
    }
    return next;
}

void held_synced(struct worker *worker)
{
    struct held_replies *w = &worker->held;
    if (w->first < w->next && at(w, w->next - 1)->what.ticket == HELD_FOR_SYNC)
        at(w, w->next - 1)->what.ticket = 0;
}

void held_forget(struct worker *worker, struct client *c)
{
    for (uint64_t n = c->run.held_first; n; n = at(&worker->held, n)->next)
        at(&worker->held, n)->client = NULL;
    c->run.held_first = c->run.held_last = 0;
}
