/* `larder check` of a database server: what the rows say of each other. Pages and indexes are the server's
   own business. The texts are for both dialects: MariaDB is told to take || for concatenation. */
#include "admin/check_internal.h"
#include "store/remote/remote_open.h"
#include "store/remote/remote_schema.h"
#include "store/remote/remote_session.h"
#include "store/remote/remote_verify.h"

#define LIMIT_MS    (3600 * 1000)
#define PATIENCE_MS 3000 /* a server notices a moment late that a program which had the tables has ended */

#define STR2(x) #x
#define STR(x)  STR2(x)

/* clang-format off */

#define ROW "'key row ' || k.seq || ' '"

/* The items of a collection: as many as its row says, each with a number of its own below what that says. */
static const char numbered[] =
    "SELECT " ROW " || 'has size ' || k.size || ', but ' || coalesce(s.n, 0) || ' items, numbered '"
    " || coalesce(s.lo, 0) || ' to ' || coalesce(s.hi, 0) || ', ' || coalesce(s.d, 0) || ' numbers of '"
    " || coalesce(nullif(k.numbers, 0), k.size) FROM larder_key AS k LEFT JOIN"
    " (SELECT id, count(*) AS n, count(DISTINCT {ord}) AS d, min({ord}) AS lo, max({ord}) AS hi FROM {table}"
    "  GROUP BY id) AS s ON s.id = k.id WHERE k.type = {type} AND (s.n IS NULL OR s.n <> k.size"
    " OR s.d <> k.size OR s.lo < 0 OR s.hi >= coalesce(nullif(k.numbers, 0), k.size)"
    " OR (k.numbers <> 0 AND k.numbers <= k.size))";

/* Items that no key row refers to and that are not in the trash. */
static const char orphans[] =
    "SELECT 'id ' || i.id || ' has rows in {table}, but no key refers to it'"
    " FROM (SELECT DISTINCT id FROM {table}) AS i"
    " WHERE NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.id = i.id AND k.type = {type})"
    " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = i.id AND t.type = {type})";

static const struct check of_keys[] = {
    {"numbers that were given out",
     "SELECT " ROW " || 'has id ' || k.id || ', which was never given out' FROM larder_key AS k"
     "  WHERE k.id >= (SELECT CAST(m.value AS DECIMAL(20)) FROM larder_meta AS m WHERE m.name = 'next_id')"
     " UNION ALL SELECT 'database ' || d.db || ' has number ' || d.number || ', which was never given out'"
     "  FROM larder_db AS d WHERE d.number >="
     "  (SELECT CAST(m.value AS DECIMAL(20)) FROM larder_meta AS m WHERE m.name = 'next_db_number')"
     " UNION ALL SELECT 'databases share number ' || number FROM larder_db GROUP BY number HAVING count(*) > 1"
     " UNION ALL SELECT 'database number ' || d.number || ' is in use and in the trash' FROM larder_db AS d"
     "  JOIN larder_trash AS t ON t.id = d.number AND t.type = 100"
     " UNION ALL SELECT 'database number ' || t.id || ' is that of scripts, and in the trash'"
     "  FROM larder_trash AS t WHERE t.id = " CHECK_HIDDEN_DB " AND t.type = 100"},
    {"keys by database",
     "SELECT 'database number ' || k.db || ' has ' || count(*) || ' rows, but nothing refers to it'"
     " FROM larder_key AS k WHERE k.db <> " CHECK_HIDDEN_DB
     " AND NOT EXISTS (SELECT 1 FROM larder_db AS d WHERE d.number = k.db)"
     " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = k.db AND t.type = 100) GROUP BY k.db"},
    {"counts of keys",
     "SELECT 'database ' || d.db || ' counts ' || (d.k + coalesce(c.k, 0)) || ' keys, ' || (d.e + coalesce(c.e, 0))"
     " || ' with an expiry; its rows are ' || coalesce(n.k, 0) || ' and ' || coalesce(n.e, 0)"
     " FROM (SELECT db, number, larder_db.KEYS AS k, expires AS e FROM larder_db) AS d"
     " LEFT JOIN (SELECT number, sum(larder_count.KEYS) AS k, sum(expires) AS e FROM larder_count GROUP BY number) AS c"
     "  ON c.number = d.number"
     " LEFT JOIN (SELECT db, sum(CASE WHEN expire_at >= 0 THEN 1 ELSE 0 END) AS k,"
     "  sum(CASE WHEN expire_at > 0 THEN 1 ELSE 0 END) AS e FROM larder_key GROUP BY db) AS n ON n.db = d.number"
     " WHERE d.k >= 0 AND (d.k + coalesce(c.k, 0) <> coalesce(n.k, 0) OR d.e + coalesce(c.e, 0) <> coalesce(n.e, 0))"},
    {"key rows",
     "SELECT " ROW " || CASE WHEN k.type NOT BETWEEN 0 AND 6 THEN 'has the unknown type ' || k.type"
     "  WHEN k.expire_at < -1 THEN 'has the impossible expiry ' || k.expire_at"
     "  WHEN " CHECK_NUMBERS " THEN 'has numbers below ' || k.numbers || ', and no items that have any'"
     "  WHEN k.type = 0 AND k.id <> 0 THEN 'is deleted and has items'"
     "  WHEN k.id = 0 AND k.type >= 2 THEN 'is a collection without an id'"
     "  WHEN k.type = 6 AND k.expire_at <> -1 THEN 'is a table with a size'"
     "  WHEN k.type >= 2 THEN 'is an empty collection' ELSE 'is half deleted' END"
     " FROM larder_key AS k WHERE k.type NOT BETWEEN 0 AND 6 OR k.expire_at < -1"
     "  OR (k.type = 0 AND k.expire_at <> -1) OR (k.type <> 0 AND k.expire_at = -1)"
     "  OR (k.type = 0 AND k.id <> 0) OR (k.type BETWEEN 2 AND 6 AND k.id = 0)"
     "  OR (k.type BETWEEN 2 AND 5 AND k.size < 1) OR (k.type = 6 AND (k.size <> 0 OR k.first <> 0))"
     "  OR " CHECK_NUMBERS
     " UNION ALL SELECT count(*) || ' keys share id ' || id FROM larder_key WHERE id <> 0"
     "  GROUP BY id HAVING count(*) > 1"
     " UNION ALL SELECT " ROW " || 'refers to id ' || k.id || ', which is in the trash'"
     "  FROM larder_key AS k JOIN larder_trash AS t ON t.id = k.id AND t.type = k.type WHERE k.id <> 0"},
};

static const struct table_check of_tables[] = {
    {ITEM_CHUNK, {"long strings",
     "SELECT " ROW " || 'has ' || k.size || ' bytes, its chunk ' || c.pos || ' ends behind them'"
     " FROM larder_key AS k JOIN larder_chunk AS c ON c.id = k.id WHERE k.type = 1"
     " AND (c.pos < 0 OR length(c.value) > " STR(STORE_CHUNK_BYTES)
     "  OR c.pos * " STR(STORE_CHUNK_BYTES) " + length(c.value) > k.size)"}},
    {ITEM_HASH, {"fields that expire",
     "SELECT 'key row ' || k.seq || ': a field expires at ' || min(f.expire_at) || ', but none should before '"
     " || max(k.first) FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id WHERE k.type = 2"
     " AND f.expire_at <> 0 GROUP BY k.seq HAVING max(k.first) = 0 OR max(k.first) > min(f.expire_at)"}},
    {ITEM_LIST, {"lists",
     "SELECT " ROW " || 'has places ' || k.first || ' to ' || (k.first + k.size - 1) || ', but '"
     " || coalesce(s.n, 0) || ' items at ' || coalesce(s.lo, 0) || ' to ' || coalesce(s.hi, 0)"
     " FROM larder_key AS k LEFT JOIN (SELECT id, count(*) AS n, min(pos) AS lo, max(pos) AS hi"
     "  FROM larder_list GROUP BY id) AS s ON s.id = k.id WHERE k.type = 3 AND (s.n IS NULL OR s.n <> k.size"
     " OR s.lo <> k.first OR s.hi <> k.first + k.size - 1)"}},
    {ITEM_ZBLOCK, {"rank blocks",
     "SELECT " ROW " || 'has ' || k.size || ' members, but its blocks count ' || coalesce(s.n, 0)"
     " FROM larder_key AS k LEFT JOIN (SELECT id, sum(count) AS n FROM larder_zset_block GROUP BY id) AS s"
     "  ON s.id = k.id WHERE k.type = 5 AND k.first <> 0 AND (s.n IS NULL OR s.n <> k.size)"
     " UNION ALL SELECT " ROW " || 'has a block with a number that was never given out' FROM larder_key AS k"
     "  WHERE k.type = 5 AND EXISTS (SELECT 1 FROM larder_zset_block AS b"
     "   WHERE b.id = k.id AND (b.block < 1 OR b.block >= k.first))"}},
};

static const struct check_texts questions = {
    .of_keys = of_keys,
    .nkeys = sizeof of_keys / sizeof of_keys[0],
    .of_tables = of_tables,
    .ntables = sizeof of_tables / sizeof of_tables[0],
    .numbered = numbered,
    .orphans = orphans,
};

/* Rows are older than what numbers blocks: it gives none out twice, and never goes back. */
static const char *const sequence_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
     "SELECT 'key row ' || max(seq) || ' has a number which was never given out' FROM larder_key"
     " HAVING max(seq) >= CASE WHEN has_sequence_privilege('larder_seq', 'USAGE, SELECT')"
     "  THEN coalesce(pg_sequence_last_value('larder_seq') + " STR(REMOTE_SEQ_BLOCK) ", 1) END",
    [REMOTE_MARIADB] =
     "SELECT 'key row ' || max(seq) || ' has a number which was never given out' FROM larder_key"
     " HAVING max(seq) >= GREATEST((SELECT (t.auto_increment - 1) * " STR(REMOTE_SEQ_BLOCK) " + 1"
     "   FROM information_schema.tables AS t WHERE t.table_schema = DATABASE() AND t.table_name = 'larder_block'),"
     "  coalesce((SELECT CAST(value AS SIGNED) FROM larder_meta WHERE name = 'next_seq'), 0))",
};

/* clang-format on */

/* Planned for many rows, unlike what a server asks for. */
static const char *const setup[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on;",
    [REMOTE_MARIADB] =
        "SET sql_mode = 'STRICT_ALL_TABLES,PIPES_AS_CONCAT,IGNORE_SPACE', tx_isolation = 'REPEATABLE-READ',"
        " max_statement_time = 0",
};

static enum status take_finding(void *arg, const struct remote_row *row)
{
    check_found(arg, row->cells[0]);
    return ST_OK;
}

static enum status ask(void *arg, const char *text, struct findings *f, struct error *err)
{
    struct request r = {.text = text, .fn = take_finding, .arg = f};
    remote_add(arg, &r);
    return remote_run(arg, err);
}

enum status remote_check_tables(struct check_session *k, FILE *out, uint64_t *ret_found, struct error *err)
{
    struct remote *c = rstore_of(k->store)->conn;
    struct findings f = {.out = out};
    enum status st = check_all(&questions, ask, c, &f, err);
    if (st == ST_OK)
        st = check_relations(k, ask, c, &f, err);
    if (st == ST_OK)
        st = check_one("numbers of rows", sequence_text[c->dialect], ask, c, &f, err);
    if (st == ST_OK)
        st = check_one("views that are missing", remote_views_text(c->dialect), ask, c, &f, err);
    *ret_found = f.total;
    return st;
}

/* ---- opening ---- */

static enum status take_count(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

static enum status count_pending(struct check_session *k, struct error *err)
{
    static const char *const texts[REMOTE_DIALECTS] = {
        [REMOTE_POSTGRES] = "SELECT count(*) FROM larder_journal WHERE seq > $1",
        [REMOTE_MARIADB] = "SELECT count(*) FROM larder_journal WHERE seq > ?1",
    };
    struct rstore *s = rstore_of(k->store);
    enum status st = store_journal_state(k->store, &k->state, err);
    const struct param p[] = {param_i64(k->state.applied)};
    struct request r = {
        .text = texts[s->conn->dialect], .params = p, .nparams = 1, .fn = take_count, .arg = &k->pending};
    if (st != ST_OK)
        return st;
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* A moment of its own for everybody who only looks. */
enum status remote_check_open(const char *url, bool owned, struct check_session *ret, struct error *err)
{
    const struct store_options o = {
        .url = url, .timeout_ms = LIMIT_MS, .busy_ms = owned ? PATIENCE_MS : 0, .read_only = true};
    struct check_session k = {.owned = owned};
    enum status st = remote_store_open(&o, &k.store, err);
    if (st != ST_OK)
        return st;
    struct rstore *s = rstore_of(k.store);
    st = remote_script(s->conn, setup[s->conn->dialect], err);
    if (st == ST_OK && owned)
        st = rlock_try(s, err);
    if (st == ST_OK)
        st = store_begin(k.store, owned ? STORE_WRITE : STORE_READ, NULL, NULL, err);
    if (st == ST_OK)
        st = count_pending(&k, err);
    if (st != ST_OK)
        check_close(&k);
    else
        *ret = k;
    return st;
}
