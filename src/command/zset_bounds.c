/* Ranges of scores and of names, as Redis reads them, and the ranks of the members in them. */
#include <math.h>
#include <stdlib.h>

#include "command/zset.h"
#include "exec/args.h"

/* ---- scores ---- */

/* One end of a range of scores: what strtod takes up to a NUL, behind "(" when it is exclusive. Unlike a
   score, it may have blanks in front, and nothing at all is 0. */
static bool read_score_end(struct call *c, struct slice s, double *ret, bool *ret_exclusive)
{
    char *text = arena_alloc(c->arena, s.n + 1);
    if (s.n)
        memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    *ret_exclusive = text[0] == '(';
    char *end;
    *ret = strtod(text + *ret_exclusive, &end);
    return *end == '\0' && !isnan(*ret);
}

bool score_range_read(struct call *c, int min, int max, struct score_range *ret)
{
    if (read_score_end(c, c->argv[min], &ret->min, &ret->min_exclusive) &&
        read_score_end(c, c->argv[max], &ret->max, &ret->max_exclusive))
        return true;
    reply_error(c->reply, "ERR min or max is not a float");
    return false;
}

/* The end that the walk comes to first is found exactly; the other one only as far as it matters. */
enum status score_range_ranks(struct coll *z, const struct score_range *r, bool reverse, int64_t most,
                              int64_t *ret_from, int64_t *ret_to)
{
    struct coll_bound min = {.score = r->min, .exclusive = r->min_exclusive};
    struct coll_bound max = {.score = r->max, .exclusive = r->max_exclusive};
    enum status st = reverse ? coll_rank_of(z, &max, true, ret_to) : coll_rank_of(z, &min, false, ret_from);
    int64_t before = reverse ? coll_size(z) - *ret_to : *ret_from;
    int64_t depth = most < 0 || most > coll_size(z) ? coll_size(z) : before + most;
    if (st == ST_OK)
        st = reverse ? coll_rank_within(z, &min, false, true, depth, ret_from)
                     : coll_rank_within(z, &max, true, false, depth, ret_to);
    --*ret_to;
    return st;
}

/* ---- names ---- */

static bool read_lex_end(struct slice s, struct lex_end *ret)
{
    char first = s.n ? s.p[0] : '\0';
    bool alone = s.n == 1 || (s.n > 1 && s.p[1] == '\0');
    *ret = (struct lex_end){.exclusive = first != '['};
    if ((first == '+' || first == '-') && alone)
        ret->infinite = first == '+' ? 1 : -1;
    else if (first == '[' || first == '(')
        ret->name = slice_of(s.p + 1, s.n - 1);
    else
        return false;
    return true;
}

bool lex_range_read(struct call *c, int min, int max, struct lex_range *ret)
{
    if (read_lex_end(c->argv[min], &ret->min) && read_lex_end(c->argv[max], &ret->max))
        return true;
    reply_error(c->reply, "ERR min or max not valid string range item");
    return false;
}

static bool lex_empty(const struct lex_range *r)
{
    if (r->min.infinite || r->max.infinite)
        return r->min.infinite >= r->max.infinite && (r->min.infinite == 1 || r->max.infinite == -1);
    int order = slice_cmp(r->min.name, r->max.name);
    return order > 0 || (order == 0 && (r->min.exclusive || r->max.exclusive));
}

static bool not_below_min(const struct lex_end *min, struct slice name)
{
    int order = min->infinite ? -min->infinite : slice_cmp(name, min->name);
    return min->exclusive ? order > 0 : order >= 0;
}

static bool not_above_max(const struct lex_end *max, struct slice name)
{
    int order = max->infinite ? -max->infinite : slice_cmp(name, max->name);
    return max->exclusive ? order < 0 : order <= 0;
}

static enum status take_item(void *arg, const struct coll_item *item)
{
    *(struct coll_item *)arg = *item;
    return ST_OK;
}

static enum status score_at(struct coll *z, int64_t rank, double *ret)
{
    struct coll_item item;
    enum status st = coll_by_rank(z, rank, rank, false, take_item, &item);
    if (st == ST_OK)
        *ret = item.score;
    return st;
}

/* All members with the same score: their order is that of the names. */
static enum status ranks_by_name(struct coll *z, const struct lex_range *r, double score, int64_t *ret_from,
                                 int64_t *ret_to)
{
    struct coll_bound min = {score, true, r->min.name, r->min.exclusive};
    struct coll_bound max = {score, true, r->max.name, r->max.exclusive};
    enum status st = ST_OK;
    *ret_from = 0;
    *ret_to = coll_size(z);
    if (!r->min.infinite)
        st = coll_rank_of(z, &min, false, ret_from);
    if (st == ST_OK && !r->max.infinite)
        st = coll_rank_of(z, &max, true, ret_to);
    --*ret_to;
    return st;
}

/* Members with different scores are in no order of names. What Redis does with a small sorted set is to go
   from one end to the first member that the nearer end of the range lets in, leave out as many as LIMIT says
   whatever they are, and go on to the first that the other end keeps out. */
struct lex_walk {
    const struct lex_range *range;
    bool reverse;
    int64_t at, skip;
    int64_t first, n;
    bool entered;
    bool ended;
    bool lowest_fits;  /* the member with the lowest rank is not above the range, */
    bool highest_fits; /* the one with the highest not below it: else Redis finds nothing */
};

static enum status walk_item(void *arg, const struct coll_item *item)
{
    struct lex_walk *w = arg;
    bool above = not_below_min(&w->range->min, item->name), below = not_above_max(&w->range->max, item->name);
    bool enters = w->reverse ? below : above, stays = w->reverse ? above : below;
    if (w->at++ == 0)
        *(w->reverse ? &w->highest_fits : &w->lowest_fits) = w->reverse ? above : below;
    *(w->reverse ? &w->lowest_fits : &w->highest_fits) = w->reverse ? below : above;
    if (w->ended || (!w->entered && !enters))
        return ST_OK;
    /* The first member let in has to be in the range altogether. */
    bool skipped = w->entered ? w->skip > 0 : stays && w->skip > 0;
    w->entered = true;
    if (skipped) {
        w->skip--;
        return ST_OK;
    }
    if (!stays) {
        w->ended = true;
        return ST_OK;
    }
    if (w->n++ == 0)
        w->first = w->at - 1;
    return ST_OK;
}

static enum status ranks_by_walk(struct coll *z, const struct lex_range *r, bool reverse, int64_t offset,
                                 int64_t *ret_from, int64_t *ret_to)
{
    struct lex_walk w = {.range = r, .reverse = reverse, .skip = offset};
    int64_t last = coll_size(z) - 1;
    enum status st = coll_by_rank(z, 0, last, reverse, walk_item, &w);
    if (st != ST_OK || w.n == 0 || !w.lowest_fits || !w.highest_fits)
        return st;
    *ret_from = reverse ? last - (w.first + w.n - 1) : w.first;
    *ret_to = reverse ? last - w.first : w.first + w.n - 1;
    return ST_OK;
}

enum status lex_range_ranks(struct coll *z, const struct lex_range *r, bool reverse, int64_t *offset,
                            int64_t *ret_from, int64_t *ret_to)
{
    double first, last;
    *ret_from = 0;
    *ret_to = -1;
    if (lex_empty(r) || coll_size(z) == 0)
        return ST_OK;
    enum status st = score_at(z, 0, &first);
    if (st == ST_OK)
        st = score_at(z, coll_size(z) - 1, &last);
    if (st != ST_OK)
        return st;
    if (first < last && coll_size(z) <= ZSET_LISTPACK_ENTRIES && *offset >= 0) {
        int64_t skip = *offset;
        *offset = 0;
        return ranks_by_walk(z, r, reverse, skip, ret_from, ret_to);
    }
    return ranks_by_name(z, r, first, ret_from, ret_to);
}
