/* The beginning of a log's index, which tells without a lock whether anybody has committed.

   The log's index (the -shm file, which every connection has mapped) begins with two copies of a header of 48
   bytes: a version, a counter of transactions, how far the log goes, its salts and a checksum over all of its
   frames. SQLite's file format describes it. A process that commits, or has the log start over, writes the
   second copy, then the first, while it holds the lock for writing. A connection that begins a transaction
   compares the header with the one of its last transaction: PRAGMA data_version changes when they differ, and
   only then.

   So what is compared here is what SQLite would compare. A header in the middle of being written equals none
   that was seen, since that one was complete: the salts, the counter and the checksum of frames never come
   back together. The bytes are borrowed from SQLite, through the methods of its file: a second descriptor of
   the -shm file would drop this process's locks on it when it is closed. */
#ifndef LARDER_SQL_WALINDEX_H
#define LARDER_SQL_WALINDEX_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct wal_header {
    uint64_t words[6];
};

/* Where the header is; NULL: it cannot be had. After a transaction has read through the log, so that SQLite
   has the index mapped. */
const volatile void *walindex_find(sqlite3_file *db);

struct wal_header walindex_read(const volatile void *at);
bool walindex_equal(const struct wal_header *a, const struct wal_header *b);

/* The turns of one connection at writing, which tell its commits from all others': between two of them the
   header must not have changed. Any thread may ask. */
struct wal_turns {
    pthread_mutex_t lock;
    const volatile void *at;
    bool inside;           /* the connection has the lock for writing: nobody else can commit */
    bool known;            /* it has had it before ... */
    struct wal_header end; /* ... and left this, or others did and that was counted */
    uint64_t others;       /* how often others have committed, or many of them in a row */
};

void wal_turns_init(struct wal_turns *t);
void wal_turns_release(struct wal_turns *t);

/* The connection has got the lock for writing; it is about to let it go. */
void wal_turns_begin(struct wal_turns *t, sqlite3_file *db);
void wal_turns_end(struct wal_turns *t);

/* The index is not mapped any more. */
void wal_turns_forget(struct wal_turns *t);

/* Whether others have committed since this was asked last with the same *seen (at first 0). False: that is
   not known. */
bool wal_turns_others(struct wal_turns *t, uint64_t *seen, bool *ret_others);

#endif
