/* Range deletes: what changes.ranges removes, over every implementation. */
#include <math.h>

#include "contract/suite.h"
#include "store/item_tables.h"

#define LONG_BYTES 1500

/* ---- what is there ---- */

/* The ids 1 and 2 have the positions -5 to 5. */
static void put_positions(enum item_table t)
{
    struct item_row rows[22];
    for (int i = 0; i < 22; i++)
        rows[i] = (struct item_row){.ref = {.table = t, .id = 1 + i / 11, .pos = i % 11 - 5},
                                    .value = SLICE("v"),
                                    .score = item_has(t, COLUMN_SCORE) ? 1 : 0};
    struct changes c = {.items = rows, .nitems = 22};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
}

/* Every position of an id that is there, from -5 on: '.' for each that is not. */
static void expect_positions(enum item_table t, int64_t id, const char *want)
{
    struct item_scan q = {.table = t, .id = id, .order = ITEMS_BY_POS, .limit = 100};
    struct rows r = {0};
    char got[] = "...........";
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    for (size_t i = 0; i < r.nitems; i++)
        got[r.items[i].ref.pos + 5] = 'x';
    CHECK_STR(got, want);
    rows_release(&r);
}

static struct item_row member(int64_t id, const char *name, double score)
{
    return (struct item_row){.ref = {.table = ITEM_ZSET, .id = id, .name = slice_str(name)}, .score = score};
}

static void put_members(struct item_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        rows[i].ord = (int64_t)i;
    struct changes c = {.items = rows, .nitems = n};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
}

/* The last bytes of the members' names, by score. */
static void expect_members(int64_t id, const char *want)
{
    struct item_scan q = {.table = ITEM_ZSET, .id = id, .order = ITEMS_BY_SCORE, .limit = 100};
    struct rows r = {0};
    char got[64] = "";
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    for (size_t i = 0; i < r.nitems && i < 60; i++)
        got[i] = r.items[i].ref.name.p[r.items[i].ref.name.n - 1];
    CHECK_STR(got, want);
    rows_release(&r);
}

static enum status remove_ranges(const struct item_range *ranges, size_t n)
{
    struct changes c = {.ranges = ranges, .nranges = n};
    return apply_now(s, &c, &err);
}

static void remove_scores(int64_t id, double min, struct slice low, double max, struct slice high)
{
    const struct item_range r = {.table = ITEM_ZSET,
                                 .id = id,
                                 .order = ITEMS_BY_SCORE,
                                 .min_score = min,
                                 .max_score = max,
                                 .min_name = low,
                                 .max_name = high};
    REQUIRE_OK(remove_ranges(&r, 1), &err);
}

/* ---- positions ---- */

static void positions_of(enum item_table t)
{
    put_positions(t);
    const struct item_range inner = {.table = t, .id = 1, .order = ITEMS_BY_POS, .min = -1, .max = 2};
    REQUIRE_OK(remove_ranges(&inner, 1), &err);
    expect_positions(t, 1, "xxxx....xxx");
    expect_positions(t, 2, "xxxxxxxxxxx");      /* another id */
    REQUIRE_OK(remove_ranges(&inner, 1), &err); /* nothing is there any more */
    const struct item_range empty = {.table = t, .id = 2, .order = ITEMS_BY_POS, .min = 2, .max = 1};
    REQUIRE_OK(remove_ranges(&empty, 1), &err);
    expect_positions(t, 2, "xxxxxxxxxxx");
    const struct item_range ends[] = {
        {.table = t, .id = 1, .order = ITEMS_BY_POS, .min = INT64_MIN, .max = -4},
        {.table = t, .id = 1, .order = ITEMS_BY_POS, .min = 5, .max = INT64_MAX},
        {.table = t, .id = 2, .order = ITEMS_BY_POS, .min = 0, .max = 0},
    };
    REQUIRE_OK(remove_ranges(ends, 3), &err);
    expect_positions(t, 1, "..xx....xx.");
    expect_positions(t, 2, "xxxxx.xxxxx");
}

static void positions(void)
{
    positions_of(ITEM_LIST);
    positions_of(ITEM_CHUNK);
    positions_of(ITEM_ZBLOCK);
}

/* ---- scores ---- */

static void scores(void)
{
    struct item_row rows[] = {member(1, "a", -INFINITY), member(1, "b", -2), member(1, "c", -0.0),
                              member(1, "d", 0.0),       member(1, "e", 1),  member(1, "f", 1),
                              member(1, "g", 1),         member(1, "h", 1),  member(1, "i", 5e-324),
                              member(1, "j", INFINITY),  member(2, "e", 1)};
    put_members(rows, 11);
    expect_members(1, "abcdiefghj");
    remove_scores(1, 1, SLICE("f"), 1, SLICE("g")); /* among those of one score */
    expect_members(1, "abcdiehj");
    expect_members(2, "e");                         /* another id */
    remove_scores(1, 1, SLICE("h"), 1, SLICE("e")); /* ends before it begins */
    remove_scores(1, 1, SLICE("ea"), 1, SLICE("gz"));
    remove_scores(1, 0.5, SLICE(""), 0.25, SLICE("z"));
    expect_members(1, "abcdiehj");
    remove_scores(1, 0.0, SLICE("b"), -0.0, SLICE("c")); /* the two zeros are one score */
    expect_members(1, "abdiehj");
    remove_scores(1, -2, SLICE("ba"), -0.0, SLICE("d"));
    expect_members(1, "abiehj");
    remove_scores(1, -INFINITY, SLICE(""), -INFINITY, SLICE("a"));
    expect_members(1, "biehj");
    remove_scores(1, 1, SLICE("f"), INFINITY, SLICE("i")); /* j is behind it */
    expect_members(1, "biej");
    remove_scores(1, -INFINITY, (struct slice){NULL, 0}, INFINITY, SLICE("j"));
    expect_members(1, "");
    expect_members(2, "e");
}

/* A name of LONG_BYTES, of which an index has less: `at` is where it differs from the others. */
static char long_names[6][LONG_BYTES + 1];

static const char *long_name(int n, size_t at, char c)
{
    memset(long_names[n], 'x', LONG_BYTES);
    long_names[n][at] = c;
    long_names[n][LONG_BYTES - 1] = (char)('a' + n);
    return long_names[n];
}

/* Names that begin with the same 992 bytes and more stand in a server's index by a hash. */
static void names_longer_than_an_index_has(void)
{
    struct item_row rows[] = {
        member(1, long_name(0, 1200, 'a'), 7),
        member(1, long_name(1, 1200, 'b'), 7),
        member(1, long_name(2, 1200, 'c'), 7),
        member(1, long_name(3, 1200, 'd'), 7),
        member(1, long_name(4, 1200, 'e'), 7),
        member(1, long_name(5, 100, 'y'), 7),
        member(1, "A", 7),
        member(1, "z", 7),
        member(1, "1", 6.5),
        member(1, "9", 7.5),
    };
    put_members(rows, 10);
    expect_members(1, "1Aabcdefz9");
    remove_scores(1, 7, slice_str(long_names[1]), 7, slice_str(long_names[2]));
    expect_members(1, "1Aadefz9");
    remove_scores(1, 7, slice_of(long_names[3], 1300), 7, slice_of(long_names[3], 1400)); /* between names */
    expect_members(1, "1Aadefz9");
    remove_scores(1, 6.5, SLICE("2"), 7, slice_str(long_names[0])); /* one end is long */
    expect_members(1, "1defz9");
    remove_scores(1, 7, slice_str(long_names[4]), 7, SLICE("y"));
    expect_members(1, "1dz9");
    remove_scores(1, 7, slice_str(long_names[3]), 7.5, SLICE("8"));
    expect_members(1, "19");
}

/* Of 993 to 1,000 bytes: they stand in the index as they are, among hashes of longer ones. */
static void names_about_as_long_as_an_index_has(void)
{
    static char names[4][1002];
    const size_t lengths[] = {992, 993, 1000, 1001};
    struct item_row rows[4];
    for (int i = 0; i < 4; i++) {
        memset(names[i], 'x', lengths[i]);
        names[i][lengths[i]] = '\0';
        rows[i] = member(1, names[i], 1);
        rows[i].ref.name.p = names[i];
    }
    put_members(rows, 4);
    struct item_scan q = {.table = ITEM_ZSET, .id = 1, .order = ITEMS_BY_SCORE, .limit = 100};
    remove_scores(1, 1, slice_str(names[1]), 1, slice_str(names[2]));
    struct rows r = {0};
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 2);
    CHECK_EQ(r.items[0].ref.name.n, 992);
    CHECK_EQ(r.items[1].ref.name.n, 1001);
    rows_release(&r);
    remove_scores(1, 1, slice_str(names[1]), 1, slice_str(names[3]));
    expect_members(1, "x");
}

/* ---- with rows ---- */

/* Rows of a change set come behind its ranges, whatever order its parts have. */
static void rows_come_behind(void)
{
    put_positions(ITEM_LIST);
    struct item_row zset[] = {member(1, "a", 1), member(1, "b", 2), member(1, "c", 3)};
    put_members(zset, 3);
    const struct item_range ranges[] = {
        {.table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS, .min = -5, .max = 5},
        {.table = ITEM_ZSET,
         .id = 1,
         .order = ITEMS_BY_SCORE,
         .min_score = -INFINITY,
         .max_score = INFINITY,
         .max_name = SLICE("\xff")},
    };
    struct item_row back[] = {{.ref = {.table = ITEM_LIST, .id = 1, .pos = 3}, .value = SLICE("new")},
                              member(1, "b", 2),
                              member(1, "d", -1)};
    const struct item_ref gone[] = {{.table = ITEM_LIST, .id = 2, .pos = 0},
                                    {.table = ITEM_LIST, .id = 1, .pos = 4}};
    struct key_row k = {.key = SLICE("k"), .type = ROW_LIST, .id = 1, .size = 1, .first = 3, .version = 1};
    struct changes c = {.keys = &k,
                        .nkeys = 1,
                        .ranges = ranges,
                        .nranges = 2,
                        .items = back,
                        .nitems = 3,
                        .gone = gone,
                        .ngone = 2};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(apply_now(s, &c, &err), &err);
        expect_positions(ITEM_LIST, 1, "........x..");
        expect_positions(ITEM_LIST, 2, "xxxxx.xxxxx");
        expect_members(1, "db");
        c.replay = true; /* the same again is the same */
        c.ngone = 1;
    }
    struct rows r = {0};
    REQUIRE(get_key(s, 0, SLICE("k"), &r));
    CHECK_EQ(r.keys[0].size, 1);
    rows_release(&r);
}

/* What is rolled back has removed nothing. */
static void rolled_back(void)
{
    put_positions(ITEM_LIST);
    const struct item_range all = {
        .table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS, .min = INT64_MIN, .max = INT64_MAX};
    struct changes c = {.ranges = &all, .nranges = 1};
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    REQUIRE_OK(store_apply(s, &c, &err), &err);
    expect_positions(ITEM_LIST, 1, "...........");
    store_rollback(s);
    expect_positions(ITEM_LIST, 1, "xxxxxxxxxxx");
}

static void all(void)
{
    CONTRACT(positions);
    CONTRACT(scores);
    CONTRACT(names_longer_than_an_index_has);
    CONTRACT(names_about_as_long_as_an_index_has);
    CONTRACT(rows_come_behind);
    CONTRACT(rolled_back);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    every_implementation(all);
    return check_done();
}
