/* Random texts of SQL over a small table and a few keys: as they are, and made of the words of the language.
   Whatever they do, they end within their limits, and the next text finds the engine and the table as they
   were. */
#include "fuzz.h"

#include "base/buf.h"
#include "query/query.h"
#include "unit/world.h"

static const char *const words[] = {
    "SELECT ",
    " FROM ",
    " WHERE ",
    " AND ",
    " OR ",
    " NOT ",
    " IN ",
    " BETWEEN ",
    " LIKE ",
    " GLOB ",
    " IS ",
    " NULL ",
    " ORDER BY ",
    " GROUP BY ",
    " HAVING ",
    " LIMIT ",
    " DESC ",
    " ASC ",
    " JOIN ",
    " LEFT JOIN ",
    " ON ",
    " USING ",
    " UNION ",
    " ALL ",
    " EXCEPT ",
    " WITH ",
    " RECURSIVE ",
    " AS ",
    " VALUES ",
    "INSERT ",
    " INTO ",
    " OR REPLACE ",
    " OR IGNORE ",
    "UPDATE ",
    " SET ",
    "DELETE ",
    " RETURNING ",
    "CREATE ",
    " TABLE ",
    " INDEX ",
    " UNIQUE ",
    "DROP ",
    "ALTER ",
    " ADD ",
    " RENAME ",
    " TO ",
    " COLUMN ",
    " IF EXISTS ",
    " IF NOT EXISTS ",
    " PRIMARY KEY ",
    " DEFAULT ",
    " CHECK ",
    " COLLATE NOCASE ",
    " DISTINCT ",
    " EXISTS ",
    " CASE ",
    " WHEN ",
    " THEN ",
    " ELSE ",
    " END ",
    " CAST(",
    " OVER (",
    " PARTITION BY ",
    " ROWS ",
    "t",
    "u",
    "a",
    "b",
    "v",
    "x",
    "by_v",
    "larder_keys",
    "larder_hashes",
    "larder_lists",
    "larder_zsets",
    "larder_sets",
    "larder_strings",
    "larder_tables",
    "larder_columns",
    "key",
    "field",
    "value",
    "member",
    "score",
    "db",
    "_key",
    "_version",
    "_expires",
    "*",
    "(",
    ")",
    ",",
    ";",
    "=",
    "<",
    ">",
    "+",
    "-",
    "||",
    "/",
    "?",
    "?1",
    ":n",
    ".",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "1e300",
    "0.5",
    "''",
    "'k'",
    "'a%'",
    "'a*'",
    "x'00ff'",
    "TRUE",
    "count(",
    "sum(",
    "max(",
    "group_concat(",
    "replace(",
    "instr(",
    "trim(",
    "substr(",
    "printf(",
    "hex(",
    "zeroblob(",
    "json_extract(",
    "json_each(",
    "random(",
    "lag(",
    "rank(",
    "coalesce(",
    "length(",
    "INTEGER",
    "TEXT",
    "REAL",
    "BLOB",
    "BOOLEAN",
    "JSON",
    "EXPLAIN QUERY PLAN ",
    "PRAGMA ",
    "ATTACH ",
    "VACUUM ",
    "BEGIN",
    "--",
    "/*",
    "*/",
    "\n",
    "\"t\"",
    "[a]",
    "main.",
};

static struct world world;
static struct catalog *catalog;
static struct query_engine *engine;
static size_t nrows;

static void begin_result(void *arg, const struct query_column *columns, size_t n)
{
    (void)arg;
    (void)columns;
    CHECK_OR_DIE(n > 0);
    nrows = 0;
}

static void add_row(void *arg, const struct value *values, size_t n)
{
    (void)arg;
    for (size_t i = 0; i < n; i++)
        CHECK_OR_DIE(values[i].kind <= VALUE_BOOL);
    nrows++;
}

static const struct query_sink sink = {begin_result, add_row, NULL};

static struct query_result run(struct slice text, bool on_loop, bool may_write)
{
    struct value args[3] = {
        {.kind = VALUE_INT, .i = 2}, {.kind = VALUE_TEXT, .s = SLICE("k1")}, {.kind = VALUE_NULL}};
    struct query q = {.catalog = catalog,
                      .view = world.view,
                      .text = text,
                      .args = args,
                      .nargs = 0,
                      .limits = {.on_loop = on_loop,
                                 .may_write = may_write,
                                 .rows = 500,
                                 .steps = 20000,
                                 .result_bytes = 100000,
                                 .write_rows = 20,
                                 .memory = 8 << 20},
                      .sink = &sink};
    for (size_t i = 0; i < text.n && q.nargs < 3; i++)
        q.nargs += text.p[i] == '?';
    struct query_result result;
    CHECK_OR_DIE(query_run(engine, &q, &result) == ST_OK);
    CHECK_OR_DIE((result.outcome == QUERY_FAULT) == (result.fault.kind != FAULT_NONE));
    CHECK_OR_DIE(!result.wrote || may_write);
    CHECK_OR_DIE(result.outcome != QUERY_MOVE || (on_loop && !result.wrote));
    return result;
}

static void leave(bool keep)
{
    (void)engine_leave(world.engine, keep);
    if (keep)
        CHECK_OR_DIE(engine_commit(world.engine, NULL, &world.err) == ST_OK);
    else
        engine_abandon(world.engine);
}

static void tear_down(void)
{
    query_engine_free(engine);
    catalog_free(catalog);
    world_end(&world);
}

static void set_up(void)
{
    static const char text[] =
        "CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT NOT NULL DEFAULT 'd', v REAL, INDEX by_v (v, b));"
        "CREATE TABLE u (a TEXT, b BOOLEAN, v TIMESTAMP, x JSON, PRIMARY KEY (a DESC, b), UNIQUE INDEX by_v "
        "(v));"
        "INSERT INTO t VALUES (1, 'x', 0.5), (2, 'y', NULL), (3, 'x', -7), (4, '', 1e300);"
        "INSERT INTO u VALUES ('k', TRUE, 1, '[1]'), ('k', FALSE, 2, NULL), ('', TRUE, NULL, '{}')";
    query_count_memory();
    CHECK_OR_DIE(world_start(&world));
    catalog = catalog_new();
    engine = query_engine_new();
    CHECK_OR_DIE(engine && world_begin(&world));
    world_enter(&world);
    CHECK_OR_DIE(run(slice_str(text), false, true).outcome == QUERY_DONE);
    CHECK_OR_DIE(view_set_string(world.view, 0, SLICE("k1"), SLICE("v"), 0) == ST_OK);
    leave(true);
    (void)atexit(tear_down);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf text = {0};
    if (!engine)
        set_up();
    if (size == 0)
        return 0;
    for (size_t i = 1; i < size; i++) {
        const char *word = words[data[i] % (sizeof words / sizeof *words)];
        if (data[0] & 1)
            buf_add(&text, word, strlen(word));
        else
            buf_add(&text, &data[i], 1);
    }
    CHECK_OR_DIE(world_begin(&world));
    world_enter(&world);
    (void)run(buf_slice(&text), data[0] & 2, data[0] & 4);
    leave(false);
    buf_release(&text);
    CHECK_OR_DIE(world_begin(&world));
    world_enter(&world);
    CHECK_OR_DIE(run(SLICE("SELECT * FROM t JOIN u ON u.b = 1"), true, false).outcome == QUERY_DONE);
    CHECK_OR_DIE(nrows == 8);
    leave(false);
    return 0;
}
