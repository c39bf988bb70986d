/* When fields of hashes end: HEXPIRE and its forms, HTTL and its forms, HPERSIST, as Redis 7.4 has them. What
   they answer for each field is a number of the same meaning in all of them. */
#include "command/hash.h"

#include "command/families.h"
#include "exec/args.h"

enum {
    NO_FIELD = -2,   /* no such field, or no such key */
    NO_EXPIRY = -1,  /* it does not expire */
    NOT_MET = 0,     /* the condition was not met */
    DONE = 1,        /* it has another expiry now, or none any more */
    GONE_AT_ONCE = 2 /* the moment has come already */
};

/* Redis keeps the moment in 48 bits, of which two are reserved. */
#define MOMENT_MAX ((INT64_C(1) << 46) - 1)

/* ---- shared ---- */

bool hash_read_moment(struct call *c, int i, enum time_base base, enum time_unit unit, int64_t *ret)
{
    int64_t from = base == FROM_NOW ? view_now(c->view) : 0;
    int64_t n;
    if (!arg_i64(c, i, &n, NULL))
        return false;
    if (n < 0) {
        reply_error(c->reply, "ERR invalid expire time, must be >= 0");
        return false;
    }
    if (n > (MOMENT_MAX - from) / unit) {
        char name[COMMAND_NAME_CHARS];
        command_full_name(c->cmd, name);
        reply_errorf(c->reply, "ERR invalid expire time in '%s' command", name);
        return false;
    }
    *ret = from + n * unit;
    return true;
}

bool hash_read_fields(struct call *c, int i, const char *count_error, struct hash_fields *ret)
{
    int64_t n;
    if (!slice_is(c->argv[i], "fields")) {
        reply_error(c->reply, "ERR Mandatory argument FIELDS is missing or not at the right position");
        return false;
    }
    if (!arg_range(c, i + 1, 1, INT64_MAX, &n, count_error))
        return false;
    if (n != c->argc - i - 2) {
        reply_error(c->reply, "ERR The `numfields` parameter must match the number of arguments");
        return false;
    }
    *ret = (struct hash_fields){i + 2, (int)n};
    return true;
}

enum status hash_expire_field(struct call *c, struct coll *h, const struct coll_item *item, int64_t expire_at)
{
    struct arena *kept = view_arena(c->view);
    if (expire_at != EXPIRE_NEVER && expire_at <= view_now(c->view)) {
        bool removed;
        return coll_remove(h, item->name, &removed);
    }
    struct coll_item fresh = {
        .name = arena_copy(kept, item->name),
        .value = arena_copy(kept, item->value),
        .expire_at = expire_at,
    };
    return coll_put_known(h, &fresh, item);
}

/* What one of these commands does to a field that is there, and answers for it. */
struct action {
    enum status (*fn)(struct call *c, struct coll *h, const struct coll_item *item, const struct action *a,
                      int64_t *ret);
    int64_t moment;
    struct slice condition; /* p is NULL: none */
    enum time_base base;
    enum time_unit unit;
};

static enum status each_field(struct call *c, struct coll *h, const struct hash_fields *f,
                              const struct action *a)
{
    enum status st = ST_OK;
    reply_array(c->reply, (size_t)f->n);
    for (int i = 0; st == ST_OK && i < f->n; i++) {
        struct coll_item item;
        bool found = false;
        int64_t answer = NO_FIELD;
        if (h)
            st = coll_find(h, c->argv[f->first + i], &found, &item);
        if (st == ST_OK && found)
            st = a->fn(c, h, &item, a, &answer);
        reply_integer(c->reply, answer);
    }
    return st == ST_OK && h ? coll_save(h) : st;
}

/* ---- HEXPIRE ---- */

/* A field that does not expire has the latest moment of all. */
static bool condition_met(const struct action *a, int64_t current)
{
    bool some = current != EXPIRE_NEVER;
    if (!a->condition.p)
        return true;
    if (slice_is(a->condition, "nx"))
        return !some;
    if (slice_is(a->condition, "xx"))
        return some;
    if (slice_is(a->condition, "gt"))
        return some && a->moment > current;
    return !some || a->moment < current;
}

static enum status set_expiry(struct call *c, struct coll *h, const struct coll_item *item,
                              const struct action *a, int64_t *ret)
{
    *ret = NOT_MET;
    if (!condition_met(a, item->expire_at))
        return ST_OK;
    *ret = a->moment <= view_now(c->view) ? GONE_AT_ONCE : DONE;
    return hash_expire_field(c, h, item, a->moment);
}

static bool is_condition(struct slice word)
{
    return slice_is(word, "nx") || slice_is(word, "xx") || slice_is(word, "gt") || slice_is(word, "lt");
}

static enum status expire_fields(struct call *c, enum time_base base, enum time_unit unit)
{
    struct coll *h;
    bool wrong;
    struct action a = {.fn = set_expiry};
    struct hash_fields f;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong || !hash_read_moment(c, 2, base, unit, &a.moment))
        return st;
    int i = 3;
    if (is_condition(c->argv[i]))
        a.condition = c->argv[i++];
    if (!hash_read_fields(c, i, "ERR Parameter `numFields` should be greater than 0", &f))
        return ST_OK;
    return each_field(c, h, &f, &a);
}

static enum status hexpire(struct call *c)
{
    return expire_fields(c, FROM_NOW, SECONDS);
}

static enum status hpexpire(struct call *c)
{
    return expire_fields(c, FROM_NOW, MILLISECONDS);
}

static enum status hexpireat(struct call *c)
{
    return expire_fields(c, FROM_EPOCH, SECONDS);
}

static enum status hpexpireat(struct call *c)
{
    return expire_fields(c, FROM_EPOCH, MILLISECONDS);
}

/* ---- HTTL, HPERSIST ---- */

static enum status with_fields(struct call *c, const struct action *a)
{
    struct coll *h;
    bool wrong;
    struct hash_fields f;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong ||
        !hash_read_fields(c, 2, "ERR Number of fields must be a positive integer", &f))
        return st;
    return each_field(c, h, &f, a);
}

/* Seconds are rounded up. */
static enum status tell_expiry(struct call *c, struct coll *h, const struct coll_item *item,
                               const struct action *a, int64_t *ret)
{
    (void)h;
    int64_t from = a->base == FROM_NOW ? view_now(c->view) : 0;
    *ret = NO_EXPIRY;
    if (item->expire_at != EXPIRE_NEVER)
        *ret = (item->expire_at - from + a->unit - 1) / a->unit;
    return ST_OK;
}

static enum status tell(struct call *c, enum time_base base, enum time_unit unit)
{
    struct action a = {.fn = tell_expiry, .base = base, .unit = unit};
    return with_fields(c, &a);
}

static enum status httl(struct call *c)
{
    return tell(c, FROM_NOW, SECONDS);
}

static enum status hpttl(struct call *c)
{
    return tell(c, FROM_NOW, MILLISECONDS);
}

static enum status hexpiretime(struct call *c)
{
    return tell(c, FROM_EPOCH, SECONDS);
}

static enum status hpexpiretime(struct call *c)
{
    return tell(c, FROM_EPOCH, MILLISECONDS);
}

static enum status clear_expiry(struct call *c, struct coll *h, const struct coll_item *item,
                                const struct action *a, int64_t *ret)
{
    (void)a;
    *ret = item->expire_at == EXPIRE_NEVER ? NO_EXPIRY : DONE;
    return *ret == DONE ? hash_expire_field(c, h, item, EXPIRE_NEVER) : ST_OK;
}

static enum status hpersist(struct call *c)
{
    struct action a = {.fn = clear_expiry};
    return with_fields(c, &a);
}

/* clang-format off */
#define WRITES(name_, fn_, arity_, flags_, summary_)                                                         \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_WRITE | CMD_FAST | (flags_),           \
        .categories = CAT_WRITE | CAT_HASH | CAT_FAST,                                                       \
        .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = "7.4.0", .group = "hash", .complexity = "O(N) in the fields named."  \
    }

#define TELLS(name_, fn_, summary_, ...)                                                                     \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = -5, .flags = CMD_READONLY | CMD_FAST,                         \
        .categories = CAT_READ | CAT_HASH | CAT_FAST,                                                        \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = "7.4.0", .group = "hash", .complexity = "O(N) in the fields named.", \
        __VA_ARGS__                                                                                          \
    }

const struct command hash_expire_commands[] = {
    WRITES("hexpire", hexpire, -6, CMD_DENYOOM, "Lets fields end after some seconds."),
    WRITES("hpexpire", hpexpire, -6, CMD_DENYOOM, "Lets fields end after some milliseconds."),
    WRITES("hexpireat", hexpireat, -6, CMD_DENYOOM, "Lets fields end at a moment given in Unix seconds."),
    WRITES("hpexpireat", hpexpireat, -6, CMD_DENYOOM,
           "Lets fields end at a moment given in Unix milliseconds."),
    WRITES("hpersist", hpersist, -5, 0, "Takes the expiry of fields away."),
    TELLS("httl", httl, "Tells how many seconds fields have left.", .tips = {"nondeterministic_output"}),
    TELLS("hpttl", hpttl, "Tells how many milliseconds fields have left.",
          .tips = {"nondeterministic_output"}),
    TELLS("hexpiretime", hexpiretime, "Tells the moment at which fields end, in Unix seconds.",
          .tips = {NULL}),
    TELLS("hpexpiretime", hpexpiretime, "Tells the moment at which fields end, in Unix milliseconds.",
          .tips = {NULL}),
    {.name = NULL},
};
/* clang-format on */
