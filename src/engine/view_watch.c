/* Keys that clients watch (WATCH). A key's version tells of every change but those that are undone before
   EXEC looks: a key that appears and is gone again, databases that are exchanged and exchanged back. So each
   client's watch of a key has an entry here, and these events mark it; a batch that is rolled back takes its
   marks along. Of the entries of one key the first is in the map, and the others hang on it: removing one
   costs the same however many there are. */
#include "base/hash.h"
#include "engine/view_internal.h"

static struct view_watch *watch_of(struct map_link *l)
{
    return (struct view_watch *)l;
}

/* Not of the database: databases are exchanged while their keys are watched. */
static uint32_t hash_key(struct slice key)
{
    return (uint32_t)hash_bytes(key, 0);
}

/* The one in the map that watches the same key, or NULL. */
static struct view_watch *find_same(const struct map *m, const struct view_watch *w)
{
    for (struct map_link *l = map_first(m, w->link.hash); l; l = l->next) {
        struct view_watch *other = watch_of(l);
        if (l->hash == w->link.hash && other->db == w->db && slice_eq(other->key, w->key))
            return other;
    }
    return NULL;
}

void view_watch(struct view *v, struct view_watch *w)
{
    w->touched = w->unsettled = w->in_call = false;
    w->map = &v->watches.by_key;
    w->link.hash = hash_key(w->key);
    w->prev = find_same(w->map, w);
    w->next = NULL;
    if (!w->prev) {
        map_add(w->map, &w->link);
        return;
    }
    w->next = w->prev->next;
    w->prev->next = w;
    if (w->next)
        w->next->prev = w;
}

void view_unwatch(struct view_watch *w)
{
    if (w->next)
        w->next->prev = w->prev;
    if (w->prev)
        w->prev->next = w->next;
    else if (w->next)
        map_replace(w->map, &w->link, &w->next->link);
    else
        map_remove(w->map, &w->link);
}

/* All who watch the key that `first`, which is in the map, watches. */
static void touch(struct view *v, struct view_watch *first)
{
    for (struct view_watch *w = first; w; w = w->next)
        if (!w->touched) {
            w->touched = w->unsettled = w->in_call = v->watches.touched = v->watches.touched_in_call = true;
            w->number = v->call.number;
        }
}

static void untouch(void *arg, struct map_link *l)
{
    const uint64_t *number = arg;
    for (struct view_watch *w = watch_of(l); w; w = w->next)
        if (w->in_call && w->number >= *number)
            w->touched = w->in_call = false;
}

void view_untouch(struct view *v, uint64_t number)
{
    if (v->watches.touched_in_call)
        map_each(&v->watches.by_key, untouch, &number);
}

static void settle_call(void *arg, struct map_link *l)
{
    const bool *kept = arg;
    for (struct view_watch *w = watch_of(l); w; w = w->next) {
        w->touched &= *kept || !w->in_call;
        w->in_call = false;
    }
}

void view_settle_call_watches(struct view *v, bool kept)
{
    if (!v->watches.touched_in_call)
        return;
    v->watches.touched_in_call = false;
    map_each(&v->watches.by_key, settle_call, &kept);
}

static void settle(void *arg, struct map_link *l)
{
    const bool *committed = arg;
    for (struct view_watch *w = watch_of(l); w; w = w->next) {
        w->touched &= *committed || !w->unsettled;
        w->unsettled = false;
    }
}

void view_settle_watches(struct view *v, bool committed)
{
    if (!v->watches.touched)
        return;
    v->watches.touched = false;
    map_each(&v->watches.by_key, settle, &committed);
}

void view_touch(struct view *v, uint32_t number, struct slice key)
{
    uint32_t hash = hash_key(key);
    for (struct map_link *l = map_first(&v->watches.by_key, hash); l; l = l->next) {
        struct view_watch *w = watch_of(l);
        if (l->hash == hash && v->dbs.rows[w->db].number == number && slice_eq(w->key, key))
            touch(v, w);
    }
}

enum status view_tombstone(struct view *v, uint32_t db, struct slice key, int64_t *ret)
{
    struct row *r;
    *ret = 0;
    if (!view_shared(v))
        return ST_OK;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &r);
    if (st == ST_OK && !row_live(r, view_now(v)))
        *ret = r->version;
    return st;
}

static enum status touch_if_in(struct view *v, struct view_watch *w, uint32_t db)
{
    int64_t version;
    enum status st = view_version(v, db, w->key, &version);
    if (st == ST_OK && version != 0)
        touch(v, w);
    return st;
}

struct exchange {
    struct view *v;
    uint32_t a, b;
    enum status st;
};

static void touch_exchanged(void *arg, struct map_link *l)
{
    struct exchange *x = arg;
    struct view_watch *w = watch_of(l);
    if (x->st != ST_OK || (w->db != x->a && w->db != x->b))
        return;
    x->st = touch_if_in(x->v, w, x->a);
    if (x->st == ST_OK)
        x->st = touch_if_in(x->v, w, x->b);
}

enum status view_touch_swapped(struct view *v, uint32_t a, uint32_t b)
{
    struct exchange x = {v, a, b, ST_OK};
    if (a != b)
        map_each(&v->watches.by_key, touch_exchanged, &x);
    return x.st;
}
