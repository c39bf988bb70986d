/* The listeners: which sockets the process listens on, how many clients it lets in, and which worker gets
   each. The first worker's loop watches the sockets; everything else about a connection happens on the worker
   that gets it. */
#ifndef LARDER_SERVER_LISTENERS_H
#define LARDER_SERVER_LISTENERS_H

#include <event2/event.h>

#include "net/listener.h"

struct protocol;
struct workers;
struct worker;

enum { LISTEN_RESP, LISTEN_RESP_TLS, LISTEN_HTTP, LISTEN_HTTP_TLS, LISTENERS };

struct server_listener {
    struct workers *workers;
    struct listener listener;
    struct event *accepts[LISTENER_MAX];
    int speaks; /* which protocol */
};

/* Opens the ports that the configuration names, on the first worker's loop. */
enum status listeners_open(struct workers *t, struct error *err) MUST_CHECK;
void listeners_close(struct workers *t);

/* Begins or ends accepting connections. */
void listeners_watch(struct workers *t, bool on);

/* Takes over a connection that was counted for w: its handshake, its welcome. */
void listeners_admit(struct worker *w, int which, struct conn conn);

/* A client that speaks it has gone. */
void listeners_leave(struct workers *t, const struct protocol *p);

/* The certificates of the ports are read at the start, on SIGHUP, and when CONFIG SET changes where they are:
   connections from now on get what the configuration names; those that exist keep what they have. When it
   cannot be used everything stays as it was, and the log says why. Does nothing when no port has TLS. The
   workers do not run. */
enum status certificates_load(struct workers *t, struct error *err) MUST_CHECK;

/* maxclients, or what the limit of descriptors allows. */
void listeners_fit(struct workers *t);

#endif
