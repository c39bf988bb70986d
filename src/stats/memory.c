/* MEMORY: what is in memory, and how much one key takes there. */
#include "stats/memory.h"

#include "base/buf.h"
#include "base/mem.h"
#include "engine/coll.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "stats/sums.h"

#define DEFAULT_SAMPLES 5

/* What a key takes: its row in memory, and for a long string the bytes of its chunks, which are in memory
   only while they are used. */
static int64_t row_bytes(const struct row *r)
{
    int64_t bytes = (int64_t)(sizeof *r + r->nkey + r->nvalue);
    if (r->ext)
        bytes += (int64_t)sizeof(struct row_ext);
    if (r->ext && r->type == ROW_STRING)
        bytes += row_string_size(r);
    return bytes;
}

struct sampled {
    int64_t bytes, left; /* items that are still wanted */
};

static enum status add_item_bytes(void *arg, const struct coll_item *item)
{
    struct sampled *s = arg;
    s->bytes += (int64_t)(sizeof *item + item->name.n + item->value.n);
    return --s->left ? ST_OK : ST_STOP;
}

/* What a collection's items take: all of them, or as many as the first `samples` are on average. */
static enum status items_bytes(struct call *c, const struct row *r, int64_t samples, int64_t *ret)
{
    struct coll *coll;
    bool wrong;
    *ret = 0;
    enum row_type type = (enum row_type)r->type;
    enum status st = coll_open(c->view, call_db(c), c->argv[2], type, &coll, &wrong);
    if (st != ST_OK || !coll)
        return st;
    int64_t size = coll_size(coll);
    int64_t n = samples == 0 || samples > size ? size : samples;
    struct sampled s = {.left = n};
    if (n && type == ROW_LIST)
        st = coll_range(coll, 0, n - 1, false, add_item_bytes, &s);
    else if (n)
        st = coll_each(coll, add_item_bytes, &s);
    if (n)
        *ret = (int64_t)((double)s.bytes * (double)size / (double)n);
    return st;
}

static bool parse_samples(struct call *c, int64_t *ret)
{
    *ret = DEFAULT_SAMPLES;
    for (int i = 3; i < c->argc; i += 2) {
        if (!slice_is(c->argv[i], "samples") || i + 1 >= c->argc) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
        if (!arg_i64(c, i + 1, ret, NULL))
            return false;
        if (*ret < 0) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

static enum status memory_usage(struct call *c)
{
    const struct row *r;
    int64_t samples, items = 0;
    if (!parse_samples(c, &samples))
        return ST_OK;
    view_count_lookups(c->view, false);
    view_look_only(c->view);
    enum status st = arg_any(c, 2, &r);
    if (st != ST_OK)
        return st;
    if (!r) {
        reply_null(c->reply);
        return ST_OK;
    }
    int64_t bytes = row_bytes(r);
    if (r->type != ROW_STRING && r->type != ROW_TABLE) /* the rows of a table are not counted */
        st = items_bytes(c, r, samples, &items);
    if (st == ST_OK)
        reply_integer(c->reply, bytes + items);
    return st;
}

static void reply_pair(struct reply *r, const char *name, uint64_t value)
{
    reply_bulk_str(r, name);
    reply_integer(r, (int64_t)value);
}

static enum status memory_stats(struct call *c)
{
    struct executor *s = c->executor;
    struct sums t;
    size_t used = executor_used_memory(s);
    sums_gather(s->server, &t);
    const struct cache_stats *cache = &t.cache;
    size_t dataset = cache->bytes < used ? cache->bytes : used;
    const struct script_sums scripts = sums_scripts(s->server);
    reply_map(c->reply, 13);
    reply_pair(c->reply, "peak.allocated", t.stats.peak_memory);
    reply_pair(c->reply, "total.allocated", used);
    reply_pair(c->reply, "startup.allocated", s->server->start_memory);
    reply_pair(c->reply, "replication.backlog", 0);
    reply_pair(c->reply, "lua.caches", scripts.script_bytes);
    reply_pair(c->reply, "functions.caches", scripts.library_bytes);
    reply_pair(c->reply, "script.VMs", scripts.vm[INTERP_EVAL] + scripts.vm[INTERP_FUNCTIONS]);
    reply_pair(c->reply, "overhead.total", used - dataset);
    reply_pair(c->reply, "keys.count", cache->rows);
    reply_pair(c->reply, "keys.bytes-per-key", cache->rows ? cache->bytes / cache->rows : 0);
    reply_pair(c->reply, "dataset.bytes", dataset);
    reply_bulk_str(c->reply, "dataset.percentage");
    reply_double(c->reply, used ? (double)dataset * 100 / (double)used : 0);
    reply_bulk_str(c->reply, "peak.percentage");
    reply_double(c->reply, t.stats.peak_memory ? (double)used * 100 / (double)t.stats.peak_memory : 0);
    return ST_OK;
}

static enum status memory_doctor(struct call *c)
{
    struct sums t;
    sums_gather(c->executor->server, &t);
    const struct cache_stats *s = &t.cache;
    size_t used = executor_used_memory(c->executor), rss = mem_rss(), budget = t.cache_budget;
    uint64_t lookups = s->hits + s->misses;
    struct buf out = {0};
    if (lookups > 10000 && s->evicted && s->misses * 10 > lookups)
        buf_addf(
            &out,
            " * One in %llu reads goes to the database: a larger cache-memory (now %zu bytes) may help.\n",
            (unsigned long long)(lookups / s->misses), budget);
    if (used > (size_t)64 << 20 && rss > used + used / 2)
        buf_addf(&out, " * %zu bytes are resident for %zu in use: MEMORY PURGE may give some back.\n", rss,
                 used);
    if (out.len == 0)
        buf_addf(&out, "Nothing to complain about: %zu bytes in use, %zu of them cached rows.\n", used,
                 s->bytes);
    c->reply->ops->verbatim(c->reply, "txt", buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

static enum status memory_malloc_stats(struct call *c)
{
    c->reply->ops->verbatim(c->reply, "txt", SLICE("Stats not supported for the current allocator"));
    return ST_OK;
}

static enum status memory_purge(struct call *c)
{
    mem_purge();
    reply_ok(c->reply);
    return ST_OK;
}

static enum status memory_help(struct call *c)
{
    static const char *const lines[] = {
        "DOCTOR",
        "    Return memory problems reports.",
        "MALLOC-STATS",
        "    Return internal statistics report from the memory allocator.",
        "PURGE",
        "    Attempt to purge dirty pages for reclamation by the allocator.",
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. Nested values are",
        "    sampled up to <count> times (default: 5, 0 means sample all).",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

#define TIPS "nondeterministic_output", "request_policy:all_shards", "response_policy:special"

/* clang-format off */
static const struct command subcommands[] = {
    {
        .name = "doctor", .fn = memory_doctor, .arity = 2, .flags = CMD_STOPS_WORKERS, .categories = CAT_SLOW,
        .summary = "Says in words whether memory is a problem.", .since = "4.0.0", .group = "server",
        .complexity = "O(1)", .tips = {TIPS},
    },
    {
        .name = "help", .fn = memory_help, .arity = 2, .flags = CMD_LOADING | CMD_STALE, .categories = CAT_SLOW,
        .summary = "Lists the subcommands.", .since = "4.0.0", .group = "server", .complexity = "O(1)",
    },
    {
        .name = "malloc-stats", .fn = memory_malloc_stats, .arity = 2, .categories = CAT_SLOW,
        .summary = "Tells that there are no statistics of the allocator.", .since = "4.0.0",
        .group = "server", .complexity = "O(1)", .tips = {TIPS},
    },
    {
        .name = "purge", .fn = memory_purge, .arity = 2, .categories = CAT_SLOW,
        .summary = "Gives free memory back to the system.", .since = "4.0.0", .group = "server",
        .complexity = "O(N) for N bytes free in the allocator",
        .tips = {"request_policy:all_shards", "response_policy:all_succeeded"},
    },
    {
        .name = "stats", .fn = memory_stats, .arity = 2, .flags = CMD_STOPS_WORKERS, .categories = CAT_SLOW,
        .summary = "Tells what memory is used for.", .since = "4.0.0", .group = "server", .complexity = "O(1)",
        .tips = {TIPS},
    },
    {
        .name = "usage", .fn = memory_usage, .arity = -3, .flags = CMD_READONLY,
        .categories = CAT_READ | CAT_SLOW, .keys = {{.flags = KEY_RO, .index = 2, .step = 1}},
        .summary = "Tells how many bytes of memory a key takes.", .since = "4.0.0", .group = "server",
        .complexity = "O(1) row, and O(N) rows of items for N samples",
    },
    {.name = NULL},
};

const struct command memory_commands[] = {
    {
        .name = "memory", .arity = -2, .flags = CMD_STOPS_WORKERS, .categories = CAT_SLOW, .summary = "Commands about memory.",
        .since = "4.0.0", .group = "server", .complexity = "Depends on the subcommand.", .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
