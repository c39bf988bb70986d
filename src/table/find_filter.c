/* Filters, looked at row by row, and the bounds that comparisons come down to. A comparison with NULL holds
   for nothing, as in SQL. */
#include <math.h>

#include "table/find_internal.h"

/* ---- LIKE ---- */

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Bytes of the character at p: _ stands for a whole one. */
static size_t character(const char *p, const char *end)
{
    size_t n = 1;
    while (p + n < end && ((unsigned char)p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* Goes back to the last % alone, so that the time is the product of both lengths at most. */
bool find_like(struct slice text, struct slice pattern)
{
    const char *t = text.p, *t_end = text.p + text.n;
    const char *p = pattern.p, *p_end = pattern.p + pattern.n;
    const char *after_any = NULL, *resume = NULL;
    while (t < t_end || p < p_end) {
        if (p < p_end && *p == '%') {
            after_any = ++p;
            resume = t;
        } else if (t < t_end && p < p_end && *p == '_') {
            t += character(t, t_end);
            p++;
        } else if (t < t_end && p < p_end && fold(*t) == fold(*p)) {
            t++;
            p++;
        } else {
            if (!after_any || resume >= t_end)
                return false;
            resume += character(resume, t_end);
            t = resume;
            p = after_any;
        }
    }
    return true;
}

/* ---- filters ---- */

static bool is_in(const struct value *v, const struct filter *f)
{
    for (size_t i = 0; i < f->nvalues; i++) {
        if (f->values[i].kind != VALUE_NULL && value_compare(v, &f->values[i]) == 0)
            return true;
    }
    return false;
}

static bool meets(const struct filter *f, const struct value *v)
{
    if (f->op == FILTER_IS_NULL || v->kind == VALUE_NULL)
        return f->op == FILTER_IS_NULL && v->kind == VALUE_NULL;
    if (f->op == FILTER_NOT_NULL)
        return true;
    if (f->op == FILTER_IN)
        return is_in(v, f);
    if (f->values[0].kind == VALUE_NULL)
        return false;
    if (f->op == FILTER_LIKE)
        return (v->kind == VALUE_TEXT || v->kind == VALUE_BLOB) && find_like(v->s, f->values[0].s);
    int c = value_compare(v, &f->values[0]);
    switch (f->op) {
    case FILTER_EQ:
        return c == 0;
    case FILTER_NE:
        return c != 0;
    case FILTER_LT:
        return c < 0;
    case FILTER_LE:
        return c <= 0;
    case FILTER_GT:
        return c > 0;
    default:
        return c >= 0;
    }
}

bool find_filters_meet(const struct find *f, const struct value *values, const bool *held)
{
    for (size_t i = 0; i < f->nfilters; i++) {
        const struct filter *x = &f->filters[i];
        if ((!held || held[x->column]) && !meets(x, &values[x->column]))
            return false;
    }
    return true;
}

/* ---- bounds of any constant ---- */

#define TWO_63 9223372036854775808.0

/* An INTEGER next to a number that is none: below it for a lower bound, above it for an upper one. False: all
   integers are on that side, or none is. */
static bool near_integer(double d, bool low, struct value *ret)
{
    d = low ? floor(d) : ceil(d);
    if (!(d >= -TWO_63 && d < TWO_63))
        return false;
    *ret = (struct value){.kind = VALUE_INT, .i = (int64_t)d};
    return true;
}

/* A REAL next to an integer that no double has. */
static void near_real(int64_t i, bool low, struct value *ret)
{
    *ret = (struct value){.kind = VALUE_REAL, .d = nextafter((double)i, low ? -INFINITY : INFINITY)};
}

bool find_bound(enum column_type t, enum filter_op op, const struct value *v, struct arena *arena,
                struct bound *ret)
{
    struct fault none = {0};
    bool low = op == FILTER_GT || op == FILTER_GE;
    if (v->kind == VALUE_NULL || (!low && op != FILTER_LT && op != FILTER_LE))
        return false;
    *ret = (struct bound){.on = true, .exclusive = op == FILTER_GT || op == FILTER_LT};
    if (value_convert(t, SLICE("constant"), v, arena, &ret->value, &none))
        return true;
    ret->exclusive = false;
    enum value_kind kind = column_kind(t);
    if (kind == VALUE_INT && v->kind == VALUE_REAL)
        return near_integer(v->d, low, &ret->value);
    if (kind == VALUE_REAL && v->kind == VALUE_INT) {
        near_real(v->i, low, &ret->value);
        return true;
    }
    return false;
}
