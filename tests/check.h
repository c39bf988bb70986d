/* A small harness for tests in C. A program is a list of named tests:

       static void rejects_nan(void) { double d; CHECK(!num_parse_double(SLICE("nan"), &d)); }
       int main(void) { RUN(rejects_nan); return check_done(); }

   A failed check prints where and what and the test goes on; REQUIRE leaves the test (a void function). With
   arguments, only tests whose name contains one of them run: CHECK_MAIN(argc, argv) first. The last line
   counts the tests. */
#ifndef LARDER_TESTS_CHECK_H
#define LARDER_TESTS_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "base/status.h"

static struct {
    int passed, failed;
    int checks_failed; /* in the running test */
    int argc;
    char **argv;
    const char *context; /* set by a test that loops, printed with a failure */
} check;

#define CHECK_MAIN(c, v) (check.argc = (c), check.argv = (v))
#define RUN(test)        check_run(#test, test)

#define CHECK(cond) ((void)check_that((cond), __FILE__, __LINE__, #cond))
#define FAIL(why)   ((void)check_that(false, __FILE__, __LINE__, (why)))
#define REQUIRE(cond)                                                                                        \
    do {                                                                                                     \
        if (!check_that((cond), __FILE__, __LINE__, #cond))                                                  \
            return;                                                                                          \
    } while (0)
#define CHECK_EQ(a, b)    ((void)check_ints((intmax_t)(a), (intmax_t)(b), __FILE__, __LINE__, #a " == " #b))
#define CHECK_STR(a, b)   ((void)check_slices(slice_str(a), slice_str(b), __FILE__, __LINE__, #a " == " #b))
#define CHECK_SLICE(a, b) ((void)check_slices((a), (b), __FILE__, __LINE__, #a " == " #b))
#define CHECK_OK(st, err) ((void)check_ok((st), (err), __FILE__, __LINE__, #st))
#define REQUIRE_OK(st, err)                                                                                  \
    do {                                                                                                     \
        if (!check_ok((st), (err), __FILE__, __LINE__, #st))                                                 \
            return;                                                                                          \
    } while (0)

static inline bool check_that(bool ok, const char *file, int line, const char *what)
{
    if (!ok) {
        check.checks_failed++;
        printf("%s:%d: failed: %s%s%s\n", file, line, what, check.context ? "; with " : "",
               check.context ? check.context : "");
    }
    return ok;
}

static inline bool check_ints(intmax_t a, intmax_t b, const char *file, int line, const char *what)
{
    bool ok = check_that(a == b, file, line, what);
    if (!ok)
        printf("    %" PRIdMAX " is not %" PRIdMAX "\n", a, b);
    return ok;
}

static inline void check_print(struct slice s)
{
    size_t n = s.n < 200 ? s.n : 200;
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (s.p[i] < ' ' || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] == 127)
            printf("\\x%02x", (unsigned)(unsigned char)s.p[i]);
        else
            putchar(s.p[i]);
    }
    printf("\"%s", n < s.n ? "..." : "");
}

static inline bool check_slices(struct slice a, struct slice b, const char *file, int line, const char *what)
{
    bool ok = check_that(slice_eq(a, b), file, line, what);
    if (!ok) {
        printf("    ");
        check_print(a);
        printf(" is not ");
        check_print(b);
        putchar('\n');
    }
    return ok;
}

static inline bool check_ok(enum status st, const struct error *err, const char *file, int line,
                            const char *what)
{
    bool ok = check_that(st == ST_OK, file, line, what);
    if (!ok)
        printf("    %s: %s\n", status_name(st), err ? err->text : "");
    return ok;
}

static inline void check_run(const char *name, void (*test)(void))
{
    bool wanted = check.argc <= 1;
    for (int i = 1; i < check.argc; i++)
        wanted = wanted || strstr(name, check.argv[i]);
    if (!wanted)
        return;
    check.checks_failed = 0;
    check.context = NULL;
    test();
    if (check.checks_failed) {
        check.failed++;
        printf("FAILED %s\n", name);
    } else {
        check.passed++;
    }
    fflush(stdout);
}

/* The exit code of the program. */
static inline int check_done(void)
{
    printf("%d passed, %d failed\n", check.passed, check.failed);
    return check.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
