/* From requests to calls: what all routes have in common. answer.c is the way back. */
#include "http/api.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/num.h"
#include "exec/auth.h"
#include "exec/declare.h"
#include "http/http_internal.h"
#include "proto/base64.h"

/* ---- headers of the answer ---- */

void http_add_header(struct http_call *x, struct slice line)
{
    char *to = arena_alloc(x->arena, x->extra.n + line.n);
    if (x->extra.n)
        memcpy(to, x->extra.p, x->extra.n);
    memcpy(to + x->extra.n, line.p, line.n);
    x->extra = slice_of(to, x->extra.n + line.n);
}

void http_add_challenge(struct http_call *x)
{
    http_add_header(x, SLICE("WWW-Authenticate: Bearer realm=\"larder\"\r\n"
                             "WWW-Authenticate: Basic realm=\"larder\"\r\n"));
}

/* ---- refusals ---- */

void http_refuse(struct http_call *x, int status, const char *code, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    char *message = arena_alloc(x->arena, len + 1);
    memcpy(message, text, len);
    message[len] = '\0';
    x->refusal = (struct http_refusal){status, code, message};
}

struct http_call *http_prepare_refusal(const struct http_refusal *why, struct arena *arena)
{
    struct http_call *x = arena_alloc(arena, sizeof *x);
    *x = (struct http_call){.refusal = *why, .close = true, .arena = arena};
    if (why->status == 401)
        http_add_challenge(x);
    return x;
}

/* ---- from requests to calls ---- */

void http_key_call(struct http_call *x, const struct command *cmd, struct slice key)
{
    x->argc = 2;
    x->argv = arena_alloc(x->arena, 2 * sizeof *x->argv);
    x->argv[0] = slice_str(cmd->name);
    x->argv[1] = key;
    x->cmd = cmd;
    x->writes = cmd->flags & CMD_WRITE;
}

bool http_json_body(struct http_call *x, enum json_kind kind, struct json *ret)
{
    const char *why;
    size_t at;
    if (!json_check(x->request.body, ret, &why, &at)) {
        http_refuse(x, 400, "bad_json", "The body is not JSON: %s, at byte %zu.", why, at);
        return false;
    }
    if (ret->kind != kind) {
        http_refuse(x, 400, "bad_json", "The body must be %s, not %s.", json_kind_name(kind),
                    json_kind_name(ret->kind));
        return false;
    }
    return true;
}

bool http_number_param(struct http_call *x, enum http_param p, int64_t min, int64_t max, int64_t otherwise,
                       int64_t *ret)
{
    *ret = otherwise;
    if (!x->query[p].p)
        return true;
    if (num_parse_i64(x->query[p], ret) && *ret >= min && *ret <= max)
        return true;
    http_refuse(x, 400, "bad_parameter", "%s must be a whole number from %lld to %lld.", http_params[p].name,
                (long long)min, (long long)max);
    return false;
}

bool http_limit_param(struct http_call *x, int64_t *ret)
{
    return http_number_param(x, PARAM_LIMIT, 1, x->route->page.most, x->route->page.usual, ret);
}

void http_read_db(const struct http_api *a, struct http_call *x)
{
    int64_t db;
    if (http_number_param(x, PARAM_DB, 0, (int64_t)view_databases(a->executor->view) - 1, 0, &db))
        x->db = (uint32_t)db;
}

/* Whether nothing but reading is asked for. LARDER.READ says itself how. */
static bool reads_only_of(struct http_call *x)
{
    const struct slice *argv = x->argv;
    int argc = x->argc;
    const struct command *cmd = x->cmd ? reads_inside(x->cmd, &argv, &argc, &x->reads.how) : NULL;
    x->reads.by_key = cmd && reads_by_key(cmd);
    return cmd ? reads_only(cmd) : !x->cmd && x->only_reads;
}

struct http_call *http_prepare(struct http_api *a, const struct http_request *r, struct arena *arena)
{
    struct http_call *x = arena_alloc(arena, sizeof *x);
    *x = (struct http_call){.request = *r, .close = !r->keep_alive, .arena = arena};
    http_route(x);
    if (!x->refusal.status || x->refusal.status == 204)
        http_check_origin(a, x);
    if (!x->refusal.status)
        http_read_db(a, x);
    if (!x->refusal.status && x->route && x->route->prepare)
        x->route->prepare(a, x);
    if (!x->refusal.status)
        http_read_consistency(a, x);
    x->stops_workers |= x->route && x->route->stops_workers;
    if (x->refusal.status) {
        x->cmd = NULL;
        x->writes = x->stops_workers = false;
    }
    x->reads.replica = reads_only_of(x) && !x->writes && !x->stops_workers;
    return x;
}

size_t http_declare(const struct http_api *a, const struct http_call *x)
{
    if (!x->route || x->refusal.status)
        return 0;
    if (x->route->declare)
        return x->route->declare(a, x);
    return x->cmd ? declare_keys(a->executor->view, x->db, x->cmd, x->argv, x->argc) : 0;
}

/* ---- what the server asks about a call ---- */

bool http_stops_workers(const struct http_api *a, const struct http_call *x)
{
    return x->stops_workers && http_authorized(a->executor, x->request.headers[HTTP_AUTHORIZATION], x->arena);
}

enum http_dialect http_dialect_of(const struct http_call *x)
{
    return x->route ? x->route->dialect : DIALECT_KEYS;
}

bool http_wants_minimal(const struct http_call *x)
{
    return x->request.method == HTTP_PUT && http_dialect_of(x) == DIALECT_KEYS &&
           http_prefers(x->request.headers[HTTP_PREFER], "return", "minimal");
}

/* ---- who may ask ---- */

#define DEFAULT_USER SLICE("default")

bool http_authorized(const struct executor *s, struct slice header, struct arena *arena)
{
    if (auth_is_open(s->config))
        return true;
    const char *space = header.n ? memchr(header.p, ' ', header.n) : NULL;
    if (!space)
        return false;
    struct slice scheme = slice_of(header.p, (size_t)(space - header.p));
    struct slice secret = slice_of(space + 1, header.n - scheme.n - 1);
    while (secret.n && secret.p[0] == ' ')
        secret = slice_of(secret.p + 1, secret.n - 1);
    if (slice_is(scheme, "bearer"))
        return auth_accepts(s->config, DEFAULT_USER, secret);
    if (!slice_is(scheme, "basic") || !base64_decode(secret, arena, &secret))
        return false;
    const char *colon = secret.n ? memchr(secret.p, ':', secret.n) : NULL;
    if (!colon)
        return false;
    struct slice user = slice_of(secret.p, (size_t)(colon - secret.p));
    struct slice password = slice_of(colon + 1, secret.n - user.n - 1);
    return auth_accepts(s->config, user.n ? user : DEFAULT_USER, password);
}
