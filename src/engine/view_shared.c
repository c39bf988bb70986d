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
    if (db < v->ndbs)
        VEC_PUSH(v->declared, v->ndeclared, v->declared_cap) = (struct key_ref){v->dbs[db].number, key};
}

void view_declare_everything(struct view *v)
{
    v->declared_everything = true;
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
    if (row_sound(k)) /* else whoever asks for it finds out */
        VEC_PUSH(v->loaded, v->nloaded, v->loaded_cap) = row_new(k, cache_hash(k->db, k->key));
    return ST_OK;
}

/* In order, each once. */
static void sort_declared(struct view *v)
{
    size_t n = 0;
    if (v->ndeclared > 1)
        qsort(v->declared, v->ndeclared, sizeof *v->declared, by_place);
    for (size_t i = 0; i < v->ndeclared; i++)
        if (i == 0 || by_place(&v->declared[n - 1], &v->declared[i]) != 0)
            v->declared[n++] = v->declared[i];
    v->ndeclared = n;
}

struct store_declared view_declared(struct view *v)
{
    sort_declared(v);
    for (size_t i = 0; i < v->nloaded; i++) /* of a try that failed */
        row_free(v->loaded[i]);
    v->nloaded = 0;
    return (struct store_declared){.keys = v->declared,
                                   .nkeys = v->ndeclared,
                                   .everything = v->declared_everything,
                                   .fn = take_row,
                                   .arg = v};
}

static bool in_use(const struct view *v, uint32_t number)
{
    for (uint32_t i = 0; i < v->ndbs; i++)
        if (v->dbs[i].number == number)
            return true;
    return false;
}

/* What was read of the declared keys, and that there is nothing of the others. */
static void take_declared(struct view *v)
{
    for (size_t i = 0; i < v->nloaded; i++)
        cache_add(v->cache, v->loaded[i]);
    v->nloaded = 0;
    for (size_t i = 0; i < v->ndeclared; i++) {
        const struct key_ref *k = &v->declared[i];
        uint32_t hash = cache_hash(k->db, k->key);
        if (in_use(v, k->db) && !cache_find(v->cache, k->db, k->key, hash)) {
            struct key_row absent = {.db = k->db, .key = k->key, .type = ROW_NONE};
            cache_add(v->cache, row_new(&absent, hash));
        }
    }
    view_undeclare(v);
}

void view_begin_shared(struct view *v)
{
    v->now_us = store_now_us(v->store);
    v->counts_stale = v->counts_unsaved = false;
    cache_drop(v->cache);
    residents_drop_all(&v->residents);
    take_declared(v);
}

enum status view_load_declared(struct view *v, struct error *err)
{
    enum status st = ST_OK;
    size_t n = 0;
    sort_declared(v);
    for (size_t i = 0; i < v->ndeclared; i++) {
        const struct key_ref *k = &v->declared[i];
        if (!cache_find(v->cache, k->db, k->key, cache_hash(k->db, k->key)))
            v->declared[n++] = *k;
    }
    v->ndeclared = n;
    if (n > 0 && (st = store_get_keys(v->store, v->declared, n, take_row, v, err)) == ST_OK)
        take_declared(v);
    for (size_t i = 0; i < v->nloaded; i++)
        row_free(v->loaded[i]);
    v->nloaded = 0;
    view_undeclare(v);
    return st;
}

enum status view_fetch_declared(struct view *v)
{
    return view_load_declared(v, v->err);
}

void view_undeclare(struct view *v)
{
    v->ndeclared = 0;
    v->declared_everything = false;
}

void view_shared_release(struct view *v)
{
    for (size_t i = 0; i < v->nloaded; i++)
        row_free(v->loaded[i]);
    mem_free(v->loaded);
    mem_free(v->declared);
}
