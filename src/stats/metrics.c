/* The metrics, family by family. Counting happens where things happen; what is here runs once for each scrape
   and may take its time, up to a millisecond or so: it adds up the histograms of all commands and asks the
   database for its size. */
#include "stats/metrics.h"

#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/process.h"
#include "engine/engine.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "query/threads.h"
#include "script/running.h"
#include "proto/prometheus.h"
#include "stats/replication.h"
#include "stats/stats.h"
#include "stats/sums.h"

#ifdef LARDER_JEMALLOC
#define ALLOCATOR "jemalloc"
#else
#define ALLOCATOR "libc"
#endif

/* Powers of two: 1 µs to 8.7 s for commands, 16 µs to 17 s and two steps each for what waits for a disk. */
static const struct prom_buckets COMMAND_TIMES = {0, 23, HISTOGRAM_STEPS, true};
static const struct prom_buckets DISK_TIMES = {4, 24, HISTOGRAM_STEPS / 2, true};
static const struct prom_buckets LONG_TIMES = {6, 28, HISTOGRAM_STEPS, true};
static const struct prom_buckets BATCH_SIZES = {0, 14, HISTOGRAM_STEPS, false};

#define BACKLOG_MAX 1000

static void counter(struct prom *p, const char *name, const char *help, uint64_t v)
{
    prom_family(p, name, PROM_COUNTER, help);
    prom_u64(p, NULL, v);
}

static void gauge(struct prom *p, const char *name, const char *help, uint64_t v)
{
    prom_family(p, name, PROM_GAUGE, help);
    prom_u64(p, NULL, v);
}

/* h may be NULL: nothing was seen. */
static void gauge_ms(struct prom *p, const char *name, const char *help, uint64_t ms)
{
    prom_family(p, name, PROM_GAUGE, help);
    prom_seconds(p, NULL, ms * 1000);
}

static void histogram(struct prom *p, const char *name, const char *help, const struct histogram *h,
                      const struct prom_buckets *buckets)
{
    struct histogram_view v = {0};
    if (h)
        histogram_read(h, &v);
    prom_family(p, name, PROM_HISTOGRAM, help);
    prom_histogram(p, NULL, &v, buckets);
}

/* A family with a sample for each of n names. */
static void labelled(struct prom *p, const char *name, enum prom_type type, const char *help,
                     const char *label, const char *const *values, const uint64_t *counts, size_t n)
{
    prom_family(p, name, type, help);
    for (size_t i = 0; i < n; i++)
        prom_u64(p, PROM_LABELS({label, values[i]}), counts[i]);
}

/* ---- the process ---- */

static void add_process(struct prom *p, const struct executor *s)
{
    struct process_usage u = process_usage();
    prom_family(p, "process_cpu_seconds_total", PROM_COUNTER, "User and system CPU time spent.");
    prom_seconds(p, NULL, u.cpu_us);
    prom_family(p, "process_start_time_seconds", PROM_GAUGE, "When the process started, since the epoch.");
    prom_seconds(p, NULL, u.start_us);
    gauge(p, "process_resident_memory_bytes", "Resident memory.", u.resident_bytes);
    gauge(p, "process_virtual_memory_bytes", "Virtual memory.", u.virtual_bytes);
    gauge(p, "process_open_fds", "Open file descriptors.", u.open_fds);
    gauge(p, "process_max_fds", "The limit of open file descriptors.", u.max_fds);
    gauge(p, "process_threads", "Threads.", u.threads);
    prom_family(p, "larder_uptime_seconds", PROM_GAUGE, "Time since the server started.");
    prom_seconds(p, NULL, (uint64_t)(clock_mono_us() - s->server->start_us));
}

/* ---- commands ---- */

static void add_command_results(struct prom *p, const struct executor *s)
{
    prom_family(p, "larder_commands_total", PROM_COUNTER,
                "Commands by name and result: ok, error (it ran and replied an error), rejected (it did not "
                "run).");
    for (int i = 0; i < command_count(); i++) {
        const struct command_sums stat = sums_command(s, i);
        if (!stat.calls && !stat.rejected)
            continue;
        char name[COMMAND_NAME_CHARS];
        command_full_name(command_by_index(i, NULL), name);
        prom_u64(p, PROM_LABELS({"command", name}, {"result", "ok"}), stat.calls - stat.failed);
        prom_u64(p, PROM_LABELS({"command", name}, {"result", "error"}), stat.failed);
        prom_u64(p, PROM_LABELS({"command", name}, {"result", "rejected"}), stat.rejected);
    }
    prom_family(p, "larder_command_seconds_total", PROM_COUNTER, "Time that commands took, by name.");
    for (int i = 0; i < command_count(); i++) {
        const struct command_sums stat = sums_command(s, i);
        if (!stat.calls)
            continue;
        char name[COMMAND_NAME_CHARS];
        command_full_name(command_by_index(i, NULL), name);
        prom_seconds(p, PROM_LABELS({"command", name}), stat.us);
    }
}

static const char *family_of(int command)
{
    return command_by_index(command, NULL)->group;
}

static bool seen_before(int command)
{
    for (int i = 0; i < command; i++)
        if (strcmp(family_of(i), family_of(command)) == 0)
            return true;
    return false;
}

/* By name there would be some thousands of samples: a histogram for each family has to do. */
static void add_command_times(struct prom *p, const struct executor *s)
{
    prom_family(p, "larder_command_duration_seconds", PROM_HISTOGRAM,
                "Time that a command took to run, without the wait for its commit, by family.");
    for (int first = 0; first < command_count(); first++) {
        if (seen_before(first))
            continue;
        struct histogram_view v = {0};
        for (int i = first; i < command_count(); i++)
            if (strcmp(family_of(i), family_of(first)) == 0)
                sums_command_times(s, i, &v);
        prom_histogram(p, PROM_LABELS({"family", family_of(first)}), &v, &COMMAND_TIMES);
    }
}

static void add_commands(struct prom *p, const struct executor *s, const struct sums *t)
{
    add_command_results(p, s);
    add_command_times(p, s);
    prom_family(p, "larder_error_replies_total", PROM_COUNTER, "Error replies by their code.");
    for (uint32_t i = 0; i < t->errors.n; i++)
        prom_u64(p, PROM_LABELS({"code", t->errors.at[i].code}), t->errors.at[i].count);
    prom_family(p, "larder_http_answers_total", PROM_COUNTER, "Answers over HTTP by status.");
    for (unsigned status = 100; status < HTTP_STATUS_END; status++) {
        char digits[NUM_I64_CHARS + 1];
        digits[num_format_u64(digits, status)] = '\0';
        if (t->stats.http_answers[status])
            prom_u64(p, PROM_LABELS({"status", digits}), t->stats.http_answers[status]);
    }
    counter(p, "larder_keyspace_hits_total", "Keys that reads found.", t->engine.keyspace_hits);
    counter(p, "larder_keyspace_misses_total", "Keys that reads did not find.", t->engine.keyspace_misses);
    counter(p, "larder_auth_failures_total", "Wrong passwords.", t->stats.acl_denied_auth);
}

/* ---- batches and the database ---- */

static void add_batches(struct prom *p, const struct sums *t)
{
    const struct engine_stats *e = &t->engine;
    histogram(p, "larder_batch_commands", "Commands that ran as one batch.", &t->stats.batch_commands,
              &BATCH_SIZES);
    counter(p, "larder_commit_failures_total", "Commits that failed.", e->commit_failures);
    counter(p, "larder_rows_written_total", "Rows that commits changed.", e->rows_written);
    counter(p, "larder_external_changes_total", "Times that another process had changed the database.",
            e->external_changes);
}

static void add_database_errors(struct prom *p, const struct sums *t)
{
    prom_family(p, "larder_database_errors_total", PROM_COUNTER,
                "Operations of the database that failed, by status.");
    for (enum status st = ST_OK + 1; st < STATUSES; st++)
        prom_u64(p, PROM_LABELS({"status", status_name(st)}), t->stats.database_errors[st]);
}

static void add_store(struct prom *p, const struct executor *s, const struct sums *t)
{
    struct store_info info = {.engine = "unknown"};
    struct error err;
    bool up = sums_store(s, &info, &err) == ST_OK && !s->unreadable;
    prom_family(p, "larder_build_info", PROM_GAUGE, "What runs here; the value is 1.");
    prom_u64(p,
             PROM_LABELS({"version", LARDER_VERSION}, {"redis_version", REDIS_VERSION},
                         {"allocator", ALLOCATOR}, {"database", info.engine}),
             1);
    gauge(p, "larder_database_up", "1 when the database could be read last.", up);
    counter(p, "larder_database_reconnects_total", "Times that a lost connection to it was made anew.",
            info.reconnects);
    counter(p, "larder_database_conflicts_total",
            "Transactions that the database ended because others were in the way.", info.conflicts);
    counter(p, "larder_reruns_total", "Times that the commands of a transaction were run again after that.",
            t->stats.reruns);
    histogram(p, "larder_commit_duration_seconds", "Time until a commit was durable.",
              info.commit_us ? info.commit_us : &t->engine.commit_us, &DISK_TIMES);
    histogram(p, "larder_sync_duration_seconds", "Time that syncs of the database's log took.", info.sync_us,
              &DISK_TIMES);
    gauge(p, "larder_store_file_bytes", "The database on disk, without its log.", info.bytes);
    gauge(p, "larder_store_free_bytes", "What of it is free to be used again.", info.free_bytes);
    gauge(p, "larder_store_wal_bytes", "The database's write-ahead log.", info.wal_bytes);
    gauge(p, "larder_journal_bytes", "Changes in the journal that are not in the tables yet.",
          info.journal_bytes);
    gauge(p, "larder_memtable_rows", "Rows in memory that are not in the tables yet.", info.memtable_rows);
    gauge(p, "larder_log_bytes", "What the log beside the database has and the tables have not.",
          info.log_bytes);
    gauge(p, "larder_log_file_bytes", "The files of that log.", info.log_on_disk);
    gauge_ms(p, "larder_apply_lag_seconds", "How old the oldest change is that is not in the tables.",
             info.lag_ms);
    counter(p, "larder_passes_total", "Times that rows were brought into the tables, each one transaction.",
            info.passes);
    gauge(p, "larder_last_pass_rows", "Rows of the last of them.", info.pass_rows);
    gauge_ms(p, "larder_last_pass_seconds", "How long it took, to its commit.", info.pass_ms);
    gauge_ms(p, "larder_last_checkpoint_seconds",
             "How long the last sync of the tables took, with the copying of their write-ahead log.",
             info.settle_ms);
    gauge(p, "larder_wal_waits",
          "1 while the write-ahead log is longer than wal-max and nothing is brought in.", info.wal_waits);
    gauge(p, "larder_journal_full", "1 while who writes has to wait for the journal to be brought in.",
          engine_full(s->engine));
}

/* Databases that are empty are left out, but for the first: the others are rarely used. */
static void add_counts(struct prom *p, const struct executor *s, bool expires, const char *name,
                       const char *help)
{
    prom_family(p, name, PROM_GAUGE, help);
    for (uint32_t db = 0; db < view_databases(s->view); db++) {
        int64_t keys, with_expiry;
        char number[NUM_I64_CHARS + 1];
        if (!engine_counts(s->engine, db, &keys, &with_expiry) || (keys == 0 && db > 0))
            continue;
        number[num_format_u64(number, db)] = '\0';
        prom_u64(p, PROM_LABELS({"db", number}), (uint64_t)(expires ? with_expiry : keys));
    }
}

static void add_keys(struct prom *p, const struct executor *s)
{
    add_counts(p, s, false, "larder_keys", "Keys by database, expired ones that are not swept included.");
    add_counts(p, s, true, "larder_keys_with_expiry", "Those of them that have an expiry.");
}

/* ---- memory ---- */

static void add_cache(struct prom *p, const struct sums *t)
{
    const struct cache_stats *rows = &t->cache;
    counter(p, "larder_cache_hits_total", "Rows that were in the cache.", rows->hits);
    counter(p, "larder_cache_misses_total", "Rows that had to be read from the database.", rows->misses);
    counter(p, "larder_cache_evictions_total", "Rows that left the cache for others.", rows->evicted);
    gauge(p, "larder_cache_rows", "Rows in the cache.", rows->rows);
    gauge(p, "larder_cache_bytes", "What the cache's rows take.", rows->bytes);
    gauge(p, "larder_cache_budget_bytes", "What the cache may take (cache-memory).", t->cache_budget);
}

static void add_memory(struct prom *p, struct executor *s, const struct sums *t)
{
    static const char *const parts[] = {"cache_rows", "collections", "changes",
                                        "memtables",  "clients",     "scripts"};
    const struct script_sums scripts = sums_scripts(s->server);
    const uint64_t bytes[] = {t->memory.rows,    t->memory.collections,
                              t->memory.changes, t->memory.store,
                              t->client_memory,  scripts.vm[INTERP_EVAL] + scripts.vm[INTERP_FUNCTIONS]};
    uint64_t used = executor_used_memory(s), peak = t->stats.peak_memory;
    gauge(p, "larder_memory_used_bytes", "Memory that is allocated.", used);
    gauge(p, "larder_memory_peak_bytes", "The most that it was.", peak > used ? peak : used);
    labelled(p, "larder_memory_bytes", PROM_GAUGE, "Parts of the memory that is allocated.", "part", parts,
             bytes, sizeof parts / sizeof *parts);
}

static void add_scripts(struct prom *p, const struct executor *s)
{
    static const char *const kinds[INTERPS] = {[INTERP_EVAL] = "eval", [INTERP_FUNCTIONS] = "functions"};
    const struct script_sums t = sums_scripts(s->server);
    const struct running_totals ran = running_totals(s->server);
    labelled(p, "larder_script_memory_bytes", PROM_GAUGE, "What interpreters take, of all workers.",
             "interpreter", kinds, t.vm, INTERPS);
    gauge(p, "larder_scripts_cached", "Scripts that this process knows.", t.scripts);
    gauge(p, "larder_functions", "Functions that may be called.", t.functions);
    gauge(p, "larder_function_libraries", "Their libraries.", t.libraries);
    counter(p, "larder_scripts_busy_total", "Scripts that ran for longer than busy-reply-threshold.",
            ran.busy);
    counter(p, "larder_scripts_killed_total", "Those of them that SCRIPT KILL or FUNCTION KILL ended.",
            ran.killed);
}

static void add_queries(struct prom *p, const struct executor *s)
{
    static const char *const states[] = {"running", "waiting"};
    static const char *const ends[] = {"done", "failed", "cancelled", "timed_out", "refused"};
    struct query_stats q = {0};
    if (s->server->queries)
        query_threads_stats(s->server->queries, &q);
    const uint64_t now[] = {q.running, q.waiting};
    const uint64_t ended[] = {q.done, q.failed, q.cancelled, q.timed_out, q.refused};
    gauge(p, "larder_sql_threads", "How many long queries may run at once (sql-threads).", q.threads);
    labelled(p, "larder_sql_queries", PROM_GAUGE, "Long queries: on a thread, and those that wait for one.",
             "state", states, now, sizeof states / sizeof *states);
    labelled(p, "larder_sql_queries_total", PROM_COUNTER, "Long queries that have ended, by how.", "end",
             ends, ended, sizeof ends / sizeof *ends);
    histogram(p, "larder_sql_query_duration_seconds", "Time of long queries, from their command on.", q.us,
              &LONG_TIMES);
    histogram(p, "larder_sql_snapshot_seconds", "Time until a long query had its snapshot.", q.open_us,
              &LONG_TIMES);
}

/* ---- connections ---- */

static void add_connections(struct prom *p, const struct executor *s, const struct sums *t)
{
    static const char *const ways[SESSION_WAYS] = {"tcp", "unix", "tls", "http", "https"};
    static const char *const rejections[REJECTIONS] = {"maxclients", "protected_mode", "descriptors",
                                                       "handshake"};
    static const char *const closures[CLOSURES] = {"idle",         "killed", "query_limit",
                                                   "output_limit", "unread", "protocol"};
    uint64_t now[SESSION_WAYS] = {0};
    for (uint32_t i = 0; i < s->server->nexecutors; i++)
        for (const struct session *c = s->server->executors[i]->first; c; c = c->next)
            now[c->way]++;
    labelled(p, "larder_connections", PROM_GAUGE, "Open connections by listener.", "listener", ways, now,
             SESSION_WAYS);
    labelled(p, "larder_connections_accepted_total", PROM_COUNTER, "Accepted connections by listener.",
             "listener", ways, t->stats.accepted, SESSION_WAYS);
    labelled(p, "larder_connections_rejected_total", PROM_COUNTER, "Connections turned away, by reason.",
             "reason", rejections, t->stats.rejected, REJECTIONS);
    labelled(p, "larder_connections_closed_total", PROM_COUNTER,
             "Connections that the server closed, by reason.", "reason", closures, t->stats.closed, CLOSURES);
    gauge(p, "larder_connections_max", "How many there may be (maxclients).",
          (uint64_t)s->config->maxclients);
    gauge(p, "larder_connections_blocked", "Clients that wait in a blocking command.",
          t->nwaiters + t->njob_waiters);
    counter(p, "larder_network_received_bytes_total", "Bytes read from clients.", t->stats.net_in);
    counter(p, "larder_network_sent_bytes_total", "Bytes sent to clients.", t->stats.net_out);
}

/* ---- expiry ---- */

static void add_expiry(struct prom *p, const struct sums *t)
{
    static const char *const by[] = {"read", "sweep"};
    static const char *const kinds[] = {"expired", "deleted", "item", "field", "row"};
    const struct engine_stats *e = &t->engine;
    const uint64_t expired[] = {e->expired_on_read, e->expired_by_sweep};
    const uint64_t rows[] = {e->expired_by_sweep, e->deleted_by_sweep, e->items_by_sweep, e->expired_fields,
                             e->expired_rows};
    labelled(p, "larder_keys_expired_total", PROM_COUNTER,
             "Expired keys that a read met, and that the sweeper removed.", "by", by, expired, 2);
    labelled(p, "larder_sweep_rows_total", PROM_COUNTER, "Rows that the sweeper removed, by kind.", "kind",
             kinds, rows, sizeof kinds / sizeof *kinds);
    counter(p, "larder_sweep_passes_total",
            "Times that the sweeper found something and removed it to the last row.", t->stats.sweep_passes);
    counter(p, "larder_renumbered_items_total",
            "Items of large collections that the sweeper gave lower numbers, after many had gone.",
            e->renumbered_items);
    histogram(p, "larder_sweep_duration_seconds", "Time that a step of the sweeper took.", &e->sweep_us,
              &DISK_TIMES);
}

/* Nothing is told while the database cannot be read. */
static void add_backlog(struct prom *p, const struct executor *s)
{
    struct engine_backlog backlog;
    struct error err;
    bool known = !s->unreadable && engine_backlog(s->engine, BACKLOG_MAX, &backlog, &err) == ST_OK;
    prom_family(p, "larder_sweep_backlog_keys", PROM_GAUGE,
                "Expired keys that the sweeper has yet to remove, counted up to 1,000.");
    if (known)
        prom_u64(p, NULL, backlog.keys);
    prom_family(p, "larder_sweep_lag_seconds", PROM_GAUGE,
                "How long ago the first of them expired; 0 when there is none.");
    int64_t lag = known && backlog.keys ? clock_wall_us() - backlog.since * 1000 : 0;
    if (known)
        prom_seconds(p, NULL, lag > 0 ? (uint64_t)lag : 0);
}

void metrics_render(struct executor *s, struct buf *out)
{
    struct prom p = {.out = out};
    struct sums t;
    stats_post(s);
    sums_gather(s->server, &t);
    add_store(&p, s, &t);
    add_process(&p, s);
    add_commands(&p, s, &t);
    add_batches(&p, &t);
    add_database_errors(&p, &t);
    add_keys(&p, s);
    add_cache(&p, &t);
    add_memory(&p, s, &t);
    add_scripts(&p, s);
    add_queries(&p, s);
    add_connections(&p, s, &t);
    add_expiry(&p, &t);
    add_backlog(&p, s);
    replication_metrics(s, &t, &p);
}
