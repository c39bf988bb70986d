/* The allocator behind everything: the C library's, or jemalloc when the build links it. A server that
   cannot allocate cannot answer either, so there is one place that gives up, here. */
#include "base/mem.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef LARDER_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

static _Noreturn void out_of_memory(size_t n)
{
    fprintf(stderr, "larder: out of memory (allocating %zu bytes)\n", n);
    abort();
}

void *mem_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        out_of_memory(n);
    return p;
}

void *mem_zalloc(size_t n)
{
    void *p = calloc(1, n ? n : 1);
    if (!p)
        out_of_memory(n);
    return p;
}

void *mem_realloc(void *old, size_t n)
{
    void *p = realloc(old, n ? n : 1);
    if (!p)
        out_of_memory(n);
    return p;
}

void mem_free(void *p)
{
    free(p);
}

size_t mem_size(void *p)
{
    return malloc_usable_size(p);
}

char *mem_strdup(const char *s)
{
    return mem_strndup(slice_str(s));
}

char *mem_strndup(struct slice s)
{
    char *p = mem_alloc(s.n + 1);
    if (s.n)
        memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return p;
}

size_t mem_rss(void)
{
    /* "total resident ..." in pages */
    char line[128] = "";
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f)
        return 0;
    const char *space = fgets(line, sizeof line, f) ? strchr(line, ' ') : NULL;
    fclose(f);
    long page = sysconf(_SC_PAGESIZE);
    return space && page > 0 ? strtoul(space, NULL, 10) * (size_t)page : 0;
}

#ifdef LARDER_JEMALLOC
size_t mem_used(void)
{
    /* jemalloc's statistics are a snapshot that writing the epoch renews. */
    uint64_t epoch = 1;
    size_t used = 0, len = sizeof used;
    if (mallctl("epoch", NULL, NULL, &epoch, sizeof epoch) ||
        mallctl("stats.allocated", &used, &len, NULL, 0))
        return 0;
    return used;
}

void mem_purge(void)
{
    /* Every arena: jemalloc's number for all of them. */
    char name[40];
    snprintf(name, sizeof name, "arena.%u.purge", (unsigned)MALLCTL_ARENAS_ALL);
    (void)mallctl(name, NULL, NULL, NULL, 0);
}
#else
size_t mem_used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

void mem_purge(void)
{
    malloc_trim(0);
}
#endif
