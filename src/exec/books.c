#include "exec/books.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/redact.h"

#define FIRST_CALLS 1024
#define FOLD_CALLS  65536 /* from so many lines on, the same ones become one */

void books_release(struct books *b)
{
    mem_free(b->calls);
    mem_free(b->events);
    arena_release(&b->arena);
    *b = (struct books){0};
}

void books_empty(struct books *b)
{
    b->ncalls = b->nevents = 0;
    b->folded = 0;
    b->errors.n = 0;
    b->nerrors = 0;
    if (!b->notes && !b->lines && !b->lost_lines)
        return;
    b->notes = b->last_note = NULL;
    b->lines = b->last_line = NULL;
    b->line_bytes = 0;
    b->lost_lines = 0;
    arena_reset(&b->arena);
}

static int by_command_and_time(const void *a, const void *b)
{
    const struct books_call *x = a, *y = b;
    if (x->command != y->command)
        return x->command < y->command ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

static bool joins(uint32_t times, uint32_t more)
{
    return times <= UINT32_MAX - more;
}

static void fold_calls(struct books *b)
{
    size_t n = 0;
    qsort(b->calls, b->ncalls, sizeof *b->calls, by_command_and_time);
    for (size_t i = 0; i < b->ncalls; i++) {
        struct books_call *last = n ? &b->calls[n - 1] : NULL;
        const struct books_call one = b->calls[i];
        if (last && !by_command_and_time(last, &one) && joins(last->times, one.times))
            last->times += one.times;
        else
            b->calls[n++] = one;
    }
    b->folded += b->ncalls - n;
    b->ncalls = n;
}

void books_grow(struct books *b)
{
    if (b->ncalls >= FOLD_CALLS)
        fold_calls(b);
    if (b->cap_calls && b->ncalls < b->cap_calls / 2)
        return;
    b->cap_calls = b->cap_calls ? b->cap_calls * 2 : FIRST_CALLS;
    b->calls = mem_realloc(b->calls, b->cap_calls * sizeof *b->calls);
}

/* Kinds are few, and what they count by as well. */
static void fold_events(struct books *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->nevents; i++) {
        const struct books_event one = b->events[i];
        size_t k = 0;
        while (k < n && !(b->events[k].kind == one.kind && b->events[k].which == one.which &&
                          joins(b->events[k].times, one.times)))
            k++;
        if (k < n)
            b->events[k].times += one.times;
        else
            b->events[n++] = one;
    }
    b->nevents = n;
}

void books_count(struct books *b, enum books_kind kind, uint32_t which)
{
    if (b->nevents == b->cap_events && b->nevents >= FIRST_CALLS)
        fold_events(b);
    VEC_PUSH(b->events, b->nevents, b->cap_events) = (struct books_event){kind, which, 1};
}

void error_counts_add(struct error_counts *e, const char *code, uint64_t n)
{
    uint32_t i = 0;
    while (i < e->n && strcmp(e->at[i].code, code) != 0)
        i++;
    if (i == e->n) {
        if (i == sizeof e->at / sizeof *e->at)
            return;
        snprintf(e->at[i].code, sizeof e->at[i].code, "%s", code);
        e->at[i].count = 0;
        e->n++;
    }
    e->at[i].count += n;
}

void books_sum(const struct books *b, struct executor_stats *to)
{
    to->commands += books_calls(b);
    to->errors += b->nerrors;
    for (size_t i = 0; i < b->nevents; i++) {
        uint32_t which = b->events[i].which, times = b->events[i].times;
        switch (b->events[i].kind) {
        case BOOKS_REJECTED:
        case BOOKS_FAILED:
            break;
        case BOOKS_DATABASE_ERROR:
            to->database_errors[which] += times;
            break;
        case BOOKS_HTTP_ANSWER:
            to->http_answers[which] += times;
            break;
        case BOOKS_CLOSED:
            to->closed[which] += times;
            break;
        case BOOKS_WRONG_PASSWORD:
            to->acl_denied_auth += times;
            break;
        case BOOKS_READ:
            to->served[which / READ_PLACES][which % READ_PLACES] += times;
            break;
        }
    }
}

/* ---- notes ---- */

static const char *copy_text(struct arena *a, const char *text)
{
    return arena_copy(a, slice_of(text, strlen(text) + 1)).p;
}

/* By the server's side of a Unix socket: the client's has no name. */
static const char *shown_from(struct arena *a, const struct call *call)
{
    if (call->script)
        return "lua";
    if (!call->session->unix_socket)
        return copy_text(a, call->session->addr);
    const char *path = call->executor->config->unixsocket;
    size_t n = strlen(path) + sizeof "unix:";
    char *text = arena_alloc(a, n);
    snprintf(text, n, "unix:%s", path);
    return text;
}

static void copy_words(struct arena *a, const struct call *call, struct books_note *note)
{
    for (int i = 0; i < note->nargs; i++) {
        struct slice word = redact(call->cmd, call->argv, i);
        note->argv[i].length = word.n;
        if (!note->monitored && word.n > BOOKS_SLOW_BYTES)
            word.n = BOOKS_SLOW_BYTES;
        note->argv[i].shown = arena_copy(a, word);
    }
}

void books_note(struct books *b, const struct call *call, const struct books_note *as)
{
    bool few = !as->monitored && call->argc > BOOKS_SLOW_WORDS;
    int nargs = few ? BOOKS_SLOW_WORDS : call->argc;
    struct books_note *note = arena_alloc(&b->arena, sizeof *note + (size_t)nargs * sizeof *note->argv);
    *note = *as;
    note->cmd = call->cmd;
    note->wall_us = clock_wall_us();
    note->db = call->session->state.db;
    note->from = shown_from(&b->arena, call);
    note->addr = call->script ? "?:0" : copy_text(&b->arena, call->session->addr);
    note->name = call->script ? "" : copy_text(&b->arena, session_text(call->session, SESSION_NAME));
    note->argc = call->argc;
    note->nargs = nargs;
    copy_words(&b->arena, call, note);
    *(b->last_note ? &b->last_note->next : &b->notes) = note;
    b->last_note = note;
}

void books_log(struct books *b, enum log_level level, struct slice text)
{
    size_t n = sizeof(struct books_line) + text.n + 1;
    if (n > BOOKS_LINE_BYTES - b->line_bytes) {
        b->lost_lines++;
        return;
    }
    b->line_bytes += n;
    struct books_line *line = arena_alloc(&b->arena, sizeof *line);
    char *copy = arena_alloc(&b->arena, text.n + 1);
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    *line = (struct books_line){.level = level, .text = copy};
    *(b->last_line ? &b->last_line->next : &b->lines) = line;
    b->last_line = line;
}
