#include "http/batch_outcomes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "engine/engine.h"
#include "http/http_internal.h"

#define OUTCOMES   1024
#define KEEP_US    600000000          /* ten minutes */
#define KEEP_BYTES ((size_t)16 << 20) /* of answers, together */
#define ID_CHARS   33                 /* a number and a secret, 16 hexadecimal digits each, and a NUL */

struct outcome {
    uint64_t number; /* 0: none */
    uint64_t secret; /* so that no client guesses the id of another's batch */
    int64_t ticket;  /* that must be durable for the answer to be true; 0: it is, or never will be */
    int64_t made_us;
    int status;
    struct buf body;
};

struct outcomes {
    struct outcome at[OUTCOMES]; /* by number */
    uint64_t first, next;        /* numbers, from 1 */
    size_t npending;             /* that wait for their commits */
    size_t bytes;
};

struct outcomes *outcomes_new(void)
{
    struct outcomes *o = mem_zalloc(sizeof *o);
    o->first = o->next = 1;
    return o;
}

static struct outcome *slot(struct outcomes *o, uint64_t number)
{
    return &o->at[number % OUTCOMES];
}

static void drop_first(struct outcomes *o)
{
    struct outcome *c = slot(o, o->first++);
    o->npending -= c->ticket != 0;
    o->bytes -= c->body.cap;
    buf_release(&c->body);
    *c = (struct outcome){0};
}

void outcomes_free(struct outcomes *o)
{
    if (!o)
        return;
    while (o->first < o->next)
        drop_first(o);
    mem_free(o);
}

static void drop_old(struct outcomes *o, int64_t now)
{
    while (o->first < o->next && now - slot(o, o->first)->made_us > KEEP_US)
        drop_first(o);
}

static void make_room(struct outcomes *o)
{
    while (o->first < o->next && (o->next - o->first >= OUTCOMES || o->bytes > KEEP_BYTES))
        drop_first(o);
}

/* ---- keeping ---- */

struct command_result outcomes_run(struct http_api *api, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    struct outcomes *o = api->outcomes;
    struct answer *a = &api->answer;
    struct buf *out = a->out;
    drop_old(o, clock_mono_us());
    make_room(o);
    uint64_t number = o->next++;
    struct outcome *c = slot(o, number);
    *c = (struct outcome){.number = number, .made_us = clock_mono_us()};
    rand_secure(&c->secret, sizeof c->secret);

    a->out = a->json.out = &c->body;
    size_t start = a->start;
    a->start = a->item = 0;
    struct command_result result = http_run_command(api, s, x, write_err);
    c->ticket = result.ticket;
    c->status = a->head.status;
    o->npending += c->ticket != 0;
    o->bytes += c->body.cap;
    a->out = a->json.out = out;
    a->start = start;

    char id[ID_CHARS], location[ID_CHARS + 32];
    snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, number, c->secret);
    int n = snprintf(location, sizeof location, "Location: /batch/%s\r\n", id);
    http_add_header(x, slice_of(location, (size_t)n));
    a->head = (struct http_head){.status = 202, .content_type = "application/json"};
    buf_addf(out, "{\"id\":\"%s\"}", id);
    result.ticket = 0; /* this answer tells of nothing */
    return result;
}

void http_settle_outcomes(struct http_api *api)
{
    struct outcomes *o = api->outcomes;
    for (uint64_t n = o->first; o->npending && n < o->next; n++) {
        struct outcome *c = slot(o, n);
        if (!c->ticket || !engine_settled(api->executor->engine, c->ticket))
            continue;
        c->ticket = 0;
        o->npending--;
    }
}

void http_fail_outcomes(struct http_api *api, int64_t from, const struct error *err)
{
    struct outcomes *o = api->outcomes;
    for (uint64_t n = o->first; n < o->next; n++) {
        struct outcome *c = slot(o, n);
        if (!c->ticket || c->ticket < from)
            continue;
        c->ticket = 0;
        o->npending--;
        o->bytes -= c->body.cap;
        c->body.len = 0;
        c->status = http_failure_document(api, err, DIALECT_KEYS, &c->body);
        o->bytes += c->body.cap;
    }
}

uint64_t http_outcomes_made(const struct http_api *api)
{
    return api->outcomes->next;
}

void http_drop_outcomes(struct http_api *api, uint64_t from)
{
    struct outcomes *o = api->outcomes;
    for (; o->next > from; o->next--) {
        struct outcome *c = slot(o, o->next - 1);
        o->npending -= c->ticket != 0;
        o->bytes -= c->body.cap;
        buf_release(&c->body);
        *c = (struct outcome){0};
    }
    if (o->first > o->next)
        o->first = o->next;
}

/* ---- telling ---- */

static struct outcome *find(struct outcomes *o, struct slice id)
{
    char half[17] = {0}, *end;
    if (id.n != ID_CHARS - 1)
        return NULL;
    memcpy(half, id.p, 16);
    uint64_t number = strtoull(half, &end, 16);
    if (*end || number < o->first || number >= o->next)
        return NULL;
    memcpy(half, id.p + 16, 16);
    uint64_t secret = strtoull(half, &end, 16);
    struct outcome *c = slot(o, number);
    return *end || c->secret != secret ? NULL : c;
}

struct command_result http_outcome(struct http_api *api, struct session *s, struct http_call *x,
                                   const struct error *write_err)
{
    struct answer *a = &api->answer;
    (void)s, (void)write_err;
    const struct server *all = api->executor->server;
    struct outcome *c = NULL;
    for (uint32_t i = 0; i < all->nexecutors && !c; i++) {
        struct outcomes *o = all->executors[i]->http->outcomes;
        drop_old(o, clock_mono_us());
        c = find(o, x->path[0]);
    }
    if (!c) {
        answer_error(a, 404, "batch_not_found", "There is no such batch, or it was too long ago.");
        return (struct command_result){0};
    }
    const char *state = c->ticket ? "pending" : c->status < 300 ? "done" : "failed";
    buf_addf(a->out, "{\"id\":\"%.*s\",\"status\":\"%s\"", (int)x->path[0].n, x->path[0].p, state);
    if (!c->ticket) {
        buf_addf(a->out, ",\"code\":%d,\"answer\":", c->status);
        buf_add_slice(a->out, buf_slice(&c->body));
    }
    buf_add(a->out, "}", 1);
    return (struct command_result){0};
}
