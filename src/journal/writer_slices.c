/* The frozen memtable on its way into the tables, in the order of their trees.

   How much of it goes along with a group: so much that it is in before the active memtable, at the rate at
   which groups grow it, has become as large as it may, and before half of apply-lag is over. So the work is
   spread evenly, and when writers are faster than the tables can follow, their own commits take longer: that
   slows them down. While there is no group to write, slices are taken by themselves. When another thread
   waits for the end of the pass (snapshots.h), they are as large as they may be. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/writer.h"

#define MAX_SLICE_US  4000 /* what a slice takes at most along with a group, unless the journal is full */
#define IDLE_SLICE_US 2000 /* what a slice may take when nothing else is to do */

/* ---- slices; without the lock ---- */

/* The next rows of the frozen memtable, within the running transaction. *ret_last: that was all of them. */
static enum status apply_rows(struct journal_store *s, size_t rows, bool *ret_last, struct error *err)
{
    struct writer_slices *w = &s->thread.slices;
    struct changes c;
    int64_t next_id;
    *ret_last = !mem_apply_next(w->apply, rows, &c, &next_id);
    c.next_id = next_id;
    c.replay = true;
    if (*ret_last)
        return store_journal_applied(s->writer, w->upto, err);
    enum status st = ST_OK;
    s->thread.torn = true;
    if (!w->said && !w->saying)
        st = store_journal_applying(s->writer, w->upto, err);
    w->saying = st == ST_OK;
    return st == ST_OK ? store_apply(s->writer, &c, err) : st;
}

/* How many rows go along with a group of so many bytes. */
static size_t pace(const struct journal_store *s, size_t bytes, int64_t now)
{
    const struct writer_slices *w = &s->thread.slices;
    size_t behind = s->thread.behind_bytes;
    size_t left = mem_apply_left(w->apply), half = (size_t)s->options.max_bytes / 2;
    size_t room = half > behind + bytes ? half - behind : bytes;
    size_t by_size = (size_t)((double)left * (double)bytes / (double)room);
    int64_t until = w->began_us + (int64_t)s->options.lag_ms * 500;
    size_t by_time = left;
    bool awaited = atomic_load_explicit(&s->atomics.snapshots_wanted, memory_order_relaxed) > 0;
    if (until > now && now >= w->last_us && !awaited)
        by_time = (size_t)((double)left * (double)(now - w->last_us) / (double)(until - w->last_us));
    size_t rows = by_size > by_time ? by_size : by_time;
    size_t most = w->row_us > 0 ? (size_t)(MAX_SLICE_US / w->row_us) : WRITER_MIN_SLICE;
    if (rows > most && behind < half)
        rows = most;
    return rows < WRITER_MIN_SLICE ? WRITER_MIN_SLICE : rows;
}

enum status writer_slice_along(struct journal_store *s, size_t bytes, enum store_txn kind, bool *ret_last,
                               struct error *err)
{
    struct writer_slices *w = &s->thread.slices;
    enum status st = writer_drop_rows(s, err);
    if (st != ST_OK || !w->apply)
        return st;
    if (w->sorting) {
        w->sorting = mem_apply_sort(w->apply, WRITER_SORT_ROWS);
        return ST_OK;
    }
    if (s->base.far && !writer_waits_for(s, kind) && mem_apply_left(w->apply) == 0)
        return ST_OK; /* the word that all is in comes with a commit that is waited for: finish_due */
    int64_t now = clock_mono_us();
    size_t rows = pace(s, bytes, now);
    st = apply_rows(s, rows, ret_last, err);
    w->last_us = now;
    w->row_us += ((double)(clock_mono_us() - now) / (double)rows - w->row_us) / 8;
    return st;
}

static void begin_slices(struct writer_slices *w)
{
    w->apply = mem_apply_new(w->mem);
    w->sorting = true;
    w->said = w->saying = false;
}

void writer_restart_slices(struct journal_store *s)
{
    struct writer_slices *w = &s->thread.slices;
    if (!w->apply)
        return;
    mem_apply_free(w->apply);
    begin_slices(w);
}

/* ---- beginning and ending; holding the lock ---- */

void writer_start_slices(struct journal_store *s)
{
    struct writer_slices *w = &s->thread.slices;
    struct journal_shared *l = locked(s);
    w->mem = l->frozen;
    w->upto = l->frozen_upto;
    begin_slices(w);
    if (!w->counted) { /* else it begins again after a failure */
        w->bytes = s->thread.behind_bytes;
        s->thread.behind_bytes = 0;
        w->counted = true;
    }
    w->began_us = w->last_us = clock_mono_us();
    l->freeze_wanted = false;
}

/* All of the frozen memtable is in the tables: the owner may retire it. */
static void all_in(struct journal_store *s)
{
    struct writer_slices *w = &s->thread.slices;
    struct journal_shared *l = locked(s);
    mem_apply_free(w->apply);
    w->apply = NULL;
    w->mem = NULL;
    l->frozen = NULL;
    l->applied = l->in_tables = w->upto;
    s->thread.torn = false;
    s->thread.dropping = true;
    if (s->base.far)
        writer_synced(s); /* whoever says `last` there has waited for it */
    atomic_fetch_sub(&s->atomics.journal_bytes, w->bytes);
    w->counted = false;
    if (l->inherited)
        log_info("replayed the journal", "bytes=%zu", w->bytes);
    l->inherited = false;
}

void writer_slice_over(struct journal_store *s, enum status st, bool last)
{
    struct writer_slices *w = &s->thread.slices;
    if (!w->apply)
        return;
    w->said |= st == ST_OK && w->saying;
    w->saying = false;
    if (st != ST_OK)
        mem_apply_again(w->apply);
    else if (last)
        all_in(s);
}

/* ---- by itself ---- */

/* On a database server that may crash while we live, the frozen memtable goes only when a commit was waited
   for that has all of it. A file crashes with us: there the log's order is enough. Without the lock. */
static enum status apply_some(struct journal_store *s, size_t rows, bool *ret_last, struct error *err)
{
    bool only_word = s->base.far && mem_apply_left(s->thread.slices.apply) == 0;
    enum store_txn kind = only_word ? STORE_WRITE : STORE_WRITE_LAZY;
    enum status st = writer_begin(s, kind, err);
    if (st != ST_OK)
        return st;
    st = apply_rows(s, rows, ret_last, err);
    if (st == ST_OK)
        st = writer_drop_rows(s, err);
    st = writer_end(s, st, err);
    bool safe = !s->base.far || !*ret_last || writer_waits_for(s, kind);
    return st == ST_OK && !safe ? writer_sync(s, err) : st;
}

static void adapt(struct writer_slices *w, int64_t took_us)
{
    if (took_us > IDLE_SLICE_US && w->idle_rows > WRITER_MIN_SLICE)
        w->idle_rows /= 2;
    else if (took_us < IDLE_SLICE_US / 2 && w->idle_rows < WRITER_MANY_ROWS)
        w->idle_rows += w->idle_rows / 4;
}

void writer_apply_idly(struct journal_store *s)
{
    struct writer_slices *w = &s->thread.slices;
    struct error err;
    bool last = false;
    enum status st = ST_OK;
    journal_unlock(s);
    int64_t start = clock_mono_us();
    if (w->sorting) {
        w->sorting = mem_apply_sort(w->apply, WRITER_SORT_ROWS);
    } else {
        st = apply_some(s, w->idle_rows, &last, &err);
        w->last_us = start;
        adapt(w, clock_mono_us() - start);
    }
    journal_lock(s);
    writer_slice_over(s, st, last);
    if (st != ST_OK)
        writer_slice_failed(s, &err);
    else if (last)
        writer_works_again(s);
    else
        s->thread.lock_since_us = 0;
    if (locked(s)->failures.stuck != ST_OK || last)
        writer_tell(s);
}

/* ---- outsized ---- */

/* Without the lock. */
static enum status apply_everything(struct journal_store *s, struct error *err)
{
    struct writer_slices *w = &s->thread.slices;
    bool last = false;
    while (w->sorting)
        w->sorting = mem_apply_sort(w->apply, WRITER_MANY_ROWS);
    enum status st = writer_begin(s, STORE_WRITE, err);
    if (st != ST_OK)
        return st;
    while (st == ST_OK && !last)
        st = apply_rows(s, WRITER_MANY_ROWS, &last, err);
    if (st == ST_OK && s->thread.records)
        st = run_record(s->writer, &s->run, w->upto, err);
    st = writer_end(s, st, err);
    return st == ST_OK && s->base.far && !writer_waits_for(s, STORE_WRITE) ? writer_sync(s, err) : st;
}

void writer_apply_outsized(struct journal_store *s)
{
    struct writer_slices *w = &s->thread.slices;
    struct error err;
    if (!w->apply)
        writer_start_slices(s);
    journal_unlock(s);
    enum status st = apply_everything(s, &err);
    journal_lock(s);
    struct journal_shared *l = locked(s);
    if (st == ST_OK) {
        writer_works_again(s);
        l->durable = s->thread.journaled = w->upto;
        writer_slice_over(s, st, true);
        s->kept.safe = w->upto;
        VEC_PUSH(l->written, l->nwritten, l->cap_written) = (struct written_group){w->upto, false};
        l->frozen_outsized = false;
    } else if (writer_is_over(s, st, &err) || writer_keeps_trying(s, &err)) {
        mem_apply_free(w->apply);
        w->apply = NULL;
    } else {
        writer_give_up(s, NULL, &err);
    }
    writer_tell(s);
}
