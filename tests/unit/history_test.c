/* Histories of failovers: how they are written, what they keep, and which primary is an old one. */
#include "store/history.h"

#include <string.h>

#include "check.h"

static struct history read_history(const char *text)
{
    struct history h;
    CHECK(history_read(slice_str(text), &h));
    return h;
}

static void they_are_written_and_read(void)
{
    char text[HISTORY_TEXT];
    struct history h = read_history("1.48213@0 2.311@3000148 4.0@FFFFFFFFFFFFFFFF");
    CHECK_EQ(h.n, 3);
    CHECK_EQ(branch_number(h.at[1].id), 2);
    CHECK_EQ(h.at[1].from, 0x3000148);
    CHECK_STR(history_text(&h, text), "1.48213@0 2.311@3000148 4.0@FFFFFFFFFFFFFFFF");
    h = read_history("");
    CHECK_EQ(h.n, 0);
    CHECK(history_last(&h) == NULL);
    static const char *const wrong[] = {"1",         "1.2",          "1.2@",   "0.1@0",  "65536.1@0",
                                        "1.65536@0", "1.2@0  2.1@0", "-1.2@0", "1.-2@0", "1.2@0,2.1@0",
                                        "x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        check.context = wrong[i];
        CHECK(!history_read(slice_str(wrong[i]), &h));
    }
    check.context = NULL;
}

static void the_oldest_goes(void)
{
    struct history h = {0};
    for (uint32_t i = 1; i <= HISTORY_BRANCHES + 3; i++)
        history_add(&h, i, i * 100);
    CHECK_EQ(h.n, HISTORY_BRANCHES);
    CHECK_EQ(branch_number(h.at[0].id), 4);
    CHECK_EQ(branch_number(history_last(&h)->id), HISTORY_BRANCHES + 3);
}

static void what_lies_behind_a_switch_is_lost(void)
{
    struct history h = read_history("1.7@0 2.8@64 3.9@C8"); /* left at 100 and at 200 */
    CHECK(history_kept(&h, 1 << 16 | 7, 100));
    CHECK(!history_kept(&h, 1 << 16 | 7, 101));
    CHECK(history_kept(&h, 2 << 16 | 8, 200));
    CHECK(!history_kept(&h, 2 << 16 | 8, 201));
    CHECK(history_kept(&h, 3 << 16 | 9, UINT64_MAX));
    CHECK(!history_kept(&h, 2 << 16 | 9, 1)); /* another one's timeline 2 */
    h = read_history("1.7@0 2.8@0");          /* where is not known */
    CHECK(!history_kept(&h, 1 << 16 | 7, 1));
}

static enum known_place meet(uint64_t database, const char *text)
{
    struct history h = read_history(text);
    return known_meet(known_database(database), &h);
}

static void old_primaries_are_known(void)
{
    CHECK(known_database(1) == known_database(1));
    CHECK(known_database(1) != known_database(2));
    uint32_t changes = known_changes(known_database(1));
    CHECK_EQ(meet(1, "1.7@0"), KNOWN_LATEST);
    CHECK(known_changes(known_database(1)) != changes);
    changes = known_changes(known_database(1));
    CHECK_EQ(meet(1, "1.7@0"), KNOWN_LATEST);
    CHECK_EQ(known_changes(known_database(1)), changes);
    CHECK_EQ(meet(1, "1.7@0 2.8@64"), KNOWN_LATEST);
    CHECK_EQ(meet(1, "1.7@0"), KNOWN_OLD);
    CHECK_EQ(meet(1, "1.7@0 2.9@50"), KNOWN_APART); /* two were promoted to timeline 2 */
    CHECK_EQ(meet(1, "1.6@0"), KNOWN_APART);
    CHECK_EQ(meet(1, "1.7@0 3.1@50"), KNOWN_LATEST); /* the second one was lost, with the row of its branch */
    CHECK_EQ(meet(1, "1.7@0 2.8@64"), KNOWN_APART);
    CHECK_EQ(meet(2, "1.7@0"), KNOWN_LATEST); /* another database */
    struct history h;
    known_history(known_database(1), &h);
    CHECK_EQ(history_last(&h)->id, 3 << 16 | 1);
}

static void the_primarys_clock_goes_on(void)
{
    struct known *k = known_database(3);
    CHECK_EQ(known_clock(k, 5), 0);
    known_set_clock(k, 1000000, 10);
    CHECK_EQ(known_clock(k, 10), 1000000);
    CHECK_EQ(known_clock(k, 25), 1000015);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(they_are_written_and_read);
    RUN(the_oldest_goes);
    RUN(what_lies_behind_a_switch_is_lost);
    RUN(old_primaries_are_known);
    RUN(the_primarys_clock_goes_on);
    return check_done();
}
