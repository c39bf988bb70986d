/* Tables, as SQLite knows them: declared when a statement first names them, and anew when they have changed.
 */
#include <stdio.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "query/query_internal.h"

struct query_table *declared_table(const struct query_engine *e, const char *name)
{
    for (size_t i = 0; i < e->ntables; i++)
        if (strcasecmp(e->tables[i]->name, name) == 0)
            return e->tables[i];
    return NULL;
}

int declare_own(struct query_engine *e, const char *text)
{
    bool was = e->internal;
    e->internal = true;
    int rc = sqlite3_declare_vtab(e->db, text);
    e->internal = was;
    return rc;
}

static int run_own(struct query_engine *e, const char *text)
{
    struct memory_budget *was = memory_count(NULL);
    e->internal = true;
    int rc = sqlite3_exec(e->db, text, NULL, NULL, NULL);
    e->internal = false;
    (void)memory_count(was);
    return rc;
}

/* SQLite calls the module's xDestroy, which takes it off the list. */
static int drop(struct query_engine *e, const struct query_table *t)
{
    char text[SCHEMA_NAME_MAX + 32];
    (void)snprintf(text, sizeof text, "DROP TABLE \"%s\"", t->name);
    return run_own(e, text);
}

void declare_forget_all(struct query_engine *e)
{
    while (e->ntables && drop(e, e->tables[e->ntables - 1]) == SQLITE_OK)
        ;
}

struct name_search {
    struct slice wanted;
    struct arena *arena;
    struct slice found;
};

static bool same_letters(struct slice x, struct slice y)
{
    return x.n == y.n && strncasecmp(x.p, y.p, x.n) == 0;
}

static enum status compare_name(void *arg, struct slice name)
{
    struct name_search *s = arg;
    if (!same_letters(name, s->wanted))
        return ST_OK;
    s->found = arena_copy(s->arena, name);
    return ST_STOP;
}

enum status declare_open(struct query_engine *e, struct slice name, const struct table **ret,
                         struct fault *fault)
{
    const struct query *q = e->q;
    struct name_search s = {.wanted = name, .arena = &e->arena};
    struct fault first = {0};
    *ret = NULL;
    enum status st = table_open(q->catalog, q->view, q->db, name, ret, &first);
    if (st != ST_OK || first.kind == FAULT_NONE)
        return st;
    *ret = NULL;
    st = table_each(q->catalog, q->view, q->db, compare_name, &s);
    if (st == ST_OK && s.found.p)
        return table_open(q->catalog, q->view, q->db, s.found, ret, fault);
    if (st == ST_OK)
        (void)fault_set(fault, first.kind, "%s%s%.*s", first.text, first.kind == FAULT_NO_TABLE ? ": " : "",
                        first.kind == FAULT_NO_TABLE ? (int)(name.n < 80 ? name.n : 80) : 0, name.p);
    return st;
}

static struct query_table *declare_anew(struct query_engine *e, const struct table *t)
{
    char text[SCHEMA_NAME_MAX + 64];
    if (e->ntables >= TABLES_MAX)
        declare_forget_all(e);
    (void)snprintf(text, sizeof text, "CREATE VIRTUAL TABLE \"%.*s\" USING larder_table", (int)t->name.n,
                   t->name.p);
    e->declaring = t;
    int rc = run_own(e, text);
    e->declaring = NULL;
    if (rc != SQLITE_OK) {
        (void)query_refuse(e, FAULT_SQL, "table %.*s: %s", (int)t->name.n, t->name.p, sqlite3_errmsg(e->db));
        return NULL;
    }
    return e->tables[e->ntables - 1];
}

static bool is_same(const struct query_table *d, const struct table *t)
{
    return d->id == t->id && d->version == t->version && d->db == t->db;
}

static void use(struct query_engine *e, struct query_table *d, const struct table *t)
{
    d->table = t;
    d->run = e->clock;
}

bool declared_still(struct query_engine *e, struct query_table *d)
{
    const struct table *t;
    if (d->run == e->clock)
        return true;
    struct memory_budget *was = query_leave(e);
    enum status st = declare_open(e, slice_str(d->name), &t, &e->fault);
    if (query_return(e, was, st) != SQLITE_OK || !t || !is_same(d, t))
        return false;
    use(e, d, t);
    return true;
}

bool declare_drop_stale(struct query_engine *e)
{
    bool any = false;
    for (size_t i = e->ntables; i-- > 0;) {
        struct query_table *d = e->tables[i];
        struct fault none = {0};
        const struct table *t;
        struct memory_budget *was = query_leave(e);
        enum status st = declare_open(e, slice_str(d->name), &t, &none);
        if (query_return(e, was, st) != SQLITE_OK)
            return false;
        if (!t || !is_same(d, t))
            any |= drop(e, d) == SQLITE_OK;
    }
    return any;
}

struct query_table *declare_table(struct query_engine *e, const char *name)
{
    const struct table *t;
    struct memory_budget *was = query_leave(e);
    enum status st = declare_open(e, slice_str(name), &t, &e->fault);
    if (query_return(e, was, st) != SQLITE_OK || !t)
        return NULL;
    struct query_table *d = declared_table(e, name);
    if (d && !is_same(d, t)) {
        if (drop(e, d) != SQLITE_OK) {
            (void)query_refuse(e, FAULT_SQL, "table %s is in use", name);
            return NULL;
        }
        d = NULL;
    }
    if (!d)
        d = declare_anew(e, t);
    if (d)
        use(e, d, t);
    return d;
}
