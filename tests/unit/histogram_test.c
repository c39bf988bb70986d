/* Histograms: where buckets end, what is counted, what other threads read. */
#include "base/histogram.h"

#include <pthread.h>

#include "check.h"

/* What LATENCY HISTOGRAM of redis-server 7.0 prints. */
static void powers_end_where_redis_ends_them(void)
{
    static const uint64_t bounds[] = {1,     2,     4,     8,      16,     33,     66,
                                      132,   264,   528,   1056,   2113,   4227,   8454,
                                      16908, 33816, 67633, 135266, 270532, 541065, 1082130};
    for (unsigned i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        CHECK_EQ(histogram_bound(i * HISTOGRAM_STEPS), bounds[i]);
}

static void a_bound_is_the_last_of_its_bucket(void)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
        uint64_t bound = histogram_bound(i);
        CHECK(histogram_bucket(bound) <= i);
        CHECK_EQ(histogram_bound(histogram_bucket(bound)), bound);
        CHECK(histogram_bucket(bound + 1) > i);
        if (i > 0)
            CHECK(bound >= histogram_bound(i - 1));
    }
}

static void every_value_is_within_its_bucket(void)
{
    for (uint64_t v = 0; v < 300000; v++) {
        unsigned i = histogram_bucket(v);
        if (v > histogram_bound(i) || (i > 0 && v <= histogram_bound(i - 1)))
            CHECK_EQ(v, histogram_bound(i));
    }
}

static void buckets_are_a_quarter_wide(void)
{
    for (unsigned i = 4 * HISTOGRAM_STEPS; i + 2 < HISTOGRAM_BUCKETS; i++) {
        uint64_t low = histogram_bound(i), high = histogram_bound(i + 1);
        CHECK(high - low <= low / 4 + 1);
    }
}

static void the_largest_values_have_a_bucket(void)
{
    static const uint64_t large[] = {UINT64_C(1) << 31, UINT64_C(1) << 40, UINT64_C(1) << 50, UINT64_MAX};
    CHECK_EQ(histogram_bucket(0), 0);
    CHECK_EQ(histogram_bucket(1), 0);
    CHECK_EQ(histogram_bound(HISTOGRAM_BUCKETS - 1) == UINT64_MAX, true);
    for (unsigned i = 0; i < sizeof large / sizeof large[0]; i++)
        CHECK_EQ(histogram_bucket(large[i]), HISTOGRAM_BUCKETS - 1);
    CHECK_EQ(histogram_bucket(histogram_bound(HISTOGRAM_BUCKETS - 2)), HISTOGRAM_BUCKETS - 2);
}

static void counts_and_sums(void)
{
    static struct histogram a, b;
    struct histogram_view both = {0};
    for (uint64_t v = 0; v < 100; v++)
        histogram_add(&a, v);
    histogram_add_shared(&b, 1000);
    CHECK_EQ(histogram_count(&a), 100);
    CHECK_EQ(histogram_sum(&a), 4950);
    histogram_read(&a, &both);
    histogram_read(&b, &both);
    CHECK_EQ(both.count, 101);
    CHECK_EQ(both.sum, 5950);
    CHECK_EQ(both.buckets[0], 2);
    CHECK_EQ(both.buckets[histogram_bucket(1000)], 1);
    histogram_reset(&a);
    CHECK_EQ(histogram_count(&a), 0);
    CHECK_EQ(histogram_sum(&a), 0);
}

static void quantiles_are_bounds(void)
{
    static struct histogram h;
    struct histogram_view v = {0};
    CHECK_EQ(histogram_quantile(&v, 0.5), 0);
    for (int i = 0; i < 98; i++)
        histogram_add(&h, 3);
    histogram_add(&h, 1000);
    histogram_add(&h, UINT64_MAX / 2);
    histogram_read(&h, &v);
    CHECK_EQ(histogram_quantile(&v, 0), 3);
    CHECK_EQ(histogram_quantile(&v, 0.5), 3);
    CHECK_EQ(histogram_quantile(&v, 0.98), 3);
    CHECK_EQ(histogram_quantile(&v, 0.99), 1056);
    CHECK_EQ(histogram_quantile(&v, 1), histogram_bound(HISTOGRAM_BUCKETS - 2));
}

#define ADDED 200000

static void *add_many(void *arg)
{
    for (uint64_t i = 0; i < ADDED; i++)
        histogram_add(arg, i % 64);
    return NULL;
}

static void another_thread_may_read(void)
{
    static struct histogram h;
    pthread_t thread;
    uint64_t last = 0;
    REQUIRE(pthread_create(&thread, NULL, add_many, &h) == 0);
    for (int i = 0; i < 200; i++) {
        uint64_t n = histogram_count(&h);
        CHECK(n >= last && n <= ADDED);
        last = n;
    }
    pthread_join(thread, NULL);
    CHECK_EQ(histogram_count(&h), ADDED);
}

static void *add_shared(void *arg)
{
    for (uint64_t i = 0; i < ADDED; i++)
        histogram_add_shared(arg, 5);
    return NULL;
}

static void several_threads_lose_nothing(void)
{
    static struct histogram h;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&threads[i], NULL, add_shared, &h) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(histogram_count(&h), 2 * ADDED);
    CHECK_EQ(histogram_sum(&h), 10 * ADDED);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(powers_end_where_redis_ends_them);
    RUN(a_bound_is_the_last_of_its_bucket);
    RUN(every_value_is_within_its_bucket);
    RUN(buckets_are_a_quarter_wide);
    RUN(the_largest_values_have_a_bucket);
    RUN(counts_and_sums);
    RUN(quantiles_are_bounds);
    RUN(another_thread_may_read);
    RUN(several_threads_lose_nothing);
    return check_done();
}
