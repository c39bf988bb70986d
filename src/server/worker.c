/* The loop. A turn: wait for sockets and timers, read and parse what has come, run it as one batch, send the
   replies, do a step of housekeeping. */
#include "server/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "command/block.h"
#include "command/http.h"
#include "engine/engine.h"
#include "server/certificates.h"
#include "server/http.h"
#include "server/worker_internal.h"

#define ACCEPTS_PER_EVENT 1000
#define ACCEPT_PAUSE_US   100000       /* after accept has failed for want of memory or descriptors */
#define RESERVED_FDS      ((rlim_t)64) /* for the database, logs, listeners */
#define FULL_RETRY_US     5000         /* when to look again whether the store has caught up */
#define LAST_FLUSH_US     3000000      /* how long the end waits for replies to leave */

static const char DENIED[] =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for "
    "the default user. In this mode connections are only accepted from the loopback interface. If you want "
    "to "
    "connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable "
    "protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by "
    "connecting to Redis from the same host the server is running, however MAKE SURE Redis is not publicly "
    "accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) "
    "Alternatively "
    "you can just disable the protected mode by editing the Redis configuration file, and setting the "
    "protected "
    "mode option to 'no', and then restarting the server. 3) If you started the server manually just for "
    "testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication password for "
    "the "
    "default user. NOTE: You only need to do one of the above things in order for the server to start "
    "accepting "
    "connections from the outside.\r\n";

static void arm(struct event *timer, int64_t us)
{
    struct timeval tv = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    event_add(timer, &tv);
}

/* ---- accepting ---- */

static void welcome(struct worker *w, struct conn conn)
{
    const struct config *config = worker_config(w);
    struct server *server = &w->server;
    if (server->nsessions >= w->max_clients) {
        server->stats.rejected[REJECTED_MAXCLIENTS]++;
        conn_refuse(&conn, SLICE("-ERR max number of clients reached\r\n"));
    } else if (config->protected_mode && config->requirepass[0] == '\0' && !conn_is_loopback(&conn)) {
        server->stats.rejected[REJECTED_PROTECTED]++;
        conn_refuse(&conn, SLICE(DENIED));
    } else {
        client_new(w, conn, &resp_protocol);
    }
}

static void on_handshake_done(void *arg, struct conn conn)
{
    struct entrance *e = arg;
    e->welcome(e->worker, conn);
}

/* Handshakes count as clients, and are held to the same limit. */
static void greet(struct entrance *e, struct conn conn)
{
    struct worker *w = e->worker;
    if (!e->listener.tls) {
        e->welcome(w, conn);
    } else if (w->server.nsessions + w->handshakes.n >= w->max_clients) {
        w->server.stats.rejected[REJECTED_MAXCLIENTS]++;
        conn_close(&conn);
    } else {
        handshake_begin(&w->handshakes, conn, e->listener.protocol, on_handshake_done, e);
    }
}

static void watch_accepts(struct worker *w, bool on)
{
    for (struct entrance *e = w->entrances; e < w->entrances + ENTRANCES; e++) {
        for (size_t i = 0; i < e->listener.n; i++) {
            if (on)
                event_add(e->accepts[i], NULL);
            else
                event_del(e->accepts[i]);
        }
    }
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct entrance *e = arg;
    struct worker *w = e->worker;
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
            w->server.stats.rejected[REJECTED_DESCRIPTORS]++;
            break;
        case ACCEPT_STARVED:
            log_warning("cannot accept clients for want of memory or descriptors", NULL);
            watch_accepts(w, false);
            arm(w->accept_timer, ACCEPT_PAUSE_US);
            return;
        }
    }
}

static void on_accept_again(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    watch_accepts(arg, true);
}

/* As many clients as configured, if the limit of descriptors can be raised to it. */
static void fit_max_clients(struct worker *w)
{
    uint64_t wanted = (uint64_t)worker_config(w)->maxclients;
    struct rlimit limit;
    w->max_clients = (uint32_t)wanted;
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
    w->max_clients = limit.rlim_cur / 2 > RESERVED_FDS ? (uint32_t)(limit.rlim_cur - RESERVED_FDS)
                                                       : (uint32_t)(limit.rlim_cur / 2);
    log_warning("the limit of open files is too low for maxclients", "maxclients=%llu allowed=%u",
                (unsigned long long)wanted, w->max_clients);
}

/* ---- configuration at run time ---- */

static enum status config_changed(struct server *server, const struct option *o, struct error *refused)
{
    struct worker *w = server->worker;
    struct config *config = server->config;
    struct slice name = slice_str(o->name);
    struct error err;
    if (slice_is(name, "cache-memory")) {
        cache_set_budget(engine_cache(server->engine), config->cache_memory);
    } else if (slice_is(name, "durability")) {
        server->durability_wanted = server->end_batch = true;
    } else if (slice_is(name, "maxclients")) {
        fit_max_clients(w);
    } else if (slice_is(name, "loglevel")) {
        log_set_level((enum log_level)config->loglevel);
    } else if (slice_is(name, "sweep") || slice_is(name, "sweep-interval")) {
        arm(w->sweep_timer, 0);
    } else if (strncmp(o->name, "tls-", 4) == 0 && certificates_load(w, &err) != ST_OK) {
        return error_set(refused, err.code, "Unable to update TLS configuration. Check server logs.");
    }
    return ST_OK;
}

/* ---- timers ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct worker *w = arg;
    server_tick(&w->server);
    for (struct session *s = w->server.first, *next; s; s = next) {
        next = s->next;
        client_tick((struct client *)s, worker_now(w));
    }
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct worker *)arg)->sweep_due = true;
}

/* Only wakes the loop, which then looks whether the pause is over. */
static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* The store tells from its thread that commits have become durable: only wakes the loop, which then looks. */
static void on_progress(evutil_socket_t fd, short what, void *arg)
{
    (void)what, (void)arg;
    uint64_t ignored;
    ssize_t n = read(fd, &ignored, sizeof ignored);
    (void)n;
}

static void wake_up(void *arg)
{
    uint64_t one = 1;
    ssize_t n = write(((struct worker *)arg)->progress_fd, &one, sizeof one);
    (void)n;
}

/* What others write to stop_fd adds up until it is read. */
#define ASK_RELOAD (UINT64_C(1))
#define ASK_STOP   (UINT64_C(1) << 32)

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct worker *w = arg;
    struct error err;
    uint64_t asked = 0;
    if (read(fd, &asked, sizeof asked) <= 0)
        return;
    if (asked % ASK_STOP && certificates_load(w, &err) != ST_OK)
        log_warning("the certificates stay as they were", NULL);
    if (asked >= ASK_STOP)
        w->stop = true;
}

static void ask(struct worker *w, uint64_t what)
{
    ssize_t ignored = write(w->stop_fd, &what, sizeof what);
    (void)ignored;
}

void worker_stop(struct worker *w)
{
    ask(w, ASK_STOP);
}

void worker_reload(struct worker *w)
{
    ask(w, ASK_RELOAD);
}

/* ---- a turn ---- */

/* Clients that have input left from the last turn. Those that were served in this one already wait for the
   next. */
static void gather_ready(struct worker *w)
{
    size_t n = w->ready.len;
    for (size_t i = 0; i < n; i++) {
        struct client *c = w->ready.items[i];
        if (c->in_batch) {
            VEC_PUSH(w->ready.items, w->ready.len, w->ready.cap) = c;
            continue;
        }
        c->ready = false;
        batch_gather(w, c);
        if (!c->in_batch)
            client_batch_done(c);
    }
    /* Those that are ready again stand behind the first n. */
    w->ready.len -= n;
    if (w->ready.len)
        memmove(w->ready.items, w->ready.items + n, w->ready.len * sizeof *w->ready.items);
}

static void resume_paused(struct worker *w)
{
    if (w->paused.len == 0) {
        w->lock_since_us = 0;
        return;
    }
    int64_t left = w->server.pause == PAUSE_NONE ? 0 : w->server.pause_until_us - worker_now(w);
    if (engine_full(w->server.engine) && left < FULL_RETRY_US)
        left = FULL_RETRY_US;
    if (w->lock_since_us && left < w->lock_retry_us - worker_now(w))
        left = w->lock_retry_us - worker_now(w);
    if (left > 0 && !w->look_again) {
        arm(w->pause_timer, left + 1000);
        return;
    }
    w->look_again = false;
    for (size_t i = 0; i < w->paused.len; i++)
        client_resume(w->paused.items[i]);
    w->paused.len = 0;
}

static void forget(struct client_list *l, const struct client *c)
{
    size_t n = 0;
    for (size_t i = 0; i < l->len; i++)
        if (l->items[i] != c)
            l->items[n++] = l->items[i];
    l->len = n;
}

void worker_unpause(struct worker *w, struct client *c)
{
    forget(&w->paused, c);
    c->paused = false;
}

static void free_dead(struct worker *w)
{
    for (size_t i = 0; i < w->dead.len; i++) {
        struct client *c = w->dead.items[i];
        if (c->ready)
            forget(&w->ready, c);
        if (c->paused)
            forget(&w->paused, c);
        if (c->to_flush)
            forget(&w->flush, c);
        client_free(c);
    }
    w->dead.len = 0;
}

/* Over tables that others write to: how often to look for what blocked clients wait for. Soon after there was
   something, less often while there is nothing, and hardly ever where the database tells (bell.h). */
#define POLL_MIN_US  5000
#define POLL_MAX_US  100000
#define POLL_TOLD_US 1000000

static void poll_for_blocked(struct worker *w)
{
    bool waiting = view_shared(w->server.view) && blocking_clients(w->server.blocking);
    bool rung = bell_tend(w, waiting);
    if (!waiting) {
        w->poll_us = 0;
        return;
    }
    int64_t now = clock_mono_us();
    if (w->poll_us == 0 || rung || now >= w->poll_at_us) {
        if ((w->poll_us || rung) && batch_poll(w))
            w->poll_us = 0;
        now = clock_mono_us();
        int64_t most = bell_works(w, now) ? POLL_TOLD_US : POLL_MAX_US;
        w->poll_us = w->poll_us ? w->poll_us * 3 / 2 : POLL_MIN_US;
        if (w->poll_us > most)
            w->poll_us = most;
        bool more = bell_tend(w, waiting); /* has come meanwhile */
        w->poll_at_us = now + (more ? 0 : w->poll_us);
    }
    arm(w->poll_timer, w->poll_at_us - now);
}

static enum status turn(struct worker *w, struct error *err)
{
    int flags = EVLOOP_ONCE | (w->ready.len || w->flush.len ? EVLOOP_NONBLOCK : 0);
    w->now_us = 0;
    if (event_base_loop(w->base, flags) < 0)
        return error_set(err, ST_INTERNAL, "the event loop failed: %s", strerror(errno));
    gather_ready(w);
    batch_run(w);
    resume_paused(w);
    if (w->sweep_due) {
        w->sweep_due = false;
        arm(w->sweep_timer, sweeper_step(w));
    }
    poll_for_blocked(w); /* last: whatever asks the database may take a notification along */
    free_dead(w);
    return ST_OK;
}

/* ---- the end ---- */

static bool anything_unsent(const struct worker *w)
{
    for (const struct session *s = w->server.first; s; s = s->next) {
        const struct client *c = (const struct client *)s;
        if (c->out.len > c->sent)
            return true;
    }
    return false;
}

static enum status wind_up(struct worker *w, struct error *err)
{
    w->stop = w->server.stopping = true;
    watch_accepts(w, false);
    event_del(w->accept_timer);
    event_del(w->sweep_timer);
    /* What has been sent is read and answered; then nothing more is. */
    arm(w->pause_timer, 0);
    enum status st = turn(w, err);
    for (struct session *s = w->server.first, *next; s; s = next) {
        next = s->next;
        client_drain((struct client *)s);
    }
    int64_t until = clock_mono_us() + LAST_FLUSH_US;
    do {
        arm(w->pause_timer, 10000);
        if (st == ST_OK)
            st = turn(w, err);
    } while (st == ST_OK && anything_unsent(w) && worker_now(w) < until);
    enum status synced = engine_sync(w->server.engine, err);
    return st != ST_OK ? st : synced;
}

enum status worker_run(struct worker *w, struct error *err)
{
    arm(w->sweep_timer, 0);
    struct timeval second = {.tv_sec = 1};
    event_add(w->tick, &second);
    watch_accepts(w, true);
    enum status st = ST_OK;
    while (st == ST_OK && !w->stop && !w->server.stopping)
        st = turn(w, err);
    return st == ST_OK ? wind_up(w, err) : st;
}

/* ---- life ---- */

static enum status open_port(struct worker *w, int which, void (*welcomes)(struct worker *, struct conn),
                             int64_t port, struct error *err)
{
    const struct config *config = worker_config(w);
    struct entrance *e = &w->entrances[which];
    e->worker = w;
    e->welcome = welcomes;
    if (port == 0)
        return ST_OK;
    return listener_open_tcp(&e->listener, config->bind, (int)port, (int)config->tcp_backlog, err);
}

static enum status open_listeners(struct worker *w, struct error *err)
{
    const struct config *config = worker_config(w);
    struct listener *resp = &w->entrances[ENTRANCE_RESP].listener;
    w->entrances[ENTRANCE_RESP_TLS].listener.tls = true;
    w->entrances[ENTRANCE_HTTP_TLS].listener.tls = true;
    w->entrances[ENTRANCE_HTTP_TLS].listener.protocol = "http/1.1";
    enum status st = open_port(w, ENTRANCE_RESP, welcome, config->port, err);
    if (st == ST_OK)
        st = open_port(w, ENTRANCE_RESP_TLS, welcome, config->tls_port, err);
    if (st == ST_OK)
        st = open_port(w, ENTRANCE_HTTP, http_welcome, config->http_port, err);
    if (st == ST_OK)
        st = open_port(w, ENTRANCE_HTTP_TLS, http_welcome, config->tls_http_port, err);
    if (st == ST_OK && config->unixsocket && config->unixsocket[0])
        st = listener_open_unix(resp, config->unixsocket, (unsigned)config->unixsocketperm,
                                (int)config->tcp_backlog, err);
    w->server.tcp_port = resp->port ? resp->port : worker_tls_port(w);
    for (struct entrance *e = w->entrances; st == ST_OK && e < w->entrances + ENTRANCES; e++)
        for (size_t i = 0; i < e->listener.n; i++)
            e->accepts[i] = event_new(w->base, e->listener.fds[i], EV_READ | EV_PERSIST, on_accept, e);
    return st;
}

static enum status open_loop(struct worker *w, struct error *err)
{
    struct event_config *options = event_config_new();
    if (options) {
        event_config_set_flag(options, EVENT_BASE_FLAG_NOLOCK);
        w->base = event_base_new_with_config(options);
        event_config_free(options);
    }
    w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->progress_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!w->base || w->stop_fd < 0 || w->progress_fd < 0)
        return error_set(err, ST_INTERNAL, "cannot make an event loop: %s", strerror(errno));
    w->tick = event_new(w->base, -1, EV_PERSIST, on_tick, w);
    w->sweep_timer = event_new(w->base, -1, 0, on_sweep, w);
    w->pause_timer = event_new(w->base, -1, 0, on_pause_over, w);
    w->poll_timer = event_new(w->base, -1, 0, on_pause_over, w);
    w->accept_timer = event_new(w->base, -1, 0, on_accept_again, w);
    w->stop_event = event_new(w->base, w->stop_fd, EV_READ | EV_PERSIST, on_stop, w);
    w->progress_event = event_new(w->base, w->progress_fd, EV_READ | EV_PERSIST, on_progress, w);
    event_add(w->stop_event, NULL);
    event_add(w->progress_event, NULL);
    return ST_OK;
}

enum status worker_new(struct config *config, struct engine *engine, struct worker **ret, struct error *err)
{
    struct worker *w = mem_zalloc(sizeof *w);
    w->stop_fd = w->progress_fd = -1;
    w->server.config_changed = config_changed;
    w->durability = config->durability;
    w->server.worker = w;
    server_init(&w->server, config, engine);
    w->http = http_api_new(&w->server);
    for (int i = 0; i < ENTRANCES; i++)
        listener_init(&w->entrances[i].listener);
    enum status st = open_loop(w, err);
    w->handshakes.base = w->base;
    w->handshakes.failed = &w->server.stats.rejected[REJECTED_HANDSHAKE];
    if (st == ST_OK)
        st = certificates_load(w, err);
    if (st == ST_OK)
        st = open_listeners(w, err);
    if (st != ST_OK) {
        worker_free(w);
        return st;
    }
    fit_max_clients(w);
    engine_on_progress(engine, wake_up, w);
    *ret = w;
    return ST_OK;
}

static void free_event(struct event *e)
{
    if (e)
        event_free(e);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    engine_on_progress(w->server.engine, NULL, NULL);
    while (w->server.first)
        client_kill((struct client *)w->server.first);
    free_dead(w);
    for (struct entrance *e = w->entrances; e < w->entrances + ENTRANCES; e++) {
        for (size_t i = 0; i < LISTENER_MAX; i++)
            free_event(e->accepts[i]);
        listener_close(&e->listener);
    }
    handshakes_release(&w->handshakes);
    free_event(w->tick);
    free_event(w->sweep_timer);
    free_event(w->pause_timer);
    free_event(w->poll_timer);
    free_event(w->accept_timer);
    free_event(w->stop_event);
    free_event(w->progress_event);
    if (w->base)
        event_base_free(w->base);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    if (w->progress_fd >= 0)
        close(w->progress_fd);
    waits_release(&w->waits);
    batch_release(&w->batch);
    rerun_release(&w->rerun);
    bell_release(w);
    mem_free(w->ready.items);
    mem_free(w->flush.items);
    mem_free(w->paused.items);
    mem_free(w->dead.items);
    http_api_free(w->http);
    server_release(&w->server);
    mem_free(w);
}

int worker_port(const struct worker *w)
{
    return w->entrances[ENTRANCE_RESP].listener.port;
}

int worker_http_port(const struct worker *w)
{
    return w->entrances[ENTRANCE_HTTP].listener.port;
}

int worker_tls_port(const struct worker *w)
{
    return w->entrances[ENTRANCE_RESP_TLS].listener.port;
}

int worker_tls_http_port(const struct worker *w)
{
    return w->entrances[ENTRANCE_HTTP_TLS].listener.port;
}
