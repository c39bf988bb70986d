/* The keeper of entries over hashes: which tables there are, and what a change of a hash comes to.

   HIDDEN_KEPT lists the tables over hashes of all databases, a line for each: the database's number in the
   tables, the table's name. It changes whenever the row of such a table does, in the same call (note_table),
   so its version tells whether what was decoded is still true. Lines of databases that are gone are harmless,
   and go with the next change. */
#include "table/hashes/hashes.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/hidden.h"
#include "table/hashes/hashes_internal.h"

#define UNNAMED_BYTES 256 /* of a key, in its place in the list */

/* A table over hashes. */
struct kept {
    struct kept *next;
    uint32_t number; /* of its database */
    int64_t id;
    struct schema schema;
    uint16_t *fields; /* places of the columns but the key's, by their names */
    size_t nfields;
};

struct hashes {
    struct view *view;
    struct view_keeper keeper;
    bool loaded;
    uint64_t epoch;            /* when that was last looked at (view_kept_epoch) */
    struct hidden_stamp stamp; /* of the list that the tables were read by */
    struct kept *first;
    struct arena tables;
    struct arena work; /* of one change */
    struct buf before, after;
};

/* ---- names and values ---- */

bool hashes_key_value(struct slice prefix, struct slice key, struct value *ret)
{
    struct fault ignored = {.kind = FAULT_NONE};
    struct slice rest = slice_of(key.p + prefix.n, key.n - prefix.n);
    return rest.n + 3 <= HASHES_KEY_MAX &&
           value_parse(COLUMN_TEXT, SLICE("key"), rest, NULL, ret, &ignored); /* of TEXT nothing is copied */
}

bool hashes_value(const struct column *c, struct slice text, struct arena *arena, struct value *ret)
{
    struct fault ignored = {.kind = FAULT_NONE};
    if (value_parse(c->type, c->name, text, arena, ret, &ignored))
        return true;
    *ret = (struct value){.kind = VALUE_NULL};
    return false;
}

static void add_number(struct buf *out, uint16_t number)
{
    const char bytes[2] = {(char)(number >> 8), (char)(number & 0xff)};
    buf_add(out, bytes, 2);
}

static void add_int(struct buf *out, int64_t n)
{
    struct value v = {.kind = VALUE_INT, .i = n};
    keycode_add(out, &v, false);
}

void hashes_unparsed_name(const struct value *key, int64_t n, struct buf *out)
{
    out->len = 0;
    add_number(out, HASHES_UNPARSED);
    keycode_add(out, key, false);
    add_int(out, n);
}

void hashes_unnamed_name(struct slice prefix, struct slice key, struct buf *out)
{
    struct slice rest = slice_of(key.p + prefix.n, key.n - prefix.n);
    struct value begin = {.kind = VALUE_BLOB,
                          .s = slice_of(rest.p, rest.n < UNNAMED_BYTES ? rest.n : UNNAMED_BYTES)};
    out->len = 0;
    add_number(out, HASHES_UNNAMED);
    keycode_add(out, &begin, false);
    add_int(out, (int64_t)hash_bytes(rest, 0));
}

void hashes_entry(const struct schema *s, const struct table_index *i, const struct value *values,
                  struct buf *out)
{
    struct fault ignored = {.kind = FAULT_NONE};
    bool unique;
    out->len = 0;
    if (!rowcode_entry(s, i, values, out, &unique, &ignored))
        hashes_unparsed_name(&values[s->key[0].column], -(int64_t)i->number, out);
}

enum status hashes_set_entry(struct view *v, int64_t id, struct slice name, struct slice value, bool there)
{
    struct arena *arena = view_arena(v);
    struct item_row row = {.ref = {.table = ITEM_ENTRY, .id = id, .name = arena_copy(arena, name)},
                           .value = value.n ? arena_copy(arena, value) : SLICE("")};
    return there ? view_put_item(v, &row) : view_del_item(v, &row.ref);
}

/* ---- the tables ---- */

static int by_name(const void *a, const void *b, void *schema)
{
    const struct schema *s = schema;
    return slice_cmp(s->columns[*(const uint16_t *)a].name, s->columns[*(const uint16_t *)b].name);
}

static void sort_fields(struct kept *k, struct arena *arena)
{
    k->fields = arena_alloc(arena, (k->schema.ncolumns + 1) * sizeof *k->fields);
    for (size_t i = 0; i < k->schema.ncolumns; i++)
        if (i != k->schema.key[0].column)
            k->fields[k->nfields++] = (uint16_t)i;
    qsort_r(k->fields, k->nfields, sizeof *k->fields, by_name, &k->schema);
}

/* One line of the list; false at its end. */
static bool take_line(struct slice *list, uint32_t *ret_number, struct slice *ret_name)
{
    while (list->n) {
        const char *end = memchr(list->p, '\n', list->n);
        struct slice line = slice_of(list->p, end ? (size_t)(end - list->p) : list->n);
        *list = end ? slice_of(end + 1, list->n - line.n - 1) : (struct slice){"", 0};
        const char *space = memchr(line.p, ' ', line.n);
        int64_t number;
        if (!space || !num_parse_i64(slice_of(line.p, (size_t)(space - line.p)), &number) || number < 0 ||
            number > UINT32_MAX)
            continue;
        *ret_number = (uint32_t)number;
        *ret_name = slice_of(space + 1, line.n - (size_t)(space - line.p) - 1);
        return true;
    }
    return false;
}

static enum status read_list(struct view *v, struct slice *ret)
{
    const struct row *row;
    enum status st = view_row_of(v, STORE_HIDDEN_DB, hidden_name(HIDDEN_KEPT), &row);
    *ret = st == ST_OK && row->type == ROW_STRING ? row_value(row) : (struct slice){"", 0};
    return st;
}

/* A table that is not what the list says, or cannot be read, has nothing to be kept. */
static enum status load_table(struct hashes *h, uint32_t number, struct slice name)
{
    const struct row *row;
    struct error ignored;
    enum status st = view_row_of(h->view, number, name, &row);
    if (st != ST_OK || row->type != ROW_TABLE)
        return st;
    struct kept *k = arena_alloc(&h->tables, sizeof *k);
    *k = (struct kept){.number = number, .id = row_items(row).id};
    struct slice json = arena_copy(&h->tables, row_value(row));
    if (schema_decode(json, &h->tables, &k->schema, &ignored) != ST_OK || !k->schema.on_hashes)
        return ST_OK;
    sort_fields(k, &h->tables);
    k->next = h->first;
    h->first = k;
    return ST_OK;
}

static enum status load_tables(struct hashes *h)
{
    struct hidden_stamp now;
    struct slice list, name;
    uint32_t number;
    if (h->loaded && h->epoch == view_kept_epoch(h->view))
        return ST_OK;
    enum status st = view_stamp(h->view, HIDDEN_KEPT, &now);
    if (st != ST_OK)
        return st;
    h->epoch = view_kept_epoch(h->view);
    if (h->loaded && stamps_equal(&now, &h->stamp))
        return ST_OK;
    h->loaded = false;
    h->first = NULL;
    arena_reset(&h->tables);
    if ((st = read_list(h->view, &list)) != ST_OK)
        return st;
    list = arena_copy(&h->tables, list);
    while (st == ST_OK && take_line(&list, &number, &name))
        if (view_uses_number(h->view, number))
            st = load_table(h, number, name);
    h->loaded = st == ST_OK;
    h->stamp = now;
    return st;
}

static const struct kept *next_kept(const struct kept *k, uint32_t number, struct slice key)
{
    while (k && (k->number != number || !hashes_prefixed(key, k->schema.prefix)))
        k = k->next;
    return k;
}

static enum status find_kept(void *arg, struct view *v, uint32_t number, struct slice key,
                             const struct kept **ret)
{
    struct hashes *h = arg;
    (void)v;
    enum status st = load_tables(h);
    *ret = st == ST_OK ? next_kept(h->first, number, key) : NULL;
    return st;
}

static bool has_field(const struct kept *k, struct slice key, struct slice field)
{
    uint32_t number = k->number;
    for (; k; k = next_kept(k->next, number, key)) {
        size_t low = 0, high = k->nfields;
        while (low < high) {
            size_t mid = (low + high) / 2;
            int c = slice_cmp(field, k->schema.columns[k->fields[mid]].name);
            if (c == 0)
                return true;
            if (c < 0)
                high = mid;
            else
                low = mid + 1;
        }
    }
    return false;
}

/* ---- a change of a hash ---- */

/* What a hash is to a table, before or after a change. */
struct side {
    bool on;              /* there is one */
    struct value *values; /* by the columns' places, when they were looked at */
    bool *bad;            /* does not parse */
};

struct change {
    struct hashes *h;
    const struct kept *t;
    struct coll *hash;
    bool fields; /* it is there before and after: of columns that have not changed nothing is asked */
    bool *known; /* by the columns' places */
    struct side before, after;
};

static void make_side(struct change *c, struct side *s, bool on, const struct value *key)
{
    size_t n = c->t->schema.ncolumns;
    s->on = on;
    s->values = arena_alloc(&c->h->work, n * sizeof *s->values);
    s->bad = arena_alloc(&c->h->work, n * sizeof *s->bad);
    memset(s->bad, 0, n * sizeof *s->bad);
    s->values[c->t->schema.key[0].column] = *key;
}

static void set_value(struct change *c, struct side *s, uint16_t column, bool found, struct slice text)
{
    s->values[column] = (struct value){.kind = VALUE_NULL};
    s->bad[column] =
        found && !hashes_value(&c->t->schema.columns[column], text, &c->h->work, &s->values[column]);
}

static enum status look_at(struct change *c, uint16_t column)
{
    struct slice name = c->t->schema.columns[column].name, text = {"", 0};
    enum status st = ST_OK;
    bool found;
    if (c->known[column] || column == c->t->schema.key[0].column)
        return ST_OK;
    c->known[column] = true;
    if (c->before.on) {
        if ((st = coll_field_before(c->hash, name, &found, &text)) != ST_OK)
            return st;
        set_value(c, &c->before, column, found, text);
    }
    if (c->after.on) {
        if ((st = coll_field_now(c->hash, name, &found, &text)) != ST_OK)
            return st;
        set_value(c, &c->after, column, found, text);
    }
    return st;
}

static bool column_changed(const struct change *c, uint16_t column)
{
    return !c->fields || coll_field_changed(c->hash, c->t->schema.columns[column].name);
}

/* Both entries of an index, in the buffers of the keeper; one that is not there is empty. */
static enum status make_entries(struct change *c, const struct table_index *i)
{
    enum status st = ST_OK;
    for (size_t p = 0; st == ST_OK && p < i->nparts; p++)
        st = look_at(c, i->parts[p].column);
    c->h->before.len = c->h->after.len = 0;
    if (st == ST_OK && c->before.on)
        hashes_entry(&c->t->schema, i, c->before.values, &c->h->before);
    if (st == ST_OK && c->after.on)
        hashes_entry(&c->t->schema, i, c->after.values, &c->h->after);
    return st;
}

static enum status change_index(struct change *c, const struct table_index *i)
{
    bool any = !c->fields;
    for (size_t p = 0; !any && p < i->nparts; p++)
        any = column_changed(c, i->parts[p].column);
    if (!any || i->state == INDEX_FAILED)
        return ST_OK;
    enum status st = make_entries(c, i);
    struct slice before = buf_slice(&c->h->before), after = buf_slice(&c->h->after);
    if (st != ST_OK || slice_eq(before, after))
        return st;
    if (before.n)
        st = hashes_set_entry(c->h->view, c->t->id, before, SLICE(""), false);
    if (st == ST_OK && after.n)
        st = hashes_set_entry(c->h->view, c->t->id, after, SLICE(""), true);
    return st;
}

/* A field that does not parse comes into the list, or goes. */
static enum status change_list(struct change *c, uint16_t column)
{
    if (!column_changed(c, column))
        return ST_OK;
    enum status st = look_at(c, column);
    bool was = c->before.on && c->before.bad[column], is = c->after.on && c->after.bad[column];
    if (st != ST_OK || was == is)
        return st;
    const struct side *s = c->before.on ? &c->before : &c->after;
    hashes_unparsed_name(&s->values[c->t->schema.key[0].column], c->t->schema.columns[column].id,
                         &c->h->before);
    return hashes_set_entry(c->h->view, c->t->id, buf_slice(&c->h->before), SLICE(""), is);
}

/* A hash whose key can be no primary key is in a list, and has no entries. */
static enum status change_unnamed(struct hashes *h, const struct kept *t, struct slice key,
                                  enum keep_change what)
{
    if (what == KEEP_FIELDS)
        return ST_OK;
    hashes_unnamed_name(t->schema.prefix, key, &h->before);
    struct slice shown = slice_of(key.p, key.n < HASHES_SHOWN_KEY ? key.n : HASHES_SHOWN_KEY);
    return hashes_set_entry(h->view, t->id, buf_slice(&h->before), shown, what == KEEP_APPEARS);
}

static enum status change_table(struct hashes *h, const struct kept *t, struct slice key, struct coll *hash,
                                enum keep_change what)
{
    const struct schema *s = &t->schema;
    struct value k;
    enum status st = ST_OK;
    if (!hashes_key_value(s->prefix, key, &k))
        return change_unnamed(h, t, key, what);
    arena_reset(&h->work);
    struct change c = {.h = h, .t = t, .hash = hash, .fields = what == KEEP_FIELDS};
    c.known = arena_alloc(&h->work, s->ncolumns * sizeof *c.known);
    memset(c.known, 0, s->ncolumns * sizeof *c.known);
    make_side(&c, &c.before, what != KEEP_APPEARS, &k);
    make_side(&c, &c.after, what != KEEP_VANISHES, &k);
    for (size_t i = 0; st == ST_OK && i < s->nindexes; i++)
        st = change_index(&c, &s->indexes[i]);
    for (size_t i = 0; st == ST_OK && i < t->nfields; i++)
        st = change_list(&c, t->fields[i]);
    return st;
}

static enum status change_hash(void *arg, struct view *v, const struct kept *k, struct slice key,
                               struct coll *hash, enum keep_change what)
{
    enum status st = ST_OK;
    uint32_t number = k->number;
    (void)v;
    for (; st == ST_OK && k; k = next_kept(k->next, number, key))
        st = change_table(arg, k, key, hash, what);
    return st;
}

/* ---- a change of a table ---- */

static bool is_on_hashes(struct hashes *h, enum row_type type, struct slice json)
{
    struct schema s;
    struct error ignored;
    arena_reset(&h->work);
    return type == ROW_TABLE && schema_decode(json, &h->work, &s, &ignored) == ST_OK && s.on_hashes;
}

static void add_line(struct buf *out, uint32_t number, struct slice name)
{
    buf_addf(out, "%lu %.*s\n", (unsigned long)number, (int)name.n, name.p);
}

static enum status note_table(void *arg, struct view *v, const struct row *was, const struct key_row *now)
{
    struct hashes *h = arg;
    bool old = is_on_hashes(h, (enum row_type)was->type, row_value(was));
    bool fresh = is_on_hashes(h, now->type, now->value);
    struct slice list, name;
    uint32_t number;
    if (!old && !fresh)
        return ST_OK;
    enum status st = read_list(v, &list);
    if (st != ST_OK)
        return st;
    struct buf *out = &h->before;
    out->len = 0;
    while (take_line(&list, &number, &name))
        if (view_uses_number(v, number) && !(number == row_db(was) && slice_eq(name, row_key(was))))
            add_line(out, number, name);
    if (fresh)
        add_line(out, now->db, now->key);
    return view_keep(v, buf_slice(out));
}

enum status hashes_check_room(struct view *v, struct fault *fault)
{
    struct slice list, name;
    uint32_t number;
    size_t n = 0;
    enum status st = read_list(v, &list);
    while (st == ST_OK && take_line(&list, &number, &name))
        n += view_uses_number(v, number);
    if (n >= HASHES_TABLES)
        fault_set(fault, FAULT_REFUSED, "there are %d tables on hashes already", HASHES_TABLES);
    return st;
}

/* ---- beginning and end ---- */

struct hashes *hashes_new(struct view *v)
{
    struct hashes *h = mem_zalloc(sizeof *h);
    h->view = v;
    h->keeper = (struct view_keeper){
        .arg = h, .find = find_kept, .has = has_field, .change = change_hash, .table = note_table};
    view_set_keeper(v, &h->keeper);
    return h;
}

void hashes_free(struct hashes *h)
{
    if (!h)
        return;
    view_set_keeper(h->view, NULL);
    arena_release(&h->tables);
    arena_release(&h->work);
    buf_release(&h->before);
    buf_release(&h->after);
    mem_free(h);
}
