/* The commands that took long, newest first, up to a configured number; SLOWLOG reads them. One for the whole
   process, with a lock: slow commands are rare enough for one. */
#ifndef LARDER_STATS_SLOWLOG_H
#define LARDER_STATS_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "exec/command.h"

struct books_note;
struct slowlog;

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* A command that took long is remembered (shortened); the oldest beyond max_len are forgotten. */
void slowlog_add(struct slowlog *log, const struct books_note *note, size_t max_len);

extern const struct command slowlog_commands[];

#endif
