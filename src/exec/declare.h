/* Over tables that several servers share: which keys a command will use, told to the view before its batch
   begins, so that they are locked and read in one round trip. A guess where it cannot be known: what is not
   declared is locked and read when it is used. */
#ifndef LARDER_EXEC_DECLARE_H
#define LARDER_EXEC_DECLARE_H

#include "exec/command.h"

struct session;

/* The keys of a command that the session has sent; of EXEC those of its queue. Returns how many. */
size_t declare_call(struct executor *s, const struct session *c, const struct command *cmd,
                    const struct slice *argv, int argc);

/* The keys of a command, in a database. */
size_t declare_keys(struct view *v, uint32_t db, const struct command *cmd, const struct slice *argv,
                    int argc);

#endif
