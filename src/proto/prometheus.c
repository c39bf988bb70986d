#include "proto/prometheus.h"

#include <string.h>

#include "base/num.h"

static void add_str(struct buf *out, const char *s)
{
    buf_add(out, s, strlen(s));
}

static void add_u64(struct buf *out, uint64_t v)
{
    char text[NUM_I64_CHARS];
    buf_add(out, text, num_format_u64(text, v));
}

/* Microseconds in seconds, exactly, without zeros at the end. */
static void add_seconds(struct buf *out, uint64_t us)
{
    add_u64(out, us / 1000000);
    unsigned rest = (unsigned)(us % 1000000);
    if (rest == 0)
        return;
    char digits[7] = ".000000";
    size_t n = 1;
    for (unsigned unit = 100000; rest; unit /= 10) {
        digits[n++] = (char)('0' + rest / unit);
        rest %= unit;
    }
    buf_add(out, digits, n);
}

static void add_escaped(struct buf *out, const char *s, bool quotes)
{
    for (; *s; s++) {
        if (*s == '\n')
            buf_add(out, "\\n", 2);
        else if (*s == '\\' || (quotes && *s == '"'))
            buf_add(out, (const char[]){'\\', *s}, 2);
        else
            buf_add(out, s, 1);
    }
}

static void add_label(struct buf *out, const char *name, const char *value, bool *first)
{
    add_str(out, *first ? "{" : ",");
    *first = false;
    add_str(out, name);
    add_str(out, "=\"");
    add_escaped(out, value, true);
    add_str(out, "\"");
}

/* A sample's name and the labels that all samples of a set have; false: there are none yet. */
static bool add_name(struct prom *p, const char *suffix, const struct prom_label *labels)
{
    bool first = true;
    add_str(p->out, p->name);
    add_str(p->out, suffix);
    for (; labels && labels->name; labels++)
        add_label(p->out, labels->name, labels->value, &first);
    return !first;
}

static void begin_value(struct prom *p, const char *suffix, const struct prom_label *labels)
{
    add_str(p->out, add_name(p, suffix, labels) ? "} " : " ");
}

void prom_family(struct prom *p, const char *name, enum prom_type type, const char *help)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    p->name = name;
    buf_addf(p->out, "# HELP %s ", name);
    add_escaped(p->out, help, false);
    buf_addf(p->out, "\n# TYPE %s %s\n", name, types[type]);
}

void prom_u64(struct prom *p, const struct prom_label *labels, uint64_t v)
{
    begin_value(p, "", labels);
    add_u64(p->out, v);
    add_str(p->out, "\n");
}

void prom_seconds(struct prom *p, const struct prom_label *labels, uint64_t us)
{
    begin_value(p, "", labels);
    add_seconds(p->out, us);
    add_str(p->out, "\n");
}

static void add_amount(struct buf *out, const struct prom_buckets *b, uint64_t v)
{
    if (b->seconds)
        add_seconds(out, v);
    else
        add_u64(out, v);
}

static void begin_bucket(struct prom *p, const struct prom_label *labels)
{
    add_str(p->out, add_name(p, "_bucket", labels) ? ",le=\"" : "{le=\"");
}

void prom_histogram(struct prom *p, const struct prom_label *labels, const struct histogram_view *v,
                    const struct prom_buckets *b)
{
    uint64_t below = 0;
    unsigned i = 0;
    for (unsigned at = b->first * HISTOGRAM_STEPS; at <= b->last * HISTOGRAM_STEPS; at += b->step) {
        while (i <= at)
            below += v->buckets[i++];
        begin_bucket(p, labels);
        add_amount(p->out, b, histogram_bound(at));
        add_str(p->out, "\"} ");
        add_u64(p->out, below);
        add_str(p->out, "\n");
    }
    begin_bucket(p, labels);
    add_str(p->out, "+Inf\"} ");
    add_u64(p->out, v->count);
    add_str(p->out, "\n");
    begin_value(p, "_sum", labels);
    add_amount(p->out, b, v->sum);
    add_str(p->out, "\n");
    begin_value(p, "_count", labels);
    add_u64(p->out, v->count);
    add_str(p->out, "\n");
}
