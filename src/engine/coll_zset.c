/* Sorted sets by rank and by score.

   In memory the members are an array in order. A set that lives in the tables has rank blocks
   (order/blocks.h): rows of larder_zset_block, and a copy of them in what memory knows of the set (memo.h),
   which is read when a command asks for a rank and dropped whenever members in memory would be. Adding or
   removing a member changes the count of one block, in the same transaction; a batch that changes a block
   many times writes its row once.

   A set that has just outgrown memory has no rows of blocks yet and counts as one block. The first write to
   it makes rows, and when a command is done, blocks that have grown too large are divided. A block that gets
   small is joined with its neighbour, and a set that is in memory again loses its blocks at the next write.
   The key row knows: next_block is the next number for one, 0 as long as there are none. */
#include "engine/coll.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "engine/order/blocks.h"
#include "engine/coll_internal.h"

#define EMPTY      ((struct slice){"", 0})
#define REMOVE_FEW 64  /* members are removed one by one rather than as a range */
#define KEEP_FEW   256 /* are copied, and stay, rather than that all others are removed */

/* ---- the blocks of a set in the tables ---- */

static enum status take_block(void *arg, const struct item_row *row)
{
    struct blocks *b = arg;
    struct block *block = blocks_insert(b, b->len, row->score, row->value);
    block->number = row->ref.pos;
    block->count = row->ord;
    return ST_OK;
}

static struct item_scan every_block(const struct coll *c)
{
    return (struct item_scan){.table = ITEM_ZBLOCK, .id = c->id, .order = ITEMS_BY_POS, .limit = UINT32_MAX};
}

static enum status read_blocks(struct coll *c, struct blocks *b)
{
    if (c->next_block == 0) {
        blocks_insert(b, 0, -INFINITY, EMPTY)->count = c->size;
        return ST_OK;
    }
    struct item_scan q = every_block(c);
    enum status st = view_scan_items(c->v, &q, take_block, b);
    if (st == ST_OK && (!blocks_sort(b) || blocks_before(b, b->len) != c->size))
        st = error_set(c->v->call.err, ST_CORRUPT,
                       "the rank blocks of a sorted set do not add up to its %lld members",
                       (long long)c->size);
    return st;
}

static void count_bytes(struct coll *c, struct memo *m)
{
    m->ranks_bytes = blocks_bytes(m->ranks);
    memos_count(&c->v->memos, m);
}

enum status coll_ranks(struct coll *c, struct memo **ret)
{
    assert(!c->res);
    struct memo *m = memos_find(&c->v->memos, c->id);
    if (!m || !m->ranks) {
        struct blocks *b = blocks_new();
        enum status st = read_blocks(c, b);
        if (st != ST_OK) {
            blocks_free(b);
            return st;
        }
        if (!m) {
            m = memo_new(c->id);
            memos_add(&c->v->memos, m);
        }
        m->ranks = b;
        count_bytes(c, m);
        if (view_has_changes(c->v)) /* they may count what the batch wrote */
            memos_touch(&c->v->memos, m);
    }
    *ret = m;
    return ST_OK;
}

static struct item_ref block_ref(const struct coll *c, int64_t number)
{
    return (struct item_ref){.table = ITEM_ZBLOCK, .id = c->id, .pos = number};
}

/* Writes a block's row. A new block gets its number here. */
static enum status put_block(struct coll *c, struct block *b)
{
    bool fresh = b->number == 0;
    if (fresh) {
        if (c->next_block == 0)
            c->next_block = 1;
        b->number = c->next_block++;
    }
    struct item_row row = {
        .ref = block_ref(c, b->number),
        .score = b->score,
        .value = arena_copy(&c->v->batch.arena, block_name(b)),
        .ord = b->count,
    };
    return fresh ? view_add_item(c->v, &row) : view_put_item(c->v, &row);
}

/* Adds the members of block i to those of the block before it, whose range it then belongs to. */
static enum status join(struct coll *c, struct blocks *b, size_t i)
{
    struct item_ref gone = block_ref(c, b->at[i].number);
    enum status st = gone.pos ? view_del_item(c->v, &gone) : ST_OK;
    b->at[i - 1].count += b->at[i].count;
    blocks_erase(b, i, 1);
    return st == ST_OK ? put_block(c, &b->at[i - 1]) : st;
}

/* The count of block i has changed: its row is written, or it is joined with a neighbour. */
static enum status recount(struct coll *c, struct blocks *b, size_t i)
{
    assert(b->at[i].count >= 0);
    if (b->at[i].count < BLOCK_MIN) {
        if (i > 0 && b->at[i - 1].count + b->at[i].count <= BLOCK_JOIN)
            return join(c, b, i);
        if (i + 1 < b->len && b->at[i + 1].count + b->at[i].count <= BLOCK_JOIN)
            return join(c, b, i + 1);
    }
    return put_block(c, &b->at[i]);
}

static enum status adjust(struct coll *c, struct blocks *b, const struct coll_item *item, int64_t delta)
{
    size_t i = blocks_find(b, item->score, item->name);
    blocks_add(b, i, delta);
    return recount(c, b, i);
}

static enum status take_number(void *arg, const struct item_row *row)
{
    struct blocks *b = arg;
    blocks_insert(b, b->len, 0, EMPTY)->number = row->ref.pos;
    return ST_OK;
}

/* Ranks of a set in memory need no blocks. */
static enum status drop_blocks(struct coll *c)
{
    struct blocks *b = blocks_new();
    struct item_scan q = every_block(c);
    enum status st = view_scan_items(c->v, &q, take_number, b);
    for (size_t i = 0; st == ST_OK && i < b->len; i++) {
        struct item_ref gone = block_ref(c, b->at[i].number);
        st = view_del_item(c->v, &gone);
    }
    blocks_free(b);
    c->next_block = 0;
    return st;
}

enum status coll_zset_change(struct coll *c, const struct coll_item *was, const struct coll_item *now)
{
    if (c->res)
        return c->next_block ? drop_blocks(c) : ST_OK;
    bool stays = was && now && !(was->score < now->score) && !(was->score > now->score);
    if (stays && signbit(was->score) == signbit(now->score))
        return ST_OK;
    struct memo *m;
    enum status st = coll_ranks(c, &m);
    if (st != ST_OK)
        return st;
    memos_touch(&c->v->memos, m);
    coll_end_change(c, m, was, now);
    if (stays) /* another zero */
        return ST_OK;
    if (was)
        st = adjust(c, m->ranks, was, -1);
    if (st == ST_OK && now)
        st = adjust(c, m->ranks, now, 1);
    return st;
}

/* ---- dividing blocks ---- */

struct divide {
    struct arena *arena;
    int64_t piece; /* members of each part */
    int64_t seen;
    double prev_score;
    struct slice prev_name;
    struct fence {
        double score;
        struct slice name;
    } * fences;
    size_t n;
};

static enum status divide_at(void *arg, const struct item_row *row)
{
    struct divide *d = arg;
    if (d->seen && d->seen % d->piece == 0) {
        struct slice name = blocks_separator(d->prev_score, d->prev_name, row->score, row->ref.name);
        d->fences[d->n++] = (struct fence){row->score, arena_copy(d->arena, name)};
    }
    d->seen++;
    if (d->seen % d->piece == 0) {
        d->prev_score = row->score;
        d->prev_name = arena_copy(d->arena, row->ref.name);
    }
    return ST_OK;
}

static enum status divide(struct coll *c, struct blocks *b, size_t i)
{
    int64_t count = b->at[i].count;
    int64_t parts = (count + BLOCK_TARGET - 1) / BLOCK_TARGET;
    struct divide d = {.arena = &c->v->call.scratch, .piece = (count + parts - 1) / parts};
    d.fences = arena_alloc(d.arena, (size_t)parts * sizeof *d.fences);
    struct item_scan q = {
        .table = ITEM_ZSET,
        .id = c->id,
        .order = ITEMS_BY_SCORE,
        .has_min = true,
        .min_score = b->at[i].score,
        .min_name = block_name(&b->at[i]),
        .limit = (uint32_t)count,
    };
    enum status st = view_scan_items(c->v, &q, divide_at, &d);
    if (st == ST_OK && d.seen != count)
        st = error_set(c->v->call.err, ST_CORRUPT, "a rank block says %lld members but %lld were found",
                       (long long)count, (long long)d.seen);
    for (size_t k = 0; st == ST_OK && k < d.n; k++) {
        struct block *fresh = blocks_insert(b, i + k + 1, d.fences[k].score, d.fences[k].name);
        int64_t left = count - (int64_t)(k + 1) * d.piece;
        fresh->count = left < d.piece ? left : d.piece;
        st = put_block(c, fresh);
    }
    b->at[i].count = d.piece;
    b->tree_valid = false;
    return st == ST_OK ? put_block(c, &b->at[i]) : st;
}

enum status coll_zset_settle(struct coll *c)
{
    struct memo *m = c->res ? NULL : memos_find(&c->v->memos, c->id);
    enum status st = ST_OK;
    if (!m || !m->ranks)
        return ST_OK;
    struct blocks *b = m->ranks;
    if (b->grown) {
        for (size_t i = b->len; st == ST_OK && i-- > 0;)
            if (b->at[i].count > BLOCK_MAX)
                st = divide(c, b, i);
        b->grown = false;
    }
    count_bytes(c, m);
    return st;
}

/* ---- reading ---- */

/* Puts members in memory into order, and counts what that takes. */
static struct member *const *sort(struct coll *c)
{
    struct member *const *sorted = resident_sorted(c->res);
    memos_count(&c->v->memos, c->memo);
    return sorted;
}

/* How many members come before a place in the order. */
static enum status position(struct coll *c, double score, struct slice name, int64_t *ret)
{
    if (c->res) {
        sort(c);
        *ret = (int64_t)resident_rank(c->res, score, name);
        return ST_OK;
    }
    struct memo *m;
    enum status st = coll_ranks(c, &m);
    if (st != ST_OK)
        return st;
    if (coll_end_rank(c, m, score, name, ret))
        return ST_OK;
    size_t i = blocks_find(m->ranks, score, name);
    const struct block *b = &m->ranks->at[i];
    *ret = blocks_before(m->ranks, i);
    if (score_compare(b->score, block_name(b), score, name) == 0)
        return ST_OK;
    if (i == 0 || i + 1 == m->ranks->len) { /* near an end: rows may be there that are known to be gone */
        st = coll_end_reach(c, m, i > 0, score, name);
        if (st != ST_OK || coll_end_rank(c, m, score, name, ret))
            return st;
    }
    struct item_scan q = {
        .table = ITEM_ZSET,
        .id = c->id,
        .order = ITEMS_BY_SCORE,
        .has_min = true,
        .min_score = b->score,
        .min_name = block_name(b),
        .has_max = true,
        .max_score = score,
        .max_name = name,
        .below_max = true,
    };
    int64_t inside;
    st = view_count_items(c->v, &q, &inside);
    if (st == ST_OK)
        *ret += inside;
    return st;
}

enum status coll_rank_of(struct coll *c, const struct coll_bound *b, bool upper, int64_t *ret)
{
    bool behind = upper != b->exclusive; /* members that equal the bound come before it */
    if (c->size == 0) {
        *ret = 0;
        return ST_OK;
    }
    if (!behind)
        return position(c, b->score, b->has_name ? b->name : EMPTY, ret);
    if (!b->has_name) {
        if (isinf(b->score) && b->score > 0) {
            *ret = c->size;
            return ST_OK;
        }
        return position(c, nextafter(b->score, INFINITY), EMPTY, ret);
    }
    return position(c, b->score, arena_next(&c->v->call.scratch, b->name), ret);
}

static enum status walk_memory(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn, void *arg)
{
    struct member *const *sorted = sort(c);
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i <= to - from; i++) {
        struct coll_item item = coll_from_member(sorted[reverse ? to - i : from + i]);
        st = fn(arg, &item);
    }
    return status_of_walk(st);
}

/* Members of a set in the tables whose ranks are within `depth` of an end. *ret_done: they have been walked
   over. */
static enum status walk_end(struct coll *c, struct memo *m, int64_t from, int64_t to, bool reverse,
                            struct coll_walk *walk, bool *ret_done)
{
    bool high = c->size - from < to + 1;
    const struct window *w;
    enum status st = coll_end(c, m, high, high ? c->size - from : to + 1, &w);
    *ret_done = w;
    for (int64_t i = 0; w && st == ST_OK && i <= to - from; i++) {
        int64_t rank = reverse ? to - i : from + i;
        const struct window_item *found = window_at(w, (size_t)(high ? c->size - 1 - rank : rank));
        struct coll_item item = {.name = window_name(found), .score = found->score, .ord = -1};
        st = walk->fn(walk->arg, &item);
    }
    return status_of_walk(st);
}

enum status coll_by_rank(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn, void *arg)
{
    assert(from >= 0 && from <= to && to < c->size);
    if (c->res)
        return walk_memory(c, from, to, reverse, fn, arg);
    struct memo *m;
    enum status st = coll_ranks(c, &m);
    if (st != ST_OK)
        return st;
    struct coll_walk w = {.fn = fn, .arg = arg};
    bool done;
    st = walk_end(c, m, from, to, reverse, &w, &done);
    if (st != ST_OK || done)
        return st;
    struct blocks *b = m->ranks;
    int64_t before;
    size_t i = blocks_at_rank(b, reverse ? to : from, &before);
    struct item_scan q = {
        .table = ITEM_ZSET,
        .id = c->id,
        .order = ITEMS_BY_SCORE,
        .reverse = reverse,
        .limit = (uint32_t)(to - from + 1),
    };
    if (!reverse) {
        q.has_min = true;
        q.min_score = b->at[i].score;
        q.min_name = block_name(&b->at[i]);
        q.skip = (uint32_t)(from - before);
    } else {
        if (i + 1 < b->len) {
            q.has_max = q.below_max = true;
            q.max_score = b->at[i + 1].score;
            q.max_name = block_name(&b->at[i + 1]);
        }
        q.skip = (uint32_t)(before + b->at[i].count - 1 - to);
    }
    st = view_scan_items(c->v, &q, coll_walk_row, &w);
    if (st == ST_OK && w.seen != to - from + 1 && !w.stopped)
        st = error_set(c->v->call.err, ST_CORRUPT, "members %lld to %lld of %lld are not all there",
                       (long long)from, (long long)to, (long long)c->size);
    return st;
}

/* ---- removing a range ---- */

struct gather {
    struct arena *arena;
    struct coll_item *items;
    size_t n;
};

static enum status gather_item(void *arg, const struct coll_item *item)
{
    struct gather *g = arg;
    g->items[g->n] = *item;
    g->items[g->n++].name = arena_copy(g->arena, item->name);
    return ST_OK;
}

/* The index of scores does not tell the members' numbers. */
static enum status find_ords(struct coll *c, struct coll_item *items, size_t n)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        struct coll_item item;
        bool found;
        st = coll_find(c, items[i].name, &found, &item);
        if (st == ST_OK && !found)
            st = error_set(c->v->call.err, ST_CORRUPT, "a member is in the index but not in its table");
        if (st == ST_OK)
            items[i].ord = item.ord;
    }
    return st;
}

static int by_ord(const void *a, const void *b)
{
    const struct coll_item *x = a, *y = b;
    return (x->ord > y->ord) - (x->ord < y->ord);
}

/* Starts the collection anew with only what stays: its rows get another id, the old ones go to the trash. It
   keeps the order of its numbers, so that each is at most what it was: a scan that comes down from the end
   misses nothing. */
static enum status keep_others(struct coll *c, int64_t from, int64_t to)
{
    struct gather g = {.arena = &c->v->batch.arena};
    enum status st = ST_OK;
    g.items = arena_alloc(&c->v->call.scratch, (size_t)(c->size - (to - from + 1) + 1) * sizeof *g.items);
    if (from > 0)
        st = coll_by_rank(c, 0, from - 1, false, gather_item, &g);
    if (st == ST_OK && to + 1 < c->size)
        st = coll_by_rank(c, to + 1, c->size - 1, false, gather_item, &g);
    if (st == ST_OK)
        st = find_ords(c, g.items, g.n);
    if (st == ST_OK) {
        qsort(g.items, g.n, sizeof *g.items, by_ord);
        coll_begin_anew(c);
    }
    for (size_t i = 0; st == ST_OK && i < g.n; i++)
        st = coll_put_known(c, &g.items[i], NULL);
    return st;
}

static enum status remove_members(struct coll *c, int64_t from, int64_t to)
{
    size_t n = (size_t)(to - from + 1);
    struct gather g = {.arena = &c->v->call.scratch,
                       .items = arena_alloc(&c->v->call.scratch, n * sizeof *g.items)};
    enum status st = coll_by_rank(c, from, to, false, gather_item, &g);
    for (size_t i = 0; st == ST_OK && i < n; i++)
        st = coll_remove_known(c, &g.items[i]);
    return st;
}

/* Members of these ranks go: blocks of nothing else go with them, those at either end get smaller. */
static enum status shrink_blocks(struct coll *c, struct blocks *b, int64_t from, int64_t to)
{
    int64_t before_first, before_last;
    size_t first = blocks_at_rank(b, from, &before_first), last = blocks_at_rank(b, to, &before_last);
    enum status st = ST_OK;
    if (first == last) {
        blocks_add(b, first, from - to - 1);
        return recount(c, b, first);
    }
    blocks_add(b, last, before_last - to - 1);
    blocks_add(b, first, from - before_first - b->at[first].count);
    for (size_t i = first + 1; st == ST_OK && i < last; i++) {
        struct item_ref gone = block_ref(c, b->at[i].number);
        st = gone.pos ? view_del_item(c->v, &gone) : ST_OK;
    }
    blocks_erase(b, first + 1, last - first - 1);
    if (st == ST_OK)
        st = recount(c, b, first + 1);
    return st == ST_OK ? recount(c, b, first) : st;
}

/* Many at once, of a set that lives in the tables: a range from the first of them to the last. Their numbers
   become holes. */
static enum status remove_range(struct coll *c, int64_t from, int64_t to)
{
    struct coll_item ends[2];
    struct gather g = {.arena = &c->v->call.scratch, .items = ends};
    struct memo *m;
    enum status st = coll_by_rank(c, from, from, false, gather_item, &g);
    if (st == ST_OK)
        st = coll_by_rank(c, to, to, false, gather_item, &g);
    if (st == ST_OK)
        st = coll_ranks(c, &m);
    if (st != ST_OK)
        return st;
    memos_touch(&c->v->memos, m);
    coll_end_remove(m, &ends[0], &ends[1]);
    c->dirty = true;
    st = shrink_blocks(c, m->ranks, from, to);
    struct item_range gone = {
        .table = ITEM_ZSET,
        .id = c->id,
        .order = ITEMS_BY_SCORE,
        .min_score = ends[0].score,
        .min_name = ends[0].name,
        .max_score = ends[1].score,
        .max_name = ends[1].name,
    };
    c->size -= to - from + 1;
    return st == ST_OK ? view_del_range(c->v, &gone) : st;
}

enum status coll_remove_ranks(struct coll *c, int64_t from, int64_t to)
{
    assert(from >= 0 && from <= to && to < c->size);
    int64_t n = to - from + 1;
    if (n == c->size) {
        coll_begin_anew(c);
        return ST_OK;
    }
    if (c->res || n <= REMOVE_FEW)
        return remove_members(c, from, to);
    return c->size - n <= KEEP_FEW ? keep_others(c, from, to) : remove_range(c, from, to);
}
