/* Replies as JSON. */
#include "check.h"
#include "proto/json_reply.h"

struct sink {
    struct buf out;
    struct json_reply reply;
};

static struct reply *open_sink(struct sink *s, bool base64)
{
    s->out = (struct buf){0};
    json_reply_init(&s->reply);
    json_reply_begin(&s->reply, &s->out, base64);
    return &s->reply.base;
}

static void expect(struct sink *s, const char *text)
{
    json_reply_end(&s->reply);
    CHECK_SLICE(buf_slice(&s->out), slice_str(text));
    buf_release(&s->out);
    json_reply_release(&s->reply);
}

#define SAYS(say, text)                                                                                      \
    do {                                                                                                     \
        struct sink s;                                                                                       \
        struct reply *r = open_sink(&s, false);                                                              \
        say;                                                                                                 \
        expect(&s, text);                                                                                    \
    } while (0)

static void scalars(void)
{
    SAYS(reply_ok(r), "\"OK\"");
    SAYS(reply_simple(r, "PONG"), "\"PONG\"");
    SAYS(reply_integer(r, -7), "-7");
    SAYS(reply_bulk(r, SLICE("a\"b\n\0")), "\"a\\\"b\\n\\u0000\"");
    SAYS(reply_bulk(r, SLICE("\xff")), "\"\xef\xbf\xbd\"");
    SAYS(reply_null(r), "null");
    SAYS(reply_null_array(r), "null");
    SAYS(reply_double(r, 1.5), "\"1.5\"");
    SAYS(reply_bool(r, true), "1");
    SAYS(reply_error(r, "ERR no"), "{\"error\":\"ERR no\"}");
    SAYS(r->ops->verbatim(r, "txt", SLICE("text")), "\"text\"");
    SAYS((r->ops->bulk_begin(r, 3), r->ops->bulk_piece(r, SLICE("\xe2\x82")),
          r->ops->bulk_piece(r, SLICE("\xac")), r->ops->bulk_end(r)),
         "\"\xe2\x82\xac\"");
}

static void arrays(void)
{
    SAYS(reply_array(r, 0), "[]");
    SAYS((reply_array(r, 2), reply_integer(r, 1), reply_null(r)), "[1,null]");
    SAYS((reply_map(r, 1), reply_bulk_str(r, "k"), reply_set(r, 0)), "[\"k\",[]]");
    SAYS((reply_array(r, 2), reply_array(r, 1), reply_array(r, 1), reply_integer(r, 1), reply_integer(r, 2)),
         "[[[1]],2]");
    SAYS((reply_array(r, 3), reply_array(r, 0), reply_array(r, 0), reply_array(r, 0)), "[[],[],[]]");
}

static void deferred(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, false);
    reply_array(r, 2);
    size_t outer = reply_begin_deferred(r);
    reply_integer(r, 1);
    size_t inner = reply_begin_deferred(r);
    reply_end_deferred(r, inner, REPLY_ARRAY, 0);
    reply_array(r, 1);
    reply_integer(r, 2);
    reply_end_deferred(r, outer, REPLY_ARRAY, 3);
    reply_integer(r, 3);
    expect(&s, "[[1,[],[2]],3]");
}

/* As the dispatcher does when a handler fails after it has begun to speak, alone and inside EXEC. */
static void rewinding(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, false);
    size_t mark = r->ops->mark(r);
    reply_array(r, 3);
    reply_integer(r, 1);
    r->ops->rewind(r, mark);
    reply_error(r, "ERR no");
    expect(&s, "{\"error\":\"ERR no\"}");

    r = open_sink(&s, false);
    reply_array(r, 3);
    mark = r->ops->mark(r);
    reply_array(r, 2);
    reply_array(r, 5);
    r->ops->rewind(r, mark);
    reply_integer(r, 1);
    mark = r->ops->mark(r);
    reply_array(r, 1);
    reply_integer(r, 9);
    r->ops->rewind(r, mark);
    reply_integer(r, 2);
    mark = r->ops->mark(r);
    reply_array(r, 1);
    reply_integer(r, 3);
    mark = r->ops->mark(r);
    r->ops->rewind(r, mark);
    expect(&s, "[1,2,[3]]");

    r = open_sink(&s, false);
    reply_array(r, 1);
    mark = r->ops->mark(r);
    reply_integer(r, 1);
    r->ops->rewind(r, mark);
    reply_integer(r, 2);
    expect(&s, "[2]");
}

static void base64(void)
{
    struct sink s;
    struct reply *r = open_sink(&s, true);
    reply_array(r, 5);
    reply_ok(r);
    reply_bulk(r, SLICE("OK"));
    reply_simple(r, "string");
    reply_integer(r, 1);
    reply_double(r, 2);
    expect(&s, "[\"OK\",\"T0s=\",\"c3RyaW5n\",1,\"Mg==\"]");
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(scalars);
    RUN(arrays);
    RUN(deferred);
    RUN(rewinding);
    RUN(base64);
    return check_done();
}
