#include "server/wakeup.h"

#include <unistd.h>

#include "engine/engine.h"
#include "server/worker_internal.h"
#include "store/shared.h"

#define LINGER_US 10000000 /* how long the socket is watched after the last client waited */
#define TRUST_US  1000000  /* how long after the beginning something may appear without a notification */

/* Only wakes the loop, which then looks. */
static void on_notification(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

void wakeup_release(struct worker *w)
{
    struct wakeup *b = &w->wakeup;
    if (b->number == 0)
        return;
    if (b->event)
        event_free(b->event);
    if (b->fd >= 0)
        close(b->fd);
    *b = (struct wakeup){.wanted_us = b->wanted_us};
}

static void watch(struct worker *w, const struct store_wakeup *told)
{
    struct wakeup *b = &w->wakeup;
    wakeup_release(w);
    b->number = told->number;
    b->since_us = clock_mono_us();
    b->fd = dup(told->fd);
    b->event = b->fd >= 0 ? event_new(w->base, b->fd, EV_READ | EV_PERSIST, on_notification, NULL) : NULL;
    if (b->event)
        event_add(b->event, NULL);
}

bool wakeup_tend(struct worker *w, bool client_waits)
{
    struct wakeup *b = &w->wakeup;
    struct store *store = engine_store(w->executor.engine);
    struct store_wakeup told;
    if (!client_waits && b->number == 0)
        return false;
    if (client_waits)
        b->wanted_us = worker_now(w);
    bool on = worker_now(w) - b->wanted_us < LINGER_US;
    if (!store_shared(store) || !store_listen(store, on, &told)) {
        wakeup_release(w);
        return false;
    }
    if (told.number != b->number)
        watch(w, &told);
    bool notified = store_notified(store);
    w->executor.stats.wakeups += notified;
    return notified;
}

bool wakeup_works(const struct worker *w, int64_t now_us)
{
    const struct wakeup *b = &w->wakeup;
    return b->event && now_us - b->since_us >= TRUST_US;
}
