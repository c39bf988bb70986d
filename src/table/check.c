#include "table/check.h"

#include <sqlite3.h>
#include <stdint.h>

#include "base/mem.h"
#include "table/bind.h"
#include "table/text/ddl.h"

/* Steps of SQLite's machine that one expression may take: more than any without loops needs. */
#define STEPS_MAX 1000000

struct check {
    sqlite3_stmt *stmt;
    uint16_t *columns; /* that it names, by place: its parameters */
    size_t ncolumns;
};

struct checks {
    sqlite3 *db;
    const struct schema *s;
    struct check *items; /* one for each of the schema's */
    int selects;         /* that the expression being compiled may still have */
    char refused[64];    /* what it asked for and may not have: "the function random" */
};

/* ---- what an expression may do ---- */

/* Nothing that depends on more than its arguments, and nothing whose work is more than their length: instr
   and replace look for one text in another at every place, printf and zeroblob make texts of any length. */
static bool is_allowed(const char *function)
{
    static const char *const names[] = {"abs",          "char",      "coalesce",   "glob",
                                        "hex",          "ifnull",    "iif",        "json_array_length",
                                        "json_extract", "json_type", "json_valid", "length",
                                        "like",         "lower",     "ltrim",      "max",
                                        "min",          "nullif",    "round",      "rtrim",
                                        "substr",       "substring", "trim",       "typeof",
                                        "unicode",      "upper",     "->",         "->>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sqlite3_stricmp(function, names[i]) == 0)
            return true;
    return false;
}

/* Everything is refused that is not named here. SQLite asks no leave for the columns of a subquery in FROM,
   as ours is; what it asks leave to read is a real table. */
static int authorize(void *arg, int action, const char *a, const char *b, const char *db, const char *trigger)
{
    struct checks *c = arg;
    (void)a, (void)db, (void)trigger;
    const char *what = "another table";
    if (action == SQLITE_SELECT) {
        if (c->selects-- > 0)
            return SQLITE_OK;
        what = "a subquery";
    } else if (action == SQLITE_FUNCTION) {
        if (is_allowed(b))
            return SQLITE_OK;
        what = b;
    }
    sqlite3_snprintf((int)sizeof c->refused, c->refused, "%s%.40s",
                     action == SQLITE_FUNCTION ? "function " : "", what);
    return SQLITE_DENY;
}

static int out_of_steps(void *arg)
{
    (void)arg;
    return 1;
}

/* trim(text, characters) looks at all of them for each place of the text. */
static void refuse_trim(sqlite3_context *ctx, int n, sqlite3_value **args)
{
    (void)n, (void)args;
    sqlite3_result_error(ctx, "trim takes one argument", -1);
}

static bool open_engine(struct checks *c)
{
    static const char *const trims[] = {"trim", "ltrim", "rtrim"};
    static const struct {
        int id, value;
    } limits[] = {{SQLITE_LIMIT_LENGTH, 2 * CHECK_BYTES_MAX},
                  {SQLITE_LIMIT_SQL_LENGTH, 4 * SCHEMA_BYTES_MAX},
                  {SQLITE_LIMIT_EXPR_DEPTH, 200},
                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256},
                  {SQLITE_LIMIT_FUNCTION_ARG, 32},
                  {SQLITE_LIMIT_ATTACHED, 0},
                  {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
                  {SQLITE_LIMIT_WORKER_THREADS, 0}};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    if (sqlite3_open_v2(":memory:", &c->db, flags, NULL) != SQLITE_OK)
        return false;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        sqlite3_limit(c->db, limits[i].id, limits[i].value);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_LOOKASIDE, NULL, 0, 0);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL); /* "x" is a column, never a text */
    for (size_t i = 0; i < sizeof trims / sizeof *trims; i++)
        if (sqlite3_create_function_v2(c->db, trims[i], 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
                                       refuse_trim, NULL, NULL, NULL) != SQLITE_OK)
            return false;
    sqlite3_progress_handler(c->db, STEPS_MAX, out_of_steps, NULL);
    return sqlite3_set_authorizer(c->db, authorize, c) == SQLITE_OK;
}

/* ---- compiling ---- */

/* The type that gives a parameter the affinity of its column. */
static const char *affinity(enum column_type t)
{
    switch (t) {
    case COLUMN_REAL:
        return "REAL";
    case COLUMN_TEXT:
    case COLUMN_JSON:
        return "TEXT";
    case COLUMN_BLOB:
        return "BLOB";
    default:
        return "INTEGER";
    }
}

/* SELECT (expression) FROM (SELECT CAST(?1 AS INTEGER) AS "age", ...): the columns that it names. False: it
   is no expression. */
static bool write_statement(const struct schema *s, struct slice expression, struct check *ret,
                            struct buf *out)
{
    bool *used = mem_alloc(s->ncolumns * sizeof *used);
    bool ok = ddl_uses(expression, s, used);
    ret->columns = mem_alloc(s->ncolumns * sizeof *ret->columns);
    buf_addf(out, "SELECT (");
    buf_add_slice(out, expression);
    buf_addf(out, ")");
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *column = &s->columns[i];
        if (!used[i])
            continue;
        ret->columns[ret->ncolumns++] = (uint16_t)i;
        buf_addf(out, "%sCAST(?%zu AS %s) AS \"%.*s\"", ret->ncolumns == 1 ? " FROM (SELECT " : ", ",
                 ret->ncolumns, affinity(column->type), (int)column->name.n, column->name.p);
    }
    if (ret->ncolumns)
        buf_addf(out, ")");
    mem_free(used);
    return ok;
}

static bool compile(struct checks *c, struct slice expression, struct check *ret, struct fault *fault)
{
    struct buf sql = {0};
    const char *tail = NULL;
    bool sound = write_statement(c->s, expression, ret, &sql);
    c->selects = ret->ncolumns ? 2 : 1;
    c->refused[0] = '\0';
    int rc = sqlite3_prepare_v3(c->db, sql.p, (int)sql.len, SQLITE_PREPARE_PERSISTENT, &ret->stmt, &tail);
    bool whole = sound && rc == SQLITE_OK && tail == sql.p + sql.len &&
                 sqlite3_column_count(ret->stmt) == 1 &&
                 sqlite3_bind_parameter_count(ret->stmt) == (int)ret->ncolumns;
    buf_release(&sql);
    if (whole)
        return true;
    if (c->refused[0])
        return fault_set(fault, FAULT_SYNTAX, "CHECK (%.*s) cannot use %s", FAULT_CUT(expression),
                         c->refused);
    return fault_set(fault, FAULT_SYNTAX, "CHECK (%.*s): %s", FAULT_CUT(expression),
                     rc == SQLITE_OK ? "it is no expression" : sqlite3_errmsg(c->db));
}

struct checks *checks_new(const struct schema *s, struct fault *fault)
{
    if (!s->nchecks)
        return NULL;
    struct checks *c = mem_zalloc(sizeof *c);
    c->s = s;
    c->items = mem_zalloc(s->nchecks * sizeof *c->items);
    bool ok = open_engine(c);
    if (!ok)
        fault_set(fault, FAULT_REFUSED, "CHECK cannot be computed: %s", sqlite3_errmsg(c->db));
    for (size_t i = 0; ok && i < s->nchecks; i++)
        ok = compile(c, s->checks[i], &c->items[i], fault);
    if (ok)
        return c;
    checks_free(c);
    return NULL;
}

void checks_free(struct checks *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->s->nchecks; i++) {
        sqlite3_finalize(c->items[i].stmt);
        mem_free(c->items[i].columns);
    }
    sqlite3_close(c->db);
    mem_free(c->items);
    mem_free(c);
}

/* ---- running ---- */

static bool bind_row(const struct checks *c, const struct check *item, const struct value *values,
                     struct fault *fault)
{
    for (size_t i = 0; i < item->ncolumns; i++) {
        const struct value *v = &values[item->columns[i]];
        bool bytes = v->kind == VALUE_TEXT || v->kind == VALUE_BLOB;
        struct slice name = c->s->columns[item->columns[i]].name;
        if (bytes && v->s.n > CHECK_BYTES_MAX)
            return fault_set(fault, FAULT_TOO_LONG,
                             "column %.*s has %zu bytes, a CHECK looks at no more than %d", FAULT_CUT(name),
                             v->s.n, CHECK_BYTES_MAX);
        if (value_bind(item->stmt, (int)i + 1, v) != SQLITE_OK)
            return fault_set(fault, FAULT_CONSTRAINT, "column %.*s: %s", FAULT_CUT(name),
                             sqlite3_errmsg(c->db));
    }
    return true;
}

static bool run(const struct checks *c, size_t which, const struct value *values, struct fault *fault)
{
    const struct check *item = &c->items[which];
    struct slice text = c->s->checks[which];
    if (!bind_row(c, item, values, fault))
        return false;
    if (sqlite3_step(item->stmt) != SQLITE_ROW)
        return fault_set(fault, FAULT_CONSTRAINT, "CHECK (%.*s) cannot be computed: %s", FAULT_CUT(text),
                         sqlite3_errmsg(c->db));
    if (sqlite3_column_type(item->stmt, 0) == SQLITE_NULL || sqlite3_column_double(item->stmt, 0) != 0)
        return true;
    return fault_set(fault, FAULT_CONSTRAINT, "CHECK (%.*s) failed", FAULT_CUT(text));
}

bool checks_run(struct checks *c, const struct value *values, struct fault *fault)
{
    bool ok = true;
    for (size_t i = 0; c && ok && i < c->s->nchecks; i++) {
        ok = run(c, i, values, fault);
        /* The values are the caller's and go: nothing may point at them. */
        sqlite3_reset(c->items[i].stmt);
        sqlite3_clear_bindings(c->items[i].stmt);
    }
    return ok;
}
