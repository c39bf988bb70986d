/* What the server counts, as text that Prometheus scrapes. docs/metrics.md says what each metric means; the
   tests compare the two.

   How many samples there are is bounded by the program: labels hold names of commands, families, listeners,
   reasons, statuses and error codes, never anything that a client chose. */
#ifndef LARDER_STATS_METRICS_H
#define LARDER_STATS_METRICS_H

struct buf;
struct executor;

/* Adds all of them to out; PROM_CONTENT_TYPE (proto/prometheus.h) is what that is. On the worker's thread,
   within a batch or between two. */
void metrics_render(struct executor *s, struct buf *out);

#endif
