/* The model that reading through memory is compared with: rows in plain arrays, what a scan of them hands out
   found by looking at all of them. And what tests draw at random: names, values, moments, scans. */
#ifndef LARDER_TESTS_CONTRACT_MODEL_H
#define LARDER_TESTS_CONTRACT_MODEL_H

#include <math.h>

#include "base/rand.h"
#include "check.h"
#include "store/order.h"

#define DBS     3
#define IDS     4
#define NAMES   14
#define HORIZON 60 /* moments are 1 to this */

/* ---- what there is to choose from ---- */

static char long_name[300], noise[200000];
static struct slice names[NAMES];
static const double scores[] = {-INFINITY, -1.5, -0.0, 0.0, 1, 1, 2, 1e300, INFINITY};
static struct rand dice;

static inline int64_t roll(int64_t n)
{
    return (int64_t)rand_below(&dice, (uint64_t)n);
}

static inline bool chance(int percent)
{
    return roll(100) < percent;
}

static inline void choose_names(void)
{
    static const struct slice some[] = {
        SLICE(""),  SLICE("\0"),       SLICE("a"),    SLICE("a\0"),      SLICE("ab"),           SLICE("abc"),
        SLICE("b"), SLICE("\xc3\xa4"), SLICE("\xff"), SLICE("\xff\xff"), SLICE("\xff\xff\x01"), SLICE("ba"),
    };
    memset(long_name, 'a', sizeof long_name);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)rand_u64(&dice);
    memcpy(names, some, sizeof some);
    names[12] = slice_of(long_name, sizeof long_name);
    names[13] = slice_of(long_name, sizeof long_name - 1);
}

static inline struct slice any_value(void)
{
    size_t n = chance(1) ? 150000 : (size_t)roll(30);
    return slice_of(noise + roll(1000), n);
}

static inline int64_t any_moment(void)
{
    return chance(50) ? 0 : 1 + roll(HORIZON);
}

/* ---- the model ---- */

struct model_item {
    bool there;
    struct item_row row;
};

struct model_key {
    bool there;
    struct key_row row;
};

#define KEYS  (DBS * NAMES)
#define ITEMS (ITEM_TABLES * IDS * NAMES)

struct model {
    struct model_key keys[KEYS];    /* by database and name */
    struct model_item items[ITEMS]; /* by table, id, and name or position */
    struct db_row dbs[DBS];
    int64_t next_id;
    uint64_t trash; /* bits by id */
};

/* Of a position, its place among the names. */
#define POS(n) ((int64_t)(n)-5)

static inline struct item_ref ref_of(enum item_table t, int64_t id, int n)
{
    struct item_ref r = {.table = t, .id = id + 1};
    if (item_named(t))
        r.name = names[n];
    else
        r.pos = POS(n);
    return r;
}

static inline int place_of(const struct item_ref *r)
{
    if (!item_named(r->table))
        return (int)(r->pos - POS(0));
    int n = 0;
    while (!slice_eq(names[n], r->name))
        n++;
    return n;
}

static inline struct model_key *key_at(struct model *m, uint32_t db, int n)
{
    return &m->keys[db * NAMES + (uint32_t)n];
}

/* ids count from 1. */
static inline struct model_item *item_at(struct model *m, enum item_table t, int64_t id, int n)
{
    return &m->items[((int64_t)t * IDS + id - 1) * NAMES + n];
}

static inline int compare_bytes(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? (c > 0) - (c < 0) : a.n < b.n ? -1 : a.n > b.n;
}

static inline bool same_item(const struct item_row *a, const struct item_row *b)
{
    return slice_eq(a->value, b->value) && a->score == b->score && signbit(a->score) == signbit(b->score) &&
           a->expire_at == b->expire_at && a->ord == b->ord;
}

static inline bool same_key(const struct key_row *a, const struct key_row *b)
{
    return a->seq == b->seq && a->db == b->db && slice_eq(a->key, b->key) && a->type == b->type &&
           a->id == b->id && a->size == b->size && a->first == b->first && a->numbers == b->numbers &&
           slice_eq(a->value, b->value) && a->version == b->version && a->expire_at == b->expire_at;
}

/* ---- what scans hand out ---- */

static inline int64_t fields_of(struct model *m, int64_t id)
{
    int64_t n = 0;
    for (int i = 0; i < NAMES; i++)
        n += item_at(m, ITEM_HASH, id, i)->there;
    return n;
}

static inline int sign(bool greater, bool less)
{
    return (int)greater - (int)less;
}

/* In the scan's order, ties and all. */
static inline int item_order(const struct item_scan *q, const struct item_row *a, const struct item_row *b)
{
    switch (q->order) {
    case ITEMS_BY_NAME:
        return compare_bytes(a->ref.name, b->ref.name);
    case ITEMS_BY_POS:
        return sign(a->ref.pos > b->ref.pos, a->ref.pos < b->ref.pos);
    case ITEMS_BY_ORD:
        return sign(a->ord > b->ord, a->ord < b->ord);
    case ITEMS_BY_EXPIRY:
        return sign(a->expire_at > b->expire_at, a->expire_at < b->expire_at);
    case ITEMS_BY_SCORE:
        break;
    }
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return compare_bytes(a->ref.name, b->ref.name);
}

static inline bool within_scores(const struct item_scan *q, double score, struct slice name)
{
    if (q->has_min) {
        if (score < q->min_score)
            return false;
        if (score == q->min_score && q->min_name.n && compare_bytes(name, q->min_name) < 0)
            return false;
    }
    if (!q->has_max || score < q->max_score)
        return true;
    if (score > q->max_score)
        return false;
    if (q->below_max)
        return q->max_name.n && compare_bytes(name, q->max_name) < 0;
    return !q->max_name.p || compare_bytes(name, q->max_name) <= 0;
}

static inline bool within(const struct item_scan *q, const struct item_row *i)
{
    if (q->order == ITEMS_BY_SCORE)
        return within_scores(q, i->score, i->ref.name);
    if (q->order == ITEMS_BY_NAME)
        return !(q->has_min && compare_bytes(i->ref.name, q->min_name) < 0) &&
               !(q->has_max && compare_bytes(i->ref.name, q->max_name) >= (q->below_max ? 0 : 1));
    int64_t v = q->order == ITEMS_BY_POS ? i->ref.pos : q->order == ITEMS_BY_ORD ? i->ord : i->expire_at;
    return !(q->order == ITEMS_BY_EXPIRY && v == 0) && !(q->has_min && v < q->min) &&
           !(q->has_max && v > q->max);
}

/* All rows of the model in a range, in order. */
static inline size_t expect_items(struct model *m, const struct item_scan *q, struct item_row *out)
{
    size_t n = 0;
    for (int i = 0; i < NAMES; i++) {
        const struct model_item *own = item_at(m, q->table, q->id, i);
        if (!own->there || !within(q, &own->row))
            continue;
        size_t at = n++;
        while (at > 0 && item_order(q, &out[at - 1], &own->row) * (q->reverse ? -1 : 1) > 0) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = own->row;
    }
    return n;
}

static inline struct slice any_bound(void)
{
    return chance(20) ? (struct slice){NULL, 0} : names[roll(NAMES)];
}

static inline struct item_scan any_item_scan(void)
{
    struct item_scan q = {.table = (enum item_table)roll(ITEM_TABLES),
                          .id = 1 + roll(IDS),
                          .reverse = chance(50),
                          .has_min = chance(50),
                          .has_max = chance(50),
                          .below_max = chance(50),
                          .min_name = any_bound(),
                          .max_name = any_bound(),
                          .min_score = scores[roll(sizeof scores / sizeof scores[0])],
                          .max_score = scores[roll(sizeof scores / sizeof scores[0])],
                          .skip = chance(60) ? 0 : (uint32_t)roll(6),
                          .limit = chance(50) ? UINT32_MAX : (uint32_t)roll(8)};
    q.order = item_named(q.table) ? ITEMS_BY_NAME : ITEMS_BY_POS;
    if (item_numbered(q.table) && chance(40))
        q.order = ITEMS_BY_ORD;
    if (q.table == ITEM_ZSET && chance(60))
        q.order = ITEMS_BY_SCORE;
    if (item_ordered(q.table, ITEMS_BY_EXPIRY) && chance(60))
        q.order = ITEMS_BY_EXPIRY;
    int64_t span = q.order == ITEMS_BY_EXPIRY ? HORIZON : NAMES;
    q.min = roll(span) - (q.order == ITEMS_BY_POS ? 5 : 0);
    q.max = q.min + roll(span) - 1;
    return q;
}

static inline bool is_dead(struct model *m, const struct key_row *k, int64_t now)
{
    if (k->type != ROW_HASH || k->first_expiry == 0 || k->first_expiry > now)
        return false;
    int64_t n = 0;
    for (int i = 0; i < NAMES; i++) {
        const struct model_item *f = item_at(m, ITEM_HASH, k->id, i);
        n += f->there && f->row.expire_at != 0 && f->row.expire_at <= now;
    }
    return n == k->size;
}

static inline bool is_behind(const struct expiry_place *p, const struct key_row *k)
{
    if (k->expire_at != p->expire_at)
        return k->expire_at > p->expire_at;
    return k->db != p->db ? k->db > p->db : k->seq > p->seq;
}

static inline bool key_within(const struct key_scan *q, const struct key_row *k)
{
    switch (q->order) {
    case KEYS_BY_SEQ_DESC:
        return k->seq < q->seq_below;
    case KEYS_DUE:
        return k->type == ROW_HASH && k->first_expiry != 0 && k->first_expiry <= q->now;
    case KEYS_EXPIRED:
        return k->expire_at > 0 && k->expire_at <= q->now && (!q->has_behind || is_behind(&q->behind, k));
    case KEYS_TABLES:
        if (k->type != ROW_TABLE || q->every_db)
            return k->type == ROW_TABLE;
        break;
    case KEYS_BY_KEY:
        break;
    }
    return k->db == q->db && k->key.n >= q->prefix.n && !memcmp(k->key.p, q->prefix.p, q->prefix.n) &&
           compare_bytes(k->key, q->from) >= 0 && !(q->has_after && compare_bytes(k->key, q->after) <= 0) &&
           !(q->has_before && compare_bytes(k->key, q->before) >= 0);
}

static inline int key_order(const struct key_scan *q, const struct key_row *a, const struct key_row *b)
{
    switch (q->order) {
    case KEYS_BY_SEQ_DESC:
        return sign(a->seq<b->seq, a->seq> b->seq);
    case KEYS_DUE:
        return sign(a->first_expiry > b->first_expiry, a->first_expiry < b->first_expiry);
    case KEYS_EXPIRED:
        return sign(a->expire_at > b->expire_at, a->expire_at < b->expire_at);
    case KEYS_TABLES:
        return a->db != b->db ? sign(a->db > b->db, a->db < b->db) : compare_bytes(a->key, b->key);
    case KEYS_BY_KEY:
        break;
    }
    return q->reverse ? compare_bytes(b->key, a->key) : compare_bytes(a->key, b->key);
}

static inline size_t expect_keys(struct model *m, const struct key_scan *q, struct key_row *out)
{
    size_t n = 0;
    for (int i = 0; i < KEYS; i++) {
        const struct key_row *k = &m->keys[i].row;
        if (!m->keys[i].there || !key_within(q, k))
            continue;
        size_t at = n++;
        while (at > 0 && key_order(q, &out[at - 1], k) > 0) {
            out[at] = out[at - 1];
            at--;
        }
        out[at] = *k;
    }
    return n;
}

static inline struct key_scan any_key_scan(int64_t last_seq)
{
    return (struct key_scan){.db = (uint32_t)roll(DBS),
                             .order = (enum key_order)roll(KEY_ORDERS),
                             .every_db = chance(30),
                             .seq_below = chance(40) ? INT64_MAX : roll(last_seq + 2),
                             .prefix = chance(60) ? SLICE("") : names[roll(NAMES)],
                             .has_after = chance(50),
                             .after = names[roll(NAMES)],
                             .from = chance(60) ? SLICE("") : names[roll(NAMES)],
                             .has_before = chance(40),
                             .before = names[roll(NAMES)],
                             .reverse = chance(50),
                             .has_behind = chance(50),
                             .behind = {1 + roll(HORIZON), (uint32_t)roll(DBS), roll(last_seq + 2)},
                             .now = chance(30) ? 0 : roll(HORIZON + 10),
                             .with_value = chance(50),
                             .limit = chance(50) ? UINT32_MAX : (uint32_t)roll(12)};
}

#endif
