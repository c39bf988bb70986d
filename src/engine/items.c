#include "engine/items.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"

#define KEEP_ENTRIES 4096 /* capacity that outlives a batch */

static bool by_pos(enum item_table t)
{
    return t == ITEM_CHUNK || t == ITEM_LIST || t == ITEM_ZBLOCK;
}

static uint64_t ref_hash(const struct item_ref *ref)
{
    uint64_t salt = (uint64_t)ref->id * ITEM_TABLES + (uint64_t)ref->table;
    if (by_pos(ref->table))
        return hash_bytes(slice_of(&ref->pos, sizeof ref->pos), salt);
    return hash_bytes(ref->name, salt);
}

static bool ref_eq(const struct item_ref *a, const struct item_ref *b)
{
    if (a->table != b->table || a->id != b->id)
        return false;
    return by_pos(a->table) ? a->pos == b->pos : slice_eq(a->name, b->name);
}

void items_release(struct items *t)
{
    mem_free(t->entries);
    mem_free(t->slots);
    mem_free(t->undo);
    mem_free(t->listed);
    *t = (struct items){0};
}

/* The slot that holds ref, or the free one where it belongs. */
static size_t slot_of(const struct items *t, const struct item_ref *ref)
{
    size_t mask = t->nslots - 1;
    size_t i = ref_hash(ref) & mask;
    while (t->slots[i] && !ref_eq(&t->entries[t->slots[i] - 1].row.ref, ref))
        i = (i + 1) & mask;
    return i;
}

const struct item_entry *items_find(const struct items *t, const struct item_ref *ref)
{
    if (t->len == 0)
        return NULL;
    uint32_t index = t->slots[slot_of(t, ref)];
    if (index == 0)
        return NULL;
    const struct item_entry *e = &t->entries[index - 1];
    return e->state == ITEM_UNTOUCHED ? NULL : e;
}

static void rehash(struct items *t)
{
    t->nslots = t->nslots ? t->nslots * 2 : 64;
    mem_free(t->slots);
    t->slots = mem_zalloc(t->nslots * sizeof *t->slots);
    for (size_t i = 0; i < t->len; i++)
        t->slots[slot_of(t, &t->entries[i].row.ref)] = (uint32_t)i + 1;
}

static size_t weight(const struct item_entry *e)
{
    return e->pending ? sizeof *e + e->row.ref.name.n + e->row.value.n : 0;
}

static void replace(struct items *t, struct item_entry *e, const struct item_entry *with)
{
    bool listed = e->listed;
    t->bytes -= weight(e);
    t->npending -= e->pending;
    *e = *with;
    t->bytes += weight(e);
    t->npending += e->pending;
    e->listed = listed || e->pending;
    if (e->listed && !listed)
        VEC_PUSH(t->listed, t->nlisted, t->listed_cap) = (uint32_t)(e - t->entries);
}

/* The entry of an item, made when there is none; how it is now is noted for undo. */
static struct item_entry *touch(struct items *t, const struct item_ref *ref)
{
    if ((t->len + 1) * 2 > t->nslots)
        rehash(t);
    size_t slot = slot_of(t, ref);
    if (t->slots[slot] == 0) {
        VEC_PUSH(t->entries, t->len, t->cap) = (struct item_entry){.row.ref = *ref};
        t->slots[slot] = (uint32_t)t->len;
    }
    uint32_t index = t->slots[slot] - 1;
    VEC_PUSH(t->undo, t->nundo, t->undo_cap) = (struct item_undo){index, t->entries[index]};
    return &t->entries[index];
}

void items_put(struct items *t, const struct item_row *row, bool fresh)
{
    struct item_entry *e = touch(t, &row->ref);
    bool new_row = e->pending ? e->fresh : fresh && e->state == ITEM_UNTOUCHED;
    struct item_entry put = {.row = *row, .state = ITEM_PUT, .pending = true, .fresh = new_row};
    replace(t, e, &put);
}

void items_del(struct items *t, const struct item_ref *ref)
{
    struct item_entry *e = touch(t, ref);
    bool nothing_left = e->pending && e->fresh;
    struct item_entry gone = {
        .row.ref = *ref, .state = ITEM_GONE, .pending = !nothing_left, .fresh = nothing_left};
    replace(t, e, &gone);
}

void items_accept(struct items *t)
{
    t->nundo = 0;
}

void items_undo(struct items *t)
{
    while (t->nundo) {
        const struct item_undo *u = &t->undo[--t->nundo];
        replace(t, &t->entries[u->index], &u->before);
    }
}

void items_clear(struct items *t)
{
    if (t->cap > KEEP_ENTRIES || t->undo_cap > KEEP_ENTRIES || t->listed_cap > KEEP_ENTRIES) {
        items_release(t);
        return;
    }
    if (t->len)
        memset(t->slots, 0, t->nslots * sizeof *t->slots);
    t->len = t->nundo = t->nlisted = t->npending = t->bytes = 0;
}

void items_each_pending(const struct items *t, items_fn *fn, void *arg)
{
    for (size_t i = 0; i < t->nlisted; i++) {
        const struct item_entry *e = &t->entries[t->listed[i]];
        if (e->pending)
            fn(arg, e);
    }
}

void items_each_changed(const struct items *t, items_fn *fn, void *arg)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->entries[i].state != ITEM_UNTOUCHED)
            fn(arg, &t->entries[i]);
}

void items_flushed(struct items *t)
{
    for (size_t i = 0; i < t->nlisted; i++) {
        struct item_entry *e = &t->entries[t->listed[i]];
        e->pending = e->listed = false;
    }
    t->nlisted = t->npending = t->bytes = 0;
}
