/* Groups: the thread takes the first one off the queue, writes it as one row of the journal (or straight into
   the tables), in one transaction, and says what became of it. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/encoding.h"
#include "journal/reconcile.h"
#include "journal/replay.h"
#include "journal/writer.h"

#define LOG_BLOCK ((size_t)4096) /* a record of the log begins at one, with a head (redo.h) */
#define LOG_HEAD  72

/* ---- without the lock ---- */

/* The same row may be there several times: a memtable finds out what it is in the end. */
enum status writer_write_direct(struct journal_store *s, const struct journal_group *g, struct error *err)
{
    struct memtable *m = s->thread.direct;
    mem_mark from = memtable_mark(m);
    enum status st = replay_row(m, g->last, buf_slice(&g->row), err);
    struct mem_apply *a = mem_apply_new(m);
    struct changes c;
    int64_t next_id;
    while (mem_apply_sort(a, WRITER_MANY_ROWS))
        ;
    while (st == ST_OK && mem_apply_next(a, WRITER_MANY_ROWS, &c, &next_id)) {
        c.next_id = next_id;
        c.replay = true;
        st = store_apply(s->writer, &c, err);
    }
    mem_apply_free(a);
    memtable_leave(m, from, memtable_mark(m));
    return st == ST_OK && s->base.far ? store_journal_applied(s->writer, g->last, err) : st;
}

enum status writer_doubt_counts(struct journal_store *s, struct error *err)
{
    struct journal_thread *t = &s->thread;
    uint32_t next;
    if (!t->counts_doubtful)
        return ST_OK;
    struct changes c = {.dbs = t->dbs, .ndbs = t->ndbs};
    enum status st = store_load_dbs(s->writer, t->dbs, t->ndbs, &next, err);
    for (size_t i = 0; i < t->ndbs; i++)
        t->dbs[i].keys = t->dbs[i].expires = -1;
    t->counts_doubtful = false;
    return st == ST_OK ? store_apply(s->writer, &c, err) : st;
}

static enum status write_group(struct journal_store *s, struct journal_group *g, bool direct,
                               struct error *err)
{
    enum status st = writer_begin(s, writer_kind_of(g), err);
    if (st != ST_OK)
        return st;
    size_t n = g->row.len;
    journal_end(&g->row);
    if (direct)
        st = writer_write_direct(s, g, err);
    else
        st = store_journal_add(s->writer, g->last, buf_slice(&g->row), err);
    if (st == ST_OK)
        st = writer_drop_rows(s, err);
    if (st == ST_OK)
        st = writer_doubt_counts(s, err);
    if (st == ST_OK && s->thread.records)
        st = run_record(s->writer, &s->run, g->last, err);
    st = writer_end(s, st, err);
    if (st != ST_OK)
        g->row.len = n; /* it may be tried again */
    return st;
}

/* ---- holding the lock ---- */

void writer_written(struct journal_store *s, struct journal_group *g, bool direct)
{
    struct journal_shared *l = locked(s);
    l->written_us = l->looked_us = clock_mono_us();
    histogram_add(&s->atomics.commit_us, (uint64_t)(l->written_us - g->born_us));
    int64_t before = l->durable;
    l->durable = g->last;
    if (direct)
        l->in_tables = g->last;
    VEC_PUSH(l->written, l->nwritten, l->cap_written) = (struct written_group){g->last, direct};
    if (direct && s->base.far) {
        l->applied = g->last;
    } else if (!direct) {
        l->journaled = g->last;
        if (l->behind_bytes == 0)
            l->behind_us = l->written_us;
        l->behind_bytes += g->row.len;
        atomic_fetch_add(&s->atomics.journal_bytes, g->row.len);
    }
    if (s->redo) {
        l->log.bytes += (g->row.len + LOG_HEAD + LOG_BLOCK - 1) / LOG_BLOCK * LOG_BLOCK;
        return;
    }
    if (!s->base.far) {
        journal_group_free(g);
        return;
    }
    g->direct = direct;
    reconcile_keep(s, g);
    if (writer_waits_for(s, writer_kind_of(g)))
        writer_synced(s);
    else if (before == s->kept.synced)
        s->kept.unsynced_us = l->written_us;
}

/* Unless a memtable with its rows was frozen meanwhile to be applied as a whole. */
void writer_put_back(struct journal_store *s, struct journal_group *g)
{
    struct journal_shared *l = locked(s);
    if (l->frozen_outsized) {
        journal_group_free(g);
        return;
    }
    g->next = l->first;
    l->first = g;
    if (!l->tail)
        l->tail = g;
}

struct journal_group *writer_take_group(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    struct journal_group *g = l->first;
    l->first = g->next;
    if (!l->first)
        l->tail = NULL;
    g->sealed = true;
    return g;
}

/* Whether a group goes straight into the tables: it is small and nothing is behind in them. */
static bool goes_direct(struct journal_store *s, const struct journal_group *g)
{
    const struct journal_shared *l = locked(s);
    bool nothing_waits = l->journaled <= l->applied && !l->frozen;
    if (s->thread.unanswered && applier_is_busy(s)) /* it may be there, and be swept: see applier.c */
        return false;
    return s->options.max_bytes == 0 || (nothing_waits && g->rows <= s->options.few_rows);
}

void writer_write_next(struct journal_store *s)
{
    struct journal_group *g = writer_take_group(s);
    struct error err;
    bool direct = goes_direct(s, g);
    locked(s)->direct_runs = direct;
    journal_unlock(s);
    enum status st = write_group(s, g, direct, &err);
    journal_lock(s);
    locked(s)->direct_runs = false;
    if (st == ST_OK) {
        writer_works_again(s);
        writer_written(s, g, direct);
    } else if (writer_is_over(s, st, &err) || writer_keeps_trying(s, &err)) {
        writer_put_back(s, g);
    } else {
        writer_give_up(s, g, &err);
    }
    writer_tell(s);
}
