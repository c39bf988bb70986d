/* The latency monitor: spikes by event ("command", "fast-command"), one sample a second each; LATENCY reads
   them. One for the whole process, with a lock. */
#ifndef LARDER_STATS_LATENCY_H
#define LARDER_STATS_LATENCY_H

#include <stdint.h>

#include "exec/command.h"

struct latency;

struct latency *latency_new(void);
void latency_free(struct latency *l);

/* Notes a spike; several within one second count as their worst. */
void latency_add(struct latency *l, const char *event, int64_t ms);

extern const struct command latency_commands[];

#endif
