#include "query/constant.h"

#include <math.h>
#include <string.h>

#include "query/query_internal.h"

#define INT_END 9223372036854775808.0 /* 2^63 */

/* A number for a column of numbers: text that looks like one is one there, for SQLite too. */
static int number_of(sqlite3_value *v)
{
    return sqlite3_value_numeric_type(v);
}

static bool is_whole(double d)
{
    return d >= -INT_END && d < INT_END && d == floor(d);
}

static enum constant equal_int(sqlite3_value *v, struct value *ret)
{
    ret->kind = VALUE_INT;
    if (number_of(v) == SQLITE_INTEGER) {
        ret->i = sqlite3_value_int64(v);
        return CONSTANT_IS;
    }
    double d = sqlite3_value_double(v);
    if (number_of(v) != SQLITE_FLOAT || !is_whole(d))
        return CONSTANT_NEVER;
    ret->i = (int64_t)d;
    return CONSTANT_IS;
}

static enum constant equal_real(sqlite3_value *v, struct value *ret)
{
    ret->kind = VALUE_REAL;
    ret->d = sqlite3_value_double(v);
    if (number_of(v) == SQLITE_FLOAT)
        return isfinite(ret->d) ? CONSTANT_IS : CONSTANT_NEVER;
    if (number_of(v) != SQLITE_INTEGER)
        return CONSTANT_NEVER;
    return is_whole(ret->d) && (int64_t)ret->d == sqlite3_value_int64(v) ? CONSTANT_IS : CONSTANT_NEVER;
}

static enum constant equal_bytes(sqlite3_value *v, int type, struct value *ret)
{
    int is = sqlite3_value_type(v);
    if (is != type) /* a number may be compared with the number that a text looks like */
        return type == SQLITE_TEXT && is != SQLITE_BLOB ? CONSTANT_ANY : CONSTANT_NEVER;
    *ret = value_from_sqlite(v, NULL);
    return CONSTANT_IS;
}

enum constant constant_equal(enum column_type t, sqlite3_value *v, struct value *ret)
{
    enum constant c;
    if (sqlite3_value_type(v) == SQLITE_NULL)
        return CONSTANT_NEVER;
    switch (t) {
    case COLUMN_INTEGER:
    case COLUMN_TIMESTAMP:
        return equal_int(v, ret);
    case COLUMN_BOOLEAN:
        c = equal_int(v, ret);
        ret->kind = VALUE_BOOL;
        return c == CONSTANT_IS && ret->i != 0 && ret->i != 1 ? CONSTANT_NEVER : c;
    case COLUMN_REAL:
        return equal_real(v, ret);
    case COLUMN_TEXT:
        return equal_bytes(v, SQLITE_TEXT, ret);
    case COLUMN_BLOB:
        return equal_bytes(v, SQLITE_BLOB, ret);
    case COLUMN_JSON:
        break;
    }
    return CONSTANT_ANY;
}

/* A bound that no number of the column's type is, between two of them. */
static enum constant between(enum column_type t, sqlite3_value *v, bool low, struct bound *ret)
{
    double d = sqlite3_value_double(v);
    int type = number_of(v);
    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER)
        return CONSTANT_ANY;
    if (t == COLUMN_REAL) {
        ret->value = (struct value){.kind = VALUE_REAL, .d = nextafter(d, low ? -INFINITY : INFINITY)};
        return isfinite(ret->value.d) ? CONSTANT_IS : CONSTANT_ANY;
    }
    d = low ? floor(d) : ceil(d);
    if (t == COLUMN_BOOLEAN || !is_whole(d))
        return CONSTANT_ANY;
    ret->value = (struct value){.kind = VALUE_INT, .i = (int64_t)d};
    return CONSTANT_IS;
}

enum constant constant_bound(enum column_type t, sqlite3_value *v, bool low, bool exclusive,
                             struct bound *ret)
{
    *ret = (struct bound){.on = true, .exclusive = exclusive};
    if (sqlite3_value_type(v) == SQLITE_NULL)
        return CONSTANT_NEVER;
    enum constant c = constant_equal(t, v, &ret->value);
    if (c == CONSTANT_NEVER) {
        ret->exclusive = false;
        c = t == COLUMN_TEXT || t == COLUMN_BLOB ? CONSTANT_ANY : between(t, v, low, ret);
    }
    ret->on = c == CONSTANT_IS;
    return c;
}

struct slice constant_prefix(sqlite3_value *pattern)
{
    struct slice all = {0};
    if (sqlite3_value_type(pattern) != SQLITE_TEXT)
        return all;
    all.p = (const char *)sqlite3_value_text(pattern);
    size_t n = (size_t)sqlite3_value_bytes(pattern);
    if (!all.p)
        return all;
    while (all.n < n && !memchr("*?[", all.p[all.n], 3))
        all.n++;
    return all;
}
