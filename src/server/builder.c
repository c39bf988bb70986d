/* When a walker takes its steps, see builder.h. */
#include "server/builder.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "server/retry.h"
#include "server/worker_internal.h"
#include "table/build/build.h"

#define STEP_US  1500    /* what a step may take */
#define LOOK_US  2000000 /* between two looks for something to build */
#define IDLE_US  20000
#define TAKEN_US 1000000 /* so, while other servers build */
#define FULL_US  5000    /* until the store may have caught up */
#define FAIL_US  1000000
#define MIN_ROWS 16
#define MAX_ROWS 4096
#define TRIES    5

/* A table that has an index to build. */
struct build_job {
    uint32_t db;
    struct slice name;
};

void builder_init(struct builder *b)
{
    *b = (struct builder){.look = true, .rows = MIN_ROWS};
    rand_secure(&b->walker, sizeof b->walker);
}

void builder_release(struct builder *b)
{
    arena_release(&b->names);
    mem_free(b->jobs);
}

/* ---- what there is to do ---- */

struct search {
    struct builder *b;
    struct arena scratch;
    uint32_t db;
};

/* A schema is decoded only where the word is in it. */
static enum status note_table(void *arg, struct slice key, const struct key_row *row)
{
    struct search *s = arg;
    struct builder *b = s->b;
    struct schema schema;
    struct error ignored; /* who asks for the table is told */
    arena_reset(&s->scratch);
    if (!memmem(row->value.p, row->value.n, "building", 8) ||
        schema_decode(row->value, &s->scratch, &schema, &ignored) != ST_OK || !build_due(&schema))
        return ST_OK;
    VEC_PUSH(b->jobs, b->njobs, b->cap) = (struct build_job){.db = s->db, .name = arena_copy(&b->names, key)};
    return ST_OK;
}

static enum status find_jobs(struct worker *w, struct error *err)
{
    struct builder *b = &w->builder;
    struct engine *e = w->executor.engine;
    struct view *v = engine_view(e);
    struct search s = {.b = b};
    struct error ignored;
    b->njobs = b->at = 0;
    b->decides = false;
    arena_reset(&b->names);
    enum status st = engine_begin(e, false, &ignored, err);
    if (st != ST_OK)
        return st;
    engine_enter(e);
    for (; st == ST_OK && s.db < view_databases(v); s.db++)
        st = view_each_table(v, s.db, note_table, &s);
    arena_release(&s.scratch);
    if (st != ST_OK)
        *err = *engine_error(e);
    engine_leave(e, st == ST_OK);
    enum status ended = engine_commit(e, NULL, &ignored); /* it only read */
    engine_drop_tally(e);
    b->look = false;
    if (st == ST_OK && ended != ST_OK)
        *err = ignored;
    return st != ST_OK ? st : ended;
}

/* ---- a step ---- */

struct step {
    struct worker *w;
    const struct build_job *job;
    struct build_step build;
    struct arena arena;
};

static enum status run_step(void *arg, struct view *v)
{
    struct step *s = arg;
    struct catalog **catalog = &s->w->executor.catalog;
    if (!*catalog)
        *catalog = catalog_new();
    struct rows r = {.catalog = *catalog, .view = v, .arena = &s->arena};
    struct fault fault = {0};
    s->build.ret = BUILD_IDLE;
    enum status st = table_open(r.catalog, v, s->job->db, s->job->name, &r.table, &fault);
    if (st != ST_OK)
        return st;
    if (fault.kind) { /* it may have another name now */
        s->w->builder.look = true;
        return ST_OK;
    }
    return build_step(&r, &s->build);
}

/* The next step takes as many rows as fit its time, by what the last one took. */
static void adapt(struct builder *b, int64_t took_us, uint32_t did)
{
    uint64_t rows = b->rows;
    if (took_us > STEP_US)
        rows = rows * STEP_US / (uint64_t)took_us;
    else if (took_us < STEP_US / 2 && did >= rows)
        rows *= 2;
    b->rows = rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : (uint32_t)rows;
}

/* What follows from a step; returns when the next one is due. */
static int64_t conclude(struct worker *w, const struct build_step *s, int64_t took_us)
{
    struct builder *b = &w->builder;
    bool quiet = b->batches == w->batches;
    b->batches = w->batches;
    b->decides = s->ret == BUILD_AT_END;
    b->at += s->ret == BUILD_IDLE || s->ret == BUILD_TAKEN;
    if (s->ret == BUILD_TAKEN && b->at == b->njobs)
        return TAKEN_US;
    if (s->ret != BUILD_MORE)
        return 0;
    adapt(b, took_us, s->ret_rows);
    return quiet ? 0 : took_us;
}

static int64_t failed(struct worker *w, const struct error *err)
{
    struct builder *b = &w->builder;
    bool contended = err->code == ST_BUSY || err->code == ST_CONFLICT;
    executor_note_failure(&w->executor, err->code);
    b->tries = err->code == ST_CONFLICT && b->tries + 1 < TRIES ? b->tries + 1 : 0;
    b->look |= !contended;
    if (!contended && worker_may_warn(w, &b->warned_us)) {
        char text[2 * sizeof err->text];
        log_warning("an index could not be built further", "status=%s error=%s", status_name(err->code),
                    log_quote(text, sizeof text, err->text));
    }
    return b->tries ? retry_pause_us(w, b->tries) : FAIL_US;
}

static int64_t take_step(struct worker *w, const struct build_job *job)
{
    struct builder *b = &w->builder;
    struct engine *e = w->executor.engine;
    struct step s = {.w = w, .job = job};
    struct error err;
    int64_t start = clock_mono_us();
    s.build = (struct build_step){.walker = b->walker, .max_rows = b->rows, .decides = b->decides};
    if (view_wants_declarations(engine_view(e)))
        view_declare(engine_view(e), job->db, job->name);
    enum status st = engine_chore(e, !b->decides, run_step, &s, &err);
    engine_drop_tally(e);
    arena_release(&s.arena);
    if (st != ST_OK)
        return failed(w, &err);
    b->tries = 0;
    return conclude(w, &s.build, clock_mono_us() - start);
}

int64_t builder_step(struct worker *w)
{
    struct builder *b = &w->builder;
    struct error err;
    if (!w->executor.server->sweep_active) /* DEBUG SET-ACTIVE-EXPIRE 0: nothing is done behind */
        return IDLE_US;
    if (executor_only_reads(&w->executor) || legs_primary_away(w))
        return LOOK_US;
    if (engine_full(w->executor.engine))
        return FULL_US;
    if ((b->look || b->at == b->njobs) && find_jobs(w, &err) != ST_OK)
        return failed(w, &err);
    return b->njobs ? take_step(w, &b->jobs[b->at]) : LOOK_US;
}
