/* Lists: one item, a range, either end. What moves or waits is in list_move.c. */
#include "command/list.h"

#include "command/families.h"
#include "exec/args.h"

const char ERR_POSITIVE[] = "ERR value is out of range, must be positive";

enum status list_open(struct call *c, int i, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_open(c->view, call_db(c), c->argv[i], ROW_LIST, ret, ret_wrong);
    if (st == ST_OK && *ret_wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

enum status list_make(struct call *c, int i, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_make(c->view, call_db(c), c->argv[i], ROW_LIST, ret, ret_wrong);
    if (st == ST_OK && *ret_wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

enum status list_reply_item(void *arg, const struct coll_item *item)
{
    reply_bulk(arg, item->value);
    return ST_OK;
}

/* ---- pushing ---- */

static enum status push(struct call *c, bool front, bool create)
{
    struct coll *list;
    bool wrong;
    enum status st = create ? list_make(c, 1, &list, &wrong) : list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!list) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    for (int i = 2; st == ST_OK && i < c->argc; i++)
        st = coll_push(list, front, c->argv[i]);
    if (st != ST_OK)
        return st;
    reply_integer(c->reply, coll_size(list));
    return coll_save(list);
}

static enum status lpush(struct call *c)
{
    return push(c, true, true);
}

static enum status rpush(struct call *c)
{
    return push(c, false, true);
}

static enum status lpushx(struct call *c)
{
    return push(c, true, false);
}

static enum status rpushx(struct call *c)
{
    return push(c, false, false);
}

/* ---- popping ---- */

/* Takes n items from one end without looking at each when most of the list goes. */
static enum status drop_end(struct coll *list, bool front, int64_t n)
{
    int64_t size = coll_size(list);
    return front ? coll_trim(list, n, size - 1) : coll_trim(list, 0, size - n - 1);
}

enum status list_pop(struct call *c, struct coll *list, bool front, int64_t n)
{
    int64_t size = coll_size(list);
    if (n > size)
        n = size;
    reply_array(c->reply, (size_t)n);
    if (n == 0)
        return ST_OK;
    enum status st = front ? coll_range(list, 0, n - 1, false, list_reply_item, c->reply)
                           : coll_range(list, size - n, size - 1, true, list_reply_item, c->reply);
    if (st == ST_OK)
        st = drop_end(list, front, n);
    return st == ST_OK ? coll_save(list) : st;
}

static enum status pop(struct call *c, bool front)
{
    int64_t n = -1;
    if (c->argc > 3) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    if (c->argc == 3 && !arg_range(c, 2, 0, INT64_MAX, &n, ERR_POSITIVE))
        return ST_OK;
    struct coll *list;
    bool wrong;
    enum status st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!list) {
        if (n < 0)
            reply_null(c->reply);
        else
            reply_null_array(c->reply);
        return ST_OK;
    }
    if (n >= 0)
        return list_pop(c, list, front, n);
    struct slice value;
    st = coll_pop(list, front, &value);
    if (st != ST_OK)
        return st;
    reply_bulk(c->reply, value);
    return coll_save(list);
}

static enum status lpop(struct call *c)
{
    return pop(c, true);
}

static enum status rpop(struct call *c)
{
    return pop(c, false);
}

/* ---- reading ---- */

static enum status llen(struct call *c)
{
    const struct row *row;
    bool wrong;
    enum status st = arg_row(c, 1, ROW_LIST, &row, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, row ? row_items(row).size : 0);
    return st;
}

static enum status lindex(struct call *c)
{
    struct coll *list;
    bool wrong;
    enum status st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t i;
    if (!list) {
        reply_null(c->reply);
        return ST_OK;
    }
    if (!arg_i64(c, 2, &i, NULL))
        return ST_OK;
    if (i < 0)
        i += coll_size(list);
    if (i < 0 || i >= coll_size(list)) {
        reply_null(c->reply);
        return ST_OK;
    }
    struct slice value;
    st = coll_index(list, i, &value);
    if (st == ST_OK)
        reply_bulk(c->reply, value);
    return st;
}

/* A range as clients give it, cut to the list; false when nothing is in it. */
static bool cut_range(int64_t size, int64_t *from, int64_t *to)
{
    if (*from < 0)
        *from = *from + size < 0 ? 0 : *from + size;
    if (*to < 0)
        *to += size;
    if (*to >= size)
        *to = size - 1;
    return *from <= *to && *from < size;
}

/* The list under argv[1] and the places argv[2] and argv[3]; *ret_wrong: a mistake has been replied. */
static enum status open_range(struct call *c, struct coll **ret, int64_t *from, int64_t *to, bool *ret_wrong)
{
    *ret_wrong = !arg_i64(c, 2, from, NULL) || !arg_i64(c, 3, to, NULL);
    return *ret_wrong ? ST_OK : list_open(c, 1, ret, ret_wrong);
}

static enum status lrange(struct call *c)
{
    struct coll *list;
    bool wrong;
    int64_t from, to;
    enum status st = open_range(c, &list, &from, &to, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!list || !cut_range(coll_size(list), &from, &to)) {
        reply_array(c->reply, 0);
        return ST_OK;
    }
    reply_array(c->reply, (size_t)(to - from + 1));
    return coll_range(list, from, to, false, list_reply_item, c->reply);
}

/* ---- changing places ---- */

static enum status lset(struct call *c)
{
    const struct row *row;
    enum status st = arg_present(c, 1, &row);
    if (st != ST_OK || !row)
        return st;
    struct coll *list;
    bool wrong;
    int64_t i;
    st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong || !arg_i64(c, 2, &i, NULL))
        return st;
    if (i < 0)
        i += coll_size(list);
    if (i < 0 || i >= coll_size(list)) {
        reply_error(c->reply, ERR_OUT_OF_RANGE);
        return ST_OK;
    }
    reply_ok(c->reply);
    st = coll_set(list, i, c->argv[3]);
    return st == ST_OK ? coll_save(list) : st;
}

static enum status ltrim(struct call *c)
{
    struct coll *list;
    bool wrong;
    int64_t from, to;
    enum status st = open_range(c, &list, &from, &to, &wrong);
    if (st != ST_OK || wrong)
        return st;
    reply_ok(c->reply);
    if (!list)
        return ST_OK;
    if (!cut_range(coll_size(list), &from, &to)) {
        from = 1;
        to = 0;
    }
    st = coll_trim(list, from, to);
    return st == ST_OK ? coll_save(list) : st;
}

/* ---- looking for values ---- */

/* Places of a value, in the order in which they are met. */
struct search {
    struct slice value;
    struct arena *arena;
    int64_t at, step; /* the place that comes next */
    int64_t most;     /* places wanted; 0: all */
    int64_t skip;     /* matches to pass over first */
    int64_t look;     /* items to compare; 0: all */
    int64_t *places;
    size_t n, cap;
};

static enum status search_item(void *arg, const struct coll_item *item)
{
    struct search *s = arg;
    int64_t at = s->at;
    s->at += s->step;
    if (slice_eq(item->value, s->value) && s->skip-- <= 0) {
        if (s->n == s->cap) {
            int64_t *more = arena_alloc(s->arena, (s->cap ? s->cap * 2 : 16) * sizeof *more);
            if (s->n)
                memcpy(more, s->places, s->n * sizeof *more);
            s->cap = s->cap ? s->cap * 2 : 16;
            s->places = more;
        }
        s->places[s->n++] = at;
    }
    bool enough = (s->most && (int64_t)s->n == s->most) || (s->look && --s->look == 0);
    return enough ? ST_STOP : ST_OK;
}

static enum status search(struct coll *list, bool backwards, struct search *s)
{
    int64_t last = coll_size(list) - 1;
    s->at = backwards ? last : 0;
    s->step = backwards ? -1 : 1;
    return coll_range(list, 0, last, backwards, search_item, s);
}

static enum status lrem(struct call *c)
{
    int64_t count;
    if (!arg_i64(c, 2, &count, NULL))
        return ST_OK;
    struct coll *list;
    bool wrong;
    enum status st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    struct search s = {.value = c->argv[3], .arena = c->arena};
    s.most = count < 0 ? (count == INT64_MIN ? INT64_MAX : -count) : count;
    if (list && (st = search(list, count < 0, &s)) != ST_OK)
        return st;
    if (count >= 0)
        for (size_t i = 0; i < s.n / 2; i++) {
            int64_t place = s.places[i];
            s.places[i] = s.places[s.n - 1 - i];
            s.places[s.n - 1 - i] = place;
        }
    /* From the last place to the first, so that the others stay where they were found. */
    st = list ? coll_erase_places(list, s.places, s.n) : ST_OK;
    if (st != ST_OK)
        return st;
    reply_integer(c->reply, (int64_t)s.n);
    return list ? coll_save(list) : ST_OK;
}

static enum status linsert(struct call *c)
{
    bool after = slice_is(c->argv[2], "after");
    if (!after && !slice_is(c->argv[2], "before")) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    struct coll *list;
    bool wrong;
    enum status st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (!list) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    struct search s = {.value = c->argv[3], .arena = c->arena, .most = 1};
    if ((st = search(list, false, &s)) != ST_OK)
        return st;
    if (s.n == 0) {
        reply_integer(c->reply, -1);
        return ST_OK;
    }
    st = coll_insert(list, s.places[0] + after, c->argv[4]);
    if (st != ST_OK)
        return st;
    reply_integer(c->reply, coll_size(list));
    return coll_save(list);
}

struct lpos_options {
    int64_t rank, count, look;
};

static bool lpos_options(struct call *c, struct lpos_options *o)
{
    *o = (struct lpos_options){.rank = 1, .count = -1};
    for (int i = 3; i < c->argc; i += 2) {
        bool more = i + 1 < c->argc;
        if (more && slice_is(c->argv[i], "rank")) {
            if (!arg_i64(c, i + 1, &o->rank, NULL))
                return false;
            if (o->rank == 0) {
                reply_error(
                    c->reply,
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
                    "or use negative to start from the end of the list");
                return false;
            }
        } else if (more && slice_is(c->argv[i], "count")) {
            if (!arg_range(c, i + 1, 0, INT64_MAX, &o->count, "ERR COUNT can't be negative"))
                return false;
        } else if (more && slice_is(c->argv[i], "maxlen")) {
            if (!arg_range(c, i + 1, 0, INT64_MAX, &o->look, "ERR MAXLEN can't be negative"))
                return false;
        } else {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

static enum status lpos(struct call *c)
{
    struct lpos_options o;
    if (!lpos_options(c, &o))
        return ST_OK;
    struct coll *list;
    bool wrong;
    enum status st = list_open(c, 1, &list, &wrong);
    if (st != ST_OK || wrong)
        return st;
    struct search s = {
        .value = c->argv[2], .arena = c->arena, .look = o.look, .most = o.count < 0 ? 1 : o.count};
    /* The lowest number has no counterpart above zero; Redis takes it for -1. */
    s.skip = o.rank > 0 ? o.rank - 1 : o.rank == INT64_MIN ? 0 : -o.rank - 1;
    if (list && (st = search(list, o.rank < 0, &s)) != ST_OK)
        return st;
    if (o.count >= 0) {
        reply_array(c->reply, s.n);
        for (size_t i = 0; i < s.n; i++)
            reply_integer(c->reply, s.places[i]);
    } else if (s.n) {
        reply_integer(c->reply, s.places[0]);
    } else {
        reply_null(c->reply);
    }
    return ST_OK;
}

/* clang-format off */
#define LIST(NAME, FN, ARITY, FLAGS, SPEED, KEYFLAGS, SINCE, SUMMARY, COST)                                         \
    {                                                                                                              \
        .name = NAME, .fn = FN, .arity = ARITY, .flags = FLAGS,                                                     \
        .categories = ((FLAGS) & CMD_WRITE ? CAT_WRITE : CAT_READ) | CAT_LIST | SPEED,                              \
        .keys = {{.flags = KEYFLAGS, .index = 1, .step = 1}},                                                       \
        .summary = SUMMARY, .since = SINCE, .group = "list", .complexity = COST,                                    \
    }
const struct command list_commands[] = {
    LIST("lpush", lpush, -3, CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_FEW_ITEMS, CAT_FAST, KEY_RW | KEY_INSERT, "1.0.0",
         "Puts values in front of a list.", "O(1) for each value."),
    LIST("rpush", rpush, -3, CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_FEW_ITEMS, CAT_FAST, KEY_RW | KEY_INSERT, "1.0.0",
         "Puts values behind a list.", "O(1) for each value."),
    LIST("lpushx", lpushx, -3, CMD_WRITE | CMD_DENYOOM | CMD_FAST, CAT_FAST, KEY_RW | KEY_INSERT, "2.2.0",
         "Puts values in front of a list that exists.", "O(1) for each value."),
    LIST("rpushx", rpushx, -3, CMD_WRITE | CMD_DENYOOM | CMD_FAST, CAT_FAST, KEY_RW | KEY_INSERT, "2.2.0",
         "Puts values behind a list that exists.", "O(1) for each value."),
    LIST("lpop", lpop, -2, CMD_WRITE | CMD_FAST, CAT_FAST, KEY_RW | KEY_ACCESS | KEY_DELETE, "1.0.0",
         "Takes values from the front of a list.", "O(1) for each value."),
    LIST("rpop", rpop, -2, CMD_WRITE | CMD_FAST, CAT_FAST, KEY_RW | KEY_ACCESS | KEY_DELETE, "1.0.0",
         "Takes values from the back of a list.", "O(1) for each value."),
    LIST("llen", llen, 2, CMD_READONLY | CMD_FAST, CAT_FAST, KEY_RO, "1.0.0",
         "Tells how long a list is.", "O(1): the key's row has it."),
    LIST("lindex", lindex, 3, CMD_READONLY, CAT_SLOW, KEY_RO | KEY_ACCESS, "1.0.0",
         "Returns the item at a place.", "O(1), wherever the place is."),
    LIST("lset", lset, 4, CMD_WRITE | CMD_DENYOOM, CAT_SLOW, KEY_RW | KEY_UPDATE, "1.0.0",
         "Replaces the item at a place.", "O(1), wherever the place is."),
    LIST("lrange", lrange, 4, CMD_READONLY, CAT_SLOW, KEY_RO | KEY_ACCESS, "1.0.0",
         "Returns the items of a range.", "O(N) in the items returned."),
    LIST("ltrim", ltrim, 4, CMD_WRITE, CAT_SLOW, KEY_RW | KEY_DELETE, "1.0.0",
         "Keeps only a range of a list.", "O(N) in what stays or what goes, whichever is less."),
    LIST("lrem", lrem, 4, CMD_WRITE, CAT_SLOW, KEY_RW | KEY_DELETE, "1.0.0",
         "Removes items that equal a value.", "O(N) in the list's length."),
    LIST("linsert", linsert, 5, CMD_WRITE | CMD_DENYOOM, CAT_SLOW, KEY_RW | KEY_INSERT, "2.2.0",
         "Puts a value before or behind another.", "O(N) in what is looked at, and in the shorter side."),
    LIST("lpos", lpos, -3, CMD_READONLY, CAT_SLOW, KEY_RO | KEY_ACCESS, "6.0.6",
         "Tells at which places a value is.", "O(N) in what is looked at."),
    {.name = NULL},
};
/* clang-format on */
