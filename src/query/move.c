#include "query/move.h"

#include "base/arena.h"
#include "base/mem.h"
#include "exec/executor.h"
#include "proto/reply.h"
#include "table/catalog.h"

/* What a thread has for texts. */
struct tools {
    struct catalog *catalog;
    struct query_engine *engine;
};

struct text_job {
    struct query_job base; /* first */
    struct arena arena;    /* of what is copied */
    struct query query;
    query_answer_fn *fn;
    /* The thread's until it is over. */
    struct reply *twin;
    struct buf out;
    struct query_result result;
    /* For who takes it, if there is no result. */
    struct fault fault;
};

static void *open_tools(void)
{
    struct tools *t = mem_zalloc(sizeof *t);
    t->catalog = catalog_new();
    t->engine = query_engine_new();
    return t;
}

static void close_tools(void *arg)
{
    struct tools *t = arg;
    catalog_free(t->catalog);
    query_engine_free(t->engine);
    mem_free(t);
}

#define REST_EVERY 16

/* Between two reads of the view. */
struct rest {
    struct engine *engine;
    uint32_t reads;
};

static void rest(void *arg)
{
    struct rest *r = arg;
    if (++r->reads % REST_EVERY == 0)
        engine_step(r->engine);
}

static enum status run(struct query_job *base, void *arg, struct engine *engine, struct error *err)
{
    struct text_job *j = (struct text_job *)base;
    const struct tools *t = arg;
    if (!t->engine)
        return error_set(err, ST_FULL, "there is no memory for a query");
    struct rest between = {.engine = engine};
    struct query q = j->query;
    q.catalog = t->catalog;
    q.view = engine_view(engine);
    q.rest = rest;
    q.rest_arg = &between;
    q.limits.deadline_us = base->deadline_us;
    q.limits.cancel = &base->cancel;
    enum status st = j->fn(t->engine, &q, j->twin, &j->out, &j->result);
    if (st != ST_OK)
        *err = *engine_error(engine);
    base->late = st == ST_OK && j->result.outcome == QUERY_FAULT && j->result.fault.kind == FAULT_TIMEOUT;
    return st;
}

static void free_job(struct query_job *base)
{
    struct text_job *j = (struct text_job *)base;
    if (j->twin)
        reply_end_twin(j->twin);
    buf_release(&j->out);
    arena_release(&j->arena);
    mem_free(j);
}

static const struct query_job_kind text_kind = {open_tools, close_tools, run, free_job};

static struct value copy_value(struct arena *a, const struct value *v)
{
    struct value copy = *v;
    if (v->kind == VALUE_TEXT || v->kind == VALUE_BLOB)
        copy.s = arena_copy(a, v->s);
    return copy;
}

void query_move(struct call *c, const struct query *q, query_answer_fn *fn)
{
    struct text_job *j = mem_zalloc(sizeof *j);
    struct value *args = arena_alloc(&j->arena, (q->nargs + 1) * sizeof *args);
    for (size_t i = 0; i < q->nargs; i++)
        args[i] = copy_value(&j->arena, &q->args[i]);
    query_job_init(&j->base, &text_kind, c->executor);
    j->fn = fn;
    j->query = (struct query){
        .db = q->db,
        .text = arena_copy(&j->arena, q->text),
        .args = args,
        .nargs = q->nargs,
        .limits = {.result_bytes = q->limits.result_bytes, .memory = q->limits.memory},
    };
    if (c->reply->ops->twin)
        j->twin = reply_twin(c->reply, &j->out);
    query_job_begin(&j->base, c);
}

/* A query that ended before it had a result. */
static const struct fault *fault_of(struct text_job *j)
{
    static const struct {
        enum fault_kind kind;
        const char *text;
    } ends[] = {
        [QUERY_LATE] = {FAULT_TIMEOUT, "the query has taken longer than sql-timeout"},
        [QUERY_REFUSED] = {FAULT_SQL, "too many queries wait for a thread"},
        [QUERY_UNBLOCKED] = {FAULT_TIMEOUT, "the query was ended by CLIENT UNBLOCK"},
        [QUERY_SHUTDOWN] = {FAULT_CANCELLED, "the server ends"},
    };
    (void)fault_set(&j->fault, ends[j->base.end].kind, "%s", ends[j->base.end].text);
    return &j->fault;
}

bool query_take(struct call *c, struct query_taken *ret)
{
    struct text_job *j = (struct text_job *)query_job_of(c, &text_kind);
    *ret = (struct query_taken){.status = ST_OK};
    if (!j)
        return false;
    if (j->base.end == QUERY_UNBLOCKED_BY_ERROR) {
        ret->error = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    } else if (j->base.end != QUERY_ENDED) {
        ret->fault = fault_of(j);
    } else if (j->base.status != ST_OK) {
        *c->err = j->base.err;
        ret->status = j->base.status;
    } else if (j->result.outcome != QUERY_DONE) {
        ret->fault = &j->result.fault;
    } else {
        if (j->twin)
            reply_end_twin(j->twin);
        j->twin = NULL;
        ret->made = buf_slice(&j->out);
    }
    return true;
}
