/* Private to the files of the store on a database server: how a session connects, comes to the tables, and
   shares them with other servers. */
#ifndef LARDER_STORE_REMOTE_REMOTE_SESSION_H
#define LARDER_STORE_REMOTE_REMOTE_SESSION_H

#include "store/remote/remote_store.h"

/* ---- remote_lock.c ---- */

/* Takes the tables, alone or with other servers, waiting for up to busy_ms; what an earlier server left in
   the journal is in the tables then. */
enum status rlock_enter(struct rstore *s, struct error *err) MUST_CHECK;

/* Only takes them, for this session alone, waiting as long: ST_LOCKED when another server has them. */
enum status rlock_try(struct rstore *s, struct error *err) MUST_CHECK;

/* Behind that, before anything is written: waits for the lease of a server that did not end well. */
enum status rlock_outwait(struct rstore *s, struct error *err) MUST_CHECK;

/* The same on a new connection in the place of a lost one, without waiting. */
enum status rlock_again(struct rstore *s, struct error *err) MUST_CHECK;

/* Of a session that peeks: whether the tables were ours in what the running transaction sees. */
enum status rlock_confirm(struct rstore *s, struct error *err) MUST_CHECK;

/* Within the running transaction, of a session that applies: the tables are ours, and stay so until it has
   ended. ST_LOCKED: they are another's. */
enum status rlock_keep(struct rstore *s, struct error *err) MUST_CHECK;

/* ---- remote_proof.c ---- */

/* Before anything is made there: ST_INVALID for a server that is not proven, unless that is accepted. */
enum status rproof_check(struct rstore *s, bool accept, struct error *err) MUST_CHECK;

/* With the tables there: what the server can do, and how locks are had. `first` of this process: what is
   missing is judged, and rows to lock are made. */
enum status rproof_try(struct rstore *s, bool first, bool accept, struct error *err) MUST_CHECK;

/* ---- remote_shared.c ---- */

int64_t rshared_now_us(const struct store *s);

/* ST_CONFLICT: the database has ended it in favour of another session's. The next transaction that writes
   first locks what this one had locked, in order. */
enum status rshared_begin(struct rstore *s, bool write, const struct store_declared *d,
                          struct error *err) MUST_CHECK;

/* What begins it, in one round trip: locks, the clock, where the databases are, the rows of the keys. */
enum status rshared_ask(struct rstore *s, bool write, const struct store_declared *d, struct rfound *f,
                        struct error *err) MUST_CHECK;

/* Adds the question for the rows of these keys. */
void rshared_ask_keys(struct rstore *s, bool lock, const struct key_ref *keys, size_t n, struct rfound *f);

/* The running transaction was ended because of another server's: it will be tried again. */
void rshared_conflict(struct rstore *s);

/* Before reading keys in a transaction that may write: locks them, in the round trip that reads them. */
void rshared_lock_keys(struct rstore *s, const struct key_ref *refs, size_t n);

/* Behind what reads them: whatever is asked for next is waited for as ever. */
void rshared_locked(struct rstore *s);

/* What a loose transaction locks, behind BEGIN: the lock of all writers, and the classes of these keys. */
void rshared_lock_loose(struct rstore *s, const struct key_ref *refs, size_t n);

/* Brings what became of the databases into the tables: counts as differences. */
enum status rshared_apply_dbs(struct rstore *s, const struct changes *c, struct error *err) MUST_CHECK;

/* ---- remote_brief.c ---- */

bool rbrief_is_on(const struct store *s);

/* Reads what was declared in a statement of its own, where that is possible; s->brief.on tells. */
enum status rbrief_ask(struct rstore *s, bool write, const struct store_declared *d, struct rfound *f,
                       struct error *err) MUST_CHECK;

/* Something else is asked for: from here on it is a transaction like any other, if what it has read is what
   it would read now; else ST_CONFLICT. */
enum status rbrief_widen(struct rstore *s, struct error *err) MUST_CHECK;

/* ---- remote_loose.c ---- */

/* Whether a transaction that writes begins without locks. */
bool rloose_may(struct rstore *s, const struct store_declared *d);

/* Notes what was read of the declared keys. */
void rloose_keep(struct rstore *s, const struct rfound *f);

/* Applies a change set in the running transaction, if that is loose and it can be; *ret_done tells. */
enum status rloose_apply(struct rstore *s, struct changes *c, bool *ret_done, struct error *err) MUST_CHECK;

/* Whether whole collections may be read in the running transaction as it is: then it is noted, and compared
   at its end with what their keys are. */
bool rloose_reads_items(struct rstore *s);

/* The end of one that has written nothing: ST_CONFLICT if it has read items that may not have been those of
   the rows that it has read. */
enum status rloose_prove(struct rstore *s, struct error *err) MUST_CHECK;

/* remote_apply.c: items that are gone, and those that are there. */
void rapply_items(struct rstore *s, const struct changes *c);

/* What a loose one has written was in another's way; or stands. */
void rloose_conflict(struct rstore *s);
void rloose_committed(struct rstore *s);

/* ---- remote_connect.c ---- */

#define BACKOFF_MIN_MS 50 /* before the second attempt; backoff_ms is that while the last one was well */

struct remote_options rconnect_options(const struct rstore *s);

/* Begins to make a connection, for rconnect_try to take. */
void rconnect_start(struct rstore *s);

/* Begins to make a connection, or goes on with that. False: it is not done yet. Else *ret says how it went,
   and on success it is in s->conn, where there was none. */
bool rconnect_try(struct rstore *s, enum status *ret, struct error *err);

/* Waits for one that is being made, and gives it up. */
void rconnect_release(struct rstore *s);

/* ---- remote_wake.c ---- */

bool rwake_listen(struct store *s, bool on, struct store_wakeup *ret);
bool rwake_notified(struct store *s);

/* Before COMMIT. */
void rwake_tell(struct rstore *s);

#endif
