/* What SQL knows of a text before SQLite sees it; functions that are bounded here against SQLite's own; what
   ends a query: steps, memory, time, another thread. */
#include "query/query.h"

#include <sqlite3.h>

#include "base/clock.h"
#include "base/rand.h"
#include "query/text.h"
#include "check.h"

/* ---- texts ---- */

static void kinds(void)
{
    static const struct {
        const char *text;
        bool writes;
    } cases[] = {
        {"", false},
        {"SELECT 1", false},
        {"  -- INSERT\n /* DELETE */ select 'INSERT INTO t'", false},
        {"SELECT 1; SELECT 2;", false},
        {"SELECT 1; DELETE FROM t", true},
        {"SELECT ';DELETE FROM t'", false},
        {"insert into t values (1)", true},
        {"REPLACE INTO t VALUES (1)", true},
        {"WITH x AS (SELECT 1) SELECT * FROM x", false},
        {"WITH x AS (SELECT replace('a', 'b', 'c')) SELECT * FROM x", false},
        {"WITH x AS (SELECT 1) UPDATE t SET a = 1", true},
        {"EXPLAIN QUERY PLAN DELETE FROM t", false},
        {"CREATE TABLE t (a)", true},
        {"drop\ttable t", true},
        {"SELECT \"a;b\" FROM [c;d]; ALTER TABLE t ADD x TEXT", true},
        {"PRAGMA x", false},
        {"SELECT 1 /* DELETE", false},
        {"SELECT 'x; DELETE FROM t", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!check_that(query_may_write(slice_str(cases[i].text)) == cases[i].writes, __FILE__, __LINE__,
                        "kind"))
            printf("    %s\n", cases[i].text);
}

struct names {
    char text[256];
};

static void add_name(void *arg, struct slice name)
{
    struct names *n = arg;
    size_t used = strlen(n->text);
    snprintf(n->text + used, sizeof n->text - used, "%.*s ", (int)name.n, name.p);
}

static void columns_of_insert(void)
{
    static const struct {
        const char *text, *names;
        bool list;
    } cases[] = {
        {"INSERT INTO t VALUES (a, b)", "", false},
        {"INSERT INTO t (a, \"b c\", [d], `e`) VALUES (f)", "a b c d e ", true},
        {"insert or replace into main.t as q(a)select x from y", "a ", true},
        {"WITH w (x) AS (SELECT 1 FROM INTO) INSERT INTO t(z) SELECT x FROM w", "z ", true},
        {"INSERT INTO t DEFAULT VALUES", "", true},
        {"INSERT INTO t /* (c) */ -- (d)\n SELECT (1)", "", false},
        {"INSERT INTO \"into\" (a)", "a ", true},
        {"INSERT", "", false},
        {"INSERT INTO t (a", "a ", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct names n = {""};
        bool list = text_insert_columns(slice_str(cases[i].text), add_name, &n);
        if (!check_that(list == cases[i].list && strcmp(n.text, cases[i].names) == 0, __FILE__, __LINE__,
                        "names"))
            printf("    %s: %s\n", cases[i].text, n.text);
    }
}

/* ---- functions ---- */

static struct value answered;

static void begin_result(void *arg, const struct query_column *columns, size_t n)
{
    (void)arg;
    (void)columns;
    CHECK(n == 1);
}

static void take_row(void *arg, const struct value *values, size_t n)
{
    struct arena *arena = arg;
    (void)n;
    answered = values[0];
    if (answered.kind == VALUE_TEXT || answered.kind == VALUE_BLOB)
        answered.s = arena_copy(arena, answered.s);
}

static struct query_result run(struct query_engine *e, struct arena *arena, const char *text,
                               const struct value *args, size_t nargs, struct query_limits limits)
{
    struct query_sink sink = {begin_result, take_row, arena};
    struct query q = {.text = slice_str(text), .args = args, .nargs = nargs, .limits = limits, .sink = &sink};
    struct query_result result;
    limits.memory = limits.memory ? limits.memory : 32 << 20;
    limits.result_bytes = 1 << 20;
    q.limits = limits;
    CHECK(query_run(e, &q, &result) == ST_OK);
    return result;
}

static struct value random_text(struct rand *r, struct arena *arena)
{
    static const char *const letters[] = {"a", "b", "A", "%", "_", "*", "?",
                                          "[", "]", "^", "-", "é", "É", "\\"};
    char text[64] = "";
    for (uint64_t n = rand_below(r, 9); n > 0; n--)
        strcat(text, letters[rand_below(r, sizeof letters / sizeof *letters)]);
    return (struct value){.kind = VALUE_TEXT, .s = arena_copy(arena, slice_str(text))};
}

static bool same(const struct value *v, sqlite3_value *theirs)
{
    switch (sqlite3_value_type(theirs)) {
    case SQLITE_INTEGER:
        return v->kind == VALUE_INT && v->i == sqlite3_value_int64(theirs);
    case SQLITE_TEXT:
        return v->kind == VALUE_TEXT &&
               slice_eq(v->s, slice_of(sqlite3_value_text(theirs), (size_t)sqlite3_value_bytes(theirs)));
    default:
        return v->kind == VALUE_NULL && sqlite3_value_type(theirs) == SQLITE_NULL;
    }
}

static void functions(void)
{
    static const char *const texts[] = {
        "SELECT ?1 LIKE ?2",
        "SELECT ?1 GLOB ?2",
        "SELECT instr(?1, ?2)",
        "SELECT replace(?1, ?2, ?3)",
        "SELECT trim(?1, ?2)",
        "SELECT ltrim(?1, ?2)",
        "SELECT rtrim(?1, ?2)",
        "SELECT trim(?1)",
        "SELECT ?1 LIKE ?2 ESCAPE 'b'",
        "SELECT printf('%5s|%-7.2f|%+d|%c|%Q|%%|%x|%*s', ?1, 2.5, -7, ?1, ?1, 255, 9, ?1)"};
    struct query_engine *e = query_engine_new();
    struct rand r;
    struct arena arena = {0};
    sqlite3 *db;
    CHECK(e && sqlite3_open(":memory:", &db) == SQLITE_OK);
    rand_seed(&r, 14);
    for (int i = 0; i < 5000; i++) {
        const char *text = texts[rand_below(&r, sizeof texts / sizeof *texts)];
        struct value args[3];
        sqlite3_stmt *st;
        arena_reset(&arena);
        CHECK(sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK);
        int n = sqlite3_bind_parameter_count(st);
        for (int k = 0; k < n; k++) {
            args[k] = random_text(&r, &arena);
            sqlite3_bind_text(st, k + 1, args[k].s.p, (int)args[k].s.n, SQLITE_STATIC);
        }
        struct query_result result = run(e, &arena, text, args, (size_t)n, (struct query_limits){0});
        CHECK(sqlite3_step(st) == SQLITE_ROW && result.outcome == QUERY_DONE);
        if (!check_that(same(&answered, sqlite3_column_value(st, 0)), __FILE__, __LINE__, "same answer"))
            printf("    %s: '%.*s', '%.*s'\n", text, (int)args[0].s.n, args[0].s.p,
                   n > 1 ? (int)args[1].s.n : 0, n > 1 ? args[1].s.p : "");
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
    arena_release(&arena);
    query_engine_free(e);
}

/* ---- what ends a query ---- */

#define ENDLESS "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
#define LONG                                                                                                 \
    "SELECT instr(replace(hex(zeroblob(100000)), '00', 'aa'), 'ab') + (hex(zeroblob(100000)) LIKE "          \
    "'%0%0%0%0%0%0%0%1')"

static void ends(void)
{
    struct query_engine *e = query_engine_new();
    struct arena arena = {0};
    _Atomic bool cancel = true;
    struct query_limits none = {0}, limits;
    struct query_result r = run(e, &arena, ENDLESS, NULL, 0, (struct query_limits){.on_loop = true});
    CHECK(r.outcome == QUERY_MOVE);
    r = run(e, &arena, ENDLESS, NULL, 0, (struct query_limits){.steps = 100000});
    CHECK(r.outcome == QUERY_FAULT && r.fault.kind == FAULT_SQL);
    limits = none;
    limits.deadline_us = clock_mono_us() + 20000;
    r = run(e, &arena, ENDLESS, NULL, 0, limits);
    CHECK(r.outcome == QUERY_FAULT && r.fault.kind == FAULT_TIMEOUT);
    CHECK(clock_mono_us() - limits.deadline_us < 5000000);
    limits = none;
    limits.cancel = &cancel;
    r = run(e, &arena, ENDLESS, NULL, 0, limits);
    CHECK(r.outcome == QUERY_FAULT && r.fault.kind == FAULT_CANCELLED);
    r = run(e, &arena, LONG, NULL, 0, (struct query_limits){.steps = 1000});
    CHECK(r.outcome == QUERY_FAULT);
    r = run(e, &arena, "SELECT printf('%.*c', 900000000, 'x')", NULL, 0, none);
    CHECK(r.outcome == QUERY_FAULT && r.fault.kind == FAULT_SQL);
    r = run(e, &arena, "SELECT length(zeroblob(40000000) || zeroblob(1))", NULL, 0, none);
    CHECK(r.outcome == QUERY_FAULT && strstr(r.fault.text, "sql-memory"));
    r = run(e, &arena, "SELECT 1 + 1", NULL, 0, none);
    CHECK(r.outcome == QUERY_DONE && answered.kind == VALUE_INT && answered.i == 2);
    arena_release(&arena);
    query_engine_free(e);
}

/* Only what runs for a query counts: another connection on the same thread has all the memory there is. */
static void others_memory_does_not_count(void)
{
    struct query_engine *e = query_engine_new();
    struct arena arena = {0};
    sqlite3 *db;
    struct query_result r = run(e, &arena, "SELECT length(hex(zeroblob(4000000)))", NULL, 0,
                                (struct query_limits){.memory = 1 << 20});
    CHECK(r.outcome == QUERY_FAULT);
    CHECK(sqlite3_open(":memory:", &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "CREATE TABLE t AS SELECT hex(zeroblob(4000000))", NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
    arena_release(&arena);
    query_engine_free(e);
}

int main(void)
{
    query_count_memory();
    RUN(kinds);
    RUN(columns_of_insert);
    RUN(functions);
    RUN(ends);
    RUN(others_memory_does_not_count);
    return check_done();
}
