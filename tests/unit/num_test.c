/* Numbers: the expectations are what redis-server 7.0 answers to INCRBY, INCRBYFLOAT, ZADD and ZSCORE. */
#include "base/num.h"

#include <math.h>

#include "check.h"

static void parses_integers(void)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"-1", -1},
        {"10", 10},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t v = 77;
        check.context = good[i].text;
        CHECK(num_parse_i64(slice_str(good[i].text), &v));
        CHECK_EQ(v, good[i].value);
    }
}

static void refuses_other_integers(void)
{
    static const char *const bad[] = {"",
                                      "-",
                                      "-0",
                                      "+1",
                                      "01",
                                      "-01",
                                      "00",
                                      " 1",
                                      "1 ",
                                      "1.0",
                                      "0x1",
                                      "1e1",
                                      "--1",
                                      "a",
                                      "1a",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "184467440737095516150"};
    int64_t v = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check.context = bad[i];
        CHECK(!num_parse_i64(slice_str(bad[i]), &v));
    }
    CHECK(!num_parse_i64(slice_of("1\0", 2), &v));
    CHECK(!num_parse_i64(slice_of(NULL, 0), &v));
    CHECK_EQ(v, 77);
}

static void parses_unsigned(void)
{
    uint64_t v = 0;
    CHECK(num_parse_u64(SLICE("18446744073709551615"), &v) && v == UINT64_MAX);
    CHECK(num_parse_u64(SLICE("0"), &v) && v == 0);
    CHECK(!num_parse_u64(SLICE("18446744073709551616"), &v));
    CHECK(!num_parse_u64(SLICE("-1"), &v));
    CHECK(!num_parse_u64(SLICE("01"), &v));
}

static void formats_integers(void)
{
    static const int64_t values[] = {0, 1, -1, 9, 10, 99, 100, -100, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char out[NUM_I64_CHARS], want[32];
        size_t n = num_format_i64(out, values[i]);
        snprintf(want, sizeof want, "%" PRId64, values[i]);
        CHECK_SLICE(slice_of(out, n), slice_str(want));
    }
    char out[NUM_I64_CHARS];
    CHECK_SLICE(slice_of(out, num_format_u64(out, UINT64_MAX)), SLICE("18446744073709551615"));
}

static void doubles_print_as_in_redis(void)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"0", "0"},
        {"3", "3"},
        {"3.0", "3"},
        {"-.5e3", "-500"},
        {"5.", "5"},
        {"+1", "1"},
        {"0x10", "16"},
        {"1.5", "1.5"},
        {"0.1", "0.10000000000000001"},
        {"1e15", "1000000000000000"},
        {"1e16", "10000000000000000"},
        {"1e17", "1e+17"},
        {"-1e17", "-1e+17"},
        {"99999999999999984", "99999999999999984"},
        {"123456789012345678", "1.2345678901234568e+17"},
        {"1e20", "1e+20"},
        {"1e-5", "1.0000000000000001e-05"},
        {"1e-7", "9.9999999999999995e-08"},
        {"4.9e-324", "4.9406564584124654e-324"},
        {"1e-310", "9.9999999999999694e-311"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"inf", "inf"},
        {"+inf", "inf"},
        {"INF", "inf"},
        {"Infinity", "inf"},
        {"-inf", "-inf"},
        {"-0", "-0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v = 0;
        char out[128];
        check.context = cases[i].in;
        CHECK(num_parse_double(slice_str(cases[i].in), &v));
        CHECK_SLICE(slice_of(out, num_format_double(out, v)), slice_str(cases[i].out));
    }
    char out[128];
    CHECK_SLICE(slice_of(out, num_format_double(out, (double)NAN)), SLICE("nan"));
}

static void refuses_other_doubles(void)
{
    static const char *const bad[] = {"",    "nan", "-nan", "NAN",   "1e309", "-1e309", "1e-400",
                                      "0x",  "1e",  " 1",   "1 ",    "\t1",   "1_0",    "infin",
                                      "abc", ".",   "1,5",  "1.2.3", "--1"};
    double v = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check.context = bad[i];
        CHECK(!num_parse_double(slice_str(bad[i]), &v));
    }
    CHECK(!num_parse_double(slice_of("1\0", 2), &v));
    CHECK(v == 77);
}

static void long_doubles_add_up_as_in_redis(void)
{
    static const struct {
        const char *a, *b, *sum;
    } cases[] = {
        {"10.5", "0.1", "10.6"},
        {"0", "1e20", "100000000000000000000"},
        {"0", "1e-5", "0.00001"},
        {"0", "1e-18", "0"},
        {"3.0", "0", "3"},
        {"5e3", "200", "5200"},
        {"-0", "0", "0"},
        {"-0.0", "-0.0", "0"},
        {"0", "-1e-19", "0"},
        {"0", "3.14159265358979323846", "3.14159265358979324"},
        {"1e18", "0.1", "1000000000000000000.125"},
        {"0", "0x10", "16"},
        {"+1", "+1", "2"},
    };
    static char out[NUM_DOUBLE_CHARS];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long double a = 0, b = 0;
        check.context = cases[i].b;
        CHECK(num_parse_long_double(slice_str(cases[i].a), &a));
        CHECK(num_parse_long_double(slice_str(cases[i].b), &b));
        CHECK_SLICE(slice_of(out, num_format_long_double(out, a + b)), slice_str(cases[i].sum));
    }
}

static void long_doubles_have_limits(void)
{
    static char out[NUM_DOUBLE_CHARS], digits[NUM_DOUBLE_CHARS];
    long double v = 0;
    CHECK(num_parse_long_double(SLICE("-1e4932"), &v));
    CHECK_EQ(num_format_long_double(out, v), 4934);
    CHECK(!num_parse_long_double(SLICE("1e5000"), &v));
    CHECK(!num_parse_long_double(SLICE("1e-5000"), &v));
    CHECK(!num_parse_long_double(SLICE("nan"), &v));
    CHECK(num_parse_long_double(SLICE("inf"), &v) && isinf(v));
    memset(digits, '0', sizeof digits);
    CHECK(!num_parse_long_double(slice_of(digits, sizeof digits), &v));
    CHECK(num_parse_long_double(slice_of(digits, sizeof digits - 1), &v) && v == 0);
    CHECK_SLICE(slice_of(out, num_format_long_double(out, -(long double)INFINITY)), SLICE("-inf"));
}

static void parses_sizes(void)
{
    uint64_t v = 0;
    CHECK(num_parse_size(SLICE("512"), &v) && v == 512);
    CHECK(num_parse_size(SLICE("512b"), &v) && v == 512);
    CHECK(num_parse_size(SLICE("100k"), &v) && v == 100000);
    CHECK(num_parse_size(SLICE("100kb"), &v) && v == 102400);
    CHECK(num_parse_size(SLICE("64MB"), &v) && v == 64u << 20);
    CHECK(num_parse_size(SLICE("2g"), &v) && v == 2000000000u);
    CHECK(num_parse_size(SLICE("1Gb"), &v) && v == 1u << 30);
    CHECK(num_parse_size(SLICE("007"), &v) && v == 7);
    CHECK(!num_parse_size(SLICE("mb"), &v));
    CHECK(!num_parse_size(SLICE(""), &v));
    CHECK(!num_parse_size(SLICE("-1"), &v));
    CHECK(!num_parse_size(SLICE("1 mb"), &v));
    CHECK(!num_parse_size(SLICE("1tb"), &v));
    CHECK(!num_parse_size(SLICE("1.5gb"), &v));
    CHECK(!num_parse_size(SLICE("18446744073709551615gb"), &v));
}

static void parses_durations(void)
{
    uint64_t v = 0;
    CHECK(num_parse_duration(SLICE("250ms"), 1000, &v) && v == 250);
    CHECK(num_parse_duration(SLICE("5s"), 1, &v) && v == 5000);
    CHECK(num_parse_duration(SLICE("2m"), 1, &v) && v == 120000);
    CHECK(num_parse_duration(SLICE("1h"), 1, &v) && v == 3600000);
    CHECK(num_parse_duration(SLICE("1d"), 1, &v) && v == 86400000);
    CHECK(num_parse_duration(SLICE("7"), 1000, &v) && v == 7000);
    CHECK(num_parse_duration(SLICE("0"), 1000, &v) && v == 0);
    CHECK(!num_parse_duration(SLICE("07"), 1000, &v));
    CHECK(!num_parse_duration(SLICE("s"), 1000, &v));
    CHECK(!num_parse_duration(SLICE(""), 1000, &v));
    CHECK(!num_parse_duration(SLICE("5 s"), 1000, &v));
    CHECK(!num_parse_duration(SLICE("-5s"), 1000, &v));
    CHECK(!num_parse_duration(SLICE("18446744073709551615s"), 1000, &v));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(parses_integers);
    RUN(refuses_other_integers);
    RUN(parses_unsigned);
    RUN(formats_integers);
    RUN(doubles_print_as_in_redis);
    RUN(refuses_other_doubles);
    RUN(long_doubles_add_up_as_in_redis);
    RUN(long_doubles_have_limits);
    RUN(parses_sizes);
    RUN(parses_durations);
    return check_done();
}
