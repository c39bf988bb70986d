/* Making a table over hashes that may be there already.

   Up to FEW_HASHES of them are indexed in the call that makes the table: its indexes are ready at once. More
   are left to whoever builds indexes behind (INDEX_BUILDING): from the commit on every writer maintains them.
   Rows touched: the table's key and HIDDEN_KEPT; of few hashes their keys and fields, and their entries. A
   crash leaves all of it or nothing. */
#include "base/mem.h"
#include "base/vec.h"
#include "table/hashes/hashes_internal.h"

#define FEW_HASHES 1000

struct found {
    struct rows *r;
    struct table_row *rows;
    size_t n, cap;
    struct hash_list list;
};

static enum status note_row(void *arg, const struct item_row *item)
{
    struct found *f = arg;
    struct rows *r = f->r;
    struct slice name = arena_copy(r->arena, item->ref.name), value = arena_copy(r->arena, item->value);
    VEC_PUSH(f->rows, f->n, f->cap) = (struct table_row){0};
    return rowcode_decode(&r->table->schema, name, value, item->expire_at, r->arena, &f->rows[f->n - 1],
                          view_error(r->view));
}

/* The hashes that are there, as they are in the tables; at most one more than few. */
static enum status find_hashes(struct found *f)
{
    struct item_scan q = {.table = ITEM_ROW, .order = ITEMS_BY_NAME, .limit = FEW_HASHES + 1};
    return hashes_scan(f->r, &q, &f->list, note_row, f);
}

static enum status write_entries(struct rows *r, const struct found *f)
{
    const struct schema *s = &r->table->schema;
    struct buf name = {0};
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < f->n; i++) {
        for (size_t k = 0; st == ST_OK && k < s->nindexes; k++) {
            hashes_entry(s, &s->indexes[k], f->rows[i].values, &name);
            st = hashes_set_entry(r->view, r->table->id, buf_slice(&name), SLICE(""), true);
        }
    }
    buf_release(&name);
    return st == ST_OK ? hashes_list(r, &f->list) : st;
}

static enum status make_table(struct rows *r, uint32_t db, struct slice name, struct schema *s,
                              struct found *f, struct fault *fault)
{
    struct table planned = {.db = db, .name = name, .schema = *s};
    r->table = &planned;
    enum status st = find_hashes(f);
    r->table = NULL;
    bool few = f->n <= FEW_HASHES;
    if (st != ST_OK)
        return st;
    for (size_t i = 0; few && i < s->nindexes; i++)
        s->indexes[i].state = INDEX_READY;
    if ((st = table_create(r->view, db, name, s, fault)) != ST_OK || fault->kind)
        return st;
    if ((st = table_open(r->catalog, r->view, db, name, &r->table, fault)) != ST_OK || fault->kind)
        return st;
    return few ? write_entries(r, f) : ST_OK;
}

enum status hashes_create(struct rows *r, uint32_t db, struct slice name, struct schema *s, bool *ret_builds,
                          struct fault *fault)
{
    struct found f = {.r = r};
    *ret_builds = false;
    enum status st = hashes_check_room(r->view, fault);
    if (st != ST_OK || fault->kind)
        return st;
    st = make_table(r, db, name, s, &f, fault);
    *ret_builds = st == ST_OK && !fault->kind && f.n > FEW_HASHES && s->nindexes;
    mem_free(f.rows);
    return st;
}
