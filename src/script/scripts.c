#include "script/scripts.h"

#include <ctype.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/library.h"
#include "script/rows.h"
#include "script/run.h"
#include "script/shebang.h"

#define CHUNK "@user_script"

struct scripts *scripts_of(struct executor *executor)
{
    struct scripts *s = executor->scripts;
    if (s)
        return s;
    s = executor->scripts = mem_zalloc(sizeof *s);
    s->executor = executor;
    resp_reply_init(&s->reply, &s->said, 2);
    return s;
}

static struct compiled *of_body_link(struct map_link *l)
{
    return (struct compiled *)(void *)((char *)l - offsetof(struct compiled, by_body));
}

/* ---- most recently used first ---- */

static void unlink_compiled(struct scripts *s, struct compiled *c)
{
    *(c->prev ? &c->prev->next : &s->first) = c->next;
    *(c->next ? &c->next->prev : &s->last) = c->prev;
    c->prev = c->next = NULL;
}

static void put_first(struct scripts *s, struct compiled *c)
{
    c->prev = NULL;
    c->next = s->first;
    *(s->first ? &s->first->prev : &s->last) = c;
    s->first = c;
}

static void drop(struct scripts *s, struct compiled *c)
{
    map_remove(&s->by_sha, &c->by_sha);
    map_remove(&s->by_body, &c->by_body);
    unlink_compiled(s, c);
    s->ncompiled--;
    interp_forget(s->interps[INTERP_EVAL], c->ref);
    script_let_go(c->script);
    mem_free(c);
}

static struct compiled *use(struct scripts *s, struct compiled *c)
{
    if (s->first != c) {
        unlink_compiled(s, c);
        put_first(s, c);
    }
    script_touch(s->executor->server->script_cache, c->script);
    return c;
}

void scripts_free(struct scripts *s)
{
    if (!s)
        return;
    while (s->first)
        drop(s, s->first);
    libraries_free(s->libraries);
    for (int i = 0; i < INTERPS; i++)
        interp_free(s->interps[i]);
    map_release(&s->by_sha);
    map_release(&s->by_body);
    mem_free(s->argv);
    buf_release(&s->numbers);
    buf_release(&s->said);
    s->executor->scripts = NULL;
    mem_free(s);
}

struct interp *scripts_interp(struct scripts *s, enum interp_kind kind)
{
    if (!s->interps[kind])
        s->interps[kind] = interp_new(s, kind, s->executor->config->script_memory);
    return s->interps[kind];
}

size_t scripts_memory(const struct scripts *s)
{
    size_t sum = 0;
    for (int i = 0; s && i < INTERPS; i++)
        sum += s->interps[i] ? s->interps[i]->memory : 0;
    return sum;
}

/* ---- finding and compiling ---- */

static uint32_t hash_of(struct slice s)
{
    return (uint32_t)hash_bytes(s, 0);
}

/* Compiles a script and takes over the reference to it. NULL: *err says why. */
static struct compiled *add(struct scripts *s, struct script *script, int ref)
{
    while (s->ncompiled >= COMPILED_MAX)
        drop(s, s->last);
    struct compiled *c = mem_zalloc(sizeof *c);
    c->script = script;
    c->ref = ref;
    c->by_sha.hash = hash_of(slice_of(script->sha, SCRIPT_SHA_CHARS));
    c->by_body.hash = hash_of(script->body);
    map_add(&s->by_sha, &c->by_sha);
    map_add(&s->by_body, &c->by_body);
    put_first(s, c);
    s->ncompiled++;
    return c;
}

/* What was compiled is given up when the interpreter is half full of it: the least recently used half, and
   what the most recent ones need to be found again is their text alone. */
static void make_room(struct scripts *s)
{
    struct interp *in = s->interps[INTERP_EVAL];
    if (!in || in->memory <= in->memory_max / 2)
        return;
    interp_collect(in);
    for (size_t n = in->memory > in->memory_max / 2 ? (s->ncompiled + 1) / 2 : 0; n > 0; n--)
        drop(s, s->last);
    interp_collect(in);
}

static bool compile(struct scripts *s, struct slice text, int *ret_ref, struct buf *err)
{
    struct interp *in = scripts_interp(s, INTERP_EVAL);
    struct buf why = {0};
    if (!in) {
        buf_addf(err, "ERR the interpreter has no memory (script-memory)");
        return false;
    }
    bool ok = interp_compile(in, text, CHUNK, ret_ref, &why);
    if (!ok)
        buf_addf(err, "ERR Error compiling script (new function): %.*s", (int)why.len, why.p);
    buf_release(&why);
    return ok;
}

enum status scripts_begin(struct scripts *s, struct view *v)
{
    enum status st = rows_flushes(v, &s->flushes);
    if (st == ST_OK && s->flushes > s->flushed) {
        script_cache_flush(s->executor->server->script_cache, s->flushes);
        s->flushed = s->flushes;
    }
    return st;
}

/* One that was found, unless the process has given it up. */
static struct compiled *if_kept(struct scripts *s, struct compiled *c)
{
    if (!atomic_load_explicit(&c->script->gone, memory_order_acquire))
        return c;
    drop(s, c);
    return NULL;
}

static struct compiled *find_body(struct scripts *s, struct slice body, uint32_t hash)
{
    for (struct map_link *l = map_first(&s->by_body, hash); l; l = l->next) {
        struct compiled *c = of_body_link(l);
        if (l->hash == hash && slice_eq(c->script->body, body))
            return if_kept(s, c);
    }
    return NULL;
}

struct compiled *scripts_by_body(struct scripts *s, struct slice body, struct buf *err)
{
    struct script_cache *cache = s->executor->server->script_cache;
    make_room(s);
    struct compiled *c = find_body(s, body, hash_of(body));
    struct slice text;
    uint32_t flags;
    char sha[SCRIPT_SHA_CHARS + 1];
    int ref;
    if (c && !script_known(c->script, s->flushes))
        script_let_go(
            script_cache_add(cache, c->script->sha, body, c->script->text, c->script->flags, s->flushes));
    if (c)
        return use(s, c);
    if (!shebang_parse(body, &text, &flags, err) || !compile(s, text, &ref, err))
        return NULL;
    script_sha1(body, sha);
    return add(s, script_cache_add(cache, sha, body, text, flags, s->flushes), ref);
}

static struct compiled *find_sha(struct scripts *s, const char *sha)
{
    uint32_t hash = hash_of(slice_of(sha, SCRIPT_SHA_CHARS));
    for (struct map_link *l = map_first(&s->by_sha, hash); l; l = l->next) {
        struct compiled *c = (struct compiled *)l;
        if (l->hash == hash && memcmp(c->script->sha, sha, SCRIPT_SHA_CHARS) == 0)
            return if_kept(s, c);
    }
    return NULL;
}

/* What the process knows. */
static struct compiled *recall(struct scripts *s, const char *sha, struct buf *err)
{
    make_room(s);
    struct compiled *c = find_sha(s, sha);
    int ref;
    if (c)
        return script_known(c->script, s->flushes) ? use(s, c) : NULL;
    struct script *script =
        script_cache_find(s->executor->server->script_cache, slice_of(sha, SCRIPT_SHA_CHARS), s->flushes);
    if (!script)
        return NULL;
    if (!compile(s, script->text, &ref, err)) {
        script_let_go(script);
        return NULL;
    }
    return use(s, add(s, script, ref));
}

enum status scripts_by_sha(struct scripts *s, struct call *c, struct slice sha, struct compiled **ret,
                           struct buf *err)
{
    char lower[SCRIPT_SHA_CHARS];
    bool found;
    struct slice body;
    *ret = NULL;
    if (sha.n != SCRIPT_SHA_CHARS)
        return ST_OK;
    for (size_t i = 0; i < SCRIPT_SHA_CHARS; i++)
        lower[i] = (char)tolower((unsigned char)sha.p[i]);
    if ((*ret = recall(s, lower, err)) || err->len)
        return ST_OK;
    enum status st = rows_get_script(c->view, sha, c->arena, &found, &body);
    if (st != ST_OK || !found)
        return st;
    *ret = scripts_by_body(s, body, err);
    if (*ret && memcmp((*ret)->script->sha, lower, sizeof lower) != 0)
        return error_set(c->err, ST_CORRUPT, "the row of a script has another script");
    return ST_OK;
}

enum status scripts_text(struct scripts *s, struct call *c, struct slice sha, struct slice *ret)
{
    bool found;
    struct script *known = script_cache_find(s->executor->server->script_cache, sha, s->flushes);
    *ret = (struct slice){0};
    if (known) {
        *ret = arena_copy(c->arena, known->body);
        script_let_go(known);
        return ST_OK;
    }
    return rows_get_script(c->view, sha, c->arena, &found, ret);
}
