/* A place in a call that it can be brought back to: what one of its commands has done is taken back, what the
   others have done stays. It is for a script that ends in an error and wants none of its writes kept, within
   EXEC as well as by itself.

   The entries for undoing are in the order of the changes, and merged from step to step only within one
   number of the call (view_step): the mark takes another number, so that each row has an entry of its own
   behind it, and going back means to undo the entries behind the mark.

   What was brought into the running transaction since (a scan does that) is in the tables of that, though
   not committed. Before the first time the store marks its transaction, too. When it has gone back there, all
   that came behind is not in the transaction any more, also changes from before the mark that happened to be
   brought there together: those are as before, and will be brought there once more.

   A crash leaves nothing of the transaction. Another client sees no more of what was undone than of anything
   else that has not been committed: nothing. */
#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "engine/view_internal.h"
#include "store/shared.h"

void view_mark(struct view *v)
{
    struct view_mark *m = &v->mark;
    *m = (struct view_mark){
        .on = true,
        .number = ++v->call.number,
        .nundo = v->call.nundo,
        .nitems = v->batch.items.nundo,
        .nranges = v->batch.items.nranges,
        .ntrash = v->batch.ntrash,
        .nready = v->batch.nready,
        .items_any = v->batch.items.any,
        .steps_wrote = v->call.steps_wrote,
        .flushed = v->call.flushed,
        .dbs_changed = v->call.dbs_changed,
        .rows = m->rows,
        .rows_cap = m->rows_cap,
    };
}

void view_mark_dbs(struct view *v)
{
    struct view_mark *m = &v->mark;
    size_t bytes = v->dbs.n * sizeof *v->dbs.rows;
    if (!m->on || m->dbs)
        return;
    m->dbs = arena_alloc(&v->batch.arena, bytes);
    memcpy(m->dbs, v->dbs.rows, bytes);
    m->next_number = v->dbs.next_number;
}

void view_forget_mark(struct view *v)
{
    v->mark.on = false;
}

enum status view_mark_stored(struct view *v)
{
    struct view_mark *m = &v->mark;
    if (m->stored)
        return ST_OK;
    enum status st = store_mark(v->store, v->call.err);
    if (st != ST_OK)
        return st;
    m->stored = true;
    m->items_flushed = v->batch.items.flushed;
    m->trash_flushed = v->batch.trash_flushed;
    m->ids_end = v->ids.end;
    return ST_OK;
}

void view_mark_row(struct view *v, size_t change)
{
    VEC_PUSH(v->mark.rows, v->mark.nrows, v->mark.rows_cap) =
        (struct marked_row){change, v->batch.changes[change].now->seq};
}

/* The transaction of the store is back where it was marked: what came there since is not there. */
static enum status unflush(struct view *v)
{
    struct view_mark *m = &v->mark;
    enum status st = store_undo(v->store, v->call.err);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < m->nrows; i++) {
        struct change *c = &v->batch.changes[m->rows[i].change];
        v->batch.npending += !c->pending;
        c->pending = true;
    }
    view_items_unflushed(v, m->items_flushed);
    v->batch.trash_flushed = m->trash_flushed;
    v->batch.dbs_pending |= v->batch.dbs_changed;
    if (v->ids.end != m->ids_end)
        v->ids.next = v->ids.end = 0;
    return ST_OK;
}

/* Rows have the numbers again that the tables know them by; of several entries of one, the first tells. */
static void number_again(struct view *v)
{
    struct view_mark *m = &v->mark;
    for (size_t i = m->nrows; i > 0; i--)
        if (m->rows[i - 1].change < v->batch.nchanges)
            v->batch.changes[m->rows[i - 1].change].now->seq = m->rows[i - 1].seq;
}

static void undo(struct view *v)
{
    const struct view_mark *m = &v->mark;
    view_undo_rows(v, m->nundo);
    view_undo_items(v, m->nitems);
    view_undo_ranges(v, m->nranges);
    number_again(v);
    memos_drop_touched(&v->memos);
    v->batch.items.any = m->items_any;
    v->batch.ntrash = m->ntrash;
    v->batch.nready = m->nready;
    if (m->dbs) {
        memcpy(v->dbs.rows, m->dbs, v->dbs.n * sizeof *v->dbs.rows);
        v->dbs.next_number = m->next_number;
    }
    v->call.dbs_changed = m->dbs_changed;
    v->call.step_undo = v->call.nundo;
    v->call.wrote = false;
    v->call.steps_wrote = m->steps_wrote;
    v->call.flushed = m->flushed;
    view_untouch(v, m->number);
    v->call.number++; /* what has the old one refers to entries that are gone */
}

enum status view_undo_to_mark(struct view *v)
{
    assert(v->mark.on);
    bool stored = v->mark.stored;
    enum status st = stored ? unflush(v) : ST_OK;
    if (st == ST_OK) {
        undo(v);
        if (stored && store_shared(v->store)) { /* what was read since is not locked any more */
            cache_drop(v->cache);
            memos_drop_all(&v->memos);
        }
    }
    v->mark.on = false;
    return st;
}
