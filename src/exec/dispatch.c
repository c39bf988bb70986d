/* One command from its arguments to its reply, and the books that are kept about it. This is the hot path: a
   command that is allowed and succeeds allocates nothing here, and its time is taken with one reading of the
   clock, because a batch's commands run back to back: one's end is the next one's start. */
#include "exec/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "exec/auth.h"
#include "exec/executor.h"
#include "exec/session.h"
#include "exec/txn.h"
#include "store/replicated.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define SHOWN_BYTES 128 /* of a client's words in an error */

/* ---- refusals ---- */

/* How much of s an error shows: up to max bytes, and up to a NUL. */
static int shown(struct slice s, size_t max)
{
    return (int)strnlen(s.p, s.n < max ? s.n : max);
}

static void reply_unknown_command(struct reply *r, const struct slice *argv, int argc)
{
    char args[SHOWN_BYTES * 2];
    size_t n = 0;
    args[0] = '\0';
    for (int i = 1; i < argc && n < SHOWN_BYTES; i++)
        n += (size_t)snprintf(args + n, sizeof args - n, "'%.*s' ", shown(argv[i], SHOWN_BYTES - n),
                              argv[i].p);
    reply_errorf(r, "ERR unknown command '%.*s', with args beginning with: %s", shown(argv[0], SHOWN_BYTES),
                 argv[0].p, args);
}

static void reply_unknown_subcommand(struct reply *r, const struct command *parent, struct slice name)
{
    char upper[COMMAND_NAME_CHARS];
    size_t n = 0;
    for (; parent->name[n] && n + 1 < sizeof upper; n++)
        upper[n] = (char)toupper((unsigned char)parent->name[n]);
    upper[n] = '\0';
    reply_errorf(r, "ERR unknown subcommand '%.*s'. Try %s HELP.", shown(name, SHOWN_BYTES), name.p, upper);
}

bool command_arity_fits(const struct command *cmd, int argc)
{
    return cmd->arity >= 0 ? argc == cmd->arity : argc >= -cmd->arity;
}

/* Writing may be impossible while reading goes on; when not even a transaction can begin, both are. */
static bool no_database(const struct executor *executor, const struct command *cmd,
                        const struct error *write_err)
{
    uint32_t reads = CMD_READONLY | CMD_RUNS_SCRIPT | CMD_SCRIPTS | CMD_LIBRARIES;
    uint32_t needs = executor->unreadable ? CMD_WRITE | reads : CMD_WRITE;
    return write_err && write_err->code != ST_OK &&
           ((cmd->flags & needs) || (executor->unreadable && cmd->may_write));
}

/* A refused EXEC ends its transaction, and says so in its own words. */
static void refuse_with(struct session *session, const struct command *cmd, struct reply *reply,
                        const char *why)
{
    if (!txn_is_exec(cmd)) {
        reply_error(reply, why);
        return;
    }
    txn_end(session);
    reply_errorf(reply, "EXECABORT Transaction discarded because of: %s",
                 strncmp(why, "ERR ", 4) ? why : why + 4);
}

/* Says why a command may not run, in Redis' order of checks, or returns false when it may. */
static bool refuse(struct executor *executor, struct session *session, const struct command *cmd, int argc,
                   struct reply *reply, const struct error *write_err)
{
    const char *forbidden = auth_refusal(session, cmd);
    if (!command_arity_fits(cmd, argc)) {
        char name[COMMAND_NAME_CHARS], why[COMMAND_NAME_CHARS + 64];
        command_full_name(cmd, name);
        snprintf(why, sizeof why, "ERR wrong number of arguments for '%s' command", name);
        refuse_with(session, cmd, reply, why);
    } else if (forbidden) {
        refuse_with(session, cmd, reply, forbidden);
    } else if (session->state.monitor && (cmd->flags & (CMD_WRITE | CMD_READONLY | CMD_MAY_REPLICATE))) {
        reply_error(reply, "ERR Replica can't interact with the keyspace");
    } else if (no_database(executor, cmd, write_err)) {
        reply_status(reply, write_err->code, write_err);
    } else if ((cmd->flags & CMD_NO_MULTI) && txn_open(session)) {
        reply_error(reply, "ERR Command not allowed inside a transaction");
    } else {
        return false;
    }
    return true;
}

/* ---- books ---- */

/* Slow commands go to the slow log and the latency monitor; MONITOR sees every command that is not
   administrative. Off the hot path: most commands concern none of them. */
static void note_call(const struct call *call, int64_t us)
{
    const struct config *config = call->executor->config;
    uint32_t flags = call->cmd->flags, nmonitors = call->executor->server->nmonitors;
    int64_t slow = config->slowlog_log_slower_than;
    uint64_t spike = config->latency_monitor_threshold_ms;
    struct books_note note = {
        .us = us,
        .slow = slow >= 0 && us >= slow && !(flags & CMD_SKIP_SLOWLOG),
        .spike = spike && (uint64_t)us >= spike * 1000,
        .monitored = nmonitors && !(flags & (CMD_SKIP_MONITOR | CMD_ADMIN)),
    };
    if (note.slow || note.spike || note.monitored)
        books_note(&call->executor->books, call, &note);
}

void command_tell_monitors(const struct call *c)
{
    if (atomic_load_explicit(&c->executor->server->nmonitors, memory_order_relaxed))
        books_note(&c->executor->books, c, &(struct books_note){.monitored = true});
}

/* said: it has told its client so. */
static void note_failed(const struct call *call, bool said)
{
    books_count(&call->executor->books, BOOKS_FAILED, (uint32_t)command_index(call->cmd));
    if (said && !call->reply->told)
        executor_note_error(call->executor, call->reply->code);
}

/* CLIENT REPLY: what was said since mark does not leave while replies are off or skipped. */
static void silence(struct session *session, struct reply *reply, size_t mark)
{
    reply->ops->rewind(reply, mark);
    if (session->state.reply_mode == SESSION_REPLY_SKIP_NEXT)
        session->state.reply_mode = SESSION_REPLY_SKIP;
    else if (session->state.reply_mode == SESSION_REPLY_SKIP)
        session->state.reply_mode = SESSION_REPLY_ON;
}

/* ---- running ---- */

/* Statistics, slow commands, monitors: of a call that began at `start`, with so many errors said before.
   ends_outer: it has failed, which the command that it is a part of will say. */
static inline void keep_books(const struct call *call, int64_t start, uint64_t errors_were, bool ends_outer)
{
    struct executor *executor = call->executor;
    const struct command *cmd = call->cmd;
    int64_t end = clock_mono_us();
    int64_t us = end - start + call->elsewhere_us;
    executor->clock_us = end;
    if (UNLIKELY(call->moved)) /* they are kept when it is run again */
        return;
    books_add_call(&executor->books, command_index(cmd), us);
    if (UNLIKELY(call->reply->errors != errors_were || ends_outer))
        note_failed(call, call->reply->errors != errors_were);
    if (UNLIKELY((uint64_t)us >= (uint64_t)executor->config->slowlog_log_slower_than ||
                 executor->config->latency_monitor_threshold_ms ||
                 atomic_load_explicit(&executor->server->nmonitors, memory_order_relaxed)))
        note_call(call, us);
}

static void reply_failure(const struct call *call, enum status st);

/* Of a call the caller says what is to be done; what it is done with is the engine that the running
   transaction uses. */
static void bind(struct call *call)
{
    struct executor *executor = call->executor;
    call->view = executor->view;
    call->arena = &executor->call_arena;
    call->err = engine_error(executor->engine);
}

static void run(struct call *call, size_t mark)
{
    struct executor *executor = call->executor;
    struct reply *reply = call->reply;
    const struct command *cmd = call->cmd;
    bind(call);
    const char *arena_was = executor->call_arena.next;
    uint64_t errors_were = reply->errors;
    int64_t start = executor->clock_us;

    engine_enter(executor->engine);
    if (cmd->flags & CMD_SESSION)
        engine_ignore_batch(executor->engine);
    view_count_lookups(call->view, cmd->flags & CMD_READONLY);
    enum status st = cmd->fn(call);
    struct engine_trace trace = engine_leave(executor->engine, st == ST_OK && !call->undo);
    if (UNLIKELY(st != ST_OK)) {
        reply->ops->rewind(reply, mark);
        reply_failure(call, st);
        executor_note_failure(executor, st);
    }
    if (executor->call_arena.next != arena_was)
        arena_reset(&executor->call_arena);
    call->session->state.unplaced |= trace.wrote;

    keep_books(call, start, errors_were, false);
    if (trace.wait > call->result->ticket)
        call->result->ticket = trace.wait;
}

static void refuse_unknown(struct executor *executor, struct session *session, const struct command *known,
                           const struct slice *argv, int argc, struct reply *reply)
{
    if (known)
        reply_unknown_subcommand(reply, known, argv[1]);
    else
        reply_unknown_command(reply, argv, argc);
    executor_note_error(executor, reply->code);
    txn_spoil(session);
}

static void note_refused(struct executor *executor, struct session *session, const struct command *cmd,
                         const struct reply *reply)
{
    books_count(&executor->books, BOOKS_REJECTED, (uint32_t)command_index(cmd));
    executor_note_error(executor, reply->code);
    txn_spoil(session);
}

struct command_result command_run(struct executor *executor, struct session *session,
                                  const struct command *known, const struct slice *argv, int argc,
                                  struct reply *reply, const struct error *write_err)
{
    const struct command *cmd = known;
    size_t mark = reply->ops->mark(reply);
    struct command_result result = {0};

    if (cmd && UNLIKELY(cmd->subs != NULL) && argc > 1)
        cmd = command_find_sub(known, argv[1]);
    session->state.last = cmd;
    if (UNLIKELY(!cmd)) {
        refuse_unknown(executor, session, known, argv, argc, reply);
    } else if (UNLIKELY(!command_arity_fits(cmd, argc) || auth_is_in_doubt(session, cmd) ||
                        session->state.monitor || no_database(executor, cmd, write_err) ||
                        session->state.txn.txn) &&
               refuse(executor, session, cmd, argc, reply, write_err)) {
        note_refused(executor, session, cmd, reply);
    } else if (UNLIKELY(session->state.txn.txn != NULL) && txn_queue(session, cmd, argv, argc)) {
        reply_simple(reply, "QUEUED");
    } else {
        struct call call = {.executor = executor,
                            .session = session,
                            .cmd = cmd,
                            .argv = argv,
                            .argc = argc,
                            .reply = reply,
                            .result = &result,
                            .write_err = write_err};
        run(&call, mark);
        if (UNLIKELY(call.moved))
            return result;
    }
    if (UNLIKELY(session->state.reply_mode != SESSION_REPLY_ON))
        silence(session, reply, mark);
    return result;
}

/* ---- while a script is busy ---- */

/* The view, the engine and the call's arena are the script's. */
static void run_without_rows(const struct call *of, size_t mark)
{
    struct executor *executor = of->executor;
    struct arena arena = {0};
    struct error err;
    struct call call = *of;
    uint64_t errors_were = call.reply->errors;
    int64_t start = clock_mono_us(), clock_was = executor->clock_us;
    call.arena = &arena;
    call.err = &err;
    enum status st = call.cmd->fn(&call);
    if (st != ST_OK) {
        call.reply->ops->rewind(call.reply, mark);
        reply_failure(&call, st);
    }
    arena_release(&arena);
    keep_books(&call, start, errors_were, false);
    executor->clock_us = clock_was;
}

/* WATCH asks the database, which the script has. */
static bool may_run_now(const struct command *cmd)
{
    return (cmd->flags & CMD_ALLOW_BUSY) && !txn_begins_watch(cmd);
}

struct command_result command_run_busy(struct executor *executor, struct session *session,
                                       const struct command *known, const struct slice *argv, int argc,
                                       struct reply *reply, const char *busy)
{
    const struct command *cmd = known && known->subs && argc > 1 ? command_find_sub(known, argv[1]) : known;
    size_t mark = reply->ops->mark(reply);
    struct command_result result = {0};
    struct call call = {.executor = executor,
                        .session = session,
                        .cmd = cmd,
                        .argv = argv,
                        .argc = argc,
                        .reply = reply,
                        .result = &result};
    session->state.last = cmd;
    if (!cmd) {
        refuse_unknown(executor, session, known, argv, argc, reply);
    } else if (refuse(executor, session, cmd, argc, reply, NULL)) {
        note_refused(executor, session, cmd, reply);
    } else if (!may_run_now(cmd)) {
        refuse_with(session, cmd, reply, busy);
        note_refused(executor, session, cmd, reply);
    } else if (txn_open(session) && txn_queue(session, cmd, argv, argc)) {
        reply_simple(reply, "QUEUED");
    } else {
        run_without_rows(&call, mark);
    }
    if (session->state.reply_mode != SESSION_REPLY_ON)
        silence(session, reply, mark);
    return result;
}

/* ---- commands within commands ---- */

void command_run_apart(struct call *outer, const struct command *cmd, const struct slice *argv, int argc)
{
    struct call call = *outer;
    call.cmd = cmd;
    call.argv = argv;
    call.argc = argc;
    run(&call, call.reply->ops->mark(call.reply));
}

enum status command_run_inside(struct call *outer, const struct command *cmd, const struct slice *argv,
                               int argc)
{
    struct call call = *outer;
    uint64_t errors_were = call.reply->errors;
    int64_t start = call.executor->clock_us;
    call.cmd = cmd;
    call.argv = argv;
    call.argc = argc;
    view_count_lookups(call.view, cmd->flags & CMD_READONLY);
    enum status st = cmd->fn(&call);
    keep_books(&call, start, errors_were, st != ST_OK);
    return st;
}

enum status command_run_step(struct call *outer, const struct command *cmd, const struct slice *argv,
                             int argc)
{
    struct executor *executor = outer->executor;
    const char *arena_was = executor->call_arena.next;
    enum status st = command_run_inside(outer, cmd, argv, argc);
    if (st != ST_OK)
        return st;
    engine_step(executor->engine);
    if (executor->call_arena.next != arena_was)
        arena_reset(&executor->call_arena);
    return ST_OK;
}

struct command_result command_serve(struct executor *executor, struct session *session,
                                    const struct command *cmd, const struct slice *argv, int argc,
                                    struct reply *reply, struct slice key, const struct error *write_err)
{
    struct command_result result = {0};
    struct call call = {.executor = executor,
                        .session = session,
                        .cmd = cmd,
                        .argv = argv,
                        .argc = argc,
                        .reply = reply,
                        .result = &result,
                        .write_err = write_err,
                        .serving = true,
                        .serving_key = key};
    run(&call, reply->ops->mark(reply));
    return result;
}

bool command_may_write(const struct session *session, const struct command *cmd, const struct slice *argv,
                       int argc)
{
    if (cmd && cmd->subs && argc > 1)
        cmd = command_find_sub(cmd, argv[1]);
    return cmd && ((cmd->flags & CMD_MAY_WRITE) || txn_may_write(session, cmd) ||
                   (cmd->may_write && cmd->may_write(argv, argc)));
}

bool command_goes_outside(const struct session *session, const struct command *cmd, const struct slice *argv,
                          int argc)
{
    if (cmd && cmd->subs && argc > 1)
        cmd = command_find_sub(cmd, argv[1]);
    if (!cmd || txn_goes_outside(session, cmd))
        return cmd != NULL;
    return (cmd->flags & CMD_OUTSIDE) && !(txn_open(session) && txn_queues(cmd));
}

bool command_stops_workers(const struct session *session, const struct command *cmd, const struct slice *argv,
                           int argc)
{
    if (!cmd || !(cmd->flags & CMD_STOPS_WORKERS))
        return false;
    if (!auth_is_known(session)) /* it will be refused */
        return false;
    if (txn_open(session)) /* all but EXEC is queued, or refused */
        return txn_is_exec(cmd) && txn_stops_workers(session);
    if (cmd->subs && argc > 1)
        cmd = command_find_sub(cmd, argv[1]);
    return cmd && (cmd->flags & CMD_STOPS_WORKERS) && !txn_is_exec(cmd);
}

/* ---- failures of the database ---- */

/* What a client is told when the database failed. The code says what to do:

     MISCONF    the operator must act before writes work again (no space, no permission, a second process)
     READONLY   this database cannot be written; write elsewhere
     TRYAGAIN   nothing was done; the same command may work now
     UNCERTAIN  whether the write happened is not known; read before writing again
     STALE      no database that can be reached has what this client may read
     LOSTWRITES a failover has lost what this client had been told of
     IOERR      the database could not be read or written; nothing was done
     ERR        damage or a bug: see the server's log

   The text after the code ends with what the database said. */
static const char *told_as(enum status st)
{
    switch (st) {
    case ST_FULL:
        return "MISCONF The database cannot be written, no space is left: ";
    case ST_DENIED:
        return "MISCONF The database cannot be accessed, permission is denied: ";
    case ST_LOCKED:
        return "MISCONF The database is held by another process: ";
    case ST_LOST:
        return "MISCONF The database has lost what was acknowledged: ";
    case ST_NEWER:
        return "MISCONF The database was written by a newer version: ";
    case ST_READONLY:
        return "READONLY The database cannot be written: ";
    case ST_BUSY:
    case ST_CONFLICT:
        return "TRYAGAIN Nothing was done, another writer is in the way: ";
    case ST_UNKNOWN:
        return "UNCERTAIN The outcome of this write is not known: ";
    case ST_STALE:
        return "STALE ";
    case ST_REWOUND:
        return "LOSTWRITES ";
    case ST_IO:
    case ST_MISSING:
        return "IOERR The database cannot be read or written: ";
    case ST_INVALID:
        return "ERR ";
    case ST_CORRUPT:
        return "ERR The database is damaged: ";
    default:
        return "ERR The database failed: ";
    }
}

void reply_status(struct reply *r, enum status st, const struct error *err)
{
    if (st == ST_READONLY && err && strcmp(err->text, READ_ONLY_REPLICA) == 0) {
        reply_error(r, "READONLY " READ_ONLY_REPLICA);
        return;
    }
    reply_errorf(r, "%s%s", told_as(st), err ? err->text : status_name(st));
}

/* A transaction that the database failed in the middle of is as if it had never been, which its client is to
   know from the first word. */
static void reply_failure(const struct call *call, enum status st)
{
    if (call->all_of_it && st != ST_UNKNOWN)
        reply_errorf(call->reply,
                     "EXECABORT Transaction discarded because of a failure of the database: %s%s",
                     told_as(st), call->err->text);
    else
        reply_status(call->reply, st, call->err);
}
