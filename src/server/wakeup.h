/* Over tables that other servers write to: hears of what appears there, for clients that wait for it. Where
   the database can tell (PostgreSQL), its socket is watched while anybody waits, and for a while after. */
#ifndef LARDER_SERVER_WAKEUP_H
#define LARDER_SERVER_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct worker;

struct wakeup {
    struct event *event;
    int fd;          /* a copy of the database's socket, so that nobody else closes it */
    uint64_t number; /* of the connection that it belongs to; 0: there is none */
    int64_t since_us;
    int64_t wanted_us; /* when somebody waited last */
};

void wakeup_release(struct worker *w);

/* Each turn: begins or goes on to listen while somebody waits. Whether something has appeared. */
bool wakeup_tend(struct worker *w, bool somebody_waits);

/* Whether it can be relied on: looking now and then is enough. */
bool wakeup_works(const struct worker *w, int64_t now_us);

#endif
