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
    int64_t numbers; /* items have numbers below it; their size when there are no holes (not of a list) */
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

/* ---- view_items.c ---- */

/* Reads the items of one collection that memory lacks and that a command will ask for. Sorts refs. */
enum status view_read_items_ahead(struct view *v, struct item_ref *refs, size_t n) MUST_CHECK;

/* ---- coll_load.c ---- */

#define COLL_RESIDENT_BYTES (1u << 20) /* few but huge items stay in the tables */

/* What memory knows of a collection that has an id; a small one is read. */
enum status coll_attach(struct coll *c) MUST_CHECK;

/* Of a shared store, for one that is yet to be made: reads what others of the batch will ask for, as long as
   the batch has changed nothing. Later, what it has changed would have to be written first. */
enum status coll_load_mates(struct coll *c) MUST_CHECK;

/* The members are in memory, in this memo. */
void coll_use_members(struct coll *c, struct memo *m);

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

/* Takes the row of an item out that is there. Its ord may be -1: not known. */
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

/* What the key's row says of the numbers. */
static inline int64_t coll_numbers(const struct coll *c)
{
    return c->type == ROW_LIST || c->numbers == c->size ? 0 : c->numbers;
}

/* The key's row as it is now. */
static inline struct row_draft coll_draft(const struct coll *c, enum row_form form)
{
    return (struct row_draft){
        .type = c->type,
        .id = c->id,
        .size = c->size,
        .first = c->first,
        .numbers = coll_numbers(c),
        .expire_at = c->expire_at,
        .form = form,
    };
}

/* ---- coll_numbers.c ---- */

/* Notes that a collection has too many numbers for its items, if it has. */
void coll_note_sparse(struct coll *c, const struct row *row);

/* Moves up to max items of a collection to lower numbers, if it has too many; *ret_more: still. */
enum status coll_renumber(struct view *v, uint32_t db, struct slice key, uint32_t max, uint32_t *ret_moved,
                          bool *ret_more) MUST_CHECK;

/* ---- coll_expire.c ---- */

/* Notes how many fields have expired, for the next coll_open of the hash. */
void coll_keep_expired(struct coll *c);

/* Removes up to max fields of a hash that have expired, or all of it when nothing else is left, and sets
   first_expiry right. *ret_rows: how many rows that took, 0 when there was nothing to do. */
enum status coll_purge(struct view *v, uint32_t db, struct slice key, uint32_t max,
                       uint32_t *ret_rows) MUST_CHECK;

/* ---- view_items.c ---- */

/* Items of one id by their numbers: fn is called for those that there are, in the order asked, until it says
   ST_STOP. It must not write. */
enum status view_items_at(struct view *v, enum item_table table, int64_t id, const int64_t *ords, size_t n,
                          store_item_fn *fn, void *arg) MUST_CHECK;

/* An item that nobody has looked for in the tables, as its name is new; it stays in memory as if they had. */
enum status view_add_kept_item(struct view *v, const struct item_row *row) MUST_CHECK;

/* Every item of a range at once, however many there are. Costs a change set of its own within the batch: for
   few items view_del_item is cheaper. */
enum status view_del_range(struct view *v, const struct item_range *r) MUST_CHECK;

/* item_hash, which is known of an item that was fetched ahead. */
uint32_t view_item_hash(const struct view *v, const struct item_ref *ref);

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

/* The memo of a sorted set in the tables, with its ranks. */
enum status coll_ranks(struct coll *c, struct memo **ret) MUST_CHECK;

/* ---- coll_ends.c: of a set that lives in the tables, m is its memo ---- */

/* The window at the end where the set begins, or (reverse) ends, with at least `depth` members. *ret is NULL
   when that is too many to have in memory. Valid until the set changes. */
enum status coll_end(struct coll *c, struct memo *m, bool reverse, int64_t depth,
                     const struct window **ret) MUST_CHECK;

/* The rank of a place that one of the windows covers; false: none does. */
bool coll_end_rank(const struct coll *c, const struct memo *m, double score, struct slice name, int64_t *ret);

/* Reads until the window covers a place or has as much as it may. */
enum status coll_end_reach(struct coll *c, struct memo *m, bool reverse, double score,
                           struct slice name) MUST_CHECK;

/* Before a member comes (was is NULL), goes (now is NULL) or gets another score. */
void coll_end_change(struct coll *c, struct memo *m, const struct coll_item *was,
                     const struct coll_item *now);

/* Before all members between two, with them, go at once. The marks stay: nothing lives there any more. */
void coll_end_remove(struct memo *m, const struct coll_item *first, const struct coll_item *last);

/* A member that a window has, with its score; its number is not known. */
bool coll_end_find(const struct coll *c, struct slice name, struct coll_item *ret);

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
