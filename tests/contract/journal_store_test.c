/* The store with a journal: tickets, what becomes of commits that cannot be written, what is left after a
   crash. The writer's session fails on purpose (store/fault.h). What it has in common with other stores is in
   the suites; here is what only it does. */
#include <time.h>

#include "admin/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "contract/fixture.h"
#include "journal/journal_internal.h"
#include "journal/replay.h"
#include "store/fault.h"

#define PATIENCE_US 20000000

static struct store *s, *writer; /* the store, and the session of its thread */
static struct error err;
static bool far;            /* the database may crash while we live, as one on a server may */
static struct store *reads; /* the owner's session ... */
static bool reads_may_fail; /* ... if it can be told to fail */

/* ---- opening ---- */

static const struct mode {
    const char *name;
    struct journal_options journal;
} modes[] = {
    {"journal, applied at leisure", {.max_bytes = 1 << 20, .lag_ms = 1000}},
    {"journal, applied at once", {.max_bytes = 1 << 20}},
    {"journal that is too small", {.max_bytes = 64}},
    {"no journal", {.max_bytes = 0}},
};
#define MODES (sizeof modes / sizeof modes[0])

static void open_as(const struct mode *m, enum durability d)
{
    struct store_options o = options();
    struct store *inner = NULL, *reader = NULL;
    struct journal_past past = {0};
    o.durability = d;
    o.url = alone_url();
    CHECK_OK(store_open(&o, &inner, &err), &err);
    CHECK_OK(replay_all(inner, place.url, &past, &err), &err);
    o.read_only = true;
    CHECK_OK(store_open(&o, &reader, &err), &err);
    if (!inner || !reader)
        exit(EXIT_FAILURE);
    reader->far |= far;
    if (reads_may_fail)
        reader = reads = fault_new(reader);
    writer = fault_new(inner);
    CHECK_OK(journal_store_over(reader, writer, &past, &o, &m->journal, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

static void close_store(void)
{
    store_close(s);
    s = writer = NULL;
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = 200000};
    nanosleep(&t, NULL);
}

/* ---- writing ---- */

static bool has(int i)
{
    return has_numbered(s, i);
}

/* Two rows in each commit: the key, and a member of a set. */
static enum status put(int i)
{
    struct key_row k = string_row(0, slice_str(key_name(i)), SLICE("v"));
    struct item_row m = {.ref = {.table = ITEM_SET, .id = 1, .name = k.key}, .ord = i, .fresh = true};
    struct changes c = {.keys = &k, .nkeys = 1, .items = &m, .nitems = 1};
    return apply_now(s, &c, &err);
}

static bool has_member(int i)
{
    struct item_ref ref = {.table = ITEM_SET, .id = 1, .name = slice_str(key_name(i))};
    struct rows r = {0};
    CHECK_OK(store_get_items(s, &ref, 1, add_item, &r, &err), &err);
    bool found = r.nitems > 0;
    rows_release(&r);
    return found;
}

static enum status progress(struct store_progress *p)
{
    return store_progress(s, p, &err);
}

/* Until the ticket is durable, or something failed. */
static enum status settle(int64_t ticket, struct store_progress *p)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    enum status st;
    while ((st = progress(p)) == ST_OK && p->durable < ticket) {
        if (clock_mono_us() > until) {
            FAIL("the ticket becomes durable");
            return ST_INTERNAL;
        }
        pause_a_moment();
    }
    return st;
}

static void settle_all(void)
{
    struct store_progress p;
    CHECK_OK(settle(store_last_ticket(s), &p), &err);
}

/* ---- tickets ---- */

static void tickets_ascend_and_become_durable(void)
{
    for (size_t i = 0; i < MODES; i++) {
        check.context = modes[i].name;
        new_place();
        open_as(&modes[i], DURABILITY_ALWAYS);
        int64_t before = store_last_ticket(s);
        for (int n = 0; n < 50; n++) {
            CHECK_OK(put(n), &err);
            CHECK_EQ(store_last_ticket(s), before + n + 1);
            struct store_progress p;
            if (n % 3 == 0)
                CHECK_OK(progress(&p), &err);
            CHECK(has(n)); /* at once */
        }
        settle_all();
        CHECK_OK(store_sync(s, &err), &err);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 50);
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_meta WHERE " META("applying") " <> 0"), 0);
        close_store();
        open_as(&modes[i], DURABILITY_ALWAYS); /* tickets go on where they were, or above */
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_journal WHERE seq > " META("applied")), 0);
        CHECK_OK(put(50), &err);
        settle_all();
        close_store();
    }
    check.context = NULL;
}

static void a_transaction_that_changes_nothing_has_no_ticket(void)
{
    open_as(&modes[0], DURABILITY_ALWAYS);
    CHECK_OK(put(1), &err);
    int64_t ticket = store_last_ticket(s);
    CHECK_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    CHECK_EQ(store_last_ticket(s), ticket);
    CHECK_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    CHECK_EQ(store_last_ticket(s), ticket);
    close_store();
}

/* ---- commits that fail: durability always ---- */

/* Which of `n` commits, the first of them with ticket `first`, are there: those up to the ticket that became
   durable, and none behind it. */
static void expect_prefix(int from, int n, int64_t first, int64_t durable)
{
    for (int i = 0; i < n; i++) {
        bool want = first + i <= durable;
        CHECK_EQ(has(from + i), want);
        CHECK_EQ(has_member(from + i), want);
    }
}

static void check_whole(void)
{
    char text[8192] = "";
    bool ok = false;
    FILE *f = fmemopen(text, sizeof text, "w");
    bool mariadb =
        server_url() && strncmp(server_url(), "mysql", 5) == 0; /* where it is a word of the language */
    outside(mariadb ? "UPDATE larder_db SET `keys` = -1, expires = -1"
                    : "UPDATE larder_db SET keys = -1, expires = -1");
    outside("DELETE FROM larder_trash; INSERT INTO larder_trash VALUES (1, 4)");
    CHECK_OK(store_check(place.url, f, &ok, &err), &err);
    fclose(f);
    if (!ok) {
        FAIL("the database is whole");
        printf("%s", text);
    }
}

/* No call fails from now on, but one that was to fail may still be on its way in the thread, and would take
   what comes next with it. */
static void outlive_failure(void)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    while (store_sync(s, &err) != ST_OK && clock_mono_us() < until)
        pause_a_moment();
}

/* The Nth call of the thread fails while there are six commits. Returns whether it came to that. */
static bool fail_once(const struct mode *m, struct store_fault f)
{
    struct store_progress p = {0};
    enum status st = ST_OK;
    int done = 0;
    new_place();
    open_as(m, DURABILITY_ALWAYS);
    CHECK_OK(put(0), &err);
    CHECK_OK(put(1), &err);
    settle_all();
    int64_t first = store_last_ticket(s) + 1;
    store_fault_set(writer, f);
    for (; done < 6 && st == ST_OK; done++) {
        CHECK_OK(put(2 + done), &err);
        st = progress(&p);
    }
    if (st == ST_OK)
        st = settle(first + done - 1, &p);
    if (st != ST_OK) {
        CHECK(fault_happened(writer));
        CHECK_EQ(st, f.status);
        CHECK(strstr(err.text, "injected") != NULL);
        CHECK(p.durable < first + done - 1);
        CHECK_EQ(store_last_ticket(s), p.durable); /* the next ones take their place */
    }
    expect_prefix(2, done, first, p.durable);
    bool happened = fault_happened(writer);
    store_fault_set(writer, (struct store_fault){0});
    outlive_failure();

    /* It goes on. */
    CHECK_OK(put(20), &err);
    settle_all();
    CHECK_OK(store_sync(s, &err), &err);
    CHECK(has(0) && has(1) && has(20));
    expect_prefix(2, done, first, p.durable);
    close_store();
    check_whole();
    open_as(m, DURABILITY_ALWAYS);
    CHECK(has(0) && has(1) && has(20));
    expect_prefix(2, done, first, p.durable);
    close_store();
    return happened;
}

static void a_failed_group_is_undone_with_all_behind_it(void)
{
    char context[120];
    check.context = context;
    for (size_t i = 0; i < MODES; i++) {
        int calls = 0, quiet = 0;
        uint64_t last = server_url() ? 12 : 60; /* where a place of its own for each takes a while */
        for (uint64_t nth = 1; nth < last && quiet < 3 && !check.checks_failed; nth++) {
            for (int sticky = 0; sticky < (server_url() ? 1 : 2); sticky++) {
                snprintf(context, sizeof context, "call %d%s failing, %s", (int)nth,
                         sticky ? " and all behind it" : "", modes[i].name);
                bool happened = fail_once(
                    &modes[i], (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = sticky});
                calls += happened;
                quiet = happened ? 0 : quiet + 1;
            }
        }
        CHECK(calls > (server_url() ? 2 : 4)); /* all commits may be one group */
    }
    check.context = NULL;
}

/* ---- commits that fail: nobody waits ---- */

static bool refused(void)
{
    struct error why;
    enum status st = store_begin(s, STORE_WRITE, NULL, NULL, &why);
    if (st == ST_OK)
        store_rollback(s);
    else
        CHECK_EQ(st, ST_FULL);
    return st != ST_OK;
}

/* Nothing that was accepted is lost, however long it cannot be written. */
static void fail_for_a_while(const struct mode *m, uint64_t nth)
{
    struct store_progress p;
    int done = 0;
    new_place();
    open_as(m, DURABILITY_OFF);
    CHECK_OK(put(0), &err);
    CHECK_OK(store_sync(s, &err), &err);
    store_fault_set(writer, (struct store_fault){.nth = nth, .status = ST_FULL, .sticky = true});
    for (; done < 4; done++) {
        enum status st = put(1 + done);
        if (st == ST_FULL)
            break;
        CHECK_OK(st, &err);
        CHECK_OK(progress(&p), &err);
        CHECK_EQ(p.durable, store_last_ticket(s)); /* nobody waits */
    }
    enum status st = store_sync(s, &err);
    if (fault_happened(writer)) {
        CHECK_EQ(st, ST_FULL);
        CHECK(strstr(err.text, "injected") != NULL);
        CHECK_EQ(store_set_durability(s, DURABILITY_ALWAYS, &err), ST_FULL);
        CHECK_EQ(store_sync(s, &err), ST_FULL); /* each time it is tried */
    } else {
        CHECK_OK(st, &err);
    }
    CHECK_OK(progress(&p), &err); /* nothing was undone */
    for (int i = 0; i <= done; i++)
        CHECK(has(i) && has_member(i));

    store_fault_set(writer, (struct store_fault){0});
    outlive_failure();
    CHECK_OK(store_sync(s, &err), &err);
    CHECK(!refused());
    CHECK_OK(put(10), &err);
    CHECK_OK(store_set_durability(s, DURABILITY_ALWAYS, &err), &err);
    for (int i = 0; i <= done; i++)
        CHECK(has(i) && has_member(i));
    close_store();
    check_whole();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), done + 2);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_set"), done + 2);
}

static void where_nobody_waits_it_is_tried_again(void)
{
    char context[120];
    check.context = context;
    for (size_t i = 0; i < MODES; i++) {
        for (uint64_t nth = 1; nth <= (server_url() ? 4 : 12) && !check.checks_failed; nth++) {
            snprintf(context, sizeof context, "call %d and all behind it failing, %s", (int)nth,
                     modes[i].name);
            fail_for_a_while(&modes[i], nth);
        }
    }
    check.context = NULL;
}

/* Writers are refused as long as it fails, and no longer. */
static void writers_are_refused_meanwhile(void)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    open_as(&modes[3], DURABILITY_EVERYSEC);
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    CHECK_OK(put(0), &err);
    while (!refused() && clock_mono_us() < until)
        pause_a_moment();
    CHECK(refused());
    CHECK(has(0)); /* readers are not */
    store_fault_set(writer, (struct store_fault){0});
    while (refused() && clock_mono_us() < until)
        pause_a_moment();
    CHECK_OK(put(1), &err);
    close_store();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 2);
}

/* ---- applying that fails ---- */

/* What is in the journal is durable: that the tables cannot follow is nobody's failure. */
static void the_tables_may_follow_later(void)
{
    struct store_progress p;
    open_as(&modes[0], DURABILITY_ALWAYS);
    int64_t until = clock_mono_us() + PATIENCE_US;
    CHECK_OK(put(0), &err);
    /* Nothing is applied before the owner asks how far it is, however long this takes. */
    while (outside_i64("SELECT count(*) FROM larder_journal") == 0 && clock_mono_us() < until)
        pause_a_moment();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_journal"), 1);
    store_fault_set(writer, (struct store_fault){.nth = 2,
                                                 .status = ST_FULL,
                                                 .sticky = true}); /* begin works, applying does not */
    CHECK_EQ(store_sync(s, &err), ST_FULL);
    CHECK_OK(progress(&p), &err);
    CHECK(has(0));
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 0);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_meta WHERE " META("applying") " <> 0"), 0);
    store_fault_set(writer, (struct store_fault){0});
    outlive_failure();
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 1);
    close_store();
}

/* ---- the end ---- */

/* A close that cannot apply leaves the journal, and the next start finds it. */
static void what_is_left_at_the_end_is_replayed(void)
{
    open_as(&modes[0], DURABILITY_ALWAYS);
    for (int i = 0; i < 3; i++)
        CHECK_OK(put(i), &err);
    settle_all();
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    close_store();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 0);
    CHECK(outside_i64("SELECT count(*) FROM larder_journal") > 0);
    open_as(&modes[0], DURABILITY_ALWAYS);
    CHECK(has(0) && has(1) && has(2) && has_member(2));
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 3);
    close_store();
}

/* The larder_meta of a server that was killed within applying: it is done again, and whole afterwards. */
static void half_applied_is_applied_again(void)
{
    open_as(&modes[0], DURABILITY_ALWAYS);
    for (int i = 0; i < 3; i++)
        CHECK_OK(put(i), &err);
    settle_all();
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    close_store();
    outside("UPDATE larder_meta SET value = (SELECT max(seq) FROM larder_journal) WHERE name = 'applying';"
            "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at, value)"
            " VALUES (0, CAST('key1' AS BLOB), 1, 0, 0, 0, 1, 0, x'76')");
    open_as(&modes[0], DURABILITY_ALWAYS);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 3);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_meta WHERE " META("applying") " <> 0"), 0);
    close_store();
}

/* ---- numbers ---- */

/* From the top down, a row at a time. */
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

/* A row that is gone leaves its number to others: when its key comes again it must not claim it. */
static void a_number_belongs_to_one_row(void)
{
    open_as(&modes[0], DURABILITY_ALWAYS);
    for (int i = 0; i < 3; i++)
        CHECK_OK(put(i), &err);
    CHECK_OK(store_sync(s, &err), &err);
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("key2"), &r));
    struct key_row gone = {
        .seq = r.keys[0].seq, .key = SLICE("key2"), .version = 2, .expire_at = EXPIRE_DELETED};
    rows_release(&r);
    CHECK_OK(put_key_now(s, &gone, &err), &err);
    CHECK_EQ(gone.seq, 0);
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_OK(put(3), &err);
    CHECK_OK(store_sync(s, &err), &err);
    struct key_row again = string_row(0, SLICE("key2"), SLICE("v"));
    again.seq = gone.seq;
    CHECK_OK(put_key_now(s, &again, &err), &err);
    CHECK_EQ(count_scanned(), 4);
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(count_scanned(), 4);
    close_store();
}

/* ---- sweeping ---- */

/* The thread removes what nothing refers to, when it has nothing else to do. */
static void the_thread_sweeps_trash(void)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    struct item_row items[50];
    struct trash_row trash = {7, ROW_LIST};
    struct db_row dbs[DATABASES];
    uint32_t next;
    uint64_t swept = 0;
    for (int i = 0; i < 50; i++)
        items[i] = (struct item_row){.ref = {.table = ITEM_LIST, .id = i < 40 ? 7 : 10, .pos = i}};
    struct changes c = {.items = items, .nitems = 50, .trash = &trash, .ntrash = 1};
    for (size_t m = 0; m < MODES; m++) {
        new_place();
        open_as(&modes[m], DURABILITY_ALWAYS);
        CHECK_OK(apply_now(s, &c, &err), &err);
        CHECK_OK(store_sync(s, &err), &err);
        CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
        for (swept = 0; swept < 40 && clock_mono_us() < until; pause_a_moment()) {
            struct sweep_budget b = {.max_rows = 15, .dbs = dbs, .ndbs = DATABASES};
            struct sweep_result r;
            CHECK_OK(store_sweep(s, &b, &r, &err), &err);
            CHECK(r.items <= 15);
            swept += r.items;
        }
        CHECK_EQ(swept, 40);
        close_store();
        CHECK_EQ(outside_i64("SELECT count(*) FROM larder_list"), 10);
    }
}

/* ---- other writers ---- */

static void writes_of_others_are_noticed(void)
{
    bool changed = false;
    int64_t until = clock_mono_us() + PATIENCE_US;
    open_as(&modes[1], DURABILITY_ALWAYS);
    for (int i = 0; i < 20; i++) { /* its own are not */
        CHECK_OK(put(i), &err);
        settle_all();
        CHECK_OK(store_begin(s, STORE_READ, NULL, &changed, &err), &err);
        CHECK(!changed);
        store_rollback(s);
        pause_a_moment();
    }
    CHECK_OK(store_sync(s, &err), &err);
    outside("UPDATE larder_meta SET value = hex(randomblob(8)) WHERE name = 'created'");
    while (!changed && clock_mono_us() < until) {
        CHECK_OK(store_begin(s, STORE_READ, NULL, &changed, &err), &err);
        store_rollback(s);
        pause_a_moment();
    }
    CHECK(changed);
    close_store();
}

/* ---- a database that takes commits back ---- */

static const struct mode straight = {"straight into the tables", {.max_bytes = 1 << 20, .few_rows = 8}};

static uint64_t rows_in_memory(void)
{
    struct store_info info = {0};
    struct store_progress p;
    CHECK_OK(progress(&p), &err);
    CHECK_OK(store_info(s, &info, &err), &err);
    return info.memtable_rows;
}

/* Slices are not waited for. Until a sync has been, memory and the journal keep what they hold. */
static void nothing_goes_before_it_is_durable(void)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    far = true;
    open_as(&modes[1], DURABILITY_EVERYSEC);
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_IO, .sticky = true, .syncs = true});
    for (int i = 0; i < 3; i++)
        CHECK_OK(put(i), &err);
    while (outside_i64("SELECT count(*) FROM larder_key") < 3 && clock_mono_us() < until)
        rows_in_memory();
    while (!fault_happened(writer) && clock_mono_us() < until)
        rows_in_memory();
    CHECK(fault_happened(writer));
    CHECK(rows_in_memory() > 0);
    CHECK(outside_i64("SELECT count(*) FROM larder_journal") > 0);
    store_fault_set(writer, (struct store_fault){0});
    outlive_failure();
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(rows_in_memory(), 0);
    close_store();
    far = false;
}

static void take_back(int64_t applied)
{
    char text[200];
    snprintf(text, sizeof text, "UPDATE larder_meta SET value = '%lld' WHERE name = 'applied'",
             (long long)applied);
    outside("DELETE FROM larder_key");
    outside("DELETE FROM larder_set");
    outside(text);
    fault_reconnect(writer);
}

static void put_lazily(int i)
{
    struct key_row k = string_row(0, slice_str(key_name(i)), SLICE("v"));
    struct changes c = {.keys = &k, .nkeys = 1};
    CHECK_OK(store_begin(s, STORE_WRITE_LAZY, NULL, NULL, &err), &err);
    CHECK_OK(store_apply(s, &c, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    settle_all();
}

/* Groups that nobody waited for went straight into the tables, and memory has nothing of them. */
static void what_is_lost_is_written_again(void)
{
    far = true;
    open_as(&straight, DURABILITY_ALWAYS);
    int64_t before = store_last_ticket(s);
    put_lazily(0);
    put_lazily(1);
    CHECK_EQ(rows_in_memory(), 0);
    take_back(before);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 0);
    CHECK_OK(put(2), &err);
    settle_all();
    CHECK(has(0) && has(1) && has(2));
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 3);
    close_store();
    far = false;
}

/* What was waited for is kept by nobody: the end. */
static void what_cannot_be_written_again_is_told(void)
{
    struct store_progress p;
    far = true;
    open_as(&straight, DURABILITY_ALWAYS);
    int64_t before = store_last_ticket(s);
    CHECK_OK(put(0), &err);
    settle_all();
    take_back(before);
    CHECK_OK(put(1), &err);
    CHECK_EQ(settle(store_last_ticket(s), &p), ST_LOST);
    CHECK_EQ(store_begin(s, STORE_WRITE, NULL, NULL, &err), ST_LOST);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 0);
    close_store();
    far = false;
}

#define MANY 30000 /* keys: applying them takes a while */

static void put_many(void)
{
    struct key_row *rows = mem_alloc(MANY * sizeof *rows);
    char(*names)[16] = mem_alloc(MANY * sizeof *names);
    for (int i = 0; i < MANY; i++) {
        int n = snprintf(names[i], sizeof names[i], "key%d", i);
        rows[i] = string_row(0, slice_of(names[i], (size_t)n), SLICE("v"));
    }
    struct changes c = {.keys = rows, .nkeys = MANY};
    CHECK_OK(apply_now(s, &c, &err), &err);
    mem_free(names);
    mem_free(rows);
}

/* The owner finds out that another server has the tables while the thread applies a change set that is too
   large for the journal. What the thread reads stays until it has ended. */
static void nothing_is_taken_from_a_thread_that_applies(void)
{
    struct store_progress p;
    int64_t until = clock_mono_us() + PATIENCE_US;
    reads_may_fail = true;
    open_as(&modes[2], DURABILITY_ALWAYS);
    store_fault_set(writer, (struct store_fault){0});
    put_many();
    CHECK_OK(progress(&p), &err);                              /* frozen */
    while (fault_calls(writer) < 3 && clock_mono_us() < until) /* begun, and in the midst of it */
        pause_a_moment();
    store_fault_set(reads, (struct store_fault){.nth = 1, .status = ST_LOCKED, .sticky = true});
    CHECK_EQ(store_begin(s, STORE_READ, NULL, NULL, &err), ST_LOCKED);
    CHECK_EQ(progress(&p), ST_LOCKED);
    CHECK_EQ(store_begin(s, STORE_WRITE, NULL, NULL, &err), ST_LOCKED);
    close_store();
    reads_may_fail = false;
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(tickets_ascend_and_become_durable);
    IN_NEW_PLACE(a_transaction_that_changes_nothing_has_no_ticket);
    IN_NEW_PLACE(a_failed_group_is_undone_with_all_behind_it);
    IN_NEW_PLACE(where_nobody_waits_it_is_tried_again);
    IN_NEW_PLACE(writers_are_refused_meanwhile);
    IN_NEW_PLACE(the_tables_may_follow_later);
    IN_NEW_PLACE(what_is_left_at_the_end_is_replayed);
    if (!server_url())
        IN_NEW_PLACE(half_applied_is_applied_again);
    IN_NEW_PLACE(a_number_belongs_to_one_row);
    IN_NEW_PLACE(the_thread_sweeps_trash);
    IN_NEW_PLACE(nothing_goes_before_it_is_durable);
    IN_NEW_PLACE(what_is_lost_is_written_again);
    IN_NEW_PLACE(what_cannot_be_written_again_is_told);
    if (!server_url()) /* where nobody else writes */
        IN_NEW_PLACE(writes_of_others_are_noticed);
    if (!server_url()) /* whose session would be lost indeed */
        IN_NEW_PLACE(nothing_is_taken_from_a_thread_that_applies);
    return check_done();
}
