/* Who may use the tables of a database server: any number of servers that share them, or one alone.

   One alone holds a lock, and so does each of those who share, in another mode. A server with a journal has
   two sessions: the one that writes holds the tables' lock, the one that reads a lock of its own, and nobody
   else comes in while either is held. So a connection that is lost and made again costs nobody the tables.

   When both are gone for a moment, another server may have come in, or an application. larder_meta says who
   has the tables for itself (`owner`), and whoever else is about to write sets it to another value first: a
   session that comes back and finds its own name there knows that nothing has changed. It is empty when
   nobody had them for itself, or ended well; else the journal may hold what is not in the tables yet, and who
   comes next brings it in. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rand.h"
#include "store/jstore.h"
#include "store/remote_store.h"

#define RETRY_NS 20000000

/* ---- asking ---- */

static enum status take_flag(void *arg, const struct remote_row *row)
{
    *(bool *)arg = remote_i64(row, 0) == 1;
    return ST_OK;
}

static enum status take_owner(void *arg, const struct remote_row *row)
{
    snprintf(arg, ROWNER_BYTES, "%.*s", (int)row->cells[0].n, row->cells[0].p ? row->cells[0].p : "");
    return ST_OK;
}

static void add_owner(struct rstore *s, char owner[ROWNER_BYTES])
{
    struct request r = {
        .text = "SELECT value FROM larder_meta WHERE name = 'owner'", .fn = take_owner, .arg = owner};
    owner[0] = '\0';
    remote_add(s->conn, &r);
}

/* Tries once to take a lock, and says who is the owner then. */
static enum status try_lock(struct rstore *s, enum remote_statement which, bool *ret_taken,
                            char owner[ROWNER_BYTES], struct error *err)
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
    return error_set(err, ST_LOCKED, "%s is in use by another server%s%s", s->conn->place,
                     owner[0] ? ": " : "", owner);
}

/* Waits up to busy_ms. */
static enum status lock(struct rstore *s, enum remote_statement which, struct error *err)
{
    int64_t deadline = clock_mono_us() + (int64_t)s->busy_ms * 1000;
    for (;;) {
        char owner[ROWNER_BYTES];
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

/* "pid 4711 on host box since 2024-05-01 12:00:00 UTC (5f3a91c2)": no two servers are called the same. */
static void describe_self(char *out, size_t cap)
{
    char host[65] = "?", when[32] = "";
    struct tm tm;
    time_t now = (time_t)(clock_wall_us() / 1000000);
    uint32_t token;
    rand_secure(&token, sizeof token);
    (void)gethostname(host, sizeof host - 1);
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(out, cap, "pid %ld on host %s since %s UTC (%08x)", (long)getpid(), host, when, token);
}

/* With the tables to itself: nothing is left in the journal. */
static enum status apply_journal(struct rstore *s, struct error *err)
{
    int64_t last;
    bool shared = s->shared;
    s->shared = false; /* until the journal is in the tables it has them alone */
    enum status st = jrecover(&s->base, s->url, &last, err);
    s->shared = shared;
    return st;
}

static enum status enter_alone(struct rstore *s, struct error *err)
{
    if (!s->owner[0])
        describe_self(s->owner, sizeof s->owner);
    enum status st = lock(s, R_LOCK, err);
    if (st == ST_OK)
        st = rstore_set_up(s, err);
    return st == ST_OK ? apply_journal(s, err) : st;
}

/* Someone had the tables for itself and did not end well. */
static enum status clean_up(struct rstore *s, struct error *err)
{
    struct request unlock = {.text = rtext(s, R_UNLOCK)};
    enum status st = lock(s, R_LOCK, err);
    if (st == ST_OK)
        st = apply_journal(s, err);
    if (st != ST_OK)
        return st;
    rstore_add_set_meta(s, "owner", "");
    remote_add(s->conn, &unlock);
    return rstore_run(s, err);
}

static enum status enter_shared(struct rstore *s, struct error *err)
{
    char owner[ROWNER_BYTES];
    add_owner(s, owner);
    enum status st = rstore_run(s, err);
    if (st == ST_OK && owner[0])
        st = clean_up(s, err);
    if (st == ST_OK)
        st = lock(s, R_GUARD_SHARED, err);
    if (st != ST_OK)
        return st;
    add_owner(s, owner);
    st = rstore_run(s, err);
    return st == ST_OK && owner[0] ? in_use(s, owner, err) : st; /* it has come and gone in between */
}

enum status rlock_enter(struct rstore *s, struct error *err)
{
    if (s->beside)
        return lock(s, R_LOCK_READER, err);
    if (!s->shared)
        return enter_alone(s, err);
    enum status st = enter_shared(s, err);
    return st == ST_OK ? rstore_set_up(s, err) : st;
}

enum status rlock_try(struct rstore *s, struct error *err)
{
    return lock(s, R_LOCK, err);
}

/* ---- coming back ---- */

/* One of two sessions, or both, have been away. */
static enum status come_back(struct rstore *s, struct error *err)
{
    char owner[ROWNER_BYTES];
    bool taken;
    enum status st = try_lock(s, s->beside ? R_LOCK_READER : R_LOCK_AGAIN, &taken, owner, err);
    if (st != ST_OK)
        return st;
    if (strcmp(owner, s->owner) != 0)
        return error_set(err, ST_LOCKED,
                         "%s was taken over while the connection to it was lost%s%s: this server has to be"
                         " started again",
                         s->conn->place, owner[0] ? ", by " : "", owner);
    s->other = false;
    return taken ? ST_OK : in_use(s, owner, err);
}

enum status rlock_again(struct rstore *s, struct error *err)
{
    uint32_t patience = s->busy_ms;
    if (s->fenced)
        return come_back(s, err);
    s->busy_ms = 0;
    enum status st = s->shared ? enter_shared(s, err) : enter_alone(s, err);
    s->busy_ms = patience;
    s->other = true;
    return st;
}
