/* What a client is to commands: its name, its database, its protocol. */
#include "exec/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/retry.h"
#include "exec/txn.h"

void session_init(struct session *s, const struct session_ops *ops, bool authenticated)
{
    s->ops = ops;
    s->resp = 2;
    s->authenticated = authenticated;
    s->name = mem_strdup("");
    s->lib_name = mem_strdup("");
    s->lib_ver = mem_strdup("");
    s->created_us = clock_mono_us();
    s->active_us = s->created_us;
}

void session_release(struct session *s)
{
    mem_free(s->name);
    mem_free(s->lib_name);
    mem_free(s->lib_ver);
    s->name = s->lib_name = s->lib_ver = NULL;
    txn_end(s);
}

void session_reset(struct session *s, bool authenticated)
{
    s->db = 0;
    s->resp = 2;
    s->authenticated = authenticated;
    s->no_evict = false;
    s->reply_mode = SESSION_REPLY_ON;
    txn_end(s);
    session_set_name(s, SLICE(""));
}

/* kept: where the old text goes if it is the first that is replaced; NULL: nobody asks for it any more. */
static void set_text(char **field, struct slice text, char **kept)
{
    if (kept && !*kept)
        *kept = *field;
    else
        mem_free(*field);
    *field = mem_strndup(text);
}

void session_set_name(struct session *s, struct slice name)
{
    set_text(&s->name, name, s->kept ? &s->kept->name : NULL);
}

void session_set_lib_name(struct session *s, struct slice name)
{
    set_text(&s->lib_name, name, s->kept ? &s->kept->lib_name : NULL);
}

void session_set_lib_ver(struct session *s, struct slice version)
{
    set_text(&s->lib_ver, version, s->kept ? &s->kept->lib_ver : NULL);
}

bool session_is_local(const struct session *s)
{
    return s->unix_socket || strncmp(s->addr, "127.0.0.1:", 10) == 0 || strncmp(s->addr, "[::1]:", 6) == 0;
}

bool session_name_valid(struct slice name)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] < '!' || name.p[i] > '~')
            return false;
    return true;
}
