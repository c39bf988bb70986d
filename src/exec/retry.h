/* A transaction that may have to be run again. Where several servers write to the same tables, the database
   ends one of two transactions that wait for each other (ST_CONFLICT), at any of its statements. No reply has
   left by then: what its commands did to sessions and to the books is restored, and they run again from the
   first.

     retry_begin      nothing has happened yet, and the books are empty
     retry_keep       before the first thing that happens to a session: its state is copied
     retry_take_back  everything is as it was at retry_begin ...
     retry_end        ... or what has happened stands

   What a session has is its state (session.h); the books (books.h) are emptied. Output is the server's
   business (server/retry.c), rows are the engine's. Commands that may do more than this
   (command_goes_outside) are in a transaction of their own, which is not retried. */
#ifndef LARDER_EXEC_RETRY_H
#define LARDER_EXEC_RETRY_H

struct executor;
struct session;

void retry_begin(struct executor *s);
void retry_keep(struct executor *s, struct session *c);
void retry_take_back(struct executor *s);
void retry_end(struct executor *s);

#endif
