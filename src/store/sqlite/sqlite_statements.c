/* The SQL of the store, in one place: what a database with another dialect has to say differently, it says
   here. Parameters are numbered, so that a text shows what is bound where. */
#include <assert.h>
#include <stdio.h>

#include "store/sqlite/sqlite_store.h"

/* A hash that is there only in name: all its fields have expired by the moment given. expire_at <> 0 is what
   the partial index asks for. */
#define DEAD_HASH(now)                                                                                       \
    "type = 2 AND first <> 0 AND first <= " now " AND size = (SELECT count(*) FROM larder_hash AS f"         \
    " WHERE f.id = larder_key.id AND f.expire_at <> 0 AND f.expire_at <= " now ")"

/* The columns of a key row, in the order in which sqlite_read.c reads them. */
#define KEY_COLUMNS(type) "seq, db, key, " type ", id, size, first, version, expire_at"

#define ZSET_BY_SCORE "larder_zset INDEXED BY larder_zset_score"

static const char *const fixed_text[SQL_DIALECTS][Q_FIXED] = {
    [SQL_SQLITE] =
        {
            [Q_GET_KEY] = "SELECT " KEY_COLUMNS("type") ", value FROM larder_key WHERE db = ?1 AND key = ?2",
            [Q_GET_SEQ] = "SELECT seq FROM larder_key WHERE db = ?1 AND key = ?2",
            /* expire_at <> 0 is what the partial index asks for. */
            [Q_COUNT_EXPIRED] = "SELECT count(*) FROM larder_key INDEXED BY larder_key_expire"
                                " WHERE expire_at <> 0 AND expire_at BETWEEN 1 AND ?2 AND db = ?1",
            [Q_COUNT_DEAD_HASHES] = "SELECT count(*), coalesce(sum(expire_at <> 0), 0) FROM larder_key"
                                    " INDEXED BY larder_key_first WHERE " DEAD_HASH(
                                        "?2") " AND db = ?1"
                                              " AND (expire_at = 0 OR expire_at > ?2)",
            [Q_COUNT_KEYS] = "SELECT count(*) FROM larder_key WHERE db = ?1",
            [Q_COUNT_EXPIRES] = "SELECT coalesce(sum(expire_at > 0), 0), coalesce(sum(expire_at < 0), 0)"
                                " FROM larder_key WHERE expire_at <> 0 AND +db = ?1",
            [Q_LIST_DBS] = "SELECT db, number, keys, expires FROM larder_db ORDER BY db",
            [Q_GET_META] = "SELECT value FROM larder_meta WHERE name = ?1",
            [Q_SET_META] = "INSERT INTO larder_meta (name, value) VALUES (?1, ?2)"
                           " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [Q_INSERT_KEY] = "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at,"
                             " value) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            /* The unary plus keeps the planner at the row's number; db and key guard against a stale one. */
            [Q_UPDATE_KEY] = "UPDATE larder_key SET type = ?4, id = ?5, size = ?6, first = ?7, version = ?8,"
                             " expire_at = ?9, value = ?10 WHERE seq = ?1 AND +db = ?2 AND +key = ?3",
            /* The same for rows that may be there or not, under the number given or another one. */
            [Q_INSERT_KEY_AT] = "INSERT INTO larder_key (seq, db, key, type, id, size, first, version,"
                                " expire_at, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                                " ON CONFLICT DO NOTHING",
            [Q_UPSERT_KEY] = "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at,"
                             " value) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                             " ON CONFLICT (db, key) DO UPDATE SET type = excluded.type, id = excluded.id,"
                             " size = excluded.size, first = excluded.first, version = excluded.version,"
                             " expire_at = excluded.expire_at, value = excluded.value",
            [Q_UPDATE_NAMED_KEY] = "UPDATE larder_key SET type = ?4, id = ?5, size = ?6, first = ?7,"
                                   " version = ?8, expire_at = ?9, value = ?10 WHERE db = ?2 AND key = ?3",
            [Q_DELETE_KEY_AT] = "DELETE FROM larder_key WHERE seq = ?1 AND +db = ?2 AND +key = ?3",
            [Q_DELETE_NAMED_KEY] = "DELETE FROM larder_key WHERE db = ?2 AND key = ?3",
            [Q_PUT_DB] = "INSERT INTO larder_db (db, number, keys, expires) VALUES (?1, ?2, ?3, ?4)"
                         " ON CONFLICT (db) DO UPDATE SET number = excluded.number, keys = excluded.keys,"
                         " expires = excluded.expires",
            [Q_PUT_TRASH] = "INSERT INTO larder_trash (id, type) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            [Q_DEAD_KEYS] = "SELECT seq, db, key, type, id, expire_at FROM larder_key"
                            " WHERE expire_at <> 0 AND expire_at <= ?1 ORDER BY expire_at LIMIT ?2",
            [Q_DB_KEYS] = "SELECT seq, db, key, type, id, expire_at FROM larder_key WHERE db = ?1 LIMIT ?2",
            [Q_DELETE_KEY] = "DELETE FROM larder_key WHERE seq = ?1",
            [Q_FIRST_TRASH] = "SELECT id, type FROM larder_trash ORDER BY id, type LIMIT 1",
            [Q_DELETE_TRASH] = "DELETE FROM larder_trash WHERE id = ?1 AND type = ?2",
            /* Members from (?2, ?5) to before (?3, ?6). Row values would be compared again for each row: in
               three ranges with plain bounds a row costs less than half. */
            [Q_COUNT_ONE_SCORE] = "SELECT count(*) FROM " ZSET_BY_SCORE
                                  " WHERE id = ?1 AND score = ?2 AND member >= ?5 AND member < ?6",
            [Q_COUNT_SCORES] =
                "SELECT (SELECT count(*) FROM " ZSET_BY_SCORE " WHERE id = ?1 AND score > ?2 AND score < ?3)"
                " + (SELECT count(*) FROM " ZSET_BY_SCORE " WHERE id = ?1 AND score = ?2 AND member >= ?5)"
                " + (SELECT count(*) FROM " ZSET_BY_SCORE " WHERE id = ?1 AND score = ?3 AND member < ?6)",
            [Q_COUNT_FIELDS] = "SELECT count(*) FROM larder_hash WHERE id = ?1 AND expire_at <> 0"
                               " AND expire_at BETWEEN ?2 AND ?3",
            [Q_JOURNAL_ADD] = "INSERT INTO larder_journal (seq, changes) VALUES (?1, ?2)",
            [Q_JOURNAL_EACH] = "SELECT seq, changes FROM larder_journal ORDER BY seq",
            [Q_JOURNAL_DROP] = "DELETE FROM larder_journal WHERE seq IN"
                               " (SELECT seq FROM larder_journal WHERE seq <= ?1 ORDER BY seq LIMIT ?2)",
            [Q_JOURNAL_LAST] = "SELECT coalesce(max(seq), 0) FROM larder_journal",
            [Q_TAKE_OFF_DB] =
                "UPDATE larder_db SET keys = keys - ?2, expires = expires - ?2 WHERE number = ?1",
        },
};

/* Each table of items: its key column, and every column of an item_row (a constant where it has none). */
static const struct item_spec {
    const char *table, *key;
    const char *value, *score, *expire_at, *ord;
} item_specs[ITEM_TABLES] = {
    [ITEM_CHUNK] = {"larder_chunk", "pos", "value", "0", "0", "0"},
    [ITEM_HASH] = {"larder_hash", "field", "value", "0", "expire_at", "ord"},
    [ITEM_LIST] = {"larder_list", "pos", "value", "0", "0", "0"},
    [ITEM_SET] = {"larder_set", "member", "x''", "0", "0", "ord"},
    [ITEM_ZSET] = {"larder_zset", "member", "x''", "score", "0", "ord"},
    [ITEM_ZBLOCK] = {"larder_zset_block", "block", "member", "score", "0", "count"},
};

/* Upserts, so that a row that is there is changed where it is: ?1 id, ?2 key, ?3 value, ?4 score, ?5
   expire_at, ?6 ord. */
static const char *const put_item_text[SQL_DIALECTS][ITEM_TABLES] = {
    [SQL_SQLITE] =
        {
            [ITEM_CHUNK] = "INSERT INTO larder_chunk (id, pos, value) VALUES (?1, ?2, ?3)"
                           " ON CONFLICT (id, pos) DO UPDATE SET value = excluded.value",
            [ITEM_HASH] = "INSERT INTO larder_hash (id, field, value, expire_at, ord)"
                          " VALUES (?1, ?2, ?3, ?5, ?6) ON CONFLICT (id, field) DO UPDATE SET"
                          " value = excluded.value, expire_at = excluded.expire_at, ord = excluded.ord",
            [ITEM_LIST] = "INSERT INTO larder_list (id, pos, value) VALUES (?1, ?2, ?3)"
                          " ON CONFLICT (id, pos) DO UPDATE SET value = excluded.value",
            [ITEM_SET] = "INSERT INTO larder_set (id, member, ord) VALUES (?1, ?2, ?6)"
                         " ON CONFLICT (id, member) DO UPDATE SET ord = excluded.ord",
            [ITEM_ZSET] = "INSERT INTO larder_zset (id, member, score, ord) VALUES (?1, ?2, ?4, ?6)"
                          " ON CONFLICT (id, member) DO UPDATE SET score = excluded.score,"
                          " ord = excluded.ord",
            [ITEM_ZBLOCK] = "INSERT INTO larder_zset_block (id, block, score, member, count)"
                            " VALUES (?1, ?2, ?4, ?3, ?6) ON CONFLICT (id, block) DO UPDATE SET"
                            " score = excluded.score, member = excluded.member, count = excluded.count",
        },
};

static enum status prepared(struct sqlite_store *s, struct sql_stmt **slot, const char *text,
                            struct sql_stmt **ret, struct error *err)
{
    if (!*slot) {
        enum status st = sql_prepare(s->sql, text, slot, err);
        if (st != ST_OK) {
            *slot = NULL;
            return st;
        }
    }
    *ret = *slot;
    return ST_OK;
}

enum status stmt_fixed(struct sqlite_store *s, enum statement q, struct sql_stmt **ret, struct error *err)
{
    if (s->fixed[q]) {
        *ret = s->fixed[q];
        return ST_OK;
    }
    return prepared(s, &s->fixed[q], fixed_text[s->sql->driver->dialect][q], ret, err);
}

enum status stmt_get_item(struct sqlite_store *s, enum item_table t, struct sql_stmt **ret, struct error *err)
{
    const struct item_spec *i = &item_specs[t];
    char text[256];
    snprintf(text, sizeof text, "SELECT %s, %s, %s, %s, %s FROM %s WHERE id = ?1 AND %s = ?2", i->key,
             i->value, i->score, i->expire_at, i->ord, i->table, i->key);
    return prepared(s, &s->get_item[t], text, ret, err);
}

enum status stmt_put_item(struct sqlite_store *s, enum item_table t, struct sql_stmt **ret, struct error *err)
{
    return prepared(s, &s->put_item[t], put_item_text[s->sql->driver->dialect][t], ret, err);
}

enum status stmt_del_item(struct sqlite_store *s, enum item_table t, struct sql_stmt **ret, struct error *err)
{
    char text[128];
    snprintf(text, sizeof text, "DELETE FROM %s WHERE id = ?1 AND %s = ?2", item_specs[t].table,
             item_specs[t].key);
    return prepared(s, &s->del_item[t], text, ret, err);
}

/* Removes up to ?2 items of ?1. */
enum status stmt_sweep_items(struct sqlite_store *s, enum item_table t, struct sql_stmt **ret,
                             struct error *err)
{
    const struct item_spec *i = &item_specs[t];
    char text[256];
    snprintf(text, sizeof text,
             "DELETE FROM %s WHERE id = ?1 AND %s IN (SELECT %s FROM %s WHERE id = ?1 LIMIT ?2)", i->table,
             i->key, i->key, i->table);
    return prepared(s, &s->sweep_items[t], text, ret, err);
}

/* ?1 id, ?2 lower bound, ?3 upper bound, ?4 limit, ?7 rows to skip; by score ?5 and ?6 are the names that go
   with the bounds.
 */
enum status stmt_scan_items(struct sqlite_store *s, const struct item_scan *q, enum scan_end end,
                            struct sql_stmt **ret, struct error *err)
{
    bool score_only = q->order == ITEMS_BY_SCORE && begins_with_score(q);
    struct sql_stmt **slot = &s->scan_items[q->table][q->order][q->reverse][score_only][end];
    if (*slot) {
        *ret = *slot;
        return ST_OK;
    }
    struct item_spec spec = item_specs[q->table];
    const struct item_spec *i = &spec;
    const char *dir = q->reverse ? "DESC" : "ASC";
    char range[160], text[512];
    if (q->order == ITEMS_BY_SCORE) {
        assert(q->table == ITEM_ZSET);
        static const char *const ends[SCAN_ENDS] = {
            [END_OPEN] = "",
            [END_AT] = " AND (score, member) <= (?3, ?6)",
            [END_AT_SCORE] = " AND score <= ?3",
            [END_BELOW] = " AND (score, member) < (?3, ?6)",
            [END_BELOW_SCORE] = " AND score < ?3",
        };
        spec.ord = "-1"; /* the index does not have it */
        snprintf(range, sizeof range, "%s%s ORDER BY score %s, member %s",
                 score_only ? "score >= ?2" : "(score, member) >= (?2, ?5)", ends[end], dir, dir);
    } else {
        const char *by = q->order == ITEMS_BY_ORD      ? "ord"
                         : q->order == ITEMS_BY_EXPIRY ? "expire_at"
                                                       : i->key;
        assert(q->order == ITEMS_BY_ORD || q->order == ITEMS_BY_EXPIRY ||
               (q->order == ITEMS_BY_NAME) == item_named(q->table));
        assert(q->order != ITEMS_BY_EXPIRY || q->table == ITEM_HASH);
        snprintf(range, sizeof range, "%s%s >= ?2%s%s%s ORDER BY %s %s",
                 q->order == ITEMS_BY_EXPIRY ? "expire_at <> 0 AND " : "", by, end ? " AND " : "",
                 end ? by : "", end ? " <= ?3" : "", by, dir);
    }
    snprintf(text, sizeof text, "SELECT %s, %s, %s, %s, %s FROM %s WHERE id = ?1 AND %s LIMIT ?4 OFFSET ?7",
             i->key, i->value, i->score, i->expire_at, i->ord, i->table, range);
    return prepared(s, slot, text, ret, err);
}

/* By key: ?1 db, ?2 lower bound, ?3 upper bound. By seq: ?2 the seq to stay below. ?4 limit, ?5 now. Expired:
   from the first one on; or (has_after) behind expire_at ?2 of db ?1 and seq ?3, those of that moment and
   database, and (has_end) those of later ones: so each of them is a range of the index. */
enum status stmt_scan_keys(struct sqlite_store *s, const struct key_scan *q, bool has_end,
                           struct sql_stmt **ret, struct error *err)
{
    struct sql_stmt **slot = &s->scan_keys[q->order][q->with_value][q->has_after][has_end][q->reverse];
    if (*slot) {
        *ret = *slot;
        return ST_OK;
    }
    char range[160], text[640];
    if (q->order == KEYS_EXPIRED)
        snprintf(range, sizeof range, "WHERE expire_at <> 0 AND %s ORDER BY expire_at, db, seq",
                 !q->has_after ? "expire_at BETWEEN 1 AND ?5"
                 : has_end     ? "expire_at <= ?5 AND (expire_at, db) > (?2, ?1)"
                               : "expire_at = ?2 AND db = ?1 AND seq > ?3");
    else if (q->order == KEYS_DUE)
        snprintf(range, sizeof range, "WHERE type = 2 AND first <> 0 AND first <= ?5 ORDER BY first");
    else if (q->order == KEYS_BY_SEQ_DESC)
        snprintf(range, sizeof range, "WHERE seq < ?2 ORDER BY seq DESC");
    else
        snprintf(range, sizeof range, "WHERE db = ?1 AND key %s ?2%s ORDER BY key%s",
                 q->has_after ? ">" : ">=", has_end ? " AND key < ?3" : "", q->reverse ? " DESC" : "");
    snprintf(text, sizeof text, "SELECT " KEY_COLUMNS("%s") ", %s FROM larder_key %s LIMIT ?4",
             q->order == KEYS_DUE || q->order == KEYS_EXPIRED
                 ? "type"
                 : "CASE WHEN " DEAD_HASH("?5") " THEN 0 ELSE type END",
             q->with_value ? "value" : "x''", range);
    return prepared(s, slot, text, ret, err);
}

static void finalize_many(struct sql_stmt **slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sql_finalize(slots[i]);
        slots[i] = NULL;
    }
}

void stmt_finalize_all(struct sqlite_store *s)
{
    finalize_many(s->fixed, sizeof s->fixed / sizeof(struct sql_stmt *));
    finalize_many(s->get_item, sizeof s->get_item / sizeof(struct sql_stmt *));
    finalize_many(s->put_item, sizeof s->put_item / sizeof(struct sql_stmt *));
    finalize_many(s->del_item, sizeof s->del_item / sizeof(struct sql_stmt *));
    finalize_many(s->sweep_items, sizeof s->sweep_items / sizeof(struct sql_stmt *));
    finalize_many(&s->scan_items[0][0][0][0][0], sizeof s->scan_items / sizeof(struct sql_stmt *));
    finalize_many(&s->scan_keys[0][0][0][0][0], sizeof s->scan_keys / sizeof(struct sql_stmt *));
}
