/* Sets in memory and in the tables against a model: which of so many names are there. Batches of random
   changes, calls that are undone and commits that fail; then what the set has, in pieces, by name and by
   number, and that no number has grown which a scan counts on. */
#include "world.h"

#include "base/rand.h"
#include "engine/coll.h"
#include "engine/coll_internal.h"

#define NAMES 6000

struct model {
    bool there[NAMES];
    int64_t size;
};

struct tester {
    struct world w;
    struct rand rnd;
    struct model now, before_call, before_batch;
    int64_t ord[NAMES]; /* before random ones are taken out */
    bool seen[NAMES];
};

static struct slice name_of(int i)
{
    static char text[NAMES][24];
    if (!text[i][0])
        snprintf(text[i], sizeof text[i], "%s%d", i % 2 ? "member:" : "", i);
    return slice_str(text[i]);
}

static int number_of(struct slice name)
{
    size_t skip = name.n > 7 && name.p[0] == 'm' ? 7 : 0;
    int i = 0;
    for (size_t k = skip; k < name.n; k++)
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

/* ---- changing ---- */

static enum status put(struct tester *t, struct coll *s, int i)
{
    struct coll_item item = {.name = name_of(i)}, old;
    bool found;
    enum status st = coll_find(s, item.name, &found, &old);
    CHECK_EQ(found, t->now.there[i]);
    if (st != ST_OK || found)
        return st;
    t->now.there[i] = true;
    t->now.size++;
    return coll_put_known(s, &item, NULL);
}

static enum status drop(struct tester *t, struct coll *s, int i)
{
    bool removed;
    enum status st = coll_remove(s, name_of(i), &removed);
    CHECK_EQ(removed, t->now.there[i]);
    t->now.size -= t->now.there[i];
    t->now.there[i] = false;
    return st;
}

static enum status note_ord(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    t->ord[number_of(item->name)] = item->ord;
    return ST_OK;
}

static enum status expect_ord(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    CHECK(item->ord <= t->ord[number_of(item->name)]);
    return ST_OK;
}

static enum status note_taken(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    int i = number_of(item->name);
    CHECK(t->now.there[i]);
    t->now.there[i] = false;
    t->now.size--;
    return ST_OK;
}

/* Random ones go; those that stay may only get lower numbers. */
static enum status take(struct tester *t, struct coll *s)
{
    int64_t size = t->now.size, kinds[] = {1, pick(t, 30), pick(t, size), size - pick(t, 30), size / 2, size};
    int64_t n = kinds[pick(t, 6)];
    n = n < 0 ? 0 : n > size ? size : n;
    enum status st = coll_each(s, note_ord, t);
    if (st == ST_OK)
        st = coll_take_random(s, n, note_taken, t);
    CHECK_EQ(t->now.size, size - n);
    CHECK_EQ(coll_size(s), size - n);
    return st == ST_OK && coll_size(s) ? coll_each(s, expect_ord, t) : st;
}

static enum status change(struct tester *t, bool grow)
{
    struct coll *s;
    bool wrong;
    enum status st = coll_make(t->w.view, 0, SLICE("s"), ROW_SET, &s, &wrong);
    if (st != ST_OK)
        return st;
    CHECK_EQ(coll_size(s), t->now.size);
    int64_t n = pick(t, 5) ? pick(t, 20) : pick(t, 1500), from = pick(t, NAMES);
    for (int64_t k = 0; st == ST_OK && k < n; k++) {
        int i = (int)((from + k * 7) % NAMES);
        st = pick(t, 10) < (grow ? 9 : 3) ? put(t, s, i) : drop(t, s, i);
    }
    if (st == ST_OK && t->now.size && pick(t, grow ? 12 : 4) == 0)
        st = take(t, s);
    return st == ST_OK ? coll_save(s) : st;
}

/* ---- comparing ---- */

static enum status note_seen(void *arg, const struct coll_item *item)
{
    struct tester *t = arg;
    int i = number_of(item->name);
    CHECK(t->now.there[i]);
    CHECK(!t->seen[i]);
    t->seen[i] = true;
    return ST_OK;
}

static int64_t count_seen(struct tester *t)
{
    int64_t n = 0;
    for (int i = 0; i < NAMES; i++) {
        n += t->seen[i];
        t->seen[i] = false;
    }
    return n;
}

struct piece {
    struct tester *t;
    struct slice last;
    int64_t n;
};

static enum status note_piece(void *arg, const struct coll_item *item)
{
    struct piece *p = arg;
    p->last = arena_copy(&p->t->w.arena, item->name);
    p->n++;
    return note_seen(p->t, item);
}

static void compare_pieces(struct tester *t, struct coll *s)
{
    struct piece p = {.t = t};
    uint32_t limit = 1 + (uint32_t)pick(t, 900);
    do {
        p.n = 0;
        REQUIRE_OK(coll_piece(s, p.last, limit, note_piece, &p), error_of(t));
        CHECK(p.n <= limit);
    } while (p.n == limit);
    CHECK_EQ(count_seen(t), t->now.size);
}

static void compare_names(struct tester *t, struct coll *s)
{
    struct slice names[300];
    bool has[300];
    size_t n = (size_t)pick(t, 300);
    int first = (int)pick(t, NAMES);
    for (size_t i = 0; i < n; i++)
        names[i] = name_of((first + (int)i * 13) % NAMES);
    CHECK_OK(coll_has(s, names, n, has), error_of(t));
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(has[i], t->now.there[(first + (int)i * 13) % NAMES]);
}

static void compare_random(struct tester *t, struct coll *s)
{
    int64_t wanted = pick(t, t->now.size + 1);
    struct coll_item item;
    CHECK_OK(coll_sample(s, wanted, note_seen, t), error_of(t));
    CHECK_EQ(count_seen(t), wanted);
    CHECK_OK(coll_random(s, &item), error_of(t));
    CHECK(t->now.there[number_of(item.name)]);
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

static void compare(struct tester *t)
{
    struct coll *s;
    bool wrong;
    world_enter(&t->w);
    REQUIRE_OK(coll_open(t->w.view, 0, SLICE("s"), ROW_SET, &s, &wrong), error_of(t));
    CHECK_EQ(s ? coll_size(s) : 0, t->now.size);
    if (s) {
        CHECK_OK(coll_each(s, note_seen, t), error_of(t));
        CHECK_EQ(count_seen(t), t->now.size);
        compare_holes(t, s);
        compare_pieces(t, s);
        compare_names(t, s);
        compare_random(t, s);
    }
    (void)engine_leave(t->w.engine, true);
}

static void compare_tables(struct tester *t)
{
    CHECK_EQ(world_sql(&t->w, "SELECT coalesce(sum(size), 0) FROM larder_key WHERE type = 4"), t->now.size);
    CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_key AS k WHERE type = 4 AND size IS NOT"
                              " (SELECT count(*) FROM larder_set WHERE id = k.id)"),
             0);
    world_check_numbers(&t->w, ROW_SET, "larder_set");
}

/* ---- the tests ---- */

static void batch(struct tester *t, bool grow, bool may_fail)
{
    REQUIRE(world_begin(&t->w));
    t->before_batch = t->now;
    for (int64_t calls = 1 + pick(t, 4); calls > 0; calls--) {
        world_enter(&t->w);
        t->before_call = t->now;
        enum status st = change(t, grow);
        bool keep = st == ST_OK && (!may_fail || pick(t, 10));
        CHECK_OK(st, error_of(t));
        (void)engine_leave(t->w.engine, keep);
        if (!keep)
            t->now = t->before_call;
        if (t->w.view->batch.poison != ST_OK)
            break; /* what was undone is in the transaction, which cannot commit */
        if (pick(t, 3) == 0)
            compare(t);
    }
    if (may_fail && pick(t, 6) == 0)
        store_fault_set(t->w.store, (struct store_fault){.nth = 1, .status = ST_FULL});
    enum status st = engine_commit(t->w.engine, NULL, &t->w.err);
    store_fault_set(t->w.store, (struct store_fault){.nth = 0});
    if (st != ST_OK)
        t->now = t->before_batch;
    CHECK(st == ST_OK || may_fail);
}

static void run(uint64_t seed, size_t cache, bool may_fail)
{
    struct tester *t = calloc(1, sizeof *t);
    t->w.cache = cache;
    rand_seed(&t->rnd, seed);
    if (world_start(&t->w)) {
        for (int i = 0; i < 80 && !check.checks_failed; i++) {
            batch(t, i / 30 % 2 == 0, may_fail);
            if (i % 10 == 0) {
                compare_tables(t);
                CHECK(world_begin(&t->w));
                compare(t);
                CHECK_OK(engine_commit(t->w.engine, NULL, &t->w.err), &t->w.err);
            }
            if (i % 30 == 25)
                CHECK(world_reopen(&t->w));
        }
        world_sweep(&t->w);
        compare_tables(t);
        CHECK_EQ(world_sql(&t->w, "SELECT count(*) FROM larder_set"), t->now.size);
        world_end(&t->w);
    }
    free(t);
}

static void sets_in_memory_and_beyond(void)
{
    run(1, 64 << 20, false);
    run(2, 64 << 20, false);
}

static void sets_without_memory(void)
{
    run(3, 1, false);
}

static void failures_leave_no_trace(void)
{
    run(4, 64 << 20, true);
    run(5, 1, true);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(sets_in_memory_and_beyond);
    RUN(sets_without_memory);
    RUN(failures_leave_no_trace);
    return check_done();
}
