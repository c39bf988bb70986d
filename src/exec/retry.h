/* A transaction that may have to be run again. Where several servers write to the same tables, the database
   ends one of two transactions that wait for each other (ST_CONFLICT), at any of its statements. Nobody has
   been told anything by then: what its commands did to sessions and to the books is taken back, and they run
   again from the first.

     retry_begin      nothing has happened yet
     retry_keep       before the first thing that happens to a session: how it is now is remembered
     retry_take_back  everything is as it was at retry_begin ...
     retry_end        ... or what has happened stands

   What a session has: its database, protocol, password, names, reply mode; the queue of MULTI and what it
   watches; its place in the queues of the keys that it waits for. The books: statistics, slow log, errors.
   Output is the server's business (server/retry.c), rows are the engine's. Commands that may do more than
   this (command_goes_outside) are in a transaction of their own, which is not retried. */
#ifndef LARDER_EXEC_RETRY_H
#define LARDER_EXEC_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/session.h"
#include "exec/txn.h"

struct retry;
struct executor;

/* A session as it was. */
struct kept {
    struct kept *next;
    struct kept *outer; /* the same session before that; NULL: nobody asks for it */
    struct session *session;
    uint32_t db;
    int resp;
    bool authenticated, no_evict, monitor;
    enum session_reply reply_mode;
    const struct command *last;
    char *name, *lib_name, *lib_ver; /* those that have been replaced since; else NULL */
    struct txn *txn;
    struct txn_mark txn_mark;
    struct blocked *blocked;
};

struct retry *retry_new(void);
void retry_free(struct retry *a);

void retry_begin(struct executor *s);
void retry_keep(struct executor *s, struct session *c);
void retry_take_back(struct executor *s);
void retry_end(struct executor *s);

/* Commands that are one step (EXEC), whether or not they may have to be run again: a session before the first
   of them is noted in *k, and is so again when the database has failed in the middle (back), but for MULTI,
   which is over. */
void retry_mark(struct session *c, struct kept *k);
void retry_unmark(struct executor *s, struct session *c, struct kept *k, bool back);

/* A command has been counted in the statistics. us: what it took, or RETRY_REJECTED. */
#define RETRY_REJECTED (-1)
void retry_counted(struct executor *s, int index, int64_t us, bool failed);

/* It was slow. Takes e over. */
struct slowlog_entry;
void retry_slow(struct executor *s, struct slowlog_entry *e);

#endif
