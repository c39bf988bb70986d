/* Statements that change tables: CREATE, DROP and ALTER TABLE, CREATE and DROP INDEX. SQLite never sees them:
   they change schemas, as the commands of TABLE do, in the same transaction as the text's other statements.
 */
#include "query/query_internal.h"
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
    case DDL_CREATE_INDEX:
    case DDL_DROP_INDEX:
        break;
    }
    (void)fault_set(&e->fault, FAULT_REFUSED, "tables are altered by TABLE.ALTER");
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
