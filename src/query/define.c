/* Statements that change tables: CREATE, DROP and ALTER TABLE, CREATE and DROP INDEX. SQLite never sees them:
   they change schemas, as the commands of TABLE do, in the same transaction as the text's other statements.
 */
#include "query/query_internal.h"
#include "table/build/alter.h"
#include "table/names.h"
#include "table/text/ddl.h"

/* The table of a statement, or NULL: there is none, which is a fault unless it may be so. */
static enum status open_named(struct query_engine *e, struct slice name, bool may_miss,
                              const struct table **ret)
{
    struct fault fault = {0};
    enum status st = declare_open(e, name, ret, &fault);
    if (fault.kind != FAULT_NONE && !(fault.kind == FAULT_NO_TABLE && may_miss))
        e->fault = fault;
    return st;
}

static enum status create_table(struct query_engine *e, const struct ddl *d)
{
    struct schema s;
    const struct table *there = NULL;
    enum status st = ST_OK;
    if (d->if_not_exists)
        st = open_named(e, d->table, true, &there);
    if (st != ST_OK || there || e->fault.kind != FAULT_NONE ||
        !ddl_table(d->text, NULL, &e->arena, &s, &e->fault))
        return st;
    return table_create(e->q->view, e->q->db, d->table, &s, &e->fault);
}

static enum status drop_table(struct query_engine *e, const struct ddl *d)
{
    const struct table *t;
    enum status st = open_named(e, d->table, d->if_exists, &t);
    return st == ST_OK && t ? view_del(e->q->view, e->q->db, t->name, NULL) : st;
}

static enum status rename_table(struct query_engine *e, const struct ddl *d)
{
    struct view *v = e->q->view;
    uint32_t db = e->q->db;
    const struct table *t;
    const struct row *row = NULL, *there = NULL;
    enum status st = open_named(e, d->table, false, &t);
    if (st != ST_OK || !t)
        return st;
    st = view_get(v, db, t->name, &row);
    if (st == ST_OK)
        st = table_move_check(v, row, db, t->name, db, d->name, &e->fault);
    if (st == ST_OK)
        st = view_get(v, db, d->name, &there);
    if (st == ST_OK && there)
        (void)fault_set(&e->fault, FAULT_EXISTS, "there is a key %.*s", FAULT_CUT(d->name));
    return st == ST_OK && e->fault.kind == FAULT_NONE ? view_move(v, db, t->name, db, d->name) : st;
}

/* ---- ALTER TABLE, CREATE INDEX, DROP INDEX ---- */

static enum status alter(struct query_engine *e, const struct table *t, struct slice text)
{
    struct rows r = {.catalog = e->q->catalog, .view = e->q->view, .table = t, .arena = &e->arena};
    bool builds = false;
    enum status st = table_alter(&r, text, &builds, &e->fault);
    e->ret->builds |= builds;
    return st;
}

/* The table that has an index of a name; found.p is NULL: none yet. */
struct index_search {
    struct query_engine *e;
    struct slice index, found;
};

static enum status look_for_index(void *arg, struct slice name)
{
    struct index_search *s = arg;
    const struct table *t;
    enum status st = open_named(s->e, name, true, &t);
    if (st != ST_OK || !t || schema_index(&t->schema, s->index) < 0)
        return st;
    if (s->found.p) {
        (void)fault_set(&s->e->fault, FAULT_SQL, "several tables have an index %.*s: say ON which",
                        FAULT_CUT(s->index));
        return ST_STOP;
    }
    s->found = arena_copy(&s->e->arena, name);
    return ST_OK;
}

/* The one table of the database that has the index; NULL: none has, or several have (a fault). */
static enum status table_of_index(struct query_engine *e, struct slice index, const struct table **ret)
{
    struct index_search s = {.e = e, .index = index};
    enum status st = table_each(e->q->catalog, e->q->view, e->q->db, look_for_index, &s);
    *ret = NULL;
    return st == ST_OK && s.found.p && e->fault.kind == FAULT_NONE ? open_named(e, s.found, true, ret) : st;
}

static enum status create_index(struct query_engine *e, const struct ddl *d)
{
    const struct table *t;
    enum status st = open_named(e, d->table, false, &t);
    if (st != ST_OK || !t || (d->if_not_exists && schema_index(&t->schema, d->index) >= 0))
        return st;
    return alter(e, t, d->text);
}

static enum status drop_index(struct query_engine *e, const struct ddl *d)
{
    const struct table *t;
    enum status st = d->table.n ? open_named(e, d->table, d->if_exists, &t) : table_of_index(e, d->index, &t);
    if (st != ST_OK || e->fault.kind != FAULT_NONE)
        return st;
    bool there = t && schema_index(&t->schema, d->index) >= 0;
    if (!there && !d->if_exists)
        (void)fault_set(&e->fault, FAULT_NO_INDEX, "no such index: %.*s", FAULT_CUT(d->index));
    return there ? alter(e, t, d->text) : ST_OK;
}

static enum status alter_table(struct query_engine *e, const struct ddl *d)
{
    const struct table *t;
    enum status st = open_named(e, d->table, d->if_exists, &t);
    return st == ST_OK && t ? alter(e, t, d->text) : st;
}

static enum status define(struct query_engine *e, const struct ddl *d)
{
    switch (d->kind) {
    case DDL_CREATE_TABLE:
        return create_table(e, d);
    case DDL_DROP_TABLE:
        return drop_table(e, d);
    case DDL_RENAME_TABLE:
        return rename_table(e, d);
    case DDL_ALTER_TABLE:
        return alter_table(e, d);
    case DDL_CREATE_INDEX:
        return create_index(e, d);
    case DDL_DROP_INDEX:
        return drop_index(e, d);
    }
    return ST_OK;
}

enum status define_run(struct query_engine *e, struct slice *text)
{
    struct ddl d;
    struct slice rest = {0};
    if (!e->writing) {
        (void)fault_set(&e->fault, FAULT_SQL, "a statement that changes tables is not allowed here");
        return ST_OK;
    }
    if (!ddl_statement(*text, &e->arena, &d, &rest, &e->fault)) {
        (void)fault_set(&e->fault, FAULT_SQL,
                        "nothing but tables and indexes can be created, altered and dropped");
        return ST_OK;
    }
    *text = rest;
    e->ret->wrote = true;
    struct memory_budget *was = query_leave(e);
    enum status st = define(e, &d);
    (void)memory_count(was);
    return st;
}
