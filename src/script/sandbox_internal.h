/* What the files of the sandbox share. */
#ifndef LARDER_SCRIPT_SANDBOX_INTERNAL_H
#define LARDER_SCRIPT_SANDBOX_INTERNAL_H

#include <lua.h>
#include <stdbool.h>

#include "base/slice.h"
#include "script/interp.h"

/* For lua_cpcall, with the interpreter: fills the state with what scripts find there (sandbox.c). */
int sandbox_open(lua_State *L);

/* Reading a field that is not in the table at the top of the stack is an error from now on. */
void sandbox_guard(lua_State *L);

/* The functions of Lua that scripts get in a form of ours (base.c): sets them in the true table of globals,
   and in those of its libraries. */
void sandbox_replace_base(lua_State *L, int globals);

/* What getmetatable shows in the place of a face's metatable: the table at the top of the stack, which is
   popped, for the face of the true table at index; and for strings, when the library is protected. */
void sandbox_set_shown(lua_State *L, int index);
void sandbox_show_strings(lua_State *L, int globals);

/* lua_load of a text, which is never taken for bytecode. */
int interp_load(lua_State *L, struct slice text, const char *chunk);

/* Pushes {err = text}. */
void interp_push_error(lua_State *L, struct slice text);

/* Marks the error object at the top of the stack as one that has been counted as a command's, so that it is
   not counted again when the script passes it on. */
void interp_mark_told(lua_State *L);
bool interp_is_told(lua_State *L, int table);

/* The error function of a run. */
int interp_handle_error(lua_State *L);

/* Called every HOOK_INSTRUCTIONS (run.c). */
#define HOOK_INSTRUCTIONS 10000
void script_hook(lua_State *L, lua_Debug *at);

/* So, before each command that a script calls, which is few instructions and may be much time. May raise. */
struct script_run;
void script_between_calls(lua_State *L, struct script_run *run);

/* So, before a function of C that goes through much: one that is called again and again would let the script
   come to the end of its instructions in minutes. Nothing, if no script runs. */
#define MUCH_BYTES 8192
#define MUCH_ITEMS 512
void script_before_much(lua_State *L);

#endif
