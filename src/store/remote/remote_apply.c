/* Bringing a change set into the tables of a database server: a statement for each table, or for each few
   megabytes of one. Nothing waits for an answer here; what goes wrong is known when something is read, or at
   the commit.

   Rows go in the order of keys, so that two servers that write the same ones take their locks in the same
   order.

   A change set from a journal (changes.replay) finds its rows by number, as all changes do, new ones by name.
   Numbers come from a sequence that gives none twice, so that a row which is not where it should be was moved
   by an application's SQL, or the journal is older than the tables: then the transaction fails (ST_CONFLICT),
   and the next one is careful: it finds every row by its name. Slices of a change set are waited for, so that
   the writer knows what they cost. */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_schema.h"
#include "store/remote/remote_session.h"

#define STALE       "no row under the key and number that it was read with"
#define PIECE_BYTES ((size_t)8 << 20) /* of one statement */
#define SLICE_ROWS  32                /* so many are waited for when they come from a journal */

/* ---- numbers for new rows ---- */

/* Blocks of numbers, so many that all rows get one. What is left of the last block is for the next time; with
   more than one missing, the blocks are handed out in order. */
static enum status take_seqs(struct rstore *s, struct key_row *const *rows, size_t n, struct error *err)
{
    size_t have = (size_t)(s->seq_end - s->seq_next), size = REMOTE_SEQ_BLOCK - rgalera(s);
    size_t blocks = n <= have ? 0 : (n - have + size - 1) / size;
    int64_t(*starts)[2] = arena_alloc(&s->arena, (blocks + 1) * sizeof *starts);
    for (size_t i = 0; i < blocks; i++) {
        if (rgalera(s)) {
            remote_add_text(s->conn, rtext(s, R_TAKE_SEQ));
            s->galera->took_seqs = true;
        }
        struct request r = {.text = rtext(s, R_NEXT_SEQ), .fn = rread_two, .arg = starts[i]};
        remote_add(s->conn, &r);
    }
    enum status st = blocks ? rstore_run(s, err) : ST_OK;
    size_t next = 0;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        if (s->seq_next == s->seq_end) {
            s->seq_next = starts[next++][0];
            s->seq_end = s->seq_next + (int64_t)size;
        }
        rows[i]->seq = s->seq_next++;
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

static void put_some_keys(struct rstore *s, enum remote_statement which, struct key_row *const *rows,
                          size_t n, enum status stale)
{
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
    if (which == R_UPDATE_KEYS) {
        r.must_change = STALE;
        r.unchanged = rgalera(s) ? ST_CONFLICT : stale;
    }
    if (which == R_UPDATE_KEYS && rgalera(s))
        rgalera_expect(s, rows, rests, n);
    for (size_t i = 0; which == R_INSERT_KEYS && rgalera(s) && i < n; i++)
        rgalera_saw(s, rows[i]->seq, rows[i]->version);
    remote_add(s->conn, &r);
}

/* stale: what it is when a row to be updated is not there. */
static void put_keys(struct rstore *s, enum remote_statement which, struct key_row *const *rows, size_t n,
                     enum status stale)
{
    size_t bytes = 0;
    for (size_t i = 0, from = 0; i < n; i++) {
        bytes += rows[i]->key.n + rows[i]->value.n;
        if (bytes < PIECE_BYTES && i + 1 < n)
            continue;
        put_some_keys(s, which, rows + from, i + 1 - from, stale);
        from = i + 1;
        bytes = 0;
    }
}

static void delete_keys(struct rstore *s, struct key_row *const *rows, size_t n)
{
    int64_t *dbs = arena_alloc(&s->arena, n * sizeof *dbs);
    struct slice *names = arena_alloc(&s->arena, n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        dbs[i] = rows[i]->db;
        names[i] = remote_name_index(&s->arena, rows[i]->key);
    }
    const struct param p[] = {param_i64s(dbs), param_slices(names)};
    struct request r = {.text = rtext(s, R_DELETE_NAMED_KEYS), .params = p, .nparams = 2, .nrows = n};
    if (n > 0)
        remote_add(s->conn, &r);
}

/* In the order they have: new ones come by name already. */
static enum status apply_replayed_keys(struct rstore *s, struct changes *c, struct error *err)
{
    struct key_row **gone = arena_alloc(&s->arena, c->nkeys * sizeof *gone);
    struct key_row **known = arena_alloc(&s->arena, c->nkeys * sizeof *known);
    struct key_row **other = arena_alloc(&s->arena, c->nkeys * sizeof *other);
    size_t ngone = 0, nknown = 0, nother = 0;
    for (size_t i = 0; i < c->nkeys; i++) {
        struct key_row *k = &c->keys[i];
        if (k->type == ROW_NONE)
            gone[ngone++] = k;
        else if (k->seq == 0 || k->seq >= STORE_PROVISIONAL || k->fresh || s->careful)
            other[nother++] = k;
        else
            known[nknown++] = k;
    }
    enum status st = take_seqs(s, other, nother, err);
    if (st != ST_OK)
        return st;
    delete_keys(s, gone, ngone);
    put_keys(s, R_UPDATE_KEYS, known, nknown, ST_CONFLICT);
    put_keys(s, R_UPSERT_KEYS, other, nother, ST_CONFLICT);
    return ST_OK;
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
    enum status st = take_seqs(s, fresh, nfresh, err);
    if (st != ST_OK)
        return st;
    qsort(known, nknown, sizeof *known, by_name);
    qsort(fresh, nfresh, sizeof *fresh, by_name);
    put_keys(s, R_UPDATE_KEYS, known, nknown, ST_INTERNAL);
    put_keys(s, R_INSERT_KEYS, fresh, nfresh, ST_INTERNAL);
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
    if (item_has(t, COLUMN_VALUE))
        p[np++] = param_slices(values);
    if (item_has(t, COLUMN_SCORE))
        p[np++] = param_doubles(scores);
    if (item_has(t, COLUMN_EXPIRY))
        p[np++] = param_i64s(expiries);
    if (item_has(t, COLUMN_ORD))
        p[np++] = param_i64s(ords);
    if (item_has(t, COLUMN_SCORE) && s->conn->dialect == REMOTE_MARIADB)
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

static size_t weight(const void *ref, bool put)
{
    size_t n = ((const struct item_ref *)ref)->name.n + sizeof(struct item_row);
    return put ? n + ((const struct item_row *)ref)->value.n : n;
}

/* Calls for each stretch of one table's sorted refs (or items, which begin with their ref). */
static void each_table(struct rstore *s, const void **sorted, size_t n, bool put)
{
    size_t bytes = 0;
    for (size_t i = 0, from = 0; i < n; i++) {
        enum item_table t = ((const struct item_ref *)sorted[from])->table;
        bytes += weight(sorted[i], put);
        if (bytes < PIECE_BYTES && i + 1 < n && ((const struct item_ref *)sorted[i + 1])->table == t)
            continue;
        if (put)
            put_table(s, t, (const struct item_row *const *)&sorted[from], i + 1 - from);
        else
            delete_table(s, t, (const struct item_ref *const *)&sorted[from], i + 1 - from);
        from = i + 1;
        bytes = 0;
    }
}

static void apply_items(struct rstore *s, const struct changes *c)
{
    const void **order = arena_alloc(&s->arena, (c->ngone + c->nitems + 1) * sizeof *order);
    for (size_t i = 0; i < c->ngone; i++)
        order[i] = &c->gone[i];
    each_table(s, order, c->replay ? c->ngone : sort_refs(order, c->ngone), false);
    for (size_t i = 0; i < c->nitems; i++)
        order[i] = &c->items[i];
    each_table(s, order, c->replay ? c->nitems : sort_refs(order, c->nitems), true);
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

static void set_number(struct rstore *s, const char *name, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)v);
    rstore_add_set_meta(s, name, text);
}

void rapply_next_number(struct rstore *s, int64_t next)
{
    set_number(s, "next_db_number", next);
    s->next_number = next;
}

int64_t rapply_fill_dbs(struct rstore *s, const struct db_row *const *rows, size_t n, struct db_columns *ret)
{
    int64_t next = 0;
    ret->n = n;
    for (int i = 0; i < 4; i++)
        ret->at[i] = arena_alloc(&s->arena, n * sizeof **ret->at);
    for (size_t i = 0; i < n; i++) {
        ret->at[0][i] = rows[i]->db;
        ret->at[1][i] = rows[i]->number;
        ret->at[2][i] = rows[i]->keys;
        ret->at[3][i] = rows[i]->expires;
        if (rows[i]->number >= next)
            next = (int64_t)rows[i]->number + 1;
    }
    return next;
}

void rapply_put_dbs(struct rstore *s, const struct db_columns *c)
{
    const struct param p[] = {param_i64s(c->at[0]), param_i64s(c->at[1]), param_i64s(c->at[2]),
                              param_i64s(c->at[3])};
    struct request r = {.text = rtext(s, R_PUT_DBS), .params = p, .nparams = 4, .nrows = c->n};
    remote_add(s->conn, &r);
}

static enum status apply_dbs(struct rstore *s, const struct changes *c, struct error *err)
{
    size_t n = c->ndbs;
    struct db_columns columns;
    const struct db_row **rows = arena_alloc(&s->arena, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = &c->dbs[i];
    int64_t next = rapply_fill_dbs(s, rows, n, &columns);
    enum status st = ST_OK;
    if (s->next_number < 0)
        st = rstore_get_meta(s, "next_db_number", &s->next_number, err);
    if (st != ST_OK)
        return st;
    if (next > s->next_number) /* a number that no database has had */
        rapply_next_number(s, next);
    rapply_put_dbs(s, &columns);
    return ST_OK;
}

enum status rapply(struct store *base, struct changes *c, struct error *err)
{
    struct rstore *s = rstore_of(base);
    if (s->asked != TXN_WRITE && s->asked != TXN_LAZY)
        return error_set(err, ST_INTERNAL, "apply without a transaction");
    size_t rows = c->nkeys + c->ngone + c->nitems + c->ntrash + c->ndbs;
    if (rows == 0 && c->next_id == 0)
        return ST_OK;
    enum status st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    s->dirty = true;
    s->appeared |= c->appeared;
    if (c->nkeys)
        st = c->replay ? apply_replayed_keys(s, c, err) : apply_keys(s, c, err);
    if (st == ST_OK && c->ngone + c->nitems)
        apply_items(s, c);
    if (st == ST_OK)
        rapply_trash(s, c->trash, c->ntrash);
    if (st == ST_OK && c->ndbs)
        st = s->shared ? rshared_apply_dbs(s, c, err) : apply_dbs(s, c, err);
    if (st == ST_OK && c->next_id)
        set_number(s, "next_id", c->next_id);
    arena_reset(&s->arena);
    if (st == ST_OK && c->replay && rows >= SLICE_ROWS)
        st = rstore_run(s, err);
    return st;
}
