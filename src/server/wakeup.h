/* Over tables that other servers write to: learns when something has appeared there that a blocked client may
   wait for. Where the database sends notifications (PostgreSQL), the worker watches the database's socket
   while a client waits, and for a while after. */
#ifndef LARDER_SERVER_WAKEUP_H
#define LARDER_SERVER_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct worker;

struct wakeup {
    struct event *event;
    int fd;            /* a copy of the database's socket, which the store cannot close */
    uint64_t number;   /* of the connection that it belongs to; 0: there is none */
    int64_t since_us;  /* when the watching began */
    int64_t wanted_us; /* when a client waited last */
};

void wakeup_release(struct worker *w);

/* Each turn: watches while a client waits. True: a notification has come. */
bool wakeup_tend(struct worker *w, bool client_waits);

/* Whether notifications can be relied on, so that looking now and then is enough. */
bool wakeup_works(const struct worker *w, int64_t now_us);

#endif
