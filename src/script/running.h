/* The scripts of this process that are busy: they have run for longer than busy-reply-threshold. A worker
   that runs one lists it (server/busy.h) until it ends; every thread may look, and ask that it ends.

   Who may end what: SCRIPT KILL every busy script, FUNCTION KILL every busy function, of all workers, that
   has not written; a script that is not busy yet is left alone, for it may end any moment. One that has
   written can be ended by SHUTDOWN NOSAVE alone, as in Redis. Between the look whether it has written and its
   end it may write: what a script has written that is ended is undone in any case.

   Nothing here is durable. Locks itself. */
#ifndef LARDER_SCRIPT_RUNNING_H
#define LARDER_SCRIPT_RUNNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "script/interp.h"

struct reply;
struct server;
struct running; /* a process's: server->running */

/* One of them. What it points to stays where it is while it is listed. */
struct running_script {
    struct running_script *next; /* the longest running one first */
    enum interp_kind kind;
    const char *name; /* the sha1, or the function's name */
    const struct slice *argv;
    int argc;
    int64_t start_us;   /* monotonic */
    _Atomic bool wrote; /* as of when its worker looked last */
    _Atomic bool killed;
};

void running_init(struct server *server);
void running_release(struct server *server);

void running_add(struct server *server, struct running_script *s);
void running_remove(struct server *server, struct running_script *s);

/* How many there are. */
uint32_t running_count(const struct server *server);

/* Since the start: how many there have been, and how many of them were ended. */
struct running_totals {
    uint64_t busy, killed;
};
struct running_totals running_totals(const struct server *server);

/* What other commands are told while one is busy, "BUSY ..."; NULL: none is. */
const char *running_refusal(const struct server *server);

/* Answers SCRIPT KILL (INTERP_EVAL) or FUNCTION KILL. */
void running_kill(struct server *server, enum interp_kind kind, struct reply *reply);

/* SHUTDOWN NOSAVE: every script ends that its worker looks at (running_all_end), busy or not. */
void running_end_all(struct server *server);
bool running_all_end(const struct server *server);

/* For FUNCTION STATS: the longest running one, with what it points to copied into arena. False: there is
   none. */
bool running_first(struct server *server, struct arena *arena, struct running_script *ret);

#endif
