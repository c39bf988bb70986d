/* Ranges of rows on a database server, page by page, so that memory and answers stay bounded.

   The server orders names as its indexes have them, which is their order but for long names that begin alike
   (remote_names.h). Rows with such names come one after the other; a page that ends among them goes on until
   they end, and they are put into the order of their whole names here. Bounds that are long names are widened
   to all that begin alike, and what is outside is left out here. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/remote/remote_names.h"
#include "store/remote/remote_store.h"

#define PAGE_ROWS 1000

static struct slice given(bool is, struct slice name)
{
    return is && name.p ? name : SLICE("");
}

static bool begin_alike(struct slice a, struct slice b)
{
    return remote_name_is_long(a) && remote_name_is_long(b) && memcmp(a.p, b.p, NAME_LEFT) == 0;
}

/* ---- keys ---- */

/* A scan, page by page. */
struct key_reader {
    struct rstore *store;
    struct key_scan page; /* as it is put to the server */
    bool by_key;
    bool has_end;
    struct buf from, end; /* BY_KEY: the bounds of the next page; from is exclusive when page.has_after */
    uint32_t skip;        /* in orders that have no bounds */
};

static struct slice bound(const struct buf *b)
{
    return b->len ? buf_slice(b) : SLICE("");
}

static void begin_keys(struct key_reader *r, const struct key_scan *q)
{
    r->page = *q;
    r->page.reverse = q->order == KEYS_BY_KEY && q->reverse;
    r->by_key = keys_bounded(q);
    if (q->order == KEYS_EXPIRED) /* rows of the same moment are left out here */
        r->page.seq_below = q->has_behind ? q->behind.expire_at : 1;
    if (!r->by_key)
        return;
    struct arena *a = &r->store->arena;
    struct slice low = keys_low(q, &r->page.has_after), end;
    r->page.has_after &= !remote_name_is_long(low);
    buf_add_slice(&r->from, remote_name_low(low));
    struct key_scan wide = *q;
    wide.prefix = remote_name_low(given(true, q->prefix));
    wide.before = remote_name_high(a, given(q->has_before, q->before));
    r->has_end = keys_high(&wide, a, &end);
    if (r->has_end)
        buf_add_slice(&r->end, end);
}

/* One page, which is put behind what was found. */
static enum status read_keys(struct key_reader *r, struct rfound *f, struct error *err)
{
    const struct key_scan *q = &r->page;
    struct param p[] = {param_i64(q->db),
                        r->by_key ? param_bytes(bound(&r->from)) : param_i64(q->seq_below),
                        param_bytes(bound(&r->end)),
                        param_i64(q->limit),
                        param_i64(q->now),
                        param_i64(r->skip)};
    struct request request = {.text = rtext_scan_keys(r->store, q, r->has_end),
                              .params = p,
                              .nparams = 6,
                              .fn = rread_take_key,
                              .arg = f};
    remote_add(r->store->conn, &request);
    return rstore_run(r->store, err);
}

/* The next page begins behind this row. */
static void go_behind(struct key_reader *r, const struct key_row *last)
{
    if (r->page.order == KEYS_BY_SEQ_DESC) {
        r->page.seq_below = last->seq;
    } else if (!r->by_key) {
        r->skip += r->page.limit;
    } else {
        struct buf *b = r->page.reverse ? &r->end : &r->from;
        b->len = 0;
        buf_add_slice(b, remote_name_index(&r->store->arena, last->key));
        if (r->page.reverse)
            r->has_end = true;
        else
            r->page.has_after = true;
    }
}

static int by_whole_key(const void *a, const void *b, void *reverse)
{
    int c = slice_cmp(((const struct key_row *)a)->key, ((const struct key_row *)b)->key);
    return *(const bool *)reverse ? -c : c;
}

static void sort_alike_keys(struct rfound *f, bool reverse)
{
    for (size_t i = 0, from = 0; i < f->n; i++) {
        if (i + 1 < f->n && begin_alike(f->keys[i].key, f->keys[i + 1].key))
            continue;
        if (i > from)
            qsort_r(f->keys + from, i + 1 - from, sizeof *f->keys, by_whole_key, &reverse);
        from = i + 1;
    }
}

static enum status hand_out_keys(const struct rfound *f, const struct key_scan *q, uint32_t *left,
                                 store_key_fn *fn, void *arg)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i<f->n && * left> 0; i++) {
        const struct key_row *k = &f->keys[i];
        if ((keys_bounded(q) || q->order == KEYS_EXPIRED) && (key_below(q, k) || key_above(q, k)))
            continue;
        st = fn(arg, k);
        --*left;
    }
    return st;
}

enum status rscan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                       struct error *err)
{
    struct key_reader r = {.store = rstore_of(base)};
    uint32_t left = q->limit;
    bool full = true;
    begin_keys(&r, q);
    enum status st = left ? rstore_connected(r.store, err) : ST_OK;
    while (st == ST_OK && left > 0 && full) {
        struct rfound f = {.store = r.store};
        bool among = false;
        do {
            size_t before = f.n;
            r.page.limit = left < PAGE_ROWS ? left : PAGE_ROWS;
            st = read_keys(&r, &f, err);
            full = st == ST_OK && f.n - before == r.page.limit;
            if (!full)
                break;
            go_behind(&r, &f.keys[f.n - 1]);
            among = r.by_key && remote_name_is_long(f.keys[f.n - 1].key);
        } while (among);
        if (r.by_key)
            sort_alike_keys(&f, r.page.reverse);
        if (st == ST_OK)
            st = hand_out_keys(&f, q, &left, fn, arg);
        rread_release(&f);
    }
    buf_release(&r.from);
    buf_release(&r.end);
    return st;
}

/* ---- items ---- */

struct item_reader {
    struct rstore *store;
    const struct item_scan *q; /* as it was asked for */
    struct item_scan page;     /* as it is put to the server: widened bounds, the next page */
    bool named;                /* the order has names in it */
    bool widened;
    uint32_t skip, left; /* rows to leave out, and to hand out, here */
    bool full;           /* there may be another page */
    /* Where the next page begins: behind this row. */
    bool behind;
    int64_t number;
    double score;
    struct buf name;
};

static void widen(struct item_reader *r)
{
    const struct item_scan *q = r->q;
    r->page = *q;
    r->named = q->order == ITEMS_BY_NAME || q->order == ITEMS_BY_SCORE;
    if (!r->named)
        return;
    r->widened = remote_name_is_long(given(q->has_min, q->min_name)) ||
                 remote_name_is_long(given(q->has_max, q->max_name));
    if (q->has_min && q->min_name.p)
        r->page.min_name = remote_name_low(q->min_name);
}

static void ask_items(struct item_reader *r, struct rfound *f)
{
    struct rstore *s = r->store;
    const struct item_scan *q = &r->page;
    struct slice after = r->behind && r->name.p ? buf_slice(&r->name) : SLICE("");
    struct param p[9] = {
        param_i64(q->id),
        param_i64(q->has_min ? q->min : INT64_MIN),
        param_i64(q->max),
        param_i64(q->limit),
        param_bytes(given(q->has_min, q->min_name)),
        param_bytes(remote_name_high(&s->arena, given(q->has_max, q->max_name))),
        param_i64(q->skip),
        param_i64(r->number),
        param_bytes(after),
    };
    if (q->order == ITEMS_BY_SCORE) {
        p[1] = rstore_score(s, q->has_min ? q->min_score : -INFINITY);
        p[2] = rstore_score(s, q->max_score);
        p[7] = rstore_score(s, r->score);
    } else if (q->order == ITEMS_BY_NAME) {
        p[1] = p[4];
        p[2] = p[5];
    }
    struct request request = {.text = rtext_scan_items(s, q, r->behind),
                              .params = p,
                              .nparams = 9,
                              .fn = rread_take_item,
                              .arg = f};
    remote_add(s->conn, &request);
}

static enum status read_items(struct item_reader *r, struct rfound *f, struct error *err)
{
    ask_items(r, f);
    return rstore_run(r->store, err);
}

static void go_on_behind(struct item_reader *r, const struct item_row *row)
{
    if (r->page.order == ITEMS_BY_EXPIRY) { /* moments are not unique */
        r->page.skip += r->page.limit;
        return;
    }
    r->page.skip = 0;
    r->behind = true;
    r->number = r->page.order == ITEMS_BY_ORD ? row->ord : row->ref.pos;
    r->score = row->score;
    r->name.len = 0;
    if (r->named)
        buf_add_slice(&r->name, remote_name_index(&r->store->arena, row->ref.name));
}

static bool items_alike(const struct item_reader *r, const struct item_row *a, const struct item_row *b)
{
    return begin_alike(a->ref.name, b->ref.name) && (r->q->order == ITEMS_BY_NAME || a->score == b->score);
}

static int by_whole_name(const void *a, const void *b)
{
    return slice_cmp(((const struct item_row *)a)->ref.name, ((const struct item_row *)b)->ref.name);
}

static int by_whole_name_down(const void *a, const void *b)
{
    return by_whole_name(b, a);
}

static void sort_alike_items(const struct item_reader *r, struct rfound *f)
{
    for (size_t i = 0, from = 0; i < f->n; i++) {
        if (i + 1 < f->n && items_alike(r, &f->items[i], &f->items[i + 1]))
            continue;
        if (i > from)
            qsort(f->items + from, i + 1 - from, sizeof *f->items,
                  r->q->reverse ? by_whole_name_down : by_whole_name);
        from = i + 1;
    }
}

/* One page, and more while it ends among names that begin alike. */
static enum status read_page(struct item_reader *r, struct rfound *f, struct error *err)
{
    uint64_t want = (uint64_t)r->left + r->skip;
    do {
        size_t before = f->n;
        r->page.limit = want < PAGE_ROWS ? (uint32_t)want : PAGE_ROWS;
        enum status st = read_items(r, f, err);
        if (st != ST_OK)
            return st;
        r->full = f->n - before == r->page.limit;
        if (f->n > 0 && r->named && r->page.skip > 0 && remote_name_is_long(f->items[0].ref.name)) {
            /* The server may have skipped others of those: from the start, and skip here. */
            r->skip = r->page.skip;
            r->page.skip = 0;
            r->full = true;
            f->n = 0;
            return ST_OK;
        }
        if (r->full && f->n > 0)
            go_on_behind(r, &f->items[f->n - 1]);
    } while (r->full && r->named && remote_name_is_long(f->items[f->n - 1].ref.name));
    return ST_OK;
}

static enum status hand_out_items(struct item_reader *r, const struct rfound *f, store_item_fn *fn, void *arg)
{
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < f->n && r->left > 0; i++) {
        const struct item_row *row = &f->items[i];
        if (r->widened && (item_below(r->q, row) || item_above(r->q, row)))
            continue;
        if (r->skip > 0) {
            r->skip--;
            continue;
        }
        st = fn(arg, row);
        r->left--;
    }
    return st;
}

/* Items with certain numbers. */
static enum status scan_numbers(struct rstore *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                                struct error *err)
{
    struct rfound f = {.store = s, .table = q->table};
    enum status st = rstore_connected(s, err);
    for (uint32_t i = 0; st == ST_OK && i < q->nords; i++) {
        struct item_reader r = {.store = s, .page = item_scan_at(q, i)};
        ask_items(&r, &f);
    }
    if (st == ST_OK)
        st = rstore_run(s, err);
    for (size_t i = 0; st == ST_OK && i < f.n; i++)
        st = fn(arg, &f.items[i]);
    rread_release(&f);
    return st;
}

enum status rscan_items(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                        struct error *err)
{
    if (q->nords)
        return scan_numbers(rstore_of(base), q, fn, arg, err);
    struct item_reader r = {.store = rstore_of(base), .q = q, .left = q->limit, .full = true};
    enum status st = r.left ? rstore_connected(r.store, err) : ST_OK;
    widen(&r);
    if (r.widened) {
        r.skip = q->skip;
        r.page.skip = 0;
    }
    while (st == ST_OK && r.left > 0 && r.full) {
        struct rfound f = {.store = r.store, .table = q->table};
        st = read_page(&r, &f, err);
        if (r.named)
            sort_alike_items(&r, &f);
        if (st == ST_OK)
            st = hand_out_items(&r, &f, fn, arg);
        rread_release(&f);
    }
    buf_release(&r.name);
    return st;
}
