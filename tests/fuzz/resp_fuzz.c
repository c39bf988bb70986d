/* The RESP parser: whatever the input, however it is cut into pieces, the commands found and the error at the
   end are the same, and no byte outside the input is read (every piece is a heap block of its exact size).

   The first byte chooses limits, the second how the input is cut; the rest is what a client sends. */

#include "fuzz.h"

#include "base/buf.h"
#include "proto/resp.h"

#define BYTEWISE_MAX 512 /* longer inputs are not also given byte by byte, which is quadratic */

struct run {
    const struct resp_limits *limits;
    struct slice input;
    size_t start, given; /* of the current command; what the parser has seen */
    struct resp_parser parser;
    struct buf transcript;
    bool ended;
};

static void note_command(struct buf *out, const struct slice *argv, int argc, size_t used)
{
    buf_addf(out, "command of %d, %zu bytes\n", argc, used);
    for (int i = 0; i < argc; i++) {
        buf_addf(out, "%zu:", argv[i].n);
        buf_add_slice(out, argv[i]);
        buf_add(out, "\n", 1);
    }
}

/* The parser gets bytes up to `given`, in a block of their own; takes every command that is whole. */
static void feed(struct run *r, size_t given)
{
    r->given = given;
    while (!r->ended) {
        size_t n = r->given - r->start;
        char *copy = malloc(n ? n : 1);
        CHECK_OR_DIE(copy);
        memcpy(copy, r->input.p + r->start, n);
        struct arena arena = {0};
        struct slice *argv = NULL;
        int argc = -1;
        size_t used = 0;
        enum resp_result res =
            resp_parse(&r->parser, slice_of(copy, n), r->limits, &arena, &argv, &argc, &used);
        if (res == RESP_COMMAND) {
            CHECK_OR_DIE(used > 0 && used <= n && argc >= 0);
            note_command(&r->transcript, argv, argc, used);
            r->start += used;
        } else if (res == RESP_ERROR) {
            buf_addf(&r->transcript, "error at %zu: %s\n", r->start, r->parser.error);
            r->ended = true;
        } else {
            CHECK_OR_DIE(r->parser.want > n);
        }
        arena_release(&arena);
        free(copy);
        if (res == RESP_MORE)
            break;
    }
}

static struct run start(const struct resp_limits *limits, struct slice input)
{
    struct run r = {.limits = limits, .input = input};
    resp_init(&r.parser);
    return r;
}

static void finish(struct run *r, const struct buf *prefetch)
{
    CHECK_OR_DIE(slice_eq(buf_slice(&r->transcript), buf_slice(prefetch)));
    resp_release(&r->parser);
    buf_release(&r->transcript);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct resp_limits limits = {
        .max_bulk = data[0] & 2 ? 1u << 20 : 20000,
        .max_args = data[0] & 4 ? 1 << 20 : 8,
        .max_inline = data[0] & 8 ? 1 << 16 : 40,
        .unauthenticated = data[0] & 1,
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
    resp_release(&whole.parser);
    buf_release(&whole.transcript);
    return 0;
}
