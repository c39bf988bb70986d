/* The views and functions of this version, which hold no data: step 2 brings them, and remote_verify.c makes
   them again where a dump came without them.

   A dump of MariaDB's names them as they are called here, with two exceptions, which is why neither is used:
   the sequence in a column's default, and a function in a view, which a dump without --routines lacks. */
#include "store/remote/remote_schema_internal.h"
#include "store/remote/remote_schema_macros.h"

/* clang-format off */

/* ---- PostgreSQL ---- */

#define PG_FUNCTION "CREATE OR REPLACE FUNCTION "
#define PG_PATH " SET search_path FROM CURRENT AS "

/* A string from its row or its chunks; those that are missing or short stand for zeros. */
#define PG_STRING                                                                                            \
    "CASE WHEN k.id = 0 THEN k.value ELSE (SELECT string_agg(coalesce(c.value, ''::bytea) ||"                \
    "  decode(repeat('00', (least(16384, k.size - p * 16384) - coalesce(length(c.value), 0))::integer), 'hex')," \
    "  ''::bytea ORDER BY p) FROM generate_series(0, (k.size - 1) / 16384) AS p"                             \
    "  LEFT JOIN larder_chunk AS c ON c.id = k.id AND c.pos = p) END"

/* The same with other types: text is UTF-8, a time to live may be said as text ('1 hour') or in seconds. */
#define PG_SET(keys, key, values, value, ttls, ttl)                                                          \
    PG_FUNCTION "larder_set(key " keys ", value " values ", ttl " ttls ", db integer DEFAULT 0)"             \
    " RETURNS void LANGUAGE sql" PG_PATH "$$ SELECT larder_set(" key ", " value ", " ttl ", $4) $$;"
#define PG_UTF8(arg) "convert_to(" arg ", 'UTF8')"
#define PG_SETS(keys, key, values, value)                                                                    \
    PG_SET(keys, key, values, value, "double precision", "make_interval(secs => $3)")                        \
    PG_SET(keys, key, values, value, "text", "$3::interval")

const char remote_postgres_functions[] =
    /* Helpers of the views, and of people. */
    PG_FUNCTION "larder_now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS"
    " 'SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint';"
    PG_FUNCTION "larder_name(name bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(name) <= 1000 THEN name ELSE substr(name, 1, 992) || sha256(name) END';"
    PG_FUNCTION "larder_rest(name bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(name) <= 1000 THEN ''''::bytea ELSE substr(name, 993) END';"
    PG_FUNCTION "larder_whole(name bytea, rest bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(rest) = 0 THEN name ELSE substr(name, 1, 992) || rest END';"
    PG_FUNCTION "larder_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$"
    " BEGIN RETURN convert_from(bytes, 'UTF8');"
    " EXCEPTION WHEN OTHERS THEN RETURN encode(bytes, 'escape'); END $$;"

    /* For applications: their own tables and keys in one transaction. */
    PG_FUNCTION "larder_lock_key() RETURNS bigint LANGUAGE sql STABLE" PG_PATH
    " 'SELECT (1818324580::bigint << 32) | ''larder_meta''::regclass::oid::bigint';"
    PG_FUNCTION "larder_enter(db integer, key bytea) RETURNS integer LANGUAGE plpgsql" PG_PATH "$$"
    " DECLARE result integer; own text; by_rows boolean; BEGIN"
    " IF key IS NULL THEN RAISE EXCEPTION 'the key must not be NULL' USING ERRCODE = 'null_value_not_allowed'; END IF;"
    " IF db IS NULL THEN RAISE EXCEPTION 'the number of the database must not be NULL'"
    "  USING ERRCODE = 'null_value_not_allowed'; END IF;"
    /* Where sessions' locks do nothing, rows are locked, and no server has the tables alone. */
    " by_rows := EXISTS (SELECT 1 FROM larder_meta AS m WHERE m.name = 'locks' AND m.value = 'rows');"
    " IF by_rows THEN NULL;"
    " ELSIF NOT pg_try_advisory_xact_lock_shared(larder_lock_key()) OR NOT pg_try_advisory_xact_lock_shared("
    "   (1818324581::bigint << 32) | 'larder_meta'::regclass::oid::bigint) THEN"
    "  RAISE EXCEPTION 'a Larder server has these tables for itself alone (mode exclusive)'"
    "   USING ERRCODE = 'lock_not_available'; END IF;"
    /* One that had them, and ended badly or has lost its connection: it shall know that they have changed. */
    " SELECT m.value INTO own FROM larder_meta AS m WHERE m.name = 'owner';"
    " IF own <> '' THEN"
    "  IF EXISTS (SELECT 1 FROM larder_journal AS j WHERE j.seq >"
    "    (SELECT m.value::bigint FROM larder_meta AS m WHERE m.name = 'applied')) THEN"
    "   RAISE EXCEPTION 'the journal of a Larder server has to be applied first: start one'"
    "    USING ERRCODE = 'lock_not_available'; END IF;"
    /* Until then it may answer from memory: lease.h. */
    "  PERFORM pg_sleep(coalesce(substring(own FROM '; lease ([0-9]+) ms')::float8, 0) * 1.01 / 1000 + 0.001);"
    "  UPDATE larder_meta AS m SET value = '' WHERE m.name = 'owner'; END IF;"
    " IF by_rows THEN"
    "  PERFORM 1 FROM larder_lock AS l WHERE l.n = -1 FOR SHARE;"
    "  PERFORM 1 FROM larder_lock AS l WHERE l.n = get_byte(sha256(key), 0) * 2 + get_byte(sha256(key), 1) / 128"
    "   FOR UPDATE;"
    " ELSE"
    "  PERFORM pg_advisory_xact_lock_shared((1818324579::bigint << 32) | 'larder_meta'::regclass::oid::bigint);"
    /* The class of the key as servers have it: the first 20 bits (remote_shared.c). */
    "  PERFORM pg_advisory_xact_lock(((1818324600::bigint + (get_byte(sha256(key), 0) * 4096"
    "   + get_byte(sha256(key), 1) * 16 + get_byte(sha256(key), 2) / 16)) << 32)"
    "   | 'larder_meta'::regclass::oid::bigint); END IF;"
    " SELECT d.number INTO result FROM larder_db AS d WHERE d.db = larder_enter.db;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'there is no database %', db; END IF;"
    " RETURN result; END $$;"
    PG_FUNCTION "larder_counted(number integer, keys integer, expires integer) RETURNS void LANGUAGE sql" PG_PATH
    " 'INSERT INTO larder_count AS c (number, slot, keys, expires)"
    "  SELECT $1, 1000 + pg_backend_pid() % 64, $2, $3 WHERE $2 <> 0 OR $3 <> 0"
    "  ON CONFLICT (number, slot) DO UPDATE SET keys = c.keys + excluded.keys,"
    "   expires = c.expires + excluded.expires';"

    PG_FUNCTION "larder_get(key bytea, db integer DEFAULT 0) RETURNS bytea LANGUAGE sql STABLE" PG_PATH "$$"
    " SELECT " PG_STRING " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"
    " WHERE d.db = $2 AND k.key = larder_name($1) AND k.type = 1 AND " LIVE(PG_NOW) " $$;"
    PG_FUNCTION "larder_get(key text, db integer DEFAULT 0) RETURNS bytea LANGUAGE sql STABLE" PG_PATH
    "$$ SELECT larder_get(" PG_UTF8("$1") ", $2) $$;"
    PG_FUNCTION "larder_get_text(key text, db integer DEFAULT 0) RETURNS text LANGUAGE sql STABLE" PG_PATH
    "$$ SELECT larder_text(larder_get(" PG_UTF8("$1") ", $2)) $$;"

    PG_FUNCTION "larder_set(key bytea, value bytea, ttl interval DEFAULT NULL, db integer DEFAULT 0)"
    " RETURNS void LANGUAGE plpgsql" PG_PATH "$$"
    " DECLARE num integer := larder_enter(db, key); old record; long_id bigint := 0;"
    "  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;"
    "  ends bigint := CASE WHEN ttl IS NULL THEN 0"
    "   ELSE now_us / 1000 + (extract(epoch FROM ttl) * 1000)::bigint END;"
    " BEGIN"
    " IF value IS NULL THEN RAISE EXCEPTION 'the value must not be NULL: larder_del removes a key'"
    "  USING ERRCODE = 'null_value_not_allowed'; END IF;"
    " IF ends < 0 OR (ttl IS NOT NULL AND ends <= now_us / 1000) THEN"
    "  RAISE EXCEPTION 'a time to live has to be longer than nothing'; END IF;"
    " IF length(value) > 65536 THEN"
    "  UPDATE larder_meta AS m SET value = (m.value::bigint + 1)::text WHERE m.name = 'next_id'"
    "   RETURNING m.value::bigint - 1 INTO long_id;"
    "  INSERT INTO larder_chunk (id, pos, value) SELECT long_id, p, substr(larder_set.value, p * 16384 + 1, 16384)"
    "   FROM generate_series(0, (length(value) - 1) / 16384) AS p; END IF;"
    " LOOP"
    "  SELECT k.seq, k.id, k.type, k.version, k.expire_at INTO old FROM larder_key AS k"
    "   WHERE k.db = num AND k.key = larder_name(larder_set.key) FOR UPDATE;"
    "  IF FOUND THEN EXIT; END IF;"
    "  INSERT INTO larder_key AS k (db, key, key_rest, type, id, size, first, version, expire_at, value)"
    "   VALUES (num, larder_name(key), larder_rest(key), 1, long_id,"
    "    CASE WHEN long_id = 0 THEN 0 ELSE length(value) END, 0, now_us, ends,"
    "    CASE WHEN long_id = 0 THEN value ELSE '' END) ON CONFLICT DO NOTHING;"
    "  IF FOUND THEN PERFORM larder_counted(num, 1, (ends > 0)::integer); RETURN; END IF;"
    " END LOOP;"
    " IF old.id <> 0 THEN INSERT INTO larder_trash (id, type) VALUES (old.id, old.type) ON CONFLICT DO NOTHING;"
    " END IF;"
    " UPDATE larder_key AS k SET type = 1, id = long_id,"
    "  size = CASE WHEN long_id = 0 THEN 0 ELSE length(larder_set.value) END, first = 0, numbers = 0,"
    "  version = greatest(old.version + 1, now_us), expire_at = ends,"
    "  value = CASE WHEN long_id = 0 THEN larder_set.value ELSE '' END WHERE k.seq = old.seq;"
    " PERFORM larder_counted(num, 1 - (old.expire_at >= 0)::integer,"
    "  (ends > 0)::integer - (old.expire_at > 0)::integer); END $$;"
    PG_FUNCTION "larder_set(key text, value text, ttl interval DEFAULT NULL, db integer DEFAULT 0)"
    " RETURNS void LANGUAGE sql" PG_PATH "$$ SELECT larder_set(" PG_UTF8("$1") ", " PG_UTF8("$2") ", $3, $4) $$;"
    PG_FUNCTION "larder_set(key text, value bytea, ttl interval DEFAULT NULL, db integer DEFAULT 0)"
    " RETURNS void LANGUAGE sql" PG_PATH "$$ SELECT larder_set(" PG_UTF8("$1") ", $2, $3, $4) $$;"
    PG_SETS("bytea", "$1", "bytea", "$2")
    PG_SETS("text", PG_UTF8("$1"), "text", PG_UTF8("$2"))
    PG_SETS("text", PG_UTF8("$1"), "bytea", "$2")

    PG_FUNCTION "larder_del(key bytea, db integer DEFAULT 0) RETURNS boolean LANGUAGE plpgsql" PG_PATH "$$"
    " DECLARE num integer := larder_enter(db, key); old record;"
    "  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;"
    " BEGIN"
    " SELECT k.seq, k.id, k.type, k.version, k.expire_at INTO old FROM larder_key AS k"
    "  WHERE k.db = num AND k.key = larder_name(larder_del.key) AND k.type <> 0"
    "  AND (k.expire_at = 0 OR k.expire_at > now_us / 1000) FOR UPDATE;"
    " IF NOT FOUND THEN RETURN false; END IF;"
    " IF old.id <> 0 THEN INSERT INTO larder_trash (id, type) VALUES (old.id, old.type) ON CONFLICT DO NOTHING;"
    " END IF;"
    " UPDATE larder_key AS k SET type = 0, id = 0, size = 0, first = 0, numbers = 0, value = '', expire_at = -1,"
    "  version = greatest(old.version + 1, now_us) WHERE k.seq = old.seq;"
    " PERFORM larder_counted(num, -1, -(old.expire_at > 0)::integer); RETURN true; END $$;"
    PG_FUNCTION "larder_del(key text, db integer DEFAULT 0) RETURNS boolean LANGUAGE sql" PG_PATH
    "$$ SELECT larder_del(" PG_UTF8("$1") ", $2) $$;";

const char remote_postgres_views[] =
    "CREATE OR REPLACE VIEW larder_keys AS SELECT d.db AS db, " PG_KEY " AS key, " TYPE_NAME " AS type,"
    " CASE WHEN k.type = 1 AND k.id = 0 THEN length(k.value)"
    "  WHEN " DUE(PG_NOW) " THEN k.size - " EXPIRED_FIELDS(PG_NOW) " ELSE k.size END AS size, "
    PG_MOMENT("k.expire_at") " AS expires,"
    " CASE WHEN k.expire_at > 0 THEN (k.expire_at - " PG_NOW ") / 1000.0 END AS ttl,"
    " k.version AS version, k.key AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"
    " WHERE k.type <> 0 AND " LIVE(PG_NOW)
    " AND NOT (" DUE(PG_NOW) " AND k.size = " EXPIRED_FIELDS(PG_NOW) ");"
    "CREATE OR REPLACE VIEW larder_strings AS SELECT d.db AS db, " PG_KEY " AS key,"
    " larder_text(" PG_STRING ") AS value, "
    PG_MOMENT("k.expire_at") " AS expires, k.key AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db WHERE k.type = 1 AND " LIVE(PG_NOW) ";"
    "CREATE OR REPLACE " PG_ITEMS("larder_hashes", "larder_hash", "2",
             "larder_text(larder_whole(i.field, i.field_rest)) AS field, larder_text(i.value) AS value",
             FIELD_ENDS, " AND (i.expire_at = 0 OR i.expire_at > " PG_NOW ")")
    "CREATE OR REPLACE " PG_ITEMS("larder_lists", "larder_list", "3",
             "i.pos - k.first AS position, larder_text(i.value) AS value", "k.expire_at", "")
    "CREATE OR REPLACE " PG_ITEMS("larder_sets", "larder_set", "4",
             "larder_text(larder_whole(i.member, i.member_rest)) AS member", "k.expire_at", "")
    "CREATE OR REPLACE " PG_ITEMS("larder_zsets", "larder_zset", "5",
             "larder_text(larder_whole(i.member, i.member_rest)) AS member, i.score AS score",
             "k.expire_at", "");

/* ---- MariaDB ---- */

#define MD_FUNCTION "CREATE OR REPLACE FUNCTION "
#define MD_PROCEDURE "CREATE OR REPLACE PROCEDURE "
#define MD_REFUSE(text) " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '" text "';"

/* A server has the tables. */
#define MD_REFUSE_ALONE                                                                                      \
    " IF IS_USED_LOCK(larder_lock_name()) IS NOT NULL OR IS_USED_LOCK(larder_reader_name()) IS NOT NULL THEN" \
    MD_REFUSE("a Larder server has these tables for itself alone (mode exclusive)") " END IF;"

/* A body that is one step also where no transaction is open: each statement of a procedure would be a transaction of
   its own then, and let go of its locks; those of a function belong to the statement that calls it. It may be called
   by a trigger, as one that commits may not. (DO would swallow its errors: SET does not.) */
#define MD_AS_ONE(name, parameters)                                                                          \
    MD_FUNCTION name "(" parameters ") RETURNS INT DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER BEGIN"

/* What both begin with: num is the database's number. */
#define MD_ENTER                                                                                             \
    " IF p_key IS NULL THEN" MD_REFUSE("the key must not be NULL") " END IF;"                                \
    " IF p_db IS NULL THEN" MD_REFUSE("the number of the database must not be NULL") " END IF;"              \
    MD_REFUSE_ALONE                                                                                          \
    /* One that had them, and ended badly or has lost its connection: it shall know that they have changed,  \
       and until its lease is over it may answer from memory (lease.h). Whoever has the row keeps it from     \
       coming back meanwhile. */                                                                             \
    " IF (SELECT value FROM larder_meta WHERE name = 'owner') <> '' THEN BEGIN"                              \
    "  DECLARE own VARBINARY(512);"                                                                          \
    "  SELECT value INTO own FROM larder_meta WHERE name = 'owner' FOR UPDATE;"                              \
    "  IF EXISTS (SELECT 1 FROM larder_journal WHERE seq >"                                                  \
    "   (SELECT CAST(value AS SIGNED) FROM larder_meta WHERE name = 'applied')) THEN"                        \
    MD_REFUSE("the journal of a Larder server has to be applied first: start one") " END IF;"                \
    "  DO SLEEP(IF(LOCATE('; lease ', own) = 0, 0, CAST(SUBSTRING_INDEX(SUBSTRING_INDEX(own, '; lease ', -1),"\
    "   ' ', 1) AS DECIMAL(20)) * 1.01 / 1000 + 0.001));"                                                    \
    MD_REFUSE_ALONE                                                                                          \
    "  UPDATE larder_meta SET value = '' WHERE name = 'owner'; END; END IF;"                                 \
    " SELECT n INTO num FROM larder_lock WHERE n = -1 LOCK IN SHARE MODE;"                                   \
    " SELECT n INTO num FROM larder_lock WHERE n = CONV(SUBSTR(SHA2(p_key, 256), 1, 3), 16, 10) DIV 8"       \
    "  FOR UPDATE;"                                                                                          \
    " SET num = NULL; SELECT d.number INTO num FROM larder_db AS d WHERE d.db = p_db;"                       \
    " IF num IS NULL THEN" MD_REFUSE("there is no such database") " END IF;"

/* A number for a new row, the first of a block. On Galera from where servers have theirs (remote_galera.c). */
#define MD_NEW_SEQ                                                                                           \
    "  IF EXISTS (SELECT 1 FROM larder_meta WHERE name = 'next_seq') THEN"                                   \
    "   IF EXISTS (SELECT 1 FROM information_schema.global_status WHERE variable_name = 'WSREP_CLUSTER_SIZE'" \
    "    AND CAST(variable_value AS SIGNED) > 0) THEN"                                                       \
    "    UPDATE larder_meta SET value = LAST_INSERT_ID(CAST(value AS SIGNED)) + 1024 WHERE name = 'next_seq';" \
    "    SET new_seq = LAST_INSERT_ID(); END IF; END IF;"                                                    \
    "  IF new_seq IS NULL THEN"                                                                              \
    "   INSERT INTO larder_block (n) VALUES (NULL); SET new_seq = (LAST_INSERT_ID() - 1) * 1024 + 1;"        \
    "   DELETE FROM larder_block WHERE n = LAST_INSERT_ID(); END IF;"

#define MD_DISCARD                                                                                           \
    " IF old_id <> 0 THEN INSERT IGNORE INTO larder_trash (id, type) VALUES (old_id, old_type); END IF;"

const char remote_mariadb_functions[] =
    "DROP FUNCTION IF EXISTS larder_string;" /* of version 1 */
    MD_FUNCTION "larder_lock_name() RETURNS VARCHAR(64) DETERMINISTIC NO SQL SQL SECURITY INVOKER"
    " RETURN CONCAT('larder ', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40));"
    MD_FUNCTION "larder_reader_name() RETURNS VARCHAR(64) DETERMINISTIC NO SQL SQL SECURITY INVOKER"
    " RETURN CONCAT('larder reader ', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40));"
    MD_FUNCTION "larder_name(name LONGBLOB) RETURNS VARBINARY(1024) DETERMINISTIC NO SQL"
    " SQL SECURITY INVOKER RETURN IF(LENGTH(name) <= 1000, name,"
    "  CONCAT(SUBSTR(name, 1, 992), UNHEX(SHA2(name, 256))));"
    MD_FUNCTION "larder_rest(name LONGBLOB) RETURNS LONGBLOB DETERMINISTIC NO SQL"
    " SQL SECURITY INVOKER RETURN IF(LENGTH(name) <= 1000, '', SUBSTR(name, 993));"
    /* A string from its chunks; not by GROUP_CONCAT, which ends at group_concat_max_len. Chunks that are missing or short
       stand for zeros. */
    MD_FUNCTION "larder_long(p_id BIGINT, p_size BIGINT) RETURNS LONGBLOB READS SQL DATA"
    " SQL SECURITY INVOKER BEGIN DECLARE done INT DEFAULT 0; DECLARE place BIGINT; DECLARE part LONGBLOB;"
    " DECLARE result LONGBLOB DEFAULT '';"
    " DECLARE c CURSOR FOR SELECT pos, value FROM larder_chunk WHERE id = p_id ORDER BY pos;"
    " DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1;"
    " OPEN c; FETCH c INTO place, part;"
    " WHILE NOT done DO SET result = CONCAT(RPAD(result, place * 16384, x'00'), part); FETCH c INTO place, part; END WHILE;"
    " CLOSE c; RETURN RPAD(result, p_size, x'00'); END;"
    MD_FUNCTION "larder_get(p_key LONGBLOB) RETURNS LONGBLOB READS SQL DATA SQL SECURITY INVOKER"
    " RETURN larder_get_in(0, p_key);"
    MD_FUNCTION "larder_get_in(p_db INT, p_key LONGBLOB) RETURNS LONGBLOB READS SQL DATA"
    " SQL SECURITY INVOKER RETURN (SELECT IF(k.id = 0, k.value, larder_long(k.id, k.size))"
    "  FROM larder_db AS d JOIN larder_key AS k ON k.db = d.number"
    "  WHERE d.db = p_db AND k.`key` = larder_name(p_key) AND k.type = 1 AND " LIVE(MD_NOW) ");"
    MD_PROCEDURE "larder_counted(p_number INT, p_keys INT, p_expires INT) SQL SECURITY INVOKER"
    " IF p_keys <> 0 OR p_expires <> 0 THEN"
    "  INSERT INTO larder_count (number, slot, `keys`, expires)"
    "   VALUES (p_number, 1000 + CONNECTION_ID() % 64, p_keys, p_expires)"
    "   ON DUPLICATE KEY UPDATE `keys` = `keys` + VALUES(`keys`), expires = expires + VALUES(expires); END IF;"
    MD_PROCEDURE "larder_set(p_key LONGBLOB, p_value LONGBLOB, p_ttl DECIMAL(20, 3))"
    " SQL SECURITY INVOKER CALL larder_set_in(0, p_key, p_value, p_ttl);"
    MD_PROCEDURE "larder_set_in(p_db INT, p_key LONGBLOB, p_value LONGBLOB, p_ttl DECIMAL(20, 3))"
    " SQL SECURITY INVOKER SET p_db = larder_set_as_one(p_db, p_key, p_value, p_ttl);"
    MD_AS_ONE("larder_set_as_one", "p_db INT, p_key LONGBLOB, p_value LONGBLOB, p_ttl DECIMAL(20, 3)")
    " DECLARE num INT; DECLARE now_us BIGINT DEFAULT " MD_NOW_US "; DECLARE ends BIGINT DEFAULT 0;"
    " DECLARE long_id, pos BIGINT DEFAULT 0; DECLARE new_seq, old_seq, old_id, old_type, old_expire BIGINT DEFAULT NULL;"
    MD_ENTER
    " IF p_value IS NULL THEN" MD_REFUSE("the value must not be NULL: larder_del removes a key") " END IF;"
    " IF p_ttl <= 0 THEN" MD_REFUSE("a time to live has to be longer than nothing") " END IF;"
    " IF p_ttl IS NOT NULL THEN SET ends = now_us DIV 1000 + CAST(p_ttl * 1000 AS SIGNED); END IF;"
    " IF LENGTH(p_value) > 65536 THEN"
    "  UPDATE larder_meta SET value = LAST_INSERT_ID(CAST(value AS SIGNED)) + 1 WHERE name = 'next_id';"
    "  SET long_id = LAST_INSERT_ID();"
    "  WHILE pos * 16384 < LENGTH(p_value) DO"
    "   INSERT INTO larder_chunk (id, pos, value) VALUES (long_id, pos, SUBSTR(p_value, pos * 16384 + 1, 16384));"
    "   SET pos = pos + 1; END WHILE; END IF;"
    " SELECT seq INTO new_seq FROM larder_key WHERE db = num AND `key` = larder_name(p_key);"
    " IF new_seq IS NULL THEN" MD_NEW_SEQ " END IF;"
    /* Whoever comes second waits here for the first. A row without a type yet is nobody's. */
    " INSERT INTO larder_key (seq, db, `key`, key_rest, type, id, size, first, version, expire_at, value)"
    "  VALUES (new_seq, num, larder_name(p_key), larder_rest(p_key), 0, 0, 0, 0, 1, -1, '')"
    "  ON DUPLICATE KEY UPDATE version = IF(db = VALUES(db) AND `key` = VALUES(`key`), version + 1, NULL);"
    " SELECT seq, id, type, expire_at INTO old_seq, old_id, old_type, old_expire FROM larder_key"
    "  WHERE db = num AND `key` = larder_name(p_key) FOR UPDATE;"
    MD_DISCARD
    " UPDATE larder_key SET type = 1, id = long_id, size = IF(long_id = 0, 0, LENGTH(p_value)), first = 0, numbers = 0,"
    "  version = GREATEST(version, now_us), expire_at = ends, value = IF(long_id = 0, p_value, '')"
    "  WHERE seq = old_seq;"
    " CALL larder_counted(num, 1 - (old_expire >= 0), (ends > 0) - (old_expire > 0)); RETURN 1; END;"
    MD_PROCEDURE "larder_del(p_key LONGBLOB) SQL SECURITY INVOKER CALL larder_del_in(0, p_key);"
    MD_PROCEDURE "larder_del_in(p_db INT, p_key LONGBLOB) SQL SECURITY INVOKER SET p_db = larder_del_as_one(p_db, p_key);"
    MD_AS_ONE("larder_del_as_one", "p_db INT, p_key LONGBLOB")
    " DECLARE num INT; DECLARE now_us BIGINT DEFAULT " MD_NOW_US ";"
    " DECLARE old_seq, old_id, old_type, old_expire BIGINT DEFAULT NULL;"
    " DECLARE CONTINUE HANDLER FOR NOT FOUND SET old_seq = NULL;"
    MD_ENTER
    " SELECT seq, id, type, expire_at INTO old_seq, old_id, old_type, old_expire FROM larder_key"
    "  WHERE db = num AND `key` = larder_name(p_key) AND type <> 0"
    "  AND (expire_at = 0 OR expire_at > now_us DIV 1000) FOR UPDATE;"
    " IF old_seq IS NOT NULL THEN"
    MD_DISCARD
    "  UPDATE larder_key SET type = 0, id = 0, size = 0, first = 0, numbers = 0, value = '', expire_at = -1,"
    "   version = GREATEST(version + 1, now_us) WHERE seq = old_seq;"
    "  CALL larder_counted(num, -1, -(old_expire > 0)); END IF; RETURN 1; END;";

/* A string in chunks that GROUP_CONCAT gives as a whole; else NULL, and larder_get has it. */
#define MD_CHUNKS "GROUP_CONCAT(c.value ORDER BY c.pos SEPARATOR '')"
#define MD_STRING                                                                                            \
    "IF(k.id = 0, k.value, (SELECT IF(LENGTH(" MD_CHUNKS ") = k.size, " MD_CHUNKS ", NULL)"                  \
    " FROM larder_chunk AS c WHERE c.id = k.id))"

const char remote_mariadb_views[] =
    "CREATE OR REPLACE VIEW larder_keys AS SELECT d.db AS db, " MD_KEY " AS `key`, " TYPE_NAME " AS type,"
    " CASE WHEN k.type = 1 AND k.id = 0 THEN length(k.value)"
    "  WHEN " DUE(MD_NOW) " THEN k.size - " EXPIRED_FIELDS(MD_NOW) " ELSE k.size END AS size, "
    MD_MOMENT("k.expire_at") " AS expires,"
    " CASE WHEN k.expire_at > 0 THEN (k.expire_at - " MD_NOW ") / 1000 END AS ttl,"
    " k.version AS version, k.`key` AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"
    " WHERE k.type <> 0 AND " LIVE(MD_NOW)
    " AND NOT (" DUE(MD_NOW) " AND k.size = " EXPIRED_FIELDS(MD_NOW) ");"
    "CREATE OR REPLACE VIEW larder_strings AS SELECT d.db AS db, " MD_KEY " AS `key`, "
    MD_TEXT(MD_STRING) " AS value, "
    MD_MOMENT("k.expire_at") " AS expires, k.`key` AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db WHERE k.type = 1 AND " LIVE(MD_NOW) ";"
    "CREATE OR REPLACE " MD_ITEMS("larder_hashes", "larder_hash", "2",
             MD_TEXT(MD_WHOLE("i.field", "i.field_rest")) " AS field, " MD_TEXT("i.value") " AS value",
             FIELD_ENDS, " AND (i.expire_at = 0 OR i.expire_at > " MD_NOW ")")
    "CREATE OR REPLACE " MD_ITEMS("larder_lists", "larder_list", "3",
             "i.pos - k.first AS position, " MD_TEXT("i.value") " AS value", "k.expire_at", "")
    "CREATE OR REPLACE " MD_ITEMS("larder_sets", "larder_set", "4",
             MD_TEXT(MD_WHOLE("i.member", "i.member_rest")) " AS member", "k.expire_at", "")
    "CREATE OR REPLACE " MD_ITEMS("larder_zsets", "larder_zset", "5",
             MD_TEXT(MD_WHOLE("i.member", "i.member_rest")) " AS member, i.score AS score", "k.expire_at", "");

/* clang-format on */
