#include "script/running.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "exec/executor.h"
#include "proto/reply.h"

struct running {
    pthread_mutex_t lock;
    struct running_script *first;
    _Atomic uint32_t n;
    _Atomic int kind; /* of the first */
    atomic_bool all_end;
    _Atomic uint64_t busy, killed; /* since the start */
};

static const char *const refusals[INTERPS] = {
    [INTERP_EVAL] = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    [INTERP_FUNCTIONS] =
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.",
};

void running_init(struct server *server)
{
    struct running *r = mem_zalloc(sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    server->running = r;
}

void running_release(struct server *server)
{
    if (!server->running)
        return;
    pthread_mutex_destroy(&server->running->lock);
    mem_free(server->running);
    server->running = NULL;
}

/* With the lock held: what is read without it follows the list. */
static void count(struct running *r, int change)
{
    atomic_fetch_add(&r->n, (uint32_t)change);
    if (r->first)
        atomic_store(&r->kind, (int)r->first->kind);
}

void running_add(struct server *server, struct running_script *s)
{
    struct running *r = server->running;
    pthread_mutex_lock(&r->lock);
    struct running_script **at = &r->first;
    while (*at && (*at)->start_us <= s->start_us)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    count(r, 1);
    atomic_fetch_add(&r->busy, 1);
    pthread_mutex_unlock(&r->lock);
}

void running_remove(struct server *server, struct running_script *s)
{
    struct running *r = server->running;
    pthread_mutex_lock(&r->lock);
    struct running_script **at = &r->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    count(r, -1);
    pthread_mutex_unlock(&r->lock);
}

uint32_t running_count(const struct server *server)
{
    return atomic_load(&server->running->n);
}

struct running_totals running_totals(const struct server *server)
{
    const struct running *r = server->running;
    return r ? (struct running_totals){r->busy, r->killed} : (struct running_totals){0};
}

const char *running_refusal(const struct server *server)
{
    return running_count(server) ? refusals[atomic_load(&server->running->kind)] : NULL;
}

/* What a kill came to. Later ones outweigh earlier ones. */
enum outcome { NONE_RUNS, ALL_OF_OTHER_KIND, ALL_WROTE, KILLED };

static enum outcome kill_one(struct running *r, struct running_script *s, enum interp_kind kind)
{
    if (atomic_load(&s->wrote))
        return ALL_WROTE;
    if (s->kind != kind)
        return ALL_OF_OTHER_KIND;
    if (!atomic_exchange(&s->killed, true))
        atomic_fetch_add(&r->killed, 1);
    return KILLED;
}

void running_kill(struct server *server, enum interp_kind kind, struct reply *reply)
{
    struct running *r = server->running;
    enum outcome best = NONE_RUNS;
    pthread_mutex_lock(&r->lock);
    for (struct running_script *s = r->first; s; s = s->next) {
        enum outcome o = kill_one(r, s, kind);
        best = o > best ? o : best;
    }
    pthread_mutex_unlock(&r->lock);
    switch (best) {
    case NONE_RUNS:
        reply_error(reply, "NOTBUSY No scripts in execution right now.");
        break;
    case ALL_OF_OTHER_KIND:
        reply_error(reply, refusals[kind == INTERP_EVAL ? INTERP_FUNCTIONS : INTERP_EVAL]);
        break;
    case ALL_WROTE:
        reply_error(reply,
                    "UNKILLABLE Sorry the script already executed write commands against the dataset. You "
                    "can either wait the script termination or kill the server in a hard way using the "
                    "SHUTDOWN NOSAVE command.");
        break;
    case KILLED:
        reply_ok(reply);
        break;
    }
}

void running_end_all(struct server *server)
{
    atomic_store(&server->running->all_end, true);
}

bool running_all_end(const struct server *server)
{
    return atomic_load_explicit(&server->running->all_end, memory_order_relaxed);
}

bool running_first(struct server *server, struct arena *arena, struct running_script *ret)
{
    struct running *r = server->running;
    pthread_mutex_lock(&r->lock);
    const struct running_script *s = r->first;
    if (s) {
        struct slice *argv = arena_alloc(arena, (size_t)s->argc * sizeof *argv);
        for (int i = 0; i < s->argc; i++)
            argv[i] = arena_copy(arena, s->argv[i]);
        *ret = (struct running_script){
            .kind = s->kind, .argv = argv, .argc = s->argc, .start_us = s->start_us, .wrote = s->wrote};
        char *name = arena_alloc(arena, strlen(s->name) + 1);
        memcpy(name, s->name, strlen(s->name) + 1);
        ret->name = name;
    }
    pthread_mutex_unlock(&r->lock);
    return s != NULL;
}
