/* A view whose memory outlives its batches, over a store that has nothing (store/blank.h).

   Rows come from other engines' views as they are, with their collections' memos, and only change hands. In
   here a row's ticket is the moment as of which it is true, its seq is the number of its snapshot and where
   that one's positions are, and the id of a collection is one of our own, so that no row can ever be seen
   with items of another snapshot: after a RENAME two keys of different age would have the same id in the
   tables. */
#include "engine/recent.h"

#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "engine/engine_internal.h"
#include "store/blank.h"

#define PLACES     64 /* snapshots whose positions are remembered, as far as they differ */
#define LOOK_BACK  4  /* of them a new snapshot is compared with: replicas take turns */
#define MAX_SHARE  16 /* of the budget, that a row with its collection may take: 1/16 */
#define MAX_WANTED 4096

/* The positions of a snapshot, and of later ones that had the same. */
struct recent_place {
    struct position admitted, seen;
    int64_t since; /* the number of the first of them */
};

struct recent {
    struct store *store;
    struct engine *engine;
    int64_t clock_us;  /* what the database's clock is ahead of the monotonic one */
    int64_t next_id;   /* of a collection */
    bool on_branch;    /* a position was told: ... */
    uint32_t branch;   /* ... the timeline of the last one */
    int64_t snapshots; /* ever */
    struct recent_place places[PLACES];
    int64_t nplaces;        /* ever; the last PLACES of them are known */
    struct key_ref *wanted; /* db is the one that clients select */
    size_t nwanted, wanted_cap;
};

struct recent *recent_new(uint32_t databases, size_t budget)
{
    struct engine_options o = {.databases = databases, .cache_memory = budget};
    struct recent *r = mem_zalloc(sizeof *r);
    struct error err;
    r->store = blank_new();
    enum status st = engine_new(r->store, &o, &r->engine, &err);
    assert(st == ST_OK); /* a blank store has nothing that could fail; so below */
    (void)st;
    r->engine->progress.durable = INT64_MAX - 1; /* replies wait for nothing */
    r->next_id = 1;
    return r;
}

void recent_free(struct recent *r)
{
    if (!r)
        return;
    engine_free(r->engine);
    store_close(r->store);
    mem_free(r->wanted);
    mem_free(r);
}

struct engine *recent_engine(struct recent *r)
{
    return r->engine;
}

void recent_begin(struct recent *r, int64_t now_us)
{
    struct error write_err, err;
    enum status st = engine_begin(r->engine, false, &write_err, &err);
    assert(st == ST_OK);
    (void)st;
    r->engine->view.batch.now_us = clock_is_fake() ? clock_wall_us() : now_us + r->clock_us;
}

void recent_end(struct recent *r)
{
    struct error err;
    enum status st = engine_commit(r->engine, NULL, &err);
    assert(st == ST_OK);
    (void)st;
}

/* ---- positions ---- */

static bool same_position(const struct position *a, const struct position *b)
{
    return a->kind == b->kind && a->timeline == b->timeline && position_reached(a, b) &&
           position_reached(b, a);
}

/* Where the positions of a snapshot are, in places. */
static int64_t find_place(struct recent *r, const struct recent_snapshot *s)
{
    for (int64_t i = r->nplaces - 1; i >= 0 && i >= r->nplaces - LOOK_BACK; i--) {
        const struct recent_place *p = &r->places[i % PLACES];
        if (same_position(&p->admitted, &s->admitted) && same_position(&p->seen, &s->seen))
            return i % PLACES;
    }
    int64_t at = r->nplaces++ % PLACES;
    r->places[at] = (struct recent_place){s->admitted, s->seen, r->snapshots};
    return at;
}

/* Those of a row, or NULL: others have taken their place. */
static const struct recent_place *place_of(const struct recent *r, const struct row *row)
{
    const struct recent_place *p = &r->places[row->seq % PLACES];
    return row->seq / PLACES >= p->since ? p : NULL;
}

/* Whether a GTID that is needed was written by the server that has written what was read. After a failover
   numbers of two histories are compared otherwise. */
static bool same_server(const struct position *at, const struct position_gtid *need)
{
    for (uint32_t i = 0; i < at->ndomains; i++)
        if (at->gtids[i].domain == need->domain)
            return at->gtids[i].server == need->server;
    return false;
}

/* Whether what was read at a position has all of what is needed, beyond doubt: on another timeline it may
   not, whatever the numbers say. */
static bool reached(const struct position *at, const struct position *need)
{
    if (need->kind == POSITION_NONE)
        return true;
    if (need->kind == POSITION_LSN && at->timeline != need->timeline)
        return false;
    for (uint32_t i = 0; need->kind == POSITION_GTID && i < need->ndomains; i++)
        if (!same_server(at, &need->gtids[i]))
            return false;
    return position_reached(at, need);
}

/* Whether a row was read at or after a session's position. What the session sees with it has to be known,
   too, or it might go back later; and that what was read lies on one history. */
static bool session_may(const struct recent *r, const struct row *row, const struct position *need)
{
    const struct recent_place *p = place_of(r, row);
    return p && p->seen.kind != POSITION_NONE && reached(&p->admitted, need) &&
           reached(&p->seen, &p->admitted);
}

/* ---- serving ---- */

/* A key that has an expiry, or a hash with a field that has one, which may have come: the moment is not exact
   here. */
static bool may_have_expired(const struct view *v, const struct row *row)
{
    if (row->type == ROW_NONE)
        return false;
    struct row_ext e = row_items(row);
    return (row->expire_at != EXPIRE_NEVER && row->expire_at <= view_now(v)) ||
           (row->type == ROW_HASH && view_hash_due(v, &e));
}

static const struct row *find(const struct view *v, const struct key_ref *k)
{
    return cache_peek(v->cache, k->db, k->key, cache_hash(k->db, k->key));
}

static bool meets(struct recent *r, const struct row *row, const struct recent_demand *d)
{
    struct view *v = &r->engine->view;
    if (!row || row->ticket < d->as_of_us || may_have_expired(v, row))
        return false;
    if (row->ext && !memos_find(&v->memos, row_items(row).id))
        return false;
    return !d->need || session_may(r, row, d->need);
}

static void want(struct recent *r, const struct key_ref *k)
{
    if (r->nwanted < MAX_WANTED)
        VEC_PUSH(r->wanted, r->nwanted, r->wanted_cap) = *k;
}

bool recent_serves(struct recent *r, const struct recent_demand *d, struct recent_served *ret)
{
    static const struct position not_known = {.kind = POSITION_NONE};
    struct view *v = &r->engine->view;
    const struct key_ref *keys = v->declared.keys;
    size_t n = v->declared.n;
    const struct row *first = n ? find(v, &keys[0]) : NULL;
    bool all = meets(r, first, d);
    for (size_t i = 1; i < n && all; i++) {
        const struct row *row = find(v, &keys[i]);
        all = meets(r, row, d) && row->seq == first->seq;
    }
    for (size_t i = 0; i < n && !all; i++)
        want(r, &keys[i]);
    if (all && ret) {
        const struct recent_place *p = place_of(r, first);
        *ret = (struct recent_served){first->ticket, p ? &p->seen : &not_known};
    }
    view_undeclare(v);
    return all;
}

/* ---- taking ---- */

/* The collection of a row, if all of it is in the view's memory. */
static struct memo *members_of(struct view *from, const struct row *row)
{
    struct memo *m = memos_find(&from->memos, row_items(row).id);
    return m && m->has_members && !m->touched && !m->ranks ? m : NULL;
}

/* Whether a row, with its collection, is something to keep. */
static bool keeps(const struct recent *r, const struct view *from, const struct row *row,
                  const struct memo *members)
{
    size_t bytes = row_footprint(row) + (members ? memo_bytes(members) : 0);
    return !row->dirty && (!row->ext || members) && !may_have_expired(from, row) &&
           bytes <= cache_budget(r->engine->view.cache) / MAX_SHARE;
}

static void drop_members(struct view *v, const struct row *row)
{
    struct memo *m = row->ext ? memos_find(&v->memos, row_items(row).id) : NULL;
    if (m)
        memos_drop(&v->memos, m);
}

/* Moves the items of a row, under an id of our own. */
static void take_members(struct recent *r, struct view *from, struct row *row, struct memo *members)
{
    struct row_ext e = row_items(row);
    memos_remove(&from->memos, members);
    members->id = e.id = r->next_id++;
    memcpy(row->data, &e, sizeof e);
    memos_add(&r->engine->view.memos, members);
}

/* Puts a row in the place of what was known of its key. */
static void put(struct view *v, struct row *row, struct row *old)
{
    row->used = 0;
    row->heat = old ? old->heat : 0;
    if (!old) {
        cache_add(v->cache, row);
        return;
    }
    drop_members(v, old);
    cache_replace(v->cache, old, row);
    row_free(old);
}

static void take(struct recent *r, struct view *from, const struct key_ref *k, int64_t as_of_us, int64_t seq)
{
    struct view *v = &r->engine->view;
    uint32_t number = from->dbs.rows[k->db].number, hash = cache_hash(k->db, k->key);
    struct row *row = cache_peek(from->cache, number, k->key, cache_hash(number, k->key));
    struct memo *members = row && row->ext ? members_of(from, row) : NULL;
    struct row *old = cache_peek(v->cache, k->db, k->key, hash);
    if (!row || !keeps(r, from, row, members) || (old && old->ticket > as_of_us))
        return;
    cache_remove(from->cache, row);
    if (members)
        take_members(r, from, row, members);
    row->link.tag = k->db;
    row->link.hash = hash;
    row->ticket = as_of_us;
    row->seq = seq;
    put(v, row, old);
}

/* What was read on another branch is of a history that a failover has ended: nothing of it is kept. */
static void follow_branch(struct recent *r, const struct position *seen)
{
    if (seen->kind == POSITION_NONE)
        return;
    if (r->on_branch && r->branch != seen->timeline) {
        cache_drop(r->engine->view.cache);
        memos_drop_all(&r->engine->view.memos);
    }
    r->on_branch = true;
    r->branch = seen->timeline;
}

void recent_take(struct recent *r, struct engine *from, const struct recent_snapshot *s)
{
    struct view *v = &from->view;
    follow_branch(r, &s->seen);
    if (!r->nwanted)
        return;
    r->snapshots++;
    int64_t seq = r->snapshots * PLACES + find_place(r, s);
    r->clock_us = v->batch.now_us - s->asked_us;
    for (size_t i = 0; i < r->nwanted; i++)
        if (r->wanted[i].db < v->dbs.n)
            take(r, v, &r->wanted[i], s->as_of_us, seq);
    engine_keep_budget(r->engine);
}

void recent_settle(struct recent *r)
{
    r->nwanted = 0;
}
