/* A record of the log: redo.h has the format. */
#include "base/crc32c.h"
#include "redo/redo_internal.h"
#include "redo/numbers.h"

#define MAGIC      "LRec"
#define AT_LENGTH  4
#define AT_CRC     8
#define AT_BEFORE  12
#define AT_EPOCH   16
#define AT_NUMBER  24
#define AT_SEQ     32
#define AT_DURABLE 40
#define AT_TABLES  48
#define AT_KIND    56
#define AT_ZERO    60

/* Begun with that of the record before it, so that what follows it by chance is no successor. */
static uint32_t checksum(const unsigned char *p, uint32_t before, struct slice payload)
{
    uint32_t crc = crc32c_more(before, slice_of(p, AT_CRC));
    crc = crc32c_more(crc, slice_of(p + AT_BEFORE, REDO_RECORD_BYTES - AT_BEFORE));
    return crc32c_more(crc, payload);
}

void redo_frame_encode(struct redo_frame *f, struct slice payload, unsigned char out[REDO_RECORD_BYTES])
{
    memset(out, 0, REDO_RECORD_BYTES);
    memcpy(out, MAGIC, 4);
    put_u32(out + AT_LENGTH, f->length);
    put_u32(out + AT_BEFORE, f->before);
    put_u64(out + AT_EPOCH, f->epoch);
    put_u64(out + AT_NUMBER, f->number);
    put_u64(out + AT_SEQ, (uint64_t)f->seq);
    put_u64(out + AT_DURABLE, (uint64_t)f->durable);
    put_u64(out + AT_TABLES, (uint64_t)f->tables);
    put_u32(out + AT_KIND, f->kind);
    f->crc = checksum(out, f->before, payload);
    put_u32(out + AT_CRC, f->crc);
}

bool redo_frame_decode(const unsigned char p[REDO_RECORD_BYTES], struct redo_frame *ret)
{
    if (memcmp(p, MAGIC, 4) != 0)
        return false;
    *ret = (struct redo_frame){
        .length = get_u32(p + AT_LENGTH),
        .crc = get_u32(p + AT_CRC),
        .before = get_u32(p + AT_BEFORE),
        .epoch = get_u64(p + AT_EPOCH),
        .number = get_u64(p + AT_NUMBER),
        .seq = (int64_t)get_u64(p + AT_SEQ),
        .durable = (int64_t)get_u64(p + AT_DURABLE),
        .tables = (int64_t)get_u64(p + AT_TABLES),
        .kind = get_u32(p + AT_KIND),
    };
    return ret->kind <= REDO_OUTSIZED && get_u32(p + AT_ZERO) == 0;
}

bool redo_frame_verify(const unsigned char p[REDO_RECORD_BYTES], const struct redo_frame *f,
                       struct slice payload)
{
    return payload.n == f->length && checksum(p, f->before, payload) == f->crc;
}
