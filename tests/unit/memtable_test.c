/* Rows in memory: states, undoing, leaving, orders, and handing them out. What scans see of them together
   with the tables is in contract/merge_test.c. */
#include <math.h>
#include <pthread.h>

#include "check.h"
#include "memtable/memtable.h"
#include "store/order.h"

static struct memtable *m;

static void put(const char *key, int64_t seq, const char *value, bool fresh)
{
    struct key_row k = {.seq = seq, .key = slice_str(key), .type = ROW_STRING, .value = slice_str(value)};
    memtable_put_key(m, &k, fresh, seq);
}

static void drop(const char *key, int64_t seq)
{
    struct key_row k = {.seq = seq, .key = slice_str(key), .version = 7};
    memtable_put_key(m, &k, false, seq);
}

static const char *value_of(const char *key)
{
    static char text[64];
    struct mem_key k;
    if (!memtable_key(m, 0, slice_str(key), &k))
        return "(none)";
    if (k.row.type == ROW_NONE)
        return "(gone)";
    snprintf(text, sizeof text, "%.*s", (int)k.row.value.n, k.row.value.p);
    return text;
}

static struct mem_key state_of(const char *key)
{
    struct mem_key k = {.row.seq = -1};
    CHECK(memtable_key(m, 0, slice_str(key), &k));
    return k;
}

static void put_member(int64_t id, const char *name, double score, int64_t ord)
{
    struct item_row i = {
        .ref = {.table = ITEM_ZSET, .id = id, .name = slice_str(name)}, .score = score, .ord = ord};
    memtable_put_item(m, &i, true, 1);
}

static void del_member(int64_t id, const char *name)
{
    struct item_ref ref = {.table = ITEM_ZSET, .id = id, .name = slice_str(name)};
    memtable_del_item(m, &ref, 1);
}

/* The names that a walk hands out, one after the other. */
static const char *walked(struct item_scan q)
{
    static char text[256];
    struct mem_walk w;
    struct mem_item i;
    size_t n = 0;
    memtable_walk_items(m, &q, &w);
    text[0] = '\0';
    while (mem_walk_item(&w, &i))
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)i.row.ref.name.n, i.row.ref.name.p);
    return text;
}

static const char *walked_keys(struct key_scan q)
{
    static char text[256];
    struct mem_walk w;
    struct mem_key k;
    size_t n = 0;
    memtable_walk_keys(m, &q, &w);
    text[0] = '\0';
    while (mem_walk_key(&w, &k))
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", (int)k.row.key.n, k.row.key.p);
    return text;
}

/* ---- states ---- */

static void the_last_state_counts(void)
{
    CHECK(!memtable_has_keys(m));
    CHECK(!memtable_has_key(m, 0, SLICE("k")));
    put("k", 5, "one", true);
    struct mem_key before = state_of("k");
    put("k", 5, "two", false);
    CHECK_STR(value_of("k"), "two");
    CHECK_SLICE(before.row.value, SLICE("one")); /* stays what it was until the change is settled */
    CHECK(state_of("k").fresh);                  /* what is known decides */
    CHECK(!memtable_has_key(m, 1, SLICE("k")));
    CHECK_EQ(memtable_stats(m).rows, 1);
    drop("k", 5);
    CHECK_STR(value_of("k"), "(gone)");
    struct mem_key k = state_of("k");
    CHECK_EQ(k.row.seq, 5);
    CHECK_EQ(k.row.version, 7);
    CHECK_EQ(k.row.expire_at, EXPIRE_DELETED);
    CHECK_EQ(k.row.ticket, 5);
    CHECK_EQ(memtable_stats(m).rows, 1);
}

static void items_of_every_table(void)
{
    for (int t = 0; t < ITEM_TABLES; t++) {
        struct item_row i = {.ref = {.table = (enum item_table)t, .id = 9, .name = SLICE("n"), .pos = -3},
                             .value = SLICE("v"),
                             .score = -0.0,
                             .expire_at = 4,
                             .ord = 2};
        memtable_put_item(m, &i, false, 11);
        struct mem_item found;
        REQUIRE(memtable_item(m, &i.ref, &found));
        CHECK(memtable_has_items(m, i.ref.table, 9));
        CHECK(!memtable_has_items(m, i.ref.table, 8));
        CHECK_SLICE(found.row.value, SLICE("v"));
        CHECK(signbit(found.row.score));
        CHECK_EQ(found.row.expire_at, 4);
        CHECK_EQ(found.row.ord, 2);
        CHECK_EQ(found.ticket, 11);
        CHECK(!found.fresh && !found.gone);
        memtable_del_item(m, &i.ref, 12);
        CHECK(memtable_item(m, &i.ref, &found) && found.gone && found.ticket == 12);
        i.ref.name = SLICE("other");
        i.ref.pos = 4;
        CHECK(!memtable_has_item(m, &i.ref));
    }
    CHECK_EQ(memtable_stats(m).rows, ITEM_TABLES);
}

/* Numbers are packed: each comes back as it was, however far it is from those of the first row. */
static void numbers_of_any_size(void)
{
    const int64_t some[] = {0,
                            1,
                            255,
                            256,
                            UINT32_MAX,
                            (int64_t)1 << 32,
                            -1,
                            -300,
                            INT64_MAX,
                            INT64_MIN,
                            1790000000000,
                            1790000000000000,
                            70000,
                            1790000001,
                            4000000000,
                            INT64_MAX - 1,
                            2};
    const int n = (int)(sizeof some / sizeof some[0]);
    char name[16];
    for (int base = 0; base < n; base++) {
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "%d", i);
            struct key_row k = {.seq = some[(i + 1) % n] & INT64_MAX,
                                .db = (uint32_t)some[(i + 2) % n],
                                .key = slice_str(name),
                                .type = i % 2 ? ROW_HASH : ROW_STRING,
                                .id = some[(i + 3) % n],
                                .size = some[(i + 4) % n],
                                .first = some[(i + 5) % n],
                                .numbers = some[(i + 6) % n],
                                .value = slice_of(name, i % 3 ? 0 : 1),
                                .version = some[(base + i) % n],
                                .expire_at = some[(i + 7) % n]};
            struct item_row f = {.ref = {.table = i % 2 ? ITEM_LIST : ITEM_ZSET, .id = k.seq, .pos = some[i]},
                                 .value = slice_str(name),
                                 .score = (double)some[i],
                                 .expire_at = k.expire_at,
                                 .ord = some[(i + 1) % n]};
            memtable_put_key(m, &k, i % 2, 7 + i);
            memtable_put_item(m, &f, true, 7 + i);
            struct mem_key got;
            REQUIRE(memtable_key(m, k.db, k.key, &got));
            k.ticket = 7 + i;
            CHECK(got.row.seq == k.seq && got.row.db == k.db && got.row.type == k.type && got.row.id == k.id);
            CHECK(got.row.size == k.size && got.row.first == k.first && got.row.version == k.version);
            CHECK(got.row.expire_at == k.expire_at && got.row.ticket == k.ticket && got.fresh == (i % 2));
            CHECK_EQ(got.row.numbers, k.numbers);
            CHECK_SLICE(got.row.key, k.key);
            CHECK_SLICE(got.row.value, k.value);
            struct mem_item item;
            REQUIRE(memtable_item(m, &f.ref, &item));
            CHECK(item.row.score == f.score && item.row.expire_at == f.expire_at && item.row.ord == f.ord);
            CHECK(item.ticket == 7 + i && item.row.ref.id == f.ref.id);
            CHECK(item.row.ref.pos == (i % 2 ? f.ref.pos : 0));
            CHECK_SLICE(item.row.value, f.value);
        }
        memtable_undo(m, 0);
    }
}

/* A row that is set again and again takes the memory of its last states; so do values of any size. */
static void a_row_that_is_set_again_takes_no_more(void)
{
    static char value[200000];
    const size_t sizes[] = {0, 5, 64, 700, 2100, 5000, 60000, 65537, sizeof value};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t warm = 0;
        for (int i = 0; i < 3000; i++) {
            struct key_row k = {.seq = 1, .key = SLICE("hot"), .type = ROW_STRING};
            k.value = slice_of(value, sizes[s]);
            value[0] = (char)i;
            memtable_put_key(m, &k, true, i + 1);
            put_member(1, "m", i % 13, 0);
            if (i % 10 == 9)
                memtable_settle(m, memtable_mark(m));
            if (i == 30)
                warm = memtable_stats(m).bytes;
        }
        CHECK(memtable_stats(m).bytes <= warm);
        struct mem_key k = state_of("hot");
        CHECK_SLICE(k.row.value, slice_of(value, sizes[s]));
    }
    /* What is in flight can still be taken back to the last settled state. */
    mem_mark mark = memtable_mark(m);
    for (int i = 0; i < 100; i++)
        put("hot", 1, i % 2 ? "x" : "a longer value", true);
    memtable_undo(m, mark);
    CHECK_EQ(state_of("hot").row.value.n, sizeof value);
    put("hot", 1, "small", true);
    memtable_settle(m, memtable_mark(m));
    CHECK_STR(value_of("hot"), "small");
    CHECK(memtable_stats(m).bytes < 2 << 20); /* large values are given back at once */
}

static void large_values_and_many_rows(void)
{
    size_t n = 3 << 20;
    char *big = malloc(n);
    memset(big, 'x', n);
    struct key_row k = {.seq = 1, .key = SLICE("big"), .type = ROW_STRING, .value = slice_of(big, n)};
    memtable_put_key(m, &k, true, 1);
    char key[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "key:%d", i);
        put(key, i + 2, key, true);
    }
    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "key:%d", i);
        CHECK_STR(value_of(key), key);
    }
    CHECK_SLICE(state_of("big").row.value, slice_of(big, n));
    CHECK_STR(value_of("key:20000"), "(none)");
    struct memtable_stats st = memtable_stats(m);
    CHECK_EQ(st.rows, 20001);
    CHECK_EQ(st.peak, 20001);
    CHECK(st.bytes > n + 20000 * 16 && st.bytes < n + 20000 * 180);
    memtable_undo(m, 0);
    st = memtable_stats(m);
    CHECK_EQ(st.rows, 0);
    CHECK_EQ(st.peak, 20001);
    CHECK(st.bytes < 2 << 20);
    free(big);
}

/* ---- undoing and leaving ---- */

static void changes_are_taken_back(void)
{
    struct db_row d = {.db = 2, .number = 7, .keys = 1};
    put("a", 1, "1", true);
    put_member(4, "m", 1, 0);
    memtable_put_db(m, &d);
    memtable_put_next_id(m, 100);
    mem_mark mark = memtable_mark(m);
    put("a", 1, "2", true);
    put("b", 2, "1", true);
    drop("a", 1);
    put_member(4, "m", 2, 0);
    put_member(4, "n", 3, 1);
    put_member(5, "o", 3, 1);
    del_member(4, "m");
    d.keys = 2;
    memtable_put_db(m, &d);
    memtable_put_next_id(m, 200);
    memtable_add_trash(m, &(struct trash_row){1, ROW_SET});
    CHECK_EQ(memtable_db(m, 2)->keys, 2);
    CHECK(!memtable_db(m, 1));
    CHECK_EQ(memtable_next_id(m), 200);
    memtable_undo(m, mark);
    CHECK_STR(value_of("a"), "1");
    CHECK_STR(value_of("b"), "(none)");
    CHECK_STR(walked((struct item_scan){.table = ITEM_ZSET, .id = 4, .order = ITEMS_BY_SCORE}), "m");
    CHECK(!memtable_has_items(m, ITEM_ZSET, 5));
    CHECK_EQ(memtable_db(m, 2)->keys, 1);
    CHECK_EQ(memtable_next_id(m), 100);
    CHECK_EQ(memtable_stats(m).rows, 2);
    memtable_undo(m, mark); /* nothing more */
    CHECK_STR(value_of("a"), "1");
    memtable_settle(m, mark);
    put("c", 3, "1", true);
    memtable_undo(m, mark);
    CHECK_STR(value_of("c"), "(none)");
}

static void what_was_applied_leaves(void)
{
    mem_mark from = memtable_mark(m);
    put("a", 1, "1", true);
    put("b", 2, "1", true);
    put("b", 2, "2", true);
    put_member(4, "m", 1, 0);
    memtable_add_trash(m, &(struct trash_row){1, ROW_SET});
    memtable_put_next_id(m, 9);
    mem_mark to = memtable_mark(m);
    put("b", 2, "3", true);
    put("c", 3, "1", true);
    memtable_leave(m, from, to);
    CHECK_STR(value_of("a"), "(none)");
    CHECK_STR(value_of("b"), "3");
    CHECK(!state_of("b").fresh); /* the tables have it by now */
    CHECK(state_of("c").fresh);
    CHECK(!memtable_has_items(m, ITEM_ZSET, 4));
    CHECK_EQ(memtable_next_id(m), 0);
    CHECK_EQ(memtable_stats(m).rows, 2);
    /* Undone, it is what the tables have, which is nothing that this table knows. */
    memtable_undo(m, to);
    CHECK_STR(value_of("b"), "(none)");
    CHECK_STR(value_of("c"), "(none)");
    CHECK_EQ(memtable_stats(m).rows, 0);
    put("d", 4, "1", false);
    memtable_leave(m, to, memtable_mark(m));
    CHECK(!memtable_has_keys(m));
    CHECK_EQ(memtable_stats(m).rows, 0);
    CHECK_EQ(memtable_stats(m).peak, 4);
}

/* Also rows whose changes were settled before; those changed since stay, in whatever state. */
static void what_was_settled_leaves_too(void)
{
    put("a", 1, "1", true);
    put("b", 2, "1", true);
    put_member(4, "m", 1, 0);
    memtable_settle(m, memtable_mark(m));
    put("c", 3, "1", true);
    mem_mark to = memtable_mark(m);
    put("b", 2, "2", true);
    put("b", 2, "3", true);
    put_member(4, "n", 2, 1);
    memtable_leave(m, 0, to);
    CHECK_STR(value_of("a"), "(none)");
    CHECK_STR(value_of("c"), "(none)");
    CHECK_STR(value_of("b"), "3");
    CHECK(!state_of("b").fresh);
    CHECK_STR(walked((struct item_scan){.table = ITEM_ZSET, .id = 4, .order = ITEMS_BY_SCORE}), "n");
    memtable_undo(m, to + 1);
    CHECK_STR(value_of("b"), "2");
    CHECK(!state_of("b").fresh); /* the tables have a row, whatever it was made with */
    memtable_undo(m, to);
    CHECK(memtable_stats(m).empty);
}

static void leaving_goes_on_for_ever(void)
{
    char key[32];
    for (int round = 0; round < 200; round++) {
        mem_mark from = memtable_mark(m);
        for (int i = 0; i < 50; i++) {
            snprintf(key, sizeof key, "%d", (round * 31 + i) % 120);
            put(key, 1 + (round * 31 + i) % 120, "v", true);
            put_member(i % 3, key, i, i);
        }
        CHECK(walked_keys((struct key_scan){.order = KEYS_BY_KEY})[0]);
        memtable_settle(m, memtable_mark(m));
        memtable_leave(m, from, memtable_mark(m));
        CHECK_EQ(memtable_stats(m).rows, 0);
        CHECK(memtable_stats(m).bytes < 1 << 20);
    }
}

static void memory_is_used_again(void)
{
    char key[32];
    size_t most = 0;
    for (int round = 0; round < 60; round++) {
        int rows = round < 3 ? 20000 : 100;
        for (int i = 0; i < rows; i++) {
            snprintf(key, sizeof key, "%d:%d", round, i);
            put(key, i + 1, key, true);
            put_member(i, key, i, i);
        }
        CHECK_EQ(memtable_stats(m).rows, 2 * rows);
        CHECK(strlen(walked((struct item_scan){.table = ITEM_ZSET, .id = 7, .order = ITEMS_BY_SCORE})) > 0);
        memtable_add_trash(m, &(struct trash_row){1, ROW_SET});
        memtable_put_next_id(m, 5);
        struct memtable_stats st = memtable_stats(m);
        most = st.bytes > most ? st.bytes : most;
        CHECK(st.bytes + st.spare <= most + ((size_t)2 << 20));
        m = memtable_renew(m, st.peak);
        st = memtable_stats(m);
        CHECK_EQ(st.rows, 0);
        CHECK_EQ(st.peak, 0);
        CHECK(!memtable_has_keys(m) && !memtable_has_items(m, ITEM_ZSET, 7));
        CHECK_EQ(memtable_mark(m), 0);
        CHECK_EQ(memtable_next_id(m), 0);
        CHECK_STR(value_of(key), "(none)");
        CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_KEY}), "");
    }
    struct memtable_stats st = memtable_stats(m);
    CHECK(st.bytes + st.spare < most / 4); /* what is not needed goes back in the end */
    struct memtable *other = memtable_renew(NULL, 10);
    CHECK_EQ(memtable_stats(other).rows, 0);
    memtable_free(other);
}

/* ---- orders ---- */

static void members_by_score(void)
{
    const struct item_scan all = {.table = ITEM_ZSET, .id = 1, .order = ITEMS_BY_SCORE};
    struct item_scan q = all;
    CHECK_STR(walked(q), "");
    put_member(1, "c", 0.0, 2);
    put_member(1, "b", -0.0, 1);
    put_member(1, "a", INFINITY, 0);
    put_member(1, "d", -INFINITY, 3);
    put_member(2, "x", 1, 0);
    CHECK_STR(walked(q), "dbca");
    put_member(1, "e", 0, 4);
    put_member(1, "d", 5, 3); /* moves */
    CHECK_STR(walked(q), "bceda");
    q.reverse = true;
    CHECK_STR(walked(q), "adecb");
    q = all;
    q.has_min = q.has_max = true;
    q.min_score = 0;
    q.max_score = 0;
    CHECK_STR(walked(q), "bce");
    q.min_name = SLICE("c");
    CHECK_STR(walked(q), "ce");
    q.max_name = SLICE("d");
    CHECK_STR(walked(q), "c");
    q.max_name = SLICE("e");
    CHECK_STR(walked(q), "ce");
    q.reverse = true;
    CHECK_STR(walked(q), "ec");
    q.below_max = true;
    CHECK_STR(walked(q), "c");
    q.max_name = SLICE("");
    q.max_score = INFINITY;
    CHECK_STR(walked(q), "dec"); /* what has the last score is out */
    del_member(1, "e");
    q.below_max = false;
    q.max_name = (struct slice){NULL, 0};
    CHECK_STR(walked(q), "adc");
    q.order = ITEMS_BY_ORD;
    q.min = 1;
    q.max = 2;
    CHECK_STR(walked(q), "cb");
    q.order = ITEMS_BY_NAME;
    q.min_name = SLICE("b");
    q.max_name = SLICE("c");
    q.reverse = false;
    CHECK_STR(walked(q), "bc");
}

static void keys_in_every_order(void)
{
    const struct {
        const char *name;
        uint32_t db;
        int64_t expire_at, first;
    } rows[] = {{"a", 1, 0, 5}, {"ab", 1, 30, 0}, {"b", 1, 10, 3}, {"c", 2, 20, 9}, {"d", 0, 0, 0}};
    for (int i = 0; i < 5; i++) {
        struct key_row k = {.seq = 10 - i,
                            .db = rows[i].db,
                            .key = slice_str(rows[i].name),
                            .type = i == 1 ? ROW_LIST : ROW_HASH,
                            .first = rows[i].first,
                            .expire_at = rows[i].expire_at};
        memtable_put_key(m, &k, true, 1);
        if (i == 2) /* the rest comes to orders that are there */
            CHECK_STR(walked_keys((struct key_scan){.order = KEYS_EXPIRED, .now = 99}), "bab");
    }
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_SEQ_DESC, .seq_below = 100}), "aabbcd");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_SEQ_DESC, .seq_below = 8}), "cd");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_KEY, .db = 1}), "aabb");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_KEY, .db = 1, .prefix = SLICE("a")}), "aab");
    struct key_scan q = {.order = KEYS_BY_KEY, .db = 1, .has_after = true, .after = SLICE("a")};
    CHECK_STR(walked_keys(q), "abb");
    q.prefix = SLICE("ab");
    CHECK_STR(walked_keys(q), "ab");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_DUE, .now = 5}), "ba");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_DUE, .now = 9}), "bac");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_EXPIRED, .now = 20}), "bc");
    drop("d", 6);
    struct key_row k = {.seq = 8, .db = 1, .key = SLICE("b"), .type = ROW_HASH, .expire_at = 40};
    memtable_put_key(m, &k, true, 1);
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_EXPIRED, .now = 99}), "cabb");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_DUE, .now = 99}), "ac");
    CHECK_STR(walked_keys((struct key_scan){.order = KEYS_BY_SEQ_DESC, .seq_below = 100}), "aabbc");
}

/* ---- applying ---- */

static void in_the_order_of_the_tables(void)
{
    put("z", 9, "old", false);
    put("y", 3, "old", false);
    put("b", 20, "new", true);
    put("a", 21, "new", true);
    put("lived and died", 22, "new", true);
    drop("lived and died", 22);
    drop("x", 5);
    put_member(2, "n", 1, 0);
    put_member(2, "m", 1, 1);
    put_member(1, "o", 1, 0);
    del_member(1, "o"); /* fresh and gone */
    struct item_ref gone = {.table = ITEM_LIST, .id = 8, .pos = -1};
    memtable_del_item(m, &gone, 1);
    memtable_add_trash(m, &(struct trash_row){1, ROW_SET});
    memtable_add_trash(m, &(struct trash_row){2, ROW_LIST});
    memtable_put_db(m, &(struct db_row){.db = 0, .keys = 4});
    memtable_put_next_id(m, 77);

    struct mem_apply *a = mem_apply_new(m);
    struct changes c;
    int64_t next_id;
    CHECK(mem_apply_sort(a, 4));
    CHECK(mem_apply_sort(a, 4));
    CHECK(!mem_apply_sort(a, 4));
    CHECK_EQ(mem_apply_left(a), 8 + 4);
    CHECK(mem_apply_next(a, 4, &c, &next_id));
    REQUIRE(c.nkeys == 4 && c.nitems == 0 && c.ngone == 0);
    CHECK(c.replay);
    CHECK_SLICE(c.keys[0].key, SLICE("y"));
    CHECK_SLICE(c.keys[1].key, SLICE("x"));
    CHECK_EQ(c.keys[1].type, ROW_NONE);
    CHECK_SLICE(c.keys[2].key, SLICE("z"));
    CHECK(!c.keys[2].fresh);
    CHECK_SLICE(c.keys[3].key, SLICE("a"));
    CHECK(c.keys[3].fresh);
    mem_apply_again(a);
    CHECK_EQ(mem_apply_left(a), 12);
    CHECK(mem_apply_next(a, 3, &c, &next_id)); /* in a smaller step */
    CHECK_EQ(c.nkeys, 3);
    CHECK_SLICE(c.keys[0].key, SLICE("y"));
    CHECK(mem_apply_next(a, 3, &c, &next_id));
    REQUIRE(c.nkeys == 2 && c.nitems == 0 && c.ngone == 1);
    CHECK_SLICE(c.keys[0].key, SLICE("a"));
    CHECK_SLICE(c.keys[1].key, SLICE("b"));
    CHECK_EQ(c.gone[0].pos, -1);
    CHECK(mem_apply_next(a, 100, &c, &next_id));
    REQUIRE(c.nitems == 2);
    CHECK_SLICE(c.items[0].ref.name, SLICE("m"));
    CHECK_SLICE(c.items[1].ref.name, SLICE("n"));
    CHECK(c.items[0].fresh);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(mem_apply_left(a), 4);
        CHECK(mem_apply_next(a, 1, &c, &next_id));
        REQUIRE(c.ntrash == 2 && c.ndbs == 1 && c.nkeys == 0 && c.nitems == 0);
        CHECK_EQ(c.trash[0].id, 1);
        CHECK_EQ(c.trash[1].id, 2);
        CHECK_EQ(c.dbs[0].keys, 4);
        CHECK_EQ(next_id, 77);
        CHECK(!mem_apply_next(a, 1, &c, &next_id));
        CHECK_EQ(mem_apply_left(a), 0);
        if (i == 0) {
            mem_apply_free(a);
            a = mem_apply_new(m);
            CHECK(mem_apply_next(a, 100, &c, &next_id));
            CHECK(mem_apply_next(a, 100, &c, &next_id));
            mem_apply_again(a); /* also what comes last */
        }
    }
    mem_apply_free(a);
}

/* Where a row belongs among those that are handed out: keys by seq, fresh ones by name, items by ref. */
static int part_of(const struct key_row *k)
{
    return k->fresh || k->seq >= STORE_PROVISIONAL;
}

static void many_rows_come_sorted(uint32_t dbs, int64_t ids)
{
    char name[64];
    uint64_t x = 7 + dbs;
    size_t keys = 0, items = 0;
    for (int i = 0; i < 30000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        snprintf(name, sizeof name, x >> 60 ? "common:%llu" : "common:another that is longer than most:%llu",
                 (unsigned long long)(x >> 33) % 50000);
        struct key_row k = {.seq = 1 + (int64_t)(x >> 20 & 0xffffff),
                            .db = (uint32_t)(x >> 40) % dbs * 400000000u,
                            .key = slice_str(name),
                            .type = ROW_STRING,
                            .value = slice_str(name)};
        if (i % 3 == 0)
            k.seq += STORE_PROVISIONAL;
        memtable_put_key(m, &k, i % 3 == 0, 1);
        struct item_row f = {.ref = {.table = i % 2 ? ITEM_LIST : ITEM_SET,
                                     .id = 1 + (int64_t)(x >> 13) % ids,
                                     .name = k.key}};
        f.ref.pos = (int64_t)(x >> 17) % 100000 - 50000;
        memtable_put_item(m, &f, false, 1);
    }
    struct mem_apply *a = mem_apply_new(m);
    struct changes c;
    int64_t next_id;
    struct key_row last = {.seq = -1};
    struct item_ref before = {.id = -1};
    while (mem_apply_next(a, 777, &c, &next_id)) {
        for (size_t i = 0; i < c.nkeys; last = c.keys[i++]) {
            CHECK(part_of(&c.keys[i]) >= part_of(&last));
            if (last.seq < 0 || part_of(&c.keys[i]) > part_of(&last))
                continue;
            bool by_seq = part_of(&last) == 0;
            CHECK(!by_seq || c.keys[i].seq >= last.seq);
            CHECK(by_seq || keys_compare(KEYS_BY_KEY, &last, &c.keys[i]) < 0);
        }
        for (size_t i = 0; i < c.nitems; before = c.items[i++].ref)
            CHECK(before.id < 0 || refs_compare(&before, &c.items[i].ref) < 0);
        keys += c.nkeys;
        items += c.nitems;
    }
    CHECK_EQ(keys, memtable_count_keys(m));
    CHECK_EQ(keys + items, memtable_stats(m).rows);
    mem_apply_free(a);
}

static void rows_of_one_database_come_sorted(void)
{
    many_rows_come_sorted(1, 3);
}

static void rows_of_many_come_sorted(void)
{
    many_rows_come_sorted(4, 5000);
}

static void an_empty_table_has_nothing_to_apply(void)
{
    struct changes c;
    int64_t next_id;
    struct mem_apply *a = mem_apply_new(m);
    CHECK(!mem_apply_next(a, 10, &c, &next_id));
    mem_apply_free(a);
    put("k", 1, "v", true);
    drop("k", 1);
    a = mem_apply_new(m);
    CHECK(!mem_apply_next(a, 10, &c, &next_id));
    CHECK_EQ(mem_apply_left(a), 0);
    mem_apply_free(a);
}

/* One thread hands a frozen table out, another one, its owner, reads it and builds orders. */
static void *hand_out(void *arg)
{
    size_t *rows = arg;
    struct changes c;
    int64_t next_id;
    struct mem_apply *a = mem_apply_new(m);
    while (mem_apply_next(a, 100, &c, &next_id))
        *rows += c.nkeys + c.nitems + c.ngone;
    mem_apply_free(a);
    return NULL;
}

static void a_frozen_table_has_two_readers(void)
{
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "%d", i);
        put(name, i + 1, name, i % 2);
        put_member(i % 10, name, i % 7, i);
    }
    size_t rows = 0, walked_rows = 0;
    pthread_t applier;
    REQUIRE(pthread_create(&applier, NULL, hand_out, &rows) == 0);
    for (int order = 0; order < 4; order++) {
        struct key_scan q = {.order = (enum key_order)order, .seq_below = INT64_MAX};
        struct mem_walk walk;
        struct mem_key k;
        memtable_walk_keys(m, &q, &walk);
        while (mem_walk_key(&walk, &k))
            walked_rows++;
    }
    for (int id = 0; id < 10; id++) {
        struct item_scan q = {.table = ITEM_ZSET, .id = id, .order = ITEMS_BY_SCORE};
        struct mem_walk walk;
        struct mem_item i;
        memtable_walk_items(m, &q, &walk);
        while (mem_walk_item(&walk, &i))
            walked_rows++;
    }
    CHECK_STR(value_of("2999"), "2999");
    pthread_join(applier, NULL);
    CHECK_EQ(rows, 6000);
    CHECK_EQ(walked_rows, 3000 * 3);
}

static struct item_range positions(int64_t id, int64_t min, int64_t max)
{
    return (struct item_range){.table = ITEM_LIST, .id = id, .order = ITEMS_BY_POS, .min = min, .max = max};
}

static void put_range(struct item_range r)
{
    memtable_put_range(m, &r);
}

/* Where the range that has a place ends, 0: none has it. */
static int64_t covered_to(int64_t id, int64_t pos)
{
    struct item_row row = {.ref = {.table = ITEM_LIST, .id = id, .pos = pos}};
    const struct item_range *r = memtable_covers(m, &row);
    return r ? r->max : 0;
}

/* Ranges that touch are one to readers, as long as none of them is taken back. */
static void ranges_are_joined(void)
{
    put_range(positions(1, 1, 5));
    put_range(positions(1, 20, 30));
    mem_mark mark = memtable_mark(m);
    put_range(positions(1, 6, 9));
    CHECK_EQ(covered_to(1, 1), 9);
    CHECK_EQ(covered_to(1, 10), 0);
    CHECK_EQ(covered_to(2, 1), 0);
    put_range(positions(1, 3, 25));
    CHECK_EQ(covered_to(1, 1), 30);
    CHECK_EQ(covered_to(1, 31), 0);
    memtable_undo(m, mark);
    CHECK_EQ(covered_to(1, 1), 5);
    CHECK_EQ(covered_to(1, 6), 0);
    CHECK_EQ(covered_to(1, 20), 30);
    memtable_leave(m, 0, memtable_mark(m));
    CHECK_EQ(covered_to(1, 1), 0);
    CHECK(memtable_stats(m).empty);
    CHECK(!memtable_has_items(m, ITEM_LIST, 1));
    mark = memtable_mark(m);
    put_range(positions(1, INT64_MIN, INT64_MAX));
    put_range(positions(1, INT64_MAX, INT64_MAX));
    CHECK_EQ(covered_to(1, 0), INT64_MAX);
    memtable_undo(m, mark);
    CHECK(memtable_stats(m).empty);
}

/* A range that thousands of rows of this table are in, and thousands of ranges. */
static void many_rows_and_ranges(void)
{
    struct mem_item i;
    for (int64_t n = 0; n < 3000; n++)
        memtable_put_item(m, &(struct item_row){.ref = {.table = ITEM_LIST, .id = 1, .pos = n}}, n % 2, 1);
    mem_mark mark = memtable_mark(m);
    put_range(positions(1, 1000, 2999));
    put_range(positions(1, 10, 12)); /* few of many */
    CHECK(memtable_item(m, &(struct item_ref){.table = ITEM_LIST, .id = 1, .pos = 11}, &i) && i.gone);
    CHECK(memtable_item(m, &(struct item_ref){.table = ITEM_LIST, .id = 1, .pos = 1500}, &i) && i.gone);
    CHECK(memtable_item(m, &(struct item_ref){.table = ITEM_LIST, .id = 1, .pos = 999}, &i) && !i.gone);
    memtable_undo(m, mark);
    CHECK(memtable_item(m, &(struct item_ref){.table = ITEM_LIST, .id = 1, .pos = 1500}, &i) && !i.gone);
    size_t before = memtable_stats(m).bytes;
    for (int64_t n = 0; n < 4000; n++)
        put_range(positions(2, n * 10, n * 10 + 5));
    CHECK(memtable_stats(m).bytes > before + 4000 * sizeof(struct item_range));
    CHECK_EQ(covered_to(2, 3333 * 10 + 5), 3333 * 10 + 5);
    CHECK_EQ(covered_to(2, 3333 * 10 + 6), 0);
}

/* They are handed out before everything else, at once, and again if they were not committed. */
static void ranges_come_first(void)
{
    struct changes c;
    int64_t next_id;
    put("k", 1, "v", true);
    put_member(4, "in", 1, 0);
    put_range((struct item_range){.table = ITEM_ZSET,
                                  .id = 4,
                                  .order = ITEMS_BY_SCORE,
                                  .min_score = 1,
                                  .max_score = 1,
                                  .max_name = SLICE("z")});
    put_member(4, "in", 1, 1);
    put_range(positions(1, 1, 2));
    struct mem_apply *a = mem_apply_new(m);
    CHECK_EQ(mem_apply_left(a), 2 + 2);
    for (int again = 0; again < 2; again++) {
        CHECK(mem_apply_next(a, 1, &c, &next_id));
        CHECK_EQ(c.nranges, 2);
        CHECK_EQ(c.nkeys + c.nitems + c.ngone, 0);
        if (!again)
            mem_apply_again(a);
    }
    CHECK_EQ(mem_apply_left(a), 2);
    CHECK(mem_apply_next(a, 10, &c, &next_id));
    CHECK_EQ(c.nranges, 0);
    CHECK_EQ(c.nitems, 1); /* it was put behind the range */
    CHECK(!mem_apply_next(a, 10, &c, &next_id));
    mem_apply_free(a);
}

static void with_table(const char *name, void (*test)(void))
{
    m = memtable_new(0);
    check_run(name, test);
    memtable_free(m);
}

#define WITH_TABLE(test) with_table(#test, test)

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    WITH_TABLE(the_last_state_counts);
    WITH_TABLE(items_of_every_table);
    WITH_TABLE(numbers_of_any_size);
    WITH_TABLE(a_row_that_is_set_again_takes_no_more);
    WITH_TABLE(large_values_and_many_rows);
    WITH_TABLE(changes_are_taken_back);
    WITH_TABLE(what_was_applied_leaves);
    WITH_TABLE(what_was_settled_leaves_too);
    WITH_TABLE(leaving_goes_on_for_ever);
    WITH_TABLE(memory_is_used_again);
    WITH_TABLE(members_by_score);
    WITH_TABLE(keys_in_every_order);
    WITH_TABLE(in_the_order_of_the_tables);
    WITH_TABLE(rows_of_one_database_come_sorted);
    WITH_TABLE(rows_of_many_come_sorted);
    WITH_TABLE(an_empty_table_has_nothing_to_apply);
    WITH_TABLE(a_frozen_table_has_two_readers);
    WITH_TABLE(ranges_are_joined);
    WITH_TABLE(many_rows_and_ranges);
    WITH_TABLE(ranges_come_first);
    return check_done();
}
