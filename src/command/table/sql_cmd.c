/* SQL text [arg ...]: statements of SQL over the tables of the selected database and the keys of all.

   It reads what its statements need, row by row, and writes rows of tables with their entries, as ROW.PUT and
   ROW.DEL do. A crash leaves all of it or nothing; two clients' texts run one after the other. What is
   expired is not there. On the loop it is short: see query.h. A text that only reads and is not short goes on
   on a thread, and its client waits: see query/threads.h. */
#include "command/families.h"
#include "command/table/sql_run.h"
#include "command/table/table_common.h"
#include "proto/json.h"

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

static bool may_write(const struct slice *argv, int argc)
{
    return argc > 1 && query_may_write(argv[1]);
}

/* ---- elsewhere ---- */

static enum status answer_on_thread(struct query_engine *e, struct query *q, struct reply *reply,
                                    struct buf *out, struct query_result *ret)
{
    struct sql_reply r = {.reply = reply, .start = reply->ops->mark(reply)};
    const struct query_sink sink = {.begin = sink_begin, .row = sink_row, .arg = &r};
    (void)out;
    struct query told = *q;
    told.sink = &sink;
    enum status st = query_run(e, &told, ret);
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

static enum status answer(struct call *c, const struct query *q, struct sql_reply *r,
                          const struct query_result *result)
{
    struct fault fault = {0};
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
        if (!sql_move(c, q, answer_on_thread, &fault))
            reply_fault(r->reply, &fault);
        break;
    }
    return ST_OK;
}

static enum status sql(struct call *c)
{
    struct sql_reply r = {.reply = c->reply, .start = c->reply->ops->mark(c->reply)};
    struct query_sink sink = {.begin = sink_begin, .row = sink_row, .arg = &r};
    struct query_result result;
    struct query_taken taken;
    if (query_take(c, &taken))
        return answer_taken(c, &taken);
    if (may_write(c->argv, c->argc) && c->write_err && c->write_err->code != ST_OK) {
        reply_status(c->reply, c->write_err->code, c->write_err);
        return ST_OK;
    }
    struct value *args = arena_alloc(c->arena, (size_t)c->argc * sizeof *args);
    for (int i = 2; i < c->argc; i++)
        args[i - 2] = argument(c->argv[i]);
    struct query q = {.text = c->argv[1], .args = args, .nargs = (size_t)c->argc - 2, .sink = &sink};
    enum status st = sql_run(c, &q, &result);
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
