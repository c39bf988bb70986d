/* Whole keys over HTTP: GET, PUT and DELETE /keys/{key}. The version of a key is its ETag; conditions on it
   and the change that they allow are one step. */
#include "http/http_internal.h"

#include <stdio.h>

#include "command/families.h"
#include "command/string/value.h"

#define PAGE_ITEMS 1000 /* of a collection, in the answer to a PUT */

/* In the order of the table below. */
enum { GET, PUT, DELETE };

/* ---- conditions ---- */

enum status http_find_row(struct call *c, const struct row **ret, int64_t *ret_version)
{
    enum status st = arg_any(c, 1, ret);
    if (st != ST_OK)
        return st;
    *ret_version = *ret ? (*ret)->version : 0;
    /* A hash changes when its fields expire, though no command writes its row. */
    return *ret && (*ret)->type == ROW_HASH ? view_version(c->view, call_db(c), c->argv[1], ret_version)
                                            : ST_OK;
}

static bool condition_failed(struct answer *a, int64_t version)
{
    const char *tag = a->call->route->tag;
    const char *what = strcmp(tag, "rows") == 0 ? "row" : strcmp(tag, "tables") == 0 ? "table" : "key";
    char text[96];
    (void)snprintf(
        text, sizeof text,
        version ? "The %s has another version now: read it, then try again." : "There is no such %s.", what);
    answer_error(a, 412, "precondition_failed", text);
    a->out->len--;
    buf_addf(a->out, ",\"version\":%lld}", (long long)version);
    a->head.version = version;
    return false;
}

bool http_if_match(struct answer *a, int64_t version)
{
    struct slice match = a->call->request.headers[HTTP_IF_MATCH];
    return !match.p || http_tags_have(match, version, true, NULL) || condition_failed(a, version);
}

bool http_may_change(struct answer *a, int64_t version)
{
    struct slice none = a->call->request.headers[HTTP_IF_NONE_MATCH];
    return http_if_match(a, version) &&
           (!none.p || !http_tags_have(none, version, false, NULL) || condition_failed(a, version));
}

static bool check_tags(struct http_call *x, enum http_header h, const char *name)
{
    bool sound = true;
    if (x->request.headers[h].p)
        http_tags_have(x->request.headers[h], 1, false, &sound);
    if (!sound)
        http_refuse(x, 400, "bad_header", "%s takes versions in double quotes, or *.", name);
    return sound;
}

bool http_check_conditions(struct http_call *x)
{
    return check_tags(x, HTTP_IF_MATCH, "If-Match") && check_tags(x, HTTP_IF_NONE_MATCH, "If-None-Match");
}

void http_key_not_found(struct answer *a)
{
    answer_error(a, 404, "key_not_found", "Key Not Found");
}

/* ---- GET ---- */

static bool read_page(struct http_call *x)
{
    return http_limit_param(x, &x->page.limit) &&
           http_number_param(x, PARAM_CURSOR, 0, INT64_MAX, 0, &x->page.cursor);
}

void http_key_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (http_check_conditions(x) && read_page(x))
        http_key_call(x, &http_key_commands[GET], x->path[0]);
}

static enum status add_piece(void *arg, struct slice piece)
{
    buf_add_slice(arg, piece);
    return ST_OK;
}

static enum status get_raw(struct call *c, struct answer *a, const struct row *row)
{
    if (row->type != ROW_STRING) {
        answer_error(a, 406, "not_acceptable", "The key holds a collection: ask for application/json.");
        return ST_OK;
    }
    a->head.content_type = "application/octet-stream";
    return view_string_each(c->view, row, 0, row_string_size(row), add_piece, a->out);
}

static enum status get(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct http_request *r = &a->call->request;
    const struct row *row;
    enum status st = http_find_row(c, &row, &a->head.version);
    if (st != ST_OK)
        return st;
    if (!row) {
        http_key_not_found(a);
        return ST_OK;
    }
    if (!http_if_match(a, a->head.version))
        return ST_OK;
    a->head.by_accept = true;
    if (r->headers[HTTP_IF_NONE_MATCH].p &&
        http_tags_have(r->headers[HTTP_IF_NONE_MATCH], a->head.version, false, NULL)) {
        a->head.status = 304;
        a->head.content_type = NULL;
        return ST_OK;
    }
    return http_prefers_raw(r->headers[HTTP_ACCEPT]) ? get_raw(c, a, row) : http_add_row(c, c->argv[1], row);
}

/* ---- PUT ---- */

/* A document, or bytes? Or neither, which is refused. */
static bool is_document(struct http_call *x, bool *ret)
{
    struct slice type = http_media_type(x->request.headers[HTTP_CONTENT_TYPE]);
    *ret = slice_is(type, "application/json");
    if (!slice_is(type, "application/x-www-form-urlencoded") && !slice_is(type, "multipart/form-data"))
        return true;
    http_refuse(
        x, 415, "unsupported_media_type",
        "Say what the body is: Content-Type: application/json for a document such as {\"value\": \"v\"}, "
        "or application/octet-stream for the value's bytes.");
    return false;
}

bool http_body_value(const struct http_api *api, struct http_call *x, struct http_value *ret)
{
    bool document;
    struct json body;
    if (!is_document(x, &document) || !http_expiry_params(x, &ret->expiry))
        return false;
    if (document && (!http_json_body(x, JSON_OBJECT, &body) || !http_value_read(x, &body, ret)))
        return false;
    if (!document) {
        ret->type = ROW_STRING;
        ret->string = x->request.body;
    }
    if (ret->type == ROW_STRING && ret->string.n > api->executor->config->proto_max_bulk_len) {
        http_refuse(x, 413, "value_too_large", "A string may have proto-max-bulk-len bytes at most.");
        return false;
    }
    return true;
}

void http_key_put(struct http_api *api, struct http_call *x)
{
    struct http_value *v = arena_alloc(x->arena, sizeof *v);
    *v = (struct http_value){.type = ROW_NONE};
    x->detail = v;
    x->page = (struct http_page){.limit = PAGE_ITEMS};
    if (http_check_conditions(x) && http_body_value(api, x, v))
        http_key_call(x, &http_key_commands[PUT], x->path[0]);
}

static enum status put(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct http_value *v = a->call->detail;
    const struct row *row;
    int64_t version, expire_at;
    enum status st = http_find_row(c, &row, &version);
    if (st != ST_OK || !http_may_change(a, version))
        return st;
    if (!http_expiry_at(&v->expiry, view_now(c->view), &expire_at)) {
        answer_error(a, 400, "bad_ttl", "expire_at has passed already.");
        return ST_OK;
    }
    if ((st = http_value_put(c, c->argv[1], v, expire_at)) != ST_OK ||
        (st = view_get(c->view, call_db(c), c->argv[1], &row)) != ST_OK)
        return st;
    a->head.status = version ? 200 : 201;
    a->head.version = row->version;
    return http_wants_minimal(a->call) ? ST_OK : http_add_row(c, c->argv[1], row);
}

/* ---- DELETE ---- */

void http_key_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (http_check_conditions(x))
        http_key_call(x, &http_key_commands[DELETE], x->path[0]);
}

static enum status delete_key(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct row *row;
    int64_t version;
    enum status st = http_find_row(c, &row, &version);
    if (st != ST_OK)
        return st;
    if (!row && !a->call->request.headers[HTTP_IF_MATCH].p) {
        http_key_not_found(a);
        return ST_OK;
    }
    if (!http_may_change(a, version))
        return ST_OK;
    st = view_del(c->view, call_db(c), c->argv[1], NULL);
    buf_add_slice(a->out, SLICE("{\"deleted\":true}"));
    return st;
}

/* clang-format off */
const struct command http_key_commands[] = {
    [GET] = {
        .name = "http|get", .fn = get, .arity = 2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .group = "http",
    },
    [PUT] = {
        .name = "http|put", .fn = put, .arity = 2, .flags = CMD_WRITE | CMD_DENYOOM,
        .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .step = 1}}, .group = "http",
    },
    [DELETE] = {
        .name = "http|delete", .fn = delete_key, .arity = 2, .flags = CMD_WRITE,
        .keys = {{.flags = KEY_RM | KEY_DELETE, .index = 1, .step = 1}}, .group = "http",
    },
    {.name = NULL},
};
/* clang-format on */
