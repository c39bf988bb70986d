/* The format of a recording: what a program did to the files of one folder, in order. recorder.c writes it,
   replay.c and recording.py read it.

   The file is made in its full size beforehand (it is sparse) and mapped by everyone: 4096 bytes of header,
   then entries one behind the other. An entry is complete when `count` includes it; "position p" means that
   the first p entries have happened. All numbers are little-endian, as the machines are that this runs on.

     kind        offset              length           payload
     OPENED      -                   of the name      the name of a file that was there already
     CREATED     -                   of the name      the name of a file that was not
     UNLINKED    -                   of the name      the name
     RENAMED     of the new name     of both          old name, new name
     WRITTEN     in the file         of the data      the data
     TRUNCATED   the new size        0
     SYNCING     -                   0                a sync has begun: what comes before it is its concern
     SYNCED      position of its     0                that sync has ended: what came before its beginning is
                 SYNCING                              on the disk
   Names are relative to the folder. `file` is the inode number, which is used again for a file that is
   CREATED after another was deleted; RECORDING_FOLDER is the folder itself. */
#ifndef TESTS_CRASH_RECORDING_H
#define TESTS_CRASH_RECORDING_H

#include <stdatomic.h>
#include <stdint.h>

#define RECORDING_HEADER 4096
#define RECORDING_FOLDER UINT64_MAX

enum recording_kind {
    RECORDING_OPENED = 1,
    RECORDING_CREATED,
    RECORDING_UNLINKED,
    RECORDING_RENAMED,
    RECORDING_WRITTEN,
    RECORDING_TRUNCATED,
    RECORDING_SYNCING,
    RECORDING_SYNCED,
};

struct recording_header {
    _Atomic uint64_t count; /* of entries */
    _Atomic uint64_t bytes; /* of entries */
};

struct recording_entry {
    uint64_t kind;
    uint64_t file;
    uint64_t offset;
    uint64_t length;
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    unsigned char payload[];
};

/* Entries begin at multiples of 8. */
static inline uint64_t recording_size(uint64_t payload)
{
    return sizeof(struct recording_entry) + ((payload + 7) & ~(uint64_t)7);
}

#endif
