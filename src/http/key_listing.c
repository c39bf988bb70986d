/* GET /keys: pages of keys in byte order, or against it. A prefix is a range of the index, as from and to
   are, so that a page costs what it holds; a pattern or a type is looked for among the rows of the range, a
   bounded number for each page. */
#include "http/http_internal.h"

#include <stdlib.h>

#include "base/glob.h"
#include "command/families.h"
#include "proto/base64.h"

#define PAGE_ROWS  10000              /* looked at for one page, at most ... */
#define PICKY_ROWS 1000               /* ... and so many at once, where few may be wanted */
#define PAGE_BYTES ((size_t)16 << 20) /* behind which a page with values ends */

#define CURSOR_MARK 'k' /* stands before the last key, which may be empty */

struct key_query {
    struct key_range range;
    struct slice match, after;
    enum row_type type; /* ROW_NONE: any */
    int64_t limit;
    bool values;
};

/* ---- preparing ---- */

static bool read_cursor(struct http_call *x, struct slice *ret)
{
    struct slice cursor = x->query[PARAM_CURSOR];
    if (!cursor.p || (cursor.n && cursor.p[0] == CURSOR_MARK &&
                      base64_decode(slice_of(cursor.p + 1, cursor.n - 1), x->arena, ret)))
        return true;
    http_refuse(x, 400, "bad_parameter", "cursor must be what the last page said.");
    return false;
}

/* What every match of the pattern starts with narrows the range. */
static void narrow(struct key_query *q)
{
    struct slice literal = glob_prefix(q->match);
    struct slice *prefix = &q->range.prefix;
    if (literal.n > prefix->n && memcmp(literal.p, prefix->p, prefix->n) == 0)
        *prefix = literal;
}

static struct slice given(const struct http_call *x, enum http_param p)
{
    return x->query[p].p ? x->query[p] : SLICE("");
}

void http_keys_list(struct http_api *api, struct http_call *x)
{
    struct key_query *q = arena_alloc(x->arena, sizeof *q);
    struct slice *argv = arena_alloc(x->arena, sizeof *argv);
    (void)api;
    *q = (struct key_query){
        .range = {.prefix = given(x, PARAM_PREFIX), .from = given(x, PARAM_FROM), .to = x->query[PARAM_TO]},
        .match = x->query[PARAM_MATCH],
        .values = slice_eq(given(x, PARAM_VALUES), SLICE("true")),
    };
    q->range.reverse = slice_eq(given(x, PARAM_REVERSE), SLICE("true"));
    if (slice_eq(given(x, PARAM_TYPE), SLICE("table")))
        q->type = ROW_TABLE;
    if (x->query[PARAM_TYPE].p && q->type == ROW_NONE && !http_type_named(x->query[PARAM_TYPE], &q->type))
        http_refuse(x, 400, "bad_parameter", "type must be string, hash, list, set, zset or table.");
    else if (!http_limit_param(x, &q->limit) || !read_cursor(x, &q->after))
        return;
    x->page = (struct http_page){.limit = q->limit}; /* of each collection's items */
    if (q->match.p)
        narrow(q);
    x->detail = q;
    x->cmd = &http_listing_commands[0];
    x->argv = argv;
    argv[0] = slice_str(x->cmd->name);
    x->argc = 1;
}

/* ---- running ---- */

struct found {
    struct slice key;
    enum row_type type;    /* ROW_NONE: it is not there any more */
    const struct row *row; /* with values */
    int64_t id, size, first, version, expire_at;
};

struct page {
    const struct key_query *query;
    struct arena *arena;
    struct found *at;
    size_t n;
};

/* A view_key_fn. */
static enum status note_key(void *arg, struct slice key, const struct key_row *row)
{
    struct page *p = arg;
    const struct key_query *q = p->query;
    if ((q->type != ROW_NONE && row->type != q->type) || (q->match.p && !glob_match(q->match, key, false)))
        return ST_OK;
    p->at[p->n++] = (struct found){
        .key = arena_copy(p->arena, key),
        .type = row->type,
        .id = row->id,
        .size = row->size,
        .first = row->first,
        .version = row->version,
        .expire_at = row->expire_at,
    };
    return ST_OK;
}

/* Whether more of a key has to be known than a page of rows tells: the value, or a short string's size, which
   is that of its value. */
static bool needs_row(const struct key_query *q, const struct found *f)
{
    return q->values || (f->type == ROW_STRING && f->id == 0);
}

/* Where each row is a round trip, all of them are one. */
static enum status fetch_rows(struct call *c, const struct page *p)
{
    if (!view_wants_declarations(c->view))
        return ST_OK;
    for (size_t i = 0; i < p->n; i++)
        if (needs_row(p->query, &p->at[i]))
            view_declare(c->view, call_db(c), p->at[i].key);
    return view_fetch_declared(c->view);
}

/* A hash of which fields have expired is smaller than its row says, and has another version. */
static enum status look_closer(struct call *c, const struct key_query *q, struct found *f)
{
    struct coll *h;
    bool wrong;
    enum status st = ST_OK;
    if (needs_row(q, f)) {
        st = view_get(c->view, call_db(c), f->key, &f->row);
        if (st != ST_OK || !f->row || f->row->type != f->type) {
            f->type = ROW_NONE;
            return st;
        }
        if (f->type == ROW_STRING)
            f->size = row_string_size(f->row);
    }
    if (f->type == ROW_HASH && f->first != 0 && f->first <= view_now(c->view)) {
        st = coll_open(c->view, call_db(c), f->key, ROW_HASH, &h, &wrong);
        if (st == ST_OK && h) {
            f->size = coll_size(h);
            st = view_version(c->view, call_db(c), f->key, &f->version);
        }
    }
    return st;
}

static void add_size(struct http_writer *w, int64_t size)
{
    http_add_name(w, "size");
    json_add_i64(w->out, size);
}

static enum status add_found(struct call *c, struct http_writer *w, void *arg)
{
    const struct found *f = arg;
    const struct key_query *q = answer_of(c)->call->detail;
    int64_t ttl = (f->expire_at - view_now(c->view) + 999) / 1000;
    enum status st = ST_OK;
    http_add_name(w, "key");
    http_add_text(w, f->key);
    http_add_name(w, "type");
    buf_addf(w->out, "\"%s\"", row_type_name(f->type));
    if (q->values)
        st = http_add_value(c, w, f->key, f->row);
    if (!q->values || f->type == ROW_STRING || f->type == ROW_TABLE)
        add_size(w, f->size);
    http_add_name(w, "ttl");
    if (f->expire_at == EXPIRE_NEVER)
        buf_add_slice(w->out, SLICE("null"));
    else
        json_add_i64(w->out, ttl);
    http_add_name(w, "expire_at");
    http_add_moment(w, f->expire_at);
    http_add_name(w, "version");
    json_add_i64(w->out, f->version);
    return st;
}

/* The last key looked at, in letters that need no encoding in a query. */
static void add_cursor(struct buf *out, struct slice after)
{
    buf_add_slice(out, SLICE("],\"cursor\":"));
    if (!after.p) {
        buf_add_slice(out, SLICE("null}"));
        return;
    }
    buf_addf(out, "\"%c", CURSOR_MARK);
    base64_add_url(out, after);
    buf_add(out, "\"}", 2);
}

/* The rows of a page; *after becomes where the next one begins. */
static enum status find_keys(struct call *c, struct page *p, struct slice *after)
{
    const struct key_query *q = p->query;
    bool picky = q->type != ROW_NONE || q->match.p;
    uint32_t looked = 0;
    enum status st = ST_OK;
    p->at = arena_alloc(c->arena, (size_t)(q->limit + PICKY_ROWS) * sizeof *p->at);
    do {
        uint32_t rows = picky ? PICKY_ROWS : (uint32_t)(q->limit - (int64_t)p->n);
        st = view_page_keys(c->view, call_db(c), &q->range, rows, c->arena, after, note_key, p);
        looked += rows;
    } while (st == ST_OK && after->p && (int64_t)p->n < q->limit && looked < PAGE_ROWS);
    if ((int64_t)p->n > q->limit) { /* the others are on the next page */
        p->n = (size_t)q->limit;
        *after = p->at[p->n - 1].key;
    }
    return st;
}

static enum status list(struct call *c)
{
    struct answer *a = answer_of(c);
    struct page p = {.query = a->call->detail, .arena = c->arena};
    struct slice after = p.query->after;
    enum status st = find_keys(c, &p, &after);
    if (st == ST_OK)
        st = fetch_rows(c, &p);
    buf_add_slice(a->out, SLICE("{\"keys\":["));
    for (size_t i = 0; st == ST_OK && i < p.n; i++) {
        struct found *f = &p.at[i];
        if ((st = look_closer(c, p.query, f)) != ST_OK || f->type == ROW_NONE)
            continue;
        if (a->out->p[a->out->len - 1] == '}')
            buf_add(a->out, ",", 1);
        st = http_add_object(c, add_found, f);
        if (a->out->len - a->start > PAGE_BYTES && i + 1 < p.n) {
            after = f->key;
            break;
        }
    }
    add_cursor(a->out, after);
    return st;
}

/* clang-format off */
const struct command http_listing_commands[] = {
    {.name = "http|keys", .fn = list, .arity = 1, .flags = CMD_READONLY, .group = "http"},
    {.name = NULL},
};
/* clang-format on */
