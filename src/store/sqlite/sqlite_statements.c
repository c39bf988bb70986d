/* The SQL of the store in an SQLite file, in one place. Parameters are numbered, so that a text shows what is
   bound where. */
#include <stdio.h>

#include "base/buf.h"
#include "store/sqlite/sqlite_store.h"

/* A hash that is there only in name: all its fields have expired by the moment given. expire_at <> 0 is what
   the partial index asks for. */
#define DEAD_HASH(now)                                                                                       \
    "type = 2 AND first <> 0 AND first <= " now " AND size = (SELECT count(*) FROM larder_hash AS f"         \
    " WHERE f.id = larder_key.id AND f.expire_at <> 0 AND f.expire_at <= " now ")"

/* The columns of a key row, in the order in which sqlite_read.c reads them. numbers stands behind the value
   in the table, as it came later; of all but collections with holes it is 0, which takes no bytes there and
   so is known without following a long row to its end. */
#define KEY_COLUMNS(type) "seq, db, key, " type ", id, size, first, version, expire_at, numbers"

static const char *const fixed_text[Q_FIXED] = {
    [Q_GET_KEY] = "SELECT " KEY_COLUMNS("type") ", value FROM larder_key WHERE db = ?1 AND key = ?2",
    [Q_GET_SEQ] = "SELECT seq FROM larder_key WHERE db = ?1 AND key = ?2",
    /* expire_at <> 0 is what the partial index asks for. */
    [Q_COUNT_EXPIRED] = "SELECT count(*) FROM larder_key INDEXED BY larder_key_expire"
                        " WHERE expire_at <> 0 AND expire_at BETWEEN 1 AND ?2 AND db = ?1",
    [Q_COUNT_DEAD_HASHES] =
        "SELECT count(*), coalesce(sum(expire_at <> 0), 0) FROM larder_key"
        " INDEXED BY larder_key_first WHERE " DEAD_HASH("?2") " AND db = ?1"
                                                              " AND (expire_at = 0 OR expire_at > ?2)",
    [Q_COUNT_KEYS] = "SELECT count(*) FROM larder_key WHERE db = ?1",
    [Q_COUNT_EXPIRES] = "SELECT coalesce(sum(expire_at > 0), 0), coalesce(sum(expire_at < 0), 0)"
                        " FROM larder_key WHERE expire_at <> 0 AND +db = ?1",
    [Q_LIST_DBS] = "SELECT db, number, keys, expires FROM larder_db ORDER BY db",
    [Q_GET_META] = "SELECT value FROM larder_meta WHERE name = ?1",
    [Q_SET_META] = "INSERT INTO larder_meta (name, value) VALUES (?1, ?2)"
                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    [Q_INSERT_KEY] = "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at,"
                     " value, numbers) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    /* The unary plus keeps the planner at the row's number; db and key guard against a stale one. A row that
       stays of its type has nothing to do with the index of tables. */
    [Q_UPDATE_SAME_TYPE] =
        "UPDATE larder_key SET id = ?5, size = ?6, first = ?7, version = ?8, expire_at = ?9,"
        " value = ?10, numbers = ?11 WHERE seq = ?1 AND +db = ?2 AND +key = ?3 AND +type = ?4",
    [Q_UPDATE_KEY] = "UPDATE larder_key SET type = ?4, id = ?5, size = ?6, first = ?7, version = ?8,"
                     " expire_at = ?9, value = ?10, numbers = ?11 WHERE seq = ?1 AND +db = ?2 AND +key = ?3",
    /* The same for rows that may be there or not, under the number given or another one. */
    [Q_INSERT_KEY_AT] = "INSERT INTO larder_key (seq, db, key, type, id, size, first, version,"
                        " expire_at, value, numbers) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                        " ON CONFLICT DO NOTHING",
    [Q_UPSERT_KEY] = "INSERT INTO larder_key (db, key, type, id, size, first, version, expire_at,"
                     " value, numbers) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                     " ON CONFLICT (db, key) DO UPDATE SET type = excluded.type, id = excluded.id,"
                     " size = excluded.size, first = excluded.first, version = excluded.version,"
                     " expire_at = excluded.expire_at, value = excluded.value, numbers = excluded.numbers",
    [Q_UPDATE_NAMED_KEY] =
        "UPDATE larder_key SET type = ?4, id = ?5, size = ?6, first = ?7,"
        " version = ?8, expire_at = ?9, value = ?10, numbers = ?11 WHERE db = ?2 AND key = ?3",
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
    [Q_JOURNAL_ADD] = "INSERT INTO larder_journal (seq, changes) VALUES (?1, ?2)",
    [Q_JOURNAL_EACH] = "SELECT seq, changes FROM larder_journal ORDER BY seq",
    [Q_JOURNAL_DROP] = "DELETE FROM larder_journal WHERE seq IN"
                       " (SELECT seq FROM larder_journal WHERE seq <= ?1 ORDER BY seq LIMIT ?2)",
    [Q_JOURNAL_LAST] = "SELECT coalesce(max(seq), 0) FROM larder_journal",
    [Q_DUE_ROWS] = "SELECT k.id FROM larder_key AS k INDEXED BY larder_key_table WHERE k.type = 6"
                   " AND k.id > ?1 AND EXISTS (SELECT 1 FROM larder_row AS r WHERE r.id = k.id"
                   "  AND r.expire_at <> 0 AND r.expire_at <= ?2) ORDER BY k.id LIMIT ?3",
    [Q_TAKE_OFF_DB] = "UPDATE larder_db SET keys = keys - ?2, expires = expires - ?2 WHERE number = ?1",
};

static enum status prepared(struct sqlite_store *s, struct sqlite_stmt **slot, const char *text,
                            struct sqlite_stmt **ret, struct error *err)
{
    if (!*slot) {
        enum status st = sqlite_prepare(s->sql, text, slot, err);
        if (st != ST_OK) {
            *slot = NULL;
            return st;
        }
    }
    *ret = *slot;
    return ST_OK;
}

enum status stmt_fixed(struct sqlite_store *s, enum statement q, struct sqlite_stmt **ret, struct error *err)
{
    if (s->fixed[q]) {
        *ret = s->fixed[q];
        return ST_OK;
    }
    return prepared(s, &s->fixed[q], fixed_text[q], ret, err);
}

/* ---- items ---- */

/* A column as it is read: a constant where the table has none. */
static const char *column_text(enum item_table t, enum item_column c)
{
    const char *name = item_tables[t].columns[c];
    return name ? name : c == COLUMN_VALUE ? "x''" : "0";
}

/* The columns of an item in the order in which sqlite_read.c reads them. An index by score does not have
   ord. */
static void add_select(struct buf *text, enum item_table t, bool by_score)
{
    buf_addf(text, "SELECT %s, %s, %s, %s, %s FROM %s WHERE id = ?1 AND ", item_tables[t].key,
             column_text(t, COLUMN_VALUE), column_text(t, COLUMN_SCORE), column_text(t, COLUMN_EXPIRY),
             by_score ? "-1" : column_text(t, COLUMN_ORD), item_tables[t].name);
}

/* Prepares a text that was composed, and releases it. */
static enum status prepared_text(struct sqlite_store *s, struct sqlite_stmt **slot, struct buf *text,
                                 struct sqlite_stmt **ret, struct error *err)
{
    buf_add(text, "", 1);
    enum status st = prepared(s, slot, text->p, ret, err);
    buf_release(text);
    return st;
}

enum status stmt_get_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err)
{
    struct buf text = {0};
    add_select(&text, t, false);
    buf_addf(&text, "%s = ?2", item_tables[t].key);
    return prepared_text(s, &s->get_item[t], &text, ret, err);
}

/* An upsert, so that a row that is there is changed where it is: ?1 id, ?2 key, and behind them the columns
   in the order of enum item_column, ?3 to ?6. */
enum status stmt_put_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err)
{
    const struct item_table_desc *d = &item_tables[t];
    struct buf text = {0};
    buf_addf(&text, "INSERT INTO %s (id, %s", d->name, d->key);
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (d->columns[c])
            buf_addf(&text, ", %s", d->columns[c]);
    buf_addf(&text, ") VALUES (?1, ?2");
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (d->columns[c])
            buf_addf(&text, ", ?%d", 3 + c);
    buf_addf(&text, ") ON CONFLICT (id, %s) DO UPDATE SET", d->key);
    const char *comma = "";
    for (int c = 0; c < ITEM_COLUMNS; c++) {
        if (!d->columns[c])
            continue;
        buf_addf(&text, "%s %s = excluded.%s", comma, d->columns[c], d->columns[c]);
        comma = ",";
    }
    return prepared_text(s, &s->put_item[t], &text, ret, err);
}

enum status stmt_del_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err)
{
    struct buf text = {0};
    buf_addf(&text, "DELETE FROM %s WHERE id = ?1 AND %s = ?2", item_tables[t].name, item_tables[t].key);
    return prepared_text(s, &s->del_item[t], &text, ret, err);
}

/* Of ?1, from ?2 to ?3: positions, or scores with the names ?5 and ?6. */
enum status stmt_del_range(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                           struct error *err)
{
    const struct item_table_desc *d = &item_tables[t];
    if (s->del_range[t]) {
        *ret = s->del_range[t];
        return ST_OK;
    }
    struct buf text = {0};
    if (d->named) /* by that index, whatever statistics the file may have */
        buf_addf(
            &text,
            "DELETE FROM %s INDEXED BY %s WHERE id = ?1 AND (%s, %s) >= (?2, ?5) AND (%s, %s) <= (?3, ?6)",
            d->name, d->indexes[ITEMS_BY_SCORE], d->columns[COLUMN_SCORE], d->key, d->columns[COLUMN_SCORE],
            d->key);
    else
        buf_addf(&text, "DELETE FROM %s WHERE id = ?1 AND %s BETWEEN ?2 AND ?3", d->name, d->key);
    return prepared_text(s, &s->del_range[t], &text, ret, err);
}

/* Removes up to ?2 items of ?1; range: with names from ?3 to before ?4. */
enum status stmt_sweep_items(struct sqlite_store *s, enum item_table t, bool range, struct sqlite_stmt **ret,
                             struct error *err)
{
    const struct item_table_desc *d = &item_tables[t];
    struct buf text = {0};
    buf_addf(&text, "DELETE FROM %s WHERE id = ?1 AND %s IN (SELECT %s FROM %s WHERE id = ?1", d->name,
             d->key, d->key, d->name);
    if (range)
        buf_addf(&text, " AND %s >= ?3 AND %s < ?4", d->key, d->key);
    buf_addf(&text, " LIMIT ?2)");
    return prepared_text(s, &s->sweep_items[t][range], &text, ret, err);
}

/* (score, name) beside ?2 and ?5, and ?3 and ?6. */
static void add_score_range(struct buf *text, const struct item_scan *q, enum scan_end end)
{
    const char *score = item_order_column(q->table, q->order), *key = item_tables[q->table].key;
    const char *dir = q->reverse ? "DESC" : "ASC";
    if (begins_with_score(q))
        buf_addf(text, "%s >= ?2", score);
    else
        buf_addf(text, "(%s, %s) >= (?2, ?5)", score, key);
    if (end == END_AT || end == END_BELOW)
        buf_addf(text, " AND (%s, %s) %s (?3, ?6)", score, key, end == END_AT ? "<=" : "<");
    else if (end == END_AT_SCORE || end == END_BELOW_SCORE)
        buf_addf(text, " AND %s %s ?3", score, end == END_AT_SCORE ? "<=" : "<");
    buf_addf(text, " ORDER BY %s %s, %s %s", score, dir, key, dir);
}

static void add_range(struct buf *text, const struct item_scan *q, enum scan_end end)
{
    const char *by = item_order_column(q->table, q->order);
    if (q->order == ITEMS_BY_EXPIRY) /* what the partial index asks for */
        buf_addf(text, "%s <> 0 AND ", by);
    buf_addf(text, "%s >= ?2", by);
    if (end)
        buf_addf(text, " AND %s %s ?3", by, end == END_BELOW ? "<" : "<=");
    buf_addf(text, " ORDER BY %s %s", by, q->reverse ? "DESC" : "ASC");
}

/* ?1 id, ?2 lower bound, ?3 upper bound, ?4 limit, ?7 rows to skip; by score ?5 and ?6 are the names that go
   with the bounds. */
enum status stmt_scan_items(struct sqlite_store *s, const struct item_scan *q, enum scan_end end,
                            struct sqlite_stmt **ret, struct error *err)
{
    bool by_score = q->order == ITEMS_BY_SCORE, score_only = by_score && begins_with_score(q);
    struct sqlite_stmt **slot = &s->scan_items[q->table][q->order][q->reverse][score_only][end];
    if (*slot) {
        *ret = *slot;
        return ST_OK;
    }
    struct buf text = {0};
    add_select(&text, q->table, by_score);
    if (by_score)
        add_score_range(&text, q, end);
    else
        add_range(&text, q, end);
    buf_addf(&text, " LIMIT ?4 OFFSET ?7");
    return prepared_text(s, slot, &text, ret, err);
}

/* Items from (?2, ?5) to before (?3, ?6). Row values would be compared again for each row: in three ranges
   with plain bounds a row costs less than half. one: both scores are the same. */
static void add_count_scores(struct buf *text, enum item_table t, bool one)
{
    const char *score = item_order_column(t, ITEMS_BY_SCORE), *key = item_tables[t].key;
    struct buf from = {0};
    buf_addf(&from, "SELECT count(*) FROM %s INDEXED BY %s WHERE id = ?1 AND %s", item_tables[t].name,
             item_tables[t].indexes[ITEMS_BY_SCORE], score);
    buf_add(&from, "", 1);
    if (one)
        buf_addf(text, "%s = ?2 AND %s >= ?5 AND %s < ?6", from.p, key, key);
    else
        buf_addf(text, "SELECT (%s > ?2 AND %s < ?3) + (%s = ?2 AND %s >= ?5) + (%s = ?3 AND %s < ?6)",
                 from.p, score, from.p, key, from.p, key);
    buf_release(&from);
}

/* ?1 id; by expiry from ?2 to ?3; by score as above. */
enum status stmt_count_items(struct sqlite_store *s, const struct item_scan *q, struct sqlite_stmt **ret,
                             struct error *err)
{
    bool by_score = q->order == ITEMS_BY_SCORE, one = by_score && !(q->min_score < q->max_score);
    struct sqlite_stmt **slot = &s->count_items[q->table][by_score][one];
    if (*slot) {
        *ret = *slot;
        return ST_OK;
    }
    struct buf text = {0};
    const char *by = item_order_column(q->table, q->order);
    if (by_score)
        add_count_scores(&text, q->table, one);
    else
        buf_addf(&text, "SELECT count(*) FROM %s WHERE id = ?1 AND %s <> 0 AND %s BETWEEN ?2 AND ?3",
                 item_tables[q->table].name, by, by);
    return prepared_text(s, slot, &text, ret, err);
}

/* ---- keys ---- */

/* The keys of tables, by the index that has no others. */
#define TABLES_ALONE "INDEXED BY larder_key_table WHERE type = 6"

/* By key: ?1 db, ?2 lower bound, ?3 upper bound. By seq: ?2 the seq to stay below. ?4 limit, ?5 now. Expired:
   from the first one on; or (has_after) behind expire_at ?2 of db ?1 and seq ?3, those of that moment and
   database, and (has_end) those of later ones: so each of them is a range of the index. */
enum status stmt_scan_keys(struct sqlite_store *s, const struct key_scan *q, bool has_end,
                           struct sqlite_stmt **ret, struct error *err)
{
    bool tables = q->order == KEYS_TABLES, last = tables ? q->every_db : q->reverse;
    struct sqlite_stmt **slot = &s->scan_keys[q->order][q->with_value][q->has_after][has_end][last];
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
    else if (tables && q->every_db)
        snprintf(range, sizeof range, TABLES_ALONE " ORDER BY db, key");
    else
        snprintf(range, sizeof range, "%s db = ?1 AND key %s ?2%s ORDER BY key%s",
                 tables ? TABLES_ALONE " AND" : "WHERE",
                 q->has_after ? ">" : ">=", has_end ? " AND key < ?3" : "", q->reverse ? " DESC" : "");
    snprintf(text, sizeof text, "SELECT " KEY_COLUMNS("%s") ", %s FROM larder_key %s LIMIT ?4",
             q->order == KEYS_DUE || q->order == KEYS_EXPIRED || tables
                 ? "type"
                 : "CASE WHEN " DEAD_HASH("?5") " THEN 0 ELSE type END",
             q->with_value ? "value" : "x''", range);
    return prepared(s, slot, text, ret, err);
}

static void finalize_many(struct sqlite_stmt **slots, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sqlite_finalize(slots[i]);
        slots[i] = NULL;
    }
}

void stmt_finalize_all(struct sqlite_store *s)
{
    finalize_many(s->fixed, sizeof s->fixed / sizeof(struct sqlite_stmt *));
    finalize_many(s->get_item, sizeof s->get_item / sizeof(struct sqlite_stmt *));
    finalize_many(s->put_item, sizeof s->put_item / sizeof(struct sqlite_stmt *));
    finalize_many(s->del_item, sizeof s->del_item / sizeof(struct sqlite_stmt *));
    finalize_many(s->del_range, sizeof s->del_range / sizeof(struct sqlite_stmt *));
    finalize_many(&s->sweep_items[0][0], sizeof s->sweep_items / sizeof(struct sqlite_stmt *));
    finalize_many(&s->scan_items[0][0][0][0][0], sizeof s->scan_items / sizeof(struct sqlite_stmt *));
    finalize_many(&s->count_items[0][0][0], sizeof s->count_items / sizeof(struct sqlite_stmt *));
    finalize_many(&s->scan_keys[0][0][0][0][0], sizeof s->scan_keys / sizeof(struct sqlite_stmt *));
}
