/* A thread's share of the server: a loop, its clients, an engine. Nothing here is global: several workers
   live in one process, together (workers.h). */
#ifndef LARDER_SERVER_WORKER_H
#define LARDER_SERVER_WORKER_H

#include "base/status.h"

struct engine;
struct workers;
struct worker;

/* Makes a worker with this engine, and adds its executor to the server. */
enum status worker_new(struct workers *workers, struct engine *engine, struct worker **ret,
                       struct error *err) MUST_CHECK;

/* Before worker_run: one more engine. */
void worker_add_engine(struct worker *w, struct engine *engine);

/* When all workers are there: cache-memory is divided among them and their engines. */
void worker_share_cache(struct worker *w);

/* Serves until it is asked to stop; then sends the replies that are still to be sent (not for ever). */
enum status worker_run(struct worker *w, struct error *err) MUST_CHECK;

/* From any thread, or from a signal handler: ends worker_run; reads the certificates anew. */
void worker_stop(struct worker *w);
void worker_reload(struct worker *w);

/* From any thread: the loop takes its next turn, in which it reads its mailbox. */
void worker_wake(struct worker *w);

/* w may be NULL. */
void worker_free(struct worker *w);

#endif
