/* Taking members from either end of sorted sets, and random ones. */
#include "base/rand.h"
#include "command/args.h"
#include "command/zset.h"

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

/* Replies up to count members from one end of z as an array, and takes them out. */
static enum status pop(struct call *c, struct coll *z, bool max, int64_t count, enum pop_form form)
{
    int64_t size = coll_size(z), n = count < size ? count : size;
    int64_t from = max ? size - n : 0, to = max ? size - 1 : n - 1;
    struct pop_output o = {c->reply, form};
    reply_array(c->reply, (size_t)(form == POP_PAIRS ? n : 2 * n));
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
    bool pairs = c->argc == 3 && c->reply->resp != 2;
    return pop(c, z, max, count, pairs ? POP_PAIRS : POP_PLAIN);
}

static enum status zpopmin(struct call *c)
{
    return zpop(c, false);
}

static enum status zpopmax(struct call *c)
{
    return zpop(c, true);
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
        enum status st = zset_open(c, m->first + i, &z, ret_done);
        if (st != ST_OK || *ret_done)
            return st;
        if (!z)
            continue;
        *ret_done = true;
        reply_array(c->reply, 2);
        reply_bulk(c->reply, c->argv[m->first + i]);
        return pop(c, z, m->max, m->count, POP_PAIRS);
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

/* ---- ZRANDMEMBER ---- */

#define WALK_SHARE 8 /* when more than one in so many is wanted, all are walked over */

struct sample {
    struct zset_output out;
    struct rand *rnd;
    int64_t wanted, left; /* of those not yet visited */
};

/* Each member is taken with the chance that makes every choice equally likely. */
static enum status maybe_reply(void *arg, const struct coll_item *item)
{
    struct sample *s = arg;
    bool take = (int64_t)rand_below(s->rnd, (uint64_t)s->left) < s->wanted;
    s->left--;
    s->wanted -= take;
    return take ? zset_reply_item(&s->out, item) : ST_OK;
}

static enum status reply_at(struct coll *z, int64_t ord, struct zset_output *o)
{
    struct coll_item item;
    enum status st = coll_at(z, ord, &item);
    return st == ST_OK ? zset_reply_item(o, &item) : st;
}

/* Adds a number to a table of taken ones; false when it is there. Free places hold -1. */
static bool take_number(int64_t *table, size_t mask, int64_t v)
{
    size_t i = (size_t)((uint64_t)v * UINT64_C(0x9E3779B97F4A7C15) >> 20) & mask;
    while (table[i] != -1 && table[i] != v)
        i = (i + 1) & mask;
    bool taken = table[i] == v;
    table[i] = v;
    return !taken;
}

/* A few different members of many: each new number is random below a growing bound, or the bound itself when
   that one is taken (Floyd). */
static enum status reply_distinct(struct call *c, struct coll *z, int64_t n, struct zset_output *o)
{
    size_t room = 16;
    while (room < 2 * (size_t)n)
        room *= 2;
    int64_t *table = arena_alloc(c->arena, room * sizeof *table);
    for (size_t i = 0; i < room; i++)
        table[i] = -1;
    enum status st = ST_OK;
    for (int64_t bound = coll_size(z) - n; st == ST_OK && bound < coll_size(z); bound++) {
        int64_t ord = (int64_t)rand_below(view_rand(c->view), (uint64_t)bound + 1);
        if (!take_number(table, room - 1, ord)) {
            ord = bound;
            (void)take_number(table, room - 1, ord);
        }
        st = reply_at(z, ord, o);
    }
    return st;
}

static enum status reply_random(struct call *c, struct coll *z, int64_t count, bool with_scores)
{
    struct zset_output o = {c->reply, with_scores};
    int64_t size = coll_size(z);
    enum status st = ST_OK;
    if (count < 0) {
        zset_reply_begin(c->reply, (size_t)-count, with_scores);
        for (int64_t i = 0; st == ST_OK && i < -count; i++)
            st = reply_at(z, (int64_t)rand_below(view_rand(c->view), (uint64_t)size), &o);
        return st;
    }
    int64_t n = count < size ? count : size;
    zset_reply_begin(c->reply, (size_t)n, with_scores);
    if (n < size / WALK_SHARE)
        return reply_distinct(c, z, n, &o);
    struct sample s = {o, view_rand(c->view), n, size};
    return coll_each(z, maybe_reply, &s);
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
    if (z && c->argc == 2) {
        struct zset_output o = {c->reply, false};
        return reply_at(z, (int64_t)rand_below(view_rand(c->view), (uint64_t)coll_size(z)), &o);
    }
    if (c->argc == 2)
        reply_null(c->reply);
    else if (!z || count == 0)
        reply_array(c->reply, 0);
    else
        return reply_random(c, z, count, with_scores);
    return ST_OK;
}

/* clang-format off */
#define POPS \
    .arity = -2, .flags = CMD_WRITE | CMD_FAST, .categories = CAT_WRITE | CAT_SORTEDSET | CAT_FAST, \
    .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1}}, .group = "sorted-set", \
    .complexity = "O(log(N)+M) with M members removed."

const struct command zset_pop_commands[] = {
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
