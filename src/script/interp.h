/* One Lua state and its sandbox: what Redis 7.0's scripts find in it and nothing more.

   There are two of them for each executor, as Redis has two: one for EVAL, one for function libraries, whose
   globals are their own. The executor's thread alone uses them.

   Memory: all of Lua's comes through an allocator that counts, and refuses beyond memory_max: then Lua
   raises an error, which ends the script. So everything that can raise runs inside lua_pcall or lua_cpcall,
   and a C function that Lua calls holds nothing that an error would lose.

   Read-only tables: Lua 5.1 has none. A protected table is seen through its face, an empty table whose
   metatable leads to the true one: reads find what is there, writes are refused, and the functions that
   would look past a metatable (next, pairs, rawget, rawset, table.insert, ...) know faces. A face is all that
   a script ever gets hold of. */
#ifndef LARDER_SCRIPT_INTERP_H
#define LARDER_SCRIPT_INTERP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct loading;
struct lua_State;
struct scripts;
struct script_run;

enum interp_kind { INTERP_EVAL, INTERP_FUNCTIONS };
#define INTERPS 2

struct interp {
    struct lua_State *L;
    enum interp_kind kind;
    struct scripts *scripts; /* its owner */
    struct script_run *run;  /* what runs in it now; NULL: nothing */
    size_t memory;           /* bytes that Lua has */
    size_t memory_max;       /* and may have; SIZE_MAX: any. May be changed at any time */
    size_t collect_at;       /* with so much a running script's garbage is collected; SIZE_MAX: that is due */
    int globals;             /* registry references: the true table of globals ... */
    int face;                /* ... and its face, the environment of all that scripts bring */
    bool gc_changed;         /* a script has told the collector to stop, or how fast to be (guards.h) */
    struct loading *loading; /* of load.c: the library whose body runs now; NULL: none */
    int handler;             /* what lua_pcall takes as the error function: it notes where an error arose */
};

/* NULL: not even an empty one fits into memory_max. */
struct interp *interp_new(struct scripts *scripts, enum interp_kind kind, size_t memory_max);
void interp_free(struct interp *in);

/* The interpreter that a C function is called by. */
struct interp *interp_of(struct lua_State *L);

/* Compiles text (never bytecode) in the environment of the globals' face. chunk: "@user_script", as errors
   name it. True: *ret_ref is a registry reference of the function; false: *err has Lua's message. */
bool interp_compile(struct interp *in, struct slice text, const char *chunk, int *ret_ref, struct buf *err);
void interp_forget(struct interp *in, int ref);

/* Collects all that nothing refers to. Never raises: the collector itself may need memory for a moment, and
   gets it whatever the bound is. */
void interp_collect(struct interp *in);

/* A run begins, or the collector has done its work: says when it is to do it next. */
void interp_collected(struct interp *in);

/* From the hook: does it, if that is due. */
bool interp_collect_due(struct interp *in, struct lua_State *L);

/* ---- for C functions of the sandbox (these may raise) ---- */

/* Replaces the table at the top of the stack by its face. Tables inside it are not protected by that. */
void interp_protect(struct lua_State *L);

/* Whether the value at an index is a face; interp_true pushes the true table then, else the value. */
bool interp_is_face(struct lua_State *L, int index);
void interp_true(struct lua_State *L, int index);

/* Raises "Attempt to modify a readonly table" if the value at an index is a face. */
void interp_check_writable(struct lua_State *L, int index);

/* Raises an error object {err = "ERR ..."}, as redis.call does: its text has no position in front. */
int interp_raise(struct lua_State *L, const char *text) __attribute__((noreturn));

/* A library of the sandbox: opened once, its table is protected and becomes a global of this name. open
   leaves the table at the top of the stack, as luaopen_* do, and sets no global. The list is in modules.c;
   one more library is one more line there. */
struct interp_module {
    const char *name;
    int (*open)(struct lua_State *L);
};
extern const struct interp_module interp_modules[]; /* ends with a NULL name */

/* The table `redis` as every script sees it goes onto the stack, unprotected (api.c): whoever makes an
   environment of its own (function libraries while they load) adds to it and protects it. */
void interp_push_api(struct lua_State *L);

#endif
