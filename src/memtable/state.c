/* How a state of a row is packed: the numbers of the row, each in as few bytes as it needs, then its name and
   its value. A number has a place of its own in the order below, and two bits in the tag say how many bytes
   it takes there: none (it is 0), one, four or eight, so that reading and writing take no loop over bytes and
   no branch.

   Numbers that are large but close to each other are kept as distances from the first row's: versions, which
   are microseconds, expiries up to 49 days ahead, and tickets. Provisional seqs lose their high bit to a low
   one.

   The last number is written and read with eight bytes whatever it takes: there is room for them. Numbers of
   collections with holes (key_row.numbers), which are few, stand behind everything else.

   Most rows are alike: short strings of database 0 that do not expire, short fields of hashes and members of
   sets. Their numbers have widths that are the same for all of them, and are written and read together. */
#include <endian.h>

#include "memtable/memtable_internal.h"
#include "store/order.h"

enum number {
    N_NAME,  /* its length; of an item by position, that */
    N_VALUE, /* its length */
    N_TICKET,
    N_EXPIRY,
    N_SEQ, /* of keys from here on; of items the two below are in their place */
    N_VERSION,
    N_DB,
    N_ID,
    N_SIZE,
    N_FIRST,
    NUMBERS
};
enum { N_ORD = N_SEQ, N_SCORE = N_VERSION };

#define ITEM_NUMBERS (N_SCORE + 1)
#define SLACK        8

_Static_assert(TAG_WIDTHS + 2 * NUMBERS <= 32, "a tag has room for all widths");

static const uint8_t widths[4] = {0, 1, 4, 8};
static const uint64_t masks[4] = {0, 0xff, 0xffffffff, UINT64_MAX};

/* The widths of four numbers together. */
#define W1(c)     ((c) == 0 ? 0 : (c) == 1 ? 1 : (c) == 2 ? 4 : 8)
#define W4(b)     (W1((b)&3) + W1((b) >> 2 & 3) + W1((b) >> 4 & 3) + W1((b) >> 6 & 3))
#define ROW4(b)   W4(b), W4((b) + 1), W4((b) + 2), W4((b) + 3)
#define ROW16(b)  ROW4(b), ROW4((b) + 4), ROW4((b) + 8), ROW4((b) + 12)
#define ROW64(b)  ROW16(b), ROW16((b) + 16), ROW16((b) + 32), ROW16((b) + 48)
#define ROW256(b) ROW64(b), ROW64((b) + 64), ROW64((b) + 128), ROW64((b) + 192)
static const uint8_t widths4[256] = {ROW256(0)};

static unsigned code_of(uint32_t tag, unsigned number)
{
    return tag >> (TAG_WIDTHS + 2 * number) & 3;
}

static size_t numbers_bytes(uint32_t tag)
{
    return (size_t)widths4[tag >> TAG_WIDTHS & 0xff] + widths4[tag >> (TAG_WIDTHS + 8) & 0xff] +
           widths4[tag >> (TAG_WIDTHS + 16)];
}

static const char *body(const struct state *s)
{
    return (const char *)s + (state_kind(s) == KIND_KEY ? sizeof *s : sizeof(struct member));
}

/* ---- rows that are alike ---- */

#define CODE(number, code) ((uint32_t)(code) << (TAG_WIDTHS + 2 * (number)))
#define ALL_WIDTHS         (~(uint32_t)0 << TAG_WIDTHS)

/* The order of enum number: of a key its seq and then its version, of an item its ord. */
#define ALIKE_ITEM (CODE(N_NAME, 1) | CODE(N_VALUE, 1) | CODE(N_TICKET, 2) | CODE(N_ORD, 2))
#define ALIKE_KEY  (ALIKE_ITEM | CODE(N_VERSION, 2))
struct __attribute__((packed)) alike {
    uint8_t name, value;
    uint32_t ticket, seq, version;
};
#define ALIKE_ITEM_BYTES (sizeof(struct alike) - sizeof(uint32_t))

/* A state with room for so many bytes behind its head and numbers. */
static struct state *take(struct memtable *m, size_t head, size_t bytes)
{
    return memtable_take(m, head + (bytes > SLACK ? bytes : SLACK));
}

static void copy_bytes(char *at, struct slice name, struct slice value)
{
    if (name.n)
        memcpy(at, name.p, name.n);
    if (value.n)
        memcpy(at + name.n, value.p, value.n);
}

static bool are_short(struct slice name, struct slice value, uint64_t numbers)
{
    return (name.n | value.n) <= UINT8_MAX && numbers <= UINT32_MAX;
}

/* ---- packing ---- */

struct packing {
    uint32_t tag;
    uint64_t numbers[NUMBERS];
};

static void set_coded(struct packing *p, unsigned number, unsigned code, uint64_t v)
{
    p->tag |= code << (TAG_WIDTHS + 2 * number);
    p->numbers[number] = v;
}

static void set(struct packing *p, unsigned number, uint64_t v)
{
    set_coded(p, number, (unsigned)(v != 0) + (v > 0xff) + (v > 0xffffffff), v);
}

static uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static int64_t zagzig(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static int64_t distance(int64_t v, int64_t from)
{
    return (int64_t)((uint64_t)v - (uint64_t)from);
}

static int64_t from_distance(int64_t d, int64_t from)
{
    return (int64_t)((uint64_t)d + (uint64_t)from);
}

/* In four bytes as a distance, else as it is. */
static void set_expiry(struct packing *p, const struct memtable *m, int64_t at)
{
    if (at == EXPIRE_NEVER)
        return;
    uint64_t ahead = (uint64_t)distance(at, m->ms0);
    bool near = ahead <= UINT32_MAX;
    set_coded(p, N_EXPIRY, near ? 2 : 3, near ? ahead : (uint64_t)at);
}

/* What stands behind the value. */
static size_t holes_bytes(uint32_t tag)
{
    return tag & TAG_HOLES ? sizeof(int64_t) : 0;
}

/* Writes numbers, name and value behind a head of so many bytes; there is room for what follows the value. */
static struct state *pack(struct memtable *m, struct packing *p, unsigned numbers, size_t head,
                          struct slice name, struct slice value)
{
    struct state *s = take(m, head + numbers_bytes(p->tag), name.n + value.n + holes_bytes(p->tag));
    char *at = (char *)s + head;
    s->link.tag = p->tag;
    for (unsigned i = 0; i < numbers; i++) {
        uint64_t v = htole64(p->numbers[i]);
        memcpy(at, &v, sizeof v);
        at += widths[code_of(p->tag, i)];
    }
    copy_bytes(at, name, value);
    return s;
}

/* The first row decides from where distances are told. */
static void set_base(struct memtable *m, int64_t version, int64_t ticket)
{
    m->based = true;
    m->version0 = version;
    m->ms0 = version / 1000;
    m->ticket0 = ticket;
}

static uint64_t seq_number(int64_t seq)
{
    bool provisional = seq >= STORE_PROVISIONAL;
    return (uint64_t)(provisional ? seq - STORE_PROVISIONAL : seq) << 1 | provisional;
}

static int64_t number_seq(uint64_t v)
{
    return (int64_t)(v >> 1) + (v & 1 ? STORE_PROVISIONAL : 0);
}

/* A key that is not like most. */
static struct state *pack_key(struct memtable *m, const struct key_row *row, uint32_t tag, struct slice value,
                              uint64_t ticket)
{
    struct packing p = {.tag = tag};
    bool gone = row->type == ROW_NONE;
    if (!gone && row->expire_at > 0)
        p.tag |= TAG_EXPIRES;
    set(&p, N_NAME, row->key.n);
    set(&p, N_VALUE, value.n);
    set(&p, N_TICKET, ticket);
    if (!gone)
        set_expiry(&p, m, row->expire_at);
    set(&p, N_SEQ, seq_number(row->seq));
    set(&p, N_VERSION, zigzag(distance(row->version, m->version0)));
    set(&p, N_DB, row->db);
    set(&p, N_ID, (uint64_t)row->id);
    set(&p, N_SIZE, (uint64_t)row->size);
    set(&p, N_FIRST, (uint64_t)row->first);
    if (row->numbers)
        p.tag |= TAG_HOLES;
    struct state *s = pack(m, &p, NUMBERS, sizeof(struct state), row->key, value);
    if (row->numbers)
        memcpy((char *)(s + 1) + numbers_bytes(p.tag) + row->key.n + value.n, &row->numbers,
               sizeof row->numbers);
    return s;
}

struct state *state_of_key(struct memtable *m, const struct key_row *row, uint32_t hash, int64_t ticket)
{
    bool gone = row->type == ROW_NONE;
    struct slice value = gone ? SLICE("") : row->value;
    uint32_t tag = KIND_KEY | (uint32_t)row->type << TAG_TYPE;
    if (!m->based)
        set_base(m, row->version, ticket);
    uint64_t seq = seq_number(row->seq), version = zigzag(distance(row->version, m->version0));
    uint64_t since = (uint64_t)distance(ticket, m->ticket0);
    bool alike = !(row->db | (uint64_t)row->id | (uint64_t)row->size | (uint64_t)row->first |
                   (uint64_t)row->numbers) &&
                 (gone || row->expire_at == EXPIRE_NEVER) &&
                 are_short(row->key, value, seq | version | since);
    struct state *s;
    if (alike) {
        struct alike a = {(uint8_t)row->key.n, (uint8_t)value.n, htole32((uint32_t)since),
                          htole32((uint32_t)seq), htole32((uint32_t)version)};
        s = take(m, sizeof *s + sizeof a, row->key.n + value.n);
        s->link.tag = tag | ALIKE_KEY;
        memcpy(s + 1, &a, sizeof a);
        copy_bytes((char *)(s + 1) + sizeof a, row->key, value);
    } else {
        s = pack_key(m, row, tag, value, since);
    }
    s->link.hash = hash;
    return s;
}

/* A score as a number that is small when the score is a small whole one: its bytes the other way round. */
static uint64_t score_bits(double score)
{
    uint64_t bits;
    memcpy(&bits, &score, sizeof bits);
    return __builtin_bswap64(bits);
}

/* An item that is not like most. */
static struct state *pack_item(struct memtable *m, const struct item_row *row, uint32_t tag,
                               struct slice name, struct slice value, uint64_t ticket)
{
    struct packing p = {.tag = tag};
    set(&p, N_NAME, item_named(row->ref.table) ? name.n : zigzag(row->ref.pos));
    set(&p, N_TICKET, ticket);
    if (!(tag & TAG_GONE)) {
        set(&p, N_VALUE, value.n);
        set_expiry(&p, m, row->expire_at);
        set(&p, N_ORD, zigzag(row->ord));
        set(&p, N_SCORE, score_bits(row->score));
        p.tag |= row->expire_at ? TAG_EXPIRES : 0;
    }
    return pack(m, &p, ITEM_NUMBERS, sizeof(struct member), name, value);
}

struct state *state_of_item(struct memtable *m, struct group *g, const struct item_row *row, bool gone,
                            uint32_t hash, int64_t ticket)
{
    bool named = item_named(g->table);
    struct slice name = named ? row->ref.name : SLICE(""), value = gone ? SLICE("") : row->value;
    uint32_t tag = (uint32_t)g->table | (gone ? TAG_GONE : 0);
    if (!m->based)
        set_base(m, 0, ticket);
    uint64_t ord = zigzag(row->ord), since = (uint64_t)distance(ticket, m->ticket0);
    struct member *x;
    if (named && !gone && row->expire_at == 0 && score_bits(row->score) == 0 &&
        are_short(name, value, ord | since)) {
        struct alike a = {(uint8_t)name.n, (uint8_t)value.n, htole32((uint32_t)since), htole32((uint32_t)ord),
                          0};
        x = (struct member *)take(m, sizeof *x + ALIKE_ITEM_BYTES, name.n + value.n);
        x->state.link.tag = tag | ALIKE_ITEM;
        memcpy(x + 1, &a, ALIKE_ITEM_BYTES);
        copy_bytes((char *)(x + 1) + ALIKE_ITEM_BYTES, name, value);
    } else {
        x = (struct member *)pack_item(m, row, tag, name, value, since);
    }
    x->state.link.hash = hash;
    x->era = g->era;
    return &x->state;
}

/* ---- reading ---- */

/* Where the next number is. */
struct unpacking {
    uint32_t tag;
    unsigned number;
    const char *at;
};

static uint64_t next(struct unpacking *u)
{
    unsigned code = code_of(u->tag, u->number++);
    uint64_t v;
    memcpy(&v, u->at, sizeof v);
    u->at += widths[code];
    return le64toh(v) & masks[code];
}

static int64_t next_expiry(struct unpacking *u, const struct memtable *m)
{
    bool near = code_of(u->tag, u->number) == 2;
    uint64_t v = next(u);
    return near ? from_distance((int64_t)v, m->ms0) : (int64_t)v;
}

static void key_alike(const struct memtable *m, const struct state *s, struct key_row *k)
{
    struct alike a;
    memcpy(&a, s + 1, sizeof a);
    *k = (struct key_row){.seq = number_seq(le32toh(a.seq)),
                          .key = {(const char *)(s + 1) + sizeof a, a.name},
                          .version = from_distance(zagzig(le32toh(a.version)), m->version0),
                          .ticket = from_distance(le32toh(a.ticket), m->ticket0)};
    k->value = slice_of(k->key.p + a.name, a.value);
}

static void unpack_key(const struct memtable *m, const struct state *s, struct key_row *k)
{
    struct unpacking u = {s->link.tag, 0, body(s)};
    k->key.n = next(&u);
    k->value.n = next(&u);
    k->ticket = from_distance((int64_t)next(&u), m->ticket0);
    k->expire_at = next_expiry(&u, m);
    k->seq = number_seq(next(&u));
    k->version = from_distance(zagzig(next(&u)), m->version0);
    k->db = (uint32_t)next(&u);
    k->id = (int64_t)next(&u);
    k->size = (int64_t)next(&u);
    k->first = (int64_t)next(&u);
    k->key.p = u.at;
    k->value.p = u.at + k->key.n;
    k->numbers = 0;
    if (u.tag & TAG_HOLES)
        memcpy(&k->numbers, k->value.p + k->value.n, sizeof k->numbers);
    k->fresh = false; /* in changes that are handed out */
}

void state_key(const struct memtable *m, const struct state *s, struct mem_key *ret)
{
    struct key_row *k = &ret->row;
    if ((s->link.tag & ALL_WIDTHS) == ALIKE_KEY)
        key_alike(m, s, k);
    else
        unpack_key(m, s, k);
    k->type = state_type(s);
    if (k->type == ROW_NONE)
        k->expire_at = EXPIRE_DELETED;
    ret->fresh = s->link.tag & TAG_FRESH;
}

void state_item(const struct memtable *m, const struct state *s, struct mem_item *ret)
{
    struct unpacking u = {s->link.tag, 0, body(s)};
    const struct group *g = member_group(s);
    struct item_row *i = &ret->row;
    bool named = item_named(g->table);
    uint64_t name = next(&u);
    i->ref = (struct item_ref){.table = g->table, .id = g->id, .pos = named ? 0 : zagzig(name)};
    i->value.n = next(&u);
    ret->ticket = from_distance((int64_t)next(&u), m->ticket0);
    i->expire_at = next_expiry(&u, m);
    i->ord = zagzig(next(&u));
    uint64_t bits = __builtin_bswap64(next(&u));
    memcpy(&i->score, &bits, sizeof bits);
    i->ref.name = slice_of(u.at, named ? name : 0);
    i->value.p = u.at + i->ref.name.n;
    i->fresh = false;
    ret->gone = item_gone(s);
    ret->fresh = s->link.tag & TAG_FRESH;
}

struct slice state_name(const struct state *s)
{
    struct unpacking u = {s->link.tag, N_NAME, body(s)};
    const char *name = u.at + numbers_bytes(u.tag);
    return slice_of(name, next(&u));
}

static uint32_t db_of(const struct state *s)
{
    struct unpacking u = {s->link.tag, N_DB, body(s)};
    if (code_of(u.tag, N_DB) == 0)
        return 0;
    u.at += numbers_bytes(u.tag & ((1u << (TAG_WIDTHS + 2 * N_DB)) - 1));
    return (uint32_t)next(&u);
}

bool state_is_key(const struct state *s, uint32_t db, struct slice key)
{
    return state_kind(s) == KIND_KEY && db_of(s) == db && slice_eq(state_name(s), key);
}

bool state_is_item(const struct state *s, const struct item_ref *ref)
{
    if (state_kind(s) != (unsigned)ref->table || member_group(s)->id != ref->id)
        return false;
    if (item_named(ref->table))
        return slice_eq(state_name(s), ref->name);
    return state_place(s) == ref->pos;
}

int64_t state_place(const struct state *s)
{
    struct unpacking u = {s->link.tag, N_NAME, body(s)};
    return zagzig(next(&u));
}

bool state_is_due(const struct state *s)
{
    return state_type(s) == ROW_HASH && code_of(s->link.tag, N_FIRST) != 0;
}

static size_t state_size(const struct state *s)
{
    unsigned kind = state_kind(s);
    if (kind == KIND_DB)
        return sizeof(struct member_db);
    if (kind == KIND_NEXT_ID)
        return sizeof(struct member_next_id);
    struct unpacking u = {s->link.tag, N_NAME, body(s)};
    size_t bytes = next(&u);
    if (kind != KIND_KEY && !item_named((enum item_table)kind))
        bytes = 0;
    bytes += next(&u) + holes_bytes(u.tag);
    return (size_t)(body(s) - (const char *)s) + numbers_bytes(u.tag) + (bytes > SLACK ? bytes : SLACK);
}

void state_give(struct memtable *m, struct state *s)
{
    memtable_give(m, s, state_size(s));
}
