/* One run of a script or a function, from its first instruction to its last.

   The run is inside the call of EVAL or FCALL (outer): its commands are steps of that call, in the same
   transaction, and are kept or undone with it. How it ends:

     by itself     the value it returns becomes the reply, or the error that it raised does; what it wrote
                   before the error stays, as in Redis. With SCRIPT_ROLLBACK an error, raised or returned,
                   takes back what the run wrote, and nothing else of the call that it is in (engine_mark)
     failed        the database has failed an inner command: the script ends at once (pcall cannot hold that
                   back), the handler returns that status, and everything is undone, or run again
     killed        so, by SCRIPT KILL or the end of the server: everything is undone, the reply is the error

   Run again (a conflict of shared tables): nothing of the first run is left in rows, sessions, the books,
   the log (books_log) or the state of math.random; what a library's functions keep in variables of their own
   stays. A crash at any moment leaves all of the call or nothing; others see nothing of it before it is
   committed. Keys expire by the batch's one clock value.

   What the script's commands change about the session (SELECT: its database, READONLY: what its reads may be
   served from) is what it was before when the run is over. */
#ifndef LARDER_SCRIPT_RUN_H
#define LARDER_SCRIPT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "exec/command.h"
#include "script/interp.h"

/* What a shebang line (flags=...) or register_function says. */
enum script_flag {
    SCRIPT_NO_WRITES = 1 << 0,
    SCRIPT_ALLOW_OOM = 1 << 1,
    SCRIPT_ALLOW_STALE = 1 << 2,
    SCRIPT_NO_CLUSTER = 1 << 3,
    SCRIPT_CROSS_SLOT = 1 << 4,
    SCRIPT_ROLLBACK = 1 << 5, /* ours: an error undoes all that the script has written */
    SCRIPT_OLD = 1 << 6       /* no shebang: Redis' rules from before there were flags */
};

/* The flag of a name, as shebang lines and register_function write it; 0: there is none of this name. */
uint32_t script_flag_of(struct slice name);
const char *script_flag_name(uint32_t flag);

enum script_state { SCRIPT_RUNS, SCRIPT_FAILED, SCRIPT_KILLED };

struct script_run {
    struct interp *in;
    struct call *outer; /* of EVAL, FCALL ... */
    const char *name;   /* the sha1, or the function's name: errors end with it */
    uint32_t flags;     /* enum script_flag */
    bool only_reads;    /* EVAL_RO, FCALL_RO; so does SCRIPT_NO_WRITES: commands that write are refused */
    int resp;           /* of the replies that redis.call gives; redis.setresp changes it. It begins as 2 */
    bool wrote;         /* a command that writes has run */
    enum script_state state;
    enum status failure; /* SCRIPT_FAILED: what the handler returns; outer->err has been filled */
    const char *why;     /* SCRIPT_KILLED: the error reply ... */
    char killed_in[32];  /* ... and where that was: "@user_script" ... */
    int killed_at;       /* ... and the line */
    int64_t start_us;    /* monotonic */
    int64_t slow_at_us;  /* monotonic: when the hook calls executor->script_slow next */
};

/* Runs the function of a registry reference in run->in; the caller has set in, outer, name, flags and
   only_reads, and zeroed the rest. In the state of EVAL, KEYS and ARGV become globals; in that of functions
   they are the two arguments. The value goes to outer->reply as outer->reply->resp wants it. */
enum status script_run(struct script_run *run, int ref, const struct slice *keys, int nkeys,
                       const struct slice *args, int nargs) MUST_CHECK;

/* From within executor->script_slow, or a C function of the sandbox: the script ends as soon as that
   returns. why: a literal, such as "ERR Script killed ...". */
void script_run_kill(struct script_run *run, const char *why);

/* For C functions of the sandbox: whether the run is to end, whatever the script says: pcall and its like
   raise again then. */
static inline bool script_run_ends(const struct script_run *run)
{
    return run && run->state != SCRIPT_RUNS;
}

#endif
