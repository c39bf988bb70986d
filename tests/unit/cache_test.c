/* Items in memory that range deletes have. */
#include "check.h"
#include "engine/cache.h"

#define MEMBERS 1000

static struct cache *c;

static struct item *find(int64_t id, int n)
{
    char name[16];
    struct item_ref ref = {
        .table = ITEM_ZSET, .id = id, .name = slice_of(name, (size_t)snprintf(name, sizeof name, "m%d", n))};
    return cache_item(c, &ref, item_hash(&ref));
}

/* Member n has the score n. */
static void add(int64_t id, int n)
{
    char name[16];
    struct item_row row = {.ref = {.table = ITEM_ZSET,
                                   .id = id,
                                   .name = slice_of(name, (size_t)snprintf(name, sizeof name, "m%d", n))},
                           .score = n};
    cache_add_item(c, item_new(&row.ref, &row, item_hash(&row.ref)));
}

static void forget(int64_t id, int min, int max)
{
    struct item_range r = {.table = ITEM_ZSET,
                           .id = id,
                           .order = ITEMS_BY_SCORE,
                           .min_score = min,
                           .min_name = SLICE(""),
                           .max_score = max,
                           .max_name = SLICE("z")};
    cache_forget_range(c, &r);
}

static void setup(void)
{
    c = cache_new((size_t)1 << 30);
    for (int n = 0; n < MEMBERS; n++) {
        add(1, n);
        add(2, n);
    }
}

static void members_go_with_a_range(void)
{
    forget(1, 100, 199);
    forget(1, 300, 399);
    CHECK(find(1, 99) && !find(1, 100) && !find(1, 399) && find(1, 400));
    CHECK(find(2, 100));
    add(1, 100); /* behind the ranges */
    CHECK(find(1, 100));
    forget(1, 100, 100);
    CHECK(!find(1, 100));
    CHECK(find(1, 99) && !find(1, 150));
}

/* However many there were, nobody looks at all items for them, and none is found that one of them has. */
static void any_number_of_ranges(void)
{
    size_t rows = cache_get_stats(c)->rows;
    forget(1, 500, 599);
    for (int n = 0; n < 5000; n++) {
        forget(1, 2000 + n, 2000 + n);
        CHECK(find(1, 7)); /* in use all the time: it stays */
    }
    CHECK_EQ(cache_get_stats(c)->rows, rows);
    for (int n = 500; n < 600; n++)
        CHECK(!find(1, n));
    for (int n = 0; n < MEMBERS; n++)
        CHECK(find(2, n)); /* of another collection */
}

static void with_cache(const char *name, void (*test)(void))
{
    setup();
    check_run(name, test);
    cache_free(c);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    with_cache("members_go_with_a_range", members_go_with_a_range);
    with_cache("any_number_of_ranges", any_number_of_ranges);
    return check_done();
}
