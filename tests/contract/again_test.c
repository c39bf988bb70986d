/* Keys that are set again after they were deleted, while the deletion is on its way into the tables: in the
   active memtable, in the frozen one, partly applied, applied. A crash at any call to the database leaves
   what can be recovered and checked, with every change set that was durable. Also what earlier versions left
   in the journal: keys that were set again under the number of the row that was deleted. */
#include <time.h>

#include "admin/check.h"
#include "base/clock.h"
#include "contract/fixture.h"
#include "journal/journal_internal.h"
#include "journal/replay.h"
#include "store/fault.h"

#define PATIENCE_US 20000000
#define KEYS        80 /* more than two slices */
#define AT_ONCE     10 /* keys of a change set */
#define SETS        (KEYS / AT_ONCE)

static struct store *s, *writer; /* the store, and the session of its thread */
static struct error err;

/* The deletion of all keys is enough for a table to be frozen, and one change set is not too much for the
   journal. */
static const struct journal_options small = {.max_bytes = UINT64_C(50) * KEYS, .lag_ms = 60000};
static const struct journal_options large = {.max_bytes = 1 << 20, .lag_ms = 60000};

static void open_journaled(const struct journal_options *j)
{
    struct store_options o = options();
    struct store *inner = NULL, *reader = NULL;
    struct journal_past past = {0};
    o.durability = DURABILITY_ALWAYS;
    o.url = alone_url();
    CHECK_OK(store_open(&o, &inner, &err), &err);
    if (!inner)
        exit(EXIT_FAILURE);
    CHECK_OK(replay_all(inner, place.url, &past, &err), &err);
    o.read_only = true;
    CHECK_OK(store_open(&o, &reader, &err), &err);
    if (!reader)
        exit(EXIT_FAILURE);
    writer = fault_new(inner);
    CHECK_OK(journal_store_over(reader, writer, &past, &o, j, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

/* From here on nothing reaches the database. */
static void crash(void)
{
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    store_close(s);
    s = writer = NULL;
}

static const char *name_of(int i)
{
    static char text[AT_ONCE][16];
    snprintf(text[i % AT_ONCE], sizeof text[0], "key%03d", i);
    return text[i % AT_ONCE];
}

/* Its row as a reader gets it. *ret_there: it is one that lives. */
static int64_t number_of(int i, bool *ret_there)
{
    struct rows r = {0};
    bool found = get_key(s, 0, slice_str(name_of(i)), &r);
    int64_t seq = found ? r.keys[0].seq : 0;
    *ret_there = found && r.keys[0].type != ROW_NONE;
    rows_release(&r);
    return seq;
}

/* One change set of AT_ONCE keys, from the first one on, which are deleted or set. numbers: under these, or
   under those that a reader gets. */
static enum status try_change(int first, bool set, const int64_t *numbers)
{
    struct key_row rows[AT_ONCE];
    bool there;
    for (int i = 0; i < AT_ONCE; i++) {
        rows[i] = string_row(0, slice_str(name_of(first + i)), SLICE("again"));
        rows[i].seq = numbers ? numbers[first + i] : number_of(first + i, &there);
        if (!set) {
            rows[i].type = ROW_NONE;
            rows[i].expire_at = EXPIRE_DELETED;
            rows[i].value = SLICE("");
        }
    }
    struct changes c = {.keys = rows, .nkeys = AT_ONCE};
    return apply_now(s, &c, &err);
}

static void change(int first, bool set, const int64_t *numbers)
{
    CHECK_OK(try_change(first, set, numbers), &err);
}

/* ---- waiting; none of it lets the store take note of what its thread has done ---- */

static bool thread_done(int64_t durable, int64_t applied)
{
    struct journal_store *j = journal_store_of(s);
    journal_lock(j);
    bool done =
        locked(j)->durable >= durable && locked(j)->applied >= applied && !(applied && locked(j)->frozen);
    bool over = done || locked(j)->failures.failed != ST_OK || locked(j)->failures.stuck != ST_OK;
    journal_unlock(j);
    return over;
}

static void wait_for(int64_t durable, int64_t applied)
{
    const struct timespec moment = {.tv_nsec = 200000};
    int64_t until = clock_mono_us() + PATIENCE_US;
    while (!thread_done(durable, applied)) {
        if (clock_mono_us() > until) {
            FAIL("the thread comes to an end");
            return;
        }
        nanosleep(&moment, NULL);
    }
}

static int64_t durable_ticket(void)
{
    struct journal_store *j = journal_store_of(s);
    journal_lock(j);
    int64_t ticket = locked(j)->durable;
    journal_unlock(j);
    return ticket;
}

/* ---- the scenario ---- */

/* All keys are in the tables, and nothing else is anywhere. */
static void settle_keys(int64_t *ret_numbers)
{
    for (int i = 0; i < KEYS; i += AT_ONCE) {
        struct store_progress p;
        change(i, true, NULL);
        CHECK_OK(store_progress(s, &p, &err), &err);
    }
    CHECK_OK(store_sync(s, &err), &err);
    for (int i = 0; i < KEYS; i++) {
        bool there;
        ret_numbers[i] = number_of(i, &there);
        CHECK(there && ret_numbers[i] > 0 && ret_numbers[i] < STORE_PROVISIONAL);
    }
}

/* Deletes all keys. With a small journal that memtable is frozen behind it. Returns the last ticket. */
static int64_t delete_keys(bool freeze)
{
    struct store_progress p;
    for (int i = 0; i < KEYS; i += AT_ONCE)
        change(i, false, NULL);
    int64_t ticket = store_last_ticket(s);
    wait_for(ticket, 0);
    if (freeze) {
        CHECK_OK(store_progress(s, &p, &err), &err);
        CHECK(journal_store_of(s)->owner.layers.mem[1] != NULL);
    }
    return ticket;
}

static void expect_whole(void)
{
    char text[8192] = "";
    bool ok = false;
    FILE *f = fmemopen(text, sizeof text, "w");
    bool mariadb = server_url() && strncmp(server_url(), "mysql", 5) == 0;
    outside(mariadb ? "UPDATE larder_db SET `keys` = -1, expires = -1"
                    : "UPDATE larder_db SET keys = -1, expires = -1");
    CHECK_OK(store_check(place.url, f, &ok, &err), &err);
    fclose(f);
    if (!ok) {
        FAIL("the database is whole");
        printf("%s", text);
    }
}

/* After a crash: what it left is checked and recovered, and the keys of the first `sets` change sets are
   there. */
static void expect_sets(const struct journal_options *j, int64_t sets)
{
    expect_whole();
    open_journaled(j);
    for (int i = 0; i < KEYS; i++) {
        bool there;
        (void)number_of(i, &there);
        CHECK_EQ(there, i < sets * AT_ONCE);
    }
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), sets * AT_ONCE);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key WHERE seq >= 4503599627370496"), 0);
}

/* ---- what must hold ---- */

/* Whoever reads a row that is gone does not learn what its number was: active and frozen. */
static void a_row_that_is_gone_has_no_number(void)
{
    for (int frozen = 0; frozen < 2; frozen++) {
        int64_t numbers[KEYS];
        bool there = true;
        new_place();
        open_journaled(frozen ? &small : &large);
        settle_keys(numbers);
        delete_keys(frozen);
        for (int i = 0; i < KEYS; i++) {
            CHECK_EQ(number_of(i, &there), 0);
            CHECK(!there);
        }
        store_close(s);
    }
}

/* A row that the tables have as deleted is the sweeper's: it may be gone at any time. */
static void nor_has_one_that_the_tables_have_as_deleted(void)
{
    int64_t numbers[KEYS];
    bool there = true;
    open_journaled(&large);
    settle_keys(numbers);
    store_close(s);
    outside("UPDATE larder_key SET type = 0, expire_at = -1, version = version + 1");
    open_journaled(&large);
    CHECK_EQ(number_of(1, &there), 0);
    CHECK(!there);
    change(0, true, NULL);
    wait_for(store_last_ticket(s), 0);
    outside("DELETE FROM larder_key WHERE type = 0");
    crash();
    expect_sets(&large, 1);
    store_close(s);
}

/* Set again, and then a crash: the deletion is only in the journal. */
static void a_deletion_in_the_active_memtable(void)
{
    int64_t numbers[KEYS];
    open_journaled(&large);
    for (int old = 0; old < 2; old++) {
        settle_keys(numbers);
        delete_keys(false);
        for (int i = 0; i < KEYS; i += AT_ONCE)
            change(i, true, old ? numbers : NULL);
        wait_for(store_last_ticket(s), 0);
        crash();
        expect_sets(&large, SETS);
    }
    store_close(s);
}

/* Set again while the deletion is being applied; the crash comes when it is in the tables, and what was set
   is in the journal alone. old: under the number of the row that is gone by then. */
static void a_deletion_that_was_applied(void)
{
    int64_t numbers[KEYS];
    open_journaled(&small);
    for (int old = 0; old < 2; old++) {
        settle_keys(numbers);
        int64_t deleted = delete_keys(true);
        for (int i = 0; i < KEYS; i += AT_ONCE)
            change(i, true, old ? numbers : NULL);
        wait_for(store_last_ticket(s), deleted);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 0);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_journal WHERE seq > " META("applied")) > 0, true);
        crash();
        expect_sets(&small, SETS);
    }
    store_close(s);
}

/* The same with the crash at each call that the thread makes meanwhile, and again at the calls of a recovery.
 */
static void a_crash_at_every_call(void)
{
    int64_t numbers[KEYS];
    char context[80];
    uint64_t last = server_url() ? 12 : 60;
    check.context = context;
    open_journaled(&small);
    for (uint64_t nth = 1, quiet = 0; nth <= last && quiet < 2 && !check.checks_failed; nth++) {
        snprintf(context, sizeof context, "call %d", (int)nth);
        settle_keys(numbers);
        int64_t deleted = delete_keys(true);
        store_fault_set(writer, (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = true});
        for (int i = 0; i < KEYS && try_change(i, true, nth % 2 ? numbers : NULL) == ST_OK; i += AT_ONCE)
            ;
        wait_for(store_last_ticket(s), deleted);
        quiet += !fault_happened(writer);
        int64_t sets = durable_ticket() - deleted;
        crash();
        expect_sets(&small, sets);
    }
    check.context = NULL;
    store_close(s);
}

/* A recovery that is cut off at each of its calls, and the next one that goes on. */
static void a_crash_within_recovery(void)
{
    int64_t numbers[KEYS];
    struct journal_past past;
    open_journaled(&small);
    settle_keys(numbers);
    int64_t deleted = delete_keys(true);
    for (int i = 0; i < KEYS; i += AT_ONCE)
        change(i, true, numbers);
    wait_for(store_last_ticket(s), deleted);
    crash();
    enum status st = ST_FULL;
    for (uint64_t nth = 1; nth < 40 && st != ST_OK; nth++) {
        struct store_options o = options();
        struct store *inner = NULL;
        o.url = alone_url();
        CHECK_OK(store_open(&o, &inner, &err), &err);
        struct store *failing = fault_new(inner);
        store_fault_set(failing, (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = true});
        st = replay_all(failing, place.url, &past, &err);
        CHECK(st == ST_OK || st == ST_FULL);
        store_close(failing);
    }
    CHECK_EQ(st, ST_OK);
    expect_sets(&small, SETS);
    store_close(s);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(a_row_that_is_gone_has_no_number);
    IN_NEW_PLACE(nor_has_one_that_the_tables_have_as_deleted);
    IN_NEW_PLACE(a_deletion_in_the_active_memtable);
    IN_NEW_PLACE(a_deletion_that_was_applied);
    IN_NEW_PLACE(a_crash_at_every_call);
    if (!server_url()) /* there, opening recovers */
        IN_NEW_PLACE(a_crash_within_recovery);
    return check_done();
}
