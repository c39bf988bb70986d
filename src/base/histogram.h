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

/* Redis counts in nanoseconds and keeps two digits, so that its bounds are 129/128 of the powers of two from
   1,024 on. A value times SCALE is a number of nanoseconds taken down by that, with 22 bits behind the point;
   it is exact enough for every bound up to HISTOGRAM_MAX (the tests try them all). */
#define HISTOGRAM_SCALE UINT64_C(4161790015) /* 1000 * 128/129 * 2^22 */
#define HISTOGRAM_MAX   UINT64_C(1108101562) /* the last bound */

static inline unsigned histogram_bucket(uint64_t value)
{
    if (value - 2 > HISTOGRAM_MAX - 2)
        return value <= 1 ? 0 : HISTOGRAM_BUCKETS - 1;
    uint64_t scaled = value * HISTOGRAM_SCALE;
    unsigned top = 63 - (unsigned)__builtin_clzll(scaled); /* 32 for the first power's bucket */
    unsigned digits = (unsigned)(scaled >> (top - 2));     /* 4 to 7: the top bit and the step */
    return (top - 32) * HISTOGRAM_STEPS + digits - 3;
}

static inline void histogram_bump(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, was + by, memory_order_relaxed);
}

static inline void histogram_add_times(struct histogram *h, uint64_t value, uint64_t times)
{
    histogram_bump(&h->sum, value * times);
    histogram_bump(&h->buckets[histogram_bucket(value)], times);
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    histogram_add_times(h, value, 1);
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

/* A value that was seen so many times. */
static inline void histogram_view_add(struct histogram_view *v, uint64_t value, uint64_t times)
{
    v->sum += value * times;
    v->count += times;
    v->buckets[histogram_bucket(value)] += times;
}

uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_sum(const struct histogram *h);

/* The bound that a share (0 to 1) of the values does not exceed; of what exceeds all bounds, the last of
   them. 0 when there are no values. */
uint64_t histogram_quantile(const struct histogram_view *v, double share);

/* Adds what another one has seen; no other thread uses `to` meanwhile. */
void histogram_merge(struct histogram *to, const struct histogram *from);

void histogram_reset(struct histogram *h);

#endif
