/* The workers of a process: how many there are, what they have in common, and how they work together.

   Each worker is a thread with a loop, clients, an engine and a session of the database of its own; what an
   ordinary command needs is its worker's alone. Several workers need a store that can be shared
   (store_shared): to the database they are like several servers. */

/* clang-format off */
/* accepting        The first worker, on the thread that calls workers_run, has the listeners. A connection goes
                    to the worker that has the fewest, through its mailbox, before anything is read from it. That
                    worker also does the TLS handshake.

   standing still   What concerns all workers (CLIENT KILL, CONFIG SET, INFO, the certificates) is done while
                    the others stand still. workers_hold wakes them. Each stops at the top of its turn, outside
                    of any transaction, so that it holds no lock of the database that the calling worker might
                    wait for; that worker calls before its own transaction begins, for the same reason. Until
                    workers_release it may use everything of every worker. Of two workers that call at once,
                    one stands still for the other first. A turn in which none calls costs one relaxed load.

   ending           When one worker ends, for SHUTDOWN or because its loop failed, all do. */
/* clang-format on */
#ifndef LARDER_SERVER_WORKERS_H
#define LARDER_SERVER_WORKERS_H

#include <stdint.h>

#include "base/status.h"
#include "config/config.h"
#include "query/threads.h"

struct engine;
struct protocol;
struct replicas;
struct workers;
struct worker;

/* A worker for each engine, 1 to WORKERS_MAX. Binds the sockets that config names, for the protocols of the
   table (protocol.h). They borrow config, the table and the engines (and through them the stores), and change
   config when CONFIG SET does. */
enum status workers_new(struct config *config, const struct protocol *const *protocols,
                        struct engine *const *engines, uint32_t n, struct workers **ret,
                        struct error *err) MUST_CHECK;

/* Before workers_run: each worker also has an engine for each replica of the database, worker i those from
   engines[i * each] on, in the order of r, which it borrows as well. */
void workers_use_replicas(struct workers *t, struct replicas *r, struct engine *const *engines,
                          uint32_t each);

/* Before workers_run: there are threads for long queries, with sessions that open(arg) opens. */
void workers_use_queries(struct workers *t, query_open_fn *open, void *arg);

/* Serves until workers_stop, SHUTDOWN or a failure; then sends the replies that are still to be sent (not for
   ever) and makes what was committed durable. */
enum status workers_run(struct workers *t, struct error *err) MUST_CHECK;

/* From any thread, or from a signal handler. */
void workers_stop(struct workers *t);

/* Reads the certificates anew. From any thread, or from a signal handler. */
void workers_reload(struct workers *t);

/* t may be NULL. */
void workers_free(struct workers *t);

/* The TCP ports that are bound, without and with TLS, or 0 when there is none. */
int workers_port(const struct workers *t);
int workers_tls_port(const struct workers *t);
int workers_http_port(const struct workers *t);
int workers_tls_http_port(const struct workers *t);

/* ---- for the workers ---- */

/* From here to workers_release all others stand still. Only at the top of a turn or between two transactions
   of a batch; never twice. False: they do not, a script is busy on one of them. */
bool workers_hold(struct worker *w) MUST_CHECK;
void workers_release(struct workers *t);

/* A worker's script has become busy: who waits for it in workers_hold gives up. */
void workers_script_busy(struct workers *t);

/* At the top of a turn: stands still while another one asks for it. Whether one did. */
bool workers_stand(struct worker *w);

/* This worker's turns are over: it stands still for good. */
void workers_leave(struct worker *w);

#endif
