/* Replies as RESP2 and RESP3 bytes. */
#include <math.h>

#include "check.h"
#include "proto/resp_reply.h"

struct sink {
    struct buf out;
    struct resp_reply reply;
};

static struct reply *open_sink(struct sink *s, int version)
{
    s->out = (struct buf){0};
    resp_reply_init(&s->reply, &s->out, version);
    return &s->reply.base;
}

static void expect(struct sink *s, struct slice bytes)
{
    CHECK_SLICE(buf_slice(&s->out), bytes);
    buf_release(&s->out);
}

/* Says something in both versions and compares the bytes. */
#define BOTH(say, resp2, resp3)                                                                              \
    do {                                                                                                     \
        struct sink s;                                                                                       \
        struct reply *r = open_sink(&s, 2);                                                                  \
        say;                                                                                                 \
        expect(&s, SLICE(resp2));                                                                            \
        r = open_sink(&s, 3);                                                                                \
        say;                                                                                                 \
        expect(&s, SLICE(resp3));                                                                            \
    } while (0)

static void scalars(void)
{
    BOTH(reply_ok(r), "+OK\r\n", "+OK\r\n");
    BOTH(reply_simple(r, ""), "+\r\n", "+\r\n");
    BOTH(reply_integer(r, 0), ":0\r\n", ":0\r\n");
    BOTH(reply_integer(r, 42), ":42\r\n", ":42\r\n");
    BOTH(reply_integer(r, 100), ":100\r\n", ":100\r\n");
    BOTH(reply_integer(r, -1), ":-1\r\n", ":-1\r\n");
    BOTH(reply_integer(r, INT64_MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
    BOTH(reply_bulk(r, SLICE("")), "$0\r\n\r\n", "$0\r\n\r\n");
    BOTH(reply_bulk(r, SLICE("a\0\r\nb")), "$5\r\na\0\r\nb\r\n", "$5\r\na\0\r\nb\r\n");
    BOTH(reply_bulk_i64(r, -12), "$3\r\n-12\r\n", "$3\r\n-12\r\n");
    BOTH(reply_null(r), "$-1\r\n", "_\r\n");
    BOTH(reply_null_array(r), "*-1\r\n", "_\r\n");
    BOTH(reply_bool(r, true), ":1\r\n", "#t\r\n");
    BOTH(reply_bool(r, false), ":0\r\n", "#f\r\n");
    BOTH(reply_double(r, 1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
    BOTH(reply_double(r, 3), "$1\r\n3\r\n", ",3\r\n");
    BOTH(reply_double(r, (double)INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
    BOTH(reply_double(r, -(double)INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    BOTH(r->ops->verbatim(r, "txt", SLICE("hi")), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
    BOTH(r->ops->big_number(r, SLICE("123")), "$3\r\n123\r\n", "(123\r\n");
}

static void aggregates(void)
{
    BOTH(reply_array(r, 0), "*0\r\n", "*0\r\n");
    BOTH(reply_array(r, 123456), "*123456\r\n", "*123456\r\n");
    BOTH(reply_set(r, 2), "*2\r\n", "~2\r\n");
    BOTH(reply_map(r, 2), "*4\r\n", "%2\r\n");
    BOTH(r->ops->aggregate(r, REPLY_PUSH, 3), "*3\r\n", ">3\r\n");
}

static void deferred(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, 3);
    reply_integer(r, 1);
    size_t outer = reply_begin_deferred(r);
    reply_bulk_str(r, "a");
    size_t inner = reply_begin_deferred(r);
    for (int i = 0; i < 12; i++)
        reply_integer(r, i % 10);
    reply_end_deferred(r, inner, REPLY_SET, 12);
    reply_end_deferred(r, outer, REPLY_MAP, 1);
    reply_integer(r, 2);
    expect(
        &s,
        SLICE(":1\r\n%1\r\n$1\r\na\r\n~12\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:0"
              "\r\n:1\r\n:2\r\n"));
}

static void pieces_and_rewind(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, 2);
    r->ops->bulk_begin(r, 6);
    r->ops->bulk_piece(r, SLICE("abc"));
    r->ops->bulk_piece(r, SLICE(""));
    r->ops->bulk_piece(r, SLICE("def"));
    r->ops->bulk_end(r);
    size_t mark = r->ops->mark(r);
    reply_ok(r);
    r->ops->rewind(r, mark);
    reply_null(r);
    expect(&s, SLICE("$6\r\nabcdef\r\n$-1\r\n"));
}

static void errors(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, 2);
    reply_error(r, "ERR a\r\nb");
    CHECK_STR(r->code, "ERR");
    reply_errorf(r, "WRONGTYPE %s %d", "x", 1);
    CHECK_STR(r->code, "WRONGTYPE");
    CHECK_EQ(r->errors, 2);
    expect(&s, SLICE("-ERR a  b\r\n-WRONGTYPE x 1\r\n"));
    r = open_sink(&s, 2);
    reply_errorf(r, "ERR %01000d", 7); /* longer than any room on the stack */
    CHECK_EQ(s.out.len, 1 + 4 + 1000 + 2);
    CHECK_SLICE(slice_of(s.out.p + s.out.len - 4, 4), SLICE("07\r\n"));
    buf_release(&s.out);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(scalars);
    RUN(aggregates);
    RUN(deferred);
    RUN(pieces_and_rewind);
    RUN(errors);
    return check_done();
}
