#include "exec/declare.h"

#include "base/mem.h"
#include "engine/hidden.h"
#include "exec/executor.h"
#include "exec/reads.h"
#include "exec/session.h"
#include "exec/txn.h"

#define FEW 32 /* arguments, for which the stack has room */

/* Writes, but names no key: it changes whole databases. */
static bool changes_everything(const struct command *cmd)
{
    return (cmd->flags & CMD_WRITE) && !cmd->keys[0].flags;
}

/* Rows of no client's, which it looks at. */
static void declare_hidden(struct view *v, const struct command *cmd)
{
    if (cmd->flags & CMD_LIBRARIES)
        view_peek(v, HIDDEN_LIBRARIES);
    if (cmd->flags & CMD_SCRIPTS) {
        view_peek(v, HIDDEN_SCRIPTS);
        view_peek(v, HIDDEN_FLUSHES);
    }
}

/* Of a command with one key, the arguments behind it name what it asks for; guessed. */
static void declare_items(struct view *v, uint32_t db, const struct slice *argv, int argc, const int *at,
                          int n)
{
    for (int i = 0; i < n; i++)
        view_declare_items(v, db, argv[at[i]], argv + at[i] + 1, n == 1 ? argc - at[i] - 1 : 0);
}

size_t declare_keys(struct view *v, uint32_t db, const struct command *cmd, const struct slice *argv,
                    int argc)
{
    int few[FEW];
    if (!(cmd->flags & CMD_ROWS_ONLY))
        view_declare_more(v, cmd->flags & CMD_FEW_ITEMS);
    if (cmd->flags & (CMD_LIBRARIES | CMD_SCRIPTS))
        declare_hidden(v, cmd);
    if (changes_everything(cmd)) {
        if (cmd->flags & CMD_LIBRARIES)
            view_declare_libraries(v);
        else
            view_declare_everything(v);
        return 0;
    }
    if (!cmd->keys[0].flags || !command_arity_fits(cmd, argc))
        return 0;
    int *at = argc <= FEW ? few : mem_alloc((size_t)argc * sizeof *at);
    int n = command_keys(cmd, argv, argc, at, NULL, argc);
    for (int i = 0; i < n; i++)
        view_declare(v, db, argv[at[i]]);
    if (!(cmd->flags & CMD_ROWS_ONLY))
        declare_items(v, db, argv, argc, at, n);
    if (at != few)
        mem_free(at);
    return n > 0 ? (size_t)n : 0;
}

size_t declare_call(struct executor *s, const struct session *c, const struct command *cmd,
                    const struct slice *argv, int argc)
{
    if (txn_is_exec(cmd))
        return txn_declare(c, s->view);
    if ((cmd->reads_as || cmd->subs) && !(cmd = reads_inside(cmd, &argv, &argc, NULL)))
        return 0;
    return declare_keys(s->view, c->state.db, cmd, argv, argc);
}
