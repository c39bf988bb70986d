/* Accepts connections, chooses the worker for each and hands it over, see listeners.h. */
#include "server/listeners.h"

#include <sys/resource.h>

#include "base/log.h"
#include "base/mem.h"
#include "exec/auth.h"
#include "net/tls.h"
#include "server/worker_internal.h"
#include "server/workers_internal.h"

#define ACCEPTS_PER_EVENT 1000
#define ACCEPT_PAUSE_US   100000       /* after accept has failed for want of memory or descriptors */
#define RESERVED_FDS      ((rlim_t)64) /* for the database, logs, listeners */

/* ---- on the worker that a connection went to ---- */

/* Whether there is room for one more that speaks it, which is then counted. */
static bool enter(struct workers *t, int speaks)
{
    const struct protocol *p = t->protocols[speaks];
    uint32_t was = atomic_fetch_add_explicit(&t->nspeakers[speaks], 1, memory_order_relaxed);
    int64_t most = p->max_clients ? p->max_clients(t->config) : 0;
    if (most == 0 || was < (uint64_t)most)
        return true;
    atomic_fetch_sub_explicit(&t->nspeakers[speaks], 1, memory_order_relaxed);
    return false;
}

void listeners_leave(struct workers *t, const struct protocol *p)
{
    for (int i = 0; i < PROTOCOLS; i++)
        if (t->protocols[i] == p)
            atomic_fetch_sub_explicit(&t->nspeakers[i], 1, memory_order_relaxed);
}

static void welcome(struct worker *w, const struct server_listener *e, struct conn conn)
{
    const struct protocol *p = w->workers->protocols[e->speaks];
    if (auth_is_protected(worker_config(w)) && !conn_is_loopback(&conn)) {
        w->executor.stats.rejected[REJECTED_PROTECTED]++;
        conn_refuse(&conn, p->denied);
    } else if (!enter(w->workers, e->speaks)) {
        w->executor.stats.rejected[REJECTED_MAXCLIENTS]++;
        conn_refuse(&conn, p->full);
    } else {
        client_new(w, conn, p);
        return;
    }
    worker_uncount(w);
}

static void on_handshake_over(void *arg, struct conn *conn)
{
    const struct arrival *a = arg;
    if (conn)
        welcome(a->worker, &a->worker->workers->listeners[a->listener], *conn);
    else
        worker_uncount(a->worker);
}

void listeners_admit(struct worker *w, int which, struct conn conn)
{
    const struct server_listener *e = &w->workers->listeners[which];
    if (e->listener.tls)
        handshake_begin(&w->handshakes, conn, e->listener.protocol, on_handshake_over, &w->arrivals[which]);
    else
        welcome(w, e, conn);
}

/* A connection that the first worker has accepted for another one. */
struct accepted {
    struct message message;
    int which;        /* the listener that it came by */
    struct conn conn; /* not attached to a loop */
};

static void receive_accepted(struct worker *w, struct message *m)
{
    const struct accepted *a = (const struct accepted *)m;
    listeners_admit(w, a->which, a->conn);
    mem_free(m);
}

static void discard_accepted(struct message *m)
{
    conn_close(&((struct accepted *)m)->conn);
    mem_free(m);
}

static const struct message_kind accepted = {receive_accepted, discard_accepted};

/* ---- on the first worker ---- */

static void hand_over(struct worker *to, int which, struct conn conn)
{
    struct accepted *a = mem_zalloc(sizeof *a);
    a->message.kind = &accepted;
    a->which = which;
    a->conn = conn;
    mailbox_post(&to->mailbox, &a->message);
    worker_wake(to);
}

/* A connection counts from when it was accepted, before its TLS handshake is over. */
static uint32_t count_clients(const struct workers *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        n += atomic_load_explicit(&t->workers[i]->nclients, memory_order_relaxed);
    return n;
}

static struct worker *least_busy(const struct workers *t)
{
    struct worker *least = t->workers[0];
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t n = atomic_load_explicit(&t->workers[i]->nclients, memory_order_relaxed);
        if (n < fewest) {
            fewest = n;
            least = t->workers[i];
        }
    }
    return least;
}

static void greet(struct server_listener *e, struct conn conn)
{
    struct workers *t = e->workers;
    struct worker *first = t->workers[0];
    if (count_clients(t) >= t->max_clients) {
        first->executor.stats.rejected[REJECTED_MAXCLIENTS]++;
        if (e->listener.tls)
            conn_close(&conn);
        else
            conn_refuse(&conn, t->protocols[e->speaks]->full);
        return;
    }
    struct worker *w = least_busy(t);
    conn.number = server_next_id(&t->server);
    int which = (int)(e - t->listeners);
    atomic_fetch_add_explicit(&w->nclients, 1, memory_order_relaxed);
    if (w == first)
        listeners_admit(w, which, conn);
    else
        hand_over(w, which, conn);
}

void listeners_watch(struct workers *t, bool on)
{
    for (struct server_listener *e = t->listeners; e < t->listeners + LISTENERS; e++) {
        for (size_t i = 0; i < e->listener.n; i++) {
            if (on)
                event_add(e->accepts[i], NULL);
            else
                event_del(e->accepts[i]);
        }
    }
    if (!on)
        event_del(t->accept_timer);
}

static void pause_accepting(struct workers *t)
{
    struct timeval pause = {.tv_usec = ACCEPT_PAUSE_US};
    log_warning("cannot accept clients for want of memory or descriptors", NULL);
    listeners_watch(t, false);
    event_add(t->accept_timer, &pause);
}

static void on_accept_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    listeners_watch(arg, true);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct server_listener *e = arg;
    size_t i = 0;
    while (e->listener.fds[i] != fd)
        i++;
    for (int n = 0; n < ACCEPTS_PER_EVENT; n++) {
        struct conn conn;
        switch (listener_accept(&e->listener, i, &conn)) {
        case ACCEPT_OK:
            greet(e, conn);
            break;
        case ACCEPT_NONE:
            return;
        case ACCEPT_REFUSED:
            e->workers->workers[0]->executor.stats.rejected[REJECTED_DESCRIPTORS]++;
            break;
        case ACCEPT_STARVED:
            pause_accepting(e->workers);
            return;
        }
    }
}

/* As many clients as configured, if the limit of descriptors can be raised to it. */
void listeners_fit(struct workers *t)
{
    uint64_t wanted = (uint64_t)t->config->maxclients;
    struct rlimit limit;
    t->max_clients = (uint32_t)wanted;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return;
    if (limit.rlim_cur < wanted + RESERVED_FDS) {
        struct rlimit raised = limit;
        raised.rlim_cur = wanted + RESERVED_FDS;
        if (limit.rlim_max != RLIM_INFINITY && raised.rlim_cur > limit.rlim_max)
            raised.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur >= wanted + RESERVED_FDS)
        return;
    t->max_clients = limit.rlim_cur / 2 > RESERVED_FDS ? (uint32_t)(limit.rlim_cur - RESERVED_FDS)
                                                       : (uint32_t)(limit.rlim_cur / 2);
    log_warning("the limit of open files is too low for maxclients", "maxclients=%llu allowed=%u",
                (unsigned long long)wanted, t->max_clients);
}

/* ---- life ---- */

static enum status open_port(struct workers *t, int which, int64_t port, struct error *err)
{
    struct server_listener *e = &t->listeners[which];
    e->workers = t;
    e->speaks = which == LISTEN_HTTP || which == LISTEN_HTTP_TLS ? PROTOCOL_HTTP : PROTOCOL_RESP;
    e->listener.tls = which == LISTEN_RESP_TLS || which == LISTEN_HTTP_TLS;
    const struct protocol *p = t->protocols[e->speaks];
    if (port == 0 || !p)
        return ST_OK;
    if (e->listener.tls)
        e->listener.protocol = p->tls_name;
    return listener_open_tcp(&e->listener, t->config->bind, (int)port, (int)t->config->tcp_backlog, err);
}

/* Without http-port in the configuration HTTP listens on loopback addresses at its usual port, if that is
   free and Redis' protocol has a TCP port without TLS. */
static enum status open_http(struct workers *t, struct error *err)
{
    const struct config *config = t->config;
    bool asked = config_given(config, "http-port");
    struct listener *l = &t->listeners[LISTEN_HTTP].listener;
    struct error why = {0};
    char quoted[512];
    enum status st = open_port(t, LISTEN_HTTP, asked ? config->http_port : 0, err);
    if (asked || st != ST_OK || config->port == 0 || !t->protocols[PROTOCOL_HTTP])
        return st;
    if (listener_open_tcp(l, "127.0.0.1 -::1", (int)config->http_port, (int)config->tcp_backlog, &why) !=
        ST_OK) {
        listener_close(l);
        listener_init(l);
        log_quote(quoted, sizeof quoted, why.text);
        log_warning(
            "the HTTP API is off, because its usual port cannot be had; http-port takes another, or 0",
            "error=%s", quoted);
    }
    return ST_OK;
}

static void watch_all(struct workers *t)
{
    struct event_base *base = t->workers[0]->base;
    t->accept_timer = event_new(base, -1, 0, on_accept_again, t);
    for (struct server_listener *e = t->listeners; e < t->listeners + LISTENERS; e++)
        for (size_t i = 0; i < e->listener.n; i++)
            e->accepts[i] = event_new(base, e->listener.fds[i], EV_READ | EV_PERSIST, on_accept, e);
}

enum status listeners_open(struct workers *t, struct error *err)
{
    const struct config *config = t->config;
    struct listener *resp = &t->listeners[LISTEN_RESP].listener;
    enum status st = open_port(t, LISTEN_RESP, config->port, err);
    if (st == ST_OK)
        st = open_port(t, LISTEN_RESP_TLS, config->tls_port, err);
    if (st == ST_OK)
        st = open_http(t, err);
    if (st == ST_OK)
        st = open_port(t, LISTEN_HTTP_TLS, config->tls_http_port, err);
    if (st == ST_OK && config->unixsocket && config->unixsocket[0])
        st = listener_open_unix(resp, config->unixsocket, (unsigned)config->unixsocketperm,
                                (int)config->tcp_backlog, err);
    if (st != ST_OK)
        return st;
    t->server.tcp_port = resp->port ? resp->port : workers_tls_port(t);
    watch_all(t);
    listeners_fit(t);
    return ST_OK;
}

static void free_event(struct event *e)
{
    if (e)
        event_free(e);
}

void listeners_close(struct workers *t)
{
    for (struct server_listener *e = t->listeners; e < t->listeners + LISTENERS; e++) {
        for (size_t i = 0; i < LISTENER_MAX; i++)
            free_event(e->accepts[i]);
        listener_close(&e->listener);
    }
    free_event(t->accept_timer);
}

/* ---- certificates ---- */

static struct tls_options tls_options_of(const struct config *c)
{
    return (struct tls_options){
        .cert_file = c->tls_cert_file,
        .key_file = c->tls_key_file,
        .key_file_pass = c->tls_key_file_pass,
        .ca_cert_file = c->tls_ca_cert_file,
        .ca_cert_dir = c->tls_ca_cert_dir,
        .auth_clients = (enum tls_auth)c->tls_auth_clients,
        .protocols = c->tls_protocols,
        .ciphers = c->tls_ciphers,
        .ciphersuites = c->tls_ciphersuites,
        .prefer_server_ciphers = c->tls_prefer_server_ciphers,
        .session_caching = c->tls_session_caching,
        .session_cache_size = (uint32_t)c->tls_session_cache_size,
        .session_cache_seconds = (uint32_t)(c->tls_session_cache_timeout_ms / 1000),
    };
}

enum status certificates_load(struct workers *t, struct error *err)
{
    const struct config *config = t->config;
    const struct tls_options wanted = tls_options_of(config);
    struct ssl_ctx_st *context = NULL;
    char quoted[sizeof err->text + 64], expires[TLS_TIME_CHARS];
    if (config->tls_port == 0 && config->tls_http_port == 0)
        return ST_OK;
    enum status st = tls_context_new(&wanted, &context, err);
    if (st != ST_OK) {
        log_error("TLS cannot be set up", "error=%s", log_quote(quoted, sizeof quoted, err->text));
        return st;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        handshakes_set_context(&t->workers[i]->handshakes, tls_context_share(context));
        t->workers[i]->handshakes.limit_ms = config->tls_handshake_timeout_ms;
    }
    bool expired = tls_context_expired(context, expires);
    log_write(expired ? LOG_WARNING : LOG_INFO, expired ? "the TLS certificate has expired" : "TLS is set up",
              "cert=%s expires=\"%s\"", log_quote(quoted, sizeof quoted, config->tls_cert_file), expires);
    tls_context_free(context);
    return ST_OK;
}
