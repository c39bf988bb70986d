#include "table/text/describe.h"

/* clang-format off */

/* Words that SQL reads otherwise where a name could be. */
static const char *const keywords[] = {
    "abort", "add", "after", "all", "alter", "always", "analyze", "and", "as", "asc", "attach",
    "autoincrement", "before", "begin", "between", "by", "cascade", "case", "cast", "check", "collate",
    "column", "commit", "conflict", "constraint", "create", "cross", "current", "current_date",
    "current_time", "current_timestamp", "database", "default", "deferrable", "deferred", "delete", "desc",
    "detach", "distinct", "drop", "else", "end", "escape", "except", "exclude", "exclusive", "exists",
    "explain", "filter", "following", "for", "foreign", "from", "full", "generated", "glob", "group",
    "having", "if", "immediate", "in", "index", "indexed", "initially", "inner", "insert", "instead",
    "intersect", "into", "is", "isnull", "join", "left", "like", "limit", "materialized", "natural", "not",
    "nothing", "notnull", "null", "nulls", "on", "or", "order", "outer", "over", "partition", "pragma",
    "preceding", "primary", "raise", "recursive", "references", "regexp", "reindex", "release", "rename",
    "replace", "restrict", "returning", "right", "rollback", "savepoint", "select", "set", "table",
    "temporary", "then", "ties", "to", "transaction", "trigger", "unbounded", "union", "unique", "update",
    "using", "vacuum", "values", "virtual", "when", "where", "window", "with", "without"};

/* clang-format on */

static bool is_keyword(struct slice name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (slice_is(name, keywords[i]))
            return true;
    return false;
}

void schema_name(struct slice name, struct buf *out)
{
    const char *quote = is_keyword(name) ? "\"" : "";
    buf_addf(out, "%s%.*s%s", quote, (int)name.n, name.p, quote);
}

/* In quotes; those within it stand twice. */
static void add_text(struct buf *out, struct slice s)
{
    buf_add(out, "'", 1);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            buf_add(out, "'", 1);
        buf_add(out, &s.p[i], 1);
    }
    buf_add(out, "'", 1);
}

void schema_literal(enum column_type t, const struct value *v, struct buf *out)
{
    struct buf moment = {0};
    switch (v->kind) {
    case VALUE_NULL:
        buf_addf(out, "NULL");
        break;
    case VALUE_TEXT:
        add_text(out, v->s);
        break;
    case VALUE_BLOB:
        buf_addf(out, "x'");
        for (size_t i = 0; i < v->s.n; i++)
            buf_addf(out, "%02x", (unsigned)(unsigned char)v->s.p[i]);
        buf_add(out, "'", 1);
        break;
    case VALUE_INT:
        if (t == COLUMN_TIMESTAMP) {
            value_print(&moment, t, v);
            add_text(out, buf_slice(&moment));
            buf_release(&moment);
            break;
        }
        value_print(out, t, v);
        break;
    case VALUE_REAL:
    case VALUE_BOOL:
        value_print(out, t, v);
        break;
    }
}

static void add_parts(struct buf *out, const struct schema *s, const struct key_part *parts, size_t n)
{
    buf_add(out, "(", 1);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add(out, ", ", 2);
        schema_name(s->columns[parts[i].column].name, out);
        if (parts[i].desc)
            buf_addf(out, " DESC");
    }
    buf_add(out, ")", 1);
}

static bool is_key(const struct schema *s, size_t column)
{
    for (size_t i = 0; i < s->nkey; i++)
        if (s->key[i].column == column)
            return true;
    return false;
}

/* Columns, key and checks. */
static void add_items(struct buf *out, const struct schema *s)
{
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        if (i)
            buf_add(out, ", ", 2);
        schema_name(c->name, out);
        buf_addf(out, " %s", column_type_name(c->type));
        if (c->not_null && !is_key(s, i))
            buf_addf(out, " NOT NULL");
        if (c->has_default) {
            buf_addf(out, " DEFAULT ");
            schema_literal(c->type, &c->default_value, out);
        }
    }
    buf_addf(out, ", PRIMARY KEY ");
    add_parts(out, s, s->key, s->nkey);
    for (size_t i = 0; i < s->nchecks; i++)
        buf_addf(out, ", CHECK (%.*s)", (int)s->checks[i].n, s->checks[i].p);
}

void schema_describe(const struct schema *s, struct buf *out)
{
    add_items(out, s);
    for (size_t i = 0; i < s->nindexes; i++) {
        buf_addf(out, ", %sINDEX ", s->indexes[i].unique ? "UNIQUE " : "");
        schema_name(s->indexes[i].name, out);
        buf_add(out, " ", 1);
        add_parts(out, s, s->indexes[i].parts, s->indexes[i].nparts);
    }
}

void schema_table_sql(const struct schema *s, struct slice table, struct buf *out)
{
    buf_addf(out, "CREATE TABLE ");
    schema_name(table, out);
    buf_addf(out, " (");
    add_items(out, s);
    buf_addf(out, ")");
}

void schema_index_sql(const struct schema *s, struct slice table, const struct table_index *x,
                      struct buf *out)
{
    buf_addf(out, "CREATE %sINDEX ", x->unique ? "UNIQUE " : "");
    schema_name(x->name, out);
    buf_addf(out, " ON ");
    schema_name(table, out);
    buf_add(out, " ", 1);
    add_parts(out, s, x->parts, x->nparts);
}

void schema_sql(const struct schema *s, struct slice table, struct buf *out)
{
    schema_table_sql(s, table, out);
    buf_add(out, ";\n", 2);
    for (size_t i = 0; i < s->nindexes; i++) {
        schema_index_sql(s, table, &s->indexes[i], out);
        buf_add(out, ";\n", 2);
    }
}
