/* Rows in memory, of two kinds: of keys (struct row) and of items (struct item).

   A row does not change once it is in the cache, but for its links and marks: a write makes a new row that
   takes the old one's place, so that a failed command or commit only has to put the old one back. */
#ifndef LARDER_ENGINE_ROW_H
#define LARDER_ENGINE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slice.h"
#include "store/store.h"

/* What the cache knows of any row: rows of both kinds begin with the same members. */
struct row_head {
    struct map_link link;
    uint8_t kinds_own;
    uint8_t dirty; /* changed and not committed yet: never evicted */
    uint8_t heat;  /* hits since the eviction hand last passed, up to ROW_HEAT_MAX */
};

#define ROW_HEAT_MAX 3

/* ---- keys ---- */

/* One allocation, the key and (for a short string) the value behind the header. */
struct row {
    struct map_link link; /* in the cache; its tag is the database's number in the tables */
    uint8_t type;         /* enum row_type; ROW_NONE: known to be absent, or deleted */
    uint8_t dirty;        /* see struct row_head */
    uint8_t heat;
    uint8_t ext : 1;  /* id, size, first and numbers stand before the key */
    uint8_t form : 2; /* enum row_form; in memory alone */
    union {
        uint32_t change; /* dirty: where the batch keeps track of it */
        uint32_t used;   /* clean: when it was last asked for, seconds since the epoch; 0: not yet */
    };
    uint32_t nkey;
    uint32_t nvalue;
    int64_t seq;
    int64_t version;
    int64_t expire_at;
    int64_t ticket; /* of the change set that it came with: until that is durable, no reply tells of it */
    char data[];
};

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
    union { /* as in struct key_row */
        int64_t first;
        int64_t first_pos;    /* of a list */
        int64_t first_expiry; /* of a hash */
        int64_t next_block;   /* of a sorted set */
    };
    int64_t numbers;
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
    struct row_ext e = {.id = 0};
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

/* Whether a row from the tables can be one that this program wrote. Applications may have written there as
   well. */
bool row_sound(const struct key_row *k);

/* A new row with a copy of everything in k. */
struct row *row_new(const struct key_row *k, uint32_t hash);
void row_free(struct row *r);

/* The row as the store takes it; slices borrow r. */
struct key_row row_to_key(const struct row *r);

/* ---- items ---- */

/* An item as a commit left it (clean), in one allocation with its name and value behind the header; or as the
   running batch makes it (dirty), in the batch's arena, with a name and a value that the caller keeps until
   the commit. */
struct item {
    struct map_link link; /* in the cache; its tag is ITEM_TAG of its table */
    uint8_t absent;       /* there is no such item, or no more */
    uint8_t dirty;        /* see struct row_head */
    uint8_t heat;
    uint8_t fresh : 1;  /* dirty: the tables have no row for it, so that when it goes nothing is left to do */
    uint8_t cached : 1; /* dirty: there was a clean one in its place, and will be when it is committed */
    uint8_t replaced : 1; /* dirty: in the running transaction, and another dirty one is in its place */
    uint32_t change;      /* dirty: where the batch keeps track of it; clean: the cache's stamp */
    int64_t id;           /* of the collection */
    union {
        const char *name; /* as its table names items: by bytes, ... */
        int64_t pos;      /* ... or by a position */
    };
    const char *value;
    uint32_t nname, nvalue;
    double score;
    int64_t expire_at;
    int64_t ord;
    char data[];
};

/* No database has such a number. */
#define ITEM_TAGS       (UINT32_MAX - ITEM_TABLES)
#define ITEM_TAG(table) (ITEM_TAGS + (uint32_t)(table))

_Static_assert(offsetof(struct row, dirty) == offsetof(struct row_head, dirty) &&
                   offsetof(struct row, heat) == offsetof(struct row_head, heat) &&
                   offsetof(struct item, dirty) == offsetof(struct row_head, dirty) &&
                   offsetof(struct item, heat) == offsetof(struct row_head, heat),
               "rows of both kinds begin alike");

uint32_t item_hash(const struct item_ref *ref);

/* Whether an item of the same table is the one that ref names. */
bool item_is(const struct item *i, const struct item_ref *ref);

/* A clean item with copies of the name and everything in row; row is NULL: there is no such item. */
struct item *item_new(const struct item_ref *ref, const struct item_row *row, uint32_t hash);

/* Fills a dirty item, which borrows name and value; row is NULL: the item goes. */
void item_set(struct item *i, const struct item_ref *ref, const struct item_row *row, uint32_t hash);

/* Gives a clean item that nobody reads any more what a dirty one of the same name has, when that fits where
   it is. */
bool item_take_over(struct item *i, const struct item *dirty);

/* The item as the store takes it; slices borrow what the item has. */
struct item_row item_to_row(const struct item *i);

/* Of a clean item. */
void item_free(struct item *i);

#endif
