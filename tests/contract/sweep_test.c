/* What store/store.h promises of sweeping: dead rows go, in bounded steps, and nothing else does. */
#include "contract/suite.h"
#include "store/item_tables.h"

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
    static const enum row_type types[] = {ROW_STRING, ROW_HASH, ROW_LIST, ROW_SET, ROW_ZSET, ROW_TABLE};
    struct key_row k[12];
    struct item_row items[120];
    /* Two collections of each type with ten items each; the first ones expire. */
    for (int i = 0; i < 12; i++) {
        k[i] = (struct key_row){.key = slice_of(&"abcdefghijkl"[i], 1),
                                .type = types[i / 2],
                                .id = 100 + i,
                                .size = types[i / 2] == ROW_TABLE ? 0 : 10,
                                .expire_at = i % 2 ? 0 : 50};
        for (int j = 0; j < 10; j++)
            items[10 * i + j] = (struct item_row){.ref = {.table = item_table_of(types[i / 2]),
                                                          .id = 100 + i,
                                                          .name = slice_of(&"0123456789"[j], 1),
                                                          .pos = j},
                                                  .value = SLICE("v"),
                                                  .ord = j};
    }
    struct db_row db = {0, 0, 12, 6};
    struct changes c = {.keys = k, .nkeys = 12, .items = items, .nitems = 120, .dbs = &db, .ndbs = 1};
    REQUIRE_OK(apply_now(s, &c, &err), &err);
    struct sweep_run w = {.steps = 0};
    sweep_all(&w, 50, 3);
    CHECK_EQ(w.total.expired, 6);
    CHECK_EQ(w.total.deleted, 0);
    CHECK_EQ(w.total.items, 60);
    CHECK(w.steps > 15);
    CHECK_EQ(w.dbs[0].keys, 6);
    CHECK_EQ(w.dbs[0].expires, 0);
    for (int i = 0; i < 120; i++) {
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
    struct changes c = {.keys = k,
                        .nkeys = 40,
                        .items = &item,
                        .nitems = 1,
                        .trash = &trash,
                        .ntrash = 1,
                        .dbs = dbs,
                        .ndbs = 2};
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

static void all(void)
{
    if (impl->journaled) /* what has expired is the engine's to remove, the rest the thread's:
                          * journal_store_test.c
                          */
        return;
    CONTRACT(sweeps_dead_keys);
    CONTRACT(sweeps_items_of_dead_keys);
    CONTRACT(sweeps_trash);
    CONTRACT(sweeps_flushed_databases);
    CONTRACT(a_failed_sweep_changes_nothing);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    every_implementation(all);
    return check_done();
}
