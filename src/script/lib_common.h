/* What the libraries of the sandbox share.

   struct lua_out: bytes that a C function gathers and gives back as one Lua string. They are at first in the
   struct, on the C stack, and beyond that in a userdata of Lua's, at a place of the stack that lua_out_begin
   takes: so script-memory counts them, and an error that Lua raises at any point loses nothing. */
#ifndef LARDER_SCRIPT_LIB_COMMON_H
#define LARDER_SCRIPT_LIB_COMMON_H

#include <stddef.h>
#include <string.h>

struct lua_State;

struct lua_out {
    struct lua_State *L;
    char *p;
    size_t n, cap;
    int slot; /* of Lua's stack: nil, or the userdata that p is in */
    char small[512];
};

/* Takes one place of the stack, above what is there. */
void lua_out_begin(struct lua_out *o, struct lua_State *L);

/* More room than there is: n bytes at the least. */
void lua_out_grow(struct lua_out *o, size_t n);

/* Where the next n bytes go; the caller writes up to n of them and adds to o->n what it wrote. */
static inline char *lua_out_room(struct lua_out *o, size_t n)
{
    if (o->cap - o->n < n)
        lua_out_grow(o, n);
    return o->p + o->n;
}

static inline void lua_out_add(struct lua_out *o, const void *p, size_t n)
{
    char *to = lua_out_room(o, n);
    if (n)
        memcpy(to, p, n);
    o->n += n;
}

static inline void lua_out_byte(struct lua_out *o, char c)
{
    *lua_out_room(o, 1) = c;
    o->n++;
}

/* Pushes the string. */
void lua_out_end(struct lua_out *o);

/* If the table at the top of the stack is the face of a protected one, that takes its place. */
void lib_see_through(struct lua_State *L);

#endif
