/* Brief transactions: batches of GET and its like, which ask for the rows of keys that were declared, and for
   nothing else. BEGIN, the rows of all databases, those of the keys and the end of it would cost more than
   the keys do. Instead one statement outside of any transaction brings the clock, the number of the one
   database that all the keys are in, and their rows. A statement sees one state, and what had been committed
   before it came: all that a transaction would promise. Its end sends nothing.

   The number tells whether the database is still where the keys were looked for; if FLUSHDB or SWAPDB of
   another server has moved it, the transaction begins as any other does.

   When a command asks for more after all (a string of several chunks, a hash whose fields may have expired, a
   key that was not declared), the transaction is *widened*: a real one begins, and reads the same rows again,
   and all databases. If nothing of it has changed, everything that commands have seen so far is true in its
   snapshot, too, and it goes on there. Else it has to run again (ST_CONFLICT). Then, and whenever one was
   widened, the next NOT_YET transactions are not brief: whoever reads long strings does so again. Rows are
   compared by a sum of hashes over all they have, whose key is this process' secret.

   Positions (remote_position.c) are a primary's: behind the statement, in its round trip. On a replica they
   are told by the snapshot itself, so that transactions there are never brief.

   A crash, of the server or of the database, leaves nothing at any point: nothing is written. */
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_session.h"

#define NOT_YET   64
#define MAX_KEYS  4096
#define MAX_BYTES 262144 /* of names: a statement is in one packet */

#define POSTGRES_EPOCH_US INT64_C(946684800000000) /* 2000-01-01, from which it counts microseconds */

bool rbrief_is_on(const struct store *base)
{
    return ((const struct rstore *)base)->brief.on;
}

/* ---- what was read ---- */

static uint64_t sum_of(const struct rfound *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct key_row *k = &f->keys[i];
        int64_t numbers[] = {k->seq, k->type, k->id, k->size, k->first, k->version, k->expire_at, k->numbers};
        uint64_t h = hash_bytes(slice_of(numbers, sizeof numbers), k->db);
        sum += hash_bytes(k->value, hash_bytes(k->key, h));
    }
    return sum;
}

/* Where the rows go: the first has no key. */
struct answer {
    struct rfound *found;
    uint32_t number; /* that was asked for */
    int64_t is;      /* that the database has; -1: there is none */
    int64_t now_us;
};

static enum status take_row(void *arg, const struct remote_row *row)
{
    struct answer *a = arg;
    struct rfound *f = a->found;
    struct slice key = remote_bytes(row, 0);
    if (!key.p) {
        a->is = remote_i64(row, 1);
        a->now_us = remote_i64(row, 9) + (row->binary ? POSTGRES_EPOCH_US : 0);
        return ST_OK;
    }
    VEC_PUSH(f->keys, f->n, f->cap) = (struct key_row){
        .seq = remote_i64(row, 1),
        .db = a->number,
        .key = arena_copy(&f->store->arena, key),
        .type = (enum row_type)remote_i64(row, 2),
        .id = remote_i64(row, 3),
        .size = remote_i64(row, 4),
        .first = remote_i64(row, 5),
        .version = remote_i64(row, 6),
        .expire_at = remote_i64(row, 7),
        .numbers = remote_i64(row, 8),
        .value = arena_copy(&f->store->arena, remote_bytes(row, 9)),
    };
    return ST_OK;
}

/* ---- beginning ---- */

/* The logical database that all the keys are in, as far as is known; -1: they are in several, or it is not
   known, or there is something else about them. */
static int64_t database_of(const struct rstore *s, const struct store_declared *d)
{
    size_t bytes = 0;
    if (!s->mapped || s->pos.replica || d->nkeys > MAX_KEYS)
        return -1;
    for (size_t i = 0; i < d->nkeys; i++) {
        bytes += d->keys[i].key.n;
        if (d->keys[i].db != d->keys[0].db || d->keys[i].key.n > NAME_PLAIN || bytes > MAX_BYTES)
            return -1;
    }
    for (uint32_t i = 0; i < s->databases; i++)
        if (s->told[i].number == d->keys[0].db)
            return i;
    return -1;
}

/* For widening: the caller's own array is not its to the end. */
static void keep_keys(struct rbrief *b, const struct store_declared *d)
{
    b->n = 0;
    for (size_t i = 0; i < d->nkeys; i++)
        VEC_PUSH(b->keys, b->n, b->cap) = d->keys[i];
}

enum status rbrief_ask(struct rstore *s, bool write, const struct store_declared *d, struct rfound *f,
                       struct error *err)
{
    struct rbrief *b = &s->brief;
    int64_t db = b->not_yet && !write ? -1 : database_of(s, d);
    b->not_yet -= b->not_yet > 0 && !write;
    if (db < 0)
        return ST_OK;
    struct answer a = {.found = f, .number = d->keys[0].db, .is = -1};
    struct rfound peeked = {.store = s};
    struct slice *names = arena_alloc(&s->arena, d->nkeys * sizeof *names);
    for (size_t i = 0; i < d->nkeys; i++)
        names[i] = d->keys[i].key;
    const struct param p[] = {param_i64(db), param_i64(a.number), param_slices(names)};
    struct request r = {
        .text = rtext(s, R_BRIEF), .params = p, .nparams = 3, .nrows = d->nkeys, .fn = take_row, .arg = &a};
    rposition_before(s);
    remote_add(s->conn, &r);
    if (write && d->items)
        rshared_ask_keys(s, false, d->peeked, d->npeeked, &peeked);
    rposition_behind(s);
    enum status st = rstore_run(s, err);
    if (st == ST_OK)
        st = rposition_begun(s, err);
    if (peeked.n)
        b->locked = NOT_YET;
    bool other = a.is != a.number || peeked.n; /* it has moved; or something is kept of hashes */
    mem_free(peeked.keys);                     /* the bytes are in the arena, with those of the rows */
    if (st != ST_OK || other) {
        f->n = 0;
        return st;
    }
    keep_keys(b, d);
    b->sum = sum_of(f);
    b->on = true;
    b->writes = write;
    b->wrote = b->unsure = false;
    b->tied = write && d->tied;
    b->items = write && d->items;
    b->kept = b->items && d->npeeked ? d->peeked[0] : (struct key_ref){0};
    b->db = (uint32_t)db;
    if (write)
        rloose_keep(s, f);
    s->now_us = rposition_clock(s, a.now_us);
    return ST_OK;
}

/* ---- more ---- */

/* The caller has counted on from the counts that it had: they stay what differences are taken from, until it
   asks for those that are true now. */
static void keep_counts(struct rstore *s, const struct db_row *had)
{
    s->brief.fresh = mem_realloc(s->brief.fresh, s->databases * sizeof *had);
    memcpy(s->brief.fresh, s->told, s->databases * sizeof *had);
    memcpy(s->told, had, s->databases * sizeof *had);
    s->brief.recounted = true;
}

enum status rbrief_widen(struct rstore *s, struct error *err)
{
    struct rbrief *b = &s->brief;
    struct rfound f = {.store = s};
    const struct store_declared d = {
        .keys = b->keys, .nkeys = b->n, .peeked = &b->kept, .npeeked = b->items && b->kept.key.n};
    struct db_row *had = mem_alloc(s->databases * sizeof *had);
    int64_t now_us = s->now_us; /* a batch has one clock value */
    bool same = true;
    memcpy(had, s->told, s->databases * sizeof *had);
    b->on = false;
    *(b->writes ? &b->locked : &b->not_yet) = NOT_YET;
    enum status st = rshared_ask(s, b->writes, &d, &f, err);
    for (uint32_t i = 0; st == ST_OK && i < s->databases; i++)
        same &= had[i].number == s->told[i].number;
    same &= sum_of(&f) == b->sum;
    s->mapped = st == ST_OK && same;
    s->now_us = now_us;
    rread_release(&f);
    if (st == ST_OK && same && b->writes)
        keep_counts(s, had);
    mem_free(had);
    if (st == ST_OK && !same) {
        st = s->failed = error_set(err, ST_CONFLICT, "what this transaction has read has changed");
        rshared_conflict(s);
    }
    return st;
}
