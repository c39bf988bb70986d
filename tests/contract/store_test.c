/* What store/store.h promises of keys, transactions and databases. Items are in items_test.c, sweeping is in
   sweep_test.c; what only SQLite's files can do (locks, full disks, crashes) in sqlite_test.c and
   disk_test.c. */
#include "contract/suite.h"

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
            CHECK(same_seq(k[i].seq, r.keys[0].seq));
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
                         .numbers = INT64_MAX - 1,
                         .version = 2,
                         .expire_at = 9};
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    CHECK(same_seq(seq, k.seq)); /* it may be in the table by now */
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    CHECK(same_seq(seq, r.keys[0].seq));
    CHECK_EQ(r.keys[0].type, ROW_LIST);
    CHECK_EQ(r.keys[0].id, 77);
    CHECK_EQ(r.keys[0].size, INT64_MAX);
    CHECK_EQ(r.keys[0].first, -5);
    CHECK_EQ(r.keys[0].numbers, INT64_MAX - 1);
    CHECK_EQ(r.keys[0].value.n, 0);
    CHECK_EQ(r.keys[0].expire_at, 9);
    rows_release(&r);
    if (impl->journaled) /* there it is found out when the row comes into the table, and put right:
                            hard_test.c */
        return;
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

/* From the top down, in pages: every row is met, in the order of the numbers. With a journal rows get another
   number when they come into the table, and may be met again under that. */
static void scans_meet_every_row(void)
{
    char name[40][8];
    bool met[40] = {false};
    for (int i = 0; i < 40; i++) {
        snprintf(name[i], sizeof name[i], "%02d", i * 7 % 40);
        const char *const one = name[i];
        put_many((uint32_t)i % 3, &one, 1);
    }
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .limit = 3};
    for (int page = 0; page < 40 && q.seq_below; page++) {
        struct rows r = {0};
        CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
        for (size_t i = 0; i < r.nkeys; i++) {
            CHECK(r.keys[i].seq < q.seq_below);
            q.seq_below = r.keys[i].seq;
            if (r.keys[i].key.n == 2)
                met[(r.keys[i].key.p[0] - '0') * 10 + r.keys[i].key.p[1] - '0'] = true;
        }
        if (r.nkeys == 0)
            q.seq_below = 0;
        rows_release(&r);
        const char *const more = "more"; /* rows that come meanwhile change nothing */
        if (page % 4 == 0)
            put_many(100 + (uint32_t)page, &more, 1);
    }
    CHECK_EQ(q.seq_below, 0);
    for (int i = 0; i < 40; i++)
        CHECK(met[i]);
}

static void scans_newest_first(void)
{
    const char *const names[] = {"c", "a", "d", "b"};
    put_many(0, names, 2);
    put_many(5, names + 2, 1);
    put_many(0, names + 3, 1);
    if (impl->journaled) /* rows that come into the table together are numbered by key */
        return;
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

/* Every range of names, long ones that begin alike among them, as a page at a time finds them in either
   direction. */
static void scans_ranges_both_ways(void)
{
    enum { LONG = 5, NAMES_ = 9 };
    static char text[LONG][1040];
    struct slice sorted[NAMES_] = {SLICE("a"), SLICE("ab")};
    for (size_t i = 0; i < LONG; i++) { /* one is short enough to be in an index as it is */
        memset(text[i], 'b', sizeof text[i]);
        text[i][993] = (char)('0' + i);
        sorted[2 + i] = slice_of(text[i], i == 2 ? 996 : sizeof text[i]);
    }
    sorted[7] = SLICE("c");
    sorted[8] = SLICE("\xff");
    for (size_t i = 0; i < NAMES_; i++) {
        struct key_row k = string_row(1, sorted[(i * 5) % NAMES_], SLICE("v"));
        CHECK_OK(put_key_now(s, &k, &err), &err);
    }
    for (size_t from = 0; from < NAMES_; from++) {
        for (size_t to = from; to <= NAMES_; to++) {
            struct slice backwards[NAMES_];
            struct key_scan q = {.db = 1, .from = sorted[from], .has_before = to < NAMES_};
            q.before = q.has_before ? sorted[to] : SLICE("");
            for (size_t i = from; i < to; i++)
                backwards[to - 1 - i] = sorted[i];
            for (uint32_t limit = 1; limit <= 4; limit += 3) {
                size_t n = to - from < limit ? to - from : limit;
                q.limit = limit;
                q.reverse = false;
                expect_scan(q, sorted + from, n);
                q.reverse = true;
                expect_scan(q, backwards, n);
            }
        }
    }
}

/* Many of the same moment, in two databases: from each of them on, a scan finds those behind it. */
static void scans_expired_behind_a_place(void)
{
    for (int i = 0; i < 12; i++) {
        char name[8];
        int n = snprintf(name, sizeof name, "k%d", i * 5 % 12);
        struct key_row k = string_row(1 + (uint32_t)i % 2, slice_of(name, (size_t)n), SLICE("v"));
        k.expire_at = i < 8 ? 5 : 5 + i / 3;
        CHECK_OK(put_key_now(s, &k, &err), &err);
    }
    struct key_scan q = {.order = KEYS_EXPIRED, .now = 7, .limit = 100};
    struct rows all = {0};
    CHECK_OK(store_scan_keys(s, &q, add_key, &all, &err), &err);
    CHECK_EQ(all.nkeys, 9);
    q.has_behind = true;
    for (size_t i = 0; i < all.nkeys; i++) {
        for (q.limit = 1; q.limit <= 100; q.limit += 3) {
            size_t left = all.nkeys - 1 - i, want = left < q.limit ? left : q.limit;
            struct rows r = {0};
            q.behind = (struct expiry_place){all.keys[i].expire_at, all.keys[i].db, all.keys[i].seq};
            CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
            CHECK_EQ(r.nkeys, want);
            for (size_t j = 0; j < r.nkeys && j < want; j++)
                CHECK_SLICE(r.keys[j].key, all.keys[i + 1 + j].key);
            rows_release(&r);
        }
    }
    rows_release(&all);
    q.behind.expire_at = 8;
    CHECK_OK(store_scan_keys(s, &q, add_key, &all, &err), &err);
    CHECK_EQ(all.nkeys, 0);
    rows_release(&all);
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
    expect_scan((struct key_scan){.db = 1, .from = SLICE("a\0")}, sorted + 3, n - 3);
    expect_scan((struct key_scan){.db = 1, .from = SLICE("aa"), .has_before = true, .before = SLICE("b")},
                sorted + 4, 2);
    expect_scan((struct key_scan){.db = 1, .has_before = true, .before = SLICE("")}, NULL, 0);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("\xff"), .from = SLICE("\xff\xff")}, sorted + 9,
                2);
    expect_scan((struct key_scan){.db = 1, .prefix = SLICE("a"), .has_before = true, .before = SLICE("z")},
                sorted + 2, 4);
}

static void scans_what_has_expired(void)
{
    static const struct {
        const char *name;
        uint32_t db;
        int64_t expire_at;
    } rows[] = {{"c", 0, 30}, {"never", 0, 0}, {"a", 7, 10}, {"deleted", 0, EXPIRE_DELETED},
                {"b", 0, 20}, {"d", 3, 40},    {"e", 0, 41}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct key_row k = string_row(rows[i].db, slice_str(rows[i].name), slice_str(rows[i].name));
        k.expire_at = rows[i].expire_at;
        k.type = k.expire_at < 0 ? ROW_NONE : ROW_STRING;
        REQUIRE_OK(put_key_now(s, &k, &err), &err);
    }
    static const struct {
        int64_t now;
        uint32_t limit;
        const char *want;
    } cases[] = {{9, 9, ""}, {10, 9, "a"}, {40, 9, "abcd"}, {40, 2, "ab"}, {40, 0, ""}, {1000, 9, "abcde"}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        struct key_scan q = {
            .order = KEYS_EXPIRED, .now = cases[i / 2].now, .limit = cases[i / 2].limit, .with_value = i % 2};
        struct rows r = {0};
        CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
        CHECK_EQ(r.nkeys, strlen(cases[i / 2].want));
        for (size_t j = 0; j < r.nkeys && cases[i / 2].want[j]; j++) {
            CHECK_SLICE(r.keys[j].key, slice_of(&cases[i / 2].want[j], 1));
            CHECK_SLICE(r.keys[j].value, q.with_value ? r.keys[j].key : SLICE(""));
            CHECK_EQ(r.keys[j].type, ROW_STRING);
        }
        rows_release(&r);
    }
}

/* Whoever has seen enough says so, and nothing has failed. */
static void a_read_ends_early(void)
{
    struct key_row k[3] = {string_row(0, SLICE("a"), SLICE("1")), string_row(0, SLICE("b"), SLICE("2")),
                           string_row(0, SLICE("c"), SLICE("3"))};
    struct item_row i[3] = {{.ref = {ITEM_LIST, .id = 1, .pos = 0}, .value = SLICE("x")},
                            {.ref = {ITEM_LIST, .id = 1, .pos = 1}, .value = SLICE("y")},
                            {.ref = {ITEM_LIST, .id = 1, .pos = 2}, .value = SLICE("z")}};
    struct changes first = {.keys = k, .nkeys = 2, .items = i, .nitems = 2};
    struct changes second = {.keys = k + 2, .nkeys = 1, .items = i + 2, .nitems = 1};
    REQUIRE_OK(apply_now(s, &first, &err), &err);
    REQUIRE_OK(apply_now(s, &second, &err), &err);
    struct key_ref keys[] = {{0, SLICE("c")}, {0, SLICE("b")}, {0, SLICE("a")}};
    struct item_ref items[] = {i[2].ref, i[1].ref, i[0].ref};
    struct key_scan all_keys = {.order = KEYS_BY_KEY, .limit = 9};
    struct item_scan all_items = {.table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS, .limit = 9};
    for (size_t n = 1; n <= 3; n++) {
        struct rows r[4];
        for (int j = 0; j < 4; j++)
            r[j] = (struct rows){.stop_after = n, .stop_with = ST_STOP};
        CHECK_OK(store_get_keys(s, keys, 3, add_key, &r[0], &err), &err);
        CHECK_OK(store_scan_keys(s, &all_keys, add_key, &r[1], &err), &err);
        CHECK_OK(store_get_items(s, items, 3, add_item, &r[2], &err), &err);
        CHECK_OK(store_scan_items(s, &all_items, add_item, &r[3], &err), &err);
        for (int j = 0; j < 4; j++) {
            CHECK_EQ(r[j].nkeys + r[j].nitems, n);
            rows_release(&r[j]);
        }
    }
}

/* ---- transactions ---- */

static void rollback_leaves_nothing(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("1"));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    int64_t first_id;
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    struct key_row rows[] = {k, string_row(0, SLICE("new"), SLICE("x"))};
    rows[0].value = SLICE("2");
    struct item_row item = {.ref = {.table = ITEM_SET, .id = 4, .name = SLICE("m")}};
    struct trash_row trash = {4, ROW_SET};
    struct db_row db = {.db = 0, .number = 500, .keys = 9};
    struct changes c = {.keys = rows,
                        .nkeys = 2,
                        .items = &item,
                        .nitems = 1,
                        .trash = &trash,
                        .ntrash = 1,
                        .dbs = &db,
                        .ndbs = 1};
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

/* What came behind a mark is taken back, what came before it stays, and what comes after that as well. */
static void a_transaction_goes_back_to_its_mark(void)
{
    struct key_row k = string_row(0, SLICE("k"), SLICE("1"));
    REQUIRE_OK(put_key_now(s, &k, &err), &err);
    int64_t ids[2];
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    struct key_row first = string_row(0, SLICE("first"), SLICE("x"));
    struct item_row item = {.ref = {.table = ITEM_SET, .id = 4, .name = SLICE("m")}};
    struct changes before = {.keys = &first, .nkeys = 1, .items = &item, .nitems = 1};
    struct rows r = {0};
    CHECK_OK(store_apply(s, &before, &err), &err);
    CHECK(!get_key(s, 0, SLICE("new"), &r)); /* a shared store has locked them from here on */
    CHECK(get_key(s, 0, SLICE("k"), &r));
    for (int i = 0; i < 2; i++) {
        struct key_row rows[] = {k, string_row(0, SLICE("new"), SLICE("x"))};
        struct item_row other = {.ref = {.table = ITEM_SET, .id = 4, .name = SLICE("n")}};
        struct trash_row trash = {4, ROW_SET};
        rows[0].value = SLICE("2");
        struct changes behind = {.keys = rows,
                                 .nkeys = 2,
                                 .items = &other,
                                 .nitems = 1,
                                 .gone = &item.ref,
                                 .ngone = 1,
                                 .trash = &trash,
                                 .ntrash = 1};
        CHECK_OK(store_mark(s, &err), &err);
        CHECK_OK(store_apply(s, &behind, &err), &err);
        CHECK_OK(store_reserve_ids(s, 5, &ids[i], &err), &err);
        CHECK(get_key(s, 0, SLICE("new"), &r));
        REQUIRE_OK(store_undo(s, &err), &err);
        rows_release(&r);
        CHECK(!get_key(s, 0, SLICE("new"), &r));
        REQUIRE(get_key(s, 0, SLICE("k"), &r));
        CHECK_SLICE(r.keys[0].value, SLICE("1"));
        CHECK_OK(store_get_items(s, &item.ref, 1, add_item, &r, &err), &err);
        CHECK_OK(store_get_items(s, &other.ref, 1, add_item, &r, &err), &err);
        CHECK_EQ(r.nitems, 1);
        rows_release(&r);
    }
    struct key_row last = string_row(0, SLICE("last"), SLICE("y"));
    struct changes after = {.keys = &last, .nkeys = 1};
    CHECK_OK(store_apply(s, &after, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    REQUIRE(get_key(s, 0, SLICE("first"), &r) && get_key(s, 0, SLICE("last"), &r));
    REQUIRE(get_key(s, 0, SLICE("k"), &r) && !get_key(s, 0, SLICE("new"), &r));
    CHECK_SLICE(r.keys[2].value, SLICE("1"));
    CHECK_OK(store_get_items(s, &item.ref, 1, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, 1);
    rows_release(&r);
}

/* Of a shared store a key that was locked since may be another server's: that is a conflict, and when it is
   run again the key is locked first. */
static void a_key_that_was_locked_since_is_a_conflict(void)
{
    struct rows r = {0};
    struct key_row k = string_row(0, SLICE("k"), SLICE("1"));
    struct changes c = {.keys = &k, .nkeys = 1};
    for (int i = 0; store_shared(s) && i < 2; i++) {
        k.seq = 0;
        REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
        CHECK_OK(store_mark(s, &err), &err);
        CHECK(!get_key(s, 0, SLICE("k"), &r));
        CHECK_OK(store_apply(s, &c, &err), &err);
        CHECK_EQ(store_undo(s, &err), i == 0 ? ST_CONFLICT : ST_OK);
        if (i == 0)
            store_rollback(s);
        else
            CHECK_OK(store_commit(s, &err), &err);
    }
    CHECK(!get_key(s, 0, SLICE("k"), &r));
}

static void misuse_is_an_error(void)
{
    struct changes none = {0};
    CHECK_EQ(store_apply(s, &none, &err), ST_INTERNAL);
    CHECK_EQ(store_commit(s, &err), ST_INTERNAL);
    REQUIRE_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
    store_rollback(s);
    REQUIRE_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
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
    /* A flush takes a fresh number, a swap exchanges two. Where keys are counted there is one. */
    struct db_row changed[] = {{0, next, 0, 0}, {3, 4, 10, 1}, {4, 3, 20, 2}};
    struct key_row k = string_row(4, SLICE("k"), SLICE("v"));
    struct changes c = {.dbs = changed, .ndbs = 3, .keys = &k, .nkeys = 1};
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
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    CHECK_OK(store_reserve_ids(s, 1, &b, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    CHECK_EQ(b, a + 100);
    reopen();
    CHECK_OK(store_reserve_ids(s, 1, &c, &err), &err);
    CHECK_EQ(c, b + 1);
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
        store_fault_set(f, (struct store_fault){.nth = nth, .status = ST_FULL});
        struct key_row k = string_row(0, SLICE("k"), SLICE("v"));
        CHECK_EQ(put_key_now(f, &k, &err), ST_FULL);
        CHECK_EQ(err.code, ST_FULL);
        CHECK(fault_happened(f));
        CHECK_EQ(fault_calls(f), nth);
        struct rows r = {0};
        CHECK(!get_key(f, 0, SLICE("k"), &r));
        rows_release(&r);
    }
    store_fault_set(f, (struct store_fault){.nth = 3, .status = ST_UNKNOWN, .late = true});
    struct key_row k = string_row(0, SLICE("late"), SLICE("v"));
    CHECK_EQ(put_key_now(f, &k, &err), ST_UNKNOWN);
    store_fault_set(f, (struct store_fault){.nth = 2, .status = ST_IO, .sticky = true});
    struct rows r = {0};
    CHECK(get_key(f, 0, SLICE("late"), &r));
    rows_release(&r);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(store_begin(f, STORE_WRITE, NULL, NULL, &err), ST_IO);
}

static void all(void)
{
    CONTRACT(keys_come_back);
    CONTRACT(keys_are_asked_in_any_order);
    CONTRACT(updates_keep_the_seq);
    CONTRACT(large_values);
    CONTRACT(scans_meet_every_row);
    CONTRACT(scans_newest_first);
    CONTRACT(scans_by_key);
    CONTRACT(scans_ranges_both_ways);
    CONTRACT(scans_expired_behind_a_place);
    CONTRACT(scans_what_has_expired);
    CONTRACT(a_read_ends_early);
    CONTRACT(rollback_leaves_nothing);
    CONTRACT(a_transaction_goes_back_to_its_mark);
    CONTRACT(a_key_that_was_locked_since_is_a_conflict);
    CONTRACT(misuse_is_an_error);
    CONTRACT(databases_are_kept);
    CONTRACT(ids_are_never_given_twice);
    CONTRACT(counts);
    CONTRACT(info_and_durability);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    every_implementation(all);
    CONTRACT(the_nth_call_fails);
    return check_done();
}
