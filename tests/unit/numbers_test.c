/* Numbers with holes: random choice is even, a scan that goes on while items come, go and get lower numbers
   sees all that stay, and steps that make the holes fewer leave everything else as it was, also when they
   fail or the server is started anew in between.

   LARDER_TEST_DRAWS: how many items are drawn when their frequencies are compared. */
#include "world.h"

#include <math.h>

#include "base/rand.h"
#include "engine/coll.h"
#include "engine/coll_internal.h"
#include "store/item_tables.h"

#define NAMES 9000

static const struct {
    enum row_type type;
    const char *table;
} kinds[] = {{ROW_SET, "larder_set"}, {ROW_ZSET, "larder_zset"}, {ROW_HASH, "larder_hash"}};

struct tester {
    struct world w;
    struct rand rnd;
    int kind;
    bool there[NAMES], stays[NAMES], seen[NAMES];
    int64_t ord[NAMES];
    int64_t drawn[NAMES];
    int64_t size, n;
};

static struct slice name_of(int i)
{
    static char text[NAMES][24];
    if (!text[i][0])
        snprintf(text[i], sizeof text[i], "member:%d", i);
    return slice_str(text[i]);
}

static int number_of(struct slice name)
{
    int i = 0;
    for (size_t k = 7; k < name.n; k++)
        i = 10 * i + name.p[k] - '0';
    return i;
}

static int64_t pick(struct tester *t, int64_t below)
{
    return (int64_t)rand_below(&t->rnd, (uint64_t)below);
}

static struct error *error_of(struct tester *t)
{
    return engine_error(t->w.engine);
}

static struct coll *open_coll(struct tester *t, bool make)
{
    struct coll *c = NULL;
    bool wrong;
    CHECK_OK((make ? coll_make : coll_open)(t->w.view, 0, SLICE("k"), kinds[t->kind].type, &c, &wrong),
             error_of(t));
    return c;
}

/* ---- batches ---- */

typedef void step(struct tester *t, struct coll *c);

/* A batch of one call. */
static void batch(struct tester *t, bool make, step *fn)
{
    REQUIRE(world_begin(&t->w));
    world_enter(&t->w);
    struct coll *c = open_coll(t, make);
    if (c)
        fn(t, c);
    if (c)
        CHECK_OK(coll_save(c), error_of(t));
    (void)engine_leave(t->w.engine, true);
    CHECK_OK(engine_commit(t->w.engine, NULL, &t->w.err), &t->w.err);
}

static void put(struct tester *t, struct coll *c, int i)
{
    struct coll_item item = {.name = name_of(i)};
    if (kinds[t->kind].type == ROW_ZSET)
        item.score = i % 50;
    if (kinds[t->kind].type == ROW_HASH)
        item.value = name_of(i);
    bool added;
    CHECK_OK(coll_put(c, &item, &added), error_of(t));
    CHECK_EQ(added, !t->there[i]);
    t->size += added;
    t->there[i] = true;
}

static void drop(struct tester *t, struct coll *c, int i)
{
    bool removed;
    CHECK_OK(coll_remove(c, name_of(i), &removed), error_of(t));
    CHECK_EQ(removed, t->there[i]);
    t->size -= removed;
    t->there[i] = false;
}

static void fill(struct tester *t, struct coll *c)
{
    for (int i = 0; i < NAMES; i++)
        put(t, c, i);
}

/* Most of those go that need not stay. */
static void thin_out(struct tester *t, struct coll *c)
{
    for (int i = 0; i < NAMES; i++)
        if (t->there[i] && !t->stays[i] && pick(t, 3))
            drop(t, c, i);
}

static void come_and_go(struct tester *t, struct coll *c)
{
    for (int k = 0; k < 40; k++) {
        int i = (int)pick(t, NAMES);
        if (!t->there[i] && pick(t, 2))
            put(t, c, i);
        else if (t->there[i] && !t->stays[i])
            drop(t, c, i);
    }
}

static enum status note_ord(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    t->ord[number_of(item->name)] = item->ord;
    t->n++;
    return ST_OK;
}

static enum status expect_item(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    int i = number_of(item->name);
    CHECK(t->there[i] && item->ord >= 0 && item->ord <= t->ord[i]);
    if (kinds[t->kind].type == ROW_ZSET)
        CHECK(item->score == i % 50);
    if (kinds[t->kind].type == ROW_HASH)
        CHECK_SLICE(item->value, name_of(i));
    t->n++;
    return ST_OK;
}

/* Nothing that lives counts as a hole. */
static enum status expect_no_hole(void *arg, const struct coll_item *item)
{
    CHECK(!memo_is_hole(arg, item->ord));
    return ST_OK;
}

static void compare_holes(struct tester *t, struct coll *c)
{
    struct memo *m = memos_find(&t->w.view->memos, c->id);
    if (m)
        CHECK_OK(coll_each(c, expect_no_hole, m), error_of(t));
}

static void note_ords(struct tester *t, struct coll *c)
{
    t->n = 0;
    CHECK_OK(coll_each(c, note_ord, t), error_of(t));
    CHECK_EQ(t->n, t->size);
}

static void expect_items(struct tester *t, struct coll *c)
{
    t->n = 0;
    CHECK_OK(coll_each(c, expect_item, t), error_of(t));
    CHECK_EQ(t->n, t->size);
    compare_holes(t, c);
}

/* ---- making holes fewer ---- */

static bool renumber(struct tester *t, uint32_t max)
{
    bool more = false;
    uint64_t moved;
    CHECK_OK(engine_renumber(t->w.engine, max, &more, &moved, &t->w.err), &t->w.err);
    return more;
}

/* Steps that fail, and a start in between, change nothing. */
static void renumber_all(struct tester *t)
{
    bool more = true;
    uint64_t moved = 0;
    batch(t, false, note_ords);
    for (int i = 0; more && i < 2000 && !check.checks_failed; i++) {
        uint32_t max = 1 + (uint32_t)pick(t, 300);
        if (i % 7 == 3 && !t->w.journal) {
            store_fault_set(t->w.store,
                            (struct store_fault){.nth = 1 + (uint64_t)pick(t, 6), .status = ST_BUSY});
            enum status st = engine_renumber(t->w.engine, max, &more, &moved, &t->w.err);
            CHECK(st == ST_OK || st == ST_BUSY);
            store_fault_set(t->w.store, (struct store_fault){.nth = 0});
            more = true;
        } else {
            more = renumber(t, max);
        }
        if (i % 11 == 5) {
            REQUIRE(world_reopen(&t->w));
            batch(t, false, expect_items); /* which finds that there is more to do */
        }
        if (i % 5 == 0)
            batch(t, false, expect_items);
    }
    CHECK(!more);
    batch(t, false, expect_items);
}

static void make_sparse(struct tester *t)
{
    memset(t->there, 0, sizeof t->there);
    t->size = 0;
    for (int i = 0; i < NAMES; i++)
        t->stays[i] = i % 6 == 0;
    batch(t, true, fill);
    for (int i = 0; i < 5; i++)
        batch(t, false, thin_out);
    CHECK(t->size >= NAMES / 6 && t->size < NAMES / 5);
}

static void run(bool journal, uint64_t seed, int nkinds, void (*fn)(struct tester *))
{
    for (int kind = 0; kind < nkinds; kind++) {
        struct tester *t = calloc(1, sizeof *t);
        t->w.journal = journal;
        t->w.cache = 64 << 20;
        t->kind = kind;
        rand_seed(&t->rnd, seed);
        if (world_start(&t->w)) {
            rand_seed(&t->w.view->rnd, seed);
            make_sparse(t);
            fn(t);
            CHECK(world_reopen(&t->w));
            world_check_numbers(&t->w, kinds[kind].type, kinds[kind].table);
            world_end(&t->w);
        }
        free(t);
    }
}

static void make_holes_fewer(struct tester *t)
{
    renumber_all(t);
    CHECK(world_reopen(&t->w));
    CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key WHERE numbers / 4 > size"), 0);
    CHECK_EQ(world_sql(&t->w, "SELECT sum(size) FROM larder_key"), t->size);
}

static void holes_become_fewer(void)
{
    run(false, 1, 3, make_holes_fewer);
}

static void holes_become_fewer_in_the_journal(void)
{
    run(true, 2, 3, make_holes_fewer);
}

/* ---- scans ---- */

struct scan {
    struct tester *t;
    int64_t rows;
};

static enum status note_seen(void *arg, const struct coll_item *item)
{
    struct scan *s = arg;
    s->t->seen[number_of(item->name)] = true;
    s->rows++;
    return ST_OK;
}

static int64_t cursor_of_scan;

static void scan_page(struct tester *t, struct coll *c)
{
    struct scan s = {.t = t};
    CHECK_OK(coll_page(c, &cursor_of_scan, 20, note_seen, &s), error_of(t));
    CHECK(s.rows <= 20 && (s.rows == 20 || cursor_of_scan == 0));
}

static void scan_while_all_changes(struct tester *t)
{
    memset(t->seen, 0, sizeof t->seen);
    cursor_of_scan = 0;
    int pages = 0;
    do {
        batch(t, false, scan_page);
        batch(t, false, come_and_go);
        renumber(t, 1 + (uint32_t)pick(t, 200));
        pages++;
    } while (cursor_of_scan && pages < 2000 && !check.checks_failed);
    CHECK_EQ(cursor_of_scan, 0);
    for (int i = 0; i < NAMES; i++)
        CHECK(!t->stays[i] || t->seen[i]);
}

static void scans_see_all_that_stay(void)
{
    run(false, 3, 3, scan_while_all_changes);
}

/* ---- by number ---- */

#define ASKED 8

struct asked {
    struct tester *t;
    int64_t ords[ASKED];
    int next; /* the first of them that was not answered */
};

static enum status expect_asked(void *arg, const struct item_row *row)
{
    struct asked *a = arg;
    int i = number_of(row->ref.name);
    CHECK(a->t->there[i] && a->t->ord[i] == row->ord);
    while (a->next < ASKED && a->ords[a->next] != row->ord)
        a->next++;
    CHECK(a->next++ < ASKED);
    a->t->n++;
    return ST_OK;
}

/* In memory that is not in the tables yet, and in the tables. */
static void ask_for_numbers(struct tester *t, struct coll *c)
{
    note_ords(t, c);
    for (int round = 0; round < 150; round++) {
        struct asked a = {.t = t};
        int64_t expected = 0;
        for (int k = 0; k < ASKED; k++)
            a.ords[k] = pick(t, NAMES);
        for (int k = 0; k < ASKED; k++)
            for (int i = 0; i < NAMES; i++)
                expected += t->there[i] && t->ord[i] == a.ords[k];
        struct item_scan q = {.table = item_table_of(kinds[t->kind].type), .order = ITEMS_BY_ORD};
        q.id = row_items(cache_peek(t->w.view->cache, t->w.view->dbs.rows[0].number, SLICE("k"),
                                    cache_hash(t->w.view->dbs.rows[0].number, SLICE("k"))))
                   .id;
        q.ords = a.ords;
        q.nords = ASKED;
        t->n = 0;
        CHECK_OK(store_scan_items(t->w.store, &q, expect_asked, &a, error_of(t)), error_of(t));
        CHECK_EQ(t->n, expected);
    }
}

static void look_up_numbers(struct tester *t)
{
    for (int i = 0; i < 6; i++) {
        batch(t, false, come_and_go);
        batch(t, false, ask_for_numbers);
    }
}

static void items_have_their_numbers(void)
{
    run(true, 6, 3, look_up_numbers);
}

/* ---- evenness ---- */

static int64_t draws(void)
{
    const char *text = getenv("LARDER_TEST_DRAWS");
    return text ? strtoll(text, NULL, 10) : 5000;
}

/* Pearson's: it is about as large as the number of items, and five deviations are a chance in millions. */
static void expect_even(struct tester *t, double total)
{
    double expected = total / (double)t->size, sum = 0;
    for (int i = 0; i < NAMES; i++) {
        double off = (double)t->drawn[i] - expected;
        CHECK(t->there[i] || t->drawn[i] == 0);
        if (t->there[i])
            sum += off * off / expected;
    }
    double freedom = (double)t->size - 1;
    if (!(sum < freedom + 5 * sqrt(2 * freedom))) {
        printf("    chi-square %.0f of %.0f\n", sum, freedom);
        FAIL("some are drawn more often than others");
    }
}

static void draw_one_by_one(struct tester *t, struct coll *c)
{
    struct coll_item item;
    memset(t->drawn, 0, sizeof t->drawn);
    int64_t n = draws();
    for (int64_t i = 0; i < n; i++) {
        CHECK_OK(coll_random(c, &item), error_of(t));
        t->drawn[number_of(item.name)]++;
    }
    expect_even(t, (double)n);
}

static enum status note_drawn(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    t->drawn[number_of(item->name)]++;
    t->n++;
    CHECK(!t->seen[number_of(item->name)]);
    t->seen[number_of(item->name)] = true;
    return ST_OK;
}

static void draw_many(struct tester *t, struct coll *c, int64_t each)
{
    int64_t n = draws(), total = 0;
    memset(t->drawn, 0, sizeof t->drawn);
    for (; total < n; total += each) {
        memset(t->seen, 0, sizeof t->seen);
        t->n = 0;
        CHECK_OK(coll_sample(c, each, note_drawn, t), error_of(t));
        CHECK_EQ(t->n, each);
    }
    expect_even(t, (double)total);
}

static void draw_several(struct tester *t, struct coll *c)
{
    draw_many(t, c, 7);   /* by drawing */
    draw_many(t, c, 400); /* by walking */
}

static void draw_all_ways(struct tester *t)
{
    batch(t, false, draw_one_by_one);
    batch(t, false, draw_several);
}

static void choice_is_even(void)
{
    run(false, 4, 2, draw_all_ways);
}

/* Where so few numbers are taken that drawing is mostly in vain, by rank or by walking over all. */
static void draw_of_few(struct tester *t)
{
    char text[200];
    snprintf(text, sizeof text, "UPDATE %s SET ord = ord * 150 + 7", kinds[t->kind].table);
    world_close(&t->w);
    (void)world_sql(&t->w, text);
    (void)world_sql(&t->w, "UPDATE larder_key SET numbers = numbers * 150 + 7");
    REQUIRE(world_open(&t->w));
    rand_seed(&t->w.view->rnd, 5);
    draw_all_ways(t);
}

static void choice_is_even_among_few(void)
{
    run(false, 5, 1, draw_of_few);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(holes_become_fewer);
    RUN(holes_become_fewer_in_the_journal);
    RUN(scans_see_all_that_stay);
    RUN(items_have_their_numbers);
    RUN(choice_is_even);
    RUN(choice_is_even_among_few);
    return check_done();
}
