/* A transaction that may have to be run again. Where several servers write to the same tables, the database
   ends one of two transactions that wait for each other (ST_CONFLICT), at any of its statements. Nobody has
   been told anything by then: what its commands did to sessions and to the books is taken back, and they run
   again from the first.

     retry_begin      nothing has happened yet
     retry_keep       before the first thing that happens to a session: its state is copied
     retry_take_back  everything is as it was at retry_begin ...
     retry_end        ... or what has happened stands

   What a session has is its state (session.h). The books: statistics, slow log, errors.
   Output is the server's business (server/retry.c), rows are the engine's. Commands that may do more than
   this (command_goes_outside) are in a transaction of their own, which is not retried. */
#ifndef LARDER_EXEC_RETRY_H
#define LARDER_EXEC_RETRY_H

#include <stdbool.h>
#include <stdint.h>

struct executor;
struct retry;
struct session;

struct retry *retry_new(void);
void retry_free(struct retry *a);

void retry_begin(struct executor *s);
void retry_keep(struct executor *s, struct session *c);
void retry_take_back(struct executor *s);
void retry_end(struct executor *s);

/* A command has been counted in the statistics. us: what it took, or RETRY_REJECTED. */
#define RETRY_REJECTED (-1)
void retry_counted(struct executor *s, int index, int64_t us, bool failed);

/* It was slow. Takes e over. */
struct slowlog_entry;
void retry_slow(struct executor *s, struct slowlog_entry *e);

#endif
