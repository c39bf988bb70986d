/* A call that is brought back to a mark within it: what it did before stays, what it did behind is as if it
   had never been, for every kind of row, whether the store has seen it or not. Random combinations are in
   view_test.c and zset_test.c. */
#include "world.h"

#include "engine/coll.h"

#define LONG  200000 /* bytes of a value in chunks */
#define ITEMS 6000   /* of a collection that is in the tables */

static struct world w;

static struct error *why(void)
{
    return engine_error(w.engine);
}

static void set(const char *key, const char *value, int64_t expire_at)
{
    CHECK_OK(view_set_string(w.view, 0, slice_str(key), slice_str(value), expire_at), why());
}

static void set_long(const char *key, char fill)
{
    char *p = arena_alloc(view_arena(w.view), LONG);
    memset(p, fill, LONG);
    CHECK_OK(view_set_string(w.view, 0, slice_str(key), slice_of(p, LONG), EXPIRE_NEVER), why());
}

/* value is NULL: there is no such key; of a long one its first byte, and how many there are of it. */
static void expect(const char *key, const char *value, size_t times, int64_t expire_at)
{
    const struct row *row;
    struct slice got;
    REQUIRE_OK(view_get(w.view, 0, slice_str(key), &row), why());
    CHECK_EQ(row != NULL, value != NULL);
    if (!row || !value)
        return;
    CHECK_EQ(row->expire_at, expire_at);
    REQUIRE_OK(view_string(w.view, row, &w.arena, &got), why());
    if (times == 1)
        CHECK_SLICE(got, slice_str(value));
    size_t same = 0;
    while (same < got.n && got.p[same] == value[0])
        same++;
    CHECK_EQ(times == 1 ? 1 : same, times);
}

static struct slice name_of(int i)
{
    char text[32];
    return arena_copy(view_arena(w.view), slice_of(text, (size_t)snprintf(text, sizeof text, "name %d", i)));
}

static struct coll *make(const char *key, enum row_type type)
{
    struct coll *c = NULL;
    bool wrong;
    CHECK_OK(coll_make(w.view, 0, slice_str(key), type, &c, &wrong), why());
    return c;
}

/* Items from one number to before another come, or go. */
static void fill(const char *key, enum row_type type, int from, int to, double score)
{
    struct coll *c = make(key, type);
    for (int i = from; i < to; i++) {
        struct coll_item item = {.name = name_of(i), .score = score + i, .value = name_of(i)};
        CHECK_OK(type == ROW_LIST ? coll_push(c, false, item.value) : coll_put(c, &item, NULL), why());
    }
    CHECK_OK(coll_save(c), why());
}

static void drain(const char *key, enum row_type type, int from, int to)
{
    struct coll *c = make(key, type);
    bool removed;
    struct slice popped;
    for (int i = from; i < to; i++)
        CHECK_OK(type == ROW_LIST ? coll_pop(c, true, &popped) : coll_remove(c, name_of(i), &removed), why());
    CHECK_OK(coll_save(c), why());
}

static enum status count(void *arg, const struct coll_item *item)
{
    (void)item;
    ++*(int *)arg;
    return ST_OK;
}

/* As many as its row says, also by a scan. */
static void expect_items(const char *key, enum row_type type, int64_t want)
{
    struct coll *c = make(key, type);
    int n = 0;
    CHECK_EQ(coll_size(c), want);
    CHECK_OK(type == ROW_LIST ? coll_range(c, 0, want - 1, false, count, &n) : coll_each(c, count, &n),
             why());
    CHECK_EQ(n, want);
}

static void expect_rank(const char *key, int name, double score, int64_t want)
{
    int64_t rank;
    struct coll_bound b = {.score = score, .has_name = true, .name = name_of(name)};
    CHECK_OK(coll_rank_of(make(key, ROW_ZSET), &b, false, &rank), why());
    CHECK_EQ(rank, want);
}

static void expect_size(uint32_t db, int64_t want)
{
    int64_t keys = -1, expires;
    CHECK_OK(view_db_size(w.view, db, &keys, &expires), why());
    CHECK_EQ(keys, want);
}

/* What makes the store see what the batch has changed. */
static void scan(void)
{
    struct slice key;
    CHECK_OK(view_random_key(w.view, 0, &w.arena, &key), why());
}

static void begin(void)
{
    REQUIRE(world_begin(&w));
    world_enter(&w);
}

static void end(void)
{
    CHECK(engine_leave(w.engine, true).wrote);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    CHECK_OK(engine_progress(w.engine, &w.err), &w.err);
}

static void go_back(bool scans)
{
    if (scans)
        scan();
    CHECK_OK(engine_undo_to_mark(w.engine), why());
    CHECK_EQ(engine_error(w.engine)->code, ST_OK);
}

/* ---- what is taken back ---- */

static void fill_all(void)
{
    set("old", "1", EXPIRE_NEVER);
    set("dies", "1", w.now + 5000);
    set("gone", "1", EXPIRE_NEVER);
    set_long("long", 'a');
    set_long("long gone", 'a');
    for (enum row_type t = ROW_HASH; t <= ROW_ZSET; t++) {
        static const char *const keys[] = {
            [ROW_HASH] = "hash", [ROW_LIST] = "list", [ROW_SET] = "set", [ROW_ZSET] = "zset"};
        if (keys[t])
            fill(keys[t], t, 0, ITEMS, 0);
    }
}

/* In every step something else, and the same row in several. */
static void spoil_all(bool scans)
{
    set("old", "2", w.now + 77);
    set("created", "2", EXPIRE_NEVER);
    engine_step(w.engine);
    set("old", "3", EXPIRE_NEVER);
    CHECK_OK(view_expire(w.view, 0, slice_str("dies"), w.now + 1), why());
    CHECK_OK(view_del(w.view, 0, slice_str("gone"), NULL), why());
    CHECK_OK(view_del(w.view, 0, slice_str("long gone"), NULL), why());
    CHECK_OK(view_del(w.view, 0, slice_str("before"), NULL), why());
    CHECK_OK(view_write_range(w.view, 0, slice_str("long"), 70000, slice_str("bbb")), why());
    engine_step(w.engine);
    if (scans)
        scan();
    drain("hash", ROW_HASH, 0, 3000);
    drain("set", ROW_SET, 0, ITEMS);
    drain("list", ROW_LIST, 0, 2500);
    drain("zset", ROW_ZSET, 1000, 4000);
    engine_step(w.engine);
    fill("zset", ROW_ZSET, 0, 500, -100000);
    fill("fresh", ROW_HASH, 0, ITEMS, 0);
    fill("set", ROW_SET, 0, 5, 0);
    if (scans)
        expect_rank("zset", 0, -100000, 0);
    engine_step(w.engine);
    CHECK_OK(view_move(w.view, 0, slice_str("old"), 1, slice_str("moved")), why());
    set("created", "4", EXPIRE_NEVER);
    set("gone", "again", EXPIRE_NEVER);
}

static void expect_all(void)
{
    expect("old", "1", 1, EXPIRE_NEVER);
    expect("dies", "1", 1, w.now + 5000);
    expect("gone", "1", 1, EXPIRE_NEVER);
    expect("created", NULL, 0, 0);
    expect("long", "a", LONG, EXPIRE_NEVER);
    expect("long gone", "a", LONG, EXPIRE_NEVER);
    expect("before", "b", 1, EXPIRE_NEVER);
    expect_items("hash", ROW_HASH, ITEMS);
    expect_items("list", ROW_LIST, ITEMS);
    expect_items("set", ROW_SET, ITEMS);
    expect_items("zset", ROW_ZSET, ITEMS);
    expect_items("fresh", ROW_HASH, 0);
    expect_rank("zset", 1500, 1500, 1500);
    expect_rank("zset", 3, 3, 3);
    expect_size(1, 0);
}

/* scans: before, and behind, the end; in_batch: what was before is not committed yet. */
static void everything(bool journal, bool scans, bool in_batch)
{
    w = (struct world){.journal = journal};
    REQUIRE(world_start(&w));
    begin();
    fill_all();
    engine_step(w.engine);
    if (!in_batch) {
        end();
        begin();
    }
    set("before", "b", EXPIRE_NEVER);
    engine_step(w.engine);
    for (int i = 0; i < 2; i++) {
        engine_mark(w.engine);
        spoil_all(scans);
        go_back(scans);
        expect_all();
    }
    set("behind", "c", EXPIRE_NEVER);
    end();
    begin();
    expect_all();
    expect("behind", "c", 1, EXPIRE_NEVER);
    CHECK_OK(view_del(w.view, 0, slice_str("behind"), NULL), why());
    end();
    w.journal = false;
    REQUIRE(world_reopen(&w));
    begin();
    expect_all();
    CHECK(!engine_leave(w.engine, true).wrote);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_sweep(&w);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_key"), 10);
    CHECK_EQ(world_sql(&w, "SELECT keys FROM larder_db WHERE db = 0"), 10);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_chunk"),
             2 * ((LONG + STORE_CHUNK_BYTES - 1) / STORE_CHUNK_BYTES));
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_hash"), ITEMS);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_set"), ITEMS);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_trash"), 0);
    world_end(&w);
}

static void all_kinds_of_rows(void)
{
    for (int i = 0; i < 8; i++)
        everything(i & 1, i & 2, i & 4);
}

/* What another call of the batch had done is brought into the tables, though it was there before and is not
   any more. */
static void others_of_the_batch_are_not_touched(void)
{
    w = (struct world){0};
    REQUIRE(world_start(&w));
    begin();
    set("first", "1", EXPIRE_NEVER);
    set("twice", "1", EXPIRE_NEVER);
    (void)engine_leave(w.engine, true);
    world_enter(&w);
    engine_mark(w.engine);
    set("second", "2", EXPIRE_NEVER);
    CHECK_OK(view_del(w.view, 0, slice_str("twice"), NULL), why());
    go_back(true);
    CHECK(!engine_leave(w.engine, true).wrote);
    world_enter(&w);
    set("third", "3", EXPIRE_NEVER);
    end();
    REQUIRE(world_reopen(&w));
    begin();
    expect("first", "1", 1, EXPIRE_NEVER);
    expect("twice", "1", 1, EXPIRE_NEVER);
    expect("second", NULL, 0, 0);
    expect("third", "3", 1, EXPIRE_NEVER);
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    CHECK_EQ(world_sql(&w, "SELECT keys FROM larder_db WHERE db = 0"), 3);
    world_end(&w);
}

/* The call may still fail as a whole, and then nothing of it is left, before or behind the mark. */
static void a_call_that_fails_behind_it_is_undone(void)
{
    w = (struct world){0};
    REQUIRE(world_start(&w));
    begin();
    set("k", "0", EXPIRE_NEVER);
    end();
    begin();
    set("k", "1", EXPIRE_NEVER);
    engine_step(w.engine);
    engine_mark(w.engine);
    set("k", "2", EXPIRE_NEVER);
    go_back(false);
    set("k", "3", EXPIRE_NEVER);
    engine_step(w.engine);
    set("k", "4", EXPIRE_NEVER);
    (void)engine_leave(w.engine, false);
    world_enter(&w);
    expect("k", "0", 1, EXPIRE_NEVER);
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_end(&w);
}

/* A store that cannot go back: the batch is not committed. */
static void a_store_that_fails_fails_the_batch(void)
{
    w = (struct world){0};
    REQUIRE(world_start(&w));
    begin();
    set("other", "0", EXPIRE_NEVER);
    (void)engine_leave(w.engine, true);
    world_enter(&w);
    set("k", "0", EXPIRE_NEVER);
    engine_step(w.engine);
    engine_mark(w.engine);
    set("k", "1", EXPIRE_NEVER);
    scan();
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_IO});
    CHECK_EQ(engine_undo_to_mark(w.engine), ST_IO);
    store_fault_set(w.store, (struct store_fault){0});
    (void)engine_leave(w.engine, false);
    CHECK_EQ(engine_commit(w.engine, NULL, &w.err), ST_IO);
    begin();
    expect("k", NULL, 0, 0);
    expect("other", NULL, 0, 0);
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_end(&w);
}

static void databases_are_what_they_were(void)
{
    w = (struct world){0};
    REQUIRE(world_start(&w));
    begin();
    set("k", "0", EXPIRE_NEVER);
    end();
    for (int scans = 0; scans < 2; scans++) {
        begin();
        CHECK_OK(view_swap_db(w.view, 1, 2), why());
        engine_step(w.engine);
        engine_mark(w.engine);
        CHECK_OK(view_flush_db(w.view, 0), why());
        set("k", "1", EXPIRE_NEVER);
        engine_step(w.engine);
        CHECK_OK(view_swap_db(w.view, 0, 1), why());
        expect("k", NULL, 0, 0);
        go_back(scans);
        expect("k", "0", 1, EXPIRE_NEVER);
        expect_size(0, 1);
        end();
    }
    REQUIRE(world_reopen(&w));
    begin();
    expect("k", "0", 1, EXPIRE_NEVER);
    expect_size(0, 1);
    expect_size(1, 0);
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_end(&w);
}

/* ---- who waits and who watches ---- */

static void nobody_waits_for_what_was_taken_back(void)
{
    uint32_t db;
    struct slice key;
    bool all;
    w = (struct world){0};
    REQUIRE(world_start(&w));
    view_watch_ready(w.view, true);
    begin();
    fill("stays", ROW_LIST, 0, 1, 0);
    engine_step(w.engine);
    engine_mark(w.engine);
    fill("goes", ROW_LIST, 0, 1, 0);
    go_back(false);
    fill("comes", ROW_LIST, 0, 1, 0);
    (void)engine_leave(w.engine, true);
    CHECK(view_next_ready(w.view, &db, &key, &all));
    CHECK_SLICE(key, SLICE("stays"));
    CHECK(view_next_ready(w.view, &db, &key, &all));
    CHECK_SLICE(key, SLICE("comes"));
    CHECK(!view_next_ready(w.view, &db, &key, &all));
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_end(&w);
}

static void watches_are_touched_by_what_stays(void)
{
    struct view_watch before = {.key = SLICE("before")}, behind = {.key = SLICE("behind")},
                      later = {.key = SLICE("later")};
    w = (struct world){0};
    REQUIRE(world_start(&w));
    view_watch(w.view, &before);
    view_watch(w.view, &behind);
    view_watch(w.view, &later);
    begin();
    set("before", "1", EXPIRE_NEVER);
    engine_step(w.engine);
    engine_mark(w.engine);
    set("behind", "1", EXPIRE_NEVER);
    engine_step(w.engine);
    CHECK(before.touched && behind.touched);
    go_back(false);
    CHECK(before.touched && !behind.touched);
    set("later", "1", EXPIRE_NEVER);
    end();
    CHECK(before.touched && !behind.touched && later.touched);
    view_unwatch(&before);
    view_unwatch(&behind);
    view_unwatch(&later);
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(all_kinds_of_rows);
    RUN(others_of_the_batch_are_not_touched);
    RUN(a_call_that_fails_behind_it_is_undone);
    RUN(a_store_that_fails_fails_the_batch);
    RUN(databases_are_what_they_were);
    RUN(nobody_waits_for_what_was_taken_back);
    RUN(watches_are_touched_by_what_stays);
    return check_done();
}
