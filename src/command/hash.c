/* Hashes: field by field, whole, page by page, and at random. Fields that expire are in
   hash_expire.c and hash_ex.c. */
#include "command/hash.h"

#include <math.h>

#include "base/num.h"
#include "command/families.h"
#include "command/scan.h"
#include "command/string/value.h"
#include "exec/args.h"

/* ---- shared ---- */

static enum status checked(struct call *c, enum status st, bool wrong)
{
    if (st == ST_OK && wrong)
        reply_error(c->reply, ERR_WRONGTYPE);
    return st;
}

enum status hash_open(struct call *c, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_open(c->view, call_db(c), c->argv[1], ROW_HASH, ret, ret_wrong);
    return checked(c, st, *ret_wrong);
}

enum status hash_make(struct call *c, struct coll **ret, bool *ret_wrong)
{
    enum status st = coll_make(c->view, call_db(c), c->argv[1], ROW_HASH, ret, ret_wrong);
    return checked(c, st, *ret_wrong);
}

/* The field argv[2] of the hash argv[1]; *ret_found is false as well when there is no hash. *ret_wrong as in
   hash_open. */
static enum status find_field(struct call *c, bool *ret_found, struct coll_item *ret, bool *ret_wrong)
{
    struct coll *h;
    enum status st = hash_open(c, &h, ret_wrong);
    *ret_found = false;
    return st == ST_OK && h ? coll_find(h, c->argv[2], ret_found, ret) : st;
}

enum status hash_reply_value(struct call *c, struct coll *h, struct slice field)
{
    struct coll_item item;
    bool found = false;
    enum status st = h ? coll_find(h, field, &found, &item) : ST_OK;
    if (st != ST_OK)
        return st;
    if (found)
        reply_bulk(c->reply, item.value);
    else
        reply_null(c->reply);
    return ST_OK;
}

/* ---- setting ---- */

static enum status set_fields(struct call *c, int64_t *ret_added, bool *ret_done)
{
    struct coll *h;
    bool wrong, added;
    *ret_added = 0;
    *ret_done = false;
    if (c->argc % 2) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    enum status st = hash_make(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    for (int i = 2; st == ST_OK && i < c->argc; i += 2) {
        struct coll_item item = {.name = c->argv[i], .value = c->argv[i + 1]};
        st = coll_put(h, &item, &added);
        *ret_added += added;
    }
    *ret_done = true;
    return st == ST_OK ? coll_save(h) : st;
}

static enum status hset(struct call *c)
{
    int64_t added;
    bool done;
    enum status st = set_fields(c, &added, &done);
    if (st == ST_OK && done)
        reply_integer(c->reply, added);
    return st;
}

static enum status hmset(struct call *c)
{
    int64_t added;
    bool done;
    enum status st = set_fields(c, &added, &done);
    if (st == ST_OK && done)
        reply_ok(c->reply);
    return st;
}

static enum status hsetnx(struct call *c)
{
    struct coll *h;
    struct coll_item item;
    bool wrong, found;
    enum status st = hash_make(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    st = coll_find(h, c->argv[2], &found, &item);
    if (st == ST_OK && !found) {
        item = (struct coll_item){.name = c->argv[2], .value = c->argv[3]};
        st = coll_put_known(h, &item, NULL);
        if (st == ST_OK)
            st = coll_save(h);
    }
    if (st == ST_OK)
        reply_integer(c->reply, !found);
    return st;
}

/* Gives a field another value; its expiry stays. */
static enum status set_number(struct call *c, struct coll *h, const struct coll_item *old, struct slice text)
{
    struct coll_item item = {
        .name = c->argv[2],
        .value = arena_copy(view_arena(c->view), text),
        .expire_at = old ? old->expire_at : EXPIRE_NEVER,
    };
    enum status st = coll_put_known(h, &item, old);
    return st == ST_OK ? coll_save(h) : st;
}

static enum status hincrby(struct call *c)
{
    struct coll *h;
    struct coll_item old;
    bool wrong, found;
    int64_t by, v = 0;
    char out[NUM_I64_CHARS];
    if (!arg_i64(c, 3, &by, NULL))
        return ST_OK;
    enum status st = hash_make(c, &h, &wrong);
    if (st != ST_OK || wrong || (st = coll_find(h, c->argv[2], &found, &old)) != ST_OK)
        return st;
    if (found && !num_parse_i64(old.value, &v)) {
        reply_error(c->reply, "ERR hash value is not an integer");
        return ST_OK;
    }
    if (__builtin_add_overflow(v, by, &v)) {
        reply_error(c->reply, "ERR increment or decrement would overflow");
        return ST_OK;
    }
    st = set_number(c, h, found ? &old : NULL, slice_of(out, num_format_i64(out, v)));
    if (st == ST_OK)
        reply_integer(c->reply, v);
    return st;
}

static enum status hincrbyfloat(struct call *c)
{
    struct coll *h;
    struct coll_item old;
    bool wrong, found;
    long double by, v = 0;
    char out[NUM_DOUBLE_CHARS];
    if (!num_parse_long_double(c->argv[3], &by)) {
        reply_error(c->reply, ERR_NOT_FLOAT);
        return ST_OK;
    }
    if (isinf(by)) {
        reply_error(c->reply, "ERR value is NaN or Infinity");
        return ST_OK;
    }
    enum status st = hash_make(c, &h, &wrong);
    if (st != ST_OK || wrong || (st = coll_find(h, c->argv[2], &found, &old)) != ST_OK)
        return st;
    if (found && !num_parse_long_double(old.value, &v)) {
        reply_error(c->reply, "ERR hash value is not a float");
        return ST_OK;
    }
    if (!add_float(c, &v, by))
        return ST_OK;
    struct slice text = {out, num_format_long_double(out, v)};
    st = set_number(c, h, found ? &old : NULL, text);
    if (st == ST_OK)
        reply_bulk(c->reply, text);
    return st;
}

static enum status hdel(struct call *c)
{
    struct coll *h;
    bool wrong, removed;
    int64_t n = 0;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    for (int i = 2; h && st == ST_OK && i < c->argc; i++) {
        st = coll_remove(h, c->argv[i], &removed);
        n += removed;
    }
    if (st == ST_OK && h)
        st = coll_save(h);
    if (st == ST_OK)
        reply_integer(c->reply, n);
    return st;
}

/* ---- one field or several ---- */

static enum status hget(struct call *c)
{
    struct coll *h;
    bool wrong;
    enum status st = hash_open(c, &h, &wrong);
    return st == ST_OK && !wrong ? hash_reply_value(c, h, c->argv[2]) : st;
}

static enum status hmget(struct call *c)
{
    struct coll *h;
    bool wrong;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; st == ST_OK && i < c->argc; i++)
        st = hash_reply_value(c, h, c->argv[i]);
    return st;
}

static enum status hexists(struct call *c)
{
    struct coll_item item;
    bool found, wrong;
    enum status st = find_field(c, &found, &item, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, found);
    return st;
}

static enum status hstrlen(struct call *c)
{
    struct coll_item item;
    bool found, wrong;
    enum status st = find_field(c, &found, &item, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, found ? (int64_t)item.value.n : 0);
    return st;
}

/* ---- all fields ---- */

static enum status hlen(struct call *c)
{
    struct coll *h;
    bool wrong;
    enum status st = hash_open(c, &h, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, h ? coll_size(h) : 0);
    return st;
}

static enum status reply_field(void *arg, const struct coll_item *item)
{
    reply_bulk(arg, item->name);
    return ST_OK;
}

static enum status reply_value(void *arg, const struct coll_item *item)
{
    reply_bulk(arg, item->value);
    return ST_OK;
}

static enum status reply_both(void *arg, const struct coll_item *item)
{
    reply_bulk(arg, item->name);
    reply_bulk(arg, item->value);
    return ST_OK;
}

/* Fields go from the tables straight into the reply. */
static enum status reply_all(struct call *c, coll_fn *fn)
{
    struct coll *h;
    bool wrong;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    size_t n = h ? (size_t)coll_size(h) : 0;
    if (fn == reply_both)
        reply_map(c->reply, n);
    else
        reply_array(c->reply, n);
    return h ? coll_each(h, fn, c->reply) : ST_OK;
}

static enum status hgetall(struct call *c)
{
    return reply_all(c, reply_both);
}

static enum status hkeys(struct call *c)
{
    return reply_all(c, reply_field);
}

static enum status hvals(struct call *c)
{
    return reply_all(c, reply_value);
}

static enum status add_to_page(void *arg, const struct coll_item *item)
{
    struct scan_page *s = arg;
    if (scan_wants(s, item->name)) {
        scan_add(s, item->name);
        scan_add(s, item->value);
    }
    return ST_OK;
}

static enum status hscan(struct call *c)
{
    struct scan_page s;
    struct coll *h;
    bool wrong;
    if (!scan_cursor(c, 2, &s))
        return ST_OK;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (h && !scan_options(c, 3, false, &s))
        return ST_OK;
    if (h)
        st = coll_page(h, &s.cursor, s.count, add_to_page, &s);
    else
        s.cursor = 0;
    if (st == ST_OK)
        scan_reply(c, &s);
    return st;
}

/* ---- random fields ---- */

struct pairs {
    struct reply *reply;
    bool with_values;
};

/* With their values fields are pairs in RESP3, and one list in RESP2. */
static enum status reply_random_field(void *arg, const struct coll_item *item)
{
    const struct pairs *p = arg;
    if (p->with_values && p->reply->resp != 2)
        reply_array(p->reply, 2);
    reply_bulk(p->reply, item->name);
    if (p->with_values)
        reply_bulk(p->reply, item->value);
    return ST_OK;
}

/* A positive count wants so many different fields, a negative one any, some of them perhaps twice. */
static enum status reply_random_fields(struct call *c, struct coll *h, int64_t count, bool with_values)
{
    struct pairs p = {c->reply, with_values};
    int64_t size = coll_size(h), n = count < 0 ? -count : count;
    size_t start = c->reply->ops->mark(c->reply);
    if (count > size)
        n = size;
    reply_array(c->reply, (size_t)(with_values && c->reply->resp == 2 ? 2 * n : n));
    if (count >= 0)
        return coll_sample(h, n, reply_random_field, &p);
    enum status st = ST_OK;
    for (int64_t i = 0; st == ST_OK && i < n && reply_drawn_fits(c, start, n - i); i++) {
        struct coll_item item;
        st = coll_random(h, &item);
        if (st == ST_OK)
            st = reply_random_field(&p, &item);
    }
    return st;
}

static bool read_random(struct call *c, int64_t *ret_count, bool *ret_with_values)
{
    if (!arg_range(c, 2, -INT64_MAX, INT64_MAX, ret_count, NULL))
        return false;
    *ret_with_values = c->argc == 4 && slice_is(c->argv[3], "withvalues");
    if (c->argc > 4 || (c->argc == 4 && !*ret_with_values)) {
        reply_error(c->reply, ERR_SYNTAX);
        return false;
    }
    if (*ret_with_values && (*ret_count < -INT64_MAX / 2 || *ret_count > INT64_MAX / 2)) {
        reply_error(c->reply, "ERR value is out of range");
        return false;
    }
    return true;
}

static enum status hrandfield(struct call *c)
{
    int64_t count = 0;
    bool with_values = false, wrong;
    struct coll *h;
    if (c->argc > 2 && !read_random(c, &count, &with_values))
        return ST_OK;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (c->argc > 2) {
        if (h)
            return reply_random_fields(c, h, count, with_values);
        reply_array(c->reply, 0);
        return ST_OK;
    }
    if (!h) {
        reply_null(c->reply);
        return ST_OK;
    }
    struct coll_item item;
    st = coll_random(h, &item);
    if (st == ST_OK)
        reply_bulk(c->reply, item.name);
    return st;
}

/* ---- table ---- */

#define ONE_FIELD  "O(1) field, however many there are."
#define EACH_FIELD "O(N) in the fields named."
#define ALL_FIELDS "O(N) in the fields of the hash, which go straight into the reply."

/* clang-format off */
#define FIELDS {2, 1, 0}
#define PAIRS  {2, 2, 1}

#define WRITES(name_, fn_, arity_, flags_, key_flags_, names_, since_, complexity_, summary_)                \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_WRITE | CMD_FAST | (flags_),           \
        .categories = CAT_WRITE | CAT_HASH | CAT_FAST,                                                       \
        .keys = {{.flags = KEY_RW | (key_flags_), .index = 1, .step = 1}}, .names = names_,                  \
        .summary = (summary_), .since = (since_), .group = "hash", .complexity = (complexity_)               \
    }

#define READS(name_, fn_, arity_, key_flags_, since_, complexity_, summary_)                                 \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_READONLY | CMD_FAST,                   \
        .categories = CAT_READ | CAT_HASH | CAT_FAST,                                                        \
        .keys = {{.flags = KEY_RO | (key_flags_), .index = 1, .step = 1}}, .names = FIELDS,                  \
        .summary = (summary_), .since = (since_), .group = "hash", .complexity = (complexity_)               \
    }

#define READS_ALL(name_, fn_, arity_, since_, tip_, complexity_, summary_)                                   \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_READONLY,                              \
        .categories = CAT_READ | CAT_HASH | CAT_SLOW,                                                        \
        .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},                                     \
        .summary = (summary_), .since = (since_), .group = "hash", .complexity = (complexity_),              \
        .tips = {tip_}                                                                                       \
    }

const struct command hash_commands[] = {
    WRITES("hset", hset, -4, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_UPDATE, PAIRS, "2.0.0", EACH_FIELD, "Sets fields of a hash."),
    WRITES("hsetnx", hsetnx, 4, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_INSERT, FIELDS, "2.0.0", ONE_FIELD,
           "Sets a field of a hash that does not have it."),
    WRITES("hmset", hmset, -4, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_UPDATE, PAIRS, "2.0.0", EACH_FIELD,
           "Sets fields of a hash, like HSET, and answers OK."),
    WRITES("hincrby", hincrby, 4, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_ACCESS | KEY_UPDATE, FIELDS, "2.0.0", ONE_FIELD,
           "Adds to the integer of a field, which counts from 0 if it does not exist."),
    WRITES("hincrbyfloat", hincrbyfloat, 4, CMD_DENYOOM | CMD_FEW_ITEMS, KEY_ACCESS | KEY_UPDATE, FIELDS, "2.6.0", ONE_FIELD,
           "Adds to the floating point number of a field, which counts from 0 if it does not exist."),
    WRITES("hdel", hdel, -3, 0, KEY_DELETE, FIELDS, "2.0.0", EACH_FIELD,
           "Removes fields from a hash, and the hash when none is left."),
    READS("hget", hget, 3, KEY_ACCESS, "2.0.0", ONE_FIELD, "Answers the value of a field."),
    READS("hmget", hmget, -3, KEY_ACCESS, "2.0.0", EACH_FIELD, "Answers the values of fields."),
    READS("hexists", hexists, 3, 0, "2.0.0", ONE_FIELD, "Tells whether a hash has a field."),
    READS("hstrlen", hstrlen, 3, 0, "3.2.0", ONE_FIELD, "Tells how long the value of a field is."),
    READS("hlen", hlen, 2, 0, "2.0.0", "O(1) row", "Tells how many fields a hash has."),
    READS_ALL("hgetall", hgetall, 2, "2.0.0", "nondeterministic_output_order", ALL_FIELDS,
              "Answers all fields of a hash with their values."),
    READS_ALL("hkeys", hkeys, 2, "2.0.0", "nondeterministic_output_order", ALL_FIELDS,
              "Answers the names of all fields of a hash."),
    READS_ALL("hvals", hvals, 2, "2.0.0", "nondeterministic_output_order", ALL_FIELDS,
              "Answers the values of all fields of a hash."),
    READS_ALL("hrandfield", hrandfield, -2, "6.2.0", "nondeterministic_output",
              "O(N) in the fields wanted, or in all of them when that is less.", "Answers random fields of a hash."),
    READS_ALL("hscan", hscan, -3, "2.8.0", "nondeterministic_output",
              "O(COUNT) for each page, O(N) in the fields for all of them.",
              "Lists the fields of a hash page by page."),
    {.name = NULL},
};
/* clang-format on */
