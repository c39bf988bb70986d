/* The commands that took long, newest first, up to a configured number. */
#ifndef LARDER_COMMAND_SLOWLOG_H
#define LARDER_COMMAND_SLOWLOG_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct command;
struct session;
struct slowlog;

struct slowlog_arg {
    char *p;
    size_t n;
};

struct slowlog_entry {
    struct slowlog_entry *newer, *older;
    int64_t id;
    int64_t time; /* wall, seconds */
    int64_t us;
    char *addr;
    char *name;
    int argc;
    struct slowlog_arg argv[];
};

struct slowlog *slowlog_new(void);
void slowlog_free(struct slowlog *log);

/* Copies (and shortens) the arguments; forgets the oldest beyond max_len. */
void slowlog_add(struct slowlog *log, const struct session *session, const struct command *cmd,
                 const struct slice *argv, int argc, int64_t us, size_t max_len);

size_t slowlog_len(const struct slowlog *log);
const struct slowlog_entry *slowlog_newest(const struct slowlog *log);
void slowlog_trim(struct slowlog *log, size_t max_len);

#endif
