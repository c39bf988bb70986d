/* What a view tells its keeper of, see keeper.h. */
#include "engine/view_keep.h"

#include "engine/coll_internal.h"
#include "engine/keeper.h"
#include "store/shared.h"

#define ALONE_TRIES 64   /* writing transactions that are alone for the sake of one that has to be */
#define DUE_LOOKED  1000 /* hashes whose time has come: among more of them one is taken to be meant */

void view_set_keeper(struct view *v, const struct view_keeper *keeper)
{
    v->keep.by = keeper;
    keep_forget(&v->keep);
}

enum status view_keeps_any(struct view *v, bool *ret)
{
    struct row *list;
    enum status st = ST_OK;
    if (v->keep.state == KEEP_UNKNOWN) {
        st = view_row(v, STORE_HIDDEN_DB, hidden_name(HIDDEN_KEPT), &list);
        if (st == ST_OK)
            v->keep.state = list->type == ROW_NONE ? KEEP_NOTHING : KEEP_SOME;
    }
    *ret = v->keep.state == KEEP_SOME;
    return st;
}

uint64_t view_kept_epoch(const struct view *v)
{
    return v->keep.epoch;
}

/* A transaction that has to be alone is not: it is run again, and then it will be. */
static enum status be_alone(struct view *v, const char *why)
{
    if (!view_shared(v) || v->keep.is_alone || v->store->certified)
        return ST_OK;
    v->keep.alone = ALONE_TRIES;
    return error_set(v->call.err, ST_CONFLICT, "%s, and other transactions write", why);
}

enum status view_one_state(struct view *v)
{
    bool changes = v->keep.by && v->keep.writes;
    enum status st = changes ? be_alone(v, "one state is read in several steps") : ST_OK;
    if (st == ST_OK)
        v->keep.alone = 0;
    return st;
}

void view_peek_kept(struct view *v)
{
    if (!v->keep.by)
        return;
    view_peek(v, HIDDEN_KEPT);
    if (v->keep.alone) {
        v->keep.alone--;
        view_declare_everything(v);
    }
}

enum status view_keep(struct view *v, struct slice list)
{
    enum status st = be_alone(v, "a table over hashes changes");
    if (st == ST_OK)
        st = view_hold(v, HIDDEN_KEPT);
    if (st != ST_OK)
        return st;
    v->keep.alone = 0;
    struct row_draft d = {.type = ROW_STRING, .value = list};
    st = view_put(v, view_hidden_db(v), hidden_name(HIDDEN_KEPT), &d);
    keep_forget(&v->keep);
    return st;
}

void view_note_undone(struct view *v, uint32_t number)
{
    if (number == STORE_HIDDEN_DB) {
        v->hidden.undone++;
        keep_forget(&v->keep);
    }
}

uint32_t view_number(const struct view *v, uint32_t db)
{
    return v->dbs.rows[db].number;
}

bool view_uses_number(const struct view *v, uint32_t number)
{
    for (uint32_t i = 0; i < v->dbs.n; i++)
        if (v->dbs.rows[i].number == number)
            return true;
    return false;
}

enum status view_row_of(struct view *v, uint32_t number, struct slice key, const struct row **ret)
{
    struct row *r;
    enum status st = view_row(v, number, key, &r);
    *ret = st == ST_OK ? r : NULL;
    return st;
}

/* ---- keys ---- */

/* A hash as a whole: it is, or will be, under this key. */
static enum status tell(struct view *v, uint32_t number, struct slice key, const struct row_ext *items,
                        enum keep_change what)
{
    const struct kept *kept;
    struct coll *c;
    enum status st = v->keep.by->find(v->keep.by->arg, v, number, key, &kept);
    if (st != ST_OK || !kept)
        return st;
    if ((st = coll_of_items(v, key, items, &c)) != ST_OK)
        return st;
    return v->keep.by->change(v->keep.by->arg, v, kept, key, c, what);
}

enum status view_keep_key(struct view *v, const struct row *was, const struct key_row *now)
{
    struct row_ext old = row_items(was);
    struct row_ext fresh = {.id = now->id, .size = now->size, .first = now->first, .numbers = now->numbers};
    bool hash = was->type == ROW_HASH, becomes_hash = now->type == ROW_HASH, any;
    if (!v->keep.by || now->db == STORE_HIDDEN_DB)
        return ST_OK;
    enum status st = ST_OK;
    if (was->type == ROW_TABLE || now->type == ROW_TABLE)
        st = v->keep.by->table(v->keep.by->arg, v, was, now);
    if (st != ST_OK || (!hash && !becomes_hash) || (hash && becomes_hash && old.id == now->id))
        return st;
    if ((st = view_keeps_any(v, &any)) != ST_OK || !any)
        return st;
    if (hash)
        st = tell(v, row_db(was), row_key(was), &old, KEEP_VANISHES);
    if (st == ST_OK && becomes_hash)
        st = tell(v, now->db, now->key, &fresh, KEEP_APPEARS);
    return st;
}

/* ---- fields ---- */

static const struct field_note *noted(const struct coll *c, struct slice name)
{
    const struct field_note *n = c->notes;
    while (n && !slice_eq(n->name, name))
        n = n->next;
    return n;
}

/* What is kept of the hash of a handle. */
static enum status find_kept(struct coll *c)
{
    bool any;
    enum status st = view_keeps_any(c->v, &any);
    if (st == ST_OK && any)
        st = c->v->keep.by->find(c->v->keep.by->arg, c->v, c->v->dbs.rows[c->db].number, c->key, &c->kept);
    c->kept_known = st == ST_OK;
    return st;
}

enum status coll_note(struct coll *c, struct slice name, const struct coll_item *old)
{
    enum status st = c->kept_known ? ST_OK : find_kept(c);
    if (st != ST_OK || !c->kept || !c->v->keep.by->has(c->kept, c->key, name) || noted(c, name))
        return st;
    struct field_note *n = arena_alloc(&c->v->call.scratch, sizeof *n);
    *n = (struct field_note){.next = c->notes, .name = arena_copy(&c->v->call.scratch, name)};
    n->found = old != NULL;
    if (old)
        n->value = arena_copy(&c->v->call.scratch, old->value);
    c->notes = n;
    return ST_OK;
}

enum status coll_tell(struct coll *c)
{
    const struct view_keeper *by = c->v->keep.by;
    enum status st = by->change(by->arg, c->v, c->kept, c->key, c, KEEP_FIELDS);
    c->notes = NULL;
    return st;
}

enum status coll_field_now(struct coll *c, struct slice name, bool *ret_found, struct slice *ret)
{
    struct coll_item item;
    enum status st = coll_find_stored(c, name, ret_found, &item);
    if (st == ST_OK && *ret_found)
        *ret = item.value;
    return st;
}

enum status coll_field_before(struct coll *c, struct slice name, bool *ret_found, struct slice *ret)
{
    const struct field_note *n = noted(c, name);
    if (!n)
        return coll_field_now(c, name, ret_found, ret);
    *ret_found = n->found;
    *ret = n->value;
    return ST_OK;
}

bool coll_field_changed(const struct coll *c, struct slice name)
{
    return noted(c, name) != NULL;
}

/* ---- fields that have expired ---- */

struct due {
    uint32_t number;
    struct slice prefix;
    uint32_t looked;
    bool found;
};

static bool starts_with(struct slice key, struct slice prefix)
{
    return key.n >= prefix.n && memcmp(key.p, prefix.p, prefix.n) == 0;
}

static enum status note_due(void *arg, const struct key_row *k)
{
    struct due *d = arg;
    d->looked++;
    d->found |= k->db == d->number && starts_with(k->key, d->prefix);
    return ST_OK;
}

enum status view_any_due(struct view *v, uint32_t db, struct slice prefix, bool *ret)
{
    struct due d = {.number = v->dbs.rows[db].number, .prefix = prefix};
    struct key_scan q = {.order = KEYS_DUE, .now = view_now(v), .limit = DUE_LOOKED};
    enum status st = view_flush(v);
    if (st == ST_OK)
        st = store_scan_keys(v->store, &q, note_due, &d, v->call.err);
    *ret = d.found || d.looked == DUE_LOOKED;
    return st;
}
