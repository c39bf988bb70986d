/* Windows of sorted sets against a plain model: members come and go at a few places, scans read behind the
   mark, and at each step a window has exactly the members up to its mark. */
#include "engine/order/window.h"

#include <math.h>

#include "base/rand.h"
#include "check.h"
#include "engine/order/blocks.h"

#define SCORES 6
#define NAMES  5
#define PLACES (SCORES * NAMES)
#define STEPS  200000

static const double scores[SCORES] = {-INFINITY, -3, 0, 1.5, 8, INFINITY};
static const char *const names[NAMES] = {"", "a", "aa", "b", "c"};

static struct rand dice;
static bool lives[PLACES]; /* in ascending order */
static struct window windows[2] = {{.reverse = false}, {.reverse = true}};
static uint64_t read_rows, marks_kept;

static int roll(int n)
{
    return (int)rand_below(&dice, (uint64_t)n);
}

static double score_of(int at)
{
    return scores[at / NAMES];
}

static struct slice name_of(int at)
{
    return slice_str(names[at % NAMES]);
}

/* The place that is n-th from the end of a window. */
static int nth(const struct window *w, int n)
{
    return w->reverse ? PLACES - 1 - n : n;
}

/* The items are the members at covered places, in order, and what is covered is covered from the end on. */
static void same(const struct window *w)
{
    size_t found = 0, bytes = w->cap ? 1 : 0;
    bool covered = true;
    for (int n = 0; n < PLACES; n++) {
        int at = nth(w, n);
        bool covers = window_covers(w, score_of(at), name_of(at));
        CHECK(covered || !covers);
        covered = covers;
        if (!covers)
            continue;
        CHECK_EQ(window_before(w, score_of(at), name_of(at)), found);
        if (!lives[at])
            continue;
        CHECK(found < w->n);
        if (found == w->n)
            return;
        const struct window_item *i = window_at(w, found++);
        CHECK(score_compare(i->score, window_name(i), score_of(at), name_of(at)) == 0);
        bytes += 1;
    }
    CHECK_EQ(found, w->n);
    CHECK(window_bytes(w) >= bytes);
    CHECK_EQ(w->by_name.count, w->n);
}

static void change(void)
{
    int at = roll(PLACES);
    for (int i = 0; i < 2; i++) {
        if (lives[at])
            window_remove(&windows[i], score_of(at), name_of(at));
        else
            window_put(&windows[i], score_of(at), name_of(at));
    }
    lives[at] = !lives[at];
}

static void pop(struct window *w)
{
    if (w->n == 0)
        return;
    for (int n = 0; n < PLACES; n++) {
        int at = nth(w, n);
        if (!lives[at])
            continue;
        for (int i = 0; i < 2; i++)
            window_remove(&windows[i], score_of(at), name_of(at));
        lives[at] = false;
        marks_kept += w->n == 0 && w->mark;
        return;
    }
}

/* As a scan does that begins behind the mark. */
static void read_ahead(struct window *w)
{
    int limit = 1 + roll(4), added = 0;
    if (w->whole)
        return;
    for (int n = 0; n < PLACES && added < limit; n++) {
        int at = nth(w, n);
        if (!lives[at] || window_covers(w, score_of(at), name_of(at)))
            continue;
        window_add(w, score_of(at), name_of(at));
        added++;
        read_rows++;
    }
    window_raise(w, added < limit);
}

static void holds_what_is_at_the_end(void)
{
    for (int step = 0; step < STEPS && !check.checks_failed; step++) {
        struct window *w = &windows[roll(2)];
        switch (roll(8)) {
        case 0:
        case 1:
            read_ahead(w);
            break;
        case 2:
        case 3:
            pop(w);
            break;
        case 4:
            if (roll(10) == 0)
                window_cut(w, 1 + (size_t)roll(4));
            if (roll(200) == 0)
                window_release(w);
            break;
        default:
            change();
        }
        same(&windows[0]);
        same(&windows[1]);
    }
    CHECK(read_rows > STEPS / 50);
    CHECK(marks_kept > STEPS / 1000);
    for (int i = 0; i < 2; i++) {
        window_release(&windows[i]);
        CHECK_EQ(windows[i].bytes, 0);
    }
}

static void finds_by_name(void)
{
    struct window w = {0};
    window_raise(&w, true);
    for (int i = 0; i < PLACES; i++)
        window_put(&w, i, name_of(i % NAMES));
    CHECK(window_find(&w, SLICE("aa")));
    CHECK(!window_find(&w, SLICE("zz")));
    window_release(&w);
    CHECK(!window_find(&w, SLICE("aa")));
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    rand_seed(&dice, 7);
    RUN(holds_what_is_at_the_end);
    RUN(finds_by_name);
    return check_done();
}
