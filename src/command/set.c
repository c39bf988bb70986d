/* Sets member by member: adding, removing, asking, at random, page by page. What is done with several sets at
   once is in set_algebra.c. */
#include "command/set.h"

#include "command/families.h"
#include "command/scan.h"
#include "exec/args.h"

enum status set_open(struct call *c, int i, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_open(c->view, call_db(c), c->argv[i], ROW_SET, ret, ret_wrong);
    if (st == ST_OK && *ret_wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

/* A coll_fn: arg is the reply. */
static enum status reply_member(void *arg, const struct coll_item *item)
{
    reply_bulk(arg, item->name);
    return ST_OK;
}

/* ---- adding and removing ---- */

static enum status add(struct coll *s, struct slice name, bool *ret_added)
{
    struct coll_item item = {.name = name}, old;
    bool found;
    enum status st = coll_find(s, name, &found, &old);
    *ret_added = !found;
    return st == ST_OK && !found ? coll_put_known(s, &item, NULL) : st;
}

static enum status sadd(struct call *c)
{
    struct coll *s;
    bool wrong, added;
    int64_t n = 0;
    enum status st = coll_make(c->view, call_db(c), c->argv[1], ROW_SET, &s, &wrong);
    if (st == ST_OK && wrong) {
        reply_error(c->reply, ERR_WRONGTYPE);
        return ST_OK;
    }
    for (int i = 2; st == ST_OK && i < c->argc; i++) {
        st = add(s, c->argv[i], &added);
        n += added;
    }
    if (st == ST_OK)
        st = coll_save(s);
    if (st == ST_OK)
        reply_integer(c->reply, n);
    return st;
}

static enum status srem(struct call *c)
{
    struct coll *s;
    bool wrong, removed;
    int64_t n = 0;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    for (int i = 2; s && i < c->argc && coll_size(s) > 0; i++) {
        if ((st = coll_remove(s, c->argv[i], &removed)) != ST_OK)
            return st;
        n += removed;
    }
    if (s && (st = coll_save(s)) != ST_OK)
        return st;
    reply_integer(c->reply, n);
    return ST_OK;
}

/* A member moves only where it is, and the destination is not touched when it has it already. */
static enum status move(struct call *c, struct coll *from, struct coll *to, bool *ret_moved)
{
    struct slice name = c->argv[3];
    bool added;
    enum status st = coll_remove(from, name, ret_moved);
    if (st != ST_OK || !*ret_moved)
        return st;
    if ((st = coll_save(from)) != ST_OK || (st = add(to, name, &added)) != ST_OK)
        return st;
    return coll_save(to);
}

static enum status smove(struct call *c)
{
    struct coll *from, *to;
    struct coll_item item;
    bool wrong, wrong_to, moved = false;
    enum status st = coll_open(c->view, call_db(c), c->argv[1], ROW_SET, &from, &wrong);
    bool same = slice_eq(c->argv[1], c->argv[2]);
    if (st == ST_OK && !from && !wrong) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    if (st == ST_OK)
        st = coll_make(c->view, call_db(c), c->argv[2], ROW_SET, &to, &wrong_to);
    if (st != ST_OK)
        return st;
    if (wrong || wrong_to) {
        reply_error(c->reply, ERR_WRONGTYPE);
        return ST_OK;
    }
    st = same ? coll_find(from, c->argv[3], &moved, &item) : move(c, from, to, &moved);
    if (st == ST_OK)
        reply_integer(c->reply, moved);
    return st;
}

/* ---- asking ---- */

static enum status sismember(struct call *c)
{
    struct coll *s;
    struct coll_item item;
    bool wrong, found = false;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st == ST_OK && s)
        st = coll_find(s, c->argv[2], &found, &item);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, found);
    return st;
}

static enum status smismember(struct call *c)
{
    struct coll *s;
    bool wrong;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; st == ST_OK && i < c->argc; i++) {
        struct coll_item item;
        bool found = false;
        if (s)
            st = coll_find(s, c->argv[i], &found, &item);
        reply_integer(c->reply, found);
    }
    return st;
}

static enum status scard(struct call *c)
{
    const struct row *row;
    bool wrong;
    enum status st = arg_row(c, 1, ROW_SET, &row, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, row ? row_items(row).size : 0);
    return st;
}

static enum status smembers(struct call *c)
{
    struct coll *s;
    bool wrong;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    reply_set(c->reply, s ? (size_t)coll_size(s) : 0);
    return s ? coll_each(s, reply_member, c->reply) : ST_OK;
}

static enum status add_to_page(void *arg, const struct coll_item *item)
{
    if (scan_wants(arg, item->name))
        scan_add(arg, item->name);
    return ST_OK;
}

static enum status sscan(struct call *c)
{
    struct scan_page page;
    struct coll *s;
    bool wrong;
    if (!scan_cursor(c, 2, &page))
        return ST_OK;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!s)
        page.cursor = 0;
    else if (!scan_options(c, 3, false, &page))
        return ST_OK;
    else
        st = coll_page(s, &page.cursor, page.count, add_to_page, &page);
    if (st == ST_OK)
        scan_reply(c, &page);
    return st;
}

/* ---- at random ---- */

static enum status pop(struct call *c, struct coll *s, int64_t count)
{
    enum status st = coll_take_random(s, count, reply_member, c->reply);
    return st == ST_OK ? coll_save(s) : st;
}

static enum status spop(struct call *c)
{
    struct coll *s;
    bool wrong, counted = c->argc > 2;
    int64_t count = 1;
    if (c->argc > 3) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if (counted && !arg_range(c, 2, 0, INT64_MAX, &count, "ERR value is out of range, must be positive"))
        return ST_OK;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t size = s ? coll_size(s) : 0, n = count < size ? count : size;
    if (counted)
        reply_set(c->reply, (size_t)n);
    else if (!s)
        reply_null(c->reply);
    return s ? pop(c, s, n) : ST_OK;
}

/* A positive count wants so many different members, a negative one any, some of them perhaps twice. */
static enum status reply_random(struct call *c, struct coll *s, int64_t count)
{
    int64_t size = coll_size(s), n = count < 0 ? -count : count;
    size_t start = c->reply->ops->mark(c->reply);
    if (count > size)
        n = size;
    reply_array(c->reply, (size_t)n);
    if (count >= 0)
        return coll_sample(s, n, reply_member, c->reply);
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < n && reply_drawn_fits(c, start, n - i); i++) {
        struct coll_item item;
        st = coll_random(s, &item);
        if (st == ST_OK)
            reply_bulk(c->reply, item.name);
    }
    return st;
}

static enum status srandmember(struct call *c)
{
    struct coll *s;
    struct coll_item item;
    bool wrong;
    int64_t count = 0;
    if (c->argc > 3) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    if (c->argc == 3 && !arg_range(c, 2, -INT64_MAX, INT64_MAX, &count, NULL))
        return ST_OK;
    enum status st = set_open(c, 1, &s, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (c->argc == 3) {
        if (s)
            return reply_random(c, s, count);
        reply_array(c->reply, 0);
        return ST_OK;
    }
    if (!s) {
        reply_null(c->reply);
        return ST_OK;
    }
    st = coll_random(s, &item);
    if (st == ST_OK)
        reply_bulk(c->reply, item.name);
    return st;
}

/* clang-format off */
#define WRITES(name_, fn_, arity_, flags_, key_flags_, since_, complexity_, summary_)                        \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_WRITE | CMD_FAST | (flags_),           \
        .categories = CAT_WRITE | CAT_SET | CAT_FAST,                                                        \
        .keys = {{.flags = KEY_RW | (key_flags_), .index = 1, .step = 1}}, .names = {2, 1, 0},               \
        .summary = (summary_), .since = (since_), .group = "set", .complexity = (complexity_)                \
    }

#define READS(name_, fn_, arity_, key_flags_, since_, complexity_, summary_)                                 \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_READONLY | CMD_FAST,                   \
        .categories = CAT_READ | CAT_SET | CAT_FAST,                                                         \
        .keys = {{.flags = KEY_RO | (key_flags_), .index = 1, .step = 1}}, .names = {2, 1, 0},               \
        .summary = (summary_), .since = (since_), .group = "set", .complexity = (complexity_)                \
    }

#define READS_MANY(name_, fn_, arity_, since_, tip_, complexity_, summary_)                                  \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_READONLY,                              \
        .categories = CAT_READ | CAT_SET | CAT_SLOW,                                                         \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = (since_), .group = "set", .complexity = (complexity_),               \
        .tips = {tip_}                                                                                       \
    }

const struct command set_commands[] = {
    WRITES("sadd", sadd, -3, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_INSERT, "1.0.0", "O(N) in the members named.",
           "Adds members to a set."),
    WRITES("srem", srem, -3, 0, KEY_DELETE, "1.0.0", "O(N) in the members named.",
           "Removes members from a set, and the set when none is left."),
    {
        .name = "smove", .fn = smove, .arity = 4, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_WRITE | CAT_SET | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1},
                 {.flags = KEY_RW | KEY_INSERT, .index = 2, .step = 1}},
        .summary = "Moves a member to another set.", .since = "1.0.0", .group = "set", .complexity = "O(1)",
    },
    READS("sismember", sismember, 3, 0, "1.0.0", "O(1)", "Tells whether a set has a member."),
    READS("smismember", smismember, -3, KEY_ACCESS, "6.2.0", "O(N) in the members named.",
          "Tells which members a set has."),
    READS("scard", scard, 2, 0, "1.0.0", "O(1)", "Counts the members."),
    READS_MANY("smembers", smembers, 2, "1.0.0", "nondeterministic_output_order",
               "O(N) in the members, which go straight into the reply.", "Returns all members."),
    READS_MANY("sscan", sscan, -3, "2.8.0", "nondeterministic_output",
               "O(COUNT) for each page, O(N) in the members for all of them.", "Lists members page by page."),
    READS_MANY("srandmember", srandmember, -2, "1.0.0", "nondeterministic_output",
               "O(N) in the members wanted, or in all of them when that is less.", "Returns random members."),
    {
        .name = "spop", .fn = spop, .arity = -2, .flags = CMD_WRITE | CMD_FAST,
        .categories = CAT_WRITE | CAT_SET | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1}},
        .summary = "Removes and returns random members.", .since = "1.0.0", .group = "set",
        .complexity = "O(N) in the members taken.", .tips = {"nondeterministic_output"},
    },
    {.name = NULL},
};
/* clang-format on */
