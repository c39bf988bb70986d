/* What every sink does alike. */
#include "proto/reply.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

void reply_errorf(struct reply *r, const char *fmt, ...)
{
    char text[512];
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    reply_note_error(r, n >= 0 ? text : "ERR");
    if (n >= 0 && (size_t)n < sizeof text) {
        r->ops->error(r, slice_of(text, (size_t)n));
    } else if (n >= 0) {
        char *whole = mem_alloc((size_t)n + 1);
        vsnprintf(whole, (size_t)n + 1, fmt, again);
        r->ops->error(r, slice_of(whole, (size_t)n));
        mem_free(whole);
    } else {
        r->ops->error(r, SLICE("ERR internal error"));
    }
    va_end(again);
}

void reply_bulk_i64(struct reply *r, int64_t v)
{
    char text[NUM_I64_CHARS];
    r->ops->bulk(r, slice_of(text, num_format_i64(text, v)));
}

void reply_bulk_long_double(struct reply *r, long double v)
{
    char text[NUM_DOUBLE_CHARS];
    r->ops->bulk(r, slice_of(text, num_format_long_double(text, v)));
}
