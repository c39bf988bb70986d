/* One file of the log: its name, its head, how it is made, begun and given up. */
#include <errno.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/vec.h"
#include "redo/numbers.h"
#include "redo/redo_internal.h"

#define MAGIC      "LARDREDO"
#define FORMAT     1
#define AT_FORMAT  8
#define AT_CRC     12
#define AT_ID      16
#define AT_BEFORE  32
#define AT_NUMBER  48
#define AT_EPOCH   56
#define AT_FROM    64
#define AT_TABLES  72
#define AT_BYTES   80
#define AT_COPIED  88
#define HEAD_BYTES 96

/* ---- names ---- */

void redo_segment_name(const char *path, uint64_t number, char out[REDO_NAME_BYTES])
{
    (void)snprintf(out, REDO_NAME_BYTES, "%s-redo.%llu", path, (unsigned long long)number);
}

void redo_spare_name(const char *path, uint64_t k, char out[REDO_NAME_BYTES])
{
    (void)snprintf(out, REDO_NAME_BYTES, "%s-redo.spare.%llu", path, (unsigned long long)k);
}

struct listing {
    const char *base; /* of the database's file, without its folder */
    uint64_t *numbers;
    size_t len, cap;
    redo_name_fn *spare;
    void *arg;
};

static void see_name(void *arg, const char *name)
{
    struct listing *l = arg;
    size_t n = strlen(l->base);
    if (strncmp(name, l->base, n) != 0 || strncmp(name + n, "-redo.", 6) != 0)
        return;
    const char *rest = name + n + 6;
    uint64_t number;
    if (num_parse_u64(slice_str(rest), &number))
        VEC_PUSH(l->numbers, l->len, l->cap) = number;
    else if (l->spare && strncmp(rest, "spare.", 6) == 0 && num_parse_u64(slice_str(rest + 6), &number))
        l->spare(l->arg, rest + 6);
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

enum status redo_list(const char *path, uint64_t **ret, size_t *ret_n, redo_name_fn *spare, void *arg,
                      struct error *err)
{
    const char *slash = strrchr(path, '/');
    struct listing l = {.base = slash ? slash + 1 : path, .spare = spare, .arg = arg};
    *ret = NULL;
    *ret_n = 0;
    if (redo_files->list(path, see_name, &l) != 0) {
        mem_free(l.numbers);
        return redo_fail(errno, "list the folder of", path, err);
    }
    if (l.len)
        qsort(l.numbers, l.len, sizeof *l.numbers, by_number);
    *ret = l.numbers;
    *ret_n = l.len;
    return ST_OK;
}

struct removal {
    const char *path;
    uint64_t stays;
};

static void remove_spare(void *arg, const char *text)
{
    struct removal *r = arg;
    char name[REDO_NAME_BYTES];
    uint64_t k;
    (void)snprintf(name, sizeof name, "%s-redo.spare.%s", r->path, text);
    if (redo_files->unlink(name) != 0 && num_parse_u64(slice_str(text), &k) && k > r->stays)
        r->stays = k; /* nothing in it counts */
}

enum status redo_spares_remove(const char *path, uint64_t *ret_stays, struct error *err)
{
    struct removal r = {.path = path};
    uint64_t *numbers;
    size_t n;
    enum status st = redo_list(path, &numbers, &n, remove_spare, &r, err);
    mem_free(numbers);
    *ret_stays = r.stays;
    return st;
}

/* ---- heads ---- */

void redo_head_encode(struct redo_head *h, unsigned char out[REDO_BLOCK])
{
    memset(out, 0, REDO_BLOCK);
    memcpy(out, MAGIC, 8);
    put_u32(out + AT_FORMAT, FORMAT);
    memcpy(out + AT_ID, h->id.bytes, sizeof h->id.bytes);
    memcpy(out + AT_BEFORE, h->before.bytes, sizeof h->before.bytes);
    put_u64(out + AT_NUMBER, h->number);
    put_u64(out + AT_EPOCH, h->epoch);
    put_u64(out + AT_FROM, (uint64_t)h->from);
    put_u64(out + AT_TABLES, (uint64_t)h->tables);
    put_u64(out + AT_BYTES, h->bytes);
    put_u64(out + AT_COPIED, (uint64_t)h->copied);
    h->crc = crc32c(slice_of(out, HEAD_BYTES));
    put_u32(out + AT_CRC, h->crc);
}

enum status redo_head_decode(const unsigned char *p, size_t n, const char *path, struct redo_head *ret,
                             struct error *err)
{
    unsigned char copy[HEAD_BYTES];
    if (n < HEAD_BYTES || memcmp(p, MAGIC, 8) != 0)
        return error_set(err, ST_CORRUPT, "%s is no segment of a redo log, or is damaged", path);
    memcpy(copy, p, HEAD_BYTES);
    put_u32(copy + AT_CRC, 0);
    uint32_t crc = get_u32(p + AT_CRC);
    if (crc32c(slice_of(copy, HEAD_BYTES)) != crc)
        return error_set(err, ST_CORRUPT, "%s: the head of this segment of the redo log is damaged", path);
    if (get_u32(p + AT_FORMAT) != FORMAT)
        return error_set(err, ST_NEWER, "%s was written by a newer version of larder", path);
    *ret = (struct redo_head){
        .number = get_u64(p + AT_NUMBER),
        .epoch = get_u64(p + AT_EPOCH),
        .from = (int64_t)get_u64(p + AT_FROM),
        .tables = (int64_t)get_u64(p + AT_TABLES),
        .bytes = get_u64(p + AT_BYTES),
        .copied = (int64_t)get_u64(p + AT_COPIED),
        .crc = crc,
    };
    memcpy(ret->id.bytes, p + AT_ID, sizeof ret->id.bytes);
    memcpy(ret->before.bytes, p + AT_BEFORE, sizeof ret->before.bytes);
    if (ret->bytes % REDO_BLOCK != 0 || ret->bytes > INT64_MAX || ret->from < 1)
        return error_set(err, ST_CORRUPT, "%s: the head of this segment of the redo log is damaged", path);
    return ST_OK;
}

/* ---- ends ---- */

#define END_MAGIC "LARDNEXT"
#define END_BYTES 24

void redo_end_encode(uint32_t crc, uint64_t next, unsigned char out[REDO_BLOCK])
{
    memset(out, 0, REDO_BLOCK);
    memcpy(out, END_MAGIC, 8);
    put_u64(out + 16, next);
    put_u32(out + 8, crc32c_more(crc, slice_of(out, END_BYTES)));
}

bool redo_end_decode(const unsigned char p[REDO_BLOCK], uint32_t crc, uint64_t *ret_next)
{
    unsigned char same[REDO_BLOCK];
    *ret_next = get_u64(p + 16);
    redo_end_encode(crc, *ret_next, same);
    return memcmp(p, same, END_BYTES) == 0;
}

void redo_segment_end(const struct redo_segment *s, uint64_t next)
{
    unsigned char block[REDO_BLOCK];
    struct iovec v = {block, sizeof block};
    uint64_t n;
    redo_end_encode(s->crc, next, block);
    if (redo_file_write(s->fd, &v, 1, s->bytes - REDO_BLOCK, &n) == 0)
        (void)redo_files->sync(s->fd);
}

/* ---- making, beginning, giving up ---- */

enum status redo_spare_make(const char *path, uint64_t k, uint64_t bytes, struct redo_segment **ret,
                            struct error *err)
{
    char name[REDO_NAME_BYTES];
    redo_spare_name(path, k, name);
    int fd = redo_files->open(name, REDO_OPEN_MAKE);
    if (fd < 0)
        return redo_fail(errno, "create", name, err);
    struct redo_stat sb;
    if (redo_files->stat(fd, &sb) != 0) {
        int e = errno;
        redo_files->close(fd);
        (void)redo_files->unlink(name);
        return redo_fail(e, "create", name, err);
    }
    struct redo_segment *s = mem_zalloc(sizeof *s);
    s->fd = fd;
    s->number = k;
    s->bytes = bytes;
    s->inode = sb.inode;
    s->device = sb.device;
    *ret = s;
    return ST_OK;
}

enum status redo_spare_zero(const char *path, const struct redo_segment *s, uint64_t at, uint64_t *ret_n,
                            struct error *err)
{
    static char zeros[REDO_STEP];
    uint64_t left = s->bytes - at;
    struct iovec v = {zeros, left < REDO_STEP ? left : REDO_STEP};
    int e = redo_file_write(s->fd, &v, 1, at, ret_n);
    if (e) {
        char name[REDO_NAME_BYTES];
        redo_spare_name(path, s->number, name);
        return redo_fail(e, "write", name, err);
    }
    return ST_OK;
}

void redo_spare_drop(const char *path, struct redo_segment *s)
{
    char name[REDO_NAME_BYTES];
    redo_spare_name(path, s->number, name);
    redo_files->close(s->fd);
    (void)redo_files->unlink(name); /* if it stays, the next start removes it */
    mem_free(s);
}

enum status redo_spare_head(const char *path, const struct redo_segment *s, struct redo_head *h,
                            struct error *err)
{
    unsigned char block[REDO_BLOCK];
    h->bytes = s->bytes;
    redo_head_encode(h, block);
    struct iovec v = {block, sizeof block};
    uint64_t n;
    int e = redo_file_write(s->fd, &v, 1, 0, &n);
    if (e == 0)
        return ST_OK;
    char name[REDO_NAME_BYTES];
    redo_spare_name(path, s->number, name);
    return redo_fail(e, "write", name, err);
}

/* The head is synced before the name is there, and the name before a record is. */
enum status redo_spare_begin(const char *path, struct redo_segment *s, uint64_t number, struct error *err)
{
    char spare[REDO_NAME_BYTES], name[REDO_NAME_BYTES];
    redo_spare_name(path, s->number, spare);
    redo_segment_name(path, number, name);
    enum status st = ST_OK;
    if (redo_files->sync(s->fd) != 0)
        st = redo_fail(errno, "sync", spare, err);
    else if (redo_files->rename(spare, name) != 0)
        st = redo_fail(errno, "rename", spare, err);
    if (st != ST_OK) {
        redo_spare_drop(path, s);
        return st;
    }
    s->number = number;
    st = redo_folder_sync(path, err);
    if (st != ST_OK) {
        /* It may be there after a crash: it has no records, and the next one takes its number. */
        redo_files->close(s->fd);
        (void)redo_files->unlink(name);
        mem_free(s);
    }
    return st;
}

bool redo_segment_is_there(const char *path, const struct redo_segment *s)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(path, s->number, name);
    struct redo_stat sb;
    return redo_files->stat_name(name, &sb) == 0 && sb.inode == s->inode && sb.device == s->device;
}

enum status redo_segment_recycle(const char *path, struct redo_segment *s, bool keep, uint64_t k,
                                 bool *ret_kept, struct error *err)
{
    char name[REDO_NAME_BYTES], spare[REDO_NAME_BYTES];
    redo_segment_name(path, s->number, name);
    redo_spare_name(path, k, spare);
    *ret_kept = false;
    if (!redo_segment_is_there(path, s)) /* somebody has taken it: what has its name now is not ours */
        return ST_OK;
    if ((keep ? redo_files->rename(name, spare) : redo_files->unlink(name)) != 0)
        return redo_fail(errno, keep ? "rename" : "remove", name, err);
    if (keep) {
        s->number = k;
        *ret_kept = true;
    }
    return ST_OK;
}
