/* Bringing a change set into the tables of a database server: a statement for each table, or for each few
   megabytes of one. Nothing waits for an answer here; what goes wrong is known when something is read, or at
   the commit.

   Rows go in the order of keys, so that two servers that write the same ones take their locks in the same
   order.

   A change set from a journal (changes.replay) finds its rows by number, as all changes do, new ones by name.
   Numbers come from blocks of which none is given out twice, so that a row which is not where it should be
   was moved by an application's SQL, or the journal is older than the tables: then the transaction fails
   (ST_CONFLICT), and the next one is careful: it finds every row by its name. Slices of a change set are
   waited for, so that the writer knows what they cost. */
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
        if (rtext(s, R_TAKE_SEQ)) {
            remote_add_text(s->conn, rtext(s, R_TAKE_SEQ));
            remote_add_text(s->conn, rtext(s, R_LEAVE_SEQ));
        }
        if (rgalera(s))
            s->galera->took_seqs = true;
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

void rapply_fill_keys(struct rstore *s, struct key_row *const *rows, size_t n, struct key_columns *ret)
{
    int64_t **columns[] = {&ret->seqs,   &ret->dbs,      &ret->types,    &ret->ids,    &ret->sizes,
                           &ret->firsts, &ret->versions, &ret->expiries, &ret->numbers};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        *columns[i] = arena_alloc(&s->arena, n * sizeof **columns[i]);
    ret->keys = arena_alloc(&s->arena, n * sizeof *ret->keys);
    ret->rests = arena_alloc(&s->arena, n * sizeof *ret->rests);
    ret->values = arena_alloc(&s->arena, n * sizeof *ret->values);
    for (size_t i = 0; i < n; i++) {
        const struct key_row *k = rows[i];
        ret->keys[i] = remote_name_index(&s->arena, k->key);
        ret->rests[i] = remote_name_rest(k->key);
        ret->values[i] = k->value;
        ret->seqs[i] = k->seq;
        ret->dbs[i] = k->db;
        ret->types[i] = k->type;
        ret->ids[i] = k->id;
        ret->sizes[i] = k->size;
        ret->firsts[i] = k->first;
        ret->versions[i] = k->version;
        ret->expiries[i] = k->expire_at;
        ret->numbers[i] = k->numbers;
    }
}

static void put_some_keys(struct rstore *s, enum remote_statement which, struct key_row *const *rows,
                          size_t n, enum status stale)
{
    struct key_columns k;
    rapply_fill_keys(s, rows, n, &k);
    const struct param p[] = {
        param_i64s(k.seqs),     param_i64s(k.dbs),      param_slices(k.keys),   param_slices(k.rests),
        param_i64s(k.types),    param_i64s(k.ids),      param_i64s(k.sizes),    param_i64s(k.firsts),
        param_i64s(k.versions), param_i64s(k.expiries), param_slices(k.values), param_i64s(k.numbers),
    };
    struct request r = {.text = rtext(s, which), .params = p, .nparams = 12, .nrows = n};
    if (which == R_UPDATE_KEYS) {
        r.must_change = STALE;
        r.unchanged = rgalera(s) ? ST_CONFLICT : stale;
    }
    if (which == R_UPDATE_KEYS && rgalera(s))
        rgalera_expect(s, rows, k.rests, n);
    for (size_t i = 0; which == R_INSERT_KEYS && rgalera(s) && i < n; i++)
        rgalera_saw(s, rows[i]->seq, rows[i]->version);
    remote_add(s->conn, &r);
}

void rapply_in_pieces(struct rstore *s, struct key_row *const *rows, size_t n, rapply_keys_fn *fn)
{
    size_t bytes = 0;
    for (size_t i = 0, from = 0; i < n; i++) {
        bytes += rows[i]->key.n + rows[i]->value.n;
        if (bytes < PIECE_BYTES && i + 1 < n)
            continue;
        fn(s, rows + from, i + 1 - from);
        from = i + 1;
        bytes = 0;
    }
}

static void update_known(struct rstore *s, struct key_row *const *rows, size_t n)
{
    put_some_keys(s, R_UPDATE_KEYS, rows, n, ST_INTERNAL);
}

static void update_replayed(struct rstore *s, struct key_row *const *rows, size_t n)
{
    put_some_keys(s, R_UPDATE_KEYS, rows, n, ST_CONFLICT);
}

static void insert_some(struct rstore *s, struct key_row *const *rows, size_t n)
{
    put_some_keys(s, R_INSERT_KEYS, rows, n, ST_OK);
}

static void upsert_some(struct rstore *s, struct key_row *const *rows, size_t n)
{
    put_some_keys(s, R_UPSERT_KEYS, rows, n, ST_OK);
}

void rapply_insert_keys(struct rstore *s, struct key_row *const *rows, size_t n)
{
    rapply_in_pieces(s, rows, n, insert_some);
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
    rapply_in_pieces(s, known, nknown, update_replayed);
    rapply_in_pieces(s, other, nother, upsert_some);
    return ST_OK;
}

enum status rapply_split_keys(struct rstore *s, struct changes *c, struct key_split *ret, struct error *err)
{
    *ret = (struct key_split){.known = arena_alloc(&s->arena, c->nkeys * sizeof *ret->known),
                              .fresh = arena_alloc(&s->arena, c->nkeys * sizeof *ret->fresh)};
    for (size_t i = 0; i < c->nkeys; i++) {
        struct key_row *k = &c->keys[i];
        if (k->seq)
            ret->known[ret->nknown++] = k;
        else
            ret->fresh[ret->nfresh++] = k;
    }
    enum status st = take_seqs(s, ret->fresh, ret->nfresh, err);
    if (st != ST_OK)
        return st;
    qsort(ret->known, ret->nknown, sizeof *ret->known, by_name);
    qsort(ret->fresh, ret->nfresh, sizeof *ret->fresh, by_name);
    return ST_OK;
}

static enum status apply_keys(struct rstore *s, struct changes *c, struct error *err)
{
    struct key_split rows;
    enum status st = rapply_split_keys(s, c, &rows, err);
    if (st != ST_OK)
        return st;
    rapply_in_pieces(s, rows.known, rows.nknown, update_known);
    rapply_insert_keys(s, rows.fresh, rows.nfresh);
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

void rapply_items(struct rstore *s, const struct changes *c)
{
    const void **order = arena_alloc(&s->arena, (c->ngone + c->nitems + 1) * sizeof *order);
    for (size_t i = 0; i < c->ngone; i++)
        order[i] = &c->gone[i];
    each_table(s, order, c->replay ? c->ngone : sort_refs(order, c->ngone), false);
    for (size_t i = 0; i < c->nitems; i++)
        order[i] = &c->items[i];
    each_table(s, order, c->replay ? c->nitems : sort_refs(order, c->nitems), true);
}

/* Names that begin alike stand in the index by their hashes: all of them are looked at there, and told apart
   by their whole names. */
static void delete_range(struct rstore *s, const struct item_range *r)
{
    bool by_score = r->order == ITEMS_BY_SCORE;
    struct slice low = r->min_name.n ? r->min_name : SLICE(""); /* not NULL */
    struct slice high = r->max_name.n ? r->max_name : SLICE("");
    const struct param p[] = {
        param_i64(r->id),
        by_score ? rstore_score(s, r->min_score) : param_i64(r->min),
        by_score ? rstore_score(s, r->max_score) : param_i64(r->max),
        param_bytes(remote_name_low(low)),
        param_bytes(remote_name_high(&s->arena, high)),
        param_bytes(low),
        param_bytes(high),
    };
    struct request q = {.text = rtext_delete_range(s, r), .params = p, .nparams = by_score ? 7 : 3};
    remote_add(s->conn, &q);
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
    const struct param p[] = {param_bytes(SLICE("next_db_number")), param_i64(next)};
    struct request r = {.text = rtext(s, R_RAISE_META), .params = p, .nparams = 2};
    remote_add(s->conn, &r); /* another session of this server may have raised it further */
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
    size_t rows = c->nranges + c->nkeys + c->ngone + c->nitems + c->ntrash + c->ndbs;
    if (rows == 0 && c->next_id == 0)
        return ST_OK;
    bool done;
    enum status st = rloose_apply(s, c, &done, err);
    if (st != ST_OK || done)
        return st;
    st = rstore_connected(s, err);
    if (st != ST_OK)
        return st;
    rstore_begin_write(s);
    s->dirty = true;
    s->appeared |= c->appeared;
    for (size_t i = 0; i < c->nranges; i++)
        delete_range(s, &c->ranges[i]);
    if (c->nkeys)
        st = c->replay ? apply_replayed_keys(s, c, err) : apply_keys(s, c, err);
    if (st == ST_OK && c->ngone + c->nitems)
        rapply_items(s, c);
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
