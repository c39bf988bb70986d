/* The RESP parser: what it takes, what it refuses and with which words, in one piece and in many. */
#include <limits.h>

#include "base/buf.h"
#include "check.h"
#include "proto/resp.h"

static const struct resp_limits usual = {.max_bulk = 512u << 20, .max_args = INT_MAX, .max_inline = 64 << 10};

/* Everything the parser says about the input, when it comes `step` bytes at a time: "[SET|a|b]", "!ERR ...",
   or
   "..." when more is needed. */
static void transcribe(struct slice input, const struct resp_limits *limits, size_t step, struct buf *out)
{
    struct resp_parser p;
    resp_init(&p);
    size_t start = 0, given = 0;
    struct arena arena = {0};
    for (;;) {
        struct slice *argv;
        int argc;
        size_t used;
        enum resp_result res =
            resp_parse(&p, slice_of(input.p + start, given - start), limits, &arena, &argv, &argc, &used);
        if (res == RESP_ERROR) {
            buf_addf(out, "!%s", p.error);
            break;
        }
        if (res == RESP_MORE) {
            if (given == input.n) {
                if (start < given)
                    buf_add(out, "...", 3);
                break;
            }
            given = input.n - given > step ? given + step : input.n;
            continue;
        }
        start += used;
        buf_add(out, "[", 1);
        for (int i = 0; i < argc; i++) {
            if (i)
                buf_add(out, "|", 1);
            buf_add_slice(out, argv[i]);
        }
        buf_add(out, "]", 1);
    }
    arena_release(&arena);
    resp_release(&p);
}

static void expect_limits(struct slice input, struct slice prefetch, const struct resp_limits *limits)
{
    static const size_t steps[] = {SIZE_MAX, 1, 2, 3, 5, 7, 16};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (input.n > 1000 && steps[i] < 7)
            continue;
        struct buf out = {0};
        transcribe(input, limits, steps[i], &out);
        CHECK_SLICE(buf_slice(&out), prefetch);
        buf_release(&out);
    }
}

#define EXPECT(input, prefetch) expect_limits(SLICE(input), SLICE(prefetch), &usual)

static void arrays(void)
{
    EXPECT("*1\r\n$4\r\nPING\r\n", "[PING]");
    EXPECT("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n\r\n\0b\r\n", "[SET|a|\r\n\0b]");
    EXPECT("*2\r\n$0\r\n\r\n$0\r\n\r\n", "[|]");
    EXPECT("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "[PING][PING]");
    EXPECT("*0\r\n*-1\r\n*-7\r\n*1\r\n$4\r\nPING\r\n", "[][][][PING]");
    EXPECT("*1\r\n$4\r\nPIN", "...");
    EXPECT("*2147483647\r\n", "...");
    /* what follows a CR or an argument is not looked at */
    EXPECT("*1\rx$4\rxPINGxx", "[PING]");
}

static void array_errors(void)
{
    EXPECT("*abc\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*01\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*+1\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*2147483648\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*99999999999999999999\r\n", "!ERR Protocol error: invalid multibulk length");
    EXPECT("*1\r\nx\r\n", "!ERR Protocol error: expected '$', got 'x'");
    EXPECT("*1\r\n\r\n", "!ERR Protocol error: expected '$', got ' '");
    EXPECT("*1\r\n\0\r\n", "!ERR Protocol error: expected '$', got '\\x00'");
    EXPECT("*1\r\n$-1\r\n", "!ERR Protocol error: invalid bulk length");
    EXPECT("*1\r\n$04\r\n", "!ERR Protocol error: invalid bulk length");
    EXPECT("*1\r\n$4x\r\n", "!ERR Protocol error: invalid bulk length");
    EXPECT("*1\r\n$536870913\r\n", "!ERR Protocol error: invalid bulk length");
    EXPECT("PING\r\n*1\r\nx\r\nPING\r\n", "[PING]!ERR Protocol error: expected '$', got 'x'");
}

static void inlines(void)
{
    EXPECT("PING\r\n", "[PING]");
    EXPECT("PING\n", "[PING]");
    EXPECT("PING\r\r\n", "[PING]");
    EXPECT("\r\n\nPING\n", "[][][PING]");
    EXPECT("  set  a\tb \r\n", "[set|a|b]");
    EXPECT("ECHO \"a\\x41\\n\\t\\q\\\"b\"\r\n", "[ECHO|aA\n\tq\"b]");
    EXPECT("ECHO 'a\\'b\\x41' \"\"\r\n", "[ECHO|a'b\\x41|]");
    EXPECT("ECHO a\"b\" \\x41\r\n", "[ECHO|ab|\\x41]");
    EXPECT("ECHO \"\\x4\" \"\\x4g\"\r\n", "[ECHO|x4|x4g]");
    EXPECT("\vPING\f a\vb\r\n", "[PING\f|a\vb]");
    EXPECT("PI\0NG\r\n", "[PI\0NG]");
    EXPECT("\"PI\r\n", "!ERR Protocol error: unbalanced quotes in request");
    EXPECT("'PI\r\n", "!ERR Protocol error: unbalanced quotes in request");
    EXPECT("ECHO \"a\"b\r\n", "!ERR Protocol error: unbalanced quotes in request");
    EXPECT("ECHO \"a\\\r\n", "!ERR Protocol error: unbalanced quotes in request");
    EXPECT("\"PI", "...");
}

static struct buf repeated(const char *start, char c, size_t n)
{
    struct buf b = {0};
    buf_add(&b, start, strlen(start));
    memset(buf_reserve(&b, n), c, n);
    b.len += n;
    return b;
}

static void long_lines(void)
{
    struct buf b = repeated("", 'x', (64 << 10) + 1);
    expect_limits(buf_slice(&b), SLICE("!ERR Protocol error: too big inline request"), &usual);
    /* the line's end at the last place it may have */
    b.p[64 << 10] = '\n';
    struct buf prefetch = {0};
    buf_addf(&prefetch, "[%.*s]", 64 << 10, b.p);
    expect_limits(buf_slice(&b), buf_slice(&prefetch), &usual);
    buf_release(&prefetch);
    buf_release(&b);
    b = repeated("*", '1', 64 << 10);
    expect_limits(buf_slice(&b), SLICE("!ERR Protocol error: too big mbulk count string"), &usual);
    buf_release(&b);
    b = repeated("*1\r\n$", '1', 64 << 10);
    expect_limits(buf_slice(&b), SLICE("!ERR Protocol error: too big bulk count string"), &usual);
    buf_release(&b);
}

static void unauthenticated_clients(void)
{
    struct resp_limits limits = usual;
    limits.unauthenticated = true;
    expect_limits(SLICE("*10\r\n$16384\r\n"), SLICE("..."), &limits);
    expect_limits(SLICE("*11\r\n"), SLICE("!ERR Protocol error: unauthenticated multibulk length"), &limits);
    expect_limits(SLICE("*1\r\n$16385\r\n"), SLICE("!ERR Protocol error: unauthenticated bulk length"),
                  &limits);
}

/* A large argument announces itself, so that it can be read into its place. */
static void wants(void)
{
    struct resp_parser p;
    struct arena arena = {0};
    struct slice *argv;
    int argc;
    size_t used;
    resp_init(&p);
    struct slice data = SLICE("*2\r\n$4\r\nECHO\r\n$1000000\r\nabc");
    CHECK_EQ(resp_parse(&p, data, &usual, &arena, &argv, &argc, &used), RESP_MORE);
    CHECK_EQ(p.want, data.n - 3 + 1000000 + 2);
    /* begun again from its first byte */
    resp_reset(&p);
    CHECK_EQ(resp_parse(&p, SLICE("PING\r\n"), &usual, &arena, &argv, &argc, &used), RESP_COMMAND);
    CHECK_EQ(argc, 1);
    arena_release(&arena);
    resp_release(&p);
}

static void many_arguments(void)
{
    enum { N = 100000 };
    struct buf b = {0};
    buf_addf(&b, "*%d\r\n", N);
    for (int i = 0; i < N; i++)
        buf_add(&b, "$1\r\na\r\n", 7);
    struct resp_parser p;
    struct arena arena = {0};
    struct slice *argv;
    int argc = 0;
    size_t used = 0;
    resp_init(&p);
    CHECK_EQ(resp_parse(&p, buf_slice(&b), &usual, &arena, &argv, &argc, &used), RESP_COMMAND);
    CHECK_EQ(argc, N);
    CHECK_EQ(used, b.len);
    CHECK_SLICE(argv[N - 1], SLICE("a"));
    /* the room it took is given back */
    CHECK_EQ(p.cap, 0);
    arena_release(&arena);
    resp_release(&p);
    buf_release(&b);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(arrays);
    RUN(array_errors);
    RUN(inlines);
    RUN(long_lines);
    RUN(unauthenticated_clients);
    RUN(wants);
    RUN(many_arguments);
    return check_done();
}
