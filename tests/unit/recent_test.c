/* What is promised of rows that were read a while ago: how old they may be, what belongs together, what is
   never kept, and what only the database may answer. */
#include "world.h"

#include "engine/coll.h"
#include "engine/recent.h"

#define MS     INT64_C(1000)
#define BUDGET (1 << 20)

/* An engine that reads and writes, and beside it what was read from it. mono: microseconds. */
struct pair {
    struct world w;
    struct recent *recent;
    struct view *memory;
    int64_t mono;
    const char *also; /* another key that calls use */
};

static bool start(struct pair *p)
{
    *p = (struct pair){.mono = 1000 * MS};
    if (!world_start(&p->w))
        return false;
    p->recent = recent_new(WORLD_DATABASES, BUDGET);
    p->memory = engine_view(recent_engine(p->recent));
    return true;
}

static void end(struct pair *p)
{
    recent_free(p->recent);
    world_end(&p->w);
}

/* ---- the database ---- */

static bool begin(struct pair *p)
{
    bool ok = world_begin(&p->w);
    CHECK(ok);
    if (ok)
        world_enter(&p->w);
    return ok;
}

static void commit(struct pair *p)
{
    (void)engine_leave(p->w.engine, true);
    CHECK_OK(engine_commit(p->w.engine, NULL, &p->w.err), &p->w.err);
}

static void set(struct pair *p, uint32_t db, const char *key, const char *value, int64_t expire_at)
{
    if (!begin(p))
        return;
    CHECK_OK(view_set_string(p->w.view, db, slice_str(key), slice_str(value), expire_at), &p->w.err);
    commit(p);
}

static void put_fields(struct pair *p, const char *key, int n, int64_t expire_at)
{
    struct coll *c;
    bool wrong;
    if (!begin(p))
        return;
    CHECK_OK(coll_make(p->w.view, 0, slice_str(key), ROW_HASH, &c, &wrong), &p->w.err);
    for (int i = 0; i < n; i++) {
        char *name = arena_alloc(view_arena(p->w.view), 32);
        int len = snprintf(name, 32, "field%d", i);
        struct coll_item item = {
            .name = slice_of(name, (size_t)len), .value = SLICE("x"), .expire_at = expire_at};
        CHECK_OK(coll_put(c, &item, NULL), &p->w.err);
    }
    CHECK_OK(coll_save(c), &p->w.err);
    commit(p);
}

static void rename_key(struct pair *p, const char *from, const char *to)
{
    if (!begin(p))
        return;
    CHECK_OK(view_move(p->w.view, 0, slice_str(from), 0, slice_str(to)), &p->w.err);
    commit(p);
}

/* ---- memory ---- */

static struct recent_snapshot now_of(const struct pair *p)
{
    return (struct recent_snapshot){.asked_us = p->mono, .as_of_us = p->mono};
}

static bool serves_at(struct pair *p, uint32_t db, const char *key, int64_t as_of_us,
                      const struct position *need, struct recent_served *ret)
{
    struct recent_demand d = {.as_of_us = as_of_us, .need = need};
    recent_begin(p->recent, p->mono);
    view_declare(p->memory, db, slice_str(key));
    if (p->also)
        view_declare(p->memory, db, slice_str(p->also));
    bool ok = recent_serves(p->recent, &d, ret);
    recent_end(p->recent);
    return ok;
}

static bool serves(struct pair *p, uint32_t db, const char *key, int64_t age_ms)
{
    return serves_at(p, db, key, p->mono - age_ms * MS, NULL, NULL);
}

/* A client asks for a key that memory may not have, and so the database is read. */
static void read_key(struct pair *p, uint32_t db, const char *key, struct recent_snapshot s)
{
    const struct row *row, *other;
    struct coll *c;
    bool wrong;
    struct error write_err;
    (void)serves_at(p, db, key, INT64_MAX, NULL, NULL);
    REQUIRE_OK(engine_begin(p->w.engine, false, &write_err, &p->w.err), &p->w.err);
    world_enter(&p->w);
    REQUIRE_OK(view_get(p->w.view, db, slice_str(key), &row), &p->w.err);
    if (p->also)
        REQUIRE_OK(view_get(p->w.view, db, slice_str(p->also), &other), &p->w.err);
    if (row && row->type != ROW_STRING)
        CHECK_OK(coll_open(p->w.view, db, slice_str(key), (enum row_type)row->type, &c, &wrong), &p->w.err);
    commit(p);
    recent_take(p->recent, p->w.engine, &s);
    recent_settle(p->recent);
}

/* What a call on memory finds; value NULL: no such key. */
static void expect(struct pair *p, uint32_t db, const char *key, const char *value)
{
    const struct row *row;
    struct slice got;
    struct engine *e = recent_engine(p->recent);
    CHECK(serves(p, db, key, 1000000));
    recent_begin(p->recent, p->mono);
    engine_enter(e);
    REQUIRE_OK(view_get(p->memory, db, slice_str(key), &row), engine_error(e));
    CHECK_EQ(row != NULL, value != NULL);
    if (row && value) {
        CHECK_OK(view_string(p->memory, row, &p->w.arena, &got), engine_error(e));
        CHECK_SLICE(got, slice_str(value));
    }
    struct engine_trace t = engine_leave(e, true);
    CHECK(!t.wrote && t.wait == 0);
    recent_end(p->recent);
}

/* How many items a hash has, by its row and by a walk over them. */
static enum status count_item(void *arg, const struct coll_item *item)
{
    (void)item;
    ++*(int *)arg;
    return ST_OK;
}

static void expect_fields(struct pair *p, const char *key, int n)
{
    struct coll *c;
    bool wrong;
    int walked = 0;
    struct engine *e = recent_engine(p->recent);
    CHECK(serves(p, 0, key, 1000000));
    recent_begin(p->recent, p->mono);
    engine_enter(e);
    REQUIRE_OK(coll_open(p->memory, 0, slice_str(key), ROW_HASH, &c, &wrong), engine_error(e));
    REQUIRE(c != NULL);
    CHECK_EQ(coll_size(c), n);
    CHECK_OK(coll_each(c, count_item, &walked), engine_error(e));
    CHECK_EQ(walked, n);
    (void)engine_leave(e, true);
    recent_end(p->recent);
}

/* ---- age ---- */

static void a_row_is_served_until_it_is_too_old(void)
{
    struct pair p;
    REQUIRE(start(&p));
    set(&p, 0, "k", "old", EXPIRE_NEVER);
    CHECK(!serves(&p, 0, "k", 1000));
    read_key(&p, 0, "k", now_of(&p));
    set(&p, 0, "k", "new", EXPIRE_NEVER);
    p.mono += 100 * MS;
    expect(&p, 0, "k", "old");
    CHECK(serves(&p, 0, "k", 100));
    CHECK(!serves(&p, 0, "k", 99));
    read_key(&p, 0, "k", now_of(&p));
    expect(&p, 0, "k", "new");
    CHECK(serves(&p, 0, "k", 0));
    end(&p);
}

static void the_age_of_a_replica_counts(void)
{
    struct pair p;
    struct recent_snapshot late;
    REQUIRE(start(&p));
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    late = now_of(&p);
    late.as_of_us -= 400 * MS;
    read_key(&p, 0, "k", late);
    p.mono += 100 * MS;
    CHECK(!serves(&p, 0, "k", 499));
    CHECK(serves(&p, 0, "k", 500));
    /* what is older does not take the place of what is newer */
    set(&p, 0, "k", "w", EXPIRE_NEVER);
    late.as_of_us -= 1;
    read_key(&p, 0, "k", late);
    expect(&p, 0, "k", "v");
    end(&p);
}

static void absence_is_known_too(void)
{
    struct pair p;
    REQUIRE(start(&p));
    read_key(&p, 0, "k", now_of(&p));
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    expect(&p, 0, "k", NULL);
    end(&p);
}

static void only_what_was_wanted_is_kept(void)
{
    struct pair p;
    REQUIRE(start(&p));
    struct recent_snapshot s = now_of(&p);
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    recent_take(p.recent, p.w.engine, &s);
    CHECK(!serves(&p, 0, "k", 1000));
    recent_settle(p.recent);
    recent_take(p.recent, p.w.engine, &s);
    CHECK(!serves(&p, 0, "k", 1000));
    end(&p);
}

static void a_call_is_served_whole_or_not(void)
{
    struct pair p;
    REQUIRE(start(&p));
    set(&p, 0, "a", "1", EXPIRE_NEVER);
    read_key(&p, 0, "a", now_of(&p));
    set(&p, 0, "b", "1", EXPIRE_NEVER);
    p.also = "b";
    CHECK(!serves(&p, 0, "a", 1000));
    recent_settle(p.recent);
    p.also = NULL;
    read_key(&p, 0, "b", now_of(&p)); /* both are there, of two snapshots */
    p.also = "b";
    CHECK(!serves(&p, 0, "a", 1000));
    recent_settle(p.recent);
    read_key(&p, 0, "a", now_of(&p));
    CHECK(serves(&p, 0, "a", 1000));
    p.also = "c";
    CHECK(!serves(&p, 0, "a", 1000));
    recent_settle(p.recent);
    p.also = NULL;
    struct recent_demand any = {0};
    CHECK(!recent_serves(p.recent, &any, NULL)); /* no key was declared */
    end(&p);
}

static void what_memory_does_not_have_is_an_error(void)
{
    struct pair p;
    const struct row *row;
    int64_t keys, expires, cursor = 0;
    struct arena arena = {0};
    struct slice key;
    REQUIRE(start(&p));
    struct engine *e = recent_engine(p.recent);
    recent_begin(p.recent, p.mono);
    engine_enter(e);
    CHECK_EQ(view_get(p.memory, 0, SLICE("k"), &row), ST_STALE);
    CHECK_EQ(view_db_size(p.memory, 0, &keys, &expires), ST_STALE);
    CHECK_EQ(view_scan(p.memory, 0, &cursor, 10, NULL, NULL), ST_STALE);
    CHECK_EQ(view_random_key(p.memory, 0, &arena, &key), ST_STALE);
    (void)engine_leave(e, false);
    recent_end(p.recent);
    arena_release(&arena);
    end(&p);
}

/* ---- what belongs together ---- */

static void databases_are_those_of_clients(void)
{
    struct pair p;
    REQUIRE(start(&p));
    set(&p, 0, "k", "zero", EXPIRE_NEVER);
    set(&p, 1, "k", "one", EXPIRE_NEVER);
    read_key(&p, 0, "k", now_of(&p));
    REQUIRE(begin(&p));
    CHECK_OK(view_swap_db(p.w.view, 0, 1), &p.w.err);
    commit(&p);
    expect(&p, 0, "k", "zero");
    read_key(&p, 0, "k", now_of(&p));
    read_key(&p, 1, "k", now_of(&p));
    expect(&p, 0, "k", "one");
    expect(&p, 1, "k", "zero");
    REQUIRE(begin(&p));
    CHECK_OK(view_flush_db(p.w.view, 0), &p.w.err);
    commit(&p);
    expect(&p, 0, "k", "one");
    read_key(&p, 0, "k", now_of(&p));
    expect(&p, 0, "k", NULL);
    expect(&p, 1, "k", "zero");
    end(&p);
}

static void items_are_of_the_snapshot_of_their_key(void)
{
    struct pair p;
    REQUIRE(start(&p));
    put_fields(&p, "a", 3, EXPIRE_NEVER);
    read_key(&p, 0, "a", now_of(&p));
    expect_fields(&p, "a", 3);
    rename_key(&p, "a", "b"); /* the same id, under another key, with more items */
    put_fields(&p, "b", 5, EXPIRE_NEVER);
    read_key(&p, 0, "b", now_of(&p));
    expect_fields(&p, "a", 3);
    expect_fields(&p, "b", 5);
    put_fields(&p, "b", 9, EXPIRE_NEVER);
    expect_fields(&p, "b", 5);
    read_key(&p, 0, "b", now_of(&p));
    expect_fields(&p, "b", 9);
    read_key(&p, 0, "a", now_of(&p));
    expect(&p, 0, "a", NULL);
    set(&p, 0, "b", "a string", EXPIRE_NEVER);
    read_key(&p, 0, "b", now_of(&p));
    expect(&p, 0, "b", "a string");
    CHECK_EQ(engine_memory(recent_engine(p.recent)).collections, 0);
    end(&p);
}

/* ---- what is not kept ---- */

static void a_key_row_without_its_items_is_not_kept(void)
{
    struct pair p;
    const struct row *row;
    REQUIRE(start(&p));
    put_fields(&p, "h", 3, EXPIRE_NEVER);
    put_fields(&p, "large", COLL_RESIDENT_MAX + 1, EXPIRE_NEVER);
    CHECK(world_reopen(&p.w)); /* memory knows nothing of them */
    (void)serves(&p, 0, "h", 1000);
    REQUIRE(begin(&p));
    CHECK_OK(view_get(p.w.view, 0, SLICE("h"), &row), &p.w.err);
    commit(&p);
    struct recent_snapshot s = now_of(&p);
    recent_take(p.recent, p.w.engine, &s);
    CHECK(!serves(&p, 0, "h", 1000));
    read_key(&p, 0, "large", now_of(&p));
    CHECK(!serves(&p, 0, "large", 1000));
    end(&p);
}

static void a_long_string_is_not_kept(void)
{
    struct pair p;
    REQUIRE(start(&p));
    char *text = malloc(STORE_INLINE_BYTES + 2);
    REQUIRE(text != NULL);
    memset(text, 'x', STORE_INLINE_BYTES + 1);
    text[STORE_INLINE_BYTES + 1] = 0;
    set(&p, 0, "long", text, EXPIRE_NEVER);
    read_key(&p, 0, "long", now_of(&p));
    CHECK(!serves(&p, 0, "long", 1000));
    text[STORE_INLINE_BYTES / 2] = 0;
    set(&p, 0, "long", text, EXPIRE_NEVER);
    read_key(&p, 0, "long", now_of(&p));
    CHECK(serves(&p, 0, "long", 1000));
    cache_set_budget(engine_cache(recent_engine(p.recent)), BUDGET / 4);
    text[STORE_INLINE_BYTES / 2] = 'y'; /* more than a small part of the budget now */
    text[STORE_INLINE_BYTES - 1] = 0;
    set(&p, 0, "long", text, EXPIRE_NEVER);
    p.mono += 1;
    read_key(&p, 0, "long", now_of(&p));
    CHECK(!serves(&p, 0, "long", 0));
    free(text);
    end(&p);
}

static void the_budget_is_kept(void)
{
    struct pair p;
    char key[32], value[1001];
    REQUIRE(start(&p));
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = 0;
    put_fields(&p, "h", 300, EXPIRE_NEVER);
    read_key(&p, 0, "h", now_of(&p));
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "key%d", i);
        set(&p, 0, key, value, EXPIRE_NEVER);
        read_key(&p, 0, key, now_of(&p));
        struct engine_memory m = engine_memory(recent_engine(p.recent));
        CHECK(m.rows + m.collections <= BUDGET);
    }
    CHECK(cache_get_stats(engine_cache(recent_engine(p.recent)))->rows > 100);
    end(&p);
}

static void a_row_whose_items_were_dropped_is_not_served(void)
{
    struct pair p;
    REQUIRE(start(&p));
    put_fields(&p, "h", 300, EXPIRE_NEVER);
    read_key(&p, 0, "h", now_of(&p));
    CHECK(serves(&p, 0, "h", 1000));
    cache_set_budget(engine_cache(recent_engine(p.recent)), 2000); /* memos may take half of it */
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    read_key(&p, 0, "k", now_of(&p));
    CHECK(!serves(&p, 0, "h", 1000));
    end(&p);
}

/* ---- expiry ---- */

static void what_may_have_expired_is_the_databases_to_tell(void)
{
    struct pair p;
    REQUIRE(start(&p));
    int64_t now = p.w.now;
    set(&p, 0, "k", "v", now + 50);
    put_fields(&p, "h", 3, now + 70);
    read_key(&p, 0, "k", now_of(&p));
    read_key(&p, 0, "h", now_of(&p));
    world_clock(&p.w, now + 49);
    expect(&p, 0, "k", "v");
    expect_fields(&p, "h", 3);
    world_clock(&p.w, now + 50);
    CHECK(!serves(&p, 0, "k", 1000));
    CHECK(serves(&p, 0, "h", 1000));
    world_clock(&p.w, now + 70);
    CHECK(!serves(&p, 0, "h", 1000));
    read_key(&p, 0, "k", now_of(&p)); /* the row is there until it is swept */
    CHECK(!serves(&p, 0, "k", 1000));
    end(&p);
}

static void the_databases_clock_goes_on(void)
{
    struct pair p;
    REQUIRE(start(&p));
    set(&p, 0, "k", "v", p.w.now + 50);
    read_key(&p, 0, "k", now_of(&p));
    clock_fake_us(0); /* from here on memory counts from the snapshot's clock */
    p.mono += 49 * MS;
    CHECK(serves(&p, 0, "k", 1000));
    p.mono += 1 * MS;
    CHECK(!serves(&p, 0, "k", 1000));
    end(&p);
}

/* ---- sessions ---- */

static struct position lsn(uint32_t timeline, uint64_t number)
{
    return (struct position){.kind = POSITION_LSN, .database = 7, .timeline = timeline, .number = number};
}

static void read_at(struct pair *p, const char *key, struct position admitted, struct position seen)
{
    struct recent_snapshot s = now_of(p);
    s.admitted = admitted;
    s.seen = seen;
    p->mono++;
    s.as_of_us = p->mono;
    read_key(p, 0, key, s);
}

static bool session_serves(struct pair *p, const char *key, struct position need, struct position *seen)
{
    struct recent_served served;
    *seen = need;
    bool ok = serves_at(p, 0, key, 0, &need, &served);
    if (ok)
        *seen = *served.seen;
    return ok;
}

static void a_session_never_goes_back(void)
{
    struct pair p;
    struct position seen, none = {.kind = POSITION_NONE};
    REQUIRE(start(&p));
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    read_at(&p, "k", lsn(1, 100), lsn(1, 120));
    CHECK(session_serves(&p, "k", none, &seen));
    CHECK_EQ(seen.number, 120);
    CHECK(session_serves(&p, "k", lsn(1, 100), &seen));
    CHECK(!session_serves(&p, "k", lsn(1, 101), &seen));
    CHECK_EQ(seen.number, 101);
    CHECK(!session_serves(&p, "k", lsn(1, 120), &seen)); /* another row was seen there, perhaps a later one */
    CHECK(!session_serves(&p, "k", lsn(2, 100), &seen)); /* the tail of timeline 1 may have been lost */
    read_at(&p, "k", none, lsn(1, 500));
    CHECK(session_serves(&p, "k", none, &seen));
    CHECK(!session_serves(&p, "k", lsn(1, 1), &seen));
    read_at(&p, "k", lsn(1, 500), none); /* what it would have seen is not known */
    CHECK(!session_serves(&p, "k", none, &seen));
    CHECK(serves(&p, 0, "k", 1000));
    end(&p);
}

static void a_failover_ends_what_was_read_before(void)
{
    struct pair p;
    REQUIRE(start(&p));
    set(&p, 0, "k", "lost", EXPIRE_NEVER);
    put_fields(&p, "h", 3, EXPIRE_NEVER);
    read_at(&p, "k", lsn(1, 100), lsn(1, 100));
    read_at(&p, "h", lsn(1, 100), lsn(1, 110));
    CHECK(serves(&p, 0, "k", 1000) && serves(&p, 0, "h", 1000));
    struct recent_snapshot s = now_of(&p);
    s.seen = lsn(2, 90);
    recent_take(p.recent, p.w.engine, &s); /* also by who wants nothing */
    CHECK(!serves(&p, 0, "k", 1000) && !serves(&p, 0, "h", 1000));
    CHECK_EQ(engine_memory(recent_engine(p.recent)).collections, 0);
    recent_settle(p.recent);
    read_at(&p, "k", lsn(2, 90), lsn(2, 95));
    CHECK(serves(&p, 0, "k", 1000));
    end(&p);
}

static void gtids_of_another_server_do_not_count(void)
{
    struct pair p;
    struct position seen, at = {.kind = POSITION_GTID, .database = 7, .ndomains = 1, .gtids = {{0, 1, 50}}};
    REQUIRE(start(&p));
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    read_at(&p, "k", at, at);
    struct position need = at;
    CHECK(session_serves(&p, "k", need, &seen));
    need.gtids[0] = (struct position_gtid){0, 2, 40};
    CHECK(!session_serves(&p, "k", need, &seen));
    need.gtids[0] = (struct position_gtid){1, 1, 40};
    CHECK(!session_serves(&p, "k", need, &seen));
    need.gtids[0] = (struct position_gtid){0, 1, 51};
    CHECK(!session_serves(&p, "k", need, &seen));
    end(&p);
}

static void positions_of_long_ago_are_forgotten(void)
{
    struct pair p;
    struct position seen;
    REQUIRE(start(&p));
    set(&p, 0, "k", "v", EXPIRE_NEVER);
    set(&p, 0, "other", "v", EXPIRE_NEVER);
    read_at(&p, "k", lsn(1, 100), lsn(1, 100));
    for (uint64_t i = 0; i < 1000; i++) /* two replicas that stand still are no news */
        read_at(&p, "other", lsn(1, 100 - i % 2), lsn(1, 100 - i % 2));
    CHECK(session_serves(&p, "k", lsn(1, 100), &seen));
    for (uint64_t i = 0; i < 1000; i++)
        read_at(&p, "other", lsn(1, 200 + i), lsn(1, 200 + i));
    CHECK(!session_serves(&p, "k", lsn(1, 50), &seen));
    CHECK(session_serves(&p, "other", lsn(1, 1199), &seen));
    CHECK(serves(&p, 0, "k", 1000));
    end(&p);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(a_row_is_served_until_it_is_too_old);
    RUN(the_age_of_a_replica_counts);
    RUN(absence_is_known_too);
    RUN(only_what_was_wanted_is_kept);
    RUN(a_call_is_served_whole_or_not);
    RUN(what_memory_does_not_have_is_an_error);
    RUN(databases_are_those_of_clients);
    RUN(items_are_of_the_snapshot_of_their_key);
    RUN(a_key_row_without_its_items_is_not_kept);
    RUN(a_long_string_is_not_kept);
    RUN(the_budget_is_kept);
    RUN(a_row_whose_items_were_dropped_is_not_served);
    RUN(what_may_have_expired_is_the_databases_to_tell);
    RUN(the_databases_clock_goes_on);
    RUN(a_session_never_goes_back);
    RUN(a_failover_ends_what_was_read_before);
    RUN(gtids_of_another_server_do_not_count);
    RUN(positions_of_long_ago_are_forgotten);
    return check_done();
}
