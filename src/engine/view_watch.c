/* Keys that clients watch (WATCH). A key's version tells of every change but those that are undone before
   anybody looks: a key that appears and is gone again, databases that are exchanged and exchanged back. So
   whoever watches has an entry here, and these events mark it; a batch that is rolled back takes its marks
   along. */
#include "base/hash.h"
#include "engine/view_internal.h"

static struct view_watch **chain(struct view *v, struct slice key)
{
    return &v->watches.chains[hash_bytes(key, 0) % VIEW_WATCH_CHAINS];
}

void view_watch(struct view *v, struct view_watch *w)
{
    struct view_watch **head = chain(v, w->key);
    w->touched = w->unsettled = w->in_call = false;
    w->count = &v->watches.n;
    w->link = head;
    w->next = *head;
    if (w->next)
        w->next->link = &w->next;
    *head = w;
    v->watches.n++;
}

void view_unwatch(struct view_watch *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    --*w->count;
}

static void touch(struct view *v, struct view_watch *w)
{
    if (!w->touched)
        w->touched = w->unsettled = w->in_call = v->watches.touched = v->watches.touched_in_call = true;
}

void view_settle_call_watches(struct view *v, bool kept)
{
    if (!v->watches.touched_in_call)
        return;
    v->watches.touched_in_call = false;
    for (size_t i = 0; i < VIEW_WATCH_CHAINS; i++) {
        for (struct view_watch *w = v->watches.chains[i]; w; w = w->next) {
            w->touched &= kept || !w->in_call;
            w->in_call = false;
        }
    }
}

void view_settle_watches(struct view *v, bool committed)
{
    if (!v->watches.touched)
        return;
    v->watches.touched = false;
    for (size_t i = 0; i < VIEW_WATCH_CHAINS; i++) {
        for (struct view_watch *w = v->watches.chains[i]; w; w = w->next) {
            w->touched &= committed || !w->unsettled;
            w->unsettled = false;
        }
    }
}

void view_touch(struct view *v, uint32_t number, struct slice key)
{
    for (struct view_watch *w = *chain(v, key); w; w = w->next)
        if (v->dbs.rows[w->db].number == number && slice_eq(w->key, key))
            touch(v, w);
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

enum status view_touch_swapped(struct view *v, uint32_t a, uint32_t b)
{
    for (size_t i = 0; i < VIEW_WATCH_CHAINS && v->watches.n && a != b; i++)
        for (struct view_watch *w = v->watches.chains[i]; w; w = w->next) {
            if (w->db != a && w->db != b)
                continue;
            enum status st = touch_if_in(v, w, a);
            if (st != ST_OK || (st = touch_if_in(v, w, b)) != ST_OK)
                return st;
        }
    return ST_OK;
}
