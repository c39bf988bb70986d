#include "exec/redact.h"

#include <string.h>

#include "config/config.h"
#include "exec/command.h"

/* HELLO 3 AUTH user password: both words behind AUTH, wherever it stands. */
static bool secret_in_hello(const struct slice *argv, int i)
{
    return i >= 3 && (slice_is(argv[i - 1], "auth") || (i >= 4 && slice_is(argv[i - 2], "auth")));
}

/* CONFIG SET name value [name value ...]: the values of options that are secret. */
static bool secret_in_config_set(const struct slice *argv, int i)
{
    if (i < 3 || i % 2 == 0)
        return false;
    const struct option *o = config_find(argv[i - 1]);
    return o && o->secret;
}

struct slice redact(const struct command *cmd, const struct slice *argv, int i)
{
    bool secret = false;
    if (strcmp(cmd->name, "auth") == 0)
        secret = i >= 1;
    else if (strcmp(cmd->name, "hello") == 0)
        secret = secret_in_hello(argv, i);
    else if (strcmp(cmd->name, "set") == 0 && command_parent(cmd))
        secret = secret_in_config_set(argv, i);
    return secret ? SLICE("(redacted)") : argv[i];
}
