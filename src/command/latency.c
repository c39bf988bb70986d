#include "command/latency.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"

struct latency *latency_new(void)
{
    return mem_zalloc(sizeof(struct latency));
}

void latency_free(struct latency *l)
{
    latency_reset_all(l);
    mem_free(l);
}

struct latency_event *latency_find(struct latency *l, struct slice name)
{
    for (size_t i = 0; i < l->nevents; i++)
        if (slice_eq(name, slice_str(l->events[i]->name)))
            return l->events[i];
    return NULL;
}

const struct latency_sample *latency_sample(const struct latency_event *e, size_t i)
{
    size_t oldest = e->n == LATENCY_SAMPLES ? e->next : 0;
    return &e->samples[(oldest + i) % LATENCY_SAMPLES];
}

static struct latency_event *add_event(struct latency *l, const char *name)
{
    if (l->nevents == LATENCY_EVENTS)
        return NULL;
    struct latency_event *e = mem_zalloc(sizeof *e);
    snprintf(e->name, sizeof e->name, "%s", name);
    l->events[l->nevents++] = e;
    return e;
}

void latency_add(struct latency *l, const char *event, int64_t ms)
{
    struct latency_event *e = latency_find(l, slice_str(event));
    if (!e && !(e = add_event(l, event)))
        return;
    int64_t now = clock_wall_us() / 1000000;
    if (ms > e->max_ms)
        e->max_ms = ms;
    struct latency_sample *newest =
        e->n ? &e->samples[(e->next + LATENCY_SAMPLES - 1) % LATENCY_SAMPLES] : NULL;
    if (newest && newest->time == now) {
        if (ms > newest->ms)
            newest->ms = ms;
        return;
    }
    e->samples[e->next] = (struct latency_sample){now, ms};
    e->next = (e->next + 1) % LATENCY_SAMPLES;
    if (e->n < LATENCY_SAMPLES)
        e->n++;
}

bool latency_reset(struct latency *l, struct slice name)
{
    for (size_t i = 0; i < l->nevents; i++) {
        if (slice_eq(name, slice_str(l->events[i]->name))) {
            mem_free(l->events[i]);
            l->events[i] = l->events[--l->nevents];
            return true;
        }
    }
    return false;
}

size_t latency_reset_all(struct latency *l)
{
    size_t n = l->nevents;
    while (l->nevents)
        mem_free(l->events[--l->nevents]);
    return n;
}
