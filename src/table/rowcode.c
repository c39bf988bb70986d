#include "table/rowcode.h"

#include "base/num.h"
#include "table/keycode.h"

/* ---- rows ---- */

static bool fits(struct buf *out, size_t from, struct fault *fault, const char *what, struct slice of)
{
    if (out->len - from <= KEYCODE_MAX)
        return true;
    fault_set(fault, FAULT_TOO_LONG, "%s%.*s has %zu bytes, at most %d are possible", what, FAULT_CUT(of),
              out->len - from, KEYCODE_MAX);
    out->len = from;
    return false;
}

bool rowcode_name(const struct schema *s, const struct value *values, struct buf *out, struct fault *fault)
{
    size_t from = out->len;
    for (size_t i = 0; i < s->nkey; i++) {
        const struct value *v = &values[s->key[i].column];
        if (v->kind == VALUE_NULL) {
            out->len = from;
            return fault_set(fault, FAULT_CONSTRAINT, "column %.*s is in the primary key and cannot be NULL",
                             FAULT_CUT(s->columns[s->key[i].column].name));
        }
        keycode_add(out, v, s->key[i].desc);
    }
    return fits(out, from, fault, "the primary key", SLICE(""));
}

void rowcode_encode(const struct schema *s, const struct table_row *row, struct buf *out)
{
    uint16_t id = 1;
    buf_add(out, "[", 1);
    json_add_i64(out, row->version);
    for (size_t i = 0; i < s->ncolumns; i++, id++) {
        for (; id < s->columns[i].id; id++)
            buf_add(out, ",null", 5);
        buf_add(out, ",", 1);
        value_add_json(out, s->columns[i].type, &row->values[i]);
    }
    buf_add(out, "]", 1);
}

/* ---- what most values are, read without much ado ---- */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Where a text of plain ASCII ends: the first of eight bytes that is a quote, or anything else that a string
   in JSON does not simply have; 8: none is. */
static size_t plain_bytes(const char *p)
{
    uint64_t w, quote, slash;
    memcpy(&w, p, sizeof w);
    quote = w ^ EACH('"');
    slash = w ^ EACH('\\');
    uint64_t found =
        (w | (w - EACH(' ')) | ((quote - EACH(1)) & ~quote) | ((slash - EACH(1)) & ~slash)) & EACH(0x80);
    return found ? (size_t)__builtin_ctzll(found) / 8 : 8;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");

static bool quick_text(struct slice *in, struct value *ret)
{
    size_t n = 1, step = 8;
    while (step == 8 && in->n - n >= 8)
        n += step = plain_bytes(in->p + n);
    while (step == 8 && n < in->n && (signed char)in->p[n] >= ' ' && in->p[n] != '"' && in->p[n] != '\\')
        n++;
    if (n >= in->n || in->p[n] != '"')
        return false;
    *ret = (struct value){.kind = VALUE_TEXT, .s = slice_of(in->p + 1, n - 1)};
    *in = slice_of(in->p + n + 1, in->n - n - 1);
    return true;
}

#define QUICK_DIGITS 18 /* fit 64 bits */

static bool quick_int(struct slice *in, int64_t *ret)
{
    size_t minus = in->n && *in->p == '-', n = minus;
    size_t most = in->n < minus + QUICK_DIGITS + 1 ? in->n : minus + QUICK_DIGITS + 1;
    uint64_t v = 0;
    for (unsigned digit; n < most && (digit = (unsigned)in->p[n] - '0') < 10; n++)
        v = v * 10 + digit;
    size_t digits = n - minus;
    bool whole = n < in->n && (in->p[n] == ',' || in->p[n] == ']');
    if (digits == 0 || digits > QUICK_DIGITS || !whole || (in->p[minus] == '0' && (digits > 1 || minus)))
        return false;
    *ret = minus ? -(int64_t)v : (int64_t)v;
    *in = slice_of(in->p + n, in->n - n);
    return true;
}

/* Takes a comma and a value off the front of in, where it is a NULL, a short number or a TEXT of plain
   ASCII. False: it is something else, or wrong, and in is as it was. */
static bool quick_value(struct slice *in, enum column_type t, struct value *ret)
{
    struct slice at = slice_of(in->p + 1, in->n - 1);
    bool good = false;
    if (in->n < 2 || *in->p != ',')
        return false;
    if (at.n >= 4 && memcmp(at.p, "null", 4) == 0) {
        *ret = (struct value){.kind = VALUE_NULL};
        at = slice_of(at.p + 4, at.n - 4);
        good = true;
    } else if (t == COLUMN_TEXT && *at.p == '"') {
        good = quick_text(&at, ret);
    } else if (t == COLUMN_INTEGER || t == COLUMN_TIMESTAMP) {
        *ret = (struct value){.kind = VALUE_INT};
        good = quick_int(&at, &ret->i) &&
               (t == COLUMN_INTEGER || (ret->i >= TIMESTAMP_MIN && ret->i <= TIMESTAMP_MAX));
    }
    if (good)
        *in = at;
    return good;
}

/* Takes what comes next in the array off the front of in: *ret, or *ret_end is set and in is empty. */
static bool take_item(struct slice *in, struct json *ret, bool *ret_end)
{
    char c = in->n ? *in->p : '\0';
    *ret_end = c == ']';
    if (c != ',' && c != ']')
        return false;
    *in = slice_of(in->p + 1, in->n - 1);
    return *ret_end ? in->n == 0 : json_take(in, ret);
}

static bool read_row(const struct schema *s, struct slice in, struct arena *arena, struct table_row *ret)
{
    struct json item;
    bool end = false;
    if (in.n < 2 || *in.p != '[')
        return false;
    in = slice_of(in.p + 1, in.n - 1);
    if (!quick_int(&in, &ret->version) &&
        (!json_take(&in, &item) || item.kind != JSON_NUMBER || !num_parse_i64(item.text, &ret->version)))
        return false;
    size_t i = 0;
    for (uint32_t id = 1; !end; id++) {
        bool dropped = i == s->ncolumns || s->columns[i].id != id;
        if (!dropped && quick_value(&in, s->columns[i].type, &ret->values[i])) {
            i++;
            continue;
        }
        if (!take_item(&in, &item, &end))
            return false;
        if (end || dropped)
            continue;
        if (!value_read_json(s->columns[i].type, &item, arena, &ret->values[i]))
            return false;
        i++;
    }
    for (; i < s->ncolumns; i++)
        ret->values[i] = s->columns[i].missing;
    for (i = 0; i < s->nkey; i++)
        if (ret->values[s->key[i].column].kind == VALUE_NULL)
            return false;
    return true;
}

enum status rowcode_decode(const struct schema *s, struct slice name, struct slice value, int64_t expire_at,
                           struct arena *arena, struct table_row *ret, struct error *err)
{
    *ret = (struct table_row){.expire_at = expire_at,
                              .values = arena_alloc(arena, s->ncolumns * sizeof *ret->values)};
    if (read_row(s, value, arena, ret))
        return ST_OK;
    char hex[65];
    size_t n = name.n < 32 ? name.n : 32;
    for (size_t i = 0; i < n; i++) {
        static const char digits[] = "0123456789abcdef";
        hex[2 * i] = digits[(unsigned char)name.p[i] >> 4];
        hex[2 * i + 1] = digits[name.p[i] & 15];
    }
    hex[2 * n] = '\0';
    return error_set(err, ST_CORRUPT, "row %s%s is not as its table says", hex, n < name.n ? "..." : "");
}

/* ---- entries ---- */

/* The place of a column among an index's parts, or -1. */
static int part_of(const struct table_index *x, uint16_t column)
{
    for (size_t i = 0; i < x->nparts; i++)
        if (x->parts[i].column == column)
            return (int)i;
    return -1;
}

bool rowcode_entry(const struct schema *s, const struct table_index *i, const struct value *values,
                   struct buf *out, bool *ret_unique, struct fault *fault)
{
    size_t from = out->len;
    bool null = false;
    const char number[2] = {(char)(i->number >> 8), (char)i->number};
    buf_add(out, number, 2);
    for (size_t k = 0; k < i->nparts; k++) {
        const struct value *v = &values[i->parts[k].column];
        null = null || v->kind == VALUE_NULL;
        keycode_add(out, v, i->parts[k].desc);
    }
    *ret_unique = i->unique && !null;
    for (size_t k = 0; !*ret_unique && k < s->nkey; k++)
        if (part_of(i, s->key[k].column) < 0)
            keycode_add(out, &values[s->key[k].column], s->key[k].desc);
    return fits(out, from, fault, "an entry of index ", i->name);
}

/* The code of a part in the direction that the key has. */
static void add_code(struct buf *out, struct slice code, bool turn)
{
    char *to = buf_reserve(out, code.n);
    for (size_t i = 0; i < code.n; i++)
        to[i] = turn ? (char)~code.p[i] : code.p[i];
    out->len += code.n;
}

static bool entry_row(const struct schema *s, const struct table_index *x, struct slice entry,
                      struct buf *out)
{
    struct slice codes[SCHEMA_PARTS_MAX];
    if (entry.n < 2)
        return false;
    entry = slice_of(entry.p + 2, entry.n - 2);
    for (size_t i = 0; i < x->nparts; i++)
        if (!keycode_skip(&entry, x->parts[i].desc, &codes[i]))
            return false;
    for (size_t i = 0; i < s->nkey; i++) {
        int part = part_of(x, s->key[i].column);
        struct slice code;
        if (part >= 0)
            add_code(out, codes[part], x->parts[part].desc != s->key[i].desc);
        else if (keycode_skip(&entry, s->key[i].desc, &code))
            buf_add_slice(out, code);
        else
            return false;
    }
    return entry.n == 0;
}

enum status rowcode_entry_row(const struct schema *s, const struct table_index *i, struct slice entry,
                              struct slice value, struct buf *out, struct error *err)
{
    size_t from = out->len;
    if (value.n) {
        buf_add_slice(out, value);
        return ST_OK;
    }
    if (entry_row(s, i, entry, out))
        return ST_OK;
    out->len = from;
    return error_set(err, ST_CORRUPT, "an entry of index %.*s names no row", FAULT_CUT(i->name));
}
