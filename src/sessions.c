#include "sessions.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/notify.h"
#include "journal/journal.h"
#include "sql/remote.h"
#include "store/deferred.h"
#include "store/replicated.h"
#include "store/store.h"

#define OFTEN_MS 1000 /* under load tables are so far behind, if passes are brief */
#define FEW_ROWS 8    /* under light load: that many cost about as much in the tables as in the journal */

static struct store_options store_options(const struct config *c)
{
    return (struct store_options){
        .url = c->store,
        .durability = (enum durability)c->durability,
        .databases = (uint32_t)c->databases,
        .page_cache = c->page_cache,
        .busy_ms = (uint32_t)c->busy_timeout_ms,
        .timeout_ms = (uint32_t)c->store_timeout_ms,
        .lease_ms = (uint32_t)c->exclusive_lease_ms,
        .replay = journal_replay,
        .use = (enum store_use)c->read_only,
        .accept_untested = c->accept_untested,
    };
}

bool sessions_are_shared(const struct config *c)
{
    return remote_is_url(c->store) && !remote_is_exclusive(c->store);
}

/* What follows the replicas is there when all sessions are. */
static bool primary_away(void *arg)
{
    const struct sessions *s = arg;
    return s->replicas && replicas_primary_away(s->replicas);
}

static enum status open_store(const struct config *c, struct sessions *s, bool joins, struct store **ret,
                              struct error *err)
{
    struct store_options options = store_options(c);
    const struct journal_options journal = {.max_bytes = c->journal_max,
                                            .loan_bytes = remote_is_url(c->store) ? 0 : c->journal_loan,
                                            .log_max = c->log_max,
                                            .wal_max = c->wal_max,
                                            .lag_ms = (uint32_t)c->apply_lag_ms,
                                            .often_ms = OFTEN_MS,
                                            .few_rows = FEW_ROWS,
                                            .lock_ms = (uint32_t)c->busy_timeout_ms,
                                            .away_ms = (uint32_t)c->store_timeout_ms};
    bool plain = remote_is_url(c->store) && (c->journal_max == 0 || sessions_are_shared(c));
    options.joins = joins;
    options.away = primary_away;
    options.away_arg = s;
    return plain ? store_open(&options, ret, err) : journal_store_open(&options, &journal, ret, err);
}

#define WAIT_MIN_MS  100 /* between two tries to reach a database server, growing ... */
#define WAIT_MAX_MS  2000
#define WAIT_TELL_US 10000000 /* and how often the log says so */
#define PROBE_MS     5000

/* Sleeps, unless a signal asks to stop: then true. */
static bool asked_to_stop(const sigset_t *stops, int64_t ms)
{
    int64_t until = clock_mono_us() + ms * 1000;
    for (int64_t us; (us = until - clock_mono_us()) > 0;) {
        const struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        int number = sigtimedwait(stops, NULL, &left);
        if (number == SIGTERM || number == SIGINT)
            return true;
    }
    return false;
}

/* A database server may be started after us, or be starting: it is tried for as long as store-wait says.
 *ret_stop: a signal came meanwhile. */
static enum status open_patiently(const struct config *c, const sigset_t *stops, struct sessions *s,
                                  bool *ret_stop, struct error *err)
{
    const struct remote_options probe = {.url = c->store, .connect_ms = PROBE_MS};
    int64_t begun = clock_mono_us(), told = begun - WAIT_TELL_US, pause = WAIT_MIN_MS;
    char text[2 * sizeof err->text];
    for (;;) {
        enum status st = open_store(c, s, false, &s->stores[0], err);
        int64_t now = clock_mono_us(), left = (int64_t)c->store_wait_ms - (now - begun) / 1000;
        if (st != ST_IO || !remote_is_url(c->store) || left <= 0 || remote_refuses(&probe))
            return st;
        if (now - told >= WAIT_TELL_US) {
            log_warning("waiting for the database", "left_s=%lld error=%s", (long long)(left + 999) / 1000,
                        log_quote(text, sizeof text, err->text));
            notify_manager("STATUS=waiting for the database");
            told = now;
        }
        *ret_stop = asked_to_stop(stops, pause < left ? pause : left);
        if (*ret_stop)
            return st;
        pause = pause * 2 < WAIT_MAX_MS ? pause * 2 : WAIT_MAX_MS;
    }
}

/* As many as the configuration says, or as there are processors; a database that is not shared has one. */
static uint32_t count_workers(const struct config *c)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t n = c->workers ? c->workers : processors < 1 ? 1 : processors;
    return !sessions_are_shared(c) ? 1 : n > WORKERS_MAX ? WORKERS_MAX : (uint32_t)n;
}

static enum status open_workers(const struct config *c, const sigset_t *stops, struct sessions *s,
                                bool *ret_stop, struct error *err)
{
    enum status st = ST_OK;
    s->n = count_workers(c);
    const struct engine_options limits = {.databases = (uint32_t)c->databases,
                                          .cache_memory = c->cache_memory / s->n};
    for (uint32_t i = 0; i < s->n && st == ST_OK; i++) {
        st = i ? open_store(c, s, true, &s->stores[i], err) : open_patiently(c, stops, s, ret_stop, err);
        if (st == ST_OK)
            st = engine_new(s->stores[i], &limits, &s->engines[i], err);
    }
    return st;
}

/* Sessions on replicas connect when they can. */
static enum status open_replica_sessions(const struct config *c, const struct replica_urls *u,
                                         struct sessions *s, struct error *err)
{
    enum status st = ST_OK;
    struct store_options options = store_options(c);
    const struct engine_options limits = {.databases = (uint32_t)c->databases,
                                          .cache_memory = c->cache_memory / s->n / (u->n + 1)};
    options.replica = true;
    options.use = USE_FULLY;
    options.timeout_ms = (uint32_t)c->replica_timeout_ms;
    s->each = u->n;
    s->replica_stores = mem_zalloc((size_t)s->n * s->each * sizeof(struct store *));
    s->replica_engines = mem_zalloc((size_t)s->n * s->each * sizeof(struct engine *));
    for (uint32_t i = 0; i < s->n * s->each && st == ST_OK; i++) {
        options.url = u->urls[i % s->each];
        options.beside = s->stores[i / s->each];
        st = store_open(&options, &s->replica_stores[i], err);
        if (st == ST_OK)
            st = engine_new(s->replica_stores[i], &limits, &s->replica_engines[i], err);
    }
    return st;
}

/* What follows how far the replicas have got, and their sessions. */
static enum status open_replicas(const struct config *c, const struct replica_urls *u, struct sessions *s,
                                 struct error *err)
{
    const struct replicas_options options = {.primary = c->store,
                                             .urls = u->urls,
                                             .n = u->n,
                                             .databases = (uint32_t)c->databases,
                                             .read_only = c->read_only != USE_FULLY,
                                             .max_lag_ms = (uint32_t)c->replica_max_lag_ms,
                                             .timeout_ms = (uint32_t)c->replica_timeout_ms};
    if ((u->n || options.read_only) && s->stores[0] && !store_replicated(s->stores[0]))
        return error_set(
            err, ST_INVALID,
            "%s: a Galera cluster has no positions to compare replicas by; leave it out, and name the"
            " nodes as hosts of the store",
            u->n ? "--replica" : "--read-only");
    enum status st = u->n ? open_replica_sessions(c, u, s, err) : ST_OK;
    return (u->n || options.read_only) && st == ST_OK ? replicas_start(&options, &s->replicas, err) : st;
}

#define READER_CACHE ((uint64_t)8 << 20) /* of the database's own, in a session that reads for queries */

/* Shared tables have no session beside which others are. */
static struct store_options further_options(const struct config *c, const struct sessions *s)
{
    struct store_options o = store_options(c);
    o.joins = sessions_are_shared(c);
    o.page_cache = o.page_cache < READER_CACHE ? o.page_cache : READER_CACHE;
    if (o.joins)
        return o;
    o.read_only = o.peeks = true;
    o.beside = store_commits_later(s->stores[0]) ? journal_store_writer(s->stores[0]) : s->stores[0];
    return o;
}

enum status sessions_open_reader(void *arg, bool (*away)(void *arg), void *away_arg, struct store **ret,
                                 struct error *err)
{
    const struct sessions *s = arg;
    struct store_options o = s->further;
    o.away = away;
    o.away_arg = away_arg;
    return store_open(&o, ret, err);
}

enum status sessions_open(const struct config *c, const struct replica_urls *urls, const sigset_t *stops,
                          struct sessions *s, bool *ret_stop, struct error *err)
{
    enum status st = open_workers(c, stops, s, ret_stop, err);
    if (st == ST_OK)
        s->further = further_options(c, s);
    return st == ST_OK ? open_replicas(c, urls, s, err) : st;
}

void sessions_close(struct sessions *s)
{
    for (uint32_t i = 0; i < s->n * s->each; i++) {
        engine_free(s->replica_engines[i]);
        store_close(s->replica_stores[i]);
    }
    mem_free(s->replica_engines);
    mem_free(s->replica_stores);
    for (uint32_t i = 0; i < s->n; i++) {
        engine_free(s->engines[i]);
        store_close(s->stores[i]);
    }
    replicas_stop(s->replicas); /* a primary that hangs is not waited for, as long as somebody knows */
}
