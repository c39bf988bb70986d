/* A place in a transaction that it can be brought back to: a savepoint.

   PostgreSQL gives up the locks that were taken behind a savepoint when it is returned to; on a node of a
   Galera cluster so goes the trace that a lock is there. A key that was locked since may then be another
   server's, though what was read of it has been used: that is told as a conflict, and the transaction that
   runs the same again locks these keys first, before the mark. Key rows that were locked as rows only, for
   applications, are read again by the caller. */
#include "base/clock.h"
#include "base/mem.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_session.h"

static size_t told_bytes(const struct rstore *s)
{
    return s->shared ? s->databases * sizeof *s->told : 0;
}

enum status rmark(struct store *base, struct error *err)
{
    struct rstore *s = rstore_of(base);
    struct rmark *m = &s->mark;
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    if (m->on)
        remote_add_text(s->conn, "RELEASE SAVEPOINT larder_mark");
    remote_add_text(s->conn, "SAVEPOINT larder_mark");
    m->on = true;
    m->next_number = s->next_number;
    m->everything = s->everything;
    m->told_valid = s->told_valid;
    m->nclasses = s->classes.n;
    if (told_bytes(s)) {
        m->told = mem_realloc(m->told, told_bytes(s));
        memcpy(m->told, s->told, told_bytes(s));
    }
    if (rgalera(s))
        rgalera_mark(s);
    return ST_OK;
}

enum status rmark_undo(struct store *base, struct error *err)
{
    struct rstore *s = rstore_of(base);
    const struct rmark *m = &s->mark;
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    remote_add_text(s->conn, "ROLLBACK TO SAVEPOINT larder_mark");
    if ((st = rstore_run(s, err)) != ST_OK)
        return st;
    bool kept = m->everything == s->everything && m->nclasses == s->classes.n;
    if (rgalera(s))
        kept &= rgalera_undo(s);
    s->next_number = m->next_number;
    s->told_valid = m->told_valid;
    if (told_bytes(s))
        memcpy(s->told, m->told, told_bytes(s));
    if (kept)
        return ST_OK;
    st = s->failed = clock_mono_us() >= s->give_up_us ? ST_BUSY : ST_CONFLICT;
    if (st == ST_CONFLICT)
        rshared_conflict(s);
    return error_set(err, st, "keys that were not declared may be another server's now");
}
