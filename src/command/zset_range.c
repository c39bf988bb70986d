/* Ranges of sorted sets: by rank, by score or by name, to be told, counted, stored or removed. Every range is
   turned into ranks first, so that its size is known before it is read and nothing is walked over to find its
   start. */
#include "base/mem.h"
#include "command/families.h"
#include "command/zset.h"
#include "exec/args.h"

enum by { BY_ANY, BY_RANK, BY_SCORE, BY_LEX };
enum direction { ANY_DIRECTION, FORWARD, REVERSE };

/* What a command asks for. */
struct select {
    enum by by;
    enum direction direction;
    bool with_scores;
    int64_t offset, limit; /* LIMIT; a limit below 0: all */
    int64_t start, stop;   /* BY_RANK */
    struct score_range scores;
    struct lex_range names;
};

static bool read_options(struct call *c, int i, bool store, struct select *s)
{
    for (; i < c->argc; i++) {
        struct slice word = c->argv[i];
        if (!store && slice_is(word, "withscores")) {
            s->with_scores = true;
        } else if (slice_is(word, "limit") && c->argc - i > 2) {
            if (!arg_i64(c, i + 1, &s->offset, NULL) || !arg_i64(c, i + 2, &s->limit, NULL))
                return false;
            i += 2;
        } else if (s->direction == ANY_DIRECTION && slice_is(word, "rev")) {
            s->direction = REVERSE;
        } else if (s->by == BY_ANY && slice_is(word, "bylex")) {
            s->by = BY_LEX;
        } else if (s->by == BY_ANY && slice_is(word, "byscore")) {
            s->by = BY_SCORE;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

static bool options_fit(struct call *c, const struct select *s)
{
    const char *error = NULL;
    if (s->limit != -1 && s->by == BY_RANK)
        error = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
    else if (s->with_scores && s->by == BY_LEX)
        error = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";
    if (error)
        reply_error(c->reply, error);
    return !error;
}

/* argv[i] is the key, then come the ends of the range: the upper one first, in a reverse range of scores or
   names. */
static bool read_select(struct call *c, int i, bool store, struct select *s)
{
    s->limit = -1;
    if (!read_options(c, i + 3, store, s))
        return false;
    if (s->direction == ANY_DIRECTION)
        s->direction = FORWARD;
    if (s->by == BY_ANY)
        s->by = BY_RANK;
    if (!options_fit(c, s))
        return false;
    if (s->by == BY_RANK)
        return arg_i64(c, i + 1, &s->start, NULL) && arg_i64(c, i + 2, &s->stop, NULL);
    bool swapped = s->direction == REVERSE;
    int min = swapped ? i + 2 : i + 1, max = swapped ? i + 1 : i + 2;
    return s->by == BY_SCORE ? score_range_read(c, min, max, &s->scores)
                             : lex_range_read(c, min, max, &s->names);
}

/* Ranks as a client gives them, negative ones from the end, into ranks that are there: nothing when from >
   to. */
static void clip_ranks(int64_t size, int64_t *from, int64_t *to)
{
    if (*from < 0 && (*from += size) < 0)
        *from = 0;
    if (*to < 0)
        *to += size;
    if (*to >= size)
        *to = size - 1;
}

/* How many members of the range LIMIT can be about; below 0: all of them. */
static int64_t most_needed(const struct select *s)
{
    bool few = s->limit >= 0 && s->offset >= 0 && s->limit < INT32_MAX && s->offset < INT32_MAX;
    return few ? s->offset + s->limit : -1;
}

/* The selected ranks, ascending: nothing when from > to. */
static enum status select_ranks(struct coll *z, const struct select *s, int64_t *ret_from, int64_t *ret_to)
{
    bool reverse = s->direction == REVERSE;
    enum status st = ST_OK;
    if (s->by == BY_RANK) {
        int64_t from = s->start, to = s->stop, last = coll_size(z) - 1;
        clip_ranks(coll_size(z), &from, &to);
        *ret_from = reverse ? last - to : from;
        *ret_to = reverse ? last - from : to;
        return ST_OK;
    }
    int64_t offset = s->offset;
    if (s->by == BY_SCORE)
        st = score_range_ranks(z, &s->scores, reverse, most_needed(s), ret_from, ret_to);
    else
        st = lex_range_ranks(z, &s->names, reverse, &offset, ret_from, ret_to);
    if (st != ST_OK || *ret_from > *ret_to)
        return st;
    int64_t n = *ret_to - *ret_from + 1;
    if (offset < 0 || offset >= n) {
        *ret_to = *ret_from - 1;
        return ST_OK;
    }
    n -= offset;
    if (s->limit >= 0 && s->limit < n)
        n = s->limit;
    if (reverse) {
        *ret_to -= offset;
        *ret_from = *ret_to - n + 1;
    } else {
        *ret_from += offset;
        *ret_to = *ret_from + n - 1;
    }
    return ST_OK;
}

/* ---- telling ---- */

static enum status range(struct call *c, enum by by, enum direction direction)
{
    struct select s = {.by = by, .direction = direction};
    struct coll *z;
    bool wrong;
    if (!read_select(c, 1, false, &s))
        return ST_OK;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t from = 0, to = -1;
    if (z)
        st = select_ranks(z, &s, &from, &to);
    if (st != ST_OK)
        return st;
    if (from > to) {
        reply_array(c->reply, 0);
        return ST_OK;
    }
    struct zset_output o = {c->reply, s.with_scores};
    zset_reply_begin(c->reply, (size_t)(to - from + 1), s.with_scores);
    return coll_by_rank(z, from, to, s.direction == REVERSE, zset_reply_item, &o);
}

static enum status zrange(struct call *c)
{
    return range(c, BY_ANY, ANY_DIRECTION);
}

static enum status zrevrange(struct call *c)
{
    return range(c, BY_RANK, REVERSE);
}

static enum status zrangebyscore(struct call *c)
{
    return range(c, BY_SCORE, FORWARD);
}

static enum status zrevrangebyscore(struct call *c)
{
    return range(c, BY_SCORE, REVERSE);
}

static enum status zrangebylex(struct call *c)
{
    return range(c, BY_LEX, FORWARD);
}

static enum status zrevrangebylex(struct call *c)
{
    return range(c, BY_LEX, REVERSE);
}

/* ---- storing ---- */

static enum status zrangestore(struct call *c)
{
    struct select s = {.by = BY_ANY};
    struct coll *z;
    bool wrong;
    if (!read_select(c, 2, true, &s))
        return ST_OK;
    view_count_lookups(c->view, true);
    enum status st = zset_open(c, 2, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t from = 0, to = -1;
    struct zset_gather g = {.names = view_arena(c->view)};
    if (z)
        st = select_ranks(z, &s, &from, &to);
    if (st == ST_OK && from <= to)
        st = coll_by_rank(z, from, to, false, zset_gather_item, &g);
    if (st == ST_OK)
        st = zset_store(c, c->argv[1], g.items, g.n);
    if (st == ST_OK)
        reply_integer(c->reply, (int64_t)g.n);
    zset_gather_release(&g);
    return st;
}

/* ---- counting and removing ---- */

/* The range of argv[2] and argv[3], whose options have been read or do not exist: ranks of the set under
   argv[1]. *ret is NULL when there is nothing to do: then an answer has been given. */
static enum status open_range(struct call *c, const struct select *s, struct coll **ret, int64_t *ret_from,
                              int64_t *ret_to)
{
    bool wrong;
    enum status st = zset_open(c, 1, ret, &wrong);
    if (st == ST_OK && *ret)
        return select_ranks(*ret, s, ret_from, ret_to);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, 0);
    return st;
}

static bool read_ends(struct call *c, enum by by, struct select *s)
{
    *s = (struct select){.by = by, .direction = FORWARD, .limit = -1};
    if (by == BY_RANK)
        return arg_i64(c, 2, &s->start, NULL) && arg_i64(c, 3, &s->stop, NULL);
    return by == BY_SCORE ? score_range_read(c, 2, 3, &s->scores) : lex_range_read(c, 2, 3, &s->names);
}

/* The sorted set under argv[1] and the ranks between argv[2] and argv[3]; NULL: it has been answered. */
static enum status open_ends(struct call *c, enum by by, struct coll **ret, int64_t *from, int64_t *to)
{
    struct select s;
    *ret = NULL;
    return read_ends(c, by, &s) ? open_range(c, &s, ret, from, to) : ST_OK;
}

static enum status count(struct call *c, enum by by)
{
    struct coll *z;
    int64_t from, to;
    enum status st = open_ends(c, by, &z, &from, &to);
    if (st == ST_OK && z)
        reply_integer(c->reply, from <= to ? to - from + 1 : 0);
    return st;
}

static enum status zcount(struct call *c)
{
    return count(c, BY_SCORE);
}

static enum status zlexcount(struct call *c)
{
    return count(c, BY_LEX);
}

static enum status remove_range(struct call *c, enum by by)
{
    struct coll *z;
    int64_t from, to;
    enum status st = open_ends(c, by, &z, &from, &to);
    if (st != ST_OK || !z)
        return st;
    if (from <= to) {
        st = coll_remove_ranks(z, from, to);
        if (st == ST_OK)
            st = coll_save(z);
    }
    if (st == ST_OK)
        reply_integer(c->reply, from <= to ? to - from + 1 : 0);
    return st;
}

static enum status zremrangebyrank(struct call *c)
{
    return remove_range(c, BY_RANK);
}

static enum status zremrangebyscore(struct call *c)
{
    return remove_range(c, BY_SCORE);
}

static enum status zremrangebylex(struct call *c)
{
    return remove_range(c, BY_LEX);
}

/* clang-format off */
#define READS \
    .flags = CMD_READONLY, .categories = CAT_READ | CAT_SORTEDSET | CAT_SLOW, .group = "sorted-set", \
    .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}
#define COUNTS \
    .flags = CMD_READONLY | CMD_FAST, .categories = CAT_READ | CAT_SORTEDSET | CAT_FAST, .group = "sorted-set", \
    .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}}
#define REMOVES \
    .flags = CMD_WRITE, .categories = CAT_WRITE | CAT_SORTEDSET | CAT_SLOW, .group = "sorted-set", \
    .keys = {{.flags = KEY_RW | KEY_DELETE, .index = 1, .step = 1}}

const struct command zset_range_commands[] = {
    {
        .name = "zrange", .fn = zrange, .arity = -4, READS, .since = "1.2.0",
        .summary = "Lists members by rank, score or name.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrevrange", .fn = zrevrange, .arity = -4, READS, .since = "1.2.0",
        .summary = "Lists members by rank from the highest score down.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrangebyscore", .fn = zrangebyscore, .arity = -4, READS, .since = "1.0.5",
        .summary = "Lists the members with scores in a range.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrevrangebyscore", .fn = zrevrangebyscore, .arity = -4, READS, .since = "2.2.0",
        .summary = "Lists the members with scores in a range, highest first.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrangebylex", .fn = zrangebylex, .arity = -4, READS, .since = "2.8.9",
        .summary = "Lists the members with names in a range, where all have the same score.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrevrangebylex", .fn = zrevrangebylex, .arity = -4, READS, .since = "2.8.9",
        .summary = "Lists the members with names in a range, last first, where all have the same score.",
        .complexity = "O(log(N)+M) with M members returned.",
    },
    {
        .name = "zrangestore", .fn = zrangestore, .arity = -5, .flags = CMD_WRITE | CMD_DENYOOM,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_SLOW, .group = "sorted-set",
        .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .step = 1},
                 {.flags = KEY_RO | KEY_ACCESS, .index = 2, .step = 1}},
        .since = "6.2.0", .summary = "Stores members chosen by rank, score or name in another key.",
        .complexity = "O(log(N)+M) with M members stored.",
    },
    {
        .name = "zcount", .fn = zcount, .arity = 4, COUNTS, .since = "2.0.0",
        .summary = "Counts the members with scores in a range.", .complexity = "O(log(N))",
    },
    {
        .name = "zlexcount", .fn = zlexcount, .arity = 4, COUNTS, .since = "2.8.9",
        .summary = "Counts the members with names in a range, where all have the same score.",
        .complexity = "O(log(N))",
    },
    {
        .name = "zremrangebyrank", .fn = zremrangebyrank, .arity = 4, REMOVES, .since = "2.0.0",
        .summary = "Removes members by rank.", .complexity = "O(log(N)+M) with M members removed.",
    },
    {
        .name = "zremrangebyscore", .fn = zremrangebyscore, .arity = 4, REMOVES, .since = "1.2.0",
        .summary = "Removes the members with scores in a range.",
        .complexity = "O(log(N)+M) with M members removed.",
    },
    {
        .name = "zremrangebylex", .fn = zremrangebylex, .arity = 4, REMOVES, .since = "2.8.9",
        .summary = "Removes the members with names in a range, where all have the same score.",
        .complexity = "O(log(N)+M) with M members removed.",
    },
    {.name = NULL},
};
/* clang-format on */
