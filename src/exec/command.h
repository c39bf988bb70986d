/* Commands as data: each family's file ends with its table; table.c lists the families. COMMAND, COMMAND
   DOCS, docs/commands.md, key extraction and dispatch all read these tables. */
#ifndef LARDER_EXEC_COMMAND_H
#define LARDER_EXEC_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "proto/reply.h"
#include "replica/consistency.h"

struct executor;
struct session;
struct command;

/* What has to follow when a command has run. The caller does it (server/transaction.c). */
struct command_result {
    int64_t ticket; /* must be durable before the reply may leave; 0: it need not wait */
    union {
        struct {
            bool ends;       /* the commands that follow belong to another transaction */
            bool sync;       /* SAVE: the reply leaves when the database has been synced behind the commit */
            bool durable;    /* WAITAOF: so, for what this worker has committed */
            bool durability; /* CONFIG SET durability: so, when the store writes by the new setting */
            bool stops;      /* SHUTDOWN: the process ends after this batch */
            /* HTTP: behind so many bytes of the answer, in its head, there is room (token_fill) for the token
               of what its transaction has written or seen, which is known only when that has ended; 0: no
               token is told. */
            uint16_t token;
        };
        uint64_t wishes; /* all of them at once: most commands have none */
    };
};

/* Adds what one command wants to what those before it do. */
static inline void command_result_add(struct command_result *to, struct command_result one)
{
    if (one.ticket > to->ticket)
        to->ticket = one.ticket;
    to->wishes |= one.wishes; /* its token means nothing then */
}

/* One command on its way. */
struct call {
    struct executor *executor;
    struct session *session;
    const struct command *cmd;
    const struct slice *argv; /* argv[0] is the command's name; borrowed until the batch has been committed */
    int argc;
    struct reply *reply;
    struct view *view;
    /* For this call only; what a view write keeps until the commit goes to view_arena(). */
    struct arena *arena;
    struct command_result *result; /* of the whole call; commands that run within it add to it */
    struct error *err;             /* the function that returns a status other than ST_OK fills it */
    const struct error *write_err; /* why nothing can be written in this batch; code ST_OK: it can */
    bool serving; /* a blocked command gets another chance, because serving_key has something now */
    struct slice serving_key;
    bool moved;           /* it goes on elsewhere, and is run again when that is over (block_for) ... */
    int64_t elsewhere_us; /* ... which took so long; set by the handler then */
    bool undo;            /* set by the handler: its reply stands, and nothing that it wrote does */
    bool script;    /* a script runs it: MONITOR and the slow log name no client, and replies have an order */
    bool all_of_it; /* set by the handler: it is a transaction of several commands, and says so if it fails */
};

/* A client's mistake is a reply and ST_OK; a status is the database's failure (what the handler said is then
   taken back, what it wrote undone, and an error made from the status is sent instead). A handler checks
   everything before it writes. */
typedef enum status command_fn(struct call *c);

/* As COMMAND prints them, in its order. */
enum command_flag {
    CMD_WRITE = 1 << 0,
    CMD_READONLY = 1 << 1,
    CMD_DENYOOM = 1 << 2,
    CMD_ADMIN = 1 << 3,
    CMD_PUBSUB = 1 << 4,
    CMD_NOSCRIPT = 1 << 5,
    CMD_BLOCKING = 1 << 6,
    CMD_LOADING = 1 << 7,
    CMD_STALE = 1 << 8,
    CMD_SKIP_MONITOR = 1 << 9,
    CMD_SKIP_SLOWLOG = 1 << 10,
    CMD_ASKING = 1 << 11,
    CMD_FAST = 1 << 12,
    CMD_NO_AUTH = 1 << 13,
    CMD_MAY_REPLICATE = 1 << 14,
    CMD_NO_MULTI = 1 << 15,
    CMD_MOVABLEKEYS = 1 << 16,
    CMD_ALLOW_BUSY = 1 << 17,
    CMD_NO_MANDATORY_KEYS = 1 << 18,
    CMD_NO_ASYNC_LOADING = 1 << 19,
    CMD_PROTECTED = 1 << 20,     /* only where enable-debug-command allows it; not printed */
    CMD_ALONE = 1 << 23,         /* its transaction is its own: those behind it are routed (server/legs.h) by
                            what it has changed. Not printed */
    CMD_STOPS_WORKERS = 1 << 21, /* uses what other workers use: they stand still meanwhile (executor.h). Of a
                           container, EXEC: what it runs may do so. Not printed */
    CMD_RUNS_SCRIPT = 1 << 24,   /* runs others, which may write: a batch with it begins so. Not printed */
    CMD_SCRIPTS = 1 << 25, /* looks at what the database knows of scripts (EVALSHA, SCRIPT LOAD): that is
                      read when its transaction begins (engine/hidden.h). Not printed */
    CMD_CHANGES_SCRIPTS = 1 << 27, /* SCRIPT LOAD, SCRIPT FLUSH: writes that. Not printed */
    CMD_LIBRARIES = 1 << 26,       /* so with libraries of functions (FCALL, FUNCTION LOAD). Not printed */
    CMD_SESSION = 1 << 28,         /* concerns connections alone, and looks at no row. Not printed */
    CMD_FEW_ITEMS = 1 << 29,       /* so with the items of its keys, where those are few. Not printed */
    CMD_ROWS_ONLY = 1 << 22 /* asks for nothing but the rows of its keys, nearly always: over shared tables a
                       batch of such commands that only read is one statement (store_declared), and one
                       whose rows are in memory needs no tables. Not printed */
};

/* ACL categories, as COMMAND INFO lists them ("@read" ...). */
enum command_category {
    CAT_KEYSPACE = 1 << 0,
    CAT_READ = 1 << 1,
    CAT_WRITE = 1 << 2,
    CAT_SET = 1 << 3,
    CAT_SORTEDSET = 1 << 4,
    CAT_LIST = 1 << 5,
    CAT_HASH = 1 << 6,
    CAT_STRING = 1 << 7,
    CAT_BITMAP = 1 << 8,
    CAT_HYPERLOGLOG = 1 << 9,
    CAT_GEO = 1 << 10,
    CAT_STREAM = 1 << 11,
    CAT_PUBSUB = 1 << 12,
    CAT_ADMIN = 1 << 13,
    CAT_FAST = 1 << 14,
    CAT_SLOW = 1 << 15,
    CAT_BLOCKING = 1 << 16,
    CAT_DANGEROUS = 1 << 17,
    CAT_CONNECTION = 1 << 18,
    CAT_TRANSACTION = 1 << 19,
    CAT_SCRIPTING = 1 << 20
};

enum key_flag {
    KEY_RO = 1 << 0,
    KEY_RW = 1 << 1,
    KEY_OW = 1 << 2,
    KEY_RM = 1 << 3,
    KEY_ACCESS = 1 << 4,
    KEY_UPDATE = 1 << 5,
    KEY_INSERT = 1 << 6,
    KEY_DELETE = 1 << 7,
    KEY_NOT_KEY = 1 << 8,
    KEY_INCOMPLETE = 1 << 9,
    KEY_VARIABLE = 1 << 10
};

/* Where keys stand among the arguments, as Redis 7 describes it. Zeroed: no keys. */
struct key_spec {
    uint32_t flags;
    /* Where the search begins. NULL: at index; else behind this word, which is looked for from index on. */
    const char *keyword;
    int index;
    /* A range: the last key relative to the first (-1: the last argument), the step, the limit as in
       Redis. */
    int last, step, limit;
    /* Or a number of keys: it stands at offset `first` from where the search began, the keys stand from
       offset `keynum_first` on. */
    bool keynum;
    int first, keynum_first;
    /* Or Redis has no words for where the key is: `find` returns its place, or -1. find is NULL: the key is
       not among the arguments. */
    bool unknown;
    int (*find)(const struct slice *argv, int argc);
    const char *notes;
};

#define COMMAND_KEY_SPECS 3

struct command {
    const char *name; /* lower case; a subcommand's is only its own word */
    command_fn *fn;   /* NULL for a container without a plain form */
    int arity;        /* counts the name (and the container's); negative: at least */
    uint32_t flags;
    uint32_t categories;
    struct key_spec keys[COMMAND_KEY_SPECS]; /* the first without flags ends them */
    /* Of items (fields, members) of its first key: where the first stands, how far the next is from it, and
       how many arguments stand behind the last. Zeroed: none, or not that many. */
    struct {
        uint8_t first, step, behind;
    } names;
    const char *summary;
    const char *since;
    const char *group;      /* as COMMAND DOCS names it: "string", "generic", ... */
    const char *complexity; /* ours, not Redis' */
    const char *tips[4];
    const struct command *subs; /* ends with a NULL name */
    /* For keys marked KEY_VARIABLE: the flags that they have with these arguments. */
    uint32_t (*key_flags)(const struct slice *argv, int argc);
    /* Of one that stands in front of another command and says how that is read (LARDER.READ): where that
       begins among the arguments, 0 when they make no sense. NULL: it stands for itself. */
    int (*reads_as)(const struct slice *argv, int argc, struct consistency *ret);
    /* Of one that is neither CMD_WRITE nor CMD_READONLY because its arguments decide (SQL): whether it may
       write with these. NULL: its flags tell. */
    bool (*may_write)(const struct slice *argv, int argc);
};

/* Whether a command writes by itself, or may do so with these arguments. */
static inline bool command_writes(const struct command *cmd, const struct slice *argv, int argc)
{
    return (cmd->flags & CMD_WRITE) || (cmd->may_write && cmd->may_write(argv, argc));
}

/* By name, case ignored; NULL when there is none. */
const struct command *command_find(struct slice name);
const struct command *command_find_sub(const struct command *parent, struct slice name);
const struct command *command_find_full(struct slice name); /* "get" or "client|list" */

/* Every command in the order of COMMAND; i from 0, NULL at the end. */
const struct command *command_at(int i);

/* A dense number for statistics: 0 .. command_count()-1, subcommands included. */
int command_index(const struct command *c);
int command_count(void);
const struct command *command_by_index(int i, const struct command **ret_parent);

/* The container of a subcommand, or NULL. */
const struct command *command_parent(const struct command *c);

/* "get" or "client|list", as Redis names it in statistics and errors. */
#define COMMAND_NAME_CHARS 64
void command_full_name(const struct command *c, char out[COMMAND_NAME_CHARS]);

/* Which arguments are keys, by the specs. flags (may be NULL) gets each key's flags. -1: the arguments make
   no sense. */
int command_keys(const struct command *c, const struct slice *argv, int argc, int *ret_index,
                 uint32_t *ret_flags, int cap);

/* Runs one command to its reply: lookup, arity, authentication, flags, handler, statistics. `known` was found
   by command_find while the batch was gathered, or is NULL when there is no such command. Blocked
   clients are not served: the caller does that behind it (block_serve). */
struct command_result command_run(struct executor *executor, struct session *session,
                                  const struct command *known, const struct slice *argv, int argc,
                                  struct reply *reply, const struct error *write_err);

/* The same for another client's command while a script is busy, whose transaction is not left for it: it is
   told so (busy: "BUSY ..."), unless it is CMD_ALLOW_BUSY and asks for no rows. No handler that runs here
   uses call->view. */
struct command_result command_run_busy(struct executor *executor, struct session *session,
                                       const struct command *known, const struct slice *argv, int argc,
                                       struct reply *reply, const char *busy);

/* Whether a command can have so many words. */
bool command_arity_fits(const struct command *cmd, int argc);

/* Runs a command as a part of another one, which it is kept or undone with. */
enum status command_run_inside(struct call *outer, const struct command *cmd, const struct slice *argv,
                               int argc) MUST_CHECK;

/* The same for one of several that make up another one, of which nothing but the arguments is in use from one
   to the next: those in EXEC's queue, the operations of a batch. */
enum status command_run_step(struct call *outer, const struct command *cmd, const struct slice *argv,
                             int argc) MUST_CHECK;

/* Of a command that MONITOR shows before what runs inside it, and that is CMD_SKIP_MONITOR therefore: tells
   those who monitor now. */
void command_tell_monitors(const struct call *c);

/* Runs a command within the reply of another one, but by itself: it is undone alone if it fails, and its
   reply is the error. */
void command_run_apart(struct call *outer, const struct command *cmd, const struct slice *argv, int argc);

/* Runs a command that was blocked, with the key that has something for it now. Nothing replied: it waits on.
   Returns what command_run does. */
struct command_result command_serve(struct executor *executor, struct session *session,
                                    const struct command *cmd, const struct slice *argv, int argc,
                                    struct reply *reply, struct slice key, const struct error *write_err);

/* Writes, or may do so by what it runs. */
#define CMD_MAY_WRITE (CMD_WRITE | CMD_RUNS_SCRIPT | CMD_CHANGES_SCRIPTS)

/* Whether a command may write when this session sends it; EXEC does what is in its queue. */
bool command_may_write(const struct session *session, const struct command *cmd, const struct slice *argv,
                       int argc);

/* Whether a command of this session may change more than rows and the session itself, so that it cannot be
   taken back (see undo.h): what administers the server does, and EXEC with such a command in its queue. */
#define CMD_OUTSIDE CMD_ADMIN
bool command_goes_outside(const struct session *session, const struct command *cmd, const struct slice *argv,
                          int argc);

/* Whether other workers have to stand still while this session runs the command, as things are now. */
bool command_stops_workers(const struct session *session, const struct command *cmd, const struct slice *argv,
                           int argc);

/* The reply for a failed database operation: "MISCONF ...", "READONLY ...", "TRYAGAIN ...", ... One mapping
   for all. */
void reply_status(struct reply *r, enum status st, const struct error *err);

#endif
