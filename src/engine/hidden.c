#include "engine/hidden.h"

#include "engine/coll.h"
#include "engine/view_internal.h"
#include "store/shared.h"

#define NO_HASH "the row of scripts or of functions is no hash"

struct slice hidden_name(enum hidden_row r)
{
    switch (r) {
    case HIDDEN_LIBRARIES:
        return SLICE("functions");
    case HIDDEN_SCRIPTS:
        return SLICE("scripts");
    case HIDDEN_FLUSHES:
        return SLICE("script-flushes");
    case HIDDEN_KEPT:
        break;
    }
    return SLICE("kept");
}

static struct key_ref ref_of(enum hidden_row r)
{
    return (struct key_ref){STORE_HIDDEN_DB, hidden_name(r)};
}

/* Behind the clients' databases, where nothing that walks over those comes to. */
uint32_t view_hidden_db(const struct view *v)
{
    return v->dbs.n;
}

void view_peek(struct view *v, enum hidden_row r)
{
    if (store_shared(v->store))
        v->hidden.peeked |= 1u << r;
    else
        view_declare(v, view_hidden_db(v), hidden_name(r));
}

void view_declare_libraries(struct view *v)
{
    if (!v->store->certified)
        view_declare_everything(v);
}

size_t view_peeked(struct view *v, const struct key_ref **ret)
{
    size_t n = 0;
    for (unsigned r = 0; r < HIDDEN_ROWS; r++)
        if (v->hidden.peeked & 1u << r)
            v->hidden.refs[n++] = ref_of((enum hidden_row)r);
    *ret = v->hidden.refs;
    return n;
}

struct locked {
    int64_t seq, version;
};

static enum status take_locked(void *arg, const struct key_row *k)
{
    *(struct locked *)arg = (struct locked){k->seq, k->version};
    return ST_OK;
}

enum status view_hold(struct view *v, enum hidden_row r)
{
    struct key_ref ref = ref_of(r);
    struct locked now = {0, 0};
    struct row *seen;
    if (!(v->hidden.unheld & 1u << r))
        return ST_OK;
    enum status st = store_get_keys(v->store, &ref, 1, take_locked, &now, v->call.err);
    if (st != ST_OK || (st = view_row(v, ref.db, ref.key, &seen)) != ST_OK)
        return st;
    if (seen->seq != now.seq || seen->version != now.version)
        return error_set(v->call.err, ST_CONFLICT, "what this transaction has seen of '%.*s' has changed",
                         (int)ref.key.n, ref.key.p);
    v->hidden.unheld &= ~(1u << r);
    return ST_OK;
}

enum status view_hidden_field(struct view *v, enum hidden_row r, struct slice name, bool *ret_found,
                              struct slice *ret)
{
    struct row *row;
    struct item_row item;
    *ret_found = false;
    enum status st = view_row(v, STORE_HIDDEN_DB, hidden_name(r), &row);
    if (st != ST_OK || row->type == ROW_NONE)
        return st;
    if (row->type != ROW_HASH)
        return error_set(v->call.err, ST_CORRUPT, NO_HASH);
    struct item_ref ref = {.table = ITEM_HASH, .id = row_items(row).id, .name = name};
    st = view_item(v, &ref, ret_found, &item);
    if (st == ST_OK && *ret_found)
        *ret = item.value;
    return st;
}

/* Where changes are not made alone, this one waits for them. */
static enum status hold_to_read(struct view *v, enum hidden_row r)
{
    return v->store->certified ? view_hold(v, r) : ST_OK;
}

enum status view_hidden_hash(struct view *v, enum hidden_row r, bool make, struct coll **ret)
{
    bool wrong = false, counts = v->call.counts_lookups;
    enum status st = hold_to_read(v, r);
    if (st != ST_OK)
        return st;
    v->call.counts_lookups = false;
    st = (make ? coll_make : coll_open)(v, view_hidden_db(v), hidden_name(r), ROW_HASH, ret, &wrong);
    v->call.counts_lookups = counts;
    return st == ST_OK && wrong ? error_set(v->call.err, ST_CORRUPT, NO_HASH) : st;
}

enum status view_stamp(struct view *v, enum hidden_row r, struct hidden_stamp *ret)
{
    struct row *row;
    enum status st = view_row(v, STORE_HIDDEN_DB, hidden_name(r), &row);
    if (st == ST_OK)
        *ret = (struct hidden_stamp){v, v->hidden.undone, row->type == ROW_NONE ? 0 : row->version};
    return st;
}
