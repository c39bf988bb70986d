/* Private to query/: a walk through keys and the items of collections. */
#ifndef LARDER_QUERY_REDIS_KEYS_H
#define LARDER_QUERY_REDIS_KEYS_H

#include "base/buf.h"
#include "query/query_internal.h"

enum redis_column {
    OF_DB,
    OF_KEY,
    OF_TYPE,
    OF_SIZE,
    OF_EXPIRES,
    OF_TTL,
    OF_VERSION,
    OF_BYTES, /* the key as a BLOB */
    OF_STRING,
    OF_NAME, /* a field or a member */
    OF_VALUE,
    OF_POSITION,
    OF_SCORE
};

struct redis_table {
    const char *name;
    const char *declaration;
    enum row_type type; /* ROW_NONE: all */
    bool items;         /* a row for each item, else for each key */
    enum redis_column columns[8];
};

struct redis_key {
    struct slice key;
    enum row_type type;
    int64_t id, size, first, expire_at, version;
};

struct redis_item {
    struct slice name, value;
    double score;
    int64_t position, expire_at;
};

#define WALK_KEYS  128
#define WALK_ITEMS 128

struct redis_walk {
    struct query_engine *e;
    const struct redis_table *table;
    /* what is looked for */
    struct arena given;
    uint32_t db, ndbs;      /* from the running one to before another */
    struct slice key, name; /* p is NULL: any */
    struct key_range range;
    /* where it is */
    bool ended;
    bool begun, more_keys; /* in the database, behind the last one that was looked at: */
    struct buf after;
    struct arena key_arena, item_arena;
    struct redis_key keys[WALK_KEYS];
    size_t nkeys, at;
    struct redis_item items[WALK_ITEMS];
    size_t nitems, item;
    bool more_items; /* behind the last one that was looked at: */
    struct buf last_name;
    double last_score;
    int64_t last_pos;
    size_t bytes, seen;
    uint64_t row;
};

void redis_walk_init(struct redis_walk *w, struct query_engine *e, const struct redis_table *t);
void redis_walk_release(struct redis_walk *w);

/* Before the first row: nothing is looked for yet, so everything. */
void redis_walk_begin(struct redis_walk *w);

/* The next row, or w->ended. SQLITE_OK, or an error. */
int redis_walk_next(struct redis_walk *w);

/* Of the key it is at. */
int redis_tell_size(struct redis_walk *w, sqlite3_context *ctx);
int redis_tell_string(struct redis_walk *w, sqlite3_context *ctx);

#endif
