/* POST /sql: {"sql": text, "args": [...]} to {"columns", "rows", "changes"}. It is what the command SQL is,
   but arguments and values have the types of JSON; bytes are {"base64": text} as an argument, and a string in
   base64 as a value. What takes long goes on on a thread, which makes the answer; the request waits
   meanwhile. */
#include "http/http_tables.h"

#include <math.h>

#include "base/num.h"
#include "command/families.h"
#include "command/table/sql_run.h"
#include "proto/base64.h"

struct sql_body {
    struct value *args;
    size_t nargs;
};

/* ---- preparing ---- */

static bool read_bytes(struct http_call *x, const struct json *v, struct value *ret)
{
    struct json_walk w;
    struct json text;
    struct slice name;
    json_begin(&w, v);
    if (json_count(v) != 1 || !json_next_member(&w, x->arena, &name, &text) ||
        !slice_eq(name, SLICE("base64")) || text.kind != JSON_STRING)
        return false;
    ret->kind = VALUE_BLOB;
    return base64_decode(json_string(&text, x->arena), x->arena, &ret->s);
}

static bool read_argument(struct http_call *x, const struct json *v, struct value *ret)
{
    *ret = (struct value){.kind = VALUE_NULL};
    switch (v->kind) {
    case JSON_NULL:
        return true;
    case JSON_FALSE:
    case JSON_TRUE:
        *ret = (struct value){.kind = VALUE_INT, .i = v->kind == JSON_TRUE};
        return true;
    case JSON_NUMBER:
        ret->kind = VALUE_INT;
        if (num_parse_i64(v->text, &ret->i))
            return true;
        ret->kind = VALUE_REAL;
        return num_parse_double(v->text, &ret->d) && isfinite(ret->d);
    case JSON_STRING:
        *ret = (struct value){.kind = VALUE_TEXT, .s = json_string(v, x->arena)};
        return true;
    case JSON_OBJECT:
        return read_bytes(x, v, ret);
    default:
        return false;
    }
}

static void read_arguments(struct http_call *x, const struct json *list, struct sql_body *b)
{
    struct json_walk w;
    struct json v;
    size_t n = list->kind == JSON_ARRAY ? json_count(list) : 0;
    if (list->kind != JSON_ARRAY || n > QUERY_ARGS_MAX) {
        http_refuse(x, 400, "bad_value", "args must be an array of up to %d values.", QUERY_ARGS_MAX);
        return;
    }
    b->args = arena_alloc(x->arena, (n + 1) * sizeof *b->args);
    json_begin(&w, list);
    while (json_next_item(&w, &v)) {
        if (!read_argument(x, &v, &b->args[b->nargs++])) {
            http_refuse(x, 400, "bad_value",
                        "Argument %zu is none: null, a number, a string, true, false or {\"base64\": text}.",
                        b->nargs);
            return;
        }
    }
}

void http_sql(struct http_api *api, struct http_call *x)
{
    struct sql_body *b = arena_alloc(x->arena, sizeof *b);
    struct json body, v;
    struct json_walk w;
    struct slice name, text = {NULL, 0};
    (void)api;
    *b = (struct sql_body){0};
    if (!http_json_body(x, JSON_OBJECT, &body))
        return;
    json_begin(&w, &body);
    while (!x->refusal.status && json_next_member(&w, x->arena, &name, &v)) {
        if (slice_eq(name, SLICE("sql")) && v.kind == JSON_STRING)
            text = json_string(&v, x->arena);
        else if (slice_eq(name, SLICE("args")))
            read_arguments(x, &v, b);
        else
            http_refuse(x, 400, "unknown_field", "There is \"sql\", a string, and \"args\", an array.");
    }
    if (!x->refusal.status && !text.p)
        http_refuse(x, 400, "missing_field", "The body needs \"sql\", a string.");
    if (x->refusal.status)
        return;
    x->detail = b;
    http_key_call(x, &http_sql_commands[0], text);
    x->writes = query_may_write(text);
}

/* ---- the answer ---- */

struct sql_answer {
    struct buf *out;
    size_t start;
    struct buf types; /* of the columns: a byte for each, 0 where values have whatever kind, else 1 + type */
    bool text;        /* whole numbers as strings */
    bool begun;
    size_t nrows;
};

static void begin(void *arg, const struct query_column *columns, size_t n)
{
    struct sql_answer *r = arg;
    r->out->len = r->start;
    r->types.len = 0;
    r->begun = true;
    r->nrows = 0;
    buf_add_slice(r->out, SLICE("{\"columns\":["));
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(r->out, i ? SLICE(",") : SLICE(""));
        json_add_lossy(r->out, columns[i].name);
        char type = columns[i].typed ? (char)(1 + columns[i].type) : '\0';
        buf_add(&r->types, &type, 1);
    }
    buf_add_slice(r->out, SLICE("],\"rows\":["));
}

static void add_value(struct sql_answer *r, char type, const struct value *v)
{
    bool is_json = type == 1 + COLUMN_JSON && v->kind == VALUE_TEXT;
    if (v->kind == VALUE_INT && r->text)
        buf_addf(r->out, "\"%lld\"", (long long)v->i);
    else if (v->kind == VALUE_REAL)
        json_add_double(r->out, v->d);
    else
        value_add_json(r->out, is_json ? COLUMN_JSON : COLUMN_TEXT, v);
}

static void add_row(void *arg, const struct value *values, size_t n)
{
    struct sql_answer *r = arg;
    buf_add_slice(r->out, r->nrows++ ? SLICE(",[") : SLICE("["));
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(r->out, i ? SLICE(",") : SLICE(""));
        add_value(r, r->types.p[i], &values[i]);
    }
    buf_add(r->out, "]", 1);
}

static void end(struct sql_answer *r, int64_t changes)
{
    if (!r->begun)
        begin(r, NULL, 0);
    buf_addf(r->out, "],\"changes\":%lld}", (long long)changes);
}

static enum status answer_on_thread(struct query_engine *e, struct query *q, struct buf *out, bool text,
                                    struct query_result *ret)
{
    struct sql_answer r = {.out = out, .start = out->len, .text = text};
    const struct query_sink sink = {.begin = begin, .row = add_row, .arg = &r};
    struct query told = *q;
    told.sink = &sink;
    enum status st = query_run(e, &told, ret);
    if (st == ST_OK && ret->outcome == QUERY_DONE)
        end(&r, ret->changes);
    buf_release(&r.types);
    return st;
}

static enum status answer_numbers(struct query_engine *e, struct query *q, struct reply *reply,
                                  struct buf *out, struct query_result *ret)
{
    (void)reply;
    return answer_on_thread(e, q, out, false, ret);
}

static enum status answer_strings(struct query_engine *e, struct query *q, struct reply *reply,
                                  struct buf *out, struct query_result *ret)
{
    (void)reply;
    return answer_on_thread(e, q, out, true, ret);
}

/* ---- running ---- */

static enum status answer_taken(struct call *c, const struct query_taken *t)
{
    struct answer *a = answer_of(c);
    if (t->status == ST_OK && t->error)
        reply_error(c->reply, t->error);
    else if (t->status == ST_OK && t->fault)
        http_answer_fault(a, t->fault);
    else if (t->status == ST_OK)
        buf_add_slice(a->out, t->made);
    return t->status;
}

static enum status sql(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct sql_body *b = a->call->detail;
    struct query_taken taken;
    struct query_result result;
    if (query_take(c, &taken))
        return answer_taken(c, &taken);
    if (a->call->writes && c->write_err && c->write_err->code != ST_OK) {
        *c->err = *c->write_err;
        return c->write_err->code;
    }
    struct sql_answer r = {
        .out = a->out, .start = a->out->len, .text = a->call->query[PARAM_INT64].p != NULL};
    const struct query_sink sink = {.begin = begin, .row = add_row, .arg = &r};
    struct query q = {.text = c->argv[1], .args = b->args, .nargs = b->nargs, .sink = &sink};
    enum status st = sql_run(c, &q, &result);
    if (st == ST_OK && result.outcome == QUERY_DONE)
        end(&r, result.changes);
    buf_release(&r.types);
    if (st != ST_OK || result.outcome == QUERY_DONE)
        return st;
    a->out->len = r.start;
    if (result.outcome == QUERY_MOVE &&
        sql_move(c, &q, r.text ? answer_strings : answer_numbers, &result.fault))
        return ST_OK;
    http_answer_fault(a, &result.fault);
    return ST_OK;
}

static bool may_write(const struct slice *argv, int argc)
{
    return argc > 1 && query_may_write(argv[1]);
}

const struct command http_sql_commands[] = {
    {.name = "http|sql", .fn = sql, .arity = 2, .group = "http", .may_write = may_write},
    {.name = NULL},
};
