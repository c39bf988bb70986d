/* What a text may do, asked while SQLite prepares it. Nothing is allowed that is not named here. */
#include <string.h>
#include <strings.h>

#include "query/query_internal.h"

struct allowed {
    const char *name;
    bool on_loop; /* its time is in proportion to its arguments, or it counts its steps */
};

/* In the order of names. */
static const struct allowed functions[] = {
    {"->", true},
    {"->>", true},
    {"abs", true},
    {"acos", true},
    {"acosh", true},
    {"asin", true},
    {"asinh", true},
    {"atan", true},
    {"atan2", true},
    {"atanh", true},
    {"avg", true},
    {"ceil", true},
    {"ceiling", true},
    {"changes", false},
    {"char", true},
    {"coalesce", true},
    {"cos", true},
    {"cosh", true},
    {"count", true},
    {"cume_dist", true},
    {"current_date", true},
    {"current_time", true},
    {"current_timestamp", true},
    {"date", true},
    {"datetime", true},
    {"degrees", true},
    {"dense_rank", true},
    {"exp", true},
    {"first_value", true},
    {"floor", true},
    {"format", true},
    {"glob", true},
    {"group_concat", true},
    {"hex", true},
    {"ifnull", true},
    {"iif", true},
    {"instr", true},
    {"json", true},
    {"json_array", true},
    {"json_array_length", true},
    {"json_extract", true},
    {"json_group_array", true},
    {"json_group_object", true},
    {"json_insert", true},
    {"json_object", true},
    {"json_patch", true},
    {"json_quote", true},
    {"json_remove", true},
    {"json_replace", true},
    {"json_set", true},
    {"json_type", true},
    {"json_valid", true},
    {"julianday", true},
    {"lag", true},
    {"last_value", true},
    {"lead", true},
    {"length", true},
    {"like", true},
    {"likelihood", true},
    {"likely", true},
    {"ln", true},
    {"log", true},
    {"log10", true},
    {"log2", true},
    {"lower", true},
    {"ltrim", true},
    {"max", true},
    {"min", true},
    {"mod", true},
    {"nth_value", true},
    {"ntile", true},
    {"nullif", true},
    {"percent_rank", true},
    {"pi", true},
    {"pow", true},
    {"power", true},
    {"printf", true},
    {"quote", true},
    {"radians", true},
    {"random", true},
    {"randomblob", false},
    {"rank", true},
    {"replace", true},
    {"round", true},
    {"row_number", true},
    {"rtrim", true},
    {"sign", true},
    {"sin", true},
    {"sinh", true},
    {"sqlite_version", true},
    {"sqrt", true},
    {"strftime", true},
    {"substr", true},
    {"substring", true},
    {"sum", true},
    {"tan", true},
    {"tanh", true},
    {"time", true},
    {"total", true},
    {"trim", true},
    {"trunc", true},
    {"typeof", true},
    {"unicode", true},
    {"unixepoch", true},
    {"unlikely", true},
    {"upper", true},
    {"zeroblob", false},
};

static int refuse(struct query_engine *e, const char *what)
{
    (void)fault_set(&e->fault, FAULT_SQL, "%s is not allowed", what);
    return SQLITE_DENY;
}

static int function(struct query_engine *e, const char *name)
{
    size_t low = 0, high = sizeof functions / sizeof *functions;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int c = strcasecmp(name, functions[mid].name);
        if (c == 0) {
            e->preparing->off_loop |= !functions[mid].on_loop;
            return SQLITE_OK;
        }
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    (void)fault_set(&e->fault, FAULT_SQL, "function %.60s() is not allowed", name);
    return SQLITE_DENY;
}

static bool begins(const char *name, const char *with)
{
    return strncasecmp(name, with, strlen(with)) == 0;
}

/* A table that has changed meanwhile: the statement is prepared once more when it has been declared anew. */
static int uses(struct query_engine *e, struct query_table *t)
{
    statement_uses(e->preparing, t->name);
    return declared_still(e, t) ? SQLITE_OK : SQLITE_DENY;
}

static int reads(struct query_engine *e, const char *table, const char *column)
{
    struct query_table *t = declared_table(e, table);
    if (t)
        return uses(e, t);
    if (redis_has(table) || listing_has(table))
        return SQLITE_OK;
    if (strcasecmp(table, "json_each") == 0 || strcasecmp(table, "json_tree") == 0) {
        e->preparing->off_loop = true;
        return SQLITE_OK;
    }
    /* A table of WITH, of which no column is used, comes by its name; so would SQLite's own. */
    if (!*column && !begins(table, "sqlite_") && !begins(table, "pragma_"))
        return SQLITE_OK;
    (void)fault_set(&e->fault, FAULT_NO_TABLE, "no such table: %.80s", table);
    return SQLITE_DENY;
}

static int writes(struct query_engine *e, const char *table)
{
    e->preparing->writes = true;
    struct query_table *t = declared_table(e, table);
    if (t)
        return uses(e, t);
    if (!redis_has(table) && !listing_has(table))
        return refuse(e, "writing to a table of SQLite");
    (void)fault_set(&e->fault, FAULT_SQL, "%.60s can only be read", table);
    return SQLITE_DENY;
}

/* Of SET. The version of a row, which is told as well when UPDATE ... FROM sets something else, is not for
 * it. */
static int sets(struct query_engine *e, const char *table, const char *column)
{
    int rc = writes(e, table);
    const struct query_table *t = rc == SQLITE_OK ? declared_table(e, table) : NULL;
    if (!t || !t->table || strcasecmp(column + strspn(column, "_"), "version") != 0 ||
        schema_column(&t->table->schema, slice_str(column)) >= 0)
        return rc;
    (void)fault_set(&e->fault, FAULT_SQL, "%.60s can only be read", column);
    return SQLITE_DENY;
}

int guard_authorize(void *arg, int action, const char *a, const char *b, const char *schema,
                    const char *trigger)
{
    struct query_engine *e = arg;
    (void)schema;
    (void)trigger;
    if (e->internal)
        return SQLITE_OK;
    if (!e->preparing)
        return refuse(e, "this statement");
    switch (action) {
    case SQLITE_SELECT:
        return SQLITE_OK;
    case SQLITE_READ:
        return reads(e, a, b);
    case SQLITE_FUNCTION:
        return function(e, b);
    case SQLITE_RECURSIVE:
        e->preparing->off_loop = true;
        return SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_DELETE:
        return writes(e, a);
    case SQLITE_UPDATE:
        return sets(e, a, b);
    case SQLITE_PRAGMA:
        return refuse(e, "PRAGMA");
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return refuse(e, "ATTACH");
    default:
        return refuse(e, "this statement");
    }
}
