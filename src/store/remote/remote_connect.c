/* Making a connection to a database server without waiting for it: a thread of its own does, which lives only
   as long as that takes. Addresses that do not answer, servers that are stopped, TLS handshakes: each may
   take as long as the connect time-out, and a loop that waited for them would answer no client meanwhile. */
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/remote/remote_session.h"

#define CONNECT_MS 5000
/* How long it is waited for all the same: most servers answer at once. Where one session of several is lost,
   the server has answered a moment ago, and the command that noticed would be told of an error for nothing: a
   busy machine takes longer than usual to start a session. */
#define GRACE_MS  100
#define BESIDE_MS 1000

struct rconnecting {
    pthread_t thread;
    pthread_mutex_t lock; /* of done */
    pthread_cond_t cond;
    bool done;
    struct remote_options options;
    /* the thread's until it is done */
    struct remote *conn;
    enum status status;
    struct error err;
};

static void *make(void *arg)
{
    struct rconnecting *c = arg;
    c->status = remote_open(&c->options, &c->conn, &c->err);
    pthread_mutex_lock(&c->lock);
    c->done = true;
    pthread_cond_signal(&c->cond);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static struct rconnecting *begin(struct rstore *s)
{
    struct rconnecting *c = mem_zalloc(sizeof *c);
    pthread_condattr_t monotonic;
    c->options = rconnect_options(s);
    c->options.again = true;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (pthread_create(&c->thread, NULL, make, c) == 0)
        return c;
    make(c); /* then by ourselves */
    c->thread = pthread_self();
    return c;
}

/* Waits until it is done, or for so long. */
static bool is_done(struct rconnecting *c, int64_t patience_ms)
{
    int64_t until = clock_mono_us() + patience_ms * 1000;
    struct timespec t = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
    pthread_mutex_lock(&c->lock);
    while (!c->done && patience_ms > 0 && pthread_cond_timedwait(&c->cond, &c->lock, &t) == 0)
        continue;
    bool done = c->done;
    pthread_mutex_unlock(&c->lock);
    return done;
}

/* Takes what has become of it. */
static enum status end(struct rstore *s, struct error *err)
{
    struct rconnecting *c = s->connecting;
    if (!pthread_equal(c->thread, pthread_self()))
        pthread_join(c->thread, NULL);
    enum status st = c->status;
    s->conn = c->conn;
    *err = c->err;
    pthread_cond_destroy(&c->cond);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
    s->connecting = NULL;
    return st;
}

struct remote_options rconnect_options(const struct rstore *s)
{
    return (struct remote_options){
        .url = s->url,
        .connect_ms = CONNECT_MS,
        .timeout_ms = s->timeout_ms,
        .replica = s->pos.replica,
        .any = s->pos.replica && s->pos.use != USE_FULLY,
        .first_host = s->first_host,
    };
}

void rconnect_start(struct rstore *s)
{
    if (!s->connecting)
        s->connecting = begin(s);
}

bool rconnect_try(struct rstore *s, enum status *ret, struct error *err)
{
    bool spare = s->pos.replica && s->pos.use == USE_FULLY; /* the primary can serve as well */
    int64_t grace = s->beside && s->backoff_ms == BACKOFF_MIN_MS ? BESIDE_MS : GRACE_MS;
    int64_t patience = s->connecting || spare ? 0 : grace;
    rconnect_start(s);
    if (s->fenced && (!s->beside || s->applies)) /* a thread whose business it is to wait */
        patience = INT32_MAX;
    if (!is_done(s->connecting, patience))
        return false;
    *ret = end(s, err);
    return true;
}

void rconnect_release(struct rstore *s)
{
    struct error ignored;
    if (s->connecting && end(s, &ignored) == ST_OK)
        remote_close(s->conn);
    s->conn = NULL;
}
