#include "proto/uri.h"

#include <stdint.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool uri_decode(struct slice text, bool plus, struct arena *arena, struct slice *ret)
{
    *ret = text;
    if (!text.n || (!memchr(text.p, '%', text.n) && !(plus && memchr(text.p, '+', text.n))))
        return true;
    char *to = arena_alloc(arena, text.n);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%') {
            int high = text.n - i > 2 ? hex(text.p[i + 1]) : -1;
            int low = high >= 0 ? hex(text.p[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        to[n++] = c;
    }
    *ret = slice_of(to, n);
    return true;
}

bool uri_segment(struct slice *path, struct slice *ret)
{
    if (path->n == 0 || path->p[0] != '/')
        return false;
    const char *from = path->p + 1;
    size_t left = path->n - 1;
    const char *end = left ? memchr(from, '/', left) : NULL;
    size_t n = end ? (size_t)(end - from) : left;
    *ret = slice_of(from, n);
    *path = slice_of(from + n, left - n);
    return true;
}

bool uri_param(struct slice *query, struct slice *ret_name, struct slice *ret_value, bool *ret_bare)
{
    while (query->n && query->p[0] == '&')
        *query = slice_of(query->p + 1, query->n - 1);
    if (query->n == 0)
        return false;
    const char *end = memchr(query->p, '&', query->n);
    struct slice pair = slice_of(query->p, end ? (size_t)(end - query->p) : query->n);
    *query = slice_of(pair.p + pair.n, query->n - pair.n);
    const char *equals = memchr(pair.p, '=', pair.n);
    size_t n = equals ? (size_t)(equals - pair.p) : pair.n;
    *ret_name = slice_of(pair.p, n);
    *ret_value = equals ? slice_of(equals + 1, pair.n - n - 1) : slice_of(pair.p + pair.n, 0);
    *ret_bare = !equals;
    return true;
}

void uri_encode(struct buf *out, struct slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    if (text.n == 0)
        return;
    char *to = buf_reserve(out, 3 * text.n);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = (uint8_t)text.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
            c == '.' || c == '_' || c == '~') {
            to[n++] = (char)c;
            continue;
        }
        to[n++] = '%';
        to[n++] = digits[c >> 4];
        to[n++] = digits[c & 15];
    }
    out->len += n;
}
