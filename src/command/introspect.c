/* COMMAND: the command table, as clients read it to route, check and complete commands. */
#include "command/families.h"

#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "exec/args.h"

/* ---- words for bits ---- */

struct word {
    uint32_t bit;
    const char *text;
};

/* In the order that Redis prints them. */
static const struct word flag_words[] = {
    {CMD_WRITE, "write"},
    {CMD_READONLY, "readonly"},
    {CMD_DENYOOM, "denyoom"},
    {CMD_ADMIN, "admin"},
    {CMD_PUBSUB, "pubsub"},
    {CMD_NOSCRIPT, "noscript"},
    {CMD_BLOCKING, "blocking"},
    {CMD_LOADING, "loading"},
    {CMD_STALE, "stale"},
    {CMD_SKIP_MONITOR, "skip_monitor"},
    {CMD_SKIP_SLOWLOG, "skip_slowlog"},
    {CMD_ASKING, "asking"},
    {CMD_FAST, "fast"},
    {CMD_NO_AUTH, "no_auth"},
    {CMD_MAY_REPLICATE, "may_replicate"},
    {CMD_NO_MANDATORY_KEYS, "no_mandatory_keys"},
    {CMD_NO_ASYNC_LOADING, "no_async_loading"},
    {CMD_NO_MULTI, "no_multi"},
    {CMD_MOVABLEKEYS, "movablekeys"},
    {CMD_ALLOW_BUSY, "allow_busy"},
    {0, NULL},
};

static const struct word category_words[] = {
    {CAT_KEYSPACE, "@keyspace"},
    {CAT_READ, "@read"},
    {CAT_WRITE, "@write"},
    {CAT_SET, "@set"},
    {CAT_SORTEDSET, "@sortedset"},
    {CAT_LIST, "@list"},
    {CAT_HASH, "@hash"},
    {CAT_STRING, "@string"},
    {CAT_BITMAP, "@bitmap"},
    {CAT_HYPERLOGLOG, "@hyperloglog"},
    {CAT_GEO, "@geo"},
    {CAT_STREAM, "@stream"},
    {CAT_PUBSUB, "@pubsub"},
    {CAT_ADMIN, "@admin"},
    {CAT_FAST, "@fast"},
    {CAT_SLOW, "@slow"},
    {CAT_BLOCKING, "@blocking"},
    {CAT_DANGEROUS, "@dangerous"},
    {CAT_CONNECTION, "@connection"},
    {CAT_TRANSACTION, "@transaction"},
    {CAT_SCRIPTING, "@scripting"},
    {0, NULL},
};

static const struct word key_flag_words[] = {
    {KEY_RO, "RO"},
    {KEY_RW, "RW"},
    {KEY_OW, "OW"},
    {KEY_RM, "RM"},
    {KEY_ACCESS, "access"},
    {KEY_UPDATE, "update"},
    {KEY_INSERT, "insert"},
    {KEY_DELETE, "delete"},
    {KEY_NOT_KEY, "not_key"},
    {KEY_INCOMPLETE, "incomplete"},
    {KEY_VARIABLE, "variable_flags"},
    {0, NULL},
};

static void reply_words(struct reply *r, const struct word *words, uint32_t bits)
{
    size_t n = 0;
    for (const struct word *w = words; w->text; w++)
        n += (bits & w->bit) != 0;
    reply_set(r, n);
    for (const struct word *w = words; w->text; w++)
        if (bits & w->bit)
            reply_simple(r, w->text);
}

/* ---- COMMAND INFO ---- */

static size_t key_spec_count(const struct command *cmd)
{
    size_t n = 0;
    while (n < COMMAND_KEY_SPECS && cmd->keys[n].flags)
        n++;
    return n;
}

static bool is_range(const struct key_spec *k)
{
    return !k->keyword && !k->keynum && !k->unknown;
}

/* First key, last key and step as Redis told them before there were key specs: what the ranges at fixed
   places cover together. */
static void reply_key_range(struct reply *r, const struct command *cmd)
{
    int first = 0, last = 0, step = 0;
    for (size_t i = 0; i < key_spec_count(cmd); i++) {
        const struct key_spec *k = &cmd->keys[i];
        if (!is_range(k))
            continue;
        int end = k->last >= 0 ? k->index + k->last : k->last;
        if (!step || k->index < first)
            first = k->index;
        if (!step || (unsigned)end > (unsigned)last) /* a negative one, counted from the end, is beyond all */
            last = end;
        step = k->step;
    }
    reply_integer(r, first);
    reply_integer(r, last);
    reply_integer(r, step);
}

static void reply_pair(struct reply *r, const char *name, int64_t value)
{
    reply_bulk_str(r, name);
    reply_integer(r, value);
}

/* What follows "begin_search" and "find_keys": a kind, and a map of so many entries that describe it. */
static void reply_kind(struct reply *r, const char *what, const char *kind, size_t n)
{
    reply_bulk_str(r, what);
    reply_map(r, 2);
    reply_bulk_str(r, "type");
    reply_bulk_str(r, kind);
    reply_bulk_str(r, "spec");
    reply_map(r, n);
}

static void reply_begin_search(struct reply *r, const struct key_spec *k)
{
    if (k->unknown) {
        reply_kind(r, "begin_search", "unknown", 0);
    } else if (k->keyword) {
        reply_kind(r, "begin_search", "keyword", 2);
        reply_bulk_str(r, "keyword");
        reply_bulk_str(r, k->keyword);
        reply_pair(r, "startfrom", k->index);
    } else {
        reply_kind(r, "begin_search", "index", 1);
        reply_pair(r, "index", k->index);
    }
}

static void reply_find_keys(struct reply *r, const struct key_spec *k)
{
    if (k->unknown) {
        reply_kind(r, "find_keys", "unknown", 0);
    } else if (k->keynum) {
        reply_kind(r, "find_keys", "keynum", 3);
        reply_pair(r, "keynumidx", k->first);
        reply_pair(r, "firstkey", k->keynum_first);
        reply_pair(r, "keystep", k->step);
    } else {
        reply_kind(r, "find_keys", "range", 3);
        reply_pair(r, "lastkey", k->last);
        reply_pair(r, "keystep", k->step);
        reply_pair(r, "limit", k->limit);
    }
}

static void reply_key_spec(struct reply *r, const struct key_spec *k)
{
    reply_map(r, k->notes ? 4 : 3);
    if (k->notes) {
        reply_bulk_str(r, "notes");
        reply_bulk_str(r, k->notes);
    }
    reply_bulk_str(r, "flags");
    reply_words(r, key_flag_words, k->flags);

    reply_begin_search(r, k);
    reply_find_keys(r, k);
}

static size_t tip_count(const struct command *cmd)
{
    size_t n = 0;
    while (n < sizeof cmd->tips / sizeof *cmd->tips && cmd->tips[n])
        n++;
    return n;
}

static size_t sub_count(const struct command *cmd)
{
    size_t n = 0;
    while (cmd->subs && cmd->subs[n].name)
        n++;
    return n;
}

static void reply_full_name(struct reply *r, const struct command *cmd)
{
    char name[COMMAND_NAME_CHARS];
    command_full_name(cmd, name);
    reply_bulk_str(r, name);
}

static void reply_info(struct reply *r, const struct command *cmd)
{
    uint32_t flags = cmd->flags;
    size_t nspecs = key_spec_count(cmd), ntips = tip_count(cmd), nsubs = sub_count(cmd);
    for (size_t i = 0; i < nspecs; i++)
        if (!is_range(&cmd->keys[i]))
            flags |= CMD_MOVABLEKEYS;
    reply_array(r, 10);
    reply_full_name(r, cmd);
    reply_integer(r, cmd->arity);
    reply_words(r, flag_words, flags);
    reply_key_range(r, cmd);
    reply_words(r, category_words, cmd->categories);
    reply_set(r, ntips);
    for (size_t i = 0; i < ntips; i++)
        reply_bulk_str(r, cmd->tips[i]);
    reply_set(r, nspecs);
    for (size_t i = 0; i < nspecs; i++)
        reply_key_spec(r, &cmd->keys[i]);
    if (nsubs) /* an array, though none of them is an empty set: Redis does it so */
        reply_array(r, nsubs);
    else
        reply_set(r, 0);
    for (size_t i = 0; i < nsubs; i++)
        reply_info(r, &cmd->subs[i]);
}

static int top_count(void)
{
    int n = 0;
    while (command_at(n))
        n++;
    return n;
}

static enum status command_all(struct call *c)
{
    reply_array(c->reply, (size_t)top_count());
    for (int i = 0; command_at(i); i++)
        reply_info(c->reply, command_at(i));
    return ST_OK;
}

static enum status command_info(struct call *c)
{
    if (c->argc == 2)
        return command_all(c);
    reply_array(c->reply, (size_t)c->argc - 2);
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        if (cmd)
            reply_info(c->reply, cmd);
        else
            reply_null(c->reply);
    }
    return ST_OK;
}

/* ---- COMMAND COUNT, LIST ---- */

static enum status command_count_top(struct call *c)
{
    reply_integer(c->reply, top_count());
    return ST_OK;
}

enum list_filter { LIST_ALL, LIST_MODULE, LIST_CATEGORY, LIST_PATTERN };

static bool list_matches(const struct command *cmd, enum list_filter filter, struct slice arg)
{
    char name[COMMAND_NAME_CHARS];
    switch (filter) {
    case LIST_ALL:
        return true;
    case LIST_MODULE: /* there are no modules */
        return false;
    case LIST_CATEGORY:
        for (const struct word *w = category_words; w->text; w++)
            if (slice_is(arg, w->text + 1))
                return (cmd->categories & w->bit) != 0;
        return false;
    case LIST_PATTERN:
        command_full_name(cmd, name);
        return glob_match(arg, slice_str(name), true);
    }
    return false;
}

static size_t list_one(struct call *c, const struct command *cmd, enum list_filter filter, struct slice arg)
{
    if (!list_matches(cmd, filter, arg))
        return 0;
    reply_full_name(c->reply, cmd);
    return 1;
}

static enum status command_list(struct call *c)
{
    enum list_filter filter = LIST_ALL;
    if (c->argc == 5 && slice_is(c->argv[2], "filterby")) {
        if (slice_is(c->argv[3], "module"))
            filter = LIST_MODULE;
        else if (slice_is(c->argv[3], "aclcat"))
            filter = LIST_CATEGORY;
        else if (slice_is(c->argv[3], "pattern"))
            filter = LIST_PATTERN;
    }
    if (c->argc != 2 && filter == LIST_ALL) {
        reply_error(c->reply, ERR_SYNTAX);
        return ST_OK;
    }
    struct slice arg = filter == LIST_ALL ? SLICE("") : c->argv[4];
    size_t mark = reply_begin_deferred(c->reply), n = 0;
    for (int i = 0; command_at(i); i++) {
        n += list_one(c, command_at(i), filter, arg);
        for (const struct command *sub = command_at(i)->subs; sub && sub->name; sub++)
            n += list_one(c, sub, filter, arg);
    }
    reply_end_deferred(c->reply, mark, REPLY_ARRAY, n);
    return ST_OK;
}

/* ---- COMMAND DOCS ---- */

static void reply_text(struct reply *r, const char *name, const char *text)
{
    reply_bulk_str(r, name);
    reply_bulk_str(r, text);
}

static void reply_docs(struct reply *r, const struct command *cmd)
{
    size_t nsubs = sub_count(cmd);
    reply_full_name(r, cmd);
    reply_map(r, nsubs ? 5 : 4);
    reply_text(r, "summary", cmd->summary);
    reply_text(r, "since", cmd->since);
    reply_text(r, "group", cmd->group);
    reply_text(r, "complexity", cmd->complexity);
    if (nsubs) {
        reply_bulk_str(r, "subcommands");
        reply_map(r, nsubs);
        for (size_t i = 0; i < nsubs; i++)
            reply_docs(r, &cmd->subs[i]);
    }
}

static enum status command_docs(struct call *c)
{
    if (c->argc == 2) {
        reply_map(c->reply, (size_t)top_count());
        for (int i = 0; command_at(i); i++)
            reply_docs(c->reply, command_at(i));
        return ST_OK;
    }
    size_t mark = reply_begin_deferred(c->reply), n = 0;
    for (int i = 2; i < c->argc; i++) {
        const struct command *cmd = command_find_full(c->argv[i]);
        if (cmd) {
            reply_docs(c->reply, cmd);
            n++;
        }
    }
    reply_end_deferred(c->reply, mark, REPLY_MAP, n);
    return ST_OK;
}

/* ---- COMMAND GETKEYS, GETKEYSANDFLAGS ---- */

static enum status getkeys(struct call *c, bool with_flags)
{
    const struct slice *argv = c->argv + 2;
    int argc = c->argc - 2;
    const struct command *cmd = command_find(argv[0]);
    if (cmd && cmd->subs)
        cmd = command_find_sub(cmd, argv[1]);
    if (!cmd) {
        reply_error(c->reply, "ERR Invalid command specified");
        return ST_OK;
    }
    if (!cmd->keys[0].flags) {
        reply_error(c->reply, "ERR The command has no key arguments");
        return ST_OK;
    }
    if (cmd->arity >= 0 ? argc != cmd->arity : argc < -cmd->arity) {
        reply_error(c->reply, "ERR Invalid number of arguments specified for command");
        return ST_OK;
    }
    int *index = arena_alloc(c->arena, (size_t)argc * sizeof *index);
    uint32_t *flags = arena_alloc(c->arena, (size_t)argc * sizeof *flags);
    int n = command_keys(cmd, argv, argc, index, flags, argc);
    if (n <= 0 && (cmd->flags & CMD_NO_MANDATORY_KEYS)) {
        n = 0;
    } else if (n <= 0) {
        reply_error(c->reply, "ERR Invalid arguments specified for command");
        return ST_OK;
    }
    reply_array(c->reply, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (with_flags)
            reply_array(c->reply, 2);
        reply_bulk(c->reply, argv[index[i]]);
        if (with_flags)
            reply_words(c->reply, key_flag_words, flags[i]);
    }
    return ST_OK;
}

static enum status command_getkeys(struct call *c)
{
    return getkeys(c, false);
}

static enum status command_getkeysandflags(struct call *c)
{
    return getkeys(c, true);
}

static enum status command_help(struct call *c)
{
    static const char *const lines[] = {
        "(no subcommand)",
        "    Return details about all commands.",
        "COUNT",
        "    Return the total number of commands in this server.",
        "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
        "    Return a list of all commands in this server.",
        "INFO [<command-name> ...]",
        "    Return details about the given commands, or about all.",
        "DOCS [<command-name> ...]",
        "    Return documentation of the given commands, or of all.",
        "GETKEYS <full-command>",
        "    Return the keys from a full command.",
        "GETKEYSANDFLAGS <full-command>",
        "    Return the keys and the access flags from a full command.",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

#define COMMAND_SUB(NAME, FN, ARITY, SINCE, SUMMARY, COMPLEXITY, ...)                                        \
    {                                                                                                        \
        .name = NAME, .fn = FN, .arity = ARITY, .flags = CMD_LOADING | CMD_STALE,                            \
        .categories = CAT_SLOW | CAT_CONNECTION, .summary = SUMMARY, .since = SINCE, .group = "server",      \
        .complexity = COMPLEXITY, .tips = {                                                                  \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }

/* clang-format off */
static const struct command subcommands[] = {
    COMMAND_SUB("count", command_count_top, 2, "2.8.13", "Counts the commands.", "O(1)", NULL),
    COMMAND_SUB("docs", command_docs, -2, "7.0.0", "Documents commands.", "O(N) for N commands",
                "nondeterministic_output_order"),
    COMMAND_SUB("getkeys", command_getkeys, -4, "2.8.13", "Finds the keys among a command's arguments.",
                "O(N) for N arguments", NULL),
    COMMAND_SUB("getkeysandflags", command_getkeysandflags, -4, "7.0.0",
                "Finds the keys among a command's arguments and tells what happens to them.",
                "O(N) for N arguments", NULL),
    COMMAND_SUB("help", command_help, 2, "5.0.0", "Lists the subcommands.", "O(1)", NULL),
    COMMAND_SUB("info", command_info, -2, "2.8.13", "Describes commands.", "O(N) for N commands",
                "nondeterministic_output_order"),
    COMMAND_SUB("list", command_list, -2, "7.0.0", "Lists the commands' names.", "O(N) for N commands",
                "nondeterministic_output_order"),
    {.name = NULL},
};

const struct command introspect_commands[] = {
    {
        .name = "command", .fn = command_all, .arity = -1, .flags = CMD_LOADING | CMD_STALE,
        .categories = CAT_SLOW | CAT_CONNECTION, .summary = "Describes every command.", .since = "2.8.13",
        .group = "server", .complexity = "O(N) for N commands", .tips = {"nondeterministic_output_order"},
        .subs = subcommands,
    },
    {.name = NULL},
};
/* clang-format on */
