/* The workers of a process: how many there are, what they have in common, and how they work together.

   Each worker is a thread with a loop, clients, an engine and a session of the database of its own; what an
   ordinary command needs is its worker's alone. Several workers need a store that can be shared
   (store_shared): to the database they are like several servers.

   - The first worker, on the thread that calls team_run, has the listeners. A connection goes to the worker
     that has the fewest, through its mailbox, before anything is read from it (TLS handshakes are the
     business of the worker that gets it).
   - What concerns all of them (CLIENT KILL, CONFIG SET, INFO, the certificates) is done while the others
   stand still: team_hold wakes them, and each stops at the top of its turn, outside of any transaction, so
   that it holds no lock of the database that the one who asked might wait for. That one asks before its own
     transaction begins, for the same reason. Until team_release it may use everything of everybody. Of two
     that ask at once, one stands still for the other first. Whoever does not ask pays with one relaxed load a
     turn.
   - When one worker ends, for SHUTDOWN or because its loop failed, all do. */
#ifndef LARDER_SERVER_TEAM_H
#define LARDER_SERVER_TEAM_H

#include <stdint.h>

#include "base/status.h"
#include "config/config.h"

struct engine;
struct team;
struct worker;

/* A worker for each engine, 1 to SERVERS_MAX. Binds the sockets that config names. The team borrows config
   and the engines (and through them the stores), and changes config when CONFIG SET does. */
enum status team_new(struct config *config, struct engine *const *engines, uint32_t n, struct team **ret,
                     struct error *err) MUST_CHECK;

/* Serves until team_stop, SHUTDOWN or a failure; then sends the replies that are still to be sent (not for
   ever) and makes what was committed durable. */
enum status team_run(struct team *t, struct error *err) MUST_CHECK;

/* From any thread, or from a signal handler. */
void team_stop(struct team *t);

/* Reads the certificates anew. From any thread, or from a signal handler. */
void team_reload(struct team *t);

/* t may be NULL. */
void team_free(struct team *t);

/* The TCP ports that are bound, without and with TLS, or 0 when there is none. */
int team_port(const struct team *t);
int team_tls_port(const struct team *t);
int team_http_port(const struct team *t);
int team_tls_http_port(const struct team *t);

/* ---- for the workers ---- */

/* From here to team_release all others stand still. Only at the top of a turn or between two transactions of
   a batch; never twice. */
void team_hold(struct worker *w);
void team_release(struct team *t);

/* At the top of a turn: stands still while another one asks for it. Whether one did. */
bool team_stand(struct worker *w);

/* This worker's turns are over: it stands still for good. */
void team_leave(struct worker *w);

#endif
