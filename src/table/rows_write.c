/* Entries in step with their rows. Whatever is written here goes into the view in one call, so it is undone,
   committed, replayed and lost together: a crash at any point leaves rows with exactly their entries.

   Unique entries are read before anything is written, all of a row's in one round trip. Whoever writes to a
   table has its key: no other server writes to it meanwhile. */
#include "table/rows_internal.h"

#include "base/buf.h"
#include "store/rows.h"
#include "table/hashes/hashes.h"

#define PRINTED_BYTES 40 /* of each value in an error */

struct writing {
    struct rows *r;
    const struct row_change *c;
    struct entries was, now;
    struct holder *now_held, *was_held; /* by the indexes' places, of unique entries */
    bool learnt;                        /* all of this is known, and there is no fault */
    struct stored *victims;             /* expired rows that have an entry which is wanted */
    size_t nvictims;
};

static const struct schema *schema_of(const struct rows *r)
{
    return &r->table->schema;
}

static struct item_ref entry_ref(const struct rows *r, struct slice name)
{
    return (struct item_ref){.table = ITEM_ENTRY, .id = r->table->id, .name = name};
}

/* Entries are in the batch's arena: what is written of them is kept. */
static bool make_entries(struct rows *r, const struct value *values, struct entries *ret, struct fault *fault)
{
    const struct schema *s = schema_of(r);
    struct buf *b = &r->catalog->name;
    ret->names = arena_alloc(r->arena, (s->nindexes + 1) * sizeof *ret->names);
    ret->unique = arena_alloc(r->arena, s->nindexes + 1);
    for (size_t i = 0; i < s->nindexes; i++) {
        ret->names[i] = (struct slice){NULL, 0};
        ret->unique[i] = false;
        if (s->indexes[i].state == INDEX_FAILED)
            continue;
        b->len = 0;
        if (!rowcode_entry(s, &s->indexes[i], values, b, &ret->unique[i], fault))
            return false;
        ret->names[i] = arena_copy(view_arena(r->view), buf_slice(b));
    }
    return true;
}

static bool same_entry(const struct entries *a, const struct entries *b, size_t i)
{
    return a->names[i].p && b->names[i].p && a->unique[i] == b->unique[i] &&
           slice_eq(a->names[i], b->names[i]);
}

/* ---- who has what ---- */

/* What is read at once: entries, and whose they are. */
struct gathered {
    struct item_ref *refs;
    struct holder **of;
    size_t n;
};

static struct gathered gather(struct rows *r)
{
    size_t most = 2 * schema_of(r)->nindexes + 1;
    return (struct gathered){.refs = arena_alloc(r->arena, most * sizeof(struct item_ref)),
                             .of = arena_alloc(r->arena, most * sizeof(struct holder *))};
}

/* The unique entries of a row, but for those that another state of it has as well (may be NULL). */
static void gather_unique(struct gathered *g, struct rows *r, const struct entries *e,
                          const struct entries *but, struct holder *ret)
{
    for (size_t i = 0; i < schema_of(r)->nindexes; i++) {
        if (!e->names[i].p || !e->unique[i] || (but && same_entry(e, but, i)))
            continue;
        g->of[g->n] = &ret[i];
        g->refs[g->n++] = entry_ref(r, e->names[i]);
    }
}

/* row (may be NULL): the last of the refs, which is no entry. */
static enum status read_gathered(struct gathered *g, struct rows *r, bool *ret_found, struct item_row *row)
{
    struct item_row *items = arena_alloc(r->arena, (g->n + 1) * sizeof *items);
    bool *found = arena_alloc(r->arena, g->n + 1);
    enum status st = g->n ? view_get_items(r->view, g->refs, g->n, found, items) : ST_OK;
    size_t n = row ? g->n - 1 : g->n;
    for (size_t k = 0; st == ST_OK && k < n; k++)
        *g->of[k] = (struct holder){.found = found[k], .row = items[k].value};
    if (st == ST_OK && row) {
        *row = items[n];
        *ret_found = found[n];
    }
    return st;
}

enum status rows_prepare(struct rows *r, const struct value *values, struct slice name, struct prepared *ret,
                         struct fault *fault)
{
    struct gathered g = gather(r);
    struct item_row row;
    bool found = false;
    if (schema_of(r)->on_hashes)
        return rows_read(r, name, &ret->old);
    ret->held = arena_alloc(r->arena, (schema_of(r)->nindexes + 1) * sizeof *ret->held);
    if (!make_entries(r, values, &ret->now, fault))
        return ST_OK;
    gather_unique(&g, r, &ret->now, NULL, ret->held);
    g.refs[g.n++] = (struct item_ref){.table = ITEM_ROW, .id = r->table->id, .name = name};
    enum status st = read_gathered(&g, r, &found, &row);
    return st == ST_OK ? rows_take(r, name, found, &row, &ret->old) : st;
}

static bool is_victim(const struct writing *w, struct slice name)
{
    for (size_t i = 0; i < w->nvictims; i++)
        if (slice_eq(w->victims[i].name, name))
            return true;
    return false;
}

/* A unique entry that another row has: an expired one will be removed. */
static enum status check_holder(struct writing *w, size_t i, struct fault *fault)
{
    const struct holder *h = &w->now_held[i];
    const struct row_change *c = w->c;
    if (!w->now.names[i].p || !w->now.unique[i] || !h->found || slice_eq(h->row, c->name) ||
        slice_eq(h->row, c->old->name) || is_victim(w, h->row))
        return ST_OK;
    struct stored *other = &w->victims[w->nvictims];
    enum status st = rows_read(w->r, arena_copy(w->r->arena, h->row), other);
    if (st != ST_OK)
        return st;
    if (other->live)
        rows_duplicate(w->r, &schema_of(w->r)->indexes[i], c->row.values, fault);
    else
        w->nvictims += other->found;
    return ST_OK;
}

/* ---- writing ---- */

/* Removes a row's entry; a unique one only if the row has it: while an index is built, and duplicates are
   still to be found, it may be another's. */
static enum status drop_entry(struct rows *r, const struct entries *e, size_t i, const struct holder *held,
                              struct slice row)
{
    if (!e->names[i].p || (e->unique[i] && !(held[i].found && slice_eq(held[i].row, row))))
        return ST_OK;
    struct item_ref ref = entry_ref(r, e->names[i]);
    return view_del_item(r->view, &ref);
}

static enum status drop_row(struct rows *r, const struct stored *s)
{
    struct item_ref ref = {
        .table = ITEM_ROW, .id = r->table->id, .name = arena_copy(view_arena(r->view), s->name)};
    if (s->row.version > r->catalog->version)
        r->catalog->version = s->row.version;
    return view_del_item(r->view, &ref);
}

enum status rows_remove(struct rows *r, const struct stored *s)
{
    if (schema_of(r)->on_hashes)
        return hashes_remove(r, s->name);
    struct entries e;
    struct fault none = {.kind = FAULT_NONE};
    size_t n = schema_of(r)->nindexes;
    struct holder *held = arena_alloc(r->arena, (n + 1) * sizeof *held);
    if (!make_entries(r, s->row.values, &e, &none))
        return error_set(view_error(r->view), ST_CORRUPT, "a row has an entry that is too long: %s",
                         none.text);
    struct gathered g = gather(r);
    gather_unique(&g, r, &e, NULL, held);
    enum status st = read_gathered(&g, r, NULL, NULL);
    for (size_t i = 0; st == ST_OK && i < n; i++)
        st = drop_entry(r, &e, i, held, s->name);
    return st == ST_OK ? drop_row(r, s) : st;
}

/* What stands in the way goes: expired rows, and what the row had before and has no more. */
static enum status clear_way(struct writing *w)
{
    const struct row_change *c = w->c;
    struct rows *r = w->r;
    bool moved = c->old->found && !slice_eq(c->old->name, c->name);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < w->nvictims; i++)
        st = rows_remove(r, &w->victims[i]);
    if (st == ST_OK && c->target && !is_victim(w, c->target->name))
        st = rows_remove(r, c->target);
    for (size_t i = 0; st == ST_OK && c->old->found && i < schema_of(r)->nindexes; i++)
        if (!same_entry(&w->was, &w->now, i))
            st = drop_entry(r, &w->was, i, w->was_held, c->old->name);
    return st == ST_OK && moved ? drop_row(r, c->old) : st;
}

/* The entries that are not there as they should be. Of an index that is built nobody knows. */
static enum status put_entries(struct writing *w, struct slice name)
{
    const struct row_change *c = w->c;
    bool moved = !slice_eq(c->old->name, c->name);
    bool had = c->old->live; /* a build passes over rows that have expired: they may have no entry */
    for (size_t i = 0; i < schema_of(w->r)->nindexes; i++) {
        bool ready = schema_of(w->r)->indexes[i].state == INDEX_READY;
        bool stays = had && ready && same_entry(&w->was, &w->now, i) && !(moved && w->now.unique[i]);
        if (!w->now.names[i].p || stays)
            continue;
        struct item_row entry = {
            .ref = entry_ref(w->r, w->now.names[i]),
            .value = w->now.unique[i] ? name : SLICE(""),
        };
        enum status st = view_put_item(w->r->view, &entry);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status put_row(struct writing *w, struct slice name)
{
    struct rows *r = w->r;
    struct buf *b = &r->catalog->value;
    b->len = 0;
    rowcode_encode(schema_of(r), &w->c->row, b);
    struct item_row row = {
        .ref = {.table = ITEM_ROW, .id = r->table->id, .name = name},
        .value = arena_copy(view_arena(r->view), buf_slice(b)),
        .expire_at = w->c->row.expire_at,
    };
    buf_shrink(b, 65536);
    return view_put_item(r->view, &row);
}

/* Entries follow what happens to the hash. */
static enum status write_hash(struct rows *r, const struct row_change *c, struct fault *fault)
{
    bool had = c->old->live;
    struct hash_write w = {.name = c->name, .old = had ? &c->old->row : NULL, .row = &c->row};
    if (had && !slice_eq(c->old->name, c->name))
        w.from = c->old->name;
    return hashes_write(r, &w, fault);
}

/* The entries that there were and are to be, and who has the unique ones of them. */
static enum status learn(struct writing *w, struct fault *fault)
{
    const struct row_change *c = w->c;
    struct rows *r = w->r;
    size_t n = schema_of(r)->nindexes;
    struct gathered g = gather(r);
    w->was_held = arena_alloc(r->arena, (n + 1) * sizeof *w->was_held);
    w->victims = arena_alloc(r->arena, (n + 1) * sizeof *w->victims);
    if (c->prepared) {
        w->now = c->prepared->now;
        w->now_held = c->prepared->held;
    } else {
        w->now_held = arena_alloc(r->arena, (n + 1) * sizeof *w->now_held);
        if (!make_entries(r, c->row.values, &w->now, fault))
            return ST_OK;
        gather_unique(&g, r, &w->now, NULL, w->now_held);
    }
    if (c->old->found) {
        if (!make_entries(r, c->old->row.values, &w->was, fault))
            return ST_OK;
        gather_unique(&g, r, &w->was, &w->now, w->was_held);
    }
    w->learnt = true;
    return read_gathered(&g, r, NULL, NULL);
}

enum status rows_write(struct rows *r, const struct row_change *c, struct fault *fault)
{
    if (schema_of(r)->on_hashes)
        return write_hash(r, c, fault);
    struct writing w = {.r = r, .c = c};
    enum status st = learn(&w, fault);
    if (st != ST_OK || !w.learnt)
        return st;
    for (size_t i = 0; st == ST_OK && !fault->kind && i < schema_of(r)->nindexes; i++)
        st = check_holder(&w, i, fault);
    if (st != ST_OK || fault->kind)
        return st;
    if (c->row.expire_at != EXPIRE_NEVER && c->row.expire_at <= view_now(r->view))
        return c->old->found ? rows_remove(r, c->old) : ST_OK;
    if ((st = clear_way(&w)) != ST_OK)
        return st;
    struct slice name = arena_copy(view_arena(r->view), c->name);
    if ((st = put_entries(&w, name)) != ST_OK)
        return st;
    return put_row(&w, name);
}

/* ---- what is said of duplicates ---- */

/* A value within an error: short, and on one line. */
static void print_value(struct buf *out, enum column_type type, const struct value *v)
{
    struct buf text = {0};
    if (v->kind == VALUE_NULL)
        buf_add_slice(&text, SLICE("NULL"));
    else
        value_print(&text, type, v);
    bool cut = text.len > PRINTED_BYTES;
    size_t n = cut ? PRINTED_BYTES : text.len;
    while (cut && n > 0 && ((unsigned char)text.p[n] & 0xC0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = c >= 0x20 && c != 0x7f && (c < 0x80 || v->kind == VALUE_TEXT);
        buf_add(out, plain ? &text.p[i] : "?", 1);
    }
    if (cut)
        buf_add_slice(out, SLICE("..."));
    buf_release(&text);
}

void rows_duplicate(const struct rows *r, const struct table_index *index, const struct value *values,
                    struct fault *fault)
{
    const struct schema *s = schema_of(r);
    const struct key_part *parts = index ? index->parts : s->key;
    size_t n = index ? index->nparts : s->nkey;
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        buf_add(&text, ", ", i ? 2 : 0);
        print_value(&text, s->columns[parts[i].column].type, &values[parts[i].column]);
    }
    int width = text.len > 300 ? 300 : (int)text.len;
    if (index)
        fault_set(fault, FAULT_DUPLICATE, "index %.*s: (%.*s)", (int)index->name.n, index->name.p, width,
                  text.p ? text.p : "");
    else
        fault_set(fault, FAULT_DUPLICATE, "PRIMARY KEY: (%.*s)", width, text.p ? text.p : "");
    buf_release(&text);
}
