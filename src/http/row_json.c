/* Rows and keys of tables in JSON and in paths. TEXT is a string, BLOB a string in base64, BOOLEAN true or
   false, TIMESTAMP milliseconds, JSON itself. What is read may be text as well (value.h), so that a number
   beyond 2^53 and a date can be strings. */
#include "http/http_tables.h"

#include <stdio.h>

#include "command/table/table_common.h"
#include "proto/uri.h"

/* ---- answers ---- */

/* "index by_email: (7)" is told in parts, too. */
static void add_duplicate(struct buf *out, const char *text)
{
    const char *name = strncmp(text, "index ", 6) == 0 ? text + 6 : NULL;
    const char *colon = name ? strstr(name, ": ") : NULL;
    if (!colon)
        return;
    buf_add_slice(out, SLICE(",\"index\":"));
    json_add_lossy(out, slice_of(name, (size_t)(colon - name)));
    buf_add_slice(out, SLICE(",\"key\":"));
    json_add_lossy(out, slice_str(colon + 2));
}

void http_answer_fault(struct answer *a, const struct fault *f)
{
    char text[FAULT_CHARS + 2];
    (void)snprintf(text, sizeof text, "%s.", f->text);
    answer_error(a, fault_http_status(f->kind), fault_http_code(f->kind), text);
    if (f->kind != FAULT_DUPLICATE)
        return;
    a->out->len--;
    add_duplicate(a->out, f->text);
    buf_add(a->out, "}", 1);
}

void http_row_not_found(struct answer *a)
{
    answer_error(a, 404, "row_not_found", "There is no such row.");
}

enum status http_open_table(struct call *c, struct rows *ret, bool *ret_open)
{
    struct fault fault = {0};
    *ret = (struct rows){.catalog = call_catalog(c), .view = c->view, .arena = c->arena};
    enum status st = table_open(ret->catalog, c->view, call_db(c), c->argv[1], &ret->table, &fault);
    *ret_open = st == ST_OK && fault.kind == FAULT_NONE;
    if (st == ST_OK && !*ret_open)
        http_answer_fault(answer_of(c), &fault);
    return st;
}

/* ---- columns on their way out ---- */

static bool find_column(const struct schema *s, struct slice name, uint16_t *ret, struct fault *fault)
{
    int place = schema_column(s, name);
    *ret = place < 0 ? 0 : (uint16_t)place;
    return place >= 0 || fault_set(fault, FAULT_NO_COLUMN, "there is no column %.*s", FAULT_CUT(name));
}

bool http_read_select(const struct schema *s, struct slice names, struct arena *arena, uint16_t **ret,
                      size_t *ret_n, struct fault *fault)
{
    size_t most = s->ncolumns;
    for (size_t i = 0; i < names.n; i++)
        most += names.p[i] == ',';
    *ret = arena_alloc(arena, (most + 1) * sizeof **ret);
    *ret_n = 0;
    if (!names.p || slice_eq(names, SLICE("*"))) {
        for (size_t i = 0; i < s->ncolumns; i++)
            (*ret)[(*ret_n)++] = (uint16_t)i;
        return true;
    }
    for (const char *p = names.p, *end = names.p + names.n; p <= end;) {
        const char *comma = memchr(p, ',', (size_t)(end - p));
        size_t n = (size_t)((comma ? comma : end) - p);
        if (!find_column(s, slice_of(p, n), &(*ret)[(*ret_n)++], fault))
            return false;
        p += n + 1;
    }
    return true;
}

bool http_columns_of(const struct http_call *x, const struct schema *s, struct arena *arena,
                     struct http_columns *ret, struct fault *fault)
{
    ret->text = x->query[PARAM_INT64].p != NULL;
    return http_read_select(s, x->query[PARAM_SELECT], arena, &ret->at, &ret->n, fault);
}

void http_add_columns(struct buf *out, const struct schema *s, const struct value *values,
                      const struct http_columns *columns)
{
    for (size_t i = 0; i < columns->n; i++) {
        const struct column *c = &s->columns[columns->at[i]];
        const struct value *v = &values[columns->at[i]];
        buf_addf(out, "%s\"%.*s\":", i ? "," : "{", (int)c->name.n, c->name.p);
        if (v->kind == VALUE_INT && columns->text)
            buf_addf(out, "\"%lld\"", (long long)v->i);
        else
            value_add_json(out, c->type, v);
    }
    buf_add_slice(out, columns->n ? SLICE("}") : SLICE("{}"));
}

void http_add_table_row(struct buf *out, const struct schema *s, const struct table_row *row,
                        const struct http_columns *columns)
{
    struct http_writer w = {.out = out};
    buf_add_slice(out, SLICE("{\"row\":"));
    http_add_columns(out, s, row->values, columns);
    http_add_name(&w, "version");
    json_add_i64(out, row->version);
    http_add_name(&w, "expire_at");
    http_add_moment(&w, row->expire_at);
    buf_add(out, "}", 1);
}

/* ---- columns on their way in ---- */

static bool read_value(const struct column *c, const struct json *j, struct arena *arena, struct value *ret,
                       struct fault *fault)
{
    bool text = c->type == COLUMN_TEXT || c->type == COLUMN_BLOB;
    if (c->type == COLUMN_JSON && j->kind != JSON_NULL)
        return value_parse(c->type, c->name, j->text, arena, ret, fault);
    if (value_read_json(c->type, j, arena, ret))
        return true;
    if (column_kind(c->type) == VALUE_INT && j->kind == JSON_NUMBER && json_i64(j, &ret->i)) {
        struct value whole = {.kind = VALUE_INT, .i = ret->i};
        return value_convert(c->type, c->name, &whole, arena, ret, fault);
    }
    if (!text && j->kind == JSON_STRING)
        return value_parse(c->type, c->name, json_string(j, arena), arena, ret, fault);
    return fault_set(fault, FAULT_BAD_TYPE, "%.*s is %s: %.*s is not", FAULT_CUT(c->name),
                     c->type == COLUMN_BLOB ? "BLOB, a string in base64" : column_type_name(c->type),
                     FAULT_CUT(j->text));
}

struct row_write http_new_write(const struct schema *s, struct arena *arena)
{
    struct row_write w = {.values = arena_alloc(arena, s->ncolumns * sizeof *w.values),
                          .given = arena_alloc(arena, s->ncolumns * sizeof *w.given)};
    memset(w.values, 0, s->ncolumns * sizeof *w.values);
    memset(w.given, 0, s->ncolumns * sizeof *w.given);
    return w;
}

bool http_read_columns(const struct schema *s, const struct json *object, struct arena *arena,
                       struct row_write *ret, struct fault *fault)
{
    struct json_walk w;
    struct json v;
    struct slice name;
    uint16_t at;
    if (object->kind != JSON_OBJECT)
        return fault_set(fault, FAULT_BAD_TYPE, "a row is an object of columns, not %s",
                         json_kind_name(object->kind));
    json_begin(&w, object);
    while (json_next_member(&w, arena, &name, &v)) {
        if (!find_column(s, name, &at, fault) ||
            !read_value(&s->columns[at], &v, arena, &ret->values[at], fault))
            return false;
        if (ret->given[at])
            return fault_set(fault, FAULT_SYNTAX, "%.*s is there twice", FAULT_CUT(name));
        ret->given[at] = true;
    }
    return true;
}

/* ---- keys ---- */

static bool name_of(const struct schema *s, const struct value *values, struct arena *arena,
                    struct slice *ret, struct fault *fault)
{
    struct buf name = {0};
    bool good = rowcode_name(s, values, &name, fault);
    *ret = arena_copy(arena, buf_slice(&name));
    buf_release(&name);
    return good;
}

static bool wrong_count(const struct schema *s, struct fault *fault)
{
    return fault_set(fault, FAULT_SYNTAX,
                     "the primary key has %zu column%s: give their values with commas between them; a comma "
                     "within one is written %%2C",
                     s->nkey, s->nkey == 1 ? "" : "s");
}

bool http_key_of_path(const struct schema *s, struct slice coded, struct arena *arena, struct value *values,
                      struct slice *ret_name, struct fault *fault)
{
    const char *p = coded.p, *end = coded.p + coded.n;
    for (size_t i = 0; i < s->nkey; i++) {
        const struct column *c = &s->columns[s->key[i].column];
        const char *comma = p <= end ? memchr(p, ',', (size_t)(end - p)) : NULL;
        struct slice text = slice_of(p, (size_t)((comma ? comma : end) - p));
        if ((comma != NULL) != (i + 1 < s->nkey))
            return wrong_count(s, fault);
        (void)uri_decode(text, false, arena, &text); /* all of it was decoded before */
        if (!value_parse(c->type, c->name, text, arena, &values[s->key[i].column], fault))
            return false;
        p = comma ? comma + 1 : end;
    }
    return name_of(s, values, arena, ret_name, fault);
}

bool http_key_of_json(const struct schema *s, const struct json *key, struct arena *arena,
                      struct value *values, struct slice *ret_name, struct fault *fault)
{
    struct json_walk w;
    struct json v = *key;
    bool list = key->kind == JSON_ARRAY;
    if (list ? json_count(key) != s->nkey : s->nkey != 1)
        return wrong_count(s, fault);
    if (list)
        json_begin(&w, key);
    for (size_t i = 0; i < s->nkey; i++) {
        uint16_t at = s->key[i].column;
        if ((list && !json_next_item(&w, &v)) || !read_value(&s->columns[at], &v, arena, &values[at], fault))
            return false;
    }
    return name_of(s, values, arena, ret_name, fault);
}
