/* The steps of a walker, see build.h. */
#include "table/build/build.h"

#include <stdlib.h>
#include <string.h>

#include "table/hashes/hashes.h"
#include "table/key_text.h"

#define PLACE_BYTES 24        /* of a place's value, before the row's name */
#define STEP_BYTES  (4 << 20) /* of rows, beyond which a step looks at no more */

const struct table_index *build_due(const struct schema *s)
{
    const struct table_index *due = NULL;
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].state == INDEX_BUILDING && (!due || s->indexes[i].number < due->number))
            due = &s->indexes[i];
    return due;
}

/* ---- the place ---- */

struct place {
    bool begun;
    uint64_t rows;
    int64_t at; /* milliseconds */
    uint64_t walker;
    struct slice after;
};

static void put_u64(char *p, uint64_t n)
{
    for (int i = 7; i >= 0; i--, n >>= 8)
        p[i] = (char)(n & 0xff);
}

static uint64_t take_u64(const char *p)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | (unsigned char)p[i];
    return n;
}

static struct item_ref place_ref(struct rows *r, uint16_t number)
{
    char *name = arena_alloc(view_arena(r->view), 4);
    name[0] = name[1] = 0;
    name[2] = (char)(number >> 8);
    name[3] = (char)(number & 0xff);
    return (struct item_ref){.table = ITEM_ENTRY, .id = r->table->id, .name = slice_of(name, 4)};
}

/* What makes no sense is no place: the build begins anew, and finds its own entries. */
static enum status read_place(struct rows *r, uint16_t number, struct place *ret)
{
    struct item_ref ref = place_ref(r, number);
    struct item_row row;
    bool found;
    *ret = (struct place){0};
    enum status st = view_item(r->view, &ref, &found, &row);
    if (st != ST_OK || !found || row.value.n < PLACE_BYTES)
        return st;
    *ret = (struct place){
        .begun = true,
        .rows = take_u64(row.value.p),
        .at = (int64_t)take_u64(row.value.p + 8),
        .walker = take_u64(row.value.p + 16),
        .after = arena_copy(r->arena, slice_of(row.value.p + PLACE_BYTES, row.value.n - PLACE_BYTES)),
    };
    return ST_OK;
}

static enum status write_place(struct rows *r, uint16_t number, const struct place *p)
{
    size_t n = PLACE_BYTES + p->after.n;
    char *value = arena_alloc(view_arena(r->view), n);
    put_u64(value, p->rows);
    put_u64(value + 8, (uint64_t)p->at);
    put_u64(value + 16, p->walker);
    if (p->after.n)
        memcpy(value + PLACE_BYTES, p->after.p, p->after.n);
    struct item_row row = {.ref = place_ref(r, number), .value = slice_of(value, n)};
    return view_put_item(r->view, &row);
}

enum status build_progress(struct rows *r, const struct table_index *i, uint64_t *ret_rows)
{
    struct place p;
    enum status st = read_place(r, i->number, &p);
    *ret_rows = p.rows;
    return st;
}

enum status build_discard(struct rows *r, uint16_t number)
{
    struct item_ref ref = place_ref(r, number);
    view_discard_index(r->view, r->table->id, number);
    return view_del_item(r->view, &ref);
}

/* ---- rows to entries ---- */

struct entry {
    struct slice name, row;
    bool unique;
};

/* A stretch of rows and what they come to. Names are in the view's arena. */
struct walk {
    struct rows *rows;
    const struct schema *schema;
    const struct table_index *index;
    struct entry *entries; /* room for all */
    size_t n;
    uint32_t seen;
    size_t bytes;
    struct slice last;
    bool stopped; /* before the end, because rows are large */
    struct buf code;
    struct arena scratch;
    struct fault fault; /* a row that can have no entry */
    struct hash_list list;
};

static void blame_row(struct walk *w, struct slice name, enum fault_kind kind, const char *why)
{
    struct buf key = {0};
    key_text_add(w->schema, name, &w->scratch, &key);
    fault_set(&w->fault, kind, "row %.*s: %s", (int)key.len, key.p, why);
    buf_release(&key);
}

static void blame_two(struct walk *w, struct slice one, struct slice other)
{
    struct buf keys = {0};
    key_text_add(w->schema, one, &w->scratch, &keys);
    buf_addf(&keys, " and ");
    key_text_add(w->schema, other, &w->scratch, &keys);
    fault_set(&w->fault, FAULT_DUPLICATE, "index %.*s: rows %.*s have the same values", (int)w->index->name.n,
              w->index->name.p, (int)keys.len, keys.p);
    buf_release(&keys);
}

/* Over hashes every row has one: what is too long for an entry is listed in its place. */
static bool make_entry(struct walk *w, const struct value *values, bool *ret_unique, struct fault *fault)
{
    if (!w->schema->on_hashes)
        return rowcode_entry(w->schema, w->index, values, &w->code, ret_unique, fault);
    *ret_unique = false;
    hashes_entry(w->schema, w->index, values, &w->code);
    return true;
}

static enum status take_row(void *arg, const struct item_row *row)
{
    struct walk *w = arg;
    struct table_row t;
    struct error why;
    struct fault fault = {0};
    bool unique;
    w->seen++;
    w->bytes += row->value.n;
    w->stopped = w->bytes > STEP_BYTES;
    w->last = arena_copy(view_arena(w->rows->view), row->ref.name);
    if (row->expire_at && row->expire_at <= view_now(w->rows->view))
        return w->stopped ? ST_STOP : ST_OK;
    arena_reset(&w->scratch);
    w->code.len = 0;
    if (rowcode_decode(w->schema, row->ref.name, row->value, row->expire_at, &w->scratch, &t, &why) != ST_OK)
        blame_row(w, row->ref.name, FAULT_REFUSED, why.text);
    else if (!make_entry(w, t.values, &unique, &fault))
        blame_row(w, row->ref.name, fault.kind, fault.text);
    else
        w->entries[w->n++] =
            (struct entry){arena_copy(view_arena(w->rows->view), buf_slice(&w->code)), w->last, unique};
    return w->stopped || w->fault.kind ? ST_STOP : ST_OK;
}

static int by_name(const void *a, const void *b)
{
    return slice_cmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Looks at up to max rows behind a name (p is NULL: from the first). Entries are sorted, and each is there
   once; w->fault: that cannot be. */
static enum status walk_rows(struct walk *w, struct slice after, uint32_t max, bool *ret_end)
{
    struct item_scan q = {.table = ITEM_ROW, .id = w->rows->table->id, .order = ITEMS_BY_NAME, .limit = max};
    w->entries = arena_alloc(w->rows->arena, (max + 1) * sizeof *w->entries);
    if (after.p) { /* what comes next in the order of bytes */
        char *next = arena_alloc(w->rows->arena, after.n + 1);
        memcpy(next, after.p, after.n);
        next[after.n] = 0;
        q.has_min = true;
        q.min_name = slice_of(next, after.n + 1);
    }
    enum status st = w->schema->on_hashes ? hashes_scan(w->rows, &q, &w->list, take_row, w)
                                          : view_scan_items(w->rows->view, &q, take_row, w);
    *ret_end = !w->stopped && w->seen < max;
    if (st != ST_OK || w->fault.kind)
        return st;
    qsort(w->entries, w->n, sizeof *w->entries, by_name);
    for (size_t i = 1; i < w->n && !w->fault.kind; i++)
        if (slice_eq(w->entries[i - 1].name, w->entries[i].name))
            blame_two(w, w->entries[i - 1].row, w->entries[i].row);
    return ST_OK;
}

static void walk_end(struct walk *w)
{
    buf_release(&w->code);
    arena_release(&w->scratch);
}

static enum status put_entry(struct rows *r, const struct entry *e)
{
    struct item_row row = {.ref = {.table = ITEM_ENTRY, .id = r->table->id, .name = e->name},
                           .value = e->unique ? e->row : SLICE("")};
    return view_put_item(r->view, &row);
}

/* ---- unique entries that are there already ---- */

/* Whether a live row has this entry. */
static enum status row_has_entry(struct walk *w, struct slice row, struct slice entry, bool *ret)
{
    struct item_ref ref = {.table = ITEM_ROW, .id = w->rows->table->id, .name = row};
    struct item_row there;
    struct table_row t;
    struct error why;
    struct fault fault = {0};
    bool found, unique;
    *ret = false;
    enum status st = view_item(w->rows->view, &ref, &found, &there);
    if (st != ST_OK || !found || (there.expire_at && there.expire_at <= view_now(w->rows->view)))
        return st;
    arena_reset(&w->scratch);
    w->code.len = 0;
    *ret = rowcode_decode(w->schema, row, there.value, there.expire_at, &w->scratch, &t, &why) == ST_OK &&
           rowcode_entry(w->schema, w->index, t.values, &w->code, &unique, &fault) &&
           slice_eq(buf_slice(&w->code), entry);
    return ST_OK;
}

/* A unique entry that is there, and not this row's: another's, which may have expired. */
static enum status meet_entry(struct walk *w, const struct entry *e, struct slice other)
{
    bool taken;
    enum status st = row_has_entry(w, other, e->name, &taken);
    if (st == ST_OK && taken)
        blame_two(w, other, e->row);
    return st;
}

/* Takes out the entries that need not be written: those that writers have made, or an earlier try. */
static enum status meet_entries(struct walk *w)
{
    struct arena *a = w->rows->arena;
    struct item_ref *refs = arena_alloc(a, (w->n + 1) * sizeof *refs);
    struct item_row *rows = arena_alloc(a, (w->n + 1) * sizeof *rows);
    struct slice *names = arena_alloc(a, (w->n + 1) * sizeof *names);
    bool *there = arena_alloc(a, w->n + 1);
    size_t n = 0, met = 0;
    for (size_t i = 0; i < w->n; i++)
        names[i] = w->entries[i].name;
    enum status st = view_has_items(w->rows->view, ITEM_ENTRY, w->rows->table->id, names, w->n, there);
    for (size_t i = 0; st == ST_OK && i < w->n; i++) {
        if (there[i] && w->entries[i].unique)
            refs[met++] = (struct item_ref){.table = ITEM_ENTRY, .id = w->rows->table->id, .name = names[i]};
    }
    bool *found = arena_alloc(a, met + 1);
    if (st == ST_OK && met)
        st = view_get_items(w->rows->view, refs, met, found, rows);
    met = 0;
    for (size_t i = 0; st == ST_OK && i < w->n && !w->fault.kind; i++) {
        const struct entry *e = &w->entries[i];
        bool write = !there[i];
        if (there[i] && e->unique && !slice_eq(rows[met++].value, e->row)) {
            write = true;
            st = meet_entry(w, e, arena_copy(a, rows[met - 1].value));
        }
        if (write)
            w->entries[n++] = *e;
    }
    w->n = n;
    return st;
}

/* ---- a step ---- */

/* The index gets its final state, and what was kept of the build goes. */
static enum status decide(struct rows *r, uint16_t number, const struct fault *failure)
{
    struct schema s = r->table->schema;
    struct fault fault = {0};
    s.indexes = arena_alloc(r->arena, s.nindexes * sizeof *s.indexes);
    memcpy(s.indexes, r->table->schema.indexes, s.nindexes * sizeof *s.indexes);
    struct table_index *i = s.indexes;
    while (i->number != number)
        i++;
    i->state = failure ? INDEX_FAILED : INDEX_READY;
    i->error = failure ? slice_str(failure->text) : SLICE("");
    enum status st = table_change(r->view, r->table, &s, &fault);
    if (st == ST_OK && fault.kind) { /* no room for the reason */
        fault = (struct fault){0};
        i->error = SLICE("");
        st = table_change(r->view, r->table, &s, &fault);
    }
    if (st != ST_OK)
        return st;
    struct item_ref ref = place_ref(r, number);
    return failure ? build_discard(r, number) : view_del_item(r->view, &ref);
}

static bool is_taken(const struct rows *r, const struct place *p, uint64_t walker)
{
    int64_t age = view_now(r->view) - p->at;
    return view_shared(r->view) && p->begun && p->walker != walker && age >= 0 && age < BUILD_LEASE_MS;
}

/* Writes what was found, and the place behind it. */
static enum status keep_walk(struct walk *w, const struct build_step *step, const struct place *from)
{
    struct place to = {.begun = true,
                       .rows = from->rows + w->seen,
                       .at = view_now(w->rows->view),
                       .walker = step->walker,
                       .after = w->seen ? w->last : from->after};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < w->n; i++)
        st = put_entry(w->rows, &w->entries[i]);
    if (st == ST_OK)
        st = hashes_list(w->rows, &w->list);
    return st == ST_OK ? write_place(w->rows, w->index->number, &to) : st;
}

static enum status step_on(struct walk *w, struct build_step *step, const struct place *from)
{
    bool end;
    enum status st =
        walk_rows(w, from->begun && from->after.n ? from->after : (struct slice){0}, step->max_rows, &end);
    step->ret_rows = w->seen;
    if (st == ST_OK && !w->fault.kind)
        st = meet_entries(w);
    if (st != ST_OK)
        return st;
    step->ret = end || w->fault.kind ? BUILD_AT_END : BUILD_MORE;
    if (!w->fault.kind)
        st = keep_walk(w, step, from);
    if (st != ST_OK || step->ret == BUILD_MORE || !step->decides)
        return st;
    step->ret = BUILD_DECIDED;
    return decide(w->rows, w->index->number, w->fault.kind ? &w->fault : NULL);
}

enum status build_step(struct rows *r, struct build_step *step)
{
    const struct table_index *i = build_due(&r->table->schema);
    struct place from;
    step->ret = BUILD_IDLE;
    step->ret_rows = 0;
    if (!i)
        return ST_OK;
    enum status st = read_place(r, i->number, &from);
    if (st != ST_OK)
        return st;
    if (is_taken(r, &from, step->walker)) {
        step->ret = BUILD_TAKEN;
        return ST_OK;
    }
    struct walk w = {.rows = r, .schema = &r->table->schema, .index = i};
    st = step_on(&w, step, &from);
    walk_end(&w);
    return st;
}

/* ---- few rows ---- */

struct build_entries {
    struct entry **of; /* by index */
    size_t *n;
    size_t indexes;
    struct hash_list list; /* each walk has found all of it */
};

static struct table_index *by_number(struct schema *s, uint16_t number)
{
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].number == number)
            return &s->indexes[i];
    return NULL;
}

/* The entries of one index; *ret_few is false: there are too many rows. */
static enum status prepare_one(struct rows *r, const struct schema *s, const struct table_index *i,
                               struct build_entries *e, bool *ret_few, struct fault *fault)
{
    struct walk w = {.rows = r, .schema = s, .index = i};
    enum status st = walk_rows(&w, (struct slice){0}, BUILD_AT_ONCE + 1, ret_few);
    if (st == ST_OK && w.fault.kind)
        *fault = w.fault;
    e->of[e->indexes] = w.entries;
    e->n[e->indexes++] = w.n;
    e->list = w.list;
    walk_end(&w);
    return st;
}

enum status build_prepare(struct rows *r, struct schema *s, const uint16_t *numbers, size_t n,
                          struct build_entries **ret, struct fault *fault)
{
    struct build_entries *e = arena_alloc(r->arena, sizeof *e);
    *e = (struct build_entries){.of = arena_alloc(r->arena, (n + 1) * sizeof *e->of),
                                .n = arena_alloc(r->arena, (n + 1) * sizeof *e->n)};
    *ret = e;
    bool few = true;
    for (size_t i = 0; few && i < n; i++) {
        enum status st = prepare_one(r, s, by_number(s, numbers[i]), e, &few, fault);
        if (st != ST_OK || fault->kind)
            return st;
    }
    if (!few) {
        e->indexes = 0;
        e->list = (struct hash_list){0};
    }
    for (size_t i = 0; few && i < n; i++)
        by_number(s, numbers[i])->state = INDEX_READY;
    return ST_OK;
}

enum status build_write(struct rows *r, const struct build_entries *e)
{
    enum status st = ST_OK;
    for (size_t i = 0; i < e->indexes; i++)
        for (size_t j = 0; st == ST_OK && j < e->n[i]; j++)
            st = put_entry(r, &e->of[i][j]);
    return st == ST_OK ? hashes_list(r, &e->list) : st;
}
