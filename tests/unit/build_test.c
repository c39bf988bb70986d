/* The walker's steps, one by one: what is there between them, who may come in between, where the next one
   goes on after a restart. */
#include "table/build/build.h"

#include "table/build/alter.h"
#include "table/text/ddl.h"
#include "world.h"

#define ROWS 10

static struct catalog *catalog;

static struct rows opened(struct world *w)
{
    struct rows r = {.catalog = catalog, .view = w->view, .arena = &w->arena};
    struct fault fault = {0};
    CHECK_OK(table_open(catalog, w->view, 0, SLICE("t"), &r.table, &fault), &w->err);
    CHECK(fault.kind == FAULT_NONE);
    return r;
}

static struct rows begun(struct world *w)
{
    CHECK(world_begin(w));
    world_enter(w);
    return opened(w);
}

static void committed(struct world *w)
{
    engine_leave(w->engine, true);
    CHECK_OK(engine_commit(w->engine, NULL, &w->err), &w->err);
}

static enum fault_kind put_at(struct world *w, int64_t id, const char *name, int64_t expire_at)
{
    struct rows r = begun(w);
    struct value values[2] = {{.kind = VALUE_INT, .i = id}, {.kind = VALUE_TEXT, .s = slice_str(name)}};
    bool given[2] = {true, true};
    struct row_write write = {.values = values, .given = given, .expire_at = expire_at};
    enum row_outcome outcome;
    struct fault fault = {0};
    CHECK_OK(rows_put(&r, &write, &outcome, NULL, &fault), &w->err);
    committed(w);
    return fault.kind;
}

static enum fault_kind put(struct world *w, int64_t id, const char *name)
{
    return put_at(w, id, name, 0);
}

static void del(struct world *w, int64_t id)
{
    struct rows r = begun(w);
    struct value values[2] = {{.kind = VALUE_INT, .i = id}, {.kind = VALUE_NULL}};
    struct buf name = {0};
    struct fault fault = {0};
    enum row_outcome outcome;
    CHECK(rowcode_name(&r.table->schema, values, &name, &fault));
    CHECK_OK(rows_delete(&r, buf_slice(&name), ROW_ALWAYS, 0, &outcome), &w->err);
    buf_release(&name);
    committed(w);
}

/* A table of ROWS rows, named n0 to n9, with an index that is due though they are few. */
static void make(struct world *w, const char *index)
{
    struct schema s;
    struct fault fault = {0};
    enum alter_kind kind;
    uint16_t number;
    CHECK(world_begin(w));
    world_enter(w);
    CHECK(ddl_table(SLICE("id INTEGER PRIMARY KEY, name TEXT"), NULL, &w->arena, &s, &fault));
    CHECK_OK(table_create(w->view, 0, SLICE("t"), &s, &fault), &w->err);
    committed(w);
    for (int i = 0; i < ROWS; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        put(w, i, name);
    }
    struct rows r = begun(w);
    CHECK(ddl_alter(slice_str(index), &r.table->schema, &w->arena, &s, &kind, &number, &fault));
    CHECK_OK(table_change(w->view, r.table, &s, &fault), &w->err);
    CHECK(fault.kind == FAULT_NONE && number == 1);
    committed(w);
}

static struct build_step step_by(struct world *w, uint64_t walker, uint32_t max, bool decides)
{
    struct rows r = begun(w);
    struct build_step s = {.walker = walker, .max_rows = max, .decides = decides};
    CHECK_OK(build_step(&r, &s), &w->err);
    committed(w);
    return s;
}

static enum build_outcome step(struct world *w, uint32_t max, bool decides)
{
    return step_by(w, 1, max, decides).ret;
}

static enum index_state state(struct world *w)
{
    struct rows r = begun(w);
    enum index_state is = r.table->schema.indexes[0].state;
    committed(w);
    return is;
}

static uint64_t progress(struct world *w)
{
    struct rows r = begun(w);
    uint64_t rows;
    CHECK_OK(build_progress(&r, &r.table->schema.indexes[0], &rows), &w->err);
    committed(w);
    return rows;
}

/* Steps to the end. */
static void finish(struct world *w)
{
    enum build_outcome o = BUILD_MORE;
    for (int i = 0; i < 100 && o != BUILD_DECIDED; i++)
        o = step(w, 3, o == BUILD_AT_END);
    CHECK(o == BUILD_DECIDED);
    CHECK(step(w, 3, true) == BUILD_IDLE);
}

static int64_t entries(struct world *w)
{
    return world_sql(w, "SELECT count(*) FROM larder_entry WHERE hex(name) LIKE '0001%'");
}

static int64_t places(struct world *w)
{
    return world_sql(w, "SELECT count(*) FROM larder_entry WHERE hex(name) LIKE '0000%'");
}

static void steps_and_restarts(void)
{
    struct world w = {0};
    CHECK(world_start(&w));
    make(&w, "ADD INDEX by_name (name)");
    CHECK(progress(&w) == 0);
    for (uint64_t rows = 3; rows < ROWS; rows += 3) {
        CHECK(step(&w, 3, false) == BUILD_MORE);
        CHECK(progress(&w) == rows && entries(&w) == (int64_t)rows && places(&w) == 1);
        CHECK(world_reopen(&w));
        CHECK(state(&w) == INDEX_BUILDING);
    }
    CHECK(step(&w, 3, false) == BUILD_AT_END);
    CHECK(state(&w) == INDEX_BUILDING); /* it may not decide */
    CHECK(step(&w, 3, false) == BUILD_AT_END);
    CHECK(world_reopen(&w));
    CHECK(step(&w, 3, true) == BUILD_DECIDED);
    CHECK(state(&w) == INDEX_READY && entries(&w) == ROWS && places(&w) == 0);
    world_end(&w);
}

static void writers_in_between(void)
{
    struct world w = {0};
    CHECK(world_start(&w));
    make(&w, "ADD UNIQUE INDEX by_name (name)");
    CHECK(step(&w, 5, false) == BUILD_MORE);
    CHECK(put(&w, 1, "x") == FAULT_NONE); /* behind the walker */
    CHECK(put(&w, 8, "y") == FAULT_NONE); /* before it */
    CHECK(put(&w, 9, "x") == FAULT_DUPLICATE);
    CHECK(put(&w, 100, "z") == FAULT_NONE);
    CHECK(put(&w, -5, "n1") == FAULT_NONE); /* which row 1 has given back */
    del(&w, 2);
    del(&w, 7);
    finish(&w);
    CHECK(state(&w) == INDEX_READY && entries(&w) == ROWS && places(&w) == 0);
    CHECK(put(&w, 101, "n1") == FAULT_DUPLICATE && put(&w, 101, "n7") == FAULT_NONE);
    world_end(&w);
}

static void check_failed(struct world *w, const char *one, const char *other)
{
    struct rows r = begun(w);
    const struct table_index *i = &r.table->schema.indexes[0];
    char text[FAULT_CHARS];
    snprintf(text, sizeof text, "%.*s", (int)i->error.n, i->error.p);
    CHECK(i->state == INDEX_FAILED && strstr(text, one) && strstr(text, other));
    committed(w);
    CHECK(places(w) == 0);
    world_sweep(w);
    CHECK(entries(w) == 0);
}

static void duplicates(void)
{
    static const struct {
        int64_t id;
        const char *name, *one, *other;
    } cases[] = {
        {100, "n1", "(1)", "(100)"}, /* met by the walker after it has passed the first */
        {2, "n1", "(1)", "(2)"},     /* within one step */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct world w = {0};
        CHECK(world_start(&w));
        make(&w, "ADD INDEX other (name)");
        struct rows r = begun(&w);
        struct fault fault = {0};
        bool builds;
        CHECK_OK(table_alter(&r, SLICE("DROP INDEX other"), &builds, &fault), &w.err);
        committed(&w);
        put(&w, cases[i].id, cases[i].name);
        r = begun(&w);
        CHECK_OK(table_alter(&r, SLICE("ADD UNIQUE INDEX by_name (name)"), &builds, &fault), &w.err);
        CHECK(fault.kind == FAULT_DUPLICATE && strstr(fault.text, cases[i].one) &&
              strstr(fault.text, cases[i].other));
        CHECK(r.table->schema.nindexes == 0);
        committed(&w);
        world_end(&w);
    }
}

static void a_writer_before_the_walker(void)
{
    struct world w = {0};
    CHECK(world_start(&w));
    make(&w, "ADD UNIQUE INDEX by_name (name)");
    CHECK(step(&w, 3, false) == BUILD_MORE);
    CHECK(put(&w, 100, "n8") == FAULT_NONE); /* nobody knows yet that row 8 has it */
    CHECK(put(&w, 101, "n8") == FAULT_DUPLICATE);
    CHECK(step(&w, 3, false) == BUILD_MORE && step(&w, 3, false) == BUILD_AT_END);
    CHECK(state(&w) == INDEX_BUILDING);
    CHECK(step(&w, 3, true) == BUILD_DECIDED);
    check_failed(&w, "(8)", "(100)");
    CHECK(put(&w, 101, "n8") == FAULT_NONE);
    world_end(&w);
}

static void expired_rows(void)
{
    struct world w = {0};
    CHECK(world_start(&w));
    make(&w, "ADD UNIQUE INDEX by_name (name)");
    put_at(&w, 100, "n8", w.now + 10);
    put_at(&w, -1, "n3", w.now + 10);
    world_clock(&w, w.now + 20);
    finish(&w);
    CHECK(state(&w) == INDEX_READY);
    CHECK(put(&w, 101, "n8") == FAULT_DUPLICATE && put(&w, 101, "n3") == FAULT_DUPLICATE);
    world_end(&w);
}

static void two_walkers(void)
{
    struct world w = {0};
    CHECK(world_start(&w));
    make(&w, "ADD INDEX by_name (name)");
    for (uint64_t i = 0; i < 3; i++) {
        struct build_step s = step_by(&w, i % 2, 3, false);
        CHECK(s.ret == BUILD_MORE && s.ret_rows == 3);
    }
    CHECK(progress(&w) == 9);
    finish(&w);
    CHECK(entries(&w) == ROWS);
    world_end(&w);
}

static void drops_and_rebuilds(void)
{
    struct world w = {0};
    struct fault fault = {0};
    bool builds;
    CHECK(world_start(&w));
    make(&w, "ADD INDEX by_name (name)");
    CHECK(step(&w, 3, false) == BUILD_MORE);
    struct rows r = begun(&w);
    CHECK_OK(table_rebuild(&r, SLICE("BY_NAME"), &builds, &fault), &w.err);
    CHECK(!fault.kind && !builds); /* few rows: at once */
    committed(&w);
    CHECK(step(&w, 3, true) == BUILD_IDLE && state(&w) == INDEX_READY);
    world_sweep(&w);
    CHECK(entries(&w) == 0 && places(&w) == 0);
    CHECK(world_sql(&w, "SELECT count(*) FROM larder_entry WHERE hex(name) LIKE '0002%'") == ROWS);
    r = begun(&w);
    CHECK_OK(table_alter(&r, SLICE("DROP INDEX by_name"), &builds, &fault), &w.err);
    committed(&w);
    world_sweep(&w);
    CHECK(world_sql(&w, "SELECT count(*) FROM larder_entry") == 0);
    world_end(&w);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    catalog = catalog_new();
    RUN(steps_and_restarts);
    RUN(writers_in_between);
    RUN(duplicates);
    RUN(a_writer_before_the_walker);
    RUN(expired_rows);
    RUN(two_walkers);
    RUN(drops_and_rebuilds);
    catalog_free(catalog);
    return check_done();
}
