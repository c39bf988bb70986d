/* What requests mean: routes, queries, bodies, conditions, and the handlers behind them, over a real engine.
   Whatever is asked, the answer is whole: a head with the right length, and JSON where it says so; the server
   goes on; and nothing of a batch is left when it failed.

   The input has parts that end with a NUL: the method, the target, Content-Type, If-Match, If-None-Match,
   Accept, Upstash-Encoding; what is left is the body. Several requests are separated by two bytes 0xFF. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

#include "base/buf.h"
#include "base/clock.h"
#include "engine/engine.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "http/api.h"
#include "proto/json.h"
#include "stats/stats.h"

/* ---- the world ---- */

static struct {
    bool ready;
    char folder[64];
    struct store *store;
    struct engine *engine;
    struct config config;
    struct server server;
    struct executor executor;
    struct session session;
    struct http_api *api;
} world;

static void remove_files(void)
{
    static const char *const names[] = {"db", "db-wal", "db-shm", "db.lock", "db-journal"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", world.folder, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(world.folder);
}

static void end_world(void)
{
    http_api_free(world.api);
    session_release(&world.session);
    executor_release(&world.executor);
    stats_release(&world.server);
    server_release(&world.server);
    engine_free(world.engine);
    store_close(world.store);
    config_release(&world.config);
    remove_files();
}

static void make_world(void)
{
    char url[96];
    struct error err;
    snprintf(world.folder, sizeof world.folder, "%s/larder-fuzz-XXXXXX", P_tmpdir);
    CHECK_OR_DIE(mkdtemp(world.folder));
    snprintf(url, sizeof url, "sqlite:%s/db", world.folder);
    clock_fake_us(INT64_C(1700000000000000));
    config_init(&world.config);
    struct store_options o = {
        .url = url, .durability = DURABILITY_OFF, .databases = 4, .page_cache = 1 << 20};
    struct engine_options e = {.databases = 4, .cache_memory = 1 << 20};
    CHECK_OR_DIE(store_open(&o, &world.store, &err) == ST_OK);
    CHECK_OR_DIE(engine_new(world.store, &e, &world.engine, &err) == ST_OK);
    server_init(&world.server);
    stats_init(&world.server);
    executor_init(&world.executor, &world.server, &world.config, world.engine);
    session_init(&world.session, NULL, true);
    world.session.no_block = true;
    world.executor.http = world.api = http_api_new(&world.executor);
    world.ready = true;
    atexit(end_world);
}

static void begin(struct error *ret_write_err)
{
    struct error err;
    CHECK_OR_DIE(engine_begin(world.engine, true, ret_write_err, &err) == ST_OK);
    CHECK_OR_DIE(ret_write_err->code == ST_OK);
    world.executor.clock_us = clock_mono_us();
}

static void commit(void)
{
    struct error err;
    enum status st = engine_commit(world.engine, NULL, &err);
    if (st != ST_OK)
        fprintf(stderr, "%s\n", err.text);
    CHECK_OR_DIE(st == ST_OK);
}

static void empty(void)
{
    struct error err;
    begin(&err);
    engine_enter(world.engine);
    for (uint32_t i = 0; i < view_databases(world.executor.view); i++)
        CHECK_OR_DIE(view_flush_db(world.executor.view, i) == ST_OK);
    engine_leave(world.engine, true);
    commit();
}

/* ---- requests ---- */

static struct slice part(struct slice *rest)
{
    const char *end = rest->n ? memchr(rest->p, '\0', rest->n) : NULL;
    size_t n = end ? (size_t)(end - rest->p) : rest->n;
    struct slice s = slice_of(rest->p, n);
    n += end != NULL;
    *rest = slice_of(rest->p + n, rest->n - n);
    return s;
}

static enum http_method method_named(struct slice name)
{
    static const enum http_method methods[] = {HTTP_GET,  HTTP_HEAD,   HTTP_PUT,
                                               HTTP_POST, HTTP_DELETE, HTTP_OPTIONS};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (slice_is(name, http_method_str(methods[i])))
            return methods[i];
    return HTTP_PATCH;
}

static void set_header(struct http_request *r, enum http_header h, struct slice value)
{
    if (value.n)
        r->headers[h] = value;
}

static struct http_request read_request(struct slice input)
{
    struct http_request r = {.keep_alive = true, .method = method_named(part(&input))};
    struct slice target = part(&input);
    const char *mark = target.n ? memchr(target.p, '?', target.n) : NULL;
    r.path = slice_of(target.p, mark ? (size_t)(mark - target.p) : target.n);
    r.query = mark ? slice_of(mark + 1, target.n - r.path.n - 1) : slice_of(target.p + target.n, 0);
    if (r.path.n == 0)
        r.path = SLICE("/");
    r.headers[HTTP_HOST] = SLICE("localhost");
    set_header(&r, HTTP_CONTENT_TYPE, part(&input));
    set_header(&r, HTTP_IF_MATCH, part(&input));
    set_header(&r, HTTP_IF_NONE_MATCH, part(&input));
    set_header(&r, HTTP_ACCEPT, part(&input));
    set_header(&r, HTTP_UPSTASH_ENCODING, part(&input));
    r.body = input;
    return r;
}

/* DEBUG may end the process, CONFIG SET and the like change what comes after. */
static bool is_harmless(const struct http_call *x)
{
    if (!x->cmd)
        return true;
    for (const char *const *name =
             (const char *const[]){"debug", "shutdown", "config", "client", "save", "bgsave", NULL};
         *name; name++)
        if (strcmp(x->cmd->name, *name) == 0)
            return false;
    return true;
}

static void check_answer(struct slice answer, bool bodiless)
{
    struct json v;
    const char *why, *end = NULL;
    size_t at;
    CHECK_OR_DIE(answer.n > 12 && memcmp(answer.p, "HTTP/1.1 ", 9) == 0);
    for (size_t i = 0; !end && i + 4 <= answer.n; i++)
        if (memcmp(answer.p + i, "\r\n\r\n", 4) == 0)
            end = answer.p + i + 4;
    CHECK_OR_DIE(end);
    struct slice head = slice_of(answer.p, (size_t)(end - answer.p));
    struct slice body = slice_of(end, answer.n - head.n);
    const char *length = memmem(head.p, head.n, "Content-Length: ", 16);
    if (bodiless || !length) {
        CHECK_OR_DIE(body.n == 0);
        return;
    }
    CHECK_OR_DIE(strtoull(length + 16, NULL, 10) == body.n);
    if (memmem(head.p, head.n, "application/json", 16) && !json_check(body, &v, &why, &at)) {
        fprintf(stderr, "%s at %zu: %.*s\n", why, at, (int)body.n, body.p);
        abort();
    }
}

static void run_request(struct slice input)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct error write_err;
    char *copy = malloc(input.n ? input.n : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, input.p, input.n);
    struct http_request r = read_request(slice_of(copy, input.n));
    struct http_call *x = http_prepare(world.api, &r, &arena);
    if (is_harmless(x)) {
        x->received_us = clock_mono_us();
        begin(&write_err);
        http_answer(world.api, &world.session, x, &out, &write_err);
        commit();
        check_answer(buf_slice(&out), r.method == HTTP_HEAD);
    }
    buf_release(&out);
    arena_release(&arena);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = slice_of(data, size);
    if (!world.ready)
        make_world();
    empty();
    while (rest.n) {
        const char *end = memmem(rest.p, rest.n, "\xff\xff", 2);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        run_request(slice_of(rest.p, n));
        n += end ? 2 : 0;
        rest = slice_of(rest.p + n, rest.n - n);
    }
    return 0;
}
