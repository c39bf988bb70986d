#include "net/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls.h"

#define UNSENT_MAX ((size_t)64 << 10)

/* An option that the system refuses only costs speed: it is not reported. */
static void set_option(int fd, int level, int name, int value)
{
    int ignored = setsockopt(fd, level, name, &value, sizeof value);
    (void)ignored;
}

void conn_tune(const struct conn *c, uint64_t keepalive_ms)
{
    if (c->local)
        return;
    set_option(c->fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (keepalive_ms == 0)
        return;
    /* Three unanswered probes, each a third of the interval apart, and the peer is gone. */
    uint64_t seconds = keepalive_ms / 1000;
    int idle = seconds < 1 ? 1 : seconds > 32767 ? 32767 : (int)seconds;
    set_option(c->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
    set_option(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, idle < 3 ? 1 : idle / 3);
    set_option(c->fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

/* ---- waiting ---- */

static void watch(struct event *e, bool *is_on, bool on)
{
    if (*is_on == on)
        return;
    *is_on = on;
    if (on)
        event_add(e, NULL);
    else
        event_del(e);
}

/* Watches the socket for what the owner waits for. TLS may have bytes of its own to send; a peer that makes
   it send more and more of them, and takes none, is not read from. And when bytes to read are here already,
   the loop comes back without waiting. */
static void settle(struct conn *c)
{
    static const struct timeval at_once = {0};
    size_t unsent = c->tls ? c->tls->unsent.len : 0;
    bool reading = c->reading && unsent < UNSENT_MAX;
    watch(&c->read_event, &c->awaits_read, reading);
    watch(&c->write_event, &c->awaits_write, c->writing || unsent);
    if (c->tls && c->tls->again_set != (reading && c->tls->more)) {
        c->tls->again_set = !c->tls->again_set;
        if (c->tls->again_set)
            event_add(&c->tls->again, &at_once);
        else
            event_del(&c->tls->again);
    }
}

static void tls_readable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    if (what & EV_TIMEOUT)
        c->tls->again_set = false;
    if (c->reading)
        c->readable(fd, EV_READ, c->arg);
    if (c->fd >= 0)
        settle(c);
}

static void tls_writable(evutil_socket_t fd, short what, void *arg)
{
    struct conn *c = arg;
    if (c->writing)
        c->writable(fd, what, c->arg);
    else if (tls_flush(c->tls) == CONN_FAILED)
        c->tls->more = true; /* whoever reads finds out */
    if (c->fd >= 0)
        settle(c);
}

void conn_attach(struct conn *c, struct event_base *base, event_callback_fn readable,
                 event_callback_fn writable, void *arg)
{
    c->readable = readable;
    c->writable = writable;
    c->arg = arg;
    if (c->tls) {
        evtimer_assign(&c->tls->again, base, tls_readable, c);
        readable = tls_readable;
        writable = tls_writable;
        arg = c;
    }
    event_assign(&c->read_event, base, c->fd, EV_READ | EV_PERSIST, readable, arg);
    event_assign(&c->write_event, base, c->fd, EV_WRITE | EV_PERSIST, writable, arg);
}

void conn_watch_reading(struct conn *c, bool on)
{
    c->reading = on;
    settle(c);
}

void conn_watch_writing(struct conn *c, bool on)
{
    c->writing = on;
    settle(c);
}

/* ---- bytes ---- */

static enum conn_io outcome(ssize_t n, size_t *ret_n)
{
    if (n > 0) {
        *ret_n = (size_t)n;
        return CONN_OK;
    }
    if (n == 0)
        return CONN_CLOSED;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? CONN_AGAIN : CONN_FAILED;
}

enum conn_io conn_read(struct conn *c, void *to, size_t n, size_t *ret_n)
{
    if (!c->tls)
        return outcome(recv(c->fd, to, n, 0), ret_n);
    enum conn_io io = tls_read(c->tls, to, n, ret_n);
    settle(c);
    return io;
}

enum conn_io conn_write(struct conn *c, const void *from, size_t n, size_t *ret_n)
{
    if (!c->tls)
        return outcome(send(c->fd, from, n, MSG_NOSIGNAL), ret_n);
    enum conn_io io = tls_write(c->tls, from, n, ret_n);
    settle(c);
    return io;
}

void conn_refuse(struct conn *c, struct slice last_word)
{
    size_t n;
    enum conn_io ignored = conn_write(c, last_word.p, last_word.n, &n);
    (void)ignored;
    conn_close(c);
}

/* Whatever TLS has still to send. */
static void stop_watching(struct conn *c)
{
    c->reading = c->writing = false;
    watch(&c->read_event, &c->awaits_read, false);
    watch(&c->write_event, &c->awaits_write, false);
    if (c->tls && c->tls->again_set) {
        c->tls->again_set = false;
        event_del(&c->tls->again);
    }
}

void conn_end_output(struct conn *c)
{
    stop_watching(c);
    tls_free(c->tls);
    c->tls = NULL;
    shutdown(c->fd, SHUT_WR);
}

void conn_close(struct conn *c)
{
    if (c->fd < 0)
        return;
    stop_watching(c);
    tls_free(c->tls);
    c->tls = NULL;
    close(c->fd);
    c->fd = -1;
}

static void print_address(const struct sockaddr_storage *ss, char out[CONN_ADDR_CHARS])
{
    char ip[INET6_ADDRSTRLEN];
    if (ss->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
        if (inet_ntop(AF_INET, &in->sin_addr, ip, sizeof ip)) {
            snprintf(out, CONN_ADDR_CHARS, "%s:%d", ip, ntohs(in->sin_port));
            return;
        }
    } else if (ss->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)ss;
        if (inet_ntop(AF_INET6, &in->sin6_addr, ip, sizeof ip)) {
            snprintf(out, CONN_ADDR_CHARS, "[%s]:%d", ip, ntohs(in->sin6_port));
            return;
        }
    }
    snprintf(out, CONN_ADDR_CHARS, "?:0");
}

void conn_addresses(const struct conn *c, const char *path, char ret_peer[CONN_ADDR_CHARS],
                    char ret_self[CONN_ADDR_CHARS])
{
    if (c->local) {
        snprintf(ret_peer, CONN_ADDR_CHARS, "%s:0", path);
        snprintf(ret_self, CONN_ADDR_CHARS, "%s:0", path);
        return;
    }
    struct sockaddr_storage ss = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof ss;
    if (getpeername(c->fd, (struct sockaddr *)&ss, &len) != 0)
        ss.ss_family = AF_UNSPEC;
    print_address(&ss, ret_peer);
    ss.ss_family = AF_UNSPEC;
    len = sizeof ss;
    if (getsockname(c->fd, (struct sockaddr *)&ss, &len) != 0)
        ss.ss_family = AF_UNSPEC;
    print_address(&ss, ret_self);
}

bool conn_is_loopback(const struct conn *c)
{
    if (c->local)
        return true;
    struct sockaddr_storage ss;
    socklen_t len = sizeof ss;
    memset(&ss, 0, sizeof ss);
    if (getpeername(c->fd, (struct sockaddr *)&ss, &len) != 0)
        return false;
    if (ss.ss_family == AF_INET)
        return ntohl(((struct sockaddr_in *)&ss)->sin_addr.s_addr) >> 24 == 127;
    if (ss.ss_family != AF_INET6)
        return false;
    const struct in6_addr *a = &((struct sockaddr_in6 *)&ss)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}
