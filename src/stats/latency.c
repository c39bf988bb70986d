#include "stats/latency.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "stats/stats.h"
#include "stats/sums.h"

#define LATENCY_SAMPLES 160 /* remembered of an event */
#define LATENCY_EVENTS  16

struct latency_sample {
    int64_t time; /* wall, seconds */
    int64_t ms;
};

struct latency_event {
    char name[32];
    struct latency_sample samples[LATENCY_SAMPLES]; /* a ring: the oldest at `next` once it is full */
    size_t next;
    size_t n;
    int64_t max_ms;
};

struct latency {
    pthread_mutex_t lock;
    struct latency_event *events[LATENCY_EVENTS];
    size_t nevents;
};

struct latency *latency_new(void)
{
    struct latency *l = mem_zalloc(sizeof *l);
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

/* Forgets an event; how many there were: 1 or 0. */
static size_t forget(struct latency *l, struct slice name)
{
    for (size_t i = 0; i < l->nevents; i++) {
        if (slice_eq(name, slice_str(l->events[i]->name))) {
            mem_free(l->events[i]);
            l->events[i] = l->events[--l->nevents];
            return 1;
        }
    }
    return 0;
}

static size_t forget_all(struct latency *l)
{
    size_t n = l->nevents;
    while (l->nevents)
        mem_free(l->events[--l->nevents]);
    return n;
}

void latency_free(struct latency *l)
{
    forget_all(l);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

static struct latency_event *latency_find(struct latency *l, struct slice name)
{
    for (size_t i = 0; i < l->nevents; i++)
        if (slice_eq(name, slice_str(l->events[i]->name)))
            return l->events[i];
    return NULL;
}

/* Sample i from the oldest, 0 <= i < e->n. */
static const struct latency_sample *latency_sample(const struct latency_event *e, size_t i)
{
    size_t oldest = e->n == LATENCY_SAMPLES ? e->next : 0;
    return &e->samples[(oldest + i) % LATENCY_SAMPLES];
}

static struct latency_event *add_event(struct latency *l, const char *name)
{
    if (l->nevents == LATENCY_EVENTS)
        return NULL;
    struct latency_event *e = mem_zalloc(sizeof *e);
    snprintf(e->name, sizeof e->name, "%s", name);
    l->events[l->nevents++] = e;
    return e;
}

static void add_sample(struct latency_event *e, int64_t ms)
{
    int64_t now = clock_wall_us() / 1000000;
    if (ms > e->max_ms)
        e->max_ms = ms;
    struct latency_sample *newest =
        e->n ? &e->samples[(e->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES] : NULL;
    if (newest && newest->time == now) {
        if (ms > newest->ms)
            newest->ms = ms;
        return;
    }
    e->samples[e->next] = (struct latency_sample){now, ms};
    e->next = (e->next + 1) % LATENCY_SAMPLES;
    if (e->n < LATENCY_SAMPLES)
        e->n++;
}

void latency_add(struct latency *l, const char *event, int64_t ms)
{
    pthread_mutex_lock(&l->lock);
    struct latency_event *e = latency_find(l, slice_str(event));
    if (e || (e = add_event(l, event)))
        add_sample(e, ms);
    pthread_mutex_unlock(&l->lock);
}

/* ---- LATENCY ---- */

/* With what ran before in the same batch. */
static struct latency *open_latency(const struct call *c)
{
    struct latency *l = c->executor->server->latency;
    stats_post(c->executor);
    pthread_mutex_lock(&l->lock);
    return l;
}

static void close_latency(struct latency *l)
{
    pthread_mutex_unlock(&l->lock);
}

static enum status latency_latest(struct call *c)
{
    struct latency *l = open_latency(c);
    reply_array(c->reply, l->nevents);
    for (size_t i = 0; i < l->nevents; i++) {
        const struct latency_event *e = l->events[i];
        const struct latency_sample *newest = latency_sample(e, e->n - 1);
        reply_array(c->reply, 4);
        reply_bulk_str(c->reply, e->name);
        reply_integer(c->reply, newest->time);
        reply_integer(c->reply, newest->ms);
        reply_integer(c->reply, e->max_ms);
    }
    close_latency(l);
    return ST_OK;
}

static enum status latency_history(struct call *c)
{
    struct latency *l = open_latency(c);
    const struct latency_event *e = latency_find(l, c->argv[2]);
    size_t n = e ? e->n : 0;
    reply_array(c->reply, n);
    for (size_t i = 0; i < n; i++) {
        reply_array(c->reply, 2);
        reply_integer(c->reply, latency_sample(e, i)->time);
        reply_integer(c->reply, latency_sample(e, i)->ms);
    }
    close_latency(l);
    return ST_OK;
}

static enum status latency_reset(struct call *c)
{
    struct latency *l = open_latency(c);
    size_t n = 0;
    if (c->argc == 2)
        n = forget_all(l);
    for (int i = 2; i < c->argc; i++)
        n += forget(l, c->argv[i]);
    close_latency(l);
    reply_integer(c->reply, (int64_t)n);
    return ST_OK;
}

/* One column a sample, oldest first: a bar of up to GRAPH_ROWS characters, and under it how long ago. */
#define GRAPH_ROWS 4

static void add_graph(struct buf *out, const struct latency_event *e)
{
    int64_t low = INT64_MAX, high = 0, now = clock_wall_us() / 1000000;
    for (size_t i = 0; i < e->n; i++) {
        int64_t ms = latency_sample(e, i)->ms;
        low = ms < low ? ms : low;
        high = ms > high ? ms : high;
    }
    buf_addf(out, "%s - high %lld ms, low %lld ms (all time high %lld ms)\n", e->name, (long long)high,
             (long long)low, (long long)e->max_ms);
    for (int row = GRAPH_ROWS; row > 0; row--) {
        for (size_t i = 0; i < e->n; i++) {
            int64_t above = latency_sample(e, i)->ms - low, span = high > low ? high - low : 1;
            int64_t tall = 1 + above * (GRAPH_ROWS - 1) / span;
            buf_add(out, tall > row ? "|" : tall == row ? "o" : " ", 1);
        }
        buf_add(out, "\n", 1);
    }
    buf_addf(out, "oldest %lld s ago, newest %lld s ago\n", (long long)(now - latency_sample(e, 0)->time),
             (long long)(now - latency_sample(e, e->n - 1)->time));
}

static enum status latency_graph(struct call *c)
{
    struct latency *l = open_latency(c);
    const struct latency_event *e = latency_find(l, c->argv[2]);
    struct buf out = {0};
    if (e)
        add_graph(&out, e);
    close_latency(l);
    if (e)
        c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    else
        reply_errorf(c->reply, "ERR No samples available for event '%.*s'", (int)c->argv[2].n, c->argv[2].p);
    buf_release(&out);
    return ST_OK;
}

static enum status latency_doctor(struct call *c)
{
    struct latency *l = open_latency(c);
    struct buf out = {0};
    if (!c->executor->config->latency_monitor_threshold_ms)
        buf_addf(&out,
                 "The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it "
                 "on.\n");
    else if (!l->nevents)
        buf_addf(&out, "Nothing took longer than %llu ms.\n",
                 (unsigned long long)c->executor->config->latency_monitor_threshold_ms);
    for (size_t i = 0; i < l->nevents; i++) {
        const struct latency_event *e = l->events[i];
        int64_t sum = 0;
        for (size_t j = 0; j < e->n; j++)
            sum += latency_sample(e, j)->ms;
        buf_addf(&out, "%s: %zu spikes, mean %lld ms, worst ever %lld ms. %s\n", e->name, e->n,
                 (long long)(sum / (int64_t)(e->n ? e->n : 1)), (long long)e->max_ms,
                 "SLOWLOG GET shows which commands were slow; INFO larder shows how long commits take.");
    }
    close_latency(l);
    c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

/* ---- LATENCY HISTOGRAM ---- */

/* Cumulative: how many calls took no longer than each power's bound, where that changes. Returns whether the
   command was ever called. */
static bool reply_histogram(struct call *c, int index)
{
    struct histogram_view v = {0};
    char name[COMMAND_NAME_CHARS];
    sums_command_times(c->executor, index, &v);
    if (!v.count)
        return false;
    command_full_name(command_by_index(index, NULL), name);
    reply_bulk_str(c->reply, name);
    reply_map(c->reply, 2);
    reply_bulk_str(c->reply, "calls");
    reply_integer(c->reply, (int64_t)v.count);
    reply_bulk_str(c->reply, "histogram_usec");
    size_t n = 0, mark = reply_begin_deferred(c->reply);
    uint64_t total = 0, told = 0;
    v.buckets[HISTOGRAM_BUCKETS - 2] += v.buckets[HISTOGRAM_BUCKETS - 1]; /* as Redis does with the longest */
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        total += v.buckets[i];
        if (i % HISTOGRAM_STEPS != 0 || total == told)
            continue;
        reply_integer(c->reply, (int64_t)histogram_bound(i));
        reply_integer(c->reply, (int64_t)total);
        told = total;
        n++;
    }
    reply_end_deferred(c->reply, mark, REPLY_MAP, n);
    return true;
}

/* The command itself and its subcommands. */
static size_t reply_histograms_of(struct call *c, const struct command *cmd)
{
    size_t n = reply_histogram(c, command_index(cmd));
    for (const struct command *sub = cmd->subs; sub && sub->name; sub++)
        n += reply_histogram(c, command_index(sub));
    return n;
}

static enum status latency_histogram(struct call *c)
{
    stats_post(c->executor);
    size_t n = 0, mark = reply_begin_deferred(c->reply);
    for (int i = 0; c->argc == 2 && i < command_count(); i++)
        n += reply_histogram(c, i);
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        if (cmd)
            n += reply_histograms_of(c, cmd);
    }
    reply_end_deferred(c->reply, mark, REPLY_MAP, n);
    return ST_OK;
}

static enum status latency_help(struct call *c)
{
    static const char histogram[] = "    Return a cumulative distribution of latencies in the format of a "
                                    "histogram for the specified command names.";
    static const char *const lines[] = {
        "DOCTOR",
        "    Return a human readable latency analysis report.",
        "GRAPH <event>",
        "    Return an ASCII latency graph for the <event> class.",
        "HISTORY <event>",
        "    Return time-latency samples for the <event> class.",
        "LATEST",
        "    Return the latest latency samples for all events.",
        "RESET [<event> ...]",
        "    Reset latency data of one or more <event> classes.",
        "    (default: reset all data for all event classes)",
        "HISTOGRAM [COMMAND ...]",
        histogram,
        "    If no commands are specified then all histograms are replied.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

#define LATENCY_SUB(NAME, FN, ARITY, SINCE, SUMMARY, COMPLEXITY, ...)                                        \
    {                                                                                                        \
        .name = NAME, .fn = FN, .arity = ARITY, .flags = CMD_ADMIN | CMD_NOSCRIPT | CMD_LOADING | CMD_STALE, \
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = SUMMARY, .since = SINCE,              \
        .group = "server", .complexity = COMPLEXITY, .tips = {                                               \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

#define TIPS "nondeterministic_output", "request_policy:all_nodes", "response_policy:special"

/* clang-format off */
static const struct command subcommands[] = {
    LATENCY_SUB("doctor", latency_doctor, 2, "2.8.13", "Says in words what the spikes look like.",
                "O(N) for N samples", TIPS),
    LATENCY_SUB("graph", latency_graph, 3, "2.8.13", "Draws an event's spikes.", "O(N) for N samples", TIPS),
    {
        .name = "help", .fn = latency_help, .arity = 2, .flags = CMD_LOADING | CMD_STALE,
        .categories = CAT_SLOW, .summary = "Lists the subcommands.", .since = "2.8.13", .group = "server",
        .complexity = "O(1)",
    },
    LATENCY_SUB("histogram", latency_histogram, -2, "7.0.0", "Tells how the times of commands are distributed.",
                "O(N) for N commands", TIPS),
    LATENCY_SUB("history", latency_history, 3, "2.8.13", "Tells an event's spikes.", "O(N) for N samples", TIPS),
    LATENCY_SUB("latest", latency_latest, 2, "2.8.13", "Tells the newest and the worst spike of each event.",
                "O(N) for N events", TIPS),
    LATENCY_SUB("reset", latency_reset, -2, "2.8.13", "Forgets spikes.", "O(N) for N events",
                "request_policy:all_nodes", "response_policy:all_succeeded"),
    {.name = NULL},
};

const struct command latency_commands[] = {
    {
        .name = "latency", .arity = -2, .categories = CAT_SLOW, .summary = "Commands about slow moments.",
        .since = "2.8.13", .group = "server", .complexity = "Depends on the subcommand.", .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
