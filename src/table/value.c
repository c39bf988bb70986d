#include "table/value.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "table/timestamp.h"

/* ---- types ---- */

static const struct {
    const char *name;
    enum value_kind kind;
} types[COLUMN_TYPES] = {
    [COLUMN_INTEGER] = {"INTEGER", VALUE_INT},  [COLUMN_REAL] = {"REAL", VALUE_REAL},
    [COLUMN_TEXT] = {"TEXT", VALUE_TEXT},       [COLUMN_BLOB] = {"BLOB", VALUE_BLOB},
    [COLUMN_BOOLEAN] = {"BOOLEAN", VALUE_BOOL}, [COLUMN_TIMESTAMP] = {"TIMESTAMP", VALUE_INT},
    [COLUMN_JSON] = {"JSON", VALUE_TEXT},
};

static const struct {
    const char *name;
    enum column_type type;
} aliases[] = {
    {"INT", COLUMN_INTEGER},     {"BIGINT", COLUMN_INTEGER},     {"SMALLINT", COLUMN_INTEGER},
    {"TINYINT", COLUMN_INTEGER}, {"INT2", COLUMN_INTEGER},       {"INT4", COLUMN_INTEGER},
    {"INT8", COLUMN_INTEGER},    {"FLOAT", COLUMN_REAL},         {"DOUBLE", COLUMN_REAL},
    {"FLOAT8", COLUMN_REAL},     {"STRING", COLUMN_TEXT},        {"VARCHAR", COLUMN_TEXT},
    {"CHAR", COLUMN_TEXT},       {"BYTEA", COLUMN_BLOB},         {"VARBINARY", COLUMN_BLOB},
    {"BOOL", COLUMN_BOOLEAN},    {"DATETIME", COLUMN_TIMESTAMP}, {"TIMESTAMPTZ", COLUMN_TIMESTAMP},
    {"JSONB", COLUMN_JSON},
};

const char *column_type_name(enum column_type t)
{
    return types[t].name;
}

bool column_type_find(struct slice name, enum column_type *ret)
{
    for (size_t i = 0; i < COLUMN_TYPES; i++)
        if (slice_is(name, types[i].name)) {
            *ret = (enum column_type)i;
            return true;
        }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (slice_is(name, aliases[i].name)) {
            *ret = aliases[i].type;
            return true;
        }
    return false;
}

enum value_kind column_kind(enum column_type t)
{
    return types[t].kind;
}

/* ---- texts ---- */

static bool bad(struct fault *fault, enum column_type t, struct slice column, struct slice text,
                const char *why)
{
    return fault_set(fault, FAULT_BAD_TYPE, "column %.*s: '%.*s%s' is no %s%s%s", FAULT_CUT(column),
                     FAULT_CUT(text), text.n > 80 ? "..." : "", types[t].name, why ? ": " : "",
                     why ? why : "");
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t skip_digits(struct slice s, size_t i)
{
    while (i < s.n && is_digit(s.p[i]))
        i++;
    return i;
}

/* Digits with a sign before them or not, zeros in front allowed. */
static bool parse_integer(struct slice s, int64_t *ret, const char **ret_why)
{
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    if (i == s.n || skip_digits(s, i) != s.n)
        return false;
    bool negative = s.p[0] == '-';
    uint64_t v;
    while (i + 1 < s.n && s.p[i] == '0')
        i++;
    if (!num_parse_u64(slice_of(s.p + i, s.n - i), &v) || v > (uint64_t)INT64_MAX + negative) {
        *ret_why = "it has more than 64 bits";
        return false;
    }
    *ret = (int64_t)(negative ? 0 - v : v);
    return true;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit before the exponent. */
static bool is_decimal(struct slice s)
{
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
    size_t whole = skip_digits(s, i), digits = whole - i;
    i = whole;
    if (i < s.n && s.p[i] == '.') {
        size_t end = skip_digits(s, i + 1);
        digits += end - i - 1;
        i = end;
    }
    if (!digits)
        return false;
    if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        i++;
        if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
            i++;
        size_t end = skip_digits(s, i);
        if (end == i)
            return false;
        i = end;
    }
    return i == s.n;
}

static bool parse_real(struct slice s, double *ret, const char **ret_why)
{
    double d;
    if (!is_decimal(s))
        return false;
    if (!num_parse_double(s, &d) || isinf(d)) {
        *ret_why = "it is out of range";
        return false;
    }
    *ret = d == 0 ? 0.0 : d;
    return true;
}

static bool parse_boolean(struct slice s, int64_t *ret)
{
    static const char *const words[2][4] = {{"false", "0", "f", "no"}, {"true", "1", "t", "yes"}};
    for (int i = 0; i < 8; i++)
        if (slice_is(s, words[i & 1][i >> 1])) {
            *ret = i & 1;
            return true;
        }
    return false;
}

static bool check_text(struct slice s, const char **ret_why)
{
    for (size_t i = 0; i < s.n;) {
        if ((signed char)s.p[i] > 0) { /* most are ASCII */
            i++;
            continue;
        }
        size_t n = utf8_length(s.p + i, s.n - i);
        *ret_why = n ? "it has a NUL byte" : "it is not UTF-8";
        if (n == 0 || s.p[i] == '\0')
            return false;
        i += n;
    }
    return true;
}

/* \u0000 in a document that has been checked: behind a backslash that is not itself escaped. */
static bool has_nul(struct slice s)
{
    for (size_t i = 0; i + 1 < s.n; i++) {
        if (s.p[i] != '\\')
            continue;
        if (s.p[i + 1] == 'u' && s.n - i >= 6 && memcmp(s.p + i + 2, "0000", 4) == 0)
            return true;
        i++;
    }
    return false;
}

static bool parse_json(struct slice s, struct slice *ret, const char **ret_why)
{
    struct json j;
    size_t at;
    if (!json_check(s, &j, ret_why, &at))
        return false;
    *ret_why = "\\u0000 cannot be kept";
    if (has_nul(j.text))
        return false;
    *ret = j.text;
    return true;
}

static bool parse_timestamp(struct slice s, int64_t *ret, const char **ret_why)
{
    if (parse_integer(s, ret, ret_why)) {
        *ret_why = "it is out of range";
        return *ret >= TIMESTAMP_MIN && *ret <= TIMESTAMP_MAX;
    }
    return !*ret_why && timestamp_parse(s, ret, ret_why);
}

bool value_parse(enum column_type t, struct slice column, struct slice text, struct arena *arena,
                 struct value *ret, struct fault *fault)
{
    (void)arena;
    struct value v = {.kind = types[t].kind, .s = text};
    const char *why = NULL;
    bool ok = true;
    switch (t) {
    case COLUMN_INTEGER:
        ok = parse_integer(text, &v.i, &why);
        break;
    case COLUMN_REAL:
        ok = parse_real(text, &v.d, &why);
        break;
    case COLUMN_TEXT:
        ok = check_text(text, &why);
        break;
    case COLUMN_BLOB:
        break;
    case COLUMN_BOOLEAN:
        ok = parse_boolean(text, &v.i);
        break;
    case COLUMN_TIMESTAMP:
        ok = parse_timestamp(text, &v.i, &why);
        break;
    case COLUMN_JSON:
        ok = parse_json(text, &v.s, &why);
        if (ok && slice_eq(v.s, SLICE("null")))
            v.kind = VALUE_NULL;
        break;
    }
    if (!ok)
        return bad(fault, t, column, text, why);
    *ret = v;
    return true;
}

/* ---- conversion ---- */

/* 2^63 is the first double that is too large. */
static bool whole(double d, int64_t *ret)
{
    if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0) || d != floor(d))
        return false;
    *ret = (int64_t)d;
    return true;
}

/* A number as one that an INTEGER, a BOOLEAN or a TIMESTAMP has. */
static bool to_integer(enum column_type t, const struct value *v, int64_t *ret)
{
    if (v->kind == VALUE_BOOL && t == COLUMN_TIMESTAMP)
        return false;
    if (v->kind == VALUE_REAL ? !whole(v->d, ret) : v->kind == VALUE_TEXT || v->kind == VALUE_BLOB)
        return false;
    if (v->kind != VALUE_REAL)
        *ret = v->i;
    if (t == COLUMN_BOOLEAN)
        return *ret == 0 || *ret == 1;
    return t == COLUMN_INTEGER || (*ret >= TIMESTAMP_MIN && *ret <= TIMESTAMP_MAX);
}

static bool to_real(const struct value *v, double *ret)
{
    int64_t back = 0;
    if (v->kind == VALUE_REAL) {
        *ret = v->d == 0 ? 0.0 : v->d;
        return isfinite(v->d);
    }
    if (v->kind != VALUE_INT)
        return false;
    *ret = (double)v->i;
    return whole(*ret, &back) && back == v->i;
}

/* A number as text, in the arena. */
static bool to_text(const struct value *v, bool json, struct arena *arena, struct slice *ret)
{
    char number[VALUE_REAL_CHARS];
    if (v->kind == VALUE_BOOL && json) {
        *ret = v->i ? SLICE("true") : SLICE("false");
        return true;
    }
    if (v->kind == VALUE_INT)
        *ret = arena_copy(arena, slice_of(number, num_format_i64(number, v->i)));
    else if (v->kind == VALUE_REAL && isfinite(v->d))
        *ret = arena_copy(arena, slice_of(number, value_print_real(number, v->d)));
    else
        return false;
    return true;
}

static const char *kind_name(enum value_kind k)
{
    static const char *const names[] = {"NULL", "an integer", "a number", "text", "a blob", "a boolean"};
    return names[k];
}

bool value_convert(enum column_type t, struct slice column, const struct value *v, struct arena *arena,
                   struct value *ret, struct fault *fault)
{
    if (v->kind == VALUE_NULL) {
        *ret = *v;
        return true;
    }
    if (v->kind == VALUE_TEXT || (v->kind == VALUE_BLOB && (t == COLUMN_BLOB || t == COLUMN_TEXT)))
        return value_parse(t, column, v->s, arena, ret, fault);
    struct value to = {.kind = types[t].kind};
    bool ok = false;
    switch (t) {
    case COLUMN_INTEGER:
    case COLUMN_BOOLEAN:
    case COLUMN_TIMESTAMP:
        ok = to_integer(t, v, &to.i);
        break;
    case COLUMN_REAL:
        ok = to_real(v, &to.d);
        break;
    case COLUMN_TEXT:
    case COLUMN_JSON:
        ok = to_text(v, t == COLUMN_JSON, arena, &to.s);
        break;
    case COLUMN_BLOB:
        break;
    }
    if (ok) {
        *ret = to;
        return true;
    }
    struct buf text = {0};
    if (v->kind != VALUE_BLOB)
        value_print(&text,
                    v->kind == VALUE_REAL   ? COLUMN_REAL
                    : v->kind == VALUE_BOOL ? COLUMN_BOOLEAN
                                            : COLUMN_INTEGER,
                    v);
    fault_set(fault, FAULT_BAD_TYPE, "column %.*s: %s%s%.*s is no %s", FAULT_CUT(column), kind_name(v->kind),
              text.len ? " " : "", FAULT_CUT(buf_slice(&text)), types[t].name);
    buf_release(&text);
    return false;
}

/* ---- order ---- */

/* The order of classes: NULL, numbers, text, blobs. */
static int class_of(enum value_kind k)
{
    switch (k) {
    case VALUE_NULL:
        return 0;
    case VALUE_TEXT:
        return 2;
    case VALUE_BLOB:
        return 3;
    default:
        return 1;
    }
}

static int compare_mixed(int64_t i, double d)
{
    if (d >= 9223372036854775808.0)
        return -1;
    if (d < -9223372036854775808.0)
        return 1;
    int64_t w = (int64_t)d; /* towards zero */
    if (i != w)
        return i < w ? -1 : 1;
    double rest = d - (double)w; /* exact: w is d without its fraction */
    return (rest < 0) - (rest > 0);
}

int value_compare(const struct value *x, const struct value *y)
{
    int a = class_of(x->kind), b = class_of(y->kind);
    if (a != b)
        return a < b ? -1 : 1;
    if (a == 0)
        return 0;
    if (a != 1)
        return slice_cmp(x->s, y->s);
    bool real_x = x->kind == VALUE_REAL, real_y = y->kind == VALUE_REAL;
    if (real_x && real_y)
        return (x->d > y->d) - (x->d < y->d);
    if (real_x)
        return -compare_mixed(y->i, x->d);
    if (real_y)
        return compare_mixed(x->i, y->d);
    return (x->i > y->i) - (x->i < y->i);
}

/* ---- printing ---- */

size_t value_print_real(char out[VALUE_REAL_CHARS], double d)
{
    int n = 0;
    if (fabs(d) < 1e15 && d == floor(d)) {
        n = snprintf(out, VALUE_REAL_CHARS, "%.1f", d);
        return (size_t)n;
    }
    /* What has 15 digits or fewer comes out so with 15; the tiniest numbers have fewer to begin with. */
    for (int digits = fabs(d) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        n = snprintf(out, VALUE_REAL_CHARS, "%.*g", digits, d);
        if (strtod(out, NULL) == d)
            break;
    }
    if (!memchr(out, '.', (size_t)n) && !memchr(out, 'e', (size_t)n)) {
        memcpy(out + n, ".0", 2);
        n += 2;
    }
    return (size_t)n;
}

void value_print(struct buf *out, enum column_type t, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        break;
    case VALUE_INT:
        if (t == COLUMN_TIMESTAMP)
            timestamp_print(out, v->i);
        else
            out->len += num_format_i64(buf_reserve(out, NUM_I64_CHARS), v->i);
        break;
    case VALUE_REAL:
        out->len += value_print_real(buf_reserve(out, VALUE_REAL_CHARS), v->d);
        break;
    case VALUE_TEXT:
    case VALUE_BLOB:
        buf_add_slice(out, v->s);
        break;
    case VALUE_BOOL:
        buf_add_slice(out, v->i ? SLICE("true") : SLICE("false"));
        break;
    }
}
