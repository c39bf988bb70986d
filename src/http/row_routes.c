/* Rows over HTTP: GET, PUT, PATCH and DELETE /tables/{table}/rows/{key}, POST /tables/{table}/rows. The
   version of a row is its ETag; conditions on it and the change that they allow are one step.

   Rows touched: the table's key row, which is read alone, the row and its entries. Many rows of one POST are
   one step and one commit, undone as a whole when one of them fails, unless atomic=false asks for each by
   itself: then those that fail are told, and have changed nothing. */
#include "http/http_tables.h"

#include "command/families.h"

/* In the order of the table below. */
enum { GET, PUT, PATCH, DELETE, POST };

/* ---- preparing ---- */

static void call_on_table(struct http_call *x, int which)
{
    http_key_call(x, &http_row_commands[which], x->path[0]);
}

void http_row_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (http_check_conditions(x))
        call_on_table(x, GET);
}

void http_row_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (http_check_conditions(x))
        call_on_table(x, DELETE);
}

/* The body and the expiry of a write. */
struct row_body {
    struct json json;
    struct http_expiry expiry;
    bool atomic, replace;
};

static struct row_body *read_body(struct http_call *x)
{
    struct row_body *b = arena_alloc(x->arena, sizeof *b);
    *b = (struct row_body){.atomic = true};
    x->detail = b;
    return http_check_conditions(x) && http_expiry_params(x, &b->expiry) ? b : NULL;
}

static void prepare_write(struct http_call *x, int which)
{
    struct row_body *b = read_body(x);
    if (b && http_json_body(x, JSON_OBJECT, &b->json))
        call_on_table(x, which);
}

void http_row_put(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare_write(x, PUT);
}

void http_row_patch(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare_write(x, PATCH);
}

void http_rows_post(struct http_api *api, struct http_call *x)
{
    struct row_body *b = read_body(x);
    (void)api;
    bool list = x->request.body.n && memchr("[ \t\r\n", x->request.body.p[0], 5);
    const char *why;
    size_t at;
    struct json any;
    if (list)
        list = json_check(x->request.body, &any, &why, &at) && any.kind == JSON_ARRAY;
    if (!b || !http_json_body(x, list ? JSON_ARRAY : JSON_OBJECT, &b->json))
        return;
    if (list && json_count(&b->json) > HTTP_MAX_OPERATIONS) {
        http_refuse(x, 413, "too_many_rows", "A request may have %d rows at most.", HTTP_MAX_OPERATIONS);
        return;
    }
    b->atomic = !slice_eq(x->query[PARAM_ATOMIC], SLICE("false"));
    b->replace = slice_eq(x->query[PARAM_REPLACE], SLICE("true"));
    x->alone = list && b->atomic;
    call_on_table(x, POST);
}

/* ---- one row ---- */

struct target {
    struct rows rows;
    struct http_columns columns;
    struct row_write write; /* has the key's values */
    struct slice name;
    bool found;
    struct table_row row;
};

/* The table, the columns that are told, the row as it stands. *ret_go is false: the answer is there. */
static enum status find_target(struct call *c, struct target *t, bool *ret_go)
{
    struct answer *a = answer_of(c);
    struct fault fault = {0};
    *t = (struct target){.found = false};
    enum status st = http_open_table(c, &t->rows, ret_go);
    if (st != ST_OK || !*ret_go)
        return st;
    const struct schema *s = &t->rows.table->schema;
    t->write = http_new_write(s, c->arena);
    *ret_go = http_columns_of(a->call, s, c->arena, &t->columns, &fault) &&
              http_key_of_path(s, a->call->coded[1], c->arena, t->write.values, &t->name, &fault);
    if (!*ret_go) {
        http_answer_fault(a, &fault);
        return ST_OK;
    }
    return rows_get(&t->rows, t->name, &t->found, &t->row);
}

static enum status get(struct call *c)
{
    struct answer *a = answer_of(c);
    struct target t;
    bool go;
    enum status st = find_target(c, &t, &go);
    if (st != ST_OK || !go)
        return st;
    if (!t.found) {
        http_row_not_found(a);
        return ST_OK;
    }
    if (!http_if_match(a, t.row.version))
        return ST_OK;
    a->head.version = t.row.version;
    struct slice none = a->call->request.headers[HTTP_IF_NONE_MATCH];
    if (none.p && http_tags_have(none, t.row.version, false, NULL)) {
        a->head.status = 304;
        a->head.content_type = NULL;
        return ST_OK;
    }
    http_add_table_row(a->out, &t.rows.table->schema, &t.row, &t.columns);
    return ST_OK;
}

/* What a body says of a row, and its expiry. False: the answer is there. */
static bool read_write(struct call *c, const struct row_body *b, const struct json *row,
                       const struct schema *s, struct row_write *w)
{
    struct answer *a = answer_of(c);
    struct fault fault = {0};
    if (!http_read_columns(s, row, c->arena, w, &fault)) {
        http_answer_fault(a, &fault);
        return false;
    }
    if (!http_expiry_at(&b->expiry, view_now(c->view), &w->expire_at)) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already.");
        return false;
    }
    return true;
}

/* A PUT's key is the path's: a body that has another one means something else. */
static bool takes_key(struct answer *a, const struct schema *s, const struct target *t, struct row_write *w)
{
    for (size_t i = 0; i < s->nkey; i++) {
        uint16_t at = s->key[i].column;
        if (w->given[at] && value_compare(&w->values[at], &t->write.values[at]) != 0) {
            answer_error(a, 400, "bad_value", "The row in the body has another key than the path.");
            return false;
        }
        w->values[at] = t->write.values[at];
        w->given[at] = true;
    }
    return true;
}

/* Tells the row as it is now. */
static enum status tell_row(struct answer *a, struct target *t, int status)
{
    enum status st = rows_get(&t->rows, t->name, &t->found, &t->row);
    if (st != ST_OK)
        return st;
    a->head.status = status;
    a->head.version = t->row.version;
    http_add_table_row(a->out, &t->rows.table->schema, &t->row, &t->columns);
    return ST_OK;
}

/* Whether a write was made; a fault is the answer. */
static bool was_made(struct answer *a, enum status st, const struct fault *fault)
{
    if (st == ST_OK && fault->kind != FAULT_NONE)
        http_answer_fault(a, fault);
    return st == ST_OK && fault->kind == FAULT_NONE;
}

/* All that a PUT or a PATCH (of a row that is there) has to know and to be allowed. *ret_go is false: the
   answer is there. */
static enum status begin_write(struct call *c, bool patches, struct target *t, struct row_write *w,
                               bool *ret_go)
{
    struct answer *a = answer_of(c);
    const struct row_body *b = a->call->detail;
    enum status st = find_target(c, t, ret_go);
    if (st != ST_OK || !*ret_go)
        return st;
    const struct schema *s = &t->rows.table->schema;
    *w = http_new_write(s, c->arena);
    *ret_go = false;
    if (patches && !t->found && !a->call->request.headers[HTTP_IF_MATCH].p)
        http_row_not_found(a);
    else
        *ret_go = read_write(c, b, &b->json, s, w) && (patches || takes_key(a, s, t, w)) &&
                  http_may_change(a, t->found ? t->row.version : 0);
    w->keep_expiry = patches && b->expiry.kind == EXPIRY_NONE;
    return ST_OK;
}

static enum status put(struct call *c)
{
    struct answer *a = answer_of(c);
    struct target t;
    struct row_write w;
    struct fault fault = {0};
    enum row_outcome outcome;
    bool go;
    enum status st = begin_write(c, false, &t, &w, &go);
    if (st != ST_OK || !go)
        return st;
    st = rows_put(&t.rows, &w, &outcome, NULL, &fault);
    return was_made(a, st, &fault) ? tell_row(a, &t, outcome == ROW_NEW ? 201 : 200) : st;
}

static enum status patch(struct call *c)
{
    struct answer *a = answer_of(c);
    struct target t;
    struct row_write w;
    struct fault fault = {0};
    enum row_outcome done;
    bool go;
    enum status st = begin_write(c, true, &t, &w, &go);
    if (st != ST_OK || !go)
        return st;
    st = rows_update(&t.rows, t.name, &w, &done, &t.row, &fault);
    if (!was_made(a, st, &fault))
        return st;
    a->head.version = t.row.version;
    http_add_table_row(a->out, &t.rows.table->schema, &t.row, &t.columns);
    return ST_OK;
}

static enum status delete_row(struct call *c)
{
    struct answer *a = answer_of(c);
    struct target t;
    enum row_outcome outcome;
    bool go;
    enum status st = find_target(c, &t, &go);
    if (st != ST_OK || !go)
        return st;
    if (!t.found && !a->call->request.headers[HTTP_IF_MATCH].p) {
        http_row_not_found(a);
        return ST_OK;
    }
    if (!http_may_change(a, t.found ? t.row.version : 0))
        return ST_OK;
    st = rows_delete(&t.rows, t.name, ROW_ALWAYS, 0, &outcome);
    buf_add_slice(a->out, SLICE("{\"deleted\":true}"));
    return st;
}

/* ---- many rows ---- */

static void refuse_duplicate(const struct schema *s, const struct value *values, struct fault *fault)
{
    struct buf key = {0};
    for (size_t i = 0; i < s->nkey; i++) {
        buf_add_slice(&key, i ? SLICE(", ") : SLICE(""));
        value_print(&key, s->columns[s->key[i].column].type, &values[s->key[i].column]);
    }
    fault_set(fault, FAULT_DUPLICATE, "index PRIMARY KEY: (%.*s)", FAULT_CUT(buf_slice(&key)));
    buf_release(&key);
}

/* One row of a POST; a fault leaves no trace. */
static enum status post_row(struct call *c, struct rows *r, const struct json *row, struct row_write *w,
                            enum row_outcome *ret, int64_t *ret_version, struct fault *fault)
{
    const struct row_body *b = answer_of(c)->call->detail;
    const struct schema *s = &r->table->schema;
    *w = http_new_write(s, c->arena);
    w->condition = b->replace ? ROW_ALWAYS : ROW_IF_NEW;
    if (!http_read_columns(s, row, c->arena, w, fault))
        return ST_OK;
    if (!http_expiry_at(&b->expiry, view_now(c->view), &w->expire_at)) {
        fault_set(fault, FAULT_SYNTAX, "expire_at has passed already");
        return ST_OK;
    }
    enum status st = rows_put(r, w, ret, ret_version, fault);
    if (st == ST_OK && fault->kind == FAULT_NONE && *ret == ROW_NOT_MET)
        refuse_duplicate(s, w->values, fault);
    return st;
}

static enum status post_one(struct call *c, struct rows *r, const struct row_body *b)
{
    struct answer *a = answer_of(c);
    const struct schema *s = &r->table->schema;
    struct target t = {.rows = *r};
    struct row_write w;
    enum row_outcome outcome = ROW_NOT_MET;
    struct fault fault = {0};
    int64_t version;
    struct buf name = {0};
    if (!http_columns_of(a->call, s, c->arena, &t.columns, &fault)) {
        http_answer_fault(a, &fault);
        return ST_OK;
    }
    enum status st = post_row(c, r, &b->json, &w, &outcome, &version, &fault);
    if (st == ST_OK && fault.kind == FAULT_NONE && rowcode_name(s, w.values, &name, &fault)) {
        t.name = arena_copy(c->arena, buf_slice(&name));
        st = tell_row(a, &t, outcome == ROW_NEW ? 201 : 200);
    }
    buf_release(&name);
    if (st == ST_OK && fault.kind != FAULT_NONE)
        http_answer_fault(a, &fault);
    return st;
}

/* One of many has failed: all of them have, or this one alone. Returns whether the others go on. */
static bool fail_one(struct call *c, const struct row_body *b, size_t i, const struct fault *fault)
{
    struct answer *a = answer_of(c);
    if (!b->atomic) {
        a->dialect = DIALECT_BATCH;
        http_answer_fault(a, fault);
        a->dialect = DIALECT_KEYS;
        return true;
    }
    c->undo = true;
    http_answer_fault(a, fault);
    a->out->len--;
    buf_addf(a->out, ",\"row\":%zu}", i);
    return false;
}

static enum status post_many(struct call *c, struct rows *r, const struct row_body *b)
{
    struct answer *a = answer_of(c);
    struct json_walk walk;
    struct json row;
    size_t n = 0;
    json_begin(&walk, &b->json);
    buf_add_slice(a->out, SLICE("{\"results\":["));
    for (; json_next_item(&walk, &row); n++) {
        struct fault fault = {0};
        struct row_write w;
        enum row_outcome outcome = ROW_NOT_MET;
        int64_t version = 0;
        enum status st = post_row(c, r, &row, &w, &outcome, &version, &fault);
        if (st != ST_OK)
            return st;
        if (n)
            buf_add(a->out, ",", 1);
        a->item = a->out->len;
        if (fault.kind == FAULT_NONE)
            buf_addf(a->out, "{\"version\":%lld,\"created\":%s}", (long long)version,
                     outcome == ROW_NEW ? "true" : "false");
        else if (!fail_one(c, b, n, &fault))
            return ST_OK;
    }
    buf_add_slice(a->out, SLICE("]}"));
    return ST_OK;
}

static enum status post(struct call *c)
{
    const struct row_body *b = answer_of(c)->call->detail;
    struct rows r;
    bool open;
    enum status st = http_open_table(c, &r, &open);
    if (st != ST_OK || !open)
        return st;
    return b->json.kind == JSON_ARRAY ? post_many(c, &r, b) : post_one(c, &r, b);
}

/* clang-format off */
#define READS_TABLE  {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}
#define WRITES_TABLE {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}
const struct command http_row_commands[] = {
    [GET] = {.name = "http|getrow", .fn = get, .arity = 2, .flags = CMD_READONLY, .keys = READS_TABLE, .group = "http"},
    [PUT] = {.name = "http|putrow", .fn = put, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM, .keys = WRITES_TABLE,
             .group = "http"},
    [PATCH] = {.name = "http|patchrow", .fn = patch, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM, .keys = WRITES_TABLE,
               .group = "http"},
    [DELETE] = {.name = "http|deleterow", .fn = delete_row, .arity = 2, .flags = CMD_WRITE, .keys = WRITES_TABLE,
                .group = "http"},
    [POST] = {.name = "http|postrows", .fn = post, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM, .keys = WRITES_TABLE,
              .group = "http"},
    {.name = NULL},
};
/* clang-format on */
