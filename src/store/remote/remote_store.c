/* The store on a database server: connecting, transactions, and what larder_meta and larder_db hold.

   A transaction begins here when the first change is applied: until then reads stand for themselves, because
   no other server writes (a lock keeps it out), and BEGIN, the changes and COMMIT go out together. A commit
   whose answer does not come is ST_UNKNOWN. After a connection was lost the next transaction makes another
   one, takes the lock again and tells that other servers may have written, unless it is known that none has.
   A store that only reads sees one state in each transaction. */
#include "store/remote/remote_store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sql/url.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_journal.h"
#include "store/remote/remote_open.h"
#include "store/remote/remote_schema.h"
#include "store/remote/remote_session.h"
#include "store/remote/remote_verify.h"

#define BACKOFF_MAX_MS 2000
#define TIMEOUT_MS     10000

/* ---- the connection ---- */

static void drop_connection(struct rstore *s)
{
    s->round_trips += s->conn ? s->conn->round_trips : 0;
    rgalera_disconnected(s);
    remote_close(s->conn);
    s->conn = NULL;
    s->begun = s->listening = s->holds = s->mapped = false;
    s->other = true;
    s->next_number = -1;
    s->seq_next = s->seq_end = 0;
}

enum status rstore_run(struct rstore *s, struct error *err)
{
    assert(s->conn);
    int64_t asked_us = s->holds ? clock_boot_us() : 0;
    uint64_t before = s->conn->round_trips;
    enum status st = remote_run(s->conn, err);
    if (st == ST_OK && s->holds && s->lease && s->conn->round_trips > before)
        lease_renew(s->lease, asked_us);
    if (st == ST_BUSY && s->hurries)
        err->code = st = ST_CONFLICT;
    s->hurries = false;
    if (st == ST_CONFLICT && s->shared && clock_mono_us() >= s->give_up_us)
        err->code = st = ST_BUSY; /* it has been tried for long enough */
    if (s->failed == ST_OK)
        s->failed = st;
    if (st == ST_CONFLICT)
        rshared_conflict(s);
    return st;
}

/* Where a statement of a transaction has failed, no other may run: PostgreSQL refuses them, and makes a
   rollback of the commit without a word; MariaDB, which ends the transaction after a deadlock, would keep
   them each by itself. */
static enum status still_good(const struct rstore *s, struct error *err)
{
    if (!s->begun || s->failed == ST_OK)
        return ST_OK;
    return error_set(err, s->failed, "a statement of this transaction has failed");
}

static enum status take_i64(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

/* Not while a connection is being made: a thread of its own does that, which may outlive who knows. */
static void heed_others(struct rstore *s)
{
    s->conn->away = s->away;
    s->conn->away_arg = s->away_arg;
}

static enum status connect_now(struct rstore *s, bool again, struct error *err)
{
    struct remote_options o = rconnect_options(s);
    o.again = again;
    enum status st = remote_open(&o, &s->conn, err);
    if (st == ST_OK)
        heed_others(s);
    return st;
}

void rstore_begin_read(struct rstore *s)
{
    if (s->begun)
        return;
    if (rtext(s, R_SNAPSHOT))
        remote_add_text(s->conn, rtext(s, R_SNAPSHOT));
    remote_add_text(s->conn, rtext(s, R_BEGIN_READ));
    s->begun = true;
}

/* A new connection: is it what it should be, and may we have the tables? */
static enum status enter_again(struct rstore *s, struct error *err)
{
    enum status st = remote_schema_require(s->conn, err); /* it may have been migrated meanwhile */
    if (st == ST_OK && !s->pos.replica)
        st = rgalera_connected(s, err);
    if (st == ST_OK && s->shared && !rgalera(s))
        st = rposition_enter(s, !s->pos.replica, err);
    if (st != ST_OK)
        snprintf(s->pos.why, sizeof s->pos.why, "%s", err->text);
    return st == ST_OK && !s->pos.replica ? rlock_again(s, err) : st;
}

/* A new connection in the place of a lost one. */
static enum status reconnect(struct rstore *s, struct error *err)
{
    enum status st;
    if (!s->connecting && clock_mono_us() < s->retry_at)
        return error_set(err, ST_IO, "%s", s->pos.why[0] ? s->pos.why : "the database cannot be reached");
    if (!rconnect_try(s, &st, err)) {
        error_set(err, ST_IO, "the database does not answer yet");
        return ST_IO;
    }
    assert(st != ST_OK || s->conn);
    s->pos.why[0] = '\0';
    if (st == ST_OK)
        st = enter_again(s, err);
    if (st == ST_OK) {
        s->backoff_ms = BACKOFF_MIN_MS;
        s->reconnects++;
        heed_others(s);
        return ST_OK;
    }
    url_turn_hosts(s->url); /* one that is there and hangs up, or will not do, keeps us from no other */
    drop_connection(s);
    s->retry_at = clock_mono_us() + (int64_t)s->backoff_ms * 1000;
    s->backoff_ms = s->backoff_ms * 2 < BACKOFF_MAX_MS ? s->backoff_ms * 2 : BACKOFF_MAX_MS;
    return st;
}

enum status rstore_connected(struct rstore *s, struct error *err)
{
    if (s->conn && !s->conn->lost) {
        if (s->brief.on)
            return rbrief_widen(s, err);
        if (s->snapshots && s->asked == TXN_READ)
            rstore_begin_read(s);
        return still_good(s, err);
    }
    if (s->asked != TXN_NONE) {
        s->failed = ST_IO;
        return error_set(err, ST_IO, "the connection to the database was lost");
    }
    if (s->conn)
        drop_connection(s);
    enum status st = reconnect(s, err);
    assert(st != ST_OK || s->conn);
    return st;
}

/* ---- transactions ---- */

/* When the lease has run out the database is asked whether the tables are still ours. That its answer may
   come late does not matter: they were, at a moment after the requests that wait for it had come. */
static enum status do_confirm(struct store *base, struct error *err)
{
    struct rstore *s = rstore_of(base);
    if (s->peeks)
        return rlock_confirm(s, err);
    if (!s->lease || lease_holds(s->lease, clock_boot_us()))
        return ST_OK;
    if (s->conn && !remote_idle(s->conn))
        drop_connection(s);
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    remote_add_text(s->conn, "SELECT 1");
    return rstore_run(s, err);
}

static void do_reconnect(struct store *base)
{
    if (rstore_of(base)->conn)
        drop_connection(rstore_of(base));
}

static void only_read(struct rstore *s, bool on)
{
    s->pos.replica = s->base.replica = on;
}

static void do_rollback(struct store *base);

static enum status begin_ours(struct rstore *s, struct error *err)
{
    rstore_begin_write(s);
    enum status st = rlock_keep(s, err);
    if (st != ST_OK)
        do_rollback(&s->base);
    return st;
}

static enum status do_begin(struct store *base, enum store_txn kind, const struct store_declared *d,
                            bool *ret_changed, struct error *err)
{
    struct rstore *s = rstore_of(base);
    if (rposition_promoted(s)) {
        log_info("the database can be written to now", "place=\"%s\"", s->conn ? s->conn->place : "");
        only_read(s, false);
        drop_connection(s);
    }
    if (s->pos.replica && kind != STORE_READ)
        return error_set(err, ST_READONLY, READ_ONLY_REPLICA);
    if (s->conn && (!remote_idle(s->conn) || !rgalera_well(s)))
        drop_connection(s);
    enum status st = rstore_connected(s, err);
    if (st == ST_OK && !s->fenced) /* else its owner does that */
        st = do_confirm(base, err);
    if (st != ST_OK)
        return st;
    assert(s->conn);
    if (ret_changed)
        *ret_changed = s->other || s->shared;
    s->other = s->dirty = s->appeared = s->mark.on = false;
    s->failed = ST_OK;
    if (!s->retrying)
        s->give_up_us = clock_mono_us() + (int64_t)s->timeout_ms * 1000;
    s->retrying &= kind == STORE_READ; /* a read meanwhile does not begin the writer's time anew */
    s->asked = kind == STORE_READ ? TXN_READ : kind == STORE_WRITE ? TXN_WRITE : TXN_LAZY;
    if (s->shared && (st = rshared_begin(s, kind != STORE_READ, d, err)) != ST_OK)
        s->asked = TXN_NONE;
    return s->applies && kind != STORE_READ ? begin_ours(s, err) : st;
}

void rstore_begin_write(struct rstore *s)
{
    if (s->begun)
        return;
    if (rgalera(s))
        rgalera_begin(s);
    else
        remote_add_text(s->conn, rtext(s, R_BEGIN));
    if (s->soon || s->asked == TXN_LAZY)
        remote_add_text(s->conn, rtext(s, R_SOON));
    s->begun = true;
}

/* The end of a transaction that changed nothing: nothing depends on it. But of one that could have written,
   what it has seen is asked for behind it, where positions are wanted. */
static void end_unchanged(struct rstore *s)
{
    struct error ignored;
    remote_add_text(s->conn, "ROLLBACK");
    if (s->asked == TXN_READ || !s->pos.wanted || s->pos.replica) {
        remote_post(s->conn);
        return;
    }
    rposition_commit(s);
    if (rstore_run(s, &ignored) == ST_OK)
        rposition_committed(s);
}

static void do_rollback(struct store *base)
{
    struct rstore *s = rstore_of(base);
    struct error ignored;
    s->next_number = -1;
    s->told_valid = s->brief.on = s->brief.recounted = false;
    s->mapped &= !s->dirty;
    s->dropped_to = 0;
    s->dropped = -1;
    s->careful |= s->failed == ST_CONFLICT;
    bool guarded = s->begun && s->conn && s->galera && s->galera->guarded;
    if (s->begun && s->conn && !guarded && !s->dirty && s->failed == ST_OK) {
        end_unchanged(s);
    } else if (s->begun && s->conn) {
        /* What was queued may fail, and the rollback behind it is not run then. */
        for (int i = 0; i < 2 && !s->conn->lost; i++) {
            if (guarded)
                rgalera_rollback(s);
            else
                remote_add_text(s->conn, "ROLLBACK");
            if (rstore_run(s, &ignored) == ST_OK)
                break;
            s->conn->lost |= guarded && i > 0; /* in which state it is cannot be told */
        }
    }
    if (guarded)
        s->galera->guarded = false;
    if (s->failed == ST_READONLY && s->pos.use == USE_TO_READ_OF_REPLICA && s->conn) {
        only_read(s, true); /* it has become a replica again */
        drop_connection(s);
    }
    s->begun = s->brief.wrote = false;
    s->failed = ST_OK;
    s->asked = TXN_NONE;
}

/* The changes that are still queued, and COMMIT. */
static enum status send_commit(struct rstore *s, struct error *err)
{
    if (s->galera && s->galera->guarded)
        return rgalera_commit(s, err);
    rwake_tell(s);
    int64_t done = -1;
    struct request commit = {.text = "COMMIT", .ret_changed = &done};
    remote_add(s->conn, &commit);
    rposition_commit(s);
    s->conn->patient = true; /* given up, it might have been made or not */
    enum status st = rstore_run(s, err);
    s->conn->patient = false;
    if (done >= 0 && (st == ST_IO || st == ST_BUSY))
        st = ST_OK; /* it was answered: what failed is the question behind it */
    if (st == ST_OK)
        rposition_committed(s);
    if (s->conn->lost && st == ST_IO) {
        struct error why = *err;
        st = error_set(err, ST_UNKNOWN,
                       "the connection was lost at the commit, whether it was made is unknown: %.120s",
                       why.text);
    }
    return st;
}

static enum status do_commit(struct store *base, struct error *err)
{
    struct rstore *s = rstore_of(base);
    if (s->asked == TXN_NONE)
        return error_set(err, ST_INTERNAL, "commit without a transaction");
    if (s->brief.on && !s->begun) {
        enum status proven = rloose_prove(s, err);
        do_rollback(base);
        return proven;
    }
    s->told_valid = s->brief.on = s->brief.recounted = false;
    if (!s->begun) {
        s->asked = TXN_NONE;
        return ST_OK;
    }
    enum status st = still_good(s, err);
    if (st != ST_OK) {
        do_rollback(base);
        return st;
    }
    st = send_commit(s, err);
    if (st == ST_OK) {
        s->begun = s->careful = false;
        s->asked = TXN_NONE;
        if (s->brief.wrote)
            rloose_committed(s);
        return ST_OK;
    }
    do_rollback(base);
    return st;
}

/* Runs fn in the running transaction, or in one of its own. */
static enum status in_transaction(struct rstore *s,
                                  enum status (*fn)(struct rstore *, void *, struct error *), void *arg,
                                  struct error *err)
{
    bool own = s->asked == TXN_NONE;
    enum status st = ST_OK;
    if (own)
        st = do_begin(&s->base, STORE_WRITE, NULL, NULL, err);
    else
        st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    s->dirty = true;
    st = fn(s, arg, err);
    if (!own)
        return st;
    if (st == ST_OK)
        return do_commit(&s->base, err);
    do_rollback(&s->base);
    return st;
}

/* ---- larder_meta ---- */

void rstore_add_get_meta(struct rstore *s, const char *name, int64_t *ret)
{
    const struct param p[] = {param_bytes(slice_str(name))};
    struct request r = {.text = rtext(s, R_GET_META), .params = p, .nparams = 1, .fn = take_i64, .arg = ret};
    *ret = -1;
    remote_add(s->conn, &r);
}

static enum status no_meta(const char *name, struct error *err)
{
    return error_set(err, ST_CORRUPT, "larder_meta has no %s", name);
}

enum status rstore_get_meta(struct rstore *s, const char *name, int64_t *ret, struct error *err)
{
    rstore_add_get_meta(s, name, ret);
    enum status st = rstore_run(s, err);
    return st == ST_OK && *ret < 0 ? no_meta(name, err) : st;
}

void rstore_add_set_meta(struct rstore *s, const char *name, const char *value)
{
    const struct param p[] = {param_bytes(slice_str(name)), param_bytes(slice_str(value))};
    struct request r = {.text = rtext(s, R_SET_META), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
}

struct id_block {
    int64_t n, first;
};

static enum status take_ids(struct rstore *s, void *arg, struct error *err)
{
    struct id_block *b = arg;
    const struct param p[] = {param_i64(b->n)};
    struct request r = {.text = rtext(s, R_TAKE_IDS), .params = p, .nparams = 1};
    remote_add(s->conn, &r);
    enum status st = rstore_get_meta(s, "next_id", &b->first, err);
    b->first -= b->n;
    return st;
}

static enum status do_reserve_ids(struct store *base, int64_t n, int64_t *ret_first, struct error *err)
{
    struct id_block b = {.n = n};
    enum status st = in_transaction(rstore_of(base), take_ids, &b, err);
    if (st == ST_OK)
        *ret_first = b.first;
    return st;
}

/* ---- databases ---- */

enum status rstore_take_db(void *arg, const struct remote_row *row)
{
    struct rlisting *l = arg;
    if (l->found < l->n && remote_i64(row, 0) == (int64_t)l->found) {
        l->dbs[l->found] = (struct db_row){
            .db = (uint32_t)l->found,
            .number = (uint32_t)remote_i64(row, 1),
            .keys = remote_i64(row, 2),
            .expires = remote_i64(row, 3),
        };
        l->found++;
    }
    if (row->n > 4)
        l->now_us = remote_i64(row, 4);
    return ST_OK;
}

static enum status do_load_dbs(struct store *base, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rlisting l = {.dbs = dbs, .n = n};
    int64_t next;
    if (s->told_valid && n <= s->databases) { /* read when the transaction began */
        if (s->brief.recounted)
            memcpy(s->told, s->brief.fresh, s->databases * sizeof *s->told);
        s->brief.recounted = false;
        memcpy(dbs, s->told, n * sizeof *dbs);
        s->mapped = s->shared;
        *ret_next_number = (uint32_t)s->next_number;
        return ST_OK;
    }
    if (s->pos.replica) { /* it may be away: each transaction brings them */
        memset(dbs, 0, n * sizeof *dbs);
        *ret_next_number = 0;
        return ST_OK;
    }
    enum status st = rstore_connected(s, err);
    if (st == ST_OK && s->told_valid) /* that has just read them */
        return do_load_dbs(base, dbs, n, ret_next_number, err);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_LIST_DBS), .fn = rstore_take_db, .arg = &l};
    remote_add(s->conn, &r);
    rstore_add_get_meta(s, "next_db_number", &next);
    st = rstore_run(s, err);
    if (st == ST_OK && l.found < n)
        st = error_set(err, ST_CORRUPT, "larder_db has no row for database %zu", l.found);
    if (st == ST_OK && next < 0)
        st = no_meta("next_db_number", err);
    if (st != ST_OK)
        return st;
    s->next_number = next;
    *ret_next_number = (uint32_t)next;
    return ST_OK;
}

/* Gives every logical database below n a row and a number, the new ones an unused one. */
static enum status create_dbs(struct rstore *s, uint32_t n, struct error *err)
{
    int64_t next = 0;
    enum status st = rstore_get_meta(s, "next_db_number", &next, err);
    for (uint32_t db = 0; st == ST_OK && db < n; db++) {
        int64_t added = 0;
        const struct param p[] = {param_i64(db), param_i64(next)};
        struct request r = {.text = rtext(s, R_NEW_DB), .params = p, .nparams = 2, .ret_changed = &added};
        remote_add(s->conn, &r);
        st = rstore_run(s, err);
        next += added > 0;
    }
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, next);
    rstore_add_set_meta(s, "next_db_number", text);
    return st;
}

/* ---- opening and closing ---- */

static enum status set_up(struct rstore *s, void *arg, struct error *err)
{
    bool shared = *(bool *)arg;
    if (rgalera(s)) { /* others may be doing the same */
        rgalera_lock_all(s);
        rgalera_set_up(s);
    } else {
        remote_add_text(s->conn, rtext(s, R_LOCK_ALL));
    }
    enum status st = create_dbs(s, s->databases, err);
    if (st != ST_OK)
        return st;
    if (!shared) {
        rstore_add_set_meta(s, "owner", s->owner);
        remote_add_text(s->conn, rtext(s, R_FOLD_COUNTS));
        remote_add_text(s->conn, rtext(s, R_CLEAR_COUNTS));
    }
    return rstore_run(s, err);
}

enum status rstore_set_up(struct rstore *s, struct error *err)
{
    bool shared = s->shared, soon = s->soon;
    s->shared = false; /* what begins a shared transaction is not there yet */
    s->soon = false;   /* a crash must not take back who owns the tables */
    enum status st = in_transaction(s, set_up, &shared, err);
    s->shared = shared;
    s->soon = soon;
    s->read_only = st != ST_OK;
    return st;
}

/* This server gives the tables up: `owner` becomes empty, unless the journal could not be applied. */
static enum status leave(struct rstore *s, struct error *err)
{
    bool pending;
    enum status st = rjournal_pending(s, &pending, err);
    if (st != ST_OK || pending)
        return st;
    rstore_add_set_meta(s, "owner", "");
    return rstore_run(s, err);
}

static void do_close(struct store *base)
{
    struct rstore *s = rstore_of(base);
    struct error ignored;
    do_rollback(base);
    if (s->conn && !s->read_only && !s->shared && !s->conn->lost)
        (void)(leave(s, &ignored) == ST_OK);
    remote_close(s->conn);
    rconnect_release(s);
    rgalera_release(s);
    arena_release(&s->arena);
    buf_release(&s->text);
    mem_free(s->told);
    mem_free(s->mark.told);
    mem_free(s->pos.kept);
    mem_free(s->brief.keys);
    mem_free(s->brief.seen);
    mem_free(s->classes.at);
    mem_free(s->again.at);
    mem_free(s->brief.fresh);
    mem_free(s->url);
    mem_free(s);
}

/* A database without tables gets them, if this role may, however long it takes; older ones are for `larder
   migrate`. So is every change in a Galera cluster: nothing keeps servers on other nodes from doing the same
   at the same time, and statements that change a schema come to a standstill there when they meet. */
static enum status ensure_schema(struct rstore *s, struct error *err)
{
    int64_t version, from;
    bool mended;
    enum status st = remote_schema_version(s->conn, &version, err);
    if (st != ST_OK || version != 0)
        return st != ST_OK ? st : remote_schema_ready(s->conn, err);
    if (rgalera(s))
        return remote_schema_require(s->conn, err);
    st = remote_schema_make(s->url, &from, &mended, err);
    return st == ST_DENIED ? remote_schema_require(s->conn, err) : st;
}

static const struct store_ops rstore_ops;
static const struct shared_ops rshared_ops;
static const struct journal_rows_ops rjournal_ops;

static void share(struct rstore *s, bool shared)
{
    s->shared = s->base.contended = shared;
    s->base.shared = shared ? &rshared_ops : NULL;
    s->told = mem_zalloc((s->databases + 1) * sizeof *s->told);
}

/* A session on a replica is connected when it can be. */
static enum status open_replica(struct rstore *s, const struct store_options *o, struct error *err)
{
    if (remote_is_exclusive(o->url))
        return error_set(err, ST_INVALID, "mode=exclusive: a replica serves readers of shared tables");
    only_read(s, true);
    s->pos.primary = o->beside;
    s->base.replicated = &rposition_ops;
    share(s, true);
    rconnect_start(s);
    return ST_OK;
}

/* Of a server that only reads: it writes nothing, not even at the start. */
static enum status open_reader(struct rstore *s, const struct store_options *o, struct error *err)
{
    only_read(s, true);
    s->pos.use = o->use;
    s->base.replicated = &rposition_ops;
    share(s, true);
    enum status st = connect_now(s, o->joins, err);
    if (st == ST_OK && s->conn->exclusive)
        st = error_set(err, ST_INVALID, "mode=exclusive: a server that only reads serves shared tables");
    if (st == ST_OK && !o->joins)
        st = rproof_check(s, o->accept_untested, err);
    if (st == ST_OK)
        st = remote_schema_require(s->conn, err);
    return st == ST_OK ? rposition_enter(s, false, err) : st;
}

static enum status open_connected(struct rstore *s, const struct store_options *o, struct error *err)
{
    enum status st = connect_now(s, o->joins || o->beside, err);
    if (st != ST_OK)
        return st;
    share(s, !s->conn->exclusive && !o->read_only);
    bool first = !o->read_only && !o->joins && !o->beside;
    st = rgalera_connected(s, err);
    if (st == ST_OK && first)
        st = rproof_check(s, o->accept_untested, err);
    if (st == ST_OK)
        st = o->read_only || o->joins || o->beside ? remote_schema_require(s->conn, err)
                                                   : ensure_schema(s, err);
    if (st == ST_OK && o->beside)
        s->features = rstore_of(o->beside)->features;
    else if (st == ST_OK && !o->read_only)
        st = rproof_try(s, first, o->accept_untested, err);
    if (st == ST_OK && o->read_only && !o->beside)
        st = remote_verify(s->conn, REMOTE_SCHEMA_VERSION, false, err);
    if (st == ST_OK && s->shared && !rgalera(s)) {
        s->base.replicated = &rposition_ops;
        st = rposition_enter(s, true, err);
    }
    if (st == ST_OK && o->beside) {
        snprintf(s->owner, sizeof s->owner, "%s", rstore_of(o->beside)->owner);
        s->lease = o->applies ? NULL : rstore_of(o->beside)->lease;
    }
    if (st == ST_OK && (!o->read_only || o->beside))
        st = o->joins ? rlock_again(s, err) : rlock_enter(s, err);
    if (o->joins)
        s->read_only = st != ST_OK;
    return st;
}

enum status remote_store_open(const struct store_options *o, struct store **ret, struct error *err)
{
    struct rstore *s = mem_zalloc(sizeof *s);
    s->base.ops = &rstore_ops;
    s->base.journal_rows = &rjournal_ops;
    s->base.far = true;
    s->url = mem_strdup(o->url);
    s->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
    s->busy_ms = o->busy_ms;
    s->away = o->away;
    s->away_arg = o->away_arg;
    s->lease_ms = o->lease_ms;
    s->replay = o->replay;
    s->backoff_ms = BACKOFF_MIN_MS;
    s->databases = o->databases;
    s->soon = o->durability != DURABILITY_ALWAYS;
    s->next_number = s->dropped = -1;
    s->read_only = true; /* until it is ours to write */
    s->snapshots = o->read_only;
    s->features = REMOTE_FEATURES_ALL;
    s->beside = o->beside && !o->replica;
    s->peeks = o->peeks;
    s->applies = o->applies;
    s->fenced = s->beside || o->journaled;
    enum status st = o->replica            ? open_replica(s, o, err)
                     : o->use != USE_FULLY ? open_reader(s, o, err)
                                           : open_connected(s, o, err);
    if (st != ST_OK) {
        do_close(&s->base);
        return st;
    }
    *ret = &s->base;
    return ST_OK;
}

/* ---- the rest ---- */

static void do_counters(const struct store *base, struct store_info *add_to)
{
    const struct rstore *s = (const struct rstore *)base;
    add_to->reconnects += s->reconnects;
    add_to->round_trips += s->round_trips + (s->conn ? s->conn->round_trips : 0);
    add_to->conflicts += s->conflicts;
}

static enum status do_info(struct store *base, struct store_info *ret, struct error *err)
{
    struct rstore *s = rstore_of(base);
    int64_t two[2] = {0, 0};
    enum status st = rstore_connected(s, err);
    *ret = (struct store_info){0};
    do_counters(base, ret);
    if (st != ST_OK)
        return st;
    struct request r = {.text = rtext(s, R_SIZE), .fn = rread_two, .arg = two};
    remote_add(s->conn, &r);
    st = rstore_run(s, err);
    ret->bytes = (uint64_t)two[0];
    ret->free_bytes = (uint64_t)two[1];
    memcpy(ret->engine, s->conn->server, sizeof ret->engine);
    return st;
}

static enum status do_set_durability(struct store *base, enum durability d, struct error *err)
{
    (void)err;
    rstore_of(base)->soon = d != DURABILITY_ALWAYS;
    return ST_OK;
}

static enum status touch(struct rstore *s, void *arg, struct error *err)
{
    char text[24];
    (void)arg;
    (void)err;
    remote_add_text(s->conn, rtext(s, R_NOW));
    snprintf(text, sizeof text, "%" PRId64, clock_wall_us());
    rstore_add_set_meta(s, "synced", text);
    return ST_OK;
}

/* A commit that is durable, and with it all before it. */
static enum status do_sync(struct store *base, struct error *err)
{
    struct rstore *s = rstore_of(base);
    bool soon = s->soon;
    if (s->pos.replica) /* it has written nothing */
        return ST_OK;
    s->soon = false;
    enum status st = in_transaction(s, touch, NULL, err);
    s->soon = soon;
    return st;
}

static uint64_t do_connection(const struct store *base)
{
    return ((const struct rstore *)base)->reconnects;
}

static const struct store_ops rstore_ops = {
    .close = do_close,
    .begin = do_begin,
    .get_keys = rread_get_keys,
    .get_items = rread_get_items,
    .scan_keys = rscan_keys,
    .scan_items = rscan_items,
    .count_items = rread_count_items,
    .due_rows = rread_due_rows,
    .count_dead = rread_count_dead,
    .count_keys = rread_count_keys,
    .load_dbs = do_load_dbs,
    .reserve_ids = do_reserve_ids,
    .apply = rapply,
    .mark = rmark,
    .undo = rmark_undo,
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = rsweep,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
    .connection = do_connection,
};

static const struct shared_ops rshared_ops = {
    .now_us = rshared_now_us,
    .brief = rbrief_is_on,
    .listen = rwake_listen,
    .notified = rwake_notified,
    .counters = do_counters,
    .read_whole = rread_whole,
};

static const struct journal_rows_ops rjournal_ops = {
    .add = rjournal_add,
    .each = rjournal_each,
    .applied = rjournal_applied,
    .drop = rjournal_drop,
    .forget = rjournal_forget,
    .state = rjournal_state,
    .get_seqs = rread_get_seqs,
    .confirm = do_confirm,
    .reconnect = do_reconnect,
    .get_word = rjournal_get_word,
    .set_word = rjournal_set_word,
};
