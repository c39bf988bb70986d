/* Gaps of sorted sets against a plain model: members come and go at a few places; what a scan is narrowed to
   leaves out nothing that lives. */
#include <math.h>

#include "base/rand.h"
#include "check.h"
#include "journal/gaps.h"

#define SCORES 7
#define NAMES  5
#define PLACES (SCORES * NAMES)
#define SETS   2

static const double scores[SCORES] = {-INFINITY, -3, 0, 1, 1.5, 8, INFINITY};
static const char *const names[NAMES] = {"", "a", "aa", "b", "c"};

static struct rand dice;
static struct gaps *gaps;
static bool lives[SETS][PLACES];
static uint64_t left_out; /* places that scans did not have to see */

static int roll(int n)
{
    return (int)rand_below(&dice, (uint64_t)n);
}

static struct item_row row_at(int set, int at)
{
    return (struct item_row){.ref = {.table = ITEM_ZSET, .id = set, .name = slice_str(names[at % NAMES])},
                             .score = scores[at / NAMES]};
}

static int place_at(double score, struct slice name)
{
    for (int at = 0; at < PLACES; at++)
        if (scores[at / NAMES] == score && slice_eq(slice_str(names[at % NAMES]), name))
            return at;
    return -1;
}

static bool has_left(void *arg, double score, struct slice name)
{
    return !lives[*(int *)arg][place_at(score, name)];
}

/* As store/order.h has it. */
static bool in_range(const struct item_scan *q, int at)
{
    double score = scores[at / NAMES];
    struct slice name = slice_str(names[at % NAMES]);
    if (q->has_min && (score < q->min_score || (score == q->min_score && slice_cmp(name, q->min_name) < 0)))
        return false;
    if (!q->has_max || score < q->max_score)
        return true;
    if (score > q->max_score)
        return false;
    int c = q->max_name.p ? slice_cmp(name, q->max_name) : 0;
    return c < 0 || (c == 0 && !q->below_max);
}

static struct item_scan any_scan(int set)
{
    struct item_scan q = {.table = ITEM_ZSET, .id = set, .order = ITEMS_BY_SCORE, .reverse = roll(2)};
    q.has_min = roll(3) == 0;
    q.has_max = roll(3) == 0;
    q.min_score = scores[roll(SCORES)];
    q.min_name = slice_str(names[roll(NAMES)]);
    q.max_score = scores[roll(SCORES)];
    if (roll(2))
        q.max_name = slice_str(names[roll(NAMES)]);
    q.below_max = q.has_max && roll(2);
    return q;
}

/* The first place that lives in the order of a scan, -1: none. */
static int first_of(const struct item_scan *q)
{
    for (int i = 0; i < PLACES; i++) {
        int at = q->reverse ? PLACES - 1 - i : i;
        if (lives[q->id][at] && in_range(q, at))
            return at;
    }
    return -1;
}

static void scan(int set)
{
    struct item_scan q = any_scan(set), narrow = q;
    bool some = gaps_narrow(gaps, &narrow, has_left, &set);
    for (int at = 0; at < PLACES; at++) {
        bool was = in_range(&q, at), is = some && in_range(&narrow, at);
        CHECK(was || !is);
        CHECK(!was || is || !lives[set][at]);
        left_out += was && !is;
    }
    int first = first_of(&q);
    struct item_row row = row_at(set, first < 0 ? 0 : first);
    gaps_learn(gaps, &q, first < 0 ? NULL : &row);
}

static void nothing_that_lives_is_left_out(void)
{
    gaps = gaps_new(0);
    for (int i = 0; i < 300000 && !check.checks_failed; i++) {
        int set = roll(SETS), at = roll(PLACES), what = roll(100);
        if (what < 15) {
            struct item_row row = row_at(set, at);
            lives[set][at] = true;
            gaps_put(gaps, &row);
        } else if (what < 45) {
            lives[set][at] = false;
        } else {
            scan(set);
        }
        if (roll(5000) == 0)
            gaps_clear(gaps);
    }
    CHECK(left_out > 100000);
    gaps_free(gaps);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    rand_init(&dice);
    uint64_t seed = rand_u64(&dice) >> 40;
    printf("seed %" PRIu64 "\n", seed);
    rand_seed(&dice, seed);
    RUN(nothing_that_lives_is_left_out);
    return check_done();
}
