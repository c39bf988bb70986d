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

void view_declare_more(struct view *v, bool few_items)
{
    *(few_items ? &v->declared.few_items : &v->declared.more) = true;
}

void view_declare_tied(struct view *v)
{
    v->declared.tied = true;
}

/* ---- mates ---- */

#define MATES_MOST 4096 /* of a batch */
#define MATE_NAME  1024 /* bytes of a name that is copied */

static void forget_mates(struct view_mates *m)
{
    m->n = 0;
    m->begun = false;
    arena_reset(&m->arena);
}

static struct slice copy_name(struct view_mates *m, const struct slice *names, int n, int at)
{
    return at < n && names[at].n <= MATE_NAME ? arena_copy(&m->arena, names[at]) : slice_of(NULL, 0);
}

void view_declare_items(struct view *v, uint32_t db, struct slice key, const struct slice *names, int n)
{
    struct view_mates *m = &v->mates;
    if (!view_shared(v) || db >= v->dbs.n)
        return;
    if (m->begun)
        forget_mates(m);
    if (m->n == MATES_MOST)
        return;
    VEC_PUSH(m->all, m->n, m->cap) = (struct mate){.db = v->dbs.rows[db].number,
                                                   .key = arena_copy(&m->arena, key),
                                                   .name = copy_name(m, names, n, 0),
                                                   .behind_score = copy_name(m, names, n, 1)};
}

const struct row *view_mate_row(const struct view *v, const struct mate *m)
{
    const struct row *r = cache_peek(v->cache, m->db, m->key, cache_hash(m->db, m->key));
    return r && r->type >= ROW_HASH && r->type <= ROW_ZSET && row_items(r).id ? r : NULL;
}

/* ---- of stores that are near ---- */

bool view_declare_missing(struct view *v, struct prefetch *e)
{
    e->changes = cache_changes(v->cache);
    e->row = cache_peek(v->cache, e->number, e->key, e->hash);
    if (e->row)
        return false;
    VEC_PUSH(v->declared.keys, v->declared.n, v->declared.cap) = (struct key_ref){e->number, e->key};
    return true;
}

void view_declare_rows_only(struct view *v)
{
    v->declared.rows_only = true;
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
                               .rows_only = v->declared.n > 0 && !v->declared.more &&
                                            !v->declared.few_items && !v->hidden.peeked,
                               .tied = v->declared.tied,
                               .fn = take_row,
                               .arg = v};
    d.loose = v->keep.writes && v->declared.n > 0 && !v->declared.more && !d.everything &&
              !(v->hidden.peeked & ~(1u << HIDDEN_KEPT));
    d.items = d.loose && v->declared.few_items;
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

/* What was read of the declared keys, and that there is nothing of the others. In a brief transaction nobody
   has looked at those that are peeked at, unless items were declared as well. */
static void take_declared(struct view *v)
{
    const struct key_ref *peeked;
    size_t n = view_peeked(v, &peeked);
    for (size_t i = 0; i < v->declared.nloaded; i++)
        cache_add(v->cache, v->declared.loaded[i]);
    v->declared.nloaded = 0;
    note_absent(v, v->declared.keys, v->declared.n);
    if (!v->dbs.unread || v->declared.few_items)
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
    if (v->mates.begun) /* nothing was declared since */
        forget_mates(&v->mates);
    v->mates.begun = true;
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
    v->declared.everything = v->declared.more = v->declared.few_items = false;
    v->declared.rows_only = v->declared.tied = false;
    v->hidden.peeked = 0;
    if (!v->mates.begun)
        forget_mates(&v->mates);
}

void view_shared_release(struct view *v)
{
    for (size_t i = 0; i < v->declared.nloaded; i++)
        row_free(v->declared.loaded[i]);
    mem_free(v->declared.loaded);
    mem_free(v->declared.keys);
    mem_free(v->mates.all);
    arena_release(&v->mates.arena);
}
