/* Rows of tables over hashes: reading them, and what writing one does to its hash.

   A row is read from the key's row and the fields that are columns; other fields are not looked at. Where
   reads are round trips, the keys of many rows come with one, their fields with another. A write is what
   HSET, HDEL, DEL, RENAME and EXPIRE do, one after the other within the call: entries follow as for those. */
#include <assert.h>

#include "table/hashes/hashes_internal.h"

#define READ_AT_ONCE 64 /* hashes whose fields are asked for together */

enum status hashes_key_of(const struct rows *r, struct slice name, struct slice *ret)
{
    struct slice prefix = r->table->schema.prefix;
    struct value key;
    *ret = (struct slice){NULL, 0};
    if (!keycode_take(&name, false, r->arena, &key) || key.kind != VALUE_TEXT || name.n)
        return error_set(view_error(r->view), ST_INTERNAL, "a row over hashes has another name");
    char *p = arena_alloc(r->arena, prefix.n + key.s.n + 1);
    memcpy(p, prefix.p, prefix.n);
    memcpy(p + prefix.n, key.s.p, key.s.n);
    *ret = slice_of(p, prefix.n + key.s.n);
    return ST_OK;
}

/* ---- reading ---- */

/* A row that is being read: its key and, when there is a hash, what the key's row says. */
struct reading {
    struct slice key;
    bool found;
    int64_t id, version, expire_at;
};

static enum status read_key(struct rows *r, struct slice name, struct reading *ret)
{
    const struct row *row;
    struct value key;
    *ret = (struct reading){.found = false};
    enum status st = hashes_key_of(r, name, &ret->key);
    if (st != ST_OK || !hashes_key_value(r->table->schema.prefix, ret->key, &key))
        return st;
    st = view_get(r->view, r->table->db, ret->key, &row);
    if (st != ST_OK || !row || row->type != ROW_HASH)
        return st;
    ret->found = true;
    ret->id = row_items(row).id;
    ret->expire_at = row->expire_at;
    return view_version(r->view, r->table->db, ret->key, &ret->version);
}

static struct table_row make_row(struct rows *r, const struct reading *k)
{
    const struct schema *s = &r->table->schema;
    struct table_row row = {.version = k->version, .expire_at = k->expire_at};
    row.values = arena_alloc(r->arena, s->ncolumns * sizeof *row.values);
    memset(row.values, 0, s->ncolumns * sizeof *row.values);
    bool ok = hashes_key_value(s->prefix, k->key, &row.values[s->key[0].column]);
    assert(ok);
    (void)ok;
    return row;
}

static void set_column(struct rows *r, struct table_row *row, size_t column, struct slice text,
                       struct hash_list *list)
{
    const struct schema *s = &r->table->schema;
    bool ok = hashes_value(&s->columns[column], arena_copy(r->arena, text), r->arena, &row->values[column]);
    if (!ok && list)
        hash_list_field(r, list, &row->values[s->key[0].column], s->columns[column].id);
}

/* From memory, or by a scan of the hash. */
static enum status read_near(struct rows *r, const struct reading *k, struct hash_list *list,
                             struct table_row *ret)
{
    const struct schema *s = &r->table->schema;
    struct coll *c;
    bool wrong, found;
    *ret = make_row(r, k);
    enum status st = coll_open(r->view, r->table->db, k->key, ROW_HASH, &c, &wrong);
    for (size_t i = 0; st == ST_OK && c && i < s->ncolumns; i++) {
        struct coll_item item;
        if (i == s->key[0].column)
            continue;
        if (list)
            st = coll_field_now(c, s->columns[i].name, &found, &item.value);
        else
            st = coll_find(c, s->columns[i].name, &found, &item);
        if (st == ST_OK && found)
            set_column(r, ret, i, item.value, list);
    }
    return st;
}

/* The fields of several hashes in one round trip. */
static enum status read_far(struct rows *r, const struct reading *k, size_t n, struct hash_list *list,
                            struct table_row *ret)
{
    const struct schema *s = &r->table->schema;
    struct item_ref *refs = arena_alloc(r->arena, (n * s->ncolumns + 1) * sizeof *refs);
    struct item_row *items = arena_alloc(r->arena, (n * s->ncolumns + 1) * sizeof *items);
    bool *found = arena_alloc(r->arena, n * s->ncolumns + 1);
    size_t nrefs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; k[i].found && c < s->ncolumns; c++)
            if (c != s->key[0].column)
                refs[nrefs++] =
                    (struct item_ref){.table = ITEM_HASH, .id = k[i].id, .name = s->columns[c].name};
    enum status st = nrefs ? view_get_items(r->view, refs, nrefs, found, items) : ST_OK;
    nrefs = 0;
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        if (!k[i].found)
            continue;
        ret[i] = make_row(r, &k[i]);
        for (size_t c = 0; c < s->ncolumns; c++) {
            if (c == s->key[0].column)
                continue;
            int64_t end = items[nrefs].expire_at;
            if (found[nrefs] && (list || end == EXPIRE_NEVER || end > view_now(r->view)))
                set_column(r, &ret[i], c, items[nrefs].value, list);
            nrefs++;
        }
    }
    return st;
}

static enum status read_some(struct rows *r, const struct slice *names, size_t n, struct hash_list *list,
                             struct table_row *ret)
{
    struct reading k[READ_AT_ONCE];
    bool far = view_wants_declarations(r->view);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && far && i < n; i++) {
        struct slice key;
        st = hashes_key_of(r, names[i], &key);
        if (st == ST_OK)
            view_declare(r->view, r->table->db, key);
    }
    if (st == ST_OK && far)
        st = view_fetch_declared(r->view);
    for (size_t i = 0; st == ST_OK && i < n; i++) {
        ret[i] = (struct table_row){0};
        st = read_key(r, names[i], &k[i]);
        if (st == ST_OK && !far && k[i].found)
            st = read_near(r, &k[i], list, &ret[i]);
    }
    return st == ST_OK && far ? read_far(r, k, n, list, ret) : st;
}

enum status hashes_read(struct rows *r, const struct slice *names, size_t n, struct hash_list *list,
                        struct table_row *ret)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < n; i += READ_AT_ONCE)
        st = read_some(r, names + i, n - i < READ_AT_ONCE ? n - i : READ_AT_ONCE, list, ret + i);
    return st;
}

enum status hashes_get_many(struct rows *r, const struct slice *names, size_t n, struct table_row *ret)
{
    return hashes_read(r, names, n, NULL, ret);
}

struct item_row hashes_encode(struct rows *r, struct slice name, const struct table_row *row)
{
    struct buf value = {0};
    rowcode_encode(&r->table->schema, row, &value);
    struct item_row item = {.ref = {.table = ITEM_ROW, .id = r->table->id, .name = name},
                            .value = arena_copy(r->arena, buf_slice(&value)),
                            .expire_at = row->expire_at};
    buf_release(&value);
    return item;
}

enum status hashes_item(struct rows *r, struct slice name, bool *ret_found, struct item_row *ret)
{
    struct table_row row;
    enum status st = hashes_read(r, &name, 1, NULL, &row);
    *ret_found = st == ST_OK && row.values;
    if (*ret_found)
        *ret = hashes_encode(r, name, &row);
    return st;
}

enum status hashes_missed(struct rows *r, struct slice name)
{
    const struct row *row;
    struct slice key;
    enum status st = hashes_key_of(r, name, &key);
    if (st == ST_OK)
        st = view_row_of(r->view, view_number(r->view, r->table->db), key, &row);
    if (st != ST_OK)
        return st;
    bool expired = row->type == ROW_HASH && row->expire_at > 0 && row->expire_at <= view_now(r->view);
    return expired ? ST_OK : view_one_state(r->view);
}

enum status hashes_version(struct rows *r, struct slice name, int64_t *ret)
{
    struct slice key;
    enum status st = hashes_key_of(r, name, &key);
    return st == ST_OK ? view_version(r->view, r->table->db, key, ret) : st;
}

/* ---- writing ---- */

static bool same_value(const struct value *a, const struct value *b)
{
    return a->kind == b->kind && (a->kind == VALUE_NULL || value_compare(a, b) == 0);
}

static enum status write_field(struct rows *r, struct coll *c, const struct column *column,
                               const struct value *v)
{
    struct buf text = {0};
    bool removed;
    if (v->kind == VALUE_NULL)
        return coll_remove(c, column->name, &removed);
    value_print(&text, column->type, v);
    struct arena *arena = view_arena(r->view);
    struct coll_item item = {.name = arena_copy(arena, column->name),
                             .value = arena_copy(arena, buf_slice(&text))};
    buf_release(&text);
    return coll_put(c, &item, NULL);
}

/* Of a new hash, or one that gets another key, the key's column is a field as well: no hash is without any.
 */
static enum status write_fields(struct rows *r, const struct hash_write *w, struct slice key)
{
    const struct schema *s = &r->table->schema;
    struct coll *c;
    bool wrong;
    enum status st =
        coll_make(r->view, r->table->db, arena_copy(view_arena(r->view), key), ROW_HASH, &c, &wrong);
    if (st != ST_OK)
        return st;
    assert(!wrong);
    for (size_t i = 0; st == ST_OK && i < s->ncolumns; i++) {
        const struct value *v = &w->row->values[i];
        bool is_key = i == s->key[0].column;
        if (!w->old ? v->kind != VALUE_NULL : is_key ? w->from.p != NULL : !same_value(&w->old->values[i], v))
            st = write_field(r, c, &s->columns[i], v);
    }
    coll_touch(c);
    return st == ST_OK ? coll_save(c) : st;
}

/* Whether the row can be where it is to be: nothing, or a hash, is under its key. */
static enum status check_key(struct rows *r, struct slice key, bool *ret_there, struct fault *fault)
{
    const struct row *row;
    struct value v;
    if (!hashes_key_value(r->table->schema.prefix, key, &v)) {
        fault_set(fault, FAULT_TOO_LONG, "the primary key has more than %d bytes", HASHES_KEY_MAX - 3);
        return ST_OK;
    }
    enum status st = view_get(r->view, r->table->db, key, &row);
    *ret_there = st == ST_OK && row;
    if (*ret_there && row->type != ROW_HASH)
        fault_set(fault, FAULT_WRONG_TYPE, "the key of that row holds another kind of value than a hash");
    return st;
}

static enum status set_expiry(struct rows *r, struct slice key, int64_t expire_at)
{
    const struct row *row;
    if (expire_at != EXPIRE_NEVER && expire_at <= view_now(r->view))
        return view_del(r->view, r->table->db, key, NULL);
    enum status st = view_get(r->view, r->table->db, key, &row);
    if (st != ST_OK || !row || row->expire_at == expire_at)
        return st;
    return view_expire(r->view, r->table->db, key, expire_at);
}

enum status hashes_write(struct rows *r, const struct hash_write *w, struct fault *fault)
{
    struct slice key, from;
    bool there = false;
    enum status st = hashes_key_of(r, w->name, &key);
    if (st == ST_OK)
        st = check_key(r, key, &there, fault);
    if (st != ST_OK || fault->kind)
        return st;
    if (w->old && w->from.p) {
        if ((st = hashes_key_of(r, w->from, &from)) != ST_OK)
            return st;
        st = view_move(r->view, r->table->db, from, r->table->db, key);
    }
    if (st == ST_OK)
        st = write_fields(r, w, key);
    return st == ST_OK ? set_expiry(r, key, w->row->expire_at) : st;
}

enum status hashes_remove(struct rows *r, struct slice name)
{
    struct slice key;
    enum status st = hashes_key_of(r, name, &key);
    return st == ST_OK ? view_del(r->view, r->table->db, key, NULL) : st;
}
