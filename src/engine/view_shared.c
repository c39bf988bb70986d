/* The view over tables that other servers write to as well. Nothing is remembered from one transaction to the
   next; instead the batch says beforehand which keys it will use, and their rows come with the round trip
   that begins the transaction. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "engine/view_internal.h"
#include "store/shared.h"

bool view_shared(const struct view *v)
{
    return store_shared(v->store);
}

bool view_wants_declarations(const struct view *v)
{
    return v->store->far;
}

void view_declare(struct view *v, uint32_t db, struct slice key)
{
    if (db <= v->dbs.n) /* the hidden one is behind the others */
        VEC_PUSH(v->declared.keys, v->declared.n, v->declared.cap) =
            (struct key_ref){v->dbs.rows[db].number, key};
}

void view_declare_everything(struct view *v)
{
    v->declared.everything = true;
}

void view_declare_more(struct view *v)
{
    v->declared.more = true;
}

static int by_place(const void *a, const void *b)
{
    const struct key_ref *x = a, *y = b;
    if (x->db != y->db)
        return x->db < y->db ? -1 : 1;
    return slice_cmp(x->key, y->key);
}

static enum status take_row(void *arg, const struct key_row *k)
{
    struct view *v = arg;
    if (row_sound(k)) /* else the command that asks for it fails */
        VEC_PUSH(v->declared.loaded, v->declared.nloaded, v->declared.loaded_cap) =
            row_new(k, cache_hash(k->db, k->key));
    return ST_OK;
}

/* In order, each once. */
static void sort_declared(struct view *v)
{
    size_t n = 0;
    if (v->declared.n > 1)
        qsort(v->declared.keys, v->declared.n, sizeof *v->declared.keys, by_place);
    for (size_t i = 0; i < v->declared.n; i++)
        if (i == 0 || by_place(&v->declared.keys[n - 1], &v->declared.keys[i]) != 0)
            v->declared.keys[n++] = v->declared.keys[i];
    v->declared.n = n;
}

struct store_declared view_declared(struct view *v)
{
    sort_declared(v);
    for (size_t i = 0; i < v->declared.nloaded; i++) /* of a try that failed */
        row_free(v->declared.loaded[i]);
    v->declared.nloaded = 0;
    struct store_declared d = {.keys = v->declared.keys,
                               .nkeys = v->declared.n,
                               .everything = v->declared.everything,
                               .rows_only = v->declared.n > 0 && !v->declared.more && !v->hidden.peeked,
                               .fn = take_row,
                               .arg = v};
    d.npeeked = view_peeked(v, &d.peeked);
    return d;
}

static bool in_use(const struct view *v, uint32_t number)
{
    for (uint32_t i = 0; i <= v->dbs.n; i++)
        if (v->dbs.rows[i].number == number)
            return true;
    return false;
}

static void note_absent(struct view *v, const struct key_ref *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct key_ref *k = &keys[i];
        uint32_t hash = cache_hash(k->db, k->key);
        if (in_use(v, k->db) && !cache_find(v->cache, k->db, k->key, hash)) {
            struct key_row absent = {.db = k->db, .key = k->key, .type = ROW_NONE};
            cache_add(v->cache, row_new(&absent, hash));
        }
    }
}

/* What was read of the declared keys, and that there is nothing of the others. */
static void take_declared(struct view *v)
{
    const struct key_ref *peeked;
    size_t n = view_peeked(v, &peeked);
    for (size_t i = 0; i < v->declared.nloaded; i++)
        cache_add(v->cache, v->declared.loaded[i]);
    v->declared.nloaded = 0;
    note_absent(v, v->declared.keys, v->declared.n);
    note_absent(v, peeked, n);
    view_undeclare(v);
}

enum status view_read_dbs(struct view *v)
{
    if (!v->dbs.unread)
        return ST_OK;
    v->dbs.unread = false;
    return store_load_dbs(v->store, v->dbs.rows, v->dbs.n, &v->dbs.next_number, v->call.err);
}

void view_begin_shared(struct view *v)
{
    v->dbs.unread = store_brief(v->store);
    v->batch.now_us = store_now_us(v->store);
    v->dbs.counts_stale = v->dbs.counts_unsaved = false;
    cache_drop(v->cache);
    memos_drop_all(&v->memos);
    v->hidden.unheld = v->declared.everything ? 0 : v->hidden.peeked;
    v->keep.is_alone = v->declared.everything;
    keep_forget(&v->keep);
    take_declared(v);
}

enum status view_load_declared(struct view *v, struct error *err)
{
    enum status st = ST_OK;
    size_t n = 0;
    sort_declared(v);
    for (size_t i = 0; i < v->declared.n; i++) {
        const struct key_ref *k = &v->declared.keys[i];
        if (!cache_find(v->cache, k->db, k->key, cache_hash(k->db, k->key)))
            v->declared.keys[n++] = *k;
    }
    v->declared.n = n;
    if (n > 0 && (st = store_get_keys(v->store, v->declared.keys, n, take_row, v, err)) == ST_OK)
        take_declared(v);
    for (size_t i = 0; i < v->declared.nloaded; i++)
        row_free(v->declared.loaded[i]);
    v->declared.nloaded = 0;
    view_undeclare(v);
    return st;
}

enum status view_fetch_declared(struct view *v)
{
    return view_load_declared(v, v->call.err);
}

void view_undeclare(struct view *v)
{
    v->declared.n = 0;
    v->declared.everything = v->declared.more = false;
    v->hidden.peeked = 0;
}

void view_shared_release(struct view *v)
{
    for (size_t i = 0; i < v->declared.nloaded; i++)
        row_free(v->declared.loaded[i]);
    mem_free(v->declared.loaded);
    mem_free(v->declared.keys);
}
