/* Redis' commands over HTTP, in the dialect that Upstash's clients speak: a command is a JSON array of words
   (POST /), or the segments of a path (GET /get/k); its reply is {"result": ...} or {"error": "..."}. */
#include "command/http_internal.h"

#include "base/vec.h"
#include "proto/uri.h"

#define MAX_WORDS (1 << 20)

/* ---- words ---- */

/* What needs a connection with a state of its own, which requests do not have. */
static bool needs_connection(const struct command *cmd)
{
    static const char *const words[] = {"select", "auth", "hello",   "reset", "quit",    "monitor",
                                        "multi",  "exec", "discard", "watch", "unwatch", "client|reply"};
    char name[COMMAND_NAME_CHARS];
    command_full_name(cmd, name);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return true;
    return false;
}

/* Finds the command that the words name. False: it cannot be run here, which has been refused. */
static bool find_command(struct http_call *x)
{
    x->cmd = command_find(x->argv[0]);
    if (!x->cmd)
        return true;
    const struct command *cmd = x->cmd;
    if (cmd->subs && x->argc > 1)
        cmd = command_find_sub(cmd, x->argv[1]);
    if (cmd && needs_connection(cmd)) {
        http_refuse(x, 400, "", "ERR %s is not for HTTP, where each request stands alone%s", cmd->name,
                    strcmp(cmd->group, "transactions") == 0 ? ": POST /multi-exec instead" : "");
        return false;
    }
    x->writes = cmd && (cmd->flags & CMD_WRITE);
    return true;
}

/* One word of a command. */
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

static bool read_words(struct http_call *x, const struct json *v)
{
    size_t n = v->kind == JSON_ARRAY ? json_count(v) : 0;
    if (n == 0 || n > MAX_WORDS) {
        http_refuse(x, 400, "", "ERR a command is an array such as [\"SET\", \"key\", \"value\"]");
        return false;
    }
    struct json_walk w;
    struct json word;
    x->argv = arena_alloc(x->arena, n * sizeof *x->argv);
    x->argc = 0;
    json_begin(&w, v);
    while (json_next_item(&w, &word))
        if (!read_word(x, &word, &x->argv[x->argc++]))
            return false;
    return true;
}

/* ---- preparing ---- */

void upstash_command(struct http_api *api, struct http_call *x)
{
    struct json body;
    (void)api;
    if (http_json_body(x, JSON_ARRAY, &body) && read_words(x, &body))
        find_command(x);
}

static void add_word(struct slice **words, size_t *n, size_t *cap, struct slice word)
{
    VEC_PUSH(*words, *n, *cap) = word;
}

static bool decode(struct http_call *x, struct slice text, bool plus, struct slice *ret)
{
    if (uri_decode(text, plus, x->arena, ret))
        return true;
    http_refuse(x, 400, "", "ERR a %% must be followed by two hexadecimal digits");
    return false;
}

/* /set/k with the body behind it, then ?EX=100 as EX 100. */
void upstash_path(struct http_api *api, struct http_call *x)
{
    struct slice path = x->request.path, query = x->request.query, word, name, value;
    struct slice *words = NULL;
    size_t n = 0, cap = 0;
    bool bare, ok = true;
    (void)api;
    while (ok && uri_segment(&path, &word)) {
        ok = decode(x, word, false, &word);
        add_word(&words, &n, &cap, word);
    }
    if (x->request.body.n)
        add_word(&words, &n, &cap, x->request.body);
    while (ok && uri_param(&query, &name, &value, &bare)) {
        ok = decode(x, name, true, &name) && decode(x, value, true, &value);
        add_word(&words, &n, &cap, name);
        if (!bare)
            add_word(&words, &n, &cap, value);
    }
    x->argc = (int)n;
    x->argv = arena_alloc(x->arena, n * sizeof *words);
    memcpy(x->argv, words, n * sizeof *words);
    mem_free(words);
    if (ok)
        find_command(x);
}

/* ---- running ---- */

int64_t upstash_run(struct http_api *api, struct session *s, struct http_call *x,
                    const struct error *write_err)
{
    struct answer *a = &api->answer;
    upstash_item_begin(a);
    int64_t wait = http_run_command(api, s, x, write_err);
    upstash_item_end(a);
    return wait;
}
