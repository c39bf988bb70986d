/* A database server that was away and is back: is it where we left it?

   It may have gone back. A crash takes commits with it that were not waited for; a standby that takes over
   may lack more. Either way it comes back as it was after one of our commits, with all before it and nothing
   behind it, and says which: a group leaves its number, in its row of the journal or, when it went straight
   into the tables, as larder_meta's `applied`.

   What it may lack without harm is what the thread has kept: groups that are not yet in the tables by a
   commit that was waited for (journal.h). They are written again, in the same order and the same way, before
   anything else is written or read. If it lacks more, memory cannot make up for it: acknowledged writes are
   gone, and nothing may be built upon what memory remembers of them (ST_LOST). */
#include "journal/reconcile.h"

#include "base/clock.h"
#include "base/log.h"
#include "journal/replay.h"
#include "journal/writer.h"

static int64_t position(const struct journal_state *now)
{
    return now->applied > now->last ? now->applied : now->last;
}

/* ---- what was kept ---- */

void reconcile_keep(struct journal_store *s, struct journal_group *g)
{
    struct journal_kept *k = &s->kept;
    g->next = NULL;
    *(k->tail ? &k->tail->next : &k->first) = g;
    k->tail = g;
}

void reconcile_release(struct journal_store *s)
{
    struct journal_kept *k = &s->kept;
    for (struct journal_group *g = k->first; g; g = k->first) {
        if (g->last > k->synced || (!g->direct && g->last > locked(s)->applied))
            break;
        k->safe = g->last;
        k->first = g->next;
        journal_group_free(g);
    }
    if (!k->first)
        k->tail = NULL;
}

/* ---- the thread's side ---- */

static enum status begin(struct journal_store *s, enum store_txn kind, uint64_t connection, struct error *err)
{
    enum status st = store_begin(s->writer, kind, NULL, NULL, err);
    if (st != ST_OK || store_connection(s->writer) == connection)
        return st;
    store_rollback(s->writer);
    return writer_connection_lost(err);
}

static enum status end(struct journal_store *s, enum status st, struct error *err)
{
    if (st == ST_OK)
        return store_commit(s->writer, err);
    store_rollback(s->writer);
    return st;
}

static enum status read_state(struct journal_store *s, uint64_t connection, struct journal_state *ret,
                              struct error *err)
{
    enum status st = begin(s, STORE_READ, connection, err);
    if (st != ST_OK)
        return st;
    st = store_journal_state(s->writer, ret, err);
    store_rollback(s->writer);
    return st;
}

struct replay {
    struct memtable *mem;
    int64_t from, to;
    struct error *err;
};

static enum status take_row(void *arg, int64_t seq, struct slice row)
{
    struct replay *r = arg;
    return seq > r->from && seq <= r->to ? replay_row(r->mem, seq, row, r->err) : ST_OK;
}

/* The journal is there and what was applied of it is not: memory has nothing of it any more. Rows that memory
   still has are left to it, because it would not take back what it never saw in the tables. */
static enum status apply_rows(struct journal_store *s, int64_t from, uint64_t connection, struct error *err)
{
    struct replay r = {.mem = memtable_new(0), .from = from, .to = s->kept.safe, .err = err};
    enum status st = begin(s, STORE_WRITE, connection, err);
    if (st == ST_OK) {
        st = store_journal_each(s->writer, take_row, &r, err);
        if (st == ST_OK)
            st = replay_apply(s->writer, r.mem, err);
        if (st == ST_OK)
            st = store_journal_applied(s->writer, s->kept.safe, err);
        st = end(s, st, err);
    }
    memtable_free(r.mem);
    return st;
}

static enum status write_again(struct journal_store *s, struct journal_group *g, uint64_t connection,
                               struct error *err)
{
    enum status st = begin(s, STORE_WRITE, connection, err);
    if (st != ST_OK)
        return st;
    st = g->direct ? writer_write_direct(s, g, err)
                   : store_journal_add(s->writer, g->last, buf_slice(&g->row), err);
    return end(s, st, err);
}

static enum status gone(const struct journal_store *s, int64_t at, struct error *err)
{
    return error_set(err, ST_LOST,
                     "the database has gone back to change set %lld, %lld were acknowledged and are in the"
                     " tables no more: start this server again to serve what is left",
                     (long long)at, (long long)writer_durable(s));
}

enum status reconcile_writer(struct journal_store *s, struct error *err)
{
    uint64_t connection = store_connection(s->writer);
    struct journal_state now = {0};
    size_t again = 0;
    enum status st = read_state(s, connection, &now, err);
    if (st != ST_OK)
        return st;
    int64_t at = position(&now);
    if (at < s->kept.safe)
        return gone(s, at, err);
    if (now.applied < s->kept.safe)
        st = apply_rows(s, now.applied, connection, err);
    for (struct journal_group *g = s->kept.first; g && st == ST_OK; g = g->next) {
        if (g->last <= at)
            continue;
        st = write_again(s, g, connection, err);
        again++;
    }
    if (st != ST_OK)
        return st;
    if (s->kept.synced > at) {
        s->kept.synced = at;
        s->kept.unsynced_us = clock_mono_us();
    }
    if (again || now.applied < s->kept.safe)
        log_warning("the database had lost commits that were not durable yet, and has them again",
                    "groups=%zu", again);
    s->thread.dropping = true;
    s->kept.proven = connection;
    return ST_OK;
}

/* ---- the others' side ---- */

/* Asks the thread to look at its connection now. */
static void hurry(struct journal_store *s)
{
    journal_lock(s);
    locked(s)->looked_us = 0;
    pthread_cond_signal(&s->lock.work);
    journal_unlock(s);
}

/* Whether the database of another session has everything that memory takes for written. */
static enum status is_level(struct journal_store *s, struct store *session, struct error *err)
{
    struct journal_state now = {0};
    journal_lock(s);
    int64_t applied = locked(s)->applied, durable = locked(s)->durable;
    journal_unlock(s);
    enum status st = store_journal_state(session, &now, err);
    if (st != ST_OK || (now.applied >= applied && position(&now) >= durable))
        return st;
    hurry(s);
    return error_set(err, ST_IO, "the database has gone back, and is being brought up to date");
}

enum status reconcile_reader(struct journal_store *s, struct error *err)
{
    uint64_t connection = store_connection(s->reader);
    enum status st = is_level(s, s->reader, err);
    if (st != ST_OK)
        return st;
    s->owner.reader_proven = connection;
    gaps_clear(s->owner.layers.gaps);
    return ST_OK;
}

enum status reconcile_applier(struct journal_store *s, struct error *err)
{
    enum status st = is_level(s, s->third, err);
    if (st == ST_OK)
        s->applier.proven = store_connection(s->third);
    return st;
}
