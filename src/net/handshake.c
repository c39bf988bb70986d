#include "net/handshake.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls.h"

#define WARN_EVERY_US 10000000

struct handshake {
    struct handshakes *all;
    struct handshake *prev, *next;
    struct conn conn;
    struct event timer;
    void (*done)(void *arg, struct conn *conn);
    void *arg;
};

/* Out of the list and gone; the connection is the caller's again. */
static struct conn take_out(struct handshake *s)
{
    struct handshakes *h = s->all;
    struct conn conn = s->conn;
    event_del(&s->timer);
    event_del(&s->conn.read_event);
    event_del(&s->conn.write_event);
    if (s->prev)
        s->prev->next = s->next;
    else
        h->first = s->next;
    if (s->next)
        s->next->prev = s->prev;
    mem_free(s);
    return conn;
}

static void end(struct handshake *s)
{
    void (*done)(void *, struct conn *) = s->done;
    void *arg = s->arg;
    struct conn conn = take_out(s);
    conn_close(&conn);
    done(arg, NULL);
}

/* Anyone who reaches the port can cause these lines: not more than one in a while, but all when debugging. */
static void complain(struct handshake *s, const char *why)
{
    struct handshakes *h = s->all;
    char peer[CONN_ADDR_CHARS], self[CONN_ADDR_CHARS], reason[256];
    int64_t now = clock_mono_us();
    bool loud = h->warned_us == 0 || now - h->warned_us >= WARN_EVERY_US;
    (*h->failed)++;
    conn_addresses(&s->conn, "", peer, self);
    log_write(loud ? LOG_WARNING : LOG_DEBUG, "a TLS handshake failed",
              "addr=%s laddr=%s error=%s unsaid=%llu", peer, self, log_quote(reason, sizeof reason, why),
              (unsigned long long)h->unsaid);
    h->unsaid = loud ? 0 : h->unsaid + 1;
    if (loud)
        h->warned_us = now;
}

static void go_on(struct handshake *s)
{
    struct error err;
    enum tls_step step = tls_handshake(s->conn.tls, &err);
    event_del(&s->conn.read_event);
    event_del(&s->conn.write_event);
    switch (step) {
    case TLS_DONE: {
        void (*done)(void *, struct conn *) = s->done;
        void *arg = s->arg;
        struct conn conn = take_out(s);
        done(arg, &conn);
        return;
    }
    case TLS_WANTS_READ:
        event_add(&s->conn.read_event, NULL);
        return;
    case TLS_WANTS_WRITE:
        event_add(&s->conn.write_event, NULL);
        return;
    case TLS_GONE:
        (*s->all->failed)++;
        break;
    case TLS_FAILED:
        complain(s, err.text);
        break;
    }
    end(s);
}

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    go_on(arg);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    complain(arg, "it was not over within tls-handshake-timeout");
    end(arg);
}

void handshake_begin(struct handshakes *h, struct conn conn, const char *protocol,
                     void (*done)(void *arg, struct conn *conn), void *arg)
{
    conn.tls = tls_new(h->context, conn.fd, protocol);
    if (!conn.tls) {
        conn_close(&conn);
        done(arg, NULL);
        return;
    }
    struct handshake *s = mem_zalloc(sizeof *s);
    *s = (struct handshake){.all = h, .next = h->first, .conn = conn, .done = done, .arg = arg};
    if (h->first)
        h->first->prev = s;
    h->first = s;
    event_assign(&s->conn.read_event, h->base, conn.fd, EV_READ, on_socket, s);
    event_assign(&s->conn.write_event, h->base, conn.fd, EV_WRITE, on_socket, s);
    evtimer_assign(&s->timer, h->base, on_timer, s);
    struct timeval limit = {.tv_sec = (time_t)(h->limit_ms / 1000),
                            .tv_usec = (suseconds_t)(h->limit_ms % 1000 * 1000)};
    event_add(&s->timer, &limit);
    event_add(&s->conn.read_event, NULL);
}

void handshakes_set_context(struct handshakes *h, struct ssl_ctx_st *context)
{
    tls_context_free(h->context);
    h->context = context;
}

void handshakes_release(struct handshakes *h)
{
    while (h->first)
        end(h->first);
    handshakes_set_context(h, NULL);
}
