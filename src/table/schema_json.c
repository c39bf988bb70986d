/* Schemas as JSON: how they lie in the value of a table's key row. */
#include <stdlib.h>

#include "proto/json.h"
#include "table/schema_internal.h"

/* ---- writing ---- */

static const char *const state_names[] = {
    [INDEX_READY] = "ready", [INDEX_BUILDING] = "building", [INDEX_FAILED] = "failed"};

static void add_column(struct buf *out, const struct column *c)
{
    buf_addf(out, "{\"id\":%d,\"name\":", c->id);
    json_add_lossy(out, c->name);
    buf_addf(out, ",\"type\":\"%s\"", column_type_name(c->type));
    if (c->not_null)
        buf_addf(out, ",\"not_null\":true");
    if (c->has_default) {
        buf_addf(out, ",\"default\":");
        value_add_json(out, c->type, &c->default_value);
    }
    if (c->missing.kind != VALUE_NULL) {
        buf_addf(out, ",\"missing\":");
        value_add_json(out, c->type, &c->missing);
    }
    buf_add(out, "}", 1);
}

static void add_parts(struct buf *out, const struct schema *s, const struct key_part *parts, size_t n)
{
    buf_add(out, "[", 1);
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%s{\"column\":%d%s}", i ? "," : "", s->columns[parts[i].column].id,
                 parts[i].desc ? ",\"desc\":true" : "");
    buf_add(out, "]", 1);
}

static void add_index(struct buf *out, const struct schema *s, const struct table_index *x)
{
    buf_addf(out, "{\"number\":%d,\"name\":", x->number);
    json_add_lossy(out, x->name);
    if (x->unique)
        buf_addf(out, ",\"unique\":true");
    buf_addf(out, ",\"parts\":");
    add_parts(out, s, x->parts, x->nparts);
    if (x->state != INDEX_READY)
        buf_addf(out, ",\"state\":\"%s\"", state_names[x->state]);
    if (x->error.n) {
        buf_addf(out, ",\"error\":");
        json_add_lossy(out, x->error);
    }
    buf_add(out, "}", 1);
}

void schema_encode(const struct schema *s, struct buf *out)
{
    buf_addf(out, "{\"format\":1,\"columns\":[");
    for (size_t i = 0; i < s->ncolumns; i++) {
        if (i)
            buf_add(out, ",", 1);
        add_column(out, &s->columns[i]);
    }
    buf_addf(out, "],\"key\":");
    add_parts(out, s, s->key, s->nkey);
    buf_addf(out, ",\"indexes\":[");
    for (size_t i = 0; i < s->nindexes; i++) {
        if (i)
            buf_add(out, ",", 1);
        add_index(out, s, &s->indexes[i]);
    }
    buf_addf(out, "],\"checks\":[");
    for (size_t i = 0; i < s->nchecks; i++) {
        if (i)
            buf_add(out, ",", 1);
        json_add_lossy(out, s->checks[i]);
    }
    buf_addf(out, "],\"next_column\":%d,\"next_index\":%d", s->next_column, s->next_index);
    if (s->on_hashes) {
        /* A key's bytes need not be UTF-8. */
        buf_addf(out, ",\"prefix\":");
        if (!json_add_string(out, s->prefix)) {
            buf_addf(out, "{\"base64\":");
            json_add_base64(out, s->prefix);
            buf_add(out, "}", 1);
        }
    }
    buf_add(out, "}", 1);
}

/* ---- reading ---- */

struct reader {
    struct arena *arena;
    struct schema *s;
    bool wrong; /* something was not as it is written above */
};

/* A member must be what is expected of it; what it is then matters no more when it is not. */
static bool expect(struct reader *r, bool ok)
{
    r->wrong = r->wrong || !ok;
    return ok;
}

static uint16_t read_number(struct reader *r, const struct json *j)
{
    int64_t v = 0;
    expect(r, json_i64(j, &v) && v >= 0 && v <= SCHEMA_NUMBER_MAX + 1);
    return (uint16_t)v;
}

static struct slice read_text(struct reader *r, const struct json *j)
{
    return expect(r, j->kind == JSON_STRING) ? json_string(j, r->arena) : SLICE("");
}

static bool read_true(struct reader *r, const struct json *j)
{
    return expect(r, j->kind == JSON_TRUE);
}

/* Room for an array's items, zeroed. */
static void *room(struct reader *r, const struct json *j, size_t size, size_t *ret_n)
{
    *ret_n = 0;
    if (!expect(r, j->kind == JSON_ARRAY))
        return NULL;
    *ret_n = json_count(j);
    void *items = arena_alloc(r->arena, *ret_n * size + 1);
    memset(items, 0, *ret_n * size);
    return items;
}

static void read_column(struct reader *r, const struct json *j, struct column *c)
{
    struct json_walk w;
    struct slice name;
    struct json v, def = {0}, missing = {0};
    bool has_missing = false, has_type = false;
    if (!expect(r, j->kind == JSON_OBJECT))
        return;
    for (json_begin(&w, j); json_next_member(&w, r->arena, &name, &v);) {
        if (slice_eq(name, SLICE("id"))) {
            c->id = read_number(r, &v);
        } else if (slice_eq(name, SLICE("name"))) {
            c->name = read_text(r, &v);
        } else if (slice_eq(name, SLICE("type"))) {
            has_type = expect(r, column_type_find(read_text(r, &v), &c->type));
        } else if (slice_eq(name, SLICE("not_null"))) {
            c->not_null = read_true(r, &v);
        } else if (slice_eq(name, SLICE("default"))) {
            def = v;
            c->has_default = true;
        } else if (slice_eq(name, SLICE("missing"))) {
            missing = v;
            has_missing = true;
        } else {
            expect(r, false);
        }
    }
    if (!expect(r, has_type))
        return;
    if (c->has_default)
        expect(r, value_read_json(c->type, &def, r->arena, &c->default_value));
    if (has_missing)
        expect(r, value_read_json(c->type, &missing, r->arena, &c->missing));
}

static void read_columns(struct reader *r, const struct json *j)
{
    struct json_walk w;
    struct json v;
    size_t n, i = 0;
    struct column *columns = room(r, j, sizeof *columns, &n);
    if (!columns || !expect(r, n <= SCHEMA_COLUMNS_MAX))
        return;
    for (json_begin(&w, j); json_next_item(&w, &v);)
        read_column(r, &v, &columns[i++]);
    r->s->columns = columns;
    r->s->ncolumns = n;
}

/* The place of the column with an id. */
static uint16_t place_of(struct reader *r, uint16_t id)
{
    size_t i = 0;
    while (i < r->s->ncolumns && r->s->columns[i].id != id)
        i++;
    expect(r, i < r->s->ncolumns);
    return (uint16_t)i;
}

static struct key_part *read_parts(struct reader *r, const struct json *j, size_t *ret_n)
{
    struct json_walk w, inner;
    struct json item, v;
    struct slice name;
    size_t n = 0;
    struct key_part *parts = room(r, j, sizeof *parts, ret_n);
    if (!parts || !expect(r, *ret_n <= SCHEMA_PARTS_MAX)) {
        *ret_n = 0;
        return parts;
    }
    for (json_begin(&w, j); json_next_item(&w, &item); n++) {
        if (!expect(r, item.kind == JSON_OBJECT))
            break;
        for (json_begin(&inner, &item); json_next_member(&inner, r->arena, &name, &v);) {
            if (slice_eq(name, SLICE("column")))
                parts[n].column = read_number(r, &v);
            else if (slice_eq(name, SLICE("desc")))
                parts[n].desc = read_true(r, &v);
            else
                expect(r, false);
        }
        parts[n].column = place_of(r, parts[n].column);
    }
    return parts;
}

static enum index_state read_state(struct reader *r, const struct json *j)
{
    struct slice name = read_text(r, j);
    for (int i = INDEX_READY; i <= INDEX_FAILED; i++)
        if (slice_eq(name, slice_str(state_names[i])))
            return (enum index_state)i;
    expect(r, false);
    return INDEX_FAILED;
}

static void read_index(struct reader *r, const struct json *j, struct table_index *x)
{
    struct json_walk w;
    struct slice name;
    struct json v;
    if (!expect(r, j->kind == JSON_OBJECT))
        return;
    for (json_begin(&w, j); json_next_member(&w, r->arena, &name, &v);) {
        if (slice_eq(name, SLICE("number")))
            x->number = read_number(r, &v);
        else if (slice_eq(name, SLICE("name")))
            x->name = read_text(r, &v);
        else if (slice_eq(name, SLICE("unique")))
            x->unique = read_true(r, &v);
        else if (slice_eq(name, SLICE("parts")))
            x->parts = read_parts(r, &v, &x->nparts);
        else if (slice_eq(name, SLICE("state")))
            x->state = read_state(r, &v);
        else if (slice_eq(name, SLICE("error")))
            x->error = read_text(r, &v);
        else
            expect(r, false);
    }
}

static void read_indexes(struct reader *r, const struct json *j)
{
    struct json_walk w;
    struct json v;
    size_t n, i = 0;
    struct table_index *indexes = room(r, j, sizeof *indexes, &n);
    if (!indexes || !expect(r, n <= SCHEMA_INDEXES_MAX))
        return;
    for (json_begin(&w, j); json_next_item(&w, &v);)
        read_index(r, &v, &indexes[i++]);
    r->s->indexes = indexes;
    r->s->nindexes = n;
}

static void read_checks(struct reader *r, const struct json *j)
{
    struct json_walk w;
    struct json v;
    size_t i = 0;
    r->s->checks = room(r, j, sizeof *r->s->checks, &r->s->nchecks);
    if (!r->s->checks)
        return;
    for (json_begin(&w, j); json_next_item(&w, &v);)
        r->s->checks[i++] = read_text(r, &v);
}

static void read_prefix(struct reader *r, const struct json *j)
{
    struct json_walk w;
    struct slice name;
    struct json v;
    r->s->on_hashes = true;
    if (j->kind != JSON_OBJECT) {
        r->s->prefix = read_text(r, j);
        return;
    }
    struct value bytes = {0};
    json_begin(&w, j);
    if (expect(r, json_next_member(&w, r->arena, &name, &v) && slice_eq(name, SLICE("base64"))))
        expect(r, value_read_json(COLUMN_BLOB, &v, r->arena, &bytes) && bytes.kind == VALUE_BLOB);
    if (!r->wrong)
        r->s->prefix = bytes.s;
}

/* Members come in the order in which they are written: columns before what names them. */
static void read_schema(struct reader *r, const struct json *j)
{
    struct json_walk w;
    struct slice name;
    struct json v;
    int64_t format = 0;
    if (!expect(r, j->kind == JSON_OBJECT))
        return;
    for (json_begin(&w, j); json_next_member(&w, r->arena, &name, &v);) {
        if (slice_eq(name, SLICE("format")))
            expect(r, json_i64(&v, &format));
        else if (slice_eq(name, SLICE("columns")))
            read_columns(r, &v);
        else if (slice_eq(name, SLICE("key")))
            r->s->key = read_parts(r, &v, &r->s->nkey);
        else if (slice_eq(name, SLICE("indexes")))
            read_indexes(r, &v);
        else if (slice_eq(name, SLICE("checks")))
            read_checks(r, &v);
        else if (slice_eq(name, SLICE("next_column")))
            r->s->next_column = read_number(r, &v);
        else if (slice_eq(name, SLICE("next_index")))
            r->s->next_index = read_number(r, &v);
        else if (slice_eq(name, SLICE("prefix")))
            read_prefix(r, &v);
        else
            expect(r, false);
    }
    expect(r, format == 1);
}

enum status schema_decode(struct slice json, struct arena *arena, struct schema *ret, struct error *err)
{
    struct reader r = {.arena = arena, .s = ret};
    struct fault fault = {0};
    struct json j;
    const char *why = NULL;
    size_t at = 0;
    *ret = (struct schema){0};
    /* The values in it borrow: what was given may go. */
    json = arena_copy(arena, json);
    if (!json_check(json, &j, &why, &at))
        return error_set(err, ST_CORRUPT, "the description of a table is no JSON: %s at byte %zu", why, at);
    read_schema(&r, &j);
    if (r.wrong)
        return error_set(err, ST_CORRUPT, "the description of a table is not in its format");
    if (!schema_fits(ret, &fault))
        return error_set(err, ST_CORRUPT, "the description of a table does not fit together: %.180s",
                         fault.text);
    return ST_OK;
}
