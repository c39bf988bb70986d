/* Reads commands from RESP bytes (arrays of bulk strings) and inline lines, incrementally.

   The caller keeps the bytes of an unfinished command in one contiguous buffer and calls again when there are
   more; the parser remembers how far it got, so nothing is read twice. It never reads outside the slice
   given, and how the input was cut into pieces never changes the result. */
#ifndef LARDER_PROTO_RESP_H
#define LARDER_PROTO_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

struct resp_limits {
    uint64_t max_bulk;    /* proto-max-bulk-len */
    int64_t max_args;     /* of one command; at most INT_MAX */
    uint64_t max_inline;  /* 64 KiB */
    bool unauthenticated; /* small limits until the client has authenticated, as in Redis */
};

enum resp_result {
    RESP_MORE,    /* not whole yet; p->want says how many bytes the buffer should be able to hold in all (a
                     hint) */
    RESP_COMMAND, /* *ret_argc arguments in *ret_argv; *ret_used bytes belong to it. argc 0: an empty line, to
                     be skipped */
    RESP_ERROR    /* p->error holds the text for the client ("ERR Protocol error: ..."); close after sending
                     it */
};

struct resp_span {
    size_t off;
    size_t len;
};

struct resp_parser {
    size_t pos;      /* bytes of the current command already understood */
    size_t scanned;  /* bytes behind pos in which the end of a line was looked for in vain */
    int64_t missing; /* arguments still to come; -1: between commands */
    int64_t bulk;    /* length of the argument being read; -1: its header is next */
    struct resp_span *spans;
    size_t nspans, cap;
    size_t looked; /* arguments of it that resp_ahead has told of */
    size_t want;
    char error[128];
};

void resp_init(struct resp_parser *p);
void resp_release(struct resp_parser *p);

/* Forgets an unfinished command: the next call gets it again from its first byte. */
void resp_reset(struct resp_parser *p);

/* data starts at the first byte of the current command. argv is allocated in arena and borrows data. */
enum resp_result resp_parse(struct resp_parser *p, struct slice data, const struct resp_limits *limits,
                            struct arena *arena, struct slice **ret_argv, int *ret_argc, size_t *ret_used);

/* Of a command that is not whole: how many arguments it has, 0 when that is not known, ... */
static inline int64_t resp_coming(const struct resp_parser *p)
{
    return p->missing > 0 ? p->missing + (int64_t)p->nspans : 0;
}

/* ... and one that has come. */
static inline struct slice resp_arg(const struct resp_parser *p, const char *data, size_t i)
{
    return slice_of(data + p->spans[i].off, p->spans[i].len);
}

/* Splits an inline line (without its end) into words as Redis does: separated by white space, "double quotes"
   with backslash escapes (\n \r \t \b \a \xHH), 'single quotes' with \' alone. False: unbalanced quotes.
   The words are copies in arena. */
bool resp_split_line(struct slice line, struct arena *arena, struct slice **ret_argv, int *ret_argc);

#endif
