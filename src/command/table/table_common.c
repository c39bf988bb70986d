#include "command/table/table_common.h"

#include "base/num.h"
#include "exec/args.h"
#include "exec/executor.h"

struct catalog *call_catalog(const struct call *c)
{
    if (!c->executor->catalog)
        c->executor->catalog = catalog_new();
    return c->executor->catalog;
}

void reply_fault(struct reply *r, const struct fault *f)
{
    reply_errorf(r, "%s %s", fault_code(f->kind), f->text);
}

enum status arg_rows(struct call *c, int i, struct rows *ret)
{
    struct fault fault = {.kind = FAULT_NONE};
    *ret = (struct rows){.catalog = call_catalog(c), .view = c->view, .arena = c->arena};
    enum status st = table_open(ret->catalog, c->view, call_db(c), c->argv[i], &ret->table, &fault);
    if (st == ST_OK && fault.kind)
        reply_fault(c->reply, &fault);
    return st;
}

/* ---- arguments ---- */

bool arg_column(const struct call *c, const struct schema *s, int i, uint16_t *ret, struct fault *fault)
{
    int place = schema_column(s, c->argv[i]);
    if (place < 0)
        return fault_set(fault, FAULT_NO_COLUMN, "no such column: %.*s", FAULT_CUT(c->argv[i]));
    *ret = (uint16_t)place;
    return true;
}

bool arg_count(const struct call *c, int i, int each, int *ret, struct fault *fault)
{
    int64_t n;
    if (i >= c->argc || !num_parse_i64(c->argv[i], &n) || n < 1)
        return fault_set(fault, FAULT_SYNTAX, "%.*s needs a number of at least 1 behind it",
                         FAULT_CUT(c->argv[i - 1]));
    if (n > (c->argc - i - 1) / each)
        return fault_set(fault, FAULT_SYNTAX, "fewer arguments than %.*s %lld needs",
                         FAULT_CUT(c->argv[i - 1]), (long long)n);
    *ret = (int)n;
    return true;
}

bool arg_row_name(const struct call *c, const struct rows *r, int i, struct slice *ret, struct fault *fault)
{
    const struct schema *s = &r->table->schema;
    struct value *values = arena_alloc(c->arena, s->ncolumns * sizeof *values);
    for (size_t k = 0; k < s->nkey; k++) {
        const struct column *column = &s->columns[s->key[k].column];
        if (!value_parse(column->type, column->name, c->argv[i + (int)k], c->arena, &values[s->key[k].column],
                         fault))
            return false;
    }
    return rows_name(r, values, ret, fault);
}

bool arg_projection(const struct call *c, const struct schema *s, int *i, struct projection *ret,
                    struct fault *fault)
{
    int n = 0;
    if (!arg_count(c, *i + 1, 1, &n, fault))
        return false;
    ret->n = (size_t)n;
    ret->columns = arena_alloc(c->arena, ret->n * sizeof *ret->columns);
    for (int k = 0; k < n; k++)
        if (!arg_column(c, s, *i + 2 + k, &ret->columns[k], fault))
            return false;
    *i += 2 + n;
    return true;
}

bool arg_row_options(const struct call *c, const struct schema *s, int i, struct row_options *ret,
                     struct fault *fault)
{
    *ret = (struct row_options){.with_version = false};
    while (i < c->argc) {
        if (slice_is(c->argv[i], "withver")) {
            ret->with_version = true;
            i++;
        } else if (!slice_is(c->argv[i], "fields") || ret->fields.columns) {
            return fault_set(
                fault, FAULT_SYNTAX,
                "%.*s: the key has %zu columns, and FIELDS n column ... or WITHVER may follow it",
                FAULT_CUT(c->argv[i]), s->nkey);
        } else if (!arg_projection(c, s, &i, &ret->fields, fault)) {
            return false;
        }
    }
    return true;
}

/* ---- replies ---- */

void reply_value(struct reply *r, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        reply_null(r);
        break;
    case VALUE_INT:
        reply_integer(r, v->i);
        break;
    case VALUE_REAL:
        reply_double(r, v->d);
        break;
    case VALUE_BOOL:
        reply_bool(r, v->i != 0);
        break;
    case VALUE_TEXT:
    case VALUE_BLOB:
        reply_bulk(r, v->s);
        break;
    }
}

void reply_row_map(struct reply *r, const struct schema *s, const struct table_row *row,
                   const struct projection *fields)
{
    size_t n = fields->columns ? fields->n : s->ncolumns;
    reply_map(r, n);
    for (size_t i = 0; i < n; i++) {
        size_t k = fields->columns ? fields->columns[i] : i;
        reply_bulk(r, s->columns[k].name);
        reply_value(r, &row->values[k]);
    }
}
