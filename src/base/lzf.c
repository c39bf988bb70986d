#include "base/lzf.h"

#include <stdint.h>

#include "base/mem.h"

#define RUN_MOST   32   /* bytes that one head stands for */
#define OFF_MOST   8192 /* how far back a reference reaches */
#define MATCH_MOST 264
#define TABLE_SIZE 65536

/* ---- packing ---- */

struct packer {
    const unsigned char *in;
    size_t n, at;
    unsigned char *out; /* room for limit + 4 bytes */
    size_t limit, len;
    size_t head;     /* where the head of the open run is; its bytes follow up to len */
    size_t run;      /* how many they are */
    uint32_t *table; /* the last place with a hash; 0: none, because the first place is never referred to */
};

static uint32_t hash_at(const struct packer *p, size_t i)
{
    uint32_t three = (uint32_t)p->in[i] << 16 | (uint32_t)p->in[i + 1] << 8 | p->in[i + 2];
    return ((three >> 8) - three * 5) & (TABLE_SIZE - 1);
}

static void open_run(struct packer *p)
{
    p->head = p->len++;
    p->run = 0;
}

/* An empty run leaves nothing. */
static void close_run(struct packer *p)
{
    if (p->run)
        p->out[p->head] = (unsigned char)(p->run - 1);
    else
        p->len--;
}

static void add_byte(struct packer *p)
{
    p->out[p->len++] = p->in[p->at++];
    if (++p->run == RUN_MOST) {
        close_run(p);
        open_run(p);
    }
}

/* How many bytes at `from` are those at p->at, of which the first three are. Near the end the bound is what
   Redis' unrolled comparison makes of it. */
static size_t match_length(const struct packer *p, size_t from)
{
    size_t most = p->n - p->at - 2, n = 3;
    if (most > MATCH_MOST)
        most = MATCH_MOST;
    if (most == 17 || most == 18)
        most = 19;
    while (n < most && p->in[from + n] == p->in[p->at + n])
        n++;
    return n;
}

static void add_reference(struct packer *p, size_t from)
{
    size_t off = p->at - from - 1, n = match_length(p, from), told = n - 2;
    close_run(p);
    if (told < 7) {
        p->out[p->len++] = (unsigned char)((off >> 8) + (told << 5));
    } else {
        p->out[p->len++] = (unsigned char)((off >> 8) + (7 << 5));
        p->out[p->len++] = (unsigned char)(told - 7);
    }
    p->out[p->len++] = (unsigned char)off;
    open_run(p);
    p->at += n;
    if (p->at + 2 >= p->n)
        return;
    for (size_t i = p->at - 2; i < p->at; i++)
        p->table[hash_at(p, i)] = (uint32_t)i;
}

/* False: there is no room. */
static bool pack_next(struct packer *p)
{
    uint32_t *place = &p->table[hash_at(p, p->at)];
    size_t from = *place;
    *place = (uint32_t)p->at;
    if (from && p->at - from <= OFF_MOST && memcmp(p->in + from, p->in + p->at, 3) == 0) {
        if (p->len - !p->run + 4 >= p->limit)
            return false;
        add_reference(p, from);
        return true;
    }
    if (p->len >= p->limit)
        return false;
    add_byte(p);
    return true;
}

static bool pack(struct packer *p)
{
    open_run(p);
    while (p->at + 2 < p->n)
        if (!pack_next(p))
            return false;
    if (p->len + 3 > p->limit)
        return false;
    while (p->at < p->n)
        add_byte(p);
    close_run(p);
    return true;
}

bool lzf_pack(struct slice from, size_t limit, struct buf *to)
{
    if (from.n < 3 || from.n > UINT32_MAX)
        return false;
    struct packer p = {.in = (const unsigned char *)from.p, .n = from.n, .limit = limit};
    p.out = (unsigned char *)buf_reserve(to, limit + 4);
    p.table = mem_zalloc(TABLE_SIZE * sizeof *p.table);
    bool packed = pack(&p);
    mem_free(p.table);
    if (packed)
        to->len += p.len;
    return packed;
}

/* ---- unpacking ---- */

size_t lzf_most(size_t n)
{
    return n > SIZE_MAX / MATCH_MOST ? SIZE_MAX : n * MATCH_MOST;
}

struct unpacker {
    const unsigned char *in;
    size_t left;
    char *out;
    size_t len, n;
};

static bool copy_run(struct unpacker *u, size_t run)
{
    if (run > u->left || run > u->n - u->len)
        return false;
    memcpy(u->out + u->len, u->in, run);
    u->in += run;
    u->left -= run;
    u->len += run;
    return true;
}

/* A reference may reach into what it makes itself. */
static bool copy_reference(struct unpacker *u, size_t head)
{
    size_t told = head >> 5;
    if (u->left < (told == 7 ? 2u : 1u))
        return false;
    if (told == 7) {
        told += *u->in++;
        u->left--;
    }
    size_t off = ((head & 31) << 8) + *u->in++ + 1, n = told + 2;
    u->left--;
    if (off > u->len || n > u->n - u->len)
        return false;
    for (; n; n--, u->len++)
        u->out[u->len] = u->out[u->len - off];
    return true;
}

bool lzf_unpack(struct slice from, char *to, size_t n)
{
    struct unpacker u = {.in = (const unsigned char *)from.p, .left = from.n, .n = n};
    u.out = to;
    while (u.left) {
        size_t head = *u.in++;
        u.left--;
        if (!(head < RUN_MOST ? copy_run(&u, head + 1) : copy_reference(&u, head)))
            return false;
    }
    return u.len == n;
}
