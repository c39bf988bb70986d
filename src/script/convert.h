/* Values of the protocol to Lua's and back, by Redis' rules.

   What a command has replied is RESP bytes in a buffer; they become Lua values after the handler has
   returned, since making values may raise. What a script returns goes to a sink, value by value; nothing is
   gathered. */
#ifndef LARDER_SCRIPT_CONVERT_H
#define LARDER_SCRIPT_CONVERT_H

#include <stdbool.h>

#include "base/slice.h"

struct lua_State;
struct reply;

/* Pushes the value of one reply in RESP2 or RESP3. May raise. */
void convert_push(struct lua_State *L, struct slice said, int resp);

/* What a client gets of an error's text: up to a NUL, as Redis has it in a C string, and without line ends at
   its end. */
struct slice convert_error_text(struct slice text);

/* Whether the value at the top of the stack will be an error reply. */
bool convert_is_error(struct lua_State *L);

/* Replies the value at the top of the stack and pops it. script_resp: what redis.setresp chose, which decides
   about booleans. Must not be called unprotected: it may raise. */
void convert_reply(struct lua_State *L, struct reply *r, int script_resp);

#endif
