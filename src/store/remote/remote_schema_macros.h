/* What the texts of a server's schema have in common: remote_schema_texts.c, which has the steps, and
   remote_schema_code.c, which has the views and functions of this version. */
#ifndef LARDER_STORE_REMOTE_REMOTE_SCHEMA_MACROS_H
#define LARDER_STORE_REMOTE_REMOTE_SCHEMA_MACROS_H

/* clang-format off */

#define DUE(now) "k.type = 2 AND k.first <> 0 AND k.first <= " now
#define LIVE(now) "(k.expire_at = 0 OR k.expire_at > " now ")"

#define EXPIRED_FIELDS(now)                                                                                  \
    "(SELECT count(*) FROM larder_hash AS f WHERE f.id = k.id AND f.expire_at <> 0"                          \
    " AND f.expire_at <= " now ")"

#define TYPE_NAME                                                                                            \
    "CASE k.type WHEN 1 THEN 'string' WHEN 2 THEN 'hash' WHEN 3 THEN 'list' WHEN 4 THEN 'set'"               \
    " WHEN 5 THEN 'zset' WHEN 6 THEN 'table' END"

/* When a field goes: at its own moment or with its key, whichever comes first. */
#define FIELD_ENDS                                                                                           \
    "CASE WHEN i.expire_at = 0 THEN k.expire_at WHEN k.expire_at = 0 THEN i.expire_at"                       \
    " ELSE least(i.expire_at, k.expire_at) END"

/* ---- PostgreSQL ---- */

#define PG_NOW "larder_now()"
#define PG_MOMENT(ms) "CASE WHEN " ms " > 0 THEN to_timestamp((" ms ") / 1000.0) END"
#define PG_KEY "larder_text(larder_whole(k.key, k.key_rest))"

#define PG_ITEMS(name, table, type, columns, ends, more)                                                     \
    "VIEW " name " AS SELECT d.db AS db, " PG_KEY " AS key, " columns ", "                            \
    PG_MOMENT(ends) " AS expires, k.key AS key_bytes"                                                        \
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db JOIN " table " AS i ON i.id = k.id"        \
    " WHERE k.type = " type " AND " LIVE(PG_NOW) more ";"

/* ---- MariaDB ---- */

#define MD_NOW "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
#define MD_MOMENT(ms)                                                                                        \
    "CASE WHEN " ms " > 0 THEN CAST('1970-01-01 00:00:00.000' + INTERVAL (" ms ") * 1000 MICROSECOND"        \
    " AS DATETIME(3)) END"
#define MD_WHOLE(name, rest) "IF(" rest " = '', " name ", CONCAT(SUBSTR(" name ", 1, 992), " rest "))"
#define MD_TEXT(bytes) "CONVERT(" bytes " USING utf8mb4)"
#define MD_KEY MD_TEXT(MD_WHOLE("k.`key`", "k.key_rest"))

#define MD_ITEMS(name, table, type, columns, ends, more)                                                     \
    "VIEW " name " AS SELECT d.db AS db, " MD_KEY " AS `key`, " columns ", "               \
    MD_MOMENT(ends) " AS expires, k.`key` AS key_bytes"                                                      \
    " FROM larder_key AS k JOIN larder_db AS d ON d.number = k.db JOIN " table " AS i ON i.id = k.id"        \
    " WHERE k.type = " type " AND " LIVE(MD_NOW) more ";"

#define MD_TABLE " ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET = binary;"
#define MD_PLACE "BIGINT AS (IF(bits < 0, -9223372036854775808 - bits, bits)) STORED"
#define MD_NOW_US "CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"

/* clang-format on */

#endif
