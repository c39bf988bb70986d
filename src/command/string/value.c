/* String values as replies, and what limits them. */
#include "command/string/value.h"

#include <assert.h>
#include <math.h>

#include "config/config.h"
#include "exec/args.h"
#include "exec/executor.h"

static enum status reply_piece(void *arg, struct slice piece)
{
    struct reply *r = arg;
    r->ops->bulk_piece(r, piece);
    return ST_OK;
}

enum status reply_row_range(struct call *c, const struct row *row, int64_t off, int64_t len)
{
    struct reply *r = c->reply;
    r->ops->bulk_begin(r, (size_t)len);
    enum status st = view_string_each(c->view, row, off, len, reply_piece, r);
    if (st == ST_OK)
        r->ops->bulk_end(r);
    return st;
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
    uint64_t limit = c->executor->config->proto_max_bulk_len;
    if (!__builtin_add_overflow(size, more, &total) && (uint64_t)total <= limit)
        return true;
    reply_error(c->reply, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

enum status put_short(struct call *c, struct slice key, struct slice value, int64_t expire_at,
                      enum row_form form)
{
    assert(value.n <= STORE_INLINE_BYTES);
    struct row_draft d = {.type = ROW_STRING, .value = value, .expire_at = expire_at, .form = form};
    return view_put(c->view, call_db(c), key, &d);
}

bool add_float(struct call *c, long double *v, long double by)
{
    *v += by;
    if (!isnan(*v) && !isinf(*v))
        return true;
    reply_error(c->reply, "ERR increment would produce NaN or Infinity");
    return false;
}
