/* What a find says of itself: tokens, EXPLAIN, and whether it makes sense.

   A token is base64url of

     0   the version of this form: 1
     1   FNV-1a, 64 bits, of all that the find asks for, and of the name: lowest byte first
     9   the name of the last row or entry looked at

   Its check is no secret: whoever makes one up gets a place within the find's own range or is refused. */
#include "proto/base64.h"
#include "table/find_internal.h"

#define TOKEN_VERSION 1
#define TOKEN_HEAD    9

/* ---- tokens ---- */

struct mix {
    uint64_t h;
};

static void mix_bytes(struct mix *m, struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        m->h = (m->h ^ (unsigned char)s.p[i]) * 1099511628211U;
}

static void mix_number(struct mix *m, uint64_t v)
{
    char bytes[8];
    for (unsigned i = 0; i < 8; i++)
        bytes[i] = (char)(v >> (8 * i));
    mix_bytes(m, slice_of(bytes, sizeof bytes));
}

static void mix_value(struct mix *m, const struct value *v)
{
    struct buf code = {0};
    keycode_add(&code, v, false); /* it ends by itself: what follows cannot be taken for a part of it */
    mix_bytes(m, buf_slice(&code));
    buf_release(&code);
}

static void mix_bound(struct mix *m, const struct bound *b)
{
    mix_number(m, b->on + 2U * b->exclusive);
    if (b->on)
        mix_value(m, &b->value);
}

/* Columns by their ids, so that a column that is dropped meanwhile changes nothing of another's. */
static uint64_t check_of(const struct table *t, const struct find *f, struct slice name)
{
    struct mix m = {14695981039346656037U};
    mix_number(&m, (uint64_t)t->id);
    mix_number(&m, f->index ? f->index->number : 0);
    mix_number(&m, f->reverse);
    mix_number(&m, f->neq);
    for (size_t i = 0; i < f->neq; i++)
        mix_value(&m, &f->eq[i]);
    mix_bound(&m, &f->low);
    mix_bound(&m, &f->high);
    mix_number(&m, f->prefix.p ? f->prefix.n : UINT64_MAX);
    if (f->prefix.p)
        mix_bytes(&m, f->prefix);
    for (size_t i = 0; i < f->nfilters; i++) {
        mix_number(&m, t->schema.columns[f->filters[i].column].id);
        mix_number(&m, f->filters[i].op);
        mix_number(&m, f->filters[i].nvalues);
        for (size_t k = 0; k < f->filters[i].nvalues; k++)
            mix_value(&m, &f->filters[i].values[k]);
    }
    mix_number(&m, name.n);
    mix_bytes(&m, name);
    return m.h;
}

void find_token(const struct table *t, const struct find *f, const struct find_place *place, struct buf *out)
{
    struct slice name = slice_of(place->after, place->nafter);
    uint64_t check = check_of(t, f, name);
    struct buf bytes = {0};
    buf_add(&bytes, &(char){TOKEN_VERSION}, 1);
    for (unsigned i = 0; i < 8; i++)
        buf_add(&bytes, &(char){(char)(check >> (8 * i))}, 1);
    buf_add_slice(&bytes, name);
    base64_add_url(out, buf_slice(&bytes));
    buf_release(&bytes);
}

bool find_resume(const struct table *t, const struct find *f, struct slice token, struct arena *arena,
                 struct find_place *ret, struct fault *fault)
{
    struct slice bytes;
    *ret = (struct find_place){.begun = true};
    if (token.n > 2 * sizeof ret->after || !base64_decode(token, arena, &bytes) || bytes.n < TOKEN_HEAD ||
        bytes.p[0] != TOKEN_VERSION || bytes.n - TOKEN_HEAD > KEYCODE_MAX)
        return fault_set(fault, FAULT_BAD_TOKEN, "the token is none of this server's");
    struct slice name = slice_of(bytes.p + TOKEN_HEAD, bytes.n - TOKEN_HEAD);
    uint64_t check = 0;
    for (unsigned i = 0; i < 8; i++)
        check |= (uint64_t)(unsigned char)bytes.p[1 + i] << (8 * i);
    if (check != check_of(t, f, name))
        return fault_set(fault, FAULT_BAD_TOKEN, "the token is that of another query");
    ret->nafter = (uint16_t)name.n;
    memcpy(ret->after, name.p, name.n);
    return true;
}

/* ---- does it make sense? ---- */

static bool check_kind(const struct column *c, const struct value *v, struct fault *fault)
{
    if (v->kind == column_kind(c->type))
        return true;
    return fault_set(fault, FAULT_BAD_TYPE, "a value for %.*s is no %s", (int)c->name.n, c->name.p,
                     column_type_name(c->type));
}

static bool check_range(const struct table *t, const struct find *f, struct find_order o, struct fault *fault)
{
    const struct schema *s = &t->schema;
    for (size_t i = 0; i < f->neq; i++) {
        if (f->eq[i].kind != VALUE_NULL && !check_kind(&s->columns[o.parts[i].column], &f->eq[i], fault))
            return false;
    }
    if (!f->low.on && !f->high.on && !f->prefix.p)
        return true;
    if (f->neq >= o.nparts)
        return fault_set(fault, FAULT_SYNTAX, "no column is left for a bound: values are given for all %zu",
                         o.nparts);
    const struct column *c = &s->columns[o.parts[f->neq].column];
    if ((f->low.on && !check_kind(c, &f->low.value, fault)) ||
        (f->high.on && !check_kind(c, &f->high.value, fault)))
        return false;
    enum value_kind kind = column_kind(c->type);
    if (f->prefix.p && kind != VALUE_TEXT && kind != VALUE_BLOB)
        return fault_set(fault, FAULT_BAD_TYPE, "a prefix is for TEXT and BLOB, and %.*s is %s",
                         (int)c->name.n, c->name.p, column_type_name(c->type));
    return true;
}

bool find_check(const struct table *t, const struct find *f, struct fault *fault)
{
    struct find_order o = find_order_of(&t->schema, f->index);
    const struct table_index *x = f->index;
    if (x && x->state == INDEX_BUILDING)
        return fault_set(fault, FAULT_BUILDING, "index %.*s is being built", (int)x->name.n, x->name.p);
    if (x && x->state == INDEX_FAILED)
        return fault_set(fault, FAULT_BUILDING, "index %.*s has failed: %.*s", (int)x->name.n, x->name.p,
                         (int)x->error.n, x->error.p);
    if (f->neq > o.nparts)
        return fault_set(fault, FAULT_SYNTAX, "%zu values for %zu columns", f->neq, o.nparts);
    if (!check_range(t, f, o, fault))
        return false;
    for (size_t i = 0; i < f->nfilters; i++) {
        const struct filter *x_filter = &f->filters[i];
        const struct column *c = &t->schema.columns[x_filter->column];
        enum value_kind kind = column_kind(c->type);
        if (x_filter->op == FILTER_LIKE && kind != VALUE_TEXT && kind != VALUE_BLOB)
            return fault_set(fault, FAULT_BAD_TYPE, "LIKE is for TEXT, and %.*s is %s", (int)c->name.n,
                             c->name.p, column_type_name(c->type));
    }
    return true;
}

/* ---- EXPLAIN ---- */

static const char *const ops[] = {
    [FILTER_EQ] = "=",
    [FILTER_NE] = "!=",
    [FILTER_LT] = "<",
    [FILTER_LE] = "<=",
    [FILTER_GT] = ">",
    [FILTER_GE] = ">=",
    [FILTER_LIKE] = "LIKE",
    [FILTER_IN] = "IN",
    [FILTER_IS_NULL] = "IS NULL",
    [FILTER_NOT_NULL] = "IS NOT NULL",
};

/* A constant as SQL has it, on one line: text cut at 60 bytes, blobs in hexadecimal digits. */
static void explain_value(struct buf *out, enum column_type type, const struct value *v)
{
    size_t shown = v->kind == VALUE_TEXT || v->kind == VALUE_BLOB ? (v->s.n < 60 ? v->s.n : 60) : 0;
    switch (v->kind) {
    case VALUE_NULL:
        buf_add_slice(out, SLICE("NULL"));
        return;
    case VALUE_TEXT:
        buf_add(out, "'", 1);
        for (size_t i = 0; i < shown; i++) {
            char c = v->s.p[i];
            buf_add(out, (unsigned char)c < ' ' ? " " : &c, 1);
            if (c == '\'')
                buf_add(out, "'", 1);
        }
        buf_add_slice(out, shown < v->s.n ? SLICE("…'") : SLICE("'"));
        return;
    case VALUE_BLOB:
        buf_add(out, "x'", 2);
        for (size_t i = 0; i < shown; i++)
            buf_addf(out, "%02x", (unsigned char)v->s.p[i]);
        buf_add_slice(out, shown < v->s.n ? SLICE("…'") : SLICE("'"));
        return;
    default:
        value_print(out, type, v);
    }
}

static void explain_term(struct buf *out, const char *between, const struct column *c, const char *op,
                         const struct value *v)
{
    buf_addf(out, "%s%.*s %s", between, (int)c->name.n, c->name.p, op);
    if (v) {
        buf_add(out, " ", 1);
        explain_value(out, c->type, v);
    }
}

static void explain_range(const struct schema *s, const struct find *f, struct buf *out)
{
    struct find_order o = find_order_of(s, f->index);
    const char *between = " (";
    for (size_t i = 0; i < f->neq; i++) {
        const struct column *c = &s->columns[o.parts[i].column];
        explain_term(out, between, c, f->eq[i].kind == VALUE_NULL ? "IS" : "=", &f->eq[i]);
        between = " AND ";
    }
    const struct column *c = f->neq < o.nparts ? &s->columns[o.parts[f->neq].column] : NULL;
    if (c && f->low.on) {
        explain_term(out, between, c, f->low.exclusive ? ">" : ">=", &f->low.value);
        between = " AND ";
    }
    if (c && f->high.on) {
        explain_term(out, between, c, f->high.exclusive ? "<" : "<=", &f->high.value);
        between = " AND ";
    }
    if (c && f->prefix.p) {
        struct value v = {.kind = column_kind(c->type), .s = f->prefix};
        explain_term(out, between, c, "BEGINS WITH", &v);
        between = " AND ";
    }
    if (between[1] != '(')
        buf_add(out, ")", 1);
}

void find_explain(const struct table *t, const struct find *f, struct buf *out)
{
    const struct schema *s = &t->schema;
    buf_add_slice(out, t->name);
    buf_add_slice(out, SLICE(": "));
    buf_add_slice(out, f->index ? f->index->name : SLICE("primary key"));
    explain_range(s, f, out);
    for (size_t i = 0; i < f->nfilters; i++) {
        const struct filter *x = &f->filters[i];
        bool one = x->op != FILTER_IN && x->nvalues == 1;
        explain_term(out, i ? " AND " : ", filter ", &s->columns[x->column], ops[x->op],
                     one ? &x->values[0] : NULL);
        if (x->op == FILTER_IN)
            buf_addf(out, " (%zu values)", x->nvalues);
    }
    if (f->reverse)
        buf_add_slice(out, SLICE(", reverse"));
}
