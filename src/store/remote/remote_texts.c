/* The SQL of the store on a database server, dialect beside dialect; remote_item_texts.c has that of items.
   Parameters are numbered, so that a text shows what goes where: ?1 in all texts of this file; for PostgreSQL
   it becomes $1. What {...} means in MariaDB's texts is said in sql/remote.h. */
#include <stdio.h>

#include "store/remote/remote_store.h"

/* clang-format off */

/* A hash that is there only in name: all its fields have expired by the moment given. */
#define DEAD_HASH(now)                                                                                       \
    "k.type = 2 AND k.first <> 0 AND k.first <= " now " AND k.size = (SELECT count(*) FROM larder_hash AS f" \
    " WHERE f.id = k.id AND f.expire_at <> 0 AND f.expire_at <= " now ")"

/* The columns of a key row, in the order in which remote_read.c reads them. */
#define KEY_COLUMNS(key, type)                                                                               \
    "k.seq, k.db, " key ", k.key_rest, " type ", k.id, k.size, k.first, k.version, k.expire_at, k.numbers"

#define DEAD_COLUMNS(key) "seq, db, " key ", key_rest, type, id, expire_at"

/* Rows for the sweeper, which skips those that others have locked, or waits for them. */
#define PG_DEAD_KEYS(skip)                                                                                   \
    "SELECT " DEAD_COLUMNS("key") " FROM larder_key WHERE expire_at <> 0"                                    \
    " AND expire_at <= $1 ORDER BY expire_at LIMIT $2 FOR UPDATE" skip
#define PG_DB_KEYS(skip)                                                                                     \
    "SELECT " DEAD_COLUMNS("key") " FROM larder_key WHERE db = $1 LIMIT $2 FOR UPDATE" skip
#define PG_LOOSE_SAME(skip)                                                                                  \
    "SELECT 1 FROM (SELECT 1 FROM unnest($1, $2) AS u (seq, was) JOIN larder_key AS k"                        \
    "  ON k.seq = u.seq AND k.version = u.was FOR SHARE OF k" skip ") AS w"                                   \
    " HAVING 1 / (count(*) = cardinality($1))::int = 0"

#define MD_DEAD_KEYS(skip)                                                                                   \
    "SELECT " DEAD_COLUMNS("`key`") " FROM larder_key FORCE INDEX (larder_key_expire)"                       \
    " WHERE expire_at < 0 OR (expire_at > 0 AND expire_at <= ?1)"                                            \
    " ORDER BY expire_at LIMIT ?2 FOR UPDATE" skip
#define MD_DB_KEYS(skip)                                                                                     \
    "SELECT " DEAD_COLUMNS("`key`") " FROM larder_key FORCE INDEX (larder_key_name)"                         \
    " WHERE db = ?1 LIMIT ?2 FOR UPDATE" skip
#define SKIP " SKIP LOCKED"


#define PG_CLOCK "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
#define MD_UNLESS(wrong) "9223372036854775807 + (" wrong ")"
#define MD_LOOSE_SAME(skip)                                                                                  \
    "SELECT 1 FROM larder_key WHERE ({ OR |(seq = ?1 AND version = ?2)})"                                    \
    " HAVING " MD_UNLESS("count(*) <> ?0") " = 0 FOR UPDATE" skip
#define MD_CLOCK "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"

/* Locks of ours are told from others' by the oid of a table: a number for each of them above that. */
#define PG_LOCK(n) "((" n ")::bigint << 32) | 'larder_meta'::regclass::oid::bigint"
#define MD_LOCK(kind)                                                                                        \
    "CONCAT('larder " kind "', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40))"
#define MD_TAKE_SHARED(n) "GET_LOCK(CONCAT(" MD_LOCK("shared ") ", (" n ") % 4096), 0)"

static const char *const fixed[REMOTE_DIALECTS][R_STATEMENTS] = {
    [REMOTE_POSTGRES] = {
        [R_GET_KEY] = "SELECT " KEY_COLUMNS("k.key", "k.type") ", k.value FROM larder_key AS k"
                      " WHERE k.db = $1 AND k.key = $2",
        [R_GET_KEYS] = "SELECT " KEY_COLUMNS("k.key", "k.type") ", k.value FROM unnest($1, $2) AS u (db, key)"
                       " JOIN larder_key AS k ON k.db = u.db AND k.key = u.key",
        [R_INSERT_KEYS] = "INSERT INTO larder_key (seq, db, key, key_rest, type, id, size, first, version,"
                          " expire_at, value, numbers) SELECT * FROM"
                          " unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        [R_UPDATE_KEYS] = "UPDATE larder_key AS k SET type = u.type, id = u.id, size = u.size, first = u.first,"
                          " version = u.version, expire_at = u.expire_at, value = u.value, numbers = u.numbers"
                          " FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS u (seq, db, key,"
                          "  rest, type, id, size, first, version, expire_at, value, numbers)"
                          " WHERE k.seq = u.seq AND k.db = u.db AND k.key = u.key",
        [R_COUNT_EXPIRED] = "SELECT count(*), 0 FROM larder_key WHERE expire_at <> 0"
                            " AND expire_at BETWEEN 1 AND $2 AND db = $1",
        [R_COUNT_DEAD_HASHES] = "SELECT count(*), count(*) FILTER (WHERE k.expire_at <> 0) FROM larder_key AS k"
                                " WHERE " DEAD_HASH("$2") " AND k.db = $1"
                                " AND (k.expire_at = 0 OR k.expire_at > $2)",
        [R_DUE_ROWS] = "SELECT k.id FROM larder_key AS k WHERE k.type = 6 AND k.id > $1 AND EXISTS (SELECT 1"
                       "  FROM larder_row AS r WHERE r.id = k.id AND r.expire_at <> 0 AND r.expire_at <= $2)"
                       " ORDER BY k.id LIMIT $3",
        [R_COUNT_KEYS] = "SELECT count(*), 0 FROM larder_key WHERE db = $1",
        [R_COUNT_EXPIRES] = "SELECT count(*) FILTER (WHERE expire_at > 0), count(*) FILTER (WHERE expire_at < 0)"
                            " FROM larder_key WHERE expire_at <> 0 AND db = $1",
        [R_LIST_DBS] = "SELECT d.db, d.number, d.keys + coalesce(sum(c.keys), 0)::bigint,"
                       " d.expires + coalesce(sum(c.expires), 0)::bigint"
                       " FROM larder_db AS d LEFT JOIN larder_count AS c ON c.number = d.number"
                       " GROUP BY d.db ORDER BY d.db",
        [R_GET_META] = "SELECT value::bigint FROM larder_meta WHERE name = convert_from($1, 'UTF8')",
        [R_SET_META] = "UPDATE larder_meta SET value = convert_from($2, 'UTF8')"
                       " WHERE name = convert_from($1, 'UTF8')",
        [R_RAISE_META] = "UPDATE larder_meta SET value = $2::bigint::text"
                         " WHERE name = convert_from($1, 'UTF8') AND value::bigint < $2",
        [R_GET_WORD] = "SELECT value FROM larder_meta WHERE name = convert_from($1, 'UTF8')",
        [R_PUT_WORD] = "INSERT INTO larder_meta (name, value) VALUES (convert_from($1, 'UTF8'),"
                       " convert_from($2, 'UTF8')) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [R_TAKE_IDS] = "UPDATE larder_meta SET value = (value::bigint + $1)::text WHERE name = 'next_id'",
        [R_NEXT_SEQ] = "SELECT nextval('larder_seq'), 0",
        [R_NEW_DB] = "INSERT INTO larder_db (db, number, keys, expires) VALUES ($1, $2, 0, 0)"
                     " ON CONFLICT DO NOTHING",
        [R_PUT_DBS] = "INSERT INTO larder_db (db, number, keys, expires) SELECT * FROM unnest($1, $2, $3, $4)"
                      " ON CONFLICT (db) DO UPDATE SET number = excluded.number, keys = excluded.keys,"
                      " expires = excluded.expires",
        [R_FOLD_COUNTS] = "UPDATE larder_db AS d SET keys = d.keys + s.keys, expires = d.expires + s.expires"
                          " FROM (SELECT number, sum(keys) AS keys, sum(expires) AS expires FROM larder_count"
                          "  GROUP BY number) AS s WHERE s.number = d.number",
        [R_CLEAR_COUNTS] = "DELETE FROM larder_count",
        [R_PUT_TRASH] = "INSERT INTO larder_trash (id, type) SELECT * FROM unnest($1, $2) ON CONFLICT DO NOTHING",
        [R_DEAD_KEYS] = PG_DEAD_KEYS(SKIP),
        [R_DB_KEYS] = PG_DB_KEYS(SKIP),
        [R_DELETE_KEYS] = "DELETE FROM larder_key AS k USING unnest($1) AS u (seq) WHERE k.seq = u.seq",
        [R_LIST_TRASH] = "SELECT id, type FROM larder_trash ORDER BY id, type LIMIT $1",
        [R_FORGET_DB] = "DELETE FROM larder_trash WHERE id = $1 AND type = $2"
                        " AND NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.db = $1)",
        [R_TAKE_OFF_DB] = "UPDATE larder_db AS d SET keys = d.keys - u.n, expires = d.expires - u.n"
                          " FROM unnest($1, $2) AS u (number, n) WHERE d.number = u.number",
        [R_ANYTHING] = "SELECT EXISTS (SELECT 1 FROM larder_key WHERE expire_at <> 0 AND expire_at <= $1)::int,"
                       " EXISTS (SELECT 1 FROM larder_trash)::int",
        /* Takes the tables' lock and the reader's, or neither: the session that reads may outlive the one that
           had the tables (remote_lock.c). A server that enters has both until the tables are its own. */
        [R_LOCK] = "SELECT CASE WHEN NOT pg_try_advisory_lock(" PG_LOCK("1818324580") ") THEN 0"
                   " WHEN NOT pg_try_advisory_lock(" PG_LOCK("1818324581") ")"
                   "  THEN 1 - pg_advisory_unlock(" PG_LOCK("1818324580") ")::int"
                   " WHEN pg_try_advisory_lock(" PG_LOCK("1818324582") ") THEN 1"
                   " ELSE 1 - pg_advisory_unlock(" PG_LOCK("1818324581") ")::int"
                   "  * pg_advisory_unlock(" PG_LOCK("1818324580") ")::int END",
        [R_LOCK_AGAIN] = "SELECT pg_try_advisory_lock(" PG_LOCK("1818324580") ")::int",
        [R_LOCK_READER] = "SELECT pg_try_advisory_lock(" PG_LOCK("1818324581") ")::int",
        [R_LOCK_APPLIER] = "SELECT pg_try_advisory_lock(" PG_LOCK("1818324582") ")::int",
        [R_UNLOCK_OTHERS] = "SELECT pg_advisory_unlock(" PG_LOCK("1818324581") ")::int"
                            " + pg_advisory_unlock(" PG_LOCK("1818324582") ")::int",
        [R_UNLOCK] = "SELECT pg_advisory_unlock(" PG_LOCK("1818324580") ")::int",
        [R_GET_OWNER] = "SELECT value FROM larder_meta WHERE name = 'owner'",
        [R_KEEP_OWNER] = "SELECT value FROM larder_meta WHERE name = 'owner' FOR SHARE",
        [R_SIZE] = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint, 0 FROM pg_class AS c"
                   " WHERE c.relkind = 'r' AND starts_with(c.relname, 'larder_') AND pg_table_is_visible(c.oid)",
        [R_BEGIN] = "BEGIN",
        [R_SOON] = "SET LOCAL synchronous_commit = off",
        [R_NOW] = "SELECT 1 WHERE current_setting('synchronous_commit') = 'off'"
                  " AND set_config('synchronous_commit', 'local', true) IS NULL",
        [R_BEGIN_READ] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        /* A void is not NULL: no rows come back. */
        [R_LOCK_ALL] = "SELECT 1 WHERE pg_advisory_xact_lock(" PG_LOCK("1818324579") ") IS NULL",
        [R_LOCK_SOME] = "SELECT 1 WHERE pg_advisory_xact_lock_shared(" PG_LOCK("1818324579") ") IS NULL",
        [R_LOCK_STRIPES] = "SELECT 1 FROM unnest($1) AS u (n)"
                           " WHERE pg_advisory_xact_lock(" PG_LOCK("1818324600 + u.n") ") IS NULL",
        [R_HURRY] = "SET LOCAL lock_timeout = 20",
        [R_HURRY_OFF] = "SET LOCAL lock_timeout = DEFAULT",
        /* With every transaction: numeric sums only where there are counts, the clock once. */
        [R_LOAD_DBS] = "SELECT d.db, d.number, d.keys + coalesce(c.keys, 0), d.expires + coalesce(c.expires, 0),"
                       " (SELECT " PG_CLOCK ") FROM larder_db AS d LEFT JOIN (SELECT number,"
                       "  sum(keys)::bigint AS keys, sum(expires)::bigint AS expires FROM larder_count"
                       "  GROUP BY number) AS c ON c.number = d.number ORDER BY d.db",
        /* The clock as the server has it: to make another number of it costs more than to look a key up. */
        [R_BRIEF] = "SELECT NULL::bytea, d.number::bigint, 0::smallint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,"
                    " 0::bigint, 0::bigint, timestamptz_send(clock_timestamp()) FROM larder_db AS d WHERE d.db = $1 UNION ALL"
                    " SELECT k.key, k.seq, k.type, k.id, k.size, k.first, k.version, k.expire_at, k.numbers, k.value"
                    " FROM larder_key AS k WHERE k.db = $2 AND k.key = ANY ($3)",
        /* No row, or a division by zero. */
        [R_LOOSE_DB] = "SELECT 1 FROM larder_db WHERE db = $1 AND number = $2 HAVING 1 / count(*) = 0",
        [R_LOOSE_UPDATE] = "WITH w AS (UPDATE larder_key AS k SET type = u.type, id = u.id, size = u.size,"
                           "  first = u.first, version = u.version, expire_at = u.expire_at, value = u.value,"
                           "  numbers = u.numbers FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS u (seq,"
                           "   was, type, id, size, first, version, expire_at, value, numbers)"
                           "  WHERE k.seq = u.seq AND k.version = u.was RETURNING 1)"
                           " SELECT 1 FROM w HAVING 1 / (count(*) = cardinality($1))::int = 0",
        [R_LOOSE_SAME] = PG_LOOSE_SAME(SKIP),
        [R_LOOSE_ABSENT] = "SELECT 1 FROM larder_key WHERE db = $1 AND key = ANY ($2)"
                           " HAVING 1 / (count(*) = 0)::int = 0",
        [R_GET_KEYS_LOCKED] = "SELECT " KEY_COLUMNS("k.key", "k.type") ", k.value"
                              " FROM unnest($1, $2) AS u (db, key) JOIN larder_key AS k"
                              "  ON k.db = u.db AND k.key = u.key FOR UPDATE OF k",
        [R_ADD_COUNTS] = "INSERT INTO larder_count AS c (number, slot, keys, expires)"
                         " SELECT u.n, pg_backend_pid() % 64, u.k, u.e FROM unnest($1, $2, $3) AS u (n, k, e)"
                         " ON CONFLICT (number, slot) DO UPDATE SET keys = c.keys + excluded.keys,"
                         "  expires = c.expires + excluded.expires",
        [R_DROP_COUNTS] = "DELETE FROM larder_count WHERE number = ANY ($1)",
        [R_SWEEP_LOCK] = "SELECT pg_try_advisory_xact_lock(" PG_LOCK("1818324578") ")::int, 0",
        [R_GUARD_SHARED] = "SELECT CASE WHEN NOT pg_try_advisory_lock_shared(" PG_LOCK("1818324580") ") THEN 0"
                           " WHEN NOT pg_try_advisory_lock_shared(" PG_LOCK("1818324581") ")"
                           "  THEN 1 - pg_advisory_unlock_shared(" PG_LOCK("1818324580") ")::int"
                           " WHEN pg_try_advisory_lock_shared(" PG_LOCK("1818324582") ") THEN 1"
                           " ELSE 1 - pg_advisory_unlock_shared(" PG_LOCK("1818324581") ")::int"
                           "  * pg_advisory_unlock_shared(" PG_LOCK("1818324580") ")::int END",
        [R_CLOCK] = "SELECT " PG_CLOCK ", 0",
        [R_LISTEN] = "LISTEN larder_wake",
        [R_LISTEN_LOCK] = "SELECT 1 WHERE pg_advisory_lock_shared(" PG_LOCK("1818324577") ") IS NULL",
        [R_UNLISTEN] = "UNLISTEN larder_wake",
        [R_LISTEN_UNLOCK] = "SELECT pg_advisory_unlock_shared(" PG_LOCK("1818324577") ")::int",
        [R_NOTIFY] = "SELECT pg_notify('larder_wake', '') WHERE NOT CASE WHEN"
                     " pg_try_advisory_lock(" PG_LOCK("1818324577") ")"
                     " THEN pg_advisory_unlock(" PG_LOCK("1818324577") ") ELSE false END",
        [R_UPSERT_KEYS] = "INSERT INTO larder_key (seq, db, key, key_rest, type, id, size, first, version,"
                          " expire_at, value, numbers) SELECT * FROM"
                          " unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
                          " ON CONFLICT (db, key) DO UPDATE SET type = excluded.type, id = excluded.id,"
                          " size = excluded.size, first = excluded.first, version = excluded.version,"
                          " expire_at = excluded.expire_at, value = excluded.value, numbers = excluded.numbers",
        [R_DELETE_NAMED_KEYS] = "DELETE FROM larder_key AS k USING unnest($1, $2) AS u (db, key)"
                                " WHERE k.db = u.db AND k.key = u.key",
        [R_JOURNAL_ADD] = "INSERT INTO larder_journal (seq, changes) VALUES ($1, $2)",
        [R_JOURNAL_PAGE] = "SELECT seq, changes FROM larder_journal WHERE seq > $1 ORDER BY seq LIMIT $2",
        [R_JOURNAL_DROP] = "DELETE FROM larder_journal WHERE seq IN (SELECT seq FROM larder_journal"
                           " WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) RETURNING seq",
        [R_JOURNAL_FORGET] = "DELETE FROM larder_journal WHERE seq > $1",
        [R_LOWER_APPLIED] = "UPDATE larder_meta SET value = $2::bigint::text"
                            " WHERE name = 'applied' AND value::bigint > $1",
        [R_JOURNAL_LAST] = "SELECT coalesce(max(seq), 0), 0 FROM larder_journal",
        [R_SET_APPLIED] = "UPDATE larder_meta SET value = CASE name WHEN 'applied' THEN $1 ELSE 0 END::text"
                          " WHERE name IN ('applied', 'applying')",
    },
    [REMOTE_MARIADB] = {
        [R_GET_KEY] = "SELECT " KEY_COLUMNS("k.`key`", "k.type") ", k.value FROM larder_key AS k"
                      " FORCE INDEX (larder_key_name) WHERE k.db = ?1 AND k.`key` = ?2",
        [R_GET_KEYS] = "SELECT " KEY_COLUMNS("k.`key`", "k.type") ", k.value FROM larder_key AS k"
                       " FORCE INDEX (larder_key_name) WHERE (k.db, k.`key`) IN ({,|(?1, ?2)})",
        [R_INSERT_KEYS] = "INSERT INTO larder_key (seq, db, `key`, key_rest, type, id, size, first, version,"
                          " expire_at, value, numbers) VALUES {,|(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)}",
        /* A row under this number that is another key's: no version may be NULL. */
        [R_UPDATE_KEYS] = "INSERT INTO larder_key (seq, db, `key`, key_rest, type, id, size, first, version,"
                          " expire_at, value, numbers) VALUES {,|(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)}"
                          " ON DUPLICATE KEY UPDATE version = IF(seq = VALUES(seq) AND db = VALUES(db)"
                          "  AND `key` = VALUES(`key`), VALUES(version), NULL), type = VALUES(type),"
                          " id = VALUES(id), size = VALUES(size), first = VALUES(first),"
                          " expire_at = VALUES(expire_at), value = VALUES(value), numbers = VALUES(numbers)",
        [R_COUNT_EXPIRED] = "SELECT count(*), 0 FROM larder_key WHERE expire_at BETWEEN 1 AND ?2 AND db = ?1",
        [R_COUNT_DEAD_HASHES] = "SELECT count(*), coalesce(sum(k.expire_at <> 0), 0) FROM larder_key AS k"
                                " WHERE k.due_at BETWEEN 1 AND ?2 AND " DEAD_HASH("?2") " AND k.db = ?1"
                                " AND (k.expire_at = 0 OR k.expire_at > ?2)",
        [R_DUE_ROWS] = "SELECT k.id FROM larder_key AS k FORCE INDEX (larder_key_first) WHERE k.due_at < 0"
                       " AND k.id > ?1 AND EXISTS (SELECT 1 FROM larder_row AS r FORCE INDEX (larder_row_expire)"
                       "  WHERE r.id = k.id AND r.expire_at BETWEEN 1 AND ?2) ORDER BY k.id LIMIT ?3",
        [R_COUNT_KEYS] = "SELECT count(*), 0 FROM larder_key WHERE db = ?1",
        [R_COUNT_EXPIRES] = "SELECT coalesce(sum(expire_at > 0), 0), coalesce(sum(expire_at < 0), 0)"
                            " FROM larder_key WHERE (expire_at < 0 OR expire_at > 0) AND db = ?1",
        [R_LIST_DBS] = "SELECT d.db, d.number, d.`keys` + coalesce(sum(c.`keys`), 0),"
                       " d.expires + coalesce(sum(c.expires), 0)"
                       " FROM larder_db AS d LEFT JOIN larder_count AS c ON c.number = d.number"
                       " GROUP BY d.db ORDER BY d.db",
        [R_GET_META] = "SELECT CAST(value AS SIGNED) FROM larder_meta WHERE name = ?1",
        [R_SET_META] = "UPDATE larder_meta SET value = ?2 WHERE name = ?1",
        [R_RAISE_META] = "UPDATE larder_meta SET value = ?2 WHERE name = ?1 AND CAST(value AS SIGNED) < ?2",
        [R_GET_WORD] = "SELECT value FROM larder_meta WHERE name = ?1",
        [R_PUT_WORD] = "INSERT INTO larder_meta (name, value) VALUES (?1, ?2)"
                       " ON DUPLICATE KEY UPDATE value = VALUES(value)",
        [R_TAKE_IDS] = "UPDATE larder_meta SET value = CAST(value AS SIGNED) + ?1 WHERE name = 'next_id'",
        /* Nobody waits for who takes one: a row of its own is locked alone. */
        [R_TAKE_SEQ] = "INSERT INTO larder_block (n) VALUES (NULL)",
        [R_LEAVE_SEQ] = "DELETE FROM larder_block WHERE n = LAST_INSERT_ID()",
        [R_NEXT_SEQ] = "SELECT (LAST_INSERT_ID() - 1) * 1024 + 1, 0",
        [R_NEW_DB] = "INSERT IGNORE INTO larder_db (db, number, `keys`, expires) VALUES (?1, ?2, 0, 0)",
        [R_PUT_DBS] = "INSERT INTO larder_db (db, number, `keys`, expires) VALUES {,|(?1, ?2, ?3, ?4)}"
                      " ON DUPLICATE KEY UPDATE number = VALUES(number), `keys` = VALUES(`keys`),"
                      " expires = VALUES(expires)",
        [R_FOLD_COUNTS] = "UPDATE larder_db AS d JOIN (SELECT number, sum(`keys`) AS n, sum(expires) AS e"
                          " FROM larder_count GROUP BY number) AS s ON s.number = d.number"
                          " SET d.`keys` = d.`keys` + s.n, d.expires = d.expires + s.e",
        [R_CLEAR_COUNTS] = "DELETE FROM larder_count",
        [R_PUT_TRASH] = "INSERT IGNORE INTO larder_trash (id, type) VALUES {,|(?1, ?2)}",
        [R_DEAD_KEYS] = MD_DEAD_KEYS(SKIP),
        [R_DB_KEYS] = MD_DB_KEYS(SKIP),
        [R_DELETE_KEYS] = "DELETE FROM larder_key WHERE seq IN ({,|?1})",
        [R_LIST_TRASH] = "SELECT id, type FROM larder_trash ORDER BY id, type LIMIT ?1",
        [R_FORGET_DB] = "DELETE FROM larder_trash WHERE id = ?1 AND type = ?2"
                        " AND NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.db = ?1)",
        [R_TAKE_OFF_DB] = "INSERT INTO larder_db (db, number, `keys`, expires) SELECT d.db, d.number, u.n, u.n FROM"
                          " ({ UNION ALL |SELECT ?1 AS number, ?2 AS n}) AS u JOIN larder_db AS d"
                          " ON d.number = u.number ON DUPLICATE KEY UPDATE `keys` = larder_db.`keys` - u.n,"
                          " expires = larder_db.expires - u.n",
        [R_ANYTHING] = "SELECT EXISTS (SELECT 1 FROM larder_key WHERE expire_at < 0 OR (expire_at > 0"
                       " AND expire_at <= ?1)), EXISTS (SELECT 1 FROM larder_trash)",
        /* Only while no server shares the tables: each that does holds a lock with a number. */
        [R_LOCK] = "SELECT IF(GET_LOCK(" MD_LOCK("") ", 0), IF((SELECT count(*) FROM seq_0_to_4095 WHERE"
                   " IS_USED_LOCK(CONCAT(" MD_LOCK("shared ") ", seq)) IS NOT NULL) = 0, IF(GET_LOCK("
                   MD_LOCK("reader ") ", 0), IF(GET_LOCK(" MD_LOCK("applier ") ", 0), 1,"
                   " RELEASE_LOCK(" MD_LOCK("reader ") ") * RELEASE_LOCK(" MD_LOCK("") ") * 0),"
                   " RELEASE_LOCK(" MD_LOCK("") ") * 0),"
                   " RELEASE_LOCK(" MD_LOCK("") ") * 0), 0)",
        [R_LOCK_AGAIN] = "SELECT GET_LOCK(" MD_LOCK("") ", 0)",
        [R_LOCK_READER] = "SELECT GET_LOCK(" MD_LOCK("reader ") ", 0)",
        [R_LOCK_APPLIER] = "SELECT GET_LOCK(" MD_LOCK("applier ") ", 0)",
        [R_UNLOCK_OTHERS] = "SELECT RELEASE_LOCK(" MD_LOCK("reader ") ") + RELEASE_LOCK(" MD_LOCK("applier ") ")",
        [R_UNLOCK] = "SELECT RELEASE_LOCK(" MD_LOCK("") ")",
        /* Not before an application that is about to change it has ended its transaction. */
        [R_GET_OWNER] = "SELECT value FROM larder_meta WHERE name = 'owner' LOCK IN SHARE MODE",
        [R_KEEP_OWNER] = "SELECT value FROM larder_meta WHERE name = 'owner' LOCK IN SHARE MODE",
        [R_SIZE] = "SELECT coalesce(sum(data_length + index_length), 0), coalesce(sum(data_free), 0)"
                   " FROM information_schema.tables WHERE table_schema = DATABASE()"
                   " AND LEFT(table_name, LENGTH('larder_')) = 'larder_'",
        [R_BEGIN] = "START TRANSACTION",
        [R_SOON] = "DO 0", /* not a session's business there */
        [R_NOW] = "DO 0",
        [R_SNAPSHOT] = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        [R_BEGIN_READ] = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
        [R_LOCK_ALL] = "SELECT n FROM larder_lock WHERE n = -1 FOR UPDATE",
        [R_LOCK_SOME] = "SELECT n FROM larder_lock WHERE n = -1 LOCK IN SHARE MODE",
        [R_LOCK_STRIPES] = "SELECT n FROM larder_lock WHERE n IN ({,|?1}) ORDER BY n FOR UPDATE",
        [R_LOAD_DBS] = "SELECT d.db, d.number, d.`keys` + coalesce(sum(c.`keys`), 0),"
                       " d.expires + coalesce(sum(c.expires), 0), " MD_CLOCK
                       " FROM larder_db AS d LEFT JOIN larder_count AS c ON c.number = d.number"
                       " GROUP BY d.db ORDER BY d.db",
        [R_BRIEF] = "SELECT NULL, d.number, 0, 0, 0, 0, 0, 0, 0, " MD_CLOCK " FROM larder_db AS d WHERE d.db = ?1"
                    " UNION ALL SELECT k.`key`, k.seq, k.type, k.id, k.size, k.first, k.version, k.expire_at,"
                    " k.numbers, k.value FROM larder_key AS k FORCE INDEX (larder_key_name)"
                    " WHERE k.db = ?2 AND k.`key` IN ({,|?3})",
        [R_GET_KEYS_LOCKED] = "SELECT " KEY_COLUMNS("k.`key`", "k.type") ", k.value FROM larder_key AS k"
                              " FORCE INDEX (larder_key_name) WHERE (k.db, k.`key`) IN ({,|(?1, ?2)}) FOR UPDATE",
        /* What is not so is beyond the numbers that there are, which is an error. */
        [R_LOOSE_DB] = "SELECT " MD_UNLESS("count(*) <> 1") " FROM larder_db WHERE db = ?1 AND number = ?2",
        /* key_rest, which does not change, brings the version that was read. */
        [R_LOOSE_UPDATE] = "INSERT INTO larder_key (seq, key_rest, type, id, size, first, version, expire_at, value,"
                           " numbers, db, `key`) VALUES {,|(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)}"
                           " ON DUPLICATE KEY UPDATE version = VALUES(version) + IF(seq = VALUES(seq)"
                           "  AND version = CAST(VALUES(key_rest) AS SIGNED), 0, 9223372036854775807),"
                           " type = VALUES(type), id = VALUES(id), size = VALUES(size), first = VALUES(first),"
                           " expire_at = VALUES(expire_at), value = VALUES(value), numbers = VALUES(numbers)",
        [R_LOOSE_SAME] = MD_LOOSE_SAME(SKIP),
        [R_LOOSE_ABSENT] = "SELECT 1 FROM larder_key FORCE INDEX (larder_key_name) WHERE db = ?1"
                           " AND `key` IN ({,|?2}) HAVING " MD_UNLESS("count(*) <> 0") " = 0",
        [R_ADD_COUNTS] = "INSERT INTO larder_count (number, slot, `keys`, expires)"
                         " VALUES {,|(?1, CONNECTION_ID() % 64, ?2, ?3)} ON DUPLICATE KEY UPDATE"
                         " `keys` = `keys` + VALUES(`keys`), expires = expires + VALUES(expires)",
        [R_DROP_COUNTS] = "DELETE FROM larder_count WHERE number IN ({,|?1})",
        [R_SWEEP_LOCK] = "SELECT IF(IS_USED_LOCK(" MD_LOCK("sweep ") ") = CONNECTION_ID(), 1,"
                         " GET_LOCK(" MD_LOCK("sweep ") ", 0)), 0",
        [R_SWEEP_UNLOCK] = "DO RELEASE_LOCK(" MD_LOCK("sweep ") ")",
        /* Of three locks one that no other session has: numbers of connections grow beyond those of locks. */
        [R_GUARD_SHARED] = "SELECT IF(" MD_TAKE_SHARED("CONNECTION_ID()") ", 1, IF("
                           MD_TAKE_SHARED("CONNECTION_ID() * 3 + CONNECTION_ID() DIV 4096 * 5 + 1365") ", 1, "
                           MD_TAKE_SHARED("CONNECTION_ID() * 5 + CONNECTION_ID() DIV 4096 * 7 + 2730") "))"
                           " AND IS_FREE_LOCK(" MD_LOCK("") ") AND IS_FREE_LOCK(" MD_LOCK("reader ") ")"
                           " AND IS_FREE_LOCK(" MD_LOCK("applier ") ")",
        [R_WAIT_LESS] = "SET innodb_lock_wait_timeout = ?1",
        [R_CLOCK] = "SELECT " MD_CLOCK ", 0",
        [R_UPSERT_KEYS] = "INSERT INTO larder_key (seq, db, `key`, key_rest, type, id, size, first, version,"
                          " expire_at, value, numbers) VALUES {,|(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)}"
                          " ON DUPLICATE KEY UPDATE type = VALUES(type), id = VALUES(id), size = VALUES(size),"
                          " first = VALUES(first), version = VALUES(version), expire_at = VALUES(expire_at),"
                          " value = VALUES(value), numbers = VALUES(numbers)",
        [R_DELETE_NAMED_KEYS] = "DELETE FROM larder_key WHERE (db, `key`) IN ({,|(?1, ?2)})",
        [R_JOURNAL_ADD] = "INSERT INTO larder_journal (seq, changes) VALUES (?1, ?2)",
        [R_JOURNAL_PAGE] = "SELECT seq, changes FROM larder_journal WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        [R_JOURNAL_DROP] = "DELETE FROM larder_journal WHERE seq > ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3"
                           " RETURNING seq",
        [R_JOURNAL_FORGET] = "DELETE FROM larder_journal WHERE seq > ?1",
        [R_LOWER_APPLIED] = "UPDATE larder_meta SET value = ?2"
                            " WHERE name = 'applied' AND CAST(value AS SIGNED) > ?1",
        [R_JOURNAL_LAST] = "SELECT coalesce(max(seq), 0), 0 FROM larder_journal",
        [R_SET_APPLIED] = "UPDATE larder_meta SET value = IF(name = 'applied', ?1, 0)"
                          " WHERE name IN ('applied', 'applying')",
    },
};

/* Of a node of a Galera cluster, in the place of MariaDB's: remote_galera.c. */
static const char *const galera[R_STATEMENTS] = {
    /* ?4 is not the rest of the name, which does not change, but the version that the row was read with. */
    [R_UPDATE_KEYS] = "INSERT INTO larder_key (seq, db, `key`, key_rest, type, id, size, first, version,"
                      " expire_at, value, numbers) VALUES {,|(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)}"
                      " ON DUPLICATE KEY UPDATE version = IF(seq = VALUES(seq) AND db = VALUES(db)"
                      "  AND `key` = VALUES(`key`) AND version = CAST(VALUES(key_rest) AS SIGNED),"
                      "  VALUES(version), NULL), type = VALUES(type), id = VALUES(id), size = VALUES(size),"
                      " first = VALUES(first), expire_at = VALUES(expire_at), value = VALUES(value),"
                      " numbers = VALUES(numbers)",
    [R_TAKE_SEQ] = "UPDATE larder_meta SET value = CAST(value AS SIGNED) + 1024 WHERE name = 'next_seq'",
    [R_LEAVE_SEQ] = "DO 0",
    [R_NEXT_SEQ] = "SELECT CAST(value AS SIGNED) - 1024 + 2, 0 FROM larder_meta WHERE name = 'next_seq'",
    [R_ADD_COUNTS] = "INSERT INTO larder_count (number, slot, `keys`, expires)"
                     " VALUES {,|(?1, 2000 + ?4, ?2, ?3)} ON DUPLICATE KEY UPDATE"
                     " `keys` = `keys` + VALUES(`keys`), expires = expires + VALUES(expires)",
    /* The row is there, and nobody else's there. */
    [R_SWEEP_LOCK] = "SELECT 1, n FROM larder_lock WHERE n = 0 FOR UPDATE SKIP LOCKED",
    [R_SWEEP_UNLOCK] = "DO 0",
    [R_GUARD_SHARED] = "SELECT 1", /* no server can have the tables for itself */
};

#define SWEEP_ROW(skip) "SELECT 1, n FROM larder_lock WHERE n = -2 FOR UPDATE" skip

/* Where rows of larder_lock are locked in the place of sessions' locks: remote_proof.c. */
static const char *const by_rows[REMOTE_DIALECTS][R_STATEMENTS] = {
    [REMOTE_POSTGRES] = {
        [R_LOCK_ALL] = "SELECT n FROM larder_lock WHERE n = -1 FOR UPDATE",
        [R_LOCK_SOME] = "SELECT n FROM larder_lock WHERE n = -1 FOR SHARE",
        [R_LOCK_STRIPES] = "SELECT n FROM larder_lock WHERE n = ANY ($1) ORDER BY n FOR UPDATE",
        [R_SWEEP_LOCK] = SWEEP_ROW(SKIP),
        [R_GUARD_SHARED] = "SELECT 1", /* no server can have the tables for itself */
        [R_LISTEN_LOCK] = "SELECT 1",
        [R_LISTEN_UNLOCK] = "SELECT 1",
        [R_NOTIFY] = "SELECT pg_notify('larder_wake', '')", /* who listens is not known */
    },
    [REMOTE_MARIADB] = {
        [R_SWEEP_LOCK] = SWEEP_ROW(SKIP),
        [R_SWEEP_UNLOCK] = "DO 0",
        [R_GUARD_SHARED] = "SELECT 1",
    },
};

/* Where there is no SKIP LOCKED. */
static const char *const waiting[REMOTE_DIALECTS][R_STATEMENTS] = {
    [REMOTE_POSTGRES] = {[R_DEAD_KEYS] = PG_DEAD_KEYS(""), [R_DB_KEYS] = PG_DB_KEYS(""),
                         [R_LOOSE_SAME] = PG_LOOSE_SAME("")},
    [REMOTE_MARIADB] = {[R_DEAD_KEYS] = MD_DEAD_KEYS(""),
                        [R_DB_KEYS] = MD_DB_KEYS(""),
                        [R_LOOSE_SAME] = MD_LOOSE_SAME("")},
};

/* clang-format on */

const char *rtext(const struct rstore *s, enum remote_statement which)
{
    if (s->conn->galera.on && galera[which])
        return galera[which];
    if (!s->features.listen && which >= R_LISTEN && which <= R_NOTIFY)
        return NULL;
    if (!s->features.skip_locked && waiting[s->conn->dialect][which])
        return waiting[s->conn->dialect][which];
    if (s->lock_rows && which == R_SWEEP_LOCK && !s->features.skip_locked)
        return SWEEP_ROW("");
    if (s->lock_rows && by_rows[s->conn->dialect][which])
        return by_rows[s->conn->dialect][which];
    return fixed[s->conn->dialect][which];
}

const char *rtext_lock(enum remote_dialect dialect)
{
    return fixed[dialect][R_LOCK];
}

/* ---- composed texts ---- */

const char *rtext_end(struct rstore *s)
{
    buf_add(&s->text, "", 1);
    for (char *p = s->text.p; rtext_postgres(s) && *p; p++)
        if (*p == '?')
            *p = '$';
    return s->text.p;
}

const char *rtext_no_bytes(const struct rstore *s)
{
    return rtext_postgres(s) ? "''::bytea" : "''";
}

/* By key, within bounds. */
static void add_keys_between(struct rstore *s, const struct key_scan *q, const char *key, bool has_end)
{
    buf_addf(&s->text, "k.db = ?1 AND %s %s ?2", key, q->has_after ? ">" : ">=");
    if (has_end)
        buf_addf(&s->text, " AND %s < ?3", key);
    buf_addf(&s->text, " ORDER BY %s%s", key, q->reverse && q->order == KEYS_BY_KEY ? " DESC" : "");
}

const char *rtext_scan_keys(struct rstore *s, const struct key_scan *q, bool has_end)
{
    const char *key = rtext_postgres(s) ? "k.key" : "k.`key`";
    bool tables = q->order == KEYS_TABLES, plain = q->order == KEYS_DUE || q->order == KEYS_EXPIRED || tables;
    s->text.len = 0;
    buf_addf(&s->text, "SELECT " KEY_COLUMNS("%s", "%s") ", %s FROM larder_key AS k%s WHERE ", key,
             plain ? "k.type" : "CASE WHEN " DEAD_HASH("?5") " THEN 0 ELSE k.type END",
             q->with_value ? "k.value" : rtext_no_bytes(s),
             tables && !rtext_postgres(s) ? " FORCE INDEX (larder_key_first)" : "");
    switch (q->order) {
    case KEYS_DUE:
        buf_addf(&s->text, rtext_postgres(s) ? "k.type = 2 AND k.first <> 0 AND k.first <= ?5"
                                             : "k.due_at BETWEEN 1 AND ?5");
        buf_addf(&s->text, " ORDER BY k.first, k.seq");
        break;
    case KEYS_EXPIRED:
        buf_addf(&s->text, "k.expire_at <> 0 AND k.expire_at BETWEEN ?2 AND ?5"
                           " ORDER BY k.expire_at, k.db, k.seq");
        break;
    case KEYS_BY_SEQ_DESC:
        buf_addf(&s->text, "k.seq < ?2 ORDER BY k.seq DESC");
        break;
    case KEYS_TABLES:
        if (q->every_db) {
            buf_addf(&s->text, "%s ORDER BY k.db, %s", rtext_postgres(s) ? "k.type = 6" : "k.due_at < 0",
                     key);
            break;
        }
        buf_addf(&s->text, "%s AND ", rtext_postgres(s) ? "k.type = 6" : "k.due_at = -1 - ?1");
        add_keys_between(s, q, key, has_end);
        break;
    case KEYS_BY_KEY:
        add_keys_between(s, q, key, has_end);
        break;
    }
    buf_addf(&s->text, " LIMIT ?4 OFFSET ?6");
    return rtext_end(s);
}
