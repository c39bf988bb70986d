#include "script/dump.h"

#include <stdint.h>
#include <stdio.h>

#include "base/lzf.h"

#define VERSION_MOST  10 /* what Redis 7.0 writes, and the highest that it reads */
#define FOOTER        10
#define TYPE_FUNCTION 245
#define TYPE_OLD      246 /* of the candidates for Redis 7.0: name, engine, description and code apart */

/* The first two bits of a length say how it is written; 3: that the string is not written as its bytes. */
enum { LEN_6 = 0, LEN_14 = 1, LEN_32_OR_64 = 2, LEN_SPECIAL = 3 };
#define LEN_32 0x80
#define LEN_64 0x81
enum { SPECIAL_I8 = 0, SPECIAL_I16 = 1, SPECIAL_I32 = 2, SPECIAL_LZF = 3 };

#define PACK_FROM 21 /* bytes */

/* CRC-64 with the polynomial of Jones, reflected, from 0. */
static uint64_t crc64(struct slice s)
{
    /* What four bits make of the checksum, for the reflected polynomial 0x95ac9329ac4bc9b5. */
    static const uint64_t table[16] = {
        0x0000000000000000, 0x7d08ff3b88be6f81, 0xfa11fe77117cdf02, 0x8719014c99c2b083,
        0xdf7adabd7a6e2d6f, 0xa2722586f2d042ee, 0x256b24ca6b12f26d, 0x5863dbf1e3ac9dec,
        0x95ac9329ac4bc9b5, 0xe8a46c1224f5a634, 0x6fbd6d5ebd3716b7, 0x12b5926535897936,
        0x4ad64994d625e4da, 0x37deb6af5e9b8b5b, 0xb0c7b7e3c7593bd8, 0xcdcf48d84fe75459,
    };
    const unsigned char *p = (const unsigned char *)s.p;
    uint64_t crc = 0;
    for (size_t n = s.n; n; n--) {
        crc ^= *p++;
        crc = table[crc & 15] ^ (crc >> 4);
        crc = table[crc & 15] ^ (crc >> 4);
    }
    return crc;
}

/* ---- writing ---- */

static void add_bytes(struct buf *to, uint64_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        buf_add(to, &(char){(char)(v >> 8 * i)}, 1);
}

static void add_length(struct buf *to, uint64_t n)
{
    if (n < 1 << 6) {
        add_bytes(to, n, 1);
    } else if (n < 1 << 14) {
        add_bytes(to, n | LEN_14 << 14, 2);
    } else {
        bool wide = n > UINT32_MAX;
        add_bytes(to, wide ? LEN_64 : LEN_32, 1);
        add_bytes(to, n, wide ? 8 : 4);
    }
}

void dump_add(struct buf *to, struct slice code)
{
    struct buf packed = {0};
    add_bytes(to, TYPE_FUNCTION, 1);
    if (code.n >= PACK_FROM && lzf_pack(code, code.n - 4, &packed)) {
        add_bytes(to, LEN_SPECIAL << 6 | SPECIAL_LZF, 1);
        add_length(to, packed.len);
        add_length(to, code.n);
        buf_add_slice(to, buf_slice(&packed));
    } else {
        add_length(to, code.n);
        buf_add_slice(to, code);
    }
    buf_release(&packed);
}

void dump_end(struct buf *to)
{
    buf_add(to, (char[]){VERSION_MOST, 0}, 2);
    uint64_t crc = crc64(buf_slice(to));
    for (int i = 0; i < 8; i++, crc >>= 8)
        buf_add(to, &(char){(char)crc}, 1);
}

/* ---- reading ---- */

bool dump_open(struct dump_reader *r, struct slice payload)
{
    const unsigned char *p = (const unsigned char *)payload.p;
    if (payload.n < FOOTER)
        return false;
    *r = (struct dump_reader){p, payload.n - FOOTER};
    const unsigned char *footer = p + r->left;
    uint64_t crc = 0;
    for (int i = 7; i >= 0; i--)
        crc = crc << 8 | footer[2 + i];
    return (footer[0] | footer[1] << 8) <= VERSION_MOST && crc == crc64(slice_of(p, payload.n - 8));
}

/* Takes n bytes off; NULL when there are fewer. What Redis reads from the footer is a mistake here. */
static const unsigned char *take(struct dump_reader *r, size_t n)
{
    if (n > r->left)
        return NULL;
    const unsigned char *p = r->at;
    r->at += n;
    r->left -= n;
    return p;
}

static bool take_number(struct dump_reader *r, int bytes, uint64_t *ret)
{
    const unsigned char *p = take(r, (size_t)bytes);
    *ret = 0;
    for (int i = 0; p && i < bytes; i++)
        *ret = *ret << 8 | p[i];
    return p != NULL;
}

/* special: which of those it is, and not a length. */
static bool take_length(struct dump_reader *r, uint64_t *ret, bool *special)
{
    uint64_t head, low;
    *special = false;
    if (!take_number(r, 1, &head))
        return false;
    switch (head >> 6) {
    case LEN_14:
        if (!take_number(r, 1, &low))
            return false;
        *ret = (head & 63) << 8 | low;
        return true;
    case LEN_32_OR_64:
        return (head == LEN_32 || head == LEN_64) && take_number(r, head == LEN_32 ? 4 : 8, ret);
    default:
        *special = head >> 6 == LEN_SPECIAL;
        *ret = head & 63;
        return true;
    }
}

/* A number, whose lowest byte is written first, stands for its digits. */
static bool take_digits(struct dump_reader *r, int bytes, struct arena *arena, struct slice *ret)
{
    const unsigned char *p = take(r, (size_t)bytes);
    if (!p)
        return false;
    uint32_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    int32_t number = bytes == 1 ? (int8_t)v : bytes == 2 ? (int16_t)v : (int32_t)v;
    char *digits = arena_alloc(arena, 12);
    *ret = slice_of(digits, (size_t)snprintf(digits, 12, "%d", number));
    return true;
}

static bool take_packed(struct dump_reader *r, struct arena *arena, struct slice *ret)
{
    uint64_t packed, n;
    bool special[2];
    if (!take_length(r, &packed, &special[0]) || !take_length(r, &n, &special[1]) || special[0] || special[1])
        return false;
    const unsigned char *p = packed <= r->left ? take(r, packed) : NULL;
    if (!p || n > lzf_most(packed))
        return false;
    char *to = arena_alloc(arena, n ? n : 1);
    *ret = slice_of(to, n);
    return lzf_unpack(slice_of(p, packed), to, n);
}

static bool take_string(struct dump_reader *r, struct arena *arena, struct slice *ret)
{
    uint64_t n;
    bool special;
    if (!take_length(r, &n, &special))
        return false;
    if (special) {
        if (n == SPECIAL_LZF)
            return take_packed(r, arena, ret);
        return n <= SPECIAL_I32 && take_digits(r, 1 << n, arena, ret);
    }
    const unsigned char *p = n <= r->left ? take(r, n) : NULL;
    *ret = slice_of(p, p ? n : 0);
    return p != NULL;
}

/* "#!engine name=library" in front of the code, as it has been part of the code since. */
static const char *take_old(struct dump_reader *r, struct arena *arena, struct slice *ret)
{
    struct slice name, engine, description, code;
    uint64_t described;
    bool special;
    if (!take_string(r, arena, &name))
        return "Failed loading library name";
    if (!take_string(r, arena, &engine))
        return "Failed loading engine name";
    if (!take_length(r, &described, &special))
        return "Failed loading library description indicator";
    if (described && !take_string(r, arena, &description))
        return "Failed loading library description";
    if (!take_string(r, arena, &code))
        return "Failed loading library blob";
    const struct slice parts[] = {SLICE("#!"), engine, SLICE(" name="), name, SLICE("\n"), code};
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        n += parts[i].n;
    char *to = arena_alloc(arena, n);
    *ret = slice_of(to, n);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; to += parts[i++].n)
        if (parts[i].n)
            memcpy(to, parts[i].p, parts[i].n);
    return NULL;
}

bool dump_next(struct dump_reader *r, struct arena *arena, struct slice *ret_code, const char **ret_err)
{
    uint64_t type;
    *ret_err = NULL;
    if (!take_number(r, 1, &type))
        return false;
    if (type == TYPE_OLD)
        *ret_err = take_old(r, arena, ret_code);
    else if (type != TYPE_FUNCTION)
        *ret_err = "given type is not a function";
    else if (!take_string(r, arena, ret_code))
        *ret_err = "Failed loading library payload";
    return !*ret_err;
}
