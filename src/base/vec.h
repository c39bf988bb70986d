/* Growth for plain arrays kept as (items, len, cap). */
#ifndef LARDER_BASE_VEC_H
#define LARDER_BASE_VEC_H

#include <stddef.h>

#include "base/mem.h"

/* The next free element, as an lvalue: VEC_PUSH(v->rows, v->len, v->cap) = row; */
#define VEC_PUSH(items, len, cap)                                                                            \
    (*((items) = vec_room((items), (len), &(cap), sizeof *(items)), &(items)[(len)++]))

static inline void *vec_room(void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap)
        return items;
    *cap = *cap ? *cap * 2 : 16;
    return mem_realloc(items, *cap * size);
}

#endif
