/* What tables the selected database has, as virtual tables that can only be read:

     larder_tables   name, expires, prefix, sql (the statements that make it)
     larder_columns  table_name, position, name, type, not_null, default_value, key
     larder_indexes  table_name, name, is_unique, columns, state, error

   A listing is made when a statement begins to read it: it takes as long as there are tables. */
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "query/query_internal.h"
#include "table/text/describe.h"

#define CELLS 7

struct listing_row {
    struct value cells[CELLS];
};

struct listing {
    struct query_engine *e;
    struct arena arena;
    struct listing_row *rows;
    size_t n, cap, at;
};

typedef void list_fn(struct listing *l, const struct table *t);

struct listing_table {
    const char *name, *declaration;
    list_fn *list;
};

/* ---- what is listed ---- */

static struct value text_cell(struct slice s)
{
    return (struct value){.kind = s.p ? VALUE_TEXT : VALUE_NULL, .s = s};
}

static struct value int_cell(int64_t i)
{
    return (struct value){.kind = VALUE_INT, .i = i};
}

static struct slice kept(struct listing *l, struct buf *b)
{
    struct slice s = arena_copy(&l->arena, buf_slice(b));
    buf_release(b);
    return s;
}

static void list_table(struct listing *l, const struct table *t)
{
    struct listing_row row = {.cells = {text_cell(t->name)}};
    if (t->expire_at)
        row.cells[1] = int_cell(t->expire_at);
    if (t->schema.on_hashes)
        row.cells[2] = text_cell(t->schema.prefix);
    struct buf sql = {0};
    schema_sql(&t->schema, t->name, &sql);
    row.cells[3] = text_cell(kept(l, &sql));
    VEC_PUSH(l->rows, l->n, l->cap) = row;
}

static int64_t place_in_key(const struct schema *s, size_t column)
{
    for (size_t i = 0; i < s->nkey; i++)
        if (s->key[i].column == column)
            return (int64_t)i + 1;
    return 0;
}

static void list_columns(struct listing *l, const struct table *t)
{
    const struct schema *s = &t->schema;
    for (size_t i = 0; i < s->ncolumns; i++) {
        const struct column *c = &s->columns[i];
        struct listing_row row = {.cells = {text_cell(t->name), int_cell((int64_t)i), text_cell(c->name),
                                            text_cell(slice_str(column_type_name(c->type))),
                                            int_cell(c->not_null), c->default_value,
                                            int_cell(place_in_key(s, i))}};
        VEC_PUSH(l->rows, l->n, l->cap) = row;
    }
}

static void list_indexes(struct listing *l, const struct table *t)
{
    static const char *const states[] = {
        [INDEX_READY] = "ready", [INDEX_BUILDING] = "building", [INDEX_FAILED] = "failed"};
    for (size_t i = 0; i < t->schema.nindexes; i++) {
        const struct table_index *x = &t->schema.indexes[i];
        struct buf columns = {0};
        for (size_t p = 0; p < x->nparts; p++) {
            struct slice name = t->schema.columns[x->parts[p].column].name;
            buf_addf(&columns, "%s%.*s%s", p ? ", " : "", (int)name.n, name.p,
                     x->parts[p].desc ? " DESC" : "");
        }
        struct listing_row row = {.cells = {text_cell(t->name), text_cell(x->name), int_cell(x->unique),
                                            text_cell(kept(l, &columns)),
                                            text_cell(slice_str(states[x->state]))}};
        if (x->state == INDEX_FAILED)
            row.cells[5] = text_cell(x->error);
        VEC_PUSH(l->rows, l->n, l->cap) = row;
    }
}

static const struct listing_table tables[] = {
    {"larder_tables", "CREATE TABLE x(name TEXT, expires INTEGER, prefix TEXT, sql TEXT)", list_table},
    {"larder_columns",
     "CREATE TABLE x(table_name TEXT, position INTEGER, name TEXT, type TEXT, not_null INTEGER,"
     " default_value, key INTEGER)",
     list_columns},
    {"larder_indexes",
     "CREATE TABLE x(table_name TEXT, name TEXT, is_unique INTEGER, columns TEXT, state TEXT, error TEXT)",
     list_indexes},
};
#define TABLES (sizeof tables / sizeof *tables)

bool listing_has(const char *name)
{
    for (size_t i = 0; i < TABLES; i++)
        if (strcasecmp(tables[i].name, name) == 0)
            return true;
    return false;
}

/* ---- the virtual tables ---- */

struct listing_vtab {
    sqlite3_vtab base;
    struct query_engine *e;
    const struct listing_table *table;
};

struct listing_cursor {
    sqlite3_vtab_cursor base;
    struct listing listing;
};

static int connect_listing(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret,
                           char **ret_err)
{
    (void)db;
    (void)argc;
    (void)ret_err;
    for (size_t i = 0; i < TABLES; i++) {
        if (strcasecmp(argv[0], tables[i].name) != 0)
            continue;
        int rc = declare_own(aux, tables[i].declaration);
        if (rc != SQLITE_OK)
            return rc;
        struct listing_vtab *v = mem_zalloc(sizeof *v);
        v->e = aux;
        v->table = &tables[i];
        *ret = &v->base;
        return SQLITE_OK;
    }
    return SQLITE_ERROR;
}

static int disconnect_listing(sqlite3_vtab *vtab)
{
    mem_free(vtab);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret)
{
    struct listing_cursor *c = mem_zalloc(sizeof *c);
    c->listing.e = ((const struct listing_vtab *)vtab)->e;
    *ret = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    struct listing_cursor *c = (struct listing_cursor *)cursor;
    arena_release(&c->listing.arena);
    mem_free(c->listing.rows);
    mem_free(c);
    return SQLITE_OK;
}

struct filling {
    struct listing *l;
    list_fn *fn;
};

static enum status list_one(void *arg, struct slice name)
{
    const struct filling *f = arg;
    const struct query *q = f->l->e->q;
    const struct table *t = NULL;
    struct fault fault = {0};
    if (!query_count_rows(f->l->e, 1))
        return ST_STOP;
    enum status st = table_open(q->catalog, q->view, q->db, name, &t, &fault);
    if (st == ST_OK && t && fault.kind == FAULT_NONE)
        f->fn(f->l, t);
    return st;
}

static enum status fill(struct listing *l, list_fn *fn)
{
    const struct query *q = l->e->q;
    struct filling f = {l, fn};
    return table_each(q->catalog, q->view, q->db, list_one, &f);
}

static int filter(sqlite3_vtab_cursor *cursor, int number, const char *text, int argc, sqlite3_value **argv)
{
    struct listing *l = &((struct listing_cursor *)cursor)->listing;
    (void)number;
    (void)text;
    (void)argc;
    (void)argv;
    l->n = l->at = 0;
    arena_reset(&l->arena);
    struct memory_budget *was = query_leave(l->e);
    return query_return(l->e, was, fill(l, ((const struct listing_vtab *)cursor->pVtab)->table->list));
}

static int next(sqlite3_vtab_cursor *cursor)
{
    ((struct listing_cursor *)cursor)->listing.at++;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *cursor)
{
    const struct listing *l = &((const struct listing_cursor *)cursor)->listing;
    return l->at >= l->n;
}

static int column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx, int i)
{
    const struct listing *l = &((const struct listing_cursor *)cursor)->listing;
    value_to_sqlite(ctx, &l->rows[l->at].cells[i]);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((const struct listing_cursor *)cursor)->listing.at;
    return SQLITE_OK;
}

static const sqlite3_module listing_module = {
    .iVersion = 1,
    .xConnect = connect_listing,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_listing,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next,
    .xEof = at_end,
    .xColumn = column,
    .xRowid = rowid,
};

int listing_register(struct query_engine *e)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < TABLES; i++)
        rc = sqlite3_create_module(e->db, tables[i].name, &listing_module, e);
    return rc;
}
