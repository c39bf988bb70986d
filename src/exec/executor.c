/* What commands share: the clients, the statistics, the pause. */
#include "exec/executor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "engine/engine.h"
#include "engine/recent.h"
#include "exec/block.h"
#include "exec/command.h"
#include "exec/session.h"
#include "store/replicated.h"

void server_init(struct server *server)
{
    uint8_t id[20];
    *server = (struct server){.next_id = 1, .sweep_active = true};
    server->blocking = blocking_new();
    server->start_us = clock_mono_us();
    server->last_save_ms = clock_wall_us() / 1000;
    rand_secure(id, sizeof id);
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(server->run_id + 2 * i, 3, "%02x", id[i]);
}

void server_release(struct server *server)
{
    assert(block_clients(server) == 0);
    blocking_free(server->blocking);
    *server = (struct server){0};
}

#define RANDOM_START 0x1234ABCD330Eu /* as POSIX' generator of 48 bits begins */

void executor_init(struct executor *s, struct server *server, struct config *config, struct engine *engine)
{
    assert(server->nexecutors < WORKERS_MAX);
    s->server = server;
    s->index = server->nexecutors++;
    server->executors[s->index] = s;
    s->config = config;
    s->random = RANDOM_START;
    executor_add_engine(s, engine);
    executor_use_engine(s, engine);
    s->command_stats = mem_zalloc((size_t)command_count() * sizeof *s->command_stats);
    s->clock_us = server->start_us;
    server->start_memory = executor_used_memory(s);
    s->stats.sample_at_us = server->start_us;
}

void executor_add_engine(struct executor *s, struct engine *engine)
{
    assert(s->nengines < ENGINES_MAX);
    s->engines[s->nengines++] = engine;
}

void executor_use_engine(struct executor *s, struct engine *engine)
{
    s->engine = engine;
    s->view = engine_view(engine);
}

void executor_release(struct executor *s)
{
    mem_free(s->command_stats);
    books_release(&s->books);
    arena_release(&s->call_arena);
    s->command_stats = NULL;
}

/* ---- clients ---- */

uint64_t server_next_id(struct server *server)
{
    return atomic_fetch_add_explicit(&server->next_id, 1, memory_order_relaxed);
}

void executor_add_session(struct executor *s, struct session *c)
{
    c->executor = s;
    c->prev = s->last;
    c->next = NULL;
    if (s->last)
        s->last->next = c;
    else
        s->first = c;
    s->last = c;
    s->nsessions++;
    s->stats.accepted[c->way]++;
}

void executor_remove_session(struct executor *s, struct session *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        s->first = c->next;
    if (c->next)
        c->next->prev = c->prev;
    else
        s->last = c->prev;
    c->prev = c->next = NULL;
    c->gone = true;
    s->nsessions--;
    executor_set_monitor(s, c, false);
}

void executor_set_monitor(struct executor *s, struct session *c, bool on)
{
    if (c->state.monitor == on)
        return;
    c->state.monitor = on;
    if (on) {
        atomic_fetch_add(&s->nmonitors, 1);
        atomic_fetch_add(&s->server->nmonitors, 1);
    } else {
        atomic_fetch_sub(&s->server->nmonitors, 1);
        atomic_fetch_sub(&s->nmonitors, 1);
    }
}

void executor_tell_others(struct executor *s)
{
    const struct server *server = s->server;
    for (uint32_t i = 0; i < server->nexecutors && s->others_due; i++) {
        struct executor *to = server->executors[i];
        if (to == s)
            continue;
        if (s->others_due >> i & 1)
            to->look(to);
    }
    s->others_due = 0;
}

struct session *server_find_session(const struct server *server, uint64_t id)
{
    for (uint32_t i = 0; i < server->nexecutors; i++)
        for (struct session *c = server->executors[i]->first; c; c = c->next)
            if (c->id == id)
                return c;
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(struct session *const *)a)->id, y = (*(struct session *const *)b)->id;
    return (x > y) - (x < y);
}

struct session **server_list_sessions(const struct server *server, struct arena *arena, size_t *ret_n)
{
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < server->nexecutors; i++)
        n += server->executors[i]->nsessions;
    struct session **list = arena_alloc(arena, (n + 1) * sizeof(struct session *));
    for (uint32_t i = 0; i < server->nexecutors; i++)
        for (struct session *c = server->executors[i]->first; c; c = c->next)
            list[at++] = c;
    assert(at == n);
    if (server->nexecutors > 1)
        qsort(list, n, sizeof(struct session *), by_id);
    *ret_n = n;
    return list;
}

/* ---- statistics ---- */

/* A rate over the time since the last sample, kept with the samples before it. */
static void sample(struct rate *r, uint64_t total, int64_t elapsed_us, unsigned slot)
{
    r->samples[slot] = elapsed_us > 0 ? (total - r->seen) * 1000000 / (uint64_t)elapsed_us : 0;
    r->seen = total;
}

void executor_tick(struct executor *s)
{
    struct executor_stats *st = &s->stats;
    int64_t now = clock_mono_us();
    int64_t elapsed = now - st->sample_at_us;
    st->sample_at_us = now;
    st->slot = (st->slot + 1) % RATE_SAMPLES;
    sample(&st->ops, st->commands, elapsed, st->slot);
    sample(&st->input, st->net_in, elapsed, st->slot);
    sample(&st->output, st->net_out, elapsed, st->slot);
    executor_used_memory(s);
}

size_t executor_used_memory(struct executor *s)
{
    size_t used = mem_used();
    if (used == 0)
        used = mem_rss();
    if (used > s->stats.peak_memory)
        s->stats.peak_memory = used;
    return used;
}

size_t executor_client_memory(const struct executor *s)
{
    size_t sum = 0;
    for (const struct session *c = s->first; c; c = c->next) {
        struct session_usage usage;
        c->ops->usage(c, &usage);
        sum += usage.total;
    }
    return sum;
}

uint64_t rate_mean(const struct rate *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < RATE_SAMPLES; i++)
        sum += r->samples[i];
    return sum / RATE_SAMPLES;
}

void server_saved(struct server *server)
{
    server->last_save_ms = clock_wall_us() / 1000;
    server->saves++;
    for (uint32_t i = 0; i < server->nexecutors; i++) {
        struct executor *s = server->executors[i];
        s->saved_dirty = 0;
        for (uint32_t j = 0; j < s->nengines; j++)
            s->saved_dirty += engine_get_stats(s->engines[j])->dirty;
    }
}

void executor_reset_stats(struct executor *s)
{
    struct executor_stats *st = &s->stats;
    books_empty(&s->books);
    memset(st, 0, sizeof *st);
    executor_used_memory(s);
    st->sample_at_us = clock_mono_us();
    memset(s->command_stats, 0, (size_t)command_count() * sizeof *s->command_stats);
    s->errors.n = 0;
    for (uint32_t i = 0; i < s->nengines; i++)
        engine_reset_stats(s->engines[i]);
    if (s->recent)
        engine_reset_stats(recent_engine(s->recent));
}

void executor_note_error(struct executor *s, const char *code)
{
    s->books.nerrors++;
    error_counts_add(&s->books.errors, code, 1);
}

bool executor_only_reads(const struct executor *s)
{
    return store_only_reads(engine_store(s->engines[0]));
}

void executor_note_failure(struct executor *s, enum status st)
{
    s->failures++;
    books_count(&s->books, BOOKS_DATABASE_ERROR, st);
}

bool executor_paused(struct executor *s, bool may_write, int64_t mono_us)
{
    if (s->pause == PAUSE_NONE)
        return false;
    if (mono_us >= s->pause_until_us) {
        s->pause = PAUSE_NONE;
        s->pause_until_us = 0;
        return false;
    }
    return s->pause == PAUSE_ALL || may_write;
}

void executor_pause(struct executor *s, enum pause_mode mode, int64_t mono_us, int64_t until_us)
{
    executor_paused(s, false, mono_us); /* ends a pause that is over, if no command has done so */
    if (mode > s->pause)
        s->pause = mode;
    if (until_us > s->pause_until_us)
        s->pause_until_us = until_us;
}
