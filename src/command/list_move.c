/* Lists: moving an item to another list, popping from the first list that has one, and waiting until there is
   one. */
#include "exec/args.h"

#include "command/families.h"
#include "command/list.h"
#include "exec/block.h"
#include "exec/txn.h"

static bool arg_side(struct call *c, int i, bool *ret_front)
{
    *ret_front = slice_is(c->argv[i], "left");
    if (*ret_front || slice_is(c->argv[i], "right"))
        return true;
    reply_error(c->reply, ERR_SYNTAX);
    return false;
}

/* ---- from list to list ---- */

/* The same list: its item goes from one end to the other. */
static enum status rotate(struct call *c, struct coll *list, bool from_front, bool to_front)
{
    struct slice value;
    enum status st = coll_pop(list, from_front, &value);
    if (st == ST_OK)
        st = coll_push(list, to_front, value);
    if (st != ST_OK)
        return st;
    reply_bulk(c->reply, value);
    return coll_save(list);
}

/* *ret_empty: there is nothing to move, and nothing has been replied. */
static enum status move(struct call *c, bool from_front, bool to_front, bool *ret_empty)
{
    struct coll *from, *to;
    bool wrong;
    enum status st = list_open(c, 1, &from, &wrong);
    *ret_empty = st == ST_OK && !wrong && !from;
    if (st != ST_OK || wrong || !from)
        return st;
    if (slice_eq(c->argv[1], c->argv[2]))
        return rotate(c, from, from_front, to_front);
    st = list_make(c, 2, &to, &wrong);
    if (st != ST_OK || wrong)
        return st;
    struct slice value;
    st = coll_pop(from, from_front, &value);
    if (st == ST_OK)
        st = coll_push(to, to_front, value);
    if (st == ST_OK)
        st = coll_save(from);
    if (st != ST_OK)
        return st;
    reply_bulk(c->reply, value);
    return coll_save(to);
}

static enum status move_now(struct call *c, bool from_front, bool to_front)
{
    bool empty;
    enum status st = move(c, from_front, to_front, &empty);
    if (empty)
        reply_null(c->reply);
    return st;
}

static enum status move_or_wait(struct call *c, bool from_front, bool to_front, int timeout_at)
{
    int64_t timeout_us;
    if (!block_timeout_arg(c, timeout_at, &timeout_us))
        return ST_OK;
    bool empty;
    enum status st = move(c, from_front, to_front, &empty);
    if (empty && txn_running(c->session))
        reply_null(c->reply);
    else if (empty)
        block_on(c, ROW_LIST, 1, 1, timeout_us);
    return st;
}

static enum status lmove(struct call *c)
{
    bool from_front, to_front;
    if (!arg_side(c, 3, &from_front) || !arg_side(c, 4, &to_front))
        return ST_OK;
    return move_now(c, from_front, to_front);
}

static enum status rpoplpush(struct call *c)
{
    return move_now(c, false, true);
}

static enum status blmove(struct call *c)
{
    bool from_front, to_front;
    if (!arg_side(c, 3, &from_front) || !arg_side(c, 4, &to_front))
        return ST_OK;
    return move_or_wait(c, from_front, to_front, 5);
}

static enum status brpoplpush(struct call *c)
{
    return move_or_wait(c, false, true, 3);
}

/* ---- the first list that has something ---- */

/* The first list among n keys from argv[first] on, and which argument that is. NULL: there is none, or
   (*ret_wrong) a key of another type came first, which has been replied. */
static enum status first_list(struct call *c, int first, int n, struct coll **ret, int *ret_i,
                              bool *ret_wrong)
{
    enum status st = ST_OK;
    *ret = NULL;
    *ret_wrong = false;
    for (int i = first; i < first + n && st == ST_OK && !*ret && !*ret_wrong; i++) {
        *ret_i = i;
        if (block_wants(c, c->argv[i]))
            st = list_open(c, i, ret, ret_wrong);
    }
    return st;
}

/* BLPOP and BRPOP: the key and one item. */
static enum status pop_or_wait(struct call *c, bool front)
{
    int64_t timeout_us;
    struct coll *list;
    struct slice value;
    int at;
    bool wrong;
    if (!block_timeout_arg(c, c->argc - 1, &timeout_us))
        return ST_OK;
    enum status st = first_list(c, 1, c->argc - 2, &list, &at, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!list) {
        block_on(c, ROW_LIST, 1, c->argc - 2, timeout_us);
        return ST_OK;
    }
    if ((st = coll_pop(list, front, &value)) != ST_OK)
        return st;
    reply_array(c->reply, 2);
    reply_bulk(c->reply, c->argv[at]);
    reply_bulk(c->reply, value);
    return coll_save(list);
}

static enum status blpop(struct call *c)
{
    return pop_or_wait(c, true);
}

static enum status brpop(struct call *c)
{
    return pop_or_wait(c, false);
}

/* LMPOP's arguments from argv[at] on: numkeys key ... LEFT|RIGHT [COUNT n]. */
struct mpop {
    int first, nkeys;
    bool front;
    int64_t count;
};

static bool mpop_args(struct call *c, int at, struct mpop *m)
{
    int64_t nkeys;
    if (!arg_range(c, at, 1, INT64_MAX, &nkeys, "ERR numkeys should be greater than 0"))
        return false;
    if (nkeys > c->argc - at - 2) {
        reply_error(c->reply, ERR_SYNTAX);
        return false;
    }
    *m = (struct mpop){.first = at + 1, .nkeys = (int)nkeys, .count = -1};
    int side = m->first + m->nkeys;
    if (!arg_side(c, side, &m->front))
        return false;
    for (int i = side + 1; i < c->argc; i += 2) {
        if (m->count != -1 || i + 1 >= c->argc || !slice_is(c->argv[i], "count")) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
        if (!arg_range(c, i + 1, 1, INT64_MAX, &m->count, "ERR count should be greater than 0"))
            return false;
    }
    if (m->count == -1)
        m->count = 1;
    return true;
}

static enum status mpop(struct call *c, const struct mpop *m, bool *ret_empty)
{
    struct coll *list;
    int at;
    bool wrong;
    enum status st = first_list(c, m->first, m->nkeys, &list, &at, &wrong);
    *ret_empty = st == ST_OK && !wrong && !list;
    if (st != ST_OK || !list)
        return st;
    reply_array(c->reply, 2);
    reply_bulk(c->reply, c->argv[at]);
    return list_pop(c, list, m->front, m->count);
}

static enum status lmpop(struct call *c)
{
    struct mpop m;
    if (!mpop_args(c, 1, &m))
        return ST_OK;
    bool empty;
    enum status st = mpop(c, &m, &empty);
    if (empty)
        reply_null_array(c->reply);
    return st;
}

static enum status blmpop(struct call *c)
{
    int64_t timeout_us;
    struct mpop m;
    if (!mpop_args(c, 2, &m) || !block_timeout_arg(c, 1, &timeout_us))
        return ST_OK;
    bool empty;
    enum status st = mpop(c, &m, &empty);
    if (empty)
        block_on(c, ROW_LIST, m.first, m.nkeys, timeout_us);
    return st;
}

/* clang-format off */
#define POP_KEY  (KEY_RW | KEY_ACCESS | KEY_DELETE)
#define MOVE_KEYS {{.flags = POP_KEY, .index = 1, .step = 1}, {.flags = KEY_RW | KEY_INSERT, .index = 2, .step = 1}}
const struct command list_move_commands[] = {
    {
        .name = "lmove", .fn = lmove, .arity = 5, .flags = CMD_WRITE | CMD_DENYOOM,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW, .keys = MOVE_KEYS,
        .summary = "Moves an item from an end of one list to an end of another.", .since = "6.2.0", .group = "list",
        .complexity = "O(1)",
    },
    {
        .name = "rpoplpush", .fn = rpoplpush, .arity = 3, .flags = CMD_WRITE | CMD_DENYOOM,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW, .keys = MOVE_KEYS,
        .summary = "Moves the last item of one list to the front of another.", .since = "1.2.0", .group = "list",
        .complexity = "O(1)",
    },
    {
        .name = "lmpop", .fn = lmpop, .arity = -4, .flags = CMD_WRITE | CMD_MOVABLEKEYS,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW,
        .keys = {{.flags = POP_KEY, .index = 1, .keynum = true, .first = 0, .keynum_first = 1, .step = 1}},
        .summary = "Takes items from the first list that has any.", .since = "7.0.0", .group = "list",
        .complexity = "O(1) for each key and item.",
    },
    {
        .name = "blpop", .fn = blpop, .arity = -3, .flags = CMD_WRITE | CMD_NOSCRIPT | CMD_BLOCKING,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW | CAT_BLOCKING,
        .keys = {{.flags = POP_KEY, .index = 1, .last = -2, .step = 1}},
        .summary = "Takes the first item of the first list that has any, or waits for one.", .since = "2.0.0",
        .group = "list", .complexity = "O(1) for each key.",
    },
    {
        .name = "brpop", .fn = brpop, .arity = -3, .flags = CMD_WRITE | CMD_NOSCRIPT | CMD_BLOCKING,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW | CAT_BLOCKING,
        .keys = {{.flags = POP_KEY, .index = 1, .last = -2, .step = 1}},
        .summary = "Takes the last item of the first list that has any, or waits for one.", .since = "2.0.0",
        .group = "list", .complexity = "O(1) for each key.",
    },
    {
        .name = "blmove", .fn = blmove, .arity = 6, .flags = CMD_WRITE | CMD_DENYOOM | CMD_NOSCRIPT | CMD_BLOCKING,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW | CAT_BLOCKING, .keys = MOVE_KEYS,
        .summary = "Moves an item from list to list, or waits for one.", .since = "6.2.0", .group = "list",
        .complexity = "O(1)",
    },
    {
        .name = "brpoplpush", .fn = brpoplpush, .arity = 4,
        .flags = CMD_WRITE | CMD_DENYOOM | CMD_NOSCRIPT | CMD_BLOCKING,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW | CAT_BLOCKING, .keys = MOVE_KEYS,
        .summary = "Moves the last item of one list to the front of another, or waits for one.", .since = "2.2.0",
        .group = "list", .complexity = "O(1)",
    },
    {
        .name = "blmpop", .fn = blmpop, .arity = -5, .flags = CMD_WRITE | CMD_BLOCKING | CMD_MOVABLEKEYS,
        .categories = CAT_WRITE | CAT_LIST | CAT_SLOW | CAT_BLOCKING,
        .keys = {{.flags = POP_KEY, .index = 2, .keynum = true, .first = 0, .keynum_first = 1, .step = 1}},
        .summary = "Takes items from the first list that has any, or waits for some.", .since = "7.0.0",
        .group = "list", .complexity = "O(1) for each key and item.",
    },
    {.name = NULL},
};
/* clang-format on */
