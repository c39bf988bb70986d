/* The owner's side of the store with a journal: transactions over the memtables, tickets, freezing. See
   jstore.h.

   A transaction changes the active memtable as it goes and encodes its entries beside; commit hands the
   entries to the thread and remembers the stretch of changes (a mark) until it is durable; rollback undoes
   them.

   Numbers of rows. A new row gets a provisional seq, above all that the table has, and another one when it
   comes into the table: rows are inserted by key, so that their numbers and their places in both of the
   table's trees ascend together (with the numbers of their creation, one of the two would be random). A scan
   from the newest row down sees provisional ones first and then the table from its top; whatever moved there
   meanwhile is seen again rather than missed. For that, a row that is changed again must stand where the
   table has it: whoever still knows its provisional seq has it looked up (resolve).

   Another process's writes. The reader's session sees that the database has changed, but not by whom: our own
   thread writes, too. When the thread has not committed since the last look it was someone else; else the
   writer's session, which knows its own commits, is asked. Under load, when the thread is never idle, it
   finds out by itself, with its next transaction. */
#include "journal/jstore.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/encoding.h"

#define ROW_BYTES     32      /* what a row takes in the journal beside its bytes, about */
#define SPARE_FACTOR  2       /* what a memtable of half of journal-max takes, and more */
#define KEEP_SPARE_US 1000000 /* memory for the next memtable, after the last commit */
#define WHOLE_SHARE   4 /* a change set beyond this part of journal-max does not go through the journal */
#define FAR_BYTES     ((size_t)2 << 20) /* nor one beyond this to a server: packets have limits there */

static struct memtable *active(const struct jstore *s)
{
    return s->layers.mem[0];
}

/* ---- reading ---- */

/* Whether what has changed was someone else's: the writer's session knows. While the thread waits, that can
   be asked here; else it will find out when it begins its next transaction. */
static void ask_writer(struct jstore *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->idle) {
        jthread_check_others(s);
        s->unsure = false;
    }
    pthread_mutex_unlock(&s->lock);
}

/* Why nothing is read or written any more: another server has the tables, or acknowledged writes are gone
   from them. */
static enum status over(const struct jstore *s)
{
    return s->over ? s->failure.code : ST_OK;
}

/* Another server has the tables. */
static void lose(struct jstore *s, const struct error *err)
{
    pthread_mutex_lock(&s->lock);
    s->over = true;
    s->failure = *err;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}

static enum status begin_reading(struct jstore *s, struct error *err)
{
    bool changed = false;
    uint64_t commits = atomic_load(&s->commits);
    enum status st = store_begin(s->reader, STORE_READ, &changed, err);
    if (st == ST_LOCKED)
        lose(s, err);
    if (st == ST_OK && store_connection(s->reader) != s->reader_proven) {
        st = jback_reader(s, err);
        if (st != ST_OK)
            store_rollback(s->reader);
    }
    if (st != ST_OK)
        return st;
    bool maybe_ours = atomic_load(&s->committing) || atomic_load(&s->commits) != s->commits_seen;
    s->reading = true;
    s->commits_seen = commits; /* those behind it may or may not be in what is seen */
    if (changed && maybe_ours)
        s->unsure = true;
    else if (changed)
        atomic_store(&s->others, true);
    return ST_OK;
}

static void end_reading(struct jstore *s)
{
    if (s->reading)
        store_rollback(s->reader);
    s->reading = false;
}

/* Before the tables are read: within a transaction all reads see the same. */
static enum status ready(struct jstore *s, struct error *err)
{
    return s->in_txn && !s->reading ? begin_reading(s, err) : ST_OK;
}

/* A reader that finds everything in memory has no business with the tables. */
static bool in_memory(const struct jstore *s, const struct key_ref *refs, size_t n)
{
    const struct memtable *frozen = s->layers.mem[1];
    for (size_t i = 0; i < n; i++)
        if (!memtable_key(active(s), refs[i].db, refs[i].key) &&
            !(frozen && memtable_key(frozen, refs[i].db, refs[i].key)))
            return false;
    return true;
}

static enum status do_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                               void *arg, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = in_memory(s, refs, n) ? ST_OK : ready(s, err);
    return st == ST_OK ? merge_get_keys(&s->layers, refs, n, fn, arg, err) : st;
}

static enum status do_get_items(struct store *base, const struct item_ref *refs, size_t n, store_item_fn *fn,
                                void *arg, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    return st == ST_OK ? merge_get_items(&s->layers, refs, n, fn, arg, err) : st;
}

static enum status do_scan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                                struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    if (q->order == KEYS_BY_SEQ_DESC)
        atomic_store_explicit(&s->scanned_us, clock_mono_us(), memory_order_relaxed);
    return st == ST_OK ? merge_scan_keys(&s->layers, q, fn, arg, err) : st;
}

static enum status do_scan_items(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                                 struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    return st == ST_OK ? merge_scan_items(&s->layers, q, fn, arg, err) : st;
}

static enum status do_count_items(struct store *base, const struct item_scan *q, int64_t *ret,
                                  struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    return st == ST_OK ? merge_count_items(&s->layers, q, ret, err) : st;
}

static enum status do_count_dead(struct store *base, uint32_t db, int64_t now, int64_t *ret_keys,
                                 int64_t *ret_expires, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    return st == ST_OK ? merge_count_dead(&s->layers, db, now, ret_keys, ret_expires, err) : st;
}

static enum status do_count_keys(struct store *base, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                 struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    return st == ST_OK ? merge_count_keys(&s->layers, db, ret_keys, ret_expires, err) : st;
}

static enum status do_load_dbs(struct store *base, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = ready(s, err);
    if (st == ST_OK)
        st = store_load_dbs(s->reader, dbs, n, ret_next_number, err);
    for (int layer = 1; st == ST_OK && layer >= 0; layer--) {
        for (uint32_t i = 0; s->layers.mem[layer] && i < n; i++) {
            const struct db_row *d = memtable_db(s->layers.mem[layer], i);
            if (d)
                dbs[i] = *d;
        }
    }
    for (uint32_t i = 0; st == ST_OK && i < n; i++)
        if (dbs[i].number >= *ret_next_number)
            *ret_next_number = dbs[i].number + 1;
    return st;
}

/* ---- transactions ---- */

/* Whether the active table has to wait for the frozen one to be applied before it takes more. */
static bool full(const struct jstore *s)
{
    return s->layers.mem[1] && s->options.max_bytes && s->active_bytes >= s->options.max_bytes / 2;
}

/* Whether nobody may write as long as that does not work. */
static bool no_room(const struct jstore *s)
{
    return full(s) || s->inherited;
}

/* Why nobody may write now, as the thread says. When there is no room and none will come by waiting, that is
   said, too. */
static enum status refusal(struct jstore *s, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    enum status st = s->over ? over(s) : s->failing != ST_OK ? s->failing : no_room(s) ? s->stuck : ST_OK;
    if (st != ST_OK)
        *err = s->failure;
    else if (s->locked)
        st = error_set(err, ST_BUSY, "another process holds the database's lock");
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* What is in memory may be told: the tables are still ours. */
static enum status confirm(struct jstore *s, struct error *err)
{
    enum status st = store_confirm(s->reader, err);
    if (st == ST_LOCKED)
        lose(s, err);
    return st;
}

static enum status do_begin(struct store *base, enum store_txn kind, bool *ret_changed, struct error *err)
{
    struct jstore *s = jstore_of(base);
    struct error why;
    assert(!s->in_txn);
    enum status st = kind == STORE_READ ? ST_OK : refusal(s, &why);
    if (st != ST_OK)
        return error_set(err, st, "%s", why.text);
    if ((st = s->base.far ? confirm(s, err) : begin_reading(s, err)) != ST_OK)
        return st;
    if (s->unsure)
        ask_writer(s);
    s->in_txn = true;
    s->writing = kind != STORE_READ;
    s->lazy = kind == STORE_WRITE_LAZY;
    s->txn_from = memtable_mark(active(s));
    s->txn_rows = s->txn_bytes = 0;
    s->txn_outsized = false;
    s->entries.len = 0;
    bool others = atomic_exchange(&s->others, false);
    if (ret_changed)
        *ret_changed = others;
    else if (others)
        atomic_store(&s->others, true);
    return ST_OK;
}

static void end_txn(struct jstore *s)
{
    end_reading(s);
    s->in_txn = s->writing = false;
    if (s->entries.cap > (size_t)1 << 20)
        buf_release(&s->entries);
}

static void do_rollback(struct store *base)
{
    struct jstore *s = jstore_of(base);
    if (!s->in_txn)
        return;
    if (s->writing)
        memtable_undo(active(s), s->txn_from);
    end_txn(s);
}

static size_t weigh(const struct changes *c)
{
    size_t n = (c->nkeys + c->nitems + c->ngone + c->ntrash + c->ndbs) * ROW_BYTES;
    for (size_t i = 0; i < c->nkeys; i++)
        n += c->keys[i].key.n + c->keys[i].value.n;
    for (size_t i = 0; i < c->nitems; i++)
        n += c->items[i].ref.name.n + c->items[i].value.n;
    for (size_t i = 0; i < c->ngone; i++)
        n += c->gone[i].name.n;
    return n;
}

static bool too_much(const struct jstore *s)
{
    return s->options.max_bytes &&
           (s->txn_bytes > s->options.max_bytes / WHOLE_SHARE || s->txn_bytes > s->group_bytes);
}

/* Rows that have come into the table since they were seen last, in the order of their change set. */
struct resolving {
    struct key_row *keys;
    struct key_ref *refs;
    size_t *places; /* among keys */
    size_t n, at;
};

static enum status take_seq(void *arg, const struct key_row *k)
{
    struct resolving *r = arg;
    while (r->at < r->n && !(r->refs[r->at].db == k->db && slice_eq(r->refs[r->at].key, k->key)))
        r->at++;
    if (r->at < r->n)
        r->keys[r->places[r->at]].seq = k->seq;
    return ST_OK;
}

static bool in_table(const struct jstore *s, const struct key_row *k)
{
    if (k->seq < STORE_PROVISIONAL || k->seq >= s->first_seq)
        return false;
    for (int i = 0; i < 2; i++)
        if (s->layers.mem[i] && memtable_key(s->layers.mem[i], k->db, k->key))
            return false;
    return true;
}

static enum status take_seqs(struct jstore *s, struct resolving *r, struct error *err)
{
    int64_t *seqs = mem_alloc(r->n * sizeof *seqs);
    enum status st = s->reader->ops->get_seqs(s->reader, r->refs, r->n, seqs, err);
    for (size_t i = 0; st == ST_OK && i < r->n; i++)
        if (seqs[i])
            r->keys[r->places[i]].seq = seqs[i];
    mem_free(seqs);
    return st;
}

/* Looks their seqs up. */
static enum status resolve(struct jstore *s, struct changes *c, struct error *err)
{
    struct resolving r = {.keys = c->keys};
    for (size_t i = 0; i < c->nkeys; i++) {
        if (!in_table(s, &c->keys[i]))
            continue;
        if (!r.refs) {
            r.refs = mem_alloc((c->nkeys - i) * sizeof *r.refs);
            r.places = mem_alloc((c->nkeys - i) * sizeof *r.places);
        }
        r.refs[r.n] = (struct key_ref){c->keys[i].db, c->keys[i].key};
        r.places[r.n++] = i;
    }
    enum status st = r.n ? ready(s, err) : ST_OK;
    if (st == ST_OK && r.n)
        st = s->reader->ops->get_seqs ? take_seqs(s, &r, err)
                                      : store_get_keys(s->reader, r.refs, r.n, take_seq, &r, err);
    mem_free(r.refs);
    mem_free(r.places);
    return st;
}

/* The number of a row that is gone will be free when that has come into the table, and another key's soon: a
   key that comes again gets a new one. */
static void forget_gone(struct changes *c)
{
    for (size_t i = 0; i < c->nkeys; i++)
        if (c->keys[i].type == ROW_NONE)
            c->keys[i].seq = 0;
}

static enum status do_apply(struct store *base, struct changes *c, struct error *err)
{
    struct jstore *s = jstore_of(base);
    struct memtable *m = active(s);
    int64_t ticket = s->last_ticket + 1;
    if (!s->writing)
        return error_set(err, ST_INTERNAL, "apply without a transaction");
    enum status st = resolve(s, c, err);
    if (st != ST_OK)
        return st;
    for (size_t i = 0; i < c->nkeys; i++) {
        bool fresh = c->keys[i].seq == 0;
        if (fresh)
            c->keys[i].seq = s->next_seq++;
        memtable_put_key(m, &c->keys[i], fresh, ticket);
    }
    for (size_t i = 0; i < c->ngone; i++)
        memtable_del_item(m, &c->gone[i], ticket);
    for (size_t i = 0; i < c->nitems; i++)
        memtable_put_item(m, &c->items[i], c->items[i].fresh, ticket);
    for (size_t i = 0; i < c->ntrash; i++)
        memtable_add_trash(m, &c->trash[i]);
    for (size_t i = 0; i < c->ndbs; i++)
        memtable_put_db(m, &c->dbs[i]);
    s->txn_rows += c->nkeys + c->nitems + c->ngone + c->ntrash + c->ndbs;
    s->txn_bytes += weigh(c);
    s->txn_outsized |= too_much(s) || s->outsized_waits;
    if (s->txn_outsized)
        buf_release(&s->entries);
    else
        journal_add_changes(&s->entries, c);
    forget_gone(c);
    return ST_OK;
}

static void note_next_id(struct jstore *s)
{
    memtable_put_next_id(active(s), s->next_id);
    s->txn_rows++;
    if (!s->txn_outsized)
        journal_add_next_id(&s->entries, s->next_id);
}

static enum status do_commit(struct store *base, struct error *err);

static enum status do_reserve_ids(struct store *base, int64_t n, int64_t *ret_first, struct error *err)
{
    struct jstore *s = jstore_of(base);
    bool own = !s->in_txn;
    enum status st = own ? do_begin(base, STORE_WRITE, NULL, err) : ST_OK;
    if (st != ST_OK)
        return st;
    if (!s->writing)
        return error_set(err, ST_READONLY, "ids are taken in transactions that write");
    *ret_first = s->next_id;
    s->next_id += n;
    note_next_id(s);
    return own ? do_commit(base, err) : ST_OK;
}

/* ---- committing ---- */

static void mark(struct jstore *s, int64_t ticket)
{
    if (s->first_mark && s->nmarks == s->cap_marks) {
        s->nmarks -= s->first_mark;
        memmove(s->marks, s->marks + s->first_mark, s->nmarks * sizeof *s->marks);
        s->first_mark = 0;
    }
    VEC_PUSH(s->marks, s->nmarks, s->cap_marks) = (struct jmark){
        .ticket = ticket,
        .mem = active(s),
        .from = s->txn_from,
        .to = memtable_mark(active(s)),
        .next_seq = s->next_seq,
        .bytes = s->txn_bytes,
    };
}

/* Hands the entries to the thread; under the lock. */
static void enqueue(struct jstore *s, int64_t ticket)
{
    struct jgroup *g = s->tail;
    if (!g || g->sealed || g->row.len >= s->group_bytes) {
        g = mem_zalloc(sizeof *g);
        g->lazy = true;
        g->born_us = clock_mono_us();
        journal_begin(&g->row);
        if (s->tail)
            s->tail->next = g;
        else
            s->first = g;
        s->tail = g;
    }
    buf_add_slice(&g->row, buf_slice(&s->entries));
    g->last = ticket;
    g->rows += s->txn_rows;
    g->lazy &= s->lazy;
    if (s->idle)
        pthread_cond_signal(&s->work);
}

static enum status do_commit(struct store *base, struct error *err)
{
    struct jstore *s = jstore_of(base);
    if (!s->in_txn)
        return error_set(err, ST_INTERNAL, "commit without a transaction");
    if (s->writing && memtable_mark(active(s)) != s->txn_from) {
        int64_t ticket = ++s->last_ticket;
        s->committed_us = clock_mono_us();
        mark(s, ticket);
        s->active_bytes += s->txn_bytes;
        pthread_mutex_lock(&s->lock);
        s->outsized_waits |= s->txn_outsized;
        if (!s->outsized_waits)
            enqueue(s, ticket);
        pthread_mutex_unlock(&s->lock);
    }
    end_txn(s);
    return ST_OK;
}

/* ---- progress ---- */

static void drop_groups(struct jstore *s)
{
    for (struct jgroup *g = s->first, *next; g; g = next) {
        next = g->next;
        jgroup_free(g);
    }
    s->first = s->tail = NULL;
}

/* The thread takes the active table; a new one takes its place. Under the lock. */
static void freeze(struct jstore *s)
{
    struct memtable_stats stats = memtable_stats(active(s));
    s->frozen = s->layers.mem[1] = active(s);
    s->frozen_upto = s->last_ticket;
    s->frozen_seq = s->next_seq;
    s->frozen_outsized = s->outsized_waits;
    s->layers.mem[0] = s->spare ? s->spare : memtable_new(stats.peak);
    s->spare = NULL;
    if (s->tail)
        s->tail->sealed = true;
    if (s->outsized_waits) /* applied with the rest */
        drop_groups(s);
    s->active_bytes = 0;
    s->outsized_waits = s->freeze_wanted = false;
    pthread_cond_signal(&s->work);
}

/* Not while a group goes straight into the tables: rows of it that have been changed since are there when it
   is through, which only an active table can take note of. */
static bool should_freeze(const struct jstore *s)
{
    if (s->layers.mem[1] || s->directly || memtable_stats(active(s)).empty)
        return false;
    return s->freeze_wanted || s->outsized_waits ||
           (s->options.max_bytes && s->active_bytes >= s->options.max_bytes / 2);
}

/* A group is durable: what was remembered of its change sets can go. */
static void settle(struct jstore *s, const struct jdone *d)
{
    while (s->first_mark < s->nmarks && s->marks[s->first_mark].ticket <= d->last) {
        const struct jmark *m = &s->marks[s->first_mark++];
        if (d->direct && m->mem == active(s)) {
            memtable_leave(m->mem, m->from, m->to);
            s->first_seq = m->next_seq;
            s->active_bytes -= m->bytes < s->active_bytes ? m->bytes : s->active_bytes;
        } else {
            memtable_settle(m->mem, m->to);
        }
    }
    if (s->first_mark == s->nmarks)
        s->first_mark = s->nmarks = 0;
}

/* Undoes every change set that is not durable, newest first. Under the lock. */
static void undo_failed(struct jstore *s)
{
    while (s->nmarks > s->first_mark) {
        const struct jmark *m = &s->marks[--s->nmarks];
        memtable_undo(m->mem, m->from);
        if (m->mem == active(s))
            s->active_bytes -= m->bytes < s->active_bytes ? m->bytes : s->active_bytes;
    }
    s->first_mark = s->nmarks = 0;
    s->last_ticket = s->durable;
    drop_groups(s);
    s->outsized_waits = s->frozen_outsized = false;
    if (s->frozen_upto > s->durable)
        s->frozen_upto = s->durable;
    s->failed = ST_OK;
    pthread_cond_signal(&s->work);
}

/* Keeps a table's memory for the next one, unless it is more than an ordinary one takes. */
static void retire(struct jstore *s, struct memtable *m)
{
    struct memtable_stats stats = memtable_stats(m);
    if (s->spare || stats.bytes + stats.spare > s->options.max_bytes * SPARE_FACTOR)
        memtable_free(m);
    else
        s->spare = memtable_renew(m, stats.peak);
}

/* Takes note of what the thread has done, and gives it more to do. Under the lock. */
static void advance(struct jstore *s)
{
    for (size_t i = 0; i < s->ndone; i++)
        settle(s, &s->done[i]);
    s->ndone = 0;
    if (s->failed != ST_OK)
        return;
    if (s->layers.mem[1] && !s->frozen) {
        s->first_seq = s->frozen_seq;
        retire(s, s->layers.mem[1]);
        s->layers.mem[1] = NULL;
    }
    if (should_freeze(s))
        freeze(s);
    if (s->spare && s->last_ticket == s->durable && clock_mono_us() - s->committed_us > KEEP_SPARE_US) {
        memtable_free(s->spare);
        s->spare = NULL;
    }
}

static enum status do_progress(struct store *base, struct store_progress *ret, struct error *err)
{
    struct jstore *s = jstore_of(base);
    assert(!s->in_txn);
    pthread_mutex_lock(&s->lock);
    advance(s);
    enum status st = s->over ? over(s) : s->failed;
    if (st != ST_OK) {
        *err = s->over ? s->failure : s->undone;
        undo_failed(s);
    }
    *ret = (struct store_progress){
        .durable = s->durability == DURABILITY_ALWAYS ? s->durable : s->last_ticket,
        .full = full(s) && s->stuck == ST_OK && s->failing == ST_OK, /* else they are refused */
        .locked = s->locked,
        .failing = s->failing != ST_OK || (no_room(s) && s->stuck != ST_OK),
        .first_seq = s->first_seq,
    };
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < 2; i++)
        ret->memory += s->layers.mem[i] ? memtable_stats(s->layers.mem[i]).bytes : 0;
    if (s->base.far) /* groups are kept, see reconcile.c */
        ret->memory += atomic_load(&s->journal_bytes);
    return st;
}

static int64_t do_last_ticket(const struct store *base)
{
    return ((const struct jstore *)base)->last_ticket;
}

static void do_on_progress(struct store *base, store_wake_fn *fn, void *arg)
{
    struct jstore *s = jstore_of(base);
    pthread_mutex_lock(&s->lock);
    s->wake = fn;
    s->wake_arg = arg;
    pthread_mutex_unlock(&s->lock);
}

/* ---- what the thread does for us ---- */

static bool all_applied(const struct jstore *s)
{
    return s->durable >= s->last_ticket && !s->layers.mem[1] && memtable_stats(active(s)).empty;
}

/* Waits until all that was committed is in the tables, or that was tried once more in vain. A failed group is
   left for store_progress to tell, with what has to be undone. */
static enum status drain(struct jstore *s, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    uint64_t failures = s->failures;
    s->hurry = true;
    s->retry_us = 0;
    for (;;) {
        advance(s);
        bool in_vain = s->failures != failures && (s->failing != ST_OK || s->stuck != ST_OK);
        if (s->failed != ST_OK || in_vain || s->over || all_applied(s))
            break;
        if (s->durable >= s->last_ticket && !s->layers.mem[1]) {
            s->freeze_wanted = true;
            continue;
        }
        pthread_cond_signal(&s->work);
        pthread_cond_wait(&s->told, &s->lock);
    }
    s->hurry = false;
    enum status st = s->over               ? over(s)
                     : s->failed != ST_OK  ? s->failed
                     : s->failing != ST_OK ? s->failing
                                           : s->stuck;
    if (st != ST_OK)
        *err = s->failed != ST_OK && !s->over ? s->undone : s->failure;
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status run_job(struct jstore *s, enum jjob job, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    s->job = job;
    pthread_cond_signal(&s->work);
    while (s->job != JOB_NONE && s->failed == ST_OK && !s->over)
        pthread_cond_wait(&s->told, &s->lock);
    enum status st = s->over ? over(s) : s->failed;
    *err = s->over ? s->failure : st != ST_OK ? s->undone : s->job_error;
    if (st == ST_OK)
        st = s->job_status;
    s->job = JOB_NONE;
    pthread_mutex_unlock(&s->lock);
    return st;
}

static enum status do_sync(struct store *base, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = drain(s, err);
    return st == ST_OK ? run_job(s, JOB_SYNC, err) : st;
}

static enum durability change_durability(struct jstore *s, enum durability d)
{
    pthread_mutex_lock(&s->lock);
    enum durability before = s->durability;
    s->durability = d;
    pthread_mutex_unlock(&s->lock);
    return before;
}

/* What nobody waited for must not be undone by a failure that comes when they do. */
static enum status do_set_durability(struct store *base, enum durability d, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = d == DURABILITY_ALWAYS ? drain(s, err) : ST_OK;
    if (st != ST_OK)
        return st;
    enum durability before = change_durability(s, d);
    st = run_job(s, JOB_DURABILITY, err);
    if (st == ST_OK && d == DURABILITY_ALWAYS) /* what was not waited for before */
        st = run_job(s, JOB_SYNC, err);
    if (st != ST_OK)
        change_durability(s, before);
    return st;
}

static enum status do_sweep(struct store *base, const struct sweep_budget *b, struct sweep_result *ret,
                            struct error *err)
{
    struct jstore *s = jstore_of(base);
    (void)err;
    pthread_mutex_lock(&s->lock);
    *ret = s->swept;
    s->swept = (struct sweep_result){0};
    if (s->sweep_rows == 0 && b->max_rows) {
        s->sweep_rows = b->max_rows;
        s->sweep_dbs = mem_realloc(s->sweep_dbs, (b->ndbs + 1) * sizeof *s->sweep_dbs);
        memcpy(s->sweep_dbs, b->dbs, b->ndbs * sizeof *s->sweep_dbs);
        s->sweep_ndbs = b->ndbs;
        if (s->idle)
            pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return ST_OK;
}

static enum status do_info(struct store *base, struct store_info *ret, struct error *err)
{
    struct jstore *s = jstore_of(base);
    enum status st = store_info(s->reader, ret, err);
    ret->sync_us = s->sync_us;
    ret->commit_us = &s->commit_us;
    ret->journal_bytes = atomic_load(&s->journal_bytes);
    for (int i = 0; i < 2; i++)
        ret->memtable_rows += s->layers.mem[i] ? memtable_stats(s->layers.mem[i]).rows : 0;
    return st;
}

/* ---- opening and closing ---- */

static void free_jstore(struct jstore *s)
{
    drop_groups(s);
    for (struct jgroup *g = s->kept, *next; g; g = next) {
        next = g->next;
        jgroup_free(g);
    }
    memtable_free(s->layers.mem[0]);
    memtable_free(s->layers.mem[1]);
    memtable_free(s->spare);
    memtable_free(s->direct);
    mem_apply_free(s->apply);
    store_close(s->reader);
    store_close(s->writer);
    buf_release(&s->entries);
    mem_free(s->marks);
    mem_free(s->done);
    mem_free(s->sweep_dbs);
    mem_free(s->dbs);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->told);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static void do_close(struct store *base)
{
    struct jstore *s = jstore_of(base);
    struct error ignored; /* what is not in the tables is in the journal */
    do_rollback(base);
    (void)(drain(s, &ignored) == ST_OK);
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    free_jstore(s);
}

static enum status start_thread(struct jstore *s, struct error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals stay with the threads that were there before */
    int e = pthread_create(&s->thread, NULL, jthread_run, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e == 0 ? ST_OK : error_set(err, ST_INTERNAL, "cannot start a thread: %s", strerror(e));
}

static const struct store_ops jstore_ops = {
    .close = do_close,
    .begin = do_begin,
    .get_keys = do_get_keys,
    .get_items = do_get_items,
    .scan_keys = do_scan_keys,
    .scan_items = do_scan_items,
    .count_items = do_count_items,
    .count_dead = do_count_dead,
    .count_keys = do_count_keys,
    .load_dbs = do_load_dbs,
    .reserve_ids = do_reserve_ids,
    .apply = do_apply,
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = do_sweep,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
    .last_ticket = do_last_ticket,
    .progress = do_progress,
    .on_progress = do_on_progress,
};

static struct jstore *new_jstore(const struct store_options *o, const struct journal_options *j)
{
    struct jstore *s = mem_zalloc(sizeof *s);
    pthread_condattr_t attr;
    s->base.ops = &jstore_ops;
    s->options = *j;
    s->durability = o->durability;
    s->layers.mem[0] = memtable_new(0);
    s->direct = memtable_new(0);
    s->ndbs = o->databases;
    s->dbs = mem_zalloc((s->ndbs + 1) * sizeof *s->dbs);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->work, &attr);
    pthread_cond_init(&s->told, &attr);
    pthread_condattr_destroy(&attr);
    return s;
}

/* What an earlier process left and could not be applied: as if we had frozen it. */
static void inherit(struct jstore *s, const struct jpast *past)
{
    s->frozen = s->layers.mem[1] = past->mem;
    s->frozen_upto = past->last;
    s->frozen_seq = s->next_seq = past->next_seq;
    s->frozen_bytes = past->bytes;
    s->frozen_counted = s->inherited = true;
    atomic_store(&s->journal_bytes, past->bytes);
    s->stuck = past->why.code;
    s->failure = past->why;
}

static enum status take_next_id(struct jstore *s, struct error *err)
{
    enum status st = store_reserve_ids(s->writer, 0, &s->next_id, err);
    int64_t next = s->frozen ? memtable_next_id(s->frozen) : 0;
    if (st == ST_OK && next > s->next_id)
        s->next_id = next;
    return st;
}

enum status jstore_open(struct store *reader, struct store *writer, const struct jpast *past,
                        const struct store_options *o, const struct journal_options *j, struct store **ret,
                        struct error *err)
{
    struct jstore *s = new_jstore(o, j);
    struct store_info info = {0};
    s->reader = s->layers.tables = reader;
    s->writer = writer;
    s->base.far = reader->far;
    s->group_bytes = reader->far ? FAR_BYTES : SIZE_MAX;
    s->durable = s->journaled = s->last_ticket = s->synced = s->safe = past->last;
    s->applied = past->applied;
    s->going_by = o->durability;
    s->dropping = true;
    s->next_seq = s->first_seq = STORE_PROVISIONAL;
    if (past->mem)
        inherit(s, past);
    enum status st = take_next_id(s, err);
    if (st == ST_OK && s->base.far) /* an earlier process may have waited for less */
        st = store_sync(writer, err);
    s->proven = store_connection(writer);
    s->reader_proven = store_connection(reader);
    if (st == ST_OK)
        st = store_info(writer, &info, err);
    s->sync_us = info.sync_us;
    if (st == ST_OK)
        st = start_thread(s, err);
    if (st != ST_OK) {
        free_jstore(s);
        return st;
    }
    *ret = &s->base;
    return ST_OK;
}
