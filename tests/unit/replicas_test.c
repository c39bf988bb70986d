/* The primary and its replicas as workers see them, by what checks say at made-up times: no database, no
   thread, no waiting. */
#include "replica/replicas_internal.h"

#include "base/log.h"
#include "base/mem.h"
#include "check.h"

#define MS       INT64_C(1000)
#define DATABASE 7
#define BRANCH   (1u << 16 | 5)

static const char *const urls[] = {"postgres://r1/app", "postgres://u:secret@r2:6000/app",
                                   "postgres://r3/app"};
static struct replicas *r;
static int64_t now;

static void begin(uint32_t n)
{
    const struct replicas_options o = {
        .primary = "postgres://p/app", .urls = urls, .n = n, .max_lag_ms = 10000, .timeout_ms = 500};
    r = mem_alloc(sizeof *r);
    replicas_init(r, &o);
    now = 5000000 * MS;
}

static void end(void)
{
    replicas_release(r);
    mem_free(r);
}

static struct position lsn(uint64_t number)
{
    return (struct position){
        .kind = POSITION_LSN, .timeline = BRANCH, .database = DATABASE, .number = number};
}

static void answer(uint32_t i, struct position at)
{
    const struct answer a = {.asked = now, .answered = now + MS, .at = at};
    rotation_answer(r, i, &a);
}

/* A period in which all that are named answer. */
static void pass(uint64_t primary, uint64_t first, uint64_t second)
{
    if (primary)
        answer(0, lsn(primary));
    now += 50 * MS;
    if (first)
        answer(1, lsn(first));
    if (second && r->n > 1)
        answer(2, lsn(second));
    now += 200 * MS;
}

static void pass_often(int times, uint64_t primary, uint64_t first, uint64_t second)
{
    for (int i = 0; i < times; i++)
        pass(primary, first, second);
}

static int route(enum read_mode mode, int64_t bound_ms, struct position need)
{
    return replicas_route_at(r, (struct consistency){mode, bound_ms}, &need, now);
}

static int eventual(void)
{
    return route(READ_EVENTUAL, 0, (struct position){0});
}

static int bounded(int64_t ms)
{
    return route(READ_BOUNDED, ms, (struct position){0});
}

static int session(uint64_t number)
{
    return route(READ_SESSION, 0, lsn(number));
}

static int64_t age(uint32_t i)
{
    return r->nodes[i].reached == INT64_MIN ? -1 : (now - r->nodes[i].reached) / MS;
}

/* ---- the ring ---- */

static void the_ring_tells_when_a_position_was_current(void)
{
    static struct ring ring;
    ring.n = 0;
    struct position p = lsn(100);
    CHECK_EQ(ring_reached(&ring, &p), INT64_MIN);
    for (int64_t i = 1; i <= 4; i++) {
        p = lsn((uint64_t)i * 100);
        ring_add(&ring, i, &p);
    }
    const struct {
        uint64_t at;
        int64_t want;
    } cases[] = {{99, INT64_MIN}, {100, 1}, {199, 1}, {200, 2}, {399, 3}, {400, 4}, {9000, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        p = lsn(cases[i].at);
        CHECK_EQ(ring_reached(&ring, &p), cases[i].want);
    }
    p = lsn(9000);
    p.database = 8;
    CHECK_EQ(ring_reached(&ring, &p), INT64_MIN);
}

static void an_idle_primary_takes_one_sample(void)
{
    static struct ring ring;
    ring.n = 0;
    struct position p = lsn(100);
    for (int64_t t = 0; t < 5000; t++)
        ring_add(&ring, t, &p);
    CHECK_EQ(ring.n, 1);
    CHECK_EQ(ring_reached(&ring, &p), 4999);
}

static void what_a_crash_took_back_is_no_sample(void)
{
    static struct ring ring;
    ring.n = 0;
    struct position p[] = {lsn(100), lsn(200), lsn(300), lsn(250)};
    for (int64_t t = 0; t < 4; t++)
        ring_add(&ring, t, &p[t]);
    CHECK_EQ(ring.n, 3);
    CHECK_EQ(ring_reached(&ring, &p[1]), 1);
    CHECK_EQ(ring_reached(&ring, &p[3]), 3);
}

/* Never too young, whatever was dropped; and the last seconds are exact. */
static void a_full_ring_tells_ages_too_high_never_too_low(void)
{
    static struct ring ring;
    ring.n = 0;
    for (int64_t t = 1; t <= 100000; t++) {
        struct position p = lsn((uint64_t)t);
        ring_add(&ring, t, &p);
    }
    CHECK(ring.n <= RING_SAMPLES);
    for (int64_t at = 1; at <= 100000; at += at < 99900 ? 97 : 1) {
        struct position p = lsn((uint64_t)at);
        int64_t reached = ring_reached(&ring, &p);
        CHECK(reached != INT64_MIN && reached <= at);
        CHECK(100000 - reached <= (100000 - at) * 11 / 10);
    }
}

/* ---- rotation ---- */

static void three_good_checks_bring_a_replica_in(void)
{
    begin(1);
    CHECK_EQ(eventual(), ROUTE_NONE);
    pass(100, 100, 0);
    CHECK_EQ(eventual(), 0);
    pass(100, 100, 0);
    CHECK_EQ(eventual(), 0);
    CHECK_STR(r->nodes[1].why, "it has not answered often enough yet");
    pass(100, 100, 0);
    CHECK_EQ(eventual(), 1);
    CHECK_STR(r->nodes[1].why, "");
    end();
}

static void three_failures_take_it_out(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    for (int i = 0; i < 2; i++) {
        pass(100, 0, 0);
        rotation_failure(r, 1, FAILED, "connection refused");
        CHECK_EQ(eventual(), 1);
    }
    pass(100, 100, 0); /* not three in a row */
    rotation_failure(r, 1, FAILED, "connection refused");
    rotation_failure(r, 1, FAILED, "connection refused");
    CHECK_EQ(eventual(), 1);
    rotation_failure(r, 1, FAILED, "connection refused");
    CHECK_EQ(eventual(), 0);
    CHECK_STR(r->nodes[1].why, "connection refused");
    CHECK_EQ(r->nodes[1].left, 1);
    pass_often(2, 100, 100, 0);
    CHECK_EQ(eventual(), 0);
    pass(100, 100, 0);
    CHECK_EQ(eventual(), 1);
    end();
}

static void one_that_hangs_or_is_unfit_leaves_at_once(void)
{
    begin(2);
    pass_often(3, 100, 100, 100);
    rotation_failure(r, 1, HANGS, "no answer within 500 ms");
    rotation_failure(r, 2, UNFIT, "it is no replica");
    CHECK_EQ(eventual(), 0);
    CHECK(!r->nodes[1].connected && r->nodes[2].connected);
    end();
}

/* A worker that has no connection yet says nothing of the replica; one that waited in vain does. Checks in a
   hurry, which follow, bring nobody back. */
static void what_workers_suffer_counts_when_it_hangs(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    for (int i = 0; i < 5; i++)
        replicas_failed(r, 1, false, "not connected yet");
    CHECK_EQ(eventual(), 1);
    CHECK_EQ(r->nodes[1].failures, 5);
    replicas_failed(r, 1, true, "no answer within 500 ms");
    CHECK_EQ(eventual(), 0);
    for (int i = 0; i < 20; i++, now += 10 * MS)
        answer(1, lsn(100));
    CHECK_EQ(eventual(), 0);
    pass_often(2, 100, 100, 0);
    CHECK_EQ(eventual(), 1);
    for (int i = 0; i < 5; i++)
        replicas_failed(r, 0, false, "connection reset");
    CHECK_EQ(session(101), 0);
    end();
}

/* Also when its thread is stuck and says nothing at all. */
static void silence_counts_as_hanging(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    pass_often(4, 100, 0, 0);
    CHECK_EQ(eventual(), 1);
    pass(100, 0, 0);
    CHECK_EQ(eventual(), 0);
    pass(100, 100, 0);
    CHECK_EQ(eventual(), 1);
    end();
}

static void another_database_is_not_read_from(void)
{
    begin(1);
    struct position foreign = lsn(100);
    foreign.database++;
    for (int i = 0; i < 5; i++) {
        pass(100, 0, 0);
        answer(1, foreign);
    }
    CHECK_EQ(eventual(), 0);
    CHECK_STR(r->nodes[1].why, "it has another database than the primary");
    end();
}

static void reads_are_spread_in_turn(void)
{
    begin(3);
    int times[4] = {0};
    for (int i = 0; i < 3; i++) {
        pass(100, 100, 100);
        answer(3, lsn(100));
    }
    for (int i = 0; i < 300; i++)
        times[eventual()]++;
    CHECK_EQ(times[1], 100);
    CHECK_EQ(times[2], 100);
    CHECK_EQ(times[3], 100);
    rotation_failure(r, 2, HANGS, "");
    for (int i = 0; i < 300; i++)
        times[eventual()]++;
    CHECK_EQ(times[2], 100);
    CHECK_EQ(times[0], 0);
    end();
}

/* ---- ages ---- */

static void an_idle_primary_keeps_replicas_young(void)
{
    begin(1);
    pass_often(1000, 100, 100, 0);
    CHECK(age(1) <= 250);
    CHECK_EQ(bounded(500), 1);
    CHECK_EQ(eventual(), 1);
    end();
}

/* Replay is paused, or the receiver is dead: it answers, and stays where it is. */
static void one_that_does_not_move_ages_and_leaves(void)
{
    begin(1);
    pass_often(4, 100, 100, 0);
    int64_t fresh = now;
    for (uint64_t at = 101; at <= 139; at++) {
        pass(at, 100, 0);
        CHECK(age(1) >= (now - fresh) / MS && age(1) <= (now - fresh) / MS + 500);
        CHECK_EQ(bounded(500), 0);
        CHECK_EQ(bounded(20000), 1);
    }
    CHECK_EQ(eventual(), 1); /* 9.75 s */
    for (uint64_t at = 140; at <= 142; at++)
        pass(at, 100, 0);
    CHECK_EQ(eventual(), 0);
    CHECK(strstr(r->nodes[1].why, "ms behind") != NULL);
    CHECK_EQ(r->nodes[1].left, 1);
    pass_often(2, 142, 142, 0);
    CHECK_EQ(eventual(), 0);
    pass(142, 142, 0);
    CHECK_EQ(eventual(), 1);
    CHECK_EQ(bounded(500), 1);
    end();
}

static void a_replica_behind_the_first_sample_waits(void)
{
    begin(1);
    pass_often(5, 100, 99, 0);
    CHECK_EQ(eventual(), 0);
    CHECK_EQ(age(1), -1);
    pass_often(3, 100, 100, 0);
    CHECK_EQ(eventual(), 1);
    end();
}

static void max_lag_can_be_changed(void)
{
    begin(1);
    pass_often(4, 100, 100, 0);
    for (uint64_t at = 101; at <= 108; at++)
        pass(at, 100, 0);
    CHECK_EQ(eventual(), 1);
    replicas_set_max_lag(r, 1000);
    pass(109, 100, 0);
    CHECK_EQ(eventual(), 0);
    end();
}

/* What it will be when the answer comes counts. */
static void a_bound_leaves_time_for_the_answer(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    struct answer slow = {.asked = now, .answered = now + 100 * MS, .at = lsn(100)};
    CHECK_EQ(age(1), 250);
    CHECK_EQ(bounded(260), 1);
    rotation_answer(r, 1, &slow);
    CHECK_EQ(bounded(260), 0);
    CHECK_EQ(bounded(450), 1);
    end();
}

static void what_workers_learn_counts(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    pass(200, 100, 0);
    CHECK_EQ(session(150), 0);
    struct position p = lsn(160);
    rotation_learned(r, 1, &p);
    CHECK_EQ(session(150), 1);
    p = lsn(120); /* an older answer that came later */
    rotation_learned(r, 1, &p);
    CHECK_EQ(session(150), 1);
    p = lsn(210);
    rotation_learned(r, 1, &p);
    CHECK(age(1) == 250);
    p = lsn(900);
    p.timeline++;
    rotation_learned(r, 1, &p);
    CHECK_EQ(session(211), 0);
    end();
}

/* ---- modes ---- */

static void session_reads_go_where_their_writes_are(void)
{
    begin(2);
    pass_often(4, 100, 100, 90);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(session(100), 1);
    CHECK(session(90) != 0);
    CHECK_EQ(session(101), 0);
    CHECK_EQ(route(READ_STRONG, 0, lsn(1)), 0);
    struct position other = lsn(90);
    other.timeline += 1u << 16; /* of a primary that is not known here yet, or was lost: the primary knows */
    CHECK_EQ(route(READ_SESSION, 0, other), 0);
    other = lsn(90);
    other.database++;
    CHECK_EQ(route(READ_SESSION, 0, other), 0);
    CHECK(route(READ_SESSION, 0, (struct position){0}) != 0);
    end();
}

static void without_a_primary_replicas_serve_what_they_may(void)
{
    begin(2);
    pass_often(4, 100, 100, 100);
    for (int i = 0; i < 3; i++)
        rotation_failure(r, 0, FAILED, "connection refused");
    CHECK_EQ(session(101), ROUTE_NONE);
    CHECK(session(100) > 0);
    CHECK(bounded(500) > 0);
    pass_often(4, 0, 100, 100);
    CHECK_EQ(bounded(500), ROUTE_NONE);
    CHECK(bounded(5000) > 0);
    pass_often(400, 0, 100, 100);
    CHECK_EQ(bounded(5000), ROUTE_NONE);
    CHECK(eventual() > 0); /* for as long as it takes */
    CHECK_EQ(route(READ_STRONG, 0, lsn(1)), 0);
    pass(100, 100, 100);
    CHECK_EQ(session(101), 0);
    CHECK(bounded(500) > 0);
    end();
}

static void one_failure_of_the_primary_is_none(void)
{
    begin(1);
    pass_often(3, 100, 100, 0);
    rotation_failure(r, 0, FAILED, "connection reset");
    CHECK_EQ(session(101), 0);
    rotation_failure(r, 0, HANGS, "no answer within 1000 ms");
    CHECK_EQ(session(101), ROUTE_NONE);
    end();
}

/* ---- failovers ---- */

static struct position on(uint32_t branch, uint64_t number)
{
    struct position p = lsn(number);
    p.timeline = branch << 16;
    return p;
}

/* The new primary has less than the old one had, and a replica has what was lost: its number is the greater
 * one. */
static void after_a_failover_numbers_are_not_compared_across_branches(void)
{
    begin(2);
    pass_often(4, 100, 100, 120);
    answer(0, on(2, 110));
    CHECK_EQ(r->ring.n, 1);
    CHECK_EQ(eventual(), 0);
    for (int i = 0; i < 5; i++) {
        answer(1, lsn(110)); /* it has not replayed the first row of the new branch */
        answer(2, lsn(120)); /* it never will */
        CHECK_EQ(eventual(), 0);
        CHECK_EQ(age(2), -1);
        answer(0, on(2, 111));
    }
    for (int i = 0; i < 3; i++) {
        answer(1, on(2, 111));
        now += 250 * MS;
    }
    CHECK_EQ(eventual(), 1);
    CHECK_EQ(eventual(), 1);
    CHECK_EQ(route(READ_SESSION, 0, on(2, 111)), 1);
    CHECK_EQ(session(115), 0); /* lost: the primary tells */
    end();
}

static void an_old_primary_gives_no_samples(void)
{
    begin(1);
    for (int i = 0; i < 3; i++) {
        answer(0, on(2, 110));
        answer(1, on(2, 110));
        now += 250 * MS;
    }
    CHECK_EQ(eventual(), 1);
    answer(0, lsn(500));
    CHECK_EQ(r->ring.n, 1);
    CHECK_EQ(r->ring.samples[0].at.number, 110);
    CHECK_EQ(route(READ_SESSION, 0, on(2, 111)), ROUTE_NONE);
    answer(0, on(2, 111));
    CHECK_EQ(route(READ_SESSION, 0, on(2, 111)), 0);
    end();
}

static void a_standby_alone_knows_no_ages(void)
{
    begin(0);
    r->read_only = true;
    pass_often(3, 100, 0, 0);
    CHECK_EQ(r->ring.n, 0);
    CHECK_EQ(eventual(), 0);
    end();
}

/* ---- what others see ---- */

static void states_are_for_people(void)
{
    struct replica_state s;
    begin(2);
    pass_often(4, 100, 100, 90);
    replicas_state(r, 2, &s);
    CHECK_STR(s.place, "app on r2:6000");
    CHECK_STR(s.host, "r2");
    CHECK_EQ(s.port, 6000);
    CHECK_EQ(s.behind, 10);
    CHECK(s.connected);
    replicas_state(r, 1, &s);
    CHECK_EQ(s.port, 5432);
    CHECK_EQ(s.behind, 0);
    end();
}

static void reached_counts_replicas_that_are_there(void)
{
    begin(2);
    pass_often(4, 100, 100, 90);
    struct position p = lsn(95);
    CHECK_EQ(replicas_reached(r, &p), 1);
    p = lsn(90);
    CHECK_EQ(replicas_reached(r, &p), 2);
    rotation_failure(r, 1, FAILED, "");
    CHECK_EQ(replicas_reached(r, &p), 1);
    end();
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    log_set_level(LOG_ERROR);
    RUN(the_ring_tells_when_a_position_was_current);
    RUN(an_idle_primary_takes_one_sample);
    RUN(what_a_crash_took_back_is_no_sample);
    RUN(a_full_ring_tells_ages_too_high_never_too_low);
    RUN(three_good_checks_bring_a_replica_in);
    RUN(three_failures_take_it_out);
    RUN(one_that_hangs_or_is_unfit_leaves_at_once);
    RUN(what_workers_suffer_counts_when_it_hangs);
    RUN(silence_counts_as_hanging);
    RUN(another_database_is_not_read_from);
    RUN(reads_are_spread_in_turn);
    RUN(an_idle_primary_keeps_replicas_young);
    RUN(one_that_does_not_move_ages_and_leaves);
    RUN(a_replica_behind_the_first_sample_waits);
    RUN(max_lag_can_be_changed);
    RUN(a_bound_leaves_time_for_the_answer);
    RUN(what_workers_learn_counts);
    RUN(session_reads_go_where_their_writes_are);
    RUN(without_a_primary_replicas_serve_what_they_may);
    RUN(one_failure_of_the_primary_is_none);
    RUN(after_a_failover_numbers_are_not_compared_across_branches);
    RUN(an_old_primary_gives_no_samples);
    RUN(a_standby_alone_knows_no_ages);
    RUN(states_are_for_people);
    RUN(reached_counts_replicas_that_are_there);
    return check_done();
}
