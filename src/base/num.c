/* Numbers as Redis reads and prints them. The C library does the floating point: Redis does too, and its
   results are what clients compare with. */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

bool num_parse_u64(struct slice s, uint64_t *ret)
{
    if (s.n == 0 || s.n > 20 || (s.p[0] == '0' && s.n > 1))
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || v > UINT64_MAX / 10 || v * 10 > UINT64_MAX - digit)
            return false;
        v = v * 10 + digit;
    }
    *ret = v;
    return true;
}

bool num_parse_i64(struct slice s, int64_t *ret)
{
    bool negative = s.n && s.p[0] == '-';
    uint64_t v;
    if (!num_parse_u64(negative ? slice_of(s.p + 1, s.n - 1) : s, &v))
        return false;
    if (negative) {
        if (v == 0 || v > (uint64_t)INT64_MAX + 1)
            return false;
        *ret = (int64_t)(0 - v);
    } else {
        if (v > INT64_MAX)
            return false;
        *ret = (int64_t)v;
    }
    return true;
}

/* Overflow, and underflow to nothing, are no numbers; a denormal is one although errno says ERANGE. */
static bool out_of_range(long double v)
{
    return errno == ERANGE && (isinf(v) || fpclassify(v) == FP_ZERO);
}

static bool parse_floating(struct slice s, bool wide, long double *ret)
{
    /* strtod needs a NUL behind the number. Few are long. */
    char small[256];
    if (s.n == 0 || isspace((unsigned char)s.p[0]))
        return false;
    char *text = s.n < sizeof small ? small : mem_alloc(s.n + 1);
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end;
    errno = 0;
    long double v = wide ? strtold(text, &end) : (long double)strtod(text, &end);
    bool ok = (size_t)(end - text) == s.n && !out_of_range(v) && !isnan(v);
    if (text != small)
        mem_free(text);
    if (ok)
        *ret = v;
    return ok;
}

bool num_parse_double(struct slice s, double *ret)
{
    long double v;
    if (!parse_floating(s, false, &v))
        return false;
    *ret = (double)v;
    return true;
}

bool num_parse_long_double(struct slice s, long double *ret)
{
    /* Redis reads into a buffer of this size and refuses what does not fit. */
    return s.n < NUM_DOUBLE_CHARS && parse_floating(s, true, ret);
}

static size_t put_digits(char *out, uint64_t v)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

size_t num_format_u64(char out[NUM_I64_CHARS], uint64_t v)
{
    return put_digits(out, v);
}

size_t num_format_i64(char out[NUM_I64_CHARS], int64_t v)
{
    if (v >= 0)
        return put_digits(out, (uint64_t)v);
    out[0] = '-';
    return 1 + put_digits(out + 1, 0 - (uint64_t)v);
}

/* The bytes of word, without its NUL. */
static size_t put(char *out, const char *word)
{
    size_t n = strlen(word);
    memcpy(out, word, n);
    return n;
}

size_t num_format_double(char out[128], double v)
{
    if (isnan(v))
        return put(out, signbit(v) ? "-nan" : "nan");
    if (isinf(v))
        return put(out, v > 0 ? "inf" : "-inf");
    /* Whole numbers up to 10^17 look the same either way, and printing an integer is much cheaper. */
    if (v > -1e17 && v < 1e17 && v == (double)(int64_t)v && !(v == 0 && signbit(v)))
        return num_format_i64(out, (int64_t)v);
    return (size_t)snprintf(out, 128, "%.17g", v);
}

size_t num_format_long_double(char out[NUM_DOUBLE_CHARS], long double v)
{
    if (isnan(v))
        return put(out, "nan");
    if (isinf(v))
        return put(out, v > 0 ? "inf" : "-inf");
    /* Enough digits for what a person typed, few enough to hide the binary rounding: 10.5 + 0.1 is 10.6. */
    size_t n = (size_t)snprintf(out, NUM_DOUBLE_CHARS, "%.17Lf", v);
    while (out[n - 1] == '0')
        n--;
    if (out[n - 1] == '.')
        n--;
    if (n == 2 && out[0] == '-' && out[1] == '0') {
        out[0] = '0';
        n = 1;
    }
    return n;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* digits, then one of the units (the table ends with a NULL name, whose factor is that of a bare number). */
static bool parse_with_unit(struct slice s, const struct unit *units, uint64_t *ret)
{
    size_t digits = 0;
    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    struct slice suffix = {s.p + digits, s.n - digits};
    uint64_t v;
    while (digits > 1 && s.p[0] == '0') {
        s.p++;
        digits--;
    }
    if (!num_parse_u64(slice_of(s.p, digits), &v))
        return false;
    while (units->name && !slice_is(suffix, units->name))
        units++;
    if (!units->name && suffix.n)
        return false;
    if (v > UINT64_MAX / units->factor)
        return false;
    *ret = v * units->factor;
    return true;
}

bool num_parse_size(struct slice s, uint64_t *ret)
{
    static const struct unit units[] = {
        {"b", 1},         {"k", 1000},       {"kb", 1u << 10}, {"m", 1000000},
        {"mb", 1u << 20}, {"g", 1000000000}, {"gb", 1u << 30}, {NULL, 1},
    };
    return parse_with_unit(s, units, ret);
}

bool num_parse_duration(struct slice s, uint64_t unit_ms, uint64_t *ret_ms)
{
    /* Redis takes no leading zeros where it expects a plain number. */
    if (s.n > 1 && s.p[0] == '0' && s.p[1] >= '0' && s.p[1] <= '9')
        return false;
    const struct unit units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, unit_ms},
    };
    return parse_with_unit(s, units, ret_ms);
}
