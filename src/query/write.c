/* What a statement writes. SQLite calls for row after row while it still reads; so each is converted and
   kept, and when the statement has come to its end they are written one after the other through rows.h. A
   fault at one of them ends the text: what was written before is undone by the caller.

   A crash leaves what the batch leaves: all or nothing. Two clients: their texts run one after the other. A
   row that has expired is not found by the statement, and is replaced by an INSERT as by any put. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "query/text.h"
#include "query/query_internal.h"
#include "table/find.h"

enum change_kind { CHANGE_INSERT, CHANGE_UPDATE, CHANGE_DELETE };

struct row_change {
    enum change_kind kind;
    int conflict; /* SQLITE_IGNORE, SQLITE_REPLACE, or an error otherwise */
    struct query_table *table;
    struct slice name; /* of the row that is there */
    struct value *values;
    bool *given;
    bool expires; /* when it ends is told */
    int64_t expire_at;
};

/* ---- collecting ---- */

struct column_list {
    const struct schema *schema;
    bool *given;
};

static void name_column(void *arg, struct slice name)
{
    struct column_list *l = arg;
    int place = schema_column(l->schema, name);
    if (place >= 0)
        l->given[place] = true;
    else
        l->given[l->schema->ncolumns] |= slice_is(name, "_expires");
}

/* SQLite gives NULL for a column that an INSERT does not name; which ones it names is in its text. */
static const bool *named_columns(struct query_engine *e, const struct schema *s)
{
    if (e->given)
        return e->given;
    bool *given = arena_alloc(&e->arena, s->ncolumns + 1);
    memset(given, 0, s->ncolumns + 1);
    struct column_list l = {.schema = s, .given = given};
    if (!text_insert_columns(e->statement_text, name_column, &l))
        memset(given, 1, s->ncolumns);
    return e->given = given;
}

static int take_expiry(struct query_engine *e, sqlite3_value *v, struct row_change *c)
{
    c->expires = true;
    if (sqlite3_value_type(v) == SQLITE_NULL)
        return SQLITE_OK;
    if (sqlite3_value_numeric_type(v) != SQLITE_INTEGER || sqlite3_value_int64(v) <= 0)
        return query_refuse(e, FAULT_BAD_TYPE, "_expires is a time in milliseconds, or NULL");
    c->expire_at = sqlite3_value_int64(v);
    return SQLITE_OK;
}

static int take_values(struct query_engine *e, const struct schema *s, sqlite3_value **argv,
                       struct row_change *c)
{
    bool insert = c->kind == CHANGE_INSERT;
    const bool *named = insert ? named_columns(e, s) : NULL;
    c->values = arena_alloc(&e->arena, s->ncolumns * sizeof *c->values);
    c->given = arena_alloc(&e->arena, s->ncolumns * sizeof *c->given);
    for (size_t i = 0; i < s->ncolumns; i++) {
        c->values[i] = (struct value){.kind = VALUE_NULL};
        c->given[i] = insert ? named[i] : !sqlite3_value_nochange(argv[i]);
        if (!c->given[i])
            continue;
        struct value v = value_from_sqlite(argv[i], &e->arena);
        if (v.kind == VALUE_TEXT || v.kind == VALUE_BLOB)
            e->change_bytes += v.s.n;
        if (!value_convert(s->columns[i].type, s->columns[i].name, &v, &e->arena, &c->values[i], &e->fault))
            return SQLITE_ERROR;
    }
    sqlite3_value *version = argv[s->ncolumns + 1], *expires = argv[s->ncolumns + 2];
    if (insert && sqlite3_value_type(version) != SQLITE_NULL)
        return query_refuse(e, FAULT_SQL, "_version can only be read");
    if (insert ? named[s->ncolumns] : !sqlite3_value_nochange(expires))
        return take_expiry(e, expires, c);
    return SQLITE_OK;
}

static struct slice name_of(sqlite3_value *v, struct arena *arena)
{
    const void *p = sqlite3_value_blob(v);
    return arena_copy(arena, slice_of(p ? p : "", (size_t)sqlite3_value_bytes(v)));
}

static bool same_key(sqlite3_value *x, sqlite3_value *y)
{
    int n = sqlite3_value_bytes(x);
    return sqlite3_value_type(y) == SQLITE_BLOB && n == sqlite3_value_bytes(y) &&
           memcmp(sqlite3_value_blob(x), sqlite3_value_blob(y), (size_t)n) == 0;
}

int write_collect(struct query_table *t, int argc, sqlite3_value **argv)
{
    struct query_engine *e = t->e;
    struct row_change c = {.table = t, .conflict = sqlite3_vtab_on_conflict(e->db)};
    bool old = sqlite3_value_type(argv[0]) != SQLITE_NULL;
    if (!t->table || t->run != e->clock)
        return SQLITE_SCHEMA;
    if (e->nchanges + e->written >= e->q->limits.write_rows)
        return query_refuse(e, FAULT_SQL, "a text may write %llu rows (sql-write-rows)",
                            (unsigned long long)e->q->limits.write_rows);
    c.kind = argc == 1 ? CHANGE_DELETE : old ? CHANGE_UPDATE : CHANGE_INSERT;
    if (old)
        c.name = name_of(argv[0], &e->arena);
    if (argc > 1) {
        sqlite3_value *key = old ? argv[1] : argv[2 + t->table->schema.ncolumns];
        if (old ? !same_key(argv[0], key) : sqlite3_value_type(key) != SQLITE_NULL)
            return query_refuse(e, FAULT_SQL, "_key can only be read");
        int rc = take_values(e, &t->table->schema, argv + 2, &c);
        if (rc != SQLITE_OK)
            return rc;
    }
    e->change_bytes += sizeof c;
    if (e->change_bytes > e->q->limits.memory)
        return query_refuse(e, FAULT_SQL, "what the statement writes takes more than sql-memory");
    VEC_PUSH(e->changes, e->nchanges, e->changes_cap) = c;
    return SQLITE_OK;
}

/* ---- writing ---- */

static enum status keep_name(void *arg, const struct table_row *row, struct slice name)
{
    struct slice *to = arg;
    (void)row;
    *to = name;
    return ST_STOP;
}

/* Removes the rows that have, in a unique index, what this one is to have. */
static enum status remove_others(struct rows *r, const struct row_change *c)
{
    const struct schema *s = &r->table->schema;
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < s->nindexes; i++) {
        const struct table_index *x = &s->indexes[i];
        struct value eq[SCHEMA_PARTS_MAX];
        bool null = false;
        for (size_t p = 0; p < x->nparts; p++) {
            uint16_t column = x->parts[p].column;
            eq[p] = c->given[column] ? c->values[column] : s->columns[column].default_value;
            null |= eq[p].kind == VALUE_NULL;
        }
        if (!x->unique || null || x->state != INDEX_READY)
            continue;
        struct find f = {.index = x, .eq = eq, .neq = x->nparts, .limit = 1, .scan = 16};
        struct find_place place = {0};
        struct find_result work;
        struct slice name = {0};
        enum row_outcome outcome;
        st = find_page(r, &f, &place, keep_name, &name, &work);
        if (st == ST_OK && name.p)
            st = rows_delete(r, name, ROW_ALWAYS, 0, &outcome);
    }
    return st;
}

static enum status insert(struct query_engine *e, struct rows *r, const struct row_change *c)
{
    bool replace = c->conflict == SQLITE_REPLACE, ignore = c->conflict == SQLITE_IGNORE;
    struct row_write w = {.values = c->values,
                          .given = c->given,
                          .condition = replace ? ROW_ALWAYS : ROW_IF_NEW,
                          .expire_at = c->expire_at};
    enum row_outcome outcome = ROW_NOT_MET;
    struct fault fault = {0};
    enum status st = rows_put(r, &w, &outcome, NULL, &fault);
    if (st == ST_OK && fault.kind == FAULT_DUPLICATE && replace) {
        fault.kind = FAULT_NONE;
        st = remove_others(r, c);
        if (st == ST_OK)
            st = rows_put(r, &w, &outcome, NULL, &fault);
    }
    if (st != ST_OK)
        return st;
    bool refused = fault.kind == FAULT_DUPLICATE || fault.kind == FAULT_CONSTRAINT;
    if (ignore && (refused || outcome == ROW_NOT_MET))
        return ST_OK;
    if (fault.kind != FAULT_NONE)
        (void)fault_set(&e->fault, fault.kind, "%s", fault.text);
    else if (outcome == ROW_NOT_MET)
        (void)fault_set(&e->fault, FAULT_DUPLICATE, "primary key: there is such a row");
    else
        e->ret->changes++;
    return ST_OK;
}

static enum status update(struct query_engine *e, struct rows *r, const struct row_change *c)
{
    struct row_write w = {
        .values = c->values, .given = c->given, .keep_expiry = !c->expires, .expire_at = c->expire_at};
    enum row_outcome outcome = ROW_NOT_MET;
    struct fault fault = {0};
    enum status st = rows_update(r, c->name, &w, &outcome, NULL, &fault);
    if (st != ST_OK)
        return st;
    bool refused = fault.kind == FAULT_DUPLICATE || fault.kind == FAULT_CONSTRAINT;
    if (fault.kind == FAULT_NONE)
        e->ret->changes += outcome != ROW_NOT_MET;
    else if (!(refused && c->conflict == SQLITE_IGNORE))
        (void)fault_set(&e->fault, fault.kind, "%s", fault.text);
    return ST_OK;
}

static enum status apply(struct query_engine *e, struct rows *r, const struct row_change *c)
{
    enum row_outcome outcome = ROW_NOT_MET;
    enum status st;
    switch (c->kind) {
    case CHANGE_INSERT:
        return insert(e, r, c);
    case CHANGE_UPDATE:
        return update(e, r, c);
    case CHANGE_DELETE:
        break;
    }
    st = rows_delete(r, c->name, ROW_ALWAYS, 0, &outcome);
    e->ret->changes += st == ST_OK && outcome == ROW_REPLACED;
    return st;
}

enum status write_apply(struct query_engine *e)
{
    struct arena arena = {0};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < e->nchanges && e->fault.kind == FAULT_NONE; i++) {
        const struct row_change *c = &e->changes[i];
        struct rows r = {
            .catalog = e->q->catalog, .view = e->q->view, .table = c->table->table, .arena = &arena};
        arena_reset(&arena);
        e->ret->wrote = true;
        st = apply(e, &r, c);
        e->written++;
    }
    arena_release(&arena);
    write_forget(e);
    return st;
}

void write_forget(struct query_engine *e)
{
    e->nchanges = 0;
    e->change_bytes = 0;
    e->given = NULL;
}

void write_release(struct query_engine *e)
{
    mem_free(e->changes);
}
