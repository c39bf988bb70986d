/* The loop. A turn: wait for sockets and timers, read and parse what has come, run it as one batch, send the
   replies, do a step of housekeeping. */
#include "server/worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "engine/recent.h"
#include "exec/block.h"
#include "exec/command.h"
#include "query/query.h"
#include "replica/replicas.h"
#include "server/worker_internal.h"
#include "script/scripts.h"
#include "stats/monitor.h"
#include "store/shared.h"
#include "table/catalog.h"
#include "table/hashes/hashes.h"

#define FULL_RETRY_US 5000    /* when to look again whether the store has caught up */
#define LAST_FLUSH_US 3000000 /* how long the end waits for replies to leave */

#define RELOAD_RETRY_US 100000

#define LOOK_OUT_US  100  /* for the next command of the only client, before the loop sleeps */
#define SOON_US      200  /* a command that comes within that is worth it */
#define MISSED_US    2000 /* when none has come, the loop sleeps at once for so long ... */
#define PREEMPTED_US 500  /* ... and if so much time went by without a look, another program was let run: */
#define REST_US      1000000 /* ... for so long */

/* ---- configuration at run time: the other workers stand still ---- */

static void set_form_limits(const struct worker *w, struct engine *engine)
{
    const struct config *c = w->workers->config;
    struct view *v = engine_view(engine);
    view_set_form_limit(v, ROW_HASH, (struct form_limit){c->hash_max_entries, c->hash_max_value});
    view_set_form_limit(v, ROW_SET, (struct form_limit){c->set_max_entries, 0});
    view_set_form_limit(v, ROW_ZSET, (struct form_limit){c->zset_max_entries, c->zset_max_value});
}

/* A worker's engines share its part. Where others write to the tables, an engine needs memory for no more
   than the running transaction: half of it is for what was read a while ago. */
static void set_cache_budget(const struct worker *w, struct engine *engine)
{
    const struct executor *s = &w->executor;
    size_t part = w->workers->config->cache_memory / w->workers->n;
    if (s->recent)
        part /= 2;
    if (!s->recent || engine != recent_engine(s->recent))
        part /= s->nengines;
    cache_set_budget(engine_cache(engine), part);
}

static void each_engine(const struct worker *w, void (*set)(const struct worker *w, struct engine *engine))
{
    if (w->executor.recent)
        set(w, recent_engine(w->executor.recent));
    for (uint32_t i = 0; i < w->executor.nengines; i++)
        set(w, w->executor.engines[i]);
}

static void each_engine_of_all(const struct workers *t,
                               void (*set)(const struct worker *w, struct engine *engine))
{
    for (uint32_t i = 0; i < t->n; i++)
        each_engine(t->workers[i], set);
}

static enum status config_changed(struct executor *executor, const struct option *o,
                                  struct command_result *result, struct error *refused)
{
    struct workers *t = ((struct worker *)executor->worker)->workers;
    struct config *config = executor->config;
    struct slice name = slice_str(o->name);
    struct error err;
    if (slice_is(name, "cache-memory")) {
        each_engine_of_all(t, set_cache_budget);
    } else if (slice_is(name, "durability")) {
        result->durability = result->ends = true;
    } else if (slice_is(name, "replica-max-lag") && t->server.replicas) {
        replicas_set_max_lag(t->server.replicas, (uint32_t)config->replica_max_lag_ms);
    } else if (slice_is(name, "maxclients")) {
        listeners_fit(t);
    } else if (slice_is(name, "loglevel")) {
        log_set_level((enum log_level)config->loglevel);
    } else if (slice_is(name, "sweep") || slice_is(name, "sweep-interval")) {
        worker_arm(t->workers[0]->sweep_timer, 0);
    } else if (strstr(o->name, "-max-listpack-") || strstr(o->name, "-max-intset-")) {
        each_engine_of_all(t, set_form_limits);
    } else if (strncmp(o->name, "tls-", 4) == 0 && certificates_load(t, &err) != ST_OK) {
        return error_set(refused, err.code, "Unable to update TLS configuration. Check server logs.");
    }
    return ST_OK;
}

/* ---- timers ---- */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    struct worker *w = arg;
    executor_tick(&w->executor);
    for (struct session *s = w->executor.first, *next; s; s = next) {
        next = s->next;
        if (busy_defers(w, (struct client *)s))
            continue;
        if (w->batch.pending && ((struct client *)s)->in_batch) /* it waits for us */
            continue;
        client_tick((struct client *)s, worker_now(w));
    }
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct worker *)arg)->sweep_due = true;
}

static void on_build(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct worker *)arg)->build_due = true;
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what;
    ((struct worker *)arg)->batch.due = true;
}

/* Only wakes the loop, which then looks whether the pause is over. */
static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* ---- what other threads want ---- */

/* A line for the clients that monitor. */
struct monitor_line {
    struct message message;
    struct slice line;
    char bytes[];
};

static void receive_line(struct worker *w, struct message *m)
{
    monitor_tell(&w->executor, ((struct monitor_line *)m)->line);
    mem_free(m);
}

static void discard_line(struct message *m)
{
    mem_free(m);
}

/* A line found no room in the mailbox. */
static void receive_lines_lost(struct worker *w, struct message *m)
{
    (void)m;
    log_warning("closing monitoring clients, which other workers outran", NULL);
    for (struct session *s = w->executor.first, *next; s; s = next) {
        next = s->next;
        if (!s->state.monitor)
            continue;
        w->executor.stats.closed[CLOSED_OUTPUT_LIMIT]++;
        client_kill((struct client *)s);
    }
}

static void receive_look(struct worker *w, struct message *m)
{
    (void)m;
    w->told_to_look = true;
}

/* A job that a client of this worker waits for is over (exec/block.h). It is looked at when no transaction
   runs and none is to be run again. */
struct job_message {
    struct message message;
    struct worker_job job;
};

static void receive_job(struct worker *w, struct message *m)
{
    VEC_PUSH(w->jobs.items, w->jobs.len, w->jobs.cap) = ((struct job_message *)m)->job;
    mem_free(m);
}

static void discard_job(struct message *m)
{
    const struct worker_job *j = &((struct job_message *)m)->job;
    j->fn(NULL, j->job);
    mem_free(m);
}

static void tend_jobs(struct worker *w)
{
    for (size_t i = 0; i < w->jobs.len; i++)
        w->jobs.items[i].fn(&w->executor, w->jobs.items[i].job);
    w->jobs.len = 0;
}

static const struct message_kind job_message = {receive_job, discard_job};
static const struct message_kind monitor_line = {receive_line, discard_line};
static const struct message_kind lines_lost = {receive_lines_lost, NULL};
static const struct message_kind look_for_blocked = {receive_look, NULL};

/* There is mail, or commits have become durable, or another worker wants this one to stand still: the loop
   looks for the last two itself. */
static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    uint64_t ignored;
    ssize_t n = read(fd, &ignored, sizeof ignored);
    (void)n;
    struct worker *w = arg;
    mailbox_read(&w->mailbox, w);
}

void worker_wake(struct worker *w)
{
    uint64_t one = 1;
    ssize_t n = write(w->wake_fd, &one, sizeof one);
    (void)n;
}

static void wake_up(void *arg)
{
    worker_wake(arg);
}

static void look(struct executor *s)
{
    struct worker *w = s->worker;
    mailbox_post_once(&w->mailbox, &w->look);
    worker_wake(w);
}

static void tell_monitors(struct executor *s, struct slice line)
{
    struct worker *w = s->worker;
    struct monitor_line *l = mem_zalloc(sizeof *l + line.n);
    l->message.kind = &monitor_line;
    memcpy(l->bytes, line.p, line.n);
    l->line = slice_of(l->bytes, line.n);
    if (!mailbox_post_bounded(&w->mailbox, &l->message, line.n)) {
        mem_free(l);
        mailbox_post_once(&w->mailbox, &w->lines_lost);
    }
    worker_wake(w);
}

static void job_over(struct executor *s, struct block_job *job,
                     void (*fn)(struct executor *s, struct block_job *job))
{
    struct worker *w = s->worker;
    struct job_message *m = mem_zalloc(sizeof *m);
    m->message.kind = &job_message;
    m->job = (struct worker_job){job, fn};
    mailbox_post(&w->mailbox, &m->message);
    worker_wake(w);
}

/* What others write to stop_fd adds up until it is read. */
#define ASK_RELOAD (UINT64_C(1))
#define ASK_STOP   (UINT64_C(1) << 32)

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct worker *w = arg;
    uint64_t asked = 0;
    if (read(fd, &asked, sizeof asked) <= 0)
        return;
    w->reload |= asked % ASK_STOP != 0;
    w->stop |= asked >= ASK_STOP;
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

/* Clients that had input left at the end of the last turn. */
static void gather_ready(struct worker *w)
{
    for (size_t n = w->ready.n; n > 0; n--)
        gather_calls(w, w->ready.first);
}

/* How long the paused clients have to wait; 0: they may go on. */
static int64_t pause_left(struct worker *w)
{
    int64_t left = w->executor.pause == PAUSE_NONE ? 0 : w->executor.pause_until_us - worker_now(w);
    if (engine_full(w->executor.engine) && left < FULL_RETRY_US)
        left = FULL_RETRY_US;
    if (w->lock_since_us && left < w->lock_retry_us - worker_now(w))
        left = w->lock_retry_us - worker_now(w);
    int64_t hold = legs_hold_left(w);
    if (left < hold)
        left = hold;
    return left > 0 ? left : 0;
}

/* Lets paused clients go on: those whose pause_until_us has come, or all; but a client of a pending batch
   only when that has ended. Returns the next pause_until_us, 0: there is none. */
static int64_t resume(struct worker *w, bool all)
{
    int64_t soonest = 0;
    for (struct client *c = w->paused.first, *next; c; c = next) {
        next = c->next;
        if (c->in_batch)
            continue;
        if (all || (c->run.pause_until_us && c->run.pause_until_us <= worker_now(w)))
            client_change_state(c, CLIENT_READY);
        else if (c->run.pause_until_us && (!soonest || c->run.pause_until_us < soonest))
            soonest = c->run.pause_until_us;
    }
    return soonest;
}

/* Clients that wait for the end of a pause, for a lock, or for a commit go on when they may; else the timer
   is set to when the next may. */
static void tend_waiting(struct worker *w)
{
    int64_t left = 0, until = 0, answer_by;
    if (w->paused.n) {
        left = pause_left(w);
        until = resume(w, left == 0);
    } else {
        w->lock_since_us = 0;
    }
    if (w->held.ntimed && (answer_by = held_expire(w, worker_now(w))) && (!until || answer_by < until))
        until = answer_by;
    if (until && (left == 0 || until - worker_now(w) < left))
        left = until - worker_now(w);
    if (left > 0)
        worker_arm(w->pause_timer, left + 1000);
}

static void forget(struct client_vec *v, const struct client *c)
{
    size_t n = 0;
    for (size_t i = 0; i < v->len; i++)
        if (v->items[i] != c)
            v->items[n++] = v->items[i];
    v->len = n;
}

void worker_free_dead(struct worker *w)
{
    for (struct client *c = w->dead.first, *next; c; c = next) {
        next = c->next;
        if (c->in_batch || c->kept || c->session.kept) /* of a batch that is pending, or runs */
            continue;
        if (c->to_flush)
            forget(&w->flush, c);
        if (c->unread)
            forget(&w->unread, c);
        client_free(c);
    }
}

static void reload(struct worker *w)
{
    struct error err;
    if (!workers_hold(w)) { /* a script is busy */
        worker_arm(w->pause_timer, RELOAD_RETRY_US);
        return;
    }
    w->reload = false;
    if (certificates_load(w->workers, &err) != ST_OK)
        log_warning("the certificates stay as they were", NULL);
    workers_release(w->workers);
}

/* A command of this worker has said that there may be an index to build: the first one does that. */
static void ask_builder(struct worker *w)
{
    struct worker *first = w->workers->workers[0];
    w->executor.builds_asked = false;
    atomic_store(&first->builds_asked, true);
    worker_wake(first);
}

/* Steps between batches: of the sweeper, and of the builder of indexes. */
static void tend_chores(struct worker *w)
{
    if (w->executor.builds_asked)
        ask_builder(w);
    if (atomic_load_explicit(&w->builds_asked, memory_order_relaxed)) {
        atomic_store(&w->builds_asked, false);
        w->builder.walker.look = w->build_due = true;
    }
    if (w->sweep_due && !w->batch.pending) {
        w->sweep_due = false;
        worker_arm(w->sweep_timer, sweeper_step(w));
    }
    if (w->build_due && !w->batch.pending && !w->stop) {
        w->build_due = false;
        worker_arm(w->build_timer, builder_step(w));
    }
}

/* A client that is alone, and is answered, usually sends its next command before a sleeping processor would
   be awake. So the loop looks out for that for a moment before it sleeps, as long as that is what happens,
   and unless somebody else has use for the processor: then it would be at the end of their queue when it is
   needed. */
static void look_out(struct worker *w)
{
    struct pollfd fds[] = {{.fd = w->lone.fd, .events = POLLIN}, {.fd = w->wake_fd, .events = POLLIN}};
    int64_t now = clock_mono_us(), before, until = now + LOOK_OUT_US;
    bool quiet;
    do {
        before = now;
        quiet = poll(fds, 2, 0) == 0;
        now = clock_mono_us();
    } while (quiet && now < until && now - before < PREEMPTED_US);
    if (quiet)
        w->lone.rest_us = now + (now - before < PREEMPTED_US ? MISSED_US : REST_US);
}

/* ready: there is something to do already. */
static enum status take_events(struct worker *w, bool ready, struct error *err)
{
    bool lone = w->lone.alone && !ready && worker_config(w)->busy_poll;
    int64_t since = lone ? clock_mono_us() : 0;
    if (lone && w->lone.soon && since >= w->lone.rest_us)
        look_out(w);
    w->now_us = 0;
    if (event_base_loop(w->base, EVLOOP_ONCE | (ready ? EVLOOP_NONBLOCK : 0)) < 0)
        return error_set(err, ST_INTERNAL, "the event loop failed: %s", strerror(errno));
    if (lone)
        w->lone.soon = worker_now(w) - since <= SOON_US;
    return ST_OK;
}

static enum status turn(struct worker *w, struct error *err)
{
    if (w->reload)
        reload(w);
    bool changed = workers_stand(w); /* another may have given this one something to do */
    bool ready = changed || w->flush.len || (w->ready.n && !w->batch.pending);
    enum status st = take_events(w, ready, err);
    if (st != ST_OK)
        return st;
    if (!w->batch.pending) {
        tend_jobs(w);
        gather_ready(w);
    }
    transaction_run_batch(w);
    tend_waiting(w);
    tend_chores(w);
    poll_tend(w); /* last: whatever asks the database may take a notification along */
    worker_free_dead(w);
    return ST_OK;
}

/* ---- the end ---- */

/* The first one accepts clients, and sweeps. */
static bool is_first(const struct worker *w)
{
    return w == w->workers->workers[0];
}

static bool anything_unsent(const struct worker *w)
{
    for (const struct session *s = w->executor.first; s; s = s->next) {
        const struct client *c = (const struct client *)s;
        if (c->out.len > c->sent)
            return true;
    }
    return false;
}

/* A batch that is pending ends: how often it is tried is bounded. */
static enum status end_pending(struct worker *w, struct error *err)
{
    enum status st = ST_OK;
    while (st == ST_OK && w->batch.pending)
        st = turn(w, err);
    return st;
}

static enum status wind_up(struct worker *w, struct error *err)
{
    w->stop = true;
    if (is_first(w))
        listeners_watch(w->workers, false);
    event_del(w->sweep_timer);
    event_del(w->build_timer);
    /* What has been sent is read and answered; then nothing more is. */
    enum status st = end_pending(w, err);
    block_end_jobs(&w->executor);
    worker_arm(w->pause_timer, 0);
    if (st == ST_OK)
        st = turn(w, err);
    if (st == ST_OK)
        st = end_pending(w, err);
    for (struct session *s = w->executor.first, *next; s; s = next) {
        next = s->next;
        client_drain((struct client *)s);
    }
    int64_t until = clock_mono_us() + LAST_FLUSH_US;
    do {
        worker_arm(w->pause_timer, 10000);
        if (st == ST_OK)
            st = turn(w, err);
    } while (st == ST_OK && anything_unsent(w) && worker_now(w) < until);
    return st;
}

enum status worker_run(struct worker *w, struct error *err)
{
    struct timeval second = {.tv_sec = 1};
    event_add(w->tick, &second);
    if (is_first(w)) {
        worker_arm(w->sweep_timer, 0);
        worker_arm(w->build_timer, 0);
        listeners_watch(w->workers, true);
    }
    enum status st = ST_OK;
    while (st == ST_OK && !w->stop)
        st = turn(w, err);
    if (st == ST_OK)
        st = wind_up(w, err);
    if (st == ST_OK && w->fatal.code != ST_OK)
        st = error_set(err, w->fatal.code, "%s", w->fatal.text);
    return st;
}

/* ---- life ---- */

static enum status open_loop(struct worker *w, struct error *err)
{
    struct event_config *options = event_config_new();
    if (options) {
        event_config_set_flag(options, EVENT_BASE_FLAG_NOLOCK);
        w->base = event_base_new_with_config(options);
        event_config_free(options);
    }
    w->stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (!w->base || w->stop_fd < 0 || w->wake_fd < 0)
        return error_set(err, ST_INTERNAL, "cannot make an event loop: %s", strerror(errno));
    w->tick = event_new(w->base, -1, EV_PERSIST, on_tick, w);
    w->sweep_timer = event_new(w->base, -1, 0, on_sweep, w);
    w->build_timer = event_new(w->base, -1, 0, on_build, w);
    w->pause_timer = event_new(w->base, -1, 0, on_pause_over, w);
    w->poll_timer = event_new(w->base, -1, 0, on_pause_over, w);
    w->retry_timer = event_new(w->base, -1, 0, on_retry, w);
    w->stop_event = event_new(w->base, w->stop_fd, EV_READ | EV_PERSIST, on_stop, w);
    w->wake_event = event_new(w->base, w->wake_fd, EV_READ | EV_PERSIST, on_wake, w);
    event_add(w->stop_event, NULL);
    event_add(w->wake_event, NULL);
    return ST_OK;
}

enum status worker_new(struct workers *workers, struct engine *engine, struct worker **ret, struct error *err)
{
    struct worker *w = mem_zalloc(sizeof *w);
    w->workers = workers;
    w->stop_fd = w->wake_fd = -1;
    w->executor.config_changed = config_changed;
    w->executor.look = look;
    w->executor.tell_monitors = tell_monitors;
    w->executor.job_over = job_over;
    w->executor.worker = w;
    executor_init(&w->executor, &workers->server, workers->config, engine);
    w->hashes = hashes_new(engine_view(engine));
    if (store_shared(engine_store(engine)))
        w->executor.recent = recent_new((uint32_t)workers->config->databases, 0);
    each_engine(w, set_form_limits);
    protocols_start(w);
    busy_init(w);
    walker_init(&w->builder.walker);
    w->nobody = (struct client){.worker = w, .protocol = &resp_protocol, .run.state = CLIENT_DEAD};
    mailbox_init(&w->mailbox);
    w->look.kind = &look_for_blocked;
    w->lines_lost.kind = &lines_lost;
    for (int i = 0; i < LISTENERS; i++)
        w->arrivals[i] = (struct arrival){w, i};
    enum status st = open_loop(w, err);
    w->handshakes.base = w->base;
    w->handshakes.failed = &w->executor.stats.rejected[REJECTED_HANDSHAKE];
    if (st != ST_OK) {
        worker_free(w);
        return st;
    }
    for (uint32_t i = 0; i < w->executor.nengines; i++)
        engine_on_progress(w->executor.engines[i], wake_up, w);
    *ret = w;
    return ST_OK;
}

void worker_share_cache(struct worker *w)
{
    each_engine(w, set_cache_budget);
}

void worker_add_engine(struct worker *w, struct engine *engine)
{
    executor_add_engine(&w->executor, engine);
    set_form_limits(w, engine);
    worker_share_cache(w);
    engine_on_progress(engine, wake_up, w);
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
    for (uint32_t i = 0; i < w->executor.nengines; i++)
        engine_on_progress(w->executor.engines[i], NULL, NULL);
    while (w->executor.first)
        client_kill((struct client *)w->executor.first);
    batch_release(&w->batch);
    worker_free_dead(w);
    for (size_t i = 0; i < w->jobs.len; i++)
        w->jobs.items[i].fn(NULL, w->jobs.items[i].job);
    mem_free(w->jobs.items);
    mailbox_release(&w->mailbox);
    handshakes_release(&w->handshakes);
    free_event(w->tick);
    free_event(w->sweep_timer);
    free_event(w->build_timer);
    free_event(w->pause_timer);
    free_event(w->poll_timer);
    free_event(w->retry_timer);
    free_event(w->stop_event);
    free_event(w->wake_event);
    if (w->base)
        event_base_free(w->base);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    held_release(&w->held);
    worker_undo_release(&w->undo);
    legs_release(&w->legs);
    busy_release(w);
    walker_release(&w->builder.walker);
    wakeup_release(w);
    mem_free(w->flush.items);
    mem_free(w->unread.items);
    protocols_end(w);
    hashes_free(w->hashes);
    query_engine_free(w->executor.query);
    catalog_free(w->executor.catalog);
    scripts_free(w->executor.scripts);
    executor_release(&w->executor);
    recent_free(w->executor.recent);
    mem_free(w);
}
