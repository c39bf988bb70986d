/* POST /batch: operations in one step, and in one commit.

   Operations on the same key need no merging of their own: a batch's changes are rows in memory, the last
   state of each is what is committed, so that a put and an expire are one row.

   Atomic (the default): the operations are one command, undone as a whole when one of them fails. Otherwise
   each is a command of its own, one after the other. "async" does not wait for the commit to be durable: the
   outcome is kept for GET /batch/{id} (batch_outcomes.c). */
#include "http/http_internal.h"

#include <stdio.h>

#include "base/clock.h"
#include "command/families.h"
#include "exec/declare.h"
#include "http/batch_outcomes.h"
#include "http/http_tables.h"
#include "proto/base64.h"

/* In the order of the table below. */
enum { BATCH, OPERATION };

enum op_kind { OP_PUT, OP_DELETE, OP_EXPIRE, OP_PERSIST, OP_COMMAND, OP_ROW };

struct http_op {
    enum op_kind kind;
    struct slice argv[2];      /* for statistics: the command of the family, the key or the table */
    struct http_value value;   /* PUT; its expiry: EXPIRE */
    struct http_row_op row;    /* ROW */
    const struct command *cmd; /* COMMAND */
    struct slice *words;
    int nwords;
    bool encoded; /* strings are base64 */
    struct http_conditions only;
};

struct http_batch {
    struct http_op *ops;
    size_t n;
    bool atomic, async;
    bool late; /* it was undone because its time had run out */
};

/* ---- reading ---- */

/* The members of an operation, before they are checked. */
struct op_outline {
    struct json value, args;
    struct json key, row, incr; /* kind JSON_NULL: not there */
    bool has_value, has_args, has_key, encoded;
    struct slice op, type, table;
};

static bool read_flag(struct http_call *x, const struct json *v, const char *name, bool *ret)
{
    *ret = v->kind == JSON_TRUE;
    if (v->kind != JSON_TRUE && v->kind != JSON_FALSE)
        http_refuse(x, 400, "bad_value", "%s must be true or false.", name);
    return !x->refusal.status;
}

/* A condition; false: it is none. */
static bool read_condition(struct http_call *x, struct slice name, const struct json *v, struct http_op *op)
{
    if (slice_eq(name, SLICE("if_absent")))
        return read_flag(x, v, "if_absent", &op->only.if_absent), true;
    if (slice_eq(name, SLICE("if_present")))
        return read_flag(x, v, "if_present", &op->only.if_present), true;
    if (!slice_eq(name, SLICE("if_version")))
        return false;
    op->only.has_version = true;
    if (!json_i64(v, &op->only.if_version) || op->only.if_version < 0)
        http_refuse(x, 400, "bad_value", "if_version must be a version, or 0 for none.");
    return true;
}

static void read_member(struct http_call *x, struct slice name, const struct json *v, struct op_outline *o,
                        struct http_op *op)
{
    bool string = v->kind == JSON_STRING;
    if (slice_eq(name, SLICE("op"))) {
        o->op = string ? json_string(v, x->arena) : SLICE("");
    } else if (slice_eq(name, SLICE("key"))) {
        o->key = *v;
        o->has_key = true;
    } else if (slice_eq(name, SLICE("value"))) {
        o->value = *v;
        o->has_value = true;
    } else if (slice_eq(name, SLICE("type"))) {
        o->type = string ? json_string(v, x->arena) : SLICE("");
    } else if (slice_eq(name, SLICE("args"))) {
        o->args = *v;
        o->has_args = true;
    } else if (slice_eq(name, SLICE("table"))) {
        o->table = string ? json_string(v, x->arena) : SLICE("");
    } else if (slice_eq(name, SLICE("row"))) {
        o->row = *v;
    } else if (slice_eq(name, SLICE("incr"))) {
        o->incr = *v;
    } else if (slice_eq(name, SLICE("encoding"))) {
        o->encoded = string && slice_eq(json_string(v, x->arena), SLICE("base64"));
        if (!o->encoded)
            http_refuse(x, 400, "bad_value", "encoding must be \"base64\", or not be there.");
    } else if (!read_condition(x, name, v, op) && !http_expiry_member(x, name, v, &op->value.expiry)) {
        http_refuse(x, 400, "unknown_field", "An operation has no field \"%.*s\".",
                    name.n < 64 ? (int)name.n : 64, name.p);
    }
}

/* Redis' commands on one key, and what it comes with. */
static bool read_command(struct http_call *x, const struct op_outline *o, struct http_op *op)
{
    const struct command *cmd = command_find(o->op);
    struct json_walk w;
    struct json v;
    if (!cmd || cmd->subs || !(cmd->flags & (CMD_WRITE | CMD_READONLY)) || (cmd->flags & CMD_NO_MULTI) ||
        !cmd->keys[0].flags || cmd->keys[0].keyword || cmd->keys[0].index != 1) {
        http_refuse(x, 400, "unknown_operation",
                    "There is no operation \"%.*s\": put, delete, expire, persist, or a command whose first "
                    "argument is a key.",
                    o->op.n < 64 ? (int)o->op.n : 64, o->op.p);
        return false;
    }
    if (o->has_args && o->args.kind != JSON_ARRAY) {
        http_refuse(x, 400, "bad_value", "args must be an array.");
        return false;
    }
    size_t n = o->has_args ? json_count(&o->args) : 0;
    op->words = arena_alloc(x->arena, (n + 2) * sizeof *op->words);
    op->words[op->nwords++] = o->op;
    op->words[op->nwords++] = op->argv[1];
    if (n)
        json_begin(&w, &o->args);
    while (n && json_next_item(&w, &v))
        if (!http_text(x, &v, "An argument", o->encoded, &op->words[op->nwords++]))
            return false;
    op->kind = OP_COMMAND;
    op->cmd = cmd;
    op->encoded = o->encoded;
    if (!command_arity_fits(cmd, op->nwords)) {
        http_refuse(x, 400, "bad_value", "%s takes another number of args.", cmd->name);
        return false;
    }
    return true;
}

static bool fill_op(struct http_call *x, const struct op_outline *o, struct http_op *op)
{
    bool put = slice_eq(o->op, SLICE("put")), expire = slice_eq(o->op, SLICE("expire")) && !o->has_args;
    bool del = slice_eq(o->op, SLICE("delete")), persist = slice_eq(o->op, SLICE("persist")) && !o->has_args;
    bool timed = op->value.expiry.kind != EXPIRY_NONE;
    op->kind = put ? OP_PUT : del ? OP_DELETE : expire ? OP_EXPIRE : OP_PERSIST;
    if ((o->has_value || o->type.p) && !put)
        http_refuse(x, 400, "unknown_field", "Only put has a value.");
    else if (o->has_args && (put || del))
        http_refuse(x, 400, "unknown_field", "put and delete have no args.");
    else if (timed && !put && !expire)
        http_refuse(x, 400, "unknown_field", "Only put and expire have a time.");
    else if (expire && !timed)
        http_refuse(x, 400, "missing_field", "expire needs a ttl, ttl_ms or expire_at.");
    else if (put)
        return http_value_of(x, o->has_value ? &o->value : NULL, o->type, o->encoded, &op->value);
    else if (!del && !expire && !persist)
        return read_command(x, o, op);
    return !x->refusal.status;
}

/* row_put, row_update, row_delete: what their rows and keys say is known when the table is. */
static bool read_row_op(struct http_call *x, const struct op_outline *o, struct http_op *op)
{
    static const char *const words[] = {
        [ROW_OP_PUT] = "row_put", [ROW_OP_UPDATE] = "row_update", [ROW_OP_DELETE] = "row_delete"};
    int kind = ROW_OP_PUT;
    while (kind <= ROW_OP_DELETE && !slice_eq(o->op, slice_str(words[kind])))
        kind++;
    op->kind = OP_ROW;
    op->argv[1] = o->table;
    op->row = (struct http_row_op){.kind = (enum row_op_kind)kind,
                                   .key = o->key,
                                   .row = o->row,
                                   .incr = o->incr,
                                   .expiry = op->value.expiry,
                                   .only = op->only};
    if (kind > ROW_OP_DELETE || o->has_value || o->has_args || o->type.p || o->encoded)
        http_refuse(x, 400, "unknown_field",
                    "Operations with a table are row_put, row_update and row_delete.");
    else if (o->has_key == (kind == ROW_OP_PUT))
        http_refuse(x, 400, o->has_key ? "unknown_field" : "missing_field",
                    "row_update and row_delete have a key, row_put has it in its row.");
    else if ((o->row.kind == JSON_OBJECT) == (kind == ROW_OP_DELETE) &&
             !(kind == ROW_OP_UPDATE && o->incr.kind))
        http_refuse(x, 400, kind == ROW_OP_DELETE ? "unknown_field" : "missing_field",
                    "row_put and row_update have a row, an object of columns.");
    else if (o->incr.kind && kind != ROW_OP_UPDATE)
        http_refuse(x, 400, "unknown_field", "Only row_update has incr.");
    return !x->refusal.status;
}

static bool read_op(struct http_call *x, const struct json *v, struct http_op *op)
{
    struct op_outline o = {.row = {.kind = JSON_NULL}, .incr = {.kind = JSON_NULL}};
    struct json_walk w;
    struct json member;
    struct slice name;
    *op = (struct http_op){.argv = {SLICE("http|operation")}};
    if (v->kind != JSON_OBJECT) {
        http_refuse(x, 400, "bad_value",
                    "An operation is an object such as {\"op\": \"delete\", \"key\": \"k\"}.");
        return false;
    }
    json_begin(&w, v);
    while (!x->refusal.status && json_next_member(&w, x->arena, &name, &member))
        read_member(x, name, &member, &o, op);
    if (x->refusal.status)
        return false;
    if (o.op.p && o.table.p)
        return read_row_op(x, &o, op);
    if (o.row.kind || o.incr.kind)
        http_refuse(x, 400, "missing_field", "An operation on a row needs a \"table\".");
    else if (!o.op.p || !o.has_key)
        http_refuse(x, 400, "missing_field", "An operation needs an \"op\" and a \"key\".");
    if (x->refusal.status)
        return false;
    return http_text(x, &o.key, "A key", o.encoded, &op->argv[1]) && fill_op(x, &o, op);
}

static bool read_ops(struct http_call *x, const struct json *list, struct http_batch *b)
{
    struct json_walk w;
    struct json v;
    size_t n = list->kind == JSON_ARRAY ? json_count(list) : 0;
    if (n == 0 || n > HTTP_MAX_OPERATIONS) {
        http_refuse(x, 400, "bad_value", "operations must be an array of 1 to %d operations.",
                    HTTP_MAX_OPERATIONS);
        return false;
    }
    b->ops = arena_alloc(x->arena, n * sizeof *b->ops);
    json_begin(&w, list);
    while (json_next_item(&w, &v)) {
        if (!read_op(x, &v, &b->ops[b->n])) {
            x->in_operation = true;
            x->operation = b->n;
            return false;
        }
        struct http_op *op = &b->ops[b->n++];
        bool writes = op->kind != OP_COMMAND || (op->cmd->flags & CMD_WRITE);
        x->writes |= writes;
        x->outside |= op->kind == OP_COMMAND && (op->cmd->flags & CMD_OUTSIDE);
        /* What may look through the rows of the batch cannot be undone without ending its transaction. */
        x->alone |= op->kind == OP_COMMAND;
    }
    return true;
}

static bool read_batch(struct http_call *x, const struct json *body, struct http_batch *b)
{
    struct json_walk w;
    struct json v, list = {JSON_NULL, {NULL, 0}};
    struct slice name;
    int64_t timeout = 0;
    json_begin(&w, body);
    while (!x->refusal.status && json_next_member(&w, x->arena, &name, &v)) {
        if (slice_eq(name, SLICE("operations")))
            list = v;
        else if (slice_eq(name, SLICE("atomic")))
            read_flag(x, &v, "atomic", &b->atomic);
        else if (slice_eq(name, SLICE("async")))
            read_flag(x, &v, "async", &b->async);
        else if (!slice_eq(name, SLICE("timeout_ms")))
            http_refuse(x, 400, "unknown_field",
                        "There is no field \"%.*s\" here: operations, atomic, async, timeout_ms.",
                        name.n < 64 ? (int)name.n : 64, name.p);
        else if (!json_i64(&v, &timeout) || timeout < 1 || timeout > HTTP_MAX_TIMEOUT_MS)
            http_refuse(x, 400, "bad_value", "timeout_ms must be a whole number from 1 to %d.",
                        HTTP_MAX_TIMEOUT_MS);
    }
    x->timeout_us = timeout * 1000;
    return !x->refusal.status && read_ops(x, &list, b);
}

void http_batch_prepare(struct http_api *api, struct http_call *x)
{
    struct http_batch *b = arena_alloc(x->arena, sizeof *b);
    struct json body;
    (void)api;
    *b = (struct http_batch){.atomic = true};
    if (!http_json_body(x, JSON_OBJECT, &body) || !read_batch(x, &body, b))
        return;
    x->alone &= b->atomic && b->n > 1;
    x->detail = b;
    x->argv = arena_alloc(x->arena, sizeof *x->argv);
    x->cmd = &http_batch_commands[BATCH];
    x->argv[0] = slice_str(x->cmd->name);
    x->argc = 1;
}

size_t http_declare_batch(const struct http_api *api, const struct http_call *x)
{
    const struct http_batch *b = x->detail;
    struct view *view = api->executor->view;
    size_t n = b->n;
    for (size_t i = 0; i < b->n; i++) {
        const struct http_op *op = &b->ops[i];
        if (op->kind == OP_COMMAND)
            n += declare_keys(view, x->db, op->cmd, op->words, op->nwords);
        else
            view_declare(view, x->db, op->argv[1]);
        if (op->kind != OP_COMMAND)
            view_declare_more(view, false);
    }
    return n;
}

/* ---- operations ---- */

bool http_conditions_hold(struct answer *a, const struct http_conditions *c, int64_t version,
                          const char *what)
{
    if ((c->if_absent && version) || (c->if_present && !version) ||
        (c->has_version && c->if_version != version)) {
        char text[64];
        (void)snprintf(text, sizeof text,
                       version ? "The %s has another version now." : "There is no such %s.", what);
        answer_error(a, 412, "precondition_failed", text);
        a->out->len--;
        buf_addf(a->out, ",\"version\":%lld}", (long long)version);
        return false;
    }
    return true;
}

static enum status put(struct call *c, const struct http_op *op, bool existed)
{
    struct answer *a = answer_of(c);
    const struct row *row;
    int64_t expire_at;
    if (!http_expiry_at(&op->value.expiry, view_now(c->view), &expire_at)) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already.");
        return ST_OK;
    }
    enum status st = http_value_put(c, c->argv[1], &op->value, expire_at);
    if (st != ST_OK || (st = view_get(c->view, call_db(c), c->argv[1], &row)) != ST_OK)
        return st;
    buf_addf(a->out, "{\"version\":%lld,\"created\":%s}", (long long)row->version,
             existed ? "false" : "true");
    return ST_OK;
}

static enum status expire(struct call *c, const struct http_op *op, const struct row *row)
{
    struct answer *a = answer_of(c);
    int64_t expire_at;
    bool ahead = http_expiry_at(&op->value.expiry, view_now(c->view), &expire_at);
    if (!ahead) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already: delete the key instead.");
        return ST_OK;
    }
    enum status st = ST_OK;
    if (row && row->expire_at != expire_at)
        st = view_expire(c->view, call_db(c), c->argv[1], expire_at);
    buf_addf(a->out, "{\"applied\":%s}", row ? "true" : "false");
    return st;
}

/* Strings of a result, which begins at `from` and has them in base64, become text; false: they are none. */
static bool write_texts(struct answer *a, size_t from)
{
    struct buf *out = a->out;
    struct slice bytes, coded = arena_copy(a->call->arena, slice_of(out->p + from, out->len - from));
    const char *p = coded.p, *end = coded.p + coded.n, *quote;
    out->len = from;
    while ((quote = memchr(p, '"', (size_t)(end - p)))) {
        const char *close = memchr(quote + 1, '"', (size_t)(end - quote - 1));
        buf_add(out, p, (size_t)(quote - p));
        if (!base64_decode(slice_of(quote + 1, (size_t)(close - quote - 1)), a->call->arena, &bytes) ||
            !json_add_string(out, bytes)) {
            out->len = from;
            buf_add_slice(out, coded);
            return false;
        }
        p = close + 1;
    }
    buf_add(out, p, (size_t)(end - p));
    return true;
}

/* A command cannot run again when its reply turns out not to be UTF-8, as our own documents are written
   again. So all strings are base64 at first. */
static enum status run_redis(struct call *c, const struct http_op *op)
{
    struct answer *a = answer_of(c);
    a->json.base64 = true;
    upstash_item_begin(a);
    size_t from = a->out->len;
    enum status st = command_run_inside(c, op->cmd, op->words, op->nwords);
    upstash_item_end(a);
    a->json.base64 = false;
    if (st != ST_OK || a->failed)
        return st;
    struct slice result = slice_of(a->out->p + from, a->out->len - from);
    bool strings = memchr(result.p, '"', result.n) && !slice_eq(result, SLICE("\"OK\"}"));
    if (strings && (op->encoded || !write_texts(a, from))) {
        a->out->len--;
        buf_add_slice(a->out, SLICE(",\"encoding\":\"base64\"}"));
    }
    return st;
}

/* One operation: its condition and its change in one step. */
static enum status operation(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct http_op *op = a->op;
    const struct row *row;
    int64_t version;
    bool existed;
    if (op->kind == OP_ROW)
        return http_run_row_op(c, &op->row);
    enum status st = http_find_row(c, &row, &version);
    if (st != ST_OK || !http_conditions_hold(a, &op->only, version, "key"))
        return st;
    switch (op->kind) {
    case OP_PUT:
        return put(c, op, row != NULL);
    case OP_DELETE:
        st = view_del(c->view, call_db(c), c->argv[1], &existed);
        buf_addf(a->out, "{\"deleted\":%s}", st == ST_OK && existed ? "true" : "false");
        return st;
    case OP_EXPIRE:
    case OP_PERSIST:
        return expire(c, op, row);
    default:
        return run_redis(c, op);
    }
}

/* ---- batches ---- */

/* The answer is what the operation failed with, and which one it was. */
static void fail_batch(struct answer *a, size_t i)
{
    size_t n = a->out->len - a->item;
    memmove(a->out->p + a->start, a->out->p + a->item, n);
    a->out->len = a->start + n - 1;
    buf_addf(a->out, ",\"operation\":%zu}", i);
    a->head.status = a->item_status;
}

/* The time that the batch was given has run out; what it did so far is not committed yet. */
static bool out_of_time(const struct call *c)
{
    const struct http_call *x = answer_of(c)->call;
    return x->timeout_us && c->executor->clock_us - x->received_us > x->timeout_us;
}

static enum status end_late(struct call *c, struct http_batch *b)
{
    struct answer *a = answer_of(c);
    b->late = c->undo = true;
    a->dialect = DIALECT_KEYS;
    answer_error(a, 503, "timeout", "The batch was not done within timeout_ms, and was undone.");
    return ST_OK;
}

static enum status batch(struct call *c)
{
    struct answer *a = answer_of(c);
    struct http_batch *b = a->call->detail;
    const struct command *one = &http_batch_commands[OPERATION];
    b->late = false;
    if (a->call->writes && c->write_err && c->write_err->code != ST_OK) {
        *c->err = *c->write_err;
        return c->write_err->code;
    }
    buf_add_slice(a->out, SLICE("{\"results\":["));
    a->dialect = DIALECT_BATCH;
    for (size_t i = 0; i < b->n; i++) {
        enum status st = ST_OK;
        if (i)
            buf_add(a->out, ",", 1);
        a->item = a->out->len;
        a->failed = false;
        a->op = &b->ops[i];
        if (i && out_of_time(c) && b->atomic)
            return end_late(c, b);
        if (i && out_of_time(c))
            answer_error(a, 503, "timeout", "The operation did not begin within timeout_ms.");
        else if (b->atomic)
            st = command_run_step(c, one, b->ops[i].argv, 2);
        else
            command_run_apart(c, one, b->ops[i].argv, 2);
        if (st != ST_OK || (a->failed && b->atomic)) {
            a->dialect = DIALECT_KEYS;
            c->undo = true;
            if (st == ST_OK)
                fail_batch(a, i);
            return st;
        }
    }
    if (b->atomic && out_of_time(c))
        return end_late(c, b);
    a->dialect = DIALECT_KEYS;
    buf_add_slice(a->out, SLICE("]}"));
    return ST_OK;
}

struct command_result http_run_batch(struct http_api *api, struct session *s, struct http_call *x,
                                     const struct error *write_err)
{
    const struct http_batch *b = x->detail;
    if (x->timeout_us && clock_mono_us() - x->received_us >= x->timeout_us) {
        answer_error(&api->answer, 503, "timeout",
                     "The batch could not begin within timeout_ms: nothing was done.");
        return (struct command_result){0};
    }
    if (b->async)
        return outcomes_run(api, s, x, write_err);
    struct command_result result = http_run_command(api, s, x, write_err);
    if (b->late) /* an answer that tells of nothing waits for nothing */
        result.ticket = 0;
    return result;
}

/* clang-format off */
const struct command http_batch_commands[] = {
    [BATCH] = {.name = "http|batch", .fn = batch, .arity = 1, .flags = CMD_SKIP_SLOWLOG, .group = "http"},
    [OPERATION] = {
        .name = "http|operation", .fn = operation, .arity = 2, .flags = CMD_WRITE,
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}, .group = "http",
    },
    {.name = NULL},
};
/* clang-format on */
