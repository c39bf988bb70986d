#include "engine/coll.h"

#include <assert.h>

#include "base/num.h"
#include "engine/coll_internal.h"
#include "store/item_tables.h"

#define RESIDENT_BYTES (1u << 20) /* few but huge items stay in the tables */
#define WHOLE_PAGE     128        /* a scan returns a collection up to this size at once, as Redis does */

/* ---- opening and saving ---- */

static enum status load_item(void *arg, const struct item_row *row)
{
    struct memo *m = arg;
    resident_append(&m->members, row);
    return memo_bytes(m) > RESIDENT_BYTES ? ST_STOP : ST_OK;
}

/* Notes that a collection of few but huge items stays in the tables. */
static void add_oversize(struct coll *c)
{
    struct memo *m = memo_new(c->id);
    m->oversize = true;
    memos_add(&c->v->memos, m);
}

static void use_members(struct coll *c, struct memo *m)
{
    c->memo = m;
    c->res = &m->members;
}

/* Reads a small collection into memory. */
static enum status load(struct coll *c)
{
    struct memo *m = memo_new_members(c->id, c->table);
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = c->table == ITEM_LIST ? ITEMS_BY_POS : ITEMS_BY_ORD,
        .limit = UINT32_MAX,
    };
    enum status st = view_scan_items(c->v, &q, load_item, m);
    if (st == ST_OK && memo_bytes(m) > RESIDENT_BYTES) {
        memo_free(m);
        add_oversize(c);
        return ST_OK;
    }
    if (st == ST_OK && (int64_t)m->members.size != c->size)
        st = error_set(c->v->call.err, ST_CORRUPT, "a key says %lld items but %zu were found",
                       (long long)c->size, m->members.size);
    if (st != ST_OK) {
        memo_free(m);
        return st;
    }
    memos_add(&c->v->memos, m);
    if (view_has_changes(c->v)) /* it may hold what the batch wrote, and is gone when the batch is */
        memos_touch(&c->v->memos, m);
    use_members(c, m);
    return ST_OK;
}

static enum status attach(struct coll *c)
{
    struct memo *m = memos_find(&c->v->memos, c->id);
    if (m && !m->has_members && !m->oversize && c->size <= COLL_RESIDENT_LOAD) {
        memos_drop(&c->v->memos, m); /* the collection has become small enough for memory */
        m = NULL;
    }
    if (m) {
        if (m->has_members)
            use_members(c, m);
        if (m->touched)
            view_saw(c->v, c->v->batch.ticket);
        return ST_OK;
    }
    return c->size <= COLL_RESIDENT_LOAD ? load(c) : ST_OK;
}

static struct coll *handle(struct view *v, uint32_t db, struct slice key, enum row_type type)
{
    struct coll *c = arena_alloc(&v->call.scratch, sizeof *c);
    *c = (struct coll){
        .v = v, .db = db, .key = key, .type = type, .table = item_table_of(type), .form = FORM_SMALL};
    return c;
}

enum status coll_of_row(struct view *v, uint32_t db, const struct row *r, struct coll **ret)
{
    struct coll *c = handle(v, db, row_key(r), (enum row_type)r->type);
    struct row_ext e = row_items(r);
    c->id = c->row_id = e.id;
    c->size = e.size;
    c->first = e.first;
    c->expire_at = r->expire_at;
    c->form = (enum row_form)r->form;
    *ret = c;
    enum status st = attach(c);
    c->due = c->type == ROW_HASH && view_hash_due(v, &e);
    return st == ST_OK && c->due ? view_expired_fields(v, &e, &c->expired) : st;
}

enum status coll_of_items(struct view *v, struct slice key, const struct row_ext *items, struct coll **ret)
{
    struct coll *c = handle(v, 0, key, ROW_HASH);
    c->id = c->row_id = items->id;
    c->size = items->size;
    c->first = items->first;
    *ret = c;
    return attach(c);
}

enum status coll_open(struct view *v, uint32_t db, struct slice key, enum row_type type, struct coll **ret,
                      bool *ret_wrong)
{
    const struct row *r;
    *ret = NULL;
    *ret_wrong = false;
    enum status st = view_get(v, db, key, &r);
    if (st != ST_OK || !r)
        return st;
    if (r->type != type) {
        *ret_wrong = true;
        return ST_OK;
    }
    st = coll_of_row(v, db, r, ret);
    if (*ret)
        (*ret)->key = key;
    return st;
}

enum status coll_make(struct view *v, uint32_t db, struct slice key, enum row_type type, struct coll **ret,
                      bool *ret_wrong)
{
    enum status st = coll_open(v, db, key, type, ret, ret_wrong);
    if (st == ST_OK && !*ret && !*ret_wrong)
        *ret = handle(v, db, key, type);
    return st;
}

enum status coll_replace(struct view *v, uint32_t db, struct slice key, enum row_type type, struct coll **ret)
{
    *ret = handle(v, db, key, type);
    (*ret)->replaces = true;
    return ST_OK;
}

enum status coll_prepare(struct coll *c)
{
    c->dirty = true;
    if (c->id)
        return ST_OK;
    enum status st = view_new_id(c->v, &c->id);
    if (st == ST_OK) {
        use_members(c, memo_new_members(c->id, c->table));
        memos_add(&c->v->memos, c->memo);
        memos_touch(&c->v->memos, c->memo);
    }
    return st;
}

/* A collection that has outgrown memory goes on in the tables. */
static void outgrow(struct coll *c)
{
    if (!c->res || (c->res->size <= COLL_RESIDENT_MAX && memo_bytes(c->memo) <= RESIDENT_BYTES))
        return;
    memos_drop(&c->v->memos, c->memo);
    c->memo = NULL;
    c->res = NULL;
    if (c->size <= COLL_RESIDENT_LOAD)
        add_oversize(c);
}

enum status coll_save(struct coll *c)
{
    enum status st = c->notes ? coll_tell(c) : ST_OK;
    if (st != ST_OK)
        return st;
    if (coll_size(c) == 0)
        return c->dirty || c->replaces ? view_del(c->v, c->db, c->key, NULL) : ST_OK;
    if (!c->dirty)
        return ST_OK;
    outgrow(c);
    if (c->type == ROW_ZSET && (st = coll_zset_settle(c)) != ST_OK)
        return st;
    struct row_draft d = {
        .type = c->type,
        .id = c->id,
        .size = c->size,
        .first = c->first,
        .expire_at = c->expire_at,
        .form = c->form,
    };
    c->dirty = c->replaces = false;
    c->row_id = c->id;
    if (c->due)
        coll_keep_expired(c);
    return view_put(c->v, c->db, c->key, &d);
}

int64_t coll_size(const struct coll *c)
{
    return c->size - c->expired;
}

enum row_form coll_form(const struct coll *c)
{
    return c->form;
}

void coll_set_form(struct coll *c, enum row_form form)
{
    c->form = form;
}

void coll_touch(struct coll *c)
{
    c->dirty = true;
}

/* ---- by name ---- */

struct coll_item coll_from_member(const struct member *m)
{
    return (struct coll_item){
        .name = member_name(m),
        .value = member_value(m),
        .score = m->score,
        .expire_at = m->expire_at,
        .ord = m->ord,
    };
}

static struct coll_item from_row(const struct item_row *row)
{
    return (struct coll_item){
        .name = row->ref.name,
        .value = row->value,
        .score = row->score,
        .expire_at = row->expire_at,
        .ord = row->ord,
    };
}

/* Until when a field must have expired to be hidden: 0 while none has. */
static int64_t hide_until(const struct coll *c)
{
    return c->expired ? view_now(c->v) : 0;
}

static bool hidden(const struct coll *c, const struct coll_item *item)
{
    int64_t until = hide_until(c);
    return until && item->expire_at != EXPIRE_NEVER && item->expire_at <= until;
}

enum status coll_find_stored(struct coll *c, struct slice name, bool *ret_found, struct coll_item *ret)
{
    *ret_found = false;
    if (c->size == 0)
        return ST_OK;
    if (c->res) {
        const struct member *m = resident_find(c->res, name);
        if (m) {
            *ret_found = true;
            *ret = coll_from_member(m);
        }
        return ST_OK;
    }
    struct item_ref ref = {.table = c->table, .id = c->id, .name = name};
    struct item_row row;
    enum status st = view_item(c->v, &ref, ret_found, &row);
    if (st == ST_OK && *ret_found)
        *ret = from_row(&row);
    return st;
}

enum status coll_find(struct coll *c, struct slice name, bool *ret_found, struct coll_item *ret)
{
    enum status st = coll_find_stored(c, name, ret_found, ret);
    if (st == ST_OK && *ret_found && hidden(c, ret))
        *ret_found = false;
    return st;
}

enum status coll_has(struct coll *c, const struct slice *names, size_t n, bool *ret)
{
    if (!c->res && c->size)
        return view_has_items(c->v, c->table, c->id, names, n, ret);
    for (size_t i = 0; i < n; i++)
        ret[i] = c->size && resident_find(c->res, names[i]);
    return ST_OK;
}

static struct item_row to_row(const struct coll *c, const struct coll_item *item, int64_t ord)
{
    return (struct item_row){
        .ref = {.table = c->table, .id = c->id, .name = item->name},
        .value = item->value,
        .score = item->score,
        .expire_at = item->expire_at,
        .ord = ord,
    };
}

bool coll_item_is_small(const struct coll *c, const struct coll_item *item)
{
    int64_t n;
    const struct form_limit *limit = view_form_limit(c->v, c->type);
    if (c->type == ROW_SET)
        return num_parse_i64(item->name, &n);
    return item->name.n <= limit->bytes && item->value.n <= limit->bytes;
}

/* Where Redis would give up the compact form, for good: it looks at what is added, and for a hash at what is
   replaced as well. */
static void note_form(struct coll *c, const struct coll_item *item, bool added)
{
    if (c->form == FORM_LARGE || (!added && c->type != ROW_HASH))
        return;
    if (coll_size(c) > view_form_limit(c->v, c->type)->items || !coll_item_is_small(c, item))
        c->form = FORM_LARGE;
}

/* A field in the place of an expired one takes over its row. */
static enum status revive(struct coll *c, struct slice name, struct coll_item *room,
                          const struct coll_item **ret_old)
{
    bool found = false;
    enum status st = c->expired ? coll_find_stored(c, name, &found, room) : ST_OK;
    if (st != ST_OK || !found)
        return st;
    assert(hidden(c, room));
    *ret_old = room;
    c->expired--;
    return ST_OK;
}

enum status coll_put_known(struct coll *c, const struct coll_item *item, const struct coll_item *old)
{
    struct coll_item room;
    enum status st = coll_prepare(c);
    if (st == ST_OK && !old)
        st = revive(c, item->name, &room, &old);
    if (item->expire_at != EXPIRE_NEVER && (c->first_expiry == 0 || item->expire_at < c->first_expiry))
        c->first_expiry = item->expire_at;
    if (st == ST_OK && c->type == ROW_ZSET)
        st = coll_zset_change(c, old, item);
    if (st == ST_OK && coll_notes(c))
        st = coll_note(c, item->name, old);
    if (st != ST_OK)
        return st;
    struct item_row row = to_row(c, item, old ? old->ord : c->size);
    st = old ? view_put_item(c->v, &row) : view_add_item(c->v, &row);
    if (old)
        COLL_RESIDENT(c, resident_update(c->res, resident_find(c->res, item->name), item->value, item->score,
                                         item->expire_at));
    else
        COLL_RESIDENT(c, resident_append(c->res, &row));
    c->size += !old;
    note_form(c, item, !old);
    outgrow(c);
    return st;
}

enum status coll_put(struct coll *c, const struct coll_item *item, bool *ret_added)
{
    struct coll_item old;
    bool found;
    enum status st = coll_find(c, item->name, &found, &old);
    if (ret_added)
        *ret_added = !found;
    return st == ST_OK ? coll_put_known(c, item, found ? &old : NULL) : st;
}

/* The last item takes the number of one that goes. Its bytes must outlive the copy in memory. */
static enum status move_last(struct coll *c, int64_t ord)
{
    struct coll_item last;
    enum status st = coll_at(c, c->size - 1, &last);
    if (st != ST_OK)
        return st;
    last.name = arena_copy(&c->v->batch.arena, last.name);
    last.value = arena_copy(&c->v->batch.arena, last.value);
    struct item_row row = to_row(c, &last, ord);
    return view_put_item(c->v, &row);
}

enum status coll_take_out(struct coll *c, const struct coll_item *item)
{
    c->dirty = true;
    enum status st = coll_notes(c) ? coll_note(c, item->name, item) : ST_OK;
    if (st == ST_OK && item->ord != c->size - 1)
        st = move_last(c, item->ord);
    if (st != ST_OK)
        return st;
    struct item_ref ref = {
        .table = c->table, .id = c->id, .name = arena_copy(&c->v->batch.arena, item->name)};
    st = view_del_item(c->v, &ref);
    COLL_RESIDENT(c, resident_remove(c->res, resident_find(c->res, ref.name)));
    c->size--;
    return st;
}

enum status coll_remove(struct coll *c, struct slice name, bool *ret_removed)
{
    struct coll_item old;
    enum status st = coll_find(c, name, ret_removed, &old);
    if (st != ST_OK || !*ret_removed)
        return st;
    if (c->type == ROW_ZSET)
        st = coll_zset_change(c, &old, NULL);
    return st == ST_OK ? coll_take_out(c, &old) : st;
}

/* ---- by number, and all ---- */

enum status coll_walk_row(void *walk, const struct item_row *row)
{
    struct coll_walk *w = walk;
    struct coll_item item = from_row(row);
    if (w->hide_until && item.expire_at != EXPIRE_NEVER && item.expire_at <= w->hide_until)
        return ST_OK;
    if (w->most && w->seen == w->most)
        return ST_CORRUPT;
    w->seen++;
    enum status st = w->fn(w->arg, &item);
    w->stopped = st == ST_STOP;
    return st;
}

enum status coll_walk_all(struct coll *c, const struct item_scan *q, int64_t n, coll_fn *fn, void *arg)
{
    struct coll_walk w = {.fn = fn, .arg = arg, .most = n, .hide_until = hide_until(c)};
    enum status st = view_scan_items(c->v, q, coll_walk_row, &w);
    if (st == ST_OK && w.seen < n && !w.stopped)
        return error_set(c->v->call.err, ST_CORRUPT, "of %lld items %lld were found", (long long)n,
                         (long long)w.seen);
    if (st == ST_CORRUPT && w.seen == n)
        return error_set(c->v->call.err, ST_CORRUPT, "more than %lld items were found", (long long)n);
    return st;
}

struct keep {
    struct arena *arena;
    struct coll_item *item;
    bool found;
};

static enum status keep_item(void *arg, const struct coll_item *item)
{
    struct keep *k = arg;
    *k->item = *item;
    k->item->name = arena_copy(k->arena, item->name);
    k->item->value = arena_copy(k->arena, item->value);
    k->found = true;
    return ST_OK;
}

enum status coll_at(struct coll *c, int64_t ord, struct coll_item *ret)
{
    assert(ord >= 0 && ord < c->size);
    if (c->res) {
        *ret = coll_from_member(resident_at(c->res, (size_t)ord));
        return ST_OK;
    }
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = ITEMS_BY_ORD,
        .has_min = true,
        .has_max = true,
        .min = ord,
        .max = ord,
        .limit = 1,
    };
    struct keep k = {&c->v->call.scratch, ret, false};
    struct coll_walk w = {.fn = keep_item, .arg = &k};
    enum status st = view_scan_items(c->v, &q, coll_walk_row, &w);
    if (st == ST_OK && !k.found)
        st = error_set(c->v->call.err, ST_CORRUPT, "item %lld of %lld is missing", (long long)ord,
                       (long long)c->size);
    return st;
}

enum status coll_each(struct coll *c, coll_fn *fn, void *arg)
{
    if (c->res || c->size == 0)
        return coll_piece(c, (struct slice){NULL, 0}, UINT32_MAX, fn, arg);
    /* Rows of hashes stand in the order in which they came, and that is nearly the order of their numbers. */
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = c->table == ITEM_HASH ? ITEMS_BY_ORD : ITEMS_BY_NAME,
        .limit = UINT32_MAX,
    };
    return coll_walk_all(c, &q, coll_size(c), fn, arg);
}

/* The items in memory from the one with number `from` on. */
static enum status each_resident(const struct coll *c, int64_t from, int64_t limit, coll_fn *fn, void *arg)
{
    enum status st = ST_OK;
    int64_t end = limit < c->size - from ? from + limit : c->size;
    for (int64_t i = from; st == ST_OK && i < end; i++) {
        struct coll_item item = coll_from_member(resident_at(c->res, (size_t)i));
        st = hidden(c, &item) ? ST_OK : fn(arg, &item);
    }
    return status_of_walk(st);
}

enum status coll_piece(struct coll *c, struct slice after, uint32_t limit, coll_fn *fn, void *arg)
{
    if (c->size == 0)
        return ST_OK;
    if (c->res) {
        int64_t from = after.p ? resident_find(c->res, after)->ord + 1 : 0;
        return each_resident(c, from, limit, fn, arg);
    }
    struct item_scan q = {.table = c->table, .id = c->id, .order = ITEMS_BY_NAME, .limit = limit};
    if (after.p) {
        char *next = arena_alloc(&c->v->call.scratch, after.n + 1); /* the first name behind it */
        memcpy(next, after.p, after.n);
        next[after.n] = '\0';
        q.has_min = true;
        q.min_name = slice_of(next, after.n + 1);
    }
    struct coll_walk w = {.fn = fn, .arg = arg, .hide_until = hide_until(c)};
    return view_scan_items(c->v, &q, coll_walk_row, &w);
}

enum status coll_page(struct coll *c, int64_t *cursor, int64_t count, coll_fn *fn, void *arg)
{
    int64_t below = *cursor > 0 && *cursor < c->size ? *cursor : c->size;
    if (c->size <= WHOLE_PAGE || count > below)
        count = below;
    int64_t from = below - count;
    *cursor = from;
    if (c->res) {
        for (int64_t i = below - 1; i >= from; i--) {
            struct coll_item item = coll_from_member(resident_at(c->res, (size_t)i));
            enum status st = hidden(c, &item) ? ST_OK : fn(arg, &item);
            if (st != ST_OK)
                return status_of_walk(st);
        }
        return ST_OK;
    }
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = ITEMS_BY_ORD,
        .reverse = true,
        .has_min = true,
        .has_max = true,
        .min = from,
        .max = below - 1,
        .limit = UINT32_MAX,
    };
    struct coll_walk w = {.fn = fn, .arg = arg, .hide_until = hide_until(c)};
    return view_scan_items(c->v, &q, coll_walk_row, &w);
}

/* ---- many at once ---- */

enum status coll_by_ord(struct coll *c, coll_fn *fn, void *arg)
{
    if (c->res)
        return each_resident(c, 0, c->size, fn, arg);
    struct item_scan q = {.table = c->table, .id = c->id, .order = ITEMS_BY_ORD, .limit = UINT32_MAX};
    return coll_walk_all(c, &q, coll_size(c), fn, arg);
}

void coll_begin_anew(struct coll *c)
{
    struct memo *m = memos_find(&c->v->memos, c->id);
    if (m)
        memos_drop(&c->v->memos, m);
    if (c->id && c->id != c->row_id) /* no row refers to them, nor ever will */
        view_discard(c->v, c->id, c->type);
    c->id = c->size = c->first = 0;
    c->memo = NULL;
    c->res = NULL;
    c->dirty = true;
}

struct renumber {
    struct coll *c;
    int64_t end;           /* how many items stay */
    bool *leaves;          /* by ord - end: it goes as well */
    int64_t *holes;        /* numbers below end that become free */
    struct item_row *rows; /* of the items that get them */
    size_t nholes, nrows;
};

static enum status take_hole(void *arg, const struct item_row *row)
{
    struct renumber *m = arg;
    struct coll *c = m->c;
    if (m->leaves[row->ord - m->end])
        return ST_OK;
    if (m->nrows == m->nholes)
        return error_set(c->v->call.err, ST_CORRUPT, "an item of %lld has the number of another",
                         (long long)c->size);
    struct item_row *moved = &m->rows[m->nrows];
    *moved = *row;
    moved->ref.name = arena_copy(&c->v->batch.arena, row->ref.name);
    moved->value = arena_copy(&c->v->batch.arena, row->value);
    moved->ord = m->holes[m->nrows++];
    return ST_OK;
}

enum status coll_renumber(struct coll *c, const int64_t *gone, size_t n)
{
    assert(!c->res && (int64_t)n < c->size);
    struct arena *a = &c->v->call.scratch;
    struct renumber m = {.c = c, .end = c->size - (int64_t)n};
    m.leaves = arena_alloc(a, n * sizeof *m.leaves);
    memset(m.leaves, 0, n * sizeof *m.leaves);
    m.holes = arena_alloc(a, n * sizeof *m.holes);
    m.rows = arena_alloc(a, n * sizeof *m.rows);
    for (size_t i = 0; i < n; i++) {
        if (gone[i] < 0 || gone[i] >= c->size)
            return error_set(c->v->call.err, ST_CORRUPT, "an item of %lld has number %lld",
                             (long long)c->size, (long long)gone[i]);
        if (gone[i] >= m.end)
            m.leaves[gone[i] - m.end] = true;
        else
            m.holes[m.nholes++] = gone[i];
    }
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = ITEMS_BY_ORD,
        .has_min = true,
        .min = m.end,
        .has_max = true,
        .max = c->size - 1,
        .limit = UINT32_MAX,
    };
    enum status st = view_scan_items(c->v, &q, take_hole, &m);
    if (st == ST_OK && m.nrows != m.nholes)
        st = error_set(c->v->call.err, ST_CORRUPT, "the numbers of %lld items have gaps", (long long)c->size);
    for (size_t i = 0; st == ST_OK && i < m.nrows; i++)
        st = view_put_item(c->v, &m.rows[i]);
    return st;
}
