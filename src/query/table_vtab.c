/* A table as a virtual table of SQLite: read page by page through a find, written by collecting what is to be
   written (write.c). It has one hidden key column, because SQLite lets nothing else be written, and two more:

     _key      the row's name (rowcode.h)
     _version  of the row
     _expires  when it ends, in milliseconds since the epoch; NULL: never. This one can be written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "query/constant.h"
#include "query/plan.h"
#include "query/query_internal.h"
#include "table/find.h"

#define PAGE_ROWS  256
#define FIRST_ROWS 16
#define PAGE_BYTES (1 << 20)
#define SCAN_ROWS  4096 /* looked at for one page, at most */

/* ---- the table ---- */

/* A name of a hidden column that no column of the table has. */
static void add_hidden(struct buf *out, const struct schema *s, const char *name, const char *type)
{
    char full[SCHEMA_NAME_MAX + 16];
    (void)snprintf(full, sizeof full, "%s", name);
    while (schema_column(s, slice_str(full)) >= 0 && strlen(full) < SCHEMA_NAME_MAX) {
        memmove(full + 1, full, strlen(full) + 1);
        full[0] = '_';
    }
    buf_addf(out, ", \"%s\" %s HIDDEN", full, type);
    if (strcmp(type, "BLOB") == 0)
        buf_addf(out, " NOT NULL PRIMARY KEY");
}

static void describe(const struct schema *s, struct buf *out)
{
    buf_addf(out, "CREATE TABLE x(");
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        /* Without a TEXT in it, JSON would be a type of numbers to SQLite. */
        buf_addf(out, "%s\"%.*s\" %s", i ? ", " : "", (int)c->name.n, c->name.p,
                 c->type == COLUMN_JSON ? "JSON TEXT" : column_type_name(c->type));
    }
    add_hidden(out, s, "_key", "BLOB");
    add_hidden(out, s, "_version", "INTEGER");
    add_hidden(out, s, "_expires", "INTEGER");
    buf_addf(out, ") WITHOUT ROWID");
    buf_add(out, "", 1);
}

static int connect_table(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                         char **ret_err)
{
    struct query_engine *e = aux;
    const struct table *t = e->declaring;
    struct buf text = {0};
    (void)argc;
    (void)ret_err;
    if (!t)
        return SQLITE_ERROR;
    describe(&t->schema, &text);
    int rc = sqlite3_declare_vtab(db, text.p);
    buf_release(&text);
    if (rc == SQLITE_OK)
        rc = sqlite3_vtab_config(db, SQLITE_VTAB_CONSTRAINT_SUPPORT, 1);
    if (rc != SQLITE_OK)
        return rc;
    struct query_table *v = mem_zalloc(sizeof *v);
    v->e = e;
    v->db = t->db;
    v->id = t->id;
    v->version = t->version;
    v->table = t;
    v->run = e->clock;
    v->serial = ++e->declared;
    (void)snprintf(v->name, sizeof v->name, "%s", argv[2]);
    VEC_PUSH(e->tables, e->ntables, e->tables_cap) = v;
    *ret = &v->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *vtab)
{
    struct query_table *t = (struct query_table *)vtab;
    struct query_engine *e = t->e;
    for (size_t i = 0; i < e->ntables; i++)
        if (e->tables[i] == t)
            e->tables[i] = e->tables[--e->ntables];
    mem_free(t);
    return SQLITE_OK;
}

/* ---- reading ---- */

struct cursor {
    sqlite3_vtab_cursor base;
    struct rows rows;
    struct find find;
    struct find_place place;
    struct value eq[SCHEMA_PARTS_MAX];
    struct arena arena; /* of the page */
    struct arena given; /* of what was looked for */
    struct table_row page[PAGE_ROWS];
    struct slice names[PAGE_ROWS];
    size_t n, at, bytes;
    uint32_t want;
};

static struct query_table *table_of(const struct cursor *c)
{
    return (struct query_table *)c->base.pVtab;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    struct cursor *c = mem_zalloc(sizeof *c);
    (void)vtab;
    *ret = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    struct cursor *c = (struct cursor *)cursor;
    arena_release(&c->arena);
    arena_release(&c->given);
    mem_free(c);
    return SQLITE_OK;
}

static size_t weight(const struct schema *s, const struct table_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < s->ncolumns; i++)
        if (row->values[i].kind == VALUE_TEXT || row->values[i].kind == VALUE_BLOB)
            n += row->values[i].s.n;
    return n;
}

/* Where the view may give back what it has read (query->rest), the page has its own bytes. */
static void own_values(struct cursor *c, struct table_row *row, struct slice *name)
{
    const struct schema *s = &c->rows.table->schema;
    if (!table_of(c)->e->q->rest)
        return;
    struct value *own = arena_alloc(&c->arena, (s->ncolumns + 1) * sizeof *own);
    for (size_t i = 0; i < s->ncolumns; i++) {
        own[i] = row->values[i];
        if (own[i].kind == VALUE_TEXT || own[i].kind == VALUE_BLOB)
            own[i].s = arena_copy(&c->arena, own[i].s);
    }
    row->values = own;
    *name = arena_copy(&c->arena, *name);
}

static enum status keep_row(void *arg, const struct table_row *row, struct slice name)
{
    struct cursor *c = arg;
    c->page[c->n] = *row;
    c->names[c->n] = name;
    own_values(c, &c->page[c->n], &c->names[c->n]);
    c->n++;
    c->bytes += weight(&c->rows.table->schema, row);
    return c->bytes >= PAGE_BYTES || c->n == PAGE_ROWS ? ST_STOP : ST_OK;
}

/* The next page with at least one row, unless there is none. */
static int read_page(struct cursor *c)
{
    struct query_engine *e = table_of(c)->e;
    struct memory_budget *was = query_leave(e);
    enum status st = e->ret->rows_read ? find_goes_on(&c->rows, &c->find) : ST_OK;
    bool more = true;
    c->n = c->at = 0;
    while (st == ST_OK && more && c->n == 0 && !c->place.ended) {
        struct find_result work = {0};
        arena_reset(&c->arena);
        c->bytes = 0;
        c->find.limit = c->want;
        c->find.scan = SCAN_ROWS;
        st = find_page(&c->rows, &c->find, &c->place, keep_row, c, &work);
        more = query_count_rows(e, work.scanned ? work.scanned : 1);
    }
    if (c->bytes < PAGE_BYTES / 4 && c->want < PAGE_ROWS)
        c->want = c->want * 4 < PAGE_ROWS ? c->want * 4 : PAGE_ROWS;
    else if (c->bytes >= PAGE_BYTES && c->want > FIRST_ROWS)
        c->want = FIRST_ROWS;
    return query_return(e, was, st);
}

/* The one row whose whole primary key is given. */
static int read_one(struct cursor *c)
{
    struct query_engine *e = table_of(c)->e;
    const struct schema *s = &c->rows.table->schema;
    struct memory_budget *was = query_leave(e);
    struct buf name = {0};
    bool found = false;
    for (size_t i = 0; i < s->nkey; i++)
        keycode_add(&name, &c->eq[i], s->key[i].desc);
    c->names[0] = arena_copy(&c->arena, buf_slice(&name));
    enum status st = ST_OK;
    if (name.len <= KEYCODE_MAX)
        st = rows_get(&c->rows, c->names[0], &found, &c->page[0]);
    buf_release(&name);
    c->n = st == ST_OK && found;
    if (c->n)
        own_values(c, &c->page[0], &c->names[0]);
    c->place.ended = true;
    (void)query_count_rows(e, 1);
    return query_return(e, was, st);
}

/* Takes the values into the find, in the order of struct plan. False: no row can match. */
static bool take_values(struct cursor *c, const struct plan *p, sqlite3_value **argv)
{
    const struct schema *s = &c->rows.table->schema;
    size_t n, i = 0;
    const struct key_part *parts = plan_parts(s, c->find.index, &n);
    for (; i < p->neq; i++) {
        if (p->last_null && i + 1u == p->neq) {
            c->eq[c->find.neq++].kind = VALUE_NULL;
            continue;
        }
        enum constant is = constant_equal(s->columns[parts[i].column].type, argv[i], &c->eq[i]);
        if (is == CONSTANT_NEVER)
            return false;
        if (is == CONSTANT_ANY) { /* what is behind it is no range of this order */
            table_of(c)->e->restart |= p->strict;
            return !p->strict;
        }
        if (c->eq[i].kind == VALUE_TEXT || c->eq[i].kind == VALUE_BLOB)
            c->eq[i].s = arena_copy(&c->given, c->eq[i].s);
        c->find.neq++;
    }
    enum column_type type = i < n ? s->columns[parts[i].column].type : COLUMN_JSON;
    if (p->low &&
        constant_bound(type, argv[i++], true, p->low == PLAN_EXCLUSIVE, &c->find.low) == CONSTANT_NEVER)
        return false;
    if (p->high &&
        constant_bound(type, argv[i++], false, p->high == PLAN_EXCLUSIVE, &c->find.high) == CONSTANT_NEVER)
        return false;
    if (p->prefix)
        c->find.prefix = constant_prefix(argv[i++]);
    if (p->limit && sqlite3_value_type(argv[i]) == SQLITE_INTEGER && sqlite3_value_int64(argv[i]) >= 0 &&
        sqlite3_value_int64(argv[i]) < PAGE_ROWS)
        c->want = (uint32_t)sqlite3_value_int64(argv[i]) + 1;
    return true;
}

/* Bounds outlive the values that they came from. */
static void keep_bounds(struct cursor *c)
{
    struct value *bounds[] = {&c->find.low.value, &c->find.high.value};
    for (size_t i = 0; i < 2; i++)
        if (bounds[i]->kind == VALUE_TEXT || bounds[i]->kind == VALUE_BLOB)
            bounds[i]->s = arena_copy(&c->given, bounds[i]->s);
    if (c->find.prefix.p)
        c->find.prefix = arena_copy(&c->given, c->find.prefix);
}

static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct cursor *c = (struct cursor *)cursor;
    struct query_table *t = table_of(c);
    const struct query *q = t->e->q;
    struct plan p = plan_unpack(number);
    (void)text;
    (void)argc;
    if (!t->table || t->run != t->e->clock)
        return SQLITE_SCHEMA;
    const struct schema *s = &t->table->schema;
    arena_reset(&c->arena);
    arena_reset(&c->given);
    c->n = c->at = 0;
    c->want = FIRST_ROWS;
    c->rows = (struct rows){.catalog = q->catalog, .view = q->view, .table = t->table, .arena = &c->arena};
    c->find = (struct find){.eq = c->eq, .reverse = p.reverse, .keys_only = p.keys_only};
    c->place = (struct find_place){0};
    if (p.index && !(c->find.index = plan_index(s, p.index)))
        return SQLITE_SCHEMA;
    if (!take_values(c, &p, argv)) {
        c->place.ended = true;
        return t->e->restart ? SQLITE_ABORT : SQLITE_OK;
    }
    keep_bounds(c);
    if (!c->find.index && c->find.neq == s->nkey)
        return read_one(c);
    return read_page(c);
}

static int next(sqlite3_vtab_cursor *cursor)
{
    struct cursor *c = (struct cursor *)cursor;
    return ++c->at < c->n || c->place.ended ? SQLITE_OK : read_page(c);
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    const struct cursor *c = (const struct cursor *)cursor;
    return c->at >= c->n;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int i)
{
    const struct cursor *c = (const struct cursor *)cursor;
    const struct table_row *row = &c->page[c->at];
    size_t n = c->rows.table->schema.ncolumns, place = (size_t)i;
    if (place == n)
        sqlite3_result_blob64(ctx, c->names[c->at].p, c->names[c->at].n, SQLITE_TRANSIENT);
    else if (sqlite3_vtab_nochange(ctx))
        return SQLITE_OK;
    else if (place < n)
        value_to_sqlite(ctx, &row->values[place]);
    else if (place == n + 1)
        sqlite3_result_int64(ctx, row->version);
    else if (row->expire_at)
        sqlite3_result_int64(ctx, row->expire_at);
    return SQLITE_OK;
}

static int no_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    (void)cursor;
    *ret = 0;
    return SQLITE_ERROR;
}

static int update(sqlite3_vtab *vtab, int argc, sqlite3_value **argv, sqlite3_int64 *ret_rowid)
{
    *ret_rowid = 0;
    return write_collect((struct query_table *)vtab, argc, argv);
}

const sqlite3_module table_module = {
    .iVersion = 1,
    .xCreate = connect_table,
    .xConnect = connect_table,
    .xBestIndex = plan_best_index,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = no_rowid,
    .xUpdate = update,
};
