/* A key's row in memory: one allocation, the key and (for a short string) the value behind the header.

   A row does not change once it is in the cache, but for its links and marks: a write makes a new row that
   takes the old one's place, so that a failed command or commit only has to put the old one back. */
#ifndef LARDER_ENGINE_ROW_H
#define LARDER_ENGINE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"
#include "store/store.h"

struct row {
    struct map_link link; /* in the cache; its tag is the database's number in the tables */
    uint32_t nkey;
    uint32_t nvalue;
    uint8_t type;     /* enum row_type; ROW_NONE: known to be absent, or deleted */
    uint8_t dirty;    /* changed and not committed yet: never evicted */
    uint8_t heat;     /* hits since the eviction hand last passed, up to ROW_HEAT_MAX */
    uint8_t ext : 1;  /* id, size and first stand before the key */
    uint8_t form : 2; /* enum row_form; in memory alone */
    union {
        uint32_t change; /* dirty: where the batch keeps track of it */
        uint32_t used;   /* clean: when it was last asked for, seconds since the epoch; 0: not yet */
    };
    int64_t seq;
    int64_t version;
    int64_t expire_at;
    int64_t ticket; /* of the change set that it came with: until that is durable, nobody may be told of it */
    char data[];
};

#define ROW_HEAT_MAX 3

/* How Redis would keep the value, where that depends on how it came to be: what OBJECT ENCODING tells. A row
   that comes from the tables has forgotten, as Redis has after a restart. */
enum row_form {
    FORM_UNKNOWN, /* as the value and the limits of today say */
    FORM_RAW,     /* a string that was changed in place; the same number as FORM_LARGE */
    FORM_TEXT,    /* a string that is none of the integers it looks like; the same number as FORM_SMALL */
    FORM_LARGE = FORM_RAW,
    FORM_SMALL = FORM_TEXT
};

/* What only rows with items need; kept out of short strings, which are most rows. */
struct row_ext {
    int64_t id;
    int64_t size;
    int64_t first;
};

/* The database's number in the tables. */
static inline uint32_t row_db(const struct row *r)
{
    return r->link.tag;
}

static inline struct slice row_key(const struct row *r)
{
    return (struct slice){r->data + (r->ext ? sizeof(struct row_ext) : 0), r->nkey};
}

/* The inline value. A string in chunks has none here: ask view_string. */
static inline struct slice row_value(const struct row *r)
{
    return (struct slice){r->data + (r->ext ? sizeof(struct row_ext) : 0) + r->nkey, r->nvalue};
}

static inline struct row_ext row_items(const struct row *r)
{
    struct row_ext e = {0, 0, 0};
    if (r->ext)
        memcpy(&e, r->data, sizeof e);
    return e;
}

/* Of its allocation. */
static inline size_t row_footprint(const struct row *r)
{
    return sizeof *r + (r->ext ? sizeof(struct row_ext) : 0) + r->nkey + r->nvalue;
}

/* Bytes of a string, inline or in chunks. */
static inline int64_t row_string_size(const struct row *r)
{
    return r->ext ? row_items(r).size : (int64_t)r->nvalue;
}

static inline bool row_live(const struct row *r, int64_t now)
{
    return r->type != ROW_NONE && (r->expire_at == EXPIRE_NEVER || r->expire_at > now);
}

/* Whether a row from the tables can be one that we wrote. Others may have written there as well. */
bool row_sound(const struct key_row *k);

/* A new row with a copy of everything in k. */
struct row *row_new(const struct key_row *k, uint32_t hash);
void row_free(struct row *r);

/* The row as the store takes it; slices borrow r. */
struct key_row row_to_key(const struct row *r);

#endif
