/* The texts that create the tables, views and functions of each dialect. A text may be run again after a
   failure: MariaDB has no transactions over CREATE. */
#include "store/remote/remote_schema_internal.h"
#include "store/remote/remote_schema_macros.h"

/* clang-format off */

/* ---- PostgreSQL ---- */

static const char postgres_1[] =
    "CREATE TABLE larder_meta (name text PRIMARY KEY, value text NOT NULL);"
    "CREATE TABLE larder_db (db integer PRIMARY KEY, number integer NOT NULL, keys bigint NOT NULL,"
    " expires bigint NOT NULL) WITH (fillfactor = 20);"
    "CREATE TABLE larder_count (number integer NOT NULL, slot integer NOT NULL, keys bigint NOT NULL,"
    " expires bigint NOT NULL, PRIMARY KEY (number, slot)) WITH (fillfactor = 20);"

    "CREATE SEQUENCE larder_seq AS bigint INCREMENT BY 1024;"

    /* Values change in place where the page has room (HOT): no index has the columns that every write
       changes. Dead versions go soon, whatever the size of the table. */
    "CREATE TABLE larder_key ("
    " seq bigint PRIMARY KEY DEFAULT nextval('larder_seq'), version bigint NOT NULL, expire_at bigint NOT NULL,"
    " id bigint NOT NULL, size bigint NOT NULL, first bigint NOT NULL, db integer NOT NULL,"
    " type smallint NOT NULL, key bytea NOT NULL, key_rest bytea NOT NULL DEFAULT '', value bytea NOT NULL)"
    " WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,"
    "  autovacuum_vacuum_cost_delay = 1);"
    "CREATE UNIQUE INDEX larder_key_name ON larder_key (db, key);"
    "CREATE INDEX larder_key_expire ON larder_key (expire_at, db) WHERE expire_at <> 0;"
    "CREATE INDEX larder_key_first ON larder_key (first) WHERE type = 2 AND first <> 0;"

    "CREATE TABLE larder_chunk (id bigint NOT NULL, pos bigint NOT NULL, value bytea NOT NULL,"
    " PRIMARY KEY (id, pos));"
    "ALTER TABLE larder_chunk ALTER COLUMN value SET STORAGE EXTERNAL;"
    "CREATE TABLE larder_hash (id bigint NOT NULL, expire_at bigint NOT NULL, ord bigint NOT NULL,"
    " field bytea NOT NULL, field_rest bytea NOT NULL DEFAULT '', value bytea NOT NULL,"
    " PRIMARY KEY (id, field)) WITH (fillfactor = 90);"
    "CREATE INDEX larder_hash_ord ON larder_hash (id, ord);"
    "CREATE INDEX larder_hash_expire ON larder_hash (id, expire_at) WHERE expire_at <> 0;"
    "CREATE TABLE larder_list (id bigint NOT NULL, pos bigint NOT NULL, value bytea NOT NULL,"
    " PRIMARY KEY (id, pos));"
    "CREATE TABLE larder_set (id bigint NOT NULL, ord bigint NOT NULL, member bytea NOT NULL,"
    " member_rest bytea NOT NULL DEFAULT '', PRIMARY KEY (id, member));"
    "CREATE INDEX larder_set_ord ON larder_set (id, ord);"
    "CREATE TABLE larder_zset (id bigint NOT NULL, score float8 NOT NULL, ord bigint NOT NULL,"
    " member bytea NOT NULL, member_rest bytea NOT NULL DEFAULT '', PRIMARY KEY (id, member));"
    "CREATE INDEX larder_zset_score ON larder_zset (id, score, member);"
    "CREATE INDEX larder_zset_ord ON larder_zset (id, ord);"
    "CREATE TABLE larder_zset_block (id bigint NOT NULL, block bigint NOT NULL, score float8 NOT NULL,"
    " count bigint NOT NULL, member bytea NOT NULL, PRIMARY KEY (id, block)) WITH (fillfactor = 80);"
    "CREATE TABLE larder_trash (id bigint NOT NULL, type smallint NOT NULL, PRIMARY KEY (id, type));"
    /* Of a server that has the tables for itself. Rows come and go all the time, so their room is looked for often. */
    "CREATE TABLE larder_journal (seq bigint PRIMARY KEY, changes bytea NOT NULL)"
    " WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0,"
    "  toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000,"
    "  toast.autovacuum_vacuum_cost_delay = 0);"
    "ALTER TABLE larder_journal ALTER COLUMN changes SET STORAGE EXTERNAL;"

    /* Helpers of the views, and of people. */
    "CREATE FUNCTION larder_now() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS"
    " 'SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint';"
    "CREATE FUNCTION larder_name(name bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(name) <= 1000 THEN name ELSE substr(name, 1, 992) || sha256(name) END';"
    "CREATE FUNCTION larder_rest(name bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(name) <= 1000 THEN ''''::bytea ELSE substr(name, 993) END';"
    "CREATE FUNCTION larder_whole(name bytea, rest bytea) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS"
    " 'SELECT CASE WHEN length(rest) = 0 THEN name ELSE substr(name, 1, 992) || rest END';"
    "CREATE FUNCTION larder_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$"
    " BEGIN RETURN convert_from(bytes, 'UTF8');"
    " EXCEPTION WHEN OTHERS THEN RETURN encode(bytes, 'escape'); END $$;"

    "CREATE VIEW larder_keys AS SELECT d.db AS db, " PG_KEY " AS key, " TYPE_NAME " AS type,"
    " CASE WHEN k.type = 1 AND k.id = 0 THEN length(k.value)"
    "  WHEN " DUE(PG_NOW) " THEN k.size - " EXPIRED_FIELDS(PG_NOW) " ELSE k.size END AS size, "
    PG_MOMENT("k.expire_at") " AS expires,"
    " CASE WHEN k.expire_at > 0 THEN (k.expire_at - " PG_NOW ") / 1000.0 END AS ttl,"
    " k.version AS version, k.key AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"
    " WHERE k.type <> 0 AND " LIVE(PG_NOW)
    " AND NOT (" DUE(PG_NOW) " AND k.size = " EXPIRED_FIELDS(PG_NOW) ");"
    "CREATE VIEW larder_strings AS SELECT d.db AS db, " PG_KEY " AS key,"
    " larder_text(CASE WHEN k.id = 0 THEN k.value ELSE (SELECT string_agg(c.value, ''::bytea ORDER BY c.pos)"
    "  FROM larder_chunk AS c WHERE c.id = k.id) END) AS value, "
    PG_MOMENT("k.expire_at") " AS expires, k.key AS key_bytes"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db WHERE k.type = 1 AND " LIVE(PG_NOW) ";"
    "CREATE " PG_ITEMS("larder_hashes", "larder_hash", "2",
             "larder_text(larder_whole(i.field, i.field_rest)) AS field, larder_text(i.value) AS value",
             FIELD_ENDS, " AND (i.expire_at = 0 OR i.expire_at > " PG_NOW ")")
    "CREATE " PG_ITEMS("larder_lists", "larder_list", "3",
             "i.pos - k.first AS position, larder_text(i.value) AS value", "k.expire_at", "")
    "CREATE " PG_ITEMS("larder_sets", "larder_set", "4", "larder_text(larder_whole(i.member, i.member_rest)) AS member",
             "k.expire_at", "")
    "CREATE " PG_ITEMS("larder_zsets", "larder_zset", "5",
             "larder_text(larder_whole(i.member, i.member_rest)) AS member, i.score AS score",
             "k.expire_at", "")

    /* For applications: their own tables and keys in one transaction. */
    "CREATE FUNCTION larder_lock_key() RETURNS bigint LANGUAGE sql STABLE SET search_path FROM CURRENT AS"
    " 'SELECT (1818324580::bigint << 32) | ''larder_meta''::regclass::oid::bigint';"
    "CREATE FUNCTION larder_enter(db integer, key bytea) RETURNS integer LANGUAGE plpgsql SET search_path FROM CURRENT AS $$"
    " DECLARE result integer; BEGIN"
    " IF NOT pg_try_advisory_xact_lock_shared(larder_lock_key()) OR NOT pg_try_advisory_xact_lock_shared("
    "   (1818324581::bigint << 32) | 'larder_meta'::regclass::oid::bigint) THEN"
    "  RAISE EXCEPTION 'a Larder server has these tables for itself alone (mode exclusive)'"
    "   USING ERRCODE = 'lock_not_available'; END IF;"
    /* One that had them, and ended badly or has lost its connection: it shall know that they have changed. */
    " IF (SELECT m.value FROM larder_meta AS m WHERE m.name = 'owner') <> '' THEN"
    "  IF EXISTS (SELECT 1 FROM larder_journal AS j WHERE j.seq >"
    "    (SELECT m.value::bigint FROM larder_meta AS m WHERE m.name = 'applied')) THEN"
    "   RAISE EXCEPTION 'the journal of a Larder server has to be applied first: start one'"
    "    USING ERRCODE = 'lock_not_available'; END IF;"
    "  UPDATE larder_meta AS m SET value = '' WHERE m.name = 'owner'; END IF;"
    " PERFORM pg_advisory_xact_lock_shared((1818324579::bigint << 32) | 'larder_meta'::regclass::oid::bigint);"
    " PERFORM pg_advisory_xact_lock(((1818324600::bigint + (get_byte(sha256(key), 0) * 2"
    "  + get_byte(sha256(key), 1) / 128)) << 32) | 'larder_meta'::regclass::oid::bigint);"
    " SELECT d.number INTO result FROM larder_db AS d WHERE d.db = larder_enter.db;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'there is no database %', db; END IF;"
    " RETURN result; END $$;"
    "CREATE FUNCTION larder_counted(number integer, keys integer, expires integer) RETURNS void LANGUAGE sql SET search_path FROM CURRENT AS"
    " 'INSERT INTO larder_count AS c (number, slot, keys, expires)"
    "  SELECT $1, 1000 + pg_backend_pid() % 64, $2, $3 WHERE $2 <> 0 OR $3 <> 0"
    "  ON CONFLICT (number, slot) DO UPDATE SET keys = c.keys + excluded.keys,"
    "   expires = c.expires + excluded.expires';"
    "CREATE FUNCTION larder_get(key bytea, db integer DEFAULT 0) RETURNS bytea LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$"
    " SELECT CASE WHEN k.id = 0 THEN k.value ELSE (SELECT string_agg(c.value, ''::bytea ORDER BY c.pos)"
    "  FROM larder_chunk AS c WHERE c.id = k.id) END"
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db"
    " WHERE d.db = $2 AND k.key = larder_name($1) AND k.type = 1 AND " LIVE(PG_NOW) " $$;"
    "CREATE FUNCTION larder_set(key bytea, value bytea, ttl interval DEFAULT NULL, db integer DEFAULT 0)"
    " RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$"
    " DECLARE num integer := larder_enter(db, key); old record; long_id bigint := 0;"
    "  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;"
    "  ends bigint := CASE WHEN ttl IS NULL THEN 0"
    "   ELSE now_us / 1000 + (extract(epoch FROM ttl) * 1000)::bigint END;"
    " BEGIN"
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
    "  size = CASE WHEN long_id = 0 THEN 0 ELSE length(larder_set.value) END, first = 0,"
    "  version = greatest(old.version + 1, now_us), expire_at = ends,"
    "  value = CASE WHEN long_id = 0 THEN larder_set.value ELSE '' END WHERE k.seq = old.seq;"
    " PERFORM larder_counted(num, 1 - (old.expire_at >= 0)::integer,"
    "  (ends > 0)::integer - (old.expire_at > 0)::integer); END $$;"
    "CREATE FUNCTION larder_del(key bytea, db integer DEFAULT 0) RETURNS boolean LANGUAGE plpgsql SET search_path FROM CURRENT AS $$"
    " DECLARE num integer := larder_enter(db, key); old record;"
    "  now_us bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;"
    " BEGIN"
    " SELECT k.seq, k.id, k.type, k.version, k.expire_at INTO old FROM larder_key AS k"
    "  WHERE k.db = num AND k.key = larder_name(larder_del.key) AND k.type <> 0"
    "  AND (k.expire_at = 0 OR k.expire_at > now_us / 1000) FOR UPDATE;"
    " IF NOT FOUND THEN RETURN false; END IF;"
    " IF old.id <> 0 THEN INSERT INTO larder_trash (id, type) VALUES (old.id, old.type) ON CONFLICT DO NOTHING;"
    " END IF;"
    " UPDATE larder_key AS k SET type = 0, id = 0, size = 0, first = 0, value = '', expire_at = -1,"
    "  version = greatest(old.version + 1, now_us) WHERE k.seq = old.seq;"
    " PERFORM larder_counted(num, -1, -(old.expire_at > 0)::integer); RETURN true; END $$;"

    "INSERT INTO larder_meta (name, value) VALUES ('schema_version', '1'), ('next_id', '1'),"
    " ('next_db_number', '0'), ('owner', ''), ('synced', '0'), ('applied', '0'), ('applying', '0'),"
    " ('created', to_char(now(), 'YYYY-MM-DD\"T\"HH24:MI:SSOF'));";

/* ---- MariaDB ---- */

static const char mariadb_1[] =
    "CREATE TABLE IF NOT EXISTS larder_meta (name VARBINARY(64) PRIMARY KEY, value VARBINARY(512) NOT NULL)" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_db (db INT PRIMARY KEY, number INT NOT NULL, `keys` BIGINT NOT NULL,"
    " expires BIGINT NOT NULL)" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_count (number INT NOT NULL, slot INT NOT NULL, `keys` BIGINT NOT NULL,"
    " expires BIGINT NOT NULL, PRIMARY KEY (number, slot))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_key ("
    " seq BIGINT NOT NULL, db INT NOT NULL, `key` VARBINARY(1024) NOT NULL,"
    " key_rest LONGBLOB NOT NULL DEFAULT (''), type SMALLINT NOT NULL, id BIGINT NOT NULL, size BIGINT NOT NULL,"
    " first BIGINT NOT NULL, version BIGINT NOT NULL, expire_at BIGINT NOT NULL,"
    " due_at BIGINT AS (IF(type = 2 AND first <> 0, first, NULL)) STORED, value LONGBLOB NOT NULL,"
    " PRIMARY KEY (seq), UNIQUE KEY larder_key_name (db, `key`), KEY larder_key_expire (expire_at, db),"
    " KEY larder_key_first (due_at))" MD_TABLE

    "CREATE TABLE IF NOT EXISTS larder_chunk (id BIGINT NOT NULL, pos BIGINT NOT NULL, value LONGBLOB NOT NULL,"
    " PRIMARY KEY (id, pos))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_hash (id BIGINT NOT NULL, field VARBINARY(1024) NOT NULL,"
    " field_rest LONGBLOB NOT NULL DEFAULT (''), expire_at BIGINT NOT NULL, ord BIGINT NOT NULL,"
    " value LONGBLOB NOT NULL, PRIMARY KEY (id, field), KEY larder_hash_ord (id, ord),"
    " KEY larder_hash_expire (id, expire_at))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_list (id BIGINT NOT NULL, pos BIGINT NOT NULL, value LONGBLOB NOT NULL,"
    " PRIMARY KEY (id, pos))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_set (id BIGINT NOT NULL, member VARBINARY(1024) NOT NULL,"
    " member_rest LONGBLOB NOT NULL DEFAULT (''), ord BIGINT NOT NULL, PRIMARY KEY (id, member),"
    " KEY larder_set_ord (id, ord))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_zset (id BIGINT NOT NULL, member VARBINARY(1024) NOT NULL,"
    " member_rest LONGBLOB NOT NULL DEFAULT (''), score DOUBLE NOT NULL, bits BIGINT NOT NULL,"
    " place " MD_PLACE ", ord BIGINT NOT NULL, PRIMARY KEY (id, member),"
    " KEY larder_zset_score (id, place, member, bits), KEY larder_zset_ord (id, ord))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_zset_block (id BIGINT NOT NULL, block BIGINT NOT NULL,"
    " score DOUBLE NOT NULL, bits BIGINT NOT NULL, count BIGINT NOT NULL, member LONGBLOB NOT NULL,"
    " PRIMARY KEY (id, block))" MD_TABLE
    /* Rows to lock, see remote_shared.c: -1 for everything, the others for keys by their hash. */
    "CREATE TABLE IF NOT EXISTS larder_lock (n INT PRIMARY KEY)" MD_TABLE
    "INSERT IGNORE INTO larder_lock WITH RECURSIVE s (n) AS (SELECT -1 UNION ALL SELECT n + 1 FROM s WHERE n < 511)"
    " SELECT n FROM s;"
    "CREATE TABLE IF NOT EXISTS larder_trash (id BIGINT NOT NULL, type SMALLINT NOT NULL,"
    " PRIMARY KEY (id, type))" MD_TABLE
    /* Of a server that has the tables for itself. */
    "CREATE TABLE IF NOT EXISTS larder_journal (seq BIGINT PRIMARY KEY, changes LONGBLOB NOT NULL)" MD_TABLE

    "INSERT IGNORE INTO larder_meta (name, value) VALUES ('next_id', '1'), ('next_db_number', '0'), ('owner', ''), ('synced', '0'),"
    " ('applied', '0'), ('applying', '0'), ('created', DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')), ('schema_version', '1');";

/* ---- version 2 ---- */

/* The rows that functions need, before the first server has come: 16 databases, unless there are some. */
static const char postgres_2[] =
    "INSERT INTO larder_db (db, number, keys, expires) SELECT n, m.value::integer + n, 0, 0"
    " FROM larder_meta AS m, generate_series(0, 15) AS n"
    " WHERE m.name = 'next_db_number' AND NOT EXISTS (SELECT 1 FROM larder_db);"
    "UPDATE larder_meta SET value = (SELECT max(number) + 1 FROM larder_db)::text"
    " WHERE name = 'next_db_number' AND value::bigint <= (SELECT max(number) FROM larder_db);";

/* The default named the sequence of the database where the table was made: a dump could not be brought back. */
static const char mariadb_2[] =
    "ALTER TABLE larder_key ALTER COLUMN seq DROP DEFAULT;"
    "INSERT INTO larder_db (db, number, `keys`, expires)"
    " WITH RECURSIVE s (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < 15)"
    " SELECT s.n, CAST(m.value AS SIGNED) + s.n, 0, 0 FROM larder_meta AS m, s"
    " WHERE m.name = 'next_db_number' AND NOT EXISTS (SELECT 1 FROM larder_db);"
    "UPDATE larder_meta SET value = (SELECT max(number) + 1 FROM larder_db)"
    " WHERE name = 'next_db_number' AND CAST(value AS SIGNED) <= (SELECT max(number) FROM larder_db);";

/* ---- version 3 ---- */

/* Tables. A partial index finds their keys. */
static const char postgres_3[] =
    "CREATE TABLE larder_row (id bigint NOT NULL, expire_at bigint NOT NULL, name bytea NOT NULL,"
    " name_rest bytea NOT NULL DEFAULT '', value bytea NOT NULL, PRIMARY KEY (id, name))"
    " WITH (fillfactor = 90);"
    "CREATE INDEX larder_row_expire ON larder_row (id, expire_at) WHERE expire_at <> 0;"
    "CREATE TABLE larder_entry (id bigint NOT NULL, name bytea NOT NULL, name_rest bytea NOT NULL DEFAULT '',"
    " value bytea NOT NULL, PRIMARY KEY (id, name));"
    "CREATE INDEX larder_key_table ON larder_key (db, key) WHERE type = 6;";

/* There are no partial indexes: due_at, which has one, is -1 - db for a table. Who writes waits meanwhile. */
static const char mariadb_3[] =
    "CREATE TABLE IF NOT EXISTS larder_row (id BIGINT NOT NULL, name VARBINARY(1024) NOT NULL,"
    " name_rest LONGBLOB NOT NULL DEFAULT (''), expire_at BIGINT NOT NULL, value LONGBLOB NOT NULL,"
    " PRIMARY KEY (id, name), KEY larder_row_expire (id, expire_at))" MD_TABLE
    "CREATE TABLE IF NOT EXISTS larder_entry (id BIGINT NOT NULL, name VARBINARY(1024) NOT NULL,"
    " name_rest LONGBLOB NOT NULL DEFAULT (''), value LONGBLOB NOT NULL, PRIMARY KEY (id, name))" MD_TABLE
    "ALTER TABLE larder_key MODIFY COLUMN due_at BIGINT"
    " AS (IF(type = 2 AND first <> 0, first, IF(type = 6, -1 - db, NULL))) STORED;";

/* ---- version 4 ---- */

/* Numbers of items with holes. Rows as they are have none: both databases add the column without touching
   one. The functions of applications set it where they make a string of what had items. */
static const char postgres_4[] = "ALTER TABLE larder_key ADD COLUMN numbers bigint NOT NULL DEFAULT 0;";

/* And sequences go: other servers of MariaDB's kind have none, and a dump that has one cannot be brought back
   everywhere. AUTO_INCREMENT of an empty table numbers the blocks, from behind the last that the sequence gave out.
   A step that broke off runs again: the sequence goes last, and what was taken from the counter is only left out. */
static const char mariadb_4[] =
    "ALTER TABLE larder_key ADD COLUMN IF NOT EXISTS numbers BIGINT NOT NULL DEFAULT 0;"
    "CREATE TABLE IF NOT EXISTS larder_block (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY)" MD_TABLE
    "SET @larder_text = IF(EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()"
    "  AND table_name = 'larder_seq'),"
    " 'INSERT IGNORE INTO larder_block (n) SELECT next_not_cached_value DIV 1024 + 1 FROM larder_seq', 'DO 0');"
    "PREPARE larder_text FROM @larder_text;"
    "EXECUTE larder_text;"
    "DEALLOCATE PREPARE larder_text;"
    "DELETE FROM larder_block;"
    "DROP TABLE IF EXISTS larder_seq;";

/* clang-format on */

const struct remote_schema_step remote_schema_steps[REMOTE_SCHEMA_VERSION] = {
    {1, {[REMOTE_POSTGRES] = {postgres_1}, [REMOTE_MARIADB] = {mariadb_1}}},
    {2, {[REMOTE_POSTGRES] = {postgres_2}, [REMOTE_MARIADB] = {mariadb_2}}},
    {3, {[REMOTE_POSTGRES] = {postgres_3}, [REMOTE_MARIADB] = {mariadb_3}}},
    {4, {[REMOTE_POSTGRES] = {postgres_4}, [REMOTE_MARIADB] = {mariadb_4}}},
};
