/* Strings: short ones in their key row, long ones in chunks of STORE_CHUNK_BYTES in larder_chunk.

   A string moves from its row to chunks when it grows beyond STORE_INLINE_BYTES and stays there until it is
   set anew. Chunk p holds bytes [p * CHUNK, (p + 1) * CHUNK); what is missing counts as zeros, so writing far
   beyond the end costs one chunk. */
#include "engine/view.h"

#include <assert.h>

#include "engine/view_internal.h"

#define CHUNK ((int64_t)STORE_CHUNK_BYTES)

/* The bytes of one chunk as stored: possibly fewer than its place holds. */
static enum status chunk(struct view *v, int64_t id, int64_t pos, struct slice *ret)
{
    struct item_ref ref = {.table = ITEM_CHUNK, .id = id, .pos = pos};
    struct item_row row;
    bool found;
    enum status st = view_item(v, &ref, &found, &row);
    *ret = st == ST_OK && found ? row.value : (struct slice){"", 0};
    return st;
}

/* Copies bytes [from, from + n) of a chunk, zeros where it is short. */
static void chunk_copy(char *out, struct slice c, size_t from, size_t n)
{
    size_t have = from < c.n ? c.n - from : 0;
    if (have > n)
        have = n;
    if (have)
        memcpy(out, c.p + from, have);
    memset(out + have, 0, n - have);
}

enum status view_string(struct view *v, const struct row *r, struct arena *arena, struct slice *ret)
{
    if (!r->ext) {
        *ret = row_value(r);
        return ST_OK;
    }
    return view_string_range(v, r, 0, row_string_size(r), arena, ret);
}

/* Bytes [from, from + n) of one chunk on their way to fn. */
struct piece {
    view_piece_fn *fn;
    void *arg;
    size_t from, n;
    bool found;
};

static enum status emit_piece(struct piece *p, struct slice c)
{
    static const char zeros[STORE_CHUNK_BYTES];
    p->found = true;
    size_t have = p->from < c.n ? c.n - p->from : 0;
    if (have > p->n)
        have = p->n;
    enum status st = have ? p->fn(p->arg, slice_of(c.p + p->from, have)) : ST_OK;
    if (st == ST_OK && have < p->n)
        st = p->fn(p->arg, slice_of(zeros, p->n - have));
    return st;
}

static enum status emit_item(void *arg, const struct item_row *row)
{
    return emit_piece(arg, row->value);
}

static enum status each_chunk(struct view *v, int64_t id, int64_t pos, struct piece *p)
{
    struct item_ref ref = {.table = ITEM_CHUNK, .id = id, .pos = pos};
    const struct item *changed = view_changed_item(v, &ref);
    p->found = false;
    enum status st;
    if (changed)
        st = emit_piece(p, (struct slice){changed->value, changed->nvalue});
    else
        st = store_get_items(v->store, &ref, 1, emit_item, p, v->call.err);
    return st == ST_OK && !p->found ? emit_piece(p, (struct slice){"", 0}) : st;
}

enum status view_string_each(struct view *v, const struct row *r, int64_t off, int64_t len, view_piece_fn *fn,
                             void *arg)
{
    assert(off >= 0 && len >= 0 && off + len <= row_string_size(r));
    if (!r->ext)
        return len ? fn(arg, slice_of(row_value(r).p + off, (size_t)len)) : ST_OK;
    for (int64_t done = 0; done < len;) {
        int64_t from = (off + done) % CHUNK;
        int64_t n = CHUNK - from < len - done ? CHUNK - from : len - done;
        struct piece p = {.fn = fn, .arg = arg, .from = (size_t)from, .n = (size_t)n};
        enum status st = each_chunk(v, row_items(r).id, (off + done) / CHUNK, &p);
        if (st != ST_OK)
            return st;
        done += n;
    }
    return ST_OK;
}

static enum status append_piece(void *arg, struct slice piece)
{
    char **out = arg;
    memcpy(*out, piece.p, piece.n);
    *out += piece.n;
    return ST_OK;
}

enum status view_string_range(struct view *v, const struct row *r, int64_t off, int64_t len,
                              struct arena *arena, struct slice *ret)
{
    if (!r->ext) {
        assert(off >= 0 && len >= 0 && off + len <= row_string_size(r));
        *ret = slice_of(row_value(r).p + off, (size_t)len);
        return ST_OK;
    }
    char *out = arena_alloc(arena, (size_t)len + 1);
    *ret = slice_of(out, (size_t)len);
    return view_string_each(v, r, off, len, append_piece, &out);
}

static enum status put_chunk(struct view *v, int64_t id, int64_t pos, struct slice value)
{
    struct item_row row = {.ref = {.table = ITEM_CHUNK, .id = id, .pos = pos}, .value = value};
    return view_put_item(v, &row);
}

static enum status set_string(struct view *v, uint32_t db, struct slice key, struct slice value,
                              int64_t expire_at, enum row_form form)
{
    struct row_draft d = {.type = ROW_STRING, .value = value, .expire_at = expire_at, .form = form};
    if (value.n > STORE_INLINE_BYTES) {
        enum status st = view_new_id(v, &d.id);
        for (size_t off = 0; st == ST_OK && off < value.n; off += STORE_CHUNK_BYTES) {
            size_t n = value.n - off < STORE_CHUNK_BYTES ? value.n - off : STORE_CHUNK_BYTES;
            st = put_chunk(v, d.id, (int64_t)(off / STORE_CHUNK_BYTES), slice_of(value.p + off, n));
        }
        if (st != ST_OK)
            return st;
        d.size = (int64_t)value.n;
        d.value = (struct slice){"", 0};
    }
    return view_put(v, db, key, &d);
}

enum status view_set_string(struct view *v, uint32_t db, struct slice key, struct slice value,
                            int64_t expire_at)
{
    return set_string(v, db, key, value, expire_at, FORM_UNKNOWN);
}

enum status view_set_raw_string(struct view *v, uint32_t db, struct slice key, struct slice value)
{
    return set_string(v, db, key, value, EXPIRE_NEVER, FORM_RAW);
}

/* Lays data over the chunks of an id, from off on. */
static enum status write_chunks(struct view *v, int64_t id, int64_t off, struct slice data)
{
    for (size_t done = 0; done < data.n;) {
        int64_t pos = (off + (int64_t)done) / CHUNK;
        size_t from = (size_t)((off + (int64_t)done) % CHUNK);
        size_t n = STORE_CHUNK_BYTES - from < data.n - done ? STORE_CHUNK_BYTES - from : data.n - done;
        struct slice piece = slice_of(data.p + done, n);
        if (n < STORE_CHUNK_BYTES) {
            struct slice old;
            enum status st = chunk(v, id, pos, &old);
            if (st != ST_OK)
                return st;
            size_t len = old.n > from + n ? old.n : from + n;
            char *merged = arena_alloc(&v->batch.arena, len);
            chunk_copy(merged, old, 0, len);
            memcpy(merged + from, piece.p, n);
            piece = slice_of(merged, len);
        }
        enum status st = put_chunk(v, id, pos, piece);
        if (st != ST_OK)
            return st;
        done += n;
    }
    return ST_OK;
}

static enum status write_inline(struct view *v, uint32_t db, struct slice key, struct row_draft *d,
                                struct slice old, int64_t off, struct slice data)
{
    char *merged = arena_alloc(&v->call.scratch, (size_t)d->size + 1);
    chunk_copy(merged, old, 0, (size_t)d->size);
    if (data.n)
        memcpy(merged + off, data.p, data.n);
    d->value = slice_of(merged, (size_t)d->size);
    d->size = 0;
    return view_put(v, db, key, d);
}

enum status view_write_range(struct view *v, uint32_t db, struct slice key, int64_t off, struct slice data)
{
    const struct row *r;
    enum status st = view_get(v, db, key, &r);
    if (st != ST_OK)
        return st;
    int64_t size = r ? row_string_size(r) : 0;
    int64_t end = off + (int64_t)data.n;
    struct row_draft d = {
        .type = ROW_STRING,
        .size = size > end ? size : end,
        .expire_at = r ? r->expire_at : EXPIRE_NEVER,
        .form = FORM_RAW,
    };
    if ((!r || !r->ext) && d.size <= STORE_INLINE_BYTES)
        return write_inline(v, db, key, &d, r ? row_value(r) : (struct slice){"", 0}, off, data);
    if (r && r->ext) {
        d.id = row_items(r).id;
    } else {
        st = view_new_id(v, &d.id);
        if (st == ST_OK && r)
            st = write_chunks(v, d.id, 0, arena_copy(&v->batch.arena, row_value(r)));
        if (st != ST_OK)
            return st;
    }
    st = write_chunks(v, d.id, off, data);
    return st == ST_OK ? view_put(v, db, key, &d) : st;
}
