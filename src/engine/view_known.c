/* Items of collections that are too large to be kept whole: those that were asked for stay in the cache of
   rows, beside the keys and within the same budget, each as a row of its own. So a field that is in use is
   read and written without the tables, however many others its hash has.

   An item's row says what the last commit left of it, or that there is none; what the running batch has made
   of it is in v->items, which is asked first. After a commit the items that are known here are brought up to
   date. Ids are never used twice, so what is left of a collection that is gone is only cold memory.

     db         behind all numbers of databases, one for each table of items
     key        the collection's id, the item's name
     type       ROW_STRING, or ROW_NONE when there is no such item
     seq        its ord
     version    the bits of its score
     value, expire_at */
#include "engine/view_internal.h"

#define FIRST_DB   (UINT32_MAX - ITEM_TABLES)
#define NAME_BYTES 512  /* longer names are left to the tables, */
#define ITEM_BYTES 4096 /* and so are larger items */

/* Where an item stands in the cache. */
struct place {
    uint32_t db, hash;
    struct slice key;
    char bytes[sizeof(int64_t) + NAME_BYTES];
};

static bool find_place(const struct item_ref *ref, struct place *ret)
{
    if (ref->table != ITEM_HASH && ref->table != ITEM_SET && ref->table != ITEM_ZSET)
        return false;
    if (ref->name.n > NAME_BYTES)
        return false;
    memcpy(ret->bytes, &ref->id, sizeof ref->id);
    if (ref->name.n)
        memcpy(ret->bytes + sizeof ref->id, ref->name.p, ref->name.n);
    ret->key = slice_of(ret->bytes, sizeof ref->id + ref->name.n);
    ret->db = FIRST_DB + (uint32_t)ref->table;
    ret->hash = cache_hash(ret->db, ret->key);
    return true;
}

/* row is NULL: there is no such item. */
static struct row *new_row(const struct place *at, const struct item_row *row)
{
    struct key_row k = {.db = at->db, .key = at->key, .type = ROW_NONE};
    if (row) {
        k.type = ROW_STRING;
        k.seq = row->ord;
        memcpy(&k.version, &row->score, sizeof k.version);
        k.value = row->value;
        k.expire_at = row->expire_at;
    }
    return row_new(&k, at->hash);
}

bool view_known_item(struct view *v, const struct item_ref *ref, bool *ret_found, struct item_row *ret)
{
    struct place at;
    const struct row *r = find_place(ref, &at) ? cache_find(v->cache, at.db, at.key, at.hash) : NULL;
    if (!r)
        return false;
    *ret_found = r->type != ROW_NONE;
    struct slice name = row_key(r);
    *ret = (struct item_row){
        .ref = *ref,
        .value = row_value(r),
        .expire_at = r->expire_at,
        .ord = r->seq,
    };
    ret->ref.name = slice_of(name.p + sizeof ref->id, ref->name.n);
    memcpy(&ret->score, &r->version, sizeof ret->score);
    return true;
}

/* After a command that failed midway the transaction's tables have what will not be committed. */
void view_know_item(struct view *v, const struct item_ref *ref, const struct item_row *row)
{
    struct place at;
    if (view_shared(v) || v->poison != ST_OK || (row && row->value.n > ITEM_BYTES) || !find_place(ref, &at))
        return;
    cache_add(v->cache, new_row(&at, row));
}

static void learn(void *arg, const struct item_entry *e)
{
    struct view *v = arg;
    struct place at;
    struct row *old = find_place(&e->row.ref, &at) ? cache_peek(v->cache, at.db, at.key, at.hash) : NULL;
    if (!old)
        return;
    if (e->state == ITEM_PUT && e->row.value.n > ITEM_BYTES) {
        cache_remove(v->cache, old);
    } else {
        struct row *fresh = new_row(&at, e->state == ITEM_PUT ? &e->row : NULL);
        fresh->heat = old->heat;
        cache_replace(v->cache, old, fresh);
    }
    row_free(old);
}

void view_learn_items(struct view *v)
{
    items_each_changed(&v->items, learn, v);
}
