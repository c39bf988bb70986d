/* CHECK expressions: what passes, what fails, and what an expression may not do. */
#include "table/check.h"

#include <time.h>

#include "check.h"
#include "table/text/ddl.h"

static struct arena arena;
static struct fault fault;
static struct schema schema;

#define COLUMNS                                                                                              \
    "id INT PRIMARY KEY, age INTEGER, name TEXT, price REAL, data BLOB, ok BOOLEAN, at TIMESTAMP, doc JSON"

/* The checks of a table with one more expression; NULL: it was refused. */
static struct checks *with(const char *expression)
{
    struct buf text = {0};
    buf_addf(&text, COLUMNS ", CHECK (%s)", expression);
    fault = (struct fault){0};
    struct checks *c = NULL;
    if (ddl_table(buf_slice(&text), NULL, &arena, &schema, &fault))
        c = checks_new(&schema, &fault);
    buf_release(&text);
    return c;
}

static struct value vt(const char *s)
{
    return (struct value){.kind = VALUE_TEXT, .s = slice_str(s)};
}

static void fill(struct value row[8])
{
    row[0] = (struct value){.kind = VALUE_INT, .i = 1};
    row[1] = (struct value){.kind = VALUE_INT, .i = 42};
    row[2] = vt("Mary");
    row[3] = (struct value){.kind = VALUE_REAL, .d = 2.5};
    row[4] = (struct value){.kind = VALUE_BLOB, .s = slice_of("\0\xff", 2)};
    row[5] = (struct value){.kind = VALUE_BOOL, .i = 1};
    row[6] = (struct value){.kind = VALUE_INT, .i = 1000};
    row[7] = vt("{\"a\": [1, 2]}");
}

static bool outcome(const char *expression, bool expected)
{
    struct value row[8];
    fill(row);
    struct checks *c = with(expression);
    if (!c) {
        printf("    %s: %s\n", expression, fault.text);
        return false;
    }
    bool ok = checks_run(c, row, &fault);
    checks_free(c);
    if (ok != expected)
        printf("    %s\n", expression);
    return ok == expected && (ok || (fault.kind == FAULT_CONSTRAINT && strstr(fault.text, "failed")));
}

static bool refused(const char *expression, const char *words)
{
    struct checks *c = with(expression);
    bool ok = !c && fault.kind == FAULT_SYNTAX && strstr(fault.text, words);
    if (!ok)
        printf("    %s gives %s %s\n", expression, fault_code(fault.kind), fault.text);
    checks_free(c);
    return ok;
}

static void passes_and_fails(void)
{
    static const char *const pass[] = {"age >= 0",
                                       "AGE = 42",
                                       "\"age\" > 41 AND [age] < 43",
                                       "age > '41'",
                                       "length(name) <= 10",
                                       "name LIKE 'ma%'",
                                       "name GLOB 'Ma*'",
                                       "price < 2.6",
                                       "ok",
                                       "at = 1000",
                                       "data = x'00ff'",
                                       "length(data) = 2",
                                       "age IN (1, 42)",
                                       "age BETWEEN 1 AND 50",
                                       "json_valid(doc)",
                                       "doc ->> '$.a[1]' = 2",
                                       "json_extract(doc, '$.a[0]') = 1",
                                       "NULL",
                                       "name = NULL",
                                       "1",
                                       "0.5",
                                       "CASE WHEN age > 1 THEN 1 ELSE 0 END",
                                       "coalesce(NULL, age) = 42",
                                       "upper(name) = 'MARY'",
                                       "trim(name) = name",
                                       "typeof(age) = 'integer'",
                                       "typeof(price) = 'real'",
                                       "name <> 'a)b' /* c */",
                                       "abs(-age) = 42",
                                       "name IS NOT NULL",
                                       "'a' || name = 'aMary'",
                                       "max(age, 1) = 42",
                                       "name COLLATE NOCASE = 'MARY'"};
    static const char *const fail[] = {
        "age < 0",    "name = 'mary'", "NOT ok",           "0",         "0.0",       "name", "'abc'",
        "age > '42'", "name IS NULL",  "length(name) = 0", "price = 2", "doc = '{}'"};
    for (size_t i = 0; i < sizeof pass / sizeof *pass; i++)
        CHECK(outcome(pass[i], true));
    for (size_t i = 0; i < sizeof fail / sizeof *fail; i++)
        CHECK(outcome(fail[i], false));
}

static void null_passes(void)
{
    struct value row[8] = {{0}};
    struct checks *c = with("age >= 0 AND length(name) > 1");
    REQUIRE(c);
    CHECK(checks_run(c, row, &fault));
    checks_free(c);
    CHECK(checks_run(NULL, row, &fault));
}

/* One compiled set over many rows; the first that fails is named. */
static void runs_again_and_again(void)
{
    struct value row[8];
    fault = (struct fault){0};
    REQUIRE(ddl_table(SLICE(COLUMNS ", CHECK (age > 0), CHECK (name <> '')"), NULL, &arena, &schema, &fault));
    struct checks *c = checks_new(&schema, &fault);
    REQUIRE(c);
    for (int i = -50; i < 50; i++) {
        fill(row);
        row[1].i = i;
        row[2] = vt(i % 2 ? "x" : "");
        fault = (struct fault){0};
        CHECK_EQ(checks_run(c, row, &fault), i > 0 && i % 2);
        if (i <= 0)
            CHECK_STR(fault.text, "CHECK (age > 0) failed");
        else if (i % 2 == 0)
            CHECK_STR(fault.text, "CHECK (name <> '') failed");
    }
    checks_free(c);
}

static void refuses_what_is_more_than_an_expression(void)
{
    CHECK(refused("nobody > 0", "nobody"));
    CHECK(refused("age >", "syntax error"));
    CHECK(refused("age age", "syntax error"));
    CHECK(refused("\"nothing\" = 1", "nothing"));
    CHECK(refused("random() > 0", "function random"));
    CHECK(refused("printf('%d', age) = ''", "function printf"));
    CHECK(refused("zeroblob(9) = data", "function zeroblob"));
    CHECK(refused("randomblob(9) = data", "function randomblob"));
    CHECK(refused("instr(name, 'a')", "function instr"));
    CHECK(refused("replace(name, 'a', 'b') = ''", "function replace"));
    CHECK(refused("load_extension(name)", "function load_extension"));
    CHECK(refused("at < date('now')", "function date"));
    CHECK(refused("at < CURRENT_TIMESTAMP", "function current_timestamp"));
    CHECK(refused("last_insert_rowid()", "function last_insert_rowid"));
    CHECK(refused("sqlite_version() = ''", "function sqlite_version"));
    CHECK(refused("count(*) > 0", "function count"));
    CHECK(refused("age IN (SELECT 1)", "a subquery"));
    CHECK(refused("EXISTS (SELECT 1)", "a subquery"));
    CHECK(refused("(VALUES (1))", "a subquery"));
    CHECK(refused("age IN sqlite_schema", ""));
    CHECK(refused(
        "(WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t) > age", ""));
    CHECK(refused("age, name", ""));
    CHECK(refused("nosuch(age)", "no such function"));
    CHECK(refused("sum(age) OVER ()", "function sum"));
}

/* What no text of ours can say, but a schema that someone wrote by hand could. */
static void refuses_what_the_lexer_would_have(void)
{
    static const char *const texts[] = {"1); SELECT (1", "age = ?", "age = :x", "1) FROM (SELECT 1",
                                        "1) -- ",        "(",       "",         "1;"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fault = (struct fault){0};
        REQUIRE(ddl_table(SLICE(COLUMNS ", CHECK (1)"), NULL, &arena, &schema, &fault));
        schema.checks[0] = slice_str(texts[i]);
        struct checks *c = checks_new(&schema, &fault);
        check.context = texts[i];
        CHECK(!c && fault.kind == FAULT_SYNTAX);
        checks_free(c);
    }
}

static void errors_at_run_time_are_faults(void)
{
    struct value row[8];
    static const char *const texts[] = {"abs(age) > 0", "trim(name, 'x') = ''", "name || name = ''",
                                        "doc -> '$[' = 1"};
    size_t n = CHECK_BYTES_MAX;
    char *big = malloc(n + 1);
    REQUIRE(big);
    memset(big, 'a', n + 1);
    clock_t from = clock();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fill(row);
        row[1].i = INT64_MIN;
        row[2].s = slice_of(big, n);
        struct checks *c = with(texts[i]);
        REQUIRE(c);
        check.context = texts[i];
        CHECK(!checks_run(c, row, &fault) && fault.kind == FAULT_CONSTRAINT);
        fault = (struct fault){0};
        row[2].s.n = n + 1;
        CHECK(!checks_run(c, row, &fault));
        CHECK_EQ(fault.kind, i == 0 || i == 3 ? FAULT_CONSTRAINT : FAULT_TOO_LONG);
        checks_free(c);
    }
    /* The worst pattern there is. */
    struct checks *c = with("name LIKE '%a%a%a%a%a%a%a%a%a%a%a%a%a%a%ab'");
    REQUIRE(c);
    fill(row);
    row[2].s = slice_of(big, n);
    CHECK(!checks_run(c, row, &fault));
    checks_free(c);
    CHECK((double)(clock() - from) / CLOCKS_PER_SEC < 3);
    free(big);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(passes_and_fails);
    RUN(null_passes);
    RUN(runs_again_and_again);
    RUN(refuses_what_is_more_than_an_expression);
    RUN(refuses_what_the_lexer_would_have);
    RUN(errors_at_run_time_are_faults);
    arena_release(&arena);
    return check_done();
}
