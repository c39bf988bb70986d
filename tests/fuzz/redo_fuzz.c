/* Reading a redo log. The input tells of up to four segments, each a head and records at blocks of their own;
   as they are, or (the first byte says so) with what belongs together made right: magic, checksums, chain.
   Any files end in records or in an error; records ascend; redo_find and redo_each tell of the same last one.
   What was read in peace is the same again behind a start that begins a new epoch. */
#include "fuzz.h"

#include "../unit/power_disk.h"
#include "base/crc32c.h"
#include "redo/numbers.h"

#define PATH    "/x/d"
#define HEAD    96
#define AT_CRC  12 /* of a head */
#define RECORDS 64

struct input {
    const uint8_t *p;
    size_t n;
};

static unsigned take(struct input *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

static void take_bytes(struct input *in, unsigned char *to, size_t n)
{
    size_t k = n < in->n ? n : in->n;
    memset(to, 0, n);
    if (k)
        memcpy(to, in->p, k);
    in->p += k;
    in->n -= k;
}

/* What must be right for a head to be read: everything else stays as it is. */
static void repair_head(unsigned char *p, uint64_t number, uint64_t bytes)
{
    struct redo_head h = {.number = number, .bytes = bytes};
    memcpy(h.id.bytes, p + 16, 16);
    memcpy(h.before.bytes, p + 32, 16);
    h.epoch = p[56];
    h.from = 1 + p[64];
    h.tables = p[72];
    h.copied = p[88];
    memset(h.id.bytes + 1, 0, 15); /* so that segments may be of the same log */
    memset(h.before.bytes + 1, 0, 15);
    redo_head_encode(&h, p);
}

static uint32_t repair_record(unsigned char *p, size_t length, const unsigned char *head, uint32_t before)
{
    struct redo_frame f = {.length = (uint32_t)length,
                           .before = before,
                           .epoch = get_u64(head + 56),
                           .number = get_u64(head + 48),
                           .seq = p[32],
                           .durable = p[40],
                           .tables = p[48],
                           .kind = p[56] & 1};
    redo_frame_encode(&f, slice_of(p + REDO_RECORD_BYTES, length), p);
    return f.crc;
}

static void make_segment(struct input *in, uint64_t number, bool repair)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(PATH, number, name);
    int fd = sim_open(name, REDO_OPEN_MAKE);
    if (fd < 0) /* the input makes it twice */
        fd = sim_open(name, REDO_OPEN_WRITE);
    struct sim_file *f = &sim.disk->files[fd];
    unsigned char *p = f->now;
    unsigned records = take(in) % 16, blocks = 1 + take(in) % 15, flags = take(in);
    f->size = blocks * REDO_BLOCK;
    memset(p, 0, f->size);
    take_bytes(in, p, HEAD);
    if (repair)
        repair_head(p, number, f->size);
    uint32_t crc = get_u32(p + AT_CRC);
    for (size_t at = REDO_BLOCK; records-- > 0 && at < f->size;) {
        unsigned length = take(in), skip = take(in);
        take_bytes(in, p + at, REDO_RECORD_BYTES + length);
        if (repair)
            crc = repair_record(p + at, length, p, skip & 8 ? crc + 1 : crc);
        at += REDO_BLOCK * (skip & 4 ? skip % 4 : 1);
    }
    if (flags & 1)
        f->size -= flags % 97;
    memcpy(f->safe, f->now, f->size);
    f->safe_size = f->size;
    sim_close(fd);
}

struct seen {
    int64_t after;
    size_t n;
    int64_t seqs[RECORDS];
    uint32_t sums[RECORDS];
};

static enum status see(void *arg, const struct redo_record *rec)
{
    struct seen *s = arg;
    CHECK_OR_DIE(rec->seq > (s->n ? s->seqs[s->n - 1] : s->after));
    CHECK_OR_DIE(s->n < RECORDS);
    s->sums[s->n] = crc32c(rec->payload);
    s->seqs[s->n++] = rec->seq;
    return ST_OK;
}

/* A start: what counts is told again, whatever was copied. */
static void begin_again(const struct redo_found *found, const struct seen *s, int64_t after)
{
    struct error err;
    struct redo *r;
    int64_t last = s->n ? s->seqs[s->n - 1] : after;
    struct redo_options o = {
        .path = PATH, .old = found->id, .from = last + 1, .tables = after, .segment_bytes = 2 * REDO_BLOCK};
    o.id.bytes[0] = 255;
    CHECK_OR_DIE(redo_open(&o, &r, &err) == ST_OK);
    struct seen again = {.after = after};
    CHECK_OR_DIE(redo_each(PATH, &o.id, after, see, &again, &err) == ST_OK);
    CHECK_OR_DIE(again.n == s->n && memcmp(again.seqs, s->seqs, sizeof s->seqs) == 0 &&
                 memcmp(again.sums, s->sums, sizeof s->sums) == 0);
    CHECK_OR_DIE(redo_close(r, true, &err) == ST_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    sim.disk = &sim_real;
    sim_real.n = 0;
    redo_files = &sim_files;
    unsigned how = take(&in);
    for (unsigned i = 0; i <= how / 4 % 4; i++)
        make_segment(&in, 1 + i + (how >> 4 == i ? 1 : 0), how & 1);
    int64_t after = how & 2 ? take(&in) : 0;
    struct redo_found found;
    struct error err;
    struct seen s = {.after = after};
    enum status st = redo_find(PATH, NULL, &found, &err);
    CHECK_OR_DIE(st == ST_OK || st == ST_CORRUPT || st == ST_NEWER);
    enum status each = redo_each(PATH, NULL, after, see, &s, &err);
    CHECK_OR_DIE(each == ST_OK || each == ST_CORRUPT || each == ST_NEWER);
    if (st != ST_OK || each != ST_OK)
        return 0;
    CHECK_OR_DIE(s.n == 0 || found.last == s.seqs[s.n - 1]);
    begin_again(&found, &s, after);
    return 0;
}
