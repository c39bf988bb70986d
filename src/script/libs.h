/* The libraries that Redis' scripts have beside Lua's own: cjson, bit, cmsgpack and struct. Each of these
   leaves its table at the top of the stack, as luaopen_* do (struct interp_module). All memory that they use
   is Lua's, but for what lib_cjson.c says of decode. */
#ifndef LARDER_SCRIPT_LIBS_H
#define LARDER_SCRIPT_LIBS_H

struct lua_State;

int lib_bit_open(struct lua_State *L);
int lib_cjson_open(struct lua_State *L);
int lib_msgpack_open(struct lua_State *L);
int lib_struct_open(struct lua_State *L);

/* Settings of cjson that a script has changed are what they were at first: no script sees what another did.
   Cheap when nothing was changed. May raise. */
void lib_cjson_reset(struct lua_State *L);

#endif
