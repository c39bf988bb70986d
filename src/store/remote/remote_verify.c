#include "store/remote/remote_verify.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "store/item_tables.h"
#include "store/remote/remote_schema_internal.h"

#define SHOWN        3 /* of what is missing */
#define SINCE_TABLES 3 /* the version that has keys of type ROW_TABLE */
#define SINCE_HOLES  4 /* and the one that has larder_key.numbers; MariaDB: larder_block, and no sequence */

/* ---- what there has to be ---- */

/* clang-format off */

#define VIEWS "larder_keys larder_strings larder_hashes larder_lists larder_sets larder_zsets"

/* Table, columns, indexes; what is there beside larder_key and the tables of items, which come in between. */
#define POSTGRES_TABLES \
    "('larder_meta', 'name value', 'larder_meta_pkey')," \
    "('larder_db', 'db number keys expires', 'larder_db_pkey')," \
    "('larder_count', 'number slot keys expires', 'larder_count_pkey')"

#define POSTGRES_MORE_TABLES \
    ",('larder_trash', 'id type', 'larder_trash_pkey')," \
    "('larder_journal', 'seq changes', 'larder_journal_pkey')"

#define MARIADB_TABLES \
    "('larder_meta', 'name value', 'PRIMARY')," \
    "('larder_db', 'db number keys expires', 'PRIMARY')," \
    "('larder_count', 'number slot keys expires', 'PRIMARY')"

#define MARIADB_MORE_TABLES \
    ",('larder_lock', 'n', 'PRIMARY')," \
    "('larder_trash', 'id type', 'PRIMARY')," \
    "('larder_journal', 'seq changes', 'PRIMARY')"

#define MARIADB_BLOCKS ",('larder_block', 'n', 'PRIMARY')"

/* The words of a column of the list, on MariaDB: a row for each. */
#define MD_WORDS(list)                                                                                       \
    "(SELECT w.name, SUBSTRING_INDEX(SUBSTRING_INDEX(w." list ", ' ', s.seq), ' ', -1) AS word"              \
    " FROM want AS w JOIN seq_1_to_16 AS s"                                                                  \
    "  ON s.seq <= 1 + LENGTH(w." list ") - LENGTH(REPLACE(w." list ", ' ', '')) AND w." list " <> '')"

/* What a role that was granted this, for all of the database, is sure to see. Another one's view may be narrower. */
#define MD_SEES(privileges)                                                                                  \
    "EXISTS (SELECT 1 FROM information_schema.user_privileges AS p WHERE p.privilege_type IN (" privileges ")" \
    "  AND p.grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"                            \
    " UNION ALL SELECT 1 FROM information_schema.schema_privileges AS p WHERE p.privilege_type IN (" privileges ")" \
    "  AND DATABASE() LIKE p.table_schema"                                                                   \
    "  AND p.grantee = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), ''''))"

/* All tables that there have to be: behind it comes a question about them. */
static const char *const want_text[REMOTE_DIALECTS][2] = {
    [REMOTE_POSTGRES] = {"WITH want (name, columns, indexes) AS (VALUES " POSTGRES_TABLES, POSTGRES_MORE_TABLES},
    [REMOTE_MARIADB] = {"WITH want (name, columns, indexes) AS (VALUES " MARIADB_TABLES, MARIADB_MORE_TABLES},
};

/* One text for each thing that is missing. */
static const char *const structure_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
    " SELECT 'table ' || w.name FROM want AS w WHERE to_regclass(w.name) IS NULL"
    " UNION ALL SELECT 'sequence larder_seq' WHERE to_regclass('larder_seq') IS NULL"
    " UNION ALL SELECT 'column ' || w.name || '.' || c FROM want AS w, unnest(string_to_array(w.columns, ' ')) AS c"
    "  WHERE to_regclass(w.name) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute AS a"
    "   WHERE a.attrelid = to_regclass(w.name) AND a.attname = c AND NOT a.attisdropped)"
    " UNION ALL SELECT 'index ' || i FROM want AS w, unnest(string_to_array(w.indexes, ' ')) AS i"
    "  WHERE to_regclass(w.name) IS NOT NULL AND to_regclass(i) IS NULL",
    [REMOTE_MARIADB] =
    " SELECT CONCAT('table ', w.name) FROM want AS w WHERE NOT EXISTS"
    "  (SELECT 1 FROM information_schema.tables AS t WHERE t.table_schema = DATABASE() AND t.table_name = w.name)"
    " UNION ALL SELECT CONCAT('column ', w.name, '.', w.word) FROM " MD_WORDS("columns") " AS w"
    "  WHERE EXISTS (SELECT 1 FROM information_schema.tables AS t WHERE t.table_schema = DATABASE()"
    "   AND t.table_name = w.name) AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c"
    "   WHERE c.table_schema = DATABASE() AND c.table_name = w.name AND c.column_name = w.word)"
    " UNION ALL SELECT CONCAT('index ', w.word, ' of ', w.name) FROM " MD_WORDS("indexes") " AS w"
    "  WHERE EXISTS (SELECT 1 FROM information_schema.tables AS t WHERE t.table_schema = DATABASE()"
    "   AND t.table_name = w.name) AND NOT EXISTS (SELECT 1 FROM information_schema.statistics AS i"
    "   WHERE i.table_schema = DATABASE() AND i.table_name = w.name AND i.index_name = w.word)",
};

/* A view of a dump of MariaDB's that was not read to its end is there, but is not the real one: its columns
   are numbers. */
static const char *const views_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
    "SELECT 'view ' || v FROM unnest(string_to_array('" VIEWS "', ' ')) AS v WHERE to_regclass(v) IS NULL",
    [REMOTE_MARIADB] =
    "WITH want (name, views) AS (SELECT '', '" VIEWS "')"
    " SELECT CONCAT('view ', w.word) FROM " MD_WORDS("views") " AS w WHERE " MD_SEES("'SELECT'")
    " AND NOT EXISTS (SELECT 1 FROM information_schema.columns AS c WHERE c.table_schema = DATABASE()"
    "  AND c.table_name = w.word AND c.column_name = 'key_bytes' AND c.data_type = 'varbinary')",
};

#define META_ROWS "next_id next_db_number owner synced applied applying"

/* Keys that are counted when there is none: tables whose rows were brought back for a part only. Not while a
   journal is being applied, when counts may be ahead; and not those of databases that were flushed. */
#define NO_KEYS(keys)                                                                                        \
    " (SELECT coalesce(sum(d." keys "), 0) FROM larder_db AS d)"                                             \
    "  + (SELECT coalesce(sum(c." keys "), 0) FROM larder_count AS c"                                        \
    "   WHERE c.number IN (SELECT d.number FROM larder_db AS d)) > 0"                                        \
    " AND (SELECT m.value FROM larder_meta AS m WHERE m.name = 'applying') = '0'"                            \
    " AND NOT EXISTS (SELECT 1 FROM larder_key)"

static const char *const rows_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
    "SELECT 'row ' || n || ' of larder_meta' FROM unnest(string_to_array('" META_ROWS "', ' ')) AS n"
    "  WHERE NOT EXISTS (SELECT 1 FROM larder_meta AS m WHERE m.name = n)"
    " UNION ALL SELECT 'rows of larder_db' WHERE NOT EXISTS (SELECT 1 FROM larder_db)"
    "  AND (SELECT m.value::bigint FROM larder_meta AS m WHERE m.name = 'next_db_number') > 0"
    " UNION ALL SELECT 'rows of larder_key' WHERE" NO_KEYS("keys"),
    [REMOTE_MARIADB] =
    "WITH want (name, metas) AS (SELECT '', '" META_ROWS "')"
    " SELECT CONCAT('row ', w.word, ' of larder_meta') FROM " MD_WORDS("metas") " AS w"
    "  WHERE NOT EXISTS (SELECT 1 FROM larder_meta AS m WHERE m.name = w.word)"
    " UNION ALL SELECT 'rows of larder_db' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM larder_db)"
    "  AND (SELECT CAST(m.value AS SIGNED) FROM larder_meta AS m WHERE m.name = 'next_db_number') > 0"
    " UNION ALL SELECT 'rows of larder_lock' FROM DUAL WHERE (SELECT count(*) FROM larder_lock) < 513"
    " UNION ALL SELECT 'rows of larder_key' FROM DUAL WHERE" NO_KEYS("`keys`"),
};

/* Functions of this version that are missing. PostgreSQL: or that look into another schema than the URL's, after
   that was renamed. */
static const char *const functions_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
    "SELECT f FROM unnest(ARRAY['larder_now()', 'larder_name(bytea)', 'larder_rest(bytea)',"
    " 'larder_whole(bytea, bytea)', 'larder_text(bytea)', 'larder_lock_key()', 'larder_enter(integer, bytea)',"
    " 'larder_counted(integer, integer, integer)', 'larder_get(bytea, integer)', 'larder_get(text, integer)',"
    " 'larder_get_text(text, integer)', 'larder_del(bytea, integer)', 'larder_del(text, integer)',"
    " 'larder_set(bytea, bytea, interval, integer)', 'larder_set(text, text, interval, integer)',"
    " 'larder_set(text, bytea, interval, integer)', 'larder_set(bytea, bytea, text, integer)',"
    " 'larder_set(text, text, text, integer)', 'larder_set(text, bytea, text, integer)',"
    " 'larder_set(bytea, bytea, double precision, integer)', 'larder_set(text, text, double precision, integer)',"
    " 'larder_set(text, bytea, double precision, integer)']) AS f WHERE to_regprocedure(f) IS NULL"
    " UNION ALL SELECT p.proname FROM pg_proc AS p WHERE p.oid = to_regprocedure('larder_lock_key()')"
    "  AND length($1) > 0 AND NOT ('search_path=' || convert_from($1, 'UTF8')) = ANY (p.proconfig)",
    [REMOTE_MARIADB] =
    "WITH want (name, functions) AS (SELECT '', 'larder_lock_name larder_reader_name larder_name larder_rest larder_long"
    " larder_get larder_get_in larder_counted larder_set larder_set_in larder_set_as_one larder_del larder_del_in larder_del_as_one')"
    " SELECT w.word FROM " MD_WORDS("functions") " AS w WHERE " MD_SEES("'EXECUTE', 'CREATE ROUTINE', 'ALTER ROUTINE'")
    " AND NOT EXISTS (SELECT 1 FROM information_schema.routines AS r WHERE r.routine_schema = DATABASE()"
    "  AND r.routine_name = w.word) AND ?1 = ?1",
};

/* Without a version. PostgreSQL: a migration is made as a whole. MariaDB: it makes larder_meta first, and rows of
   larder_db after the version; a dump brings both before. */
static const char *const nothing_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
    " SELECT CASE WHEN to_regclass('larder_meta') IS NULL THEN 'table larder_meta' ELSE 'row schema_version of larder_meta' END"
    " WHERE to_regproc('larder_now') IS NOT NULL"
    "  OR EXISTS (SELECT 1 FROM want AS w WHERE to_regclass(w.name) IS NOT NULL)",
    [REMOTE_MARIADB] =
    " SELECT 'table larder_meta' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM information_schema.tables AS t"
    "  WHERE t.table_schema = DATABASE() AND t.table_name = 'larder_meta')"
    " AND EXISTS (SELECT 1 FROM want AS w JOIN information_schema.tables AS t ON t.table_name = w.name"
    "  WHERE t.table_schema = DATABASE())",
};

static const char *const code_text[REMOTE_DIALECTS][2] = {
    [REMOTE_POSTGRES] = {remote_postgres_functions, remote_postgres_views},
    [REMOTE_MARIADB] = {remote_mariadb_functions, remote_mariadb_views},
};

/* clang-format on */

/* ---- asking ---- */

struct missing {
    int n;
    char names[120]; /* the first of them */
};

static enum status note(void *arg, const struct remote_row *row)
{
    struct missing *m = arg;
    size_t used = strlen(m->names);
    if (m->n++ < SHOWN)
        snprintf(m->names + used, sizeof m->names - used, "%s%.*s", used ? ", " : "", (int)row->cells[0].n,
                 row->cells[0].p);
    return ST_OK;
}

static void add_key_table(struct buf *text, int64_t version, enum remote_dialect dialect)
{
    bool postgres = dialect == REMOTE_POSTGRES;
    buf_addf(text,
             ",('larder_key', 'seq db key key_rest type id size first version expire_at value%s%s', '%s",
             postgres ? "" : " due_at", version >= SINCE_HOLES ? " numbers" : "",
             postgres ? "larder_key_pkey" : "PRIMARY");
    buf_addf(text, " larder_key_name larder_key_expire larder_key_first%s')",
             version >= SINCE_TABLES && postgres ? " larder_key_table" : "");
}

static void add_item_table(struct buf *text, enum item_table t, enum remote_dialect dialect)
{
    const struct item_table_desc *d = &item_tables[t];
    bool scores = item_has(t, COLUMN_SCORE) && dialect == REMOTE_MARIADB;
    buf_addf(text, ",('%s', 'id %s", d->name, d->key);
    if (d->named)
        buf_addf(text, " %s_rest", d->key);
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (d->columns[c])
            buf_addf(text, " %s", d->columns[c]);
    buf_addf(text, "%s%s', '", scores ? " bits" : "", scores && d->indexes[ITEMS_BY_SCORE] ? " place" : "");
    if (dialect == REMOTE_MARIADB)
        buf_addf(text, "PRIMARY");
    else
        buf_addf(text, "%s_pkey", d->name);
    for (int o = 0; o < ITEM_ORDERS; o++)
        if (d->indexes[o])
            buf_addf(text, " %s", d->indexes[o]);
    buf_addf(text, "')");
}

/* The version that an item table came with. */
static int since(enum item_table t)
{
    return item_tables[t].owner == ROW_TABLE ? SINCE_TABLES : 1;
}

static enum status ask(struct remote *c, const char *text, struct missing *m, struct error *err)
{
    struct request r = {.text = text, .fn = note, .arg = m};
    remote_add(c, &r);
    return remote_run(c, err);
}

/* The same about the tables that there have to be. */
static enum status ask_of_tables(struct remote *c, int64_t version, const char *question, struct missing *m,
                                 struct error *err)
{
    struct buf text = {0};
    buf_addf(&text, "%s", want_text[c->dialect][0]);
    add_key_table(&text, version, c->dialect);
    for (int t = 0; t < ITEM_TABLES; t++)
        if (version >= since((enum item_table)t))
            add_item_table(&text, (enum item_table)t, c->dialect);
    buf_addf(&text, "%s", want_text[c->dialect][1]);
    if (version >= SINCE_HOLES && c->dialect == REMOTE_MARIADB)
        buf_addf(&text, MARIADB_BLOCKS);
    buf_addf(&text, ")%s", question);
    buf_add(&text, "", 1);
    enum status st = ask(c, text.p, m, err);
    buf_release(&text);
    return st;
}

static enum status incomplete(const struct remote *c, const struct missing *m, const char *advice,
                              struct error *err)
{
    char more[24] = "";
    if (m->n > SHOWN)
        snprintf(more, sizeof more, " and %d more", m->n - SHOWN);
    return error_set(err, ST_CORRUPT, "%.50s lacks %s%s: %s", c->place, m->names, more, advice);
}

const char *remote_views_text(enum remote_dialect dialect)
{
    return views_text[dialect];
}

#define ANEW "restore it anew"

enum status remote_verify(struct remote *c, int64_t version, bool views, struct error *err)
{
    struct missing m = {0};
    enum status st = ask_of_tables(c, version, structure_text[c->dialect], &m, err);
    if (st == ST_OK && m.n == 0)
        st = ask(c, rows_text[c->dialect], &m, err);
    if (st == ST_OK && m.n)
        return incomplete(c, &m, ANEW, err);
    if (st == ST_OK && views)
        st = ask(c, views_text[c->dialect], &m, err);
    if (st == ST_OK && m.n)
        return incomplete(c, &m, ANEW ", or if its rows are whole: larder migrate", err);
    return st;
}

/* What remains to be asked behind that where the tables need not be there for it. */
static const char *const no_version_text[REMOTE_DIALECTS] = {
    [REMOTE_MARIADB] = "SELECT 'row schema_version of larder_meta' FROM larder_db LIMIT 1",
};

enum status remote_verify_nothing(struct remote *c, struct error *err)
{
    struct missing m = {0};
    enum status st = ask_of_tables(c, REMOTE_SCHEMA_VERSION, nothing_text[c->dialect], &m, err);
    if (st == ST_OK && m.n == 0 && no_version_text[c->dialect]) {
        st = ask(c, no_version_text[c->dialect], &m, err);
        if (st == ST_MISSING)
            st = ST_OK;
    }
    return st == ST_OK && m.n ? incomplete(c, &m, ANEW, err) : st;
}

enum status remote_verify_code(struct remote *c, bool views, bool *ret_there, struct error *err)
{
    struct missing m = {0};
    const struct param p[] = {param_bytes(slice_str(c->schema))};
    struct request r = {.text = functions_text[c->dialect], .params = p, .nparams = 1, .fn = note, .arg = &m};
    remote_add(c, &r);
    enum status st = remote_run(c, err);
    if (st == ST_OK && views)
        st = ask(c, views_text[c->dialect], &m, err);
    *ret_there = m.n == 0;
    return st;
}

/* ---- mending ---- */

enum status remote_make_code(struct remote *c, struct error *err)
{
    enum status st = ST_OK;
    for (int i = 0; st == ST_OK && i < 2; i++)
        st = remote_script(c, code_text[c->dialect][i], err);
    return st;
}

static enum status take_number(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

/* The number behind all that were given out; MariaDB: by taking a block, which is left out. */
static const char *const next_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT coalesce(pg_sequence_last_value('larder_seq') + 1024, 1)",
    [REMOTE_MARIADB] = "SELECT (LAST_INSERT_ID() - 1) * 1024 + 1",
};
static const char *const set_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT setval('larder_seq', $1)",
    [REMOTE_MARIADB] = "INSERT IGNORE INTO larder_block (n) VALUES (?1 DIV 1024 + 1)",
};

#define TAKE_BLOCK  "INSERT INTO larder_block (n) VALUES (NULL)"
#define LEAVE_BLOCK "DELETE FROM larder_block WHERE n = LAST_INSERT_ID()"

/* Rows are looked at first: others may take numbers, and use them, meanwhile. A number that the sequence gave
   out stands for a block. */
enum status remote_advance_seq(struct remote *c, struct error *err)
{
    int64_t highest = 0, next = 0;
    const bool counts = c->dialect == REMOTE_MARIADB;
    struct request rows = {
        .text = "SELECT coalesce(max(seq), 0) FROM larder_key", .fn = take_number, .arg = &highest};
    struct request ask_next = {.text = next_text[c->dialect], .fn = take_number, .arg = &next};
    remote_add(c, &rows);
    if (counts) {
        remote_add_text(c, TAKE_BLOCK);
        remote_add_text(c, LEAVE_BLOCK);
    }
    remote_add(c, &ask_next);
    enum status st = remote_run(c, err);
    if (st == ST_OK && highest >= next) {
        const struct param p[] = {param_i64(highest + 1)};
        struct request set = {.text = set_text[c->dialect], .params = p, .nparams = 1};
        struct request leave = {
            .text = "DELETE FROM larder_block WHERE n = ?1 DIV 1024 + 1", .params = p, .nparams = 1};
        remote_add(c, &set);
        if (counts)
            remote_add(c, &leave);
        st = remote_run(c, err);
    }
    return st != ST_DENIED
               ? st
               : error_set(err, ST_DENIED,
                           "the numbers of rows of %.80s cannot be looked at, or are behind the rows"
                           " of larder_key: larder migrate --store URL brings them forward, with a"
                           " role that may",
                           c->place);
}
