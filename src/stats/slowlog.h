/* The commands that took long, newest first, up to a configured number; SLOWLOG reads them. One for the whole
   process, with a lock: who comes here had time. */
#ifndef LARDER_STATS_SLOWLOG_H
#define LARDER_STATS_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "exec/command.h"

struct session;
struct slowlog;
struct slowlog_entry;

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* A command that took long, with copies of its arguments (shortened). */
struct slowlog_entry *slowlog_entry(const struct session *session, const struct command *cmd,
                                    const struct slice *argv, int argc, int64_t us);

/* Entries can wait in lists, newest first, until it is known whether they stand (see retry.h): one more. */
struct slowlog_entry *slowlog_join(struct slowlog_entry *e, struct slowlog_entry *older);

/* Takes over a list, which may be NULL; forgets the oldest beyond max_len. */
void slowlog_add(struct slowlog *log, struct slowlog_entry *list, size_t max_len);

/* Frees a list, which may be NULL. */
void slowlog_drop(struct slowlog_entry *list);

extern const struct command slowlog_commands[];

#endif
