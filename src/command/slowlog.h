/* The commands that took long, newest first, up to a configured number; SLOWLOG reads them. */
#ifndef LARDER_COMMAND_SLOWLOG_H
#define LARDER_COMMAND_SLOWLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct command;
struct session;
struct slowlog;

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* Copies (and shortens) the arguments; forgets the oldest beyond max_len. */
void slowlog_add(struct slowlog *log, const struct session *session, const struct command *cmd,
                 const struct slice *argv, int argc, int64_t us, size_t max_len);

/* What is added from here on may be taken back, until slowlog_settle says whether it is. */
void slowlog_hold(struct slowlog *log);
void slowlog_settle(struct slowlog *log, bool back, size_t max_len);

#endif
