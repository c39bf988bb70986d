#include "base/histogram.h"

void histogram_add_shared(struct histogram *h, uint64_t value)
{
    atomic_fetch_add_explicit(&h->sum, value, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->buckets[histogram_bucket(value)], 1, memory_order_relaxed);
}

uint64_t histogram_bound(unsigned i)
{
    if (i == 0)
        return 1;
    if (i >= HISTOGRAM_BUCKETS - 1)
        return UINT64_MAX;
    unsigned power = (i - 1) / HISTOGRAM_STEPS + 1, step = (i - 1) % HISTOGRAM_STEPS;
    /* Where the next bucket begins, scaled; the last value that is scaled to less. */
    uint64_t above = (uint64_t)(HISTOGRAM_STEPS + step + 1) << (power + 7);
    return (above * 129 - 1) / 128000;
}

void histogram_read(const struct histogram *h, struct histogram_view *add_to)
{
    add_to->sum += histogram_sum(h);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t n = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        add_to->buckets[i] += n;
        add_to->count += n;
    }
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    histogram_bump(&to->sum, histogram_sum(from));
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        histogram_bump(&to->buckets[i], atomic_load_explicit(&from->buckets[i], memory_order_relaxed));
}

uint64_t histogram_count(const struct histogram *h)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        n += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    return n;
}

uint64_t histogram_sum(const struct histogram *h)
{
    return atomic_load_explicit(&h->sum, memory_order_relaxed);
}

uint64_t histogram_quantile(const struct histogram_view *v, double share)
{
    double wanted = share * (double)v->count;
    uint64_t seen = 0;
    if (v->count == 0)
        return 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 2; i++) {
        seen += v->buckets[i];
        if (seen && (double)seen >= wanted)
            return histogram_bound(i);
    }
    return histogram_bound(HISTOGRAM_BUCKETS - 2);
}

void histogram_reset(struct histogram *h)
{
    atomic_store_explicit(&h->sum, 0, memory_order_relaxed);
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        atomic_store_explicit(&h->buckets[i], 0, memory_order_relaxed);
}
