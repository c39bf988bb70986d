/* Long strings are in chunks (larder_chunk), so they are read chunk by chunk: each piece ends where a chunk
   does, and its memory is reused for the next. */
#include "command/value.h"

#include <assert.h>

#include "command/args.h"
#include "command/server.h"
#include "config/config.h"

struct pieces pieces_of(struct call *c, const struct row *row, int64_t off, int64_t len)
{
    assert(off >= 0 && len >= 0 && off + len <= row_string_size(row));
    return (struct pieces){.view = c->view, .row = row, .pos = off, .end = off + len};
}

enum status pieces_next(struct pieces *p, struct slice *ret)
{
    *ret = (struct slice){NULL, 0};
    if (p->pos == p->end)
        return ST_OK;
    int64_t border = (p->pos / STORE_CHUNK_BYTES + 1) * STORE_CHUNK_BYTES;
    int64_t len = (border < p->end ? border : p->end) - p->pos;
    arena_reset(&p->scratch);
    enum status st = view_string_range(p->view, p->row, p->pos, len, &p->scratch, ret);
    p->pos += len;
    return st;
}

void pieces_release(struct pieces *p)
{
    arena_release(&p->scratch);
}

enum status reply_row_range(struct call *c, const struct row *row, int64_t off, int64_t len)
{
    struct reply *r = c->reply;
    struct pieces p = pieces_of(c, row, off, len);
    struct slice piece;
    enum status st;
    r->ops->bulk_begin(r, (size_t)len);
    while ((st = pieces_next(&p, &piece)) == ST_OK && piece.n)
        r->ops->bulk_piece(r, piece);
    pieces_release(&p);
    if (st != ST_OK)
        return st;
    r->ops->bulk_end(r);
    return ST_OK;
}

enum status reply_row(struct call *c, const struct row *row)
{
    if (!row) {
        reply_null(c->reply);
        return ST_OK;
    }
    if (row->ext)
        return reply_row_range(c, row, 0, row_string_size(row));
    reply_bulk(c->reply, row_value(row));
    return ST_OK;
}

bool range_within(int64_t *start, int64_t *end, int64_t size)
{
    if (*start < 0 && (*start += size) < 0)
        *start = 0;
    if (*end < 0 && (*end += size) < 0)
        *end = 0;
    if (*end >= size)
        *end = size - 1;
    return *start <= *end;
}

bool value_fits(struct call *c, int64_t size, int64_t more)
{
    int64_t total;
    uint64_t limit = c->server->config->proto_max_bulk_len;
    if (!__builtin_add_overflow(size, more, &total) && (uint64_t)total <= limit)
        return true;
    reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

enum status put_short(struct call *c, struct slice key, struct slice value, int64_t expire_at)
{
    assert(value.n <= STORE_INLINE_BYTES);
    struct row_draft d = {.type = ROW_STRING, .value = value, .expire_at = expire_at};
    return view_put(c->view, call_db(c), key, &d);
}
