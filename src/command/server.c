/* What commands share: the clients, the statistics, the pause. */
#include "command/server.h"

#include <stdio.h>
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

void server_init(struct server *s, struct config *config, struct engine *engine)
{
    s->config = config;
    s->engine = engine;
    s->view = engine_view(engine);
    s->next_id = 1;
    s->command_stats = mem_zalloc((size_t)command_count() * sizeof *s->command_stats);
    s->slowlog = slowlog_new();
    s->blocking = blocking_new();
    s->latency = latency_new();
    s->attempt = attempt_new();
    s->start_us = clock_mono_us();
    s->clock_us = s->start_us;
    s->last_save_ms = clock_wall_us() / 1000;
    s->start_memory = server_used_memory(s);
    s->sweep_active = true;
    s->stats.sample_at_us = s->start_us;
    uint8_t id[20];
    rand_secure(id, sizeof id);
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(s->run_id + 2 * i, 3, "%02x", id[i]);
}

void server_release(struct server *s)
{
    mem_free(s->command_stats);
    slowlog_free(s->slowlog);
    blocking_free(s->blocking);
    latency_free(s->latency);
    attempt_free(s->attempt);
    arena_release(&s->call_arena);
    s->command_stats = NULL;
    s->slowlog = NULL;
    s->latency = NULL;
}

void server_add_session(struct server *s, struct session *c)
{
    c->id = s->next_id++;
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
    if (c->monitor)
        s->nmonitors--;
}

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

void server_saved(struct server *s)
{
    s->last_save_ms = clock_wall_us() / 1000;
    s->saved_dirty = engine_get_stats(s->engine)->dirty;
    s->saves++;
}

void server_reset_stats(struct server *s)
{
    struct server_stats *st = &s->stats;
    memset(st, 0, sizeof *st);
    server_used_memory(s);
    st->sample_at_us = clock_mono_us();
    memset(s->command_stats, 0, (size_t)command_count() * sizeof *s->command_stats);
    s->nerror_codes = 0;
    engine_reset_stats(s->engine);
    cache_reset_stats(engine_cache(s->engine));
}

void server_note_error(struct server *s, const char *code)
{
    s->stats.errors++;
    uint32_t i = 0;
    while (i < s->nerror_codes && strcmp(s->error_codes[i].code, code) != 0)
        i++;
    if (i == s->nerror_codes) {
        if (i == SERVER_ERROR_CODES)
            return;
        snprintf(s->error_codes[i].code, sizeof s->error_codes[i].code, "%s", code);
        s->error_codes[i].count = 0;
        s->nerror_codes++;
    }
    s->error_codes[i].count++;
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

void server_pause(struct server *s, enum pause_mode mode, int64_t until_us)
{
    if (mode > s->pause)
        s->pause = mode;
    if (until_us > s->pause_until_us)
        s->pause_until_us = until_us;
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
