/* What a call may be read from: whether a replica may answer it, in which mode, and what its client has
   written or seen by then. Where it goes is decided when its transaction begins (server/legs.h). */
#ifndef LARDER_EXEC_READS_H
#define LARDER_EXEC_READS_H

#include "exec/command.h"
#include "replica/consistency.h"
#include "store/position.h"

struct session;

struct reads {
    bool replica; /* it only reads, outside of MULTI, and waits for nothing: a replica may answer it ... */
    bool by_key;  /* ... and it reads nothing but the keys that it names */
    /* ... but while keys are watched it does not: what is read then is what EXEC writes by, and were it older
       than what is watched, an update of another client in between would be lost. */
    bool watches;
    struct consistency how;
    const struct position *need; /* what its client has written or seen; NULL: nothing */
    bool unplaced;               /* ... and something more, of which nobody knows where it is in the log */
};

/* A command of this session, as things are now. What stands behind LARDER.READ is read as that says, all else
   as the session says. */
struct reads reads_of(const struct session *s, const struct command *cmd, const struct slice *argv, int argc);

/* Whether a command is of a kind that replicas may answer. */
bool reads_only(const struct command *cmd);

/* Whether all that it reads is what its arguments name as keys: no script does. */
bool reads_by_key(const struct command *cmd);

/* The command that a call comes down to, and its arguments: what LARDER.READ stands in front of, else the
   call itself; of a container its subcommand. NULL: there is none. *ret_how (may be NULL) is left alone
   unless the call says how it is read. */
const struct command *reads_inside(const struct command *cmd, const struct slice **argv, int *argc,
                                   struct consistency *ret_how);

/* What the session of a call has written or seen, for a token, and what its reply has to wait for before it
   may tell of it (call->result). Where something is unplaced, a round trip of its own asks the primary how
   far it has got: so the call is one of a CMD_ALONE command, with no transaction begun or nothing written in
   it. POSITION_NONE: nothing, or a store that tells no positions. */
enum status session_position(struct call *c, struct position *ret) MUST_CHECK;

/* The same for who waits for it to be replayed. ST_REWOUND: a failover has lost something of it, of which the
   session is told once, and goes on from what there is. */
enum status session_placed(struct call *c) MUST_CHECK;

/* What a session is told, once, of which a failover has lost something (ST_REWOUND). */
#define SESSION_LOST_TEXT "a failover has lost writes that this client has seen acknowledged"

/* Merges the position of a token into what the session has written or seen. Whether it lies on the history of
   this database, the primary's store knows: one that a failover has cut off must be neither waited for nor
   taken for reached. A token that is no good changes nothing, and is told in *refusal (code ST_OK: it is
   good): "BADTOKEN ...", "FOREIGNTOKEN ...", "LOSTWRITES ...". */
enum status session_take_token(struct session *s, struct slice text, struct error *refusal,
                               struct error *err) MUST_CHECK;

#endif
