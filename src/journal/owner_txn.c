/* The owner's transactions. One changes the active memtable as it goes and encodes its entries beside; commit
   hands the entries to the thread and remembers the stretch of changes (pending_commit) until it is durable;
   rollback undoes them.

   Numbers of rows. A new row gets a provisional seq, above all that the table has, and another one when it
   comes into the table: rows are inserted by key, so that their numbers and their places in both of the
   table's trees ascend together (with the numbers of their creation, one of the two would be random). A scan
   from the newest row down sees provisional ones first and then the table from its top; whatever moved there
   meanwhile is seen again rather than missed. For that, a row that is changed again must stand where the
   table has it: a change that comes with its provisional seq has it looked up (resolve). */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/encoding.h"
#include "journal/owner.h"
#include "journal/writer.h"

#define ROW_BYTES      32   /* what a row takes in the journal beside its bytes, about */
#define RANGE_ROWS     1024 /* for how many rows a range counts: a commit does not wait for it */
#define OUTSIZED_SHARE 4    /* a change set beyond this part of journal-max does not go through the journal */
#define ENTRIES_BYTES  ((size_t)1 << 20) /* room for entries that is kept for the next transaction */

/* ---- beginning and ending ---- */

/* Whether another process has changed the tables: the writer's session knows. While the thread waits, the
   owner asks that session here; else the thread finds out when it begins its next transaction. */
static void ask_writer(struct journal_store *s)
{
    journal_lock(s);
    if (locked(s)->idle) {
        writer_check_others(s);
        s->owner.unsure = false;
    }
    journal_unlock(s);
}

/* Why transactions that write are refused now, as the thread says: also that there is no room and none will
   come by waiting. ST_OK: they are not; *ret_outsized: they stand behind a change set that is outsized. */
static enum status refusal(struct journal_store *s, bool *ret_outsized, struct error *err)
{
    journal_lock(s);
    const struct journal_failures *f = &locked(s)->failures;
    enum status st = journal_failure(f, owner_no_room(s), err);
    if (st == ST_OK && locked(s)->locked)
        st = error_set(err, ST_BUSY, "another process holds the database's lock");
    *ret_outsized = locked(s)->outsized_waits;
    journal_unlock(s);
    return st;
}

/* ST_OK: the tables are still this server's, so that it may answer from memory. */
static enum status confirm(struct journal_store *s, struct error *err)
{
    enum status st = store_confirm(s->reader, err);
    if (st == ST_LOCKED)
        owner_lose(s, err);
    return st;
}

enum status owner_begin(struct store *base, enum store_txn kind, const struct store_declared *d,
                        bool *ret_changed, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    struct owner_txn *t = &s->owner.txn;
    struct error why;
    bool outsized = false;
    assert(!t->open);
    enum status st = kind == STORE_READ ? ST_OK : refusal(s, &outsized, &why);
    if (st != ST_OK)
        return error_set(err, st, "%s", why.text);
    bool again = s->owner.others_again;
    s->owner.others_again = false;
    if (s->base.far)
        st = confirm(s, err);
    else if (owner_needs_tables(s, d))
        st = owner_begin_reading(s, err);
    if (st != ST_OK) {
        s->owner.others_again = again;
        return st;
    }
    if (s->owner.unsure)
        ask_writer(s);
    t->open = true;
    t->writing = kind != STORE_READ;
    t->lazy = kind == STORE_WRITE_LAZY;
    t->outsized = outsized;
    t->from = memtable_mark(active(s));
    t->rows = t->bytes = 0;
    t->entries.len = 0;
    bool others = atomic_exchange(&s->atomics.others, false) || again;
    if (others)
        gaps_clear(s->owner.layers.gaps);
    if (ret_changed)
        *ret_changed = others;
    else if (others)
        atomic_store(&s->atomics.others, true);
    return ST_OK;
}

static void end_txn(struct journal_store *s)
{
    struct owner_txn *t = &s->owner.txn;
    owner_end_reading(s);
    t->open = t->writing = false;
    if (t->entries.cap > ENTRIES_BYTES)
        buf_release(&t->entries);
}

static void undo(struct journal_store *s, mem_mark since)
{
    memtable_undo(active(s), since);
    gaps_clear(s->owner.layers.gaps);
}

void owner_rollback(struct store *base)
{
    struct journal_store *s = journal_store_of(base);
    if (!s->owner.txn.open)
        return;
    if (s->owner.txn.writing)
        undo(s, s->owner.txn.from);
    end_txn(s);
}

/* ---- numbers of rows ---- */

/* Rows that have come into the table since they were seen last, in the order of their change set. */
struct resolving {
    struct key_row *keys;
    struct key_ref *refs;
    size_t *places; /* among keys */
    size_t n;
};

static bool in_table(const struct journal_store *s, const struct key_row *k)
{
    if (k->seq < STORE_PROVISIONAL || k->seq >= s->owner.first_seq)
        return false;
    for (int i = 0; i < 2; i++)
        if (s->owner.layers.mem[i] && memtable_has_key(s->owner.layers.mem[i], k->db, k->key))
            return false;
    return true;
}

static enum status take_seqs(struct journal_store *s, struct resolving *r, struct error *err)
{
    int64_t *seqs = mem_alloc(r->n * sizeof *seqs);
    enum status st = store_get_seqs(s->reader, r->refs, r->n, seqs, err);
    for (size_t i = 0; st == ST_OK && i < r->n; i++)
        if (seqs[i])
            r->keys[r->places[i]].seq = seqs[i];
    mem_free(seqs);
    return st;
}

/* Looks their seqs up. */
static enum status resolve(struct journal_store *s, struct changes *c, struct error *err)
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
    enum status st = r.n ? owner_ready(s, err) : ST_OK;
    if (st == ST_OK && r.n)
        st = take_seqs(s, &r, err);
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

/* ---- changes ---- */

static size_t weigh(const struct changes *c)
{
    size_t n = (c->nkeys + c->nranges + c->nitems + c->ngone + c->ntrash + c->ndbs) * ROW_BYTES;
    for (size_t i = 0; i < c->nkeys; i++)
        n += c->keys[i].key.n + c->keys[i].value.n;
    for (size_t i = 0; i < c->nitems; i++)
        n += c->items[i].ref.name.n + c->items[i].value.n;
    for (size_t i = 0; i < c->ngone; i++)
        n += c->gone[i].name.n;
    for (size_t i = 0; i < c->nranges; i++)
        n += c->ranges[i].min_name.n + c->ranges[i].max_name.n;
    return n;
}

static bool too_large(const struct journal_store *s)
{
    size_t bytes = s->owner.txn.bytes;
    return s->options.max_bytes && (bytes > s->options.max_bytes / OUTSIZED_SHARE || bytes > s->set_bytes);
}

/* Into the active memtable. New rows get their numbers. */
static void take_changes(struct journal_store *s, struct changes *c)
{
    struct memtable *m = active(s);
    int64_t ticket = s->owner.last_ticket + 1;
    for (size_t i = 0; i < c->nkeys; i++) {
        bool fresh = c->keys[i].seq == 0;
        if (fresh)
            c->keys[i].seq = s->owner.next_seq++;
        memtable_put_key(m, &c->keys[i], fresh, ticket);
    }
    for (size_t i = 0; i < c->nranges; i++)
        memtable_put_range(m, &c->ranges[i]);
    for (size_t i = 0; i < c->ngone; i++)
        memtable_del_item(m, &c->gone[i], ticket);
    for (size_t i = 0; i < c->nitems; i++) {
        memtable_put_item(m, &c->items[i], c->items[i].fresh, ticket);
        if (c->items[i].ref.table == ITEM_ZSET)
            gaps_put(s->owner.layers.gaps, &c->items[i]);
    }
    for (size_t i = 0; i < c->ntrash; i++)
        memtable_add_trash(m, &c->trash[i]);
    for (size_t i = 0; i < c->ndbs; i++)
        memtable_put_db(m, &c->dbs[i]);
}

enum status owner_apply(struct store *base, struct changes *c, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    struct owner_txn *t = &s->owner.txn;
    if (!t->writing)
        return error_set(err, ST_INTERNAL, "apply without a transaction");
    enum status st = resolve(s, c, err);
    if (st != ST_OK)
        return st;
    take_changes(s, c);
    t->rows += c->nkeys + c->nranges * RANGE_ROWS + c->nitems + c->ngone + c->ntrash + c->ndbs;
    t->bytes += weigh(c);
    t->outsized |= too_large(s);
    if (t->outsized)
        buf_release(&t->entries);
    else
        journal_add_changes(&t->entries, c);
    forget_gone(c);
    return ST_OK;
}

enum status owner_mark(struct store *base, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    struct owner_txn *t = &s->owner.txn;
    if (!t->writing)
        return error_set(err, ST_INTERNAL, "a mark without a transaction");
    t->mark.at = memtable_mark(active(s));
    t->mark.entries = t->entries.len;
    t->mark.rows = t->rows;
    t->mark.bytes = t->bytes;
    return ST_OK;
}

/* One that has become too large for the journal stays so: its entries are gone. */
enum status owner_undo(struct store *base, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    struct owner_txn *t = &s->owner.txn;
    (void)err;
    undo(s, t->mark.at);
    if (!t->outsized)
        t->entries.len = t->mark.entries;
    t->rows = t->mark.rows;
    t->bytes = t->mark.bytes;
    return ST_OK;
}

static void note_next_id(struct journal_store *s)
{
    struct owner_txn *t = &s->owner.txn;
    memtable_put_next_id(active(s), s->owner.next_id);
    t->rows++;
    if (!t->outsized)
        journal_add_next_id(&t->entries, s->owner.next_id);
}

enum status owner_reserve_ids(struct store *base, int64_t n, int64_t *ret_first, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    bool own = !s->owner.txn.open;
    enum status st = own ? owner_begin(base, STORE_WRITE, NULL, NULL, err) : ST_OK;
    if (st != ST_OK)
        return st;
    if (!s->owner.txn.writing)
        return error_set(err, ST_READONLY, "ids are taken in transactions that write");
    *ret_first = s->owner.next_id;
    s->owner.next_id += n;
    note_next_id(s);
    return own ? owner_commit(base, err) : ST_OK;
}

/* ---- committing ---- */

/* Remembers what has to be undone if the commit cannot be made durable. */
static void remember(struct journal_store *s, int64_t ticket)
{
    struct journal_owner *o = &s->owner;
    if (o->first_pending && o->npending == o->cap_pending) {
        o->npending -= o->first_pending;
        memmove(o->pending, o->pending + o->first_pending, o->npending * sizeof *o->pending);
        o->first_pending = 0;
    }
    VEC_PUSH(o->pending, o->npending, o->cap_pending) = (struct pending_commit){
        .ticket = ticket,
        .mem = active(s),
        .from = o->txn.from,
        .to = memtable_mark(active(s)),
        .next_seq = o->next_seq,
        .bytes = o->txn.bytes,
    };
}

/* Hands the entries to the thread. Holding the lock. */
static void enqueue(struct journal_store *s, int64_t ticket)
{
    struct journal_shared *l = locked(s);
    const struct owner_txn *t = &s->owner.txn;
    struct journal_group *g = l->tail;
    bool fresh = !g || g->sealed || g->row.len >= s->group_bytes;
    if (fresh) {
        g = mem_zalloc(sizeof *g);
        g->lazy = true;
        g->born_us = clock_mono_us();
        journal_begin(&g->row);
        *(l->tail ? &l->tail->next : &l->first) = g;
        l->tail = g;
    }
    buf_add_slice(&g->row, buf_slice(&t->entries));
    g->last = ticket;
    g->rows += t->rows;
    g->lazy &= t->lazy;
    if (!s->redo && l->idle)
        pthread_cond_signal(&s->lock.work);
    else if (s->owner.alone && !t->lazy && logger_append_here(s))
        return;
    else if (l->log.idle && (fresh || g->row.len >= WRITER_EAGER_BYTES))
        logger_wake(s);
}

/* The first change set of a memtable: the thread that writes the tables sets its time by that. Holding the
   lock. */
static void begin_active(struct journal_store *s)
{
    struct journal_shared *l = locked(s);
    l->active_us = l->commit_us;
    if (s->redo && l->idle)
        pthread_cond_signal(&s->lock.work);
}

enum status owner_commit(struct store *base, struct error *err)
{
    struct journal_store *s = journal_store_of(base);
    const struct owner_txn *t = &s->owner.txn;
    if (!t->open)
        return error_set(err, ST_INTERNAL, "commit without a transaction");
    if (t->writing && memtable_mark(active(s)) != t->from) {
        int64_t ticket = ++s->owner.last_ticket;
        s->owner.committed_us = clock_mono_us();
        remember(s, ticket);
        s->owner.active_bytes += t->bytes;
        journal_lock(s);
        struct journal_shared *l = locked(s);
        l->committed = ticket;
        l->commit_us = s->owner.committed_us;
        if (!l->active_us)
            begin_active(s);
        l->outsized_waits |= t->outsized;
        if (!l->outsized_waits)
            enqueue(s, ticket);
        journal_unlock(s);
    }
    end_txn(s);
    return ST_OK;
}

int64_t owner_last_ticket(const struct store *base)
{
    return ((const struct journal_store *)base)->owner.last_ticket;
}
