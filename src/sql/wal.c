#include "sql/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* In pages of 4 KiB. For every CHECKPOINT_PAGES that the log has grown, the background copies: the more at a
   time, the more often a page was changed several times and is copied once. When all but FEW_PAGES are copied
   the owner copies the rest itself, which is quick, and has the log start over. Beyond LIMIT_PAGES it does so
   however many are left. */
#define CHECKPOINT_PAGES 8192
#define FEW_PAGES        512
#define LIMIT_PAGES      49152
/* A log starts over when no transaction reads in it. One that begins to read when all of the log has been
   copied reads the database instead; the owner waits for those that began before. The longest of this
   process is a batch of commands. */
#define READERS_MS      10
#define OVER_READERS_MS 100
/* When one that takes longer keeps the log from starting over, the owner does not try at every commit. */
#define RETRY_US      100000
#define OVER_RETRY_US 300000

struct wal {
    /* Owner's thread only. */
    int pages;     /* in the log after the last commit */
    int asked_at;  /* its length when a checkpoint was last asked for */
    int64_t retry; /* no owner's checkpoint before this moment */
    bool by_owner; /* nobody else checkpoints, and it not here and there */
    char *path;    /* of the log */
    dev_t dev;
    ino_t ino;
    int fd;
    struct histogram *sync_us; /* any thread's */

    pthread_mutex_t lock; /* over what the threads are told */
    pthread_cond_t wake;
    bool stop;
    bool wanted;
    bool syncing;

    pthread_mutex_t checkpoint; /* held by the thread that runs one */
    sqlite3 *db;                /* the checkpointer's own connection */
    int64_t page_size;
    atomic_llong end;      /* of what the last commit left in the log, in bytes */
    atomic_int copied;     /* pages of the log that are in the database, as far as the background knows */
    atomic_bool unsynced;  /* committed since the last sync */
    atomic_int sync_errno; /* of the syncer's last sync, 0 when it went well */
    pthread_t checkpointer, syncer;
};

static void *run_checkpointer(void *arg)
{
    struct wal *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!w->wanted && !w->stop)
            pthread_cond_wait(&w->wake, &w->lock);
        if (w->stop)
            break;
        w->wanted = false;
        pthread_mutex_unlock(&w->lock);

        /* A failure (the disk is full, say) only means that the log stays as it is and we are asked again;
           when it can grow no more either, the owner's commit fails and says so. */
        pthread_mutex_lock(&w->checkpoint);
        int in_log = 0, copied = 0;
        if (wal_is_complete(w) &&
            sqlite3_wal_checkpoint_v2(w->db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied) == SQLITE_OK)
            atomic_store(&w->copied, copied);
        pthread_mutex_unlock(&w->checkpoint);

        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Cleared before, not after: what is committed meanwhile may or may not be in this sync. */
static int sync_log(struct wal *w)
{
    atomic_store(&w->unsynced, false);
    int e = 0;
    int64_t start = clock_mono_us();
    do
        e = fdatasync(w->fd) == 0 ? 0 : errno;
    while (e == EINTR);
    histogram_add_shared(w->sync_us, (uint64_t)(clock_mono_us() - start));
    if (e)
        atomic_store(&w->unsynced, true);
    return e;
}

static void *run_syncer(void *arg)
{
    struct wal *w = arg;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (!w->syncing) {
            pthread_cond_wait(&w->wake, &w->lock);
            clock_gettime(CLOCK_MONOTONIC, &next);
            next.tv_sec++;
            continue;
        }
        if (pthread_cond_timedwait(&w->wake, &w->lock, &next) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&w->lock);
        if (atomic_load(&w->unsynced))
            atomic_store(&w->sync_errno, sync_log(w));
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec++;
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Of SQLite's format: a header, then each page behind a header of its own. */
#define LOG_HEADER   32
#define FRAME_HEADER 24

bool wal_is_complete(const struct wal *w)
{
    struct stat sb;
    return fstat(w->fd, &sb) != 0 || sb.st_size >= atomic_load(&w->end);
}

/* A connection that only checkpoints. It must have read once to know that there is a log at all. */
static enum status open_checkpointer(struct wal *w, const char *path, struct error *err)
{
    int rc = sqlite3_open_v2(path, &w->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(w->db,
                          "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-64;"
                          "PRAGMA journal_size_limit=67108864; PRAGMA schema_version",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK) /* the owner copies at the end, if at all */
        rc = sqlite3_db_config(w->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (rc != SQLITE_OK)
        return error_set(err, ST_IO, "cannot open a second connection to the database: %s",
                         w->db ? sqlite3_errmsg(w->db) : sqlite3_errstr(rc));
    return ST_OK;
}

static void free_wal(struct wal *w)
{
    sqlite3_close(w->db);
    if (w->fd >= 0)
        close(w->fd);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->checkpoint);
    mem_free(w->path);
    mem_free(w);
}

/* Starts both threads, or none. Signals stay with the threads that were there before. */
static int start_threads(struct wal *w)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = pthread_create(&w->checkpointer, NULL, run_checkpointer, w);
    if (e == 0) {
        e = pthread_create(&w->syncer, NULL, run_syncer, w);
        if (e != 0) {
            pthread_mutex_lock(&w->lock);
            w->stop = true;
            pthread_cond_broadcast(&w->wake);
            pthread_mutex_unlock(&w->lock);
            pthread_join(w->checkpointer, NULL);
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

enum status wal_start(const char *path, const char *wal_path, int64_t page_size, struct histogram *sync_us,
                      struct wal **ret, struct error *err)
{
    struct wal *w = mem_zalloc(sizeof *w);
    w->page_size = page_size;
    w->sync_us = sync_us;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->checkpoint, NULL);
    w->path = mem_strdup(wal_path);
    /* SQLite holds no locks on the log itself, so that a descriptor of our own does no harm. */
    w->fd = open(wal_path, O_RDONLY | O_CLOEXEC);

    struct stat sb;
    enum status st;
    if (w->fd < 0 || fstat(w->fd, &sb) != 0) {
        st = error_set(err, ST_IO, "cannot open the write-ahead log: %s", strerror(errno));
        goto fail;
    }
    w->dev = sb.st_dev;
    w->ino = sb.st_ino;
    st = open_checkpointer(w, path, err);
    if (st != ST_OK)
        goto fail;
    int e = start_threads(w);
    if (e != 0) {
        st = error_set(err, ST_INTERNAL, "cannot start a thread: %s", strerror(e));
        goto fail;
    }
    *ret = w;
    return ST_OK;
fail:
    free_wal(w);
    return st;
}

void wal_stop(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->checkpointer, NULL);
    pthread_join(w->syncer, NULL);
    free_wal(w);
}

void wal_committed(struct wal *w, int pages)
{
    if (pages < w->pages) { /* the log has started over */
        w->asked_at = 0;
        atomic_store(&w->copied, 0);
    }
    w->pages = pages;
    atomic_store(&w->end, LOG_HEADER + pages * (FRAME_HEADER + w->page_size));
    if (!atomic_load_explicit(&w->unsynced, memory_order_relaxed))
        atomic_store(&w->unsynced, true);
    if (pages - w->asked_at >= CHECKPOINT_PAGES && !w->by_owner) {
        w->asked_at = pages;
        pthread_mutex_lock(&w->lock);
        w->wanted = true;
        pthread_cond_broadcast(&w->wake);
        pthread_mutex_unlock(&w->lock);
    }
}

/* Copies what is left and has the log start over, waiting so long for those who read in it. */
static bool restart(struct wal *w, sqlite3 *owner, int readers_ms, int busy_ms)
{
    sqlite3_busy_timeout(owner, readers_ms);
    int rc = sqlite3_wal_checkpoint_v2(owner, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
    sqlite3_busy_timeout(owner, busy_ms);
    if (rc != SQLITE_OK)
        return false;
    w->pages = 0;
    w->asked_at = 0;
    atomic_store(&w->end, 0);
    atomic_store(&w->copied, 0);
    return true;
}

void wal_keep_short(struct wal *w, sqlite3 *owner, int busy_ms)
{
    bool over = w->pages >= LIMIT_PAGES;
    bool few_left = w->pages >= CHECKPOINT_PAGES && w->pages - atomic_load(&w->copied) <= FEW_PAGES;
    if (w->by_owner || (!over && !few_left) || clock_mono_us() < w->retry || !wal_is_complete(w))
        return;
    if (over)
        pthread_mutex_lock(&w->checkpoint);
    else if (pthread_mutex_trylock(&w->checkpoint) != 0)
        return;
    bool restarted = restart(w, owner, over ? OVER_READERS_MS : READERS_MS, busy_ms);
    pthread_mutex_unlock(&w->checkpoint);
    if (!restarted)
        w->retry = clock_mono_us() + (over ? OVER_RETRY_US : RETRY_US);
}

void wal_by_owner(struct wal *w)
{
    pthread_mutex_lock(&w->checkpoint); /* one that runs has ended */
    w->by_owner = true;
    pthread_mutex_unlock(&w->checkpoint);
}

/* Passively first: it waits for nobody, and keeps no other process from writing. Only what is quick then is
   done while others wait. */
int wal_checkpoint(struct wal *w, sqlite3 *owner, int busy_ms)
{
    int in_log = 0, copied = 0;
    if (!wal_is_complete(w)) /* the owner's next commit finds out what that means */
        return SQLITE_OK;
    int rc = sqlite3_wal_checkpoint_v2(owner, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
    if (rc == SQLITE_OK && copied == in_log)
        (void)restart(w, owner, READERS_MS, busy_ms);
    return (rc & 0xff) == SQLITE_BUSY ? SQLITE_OK : rc;
}

int wal_pages(const struct wal *w)
{
    return w->pages;
}

void wal_set_syncing(struct wal *w, bool on)
{
    pthread_mutex_lock(&w->lock);
    w->syncing = on;
    atomic_store(&w->sync_errno, 0);
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

bool wal_is_doubtful(const struct wal *w)
{
    return w->by_owner && atomic_load(&w->sync_errno) != 0;
}

enum status wal_sync(struct wal *w, struct error *err)
{
    int e = sync_log(w);
    if (w->by_owner && e)
        atomic_store(&w->sync_errno, e);
    if (e)
        return error_set(err, ST_IO, "syncing the write-ahead log failed: %s", strerror(e));
    return ST_OK;
}

enum status wal_healthy(struct wal *w, struct error *err)
{
    struct stat sb;
    if (stat(w->path, &sb) != 0 || sb.st_ino != w->ino || sb.st_dev != w->dev)
        return error_set(err, ST_IO, "the database's -wal file was removed or replaced while it was in use");
    int e = atomic_load_explicit(&w->sync_errno, memory_order_relaxed);
    if (e)
        return error_set(err, ST_IO, "syncing the write-ahead log failed: %s", strerror(e));
    return ST_OK;
}
