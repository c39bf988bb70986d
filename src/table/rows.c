/* Reading rows, and what a put, an update, a deletion come to; rows_write.c has the entries. */
#include "table/rows.h"

#include <math.h>

#include "base/buf.h"
#include "table/hashes/hashes.h"
#include "table/rows_internal.h"

/* ---- reading ---- */

static struct item_ref row_ref(const struct rows *r, struct slice name)
{
    return (struct item_ref){.table = ITEM_ROW, .id = r->table->id, .name = name};
}

static bool lives(const struct rows *r, int64_t expire_at)
{
    return expire_at == EXPIRE_NEVER || expire_at > view_now(r->view);
}

static enum status decode(const struct rows *r, const struct item_row *item, struct table_row *ret)
{
    return rowcode_decode(&r->table->schema, item->ref.name, item->value, item->expire_at, r->arena, ret,
                          view_error(r->view));
}

static bool on_hashes(const struct rows *r)
{
    return r->table->schema.on_hashes;
}

enum status rows_take(struct rows *r, struct slice name, bool found, const struct item_row *item,
                      struct stored *ret)
{
    *ret = (struct stored){.name = name, .found = found};
    if (!found)
        return ST_OK;
    ret->live = lives(r, item->expire_at);
    return decode(r, item, &ret->row);
}

enum status rows_read(struct rows *r, struct slice name, struct stored *ret)
{
    struct item_ref ref = row_ref(r, name);
    struct item_row item;
    enum status st;
    if (on_hashes(r)) {
        *ret = (struct stored){.name = name};
        st = hashes_get_many(r, &name, 1, &ret->row);
        ret->found = ret->live = st == ST_OK && ret->row.values;
        return st;
    }
    bool found;
    st = view_item(r->view, &ref, &found, &item);
    return st == ST_OK ? rows_take(r, name, found, &item, ret) : st;
}

enum status rows_find(struct rows *r, struct slice name, bool *ret_found, struct item_row *ret)
{
    struct item_ref ref = row_ref(r, name);
    if (on_hashes(r))
        return hashes_item(r, name, ret_found, ret);
    enum status st = view_item(r->view, &ref, ret_found, ret);
    *ret_found = st == ST_OK && *ret_found && lives(r, ret->expire_at);
    return st;
}

enum status rows_get(struct rows *r, struct slice name, bool *ret_found, struct table_row *ret)
{
    struct item_row item;
    enum status st;
    if (on_hashes(r)) {
        st = hashes_get_many(r, &name, 1, ret);
        *ret_found = st == ST_OK && ret->values;
        return st;
    }
    st = rows_find(r, name, ret_found, &item);
    return st == ST_OK && *ret_found ? decode(r, &item, ret) : st;
}

enum status rows_scan(struct rows *r, const struct item_scan *q, store_item_fn *fn, void *arg)
{
    return on_hashes(r) ? hashes_scan(r, q, NULL, fn, arg) : view_scan_items(r->view, q, fn, arg);
}

enum status rows_get_many(struct rows *r, const struct slice *names, size_t n, struct table_row *ret)
{
    if (on_hashes(r))
        return hashes_get_many(r, names, n, ret);
    struct item_ref *refs = arena_alloc(r->arena, (n + 1) * sizeof *refs);
    struct item_row *items = arena_alloc(r->arena, (n + 1) * sizeof *items);
    bool *found = arena_alloc(r->arena, n + 1);
    for (size_t i = 0; i < n; i++)
        refs[i] = row_ref(r, names[i]);
    enum status st = view_get_items(r->view, refs, n, found, items);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        ret[i] = (struct table_row){0};
        if (found[i] && lives(r, items[i].expire_at))
            st = decode(r, &items[i], &ret[i]);
    }
    return st;
}

/* ---- what a row must be ---- */

bool rows_check(struct rows *r, const struct value *values, struct fault *fault)
{
    const struct schema *s = &r->table->schema;
    for (size_t i = 0; i < s->ncolumns; i++)
        if (s->columns[i].not_null && values[i].kind == VALUE_NULL)
            return fault_set(fault, FAULT_CONSTRAINT, "%.*s is NOT NULL", (int)s->columns[i].name.n,
                             s->columns[i].name.p);
    return table_check(r->table, values, fault);
}

int64_t rows_next_version(struct rows *r, const struct stored *old)
{
    struct catalog *c = r->catalog;
    int64_t version = view_now_us(r->view);
    if (version <= c->version)
        version = c->version + 1;
    if (old && old->found && version <= old->row.version)
        version = old->row.version + 1;
    c->version = version;
    return version;
}

bool rows_name(const struct rows *r, const struct value *values, struct slice *ret, struct fault *fault)
{
    struct buf *b = &r->catalog->name;
    b->len = 0;
    if (!rowcode_name(&r->table->schema, values, b, fault))
        return false;
    *ret = arena_copy(r->arena, buf_slice(b));
    return true;
}

static bool condition_holds(const struct stored *s, enum row_condition condition, int64_t version)
{
    switch (condition) {
    case ROW_IF_NEW:
        return !s->live;
    case ROW_IF_THERE:
        return s->live;
    case ROW_IF_VERSION:
        return s->live && s->row.version == version;
    case ROW_ALWAYS:
        break;
    }
    return true;
}

/* ---- put ---- */

enum status rows_put(struct rows *r, const struct row_write *w, enum row_outcome *ret, int64_t *ret_version,
                     struct fault *fault)
{
    const struct schema *s = &r->table->schema;
    struct value *values = arena_alloc(r->arena, (s->ncolumns + 1) * sizeof *values);
    struct row_change change = {.row.values = values};
    struct prepared p;
    for (size_t i = 0; i < s->ncolumns; i++)
        values[i] = w->given[i] ? w->values[i] : s->columns[i].default_value;
    if (!rows_check(r, values, fault) || !rows_name(r, values, &change.name, fault))
        return ST_OK;
    enum status st = rows_prepare(r, values, change.name, &p, fault);
    if (st != ST_OK || fault->kind)
        return st;
    *ret = p.old.live ? ROW_REPLACED : ROW_NEW;
    if (!condition_holds(&p.old, w->condition, w->version)) {
        *ret = ROW_NOT_MET;
        return ST_OK;
    }
    change.old = &p.old;
    change.prepared = &p;
    change.row.version = rows_next_version(r, &p.old);
    change.row.expire_at = !w->keep_expiry ? w->expire_at : p.old.live ? p.old.row.expire_at : EXPIRE_NEVER;
    if ((st = rows_write(r, &change, fault)) != ST_OK || fault->kind)
        return st;
    if (s->on_hashes)
        st = hashes_version(r, change.name, &change.row.version);
    if (ret_version)
        *ret_version = change.row.version;
    return st;
}

/* ---- update ---- */

/* The number that is there and what is added to it; NULL counts as 0. */
static bool increased(const struct column *c, const struct value *old, const struct value *by,
                      struct value *ret, struct fault *fault)
{
    int width = (int)c->name.n;
    const char *name = c->name.p;
    if (c->type == COLUMN_INTEGER || c->type == COLUMN_TIMESTAMP) {
        *ret = (struct value){.kind = VALUE_INT};
        if (__builtin_add_overflow(old->kind == VALUE_NULL ? 0 : old->i, by->i, &ret->i) ||
            (c->type == COLUMN_TIMESTAMP && (ret->i < TIMESTAMP_MIN || ret->i > TIMESTAMP_MAX)))
            return fault_set(fault, FAULT_BAD_TYPE, "%.*s would be out of range: INCR overflows", width,
                             name);
        return true;
    }
    if (c->type != COLUMN_REAL)
        return fault_set(fault, FAULT_BAD_TYPE, "%.*s is %s, which INCR cannot add to", width, name,
                         column_type_name(c->type));
    *ret = (struct value){.kind = VALUE_REAL, .d = (old->kind == VALUE_NULL ? 0 : old->d) + by->d};
    return isfinite(ret->d) ||
           fault_set(fault, FAULT_BAD_TYPE, "%.*s would be infinite: INCR overflows", width, name);
}

static bool merge(const struct schema *s, const struct value *old, const struct row_write *w,
                  struct value *ret, struct fault *fault)
{
    for (size_t i = 0; i < s->ncolumns; i++) {
        ret[i] = w->given[i] ? w->values[i] : old[i];
        if (w->given[i] && w->increase && w->increase[i] &&
            !increased(&s->columns[i], &old[i], &w->values[i], &ret[i], fault))
            return false;
    }
    return true;
}

/* The name that a changed row gets; when it is another one, what lies there must not be live. */
static enum status find_target(struct rows *r, struct row_change *c, struct stored *target,
                               struct fault *fault)
{
    if (!rows_name(r, c->row.values, &c->name, fault) || slice_eq(c->name, c->old->name))
        return ST_OK;
    enum status st = rows_read(r, c->name, target);
    if (st == ST_OK && target->live)
        rows_duplicate(r, NULL, c->row.values, fault);
    else if (st == ST_OK && target->found)
        c->target = target;
    return st;
}

enum status rows_update(struct rows *r, struct slice name, const struct row_write *w, enum row_outcome *ret,
                        struct table_row *ret_row, struct fault *fault)
{
    const struct schema *s = &r->table->schema;
    struct stored old, target;
    enum status st = rows_read(r, name, &old);
    if (st != ST_OK)
        return st;
    *ret = ROW_NOT_MET;
    if (!old.live || !condition_holds(&old, w->condition, w->version))
        return ST_OK;
    struct row_change change = {.old = &old};
    change.row.values = arena_alloc(r->arena, (s->ncolumns + 1) * sizeof *change.row.values);
    if (!merge(s, old.row.values, w, change.row.values, fault) || !rows_check(r, change.row.values, fault))
        return ST_OK;
    st = find_target(r, &change, &target, fault);
    if (st != ST_OK || fault->kind)
        return st;
    change.row.version = rows_next_version(r, &old);
    if (change.target && change.row.version <= target.row.version)
        change.row.version = rows_next_version(r, &target);
    change.row.expire_at = w->keep_expiry ? old.row.expire_at : w->expire_at;
    *ret = ROW_REPLACED;
    if ((st = rows_write(r, &change, fault)) != ST_OK || fault->kind)
        return st;
    if (s->on_hashes)
        st = hashes_version(r, change.name, &change.row.version);
    if (ret_row)
        *ret_row = change.row;
    return st;
}

/* ---- the others ---- */

enum status rows_delete(struct rows *r, struct slice name, enum row_condition condition, int64_t version,
                        enum row_outcome *ret)
{
    struct stored old;
    enum status st = rows_read(r, name, &old);
    *ret = ROW_NOT_MET;
    if (st != ST_OK || !old.live || !condition_holds(&old, condition, version))
        return st;
    *ret = ROW_REPLACED;
    return rows_remove(r, &old);
}

enum status rows_expire(struct rows *r, struct slice name, int64_t expire_at, enum row_outcome *ret)
{
    struct stored old;
    struct fault none = {.kind = FAULT_NONE};
    enum status st = rows_read(r, name, &old);
    *ret = ROW_NOT_MET;
    if (st != ST_OK || !old.live)
        return st;
    struct row_change change = {.old = &old, .name = name, .row = old.row};
    change.row.version = rows_next_version(r, &old);
    change.row.expire_at = expire_at;
    *ret = ROW_REPLACED;
    return rows_write(r, &change, &none);
}

/* ---- sweeping ---- */

struct expired_names {
    struct arena *arena;
    struct slice *at;
    uint32_t n;
};

static enum status note_expired(void *arg, const struct item_row *row)
{
    struct expired_names *e = arg;
    e->at[e->n++] = arena_copy(e->arena, row->ref.name);
    return ST_OK;
}

enum status rows_sweep(struct rows *r, uint32_t max, uint32_t *ret_removed)
{
    struct expired_names e = {.arena = r->arena, .at = arena_alloc(r->arena, max * sizeof *e.at)};
    struct item_scan q = {
        .table = ITEM_ROW,
        .id = r->table->id,
        .order = ITEMS_BY_EXPIRY,
        .has_max = true,
        .max = view_now(r->view),
        .limit = max,
    };
    *ret_removed = 0;
    enum status st = view_scan_items(r->view, &q, note_expired, &e);
    for (uint32_t i = 0; st == ST_OK && i < e.n; i++) {
        struct stored s;
        st = rows_read(r, e.at[i], &s);
        if (st == ST_OK && s.found && !s.live) {
            st = rows_remove(r, &s);
            ++*ret_removed;
        }
    }
    return st;
}
