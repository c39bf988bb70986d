/* Which order of a table answers a statement best: the primary key's or that of an index that is ready. The
   first columns of the order may equal something, the next one may have bounds, and the order may be the one
   that ORDER BY wants. SQLite looks at every condition again (omit is never set). */
#include "query/plan.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "query/query_internal.h"
#include "table/find.h"

#define ROWS_GUESS 100000.0

/* ---- a plan as a number ---- */

int plan_pack(const struct plan *p)
{
    unsigned n = p->index | (unsigned)p->neq << 15 | (unsigned)p->low << 20 | (unsigned)p->high << 22 |
                 (unsigned)p->prefix << 24 | (unsigned)p->limit << 25 | (unsigned)p->reverse << 26 |
                 (unsigned)p->keys_only << 27 | (unsigned)p->last_null << 28 | (unsigned)p->strict << 29;
    return (int)n;
}

struct plan plan_unpack(int number)
{
    unsigned n = (unsigned)number;
    return (struct plan){.index = n & 0x7fff,
                         .neq = n >> 15 & 0x1f,
                         .low = n >> 20 & 3,
                         .high = n >> 22 & 3,
                         .prefix = n >> 24 & 1,
                         .limit = n >> 25 & 1,
                         .reverse = n >> 26 & 1,
                         .keys_only = n >> 27 & 1,
                         .last_null = n >> 28 & 1,
                         .strict = n >> 29 & 1};
}

const struct key_part *plan_parts(const struct schema *s, const struct table_index *i, size_t *ret_n)
{
    *ret_n = i ? i->nparts : s->nkey;
    return i ? i->parts : s->key;
}

const struct table_index *plan_index(const struct schema *s, uint16_t number)
{
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].number == number && s->indexes[i].state == INDEX_READY)
            return &s->indexes[i];
    return NULL;
}

/* ---- choosing ---- */

/* One order, with the places of the conditions that it uses (-1: none). */
struct candidate {
    const struct table_index *index;
    struct plan plan;
    int eq[SCHEMA_PARTS_MAX];
    int low, high, prefix;
    bool unique, ordered;
    double rows, cost;
};

static bool binary(sqlite3_index_info *info, int i)
{
    const char *collation = sqlite3_vtab_collation(info, i);
    return collation && strcasecmp(collation, "BINARY") == 0;
}

/* The place of a condition on a column, with one of these operators. */
static int condition(sqlite3_index_info *info, const struct schema *s, uint16_t column, int op, int or_op)
{
    bool text = s->columns[column].type == COLUMN_TEXT;
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        if (c->usable && c->iColumn == column && (c->op == op || c->op == or_op) &&
            (!text || binary(info, i)))
            return i;
    }
    return -1;
}

static void use_conditions(sqlite3_index_info *info, const struct schema *s, struct candidate *c)
{
    size_t n;
    const struct key_part *parts = plan_parts(s, c->index, &n);
    c->low = c->high = c->prefix = -1;
    while (c->plan.neq < n && !c->plan.last_null) {
        uint16_t column = parts[c->plan.neq].column;
        int at = condition(info, s, column, SQLITE_INDEX_CONSTRAINT_EQ, SQLITE_INDEX_CONSTRAINT_EQ);
        if (at < 0) {
            at = condition(info, s, column, SQLITE_INDEX_CONSTRAINT_ISNULL, SQLITE_INDEX_CONSTRAINT_ISNULL);
            c->plan.last_null = at >= 0;
        }
        if (at < 0)
            break;
        c->eq[c->plan.neq++] = at;
    }
    if (c->plan.neq == n || c->plan.last_null)
        return;
    uint16_t column = parts[c->plan.neq].column;
    c->low = condition(info, s, column, SQLITE_INDEX_CONSTRAINT_GT, SQLITE_INDEX_CONSTRAINT_GE);
    c->high = condition(info, s, column, SQLITE_INDEX_CONSTRAINT_LT, SQLITE_INDEX_CONSTRAINT_LE);
    if (c->low >= 0)
        c->plan.low =
            info->aConstraint[c->low].op == SQLITE_INDEX_CONSTRAINT_GE ? PLAN_INCLUSIVE : PLAN_EXCLUSIVE;
    if (c->high >= 0)
        c->plan.high =
            info->aConstraint[c->high].op == SQLITE_INDEX_CONSTRAINT_LE ? PLAN_INCLUSIVE : PLAN_EXCLUSIVE;
    if (c->low < 0 && c->high < 0 && s->columns[column].type == COLUMN_TEXT)
        c->prefix = condition(info, s, column, SQLITE_INDEX_CONSTRAINT_GLOB, SQLITE_INDEX_CONSTRAINT_GLOB);
    c->plan.prefix = c->prefix >= 0;
}

/* Part i of the whole order: behind an index's own columns come those of the primary key. */
static const struct key_part *order_part(const struct schema *s, const struct table_index *index, size_t i)
{
    size_t n;
    const struct key_part *parts = plan_parts(s, index, &n);
    if (i < n)
        return &parts[i];
    if (!index)
        return NULL;
    i -= n;
    for (size_t k = 0; k < s->nkey; k++) {
        bool among = false;
        for (size_t p = 0; p < n; p++)
            among |= parts[p].column == s->key[k].column;
        if (!among && i-- == 0)
            return &s->key[k];
    }
    return NULL;
}

static bool is_constant(const struct schema *s, const struct candidate *c, int column)
{
    for (size_t i = 0; i < c->plan.neq; i++)
        if (order_part(s, c->index, i)->column == column)
            return true;
    return false;
}

/* Whether rows come in the order that is asked for, or, all of it, against it. */
static bool gives_order(const sqlite3_index_info *info, const struct schema *s, struct candidate *c)
{
    size_t next = c->plan.neq;
    int reverse = -1;
    for (int i = 0; i < info->nOrderBy; i++) {
        const struct sqlite3_index_orderby *o = &info->aOrderBy[i];
        if (is_constant(s, c, o->iColumn))
            continue;
        const struct key_part *part = order_part(s, c->index, next);
        if (!part)
            break; /* no two rows are equal up to here */
        int against = (o->desc != 0) != part->desc;
        if (part->column != o->iColumn || (reverse >= 0 && reverse != against))
            return false;
        reverse = against;
        next++;
        while ((part = order_part(s, c->index, next)) && is_constant(s, c, part->column))
            next++;
    }
    c->plan.reverse = reverse == 1;
    return info->nOrderBy > 0;
}

/* Whether an order's names hold all that the statement reads. */
static bool covers(const sqlite3_index_info *info, const struct schema *s, const struct table_index *index)
{
    for (size_t i = 0; i < s->ncolumns + 3; i++) {
        uint64_t bit = (uint64_t)1 << (i < 63 ? i : 63);
        if (!(info->colUsed & bit))
            continue;
        if (i == s->ncolumns)
            continue; /* the row's own key */
        if (i > s->ncolumns || !find_holds(s, index, (uint16_t)i))
            return false;
    }
    return true;
}

static void estimate(const sqlite3_index_info *info, const struct schema *s, struct candidate *c, bool limit)
{
    size_t n;
    (void)plan_parts(s, c->index, &n);
    bool primary = !c->index;
    c->unique = c->plan.neq == n && !c->plan.last_null && (primary || c->index->unique);
    c->rows = c->unique ? 1 : ROWS_GUESS / pow(c->plan.neq == n ? 1000 : 100, c->plan.neq);
    if (c->plan.prefix)
        c->rows /= 20;
    c->rows /= (c->low >= 0 ? 4 : 1) * (c->high >= 0 ? 4 : 1);
    if (c->rows < 1)
        c->rows = 1;
    c->cost = c->rows * (primary || c->plan.keys_only ? 1 : 2.5) + 1;
    /* Sorting is SQLite's cost, but whoever compares orders has to know it. */
    if (info->nOrderBy > 0 && !c->ordered)
        c->cost += c->rows * (limit ? 20 : 1);
}

static void consider(sqlite3_index_info *info, const struct schema *s, const struct table_index *index,
                     bool limit, struct candidate *best)
{
    struct candidate c = {.index = index, .plan.index = index ? index->number : 0};
    use_conditions(info, s, &c);
    c.ordered = gives_order(info, s, &c);
    c.plan.keys_only = !s->on_hashes && covers(info, s, index);
    estimate(info, s, &c, limit);
    if (best->cost == 0 || c.cost < best->cost)
        *best = c;
}

/* ---- telling SQLite ---- */

static void say_condition(struct buf *out, const struct column *c, const char *op, bool first)
{
    buf_addf(out, "%s%.*s%s", first ? "" : " AND ", (int)c->name.n, c->name.p, op);
}

static char *explain(const struct schema *s, const struct candidate *c)
{
    struct buf out = {0};
    size_t n;
    const struct key_part *parts = plan_parts(s, c->index, &n);
    if (c->index)
        buf_add_slice(&out, c->index->name);
    else
        buf_addf(&out, "PRIMARY KEY");
    buf_addf(&out, "(");
    size_t start = out.len;
    for (size_t i = 0; i < c->plan.neq; i++)
        say_condition(&out, &s->columns[parts[i].column],
                      c->plan.last_null && i + 1 == c->plan.neq ? " IS NULL" : "=?", i == 0);
    if (c->plan.neq < n) {
        const struct column *next = &s->columns[parts[c->plan.neq].column];
        if (c->plan.low)
            say_condition(&out, next, c->plan.low == PLAN_EXCLUSIVE ? ">?" : ">=?", out.len == start);
        if (c->plan.high)
            say_condition(&out, next, c->plan.high == PLAN_EXCLUSIVE ? "<?" : "<=?", out.len == start);
        if (c->plan.prefix)
            say_condition(&out, next, " GLOB ?", out.len == start);
    }
    if (out.len == start)
        out.len--; /* all of it */
    else
        buf_addf(&out, ")");
    if (c->plan.reverse)
        buf_addf(&out, " DESC");
    if (c->plan.keys_only)
        buf_addf(&out, " COVERING");
    char *text = sqlite3_mprintf("%.*s", (int)out.len, out.p);
    buf_release(&out);
    return text;
}

static void take_value(sqlite3_index_info *info, int at, int *argc)
{
    if (at >= 0)
        info->aConstraintUsage[at].argvIndex = ++*argc;
}

int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    const struct query_table *t = (const struct query_table *)vtab;
    if (!t->table || t->run != t->e->clock)
        return SQLITE_SCHEMA;
    const struct schema *s = &t->table->schema;
    struct candidate best = {0};
    int limit = -1, argc = 0;
    for (int i = 0; i < info->nConstraint; i++)
        if (info->aConstraint[i].usable && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT)
            limit = i;
    consider(info, s, NULL, limit >= 0, &best);
    for (size_t i = 0; i < s->nindexes; i++)
        if (s->indexes[i].state == INDEX_READY)
            consider(info, s, &s->indexes[i], limit >= 0, &best);
    for (size_t i = 0; i < best.plan.neq; i++)
        take_value(info, best.eq[i], &argc);
    take_value(info, best.low, &argc);
    take_value(info, best.high, &argc);
    take_value(info, best.prefix, &argc);
    take_value(info, limit, &argc);
    best.plan.limit = limit >= 0;
    best.ordered &= !t->e->lax;
    best.unique &= !t->e->lax;
    best.plan.strict = best.ordered || best.unique;
    info->idxNum = plan_pack(&best.plan);
    info->idxStr = explain(s, &best);
    info->needToFreeIdxStr = 1;
    info->orderByConsumed = best.ordered;
    info->estimatedCost = best.cost;
    info->estimatedRows = (sqlite3_int64)best.rows;
    info->idxFlags = best.unique ? SQLITE_INDEX_SCAN_UNIQUE : 0;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}
