/* The owner reads: the active memtable over the frozen one over the tables (merge.h), within one read
   transaction of its session.

   Memory alone. A transaction that says beforehand that it asks for nothing but rows which memory has takes
   no read transaction and with it no lock, as long as nobody has committed to the database since the last one
   (store_same, which asks no system). What turns out to be missing all the same begins one later
   (owner_ready): if another process has committed in between, the next transaction is told.

   Another process's writes. The reader's session sees that the database has changed, but not by whom: our own
   thread writes, too. The writer's session knows between which two of its turns others have committed
   (store_others). Where it does not: when the thread has not committed since the last look it was another
   process; else the writer's session is asked in a transaction (owner_begin), or, while the thread is never
   idle, it finds out by itself with its next one. */
#include "base/clock.h"
#include "journal/owner.h"
#include "journal/reconcile.h"

/* ---- the read transaction ---- */

/* A reader that finds everything in memory has no business with the tables. */
static bool in_memory(const struct journal_store *s, const struct key_ref *refs, size_t n)
{
    const struct memtable *frozen = s->owner.layers.mem[1];
    for (size_t i = 0; i < n; i++)
        if (!memtable_has_key(active(s), refs[i].db, refs[i].key) &&
            !(frozen && memtable_has_key(frozen, refs[i].db, refs[i].key)))
            return false;
    return true;
}

/* The database has changed since the last look, and what is seen now is fixed. */
static void judge_change(struct journal_store *s, bool maybe_ours)
{
    bool others;
    if (store_others(s->writer, &s->owner.others_seen, &others)) {
        /* What has come since is counted, too, and is not seen yet: what memory learns now may be old. */
        s->owner.others_again |= others && !store_same(s->reader);
    } else if (maybe_ours) {
        s->owner.unsure = true;
        return;
    } else {
        others = true;
    }
    if (others)
        atomic_store(&s->atomics.others, true);
}

enum status owner_begin_reading(struct journal_store *s, struct error *err)
{
    bool changed = false;
    uint64_t commits = atomic_load(&s->atomics.commits);
    enum status st = store_begin(s->reader, STORE_READ, NULL, &changed, err);
    if (st == ST_LOCKED)
        owner_lose(s, err);
    if (st == ST_OK && store_connection(s->reader) != s->owner.reader_proven) {
        st = reconcile_reader(s, err);
        if (st != ST_OK)
            store_rollback(s->reader);
    }
    if (st != ST_OK)
        return st;
    bool maybe_ours =
        atomic_load(&s->atomics.committing) || atomic_load(&s->atomics.commits) != s->owner.commits_seen;
    s->owner.reading = true;
    s->owner.reads++;
    s->owner.commits_seen = commits; /* those behind it may or may not be in what is seen */
    if (changed)
        judge_change(s, maybe_ours);
    return ST_OK;
}

bool owner_needs_tables(struct journal_store *s, const struct store_declared *d)
{
    return !d || !d->rows_only || !store_same(s->reader) || !in_memory(s, d->keys, d->nkeys);
}

void owner_end_reading(struct journal_store *s)
{
    if (s->owner.reading)
        store_rollback(s->reader);
    s->owner.reading = false;
}

enum status owner_ready(struct journal_store *s, struct error *err)
{
    return s->owner.txn.open && !s->owner.reading ? owner_begin_reading(s, err) : ST_OK;
}

void owner_lose(struct journal_store *s, const struct error *err)
{
    journal_lock(s);
    locked(s)->failures.over = true;
    locked(s)->failures.why = *err;
    pthread_cond_signal(&s->lock.work);
    journal_unlock(s);
}

/* ---- rows ---- */

enum status owner_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    bool known = in_memory(s, refs, n);
    enum status st = known ? ST_OK : owner_ready(s, err);
    s->owner.lookups += !known;
    return st == ST_OK ? merge_get_keys(&s->owner.layers, refs, n, fn, arg, err) : st;
}

enum status owner_get_items(struct store *base, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_get_items(&s->owner.layers, refs, n, fn, arg, err) : st;
}

enum status owner_scan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                            struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    if (q->order == KEYS_BY_SEQ_DESC)
        atomic_store_explicit(&s->atomics.scanned_us, clock_mono_us(), memory_order_relaxed);
    return st == ST_OK ? merge_scan_keys(&s->owner.layers, q, fn, arg, err) : st;
}

enum status owner_scan_items(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_scan_items(&s->owner.layers, q, fn, arg, err) : st;
}

enum status owner_due_rows(struct store *base, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_due_rows(&s->owner.layers, now, after, ret_ids, max, ret_n, err) : st;
}

/* ---- counts ---- */

enum status owner_count_items(struct store *base, const struct item_scan *q, int64_t *ret, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_count_items(&s->owner.layers, q, ret, err) : st;
}

enum status owner_count_dead(struct store *base, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_count_dead(&s->owner.layers, db, now, ret_keys, ret_expires, err) : st;
}

enum status owner_count_keys(struct store *base, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    enum status st = owner_ready(s, err);
    return st == ST_OK ? merge_count_keys(&s->owner.layers, db, ret_keys, ret_expires, err) : st;
}

enum status owner_load_dbs(struct store *base, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                           struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    const struct layers *l = &s->owner.layers;
    enum status st = owner_ready(s, err);
    if (st == ST_OK)
        st = store_load_dbs(s->reader, dbs, n, ret_next_number, err);
    for (int layer = 1; st == ST_OK && layer >= 0; layer--) {
        for (uint32_t i = 0; l->mem[layer] && i < n; i++) {
            const struct db_row *d = memtable_db(l->mem[layer], i);
            if (d)
                dbs[i] = *d;
        }
    }
    for (uint32_t i = 0; st == ST_OK && i < n; i++)
        if (dbs[i].number >= *ret_next_number)
            *ret_next_number = dbs[i].number + 1;
    return st;
}
