/* Bringing a change set into the tables of a database server: a statement for each table, whatever the number
   of rows. Nothing waits for an answer here; what goes wrong is known when something is read, or at the
   commit.

   Rows go in the order of keys, so that two servers that write the same ones take their locks in the same
   order. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "store/remote_names.h"
#include "store/remote_schema.h"
#include "store/remote_store.h"

#define STALE "no row under the key and number that it was read with"

/* ---- numbers for new rows ---- */

static size_t count_new(const struct changes *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->nkeys; i++)
        n += c->keys[i].seq == 0;
    return n;
}

/* Blocks of numbers, so many that all rows get one. What is left of the last block is for the next time; with
   more than one missing, the blocks are handed out in order. */
static enum status take_seqs(struct rstore *s, struct changes *c, struct error *err)
{
    size_t have = (size_t)(s->seq_end - s->seq_next), need = count_new(c);
    size_t blocks = need <= have ? 0 : (need - have + REMOTE_SEQ_BLOCK - 1) / REMOTE_SEQ_BLOCK;
    int64_t(*starts)[2] = arena_alloc(&s->arena, (blocks + 1) * sizeof *starts);
    for (size_t i = 0; i < blocks; i++) {
        struct request r = {.text = rtext(s, R_NEXT_SEQ), .fn = rread_two, .arg = starts[i]};
        remote_add(s->conn, &r);
    }
    enum status st = blocks ? rstore_run(s, err) : ST_OK;
    size_t next = 0;
    for (size_t i = 0; st == ST_OK && i < c->nkeys; i++) {
        if (c->keys[i].seq)
            continue;
        if (s->seq_next == s->seq_end) {
            s->seq_next = starts[next++][0];
            s->seq_end = s->seq_next + REMOTE_SEQ_BLOCK;
        }
        c->keys[i].seq = s->seq_next++;
    }
    return st;
}

/* ---- keys ---- */

static int by_name(const void *a, const void *b)
{
    const struct key_row *x = *(struct key_row *const *)a, *y = *(struct key_row *const *)b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

enum { K_SEQ, K_DB, K_TYPE, K_ID, K_SIZE, K_FIRST, K_VERSION, K_EXPIRE, K_NUMBERS };

static void put_keys(struct rstore *s, enum remote_statement which, struct key_row *const *rows, size_t n)
{
    if (n == 0)
        return;
    int64_t *numbers[K_NUMBERS];
    struct slice *keys = arena_alloc(&s->arena, n * sizeof *keys);
    struct slice *rests = arena_alloc(&s->arena, n * sizeof *rests);
    struct slice *values = arena_alloc(&s->arena, n * sizeof *values);
    for (int i = 0; i < K_NUMBERS; i++)
        numbers[i] = arena_alloc(&s->arena, n * sizeof **numbers);
    for (size_t i = 0; i < n; i++) {
        const struct key_row *k = rows[i];
        keys[i] = remote_name_index(&s->arena, k->key);
        rests[i] = remote_name_rest(k->key);
        values[i] = k->value;
        numbers[K_SEQ][i] = k->seq;
        numbers[K_DB][i] = k->db;
        numbers[K_TYPE][i] = k->type;
        numbers[K_ID][i] = k->id;
        numbers[K_SIZE][i] = k->size;
        numbers[K_FIRST][i] = k->first;
        numbers[K_VERSION][i] = k->version;
        numbers[K_EXPIRE][i] = k->expire_at;
    }
    const struct param p[] = {
        param_i64s(numbers[K_SEQ]),    param_i64s(numbers[K_DB]),    param_slices(keys),
        param_slices(rests),           param_i64s(numbers[K_TYPE]),  param_i64s(numbers[K_ID]),
        param_i64s(numbers[K_SIZE]),   param_i64s(numbers[K_FIRST]), param_i64s(numbers[K_VERSION]),
        param_i64s(numbers[K_EXPIRE]), param_slices(values),
    };
    struct request r = {.text = rtext(s, which), .params = p, .nparams = 11, .nrows = n};
    if (which == R_UPDATE_KEYS)
        r.expect = STALE;
    remote_add(s->conn, &r);
}

static enum status apply_keys(struct rstore *s, struct changes *c, struct error *err)
{
    struct key_row **known = arena_alloc(&s->arena, c->nkeys * sizeof *known);
    struct key_row **fresh = arena_alloc(&s->arena, c->nkeys * sizeof *fresh);
    size_t nknown = 0, nfresh = 0;
    for (size_t i = 0; i < c->nkeys; i++) {
        struct key_row *k = &c->keys[i];
        if (k->seq)
            known[nknown++] = k;
        else
            fresh[nfresh++] = k;
    }
    enum status st = take_seqs(s, c, err);
    if (st != ST_OK)
        return st;
    qsort(known, nknown, sizeof *known, by_name);
    qsort(fresh, nfresh, sizeof *fresh, by_name);
    put_keys(s, R_UPDATE_KEYS, known, nknown);
    put_keys(s, R_INSERT_KEYS, fresh, nfresh);
    return ST_OK;
}

/* ---- items ---- */

/* What comes twice stays in the order it came in. */
static int by_ref(const void *a, const void *b)
{
    const struct item_ref *x = *(const struct item_ref *const *)a, *y = *(const struct item_ref *const *)b;
    int c = refs_compare(x, y);
    return c ? c : (x > y) - (x < y);
}

/* Sorted, the last one of those that are the same. */
static size_t sort_refs(const void **refs, size_t n)
{
    size_t kept = 0;
    qsort(refs, n, sizeof *refs, by_ref);
    for (size_t i = 0; i < n; i++)
        if (i + 1 == n || refs_compare(refs[i], refs[i + 1]) != 0)
            refs[kept++] = refs[i];
    return kept;
}

/* by_ref sorts pointers to refs; an item begins with its ref. */
_Static_assert(offsetof(struct item_row, ref) == 0, "an item begins with its ref");

/* The columns of one table's rows, as the texts of remote_texts.c number them. */
static void put_table(struct rstore *s, enum item_table t, const struct item_row *const *rows, size_t n)
{
    struct param p[REMOTE_PARAMS];
    int np = 0;
    int64_t *ids = arena_alloc(&s->arena, n * sizeof *ids),
            *places = arena_alloc(&s->arena, n * sizeof *places);
    int64_t *ords = arena_alloc(&s->arena, n * sizeof *ords),
            *bits = arena_alloc(&s->arena, n * sizeof *bits);
    int64_t *expiries = arena_alloc(&s->arena, n * sizeof *expiries);
    double *scores = arena_alloc(&s->arena, n * sizeof *scores);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    struct slice *rests = arena_alloc(&s->arena, n * sizeof *rests);
    struct slice *values = arena_alloc(&s->arena, n * sizeof *values);
    for (size_t i = 0; i < n; i++) {
        const struct item_row *r = rows[i];
        ids[i] = r->ref.id;
        places[i] = r->ref.pos;
        names[i] = remote_name_index(&s->arena, r->ref.name);
        rests[i] = remote_name_rest(r->ref.name);
        values[i] = r->value;
        scores[i] = r->score;
        bits[i] = score_bits(r->score);
        expiries[i] = r->expire_at;
        ords[i] = r->ord;
    }
    p[np++] = param_i64s(ids);
    p[np++] = item_named(t) ? param_slices(names) : param_i64s(places);
    if (item_named(t))
        p[np++] = param_slices(rests);
    if (item_valued(t))
        p[np++] = param_slices(values);
    if (item_scored(t))
        p[np++] = param_doubles(scores);
    if (t == ITEM_HASH)
        p[np++] = param_i64s(expiries);
    if (item_counted(t))
        p[np++] = param_i64s(ords);
    if (item_scored(t) && s->conn->dialect == REMOTE_MARIADB)
        p[np++] = param_i64s(bits);
    struct request r = {.text = rtext_put_items(s, t), .params = p, .nparams = np, .nrows = n};
    remote_add(s->conn, &r);
}

static void delete_table(struct rstore *s, enum item_table t, const struct item_ref *const *refs, size_t n)
{
    int64_t *ids = arena_alloc(&s->arena, n * sizeof *ids),
            *places = arena_alloc(&s->arena, n * sizeof *places);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        ids[i] = refs[i]->id;
        places[i] = refs[i]->pos;
        names[i] = remote_name_index(&s->arena, refs[i]->name);
    }
    const struct param p[] = {param_i64s(ids), item_named(t) ? param_slices(names) : param_i64s(places)};
    struct request r = {.text = rtext_delete_items(s, t), .params = p, .nparams = 2, .nrows = n};
    remote_add(s->conn, &r);
}

/* Calls for each table with its stretch of sorted refs (or items, which begin with their ref). */
static void each_table(struct rstore *s, const void **sorted, size_t n, bool put)
{
    for (size_t i = 0, from = 0; i < n; i++) {
        enum item_table t = ((const struct item_ref *)sorted[from])->table;
        if (i + 1 < n && ((const struct item_ref *)sorted[i + 1])->table == t)
            continue;
        if (put)
            put_table(s, t, (const struct item_row *const *)&sorted[from], i + 1 - from);
        else
            delete_table(s, t, (const struct item_ref *const *)&sorted[from], i + 1 - from);
        from = i + 1;
    }
}

static void apply_items(struct rstore *s, const struct changes *c)
{
    const void **order = arena_alloc(&s->arena, (c->ngone + c->nitems + 1) * sizeof *order);
    for (size_t i = 0; i < c->ngone; i++)
        order[i] = &c->gone[i];
    each_table(s, order, sort_refs(order, c->ngone), false);
    for (size_t i = 0; i < c->nitems; i++)
        order[i] = &c->items[i];
    each_table(s, order, sort_refs(order, c->nitems), true);
}

/* ---- the rest ---- */

void rapply_trash(struct rstore *s, const struct trash_row *rows, size_t n)
{
    if (n == 0)
        return;
    int64_t *ids = arena_alloc(&s->arena, n * sizeof *ids),
            *types = arena_alloc(&s->arena, n * sizeof *types);
    for (size_t i = 0; i < n; i++) {
        ids[i] = rows[i].id;
        types[i] = rows[i].type;
    }
    const struct param p[] = {param_i64s(ids), param_i64s(types)};
    struct request r = {.text = rtext(s, R_PUT_TRASH), .params = p, .nparams = 2, .nrows = n};
    remote_add(s->conn, &r);
}

void rapply_next_number(struct rstore *s, int64_t next)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%lld", (long long)next);
    const struct param p[] = {param_bytes(SLICE("next_db_number")), param_bytes(slice_of(text, (size_t)n))};
    struct request r = {.text = rtext(s, R_SET_META), .params = p, .nparams = 2};
    remote_add(s->conn, &r);
    s->next_number = next;
}

static enum status apply_dbs(struct rstore *s, const struct changes *c, struct error *err)
{
    size_t n = c->ndbs;
    int64_t *columns[4], next = 0;
    for (int i = 0; i < 4; i++)
        columns[i] = arena_alloc(&s->arena, n * sizeof **columns);
    for (size_t i = 0; i < n; i++) {
        columns[0][i] = c->dbs[i].db;
        columns[1][i] = c->dbs[i].number;
        columns[2][i] = c->dbs[i].keys;
        columns[3][i] = c->dbs[i].expires;
        if (c->dbs[i].number >= next)
            next = (int64_t)c->dbs[i].number + 1;
    }
    enum status st = ST_OK;
    if (s->next_number < 0)
        st = rstore_get_meta(s, "next_db_number", &s->next_number, err);
    if (st != ST_OK)
        return st;
    if (next > s->next_number) /* a number that no database has had */
        rapply_next_number(s, next);
    const struct param p[] = {param_i64s(columns[0]), param_i64s(columns[1]), param_i64s(columns[2]),
                              param_i64s(columns[3])};
    struct request r = {.text = rtext(s, R_PUT_DBS), .params = p, .nparams = 4, .nrows = n};
    remote_add(s->conn, &r);
    return ST_OK;
}

enum status rapply(struct store *base, struct changes *c, struct error *err)
{
    struct rstore *s = rstore_of(base);
    assert(!c->hard); /* journals are applied to files */
    if (s->asked != TXN_WRITE && s->asked != TXN_LAZY)
        return error_set(err, ST_INTERNAL, "apply without a transaction");
    if (c->nkeys + c->ngone + c->nitems + c->ntrash + c->ndbs == 0)
        return ST_OK;
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    s->dirty = true;
    if (c->nkeys)
        st = apply_keys(s, c, err);
    if (st == ST_OK && c->ngone + c->nitems)
        apply_items(s, c);
    if (st == ST_OK)
        rapply_trash(s, c->trash, c->ntrash);
    if (st == ST_OK && c->ndbs)
        st = s->shared ? rshared_apply_dbs(s, c, err) : apply_dbs(s, c, err);
    arena_reset(&s->arena);
    return st;
}
