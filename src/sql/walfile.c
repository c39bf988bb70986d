/* The methods of two files are led through here, all else stays the default VFS's own: the log's, and of the
   database xShmLock, because the lock that lets one connection write is taken there, and xWrite, which
   checkpoints alone use.

   Only what continues the last write and is the header of a frame, then its page, is kept back. All else (the
   log's own header, a frame that is written again within a transaction, checksums that are corrected after a
   commit) goes straight to the file, after what was kept back. So the buffer never holds a commit frame when
   xWrite returns, and is empty

   - before SQLite publishes a commit in the wal-index: others look at no frames behind the last commit;
   - before the lock for writing is let go: the frames of a transaction that spilled pages and was rolled
     back must not be written when their place belongs to another connection.

   When keeping back has cost frames, because they could not be written, the transaction must fail, whatever
   SQLite was about to do: from then on the log cannot be written until the lock is let go.

   SQLite believes the wal-index, and never looks whether what that says is still in the log. It writes each
   frame behind the last one, so that a file that ends before that place has been cut short by another
   process. Processes that cut it as SQLite does, when all of it is in the database, have the log start over
   at its header. After that has been noticed the log cannot be written any more. */
#include "sql/walfile.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sql/walindex.h"

/* Of SQLite's format of the log: a header, then frames, each of a header and a page. */
#define LOG_HEADER    32
#define LOG_MAGIC     0x377f0682 /* or one more */
#define LOG_PAGE_SIZE 8          /* where it is in the header */
#define FRAME_HEADER  24
#define FRAME_DB_SIZE 4 /* in pages; not 0 in a commit frame alone */
#define WRITE_LOCK    0 /* the place of the lock for writing among those of xShmLock */

/* The unix VFS cuts the length of a write to 17 bits, and takes an even 128 KiB for nothing. */
#define PIECE 131071

/* The last methods that are known here. */
#define METHODS_VERSION 3

/* Stands in the place of a file's methods. */
struct hooked {
    sqlite3_io_methods methods; /* first: this is what SQLite sees */
    const sqlite3_io_methods *real;
    struct walfile *w;
};

struct walfile {
    sqlite3_vfs vfs; /* first: this is what SQLite sees */
    sqlite3_vfs *real;
    char name[40];
    struct histogram *sync_us;
    sqlite3_file *db_file, *log_file; /* NULL until they are opened */
    struct hooked db, log;
    struct wal_turns turns;
    struct pace db_pace, log_pace;

    sqlite3_int64 next; /* where the last write ended; -1: not known */
    int page;           /* its size; 0 when not known yet */
    enum { BETWEEN_FRAMES, AFTER_HEADER, AFTER_COMMIT_HEADER } part;
    bool doubtful; /* a sync has failed, see walfile.h */
    bool cut;      /* the file has become shorter than what was written to it */
    int failed;    /* why frames from lost on are not in the file, until the lock is let go */
    int failed_errno;
    sqlite3_int64 lost;

    sqlite3_int64 start; /* where the buffer belongs */
    int n;
    unsigned char buffer[PIECE];
};

static const struct hooked *hooked(const sqlite3_file *f)
{
    return (const struct hooked *)f->pMethods;
}

static uint32_t read_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- the log ---- */

/* Whether all that stands before this place is there; a size that cannot be had is no reason to doubt it. */
static bool reaches(struct walfile *w, sqlite3_int64 at)
{
    sqlite3_int64 size;
    if (!w->cut && w->log.real->xFileSize(w->log_file, &size) == SQLITE_OK && size < at)
        w->cut = true;
    return !w->cut;
}

static int write_file(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
    int rc = reaches(w, at) ? w->log.real->xWrite(w->log_file, p, n, at) : SQLITE_IOERR_WRITE;
    if (rc == SQLITE_OK)
        pace_wrote(&w->log_pace, at, n);
    return rc;
}

static int flush(struct walfile *w)
{
    if (w->n == 0)
        return SQLITE_OK;
    int rc = write_file(w, w->buffer, w->n, w->start);
    w->n = 0;
    if (rc != SQLITE_OK) {
        w->failed = rc;
        w->failed_errno = 0;
        w->log.real->xFileControl(w->log_file, SQLITE_FCNTL_LAST_ERRNO, &w->failed_errno);
        w->lost = w->start;
        w->next = -1;
        w->part = BETWEEN_FRAMES;
    }
    return rc;
}

/* SQLite asks for errno after an error. */
static int fail_again(const struct walfile *w)
{
    errno = w->failed_errno;
    return w->failed;
}

static void learn_page_size(struct walfile *w, const unsigned char *header)
{
    uint32_t size = read_u32(header + LOG_PAGE_SIZE);
    bool valid =
        (read_u32(header) & ~1U) == LOG_MAGIC && size >= 512 && size <= 65536 && (size & (size - 1)) == 0;
    w->page = valid ? (int)size : 0;
}

static bool is_frame_header(struct walfile *w, int n, sqlite3_int64 at)
{
    unsigned char header[LOG_HEADER];
    if (n != FRAME_HEADER)
        return false;
    if (w->page == 0 && w->log.real->xRead(w->log_file, header, LOG_HEADER, 0) == SQLITE_OK)
        learn_page_size(w, header); /* of a log that was there before us */
    return w->page != 0 && at >= LOG_HEADER && (at - LOG_HEADER) % (FRAME_HEADER + w->page) == 0;
}

static int write_through(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
    w->part = BETWEEN_FRAMES;
    w->next = -1;
    int rc = flush(w);
    if (rc == SQLITE_OK)
        rc = write_file(w, p, n, at);
    if (rc != SQLITE_OK)
        return rc;
    w->next = at + n;
    if (at == 0)
        w->page = 0;
    if (at == 0 && n == LOG_HEADER)
        learn_page_size(w, p);
    return SQLITE_OK;
}

static void keep_back(struct walfile *w, const void *p, int n, sqlite3_int64 at)
{
    assert(w->n == 0 || w->start + w->n == at);
    assert(n <= PIECE - w->n);
    if (w->n == 0)
        w->start = at;
    memcpy(w->buffer + w->n, p, (size_t)n);
    w->n += n;
    w->next = at + n;
}

static int log_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct walfile *w = hooked(f)->w;
    if (w->failed)
        return fail_again(w);
    if (at == w->next && w->part == BETWEEN_FRAMES && is_frame_header(w, n, at)) {
        bool commit = read_u32((const unsigned char *)p + FRAME_DB_SIZE) != 0;
        if (w->n + FRAME_HEADER + w->page > PIECE) {
            int rc = flush(w);
            if (rc != SQLITE_OK)
                return rc;
        }
        keep_back(w, p, n, at);
        w->part = commit ? AFTER_COMMIT_HEADER : AFTER_HEADER;
        return SQLITE_OK;
    }
    if (at == w->next && w->part != BETWEEN_FRAMES && n == w->page) {
        bool commit = w->part == AFTER_COMMIT_HEADER;
        keep_back(w, p, n, at);
        w->part = BETWEEN_FRAMES;
        return commit ? flush(w) : SQLITE_OK;
    }
    return write_through(w, p, n, at);
}

/* Pages that were spilled are wanted again by the transaction that spilled them. */
static int log_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    struct walfile *w = hooked(f)->w;
    if (w->failed && at + n > w->lost)
        return fail_again(w);
    if (w->n > 0 && at < w->start + w->n && at + n > w->start) {
        if (at >= w->start && at + n <= w->start + w->n) {
            memcpy(p, w->buffer + (at - w->start), (size_t)n);
            return SQLITE_OK;
        }
        int rc = flush(w);
        if (rc != SQLITE_OK)
            return rc;
    }
    int rc = w->log.real->xRead(f, p, n, at);
    w->cut |= rc == SQLITE_IOERR_SHORT_READ; /* SQLite never reads frames that it has not written */
    return rc;
}

static int log_sync(sqlite3_file *f, int flags)
{
    struct walfile *w = hooked(f)->w;
    int rc = flush(w);
    if (rc != SQLITE_OK)
        return rc;
    int64_t start = clock_mono_us();
    rc = w->log.real->xSync(f, flags);
    histogram_add_shared(w->sync_us, (uint64_t)(clock_mono_us() - start));
    w->doubtful |= rc != SQLITE_OK && w->log_pace.fd >= 0;
    if (rc == SQLITE_OK && !reaches(w, w->next))
        rc = SQLITE_IOERR_FSYNC; /* it was there, and is not now */
    return rc;
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct walfile *w = hooked(f)->w;
    int rc = flush(w);
    return rc == SQLITE_OK ? w->log.real->xTruncate(f, size) : rc;
}

static int log_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    struct walfile *w = hooked(f)->w;
    int rc = flush(w);
    return rc == SQLITE_OK ? w->log.real->xFileSize(f, ret) : rc;
}

static int log_close(sqlite3_file *f)
{
    struct walfile *w = hooked(f)->w;
    w->n = 0; /* nothing of it was committed */
    w->log_file = NULL;
    return w->log.real->xClose(f);
}

static void hook_log(struct walfile *w, sqlite3_file *f)
{
    w->log_file = f;
    w->log.real = f->pMethods;
    w->log.methods = *f->pMethods;
    w->log.methods.iVersion = 1; /* no shared memory, no mapping */
    w->log.methods.xWrite = log_write;
    w->log.methods.xRead = log_read;
    w->log.methods.xSync = log_sync;
    w->log.methods.xTruncate = log_truncate;
    w->log.methods.xFileSize = log_size;
    w->log.methods.xClose = log_close;
    f->pMethods = &w->log.methods;
    w->next = -1;
    w->page = 0;
    w->part = BETWEEN_FRAMES;
    w->failed = SQLITE_OK;
    w->n = 0;
}

/* ---- the database ---- */

static int db_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    struct walfile *w = hooked(f)->w;
    if (offset == WRITE_LOCK && (flags & SQLITE_SHM_UNLOCK)) {
        (void)flush(w); /* nothing of it was committed */
        w->part = BETWEEN_FRAMES;
        w->failed = SQLITE_OK;
        wal_turns_end(&w->turns);
    }
    int rc = w->db.real->xShmLock(f, offset, n, flags);
    if (rc == SQLITE_OK && offset == WRITE_LOCK && (flags & SQLITE_SHM_LOCK))
        wal_turns_begin(&w->turns, f);
    return rc;
}

/* The connection leaves the write-ahead log (PRAGMA journal_mode), or closes. */
static int db_shm_unmap(sqlite3_file *f, int remove)
{
    struct walfile *w = hooked(f)->w;
    wal_turns_forget(&w->turns);
    return w->db.real->xShmUnmap(f, remove);
}

static int db_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    struct walfile *w = hooked(f)->w;
    int rc = w->db.real->xWrite(f, p, n, at);
    if (rc == SQLITE_OK)
        pace_wrote(&w->db_pace, at, n);
    return rc;
}

static void hook_db(struct walfile *w, sqlite3_file *f)
{
    w->db_file = f;
    w->db.real = f->pMethods;
    w->db.methods = *f->pMethods;
    if (w->db.methods.iVersion > METHODS_VERSION)
        w->db.methods.iVersion = METHODS_VERSION;
    w->db.methods.xShmLock = db_shm_lock;
    w->db.methods.xShmUnmap = db_shm_unmap;
    w->db.methods.xWrite = db_write;
    f->pMethods = &w->db.methods;
}

/* ---- the VFS ---- */

/* The connection's own database is the first that it opens; one that is attached is left alone. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    struct walfile *w = (struct walfile *)vfs;
    int rc = w->real->xOpen(w->real, name, f, flags, ret_flags);
    if (rc != SQLITE_OK)
        return rc;
    if ((flags & SQLITE_OPEN_MAIN_DB) && !w->db_file && f->pMethods->iVersion >= 2)
        hook_db(w, f);
    else if ((flags & SQLITE_OPEN_WAL) && !w->log_file && w->db_file &&
             sqlite3_database_file_object(name) == w->db_file)
        hook_log(w, f);
    return SQLITE_OK;
}

struct walfile *walfile_new(struct histogram *sync_us)
{
    struct walfile *w = mem_zalloc(sizeof *w);
    w->real = sqlite3_vfs_find(NULL);
    assert(w->real);
    w->sync_us = sync_us;
    w->db.w = w->log.w = w;
    wal_turns_init(&w->turns);
    w->db_pace.fd = w->log_pace.fd = -1;
    snprintf(w->name, sizeof w->name, "larder-%p", (void *)w);
    w->vfs = *w->real;
    if (w->vfs.iVersion > METHODS_VERSION)
        w->vfs.iVersion = METHODS_VERSION;
    w->vfs.pNext = NULL;
    w->vfs.zName = w->name;
    w->vfs.xOpen = open_file;
    sqlite3_vfs_register(&w->vfs, 0);
    return w;
}

void walfile_spread(struct walfile *w, int log_fd, int db_fd, struct meanwhile m)
{
    w->log_pace = pace_of(log_fd, m);
    w->db_pace = pace_of(db_fd, m);
}

bool walfile_is_doubtful(const struct walfile *w)
{
    return w->doubtful;
}

bool walfile_is_cut(const struct walfile *w)
{
    return w->cut;
}

bool walfile_others(struct walfile *w, uint64_t *seen, bool *ret_others)
{
    return wal_turns_others(&w->turns, seen, ret_others);
}

const char *walfile_name(const struct walfile *w)
{
    return w->name;
}

void walfile_free(struct walfile *w)
{
    if (!w)
        return;
    assert(!w->log_file);
    sqlite3_vfs_unregister(&w->vfs);
    wal_turns_release(&w->turns);
    mem_free(w);
}
