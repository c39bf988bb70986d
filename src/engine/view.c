/* Keys: reading, writing, undoing. See view.h for what is promised, view_internal.h for what is kept.

   Every write starts from the row that memory or the tables have (a row that says "absent" when there is
   none), makes a new row and puts it in the old one's place. The old row stays alive until the call is
   accepted, so a handler may write to a key while it still reads the row it was given. */
#include "engine/view.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "engine/view_internal.h"

#define ID_BLOCK 65536

int64_t view_now(const struct view *v)
{
    return v->batch.now_us / 1000;
}

int64_t view_now_us(const struct view *v)
{
    return v->batch.now_us;
}

bool view_wrote(const struct view *v)
{
    return v->call.wrote;
}

uint32_t view_databases(const struct view *v)
{
    return v->dbs.n;
}

uint64_t view_call(const struct view *v)
{
    return v->call.number;
}

struct error *view_error(struct view *v)
{
    return v->call.err;
}

struct rand *view_rand(struct view *v)
{
    return &v->rnd;
}

struct arena *view_arena(struct view *v)
{
    return &v->batch.arena;
}

const struct form_limit *view_form_limit(const struct view *v, enum row_type type)
{
    return &v->form_limits[type];
}

void view_set_form_limit(struct view *v, enum row_type type, struct form_limit limit)
{
    v->form_limits[type] = limit;
}

/* ---- reading ---- */

static uint32_t seconds(const struct view *v)
{
    return (uint32_t)(v->batch.now_us / 1000000);
}

int64_t view_idle_seconds(const struct view *v, const struct row *r)
{
    return r->dirty || r->used > seconds(v) ? 0 : seconds(v) - r->used;
}

void view_look_only(struct view *v)
{
    v->call.look_only = true;
}

struct loading {
    struct row *row;
    uint32_t hash;
    struct error *err;
};

static enum status take_row(void *arg, const struct key_row *k)
{
    struct loading *l = arg;
    if (!row_sound(k))
        return error_set(l->err, ST_CORRUPT, "the row of a key is wrong, larder_key.seq %lld",
                         (long long)k->seq);
    l->row = row_new(k, l->hash);
    return ST_OK;
}

/* The row in memory, or NULL. */
static inline struct row *find_row(struct view *v, uint32_t number, struct slice key, uint32_t *ret_hash)
{
    const struct prefetch *e = v->batch.prefetch;
    bool known = e && e->key.p == key.p && e->key.n == key.n && e->number == number;
    *ret_hash = known ? e->hash : cache_hash(number, key);
    if (!known || !e->row || e->changes != cache_changes(v->cache))
        return cache_find(v->cache, number, key, *ret_hash);
    cache_hit(v->cache, e->row);
    return e->row;
}

enum status view_row(struct view *v, uint32_t number, struct slice key, struct row **ret)
{
    uint32_t hash;
    struct row *r = find_row(v, number, key, &hash);
    if (!r) {
        struct key_ref ref = {number, key};
        struct loading l = {NULL, hash, v->call.err};
        enum status st = store_get_keys(v->store, &ref, 1, take_row, &l, v->call.err);
        if (st != ST_OK) {
            row_free(l.row);
            return st;
        }
        if (!l.row) {
            struct key_row absent = {.db = number, .key = key, .type = ROW_NONE};
            l.row = row_new(&absent, hash);
        }
        r = l.row;
        cache_add(v->cache, r);
    }
    if (!r->dirty && (!v->call.look_only || r->used == 0))
        r->used = seconds(v);
    view_saw(v, r->ticket);
    view_saw(v, v->dbs.ticket); /* it may only be there or gone because of a flush or a swap */
    *ret = r;
    return ST_OK;
}

static bool live(struct view *v, const struct row *r)
{
    return row_live(r, view_now(v));
}

/* Whether there is a key: a live row, and if it is a hash, one that has a field. *ret_expired: fields that
   are there only in the tables. */
static enum status exists(struct view *v, const struct row *r, bool *ret, int64_t *ret_expired)
{
    *ret_expired = 0;
    *ret = live(v, r);
    if (!*ret || r->type != ROW_HASH)
        return ST_OK;
    struct row_ext e = row_items(r);
    if (!view_hash_due(v, &e))
        return ST_OK;
    enum status st = view_expired_fields(v, &e, ret_expired);
    *ret = *ret_expired < e.size;
    return st;
}

/* An expired key is counted when it is first asked for, however often that happens before it is swept. What
   is remembered of one is a mark in a table of fixed size: two keys with the same place that are asked for in
   turn count each time. */
static void count_expired(struct view *v, const struct row *r)
{
    if (r->type == ROW_NONE)
        return;
    uint64_t mark = hash_bytes(row_key(r), (uint64_t)r->version ^ (uint64_t)row_db(r) << 48) | 1;
    uint64_t *place = &v->expired_marks[mark / 2 % VIEW_EXPIRED_MARKS];
    v->batch.tally->expired_on_read += *place != mark;
    *place = mark;
}

enum status view_get(struct view *v, uint32_t db, struct slice key, const struct row **ret)
{
    struct row *r;
    bool there;
    int64_t expired;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &r);
    if (st != ST_OK || (st = exists(v, r, &there, &expired)) != ST_OK)
        return st;
    if (there) {
        v->batch.tally->keyspace_hits += v->call.counts_lookups;
        *ret = r;
    } else {
        v->batch.tally->keyspace_misses += v->call.counts_lookups;
        count_expired(v, r);
        *ret = NULL;
    }
    return ST_OK;
}

void view_count_lookups(struct view *v, bool on)
{
    v->call.counts_lookups = on;
}

struct prefetch view_prefetch(const struct view *v, uint32_t db, struct slice key)
{
    uint32_t number = v->dbs.rows[db].number;
    struct prefetch e = {.key = key, .number = number, .hash = cache_hash(number, key)};
    cache_fetch_bucket(v->cache, e.hash);
    return e;
}

void view_prefetch_soon(const struct view *v, const struct prefetch *e)
{
    cache_fetch_first(v->cache, e->hash);
}

void view_prefetch_next(const struct view *v, const struct prefetch *e)
{
    cache_fetch_row(v->cache, e->hash);
}

void view_prefetch_now(struct view *v, const struct prefetch *e)
{
    v->batch.prefetch = e;
}

enum status view_version(struct view *v, uint32_t db, struct slice key, int64_t *ret)
{
    struct row *r;
    bool there;
    int64_t expired;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &r);
    if (st != ST_OK || (st = exists(v, r, &there, &expired)) != ST_OK)
        return st;
    /* A field that expires changes the hash: each counts as one write. */
    *ret = there ? r->version + expired : 0;
    return ST_OK;
}

/* ---- writing ---- */

/* A list or sorted set where there was none: clients may be waiting for it. */
static void note_ready(struct view *v, const struct row *old, const struct key_row *k)
{
    bool waitable = k->type == ROW_LIST || k->type == ROW_ZSET;
    if (waitable && !(live(v, old) && old->type == k->type))
        VEC_PUSH(v->batch.ready, v->batch.nready, v->batch.ready_cap) =
            (struct ready_key){k->db, arena_copy(&v->batch.arena, k->key)};
}

/* What somebody keeps in step with hashes and tables (keeper.h) is written first. */
static inline enum status keep_key(struct view *v, const struct row *old, const struct key_row *k)
{
    const unsigned told = 1u << ROW_HASH | 1u << ROW_TABLE;
    if (!((1u << old->type | 1u << k->type) & told) || (!keep_any(&v->keep) && k->type != ROW_TABLE))
        return ST_OK;
    return view_keep_key(v, old, k);
}

static enum status install(struct view *v, struct row *old, const struct key_row *k, enum row_form form)
{
    enum status st = keep_key(v, old, k);
    if (st != ST_OK)
        return st;
    if (v->watch_ready)
        note_ready(v, old, k);
    struct row *fresh = row_new(k, old->link.hash);
    fresh->dirty = 1;
    fresh->ticket = v->batch.ticket;
    fresh->heat = old->heat;
    fresh->form = (unsigned char)form & 3u;
    if (old->dirty) {
        fresh->change = old->change;
        v->batch.bytes -= old->nkey + old->nvalue;
    } else {
        fresh->change = (uint32_t)v->batch.nchanges;
        VEC_PUSH(v->batch.changes, v->batch.nchanges, v->batch.changes_cap) = (struct change){.was = old};
    }
    struct change *c = &v->batch.changes[fresh->change];
    c->now = fresh;
    v->batch.npending += !c->pending;
    c->pending = true;
    v->batch.bytes += fresh->nkey + fresh->nvalue;
    cache_replace(v->cache, old, fresh);
    VEC_PUSH(v->call.undo, v->call.nundo, v->call.undo_cap) = (struct row_undo){old, fresh};
    v->call.wrote = true;
    view_saw(v, v->batch.ticket);
    return ST_OK;
}

static int64_t next_version(const struct view *v, const struct row *old)
{
    return old->version >= v->batch.now_us ? old->version + 1 : v->batch.now_us;
}

void view_discard(struct view *v, int64_t id, enum row_type type)
{
    VEC_PUSH(v->batch.trash, v->batch.ntrash, v->batch.trash_cap) = (struct trash_row){id, type};
}

void view_discard_index(struct view *v, int64_t id, uint16_t number)
{
    view_discard(v, id, (enum row_type)(ROW_INDEX + number));
}

/* The items of a row that is about to lose them. */
static void discard_items(struct view *v, const struct row *r)
{
    struct row_ext e = row_items(r);
    if (r->type != ROW_NONE && e.id)
        view_discard(v, e.id, (enum row_type)r->type);
}

enum status view_amend(struct view *v, struct row *old, const struct row_draft *d, int64_t version)
{
    assert(d->type != ROW_NONE && d->expire_at >= 0);
    if (row_items(old).id != d->id)
        discard_items(v, old);
    struct key_row k = {
        .seq = old->seq,
        .db = row_db(old),
        .key = row_key(old),
        .type = d->type,
        .id = d->id,
        .size = d->size,
        .first = d->first,
        .numbers = d->numbers,
        .value = d->value,
        .version = version,
        .expire_at = d->expire_at,
    };
    return install(v, old, &k, d->form);
}

enum status view_put(struct view *v, uint32_t db, struct slice key, const struct row_draft *d)
{
    struct row *old;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &old);
    return st == ST_OK ? view_amend(v, old, d, next_version(v, old)) : st;
}

static enum status install_deleted(struct view *v, struct row *old)
{
    struct key_row k = {
        .seq = old->seq,
        .db = row_db(old),
        .key = row_key(old),
        .type = ROW_NONE,
        .version = next_version(v, old),
        .expire_at = EXPIRE_DELETED,
    };
    return install(v, old, &k, FORM_UNKNOWN);
}

enum status view_bury(struct view *v, struct row *r)
{
    discard_items(v, r);
    return install_deleted(v, r);
}

enum status view_del(struct view *v, uint32_t db, struct slice key, bool *ret_existed)
{
    struct row *old;
    bool existed;
    int64_t expired;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &old);
    if (st != ST_OK || (st = exists(v, old, &existed, &expired)) != ST_OK)
        return st;
    if (ret_existed)
        *ret_existed = existed;
    return existed ? view_bury(v, old) : ST_OK;
}

enum status view_expire(struct view *v, uint32_t db, struct slice key, int64_t expire_at)
{
    struct row *old;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &old);
    if (st != ST_OK)
        return st;
    assert(live(v, old) && expire_at >= 0);
    struct key_row k = row_to_key(old);
    k.version = next_version(v, old);
    k.expire_at = expire_at;
    return install(v, old, &k, (enum row_form)old->form);
}

enum status view_move(struct view *v, uint32_t from_db, struct slice from, uint32_t to_db, struct slice to)
{
    struct row *source, *target;
    enum status st;
    if ((st = view_row(v, v->dbs.rows[from_db].number, from, &source)) != ST_OK)
        return st;
    if ((st = view_row(v, v->dbs.rows[to_db].number, to, &target)) != ST_OK)
        return st;
    assert(live(v, source) && source != target);
    discard_items(v, target);
    struct key_row k = row_to_key(source);
    k.seq = target->seq;
    k.db = row_db(target);
    k.key = to;
    k.version = next_version(v, target);
    st = install(v, target, &k, (enum row_form)source->form);
    return st == ST_OK ? install_deleted(v, source) : st;
}

enum status view_new_id(struct view *v, int64_t *ret)
{
    if (v->ids.next == v->ids.end) {
        int64_t first;
        enum status st = store_reserve_ids(v->store, ID_BLOCK, &first, v->call.err);
        if (st != ST_OK)
            return st;
        v->ids.next = first;
        v->ids.end = first + ID_BLOCK;
        v->ids.new_block = true;
    }
    *ret = v->ids.next++;
    return ST_OK;
}

/* An id that nothing has, noted for the sweeper: a row that comes and goes, in no database. Only its commit
   tells whether the database can be written: a disk may be full, or gone, while reading goes on. */
enum status view_probe(struct view *v)
{
    int64_t id;
    enum status st = view_new_id(v, &id);
    if (st != ST_OK)
        return st;
    view_discard(v, id, ROW_STRING);
    view_saw(v, v->batch.ticket);
    return ST_OK;
}

/* ---- databases ---- */

static void before_dbs_change(struct view *v)
{
    size_t bytes = v->dbs.n * sizeof *v->dbs.rows;
    if (!v->batch.dbs_changed) {
        memcpy(v->batch.dbs_before, v->dbs.rows, bytes);
        v->batch.next_number_before = v->dbs.next_number;
        v->batch.dbs_ticket_before = v->dbs.ticket;
    }
    if (!v->call.dbs_changed) {
        memcpy(v->call.dbs_before, v->dbs.rows, bytes);
        v->call.next_number_before = v->dbs.next_number;
    }
    view_mark_dbs(v);
    v->batch.dbs_changed = v->call.dbs_changed = v->batch.dbs_pending = true;
    v->call.wrote = true;
    v->dbs.ticket = v->batch.ticket;
    view_saw(v, v->batch.ticket);
}

enum status view_flush_db(struct view *v, uint32_t db)
{
    before_dbs_change(v);
    VEC_PUSH(v->batch.trash, v->batch.ntrash, v->batch.trash_cap) =
        (struct trash_row){v->dbs.rows[db].number, ROW_DB};
    v->dbs.rows[db] = (struct db_row){.db = db, .number = v->dbs.next_number++};
    return ST_OK;
}

enum status view_swap_db(struct view *v, uint32_t a, uint32_t b)
{
    enum status st = view_touch_swapped(v, a, b);
    if (st != ST_OK)
        return st;
    before_dbs_change(v);
    struct db_row was = v->dbs.rows[a];
    v->dbs.rows[a] = v->dbs.rows[b];
    v->dbs.rows[a].db = a;
    v->dbs.rows[b] = was;
    v->dbs.rows[b].db = b;
    if (v->watch_ready)
        VEC_PUSH(v->batch.ready, v->batch.nready, v->batch.ready_cap) =
            (struct ready_key){.number = v->dbs.rows[a].number};
    return ST_OK;
}

/* ---- keys that clients wait for ---- */

void view_watch_ready(struct view *v, bool on)
{
    v->watch_ready = on;
}

bool view_next_ready(struct view *v, uint32_t *ret_db, struct slice *ret_key, bool *ret_all)
{
    while (v->batch.ready_taken < v->batch.nready) {
        const struct ready_key *k = &v->batch.ready[v->batch.ready_taken++];
        *ret_key = k->key;
        *ret_all = !k->key.p;
        for (uint32_t i = 0; i < v->dbs.n; i++) {
            if (v->dbs.rows[i].number == k->number) {
                *ret_db = i;
                return true;
            }
        }
    }
    v->batch.nready = v->batch.ready_taken = 0;
    return false;
}

/* What a row adds to its database's counts. */
static int64_t counts_key(const struct row *r)
{
    return r->type != ROW_NONE;
}

static int64_t counts_expiry(const struct row *r)
{
    return r->type != ROW_NONE && r->expire_at != EXPIRE_NEVER;
}

void view_counts(const struct view *v, struct db_row *ret)
{
    memcpy(ret, v->dbs.rows, v->dbs.n * sizeof *ret);
    struct db_row *d = ret; /* changes of one database tend to come together */
    for (size_t i = 0; i < v->batch.nchanges; i++) {
        const struct change *c = &v->batch.changes[i];
        if (c->now->type == c->was->type && c->now->expire_at == c->was->expire_at)
            continue;
        for (uint32_t k = 0; d->number != row_db(c->now) && k < v->dbs.n; k++)
            d = &ret[k];
        if (d->number == row_db(c->now)) {
            d->keys += counts_key(c->now) - counts_key(c->was);
            d->expires += counts_expiry(c->now) - counts_expiry(c->was);
        }
    }
}

/* ---- the end of a call ---- */

/* Who watches a key that has appeared is told. */
static void touch_appeared(struct view *v, const struct row_undo *u)
{
    if (v->watches.by_key.count && u->fresh->type != ROW_NONE && !live(v, u->old))
        view_touch(v, row_db(u->fresh), row_key(u->fresh));
}

/* Of a row that several steps changed, only the first and the last state matter. */
void view_step(struct view *v)
{
    size_t n = v->call.step_undo;
    for (size_t i = v->call.step_undo; i < v->call.nundo; i++) {
        struct row_undo u = v->call.undo[i];
        struct change *c = &v->batch.changes[u.fresh->change];
        touch_appeared(v, &u);
        if (c->call == v->call.number) {
            assert(v->call.undo[c->undo].fresh == u.old);
            v->call.undo[c->undo].fresh = u.fresh;
            row_free(u.old);
        } else {
            c->call = v->call.number;
            c->undo = n;
            v->call.undo[n++] = u;
        }
    }
    v->call.nundo = v->call.step_undo = n;
    v->call.steps_wrote |= v->call.wrote;
    v->call.wrote = false;
}

void view_accept(struct view *v)
{
    v->batch.kept |= view_has_changes(v);
    for (size_t i = 0; i < v->call.nundo; i++) {
        if (i >= v->call.step_undo)
            touch_appeared(v, &v->call.undo[i]);
        if (v->call.undo[i].old->dirty)
            row_free(v->call.undo[i].old);
    }
    v->call.nundo = 0;
    view_accept_items(v);
    view_settle_call_watches(v, true);
}

void view_undo_rows(struct view *v, size_t to)
{
    while (v->call.nundo > to) {
        struct row_undo u = v->call.undo[--v->call.nundo];
        cache_replace(v->cache, u.fresh, u.old);
        view_note_undone(v, row_db(u.fresh));
        v->batch.bytes -= u.fresh->nkey + u.fresh->nvalue;
        struct change *c = &v->batch.changes[u.fresh->change];
        if (u.old->dirty) {
            c->now = u.old;
            v->batch.bytes += u.old->nkey + u.old->nvalue;
        } else {
            v->batch.npending -= c->pending;
            v->batch.nchanges--;
        }
        row_free(u.fresh);
    }
}

void view_undo(struct view *v, enum status why)
{
    if (v->call.flushed && v->batch.poison == ST_OK)
        v->batch.poison = why != ST_OK ? why : ST_INTERNAL;
    view_undo_rows(v, 0);
    view_undo_items(v, 0);
    view_undo_ranges(v, v->call.nranges_before);
    memos_drop_touched(&v->memos);
    v->batch.ntrash = v->call.ntrash_before;
    if (v->batch.trash_flushed > v->batch.ntrash) /* nothing of the batch will be committed */
        v->batch.trash_flushed = v->batch.ntrash;
    v->batch.nready = v->call.nready_before;
    if (v->call.dbs_changed) {
        memcpy(v->dbs.rows, v->call.dbs_before, v->dbs.n * sizeof *v->dbs.rows);
        v->dbs.next_number = v->call.next_number_before;
    }
    view_settle_call_watches(v, false);
}

/* ---- the end of a batch ---- */

static void end_batch(struct view *v)
{
    v->batch.nchanges = v->batch.npending = v->batch.bytes = 0;
    v->batch.ntrash = v->batch.trash_flushed = 0;
    v->batch.nready = v->batch.ready_taken = 0;
    v->batch.dbs_changed = v->batch.dbs_pending = v->ids.new_block = false;
    memset(v->batch.db_written, 0, v->dbs.n * sizeof *v->batch.db_written);
    v->batch.poison = ST_OK;
    v->batch.kept = v->batch.doubtful = false;
    v->batch.prefetch = NULL;
    arena_reset(&v->batch.arena);
}

void view_committed(struct view *v)
{
    view_counts(v, v->call.dbs_before);
    memcpy(v->dbs.rows, v->call.dbs_before, v->dbs.n * sizeof *v->dbs.rows);
    for (size_t i = 0; i < v->batch.nchanges; i++) {
        v->batch.changes[i].now->dirty = 0;
        v->batch.changes[i].now->used = seconds(v);
        row_free(v->batch.changes[i].was);
    }
    v->dbs.counts_unsaved = false;
    memos_settle(&v->memos);
    view_items_committed(v);
    view_settle_watches(v, true);
    end_batch(v);
}

void view_rolled_back(struct view *v)
{
    for (size_t i = v->batch.nchanges; i > 0; i--) {
        struct change *c = &v->batch.changes[i - 1];
        cache_replace(v->cache, c->now, c->was);
        view_note_undone(v, row_db(c->now));
        row_free(c->now);
    }
    if (v->batch.dbs_changed) {
        memcpy(v->dbs.rows, v->batch.dbs_before, v->dbs.n * sizeof *v->dbs.rows);
        v->dbs.next_number = v->batch.next_number_before;
        v->dbs.ticket = v->batch.dbs_ticket_before;
        v->dbs.counts_stale = true;
    }
    if (v->ids.new_block)
        v->ids.next = v->ids.end = 0;
    view_items_rolled_back(v);
    memos_drop_touched(&v->memos);
    view_settle_watches(v, false);
    end_batch(v);
}

bool view_has_changes(const struct view *v)
{
    return v->batch.nchanges || v->batch.items.any || v->batch.ntrash || v->batch.dbs_changed;
}

/* ---- into the tables ---- */

/* A key that was created and deleted again before it reached the tables has nothing to do there. */
static bool never_was(const struct change *c)
{
    return c->now->seq == 0 && c->now->type == ROW_NONE;
}

/* Something that a blocked client may wait for is there where there was nothing of the kind. */
static bool appears(struct view *v, const struct change *c)
{
    enum row_type type = (enum row_type)c->now->type;
    return (type == ROW_LIST || type == ROW_ZSET) && (c->was->type != c->now->type || !live(v, c->was));
}

static void gather_keys(struct view *v, struct changes *out)
{
    out->keys = arena_alloc(&v->call.scratch, (v->batch.npending + 1) * sizeof *out->keys);
    for (size_t i = 0; i < v->batch.nchanges; i++) {
        struct change *c = &v->batch.changes[i];
        if (!c->pending || never_was(c))
            continue;
        out->keys[out->nkeys++] = row_to_key(c->now);
        out->appeared |= appears(v, c);
    }
}

/* Databases whose row in larder_db may differ from what it would be after this batch. */
static void gather_dbs(struct view *v, struct changes *out)
{
    struct db_row *dbs = arena_alloc(&v->call.scratch, (v->dbs.n + 1) * sizeof *dbs);
    view_counts(v, dbs);
    for (uint32_t i = 0; i < v->dbs.n; i++) {
        if (!v->batch.dbs_pending && !v->dbs.counts_unsaved && !v->batch.db_written[i] &&
            dbs[i].keys == v->dbs.rows[i].keys && dbs[i].expires == v->dbs.rows[i].expires)
            continue;
        /* Counts that are not known stay so over a restart. */
        if (v->dbs.counts_stale)
            dbs[i].keys = dbs[i].expires = -1;
        dbs[out->ndbs++] = dbs[i];
    }
    out->dbs = dbs;
}

static void flushed(struct view *v, const struct changes *applied)
{
    size_t n = 0;
    for (size_t i = 0; i < v->batch.nchanges; i++) {
        struct change *c = &v->batch.changes[i];
        if (c->pending && v->mark.on)
            view_mark_row(v, i);
        if (c->pending && !never_was(c))
            c->now->seq = applied->keys[n++].seq;
        c->pending = false;
    }
    v->batch.npending = 0;
    v->batch.trash_flushed = v->batch.ntrash;
    v->batch.dbs_pending = false;
    for (size_t i = 0; i < applied->ndbs; i++)
        v->batch.db_written[applied->dbs[i].db] = true;
    view_items_flushed(v);
    v->call.flushed |= v->call.wrote || v->call.steps_wrote;
}

enum status view_flush(struct view *v)
{
    if (!v->batch.npending && items_are_flushed(&v->batch.items) &&
        v->batch.trash_flushed == v->batch.ntrash && !v->batch.dbs_pending)
        return ST_OK;
    struct changes c = {0};
    enum status st = v->mark.on ? view_mark_stored(v) : ST_OK;
    if (st != ST_OK)
        return st;
    gather_keys(v, &c);
    view_gather_items(v, &c);
    gather_dbs(v, &c);
    c.last = v->batch.ends;
    c.ntrash = v->batch.ntrash - v->batch.trash_flushed;
    if (c.ntrash)
        c.trash = v->batch.trash + v->batch.trash_flushed;
    st = store_apply(v->store, &c, v->call.err);
    if (st != ST_OK) {
        v->batch.poison = st;
        return st;
    }
    v->stats->rows_written += c.nkeys + c.nranges + c.nitems + c.ngone + c.ntrash + c.ndbs;
    flushed(v, &c);
    return ST_OK;
}
