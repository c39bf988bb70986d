#include "engine/coll.h"

#include <assert.h>

#include "base/num.h"
#include "engine/coll_internal.h"
#include "store/item_tables.h"

#define NAMES_AHEAD 4   /* times as many items as memory had, before their names take more room */
#define WHOLE_PAGE  128 /* a scan returns a collection up to this size at once, as Redis does */

/* ---- opening and saving ---- */

static uint32_t name_hash(const struct coll *c, struct slice name)
{
    struct item_ref ref = {.table = c->table, .id = c->id, .name = name};
    return view_item_hash(c->v, &ref);
}

/* The memo that knows which names can be in the tables, or NULL. */
static struct memo *named(const struct coll *c)
{
    struct memo *m = memos_find(&c->v->memos, c->id);
    return m && m->names ? m : NULL;
}

/* Whether the tables, or this batch, can have an item of this name. */
static bool may_have(const struct coll *c, struct slice name)
{
    const struct memo *m = named(c);
    return !m || names_may_have(m->names, name_hash(c, name));
}

/* An item of this name has come, with a number that may have been a hole. */
static void note_added(struct coll *c, struct slice name, int64_t ord)
{
    struct memo *m = c->res ? NULL : memos_find(&c->v->memos, c->id);
    if (!m)
        return;
    memo_fill_hole(m, ord);
    if (!m->names)
        return;
    names_add(m->names, name_hash(c, name));
    memos_count(&c->v->memos, m);
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
    c->numbers = e.numbers ? e.numbers : e.size;
    c->expire_at = r->expire_at;
    c->form = (enum row_form)r->form;
    *ret = c;
    enum status st = coll_attach(c);
    coll_note_sparse(c, r);
    c->due = c->type == ROW_HASH && view_hash_due(v, &e);
    return st == ST_OK && c->due ? view_expired_fields(v, &e, &c->expired) : st;
}

enum status coll_of_items(struct view *v, struct slice key, const struct row_ext *items, struct coll **ret)
{
    struct coll *c = handle(v, 0, key, ROW_HASH);
    c->id = c->row_id = items->id;
    c->size = items->size;
    c->first = items->first;
    c->numbers = items->numbers ? items->numbers : items->size;
    *ret = c;
    return coll_attach(c);
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
    if (st == ST_OK && !*ret && !*ret_wrong) {
        *ret = handle(v, db, key, type);
        st = coll_load_mates(*ret);
    }
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
        coll_use_members(c, memo_new_members(c->id, c->table));
        memos_add(&c->v->memos, c->memo);
        memos_touch(&c->v->memos, c->memo);
    }
    return st;
}

/* The names of what is in memory, with room for more. */
static struct item_names *names_of(const struct coll *c)
{
    struct item_names *n = names_new(c->res->size * NAMES_AHEAD);
    for (size_t i = 0; i < c->res->size; i++)
        names_add(n, name_hash(c, member_name(resident_at(c->res, i))));
    return n;
}

/* A collection that has outgrown memory goes on in the tables; of what has names, memory keeps those. */
static void outgrow(struct coll *c)
{
    if (!c->res || (c->res->size <= COLL_RESIDENT_MAX && memo_bytes(c->memo) <= COLL_RESIDENT_BYTES))
        return;
    struct item_names *names = item_named(c->table) ? names_of(c) : NULL;
    memos_drop(&c->v->memos, c->memo);
    c->memo = NULL;
    c->res = NULL;
    if (!names && c->size > COLL_RESIDENT_LOAD)
        return;
    struct memo *m = memo_new(c->id);
    m->oversize = c->size <= COLL_RESIDENT_LOAD;
    m->names = names;
    memos_add(&c->v->memos, m);
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
    struct row_draft d = coll_draft(c, c->form);
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
    if (!may_have(c, name))
        return ST_OK;
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
    if (st == ST_OK && old && old->ord < 0) /* only damaged tables have one */
        st = error_set(c->v->call.err, ST_CORRUPT, "an item of %lld has number %lld", (long long)c->size,
                       (long long)old->ord);
    if (st != ST_OK)
        return st;
    if (item->expire_at != EXPIRE_NEVER && (c->first_expiry == 0 || item->expire_at < c->first_expiry))
        c->first_expiry = item->expire_at;
    if (c->type == ROW_ZSET)
        st = coll_zset_change(c, old, item);
    if (st == ST_OK && coll_notes(c))
        st = coll_note(c, item->name, old);
    if (st != ST_OK)
        return st;
    struct item_row row = to_row(c, item, old ? old->ord : c->numbers);
    if (old)
        st = view_put_item(c->v, &row);
    else
        st = c->res ? view_add_item(c->v, &row) : view_add_kept_item(c->v, &row);
    if (old)
        COLL_RESIDENT(c, resident_update(c->res, resident_find(c->res, item->name), item->value, item->score,
                                         item->expire_at));
    else
        COLL_RESIDENT(c, resident_append(c->res, &row));
    if (!old)
        note_added(c, item->name, row.ord);
    c->size += !old;
    c->numbers += !old;
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

/* Draws of random numbers need not look for this one again (coll_sample.c). One beyond `numbers`, which only
   damaged tables have, is never drawn. */
static void note_hole(struct coll *c, int64_t ord)
{
    if (c->res || ord < 0 || ord >= c->numbers || view_shared(c->v))
        return;
    struct memo *m = memos_find(&c->v->memos, c->id);
    if (!m) {
        m = memo_new(c->id);
        memos_add(&c->v->memos, m);
    }
    memos_touch(&c->v->memos, m);
    memo_add_hole(m, ord, c->numbers);
    memos_count(&c->v->memos, m);
}

/* What is below the number of an item that went may be free as well; only memory knows that. */
static void lower_numbers(struct coll *c, int64_t gone)
{
    note_hole(c, gone);
    if (c->res)
        c->numbers = c->res->size ? resident_at(c->res, c->res->size - 1)->ord + 1 : 0;
    else if (gone == c->numbers - 1)
        c->numbers--;
}

enum status coll_take_out(struct coll *c, const struct coll_item *item)
{
    int64_t ord = item->ord;
    c->dirty = true;
    enum status st = coll_notes(c) ? coll_note(c, item->name, item) : ST_OK;
    if (st != ST_OK)
        return st;
    struct item_ref ref = {
        .table = c->table, .id = c->id, .name = arena_copy(&c->v->batch.arena, item->name)};
    st = view_del_item(c->v, &ref);
    COLL_RESIDENT(c, resident_remove(c->res, resident_find(c->res, ref.name)));
    c->size--;
    lower_numbers(c, ord);
    return st;
}

enum status coll_remove_known(struct coll *c, const struct coll_item *item)
{
    enum status st = c->type == ROW_ZSET ? coll_zset_change(c, item, NULL) : ST_OK;
    return st == ST_OK ? coll_take_out(c, item) : st;
}

enum status coll_remove(struct coll *c, struct slice name, bool *ret_removed)
{
    struct coll_item old;
    *ret_removed = c->type == ROW_ZSET && coll_end_find(c, name, &old);
    enum status st = *ret_removed ? ST_OK : coll_find(c, name, ret_removed, &old);
    return st == ST_OK && *ret_removed ? coll_remove_known(c, &old) : st;
}

/* ---- all, and pages ---- */

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

/* The items in memory from a place on. */
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
        int64_t ord = after.p ? resident_find(c->res, after)->ord + 1 : 0;
        return each_resident(c, (int64_t)resident_place(c->res, ord), limit, fn, arg);
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

/* A page of what is in memory: items with numbers below a bound, from the highest down. */
static enum status page_resident(const struct coll *c, int64_t *bound, int64_t count, coll_fn *fn, void *arg)
{
    int64_t below = (int64_t)resident_place(c->res, *bound), from = count < below ? below - count : 0;
    *bound = from ? resident_at(c->res, (size_t)from)->ord : 0;
    for (int64_t i = below - 1; i >= from; i--) {
        struct coll_item item = coll_from_member(resident_at(c->res, (size_t)i));
        enum status st = hidden(c, &item) ? ST_OK : fn(arg, &item);
        if (st != ST_OK)
            return status_of_walk(st);
    }
    return ST_OK;
}

struct page {
    struct coll_walk walk;
    int64_t rows, last; /* how many have come, and the number of the last one */
};

static enum status page_row(void *arg, const struct item_row *row)
{
    struct page *p = arg;
    p->rows++;
    p->last = row->ord;
    return coll_walk_row(&p->walk, row);
}

enum status coll_page(struct coll *c, int64_t *cursor, int64_t count, coll_fn *fn, void *arg)
{
    if (c->size == 0) {
        *cursor = 0;
        return ST_OK;
    }
    if (*cursor <= 0 || *cursor > c->numbers)
        *cursor = c->numbers;
    if (c->size <= WHOLE_PAGE || count > c->size)
        count = c->size;
    if (c->res)
        return page_resident(c, cursor, count, fn, arg);
    struct item_scan q = {
        .table = c->table,
        .id = c->id,
        .order = ITEMS_BY_ORD,
        .reverse = true,
        .has_max = true,
        .max = *cursor - 1,
        .limit = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX,
    };
    struct page p = {.walk = {.fn = fn, .arg = arg, .hide_until = hide_until(c)}};
    enum status st = view_scan_items(c->v, &q, page_row, &p);
    *cursor = p.rows == q.limit && p.rows < c->size ? p.last : 0; /* or these were all */
    return st;
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
    c->id = c->size = c->first = c->numbers = 0;
    c->memo = NULL;
    c->res = NULL;
    c->dirty = true;
}

/* ---- ahead of a command ---- */

/* Small ones are in memory as a whole, and found there another way. */
static bool is_far(const struct row *r, const struct row_ext *e)
{
    bool named = r->type == ROW_HASH || r->type == ROW_SET || r->type == ROW_ZSET;
    return named && e->size > COLL_RESIDENT_LOAD;
}

void coll_prefetch(const struct view *v, struct prefetch *e, const struct slice *argv, int argc)
{
    const struct row *r = argc > 2 ? cache_peek(v->cache, e->number, e->key, e->hash) : NULL;
    if (!r)
        return;
    struct row_ext items = row_items(r);
    if (!is_far(r, &items))
        return;
    int at = r->type == ROW_ZSET && argc > 3 ? 3 : 2; /* behind a score */
    struct item_ref ref = {.table = item_table_of((enum row_type)r->type), .id = items.id, .name = argv[at]};
    e->item = ref.name;
    e->id = ref.id;
    e->item_hash = item_hash(&ref);
    cache_fetch_bucket(v->cache, e->item_hash);
}

void coll_prefetch_next(const struct view *v, const struct prefetch *e)
{
    if (e->item.p)
        cache_fetch_first(v->cache, e->item_hash);
}

enum status coll_read_ahead(struct view *v, uint32_t db, struct slice key, const struct slice *names,
                            size_t n)
{
    const struct row *r;
    struct coll *c;
    enum status st = view_get(v, db, key, &r);
    struct row_ext items = st == ST_OK && r ? row_items(r) : (struct row_ext){0};
    if (st != ST_OK || !r || !is_far(r, &items) || (st = coll_of_row(v, db, r, &c)) != ST_OK || c->res)
        return st;
    struct item_ref *refs = arena_alloc(&v->call.scratch, (n + 1) * sizeof *refs);
    size_t nrefs = 0;
    for (size_t i = 0; i < n; i++)
        if (may_have(c, names[i]))
            refs[nrefs++] = (struct item_ref){.table = c->table, .id = c->id, .name = names[i]};
    return view_read_items_ahead(v, refs, nrefs);
}
