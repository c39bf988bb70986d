#include "store/order.h"

enum scan_end scan_end_of(const struct item_scan *q)
{
    if (!q->has_max)
        return END_OPEN;
    if (q->order == ITEMS_BY_NAME)
        return q->below_max ? END_BELOW : END_AT;
    if (q->order != ITEMS_BY_SCORE)
        return END_AT;
    if (q->below_max)
        return q->max_name.n ? END_BELOW : END_BELOW_SCORE;
    return q->max_name.p ? END_AT : END_AT_SCORE;
}

static int compare_ints(int64_t x, int64_t y)
{
    return (x > y) - (x < y);
}

/* As numbers: 0.0 and -0.0 are equal. */
static int compare_doubles(double x, double y)
{
    return (x > y) - (x < y);
}

int refs_compare(const struct item_ref *x, const struct item_ref *y)
{
    if (x->table != y->table)
        return x->table < y->table ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return item_named(x->table) ? slice_cmp(x->name, y->name) : compare_ints(x->pos, y->pos);
}

static int compare_names(const struct key_row *x, const struct key_row *y)
{
    return x->db != y->db ? compare_ints(x->db, y->db) : slice_cmp(x->key, y->key);
}

int keys_compare(enum key_order order, const struct key_row *x, const struct key_row *y)
{
    int c = 0;
    switch (order) {
    case KEYS_BY_KEY:
    case KEYS_TABLES:
        break;
    case KEYS_BY_SEQ_DESC:
        c = compare_ints(x->seq, y->seq);
        break;
    case KEYS_DUE:
        c = compare_ints(x->first_expiry, y->first_expiry);
        c = c ? c : compare_ints(x->seq, y->seq);
        break;
    case KEYS_EXPIRED:
        c = compare_ints(x->expire_at, y->expire_at);
        c = c ? c : compare_ints(x->db, y->db);
        c = c ? c : compare_ints(x->seq, y->seq);
        break;
    }
    return c ? c : compare_names(x, y);
}

int items_compare(enum item_order order, const struct item_row *x, const struct item_row *y)
{
    int c = 0;
    switch (order) {
    case ITEMS_BY_NAME:
    case ITEMS_BY_POS:
        break;
    case ITEMS_BY_ORD:
        c = compare_ints(x->ord, y->ord);
        break;
    case ITEMS_BY_SCORE:
        c = compare_doubles(x->score, y->score);
        break;
    case ITEMS_BY_EXPIRY:
        c = compare_ints(x->expire_at, y->expire_at);
        break;
    }
    return c ? c : refs_compare(&x->ref, &y->ref);
}

bool keys_order_has(enum key_order order, const struct key_row *k)
{
    if (order == KEYS_DUE)
        return k->type == ROW_HASH && k->first_expiry != 0;
    if (order == KEYS_TABLES)
        return k->type == ROW_TABLE;
    return order != KEYS_EXPIRED || k->expire_at > 0;
}

bool items_order_has(enum item_order order, const struct item_row *i)
{
    return order != ITEMS_BY_EXPIRY || i->expire_at != 0;
}

static bool begins_with(struct slice s, struct slice prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool keys_bounded(const struct key_scan *q)
{
    return q->order == KEYS_BY_KEY || (q->order == KEYS_TABLES && !q->every_db);
}

bool keys_backward(const struct key_scan *q)
{
    return q->order == KEYS_BY_SEQ_DESC || (q->order == KEYS_BY_KEY && q->reverse);
}

struct slice keys_low(const struct key_scan *q, bool *ret_open)
{
    struct slice low = slice_cmp(q->from, q->prefix) > 0 ? q->from : q->prefix;
    *ret_open = q->has_after && slice_cmp(q->after, low) >= 0;
    if (*ret_open)
        low = q->after;
    return low.n ? low : SLICE("");
}

bool keys_high(const struct key_scan *q, struct arena *a, struct slice *ret)
{
    size_t n = q->prefix.n;
    while (n > 0 && (unsigned char)q->prefix.p[n - 1] == 0xff)
        n--;
    if (n > 0) {
        char *end = arena_alloc(a, n);
        memcpy(end, q->prefix.p, n);
        end[n - 1] = (char)((unsigned char)end[n - 1] + 1);
        *ret = slice_of(end, n);
    }
    if (q->has_before && (n == 0 || slice_cmp(q->before, *ret) < 0))
        *ret = q->before.n ? q->before : SLICE("");
    return n > 0 || q->has_before;
}

static bool is_behind(const struct expiry_place *p, const struct key_row *k)
{
    if (k->expire_at != p->expire_at)
        return k->expire_at > p->expire_at;
    return k->db != p->db ? k->db > p->db : k->seq > p->seq;
}

bool key_below(const struct key_scan *q, const struct key_row *k)
{
    if (q->order == KEYS_EXPIRED)
        return q->has_behind && !is_behind(&q->behind, k);
    if (!keys_bounded(q))
        return false;
    if (k->db != q->db)
        return k->db < q->db;
    return slice_cmp(k->key, q->prefix) < 0 || slice_cmp(k->key, q->from) < 0 ||
           (q->has_after && slice_cmp(k->key, q->after) <= 0);
}

bool key_above(const struct key_scan *q, const struct key_row *k)
{
    switch (q->order) {
    case KEYS_BY_SEQ_DESC:
        return k->seq >= q->seq_below;
    case KEYS_DUE:
        return k->first_expiry > q->now;
    case KEYS_EXPIRED:
        return k->expire_at > q->now;
    case KEYS_TABLES:
        if (q->every_db)
            return false;
        break;
    case KEYS_BY_KEY:
        break;
    }
    if (k->db != q->db)
        return k->db > q->db;
    return (slice_cmp(k->key, q->prefix) > 0 && !begins_with(k->key, q->prefix)) ||
           (q->has_before && slice_cmp(k->key, q->before) >= 0);
}

/* What a scan by anything but a score or a name goes by. */
static int64_t number_of(enum item_order order, const struct item_row *i)
{
    return order == ITEMS_BY_POS ? i->ref.pos : order == ITEMS_BY_ORD ? i->ord : i->expire_at;
}

bool item_below(const struct item_scan *q, const struct item_row *i)
{
    if (!q->has_min)
        return false;
    if (q->order == ITEMS_BY_NAME)
        return slice_cmp(i->ref.name, q->min_name) < 0;
    if (q->order != ITEMS_BY_SCORE)
        return number_of(q->order, i) < q->min;
    int c = compare_doubles(i->score, q->min_score);
    if (c == 0 && !begins_with_score(q))
        c = slice_cmp(i->ref.name, q->min_name);
    return c < 0;
}

bool item_above(const struct item_scan *q, const struct item_row *i)
{
    if (!q->has_max)
        return false;
    if (q->order == ITEMS_BY_NAME) {
        int c = slice_cmp(i->ref.name, q->max_name);
        return c > 0 || (c == 0 && q->below_max);
    }
    if (q->order != ITEMS_BY_SCORE)
        return number_of(q->order, i) > q->max;
    enum scan_end end = scan_end_of(q);
    int c = compare_doubles(i->score, q->max_score);
    if (c == 0 && (end == END_AT || end == END_BELOW))
        c = slice_cmp(i->ref.name, q->max_name);
    return end == END_BELOW || end == END_BELOW_SCORE ? c >= 0 : c > 0;
}

struct item_scan range_scan(const struct item_range *r)
{
    return (struct item_scan){
        .table = r->table,
        .id = r->id,
        .order = r->order,
        .has_min = true,
        .has_max = true,
        .min = r->min,
        .max = r->max,
        .min_name = r->min_name,
        .max_name = r->max_name.n ? r->max_name : SLICE(""), /* without one, a scan takes all of the score */
        .min_score = r->min_score,
        .max_score = r->max_score,
        .limit = UINT32_MAX,
    };
}

bool item_in_range(const struct item_range *r, const struct item_row *i)
{
    struct item_scan q = range_scan(r);
    return i->ref.table == r->table && i->ref.id == r->id && !item_below(&q, i) && !item_above(&q, i);
}
