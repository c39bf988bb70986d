/* Sorted sets member by member: adding, scores, ranks, removing, scanning. Ranges are in zset_range.c,
   popping and random members in zset_pop.c, unions and the like in zset_combine.c. */
#include "command/zset.h"

#include <math.h>

#include "base/num.h"
#include "base/vec.h"
#include "command/families.h"
#include "command/scan.h"
#include "exec/args.h"

/* ---- shared ---- */

enum status zset_open(struct call *c, int i, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_open(c->view, call_db(c), c->argv[i], ROW_ZSET, ret, ret_wrong);
    if (st == ST_OK && *ret_wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

void zset_reply_begin(struct reply *r, size_t n, bool with_scores)
{
    reply_array(r, with_scores && r->resp == 2 ? 2 * n : n);
}

void zset_reply_member(struct reply *r, const struct coll_item *item, bool with_scores)
{
    if (with_scores && r->resp != 2)
        reply_array(r, 2);
    reply_bulk(r, item->name);
    if (with_scores)
        reply_double(r, item->score);
}

enum status zset_reply_item(void *output, const struct coll_item *item)
{
    const struct zset_output *o = output;
    zset_reply_member(o->reply, item, o->with_scores);
    return ST_OK;
}

/* Either sign. */
static bool is_zero(double score)
{
    return score >= 0 && score <= 0;
}

/* The score that Redis would keep for a new or changed member: a small sorted set has no -0, because it is a
   listpack of integers and texts. One that was large stays what it became. */
static double stored_score(const struct coll *z, struct slice name, double score)
{
    bool listpack =
        coll_form(z) != FORM_LARGE && coll_size(z) < ZSET_LISTPACK_ENTRIES && name.n <= ZSET_LISTPACK_VALUE;
    return listpack && is_zero(score) ? 0 : score;
}

enum status zset_gather_item(void *gather, const struct coll_item *item)
{
    struct zset_gather *g = gather;
    struct coll_item *copy = &VEC_PUSH(g->items, g->n, g->cap);
    *copy = (struct coll_item){.name = arena_copy(g->names, item->name), .score = item->score};
    return ST_OK;
}

void zset_gather_release(struct zset_gather *g)
{
    mem_free(g->items);
}

enum status zset_store(struct call *c, struct slice key, const struct coll_item *items, size_t n)
{
    struct coll *z;
    bool listpack = n <= ZSET_LISTPACK_ENTRIES;
    for (size_t i = 0; listpack && i < n; i++)
        listpack = items[i].name.n <= ZSET_LISTPACK_VALUE;
    enum status st = coll_replace(c->view, call_db(c), key, ROW_ZSET, &z);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        struct coll_item item = {.name = items[i].name, .score = items[i].score};
        if (listpack && is_zero(item.score))
            item.score = 0;
        st = coll_put_known(z, &item, NULL);
    }
    return st == ST_OK ? coll_save(z) : st;
}

/* ---- ZADD, ZINCRBY ---- */

struct add {
    bool nx, xx, gt, lt, ch, incr;
    int first; /* argument of the first score */
    int64_t added, updated;
    bool processed; /* INCR: there is a score to tell */
    double score;   /* INCR: the one that came of it */
};

static int read_add_flags(struct call *c, struct add *a)
{
    int i = 2;
    for (; i < c->argc; i++) {
        struct slice word = c->argv[i];
        if (slice_is(word, "nx"))
            a->nx = true;
        else if (slice_is(word, "xx"))
            a->xx = true;
        else if (slice_is(word, "gt"))
            a->gt = true;
        else if (slice_is(word, "lt"))
            a->lt = true;
        else if (slice_is(word, "ch"))
            a->ch = true;
        else if (slice_is(word, "incr"))
            a->incr = true;
        else
            break;
    }
    return i;
}

static bool read_add(struct call *c, struct add *a)
{
    const char *error = NULL;
    a->first = read_add_flags(c, a);
    int words = c->argc - a->first;
    if (words == 0 || words % 2)
        error = ERR_SYNTAX;
    else if (a->nx && a->xx)
        error = "ERR XX and NX options at the same time are not compatible";
    else if ((a->gt && a->nx) || (a->lt && a->nx) || (a->gt && a->lt))
        error = "ERR GT, LT, and/or NX options at the same time are not compatible";
    else if (a->incr && words > 2)
        error = "ERR INCR option supports a single increment-element pair";
    if (error)
        reply_error(c->reply, error);
    return !error;
}

/* *ret_ok is false when the sum is no number: then the error has been replied. */
static enum status add_member(struct call *c, struct coll *z, struct add *a, double score, struct slice name,
                              bool *ret_ok)
{
    struct coll_item old;
    bool found;
    enum status st = coll_find(z, name, &found, &old);
    *ret_ok = true;
    if (st != ST_OK || (found ? a->nx : a->xx))
        return st;
    if (found && a->incr) {
        score += old.score;
        if (isnan(score)) {
            reply_error(c->reply, "ERR resulting score is not a number (NaN)");
            *ret_ok = false;
            return ST_OK;
        }
    }
    if (found && ((a->lt && score >= old.score) || (a->gt && score <= old.score)))
        return ST_OK;
    a->processed = true;
    a->score = score;
    if (found && !(score < old.score) && !(score > old.score))
        return ST_OK;
    a->added += !found;
    a->updated += found;
    struct coll_item item = {.name = name, .score = stored_score(z, name, score)};
    return coll_put_known(z, &item, found ? &old : NULL);
}

static enum status add(struct call *c, struct add *a)
{
    if (!read_add(c, a))
        return ST_OK;
    int n = (c->argc - a->first) / 2;
    double *scores = arena_alloc(c->arena, (size_t)n * sizeof *scores);
    for (int i = 0; i < n; i++)
        if (!arg_double(c, a->first + 2 * i, &scores[i], NULL))
            return ST_OK;
    struct coll *z;
    bool wrong, ok = true;
    enum status st = coll_make(c->view, call_db(c), c->argv[1], ROW_ZSET, &z, &wrong);
    if (st == ST_OK && wrong) {
        reply_error(c->reply, ERR_WRONGTYPE);
        return ST_OK;
    }
    for (int i = 0; st == ST_OK && ok && i < n; i++)
        st = add_member(c, z, a, scores[i], c->argv[a->first + 2 * i + 1], &ok);
    if (st == ST_OK)
        st = coll_save(z);
    if (st != ST_OK || !ok)
        return st;
    if (!a->incr)
        reply_integer(c->reply, a->ch ? a->added + a->updated : a->added);
    else if (a->processed)
        reply_double(c->reply, a->score);
    else
        reply_null(c->reply);
    return ST_OK;
}

static enum status zadd(struct call *c)
{
    struct add a = {.nx = false};
    return add(c, &a);
}

static enum status zincrby(struct call *c)
{
    struct add a = {.incr = true};
    return add(c, &a);
}

/* ---- one member or several ---- */

static enum status zrem(struct call *c)
{
    struct coll *z;
    bool wrong, removed;
    int64_t n = 0;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    for (int i = 2; z && i < c->argc && coll_size(z) > 0; i++) {
        if ((st = coll_remove(z, c->argv[i], &removed)) != ST_OK)
            return st;
        n += removed;
    }
    if (z && (st = coll_save(z)) != ST_OK)
        return st;
    reply_integer(c->reply, n);
    return ST_OK;
}

static enum status reply_score(struct call *c, struct coll *z, struct slice name)
{
    struct coll_item item;
    bool found = false;
    enum status st = z ? coll_find(z, name, &found, &item) : ST_OK;
    if (st != ST_OK)
        return st;
    if (found)
        reply_double(c->reply, item.score);
    else
        reply_null(c->reply);
    return ST_OK;
}

static enum status zscore(struct call *c)
{
    struct coll *z;
    bool wrong;
    enum status st = zset_open(c, 1, &z, &wrong);
    return st != ST_OK || wrong ? st : reply_score(c, z, c->argv[2]);
}

static enum status zmscore(struct call *c)
{
    struct coll *z;
    bool wrong;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; st == ST_OK && i < c->argc; i++)
        st = reply_score(c, z, c->argv[i]);
    return st;
}

static enum status zcard(struct call *c)
{
    const struct row *row;
    bool wrong;
    enum status st = arg_row(c, 1, ROW_ZSET, &row, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, row ? row_items(row).size : 0);
    return st;
}

/* ---- ranks ---- */

static enum status rank(struct call *c, bool reverse)
{
    struct coll *z;
    struct coll_item item;
    bool wrong, found = false;
    bool with_score = c->argc > 3;
    if (c->argc > 4) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    if (with_score && !slice_is(c->argv[3], "withscore")) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st == ST_OK && z)
        st = coll_find(z, c->argv[2], &found, &item);
    if (st != ST_OK || wrong)
        return st;
    if (!found) {
        if (with_score)
            reply_null_array(c->reply);
        else
            reply_null(c->reply);
        return ST_OK;
    }
    struct coll_bound place = {.score = item.score, .has_name = true, .name = c->argv[2]};
    int64_t n;
    st = coll_rank_of(z, &place, false, &n);
    if (st != ST_OK)
        return st;
    if (with_score)
        reply_array(c->reply, 2);
    reply_integer(c->reply, reverse ? coll_size(z) - 1 - n : n);
    if (with_score)
        reply_double(c->reply, item.score);
    return ST_OK;
}

static enum status zrank(struct call *c)
{
    return rank(c, false);
}

static enum status zrevrank(struct call *c)
{
    return rank(c, true);
}

/* ---- ZSCAN ---- */

/* A whole score up to this stands in a listpack, and so in Redis' answer, as an integer: never "1e+17". */
#define LISTPACK_INTEGER 0x1p62

static void add_to_page(struct scan_page *page, const struct coll_item *item, bool listpack)
{
    char text[128];
    double score = item->score;
    size_t n;
    if (!scan_wants(page, item->name))
        return;
    scan_add(page, item->name);
    if (listpack && fabs(score) <= LISTPACK_INTEGER && !(score < trunc(score)) && !(score > trunc(score)))
        n = num_format_i64(text, (int64_t)score);
    else
        n = num_format_double(text, score);
    scan_add(page, slice_of(text, n));
}

static enum status add_large(void *arg, const struct coll_item *item)
{
    add_to_page(arg, item, false);
    return ST_OK;
}

static enum status add_small(void *arg, const struct coll_item *item)
{
    add_to_page(arg, item, true);
    return ST_OK;
}

static enum status zscan(struct call *c)
{
    struct scan_page page;
    struct coll *z;
    bool wrong;
    if (!scan_cursor(c, 2, &page))
        return ST_OK;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (z) {
        if (!scan_options(c, 3, false, &page))
            return ST_OK;
        if (coll_size(z) <= ZSET_LISTPACK_ENTRIES) {
            page.cursor = 0; /* all of a small one at once, in its order */
            st = coll_by_rank(z, 0, coll_size(z) - 1, false, add_small, &page);
        } else {
            st = coll_page(z, &page.cursor, page.count, add_large, &page);
        }
    } else {
        page.cursor = 0;
    }
    if (st == ST_OK)
        scan_reply(c, &page);
    return st;
}

/* clang-format off */
const struct command zset_commands[] = {
    {
        .name = "zadd", .fn = zadd, .arity = -4, .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_FEW_ITEMS,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}}, .names = {3, 2, 0},
        .summary = "Adds members with scores, or gives members other scores.", .since = "1.2.0",
        .group = "sorted-set", .complexity = "O(log(N)) for each member.",
    },
    {
        .name = "zincrby", .fn = zincrby, .arity = 4, .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_FEW_ITEMS,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
        .summary = "Adds to the score of a member.", .since = "1.2.0", .group = "sorted-set",
        .complexity = "O(log(N))",
    },
    {
        .name = "zrem", .fn = zrem, .arity = -3, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_DELETE, .index = 1, .step = 1}}, .names = {2, 1, 0},
        .summary = "Removes members.", .since = "1.2.0", .group = "sorted-set",
        .complexity = "O(log(N)) for each member.",
    },
    {
        .name = "zscore", .fn = zscore, .arity = 3, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
        .summary = "Tells the score of a member.", .since = "1.2.0", .group = "sorted-set",
        .complexity = "O(1)",
    },
    {
        .name = "zmscore", .fn = zmscore, .arity = -3, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}, .names = {2, 1, 0},
        .summary = "Tells the scores of members.", .since = "6.2.0", .group = "sorted-set",
        .complexity = "O(N) in the members asked for.",
    },
    {
        .name = "zcard", .fn = zcard, .arity = 2, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RO, .index = 1, .step = 1}},
        .summary = "Counts the members.", .since = "1.2.0", .group = "sorted-set", .complexity = "O(1)",
    },
    {
        .name = "zrank", .fn = zrank, .arity = -3, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
        .summary = "Tells how many members have lower scores, and on request the score.", .since = "2.0.0",
        .group = "sorted-set", .complexity = "O(log(N))",
    },
    {
        .name = "zrevrank", .fn = zrevrank, .arity = -3, .flags = CMD_READONLY | CMD_FAST,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
        .summary = "Tells how many members have higher scores, and on request the score.", .since = "2.0.0",
        .group = "sorted-set", .complexity = "O(log(N))",
    },
    {
        .name = "zscan", .fn = zscan, .arity = -3, .flags = CMD_READONLY,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_SLOW,
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
        .summary = "Lists members and scores page by page.", .since = "2.8.0", .group = "sorted-set",
        .complexity = "O(COUNT) for each page, O(N) in the members for all of them.",
        .tips = {"nondeterministic_output"},
    },
    {.name = NULL},
};
/* clang-format on */
