/* The books of the running transaction: what statistics, the slow log, the latency monitor and monitoring
   clients are to be told of its commands. They are posted when the transaction has ended (stats/stats.h), so
   that one that is run again is told of once: then the books are emptied, and that is all.

   Most commands are one line here: 16 bytes in an array that is used again and again. A script may run any
   number of them: beyond some thousands, those that took the same time are told together. */
#ifndef LARDER_EXEC_BOOKS_H
#define LARDER_EXEC_BOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/slice.h"

struct call;
struct command;
struct executor_stats;

/* A command has run. */
struct books_call {
    uint32_t command; /* its index */
    uint32_t times;   /* so many that took so long */
    int64_t us;
};

/* Something else that is counted. */
enum books_kind {
    BOOKS_REJECTED,       /* a command, by its index */
    BOOKS_FAILED,         /* so, one that has run */
    BOOKS_DATABASE_ERROR, /* by its status */
    BOOKS_HTTP_ANSWER,    /* by its status */
    BOOKS_CLOSED,         /* a connection, by the reason */
    BOOKS_WRONG_PASSWORD,
    BOOKS_READ /* a call that was served, by mode and place: READ_PLACES * mode + place */
};
struct books_event {
    enum books_kind kind;
    uint32_t which;
    uint32_t times;
};

/* Error replies by their code, for INFO errorstats. */
struct error_counts {
    struct error_count {
        char code[32];
        uint64_t count;
    } at[64];
    uint32_t n;
};

/* A command to tell of word by word: copies of what it was, nothing secret among them. */
struct books_note {
    struct books_note *next;
    bool slow, spike, monitored; /* for the slow log, the latency monitor, monitoring clients */
    const struct command *cmd;
    int64_t us, wall_us;
    uint32_t db;
    const char *from; /* the client's address, as MONITOR shows it */
    const char *addr, *name;
    int argc, nargs; /* how many words it had; how many of them are here */
    struct books_word {
        struct slice shown; /* of one that was long, its beginning, unless it is for monitors */
        size_t length;
    } argv[];
};
#define BOOKS_SLOW_WORDS 32 /* of a command that is only slow */
#define BOOKS_SLOW_BYTES 128

/* A line that a script wants in the server's log. */
struct books_line {
    struct books_line *next;
    enum log_level level;
    const char *text;
};

struct books {
    struct books_call *calls;
    size_t ncalls, cap_calls;
    uint64_t folded; /* how many more they are than there are lines */
    struct books_event *events;
    size_t nevents, cap_events;
    struct error_counts errors;
    uint64_t nerrors;
    struct books_note *notes, *last_note; /* oldest first */
    struct books_line *lines, *last_line; /* so ... */
    size_t line_bytes;                    /* ... with so many bytes */
    uint64_t lost_lines;                  /* beyond BOOKS_LINE_BYTES */
    struct arena arena;                   /* of both */
};

void books_release(struct books *b);

/* As if nothing had happened. */
void books_empty(struct books *b);

void books_grow(struct books *b);

static inline void books_add_call(struct books *b, int index, int64_t us)
{
    if (__builtin_expect(b->ncalls == b->cap_calls, 0))
        books_grow(b);
    b->calls[b->ncalls++] = (struct books_call){.command = (uint32_t)index, .times = 1, .us = us};
}

/* How many commands have run. */
static inline uint64_t books_calls(const struct books *b)
{
    return b->ncalls + b->folded;
}

void books_count(struct books *b, enum books_kind kind, uint32_t which);

/* Keeps a copy of the call for the slow log, the latency monitor or monitoring clients, as `as` says. */
void books_note(struct books *b, const struct call *call, const struct books_note *as);

/* Keeps a copy of the line; beyond BOOKS_LINE_BYTES, that there was one. */
#define BOOKS_LINE_BYTES (1u << 20)
void books_log(struct books *b, enum log_level level, struct slice text);

/* Adds what was counted, other than by command and by error code. */
void books_sum(const struct books *b, struct executor_stats *add_to);

/* Counts an error in a table. */
void error_counts_add(struct error_counts *e, const char *code, uint64_t n);

#endif
