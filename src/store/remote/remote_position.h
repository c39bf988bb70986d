/* Private to the files of the store on a database server: where a session is in the database's log. */
#ifndef LARDER_STORE_REMOTE_REMOTE_POSITION_H
#define LARDER_STORE_REMOTE_REMOTE_POSITION_H

#include "store/history.h"
#include "store/replicated.h"

struct rstore;

/* Of a session: see remote_position.c. */
struct rposition {
    bool replica;           /* it only reads: on a replica, or, for a server that only reads ... */
    enum store_use use;     /* ... (this says so), on whatever there is. Else USE_FULLY */
    bool is_primary;        /* it is no replica, as of the last answer */
    bool wanted;            /* the positions of transactions are */
    uint64_t segment, page; /* PostgreSQL: bytes of a WAL segment, and of its pages */
    struct position here;   /* database, kind and branch of what is read next; NONE: not known */
    struct position at;     /* as the last answer told it, without these */
    struct position behind; /* the same, asked for behind the snapshot */
    struct position admitted, seen;
    const char *wrong;          /* why a replica must not be believed, as of the last answer; or NULL */
    char lineage[HISTORY_TEXT]; /* larder_meta's text, as of the last answer */
    char read[HISTORY_TEXT];    /* the one that `here` is made of */
    uint32_t changes;           /* of what is known, as of then */
    struct known *known;        /* what this process knows of the database; NULL: never connected */
    struct position_gtid *kept; /* MariaDB: how much the server had of each, when connected */
    size_t nkept, kept_cap;
    char why[240];               /* what was wrong with the last connection; empty: it was not had at all */
    const struct store *primary; /* of a replica: the session on its primary; may be NULL */
};

/* ---- remote_lineage.c ---- */

/* On a new connection: which database, and which of its branches this is. A session that writes leaves a row
   where a new primary has none; any other changes nothing. ST_INVALID: it is not what it should be. */
enum status rposition_enter(struct rstore *s, bool writes, struct error *err) MUST_CHECK;

/* An answer has brought larder_meta's lineage: which branch the position beside it is on. */
enum status rposition_branch(struct rstore *s, struct error *err) MUST_CHECK;

enum status rposition_judge(struct store *s, const struct position *p, enum lineage *ret,
                            struct error *err) MUST_CHECK;

/* ---- remote_position.c ---- */

/* Of a session that only reads, between transactions: whether it is to write from now on. */
bool rposition_promoted(const struct rstore *s);

/* Around the statements that take a transaction's snapshot: queued, for the same round trip. */
void rposition_before(struct rstore *s);
void rposition_behind(struct rstore *s);

/* When they have run: whether a replica may be believed. */
enum status rposition_begun(struct rstore *s, struct error *err) MUST_CHECK;

/* The primary's clock, of which a replica's may differ: keys expire by one clock. told_us: what the server
   that the snapshot is of tells. */
int64_t rposition_clock(struct rstore *s, int64_t told_us);

/* Queued behind COMMIT, or behind ROLLBACK where nothing was changed, and when it has run. */
void rposition_commit(struct rstore *s);
void rposition_committed(struct rstore *s);

extern const struct replicated_ops rposition_ops;

#endif
