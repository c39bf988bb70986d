/* Functions of Lua's own libraries in a form that no argument makes dangerous. */
#ifndef LARDER_SCRIPT_GUARDS_H
#define LARDER_SCRIPT_GUARDS_H

struct interp;
struct lua_State;

/* Puts them into the libraries of the table of globals at an index, before these are protected. */
void guard_libraries(struct lua_State *L, int globals);

/* The collector works as at first, after a script that has set it otherwise. */
void guard_restore_collector(struct interp *in);

#endif
