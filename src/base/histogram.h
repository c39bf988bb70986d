/* How often values of which size were seen: times in microseconds, mostly. Adding costs a few instructions;
   one thread adds, any thread may read.

   Buckets are as wide as a quarter of their power of two, so that a value is known to a quarter of itself.
   The bounds at the powers are those that Redis' LATENCY HISTOGRAM tells, a little above them:

     1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227, ...

   A value that equals a bound is in the bucket below it. */
#ifndef LARDER_BASE_HISTOGRAM_H
#define LARDER_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_STEPS   4  /* to a power of two */
#define HISTOGRAM_POWERS  30 /* about 18 minutes, in microseconds */
#define HISTOGRAM_BUCKETS (1 + HISTOGRAM_POWERS * HISTOGRAM_STEPS + 1)

struct histogram {
    _Atomic uint64_t sum;
    _Atomic uint64_t buckets[HISTOGRAM_BUCKETS]; /* values up to 1; the powers' steps; what is larger */
};

/* 1,000 values stand for 1,024 parts of 129/128: that is how Redis, which counts in nanoseconds and keeps two
   digits, comes to its bounds. */
static inline unsigned histogram_bucket(uint64_t value)
{
    if (value <= 1)
        return 0;
    uint64_t scaled = value < UINT64_C(1) << 40 ? value * 128000 / 129 : UINT64_C(1) << 50;
    unsigned power = 54 - (unsigned)__builtin_clzll(scaled); /* from 1 on: it is at least 1,024 */
    unsigned bucket = 1 + (power - 1) * HISTOGRAM_STEPS + (unsigned)(scaled >> (power + 7) & 3);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_bump(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, was + by, memory_order_relaxed);
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    histogram_bump(&h->sum, value);
    histogram_bump(&h->buckets[histogram_bucket(value)], 1);
}

/* The same where several threads add. */
void histogram_add_shared(struct histogram *h, uint64_t value);

/* The largest value that bucket i counts; UINT64_MAX for the last. In the lowest buckets several have the
   same: all but the first of those stay empty. */
uint64_t histogram_bound(unsigned i);

/* What was seen, at one moment, of one histogram or of several taken together. Zeroed is empty. */
struct histogram_view {
    uint64_t sum, count;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_read(const struct histogram *h, struct histogram_view *add_to);

uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_sum(const struct histogram *h);

/* The bound that a share (0 to 1) of the values does not exceed; of what exceeds all bounds, the last of
   them. 0 when there are no values. */
uint64_t histogram_quantile(const struct histogram_view *v, double share);

void histogram_reset(struct histogram *h);

#endif
