/* redis.call, redis.pcall and redis.acl_check_cmd, as functions that Lua calls. */
#ifndef LARDER_SCRIPT_CALL_H
#define LARDER_SCRIPT_CALL_H

struct lua_State;

int script_call(struct lua_State *L);
int script_pcall(struct lua_State *L);
int script_acl_check_cmd(struct lua_State *L);

#endif
