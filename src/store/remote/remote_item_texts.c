/* The SQL of items on a database server, composed from the descriptions of their tables
   (store/item_tables.h). Parameters are numbered ?1, ?2 ... in both dialects, until rtext_end makes them $1,
   $2 ... for PostgreSQL. What {...} means in MariaDB's texts is said in sql/remote.h. */
#include <assert.h>

#include "store/remote/remote_names.h"
#include "store/remote/remote_store.h"

/* ---- scores ---- */

int64_t score_bits(double score)
{
    int64_t bits;
    memcpy(&bits, &score, sizeof bits);
    return bits;
}

double score_of_bits(int64_t bits)
{
    double score;
    memcpy(&score, &bits, sizeof score);
    return score;
}

/* Integers in the order of the numbers; the two zeros are one. As larder_zset.place has it. */
int64_t score_place(double score)
{
    int64_t bits = score_bits(score);
    return bits < 0 ? INT64_MIN - bits : bits;
}

struct param rstore_score(const struct rstore *s, double score)
{
    return s->conn->dialect == REMOTE_MARIADB ? param_i64(score_place(score)) : param_double(score);
}

/* ---- points ---- */

/* A column as it is read: a constant where the table has none. */
static const char *column_text(const struct rstore *s, enum item_table t, enum item_column c)
{
    const char *name = item_tables[t].columns[c];
    if (!name)
        return c == COLUMN_VALUE ? rtext_no_bytes(s) : "0";
    return c == COLUMN_SCORE && !rtext_postgres(s) ? "bits" : name;
}

/* The columns of an item in the order in which remote_read.c reads them. An index by score does not have
   ord. of: "i." or nothing, before what another table may have as well. */
static void add_select(struct rstore *s, enum item_table t, const char *of, bool by_score)
{
    const struct item_table_desc *d = &item_tables[t];
    buf_addf(&s->text, "SELECT %sid, %s%s, ", of, of, d->key);
    if (d->named)
        buf_addf(&s->text, "%s_rest", d->key);
    else
        buf_addf(&s->text, "%s", rtext_no_bytes(s));
    buf_addf(&s->text, ", %s, %s, %s, %s FROM ", column_text(s, t, COLUMN_VALUE),
             column_text(s, t, COLUMN_SCORE), column_text(s, t, COLUMN_EXPIRY),
             by_score ? "-1" : column_text(s, t, COLUMN_ORD));
}

const char *rtext_get_items(struct rstore *s, enum item_table t)
{
    const struct item_table_desc *d = &item_tables[t];
    s->text.len = 0;
    add_select(s, t, "i.", false);
    if (rtext_postgres(s))
        buf_addf(&s->text, "unnest(?1, ?2) AS u (uid, uname) JOIN %s AS i ON i.id = u.uid AND i.%s = u.uname",
                 d->name, d->key);
    else
        buf_addf(&s->text, "%s AS i FORCE INDEX (PRIMARY) WHERE (i.id, i.%s) IN ({,|(?1, ?2)})", d->name,
                 d->key);
    return rtext_end(s);
}

/* Every item of the ids ?1. */
const char *rtext_read_whole(struct rstore *s, enum item_table t)
{
    s->text.len = 0;
    add_select(s, t, "", false);
    buf_addf(&s->text, "%s WHERE id %s", item_tables[t].name,
             rtext_postgres(s) ? "= ANY (?1)" : "IN ({,|?1})");
    return rtext_end(s);
}

/* Whether a table keeps the bits of scores apart. */
static bool has_bits(const struct rstore *s, enum item_table t)
{
    return item_has(t, COLUMN_SCORE) && !rtext_postgres(s);
}

/* "(?1, ?2, ...)" for as many columns as there are. */
static void add_parameters(struct rstore *s, int n)
{
    for (int i = 1; i <= n; i++)
        buf_addf(&s->text, "%s?%d", i == 1 ? "(" : ", ", i);
    buf_addf(&s->text, ")");
}

/* A column that a row which is there gets anew. */
static void add_update(struct rstore *s, const char *column, bool *first)
{
    buf_addf(&s->text, rtext_postgres(s) ? "%s %s = excluded.%s" : "%s %s = VALUES(%s)", *first ? "" : ",",
             column, column);
    *first = false;
}

/* Upserts, so that a row that is there is changed where it is. The parameters are the table's columns in the
   order that remote_apply.c has them in. */
const char *rtext_put_items(struct rstore *s, enum item_table t)
{
    const struct item_table_desc *d = &item_tables[t];
    int n = d->named ? 3 : 2;
    bool first = true;
    s->text.len = 0;
    buf_addf(&s->text, "INSERT INTO %s (id, %s", d->name, d->key);
    if (d->named)
        buf_addf(&s->text, ", %s_rest", d->key);
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (d->columns[c]) {
            buf_addf(&s->text, ", %s", d->columns[c]);
            n++;
        }
    if (has_bits(s, t)) {
        buf_addf(&s->text, ", bits");
        n++;
    }
    buf_addf(&s->text, rtext_postgres(s) ? ") SELECT * FROM unnest" : ") VALUES {,|");
    add_parameters(s, n);
    if (rtext_postgres(s))
        buf_addf(&s->text, " ON CONFLICT (id, %s) DO UPDATE SET", d->key);
    else
        buf_addf(&s->text, "} ON DUPLICATE KEY UPDATE");
    for (int c = 0; c < ITEM_COLUMNS; c++)
        if (d->columns[c])
            add_update(s, d->columns[c], &first);
    if (has_bits(s, t))
        add_update(s, "bits", &first);
    return rtext_end(s);
}

const char *rtext_delete_items(struct rstore *s, enum item_table t)
{
    const struct item_table_desc *d = &item_tables[t];
    s->text.len = 0;
    if (rtext_postgres(s))
        buf_addf(
            &s->text,
            "DELETE FROM %s AS i USING unnest(?1, ?2) AS u (id, name) WHERE i.id = u.id AND i.%s = u.name",
            d->name, d->key);
    else
        buf_addf(&s->text, "DELETE FROM %s WHERE (id, %s) IN ({,|(?1, ?2)})", d->name, d->key);
    return rtext_end(s);
}

/* ---- sweeping ---- */

/* Up to ?2 items of the ids ?1; of a range: with names from ?3 to before ?4. */
const char *rtext_sweep_items(struct rstore *s, enum item_table t, enum trash_part part)
{
    const char *name = item_tables[t].name, *key = item_tables[t].key;
    s->text.len = 0;
    if (rtext_postgres(s))
        buf_addf(&s->text, "DELETE FROM %s WHERE ctid = ANY (ARRAY (SELECT ctid FROM %s WHERE id = ANY (?1)",
                 name, name);
    else
        buf_addf(&s->text, "DELETE FROM %s WHERE id IN ({,|?1})", name);
    if (part == TRASH_RANGE)
        buf_addf(&s->text, " AND %s >= ?3 AND %s < ?4", key, key);
    buf_addf(&s->text, " LIMIT ?2%s", rtext_postgres(s) ? "))" : "");
    return rtext_end(s);
}

/* Forgets those of the ids ?1 of type ?2 that have no items any more. Of a range nothing is asked: MariaDB
   would look at everything that the ids have before it. */
const char *rtext_sweep_trash(struct rstore *s, enum row_type type)
{
    char low[2] = {0}, high[2] = {0};
    s->text.len = 0;
    if (rtext_postgres(s))
        buf_addf(&s->text, "DELETE FROM larder_trash AS t WHERE t.id = ANY (?1) AND t.type = ?2");
    else
        buf_addf(&s->text, "DELETE t FROM larder_trash AS t WHERE t.id IN ({,|?1}) AND t.type = ?2");
    for (int t = 0; t < ITEM_TABLES; t++) {
        if (item_trashed((enum item_table)t, type, low, high) == TRASH_ALL)
            buf_addf(&s->text, " AND NOT EXISTS (SELECT 1 FROM %s AS i WHERE i.id = t.id)",
                     item_tables[t].name);
    }
    return rtext_end(s);
}

/* ---- ranges ---- */

/* The column that scores are compared by. */
static const char *score_column(const struct rstore *s, enum item_table t)
{
    return rtext_postgres(s) ? item_order_column(t, ITEMS_BY_SCORE) : "place";
}

/* A name as it is compared. */
static void add_name(struct rstore *s, const char *key, bool exact)
{
    if (!exact)
        buf_addf(&s->text, "%s", key);
    else if (rtext_postgres(s))
        buf_addf(&s->text, "larder_whole(%s, %s_rest)", key, key);
    else
        buf_addf(&s->text, "IF(%s_rest = '', %s, CONCAT(SUBSTR(%s, 1, 992), %s_rest))", key, key, key, key);
}

/* (score, name) OP (?a, ?b), in a form for which the index is used. op: ">=", ">", "<=" or "<". */
static void add_place(struct rstore *s, enum item_table t, const char *op, int a, int b)
{
    const char *score = score_column(s, t), *key = item_tables[t].key;
    if (rtext_postgres(s))
        buf_addf(&s->text, "(%s, %s) %s (?%d, ?%d)", score, key, op, a, b);
    else
        buf_addf(&s->text, "%s %c= ?%d AND (%s %c ?%d OR %s %s ?%d)", score, op[0], a, score, op[0], a, key,
                 op, b);
}

static void add_score_range(struct rstore *s, const struct item_scan *q, bool after)
{
    const char *score = score_column(s, q->table), *dir = q->reverse ? "DESC" : "ASC";
    enum scan_end end = scan_end_of(q);
    if (begins_with_score(q))
        buf_addf(&s->text, "%s >= ?2", score);
    else
        add_place(s, q->table, ">=", 2, 5);
    if (end == END_AT || end == END_BELOW) {
        buf_addf(&s->text, " AND ");
        add_place(s, q->table, end == END_AT ? "<=" : "<", 3, 6);
    } else if (end == END_AT_SCORE || end == END_BELOW_SCORE) {
        buf_addf(&s->text, " AND %s %s ?3", score, end == END_AT_SCORE ? "<=" : "<");
    }
    if (after) {
        buf_addf(&s->text, " AND ");
        add_place(s, q->table, q->reverse ? "<" : ">", 8, 9);
    }
    buf_addf(&s->text, " ORDER BY %s %s, %s %s", score, dir, item_tables[q->table].key, dir);
}

static void add_range(struct rstore *s, const struct item_scan *q, bool after)
{
    const char *column = item_order_column(q->table, q->order);
    if (q->order == ITEMS_BY_EXPIRY) /* what a partial index asks for */
        buf_addf(&s->text, "%s <> 0 AND ", column);
    buf_addf(&s->text, "%s >= ?2", column);
    if (q->has_max)
        buf_addf(&s->text, " AND %s %s ?3", column, scan_end_of(q) == END_BELOW ? "<" : "<=");
    if (after)
        buf_addf(&s->text, " AND %s %c ?%d", column, q->reverse ? '<' : '>',
                 q->order == ITEMS_BY_NAME ? 9 : 8);
    buf_addf(&s->text, " ORDER BY %s %s", column, q->reverse ? "DESC" : "ASC");
}

const char *rtext_scan_items(struct rstore *s, const struct item_scan *q, bool after)
{
    bool by_score = q->order == ITEMS_BY_SCORE;
    s->text.len = 0;
    add_select(s, q->table, "", by_score);
    buf_addf(&s->text, "%s WHERE id = ?1 AND ", item_tables[q->table].name);
    if (by_score)
        add_score_range(s, q, after);
    else
        add_range(s, q, after);
    buf_addf(&s->text, " LIMIT ?4 OFFSET ?7");
    return rtext_end(s);
}

const char *rtext_delete_range(struct rstore *s, const struct item_range *r)
{
    enum item_table t = r->table;
    const char *key = item_tables[t].key;
    s->text.len = 0;
    buf_addf(&s->text, "DELETE FROM %s WHERE id = ?1 AND ", item_tables[t].name);
    if (r->order != ITEMS_BY_SCORE) {
        buf_addf(&s->text, "%s BETWEEN ?2 AND ?3", item_order_column(t, r->order));
        return rtext_end(s);
    }
    if (r->min_score == r->max_score) { /* PostgreSQL would go on to the end of the score */
        buf_addf(&s->text, "%s = ?2 AND %s >= ?4 AND %s <= ?5", score_column(s, t), key, key);
    } else {
        add_place(s, t, ">=", 2, 4);
        buf_addf(&s->text, " AND ");
        add_place(s, t, "<=", 3, 5);
    }
    if (remote_name_is_long(r->min_name)) {
        buf_addf(&s->text, " AND NOT (%s = ?2 AND ", score_column(s, t));
        add_name(s, key, true);
        buf_addf(&s->text, " < ?6)");
    }
    if (remote_name_is_long(r->max_name)) {
        buf_addf(&s->text, " AND NOT (%s = ?3 AND ", score_column(s, t));
        add_name(s, key, true);
        buf_addf(&s->text, " > ?7)");
    }
    return rtext_end(s);
}

/* ---- counts ---- */

static void add_count(struct rstore *s, enum item_table t)
{
    buf_addf(&s->text, "(SELECT count(*) FROM %s WHERE id = ?1 AND ", item_tables[t].name);
}

/* In three ranges with plain bounds, as every planner understands them. */
static void add_count_scores(struct rstore *s, enum item_table t, bool exact)
{
    const char *score = score_column(s, t), *key = item_tables[t].key;
    buf_addf(&s->text, "SELECT ");
    add_count(s, t);
    buf_addf(&s->text, "%s > ?2 AND %s < ?3) + ", score, score);
    add_count(s, t);
    buf_addf(&s->text, "%s = ?2 AND ", score);
    add_name(s, key, exact);
    buf_addf(&s->text, " >= ?5) + ");
    add_count(s, t);
    buf_addf(&s->text, "%s = ?3 AND ", score);
    add_name(s, key, exact);
    buf_addf(&s->text, " < ?6), 0");
}

const char *rtext_count_items(struct rstore *s, const struct item_scan *q, bool exact)
{
    enum item_table t = q->table;
    const char *by = item_order_column(t, q->order), *key = item_tables[t].key;
    s->text.len = 0;
    if (q->order == ITEMS_BY_SCORE && q->min_score < q->max_score) {
        add_count_scores(s, t, exact);
        return rtext_end(s);
    }
    buf_addf(&s->text, "SELECT count(*), 0 FROM %s WHERE id = ?1 AND ", item_tables[t].name);
    if (q->order == ITEMS_BY_SCORE) {
        buf_addf(&s->text, "%s = ?2 AND ", score_column(s, t));
        add_name(s, key, exact);
        buf_addf(&s->text, " >= ?5 AND ");
        add_name(s, key, exact);
        buf_addf(&s->text, " < ?6");
    } else {
        buf_addf(&s->text, "%s <> 0 AND %s BETWEEN ?2 AND ?3", by, by);
    }
    return rtext_end(s);
}
