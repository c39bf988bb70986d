/* MONITOR: every command that runs, as a line to those who asked for it. */
#ifndef LARDER_COMMAND_MONITOR_H
#define LARDER_COMMAND_MONITOR_H

#include "base/slice.h"

struct command;
struct server;
struct session;

/* Sends a command that has just run to every monitoring client, whichever server's it is. */
void monitor_feed(struct server *server, const struct session *from, const struct command *cmd,
                  const struct slice *argv, int argc);

/* Sends a line to this server's monitoring clients. */
void monitor_tell(struct server *server, struct slice line);

#endif
