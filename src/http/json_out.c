/* Documents that answers are made of. Strings are written as they are; when one of them turns out not to be
   UTF-8, the object is written again with all its strings in base64, and says so: "encoding": "base64". */
#include "http/http_internal.h"

/* ---- objects ---- */

void http_add_name(struct http_writer *w, const char *name)
{
    if (w->out->p[w->out->len - 1] != '{')
        buf_add(w->out, ",", 1);
    buf_add(w->out, "\"", 1);
    buf_add_slice(w->out, slice_str(name));
    buf_add(w->out, "\":", 2);
}

void http_add_text(struct http_writer *w, struct slice s)
{
    if (w->encoded)
        json_add_base64(w->out, s);
    else if (!json_add_string(w->out, s))
        w->bytes = true;
}

void http_add_moment(struct http_writer *w, int64_t expire_at)
{
    if (expire_at == EXPIRE_NEVER)
        buf_add_slice(w->out, SLICE("null"));
    else
        json_add_i64(w->out, expire_at);
}

static enum status add_object(struct call *c, struct http_writer *w, http_members_fn *fn, void *arg)
{
    buf_add(w->out, "{", 1);
    enum status st = fn(c, w, arg);
    if (w->encoded) {
        http_add_name(w, "encoding");
        buf_add_slice(w->out, SLICE("\"base64\""));
    }
    buf_add(w->out, "}", 1);
    return st;
}

enum status http_add_object(struct call *c, http_members_fn *fn, void *arg)
{
    struct answer *a = answer_of(c);
    struct http_writer w = {.out = a->out, .encoded = a->call->query[PARAM_ENCODING].p != NULL};
    size_t start = a->out->len;
    enum status st = add_object(c, &w, fn, arg);
    if (st == ST_OK && w.bytes) {
        a->out->len = start;
        w = (struct http_writer){.out = a->out, .encoded = true};
        st = add_object(c, &w, fn, arg);
    }
    return st;
}

/* ---- values ---- */

struct value_writer {
    struct http_writer *w;
    enum row_type type;
    size_t n;
};

/* A coll_fn. */
static enum status add_item(void *arg, const struct coll_item *item)
{
    struct value_writer *v = arg;
    struct http_writer *w = v->w;
    if (w->bytes) /* all of this will be written again */
        return ST_OK;
    if (v->n++)
        buf_add(w->out, ",", 1);
    switch (v->type) {
    case ROW_HASH:
        http_add_text(w, item->name);
        buf_add(w->out, ":", 1);
        http_add_text(w, item->value);
        break;
    case ROW_ZSET:
        buf_add_slice(w->out, SLICE("{\"member\":"));
        http_add_text(w, item->name);
        buf_add_slice(w->out, SLICE(",\"score\":"));
        json_add_double(w->out, item->score);
        buf_add(w->out, "}", 1);
        break;
    default:
        http_add_text(w, v->type == ROW_LIST ? item->value : item->name);
    }
    return ST_OK;
}

/* The items of one page; *cursor is set for the next one, 0 at the end. */
static enum status add_page(struct coll *coll, struct value_writer *v, int64_t limit, int64_t *cursor)
{
    int64_t size = coll_size(coll), from = *cursor, to;
    if (v->type == ROW_HASH || v->type == ROW_SET)
        return coll_page(coll, cursor, limit, add_item, v);
    bool last = from >= size - limit;
    to = last ? size - 1 : from + limit - 1;
    *cursor = last ? 0 : to + 1;
    if (from > to)
        return ST_OK;
    return v->type == ROW_LIST ? coll_range(coll, from, to, false, add_item, v)
                               : coll_by_rank(coll, from, to, false, add_item, v);
}

static enum status add_collection(struct call *c, struct slice key, struct value_writer *v)
{
    const struct http_page *page = &answer_of(c)->call->page;
    struct buf *out = v->w->out;
    int64_t cursor = page->cursor;
    struct coll *coll;
    bool wrong;
    enum status st = coll_open(c->view, call_db(c), key, v->type, &coll, &wrong);
    if (st != ST_OK)
        return st;
    buf_add(out, v->type == ROW_HASH ? "{" : "[", 1);
    st = add_page(coll, v, page->limit, &cursor);
    buf_add(out, v->type == ROW_HASH ? "}" : "]", 1);
    http_add_name(v->w, "size");
    json_add_i64(out, coll_size(coll));
    if (cursor) {
        http_add_name(v->w, "cursor");
        buf_addf(out, "\"%lld\"", (long long)cursor);
    }
    return st;
}

/* ---- rows ---- */

struct row_members {
    struct slice key;
    const struct row *row;
};

enum status http_add_value(struct call *c, struct http_writer *w, struct slice key, const struct row *row)
{
    struct value_writer v = {.w = w, .type = (enum row_type)row->type};
    struct slice value;
    http_add_name(w, "value");
    if (v.type == ROW_TABLE) { /* its schema, which is JSON already */
        buf_add_slice(w->out, row_value(row));
        return ST_OK;
    }
    if (v.type != ROW_STRING)
        return add_collection(c, key, &v);
    enum status st = view_string(c->view, row, c->arena, &value);
    if (st == ST_OK)
        http_add_text(w, value);
    return st;
}

static enum status add_row(struct call *c, struct http_writer *w, void *arg)
{
    const struct row_members *m = arg;
    int64_t expire_at = m->row->expire_at;
    http_add_name(w, "key");
    http_add_text(w, m->key);
    http_add_name(w, "type");
    buf_add(w->out, "\"", 1);
    buf_add_slice(w->out, slice_str(row_type_name((enum row_type)m->row->type)));
    buf_add(w->out, "\"", 1);
    enum status st = http_add_value(c, w, m->key, m->row);
    http_add_name(w, "version");
    json_add_i64(w->out, answer_of(c)->head.version);
    http_add_name(w, "expire_at");
    http_add_moment(w, expire_at);
    return st;
}

enum status http_add_row(struct call *c, struct slice key, const struct row *row)
{
    struct row_members m = {key, row};
    return http_add_object(c, add_row, &m);
}
