/* Pages of a find: the primary key's order is that of larder_row, an index's that of larder_entry.

   Rows touched: of the primary key's order the rows of the page and one more; of an index's the entries of
   the page and one more, then their rows in one trip. With filters more follow, in growing stretches, up to
   what may be looked at. Rows that have expired are passed over; nothing is written. Of two clients the
   second sees what the first has written, in its place in the order; a batch sees its own changes. */
#include "table/find.h"

#include "engine/keeper.h"
#include "table/find_internal.h"
#include "table/hashes/hashes.h"

#define STRETCH_FIRST 64 /* rows looked at beyond the limit in the first stretch of a find with filters */
#define STRETCH_MOST  4096

struct walk {
    struct rows *r;
    const struct schema *s;
    const struct find *f;
    struct find_place *place;
    find_fn *fn; /* NULL: rows are counted only */
    void *arg;
    struct find_result *result;
    uint64_t limit;
    struct find_range range;
    struct arena scratch; /* of a stretch, where rows are read that filters may refuse */
    bool names_do;        /* names hold all that is asked for */
    bool *held;           /* by columns: what entries hold; NULL: no filter asks for it */
    uint32_t seen;        /* rows or entries of this stretch */
    bool more;            /* there is more behind place, or may be */
};

/* ---- one row ---- */

static void move_to(struct walk *w, struct slice name)
{
    w->place->begun = true;
    w->place->nafter = (uint16_t)name.n;
    memcpy(w->place->after, name.p, name.n);
    w->result->scanned++;
}

/* Whether one more may be looked at; if not, there is more than that. */
static bool may_look(struct walk *w)
{
    w->more = w->result->scanned >= w->f->scan;
    return !w->more;
}

static struct value *copy_values(struct arena *arena, const struct value *from, size_t n)
{
    struct value *to = arena_alloc(arena, n * sizeof *to);
    memcpy(to, from, n * sizeof *to);
    for (size_t i = 0; i < n; i++) {
        if (to[i].kind == VALUE_TEXT || to[i].kind == VALUE_BLOB)
            to[i].s = arena_copy(arena, to[i].s);
    }
    return to;
}

/* A live row of an order's name, read into arena, which is the caller's or the stretch's. */
static enum status offer(struct walk *w, struct slice place, struct slice name, struct table_row *row,
                         const struct arena *arena)
{
    if (!find_filters_meet(w->f, row->values, NULL)) {
        move_to(w, place);
        return ST_OK;
    }
    if (w->result->returned >= w->limit) {
        w->more = true;
        return ST_STOP;
    }
    move_to(w, place);
    w->result->returned++;
    if (!w->fn)
        return ST_OK;
    if (arena != w->r->arena)
        row->values = copy_values(w->r->arena, row->values, w->s->ncolumns);
    enum status st = w->fn(w->arg, row, arena_copy(w->r->arena, name));
    w->more = st == ST_STOP;
    return st;
}

/* Where rows are read: where the caller has them, unless they may turn out not to be wanted. */
static struct arena *reading_arena(struct walk *w)
{
    return w->fn && !w->f->nfilters ? w->r->arena : &w->scratch;
}

static bool is_live(const struct walk *w, int64_t expire_at)
{
    return expire_at == 0 || expire_at > view_now(w->r->view);
}

/* ---- by the primary key ---- */

static enum status read_row(struct walk *w, const struct item_row *item, struct arena *arena,
                            struct table_row *ret)
{
    struct slice name = item->ref.name, value = item->value;
    if (arena == w->r->arena) {
        name = arena_copy(arena, name);
        value = w->names_do ? (struct slice){"", 0} : arena_copy(arena, value);
    }
    if (!w->names_do)
        return rowcode_decode(w->s, name, value, item->expire_at, arena, ret, view_error(w->r->view));
    *ret = (struct table_row){.expire_at = item->expire_at,
                              .values = arena_alloc(arena, w->s->ncolumns * sizeof *ret->values)};
    return find_entry_values(w->s, NULL, name, name, arena, ret->values, view_error(w->r->view));
}

static enum status take_row(void *arg, const struct item_row *item)
{
    struct walk *w = arg;
    w->seen++;
    if (!may_look(w))
        return ST_STOP;
    if (!is_live(w, item->expire_at)) {
        move_to(w, item->ref.name);
        return ST_OK;
    }
    if (!w->fn && !w->f->nfilters) {
        move_to(w, item->ref.name);
        w->result->returned++;
        return ST_OK;
    }
    struct table_row row;
    struct arena *arena = reading_arena(w);
    enum status st = read_row(w, item, arena, &row);
    if (st == ST_OK)
        st = offer(w, item->ref.name, item->ref.name, &row, arena);
    arena_reset(&w->scratch);
    return st;
}

/* ---- by an index ---- */

struct entry {
    struct slice name, row;
    bool refused; /* by what the entry holds */
};

struct stretch {
    struct walk *w;
    struct entry *entries;
    size_t n;
    struct buf row;
    struct value *values; /* of the entry that is looked at */
};

static enum status take_entry(void *arg, const struct item_row *item)
{
    struct stretch *x = arg;
    struct walk *w = x->w;
    struct error *err = view_error(w->r->view);
    struct entry *e = &x->entries[x->n++];
    w->seen++;
    x->row.len = 0;
    enum status st = rowcode_entry_row(w->s, w->f->index, item->ref.name, item->value, &x->row, err);
    if (st != ST_OK)
        return st;
    *e = (struct entry){.name = arena_copy(&w->scratch, item->ref.name),
                        .row = arena_copy(&w->scratch, buf_slice(&x->row))};
    if (w->held && !w->names_do) {
        st = find_entry_values(w->s, w->f->index, e->name, e->row, &w->scratch, x->values, err);
        e->refused = st == ST_OK && !find_filters_meet(w->f, x->values, w->held);
    }
    return st;
}

/* The rows of a stretch's entries, those that were refused left out: rows[i] for entries[i]. */
static enum status fetch_rows(struct walk *w, const struct stretch *x, struct table_row *rows,
                              struct arena *arena)
{
    struct slice *names = arena_alloc(&w->scratch, x->n * sizeof *names);
    struct table_row *found = arena_alloc(&w->scratch, x->n * sizeof *found);
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (!x->entries[i].refused)
            names[n++] = x->entries[i].row;
    }
    struct rows r = *w->r;
    r.arena = arena;
    enum status st = n ? rows_get_many(&r, names, n, found) : ST_OK;
    n = 0;
    for (size_t i = 0; st == ST_OK && i < x->n; i++) {
        if (x->entries[i].refused)
            rows[i] = (struct table_row){0};
        else
            rows[i] = found[n++];
    }
    return st;
}

/* What entries hold instead of their rows. */
static enum status values_of_entries(struct walk *w, const struct stretch *x, struct table_row *rows,
                                     struct arena *arena)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < x->n; i++) {
        const struct entry *e = &x->entries[i];
        struct slice name = e->name, row = e->row;
        if (arena != &w->scratch) {
            name = arena_copy(arena, name);
            row = arena_copy(arena, row);
        }
        rows[i] = (struct table_row){.values = arena_alloc(arena, w->s->ncolumns * sizeof *rows->values)};
        st = find_entry_values(w->s, w->f->index, name, row, arena, rows[i].values, view_error(w->r->view));
    }
    return st;
}

/* Entries over hashes may say what hashes said before somebody else's SQL changed them. */
static bool is_as_entry_says(const struct walk *w, const struct entry *e, const struct table_row *row)
{
    struct buf name = {0};
    if (!w->s->on_hashes)
        return true;
    hashes_entry(w->s, w->f->index, row->values, &name);
    bool same = slice_eq(buf_slice(&name), e->name);
    buf_release(&name);
    return same;
}

static enum status offer_entries(struct walk *w, const struct stretch *x)
{
    struct arena *arena = reading_arena(w);
    struct table_row *rows = arena_alloc(&w->scratch, x->n * sizeof *rows);
    enum status st = w->names_do ? values_of_entries(w, x, rows, arena) : fetch_rows(w, x, rows, arena);
    for (size_t i = 0; st == ST_OK && i < x->n; i++) {
        const struct entry *e = &x->entries[i];
        if (!may_look(w))
            return ST_STOP;
        if (rows[i].values && is_as_entry_says(w, e, &rows[i])) {
            st = offer(w, e->name, e->row, &rows[i], arena);
            continue;
        }
        if (w->s->on_hashes && !e->refused)
            st = hashes_missed(w->r, e->row);
        move_to(w, e->name);
    }
    return st;
}

static enum status count_entry(void *arg, const struct item_row *item)
{
    struct walk *w = arg;
    w->seen++;
    if (!may_look(w))
        return ST_STOP;
    move_to(w, item->ref.name);
    w->result->returned++;
    return ST_OK;
}

/* ---- stretches ---- */

static enum status scan(struct walk *w, enum item_table table, uint32_t n, store_item_fn *fn, void *arg)
{
    const struct find_range *range = &w->range;
    struct item_scan q = {
        .table = table,
        .id = w->r->table->id,
        .order = ITEMS_BY_NAME,
        .reverse = w->f->reverse,
        .has_min = range->min.len > 0,
        .min_name = buf_slice(&range->min),
        .has_max = range->has_max,
        .max_name = buf_slice(&range->max),
        .below_max = range->has_max,
        .limit = n,
    };
    return rows_scan(w->r, &q, fn, arg);
}

static enum status read_entries(struct walk *w, uint32_t n)
{
    if (w->names_do && !w->fn && !w->f->nfilters)
        return scan(w, ITEM_ENTRY, n, count_entry, w);
    struct stretch x = {.w = w};
    x.entries = arena_alloc(&w->scratch, n * sizeof *x.entries);
    x.values = arena_alloc(&w->scratch, w->s->ncolumns * sizeof *x.values);
    enum status st = scan(w, ITEM_ENTRY, n, take_entry, &x);
    buf_release(&x.row);
    if (st == ST_OK && x.n)
        st = offer_entries(w, &x);
    arena_reset(&w->scratch);
    return st;
}

/* The one row, or entry, that a find can have at most, from memory where it is there. */
static enum status read_one(struct walk *w)
{
    struct item_ref ref = {.table = w->f->index ? ITEM_ENTRY : ITEM_ROW,
                           .id = w->r->table->id,
                           .name = buf_slice(&w->range.min)};
    struct item_row item;
    bool found;
    enum status st =
        w->f->index ? view_item(w->r->view, &ref, &found, &item) : rows_find(w->r, ref.name, &found, &item);
    if (st != ST_OK || !found)
        return st;
    if (!w->f->index)
        return take_row(w, &item);
    struct entry entry;
    struct stretch x = {.w = w, .entries = &entry};
    x.values = arena_alloc(&w->scratch, w->s->ncolumns * sizeof *x.values);
    st = take_entry(&x, &item);
    buf_release(&x.row);
    if (st == ST_OK)
        st = offer_entries(w, &x);
    arena_reset(&w->scratch);
    return st;
}

/* How many rows to ask for: those that are wanted and one more, or with filters more and more. */
static uint32_t stretch_size(const struct walk *w, uint64_t grown)
{
    uint64_t wanted = w->limit - w->result->returned, scan_left = w->f->scan - w->result->scanned;
    uint64_t n = wanted < STRETCH_MOST ? wanted + 1 : STRETCH_MOST;
    if (w->f->nfilters)
        n = n + grown < STRETCH_MOST ? n + grown : STRETCH_MOST;
    return (uint32_t)(n <= scan_left ? n : scan_left + 1);
}

static enum status walk_range(struct walk *w)
{
    enum status st = ST_OK;
    uint64_t grown = STRETCH_FIRST;
    if (w->range.whole_name && !w->place->begun) {
        st = read_one(w);
        w->place->ended = !w->more;
        return status_of_walk(st);
    }
    while (!w->more && !w->place->ended) {
        uint32_t n = stretch_size(w, grown);
        w->seen = 0;
        st = w->f->index ? read_entries(w, n) : scan(w, ITEM_ROW, n, take_row, w);
        if (st != ST_OK)
            return status_of_walk(st);
        if (w->more)
            break;
        w->place->ended = w->seen < n;
        find_range_behind(&w->range, w->f->reverse, slice_of(w->place->after, w->place->nafter));
        grown *= 4;
        if (!w->place->ended && (st = find_goes_on(w->r, w->f)) != ST_OK)
            return st;
    }
    return st;
}

/* Stretches of one order are of one state; over hashes, a row may move from one to another in between. */
enum status find_goes_on(struct rows *r, const struct find *f)
{
    return f->index && r->table->schema.on_hashes ? view_one_state(r->view) : ST_OK;
}

/* ---- finds ---- */

static enum status note_expired(void *arg, const struct item_row *item)
{
    (void)item;
    *(bool *)arg = true;
    return ST_STOP;
}

/* Whether names alone will do. Entries do not tell which rows have expired: while none has, all are live. */
static enum status see_what_names_do(struct walk *w)
{
    const struct find *f = w->f;
    bool all = (!w->fn || f->keys_only) && !w->s->on_hashes;
    w->held = NULL;
    if (f->nfilters) {
        w->held = arena_alloc(w->r->arena, w->s->ncolumns * sizeof *w->held);
        for (size_t i = 0; i < w->s->ncolumns; i++)
            w->held[i] = find_holds(w->s, f->index, (uint16_t)i);
    }
    for (size_t i = 0; i < f->nfilters; i++)
        all = all && w->held[f->filters[i].column];
    bool expired = false;
    enum status st = ST_OK;
    if (all && f->index) {
        struct item_scan q = {.table = ITEM_ROW,
                              .id = w->r->table->id,
                              .order = ITEMS_BY_EXPIRY,
                              .has_max = true,
                              .max = view_now(w->r->view),
                              .limit = 1};
        st = view_scan_items(w->r->view, &q, note_expired, &expired);
    }
    w->names_do = all && !expired;
    return st;
}

static enum status run(struct walk *w)
{
    w->s = &w->r->table->schema;
    *w->result = (struct find_result){0};
    if (w->place->ended)
        return ST_OK;
    find_range_make(w->s, w->f, &w->range);
    if (w->place->begun)
        find_range_behind(&w->range, w->f->reverse, slice_of(w->place->after, w->place->nafter));
    w->place->ended = w->range.empty;
    enum status st = w->range.empty ? ST_OK : see_what_names_do(w);
    if (st == ST_OK && !w->range.empty)
        st = walk_range(w);
    find_range_release(&w->range);
    arena_release(&w->scratch);
    return st;
}

enum status find_page(struct rows *r, const struct find *f, struct find_place *place, find_fn *fn, void *arg,
                      struct find_result *ret)
{
    struct walk w = {.r = r, .f = f, .place = place, .fn = fn, .arg = arg, .result = ret, .limit = f->limit};
    return run(&w);
}

enum status find_count(struct rows *r, const struct find *f, struct find_place *place, uint64_t *ret,
                       struct find_result *ret_work)
{
    struct walk w = {.r = r, .f = f, .place = place, .result = ret_work, .limit = UINT64_MAX};
    enum status st = run(&w);
    *ret = ret_work->returned;
    return st;
}
