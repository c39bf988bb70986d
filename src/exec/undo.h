/* What a transaction did to sessions and to the books is taken back, so that it can be run again; whether and
   when that happens says server/retry.h. Where several servers write to the same tables, the database
   ends one of two transactions that wait for each other (ST_CONFLICT), at any of its statements. No reply has
   left by then: what its commands did to sessions and to the books is restored, and they run again from the
   first.

     undo_begin      nothing has happened yet, and the books are empty
     undo_keep       before the first thing that happens to a session: its state is copied
     undo_take_back  everything is as it was at undo_begin ...
     undo_end        ... or what has happened stands

   What a session has is its state (session.h); the books (books.h) are emptied. Output is the server's
   business (server/undo.c), rows are the engine's. Commands that may do more than this
   (command_goes_outside) are in a transaction of their own, which is tried again only while it cannot even
   begin. */
#ifndef LARDER_EXEC_UNDO_H
#define LARDER_EXEC_UNDO_H

struct executor;
struct session;

void undo_begin(struct executor *s);
void undo_keep(struct executor *s, struct session *c);
void undo_take_back(struct executor *s);
void undo_end(struct executor *s);

#endif
