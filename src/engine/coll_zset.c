/* Sorted sets by rank and by score.

   In memory the members are an array in order. A set that lives in the tables has rank blocks (blocks.h):
   rows of larder_zset_block, and a copy of them in what memory knows of the set (memo.h), which is read when
   a command asks for a rank and dropped whenever members in memory would be. Adding or removing a member
   changes the count of one block, in the same transaction; a batch that changes a block many times writes its
   row once.

   A set that has just outgrown memory has no rows of blocks yet and counts as one block. The first write to
   it makes rows, and when a command is done, blocks that have grown too large are divided. A block that gets
   small is joined with its neighbour, and a set that is in memory again loses its blocks at the next write.
   The key row knows: next_block is the next number for one, 0 as long as there are none. */
#include "engine/coll.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/vec.h"
#include "engine/blocks.h"
#include "engine/coll_internal.h"

#define EMPTY ((struct slice){"", 0})

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

/* The memo of a set in the tables, with its ranks. */
static enum status blocks_of(struct coll *c, struct memo **ret)
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
    blocks_erase(b, i);
    return st == ST_OK ? put_block(c, &b->at[i - 1]) : st;
}

static enum status adjust(struct coll *c, struct blocks *b, const struct coll_item *item, int64_t delta)
{
    size_t i = blocks_find(b, item->score, item->name);
    blocks_add(b, i, delta);
    assert(b->at[i].count >= 0);
    if (b->at[i].count < BLOCK_MIN) {
        if (i > 0 && b->at[i - 1].count + b->at[i].count <= BLOCK_JOIN)
            return join(c, b, i);
        if (i + 1 < b->len && b->at[i + 1].count + b->at[i].count <= BLOCK_JOIN)
            return join(c, b, i + 1);
    }
    return put_block(c, &b->at[i]);
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
    if (was && now && !(was->score < now->score) && !(was->score > now->score))
        return ST_OK;
    struct memo *m;
    enum status st = blocks_of(c, &m);
    if (st != ST_OK)
        return st;
    memos_touch(&c->v->memos, m);
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
    enum status st = blocks_of(c, &m);
    if (st != ST_OK)
        return st;
    size_t i = blocks_find(m->ranks, score, name);
    const struct block *b = &m->ranks->at[i];
    *ret = blocks_before(m->ranks, i);
    if (score_compare(b->score, block_name(b), score, name) == 0)
        return ST_OK;
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
    /* Nothing is between a name and the same with a NUL behind it. */
    char *next = arena_alloc(&c->v->call.scratch, b->name.n + 1);
    if (b->name.n)
        memcpy(next, b->name.p, b->name.n);
    next[b->name.n] = '\0';
    return position(c, b->score, slice_of(next, b->name.n + 1), ret);
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

enum status coll_by_rank(struct coll *c, int64_t from, int64_t to, bool reverse, coll_fn *fn, void *arg)
{
    assert(from >= 0 && from <= to && to < c->size);
    if (c->res)
        return walk_memory(c, from, to, reverse, fn, arg);
    struct memo *m;
    enum status st = blocks_of(c, &m);
    if (st != ST_OK)
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
    struct coll_walk w = {.fn = fn, .arg = arg};
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

static enum status remove_rows(struct coll *c, int64_t from, int64_t to)
{
    size_t n = (size_t)(to - from + 1);
    struct arena *a = &c->v->call.scratch;
    struct gather g = {.arena = &c->v->batch.arena, .items = arena_alloc(a, n * sizeof *g.items)};
    int64_t *ords = arena_alloc(a, n * sizeof *ords);
    enum status st = coll_by_rank(c, from, to, false, gather_item, &g);
    if (st == ST_OK)
        st = find_ords(c, g.items, n);
    for (size_t i = 0; st == ST_OK && i < n; i++)
        ords[i] = g.items[i].ord;
    if (st == ST_OK)
        st = coll_renumber(c, ords, n);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        struct item_ref ref = {.table = ITEM_ZSET, .id = c->id, .name = g.items[i].name};
        st = coll_zset_change(c, &g.items[i], NULL);
        if (st == ST_OK)
            st = view_del_item(c->v, &ref);
    }
    c->size -= (int64_t)n;
    c->dirty = true;
    return st;
}

static enum status remove_members(struct coll *c, int64_t from, int64_t to)
{
    size_t n = (size_t)(to - from + 1);
    struct gather g = {.arena = &c->v->call.scratch,
                       .items = arena_alloc(&c->v->call.scratch, n * sizeof *g.items)};
    enum status st = coll_by_rank(c, from, to, false, gather_item, &g);
    bool removed;
    for (size_t i = 0; st == ST_OK && i < n; i++)
        st = coll_remove(c, g.items[i].name, &removed);
    return st;
}

enum status coll_remove_ranks(struct coll *c, int64_t from, int64_t to)
{
    assert(from >= 0 && from <= to && to < c->size);
    int64_t n = to - from + 1;
    if (n == c->size) {
        coll_begin_anew(c);
        return ST_OK;
    }
    if (c->res || n == 1)
        return remove_members(c, from, to);
    return n > c->size / 2 ? keep_others(c, from, to) : remove_rows(c, from, to);
}
