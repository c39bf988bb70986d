/* What Redis accepts, this accepts: the byte after a header's CR and the two bytes after an argument are
   skipped unseen, a count of zero or less is an empty command, an inline line may end in a bare LF and may
   quote its words. The texts of the errors are Redis' own.

   One difference: Redis searches lines with string functions, so that a NUL byte in one makes it wait for a
   line end that is there already; here a NUL is a byte like any other. */
#include "proto/resp.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"

/* Until a client has authenticated. */
#define UNAUTHENTICATED_ARGS 10
#define UNAUTHENTICATED_BULK 16384

/* Of commands that need no second look. */
#define QUICK_DIGITS 4
#define QUICK_ARGS   64

/* The spans of an ordinary command stay allocated; those of a huge one do not. */
#define KEEP_SPANS 1024

void resp_init(struct resp_parser *p)
{
    *p = (struct resp_parser){.missing = -1, .bulk = -1};
}

void resp_release(struct resp_parser *p)
{
    mem_free(p->spans);
    resp_init(p);
}

void resp_reset(struct resp_parser *p)
{
    p->pos = p->scanned = p->nspans = p->looked = p->want = 0;
    p->missing = p->bulk = -1;
    if (p->cap > KEEP_SPANS) {
        mem_free(p->spans);
        p->spans = NULL;
        p->cap = 0;
    }
}

static enum resp_result fail(struct resp_parser *p, const char *what)
{
    snprintf(p->error, sizeof p->error, "ERR Protocol error: %s", what);
    return RESP_ERROR;
}

static enum resp_result need(struct resp_parser *p, size_t bytes)
{
    p->want = bytes;
    return RESP_MORE;
}

/* The distance from pos to the first `end` byte. RESP_ERROR (without a text) when there is none within
   max. */
static enum resp_result find_end(struct resp_parser *p, struct slice data, char end, uint64_t max,
                                 size_t *ret)
{
    size_t have = data.n - p->pos;
    size_t upto = have > max ? (size_t)max + 1 : have;
    const char *from = data.p + p->pos + p->scanned;
    const char *at = upto > p->scanned ? memchr(from, end, upto - p->scanned) : NULL;
    if (at) {
        *ret = (size_t)(at - data.p) - p->pos;
        return RESP_COMMAND;
    }
    p->scanned = upto;
    return have > max ? RESP_ERROR : need(p, data.n + 1);
}

/* A header line such as "*3" or "$11": its text without the first byte goes to *ret_digits, and pos moves
   behind it. RESP_ERROR: the line is too long. */
static enum resp_result take_header(struct resp_parser *p, struct slice data, uint64_t max,
                                    struct slice *ret_digits)
{
    size_t n;
    enum resp_result res = find_end(p, data, '\r', max, &n);
    if (res != RESP_COMMAND)
        return res;
    if (data.n - p->pos < n + 2) {
        p->scanned = n;
        return need(p, p->pos + n + 2);
    }
    *ret_digits = slice_of(data.p + p->pos + 1, n ? n - 1 : 0);
    p->pos += n + 2;
    p->scanned = 0;
    return RESP_COMMAND;
}

/* Nearly every number here has a few digits. */
static bool parse_count(struct slice s, int64_t *ret)
{
    if (s.n == 0 || s.n > 9 || s.p[0] < '1' || s.p[0] > '9')
        return num_parse_i64(s, ret);
    int64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

static enum resp_result take_count(struct resp_parser *p, struct slice data, const struct resp_limits *limits)
{
    struct slice digits;
    enum resp_result res = take_header(p, data, limits->max_inline, &digits);
    if (res == RESP_ERROR)
        return fail(p, "too big mbulk count string");
    if (res == RESP_MORE)
        return res;
    int64_t n;
    if (!parse_count(digits, &n) || n > limits->max_args)
        return fail(p, "invalid multibulk length");
    if (n > UNAUTHENTICATED_ARGS && limits->unauthenticated)
        return fail(p, "unauthenticated multibulk length");
    p->missing = n > 0 ? n : 0;
    return RESP_COMMAND;
}

static enum resp_result take_length(struct resp_parser *p, struct slice data,
                                    const struct resp_limits *limits)
{
    struct slice digits;
    size_t start = p->pos;
    enum resp_result res = take_header(p, data, limits->max_inline, &digits);
    if (res == RESP_ERROR)
        return fail(p, "too big bulk count string");
    if (res == RESP_MORE)
        return res;
    unsigned char kind = (unsigned char)data.p[start];
    if (kind != '$') {
        char what[32];
        if (kind == '\0')
            snprintf(what, sizeof what, "expected '$', got '\\x00'");
        else
            snprintf(what, sizeof what, "expected '$', got '%c'", kind == '\r' || kind == '\n' ? ' ' : kind);
        return fail(p, what);
    }
    int64_t n;
    if (!parse_count(digits, &n) || n < 0 || (uint64_t)n > limits->max_bulk)
        return fail(p, "invalid bulk length");
    if (n > UNAUTHENTICATED_BULK && limits->unauthenticated)
        return fail(p, "unauthenticated bulk length");
    p->bulk = n;
    return RESP_COMMAND;
}

/* ---- commands that are whole ---- */

static inline unsigned digit_of(char c)
{
    return (unsigned char)c - (unsigned)'0';
}

/* The number in a header at p, "*3\r\n" or "$11\r\n", when it is one of up to QUICK_DIGITS digits and wholly
   before end; p moves behind it. -1: it is something else, which may be right all the same. */
static inline int64_t quick_number(const char **p, const char *end, char kind)
{
    const char *at = *p;
    if (end - at < QUICK_DIGITS + 3 || *at++ != kind)
        return -1;
    unsigned v = digit_of(*at++), digit;
    for (int i = 1; i < QUICK_DIGITS && v != 0 && (digit = digit_of(*at)) <= 9; i++, at++)
        v = v * 10 + digit;
    if (*at != '\r' || digit_of((*p)[1]) > 9)
        return -1;
    *p = at + 2;
    return v;
}

/* Nearly every command has short headers, and all of it has been received. False: this one is different or
   wrong, nothing has been taken, and parse_array has a closer look. */
static bool parse_quickly(struct slice data, const struct resp_limits *limits, struct arena *arena,
                          struct slice **ret_argv, int *ret_argc, size_t *ret_used)
{
    const char *at = data.p, *end = data.p + data.n;
    int64_t argc = quick_number(&at, end, '*');
    if (argc <= 0 || argc > QUICK_ARGS || limits->unauthenticated)
        return false;
    struct slice *argv = arena_alloc(arena, (size_t)argc * sizeof *argv);
    for (int64_t i = 0; i < argc; i++) {
        int64_t n = quick_number(&at, end, '$');
        if (n < 0 || n > end - at - 2 || (uint64_t)n > limits->max_bulk)
            return false;
        argv[i] = slice_of(at, (size_t)n);
        at += n + 2;
    }
    *ret_argv = argv;
    *ret_argc = (int)argc;
    *ret_used = (size_t)(at - data.p);
    return true;
}

/* ---- all commands ---- */

static enum resp_result parse_array(struct resp_parser *p, struct slice data,
                                    const struct resp_limits *limits, struct arena *arena,
                                    struct slice **ret_argv, int *ret_argc, size_t *ret_used)
{
    enum resp_result res;
    if (p->missing < 0 && p->scanned == 0 &&
        parse_quickly(data, limits, arena, ret_argv, ret_argc, ret_used)) {
        p->want = 0;
        return RESP_COMMAND;
    }
    if (p->missing < 0 && (res = take_count(p, data, limits)) != RESP_COMMAND)
        return res;
    while (p->missing > 0) {
        if (p->bulk < 0 && (res = take_length(p, data, limits)) != RESP_COMMAND)
            return res;
        size_t n = (size_t)p->bulk;
        if (data.n - p->pos < n + 2)
            return need(p, p->pos + n + 2);
        VEC_PUSH(p->spans, p->nspans, p->cap) = (struct resp_span){p->pos, n};
        p->pos += n + 2;
        p->bulk = -1;
        p->missing--;
    }
    struct slice *argv = p->nspans ? arena_alloc(arena, p->nspans * sizeof *argv) : NULL;
    for (size_t i = 0; i < p->nspans; i++)
        argv[i] = slice_of(data.p + p->spans[i].off, p->spans[i].len);
    *ret_argv = argv;
    *ret_argc = (int)p->nspans;
    *ret_used = p->pos;
    resp_reset(p);
    return RESP_COMMAND;
}

/* ---- inline lines ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Where an unquoted word ends; \v and \f only separate words when they stand before one. */
static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that a backslash inside double quotes stands for; line[i] is the backslash, something follows it.
   Returns how many bytes it took. */
static size_t unescape(struct slice line, size_t i, char *ret)
{
    if (line.p[i + 1] == 'x' && i + 3 < line.n && hex_digit(line.p[i + 2]) >= 0 &&
        hex_digit(line.p[i + 3]) >= 0) {
        *ret = (char)(hex_digit(line.p[i + 2]) * 16 + hex_digit(line.p[i + 3]));
        return 4;
    }
    switch (line.p[i + 1]) {
    case 'n':
        *ret = '\n';
        break;
    case 'r':
        *ret = '\r';
        break;
    case 't':
        *ret = '\t';
        break;
    case 'b':
        *ret = '\b';
        break;
    case 'a':
        *ret = '\a';
        break;
    default:
        *ret = line.p[i + 1];
    }
    return 2;
}

/* Copies the word that starts at line[*i] to out, without its quotes. False: a quote is not closed, or
   something follows a closing quote. */
static bool take_word(struct slice line, size_t *i, char *out, size_t *ret_n)
{
    size_t at = *i, n = 0;
    char quote = 0;
    for (;;) {
        if (at == line.n) {
            if (quote)
                return false;
            break;
        }
        char c = line.p[at];
        if (quote == '"' && c == '\\' && at + 1 < line.n) {
            at += unescape(line, at, &out[n++]);
        } else if (quote == '\'' && c == '\\' && at + 1 < line.n && line.p[at + 1] == '\'') {
            out[n++] = '\'';
            at += 2;
        } else if (quote && c == quote) {
            at++;
            if (at < line.n && !is_space(line.p[at]))
                return false;
            break;
        } else if (!quote && (c == '"' || c == '\'')) {
            quote = c;
            at++;
        } else if (!quote && ends_word(c)) {
            break;
        } else {
            out[n++] = c;
            at++;
        }
    }
    *i = at;
    *ret_n = n;
    return true;
}

bool resp_split_line(struct slice line, struct arena *arena, struct slice **ret_argv, int *ret_argc)
{
    /* Words never grow by unquoting, and every word but the last has a byte behind it. */
    char *text = arena_alloc(arena, line.n + 1);
    struct slice *argv = arena_alloc(arena, (line.n / 2 + 1) * sizeof *argv);
    int argc = 0;
    size_t i = 0, used = 0;
    for (;;) {
        while (i < line.n && is_space(line.p[i]))
            i++;
        if (i == line.n)
            break;
        size_t n;
        if (!take_word(line, &i, text + used, &n))
            return false;
        argv[argc++] = slice_of(text + used, n);
        used += n;
    }
    *ret_argv = argv;
    *ret_argc = argc;
    return true;
}

static enum resp_result parse_inline(struct resp_parser *p, struct slice data,
                                     const struct resp_limits *limits, struct arena *arena,
                                     struct slice **ret_argv, int *ret_argc, size_t *ret_used)
{
    size_t n;
    enum resp_result res = find_end(p, data, '\n', limits->max_inline, &n);
    if (res == RESP_ERROR)
        return fail(p, "too big inline request");
    if (res == RESP_MORE)
        return res;
    struct slice line = slice_of(data.p, n);
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    if (!resp_split_line(line, arena, ret_argv, ret_argc))
        return fail(p, "unbalanced quotes in request");
    *ret_used = n + 1;
    resp_reset(p);
    return RESP_COMMAND;
}

enum resp_result resp_parse(struct resp_parser *p, struct slice data, const struct resp_limits *limits,
                            struct arena *arena, struct slice **ret_argv, int *ret_argc, size_t *ret_used)
{
    assert(limits->max_args <= INT_MAX);
    assert(data.n >= p->pos);
    if (data.n == 0)
        return need(p, 1);
    if (data.p[0] == '*')
        return parse_array(p, data, limits, arena, ret_argv, ret_argc, ret_used);
    return parse_inline(p, data, limits, arena, ret_argv, ret_argc, ret_used);
}
