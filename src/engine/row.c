#include "engine/row.h"

#include <assert.h>

#include "base/mem.h"

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
        return k->id > 0 && k->size > 0 && k->size < far && k->first > -far && k->first < far;
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
        struct row_ext e = {k->id, k->size, k->first};
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
        .value = row_value(r),
        .version = r->version,
        .expire_at = r->expire_at,
        .ticket = r->ticket,
    };
}
