/* What memory knows of collections, by id, within a budget of bytes.

   The memo of a collection has up to three parts, each of them with a file of its own:

   - members: all items of a small collection (resident.h)
   - ranks: the rank blocks of a sorted set that is only in the tables (blocks.h)
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
#include "engine/resident.h"

struct blocks;

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
    return m->own_bytes + m->members.bytes + m->ranks_bytes;
}

/* ---- all of them ---- */

struct memos {
    struct map by_id;
    size_t bytes;
    struct memo *newest, *oldest;
    int64_t *touched; /* ids of those that the running batch changed */
    size_t ntouched, touched_cap;
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

/* The batch was committed: nothing is touched any more. */
void memos_settle(struct memos *t);

/* Drops the least recently used ones until they take at most budget bytes. */
void memos_trim(struct memos *t, size_t budget);

#endif
