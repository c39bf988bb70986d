/* Memory that cannot fail: the process ends with a message when the system has none left. */
#ifndef LARDER_BASE_MEM_H
#define LARDER_BASE_MEM_H

#include <stddef.h>

#include "base/slice.h"

void *mem_alloc(size_t n) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *mem_realloc(void *p, size_t n) __attribute__((returns_nonnull));
void mem_free(void *p);

/* What the allocator really spends on p, its rounding included. */
size_t mem_size(void *p);

/* A NUL-terminated copy. */
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_strndup(struct slice s) __attribute__((malloc, returns_nonnull));

/* Bytes that the process has resident, and has allocated (0 where the system does not tell). */
size_t mem_rss(void);
size_t mem_used(void);

/* Gives free memory back to the system. */
void mem_purge(void);

#endif
