/* The database's replicas in INFO, ROLE and the metrics: who is how far behind, who is read from or why not,
   and how many reads each mode got from where. */
#ifndef LARDER_STATS_REPLICATION_H
#define LARDER_STATS_REPLICATION_H

#include <stdint.h>

struct buf;
struct executor;
struct prom;
struct reply;
struct sums;

/* The section of INFO. */
void replication_info(const struct executor *s, const struct sums *t, struct buf *out);

/* The answer to ROLE. */
void replication_role(const struct executor *s, struct reply *reply);

void replication_metrics(const struct executor *s, const struct sums *t, struct prom *p);

/* How many replicas there are, and how many of them are in rotation. */
uint32_t replication_count(const struct executor *s, uint32_t *ret_in_rotation);

#endif
