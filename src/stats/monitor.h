/* MONITOR: every command that runs, as a line to the clients that asked for it. */
#ifndef LARDER_STATS_MONITOR_H
#define LARDER_STATS_MONITOR_H

#include "base/slice.h"

struct books_note;
struct executor;

/* Sends the commands among these that are monitored to every monitoring client, whichever executor's it
   is. */
void monitor_feed(struct executor *executor, const struct books_note *notes);

/* Sends lines to this executor's monitoring clients. */
void monitor_tell(struct executor *executor, struct slice lines);

#endif
