/* Views by which the database behind shows a table's rows. */
#include "proto/base64.h"
#include "table/text/describe.h"

/* What differs between the databases. In these texts # is the place of a column in a row's array, and @ what
   is there, as text or, in SQLite, as it is. */
struct dialect {
    char quote;           /* around names */
    const char *now;      /* milliseconds */
    const char *array;    /* r.value as JSON */
    const char *length;   /* of the array */
    const char *scalar;   /* what @ stands for */
    const char *document; /* of a JSON column; null is NULL */
    const char *values[COLUMN_TYPES];
    const char *json;   /* a text as JSON */
    const char *tables; /* the condition by which an index finds the keys of tables */
};

/* clang-format off */
static const struct dialect dialects[] = {
    [DIALECT_SQLITE] = {
        .quote = '"',
        .now = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
        .array = "CAST(r.value AS TEXT)",
        .length = "json_array_length(v.j)",
        .scalar = "json_extract(v.j, '$[#]')",
        .document = "nullif(v.j -> '$[#]', 'null')",
        .values = {[COLUMN_INTEGER] = "CAST(@ AS INTEGER)", [COLUMN_REAL] = "CAST(@ AS REAL)", [COLUMN_TEXT] = "@",
                   [COLUMN_BLOB] = "@", [COLUMN_BOOLEAN] = "CAST(@ AS INTEGER)",
                   [COLUMN_TIMESTAMP] = "strftime('%Y-%m-%d %H:%M:%f', @ / 1000.0, 'unixepoch')"},
        .json = "@",
        .tables = "k.type = 6"},
    [DIALECT_POSTGRES] = {
        .quote = '"',
        .now = "larder_now()",
        .array = "convert_from(r.value, 'UTF8')::json",
        .length = "json_array_length(v.j)",
        .scalar = "(v.j ->> #)",
        .document = "CASE WHEN (v.j ->> #) IS NOT NULL THEN v.j -> # END",
        .values = {[COLUMN_INTEGER] = "@::bigint", [COLUMN_REAL] = "@::double precision", [COLUMN_TEXT] = "@::text",
                   [COLUMN_BLOB] = "decode(@, 'base64')", [COLUMN_BOOLEAN] = "@::boolean",
                   [COLUMN_TIMESTAMP] = "(timestamp 'epoch' + (@::bigint / 86400000) * interval '1 day'"
                                        " + (@::bigint % 86400000) * interval '1 millisecond') AT TIME ZONE 'UTC'"},
        .json = "@::json",
        .tables = "k.type = 6"},
    [DIALECT_MARIADB] = {
        .quote = '`',
        .now = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
        .array = "CONVERT(r.value USING utf8mb4)",
        .length = "JSON_LENGTH(v.j)",
        .scalar = "JSON_VALUE(v.j, '$[#]')",
        .document = "NULLIF(JSON_EXTRACT(v.j, '$[#]'), 'null')",
        .values = {[COLUMN_INTEGER] = "CAST(@ AS SIGNED)", [COLUMN_REAL] = "CAST(@ AS DOUBLE)", [COLUMN_TEXT] = "@",
                   [COLUMN_BLOB] = "FROM_BASE64(@)", [COLUMN_BOOLEAN] = "CAST(@ AS SIGNED)",
                   [COLUMN_TIMESTAMP] = "CAST('1970-01-01 00:00:00.000' + INTERVAL CAST(@ AS SIGNED) * 1000 MICROSECOND"
                                        " AS DATETIME(3))"},
        .json = "@",
        .tables = "k.type = 6 AND k.due_at < 0"},
};
/* clang-format on */

static void add_name(struct buf *out, const struct dialect *d, struct slice name)
{
    buf_addf(out, "%c%.*s%c", d->quote, (int)name.n, name.p, d->quote);
}

/* A text with a place for each #, and another text for each @. */
static void add_expression(struct buf *out, const char *text, uint16_t place, struct slice at)
{
    for (; *text; text++) {
        if (*text == '#')
            buf_addf(out, "%d", place);
        else if (*text == '@')
            buf_add_slice(out, at);
        else
            buf_add(out, text, 1);
    }
}

/* A text as a constant of the dialect. MariaDB reads backslashes as it is set: it is told the bytes. */
static void add_text(struct buf *out, enum schema_dialect d, struct slice s)
{
    if (d != DIALECT_MARIADB) {
        schema_literal(COLUMN_TEXT, &(struct value){.kind = VALUE_TEXT, .s = s}, out);
        return;
    }
    buf_addf(out, "CONVERT(");
    schema_literal(COLUMN_BLOB, &(struct value){.kind = VALUE_BLOB, .s = s}, out);
    buf_addf(out, " USING utf8mb4) COLLATE utf8mb4_bin");
}

/* What stands in the array for a value, as text: base64 and milliseconds, in SQLite and MariaDB 1 for true.
 */
static void add_constant(struct buf *out, enum schema_dialect d, enum column_type t, const struct value *v)
{
    struct buf text = {0};
    if (v->kind == VALUE_BLOB)
        base64_add(&text, v->s);
    else if (v->kind == VALUE_BOOL && d != DIALECT_POSTGRES)
        buf_addf(&text, "%d", (int)v->i);
    else
        value_print(&text, t == COLUMN_TIMESTAMP ? COLUMN_INTEGER : t, v);
    add_text(out, d, buf_slice(&text));
    buf_release(&text);
}

static void add_column(struct buf *out, enum schema_dialect dialect, const struct column *c)
{
    const struct dialect *d = &dialects[dialect];
    struct buf scalar = {0}, constant = {0};
    bool json = c->type == COLUMN_JSON, given = c->missing.kind != VALUE_NULL;
    add_expression(&scalar, d->scalar, c->id, SLICE(""));
    add_constant(&constant, dialect, c->type, &c->missing);
    if (given)
        buf_addf(out, "CASE WHEN %s > %d THEN ", d->length, c->id);
    add_expression(out, json ? d->document : d->values[c->type], c->id, buf_slice(&scalar));
    if (given) {
        buf_addf(out, " ELSE ");
        add_expression(out, json ? d->json : d->values[c->type], c->id, buf_slice(&constant));
        buf_addf(out, " END");
    }
    buf_addf(out, " AS ");
    add_name(out, d, c->name);
    buf_release(&scalar);
    buf_release(&constant);
}

/* Of a table over hashes: the fields of each hash, put side by side. */
static void add_hashes(struct buf *out, const struct schema *s, uint32_t db, enum schema_dialect dialect)
{
    const struct dialect *d = &dialects[dialect];
    struct buf key = {0}, prefix = {0}, length = {0};
    buf_addf(&key, "h.");
    add_name(&key, d, SLICE("key"));
    add_text(&prefix, dialect, s->prefix);
    buf_addf(&length, "%s(%.*s)", dialect == DIALECT_SQLITE ? "length" : "char_length", (int)prefix.len,
             prefix.p);
    buf_addf(out, "substr(%.*s, %.*s + 1) AS ", (int)key.len, key.p, (int)length.len, length.p);
    add_name(out, d, s->columns[0].name);
    for (size_t i = 1; i < s->ncolumns; i++) {
        buf_addf(out, ", max(CASE WHEN h.field = ");
        add_text(out, dialect, s->columns[i].name);
        buf_addf(out, " THEN h.value END) AS ");
        add_name(out, d, s->columns[i].name);
    }
    buf_addf(out,
             " FROM larder_hashes AS h WHERE h.db = %u AND substr(%.*s, 1, %.*s) = %.*s GROUP BY %.*s, "
             "h.key_bytes;",
             db, (int)key.len, key.p, (int)length.len, length.p, (int)prefix.len, prefix.p, (int)key.len,
             key.p);
    buf_release(&key);
    buf_release(&prefix);
    buf_release(&length);
}

void schema_view(const struct schema *s, struct slice table, uint32_t db, int64_t id,
                 enum schema_dialect dialect, struct buf *out)
{
    const struct dialect *d = &dialects[dialect];
    buf_addf(out, "CREATE VIEW ");
    add_name(out, d, table);
    buf_addf(out, " AS SELECT ");
    if (s->on_hashes) {
        add_hashes(out, s, db, dialect);
        return;
    }
    for (size_t i = 0; i < s->ncolumns; i++) {
        if (i)
            buf_add(out, ", ", 2);
        add_column(out, dialect, &s->columns[i]);
    }
    buf_addf(
        out,
        " FROM (SELECT %s AS j FROM larder_row AS r WHERE r.id = %lld AND (r.expire_at = 0 OR r.expire_at > "
        "%s))"
        " AS v WHERE EXISTS (SELECT 1 FROM larder_key AS k WHERE %s AND k.id = %lld AND (k.expire_at = 0 OR"
        " k.expire_at > %s));",
        d->array, (long long)id, d->now, d->tables, (long long)id, d->now);
}
