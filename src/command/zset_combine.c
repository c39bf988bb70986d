/* Unions, intersections and differences of sorted sets. Sets take part as well: each of their members has
   score 1.

   The result is put together in memory, one source after the other. A source is walked over, or asked for the
   members in question one by one, whichever is less work. */
#include <math.h>
#include <stdlib.h>

#include "command/families.h"
#include "command/scores.h"
#include "command/zset.h"
#include "exec/args.h"

/* A look-up costs as much as walking over so many members. */
#define LOOKUP_COST 8

enum operation { UNION, INTERSECTION, DIFFERENCE };
enum aggregate { SUM, MIN, MAX };

struct source {
    struct coll *coll; /* NULL: there is no such key */
    bool set;          /* not a sorted one */
    double weight;
};

struct combine {
    enum operation op;
    bool store;      /* the first argument is where the result goes */
    bool count_only; /* ZINTERCARD */
    enum aggregate aggregate;
    bool with_scores;
    int64_t limit; /* ZINTERCARD: 0 is none */
    int nsources;
    struct source *sources;
    struct scores result;
    uint32_t round; /* how many sources have been seen: entries that are in all of them have it, too */
    const struct source *current;
};

/* ---- arguments ---- */

static enum status open_source(struct call *c, int i, struct source *s, bool *ret_wrong)
{
    *s = (struct source){.weight = 1};
    view_count_lookups(c->view, true);
    enum status st = coll_open(c->view, call_db(c), c->argv[i], ROW_ZSET, &s->coll, ret_wrong);
    if (st == ST_OK && *ret_wrong) {
        s->set = true;
        view_count_lookups(c->view, false); /* it is the same key */
        st = coll_open(c->view, call_db(c), c->argv[i], ROW_SET, &s->coll, ret_wrong);
    }
    if (st == ST_OK && *ret_wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

/* *ret_ok is false when an error has been replied. */
static enum status open_sources(struct call *c, struct combine *m, int i, bool *ret_ok)
{
    int64_t n;
    *ret_ok = false;
    if (!arg_i64(c, i, &n, NULL))
        return ST_OK;
    if (n < 1) {
        char name[COMMAND_NAME_CHARS];
        command_full_name(c->cmd, name);
        reply_errorf(c->reply, "ERR at least 1 input key is needed for '%s' command", name);
        return ST_OK;
    }
    if (n > c->argc - (i + 1)) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    m->nsources = (int)n;
    m->sources = arena_alloc(c->arena, (size_t)n * sizeof *m->sources);
    for (int k = 0; k < m->nsources; k++) {
        bool wrong;
        enum status st = open_source(c, i + 1 + k, &m->sources[k], &wrong);
        if (st != ST_OK || wrong)
            return st;
    }
    *ret_ok = true;
    return ST_OK;
}

static bool read_aggregate(struct call *c, int i, enum aggregate *ret)
{
    if (slice_is(c->argv[i], "sum"))
        *ret = SUM;
    else if (slice_is(c->argv[i], "min"))
        *ret = MIN;
    else if (slice_is(c->argv[i], "max"))
        *ret = MAX;
    else {
        reply_error(c->reply, ERR_SYNTAX);
        return false;
    }
    return true;
}

static bool read_options(struct call *c, struct combine *m, int i)
{
    bool weighs = m->op != DIFFERENCE && !m->count_only;
    while (i < c->argc) {
        struct slice word = c->argv[i++];
        int left = c->argc - i;
        if (weighs && left >= m->nsources && slice_is(word, "weights")) {
            for (int k = 0; k < m->nsources; k++)
                if (!arg_double(c, i++, &m->sources[k].weight, "ERR weight value is not a float"))
                    return false;
        } else if (weighs && left >= 1 && slice_is(word, "aggregate")) {
            if (!read_aggregate(c, i++, &m->aggregate))
                return false;
        } else if (!m->store && !m->count_only && slice_is(word, "withscores")) {
            m->with_scores = true;
        } else if (m->count_only && left >= 1 && slice_is(word, "limit")) {
            if (!arg_range(c, i++, 0, INT64_MAX, &m->limit, "ERR LIMIT can't be negative"))
                return false;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

/* ---- putting together ---- */

static int64_t source_size(const struct source *s)
{
    return s->coll ? coll_size(s->coll) : 0;
}

static double score_of(const struct source *s, const struct coll_item *item)
{
    return s->weight * (s->set ? 1 : item->score);
}

/* Infinities that cancel each other out count as 0. */
static double not_nan(double v)
{
    return isnan(v) ? 0 : v;
}

static double aggregate(enum aggregate how, double a, double b)
{
    switch (how) {
    case MIN:
        return b < a ? b : a;
    case MAX:
        return b > a ? b : a;
    case SUM:
        break;
    }
    return not_nan(a + b);
}

/* The first source, and every one of a union. */
static enum status take_in(void *arg, const struct coll_item *item)
{
    struct combine *m = arg;
    bool added;
    struct score *e = scores_add(&m->result, item->name, &added);
    double score = not_nan(score_of(m->current, item));
    e->score = added ? score : aggregate(m->aggregate, e->score, score);
    e->round = m->round;
    return ST_OK;
}

/* A member of a later source: it keeps an entry in an intersection, and takes it out of a difference. */
static void meet(struct combine *m, struct score *e, const struct coll_item *item)
{
    if (e->round != m->round - 1)
        return;
    e->round = m->round;
    if (m->op == INTERSECTION)
        e->score = aggregate(m->aggregate, e->score, score_of(m->current, item));
}

static enum status meet_item(void *arg, const struct coll_item *item)
{
    struct combine *m = arg;
    struct score *e = scores_find(&m->result, item->name);
    if (e)
        meet(m, e, item);
    return ST_OK;
}

/* One more source against the entries that the others left. */
static enum status narrow(struct combine *m, const struct source *s)
{
    m->current = s;
    m->round++;
    if (source_size(s) == 0)
        return ST_OK;
    if (source_size(s) / LOOKUP_COST <= (int64_t)m->result.len)
        return coll_each(s->coll, meet_item, m);
    for (size_t i = 0; i < m->result.len; i++) {
        struct score *e = &m->result.entries[i];
        struct coll_item item;
        bool found = false;
        enum status st = e->round == m->round - 1 ? coll_find(s->coll, e->name, &found, &item) : ST_OK;
        if (st != ST_OK)
            return st;
        if (found)
            meet(m, e, &item);
    }
    return ST_OK;
}

/* In a difference what a source has is gone, and what it does not have goes on to the next round. */
static void keep_unmet(struct combine *m)
{
    for (size_t i = 0; i < m->result.len; i++) {
        struct score *e = &m->result.entries[i];
        e->round = e->round == m->round - 1 ? m->round : 0;
    }
}

static int by_size(const void *a, const void *b)
{
    int64_t x = source_size(a), y = source_size(b);
    return (x > y) - (x < y);
}

static enum status put_together(struct combine *m)
{
    enum status st = ST_OK;
    /* From the smallest to the largest, as Redis does: sums come out the same to the last bit. */
    if (m->op != DIFFERENCE)
        qsort(m->sources, (size_t)m->nsources, sizeof *m->sources, by_size);
    m->round = 1;
    for (int i = 0; st == ST_OK && i < m->nsources; i++) {
        const struct source *s = &m->sources[i];
        if (i == 0 || m->op == UNION) {
            m->current = s;
            st = source_size(s) ? coll_each(s->coll, take_in, m) : ST_OK;
        } else if (m->result.len) {
            st = narrow(m, s);
            if (m->op == DIFFERENCE)
                keep_unmet(m);
        }
    }
    scores_finish(&m->result, m->round);
    return st;
}

/* ---- the answer ---- */

static enum status store(struct call *c, const struct scores *s)
{
    struct coll_item *items = arena_alloc(c->arena, (s->len + 1) * sizeof *items);
    for (size_t i = 0; i < s->len; i++)
        items[i] = (struct coll_item){.name = s->entries[i].name, .score = s->entries[i].score};
    enum status st = zset_store(c, c->argv[1], items, s->len);
    if (st == ST_OK)
        reply_integer(c->reply, (int64_t)s->len);
    return st;
}

static enum status answer(struct call *c, const struct combine *m)
{
    const struct scores *s = &m->result;
    int64_t n = (int64_t)s->len;
    if (m->store)
        return store(c, s);
    if (m->count_only) {
        reply_integer(c->reply, m->limit && m->limit < n ? m->limit : n);
        return ST_OK;
    }
    zset_reply_begin(c->reply, s->len, m->with_scores);
    for (size_t i = 0; i < s->len; i++) {
        struct coll_item item = {.name = s->entries[i].name, .score = s->entries[i].score};
        zset_reply_member(c->reply, &item, m->with_scores);
    }
    return ST_OK;
}

static enum status combine(struct call *c, struct combine *m)
{
    int i = m->store ? 2 : 1;
    bool ok;
    enum status st = open_sources(c, m, i, &ok);
    if (st != ST_OK || !ok || !read_options(c, m, i + 1 + m->nsources))
        return st;
    m->result.arena = m->store ? view_arena(c->view) : c->arena;
    st = put_together(m);
    if (st == ST_OK)
        st = answer(c, m);
    scores_release(&m->result);
    return st;
}

static enum status zunion(struct call *c)
{
    return combine(c, &(struct combine){.op = UNION});
}

static enum status zinter(struct call *c)
{
    return combine(c, &(struct combine){.op = INTERSECTION});
}

static enum status zdiff(struct call *c)
{
    return combine(c, &(struct combine){.op = DIFFERENCE});
}

static enum status zunionstore(struct call *c)
{
    return combine(c, &(struct combine){.op = UNION, .store = true});
}

static enum status zinterstore(struct call *c)
{
    return combine(c, &(struct combine){.op = INTERSECTION, .store = true});
}

static enum status zdiffstore(struct call *c)
{
    return combine(c, &(struct combine){.op = DIFFERENCE, .store = true});
}

static enum status zintercard(struct call *c)
{
    return combine(c, &(struct combine){.op = INTERSECTION, .count_only = true});
}

/* clang-format off */
#define READS \
    .arity = -3, .flags = CMD_READONLY | CMD_MOVABLEKEYS, .categories = CAT_READ | CAT_SORTEDSET | CAT_SLOW, \
    .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .keynum = true, .keynum_first = 1, .step = 1}}, \
    .group = "sorted-set"
#define STORES \
    .arity = -4, .flags = CMD_WRITE | CMD_DENYOOM | CMD_MOVABLEKEYS, \
    .categories = CAT_WRITE | CAT_SORTEDSET | CAT_SLOW, \
    .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .step = 1}, \
             {.flags = KEY_RO | KEY_ACCESS, .index = 2, .keynum = true, .keynum_first = 1, .step = 1}}, \
    .group = "sorted-set"
#define UNION_COST "O(N)+O(M*log(M)) with N members in all sources and M in the result."
#define INTER_COST "O(N*K)+O(M*log(M)) with N members in the smallest of K sources and M in the result."
#define DIFF_COST  "O(N)+O(M*log(M)) with N members in all sources and M in the result."

const struct command zset_combine_commands[] = {
    {
        .name = "zunion", .fn = zunion, READS, .since = "6.2.0", .complexity = UNION_COST,
        .summary = "Returns the members of any of several sorted sets, with their scores put together.",
    },
    {
        .name = "zinter", .fn = zinter, READS, .since = "6.2.0", .complexity = INTER_COST,
        .summary = "Returns the members of all of several sorted sets, with their scores put together.",
    },
    {
        .name = "zdiff", .fn = zdiff, READS, .since = "6.2.0", .complexity = DIFF_COST,
        .summary = "Returns the members of the first sorted set that are in none of the others.",
    },
    {
        .name = "zunionstore", .fn = zunionstore, STORES, .since = "2.0.0", .complexity = UNION_COST,
        .summary = "Stores the members of any of several sorted sets in a key.",
    },
    {
        .name = "zinterstore", .fn = zinterstore, STORES, .since = "2.0.0", .complexity = INTER_COST,
        .summary = "Stores the members of all of several sorted sets in a key.",
    },
    {
        .name = "zdiffstore", .fn = zdiffstore, STORES, .since = "6.2.0", .complexity = DIFF_COST,
        .summary = "Stores the members of the first sorted set that are in none of the others in a key.",
    },
    {
        .name = "zintercard", .fn = zintercard, READS, .since = "7.0.0",
        .complexity = "O(N*K) with N members in the smallest of K sources.",
        .summary = "Counts the members of all of several sorted sets.",
    },
    {.name = NULL},
};
/* clang-format on */
