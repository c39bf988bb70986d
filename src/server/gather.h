/* Parses what clients have sent into the calls of the turn's batch. */
#ifndef LARDER_SERVER_GATHER_H
#define LARDER_SERVER_GATHER_H

struct client;
struct worker;

/* Parses what the client has sent and adds it to the batch, up to a fair share. */
void gather_calls(struct worker *w, struct client *c);

#endif
