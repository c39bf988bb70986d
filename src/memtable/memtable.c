/* The rows of a memtable: where they are, and how they change.

   A row is its newest state, found with one probe of one hash map. A change makes a new state, puts it in the
   place of the one before, and notes both (changes.c). Items also hang in a list of their group, from
   which orders are built; keys are found by going through the map. */
#include "memtable/memtable.h"

#include <assert.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "memtable/memtable_internal.h"
#include "store/order.h"

#define MOST_RESERVED ((size_t)1 << 22) /* buckets */
#define MOST_DROPPED  16                /* blocks given back at once that are not needed any more */
#define MOST_SAMPLE   64                /* bytes of a name that others are compared with */

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

struct group *memtable_need_group(struct memtable *m, enum item_table table, int64_t id)
{
    uint32_t hash = hash_group(table, id);
    struct group *g = find_group(m, table, id, hash);
    if (g)
        return g;
    g = memtable_take(m, sizeof *g);
    *g = (struct group){.link.hash = hash,
                        .first_era.group = g,
                        .era = &g->first_era,
                        .table = table,
                        .id = id,
                        .earlier = m->last_group};
    *(m->last_group ? &m->last_group->later : &m->first_group) = g;
    m->last_group = g;
    map_add(&m->groups, &g->link);
    if (id > m->max_id)
        m->max_id = id;
    return g;
}

void memtable_drop_empty(struct memtable *m, struct group *g)
{
    if (g->count || g->ranges || g->stale)
        return;
    map_remove(&m->groups, &g->link);
    *(g->earlier ? &g->earlier->later : &m->first_group) = g->later;
    *(g->later ? &g->later->earlier : &m->last_group) = g->earlier;
    orders_drop(m, g);
    memtable_drop_sums(m, g);
    if (g->sample)
        memtable_give(m, g->sample, MOST_SAMPLE);
    memtable_give(m, g, sizeof *g);
}

static void take_sample(struct memtable *m, struct group *g, struct slice name)
{
    g->sample = memtable_take(m, MOST_SAMPLE);
    g->common = (uint32_t)(name.n < MOST_SAMPLE ? name.n : MOST_SAMPLE);
    if (g->common)
        memcpy(g->sample, name.p, g->common);
}

/* What all names of a group begin with. One name alone needs no sample. */
static void note_name(struct memtable *m, struct group *g, struct slice name)
{
    if (!g->sample) {
        if (g != &m->keys && g->count == 0)
            return;
        take_sample(m, g, g == &m->keys ? name : state_name(&g->first->state));
    }
    if (g->common == 0 || (name.n >= g->common && memcmp(name.p, g->sample, g->common) == 0))
        return;
    uint32_t n = 0, most = name.n < g->common ? (uint32_t)name.n : g->common;
    while (n < most && name.p[n] == g->sample[n])
        n++;
    g->common = n;
}

/* ---- finding rows: where their link stands in its chain, NULL when they are not here ---- */

static uint32_t hash_key(uint32_t db, struct slice key)
{
    return (uint32_t)hash_bytes(key, db);
}

static uint32_t hash_item(const struct item_ref *r)
{
    uint64_t salt = (uint64_t)r->id * 8 + (uint64_t)r->table + ((uint64_t)1 << 40);
    return item_named(r->table) ? (uint32_t)hash_bytes(r->name, salt) : hash_place(r->pos, salt);
}

static uint32_t hash_extra(unsigned kind, uint32_t db)
{
    return (uint32_t)hash_bytes(slice_of(&db, sizeof db), ((uint64_t)1 << 41) + kind);
}

static struct map_link **chain(const struct memtable *m, uint32_t hash)
{
    static struct map_link *none;
    return m->rows.segments ? map_chain(&m->rows, hash) : &none;
}

static uint32_t bring_near(const struct memtable *m, uint32_t hash)
{
    __builtin_prefetch(chain(m, hash));
    return hash;
}

uint32_t memtable_near_key(const struct memtable *m, uint32_t db, struct slice key)
{
    return bring_near(m, hash_key(db, key));
}

uint32_t memtable_near_item(const struct memtable *m, const struct item_ref *ref)
{
    return bring_near(m, hash_item(ref));
}

void memtable_nearer(const struct memtable *m, uint32_t number)
{
    __builtin_prefetch(*chain(m, number));
}

static struct map_link **find_key(const struct memtable *m, uint32_t db, struct slice key, uint32_t hash)
{
    for (struct map_link **at = chain(m, hash); *at; at = &(*at)->next)
        if ((*at)->hash == hash && state_is_key((struct state *)*at, db, key))
            return at;
    return NULL;
}

static struct map_link **find_item(const struct memtable *m, const struct item_ref *ref, uint32_t hash)
{
    for (struct map_link **at = chain(m, hash); *at; at = &(*at)->next)
        if ((*at)->hash == hash && state_is_item((struct state *)*at, ref))
            return at;
    return NULL;
}

static struct map_link **find_extra(const struct memtable *m, unsigned kind, uint32_t db)
{
    uint32_t hash = hash_extra(kind, db);
    for (struct map_link **at = chain(m, hash); *at; at = &(*at)->next)
        if ((*at)->hash == hash && state_kind((struct state *)*at) == kind &&
            (kind == KIND_NEXT_ID || ((struct member_db *)*at)->row.db == db))
            return at;
    return NULL;
}

/* ---- what stands there ---- */

static struct group *group_of(struct memtable *m, const struct state *s)
{
    return state_kind(s) == KIND_KEY ? &m->keys : member_group(s);
}

/* Which partial orders have a state: adds n (1 or -1) to their counts. */
static void count_state(struct memtable *m, struct group *g, const struct state *s, size_t n)
{
    g->expiring += s->link.tag & TAG_EXPIRES ? n : 0;
    if (g == &m->keys && state_type(s) != ROW_STRING) {
        m->due += state_is_due(s) ? n : 0;
        m->tables += state_type(s) == ROW_TABLE ? n : 0;
    }
}

/* The state of a row of a group is another one now, or there is none before or behind. */
static void note_change(struct memtable *m, struct group *g, const struct state *from, const struct state *to)
{
    if (from)
        count_state(m, g, from, (size_t)-1);
    if (to)
        count_state(m, g, to, 1);
    if (g->orders)
        orders_change(m, g, from, to);
}

/* A member takes the place of another one in the list of their group, or the last one, or leaves it. */
static void link_member(struct member *from, struct member *to)
{
    struct group *g = (to ? to : from)->era->group;
    struct member *earlier = from ? from->earlier : g->last, *later = from ? from->later : NULL;
    if (to) {
        to->earlier = earlier;
        to->later = later;
    }
    *(earlier ? &earlier->later : &g->first) = to ? to : later;
    *(later ? &later->earlier : &g->last) = to ? to : earlier;
}

static void replace_at(struct memtable *m, struct map_link **at, struct state *to)
{
    struct state *from = (struct state *)*at;
    to->link.next = from->link.next;
    *at = &to->link;
    struct group *g = group_of(m, to);
    if (g != &m->keys)
        link_member((struct member *)from, (struct member *)to);
    note_change(m, g, from, to);
}

void memtable_replace(struct memtable *m, struct state *from, struct state *to)
{
    struct map_link **at = map_chain(&m->rows, from->link.hash);
    while (*at != &from->link)
        at = &(*at)->next;
    replace_at(m, at, to);
}

static void add(struct memtable *m, struct state *s)
{
    struct group *g = group_of(m, s);
    map_add(&m->rows, &s->link);
    if (g != &m->keys)
        link_member(NULL, (struct member *)s);
    g->count++;
    m->nrows += g != &m->extra;
    if (m->nrows > m->peak)
        m->peak = m->nrows;
    note_change(m, g, NULL, s);
}

void memtable_drop(struct memtable *m, struct state *s)
{
    struct group *g = group_of(m, s);
    note_change(m, g, s, NULL);
    map_remove(&m->rows, &s->link);
    if (g != &m->keys)
        link_member((struct member *)s, NULL);
    g->count--;
    m->nrows -= g != &m->extra;
    if (g->count == 0 && state_kind(s) < ITEM_TABLES)
        memtable_drop_empty(m, g);
}

/* ---- changing ---- */

/* A row, which stands at a place or nowhere yet, becomes this. */
static void change(struct memtable *m, struct map_link **at, struct state *s, bool fresh)
{
    struct state *before = at ? (struct state *)*at : NULL;
    VEC_PUSH(m->changes, m->nchanges, m->cap_changes) = (struct change){m->next++, s, before};
    s->link.tag |= before ? before->link.tag & TAG_FRESH : fresh ? TAG_FRESH : 0;
    if (before)
        replace_at(m, at, s);
    else
        add(m, s);
}

void memtable_put_key(struct memtable *m, const struct key_row *row, bool fresh, int64_t ticket)
{
    uint32_t hash = hash_key(row->db, row->key);
    struct map_link **at = find_key(m, row->db, row->key, hash);
    if (!at) {
        note_name(m, &m->keys, row->key);
        if (m->keys.count == 0)
            m->key_db = row->db;
        m->many_dbs |= row->db != m->key_db;
    }
    change(m, at, state_of_key(m, row, hash, ticket), fresh);
}

static void change_item(struct memtable *m, const struct item_row *row, bool gone, bool fresh, int64_t ticket)
{
    uint32_t hash = hash_item(&row->ref);
    struct map_link **at = find_item(m, &row->ref, hash);
    struct group *g =
        at ? member_group((struct state *)*at) : memtable_need_group(m, row->ref.table, row->ref.id);
    if (!at && item_named(g->table))
        note_name(m, g, row->ref.name);
    change(m, at, state_of_item(m, g, row, gone, hash, ticket), fresh);
}

void memtable_put_item(struct memtable *m, const struct item_row *row, bool fresh, int64_t ticket)
{
    change_item(m, row, false, fresh, ticket);
}

void memtable_del_item(struct memtable *m, const struct item_ref *ref, int64_t ticket)
{
    struct item_row row = {.ref = *ref};
    change_item(m, &row, true, false, ticket);
}

void memtable_add_trash(struct memtable *m, const struct trash_row *t)
{
    VEC_PUSH(m->changes, m->nchanges, m->cap_changes) = (struct change){.mark = m->next};
    VEC_PUSH(m->trash, m->ntrash, m->cap_trash) = (struct trash){*t, m->next++};
}

static void change_extra(struct memtable *m, unsigned kind, uint32_t db, struct member *x)
{
    m->extra.era = &m->extra.first_era;
    m->extra.first_era.group = &m->extra;
    x->era = m->extra.era;
    x->state.link = (struct map_link){.hash = hash_extra(kind, db), .tag = kind};
    change(m, find_extra(m, kind, db), &x->state, false);
}

void memtable_put_db(struct memtable *m, const struct db_row *d)
{
    struct member_db *x = memtable_take(m, sizeof *x);
    x->row = *d;
    change_extra(m, KIND_DB, d->db, &x->member);
}

void memtable_put_next_id(struct memtable *m, int64_t next_id)
{
    struct member_next_id *x = memtable_take(m, sizeof *x);
    x->next_id = next_id;
    change_extra(m, KIND_NEXT_ID, 0, &x->member);
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
    mem_free(m->changes);
    mem_free(m->trash);
    *m = (struct memtable){
        .rows = m->rows,
        .groups = m->groups,
        .spare_blocks = m->spare_blocks,
        .spare_bytes = m->spare_bytes,
    };
    return m;
}

void memtable_trim(struct memtable *m)
{
    memtable_drop_spare(m, SIZE_MAX);
}

void memtable_free(struct memtable *m)
{
    if (!m)
        return;
    memtable_drop_blocks(m, 0);
    memtable_drop_spare(m, SIZE_MAX);
    map_release(&m->rows);
    map_release(&m->groups);
    mem_free(m->changes);
    mem_free(m->trash);
    mem_free(m);
}

struct memtable_stats memtable_stats(const struct memtable *m)
{
    return (struct memtable_stats){
        .rows = m->nrows,
        .empty = m->nrows == 0 && m->nranges == 0 && m->ntrash == 0 && m->extra.count == 0,
        .bytes = sizeof *m + m->block_bytes + m->rows.bytes + m->groups.bytes +
                 m->cap_changes * sizeof *m->changes + m->cap_trash * sizeof *m->trash,
        .spare = m->spare_bytes,
        .peak = m->peak,
    };
}

static const struct state *key_state(const struct memtable *m, uint32_t db, struct slice key)
{
    struct map_link **at = m->keys.count ? find_key(m, db, key, hash_key(db, key)) : NULL;
    return at ? (const struct state *)*at : NULL;
}

static const struct state *item_state(const struct memtable *m, const struct item_ref *ref)
{
    struct map_link **at = m->groups.count ? find_item(m, ref, hash_item(ref)) : NULL;
    return at ? (const struct state *)*at : NULL;
}

struct state *memtable_state(const struct memtable *m, const struct item_ref *ref)
{
    struct map_link **at = find_item(m, ref, hash_item(ref));
    return at ? (struct state *)*at : NULL;
}

bool memtable_has_key(const struct memtable *m, uint32_t db, struct slice key)
{
    return key_state(m, db, key) != NULL;
}

bool memtable_has_item(const struct memtable *m, const struct item_ref *ref)
{
    return item_state(m, ref) != NULL;
}

bool memtable_key(const struct memtable *m, uint32_t db, struct slice key, struct mem_key *ret)
{
    const struct state *s = key_state(m, db, key);
    if (s)
        state_key(m, s, ret);
    return s != NULL;
}

bool memtable_item(const struct memtable *m, const struct item_ref *ref, struct mem_item *ret)
{
    const struct state *s = item_state(m, ref);
    if (s)
        state_item(m, s, ret);
    return s != NULL;
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
    struct map_link **at = find_extra(m, KIND_DB, db);
    return at ? &((const struct member_db *)*at)->row : NULL;
}

int64_t memtable_next_id(const struct memtable *m)
{
    struct map_link **at = find_extra(m, KIND_NEXT_ID, 0);
    return at ? ((const struct member_next_id *)*at)->next_id : 0;
}
