/* OBJECT: how Redis would keep a value, and how long nobody has used it. Larder keeps rows; what a row in
   memory remembers of how its value came to be (enum row_form) is told as Redis tells it. Of a row that comes
   from the tables nothing is remembered, as in Redis after a restart. */
#include "exec/args.h"

#include "base/num.h"
#include "command/families.h"
#include "engine/coll.h"

#define EMBSTR_MAX  44    /* bytes of a string that Redis keeps together with its header */
#define SHARED_INTS 10000 /* 0 .. 9999: integers that all keys share in Redis, which says so with INT_MAX */

/* The row behind OBJECT's key; NULL when a null has been replied. */
static enum status object_row(struct call *c, const struct row **ret)
{
    view_look_only(c->view);
    enum status st = arg_any(c, 2, ret);
    if (st == ST_OK && !*ret)
        reply_null(c->reply);
    return st;
}

static bool holds_integer(const struct row *row, int64_t *ret)
{
    return row->type == ROW_STRING && !row->ext && row->form == FORM_UNKNOWN &&
           num_parse_i64(row_value(row), ret);
}

/* How Redis keeps a small collection, and a larger one. */
static const struct {
    const char *small, *large;
} forms[] = {
    [ROW_HASH] = {"listpack", "hashtable"},
    [ROW_LIST] = {"quicklist", "quicklist"},
    [ROW_SET] = {"intset", "hashtable"},
    [ROW_ZSET] = {"listpack", "skiplist"},
};

struct fitting {
    struct coll *coll;
    bool fits; /* into the small form */
};

/* The first item that does not fit ends the walk. */
static enum status fit_item(void *arg, const struct coll_item *item)
{
    struct fitting *f = arg;
    f->fits = coll_item_is_small(f->coll, item);
    return f->fits ? ST_OK : ST_STOP;
}

/* No form was noted: the one that Redis would give these items today. */
static enum status derive_form(struct call *c, int i, enum row_type type, enum row_form *ret)
{
    struct coll *coll;
    bool wrong;
    view_count_lookups(c->view, false); /* the row has been looked up */
    enum status st = coll_open(c->view, call_db(c), c->argv[i], type, &coll, &wrong);
    if (st != ST_OK)
        return st;
    *ret = FORM_LARGE;
    if (coll_size(coll) > view_form_limit(c->view, type)->items)
        return ST_OK;
    struct fitting f = {coll, true};
    st = coll_each(coll, fit_item, &f);
    if (st == ST_OK && f.fits)
        *ret = FORM_SMALL;
    return st;
}

static enum status coll_encoding(struct call *c, int i, const struct row *row, const char **ret)
{
    enum row_type type = (enum row_type)row->type;
    enum row_form form = type == ROW_LIST ? FORM_LARGE : (enum row_form)row->form;
    enum status st = form == FORM_UNKNOWN ? derive_form(c, i, type, &form) : ST_OK;
    *ret = form == FORM_SMALL ? forms[type].small : forms[type].large;
    return st;
}

enum status arg_encoding(struct call *c, int i, const struct row *row, const char **ret)
{
    int64_t n;
    if (row->type == ROW_TABLE) {
        *ret = "table";
        return ST_OK;
    }
    if (row->type != ROW_STRING)
        return coll_encoding(c, i, row, ret);
    if (holds_integer(row, &n))
        *ret = "int";
    else
        *ret = row->form != FORM_RAW && row_string_size(row) <= EMBSTR_MAX ? "embstr" : "raw";
    return ST_OK;
}

static enum status object_encoding(struct call *c)
{
    const struct row *row;
    const char *encoding;
    enum status st = object_row(c, &row);
    if (st != ST_OK || !row)
        return st;
    st = arg_encoding(c, 2, row, &encoding);
    if (st == ST_OK)
        reply_bulk_str(c->reply, encoding);
    return st;
}

static enum status object_freq(struct call *c)
{
    const struct row *row;
    enum status st = object_row(c, &row);
    if (st == ST_OK && row)
        reply_error(c->reply, "ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
                              "Please note that when switching between policies at runtime LRU and LFU data "
                              "will take some time to adjust.");
    return st;
}

/* Of a key that was not in memory: none, it has just been asked for. */
static enum status object_idletime(struct call *c)
{
    const struct row *row;
    enum status st = object_row(c, &row);
    if (st == ST_OK && row)
        reply_integer(c->reply, view_idle_seconds(c->view, row));
    return st;
}

static enum status object_refcount(struct call *c)
{
    const struct row *row;
    enum status st = object_row(c, &row);
    if (st != ST_OK || !row)
        return st;
    int64_t n;
    reply_integer(c->reply, holds_integer(row, &n) && n >= 0 && n < SHARED_INTS ? INT32_MAX : 1);
    return ST_OK;
}

static enum status object_help(struct call *c)
{
    static const char *const lines[] = {
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

/* clang-format off */
#define OBJECT_SUB(name_, fn_, since_, summary_)                                                             \
    {                                                                                                        \
        .name = (name_), .fn = (fn_), .arity = 3, .flags = CMD_READONLY,                                     \
        .categories = CAT_KEYSPACE | CAT_READ | CAT_SLOW,                                                    \
        .keys = {{.flags = KEY_RO, .index = 2, .step = 1}},                                                  \
        .summary = (summary_), .since = (since_), .group = "generic", .complexity = "O(1)",                  \
        .tips = {"nondeterministic_output"}                                                                  \
    }

static const struct command object_subs[] = {
    OBJECT_SUB("encoding", object_encoding, "2.2.3", "Tells how Redis would keep a value in memory."),
    OBJECT_SUB("idletime", object_idletime, "2.2.3", "Tells for how many seconds nobody has used a key."),
    {
        .name = "help", .fn = object_help, .arity = 2, .flags = CMD_LOADING | CMD_STALE,
        .categories = CAT_KEYSPACE | CAT_SLOW,
        .summary = "Lists the subcommands.", .since = "6.2.0", .group = "generic", .complexity = "O(1)",
    },
    OBJECT_SUB("freq", object_freq, "4.0.0", "Answers an error: access frequency is not tracked."),
    OBJECT_SUB("refcount", object_refcount, "2.2.3", "Tells how many keys would share a value in Redis."),
    {.name = NULL},
};

const struct command object_commands[] = {
    {
        .name = "object", .arity = -2, .categories = CAT_SLOW,
        .summary = "Tells about the insides of values.", .since = "2.2.3", .group = "generic",
        .complexity = "O(1)", .subs = object_subs,
    },
    {.name = NULL},
};
/* clang-format on */
