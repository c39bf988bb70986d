/* A start on a disk without room for what the journal holds: the store is there, readers see all of it,
   nobody writes, and it comes into the tables when there is room. Recovery fails at each of its calls in
   turn. */
#include <time.h>

#include "admin/check.h"
#include "base/clock.h"
#include "contract/fixture.h"
#include "journal/journal_internal.h"
#include "journal/replay.h"
#include "store/fault.h"

#define PATIENCE_US 20000000
#define KEYS        60
#define SET_ID      1
#define CALLS       40  /* more than recovery makes */
#define OPENING     2   /* calls of journal_store_over to the writer */
#define NUMBER      500 /* of a database that was flushed */
#define IDS         1000

static struct store *s, *writer; /* the store, and the session of its thread */
static struct error err;

static const struct journal_options journal = {.max_bytes = 1 << 20, .lag_ms = 60000};
static const struct store_fault no_room = {.nth = 1, .status = ST_FULL, .sticky = true};

/* ---- opening ---- */

/* Recovery fails from its nth call on; 0: never. The store's thread cannot write, either, when anything is
   left. */
static enum status open_without_room(uint64_t nth, bool *ret_left)
{
    struct store_options o = options();
    struct store *inner = NULL, *reader = NULL;
    struct journal_past past = {0};
    CHECK_OK(store_open(&o, &inner, &err), &err);
    if (!inner)
        exit(EXIT_FAILURE);
    writer = fault_new(inner);
    store_fault_set(writer, (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = true});
    enum status st = replay_or_keep(writer, place.url, &past, &err);
    if (st != ST_OK) {
        store_close(writer);
        return st;
    }
    *ret_left = past.mem != NULL;
    o.read_only = true;
    CHECK_OK(store_open(&o, &reader, &err), &err);
    struct store_fault later = {.nth = past.mem ? OPENING + 1 : 0, .status = ST_FULL, .sticky = true};
    store_fault_set(writer, later);
    o.durability = DURABILITY_ALWAYS; /* for whoever waits; no disk does */
    CHECK_OK(journal_store_over(reader, writer, &past, &o, &journal, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    return ST_OK;
}

static void open_well(void)
{
    bool left = false;
    CHECK_OK(open_without_room(0, &left), &err);
    CHECK(!left);
}

/* From here on nothing reaches the database. */
static void crash(void)
{
    store_fault_set(writer, no_room);
    store_close(s);
    s = writer = NULL;
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = 200000};
    nanosleep(&t, NULL);
}

/* Without letting the store take note of it: nothing is frozen, so that the journal keeps it. */
static void wait_until_durable(void)
{
    struct journal_store *j = journal_store_of(s);
    int64_t until = clock_mono_us() + PATIENCE_US;
    for (bool done = false; !done;) {
        journal_lock(j);
        done = locked(j)->durable >= j->owner.last_ticket;
        journal_unlock(j);
        if (!done && clock_mono_us() > until) {
            FAIL("the thread comes to an end");
            return;
        }
        pause_a_moment();
    }
}

/* ---- rows ---- */

static struct slice name_of(int i)
{
    static char text[KEYS][16];
    int n = snprintf(text[i], sizeof text[i], "key%03d", i);
    return slice_of(text[i], (size_t)n);
}

static int64_t seq_of(int i)
{
    struct rows r = {0};
    int64_t seq = get_key(s, 0, name_of(i), &r) ? r.keys[0].seq : 0;
    rows_release(&r);
    return seq;
}

static void put(int i, const char *value)
{
    struct key_row k = string_row(0, name_of(i), slice_str(value));
    struct item_row m = {.ref = {.table = ITEM_SET, .id = SET_ID, .name = k.key}, .ord = i};
    struct changes c = {.keys = &k, .nkeys = 1, .items = &m, .nitems = 1};
    k.seq = seq_of(i);
    CHECK_OK(apply_now(s, &c, &err), &err);
}

static void del(int i)
{
    struct key_row k = {.seq = seq_of(i), .key = name_of(i), .version = 2, .expire_at = EXPIRE_DELETED};
    struct item_ref ref = {.table = ITEM_SET, .id = SET_ID, .name = k.key};
    struct changes c = {.keys = &k, .nkeys = 1, .gone = &ref, .ngone = 1};
    CHECK_OK(apply_now(s, &c, &err), &err);
}

/* The tables have the first two thirds as "old". In the journal: the second third is "new", a part of that
   deleted, and of those some "again"; the last third is there for the first time, some of it not for long. */
#define THIRD (KEYS / 3)

static const char *value_of(int i)
{
    if (i < THIRD)
        return "old";
    if (i % 6 == 0)
        return NULL;
    return i % 6 == 3 ? "again" : "new";
}

static void leave_a_journal(void)
{
    int64_t first;
    open_well();
    for (int i = 0; i < 2 * THIRD; i++)
        put(i, "old");
    CHECK_OK(store_sync(s, &err), &err);
    for (int i = THIRD; i < KEYS; i++)
        put(i, "new");
    for (int i = THIRD; i < KEYS; i++)
        if (i % 3 == 0)
            del(i);
    for (int i = THIRD; i < KEYS; i++)
        if (i % 6 == 3)
            put(i, "again");
    CHECK_OK(store_reserve_ids(s, IDS, &first, &err), &err);
    struct db_row flushed = {.db = 3, .number = NUMBER, .keys = -1, .expires = -1};
    struct changes c = {.dbs = &flushed, .ndbs = 1};
    CHECK_OK(apply_now(s, &c, &err), &err);
    wait_until_durable();
    crash();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 2 * THIRD);
}

/* ---- what a reader sees ---- */

/* From the newest row down, one at a time: each has a number of its own. */
static int count_scanned(void)
{
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .limit = 1};
    int n = 0;
    for (;; n++) {
        struct rows r = {0};
        CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
        q.seq_below = r.nkeys ? r.keys[0].seq : 0;
        rows_release(&r);
        if (q.seq_below == 0)
            return n;
    }
}

static enum status count_item(void *arg, const struct item_row *row)
{
    (void)row;
    ++*(int *)arg;
    return ST_OK;
}

static int count_members(void)
{
    struct item_scan q = {.table = ITEM_SET, .id = SET_ID, .order = ITEMS_BY_NAME, .limit = UINT32_MAX};
    int n = 0;
    CHECK_OK(store_scan_items(s, &q, count_item, &n, &err), &err);
    return n;
}

static void expect_key(int i)
{
    const char *want = value_of(i);
    struct rows r = {0};
    bool found = get_key(s, 0, name_of(i), &r) && r.keys[0].type != ROW_NONE;
    struct item_ref ref = {.table = ITEM_SET, .id = SET_ID, .name = name_of(i)};
    CHECK_EQ(found, want != NULL);
    if (found && want)
        CHECK(slice_eq(r.keys[0].value, slice_str(want)));
    CHECK_OK(store_get_items(s, &ref, 1, add_item, &r, &err), &err);
    CHECK_EQ(r.nitems, want ? 1 : 0);
    rows_release(&r);
}

/* `more` keys beside those. */
static void expect_all(int more)
{
    struct db_row dbs[DATABASES];
    uint32_t next = 0;
    int live = more;
    for (int i = 0; i < KEYS; i++) {
        expect_key(i);
        live += value_of(i) != NULL;
    }
    int64_t keys = 0, expires = 0;
    CHECK_OK(store_count_keys(s, 0, &keys, &expires, &err), &err);
    CHECK_EQ(keys, live);
    CHECK_EQ(count_scanned(), live);
    CHECK_EQ(count_members(), live - more);
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    CHECK_EQ(dbs[3].number, NUMBER);
    CHECK_EQ(next, NUMBER + 1);
}

static void expect_refusal(void)
{
    struct store_progress p;
    int64_t first;
    CHECK_EQ(store_begin(s, STORE_WRITE, NULL, NULL, &err), ST_FULL);
    CHECK_EQ(store_begin(s, STORE_WRITE_LAZY, NULL, NULL, &err), ST_FULL);
    CHECK_EQ(store_reserve_ids(s, 1, &first, &err), ST_FULL);
    CHECK_EQ(store_sync(s, &err), ST_FULL);
    CHECK_OK(store_progress(s, &p, &err), &err);
    CHECK(p.failing && !p.full);
}

static void wait_for_room(void)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    enum status st;
    while ((st = store_begin(s, STORE_WRITE, NULL, NULL, &err)) == ST_FULL && clock_mono_us() < until)
        pause_a_moment();
    CHECK_OK(st, &err);
    store_rollback(s);
}

static void check_whole(void)
{
    char text[8192] = "";
    bool ok = false;
    FILE *f = fmemopen(text, sizeof text, "w");
    outside("UPDATE larder_db SET keys = -1, expires = -1; INSERT INTO larder_trash VALUES (1, 4)");
    CHECK_OK(store_check(place.url, f, &ok, &err), &err);
    fclose(f);
    if (!ok) {
        FAIL("the database is whole");
        printf("%s", text);
    }
    outside("DELETE FROM larder_trash");
}

/* There is room: it comes in by itself, and everything works. */
static void expect_recovery(void)
{
    struct store_progress p;
    int64_t first = 0;
    store_fault_set(writer, (struct store_fault){0});
    wait_for_room();
    expect_all(0);
    struct key_row k = string_row(0, SLICE("later"), SLICE("v"));
    CHECK_OK(put_key_now(s, &k, &err), &err);
    CHECK_OK(store_progress(s, &p, &err), &err);
    CHECK(!p.failing);
    expect_all(1);
    CHECK_OK(store_reserve_ids(s, 1, &first, &err), &err);
    CHECK(first > IDS);
    CHECK_OK(store_sync(s, &err), &err);
    expect_all(1);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key WHERE seq >= 4503599627370496"), 0);
    store_close(s);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_journal"), 0);
    check_whole();
    open_well();
    expect_all(1);
    store_close(s);
}

static void expect_no_room(void)
{
    expect_refusal();
    expect_all(0);
}

/* ---- the tests ---- */

/* Returns whether anything was left to do when recovery failed at the nth call. *ret_over: it did not fail.
 */
static bool try_without_room(uint64_t nth, bool again, bool *ret_over)
{
    bool left = false;
    new_place();
    leave_a_journal();
    enum status st = open_without_room(nth, &left);
    *ret_over = st == ST_OK && !left;
    CHECK(st == ST_OK || st == ST_FULL);
    if (st != ST_OK) { /* before it has read all */
        open_well();
        expect_all(0);
        store_close(s);
        return false;
    }
    bool kept = left;
    if (left)
        expect_no_room();
    if (left && again) {
        crash();
        CHECK_OK(open_without_room(nth, &left), &err);
    }
    if (left && again) /* else only the sync was missing */
        expect_no_room();
    expect_recovery();
    return kept;
}

/* At each call, and every other time with a crash meanwhile. */
static void what_finds_no_room_is_read_and_applied_later(void)
{
    int kept = 0;
    bool over = false;
    for (uint64_t nth = 1; !over && nth < CALLS; nth++)
        kept += try_without_room(nth, nth % 2 == 0, &over);
    CHECK(over);
    CHECK(kept >= 5); /* begin, a slice, its word, its commit, and the last word */
}

/* Rows of memory from before and new ones have different numbers, whatever comes into the tables between. */
static void numbers_go_on_behind_those_of_before(void)
{
    bool left = false;
    leave_a_journal();
    CHECK_OK(open_without_room(5, &left), &err);
    CHECK(left);
    struct rows r = {0};
    struct key_scan q = {.order = KEYS_BY_SEQ_DESC, .seq_below = INT64_MAX, .limit = 1};
    CHECK_OK(store_scan_keys(s, &q, add_key, &r, &err), &err);
    CHECK(r.nkeys == 1 && r.keys[0].seq >= STORE_PROVISIONAL);
    struct key_row known = r.keys[0];
    store_fault_set(writer, (struct store_fault){0});
    wait_for_room();
    struct key_row k = string_row(0, SLICE("later"), SLICE("v"));
    CHECK_OK(put_key_now(s, &k, &err), &err);
    CHECK(k.seq > known.seq);
    /* Whoever has it in a cache under the number of before still means the same row. */
    CHECK_OK(store_sync(s, &err), &err);
    known.value = SLICE("changed");
    CHECK_OK(put_key_now(s, &known, &err), &err);
    CHECK(known.seq < STORE_PROVISIONAL);
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key WHERE value = CAST('changed' AS BLOB)"), 1);
    rows_release(&r);
    store_close(s);
    check_whole();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    if (server_url()) /* where it is the server's disk, and a start says so */
        return check_done();
    IN_NEW_PLACE(what_finds_no_room_is_read_and_applied_later);
    IN_NEW_PLACE(numbers_go_on_behind_those_of_before);
    return check_done();
}
