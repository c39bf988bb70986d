#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR_CHARS        30
#define TERMINAL_EACH_US 100000
#define LINES_EACH_US    5000000

void progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet)
{
    int64_t now = clock_mono_us();
    *p = (struct progress){.what = what,
                           .total = total,
                           .quiet = quiet,
                           .terminal = isatty(STDERR_FILENO),
                           .begun_us = now,
                           .told_us = now};
}

static double rate_of(const struct progress *p, uint64_t rows, int64_t now)
{
    return (double)rows * 1e6 / (double)(now > p->begun_us ? now - p->begun_us : 1);
}

void progress_tell(struct progress *p, uint64_t rows, uint64_t done)
{
    int64_t now = clock_mono_us();
    if (p->quiet || now - p->told_us < (p->terminal ? TERMINAL_EACH_US : LINES_EACH_US))
        return;
    p->told_us = now;
    double part = p->total ? (double)done / (double)p->total : 0;
    double left = part > 0 ? (double)(now - p->begun_us) / 1e6 * (1 - part) / part : 0;
    char bar[BAR_CHARS + 1] = "";
    for (int i = 0; i < BAR_CHARS; i++)
        bar[i] = (double)i < part * BAR_CHARS ? '#' : '.';
    if (p->total && p->terminal)
        fprintf(stderr, "\r[%s] %3.0f%%  %" PRIu64 " rows, %.0f/s, %.0f s left ", bar, part * 100, rows,
                rate_of(p, rows, now), left);
    else if (p->total)
        fprintf(stderr, "%3.0f%%  %" PRIu64 " rows %s, %.0f/s, %.0f s left\n", part * 100, rows, p->what,
                rate_of(p, rows, now), left);
    else
        fprintf(stderr, "%s%" PRIu64 " rows %s, %.0f/s%s", p->terminal ? "\r" : "", rows, p->what,
                rate_of(p, rows, now), p->terminal ? " " : "\n");
}

void progress_end(struct progress *p, uint64_t rows)
{
    int64_t now = clock_mono_us();
    if (p->quiet)
        return;
    fprintf(stderr, "%s%" PRIu64 " row%s %s in %.1f s (%.0f/s)\n", p->terminal ? "\r\033[K" : "", rows,
            rows == 1 ? "" : "s", p->what, (double)(now - p->begun_us) / 1e6, rate_of(p, rows, now));
}
