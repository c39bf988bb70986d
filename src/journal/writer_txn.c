/* Transactions of the writer's session: the thread's, without the lock. */
#include "journal/reconcile.h"
#include "journal/writer.h"

/* What a session that reads sees of a transaction that writes. Not its commit alone: when the database's log
   starts over, which is before it, that looks like a change, too. */
void writer_writes_begin(struct journal_store *s)
{
    atomic_store(&s->atomics.committing, true);
}

void writer_writes_end(struct journal_store *s)
{
    atomic_fetch_add(&s->atomics.commits, 1);
    atomic_store(&s->atomics.committing, false);
}

static bool is_proven(const struct journal_store *s)
{
    return store_connection(s->writer) == s->kept.proven;
}

/* On a connection that was made in the place of a lost one. */
static enum status begin_again(struct journal_store *s, enum store_txn kind, bool *ret_others,
                               struct error *err)
{
    enum status st = reconcile_writer(s, err);
    if (st == ST_OK)
        st = store_begin(s->writer, kind, NULL, ret_others, err);
    if (st != ST_OK || is_proven(s))
        return st;
    store_rollback(s->writer);
    return writer_connection_lost(err);
}

enum status writer_begin(struct journal_store *s, enum store_txn kind, struct error *err)
{
    bool others = false;
    if (kind != STORE_READ)
        writer_writes_begin(s);
    enum status st = store_begin(s->writer, kind, NULL, &others, err);
    if (st == ST_OK && !is_proven(s)) {
        store_rollback(s->writer);
        st = begin_again(s, kind, &others, err);
    }
    if (st == ST_OK && others) {
        atomic_store(&s->atomics.others, true);
        s->thread.counts_doubtful = true;
    }
    if (st == ST_OK && s->thread.unanswered && kind != STORE_READ) {
        st = store_journal_forget(s->writer, writer_durable(s), writer_applied(s), err);
        if (st != ST_OK)
            store_rollback(s->writer);
    }
    if (st != ST_OK && kind != STORE_READ)
        writer_writes_end(s);
    return st;
}

enum status writer_end(struct journal_store *s, enum status st, struct error *err)
{
    if (st == ST_OK) {
        st = store_commit(s->writer, err);
        /* A conflict is how a row that was not there is told. */
        if (st == ST_OK || st == ST_UNKNOWN || st == ST_CONFLICT)
            s->thread.unanswered = s->base.far && st != ST_OK;
    } else {
        store_rollback(s->writer);
    }
    writer_writes_end(s);
    return st;
}

void writer_check_others(struct journal_store *s)
{
    struct error ignored;
    if (writer_begin(s, STORE_READ, &ignored) == ST_OK)
        store_rollback(s->writer);
}

bool writer_waits_for(const struct journal_store *s, enum store_txn kind)
{
    return kind == STORE_WRITE && s->kept.going_by == DURABILITY_ALWAYS;
}

enum status writer_sync(struct journal_store *s, struct error *err)
{
    enum status st = writer_begin(s, STORE_READ, err); /* the database is as we left it */
    if (st != ST_OK)
        return st;
    store_rollback(s->writer);
    st = store_sync(s->writer, err);
    return st == ST_OK && !is_proven(s) ? writer_connection_lost(err) : st;
}

void writer_synced(struct journal_store *s)
{
    s->kept.synced = locked(s)->durable;
    reconcile_release(s);
}
