/* The legs of a transaction: one for each engine that its calls need. engines[0] is the primary's, the others
   are the replicas'; only the primary's leg writes.

   Where a call goes is decided when its transaction begins (legs_route), in the order of the calls and by
   what is known then of the replicas. Then the replicas' legs begin, and each tells which position its
   snapshot has at least: a call whose client has seen more, or whose bound is narrower, goes to the primary,
   as do all calls of a replica that fails or does not answer within replica-timeout. The primary's leg begins
   last, if any call needs it, so that a slow replica holds no lock of the primary. The calls run in the order
   in which they came, each with its leg's view. A replica that fails while they run ends the transaction;
   what the calls did is taken back (undo.h), and they run again at once, those of that replica on the
   primary. So a call waits for one replica at most, and no client sees a reply of a leg that failed.

   Legs begin one after the other: a transaction with k replicas' legs costs k + 1 round trips to begin in the
   place of one. A replica's leg begins only while those before it were quick, so that several that hang at
   once cost no request more than one.

   Sessions. A call in session mode reads from a replica that has what its client has written and seen
   (session positions), and from one that every earlier call of the client in this transaction allows: behind
   a call on the primary all others are there, behind one in session mode on a replica they share its
   snapshot. When the transaction has ended, what its snapshots had at most, and where its commit is in the
   log, become the positions of the sessions that used them (legs_settle). A session that has written, or
   seen, something of which that is not known (unplaced) reads from the primary until it is.

   The primary is away (its leg cannot begin: ST_IO), and there are replicas: calls on their legs are
   answered. Writers and strong reads are held, that is paused and tried again, for failover-wait from when
   that was first noticed, then they get the error. Reads that would be content with less get -STALE, in
   session mode after replica-wait.

   A crash of this server at any point leaves what a crash with one leg does: replicas' legs leave nothing. */
#ifndef LARDER_SERVER_LEGS_H
#define LARDER_SERVER_LEGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/executor.h"
#include "store/position.h"

struct batch_call;
struct client;
struct worker;

/* Room in an answer for a token, see command_result.token. */
struct leg_token {
    struct client *client;
    uint64_t at; /* in all the output its client has ever had */
    const struct batch_call *call;
};

struct leg {
    bool wanted;              /* a call is on it */
    bool begun;               /* its transaction runs */
    bool ran;                 /* it did, as it should: what the calls on it saw is true */
    int64_t asked_us;         /* monotonic: when it began ... */
    int64_t as_of_us;         /* ... and it has everything as of then; INT64_MIN: not known */
    struct position admitted; /* of a replica: its snapshot has at least that ... */
    int64_t age_us;           /* ... and is at most so old; INT64_MAX: not known */
    struct position seen;     /* it has at most that; when the transaction has ended */
};

struct leg_away {
    int64_t since_us; /* 0: it is not */
    int64_t seen_us;  /* when that was noticed last */
};

struct legs {
    /* The running transaction. */
    bool on;          /* there is more to it than the primary, or its position is asked for */
    bool routed;      /* its calls have legs, else all are on the primary's */
    uint64_t number;  /* of the routing: what clients remember is of one with this number, or void */
    int eventual;     /* where such reads go, so that one transaction uses few legs ... */
    int bounded;      /* ... and those with this bound */
    int64_t bound_ms; /* 0: there was none */
    int failed;       /* the replica, or LEG_MEMORY, whose leg has failed while calls ran; 0: none */
    bool over;        /* so; or a client reads otherwise from here on: the calls behind it are routed anew */
    /* Before the running call: failures of the executor, how its client reads. Whether it reads something. */
    uint64_t failures;
    struct consistency how;
    bool served;
    struct leg at[ENGINES_MAX];
    struct leg_token *tokens;
    size_t ntokens, cap_tokens;
    struct error refusal; /* what a call is told that nobody can answer */
    /* Beyond it. */
    bool placing;                  /* the primary's store tells positions */
    struct position known;         /* the primary has at least that */
    struct leg_away away;          /* the primary, for everybody ... */
    struct leg_away away_to_write; /* ... for those who write: it may be back in between, and gone again */
    int64_t retry_us;              /* held clients are tried again then */
};

#define LEG_MEMORY   READ_FROM_MEMORY /* no database: see exec/memory_reads.h */
#define LEG_UNROUTED (-2)             /* of a client none of whose calls has one yet */

void legs_release(struct legs *l);

/* A transaction begins; nothing is routed yet. */
void legs_start(struct worker *w);

/* Finds the call's leg, and declares its keys there. Returns how many. */
size_t legs_route(struct worker *w, struct batch_call *call);

/* Begins the replicas' legs for the calls [from, to), and moves calls that they cannot serve to the primary.
   Returns whether a call needs the primary. */
bool legs_begin(struct worker *w, size_t from, size_t to);

/* Before the primary's leg begins: asks for positions where they are of use. */
void legs_ask_positions(struct worker *w);

/* Whether the primary is known to be away: nobody waits for what it says, so that the worker goes on to
   answer what replicas can. */
bool legs_primary_away(const struct worker *w);

/* The same before its leg begins: that does not, then. */
bool legs_skip_primary(struct worker *w, struct error *err);

/* The primary's leg has begun, or not (err), or only to read (write_err, of one that was to write). */
void legs_begun(struct worker *w, const struct error *err, const struct error *write_err);

/* Around a call: its leg's view is the executor's meanwhile. write_err: the primary's. Returns what the call
   is to be told why it cannot write or read, of code ST_OK if it can; NULL: its client waits, the call does
   not run. */
const struct error *legs_enter(struct worker *w, const struct batch_call *call,
                               const struct error *write_err);
void legs_leave(struct worker *w, const struct batch_call *call);

/* The answer has room for a token, at this place in the client's output. */
void legs_note_token(struct worker *w, const struct batch_call *call, size_t at);

/* Ends the replicas' legs. */
void legs_end(struct worker *w);

/* The calls that were on the leg that has failed run on the primary from here on. */
void legs_avoid_failed(struct worker *w);

/* The calls of the batch before `to` have been run for good, the primary's leg, if there was one, was
   committed or not: sessions and tokens learn where they are. */
void legs_settle(struct worker *w, size_t to, bool committed);

/* How long held clients have to wait before they are tried again; 0: no longer. */
int64_t legs_hold_left(struct worker *w);

#endif
