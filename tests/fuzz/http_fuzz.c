/* HTTP requests: whatever the input, however it is cut into pieces, the requests found and the refusal at the
   end are the same, and no byte outside the input is read. The first byte chooses limits, the second how the
   input is cut; the rest is what a client sends. (What requests mean is routes_fuzz.c.) */

#include "fuzz.h"

#include "base/buf.h"
#include "proto/http.h"

#define BYTEWISE_MAX 512 /* longer inputs are not also given byte by byte, which is quadratic */

struct run {
    const struct http_limits *limits;
    struct slice input;
    size_t start, given; /* of the current request; what the parser has seen */
    struct http_in parser;
    struct buf transcript;
    bool ended;
};

static void note(struct buf *out, const struct http_request *r, size_t used)
{
    bool sound;
    buf_addf(out, "%s of %zu bytes, keep %d, raw %d\n", http_method_str(r->method), used, r->keep_alive,
             http_prefers_raw(r->headers[HTTP_ACCEPT]));
    buf_add_slice(out, r->path);
    buf_add(out, "?", 1);
    buf_add_slice(out, r->query);
    for (int i = 0; i < HTTP_HEADERS; i++) {
        buf_addf(out, "\n%d:", i);
        buf_add_slice(out, r->headers[i]);
        bool has = http_tags_have(r->headers[i], 12, i == HTTP_IF_MATCH, &sound);
        CHECK_OR_DIE(!has || sound);
        buf_add_slice(out, http_media_type(r->headers[i]));
    }
    buf_addf(out, "\n%zu:", r->body.n);
    buf_add_slice(out, r->body);
    buf_add(out, "\n", 1);
}

/* The parser gets bytes up to `given`, in a block of their own; takes every request that is whole. */
static void feed(struct run *r, size_t given)
{
    r->given = given;
    while (!r->ended) {
        size_t n = r->given - r->start, used = 0;
        char *copy = malloc(n ? n : 1);
        CHECK_OR_DIE(copy);
        memcpy(copy, r->input.p + r->start, n);
        struct arena arena = {0};
        struct http_request request;
        enum http_result res = http_parse(&r->parser, slice_of(copy, n), r->limits, &arena, &request, &used);
        if (res == HTTP_WHOLE) {
            CHECK_OR_DIE(used > 0 && used <= n && request.body.n <= r->limits->max_body);
            note(&r->transcript, &request, used);
            r->start += used;
            r->ended = !request.keep_alive; /* what follows is nobody's */
        } else if (res == HTTP_BAD) {
            CHECK_OR_DIE(r->parser.refusal.status >= 400 && r->parser.refusal.code &&
                         r->parser.refusal.message);
            buf_addf(&r->transcript, "refused\n"); /* of two mistakes, the one that is seen first is told */
            r->ended = true;
        }
        arena_release(&arena);
        free(copy);
        if (res == HTTP_MORE)
            break;
    }
}

static struct run start(const struct http_limits *limits, struct slice input)
{
    struct run r = {.limits = limits, .input = input};
    http_init(&r.parser);
    return r;
}

static void finish(struct run *r, const struct buf *prefetch)
{
    CHECK_OR_DIE(slice_eq(buf_slice(&r->transcript), buf_slice(prefetch)));
    buf_release(&r->transcript);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct http_limits limits = {
        .max_uri = data[0] & 1 ? 1 << 14 : 16,
        .max_head = data[0] & 2 ? 1 << 15 : 128,
        .max_body = data[0] & 4 ? 1 << 20 : 20,
    };
    uint32_t cut = data[1];
    struct slice input = slice_of(data + 2, size - 2);

    struct run whole = start(&limits, input);
    feed(&whole, input.n);

    struct run pieces = start(&limits, input);
    for (size_t given = 0; given < input.n;) {
        cut = cut * 1664525 + 1013904223;
        size_t step = 1 + (cut >> 16) % (1 + (uint32_t)data[1]);
        given = input.n - given > step ? given + step : input.n;
        feed(&pieces, given);
    }
    finish(&pieces, &whole.transcript);

    if (input.n <= BYTEWISE_MAX) {
        struct run bytes = start(&limits, input);
        for (size_t given = 1; given <= input.n; given++)
            feed(&bytes, given);
        finish(&bytes, &whole.transcript);
    }
    buf_release(&whole.transcript);
    return 0;
}
