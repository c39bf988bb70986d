/* Sessions on replicas, and positions: over a database server with replicas (tests/harness/replicas.py),
   which LARDER_TEST_URL and LARDER_TEST_REPLICAS name. Without them there is nothing to test. */
#include "fixture.h"
#include "base/clock.h"
#include "store/replicated.h"
#include "store/shared.h"

#include <time.h>

#define LIMIT_US 20000000

static char replica_url[512];

static struct store *open_primary(void)
{
    struct store_options o = options();
    struct store *s = NULL;
    struct error err;
    o.url = getenv("LARDER_TEST_URL");
    o.durability = DURABILITY_ALWAYS;
    CHECK_OK(store_open(&o, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    s->replicated->want(s, true);
    return s;
}

static struct store *open_replica(const char *url, struct store *primary)
{
    struct store_options o = {
        .url = url, .databases = DATABASES, .timeout_ms = 500, .replica = true, .beside = primary};
    struct store *s = NULL;
    struct error err;
    CHECK_OK(store_open(&o, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
    return s;
}

static void pause_a_moment(void)
{
    const struct timespec t = {.tv_nsec = 5000000};
    nanosleep(&t, NULL);
}

/* A read transaction on a replica that has at least this, when one can be had. */
static bool begin_at(struct store *s, const struct position *need, const struct store_declared *d)
{
    struct error err = {0};
    for (int64_t until = clock_mono_us() + LIMIT_US; clock_mono_us() < until; pause_a_moment()) {
        struct position at;
        if (store_begin(s, STORE_READ, d, NULL, &err) != ST_OK)
            continue;
        s->replicated->admitted(s, &at);
        if (position_reached(&at, need))
            return true;
        store_rollback(s);
    }
    printf("    %s\n", err.text);
    return false;
}

static uint32_t number_of_db0(struct store *s)
{
    struct db_row dbs[DATABASES];
    uint32_t next;
    struct error err;
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    return dbs[0].number;
}

static void write_key(struct store *s, const char *name, struct position *ret)
{
    struct error err;
    struct db_row dbs[DATABASES];
    uint32_t next;
    REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, NULL, &err), &err);
    REQUIRE_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    struct key_row k = {
        .db = dbs[0].number, .key = slice_str(name), .type = ROW_STRING, .version = 1, .value = SLICE("v")};
    struct changes c = {.keys = &k, .nkeys = 1};
    REQUIRE_OK(store_apply(s, &c, &err), &err);
    REQUIRE_OK(store_commit(s, &err), &err);
    s->replicated->seen(s, ret);
}

static enum status count_row(void *arg, const struct key_row *k)
{
    (void)k;
    ++*(int *)arg;
    return ST_OK;
}

static void a_commit_has_a_position_that_a_replica_reaches(void)
{
    struct store *p = open_primary(), *r = open_replica(replica_url, p);
    struct position wrote, seen;
    char name[32];
    for (int i = 0; i < 50; i++) {
        int found = 0;
        snprintf(name, sizeof name, "key:%d:%ld", i, (long)getpid());
        write_key(p, name, &wrote);
        CHECK(wrote.kind != POSITION_NONE);
        CHECK(wrote.database != 0 && wrote.timeline != 0);
        struct key_ref ref = {0, slice_str(name)};
        struct store_declared d = {.keys = &ref, .nkeys = 1, .fn = count_row, .arg = &found};
        struct error err;
        REQUIRE_OK(store_begin(p, STORE_READ, NULL, NULL, &err), &err);
        ref.db = number_of_db0(p);
        store_rollback(p);
        struct position before = wrote;
        REQUIRE(begin_at(r, &wrote, NULL));
        store_rollback(r);
        uint64_t trips = 0;
        struct store_info info = {0};
        store_counters(r, &info);
        trips = info.round_trips;
        found = 0;
        REQUIRE_OK(store_begin(r, STORE_READ, &d, NULL, &err), &err);
        info = (struct store_info){0};
        store_counters(r, &info);
        CHECK_EQ(info.round_trips - trips, 1); /* position, snapshot, databases and keys */
        CHECK_EQ(found, 1);
        r->replicated->seen(r, &seen);
        CHECK(position_reached(&seen, &before));
        store_rollback(r);
    }
    store_close(r);
    store_close(p);
}

static void a_replica_takes_no_writes(void)
{
    struct store *p = open_primary(), *r = open_replica(replica_url, p);
    struct position none = {0};
    struct error err;
    REQUIRE(begin_at(r, &none, NULL));
    store_rollback(r);
    CHECK_EQ(store_begin(r, STORE_WRITE, NULL, NULL, &err), ST_READONLY);
    CHECK_OK(store_begin(r, STORE_READ, NULL, NULL, &err), &err);
    store_close(r);
    store_close(p);
}

static void a_replica_of_another_database_is_refused(void)
{
    struct store *p = open_primary(), *other;
    struct store_options o = options();
    struct error err = {0};
    char url[600];
    snprintf(url, sizeof url, "%s%cprefix=other_", getenv("LARDER_TEST_URL"),
             strchr(getenv("LARDER_TEST_URL"), '?') ? '&' : '?');
    o.url = url;
    REQUIRE_OK(store_open(&o, &other, &err), &err);
    struct store *r = open_replica(replica_url, other);
    bool told = false;
    for (int64_t until = clock_mono_us() + LIMIT_US; !told && clock_mono_us() < until; pause_a_moment()) {
        CHECK(store_begin(r, STORE_READ, NULL, NULL, &err) != ST_OK);
        told = strstr(err.text, "is a replica of another database") != NULL;
    }
    CHECK(told);
    store_close(r);
    store_close(other);
    store_close(p);
}

static void a_primary_is_no_replica(void)
{
    char alone[512]; /* the URL names all of them */
    const char *url = getenv("LARDER_TEST_URL"), *comma = strchr(url, ',');
    REQUIRE(comma != NULL);
    snprintf(alone, sizeof alone, "%.*s%s", (int)(comma - url), url, strchr(comma, '/'));
    struct store *p = open_primary(), *r = open_replica(alone, p);
    struct error err = {0};
    bool told = false;
    for (int64_t until = clock_mono_us() + LIMIT_US; !told && clock_mono_us() < until; pause_a_moment()) {
        CHECK(store_begin(r, STORE_READ, NULL, NULL, &err) != ST_OK);
        told = strstr(err.text, "is no replica: it takes writes of its own") != NULL;
    }
    CHECK(told);
    if (!told)
        printf("    %s\n", err.text);
    store_close(r);
    store_close(p);
}

static void one_that_is_away_can_be_opened(void)
{
    char url[512];
    const char *colon = strrchr(replica_url, ':');
    snprintf(url, sizeof url, "%.*s:1/nowhere", (int)(colon - replica_url), replica_url);
    struct store *r = open_replica(url, NULL);
    struct error err;
    int64_t start = clock_mono_us();
    for (int i = 0; i < 20; i++)
        CHECK_EQ(store_begin(r, STORE_READ, NULL, NULL, &err), ST_IO);
    CHECK(clock_mono_us() - start < 500000);
    struct db_row dbs[DATABASES];
    uint32_t next;
    CHECK_OK(store_load_dbs(r, dbs, DATABASES, &next, &err), &err);
    store_close(r);
}

static void positions_are_judged(void)
{
    struct store *p = open_primary();
    struct position at, other;
    struct error err;
    enum lineage l;
    write_key(p, "judged", &at);
    CHECK_OK(p->replicated->judge(p, &at, &l, &err), &err);
    CHECK_EQ(l, LINEAGE_SAME);
    other = at;
    other.database++;
    CHECK_OK(p->replicated->judge(p, &other, &l, &err), &err);
    CHECK_EQ(l, LINEAGE_FOREIGN);
    other = at;
    other.kind = POSITION_SEQUENCE;
    CHECK_OK(p->replicated->judge(p, &other, &l, &err), &err);
    CHECK_EQ(l, LINEAGE_FOREIGN);
    other = at;
    other.timeline ^= 1; /* a branch that nobody knows */
    if (other.kind == POSITION_GTID)
        other.gtids[0].seq += 1000000;
    CHECK_OK(p->replicated->judge(p, &other, &l, &err), &err);
    CHECK_EQ(l, LINEAGE_LOST);
    struct position now;
    CHECK_OK(p->replicated->now(p, &now, &err), &err);
    CHECK(position_reached(&now, &at));
    store_close(p);
}

/* Behind a switch the log goes on at the next segment, whose header no record has: a standby never comes to
   its end. Commits that are not waited for are told by where the log ends. */
static void what_is_told_of_an_idle_primary_is_reached(void)
{
    struct store *p = open_primary(), *r = open_replica(replica_url, p);
    struct position wrote, now;
    struct error err;
    CHECK_OK(store_set_durability(p, DURABILITY_OFF, &err), &err);
    write_key(p, "before the switch", &wrote);
    if (wrote.kind == POSITION_LSN) {
        char *was = place.url;
        snprintf(was, sizeof place.url, "%s", getenv("LARDER_TEST_URL"));
        outside_on_server("SELECT pg_switch_wal()");
    }
    REQUIRE(begin_at(r, &wrote, NULL));
    store_rollback(r);
    CHECK_OK(p->replicated->now(p, &now, &err), &err);
    CHECK(position_reached(&now, &wrote));
    REQUIRE(begin_at(r, &now, NULL));
    store_rollback(r);
    CHECK_OK(store_begin(p, STORE_READ, NULL, NULL, &err), &err);
    store_rollback(p);
    p->replicated->seen(p, &now);
    REQUIRE(begin_at(r, &now, NULL));
    store_close(r);
    store_close(p);
}

static void reads_never_cost_more_when_nobody_wants_positions(void)
{
    struct store *p = open_primary();
    struct error err;
    struct position before, after;
    p->replicated->want(p, false);
    p->replicated->seen(p, &before);
    CHECK_OK(store_begin(p, STORE_READ, NULL, NULL, &err), &err);
    store_rollback(p);
    p->replicated->seen(p, &after);
    CHECK_EQ(after.kind, before.kind);
    CHECK_EQ(after.number, before.number);
    p->replicated->want(p, true);
    CHECK_OK(store_begin(p, STORE_READ, NULL, NULL, &err), &err);
    store_rollback(p);
    p->replicated->seen(p, &after);
    CHECK(after.kind != POSITION_NONE);
    store_close(p);
}

int main(int argc, char **argv)
{
    const char *urls = getenv("LARDER_TEST_REPLICAS");
    CHECK_MAIN(argc, argv);
    if (!urls || !urls[0])
        return check_done();
    snprintf(replica_url, sizeof replica_url, "%.*s", (int)strcspn(urls, " "), urls);
    RUN(a_commit_has_a_position_that_a_replica_reaches);
    RUN(a_replica_takes_no_writes);
    RUN(a_replica_of_another_database_is_refused);
    RUN(a_primary_is_no_replica);
    RUN(one_that_is_away_can_be_opened);
    RUN(positions_are_judged);
    RUN(what_is_told_of_an_idle_primary_is_reached);
    RUN(reads_never_cost_more_when_nobody_wants_positions);
    return check_done();
}
