#include "table/keycode.h"

#include <math.h>
#include <string.h>

#define CODE_NULL 0x05
#define CODE_BLOB 0x12
#define CODE_TEXT 0x14
#define CODE_INT  0x28 /* of 0; n bytes: n more, or n fewer */
#define CODE_REAL 0x34
#define CODE_BOOL 0x38 /* of false */

/* ---- writing ---- */

/* How many bytes a number has, without zeros in front. */
static unsigned bytes_of(uint64_t v)
{
    return v ? (unsigned)(8 - __builtin_clzll(v) / 8) : 0;
}

static void put_big_endian(char *to, uint64_t v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = (char)(v >> 8 * (n - 1 - i));
}

static size_t put_int(char *to, int64_t i)
{
    uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    unsigned n = bytes_of(size);
    to[0] = (char)(i < 0 ? CODE_INT - n : CODE_INT + n);
    /* A negative one as it + 256^n - 1: the complement of its size, n bytes of it. */
    put_big_endian(to + 1, i < 0 ? ~size : size, n);
    return 1 + n;
}

static size_t put_real(char *to, double d)
{
    uint64_t bits;
    d = d == 0 ? 0.0 : d;
    memcpy(&bits, &d, sizeof bits);
    to[0] = CODE_REAL;
    put_big_endian(to + 1, bits >> 63 ? ~bits : bits | (uint64_t)1 << 63, 8);
    return 9;
}

/* The bytes of a text with each 00 as 00 ff; room for twice as many is there. */
static size_t put_bytes(char *to, struct slice s)
{
    size_t n = 0;
    while (s.n) {
        const char *zero = memchr(s.p, 0, s.n);
        size_t run = zero ? (size_t)(zero - s.p) : s.n;
        memcpy(to + n, s.p, run);
        n += run;
        if (zero) {
            to[n++] = 0;
            to[n++] = (char)0xff;
            run++;
        }
        s = slice_of(s.p + run, s.n - run);
    }
    return n;
}

static void complement(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)~p[i];
}

/* The code of v, of a text or a blob without its end. */
static void add_open(struct buf *out, const struct value *v, bool desc, bool open)
{
    size_t room = v->kind == VALUE_TEXT || v->kind == VALUE_BLOB ? 2 * v->s.n + 3 : 9, n = 1;
    char *to = buf_reserve(out, room);
    switch (v->kind) {
    case VALUE_NULL:
        to[0] = CODE_NULL;
        break;
    case VALUE_INT:
        n = put_int(to, v->i);
        break;
    case VALUE_REAL:
        n = put_real(to, v->d);
        break;
    case VALUE_BOOL:
        to[0] = (char)(CODE_BOOL + (v->i != 0));
        break;
    case VALUE_TEXT:
    case VALUE_BLOB:
        to[0] = v->kind == VALUE_TEXT ? CODE_TEXT : CODE_BLOB;
        n += put_bytes(to + 1, v->s);
        if (!open) {
            to[n++] = 0;
            to[n++] = 1;
        }
        break;
    }
    if (desc)
        complement(to, n);
    out->len += n;
}

void keycode_add(struct buf *out, const struct value *v, bool desc)
{
    add_open(out, v, desc, false);
}

void keycode_add_prefix(struct buf *out, const struct value *v, bool desc)
{
    add_open(out, v, desc, true);
}

bool keycode_behind(struct buf *prefix, size_t from)
{
    while (prefix->len > from && (uint8_t)prefix->p[prefix->len - 1] == 0xff)
        prefix->len--;
    if (prefix->len == from)
        return false;
    prefix->p[prefix->len - 1]++;
    return true;
}

/* ---- reading ---- */

/* A byte of a code, whatever its direction. */
static uint8_t byte_at(struct slice in, size_t i, bool desc)
{
    return (uint8_t)(desc ? ~in.p[i] : in.p[i]);
}

/* Up to behind the end of a text's code, its first byte included; *ret_zeros: how many bytes 00 it has. 0:
   there is no end. */
static size_t text_end(struct slice in, bool desc, size_t *ret_zeros)
{
    size_t zeros = 0, i = 1;
    while (i < in.n) {
        const char *zero = memchr(in.p + i, desc ? 0xff : 0, in.n - i);
        if (!zero || (i = (size_t)(zero - in.p)) + 1 >= in.n)
            return 0;
        uint8_t next = byte_at(in, i + 1, desc);
        i += 2;
        if (next == 1) {
            *ret_zeros = zeros;
            return i;
        }
        if (next != 0xff)
            return 0;
        zeros++;
    }
    return 0;
}

/* The length of the code that in begins with; 0: none. */
static size_t code_length(struct slice in, bool desc, size_t *ret_zeros)
{
    if (!in.n)
        return 0;
    uint8_t tag = byte_at(in, 0, desc);
    size_t n = 0;
    if (tag == CODE_NULL || tag == CODE_BOOL || tag == CODE_BOOL + 1)
        n = 1;
    else if (tag == CODE_TEXT || tag == CODE_BLOB)
        n = text_end(in, desc, ret_zeros);
    else if (tag == CODE_REAL)
        n = 9;
    else if (tag >= CODE_INT - 8 && tag <= CODE_INT + 8)
        n = 1 + (tag < CODE_INT ? CODE_INT - (size_t)tag : (size_t)tag - CODE_INT);
    return n <= in.n ? n : 0;
}

bool keycode_skip(struct slice *in, bool desc, struct slice *ret)
{
    size_t zeros, n = code_length(*in, desc, &zeros);
    if (!n)
        return false;
    *ret = slice_of(in->p, n);
    *in = slice_of(in->p + n, in->n - n);
    return true;
}

static uint64_t big_endian(struct slice code, bool desc)
{
    uint64_t v = 0;
    for (size_t i = 1; i < code.n; i++)
        v = v << 8 | byte_at(code, i, desc);
    return v;
}

/* False: not as few bytes as hold it, or more than 64 bits. */
static bool read_int(struct slice code, bool desc, int64_t *ret)
{
    unsigned n = (unsigned)code.n - 1;
    bool negative = byte_at(code, 0, desc) < CODE_INT;
    uint64_t v = big_endian(code, desc);
    if (negative)
        v = ~v & (n == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * n) - 1);
    if (bytes_of(v) != n || v > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = (int64_t)(negative ? 0 - v : v);
    return true;
}

/* False: NaN, an infinity or -0.0. */
static bool read_real(struct slice code, bool desc, double *ret)
{
    uint64_t bits = big_endian(code, desc);
    bits = bits >> 63 ? bits & ~((uint64_t)1 << 63) : ~bits;
    memcpy(ret, &bits, sizeof bits);
    return isfinite(*ret) && (*ret != 0 || !signbit(*ret));
}

static struct slice read_bytes(struct slice code, bool desc, size_t zeros, struct arena *arena)
{
    struct slice inner = slice_of(code.p + 1, code.n - 3);
    if (!desc && !zeros)
        return inner;
    char *to = arena_alloc(arena, inner.n ? inner.n : 1);
    size_t n = 0;
    for (size_t i = 0; i < inner.n; i++) {
        to[n] = (char)byte_at(inner, i, desc);
        i += to[n++] == 0; /* the ff behind it */
    }
    return slice_of(to, n);
}

bool keycode_take(struct slice *in, bool desc, struct arena *arena, struct value *ret)
{
    size_t zeros = 0, n = code_length(*in, desc, &zeros);
    if (!n)
        return false;
    struct slice code = slice_of(in->p, n);
    uint8_t tag = byte_at(code, 0, desc);
    struct value v = {.kind = VALUE_NULL};
    bool ok = true;
    if (tag == CODE_BOOL || tag == CODE_BOOL + 1) {
        v.kind = VALUE_BOOL;
        v.i = tag - CODE_BOOL;
    } else if (tag == CODE_TEXT || tag == CODE_BLOB) {
        v.kind = tag == CODE_TEXT ? VALUE_TEXT : VALUE_BLOB;
        v.s = read_bytes(code, desc, zeros, arena);
    } else if (tag == CODE_REAL) {
        v.kind = VALUE_REAL;
        ok = read_real(code, desc, &v.d);
    } else if (tag != CODE_NULL) {
        v.kind = VALUE_INT;
        ok = read_int(code, desc, &v.i);
    }
    if (!ok)
        return false;
    *in = slice_of(in->p + n, in->n - n);
    *ret = v;
    return true;
}
