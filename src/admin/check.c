#include "admin/check.h"

#include <inttypes.h>

#include "admin/check_internal.h"
#include "base/clock.h"
#include "store/remote/remote_schema.h"
#include "store/sqlite/schema.h"

#define STR2(x) #x
#define STR(x)  STR2(x)

/* A key as a finding shows it. */
#define KEY "'key ' || quote(CAST(substr(k.key, 1, 60) AS TEXT)) || ' (seq ' || k.seq || ')'"

/* The items of a collection: as many as its row says, numbered from 0 without a gap. */
#define ORD_CHECK(table, number)                                                                             \
    "SELECT " KEY " || ': its size is ' || k.size || ', but ' || (SELECT count(*) || ' items are numbered '" \
    "  || coalesce(min(ord), '-') || ' to ' || coalesce(max(ord), '-') FROM " table " WHERE id = k.id)"      \
    " FROM larder_key AS k WHERE k.type = " number " AND (k.size, k.size, 0, k.size - 1) IS NOT"             \
    " (SELECT count(*), count(DISTINCT ord), min(ord), max(ord) FROM " table " WHERE id = k.id)"

/* Items that no key row refers to and that are not in the trash. */
#define ORPHAN_CHECK(table, number)                                                                          \
    "SELECT 'id ' || id || ' has rows in " table ", but no key refers to it'"                                \
    " FROM (SELECT DISTINCT id FROM " table ")"                                                              \
    " WHERE id NOT IN (SELECT id FROM larder_key WHERE type = " number " AND id <> 0)"                       \
    " AND id NOT IN (SELECT id FROM larder_trash WHERE type = " number ")"

/* Every query returns one line of text for each thing that is wrong. */
static const struct check {
    const char *title;
    const char *text;
} checks[] = {
    {"pages and indexes",
     "SELECT integrity_check FROM pragma_integrity_check(1000) WHERE integrity_check <> 'ok'"},
    {"numbers that were given out",
     "SELECT 'database ' || db || ' has number ' || number || ', which was never given out' FROM larder_db"
     " WHERE number >= (SELECT value FROM larder_meta WHERE name = 'next_db_number')"
     " UNION ALL SELECT 'databases share number ' || number FROM larder_db GROUP BY number"
     "  HAVING count(*) > 1"
     " UNION ALL SELECT 'database number ' || number || ' is in use and in the trash' FROM larder_db"
     "  WHERE number IN (SELECT id FROM larder_trash WHERE type = 100)"
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
     "  FROM n WHERE number NOT IN (SELECT number FROM larder_db)"
     "  AND number NOT IN (SELECT id FROM larder_trash WHERE type = 100)"},
    {"key rows",
     "SELECT " KEY " || CASE WHEN k.type NOT BETWEEN 0 AND 5 THEN ' has the unknown type ' || k.type"
     "  WHEN k.expire_at < -1 THEN ' has the impossible expiry ' || k.expire_at"
     "  WHEN (k.type = 0) <> (k.expire_at = -1) THEN ' is half deleted'"
     "  WHEN k.type = 0 THEN ' is deleted and has items'"
     "  WHEN k.id = 0 THEN ' is a collection without an id'"
     "  ELSE ' is an empty collection' END"
     " FROM larder_key AS k WHERE k.type NOT BETWEEN 0 AND 5 OR k.expire_at < -1"
     "  OR (k.type = 0) <> (k.expire_at = -1) OR (k.type = 0 AND k.id <> 0)"
     "  OR (k.type BETWEEN 2 AND 5 AND (k.id = 0 OR k.size < 1))"
     " UNION ALL SELECT count(*) || ' keys share id ' || id FROM larder_key WHERE id <> 0"
     "  GROUP BY id HAVING count(*) > 1"
     " UNION ALL SELECT " KEY " || ' refers to id ' || k.id || ', which is in the trash'"
     "  FROM larder_key AS k WHERE k.id <> 0"
     "  AND EXISTS (SELECT 1 FROM larder_trash WHERE id = k.id AND type = k.type)"},
    {"long strings",
     "SELECT " KEY " || ' has ' || k.size || ' bytes, its chunk ' || c.pos || ' ends behind them'"
     " FROM larder_key AS k JOIN larder_chunk AS c ON c.id = k.id WHERE k.type = 1"
     " AND (c.pos < 0 OR length(c.value) > " STR(STORE_CHUNK_BYTES) " OR c.pos * " STR(
         STORE_CHUNK_BYTES) " + length(c.value) > k.size)"},
    {"hashes", ORD_CHECK("larder_hash", "2")},
    {"fields that expire",
     "SELECT " KEY " || ': a field expires at ' || min(f.expire_at) || ', but none should before ' || k.first"
     " FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id WHERE k.type = 2 AND f.expire_at <> 0"
     " GROUP BY k.seq HAVING k.first = 0 OR k.first > min(f.expire_at)"
     " UNION ALL SELECT " KEY " || ' has a field with the impossible expiry ' || f.expire_at"
     "  FROM larder_key AS k JOIN larder_hash AS f ON f.id = k.id WHERE k.type = 2 AND f.expire_at < 0"},
    {"lists",
     "SELECT " KEY " || ': its places are ' || k.first || ' to ' || (k.first + k.size - 1) || ', but ' ||"
     " (SELECT count(*) || ' items stand at ' || coalesce(min(pos), '-') || ' to ' ||"
     "   coalesce(max(pos), '-') FROM larder_list WHERE id = k.id)"
     " FROM larder_key AS k WHERE k.type = 3 AND (k.size, k.first, k.first + k.size - 1) IS NOT"
     " (SELECT count(*), min(pos), max(pos) FROM larder_list WHERE id = k.id)"},
    {"sets", ORD_CHECK("larder_set", "4")},
    {"sorted sets", ORD_CHECK("larder_zset", "5")},
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
     " UNION ALL SELECT " KEY " || ' has a block with a number that was never given out' FROM larder_key AS k"
     "  WHERE k.type = 5 AND EXISTS (SELECT 1 FROM larder_zset_block"
     "   WHERE id = k.id AND block NOT BETWEEN 1 AND k.first - 1)"},
    {"chunks without a key", ORPHAN_CHECK("larder_chunk", "1")},
    {"fields without a key", ORPHAN_CHECK("larder_hash", "2")},
    {"list items without a key", ORPHAN_CHECK("larder_list", "3")},
    {"set members without a key", ORPHAN_CHECK("larder_set", "4")},
    {"sorted set members without a key", ORPHAN_CHECK("larder_zset", "5")},
    {"rank blocks without a key", ORPHAN_CHECK("larder_zset_block", "5")},
};

/* Prints what one check finds; *ret_found counts it. */
static enum status run_check(struct sqlite *c, const struct check *k, FILE *out, uint64_t *ret_found,
                             struct error *err)
{
    struct sqlite_stmt *q;
    *ret_found = 0;
    enum status st = sqlite_prepare(c, k->text, &q, err);
    if (st != ST_OK)
        return st;
    int64_t start = clock_mono_us();
    bool row;
    fprintf(out, "%s ... ", k->title);
    fflush(out);
    while ((st = sqlite_step(q, &row, err)) == ST_OK && row) {
        struct slice text = sqlite_column_blob(q, 0);
        if (++*ret_found <= CHECK_SHOWN)
            fprintf(out, "%s  %.*s\n", *ret_found == 1 ? "WRONG\n" : "", (int)text.n, text.p);
    }
    sqlite_finalize(q);
    if (st != ST_OK)
        fprintf(out, "UNREADABLE\n");
    else if (*ret_found > CHECK_SHOWN)
        fprintf(out, "  and %" PRIu64 " more\n", *ret_found - CHECK_SHOWN);
    else if (*ret_found == 0)
        fprintf(out, "ok (%.1f s)\n", (double)(clock_mono_us() - start) / 1e6);
    fflush(out);
    return st;
}

enum status check_tables(struct check_session *s, FILE *out, uint64_t *ret_found, struct error *err)
{
    enum status st = ST_OK;
    *ret_found = 0;
    for (size_t i = 0; st == ST_OK && i < sizeof checks / sizeof checks[0]; i++) {
        uint64_t found;
        st = run_check(s->sql, &checks[i], out, &found, err);
        *ret_found += found;
    }
    return st;
}

enum status store_check(const char *url, FILE *out, bool *ret_ok, struct error *err)
{
    struct check_session s = {0};
    uint64_t in_journal = 0, in_tables = 0;
    bool comparable = false;
    enum status st = check_open_settled(url, &s, err);
    if (st != ST_OK)
        return st;
    int version = SCHEMA_VERSION;
    if (!s.sql)
        version = REMOTE_SCHEMA_VERSION;
    fprintf(out, "schema version %d\n", version);
    st = check_journal(&s, out, &in_journal, &comparable, err);
    if (st == ST_OK && comparable)
        st = s.sql ? check_tables(&s, out, &in_tables, err) : remote_check_tables(&s, out, &in_tables, err);
    check_close(&s);
    if (st != ST_OK)
        return st;
    uint64_t total = in_journal + in_tables;
    *ret_ok = total == 0;
    if (!comparable)
        fprintf(out, "the tables have a part of what the journal says, and were not checked\n");
    if (in_journal)
        fprintf(out, "a server will not start on this journal: see larder check --salvage\n");
    if (total)
        fprintf(out, "%" PRIu64 " %s\n", total, total == 1 ? "finding" : "findings");
    return ST_OK;
}
