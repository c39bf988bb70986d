#include "store/sqlite/schema.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/log.h"
#include "store/item_tables.h"

/* ---- SQLite ---- */

/* Now, in milliseconds. */
#define NOW_MS "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"

/* Text of a key or value: every byte is kept, whatever it is. */
#define TEXT(column) "CAST(" column " AS TEXT)"

/* clang-format off */

/* A moment as people read it. */
#define MOMENT(column)                                                                                       \
    "CASE WHEN " column " > 0 THEN strftime('%Y-%m-%d %H:%M:%f', " column " / 1000.0, 'unixepoch') END"

/* How many of a hash's fields have expired and are still in the table. */
#define EXPIRED_FIELDS                                                                                       \
    "(SELECT count(*) FROM larder_hash AS f WHERE f.id = k.id AND f.expire_at <> 0"                          \
    " AND f.expire_at <= " NOW_MS ")"

/* A hash that may have any. */
#define DUE "k.type = 2 AND k.first <> 0 AND k.first <= " NOW_MS

#define LIVE "(k.expire_at = 0 OR k.expire_at > " NOW_MS ")"

/* When a field goes: at its own moment or with its key, whichever comes first. */
#define FIELD_ENDS                                                                                           \
    "CASE 0 WHEN i.expire_at THEN k.expire_at WHEN k.expire_at THEN i.expire_at"                             \
    " ELSE min(i.expire_at, k.expire_at) END"

/* The items of live keys of one type, one row each; ends is when an item goes, 0 for never. */
#define ITEM_VIEW(name, table, number, columns, ends, more)                                                  \
    "CREATE VIEW " name " AS SELECT d.db AS db, " TEXT("k.key") " AS key, " columns ", "                     \
    MOMENT(ends) " AS expires, k.key AS key_bytes"                                                           \
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db JOIN " table " AS i ON i.id = k.id"        \
    " WHERE k.type = " number " AND " LIVE more ";"

/* All keys; more: types that came with later versions. */
#define KEYS_VIEW(more)                                                                                      \
    "CREATE VIEW larder_keys AS SELECT d.db AS db, " TEXT("k.key") " AS key,"                                \
    " CASE k.type WHEN 1 THEN 'string' WHEN 2 THEN 'hash' WHEN 3 THEN 'list' WHEN 4 THEN 'set'"              \
    "  WHEN 5 THEN 'zset'" more " END AS type,"                                                              \
    " CASE WHEN k.type = 1 AND k.id = 0 THEN length(k.value)"                                                \
    "  WHEN " DUE " THEN k.size - " EXPIRED_FIELDS " ELSE k.size END AS size, "                              \
    MOMENT("k.expire_at") " AS expires,"                                                                     \
    " CASE WHEN k.expire_at > 0 THEN (k.expire_at - " NOW_MS ") / 1000.0 END AS ttl,"                        \
    " k.version AS version, k.key AS key_bytes"                                                              \
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"                                           \
    " WHERE k.type <> 0 AND " LIVE " AND NOT (" DUE " AND k.size = " EXPIRED_FIELDS ");"

static const char version_1[] =
    "CREATE TABLE larder_meta (name TEXT PRIMARY KEY NOT NULL, value ANY) STRICT, WITHOUT ROWID;"

    /* number is not declared unique: SWAPDB exchanges two of them, one row at a time. */
    "CREATE TABLE larder_db ("
    " db INTEGER PRIMARY KEY, number INTEGER NOT NULL,"
    " keys INTEGER NOT NULL, expires INTEGER NOT NULL) STRICT;"

    "CREATE TABLE larder_key ("
    " seq INTEGER PRIMARY KEY, db INTEGER NOT NULL, key BLOB NOT NULL, type INTEGER NOT NULL,"
    " id INTEGER NOT NULL, size INTEGER NOT NULL, first INTEGER NOT NULL, version INTEGER NOT NULL,"
    " expire_at INTEGER NOT NULL, value BLOB NOT NULL, UNIQUE (db, key)) STRICT;"
    "CREATE INDEX larder_key_expire ON larder_key (expire_at, db) WHERE expire_at <> 0;"
    "CREATE INDEX larder_key_first ON larder_key (first) WHERE type = 2 AND first <> 0;"

    "CREATE TABLE larder_chunk ("
    " id INTEGER NOT NULL, pos INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (id, pos)) STRICT;"

    "CREATE TABLE larder_hash ("
    " id INTEGER NOT NULL, field BLOB NOT NULL, expire_at INTEGER NOT NULL, ord INTEGER NOT NULL,"
    " value BLOB NOT NULL, PRIMARY KEY (id, field)) STRICT;"
    "CREATE INDEX larder_hash_ord ON larder_hash (id, ord);"
    "CREATE INDEX larder_hash_expire ON larder_hash (id, expire_at) WHERE expire_at <> 0;"

    "CREATE TABLE larder_list ("
    " id INTEGER NOT NULL, pos INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (id, pos)) STRICT;"

    "CREATE TABLE larder_set ("
    " id INTEGER NOT NULL, member BLOB NOT NULL, ord INTEGER NOT NULL,"
    " PRIMARY KEY (id, member)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX larder_set_ord ON larder_set (id, ord);"

    /* A REAL column would store -0.0 as 0. */
    "CREATE TABLE larder_zset ("
    " id INTEGER NOT NULL, member BLOB NOT NULL, score ANY NOT NULL CHECK (typeof(score) = 'real'),"
    " ord INTEGER NOT NULL, PRIMARY KEY (id, member)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX larder_zset_score ON larder_zset (id, score, member);"
    "CREATE INDEX larder_zset_ord ON larder_zset (id, ord);"
    "CREATE TABLE larder_zset_block ("
    " id INTEGER NOT NULL, block INTEGER NOT NULL, score ANY NOT NULL CHECK (typeof(score) = 'real'),"
    " member BLOB NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (id, block)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE larder_trash ("
    " id INTEGER NOT NULL, type INTEGER NOT NULL, PRIMARY KEY (id, type)) STRICT, WITHOUT ROWID;"

    "CREATE TABLE larder_journal (seq INTEGER PRIMARY KEY, changes BLOB NOT NULL) STRICT;"

    KEYS_VIEW("")

    "CREATE VIEW larder_strings AS SELECT d.db AS db, " TEXT("k.key") " AS key,"
    " CASE WHEN k.id = 0 THEN " TEXT("k.value")
    "  ELSE (SELECT group_concat(" TEXT("c.value") ", '') FROM"
    "   (SELECT value FROM larder_chunk WHERE id = k.id ORDER BY pos) AS c) END AS value, "
    MOMENT("k.expire_at") " AS expires, k.key AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db WHERE k.type = 1 AND " LIVE ";"

    ITEM_VIEW("larder_hashes", "larder_hash", "2",
              TEXT("i.field") " AS field, " TEXT("i.value") " AS value", FIELD_ENDS,
              " AND (i.expire_at = 0 OR i.expire_at > " NOW_MS ")")
    ITEM_VIEW("larder_lists", "larder_list", "3",
              "i.pos - k.first AS position, " TEXT("i.value") " AS value", "k.expire_at", "")
    ITEM_VIEW("larder_sets", "larder_set", "4", TEXT("i.member") " AS member", "k.expire_at", "")
    ITEM_VIEW("larder_zsets", "larder_zset", "5", TEXT("i.member") " AS member, i.score AS score",
              "k.expire_at", "")

    "INSERT INTO larder_meta (name, value) VALUES ('schema_version', 1), ('next_id', 1),"
    " ('next_db_number', 0), ('applied', 0), ('applying', 0), ('owner', ''),"
    " ('created', strftime('%Y-%m-%dT%H:%M:%SZ', 'now'));";

/* Tables. A partial index finds their keys; rows that never expire are in none of the others. */
static const char version_2[] =
    "CREATE TABLE larder_row ("
    " id INTEGER NOT NULL, name BLOB NOT NULL, expire_at INTEGER NOT NULL, value BLOB NOT NULL,"
    " PRIMARY KEY (id, name)) STRICT;"
    "CREATE INDEX larder_row_expire ON larder_row (id, expire_at) WHERE expire_at <> 0;"
    "CREATE TABLE larder_entry ("
    " id INTEGER NOT NULL, name BLOB NOT NULL, value BLOB NOT NULL,"
    " PRIMARY KEY (id, name)) STRICT, WITHOUT ROWID;"
    "CREATE INDEX larder_key_table ON larder_key (db, key) WHERE type = 6;"
    "DROP VIEW larder_keys;"
    KEYS_VIEW(" WHEN 6 THEN 'table'");

/* No table is another one: from here on a log beside the file may hold what the tables have not, of which
   older programs know nothing. */
static const char version_3[] = "";

/* Numbers of items with holes. Rows as they are have none, so that nothing but the table's text changes. */
static const char version_4[] = "ALTER TABLE larder_key ADD COLUMN numbers INTEGER NOT NULL DEFAULT 0;";

/* The first few of what is missing, as one text; NULL when nothing is. Item tables and their columns stand
   between the two parts. */
static const char missing_before[] =
    "WITH want (name, columns) AS (VALUES ('larder_meta', '[\"name\",\"value\"]'),"
    " ('larder_db', '[\"db\",\"number\",\"keys\",\"expires\"]'),"
    " ('larder_key', '[\"seq\",\"db\",\"key\",\"type\",\"id\",\"size\",\"first\",\"version\",\"expire_at\",\"value\",\"numbers\"]')";
static const char missing_behind[] =
    ", ('larder_trash', '[\"id\",\"type\"]'), ('larder_journal', '[\"seq\",\"changes\"]')),"
    " has AS (SELECT name FROM sqlite_schema WHERE type = 'table'),"
    " missing (what) AS (SELECT 'table ' || name FROM want WHERE name NOT IN has"
    "  UNION ALL SELECT 'column ' || w.name || '.' || c.value FROM want AS w, json_each(w.columns) AS c"
    "   WHERE w.name IN has AND c.value NOT IN (SELECT i.name FROM pragma_table_info(w.name) AS i)"
    "  UNION ALL SELECT 'row ' || n.value || ' of larder_meta'"
    "   FROM json_each('[\"next_id\",\"next_db_number\",\"applied\",\"applying\",\"owner\"]') AS n"
    "   WHERE n.value NOT IN (SELECT name FROM larder_meta))"
    " SELECT group_concat(what, ', ') FROM (SELECT what FROM missing LIMIT 3)";

/* clang-format on */

static const char has_meta[] =
    "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'larder_meta'";

const struct schema_step schema_steps[SCHEMA_VERSION] = {
    {1, version_1},
    {2, version_2},
    {3, version_3},
    {4, version_4},
};

static enum status query_i64(struct sqlite *c, const char *text, int64_t *ret, struct error *err)
{
    struct sqlite_stmt *st;
    enum status rc = sqlite_prepare(c, text, &st, err);
    if (rc != ST_OK)
        return rc;
    bool row;
    rc = sqlite_step(st, &row, err);
    *ret = rc == ST_OK && row ? sqlite_column_i64(st, 0) : 0;
    sqlite_finalize(st);
    return rc;
}

enum status schema_read_version(struct sqlite *c, int64_t *ret, struct error *err)
{
    int64_t found = 0;
    enum status st = query_i64(c, has_meta, &found, err);
    *ret = 0;
    if (st == ST_OK && found)
        st = query_i64(c, "SELECT value FROM larder_meta WHERE name = 'schema_version'", ret, err);
    return st;
}

enum status schema_require(struct sqlite *c, const char *does, struct error *err)
{
    int64_t version;
    enum status st = schema_read_version(c, &version, err);
    if (st != ST_OK || version == SCHEMA_VERSION)
        return st;
    if (version == 0)
        return error_set(err, ST_MISSING, "the database has no tables of this program");
    return error_set(err, version > SCHEMA_VERSION ? ST_NEWER : ST_INVALID,
                     "the database has schema version %lld, this program %s version %d", (long long)version,
                     does, SCHEMA_VERSION);
}

static void add_item_tables(struct buf *text)
{
    for (int t = 0; t < ITEM_TABLES; t++) {
        buf_addf(text, ", ('%s', '[\"id\",\"%s\"", item_tables[t].name, item_tables[t].key);
        for (int c = 0; c < ITEM_COLUMNS; c++)
            if (item_tables[t].columns[c])
                buf_addf(text, ",\"%s\"", item_tables[t].columns[c]);
        buf_addf(text, "]')");
    }
}

enum status schema_verify(struct sqlite *c, struct error *err)
{
    struct sqlite_stmt *q;
    struct buf text = {0};
    bool row;
    buf_addf(&text, "%s", missing_before);
    add_item_tables(&text);
    buf_add(&text, missing_behind, sizeof missing_behind);
    enum status st = sqlite_prepare(c, text.p, &q, err);
    buf_release(&text);
    if (st != ST_OK)
        return st;
    st = sqlite_step(q, &row, err);
    struct slice what = st == ST_OK && row ? sqlite_column_blob(q, 0) : SLICE("");
    if (what.n)
        st = error_set(err, ST_CORRUPT, "the database lacks %.*s: restore it anew", (int)what.n, what.p);
    sqlite_finalize(q);
    return st;
}

static enum status run_steps(struct sqlite *c, const struct schema_step *steps, size_t n, int64_t version,
                             struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (steps[i].version <= version)
            continue;
        char mark[96];
        if (version)
            log_info("migrating the tables", "from=%lld to=%d of=%d", (long long)version, steps[i].version,
                     steps[n - 1].version);
        snprintf(mark, sizeof mark, "UPDATE larder_meta SET value = %d WHERE name = 'schema_version'",
                 steps[i].version);
        enum status st = sqlite_exec(c, steps[i].text, err);
        if (st == ST_OK)
            st = sqlite_exec(c, mark, err);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status schema_migrate(struct sqlite *c, const struct schema_step *steps, size_t n, struct error *err)
{
    int64_t version, newest = steps[n - 1].version;
    enum status st = sqlite_begin(c, SQL_WRITE, NULL, err);
    if (st != ST_OK)
        return st;
    st = schema_read_version(c, &version, err);
    if (st == ST_OK && version > newest)
        st = error_set(err, ST_NEWER,
                       "the database has schema version %lld, this program knows versions up to %lld:"
                       " use the newer program that wrote it",
                       (long long)version, (long long)newest);
    if (st == ST_OK)
        st = run_steps(c, steps, n, version, err);
    if (st != ST_OK) {
        sqlite_rollback(c);
        return st;
    }
    return sqlite_commit(c, err);
}
