/* Who may do what. There is one user, "default", with one password (requirepass) or none. Everyone asks here,
   whichever way a client has come, so that more users, and rules for them, would change this file alone. */
#ifndef LARDER_EXEC_AUTH_H
#define LARDER_EXEC_AUTH_H

#include <stdbool.h>

#include "base/slice.h"
#include "exec/command.h"
#include "exec/session.h"

struct config;

/* There is no password: every client may do what the default user may. A new session, and one that was reset,
   starts as known then. */
bool auth_is_open(const struct config *config);

/* Protected mode, while there is no password: only this machine is served. */
bool auth_is_protected(const struct config *config);

/* Whether these are a user and its password. Takes as long for a wrong guess as for a right one, so that time
   tells nothing about the password. Without a password any will do. */
bool auth_accepts(const struct config *config, struct slice user, struct slice password);

/* The session shows who it is (AUTH, HELLO), and is known from then on; false, and counted: that is wrong. */
bool auth_login(struct session *s, struct slice user, struct slice password) MUST_CHECK;

/* Each request stands for itself (HTTP): until the next one the session is known, or not. */
void auth_set_known(struct session *s, bool known);

bool auth_need_not_be_known(const struct session *s);

/* Whether the session has shown who it is, or need not. */
static inline bool auth_is_known(const struct session *s)
{
    return s->state.authenticated || auth_need_not_be_known(s);
}

/* Whether auth_refusal has to be asked: it says nothing about most commands of most sessions. */
static inline bool auth_is_in_doubt(const struct session *s, const struct command *cmd)
{
    return !s->state.authenticated || (cmd->flags & CMD_PROTECTED);
}

/* Why the session may not run the command, in Redis' words; NULL: it may. */
const char *auth_refusal(const struct session *s, const struct command *cmd);

#endif
