/* FUNCTION and FCALL: libraries of functions, which belong to the database.

   Rows: one of the hidden database for all libraries, and an item for each (script/rows.h); FCALL those of
   the commands that its function runs, in one change set with them. A crash leaves all of a command or
   nothing. Two clients that load the same library: the second finds it there. A library is written last, when
   it has been compiled and its body has run, so that a command which is refused has changed nothing; RESTORE
   writes all of a dump or nothing. Libraries do not expire. A huge library: it is compiled in the
   interpreter's memory (script-memory), on every worker that calls it. */
#include "base/clock.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "exec/args.h"
#include "exec/command.h"
#include "exec/executor.h"
#include "script/dump.h"
#include "script/library.h"
#include "script/rows.h"
#include "script/run.h"
#include "script/running.h"

/* The part of an argument that an error shows: Redis takes it for a C string. */
#define SHOWN(s) (int)strnlen((s).p, (s).n), (s).p

static void reply_buf(struct reply *r, const struct buf *err)
{
    reply_errorf(r, "%.*s", (int)err->len, err->p);
}

/* The libraries as this transaction sees them. *ret is NULL when there is no memory for an interpreter: the
   error has been replied. */
static enum status open_libraries(struct call *c, struct libraries **ret)
{
    *ret = libraries_of(c->executor);
    if (!*ret) {
        reply_error(c->reply, "ERR the interpreter has no memory (script-memory)");
        return ST_OK;
    }
    return libraries_sync(*ret, c->view);
}

/* ---- LOAD ---- */

/* Compiles a library that may take the place of `old`. NULL: *err has the error reply. */
static const struct library *load_one(struct call *c, struct libraries *ls, struct slice text, bool replace,
                                      struct buf *err)
{
    struct library_head head;
    if (!library_parse(text, c->arena, &head, err))
        return NULL;
    struct library *old = libraries_named(ls, head.name);
    if (old && !replace) {
        buf_addf(err, "ERR Library '%.*s' already exists", (int)head.name.n, head.name.p);
        return NULL;
    }
    const struct library *lib = libraries_load(ls, text, &head, err);
    if (!lib)
        return NULL;
    if (old)
        old->leaving = true;
    const struct function *clash = libraries_clash(ls, lib);
    if (old)
        old->leaving = false;
    if (clash)
        buf_addf(err, "ERR Function %s already exists", clash->name);
    return clash ? NULL : lib;
}

static enum status load(struct call *c)
{
    bool replace = false;
    for (int i = 2; i < c->argc - 1; i++) {
        if (!slice_is(c->argv[i], "replace")) {
            reply_errorf(c->reply, "ERR Unknown option given: %.*s", SHOWN(c->argv[i]));
            return ST_OK;
        }
        replace = true;
    }
    struct libraries *ls;
    enum status st = open_libraries(c, &ls);
    if (st != ST_OK || !ls)
        return st;
    struct buf err = {0};
    libraries_forget_loaded(ls);
    const struct library *lib = load_one(c, ls, c->argv[c->argc - 1], replace, &err);
    if (lib) {
        st = rows_put_library(c->view, lib->name, lib->code);
        reply_bulk(c->reply, lib->name);
    } else {
        libraries_forget_loaded(ls);
        reply_buf(c->reply, &err);
    }
    buf_release(&err);
    return st;
}

/* ---- DELETE, FLUSH ---- */

static enum status delete_library(struct call *c)
{
    bool existed;
    enum status st = rows_delete_library(c->view, c->argv[2], &existed);
    if (st != ST_OK)
        return st;
    if (existed)
        reply_ok(c->reply);
    else
        reply_error(c->reply, "ERR Library not found");
    return ST_OK;
}

static enum status flush(struct call *c)
{
    if (c->argc > 3) {
        reply_unknown_sub(c);
        return ST_OK;
    }
    if (c->argc == 3 && !slice_is(c->argv[2], "sync") && !slice_is(c->argv[2], "async")) {
        reply_error(c->reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
        return ST_OK;
    }
    enum status st = rows_flush_libraries(c->view);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

/* ---- LIST ---- */

static void reply_flags(struct reply *r, uint32_t flags)
{
    reply_set(r, (size_t)__builtin_popcount(flags));
    for (; flags; flags &= flags - 1)
        reply_simple(r, script_flag_name(flags & -flags));
}

static void reply_function(struct reply *r, const struct function *f)
{
    reply_map(r, 3);
    reply_bulk_str(r, "name");
    reply_bulk_str(r, f->name);
    reply_bulk_str(r, "description");
    if (f->described)
        reply_bulk(r, f->description);
    else
        reply_null(r);
    reply_bulk_str(r, "flags");
    reply_flags(r, f->flags);
}

static void reply_library(struct reply *r, const struct library *lib, bool with_code)
{
    reply_map(r, with_code ? 4 : 3);
    reply_bulk_str(r, "library_name");
    reply_bulk(r, lib->name);
    reply_bulk_str(r, "engine");
    reply_bulk_str(r, "LUA");
    reply_bulk_str(r, "functions");
    reply_array(r, lib->nfunctions);
    for (size_t i = 0; i < lib->nfunctions; i++)
        reply_function(r, lib->functions[i]);
    if (with_code) {
        reply_bulk_str(r, "library_code");
        reply_bulk(r, lib->code);
    }
}

struct listing {
    const struct slice *pattern; /* NULL: all */
    bool with_code;
};

/* False: the error has been replied. */
static bool parse_listing(struct call *c, struct listing *ret)
{
    *ret = (struct listing){0};
    for (int i = 2; i < c->argc; i++) {
        if (!ret->with_code && slice_is(c->argv[i], "withcode")) {
            ret->with_code = true;
        } else if (!ret->pattern && slice_is(c->argv[i], "libraryname")) {
            if (i == c->argc - 1) {
                reply_error(c->reply, "ERR library name argument was not given");
                return false;
            }
            ret->pattern = &c->argv[++i];
        } else {
            reply_errorf(c->reply, "ERR Unknown argument %.*s", SHOWN(c->argv[i]));
            return false;
        }
    }
    return true;
}

static enum status list(struct call *c)
{
    struct listing how;
    struct libraries *ls;
    if (!parse_listing(c, &how))
        return ST_OK;
    enum status st = open_libraries(c, &ls);
    if (st != ST_OK || !ls)
        return st;
    size_t n = 0, mark = reply_begin_deferred(c->reply);
    for (size_t i = 0; i < ls->n; i++) {
        const struct library *lib = ls->all[i];
        if (!lib->current || (how.pattern && !glob_match(*how.pattern, lib->name, true)))
            continue;
        reply_library(c->reply, lib, how.with_code);
        n++;
    }
    reply_end_deferred(c->reply, mark, REPLY_ARRAY, n);
    return ST_OK;
}

/* ---- DUMP, RESTORE ---- */

static enum status dump(struct call *c)
{
    struct libraries *ls;
    struct buf out = {0};
    enum status st = open_libraries(c, &ls);
    if (st != ST_OK || !ls)
        return st;
    for (size_t i = 0; i < ls->n; i++)
        if (ls->all[i]->current)
            dump_add(&out, ls->all[i]->code);
    dump_end(&out);
    reply_bulk(c->reply, buf_slice(&out));
    buf_release(&out);
    return ST_OK;
}

enum policy { POLICY_APPEND, POLICY_FLUSH, POLICY_REPLACE };

static bool parse_policy(struct call *c, enum policy *ret)
{
    *ret = POLICY_APPEND;
    if (c->argc == 3)
        return true;
    if (c->argc > 4) {
        reply_unknown_sub(c);
        return false;
    }
    if (slice_is(c->argv[3], "flush"))
        *ret = POLICY_FLUSH;
    else if (slice_is(c->argv[3], "replace"))
        *ret = POLICY_REPLACE;
    else if (!slice_is(c->argv[3], "append")) {
        reply_error(c->reply,
                    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
        return false;
    }
    return true;
}

/* The libraries of a dump. */
struct restored {
    const struct library **libs;
    size_t n, cap;
};

/* One more of them, which must not clash with those before it. */
static bool restore_one(struct call *c, struct libraries *ls, struct slice code, struct restored *to,
                        struct buf *err)
{
    struct library_head head;
    if (!library_parse(code, c->arena, &head, err))
        return false;
    for (size_t i = 0; i < to->n; i++) {
        if (slice_eq(to->libs[i]->name, head.name)) {
            buf_addf(err, "ERR Library '%.*s' already exists", (int)head.name.n, head.name.p);
            return false;
        }
    }
    const struct library *lib = libraries_load(ls, code, &head, err);
    if (!lib)
        return false;
    for (size_t i = 0; i < to->n; i++) {
        const struct function *clash = library_clash(lib, to->libs[i]);
        if (clash) {
            buf_addf(err, "ERR Function %s already exists", clash->name);
            return false;
        }
    }
    VEC_PUSH(to->libs, to->n, to->cap) = lib;
    return true;
}

static bool restore_all(struct call *c, struct libraries *ls, struct restored *to, struct buf *err)
{
    struct dump_reader reader;
    struct slice code;
    const char *why;
    if (!dump_open(&reader, c->argv[2])) {
        buf_addf(err, "ERR DUMP payload version or checksum are wrong");
        return false;
    }
    while (dump_next(&reader, c->arena, &code, &why))
        if (!restore_one(c, ls, code, to, err))
            return false;
    if (why)
        buf_addf(err, "ERR %s", why);
    return !why;
}

/* Whether they may join those that are there. */
static bool may_join(struct libraries *ls, const struct restored *new, bool replace, struct buf *err)
{
    const struct function *clash = NULL;
    for (size_t i = 0; i < new->n && !err->len; i++) {
        struct library *old = libraries_named(ls, new->libs[i]->name);
        if (old && !replace)
            buf_addf(err, "ERR Library %.*s already exists", (int)old->name.n, old->name.p);
        else if (old)
            old->leaving = true;
    }
    for (size_t i = 0; i < new->n && !err->len && !clash; i++)
        clash = libraries_clash(ls, new->libs[i]);
    if (clash)
        buf_addf(err, "ERR Function %s already exists", clash->name);
    for (size_t i = 0; i < ls->n; i++)
        ls->all[i]->leaving = false;
    return !err->len;
}

static enum status write_restored(struct call *c, const struct restored *new, enum policy policy)
{
    enum status st = policy == POLICY_FLUSH ? rows_flush_libraries(c->view) : ST_OK;
    for (size_t i = 0; i < new->n &&st == ST_OK; i++)
        st = rows_put_library(c->view, new->libs[i]->name, new->libs[i]->code);
    if (st == ST_OK)
        reply_ok(c->reply);
    return st;
}

static enum status restore(struct call *c)
{
    enum policy policy;
    struct libraries *ls;
    if (!parse_policy(c, &policy))
        return ST_OK;
    enum status st = open_libraries(c, &ls);
    if (st != ST_OK || !ls)
        return st;
    struct buf err = {0};
    struct restored new = {0};
    libraries_forget_loaded(ls);
    if (restore_all(c, ls, &new, &err) &&
        (policy == POLICY_FLUSH || may_join(ls, &new, policy == POLICY_REPLACE, &err))) {
        st = write_restored(c, &new, policy);
    } else {
        libraries_forget_loaded(ls);
        reply_buf(c->reply, &err);
    }
    mem_free(new.libs);
    buf_release(&err);
    return st;
}

/* ---- FCALL ---- */

/* How many of the arguments from argv[3] on are keys; false: the error has been replied. */
static bool count_keys(struct call *c, int *ret)
{
    int64_t n;
    if (!num_parse_i64(c->argv[2], &n))
        reply_error(c->reply, "ERR Bad number of keys provided");
    else if (n > c->argc - 3)
        reply_error(c->reply, "ERR Number of keys can't be greater than number of args");
    else if (n < 0)
        reply_error(c->reply, "ERR Number of keys can't be negative");
    else
        return *ret = (int)n, true;
    return false;
}

/* A function that is nowhere may be in a library that could not be compiled. */
static void reply_not_found(struct call *c, const struct libraries *ls)
{
    for (size_t i = 0; i < ls->n; i++) {
        const struct library *lib = ls->all[i];
        if (lib->broken) {
            reply_errorf(c->reply, "ERR Function not found, and library '%.*s' could not be loaded: %s",
                         (int)lib->name.n, lib->name.p, lib->broken + 4); /* without its ERR */
            return;
        }
    }
    reply_error(c->reply, "ERR Function not found");
}

static enum status call_function(struct call *c, bool only_reads)
{
    struct libraries *ls;
    int nkeys = 0;
    command_tell_monitors(c);
    enum status st = open_libraries(c, &ls);
    if (st != ST_OK || !ls)
        return st;
    const struct function *f = libraries_find(ls, c->argv[1]);
    if (!f) {
        reply_not_found(c, ls);
        return ST_OK;
    }
    if (!count_keys(c, &nkeys))
        return ST_OK;
    struct script_run run = {
        .in = ls->in,
        .outer = c,
        .name = f->name,
        .flags = f->flags,
        .only_reads = only_reads,
    };
    return script_run(&run, f->ref, c->argv + 3, nkeys, c->argv + 3 + nkeys, c->argc - 3 - nkeys);
}

static enum status fcall(struct call *c)
{
    return call_function(c, false);
}

static enum status fcall_ro(struct call *c)
{
    return call_function(c, true);
}

/* ---- STATS, KILL, HELP ---- */

/* The busy script that has run for the longest, if it is a function. */
static void reply_running(struct call *c, const struct running_script *s)
{
    if (!s) {
        reply_null(c->reply);
        return;
    }
    reply_map(c->reply, 3);
    reply_bulk_str(c->reply, "name");
    reply_bulk_str(c->reply, s->name);
    reply_bulk_str(c->reply, "command");
    reply_array(c->reply, (size_t)s->argc);
    for (int i = 0; i < s->argc; i++)
        reply_bulk(c->reply, s->argv[i]);
    reply_bulk_str(c->reply, "duration_ms");
    reply_integer(c->reply, (clock_mono_us() - s->start_us) / 1000);
}

/* While a script is busy on this worker the rows are not to be had: what was synced last is counted. */
static enum status stats(struct call *c)
{
    struct running_script running;
    struct libraries *ls = NULL;
    bool runs = running_first(c->executor->server, c->arena, &running);
    if (runs && running.kind == INTERP_EVAL) {
        reply_error(c->reply, running_refusal(c->executor->server));
        return ST_OK;
    }
    if (c->view) {
        enum status st = open_libraries(c, &ls);
        if (st != ST_OK || !ls)
            return st;
    } else {
        ls = libraries_of(c->executor);
    }
    size_t n = 0;
    for (size_t i = 0; ls && i < ls->n; i++)
        n += ls->all[i]->current;
    reply_map(c->reply, 2);
    reply_bulk_str(c->reply, "running_script");
    reply_running(c, runs ? &running : NULL);
    reply_bulk_str(c->reply, "engines");
    reply_map(c->reply, 1);
    reply_bulk_str(c->reply, "LUA");
    reply_map(c->reply, 2);
    reply_bulk_str(c->reply, "libraries_count");
    reply_integer(c->reply, (int64_t)n);
    reply_bulk_str(c->reply, "functions_count");
    reply_integer(c->reply, ls ? (int64_t)ls->functions.count : 0);
    return ST_OK;
}

static enum status kill_function(struct call *c)
{
    running_kill(c->executor->server, INTERP_FUNCTIONS, c->reply);
    return ST_OK;
}

static enum status help(struct call *c)
{
    static const char *const lines[] = {
        "LOAD [REPLACE] <FUNCTION CODE>",
        "    Create a new library with the given library name and code.",
        "DELETE <LIBRARY NAME>",
        "    Delete the given library.",
        "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
        "    Return general information on all the libraries:",
        "    * Library name",
        "    * The engine used to run the Library",
        "    * Library description",
        "    * Functions list",
        "    * Library code (if WITHCODE is given)",
        "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
        "STATS",
        "    Return information about the current function running:",
        "    * Function name",
        "    * Command used to run the function",
        "    * Duration in MS that the function is running",
        "    If no function is running, return nil",
        "    In addition, returns a list of available engines.",
        "KILL",
        "    Kill the current running function.",
        "FLUSH [ASYNC|SYNC]",
        "    Delete all the libraries.",
        "    When called without the optional mode argument, the behavior is determined by the",
        "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
        "    * ASYNC: Asynchronously flush the libraries.",
        "    * SYNC: Synchronously flush the libraries.",
        "DUMP",
        "    Return a serialized payload representing the current libraries, can be restored using FUNCTION "
        "RESTORE command",
        "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
        "    Restore the libraries represented by the given payload, it is possible to give a restore policy "
        "to",
        "    control how to handle existing libraries (default APPEND):",
        "    * FLUSH: delete all existing libraries.",
        "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
        "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the "
        "old",
        "      libraries with the new libraries (notice that even on this option there is a chance of "
        "failure",
        "      in case of functions name collision with another library).",
        NULL,
    };
    reply_help(c, lines);
    return ST_OK;
}

/* clang-format off */
#define SUB(n, f, a, fl, text, ...) \
    {.name = n, .fn = f, .arity = a, .flags = fl, \
     .categories = CAT_SLOW | CAT_SCRIPTING | ((fl) & CMD_WRITE ? (uint32_t)CAT_WRITE : 0), \
     .summary = text, .since = "7.0.0", .group = "scripting", __VA_ARGS__}
#define CHANGES (CMD_WRITE | CMD_NOSCRIPT | CMD_LIBRARIES)
#define LOOKS   (CMD_NOSCRIPT | CMD_LIBRARIES)
#define ALL_SHARDS {"request_policy:all_shards", "response_policy:all_succeeded"}
static const struct command function_subs[] = {
    SUB("dump", dump, 2, LOOKS, "Gives all libraries as one string, for FUNCTION RESTORE.", .complexity = "O(N) for N bytes of code"),
    SUB("delete", delete_library, 3, CHANGES, "Deletes a library.", .complexity = "O(1)", .tips = ALL_SHARDS),
    SUB("stats", stats, 2, LOOKS | CMD_ALLOW_BUSY, "Tells which function runs, and how many there are.", .complexity = "O(1)",
        .tips = {"nondeterministic_output", "request_policy:all_shards", "response_policy:special"}),
    SUB("list", list, -2, LOOKS, "Lists libraries and their functions.", .complexity = "O(N) for N functions",
        .tips = {"nondeterministic_output_order"}),
    SUB("load", load, -3, CHANGES | CMD_DENYOOM, "Adds a library, or replaces it.",
        .complexity = "O(N) for N bytes of code, and what its body does", .tips = ALL_SHARDS),
    SUB("kill", kill_function, 2, CMD_NOSCRIPT | CMD_ALLOW_BUSY, "Ends functions that are busy and have not written.",
        .complexity = "O(1)", .tips = {"request_policy:all_shards", "response_policy:one_succeeded"}),
    SUB("flush", flush, -2, CHANGES, "Deletes all libraries.", .complexity = "O(1)", .tips = ALL_SHARDS),
    SUB("restore", restore, -3, CHANGES | CMD_DENYOOM, "Adds the libraries of a dump, all or none.",
        .complexity = "O(N) for N bytes of code, and what the bodies do", .tips = ALL_SHARDS),
    SUB("help", help, 2, CMD_LOADING | CMD_STALE, "Lists the subcommands.", .complexity = "O(1)"),
    {.name = NULL},
};

#define FCALL_FLAGS (CMD_NOSCRIPT | CMD_STALE | CMD_SKIP_MONITOR | CMD_NO_MANDATORY_KEYS | CMD_MOVABLEKEYS | CMD_LIBRARIES)
#define FCALL_KEYS(f, text) {{.flags = f, .index = 2, .keynum = true, .first = 0, .keynum_first = 1, .step = 1, .notes = text}}
const struct command function_commands[] = {
    {
        .name = "fcall", .fn = fcall, .arity = -3, .flags = FCALL_FLAGS | CMD_RUNS_SCRIPT,
        .categories = CAT_SLOW | CAT_SCRIPTING,
        .keys = FCALL_KEYS(KEY_RW | KEY_ACCESS | KEY_UPDATE,
                           "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE"),
        .summary = "Runs a function as one transaction.", .since = "7.0.0", .group = "scripting",
        .complexity = "That of the function.",
    },
    {
        .name = "fcall_ro", .fn = fcall_ro, .arity = -3, .flags = FCALL_FLAGS | CMD_READONLY,
        .categories = CAT_SLOW | CAT_SCRIPTING,
        .keys = FCALL_KEYS(KEY_RO | KEY_ACCESS,
                           "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS"),
        .summary = "Runs a function that only reads.", .since = "7.0.0", .group = "scripting",
        .complexity = "That of the function.",
    },
    {
        .name = "function", .arity = -2, .categories = CAT_SLOW, .subs = function_subs,
        .summary = "What concerns libraries of functions.", .since = "7.0.0", .group = "scripting",
        .complexity = "Depends on the subcommand.",
    },
    {.name = NULL},
};
/* clang-format on */
