#include "script/cache.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define SHA_BYTES 20

struct script_cache {
    pthread_mutex_t lock;
    struct map map;                /* scripts that are not gone, each with a reference */
    size_t brought, brought_bytes; /* by EVAL */
    size_t bytes;                  /* of all */
    _Atomic uint64_t uses;
};

void script_sha1(struct slice bytes, char out[SCRIPT_SHA_CHARS + 1])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = SHA_BYTES;
    if (EVP_Digest(bytes.p, bytes.n, digest, &n, EVP_sha1(), NULL) != 1)
        memset(digest, 0, sizeof digest);
    for (size_t i = 0; i < SHA_BYTES; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

struct script_cache *script_cache_new(void)
{
    struct script_cache *c = mem_zalloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

void script_let_go(struct script *s)
{
    if (atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) == 1)
        mem_free(s);
}

static void forget(void *arg, struct map_link *l)
{
    struct script *s = (struct script *)l;
    (void)arg;
    atomic_store_explicit(&s->gone, true, memory_order_release);
    script_let_go(s);
}

/* The lock is held. */
static void forget_all(struct script_cache *c)
{
    map_each(&c->map, forget, NULL);
    map_release(&c->map);
    c->brought = c->brought_bytes = c->bytes = 0;
}

void script_cache_free(struct script_cache *c)
{
    if (!c)
        return;
    forget_all(c);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

static uint32_t hash_of(const char *sha)
{
    return (uint32_t)hash_bytes(slice_of(sha, SCRIPT_SHA_CHARS), 0);
}

/* The lock is held, sha is in lower case. */
static struct script *find(const struct script_cache *c, const char *sha)
{
    uint32_t hash = hash_of(sha);
    for (struct map_link *l = map_first(&c->map, hash); l; l = l->next)
        if (l->hash == hash && memcmp(((struct script *)l)->sha, sha, SCRIPT_SHA_CHARS) == 0)
            return (struct script *)l;
    return NULL;
}

static struct script *hold(struct script *s)
{
    if (s)
        atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
    return s;
}

struct script *script_cache_find(struct script_cache *c, struct slice sha)
{
    char lower[SCRIPT_SHA_CHARS];
    if (sha.n != SCRIPT_SHA_CHARS)
        return NULL;
    for (size_t i = 0; i < SCRIPT_SHA_CHARS; i++)
        lower[i] = (char)tolower((unsigned char)sha.p[i]);
    pthread_mutex_lock(&c->lock);
    struct script *s = hold(find(c, lower));
    pthread_mutex_unlock(&c->lock);
    return s;
}

void script_touch(struct script_cache *c, struct script *s)
{
    uint64_t now = atomic_fetch_add_explicit(&c->uses, 1, memory_order_relaxed) + 1;
    atomic_store_explicit(&s->used, now, memory_order_relaxed);
}

static void remove_script(struct script_cache *c, struct script *s)
{
    map_remove(&c->map, &s->link);
    c->bytes -= s->body.n;
    if (!s->loaded) {
        c->brought--;
        c->brought_bytes -= s->body.n;
    }
    forget(NULL, &s->link);
}

struct oldest {
    struct script *script;
    uint64_t used;
};

static void look_for_oldest(void *arg, struct map_link *l)
{
    struct oldest *o = arg;
    struct script *s = (struct script *)l;
    uint64_t used = atomic_load_explicit(&s->used, memory_order_relaxed);
    if (!s->loaded && (!o->script || used < o->used))
        *o = (struct oldest){s, used};
}

/* Makes room for a script of n bytes that EVAL brings. The lock is held. */
static void make_room(struct script_cache *c, size_t n)
{
    while (c->brought > 0 && (c->brought >= SCRIPTS_MAX || c->brought_bytes + n > SCRIPTS_BYTES)) {
        struct oldest o = {0};
        map_each(&c->map, look_for_oldest, &o);
        remove_script(c, o.script);
    }
}

static struct script *script_new(const char *sha, struct slice body, struct slice text, uint32_t flags)
{
    struct script *s = mem_zalloc(sizeof *s + body.n + 1);
    char *copy = (char *)(s + 1);
    if (body.n)
        memcpy(copy, body.p, body.n);
    memcpy(s->sha, sha, SCRIPT_SHA_CHARS);
    s->body = slice_of(copy, body.n);
    s->text = slice_of(copy + (body.n - text.n), text.n); /* it is the end of the body */
    s->flags = flags;
    s->link.hash = hash_of(sha);
    atomic_store_explicit(&s->references, 1, memory_order_relaxed);
    return s;
}

struct script *script_cache_add(struct script_cache *c, const char *sha, struct slice body, struct slice text,
                                uint32_t flags, bool loaded)
{
    pthread_mutex_lock(&c->lock);
    struct script *s = find(c, sha);
    if (!s) {
        if (!loaded)
            make_room(c, body.n);
        s = script_new(sha, body, text, flags);
        s->loaded = loaded;
        map_add(&c->map, &s->link);
        c->bytes += body.n;
        c->brought += !loaded;
        c->brought_bytes += loaded ? 0 : body.n;
    } else if (loaded && !s->loaded) {
        s->loaded = true;
        c->brought--;
        c->brought_bytes -= body.n;
    }
    script_touch(c, s);
    hold(s);
    pthread_mutex_unlock(&c->lock);
    return s;
}

void script_cache_flush(struct script_cache *c)
{
    pthread_mutex_lock(&c->lock);
    forget_all(c);
    pthread_mutex_unlock(&c->lock);
}

struct script_cache_size script_cache_size(struct script_cache *c)
{
    pthread_mutex_lock(&c->lock);
    struct script_cache_size size = {c->map.count, c->bytes};
    pthread_mutex_unlock(&c->lock);
    return size;
}
