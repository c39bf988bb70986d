#include "journal/throttle.h"

#define FREE       0.125  /* so much is free from the beginning on: short bursts do not wait */
#define RESERVE    0.0625 /* and so much is for those who write little */
#define FIRST_ROW  10.0   /* what a row takes, in us, before any was seen */
#define KNOWN_PART 0.8    /* of a phase without rows: beyond this its end is uncertain */

static double average(double before, double now)
{
    return before + (now - before) / 2;
}

void throttle_freeze(struct throttle *t, size_t rows, int64_t now)
{
    t->phase = THROTTLE_BEFORE;
    t->rows = rows;
    t->done = t->step = 0;
    t->since_us = t->step_us = now;
    if (t->row_us <= 0)
        t->row_us = FIRST_ROW;
}

void throttle_begin(struct throttle *t, int64_t now)
{
    if (t->phase != THROTTLE_BEFORE)
        return;
    t->before_us = average(t->before_us, (double)(now - t->since_us));
    t->phase = THROTTLE_ROWS;
    t->since_us = t->rows_us = t->step_us = now;
}

void throttle_step(struct throttle *t, size_t done, int64_t now)
{
    if (t->phase != THROTTLE_ROWS)
        return;
    t->step = done - t->done;
    t->done = done;
    t->step_us = now;
}

void throttle_commit(struct throttle *t, int64_t now)
{
    if (t->phase != THROTTLE_ROWS)
        return;
    if (t->done)
        t->row_us = average(t->row_us, (double)(now - t->rows_us) / (double)t->done);
    t->phase = THROTTLE_COMMIT;
    t->since_us = now;
}

void throttle_end(struct throttle *t, int64_t now)
{
    if (t->phase == THROTTLE_COMMIT)
        t->commit_us = average(t->commit_us, (double)(now - t->since_us));
    t->phase = THROTTLE_IDLE;
}

void throttle_again(struct throttle *t, int64_t now)
{
    if (t->phase == THROTTLE_IDLE)
        return;
    t->phase = THROTTLE_BEFORE;
    t->done = t->step = 0;
    t->since_us = now;
}

/* How much of a phase of which nothing is told but that it lasts is over, in us of the time that it usually
   takes. */
static double within(double usual_us, double lasts_us)
{
    double known = usual_us * KNOWN_PART;
    return lasts_us <= known ? lasts_us : known + (usual_us - known) * (1 - known / lasts_us);
}

/* The time of a row in this pass. What the passes before it tell counts as much as an eighth of its rows, so
   that one that is slower than they were brings nobody to a halt. */
static double row_us(const struct throttle *t)
{
    double known = (double)t->rows / 8, so_far = (double)(t->step_us - t->rows_us);
    if (t->phase < THROTTLE_ROWS || t->done == 0)
        return t->row_us;
    return (t->row_us * known + so_far) / (known + (double)t->done);
}

/* Rows that are in, with those that have probably followed since that was told: no more than came at a time
   before. */
static double rows_in(const struct throttle *t, int64_t now)
{
    double since = (double)(now - t->step_us) / row_us(t),
           most = t->step ? (double)t->step : (double)t->rows / 16;
    double in = (double)t->done + (since < most ? since : most);
    return in < (double)t->rows ? in : (double)t->rows;
}

double throttle_over(const struct throttle *t, int64_t now)
{
    double all_rows = (double)t->rows * row_us(t);
    double all = t->before_us + all_rows + t->commit_us, over = 0;
    switch (t->phase) {
    case THROTTLE_IDLE:
        return 1;
    case THROTTLE_BEFORE:
        over = within(t->before_us, (double)(now - t->since_us));
        break;
    case THROTTLE_ROWS:
        over = t->before_us + rows_in(t, now) * row_us(t);
        break;
    case THROTTLE_COMMIT:
        over = t->before_us + all_rows + within(t->commit_us, (double)(now - t->since_us));
        break;
    }
    return all > 0 ? over / all : 1;
}

static double most_filled(const struct throttle *t, int64_t now)
{
    return FREE + (1 - FREE - RESERVE) * throttle_over(t, now);
}

bool throttle_waits(const struct throttle *t, double filled, int64_t now)
{
    return t->phase != THROTTLE_IDLE && filled > most_filled(t, now);
}

bool throttle_stops(const struct throttle *t, double filled, int64_t now)
{
    return t->phase != THROTTLE_IDLE && (filled >= 1 || filled > most_filled(t, now) + RESERVE);
}
