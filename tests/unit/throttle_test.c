/* Writers while a pass runs, on a clock of the test's own: a model of a server whose clients write faster
   than its tables can follow. */
#include "journal/throttle.h"

#include "check.h"

#define MS 1000

/* Rows of a pass, and what the model's machine takes for them. */
struct world {
    struct throttle t;
    int64_t now;
    double filled;                  /* of the active memtable */
    double rows;                    /* in the frozen one */
    double before, row, commit;     /* us */
    double offered;                 /* rows a second that clients want to write */
    double capacity;                /* rows that half of the memory holds */
    int64_t blocked_us, longest_us; /* since when nothing is admitted, at most */
    double admitted;
};

/* For so long, in steps of 100 us: clients write when they may. */
static void run(struct world *w, double us)
{
    for (int64_t end = w->now + (int64_t)us; w->now < end; w->now += 100) {
        if (throttle_waits(&w->t, w->filled, w->now)) {
            w->blocked_us += 100;
            if (w->blocked_us > w->longest_us)
                w->longest_us = w->blocked_us;
            continue;
        }
        double n = w->offered / 10000;
        w->blocked_us = 0;
        w->filled += n / w->capacity;
        w->admitted += n;
    }
}

/* Freezes what is there and brings it in, 4,096 rows at a time. */
static void pass(struct world *w)
{
    w->rows = w->filled * w->capacity;
    w->filled = 0;
    throttle_freeze(&w->t, (size_t)w->rows, w->now);
    run(w, w->before);
    throttle_begin(&w->t, w->now);
    for (double done = 0; done < w->rows;) {
        double n = w->rows - done < 4096 ? w->rows - done : 4096;
        run(w, n * w->row);
        done += n;
        throttle_step(&w->t, (size_t)done, w->now);
    }
    throttle_commit(&w->t, w->now);
    run(w, w->commit);
    throttle_end(&w->t, w->now);
}

/* Passes of seconds, writers at three times what they take: each of them waits tens of milliseconds at most,
   and what is admitted is about what the tables take. */
static void overload_is_spread(void)
{
    struct world w = {
        .before = 800 * MS, .row = 8, .commit = 300 * MS, .offered = 300000, .capacity = 500000};
    w.filled = 1;
    for (int i = 0; i < 4; i++)
        pass(&w); /* it learns */
    w.longest_us = 0;
    w.admitted = 0;
    int64_t start = w.now;
    for (int i = 0; i < 8; i++)
        pass(&w);
    double seconds = (double)(w.now - start) / 1e6;
    CHECK(w.longest_us <= 50 * MS);
    CHECK(w.admitted / seconds > 0.9 * w.capacity / 5.1);
    CHECK(w.filled <= 1.01);
}

/* Twice as slow as before, in every phase: still no standstill. */
static void a_slower_pass_is_no_standstill(void)
{
    struct world w = {
        .before = 800 * MS, .row = 8, .commit = 300 * MS, .offered = 300000, .capacity = 500000};
    w.filled = 1;
    for (int i = 0; i < 4; i++)
        pass(&w);
    w.longest_us = 0;
    w.before *= 2;
    w.row *= 2;
    w.commit *= 2;
    pass(&w);
    CHECK(w.longest_us <= 200 * MS);
    CHECK(w.filled <= 1.01);
}

/* Who does not write faster than the tables take never waits; nor does a short burst. */
static void light_load_never_waits(void)
{
    struct world w = {.before = 50 * MS, .row = 8, .commit = 50 * MS, .offered = 60000, .capacity = 500000};
    w.filled = 0.5;
    for (int i = 0; i < 8; i++)
        pass(&w);
    CHECK_EQ(w.longest_us, 0);
    throttle_freeze(&w.t, 500000, w.now);
    CHECK(!throttle_waits(&w.t, 0.1, w.now));
    CHECK(throttle_waits(&w.t, 0.5, w.now));
    throttle_end(&w.t, w.now);
    CHECK(!throttle_waits(&w.t, 0.99, w.now)); /* what is full is frozen at once */
}

/* Those who write little have a part of the room to themselves: it lasts while all others wait, and what is
   full is full for everybody. */
static void who_writes_little_goes_first(void)
{
    struct throttle t = {0};
    throttle_freeze(&t, 100000, 0);
    throttle_begin(&t, 0);
    throttle_step(&t, 50000, 500 * MS);
    double waits = 0, stops = 0;
    while (!throttle_waits(&t, waits, 500 * MS))
        waits += 0.001;
    while (!throttle_stops(&t, stops, 500 * MS))
        stops += 0.001;
    CHECK(stops - waits > 0.05 && stops < 0.75);
    throttle_step(&t, 100000, 1000 * MS);
    throttle_commit(&t, 1000 * MS);
    CHECK(throttle_waits(&t, 0.99, 1000 * MS) && !throttle_stops(&t, 0.99, 1000 * MS));
    CHECK(throttle_stops(&t, 1, 1000 * MS));
    throttle_end(&t, 1000 * MS);
    CHECK(!throttle_stops(&t, 1, 1000 * MS));
}

/* One that is undone counts from the beginning; one that stands still lets nobody in for ever. */
static void what_is_undone_begins_again(void)
{
    struct throttle t = {0};
    throttle_freeze(&t, 100000, 0);
    throttle_begin(&t, 0);
    throttle_step(&t, 50000, 500 * MS);
    double half = throttle_over(&t, 500 * MS);
    CHECK(half > 0.45 && half < 0.55);
    throttle_again(&t, 600 * MS);
    CHECK(throttle_over(&t, 600 * MS) < 0.01);
    throttle_begin(&t, 700 * MS);
    throttle_step(&t, 10000, 800 * MS);
    CHECK(throttle_over(&t, 3600000LL * MS) < 0.5);
    CHECK(throttle_waits(&t, 1, 3600000LL * MS));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(overload_is_spread);
    RUN(a_slower_pass_is_no_standstill);
    RUN(light_load_never_waits);
    RUN(who_writes_little_goes_first);
    RUN(what_is_undone_begins_again);
    return check_done();
}
