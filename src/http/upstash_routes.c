/* Redis' commands over HTTP, in the dialect that Upstash's clients speak: a command is a JSON array of words
   (POST /), or the segments of a path (GET /get/k); its reply is {"result": ...} or {"error": "..."}. Several
   of them are an array of arrays: POST /pipeline runs them one after the other, /multi-exec in one step. */
#include "http/http_internal.h"

#include "command/families.h"
#include "exec/block.h"
#include "exec/declare.h"
#include "proto/uri.h"

#define MAX_WORDS (1 << 20)

struct words {
    const struct command *cmd; /* a subcommand itself; NULL: there is none of that name */
    struct slice *argv;
    int argc;
};

struct pipeline {
    struct words *commands;
    size_t n;
};

/* ---- words ---- */

/* What needs a connection with a state of its own, which requests do not have. */
static bool needs_connection(const struct command *cmd)
{
    static const char *const words[] = {
        "select",      "auth",         "hello",    "reset",     "quit",
        "monitor",     "multi",        "exec",     "discard",   "watch",
        "unwatch",     "client|reply", "readonly", "readwrite", "larder.consistency",
        "larder.token"};
    char name[COMMAND_NAME_CHARS];
    command_full_name(cmd, name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

/* Finds the command that the words name. False: it cannot be run here, which has been refused. */
static bool find_command(struct http_call *x, struct words *w)
{
    const struct command *cmd = command_find(w->argv[0]);
    if (cmd && cmd->subs && w->argc > 1)
        cmd = command_find_sub(cmd, w->argv[1]);
    w->cmd = cmd;
    if (cmd && needs_connection(cmd)) {
        http_refuse(x, 400, "", "ERR %s is not for HTTP, where each request stands alone%s", cmd->name,
                    strcmp(cmd->group, "transactions") == 0 ? ": POST /multi-exec instead" : "");
        return false;
    }
    x->only_reads &= cmd && reads_only(cmd);
    bool writes = cmd && command_writes(cmd, w->argv, w->argc);
    x->writes |= writes || (cmd && (cmd->flags & CMD_MAY_WRITE));
    x->must_write |= writes;
    x->outside |= cmd && (cmd->flags & CMD_OUTSIDE);
    x->stops_workers |= cmd && (cmd->flags & CMD_STOPS_WORKERS);
    return true;
}

static bool read_word(struct http_call *x, const struct json *v, struct slice *ret)
{
    switch (v->kind) {
    case JSON_STRING:
        *ret = json_string(v, x->arena);
        return true;
    case JSON_NUMBER:
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = v->text;
        return true;
    default:
        http_refuse(x, 400, "", "ERR a command's words are strings and numbers, not %s",
                    json_kind_name(v->kind));
        return false;
    }
}

static bool read_words(struct http_call *x, const struct json *v, struct words *ret)
{
    size_t n = v->kind == JSON_ARRAY ? json_count(v) : 0;
    if (n == 0 || n > MAX_WORDS) {
        http_refuse(x, 400, "", "ERR a command is an array such as [\"SET\", \"key\", \"value\"]");
        return false;
    }
    struct json_walk w;
    struct json word;
    *ret = (struct words){.argv = arena_alloc(x->arena, n * sizeof *ret->argv)};
    json_begin(&w, v);
    while (json_next_item(&w, &word))
        if (!read_word(x, &word, &ret->argv[ret->argc++]))
            return false;
    return find_command(x, ret);
}

/* ---- one command ---- */

/* The dispatcher finds subcommands itself. */
static void call_words(struct http_call *x, const struct words *w)
{
    x->cmd = command_find(w->argv[0]);
    x->argv = w->argv;
    x->argc = w->argc;
}

void upstash_command(struct http_api *api, struct http_call *x)
{
    struct json body;
    struct words w;
    (void)api;
    if (http_json_body(x, JSON_ARRAY, &body) && read_words(x, &body, &w))
        call_words(x, &w);
}

static bool decode(struct http_call *x, struct slice text, bool plus, struct slice *ret)
{
    if (uri_decode(text, plus, x->arena, ret))
        return true;
    http_refuse(x, 400, "", "ERR a %% must be followed by two hexadecimal digits");
    return false;
}

/* "db" and "consistent" are ours. */
static bool take_own_param(struct http_call *x, struct slice name, struct slice value)
{
    static const enum http_param own[] = {PARAM_DB, PARAM_CONSISTENT};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (slice_eq(name, slice_str(http_params[own[i]].name))) {
            x->query[own[i]] = value;
            return true;
        }
    }
    return false;
}

/* /set/k with the body behind it, then ?EX=100 as EX 100. */
void upstash_path(struct http_api *api, struct http_call *x)
{
    struct slice path = x->request.path, query = x->request.query, word, name, value;
    size_t most = 1;
    for (size_t i = 0; i < path.n; i++)
        most += path.p[i] == '/';
    for (size_t i = 0; i < query.n; i++)
        most += query.p[i] == '&' ? 2 : 0;
    struct words w = {.argv = arena_alloc(x->arena, (most + 2) * sizeof *w.argv)};
    bool bare;
    while (uri_segment(&path, &word))
        if (!decode(x, word, false, &w.argv[w.argc++]))
            return;
    if (x->request.body.n)
        w.argv[w.argc++] = x->request.body;
    while (uri_param(&query, &name, &value, &bare)) {
        if (!decode(x, name, true, &name) || !decode(x, value, true, &value))
            return;
        if (take_own_param(x, name, value))
            continue;
        w.argv[w.argc++] = name;
        if (!bare)
            w.argv[w.argc++] = value;
    }
    http_read_db(api, x);
    if (!x->refusal.status && find_command(x, &w))
        call_words(x, &w);
}

/* Upstash-Encoding: base64 */
static void begin(struct answer *a)
{
    a->json.base64 = slice_is(a->call->request.headers[HTTP_UPSTASH_ENCODING], "base64");
}

struct command_result upstash_run(struct http_api *api, struct session *s, struct http_call *x,
                                  const struct error *write_err)
{
    struct answer *a = &api->answer;
    begin(a);
    upstash_item_begin(a);
    struct command_result result = http_run_command(api, s, x, write_err);
    upstash_item_end(a);
    return result;
}

struct command_result upstash_run_busy(struct http_api *api, struct session *s, struct http_call *x,
                                       const char *refusal)
{
    struct answer *a = &api->answer;
    begin(a);
    upstash_item_begin(a);
    struct command_result result =
        command_run_busy(api->executor, s, x->cmd, x->argv, x->argc, &a->json.base, refusal);
    upstash_item_end(a);
    return result;
}

/* ---- several ---- */

static bool read_pipeline(struct http_call *x)
{
    struct pipeline *p = arena_alloc(x->arena, sizeof *p);
    struct json body, v;
    struct json_walk w;
    if (!http_json_body(x, JSON_ARRAY, &body))
        return false;
    *p = (struct pipeline){.commands = arena_alloc(x->arena, json_count(&body) * sizeof *p->commands)};
    x->detail = p;
    x->only_reads = true;
    json_begin(&w, &body);
    while (json_next_item(&w, &v))
        if (!read_words(x, &v, &p->commands[p->n++]))
            return false;
    return true;
}

size_t upstash_declare(const struct http_api *api, const struct http_call *x)
{
    const struct pipeline *p = x->detail;
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->commands[i].cmd)
            n += declare_keys(api->executor->view, x->db, p->commands[i].cmd, p->commands[i].argv,
                              p->commands[i].argc);
    return n;
}

void upstash_pipeline(struct http_api *api, struct http_call *x)
{
    (void)api;
    read_pipeline(x);
}

struct command_result upstash_run_pipeline(struct http_api *api, struct session *s, struct http_call *x,
                                           const struct error *write_err)
{
    struct answer *a = &api->answer;
    const struct pipeline *p = x->detail;
    struct command_result all = {0};
    begin(a);
    buf_add(a->out, "[", 1);
    for (size_t i = 0; i < p->n; i++) {
        if (i)
            buf_add(a->out, ",", 1);
        call_words(x, &p->commands[i]);
        upstash_item_begin(a);
        command_result_add(&all, http_run_command(api, s, x, write_err));
        upstash_item_end(a);
        block_serve(api->executor, write_err); /* a pipeline's commands are calls by themselves */
    }
    buf_add(a->out, "]", 1);
    a->head.status = 200; /* each item says how it went */
    return all;
}

/* ---- all in one step ---- */

void upstash_multi(struct http_api *api, struct http_call *x)
{
    (void)api;
    if (!read_pipeline(x))
        return;
    x->argv = arena_alloc(x->arena, sizeof *x->argv);
    x->cmd = &http_multi_commands[0];
    x->argv[0] = slice_str(x->cmd->name);
    x->argc = 1;
}

struct command_result upstash_run_multi(struct http_api *api, struct session *s, struct http_call *x,
                                        const struct error *write_err)
{
    struct answer *a = &api->answer;
    begin(a);
    json_reply_begin(&a->json, a->out, a->json.base64);
    return http_run_command(api, s, x, write_err);
}

/* What is known to be wrong before anything has run makes all of it fail, as with EXEC. */
static bool can_run(struct call *c, const struct pipeline *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct words *w = &p->commands[i];
        const char *why = !w->cmd                                          ? "there is no such command"
                          : !command_arity_fits(w->cmd, w->argc)           ? "wrong number of arguments"
                          : w->cmd->flags & (CMD_NO_MULTI | CMD_PROTECTED) ? "not for transactions"
                                                                           : NULL;
        if (why) {
            reply_errorf(c->reply, "EXECABORT Transaction discarded because of command %zu: %s", i + 1, why);
            return false;
        }
    }
    return true;
}

/* The database failed: one error is the whole answer, with the status that the failure has elsewhere. */
static enum status fail(struct call *c, enum status st)
{
    struct answer *a = answer_of(c);
    a->item = a->start;
    a->failure_status = http_failure_status(st);
    return st;
}

static enum status multi(struct call *c)
{
    struct answer *a = answer_of(c);
    const struct pipeline *p = a->call->detail;
    if (!can_run(c, p))
        return ST_OK;
    c->all_of_it = true;
    if (a->call->must_write && c->write_err && c->write_err->code != ST_OK) {
        *c->err = *c->write_err;
        return fail(c, c->write_err->code);
    }
    buf_add(a->out, "[", 1);
    for (size_t i = 0; i < p->n; i++) {
        if (i)
            buf_add(a->out, ",", 1);
        upstash_item_begin(a);
        enum status st = command_run_step(c, p->commands[i].cmd, p->commands[i].argv, p->commands[i].argc);
        if (st != ST_OK)
            return fail(c, st);
        upstash_item_end(a);
    }
    buf_add(a->out, "]", 1);
    a->head.status = 200;
    return ST_OK;
}

/* clang-format off */
const struct command http_multi_commands[] = {
    {.name = "http|multi-exec", .fn = multi, .arity = 1, .flags = CMD_SKIP_SLOWLOG, .group = "http"},
    {.name = NULL},
};
/* clang-format on */
