/* Hashes whose fields expire.

   No command sees a field that has expired from that moment on, whatever has happened to its row:
   finding, walking, paging and counting leave it out (coll.c), and a hash that has no other fields is not
   there for any command (view_get, and in SQL where many keys are read at once). Rows of expired fields are
   removed by the sweeper alone, through the engine, a bounded number at a time.

   So no command pays for fields that other commands let expire: neither the one that happens to come first
   after a million of them have ended in the same second, nor a read, which would have to become a write. All
   that a command needs is to know how many expired fields there are, and that is counted once and then
   carried on: the key's first_expiry says that there are none before some moment; up to COLL_RESIDENT_LOAD
   fields are looked at in memory; of larger hashes the count is kept with the moment it is true for, and what
   has expired since then is counted by the index (id, expire_at) and added.

   first_expiry may be too early, after the field that it stood for has gone or lost its expiry. It is never
   too late. The sweeper sets it right when its time has come. Hashes without expiring fields have 0 there and
   take no notice of any of this. */
#include "engine/coll_internal.h"

#define MUCH_SHARE 4 /* much of a hash has expired when more than one field in so many has */

static bool expired(int64_t expire_at, int64_t now)
{
    return expire_at != EXPIRE_NEVER && expire_at <= now;
}

/* ---- how many ---- */

static int64_t count_members(const struct resident *r, int64_t now)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->size; i++)
        n += expired(resident_at(r, i)->expire_at, now);
    return n;
}

/* In the tables: those that expired after `since`. */
static enum status count_rows(struct view *v, int64_t id, int64_t since, int64_t now, int64_t *ret)
{
    struct item_scan q = {
        .table = ITEM_HASH,
        .id = id,
        .order = ITEMS_BY_EXPIRY,
        .has_min = true,
        .has_max = true,
        .min = since ? since + 1 : INT64_MIN,
        .max = now,
    };
    return view_count_items(v, &q, ret);
}

/* Brings the count that memory has of a hash to a moment. */
static enum status count_on(struct view *v, struct memo *m, int64_t now)
{
    if (m->expired.as_of == now)
        return ST_OK;
    if (m->has_members) {
        expired_set(&m->expired, count_members(&m->members, now), now);
        return ST_OK;
    }
    int64_t more;
    enum status st = count_rows(v, m->id, expired_since(&m->expired, now), now, &more);
    if (st != ST_OK)
        return st;
    if (view_has_changes(v)) /* it may count what the batch did, and is gone when the batch is */
        memos_touch(&v->memos, m);
    expired_carry_on(&m->expired, more, now);
    return ST_OK;
}

enum status view_expired_fields(struct view *v, const struct row_ext *e, int64_t *ret)
{
    *ret = 0;
    if (!view_hash_due(v, e))
        return ST_OK;
    struct memo *m = memos_find(&v->memos, e->id);
    if (!m && e->size <= COLL_RESIDENT_LOAD)
        return count_rows(v, e->id, 0, view_now(v), ret);
    if (!m) {
        m = memo_new(e->id);
        memos_add(&v->memos, m);
    }
    if (m->touched)
        view_saw(v, v->batch.ticket);
    enum status st = count_on(v, m, view_now(v));
    if (st == ST_OK)
        *ret = m->expired.fields;
    return st;
}

void coll_keep_expired(struct coll *c)
{
    struct memo *m = c->memo ? c->memo : memos_find(&c->v->memos, c->id);
    if (!m)
        return;
    memos_touch(&c->v->memos, m);
    expired_set(&m->expired, c->expired, view_now(c->v));
}

/* ---- removing them ---- */

/* Fields that go. */
struct gone {
    struct coll *c;
    struct slice *names; /* in the batch's arena */
    size_t n;
};

static enum status add_gone(void *arg, const struct coll_item *item)
{
    struct gone *g = arg;
    g->names[g->n++] = arena_copy(&g->c->v->batch.arena, item->name);
    return ST_OK;
}

static enum status add_expired(void *arg, const struct coll_item *item)
{
    const struct gone *g = arg;
    return expired(item->expire_at, view_now(g->c->v)) ? add_gone(arg, item) : ST_OK;
}

/* In the tables: where much has expired, what of it has the highest numbers, because neighbours go together;
   else by the index. */
static enum status gather_rows(struct coll *c, uint32_t max, struct gone *ret)
{
    struct item_scan last = {
        .table = ITEM_HASH, .id = c->id, .order = ITEMS_BY_ORD, .reverse = true, .limit = max};
    struct item_scan first = {
        .table = ITEM_HASH,
        .id = c->id,
        .order = ITEMS_BY_EXPIRY,
        .has_max = true,
        .max = view_now(c->v),
        .limit = max,
    };
    struct coll_walk w = {.fn = add_expired, .arg = ret};
    enum status st = ST_OK;
    if (c->expired > c->size / MUCH_SHARE)
        st = view_scan_items(c->v, &last, coll_walk_row, &w);
    if (st == ST_OK && ret->n == 0)
        st = view_scan_items(c->v, &first, coll_walk_row, &w);
    return st;
}

static enum status gather(struct coll *c, uint32_t max, struct gone *ret)
{
    enum status st = ST_OK;
    *ret = (struct gone){.c = c};
    ret->names = arena_alloc(&c->v->call.scratch, max * sizeof *ret->names);
    if (!c->res)
        return gather_rows(c, max, ret);
    for (size_t i = 0; st == ST_OK && i < c->res->size && ret->n < max; i++) {
        struct coll_item item = coll_from_member(resident_at(c->res, i));
        st = add_expired(ret, &item);
    }
    return st;
}

static enum status note_gone(struct coll *c, struct slice name)
{
    struct coll_item old;
    bool found;
    if (!coll_notes(c))
        return ST_OK;
    enum status st = coll_find_stored(c, name, &found, &old);
    return st == ST_OK && found ? coll_note(c, name, &old) : st;
}

static enum status take_gone(struct coll *c, const struct gone *g)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < g->n; i++) {
        struct item_ref ref = {.table = ITEM_HASH, .id = c->id, .name = g->names[i]};
        if (c->res) {
            struct coll_item item = coll_from_member(resident_find(c->res, g->names[i]));
            st = coll_take_out(c, &item);
        } else {
            st = note_gone(c, g->names[i]);
            if (st == ST_OK)
                st = view_del_item(c->v, &ref);
            c->size--;
        }
    }
    c->expired -= (int64_t)g->n;
    return st;
}

static enum status take_earliest(void *arg, const struct item_row *row)
{
    *(int64_t *)arg = row->expire_at;
    return ST_OK;
}

/* When the next field expires, 0 when none does. All that have expired are gone. */
static enum status earliest(struct coll *c, int64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; c->res && i < c->res->size; i++) {
        int64_t at = resident_at(c->res, i)->expire_at;
        if (at != EXPIRE_NEVER && (*ret == 0 || at < *ret))
            *ret = at;
    }
    struct item_scan q = {.table = ITEM_HASH, .id = c->id, .order = ITEMS_BY_EXPIRY, .limit = 1};
    return c->res ? ST_OK : view_scan_items(c->v, &q, take_earliest, ret);
}

/* Nothing that a client sees changes, so the version that view_version tells stays as it is. */
static enum status save_purged(struct coll *c, struct row *row, size_t gone)
{
    enum status st = c->notes ? coll_tell(c) : ST_OK;
    if (st != ST_OK)
        return st;
    struct row_draft d = coll_draft(c, (enum row_form)row->form);
    coll_keep_expired(c);
    return view_amend(c->v, row, &d, row->version + (int64_t)gone);
}

enum status coll_purge(struct view *v, uint32_t db, struct slice key, uint32_t max, uint32_t *ret_rows)
{
    struct row *row;
    *ret_rows = 0;
    enum status st = view_row(v, v->dbs.rows[db].number, key, &row);
    if (st != ST_OK || row->type != ROW_HASH || !row_live(row, view_now(v)))
        return st;
    struct row_ext e = row_items(row);
    int64_t n;
    if (!view_hash_due(v, &e) || (st = view_expired_fields(v, &e, &n)) != ST_OK)
        return st;
    if (n == e.size) {
        v->stats->expired_fields += (uint64_t)n;
        *ret_rows = 1;
        return view_bury(v, row);
    }
    struct coll *c;
    struct gone gone;
    if ((st = coll_of_row(v, db, row, &c)) != ST_OK || (st = gather(c, max, &gone)) != ST_OK)
        return st;
    st = take_gone(c, &gone);
    if (st == ST_OK && c->expired == 0)
        st = earliest(c, &c->first_expiry);
    if (st == ST_OK)
        st = save_purged(c, row, gone.n);
    v->stats->expired_fields += gone.n;
    *ret_rows = (uint32_t)gone.n + 1;
    return st;
}
