/* See walker.h. */
#include "table/build/walker.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/vec.h"

#define MIN_ROWS 16
#define MAX_ROWS 4096

/* A table that has an index to build. */
struct walker_job {
    uint32_t db;
    struct slice name;
};

void walker_init(struct walker *w)
{
    *w = (struct walker){.look = true, .rows = MIN_ROWS};
    rand_secure(&w->number, sizeof w->number);
}

void walker_release(struct walker *w)
{
    arena_release(&w->names);
    mem_free(w->jobs);
}

/* ---- what there is to do ---- */

struct search {
    struct walker *w;
    struct arena scratch;
    uint32_t db;
};

/* A schema is decoded only where the word is in it. */
static enum status note_table(void *arg, struct slice key, const struct key_row *row)
{
    struct search *s = arg;
    struct walker *w = s->w;
    struct schema schema;
    struct error ignored; /* who asks for the table is told */
    arena_reset(&s->scratch);
    if (!memmem(row->value.p, row->value.n, "building", 8) ||
        schema_decode(row->value, &s->scratch, &schema, &ignored) != ST_OK || !build_due(&schema))
        return ST_OK;
    VEC_PUSH(w->jobs, w->njobs, w->cap) =
        (struct walker_job){.db = s->db, .name = arena_copy(&w->names, key)};
    return ST_OK;
}

static enum status find_jobs(struct walker *w, struct engine *e, struct error *err)
{
    struct view *v = engine_view(e);
    struct search s = {.w = w};
    struct error ignored;
    w->njobs = w->at = 0;
    w->decides = false;
    arena_reset(&w->names);
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
    w->look = false;
    if (st == ST_OK && ended != ST_OK)
        *err = ignored;
    return st != ST_OK ? st : ended;
}

/* ---- a step ---- */

struct step {
    struct walker *w;
    struct catalog *catalog;
    const struct walker_job *job;
    struct build_step build;
    struct arena arena;
};

static enum status run_step(void *arg, struct view *v)
{
    struct step *s = arg;
    struct rows r = {.catalog = s->catalog, .view = v, .arena = &s->arena};
    struct fault fault = {0};
    s->build.ret = BUILD_IDLE;
    enum status st = table_open(r.catalog, v, s->job->db, s->job->name, &r.table, &fault);
    if (st != ST_OK)
        return st;
    if (fault.kind) { /* it may have another name now */
        s->w->look = true;
        return ST_OK;
    }
    return build_step(&r, &s->build);
}

/* The next step takes as many rows as fit its time, by what the last one took. */
static void adapt(struct walker *w, int64_t target_us, int64_t took_us, uint32_t did)
{
    uint64_t rows = w->rows;
    if (took_us > target_us)
        rows = rows * (uint64_t)target_us / (uint64_t)took_us;
    else if (took_us < target_us / 2 && did >= rows)
        rows *= 2;
    w->rows = rows < MIN_ROWS ? MIN_ROWS : rows > MAX_ROWS ? MAX_ROWS : (uint32_t)rows;
}

static enum status take_step(struct walker *w, struct engine *e, struct catalog *catalog, int64_t target_us,
                             enum build_outcome *ret, struct error *err)
{
    struct step s = {.w = w, .catalog = catalog, .job = &w->jobs[w->at]};
    int64_t start = clock_mono_us();
    s.build = (struct build_step){.walker = w->number, .max_rows = w->rows, .decides = w->decides};
    if (view_wants_declarations(engine_view(e)))
        view_declare(engine_view(e), s.job->db, s.job->name);
    enum status st = engine_chore(e, !w->decides, run_step, &s, err);
    engine_drop_tally(e);
    arena_release(&s.arena);
    if (st != ST_OK)
        return st;
    w->decides = s.build.ret == BUILD_AT_END;
    w->at += s.build.ret == BUILD_IDLE || s.build.ret == BUILD_TAKEN;
    if (s.build.ret == BUILD_MORE)
        adapt(w, target_us, clock_mono_us() - start, s.build.ret_rows);
    /* Only the last of the list tells that there is nothing, or nothing for this one: */
    bool others = s.build.ret == BUILD_IDLE || (s.build.ret == BUILD_TAKEN && w->at < w->njobs);
    *ret = others ? BUILD_MORE : s.build.ret;
    return ST_OK;
}

enum status walker_step(struct walker *w, struct engine *e, struct catalog **catalog, int64_t target_us,
                        enum build_outcome *ret, struct error *err)
{
    *ret = BUILD_IDLE;
    if (w->look || w->at == w->njobs) {
        enum status st = find_jobs(w, e, err);
        if (st != ST_OK || w->njobs == 0)
            return st;
    }
    if (!*catalog)
        *catalog = catalog_new();
    return take_step(w, e, *catalog, target_us, ret, err);
}
