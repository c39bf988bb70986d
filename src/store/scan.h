/* What a store is asked for when it is asked for many rows: which, in which order, and who takes them. */
#ifndef LARDER_STORE_SCAN_H
#define LARDER_STORE_SCAN_H

#include "base/status.h"
#include "store/rows.h"

/* Called for each row. ST_STOP ends the read, which then returns ST_OK; so does anything else but ST_OK, and
   is returned. Must not call the store. */
typedef enum status store_key_fn(void *arg, const struct key_row *row);
typedef enum status store_item_fn(void *arg, const struct item_row *row);

enum key_order {
    KEYS_BY_SEQ_DESC, /* newest first, rows of every database number: the order of SCAN (see
                         docs/schema.md) */
    KEYS_BY_KEY,      /* byte order of the key */
    KEYS_DUE, /* hashes that may have expired fields: those with a first_expiry at or before `now`, earliest
                 first, of every database number */
    KEYS_EXPIRED, /* rows whose expiry (not: deletion) is at or before `now`, earliest first, of every
                     database number; they come as they stand */
    KEYS_TABLES   /* those of type ROW_TABLE, as BY_KEY but never reverse, by an index that has no others; or
                     (every_db) of every database number, by number and key, without bounds */
};
#define KEY_ORDERS 5

/* A place in the order KEYS_EXPIRED. */
struct expiry_place {
    int64_t expire_at;
    uint32_t db;
    int64_t seq;
};

struct key_scan {
    uint32_t db; /* BY_KEY, TABLES only */
    enum key_order order;
    bool every_db;       /* TABLES */
    int64_t seq_below;   /* BY_SEQ_DESC: only rows with seq < this */
    struct slice prefix; /* BY_KEY, TABLES: only keys that start so ... */
    struct slice from;   /* ... and are >= this ... */
    struct slice after;  /* ... and > this, when has_after ... */
    struct slice before; /* ... and < this, when has_before */
    bool has_after, has_before;
    bool reverse;               /* BY_KEY: the last one first */
    struct expiry_place behind; /* EXPIRED: only rows behind this place, when has_behind */
    bool has_behind;
    /* A hash whose fields have all expired by then is handed out as ROW_NONE; 0: rows come as they stand. */
    int64_t now;
    bool with_value; /* else row.value is empty: cheaper */
    uint32_t limit;  /* rows handed out at most */
};

/* A range of one id's items, in the order that its table has. Bounds are inclusive and optional. */
struct item_scan {
    enum item_table table;
    int64_t id;
    enum item_order order;
    bool reverse;
    bool has_min, has_max;
    int64_t min, max;                /* BY_POS, BY_ORD, BY_EXPIRY */
    struct slice min_name, max_name; /* BY_NAME; BY_SCORE: they break ties, a max_name of NULL bounds none */
    double min_score, max_score;     /* BY_SCORE */
    bool below_max;                  /* BY_SCORE, BY_NAME: what equals max is out of the range */
    uint32_t skip;                   /* rows left out at the start of the range */
    uint32_t limit;
    /* BY_ORD: only items with these numbers, in this order; in one round trip. Nothing else counts then. */
    const int64_t *ords;
    uint32_t nords; /* 0: a range */
};

/* The range that has one of those numbers alone. */
static inline struct item_scan item_scan_at(const struct item_scan *q, uint32_t i)
{
    return (struct item_scan){.table = q->table,
                              .id = q->id,
                              .order = ITEMS_BY_ORD,
                              .has_min = true,
                              .has_max = true,
                              .min = q->ords[i],
                              .max = q->ords[i],
                              .limit = 1};
}

/* What a transaction declares: what it will use, so far as that is known before it begins. */
struct store_declared {
    const struct key_ref *keys;
    size_t nkeys;
    const struct key_ref *peeked; /* keys whose rows are read with the others, and not locked */
    size_t npeeked;
    bool everything; /* whole databases: no other transaction may write meanwhile */
    bool rows_only;  /* it will hardly ask for anything but the rows of these keys */
    /* Of one that may write: the same, whatever is peeked at. A shared store may then lock nothing, and
       compare what it writes over with what was read when it is committed. Rows that were read and are not
       written may have changed by then, unless they are tied. */
    bool loose;
    bool items; /* of one that is: it may read whole collections, too, and what is peeked at has been */
    bool tied;
    store_key_fn *fn; /* called by store_begin for each of all these keys that has a row, in any order */
    void *arg;
};

#endif
