/* What memory has of the ends of sorted sets that live in the tables: two windows (order/window.h) for each,
   as a part of its memo. Pops, ranges and ranks near an end are answered from there; when a window has too
   few, what comes next is read, each time twice as much as the last time.

   Rows it touches: none; it only reads, and each read is a scan of the members behind the mark. A crash
   leaves nothing of it. Two clients: commands run one after the other, and each change of a member comes by
   here (coll_end_change) before it is made. An undo, a failed commit or a foreign write drops the memo, and
   over shared tables it lasts for a batch. A huge member: a window that has END_BYTES is not read further,
   and whoever needs more asks the tables. */
#include "engine/coll.h"

#include <assert.h>

#include "base/mem.h"
#include "engine/coll_internal.h"
#include "engine/order/blocks.h"
#include "engine/order/window.h"

#define END_MEMBERS 1024u /* a window is read up to so many, and may grow to twice as many */
#define END_AHEAD   512u  /* are read at once, at most */
#define END_BYTES   (256u << 10)

static uint32_t end_members(const struct coll *c)
{
    return c->v->memos.end_members ? c->v->memos.end_members : END_MEMBERS;
}

void coll_set_ends(struct view *v, uint32_t members)
{
    memos_drop_all(&v->memos);
    v->memos.end_members = members;
}

/* ---- reading ---- */

static enum status add_row(void *arg, const struct item_row *row)
{
    struct window *w = arg;
    window_add(w, row->score, row->ref.name);
    return w->bytes > END_BYTES ? ST_STOP : ST_OK;
}

/* The scan of what is behind the mark. */
static struct item_scan behind_mark(struct coll *c, const struct window *w, uint32_t limit)
{
    struct item_scan q = {
        .table = ITEM_ZSET, .id = c->id, .order = ITEMS_BY_SCORE, .reverse = w->reverse, .limit = limit};
    if (!w->mark)
        return q;
    struct slice name = window_name(w->mark);
    if (w->reverse) {
        q.has_max = q.below_max = true;
        q.max_score = w->mark->score;
        q.max_name = name;
    } else {
        q.has_min = true;
        q.min_score = w->mark->score;
        q.min_name = arena_next(&c->v->call.scratch, name);
    }
    return q;
}

/* Reads at least so many members behind the mark, if there are that many and they are not huge. */
static enum status read_behind(struct coll *c, struct memo *m, struct window *w, uint32_t n)
{
    uint32_t most = end_members(c) / 2 < END_AHEAD ? end_members(c) / 2 : END_AHEAD;
    size_t had = w->n;
    w->ahead = w->ahead == 0 ? 1 : w->ahead < most ? w->ahead * 2 : w->ahead;
    struct item_scan q = behind_mark(c, w, n > w->ahead ? n : w->ahead);
    enum status st = view_scan_items(c->v, &q, add_row, w);
    if (st != ST_OK) {
        window_release(w); /* it may have members behind the mark */
        return st;
    }
    bool stopped = w->bytes > END_BYTES;
    window_raise(w, !stopped && w->n - had < q.limit);
    memos_count(&c->v->memos, m);
    if (view_has_changes(c->v)) /* it may have what the batch wrote */
        memos_touch(&c->v->memos, m);
    return ST_OK;
}

static struct window *window_of(struct memo *m, bool reverse)
{
    if (!m->ends) {
        m->ends = mem_zalloc(2 * sizeof *m->ends);
        m->ends[1].reverse = true;
    }
    return &m->ends[reverse];
}

enum status coll_end(struct coll *c, struct memo *m, bool reverse, int64_t depth, const struct window **ret)
{
    *ret = NULL;
    if (depth > end_members(c))
        return ST_OK;
    struct window *w = window_of(m, reverse);
    while ((int64_t)w->n < depth && !w->whole && w->bytes <= END_BYTES) {
        enum status st = read_behind(c, m, w, (uint32_t)depth - (uint32_t)w->n);
        if (st != ST_OK)
            return st;
    }
    if (w->whole && (int64_t)w->n != c->size)
        return error_set(c->v->call.err, ST_CORRUPT, "a sorted set says %lld members but %zu were found",
                         (long long)c->size, w->n);
    if ((int64_t)w->n >= depth)
        *ret = w;
    return ST_OK;
}

/* ---- ranks ---- */

bool coll_end_rank(const struct coll *c, const struct memo *m, double score, struct slice name, int64_t *ret)
{
    if (!m->ends)
        return false;
    const struct window *first = &m->ends[0], *last = &m->ends[1];
    if (window_covers(first, score, name)) {
        *ret = (int64_t)window_before(first, score, name);
        return true;
    }
    if (!window_covers(last, score, name))
        return false;
    size_t behind = window_before(last, score, name);
    if (behind < last->n) { /* a member at the place itself does not come before it */
        const struct window_item *i = window_at(last, behind);
        behind += score_compare(i->score, window_name(i), score, name) == 0;
    }
    *ret = c->size - (int64_t)behind;
    return true;
}

enum status coll_end_reach(struct coll *c, struct memo *m, bool reverse, double score, struct slice name)
{
    enum status st = ST_OK;
    const struct window *w = window_of(m, reverse);
    while (st == ST_OK && w && !window_covers(w, score, name))
        st = coll_end(c, m, reverse, (int64_t)w->n + 1, &w);
    return st;
}

enum status coll_rank_within(struct coll *c, const struct coll_bound *b, bool upper, bool reverse,
                             int64_t depth, int64_t *ret)
{
    const struct window *w = NULL;
    struct memo *m;
    if (depth > 0 && depth < c->size && !c->res) {
        enum status st = coll_ranks(c, &m);
        if (st == ST_OK)
            st = coll_end(c, m, reverse, depth, &w);
        if (st != ST_OK)
            return st;
    }
    if (w) {
        const struct window_item *i = window_at(w, (size_t)depth - 1);
        int order = i->score < b->score ? -1 : i->score > b->score;
        if (order == 0 && b->has_name)
            order = slice_cmp(window_name(i), b->name);
        if (reverse ? order > 0 : order < 0) { /* all of those are on this side of the bound */
            *ret = reverse ? c->size - depth : depth;
            return ST_OK;
        }
    }
    return coll_rank_of(c, b, upper, ret);
}

/* ---- changes ---- */

void coll_end_change(struct coll *c, struct memo *m, const struct coll_item *was, const struct coll_item *now)
{
    for (int i = 0; m->ends && i < 2; i++) {
        struct window *w = &m->ends[i];
        if (was)
            window_remove(w, was->score, was->name);
        if (now)
            window_put(w, now->score, now->name);
        if (w->n > 2 * (size_t)end_members(c))
            window_cut(w, end_members(c));
    }
}

void coll_end_remove(struct memo *m, const struct coll_item *first, const struct coll_item *last)
{
    for (int i = 0; m->ends && i < 2; i++) {
        struct window *w = &m->ends[i];
        const struct coll_item *near = i ? last : first;
        for (size_t at = window_before(w, near->score, near->name); at < w->n;) {
            const struct window_item *item = window_at(w, at);
            if (score_compare(item->score, window_name(item), first->score, first->name) < 0 ||
                score_compare(item->score, window_name(item), last->score, last->name) > 0)
                break;
            window_remove(w, item->score, window_name(item));
        }
    }
}

bool coll_end_find(const struct coll *c, struct slice name, struct coll_item *ret)
{
    const struct memo *m = c->res ? NULL : memos_find(&c->v->memos, c->id);
    const struct window_item *found = NULL;
    for (int i = 0; m && m->ends && !found && i < 2; i++)
        found = window_find(&m->ends[i], name);
    if (found)
        *ret = (struct coll_item){.name = name, .score = found->score, .ord = -1};
    return found;
}
