/* The Prometheus text format, version 0.0.4: families of samples, each with a line of help and a type before
   its first sample.

     prom_family(&p, "larder_commits_total", PROM_COUNTER, "Commits that went well.");
     prom_u64(&p, NULL, commits);

   Names and label names are the caller's and must be valid; label values are escaped and must be UTF-8. */
#ifndef LARDER_PROTO_PROMETHEUS_H
#define LARDER_PROTO_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/histogram.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum prom_type { PROM_COUNTER, PROM_GAUGE, PROM_HISTOGRAM };

struct prom_label {
    const char *name, *value;
};

/* The labels of a sample: PROM_LABELS({"command", name}, {"result", "ok"}). NULL stands for none. */
#define PROM_LABELS(...) ((const struct prom_label[]){__VA_ARGS__, {NULL, NULL}})

struct prom {
    struct buf *out;
    const char *name; /* of the family that samples belong to */
};

/* Starts a family; a counter's name ends in _total. */
void prom_family(struct prom *p, const char *name, enum prom_type type, const char *help);

void prom_u64(struct prom *p, const struct prom_label *labels, uint64_t v);
void prom_seconds(struct prom *p, const struct prom_label *labels, uint64_t us);

/* Which of a histogram's bounds are told: from power `first` to power `last`, `step` of HISTOGRAM_STEPS at a
   time; beyond that only +Inf. */
struct prom_buckets {
    unsigned first, last, step;
    bool seconds; /* values are microseconds and are told in seconds */
};

void prom_histogram(struct prom *p, const struct prom_label *labels, const struct histogram_view *v,
                    const struct prom_buckets *b);

#endif
