/* A database server that was away and is back: is it where we left it?

   It may have gone back. A crash takes commits with it that nobody waited for; a standby that takes over may
   lack more. Either way it comes back as it was after one of our commits, with all before it and nothing
   behind it, and says which: a group leaves its number, in its row of the journal or, when it went straight
   into the tables, as larder_meta's `applied`.

   What it may lack without harm is what the thread has kept: groups that are not yet in the tables by a
   commit that was waited for (jstore.h). They are written again, in the same order and the same way, before
   anything else is written or read. If it lacks more, memory cannot make up for it: acknowledged writes are
   gone, and nothing may be built upon what memory remembers of them (ST_LOST). */
#include "base/clock.h"
#include "base/log.h"
#include "journal/encoding.h"
#include "journal/jstore.h"

static int64_t position(const struct journal_state *now)
{
    return now->applied > now->last ? now->applied : now->last;
}

static enum status changed_again(struct error *err)
{
    return error_set(err, ST_IO, "the connection to the database was lost");
}

/* ---- what was kept ---- */

void jback_keep(struct jstore *s, struct jgroup *g)
{
    g->next = NULL;
    if (s->kept_tail)
        s->kept_tail->next = g;
    else
        s->kept = g;
    s->kept_tail = g;
}

void jback_release(struct jstore *s)
{
    for (struct jgroup *g = s->kept; g; g = s->kept) {
        if (g->last > s->synced || (!g->direct && g->last > s->applied))
            break;
        s->safe = g->last;
        s->kept = g->next;
        jgroup_free(g);
    }
    if (!s->kept)
        s->kept_tail = NULL;
}

/* ---- the thread's side ---- */

static enum status begin(struct jstore *s, enum store_txn kind, uint64_t connection, struct error *err)
{
    enum status st = store_begin(s->writer, kind, NULL, err);
    if (st != ST_OK || store_connection(s->writer) == connection)
        return st;
    store_rollback(s->writer);
    return changed_again(err);
}

static enum status end(struct jstore *s, enum status st, struct error *err)
{
    if (st == ST_OK)
        return store_commit(s->writer, err);
    store_rollback(s->writer);
    return st;
}

static enum status read_state(struct jstore *s, uint64_t connection, struct journal_state *ret,
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
    return seq > r->from && seq <= r->to ? jrecover_row(r->mem, seq, row, r->err) : ST_OK;
}

/* The journal is there and what was applied of it is not: memory has nothing of it any more. Rows that memory
   still has are left to it, because it would not take back what it never saw in the tables. */
static enum status apply_rows(struct jstore *s, int64_t from, uint64_t connection, struct error *err)
{
    struct replay r = {.mem = memtable_new(0), .from = from, .to = s->safe, .err = err};
    enum status st = begin(s, STORE_WRITE, connection, err);
    if (st == ST_OK) {
        st = store_journal_each(s->writer, take_row, &r, err);
        if (st == ST_OK)
            st = jrecover_apply(s->writer, r.mem, err);
        if (st == ST_OK)
            st = store_journal_applied(s->writer, s->safe, err);
        st = end(s, st, err);
    }
    memtable_free(r.mem);
    return st;
}

static enum status write_again(struct jstore *s, struct jgroup *g, uint64_t connection, struct error *err)
{
    enum status st = begin(s, STORE_WRITE, connection, err);
    if (st != ST_OK)
        return st;
    st = g->direct ? jthread_write_direct(s, g, err)
                   : store_journal_add(s->writer, g->last, buf_slice(&g->row), err);
    return end(s, st, err);
}

static enum status gone(const struct jstore *s, int64_t at, struct error *err)
{
    return error_set(err, ST_LOST,
                     "the database has gone back to change set %lld, %lld were acknowledged and are in the"
                     " tables no more: start this server again to serve what is left",
                     (long long)at, (long long)s->durable);
}

enum status jback_catch_up(struct jstore *s, struct error *err)
{
    uint64_t connection = store_connection(s->writer);
    struct journal_state now = {0};
    size_t again = 0;
    enum status st = read_state(s, connection, &now, err);
    if (st != ST_OK)
        return st;
    int64_t at = position(&now);
    if (at < s->safe)
        return gone(s, at, err);
    if (now.applied < s->safe)
        st = apply_rows(s, now.applied, connection, err);
    for (struct jgroup *g = s->kept; g && st == ST_OK; g = g->next) {
        if (g->last <= at)
            continue;
        st = write_again(s, g, connection, err);
        again++;
    }
    if (st != ST_OK)
        return st;
    if (s->synced > at) {
        s->synced = at;
        s->unsynced_us = clock_mono_us();
    }
    if (again || now.applied < s->safe)
        log_warning("the database had lost commits that were not durable yet, and has them again",
                    "groups=%zu", again);
    if (s->apply) { /* slices of it may be gone, and nothing tells which */
        mem_apply_free(s->apply);
        s->apply = mem_apply_new(s->frozen);
        s->sorting = true;
        s->said = s->saying = false;
    }
    s->dropping = true;
    s->proven = connection;
    return ST_OK;
}

/* ---- the owner's side ---- */

/* Asks the thread to look at its connection now. */
static void hurry(struct jstore *s)
{
    pthread_mutex_lock(&s->lock);
    s->looked_us = 0;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}

enum status jback_reader(struct jstore *s, struct error *err)
{
    uint64_t connection = store_connection(s->reader);
    struct journal_state now = {0};
    pthread_mutex_lock(&s->lock);
    int64_t applied = s->applied, durable = s->durable;
    pthread_mutex_unlock(&s->lock);
    enum status st = store_journal_state(s->reader, &now, err);
    if (st != ST_OK)
        return st;
    if (now.applied < applied || position(&now) < durable) {
        hurry(s);
        return error_set(err, ST_IO, "the database has gone back, and is being brought up to date");
    }
    s->reader_proven = connection;
    return ST_OK;
}
