#include "admin/check_hashes.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/mem.h"
#include "table/hashes/hashes.h"

#define PAGE    100
#define NUMBERS (SCHEMA_NUMBER_MAX + 1)

struct hash {
    struct value key; /* the primary key */
    int64_t id;
    bool live;
    struct value *values;
};

struct walk {
    const struct hash_table_check *c;
    struct error *err;
    struct arena arena; /* of a page */
    struct hash hashes[PAGE];
    size_t n;
    struct buf after;   /* the key behind which the next page begins */
    uint32_t rows;      /* of the page, hashes or not */
    size_t hash, field; /* the next one that may be answered */
    uint64_t *met;      /* entries that hashes have, by the number of their index */
    struct slice *asked;
    bool *there;
    size_t next;
};

/* ---- hashes ---- */

static enum status take_key(void *arg, const struct key_row *k)
{
    struct walk *w = arg;
    w->rows++;
    w->after.len = 0;
    buf_add_slice(&w->after, k->key);
    struct slice key = arena_copy(&w->arena, k->key);
    struct hash *h = &w->hashes[w->n];
    if (k->type != ROW_HASH || !hashes_key_value(w->c->schema->prefix, key, &h->key))
        return ST_OK;
    size_t n = w->c->schema->ncolumns;
    h->id = k->id;
    h->live = k->expire_at == EXPIRE_NEVER || k->expire_at > w->c->now;
    h->values = arena_alloc(&w->arena, n * sizeof *h->values);
    memset(h->values, 0, n * sizeof *h->values);
    h->values[w->c->schema->key[0].column] = h->key;
    w->n++;
    return ST_OK;
}

/* Fields come in the order asked, without those that are missing. */
static enum status take_field(void *arg, const struct item_row *row)
{
    struct walk *w = arg;
    const struct schema *s = w->c->schema;
    for (;; w->field = 0, w->hash++) {
        for (; w->field < s->ncolumns; w->field++) {
            if (w->hashes[w->hash].id != row->ref.id || !slice_eq(s->columns[w->field].name, row->ref.name) ||
                w->field == s->key[0].column)
                continue;
            (void)hashes_value(&s->columns[w->field], arena_copy(&w->arena, row->value), &w->arena,
                               &w->hashes[w->hash].values[w->field]);
            w->field++;
            return ST_OK;
        }
        if (w->hash + 1 == w->n)
            return ST_OK;
    }
}

static enum status read_fields(struct walk *w)
{
    const struct schema *s = w->c->schema;
    struct item_ref *refs = arena_alloc(&w->arena, (w->n * s->ncolumns + 1) * sizeof *refs);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t c = 0; c < s->ncolumns; c++)
            if (c != s->key[0].column)
                refs[n++] =
                    (struct item_ref){.table = ITEM_HASH, .id = w->hashes[i].id, .name = s->columns[c].name};
    w->hash = w->field = 0;
    return n ? store_get_items(w->c->store, refs, n, take_field, w, w->err) : ST_OK;
}

/* ---- entries ---- */

static enum status note_there(void *arg, const struct item_row *row)
{
    struct walk *w = arg;
    while (!slice_eq(w->asked[w->next], row->ref.name))
        w->next++;
    w->there[w->next++] = true;
    return ST_OK;
}

static void tell_missing(const struct walk *w, const struct table_index *i, struct slice key)
{
    char text[300];
    snprintf(text, sizeof text, "index %.*s has no entry of the hash '%.*s' as it is", (int)i->name.n,
             i->name.p, (int)(key.n < 100 ? key.n : 100), key.p);
    w->c->found(w->c->arg, text);
}

/* The entries that the page's hashes have in one index. */
static enum status look_for_entries(struct walk *w, const struct table_index *i)
{
    struct item_ref *refs = arena_alloc(&w->arena, (w->n + 1) * sizeof *refs);
    struct buf name = {0};
    w->asked = arena_alloc(&w->arena, (w->n + 1) * sizeof *w->asked);
    w->there = arena_alloc(&w->arena, w->n + 1);
    memset(w->there, 0, w->n + 1);
    for (size_t k = 0; k < w->n; k++) {
        hashes_entry(w->c->schema, i, w->hashes[k].values, &name);
        w->asked[k] = arena_copy(&w->arena, buf_slice(&name));
        refs[k] = (struct item_ref){.table = ITEM_ENTRY, .id = w->c->id, .name = w->asked[k]};
    }
    buf_release(&name);
    w->next = 0;
    enum status st = w->n ? store_get_items(w->c->store, refs, w->n, note_there, w, w->err) : ST_OK;
    for (size_t k = 0; st == ST_OK && k < w->n; k++) {
        w->met[i->number] += w->there[k] && !hashes_is_flaw(w->asked[k]);
        if (!w->there[k] && w->hashes[k].live)
            tell_missing(w, i, w->hashes[k].key.s);
    }
    return st;
}

static enum status check_page(struct walk *w)
{
    struct key_scan q = {.db = w->c->db,
                         .order = KEYS_BY_KEY,
                         .prefix = w->c->schema->prefix,
                         .has_after = w->after.len > 0 || w->rows > 0,
                         .after = arena_copy(&w->arena, buf_slice(&w->after)),
                         .limit = PAGE};
    w->n = w->rows = 0;
    enum status st = store_scan_keys(w->c->store, &q, take_key, w, w->err);
    if (st == ST_OK)
        st = read_fields(w);
    for (size_t i = 0; st == ST_OK && i < w->c->schema->nindexes; i++)
        if (w->c->schema->indexes[i].state == INDEX_READY)
            st = look_for_entries(w, &w->c->schema->indexes[i]);
    arena_reset(&w->arena);
    return st;
}

struct count {
    uint64_t *numbers;
};

static enum status count_entry(void *arg, const struct item_row *row)
{
    struct count *c = arg;
    struct slice n = row->ref.name;
    size_t number = n.n < 2 ? 0 : (size_t)((unsigned char)n.p[0] << 8 | (unsigned char)n.p[1]);
    if (number < NUMBERS)
        c->numbers[number]++;
    return ST_OK;
}

static enum status count_entries(struct walk *w)
{
    struct count c = {.numbers = mem_zalloc(NUMBERS * sizeof *c.numbers)};
    struct item_scan q = {.table = ITEM_ENTRY, .id = w->c->id, .order = ITEMS_BY_NAME, .limit = UINT32_MAX};
    enum status st = store_scan_items(w->c->store, &q, count_entry, &c, w->err);
    for (size_t i = 0; st == ST_OK && i < w->c->schema->nindexes; i++) {
        const struct table_index *x = &w->c->schema->indexes[i];
        char text[200];
        if (x->state != INDEX_READY || c.numbers[x->number] <= w->met[x->number])
            continue;
        snprintf(text, sizeof text, "index %.*s has %" PRIu64 " entries of no hash", (int)x->name.n,
                 x->name.p, c.numbers[x->number] - w->met[x->number]);
        w->c->found(w->c->arg, text);
    }
    mem_free(c.numbers);
    return st;
}

enum status check_hash_table(const struct hash_table_check *c, struct error *err)
{
    struct walk w = {.c = c, .err = err, .met = mem_zalloc(NUMBERS * sizeof *w.met)};
    enum status st;
    do
        st = check_page(&w);
    while (st == ST_OK && w.rows == PAGE);
    if (st == ST_OK)
        st = count_entries(&w);
    mem_free(w.met);
    buf_release(&w.after);
    arena_release(&w.arena);
    return st;
}
