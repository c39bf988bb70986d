/* MONITOR: every command that runs, as a line to those who asked for it. */
#ifndef LARDER_STATS_MONITOR_H
#define LARDER_STATS_MONITOR_H

#include "base/slice.h"

struct command;
struct executor;
struct session;

/* Sends a command that has just run to every monitoring client, whichever server's it is. */
void monitor_feed(struct executor *executor, const struct session *from, const struct command *cmd,
                  const struct slice *argv, int argc);

/* Sends a line to this server's monitoring clients. */
void monitor_tell(struct executor *executor, struct slice line);

#endif
