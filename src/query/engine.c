#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "query/query_internal.h"

/* ---- limits ---- */

static bool stop(struct query_engine *e, enum query_stop why)
{
    if (e->stop == STOP_NONE)
        e->stop = why;
    return false;
}

/* What is too much for the loop moves, unless it writes. */
static bool too_much(struct query_engine *e)
{
    return stop(e, e->q->limits.on_loop && !e->writing ? STOP_MOVE : STOP_ROWS);
}

bool query_tick(struct query_engine *e, uint64_t n)
{
    const struct query_limits *l = &e->q->limits;
    e->steps += n;
    if (l->cancel && atomic_load_explicit(l->cancel, memory_order_relaxed))
        return stop(e, STOP_CANCEL);
    if (l->steps && e->steps > l->steps)
        return too_much(e);
    if (l->deadline_us && clock_mono_us() > l->deadline_us)
        return stop(e, STOP_TIMEOUT);
    return e->stop == STOP_NONE;
}

bool query_count_rows(struct query_engine *e, uint64_t n)
{
    const struct query_limits *l = &e->q->limits;
    e->ret->rows_read += n;
    if (l->cancel && atomic_load_explicit(l->cancel, memory_order_relaxed))
        return stop(e, STOP_CANCEL);
    return e->rows_max && e->ret->rows_read > e->rows_max ? too_much(e) : true;
}

static int progress(void *arg)
{
    struct query_engine *e = arg;
    return e->q && !query_tick(e, PROGRESS_STEPS);
}

struct memory_budget *query_leave(struct query_engine *e)
{
    struct memory_budget *was = memory_count(NULL);
    if (e->q && e->q->rest)
        e->q->rest(e->q->rest_arg);
    return was;
}

int query_return(struct query_engine *e, struct memory_budget *was, enum status st)
{
    (void)memory_count(was);
    if (st != ST_OK && e->status == ST_OK)
        e->status = st;
    if (e->status != ST_OK || e->fault.kind != FAULT_NONE)
        return SQLITE_ERROR;
    return e->stop == STOP_NONE ? SQLITE_OK : SQLITE_INTERRUPT;
}

int query_refuse(struct query_engine *e, enum fault_kind kind, const char *fmt, ...)
{
    char text[FAULT_CHARS];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)fault_set(&e->fault, kind, "%s", text);
    return SQLITE_ERROR;
}

/* ---- an engine ---- */

static void set_limits(sqlite3 *db)
{
    static const struct {
        int id, value;
    } limits[] = {
        {SQLITE_LIMIT_LENGTH, THREAD_LENGTH},
        {SQLITE_LIMIT_SQL_LENGTH, QUERY_TEXT_MAX},
        {SQLITE_LIMIT_COLUMN, SCHEMA_COLUMNS_MAX + 3},
        {SQLITE_LIMIT_EXPR_DEPTH, 200},
        {SQLITE_LIMIT_COMPOUND_SELECT, 100},
        {SQLITE_LIMIT_VDBE_OP, 250000},
        {SQLITE_LIMIT_FUNCTION_ARG, SQLITE_ARGS_MAX},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10000},
        {SQLITE_LIMIT_VARIABLE_NUMBER, QUERY_ARGS_MAX},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        (void)sqlite3_limit(db, limits[i].id, limits[i].value);
}

static int configure(struct query_engine *e)
{
    static const int off[] = {
        SQLITE_DBCONFIG_DQS_DML,        SQLITE_DBCONFIG_DQS_DDL,     SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
        SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW, SQLITE_DBCONFIG_TRUSTED_SCHEMA};
    int rc = sqlite3_db_config(e->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof off / sizeof *off; i++)
        rc = sqlite3_db_config(e->db, off[i], 0, NULL);
    if (rc == SQLITE_OK) /* nothing of a query ever goes to a file */
        rc = sqlite3_exec(e->db, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = functions_register(e);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_module(e->db, "larder_table", &table_module, e);
    if (rc == SQLITE_OK)
        rc = redis_register(e);
    if (rc == SQLITE_OK)
        rc = listing_register(e);
    if (rc == SQLITE_OK) /* SQLite makes these when they are first named, and asks the guard then */
        rc = sqlite3_exec(e->db, "SELECT 1 FROM json_each('1'), json_tree('1')", NULL, NULL, NULL);
    set_limits(e->db);
    sqlite3_progress_handler(e->db, PROGRESS_STEPS, progress, e);
    return rc == SQLITE_OK ? sqlite3_set_authorizer(e->db, guard_authorize, e) : rc;
}

struct query_engine *query_engine_new(void)
{
    struct query_engine *e = mem_zalloc(sizeof *e);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(":memory:", &e->db, flags, NULL) == SQLITE_OK && configure(e) == SQLITE_OK)
        return e;
    query_engine_free(e);
    return NULL;
}

void query_engine_free(struct query_engine *e)
{
    if (!e)
        return;
    for (size_t i = 0; i < CACHE_STATEMENTS; i++)
        statement_release(&e->cache[i]);
    e->internal = true;
    (void)sqlite3_close_v2(e->db);
    (void)sqlite3_finalize(e->printf);
    (void)sqlite3_close_v2(e->plain);
    write_release(e);
    arena_release(&e->arena);
    mem_free(e->tables);
    mem_free(e);
}

size_t query_engine_bytes(const struct query_engine *e)
{
    return e ? sizeof *e + (size_t)e->kept_bytes : 0;
}
