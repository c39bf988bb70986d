/* Counting, finding and combining bits, eight bytes at a time where it matters. */
#include "command/string/bits.h"

#include <assert.h>

static uint64_t load8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void store8(char *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* ---- counting ---- */

#define EACH_BYTE 0x0101010101010101u

/* Each byte of the result counts the bits of the same byte of v. */
static uint64_t count_by_byte(uint64_t v)
{
    v = v - ((v >> 1) & (0x55 * EACH_BYTE));
    v = (v & (0x33 * EACH_BYTE)) + ((v >> 2) & (0x33 * EACH_BYTE));
    return (v + (v >> 4)) & (0x0f * EACH_BYTE);
}

/* Written out because the compiler's builtin is a function call on a processor that may lack the instruction.
   The counts of 31 words fit in a byte, so that they are added up across bytes once for all of them. */
static uint64_t count_all(struct slice s)
{
    uint64_t total = 0;
    const char *p = s.p;
    size_t words = s.n / 8;
    while (words) {
        size_t n = words < 31 ? words : 31;
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++, p += 8)
            sum += count_by_byte(load8(p));
        total += ((sum & (0x00ff * 0x0001000100010001u)) * 0x0001000100010001u) >> 48;
        total += (((sum >> 8) & (0x00ff * 0x0001000100010001u)) * 0x0001000100010001u) >> 48;
        words -= n;
    }
    for (const char *end = s.p + s.n; p < end; p++)
        total += (uint64_t)__builtin_popcount((unsigned char)*p);
    return total;
}

uint64_t bits_count(struct slice s, unsigned char first_mask, unsigned char last_mask)
{
    if (!s.n)
        return 0;
    unsigned first = (unsigned char)s.p[0], last = (unsigned char)s.p[s.n - 1];
    if (s.n == 1)
        return (uint64_t)__builtin_popcount(first & first_mask & last_mask);
    return count_all(s) - (uint64_t)__builtin_popcount(first & ~(unsigned)first_mask) -
           (uint64_t)__builtin_popcount(last & ~(unsigned)last_mask);
}

/* ---- finding ---- */

static int find_in_byte(char byte, bool bit, unsigned char mask)
{
    unsigned v = (unsigned)(unsigned char)(bit ? byte : ~byte) & mask;
    return v ? __builtin_clz(v) - 24 : -1;
}

static int64_t find_anywhere(struct slice s, bool bit)
{
    uint64_t none = bit ? 0 : UINT64_MAX;
    size_t i = 0;
    while (s.n - i >= 8 && load8(s.p + i) == none)
        i += 8;
    for (; i < s.n; i++) {
        int at = find_in_byte(s.p[i], bit, 0xff);
        if (at >= 0)
            return (int64_t)i * 8 + at;
    }
    return -1;
}

int64_t bits_find(struct slice s, bool bit, unsigned char first_mask, unsigned char last_mask)
{
    if (s.n <= 1)
        return s.n ? find_in_byte(s.p[0], bit, first_mask & last_mask) : -1;
    int64_t at = find_in_byte(s.p[0], bit, first_mask);
    if (at >= 0)
        return at;
    at = find_anywhere(slice_of(s.p + 1, s.n - 2), bit);
    if (at >= 0)
        return 8 + at;
    at = find_in_byte(s.p[s.n - 1], bit, last_mask);
    return at >= 0 ? (int64_t)(s.n - 1) * 8 + at : -1;
}

/* ---- combining ---- */

static uint64_t combine(enum bits_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case BITS_AND:
        return a & b;
    case BITS_OR:
        return a | b;
    case BITS_XOR:
        return a ^ b;
    case BITS_NOT:
        return ~b;
    case BITS_COPY:
        break;
    }
    return b;
}

void bits_combine(enum bits_op op, char *dst, const char *src, size_t n)
{
    size_t i = 0;
    for (; n - i >= 8; i += 8)
        store8(dst + i, combine(op, load8(dst + i), load8(src + i)));
    for (; i < n; i++)
        dst[i] = (char)combine(op, (unsigned char)dst[i], (unsigned char)src[i]);
}

/* ---- integers ---- */

uint64_t bits_get(const char *p, uint64_t off, unsigned bits)
{
    uint64_t v = 0;
    for (uint64_t i = off; i < off + bits; i++)
        v = v << 1 | ((unsigned char)p[i / 8] >> (7 - i % 8) & 1);
    return v;
}

void bits_put(char *p, uint64_t off, unsigned bits, uint64_t v)
{
    for (unsigned k = 0; k < bits; k++) {
        uint64_t i = off + k;
        unsigned char mask = (unsigned char)(0x80 >> i % 8);
        bool bit = v >> (bits - 1 - k) & 1;
        p[i / 8] = (char)(bit ? p[i / 8] | mask : p[i / 8] & ~mask);
    }
}

/* The lowest bits of v as an integer of type t. */
static int64_t wrap(struct bits_type t, uint64_t v)
{
    unsigned unused = 64 - t.bits;
    if (t.is_signed)
        return (int64_t)(v << unused) >> unused;
    return (int64_t)(v << unused >> unused);
}

int64_t bits_get_typed(const char *p, uint64_t off, struct bits_type t)
{
    return wrap(t, bits_get(p, off, t.bits));
}

bool bits_add(struct bits_type t, enum bits_overflow mode, int64_t value, int64_t incr, int64_t *ret)
{
    assert(t.bits >= 1 && t.bits <= (t.is_signed ? 64 : 63));
    uint64_t sum = (uint64_t)value + (uint64_t)incr;
    bool above, below;
    int64_t max = (int64_t)((1ULL << (t.bits - t.is_signed)) - 1);
    int64_t min = t.is_signed ? -max - 1 : 0;
    if (t.is_signed) {
        int64_t exact;
        bool over = __builtin_add_overflow(value, incr, &exact);
        above = over ? incr > 0 : exact > max;
        below = over ? incr < 0 : exact < min;
        /* Redis takes a SET far below the minimum of a shorter type, so far that max - value does not fit in
           64 bits, for an overflow upwards. Its clients see it in OVERFLOW SAT, so it is kept. */
        if (below && t.bits < 64 && incr == 0 && value < max - INT64_MAX) {
            below = false;
            above = true;
        }
    } else {
        above = (uint64_t)value > (uint64_t)max || (incr > 0 && incr > max - value);
        below = !above && incr < 0 && incr < -value;
    }
    *ret = wrap(t, sum);
    if (mode == BITS_SAT && above)
        *ret = max;
    if (mode == BITS_SAT && below)
        *ret = min;
    return !above && !below;
}
