/* What the engine promises about batches, one promise at a time: what a failure leaves behind, what memory
   may be believed, what the tables hold. Random combinations of all this are in view_test.c. */
#include "world.h"

#include "engine/coll.h"

#define LONG 200000 /* bytes of a value in chunks */

/* ---- one command at a time ---- */

static void set(struct world *w, uint32_t db, const char *key, const char *value)
{
    CHECK_OK(view_set_string(w->view, db, slice_str(key), slice_str(value), EXPIRE_NEVER),
             engine_error(w->engine));
}

static void set_long(struct world *w, uint32_t db, const char *key, char fill)
{
    char *p = arena_alloc(view_arena(w->view), LONG);
    memset(p, fill, LONG);
    CHECK_OK(view_set_string(w->view, db, slice_str(key), slice_of(p, LONG), EXPIRE_NEVER),
             engine_error(w->engine));
}

static void del(struct world *w, uint32_t db, const char *key)
{
    CHECK_OK(view_del(w->view, db, slice_str(key), NULL), engine_error(w->engine));
}

/* value NULL: there is no such key. */
static void expect(struct world *w, uint32_t db, const char *key, const char *value)
{
    const struct row *row;
    struct slice got;
    REQUIRE_OK(view_get(w->view, db, slice_str(key), &row), engine_error(w->engine));
    CHECK_EQ(row != NULL, value != NULL);
    if (!row || !value)
        return;
    REQUIRE_OK(view_string(w->view, row, &w->arena, &got), engine_error(w->engine));
    CHECK_SLICE(got, slice_str(value));
}

static void expect_long(struct world *w, uint32_t db, const char *key, char fill)
{
    const struct row *row;
    struct slice got;
    REQUIRE_OK(view_get(w->view, db, slice_str(key), &row), engine_error(w->engine));
    REQUIRE(row != NULL);
    REQUIRE_OK(view_string(w->view, row, &w->arena, &got), engine_error(w->engine));
    CHECK_EQ(got.n, LONG);
    size_t same = 0;
    while (same < got.n && got.p[same] == fill)
        same++;
    CHECK_EQ(same, LONG);
}

static void expect_size(struct world *w, uint32_t db, int64_t want)
{
    int64_t keys = -1, expires;
    CHECK_OK(view_db_size(w->view, db, &keys, &expires), engine_error(w->engine));
    CHECK_EQ(keys, want);
}

/* ---- batches ---- */

static void begin(struct world *w)
{
    CHECK(world_begin(w));
    world_enter(w);
}

static struct engine_trace next_call(struct world *w)
{
    struct engine_trace t = engine_leave(w->engine, true);
    world_enter(w);
    return t;
}

static void undo_call(struct world *w)
{
    (void)engine_leave(w->engine, false);
    world_enter(w);
}

static void commit(struct world *w)
{
    (void)engine_leave(w->engine, true);
    CHECK_OK(engine_commit(w->engine, NULL, &w->err), &w->err);
}

static enum status failing_commit(struct world *w)
{
    (void)engine_leave(w->engine, true);
    return engine_commit(w->engine, NULL, &w->err);
}

/* ---- what a reply waits for ---- */

static void a_reply_waits_for_the_commit_when_it_saw_the_batch(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "old", "1");
    commit(&w);

    begin(&w);
    expect(&w, 0, "old", "1");
    expect(&w, 0, "absent", NULL);
    expect_size(&w, 0, 1);
    struct engine_trace t = next_call(&w);
    CHECK(!t.wrote && !t.wait);
    set(&w, 0, "new", "2");
    t = next_call(&w);
    CHECK(t.wrote && t.wait);
    expect(&w, 0, "old", "1");
    t = next_call(&w);
    CHECK(!t.wrote && !t.wait);
    expect(&w, 0, "new", "2");
    t = next_call(&w);
    CHECK(!t.wrote && t.wait);
    expect_size(&w, 0, 2);
    t = next_call(&w);
    CHECK(!t.wrote && t.wait);
    struct slice key;
    CHECK_OK(view_random_key(w.view, 0, &w.arena, &key), engine_error(w.engine));
    t = next_call(&w);
    CHECK(t.wait);
    del(&w, 0, "absent");
    t = next_call(&w);
    CHECK(!t.wrote);
    set(&w, 0, "undone", "3");
    t = engine_leave(w.engine, false);
    CHECK(!t.wrote);
    world_enter(&w);
    CHECK_OK(view_swap_db(w.view, 0, 1), engine_error(w.engine));
    t = next_call(&w);
    CHECK(t.wrote && t.wait);
    commit(&w);
    world_end(&w);
}

static void pending_bytes_are_those_of_the_batch(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    CHECK_EQ(engine_pending_bytes(w.engine), 0);
    set(&w, 0, "key", "value");
    (void)next_call(&w);
    size_t small = engine_pending_bytes(w.engine);
    CHECK(small > 0 && small < 1000);
    set_long(&w, 0, "long", 'x');
    undo_call(&w);
    CHECK_EQ(engine_pending_bytes(w.engine), small);
    set_long(&w, 0, "long", 'x');
    (void)next_call(&w);
    CHECK(engine_pending_bytes(w.engine) > LONG);
    commit(&w);
    CHECK_EQ(engine_pending_bytes(w.engine), 0);
    world_end(&w);
}

/* ---- failures ---- */

/* A batch of everything. Stops at the first failure, as a handler does, which undoes that call. */
static enum status step(struct world *w, int i)
{
    struct view *v = w->view;
    int64_t keys, expires;
    switch (i) {
    case 0:
        return view_set_string(v, 0, SLICE("a"), SLICE("new"), EXPIRE_NEVER);
    case 1:
        return view_write_range(v, 0, SLICE("long"), LONG - 10, SLICE("0123456789abcdef"));
    case 2:
        return view_db_size(v, 0, &keys, &expires);
    case 3:
        return view_del(v, 0, SLICE("b"), NULL);
    case 4:
        return view_move(v, 0, SLICE("long"), 1, SLICE("moved"));
    case 5:
        return view_expire(v, 0, SLICE("a"), w->now + 1000);
    case 6:
        return view_flush_db(v, 2);
    case 7:
        return view_set_string(v, 2, SLICE("c"), SLICE("after"), EXPIRE_NEVER);
    case 8:
        return view_swap_db(v, 0, 2);
    default:
        return view_db_size(v, 1, &keys, &expires);
    }
}
#define STEPS 10

static void prepare(struct world *w)
{
    begin(w);
    set(w, 0, "a", "old");
    set(w, 0, "b", "old");
    set_long(w, 0, "long", 'x');
    set(w, 2, "c", "old");
    commit(w);
}

static void expect_before(struct world *w)
{
    begin(w);
    expect(w, 0, "a", "old");
    expect(w, 0, "b", "old");
    expect_long(w, 0, "long", 'x');
    expect(w, 1, "moved", NULL);
    expect(w, 2, "a", NULL);
    expect(w, 2, "c", "old");
    expect_size(w, 0, 3);
    expect_size(w, 1, 0);
    expect_size(w, 2, 1);
    commit(w);
}

static void expect_after(struct world *w)
{
    begin(w);
    expect(w, 0, "a", NULL);
    expect(w, 0, "c", "after");
    expect(w, 2, "a", "new");
    expect(w, 2, "b", NULL);
    expect(w, 2, "long", NULL);
    expect(w, 2, "c", NULL);
    const struct row *row;
    CHECK_OK(view_get(w->view, 1, SLICE("moved"), &row), engine_error(w->engine));
    CHECK(row && row_string_size(row) == LONG + 6);
    expect_size(w, 0, 1);
    expect_size(w, 1, 1);
    expect_size(w, 2, 1);
    commit(w);
}

/* Runs the batch, all of whose commands count as one; ST_OK when it was committed. */
static enum status run_steps(struct world *w)
{
    if (!world_begin(w))
        return ST_IO;
    world_enter(w);
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && i < STEPS; i++)
        st = step(w, i);
    (void)engine_leave(w->engine, st == ST_OK);
    enum status done = engine_commit(w->engine, NULL, &w->err);
    return st == ST_OK ? done : st;
}

/* The Nth call of the store fails, for every N. */
static void fail_every_call(bool late, bool sticky, enum status status)
{
    static char context[64];
    bool failed = true;
    for (uint64_t nth = 1; failed && nth < 200 && !check.checks_failed; nth++) {
        struct world w = {0};
        snprintf(context, sizeof context, "call %d failing, late %d, sticky %d", (int)nth, late, sticky);
        check.context = context;
        REQUIRE(world_start(&w));
        prepare(&w);
        REQUIRE(world_reopen(&w));
        store_fault_set(w.store,
                        (struct store_fault){.nth = nth, .status = status, .late = late, .sticky = sticky});
        enum status st = run_steps(&w);
        failed = fault_happened(w.store);
        bool all = failed && st != ST_OK && fault_calls(w.store) >= nth && late && status == ST_UNKNOWN &&
                   world_sql(&w, "SELECT count(*) FROM larder_key WHERE key = x'6d6f766564'") > 0;
        store_fault_set(w.store, (struct store_fault){0});
        if (st == ST_OK || all)
            expect_after(&w);
        else
            expect_before(&w);
        if (st != ST_OK && !all)
            CHECK_EQ(run_steps(&w), ST_OK);
        expect_after(&w);
        REQUIRE(world_reopen(&w));
        expect_after(&w);
        world_end(&w);
    }
    CHECK(!failed);
    check.context = NULL;
}

static void any_call_may_fail(void)
{
    fail_every_call(false, false, ST_IO);
    fail_every_call(false, true, ST_FULL);
}

static void any_call_may_fail_after_it_was_carried_out(void)
{
    fail_every_call(true, false, ST_UNKNOWN);
    fail_every_call(true, true, ST_UNKNOWN);
}

static void a_batch_that_may_not_write_still_reads(void)
{
    struct world w = {0};
    struct error write_err, err;
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "key", "value");
    commit(&w);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_READONLY});
    REQUIRE_OK(engine_begin(w.engine, true, &write_err, &err), &err);
    CHECK_EQ(write_err.code, ST_READONLY);
    world_enter(&w);
    expect(&w, 0, "key", "value");
    commit(&w);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_IO, .sticky = true});
    CHECK_EQ(engine_begin(w.engine, true, &write_err, &err), ST_IO);
    store_fault_set(w.store, (struct store_fault){0});
    begin(&w);
    set(&w, 0, "key", "again");
    commit(&w);
    world_end(&w);
}

/* A call that is undone after SQL saw its writes cannot be taken out of the transaction: the batch is lost,
   the next one is not. */
static void a_call_undone_too_late_takes_its_batch_along(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "kept", "1");
    (void)next_call(&w);
    set(&w, 0, "undone", "2");
    expect_size(&w, 0, 2);
    undo_call(&w);
    CHECK(failing_commit(&w) != ST_OK);
    begin(&w);
    expect(&w, 0, "kept", NULL);
    expect(&w, 0, "undone", NULL);
    expect_size(&w, 0, 0);
    set(&w, 0, "undone", "2");
    expect_size(&w, 0, 1);
    (void)engine_leave(w.engine, false);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    begin(&w);
    set(&w, 0, "kept", "1");
    commit(&w);
    begin(&w);
    expect(&w, 0, "kept", "1");
    expect_size(&w, 0, 1);
    commit(&w);
    world_end(&w);
}

/* It may have read what the call before it left in the transaction, and which will be rolled back. */
static void a_call_behind_one_undone_too_late_is_not_answered(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "undone", "2");
    expect_size(&w, 0, 1);
    undo_call(&w);
    expect(&w, 0, "undone", NULL);
    struct engine_trace t = next_call(&w);
    CHECK(t.wait > 0);
    CHECK(failing_commit(&w) != ST_OK);
    begin(&w);
    expect_size(&w, 0, 0);
    commit(&w);
    world_end(&w);
}

/* Ids that were reserved in a transaction that was rolled back are not used: the next start would give them
   out again, and two values would share their chunks. */
static void ids_of_a_transaction_that_was_rolled_back_are_not_used(void)
{
    struct world w = {0};
    int64_t id;
    REQUIRE(world_start(&w));
    begin(&w);
    CHECK_OK(view_new_id(w.view, &id), engine_error(w.engine));
    undo_call(&w);
    commit(&w);
    begin(&w);
    set_long(&w, 0, "first", '1');
    commit(&w);
    REQUIRE(world_reopen(&w));
    begin(&w);
    set_long(&w, 0, "second", '2');
    set_long(&w, 0, "third", '3');
    commit(&w);
    begin(&w);
    expect_long(&w, 0, "first", '1');
    expect_long(&w, 0, "second", '2');
    expect_long(&w, 0, "third", '3');
    commit(&w);
    world_end(&w);
}

static struct coll *open_hash(struct world *w)
{
    struct coll *c = NULL;
    bool wrong;
    CHECK_OK(coll_make(w->view, 0, SLICE("hash"), ROW_HASH, &c, &wrong), engine_error(w->engine));
    return c;
}

/* A collection that becomes small enough for memory is read there with what the batch did to it, and must be
   forgotten when the batch is. */
static void a_collection_read_in_a_batch_that_fails_is_read_again(void)
{
    struct world w = {.cache = 16 << 20};
    struct coll_item item;
    bool found;
    char names[COLL_RESIDENT_MAX + 2][24];
    REQUIRE(world_start(&w));
    begin(&w);
    struct coll *c = open_hash(&w);
    for (int i = 0; i < COLL_RESIDENT_MAX + 2; i++) {
        snprintf(names[i], sizeof names[i], "field:%d", i);
        item = (struct coll_item){.name = slice_str(names[i]), .value = SLICE("value")};
        CHECK_OK(coll_put(c, &item, NULL), engine_error(w.engine));
    }
    CHECK_OK(coll_save(c), engine_error(w.engine));
    for (int i = COLL_RESIDENT_LOAD + 1; i < COLL_RESIDENT_MAX + 2; i++)
        CHECK_OK(coll_remove(c, slice_str(names[i]), &found), engine_error(w.engine));
    CHECK_OK(coll_save(c), engine_error(w.engine));
    commit(&w);

    begin(&w);
    c = open_hash(&w);
    CHECK_EQ(coll_size(c), COLL_RESIDENT_LOAD + 1);
    CHECK_OK(coll_remove(c, slice_str(names[0]), &found), engine_error(w.engine));
    CHECK_OK(coll_save(c), engine_error(w.engine));
    (void)next_call(&w);
    c = open_hash(&w);
    CHECK_OK(coll_find(c, slice_str(names[0]), &found, &item), engine_error(w.engine));
    CHECK(!found);
    (void)engine_leave(w.engine, true);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    CHECK_EQ(engine_commit(w.engine, NULL, &w.err), ST_FULL);
    store_fault_set(w.store, (struct store_fault){0});

    begin(&w);
    c = open_hash(&w);
    CHECK_EQ(coll_size(c), COLL_RESIDENT_LOAD + 1);
    CHECK_OK(coll_find(c, slice_str(names[0]), &found, &item), engine_error(w.engine));
    CHECK(found);
    commit(&w);
    world_end(&w);
}

static void add_members(struct world *w, const char *key, int from, int to)
{
    struct coll *c = NULL;
    bool wrong;
    CHECK_OK(coll_make(w->view, 0, slice_str(key), ROW_ZSET, &c, &wrong), engine_error(w->engine));
    for (int i = from; i < to; i++) {
        char name[24];
        snprintf(name, sizeof name, "member:%d", i);
        struct coll_item item = {.name = arena_copy(view_arena(w->view), slice_str(name)), .score = i};
        CHECK_OK(coll_put(c, &item, NULL), engine_error(w->engine));
    }
    CHECK_OK(coll_save(c), engine_error(w->engine));
}

static void expect_rank(struct world *w, const char *key, double score, int64_t want)
{
    struct coll *c = NULL;
    struct coll_bound b = {.score = score};
    int64_t rank = -1;
    bool wrong;
    REQUIRE_OK(coll_open(w->view, 0, slice_str(key), ROW_ZSET, &c, &wrong), engine_error(w->engine));
    REQUIRE(c != NULL);
    CHECK_OK(coll_rank_of(c, &b, false, &rank), engine_error(w->engine));
    CHECK_EQ(rank, want);
}

/* The same for the counts by which ranks are found, after a call of the batch was undone. */
static void ranks_read_in_a_batch_that_fails_are_read_again(void)
{
    struct world w = {.cache = 16 << 20};
    int many = COLL_RESIDENT_MAX + 1000;
    REQUIRE(world_start(&w));
    begin(&w);
    add_members(&w, "zset", 1, many + 1);
    commit(&w);
    begin(&w);
    add_members(&w, "zset", -5, 0);
    (void)next_call(&w);
    add_members(&w, "other", 0, 1);
    undo_call(&w);
    expect_rank(&w, "zset", many, many - 1 + 5);
    (void)engine_leave(w.engine, true);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    CHECK_EQ(engine_commit(w.engine, NULL, &w.err), ST_FULL);
    store_fault_set(w.store, (struct store_fault){0});
    begin(&w);
    expect_rank(&w, "zset", many, many - 1);
    commit(&w);
    world_end(&w);
}

/* ---- counts ---- */

static void counts_are_right_after_a_restart(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "a", "1");
    set(&w, 1, "b", "1");
    expect_size(&w, 0, 1); /* brings the counts into the tables ... */
    del(&w, 0, "a");       /* ... and back to what they were before the batch */
    commit(&w);
    CHECK_EQ(world_sql(&w, "SELECT keys FROM larder_db WHERE db = 0"), 0);
    CHECK_EQ(world_sql(&w, "SELECT keys FROM larder_db WHERE db = 1"), 1);
    begin(&w);
    set(&w, 0, "a", "1");
    expect_size(&w, 0, 1);
    CHECK_OK(view_swap_db(w.view, 0, 1), engine_error(w.engine));
    expect_size(&w, 1, 1);
    CHECK_OK(view_swap_db(w.view, 0, 1), engine_error(w.engine));
    set(&w, 1, "c", "1");
    commit(&w);
    REQUIRE(world_reopen(&w));
    begin(&w);
    expect_size(&w, 0, 1);
    expect_size(&w, 1, 2);
    commit(&w);
    world_end(&w);
}

static void expired_rows_do_not_count_before_they_are_swept(void)
{
    struct world w = {0};
    int64_t keys, expires;
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "stays", "1");
    CHECK_OK(view_set_string(w.view, 0, SLICE("ends"), SLICE("1"), w.now + 10), &w.err);
    CHECK_OK(view_set_string(w.view, 0, SLICE("later"), SLICE("1"), w.now + 100), &w.err);
    commit(&w);
    world_clock(&w, w.now + 9);
    begin(&w);
    expect(&w, 0, "ends", "1");
    expect_size(&w, 0, 3);
    world_clock(&w, w.now + 5); /* a batch has one moment */
    expect(&w, 0, "ends", "1");
    expect_size(&w, 0, 3);
    commit(&w);
    world_clock(&w, w.now - 4); /* exactly when it ends */
    begin(&w);
    expect(&w, 0, "ends", NULL);
    CHECK_OK(view_db_size(w.view, 0, &keys, &expires), engine_error(w.engine));
    CHECK_EQ(keys, 2);
    CHECK_EQ(expires, 1);
    commit(&w);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_key"), 3);
    world_sweep(&w);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_key"), 2);
    begin(&w);
    expect(&w, 0, "ends", NULL);
    expect_size(&w, 0, 2);
    set(&w, 0, "ends", "again");
    expect_size(&w, 0, 3);
    commit(&w);
    world_end(&w);
}

static void counts_outlive_a_sweep_that_fails(void)
{
    struct world w = {0};
    bool more;
    uint64_t rows;
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "a", "1");
    commit(&w);
    (void)world_sql(&w, "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at, value)"
                        " SELECT number, x'62', 1, 0, 0, 0, 1, 0, x'76' FROM larder_db WHERE db = 0");
    begin(&w);
    expect_size(&w, 0, 2);
    expect(&w, 0, "b", "v");
    commit(&w);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_IO});
    CHECK_EQ(engine_sweep(w.engine, 100, &more, &rows, &w.err), ST_IO);
    begin(&w);
    expect_size(&w, 0, 2);
    commit(&w);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_IO, .sticky = true});
    CHECK_EQ(engine_sweep(w.engine, 100, &more, &rows, &w.err), ST_IO);
    store_fault_set(w.store, (struct store_fault){0});
    begin(&w);
    expect_size(&w, 0, 2);
    expect(&w, 0, "a", "1");
    commit(&w);
    world_end(&w);
}

/* ---- memory and tables ---- */

static void absence_is_remembered(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    store_fault_set(w.store, (struct store_fault){0});
    expect(&w, 0, "nothing", NULL);
    CHECK_EQ(fault_calls(w.store), 1);
    expect(&w, 0, "nothing", NULL);
    del(&w, 0, "nothing");
    CHECK_EQ(fault_calls(w.store), 1);
    expect(&w, 1, "nothing", NULL); /* another database, another row */
    CHECK_EQ(fault_calls(w.store), 2);
    set(&w, 0, "nothing", "something");
    expect(&w, 0, "nothing", "something");
    CHECK_EQ(fault_calls(w.store), 2);
    commit(&w);
    begin(&w);
    store_fault_set(w.store, (struct store_fault){0});
    expect(&w, 0, "nothing", "something");
    del(&w, 0, "nothing");
    expect(&w, 0, "nothing", NULL);
    CHECK_EQ(fault_calls(w.store), 0);
    commit(&w);
    world_end(&w);
}

static void the_cache_keeps_its_budget(void)
{
    struct world w = {.cache = 262144};
    char key[16], value[1000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    REQUIRE(world_start(&w));
    begin(&w);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key:%d", i);
        set(&w, 0, key, value);
        (void)next_call(&w);
    }
    const struct cache_stats *s = cache_get_stats(engine_cache(w.engine));
    CHECK(s->bytes > 1000000); /* what is not committed is only here */
    expect(&w, 0, "key:0", value);
    commit(&w);
    CHECK(s->bytes <= w.cache);
    CHECK(s->rows < 1000);
    for (int round = 0; round < 3; round++) {
        begin(&w);
        for (int i = 0; i < 1000; i++) {
            snprintf(key, sizeof key, "key:%d", i);
            expect(&w, 0, key, value);
            expect(&w, 0, "key:7", value);
            (void)next_call(&w);
            CHECK(s->bytes <= w.cache);
        }
        store_fault_set(w.store, (struct store_fault){0});
        expect(&w, 0, "key:7", value);
        CHECK_EQ(fault_calls(w.store), 0); /* what is in use stays, however much else is read */
        commit(&w);
    }
    world_end(&w);
}

static void writes_of_others_are_noticed(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "changed", "before");
    set(&w, 0, "removed", "before");
    expect(&w, 0, "added", NULL);
    commit(&w);
    (void)world_sql(&w, "UPDATE larder_key SET value = x'6166746572' WHERE key = CAST('changed' AS BLOB)");
    (void)world_sql(&w, "DELETE FROM larder_key WHERE key = CAST('removed' AS BLOB)");
    (void)world_sql(&w, "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at, value)"
                        " SELECT number, CAST('added' AS BLOB), 1, 0, 0, 0, 1, 0, x'6e6577' FROM larder_db"
                        " WHERE db IN (0, 1)");
    begin(&w);
    expect(&w, 0, "changed", "after");
    expect(&w, 0, "removed", NULL);
    expect(&w, 0, "added", "new");
    expect(&w, 1, "added", "new");
    expect_size(&w, 0, 2);
    set(&w, 0, "removed", "again");
    set(&w, 0, "added", "mine");
    expect_size(&w, 0, 3);
    expect_size(&w, 1, 1);
    commit(&w);
    CHECK_EQ(engine_get_stats(w.engine)->external_changes, 1);
    REQUIRE(world_reopen(&w));
    begin(&w);
    expect(&w, 0, "removed", "again");
    expect(&w, 0, "added", "mine");
    expect_size(&w, 0, 3);
    expect_size(&w, 1, 1);
    commit(&w);
    world_end(&w);
}

/* The tables may give a swept row's number to another row: memory must not write to the old one. */
static void a_swept_row_is_forgotten(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set(&w, 0, "first", "1");
    commit(&w);
    begin(&w);
    del(&w, 0, "first");
    commit(&w);
    world_sweep(&w);
    begin(&w);
    set(&w, 0, "second", "2");
    commit(&w);
    begin(&w);
    set(&w, 0, "first", "again");
    commit(&w);
    REQUIRE(world_reopen(&w));
    begin(&w);
    expect(&w, 0, "first", "again");
    expect(&w, 0, "second", "2");
    expect_size(&w, 0, 2);
    commit(&w);
    world_end(&w);
}

static void replaced_values_are_swept(void)
{
    struct world w = {0};
    REQUIRE(world_start(&w));
    begin(&w);
    set_long(&w, 0, "deleted", 'd');
    set_long(&w, 0, "replaced", 'r');
    set_long(&w, 0, "moved", 'm');
    set_long(&w, 0, "overwritten", 'o');
    set_long(&w, 1, "flushed", 'f');
    set_long(&w, 0, "undone", 'u');
    commit(&w);
    begin(&w);
    del(&w, 0, "deleted");
    set(&w, 0, "replaced", "short");
    CHECK_OK(view_move(w.view, 0, SLICE("moved"), 0, SLICE("overwritten")), engine_error(w.engine));
    CHECK_OK(view_flush_db(w.view, 1), engine_error(w.engine));
    (void)next_call(&w);
    del(&w, 0, "undone");
    undo_call(&w);
    commit(&w);
    world_sweep(&w);
    CHECK_EQ(world_sql(&w, "SELECT count(DISTINCT id) FROM larder_chunk"), 2);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_key"), 3);
    begin(&w);
    expect_long(&w, 0, "overwritten", 'm');
    expect_long(&w, 0, "undone", 'u');
    expect(&w, 0, "replaced", "short");
    expect(&w, 1, "flushed", NULL);
    commit(&w);
    world_end(&w);
}

static void versions_grow_though_the_clock_goes_back(void)
{
    struct world w = {0};
    int64_t last = 0;
    REQUIRE(world_start(&w));
    for (int i = 0; i < 20; i++) {
        world_clock(&w, w.now + (i % 3 ? -1000 : 500));
        begin(&w);
        if (i % 4 == 3)
            del(&w, 0, "key");
        set(&w, 0, "key", "value");
        commit(&w);
        int64_t version = 0;
        begin(&w);
        CHECK_OK(view_version(w.view, 0, SLICE("key"), &version), engine_error(w.engine));
        commit(&w);
        CHECK(version > last);
        last = version;
    }
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_reply_waits_for_the_commit_when_it_saw_the_batch);
    RUN(pending_bytes_are_those_of_the_batch);
    RUN(any_call_may_fail);
    RUN(any_call_may_fail_after_it_was_carried_out);
    RUN(a_batch_that_may_not_write_still_reads);
    RUN(a_call_undone_too_late_takes_its_batch_along);
    RUN(a_call_behind_one_undone_too_late_is_not_answered);
    RUN(ids_of_a_transaction_that_was_rolled_back_are_not_used);
    RUN(a_collection_read_in_a_batch_that_fails_is_read_again);
    RUN(ranks_read_in_a_batch_that_fails_are_read_again);
    RUN(counts_are_right_after_a_restart);
    RUN(expired_rows_do_not_count_before_they_are_swept);
    RUN(counts_outlive_a_sweep_that_fails);
    RUN(absence_is_remembered);
    RUN(the_cache_keeps_its_budget);
    RUN(writes_of_others_are_noticed);
    RUN(a_swept_row_is_forgotten);
    RUN(replaced_values_are_swept);
    RUN(versions_grow_though_the_clock_goes_back);
    return check_done();
}
