/* Private to the files of the store on a database server: what is different on a node of a Galera cluster. */
#ifndef LARDER_STORE_REMOTE_REMOTE_GALERA_H
#define LARDER_STORE_REMOTE_REMOTE_GALERA_H

#include "store/remote/remote_store.h"

/* What a session remembers there of the running transaction. */
struct rgalera {
    bool guarded;          /* it has begun, and may write */
    int64_t *held, *again; /* numbers that it has locked, ascending; those of one that was ended */
    size_t nheld, held_cap;
    size_t nagain, again_cap;
    struct rgalera_seen *seen; /* rows that it has read */
    size_t nseen, seen_cap;
    /* What the two were when the transaction was marked, and whether it has taken numbers before that. */
    struct rgalera_seen *marked;
    size_t nmarked, marked_held;
    bool marked_seqs;
    bool took_seqs;                /* it has taken a block of them */
    int64_t witness, transactions; /* the session's row that tells which of its transactions are there */
    char written[64];              /* the session's last write set, as the node calls it */
    int64_t checked_us;            /* when the node last said that it is well */
};

static inline bool rgalera(const struct rstore *s)
{
    return s->conn && s->conn->galera.on;
}

void rgalera_release(struct rstore *s);

/* A session has a new connection, or none any more. */
enum status rgalera_connected(struct rstore *s, struct error *err) MUST_CHECK;
void rgalera_disconnected(struct rstore *s);

/* Between transactions: whether the node is as it must be, asked once a second. */
bool rgalera_well(struct rstore *s);

/* The statements that begin a transaction which may write. */
void rgalera_begin(struct rstore *s);

/* Its locks: of all that write and of one that changes whole databases; of keys; of what is declared, with
   what a transaction had that was ended; of the one that sweeps. They go out with what is asked next. */
void rgalera_lock_some(struct rstore *s);
void rgalera_lock_all(struct rstore *s);
void rgalera_lock_keys(struct rstore *s, const struct key_ref *refs, size_t n);
void rgalera_lock_declared(struct rstore *s, const struct store_declared *d);
void rgalera_lock_sweep(struct rstore *s);
void rgalera_conflict(struct rstore *s);

/* A row was read with this version. Of rows that are about to be written: the versions they were read with,
   as texts; they have their own from then on. */
void rgalera_saw(struct rstore *s, int64_t seq, int64_t version);
void rgalera_expect(struct rstore *s, struct key_row *const *rows, struct slice *ret, size_t n);

/* The transaction is marked; has been brought back there: false when locks have been lost with that. */
void rgalera_mark(struct rstore *s);
bool rgalera_undo(struct rstore *s);

/* What the cluster needs besides in larder_meta, within the transaction that sets a server up. Before:
   whether that is needed at all, because it keeps all others from writing. */
void rgalera_set_up(struct rstore *s);
enum status rgalera_is_set_up(struct rstore *s, bool *ret, struct error *err) MUST_CHECK;

/* ST_CONFLICT: it was ended because of another node's, nothing of it is there. ST_IO: the same, the
   connection is lost. ST_UNKNOWN: COMMIT was sent, and what became of it cannot be told. */
enum status rgalera_commit(struct rstore *s, struct error *err) MUST_CHECK;

/* Queues what ends it without a trace. */
void rgalera_rollback(struct rstore *s);

/* Which of the rows of larder_count is this session's. */
int64_t rgalera_slot(const struct rstore *s);

#endif
