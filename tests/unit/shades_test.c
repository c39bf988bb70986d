/* Long ranges by place in a memtable: rows of its own that are inside are gone at once, come back when the
   range is taken back, and live when they are put again behind it. Compared with a list of all changes, which
   is gone through from its beginning for every question. */
#include <stdlib.h>

#include "check.h"
#include "memtable/memtable.h"

#define PLACES  3000
#define CHANGES 20000

static struct memtable *m;

/* ---- the model ---- */

struct step {
    mem_mark mark;
    enum { PUT, DEL, RANGE } what;
    int64_t min, max; /* one place, or a range's */
    int64_t value;
};

static struct step steps[CHANGES];
static size_t nsteps, left; /* those before are in the tables */

static int64_t tables[PLACES]; /* values; 0: there is no row */

/* What is behind the steps of a stretch: a row's value, 0 when it is gone, -1 when they say nothing of it. */
static void replay(size_t from, size_t to, int64_t *rows)
{
    for (size_t i = 0; i < PLACES; i++)
        rows[i] = -1;
    for (size_t k = from; k < to; k++)
        for (int64_t p = steps[k].min; p <= steps[k].max; p++)
            rows[p] = steps[k].what == PUT ? steps[k].value : 0;
}

static uint64_t seed;

static int64_t any(int64_t below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

static int64_t value_in(struct slice s)
{
    int64_t v = 0;
    CHECK_EQ(s.n, sizeof v);
    memcpy(&v, s.p, sizeof v);
    return v;
}

/* ---- steps ---- */

static struct item_ref at(int64_t place)
{
    return (struct item_ref){.table = ITEM_LIST, .id = 1, .pos = place - PLACES / 2};
}

/* Whether the tables will have a row when all steps up to now are there. */
static bool will_have(int64_t place)
{
    for (size_t k = nsteps; k > left; k--)
        if (steps[k - 1].min <= place && place <= steps[k - 1].max)
            return steps[k - 1].what == PUT;
    return tables[place] != 0;
}

static void step(struct step s)
{
    s.mark = memtable_mark(m);
    if (s.what == RANGE) {
        struct item_range r = {
            .table = ITEM_LIST, .id = 1, .order = ITEMS_BY_POS, .min = at(s.min).pos, .max = at(s.max).pos};
        memtable_put_range(m, &r);
    } else if (s.what == DEL) {
        struct item_ref ref = at(s.min);
        memtable_del_item(m, &ref, 1);
    } else {
        struct item_row row = {.ref = at(s.min), .value = slice_of(&s.value, sizeof s.value)};
        memtable_put_item(m, &row, any(2) && !will_have(s.min), 1);
    }
    steps[nsteps++] = s;
}

static void put(int64_t place)
{
    static int64_t last;
    step((struct step){.what = PUT, .min = place, .max = place, .value = ++last});
}

static void put_all(int64_t from, int64_t to)
{
    for (int64_t p = from; p < to; p++)
        put(p);
}

static void del(int64_t place)
{
    step((struct step){.what = DEL, .min = place, .max = place});
}

static void remove_range(int64_t min, int64_t max)
{
    step((struct step){.what = RANGE, .min = min, .max = max});
}

static void undo(size_t to)
{
    if (to == nsteps)
        return;
    memtable_undo(m, steps[to].mark);
    nsteps = to;
}

static void take_over(size_t to)
{
    int64_t rows[PLACES];
    replay(left, to, rows);
    for (size_t p = 0; p < PLACES; p++)
        tables[p] = rows[p] < 0 ? tables[p] : rows[p];
}

static void leave(size_t to)
{
    if (to == left)
        return;
    take_over(to);
    memtable_leave(m, steps[left].mark, to < nsteps ? steps[to].mark : memtable_mark(m));
    left = to;
}

/* ---- questions ---- */

/* One row after the other, as a reader sees it over the tables. */
static void compare_rows(void)
{
    int64_t rows[PLACES];
    replay(left, nsteps, rows);
    for (int64_t p = 0; p < PLACES; p++) {
        struct mem_item i;
        struct item_row row = {.ref = at(p)};
        int64_t want = rows[p] < 0 ? tables[p] : rows[p], got = tables[p];
        if (memtable_item(m, &row.ref, &i))
            got = i.gone ? 0 : value_in(i.row.value);
        else if (memtable_covers(m, &row))
            got = 0;
        CHECK_EQ(got, want);
    }
}

/* A scan of the table alone, either way. */
static void compare_walk(bool reverse)
{
    int64_t rows[PLACES], min = any(PLACES), max = min + any(PLACES - min) / (any(2) ? 8 : 1);
    struct item_scan q = {.table = ITEM_LIST,
                          .id = 1,
                          .order = ITEMS_BY_POS,
                          .reverse = reverse,
                          .has_min = true,
                          .min = at(min).pos,
                          .has_max = true,
                          .max = at(max).pos};
    struct mem_walk w;
    struct mem_item i;
    replay(left, nsteps, rows);
    memtable_walk_items(m, &q, &w);
    for (int64_t n = 0; n <= max - min; n++) {
        int64_t p = reverse ? max - n : min + n;
        if (rows[p] <= 0)
            continue;
        REQUIRE(mem_walk_item(&w, &i));
        CHECK_EQ(i.row.ref.pos, at(p).pos);
        CHECK_EQ(value_in(i.row.value), rows[p]);
    }
    CHECK(!mem_walk_item(&w, &i));
}

/* What the tables become when all of it goes there. */
static void compare_applied(void)
{
    int64_t rows[PLACES], next_id;
    struct changes c;
    struct mem_apply *a = mem_apply_new(m);
    memcpy(rows, tables, sizeof rows);
    while (mem_apply_next(a, 100, &c, &next_id)) {
        for (size_t k = 0; k < c.nranges; k++)
            for (int64_t p = c.ranges[k].min; p <= c.ranges[k].max; p++)
                rows[p + PLACES / 2] = 0;
        for (size_t k = 0; k < c.ngone; k++)
            rows[c.gone[k].pos + PLACES / 2] = 0;
        for (size_t k = 0; k < c.nitems; k++) {
            int64_t *row = &rows[c.items[k].ref.pos + PLACES / 2];
            CHECK(!c.items[k].fresh || *row == 0);
            *row = value_in(c.items[k].value);
        }
    }
    CHECK_EQ(mem_apply_left(a), 0);
    mem_apply_free(a);
    take_over(nsteps);
    CHECK(memcmp(rows, tables, sizeof rows) == 0);
}

static void compare_all(void)
{
    compare_rows();
    compare_walk(false);
    compare_walk(true);
}

/* ---- tests ---- */

static void rows_are_gone_at_once(void)
{
    put_all(0, PLACES);
    compare_walk(false); /* an order is there, and loses what is inside */
    size_t before = memtable_stats(m).bytes;
    size_t mark = nsteps;
    remove_range(500, 2499);
    CHECK(memtable_stats(m).bytes < before + 1000); /* none of the 2,000 rows was looked at */
    compare_all();
    put(1000);
    remove_range(700, 710);
    remove_range(900, 1900);
    put(1500);
    del(1500);
    put(1501);
    compare_all();
    undo(mark + 3);
    compare_all();
    undo(mark);
    compare_all();
    remove_range(0, PLACES - 1);
    compare_all();
    compare_applied();
}

/* Ten rows at the end of many are found without an order of all. */
static void a_small_part_needs_no_order(void)
{
    put_all(0, PLACES);
    remove_range(0, 1499);
    size_t before = memtable_stats(m).bytes;
    struct item_scan q = {.table = ITEM_LIST,
                          .id = 1,
                          .order = ITEMS_BY_POS,
                          .has_min = true,
                          .min = at(1495).pos,
                          .has_max = true,
                          .max = at(1504).pos};
    struct mem_walk w;
    struct mem_item i;
    int rows = 0;
    memtable_walk_items(m, &q, &w);
    while (mem_walk_item(&w, &i))
        CHECK_EQ(i.row.ref.pos, at(1500 + rows++).pos);
    CHECK_EQ(rows, 5);
    CHECK_EQ(memtable_stats(m).bytes, before);
}

/* Those that were there before a range which stays are in the tables, and hidden there. */
static void rows_leave_from_a_shade(void)
{
    put_all(0, 1000);
    size_t mark = nsteps;
    remove_range(100, 899);
    put(400);
    leave(mark);
    compare_all();
    undo(mark);
    compare_all();
    remove_range(300, 999);
    put(301);
    leave(nsteps);
    compare_all();
    CHECK(memtable_stats(m).empty);
}

/* Taking thousands of ranges back sums up what is left of them once. */
static void many_ranges_are_taken_back(void)
{
    put_all(0, PLACES);
    remove_range(0, 400);
    size_t mark = nsteps;
    for (int n = 0; n < 2500; n++) {
        int64_t min = any(PLACES - 400);
        remove_range(min, min + 300);
    }
    compare_rows();
    undo(mark);
    compare_all();
    compare_applied();
    mem_mark before = memtable_mark(m);
    for (int64_t n = 0; n < 40000; n++)
        memtable_put_range(
            m, &(struct item_range){
                   .table = ITEM_LIST, .id = 2, .order = ITEMS_BY_POS, .min = n * 10, .max = n * 10 + 5});
    memtable_undo(m, before + 20000);
    CHECK(memtable_covers(m, &(struct item_row){.ref = {.table = ITEM_LIST, .id = 2, .pos = 199995}}));
    CHECK(!memtable_covers(m, &(struct item_row){.ref = {.table = ITEM_LIST, .id = 2, .pos = 200000}}));
    memtable_undo(m, before);
    CHECK(!memtable_has_items(m, ITEM_LIST, 2));
}

static void at_random(void)
{
    for (int round = 0; round < 40; round++) {
        size_t settled = nsteps = left = 0;
        m = memtable_renew(m, 0);
        for (size_t p = 0; p < PLACES; p++)
            tables[p] = any(2);
        put_all(0, any(PLACES));
        for (int n = 0; n < 60; n++) {
            int64_t min = any(PLACES), width = any(2) ? any(PLACES - min) : any(PLACES - min) % 300;
            switch (any(8)) {
            case 0:
                undo(settled + (size_t)any((int64_t)(nsteps - settled) + 1));
                break;
            case 1:
                settled += (size_t)any((int64_t)(nsteps - settled) + 1);
                memtable_settle(m, settled < nsteps ? steps[settled].mark : memtable_mark(m));
                break;
            case 2:
                if (any(4) == 0)
                    leave(settled = settled + (size_t)any((int64_t)(nsteps - settled) + 1));
                break;
            case 3:
                put_all(min, min + width % 100);
                break;
            case 4:
                del(min);
                break;
            default:
                remove_range(min, min + width);
            }
            compare_all();
        }
        compare_applied();
    }
}

static void with_table(const char *name, void (*test)(void))
{
    m = memtable_new(0);
    nsteps = left = 0;
    memset(tables, 0, sizeof tables);
    check_run(name, test);
    memtable_free(m);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    seed = 16;
    with_table("rows_are_gone_at_once", rows_are_gone_at_once);
    with_table("a_small_part_needs_no_order", a_small_part_needs_no_order);
    with_table("rows_leave_from_a_shade", rows_leave_from_a_shade);
    with_table("many_ranges_are_taken_back", many_ranges_are_taken_back);
    with_table("at_random", at_random);
    return check_done();
}
