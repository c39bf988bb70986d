/* Replicas, as clients see them: what their reads may be served from, where their writes are in the
   database's log, and how many replicas have those.

   None of these touches a row. A mode and a position are the session's state: what undoes a transaction
   brings them back with it. A crash forgets them with the connection; a token is how a client keeps its
   position. */
#include "command/families.h"

#include "exec/args.h"
#include "exec/executor.h"
#include "exec/reads.h"
#include "exec/session.h"
#include "replica/token.h"

/* ---- modes ---- */

/* The mode at argv[i]: STRONG, BOUNDED 500, or as the option has it, bounded=500. Returns where the words
   behind it begin; 0 when there is no mode, which err says. */
static int read_mode(const struct slice *argv, int argc, int i, struct consistency *ret, struct error *err)
{
    if (!slice_is(argv[i], read_mode_name(READ_BOUNDED)) || i + 1 >= argc)
        return consistency_parse(argv[i], ret, err) == ST_OK ? i + 1 : 0;
    struct consistency c = {.mode = READ_BOUNDED};
    if (consistency_parse_bound(argv[i + 1], &c.bound_ms, err) != ST_OK)
        return 0;
    *ret = c;
    return i + 2;
}

static enum status consistency_command(struct call *c)
{
    struct consistency *mode = &c->session->state.consistency;
    struct consistency chosen;
    struct error err;
    char text[CONSISTENCY_TEXT];
    if (c->argc == 1) {
        reply_bulk_str(c->reply, consistency_text(*mode, text));
        return ST_OK;
    }
    int end = read_mode(c->argv, c->argc, 1, &chosen, &err);
    if (end == 0) {
        reply_errorf(c->reply, "ERR %s", err.text);
    } else if (end < c->argc) {
        reply_error(c->reply, ERR_SYNTAX);
    } else {
        *mode = chosen;
        reply_ok(c->reply);
    }
    return ST_OK;
}

/* What a client of a Redis Cluster says before it reads from replicas. */
static enum status readonly(struct call *c)
{
    c->session->state.consistency = (struct consistency){.mode = READ_EVENTUAL};
    reply_ok(c->reply);
    return ST_OK;
}

static enum status readwrite(struct call *c)
{
    c->session->state.consistency = (struct consistency){.mode = READ_STRONG};
    reply_ok(c->reply);
    return ST_OK;
}

/* ---- LARDER.READ ---- */

static int read_inner(const struct slice *argv, int argc, struct consistency *ret)
{
    struct error err;
    int at = argc > 2 ? read_mode(argv, argc, 1, ret, &err) : 0;
    return at < argc ? at : 0;
}

/* Where the first key is among the words of LARDER.READ. */
static int find_key(const struct slice *argv, int argc)
{
    const struct slice *words = argv;
    int index, n = argc;
    const struct command *cmd = reads_inside(command_find(argv[0]), &words, &n, NULL);
    return cmd && command_keys(cmd, words, n, &index, NULL, 1) > 0 ? argc - n + index : -1;
}

/* By the time that this runs, the call's view is that of whoever answers it: the mode has been read when its
   transaction began. Inside EXEC everything is read from the primary, which every mode allows. */
static enum status read_command(struct call *c)
{
    struct consistency how;
    struct error err;
    int at = read_mode(c->argv, c->argc, 1, &how, &err);
    if (at == 0) {
        reply_errorf(c->reply, "ERR %s", err.text);
        return ST_OK;
    }
    if (at == c->argc) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    const struct slice *argv = c->argv;
    int argc = c->argc;
    const struct command *cmd = reads_inside(c->cmd, &argv, &argc, NULL);
    if (!cmd || !reads_only(cmd) || cmd->reads_as) {
        reply_error(c->reply, "ERR LARDER.READ is for one command that only reads");
        return ST_OK;
    }
    if (!command_arity_fits(cmd, argc)) {
        char name[COMMAND_NAME_CHARS];
        command_full_name(cmd, name);
        reply_errorf(c->reply, "ERR wrong number of arguments for '%s' command", name);
        return ST_OK;
    }
    return command_run_inside(c, cmd, argv, argc);
}

/* ---- LARDER.TOKEN ---- */

static enum status token_command(struct call *c)
{
    struct position p;
    char text[TOKEN_TEXT];
    struct error refusal = {.code = ST_OK};
    if (c->argc > 2) {
        reply_wrong_arity(c);
        return ST_OK;
    }
    enum status st =
        c->argc == 2 ? session_take_token(c->session, c->argv[1], &refusal, c->err) : session_position(c, &p);
    if (st != ST_OK)
        return st;
    if (c->argc == 1)
        reply_bulk(c->reply, slice_of(text, token_write(&p, text)));
    else if (refusal.code != ST_OK)
        reply_error(c->reply, refusal.text);
    else
        reply_ok(c->reply);
    return ST_OK;
}

/* clang-format off */
const struct command consistency_commands[] = {
    {
        .name = "larder.consistency", .fn = consistency_command, .arity = -1,
        .flags = CMD_NOSCRIPT | CMD_LOADING | CMD_STALE | CMD_FAST, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Chooses what this connection's reads may be served from: STRONG, SESSION, BOUNDED ms or EVENTUAL; without an argument, tells it.",
        .since = "-", .group = "consistency", .complexity = "O(1)",
    },
    {
        .name = "larder.read", .fn = read_command, .arity = -3, .reads_as = read_inner,
        .flags = CMD_READONLY | CMD_NOSCRIPT | CMD_SKIP_MONITOR | CMD_SKIP_SLOWLOG | CMD_MOVABLEKEYS,
        .categories = CAT_READ | CAT_SLOW,
        .keys = {{.flags = KEY_RO | KEY_ACCESS | KEY_INCOMPLETE, .unknown = true, .find = find_key, .step = 1,
                  .notes = "The keys are those of the command behind the mode."}},
        .summary = "Runs one command that only reads, in a mode of its own: LARDER.READ BOUNDED 500 GET key.",
        .since = "-", .group = "consistency", .complexity = "That of the command.",
    },
    {
        .name = "larder.token", .fn = token_command, .arity = -1,
        .flags = CMD_NOSCRIPT | CMD_FAST | CMD_NO_MULTI | CMD_ALONE, .categories = CAT_FAST | CAT_CONNECTION,
        .summary = "Tells what this connection has written or seen, as a token; with a token, merges that in.",
        .since = "-", .group = "consistency", .complexity = "O(1); behind a write, a round trip to the database",
    },
    {
        .name = "readonly", .fn = readonly, .arity = 1, .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
        .categories = CAT_FAST | CAT_CONNECTION, .summary = "The same as LARDER.CONSISTENCY EVENTUAL.",
        .since = "3.0.0", .group = "cluster", .complexity = "O(1)",
    },
    {
        .name = "readwrite", .fn = readwrite, .arity = 1, .flags = CMD_LOADING | CMD_STALE | CMD_FAST,
        .categories = CAT_FAST | CAT_CONNECTION, .summary = "The same as LARDER.CONSISTENCY STRONG.",
        .since = "3.0.0", .group = "cluster", .complexity = "O(1)",
    },
    {.name = NULL},
};
/* clang-format on */
