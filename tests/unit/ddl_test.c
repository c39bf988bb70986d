/* The words that describe tables: what they make, and what is refused with which words. */
#include "table/text/ddl.h"

#include <time.h>

#include "base/buf.h"
#include "check.h"

static struct arena arena;
static struct fault fault;

static bool table(const char *text, struct schema *ret)
{
    fault = (struct fault){0};
    bool ok = ddl_table(slice_str(text), NULL, &arena, ret, &fault);
    CHECK_EQ(ok, fault.kind == FAULT_NONE);
    return ok;
}

/* As JSON, for comparison. */
static struct slice json_of(const struct schema *s)
{
    struct buf out = {0};
    schema_encode(s, &out);
    struct slice copy = arena_copy(&arena, buf_slice(&out));
    buf_release(&out);
    return copy;
}

static bool refuses(const char *text, enum fault_kind kind, const char *words)
{
    struct schema s;
    bool ok = !table(text, &s) && fault.kind == kind && strstr(fault.text, words);
    if (!ok)
        printf("    %s\n    gives %s %s\n", text, fault_code(fault.kind), fault.text);
    return ok;
}

static void makes_the_table_of_people(void)
{
    struct schema s;
    REQUIRE(table("first TEXT, last TEXT, address TEXT, ssn INTEGER, PRIMARY KEY (first, last), INDEX by_ssn "
                  "(ssn, last)",
                  &s));
    CHECK_SLICE(
        json_of(&s),
        SLICE(
            "{\"format\":1,\"columns\":[{\"id\":1,\"name\":\"first\",\"type\":\"TEXT\",\"not_null\":true},"
            "{\"id\":2,\"name\":\"last\",\"type\":\"TEXT\",\"not_null\":true},"
            "{\"id\":3,\"name\":\"address\",\"type\":\"TEXT\"},{\"id\":4,\"name\":\"ssn\",\"type\":"
            "\"INTEGER\"}],"
            "\"key\":[{\"column\":1},{\"column\":2}],\"indexes\":[{\"number\":1,\"name\":\"by_ssn\","
            "\"parts\":[{\"column\":4},{\"column\":2}]}],\"checks\":[],\"next_column\":5,\"next_index\":2}"));
}

static void takes_everything_that_is_written_down(void)
{
    struct schema s;
    REQUIRE(table(
        "UNIQUE INDEX u (b DESC, c ASC), -- before its columns\n"
        "id BIGINT PRIMARY KEY DESC, /* a * comment */ \"b\" VARCHAR(30) NOT NULL DEFAULT 'it''s' UNIQUE,"
        "`c` DOUBLE PRECISION NULL DEFAULT (-1.5) CHECK (c < 5 /* five */ AND (c) <> 'a)'), "
        "[d] BLOB DEFAULT x'00fF', e bool DEFAULT TRUE, f TIMESTAMP DEFAULT '1970-01-02', "
        "g JSON DEFAULT '{\"a\": 1}', h INTEGER DEFAULT +5, i INTEGER DEFAULT -9223372036854775808, "
        "j INT DEFAULT NULL, UNIQUE (b, c), UNIQUE (b), CONSTRAINT mine UNIQUE (e), CHECK(h>0), "
        "CONSTRAINT x CHECK ( h\n\t< 9 ), k TEXT COLLATE BINARY, check INT, primary INT, unique INT",
        &s));
    CHECK_EQ(s.ncolumns, 14);
    CHECK_EQ(s.nkey, 1);
    CHECK(s.key[0].desc && s.key[0].column == 0 && s.columns[0].not_null);
    CHECK(s.columns[1].not_null && slice_eq(s.columns[1].default_value.s, SLICE("it's")));
    CHECK(s.columns[2].type == COLUMN_REAL && s.columns[2].default_value.d == -1.5);
    CHECK_SLICE(s.columns[3].default_value.s, slice_of("\0\xff", 2));
    CHECK(s.columns[4].type == COLUMN_BOOLEAN && s.columns[4].default_value.kind == VALUE_BOOL);
    CHECK_EQ(s.columns[5].default_value.i, 86400000);
    CHECK_SLICE(s.columns[6].default_value.s, SLICE("{\"a\": 1}"));
    CHECK_EQ(s.columns[7].default_value.i, 5);
    CHECK_EQ(s.columns[8].default_value.i, INT64_MIN);
    CHECK(s.columns[9].has_default && s.columns[9].default_value.kind == VALUE_NULL);
    CHECK_EQ(s.nindexes, 5);
    CHECK(s.indexes[0].unique && s.indexes[0].parts[0].desc && !s.indexes[0].parts[1].desc);
    CHECK_SLICE(s.indexes[1].name, SLICE("b_unique"));
    CHECK_SLICE(s.indexes[2].name, SLICE("b_c_unique"));
    CHECK_SLICE(s.indexes[3].name, SLICE("b_unique_2"));
    CHECK_SLICE(s.indexes[4].name, SLICE("mine"));
    CHECK_EQ(s.indexes[4].number, 5);
    CHECK_EQ(s.next_index, 6);
    CHECK_EQ(s.nchecks, 3);
    CHECK_SLICE(s.checks[0], SLICE("c < 5 AND (c) <> 'a)'"));
    CHECK_SLICE(s.checks[1], SLICE("h>0"));
    CHECK_SLICE(s.checks[2], SLICE("h < 9"));
}

static void says_what_is_wrong(void)
{
    CHECK(refuses("", FAULT_SYNTAX, "expected the name of a column, not the end"));
    CHECK(refuses("a TEXT", FAULT_SYNTAX, "PRIMARY KEY"));
    CHECK(refuses("a TEXT PRIMARY KEY,", FAULT_SYNTAX, "expected the name of a column"));
    CHECK(refuses("a", FAULT_SYNTAX, "column a needs a type"));
    CHECK(refuses("a NUMERIC(5) PRIMARY KEY", FAULT_SYNTAX, "needs a type, not 'NUMERIC'"));
    CHECK(refuses("a TEXT PRIMARY", FAULT_SYNTAX, "expected KEY"));
    CHECK(refuses("a TEXT PRIMARY KEY, b TEXT PRIMARY KEY", FAULT_SYNTAX, "one PRIMARY KEY"));
    CHECK(refuses("a TEXT PRIMARY KEY, A TEXT", FAULT_EXISTS, "column A is there twice"));
    CHECK(refuses("a TEXT, PRIMARY KEY (b)", FAULT_NO_COLUMN, "no column b"));
    CHECK(refuses("a TEXT, PRIMARY KEY (a, a)", FAULT_EXISTS, "twice"));
    CHECK(refuses("a JSON PRIMARY KEY", FAULT_REFUSED, "JSON"));
    CHECK(refuses("a TEXT PRIMARY KEY, b JSON, INDEX i (b)", FAULT_REFUSED, "JSON"));
    CHECK(refuses("a TEXT PRIMARY KEY, INDEX i (c)", FAULT_NO_COLUMN, "no column c"));
    CHECK(refuses("a TEXT PRIMARY KEY, INDEX i (a), INDEX I (a)", FAULT_EXISTS, "index I is there twice"));
    CHECK(refuses("a TEXT PRIMARY KEY, INDEX i ()", FAULT_SYNTAX, "expected the name of a column"));
    CHECK(refuses("a TEXT PRIMARY KEY, INDEX i (lower(a))", FAULT_SYNTAX, "expected ')'"));
    CHECK(refuses("a TEXT PRIMARY KEY DEFAULT NULL", FAULT_CONSTRAINT, "DEFAULT NULL"));
    CHECK(refuses("a TEXT PRIMARY KEY, b INT DEFAULT 'x'", FAULT_BAD_TYPE, "column b"));
    CHECK(refuses("a TEXT PRIMARY KEY, b INT DEFAULT 9223372036854775808", FAULT_BAD_TYPE, "64 bits"));
    CHECK(refuses("a TEXT PRIMARY KEY, b INT DEFAULT a", FAULT_SYNTAX, "expected a constant"));
    CHECK(refuses("a TEXT PRIMARY KEY, b INT DEFAULT -'5'", FAULT_SYNTAX, "expected a number"));
    CHECK(refuses("a TEXT PRIMARY KEY, b TIMESTAMP DEFAULT CURRENT_TIMESTAMP", FAULT_REFUSED, "constant"));
    CHECK(refuses("a TEXT PRIMARY KEY, b BLOB DEFAULT x'0'", FAULT_SYNTAX, "hexadecimal"));
    CHECK(refuses("a INTEGER PRIMARY KEY AUTOINCREMENT", FAULT_REFUSED, "AUTOINCREMENT"));
    CHECK(refuses("a TEXT PRIMARY KEY REFERENCES b (c)", FAULT_REFUSED, "REFERENCES"));
    CHECK(refuses("a TEXT PRIMARY KEY, FOREIGN KEY (a) REFERENCES b (c)", FAULT_REFUSED, "FOREIGN"));
    CHECK(refuses("a TEXT COLLATE NOCASE PRIMARY KEY", FAULT_REFUSED, "NOCASE"));
    CHECK(refuses("a TEXT PRIMARY KEY b TEXT", FAULT_SYNTAX, "not b, at byte 19"));
    CHECK(refuses("a TEXT PRIMARY KEY; DROP TABLE t", FAULT_SYNTAX, "not ;"));
    CHECK(refuses("9a TEXT PRIMARY KEY", FAULT_SYNTAX, "no number"));
    CHECK(refuses("\"a b\" TEXT PRIMARY KEY", FAULT_SYNTAX, "'a b' cannot be the name of a column"));
    CHECK(refuses("larder_a TEXT PRIMARY KEY", FAULT_SYNTAX, "cannot be the name"));
    CHECK(refuses("a TEXT PRIMARY KEY, \"limit\" INT", FAULT_REFUSED, "limit"));
    CHECK(refuses("a TEXT PRIMARY KEY, CHECK ()", FAULT_SYNTAX, "an expression"));
    CHECK(refuses("a TEXT PRIMARY KEY, CHECK (a", FAULT_SYNTAX, "expected ')'"));
    CHECK(refuses("a TEXT PRIMARY KEY, CHECK (a; b)", FAULT_SYNTAX, "expected ')'"));
    CHECK(refuses("a TEXT PRIMARY KEY, CHECK (a = ?)", FAULT_SYNTAX, "unexpected character"));
    CHECK(refuses("a TEXT 'x", FAULT_SYNTAX, "no end"));
    CHECK(refuses("a TEXT /* x", FAULT_SYNTAX, "no end"));
    CHECK(refuses("a TEXT PRIMARY KEY, CONSTRAINT x b TEXT", FAULT_SYNTAX,
                  "expected PRIMARY KEY, UNIQUE or CHECK"));
}

static void tables_over_hashes_have_less(void)
{
    struct schema s;
    struct slice prefix = SLICE("users:");
    fault = (struct fault){0};
    REQUIRE(
        ddl_table(SLICE("id TEXT, name TEXT, age INTEGER, INDEX by_age (age)"), &prefix, &arena, &s, &fault));
    CHECK(s.on_hashes && slice_eq(s.prefix, prefix) && s.nkey == 1 && s.key[0].column == 0);
    CHECK_EQ(s.indexes[0].state, INDEX_BUILDING);
    static const char *const bad[] = {"id TEXT, a INT NOT NULL",      "id TEXT, a INT UNIQUE",
                                      "id TEXT, a INT CHECK (a > 0)", "id INTEGER, a TEXT",
                                      "a TEXT, id TEXT PRIMARY KEY",  "id TEXT PRIMARY KEY DESC"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fault = (struct fault){0};
        check.context = bad[i];
        CHECK(!ddl_table(slice_str(bad[i]), &prefix, &arena, &s, &fault));
        CHECK_EQ(fault.kind, FAULT_REFUSED);
    }
}

/* ---- limits ---- */

/* each, n times, with the number in the place of its # */
static struct slice repeated(const char *begin, const char *each, size_t n, const char *end)
{
    struct buf out = {0};
    size_t before = strcspn(each, "#");
    buf_addf(&out, "%s", begin);
    for (size_t i = 0; i < n; i++) {
        buf_add(&out, each, before);
        if (each[before])
            buf_addf(&out, "%zu%s", i, each + before + 1);
    }
    buf_addf(&out, "%s", end);
    struct slice copy = arena_copy(&arena, buf_slice(&out));
    buf_release(&out);
    return copy;
}

static enum fault_kind fault_of(struct slice text)
{
    struct schema s;
    fault = (struct fault){0};
    (void)ddl_table(text, NULL, &arena, &s, &fault);
    return fault.kind;
}

static void limits_are_told(void)
{
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY", ", c# INT", 999, "")), FAULT_NONE);
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY", ", c# INT", 1999, "")), FAULT_TOO_LONG);
    CHECK(strstr(fault.text, "2000 columns"));
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY",
                               ", c# TEXT DEFAULT '0123456789012345678901234567890123456789'", 900, "")),
             FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY", ", INDEX i# (id)", 65, "")), FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY", ", CHECK (id > #)", 65, "")), FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT", ", CHECK (id > #)", 20000, "")), FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT", " CHECK (id > #)", 20000, "")), FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT, INDEX i (id", ", c#", 16, ")")), FAULT_TOO_LONG);
    CHECK_EQ(fault_of(repeated("id INT PRIMARY KEY, CHECK (", "(", 100000, "")), FAULT_TOO_LONG);
    CHECK(strstr(fault.text, "brackets"));
    char long_name[66];
    memset(long_name, 'a', 65);
    long_name[65] = '\0';
    CHECK_EQ(fault_of(repeated(long_name, "", 0, " INT PRIMARY KEY")), FAULT_SYNTAX);
    CHECK_EQ(fault_of(repeated(long_name + 2, "", 0, " INT PRIMARY KEY, UNIQUE (aaaa), aaaa INT")),
             FAULT_NONE);
}

/* Long names make an index name that is cut, and still one. */
static void names_of_unique_constraints_are_cut(void)
{
    struct schema s;
    char text[600], name[64];
    memset(name, 'n', 63);
    name[63] = '\0';
    snprintf(text, sizeof text, "%s INT PRIMARY KEY, b INT, UNIQUE (%s, b), UNIQUE (b, %s), UNIQUE (%s, b)",
             name, name, name, name);
    REQUIRE(table(text, &s));
    CHECK(s.indexes[0].name.n <= SCHEMA_NAME_MAX && s.indexes[2].name.n <= SCHEMA_NAME_MAX);
    CHECK(!slice_eq(s.indexes[0].name, s.indexes[2].name));
}

static void hostile_texts_end_quickly(void)
{
    size_t n = 10 << 20;
    char *big = malloc(n);
    REQUIRE(big);
    static const char fills[] = {'(', '\'', '"', '-', '/', ' ', 'a', ',', '\0', (char)0xff, '9', '['};
    clock_t from = clock();
    for (size_t i = 0; i < sizeof fills; i++) {
        memset(big, fills[i], n);
        CHECK_EQ(fault_of(slice_of(big, n)), FAULT_TOO_LONG);
        CHECK(fault_of(slice_of(big, 262144)) != FAULT_NONE);
        memcpy(big, "a INT PRIMARY KEY, CHECK (", 26);
        CHECK(fault_of(slice_of(big, 262144)) != FAULT_NONE);
        memcpy(big, "a INT PRIMARY KEY DEFAULT ", 26);
        CHECK(fault_of(slice_of(big, 262144)) != FAULT_NONE);
        arena_reset(&arena);
    }
    CHECK((clock() - from) / CLOCKS_PER_SEC < 5);
    free(big);
    CHECK_EQ(fault_of(slice_of("a INT PRIMARY KEY\0", 18)), FAULT_SYNTAX);
    CHECK_EQ(fault_of(slice_of("a INT PRIMARY KEY -- \xff", 22)), FAULT_SYNTAX);
}

/* ---- alterations ---- */

static const char *const base_text =
    "id INT PRIMARY KEY, a TEXT, b INT CHECK (b > 0 AND B < 9), c REAL, d TEXT, "
    "INDEX by_a (a), UNIQUE INDEX by_d (d DESC, id)";

static bool alter(const char *text, struct schema *ret, enum alter_kind *kind, uint16_t *number)
{
    struct schema base;
    CHECK(table(base_text, &base));
    fault = (struct fault){0};
    struct slice before = json_of(&base);
    bool ok = ddl_alter(slice_str(text), &base, &arena, ret, kind, number, &fault);
    CHECK_EQ(ok, fault.kind == FAULT_NONE);
    CHECK_SLICE(json_of(&base), before);
    return ok;
}

static bool no_alter(const char *text, enum fault_kind kind, const char *words)
{
    struct schema s;
    enum alter_kind k;
    uint16_t n;
    bool ok = !alter(text, &s, &k, &n) && fault.kind == kind && strstr(fault.text, words);
    if (!ok)
        printf("    %s\n    gives %s %s\n", text, fault_code(fault.kind), fault.text);
    return ok;
}

static void alters_columns(void)
{
    struct schema s, t;
    enum alter_kind kind;
    uint16_t number;
    REQUIRE(alter("ADD COLUMN e INTEGER NOT NULL DEFAULT 7", &s, &kind, &number));
    CHECK(kind == ALTER_ADD_COLUMN && s.ncolumns == 6 && s.columns[5].id == 6 && s.next_column == 7);
    CHECK(s.columns[5].missing.i == 7 && s.columns[5].default_value.i == 7 && s.columns[5].not_null);
    REQUIRE(alter("add unique text", &s, &kind, &number));
    CHECK(kind == ALTER_ADD_COLUMN && s.columns[5].missing.kind == VALUE_NULL);
    REQUIRE(alter("DROP COLUMN c", &s, &kind, &number));
    CHECK(kind == ALTER_DROP_COLUMN && s.ncolumns == 4 && s.next_column == 6);
    CHECK_SLICE(s.columns[s.indexes[1].parts[0].column].name, SLICE("d"));
    CHECK_SLICE(s.columns[s.indexes[1].parts[1].column].name, SLICE("id"));
    fault = (struct fault){0};
    REQUIRE(ddl_alter(SLICE("ADD c TEXT"), &s, &arena, &t, &kind, &number, &fault));
    CHECK_EQ(t.columns[4].id, 6); /* never that of the dropped one */
    REQUIRE(alter("RENAME COLUMN a TO \"z\"", &s, &kind, &number));
    CHECK(kind == ALTER_RENAME_COLUMN && schema_column(&s, SLICE("z")) == 1 &&
          s.indexes[0].parts[0].column == 1);
    REQUIRE(alter("RENAME a TO A", &s, &kind, &number));
    CHECK_SLICE(s.columns[1].name, SLICE("A"));
    CHECK(alter("RENAME id TO COLUMN", &s, &kind, &number) && alter("DROP c -- gone", &s, &kind, &number));
}

static void alters_indexes(void)
{
    struct schema s;
    enum alter_kind kind;
    uint16_t number = 0;
    REQUIRE(alter("ADD INDEX by_c (c DESC, a)", &s, &kind, &number));
    CHECK(kind == ALTER_ADD_INDEX && number == 3 && s.nindexes == 3 && s.indexes[2].number == 3 &&
          s.next_index == 4);
    CHECK(s.indexes[2].state == INDEX_BUILDING && !s.indexes[2].unique && s.indexes[2].parts[0].desc);
    REQUIRE(alter("ADD UNIQUE INDEX u (c)", &s, &kind, &number));
    CHECK(s.indexes[2].unique);
    REQUIRE(alter("DROP INDEX BY_A", &s, &kind, &number));
    CHECK(kind == ALTER_DROP_INDEX && number == 1 && s.nindexes == 1 && s.next_index == 3);
}

static void refuses_alterations(void)
{
    CHECK(no_alter("", FAULT_SYNTAX, "expected ADD, DROP or RENAME"));
    CHECK(no_alter("SET a", FAULT_SYNTAX, "expected ADD"));
    CHECK(no_alter("ADD", FAULT_SYNTAX, "name of a column"));
    CHECK(no_alter("ADD COLUMN a TEXT", FAULT_EXISTS, "column a"));
    CHECK(no_alter("ADD e TEXT NOT NULL", FAULT_REFUSED, "DEFAULT"));
    CHECK(no_alter("ADD e TEXT UNIQUE", FAULT_REFUSED, "column e"));
    CHECK(no_alter("ADD e TEXT PRIMARY KEY", FAULT_REFUSED, "column e"));
    CHECK(no_alter("ADD e INT CHECK (e > 0)", FAULT_REFUSED, "column e"));
    CHECK(no_alter("ADD e TEXT, f TEXT", FAULT_SYNTAX, "the end"));
    CHECK(no_alter("ADD \"order\" TEXT", FAULT_REFUSED, "order"));
    CHECK(no_alter("DROP COLUMN x", FAULT_NO_COLUMN, "no column x"));
    CHECK(no_alter("DROP id", FAULT_REFUSED, "primary key"));
    CHECK(no_alter("DROP a", FAULT_REFUSED, "index by_a"));
    CHECK(no_alter("DROP b", FAULT_REFUSED, "CHECK (b > 0"));
    CHECK(no_alter("RENAME b TO z", FAULT_REFUSED, "CHECK (b > 0"));
    CHECK(no_alter("RENAME a TO d", FAULT_EXISTS, "column d"));
    CHECK(no_alter("RENAME x TO y", FAULT_NO_COLUMN, "no column x"));
    CHECK(no_alter("RENAME a TO larder_a", FAULT_SYNTAX, "cannot be the name"));
    CHECK(no_alter("RENAME a d", FAULT_SYNTAX, "expected TO"));
    CHECK(no_alter("ADD INDEX by_a (b)", FAULT_EXISTS, "index by_a"));
    CHECK(no_alter("ADD INDEX i (x)", FAULT_NO_COLUMN, "no column x"));
    CHECK(no_alter("ADD UNIQUE (a)", FAULT_SYNTAX, "needs a type"));
    CHECK(no_alter("DROP INDEX x", FAULT_NO_INDEX, "no index x"));
    CHECK(no_alter("DROP INDEX by_a CASCADE", FAULT_SYNTAX, "the end"));
    struct schema s, t;
    enum alter_kind kind;
    uint16_t number;
    struct slice prefix = SLICE("p:");
    fault = (struct fault){0};
    REQUIRE(ddl_table(SLICE("id TEXT, a TEXT"), &prefix, &arena, &s, &fault));
    CHECK(!ddl_alter(SLICE("RENAME a TO b"), &s, &arena, &t, &kind, &number, &fault));
    CHECK_EQ(fault.kind, FAULT_REFUSED);
    fault = (struct fault){0};
    REQUIRE(table(base_text, &s));
    s.next_index = SCHEMA_NUMBER_MAX + 1;
    CHECK(!ddl_alter(SLICE("ADD INDEX i (a)"), &s, &arena, &t, &kind, &number, &fault));
    CHECK_EQ(fault.kind, FAULT_TOO_LONG);
}

/* ---- statements ---- */

static bool statement(const char *sql, struct ddl *d, struct slice *rest)
{
    fault = (struct fault){0};
    bool ok = ddl_statement(slice_str(sql), &arena, d, rest, &fault);
    CHECK(!ok || fault.kind == FAULT_NONE);
    return ok;
}

static void reads_statements(void)
{
    struct ddl d;
    struct slice rest;
    struct schema s, t;
    enum alter_kind kind;
    uint16_t number;
    REQUIRE(statement(
        ";; CREATE TABLE IF NOT EXISTS main.\"t\" (a INT, -- )\n PRIMARY KEY (a)) WITHOUT ROWID, strict;"
        " SELECT 1",
        &d, &rest));
    CHECK(d.kind == DDL_CREATE_TABLE && d.if_not_exists);
    CHECK_SLICE(d.table, SLICE("t"));
    CHECK_SLICE(rest, SLICE(" SELECT 1"));
    REQUIRE(ddl_table(d.text, NULL, &arena, &s, &fault));
    REQUIRE(statement("create unique index if not exists i on t(a desc)", &d, &rest));
    CHECK(d.kind == DDL_CREATE_INDEX && d.if_not_exists && rest.n == 0);
    CHECK_SLICE(d.index, SLICE("i"));
    CHECK_SLICE(d.text, SLICE("ADD UNIQUE INDEX \"i\"(a desc)"));
    REQUIRE(ddl_alter(d.text, &s, &arena, &t, &kind, &number, &fault));
    CHECK(kind == ALTER_ADD_INDEX && t.indexes[0].unique && t.indexes[0].parts[0].desc);
    REQUIRE(statement("DROP INDEX IF EXISTS i ON t;", &d, &rest));
    CHECK(d.kind == DDL_DROP_INDEX && d.if_exists && slice_eq(d.table, SLICE("t")));
    fault = (struct fault){0};
    REQUIRE(ddl_alter(d.text, &t, &arena, &s, &kind, &number, &fault));
    REQUIRE(statement("DROP INDEX \"a\"\"b\"", &d, &rest));
    CHECK_SLICE(d.index, SLICE("a\"b"));
    CHECK_SLICE(d.text, SLICE("DROP INDEX \"a\"\"b\""));
    CHECK(!d.table.n && !d.if_exists);
    REQUIRE(statement("DROP TABLE t", &d, &rest) && d.kind == DDL_DROP_TABLE && !d.if_exists);
    REQUIRE(statement("ALTER TABLE t RENAME TO u;", &d, &rest) && d.kind == DDL_RENAME_TABLE);
    CHECK_SLICE(d.name, SLICE("u"));
    REQUIRE(statement("ALTER TABLE t RENAME COLUMN a TO b; DROP TABLE t", &d, &rest) &&
            d.kind == DDL_ALTER_TABLE);
    CHECK_SLICE(d.text, SLICE("RENAME COLUMN a TO b"));
    CHECK_SLICE(rest, SLICE(" DROP TABLE t"));
    REQUIRE(statement("ALTER TABLE t ADD b TEXT DEFAULT ';' -- x", &d, &rest));
    CHECK_SLICE(d.text, SLICE("ADD b TEXT DEFAULT ';'"));
}

static void leaves_other_statements_alone(void)
{
    static const char *const other[] = {"",
                                        ";",
                                        "SELECT 1",
                                        "INSERT INTO t VALUES (1)",
                                        "CREATE VIEW v AS SELECT 1",
                                        "CREATE",
                                        "CREATE TRIGGER x",
                                        "CREATE VIRTUAL TABLE t USING x",
                                        "DROP",
                                        "DROP VIEW v",
                                        "ALTER",
                                        "ALTER VIEW v",
                                        "'unclosed",
                                        "/* unclosed",
                                        "? ?",
                                        "EXPLAIN CREATE TABLE t (a)",
                                        "CREATE UNIQUE TABLE t (a INT)",
                                        "\xff"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct ddl d;
        struct slice rest;
        check.context = other[i];
        CHECK(!statement(other[i], &d, &rest) && fault.kind == FAULT_NONE);
        CHECK_SLICE(rest, slice_str(other[i]));
    }
}

static void refuses_statements(void)
{
    static const struct {
        const char *sql;
        enum fault_kind kind;
    } bad[] = {{"CREATE TABLE", FAULT_SYNTAX},
               {"CREATE TABLE t", FAULT_SYNTAX},
               {"CREATE TABLE t (a INT", FAULT_SYNTAX},
               {"CREATE TABLE t (a INT; b INT)", FAULT_SYNTAX},
               {"CREATE TABLE t (a INT) ENGINE = x", FAULT_SYNTAX},
               {"CREATE TABLE t (a INT) STRICT,", FAULT_SYNTAX},
               {"CREATE TABLE t (a INT) WITHOUT", FAULT_SYNTAX},
               {"CREATE TABLE other.t (a INT)", FAULT_REFUSED},
               {"CREATE TABLE t AS SELECT 1", FAULT_REFUSED},
               {"CREATE TEMP TABLE t (a INT)", FAULT_REFUSED},
               {"CREATE INDEX i", FAULT_SYNTAX},
               {"CREATE INDEX i ON t", FAULT_SYNTAX},
               {"CREATE INDEX i ON t (a) WHERE a > 1", FAULT_REFUSED},
               {"CREATE INDEX IF EXISTS i ON t (a)", FAULT_SYNTAX},
               {"DROP TABLE t, u", FAULT_SYNTAX},
               {"DROP TABLE IF t", FAULT_SYNTAX},
               {"DROP INDEX", FAULT_SYNTAX},
               {"ALTER TABLE", FAULT_SYNTAX},
               {"ALTER TABLE t RENAME TO", FAULT_SYNTAX},
               {"ALTER TABLE t RENAME TO u v", FAULT_SYNTAX},
               {"CREATE TABLE t ('x", FAULT_SYNTAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct ddl d;
        struct slice rest;
        check.context = bad[i].sql;
        CHECK(!statement(bad[i].sql, &d, &rest));
        CHECK_EQ(fault.kind, bad[i].kind);
    }
    /* Ten megabytes are told to be too many without reading them. */
    static const char *const begins[] = {"CREATE TABLE t (", "CREATE INDEX i ON t (", "ALTER TABLE t "};
    size_t n = 10 << 20;
    char *big = malloc(n);
    REQUIRE(big);
    for (size_t i = 0; i < 3; i++) {
        struct ddl d;
        struct slice rest;
        memset(big, '(', n);
        memcpy(big, begins[i], strlen(begins[i]));
        fault = (struct fault){0};
        CHECK(!ddl_statement(slice_of(big, n), &arena, &d, &rest, &fault));
        CHECK_EQ(fault.kind, FAULT_TOO_LONG);
    }
    free(big);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(makes_the_table_of_people);
    RUN(takes_everything_that_is_written_down);
    RUN(says_what_is_wrong);
    RUN(tables_over_hashes_have_less);
    RUN(limits_are_told);
    RUN(names_of_unique_constraints_are_cut);
    RUN(hostile_texts_end_quickly);
    RUN(alters_columns);
    RUN(alters_indexes);
    RUN(refuses_alterations);
    RUN(reads_statements);
    RUN(leaves_other_statements_alone);
    RUN(refuses_statements);
    arena_release(&arena);
    return check_done();
}
