/* The Prometheus text format, byte by byte. */
#include "proto/prometheus.h"

#include "check.h"

static struct buf out;

static struct prom fresh(void)
{
    out.len = 0;
    return (struct prom){.out = &out};
}

#define CHECK_TEXT(text) CHECK_SLICE(buf_slice(&out), slice_str(text))

static void a_family_has_help_and_type(void)
{
    struct prom p = fresh();
    prom_family(&p, "x_total", PROM_COUNTER, "A line\nwith a \\ and \"quotes\".");
    prom_u64(&p, NULL, UINT64_MAX);
    prom_family(&p, "y", PROM_GAUGE, "Y.");
    prom_u64(&p, NULL, 0);
    CHECK_TEXT("# HELP x_total A line\\nwith a \\\\ and \"quotes\".\n"
               "# TYPE x_total counter\n"
               "x_total 18446744073709551615\n"
               "# HELP y Y.\n"
               "# TYPE y gauge\n"
               "y 0\n");
}

static void label_values_are_escaped(void)
{
    struct prom p = fresh();
    p.name = "x";
    prom_u64(&p, PROM_LABELS({"a", ""}, {"b", "1\n\"2\"\\3"}), 7);
    CHECK_TEXT("x{a=\"\",b=\"1\\n\\\"2\\\"\\\\3\"} 7\n");
}

static void seconds_are_exact(void)
{
    static const struct {
        uint64_t us;
        const char *text;
    } cases[] = {
        {0, "x 0\n"},
        {1, "x 0.000001\n"},
        {10, "x 0.00001\n"},
        {999999, "x 0.999999\n"},
        {1000000, "x 1\n"},
        {1500000, "x 1.5\n"},
        {1000001, "x 1.000001\n"},
        {100000, "x 0.1\n"},
        {UINT64_MAX, "x 18446744073709.551615\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prom p = fresh();
        p.name = "x";
        prom_seconds(&p, NULL, cases[i].us);
        CHECK_TEXT(cases[i].text);
    }
}

static void histograms_are_cumulative(void)
{
    static const struct prom_buckets sizes = {0, 2, HISTOGRAM_STEPS, false};
    static struct histogram h;
    static const uint64_t values[] = {0, 1, 2, 3, 4, 5, 1000};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        histogram_add(&h, values[i]);
    struct histogram_view v = {0};
    histogram_read(&h, &v);
    struct prom p = fresh();
    p.name = "x";
    prom_histogram(&p, NULL, &v, &sizes);
    CHECK_TEXT("x_bucket{le=\"1\"} 2\n"
               "x_bucket{le=\"2\"} 3\n"
               "x_bucket{le=\"4\"} 5\n"
               "x_bucket{le=\"+Inf\"} 7\n"
               "x_sum 1015\n"
               "x_count 7\n");
}

static void histograms_of_seconds_have_labels(void)
{
    static const struct prom_buckets times = {5, 6, HISTOGRAM_STEPS / 2, true};
    static struct histogram h;
    histogram_add(&h, 40);
    histogram_add(&h, 50);
    histogram_add(&h, 2000000);
    struct histogram_view v = {0};
    histogram_read(&h, &v);
    struct prom p = fresh();
    p.name = "x";
    prom_histogram(&p, PROM_LABELS({"a", "b"}), &v, &times);
    CHECK_TEXT("x_bucket{a=\"b\",le=\"0.000033\"} 0\n"
               "x_bucket{a=\"b\",le=\"0.000049\"} 1\n"
               "x_bucket{a=\"b\",le=\"0.000066\"} 2\n"
               "x_bucket{a=\"b\",le=\"+Inf\"} 3\n"
               "x_sum{a=\"b\"} 2.00009\n"
               "x_count{a=\"b\"} 3\n");
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_family_has_help_and_type);
    RUN(label_values_are_escaped);
    RUN(seconds_are_exact);
    RUN(histograms_are_cumulative);
    RUN(histograms_of_seconds_have_labels);
    buf_release(&out);
    return check_done();
}
