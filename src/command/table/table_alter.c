/* TABLE.ALTER and TABLE.REBUILD: another schema for a table that is there, which is its key row and nothing
   else; entries of an index that goes are one row of trash. A table of few rows has its new index at once,
   any other when the server has built it behind (table/build/walker.h). A crash leaves the table as it was,
   or as it became; a build goes on with the next server. */
#include "base/buf.h"
#include "command/families.h"
#include "command/table/table_common.h"
#include "exec/args.h"
#include "exec/executor.h"
#include "table/build/alter.h"

/* The arguments from i on, with a space between two of them. */
static struct slice joined(const struct call *c, int i)
{
    struct buf text = {0};
    for (int k = i; k < c->argc; k++) {
        if (k > i)
            buf_add(&text, " ", 1);
        buf_add_slice(&text, c->argv[k]);
    }
    struct slice copy = arena_copy(c->arena, buf_slice(&text));
    buf_release(&text);
    return copy;
}

static void conclude(struct call *c, bool builds, const struct fault *fault)
{
    if (fault->kind) {
        reply_fault(c->reply, fault);
        return;
    }
    c->executor->builds_asked |= builds;
    reply_ok(c->reply);
}

static enum status table_alter_command(struct call *c)
{
    struct rows r;
    struct fault fault = {.kind = FAULT_NONE};
    bool builds;
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    st = table_alter(&r, joined(c, 2), &builds, &fault);
    if (st == ST_OK)
        conclude(c, builds, &fault);
    return st;
}

static enum status table_rebuild_command(struct call *c)
{
    struct rows r;
    struct fault fault = {.kind = FAULT_NONE};
    bool builds;
    if (c->argc > 3) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    enum status st = arg_rows(c, 1, &r);
    if (st != ST_OK || !r.table)
        return st;
    st = table_rebuild(&r, c->argc > 2 ? c->argv[2] : (struct slice){0}, &builds, &fault);
    if (st == ST_OK)
        conclude(c, builds, &fault);
    return st;
}

/* clang-format off */
const struct command table_alter_commands[] = {
    {.name = "table.alter", .fn = table_alter_command, .arity = -3, .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_SLOW, .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Adds, drops or renames a column, or adds or drops an index, which is built behind.",
     .since = "1.0.0", .group = "table",
     .complexity = "O(1) row; adding an index to a table of up to 1,000 rows: O(N) in its rows."},
    {.name = "table.rebuild", .fn = table_rebuild_command, .arity = -2, .flags = CMD_WRITE | CMD_DENYOOM,
     .categories = CAT_WRITE | CAT_SLOW, .keys = {{.flags = KEY_RW | KEY_UPDATE, .index = 1, .step = 1}},
     .summary = "Builds an index of a table anew, or all of them.",
     .since = "1.0.0", .group = "table",
     .complexity = "O(1) row; with up to 1,000 rows in the table: O(N) in its rows."},
    {.name = NULL},
};
/* clang-format on */
