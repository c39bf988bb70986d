/* Globs: the expectations are what redis-server 7.0 answers to KEYS. */
#include "base/glob.h"

#include "base/clock.h"
#include "base/mem.h"
#include "check.h"

struct example {
    const char *pattern, *text;
    bool match;
};

static void check_all(const struct example *e, size_t n, bool ignore_case)
{
    for (size_t i = 0; i < n; i++) {
        char both[128];
        snprintf(both, sizeof both, "%s on %s", e[i].pattern, e[i].text);
        check.context = both;
        CHECK_EQ(glob_match(slice_str(e[i].pattern), slice_str(e[i].text), ignore_case), e[i].match);
        check.context = NULL;
    }
}
#define CHECK_ALL(examples, ignore_case)                                                                     \
    check_all(examples, sizeof examples / sizeof examples[0], ignore_case)

static void stars_and_marks(void)
{
    static const struct example e[] = {
        {"*", "a", true},       {"*", "", true},        {"**", "", false},       {"", "", true},
        {"", "a", false},       {"a", "", false},       {"a*", "a", true},       {"a**", "a", true},
        {"a*b", "ab", true},    {"a*b", "axxb", true},  {"a*b", "axxbc", false}, {"*a*b*", "xaxbx", true},
        {"?", "a", true},       {"?", "", false},       {"??", "a", false},      {"a?c", "abc", true},
        {"*?", "a", true},      {"?*", "a", true},      {"*aab", "aaaab", true}, {"*a", "ab", false},
        {"a*a*a", "aa", false}, {"a*a*a", "aaa", true},
    };
    CHECK_ALL(e, false);
}

static void classes(void)
{
    static const struct example e[] = {
        {"[abc]", "b", true},   {"[abc]", "d", false}, {"[a-c]", "b", true},      {"[c-a]", "b", true},
        {"[z-a]", "m", true},   {"[^a]", "b", true},   {"[^a]", "a", false},      {"[", "[", false},
        {"[", "a", false},      {"[]", "]", false},    {"[]a]", "a", false},      {"[^]", "a", true},
        {"[^", "a", true},      {"[^", "ab", false},   {"[ab", "a", true},        {"[ab", "c", false},
        {"[a-", "-", true},     {"[a-", "a", true},    {"[a-]", "a", true},       {"[a-]", "`", true},
        {"[\\]]", "]", true},   {"[a\\", "\\", true},  {"[\\a-c]", "-", true},    {"[\\a-c]", "b", false},
        {"[a-c]x", "bx", true}, {"[!a]", "!", true},   {"[^^]", "a", true},       {"[^^]", "^", false},
        {"[--0]", ".", true},   {"x[", "x", false},    {"[a]*[b]", "axxb", true},
    };
    CHECK_ALL(e, false);
}

static void escapes(void)
{
    static const struct example e[] = {
        {"\\*", "*", true},  {"\\*", "a", false},        {"\\", "\\", true},     {"a\\", "a\\", true},
        {"a\\", "a", false}, {"\\\\", "\\", true},       {"\\[a]", "[a]", true}, {"*\\", "xx\\", true},
        {"\\a", "a", true},  {"h\\?llo", "h?llo", true},
    };
    CHECK_ALL(e, false);
}

static void case_may_be_ignored(void)
{
    static const struct example e[] = {
        {"ABC", "abc", true},  {"a[B-D]", "AC", true}, {"[x]", "X", true},
        {"[\\x]", "X", false}, {"*Z", "az", true},
    };
    CHECK_ALL(e, true);
    CHECK(!glob_match(SLICE("ABC"), SLICE("abc"), false));
}

static void bytes_are_bytes(void)
{
    CHECK(glob_match(slice_of("a\0?", 3), slice_of("a\0b", 3), false));
    CHECK(!glob_match(slice_of("a\0b", 3), slice_of("a\0c", 3), false));
    /* Ranges compare signed bytes: from 0x01 to 0xff is from -1 to 1. */
    CHECK(glob_match(SLICE("[\x01-\xff]"), slice_of("\0", 1), false));
    CHECK(!glob_match(SLICE("[\x01-\xff]"), SLICE("a"), false));
    CHECK(glob_match(SLICE("[\x80-\xff]"), SLICE("\xc3"), false));
}

static void many_stars_are_cheap(void)
{
    size_t n = 100000;
    char *text = mem_alloc(n);
    memset(text, 'a', n);
    int64_t start = clock_mono_us();
    CHECK(!glob_match(SLICE("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"), slice_of(text, n), false));
    CHECK(clock_mono_us() - start < 5000000);
    mem_free(text);
}

static void prefix_of_a_pattern(void)
{
    CHECK_SLICE(glob_prefix(SLICE("user:*")), SLICE("user:"));
    CHECK_SLICE(glob_prefix(SLICE("user")), SLICE("user"));
    CHECK_SLICE(glob_prefix(SLICE("u?")), SLICE("u"));
    CHECK_SLICE(glob_prefix(SLICE("u[a]")), SLICE("u"));
    CHECK_SLICE(glob_prefix(SLICE("u\\*")), SLICE("u"));
    CHECK_SLICE(glob_prefix(slice_of("u\0v*", 4)), slice_of("u\0v", 3));
    CHECK_EQ(glob_prefix(SLICE("*")).n, 0);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(stars_and_marks);
    RUN(classes);
    RUN(escapes);
    RUN(case_may_be_ignored);
    RUN(bytes_are_bytes);
    RUN(many_stars_are_cheap);
    RUN(prefix_of_a_pattern);
    return check_done();
}
