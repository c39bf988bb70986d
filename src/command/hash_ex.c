/* Values and expiry in one command, as Redis 8 has them: HSETEX, HGETEX, HGETDEL. */
#include "command/families.h"
#include "command/hash.h"
#include "exec/args.h"

/* ---- options ---- */

struct ex_options {
    bool expires; /* EX, PX, EXAT, PXAT */
    int64_t moment;
    bool persist;            /* HGETEX */
    bool keep;               /* HSETEX: KEEPTTL */
    bool all_new, all_there; /* HSETEX: FNX, FXX */
    struct hash_fields fields;
};

/* How HGETEX and HSETEX differ in what they read. */
struct ex_form {
    bool sets;
    const char *one_of;
};

static const struct ex_form getex_form = {
    false,
    "ERR Only one of EX, PX, EXAT, PXAT or PERSIST arguments can be specified",
};
static const struct ex_form setex_form = {
    true,
    "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
};

static bool refused(struct call *c, const char *error)
{
    reply_error(c->reply, error);
    return false;
}

/* Which of the options that are followed by a time a word is. */
static bool is_time(struct slice word, enum time_base *ret_base, enum time_unit *ret_unit)
{
    *ret_base = slice_is(word, "ex") || slice_is(word, "px") ? FROM_NOW : FROM_EPOCH;
    *ret_unit = slice_is(word, "ex") || slice_is(word, "exat") ? SECONDS : MILLISECONDS;
    return slice_is(word, "ex") || slice_is(word, "px") || slice_is(word, "exat") || slice_is(word, "pxat");
}

/* The option at argv[*i], and *i on its last word. */
static bool read_option(struct call *c, const struct ex_form *form, int *i, struct ex_options *o)
{
    struct slice word = c->argv[*i];
    enum time_base base;
    enum time_unit unit;
    bool time = is_time(word, &base, &unit);
    bool persist = !form->sets && slice_is(word, "persist");
    bool keep = form->sets && slice_is(word, "keepttl");
    bool all_new = form->sets && slice_is(word, "fnx");
    bool all_there = form->sets && slice_is(word, "fxx");
    if ((time || persist || keep) && (o->expires || o->persist || o->keep))
        return refused(c, form->one_of);
    if ((all_new || all_there) && (o->all_new || o->all_there))
        return refused(c, "ERR Only one of FXX or FNX arguments can be specified");
    o->expires |= time;
    o->persist |= persist;
    o->keep |= keep;
    o->all_new |= all_new;
    o->all_there |= all_there;
    if (time && *i + 1 == c->argc)
        return refused(c, "ERR missing expire time");
    if (time)
        return hash_read_moment(c, ++*i, base, unit, &o->moment);
    if (persist || keep || all_new || all_there)
        return true;
    reply_errorf(c->reply, "ERR unknown argument: %.*s", (int)word.n, word.p);
    return false;
}

/* FIELDS n and n fields, or pairs of field and value, to the last argument. */
static bool read_ex_fields(struct call *c, const struct ex_form *form, int i, struct ex_options *o)
{
    int words = form->sets ? 2 : 1, left = c->argc - i - 2;
    int64_t n = 0;
    if (left >= words && !arg_range(c, i + 1, 1, INT32_MAX, &n, "ERR invalid number of fields"))
        return false;
    if (left < words || n * words != left) {
        reply_wrong_arity(c);
        return false;
    }
    o->fields = (struct hash_fields){i + 2, (int)n};
    return true;
}

static bool read_ex(struct call *c, const struct ex_form *form, struct ex_options *o)
{
    for (int i = 2; i < c->argc; i++) {
        if (slice_is(c->argv[i], "fields"))
            return read_ex_fields(c, form, i, o);
        if (!read_option(c, form, &i, o))
            return false;
    }
    return refused(c, "ERR Mandatory argument FIELDS is missing or not at the right position");
}

/* ---- HGETEX, HGETDEL ---- */

static enum status expire_found(struct call *c, struct coll *h, const struct coll_item *item,
                                const struct ex_options *o)
{
    if (o->expires)
        return hash_expire_field(c, h, item, o->moment);
    bool clears = o->persist && item->expire_at != EXPIRE_NEVER;
    return clears ? hash_expire_field(c, h, item, EXPIRE_NEVER) : ST_OK;
}

static enum status hgetex(struct call *c)
{
    struct coll *h;
    bool wrong;
    struct ex_options o = {0};
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong || !read_ex(c, &getex_form, &o))
        return st;
    reply_array(c->reply, (size_t)o.fields.n);
    for (int i = 0; st == ST_OK && i < o.fields.n; i++) {
        struct coll_item item = {.expire_at = EXPIRE_NEVER};
        bool found = false;
        if (h)
            st = coll_find(h, c->argv[o.fields.first + i], &found, &item);
        if (st == ST_OK && found) {
            reply_bulk(c->reply, item.value);
            st = expire_found(c, h, &item, &o);
        } else {
            reply_null(c->reply);
        }
    }
    return st == ST_OK && h ? coll_save(h) : st;
}

static enum status hgetdel(struct call *c)
{
    struct coll *h;
    bool wrong, removed;
    struct hash_fields f;
    enum status st = hash_open(c, &h, &wrong);
    if (st != ST_OK || wrong ||
        !hash_read_fields(c, 2, "ERR Number of fields must be a positive integer", &f))
        return st;
    reply_array(c->reply, (size_t)f.n);
    for (int i = f.first; st == ST_OK && i < c->argc; i++) {
        st = hash_reply_value(c, h, c->argv[i]);
        if (st == ST_OK && h)
            st = coll_remove(h, c->argv[i], &removed);
    }
    return st == ST_OK && h ? coll_save(h) : st;
}

/* ---- HSETEX ---- */

/* FNX: none of the fields is there; FXX: all are. */
static enum status condition_met(struct call *c, struct coll *h, const struct ex_options *o, bool *ret)
{
    *ret = true;
    for (int i = 0; (o->all_new || o->all_there) && *ret && i < o->fields.n; i++) {
        struct coll_item item;
        bool found;
        enum status st = coll_find(h, c->argv[o->fields.first + 2 * i], &found, &item);
        if (st != ST_OK)
            return st;
        *ret = found == o->all_there;
    }
    return ST_OK;
}

static enum status set_field(struct call *c, struct coll *h, int i, const struct ex_options *o)
{
    struct coll_item old, item = {.name = c->argv[i], .value = c->argv[i + 1], .expire_at = o->moment};
    bool found;
    if (o->expires && o->moment <= view_now(c->view))
        return coll_remove(h, c->argv[i], &found);
    enum status st = coll_find(h, item.name, &found, &old);
    if (st != ST_OK)
        return st;
    if (o->keep && found)
        item.expire_at = old.expire_at;
    return coll_put_known(h, &item, found ? &old : NULL);
}

static enum status hsetex(struct call *c)
{
    struct coll *h;
    bool wrong, met;
    struct ex_options o = {0};
    if (!read_ex(c, &setex_form, &o))
        return ST_OK;
    enum status st = hash_make(c, &h, &wrong);
    if (st != ST_OK || wrong || (st = condition_met(c, h, &o, &met)) != ST_OK)
        return st;
    for (int i = 0; met && st == ST_OK && i < o.fields.n; i++)
        st = set_field(c, h, o.fields.first + 2 * i, &o);
    if (st == ST_OK)
        st = coll_save(h);
    if (st == ST_OK)
        reply_integer(c->reply, met);
    return st;
}

/* clang-format off */
#define WRITES(name_, fn_, arity_, flags_, key_flags_, summary_)                                             \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = (arity_), .flags = CMD_WRITE | CMD_FAST | (flags_),           \
        .categories = CAT_WRITE | CAT_HASH | CAT_FAST,                                                       \
        .keys = {{.flags = KEY_RW | (key_flags_), .index = 1, .step = 1}},                                   \
        .summary = (summary_), .since = "8.0.0", .group = "hash", .complexity = "O(N) in the fields named."  \
    }

const struct command hash_ex_commands[] = {
    WRITES("hsetex", hsetex, -6, CMD_DENYOOM, KEY_UPDATE, "Sets fields of a hash and when they end."),
    WRITES("hgetex", hgetex, -5, 0, KEY_ACCESS | KEY_UPDATE,
           "Answers the values of fields and sets when they end."),
    WRITES("hgetdel", hgetdel, -5, 0, KEY_ACCESS | KEY_DELETE,
           "Answers the values of fields and removes them."),
    {.name = NULL},
};
/* clang-format on */
