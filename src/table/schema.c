#include "table/schema.h"

#include "table/schema_internal.h"

/* ---- names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool begins_with(struct slice name, const char *word)
{
    size_t n = strlen(word);
    return name.n >= n && slice_is(slice_of(name.p, n), word);
}

bool schema_name_ok(struct slice name)
{
    if (name.n == 0 || name.n > SCHEMA_NAME_MAX || !is_letter(name.p[0]))
        return false;
    for (size_t i = 1; i < name.n; i++)
        if (!is_letter(name.p[i]) && (name.p[i] < '0' || name.p[i] > '9'))
            return false;
    return !begins_with(name, "larder_") && !begins_with(name, "sqlite_");
}

/* Columns that could not be told from something else: parameters of the HTTP API's queries, the hidden
   column of SQL, SQL's constants. */
static bool is_reserved(struct slice name)
{
    static const char *const words[] = {"select", "order",  "index", "limit", "cursor",
                                        "int64",  "atomic", "_key",  "true",  "false"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_is(name, words[i]))
            return true;
    return false;
}

bool schema_same_name(struct slice x, struct slice y)
{
    if (x.n != y.n)
        return false;
    for (size_t i = 0; i < x.n; i++) {
        char a = x.p[i], b = y.p[i];
        a = a >= 'A' && a <= 'Z' ? (char)(a + 32) : a;
        b = b >= 'A' && b <= 'Z' ? (char)(b + 32) : b;
        if (a != b)
            return false;
    }
    return true;
}

int schema_column(const struct schema *s, struct slice name)
{
    for (size_t i = 0; i < s->ncolumns; i++)
        if (schema_same_name(s->columns[i].name, name))
            return (int)i;
    return -1;
}

int schema_index(const struct schema *s, struct slice name)
{
    for (size_t i = 0; i < s->nindexes; i++)
        if (schema_same_name(s->indexes[i].name, name))
            return (int)i;
    return -1;
}

/* ---- checking ---- */

static bool check_name(const char *what, struct slice name, struct fault *fault)
{
    if (schema_name_ok(name))
        return true;
    return fault_set(
        fault, FAULT_SYNTAX,
        "'%.*s' cannot be the name of %s: letters, digits and _, at most %d, not larder_ or sqlite_",
        FAULT_CUT(name), what, SCHEMA_NAME_MAX);
}

static bool check_value(const struct column *c, const struct value *v, const char *what, struct fault *fault)
{
    if (v->kind == VALUE_NULL || v->kind == column_kind(c->type))
        return true;
    return fault_set(fault, FAULT_BAD_TYPE, "column %.*s: its %s is no %s", FAULT_CUT(c->name), what,
                     column_type_name(c->type));
}

static bool check_columns(const struct schema *s, struct fault *fault)
{
    if (s->ncolumns == 0)
        return fault_set(fault, FAULT_SYNTAX, "a table needs a column");
    if (s->ncolumns > SCHEMA_COLUMNS_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "%zu columns, a table has at most %d", s->ncolumns,
                         SCHEMA_COLUMNS_MAX);
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        if (!check_name("a column", c->name, fault) || !check_value(c, &c->default_value, "default", fault) ||
            !check_value(c, &c->missing, "value where it is missing", fault))
            return false;
        if ((size_t)schema_column(s, c->name) != i)
            return fault_set(fault, FAULT_EXISTS, "column %.*s is there twice", FAULT_CUT(c->name));
        if (c->id == 0 || c->id >= s->next_column || (i && c->id <= s->columns[i - 1].id))
            return fault_set(fault, FAULT_SYNTAX, "column %.*s has id %d", FAULT_CUT(c->name), c->id);
        if (!c->has_default && c->default_value.kind != VALUE_NULL)
            return fault_set(fault, FAULT_SYNTAX, "column %.*s has no default", FAULT_CUT(c->name));
        if (c->not_null && c->has_default && c->default_value.kind == VALUE_NULL)
            return fault_set(fault, FAULT_CONSTRAINT, "column %.*s is NOT NULL and cannot have DEFAULT NULL",
                             FAULT_CUT(c->name));
    }
    return true;
}

/* The parts of the primary key or an index. */
static bool check_parts(const struct schema *s, struct slice of, const struct key_part *parts, size_t n,
                        struct fault *fault)
{
    if (n == 0)
        return fault_set(fault, FAULT_SYNTAX, "%.*s has no columns", FAULT_CUT(of));
    if (n > SCHEMA_PARTS_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "%.*s has %zu columns, at most %d are possible",
                         FAULT_CUT(of), n, SCHEMA_PARTS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (parts[i].column >= s->ncolumns)
            return fault_set(fault, FAULT_NO_COLUMN, "%.*s has a column that is not there", FAULT_CUT(of));
        const struct column *c = &s->columns[parts[i].column];
        if (c->type == COLUMN_JSON)
            return fault_set(fault, FAULT_REFUSED,
                             "column %.*s is JSON, which has no order: it cannot be in %.*s",
                             FAULT_CUT(c->name), FAULT_CUT(of));
        for (size_t j = 0; j < i; j++)
            if (parts[j].column == parts[i].column)
                return fault_set(fault, FAULT_EXISTS, "column %.*s is twice in %.*s", FAULT_CUT(c->name),
                                 FAULT_CUT(of));
    }
    return true;
}

static bool check_key(struct schema *s, struct fault *fault)
{
    if (s->nkey == 0)
        return fault_set(fault, FAULT_SYNTAX, "a table needs a PRIMARY KEY");
    if (!check_parts(s, SLICE("the primary key"), s->key, s->nkey, fault))
        return false;
    for (size_t i = 0; i < s->nkey; i++) {
        struct column *c = &s->columns[s->key[i].column];
        if (c->has_default && c->default_value.kind == VALUE_NULL)
            return fault_set(fault, FAULT_CONSTRAINT,
                             "column %.*s is in the primary key and cannot have DEFAULT NULL",
                             FAULT_CUT(c->name));
        c->not_null = true;
    }
    return true;
}

static bool check_indexes(const struct schema *s, struct fault *fault)
{
    if (s->nindexes > SCHEMA_INDEXES_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "%zu indexes, a table has at most %d", s->nindexes,
                         SCHEMA_INDEXES_MAX);
    for (size_t i = 0; i < s->nindexes; i++) {
        const struct table_index *x = &s->indexes[i];
        if (!check_name("an index", x->name, fault) || !check_parts(s, x->name, x->parts, x->nparts, fault))
            return false;
        if ((size_t)schema_index(s, x->name) != i)
            return fault_set(fault, FAULT_EXISTS, "index %.*s is there twice", FAULT_CUT(x->name));
        if (x->number == 0 || x->number >= s->next_index || (i && x->number <= s->indexes[i - 1].number))
            return fault_set(fault, FAULT_SYNTAX, "index %.*s has number %d", FAULT_CUT(x->name), x->number);
    }
    return true;
}

static bool check_hashes(const struct schema *s, struct fault *fault)
{
    if (!s->on_hashes)
        return true;
    if (s->nkey != 1 || s->key[0].column != 0 || s->key[0].desc || s->columns[0].type != COLUMN_TEXT)
        return fault_set(
            fault, FAULT_REFUSED,
            "the primary key of a table over hashes is its first column, a TEXT: what is behind the prefix");
    if (s->nchecks)
        return fault_set(fault, FAULT_REFUSED, "a table over hashes cannot have CHECK");
    for (size_t i = 1; i < s->ncolumns; i++)
        if (s->columns[i].not_null)
            return fault_set(fault, FAULT_REFUSED, "column %.*s: a table over hashes cannot have NOT NULL",
                             FAULT_CUT(s->columns[i].name));
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].unique)
            return fault_set(fault, FAULT_REFUSED, "index %.*s: a table over hashes cannot have UNIQUE",
                             FAULT_CUT(s->indexes[i].name));
    return true;
}

bool schema_fits(struct schema *s, struct fault *fault)
{
    if (s->next_column == 0 || s->next_index == 0)
        return fault_set(fault, FAULT_SYNTAX, "the next column and index have no number");
    if (s->next_column > SCHEMA_NUMBER_MAX + 1 || s->next_index > SCHEMA_NUMBER_MAX + 1)
        return fault_set(fault, FAULT_TOO_LONG,
                         "the table has had more than %d columns or indexes: make it anew",
                         SCHEMA_NUMBER_MAX);
    if (s->nchecks > SCHEMA_CHECKS_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "%zu checks, a table has at most %d", s->nchecks,
                         SCHEMA_CHECKS_MAX);
    return check_columns(s, fault) && check_key(s, fault) && check_indexes(s, fault) &&
           check_hashes(s, fault);
}

bool schema_check(struct schema *s, struct fault *fault)
{
    if (!schema_fits(s, fault))
        return false;
    for (size_t i = 0; i < s->ncolumns; i++)
        if (is_reserved(s->columns[i].name))
            return fault_set(fault, FAULT_REFUSED,
                             "'%.*s' cannot be the name of a column: it has another meaning",
                             FAULT_CUT(s->columns[i].name));
    struct buf json = {0};
    schema_encode(s, &json);
    size_t n = json.len;
    buf_release(&json);
    return n <= SCHEMA_BYTES_MAX ||
           fault_set(fault, FAULT_TOO_LONG, "the table's description has %zu bytes, at most %d", n,
                     SCHEMA_BYTES_MAX);
}
