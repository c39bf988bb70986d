/* Several servers on several nodes of a Galera cluster.

   A node runs a transaction with locks of its own, which no other node sees, and when it commits, sends the
   rows that it wrote to all nodes in one order. Each node lets a transaction through unless one that came
   before it in that order, and that the transaction's node did not have yet, wrote one of the same rows (it
   is certified); and what comes from another node ends every local transaction that stands in its way. So a
   transaction is protected by what it has written, and by nothing else:

   - A lock is a row of larder_lock that is inserted and removed again at once, before what it protects is
   read. It leaves nothing behind, but as a row that was written it is certified, and for as long as the
   transaction lasts it stands in the way of another node's with the same number. There is one for each of
   2^30 classes of keys, by their hash: of all keys that a transaction uses, so that also what it only reads
   is as it was when it commits. All that write share a lock with one that changes whole databases: each
   session has one of SLOTS numbers, and that one takes them all. One more is for the sweeper.
   - A transaction can be ended between any two statements, and the next one must not begin another:
   autocommit is off meanwhile. A savepoint that was made first is gone when the transaction is; so it is
   released before COMMIT, and a transaction that changed nothing ends with that as well: what it read stood
   until then.
   - Rows are written as states, and only over the version that was read.
   - COMMIT goes out by itself, and is believed when the session has a new write set to show. An answer that
   is neither that nor a deadlock, or a deadlock told by a node that has lost the others, is ST_UNKNOWN: the
     others may have the write set.
   - Blocks of numbers for rows come from larder_meta: a block that was taken by a transaction which did not
     commit is forgotten. AUTO_INCREMENT (larder_block) is not used: what it gives in a transaction that is
     ended is given on this node alone. Applications' procedures take the numbers that leave 1 when divided by
     the size of a block, on a node that is in no cluster too, so these are left out.

   Reads that begin a transaction wait until this node has what any node had committed before
   (wsrep_sync_wait): they see everything that was acknowledged.

   A crash of the server, or of the node, leaves nothing of a transaction that was not sent, and all of one
   that was certified. */
#include "store/remote/remote_galera.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rand.h"
#include "base/vec.h"
#include "sql/galera.h"
#include "store/remote/remote_session.h"

#define SLOTS      256 /* of sessions: two that share one only run each other's transactions again */
#define NODES      8   /* neighbours in slots */
#define FIRST_SLOT (-2 - SLOTS + 1)
#define SWEEP      (FIRST_SLOT - 1)
#define FIRST_KEY  ((int64_t)1 << 30) /* up to twice that: larder_lock.n is an INT */
#define CHECK_US   1000000

struct rgalera_seen {
    int64_t seq, version;
    size_t order; /* the last one counts */
};

/* ---- the session ---- */

static enum status take_written(void *arg, const struct remote_row *row)
{
    struct slice id = remote_bytes(row, 0);
    snprintf(arg, sizeof((struct rgalera *)0)->written, "%.*s", (int)id.n, id.p ? id.p : "");
    return ST_OK;
}

static void ask_written(struct rstore *s, char ret[sizeof((struct rgalera *)0)->written])
{
    struct request r = {.text = "SELECT WSREP_LAST_WRITTEN_GTID()", .fn = take_written, .arg = ret};
    ret[0] = '\0';
    remote_add(s->conn, &r);
}

static int64_t new_witness(void)
{
    uint32_t number;
    rand_secure(&number, sizeof number);
    return number >> 1;
}

enum status rgalera_connected(struct rstore *s, struct error *err)
{
    struct rgalera *g = s->galera;
    s->base.certified = s->shared && rgalera(s);
    if (!rgalera(s))
        return ST_OK;
    if (!g)
        g = s->galera = mem_zalloc(sizeof *g);
    g->witness = new_witness();
    g->transactions = 0;
    ask_written(s, g->written);
    g->checked_us = clock_mono_us();
    enum status st = rstore_run(s, err);
    if (st == ST_OK)
        log_info("connected to a node of a Galera cluster", "node=%s state=%s size=%u", s->conn->galera.name,
                 s->conn->galera.state, s->conn->galera.size);
    return st;
}

void rgalera_disconnected(struct rstore *s)
{
    if (s->galera)
        s->galera->guarded = s->galera->took_seqs = false;
    if (s->conn && rgalera(s)) /* the next node is tried first */
        s->first_host = s->conn->host + 1;
}

void rgalera_release(struct rstore *s)
{
    struct rgalera *g = s->galera;
    if (!g)
        return;
    mem_free(g->held);
    mem_free(g->again);
    mem_free(g->seen);
    mem_free(g->marked);
    mem_free(g);
}

bool rgalera_well(struct rstore *s)
{
    int64_t now_us = clock_mono_us();
    struct error err;
    if (!s->galera || !rgalera(s) || s->conn->lost || now_us < s->galera->checked_us + CHECK_US)
        return true;
    s->galera->checked_us = now_us;
    if (galera_check(s->conn, &err) == ST_OK)
        return true;
    char text[2 * sizeof err.text];
    log_warning("the database's node is left", "error=%s", log_quote(text, sizeof text, err.text));
    return false;
}

int64_t rgalera_slot(const struct rstore *s)
{
    const struct remote_node *n = &s->conn->galera;
    return (int64_t)((n->session * NODES + n->index % NODES) % SLOTS);
}

/* ---- beginning and ending ---- */

void rgalera_begin(struct rstore *s)
{
    struct rgalera *g = s->galera;
    remote_add_text(s->conn, "SET autocommit = 0");
    remote_add_text(s->conn, "START TRANSACTION");
    remote_add_text(s->conn, "SAVEPOINT larder_begun");
    g->guarded = true;
    g->took_seqs = false;
    g->nheld = g->nseen = 0;
}

/* The block that it took is another's, too, if it has not committed. */
static void forget_seqs(struct rstore *s)
{
    if (s->galera->took_seqs)
        s->seq_next = s->seq_end = 0;
}

void rgalera_rollback(struct rstore *s)
{
    remote_add_text(s->conn, "ROLLBACK");
    remote_add_text(s->conn, "SET autocommit = 1");
    forget_seqs(s);
}

/* Queues the transaction's number, with what it writes. */
static void leave_witness(struct rstore *s)
{
    struct rgalera *g = s->galera;
    const struct param p[] = {param_i64(g->witness), param_i64(++g->transactions)};
    struct request r = {.text = "INSERT INTO larder_count (number, slot, `keys`, expires)"
                                " VALUES (-1, ?1, ?2, UNIX_TIMESTAMP()) ON DUPLICATE KEY UPDATE"
                                " `keys` = VALUES(`keys`), expires = VALUES(expires)",
                        .params = p,
                        .nparams = 2};
    remote_add(s->conn, &r);
}

/* Whether the transaction is there, asked on a node that belongs to the cluster and has all before. */
static enum status find_witness(struct rstore *s, bool *ret, struct error *err)
{
    struct rgalera *g = s->galera;
    int64_t two[2] = {0, 0};
    const struct param p[] = {param_i64(g->witness)};
    struct request r = {.text = "SELECT `keys`, 0 FROM larder_count WHERE number = -1 AND slot = ?1",
                        .params = p,
                        .nparams = 1,
                        .fn = rread_two,
                        .arg = two};
    remote_add(s->conn, &r);
    enum status st = remote_run(s->conn, err);
    *ret = two[0] == g->transactions;
    return st == ST_OK ? galera_check(s->conn, err) : st;
}

/* The transaction has ended, or is: autocommit is on again. Whether the session has written something since
   it was last asked. */
static enum status end(struct rstore *s, bool rollback, bool *ret_written, struct error *err)
{
    struct rgalera *g = s->galera;
    char written[sizeof g->written];
    if (rollback)
        remote_add_text(s->conn, "ROLLBACK");
    ask_written(s, written);
    remote_add_text(s->conn, "SET autocommit = 1");
    enum status st = remote_run(s->conn, err);
    *ret_written = st == ST_OK && strcmp(written, g->written) != 0;
    if (st == ST_OK)
        memcpy(g->written, written, sizeof written);
    return st;
}

static enum status unknown(struct rstore *s, struct error *err)
{
    struct error why = *err;
    s->conn->lost = true;
    return error_set(err, ST_UNKNOWN, "whether the commit was made is unknown: %.150s", why.text);
}

/* A transaction that was not certified is told of a deadlock. One that was, and had to be done again by the
   node itself (it was in the way of one before it), is told that all is well, but the node does not call it
   the session's. And a node that loses the others may say anything. So the witness decides. */
static enum status commit(struct rstore *s, struct error *err)
{
    struct error again;
    bool written = false, there = false;
    s->conn->deadlock = false;
    remote_add_text(s->conn, "COMMIT"); /* by itself: else it is answered before it is known how it went */
    enum status st = rstore_run(s, err);
    bool told = st == ST_OK || (s->conn->deadlock && !s->conn->lost);
    enum status ended = told ? end(s, st != ST_OK, &written, st == ST_OK ? err : &again) : ST_IO;
    if (told && ended != ST_OK && !s->conn->lost) /* a deadlock may be told twice */
        ended = end(s, true, &written, st == ST_OK ? err : &again);
    if (ended != ST_OK)
        return unknown(s, err);
    s->galera->guarded = false;
    if (st == ST_OK && written)
        return ST_OK;
    if (find_witness(s, &there, st == ST_OK ? err : &again) != ST_OK)
        return unknown(s, err);
    if (there)
        return ST_OK;
    forget_seqs(s);
    if (st != ST_OK)
        return st;
    rshared_conflict(s);
    return error_set(err, ST_CONFLICT, "%s: the transaction was ended without a word", s->conn->place);
}

enum status rgalera_commit(struct rstore *s, struct error *err)
{
    if (s->dirty)
        leave_witness(s);
    remote_add_text(s->conn, "RELEASE SAVEPOINT larder_begun");
    if (!s->dirty)
        rgalera_rollback(s);
    enum status st = rstore_run(s, err);
    if (st != ST_OK)
        return st;
    if (s->dirty)
        return commit(s, err);
    s->galera->guarded = false;
    return ST_OK;
}

/* ---- locks ---- */

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Takes those of the numbers that are not taken yet, in one order. */
static void lock(struct rstore *s, int64_t *numbers, size_t n)
{
    struct rgalera *g = s->galera;
    size_t before = g->nheld, found = 0;
    if (n)
        qsort(numbers, n, sizeof *numbers, ascending);
    for (size_t i = 0; i < n; i++)
        if ((i == 0 || numbers[i] != numbers[i - 1]) &&
            !(before && bsearch(&numbers[i], g->held, before, sizeof *g->held, ascending)))
            numbers[found++] = numbers[i];
    if (found == 0)
        return;
    const struct param p[] = {param_i64s(numbers)};
    struct request take = {.text =
                               "INSERT INTO larder_lock (n) VALUES {,|(?1)} ON DUPLICATE KEY UPDATE n = n",
                           .params = p,
                           .nparams = 1,
                           .nrows = found};
    struct request leave = {.text =
                                "DELETE l FROM larder_lock AS l FORCE INDEX (PRIMARY) WHERE l.n IN ({,|?1})",
                            .params = p,
                            .nparams = 1,
                            .nrows = found};
    remote_add(s->conn, &take);
    remote_add(s->conn, &leave);
    for (size_t i = 0; i < found; i++)
        VEC_PUSH(g->held, g->nheld, g->held_cap) = numbers[i];
    qsort(g->held, g->nheld, sizeof *g->held, ascending);
}

void rgalera_lock_some(struct rstore *s)
{
    int64_t n = FIRST_SLOT + rgalera_slot(s);
    lock(s, &n, 1);
}

void rgalera_lock_all(struct rstore *s)
{
    int64_t numbers[SLOTS];
    for (int64_t i = 0; i < SLOTS; i++)
        numbers[i] = FIRST_SLOT + i;
    lock(s, numbers, SLOTS);
}

void rgalera_lock_sweep(struct rstore *s)
{
    int64_t n = SWEEP;
    lock(s, &n, 1);
}

static int64_t number_of(struct slice key)
{
    unsigned char h[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)key.p, key.n, h);
    return FIRST_KEY + (((int64_t)h[0] << 24 | h[1] << 16 | h[2] << 8 | h[3]) >> 2);
}

static int64_t *numbers_of(struct rstore *s, const struct key_ref *refs, size_t n, size_t more)
{
    int64_t *numbers = arena_alloc(&s->arena, (n + more) * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = number_of(refs[i].key);
    return numbers;
}

void rgalera_lock_keys(struct rstore *s, const struct key_ref *refs, size_t n)
{
    lock(s, numbers_of(s, refs, n, 0), n);
}

void rgalera_lock_declared(struct rstore *s, const struct store_declared *d)
{
    struct rgalera *g = s->galera;
    int64_t *numbers = numbers_of(s, d->keys, d->nkeys, g->nagain);
    if (g->nagain)
        memcpy(numbers + d->nkeys, g->again, g->nagain * sizeof *numbers);
    lock(s, numbers, d->nkeys + g->nagain);
    g->nagain = 0;
}

void rgalera_conflict(struct rstore *s)
{
    struct rgalera *g = s->galera;
    for (size_t i = 0; i < g->nheld; i++)
        if (g->held[i] >= FIRST_KEY)
            VEC_PUSH(g->again, g->nagain, g->again_cap) = g->held[i];
    g->nheld = 0;
}

/* ---- rows that were read ---- */

void rgalera_saw(struct rstore *s, int64_t seq, int64_t version)
{
    struct rgalera *g = s->galera;
    size_t order = g->nseen;
    VEC_PUSH(g->seen, g->nseen, g->seen_cap) = (struct rgalera_seen){seq, version, order};
}

static int by_seq(const void *a, const void *b)
{
    const struct rgalera_seen *x = a, *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Each row once, as it was last read, in the order of their numbers. */
static void sort_seen(struct rgalera *g)
{
    size_t kept = 0;
    if (g->nseen)
        qsort(g->seen, g->nseen, sizeof *g->seen, by_seq);
    for (size_t i = 0; i < g->nseen; i++)
        if (i + 1 == g->nseen || g->seen[i].seq != g->seen[i + 1].seq) {
            g->seen[kept] = g->seen[i];
            g->seen[kept].order = kept;
            kept++;
        }
    g->nseen = kept;
}

static int find_seq(const void *seq, const void *row)
{
    return ascending(seq, &((const struct rgalera_seen *)row)->seq);
}

void rgalera_expect(struct rstore *s, struct key_row *const *rows, struct slice *ret, size_t n)
{
    struct rgalera *g = s->galera;
    sort_seen(g);
    size_t known = g->nseen;
    for (size_t i = 0; i < n; i++) {
        const struct rgalera_seen *r =
            known ? bsearch(&rows[i]->seq, g->seen, known, sizeof *g->seen, find_seq) : NULL;
        char *text = arena_alloc(&s->arena, NUM_I64_CHARS);
        ret[i] = slice_of(text, num_format_i64(text, r ? r->version : -1));
    }
    for (size_t i = 0; i < n; i++)
        rgalera_saw(s, rows[i]->seq, rows[i]->version);
}

/* ---- going back ---- */

void rgalera_mark(struct rstore *s)
{
    struct rgalera *g = s->galera;
    sort_seen(g);
    g->marked = mem_realloc(g->marked, (g->nseen + 1) * sizeof *g->marked);
    if (g->nseen)
        memcpy(g->marked, g->seen, g->nseen * sizeof *g->seen);
    g->nmarked = g->nseen;
    g->marked_held = g->nheld;
    g->marked_seqs = g->took_seqs;
}

bool rgalera_undo(struct rstore *s)
{
    struct rgalera *g = s->galera;
    g->nseen = g->nmarked;
    if (g->nseen)
        memcpy(g->seen, g->marked, g->nseen * sizeof *g->seen);
    if (!g->marked_seqs)
        forget_seqs(s);
    return g->nheld == g->marked_held;
}

/* ---- setting up ---- */

/* A cluster begins to number rows behind those that are there. */
void rgalera_set_up(struct rstore *s)
{
    remote_add_text(s->conn, "INSERT IGNORE INTO larder_meta (name, value) VALUES ('next_seq', '0')");
    remote_add_text(s->conn,
                    "UPDATE larder_meta SET value = (SELECT (coalesce(max(seq), 0) DIV 1024 + 1) * 1024"
                    " FROM larder_key) WHERE name = 'next_seq' AND CAST(value AS SIGNED) <="
                    " (SELECT coalesce(max(seq), 0) FROM larder_key)");
}

/* Witnesses of sessions that have gone are removed besides, after a day. */
enum status rgalera_is_set_up(struct rstore *s, bool *ret, struct error *err)
{
    int64_t two[2] = {0, 0};
    const struct param p[] = {param_i64(s->databases)};
    struct request r = {.text = "SELECT (SELECT count(*) FROM larder_db WHERE db < ?1), coalesce((SELECT"
                                " CAST(value AS SIGNED) > (SELECT coalesce(max(seq), 0) FROM larder_key)"
                                " FROM larder_meta WHERE name = 'next_seq'), 0)",
                        .params = p,
                        .nparams = 1,
                        .fn = rread_two,
                        .arg = two};
    remote_add_text(s->conn, "DELETE FROM larder_count WHERE number = -1"
                             " AND expires < UNIX_TIMESTAMP() - 86400");
    remote_add(s->conn, &r);
    enum status st = rstore_run(s, err);
    *ret = st == ST_OK && two[0] == (int64_t)s->databases && two[1] == 1;
    return st;
}
