/* What the parts of the redo log share: its files' format, and how they are reached. */
#ifndef LARDER_REDO_REDO_INTERNAL_H
#define LARDER_REDO_REDO_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "redo/redo.h"

#define REDO_BLOCK        UINT64_C(4096)
#define REDO_RECORD_BYTES 64U                     /* in front of a payload */
#define REDO_MAX_PAYLOAD  (UINT64_C(1) << 31)     /* its length has 32 bits */
#define REDO_STEP         (UINT64_C(256) * 1024)  /* of zeros that are written at a time */
#define REDO_FIRST_BYTES  (UINT64_C(1024) * 1024) /* of a log's first segment */
#define REDO_NAME_BYTES   4200

static inline uint64_t redo_round_up(uint64_t n)
{
    return (n + REDO_BLOCK - 1) / REDO_BLOCK * REDO_BLOCK;
}

/* ---- files (files.c) ---- */

struct redo_stat {
    uint64_t size, links, inode, device;
};

/* MAKE fails when the file is there. */
enum redo_open_mode { REDO_OPEN_READ, REDO_OPEN_WRITE, REDO_OPEN_MAKE };

typedef void redo_name_fn(void *arg, const char *name);

/* The calls that a log makes of its files, each as the system's: -1 and errno when it fails. */
struct redo_files {
    int (*open)(const char *path, enum redo_open_mode mode);
    void (*close)(int fd);
    ssize_t (*read)(int fd, void *p, size_t n, uint64_t at);
    ssize_t (*write)(int fd, const struct iovec *v, int n, uint64_t at);
    int (*sync)(int fd);
    int (*stat)(int fd, struct redo_stat *ret);
    int (*stat_name)(const char *path, struct redo_stat *ret);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*sync_folder)(const char *path_of_a_file_in_it);
    int (*list)(const char *path_of_a_file_in_it, redo_name_fn *fn, void *arg);
};

/* The system's, unless a test has put others here before any log was opened. */
extern const struct redo_files *redo_files;

/* The status that errno e stands for, and what failed: "write", with which file. */
enum status redo_fail(int e, const char *what, const char *path, struct error *err);

/* All n bytes, or fewer at the end of the file: *ret_n. */
enum status redo_file_read(int fd, const char *path, void *p, size_t n, uint64_t at, size_t *ret_n,
                           struct error *err) MUST_CHECK;

/* All of it. Returns 0, or errno; *ret_n: how much. v is changed. */
int redo_file_write(int fd, struct iovec *v, int n, uint64_t at, uint64_t *ret_n) MUST_CHECK;

enum status redo_folder_sync(const char *path, struct error *err) MUST_CHECK;

/* ---- names and heads (segment.c) ---- */

static inline bool redo_same_id(const struct redo_id *a, const struct redo_id *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct redo_head {
    struct redo_id id, before;
    uint64_t number, epoch;
    int64_t from, tables;
    uint64_t bytes;
    int64_t copied;
    uint32_t crc; /* set by redo_head_encode */
};

void redo_head_encode(struct redo_head *h, unsigned char out[REDO_BLOCK]);

/* n bytes were read of the file's first block. */
enum status redo_head_decode(const unsigned char *p, size_t n, const char *path, struct redo_head *ret,
                             struct error *err) MUST_CHECK;

/* The block at the end: crc is that of the head. next: the number of the segment that follows. */
void redo_end_encode(uint32_t crc, uint64_t next, unsigned char out[REDO_BLOCK]);
bool redo_end_decode(const unsigned char p[REDO_BLOCK], uint32_t crc, uint64_t *ret_next);

void redo_segment_name(const char *path, uint64_t number, char out[REDO_NAME_BYTES]);
void redo_spare_name(const char *path, uint64_t k, char out[REDO_NAME_BYTES]);

/* The numbers of all segments, ascending; mem_free. Names of spare ones go to fn, if it is not NULL. */
enum status redo_list(const char *path, uint64_t **ret, size_t *ret_n, redo_name_fn *spare, void *arg,
                      struct error *err) MUST_CHECK;

/* Removes all spare segments that are there. *ret_stays: the highest K of those that cannot be removed, or 0.
   Such a file is never written again: a crash may have left it under a segment's name, too. */
enum status redo_spares_remove(const char *path, uint64_t *ret_stays, struct error *err) MUST_CHECK;

/* ---- records (record.c) ---- */

struct redo_frame {
    uint32_t length, crc, before; /* before: the crc of the one before it */
    uint64_t epoch, number;
    int64_t seq, durable, tables;
    uint32_t kind;
};

/* Sets f->crc. */
void redo_frame_encode(struct redo_frame *f, struct slice payload, unsigned char out[REDO_RECORD_BYTES]);

/* False: it is none. Says nothing of the payload. */
bool redo_frame_decode(const unsigned char p[REDO_RECORD_BYTES], struct redo_frame *ret);
bool redo_frame_verify(const unsigned char p[REDO_RECORD_BYTES], const struct redo_frame *f,
                       struct slice payload);

/* ---- an open segment ---- */

struct redo_segment {
    struct redo_segment *next;
    int fd;
    uint64_t number; /* of a spare one: the K of its name */
    uint64_t bytes, inode, device;
    uint32_t crc;             /* of its head */
    atomic_uint_fast64_t end; /* behind its last record */
    int64_t last; /* the tables have everything in it when they have this; set when the next one is begun */
    bool moving;  /* redo_applied gives it up */
};

/* A spare one of so many bytes without a content yet: the next number is *k. */
enum status redo_spare_make(const char *path, uint64_t k, uint64_t bytes, struct redo_segment **ret,
                            struct error *err) MUST_CHECK;

/* Writes zeros from `at` on, a step at most; *ret_n of them. */
enum status redo_spare_zero(const char *path, const struct redo_segment *s, uint64_t at, uint64_t *ret_n,
                            struct error *err) MUST_CHECK;

/* Closes and removes it. */
void redo_spare_drop(const char *path, struct redo_segment *s);

/* Writes the head of the segment that the spare one s will be. */
enum status redo_spare_head(const char *path, const struct redo_segment *s, struct redo_head *h,
                            struct error *err) MUST_CHECK;

/* Syncs s and makes it the segment of this number, whose head was written, synced with its name. When it
   fails s is removed. */
enum status redo_spare_begin(const char *path, struct redo_segment *s, uint64_t number,
                             struct error *err) MUST_CHECK;

/* Notes in s that the segment `next` follows, which has its name. When that fails, only its being taken away
   would go unnoticed. */
void redo_segment_end(const struct redo_segment *s, uint64_t next);

/* Gives up segment s: it becomes the spare one k (*ret_kept), or is removed. The folder is not synced yet:
   until it is, the file may have its old name after a crash, and must not be written. */
enum status redo_segment_recycle(const char *path, struct redo_segment *s, bool keep, uint64_t k,
                                 bool *ret_kept, struct error *err) MUST_CHECK;

/* Whether the segment's name still leads to it. */
bool redo_segment_is_there(const char *path, const struct redo_segment *s);

/* ---- reading (redo_read.c) ---- */

/* The segments that are there, and their heads; mem_free both. */
struct redo_heads {
    struct redo_head *items;
    size_t len;
};
enum status redo_heads_read(const char *path, struct redo_heads *ret, struct error *err) MUST_CHECK;

/* Whether the log that is there belongs to this id: NULL is any. */
enum status redo_check_id(const char *path, const struct redo_heads *h, const struct redo_id *id,
                          struct error *err) MUST_CHECK;

/* A record of the newest segment. */
struct redo_entry {
    enum redo_kind kind;
    int64_t seq;
    uint64_t at; /* of its payload */
    uint32_t length;
};

/* Records of the newest segment, below `from`, of which nothing proves that they were durable. mem_free the
   items. */
struct redo_tail {
    struct redo_entry *items;
    size_t len, cap;
    uint64_t bytes; /* that they take in a segment */
    int64_t
        proven; /* up to here the tables have it, or a record or a head that was written later proves it */
};
enum status redo_tail_read(const char *path, const struct redo_heads *h, int64_t from, int64_t tables,
                           struct redo_tail *ret, struct error *err) MUST_CHECK;

#endif
