/* Several servers on the same tables.

   A transaction that may write locks the keys it uses before it reads them, whether they exist or not, and
   holds the locks until it has ended: no other server sees or changes what it is about to change. There is a
   lock for each of many classes of keys, by their hash: advisory locks on PostgreSQL, of so many classes that
   two batches hardly meet in one which is not a key's of both; the rows of larder_lock on MariaDB, and where
   there are no advisory locks. PostgreSQL has room for some thousand locks of all sessions: who needs more
   than MAX_CLASSES keeps all other writers out in their stead. The keys that are known before are locked in
   one order, in the round trip that begins the transaction and reads them; those that turn up later, when
   they are read. Of two transactions that wait for each other then, the database ends one (ST_CONFLICT);
   PostgreSQL would take a second to look, and ends one that has waited for a moment. Besides, all
   transactions that write share one more lock, which one that changes whole databases takes alone. Key rows
   are also locked as rows, for applications that write to them without asking for any of this.

   A transaction that only reads sees one snapshot and locks nothing; one that only reads the rows of the
   keys that it has declared is a single statement (remote_brief.c).

   Nothing is remembered from one transaction to the next but where the databases are, and that is compared
   with the tables each time. Rows that are only peeked at (those of the hidden database) are read behind the
   locks and not locked themselves. Counts of keys are written as differences, into a row of the session's
   own.

   On a node of a Galera cluster locks are others: remote_galera.c. */
#include <openssl/sha.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_session.h"

#define CLASS_BITS     20
#define ROW_CLASS_BITS 9   /* as many as larder_lock has rows for */
#define MAX_CLASSES    512 /* that a transaction locks */

_Static_assert(1 << ROW_CLASS_BITS == STRIPES, "a row for each class");

int64_t rshared_now_us(const struct store *base)
{
    const struct rstore *s = (const struct rstore *)base;
    return clock_is_fake() ? clock_wall_us() : s->now_us;
}

/* ---- locks ---- */

static void add_lock(struct rstore *s, enum remote_statement which)
{
    struct request r = {.text = rtext(s, which)};
    remote_add(s->conn, &r);
}

/* The same on every server. Where locks are rows, there is a row for each class. */
static int64_t class_of(const struct rstore *s, struct slice key)
{
    const bool rows = s->lock_rows || !rtext_postgres(s);
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key.p, key.n, hash);
    uint32_t head = (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
    return head >> (32 - (rows ? ROW_CLASS_BITS : CLASS_BITS));
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void add_classes(struct rclasses *c, const int64_t *at, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(c->at, c->n, c->cap) = at[i];
    if (c->n > 1)
        qsort(c->at, c->n, sizeof *c->at, by_number);
    for (size_t i = 0; i < c->n; i++)
        if (i == 0 || c->at[i] != c->at[kept - 1])
            c->at[kept++] = c->at[i];
    c->n = kept;
}

static int64_t *classes_of(struct rstore *s, const struct key_ref *refs, size_t n)
{
    int64_t *ret = arena_alloc(&s->arena, (n + 1) * sizeof *ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = class_of(s, refs[i].key);
    return ret;
}

/* Locks those of the wanted classes that are not locked yet, in ascending order. */
static void lock_classes(struct rstore *s, const struct rclasses *wanted)
{
    int64_t *missing = arena_alloc(&s->arena, (wanted->n + 1) * sizeof *missing);
    size_t n = 0;
    for (size_t i = 0; i < wanted->n; i++)
        if (!s->classes.n ||
            !bsearch(&wanted->at[i], s->classes.at, s->classes.n, sizeof *missing, by_number))
            missing[n++] = wanted->at[i];
    if (n == 0)
        return;
    const struct param p[] = {param_i64s(missing)};
    struct request r = {.text = rtext(s, R_LOCK_STRIPES), .params = p, .nparams = 1, .nrows = n};
    remote_add(s->conn, &r);
    add_classes(&s->classes, missing, n);
}

static void lock_keys(struct rstore *s, const struct key_ref *refs, size_t n)
{
    struct rclasses wanted = {0};
    add_classes(&wanted, classes_of(s, refs, n), n);
    lock_classes(s, &wanted);
    mem_free(wanted.at);
}

/* Who waits for a lock later than others may be waited for in turn: by who waits for a class below, or for a
   row that this transaction has. Where the database takes its time to see that, it is not waited for: the
   transaction is tried again, with its locks in order, long before. */
void rshared_lock_keys(struct rstore *s, const struct key_ref *refs, size_t n)
{
    if (rgalera(s))
        rgalera_lock_keys(s, refs, n);
    if (s->everything || rgalera(s))
        return;
    if (rtext(s, R_HURRY)) {
        add_lock(s, R_HURRY);
        s->hurries = s->hurrying = true;
    }
    lock_keys(s, refs, n);
}

void rshared_locked(struct rstore *s)
{
    if (s->hurrying)
        add_lock(s, R_HURRY_OFF);
    s->hurrying = false;
}

/* What the transaction will use, so far as it is known: what was declared, and after a conflict also what
   the transaction that failed had come to use, so that this time the locks are taken in order. */
static void lock_declared(struct rstore *s, const struct store_declared *d)
{
    if (rgalera(s))
        rgalera_lock_declared(s, d);
    if (s->everything || rgalera(s))
        return;
    add_classes(&s->again, classes_of(s, d->keys, d->nkeys), d->nkeys);
    lock_classes(s, &s->again);
    s->again.n = 0;
}

void rshared_conflict(struct rstore *s)
{
    s->conflicts++;
    s->retrying = true;
    s->again.n = 0;
    add_classes(&s->again, s->classes.at, s->classes.n);
    if (s->brief.wrote)
        rloose_conflict(s);
    if (s->galera)
        rgalera_conflict(s);
}

/* The lock that all transactions which write share, or have alone. */
static void lock_databases(struct rstore *s, bool alone)
{
    if (!rgalera(s))
        add_lock(s, alone ? R_LOCK_ALL : R_LOCK_SOME);
    else if (alone)
        rgalera_lock_all(s);
    else
        rgalera_lock_some(s);
}

void rshared_lock_loose(struct rstore *s, const struct key_ref *refs, size_t n)
{
    s->classes.n = 0;
    s->everything = n > MAX_CLASSES;
    lock_databases(s, s->everything);
    if (!s->everything)
        lock_keys(s, refs, n);
}

/* ---- beginning ---- */

void rshared_ask_keys(struct rstore *s, bool lock, const struct key_ref *keys, size_t n, struct rfound *f)
{
    if (n == 0)
        return;
    int64_t *dbs = arena_alloc(&s->arena, n * sizeof *dbs);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        dbs[i] = keys[i].db;
        names[i] = remote_name_index(&s->arena, keys[i].key);
    }
    const struct param p[] = {param_i64s(dbs), param_slices(names)};
    struct request r = {.text = rtext(s, lock ? R_GET_KEYS_LOCKED : R_GET_KEYS),
                        .params = p,
                        .nparams = 2,
                        .nrows = n,
                        .fn = rread_take_key,
                        .arg = f};
    remote_add(s->conn, &r);
}

enum status rshared_ask(struct rstore *s, bool write, const struct store_declared *d, struct rfound *f,
                        struct error *err)
{
    struct rlisting l = {.dbs = s->told, .n = s->databases};
    int64_t next = s->next_number;
    s->mapped = false; /* until the caller has loaded what is told now */
    s->classes.n = 0;
    s->everything = write && (d->everything || (!rgalera(s) && d->nkeys + s->again.n > MAX_CLASSES));
    rposition_before(s);
    if (write) {
        rstore_begin_write(s);
        lock_databases(s, s->everything);
        lock_declared(s, d);
    } else {
        rstore_begin_read(s);
    }
    struct request r = {.text = rtext(s, R_LOAD_DBS), .fn = rstore_take_db, .arg = &l};
    remote_add(s->conn, &r);
    if (write || next < 0) /* who only reads makes no database */
        rstore_add_get_meta(s, "next_db_number", &next);
    rshared_ask_keys(s, write, d->keys, d->nkeys, f);
    rshared_ask_keys(s, false, d->peeked, d->npeeked, f);
    if (!write)
        rposition_behind(s);
    enum status st = rstore_run(s, err);
    if (st == ST_OK && !write)
        st = rposition_begun(s, err);
    if (st == ST_OK && (l.found < s->databases || next < 0))
        st = error_set(err, ST_CORRUPT, "larder_db has no row for database %zu", l.found);
    if (st != ST_OK)
        return st;
    s->next_number = next;
    s->now_us = rposition_clock(s, l.now_us);
    s->told_valid = true;
    return ST_OK;
}

enum status rshared_begin(struct rstore *s, bool write, const struct store_declared *d, struct error *err)
{
    static const struct store_declared nothing;
    struct rfound f = {.store = s};
    bool brief = write ? rloose_may(s, d) : d && d->rows_only;
    enum status st = brief ? rbrief_ask(s, write, d, &f, err) : ST_OK;
    if (st == ST_OK && !s->brief.on)
        st = rshared_ask(s, write, d ? d : &nothing, &f, err);
    if (st != ST_OK)
        store_rollback(&s->base);
    for (size_t i = 0; st == ST_OK && d && i < f.n; i++)
        st = d->fn(d->arg, &f.keys[i]);
    rread_release(&f);
    return st;
}

/* ---- databases ---- */

/* Databases that have another number now: their counts are written whole, in the place of all differences.
   The lock on everything is held, or had here. */
static void move_dbs(struct rstore *s, const struct db_row *const *moved, size_t n)
{
    struct db_columns columns;
    int64_t next = rapply_fill_dbs(s, moved, n, &columns);
    if (!s->everything)
        lock_databases(s, true);
    s->everything = true;
    if (next > s->next_number)
        rapply_next_number(s, next);
    rapply_put_dbs(s, &columns);
    const struct param numbers = param_i64s(columns.at[1]);
    struct request r = {.text = rtext(s, R_DROP_COUNTS), .params = &numbers, .nparams = 1, .nrows = n};
    remote_add(s->conn, &r);
}

enum status rshared_apply_dbs(struct rstore *s, const struct changes *c, struct error *err)
{
    size_t n = c->ndbs, counted = 0, nmoved = 0;
    int64_t *numbers = arena_alloc(&s->arena, n * sizeof *numbers);
    int64_t *keys = arena_alloc(&s->arena, n * sizeof *keys);
    int64_t *expires = arena_alloc(&s->arena, n * sizeof *expires);
    const struct db_row **moved = arena_alloc(&s->arena, n * sizeof *moved);
    for (size_t i = 0; i < n; i++) {
        const struct db_row *d = &c->dbs[i];
        struct db_row *was = &s->told[d->db];
        if (!s->told_valid || d->db >= s->databases)
            return error_set(err, ST_INTERNAL, "databases are written that were not read");
        if (d->number != was->number) {
            moved[nmoved++] = d;
        } else if (d->keys != was->keys || d->expires != was->expires) {
            numbers[counted] = d->number;
            keys[counted] = d->keys - was->keys;
            expires[counted++] = d->expires - was->expires;
        }
    }
    s->appeared |= nmoved > 0;
    if (nmoved)
        move_dbs(s, moved, nmoved);
    if (counted) {
        const struct param p[] = {param_i64s(numbers), param_i64s(keys), param_i64s(expires),
                                  param_i64(rgalera_slot(s))};
        struct request r = {
            .text = rtext(s, R_ADD_COUNTS), .params = p, .nparams = rgalera(s) ? 4 : 3, .nrows = counted};
        remote_add(s->conn, &r);
    }
    for (size_t i = 0; i < n; i++)
        s->told[c->dbs[i].db] = c->dbs[i];
    return ST_OK;
}
