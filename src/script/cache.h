/* The scripts that this process knows by their SHA1, of all its executors: those that EVAL has brought, and
   what was read of those that the database knows (rows.h). What each executor has compiled of them is in
   scripts.h. Locks itself.

   A script stays until there are more than SCRIPTS_MAX of them, or more than SCRIPTS_BYTES of their texts:
   then the ones that were least recently used go, some at a time.

   SCRIPT FLUSH, of whichever server, makes rows_flushes greater: a script is known to a transaction that sees
   a number not greater than the one it was brought under. So nobody has to be told, and a flush that is
   undone has not been. */
#ifndef LARDER_SCRIPT_CACHE_H
#define LARDER_SCRIPT_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"

#define SCRIPT_SHA_CHARS 40
#define SCRIPTS_MAX      10000
#define SCRIPTS_BYTES    (64u << 20)

struct script_cache;

/* It does not change but for what is atomic; whoever holds a reference may read it. */
struct script {
    struct map_link link;           /* first; in the cache, by sha1 */
    char sha[SCRIPT_SHA_CHARS + 1]; /* lower case */
    uint32_t flags;                 /* enum script_flag */
    struct slice body;              /* as it came, behind the struct */
    struct slice text;              /* the part of it that is Lua */
    struct script *next;            /* of those that are being flushed; under the cache's lock */
    _Atomic uint32_t references;
    _Atomic uint64_t used;   /* a clock of uses */
    _Atomic int64_t flushes; /* rows_flushes when it was last brought */
    _Atomic bool gone;       /* flushed, or given up: it is not in the cache any more */
};

/* Lower case hexadecimal, with a NUL. */
void script_sha1(struct slice bytes, char out[SCRIPT_SHA_CHARS + 1]);

struct script_cache *script_cache_new(void);
void script_cache_free(struct script_cache *c);

/* Whether a transaction that sees so many flushes knows it. */
static inline bool script_known(const struct script *s, int64_t flushes)
{
    return !atomic_load_explicit(&s->gone, memory_order_acquire) &&
           atomic_load_explicit(&s->flushes, memory_order_relaxed) >= flushes;
}

/* By sha1 (40 characters, case ignored); NULL: not known. The caller lets go of what it gets. */
struct script *script_cache_find(struct script_cache *c, struct slice sha, int64_t flushes);

/* Adds a script whose text has been compiled, or finds it. */
struct script *script_cache_add(struct script_cache *c, const char *sha, struct slice body, struct slice text,
                                uint32_t flags, int64_t flushes);
void script_let_go(struct script *s);

/* It was used now. */
void script_touch(struct script_cache *c, struct script *s);

/* Whoever sees so many flushes knows none that was brought before: they go. */
void script_cache_flush(struct script_cache *c, int64_t flushes);

struct script_cache_size {
    size_t scripts, bytes;
};
struct script_cache_size script_cache_size(struct script_cache *c);

#endif
