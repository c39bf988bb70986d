/* A thread's share of the server: a loop, its listeners and clients, an engine. Nothing here is global, so
   that several workers may live in one process. */
#ifndef LARDER_SERVER_WORKER_H
#define LARDER_SERVER_WORKER_H

#include "base/status.h"
#include "config/config.h"

struct engine;
struct worker;

/* Binds the sockets that config names. The worker borrows config and engine (and through it the store), and
   changes config when CONFIG SET does. */
enum status worker_new(struct config *config, struct engine *engine, struct worker **ret,
                       struct error *err) MUST_CHECK;

/* Serves until worker_stop or SHUTDOWN; then sends the replies that are still to be sent (not for ever) and
   makes what was committed durable. */
enum status worker_run(struct worker *w, struct error *err) MUST_CHECK;

/* From any thread, or from a signal handler. */
void worker_stop(struct worker *w);

/* Reads the certificates anew. From any thread, or from a signal handler. */
void worker_reload(struct worker *w);

/* w may be NULL. */
void worker_free(struct worker *w);

/* The TCP ports that are bound, without and with TLS, or 0 when there is none. */
int worker_port(const struct worker *w);
int worker_tls_port(const struct worker *w);
int worker_http_port(const struct worker *w);
int worker_tls_http_port(const struct worker *w);

#endif
