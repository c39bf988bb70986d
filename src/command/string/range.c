/* Parts of strings. A string above 64 KiB is in chunks: these read and write only those that they touch. */
#include "command/families.h"
#include "command/string/value.h"
#include "exec/args.h"

static enum status strlen_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st == ST_OK && !wrong)
        reply_integer(c->reply, r ? row_string_size(r) : 0);
    return st;
}

static enum status append_command(struct call *c)
{
    const struct row *r;
    bool wrong;
    struct slice tail = c->argv[2];
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t size = r ? row_string_size(r) : 0;
    if (!r)
        st = view_set_string(c->view, call_db(c), c->argv[1], tail, EXPIRE_NEVER);
    else if (!value_fits(c, size, (int64_t)tail.n))
        return ST_OK;
    else if (tail.n)
        st = view_write_range(c->view, call_db(c), c->argv[1], size, tail);
    else /* who watches the key sees a change */
        st = view_expire(c->view, call_db(c), c->argv[1], r->expire_at);
    if (st == ST_OK)
        reply_integer(c->reply, size + (int64_t)tail.n);
    return st;
}

static enum status setrange_command(struct call *c)
{
    int64_t off;
    const struct row *r;
    bool wrong;
    struct slice data = c->argv[3];
    if (!arg_i64(c, 2, &off, NULL))
        return ST_OK;
    if (off < 0) {
        reply_error(c->reply, "ERR offset is out of range");
        return ST_OK;
    }
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t size = r ? row_string_size(r) : 0;
    if (data.n) {
        if (!value_fits(c, off, (int64_t)data.n))
            return ST_OK;
        if ((st = view_write_range(c->view, call_db(c), c->argv[1], off, data)) != ST_OK)
            return st;
        if (size < off + (int64_t)data.n)
            size = off + (int64_t)data.n;
    }
    reply_integer(c->reply, size);
    return ST_OK;
}

/* GETRANGE and its old name SUBSTR. Negative positions count from the end. */
static enum status getrange_command(struct call *c)
{
    int64_t start, end;
    const struct row *r;
    bool wrong;
    if (!arg_i64(c, 2, &start, NULL) || !arg_i64(c, 3, &end, NULL))
        return ST_OK;
    enum status st = arg_row(c, 1, ROW_STRING, &r, &wrong);
    if (st != ST_OK || wrong)
        return st;
    int64_t size = r ? row_string_size(r) : 0;
    if ((start < 0 && end < 0 && start > end) || !range_within(&start, &end, size)) {
        reply_bulk(c->reply, SLICE(""));
        return ST_OK;
    }
    return reply_row_range(c, r, start, end - start + 1);
}

/* ---- table ---- */

const struct command range_commands[] = {
    {.name = "append",
     .fn = append_command,
     .arity = 3,
     .flags = CMD_WRITE | CMD_DENYOOM | CMD_FAST,
     .categories = CAT_WRITE | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RW | KEY_INSERT, .index = 1, .step = 1}},
     .summary = "Appends to a string, which is created if it does not exist.",
     .since = "2.0.0",
     .group = "string",
     .complexity = "O(1) row; above 64 KiB O(N) chunks of what is appended"},
    {.name = "strlen",
     .fn = strlen_command,
     .arity = 2,
     .flags = CMD_READONLY | CMD_FAST | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_STRING | CAT_FAST,
     .keys = {{.flags = KEY_RO, .index = 1, .step = 1}},
     .summary = "Returns the length of a string.",
     .since = "2.2.0",
     .group = "string",
     .complexity = "O(1) row, whatever the length"},
    {.name = "setrange",
     .fn = setrange_command,
     .arity = 4,
     .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},
     .summary =
         "Overwrites a part of a string from an offset on; a string that is too short grows with zeros.",
     .since = "2.2.0",
     .group = "string",
     .complexity = "O(1) row; above 64 KiB O(N) chunks of what is written"},
    {.name = "getrange",
     .fn = getrange_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Returns a part of a string.",
     .since = "2.4.0",
     .group = "string",
     .complexity = "O(1) row; above 64 KiB O(N) chunks of what is returned"},
    {.name = "substr",
     .fn = getrange_command,
     .arity = 4,
     .flags = CMD_READONLY | CMD_ROWS_ONLY,
     .categories = CAT_READ | CAT_STRING | CAT_SLOW,
     .keys = {{.flags = KEY_RO | KEY_ACCESS, .index = 1, .step = 1}},
     .summary = "Returns a part of a string (the old name of GETRANGE).",
     .since = "1.0.0",
     .group = "string",
     .complexity = "O(1) row; above 64 KiB O(N) chunks of what is returned"},
    {.name = NULL},
};
