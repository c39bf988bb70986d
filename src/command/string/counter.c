/* Strings that are numbers. The key keeps its expiry. */
#include "base/num.h"
#include "command/families.h"
#include "command/string/value.h"
#include "exec/args.h"

static enum status add_integer(struct call *c, int64_t by)
{
    const struct row *r;
    bool wrong;
    int64_t v = 0;
    char out[NUM_I64_CHARS];
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if (r && !num_parse_i64(row_value(r), &v)) {
        reply_error(c->reply, ERR_NOT_INT);
        return ST_OK;
    }
    if (__builtin_add_overflow(v, by, &v)) {
        reply_error(c->reply, "ERR increment or decrement would overflow");
        return ST_OK;
    }
    struct slice text = {out, num_format_i64(out, v)};
    st = put_short(c, c->argv[1], text, r ? r->expire_at : EXPIRE_NEVER, FORM_UNKNOWN);
    if (st == ST_OK)
        reply_integer(c->reply, v);
    return st;
}

static enum status incr_command(struct call *c)
{
    return add_integer(c, 1);
}

static enum status decr_command(struct call *c)
{
    return add_integer(c, -1);
}

static enum status incrby_command(struct call *c)
{
    int64_t by;
    return arg_i64(c, 2, &by, NULL) ? add_integer(c, by) : ST_OK;
}

static enum status decrby_command(struct call *c)
{
    int64_t by;
    if (!arg_i64(c, 2, &by, NULL))
        return ST_OK;
    if (by == INT64_MIN) {
        reply_error(c->reply, "ERR decrement would overflow");
        return ST_OK;
    }
    return add_integer(c, -by);
}

static enum status incrbyfloat_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    long double v = 0, by;
    char out[NUM_DOUBLE_CHARS];
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    if ((r && !num_parse_long_double(row_value(r), &v)) || !num_parse_long_double(c->argv[2], &by)) {
        reply_error(c->reply, ERR_NOT_FLOAT);
        return ST_OK;
    }
    if (!add_float(c, &v, by))
        return ST_OK;
    struct slice text = {out, num_format_long_double(out, v)};
    st = put_short(c, c->argv[1], text, r ? r->expire_at : EXPIRE_NEVER, FORM_TEXT);
    if (st == ST_OK)
        reply_bulk(c->reply, text);
    return st;
}

/* ---- table ---- */

const struct command counter_commands[] = {
    {.name = "incr",
     .fn = incr_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Adds one to the integer of a key, which counts from 0 if it does not exist.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row"},
    {.name = "decr",
     .fn = decr_command,
     .arity = 2,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Takes one from the integer of a key, which counts from 0 if it does not exist.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row"},
    {.name = "incrby",
     .fn = incrby_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Adds to the integer of a key, which counts from 0 if it does not exist.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row"},
    {.name = "decrby",
     .fn = decrby_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Takes from the integer of a key, which counts from 0 if it does not exist.",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row"},
    {.name = "incrbyfloat",
     .fn = incrbyfloat_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_ACCESS | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Adds to the floating point number of a key, which counts from 0 if it does not exist.",
     .since = "2.6.0",
     .group = "string",
     .complexity = "O(1) row"},
    {.name = NULL},
};
