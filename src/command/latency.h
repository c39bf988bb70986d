/* The latency monitor: spikes by event ("command", "fast-command"), one sample a second each. */
#ifndef LARDER_COMMAND_LATENCY_H
#define LARDER_COMMAND_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define LATENCY_SAMPLES 160
#define LATENCY_EVENTS  16

struct latency_sample {
    int64_t time; /* wall, seconds */
    int64_t ms;
};

struct latency_event {
    char name[32];
    struct latency_sample samples[LATENCY_SAMPLES]; /* a ring: the oldest at `next` once it is full */
    size_t next;
    size_t n;
    int64_t max_ms;
};

struct latency {
    struct latency_event *events[LATENCY_EVENTS];
    size_t nevents;
};

struct latency *latency_new(void);
void latency_free(struct latency *l);

/* Notes a spike; several within one second count as their worst. */
void latency_add(struct latency *l, const char *event, int64_t ms);

struct latency_event *latency_find(struct latency *l, struct slice name);

/* Sample i from the oldest, 0 <= i < e->n. */
const struct latency_sample *latency_sample(const struct latency_event *e, size_t i);

/* Forgets an event (false: there was none), or all of them and returns how many. */
bool latency_reset(struct latency *l, struct slice name);
size_t latency_reset_all(struct latency *l);

#endif
