/* clang-format off */
/* The redo log of a database in a file: groups of changes that are durable before the tables have them.

   FILES. Segments beside the database: PATH-redo.N, N ascending without gaps. A segment is written full of zeros
   and synced before it is used, so that a later write changes no metadata and its sync is one of data alone.
   PATH-redo.spare.K are segments to come: new ones, and those whose records are in the tables for good. The
   first ones are small and each is twice as large as the one before it, up to the size that is asked for.

   A segment is blocks of 4,096 bytes. The first is its head, the last its end, everything else records, each of
   which begins at a block and is padded with zeros to the next: a write that is torn never damages an older record. No block that
   holds a record which was acknowledged is written again before the segment is recycled. All numbers are
   little-endian; c(x) is CRC-32C.

     head    magic "LARDREDO" · format (4: 1) · c(head, this field 0) (4) · id (16) · id before (16) · number N (8) ·
             epoch (8) · from (8) · tables (8) · bytes of the segment (8) · copied (8)
     record  magic "LRec" (4) · length of the payload (4) · c of the record (4) · c of the one before it (4) ·
             epoch (8) · N (8) · seq (8) · durable (8) · tables (8) · kind (4) · 0 (4) · payload
               c of the record = crc32c of all of it but this field, begun with c of the one before it; the
               first of a segment is begun with c of its head
     end     magic "LARDNEXT" · c(end, begun with c of the head) (4) · 0 (4) · number of the segment that follows (8);
             anything else: none does that it knows of. Written when the next one has its name, and synced before
             that gets a record: so the newest segment cannot be taken away unnoticed

     id       of the log: another one at each start; larder_meta has it, too (first the segment is there, synced,
              then larder_meta says so, synced before the first record; a start that larder_meta does not know
              has left no records but copies, and is passed over)
     before   the id of the segments before this start, or what larder_meta had
     epoch    each start, and each record that failed, begins one, in a new segment whose head says `from`:
              whatever older segments have from that seq on is void
     copied   up to this seq the segment's records are copies: see below
     seq      the ticket of a group's last change set: ascends, with steps
     durable  the last seq that was durable when this record was handed to the system
     tables   up to this seq the tables have everything, and that is durable

   WHAT MAKES A RECORD DURABLE: the write and the fdatasync behind it (or one write through O_DSYNC) on a segment
   whose blocks were written, whose size, head and name were synced before. A failed write or sync ends the epoch:
   redo_append says so, nothing of it counts, and the next append begins a new one, whose head is synced first.

   RECOVERY reads segments by N, records in order, and stops at the first hole (a block that is no record, or not
   the successor of the one before it). It is the end when nothing claims otherwise; it is damage (ST_CORRUPT) when
   a later record of the same segment says that the missing one was durable, when the next segment's `from` is
   beyond it, when the file is shorter than its head says, when segments are missing in between, when the newest
   one's end names another, or when the first one begins behind what the tables have. Then redo_open begins a new epoch behind the last record, so that
   nothing that lies there can come back.

   WHAT A START HAS READ IS NOT YET ON THE DISK. When only the program before it has ended, what that one wrote last
   is in the system's memory; if its sync had failed, the system takes it for written, and no later sync helps.
   So records of which no later record or head says that they were durable (the last one; under everysec those of
   a second) are copied into the new segment before that gets its name, and are void in the old one.

   A CRASH between any two steps: segments that the tables have are renamed to spare ones, the folder is synced
   (what is left of them does no harm, but none is written before that); a spare one gets its head, is synced, is
   renamed to its number, the folder synced; then comes its first record. So a file with a number always has its
   head, a spare one is removed at the next start whatever it holds (and never written again when it cannot be: a
   crash may have left both names), a number without records is an empty epoch, and
   a record that is torn is a hole: no reply had left.

   FILES TAKEN AWAY: behind each sync the segment's size and links are looked at, each second and at the begin of a
   segment the inodes behind its name and behind the database's. If they are not ours, the record does not count,
   and nothing is written any more until the tables have everything that the log had, and are back under their name.

   THREADS. redo_append, redo_sync: one thread at a time. redo_applied, redo_prepare: another one. */
/* clang-format on */
#ifndef LARDER_REDO_REDO_H
#define LARDER_REDO_REDO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"

struct redo;

struct redo_id {
    unsigned char bytes[16];
};

enum redo_kind {
    REDO_GROUP,   /* changes: journal/encoding.h */
    REDO_OUTSIZED /* changes too large for a log went into the tables up to this seq, synced; no payload. None
                     that are behind them are in the log without it, or a head whose `from` is beyond them */
};

struct redo_record {
    enum redo_kind kind;
    int64_t seq;
    struct slice payload;
    uint64_t at; /* of the payload in its segment */
};

/* A record while a log is read. Anything but ST_OK ends the reading, and is returned. */
typedef enum status redo_record_fn(void *arg, const struct redo_record *r);

/* What is beside a database, without changing anything. */
struct redo_found {
    bool any;          /* there are segments that have a head */
    struct redo_id id; /* of the newest */
    bool ours; /* the log is the one asked for, or a start has begun another behind it and added nothing */
    int64_t tables; /* the highest that a head or record tells */
    int64_t last;   /* the seq of the last record, 0: there is none */
    uint64_t bytes; /* of all segments */
    uint32_t segments;
};
/* id: the one that larder_meta has, or NULL.
   ST_CORRUPT: there is a file with a segment's name that is none, or is damaged; ST_NEWER: of a newer format;
   ST_MISSING, here and below: a server has given a segment up meanwhile.
   Damaged records are redo_each's to tell. */
enum status redo_find(const char *path, const struct redo_id *id, struct redo_found *ret,
                      struct error *err) MUST_CHECK;

/* Calls fn for each record behind `after`, in order, and changes nothing: for start, check, salvage and
   backup. ST_CORRUPT: damage, after fn has had all before it, or the log has another id (NULL: any will do;
   one before it will do when nothing was appended since). */
enum status redo_each(const char *path, const struct redo_id *id, int64_t after, redo_record_fn *fn,
                      void *arg, struct error *err) MUST_CHECK;

/* For salvaging: every record that is whole by itself and that no later epoch has made void, in order,
   whatever is damaged around it. damage: behind the last one something is missing that was durable, and r is
   NULL. */
typedef enum status redo_scan_fn(void *arg, const struct redo_record *r, const struct error *damage);
enum status redo_scan(const char *path, redo_scan_fn *fn, void *arg, struct error *err) MUST_CHECK;

/* Removes every segment beside the database, the newest last, and syncs the folder: what a crash leaves has
   the id that larder_meta knows. */
enum status redo_remove(const char *path, struct error *err) MUST_CHECK;

struct redo_options {
    const char *path;       /* of the database */
    struct redo_id id;      /* of the new log */
    struct redo_id old;     /* of the one that is there, if any: its segments are kept until redo_applied */
    int64_t from;           /* the seq behind the last that counts: a new epoch begins there */
    int64_t tables;         /* what the tables have */
    uint64_t segment_bytes; /* of a segment, at most; a longer record gets one of its own */
    uint64_t keep_bytes;    /* of spare segments, at most, when redo_applied has given some up */
};

/* Begins a log, or a new epoch behind one that was read. Synced when it returns, with its name. */
enum status redo_open(const struct redo_options *o, struct redo **ret, struct error *err) MUST_CHECK;

/* remove: the tables have everything, durably: no file stays. r may be NULL. */
enum status redo_close(struct redo *r, bool remove, struct error *err);

/* Writes one record and, if sync, makes it and all before it durable. seq is beyond the last one's.

   ST_UNKNOWN: it may be there after a crash (a sync failed, or a write in part): it does not count, and the
   epoch is over. So is all that was appended since the last sync: it is void as soon as the next append has
   begun its epoch. The caller appends it again, by the same numbers, or brings it into the tables and calls
   redo_applied first; otherwise a record behind it is refused with ST_LOST: a log never has a gap.
   Everything else (ST_FULL: there was no room; ST_IO, ...): it is not there, and cannot come back. Whether
   what was appended since the last sync is void then, too, redo_info tells. */
enum status redo_append(struct redo *r, enum redo_kind kind, int64_t seq, struct slice payload, bool sync,
                        struct error *err) MUST_CHECK;

/* Makes all that was appended durable. A failure ends the epoch as above: what was appended since the last
   sync is uncertain, and is never synced "again": ST_UNKNOWN, then ST_LOST until it was appended again or is
   in the tables. */
enum status redo_sync(struct redo *r, struct error *err) MUST_CHECK;

/* Behind a failure: begins the new epoch, which the next append would, so that what failed cannot come back
   even if none follows. Nothing else happens when there was no failure. The thread that appends. */
enum status redo_renew(struct redo *r, struct error *err) MUST_CHECK;

/* The tables have everything up to seq, and that is durable: segments below are recycled, and records say so.
 */
enum status redo_applied(struct redo *r, int64_t seq, struct error *err) MUST_CHECK;

/* One bounded step of making the next segment ready, so that no append has to. *ret_more: there is more to do
   now. */
enum status redo_prepare(struct redo *r, bool *ret_more, struct error *err) MUST_CHECK;

struct redo_info {
    int64_t durable;   /* up to here all that was appended is */
    int64_t last;      /* that was appended and is not void */
    uint64_t bytes;    /* of records in segments that hold some that are not in the tables */
    uint64_t on_disk;  /* of all segments, spare ones included */
    uint64_t appended; /* ever, with padding */
    const struct histogram *sync_us;
};
void redo_info(struct redo *r, struct redo_info *ret);

#endif
