/* What store/store.h promises, run over every implementation. What only SQLite's files can do (locks, full
   disks, crashes) is in sqlite_test.c. */
#include <math.h>

#include "contract/fixture.h"
#include "store/fault.h"

static enum status open_plain(struct store **ret, struct error *err)
{
    struct store_options o = options();
    return store_open(&o, ret, err);
}

static enum status open_decorated(struct store **ret, struct error *err)
{
    struct store *inner;
    enum status st = open_plain(&inner, err);
    if (st == ST_OK)
        *ret = fault_new(inner);
    return st;
}

static const struct implementation {
    const char *name;
    enum status (*open)(struct store **ret, struct error *err);
} implementations[] = {
    {"sqlite", open_plain},
    {"sqlite through the fault decorator", open_decorated},
};

static const struct implementation *impl;
static struct store *s;
static struct error err;

static void reopen(void)
{
    store_close(s);
    s = NULL;
    CHECK_OK(impl->open(&s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

/* Every byte, in a string; and strings that something might take for their end. */
static const char *every_byte(void)
{
    static char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    return all;
}

static size_t hostile(struct slice out[8])
{
    out[0] = SLICE("");
    out[1] = SLICE("\0");
    out[2] = SLICE("\0\0");
    out[3] = SLICE("a\0b");
    out[4] = SLICE("\xff\xfe\x80 not UTF-8 \xc3");
    out[5] = SLICE("\xff\xff\xff");
    out[6] = SLICE("' OR 1=1 --%s");
    out[7] = slice_of(every_byte(), 256);
    return 8;
}

/* ---- keys ---- */

static void keys_come_back(void)
{
    struct slice odd[8];
    size_t n = hostile(odd);
    struct key_row k[8];
    for (size_t i = 0; i < n; i++) {
        k[i] = string_row(3, odd[i], odd[n - 1 - i]);
        k[i].version = INT64_MAX - (int64_t)i;
        k[i].expire_at = (int64_t)i * 1000000000000;
    }
    struct changes c = {.keys = k, .nkeys = n};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    for (size_t i = 0; i < n; i++)
        CHECK_SLICE(k[i].key, odd[i]); /* the order of keys is kept */
    reopen();
    for (size_t i = 0; i < n; i++) {
        struct rows r = {0};
        if (get_key(s, 3, odd[i], &r)) {
            CHECK_EQ(r.nkeys, 1);
            CHECK_SLICE(r.keys[0].key, odd[i]);
            CHECK_SLICE(r.keys[0].value, odd[n - 1 - i]);
            CHECK_EQ(r.keys[0].seq, k[i].seq);
            CHECK_EQ(r.keys[0].db, 3);
            CHECK_EQ(r.keys[0].type, ROW_STRING);
            CHECK_EQ(r.keys[0].version, INT64_MAX - (int64_t)i);
            CHECK_EQ(r.keys[0].expire_at, (int64_t)i * 1000000000000);
        } else {
            FAIL("the row is there");
        }
        CHECK(!get_key(s, 2, odd[i], &r));
        rows_release(&r);
    }
}

static void keys_are_asked_in_any_order(void)
{
    struct key_row k[3] = {string_row(0, SLICE("a"), SLICE("1")), string_row(0, SLICE("b"), SLICE("2")),
                           string_row(1, SLICE("a"), SLICE("3"))};
    struct changes c = {.keys = k, .nkeys = 3};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct key_ref refs[] = {{1, SLICE("a")}, {0, SLICE("absent")}, {0, SLICE("b")}, {0, SLICE("a")}};
    struct rows r = {0};
    CHECK_OK(store_get_keys(s, refs, 4, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, 3);
    CHECK_SLICE(r.keys[0].value, SLICE("3"));
    CHECK_SLICE(r.keys[1].value, SLICE("2"));
    CHECK_SLICE(r.keys[2].value, SLICE("1"));
    rows_release(&r);
    r.stop_after = 2;
    CHECK_EQ(store_get_keys(s, refs, 4, add_key, &r, &err), ST_CONFLICT);
    CHECK_EQ(r.nkeys, 2);
    rows_release(&r);
    CHECK_OK(store_get_keys(s, refs, 0, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, 0);
    rows_release(&r);
}

static void updates_keep_the_seq(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("old"));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    int64_t seq = k.seq;
    CHECK(seq > 0);
    k = (struct key_row){.seq = seq,
                         .key = SLICE("k"),
                         .type = ROW_LIST,
                         .id = 77,
                         .size = INT64_MAX,
                         .first = -5,
                         .version = 2,
                         .expire_at = 9};
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    CHECK_EQ(k.seq, seq);
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    CHECK_EQ(r.keys[0].seq, seq);
    CHECK_EQ(r.keys[0].type, ROW_LIST);
    CHECK_EQ(r.keys[0].id, 77);
    CHECK_EQ(r.keys[0].size, INT64_MAX);
    CHECK_EQ(r.keys[0].first, -5);
    CHECK_EQ(r.keys[0].value.n, 0);
    CHECK_EQ(r.keys[0].expire_at, 9);
    rows_release(&r);
    /* A seq that stands for another key, or for none, is caught before it does harm. */
    struct key_row stale = string_row(0, SLICE("other"), SLICE("x"));
    stale.seq = seq;
    CHECK_EQ(put_key_now(s, &stale, &err), ST_INTERNAL);
    stale = string_row(1, SLICE("k"), SLICE("x"));
    stale.seq = seq;
    CHECK_EQ(put_key_now(s, &stale, &err), ST_INTERNAL);
    stale.seq = seq + 1000;
    CHECK_EQ(put_key_now(s, &stale, &err), ST_INTERNAL);
    CHECK(get_key(s, 0, SLICE("k"), &r));
    CHECK_EQ(r.keys[0].version, 2);
    rows_release(&r);
}

static void large_values(void)
{
    size_t n = STORE_INLINE_BYTES;
    char *p = malloc(n);
    memset(p, 'x', n);
    struct key_row k = string_row(0, slice_of(p, n), slice_of(p, n));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    struct rows r = {0};
    CHECK(get_key(s, 0, slice_of(p, n), &r));
    CHECK_SLICE(r.keys[0].value, slice_of(p, n));
    rows_release(&r);
    CHECK(!get_key(s, 0, slice_of(p, n - 1), &r));
    rows_release(&r);
    free(p);
}

/* ---- scans of keys ---- */

static void put_many(uint32_t db, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct key_row k = string_row(db, slice_str(names[i]), slice_str(names[i]));
        CHECK_OK(put_key_now(s, &k, &err), &err);
    }
}

static void scans_newest_first(void)
{
    const char *const names[] = {"c", "a", "d", "b"};
    put_many(0, names, 2);
    put_many(5, names + 2, 1);
    put_many(0, names + 3, 1);
    struct rows r = {0};
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .limit = 2};
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    REQUIRE(r.nkeys == 2);
    CHECK_SLICE(r.keys[0].key, SLICE("b"));
    CHECK_SLICE(r.keys[1].key, SLICE("d")); /* rows of every database */
    CHECK_EQ(r.keys[1].db, 5);
    CHECK_EQ(r.keys[0].value.n, 0); /* not asked for */
    CHECK(r.keys[0].seq > r.keys[1].seq);
    q.seq_below = r.keys[1].seq;
    q.with_value = true;
    q.limit = 100;
    rows_release(&r);
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    REQUIRE(r.nkeys == 2);
    CHECK_SLICE(r.keys[0].value, SLICE("a"));
    CHECK_SLICE(r.keys[1].value, SLICE("c"));
    q.limit = 0;
    rows_release(&r);
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, 0);
    rows_release(&r);
}

static void expect_scan(struct key_scan q, const struct slice *want, size_t n)
{
    struct rows r = {0};
    q.order = KEYS_BY_KEY;
    q.limit = q.limit ? q.limit : 100;
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    CHECK_EQ(r.nkeys, n);
    for (size_t i = 0; i < n && i < r.nkeys; i++)
        CHECK_SLICE(r.keys[i].key, want[i]);
    rows_release(&r);
}

static void scans_by_key(void)
{
    const struct slice sorted[] = {SLICE(""),     SLICE("\0"),       SLICE("a"),           SLICE("a\0"),
                                   SLICE("ab"),   SLICE("abc"),      SLICE("b"),           SLICE("\xc3\xa4"),
                                   SLICE("\xff"), SLICE("\xff\xff"), SLICE("\xff\xff\x01")};
    size_t n = sizeof sorted / sizeof sorted[0];
    for (size_t i = 0; i < n; i++) {
        struct key_row k = string_row(1, sorted[(i * 7) % n], SLICE("v"));
        CHECK_OK(put_key_now(s, &k, &err), &err);
    }
    struct key_row other = string_row(2, SLICE("ab"), SLICE("v"));
    CHECK_OK(put_key_now(s, &other, &err), &err);
    expect_scan((struct key_scan){.db = 1}, sorted, n);
    expect_scan((struct key_scan){.db = 1, .limit = 3}, sorted, 3);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("a")}, sorted + 2, 4);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("ab")}, sorted + 4, 2);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("\xff")}, sorted + 8, 3);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("\xff\xff")}, sorted + 9, 2);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("zzz")}, NULL, 0);
    expect_scan((struct key_scan){.db = 1, .has_after = true, .after = SLICE("")}, sorted + 1, n - 1);
    expect_scan((struct key_scan){.db = 1, .has_after = true, .after = SLICE("ab")}, sorted + 5, n - 5);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("a"), .has_after = true, .after = SLICE("a")},
                sorted + 3, 3);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("ab"), .has_after = true, .after = SLICE("a")},
                sorted + 4, 2);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("a"), .has_after = true, .after = SLICE("b")},
                NULL, 0);
    expect_scan((struct key_scan){.db = 2}, sorted + 4, 1);
    expect_scan((struct key_scan){.db = 9}, NULL, 0);
}

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
    q = all;
    q.order = ITEMS_BY_NAME;
    q.has_min = true;
    q.min_name = SLICE("f");
    expect_items(q, "fg");
    q = all;
    q.order = ITEMS_BY_ORD;
    expect_items(q, "abcdefg");
}

/* ---- transactions ---- */

static void rollback_leaves_nothing(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("1"));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    int64_t first_id;
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, &err), &err);
    struct key_row rows[] = {k, string_row(0, SLICE("new"), SLICE("x"))};
    rows[0].value = SLICE("2");
    struct item_row item = {.ref = {.table = ITEM_SET, .id = 4, .name = SLICE("m")}};
    struct trash_row trash = {4, ROW_SET};
    struct db_row db = {.db = 0, .number = 500, .keys = 9};
    struct changes c = {rows, 2, &item, 1, NULL, 0, &trash, 1, &db, 1};
    CHECK_OK(store_apply(s, &c, &err), &err);
    CHECK_OK(store_reserve_ids(s, 5, &first_id, &err), &err);
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("new"), &r)); /* its own writes are seen */
    CHECK(get_key(s, 0, SLICE("k"), &r));
    CHECK_SLICE(r.keys[1].value, SLICE("2"));
    rows_release(&r);
    store_rollback(s);
    store_rollback(s); /* none running: nothing happens */
    CHECK(!get_key(s, 0, SLICE("new"), &r));
    CHECK(get_key(s, 0, SLICE("k"), &r));
    CHECK_SLICE(r.keys[0].value, SLICE("1"));
    CHECK_OK(store_get_items(s, &item.ref, 1, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 0);
    rows_release(&r);
    struct db_row dbs[DATABASES];
    uint32_t next;
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(dbs[0].number, 0);
    CHECK_EQ(dbs[0].keys, 0);
    CHECK_EQ(next, DATABASES);
    /* And the number that was rolled back is noted when it is used again. */
    c = (struct changes){.dbs = &db, .ndbs = 1};
    CHECK_OK(apply_now(s, &c, &err), &err);
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(next, 501);
}

static void misuse_is_an_error(void)
{
    struct changes none = {0};
    CHECK_EQ(store_apply(s, &none, &err), ST_INTERNAL);
    CHECK_EQ(store_commit(s, &err), ST_INTERNAL);
    REQUIRE_OK(store_begin(s, STORE_READ, NULL, &err), &err);
    store_rollback(s);
    REQUIRE_OK(store_begin(s, STORE_READ, NULL, &err), &err);
    CHECK_OK(store_commit(s, &err), &err); /* a read transaction may end either way */
}

static void databases_are_kept(void)
{
    struct db_row dbs[DATABASES];
    uint32_t next = 0;
    REQUIRE_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(next, DATABASES);
    for (uint32_t i = 0; i < DATABASES; i++) {
        CHECK_EQ(dbs[i].db, i);
        CHECK_EQ(dbs[i].number, i);
        CHECK_EQ(dbs[i].keys, 0);
        CHECK_EQ(dbs[i].expires, 0);
    }
    /* A flush takes a fresh number, a swap exchanges two. */
    struct db_row changed[] = {{0, next, 0, 0}, {3, 4, 10, 1}, {4, 3, 20, 2}};
    struct changes c = {.dbs = changed, .ndbs = 3};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
        CHECK_EQ(next, DATABASES + 1);
        CHECK_EQ(dbs[0].number, DATABASES);
        CHECK_EQ(dbs[3].number, 4);
        CHECK_EQ(dbs[3].keys, 10);
        CHECK_EQ(dbs[4].number, 3);
        CHECK_EQ(dbs[4].expires, 2);
        reopen();
    }
}

static void ids_are_never_given_twice(void)
{
    int64_t a, b, c;
    REQUIRE_OK(store_reserve_ids(s, 100, &a, &err), &err);
    CHECK(a > 0);
    reopen();
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, &err), &err);
    CHECK_OK(store_reserve_ids(s, 1, &b, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    CHECK_EQ(b, a + 100);
    reopen();
    CHECK_OK(store_reserve_ids(s, 1, &c, &err), &err);
    CHECK_EQ(c, b + 1);
}

static void expect_dead(uint32_t db, int64_t now, int64_t want_keys, int64_t want_expires)
{
    int64_t keys = -1, expires = -1;
    CHECK_OK(store_count_dead(s, db, now, &keys, &expires, &err), &err);
    CHECK_EQ(keys, want_keys);
    CHECK_EQ(expires, want_expires);
}

static void counts(void)
{
    const int64_t expiry[] = {0, EXPIRE_DELETED, 100, 200, 300};
    for (uint32_t db = 0; db < 2; db++) {
        for (size_t i = 0; i < 5; i++) {
            struct key_row k = string_row(db, slice_of(&"abcde"[i], 1), SLICE(""));
            k.expire_at = expiry[i];
            k.type = expiry[i] < 0 ? ROW_NONE : ROW_STRING;
            REQUIRE_OK(put_key_now(s, &k, &err), &err);
        }
    }
    int64_t keys = 0, expires = 0;
    expect_dead(1, 99, 0, 0);
    expect_dead(1, 100, 1, 1);
    expect_dead(1, 1000, 3, 3);
    expect_dead(7, 1000, 0, 0);
    CHECK_OK(store_count_keys(s, 1, &keys, &expires, &err), &err);
    CHECK_EQ(keys, 4);
    CHECK_EQ(expires, 3);
    CHECK_OK(store_count_keys(s, 7, &keys, &expires, &err), &err);
    CHECK_EQ(keys, 0);
    CHECK_EQ(expires, 0);
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
            if (at && (k.first == 0 || at < k.first))
                k.first = at;
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
    k.first = 50;
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
    CHECK_EQ(r.keys[0].first, 50);
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

static void info_and_durability(void)
{
    struct store_info info = {0};
    REQUIRE_OK(store_info(s, &info, &err), &err);
    CHECK(info.bytes > 0);
    CHECK(strchr(info.engine, ' ') != NULL);
    const enum durability all[] = {DURABILITY_ALWAYS, DURABILITY_EVERYSEC, DURABILITY_OFF,
                                   DURABILITY_EVERYSEC, DURABILITY_ALWAYS};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        CHECK_OK(store_set_durability(s, all[i], &err), &err);
        struct key_row k = string_row(0, slice_of(&"abcde"[i], 1), SLICE("v"));
        CHECK_OK(put_key_now(s, &k, &err), &err);
        CHECK_OK(store_sync(s, &err), &err);
    }
    reopen();
    int64_t keys, expires;
    CHECK_OK(store_count_keys(s, 0, &keys, &expires, &err), &err);
    CHECK_EQ(keys, 5);
}

/* ---- sweeping ---- */

struct sweep_run {
    struct db_row dbs[DATABASES];
    struct sweep_result total;
    int steps;
    struct rows told;
};

/* Steps of `rows` until there is no more to do. */
static void sweep_all(struct sweep_run *w, int64_t now, uint32_t rows)
{
    uint32_t next;
    struct sweep_result one = {.more = true};
    CHECK_OK(store_load_dbs(s, w->dbs, DATABASES, &next, &err), &err);
    while (one.more && w->steps < 10000) {
        struct sweep_budget b = {
            .now = now, .max_rows = rows, .dbs = w->dbs, .ndbs = DATABASES, .fn = add_key, .arg = &w->told};
        if (store_sweep(s, &b, &one, &err) != ST_OK) {
            CHECK_OK(err.code, &err);
            return;
        }
        CHECK(one.expired + one.deleted + one.items <= rows);
        w->total.expired += one.expired;
        w->total.deleted += one.deleted;
        w->total.items += one.items;
        w->steps++;
    }
    CHECK(!one.more);
    struct db_row stored[DATABASES];
    CHECK_OK(store_load_dbs(s, stored, DATABASES, &next, &err), &err);
    for (int i = 0; i < DATABASES; i++) {
        CHECK_EQ(stored[i].keys, w->dbs[i].keys);
        CHECK_EQ(stored[i].expires, w->dbs[i].expires);
    }
}

static void sweeps_dead_keys(void)
{
    struct key_row k[10];
    for (int i = 0; i < 10; i++) {
        k[i] = string_row((uint32_t)i % 2, slice_of(&"abcdefghij"[i], 1), SLICE("v"));
        k[i].expire_at = i < 5 ? 1000 + i : i < 7 ? EXPIRE_DELETED : i == 7 ? 0 : 5000;
        k[i].type = k[i].expire_at < 0 ? ROW_NONE : ROW_STRING;
    }
    struct db_row dbs[] = {{0, 0, 4, 4}, {1, 1, 4, 3}};
    struct changes c = {.keys = k, .nkeys = 10, .dbs = dbs, .ndbs = 2};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct sweep_run w = {.steps = 0};
    sweep_all(&w, 999, 2);
    CHECK_EQ(w.total.expired, 0);
    CHECK_EQ(w.total.deleted, 2);
    CHECK_EQ(w.told.nkeys, 2);
    sweep_all(&w, 1003, 2);
    CHECK_EQ(w.total.expired, 4);
    CHECK_EQ(w.told.nkeys, 6);
    CHECK_SLICE(w.told.keys[2].key, SLICE("a"));
    CHECK_EQ(w.told.keys[3].db, 1);
    CHECK_EQ(w.dbs[0].keys, 2);
    CHECK_EQ(w.dbs[0].expires, 2);
    CHECK_EQ(w.dbs[1].keys, 2);
    CHECK_EQ(w.dbs[1].expires, 1);
    for (int i = 0; i < 10; i++) {
        struct rows r = {0};
        CHECK_EQ(get_key(s, k[i].db, k[i].key, &r), i == 4 || i > 6);
        rows_release(&r);
    }
    rows_release(&w.told);
}

static void sweeps_items_of_dead_keys(void)
{
    static const enum row_type types[] = {ROW_STRING, ROW_HASH, ROW_LIST, ROW_SET, ROW_ZSET};
    struct key_row k[10];
    struct item_row items[100];
    /* Two collections of each type with ten items each; the first ones expire. */
    for (int i = 0; i < 10; i++) {
        k[i] = (struct key_row){.key = slice_of(&"abcdefghij"[i], 1),
                                .type = types[i / 2],
                                .id = 100 + i,
                                .size = 10,
                                .expire_at = i % 2 ? 0 : 50};
        for (int j = 0; j < 10; j++)
            items[10 * i + j] = (struct item_row){.ref = {.table = (enum item_table)(i / 2),
                                                          .id = 100 + i,
                                                          .name = slice_of(&"0123456789"[j], 1),
                                                          .pos = j},
                                                  .value = SLICE("v"),
                                                  .ord = j};
    }
    struct db_row db = {0, 0, 10, 5};
    struct changes c = {.keys = k, .nkeys = 10, .items = items, .nitems = 100, .dbs = &db, .ndbs = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct sweep_run w = {.steps = 0};
    sweep_all(&w, 50, 3);
    CHECK_EQ(w.total.expired, 5);
    CHECK_EQ(w.total.deleted, 0);
    CHECK_EQ(w.total.items, 50);
    CHECK(w.steps > 15);
    CHECK_EQ(w.dbs[0].keys, 5);
    CHECK_EQ(w.dbs[0].expires, 0);
    for (int i = 0; i < 100; i++) {
        struct rows r = {0};
        CHECK_OK(store_get_items(s, &items[i].ref, 1, add_item, &r, &err), &err);
        CHECK_EQ(r.nitems, (i / 10) % 2);
        rows_release(&r);
    }
    rows_release(&w.told);
}

static void sweeps_trash(void)
{
    struct item_row items[50];
    struct trash_row trash[] = {{7, ROW_LIST}, {8, ROW_LIST}, {9, ROW_SET}};
    for (int i = 0; i < 50; i++)
        items[i] = (struct item_row){.ref = {.table = ITEM_LIST, .id = i < 40 ? 7 : 10, .pos = i}};
    struct changes c = {.items = items, .nitems = 50, .trash = trash, .ntrash = 3};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    REQUIRE_OK(apply_now(s, &c, &err), &err); /* twice in the trash is once */
    struct sweep_run w = {.steps = 0};
    sweep_all(&w, 0, 15);
    CHECK_EQ(w.total.items, 40);
    CHECK_EQ(w.told.nkeys, 0);
    struct rows r = {0};
    struct item_scan q = {.table = ITEM_LIST, .id = 10, .order = ITEMS_BY_POS, .limit = 100};
    CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 10);
    rows_release(&r);
}

static void sweeps_flushed_databases(void)
{
    struct key_row k[40];
    char name[40][16];
    struct item_row item = {.ref = {.table = ITEM_SET, .id = 33, .name = SLICE("m")}};
    for (int i = 0; i < 40; i++) {
        snprintf(name[i], sizeof name[i], "k%d", i);
        k[i] = string_row(i % 2 ? 2 : 3, slice_str(name[i]), SLICE("v"));
        k[i].expire_at = i % 5 ? 0 : 70; /* expired rows of a flushed database count for nobody */
    }
    k[1].type = ROW_SET;
    k[1].id = 33;
    struct trash_row trash = {2, ROW_DB};
    struct db_row dbs[] = {{2, DATABASES, 0, 0}, {3, 3, 20, 4}};
    struct changes c = {k, 40, &item, 1, NULL, 0, &trash, 1, dbs, 2};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct sweep_run w = {.steps = 0};
    sweep_all(&w, 70, 3);
    CHECK_EQ(w.total.deleted, 20);
    CHECK_EQ(w.total.expired, 4);
    CHECK_EQ(w.total.items, 1);
    CHECK_EQ(w.told.nkeys, 4); /* only those of a database in use */
    CHECK_EQ(w.dbs[2].keys, 0);
    CHECK_EQ(w.dbs[3].keys, 16);
    CHECK_EQ(w.dbs[3].expires, 0);
    int64_t keys, expires;
    CHECK_OK(store_count_keys(s, 2, &keys, &expires, &err), &err);
    CHECK_EQ(keys, 0);
    CHECK_OK(store_count_keys(s, 3, &keys, &expires, &err), &err);
    CHECK_EQ(keys, 16);
    rows_release(&w.told);
}

static enum status refuse(void *arg, const struct key_row *k)
{
    (void)arg;
    (void)k;
    return ST_CONFLICT;
}

static void a_failed_sweep_changes_nothing(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("v"));
    k.expire_at = 5;
    struct db_row dbs[DATABASES] = {{0, 0, 1, 1}};
    struct changes c = {.keys = &k, .nkeys = 1, .dbs = dbs, .ndbs = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct sweep_budget b = {.now = 10, .max_rows = 10, .dbs = dbs, .ndbs = 1, .fn = refuse};
    struct sweep_result result;
    CHECK_EQ(store_sweep(s, &b, &result, &err), ST_CONFLICT);
    CHECK_EQ(result.expired, 0);
    CHECK_EQ(dbs[0].keys, 1);
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    rows_release(&r);
    b.fn = NULL;
    b.max_rows = 0;
    CHECK_OK(store_sweep(s, &b, &result, &err), &err);
    CHECK(get_key(s, 0, SLICE("k"), &r));
    rows_release(&r);
    b.max_rows = 1;
    CHECK_OK(store_sweep(s, &b, &result, &err), &err);
    CHECK_EQ(result.expired, 1);
    CHECK(!get_key(s, 0, SLICE("k"), &r));
    CHECK_EQ(dbs[0].keys, 0);
    rows_release(&r);
}

/* ---- the decorator itself ---- */

static void the_nth_call_fails(void)
{
    struct store *f = NULL;
    store_close(s);
    s = NULL;
    new_place();
    REQUIRE_OK(open_decorated(&f, &err), &err);
    s = f;
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fault_set(f, (struct fault){.nth = nth, .status = ST_FULL});
        struct key_row k = string_row(0, SLICE("k"), SLICE("v"));
        CHECK_EQ(put_key_now(f, &k, &err), ST_FULL);
        CHECK_EQ(err.code, ST_FULL);
        CHECK(fault_happened(f));
        CHECK_EQ(fault_calls(f), nth);
        struct rows r = {0};
        CHECK(!get_key(f, 0, SLICE("k"), &r));
        rows_release(&r);
    }
    fault_set(f, (struct fault){.nth = 3, .status = ST_UNKNOWN, .late = true});
    struct key_row k = string_row(0, SLICE("late"), SLICE("v"));
    CHECK_EQ(put_key_now(f, &k, &err), ST_UNKNOWN);
    fault_set(f, (struct fault){.nth = 2, .status = ST_IO, .sticky = true});
    struct rows r = {0};
    CHECK(get_key(f, 0, SLICE("late"), &r));
    rows_release(&r);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(store_begin(f, STORE_WRITE, NULL, &err), ST_IO);
}

/* ---- the suite ---- */

static void contract(const char *name, void (*test)(void))
{
    new_place();
    CHECK_OK(impl->open(&s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    check_run(name, test);
    store_close(s);
    s = NULL;
    leave_place();
}

#define CONTRACT(test) contract(#test, test)

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    for (size_t i = 0; i < sizeof implementations / sizeof implementations[0]; i++) {
        impl = &implementations[i];
        printf("%s\n", impl->name);
        CONTRACT(keys_come_back);
        CONTRACT(keys_are_asked_in_any_order);
        CONTRACT(updates_keep_the_seq);
        CONTRACT(large_values);
        CONTRACT(scans_newest_first);
        CONTRACT(scans_by_key);
        CONTRACT(items_come_back);
        CONTRACT(items_are_replaced_and_removed);
        CONTRACT(scans_of_items);
        CONTRACT(scans_by_score);
        CONTRACT(rollback_leaves_nothing);
        CONTRACT(misuse_is_an_error);
        CONTRACT(databases_are_kept);
        CONTRACT(ids_are_never_given_twice);
        CONTRACT(counts);
        CONTRACT(hashes_end_with_their_fields);
        CONTRACT(due_hashes_come_by_their_moment);
        CONTRACT(fields_by_expiry);
        CONTRACT(info_and_durability);
        CONTRACT(sweeps_dead_keys);
        CONTRACT(sweeps_items_of_dead_keys);
        CONTRACT(sweeps_trash);
        CONTRACT(sweeps_flushed_databases);
        CONTRACT(a_failed_sweep_changes_nothing);
    }
    CONTRACT(the_nth_call_fails);
    return check_done();
}
