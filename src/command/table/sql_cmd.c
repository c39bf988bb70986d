/* SQL text [arg ...]: statements of SQL over the tables of the selected database and the keys of all.

   It reads what its statements need, row by row, and writes rows of tables with their entries, as ROW.PUT and
   ROW.DEL do. A crash leaves all of it or nothing; two clients' texts run one after the other. What is
   expired is not there. On the loop it is short: see query.h. A text that only reads and is not short goes on
   on a thread, and its client waits: see query/threads.h. */
#include "base/clock.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "engine/engine.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "proto/json.h"
#include "query/move.h"

#define LOOP_STEPS  1000000  /* of SQLite's machine: some 20 ms */
#define WRITE_STEPS 20000000 /* of a text that writes, which cannot run elsewhere */

static struct query_engine *call_query(const struct call *c)
{
    if (!c->executor->query)
        c->executor->query = query_engine_new();
    return c->executor->query;
}

/* ---- the reply ---- */

struct sql_reply {
    struct reply *reply;
    size_t start; /* of the reply, for a result that is void */
    size_t rows;  /* mark of the list */
    size_t nrows;
    bool begun;
};

static void begin_reply(struct sql_reply *r, const struct query_column *columns, size_t n)
{
    r->reply->ops->rewind(r->reply, r->start);
    reply_map(r->reply, 3);
    reply_bulk_str(r->reply, "columns");
    reply_array(r->reply, n);
    for (size_t i = 0; i < n; i++)
        reply_bulk(r->reply, columns[i].name);
    reply_bulk_str(r->reply, "rows");
    r->rows = reply_begin_deferred(r->reply);
    r->nrows = 0;
    r->begun = true;
}

static void sink_begin(void *arg, const struct query_column *columns, size_t n)
{
    begin_reply(arg, columns, n);
}

static void sink_row(void *arg, const struct value *values, size_t n)
{
    struct sql_reply *r = arg;
    reply_array(r->reply, n);
    for (size_t i = 0; i < n; i++)
        reply_value(r->reply, &values[i]);
    r->nrows++;
}

static void end_reply(struct sql_reply *r, int64_t changes)
{
    if (!r->begun)
        begin_reply(r, NULL, 0);
    reply_end_deferred(r->reply, r->rows, REPLY_ARRAY, r->nrows);
    reply_bulk_str(r->reply, "changes");
    reply_integer(r->reply, changes);
}

/* ---- the command ---- */

/* Text where it is, so that numbers in it are numbers to SQL where they are compared with such. */
static struct value argument(struct slice s)
{
    size_t i = 0, n = 1;
    for (; i < s.n && n; i += n)
        n = utf8_length(s.p + i, s.n - i);
    return (struct value){.kind = n ? VALUE_TEXT : VALUE_BLOB, .s = s};
}

static struct query_limits limits_of(const struct call *c, bool writes)
{
    const struct config *config = c->executor->config;
    return (struct query_limits){.on_loop = true,
                                 .may_write = writes,
                                 .rows = (uint64_t)config->sql_inline_rows,
                                 .steps = writes ? WRITE_STEPS : LOOP_STEPS,
                                 .result_bytes = config->sql_max_result,
                                 .write_rows = (uint64_t)config->sql_write_rows,
                                 .memory = config->sql_memory,
                                 .deadline_us = clock_mono_us() + (int64_t)config->sql_timeout_ms * 1000};
}

static bool may_write(const struct slice *argv, int argc)
{
    return argc > 1 && query_may_write(argv[1]);
}

/* What a text has done before its fault is taken back, and nothing else of a script or an EXEC that it is a
   part of. Where those have marked their own beginning, all of it has to fail. */
static enum status take_back(struct call *c, bool marked)
{
    if (marked)
        return engine_undo_to_mark(c->executor->engine);
    return error_set(c->err, ST_INVALID, "a text of SQL failed after it had written");
}

/* ---- elsewhere ---- */

static enum status answer_on_thread(struct query_engine *e, struct query *q, struct reply *reply,
                                    struct buf *out, struct query_result *ret)
{
    struct sql_reply r = {.reply = reply, .start = reply->ops->mark(reply)};
    const struct query_sink sink = {.begin = sink_begin, .row = sink_row, .arg = &r};
    (void)out;
    q->sink = &sink;
    enum status st = query_run(e, q, ret);
    if (st == ST_OK && ret->outcome == QUERY_DONE)
        end_reply(&r, ret->changes);
    return st;
}

static enum status answer_taken(struct call *c, const struct query_taken *t)
{
    if (t->status == ST_OK && t->error)
        reply_error(c->reply, t->error);
    else if (t->status == ST_OK && t->fault)
        reply_fault(c->reply, t->fault);
    else if (t->status == ST_OK)
        reply_made(c->reply, t->made);
    return t->status;
}

static void move(struct call *c, const struct query *q)
{
    if (query_can_move(c))
        query_move(c, q, answer_on_thread);
    else
        reply_error(c->reply, "SQL the query takes too long to run in a transaction, a script or a batch");
}

static enum status answer(struct call *c, const struct query *q, struct sql_reply *r,
                          const struct query_result *result)
{
    switch (result->outcome) {
    case QUERY_DONE:
        c->executor->builds_asked |= result->builds;
        end_reply(r, result->changes);
        break;
    case QUERY_FAULT:
        r->reply->ops->rewind(r->reply, r->start);
        reply_fault(r->reply, &result->fault);
        break;
    case QUERY_MOVE:
        r->reply->ops->rewind(r->reply, r->start);
        move(c, q);
        break;
    }
    return ST_OK;
}

static enum status sql(struct call *c)
{
    struct sql_reply r = {.reply = c->reply, .start = c->reply->ops->mark(c->reply)};
    struct query_sink sink = {.begin = sink_begin, .row = sink_row, .arg = &r};
    struct query_engine *e = call_query(c);
    struct query_result result;
    struct query_taken taken;
    bool writes = may_write(c->argv, c->argc);
    if (query_take(c, &taken))
        return answer_taken(c, &taken);
    if (!e) {
        reply_error(c->reply, "SQL there is no memory for a query");
        return ST_OK;
    }
    if (writes && c->write_err && c->write_err->code != ST_OK) {
        reply_status(c->reply, c->write_err->code, c->write_err);
        return ST_OK;
    }
    struct value *args = arena_alloc(c->arena, (size_t)c->argc * sizeof *args);
    for (int i = 2; i < c->argc; i++)
        args[i - 2] = argument(c->argv[i]);
    struct query q = {.catalog = call_catalog(c),
                      .view = c->view,
                      .db = call_db(c),
                      .text = c->argv[1],
                      .args = args,
                      .nargs = (size_t)c->argc - 2,
                      .limits = limits_of(c, writes),
                      .sink = &sink};
    bool marks = writes && !engine_is_marked(c->executor->engine);
    if (marks)
        engine_mark(c->executor->engine);
    enum status st = query_run(e, &q, &result);
    if (st == ST_OK && result.outcome != QUERY_DONE && result.wrote)
        st = take_back(c, marks);
    else if (st == ST_OK && marks)
        engine_forget_mark(c->executor->engine);
    return st == ST_OK ? answer(c, &q, &r, &result) : st;
}

const struct command sql_commands[] = {
    {.name = "sql",
     .fn = sql,
     .arity = -2,
     .categories = CAT_READ | CAT_WRITE | CAT_SLOW,
     .summary = "Runs statements of SQL over tables and keys.",
     .since = "0.1.0",
     .group = "table",
     .complexity = "As its statements: an index or a key that they name makes it O(N) in the rows found.",
     .may_write = may_write},
    {.name = NULL},
};
