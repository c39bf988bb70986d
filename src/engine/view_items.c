/* Items of collections and chunks: one, several, ranges. Single ones are found among what this batch changed,
   in memory or in the tables; for a range what the batch changed is brought into the running transaction
   first. */
#include "engine/view.h"

#include "engine/view_internal.h"

#define ASKED_AT_ONCE 128

struct item_read {
    struct view *v;
    struct item_row *row;
    bool found;
};

static enum status take_item(void *arg, const struct item_row *row)
{
    struct item_read *r = arg;
    *r->row = *row;
    r->row->ref.name = arena_copy(&r->v->scratch, row->ref.name);
    r->row->value = arena_copy(&r->v->scratch, row->value);
    r->found = true;
    return ST_OK;
}

enum status view_item(struct view *v, const struct item_ref *ref, bool *ret_found, struct item_row *ret)
{
    const struct item_entry *e = items_find(&v->items, ref);
    if (e) {
        view_saw(v, v->ticket);
        *ret_found = e->state == ITEM_PUT;
        *ret = e->row;
        return ST_OK;
    }
    if (view_known_item(v, ref, ret_found, ret))
        return ST_OK;
    struct item_read read = {v, ret, false};
    enum status st = store_get_items(v->store, ref, 1, take_item, &read, v->err);
    *ret_found = read.found;
    if (st == ST_OK)
        view_know_item(v, ref, read.found ? ret : NULL);
    return st;
}

struct presence {
    const struct item_ref *asked; /* the next one that may be answered */
    const size_t *places;         /* of those asked for, in ret */
    bool *ret;
};

/* Rows come in the order asked, without those that are missing. */
static enum status note_presence(void *arg, const struct item_row *row)
{
    struct presence *p = arg;
    while (!slice_eq(p->asked->name, row->ref.name)) {
        p->asked++;
        p->places++;
    }
    p->ret[*p->places] = true;
    p->asked++;
    p->places++;
    return ST_OK;
}

enum status view_has_items(struct view *v, enum item_table table, int64_t id, const struct slice *names,
                           size_t n, bool *ret)
{
    enum status st = ST_OK;
    struct item_ref refs[ASKED_AT_ONCE];
    size_t places[ASKED_AT_ONCE];
    for (size_t i = 0; st == ST_OK && i < n;) {
        size_t nrefs = 0;
        for (; i < n && nrefs < ASKED_AT_ONCE; i++) {
            refs[nrefs] = (struct item_ref){.table = table, .id = id, .name = names[i]};
            places[nrefs] = i;
            const struct item_entry *e = items_find(&v->items, &refs[nrefs]);
            struct item_row known;
            ret[i] = e && e->state == ITEM_PUT;
            if (e)
                view_saw(v, v->ticket);
            nrefs += !e && !view_known_item(v, &refs[nrefs], &ret[i], &known);
        }
        struct presence p = {refs, places, ret};
        if (nrefs)
            st = store_get_items(v->store, refs, nrefs, note_presence, &p, v->err);
    }
    return st;
}

/* Refused here rather than at the commit, where it would fail the whole batch. */
static enum status put_item(struct view *v, const struct item_row *row, bool fresh)
{
    size_t n = row->ref.name.n + row->value.n;
    if (n > STORE_ITEM_BYTES)
        return error_set(v->err, ST_INVALID, "an item of %zu bytes is larger than a row can be", n);
    items_put(&v->items, row, fresh);
    v->wrote = true;
    view_saw(v, v->ticket);
    return ST_OK;
}

enum status view_put_item(struct view *v, const struct item_row *row)
{
    return put_item(v, row, false);
}

enum status view_add_item(struct view *v, const struct item_row *row)
{
    return put_item(v, row, true);
}

enum status view_del_item(struct view *v, const struct item_ref *ref)
{
    items_del(&v->items, ref);
    v->wrote = true;
    view_saw(v, v->ticket);
    return ST_OK;
}

enum status view_scan_items(struct view *v, const struct item_scan *q, store_item_fn *fn, void *arg)
{
    enum status st = view_flush(v);
    return st == ST_OK ? store_scan_items(v->store, q, fn, arg, v->err) : st;
}

enum status view_count_items(struct view *v, const struct item_scan *q, int64_t *ret)
{
    enum status st = view_flush(v);
    return st == ST_OK ? store_count_items(v->store, q, ret, v->err) : st;
}
