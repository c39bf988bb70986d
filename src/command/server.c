/* What commands share: the clients, the statistics, the pause. */
#include "command/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "command/attempt.h"
#include "command/block.h"
#include "command/command.h"
#include "command/latency.h"
#include "command/session.h"
#include "command/slowlog.h"
#include "engine/engine.h"

void commons_init(struct commons *c)
{
    uint8_t id[20];
    *c = (struct commons){.next_id = 1, .sweep_active = true};
    c->blocking = blocking_new();
    c->slowlog = slowlog_new();
    c->latency = latency_new();
    c->start_us = clock_mono_us();
    c->last_save_ms = clock_wall_us() / 1000;
    rand_secure(id, sizeof id);
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(c->run_id + 2 * i, 3, "%02x", id[i]);
}

void commons_release(struct commons *c)
{
    blocking_free(c->blocking);
    slowlog_free(c->slowlog);
    latency_free(c->latency);
    *c = (struct commons){0};
}

void server_init(struct server *s, struct commons *commons, struct config *config, struct engine *engine)
{
    assert(commons->nservers < SERVERS_MAX);
    s->commons = commons;
    s->index = commons->nservers++;
    commons->servers[s->index] = s;
    s->config = config;
    s->engine = engine;
    s->view = engine_view(engine);
    s->command_stats = mem_zalloc((size_t)command_count() * sizeof *s->command_stats);
    s->attempt = attempt_new();
    s->clock_us = commons->start_us;
    commons->start_memory = server_used_memory(s);
    s->stats.sample_at_us = commons->start_us;
}

void server_release(struct server *s)
{
    mem_free(s->command_stats);
    attempt_free(s->attempt);
    buf_release(&s->lines);
    arena_release(&s->call_arena);
    s->command_stats = NULL;
}

/* ---- clients ---- */

uint64_t server_next_id(struct commons *all)
{
    return atomic_fetch_add_explicit(&all->next_id, 1, memory_order_relaxed);
}

void server_add_session(struct server *s, struct session *c)
{
    c->server = s;
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

void server_remove_session(struct server *s, struct session *c)
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
    s->nsessions--;
    server_set_monitor(s, c, false);
}

void server_set_monitor(struct server *s, struct session *c, bool on)
{
    if (c->monitor == on)
        return;
    c->monitor = on;
    if (on) {
        atomic_fetch_add(&s->nmonitors, 1);
        atomic_fetch_add(&s->commons->nmonitors, 1);
    } else {
        atomic_fetch_sub(&s->commons->nmonitors, 1);
        atomic_fetch_sub(&s->nmonitors, 1);
    }
}

void server_tell_others(struct server *s)
{
    const struct commons *all = s->commons;
    for (uint32_t i = 0; i < all->nservers && (s->others_due || s->lines.len); i++) {
        struct server *to = all->servers[i];
        if (to == s)
            continue;
        if (s->others_due >> i & 1)
            to->look(to);
        if (s->lines.len && atomic_load_explicit(&to->nmonitors, memory_order_relaxed))
            to->tell_monitors(to, buf_slice(&s->lines));
    }
    s->others_due = 0;
    buf_release(&s->lines);
}

struct session *server_find_session(const struct commons *all, uint64_t id)
{
    for (uint32_t i = 0; i < all->nservers; i++)
        for (struct session *c = all->servers[i]->first; c; c = c->next)
            if (c->id == id)
                return c;
    return NULL;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = (*(struct session *const *)a)->id, y = (*(struct session *const *)b)->id;
    return (x > y) - (x < y);
}

struct session **server_list_sessions(const struct commons *all, struct arena *arena, size_t *ret_n)
{
    size_t n = 0, at = 0;
    for (uint32_t i = 0; i < all->nservers; i++)
        n += all->servers[i]->nsessions;
    struct session **list = arena_alloc(arena, (n + 1) * sizeof(struct session *));
    for (uint32_t i = 0; i < all->nservers; i++)
        for (struct session *c = all->servers[i]->first; c; c = c->next)
            list[at++] = c;
    assert(at == n);
    if (all->nservers > 1)
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

void server_tick(struct server *s)
{
    struct server_stats *st = &s->stats;
    int64_t now = clock_mono_us();
    int64_t elapsed = now - st->sample_at_us;
    st->sample_at_us = now;
    st->slot = (st->slot + 1) % RATE_SAMPLES;
    sample(&st->ops, st->commands, elapsed, st->slot);
    sample(&st->input, st->net_in, elapsed, st->slot);
    sample(&st->output, st->net_out, elapsed, st->slot);
    server_used_memory(s);
}

size_t server_used_memory(struct server *s)
{
    size_t used = mem_used();
    if (used == 0)
        used = mem_rss();
    if (used > s->stats.peak_memory)
        s->stats.peak_memory = used;
    return used;
}

size_t server_client_memory(const struct server *s)
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

void server_saved(struct commons *all)
{
    all->last_save_ms = clock_wall_us() / 1000;
    all->saves++;
    for (uint32_t i = 0; i < all->nservers; i++)
        all->servers[i]->saved_dirty = engine_get_stats(all->servers[i]->engine)->dirty;
}

void server_reset_stats(struct server *s)
{
    struct server_stats *st = &s->stats;
    memset(st, 0, sizeof *st);
    server_used_memory(s);
    st->sample_at_us = clock_mono_us();
    memset(s->command_stats, 0, (size_t)command_count() * sizeof *s->command_stats);
    s->errors.n = 0;
    engine_reset_stats(s->engine);
    cache_reset_stats(engine_cache(s->engine));
}

void error_counts_add(struct error_counts *e, const char *code, uint64_t n)
{
    uint32_t i = 0;
    while (i < e->n && strcmp(e->at[i].code, code) != 0)
        i++;
    if (i == e->n) {
        if (i == sizeof e->at / sizeof *e->at)
            return;
        snprintf(e->at[i].code, sizeof e->at[i].code, "%s", code);
        e->at[i].count = 0;
        e->n++;
    }
    e->at[i].count += n;
}

void server_note_error(struct server *s, const char *code)
{
    s->stats.errors++;
    error_counts_add(&s->errors, code, 1);
}

void server_note_failure(struct server *s, enum status st)
{
    s->stats.database_errors[st]++;
}

bool server_password_is(const struct server *s, struct slice guess)
{
    struct slice secret = slice_str(s->config->requirepass);
    unsigned char differs = guess.n != secret.n;
    for (size_t i = 0; i < guess.n; i++)
        differs |= (unsigned char)(guess.p[i] ^ (i < secret.n ? secret.p[i] : 0));
    return !differs;
}

bool server_paused(struct server *s, bool may_write, int64_t mono_us)
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

void server_pause(struct server *s, enum pause_mode mode, int64_t mono_us, int64_t until_us)
{
    server_paused(s, false, mono_us); /* one that is over, but nobody has asked since */
    if (mode > s->pause)
        s->pause = mode;
    if (until_us > s->pause_until_us)
        s->pause_until_us = until_us;
}
