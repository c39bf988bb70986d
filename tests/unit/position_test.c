/* Positions: which is behind which, what two make together, and how they are written. */
#include "store/position.h"

#include "check.h"

static struct position lsn(uint32_t timeline, uint64_t number)
{
    return (struct position){.kind = POSITION_LSN, .timeline = timeline, .database = 7, .number = number};
}

static struct position gtids(const char *text)
{
    struct position p = {.kind = POSITION_GTID, .database = 7};
    CHECK(position_read_gtids(slice_str(text), &p));
    return p;
}

static bool reached(struct position at, struct position need)
{
    return position_reached(&at, &need);
}

static void nothing_is_reached_everywhere(void)
{
    CHECK(reached((struct position){0}, (struct position){0}));
    CHECK(reached(lsn(1, 0), (struct position){0}));
    CHECK(!reached((struct position){0}, lsn(1, 1)));
}

static void numbers_are_compared(void)
{
    CHECK(reached(lsn(1, 100), lsn(1, 100)));
    CHECK(reached(lsn(1, 101), lsn(1, 100)));
    CHECK(!reached(lsn(1, 99), lsn(1, 100)));
    CHECK(!reached(lsn(2, 100), lsn(1, 100))); /* another branch has the same numbers */
    CHECK(!reached(lsn(1, 200), lsn(2, 100)));
    CHECK(reached(lsn(1, UINT64_MAX), lsn(1, UINT64_MAX)));
}

static void other_databases_and_kinds_have_nothing(void)
{
    struct position other = lsn(1, 100);
    other.database = 8;
    CHECK(!reached(other, lsn(1, 1)));
    CHECK(!reached(lsn(1, 100), other));
    struct position sequence = lsn(0, 100);
    sequence.kind = POSITION_SEQUENCE;
    CHECK(!reached(sequence, lsn(1, 1)));
    CHECK(!reached(gtids("0-1-42"), sequence));
}

static void every_domain_counts(void)
{
    CHECK(reached(gtids("0-1-42"), gtids("0-9-42"))); /* whoever wrote it */
    CHECK(!reached(gtids("0-1-41"), gtids("0-1-42")));
    CHECK(!reached(gtids("0-1-50"), gtids("0-1-42,3-1-1")));
    CHECK(reached(gtids("0-1-50,3-1-1"), gtids("3-1-1,0-1-42")));
    CHECK(reached(gtids("0-1-50,3-1-1"), gtids("0-1-42")));
    CHECK(reached(gtids(""), gtids("")));
    CHECK(!reached(gtids(""), gtids("0-1-1")));
    struct position branch = gtids("0-2-50");
    branch.timeline = 2;
    CHECK(!reached(branch, gtids("0-1-42")));
}

static void merging_takes_the_later(void)
{
    char text[POSITION_TEXT];
    struct position to = {0}, from = lsn(1, 100), none = {0};
    position_merge(&to, &from);
    position_merge(&to, &none);
    CHECK_EQ(to.number, 100);
    from = lsn(2, 90);
    position_merge(&to, &from);
    CHECK_EQ(to.number, 100);
    CHECK_EQ(to.timeline, 1);
    from = lsn(2, 100);
    position_merge(&to, &from);
    CHECK_EQ(to.timeline, 2);
    from.database = 9;
    from.number = 1;
    position_merge(&to, &from);
    CHECK_EQ(to.database, 9);
    CHECK_EQ(to.number, 1);

    to = gtids("1-1-5,4-1-9");
    from = gtids("0-2-3,1-3-4,4-2-10");
    position_merge(&to, &from);
    CHECK_STR(position_text(&to, text), "0-2-3,1-1-5,4-2-10");
    from = gtids("2-1-1,3-1-1"); /* there is room for one */
    position_merge(&to, &from);
    CHECK_STR(position_text(&to, text), "0-2-3,1-1-5,2-1-1,4-2-10");
}

/* A position is on the branch of what is later in it: whoever asks whether it was lost asks about that. */
static void merging_takes_the_branch_of_the_later(void)
{
    struct position to = gtids("0-1-42"), from = gtids("0-2-41");
    from.timeline = 2;
    to.timeline = 1;
    position_merge(&to, &from);
    CHECK_EQ(to.timeline, 1);
    from = gtids("0-1-42");
    from.timeline = 2;
    position_merge(&to, &from);
    CHECK_EQ(to.timeline, 2);
    to.timeline = 1;
    from = gtids("0-2-43");
    from.timeline = 2;
    position_merge(&to, &from);
    CHECK_EQ(to.timeline, 2);
}

static void texts(void)
{
    char text[POSITION_TEXT];
    struct position p = {0};
    CHECK_STR(position_text(&p, text), "none");
    CHECK_EQ(position_offset(&p), 0);
    p = lsn(1, 0x3000148);
    CHECK_STR(position_text(&p, text), "0/3000148");
    p.number = UINT64_MAX;
    CHECK_STR(position_text(&p, text), "FFFFFFFF/FFFFFFFF");
    p = (struct position){.kind = POSITION_SEQUENCE, .number = 17};
    CHECK_STR(position_text(&p, text), "17");
    CHECK_EQ(position_offset(&p), 17);
    p = gtids("");
    CHECK_STR(position_text(&p, text), "");
    p = gtids("0-1-42,7-2-3");
    CHECK_EQ(position_offset(&p), 45);
    p = (struct position){.kind = POSITION_GTID, .ndomains = POSITION_DOMAINS};
    for (uint32_t i = 0; i < POSITION_DOMAINS; i++)
        p.gtids[i] = (struct position_gtid){UINT32_MAX - POSITION_DOMAINS + i, UINT32_MAX, UINT64_MAX};
    struct position again = {.kind = POSITION_GTID};
    CHECK(position_read_gtids(slice_str(position_text(&p, text)), &again)); /* the longest has room */
    CHECK(reached(again, p) && reached(p, again));
}

static void what_is_no_gtid_is_told(void)
{
    static const char *const wrong[] = {"x",
                                        "0",
                                        "0-1",
                                        "0-1-",
                                        "0-1-2-",
                                        "-1-2",
                                        "0--2",
                                        "0-1-2,,1-1-1",
                                        "0-1-2 ",
                                        "0-1-18446744073709551616",
                                        "4294967296-1-1",
                                        "0-1-1,1-1-1,2-1-1,3-1-1,4-1-1"};
    struct position p = {.kind = POSITION_GTID};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check.context = wrong[i];
        CHECK(!position_read_gtids(slice_str(wrong[i]), &p));
    }
    check.context = NULL;
    CHECK(position_read_gtids(SLICE("0-1-1,1-1-1,2-1-1,3-1-1,3-2-9"), &p));
    CHECK_EQ(p.gtids[3].seq, 9);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(nothing_is_reached_everywhere);
    RUN(numbers_are_compared);
    RUN(other_databases_and_kinds_have_nothing);
    RUN(every_domain_counts);
    RUN(merging_takes_the_later);
    RUN(merging_takes_the_branch_of_the_later);
    RUN(texts);
    RUN(what_is_no_gtid_is_told);
    return check_done();
}
