/* Strings as whole values: GET, SET and what belongs to them. Parts of strings are in range.c, numbers in
   counter.c, bits in bit.c and bitfield.c. */
#include "base/num.h"
#include "command/families.h"
#include "command/string/value.h"
#include "exec/args.h"

/* ---- options of SET and GETEX ---- */

enum expiry { EXPIRY_NONE, EXPIRY_EX, EXPIRY_PX, EXPIRY_EXAT, EXPIRY_PXAT };

static const char *const expiry_words[] = {
    [EXPIRY_EX] = "ex", [EXPIRY_PX] = "px", [EXPIRY_EXAT] = "exat", [EXPIRY_PXAT] = "pxat"};

struct options {
    bool nx, xx, get, keepttl; /* SET */
    bool persist;              /* GETEX */
    enum expiry expiry;
    int expiry_arg; /* the argument with its time */
};

static enum expiry expiry_of(struct slice word)
{
    for (int e = EXPIRY_EX; e <= EXPIRY_PXAT; e++) {
        if (slice_is(word, expiry_words[e]))
            return (enum expiry)e;
    }
    return EXPIRY_NONE;
}

/* One option word that takes no argument. False: there is none of this name, or not with what was given
   before it. */
static bool take_flag(struct options *o, struct slice word, bool is_set)
{
    if (is_set && slice_is(word, "nx") && !o->xx)
        o->nx = true;
    else if (is_set && slice_is(word, "xx") && !o->nx)
        o->xx = true;
    else if (is_set && slice_is(word, "get"))
        o->get = true;
    else if (is_set && slice_is(word, "keepttl") && !o->expiry)
        o->keepttl = true;
    else if (!is_set && slice_is(word, "persist") && !o->expiry)
        o->persist = true;
    else
        return false;
    return true;
}

/* The options from argv[from] on. The same kind of expiry may be repeated, as in Redis; the last one
   counts. */
static bool parse_options(struct call *c, int from, bool is_set, struct options *o)
{
    *o = (struct options){0};
    for (int i = from; i < c->argc; i++) {
        enum expiry e = expiry_of(c->argv[i]);
        if (e && i + 1 < c->argc && (!o->expiry || o->expiry == e) && !o->keepttl && !o->persist) {
            o->expiry = e;
            o->expiry_arg = ++i;
        } else if (e || !take_flag(o, c->argv[i], is_set)) {
            reply_error(c->reply, ERR_SYNTAX);
            return false;
        }
    }
    return true;
}

/* The moment that argv[i] means, in milliseconds since the epoch, or an error has been replied. */
static bool expiry_moment(struct call *c, enum expiry e, int i, int64_t *ret)
{
    int64_t t;
    if (!arg_i64(c, i, &t, NULL))
        return false;
    bool good = t > 0;
    if (e == EXPIRY_EX || e == EXPIRY_EXAT)
        good = good && !__builtin_mul_overflow(t, 1000, &t);
    if (e == EXPIRY_EX || e == EXPIRY_PX)
        good = good && !__builtin_add_overflow(t, view_now(c->view), &t);
    if (!good)
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", c->cmd->name);
    *ret = t;
    return good;
}

/* ---- reading ---- */

static enum status get_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    return st != ST_OK || wrong ? st : reply_row(c, r);
}

static enum status mget_command(struct call *c)
{
    reply_array(c->reply, (size_t)c->argc - 1);
    for (int i = 1; i < c->argc; i++) {
        const struct row *r;
        enum status st = arg_any(c, i, &r);
        if (st == ST_OK)
            st = reply_row(c, r && r->type == ROW_STRING ? r : NULL);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

static enum status getdel_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    view_count_lookups(c->view, true);
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong || (st = reply_row(c, r)) != ST_OK || !r)
        return st;
    return view_del(c->view, call_db(c), c->argv[1], NULL);
}

static enum status getex_command(struct call *c)
{
    struct options o;
    const struct row *r;
    bool wrong;
    int64_t at = EXPIRE_NEVER;
    if (!parse_options(c, 2, false, &o))
        return ST_OK;
    view_count_lookups(c->view, true);
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (r && o.expiry && !expiry_moment(c, o.expiry, o.expiry_arg, &at))
        return ST_OK;
    if ((st = reply_row(c, r)) != ST_OK || !r)
        return st;
    if (o.expiry && at <= view_now(c->view))
        return view_del(c->view, call_db(c), c->argv[1], NULL);
    if (o.expiry || (o.persist && r->expire_at != EXPIRE_NEVER))
        return view_expire(c->view, call_db(c), c->argv[1], at);
    return ST_OK;
}

/* ---- writing ---- */

/* Sets argv[1] to argv[value], or deletes it when its time has come already. */
static enum status store_value(struct call *c, int value, int64_t expire_at)
{
    if (expire_at != EXPIRE_NEVER && expire_at <= view_now(c->view))
        return view_del(c->view, call_db(c), c->argv[1], NULL);
    return view_set_string(c->view, call_db(c), c->argv[1], c->argv[value], expire_at);
}

/* SET with a condition, GET or KEEPTTL: what is there now matters. */
static enum status set_over_existing(struct call *c, const struct options *o, int64_t expire_at)
{
    const struct row *r;
    view_count_lookups(c->view, o->get);
    enum status st = arg_any(c, 1, &r);
    if (st != ST_OK)
        return st;
    if (o->get && r && r->type != ROW_STRING) {
        reply_error(c->reply, ERR_WRONGTYPE);
        return ST_OK;
    }
    if (o->get && (st = reply_row(c, r)) != ST_OK)
        return st;
    if ((o->nx && r) || (o->xx && !r)) {
        if (!o->get)
            reply_null(c->reply);
        return ST_OK;
    }
    if (o->keepttl && r)
        expire_at = r->expire_at;
    if ((st = store_value(c, 2, expire_at)) != ST_OK)
        return st;
    if (!o->get)
        reply_ok(c->reply);
    return ST_OK;
}

static enum status set_command(struct call *c)
{
    struct options o;
    int64_t at = EXPIRE_NEVER;
    if (!parse_options(c, 3, true, &o))
        return ST_OK;
    if (o.expiry && !expiry_moment(c, o.expiry, o.expiry_arg, &at))
        return ST_OK;
    if (o.nx || o.xx || o.get || o.keepttl)
        return set_over_existing(c, &o, at);
    enum status st = store_value(c, 2, at);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

static enum status setnx_command(struct call *c)
{
    const struct row *r;
    enum status st = arg_any(c, 1, &r);
    if (st == ST_OK && !r)
        st = store_value(c, 2, EXPIRE_NEVER);
    if (st == ST_OK)
        reply_integer(c->reply, !r);
    return st;
}

static enum status set_with_expiry(struct call *c, enum expiry e)
{
    int64_t at;
    if (!expiry_moment(c, e, 2, &at))
        return ST_OK;
    enum status st = store_value(c, 3, at);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

static enum status setex_command(struct call *c)
{
    return set_with_expiry(c, EXPIRY_EX);
}

static enum status psetex_command(struct call *c)
{
    return set_with_expiry(c, EXPIRY_PX);
}

static enum status getset_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    view_count_lookups(c->view, true);
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong || (st = reply_row(c, r)) != ST_OK)
        return st;
    return store_value(c, 2, EXPIRE_NEVER);
}

/* Keys whose rows are fetched from memory together: one after the other, each would wait for its own. */
#define FETCHED_AT_ONCE 16

/* Sets n keys, each with its value behind it. */
static enum status set_some(struct call *c, const struct slice *pairs, size_t n)
{
    struct prefetch ahead[FETCHED_AT_ONCE];
    enum status st = ST_OK;
    for (size_t i = 0; i < n; i++)
        ahead[i] = view_prefetch(c->view, call_db(c), pairs[2 * i]);
    for (size_t i = 0; i < n; i++)
        view_prefetch_soon(c->view, &ahead[i]);
    for (size_t i = 0; i < n; i++)
        view_prefetch_next(c->view, &ahead[i]);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        view_prefetch_now(c->view, &ahead[i]);
        st = view_set_string(c->view, call_db(c), pairs[2 * i], pairs[2 * i + 1], EXPIRE_NEVER);
    }
    view_prefetch_now(c->view, NULL);
    return st;
}

/* argv[1..] are keys and values in turn; of a key named twice, the last value stays. */
static enum status set_pairs(struct call *c)
{
    enum status st = ST_OK;
    for (int i = 1; st == ST_OK && i < c->argc; i += 2 * FETCHED_AT_ONCE) {
        size_t left = (size_t)(c->argc - i) / 2;
        st = set_some(c, &c->argv[i], left < FETCHED_AT_ONCE ? left : FETCHED_AT_ONCE);
    }
    return st;
}

static enum status mset_command(struct call *c)
{
    if (c->argc % 2 == 0) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    enum status st = set_pairs(c);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

static enum status msetnx_command(struct call *c)
{
    enum status st;
    if (c->argc % 2 == 0) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    for (int i = 1; i < c->argc; i += 2) {
        const struct row *r;
        if ((st = arg_any(c, i, &r)) != ST_OK)
            return st;
        if (r) {
            reply_integer(c->reply, 0);
            return ST_OK;
        }
    }
    if ((st = set_pairs(c)) == ST_OK)
        reply_integer(c->reply, 1);
    return st;
}

/* What SET does to its key depends on whether it also returns the old value. */
static uint32_t set_key_flags(const struct slice *argv, int argc)
{
    for (int i = 3; i < argc; i++) {
        if (slice_is(argv[i], "get"))
            return KEY_RW | KEY_ACCESS | KEY_UPDATE;
    }
    return KEY_OW | KEY_UPDATE;
}

/* ---- table ---- */

const struct command string_commands[] = {
    {.name = "get",
     .fn = get_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Returns the string value of a key.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "set",
     .fn = set_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE | KEY_VARIABLE,
               .index = 1,
               .step = 1,
               .notes = "RW and ACCESS due to the optional `GET` argument"}},
     .key_flags = set_key_flags,
     .summary =
         "Sets a key to a string, whatever it held; options set its expiry, a condition, or return the "
         "old value.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "setnx",
     .fn = setnx_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_OW | KEY_INSERT, .index = 1, .step = 1}},
     .summary = "Sets a key to a string if it does not exist.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "setex",
     .fn = setex_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Sets a key to a string that expires after some seconds.",
     .since = "2.0.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "psetex",
     .fn = psetex_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Sets a key to a string that expires after some milliseconds.",
     .since = "2.6.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "mget",
     .fn = mget_command,
     .arity = -2,
     .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .last = -1, .step = 1}},
     .summary = "Returns the string values of several keys, null for those that have none.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(N) rows for N keys, read at once",
     .tips = {"request_policy:multi_shard"}},
    {.name = "mset",
     .fn = mset_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_OW | KEY_UPDATE, .index = 1, .last = -1, .step = 2}},
     .summary = "Sets several keys to strings, all of them or none.",
     .since = "1.0.1",
     .group = "string",
     .complexity = "O(N) rows for N keys",
     .tips = {"request_policy:multi_shard", "response_policy:all_succeeded"}},
    {.name = "msetnx",
     .fn = msetnx_command,
     .arity = -3,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_OW | KEY_INSERT, .index = 1, .last = -1, .step = 2}},
     .summary = "Sets several keys to strings if none of them exists.",
     .since = "1.0.1",
     .group = "string",
     .complexity = "O(N) rows for N keys",
     .tips = {"request_policy:multi_shard", "response_policy:agg_min"}},
    {.name = "getset",
     .fn = getset_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Sets a key to a string and returns the one it held before.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for values above 64 KiB"},
    {.name = "getdel",
     .fn = getdel_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_DELETE, .index = 1, .step = 1}},
     .summary = "Returns the string value of a key and deletes the key.",
     .since = "6.2.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = "getex",
     .fn = getex_command,
     .arity = -2,
     .flags = CMD_WRITE | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE,
               .index = 1,
               .step = 1,
               .notes = "RW and UPDATE because it changes the TTL"}},
     .summary = "Returns the string value of a key and sets or removes the key's expiry.",
     .since = "6.2.0",
     .group = "string",
     .complexity = "O(1) row; O(N) chunks for a value above 64 KiB"},
    {.name = NULL},
};
