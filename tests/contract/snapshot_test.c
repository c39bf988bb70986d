/* Snapshots beside a journal (store/snapshot.h): threads that read the tables through sessions of their own
   while the owner moves amounts from key to key, two keys in each commit. Whatever they see, the sum is the
   same, and what was committed before they asked is there. The control reads without asking: on a server it
   sees another sum amid a pass, or this test proves nothing; a file's tables are whole at any moment, because
   a pass is one transaction. That this reader would see it is proven by the mode that makes two of each
   commit. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/rand.h"
#include "contract/fixture.h"
#include "store/deferred.h"
#include "store/snapshot.h"

#define KEYS        2000
#define AMOUNT      1000
#define READERS     3
#define PATIENCE_US 60000000

/* How often the tables are torn when somebody looks. */
enum tears { NEVER, RARELY, OFTEN };

static const struct mode {
    const char *name;
    struct journal_options journal;
    enum durability durability;
    enum tears on_server, on_file;
    bool halves; /* a transfer is two commits */
} modes[] = {
    {"journal", {.max_bytes = 256 << 10, .lag_ms = 1000, .few_rows = 8}, DURABILITY_OFF, OFTEN, NEVER, false},
    {"journal, always", {.max_bytes = 64 << 10, .lag_ms = 50}, DURABILITY_ALWAYS, RARELY, NEVER, false},
    {"no journal", {.max_bytes = 0}, DURABILITY_OFF, NEVER, NEVER, false},
    {"two commits", {.max_bytes = 0}, DURABILITY_OFF, NEVER, OFTEN, true},
};
#define MODES (sizeof modes / sizeof modes[0])

static struct store *s;
static struct error err;
static int64_t amounts[KEYS + 1]; /* the last one counts commits */

/* ---- writing ---- */

static struct key_row row_of(int i, char key[16], char value[24])
{
    snprintf(key, 16, "k%05d", i);
    snprintf(value, 24, "%lld", (long long)amounts[i]);
    return string_row(0, slice_str(key), slice_str(value));
}

static enum status write_rows(const int *which, size_t n)
{
    static char keys[KEYS + 1][16], values[KEYS + 1][24];
    static struct key_row rows[KEYS + 1];
    for (size_t i = 0; i < n; i++)
        rows[i] = row_of(which[i], keys[i], values[i]);
    struct changes c = {.keys = rows, .nkeys = n};
    return apply_now(s, &c, &err);
}

static enum status write_first(void)
{
    static int all[KEYS + 1];
    for (int i = 0; i <= KEYS; i++) {
        all[i] = i;
        amounts[i] = i < KEYS ? AMOUNT : 0;
    }
    return write_rows(all, KEYS + 1);
}

/* A commit may be refused for a while because the journal is full. */
static void transfer(struct rand *r, bool halves)
{
    int three[3] = {(int)rand_below(r, KEYS), 0, KEYS};
    do
        three[1] = (int)rand_below(r, KEYS);
    while (three[1] == three[0]);
    int64_t n = (int64_t)rand_below(r, 10);
    amounts[three[0]] -= n;
    amounts[three[1]] += n;
    amounts[KEYS]++;
    if (halves)
        CHECK_OK(write_rows(three, 1), &err);
    CHECK_OK(halves ? write_rows(three + 1, 2) : write_rows(three, 3), &err);
}

static void let_it_catch_up(void)
{
    struct store_progress p;
    const struct timespec moment = {.tv_nsec = 200000};
    while (store_progress(s, &p, &err) == ST_OK && p.full)
        nanosleep(&moment, NULL);
}

/* ---- reading ---- */

struct reader {
    pthread_t thread;
    struct store *session;
    bool asks;                  /* by store/snapshot.h */
    _Atomic int64_t *committed; /* ticket, and which commit it was */
    _Atomic int64_t *count;
    _Atomic int64_t sums, wrong, missed, late;
    atomic_bool stop;
};

struct sum {
    int64_t total, count;
    size_t rows;
};

static enum status add_amount(void *arg, const struct key_row *k)
{
    struct sum *sum = arg;
    int64_t n = 0;
    CHECK(num_parse_i64(k->value, &n));
    if (slice_eq(k->key, SLICE("k02000")))
        sum->count = n;
    else
        sum->total += n;
    sum->rows++;
    return ST_OK;
}

static bool reader_stops(void *arg)
{
    return atomic_load(&((struct reader *)arg)->stop);
}

/* The first read fixes what the transaction sees. */
static enum status open_snapshot(struct reader *r, struct error *e)
{
    struct db_row dbs[DATABASES];
    uint32_t next;
    enum status st = store_begin(r->session, STORE_READ, NULL, NULL, e);
    return st == ST_OK ? store_load_dbs(r->session, dbs, DATABASES, &next, e) : st;
}

/* ST_CONFLICT: too late. */
static enum status open_between_passes(struct reader *r, int64_t ticket, struct error *e)
{
    const struct snapshot_want want = {.ticket = ticket, .stop = reader_stops, .arg = r};
    uint64_t number;
    enum status st = snapshot_enter(s, &want, &number, e);
    if (st != ST_OK)
        return st;
    st = open_snapshot(r, e);
    bool in_time = snapshot_leave(s, number);
    if (st != ST_OK || in_time)
        return st;
    store_rollback(r->session);
    return ST_CONFLICT;
}

static void *read_on(void *arg)
{
    struct reader *r = arg;
    struct error e;
    struct key_scan q = {.db = 0, .order = KEYS_BY_KEY, .with_value = true, .limit = UINT32_MAX};
    while (!atomic_load(&r->stop)) {
        int64_t count = atomic_load(r->count), ticket = atomic_load(r->committed);
        enum status st = r->asks ? open_between_passes(r, ticket, &e) : open_snapshot(r, &e);
        if (st == ST_CONFLICT)
            atomic_fetch_add(&r->late, 1);
        if (st == ST_CONFLICT || (st == ST_BUSY && atomic_load(&r->stop)))
            continue;
        CHECK_OK(st, &e);
        struct sum sum = {0};
        CHECK_OK(store_scan_keys(r->session, &q, add_amount, &sum, &e), &e);
        store_rollback(r->session);
        bool behind = sum.rows == 0 && !r->asks; /* that is old, and not torn */
        atomic_fetch_add(&r->wrong, !behind && sum.total != (int64_t)KEYS * AMOUNT);
        CHECK(behind || sum.rows == KEYS + 1);
        atomic_fetch_add(&r->missed, sum.count < count);
        atomic_fetch_add(&r->sums, 1);
    }
    return NULL;
}

static struct store *open_session(void)
{
    struct store_options o = options();
    struct store *session = NULL;
    o.url = alone_url();
    o.read_only = true;
    CHECK_OK(store_open(&o, &session, &err), &err);
    return session;
}

/* ---- both ---- */

static bool all_have_read(const struct reader *readers, int64_t sums, bool tears)
{
    for (int i = 0; i < READERS; i++)
        if (atomic_load(&readers[i].sums) < sums)
            return false;
    return !tears || atomic_load(&readers[READERS - 1].wrong) > 0;
}

/* The last reader is the control. */
static void check_readers(struct reader *readers, enum tears tears)
{
    for (int i = 0; i < READERS; i++)
        atomic_store(&readers[i].stop, true);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i].thread, NULL);
        store_close(readers[i].session);
        CHECK(readers[i].sums > 0);
        if (readers[i].asks) {
            CHECK_EQ(readers[i].wrong, 0);
            CHECK_EQ(readers[i].missed, 0);
        }
    }
    if (tears != RARELY)
        CHECK_EQ(readers[READERS - 1].wrong > 0, tears == OFTEN);
}

static void sums_are_always_the_same(void)
{
    for (size_t m = 0; m < MODES; m++) {
        if (server_url() && !modes[m].journal.max_bytes) /* a server without a journal has no thread */
            continue;
        struct store_options o = options();
        struct reader readers[READERS] = {0};
        enum tears tears = server_url() ? modes[m].on_server : modes[m].on_file;
        struct rand rnd;
        _Atomic int64_t committed, count = 0;
        check.context = modes[m].name;
        new_place();
        o.url = alone_url();
        o.durability = modes[m].durability;
        REQUIRE_OK(journal_store_open(&o, &modes[m].journal, &s, &err), &err);
        CHECK_OK(write_first(), &err);
        atomic_store(&committed, store_last_ticket(s));
        rand_init(&rnd);
        let_it_catch_up();
        for (int i = 0; i < READERS; i++) {
            readers[i].session = open_session();
            readers[i].asks = i < READERS - 1 && !modes[m].halves;
            readers[i].committed = &committed;
            readers[i].count = &count;
            CHECK_EQ(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
        }
        int64_t until = clock_mono_us() + PATIENCE_US;
        while (!all_have_read(readers, 30, tears == OFTEN) && clock_mono_us() < until) {
            transfer(&rnd, modes[m].halves);
            atomic_store(&committed, store_last_ticket(s));
            atomic_store(&count, amounts[KEYS]);
            let_it_catch_up();
        }
        check_readers(readers, tears);
        printf("    %s: %lld commits, %lld sums, %lld late; control: %lld of %lld wrong\n", modes[m].name,
               (long long)amounts[KEYS], (long long)(readers[0].sums + readers[1].sums),
               (long long)(readers[0].late + readers[1].late), (long long)readers[READERS - 1].wrong,
               (long long)readers[READERS - 1].sums);
        store_close(s);
        leave_place();
    }
}

/* Nobody writes, and the owner does nothing: what is in the tables is seen at once. */
static void a_quiet_store_lets_in_at_once(void)
{
    struct store_options o = options();
    struct reader r = {0};
    struct error e;
    check.context = NULL;
    o.url = alone_url();
    REQUIRE_OK(journal_store_open(&o, &modes[0].journal, &s, &err), &err);
    CHECK_OK(store_sync(s, &err), &err);
    r.session = open_session();
    CHECK_OK(open_between_passes(&r, store_last_ticket(s), &e), &e);
    store_rollback(r.session);
    /* One that is never reached is given up when it is told to. */
    CHECK_OK(write_first(), &err);
    atomic_store(&r.stop, true);
    CHECK_EQ(open_between_passes(&r, store_last_ticket(s), &e), ST_BUSY);
    store_close(r.session);
    store_close(s);
}

/* Who has entered and does not leave holds up writers for a moment, and is told that it was too late. */
static void a_late_one_is_told(void)
{
    if (!server_url()) /* nothing waits for it, and it is never too late */
        return;
    struct store_options o = options();
    struct reader r = {0};
    struct error e;
    uint64_t number;
    o.url = alone_url();
    o.durability = DURABILITY_ALWAYS;
    REQUIRE_OK(journal_store_open(&o, &modes[0].journal, &s, &err), &err);
    const struct snapshot_want want = {.ticket = store_last_ticket(s), .stop = reader_stops, .arg = &r};
    REQUIRE_OK(snapshot_enter(s, &want, &number, &e), &e);
    CHECK_OK(write_first(), &err);
    CHECK_OK(store_sync(s, &err), &err); /* waits for the writer, which goes on without us */
    CHECK(!snapshot_leave(s, number));
    store_close(s);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(sums_are_always_the_same);
    IN_NEW_PLACE(a_quiet_store_lets_in_at_once);
    IN_NEW_PLACE(a_late_one_is_told);
    return check_done();
}
