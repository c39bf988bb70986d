/* Tables over hashes: whatever happens to hashes, their keys and the tables, entries are what the hashes in
   the tables come to, at every commit. Random calls against a model that looks at every hash anew. */
#include "world.h"

#include <stdlib.h>

#include "base/rand.h"
#include "engine/coll_internal.h"
#include "table/hashes/hashes_internal.h"

#define KEYS   9
#define ROUNDS 700
#define MANY   3000 /* fields of a hash that is not in memory */

static struct world w;
static struct hashes *keeper;
static struct rand rng;
static const char *const keys[KEYS] = {"u:1", "u:2", "u:3", "u:4", "u:", "x:1", "u:\xff", "u:long", "z"};
static const char *const tables[] = {"users", "everything", "copies"};

static struct error *why(void)
{
    return engine_error(w.engine);
}

static uint32_t any(uint32_t n)
{
    return (uint32_t)rand_below(&rng, n);
}

static struct slice kept(const char *text)
{
    return arena_copy(view_arena(w.view), slice_str(text));
}

/* (id TEXT, name TEXT, age INTEGER; by_age (age), by_both (name, age DESC)) */
static struct slice describe(const char *prefix)
{
    static struct column columns[3];
    static struct key_part key[1] = {{0, false}}, age[1] = {{2, false}}, both[2] = {{1, false}, {2, true}};
    static struct table_index indexes[2];
    static const char *const names[] = {"id", "name", "age"};
    for (int i = 0; i < 3; i++)
        columns[i] = (struct column){.name = slice_str(names[i]),
                                     .id = (uint16_t)(i + 1),
                                     .not_null = i == 0,
                                     .type = i == 2 ? COLUMN_INTEGER : COLUMN_TEXT};
    indexes[0] = (struct table_index){.name = SLICE("by_age"), .number = 1, .parts = age, .nparts = 1};
    indexes[1] = (struct table_index){.name = SLICE("by_both"), .number = 7, .parts = both, .nparts = 2};
    struct schema s = {.columns = columns,
                       .ncolumns = 3,
                       .key = key,
                       .nkey = 1,
                       .indexes = indexes,
                       .nindexes = 2,
                       .next_column = 4,
                       .next_index = 8,
                       .on_hashes = true,
                       .prefix = slice_str(prefix)};
    struct buf json = {0};
    schema_encode(&s, &json);
    struct slice copy = arena_copy(view_arena(w.view), buf_slice(&json));
    buf_release(&json);
    return copy;
}

/* ---- what entries should be ---- */

struct names {
    struct slice *at;
    size_t n;
};

static void add_name(struct names *to, struct slice name)
{
    to->at = realloc(to->at, (to->n + 1) * sizeof *to->at);
    to->at[to->n++] = arena_copy(&w.arena, name);
}

static enum status note_name(void *arg, const struct item_row *item)
{
    add_name(arg, item->ref.name);
    return ST_OK;
}

static int in_order(const void *a, const void *b)
{
    return slice_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

static void expect_hash(const struct schema *s, uint32_t number, struct slice key, struct names *want)
{
    const struct row *row;
    struct coll *c;
    struct value values[3];
    struct buf code = {0};
    REQUIRE_OK(view_row_of(w.view, number, key, &row), why());
    if (row->type != ROW_HASH || !hashes_prefixed(key, s->prefix))
        return;
    if (!hashes_key_value(s->prefix, key, &values[0])) {
        hashes_unnamed_name(s->prefix, key, &code);
        add_name(want, buf_slice(&code));
        buf_release(&code);
        return;
    }
    struct row_ext items = row_items(row);
    REQUIRE_OK(coll_of_items(w.view, key, &items, &c), why());
    for (uint16_t i = 1; i < 3; i++) {
        bool found;
        struct slice text;
        REQUIRE_OK(coll_field_now(c, s->columns[i].name, &found, &text), why());
        values[i] = (struct value){.kind = VALUE_NULL};
        if (found && !hashes_value(&s->columns[i], text, &w.arena, &values[i])) {
            hashes_unparsed_name(&values[0], s->columns[i].id, &code);
            add_name(want, buf_slice(&code));
        }
    }
    for (size_t i = 0; i < s->nindexes; i++) {
        hashes_entry(s, &s->indexes[i], values, &code);
        add_name(want, buf_slice(&code));
    }
    buf_release(&code);
}

static void expect_table(uint32_t number, struct slice name)
{
    const struct row *row;
    struct schema s;
    struct names want = {0}, got = {0};
    REQUIRE_OK(view_row_of(w.view, number, name, &row), why());
    if (row->type != ROW_TABLE)
        return;
    REQUIRE_OK(schema_decode(arena_copy(&w.arena, row_value(row)), &w.arena, &s, &w.err), &w.err);
    struct item_scan q = {
        .table = ITEM_ENTRY, .id = row_items(row).id, .order = ITEMS_BY_NAME, .limit = UINT32_MAX};
    REQUIRE_OK(view_scan_items(w.view, &q, note_name, &got), why());
    for (int i = 0; i < KEYS; i++)
        expect_hash(&s, number, slice_str(keys[i]), &want);
    if (want.n)
        qsort(want.at, want.n, sizeof *want.at, in_order);
    CHECK_EQ(got.n, want.n);
    for (size_t i = 0; i < got.n && got.n == want.n; i++)
        CHECK_SLICE(got.at[i], want.at[i]);
    free(got.at);
    free(want.at);
}

static void expect_all(void)
{
    REQUIRE(world_begin(&w));
    world_enter(&w);
    for (uint32_t db = 0; db < WORLD_DATABASES; db++)
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
            expect_table(view_number(w.view, db), slice_str(tables[t]));
    engine_leave(w.engine, false);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
}

/* ---- what clients do ---- */

static struct slice any_text(char *room, size_t size)
{
    static const char *const odd[] = {"", "x", "0x10", "12.5", "\xff", "-9223372036854775808"};
    if (any(12) == 0) { /* too long for an entry */
        memset(room, 'n', size - 1);
        return slice_of(room, size - 1);
    }
    if (any(3) == 0)
        return slice_str(odd[any(6)]);
    return slice_of(room, (size_t)snprintf(room, size, "%u", any(40)));
}

static void put_fields(struct coll *c)
{
    static const char *const fields[] = {"age", "name", "id", "other"};
    char room[1200];
    for (uint32_t n = 1 + any(3); n; n--) {
        struct coll_item item = {.name = kept(fields[any(4)])};
        item.value = arena_copy(view_arena(w.view), any_text(room, sizeof room));
        if (any(5) == 0)
            item.expire_at = w.now + 1 + any(200);
        CHECK_OK(coll_put(c, &item, NULL), why());
    }
}

static void change_hash(uint32_t db, struct slice key)
{
    struct coll *c;
    bool wrong, removed;
    static const char *const fields[] = {"age", "name", "id", "other"};
    REQUIRE_OK(coll_make(w.view, db, key, ROW_HASH, &c, &wrong), why());
    if (wrong)
        return;
    if (any(3))
        put_fields(c);
    for (uint32_t n = any(4); n; n--)
        CHECK_OK(coll_remove(c, slice_str(fields[any(4)]), &removed), why());
    CHECK_OK(coll_save(c), why());
}

static void replace_hash(uint32_t db, struct slice key)
{
    struct coll *c;
    REQUIRE_OK(coll_replace(w.view, db, key, ROW_HASH, &c), why());
    if (any(4))
        put_fields(c);
    CHECK_OK(coll_save(c), why());
}

static void make_table(uint32_t db, struct slice name, struct slice json)
{
    struct row_draft d = {.type = ROW_TABLE, .value = json};
    REQUIRE_OK(view_new_id(w.view, &d.id), why());
    CHECK_OK(view_put(w.view, db, name, &d), why());
}

/* Only where there is no hash: builds are another's business. */
static void change_table(void)
{
    uint32_t db = any(WORLD_DATABASES);
    struct slice name = kept(tables[any(3)]);
    const struct row *row;
    REQUIRE_OK(view_get(w.view, db, name, &row), why());
    if (row && any(3) == 0) {
        CHECK_OK(view_del(w.view, db, name, NULL), why());
        return;
    }
    if (row)
        return;
    CHECK_OK(view_flush_db(w.view, db), why());
    make_table(db, name, describe(name.p[0] == 'u' ? "u:" : ""));
    if (any(2))
        make_table(db, kept(tables[name.p[0] == 'u']), describe(name.p[0] == 'u' ? "" : "u:"));
}

static void change_key(uint32_t db, struct slice key)
{
    const struct row *row;
    uint32_t to_db = any(4) ? db : any(WORLD_DATABASES);
    struct slice to = kept(keys[any(KEYS)]);
    REQUIRE_OK(view_get(w.view, db, key, &row), why());
    switch (any(5)) {
    case 0:
        CHECK_OK(view_del(w.view, db, key, NULL), why());
        break;
    case 1:
        CHECK_OK(view_set_string(w.view, db, key, kept("a string"), EXPIRE_NEVER), why());
        break;
    case 2:
        if (row)
            CHECK_OK(view_expire(w.view, db, key, any(3) ? w.now + 1 + any(300) : EXPIRE_NEVER), why());
        break;
    default:
        if (row && (db != to_db || !slice_eq(key, to)))
            CHECK_OK(view_move(w.view, db, key, to_db, to), why());
    }
}

static void random_call(void)
{
    uint32_t db = any(WORLD_DATABASES), what = any(40);
    struct slice key = kept(keys[any(KEYS)]);
    if (what < 22)
        change_hash(db, key);
    else if (what < 26)
        replace_hash(db, key);
    else if (what < 37)
        change_key(db, key);
    else if (what < 38)
        CHECK_OK(view_swap_db(w.view, db, any(WORLD_DATABASES)), why());
    else
        change_table();
}

/* A call that was undone when its changes had reached the transaction fails the batch. */
static void commit_or_fail(void)
{
    enum status st = engine_commit(w.engine, NULL, &w.err);
    CHECK(st == ST_OK || st == ST_INTERNAL);
}

static void random_batch(void)
{
    REQUIRE(world_begin(&w));
    bool kept_so_far = true;
    for (uint32_t n = 1 + any(4); n && kept_so_far; n--) {
        world_enter(&w);
        for (uint32_t steps = 1 + any(3); steps; steps--) {
            random_call();
            engine_step(w.engine);
        }
        if (any(6) == 0)
            expect_table(view_number(w.view, 0), SLICE("users")); /* brings changes into the transaction */
        kept_so_far = any(5) > 0;
        engine_leave(w.engine, kept_so_far);
    }
    if (any(8) == 0)
        engine_abandon(w.engine);
    else
        commit_or_fail();
    CHECK_OK(engine_progress(w.engine, &w.err), &w.err);
}

static void run_random(uint64_t seed, bool journal)
{
    bool more;
    uint64_t rows;
    rand_seed(&rng, seed);
    w = (struct world){.journal = journal};
    REQUIRE(world_start(&w));
    keeper = hashes_new(w.view);
    for (int i = 0; i < ROUNDS; i++) {
        random_batch();
        if (any(3) == 0)
            world_clock(&w, w.now + any(150));
        if (any(4) == 0)
            CHECK_OK(engine_sweep(w.engine, 1 + any(20), &more, &rows, &w.err), &w.err);
        if (any(60) == 0) {
            hashes_free(keeper);
            REQUIRE(world_reopen(&w));
            keeper = hashes_new(w.view);
        }
        expect_all();
    }
    hashes_free(keeper);
    world_end(&w);
}

static void random_calls_keep_entries(void)
{
    run_random(1, false);
    run_random(2, true);
}

/* A hash that is only in the tables: fields are looked for one by one, and removed by their index. */
static void fields_of_a_large_hash(void)
{
    struct coll *c;
    bool wrong, removed;
    w = (struct world){0};
    REQUIRE(world_start(&w));
    keeper = hashes_new(w.view);
    REQUIRE(world_begin(&w));
    world_enter(&w);
    make_table(0, SLICE("users"), describe("u:"));
    engine_step(w.engine);
    REQUIRE_OK(coll_make(w.view, 0, SLICE("u:1"), ROW_HASH, &c, &wrong), why());
    for (int i = 0; i < 2 * MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "field %d", i);
        struct coll_item item = {
            .name = kept(name), .value = SLICE("x"), .expire_at = i % 2 ? w.now + 10 : 0};
        CHECK_OK(coll_put(c, &item, NULL), why());
    }
    struct coll_item age = {.name = SLICE("age"), .value = SLICE("7"), .expire_at = w.now + 20};
    CHECK_OK(coll_put(c, &age, NULL), why());
    CHECK_OK(coll_save(c), why());
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    expect_all();
    world_clock(&w, w.now + 30);
    world_sweep(&w);
    expect_all();
    REQUIRE(world_begin(&w));
    world_enter(&w);
    REQUIRE_OK(coll_make(w.view, 0, SLICE("u:1"), ROW_HASH, &c, &wrong), why());
    struct coll_item name = {.name = SLICE("name"), .value = SLICE("Mary")};
    CHECK_OK(coll_put(c, &name, NULL), why());
    CHECK_OK(coll_remove(c, SLICE("field 2"), &removed), why());
    CHECK_OK(coll_save(c), why());
    engine_leave(w.engine, true);
    CHECK_OK(engine_commit(w.engine, NULL, &w.err), &w.err);
    expect_all();
    hashes_free(keeper);
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(random_calls_keep_entries);
    RUN(fields_of_a_large_hash);
    return check_done();
}
