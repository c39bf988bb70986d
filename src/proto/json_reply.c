#include "proto/json_reply.h"

#include <assert.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "proto/json.h"

static struct json_reply *sink(struct reply *r)
{
    return (struct json_reply *)r;
}

/* ---- arrays ---- */

static void close_whole(struct json_reply *j)
{
    while (j->depth && j->frames[j->depth - 1].left == 0) {
        buf_add(j->out, "]", 1);
        j->depth--;
    }
}

/* A value begins: says what comes before it. */
static void begin_value(struct json_reply *j)
{
    close_whole(j);
    if (j->depth == 0)
        return;
    struct json_frame *f = &j->frames[j->depth - 1];
    if (f->last != f->start)
        buf_add(j->out, ",", 1);
    f->last = j->out->len;
    if (f->left != SIZE_MAX)
        f->left--;
}

static void open_array(struct json_reply *j, size_t n)
{
    begin_value(j);
    size_t start = j->out->len;
    buf_add(j->out, "[", 1);
    VEC_PUSH(j->frames, j->depth, j->cap) = (struct json_frame){start, start, n};
}

/* ---- values ---- */

static void add_text(struct json_reply *j, struct slice s)
{
    begin_value(j);
    if (j->base64)
        json_add_base64(j->out, s);
    else
        json_add_lossy(j->out, s);
}

static void say_simple(struct reply *r, struct slice s)
{
    struct json_reply *j = sink(r);
    if (slice_eq(s, SLICE("OK"))) {
        begin_value(j);
        buf_add(j->out, "\"OK\"", 4);
        return;
    }
    add_text(j, s);
}

static void say_error(struct reply *r, struct slice s)
{
    struct json_reply *j = sink(r);
    begin_value(j);
    buf_add_slice(j->out, SLICE("{\"error\":"));
    json_add_lossy(j->out, s);
    buf_add(j->out, "}", 1);
}

static void say_integer(struct reply *r, int64_t v)
{
    begin_value(sink(r));
    json_add_i64(sink(r)->out, v);
}

static void say_bulk(struct reply *r, struct slice s)
{
    add_text(sink(r), s);
}

/* Pieces are gathered as they are and become a string at the end: a character may be cut in two. */
static void say_bulk_begin(struct reply *r, size_t total)
{
    struct json_reply *j = sink(r);
    begin_value(j);
    buf_reserve(j->out, total);
    j->piece = j->out->len;
}

static void say_bulk_piece(struct reply *r, struct slice s)
{
    buf_add_slice(sink(r)->out, s);
}

static void say_bulk_end(struct reply *r)
{
    struct json_reply *j = sink(r);
    struct buf raw = {0};
    buf_add(&raw, j->out->p + j->piece, j->out->len - j->piece);
    j->out->len = j->piece;
    if (j->base64)
        json_add_base64(j->out, buf_slice(&raw));
    else
        json_add_lossy(j->out, buf_slice(&raw));
    buf_release(&raw);
}

static void say_null(struct reply *r)
{
    begin_value(sink(r));
    buf_add(sink(r)->out, "null", 4);
}

static void say_number(struct reply *r, double v)
{
    char text[128];
    add_text(sink(r), slice_of(text, num_format_double(text, v)));
}

static void say_boolean(struct reply *r, bool v)
{
    say_integer(r, v);
}

static void say_verbatim(struct reply *r, const char format[3], struct slice s)
{
    (void)format;
    add_text(sink(r), s);
}

static void say_aggregate(struct reply *r, enum reply_kind kind, size_t n)
{
    open_array(sink(r), kind == REPLY_MAP ? 2 * n : n);
}

static size_t say_begin_deferred(struct reply *r)
{
    open_array(sink(r), SIZE_MAX);
    return sink(r)->out->len;
}

static void say_end_deferred(struct reply *r, size_t mark, enum reply_kind kind, size_t n)
{
    struct json_reply *j = sink(r);
    (void)mark, (void)kind, (void)n;
    close_whole(j);
    assert(j->depth && j->frames[j->depth - 1].left == SIZE_MAX);
    j->frames[j->depth - 1].left = 0;
}

static size_t say_mark(struct reply *r)
{
    close_whole(sink(r));
    return sink(r)->out->len;
}

/* What is taken back is at most one value of the array that was open at the mark: a command's whole reply. */
static void say_rewind(struct reply *r, size_t mark)
{
    struct json_reply *j = sink(r);
    assert(mark <= j->out->len);
    while (j->depth && j->frames[j->depth - 1].start >= mark)
        j->depth--;
    if (j->depth) {
        struct json_frame *f = &j->frames[j->depth - 1];
        if (f->last >= mark && f->last != f->start) {
            f->left += f->left != SIZE_MAX;
            f->last = mark == f->start + 1 ? f->start : mark - 1;
        }
    }
    j->out->len = mark;
}

/* Errors are for who asked, and are not said here: a twin needs none of what HTTP does with them. */
static struct reply *twin(const struct reply *r, struct buf *out)
{
    struct json_reply *t = mem_zalloc(sizeof *t);
    json_reply_init(t);
    json_reply_begin(t, out, ((const struct json_reply *)r)->base64);
    return &t->base;
}

static void end_twin(struct reply *r)
{
    close_whole(sink(r)); /* one that was not finished is of no use */
    json_reply_release(sink(r));
    mem_free(r);
}

static void say_made(struct reply *r, struct slice bytes)
{
    begin_value(sink(r));
    buf_add_slice(sink(r)->out, bytes);
}

const struct reply_ops json_reply_ops = {
    .simple = say_simple,
    .error = say_error,
    .integer = say_integer,
    .bulk = say_bulk,
    .bulk_begin = say_bulk_begin,
    .bulk_piece = say_bulk_piece,
    .bulk_end = say_bulk_end,
    .null = say_null,
    .null_array = say_null,
    .number = say_number,
    .boolean = say_boolean,
    .verbatim = say_verbatim,
    .big_number = say_bulk,
    .aggregate = say_aggregate,
    .begin_deferred = say_begin_deferred,
    .end_deferred = say_end_deferred,
    .twin = twin,
    .end_twin = end_twin,
    .made = say_made,
    .mark = say_mark,
    .rewind = say_rewind,
};

void json_reply_init(struct json_reply *r)
{
    *r = (struct json_reply){.base = {.ops = &json_reply_ops, .resp = 2}};
}

void json_reply_release(struct json_reply *r)
{
    mem_free(r->frames);
    r->frames = NULL;
    r->depth = r->cap = 0;
}

void json_reply_begin(struct json_reply *r, struct buf *out, bool base64)
{
    assert(r->depth == 0);
    r->out = out;
    r->base64 = base64;
}

void json_reply_drop(struct json_reply *r)
{
    r->depth = 0;
}

void json_reply_end(struct json_reply *r)
{
    close_whole(r);
    assert(r->depth == 0);
}
