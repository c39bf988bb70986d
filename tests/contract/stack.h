/* All that a command passes through but the sockets: a session, an executor, an engine, a store that can be
   told to fail, a database. A batch runs as server/transaction.c runs it. */
#ifndef LARDER_TESTS_CONTRACT_STACK_H
#define LARDER_TESTS_CONTRACT_STACK_H

#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "check.h"
#include "config/config.h"
#include "engine/engine.h"
#include "exec/block.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "journal/journal_internal.h"
#include "journal/replay.h"
#include "proto/resp_reply.h"
#include "stats/stats.h"
#include "store/fault.h"

#define BATCH_MAX   32
#define STACK_WAITS INT64_C(20000000) /* microseconds, for a commit to become durable */

struct stack {
    struct store *store;
    struct store *fault; /* the part of it that can be told to fail ... */
    struct store *reads; /* ... or, with a journal, what the commands read through */
    struct engine *engine;
    struct config config;
    struct server server;
    struct executor executor;
    struct session session;
    struct arena args;
    struct error err;
};

/* The replies of one batch, as a client would get them. */
struct answers {
    struct buf bytes;
    size_t n;
    size_t end[BATCH_MAX];
};

static inline struct slice answer(const struct answers *a, size_t i)
{
    size_t from = i ? a->end[i - 1] : 0;
    return slice_of(a->bytes.p + from, a->end[i] - from);
}

static inline void no_close(struct session *s, bool after_reply)
{
    (void)s;
    (void)after_reply;
}

static inline void no_push(struct session *s, struct slice bytes)
{
    (void)s;
    (void)bytes;
}

static inline void no_usage(const struct session *s, struct session_usage *ret)
{
    (void)s;
    *ret = (struct session_usage){0};
}

static const struct session_ops no_socket = {.close = no_close, .push = no_push, .usage = no_usage};

/* With a journal it is the thread's session that fails. */
static inline enum status stack_open_store(struct stack *k, const struct store_options *o,
                                           const struct journal_options *j)
{
    struct store *inner, *reader;
    struct store_options ro = *o;
    struct journal_past past = {0};
    enum status st = store_open(o, &inner, &k->err);
    if (st != ST_OK)
        return st;
    k->store = k->fault = fault_new(inner);
    ro.read_only = true;
    if (!j)
        return ST_OK;
    st = replay_all(inner, o->url, &past, &k->err);
    if (st == ST_OK)
        st = store_open(&ro, &reader, &k->err);
    if (st != ST_OK)
        return st;
    k->reads = fault_new(reader);
    return journal_store_over(k->reads, k->fault, &past, o, j, &k->store, &k->err);
}

/* j: NULL for a store without a journal. */
static inline bool stack_open(struct stack *k, const struct store_options *o, const struct journal_options *j)
{
    struct engine_options e = {.databases = o->databases, .cache_memory = 4 << 20};
    if (!check_ok(stack_open_store(k, o, j), &k->err, __FILE__, __LINE__, "store_open"))
        return false;
    if (!check_ok(engine_new(k->store, &e, &k->engine, &k->err), &k->err, __FILE__, __LINE__, "engine_new"))
        return false;
    config_init(&k->config);
    server_init(&k->server);
    stats_init(&k->server);
    executor_init(&k->executor, &k->server, &k->config, k->engine);
    session_init(&k->session, &no_socket, true);
    k->session.id = server_next_id(&k->server);
    executor_add_session(&k->executor, &k->session);
    return true;
}

static inline void stack_close(struct stack *k)
{
    executor_remove_session(&k->executor, &k->session);
    session_release(&k->session);
    executor_release(&k->executor);
    stats_release(&k->server);
    server_release(&k->server);
    config_release(&k->config);
    engine_free(k->engine);
    store_close(k->store);
    arena_release(&k->args);
}

#define ARGS_MAX 4096

static inline struct slice number_word(struct arena *a, size_t i)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%zu", i);
    return arena_copy(a, slice_of(text, (size_t)n));
}

/* Words: @N is one of N bytes, #N are the N words 0 to N - 1, =N each of them twice. */
static inline int split(struct arena *a, const char *line, struct slice *argv)
{
    int argc = 0;
    while (*line) {
        size_t n = strcspn(line, " ");
        size_t count = strtoul(line + 1, NULL, 10);
        if (line[0] == '@') {
            char *p = arena_alloc(a, count);
            memset(p, 'x', count);
            argv[argc++] = slice_of(p, count);
        } else if (line[0] == '#' || line[0] == '=') {
            for (size_t i = 0; i < count && argc < ARGS_MAX - 1; i++) {
                argv[argc++] = number_word(a, i);
                if (line[0] == '=')
                    argv[argc++] = number_word(a, i);
            }
        } else {
            argv[argc++] = slice_of(line, n);
        }
        line += n + strspn(line + n, " ");
    }
    return argc;
}

/* Waits until all that was committed is durable, or has failed. */
static inline enum status stack_settle(struct stack *k, int64_t ticket, struct error *err)
{
    const struct timespec moment = {.tv_nsec = 50000};
    int64_t until = clock_mono_us() + STACK_WAITS;
    enum status st;
    while ((st = engine_progress(k->engine, err)) == ST_OK && !engine_settled(k->engine, ticket)) {
        if (clock_mono_us() > until)
            return error_set(err, ST_INTERNAL, "a commit is neither durable nor failed");
        nanosleep(&moment, NULL);
    }
    return st;
}

/* One batch, one transaction, of one session. */
static inline void stack_run_as(struct stack *k, struct session *session, const char *const *lines, size_t n,
                                struct answers *out)
{
    struct slice *argv[BATCH_MAX];
    int argc[BATCH_MAX];
    bool depends[BATCH_MAX], write = false;
    struct error write_err, err;
    struct resp_reply reply;
    int64_t ticket = 0;
    out->bytes.len = 0;
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        argv[i] = arena_alloc(&k->args, ARGS_MAX * sizeof **argv);
        argc[i] = split(&k->args, lines[i], argv[i]);
        write |= command_may_write(session, command_find(argv[i][0]), argv[i], argc[i]);
        write |= slice_is(argv[i][0], "exec"); /* its queue is not there yet */
    }
    enum status st = engine_begin(k->engine, write, &write_err, &err);
    k->executor.unreadable = st != ST_OK;
    if (st != ST_OK)
        write_err = err;
    resp_reply_init(&reply, &out->bytes, 2);
    for (size_t i = 0; i < n; i++) {
        struct command_result result = command_run(&k->executor, session, command_find(argv[i][0]), argv[i],
                                                   argc[i], &reply.base, &write_err);
        block_serve(&k->executor, &write_err);
        depends[i] = result.ticket;
        out->end[i] = out->bytes.len;
    }
    if (st == ST_OK)
        st = engine_commit(k->engine, &ticket, &err);
    stats_post(&k->executor);
    if (st == ST_OK)
        st = stack_settle(k, ticket, &err);
    if (st != ST_OK && !k->executor.unreadable) {
        struct buf was = out->bytes;
        struct answers old = {.bytes = was, .n = n};
        memcpy(old.end, out->end, sizeof old.end);
        out->bytes = (struct buf){0};
        for (size_t i = 0; i < n; i++) {
            if (depends[i])
                reply_status(&reply.base, err.code, &err);
            else
                buf_add_slice(&out->bytes, answer(&old, i));
            out->end[i] = out->bytes.len;
        }
        buf_release(&was);
    }
    arena_reset(&k->args);
}

static inline void stack_run(struct stack *k, const char *const *lines, size_t n, struct answers *out)
{
    stack_run_as(k, &k->session, lines, n, out);
}

#endif
