/* A text from its first statement to its last. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "query/text.h"
#include "query/query_internal.h"
#include "table/bind.h"

#define WRITER_ROWS     10   /* rows that a text may read for each that it may write */
#define STATEMENT_STEPS 1000 /* what a statement counts for before it begins */
#define CELL_BYTES      16   /* what a value of the result counts for beside its bytes */

static bool goes_on(const struct query_engine *e)
{
    return e->status == ST_OK && e->stop == STOP_NONE && e->fault.kind == FAULT_NONE;
}

/* ---- the result ---- */

static void describe_column(sqlite3_stmt *stmt, int i, struct query_column *ret)
{
    const char *name = sqlite3_column_name(stmt, i), *type = sqlite3_column_decltype(stmt, i);
    *ret = (struct query_column){.name = slice_str(name ? name : "")};
    if (type && strcasecmp(type, "JSON TEXT") == 0) {
        ret->typed = true;
        ret->type = COLUMN_JSON;
    } else if (type) {
        ret->typed = column_type_find(slice_str(type), &ret->type);
    }
}

static struct query_column *begin_result(struct query_engine *e, sqlite3_stmt *stmt, int n)
{
    struct query_column *columns = arena_alloc(&e->arena, (size_t)n * sizeof *columns);
    for (int i = 0; i < n; i++)
        describe_column(stmt, i, &columns[i]);
    e->result_bytes = 0;
    e->q->sink->begin(e->q->sink->arg, columns, (size_t)n);
    return columns;
}

static bool hand_row(struct query_engine *e, sqlite3_stmt *stmt, const struct query_column *columns,
                     struct value *values, int n)
{
    for (int i = 0; i < n; i++) {
        values[i] = value_from_sqlite(sqlite3_column_value(stmt, i), NULL);
        e->result_bytes += CELL_BYTES;
        if (values[i].kind == VALUE_TEXT || values[i].kind == VALUE_BLOB)
            e->result_bytes += values[i].s.n;
        else if (values[i].kind == VALUE_INT && columns[i].typed && columns[i].type == COLUMN_BOOLEAN)
            values[i].kind = VALUE_BOOL;
    }
    if (e->result_bytes > e->q->limits.result_bytes) {
        e->stop = STOP_RESULT;
        return false;
    }
    e->q->sink->row(e->q->sink->arg, values, (size_t)n);
    return true;
}

/* ---- one statement ---- */

/* Each statement takes its arguments off the front of what is left. */
static bool bind(struct query_engine *e, sqlite3_stmt *stmt, size_t *used)
{
    int n = sqlite3_bind_parameter_count(stmt);
    if ((size_t)n > e->q->nargs - *used)
        return fault_set(&e->fault, FAULT_SQL, "the text has more parameters than the %zu arguments given",
                         e->q->nargs);
    for (int i = 1; i <= n; i++) {
        int rc = value_bind(stmt, i, &e->q->args[*used + (size_t)i - 1]);
        if (rc != SQLITE_OK) {
            statement_failed(e, rc);
            return false;
        }
    }
    *used += (size_t)n;
    return true;
}

static void step(struct query_engine *e, struct statement *s)
{
    int n = sqlite3_column_count(s->stmt), rc;
    struct query_column *columns = n ? begin_result(e, s->stmt, n) : NULL;
    struct value *values = arena_alloc(&e->arena, (size_t)(n + 1) * sizeof *values);
    while ((rc = sqlite3_step(s->stmt)) == SQLITE_ROW)
        if (!hand_row(e, s->stmt, columns, values, n))
            return;
    if (rc != SQLITE_DONE && !e->restart)
        statement_failed(e, rc);
}

static bool may_run(struct query_engine *e, const struct statement *s)
{
    const struct query_limits *l = &e->q->limits;
    int explains = sqlite3_stmt_isexplain(s->stmt);
    if (explains == 1) /* it would tell addresses of memory */
        return fault_set(&e->fault, FAULT_SQL, "EXPLAIN is not allowed, EXPLAIN QUERY PLAN is");
    if (s->writes && !explains && !e->writing)
        return fault_set(&e->fault, FAULT_SQL, "a statement that writes is not allowed here");
    if (s->off_loop && l->on_loop && !e->writing) {
        e->stop = STOP_MOVE;
        return false;
    }
    return true;
}

/* Runs the statement at the front of *text, of so many bytes, and takes it off. SQLite copies what it is
   given: so it gets no more than that. */
static void run_statement(struct query_engine *e, struct slice *text, size_t n, size_t *used)
{
    struct statement spare = {0};
    size_t used_before = *used;
    e->restart = false;
    e->statement_text = slice_of(text->p, n);
    struct statement *s = statement_get(e, e->statement_text, &spare);
    if (!s || !s->stmt) {
        text->n = 0; /* a failure, or nothing but a comment */
        return;
    }
    size_t length = s->length;
    e->statement_text.n = length;
    if (may_run(e, s) && bind(e, s->stmt, used))
        step(e, s);
    statement_done(e, s);
    if (e->restart && !e->lax) {
        e->lax = true;
        *used = used_before;
        write_forget(e);
        run_statement(e, text, n, used);
        return;
    }
    if (goes_on(e) && e->nchanges) {
        struct memory_budget *was = query_leave(e);
        (void)query_return(e, was, write_apply(e));
    }
    *text = slice_of(text->p + length, text->n - length);
}

static void run_text(struct query_engine *e)
{
    struct slice text = text_skip(e->q->text), rest;
    size_t used = 0;
    enum status st = ST_OK;
    while (text.n && goes_on(e) && query_tick(e, STATEMENT_STEPS)) {
        e->clock++;
        e->lax = false;
        arena_reset(&e->arena);
        write_forget(e);
        switch (text_statement(text, &rest)) {
        case TEXT_READS:
        case TEXT_WRITES:
            run_statement(e, &text, text.n - rest.n, &used);
            break;
        case TEXT_DEFINES:
            st = define_run(e, &text);
            break;
        case TEXT_TRANSACTS:
            (void)fault_set(&e->fault, FAULT_SQL,
                            "transactions are not allowed: the statements of a text are one");
            break;
        case TEXT_UNKNOWN:
            rest = text;
            rest = text_next(&rest).text;
            (void)fault_set(&e->fault, FAULT_SQL, "a statement that begins with %.*s is not allowed",
                            FAULT_CUT(rest));
            break;
        case TEXT_EMPTY:
            text.n = 0;
        }
        if (st != ST_OK && e->status == ST_OK)
            e->status = st;
        text = text_skip(text);
    }
    if (goes_on(e) && used < e->q->nargs)
        (void)fault_set(&e->fault, FAULT_SQL, "the text has %zu parameters, and %zu arguments are given",
                        used, e->q->nargs);
}

/* ---- a text ---- */

static bool check(const struct query *q, struct fault *fault)
{
    if (q->text.n > QUERY_TEXT_MAX)
        return fault_set(fault, FAULT_SQL, "the text has more than %d bytes", QUERY_TEXT_MAX);
    if (q->nargs > QUERY_ARGS_MAX)
        return fault_set(fault, FAULT_SQL, "there are more than %d arguments", QUERY_ARGS_MAX);
    if (q->text.n && memchr(q->text.p, 0, q->text.n))
        return fault_set(fault, FAULT_SQL, "the text has a NUL in it");
    return true;
}

static void explain_stop(struct query_engine *e, struct query_result *ret)
{
    switch (e->stop) {
    case STOP_NONE:
    case STOP_MOVE:
        break;
    case STOP_ROWS:
        (void)fault_set(&ret->fault, FAULT_SQL, "the text reads or computes too much for one that writes");
        break;
    case STOP_TIMEOUT:
        (void)fault_set(&ret->fault, FAULT_TIMEOUT, "the query has taken longer than sql-timeout");
        break;
    case STOP_CANCEL:
        (void)fault_set(&ret->fault, FAULT_CANCELLED, "the query was cancelled");
        break;
    case STOP_RESULT:
        (void)fault_set(&ret->fault, FAULT_TOO_LARGE, "the result is larger than sql-max-result");
        break;
    }
}

static void begin(struct query_engine *e, const struct query *q, struct query_result *ret)
{
    e->q = q;
    e->ret = ret;
    e->status = ST_OK;
    e->stop = STOP_NONE;
    e->fault = (struct fault){0};
    e->steps = e->result_bytes = e->written = 0;
    e->writing = q->limits.may_write && query_may_write(q->text);
    e->rows_max = e->writing ? q->limits.write_rows * WRITER_ROWS : q->limits.rows;
    e->budget = (struct memory_budget){.max = (int64_t)q->limits.memory};
    (void)sqlite3_limit(e->db, SQLITE_LIMIT_LENGTH, q->limits.on_loop ? LOOP_LENGTH : THREAD_LENGTH);
}

enum status query_run(struct query_engine *e, const struct query *q, struct query_result *ret)
{
    *ret = (struct query_result){.outcome = QUERY_DONE};
    if (!check(q, &ret->fault)) {
        ret->outcome = QUERY_FAULT;
        return ST_OK;
    }
    begin(e, q, ret);
    struct memory_budget *was = memory_count(&e->budget);
    run_text(e);
    (void)memory_count(was);
    e->kept_bytes += e->budget.used;
    write_forget(e);
    arena_reset(&e->arena);
    e->q = NULL;
    if (e->fault.kind != FAULT_NONE)
        ret->fault = e->fault;
    else
        explain_stop(e, ret);
    if (ret->fault.kind != FAULT_NONE)
        ret->outcome = QUERY_FAULT;
    else if (e->stop == STOP_MOVE)
        ret->outcome = QUERY_MOVE;
    return e->status;
}
