/* What the files of collections share. */
#ifndef LARDER_ENGINE_COLL_INTERNAL_H
#define LARDER_ENGINE_COLL_INTERNAL_H

#include "engine/coll.h"
#include "engine/memo.h"
#include "engine/view_internal.h"

/* A field as it was before the handle changed it. */
struct field_note {
    struct field_note *next;
    struct slice name, value;
    bool found;
};

struct coll {
    struct view *v;
    uint32_t db;
    struct slice key;
    enum row_type type;
    enum item_table table;
    int64_t id;     /* 0: none yet */
    int64_t row_id; /* what the key's row has as its id */
    int64_t size;   /* items in the tables, expired fields included */
    union {         /* as in struct key_row */
        int64_t first;
        int64_t first_pos;    /* of a list */
        int64_t first_expiry; /* of a hash */
        int64_t next_block;   /* of a sorted set */
    };
    int64_t expired; /* a hash's fields that have expired: no command sees them */
    bool due;        /* it may have any */
    int64_t expire_at;
    bool dirty;
    enum row_form form;
    bool replaces;        /* whatever is under the key goes */
    struct memo *memo;    /* that has the members; NULL with res */
    struct resident *res; /* its members; NULL: only in the tables */
    /* Of a hash, for the keeper (keeper.h), while the key's row refers to these items. */
    bool kept_known;
    const struct kept *kept;  /* what is kept of it, when that is known; NULL: nothing */
    struct field_note *notes; /* fields that matter there and have changed since the last save */
};

/* Before the first write: an id, for a collection that has none. */
enum status coll_prepare(struct coll *c) MUST_CHECK;

/* ---- coll.c ---- */

struct coll_item coll_from_member(const struct member *m);

/* The collection of a live row. */
enum status coll_of_row(struct view *v, uint32_t db, const struct row *r, struct coll **ret) MUST_CHECK;

/* A handle on the items of a hash, by what a key's row says of them; it is only read from. */
enum status coll_of_items(struct view *v, struct slice key, const struct row_ext *items,
                          struct coll **ret) MUST_CHECK;

/* An item that is in the tables, expired or not. */
enum status coll_find_stored(struct coll *c, struct slice name, bool *ret_found,
                             struct coll_item *ret) MUST_CHECK;

/* Takes an item out that is there; the last one gets its number. */
enum status coll_take_out(struct coll *c, const struct coll_item *item) MUST_CHECK;

/* Hands rows of a scan on as items, but for those that have expired by hide_until. */
struct coll_walk {
    coll_fn *fn;
    void *arg;
    int64_t seen;       /* how many were shown */
    bool stopped;       /* fn has ended it: ST_STOP */
    int64_t most;       /* when there is one more, the walk ends with ST_CORRUPT; 0: any number */
    int64_t hide_until; /* fields that expired until then are left out; 0: none is */
};
enum status coll_walk_row(void *walk, const struct item_row *row) MUST_CHECK;

/* Walks over rows of which n have to be there. More are as wrong as fewer: a reply may have said n
   already, and memory been set aside for so many. */
enum status coll_walk_all(struct coll *c, const struct item_scan *q, int64_t n, coll_fn *fn,
                          void *arg) MUST_CHECK;

/* Every item by its number. */
enum status coll_by_ord(struct coll *c, coll_fn *fn, void *arg) MUST_CHECK;

/* Empties a collection: the rows stay as they are, under an id that the key will not have any more. */
void coll_begin_anew(struct coll *c);

/* Before the items with these numbers go all at once, n < size: the last ones take their numbers. Only in the
   tables. */
enum status coll_renumber(struct coll *c, const int64_t *gone, size_t n) MUST_CHECK;

/* ---- coll_expire.c ---- */

/* Notes how many fields have expired, for the next coll_open of the hash. */
void coll_keep_expired(struct coll *c);

/* Removes up to max fields of a hash that have expired, or all of it when nothing else is left, and sets
   first_expiry right. *ret_rows: how many rows that took, 0 when there was nothing to do. */
enum status coll_purge(struct view *v, uint32_t db, struct slice key, uint32_t max,
                       uint32_t *ret_rows) MUST_CHECK;

/* ---- view_keep.c ---- */

/* Whether changes of fields have to be noted: a hash that has no row yet is told of as a whole. */
static inline bool coll_notes(const struct coll *c)
{
    return c->type == ROW_HASH && keep_any(&c->v->keep) && c->id && c->row_id == c->id;
}

/* Before a field changes: as it was, NULL when it was not there. */
enum status coll_note(struct coll *c, struct slice name, const struct coll_item *old) MUST_CHECK;

/* Before the row of a hash with notes is written: the keeper is told of them. */
enum status coll_tell(struct coll *c) MUST_CHECK;

/* ---- coll_zset.c ---- */

/* Before a member of a sorted set comes (was is NULL), goes (now is NULL) or gets another score. */
enum status coll_zset_change(struct coll *c, const struct coll_item *was,
                             const struct coll_item *now) MUST_CHECK;

/* Before the key row of a changed sorted set is written. */
enum status coll_zset_settle(struct coll *c) MUST_CHECK;

/* A change of the members, counted. Nothing happens when the collection is not in memory. */
#define COLL_RESIDENT(c, change)                                                                             \
    do {                                                                                                     \
        if ((c)->res) {                                                                                      \
            memos_touch(&(c)->v->memos, (c)->memo);                                                          \
            change;                                                                                          \
            memos_count(&(c)->v->memos, (c)->memo);                                                          \
        }                                                                                                    \
    } while (0)

#endif
