/* Over tables that others write to: serves blocked clients with what came through other servers. */
#ifndef LARDER_SERVER_POLL_H
#define LARDER_SERVER_POLL_H

struct worker;

/* Each turn, last: looks when it is time to, and says when that will be again. */
void poll_tend(struct worker *w);

#endif
