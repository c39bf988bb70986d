#include "stats/slowlog.h"

#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "stats/stats.h"

struct slowlog_arg {
    char *p;
    size_t n;
};

struct slowlog_entry {
    struct slowlog_entry *newer, *older;
    int64_t id;
    int64_t time; /* wall, seconds */
    int64_t us;
    char *addr;
    char *name;
    int argc;
    struct slowlog_arg argv[];
};

struct slowlog {
    pthread_mutex_t lock;
    struct slowlog_entry *newest, *oldest;
    size_t len;
    int64_t next_id;
};

static struct slowlog_arg copy_arg(const struct books_word *word)
{
    if (word->length <= BOOKS_SLOW_BYTES)
        return (struct slowlog_arg){mem_strndup(word->shown), word->length};
    size_t cap = BOOKS_SLOW_BYTES + 40;
    char *text = mem_alloc(cap);
    memcpy(text, word->shown.p, BOOKS_SLOW_BYTES);
    int n = snprintf(text + BOOKS_SLOW_BYTES, cap - BOOKS_SLOW_BYTES, "... (%zu more bytes)",
                     word->length - BOOKS_SLOW_BYTES);
    return (struct slowlog_arg){text, BOOKS_SLOW_BYTES + (size_t)n};
}

static void entry_free(struct slowlog_entry *e)
{
    for (int i = 0; i < e->argc; i++)
        mem_free(e->argv[i].p);
    mem_free(e->addr);
    mem_free(e->name);
    mem_free(e);
}

struct slowlog *slowlog_new(void)
{
    struct slowlog *log = mem_zalloc(sizeof *log);
    pthread_mutex_init(&log->lock, NULL);
    return log;
}

static void slowlog_trim(struct slowlog *log, size_t max_len)
{
    for (struct slowlog_entry *e; log->len > max_len && (e = log->oldest);) {
        log->oldest = e->newer;
        if (log->oldest)
            log->oldest->older = NULL;
        else
            log->newest = NULL;
        log->len--;
        entry_free(e);
    }
}

void slowlog_free(struct slowlog *log)
{
    slowlog_trim(log, 0);
    pthread_mutex_destroy(&log->lock);
    mem_free(log);
}

static struct slowlog_entry *make_entry(const struct books_note *note)
{
    int kept = note->argc > BOOKS_SLOW_WORDS ? BOOKS_SLOW_WORDS : note->argc;
    struct slowlog_entry *e = mem_zalloc(sizeof *e + (size_t)kept * sizeof e->argv[0]);
    e->time = note->wall_us / 1000000;
    e->us = note->us;
    e->addr = mem_strdup(note->addr);
    e->name = mem_strdup(note->name);
    e->argc = kept;
    for (int i = 0; i < kept; i++)
        e->argv[i] = copy_arg(&note->argv[i]);
    if (note->argc > kept) { /* the last one tells how many more there were */
        char more[40];
        int n = snprintf(more, sizeof more, "... (%d more arguments)", note->argc - kept + 1);
        mem_free(e->argv[kept - 1].p);
        e->argv[kept - 1] = (struct slowlog_arg){mem_strdup(more), (size_t)n};
    }
    return e;
}

void slowlog_add(struct slowlog *log, const struct books_note *note, size_t max_len)
{
    struct slowlog_entry *e = make_entry(note);
    pthread_mutex_lock(&log->lock);
    e->id = log->next_id++;
    e->older = log->newest;
    *(log->newest ? &log->newest->newer : &log->oldest) = e;
    log->newest = e;
    log->len++;
    slowlog_trim(log, max_len);
    pthread_mutex_unlock(&log->lock);
}

/* ---- SLOWLOG ---- */

/* With what ran before in the same batch. */
static struct slowlog *open_log(const struct call *c)
{
    struct slowlog *log = c->executor->server->slowlog;
    stats_post(c->executor);
    pthread_mutex_lock(&log->lock);
    return log;
}

static enum status slowlog_get(struct call *c)
{
    int64_t count = 10;
    if (c->argc > 3) {
        reply_unknown_sub(c);
        return ST_OK;
    }
    if (c->argc == 3 &&
        !arg_range(c, 2, -1, INT64_MAX, &count, "ERR count should be greater than or equal to -1"))
        return ST_OK;
    struct slowlog *log = open_log(c);
    size_t n = count >= 0 && (uint64_t)count < log->len ? (size_t)count : log->len;
    reply_array(c->reply, n);
    for (const struct slowlog_entry *e = log->newest; n > 0; e = e->older, n--) {
        reply_array(c->reply, 6);
        reply_integer(c->reply, e->id);
        reply_integer(c->reply, e->time);
        reply_integer(c->reply, e->us);
        reply_array(c->reply, (size_t)e->argc);
        for (int i = 0; i < e->argc; i++)
            reply_bulk(c->reply, slice_of(e->argv[i].p, e->argv[i].n));
        reply_bulk_str(c->reply, e->addr);
        reply_bulk_str(c->reply, e->name);
    }
    pthread_mutex_unlock(&log->lock);
    return ST_OK;
}

static enum status slowlog_len(struct call *c)
{
    struct slowlog *log = open_log(c);
    reply_integer(c->reply, (int64_t)log->len);
    pthread_mutex_unlock(&log->lock);
    return ST_OK;
}

static enum status slowlog_reset(struct call *c)
{
    struct slowlog *log = open_log(c);
    slowlog_trim(log, 0);
    pthread_mutex_unlock(&log->lock);
    reply_ok(c->reply);
    return ST_OK;
}

static enum status slowlog_help(struct call *c)
{
    static const char *const lines[] = {
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

/* clang-format off */
static const struct command subcommands[] = {
    {
        .name = "get", .fn = slowlog_get, .arity = -2, .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Tells the newest slow commands.",
        .since = "2.2.12", .group = "server", .complexity = "O(N) for N entries",
        .tips = {"request_policy:all_nodes", "nondeterministic_output"},
    },
    {
        .name = "help", .fn = slowlog_help, .arity = 2, .flags = CMD_LOADING | CMD_STALE,
        .categories = CAT_SLOW, .summary = "Lists the subcommands.", .since = "6.2.0", .group = "server",
        .complexity = "O(1)",
    },
    {
        .name = "len", .fn = slowlog_len, .arity = 2, .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Counts the slow commands remembered.",
        .since = "2.2.12", .group = "server", .complexity = "O(1)",
        .tips = {"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
    },
    {
        .name = "reset", .fn = slowlog_reset, .arity = 2, .flags = CMD_ADMIN | CMD_LOADING | CMD_STALE,
        .categories = CAT_ADMIN | CAT_SLOW | CAT_DANGEROUS, .summary = "Forgets the slow commands.",
        .since = "2.2.12", .group = "server", .complexity = "O(N) for N entries",
        .tips = {"request_policy:all_nodes", "response_policy:all_succeeded"},
    },
    {.name = NULL},
};

const struct command slowlog_commands[] = {
    {
        .name = "slowlog", .arity = -2, .categories = CAT_SLOW, .summary = "Commands about slow commands.",
        .since = "2.2.12", .group = "server", .complexity = "Depends on the subcommand.", .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
