/* MULTI and WATCH: what a session has queued, and which versions of keys it relies on.

   EXEC runs the queue inside one batch, so inside one database transaction: after a crash all of it is there
   or nothing. A key is watched by its version, which changes with every write, deletion or expiry and is 0
   for an absent key; a key that changes need not report to its watchers. */
#ifndef LARDER_EXEC_TXN_H
#define LARDER_EXEC_TXN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "exec/command.h"

struct session;

/* Between MULTI and EXEC, the queue not being run yet. */
bool txn_open(const struct session *s);

/* Whether keys are watched, in or before a transaction. */
bool txn_watches(const struct session *s);

/* Inside EXEC: a blocking command must not block. */
bool txn_running(const struct session *s);

/* How many commands are queued, -1 outside of MULTI. */
int txn_length(const struct session *s);

/* A copy of the command joins the queue; false when it is to be run at once. */
bool txn_queue(struct session *s, const struct command *cmd, const struct slice *argv, int argc);

/* Whether a command is one that queues, and does not run at once. */
bool txn_queues(const struct command *cmd);

/* A command was refused while queueing: EXEC will refuse all. */
void txn_spoil(struct session *s);

bool txn_is_exec(const struct command *cmd);

/* Whether commands behind this one are queued, if it is well; are not any more. */
bool txn_opens(const struct command *cmd);
bool txn_closes(const struct command *cmd);

/* Whether keys are watched behind this one. */
bool txn_begins_watch(const struct command *cmd);

/* Whether cmd is EXEC and something in the queue may write. */
bool txn_may_write(const struct session *s, const struct command *cmd);

/* Whether something in the queue is CMD_STOPS_WORKERS. */
bool txn_stops_workers(const struct session *s);

/* Declares the keys of what is queued and of what is watched, see declare.h. Returns how many. */
struct view;
size_t txn_declare(const struct session *s, struct view *v);

/* Forgets queue and watches. */
void txn_end(struct session *s);

/* Whether cmd is EXEC and something in the queue is CMD_OUTSIDE. */
bool txn_goes_outside(const struct session *s, const struct command *cmd);

/* For session.c. The state has been put back: what was watched since is not. */
void txn_restored(struct session *s);

/* Frees the queues and watches that the state does not point to. */
void txn_free_unused(struct session *s);

extern const struct command txn_commands[];

#endif
