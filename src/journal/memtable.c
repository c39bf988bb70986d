/* The rows of a memtable: where they are, how they change, how changes are taken back.

   A row is an entry in one hash map, found with one probe. Its states are versions, each made by one change
   and never changed again. Entries also hang in a list of their group, from which orders are built. */
#include "journal/memtable.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "journal/memtable_internal.h"
#include "store/order.h"

#define MOST_RESERVED ((size_t)1 << 22) /* buckets */
#define MOST_DROPPED  16                /* blocks given back at once that are not needed any more */

/* ---- groups ---- */

static uint32_t hash_group(enum item_table table, int64_t id)
{
    return (uint32_t)hash_bytes(slice_of(&id, sizeof id), table);
}

static struct group *find_group(const struct memtable *m, enum item_table table, int64_t id, uint32_t hash)
{
    for (struct map_link *l = map_first(&m->groups, hash); l; l = l->next) {
        struct group *g = (struct group *)l;
        if (l->hash == hash && g->id == id && g->table == table)
            return g;
    }
    return NULL;
}

struct group *memtable_group(const struct memtable *m, enum item_table table, int64_t id)
{
    return m->groups.count ? find_group(m, table, id, hash_group(table, id)) : NULL;
}

static struct group *need_group(struct memtable *m, enum item_table table, int64_t id)
{
    uint32_t hash = hash_group(table, id);
    struct group *g = find_group(m, table, id, hash);
    if (g)
        return g;
    g = memtable_take(m, sizeof *g);
    *g = (struct group){.link.hash = hash, .table = table, .id = id, .earlier = m->last_group};
    *(m->last_group ? &m->last_group->later : &m->first_group) = g;
    m->last_group = g;
    map_add(&m->groups, &g->link);
    return g;
}

static void drop_group(struct memtable *m, struct group *g)
{
    map_remove(&m->groups, &g->link);
    *(g->earlier ? &g->earlier->later : &m->first_group) = g->later;
    *(g->later ? &g->later->earlier : &m->last_group) = g->earlier;
}

/* ---- entries ---- */

static uint32_t hash_key(uint32_t db, struct slice key)
{
    return (uint32_t)hash_bytes(key, db);
}

static uint32_t hash_item(const struct item_ref *r)
{
    struct slice s = item_named(r->table) ? r->name : slice_of(&r->pos, sizeof r->pos);
    return (uint32_t)hash_bytes(s, (uint64_t)r->id * 8 + (uint64_t)r->table + ((uint64_t)1 << 40));
}

static struct entry *find_key(const struct memtable *m, uint32_t db, struct slice key, uint32_t hash)
{
    for (struct map_link *l = map_first(&m->rows, hash); l; l = l->next) {
        struct entry *e = (struct entry *)l;
        if (l->hash == hash && e->kind == KIND_KEY && e->now->key.row.db == db &&
            slice_eq(e->now->key.row.key, key))
            return e;
    }
    return NULL;
}

static struct entry *find_item(const struct memtable *m, const struct item_ref *ref, uint32_t hash)
{
    for (struct map_link *l = map_first(&m->rows, hash); l; l = l->next) {
        struct entry *e = (struct entry *)l;
        if (l->hash == hash && e->kind == ref->table && refs_compare(&e->now->item.row.ref, ref) == 0)
            return e;
    }
    return NULL;
}

static uint32_t hash_extra(uint8_t kind, uint32_t db)
{
    return (uint32_t)hash_bytes(slice_of(&db, sizeof db), ((uint64_t)1 << 41) + kind);
}

static struct entry *find_extra(const struct memtable *m, uint8_t kind, uint32_t db)
{
    uint32_t hash = hash_extra(kind, db);
    for (struct map_link *l = map_first(&m->rows, hash); l; l = l->next) {
        struct entry *e = (struct entry *)l;
        if (l->hash == hash && e->kind == kind && (kind == KIND_NEXT_ID || e->now->db.db == db))
            return e;
    }
    return NULL;
}

/* A new entry without a version. With room for `bytes`, the row's name, behind it. */
static struct entry *add_entry(struct memtable *m, uint8_t kind, struct group *g, uint32_t hash, size_t bytes)
{
    struct entry *e = memtable_take(m, sizeof *e + bytes);
    *e = (struct entry){.link.hash = hash, .kind = kind, .group = g, .earlier = g->last};
    *(g->last ? &g->last->later : &g->first) = e;
    g->last = e;
    g->count++;
    map_add(&m->rows, &e->link);
    m->nrows += g != &m->extra;
    if (m->nrows > m->peak)
        m->peak = m->nrows;
    return e;
}

/* Copies a row's name behind its entry. */
static struct slice keep_name(struct entry *e, struct slice name)
{
    struct group *g = e->group;
    if (name.n)
        memcpy(e + 1, name.p, name.n);
    struct slice own = slice_of(e + 1, name.n);
    if (!g->sample.p) {
        g->sample = own;
        g->common = own.n;
    }
    size_t n = 0, most = own.n < g->common ? own.n : g->common;
    while (n < most && own.p[n] == g->sample.p[n])
        n++;
    g->common = n;
    return own;
}

/* Which of a group's partial orders have a version: adds n (1 or -1) to their counts. */
static void count_version(struct group *g, uint8_t kind, const struct version *v, size_t n)
{
    if (!v)
        return;
    if (kind == KIND_KEY) {
        g->expiring += keys_order_has(KEYS_EXPIRED, &v->key.row) ? n : 0;
        g->due += keys_order_has(KEYS_DUE, &v->key.row) ? n : 0;
        g->tables += keys_order_has(KEYS_TABLES, &v->key.row) ? n : 0;
    } else if (!v->item.gone) {
        g->expiring += items_order_has(ITEMS_BY_EXPIRY, &v->item.row) ? n : 0;
    }
}

/* Whether rows of a kind may be in an order that is of rows with an expiry only. */
static bool may_expire(uint8_t kind)
{
    return kind == KIND_KEY || (kind < ITEM_TABLES && item_has((enum item_table)kind, COLUMN_EXPIRY));
}

/* The state of a row is another one now, or none. */
static void set_state(struct memtable *m, struct entry *e, struct version *v)
{
    struct group *g = e->group;
    if (may_expire(e->kind)) {
        count_version(g, e->kind, e->now, (size_t)-1);
        count_version(g, e->kind, v, 1);
    }
    if (g->orders)
        orders_change(m, g, e->now, v);
    if (v)
        e->now = v;
}

static void drop_entry(struct memtable *m, struct entry *e)
{
    struct group *g = e->group;
    set_state(m, e, NULL);
    *(e->earlier ? &e->earlier->later : &g->first) = e->later;
    *(e->later ? &e->later->earlier : &g->last) = e->earlier;
    g->count--;
    map_remove(&m->rows, &e->link);
    m->nrows -= g != &m->extra;
    if (g->count == 0 && e->kind < ITEM_TABLES)
        drop_group(m, g);
}

/* ---- versions ---- */

/* A new version at the end of the sequence; e may be NULL. */
static struct version *add_version(struct memtable *m, struct entry *e, size_t bytes)
{
    struct version *v = memtable_take(m, bytes);
    v->older = m->newest;
    v->newer = NULL;
    v->before = e ? e->now : m->trash;
    v->entry = e;
    v->mark = m->next++;
    *(m->newest ? &m->newest->newer : &m->oldest) = v;
    m->newest = v;
    return v;
}

#define VERSION_BYTES(member) (offsetof(struct version, member) + sizeof((struct version *)NULL)->member)

static struct slice keep_value(char *room, struct slice value)
{
    if (value.n)
        memcpy(room, value.p, value.n);
    return slice_of(room, value.n);
}

/* What an entry knows of the tables goes into the version that it shows. */
static void set_fresh(struct entry *e, struct version *v)
{
    if (e->kind == KIND_KEY)
        v->key.fresh = e->fresh;
    else if (e->kind < ITEM_TABLES)
        v->item.fresh = e->fresh;
}

void memtable_put_key(struct memtable *m, const struct key_row *row, bool fresh, int64_t ticket)
{
    uint32_t hash = hash_key(row->db, row->key);
    struct entry *e = find_key(m, row->db, row->key, hash);
    struct slice name;
    if (e) {
        name = e->now->key.row.key;
    } else {
        e = add_entry(m, KIND_KEY, &m->keys, hash, row->key.n);
        e->fresh = fresh;
        name = keep_name(e, row->key);
    }
    bool gone = row->type == ROW_NONE;
    struct slice value = gone ? SLICE("") : row->value;
    struct version *v = add_version(m, e, VERSION_BYTES(key) + value.n);
    struct key_row *k = &v->key.row;
    *k = *row;
    k->key = name;
    k->value = keep_value((char *)v + VERSION_BYTES(key), value);
    k->ticket = ticket;
    k->fresh = false; /* that is the entry's to know */
    if (gone)
        k->expire_at = EXPIRE_DELETED;
    set_fresh(e, v);
    set_state(m, e, v);
}

static struct version *change_item(struct memtable *m, const struct item_ref *ref, size_t value, bool fresh,
                                   int64_t ticket)
{
    uint32_t hash = hash_item(ref);
    struct entry *e = find_item(m, ref, hash);
    struct item_ref own = *ref;
    if (e) {
        own = e->now->item.row.ref;
    } else {
        size_t n = item_named(ref->table) ? ref->name.n : 0;
        e = add_entry(m, (uint8_t)ref->table, need_group(m, ref->table, ref->id), hash, n);
        e->fresh = fresh;
        own.name = keep_name(e, slice_of(ref->name.p, n));
    }
    struct version *v = add_version(m, e, VERSION_BYTES(item) + value);
    v->item = (struct mem_item){.row.ref = own, .ticket = ticket};
    set_fresh(e, v);
    return v;
}

void memtable_put_item(struct memtable *m, const struct item_row *row, bool fresh, int64_t ticket)
{
    struct version *v = change_item(m, &row->ref, row->value.n, fresh, ticket);
    struct item_row *i = &v->item.row;
    i->value = keep_value((char *)v + VERSION_BYTES(item), row->value);
    i->score = row->score;
    i->expire_at = row->expire_at;
    i->ord = row->ord;
    set_state(m, v->entry, v);
}

void memtable_del_item(struct memtable *m, const struct item_ref *ref, int64_t ticket)
{
    struct version *v = change_item(m, ref, 0, false, ticket);
    v->item.gone = true;
    set_state(m, v->entry, v);
}

void memtable_add_trash(struct memtable *m, const struct trash_row *t)
{
    struct version *v = add_version(m, NULL, VERSION_BYTES(trash));
    v->trash = *t;
    m->trash = v;
    m->ntrash++;
}

static struct version *change_extra(struct memtable *m, uint8_t kind, uint32_t db, size_t bytes)
{
    struct entry *e = find_extra(m, kind, db);
    return add_version(m, e ? e : add_entry(m, kind, &m->extra, hash_extra(kind, db), 0), bytes);
}

void memtable_put_db(struct memtable *m, const struct db_row *d)
{
    struct version *v = change_extra(m, KIND_DB, d->db, VERSION_BYTES(db));
    v->db = *d;
    set_state(m, v->entry, v);
}

void memtable_put_next_id(struct memtable *m, int64_t next_id)
{
    struct version *v = change_extra(m, KIND_NEXT_ID, 0, VERSION_BYTES(next_id));
    v->next_id = next_id;
    set_state(m, v->entry, v);
}

/* ---- undoing, and settling ---- */

mem_mark memtable_mark(const struct memtable *m)
{
    return m->next;
}

/* Nothing is left: the memory of what has been is used again. */
static void when_empty(struct memtable *m)
{
    if (m->nrows || m->extra.count || m->ntrash)
        return;
    assert(!m->first_group && !m->oldest);
    m->keys = (struct group){.count = 0};
    m->trash = NULL;
    memset(m->spare, 0, sizeof m->spare);
    memtable_drop_blocks(m, m->spare_blocks ? 0 : 1);
}

static void undo(struct memtable *m, const struct version *v)
{
    struct entry *e = v->entry;
    if (!e) {
        m->trash = v->before;
        m->ntrash--;
    } else if (v->before && v->before->mark >= m->left) {
        set_fresh(e, v->before);
        set_state(m, e, v->before);
    } else {
        drop_entry(m, e);
    }
}

void memtable_undo(struct memtable *m, mem_mark since)
{
    assert(since >= m->settled);
    while (m->newest && m->newest->mark >= since) {
        struct version *v = m->newest;
        m->newest = v->older;
        *(v->older ? &v->older->newer : &m->oldest) = NULL;
        undo(m, v);
    }
    when_empty(m);
}

void memtable_settle(struct memtable *m, mem_mark before)
{
    if (before > m->settled)
        m->settled = before;
}

void memtable_leave(struct memtable *m, mem_mark from, mem_mark to)
{
    (void)from;
    struct version *v = m->oldest;
    for (; v && v->mark < to; v = v->newer) {
        struct entry *e = v->entry;
        assert(v->mark >= from);
        if (!e) {
            m->ntrash--;
        } else if (e->now == v) {
            drop_entry(m, e);
        } else {
            /* Changed since: the tables have an older state. */
            e->fresh = false;
            set_fresh(e, e->now);
        }
    }
    m->oldest = v;
    *(v ? &v->older : &m->newest) = NULL;
    m->left = to;
    memtable_settle(m, to);
    when_empty(m);
}

/* ---- the table ---- */

static void reserve(struct map *map, size_t likely)
{
    map_reserve(map, likely < MOST_RESERVED ? likely : MOST_RESERVED);
}

struct memtable *memtable_new(size_t likely_rows)
{
    struct memtable *m = mem_zalloc(sizeof *m);
    reserve(&m->rows, likely_rows);
    return m;
}

/* Buckets that are far too many would have to be cleared each time. */
static void renew_map(struct map *map, size_t likely)
{
    if (map_buckets(map) <= likely * 4) {
        map_clear(map);
        return;
    }
    map_release(map);
    reserve(map, likely);
}

struct memtable *memtable_renew(struct memtable *m, size_t likely_rows)
{
    if (!m)
        return memtable_new(likely_rows);
    size_t ngroups = m->groups.count;
    memtable_drop_spare(m, MOST_DROPPED); /* the last round did without them */
    memtable_drop_blocks(m, SIZE_MAX);
    renew_map(&m->rows, likely_rows);
    renew_map(&m->groups, ngroups);
    *m = (struct memtable){
        .rows = m->rows,
        .groups = m->groups,
        .spare_blocks = m->spare_blocks,
        .spare_bytes = m->spare_bytes,
    };
    return m;
}

void memtable_free(struct memtable *m)
{
    if (!m)
        return;
    memtable_drop_blocks(m, 0);
    memtable_drop_spare(m, SIZE_MAX);
    map_release(&m->rows);
    map_release(&m->groups);
    mem_free(m);
}

struct memtable_stats memtable_stats(const struct memtable *m)
{
    return (struct memtable_stats){
        .rows = m->nrows,
        .empty = m->nrows == 0 && m->ntrash == 0 && m->extra.count == 0,
        .bytes = sizeof *m + m->block_bytes + m->rows.bytes + m->groups.bytes,
        .spare = m->spare_bytes,
        .peak = m->peak,
    };
}

const struct mem_key *memtable_key(const struct memtable *m, uint32_t db, struct slice key)
{
    const struct entry *e = m->keys.count ? find_key(m, db, key, hash_key(db, key)) : NULL;
    return e ? &e->now->key : NULL;
}

const struct mem_item *memtable_item(const struct memtable *m, const struct item_ref *ref)
{
    const struct entry *e = m->groups.count ? find_item(m, ref, hash_item(ref)) : NULL;
    return e ? &e->now->item : NULL;
}

bool memtable_has_items(const struct memtable *m, enum item_table table, int64_t id)
{
    return memtable_group(m, table, id) != NULL;
}

bool memtable_has_keys(const struct memtable *m)
{
    return m->keys.count > 0;
}

size_t memtable_count_items(const struct memtable *m, enum item_table table, int64_t id)
{
    const struct group *g = memtable_group(m, table, id);
    return g ? g->count : 0;
}

size_t memtable_count_keys(const struct memtable *m)
{
    return m->keys.count;
}

const struct db_row *memtable_db(const struct memtable *m, uint32_t db)
{
    const struct entry *e = find_extra(m, KIND_DB, db);
    return e ? &e->now->db : NULL;
}

int64_t memtable_next_id(const struct memtable *m)
{
    const struct entry *e = find_extra(m, KIND_NEXT_ID, 0);
    return e ? e->now->next_id : 0;
}
