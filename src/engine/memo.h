/* What memory knows of collections, by id, within a budget of bytes.

   The memo of a collection has up to five parts:

   - members: all items of a small collection (resident.h)
   - names: which names an item that is only in the tables can have (below)
   - ranks: the rank blocks of a sorted set that is only in the tables (order/blocks.h)
   - ends: its first and its last members (order/window.h)
   - holes: numbers of a collection that is only in the tables which no item has (below)
   - expired: how many fields of a hash have expired (expired.h)

   A memo is only a copy that answers faster. A command that fails midway, a commit that fails and another
   process's write drop it, and the next use reads the rows again. So no part of it knows about undo. */
#ifndef LARDER_ENGINE_MEMO_H
#define LARDER_ENGINE_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "engine/expired.h"
#include "engine/order/window.h"
#include "engine/order/resident.h"

struct blocks;

/* Names that a collection has or had since it was in memory as a whole: a Bloom filter. One that is not in
   here is not in the tables either, so that an item that is new is written without looking there. Names are
   never taken out: undoing a command, a commit that fails and removing an item leave some that are not there,
   and those are looked for in the tables as any other.

   It begins with what memory had when the collection outgrew it, and every item that is added after that is
   added here (coll_put_known): a collection that was large when the server started has none. Each layer has
   four times the room of the one before it. A layer is made of blocks of a cache line each, and a name sets
   NAME_BITS bits of one block. */
#define NAME_LAYERS 12
#define NAME_BITS   6

struct name_layer {
    uint64_t (*blocks)[8];
    uint64_t nblocks;
};

struct item_names {
    struct name_layer layers[NAME_LAYERS];
    unsigned nlayers;
    uint64_t count, room; /* in the last layer */
    size_t bytes;
};

struct item_names *names_new(uint64_t room); /* for at least so many, without another layer */
void names_free(struct item_names *n);

/* hash: item_hash of the item. */
void names_add(struct item_names *n, uint32_t hash);
bool names_may_have(const struct item_names *n, uint32_t hash);

struct memo {
    struct map_link link; /* by id; no tag */
    int64_t id;
    struct memo *prev, *next; /* by last use, newest first */
    bool touched;             /* changed by the running batch */
    bool has_members;         /* else the items are only in the tables */
    bool oversize;            /* without members: the items are few but huge, and stay in the tables */
    struct resident members;  /* empty without has_members */
    struct blocks *ranks;     /* NULL: none, or not read */
    size_t ranks_bytes;       /* what they took when they were last counted */
    struct window *ends;      /* two, of the first and the last members; NULL: none */
    uint64_t *holes;          /* bits of numbers that no item has; NULL: none is known */
    int64_t nholes;           /* how many numbers it has bits of, from 0 on */
    struct item_names *names; /* NULL: any name may be in the tables */
    struct expired expired;
    size_t own_bytes; /* of the memo itself, as the allocator counts */
    size_t counted;   /* how much of the bytes of all memos is this one's */
};

/* A memo that knows nothing yet, and one of a collection without items, all of which are in memory. */
struct memo *memo_new(int64_t id);
struct memo *memo_new_members(int64_t id, enum item_table table);
void memo_free(struct memo *m);

/* All of it. */
static inline size_t memo_bytes(const struct memo *m)
{
    size_t ends = m->ends ? 2 * sizeof *m->ends + window_bytes(&m->ends[0]) + window_bytes(&m->ends[1]) : 0;
    size_t holes = (size_t)m->nholes / 8;
    return m->own_bytes + m->members.bytes + m->ranks_bytes + ends + holes + (m->names ? m->names->bytes : 0);
}

/* Holes between the numbers of a collection in the tables: those that items have left whose numbers were
   known. A bit is set by a batch that has touched the memo, and goes with it when the batch does; one that is
   not set says nothing. */
#define HOLE_NUMBERS ((int64_t)1 << 26) /* of higher ones nothing is known */

void memo_add_hole(struct memo *m, int64_t ord, int64_t numbers); /* ord < numbers, which are in use */

static inline bool memo_is_hole(const struct memo *m, int64_t ord)
{
    return ord < m->nholes && m->holes[ord / 64] >> (ord % 64) & 1;
}

/* An item has the number now. */
static inline void memo_fill_hole(struct memo *m, int64_t ord)
{
    if (ord < m->nholes)
        m->holes[ord / 64] &= ~(UINT64_C(1) << (ord % 64));
}

/* ---- all of them ---- */

/* A collection whose numbers have many holes: the sweeper will make them fewer (coll_numbers.c). One that
   finds no room here is noted when it is next used. */
#define SPARSE_KEYS 32

struct sparse_key {
    int64_t id;
    uint32_t db; /* the database's number in the tables */
    char *key;
    size_t nkey;
};

struct memos {
    struct map by_id;
    size_t bytes;
    struct memo *newest, *oldest;
    int64_t *touched; /* ids of those that the running batch changed */
    size_t ntouched, touched_cap;
    uint32_t end_members; /* that are read at an end of a sorted set, at most; 0: as coll_ends.c says */
    struct {
        int64_t id;     /* of the list in the tables that was last popped from ... */
        uint32_t ahead; /* ... of which so many items are read at once; 0: they are too large for that */
    } popped;
    struct sparse_key sparse[SPARSE_KEYS];
    size_t nsparse;
};

void memos_release(struct memos *t);
struct memo *memos_find(struct memos *t, int64_t id); /* counts as a use */
void memos_add(struct memos *t, struct memo *m);
void memos_remove(struct memos *t, struct memo *m); /* the caller owns it */
void memos_drop(struct memos *t, struct memo *m);
void memos_drop_touched(struct memos *t);
void memos_drop_all(struct memos *t);

/* Before a change by the running batch. */
void memos_touch(struct memos *t, struct memo *m);

/* After a change of the members or of ranks_bytes: what the memo takes is counted anew. */
void memos_count(struct memos *t, struct memo *m);

/* Notes a collection with many holes; the first one that was comes last, or is forgotten. */
void memos_note_sparse(struct memos *t, int64_t id, uint32_t db, struct slice key);
void memos_postpone_sparse(struct memos *t);
void memos_forget_sparse(struct memos *t);

/* The batch was committed: nothing is touched any more. */
void memos_settle(struct memos *t);

/* Drops the least recently used ones until they take at most budget bytes. */
void memos_trim(struct memos *t, size_t budget);

#endif
