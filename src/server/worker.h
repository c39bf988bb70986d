/* A thread's share of the server: a loop, its clients, an engine. Nothing here is global: several workers
   live in one process, together (workers.h). */
#ifndef LARDER_SERVER_WORKER_H
#define LARDER_SERVER_WORKER_H

#include "base/status.h"

struct engine;
struct workers;
struct worker;

/* Joins the others. */
enum status worker_new(struct workers *workers, struct engine *engine, struct worker **ret,
                       struct error *err) MUST_CHECK;

/* Serves until it is asked to stop; then sends the replies that are still to be sent (not for ever). */
enum status worker_run(struct worker *w, struct error *err) MUST_CHECK;

/* From any thread, or from a signal handler: ends worker_run; reads the certificates anew. */
void worker_stop(struct worker *w);
void worker_reload(struct worker *w);

/* From any thread: the loop comes to its next turn, and to its mail. */
void worker_wake(struct worker *w);

/* w may be NULL. */
void worker_free(struct worker *w);

#endif
