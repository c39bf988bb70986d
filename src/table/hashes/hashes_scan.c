/* Rows and entries of tables over hashes, in order; and the lists of what is not as the tables say. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "table/hashes/hashes_internal.h"

#define PAGE 256 /* keys looked at at once */

/* ---- rows, by their names ---- */

/* The first text whose code is not less than a bound: keys lie in the order of their bytes, and so do codes.
   p is NULL: none is. */
static struct slice text_from(struct arena *arena, struct slice bound)
{
    struct value empty = {.kind = VALUE_TEXT, .s = {"", 0}};
    struct buf code = {0};
    keycode_add(&code, &empty, false);
    unsigned char tag = (unsigned char)code.p[0];
    buf_release(&code);
    if (!bound.n || (unsigned char)bound.p[0] < tag)
        return SLICE("");
    if ((unsigned char)bound.p[0] > tag)
        return (struct slice){NULL, 0};
    char *out = arena_alloc(arena, bound.n + 1);
    size_t n = 0;
    for (size_t i = 1; i < bound.n; i++) {
        if (bound.p[i] != 0) {
            out[n++] = bound.p[i];
        } else if (i + 1 == bound.n || (bound.p[i + 1] == 1 && i + 2 == bound.n)) {
            break; /* this very text */
        } else {
            out[n++] = 0; /* the next one behind it, or a NUL within */
            if ((unsigned char)bound.p[i + 1] != 0xff)
                break;
            i++;
        }
    }
    return slice_of(out, n);
}

static struct slice key_from(struct arena *arena, struct slice prefix, struct slice text)
{
    char *p = arena_alloc(arena, prefix.n + text.n + 1);
    memcpy(p, prefix.p, prefix.n);
    memcpy(p + prefix.n, text.p, text.n);
    p[prefix.n + text.n] = '\0';
    return slice_of(p, prefix.n + text.n);
}

struct page {
    struct rows *r;
    struct hash_list *list;
    struct buf code;
    struct slice names[PAGE];
    size_t n;
};

static enum status note_key(void *arg, struct slice key, const struct key_row *row)
{
    struct page *p = arg;
    struct value v;
    if (row->type != ROW_HASH)
        return ST_OK;
    if (!hashes_key_value(p->r->table->schema.prefix, key, &v)) {
        if (p->list)
            hash_list_unnamed(p->r, p->list, key);
        return ST_OK;
    }
    p->code.len = 0;
    keycode_add(&p->code, &v, false);
    p->names[p->n++] = arena_copy(p->r->arena, buf_slice(&p->code));
    return ST_OK;
}

/* Hands out rows that are asked for by a scan. */
struct row_scan {
    struct rows *r;
    struct hash_list *list;
    uint32_t left;
    store_item_fn *fn;
    void *arg;
};

static enum status hand_out(struct row_scan *x, const struct page *p)
{
    struct table_row *rows = arena_alloc(x->r->arena, (p->n + 1) * sizeof *rows);
    enum status st = hashes_read(x->r, p->names, p->n, x->list, rows);
    for (size_t i = 0; st == ST_OK && i < p->n; i++) {
        if (!rows[i].values)
            continue;
        struct item_row item = hashes_encode(x->r, p->names[i], &rows[i]);
        st = x->fn(x->arg, &item);
        if (st == ST_OK && --x->left == 0)
            st = ST_STOP;
    }
    return st;
}

static bool make_range(struct rows *r, const struct item_scan *q, struct key_range *ret)
{
    struct slice prefix = r->table->schema.prefix, text;
    *ret = (struct key_range){.prefix = prefix, .reverse = q->reverse};
    if (q->has_min) {
        text = text_from(r->arena, q->min_name);
        if (!text.p)
            return false;
        ret->from = key_from(r->arena, prefix, text);
    }
    if (q->has_max) {
        text = text_from(r->arena, q->max_name);
        if (text.p)
            ret->to = key_from(r->arena, prefix, text);
        if (text.p && !q->below_max)
            ret->to.n++; /* the next one behind it, which ends with a NUL */
    }
    return true;
}

static enum status scan_rows(struct row_scan *x, const struct item_scan *q)
{
    struct page p = {.r = x->r, .list = x->list};
    struct key_range range;
    struct slice after = {NULL, 0};
    enum status st = ST_OK;
    if (x->left == 0 || !make_range(x->r, q, &range))
        return ST_OK;
    do {
        p.n = 0;
        uint32_t n = x->left < PAGE ? x->left : PAGE;
        st = view_page_keys(x->r->view, x->r->table->db, &range, n, x->r->arena, &after, note_key, &p);
        if (st == ST_OK)
            st = hand_out(x, &p);
    } while (st == ST_OK && after.p);
    buf_release(&p.code);
    return status_of_walk(st);
}

/* ---- entries, by the hashes ---- */

struct made {
    struct rows *r;
    const struct item_scan *q;
    const struct table_index *index;
    struct slice *names;
    size_t n, cap;
    struct buf code;
};

static enum status make_entry(void *arg, const struct item_row *item)
{
    struct made *m = arg;
    struct table_row row;
    enum status st = rowcode_decode(&m->r->table->schema, item->ref.name, item->value, item->expire_at,
                                    m->r->arena, &row, view_error(m->r->view));
    if (st != ST_OK)
        return st;
    hashes_entry(&m->r->table->schema, m->index, row.values, &m->code);
    struct slice name = buf_slice(&m->code);
    if ((m->q->has_min && slice_cmp(name, m->q->min_name) < 0) ||
        (m->q->has_max && slice_cmp(name, m->q->max_name) >= !m->q->below_max))
        return ST_OK;
    VEC_PUSH(m->names, m->n, m->cap) = arena_copy(m->r->arena, name);
    return ST_OK;
}

static int in_order(const void *a, const void *b)
{
    return slice_cmp(*(const struct slice *)a, *(const struct slice *)b);
}

/* As the entries would be if no field were waiting to be removed: all rows are read. */
static enum status scan_made(struct rows *r, const struct item_scan *q, const struct table_index *index,
                             store_item_fn *fn, void *arg)
{
    struct made m = {.r = r, .q = q, .index = index};
    struct row_scan x = {.r = r, .left = UINT32_MAX, .fn = make_entry, .arg = &m};
    struct item_scan all = {.table = ITEM_ROW, .id = r->table->id, .order = ITEMS_BY_NAME};
    enum status st = scan_rows(&x, &all);
    if (m.n)
        qsort(m.names, m.n, sizeof *m.names, in_order);
    for (size_t i = 0; st == ST_OK && i < m.n && i < q->limit; i++) {
        struct item_row item = {
            .ref = {.table = ITEM_ENTRY, .id = r->table->id, .name = m.names[q->reverse ? m.n - 1 - i : i]},
            .value = SLICE("")};
        st = fn(arg, &item);
    }
    mem_free(m.names);
    buf_release(&m.code);
    return status_of_walk(st);
}

static const struct table_index *index_of(const struct schema *s, const struct item_scan *q)
{
    for (size_t i = 0; q->has_min && q->min_name.n >= 2 && i < s->nindexes; i++)
        if (s->indexes[i].number == ((unsigned char)q->min_name.p[0] << 8 | (unsigned char)q->min_name.p[1]))
            return &s->indexes[i];
    return NULL;
}

enum status hashes_scan(struct rows *r, const struct item_scan *q, struct hash_list *list, store_item_fn *fn,
                        void *arg)
{
    if (q->table == ITEM_ROW) {
        struct row_scan x = {.r = r, .list = list, .left = q->limit, .fn = fn, .arg = arg};
        return scan_rows(&x, q);
    }
    const struct table_index *index = index_of(&r->table->schema, q);
    bool due = false;
    enum status st =
        index && !list ? view_any_due(r->view, r->table->db, r->table->schema.prefix, &due) : ST_OK;
    if (st != ST_OK)
        return st;
    return due ? scan_made(r, q, index, fn, arg) : view_scan_items(r->view, q, fn, arg);
}

/* ---- lists ---- */

struct flaws {
    struct rows *r;
    hash_flaw_fn *fn;
    void *arg;
    struct buf *after;
    uint32_t seen;
};

static void find_place(const struct schema *s, int64_t n, struct hash_flaw *ret)
{
    for (size_t i = 0; n > 0 && i < s->ncolumns; i++)
        if (s->columns[i].id == n)
            ret->column = (int)i;
    for (size_t i = 0; n < 0 && i < s->nindexes; i++)
        if (s->indexes[i].number == -n)
            ret->index = (int)i;
}

static enum status take_flaw(void *arg, const struct item_row *item)
{
    struct flaws *f = arg;
    const struct schema *s = &f->r->table->schema;
    struct slice name = slice_of(item->ref.name.p + 2, item->ref.name.n - 2);
    struct hash_flaw flaw = {.key = item->value, .column = -1, .index = -1};
    struct value key, n;
    f->seen++;
    f->after->len = 0;
    buf_add_slice(f->after, item->ref.name);
    if (!keycode_take(&name, false, f->r->arena, &key) || !keycode_take(&name, false, f->r->arena, &n))
        return ST_OK;
    if (key.kind == VALUE_TEXT) {
        flaw.key = key_from(f->r->arena, s->prefix, key.s);
        find_place(s, n.i, &flaw);
        if (flaw.column < 0 && flaw.index < 0) /* of a column or an index that was dropped */
            return ST_OK;
    }
    return f->fn(f->arg, &flaw);
}

static const char lists_begin[2] = {(char)(HASHES_UNPARSED >> 8), (char)(HASHES_UNPARSED & 0xff)};
static const char lists_end[2] = {(char)((HASHES_UNNAMED + 1) >> 8), (char)((HASHES_UNNAMED + 1) & 0xff)};

static struct item_scan scan_of_lists(const struct rows *r, struct slice from, uint32_t limit)
{
    return (struct item_scan){
        .table = ITEM_ENTRY,
        .id = r->table->id,
        .order = ITEMS_BY_NAME,
        .has_min = true,
        .min_name = from,
        .has_max = true,
        .max_name = slice_of(lists_end, 2),
        .below_max = true,
        .limit = limit,
    };
}

bool hashes_is_flaw(struct slice name)
{
    return name.n > 2 && memcmp(name.p, lists_begin, 2) >= 0 && memcmp(name.p, lists_end, 2) < 0;
}

enum status hashes_flaws(struct rows *r, uint32_t limit, struct buf *after, hash_flaw_fn *fn, void *arg)
{
    struct flaws f = {.r = r, .fn = fn, .arg = arg, .after = after};
    struct buf from = {0};
    buf_add_slice(&from, after->len ? buf_slice(after) : slice_of(lists_begin, 2));
    if (after->len)
        buf_add(&from, "", 1);
    struct item_scan q = scan_of_lists(r, buf_slice(&from), limit);
    enum status st = view_scan_items(r->view, &q, take_flaw, &f);
    if (f.seen < limit)
        after->len = 0;
    buf_release(&from);
    return status_of_walk(st);
}

struct cleared {
    struct rows *r;
    struct slice *names;
    size_t n, cap;
};

static enum status note_cleared(void *arg, const struct item_row *item)
{
    struct cleared *c = arg;
    VEC_PUSH(c->names, c->n, c->cap) = arena_copy(c->r->arena, item->ref.name);
    return ST_OK;
}

enum status hashes_clear_lists(struct rows *r, uint32_t max)
{
    struct cleared c = {.r = r};
    struct item_scan q = scan_of_lists(r, slice_of(lists_begin, 2), max);
    enum status st = view_scan_items(r->view, &q, note_cleared, &c);
    for (size_t i = 0; st == ST_OK && i < c.n; i++)
        st = hashes_set_entry(r->view, r->table->id, c.names[i], SLICE(""), false);
    mem_free(c.names);
    return st;
}

/* ---- for who builds an index ---- */

struct listed_hash {
    struct listed_hash *next;
    struct slice name, value;
};

static void note_listed(struct rows *r, struct hash_list *l, struct buf *name, struct slice value)
{
    struct arena *arena = view_arena(r->view);
    struct listed_hash *h = arena_alloc(arena, sizeof *h);
    *h = (struct listed_hash){l->first, arena_copy(arena, buf_slice(name)), arena_copy(arena, value)};
    l->first = h;
    buf_release(name);
}

void hash_list_field(struct rows *r, struct hash_list *l, const struct value *key, uint16_t column_id)
{
    struct buf name = {0};
    hashes_unparsed_name(key, column_id, &name);
    note_listed(r, l, &name, SLICE(""));
}

void hash_list_unnamed(struct rows *r, struct hash_list *l, struct slice key)
{
    struct buf name = {0};
    hashes_unnamed_name(r->table->schema.prefix, key, &name);
    note_listed(r, l, &name, slice_of(key.p, key.n < HASHES_SHOWN_KEY ? key.n : HASHES_SHOWN_KEY));
}

enum status hashes_list(struct rows *r, const struct hash_list *l)
{
    enum status st = ST_OK;
    for (const struct listed_hash *h = l->first; st == ST_OK && h; h = h->next) {
        struct item_row row = {.ref = {.table = ITEM_ENTRY, .id = r->table->id, .name = h->name},
                               .value = h->value};
        st = view_put_item(r->view, &row);
    }
    return st;
}
