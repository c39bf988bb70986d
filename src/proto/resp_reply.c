/* RESP2 and RESP3 bytes. RESP2 knows five kinds of value; the others take the form that Redis gives them
   there: a map is a flat array, a double a bulk string, a boolean an integer. */
#include "proto/resp_reply.h"

#include <assert.h>

#include "base/mem.h"
#include "base/num.h"

/* The longest header: a kind, a 64-bit number, CR LF. */
#define HEADER_CHARS (1 + NUM_I64_CHARS + 2)

static struct resp_reply *sink(struct reply *r)
{
    return (struct resp_reply *)r;
}

/* Writes "<kind><n>\r\n" at p and returns its length. */
static size_t put_header(char *p, char kind, int64_t n)
{
    p[0] = kind;
    size_t len = 1;
    if (n >= 0 && n < 10) {
        p[len++] = (char)('0' + n);
    } else if (n >= 10 && n < 100) {
        p[len++] = (char)('0' + n / 10);
        p[len++] = (char)('0' + n % 10);
    } else {
        len += num_format_i64(p + len, n);
    }
    p[len++] = '\r';
    p[len++] = '\n';
    return len;
}

static void add_header(struct buf *out, char kind, int64_t n)
{
    out->len += put_header(buf_reserve(out, HEADER_CHARS), kind, n);
}

static void add_line(struct buf *out, char kind, struct slice s)
{
    char *p = buf_reserve(out, s.n + 3);
    p[0] = kind;
    if (s.n)
        memcpy(p + 1, s.p, s.n);
    p[s.n + 1] = '\r';
    p[s.n + 2] = '\n';
    out->len += s.n + 3;
}

static void say_simple(struct reply *r, struct slice s)
{
    add_line(sink(r)->out, '+', s);
}

static void say_error(struct reply *r, struct slice s)
{
    struct buf *out = sink(r)->out;
    size_t start = out->len;
    add_line(out, '-', s);
    for (char *p = out->p + start, *end = out->p + out->len - 2; p < end; p++)
        if (*p == '\r' || *p == '\n')
            *p = ' ';
}

static void say_integer(struct reply *r, int64_t v)
{
    add_header(sink(r)->out, ':', v);
}

static void say_bulk(struct reply *r, struct slice s)
{
    struct buf *out = sink(r)->out;
    char *p = buf_reserve(out, HEADER_CHARS + s.n + 2);
    size_t n = put_header(p, '$', (int64_t)s.n);
    if (s.n)
        memcpy(p + n, s.p, s.n);
    n += s.n;
    p[n++] = '\r';
    p[n++] = '\n';
    out->len += n;
}

static void say_bulk_begin(struct reply *r, size_t total)
{
    struct buf *out = sink(r)->out;
    buf_reserve(out, HEADER_CHARS + total + 2);
    add_header(out, '$', (int64_t)total);
}

static void say_bulk_piece(struct reply *r, struct slice s)
{
    buf_add_slice(sink(r)->out, s);
}

static void say_bulk_end(struct reply *r)
{
    buf_add(sink(r)->out, "\r\n", 2);
}

static void say_null(struct reply *r)
{
    buf_add_slice(sink(r)->out, r->resp == 3 ? SLICE("_\r\n") : SLICE("$-1\r\n"));
}

static void say_null_array(struct reply *r)
{
    buf_add_slice(sink(r)->out, r->resp == 3 ? SLICE("_\r\n") : SLICE("*-1\r\n"));
}

static void say_number(struct reply *r, double v)
{
    char text[128];
    struct slice s = slice_of(text, num_format_double(text, v));
    if (r->resp == 3)
        add_line(sink(r)->out, ',', s);
    else
        say_bulk(r, s);
}

static void say_boolean(struct reply *r, bool v)
{
    if (r->resp == 3)
        buf_add_slice(sink(r)->out, v ? SLICE("#t\r\n") : SLICE("#f\r\n"));
    else
        say_integer(r, v);
}

static void say_verbatim(struct reply *r, const char format[3], struct slice s)
{
    if (r->resp != 3) {
        say_bulk(r, s);
        return;
    }
    struct buf *out = sink(r)->out;
    buf_reserve(out, HEADER_CHARS + 4 + s.n + 2);
    add_header(out, '=', (int64_t)s.n + 4);
    buf_add(out, format, 3);
    buf_add(out, ":", 1);
    buf_add_slice(out, s);
    buf_add(out, "\r\n", 2);
}

static void say_big_number(struct reply *r, struct slice digits)
{
    if (r->resp == 3)
        add_line(sink(r)->out, '(', digits);
    else
        say_bulk(r, digits);
}

static size_t aggregate_header(const struct reply *r, char *p, enum reply_kind kind, size_t n)
{
    static const char marks[] = {
        [REPLY_ARRAY] = '*', [REPLY_SET] = '~', [REPLY_MAP] = '%', [REPLY_PUSH] = '>'};
    if (r->resp == 3)
        return put_header(p, marks[kind], (int64_t)n);
    return put_header(p, '*', (int64_t)(kind == REPLY_MAP ? 2 * n : n));
}

static void say_aggregate(struct reply *r, enum reply_kind kind, size_t n)
{
    struct buf *out = sink(r)->out;
    out->len += aggregate_header(r, buf_reserve(out, HEADER_CHARS), kind, n);
}

static size_t say_mark(struct reply *r)
{
    return sink(r)->out->len;
}

/* The header goes in front of what has been said since, which moves by its length. */
static void say_end_deferred(struct reply *r, size_t mark, enum reply_kind kind, size_t n)
{
    struct buf *out = sink(r)->out;
    assert(mark <= out->len);
    char header[HEADER_CHARS];
    size_t len = aggregate_header(r, header, kind, n);
    buf_reserve(out, len);
    memmove(out->p + mark + len, out->p + mark, out->len - mark);
    memcpy(out->p + mark, header, len);
    out->len += len;
}

static void say_rewind(struct reply *r, size_t mark)
{
    assert(mark <= sink(r)->out->len);
    sink(r)->out->len = mark;
}

static struct reply *twin(const struct reply *r, struct buf *out)
{
    struct resp_reply *t = mem_zalloc(sizeof *t);
    resp_reply_init(t, out, r->resp);
    return &t->base;
}

static void end_twin(struct reply *r)
{
    mem_free(r);
}

static void say_made(struct reply *r, struct slice bytes)
{
    buf_add_slice(sink(r)->out, bytes);
}

static const struct reply_ops resp_ops = {
    .simple = say_simple,
    .error = say_error,
    .integer = say_integer,
    .bulk = say_bulk,
    .bulk_begin = say_bulk_begin,
    .bulk_piece = say_bulk_piece,
    .bulk_end = say_bulk_end,
    .null = say_null,
    .null_array = say_null_array,
    .number = say_number,
    .boolean = say_boolean,
    .verbatim = say_verbatim,
    .big_number = say_big_number,
    .aggregate = say_aggregate,
    .begin_deferred = say_mark,
    .end_deferred = say_end_deferred,
    .twin = twin,
    .end_twin = end_twin,
    .made = say_made,
    .mark = say_mark,
    .rewind = say_rewind,
};

void resp_reply_init(struct resp_reply *r, struct buf *out, int version)
{
    *r = (struct resp_reply){.base = {.ops = &resp_ops, .resp = version}, .out = out};
}
