/* INFO: what the server knows about itself, in Redis' sections and fields (clients and dashboards parse them)
   and one section of our own. A field that Redis has and this server has nothing for is left out, unless zero
   is the truth about it. */
#include "stats/info.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hide.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "query/threads.h"
#include "stats/replication.h"
#include "stats/stats.h"
#include "stats/sums.h"

#ifdef LARDER_JEMALLOC
#define ALLOCATOR "jemalloc"
#else
#define ALLOCATOR "libc"
#endif

typedef void section_fn(struct call *c, const struct sums *t, struct buf *out);

static void add_u64(struct buf *out, const char *name, uint64_t v)
{
    buf_addf(out, "%s:%llu\r\n", name, (unsigned long long)v);
}

static void add_i64(struct buf *out, const char *name, int64_t v)
{
    buf_addf(out, "%s:%lld\r\n", name, (long long)v);
}

static void add_text(struct buf *out, const char *name, const char *v)
{
    buf_addf(out, "%s:%s\r\n", name, v);
}

/* A size twice: in bytes, and as name_human "1.50M". */
static void add_human(struct buf *out, const char *name, uint64_t v)
{
    static const char units[] = "KMGTP";
    if (v < 1024) {
        buf_addf(out, "%s_human:%lluB\r\n", name, (unsigned long long)v);
        return;
    }
    double scaled = (double)v / 1024;
    size_t unit = 0;
    for (; scaled >= 1024 && unit + 2 < sizeof units; unit++)
        scaled /= 1024;
    buf_addf(out, "%s_human:%.2f%c\r\n", name, scaled, units[unit]);
}

static void add_bytes(struct buf *out, const char *name, uint64_t v)
{
    add_u64(out, name, v);
    add_human(out, name, v);
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static uint64_t total(const uint64_t *counts, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

/* ---- sections ---- */

static void info_server(struct call *c, const struct sums *t, struct buf *out)
{
    (void)t;
    const struct executor *s = c->executor;
    struct utsname os = {0};
    char exe[1024];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    uname(&os);
    int64_t wall = clock_wall_us();
    int64_t up = (clock_mono_us() - s->server->start_us) / 1000000;
    add_text(out, "redis_version", REDIS_VERSION);
    add_text(out, "redis_git_sha1", "00000000");
    add_text(out, "redis_git_dirty", "0");
    add_text(out, "redis_build_id", "0");
    add_text(out, "redis_mode", "standalone");
    buf_addf(out, "os:%s %s %s\r\n", os.sysname, os.release, os.machine);
    add_u64(out, "arch_bits", sizeof(void *) * 8);
    add_text(out, "monotonic_clock", "POSIX clock_gettime");
    add_text(out, "multiplexing_api", "epoll");
    add_text(out, "gcc_version", __VERSION__);
    add_i64(out, "process_id", getpid());
    add_text(out, "process_supervised", "no");
    add_text(out, "run_id", s->server->run_id);
    add_i64(out, "tcp_port", s->server->tcp_port);
    add_i64(out, "server_time_usec", wall);
    add_i64(out, "uptime_in_seconds", up);
    add_i64(out, "uptime_in_days", up / 86400);
    add_i64(out, "hz", 10);
    add_i64(out, "configured_hz", 10);
    add_i64(out, "lru_clock", wall / 1000000 & 0xffffff);
    add_text(out, "executable", exe);
    add_text(out, "config_file", s->config->file ? s->config->file : "");
    add_i64(out, "io_threads_active", 0);
}

static void info_clients(struct call *c, const struct sums *t, struct buf *out)
{
    add_u64(out, "connected_clients", t->nsessions);
    add_i64(out, "cluster_connections", 0);
    add_i64(out, "maxclients", c->executor->config->maxclients);
    add_i64(out, "blocked_clients", t->nwaiters + t->njob_waiters);
    add_i64(out, "tracking_clients", 0);
    add_i64(out, "clients_in_timeout_table", 0);
}

static void add_script_memory(struct buf *out, const struct server *server)
{
    const struct script_sums t = sums_scripts(server);
    uint64_t eval = t.vm[INTERP_EVAL], functions = t.vm[INTERP_FUNCTIONS];
    add_u64(out, "used_memory_lua", eval);
    add_u64(out, "used_memory_vm_eval", eval);
    add_human(out, "used_memory_lua", eval);
    add_u64(out, "used_memory_scripts_eval", t.script_bytes);
    add_u64(out, "number_of_cached_scripts", t.scripts);
    add_u64(out, "number_of_functions", t.functions);
    add_u64(out, "number_of_libraries", t.libraries);
    add_u64(out, "used_memory_vm_functions", functions);
    add_bytes(out, "used_memory_vm_total", eval + functions);
    add_u64(out, "used_memory_functions", t.library_bytes);
    add_bytes(out, "used_memory_scripts", t.script_bytes + t.library_bytes);
}

static void info_memory(struct call *c, const struct sums *t, struct buf *out)
{
    struct executor *s = c->executor;
    const struct cache_stats *cache = &t->cache;
    uint64_t used = executor_used_memory(s), rss = mem_rss();
    uint64_t peak = t->stats.peak_memory > used ? t->stats.peak_memory : used;
    uint64_t dataset = cache->bytes < used ? cache->bytes : used;
    uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    add_bytes(out, "used_memory", used);
    add_bytes(out, "used_memory_rss", rss);
    add_bytes(out, "used_memory_peak", peak);
    buf_addf(out, "used_memory_peak_perc:%.2f%%\r\n", ratio(used, peak) * 100);
    add_u64(out, "used_memory_overhead", used - dataset);
    add_u64(out, "used_memory_startup", s->server->start_memory);
    add_u64(out, "used_memory_dataset", dataset);
    buf_addf(out, "used_memory_dataset_perc:%.2f%%\r\n", ratio(dataset, used) * 100);
    add_bytes(out, "total_system_memory", total);
    add_script_memory(out, s->server);
    add_bytes(out, "maxmemory", 0);
    add_text(out, "maxmemory_policy", "noeviction");
    buf_addf(out, "mem_fragmentation_ratio:%.2f\r\n", ratio(rss, used));
    add_i64(out, "mem_fragmentation_bytes", (int64_t)rss - (int64_t)used);
    add_i64(out, "mem_clients_slaves", 0);
    add_u64(out, "mem_clients_normal", t->client_memory);
    add_i64(out, "mem_cluster_links", 0);
    add_i64(out, "mem_aof_buffer", 0);
    add_text(out, "mem_allocator", ALLOCATOR);
    add_i64(out, "active_defrag_running", 0);
    add_i64(out, "lazyfree_pending_objects", 0);
}

/* Every acknowledged write is in the database as durably as was configured: there is nothing to load, no
   child process that saves, and no append-only file. */
static void info_persistence(struct call *c, const struct sums *t, struct buf *out)
{
    const struct executor *s = c->executor;
    add_i64(out, "loading", 0);
    add_i64(out, "async_loading", 0);
    add_u64(out, "rdb_changes_since_last_save", t->unsaved);
    add_i64(out, "rdb_bgsave_in_progress", 0);
    add_i64(out, "rdb_last_save_time", s->server->last_save_ms / 1000);
    add_text(out, "rdb_last_bgsave_status", "ok");
    add_i64(out, "rdb_last_bgsave_time_sec", -1);
    add_i64(out, "rdb_current_bgsave_time_sec", -1);
    add_u64(out, "rdb_saves", s->server->saves);
    add_i64(out, "aof_enabled", 0);
    add_i64(out, "aof_rewrite_in_progress", 0);
    add_i64(out, "aof_rewrite_scheduled", 0);
    add_i64(out, "aof_last_rewrite_time_sec", -1);
    add_i64(out, "aof_current_rewrite_time_sec", -1);
    add_text(out, "aof_last_bgrewrite_status", "ok");
    add_text(out, "aof_last_write_status", engine_cannot_write(s->engine) ? "err" : "ok");
}

static void info_stats(struct call *c, const struct sums *t, struct buf *out)
{
    const struct executor_stats *s = &t->stats;
    const struct engine_stats *e = &t->engine;
    (void)c;
    add_u64(out, "total_connections_received", total(s->accepted, SESSION_WAYS));
    add_u64(out, "total_commands_processed", s->commands);
    add_u64(out, "instantaneous_ops_per_sec", rate_mean(&s->ops));
    add_u64(out, "total_net_input_bytes", s->net_in);
    add_u64(out, "total_net_output_bytes", s->net_out);
    buf_addf(out, "instantaneous_input_kbps:%.2f\r\n", (double)rate_mean(&s->input) / 1024);
    buf_addf(out, "instantaneous_output_kbps:%.2f\r\n", (double)rate_mean(&s->output) / 1024);
    add_u64(out, "rejected_connections", total(s->rejected, REJECTIONS));
    add_i64(out, "sync_full", 0);
    add_i64(out, "sync_partial_ok", 0);
    add_i64(out, "sync_partial_err", 0);
    add_u64(out, "expired_keys", e->expired_by_sweep);
    add_u64(out, "expired_subkeys", e->expired_fields);
    add_u64(out, "expired_table_rows", e->expired_rows);
    add_u64(out, "expire_cycle_cpu_milliseconds", histogram_sum(&e->sweep_us) / 1000);
    add_i64(out, "evicted_keys", 0);
    add_i64(out, "evicted_clients", 0);
    add_u64(out, "keyspace_hits", e->keyspace_hits);
    add_u64(out, "keyspace_misses", e->keyspace_misses);
    add_i64(out, "pubsub_channels", 0);
    add_i64(out, "pubsub_patterns", 0);
    add_i64(out, "pubsubshard_channels", 0);
    add_i64(out, "latest_fork_usec", 0);
    add_i64(out, "total_forks", 0);
    add_i64(out, "migrate_cached_sockets", 0);
    add_i64(out, "unexpected_error_replies", 0);
    add_u64(out, "total_error_replies", s->errors);
    add_u64(out, "total_reads_processed", s->reads);
    add_u64(out, "total_writes_processed", s->writes);
    add_i64(out, "io_threaded_reads_processed", 0);
    add_i64(out, "io_threaded_writes_processed", 0);
    add_u64(out, "acl_access_denied_auth", s->acl_denied_auth);
    add_u64(out, "client_query_buffer_limit_disconnections", s->closed[CLOSED_QUERY_LIMIT]);
    add_u64(out, "client_output_buffer_limit_disconnections", s->closed[CLOSED_OUTPUT_LIMIT]);
}

static void info_replication(struct call *c, const struct sums *t, struct buf *out)
{
    replication_info(c->executor, t, out);
}

static void add_cpu(struct buf *out, const char *who, const struct rusage *u)
{
    buf_addf(out, "used_cpu_sys%s:%ld.%06ld\r\n", who, (long)u->ru_stime.tv_sec, (long)u->ru_stime.tv_usec);
    buf_addf(out, "used_cpu_user%s:%ld.%06ld\r\n", who, (long)u->ru_utime.tv_sec, (long)u->ru_utime.tv_usec);
}

static void info_cpu(struct call *c, const struct sums *t, struct buf *out)
{
    struct rusage self = {0}, children = {0}, thread = {0};
    (void)c, (void)t;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    getrusage(RUSAGE_THREAD, &thread);
    add_cpu(out, "", &self);
    add_cpu(out, "_children", &children);
    add_cpu(out, "_main_thread", &thread);
}

static void info_modules(struct call *c, const struct sums *t, struct buf *out)
{
    (void)c, (void)t, (void)out;
}

static void info_commandstats(struct call *c, const struct sums *t, struct buf *out)
{
    (void)t;
    for (int i = 0; i < command_count(); i++) {
        const struct command_sums s = sums_command(c->executor, i);
        char name[COMMAND_NAME_CHARS];
        if (!s.calls && !s.failed && !s.rejected)
            continue;
        command_full_name(command_by_index(i, NULL), name);
        buf_addf(
            out,
            "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu\r\n",
            name, (unsigned long long)s.calls, (unsigned long long)s.us, ratio(s.us, s.calls),
            (unsigned long long)s.rejected, (unsigned long long)s.failed);
    }
}

static void info_errorstats(struct call *c, const struct sums *t, struct buf *out)
{
    (void)c;
    for (uint32_t i = 0; i < t->errors.n; i++)
        buf_addf(out, "errorstat_%s:count=%llu\r\n", t->errors.at[i].code,
                 (unsigned long long)t->errors.at[i].count);
}

static void info_latencystats(struct call *c, const struct sums *t, struct buf *out)
{
    (void)t;
    for (int i = 0; i < command_count(); i++) {
        struct histogram_view v = {0};
        char name[COMMAND_NAME_CHARS];
        sums_command_times(c->executor, i, &v);
        if (!v.count)
            continue;
        command_full_name(command_by_index(i, NULL), name);
        buf_addf(out, "latency_percentiles_usec_%s:p50=%.3f,p99=%.3f,p99.9=%.3f\r\n", name,
                 (double)histogram_quantile(&v, 0.5), (double)histogram_quantile(&v, 0.99),
                 (double)histogram_quantile(&v, 0.999));
    }
}

static void info_cluster(struct call *c, const struct sums *t, struct buf *out)
{
    (void)c, (void)t;
    add_i64(out, "cluster_enabled", 0);
}

/* A database that cannot be counted now (the disk fails) is left out: INFO is what one looks at then. */
static void info_keyspace(struct call *c, const struct sums *t, struct buf *out)
{
    (void)t;
    for (uint32_t db = 0; db < view_databases(c->view) && !c->executor->unreadable; db++) {
        int64_t keys, expires;
        if (view_db_size(c->view, db, &keys, &expires) == ST_OK && keys > 0)
            buf_addf(out, "db%u:keys=%lld,expires=%lld,avg_ttl=0\r\n", db, (long long)keys,
                     (long long)expires);
    }
}

/* How often, how long in all and the usual quantiles. h may be NULL. */
static void add_times(struct buf *out, const char *what, const struct histogram *h)
{
    struct histogram_view v = {0};
    if (!h)
        return;
    histogram_read(h, &v);
    buf_addf(out, "%s_usec:count=%llu,sum=%llu,p50=%llu,p99=%llu,p99.9=%llu\r\n", what,
             (unsigned long long)v.count, (unsigned long long)v.sum,
             (unsigned long long)histogram_quantile(&v, 0.5),
             (unsigned long long)histogram_quantile(&v, 0.99),
             (unsigned long long)histogram_quantile(&v, 0.999));
}

static void add_store(struct call *c, const struct sums *t, struct buf *out)
{
    struct store_info info = {0};
    struct error err;
    if (sums_store(c->executor, &info, &err) != ST_OK) {
        add_text(out, "store_error", err.text);
        return;
    }
    add_text(out, "store_engine", info.engine);
    add_u64(out, "store_bytes", info.bytes);
    add_u64(out, "store_free_bytes", info.free_bytes);
    add_u64(out, "store_wal_bytes", info.wal_bytes);
    add_u64(out, "journal_bytes", info.journal_bytes);
    add_u64(out, "memtable_rows", info.memtable_rows);
    add_u64(out, "log_bytes", info.log_bytes);
    add_u64(out, "log_file_bytes", info.log_on_disk);
    add_u64(out, "apply_lag_ms", info.lag_ms);
    add_u64(out, "passes", info.passes);
    add_u64(out, "last_pass_rows", info.pass_rows);
    add_u64(out, "last_pass_ms", info.pass_ms);
    add_u64(out, "last_checkpoint_ms", info.settle_ms);
    add_u64(out, "wal_waits", info.wal_waits);
    add_u64(out, "table_reads", info.table_reads);
    add_u64(out, "key_lookups", info.key_lookups);
    add_u64(out, "reconnects", info.reconnects);
    add_u64(out, "round_trips", info.round_trips);
    add_u64(out, "conflicts", info.conflicts);
    add_u64(out, "reruns", t->stats.reruns);
    add_u64(out, "wakeups", t->stats.wakeups);
    const struct histogram *commits = info.commit_us;
    add_times(out, "commit", commits ? commits : &t->engine.commit_us);
    add_times(out, "sync", info.sync_us);
}

static void add_workers(const struct server *all, struct buf *out)
{
    add_u64(out, "workers", all->nexecutors);
    for (uint32_t i = 0; i < all->nexecutors; i++) {
        const struct executor *s = all->executors[i];
        uint64_t commands = s->stats.commands + books_calls(&s->books);
        buf_addf(out, "worker%u:clients=%u,blocked=%u,commands=%llu,batches=%llu\r\n", i, s->nsessions,
                 s->nwaiters + s->njob_waiters, (unsigned long long)commands,
                 (unsigned long long)engine_get_stats(s->engine)->batches);
    }
}

static void add_queries(const struct server *all, struct buf *out)
{
    struct query_stats q = {0};
    if (!all->queries)
        return;
    query_threads_stats(all->queries, &q);
    add_u64(out, "sql_threads", q.threads);
    add_u64(out, "sql_queries_running", q.running);
    add_u64(out, "sql_queries_waiting", q.waiting);
    add_u64(out, "sql_queries_done", q.done);
    add_u64(out, "sql_queries_failed", q.failed);
    add_u64(out, "sql_queries_cancelled", q.cancelled);
    add_u64(out, "sql_queries_timed_out", q.timed_out);
    add_u64(out, "sql_queries_refused", q.refused);
    add_times(out, "sql_query", q.us);
    add_times(out, "sql_snapshot", q.open_us);
}

static void info_larder(struct call *c, const struct sums *t, struct buf *out)
{
    static const char *const durabilities[] = {"always", "everysec", "off"};
    const struct config *config = c->executor->config;
    const struct engine_stats *e = &t->engine;
    const struct cache_stats *rows = &t->cache;
    add_text(out, "larder_version", LARDER_VERSION);
    char shown[512];
    add_text(out, "store", hide_password(shown, sizeof shown, config->store));
    add_text(out, "durability", durabilities[config->durability]);
    add_workers(c->executor->server, out);
    add_store(c, t, out);
    add_queries(c->executor->server, out);
    add_u64(out, "cache_budget_bytes", t->cache_budget);
    add_u64(out, "cache_bytes", rows->bytes);
    add_u64(out, "cache_rows", rows->rows);
    add_u64(out, "cache_hits", rows->hits);
    add_u64(out, "cache_misses", rows->misses);
    add_u64(out, "cache_evicted", rows->evicted);
    add_u64(out, "ahead_rows", e->ahead_rows);
    add_u64(out, "ahead_slices", e->ahead_slices);
    add_u64(out, "collections_bytes", t->memory.collections);
    add_u64(out, "memtable_bytes", t->memory.store);
    add_u64(out, "batches", e->batches);
    buf_addf(out, "commands_per_batch:%.2f\r\n", ratio(e->commands, e->batches));
    add_u64(out, "commits", e->commits);
    add_u64(out, "commit_failures", e->commit_failures);
    add_u64(out, "rows_written", e->rows_written);
    buf_addf(out, "rows_per_commit:%.2f\r\n", ratio(e->rows_written, e->commits));
    add_u64(out, "database_errors", total(t->stats.database_errors, STATUSES));
    add_u64(out, "expired_on_read", e->expired_on_read);
    add_u64(out, "sweep_passes", histogram_count(&e->sweep_us));
    add_u64(out, "sweep_usec", histogram_sum(&e->sweep_us));
    add_u64(out, "sweep_expired_rows", e->expired_by_sweep);
    add_u64(out, "sweep_deleted_rows", e->deleted_by_sweep);
    add_u64(out, "sweep_item_rows", e->items_by_sweep);
    add_u64(out, "renumbered_items", e->renumbered_items);
    add_u64(out, "external_changes", e->external_changes);
}

/* ---- which sections ---- */

/* In the order of the answer. */
static const struct section {
    const char *name, *title;
    section_fn *fn;
    bool by_default;
} sections[] = {
    {"server", "Server", info_server, true},
    {"clients", "Clients", info_clients, true},
    {"memory", "Memory", info_memory, true},
    {"persistence", "Persistence", info_persistence, true},
    {"stats", "Stats", info_stats, true},
    {"replication", "Replication", info_replication, true},
    {"cpu", "CPU", info_cpu, true},
    {"modules", "Modules", info_modules, true},
    {"commandstats", "Commandstats", info_commandstats, false},
    {"errorstats", "Errorstats", info_errorstats, true},
    {"latencystats", "Latencystats", info_latencystats, false},
    {"cluster", "Cluster", info_cluster, true},
    {"keyspace", "Keyspace", info_keyspace, true},
    {"larder", "Larder", info_larder, true},
};

static bool wanted(const struct call *c, const struct section *s)
{
    if (c->argc == 1)
        return s->by_default;
    for (int i = 1; i < c->argc; i++) {
        struct slice arg = c->argv[i];
        if (slice_is(arg, s->name) || slice_is(arg, "all") || slice_is(arg, "everything") ||
            (slice_is(arg, "default") && s->by_default))
            return true;
    }
    return false;
}

static enum status info(struct call *c)
{
    struct buf out = {0};
    struct sums t;
    stats_post(c->executor);
    sums_gather(c->executor->server, &t);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        if (!wanted(c, &sections[i]))
            continue;
        buf_addf(&out, "%s# %s\r\n", out.len ? "\r\n" : "", sections[i].title);
        sections[i].fn(c, &t, &out);
    }
    c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

/* clang-format off */
const struct command info_commands[] = {
    {
        .name = "info", .fn = info, .arity = -1, .flags = CMD_LOADING | CMD_STALE | CMD_STOPS_WORKERS,
        .categories = CAT_SLOW | CAT_DANGEROUS, .summary = "Tells the state and the statistics of the server.",
        .since = "1.0.0", .group = "server", .complexity = "O(1); O(N) for N commands with statistics",
        .tips = {"nondeterministic_output", "request_policy:all_shards", "response_policy:special"},
    },
    {.name = NULL},
};
/* clang-format on */
