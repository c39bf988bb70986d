/* Parses what clients have sent into the calls of the turn's batch. */
#ifndef LARDER_SERVER_GATHER_H
#define LARDER_SERVER_GATHER_H

#include <stdbool.h>
#include <stddef.h>

struct client;
struct worker;

/* Parses what a client has sent that is READING, READY or STALLED, and adds it to the batch, up to a fair
   share. */
void gather_calls(struct worker *w, struct client *c);

/* Where reads are near: declares to the view the rows that these calls of the batch will ask for and that
   memory does not have, so that they are read at once. Returns whether the calls will hardly ask for anything
   else. */
bool gather_rows(struct worker *w, size_t from, size_t to);

/* While a batch is pending its clients' input must stay where it is, and no other client's call may run
   before it: the worker does not read from a client that has sent something until the batch has ended. */
void gather_later(struct worker *w, struct client *c);
void gather_resume(struct worker *w);

/* The running call lasts: clients whose calls all stand behind it, and to whom nothing has happened in its
   transaction, leave the batch, and are READY. Their input is parsed again from the first of those calls on,
   in the places of which there are calls of nobody, which do nothing. */
void gather_give_back(struct worker *w);

/* Before the first transaction of a batch: clients leave it, and are READY, that are about to write what the
   batch of another worker of this process writes. Two transactions with a row in common wait for each other
   or conflict as wholes, and where clients write many keys at random two batches nearly always have some in
   common. Nothing is promised: who has left a few batches in a row stays, and when all would have to leave,
   none does. Only the first key of a call counts. */
void gather_apart(struct worker *w);

/* The batch is over: its keys are for others. */
void gather_unclaim(struct worker *w);

#endif
