/* What store/store.h promises of items: the rows of collections and of long strings. */
#include <math.h>

#include "contract/suite.h"

/* ---- items ---- */

static void items_come_back(void)
{
    struct slice odd[8];
    size_t n = hostile(odd);
    struct item_row rows[24];
    struct item_ref refs[24];
    for (size_t i = 0; i < n; i++) {
        rows[3 * i] = (struct item_row){.ref = {.table = ITEM_HASH, .id = 1, .name = odd[i]},
                                        .value = odd[n - 1 - i],
                                        .expire_at = (int64_t)i,
                                        .ord = (int64_t)i};
        rows[3 * i + 1] =
            (struct item_row){.ref = {.table = ITEM_SET, .id = 2, .name = odd[i]}, .ord = (int64_t)(n - i)};
        rows[3 * i + 2] =
            (struct item_row){.ref = {.table = ITEM_LIST, .id = 3, .pos = (int64_t)i - 4}, .value = odd[i]};
    }
    for (size_t i = 0; i < 3 * n; i++)
        refs[i] = rows[i].ref;
    struct changes c = {.items = rows, .nitems = 3 * n};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct rows r = {0};
    CHECK_OK(store_get_items(s, refs, 3 * n, add_item, &r, &err), &err);
    REQUIRE(r.nitems == 3 * n);
    for (size_t i = 0; i < 3 * n; i++) {
        CHECK_EQ(r.items[i].ref.table, rows[i].ref.table);
        CHECK_EQ(r.items[i].ref.id, rows[i].ref.id);
        CHECK_EQ(r.items[i].ref.pos, rows[i].ref.pos);
        CHECK_SLICE(r.items[i].ref.name, rows[i].ref.name);
        CHECK_SLICE(r.items[i].value, rows[i].value);
        CHECK_EQ(r.items[i].expire_at, rows[i].expire_at);
        CHECK_EQ(r.items[i].ord, rows[i].ord);
    }
    rows_release(&r);
    struct item_ref absent = {.table = ITEM_HASH, .id = 2, .name = odd[3]};
    CHECK_OK(store_get_items(s, &absent, 1, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 0);
    rows_release(&r);
}

static void items_are_replaced_and_removed(void)
{
    struct item_row rows[] = {
        {.ref = {.table = ITEM_SET, .id = 1, .name = SLICE("a")}, .ord = 0},
        {.ref = {.table = ITEM_SET, .id = 1, .name = SLICE("b")}, .ord = 1},
        {.ref = {.table = ITEM_SET, .id = 1, .name = SLICE("c")}, .ord = 2},
        {.ref = {.table = ITEM_CHUNK, .id = 2, .pos = 0}, .value = SLICE("old")},
    };
    struct changes c = {.items = rows, .nitems = 4};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    /* The first goes, the last takes its number, two swap theirs. */
    struct item_row next[] = {
        {.ref = {.table = ITEM_CHUNK, .id = 2, .pos = 0}, .value = SLICE("new")},
        {.ref = {.table = ITEM_SET, .id = 1, .name = SLICE("c")}, .ord = 1},
        {.ref = {.table = ITEM_SET, .id = 1, .name = SLICE("b")}, .ord = 0},
    };
    struct item_ref gone[] = {{.table = ITEM_SET, .id = 1, .name = SLICE("a")},
                              {.table = ITEM_SET, .id = 1, .name = SLICE("never was")}};
    c = (struct changes){.items = next, .nitems = 3, .gone = gone, .ngone = 2};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct rows r = {0};
    struct item_scan q = {.table = ITEM_SET, .id = 1, .order = ITEMS_BY_ORD, .limit = 10};
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    REQUIRE(r.nitems == 2);
    CHECK_SLICE(r.items[0].ref.name, SLICE("b"));
    CHECK_SLICE(r.items[1].ref.name, SLICE("c"));
    rows_release(&r);
    CHECK_OK(store_get_items(s, &rows[3].ref, 1, add_item, &r, &err), &err);
    REQUIRE(r.nitems == 1);
    CHECK_SLICE(r.items[0].value, SLICE("new"));
    rows_release(&r);
}

static void expect_items(struct item_scan q, const char *want)
{
    struct rows r = {0};
    char got[64] = "";
    q.limit = q.limit ? q.limit : 100;
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    for (size_t i = 0; i < r.nitems && i < 60; i++)
        got[i] = q.table == ITEM_LIST ? r.items[i].value.p[0] : r.items[i].ref.name.p[0];
    CHECK_STR(got, want);
    rows_release(&r);
}

static void expect_count(struct item_scan q, int64_t want)
{
    int64_t n = -1;
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, want);
}

/* Those that there are, in the order asked, some of them twice; until the callback has seen enough. */
static void items_by_their_numbers(void)
{
    struct item_row rows[5];
    for (int i = 0; i < 5; i++)
        rows[i] = (struct item_row){.ref = {.table = ITEM_HASH, .id = 1, .name = slice_of(&"abcde"[i], 1)},
                                    .ord = 10 * i};
    struct changes c = {.items = rows, .nitems = 5};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    const int64_t ords[] = {30, 5, 0, 41, 30, 40};
    struct item_scan q = {.table = ITEM_HASH, .id = 1, .order = ITEMS_BY_ORD, .ords = ords, .nords = 6};
    expect_items(q, "dade");
    q.nords = 2;
    expect_items(q, "d");
    q.id = 2;
    expect_items(q, "");
    struct item_ref gone = rows[3].ref;
    c = (struct changes){.gone = &gone, .ngone = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    q.id = 1;
    q.nords = 6;
    expect_items(q, "ae");
}

static void scans_of_items(void)
{
    struct item_row rows[15];
    for (int i = 0; i < 5; i++) {
        rows[3 * i] = (struct item_row){.ref = {.table = ITEM_LIST, .id = 1, .pos = i - 2},
                                        .value = slice_of(&"abcde"[i], 1)};
        rows[3 * i + 1] = (struct item_row){
            .ref = {.table = ITEM_HASH, .id = 1, .name = slice_of(&"abcde"[i], 1)}, .ord = 4 - i};
        rows[3 * i + 2] = (struct item_row){.ref = {.table = ITEM_SET, .id = 1 + i % 2, .name = SLICE("x")}};
    }
    struct changes c = {.items = rows, .nitems = 15};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    const struct item_scan list = {.table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS};
    struct item_scan q = list;
    expect_items(q, "abcde");
    q.reverse = true;
    expect_items(q, "edcba");
    q.has_max = true;
    q.max = 1;
    expect_items(q, "dcba");
    q.has_min = true;
    q.min = -1;
    q.limit = 2;
    expect_items(q, "dc");
    q.reverse = false;
    expect_items(q, "bc");
    q.min = 5;
    expect_items(q, "");
    q = list;
    q.id = 2;
    expect_items(q, "");

    const struct item_scan hash = {.table = ITEM_HASH, .id = 1, .order = ITEMS_BY_NAME};
    q = hash;
    expect_items(q, "abcde");
    q.has_min = q.has_max = true;
    q.min_name = SLICE("b");
    q.max_name = SLICE("d");
    expect_items(q, "bcd");
    q.reverse = true;
    expect_items(q, "dcb");
    q = hash;
    q.order = ITEMS_BY_ORD;
    expect_items(q, "edcba");
    q.has_min = true;
    q.min = 1;
    q.limit = 2;
    expect_items(q, "dc");
    q.reverse = true;
    expect_items(q, "ab");
}

static void scans_by_score(void)
{
    const double scores[] = {-INFINITY, -1.5, -0.0, 2, 2, 2, INFINITY};
    struct item_row rows[7];
    for (int i = 0; i < 7; i++)
        rows[i] =
            (struct item_row){.ref = {.table = ITEM_ZSET, .id = 9, .name = slice_of(&"gfedcba"[6 - i], 1)},
                              .score = scores[i],
                              .ord = i};
    struct changes c = {.items = rows, .nitems = 7};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct rows r = {0};
    for (int i = 0; i < 7; i++)
        CHECK_OK(store_get_items(s, &rows[i].ref, 1, add_item, &r, &err), &err);
    REQUIRE(r.nitems == 7);
    for (int i = 0; i < 7; i++)
        CHECK(memcmp(&r.items[i].score, &scores[i], sizeof(double)) == 0); /* the sign of zero too */
    rows_release(&r);

    const struct item_scan all = {.table = ITEM_ZSET, .id = 9, .order = ITEMS_BY_SCORE};
    struct item_scan q = all;
    expect_items(q, "abcdefg");
    q.reverse = true;
    expect_items(q, "gfedcba");
    q = all;
    q.has_min = q.has_max = true;
    q.min_score = -1.5;
    q.max_score = 2; /* no name: all of that score */
    expect_items(q, "bcdef");
    q.max_name = SLICE("e");
    expect_items(q, "bcde");
    q.min_score = 2;
    q.min_name = SLICE("e");
    expect_items(q, "e");
    q.max_name = (struct slice){NULL, 0};
    expect_items(q, "ef");
    q.reverse = true;
    q.limit = 1;
    expect_items(q, "f");
    /* Up to, but not, the end; behind rows that are skipped. */
    q = all;
    q.has_min = q.has_max = q.below_max = true;
    q.min_score = 2;
    q.min_name = SLICE("d");
    q.max_score = 2;
    q.max_name = SLICE("f");
    expect_items(q, "de");
    expect_count(q, 2);
    q.min_score = -INFINITY;
    q.min_name = SLICE("");
    expect_items(q, "abcde");
    expect_count(q, 5);
    q.skip = 3;
    q.limit = 1;
    expect_items(q, "d");
    q.skip = 0;
    q.limit = 0;
    q.max_name = SLICE("");
    expect_items(q, "abc");
    expect_count(q, 3);
    q = all;
    q.order = ITEMS_BY_NAME;
    q.has_min = true;
    q.min_name = SLICE("f");
    expect_items(q, "fg");
    q = all;
    q.order = ITEMS_BY_ORD;
    expect_items(q, "abcdefg");
}

/* ---- hashes whose fields expire ---- */

/* Hash i has the fields a, b, c; those with a number in expiry[i] expire then. */
static void put_hashes(const int64_t expiry[][3], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct key_row k = {.db = (uint32_t)(i % 2), .key = slice_of(&"pqrst"[i], 1), .type = ROW_HASH};
        struct item_row fields[3];
        k.id = (int64_t)i + 1;
        k.size = 3;
        k.version = 1;
        for (int f = 0; f < 3; f++) {
            int64_t at = expiry[i][f];
            if (at && (k.first_expiry == 0 || at < k.first_expiry))
                k.first_expiry = at;
            fields[f] = (struct item_row){
                .ref = {.table = ITEM_HASH, .id = k.id, .name = slice_of(&"abc"[f], 1)},
                .expire_at = at,
                .ord = f,
            };
        }
        struct changes c = {.keys = &k, .nkeys = 1, .items = fields, .nitems = 3};
        REQUIRE_OK(apply_now(s, &c, &err), &err);
    }
}

static const int64_t field_expiry[][3] = {
    {100, 200, 300}, {100, 0, 300}, {0, 0, 0}, {50, 50, 50}, {400, 300, 200}};

/* The types of the keys p, q, r, s, t at a moment, in order: 'h' or '-'. */
static void expect_types(int64_t now, const char *want)
{
    struct rows r = {0};
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .now = now, .limit = 100};
    char got[8] = "";
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    REQUIRE(r.nkeys == 5);
    for (size_t i = 0; i < 5; i++)
        got[4 - i] = r.keys[i].type == ROW_HASH ? 'h' : '-';
    CHECK_STR(got, want);
    rows_release(&r);
    q = (struct key_scan){.db = 1, .order = KEYS_BY_KEY, .now = now, .limit = 100};
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    REQUIRE(r.nkeys == 2);
    CHECK_EQ(r.keys[1].type == ROW_HASH ? 'h' : '-', want[3]);
    rows_release(&r);
}

static void hashes_end_with_their_fields(void)
{
    put_hashes(field_expiry, 5);
    expect_types(0, "hhhhh");
    expect_types(49, "hhhhh");
    expect_types(50, "hhh-h");
    expect_types(299, "hhh-h");
    expect_types(300, "-hh-h");
    expect_types(INT64_MAX, "-hh--");
    expect_dead(0, 299, 0, 0);
    expect_dead(0, 300, 1, 0);
    expect_dead(0, 400, 2, 0);
    expect_dead(1, 50, 1, 0);
    struct key_row k = {.db = 1, .key = SLICE("s"), .type = ROW_HASH, .version = 2, .expire_at = 1000};
    struct rows r = {0};
    REQUIRE(get_key(s, 1, SLICE("s"), &r));
    k.seq = r.keys[0].seq;
    k.id = r.keys[0].id;
    k.size = 3;
    k.first_expiry = 50;
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    expect_dead(1, 50, 1, 1);
    expect_dead(1, 1000, 1, 1); /* dead twice over, counted once */
    rows_release(&r);
}

static void due_hashes_come_by_their_moment(void)
{
    put_hashes(field_expiry, 5);
    struct rows r = {0};
    struct key_scan q = {.order = KEYS_DUE, .now = 49, .limit = 100};
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, 0);
    q.now = 200;
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    REQUIRE(r.nkeys == 4);
    CHECK_SLICE(r.keys[0].key, SLICE("s"));
    CHECK_EQ(r.keys[0].first_expiry, 50);
    CHECK_EQ(r.keys[0].type, ROW_HASH); /* whatever its fields are */
    CHECK_SLICE(r.keys[3].key, SLICE("t"));
    rows_release(&r);
}

static void fields_by_expiry(void)
{
    put_hashes(field_expiry, 5);
    struct item_scan q = {.table = ITEM_HASH, .id = 5, .order = ITEMS_BY_EXPIRY};
    expect_items(q, "cba");
    q.reverse = true;
    expect_items(q, "abc");
    q = (struct item_scan){
        .table = ITEM_HASH, .id = 5, .order = ITEMS_BY_EXPIRY, .has_min = true, .min = 201};
    expect_items(q, "ba");
    q.has_max = true;
    q.max = 300;
    expect_items(q, "b");
    int64_t n = -1;
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, 1);
    q.min = 0;
    q.max = INT64_MAX;
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, 3);
    q.id = 2;
    expect_items(q, "ac"); /* a field without an expiry is not there */
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, 2);
    q.id = 3;
    CHECK_OK(store_count_items(s, &q, &n, &err), &err);
    CHECK_EQ(n, 0);
}

/* ---- tables ---- */

/* The keys of tables among a number of others, in databases 0 and 1, with a schema each. */
static void put_tables(void)
{
    static const char *const tables[] = {"t2", "t1", "u", "t3"};
    struct key_row k[12];
    for (int i = 0; i < 12; i++)
        k[i] = (struct key_row){.db = (uint32_t)(i % 3 == 2),
                                .key = slice_of(&"abcdefghijkl"[i], 1),
                                .type = i % 2 ? ROW_HASH : ROW_STRING,
                                .id = i % 2 ? 50 + i : 0,
                                .size = i % 2,
                                .first = i % 2,
                                .version = 1};
    for (int i = 0; i < 4; i++)
        k[3 * i] = (struct key_row){.db = i == 3,
                                    .key = slice_str(tables[i]),
                                    .type = ROW_TABLE,
                                    .id = 20 + i,
                                    .value = slice_of(every_byte(), (size_t)(i + 1) * 50),
                                    .version = 1};
    struct changes c = {.keys = k, .nkeys = 12};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
}

static void expect_tables(struct key_scan q, const char *const *want, size_t n)
{
    struct rows r = {0};
    q.order = KEYS_TABLES;
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, n);
    for (size_t i = 0; i < n && i < r.nkeys; i++) {
        CHECK_SLICE(r.keys[i].key, slice_str(want[i]));
        CHECK_EQ(r.keys[i].type, ROW_TABLE);
        CHECK_EQ(r.keys[i].value.n, q.with_value ? (size_t)(r.keys[i].id - 19) * 50 : 0);
    }
    rows_release(&r);
}

static void tables_are_listed(void)
{
    static const char *const first[] = {"t1", "t2", "u"}, *const all_of_them[] = {"t1", "t2", "u", "t3"};
    put_tables();
    for (int with_value = 0; with_value < 2; with_value++) {
        struct key_scan q = {.limit = 100, .with_value = with_value};
        expect_tables(q, first, 3);
        q.prefix = SLICE("t");
        expect_tables(q, first, 2);
        q.prefix = SLICE("");
        q.has_after = true;
        q.after = SLICE("t1");
        expect_tables(q, first + 1, 2);
        q.limit = 1;
        expect_tables(q, first + 1, 1);
        q = (struct key_scan){.db = 1, .limit = 100, .with_value = with_value};
        expect_tables(q, all_of_them + 3, 1);
        q.db = 2;
        expect_tables(q, NULL, 0);
        q.every_db = true;
        expect_tables(q, all_of_them, 4);
        q.limit = 2;
        expect_tables(q, all_of_them, 2);
    }
    struct rows r = {0};
    REQUIRE(get_key(s, 0, SLICE("t2"), &r));
    CHECK_EQ(r.keys[0].id, 20);
    CHECK_EQ(r.keys[0].value.n, 50);
    struct key_row gone = {
        .seq = r.keys[0].seq, .key = SLICE("t2"), .version = 2, .expire_at = EXPIRE_DELETED};
    rows_release(&r);
    REQUIRE_OK(put_key_now(s, &gone, &err), &err);
    static const char *const left[] = {"t1", "u"};
    expect_tables((struct key_scan){.limit = 100}, left, 2);
}

static void expect_due(int64_t now, int64_t after, size_t max, const char *want)
{
    int64_t ids[8];
    char got[8] = "";
    size_t n = 0;
    CHECK_OK(store_due_rows(s, now, after, ids, max, &n, &err), &err);
    CHECK(n <= max);
    for (size_t i = 0; i < n; i++)
        got[i] = (char)('0' + ids[i] - 20);
    CHECK_STR(got, want);
}

static void tables_with_due_rows(void)
{
    put_tables();
    struct item_row rows[8];
    for (int i = 0; i < 8; i++)
        rows[i] = (struct item_row){
            .ref = {.table = ITEM_ROW, .id = 20 + i % 4, .name = i < 4 ? SLICE("a") : SLICE("b")},
            .value = SLICE("[1]"),
            .expire_at = i % 4 == 1 ? 0 : 100 + i};
    struct changes c = {.items = rows, .nitems = 8};
    expect_due(1000, 0, 8, "");
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    expect_due(99, 0, 8, "");
    expect_due(100, 0, 8, "0");
    expect_due(102, 0, 8, "02");
    expect_due(1000, 0, 8, "023"); /* and none whose rows do not expire */
    expect_due(1000, 0, 2, "02");
    expect_due(1000, 20, 8, "23");
    expect_due(1000, 23, 8, "");
}

static void all(void)
{
    CONTRACT(items_come_back);
    CONTRACT(items_are_replaced_and_removed);
    CONTRACT(items_by_their_numbers);
    CONTRACT(scans_of_items);
    CONTRACT(scans_by_score);
    CONTRACT(hashes_end_with_their_fields);
    CONTRACT(due_hashes_come_by_their_moment);
    CONTRACT(fields_by_expiry);
    CONTRACT(tables_are_listed);
    CONTRACT(tables_with_due_rows);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    every_implementation(all);
    return check_done();
}
