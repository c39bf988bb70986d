#include "stats/stats.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "engine/recent.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "stats/latency.h"
#include "stats/monitor.h"
#include "stats/slowlog.h"

void stats_init(struct server *all)
{
    all->slowlog = slowlog_new();
    all->latency = latency_new();
}

void stats_release(struct server *all)
{
    slowlog_free(all->slowlog);
    latency_free(all->latency);
    all->slowlog = NULL;
    all->latency = NULL;
}

static void post_calls(struct executor *s, const struct books *b)
{
    for (size_t i = 0; i < b->ncalls; i++) {
        struct command_stat *stat = &s->command_stats[b->calls[i].command];
        histogram_add_times(&stat->us, (uint64_t)b->calls[i].us, b->calls[i].times);
    }
}

static void post_events(struct executor *s, const struct books *b)
{
    for (size_t i = 0; i < b->nevents; i++) {
        if (b->events[i].kind == BOOKS_REJECTED)
            s->command_stats[b->events[i].which].rejected += b->events[i].times;
        else if (b->events[i].kind == BOOKS_FAILED)
            s->command_stats[b->events[i].which].failed += b->events[i].times;
    }
    for (uint32_t i = 0; i < b->errors.n; i++)
        error_counts_add(&s->errors, b->errors.at[i].code, b->errors.at[i].count);
}

static void post_notes(struct executor *s, const struct books *b)
{
    for (const struct books_note *note = b->notes; note; note = note->next) {
        if (note->slow)
            slowlog_add(s->server->slowlog, note, (size_t)s->config->slowlog_max_len);
        if (note->spike)
            latency_add(s->server->latency, note->cmd->flags & CMD_FAST ? "fast-command" : "command",
                        note->us / 1000);
    }
    monitor_feed(s, b->notes);
}

/* What scripts log is theirs, as it is: it may be long. */
static void post_lines(const struct books *b)
{
    for (const struct books_line *line = b->lines; line; line = line->next) {
        size_t cap = 4 * strlen(line->text) + 3;
        char *text = mem_alloc(cap);
        log_write(line->level, "a script says", "text=%s", log_quote(text, cap, line->text));
        mem_free(text);
    }
    if (b->lost_lines)
        log_warning("scripts have said more than is kept of one transaction", "lines=%llu",
                    (unsigned long long)b->lost_lines);
}

void stats_post(struct executor *s)
{
    if (s->may_retry)
        return;
    for (uint32_t i = 0; i < s->nengines; i++)
        engine_post_tally(s->engines[i]);
    if (s->recent)
        engine_post_tally(recent_engine(s->recent));
    stats_post_books(s, &s->books);
}

void stats_post_books(struct executor *s, struct books *b)
{
    if (!b->ncalls && !b->nevents && !b->nerrors)
        return;
    books_sum(b, &s->stats);
    post_calls(s, b);
    if (b->nevents || b->nerrors)
        post_events(s, b);
    if (b->notes)
        post_notes(s, b);
    if (b->lines || b->lost_lines)
        post_lines(b);
    books_empty(b);
}
