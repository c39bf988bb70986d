/* The store with a journal in a log of its own: what becomes of groups when the log's files fail, what waits
   for a sync, and the order around a change set that is too large for the log. */
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "contract/fixture.h"
#include "journal/encoding.h"
#include "journal/journal_internal.h"
#include "journal/replay.h"
#include "redo/redo_internal.h"
#include "store/fault.h"

#define PATIENCE_US 20000000
#define JOURNAL_MAX (1 << 20)
#define LOG_MAX     (8 << 20)

static struct store *s, *writer; /* the store, and the session that writes the tables */
static struct error err;
static struct redo_id id;
static size_t journal_max = JOURNAL_MAX;

/* ---- files that fail ---- */

static const struct redo_files *sound;
static struct redo_files failing;
static atomic_int write_errno, sync_errno; /* of every call; 0: it works */
static atomic_int syncs, writes;           /* that worked */
static atomic_bool sync_waits, sync_is_in; /* a sync stands still; one does */
static _Atomic pthread_t syncer;           /* the thread that has synced last */

static ssize_t try_write(int fd, const struct iovec *v, int n, uint64_t at)
{
    int e = atomic_load(&write_errno);
    if (e) {
        errno = e;
        return -1;
    }
    atomic_fetch_add(&writes, 1);
    return sound->write(fd, v, n, at);
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = 200000};
    nanosleep(&t, NULL);
}

static int try_sync(int fd)
{
    while (atomic_load(&sync_waits)) {
        atomic_store(&sync_is_in, true);
        pause_a_moment();
    }
    atomic_store(&sync_is_in, false);
    int e = atomic_load(&sync_errno);
    if (e) {
        errno = e;
        return -1;
    }
    atomic_store(&syncer, pthread_self());
    atomic_fetch_add(&syncs, 1);
    return sound->sync(fd);
}

static void use_failing_files(void)
{
    sound = redo_files;
    failing = *redo_files;
    failing.write = try_write;
    failing.sync = try_sync;
    redo_files = &failing;
}

/* ---- opening ---- */

static void open_with(enum durability d, struct journal_options j)
{
    struct store_options o = options();
    struct store *inner = NULL, *reader = NULL;
    struct journal_past past = {0};
    o.durability = d;
    CHECK_OK(store_open(&o, &inner, &err), &err);
    CHECK_OK(replay_all(inner, place.url, &past, &err), &err);
    o.read_only = true;
    CHECK_OK(store_open(&o, &reader, &err), &err);
    struct redo_options r = {.path = place.path,
                             .id = id,
                             .from = past.last + 1,
                             .tables = past.applied,
                             .segment_bytes = 1 << 20};
    CHECK_OK(redo_open(&r, &past.redo, &err), &err);
    if (!inner || !reader || !past.redo)
        exit(EXIT_FAILURE);
    writer = fault_new(inner);
    CHECK_OK(journal_store_over(reader, writer, &past, &o, &j, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    /* No moment is quiet enough for a pass that nobody has asked for. */
    atomic_store(&journal_store_of(s)->atomics.scanned_us, INT64_MAX / 2);
}

static void open_as(enum durability d)
{
    open_with(d, (struct journal_options){.max_bytes = journal_max, .log_max = LOG_MAX, .lag_ms = 60000});
}

static void close_store(void)
{
    store_close(s);
    s = writer = NULL;
}

/* ---- writing ---- */

static bool has(int i)
{
    return has_numbered(s, i);
}

static enum status put_bytes(int i, struct slice value)
{
    struct key_row k = string_row(0, slice_str(key_name(i)), value);
    struct changes c = {.keys = &k, .nkeys = 1};
    return apply_now(s, &c, &err);
}

static enum status put(int i)
{
    return put_bytes(i, SLICE("v"));
}

static enum status put_large(int i)
{
    struct buf b = {0};
    memset(buf_reserve(&b, JOURNAL_MAX), 'x', JOURNAL_MAX);
    b.len = JOURNAL_MAX;
    enum status st = put_bytes(i, buf_slice(&b));
    buf_release(&b);
    return st;
}

static enum status settle(int64_t ticket, struct store_progress *p)
{
    int64_t until = clock_mono_us() + PATIENCE_US;
    enum status st;
    while ((st = store_progress(s, p, &err)) == ST_OK && p->durable < ticket && clock_mono_us() < until)
        pause_a_moment();
    CHECK(clock_mono_us() < until);
    return st;
}

static void settle_all(void)
{
    struct store_progress p;
    CHECK_OK(settle(store_last_ticket(s), &p), &err);
}

typedef bool condition(struct journal_shared *l);

/* While the store takes note of nothing: what the threads do by themselves. */
static bool comes_true(condition *is)
{
    struct journal_store *j = journal_store_of(s);
    int64_t until = clock_mono_us() + PATIENCE_US;
    for (;;) {
        journal_lock(j);
        bool done = is(locked(j));
        journal_unlock(j);
        if (done || clock_mono_us() > until)
            return done;
        pause_a_moment();
    }
}

static bool log_fails(struct journal_shared *l)
{
    return l->log.failing;
}

static bool log_works(struct journal_shared *l)
{
    return !l->log.failing;
}

static bool all_is_written(struct journal_shared *l)
{
    return l->durable == l->committed;
}

/* ---- what is in the log ---- */

struct found {
    int64_t seqs[256];
    size_t n;
    size_t outsized;
};

static enum status take(void *arg, const struct redo_record *r)
{
    struct found *f = arg;
    f->seqs[f->n++ % 256] = r->seq;
    f->outsized += r->kind == REDO_OUTSIZED;
    return ST_OK;
}

static struct found read_log(int64_t after)
{
    struct found f = {0};
    CHECK_OK(redo_each(place.path, NULL, after, take, &f, &err), &err);
    return f;
}

/* The tables' own word, and whether they have a key: past all memory. */
static bool tables_have(int i)
{
    struct store_options o = options();
    struct store *t = NULL;
    struct rows r = {0};
    o.read_only = true;
    CHECK_OK(store_open(&o, &t, &err), &err);
    bool found = get_key(t, 0, slice_str(key_name(i)), &r);
    rows_release(&r);
    store_close(t);
    return found;
}

/* ---- always ---- */

static void a_group_is_one_write_and_one_sync(void)
{
    open_as(DURABILITY_ALWAYS);
    int w = atomic_load(&writes), n = atomic_load(&syncs);
    CHECK_OK(put(1), &err);
    settle_all();
    CHECK_EQ(atomic_load(&writes) - w, 1);
    CHECK_EQ(atomic_load(&syncs) - n, 1);
    CHECK_EQ(read_log(0).n, 1);
    close_store();
    CHECK(tables_have(1));
}

/* A sync that fails: nobody is told that it is done, it is gone from memory with all behind it, and what
   comes next works and is all that a crash leaves. */
static void a_failed_sync_undoes(void)
{
    struct store_progress p;
    open_as(DURABILITY_ALWAYS);
    CHECK_OK(put(1), &err);
    settle_all();
    atomic_store(&sync_errno, EIO);
    CHECK_OK(put(2), &err);
    CHECK_OK(put(3), &err);
    CHECK_EQ(settle(store_last_ticket(s), &p), ST_UNKNOWN);
    CHECK(has(1) && !has(2) && !has(3));
    CHECK_EQ(p.durable, 1);
    atomic_store(&sync_errno, 0);
    CHECK_OK(put(4), &err);
    settle_all();
    struct found f = read_log(0);
    CHECK_EQ(f.n, 2);
    CHECK_EQ(f.seqs[1], 2);
    CHECK(has(4) && !has(2));
    close_store();
    CHECK(tables_have(1) && tables_have(4) && !tables_have(2) && !tables_have(3));
}

static void a_full_disk_undoes(void)
{
    struct store_progress p;
    open_as(DURABILITY_ALWAYS);
    atomic_store(&write_errno, ENOSPC);
    CHECK_OK(put(1), &err);
    CHECK_EQ(settle(store_last_ticket(s), &p), ST_FULL);
    CHECK(!has(1));
    atomic_store(&write_errno, 0);
    CHECK_OK(put(2), &err);
    settle_all();
    CHECK(has(2));
    close_store();
}

static void *let_go_later(void *arg)
{
    for (int i = 0; i < 100; i++)
        pause_a_moment();
    atomic_store(&sync_waits, false);
    return arg;
}

/* The tables fail for good while a group is on its way into the log: what is undone is known only when that
   has come to its end. */
static void undoing_waits_for_the_group_on_its_way(void)
{
    open_as(DURABILITY_ALWAYS);
    CHECK_OK(put(1), &err);
    settle_all();
    atomic_store(&sync_waits, true);
    CHECK_OK(put(2), &err);
    while (!atomic_load(&sync_is_in))
        pause_a_moment();
    struct journal_store *j = journal_store_of(s);
    journal_lock(j);
    locked(j)->failures.failed = ST_IO;
    (void)error_set(&locked(j)->failures.undone, ST_IO, "the tables cannot be written");
    journal_unlock(j);
    CHECK_OK(put(3), &err);
    struct store_progress p;
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, let_go_later, NULL), 0);
    CHECK_EQ(store_progress(s, &p, &err), ST_IO);
    pthread_join(other, NULL);
    CHECK_EQ(p.durable, 2);
    CHECK(has(1) && has(2) && !has(3));
    CHECK_EQ(read_log(0).n, 2);
    close_store();
}

/* ---- a caller who has nothing else to do ---- */

static bool logger_waits(struct journal_shared *l)
{
    return l->log.idle;
}

static void who_is_alone_writes_itself(void)
{
    open_as(DURABILITY_ALWAYS);
    CHECK(comes_true(logger_waits));
    store_alone(s, true);
    CHECK_OK(put(1), &err);
    CHECK_EQ(store_durable(s), store_last_ticket(s));
    CHECK(pthread_equal(syncer, pthread_self()));
    store_alone(s, false);
    CHECK_OK(put(2), &err);
    settle_all();
    CHECK(!pthread_equal(syncer, pthread_self()));
    CHECK(has(1) && has(2));
    CHECK_EQ(read_log(0).n, 2);
    close_store();
    CHECK(tables_have(1) && tables_have(2));
}

static void who_is_alone_learns_of_failures_in_the_same_way(void)
{
    struct store_progress p;
    open_as(DURABILITY_ALWAYS);
    CHECK(comes_true(logger_waits));
    store_alone(s, true);
    CHECK_OK(put(1), &err);
    atomic_store(&sync_errno, EIO);
    CHECK_OK(put(2), &err);
    CHECK_EQ(store_durable(s), 1);
    CHECK_EQ(store_progress(s, &p, &err), ST_UNKNOWN);
    CHECK(has(1) && !has(2));
    atomic_store(&sync_errno, 0);
    CHECK_OK(put(3), &err);
    settle_all(); /* the logger may be renewing the epoch: then it writes this */
    CHECK(has(3));
    close_store();
    CHECK(tables_have(1) && tables_have(3) && !tables_have(2));
}

/* What was committed before goes first, by the logger. */
static void who_is_alone_stands_in_line(void)
{
    open_as(DURABILITY_ALWAYS);
    CHECK(comes_true(logger_waits));
    atomic_store(&sync_waits, true);
    CHECK_OK(put(1), &err);
    while (!atomic_load(&sync_is_in))
        pause_a_moment();
    store_alone(s, true);
    CHECK_OK(put(2), &err);
    CHECK_EQ(store_durable(s), 0);
    atomic_store(&sync_waits, false);
    settle_all();
    CHECK_EQ(read_log(0).n, 2);
    close_store();
}

/* ---- everysec and off ---- */

static void unsynced_groups_are_appended_again(void)
{
    open_as(DURABILITY_EVERYSEC);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(put(i), &err);
        CHECK(comes_true(all_is_written));
    }
    atomic_store(&sync_errno, EIO);
    CHECK(comes_true(log_fails)); /* after a second at the latest */
    CHECK_EQ(put(100), ST_IO);
    CHECK(has(0) && has(19));
    atomic_store(&sync_errno, 0);
    CHECK(comes_true(log_works));
    CHECK_OK(put(101), &err);
    CHECK(comes_true(all_is_written));
    struct found f = read_log(0);
    CHECK_EQ(f.n, 21);
    for (size_t i = 0; i < f.n; i++)
        CHECK_EQ(f.seqs[i], (int64_t)i + 1);
    close_store();
    CHECK(tables_have(0) && tables_have(19) && tables_have(101) && !tables_have(100));
}

/* A pass begins with the log's sync; without it the tables get nothing, however much they are asked. */
static void tables_have_only_what_is_synced(void)
{
    open_as(DURABILITY_OFF);
    CHECK_OK(put(1), &err);
    CHECK(comes_true(all_is_written));
    atomic_store(&sync_errno, EIO);
    CHECK_EQ(store_sync(s, &err), ST_IO);
    CHECK(!tables_have(1) && has(1));
    atomic_store(&sync_errno, 0);
    CHECK_OK(store_sync(s, &err), &err);
    CHECK(tables_have(1));
    close_store();
}

static void always_begins_with_a_sync(void)
{
    open_as(DURABILITY_OFF);
    CHECK_OK(put(1), &err);
    atomic_store(&sync_errno, EIO);
    CHECK(store_set_durability(s, DURABILITY_ALWAYS, &err) != ST_OK);
    atomic_store(&sync_errno, 0);
    int n = atomic_load(&syncs);
    CHECK_OK(store_set_durability(s, DURABILITY_ALWAYS, &err), &err);
    CHECK(atomic_load(&syncs) > n);
    struct redo_info info;
    redo_info(journal_store_of(s)->redo, &info);
    CHECK_EQ(info.durable, 1);
    close_store();
}

/* ---- room ---- */

static bool pass_is_stuck(struct journal_shared *l)
{
    return l->failures.stuck != ST_OK;
}

/* However little memory the rows take that are written over and over. */
static void a_full_log_refuses_writes(void)
{
    static char bytes[200000];
    struct store_progress p = {0};
    struct redo_info info;
    enum status st = ST_OK;
    journal_max = 256 << 20;
    open_as(DURABILITY_ALWAYS);
    journal_max = JOURNAL_MAX;
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    for (int i = 0; i < 100 && st == ST_OK; i++) {
        st = put_bytes(1, slice_of(bytes, sizeof bytes));
        if (st == ST_OK)
            CHECK_OK(settle(store_last_ticket(s), &p), &err);
        if (p.full) /* a server's clients wait, until it is known that there is no end to it */
            CHECK(comes_true(pass_is_stuck));
    }
    CHECK_EQ(st, ST_FULL);
    redo_info(journal_store_of(s)->redo, &info);
    CHECK(info.bytes <= LOG_MAX + 2 * sizeof bytes);
    store_fault_set(writer, (struct store_fault){0});
    CHECK_OK(store_sync(s, &err), &err);
    CHECK_OK(put(2), &err);
    settle_all();
    close_store();
}

/* ---- outsized ---- */

static void a_large_change_set_goes_into_the_tables(void)
{
    for (int d = DURABILITY_ALWAYS; d <= DURABILITY_OFF; d++) {
        new_place();
        open_as((enum durability)d);
        CHECK_OK(put(1), &err);
        CHECK_OK(put_large(2), &err);
        CHECK_OK(put(3), &err);
        struct store_progress p;
        CHECK_OK(settle(store_last_ticket(s), &p), &err);
        CHECK_OK(store_progress(s, &p, &err), &err);
        CHECK_OK(put(4), &err);
        CHECK_OK(store_sync(s, &err), &err);
        CHECK(tables_have(1) && tables_have(2) && tables_have(3) && tables_have(4));
        CHECK_EQ(read_log(0).outsized, 1);
        close_store();
    }
}

/* Whether who reads the log behind a state before this change set notices that it is in the tables alone: by
   its marker, or because segments begin behind it, when the log was told that the tables have it for good. */
static bool is_told_of(int64_t seq)
{
    struct found f = {0};
    enum status st = redo_each(place.path, NULL, 0, take, &f, &err);
    for (size_t i = 0; i < f.n; i++)
        if (f.seqs[i] >= seq)
            return f.seqs[i] == seq && f.outsized == 1;
    return st == ST_CORRUPT;
}

/* The tables have it, and the log cannot be told: it is done. Nothing gets into the log before it was told:
   behind an older state of the tables, as a backup reads it, the log would have a gap that nobody sees. */
static void nothing_follows_a_missing_marker(void)
{
    open_as(DURABILITY_ALWAYS);
    CHECK_OK(put(1), &err);
    settle_all();
    atomic_store(&write_errno, EIO);
    CHECK_OK(put_large(2), &err);
    settle_all();
    CHECK(tables_have(1) && tables_have(2));
    for (int i = 3; i < 5; i++) {
        struct store_progress p;
        CHECK_OK(put(i), &err);
        CHECK_EQ(settle(store_last_ticket(s), &p), ST_IO);
        CHECK(!has(i));
    }
    atomic_store(&write_errno, 0);
    CHECK_OK(put(5), &err);
    settle_all();
    CHECK(is_told_of(2));
    close_store();
}

/* The same when no reply waits: they are appended later, behind the marker. */
static void a_marker_comes_before_what_was_put_off(void)
{
    open_as(DURABILITY_EVERYSEC);
    CHECK_OK(put(1), &err);
    CHECK(comes_true(all_is_written));
    atomic_store(&sync_errno, EIO);
    CHECK_OK(put_large(2), &err);
    settle_all();
    CHECK_OK(put(3), &err);
    CHECK(comes_true(log_fails));
    atomic_store(&sync_errno, 0);
    CHECK(comes_true(log_works));
    CHECK(comes_true(all_is_written));
    CHECK(is_told_of(2));
    CHECK(has(1) && has(2) && has(3));
    close_store();
    CHECK(tables_have(1) && tables_have(2) && tables_have(3));
}

static void a_large_change_set_that_fails_is_undone(void)
{
    open_as(DURABILITY_ALWAYS);
    CHECK_OK(put(1), &err);
    settle_all();
    CHECK_OK(store_sync(s, &err), &err); /* nothing is left that a pass could fail to bring in */
    store_fault_set(writer, (struct store_fault){.nth = 1, .status = ST_FULL, .sticky = true});
    CHECK_OK(put_large(2), &err);
    CHECK_OK(put(3), &err);
    struct store_progress p;
    CHECK_EQ(settle(store_last_ticket(s), &p), ST_FULL);
    CHECK(has(1) && !has(2) && !has(3));
    store_fault_set(writer, (struct store_fault){0});
    CHECK_OK(put(4), &err);
    settle_all();
    CHECK_OK(store_sync(s, &err), &err);
    CHECK(tables_have(1) && tables_have(4) && !tables_have(2));
    close_store();
}

/* ---- memory ---- */

#define OWN  ((size_t)4 << 20)
#define LOAN ((size_t)4 << 20)
#define ROW  2048

/* Rows until so many bytes of memory are taken; the last progress. */
static struct store_progress fill_to(size_t memory)
{
    static char value[ROW];
    static int i;
    struct store_progress p = {0};
    while (p.memory < memory) {
        if (put_bytes(++i, slice_of(value, sizeof value)) != ST_OK || store_progress(s, &p, &err) != ST_OK) {
            FAIL(err.text);
            break;
        }
    }
    return p;
}

/* What two memtables take beyond journal-max is told, for as long as they take it. Nothing leaves them while
   a sync stands still. */
static void what_is_borrowed_is_told(void)
{
    open_with(DURABILITY_EVERYSEC,
              (struct journal_options){.max_bytes = OWN, .loan_bytes = LOAN, .lag_ms = 60000});
    atomic_store(&sync_waits, true);
    struct store_progress p = fill_to(OWN / 2);
    CHECK(p.borrowed == 0 && !p.full);
    p = fill_to(OWN + LOAN / 2);
    CHECK(p.borrowed >= LOAN / 2 && p.borrowed < LOAN && p.full);
    p = fill_to(OWN + LOAN - ROW);
    CHECK(p.full && p.stops && p.borrowed <= LOAN + LOAN / 4);
    atomic_store(&sync_waits, false);
    CHECK_OK(store_sync(s, &err), &err);
    int64_t end = clock_mono_us() + PATIENCE_US;
    while (p.borrowed && clock_mono_us() < end) {
        pause_a_moment();
        CHECK_OK(store_progress(s, &p, &err), &err);
    }
    CHECK_EQ(p.borrowed, 0);
    close_store();
}

int main(void)
{
    use_failing_files();
    IN_NEW_PLACE(what_is_borrowed_is_told);
    IN_NEW_PLACE(a_group_is_one_write_and_one_sync);
    IN_NEW_PLACE(a_failed_sync_undoes);
    IN_NEW_PLACE(a_full_disk_undoes);
    IN_NEW_PLACE(undoing_waits_for_the_group_on_its_way);
    IN_NEW_PLACE(who_is_alone_writes_itself);
    IN_NEW_PLACE(who_is_alone_learns_of_failures_in_the_same_way);
    IN_NEW_PLACE(who_is_alone_stands_in_line);
    IN_NEW_PLACE(unsynced_groups_are_appended_again);
    IN_NEW_PLACE(tables_have_only_what_is_synced);
    IN_NEW_PLACE(always_begins_with_a_sync);
    IN_NEW_PLACE(a_full_log_refuses_writes);
    IN_NEW_PLACE(a_large_change_set_goes_into_the_tables);
    IN_NEW_PLACE(nothing_follows_a_missing_marker);
    IN_NEW_PLACE(a_marker_comes_before_what_was_put_off);
    IN_NEW_PLACE(a_large_change_set_that_fails_is_undone);
    return check_done();
}
