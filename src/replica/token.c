/* The bytes of a token, numbers with the lowest byte first:

     0   the version of this form: 1
     1   the position's kind
     2   the shard: 0, as there is one
     4   the timeline, or the run of the server
     8   the database
     16  LSN and sequence: the number. GTID: for each domain its number, the server's, the sequence's
     .   CRC-32C of all before it

   The checksum stands at the end in every version, so that a later version's token is told from a torn
   one. */
#include "replica/token.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "proto/base64.h"

#define TOKEN_VERSION 1
#define HEAD_BYTES    16
#define GTID_BYTES    16
#define CHECK_BYTES   4
#define MOST_BYTES    (HEAD_BYTES + POSITION_DOMAINS * GTID_BYTES + CHECK_BYTES)

_Static_assert((MOST_BYTES + 2) / 3 * 4 < TOKEN_TEXT, "the longest token fits");

static uint8_t *put(uint8_t *to, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (uint8_t)(v >> (8 * i));
    return to;
}

static uint64_t get(const uint8_t *from, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)from[i] << (8 * i);
    return v;
}

static uint32_t checksum(const uint8_t *bytes, size_t n)
{
    return crc32c(slice_of(bytes, n));
}

/* ---- writing ---- */

static size_t write_bytes(const struct position *p, uint8_t out[MOST_BYTES])
{
    uint8_t *to = put(out, TOKEN_VERSION, 1);
    to = put(to, p->kind, 1);
    to = put(to, 0, 2);
    to = put(to, p->timeline, 4);
    to = put(to, p->database, 8);
    if (p->kind == POSITION_LSN || p->kind == POSITION_SEQUENCE)
        to = put(to, p->number, 8);
    for (uint32_t i = 0; p->kind == POSITION_GTID && i < p->ndomains; i++) {
        to = put(to, p->gtids[i].domain, 4);
        to = put(to, p->gtids[i].server, 4);
        to = put(to, p->gtids[i].seq, 8);
    }
    to = put(to, checksum(out, (size_t)(to - out)), CHECK_BYTES);
    return (size_t)(to - out);
}

size_t token_write(const struct position *p, char out[TOKEN_TEXT])
{
    uint8_t bytes[MOST_BYTES];
    struct buf text = {0};
    base64_add_url(&text, slice_of(bytes, write_bytes(p, bytes)));
    size_t n = text.len;
    memcpy(out, text.p, n);
    out[n] = '\0';
    buf_release(&text);
    return n;
}

void token_fill(const struct position *p, char room[TOKEN_ROOM])
{
    char text[TOKEN_TEXT];
    size_t n = token_write(p, text);
    memset(room, ' ', TOKEN_ROOM - n);
    memcpy(room + TOKEN_ROOM - n, text, n);
}

/* ---- reading ---- */

/* The GTIDs that fill n bytes, in ascending order of domains. */
static bool read_gtids(const uint8_t *from, size_t n, struct position *p)
{
    if (n % GTID_BYTES || n == 0 || n > (size_t)POSITION_DOMAINS * GTID_BYTES)
        return false;
    p->ndomains = (uint32_t)(n / GTID_BYTES);
    for (uint32_t i = 0; i < p->ndomains; i++, from += GTID_BYTES) {
        p->gtids[i] = (struct position_gtid){
            .domain = (uint32_t)get(from, 4), .server = (uint32_t)get(from + 4, 4), .seq = get(from + 8, 8)};
        if (i && p->gtids[i].domain <= p->gtids[i - 1].domain)
            return false;
    }
    return true;
}

/* What is between the head and the checksum. */
static bool read_place(const uint8_t *from, size_t n, struct position *p)
{
    switch (p->kind) {
    case POSITION_NONE:
        return n == 0 && p->timeline == 0 && p->database == 0;
    case POSITION_LSN:
    case POSITION_SEQUENCE:
        p->number = n == 8 ? get(from, 8) : 0;
        return n == 8;
    case POSITION_GTID:
        return read_gtids(from, n, p);
    default:
        return false;
    }
}

static enum status read_bytes(const uint8_t *b, size_t n, struct position *ret, struct error *err)
{
    if (n < HEAD_BYTES + CHECK_BYTES || get(b + n - CHECK_BYTES, CHECK_BYTES) != checksum(b, n - CHECK_BYTES))
        return error_set(err, ST_INVALID, "the token is torn or changed: its checksum is wrong");
    if (b[0] != TOKEN_VERSION)
        return error_set(err, ST_INVALID, "the token has form %u, this server knows form %d", b[0],
                         TOKEN_VERSION);
    if (get(b + 2, 2) != 0)
        return error_set(err, ST_INVALID, "the token names shard %u, and there is one only",
                         (unsigned)get(b + 2, 2));
    struct position p = {
        .kind = (enum position_kind)b[1], .timeline = (uint32_t)get(b + 4, 4), .database = get(b + 8, 8)};
    if (!read_place(b + HEAD_BYTES, n - HEAD_BYTES - CHECK_BYTES, &p))
        return error_set(err, ST_INVALID, "the token names no position");
    *ret = p;
    return ST_OK;
}

enum status token_read(struct slice text, struct position *ret, struct error *err)
{
    struct arena arena = {0};
    struct slice bytes;
    if (text.n >= TOKEN_TEXT)
        return error_set(err, ST_INVALID, "the token is longer than any: %zu bytes", text.n);
    bool sound = base64_decode(text, &arena, &bytes);
    enum status st = sound ? read_bytes((const uint8_t *)bytes.p, bytes.n, ret, err)
                           : error_set(err, ST_INVALID, "the token is not base64url");
    arena_release(&arena);
    return st;
}
