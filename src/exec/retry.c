#include "exec/retry.h"

#include <assert.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "exec/block.h"
#include "exec/executor.h"
#include "stats/slowlog.h"

/* One command in the statistics. */
struct counted {
    int index;
    bool failed;
    int64_t us;
};

struct retry {
    struct kept *sessions;
    struct arena arena; /* of those */
    struct counted *counted;
    size_t ncounted, cap_counted;
    struct executor_stats stats;
    struct error_counts errors;
    struct slowlog_entry *slow; /* newest first */
    struct engine_tally tally;
};

struct retry *retry_new(void)
{
    return mem_zalloc(sizeof(struct retry));
}

void retry_free(struct retry *a)
{
    if (!a)
        return;
    arena_release(&a->arena);
    mem_free(a->counted);
    mem_free(a);
}

void retry_begin(struct executor *s)
{
    struct retry *a = s->retry;
    assert(!s->may_retry && !a->sessions);
    s->may_retry = true;
    a->ncounted = 0;
    a->stats = s->stats;
    memcpy(a->errors.at, s->errors.at, s->errors.n * sizeof *a->errors.at);
    a->errors.n = s->errors.n;
    a->tally = engine_tally(s->engine);
}

static struct kept snapshot(struct session *c)
{
    return (struct kept){
        .session = c,
        .db = c->db,
        .resp = c->resp,
        .authenticated = c->authenticated,
        .no_evict = c->no_evict,
        .monitor = c->monitor,
        .reply_mode = c->reply_mode,
        .last = c->last,
    };
}

void retry_keep(struct executor *s, struct session *c)
{
    struct retry *a = s->retry;
    if (c->kept)
        return;
    struct kept *k = arena_alloc(&a->arena, sizeof *k);
    *k = snapshot(c);
    k->next = a->sessions;
    k->txn = c->txn;
    k->txn_mark = txn_mark(c->txn);
    k->blocked = c->blocked;
    a->sessions = c->kept = k;
}

void retry_counted(struct executor *s, int index, int64_t us, bool failed)
{
    struct retry *a = s->retry;
    VEC_PUSH(a->counted, a->ncounted, a->cap_counted) =
        (struct counted){.index = index, .failed = failed, .us = us};
}

void retry_slow(struct executor *s, struct slowlog_entry *e)
{
    s->retry->slow = slowlog_join(e, s->retry->slow);
}

/* ---- the end ---- */

static void restore_text(char **field, char *was)
{
    if (!was)
        return;
    mem_free(*field);
    *field = was;
}

static void restore_session(struct executor *s, struct kept *k)
{
    struct session *c = k->session;
    c->db = k->db;
    c->resp = k->resp;
    c->authenticated = k->authenticated;
    c->no_evict = k->no_evict;
    executor_set_monitor(s, c, k->monitor);
    c->reply_mode = k->reply_mode;
    c->last = k->last;
    restore_text(&c->name, k->name);
    restore_text(&c->lib_name, k->lib_name);
    restore_text(&c->lib_ver, k->lib_ver);
}

static void restore(struct executor *s, struct kept *k)
{
    struct session *c = k->session;
    restore_session(s, k);
    txn_restore(c, k->txn, &k->txn_mark);
    block_restore(s, c, k->blocked);
}

static void let_go(struct executor *s, struct kept *k)
{
    struct session *c = k->session;
    mem_free(k->name);
    mem_free(k->lib_name);
    mem_free(k->lib_ver);
    txn_let_go(c, k->txn);
    block_let_go(s, c, k->blocked);
}

static void uncount(struct executor *s)
{
    const struct retry *a = s->retry;
    for (size_t i = 0; i < a->ncounted; i++) {
        const struct counted *it = &a->counted[i];
        struct command_stat *stat = &s->command_stats[it->index];
        if (it->us == RETRY_REJECTED)
            stat->rejected--;
        else
            histogram_remove(&stat->us, (uint64_t)it->us);
        stat->failed -= it->failed;
    }
    s->stats = a->stats;
    memcpy(s->errors.at, a->errors.at, a->errors.n * sizeof *a->errors.at);
    s->errors.n = a->errors.n;
    engine_recount(s->engine, &a->tally);
}

static void finish(struct executor *s, bool back)
{
    struct retry *a = s->retry;
    assert(s->may_retry);
    s->may_retry = false;
    for (struct kept *k = a->sessions, *next; k; k = next) {
        next = k->next;
        k->session->kept = NULL;
        if (back)
            restore(s, k);
        else
            let_go(s, k);
    }
    a->sessions = NULL;
    arena_reset(&a->arena);
    if (back)
        slowlog_drop(a->slow);
    else
        slowlog_add(s->server->slowlog, a->slow, (size_t)s->config->slowlog_max_len);
    a->slow = NULL;
}

void retry_take_back(struct executor *s)
{
    uncount(s);
    s->others_due = 0;
    buf_release(&s->lines);
    finish(s, true);
}

void retry_end(struct executor *s)
{
    finish(s, false);
}

/* ---- commands that are one step ---- */

void retry_mark(struct session *c, struct kept *k)
{
    *k = snapshot(c);
    k->outer = c->kept;
    if (k->outer) { /* what is not to be freed is the same */
        k->txn = k->outer->txn;
        k->blocked = k->outer->blocked;
    }
    c->kept = k;
}

/* A text that has been replaced since goes to whoever remembers more; who has an older one needs none. */
static void hand_on(char *text, char **to)
{
    if (to && !*to)
        *to = text;
    else
        mem_free(text);
}

void retry_unmark(struct executor *s, struct session *c, struct kept *k, bool back)
{
    struct kept *outer = k->outer;
    assert(c->kept == k);
    c->kept = outer;
    if (back) {
        restore_session(s, k);
        return;
    }
    hand_on(k->name, outer ? &outer->name : NULL);
    hand_on(k->lib_name, outer ? &outer->lib_name : NULL);
    hand_on(k->lib_ver, outer ? &outer->lib_ver : NULL);
}
