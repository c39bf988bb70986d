#include "command/table/sql_run.h"

#include "base/clock.h"
#include "command/table/table_common.h"
#include "engine/engine.h"
#include "exec/args.h"
#include "exec/executor.h"

#define LOOP_STEPS  1000000  /* of SQLite's machine: some 20 ms */
#define WRITE_STEPS 20000000 /* of a text that writes, which cannot run elsewhere */

static struct query_engine *call_query(const struct call *c)
{
    if (!c->executor->query)
        c->executor->query = query_engine_new();
    return c->executor->query;
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

/* What a text has done before its fault is taken back, and nothing else of a script or an EXEC that it is a
   part of. Where those have marked their own beginning, all of it has to fail. */
static enum status take_back(struct call *c, bool marked, const struct fault *why)
{
    if (marked)
        return engine_undo_to_mark(c->executor->engine);
    return error_set(c->err, ST_INVALID, "a text of SQL failed after it had written: %s %s",
                     fault_code(why->kind), why->text);
}

enum status sql_run(struct call *c, struct query *q, struct query_result *ret)
{
    struct query_engine *e = call_query(c);
    bool writes = query_may_write(q->text);
    *ret = (struct query_result){.outcome = QUERY_FAULT};
    if (!e) {
        (void)fault_set(&ret->fault, FAULT_SQL, "there is no memory for a query");
        return ST_OK;
    }
    q->catalog = call_catalog(c);
    q->view = c->view;
    q->db = call_db(c);
    q->limits = limits_of(c, writes);
    bool marks = writes && !engine_is_marked(c->executor->engine);
    if (marks)
        engine_mark(c->executor->engine);
    enum status st = query_run(e, q, ret);
    if (st == ST_OK && ret->outcome != QUERY_DONE && view_wrote(c->view))
        return take_back(c, marks, &ret->fault);
    if (st == ST_OK && marks)
        engine_forget_mark(c->executor->engine);
    return st;
}

bool sql_move(struct call *c, const struct query *q, query_answer_fn *fn, struct fault *fault)
{
    if (query_can_move(c)) {
        query_move(c, q, fn);
        return true;
    }
    return fault_set(fault, FAULT_SQL,
                     "the query takes too long to run in a transaction, a script or a batch");
}
