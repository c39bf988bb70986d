/* Numbers with many holes become fewer.

   A removal leaves a hole (coll.h), so that drawing random numbers finds items ever more seldom. When fewer
   than a quarter of the numbers are taken, and memory does not hold the collection as a whole, the sweeper
   gives items other numbers, step by step between batches, until at least two thirds are: those with the
   highest numbers get holes below half as many again as there are items, and `numbers` falls to what is left.

   Rows it touches: those of up to MOVES items, and the key's. They are one change set of an ordinary
   transaction, so that a crash of the server or the database leaves all of a step or nothing; numbers are
   valid in between, and the next start goes on when a command uses the key. No step needs to know of the one
   before it: where holes are is looked for at random places, of which at least a third are free. Nothing that
   a client sees changes. An item only ever gets a lower number, so that no scan misses it.

   Two clients: a step is between their batches. On tables that others write to it holds the key's lock as any
   command does, and the key gets another version: who has read the old numbers has to read again. A step that
   conflicts is tried again later.

   An expired or deleted key, one that is small by now, or another type: nothing is done. Huge values: a step
   ends when it has read STEP_BYTES. */
#include "base/rand.h"
#include "engine/coll_internal.h"
#include "engine/engine_internal.h"

#define MOVES      256         /* items of one step, at most */
#define STEP_BYTES (256 << 10) /* of names and values that it moves, and one item more */
#define WINDOWS    4           /* places where holes are looked for, in one step */

/* The items with the highest numbers, from the first of which on there are to be none. */
struct top {
    struct coll *c;
    int64_t floor;
    struct item_row *rows;
    size_t n, bytes;
    int64_t below; /* all others have numbers below this */
};

static enum status take_top(void *arg, const struct item_row *row)
{
    struct top *t = arg;
    struct arena *a = &t->c->v->batch.arena;
    if (row->ord < t->floor) {
        t->below = row->ord + 1;
        return ST_STOP;
    }
    struct item_row *r = &t->rows[t->n++];
    *r = *row;
    r->ref.name = arena_copy(a, row->ref.name);
    r->value = arena_copy(a, row->value);
    t->below = row->ord;
    t->bytes += row->ref.name.n + row->value.n;
    return t->bytes > STEP_BYTES ? ST_STOP : ST_OK;
}

static enum status find_top(struct top *t, uint32_t max)
{
    struct coll *c = t->c;
    struct item_scan q = {
        .table = c->table, .id = c->id, .order = ITEMS_BY_ORD, .reverse = true, .limit = max};
    t->rows = arena_alloc(&c->v->call.scratch, max * sizeof *t->rows);
    t->below = -1;
    enum status st = view_scan_items(c->v, &q, take_top, t);
    if (st == ST_OK && t->below < 0)
        st = error_set(c->v->call.err, ST_CORRUPT, "of %lld items none was found", (long long)c->size);
    return st;
}

struct holes {
    int64_t *at;
    size_t n, wanted;
    int64_t next; /* the lowest number not looked at yet */
};

static void add_holes(struct holes *h, int64_t before)
{
    for (; h->next < before && h->n < h->wanted; h->next++)
        h->at[h->n++] = h->next;
    h->next = before + 1;
}

static enum status pass_taken(void *arg, const struct item_row *row)
{
    struct holes *h = arg;
    add_holes(h, row->ord);
    return h->n < h->wanted ? ST_OK : ST_STOP;
}

/* Up to so many holes below a number, in one window: the first that has any. */
static enum status find_holes(struct coll *c, int64_t below, size_t wanted, struct holes *h)
{
    int64_t width = 2 * (int64_t)wanted + 16 < below ? 2 * (int64_t)wanted + 16 : below;
    enum status st = ST_OK;
    *h = (struct holes){.at = arena_alloc(&c->v->call.scratch, (wanted + 1) * sizeof *h->at)};
    h->wanted = wanted;
    for (int i = 0; st == ST_OK && i < WINDOWS && h->n == 0; i++) {
        struct item_scan q = {
            .table = c->table, .id = c->id, .order = ITEMS_BY_ORD, .has_min = true, .has_max = true};
        q.min = h->next = (int64_t)rand_below(&c->v->rnd, (uint64_t)(below - width + 1));
        q.max = q.min + width - 1;
        q.limit = (uint32_t)width;
        st = view_scan_items(c->v, &q, pass_taken, h);
        if (st == ST_OK && h->n < wanted)
            add_holes(h, q.max + 1);
    }
    return st;
}

/* Gives the highest items the holes. */
static enum status move_down(struct top *t, const struct holes *h)
{
    struct coll *c = t->c;
    struct memo *m = memos_find(&c->v->memos, c->id);
    size_t n = h->n < t->n ? h->n : t->n;
    enum status st = ST_OK;
    c->numbers = t->below;
    if (n < t->n)
        c->numbers = t->rows[n].ord + 1;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        t->rows[i].ord = h->at[i];
        if (m)
            memo_fill_hole(m, h->at[i]);
        if (c->numbers <= h->at[i])
            c->numbers = h->at[i] + 1;
        st = view_put_item(c->v, &t->rows[i]);
    }
    t->n = n;
    return st;
}

static enum status save_renumbered(struct coll *c, struct row *row)
{
    struct row_draft d = coll_draft(c, (enum row_form)row->form);
    return view_shared(c->v) ? view_put(c->v, c->db, c->key, &d) : view_amend(c->v, row, &d, row->version);
}

/* Beyond how many numbers a collection of this size has too many. */
static int64_t enough(int64_t size)
{
    return size + size / 2;
}

enum status coll_renumber(struct view *v, uint32_t db, struct slice key, uint32_t max, uint32_t *ret_moved,
                          bool *ret_more)
{
    struct row *row;
    struct coll *c;
    *ret_moved = 0;
    *ret_more = false;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &row);
    bool named = st == ST_OK && (row->type == ROW_HASH || row->type == ROW_SET || row->type == ROW_ZSET);
    if (!named || !row_live(row, view_now(v)) || (st = coll_of_row(v, db, row, &c)) != ST_OK)
        return st;
    if (c->res || c->numbers <= enough(c->size))
        return ST_OK;
    struct top top = {.c = c, .floor = enough(c->size)};
    struct holes holes = {.n = 0};
    if ((st = find_top(&top, max)) != ST_OK)
        return st;
    if (top.n && (st = find_holes(c, top.floor, top.n, &holes)) != ST_OK)
        return st;
    if ((st = move_down(&top, &holes)) != ST_OK)
        return st;
    *ret_moved = (uint32_t)top.n;
    *ret_more = c->numbers > top.floor;
    v->stats->renumbered_items += top.n;
    return save_renumbered(c, row);
}

/* ---- which ---- */

void coll_note_sparse(struct coll *c, const struct row *row)
{
    if (!c->res && c->type != ROW_LIST && c->numbers / 4 > c->size)
        memos_note_sparse(&c->v->memos, c->id, row_db(row), row_key(row));
}

struct renumbering {
    uint32_t db;
    struct slice key;
    uint32_t max, moved;
    bool more;
};

static enum status run_renumbering(void *arg, struct view *v)
{
    struct renumbering *r = arg;
    return coll_renumber(v, r->db, r->key, r->max, &r->moved, &r->more);
}

static bool find_db(const struct view *v, uint32_t number, uint32_t *ret)
{
    for (*ret = 0; *ret < v->dbs.n; ++*ret)
        if (v->dbs.rows[*ret].number == number)
            return true;
    return false;
}

enum status engine_renumber(struct engine *e, uint32_t max, bool *ret_more, uint64_t *ret_moved,
                            struct error *err)
{
    struct view *v = &e->view;
    struct sparse_key *k = &v->memos.sparse[0];
    *ret_moved = 0;
    *ret_more = false;
    if (v->memos.nsparse == 0 || engine_full(e))
        return ST_OK;
    struct renumbering r = {.key = {k->key, k->nkey}, .max = max < MOVES ? max : MOVES};
    enum status st = ST_OK;
    if (find_db(v, k->db, &r.db)) {
        if (view_wants_declarations(v))
            view_declare(v, r.db, r.key);
        st = engine_chore(e, true, run_renumbering, &r, err);
    }
    if (st == ST_BUSY || st == ST_CONFLICT)
        memos_postpone_sparse(&v->memos);
    else if (st != ST_OK || !r.more)
        memos_forget_sparse(&v->memos);
    *ret_moved = r.moved;
    *ret_more = v->memos.nsparse > 0;
    return st;
}
