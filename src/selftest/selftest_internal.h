/* What the files of the selftest share: the scratch, its sessions, and checks. */
#ifndef LARDER_SELFTEST_SELFTEST_INTERNAL_H
#define LARDER_SELFTEST_SELFTEST_INTERNAL_H

#include <pthread.h>
#include <signal.h>

#include "base/buf.h"
#include "sql/features.h"
#include "sql/proof.h"
#include "store/store.h"

#define SESSION_MS 5000 /* what a session waits for an answer */

/* A place of its own on the database server. */
struct scratch {
    struct remote *admin; /* a session on the URL as it was given */
    char name[64];
    char *given; /* the URL of that session */
    char *url;   /* of a shared store in it ... */
    char *alone; /* ... and of one with mode=exclusive */
    bool made;
};

struct selftest {
    struct scratch scratch;
    struct remote_features features; /* as a server finds them */
    bool entered;                    /* a server has: the tables are as they must be */
    struct store *a, *b;             /* two servers */
    struct remote *x, *y;            /* two sessions that only speak SQL; larder_scratch is their table */
    int64_t load_us;
    const volatile sig_atomic_t *stop;
};

enum verdict { VERDICT_HOLDS, VERDICT_DOES_NOT, VERDICT_NOT_NEEDED, VERDICT_UNTRIED };

struct finding {
    enum verdict verdict;
    bool
        missing; /* it is not there at all, and a server knows that: what is done without it is good enough */
    char text[200];
};

/* Anything but ST_OK: it does not hold, and err says why. On ST_OK the finding says it, which is "holds" at
   first. */
typedef enum status check_fn(struct selftest *t, struct finding *f, struct error *err);

struct check {
    const char *name;
    check_fn *run;
    const char *without; /* what Larder does without it; NULL: it cannot be used */
    bool advice;         /* a setting, which is the owner's choice */
    bool plain;          /* it uses the sessions that only speak SQL, and leaves them as they are */
};

/* ---- scratch.c ---- */

enum status scratch_make(const char *url, struct scratch *ret, struct error *err) MUST_CHECK;

/* That session again, if it has been lost meanwhile. */
enum status scratch_return(struct scratch *s, struct error *err) MUST_CHECK;

/* Removes it and releases everything. */
enum status scratch_remove(struct scratch *s, struct error *err) MUST_CHECK;

/* Both servers and both sessions, as far as they are not open. */
enum status scratch_open(struct selftest *t, struct error *err) MUST_CHECK;
void scratch_close(struct selftest *t);
void scratch_close_plain(struct selftest *t); /* the sessions alone */

enum status scratch_store(const char *url, bool joins, struct store **ret, struct error *err) MUST_CHECK;
enum status scratch_session(const char *url, struct remote **ret, struct error *err) MUST_CHECK;

/* ---- rows.c ---- */

/* A row as it was read, its value copied. */
struct kept {
    bool found;
    struct key_row row; /* key and value are the buffers' */
    struct buf key, value;
};

enum status keep_row(void *arg, const struct key_row *row); /* for fn: arg is a struct kept */
void kept_release(struct kept *k);

/* What does not hold. Returns whether it does, so that checks stop at the first. */
bool expect(struct finding *f, bool holds, const char *what);

/* One string in a transaction of its own, run again after conflicts. */
enum status put_string(struct store *s, struct slice key, struct slice value, struct error *err) MUST_CHECK;
enum status get_string(struct store *s, struct slice key, struct kept *ret, struct error *err) MUST_CHECK;

/* Begins a transaction with one key declared, whose row comes into ret. */
enum status begin_with(struct store *s, enum store_txn kind, struct slice key, struct kept *ret,
                       struct error *err) MUST_CHECK;

check_fn try_bytes, try_numbers, try_scores, try_large, try_order, try_whole, try_ids, try_sweeping;

/* ---- sessions.c ---- */

check_fn try_unseen, try_snapshot, try_lost_update, try_row_locks, try_deadlock, try_duplicate,
    try_lost_session;

/* ---- abilities.c ---- */

check_fn try_tables, try_functions, try_session_locks, try_listen, try_skip_locked, try_alone, try_durable;

/* ---- load.c ---- */

check_fn try_load, try_write_skew;

/* ---- plain SQL, in any of them ---- */

enum status plain_run(struct remote *c, const char *text, struct error *err) MUST_CHECK;
enum status plain_number(struct remote *c, const char *text, int64_t *ret, struct error *err) MUST_CHECK;

/* Of a session: locks are waited for a moment only, from now on. */
enum status plain_hurry(struct remote *c, struct error *err) MUST_CHECK;

/* The session is gone, as with its machine: no farewell, no rollback. */
void plain_cut(struct remote *c);

/* A second of patience at a time: whether a statement that was refused for a lock works before the deadline.
 */
enum status plain_soon(struct remote *c, const char *text, struct error *err) MUST_CHECK;

static inline bool kept_out(enum status st)
{
    return st == ST_BUSY || st == ST_CONFLICT;
}

#endif
