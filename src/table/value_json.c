/* Values in JSON: how they lie in rows and schemas. */
#include <math.h>

#include "base/num.h"
#include "proto/base64.h"
#include "table/value.h"

void value_add_json(struct buf *out, enum column_type t, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        buf_add(out, "null", 4);
        break;
    case VALUE_INT:
        json_add_i64(out, v->i);
        break;
    case VALUE_REAL:
        out->len += value_print_real(buf_reserve(out, VALUE_REAL_CHARS), v->d);
        break;
    case VALUE_TEXT:
        if (t == COLUMN_JSON)
            buf_add_slice(out, v->s);
        else
            json_add_lossy(out, v->s); /* it is UTF-8: value_parse took no other */
        break;
    case VALUE_BLOB:
        json_add_base64(out, v->s);
        break;
    case VALUE_BOOL:
        buf_add_slice(out, v->i ? SLICE("true") : SLICE("false"));
        break;
    }
}

/* Few digits and a small power of ten: both are doubles without loss, and so is their quotient, rounded
   once. */
static bool read_short(struct slice s, double *ret)
{
    static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int64_t digits = 0;
    size_t i = s.n && *s.p == '-', from = i, behind = 0;
    bool point = false;
    if (s.n - from > 16)
        return false;
    for (; i < s.n; i++) {
        if (s.p[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        digits = digits * 10 + (s.p[i] - '0');
        behind += point;
    }
    double d = (double)digits / powers[behind];
    *ret = from ? -d : d;
    return point; /* 15 digits at most */
}

static bool read_real(const struct json *j, double *ret)
{
    return read_short(j->text, ret) || (num_parse_double(j->text, ret) && isfinite(*ret));
}

bool value_read_json(enum column_type t, const struct json *j, struct arena *arena, struct value *ret)
{
    *ret = (struct value){.kind = column_kind(t)};
    if (j->kind == JSON_NULL) {
        ret->kind = VALUE_NULL;
        return true;
    }
    switch (t) {
    case COLUMN_INTEGER:
        return j->kind == JSON_NUMBER && num_parse_i64(j->text, &ret->i);
    case COLUMN_TIMESTAMP:
        return j->kind == JSON_NUMBER && num_parse_i64(j->text, &ret->i) && ret->i >= TIMESTAMP_MIN &&
               ret->i <= TIMESTAMP_MAX;
    case COLUMN_REAL:
        return j->kind == JSON_NUMBER && read_real(j, &ret->d);
    case COLUMN_TEXT:
        if (j->kind != JSON_STRING)
            return false;
        ret->s = json_string(j, arena);
        return !ret->s.n || !memchr(ret->s.p, 0, ret->s.n);
    case COLUMN_BLOB:
        return j->kind == JSON_STRING &&
               base64_decode(slice_of(j->text.p + 1, j->text.n - 2), arena, &ret->s);
    case COLUMN_BOOLEAN:
        ret->i = j->kind == JSON_TRUE;
        return j->kind == JSON_TRUE || j->kind == JSON_FALSE;
    case COLUMN_JSON:
        ret->s = j->text;
        return true;
    }
    return false;
}
