/* Reading ahead: a command with many arguments names rows long before all of it has come. They are read slice
   by slice, in transactions of their own between batches, so that the command finds them in memory and does
   not hold the others for as long as the tables take.

   Rows it touches: none is written. A key's row, or an item, that memory lacks comes into the cache as any
   that was asked for, and from then on is what the cache says it is: what another command changes before this
   one has come is changed there, too, what is evicted meanwhile is read again, and what another process
   writes drops it. So nothing has to be taken back when the client goes in between, or when the command is
   wrong. A crash has nothing to leave. A slice that cannot be read is none: the command says so itself. */
#include "engine/coll_internal.h"
#include "engine/engine_internal.h"

#define ROW_BYTES 256 /* of a row in memory, as long as its value is not long */

/* A row that has come into the tables since memory has it is known by the number that it had before, which
   whoever writes it would have to look up (journal/owner_txn.c): it is read again. */
static bool is_renumbered(const struct view *v, const struct row *r)
{
    return !r->dirty && r->seq >= STORE_PROVISIONAL && r->seq < v->batch.first_seq;
}

static enum status read_keys(struct view *v, const struct engine_ahead *a)
{
    uint32_t number = v->dbs.rows[a->db].number;
    for (size_t i = 0; i < a->n; i++) {
        struct row *r = cache_peek(v->cache, number, a->names[i], cache_hash(number, a->names[i]));
        if (r && a->writes && is_renumbered(v, r)) {
            cache_remove(v->cache, r);
            row_free(r);
            r = NULL;
        }
        if (!r)
            view_declare(v, a->db, a->names[i]);
    }
    v->stats->ahead_rows += v->declared.n;
    return view_fetch_declared(v);
}

/* Rows that leave memory before the command has come would be read twice, and for nothing. */
static bool have_room(const struct view *v, size_t rows)
{
    return rows <= cache_budget(v->cache) / 2 / ROW_BYTES;
}

void engine_read_ahead(struct engine *e, const struct engine_ahead *a)
{
    struct view *v = &e->view;
    struct store_declared nothing = {.nkeys = 0};
    struct error err;
    bool changed = false;
    if (view_wants_declarations(v) || !have_room(v, a->all))
        return;
    if (store_begin(e->store, STORE_READ, &nothing, &changed, &err) != ST_OK ||
        engine_begun(e, changed, &err) != ST_OK)
        return;
    e->in_write = false;
    engine_enter(e);
    view_count_lookups(v, false);
    enum status st = a->key.p ? coll_read_ahead(v, a->db, a->key, a->names, a->n) : read_keys(v, a);
    if (st == ST_OK)
        view_accept(v);
    else
        view_undo(v, st);
    arena_reset(&v->call.scratch);
    engine_abandon(e);
    engine_keep_budget(e);
    e->stats.ahead_slices++;
}
