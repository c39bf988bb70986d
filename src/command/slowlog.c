#include "command/slowlog.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "command/redact.h"
#include "command/session.h"

#define MAX_ARGS      32 /* kept of a command; the last one tells how many more there were */
#define MAX_ARG_BYTES 128

struct slowlog {
    struct slowlog_entry *newest, *oldest;
    size_t len;
    int64_t next_id;
};

static struct slowlog_arg copy_arg(struct slice s)
{
    if (s.n <= MAX_ARG_BYTES)
        return (struct slowlog_arg){mem_strndup(s), s.n};
    size_t cap = MAX_ARG_BYTES + 40;
    char *text = mem_alloc(cap);
    memcpy(text, s.p, MAX_ARG_BYTES);
    int n = snprintf(text + MAX_ARG_BYTES, cap - MAX_ARG_BYTES, "... (%zu more bytes)", s.n - MAX_ARG_BYTES);
    return (struct slowlog_arg){text, MAX_ARG_BYTES + (size_t)n};
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
    return mem_zalloc(sizeof(struct slowlog));
}

void slowlog_free(struct slowlog *log)
{
    slowlog_trim(log, 0);
    mem_free(log);
}

void slowlog_trim(struct slowlog *log, size_t max_len)
{
    while (log->len > max_len) {
        struct slowlog_entry *e = log->oldest;
        log->oldest = e->newer;
        if (log->oldest)
            log->oldest->older = NULL;
        else
            log->newest = NULL;
        log->len--;
        entry_free(e);
    }
}

void slowlog_add(struct slowlog *log, const struct session *session, const struct command *cmd,
                 const struct slice *argv, int argc, int64_t us, size_t max_len)
{
    int kept = argc > MAX_ARGS ? MAX_ARGS : argc;
    struct slowlog_entry *e = mem_zalloc(sizeof *e + (size_t)kept * sizeof e->argv[0]);
    e->id = log->next_id++;
    e->time = clock_wall_us() / 1000000;
    e->us = us;
    e->addr = mem_strdup(session->addr);
    e->name = mem_strdup(session->name);
    e->argc = kept;
    for (int i = 0; i < kept; i++) {
        char more[40];
        struct slice arg = redact(cmd, argv, i);
        if (i == MAX_ARGS - 1 && argc > MAX_ARGS) {
            int n = snprintf(more, sizeof more, "... (%d more arguments)", argc - MAX_ARGS + 1);
            arg = slice_of(more, (size_t)n);
        }
        e->argv[i] = copy_arg(arg);
    }
    e->older = log->newest;
    if (log->newest)
        log->newest->newer = e;
    else
        log->oldest = e;
    log->newest = e;
    log->len++;
    slowlog_trim(log, max_len);
}

size_t slowlog_len(const struct slowlog *log)
{
    return log->len;
}

const struct slowlog_entry *slowlog_newest(const struct slowlog *log)
{
    return log->newest;
}
