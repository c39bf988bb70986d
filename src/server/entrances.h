/* The ways in: who listens where, how many clients there may be, and which worker gets one. The first
   worker's loop watches the listeners; everything else about a connection happens on the worker that it went
   to. */
#ifndef LARDER_SERVER_ENTRANCES_H
#define LARDER_SERVER_ENTRANCES_H

#include <event2/event.h>

#include "net/listener.h"

struct team;
struct worker;

enum { ENTRANCE_RESP, ENTRANCE_RESP_TLS, ENTRANCE_HTTP, ENTRANCE_HTTP_TLS, ENTRANCES };

struct entrance {
    struct team *team;
    struct listener listener;
    struct event *accepts[LISTENER_MAX];
    void (*turn_away)(struct conn *conn);                /* there are too many */
    void (*welcome)(struct worker *w, struct conn conn); /* a client for w, which counts it already */
};

/* Opens the ports that the configuration names, on the first worker's loop. */
enum status entrances_open(struct team *t, struct error *err) MUST_CHECK;
void entrances_close(struct team *t);

/* Whether anyone is let in. */
void entrances_watch(struct team *t, bool on);

/* Takes over a connection that was counted for w: its handshake, its welcome. */
void entrance_admit(struct worker *w, int which, struct conn conn);

/* maxclients, or what the limit of descriptors allows. */
void entrances_fit(struct team *t);

#endif
