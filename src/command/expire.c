/* When keys end: EXPIRE and its forms, TTL and its forms, PERSIST. One function sets, one tells; the commands
   differ in their unit (seconds or milliseconds) and in what they count from (now or the epoch). */
#include "command/families.h"
#include "exec/args.h"

enum unit { SECONDS = 1000, MILLISECONDS = 1 }; /* in milliseconds */
enum base { FROM_NOW, FROM_EPOCH };

/* Conditions of EXPIRE. */
enum {
    IF_NONE = 1 << 0,    /* NX: only a key without an expiry */
    IF_SOME = 1 << 1,    /* XX: only a key with one */
    IF_GREATER = 1 << 2, /* GT: only to a later moment; no expiry is the latest of all */
    IF_LESS = 1 << 3     /* LT: only to an earlier one */
};

static bool read_conditions(struct call *c, unsigned *ret)
{
    unsigned set = 0;
    for (int i = 3; i < c->argc; i++) {
        struct slice word = c->argv[i];
        if (slice_is(word, "nx")) {
            set |= IF_NONE;
        } else if (slice_is(word, "xx")) {
            set |= IF_SOME;
        } else if (slice_is(word, "gt")) {
            set |= IF_GREATER;
        } else if (slice_is(word, "lt")) {
            set |= IF_LESS;
        } else {
            reply_errorf(c->reply, "ERR Unsupported option %.*s", (int)word.n, word.p);
            return false;
        }
    }
    if ((set & IF_NONE) && set != IF_NONE) {
        reply_error(c->reply, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if ((set & IF_GREATER) && (set & IF_LESS)) {
        reply_error(c->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    *ret = set;
    return true;
}

/* argv[2] as a moment in milliseconds since the epoch, which may lie before it. */
static bool read_moment(struct call *c, enum base base, enum unit unit, int64_t *ret)
{
    int64_t from = base == FROM_NOW ? view_now(c->view) : 0;
    int64_t n;
    if (!arg_i64(c, 2, &n, NULL))
        return false;
    if (__builtin_mul_overflow(n, (int64_t)unit, &n) || __builtin_add_overflow(n, from, ret)) {
        char name[64];
        command_full_name(c->cmd, name);
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", name);
        return false;
    }
    return true;
}

static bool conditions_hold(unsigned set, int64_t current, int64_t moment)
{
    bool some = current != EXPIRE_NEVER;
    if ((set & IF_NONE) && some)
        return false;
    if ((set & IF_SOME) && !some)
        return false;
    if ((set & IF_GREATER) && (!some || moment <= current))
        return false;
    if ((set & IF_LESS) && some && moment >= current)
        return false;
    return true;
}

static enum status set_expiry(struct call *c, enum base base, enum unit unit)
{
    unsigned conditions;
    int64_t moment;
    if (!read_conditions(c, &conditions) || !read_moment(c, base, unit, &moment))
        return ST_OK;
    const struct row *row;
    enum status st = arg_any(c, 1, &row);
    if (st != ST_OK)
        return st;
    if (!row || !conditions_hold(conditions, row->expire_at, moment)) {
        reply_integer(c->reply, 0);
        return ST_OK;
    }
    if (moment <= view_now(c->view))
        st = view_del(c->view, call_db(c), c->argv[1], NULL);
    else
        st = view_expire(c->view, call_db(c), c->argv[1], moment);
    if (st == ST_OK)
        reply_integer(c->reply, 1);
    return st;
}

static enum status expire(struct call *c)
{
    return set_expiry(c, FROM_NOW, SECONDS);
}

static enum status pexpire(struct call *c)
{
    return set_expiry(c, FROM_NOW, MILLISECONDS);
}

static enum status expireat(struct call *c)
{
    return set_expiry(c, FROM_EPOCH, SECONDS);
}

static enum status pexpireat(struct call *c)
{
    return set_expiry(c, FROM_EPOCH, MILLISECONDS);
}

/* -2: no such key; -1: no expiry. Seconds are rounded to the nearest. */
static enum status tell_expiry(struct call *c, enum base base, enum unit unit)
{
    const struct row *row;
    view_look_only(c->view);
    enum status st = arg_any(c, 1, &row);
    if (st != ST_OK)
        return st;
    if (!row) {
        reply_integer(c->reply, -2);
    } else if (row->expire_at == EXPIRE_NEVER) {
        reply_integer(c->reply, -1);
    } else {
        /* Live, so positive; unsigned because the latest moment there is leaves no room for rounding. */
        uint64_t ms = (uint64_t)row->expire_at - (base == FROM_NOW ? (uint64_t)view_now(c->view) : 0);
        reply_integer(c->reply, (int64_t)(unit == SECONDS ? (ms + 500) / 1000 : ms));
    }
    return ST_OK;
}

static enum status ttl(struct call *c)
{
    return tell_expiry(c, FROM_NOW, SECONDS);
}

static enum status pttl(struct call *c)
{
    return tell_expiry(c, FROM_NOW, MILLISECONDS);
}

static enum status expiretime(struct call *c)
{
    return tell_expiry(c, FROM_EPOCH, SECONDS);
}

static enum status pexpiretime(struct call *c)
{
    return tell_expiry(c, FROM_EPOCH, MILLISECONDS);
}

static enum status persist(struct call *c)
{
    const struct row *row;
    enum status st = arg_any(c, 1, &row);
    if (st != ST_OK)
        return st;
    bool had = row && row->expire_at != EXPIRE_NEVER;
    if (had && (st = view_expire(c->view, call_db(c), c->argv[1], EXPIRE_NEVER)) != ST_OK)
        return st;
    reply_integer(c->reply, had);
    return ST_OK;
}

#define ONE_ROW "O(1): one row, whatever the value's size."

/* clang-format off */
#define SETS(name_, fn_, since_, summary_)                                                                   \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = -3, .flags = CMD_WRITE | CMD_FAST | CMD_ROWS_ONLY,                            \
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST,                                                   \
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = (since_), .group = "generic", .complexity = ONE_ROW                  \
    }

#define TELLS(name_, fn_, since_, summary_, ...)                                                             \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = 2, .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,          \
        .categories = CAT_KEYSPACE | CAT_READ | CAT_FAST,                                                    \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = (since_), .group = "generic", .complexity = ONE_ROW, __VA_ARGS__     \
    }

const struct command expire_commands[] = {
    SETS("expire", expire, "1.0.0", "Lets a key end after some seconds."),
    SETS("pexpire", pexpire, "2.6.0", "Lets a key end after some milliseconds."),
    SETS("expireat", expireat, "1.2.0", "Lets a key end at a moment given in Unix seconds."),
    SETS("pexpireat", pexpireat, "2.6.0", "Lets a key end at a moment given in Unix milliseconds."),
    TELLS("ttl", ttl, "1.0.0", "Tells how many seconds a key has left.",
          .tips = {"nondeterministic_output"}),
    TELLS("pttl", pttl, "2.6.0", "Tells how many milliseconds a key has left.",
          .tips = {"nondeterministic_output"}),
    TELLS("expiretime", expiretime, "7.0.0", "Tells the moment at which a key ends, in Unix seconds.",
          .tips = {NULL}),
    TELLS("pexpiretime", pexpiretime, "7.0.0", "Tells the moment at which a key ends, in Unix milliseconds.",
          .tips = {NULL}),
    {
        .name = "persist", .fn = persist, .arity = 2, .flags = CMD_WRITE | CMD_FAST | CMD_ROWS_ONLY,
        .categories = CAT_KEYSPACE | CAT_WRITE | CAT_FAST,
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},
        .summary = "Takes a key's expiry away.", .since = "2.2.0", .group = "generic", .complexity = ONE_ROW,
    },
    {.name = NULL},
};
/* clang-format on */
