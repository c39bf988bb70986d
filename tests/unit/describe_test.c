/* Tables as texts: what describes a table makes it again, and its view shows its rows. */
#include "table/text/describe.h"

#include <sqlite3.h>

#include "base/clock.h"
#include "check.h"
#include "table/rowcode.h"
#include "table/text/ddl.h"

static struct arena arena;
static struct fault fault;

static const char *const tables[] = {
    "first TEXT, last TEXT, address TEXT, ssn INTEGER, PRIMARY KEY (first, last), INDEX by_ssn (ssn, last)",
    "id INT PRIMARY KEY DESC, \"select_\" TEXT NOT NULL DEFAULT 'it''s \"x\"', \"values\" REAL DEFAULT "
    "-1.5e300, "
    "\"table\" BLOB DEFAULT x'00ff', \"check\" BOOLEAN DEFAULT TRUE, at TIMESTAMP DEFAULT "
    "'2026-11-16T10:00:00.123Z', "
    "doc JSON DEFAULT '{\"a\": \"it''s\"}', n INT DEFAULT NULL, m INT DEFAULT -9223372036854775808, "
    "UNIQUE (\"values\" DESC, id), UNIQUE INDEX \"group\" (\"table\"), CHECK (m < 0 AND n <> 'a''b'), CHECK "
    "(\"check\")",
    "first TEXT, last TEXT, key INT, row INT, rows INT, action INT, no INT, plan INT, query INT, of INT, "
    "others INT, "
    "each INT, view INT, do INT, fail INT, ignore INT, range INT, groups INT, offset INT, match INT, temp "
    "INT, "
    "PRIMARY KEY (first, key, row, rows, action, no, plan, query, of), INDEX first (others, each, view, do, "
    "fail, "
    "ignore, range, groups, offset, match, temp, last)",
    "a TEXT, b BLOB, c BOOLEAN, d TIMESTAMP, e REAL, PRIMARY KEY (a DESC, b, c, d DESC, e)"};

static struct slice json_of(const struct schema *s)
{
    struct buf out = {0};
    schema_encode(s, &out);
    struct slice copy = arena_copy(&arena, buf_slice(&out));
    buf_release(&out);
    return copy;
}

static void what_describes_a_table_makes_it_again(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct schema s, again;
        struct buf text = {0};
        fault = (struct fault){0};
        check.context = tables[i];
        REQUIRE(ddl_table(slice_str(tables[i]), NULL, &arena, &s, &fault));
        schema_describe(&s, &text);
        REQUIRE(ddl_table(buf_slice(&text), NULL, &arena, &again, &fault));
        CHECK_SLICE(json_of(&again), json_of(&s));
        buf_release(&text);
    }
}

static void statements_make_it_again(void)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct schema s, again = {0}, next;
        struct buf text = {0};
        struct slice rest;
        struct ddl d;
        enum alter_kind kind;
        uint16_t number;
        sqlite3 *db;
        fault = (struct fault){0};
        check.context = tables[i];
        REQUIRE(ddl_table(slice_str(tables[i]), NULL, &arena, &s, &fault));
        schema_sql(&s, SLICE("order"), &text);
        for (rest = buf_slice(&text); ddl_statement(rest, &arena, &d, &rest, &fault);) {
            CHECK_SLICE(d.table, SLICE("order"));
            if (d.kind == DDL_CREATE_TABLE) {
                REQUIRE(ddl_table(d.text, NULL, &arena, &again, &fault));
                continue;
            }
            REQUIRE(d.kind == DDL_CREATE_INDEX);
            REQUIRE(ddl_alter(d.text, &again, &arena, &next, &kind, &number, &fault));
            again = next;
            again.indexes[again.nindexes - 1].state = INDEX_READY;
        }
        CHECK_EQ(fault.kind, FAULT_NONE);
        CHECK_SLICE(json_of(&again), json_of(&s));
        /* SQLite reads them too. */
        REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
        buf_add(&text, "", 1);
        int rc = sqlite3_exec(db, text.p, NULL, NULL, NULL);
        CHECK_STR(sqlite3_errmsg(db), rc == SQLITE_OK ? "not an error" : "");
        sqlite3_close(db);
        buf_release(&text);
    }
}

/* ---- views ---- */

static sqlite3 *open_store(void)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        return NULL;
    sqlite3_exec(
        db,
        "CREATE TABLE larder_key (type INTEGER, id INTEGER, expire_at INTEGER);"
        "INSERT INTO larder_key VALUES (6, 7, 0), (6, 8, 1), (1, 9, 0);"
        "CREATE TABLE larder_row (id INTEGER NOT NULL, name BLOB NOT NULL, expire_at INTEGER NOT NULL,"
        " value BLOB NOT NULL, PRIMARY KEY (id, name)) STRICT;"
        "CREATE TABLE larder_hashes (db INTEGER, key TEXT, field TEXT, value TEXT, key_bytes BLOB AS (key))",
        NULL, NULL, NULL);
    return db;
}

static void put_row(sqlite3 *db, int64_t id, struct slice name, struct slice value, int64_t expire_at)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3_prepare_v2(db, "INSERT INTO larder_row VALUES (?1, ?2, ?3, ?4)", -1, &stmt, NULL);
    sqlite3_bind_int64(stmt, 1, id);
    sqlite3_bind_blob(stmt, 2, name.p, (int)name.n, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 3, expire_at);
    sqlite3_bind_blob(stmt, 4, value.p, (int)value.n, SQLITE_STATIC);
    CHECK_EQ(sqlite3_step(stmt), SQLITE_DONE);
    sqlite3_finalize(stmt);
}

/* All that a query gives: columns with | between them, rows with a newline behind each. */
static struct slice answer(sqlite3 *db, const char *sql)
{
    struct buf out = {0};
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        buf_addf(&out, "%s", sqlite3_errmsg(db));
    int rc = SQLITE_DONE;
    while (stmt && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const unsigned char *text = sqlite3_column_text(stmt, i);
            buf_addf(&out, "%s%s", i ? "|" : "", text ? (const char *)text : "NULL");
        }
        buf_add(&out, "\n", 1);
    }
    if (rc != SQLITE_DONE)
        buf_addf(&out, "%s", sqlite3_errmsg(db));
    sqlite3_finalize(stmt);
    struct slice copy = arena_copy(&arena, buf_slice(&out));
    buf_release(&out);
    return copy;
}

static void make_view(sqlite3 *db, const struct schema *s, const char *name, int64_t id)
{
    struct buf text = {0};
    schema_view(s, slice_str(name), 3, id, DIALECT_SQLITE, &text);
    buf_add(&text, "", 1);
    if (sqlite3_exec(db, text.p, NULL, NULL, NULL) != SQLITE_OK)
        printf("%s\n%s\n", text.p, sqlite3_errmsg(db));
    buf_release(&text);
}

static void a_view_shows_rows(void)
{
    struct schema s, old;
    enum alter_kind kind;
    uint16_t number;
    sqlite3 *db = open_store();
    REQUIRE(db);
    fault = (struct fault){0};
    REQUIRE(ddl_table(SLICE("id INT PRIMARY KEY, gone TEXT, \"order_\" TEXT, r REAL, b BLOB, ok BOOLEAN, at "
                            "TIMESTAMP, j JSON"),
                      NULL, &arena, &s, &fault));
    static const char *const alters[] = {"DROP gone",
                                         "ADD more INT DEFAULT 5",
                                         "ADD words TEXT DEFAULT 'it''s \\'",
                                         "ADD bytes BLOB DEFAULT x'ff'",
                                         "ADD yes BOOLEAN DEFAULT TRUE",
                                         "ADD moment TIMESTAMP DEFAULT '2000-01-01'",
                                         "ADD half REAL DEFAULT 0.5",
                                         "ADD doc JSON DEFAULT '{\"a\":1}'",
                                         "ADD none TEXT"};
    for (size_t i = 0; i < sizeof alters / sizeof *alters; i++) {
        old = s;
        REQUIRE(ddl_alter(slice_str(alters[i]), &old, &arena, &s, &kind, &number, &fault));
    }
    put_row(db, 7, SLICE("a"),
            SLICE("[1,1,\"gone\",\"x\\n\\\"\",5.0,\"/w==\",true,1794823200123,{\"a\" : [1]}]"), 0);
    put_row(
        db, 7, SLICE("b"),
        SLICE(
            "[2,9223372036854775807,null,null,null,null,null,null,null,null,null,null,null,null,null,null]"),
        0);
    put_row(db, 7, SLICE("c"),
            SLICE("[3,-1,null,\"\",1e+300,\"\",false,-1,\"s\",7,\"w\",\"AA==\",false,0,1.5,[],\"n\"]"),
            clock_wall_us() / 1000 + 100000);
    put_row(db, 7, SLICE("d"), SLICE("[3,5]"), 1); /* has expired */
    put_row(db, 6, SLICE("a"), SLICE("[3,6]"), 0); /* another table's */
    make_view(db, &s, "order", 7);
    CHECK_SLICE(
        answer(db, "SELECT * FROM \"order\" ORDER BY id"),
        SLICE("-1||1.0e+300||0|1969-12-31 23:59:59.999|\"s\"|7|w|AA==|0|1970-01-01 00:00:00.000|1.5|[]|n\n"
              "1|x\n\"|5.0|/w==|1|2026-11-16 10:00:00.123|{\"a\":[1]}|5|it's \\|/w==|1|2000-01-01 "
              "00:00:00.000|0.5|"
              "{\"a\":1}|NULL\n"
              "9223372036854775807|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL\n"));
    CHECK_SLICE(answer(db, "SELECT typeof(id), typeof(r), typeof(more), typeof(half), typeof(words) FROM "
                           "\"order\" WHERE id = 1"),
                SLICE("integer|real|integer|real|text\n"));
    /* A table whose key has expired, one that has gone. */
    make_view(db, &s, "expired", 8);
    make_view(db, &s, "gone", 9);
    put_row(db, 8, SLICE("a"), SLICE("[3,6]"), 0);
    put_row(db, 9, SLICE("a"), SLICE("[3,6]"), 0);
    CHECK_SLICE(answer(db, "SELECT count(*) FROM expired UNION ALL SELECT count(*) FROM gone"),
                SLICE("0\n0\n"));
    sqlite3_close(db);
}

static void a_view_shows_hashes(void)
{
    struct schema s;
    struct slice prefix = SLICE("it's:");
    sqlite3 *db = open_store();
    REQUIRE(db);
    fault = (struct fault){0};
    REQUIRE(ddl_table(SLICE("id TEXT, name TEXT, age INTEGER"), &prefix, &arena, &s, &fault));
    make_view(db, &s, "users", 7);
    sqlite3_exec(
        db,
        "INSERT INTO larder_hashes VALUES (3, 'it''s:1', 'name', 'Mary'), (3, 'it''s:1', 'age', '42'),"
        " (3, 'it''s:2', 'name', 'Jo'), (3, 'other:1', 'name', 'x'), (2, 'it''s:1', 'name', 'y')",
        NULL, NULL, NULL);
    CHECK_SLICE(answer(db, "SELECT * FROM users ORDER BY id"), SLICE("1|Mary|42\n2|Jo|NULL\n"));
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    RUN(what_describes_a_table_makes_it_again);
    RUN(statements_make_it_again);
    RUN(a_view_shows_rows);
    RUN(a_view_shows_hashes);
    arena_release(&arena);
    return check_done();
}
