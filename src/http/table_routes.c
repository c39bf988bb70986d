/* Tables over HTTP: GET /tables; GET, PUT, PATCH and DELETE /tables/{table}. What changes a table is the
   command of RESP that does so, run within the request: TABLE.CREATE, TABLE.ALTER, TABLE.DROP. A table's ETag
   is its version, which its rows do not change. */
#include "http/http_tables.h"

#include "command/families.h"
#include "command/table/table_common.h"
#include "table/text/ddl.h"

/* In the order of the table below. */
enum { LIST, GET, PUT, PATCH, DELETE };

/* What the body of a PUT or a PATCH says. */
struct table_body {
    struct slice schema, prefix, alter; /* p is NULL: not there */
};

/* ---- preparing ---- */

static void read_member(struct http_call *x, struct slice name, const struct json *v, struct table_body *b)
{
    struct slice *to = slice_eq(name, SLICE("schema"))   ? &b->schema
                       : slice_eq(name, SLICE("prefix")) ? &b->prefix
                       : slice_eq(name, SLICE("alter"))  ? &b->alter
                                                         : NULL;
    bool mine = to && (x->request.method == HTTP_PATCH) == (to == &b->alter);
    if (!mine)
        http_refuse(x, 400, "unknown_field", "There is no field \"%.*s\" here.", FAULT_CUT(name));
    else if (v->kind != JSON_STRING)
        http_refuse(x, 400, "bad_value", "%.*s must be a string.", FAULT_CUT(name));
    else
        *to = json_string(v, x->arena);
}

static void prepare(struct http_call *x, int which, const char *needed)
{
    struct table_body *b = arena_alloc(x->arena, sizeof *b);
    struct json body, v;
    struct json_walk w;
    struct slice name;
    *b = (struct table_body){0};
    x->detail = b;
    if (!http_check_conditions(x))
        return;
    if (needed) {
        if (!http_json_body(x, JSON_OBJECT, &body))
            return;
        json_begin(&w, &body);
        while (!x->refusal.status && json_next_member(&w, x->arena, &name, &v))
            read_member(x, name, &v, b);
        if (!x->refusal.status && !(which == PUT ? b->schema.p : b->alter.p))
            http_refuse(x, 400, "missing_field", "The body needs \"%s\", a string.", needed);
    }
    http_key_call(x, &http_table_commands[which], x->path[0]);
}

void http_table_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare(x, GET, NULL);
}

void http_table_put(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare(x, PUT, "schema");
}

void http_table_patch(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare(x, PATCH, "alter");
}

void http_table_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    prepare(x, DELETE, NULL);
}

void http_tables_list(struct http_api *api, struct http_call *x)
{
    (void)api;
    x->cmd = &http_table_commands[LIST];
    x->argv = arena_alloc(x->arena, sizeof *x->argv);
    x->argv[0] = slice_str(x->cmd->name);
    x->argc = 1;
}

/* ---- what a table is ---- */

static void add_text(struct http_writer *w, const char *name, struct slice text)
{
    http_add_name(w, name);
    json_add_lossy(w->out, text);
}

static void add_flag(struct http_writer *w, const char *name, bool on)
{
    http_add_name(w, name);
    buf_add_slice(w->out, on ? SLICE("true") : SLICE("false"));
}

static void begin_item(struct buf *out, size_t i)
{
    buf_add_slice(out, i ? SLICE(",{") : SLICE("{"));
}

static void add_columns(struct http_writer *w, const struct schema *s)
{
    http_add_name(w, "columns");
    buf_add(w->out, "[", 1);
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        begin_item(w->out, i);
        add_text(w, "name", c->name);
        add_text(w, "type", slice_str(column_type_name(c->type)));
        add_flag(w, "not_null", c->not_null);
        http_add_name(w, "default");
        value_add_json(w->out, c->type, &c->default_value);
        buf_add(w->out, "}", 1);
    }
    buf_add(w->out, "]", 1);
}

static void add_parts(struct http_writer *w, const char *name, const struct schema *s,
                      const struct key_part *parts, size_t n)
{
    http_add_name(w, name);
    buf_add(w->out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        begin_item(w->out, i);
        add_text(w, "column", s->columns[parts[i].column].name);
        add_flag(w, "desc", parts[i].desc);
        buf_add(w->out, "}", 1);
    }
    buf_add(w->out, "]", 1);
}

static void add_indexes(struct http_writer *w, const struct schema *s)
{
    static const char *const states[] = {
        [INDEX_READY] = "ready", [INDEX_BUILDING] = "building", [INDEX_FAILED] = "failed"};
    http_add_name(w, "indexes");
    buf_add(w->out, "[", 1);
    for (size_t i = 0; i < s->nindexes; i++) {
        const struct table_index *x = &s->indexes[i];
        begin_item(w->out, i);
        add_text(w, "name", x->name);
        add_flag(w, "unique", x->unique);
        add_parts(w, "columns", s, x->parts, x->nparts);
        add_text(w, "state", slice_str(states[x->state]));
        if (x->state == INDEX_FAILED)
            add_text(w, "error", x->error);
        buf_add(w->out, "}", 1);
    }
    buf_add(w->out, "]", 1);
}

static void add_table(struct answer *a, const struct table *t)
{
    const struct schema *s = &t->schema;
    struct http_writer w = {.out = a->out};
    a->head.version = t->version;
    buf_add(a->out, "{", 1);
    add_text(&w, "table", t->name);
    add_columns(&w, s);
    add_parts(&w, "key", s, s->key, s->nkey);
    add_indexes(&w, s);
    http_add_name(&w, "checks");
    buf_add(a->out, "[", 1);
    for (size_t i = 0; i < s->nchecks; i++) {
        buf_add_slice(a->out, i ? SLICE(",") : SLICE(""));
        json_add_lossy(a->out, s->checks[i]);
    }
    buf_add(a->out, "]", 1);
    if (s->on_hashes)
        add_text(&w, "prefix", s->prefix);
    http_add_name(&w, "version");
    json_add_i64(a->out, t->version);
    http_add_name(&w, "expire_at");
    http_add_moment(&w, t->expire_at);
    buf_add(a->out, "}", 1);
}

/* ---- running ---- */

struct names {
    struct buf *out;
    size_t n;
};

static enum status add_table_name(void *arg, struct slice name)
{
    struct names *x = arg;
    buf_add_slice(x->out, x->n++ ? SLICE(",") : SLICE(""));
    json_add_lossy(x->out, name);
    return ST_OK;
}

static enum status list(struct call *c)
{
    struct answer *a = answer_of(c);
    struct names x = {.out = a->out};
    buf_add_slice(a->out, SLICE("{\"tables\":["));
    enum status st = table_each(call_catalog(c), c->view, call_db(c), add_table_name, &x);
    buf_add_slice(a->out, SLICE("]}"));
    return st;
}

static enum status get(struct call *c)
{
    struct answer *a = answer_of(c);
    struct rows r;
    bool open;
    enum status st = http_open_table(c, &r, &open);
    if (st != ST_OK || !open || !http_if_match(a, r.table->version))
        return st;
    struct slice none = a->call->request.headers[HTTP_IF_NONE_MATCH];
    if (none.p && http_tags_have(none, r.table->version, false, NULL)) {
        a->head.version = r.table->version;
        a->head.status = 304;
        a->head.content_type = NULL;
        return ST_OK;
    }
    add_table(a, &r.table[0]);
    return ST_OK;
}

/* Runs a command of RESP; what it has to say if all is well is left out. *ret_done is false: its error is the
   answer. */
static enum status run(struct call *c, const struct slice *argv, int argc, bool *ret_done)
{
    struct answer *a = answer_of(c);
    size_t start = a->out->len;
    uint64_t errors = c->reply->errors;
    json_reply_begin(&a->json, a->out, false);
    enum status st = command_run_inside(c, command_find(argv[0]), argv, argc);
    json_reply_end(&a->json);
    *ret_done = st == ST_OK && c->reply->errors == errors;
    if (*ret_done)
        a->out->len = start;
    return st;
}

static bool same_columns(const struct schema *x, const struct schema *y)
{
    bool same = x->ncolumns == y->ncolumns;
    for (size_t i = 0; same && i < x->ncolumns; i++) {
        const struct column *one = &x->columns[i], *other = &y->columns[i];
        same = slice_eq(one->name, other->name) && one->type == other->type &&
               one->not_null == other->not_null &&
               value_compare(&one->default_value, &other->default_value) == 0;
    }
    return same;
}

static bool same_parts(const struct key_part *x, size_t nx, const struct key_part *y, size_t ny)
{
    bool same = nx == ny;
    for (size_t i = 0; same && i < nx; i++)
        same = x[i].column == y[i].column && x[i].desc == y[i].desc;
    return same;
}

/* Whether two texts would make the same table; what became of its indexes is not asked. */
static bool same_schema(const struct schema *x, const struct schema *y)
{
    bool same = same_columns(x, y) && same_parts(x->key, x->nkey, y->key, y->nkey) &&
                x->nindexes == y->nindexes && x->nchecks == y->nchecks && x->on_hashes == y->on_hashes &&
                slice_eq(x->prefix, y->prefix);
    for (size_t i = 0; same && i < x->nindexes; i++) {
        const struct table_index *one = &x->indexes[i], *other = &y->indexes[i];
        same = slice_eq(one->name, other->name) && one->unique == other->unique &&
               same_parts(one->parts, one->nparts, other->parts, other->nparts);
    }
    for (size_t i = 0; same && i < x->nchecks; i++)
        same = slice_eq(x->checks[i], y->checks[i]);
    return same;
}

/* A table that is there is as good as a new one if it is the same; else it stays. */
static void compare(struct call *c, const struct table *t, const struct table_body *b)
{
    struct answer *a = answer_of(c);
    struct fault fault = {0};
    struct schema asked;
    if (!ddl_table(b->schema, b->prefix.p ? &b->prefix : NULL, c->arena, &asked, &fault)) {
        http_answer_fault(a, &fault);
        return;
    }
    if (same_schema(&t->schema, &asked))
        add_table(a, t);
    else
        answer_error(a, 409, "table_exists", "There is such a table, and it is another: PATCH changes it.");
}

static enum status tell(struct call *c, int status)
{
    struct answer *a = answer_of(c);
    struct rows r;
    bool open;
    enum status st = http_open_table(c, &r, &open);
    if (st == ST_OK && open) {
        a->head.status = status;
        add_table(a, r.table);
    }
    return st;
}

/* The table, or NULL. *ret_go is false: the answer is there. */
static enum status find_table(struct call *c, bool must_be, const struct table **ret, bool *ret_go)
{
    struct answer *a = answer_of(c);
    struct fault fault = {0};
    *ret = NULL;
    enum status st = table_open(call_catalog(c), c->view, call_db(c), c->argv[1], ret, &fault);
    *ret_go = st == ST_OK && (fault.kind == FAULT_NONE || (fault.kind == FAULT_NO_TABLE && !must_be));
    if (fault.kind != FAULT_NONE)
        *ret = NULL;
    if (st == ST_OK && !*ret_go)
        http_answer_fault(a, &fault);
    else if (*ret_go)
        *ret_go = http_may_change(a, *ret ? (*ret)->version : 0);
    return st;
}

static enum status put(struct call *c)
{
    const struct table_body *b = answer_of(c)->call->detail;
    const struct table *t;
    struct slice argv[] = {SLICE("table.create"), c->argv[1],      b->schema, SLICE("ON"),
                           SLICE("HASH"),         SLICE("PREFIX"), b->prefix};
    bool go;
    enum status st = find_table(c, false, &t, &go);
    if (st != ST_OK || !go)
        return st;
    if (t) {
        compare(c, t, b);
        return ST_OK;
    }
    st = run(c, argv, b->prefix.p ? 7 : 3, &go);
    return st == ST_OK && go ? tell(c, 201) : st;
}

static enum status patch(struct call *c)
{
    const struct table_body *b = answer_of(c)->call->detail;
    const struct table *t;
    struct slice argv[] = {SLICE("table.alter"), c->argv[1], b->alter};
    bool go;
    enum status st = find_table(c, true, &t, &go);
    if (st == ST_OK && go)
        st = run(c, argv, 3, &go);
    return st == ST_OK && go ? tell(c, 200) : st;
}

static enum status delete_table(struct call *c)
{
    const struct table *t;
    struct slice argv[] = {SLICE("table.drop"), c->argv[1]};
    bool go;
    enum status st = find_table(c, true, &t, &go);
    if (st == ST_OK && go)
        st = run(c, argv, 2, &go);
    if (st == ST_OK && go)
        buf_add_slice(answer_of(c)->out, SLICE("{\"deleted\":true}"));
    return st;
}

/* clang-format off */
#define WRITES_TABLE {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}
const struct command http_table_commands[] = {
    [LIST] = {.name = "http|tables", .fn = list, .arity = 1, .flags = CMD_READONLY, .group = "http"},
    [GET] = {.name = "http|table", .fn = get, .arity = 2, .flags = CMD_READONLY,
             .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .group = "http"},
    [PUT] = {.name = "http|puttable", .fn = put, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM, .keys = WRITES_TABLE,
             .group = "http"},
    [PATCH] = {.name = "http|patchtable", .fn = patch, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM,
               .keys = WRITES_TABLE, .group = "http"},
    [DELETE] = {.name = "http|deletetable", .fn = delete_table, .arity = 2, .flags = CMD_WRITE, .keys = WRITES_TABLE,
                .group = "http"},
    {.name = NULL},
};
/* clang-format on */
