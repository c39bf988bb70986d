/* Sorted sets in memory and in the tables against a model: an array of scores. Batches of random changes,
   calls that are undone and commits that fail; then ranks, ranges in both directions and the counts in the
   tables. */
#include "world.h"

#include <math.h>

#include "base/rand.h"
#include "engine/coll.h"
#include "engine/order/blocks.h"
#include "engine/view_internal.h"

#define NAMES 9000

struct model {
    double score[NAMES];
    bool there[NAMES];
    int64_t size;
};

struct tester {
    struct world w;
    struct rand rnd;
    struct model now;
    struct model before_call, before_batch, at_mark;
    struct member_ref {
        int name;
        double score;
    } sorted[NAMES];
};

/* Names of every length, some with a long prefix in common; in the order of their numbers they are in no
 * order. */
static struct slice name_of(int i)
{
    static char text[NAMES][64];
    if (!text[i][0])
        snprintf(text[i], sizeof text[i], "%s%d", i % 3 ? "a-prefix-that-many-names-have-in-common:" : "",
                 i * 7919 % NAMES);
    return slice_str(text[i]);
}

static int by_order(const void *a, const void *b)
{
    const struct member_ref *x = a, *y = b;
    return score_compare(x->score, name_of(x->name), y->score, name_of(y->name));
}

static void sort_model(struct tester *t)
{
    int64_t n = 0;
    for (int i = 0; i < NAMES; i++)
        if (t->now.there[i])
            t->sorted[n++] = (struct member_ref){i, t->now.score[i]};
    CHECK_EQ(n, t->now.size);
    qsort(t->sorted, (size_t)n, sizeof *t->sorted, by_order);
}

static int64_t pick(struct tester *t, int64_t below)
{
    return (int64_t)rand_below(&t->rnd, (uint64_t)below);
}

/* Many ties, some extremes. */
static double random_score(struct tester *t)
{
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, 5e-324, -5e-324, 1e308, 0.1};
    int64_t r = pick(t, 20);
    return r < 8 ? odd[r] : r < 14 ? (double)pick(t, 4) : (double)pick(t, 1000) / 7;
}

/* ---- changing ---- */

static enum status put(struct tester *t, struct coll *z, int i, double score)
{
    struct coll_item item = {.name = name_of(i), .score = score};
    bool added;
    enum status st = coll_put(z, &item, &added);
    CHECK_EQ(added, !t->now.there[i]);
    t->now.size += !t->now.there[i];
    t->now.there[i] = true;
    t->now.score[i] = score;
    return st;
}

static enum status drop(struct tester *t, struct coll *z, int i)
{
    bool removed;
    enum status st = coll_remove(z, name_of(i), &removed);
    CHECK_EQ(removed, t->now.there[i]);
    t->now.size -= t->now.there[i];
    t->now.there[i] = false;
    return st;
}

static enum status drop_range(struct tester *t, struct coll *z)
{
    sort_model(t);
    int64_t size = t->now.size, from = pick(t, size), n = 1 + pick(t, pick(t, 8) ? 300 : size);
    int64_t to = from + n - 1 < size ? from + n - 1 : size - 1;
    for (int64_t i = from; i <= to; i++)
        t->now.there[t->sorted[i].name] = false;
    t->now.size -= to - from + 1;
    return coll_remove_ranks(z, from, to);
}

struct expect {
    struct tester *t;
    int64_t rank, step;
};

static enum status expect_item(void *arg, const struct coll_item *item)
{
    struct expect *e = arg;
    const struct member_ref *m = &e->t->sorted[e->rank];
    CHECK_SLICE(item->name, name_of(m->name));
    CHECK(memcmp(&item->score, &m->score, sizeof m->score) == 0); /* the sign of zero as well */
    e->rank += e->step;
    return ST_OK;
}

/* From either end, a few at a time. */
static enum status pop(struct tester *t, struct coll *z)
{
    enum status st = ST_OK;
    bool max = pick(t, 2);
    sort_model(t);
    int64_t first = 0, last = t->now.size - 1;
    for (int64_t times = 1 + pick(t, 30); st == ST_OK && times > 0 && last - first > 3; times--) {
        int64_t n = 1 + pick(t, 3), size = last - first + 1, from = max ? size - n : 0;
        struct expect e = {t, max ? last : first, max ? -1 : 1};
        st = coll_by_rank(z, from, from + n - 1, max, expect_item, &e);
        for (int64_t i = 0; i < n; i++)
            t->now.there[t->sorted[max ? last-- : first++].name] = false;
        t->now.size -= n;
        if (st == ST_OK)
            st = coll_remove_ranks(z, from, from + n - 1);
        max ^= pick(t, 5) == 0;
    }
    return st;
}

static enum status change(struct tester *t, bool grow)
{
    struct coll *z;
    bool wrong;
    enum status st = coll_make(t->w.view, 0, SLICE("z"), ROW_ZSET, &z, &wrong);
    if (st != ST_OK)
        return st;
    CHECK_EQ(coll_size(z), t->now.size);
    int64_t n = pick(t, 5) ? pick(t, 20) : pick(t, 1500), from = pick(t, NAMES);
    for (int64_t k = 0; st == ST_OK && k < n; k++) {
        int i = (int)((from + k * 5) % NAMES);
        st = pick(t, 10) < (grow ? 8 : 3) ? put(t, z, i, random_score(t)) : drop(t, z, i);
    }
    if (st == ST_OK && t->now.size && pick(t, grow ? 12 : 4) == 0)
        st = drop_range(t, z);
    if (st == ST_OK && t->now.size && pick(t, 2))
        st = pop(t, z);
    return st == ST_OK ? coll_save(z) : st;
}

/* ---- comparing ---- */

static void compare_window(struct tester *t, struct coll *z, int64_t from, int64_t to)
{
    struct expect up = {t, from, 1}, down = {t, to, -1};
    CHECK_OK(coll_by_rank(z, from, to, false, expect_item, &up), engine_error(t->w.engine));
    CHECK_EQ(up.rank, to + 1);
    CHECK_OK(coll_by_rank(z, from, to, true, expect_item, &down), engine_error(t->w.engine));
    CHECK_EQ(down.rank, from - 1);
}

static int64_t count_scores(struct tester *t, double score, bool equal_too)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->now.size; i++)
        n += t->sorted[i].score < score || (equal_too && !(t->sorted[i].score > score));
    return n;
}

static void compare_bounds(struct tester *t, struct coll *z)
{
    static const double scores[] = {-INFINITY, -1, -5e-324, -0.0, 0.0, 5e-324, 1, 2, 3.5, 1e308, INFINITY};
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        for (int form = 0; form < 4; form++) {
            bool upper = form & 1, exclusive = form & 2;
            struct coll_bound b = {.score = scores[i], .exclusive = exclusive};
            int64_t n = -1;
            CHECK_OK(coll_rank_of(z, &b, upper, &n), engine_error(t->w.engine));
            int64_t right = count_scores(t, scores[i], upper != exclusive), depth = 1 + pick(t, 60),
                    size = t->now.size;
            CHECK_EQ(n, right);
            CHECK_OK(coll_rank_within(z, &b, upper, false, depth, &n), engine_error(t->w.engine));
            CHECK(n == right || (n == depth && n < right));
            CHECK_OK(coll_rank_within(z, &b, upper, true, depth, &n), engine_error(t->w.engine));
            CHECK(n == right || (n == size - depth && n > right));
        }
    }
}

static void compare_rank(struct tester *t, struct coll *z, int64_t rank)
{
    struct coll_bound b = {.score = t->sorted[rank].score, .has_name = true};
    int64_t n;
    b.name = name_of(t->sorted[rank].name);
    CHECK_OK(coll_rank_of(z, &b, false, &n), engine_error(t->w.engine));
    CHECK_EQ(n, rank);
    CHECK_OK(coll_rank_of(z, &b, true, &n), engine_error(t->w.engine));
    CHECK_EQ(n, rank + 1);
}

static void compare(struct tester *t)
{
    struct coll *z;
    bool wrong;
    sort_model(t);
    world_enter(&t->w);
    REQUIRE_OK(coll_open(t->w.view, 0, SLICE("z"), ROW_ZSET, &z, &wrong), engine_error(t->w.engine));
    CHECK_EQ(z ? coll_size(z) : 0, t->now.size);
    if (z) {
        for (int i = 0; i < 10; i++)
            compare_rank(t, z, pick(t, t->now.size));
        int64_t from = pick(t, t->now.size), to = from + pick(t, t->now.size - from);
        compare_window(t, z, from, to);
        compare_window(t, z, from, from);
        from = pick(t, t->now.size < 9 ? t->now.size : 9);
        compare_window(t, z, 0, from);
        compare_window(t, z, t->now.size - 1 - from, t->now.size - 1);
        compare_bounds(t, z);
    }
    (void)engine_leave(t->w.engine, true);
}

static void compare_tables(struct tester *t)
{
    CHECK_EQ(world_sql(&t->w, "SELECT coalesce(sum(size), 0) FROM larder_key WHERE type = 5"), t->now.size);
    world_check_numbers(&t->w, ROW_ZSET, "larder_zset");
    /* Blocks that do not count what is between their fence and the next. */
    CHECK_EQ(
        world_sql(
            &t->w,
            "WITH b AS (SELECT *, lead(score) OVER w AS s, lead(member) OVER w AS m FROM larder_zset_block"
            "  WINDOW w AS (PARTITION BY id ORDER BY score, member))"
            " SELECT count(*) FROM b JOIN larder_key AS k ON k.id = b.id WHERE b.count <>"
            "  (SELECT count(*) FROM larder_zset AS z WHERE z.id = b.id"
            "   AND (z.score, z.member) >= (b.score, b.member)"
            "   AND (z.score, z.member) < (coalesce(b.s, ''), coalesce(b.m, x'')))"),
        0);
    CHECK_EQ(world_sql(&t->w,
                       "SELECT count(*) FROM larder_key AS k WHERE type = 5 AND first > 0 AND size IS NOT"
                       " (SELECT sum(count) FROM larder_zset_block WHERE id = k.id)"),
             0);
    CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key AS k WHERE type = 5 AND first = 0 AND EXISTS"
                              " (SELECT 1 FROM larder_zset_block WHERE id = k.id)"),
             0);
}

/* ---- the tests ---- */

/* A change, and some that are taken back within the same call. */
static enum status change_some(struct tester *t, bool grow)
{
    enum status st = change(t, grow);
    if (pick(t, 3))
        return st;
    engine_mark(t->w.engine);
    t->at_mark = t->now;
    for (int64_t n = 1 + pick(t, 2); st == ST_OK && n > 0; n--)
        st = change(t, pick(t, 2));
    if (st == ST_OK)
        st = engine_undo_to_mark(t->w.engine);
    t->now = t->at_mark;
    return st == ST_OK && pick(t, 2) ? change(t, grow) : st;
}

static void batch(struct tester *t, bool grow, bool may_fail)
{
    REQUIRE(world_begin(&t->w));
    t->before_batch = t->now;
    for (int64_t calls = 1 + pick(t, 4); calls > 0; calls--) {
        world_enter(&t->w);
        t->before_call = t->now;
        enum status st = change_some(t, grow);
        bool keep = st == ST_OK && (!may_fail || pick(t, 10));
        CHECK_OK(st, engine_error(t->w.engine));
        (void)engine_leave(t->w.engine, keep);
        if (!keep)
            t->now = t->before_call;
        if (t->w.view->batch.poison != ST_OK)
            break; /* what was undone is in the transaction, which cannot commit: nobody may look at it any
                      more */
        if (pick(t, 3) == 0)
            compare(t);
    }
    if (may_fail && pick(t, 6) == 0)
        store_fault_set(t->w.store, (struct store_fault){.nth = 1, .status = ST_FULL});
    enum status st = engine_commit(t->w.engine, NULL, &t->w.err);
    store_fault_set(t->w.store, (struct store_fault){.nth = 0});
    if (st != ST_OK)
        t->now = t->before_batch;
    CHECK(st == ST_OK || may_fail);
}

static void run(uint64_t seed, size_t cache, bool may_fail)
{
    struct tester *t = calloc(1, sizeof *t);
    t->w.cache = cache;
    rand_seed(&t->rnd, seed);
    if (world_start(&t->w)) {
        for (int i = 0; i < 80 && !check.checks_failed; i++) {
            if (i % 7 == 0)
                coll_set_ends(t->w.view, (uint32_t)1 << pick(t, 11));
            batch(t, i / 30 % 2 == 0, may_fail);
            if (i % 10 == 0) {
                compare_tables(t);
                CHECK(world_begin(&t->w));
                compare(t);
                CHECK_OK(engine_commit(t->w.engine, NULL, &t->w.err), &t->w.err);
            }
            if (i % 30 == 25)
                CHECK(world_reopen(&t->w));
        }
        world_sweep(&t->w);
        compare_tables(t);
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_zset"), t->now.size);
        world_end(&t->w);
    }
    free(t);
}

static void sets_in_memory_and_beyond(void)
{
    run(1, 64 << 20, false);
}

static void sets_without_memory(void)
{
    run(2, 1, false);
}

static void failures_leave_no_trace(void)
{
    run(3, 64 << 20, true);
    run(4, 1, true);
}

static void fences_are_short(void)
{
    CHECK_SLICE(blocks_separator(1, SLICE("zzz"), 2, SLICE("abc")), SLICE(""));
    CHECK_SLICE(blocks_separator(1, SLICE("abc"), 1, SLICE("abd")), SLICE("abd"));
    CHECK_SLICE(blocks_separator(1, SLICE("abc"), 1, SLICE("b")), SLICE("b"));
    CHECK_SLICE(blocks_separator(1, SLICE("a"), 1, SLICE("azzz")), SLICE("az"));
    CHECK_SLICE(blocks_separator(1, SLICE(""), 1, SLICE("xyz")), SLICE("x"));
    CHECK_SLICE(blocks_separator(-0.0, SLICE("a"), 0.0, SLICE("bc")), SLICE("b"));
}

static void ranks_are_sums_of_counts(void)
{
    struct blocks *b = blocks_new();
    for (size_t i = 0; i < 100; i++)
        blocks_insert(b, i, i ? (double)i : -INFINITY, SLICE(""))->count = (int64_t)i % 7;
    for (int round = 0; round < 3; round++) {
        int64_t sum = 0;
        for (size_t i = 0; i < b->len; i++) {
            CHECK_EQ(blocks_before(b, i), sum);
            CHECK_EQ(blocks_find(b, (double)i, SLICE("x")), i);
            for (int64_t k = 0; k < b->at[i].count; k++) {
                int64_t before;
                CHECK_EQ(blocks_at_rank(b, sum + k, &before), i);
                CHECK_EQ(before, sum);
            }
            sum += b->at[i].count;
        }
        CHECK_EQ(blocks_before(b, b->len), sum);
        for (size_t i = 0; i < b->len; i += 3)
            blocks_add(b, i, round == 0 ? 5 : -b->at[i].count);
    }
    CHECK(blocks_sort(b));
    blocks_insert(b, 3, 50, SLICE(""));
    CHECK(!blocks_sort(b));
    blocks_free(b);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(fences_are_short);
    RUN(ranks_are_sums_of_counts);
    RUN(sets_in_memory_and_beyond);
    RUN(sets_without_memory);
    RUN(failures_leave_no_trace);
    return check_done();
}
