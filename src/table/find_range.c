/* From what a find asks for to the names that may have it (keycode.h): half-open ranges of bytes. A name has
   at most KEYCODE_MAX bytes, so a bound beyond that is brought to the shortest one that divides the names
   alike: indexes of database servers compare no longer ones. */
#include "table/find_internal.h"

struct find_order find_order_of(const struct schema *s, const struct table_index *i)
{
    return i ? (struct find_order){i->parts, i->nparts} : (struct find_order){s->key, s->nkey};
}

static bool among(struct find_order o, uint16_t column)
{
    for (size_t k = 0; k < o.nparts; k++) {
        if (o.parts[k].column == column)
            return true;
    }
    return false;
}

bool find_holds(const struct schema *s, const struct table_index *i, uint16_t column)
{
    return among(find_order_of(s, i), column) || among(find_order_of(s, NULL), column);
}

/* No name has more than KEYCODE_MAX bytes: none lies between these first ones and what comes behind them.
   False: nothing does. */
static bool shorten(struct buf *b)
{
    if (b->len <= KEYCODE_MAX)
        return true;
    b->len = KEYCODE_MAX;
    return keycode_behind(b, 0);
}

static void raise_min(struct find_range *range, const struct buf *to)
{
    if (slice_cmp(buf_slice(to), buf_slice(&range->min)) > 0) {
        range->min.len = 0;
        buf_add_slice(&range->min, buf_slice(to));
    }
}

static void lower_max(struct find_range *range, const struct buf *to)
{
    if (!range->has_max || slice_cmp(buf_slice(to), buf_slice(&range->max)) < 0) {
        range->max.len = 0;
        buf_add_slice(&range->max, buf_slice(to));
        range->has_max = true;
    }
}

/* Leaves only names on one side of those that go on with this value behind the first n bytes of edge. In a
   descending column what is above in value is before in bytes. */
static void cut(struct find_range *range, struct buf *edge, const struct value *v, bool desc, bool above,
                bool exclusive)
{
    size_t n = edge->len;
    keycode_add(edge, v, desc);
    bool behind = above != desc; /* the names that stay are behind the edge, or with it */
    if (behind == exclusive)
        buf_add(edge, "\xff", 1);
    if (behind)
        raise_min(range, edge);
    else
        lower_max(range, edge);
    edge->len = n;
}

/* The code of a text or a blob without its end: what those that begin with it begin with. */
static void cut_to_prefix(struct find_range *range, struct buf *edge, enum column_type type,
                          struct slice prefix, bool desc)
{
    size_t n = edge->len;
    struct value v = {.kind = column_kind(type), .s = prefix};
    keycode_add_prefix(edge, &v, desc);
    raise_min(range, edge);
    if (keycode_behind(edge, 0))
        lower_max(range, edge);
    edge->len = n;
}

static void cut_column(const struct schema *s, const struct find *f, struct key_part part, struct buf *edge,
                       struct find_range *ret)
{
    struct value null = {.kind = VALUE_NULL};
    if (f->low.on || f->high.on || f->prefix.p)
        cut(ret, edge, &null, part.desc, true, true);
    if (f->low.on)
        cut(ret, edge, &f->low.value, part.desc, true, f->low.exclusive);
    if (f->high.on)
        cut(ret, edge, &f->high.value, part.desc, false, f->high.exclusive);
    if (f->prefix.p)
        cut_to_prefix(ret, edge, s->columns[part.column].type, f->prefix, part.desc);
}

/* Whether the columns of an order, all of them given, are one name's. */
static bool is_whole_name(const struct find *f, struct find_order o)
{
    if (f->neq < o.nparts)
        return false;
    for (size_t i = 0; f->index && i < f->neq; i++) {
        if (f->eq[i].kind == VALUE_NULL)
            return false;
    }
    return !f->index || f->index->unique;
}

void find_range_make(const struct schema *s, const struct find *f, struct find_range *ret)
{
    *ret = (struct find_range){0};
    struct find_order o = find_order_of(s, f->index);
    struct buf edge = {0};
    if (f->index) {
        unsigned char number[2] = {(unsigned char)(f->index->number >> 8),
                                   (unsigned char)(f->index->number & 0xff)};
        buf_add(&edge, number, sizeof number);
    }
    for (size_t i = 0; i < f->neq; i++)
        keycode_add(&edge, &f->eq[i], o.parts[i].desc);
    buf_add_slice(&ret->min, buf_slice(&edge));
    ret->whole_name = is_whole_name(f, o) && edge.len <= KEYCODE_MAX;
    if (edge.len) {
        size_t n = edge.len;
        buf_add(&edge, "\xff", 1);
        lower_max(ret, &edge);
        edge.len = n;
    }
    if (f->neq < o.nparts)
        cut_column(s, f, o.parts[f->neq], &edge, ret);
    buf_release(&edge);
    (void)shorten(&ret->min); /* codes do not begin with ff */
    (void)shorten(&ret->max);
    ret->empty = ret->has_max && slice_cmp(buf_slice(&ret->min), buf_slice(&ret->max)) >= 0;
}

void find_range_release(struct find_range *range)
{
    buf_release(&range->min);
    buf_release(&range->max);
}

void find_range_behind(struct find_range *range, bool reverse, struct slice after)
{
    struct buf edge = {0};
    bool more = true;
    buf_add_slice(&edge, after);
    if (reverse) {
        lower_max(range, &edge);
    } else {
        buf_add(&edge, "", 1);
        more = shorten(&edge);
        raise_min(range, &edge);
    }
    buf_release(&edge);
    range->empty =
        !more || (range->has_max && slice_cmp(buf_slice(&range->min), buf_slice(&range->max)) >= 0);
}

enum status find_entry_values(const struct schema *s, const struct table_index *i, struct slice entry,
                              struct slice row, struct arena *arena, struct value *ret, struct error *err)
{
    memset(ret, 0, s->ncolumns * sizeof *ret);
    if (i) {
        entry = slice_of(entry.p + 2, entry.n < 2 ? 0 : entry.n - 2);
        for (size_t k = 0; k < i->nparts; k++) {
            if (!keycode_take(&entry, i->parts[k].desc, arena, &ret[i->parts[k].column]))
                return error_set(err, ST_CORRUPT, "an entry's name in larder_entry is not one of its index");
        }
    }
    for (size_t k = 0; k < s->nkey; k++) {
        if (!keycode_take(&row, s->key[k].desc, arena, &ret[s->key[k].column]))
            return error_set(err, ST_CORRUPT, "a row's name in larder_row is not one of its table");
    }
    return ST_OK;
}
