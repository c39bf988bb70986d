#include "engine/row.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "store/item_tables.h"

bool row_sound(const struct key_row *k)
{
    const int64_t far = INT64_MAX / 4; /* no sum of places and sizes overflows */
    switch (k->type) {
    case ROW_NONE:
        return true;
    case ROW_STRING:
        return k->id == 0 || (k->id > 0 && k->size >= 0 && k->size < far);
    case ROW_HASH:
    case ROW_LIST:
    case ROW_SET:
    case ROW_ZSET:
        return k->id > 0 && k->size > 0 && k->size < far && k->first > -far && k->first < far &&
               (k->numbers == 0 || (k->type != ROW_LIST && k->numbers > k->size && k->numbers < far));
    case ROW_TABLE:
        return k->id > 0 && k->size == 0 && k->first == 0 && k->numbers == 0;
    default:
        return false;
    }
}

struct row *row_new(const struct key_row *k, uint32_t hash)
{
    bool ext = k->id != 0;
    size_t head = ext ? sizeof(struct row_ext) : 0;
    assert(k->key.n <= UINT32_MAX && k->value.n <= UINT32_MAX);
    struct row *r = mem_alloc(sizeof *r + head + k->key.n + k->value.n);
    *r = (struct row){
        .link.hash = hash,
        .link.tag = k->db,
        .nkey = (uint32_t)k->key.n,
        .nvalue = (uint32_t)k->value.n,
        .type = (uint8_t)k->type,
        .ext = ext,
        .seq = k->seq,
        .version = k->version,
        .expire_at = k->expire_at,
        .ticket = k->ticket,
    };
    if (ext) {
        struct row_ext e = {.id = k->id, .size = k->size, .first = k->first, .numbers = k->numbers};
        memcpy(r->data, &e, sizeof e);
    }
    if (k->key.n)
        memcpy(r->data + head, k->key.p, k->key.n);
    if (k->value.n)
        memcpy(r->data + head + k->key.n, k->value.p, k->value.n);
    return r;
}

void row_free(struct row *r)
{
    mem_free(r);
}

struct key_row row_to_key(const struct row *r)
{
    struct row_ext e = row_items(r);
    return (struct key_row){
        .seq = r->seq,
        .db = row_db(r),
        .key = row_key(r),
        .type = (enum row_type)r->type,
        .id = e.id,
        .size = e.size,
        .first = e.first,
        .numbers = e.numbers,
        .value = row_value(r),
        .version = r->version,
        .expire_at = r->expire_at,
        .ticket = r->ticket,
    };
}

/* ---- items ---- */

uint32_t item_hash(const struct item_ref *ref)
{
    uint64_t salt = (uint64_t)ref->id * ITEM_TABLES + (uint64_t)ref->table;
    if (item_named(ref->table))
        return (uint32_t)hash_bytes(ref->name, salt);
    return hash_place(ref->pos, salt);
}

bool item_is(const struct item *i, const struct item_ref *ref)
{
    if (i->id != ref->id)
        return false;
    return item_named(ref->table) ? slice_eq((struct slice){i->name, i->nname}, ref->name)
                                  : i->pos == ref->pos;
}

void item_set(struct item *i, const struct item_ref *ref, const struct item_row *row, uint32_t hash)
{
    assert(ref->name.n <= UINT32_MAX && (!row || row->value.n <= UINT32_MAX));
    *i = (struct item){.link = {.hash = hash, .tag = ITEM_TAG(ref->table)}, .absent = !row, .id = ref->id};
    if (item_named(ref->table)) {
        i->name = ref->name.p;
        i->nname = (uint32_t)ref->name.n;
    } else {
        i->pos = ref->pos;
    }
    if (!row)
        return;
    i->value = row->value.p;
    i->nvalue = (uint32_t)row->value.n;
    i->score = row->score;
    i->expire_at = row->expire_at;
    i->ord = row->ord;
}

struct item *item_new(const struct item_ref *ref, const struct item_row *row, uint32_t hash)
{
    size_t nname = item_named(ref->table) ? ref->name.n : 0, nvalue = row ? row->value.n : 0;
    struct item *i = mem_alloc(sizeof *i + nname + nvalue);
    item_set(i, ref, row, hash);
    if (nname)
        i->name = memcpy(i->data, ref->name.p, nname);
    if (nvalue)
        i->value = memcpy(i->data + nname, row->value.p, nvalue);
    return i;
}

bool item_take_over(struct item *i, const struct item *dirty)
{
    if (i->absent || dirty->absent || i->nvalue != dirty->nvalue)
        return false;
    if (i->nvalue) /* the new value may be the old one */
        memmove(i->data + i->nname, dirty->value, i->nvalue);
    i->heat = dirty->heat;
    i->score = dirty->score;
    i->expire_at = dirty->expire_at;
    i->ord = dirty->ord;
    return true;
}

struct item_row item_to_row(const struct item *i)
{
    struct item_row row = {
        .ref = {.table = (enum item_table)(i->link.tag - ITEM_TAGS), .id = i->id},
        .value = {i->value, i->nvalue},
        .score = i->score,
        .expire_at = i->expire_at,
        .ord = i->ord,
        .fresh = i->fresh,
    };
    if (item_named(row.ref.table))
        row.ref.name = (struct slice){i->name, i->nname};
    else
        row.ref.pos = i->pos;
    return row;
}

void item_free(struct item *i)
{
    mem_free(i);
}
