/* Who may use the tables of a database server: any number of servers that share them, or one alone.

   A server that has them alone holds a lock; so does each server that shares them, in another mode. A server
   with a journal has three sessions: the one that writes groups holds the tables' lock, the one that reads
   and the one that brings memtables into the tables (journal/applier.c) a lock of their own each, and no
   other server comes in while one of them is held. So a server that loses one connection, and makes it again,
   keeps the tables. A lock ends with its session, and a session that comes back has it first: so nothing that
   the lost one was still doing can be committed behind what the new one does.

   When all are gone for a moment, another server may have come in, or an application. larder_meta says who
   has the tables for itself (`owner`), and another server or application that is about to write sets it to
   another value first: a session that comes back and finds its own name there knows that nothing has changed.
   It is empty when no server had them for itself, or the last one ended well; else the journal may hold what
   is not in the tables yet, and the next server applies it.

   A server that is cut off, or frozen, does not come back by itself: it answers from memory. lease.h says for
   how long it may, and why no client reads there what is not true any more. A server that enters has the
   tables' lock and the others, waits for as long as the lease of the one before it (told in `owner`) may
   last, makes its own name the owner's, and lets the others go. In this order a session of the former owner
   that comes back finds its lock taken, or another owner.

   The functions for applications, and servers of earlier versions, do not look for the applier's lock. They
   change `owner` before anything else, as all do, and a transaction of the applier begins with a lock on that
   row (rlock_keep): they wait until it has ended, or it finds another name there. For the same reason what
   the applier hears renews no lease. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_session.h"

#define RETRY_NS 20000000

/* ---- asking ---- */

static enum status take_flag(void *arg, const struct remote_row *row)
{
    *(bool *)arg = remote_i64(row, 0) == 1;
    return ST_OK;
}

static enum status take_owner(void *arg, const struct remote_row *row)
{
    snprintf(arg, LEASE_OWNER_BYTES, "%.*s", (int)row->cells[0].n, row->cells[0].p ? row->cells[0].p : "");
    return ST_OK;
}

static void add_owner(struct rstore *s, char owner[LEASE_OWNER_BYTES])
{
    struct request r = {.text = rtext(s, R_GET_OWNER), .fn = take_owner, .arg = owner};
    owner[0] = '\0';
    remote_add(s->conn, &r);
}

/* Tries once to take a lock, and says who is the owner then. */
static enum status try_lock(struct rstore *s, enum remote_statement which, bool *ret_taken,
                            char owner[LEASE_OWNER_BYTES], struct error *err)
{
    struct request r = {.text = rtext(s, which), .fn = take_flag, .arg = ret_taken};
    *ret_taken = false;
    remote_add(s->conn, &r);
    add_owner(s, owner);
    return rstore_run(s, err);
}

static enum status in_use(const struct rstore *s, const char *owner, struct error *err)
{
    if (owner[0] && strcmp(owner, s->owner) == 0)
        return error_set(err, ST_IO, "%s has not noticed yet that an earlier connection is gone",
                         s->conn->place);
    return error_set(err, ST_LOCKED, "%s is in use by another server%s%.*s", s->conn->place,
                     owner[0] ? ": " : "", lease_name_length(owner), owner);
}

/* Waits up to busy_ms. */
static enum status lock(struct rstore *s, enum remote_statement which, char owner[LEASE_OWNER_BYTES],
                        struct error *err)
{
    int64_t deadline = clock_mono_us() + (int64_t)s->busy_ms * 1000;
    for (;;) {
        bool taken;
        enum status st = try_lock(s, which, &taken, owner, err);
        if (st != ST_OK || taken)
            return st;
        if (clock_mono_us() >= deadline)
            return in_use(s, owner, err);
        const struct timespec pause = {.tv_nsec = RETRY_NS};
        nanosleep(&pause, NULL);
    }
}

/* ---- entering ---- */

/* Until the former owner knows that it is not any more. This connection has the lock: if it is lost
   meanwhile, what comes next fails. */
static void outwait(const struct rstore *s, const char *owner)
{
    int64_t us = strcmp(owner, s->owner) == 0 ? 0 : lease_patience_us(owner);
    int64_t until = clock_boot_us() + us;
    if (us == 0)
        return;
    log_info("waiting for the lease of the server that had the tables", "ms=%lld owner=\"%.*s\"",
             (long long)us / 1000, lease_name_length(owner), owner);
    while ((us = until - clock_boot_us()) > 0) {
        const struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
        nanosleep(&left, NULL);
    }
}

/* With the tables to itself: nothing is left in the journal. */
static enum status apply_journal(struct rstore *s, struct error *err)
{
    bool shared = s->shared;
    s->shared = false; /* until the journal is in the tables it has them alone */
    enum status st = s->replay(&s->base, s->url, err);
    s->shared = shared;
    return st;
}

static enum status enter_alone(struct rstore *s, struct error *err)
{
    char former[LEASE_OWNER_BYTES];
    struct request unlock = {.text = rtext(s, R_UNLOCK_OTHERS)};
    if (!s->owner[0])
        lease_describe(s->owner, s->lease_ms);
    enum status st = lock(s, R_LOCK, former, err);
    if (st != ST_OK)
        return st;
    outwait(s, former);
    st = rstore_set_up(s, err);
    if (st != ST_OK)
        return st;
    s->own_lease.length_us = (int64_t)s->lease_ms * 1000;
    s->lease = &s->own_lease;
    s->holds = true;
    remote_add(s->conn, &unlock);
    st = rstore_run(s, err);
    return st == ST_OK ? apply_journal(s, err) : st;
}

/* A server had the tables for itself and did not end well: its journal is applied, and `owner` emptied. */
static enum status clean_up(struct rstore *s, struct error *err)
{
    char former[LEASE_OWNER_BYTES];
    struct request unlock = {.text = rtext(s, R_UNLOCK)}, unlock_others = {.text = rtext(s, R_UNLOCK_OTHERS)};
    enum status st = lock(s, R_LOCK, former, err);
    if (st != ST_OK)
        return st;
    outwait(s, former);
    st = apply_journal(s, err);
    if (st != ST_OK)
        return st;
    rstore_add_set_meta(s, "owner", "");
    st = rstore_run(s, err); /* it is committed before another server can enter */
    if (st != ST_OK)
        return st;
    remote_add(s->conn, &unlock_others);
    remote_add(s->conn, &unlock);
    return rstore_run(s, err);
}

static enum status enter_shared(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    add_owner(s, owner);
    enum status st = rstore_run(s, err);
    if (st == ST_OK && owner[0] && (rgalera(s) || s->lock_rows))
        return error_set(
            err, ST_INVALID,
            "%.60s was last used with mode=exclusive, and not ended well: start a server on it before it"
            " becomes a Galera cluster, or comes to a server without locks of sessions",
            s->conn->place);
    if (st == ST_OK && owner[0])
        st = clean_up(s, err);
    if (st == ST_OK)
        st = lock(s, R_GUARD_SHARED, owner, err);
    if (st != ST_OK)
        return st;
    add_owner(s, owner);
    st = rstore_run(s, err);
    return st == ST_OK && owner[0] ? in_use(s, owner, err) : st; /* it has come and gone in between */
}

static enum status taken_over(const struct rstore *s, const char *owner, struct error *err)
{
    return error_set(err, ST_LOCKED,
                     "%s was taken over while the connection to it was lost%s%.*s: this server has to be"
                     " started again",
                     s->conn->place, owner[0] ? ", by " : "", lease_name_length(owner), owner);
}

/* Without a lock: `owner` is changed before anything else is by another server, so that a snapshot which has
   our name there has the tables as we left them. */
enum status rlock_confirm(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    add_owner(s, owner);
    st = rstore_run(s, err);
    return st == ST_OK && strcmp(owner, s->owner) != 0 ? taken_over(s, owner, err) : st;
}

enum status rlock_keep(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES] = "";
    struct request r = {.text = rtext(s, R_KEEP_OWNER), .fn = take_owner, .arg = owner};
    remote_add(s->conn, &r);
    enum status st = rstore_run(s, err);
    return st == ST_OK && strcmp(owner, s->owner) != 0 ? taken_over(s, owner, err) : st;
}

/* Of one session of a store with a journal. */
static enum remote_statement own_lock(const struct rstore *s)
{
    return s->applies ? R_LOCK_APPLIER : s->beside ? R_LOCK_READER : R_LOCK_AGAIN;
}

static enum status enter_beside(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    if (s->peeks)
        return rlock_confirm(s, err);
    enum status st = lock(s, own_lock(s), owner, err);
    if (st == ST_OK && strcmp(owner, s->owner) != 0)
        st = taken_over(s, owner, err);
    s->holds = st == ST_OK;
    return st;
}

/* MariaDB tells after a while that a lock was not to be had, be it because two wait for each other in a way
   that it does not see. All of the transaction is then run again, and its own locks are free meanwhile: so it
   waits for a quarter of the time that there is, and is told when all of it is over. */
static enum status wait_less(struct rstore *s, struct error *err)
{
    const struct param p[] = {param_i64(s->timeout_ms < 4000 ? 1 : s->timeout_ms / 4000)};
    struct request r = {.text = rtext(s, R_WAIT_LESS), .params = p, .nparams = 1};
    if (!r.text)
        return ST_OK;
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* A server on another node may do the same at the same time. */
static enum status set_up_cluster(struct rstore *s, struct error *err)
{
    int64_t deadline = clock_mono_us() + (int64_t)s->timeout_ms * 1000;
    bool done = false;
    enum status st;
    do {
        st = rgalera_is_set_up(s, &done, err);
        if (st == ST_OK && !done)
            st = rstore_set_up(s, err);
    } while (st == ST_CONFLICT && clock_mono_us() < deadline);
    s->read_only = st != ST_OK;
    return st;
}

enum status rlock_enter(struct rstore *s, struct error *err)
{
    if (s->beside)
        return enter_beside(s, err);
    if (!s->shared)
        return enter_alone(s, err);
    enum status st = enter_shared(s, err);
    if (st == ST_OK)
        st = rgalera(s) ? set_up_cluster(s, err) : rstore_set_up(s, err);
    return st == ST_OK ? wait_less(s, err) : st;
}

enum status rlock_try(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    return lock(s, R_LOCK, owner, err);
}

enum status rlock_outwait(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    add_owner(s, owner);
    enum status st = rstore_run(s, err);
    if (st == ST_OK)
        outwait(s, owner);
    return st;
}

/* ---- coming back ---- */

/* One of three sessions, or more of them, have been away. */
static enum status come_back(struct rstore *s, struct error *err)
{
    char owner[LEASE_OWNER_BYTES];
    bool taken;
    int64_t asked_us = clock_boot_us();
    enum status st = try_lock(s, own_lock(s), &taken, owner, err);
    if (st != ST_OK)
        return st;
    if (strcmp(owner, s->owner) != 0)
        return taken_over(s, owner, err);
    s->other = false;
    if (!taken)
        return in_use(s, owner, err);
    s->holds = true;
    if (s->lease)
        lease_renew(s->lease, asked_us);
    return ST_OK;
}

enum status rlock_again(struct rstore *s, struct error *err)
{
    uint32_t patience = s->busy_ms;
    if (s->peeks)
        return rlock_confirm(s, err);
    if (s->fenced)
        return come_back(s, err);
    s->busy_ms = 0;
    enum status st = s->shared ? enter_shared(s, err) : enter_alone(s, err);
    s->busy_ms = patience;
    s->other = true;
    return st == ST_OK && s->shared ? wait_less(s, err) : st;
}
