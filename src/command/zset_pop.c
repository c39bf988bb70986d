/* Taking members from either end of sorted sets, waiting for them if need be, and random ones. */
#include "command/families.h"
#include "command/zset.h"
#include "exec/args.h"
#include "exec/block.h"

/* ---- popping ---- */

enum pop_form {
    POP_PLAIN, /* member, score, member, score ... */
    POP_PAIRS  /* [member, score], [member, score] ... */
};

struct pop_output {
    struct reply *reply;
    enum pop_form form;
};

static enum status reply_popped(void *arg, const struct coll_item *item)
{
    const struct pop_output *o = arg;
    if (o->form == POP_PAIRS)
        reply_array(o->reply, 2);
    reply_bulk(o->reply, item->name);
    reply_double(o->reply, item->score);
    return ST_OK;
}

/* Replies n members, 0 < n <= size, from one end of z and takes them out. The array has been announced. */
static enum status pop(struct call *c, struct coll *z, bool max, int64_t n, enum pop_form form)
{
    int64_t size = coll_size(z);
    int64_t from = max ? size - n : 0, to = max ? size - 1 : n - 1;
    struct pop_output o = {c->reply, form};
    enum status st = coll_by_rank(z, from, to, max, reply_popped, &o);
    if (st == ST_OK)
        st = coll_remove_ranks(z, from, to);
    return st == ST_OK ? coll_save(z) : st;
}

static enum status zpop(struct call *c, bool max)
{
    int64_t count = 1;
    struct coll *z;
    bool wrong;
    if (c->argc > 3) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if (c->argc == 3 && !arg_range(c, 2, 0, INT64_MAX, &count, "ERR value is out of range, must be positive"))
        return ST_OK;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!z || count == 0) {
        reply_array(c->reply, 0);
        return ST_OK;
    }
    int64_t n = count < coll_size(z) ? count : coll_size(z);
    bool pairs = c->argc == 3 && c->reply->resp != 2;
    reply_array(c->reply, (size_t)(pairs ? n : 2 * n));
    return pop(c, z, max, n, pairs ? POP_PAIRS : POP_PLAIN);
}

static enum status zpopmin(struct call *c)
{
    return zpop(c, false);
}

static enum status zpopmax(struct call *c)
{
    return zpop(c, true);
}

/* BZPOPMIN and BZPOPMAX: the key, one member and its score. */
static enum status pop_or_wait(struct call *c, bool max)
{
    int64_t timeout_us;
    if (!block_timeout_arg(c, c->argc - 1, &timeout_us))
        return ST_OK;
    for (int i = 1; i < c->argc - 1; i++) {
        struct coll *z;
        bool wrong;
        if (!block_wants(c, c->argv[i]))
            continue;
        enum status st = zset_open(c, i, &z, &wrong);
        if (st != ST_OK || wrong)
            return st;
        if (!z)
            continue;
        reply_array(c->reply, 3);
        reply_bulk(c->reply, c->argv[i]);
        return pop(c, z, max, 1, POP_PLAIN);
    }
    block_on(c, ROW_ZSET, 1, c->argc - 2, timeout_us);
    return ST_OK;
}

static enum status bzpopmin(struct call *c)
{
    return pop_or_wait(c, false);
}

static enum status bzpopmax(struct call *c)
{
    return pop_or_wait(c, true);
}

/* numkeys key [key ...] MIN|MAX [COUNT count] */
struct mpop {
    int first, nkeys;
    bool max;
    int64_t count;
};

static bool read_mpop(struct call *c, int i, struct mpop *ret)
{
    int64_t nkeys;
    bool counted = false;
    if (!arg_range(c, i, 1, INT64_MAX, &nkeys, "ERR numkeys should be greater than 0"))
        return false;
    *ret = (struct mpop){.first = i + 1, .count = 1};
    bool ok = nkeys < c->argc - i - 1;
    if (ok) {
        ret->nkeys = (int)nkeys;
        i += ret->nkeys + 1;
        ret->max = slice_is(c->argv[i], "max");
        ok = ret->max || slice_is(c->argv[i], "min");
    }
    for (i++; ok && i < c->argc; i += 2) {
        ok = !counted && slice_is(c->argv[i], "count") && i + 1 < c->argc;
        if (ok && !arg_range(c, i + 1, 1, INT64_MAX, &ret->count, "ERR count should be greater than 0"))
            return false;
        counted = true;
    }
    if (!ok)
        reply_error(c->reply, ERR_SYNTAX);
    return ok;
}

/* Pops from the first of the keys that is there. *ret_done: something has been replied. */
static enum status pop_first(struct call *c, const struct mpop *m, bool *ret_done)
{
    *ret_done = false;
    for (int i = 0; i < m->nkeys; i++) {
        struct coll *z;
        if (!block_wants(c, c->argv[m->first + i]))
            continue;
        enum status st = zset_open(c, m->first + i, &z, ret_done);
        if (st != ST_OK || *ret_done)
            return st;
        if (!z)
            continue;
        *ret_done = true;
        reply_array(c->reply, 2);
        reply_bulk(c->reply, c->argv[m->first + i]);
        int64_t n = m->count < coll_size(z) ? m->count : coll_size(z);
        reply_array(c->reply, (size_t)n);
        return pop(c, z, m->max, n, POP_PAIRS);
    }
    return ST_OK;
}

static enum status zmpop(struct call *c)
{
    struct mpop m;
    bool done;
    if (!read_mpop(c, 1, &m))
        return ST_OK;
    enum status st = pop_first(c, &m, &done);
    if (st == ST_OK && !done)
        reply_null_array(c->reply);
    return st;
}

static enum status bzmpop(struct call *c)
{
    struct mpop m;
    bool done;
    int64_t timeout_us;
    if (!read_mpop(c, 2, &m) || !block_timeout_arg(c, 1, &timeout_us))
        return ST_OK;
    enum status st = pop_first(c, &m, &done);
    if (st == ST_OK && !done)
        block_on(c, ROW_ZSET, m.first, m.nkeys, timeout_us);
    return st;
}

/* ---- ZRANDMEMBER ---- */

static enum status reply_random(struct call *c, struct coll *z, int64_t count, bool with_scores)
{
    struct zset_output o = {c->reply, with_scores};
    int64_t size = coll_size(z);
    int64_t n = count < 0 ? -count : count < size ? count : size;
    size_t start = c->reply->ops->mark(c->reply);
    zset_reply_begin(c->reply, (size_t)n, with_scores);
    if (count >= 0)
        return coll_sample(z, n, zset_reply_item, &o);
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < n && reply_drawn_fits(c, start, n - i); i++) {
        struct coll_item item;
        st = coll_random(z, &item);
        if (st == ST_OK)
            zset_reply_member(c->reply, &item, with_scores);
    }
    return st;
}

static enum status reply_any(struct call *c, struct coll *z)
{
    if (!z) {
        reply_null(c->reply);
        return ST_OK;
    }
    struct coll_item item;
    enum status st = coll_random(z, &item);
    if (st == ST_OK)
        reply_bulk(c->reply, item.name);
    return st;
}

static bool read_random(struct call *c, int64_t *ret_count, bool *ret_with_scores)
{
    if (!arg_range(c, 2, -INT64_MAX, INT64_MAX, ret_count, NULL))
        return false;
    *ret_with_scores = c->argc == 4 && slice_is(c->argv[3], "withscores");
    if (c->argc > 4 || (c->argc == 4 && !*ret_with_scores)) {
        reply_error(c->reply, ERR_SYNTAX);
        return false;
    }
    if (*ret_with_scores && (*ret_count < -INT64_MAX / 2 || *ret_count > INT64_MAX / 2)) {
        reply_error(c->reply, "ERR value is out of range");
        return false;
    }
    return true;
}

static enum status zrandmember(struct call *c)
{
    int64_t count = 1;
    bool with_scores = false, wrong;
    struct coll *z;
    if (c->argc > 2 && !read_random(c, &count, &with_scores))
        return ST_OK;
    enum status st = zset_open(c, 1, &z, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (c->argc == 2)
        return reply_any(c, z);
    if (z && count != 0)
        return reply_random(c, z, count, with_scores);
    reply_array(c->reply, 0);
    return ST_OK;
}

/* clang-format off */
#define POPS \
    .arity = -2, .flags = CMD_WRITE | CMD_FAST, .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST, \
    .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1}}, .group = "sorted-set", \
    .complexity = "O(log(N)+M) with M members removed."

#define WAITS \
    .arity = -3, .flags = CMD_WRITE | CMD_NOSCRIPT | CMD_BLOCKING | CMD_FAST, \
    .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST | CAT_BLOCKING, \
    .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .last = -2, .step = 1}}, \
    .group = "sorted-set", .complexity = "O(K)+O(log(N)) with K keys."

const struct command zset_pop_commands[] = {
    {
        .name = "bzpopmin", .fn = bzpopmin, WAITS, .since = "5.0.0",
        .summary = "Removes and returns the member with the lowest score, or waits for one.",
    },
    {
        .name = "bzpopmax", .fn = bzpopmax, WAITS, .since = "5.0.0",
        .summary = "Removes and returns the member with the highest score, or waits for one.",
    },
    {
        .name = "bzmpop", .fn = bzmpop, .arity = -5, .flags = CMD_WRITE | CMD_BLOCKING | CMD_MOVABLEKEYS,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_SLOW | CAT_BLOCKING, .group = "sorted-set",
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 2, .keynum = true, .keynum_first = 1,
                  .step = 1}},
        .since = "7.0.0",
        .summary = "Removes and returns members of the first key that exists, or waits for one to exist.",
        .complexity = "O(K)+O(log(N)+M) with K keys and M members removed.",
    },
    {
        .name = "zpopmin", .fn = zpopmin, POPS, .since = "5.0.0",
        .summary = "Removes and returns the members with the lowest scores.",
    },
    {
        .name = "zpopmax", .fn = zpopmax, POPS, .since = "5.0.0",
        .summary = "Removes and returns the members with the highest scores.",
    },
    {
        .name = "zmpop", .fn = zmpop, .arity = -4, .flags = CMD_WRITE | CMD_MOVABLEKEYS,
        .categories = CAT_WRITE | CAT_SORTEDSET | CAT_SLOW, .group = "sorted-set",
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .keynum = true, .keynum_first = 1,
                  .step = 1}},
        .since = "7.0.0",
        .summary = "Removes and returns members with the lowest or highest scores of the first key that exists.",
        .complexity = "O(K)+O(log(N)+M) with K keys and M members removed.",
    },
    {
        .name = "zrandmember", .fn = zrandmember, .arity = -2, .flags = CMD_READONLY,
        .categories = CAT_READ | CAT_SORTEDSET | CAT_SLOW, .group = "sorted-set",
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
        .since = "6.2.0", .summary = "Returns random members.", .complexity = "O(M) with M members returned.",
        .tips = {"nondeterministic_output"},
    },
    {.name = NULL},
};
/* clang-format on */
