/* Loose writes: batches of SET, INCR and their like, which use the rows of keys that were declared, and
   nothing else; or of HSET, SADD, RPUSH and theirs, which use the items of these keys as well, where they are
   few. Locks on the classes of the keys, FOR UPDATE and the counts of all databases would cost more
   than the rows do. Instead they begin as brief transactions do (remote_brief.c): one statement, and no lock.
   At the end one round trip has BEGIN, what follows here, and COMMIT:

     1. the lock that all writers share (R_LOCK_SOME)
     2. the classes of keys that are new, or tied and not there, in one order
     3. whether the database still has the number that its keys were looked for by (R_LOOSE_DB), and with
        items whether still nothing is kept of hashes (R_LOOSE_ABSENT)
     4. rows that are written over, each with the version that was read as a condition (R_LOOSE_UPDATE)
     5. new rows (R_INSERT_KEYS), items, trash, counts
     6. rows that are tied and not written: they are as they were, and stay so (R_LOOSE_SAME)
     7. keys that are tied and not there: they still are not (R_LOOSE_ABSENT)

   A row that is not as it was read fails its statement, and the transaction with it (ST_CONFLICT): nothing of
   it remains, and the calls run again. The next transaction then locks, and after another conflict the next
   two, twice as many each time: keys that several servers write all the time are waited for, not fought for.
   What was written without a conflict takes half of that back.

   WHY THAT IS ENOUGH. Each statement sees what had been committed when it began (READ COMMITTED). Who else
   writes:

   Another loose write of the same row. The second UPDATE waits for the first one's transaction. When that was
     committed, PostgreSQL looks at the condition again, with the row as it is now: the version is another
     (it grows with each write), the row does not match, and the number of matches is one too small. When it
     was rolled back the row is as it was. A lost update would need two rows with one number and one version.
     MariaDB writes with INSERT ... ON DUPLICATE KEY UPDATE: it finds the row by its number in the primary
     key, locks it, and compares the version with that of the row as it is then, not of a snapshot. Another
     version makes the new one too large for its column, an error that ends the packet before COMMIT. A row
     that has gone would be inserted: behind the statement ROW_COUNT() has to be two for each row, which it is
     only when all were there and are changed (request.guarded). That a row is X locked by its number alone
     leaves no gap for others to wait at; a deadlock all the same is a conflict like any other.
   Another that makes the same key. The class lock lets one through; the other's INSERT finds the row that was
     made (unique_violation, a conflict).
   A transaction with locks that reads the row. It has it FOR UPDATE: we wait for its end, as above; or it
     waits for ours, and reads what we have written.
   A transaction with locks that found no row, and writes another key because of that. It holds the class; we
     make no row before it has ended.
   FLUSHALL, FLUSHDB, SWAPDB, and whoever has everything. It waits for 1. of ours, or we for its end: then 3.,
     which began after 1. was had, sees another number. So do transactions that change what is kept in step
     with hashes (engine/keeper.h): 3. looks for that, too, unless nothing but rows of strings is written,
     which are not among it.
   The sweeper. It removes rows that are dead, behind FOR UPDATE SKIP LOCKED. It was first: the row is gone,
     a match is missing, and what it took off the counts is not taken off twice. It is second: the row is
     locked, or no longer dead.
   An application. Whoever changes a row gives it another version (docs/schema.md); one that only has locked
     it is waited for.

   What a call has read and the batch has not written may have changed before the commit. For a call of one
   key that is nothing: it counts as run when the row was read, which was after it had come and before its
   answer left. For a call of several keys, or one behind another of its own client (which may have seen, or
   made, what the batch writes), it would be something: those keys are tied (engine/view.h), and 6. and 7.
   keep them as they were to the end.

   ITEMS are read later than the rows of their keys, by statements of their own (store_read_whole alone: who
   asks for items in another way widens). They may be those of another state: the row is of version 1, the
   items are of version 2. But whoever changes an item gives its key's row another version in the same
   transaction: commands (coll_save), renumbering and the removal of expired fields (coll_numbers.c,
   coll_expire.c), an application (docs/schema.md). Versions of a row only grow. So if the row has at the end
   the version that it had when it was read, every state that was committed between the two has that version,
   and the same items: whenever they were read, they were the row's. When the row is written 4. says so; when
   it is not, it is tied (6.), and a transaction that writes nothing at all asks for 6. and 7. alone
   (rloose_prove). What contradicts itself meanwhile (a row that speaks of two fields, and three are found) is
   not told to a client: the collection is read again in another way, which widens. A collection that was
   deleted and made anew has another id, and its row another version; ids are never given out twice. Items
   that are new or gone stand behind a row that this transaction has locked, and are of its id (takes_items):
   entries of a table over hashes are not, and would widen. That there is no such table is what 3. is for: who
   makes one is alone (engine/keeper.h).

   Galera certifies what was written, and locks hold on one node alone: nothing is loose there (rloose_may).

   Nothing waits in a circle: classes come first, in order, then rows in the order of their names, as with
   transactions that lock; counts are last; 6. waits for nobody (SKIP LOCKED: who has a row is about to change
   it). Who locks keys later than others, because they turned up later, waits for a moment only (R_HURRY).

   When something else is asked for, the transaction is widened as a brief one is: locks, the same rows once
   more, and a conflict if they are others. Then nothing of this file is used.

   The COMMIT is one of its own, so that an answer to it says what it does everywhere (remote_store.c): one
   that does not come is ST_UNKNOWN. A crash of the server or of the database leaves all of it or nothing. */
#include <stdlib.h>

#include "base/mem.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_session.h"

#define LOCKED_MIN 1 /* transactions that lock behind a conflict, at first ... */
#define LOCKED_MAX 4096

bool rloose_may(struct rstore *s, const struct store_declared *d)
{
    struct rbrief *b = &s->brief;
    if (!d || !d->loose || rgalera(s) || !rtext(s, R_LOOSE_DB))
        return false;
    if (b->locked == 0)
        return true;
    b->locked--;
    return false;
}

void rloose_conflict(struct rstore *s)
{
    struct rbrief *b = &s->brief;
    b->penalty = b->penalty ? b->penalty * 2 : LOCKED_MIN;
    if (b->penalty > LOCKED_MAX)
        b->penalty = LOCKED_MAX;
    b->locked = b->penalty;
    b->wrote = false;
}

void rloose_committed(struct rstore *s)
{
    s->brief.penalty /= 2;
    s->brief.wrote = false;
}

/* ---- what was read ---- */

/* Where a key is among those that were declared, all of one database; or NULL. */
static struct rseen *find(const struct rbrief *b, uint32_t db, struct slice key)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = slice_cmp(b->keys[middle].key, key);
        if (c == 0)
            return b->keys[middle].db == db ? &b->seen[middle] : NULL;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void rloose_keep(struct rstore *s, const struct rfound *f)
{
    struct rbrief *b = &s->brief;
    if (b->seen_cap < b->n)
        b->seen = mem_realloc(b->seen, (b->seen_cap = b->n) * sizeof *b->seen);
    memset(b->seen, 0, b->n * sizeof *b->seen);
    for (size_t i = 0; i < f->n; i++) {
        struct rseen *seen = find(b, f->keys[i].db, f->keys[i].key);
        if (seen)
            *seen = (struct rseen){.seq = f->keys[i].seq, .version = f->keys[i].version};
    }
}

bool rloose_reads_items(struct rstore *s)
{
    struct rbrief *b = &s->brief;
    if (!s->conn || s->conn->lost || !b->on || !b->items || s->failed != ST_OK)
        return false;
    b->unsure = b->tied = true;
    return true;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Whether all items that are written are of keys that are. */
static bool takes_items(struct rstore *s, const struct changes *c)
{
    bool all = true;
    int64_t *ids = arena_alloc(&s->arena, (c->nkeys + 1) * sizeof *ids);
    for (size_t i = 0; i < c->nkeys; i++)
        ids[i] = c->keys[i].id;
    qsort(ids, c->nkeys, sizeof *ids, by_number);
    for (size_t i = 0; all && i < c->nitems; i++)
        all = bsearch(&c->items[i].ref.id, ids, c->nkeys, sizeof *ids, by_number);
    for (size_t i = 0; all && i < c->ngone; i++)
        all = bsearch(&c->gone[i].id, ids, c->nkeys, sizeof *ids, by_number);
    return all;
}

/* Whether all that is written was read, and nothing but rows of keys and their items is. Notes which. */
static bool takes(struct rstore *s, const struct changes *c)
{
    struct rbrief *b = &s->brief;
    if (!c->last || c->nranges || c->next_id || c->replay)
        return false;
    if (c->nitems + c->ngone && !(b->items && takes_items(s, c)))
        return false;
    for (size_t i = 0; i < c->ndbs; i++)
        if (c->dbs[i].db >= s->databases || c->dbs[i].number != s->told[c->dbs[i].db].number)
            return false;
    for (size_t i = 0; i < c->nkeys; i++) {
        struct rseen *seen = find(b, c->keys[i].db, c->keys[i].key);
        if (!seen || seen->seq != c->keys[i].seq)
            return false;
        seen->written = true;
    }
    return true;
}

/* ---- writing ---- */

/* Rows that are written over, in the order of their names. */
static void update(struct rstore *s, struct key_row *const *rows, size_t n)
{
    struct key_columns k;
    int64_t *was = arena_alloc(&s->arena, n * sizeof *was);
    rapply_fill_keys(s, rows, n, &k);
    for (size_t i = 0; i < n; i++)
        was[i] = find(&s->brief, rows[i]->db, rows[i]->key)->version;
    const struct param p[] = {param_i64s(k.seqs),     param_i64s(was),        param_i64s(k.types),
                              param_i64s(k.ids),      param_i64s(k.sizes),    param_i64s(k.firsts),
                              param_i64s(k.versions), param_i64s(k.expiries), param_slices(k.values),
                              param_i64s(k.numbers),  param_i64s(k.dbs),      param_slices(k.keys)};
    struct request r = {.text = rtext(s, R_LOOSE_UPDATE),
                        .params = p,
                        .nparams = rtext_postgres(s) ? 10 : 12,
                        .nrows = n,
                        .guarded = true};
    remote_add(s->conn, &r);
}

/* The declared keys that are not written, those that have a row and those that have none. */
struct untouched {
    int64_t *seqs, *versions;
    size_t nseqs;
    struct key_ref *absent;
    size_t nabsent;
};

static void find_untouched(struct rstore *s, struct untouched *u)
{
    const struct rbrief *b = &s->brief;
    *u = (struct untouched){.seqs = arena_alloc(&s->arena, b->n * sizeof *u->seqs),
                            .versions = arena_alloc(&s->arena, b->n * sizeof *u->versions),
                            .absent = arena_alloc(&s->arena, b->n * sizeof *u->absent)};
    for (size_t i = 0; b->tied && i < b->n; i++) {
        if (b->seen[i].written)
            continue;
        if (b->seen[i].seq == 0) {
            u->absent[u->nabsent++] = b->keys[i];
            continue;
        }
        u->seqs[u->nseqs] = b->seen[i].seq;
        u->versions[u->nseqs++] = b->seen[i].version;
    }
}

/* The classes of keys that are not there. */
static void lock_absent(struct rstore *s, struct key_row *const *fresh, size_t n, const struct untouched *u)
{
    struct key_ref *refs = arena_alloc(&s->arena, (n + u->nabsent + 1) * sizeof *refs);
    for (size_t i = 0; i < n; i++)
        refs[i] = (struct key_ref){fresh[i]->db, fresh[i]->key};
    memcpy(refs + n, u->absent, u->nabsent * sizeof *refs);
    rshared_lock_loose(s, refs, n + u->nabsent);
}

static void check_absent(struct rstore *s, uint32_t db, const struct slice *names, size_t n)
{
    const struct param p[] = {param_i64(db), param_slices(names)};
    struct request r = {.text = rtext(s, R_LOOSE_ABSENT), .params = p, .nparams = 2, .nrows = n};
    remote_add(s->conn, &r);
}

static void check_untouched(struct rstore *s, const struct untouched *u)
{
    if (u->nseqs) {
        const struct param p[] = {param_i64s(u->seqs), param_i64s(u->versions)};
        struct request r = {.text = rtext(s, R_LOOSE_SAME), .params = p, .nparams = 2, .nrows = u->nseqs};
        remote_add(s->conn, &r);
    }
    if (u->nabsent) {
        struct slice *names = arena_alloc(&s->arena, u->nabsent * sizeof *names);
        for (size_t i = 0; i < u->nabsent; i++)
            names[i] = u->absent[i].key;
        check_absent(s, u->absent[0].db, names, u->nabsent);
    }
}

enum status rloose_prove(struct rstore *s, struct error *err)
{
    struct untouched u;
    if (!s->brief.unsure)
        return ST_OK;
    s->brief.wrote = true; /* what becomes of it counts as if it had */
    find_untouched(s, &u);
    check_untouched(s, &u);
    arena_reset(&s->arena);
    return rstore_run(s, err);
}

/* ---- a change set ---- */

/* Behind the lock of all writers: what was read of the database, and of what is kept of hashes, is so and
   stays so. */
static void check_database(struct rstore *s)
{
    const struct rbrief *b = &s->brief;
    const struct param p[] = {param_i64(b->db), param_i64(b->keys[0].db)};
    struct request r = {.text = rtext(s, R_LOOSE_DB), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
    if (b->kept.key.n)
        check_absent(s, b->kept.db, &b->kept.key, 1);
}

enum status rloose_apply(struct rstore *s, struct changes *c, bool *ret_done, struct error *err)
{
    struct rbrief *b = &s->brief;
    struct key_split rows;
    struct untouched u;
    *ret_done = b->on && b->writes && takes(s, c);
    if (!*ret_done)
        return ST_OK;
    enum status st = rapply_split_keys(s, c, &rows, err); /* may ask for numbers */
    if (st != ST_OK)
        return st;
    find_untouched(s, &u);
    b->on = false;
    b->wrote = s->dirty = s->told_valid = true;
    s->appeared |= c->appeared;
    rstore_begin_write(s);
    lock_absent(s, rows.fresh, rows.nfresh, &u);
    check_database(s);
    rapply_in_pieces(s, rows.known, rows.nknown, update);
    rapply_insert_keys(s, rows.fresh, rows.nfresh);
    if (c->nitems + c->ngone)
        rapply_items(s, c);
    rapply_trash(s, c->trash, c->ntrash);
    if (c->ndbs)
        st = rshared_apply_dbs(s, c, err);
    check_untouched(s, &u);
    arena_reset(&s->arena);
    return st;
}
