/* See alter.h. */
#include "table/build/alter.h"

#include <string.h>

#include "table/build/build.h"
#include "table/hashes/hashes.h"
#include "table/text/ddl.h"

#define CLEARED_MAX 100000 /* places in the lists of a table over hashes */

static bool has_number(const struct schema *s, uint16_t number)
{
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].number == number)
            return true;
    return false;
}

/* From the table's schema to another: builds what is new in it, discards what is not in it any more. */
static enum status change(struct rows *r, struct schema *to, bool *ret_builds, struct fault *fault)
{
    const struct schema *from = &r->table->schema;
    uint16_t *added = arena_alloc(r->arena, (to->nindexes + 1) * sizeof *added);
    size_t n = 0;
    struct build_entries *entries;
    for (size_t i = 0; i < to->nindexes; i++)
        if (!has_number(from, to->indexes[i].number))
            added[n++] = to->indexes[i].number;
    enum status st = build_prepare(r, to, added, n, &entries, fault);
    if (st == ST_OK && !fault->kind)
        st = table_change(r->view, r->table, to, fault);
    if (st == ST_OK && !fault->kind)
        st = build_write(r, entries);
    for (size_t i = 0; st == ST_OK && !fault->kind && i < from->nindexes; i++)
        if (!has_number(to, from->indexes[i].number))
            st = build_discard(r, from->indexes[i].number);
    *ret_builds = build_due(to) != NULL;
    return st;
}

enum status table_alter(struct rows *r, struct slice text, bool *ret_builds, struct fault *fault)
{
    struct schema to;
    enum alter_kind kind;
    uint16_t number;
    *ret_builds = false;
    if (!ddl_alter(text, &r->table->schema, r->arena, &to, &kind, &number, fault))
        return ST_OK;
    return change(r, &to, ret_builds, fault);
}

/* Gives an index another number. */
static bool renumber(struct schema *s, struct table_index *i, struct fault *fault)
{
    if (s->next_index > SCHEMA_NUMBER_MAX)
        return fault_set(fault, FAULT_REFUSED, "the table has had %d indexes, and can have no more",
                         SCHEMA_NUMBER_MAX);
    i->number = s->next_index++;
    i->state = INDEX_BUILDING;
    i->error = SLICE("");
    return true;
}

enum status table_rebuild(struct rows *r, struct slice index, bool *ret_builds, struct fault *fault)
{
    struct schema to = r->table->schema;
    int only = index.p ? schema_index(&to, index) : -1;
    *ret_builds = false;
    if (index.p && only < 0) {
        fault_set(fault, FAULT_NO_INDEX, "no index %.*s", (int)(index.n < 80 ? index.n : 80), index.p);
        return ST_OK;
    }
    to.indexes = arena_alloc(r->arena, (to.nindexes + 1) * sizeof *to.indexes);
    memcpy(to.indexes, r->table->schema.indexes, to.nindexes * sizeof *to.indexes);
    for (size_t i = 0; i < to.nindexes; i++)
        if ((only < 0 || (size_t)only == i) && !renumber(&to, &to.indexes[i], fault))
            return ST_OK;
    if (to.on_hashes && only < 0) { /* what the walk finds is listed again */
        enum status st = hashes_clear_lists(r, CLEARED_MAX);
        if (st != ST_OK)
            return st;
    }
    return change(r, &to, ret_builds, fault);
}
