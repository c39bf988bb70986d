/* Hashes whose fields expire, in memory and in the tables, against a model: an array of values and moments.
   Time passes between batches of random changes; calls are undone, commits and steps of the sweeper fail.
   What has expired is never seen, what has not always is, and the sweeper changes nothing but the tables. */
#include "world.h"

#include "base/num.h"
#include "base/rand.h"
#include "engine/coll.h"
#include "engine/view_internal.h"

#define NAMES 6000

struct model {
    int64_t expire_at[NAMES];
    int32_t value[NAMES]; /* 0: no such field */
};

struct tester {
    struct world w;
    struct rand rnd;
    int names; /* how many are in use */
    struct model now, before_call, before_batch;
};

static struct slice name_of(int i)
{
    static char text[NAMES][24];
    if (!text[i][0])
        snprintf(text[i], sizeof text[i], "field:%d", i);
    return slice_str(text[i]);
}

static int64_t pick(struct tester *t, int64_t below)
{
    return (int64_t)rand_below(&t->rnd, (uint64_t)below);
}

static bool there(const struct tester *t, int i)
{
    int64_t at = t->now.expire_at[i];
    return t->now.value[i] && (at == EXPIRE_NEVER || at > t->w.now);
}

static int64_t size(const struct tester *t)
{
    int64_t n = 0;
    for (int i = 0; i < t->names; i++)
        n += there(t, i);
    return n;
}

/* ---- changing ---- */

static enum status put(struct tester *t, struct coll *h, int i)
{
    char digits[NUM_I64_CHARS];
    int32_t value = 1 + (int32_t)pick(t, 1000000);
    struct coll_item item = {.name = name_of(i)};
    item.value = arena_copy(view_arena(t->w.view), slice_of(digits, num_format_i64(digits, value)));
    item.expire_at = pick(t, 3) ? t->w.now + 1 + pick(t, 300) : EXPIRE_NEVER;
    bool added;
    enum status st = coll_put(h, &item, &added);
    CHECK_EQ(added, !there(t, i));
    t->now.value[i] = value;
    t->now.expire_at[i] = item.expire_at;
    return st;
}

static enum status drop(struct tester *t, struct coll *h, int i)
{
    bool removed;
    enum status st = coll_remove(h, name_of(i), &removed);
    CHECK_EQ(removed, there(t, i));
    t->now.value[i] = 0;
    return st;
}

static enum status change(struct tester *t, bool grow)
{
    struct coll *h;
    bool wrong;
    enum status st = coll_make(t->w.view, 0, SLICE("h"), ROW_HASH, &h, &wrong);
    if (st != ST_OK)
        return st;
    CHECK_EQ(coll_size(h), size(t));
    int64_t n = pick(t, 5) ? pick(t, 20) : pick(t, t->names / 2), from = pick(t, t->names);
    for (int64_t k = 0; st == ST_OK && k < n; k++) {
        int i = (int)((from + k * 7) % t->names);
        st = pick(t, 10) < (grow ? 8 : 3) ? put(t, h, i) : drop(t, h, i);
    }
    CHECK_EQ(coll_size(h), size(t));
    return st == ST_OK ? coll_save(h) : st;
}

/* ---- comparing ---- */

struct walk {
    struct tester *t;
    bool seen[NAMES];
    int64_t n;
};

static void compare_item(struct tester *t, const struct coll_item *item)
{
    int64_t i, value;
    REQUIRE(num_parse_i64(slice_of(item->name.p + 6, item->name.n - 6), &i));
    REQUIRE(num_parse_i64(item->value, &value));
    CHECK(there(t, (int)i));
    CHECK_EQ(value, t->now.value[i]);
    CHECK_EQ(item->expire_at, t->now.expire_at[i]);
}

static enum status expect_item(void *arg, const struct coll_item *item)
{
    struct walk *w = arg;
    int64_t i = 0;
    compare_item(w->t, item);
    CHECK(num_parse_i64(slice_of(item->name.p + 6, item->name.n - 6), &i));
    CHECK(!w->seen[i]);
    w->seen[i] = true;
    w->n++;
    return ST_OK;
}

static void compare_walks(struct tester *t, struct coll *h)
{
    int64_t cursor = 0, n = size(t);
    struct walk *w = calloc(1, sizeof *w);
    w->t = t;
    CHECK_OK(coll_each(h, expect_item, w), engine_error(t->w.engine));
    CHECK_EQ(w->n, n);
    *w = (struct walk){.t = t};
    do {
        CHECK_OK(coll_page(h, &cursor, 100, expect_item, w), engine_error(t->w.engine));
    } while (cursor);
    CHECK_EQ(w->n, n);
    *w = (struct walk){.t = t};
    int64_t some = 1 + pick(t, pick(t, 2) ? n : 1 + n / 20);
    CHECK_OK(coll_sample(h, some, expect_item, w), engine_error(t->w.engine));
    CHECK_EQ(w->n, some);
    free(w);
}

static void compare(struct tester *t)
{
    struct coll *h;
    struct coll_item item;
    bool wrong, found;
    int64_t version, keys, expires;
    world_enter(&t->w);
    REQUIRE_OK(view_version(t->w.view, 0, SLICE("h"), &version), engine_error(t->w.engine));
    CHECK_EQ(version != 0, size(t) != 0);
    REQUIRE_OK(view_db_size(t->w.view, 0, &keys, &expires), engine_error(t->w.engine));
    CHECK_EQ(keys, size(t) != 0);
    REQUIRE_OK(coll_open(t->w.view, 0, SLICE("h"), ROW_HASH, &h, &wrong), engine_error(t->w.engine));
    CHECK_EQ(h ? coll_size(h) : 0, size(t));
    for (int k = 0; h && k < 10; k++) {
        int i = (int)pick(t, t->names);
        REQUIRE_OK(coll_find(h, name_of(i), &found, &item), engine_error(t->w.engine));
        CHECK_EQ(found, there(t, i));
        if (found)
            compare_item(t, &item);
        REQUIRE_OK(coll_random(h, &item), engine_error(t->w.engine));
        compare_item(t, &item);
    }
    if (h)
        compare_walks(t, h);
    (void)engine_leave(t->w.engine, true);
}

/* Sizes and numbers agree with the rows, and no field expires before its hash says. */
static void compare_tables(struct tester *t)
{
    CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key AS k WHERE type = 2 AND size IS NOT"
                              " (SELECT count(*) FROM larder_hash WHERE id = k.id)"),
             0);
    world_check_numbers(&t->w, ROW_HASH, "larder_hash");
    CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id"
                              " WHERE type = 2 AND f.expire_at <> 0 AND (first = 0 OR first > f.expire_at)"),
             0);
}

/* ---- the tests ---- */

static void batch(struct tester *t, bool grow, bool may_fail)
{
    REQUIRE(world_begin(&t->w));
    t->before_batch = t->now;
    for (int64_t calls = 1 + pick(t, 4); calls > 0; calls--) {
        world_enter(&t->w);
        t->before_call = t->now;
        enum status st = change(t, grow);
        bool keep = st == ST_OK && (!may_fail || pick(t, 10));
        CHECK_OK(st, engine_error(t->w.engine));
        (void)engine_leave(t->w.engine, keep);
        if (!keep)
            t->now = t->before_call;
        if (t->w.view->batch.poison != ST_OK)
            break;
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

/* Some steps, which may fail at any call. */
static void sweep(struct tester *t, bool may_fail)
{
    for (int64_t n = pick(t, 6); n > 0; n--) {
        bool more;
        uint64_t rows;
        if (may_fail)
            store_fault_set(t->w.store,
                            (struct store_fault){.nth = 1 + (uint64_t)pick(t, 12), .status = ST_IO});
        enum status st = engine_sweep(t->w.engine, 1 + (uint32_t)pick(t, 400), &more, &rows, &t->w.err);
        store_fault_set(t->w.store, (struct store_fault){.nth = 0});
        CHECK(st == ST_OK || may_fail);
    }
}

static void compare_alone(struct tester *t)
{
    REQUIRE(world_begin(&t->w));
    compare(t);
    CHECK_OK(engine_commit(t->w.engine, NULL, &t->w.err), &t->w.err);
}

static void run(uint64_t seed, int names, size_t cache, bool may_fail)
{
    struct tester *t = calloc(1, sizeof *t);
    t->w.cache = cache;
    t->names = names;
    rand_seed(&t->rnd, seed);
    if (world_start(&t->w)) {
        for (int i = 0; i < 120 && !check.checks_failed; i++) {
            batch(t, i / 30 % 2 == 0, may_fail);
            world_clock(&t->w, t->w.now + pick(t, pick(t, 4) ? 20 : 400));
            if (i % 3 == 0)
                compare_alone(t);
            sweep(t, may_fail);
            if (i % 10 == 0)
                compare_alone(t);
            if (i % 30 == 25)
                CHECK(world_reopen(&t->w));
        }
        compare_tables(t);
        world_sweep(&t->w);
        compare_tables(t);
        compare_alone(t);
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_hash"), size(t));
        world_clock(&t->w, t->w.now + 1000);
        world_sweep(&t->w);
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_hash"), size(t));
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_hash WHERE expire_at <> 0"), 0);
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key WHERE type = 2 AND first <> 0"), 0);
        compare_alone(t);
        world_end(&t->w);
    }
    free(t);
}

static void small_hashes(void)
{
    run(1, 10, 64 << 20, false);
    run(2, 500, 64 << 20, false);
    run(3, 500, 1, false);
}

static void hashes_in_memory_and_beyond(void)
{
    run(4, NAMES, 64 << 20, false);
    run(5, 1500, 64 << 20, false);
}

static void hashes_without_memory(void)
{
    run(6, NAMES, 1, false);
}

static void failures_leave_no_trace(void)
{
    run(7, 200, 64 << 20, true);
    run(8, NAMES, 64 << 20, true);
    run(9, NAMES, 1, true);
}

/* The version changes with each field that expires, and not when the sweeper removes it. */
static void expiry_is_a_change(void)
{
    struct world w = {0};
    struct coll *h;
    bool wrong, more;
    int64_t before = 0, after = 0, swept = 0;
    uint64_t rows;
    if (!world_start(&w))
        return;
    REQUIRE(world_begin(&w));
    world_enter(&w);
    REQUIRE_OK(coll_make(w.view, 0, SLICE("h"), ROW_HASH, &h, &wrong), engine_error(w.engine));
    for (int i = 0; i < 10; i++) {
        struct coll_item item = {.name = name_of(i), .expire_at = i < 5 ? w.now + 10 : EXPIRE_NEVER};
        CHECK_OK(coll_put(h, &item, NULL), engine_error(w.engine));
    }
    CHECK_OK(coll_save(h), engine_error(w.engine));
    CHECK_OK(view_version(w.view, 0, SLICE("h"), &before), engine_error(w.engine));
    (void)engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);

    world_clock(&w, w.now + 10);
    REQUIRE(world_begin(&w));
    CHECK_OK(view_version(w.view, 0, SLICE("h"), &after), engine_error(w.engine));
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    CHECK_EQ(after, before + 5);
    CHECK_OK(engine_sweep(w.engine, 3, &more, &rows, &w.err), &w.err);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_hash"), 7);
    world_sweep(&w);
    CHECK_EQ(world_sql(&w, "SELECT count(*) FROM larder_hash"), 5);
    REQUIRE(world_begin(&w));
    CHECK_OK(view_version(w.view, 0, SLICE("h"), &swept), engine_error(w.engine));
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    CHECK_EQ(swept, after);
    world_end(&w);
}

/* One call on the hash h: field 0 gets a value, when there is one to get; what it has is returned. */
static int64_t field_0(struct world *w, const char *value, bool flush, bool keep)
{
    struct coll *h;
    struct coll_item item = {.name = name_of(0), .value = value ? slice_str(value) : SLICE("")};
    bool wrong, found = false;
    int64_t n = 0;
    world_enter(w);
    CHECK_OK(coll_make(w->view, 0, SLICE("h"), ROW_HASH, &h, &wrong), engine_error(w->engine));
    if (value)
        CHECK_OK(coll_put(h, &item, NULL), engine_error(w->engine));
    CHECK_OK(coll_save(h), engine_error(w->engine));
    if (flush)
        CHECK_OK(view_flush(w->view), engine_error(w->engine));
    CHECK_OK(coll_find(h, name_of(0), &found, &item), engine_error(w->engine));
    CHECK(found && num_parse_i64(item.value, &n));
    (void)engine_leave(w->engine, keep);
    return n;
}

/* A field of a large hash in memory: what calls and batches that failed had made of it is forgotten, also
   when it was read from tables that had it already. */
static void memory_of_fields(void)
{
    struct world w = {.cache = 64 << 20};
    struct coll *h;
    bool wrong;
    if (!world_start(&w))
        return;
    REQUIRE(world_begin(&w));
    world_enter(&w);
    REQUIRE_OK(coll_make(w.view, 0, SLICE("h"), ROW_HASH, &h, &wrong), engine_error(w.engine));
    for (int i = 0; i < NAMES; i++) {
        struct coll_item item = {.name = name_of(i), .value = SLICE("1")};
        CHECK_OK(coll_put(h, &item, NULL), engine_error(w.engine));
    }
    CHECK_OK(coll_save(h), engine_error(w.engine));
    (void)engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);

    REQUIRE(world_begin(&w));
    CHECK_EQ(field_0(&w, "2", true, false), 2);
    (void)field_0(&w, NULL, false, true);
    CHECK(engine_commit(w.engine, NULL, &w.err) != ST_OK);
    REQUIRE(world_begin(&w));
    CHECK_EQ(field_0(&w, NULL, false, true), 1);
    CHECK_EQ(field_0(&w, "3", false, false), 3);
    CHECK_EQ(field_0(&w, NULL, false, true), 1);
    CHECK_EQ(field_0(&w, "4", false, true), 4);
    store_fault_set(w.store, (struct store_fault){.nth = 1, .status = ST_FULL});
    CHECK(engine_commit(w.engine, NULL, &w.err) != ST_OK);
    store_fault_set(w.store, (struct store_fault){.nth = 0});
    REQUIRE(world_begin(&w));
    CHECK_EQ(field_0(&w, NULL, false, true), 1);
    CHECK_EQ(field_0(&w, "5", false, true), 5);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_sql(&w, "UPDATE larder_hash SET value = x'36' WHERE field = CAST('field:0' AS BLOB)");
    REQUIRE(world_begin(&w));
    CHECK_EQ(field_0(&w, NULL, false, true), 6);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(small_hashes);
    RUN(hashes_in_memory_and_beyond);
    RUN(hashes_without_memory);
    RUN(failures_leave_no_trace);
    RUN(expiry_is_a_change);
    RUN(memory_of_fields);
    return check_done();
}
