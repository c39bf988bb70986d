/* Several who watch keys of the same names: which of them a key that appears touches, and that those who stay
   are found whoever goes first. */
#include "world.h"

#define WATCHES 6
#define MANY    3000 /* more keys than the map begins with, and so many that it grows by single buckets */

static void begin(struct world *w)
{
    CHECK(world_begin(w));
    world_enter(w);
}

static void end(struct world *w, bool kept)
{
    (void)engine_leave(w->engine, kept);
    CHECK_OK(engine_commit(w->engine, NULL, &w->err), &w->err);
}

static void set(struct world *w, uint32_t db, struct slice key)
{
    CHECK_OK(view_set_string(w->view, db, key, slice_str("v"), EXPIRE_NEVER), engine_error(w->engine));
}

static void watch(struct world *w, struct view_watch *at, uint32_t db, struct slice key)
{
    *at = (struct view_watch){.db = db, .key = key};
    view_watch(w->view, at);
}

/* All watch the same key, and the first so many of an order go before it appears. */
static void whoever_stays_is_touched(void)
{
    static const int orders[][WATCHES] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 4, 2}};
    struct world w = {0};
    REQUIRE(world_start(&w));
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        for (int gone = 0; gone <= WATCHES; gone++) {
            struct view_watch watches[WATCHES];
            bool stays[WATCHES];
            for (int i = 0; i < WATCHES; i++) {
                watch(&w, &watches[i], 0, slice_str("k"));
                stays[i] = true;
            }
            for (int i = 0; i < gone; i++) {
                view_unwatch(&watches[orders[o][i]]);
                stays[orders[o][i]] = false;
            }
            begin(&w);
            set(&w, 0, slice_str("k"));
            end(&w, true);
            for (int i = 0; i < WATCHES; i++)
                CHECK_EQ(watches[i].touched, stays[i]);
            for (int i = gone; i < WATCHES; i++)
                view_unwatch(&watches[orders[o][i]]);
            begin(&w);
            CHECK_OK(view_del(w.view, 0, slice_str("k"), NULL), engine_error(w.engine));
            end(&w, true);
        }
    }
    world_end(&w);
}

static void a_call_that_is_undone_touches_nobody(void)
{
    struct world w = {0};
    struct view_watch a, b;
    REQUIRE(world_start(&w));
    watch(&w, &a, 0, slice_str("k"));
    watch(&w, &b, 0, slice_str("k"));
    begin(&w);
    set(&w, 0, slice_str("k"));
    end(&w, false);
    CHECK(!a.touched && !b.touched);
    view_unwatch(&a);
    view_unwatch(&b);
    world_end(&w);
}

static void databases_have_keys_of_the_same_name(void)
{
    struct world w = {0};
    struct view_watch zero, one, two;
    REQUIRE(world_start(&w));
    watch(&w, &zero, 0, slice_str("k"));
    watch(&w, &one, 1, slice_str("k"));
    watch(&w, &two, 2, slice_str("k"));
    begin(&w);
    set(&w, 1, slice_str("k"));
    end(&w, true);
    CHECK(!zero.touched && one.touched && !two.touched);

    begin(&w);
    CHECK_OK(view_swap_db(w.view, 0, 1), engine_error(w.engine));
    end(&w, true);
    CHECK(zero.touched && one.touched && !two.touched);
    view_unwatch(&zero);
    view_unwatch(&one);
    view_unwatch(&two);
    world_end(&w);
}

static void many_keys_are_watched(void)
{
    static struct view_watch watches[MANY];
    static char names[MANY][16];
    struct world w = {0};
    REQUIRE(world_start(&w));
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        watch(&w, &watches[i], 0, slice_str(names[i]));
    }
    begin(&w);
    for (int i = 0; i < MANY; i += 7)
        set(&w, 0, slice_str(names[i]));
    end(&w, true);
    int wrong = 0;
    for (int i = 0; i < MANY; i++) {
        wrong += watches[i].touched != (i % 7 == 0);
        view_unwatch(&watches[i]);
    }
    CHECK_EQ(wrong, 0);
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(whoever_stays_is_touched);
    RUN(a_call_that_is_undone_touches_nobody);
    RUN(databases_have_keys_of_the_same_name);
    RUN(many_keys_are_watched);
    return check_done();
}
