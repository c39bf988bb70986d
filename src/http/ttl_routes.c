/* When a key expires: GET, PUT and DELETE /keys/{key}/ttl. */
#include "command/families.h"
#include "http/http_internal.h"

/* In the order of the table below. */
enum { GET, PUT, DELETE };

void http_ttl_get(struct http_api *api, struct http_call *x)
{
    (void)api;
    http_key_call(x, &http_ttl_commands[GET], x->path[0]);
}

/* {"ttl": 60}, or ?ttl=60. */
static bool read_expiry(struct http_call *x, struct http_expiry *ret)
{
    struct json body, v;
    struct json_walk w;
    struct slice name;
    if (!http_expiry_params(x, ret))
        return false;
    if (x->request.body.n) {
        if (!http_json_body(x, JSON_OBJECT, &body))
            return false;
        json_begin(&w, &body);
        while (json_next_member(&w, x->arena, &name, &v)) {
            if (!http_expiry_member(x, name, &v, ret))
                http_refuse(x, 400, "unknown_field",
                            "There is no field \"%.*s\" here: ttl, ttl_ms, expire_at.",
                            name.n < 64 ? (int)name.n : 64, name.p);
            if (x->refusal.status)
                return false;
        }
    }
    if (ret->kind == EXPIRY_NONE)
        http_refuse(
            x, 400, "missing_field",
            "Say when: ttl in seconds, ttl_ms, or expire_at in milliseconds since the epoch. DELETE makes a "
            "key stay.");
    return ret->kind != EXPIRY_NONE;
}

void http_ttl_put(struct http_api *api, struct http_call *x)
{
    struct http_expiry *e = arena_alloc(x->arena, sizeof *e);
    (void)api;
    x->detail = e;
    if (http_check_conditions(x) && read_expiry(x, e))
        http_key_call(x, &http_ttl_commands[PUT], x->path[0]);
}

void http_ttl_delete(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (http_check_conditions(x))
        http_key_call(x, &http_ttl_commands[DELETE], x->path[0]);
}

/* ---- running ---- */

struct moment {
    int64_t expire_at;
};

static enum status add_ttl(struct call *c, struct http_writer *w, void *arg)
{
    int64_t at = ((struct moment *)arg)->expire_at, left = at - view_now(c->view);
    http_add_name(w, "key");
    http_add_text(w, c->argv[1]);
    http_add_name(w, "ttl");
    if (at == EXPIRE_NEVER)
        buf_add_slice(w->out, SLICE("null"));
    else
        json_add_i64(w->out, (left + 999) / 1000);
    http_add_name(w, "ttl_ms");
    if (at == EXPIRE_NEVER)
        buf_add_slice(w->out, SLICE("null"));
    else
        json_add_i64(w->out, left);
    http_add_name(w, "expire_at");
    http_add_moment(w, at);
    return ST_OK;
}

static enum status answer_ttl(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct row *row;
    enum status st = http_find_row(c, &row, &a->head.version);
    if (st != ST_OK)
        return st;
    if (!row) {
        http_key_not_found(a);
        return ST_OK;
    }
    struct moment m = {row->expire_at};
    return http_add_object(c, add_ttl, &m);
}

/* Gives the key this expiry, if it is there and the conditions hold. */
static enum status change(struct call *c, int64_t expire_at)
{
    struct answer *a = answer_of(c);
    const struct row *row;
    int64_t version;
    enum status st = http_find_row(c, &row, &version);
    if (st != ST_OK)
        return st;
    if (!row) {
        http_key_not_found(a);
        return ST_OK;
    }
    if (!http_may_change(a, version))
        return ST_OK;
    if (row->expire_at != expire_at)
        st = view_expire(c->view, call_db(c), c->argv[1], expire_at);
    return st == ST_OK ? answer_ttl(c) : st;
}

static enum status put(struct call *c)
{
    struct answer *a = answer_of(c);
    int64_t expire_at;
    if (http_expiry_at(a->call->detail, view_now(c->view), &expire_at))
        return change(c, expire_at);
    answer_error(a, 400, "bad_ttl", "expire_at has passed already: DELETE the key instead.");
    return ST_OK;
}

static enum status delete_ttl(struct call *c)
{
    return change(c, EXPIRE_NEVER);
}

/* clang-format off */
const struct command http_ttl_commands[] = {
    [GET] = {
        .name = "http|ttl-get", .fn = answer_ttl, .arity = 2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .group = "http",
    },
    [PUT] = {
        .name = "http|ttl-put", .fn = put, .arity = 2, .flags = CMD_WRITE | CMD_FAST,
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}, .group = "http",
    },
    [DELETE] = {
        .name = "http|ttl-delete", .fn = delete_ttl, .arity = 2, .flags = CMD_WRITE | CMD_FAST,
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}, .group = "http",
    },
    {.name = NULL},
};
/* clang-format on */
