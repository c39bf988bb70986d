/* `larder check` of an SQLite file. */
#include "admin/check_internal.h"

#define STR2(x) #x
#define STR(x)  STR2(x)

/* A key as a finding shows it. */
#define KEY "'key ' || quote(CAST(substr(k.key, 1, 60) AS TEXT)) || ' (seq ' || k.seq || ')'"

/* The items of a collection: as many as its row says, each with a number of its own below what that says. */
static const char numbered[] =
    "SELECT " KEY " || ': its size is ' || k.size || ', but ' || (SELECT count(*) || ' items are numbered '"
    "  || coalesce(min({ord}), '-') || ' to ' || coalesce(max({ord}), '-') || ', ' || count(DISTINCT {ord})"
    "  || ' numbers of ' || coalesce(nullif(k.numbers, 0), k.size) FROM {table} WHERE id = k.id)"
    " FROM larder_key AS k WHERE k.type = {type} AND ((k.size, k.size, 1) IS NOT"
    " (SELECT count(*), count(DISTINCT {ord}), min({ord}) >= 0"
    "   AND max({ord}) < coalesce(nullif(k.numbers, 0), k.size) FROM {table} WHERE id = k.id)"
    "  OR (k.numbers <> 0 AND k.numbers <= k.size))";

/* Items that no key row refers to and that are not in the trash. */
static const char orphans[] = "SELECT 'id ' || id || ' has rows in {table}, but no key refers to it'"
                              " FROM (SELECT DISTINCT id FROM {table})"
                              " WHERE id NOT IN (SELECT id FROM larder_key WHERE type = {type} AND id <> 0)"
                              " AND id NOT IN (SELECT id FROM larder_trash WHERE type = {type})";

static const struct check of_keys[] = {
    {"pages and indexes",
     "SELECT integrity_check FROM pragma_integrity_check(1000) WHERE integrity_check <> 'ok'"},
    {"numbers that were given out",
     "SELECT 'database ' || db || ' has number ' || number || ', which was never given out' FROM larder_db"
     " WHERE number >= (SELECT value FROM larder_meta WHERE name = 'next_db_number')"
     " UNION ALL SELECT 'databases share number ' || number FROM larder_db GROUP BY number"
     "  HAVING count(*) > 1"
     " UNION ALL SELECT 'database number ' || number || ' is in use and in the trash' FROM larder_db"
     "  WHERE number IN (SELECT id FROM larder_trash WHERE type = 100)"
     " UNION ALL SELECT 'database number ' || id || ' is that of scripts, and in the trash'"
     "  FROM larder_trash WHERE id = " CHECK_HIDDEN_DB " AND type = 100"
     " UNION ALL SELECT " KEY " || ' has id ' || k.id || ', which was never given out' FROM larder_key AS k"
     "  WHERE k.id >= (SELECT value FROM larder_meta WHERE name = 'next_id')"},
    {"keys by database",
     "WITH n AS (SELECT db AS number, sum(expire_at >= 0) AS keys, sum(expire_at > 0) AS expires"
     "  FROM larder_key GROUP BY db)"
     " SELECT 'database ' || d.db || ' counts ' || d.keys || ' keys, ' || d.expires || ' with an expiry;"
     " its rows are ' || coalesce(n.keys, 0) || ' and ' || coalesce(n.expires, 0)"
     "  FROM larder_db AS d LEFT JOIN n USING (number)"
     "  WHERE d.keys >= 0 AND (d.keys <> coalesce(n.keys, 0) OR d.expires <> coalesce(n.expires, 0))"
     " UNION ALL SELECT 'database number ' || number || ' has ' || keys || ' rows, but nothing refers to it'"
     "  FROM n WHERE number <> " CHECK_HIDDEN_DB " AND number NOT IN (SELECT number FROM larder_db)"
     "  AND number NOT IN (SELECT id FROM larder_trash WHERE type = 100)"},
    {"key rows",
     "SELECT " KEY " || CASE WHEN k.type NOT BETWEEN 0 AND 6 THEN ' has the unknown type ' || k.type"
     "  WHEN k.expire_at < -1 THEN ' has the impossible expiry ' || k.expire_at"
     "  WHEN (k.type = 0) <> (k.expire_at = -1) THEN ' is half deleted'"
     "  WHEN " CHECK_NUMBERS " THEN ' has numbers below ' || k.numbers || ', and no items that have any'"
     "  WHEN k.type = 0 THEN ' is deleted and has items'"
     "  WHEN k.id = 0 THEN ' is a collection without an id'"
     "  WHEN k.type = 6 THEN ' is a table with a size'"
     "  ELSE ' is an empty collection' END"
     " FROM larder_key AS k WHERE k.type NOT BETWEEN 0 AND 6 OR k.expire_at < -1"
     "  OR (k.type = 0) <> (k.expire_at = -1) OR (k.type = 0 AND k.id <> 0)"
     "  OR (k.type BETWEEN 2 AND 6 AND k.id = 0)"
     "  OR (k.type BETWEEN 2 AND 5 AND k.size < 1) OR (k.type = 6 AND (k.size <> 0 OR k.first <> 0))"
     "  OR " CHECK_NUMBERS
     " UNION ALL SELECT count(*) || ' keys share id ' || id FROM larder_key WHERE id <> 0"
     "  GROUP BY id HAVING count(*) > 1"
     " UNION ALL SELECT " KEY " || ' refers to id ' || k.id || ', which is in the trash'"
     "  FROM larder_key AS k WHERE k.id <> 0"
     "  AND EXISTS (SELECT 1 FROM larder_trash WHERE id = k.id AND type = k.type)"},
};

static const struct table_check of_tables[] = {
    {ITEM_CHUNK,
     {"long strings",
      "SELECT " KEY " || ' has ' || k.size || ' bytes, its chunk ' || c.pos || ' ends behind them'"
      " FROM larder_key AS k JOIN larder_chunk AS c ON c.id = k.id WHERE k.type = 1"
      " AND (c.pos < 0 OR length(c.value) > " STR(STORE_CHUNK_BYTES) " OR c.pos * " STR(
          STORE_CHUNK_BYTES) " + length(c.value) > k.size)"}},
    {ITEM_HASH,
     {"fields that expire",
      "SELECT " KEY
      " || ': a field expires at ' || min(f.expire_at) || ', but none should before ' || k.first"
      " FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id WHERE k.type = 2 AND f.expire_at <> 0"
      " GROUP BY k.seq HAVING k.first = 0 OR k.first > min(f.expire_at)"
      " UNION ALL SELECT " KEY " || ' has a field with the impossible expiry ' || f.expire_at"
      "  FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id WHERE k.type = 2 AND f.expire_at < 0"}},
    {ITEM_LIST,
     {"lists",
      "SELECT " KEY " || ': its places are ' || k.first || ' to ' || (k.first + k.size - 1) || ', but ' ||"
      " (SELECT count(*) || ' items stand at ' || coalesce(min(pos), '-') || ' to ' ||"
      "   coalesce(max(pos), '-') FROM larder_list WHERE id = k.id)"
      " FROM larder_key AS k WHERE k.type = 3 AND (k.size, k.first, k.first + k.size - 1) IS NOT"
      " (SELECT count(*), min(pos), max(pos) FROM larder_list WHERE id = k.id)"}},
    {ITEM_ZBLOCK,
     {"rank blocks",
      "WITH b AS (SELECT *, lead(score) OVER w AS next_score, lead(member) OVER w AS next_member"
      "  FROM larder_zset_block WINDOW w AS (PARTITION BY id ORDER BY score, member)),"
      /* Behind the last block comes a text: it is greater than every number. */
      " n AS (SELECT id, block, count, (SELECT count(*) FROM larder_zset AS z WHERE z.id = b.id"
      "   AND (z.score, z.member) >= (b.score, b.member)"
      "   AND (z.score, z.member) < (coalesce(b.next_score, ''), coalesce(b.next_member, x''))) AS found "
      "FROM b)"
      " SELECT " KEY " || ': block ' || n.block || ' counts ' || n.count || ' members, but has ' || n.found"
      "  FROM larder_key AS k JOIN n ON n.id = k.id WHERE k.type = 5 AND n.count <> n.found"
      " UNION ALL SELECT " KEY " || ' has ' || k.size || ' members, but its blocks count ' ||"
      "  (SELECT coalesce(sum(count), 0) FROM larder_zset_block WHERE id = k.id) FROM larder_key AS k"
      "  WHERE k.type = 5 AND k.first <> 0"
      "  AND k.size IS NOT (SELECT sum(count) FROM larder_zset_block WHERE id = k.id)"
      " UNION ALL SELECT " KEY " || ' has no block that begins before every member' FROM larder_key AS k"
      "  WHERE k.type = 5 AND k.first <> 0 AND NOT EXISTS (SELECT 1 FROM larder_zset_block"
      "   WHERE id = k.id AND score = -9e999 AND member = x'')"
      " UNION ALL SELECT " KEY
      " || ' has a block with a number that was never given out' FROM larder_key AS k"
      "  WHERE k.type = 5 AND EXISTS (SELECT 1 FROM larder_zset_block"
      "   WHERE id = k.id AND block NOT BETWEEN 1 AND k.first - 1)"}},
};

static const struct check_texts questions = {
    .of_keys = of_keys,
    .nkeys = sizeof of_keys / sizeof of_keys[0],
    .of_tables = of_tables,
    .ntables = sizeof of_tables / sizeof of_tables[0],
    .numbered = numbered,
    .orphans = orphans,
};

static enum status ask(void *arg, const char *text, struct findings *f, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = sqlite_prepare(arg, text, &q, err);
    bool row;
    if (st != ST_OK)
        return st;
    while ((st = sqlite_step(q, &row, err)) == ST_OK && row)
        check_found(f, sqlite_column_blob(q, 0));
    sqlite_finalize(q);
    return st;
}

enum status check_tables(struct check_session *s, FILE *out, uint64_t *ret_found, struct error *err)
{
    struct findings f = {.out = out};
    enum status st = check_all(&questions, ask, s->sql, &f, err);
    if (st == ST_OK)
        st = check_relations(s, ask, s->sql, &f, err);
    *ret_found = f.total;
    return st;
}
