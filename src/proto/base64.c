#include "proto/base64.h"

#include <stdint.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_add(struct buf *out, struct slice bytes)
{
    if (bytes.n == 0)
        return;
    const uint8_t *p = (const uint8_t *)bytes.p;
    char *to = buf_reserve(out, (bytes.n + 2) / 3 * 4);
    size_t i = 0, n = 0;
    for (; bytes.n - i >= 3; i += 3) {
        uint32_t three = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
        to[n++] = letters[three >> 18];
        to[n++] = letters[three >> 12 & 63];
        to[n++] = letters[three >> 6 & 63];
        to[n++] = letters[three & 63];
    }
    if (i < bytes.n) {
        bool two = bytes.n - i == 2;
        uint32_t rest = (uint32_t)p[i] << 16 | (two ? (uint32_t)p[i + 1] << 8 : 0);
        to[n++] = letters[rest >> 18];
        to[n++] = letters[rest >> 12 & 63];
        to[n++] = two ? letters[rest >> 6 & 63] : '=';
        to[n++] = '=';
    }
    out->len += n;
}

void base64_add_url(struct buf *out, struct slice bytes)
{
    size_t n = out->len;
    base64_add(out, bytes);
    size_t end = out->len;
    for (out->len = n; out->len < end && out->p[out->len] != '='; out->len++) {
        char *c = &out->p[out->len];
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    }
}

/* The value of a letter, 64 for what is none. */
static uint32_t value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : 64;
}

/* The text without its padding; false when that is not what belongs there. */
static bool strip(struct slice *text)
{
    size_t padded = text->n;
    while (text->n && padded - text->n < 2 && text->p[text->n - 1] == '=')
        text->n--;
    return text->n % 4 != 1 && (padded == text->n || padded % 4 == 0);
}

bool base64_decode(struct slice text, struct arena *arena, struct slice *ret)
{
    if (!strip(&text))
        return false;
    uint8_t *to = arena_alloc(arena, text.n / 4 * 3 + 3);
    size_t n = 0;
    uint32_t bits = 0, have = 0;
    for (size_t i = 0; i < text.n; i++) {
        uint32_t v = value_of(text.p[i]);
        if (v == 64)
            return false;
        bits = bits << 6 | v;
        have += 6;
        if (have >= 8) {
            have -= 8;
            to[n++] = (uint8_t)(bits >> have);
            bits &= (1u << have) - 1;
        }
    }
    *ret = slice_of(to, n);
    return bits == 0;
}
