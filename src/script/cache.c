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
    struct map map; /* scripts that are not gone, each with a reference */
    size_t bytes;   /* of all */
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

void script_cache_free(struct script_cache *c)
{
    if (!c)
        return;
    map_each(&c->map, forget, NULL);
    map_release(&c->map);
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

struct script *script_cache_find(struct script_cache *c, struct slice sha, int64_t flushes)
{
    char lower[SCRIPT_SHA_CHARS];
    if (sha.n != SCRIPT_SHA_CHARS)
        return NULL;
    for (size_t i = 0; i < SCRIPT_SHA_CHARS; i++)
        lower[i] = (char)tolower((unsigned char)sha.p[i]);
    pthread_mutex_lock(&c->lock);
    struct script *s = find(c, lower);
    s = s && script_known(s, flushes) ? hold(s) : NULL;
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
    forget(NULL, &s->link);
}

/* When the scripts were used: the first and the last of them. */
struct span {
    uint64_t first, last;
};

static void widen(void *arg, struct map_link *l)
{
    struct span *span = arg;
    struct script *s = (struct script *)l;
    uint64_t used = atomic_load_explicit(&s->used, memory_order_relaxed);
    span->first = used < span->first ? used : span->first;
    span->last = used > span->last ? used : span->last;
}

static void forget_used_until(struct script_cache *c, uint64_t until)
{
    for (size_t i = 0; i < map_buckets(&c->map); i++) {
        for (struct map_link **at = map_bucket(&c->map, i), *l; (l = *at);) {
            struct script *s = (struct script *)l;
            if (atomic_load_explicit(&s->used, memory_order_relaxed) > until) {
                at = &l->next;
                continue;
            }
            map_cut(&c->map, at);
            c->bytes -= s->body.n;
            forget(NULL, l);
        }
    }
}

/* Makes room for a script of n bytes: the least recently used ones go, several at once, so that a client that
   never sends the same script twice does not have all of them looked at each time. The lock is held. */
static void make_room(struct script_cache *c, size_t n)
{
    while (c->map.count > 0 && (c->map.count >= SCRIPTS_MAX || c->bytes + n > SCRIPTS_BYTES)) {
        struct span span = {.first = UINT64_MAX};
        map_each(&c->map, widen, &span);
        forget_used_until(c, span.first + (span.last - span.first) / 8);
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
                                uint32_t flags, int64_t flushes)
{
    pthread_mutex_lock(&c->lock);
    struct script *s = find(c, sha);
    if (!s) {
        make_room(c, body.n);
        s = script_new(sha, body, text, flags);
        map_add(&c->map, &s->link);
        c->bytes += body.n;
    }
    if (atomic_load_explicit(&s->flushes, memory_order_relaxed) < flushes)
        atomic_store_explicit(&s->flushes, flushes, memory_order_relaxed);
    script_touch(c, s);
    hold(s);
    pthread_mutex_unlock(&c->lock);
    return s;
}

struct flushing {
    struct script *first; /* of those that go */
    int64_t flushes;
};

static void look_for_flushed(void *arg, struct map_link *l)
{
    struct flushing *f = arg;
    struct script *s = (struct script *)l;
    if (script_known(s, f->flushes))
        return;
    s->next = f->first;
    f->first = s;
}

void script_cache_flush(struct script_cache *c, int64_t flushes)
{
    struct flushing f = {.flushes = flushes};
    pthread_mutex_lock(&c->lock);
    map_each(&c->map, look_for_flushed, &f);
    for (struct script *s = f.first, *next; s; s = next) {
        next = s->next;
        remove_script(c, s);
    }
    pthread_mutex_unlock(&c->lock);
}

struct script_cache_size script_cache_size(struct script_cache *c)
{
    pthread_mutex_lock(&c->lock);
    struct script_cache_size size = {c->map.count, c->bytes};
    pthread_mutex_unlock(&c->lock);
    return size;
}
