#include "stats/sums.h"

#include "engine/recent.h"
#include "exec/command.h"
#include "script/cache.h"
#include "script/library.h"
#include "script/scripts.h"
#include "store/shared.h"

static void add_counts(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_rate(struct rate *to, const struct rate *from)
{
    add_counts(to->samples, from->samples, RATE_SAMPLES);
}

static void add_stats(struct executor_stats *to, const struct executor_stats *from)
{
    add_counts(to->accepted, from->accepted, SESSION_WAYS);
    add_counts(to->rejected, from->rejected, REJECTIONS);
    add_counts(to->closed, from->closed, CLOSURES);
    to->commands += from->commands;
    to->net_in += from->net_in;
    to->net_out += from->net_out;
    to->errors += from->errors;
    to->acl_denied_auth += from->acl_denied_auth;
    to->reads += from->reads;
    to->writes += from->writes;
    if (from->peak_memory > to->peak_memory)
        to->peak_memory = from->peak_memory;
    add_counts(to->database_errors, from->database_errors, STATUSES);
    histogram_merge(&to->batch_commands, &from->batch_commands);
    add_counts(to->http_answers, from->http_answers, HTTP_STATUS_END);
    to->reruns += from->reruns;
    to->wakeups += from->wakeups;
    to->sweep_passes += from->sweep_passes;
    for (int mode = 0; mode < READ_MODES; mode++)
        add_counts(to->served[mode], from->served[mode], READ_PLACES);
    add_rate(&to->ops, &from->ops);
    add_rate(&to->input, &from->input);
    add_rate(&to->output, &from->output);
}

static void add_errors(struct error_counts *to, const struct error_counts *from)
{
    for (uint32_t i = 0; i < from->n; i++)
        error_counts_add(to, from->at[i].code, from->at[i].count);
}

static void add_engine(struct engine_stats *to, const struct engine_stats *from)
{
    to->batches += from->batches;
    to->commits += from->commits;
    to->commit_failures += from->commit_failures;
    to->commands += from->commands;
    to->rows_written += from->rows_written;
    to->ahead_rows += from->ahead_rows;
    to->ahead_slices += from->ahead_slices;
    to->keyspace_hits += from->keyspace_hits;
    to->keyspace_misses += from->keyspace_misses;
    to->expired_on_read += from->expired_on_read;
    to->expired_fields += from->expired_fields;
    to->expired_rows += from->expired_rows;
    to->renumbered_items += from->renumbered_items;
    to->expired_by_sweep += from->expired_by_sweep;
    to->deleted_by_sweep += from->deleted_by_sweep;
    to->items_by_sweep += from->items_by_sweep;
    histogram_merge(&to->sweep_us, &from->sweep_us);
    histogram_merge(&to->commit_us, &from->commit_us);
    to->external_changes += from->external_changes;
    to->dirty += from->dirty;
}

static void add_cache(struct sums *t, const struct cache *cache)
{
    const struct cache_stats *from = cache_get_stats(cache);
    t->cache.hits += from->hits;
    t->cache.misses += from->misses;
    t->cache.evicted += from->evicted;
    t->cache.dropped += from->dropped;
    t->cache.rows += from->rows;
    t->cache.bytes += from->bytes;
    t->cache_budget += cache_budget(cache);
}

static void add_memory(struct engine_memory *to, struct engine_memory from)
{
    to->rows += from.rows;
    to->collections += from.collections;
    to->changes += from.changes;
    to->store += from.store;
}

static void add_engine_of(struct sums *to, struct engine *engine)
{
    const struct engine_stats *stats = engine_get_stats(engine);
    add_engine(&to->engine, stats);
    engine_add_tally(&to->engine, engine_tally(engine));
    to->unsaved += stats->dirty + engine_tally(engine)->dirty;
    add_cache(to, engine_cache(engine));
    add_memory(&to->memory, engine_memory(engine));
}

void sums_gather(struct server *all, struct sums *ret)
{
    *ret = (struct sums){0};
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        const struct executor *s = all->executors[i];
        add_stats(&ret->stats, &s->stats);
        books_sum(&s->books, &ret->stats);
        add_errors(&ret->errors, &s->errors);
        add_errors(&ret->errors, &s->books.errors);
        for (uint32_t j = 0; j < s->nengines; j++)
            add_engine_of(ret, s->engines[j]);
        if (s->recent)
            add_engine_of(ret, recent_engine(s->recent));
        ret->unsaved -= s->saved_dirty;
        ret->client_memory += executor_client_memory(s);
        ret->nsessions += s->nsessions;
        ret->nwaiters += s->nwaiters;
        ret->njob_waiters += s->njob_waiters;
    }
}

enum status sums_store(const struct executor *s, struct store_info *ret, struct error *err)
{
    const struct server *all = s->server;
    enum status st = store_info(engine_store(s->engine), ret, err);
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        if (all->executors[i] != s)
            store_counters(engine_store(all->executors[i]->engine), ret);
    }
    return st;
}

/* Only the server that asks may be in a transaction. */
static void add_books(struct command_sums *t, const struct books *b, uint32_t index)
{
    for (size_t i = 0; i < b->ncalls; i++) {
        if (b->calls[i].command != index)
            continue;
        t->calls += b->calls[i].times;
        t->us += (uint64_t)b->calls[i].us * b->calls[i].times;
    }
    for (size_t i = 0; i < b->nevents; i++) {
        if (b->events[i].which != index)
            continue;
        t->rejected += b->events[i].kind == BOOKS_REJECTED ? b->events[i].times : 0;
        t->failed += b->events[i].kind == BOOKS_FAILED ? b->events[i].times : 0;
    }
}

struct command_sums sums_command(const struct executor *s, int index)
{
    const struct server *all = s->server;
    struct command_sums t = {0};
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        const struct command_stat *stat = &all->executors[i]->command_stats[index];
        t.calls += histogram_count(&stat->us);
        t.us += histogram_sum(&stat->us);
        t.rejected += stat->rejected;
        t.failed += stat->failed;
    }
    add_books(&t, &s->books, (uint32_t)index);
    return t;
}

void sums_command_times(const struct executor *s, int index, struct histogram_view *add_to)
{
    const struct server *all = s->server;
    for (uint32_t i = 0; i < all->nexecutors; i++)
        histogram_read(&all->executors[i]->command_stats[index].us, add_to);
    for (size_t i = 0; i < s->books.ncalls; i++)
        if (s->books.calls[i].command == (uint32_t)index)
            histogram_view_add(add_to, (uint64_t)s->books.calls[i].us, s->books.calls[i].times);
}

/* ---- scripts ---- */

static void add_libraries(struct script_sums *t, const struct libraries *ls)
{
    uint64_t n = 0, bytes = 0;
    for (size_t i = 0; i < ls->n; i++) {
        n += ls->all[i]->current;
        bytes += ls->all[i]->current ? ls->all[i]->name.n + ls->all[i]->code.n : 0;
    }
    t->libraries = n > t->libraries ? n : t->libraries;
    t->library_bytes = bytes > t->library_bytes ? bytes : t->library_bytes;
    t->functions = ls->functions.count > t->functions ? ls->functions.count : t->functions;
}

struct script_sums sums_scripts(const struct server *all)
{
    struct script_sums t = {0};
    if (all->script_cache) {
        struct script_cache_size size = script_cache_size(all->script_cache);
        t.scripts = size.scripts;
        t.script_bytes = size.bytes;
    }
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        const struct scripts *s = all->executors[i]->scripts;
        for (int kind = 0; s && kind < INTERPS; kind++)
            t.vm[kind] += s->interps[kind] ? s->interps[kind]->memory : 0;
        if (s && s->libraries)
            add_libraries(&t, s->libraries);
    }
    return t;
}
