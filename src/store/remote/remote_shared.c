/* Several servers on the same tables.

   A transaction that may write locks the keys it uses before it reads them, whether they exist or not, and
   holds the locks until it has ended: no other server sees or changes what it is about to change. There is a
   lock for each of STRIPES classes of keys, by their hash, so that their number is bounded: advisory locks on
   PostgreSQL, the rows of larder_lock on MariaDB. The keys that are known before are locked in one order, in
   the round trip that begins the transaction and reads them; those that turn up later, when they are read.
   Of two transactions that wait for each other then, the database ends one (ST_CONFLICT); PostgreSQL would
   take a second to look, and ends one that has waited for a moment. Besides, all transactions that write
   share one more lock, which one that changes whole databases takes alone. Key rows are also locked as rows,
   for applications that write to them without asking for any of this.

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
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_session.h"

int64_t rshared_now_us(const struct store *base)
{
    const struct rstore *s = (const struct rstore *)base;
    return clock_is_fake() ? clock_wall_us() : s->now_us;
}

/* ---- locks ---- */

static unsigned stripe_of(struct slice key)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key.p, key.n, hash);
    return hash[0] * 2u + hash[1] / 128u;
}

static void add_lock(struct rstore *s, enum remote_statement which)
{
    struct request r = {.text = rtext(s, which)};
    remote_add(s->conn, &r);
}

/* The highest stripe that is locked; -1: none is. */
static int64_t highest_locked(const struct rstore *s)
{
    int64_t k = STRIPES - 1;
    while (k >= 0 && !(s->stripes[k / 64] & (uint64_t)1 << k % 64))
        k--;
    return k;
}

/* Locks those of the wanted stripes that are not locked yet, in ascending order. Who waits for one that is
   below another which it has may be waited for in turn. Where the database takes its time to see that, it is
   not waited for: the transaction is tried again, with its locks in order, long before. */
static void lock_stripes(struct rstore *s, const uint64_t wanted[STRIPES / 64])
{
    int64_t *numbers = arena_alloc(&s->arena, STRIPES * sizeof *numbers);
    const int64_t highest = highest_locked(s);
    size_t found = 0;
    for (unsigned k = 0; k < STRIPES; k++) {
        uint64_t bit = (uint64_t)1 << k % 64;
        if ((wanted[k / 64] & bit) && !(s->stripes[k / 64] & bit)) {
            numbers[found++] = k;
            s->stripes[k / 64] |= bit;
        }
    }
    if (found == 0)
        return;
    const struct param p[] = {param_i64s(numbers)};
    struct request r = {.text = rtext(s, R_LOCK_STRIPES), .params = p, .nparams = 1, .nrows = found};
    const bool hurry = numbers[0] < highest && rtext(s, R_HURRY);
    s->hurries |= hurry;
    if (hurry)
        add_lock(s, R_HURRY);
    remote_add(s->conn, &r);
    if (hurry)
        add_lock(s, R_HURRY_OFF);
}

static void add_stripes(uint64_t stripes[STRIPES / 64], const struct key_ref *refs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned k = stripe_of(refs[i].key);
        stripes[k / 64] |= (uint64_t)1 << k % 64;
    }
}

void rshared_lock_keys(struct rstore *s, const struct key_ref *refs, size_t n)
{
    uint64_t wanted[STRIPES / 64] = {0};
    if (rgalera(s))
        rgalera_lock_keys(s, refs, n);
    if (s->everything || rgalera(s))
        return;
    add_stripes(wanted, refs, n);
    lock_stripes(s, wanted);
}

/* What the transaction will use, so far as it is known: what was declared, and after a conflict also what
   the transaction that failed had come to use, so that this time the locks are taken in order. */
static void lock_declared(struct rstore *s, const struct store_declared *d)
{
    if (rgalera(s))
        rgalera_lock_declared(s, d);
    if (s->everything || rgalera(s))
        return;
    add_stripes(s->again, d->keys, d->nkeys);
    lock_stripes(s, s->again);
    memset(s->again, 0, sizeof s->again);
}

void rshared_conflict(struct rstore *s)
{
    s->conflicts++;
    s->retrying = true;
    memcpy(s->again, s->stripes, sizeof s->again);
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

/* ---- beginning ---- */

static void ask_keys(struct rstore *s, bool lock, const struct key_ref *keys, size_t n, struct rfound *f)
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
    memset(s->stripes, 0, sizeof s->stripes);
    s->everything = write && d->everything;
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
    ask_keys(s, write, d->keys, d->nkeys, f);
    ask_keys(s, false, d->peeked, d->npeeked, f);
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
    enum status st = !write && d && d->rows_only ? rbrief_ask(s, d, &f, err) : ST_OK;
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
