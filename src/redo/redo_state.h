/* A log that is in use. */
#ifndef LARDER_REDO_REDO_STATE_H
#define LARDER_REDO_REDO_STATE_H

#include "redo/redo_internal.h"

struct redo {
    char *path;
    struct redo_id id, before;
    uint64_t segment_bytes, keep_bytes;
    bool db_known;
    uint64_t db_inode, db_device;

    /* of the thread that appends */
    struct redo_segment *current;
    uint64_t epoch;
    uint64_t next_number;
    uint32_t crc; /* of the last record, or of the head */
    bool over;    /* the epoch is: the next append begins another one */
    bool gone;    /* somebody has taken files away: nothing can be written until the tables have everything */
    bool cut;     /* that was by cutting one short */
    _Atomic int64_t last; /* the last that was appended */
    int64_t lost;         /* up to here records were appended that are void now */
    int64_t checked_us;   /* when the names of files were last looked at */

    /* of the thread that prepares */
    struct redo_segment *making;
    uint64_t made; /* of its bytes */

    pthread_mutex_t lock;                /* around the lists; segments' last; numbers of spare ones */
    struct redo_segment *first, *newest; /* that have records, by number */
    struct redo_segment *spares;
    uint64_t spare_k;

    _Atomic int64_t tables, durable;
    atomic_uint_fast64_t next_bytes; /* of the next segment that is prepared */
    atomic_uint_fast64_t appended;
    struct histogram sync_us;
};

/* The K of a new spare segment. Any thread. */
uint64_t redo_next_spare(struct redo *r);

#endif
