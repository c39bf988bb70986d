/* What a client is to commands: its name, its database, its protocol. */
#include "exec/session.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "exec/block.h"
#include "exec/executor.h"
#include "exec/txn.h"

struct session_words {
    struct session_words *next; /* in session->words */
    char text[];
};

void session_init(struct session *s, const struct session_ops *ops, bool authenticated)
{
    s->ops = ops;
    s->state.resp = 2;
    s->state.authenticated = authenticated;
    s->created_us = clock_mono_us();
    s->active_us = s->created_us;
}

/* ---- what states point to ---- */

static bool is_used(const struct session_state *state, const struct session_words *w)
{
    bool used = false;
    for (int i = 0; i < SESSION_TEXTS; i++)
        used |= state->texts[i] == w;
    return used;
}

/* Frees the texts that the state does not point to. */
static void free_words(struct session *s)
{
    for (struct session_words **at = &s->words, *w; (w = *at);) {
        if (is_used(&s->state, w)) {
            at = &w->next;
        } else {
            *at = w->next;
            mem_free(w);
        }
    }
}

struct session_state session_keep(struct session *s)
{
    s->copies++;
    return s->state;
}

void session_restore(struct session *s, const struct session_state *was)
{
    executor_set_monitor(s->executor, s, was->monitor);
    s->state = *was;
    txn_restored(s);
    block_restored(s->executor, s);
}

void session_let_go(struct session *s)
{
    assert(s->copies > 0);
    if (--s->copies)
        return;
    free_words(s);
    txn_free_unused(s);
    block_free_unused(s->executor, s);
}

void session_release(struct session *s)
{
    assert(!s->copies && !s->waits);
    s->state = (struct session_state){0};
    free_words(s);
    txn_free_unused(s);
}

/* ---- changes ---- */

void session_reset(struct session *s, bool authenticated)
{
    s->state.db = 0;
    s->state.resp = 2;
    s->state.authenticated = authenticated;
    s->state.no_evict = false;
    s->state.reply_mode = SESSION_REPLY_ON;
    s->state.consistency = s->executor->config->read_consistency;
    txn_end(s);
    session_set_text(s, SESSION_NAME, SLICE(""));
}

const char *session_text(const struct session *s, enum session_text which)
{
    return s->state.texts[which] ? s->state.texts[which]->text : "";
}

void session_set_text(struct session *s, enum session_text which, struct slice text)
{
    struct session_words *w = NULL;
    if (text.n) {
        w = mem_zalloc(sizeof *w + text.n + 1);
        memcpy(w->text, text.p, text.n);
        w->next = s->words;
        s->words = w;
    }
    s->state.texts[which] = w;
    if (!s->copies)
        free_words(s);
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
