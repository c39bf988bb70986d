/* Tables by their keys' rows, decoded. Everything here is a disposable copy of what the rows say. */
#include "table/catalog.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "table/check.h"
#include "table/names.h"
#include "table/rows_internal.h"

#define KEPT_TABLES 1024 /* decoded ones that the running call does not use */

/* A decoded table, found by its id. Its call is the last one that asked for it: until that is over, a handler
   may have it in its hands. */
struct known {
    struct map_link link;
    struct known *next; /* of those that are out of the map */
    uint64_t call;
    struct table table;
    struct slice json;     /* that it was decoded from */
    struct checks *checks; /* compiled when a row is first checked */
    struct arena arena;
};

struct catalog *catalog_new(void)
{
    return mem_zalloc(sizeof(struct catalog));
}

static void known_free(struct catalog *c, struct known *k)
{
    c->bytes -= sizeof *k + 2 * k->json.n;
    checks_free(k->checks);
    arena_release(&k->arena);
    mem_free(k);
}

static void free_link(void *arg, struct map_link *l)
{
    known_free(arg, (struct known *)l);
}

/* Frees what was taken out of the map, but for what this call may use. */
static void free_old(struct catalog *c, const uint64_t *call)
{
    struct known **at = &c->old;
    while (*at) {
        struct known *k = *at;
        if (call && k->call == *call) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        known_free(c, k);
    }
}

void catalog_free(struct catalog *c)
{
    if (!c)
        return;
    free_old(c, NULL);
    map_each(&c->by_id, free_link, c);
    map_release(&c->by_id);
    buf_release(&c->name);
    buf_release(&c->value);
    mem_free(c);
}

size_t catalog_bytes(const struct catalog *c)
{
    return c ? sizeof *c + c->bytes + c->by_id.bytes + c->name.cap + c->value.cap : 0;
}

static uint32_t hash_of(int64_t id)
{
    return (uint32_t)((uint64_t)id * 0x9E3779B97F4A7C15u >> 32);
}

static struct known *find(const struct catalog *c, int64_t id)
{
    uint32_t hash = hash_of(id);
    for (struct map_link *l = map_first(&c->by_id, hash); l; l = l->next)
        if (l->hash == hash && ((struct known *)l)->table.id == id)
            return (struct known *)l;
    return NULL;
}

static void put_aside(struct catalog *c, struct known *k)
{
    map_remove(&c->by_id, &k->link);
    k->next = c->old;
    c->old = k;
}

struct asides {
    struct catalog *c;
    uint64_t call;
    struct known **at;
    size_t n, cap;
};

static void note_aside(void *arg, struct map_link *l)
{
    struct asides *a = arg;
    struct known *k = (struct known *)l;
    if (k->call != a->call)
        VEC_PUSH(a->at, a->n, a->cap) = k;
}

/* There are many: all that nobody uses now go. */
static void make_room(struct catalog *c, uint64_t call)
{
    struct asides a = {.c = c, .call = call};
    map_each(&c->by_id, note_aside, &a);
    for (size_t i = 0; i < a.n; i++)
        put_aside(c, a.at[i]);
    mem_free(a.at);
    free_old(c, &call);
}

static enum status decode(struct catalog *c, const struct row *r, uint64_t call, struct known **ret,
                          struct error *err)
{
    struct known *k = mem_zalloc(sizeof *k);
    k->json = arena_copy(&k->arena, row_value(r));
    c->bytes += sizeof *k + 2 * k->json.n;
    enum status st = schema_decode(k->json, &k->arena, &k->table.schema, err);
    if (st != ST_OK) {
        known_free(c, k);
        return st;
    }
    if (c->by_id.count >= KEPT_TABLES)
        make_room(c, call);
    k->table.id = row_items(r).id;
    k->link.hash = hash_of(k->table.id);
    map_add(&c->by_id, &k->link);
    *ret = k;
    return ST_OK;
}

/* Whether what is known is what the row says. A handler that has the table in its hands keeps it as it was:
   what changed in the midst of a call is decoded anew, even if it is only the name. */
static bool current(const struct known *k, const struct row *r, uint32_t db, uint64_t call)
{
    const struct table *t = &k->table;
    bool moved = t->version != r->version || t->db != db || !slice_eq(t->name, row_key(r));
    return !(moved && k->call == call) && slice_eq(k->json, row_value(r));
}

/* RENAME and MOVE leave the id and the schema. */
static void set_place(struct known *k, const struct row *r, uint32_t db)
{
    if (!slice_eq(k->table.name, row_key(r)))
        k->table.name = arena_copy(&k->arena, row_key(r));
    k->table.db = db;
    k->table.version = r->version;
    k->table.expire_at = r->expire_at;
}

enum status table_open(struct catalog *c, struct view *v, uint32_t db, struct slice name,
                       const struct table **ret, struct fault *fault)
{
    const struct row *r;
    enum status st = view_get(v, db, name, &r);
    *ret = NULL;
    if (st != ST_OK)
        return st;
    if (!r || r->type != ROW_TABLE) {
        if (!r)
            fault_set(fault, FAULT_NO_TABLE, "no such table");
        else
            fault_set(fault, FAULT_WRONG_TYPE, "Operation against a key holding the wrong kind of value");
        return ST_OK;
    }
    uint64_t call = view_call(v);
    if (c->old)
        free_old(c, &call);
    struct known *k = find(c, row_items(r).id);
    if (k && !current(k, r, db, call)) {
        put_aside(c, k);
        k = NULL;
    }
    if (!k && (st = decode(c, r, call, &k, view_error(v))) != ST_OK)
        return st;
    k->call = call;
    set_place(k, r, db);
    *ret = &k->table;
    return ST_OK;
}

bool table_check(const struct table *t, const struct value *values, struct fault *fault)
{
    if (t->schema.nchecks == 0)
        return true;
    struct known *k = (struct known *)((uintptr_t)t - offsetof(struct known, table));
    if (!k->checks)
        k->checks = checks_new(&k->table.schema, fault);
    return k->checks && checks_run(k->checks, values, fault);
}

/* ---- names ---- */

struct names {
    struct arena arena;
    struct slice *at;
    size_t n, cap;
};

static enum status note_name(void *arg, struct slice key, const struct key_row *row)
{
    struct names *names = arg;
    (void)row;
    VEC_PUSH(names->at, names->n, names->cap) = arena_copy(&names->arena, key);
    return ST_OK;
}

/* fn may use the view, so the names are gathered first. */
enum status table_each(struct catalog *c, struct view *v, uint32_t db, table_name_fn *fn, void *arg)
{
    struct names names = {.n = 0};
    (void)c;
    enum status st = view_each_table(v, db, note_name, &names);
    for (size_t i = 0; st == ST_OK && i < names.n; i++)
        st = fn(arg, names.at[i]);
    mem_free(names.at);
    arena_release(&names.arena);
    return status_of_walk(st);
}

/* ---- making and changing ---- */

/* The schema as it is kept; p is NULL: it is too long. */
static struct slice encoded(struct view *v, const struct schema *s, struct fault *fault)
{
    struct buf json = {0};
    struct slice kept = {NULL, 0};
    schema_encode(s, &json);
    if (json.len > SCHEMA_BYTES_MAX)
        fault_set(fault, FAULT_TOO_LONG, "the table's description has %zu bytes, more than %d", json.len,
                  SCHEMA_BYTES_MAX);
    else
        kept = arena_copy(view_arena(v), buf_slice(&json));
    buf_release(&json);
    return kept;
}

enum status table_create(struct view *v, uint32_t db, struct slice name, const struct schema *s,
                         struct fault *fault)
{
    struct row_draft d = {.type = ROW_TABLE};
    const struct row *r;
    enum status st = view_get(v, db, name, &r);
    if (st != ST_OK)
        return st;
    if (r && r->type != ROW_TABLE)
        fault_set(fault, FAULT_WRONG_TYPE, "Operation against a key holding the wrong kind of value");
    else if (r)
        fault_set(fault, FAULT_EXISTS, "there is a table %.*s", FAULT_CUT(name));
    else
        st = table_name_check(v, db, name, name, fault);
    if (st != ST_OK || fault->kind)
        return st;
    d.value = encoded(v, s, fault);
    if (!d.value.p)
        return ST_OK;
    if ((st = view_new_id(v, &d.id)) != ST_OK)
        return st;
    return view_put(v, db, name, &d);
}

enum status table_change(struct view *v, const struct table *t, const struct schema *s, struct fault *fault)
{
    struct row_draft d = {
        .type = ROW_TABLE, .value = encoded(v, s, fault), .id = t->id, .expire_at = t->expire_at};
    return d.value.p ? view_put(v, t->db, t->name, &d) : ST_OK;
}
