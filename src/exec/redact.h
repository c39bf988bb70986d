/* Which arguments are secrets, so that MONITOR and SLOWLOG show "(redacted)" in their place. */
#ifndef LARDER_EXEC_REDACT_H
#define LARDER_EXEC_REDACT_H

#include <stdbool.h>

#include "base/slice.h"

struct command;

/* argv[i] as it may be shown: itself, or "(redacted)". */
struct slice redact(const struct command *cmd, const struct slice *argv, int i);

#endif
