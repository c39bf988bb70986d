#include "journal/encoding.h"

#include <math.h>

#include "base/crc32c.h"
#include "store/order.h"

#define VERSION   1
#define CHECKSUM  4
#define MAX_FIXED 128 /* an entry without its bytes takes no more */

enum {
    ENTRY_KEY = 1,
    ENTRY_ITEMS = 2,
    ENTRY_GONE = 3,
    ENTRY_ITEM = 4,
    ENTRY_LOST = 5,
    ENTRY_TRASH = 6,
    ENTRY_DB = 7,
    ENTRY_IDS = 8,
    ENTRY_HOLES = 9,
    ENTRY_RANGE = 10
};

#define TRASH_INDEX 255 /* as the type of a trash row: the number of an index follows */

/* ---- writing: each takes where it may write and returns where the next one may ---- */

static char *put_byte(char *p, unsigned v)
{
    *p = (char)v;
    return p + 1;
}

static char *put_number(char *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (char)(v | 0x80);
        v >>= 7;
    }
    *p++ = (char)v;
    return p;
}

static char *put_signed(char *p, int64_t v)
{
    return put_number(p, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

static char *put_bytes(char *p, struct slice s)
{
    p = put_number(p, s.n);
    if (s.n)
        memcpy(p, s.p, s.n);
    return p + s.n;
}

static char *put_score(char *p, double score)
{
    uint64_t bits;
    memcpy(&bits, &score, sizeof bits);
    for (int i = 0; i < 8; i++)
        *p++ = (char)(bits >> (8 * i));
    return p;
}

void journal_begin(struct buf *out)
{
    *buf_reserve(out, 1) = VERSION;
    out->len++;
}

void journal_end(struct buf *out)
{
    uint32_t crc = crc32c(buf_slice(out));
    char *p = buf_reserve(out, CHECKSUM);
    for (int i = 0; i < CHECKSUM; i++)
        p[i] = (char)(crc >> (8 * i));
    out->len += CHECKSUM;
}

static unsigned kind_of_key(const struct key_row *k)
{
    if (k->type == ROW_NONE)
        return ENTRY_GONE;
    if (k->id == 0)
        return ENTRY_KEY;
    return k->numbers ? ENTRY_HOLES : ENTRY_ITEMS;
}

static void add_key(struct buf *out, const struct key_row *k)
{
    unsigned kind = kind_of_key(k);
    char *start = buf_reserve(out, MAX_FIXED + k->key.n + k->value.n), *p = start;
    p = put_byte(p, kind);
    p = put_number(p, (uint64_t)k->seq);
    p = put_number(p, (uint64_t)k->version);
    p = put_number(p, k->db);
    p = put_bytes(p, k->key);
    if (k->type != ROW_NONE) {
        p = put_byte(p, k->type);
        p = put_signed(p, k->expire_at);
        p = put_bytes(p, k->value);
        if (k->id) {
            p = put_number(p, (uint64_t)k->id);
            p = put_number(p, (uint64_t)k->size);
            p = put_signed(p, k->first);
        }
        if (kind == ENTRY_HOLES)
            p = put_number(p, (uint64_t)k->numbers);
    }
    out->len += (size_t)(p - start);
}

static char *put_ref(char *p, unsigned kind, const struct item_ref *r)
{
    p = put_byte(p, kind);
    p = put_byte(p, r->table);
    p = put_number(p, (uint64_t)r->id);
    return item_named(r->table) ? put_bytes(p, r->name) : put_signed(p, r->pos);
}

static void add_item(struct buf *out, const struct item_row *i)
{
    enum item_table t = i->ref.table;
    char *start = buf_reserve(out, MAX_FIXED + i->ref.name.n + i->value.n), *p = start;
    p = put_ref(p, ENTRY_ITEM, &i->ref);
    if (item_has(t, COLUMN_VALUE))
        p = put_bytes(p, i->value);
    if (item_has(t, COLUMN_SCORE))
        p = put_score(p, i->score);
    if (item_has(t, COLUMN_EXPIRY))
        p = put_signed(p, i->expire_at);
    if (item_has(t, COLUMN_ORD))
        p = put_signed(p, i->ord);
    out->len += (size_t)(p - start);
}

static void add_lost(struct buf *out, const struct item_ref *r)
{
    char *start = buf_reserve(out, MAX_FIXED + r->name.n);
    out->len += (size_t)(put_ref(start, ENTRY_LOST, r) - start);
}

static void add_range(struct buf *out, const struct item_range *r)
{
    char *start = buf_reserve(out, MAX_FIXED + r->min_name.n + r->max_name.n);
    char *p = put_byte(put_byte(start, ENTRY_RANGE), r->table);
    p = put_number(p, (uint64_t)r->id);
    if (r->order == ITEMS_BY_POS) {
        p = put_signed(put_signed(p, r->min), r->max);
    } else {
        p = put_bytes(put_score(p, r->min_score), r->min_name);
        p = put_bytes(put_score(p, r->max_score), r->max_name);
    }
    out->len += (size_t)(p - start);
}

static void add_trash(struct buf *out, const struct trash_row *t)
{
    char *start = buf_reserve(out, MAX_FIXED), *p = put_byte(start, ENTRY_TRASH);
    p = put_number(p, (uint64_t)t->id);
    if (t->type > ROW_INDEX)
        p = put_number(put_byte(p, TRASH_INDEX), (uint64_t)t->type - ROW_INDEX);
    else
        p = put_byte(p, t->type);
    out->len += (size_t)(p - start);
}

static void add_db(struct buf *out, const struct db_row *d)
{
    char *start = buf_reserve(out, MAX_FIXED), *p = put_byte(start, ENTRY_DB);
    p = put_number(p, d->db);
    p = put_number(p, d->number);
    p = put_signed(p, d->keys);
    p = put_signed(p, d->expires);
    out->len += (size_t)(p - start);
}

void journal_add_changes(struct buf *out, const struct changes *c)
{
    for (size_t i = 0; i < c->nkeys; i++)
        add_key(out, &c->keys[i]);
    for (size_t i = 0; i < c->nranges; i++)
        add_range(out, &c->ranges[i]);
    for (size_t i = 0; i < c->ngone; i++)
        add_lost(out, &c->gone[i]);
    for (size_t i = 0; i < c->nitems; i++)
        add_item(out, &c->items[i]);
    for (size_t i = 0; i < c->ntrash; i++)
        add_trash(out, &c->trash[i]);
    for (size_t i = 0; i < c->ndbs; i++)
        add_db(out, &c->dbs[i]);
}

void journal_add_next_id(struct buf *out, int64_t next_id)
{
    char *start = buf_reserve(out, MAX_FIXED);
    out->len += (size_t)(put_number(put_byte(start, ENTRY_IDS), (uint64_t)next_id) - start);
}

/* ---- reading ---- */

/* What is left to read; once something was wrong, everything is. */
struct reader {
    const unsigned char *p;
    size_t n;
    bool bad;
};

static unsigned get_byte(struct reader *r)
{
    if (r->n == 0) {
        r->bad = true;
        return 0;
    }
    r->n--;
    return *r->p++;
}

static uint64_t get_number(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = get_byte(r);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            r->bad |= shift == 63 && byte > 1;
            return v;
        }
    }
    r->bad = true;
    return 0;
}

static int64_t get_signed(struct reader *r)
{
    uint64_t v = get_number(r);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A number that must fit a signed one. */
static int64_t get_positive(struct reader *r)
{
    uint64_t v = get_number(r);
    r->bad |= v > INT64_MAX;
    return (int64_t)v;
}

static uint32_t get_u32(struct reader *r)
{
    uint64_t v = get_number(r);
    r->bad |= v > UINT32_MAX;
    return (uint32_t)v;
}

static struct slice get_bytes(struct reader *r)
{
    uint64_t n = get_number(r);
    if (r->bad || n > r->n) {
        r->bad = true;
        return (struct slice){NULL, 0};
    }
    struct slice s = slice_of(r->p, (size_t)n);
    r->p += n;
    r->n -= (size_t)n;
    return s;
}

static double get_score(struct reader *r)
{
    uint64_t bits = 0;
    double score;
    for (int i = 0; i < 8; i++)
        bits |= (uint64_t)get_byte(r) << (8 * i);
    memcpy(&score, &bits, sizeof score);
    r->bad |= isnan(score);
    return score;
}

static enum row_type get_type(struct reader *r)
{
    unsigned type = get_byte(r);
    r->bad |= type < ROW_STRING || type > ROW_TABLE;
    return (enum row_type)type;
}

/* Of a trash row. */
static enum row_type get_trash_type(struct reader *r)
{
    unsigned type = get_byte(r);
    if (type == TRASH_INDEX) {
        uint32_t number = get_u32(r);
        r->bad |= number < 1 || number > ROW_INDEX_MAX;
        return (enum row_type)(ROW_INDEX + number);
    }
    r->bad |= type < ROW_STRING || (type > ROW_TABLE && type != ROW_DB);
    return (enum row_type)type;
}

static struct key_row get_key(struct reader *r, unsigned kind)
{
    struct key_row k = {.seq = get_positive(r), .version = get_positive(r)};
    k.db = get_u32(r);
    k.key = get_bytes(r);
    r->bad |= k.seq == 0;
    if (kind == ENTRY_GONE) {
        k.expire_at = EXPIRE_DELETED;
        return k;
    }
    k.type = get_type(r);
    k.expire_at = get_signed(r);
    k.value = get_bytes(r);
    if (kind != ENTRY_KEY) {
        k.id = get_positive(r);
        k.size = get_positive(r);
        k.first = get_signed(r);
        r->bad |= k.id == 0;
    }
    if (kind == ENTRY_HOLES) {
        k.numbers = get_positive(r);
        r->bad |= k.numbers == 0;
    }
    return k;
}

static enum item_table get_table(struct reader *r)
{
    unsigned table = get_byte(r);
    r->bad |= table >= ITEM_TABLES;
    return table < ITEM_TABLES ? (enum item_table)table : ITEM_CHUNK;
}

static struct item_ref get_ref(struct reader *r)
{
    struct item_ref ref = {.table = get_table(r)};
    ref.id = get_positive(r);
    if (item_named(ref.table))
        ref.name = get_bytes(r);
    else
        ref.pos = get_signed(r);
    return ref;
}

static struct item_row get_item(struct reader *r)
{
    struct item_row i = {.ref = get_ref(r)};
    enum item_table t = i.ref.table;
    if (item_has(t, COLUMN_VALUE))
        i.value = get_bytes(r);
    if (item_has(t, COLUMN_SCORE))
        i.score = get_score(r);
    if (item_has(t, COLUMN_EXPIRY))
        i.expire_at = get_signed(r);
    if (item_has(t, COLUMN_ORD))
        i.ord = get_signed(r);
    return i;
}

static struct item_range get_range(struct reader *r)
{
    struct item_range g = {.table = get_table(r)};
    g.id = get_positive(r);
    if (!item_named(g.table)) {
        g.order = ITEMS_BY_POS;
        g.min = get_signed(r);
        g.max = get_signed(r);
        r->bad |= g.min > g.max;
        return g;
    }
    g.order = ITEMS_BY_SCORE;
    g.min_score = get_score(r);
    g.min_name = get_bytes(r);
    g.max_score = get_score(r);
    g.max_name = get_bytes(r);
    r->bad |= !item_ordered(g.table, ITEMS_BY_SCORE) || g.min_score > g.max_score ||
              (!(g.min_score < g.max_score) && slice_cmp(g.min_name, g.max_name) > 0);
    return g;
}

static struct db_row get_db(struct reader *r)
{
    struct db_row d = {.db = get_u32(r)};
    d.number = get_u32(r);
    d.keys = get_signed(r);
    d.expires = get_signed(r);
    return d;
}

static struct trash_row get_trash(struct reader *r)
{
    struct trash_row t = {.id = get_positive(r)};
    t.type = get_trash_type(r);
    return t;
}

static void get_entry(struct reader *r, struct journal_entry *ret)
{
    unsigned kind = get_byte(r);
    switch (kind) {
    case ENTRY_KEY:
    case ENTRY_ITEMS:
    case ENTRY_HOLES:
    case ENTRY_GONE:
        ret->kind = JOURNAL_KEY;
        ret->key = get_key(r, kind);
        break;
    case ENTRY_ITEM:
        ret->kind = JOURNAL_ITEM;
        ret->item = get_item(r);
        break;
    case ENTRY_LOST:
        ret->kind = JOURNAL_LOST;
        ret->lost = get_ref(r);
        break;
    case ENTRY_TRASH:
        ret->kind = JOURNAL_TRASH;
        ret->trash = get_trash(r);
        break;
    case ENTRY_DB:
        ret->kind = JOURNAL_DB;
        ret->db = get_db(r);
        break;
    case ENTRY_IDS:
        ret->kind = JOURNAL_IDS;
        ret->next_id = get_positive(r);
        r->bad |= ret->next_id == 0;
        break;
    case ENTRY_RANGE:
        ret->kind = JOURNAL_RANGE;
        ret->range = get_range(r);
        break;
    default:
        r->bad = true;
    }
}

struct slice journal_entries(struct slice row)
{
    return row.n < 1 + CHECKSUM ? SLICE("") : slice_of(row.p + 1, row.n - 1 - CHECKSUM);
}

enum status journal_open(struct slice row, struct slice *ret_entries, struct error *err)
{
    if (row.n < 1 + CHECKSUM)
        return error_set(err, ST_CORRUPT, "%zu bytes are too few", row.n);
    if ((unsigned char)row.p[0] != VERSION)
        return error_set(err, ST_CORRUPT, "its encoding has version %u, which is not known",
                         (unsigned char)row.p[0]);
    size_t n = row.n - CHECKSUM;
    uint32_t stored = 0;
    for (size_t i = 0; i < CHECKSUM; i++)
        stored |= (uint32_t)(unsigned char)row.p[n + i] << (8 * i);
    if (stored != crc32c(slice_of(row.p, n)))
        return error_set(err, ST_CORRUPT, "its checksum is wrong");
    *ret_entries = journal_entries(row);
    return ST_OK;
}

enum status journal_next(struct slice *entries, struct journal_entry *ret, bool *ret_end, struct error *err)
{
    *ret_end = entries->n == 0;
    if (*ret_end)
        return ST_OK;
    struct reader r = {(const unsigned char *)entries->p, entries->n, false};
    get_entry(&r, ret);
    if (r.bad)
        return error_set(err, ST_CORRUPT, "an entry, %zu bytes before the end, makes no sense", entries->n);
    *entries = slice_of(r.p, r.n);
    return ST_OK;
}
