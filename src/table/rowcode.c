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
    if (!json_take(&in, &item) || item.kind != JSON_NUMBER || !num_parse_i64(item.text, &ret->version))
        return false;
    size_t i = 0;
    for (uint32_t id = 1; !end; id++) {
        if (!take_item(&in, &item, &end))
            return false;
        bool dropped = i == s->ncolumns || s->columns[i].id != id;
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
