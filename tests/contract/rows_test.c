/* Scripts and libraries as rows of the database (script/rows.h): over any store, and over a database server
   also by two servers at once. */
#include "script/rows.h"

#include "admin/check.h"
#include "base/clock.h"
#include "contract/fixture.h"
#include "engine/coll.h"
#include "engine/engine.h"
#include "store/fault.h"
#include "store/shared.h"

#define SHA   "0123456789abcdef0123456789abcdef01234567"
#define OTHER "ffffffffffffffffffffffffffffffffffffffff"

struct side {
    struct store *store, *fault;
    struct engine *engine;
    struct view *view;
    struct arena arena;
};

static struct side a, b;
static struct error err;

static void open_side(struct side *s)
{
    struct store_options o = options();
    struct engine_options e = {.databases = DATABASES, .cache_memory = 1 << 20};
    CHECK_OK(store_open(&o, &s->store, &err), &err);
    if (!s->store)
        exit(EXIT_FAILURE);
    s->store = s->fault = fault_new(s->store);
    CHECK_OK(engine_new(s->store, &e, &s->engine, &err), &err);
    if (!s->engine)
        exit(EXIT_FAILURE);
    s->view = engine_view(s->engine);
}

static void close_side(struct side *s)
{
    engine_free(s->engine);
    store_close(s->store);
    arena_release(&s->arena);
    *s = (struct side){0};
}

/* Begins as a command with CMD_SCRIPTS and CMD_LIBRARIES does. */
static void begin(struct side *s, bool write, bool everything)
{
    struct error write_err;
    view_declare_more(s->view, false);
    for (int r = 0; r < HIDDEN_ROWS; r++)
        view_peek(s->view, (enum hidden_row)r);
    if (everything)
        view_declare_everything(s->view);
    CHECK_OK(engine_begin(s->engine, write, &write_err, &err), &err);
    CHECK_OK(write_err.code, &write_err);
    engine_enter(s->engine);
}

static void commit(struct side *s)
{
    engine_leave(s->engine, true);
    CHECK_OK(engine_commit(s->engine, NULL, &err), &err);
}

static void put_library(struct side *s, const char *name, const char *code)
{
    begin(s, true, true);
    CHECK_OK(rows_put_library(s->view, slice_str(name), slice_str(code)), engine_error(s->engine));
    commit(s);
}

/* code NULL: there is no such library. */
static void expect_library(struct side *s, const char *name, const char *code)
{
    bool found;
    struct slice got;
    CHECK_OK(rows_get_library(s->view, slice_str(name), &s->arena, &found, &got), engine_error(s->engine));
    CHECK_EQ(found, code != NULL);
    if (found && code)
        CHECK_SLICE(got, slice_str(code));
}

static void expect_script(struct side *s, const char *sha, const char *body)
{
    bool found, has;
    struct slice got;
    CHECK_OK(rows_get_script(s->view, slice_str(sha), &s->arena, &found, &got), engine_error(s->engine));
    CHECK_OK(rows_has_script(s->view, slice_str(sha), &has), engine_error(s->engine));
    CHECK(found == (body != NULL) && has == found);
    if (found && body)
        CHECK_SLICE(got, slice_str(body));
}

static struct hidden_stamp stamp_of(struct side *s)
{
    struct hidden_stamp stamp = {0};
    CHECK_OK(rows_stamp(s->view, &stamp), engine_error(s->engine));
    return stamp;
}

static int64_t flushes_of(struct side *s)
{
    int64_t n = -1;
    CHECK_OK(rows_flushes(s->view, &n), engine_error(s->engine));
    return n;
}

static enum status count(void *arg, struct slice name, struct slice code)
{
    (void)name;
    *(int64_t *)arg += 1000 + (int64_t)code.n;
    return ST_OK;
}

/* How many libraries there are, in thousands, and the bytes of their codes. */
static int64_t libraries_of(struct side *s)
{
    int64_t n = 0;
    CHECK_OK(rows_each_library(s->view, count, &n), engine_error(s->engine));
    return n;
}

static void check_whole(void)
{
    bool ok = false;
    FILE *out = tmpfile();
    CHECK_OK(store_check(place.url, out, &ok, &err), &err);
    CHECK(ok);
    fclose(out);
}

static void sweep(struct side *s)
{
    bool more = true;
    uint64_t rows;
    for (int i = 0; more && i < 1000; i++)
        CHECK_OK(engine_sweep(s->engine, 1000, &more, &rows, &err), &err);
    CHECK(!more);
}

/* ---- one server ---- */

static void libraries_come_and_go(void)
{
    open_side(&a);
    begin(&a, false, false);
    CHECK_EQ(stamp_of(&a).version, 0);
    CHECK_EQ(libraries_of(&a), 0);
    expect_library(&a, "one", NULL);
    commit(&a);
    put_library(&a, "one", "code one");
    put_library(&a, "two", "code");
    begin(&a, true, true);
    bool existed;
    struct hidden_stamp before = stamp_of(&a);
    CHECK_EQ(libraries_of(&a), 2012);
    CHECK_OK(rows_put_library(a.view, SLICE("one"), SLICE("replaced")), engine_error(a.engine));
    expect_library(&a, "one", "replaced");
    CHECK_OK(rows_delete_library(a.view, SLICE("two"), &existed), engine_error(a.engine));
    CHECK(existed);
    CHECK_OK(rows_delete_library(a.view, SLICE("two"), &existed), engine_error(a.engine));
    CHECK(!existed);
    struct hidden_stamp now = stamp_of(&a);
    CHECK(!stamps_equal(&before, &now));
    commit(&a);
    close_side(&a);
    check_whole();
    open_side(&a);
    begin(&a, true, true);
    CHECK_EQ(libraries_of(&a), 1008);
    expect_library(&a, "one", "replaced");
    CHECK_OK(rows_delete_library(a.view, SLICE("one"), &existed), engine_error(a.engine));
    CHECK(existed);
    commit(&a);
    begin(&a, true, true);
    CHECK_EQ(stamp_of(&a).version, 0);
    commit(&a);
    close_side(&a);
    check_whole();
}

static void put_script(struct side *s, const char *sha, const char *body)
{
    begin(s, true, false);
    CHECK_OK(rows_put_script(s->view, slice_str(sha), slice_str(body)), engine_error(s->engine));
    commit(s);
}

static void flush_scripts(struct side *s)
{
    begin(s, true, false);
    CHECK_OK(rows_flush_scripts(s->view), engine_error(s->engine));
    commit(s);
}

static void scripts_come_and_go(void)
{
    open_side(&a);
    flush_scripts(&a); /* counts, though there is none */
    begin(&a, false, false);
    int64_t before = flushes_of(&a);
    CHECK(before > 0);
    commit(&a);
    put_script(&a, SHA, "return 1");
    put_script(&a, SHA, "return 1");
    begin(&a, false, false);
    expect_script(&a, SHA, "return 1");
    expect_script(&a, "0123456789ABCDEF0123456789ABCDEF01234567", "return 1");
    expect_script(&a, OTHER, NULL);
    expect_script(&a, "short", NULL);
    CHECK_EQ(flushes_of(&a), before);
    commit(&a);
    for (int i = 0; i < 3; i++) { /* the sweeper takes the row that a flush leaves, and memory knows */
        flush_scripts(&a);
        sweep(&a);
        begin(&a, false, false);
        expect_script(&a, SHA, NULL);
        CHECK(flushes_of(&a) > before);
        before = flushes_of(&a);
        commit(&a);
        put_script(&a, SHA, "return 2");
    }
    close_side(&a);
    check_whole();
    open_side(&a);
    begin(&a, false, false);
    expect_script(&a, SHA, "return 2");
    CHECK_EQ(flushes_of(&a), before);
    commit(&a);
    close_side(&a);
}

/* What concerns clients' databases does not come here, nor do these rows show there. */
static void clients_never_meet_them(void)
{
    int64_t keys, expires, cursor = 0;
    struct slice key;
    open_side(&a);
    put_library(&a, "one", "code");
    put_script(&a, SHA, "return 1");
    flush_scripts(&a);
    begin(&a, true, true);
    for (uint32_t db = 0; db < view_databases(a.view); db++) {
        CHECK_OK(view_db_size(a.view, db, &keys, &expires), engine_error(a.engine));
        CHECK(keys == 0 && expires == 0);
        CHECK_OK(view_random_key(a.view, db, &a.arena, &key), engine_error(a.engine));
        CHECK(key.p == NULL);
        CHECK_OK(view_flush_db(a.view, db), engine_error(a.engine));
    }
    CHECK_OK(view_swap_db(a.view, 0, 1), engine_error(a.engine));
    CHECK_OK(view_scan(a.view, 0, &cursor, 100, NULL, NULL), engine_error(a.engine));
    commit(&a);
    sweep(&a);
    begin(&a, false, false);
    expect_library(&a, "one", "code");
    commit(&a);
    close_side(&a);
    check_whole();
}

static void undone_changes_leave_another_stamp(void)
{
    open_side(&a);
    put_library(&a, "one", "old");
    begin(&a, true, true);
    struct hidden_stamp before = stamp_of(&a);
    CHECK_OK(rows_put_library(a.view, SLICE("one"), SLICE("never")), engine_error(a.engine));
    struct hidden_stamp between = stamp_of(&a);
    engine_leave(a.engine, false);
    engine_enter(a.engine);
    struct hidden_stamp behind = stamp_of(&a);
    expect_library(&a, "one", "old");
    CHECK(!stamps_equal(&before, &between) && !stamps_equal(&between, &behind));
    CHECK_OK(rows_put_library(a.view, SLICE("one"), SLICE("lost")), engine_error(a.engine));
    between = stamp_of(&a);
    engine_leave(a.engine, true);
    engine_abandon(a.engine);
    begin(&a, true, true);
    behind = stamp_of(&a);
    CHECK(between.undone != behind.undone); /* whatever the clock says of versions */
    expect_library(&a, "one", "old");
    commit(&a);
    close_side(&a);
    check_whole();
}

/* Replaces a library, in a batch of its own; whether that was committed. */
static bool try_put(struct side *s, const char *code)
{
    struct error write_err;
    view_declare_everything(s->view);
    view_peek(s->view, HIDDEN_LIBRARIES);
    if (engine_begin(s->engine, true, &write_err, &err) != ST_OK)
        return false;
    engine_enter(s->engine);
    bool done = write_err.code == ST_OK &&
                rows_put_library(s->view, SLICE("one"), slice_str(code)) == ST_OK &&
                rows_put_library(s->view, SLICE("two"), slice_str(code)) == ST_OK;
    engine_leave(s->engine, done);
    return engine_commit(s->engine, NULL, &err) == ST_OK && done;
}

/* Whichever call fails, both libraries are the new ones or the old ones, and the stamp says which. */
static void a_failure_leaves_all_or_nothing(void)
{
    char code[16] = "code 0";
    bool happened = true;
    open_side(&a);
    CHECK(try_put(&a, code));
    for (uint64_t nth = 1; happened && nth < 100 && !check.checks_failed; nth++) {
        char next[16];
        begin(&a, false, false);
        struct hidden_stamp before = stamp_of(&a);
        commit(&a);
        snprintf(next, sizeof next, "code %d", (int)nth);
        store_fault_set(a.fault, (struct store_fault){.nth = nth, .status = ST_IO});
        bool done = try_put(&a, next);
        happened = fault_happened(a.fault);
        store_fault_set(a.fault, (struct store_fault){0});
        begin(&a, false, false);
        struct hidden_stamp now = stamp_of(&a);
        if (done)
            memcpy(code, next, sizeof code);
        expect_library(&a, "one", code);
        expect_library(&a, "two", code);
        CHECK_EQ(libraries_of(&a), 2000 + 2 * (int64_t)strlen(code));
        CHECK_EQ(now.version != before.version, done);
        commit(&a);
    }
    CHECK(!happened);
    close_side(&a);
    check_whole();
}

/* ---- two servers ---- */

static void others_see_it_at_once(void)
{
    open_side(&a);
    open_side(&b);
    begin(&b, true, false);
    CHECK_EQ(stamp_of(&b).version, 0);
    commit(&b);
    put_library(&a, "one", "code");
    put_script(&a, SHA, "return 1");
    begin(&b, true, false);
    struct hidden_stamp first = stamp_of(&b);
    CHECK(first.version > 0);
    expect_library(&b, "one", "code");
    expect_script(&b, SHA, "return 1");
    int64_t before = flushes_of(&b);
    commit(&b);
    flush_scripts(&a);
    begin(&b, true, false);
    struct hidden_stamp same = stamp_of(&b);
    CHECK(stamps_equal(&first, &same));
    CHECK(flushes_of(&b) > before);
    expect_script(&b, SHA, NULL);
    commit(&b);
    close_side(&a);
    close_side(&b);
}

static uint64_t trips(struct side *s)
{
    struct store_info i = {0};
    store_counters(s->store, &i);
    return i.round_trips;
}

/* Both may write, and hold their peeks to the end: neither waits for the other. It costs no round trip. */
static void looking_locks_nothing(void)
{
    open_side(&a);
    open_side(&b);
    put_library(&a, "one", "code");
    begin(&b, true, false);
    commit(&b);
    uint64_t start = trips(&b);
    begin(&a, true, false);
    begin(&b, true, false);
    CHECK(stamp_of(&a).version == stamp_of(&b).version && stamp_of(&b).version > 0);
    CHECK_EQ(flushes_of(&b), 0);
    CHECK_EQ(trips(&b) - start, 1);
    commit(&b);
    commit(&a);
    close_side(&a);
    close_side(&b);
}

/* Who saw the hash of scripts before another changed it does not write over that. */
static void what_changed_meanwhile_is_run_again(void)
{
    open_side(&a);
    open_side(&b);
    begin(&a, true, false);
    expect_script(&a, OTHER, NULL);
    put_script(&b, SHA, "return 1");
    CHECK_EQ(rows_put_script(a.view, SLICE(OTHER), SLICE("return 2")), ST_CONFLICT);
    engine_leave(a.engine, false);
    CHECK(engine_conflicted(a.engine));
    CHECK_EQ(engine_commit(a.engine, NULL, &err), ST_CONFLICT);
    put_script(&a, OTHER, "return 2");
    begin(&b, false, false);
    expect_script(&b, SHA, "return 1");
    expect_script(&b, OTHER, "return 2");
    commit(&b);
    close_side(&a);
    close_side(&b);
    check_whole();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(libraries_come_and_go);
    IN_NEW_PLACE(scripts_come_and_go);
    IN_NEW_PLACE(clients_never_meet_them);
    IN_NEW_PLACE(undone_changes_leave_another_stamp);
    IN_NEW_PLACE(a_failure_leaves_all_or_nothing);
    if (server_url()) {
        IN_NEW_PLACE(others_see_it_at_once);
        IN_NEW_PLACE(looking_locks_nothing);
        IN_NEW_PLACE(what_changed_meanwhile_is_run_again);
    }
    return check_done();
}
