#include "table/names.h"

#include <strings.h>

#include "base/arena.h"
#include "table/schema.h"

struct likeness {
    struct slice name, except;
    char found[SCHEMA_NAME_MAX + 1];
};

/* A view_key_fn. */
static enum status note_alike(void *arg, struct slice key, const struct key_row *row)
{
    struct likeness *l = arg;
    (void)row;
    if (key.n != l->name.n || slice_eq(key, l->name) || slice_eq(key, l->except) ||
        strncasecmp(key.p, l->name.p, key.n) != 0)
        return ST_OK;
    memcpy(l->found, key.p, key.n);
    return ST_STOP;
}

/* Of two servers that give two tables names alike, one waits for the other: each looks for the key that has
   the name in lower case, which locks it, before it lists the tables. */
static enum status lock_likeness(struct view *v, uint32_t db, struct slice name)
{
    const struct row *r;
    if (!view_shared(v))
        return ST_OK;
    char *lower = arena_alloc(view_arena(v), name.n);
    for (size_t i = 0; i < name.n; i++)
        lower[i] = (char)(name.p[i] >= 'A' && name.p[i] <= 'Z' ? name.p[i] - 'A' + 'a' : name.p[i]);
    return view_get(v, db, slice_of(lower, name.n), &r);
}

enum status table_name_check(struct view *v, uint32_t db, struct slice name, struct slice except,
                             struct fault *fault)
{
    struct likeness l = {.name = name, .except = except};
    if (!schema_name_ok(name)) {
        fault_set(fault, FAULT_SYNTAX,
                  "a table's name has 1 to %d of A-Z a-z 0-9 _, no digit first, and does not begin with "
                  "larder_ or sqlite_",
                  SCHEMA_NAME_MAX);
        return ST_OK;
    }
    enum status st = lock_likeness(v, db, name);
    if (st == ST_OK)
        st = view_each_table(v, db, note_alike, &l);
    if (st == ST_OK && l.found[0])
        fault_set(fault, FAULT_EXISTS, "there is a table %s, which differs by case alone", l.found);
    return st;
}

enum status table_move_check(struct view *v, const struct row *table, uint32_t from_db, struct slice from,
                             uint32_t to_db, struct slice to, struct fault *fault)
{
    if (from_db == to_db)
        return table_name_check(v, to_db, to, from, fault);
    struct arena arena = {0};
    struct schema s;
    struct error err;
    bool on_hashes = schema_decode(row_value(table), &arena, &s, &err) == ST_OK && s.on_hashes;
    arena_release(&arena);
    if (on_hashes) {
        fault_set(fault, FAULT_REFUSED, "a table over hashes stays in the database where they are");
        return ST_OK;
    }
    return table_name_check(v, to_db, to, (struct slice){NULL, 0}, fault);
}
