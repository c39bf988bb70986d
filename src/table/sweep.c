#include "table/sweep.h"

#include "base/clock.h"
#include "table/rows.h"

#define TABLES 8 /* at once */

struct sweep {
    struct catalog *catalog;
    struct arena arena;
    struct {
        uint32_t db;
        struct slice key;
    } due[TABLES];
    size_t n;
    uint32_t max, did;
};

static enum status note_due(void *arg, uint32_t db, struct slice key)
{
    struct sweep *s = arg;
    if (s->n == TABLES) /* one that was created twice in tables that nobody guards */
        return ST_STOP;
    s->due[s->n].db = db;
    s->due[s->n++].key = arena_copy(&s->arena, key);
    return ST_OK;
}

static enum status remove_rows(void *arg, struct view *v)
{
    struct sweep *s = arg;
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < s->n && s->did < s->max; i++) {
        struct fault gone = {.kind = FAULT_NONE};
        struct rows r = {.catalog = s->catalog, .view = v, .arena = &s->arena};
        uint32_t removed = 0;
        st = table_open(s->catalog, v, s->due[i].db, s->due[i].key, &r.table, &gone);
        if (st == ST_OK && r.table && !r.table->schema.on_hashes)
            st = rows_sweep(&r, s->max - s->did, &removed);
        s->did += removed;
    }
    return st;
}

enum status tables_sweep(struct engine *e, struct catalog **catalog, int64_t *after, uint32_t max,
                         bool *ret_more, uint64_t *ret_rows, struct error *err)
{
    struct sweep s = {.max = max};
    int64_t start = clock_mono_us(), from = *after;
    enum status st = engine_due_tables(e, after, TABLES, note_due, &s, err);
    if (st == ST_OK && s.n) {
        if (!*catalog)
            *catalog = catalog_new();
        s.catalog = *catalog;
        if (view_wants_declarations(engine_view(e)))
            for (size_t i = 0; i < s.n; i++)
                view_declare(engine_view(e), s.due[i].db, s.due[i].key);
        st = engine_chore(e, true, remove_rows, &s, err);
    }
    arena_release(&s.arena);
    if (st != ST_OK)
        return st;
    if (s.did)
        engine_swept_rows(e, s.did, start);
    if (s.did == max)
        *after = from;
    *ret_rows = s.did;
    *ret_more = s.did == max || *after != 0;
    return ST_OK;
}
