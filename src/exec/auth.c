/* Passwords and what they open, see auth.h. */
#include "exec/auth.h"

#include "exec/executor.h"

bool auth_is_open(const struct config *config)
{
    return config->requirepass[0] == '\0';
}

bool auth_is_protected(const struct config *config)
{
    return config->protected_mode && auth_is_open(config);
}

static bool password_is(const struct config *config, struct slice guess)
{
    struct slice secret = slice_str(config->requirepass);
    unsigned char differs = guess.n != secret.n;
    for (size_t i = 0; i < guess.n; i++)
        differs |= (unsigned char)(guess.p[i] ^ (i < secret.n ? secret.p[i] : 0));
    return !differs;
}

bool auth_accepts(const struct config *config, struct slice user, struct slice password)
{
    return slice_eq(user, SLICE("default")) && (auth_is_open(config) || password_is(config, password));
}

bool auth_login(struct session *s, struct slice user, struct slice password)
{
    if (!auth_accepts(s->executor->config, user, password)) {
        books_count(&s->executor->books, BOOKS_WRONG_PASSWORD, 0);
        return false;
    }
    s->state.authenticated = true;
    return true;
}

void auth_set_known(struct session *s, bool known)
{
    s->state.authenticated = known;
}

bool auth_need_not_be_known(const struct session *s)
{
    return auth_is_open(s->executor->config);
}

/* DEBUG may crash, stop and fake things, so it only works where the configuration allows it. */
static bool debug_allowed(const struct session *s)
{
    enum { DEBUG_NO, DEBUG_YES, DEBUG_LOCAL };
    switch (s->executor->config->enable_debug_command) {
    case DEBUG_YES:
        return true;
    case DEBUG_LOCAL:
        return session_is_local(s);
    default:
        return false;
    }
}

const char *auth_refusal(const struct session *s, const struct command *cmd)
{
    if ((cmd->flags & CMD_PROTECTED) && !debug_allowed(s))
        return "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
               "can "
               "run it from a local connection, otherwise you need to set this option in the configuration "
               "file, and then restart the server.";
    if (!(cmd->flags & CMD_NO_AUTH) && !auth_is_known(s))
        return "NOAUTH Authentication required.";
    return NULL;
}
