/* Over tables that several servers share: which keys a command will use, told to the view before its batch
   begins, so that they are locked and read in one round trip. A guess where it cannot be known: what is not
   announced is locked and read when it is used. */
#ifndef LARDER_COMMAND_ANNOUNCE_H
#define LARDER_COMMAND_ANNOUNCE_H

#include "command/command.h"

struct session;

/* The keys of a command that the session has sent; of EXEC those of its queue. Returns how many. */
size_t announce_call(struct server *s, const struct session *c, const struct command *cmd,
                     const struct slice *argv, int argc);

/* The keys of a command, in a database. */
size_t announce_keys(struct view *v, uint32_t db, const struct command *cmd, const struct slice *argv,
                     int argc);

#endif
