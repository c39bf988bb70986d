/* Connections on their way in: TLS handshakes that are not over yet. A client is nobody before that, and
   takes no more than this; when it is done its connection is as good as any other. */
#ifndef LARDER_NET_HANDSHAKE_H
#define LARDER_NET_HANDSHAKE_H

#include "net/conn.h"

struct handshake;
struct ssl_ctx_st;

struct handshakes {
    struct event_base *base;
    struct ssl_ctx_st *context; /* for those that are yet to begin; owned */
    uint64_t limit_ms;          /* how long one may take */
    struct handshake *first;
    uint64_t *failed; /* counts them */
    /* The log says it once in a while, and how often it has not. */
    int64_t warned_us;
    uint64_t unsaid;
};

/* Ends those that are not over. */
void handshakes_release(struct handshakes *h);

/* New connections get this context, which is taken over. */
void handshakes_set_context(struct handshakes *h, struct ssl_ctx_st *context);

/* Takes conn over, and hands it to done when it is ready; when that fails it closes it and hands over NULL.
   protocol: see tls_new. */
void handshake_begin(struct handshakes *h, struct conn conn, const char *protocol,
                     void (*done)(void *arg, struct conn *conn), void *arg);

#endif
