/* Opening a SQLite database, owning it and closing it.

   Owned: flock on the database file, through a descriptor of our own. SQLite's own locks are POSIX ones on
   other bytes, so that the sqlite3 shell and other readers and writers go on as they please; only a second
   server is refused. POSIX locks have a trap: closing any descriptor of a file drops all of a process's locks
   on it. So the descriptor is closed after SQLite's last connection, and a process must not open the same
   file twice. */
#include "sql/sqlite_internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"

#define AUTO_VACUUM_INCREMENTAL 2

/* The length of the scheme, or 0 for a path: two letters at least, so that no drive letter is one, and no
   slash before the colon. */
static size_t scheme_length(const char *url)
{
    size_t n = 0;
    while (isalnum((unsigned char)url[n]) || url[n] == '+')
        n++;
    return n > 1 && url[n] == ':' ? n : 0;
}

enum status sqlite_path(const char *url, const char **ret, struct error *err)
{
    size_t n = scheme_length(url);
    if (n && !slice_is(slice_of(url, n), "sqlite"))
        return error_set(err, ST_INVALID,
                         "no such kind of database (known: sqlite:PATH, postgres://..., mysql://...)");
    *ret = n ? url + n + 1 : url;
    if (**ret == '\0')
        return error_set(err, ST_INVALID, "a database needs a path: sqlite:PATH");
    return ST_OK;
}

static enum status open_failed(const char *path, int e, struct error *err)
{
    enum status st = sqlite_out_of_space(e)        ? ST_FULL
                     : e == ENOENT || e == ENOTDIR ? ST_MISSING
                     : e == EROFS                  ? ST_READONLY
                     : e == EACCES || e == EPERM   ? ST_DENIED
                     : e == EISDIR || e == EINVAL  ? ST_INVALID
                                                   : ST_IO;
    return error_set(err, st, "cannot open %s: %s", path, strerror(e));
}

/* Takes the file for this process. */
static enum status take(const char *path, int *ret_fd, struct error *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        int e = errno;
        /* A file that may be read but not written deserves better than "permission denied". */
        if ((e == EACCES || e == EPERM || e == EROFS) && access(path, R_OK) == 0)
            return error_set(err, ST_READONLY, "%s cannot be written: %s", path, strerror(e));
        return open_failed(path, e, err);
    }
    struct stat sb;
    if (fstat(fd, &sb) == 0 && !S_ISREG(sb.st_mode)) {
        close(fd);
        return error_set(err, ST_INVALID, "%s is no regular file", path);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int e = errno;
        close(fd);
        if (e == EWOULDBLOCK)
            return error_set(err, ST_LOCKED, "%s is in use by another process", path);
        return error_set(err, ST_IO, "cannot lock %s: %s", path, strerror(e));
    }
    *ret_fd = fd;
    return ST_OK;
}

static enum status require_wal(struct sqlite *c, struct error *err)
{
    sqlite3_stmt *st;
    enum status rc = sqlite_compile(c, "PRAGMA journal_mode=WAL", &st, err);
    if (rc != ST_OK)
        return rc;
    int step = sqlite3_step(st);
    if (step != SQLITE_ROW)
        rc = sqlite_fail(c, step, err);
    else if (strcmp((const char *)sqlite3_column_text(st, 0), "wal") != 0)
        rc = error_set(err, ST_IO, "the file system does not allow a write-ahead log (a network share?)");
    sqlite3_finalize(st);
    return rc;
}

static enum status read_pragma(struct sqlite *c, const char *text, int64_t *ret, struct error *err)
{
    sqlite3_stmt *st;
    enum status rc = sqlite_compile(c, text, &st, err);
    if (rc != ST_OK)
        return rc;
    rc = sqlite_get_i64(c, st, ret, err);
    sqlite3_finalize(st);
    return rc;
}

/* So that pages can be given back. Not where it is so already: saying it again writes, and there may be no
   room. */
static enum status require_auto_vacuum(struct sqlite *c, struct error *err)
{
    int64_t mode;
    enum status st = read_pragma(c, "PRAGMA auto_vacuum", &mode, err);
    if (st != ST_OK || mode == AUTO_VACUUM_INCREMENTAL)
        return st;
    return sqlite_exec(c, "PRAGMA auto_vacuum=INCREMENTAL", err);
}

/* page_size and auto_vacuum matter for a file that is still empty only, and only before the log. */
static enum status configure(struct sqlite *c, const struct sqlite_options *o, struct error *err)
{
    char text[320];
    uint64_t kib = o->cache_bytes / 1024;
    snprintf(text, sizeof text,
             "PRAGMA cache_size=-%d; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=OFF;"
             "PRAGMA secure_delete=OFF; PRAGMA trusted_schema=OFF",
             (int)(kib < 64          ? 64
                   : kib > INT32_MAX ? INT32_MAX
                                     : kib));
    enum status st = sqlite_exec(c, text, err);
    if (st != ST_OK || o->read_only)
        return st;
    st = sqlite_exec(c, "PRAGMA page_size=4096", err);
    if (st == ST_OK)
        st = require_auto_vacuum(c, err);
    if (st == ST_OK)
        st = require_wal(c, err);
    if (st == ST_OK)
        st = sqlite_exec(c,
                         "PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0;"
                         "PRAGMA journal_size_limit=67108864",
                         err);
    c->full = true;
    return st;
}

static enum status prepare_own(struct sqlite *c, struct error *err)
{
    const struct {
        sqlite3_stmt **st;
        const char *text;
    } own[] = {
        {&c->begin_read, "BEGIN"},
        {&c->begin_write, "BEGIN IMMEDIATE"},
        {&c->commit, "COMMIT"},
        {&c->rollback, "ROLLBACK"},
        {&c->get_data_version, "PRAGMA data_version"},
        {&c->free_pages, "PRAGMA freelist_count"},
        {&c->page_count, "PRAGMA page_count"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        enum status st = sqlite_compile(c, own[i].text, own[i].st, err);
        if (st != ST_OK)
            return st;
    }
    return sqlite_get_i64(c, c->get_data_version, &c->data_version, err);
}

enum status sqlite_file(struct sqlite *c, struct sqlite_file *ret, struct error *err)
{
    struct statx sx;
    ret->path = sqlite3_db_filename(c->db, "main");
    /* By its number and when it was made, where the file system knows: numbers are given out again. */
    if (statx(AT_FDCWD, ret->path, 0, STATX_INO | STATX_BTIME, &sx) != 0)
        return open_failed(ret->path, errno, err);
    bool timed = sx.stx_mask & STATX_BTIME;
    snprintf(ret->identity, sizeof ret->identity, "%llu.%lld.%u", (unsigned long long)sx.stx_ino,
             timed ? (long long)sx.stx_btime.tv_sec : 0, timed ? sx.stx_btime.tv_nsec : 0);
    return read_pragma(c, "PRAGMA schema_version", &ret->cookie, err);
}

enum status sqlite_new_cookie(struct sqlite *c, struct error *err)
{
    uint32_t number;
    char text[64];
    rand_secure(&number, sizeof number);
    snprintf(text, sizeof text, "PRAGMA schema_version=%u", (number & 0x3fffffff) | 0x40000000);
    return sqlite_exec(c, text, err);
}

/* An empty transaction that writes: the log exists afterwards, and we know that we can write. */
static enum status start_log(struct sqlite *c, struct error *err)
{
    const char *path = sqlite3_db_filename(c->db, "main");
    enum status st = sqlite_exec(c, "BEGIN IMMEDIATE; COMMIT", err);
    if (st != ST_OK)
        return st;
    st = wal_start(path, sqlite3_filename_wal(path), c->page_size, &c->sync_us, &c->wal, err);
    if (st == ST_OK)
        wal_set_syncing(c->wal, c->sync == SQL_SYNC_SECOND);
    return st;
}

void sqlite_close(struct sqlite *c)
{
    if (!c)
        return;
    sqlite_rollback(c);
    if (c->wal) {
        bool doubtful = wal_is_doubtful(c->wal) || walfile_is_doubtful(c->walfile);
        bool complete = !doubtful && wal_is_complete(c->wal) && !walfile_is_cut(c->walfile);
        wal_stop(c->wal);
        walfile_spread(c->walfile, -1, -1, (struct meanwhile){0}); /* nobody waits any more */
        if (complete)
            (void)sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        else /* nor the one that SQLite makes of itself: what is not there, or not on the disk, is not copied
              */
            sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    sqlite3_stmt *own[] = {c->begin_read,       c->begin_write, c->commit,    c->rollback,
                           c->get_data_version, c->free_pages,  c->page_count};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sqlite3_finalize(own[i]);
    int rc = sqlite3_close(c->db);
    assert(rc == SQLITE_OK); /* else a statement was not finalized */
    (void)rc;
    walfile_free(c->walfile);
    if (c->owner_fd >= 0)
        close(c->owner_fd);
    if (c->spread_fd >= 0)
        close(c->spread_fd);
    mem_free(c);
}

static enum status open_database(struct sqlite *c, const struct sqlite_options *o, struct error *err)
{
    int flags = o->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    /* A path is a path: "file:" would be read as a URI. */
    const char *prefix = strncmp(o->path, "file:", 5) == 0 ? "./" : "";
    size_t n = strlen(prefix) + strlen(o->path) + 1;
    char *path = mem_alloc(n);
    snprintf(path, n, "%s%s", prefix, o->path);
    if (!o->read_only)
        c->walfile = walfile_new(&c->sync_us);
    int rc = sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX,
                             c->walfile ? walfile_name(c->walfile) : NULL);
    mem_free(path);
    if (rc != SQLITE_OK) {
        if (c->db && sqlite3_system_errno(c->db) != 0)
            return open_failed(o->path, sqlite3_system_errno(c->db), err);
        return error_set(err, sqlite_status(rc, 0), "cannot open %s: %s", o->path, sqlite3_errstr(rc));
    }
    sqlite3_extended_result_codes(c->db, 1);
    c->busy_ms = (int)(o->busy_ms > INT32_MAX ? INT32_MAX : o->busy_ms);
    sqlite3_busy_timeout(c->db, c->busy_ms);
    return ST_OK;
}

/* A database that cannot be used is named, whichever step found it out. */
static void name_database(struct error *err, const char *path)
{
    char text[sizeof err->text];
    if (!err || strstr(err->text, path))
        return;
    memcpy(text, err->text, sizeof text);
    (void)error_set(err, err->code, "%s: %s", path, text);
}

static int after_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
    struct sqlite *c = arg;
    (void)db;
    (void)name;
    if (c->wal)
        wal_committed(c->wal, pages);
    return SQLITE_OK;
}

/* This program does not ask SQLite how much it has allocated, and counting takes a lock that all connections
   share. Only before its first use; later it has no effect. */
static void configure_library(void)
{
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

enum status sqlite_open(const struct sqlite_options *o, struct sqlite **ret, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure_library);
    struct sqlite *c = mem_zalloc(sizeof *c);
    c->owner_fd = c->spread_fd = -1;
    c->sync = o->sync;
    enum status st = o->read_only ? ST_OK : take(o->path, &c->owner_fd, err);
    if (st == ST_OK)
        st = open_database(c, o, err);
    if (st == ST_OK)
        st = configure(c, o, err);
    if (st == ST_OK)
        st = prepare_own(c, err);
    if (st == ST_OK)
        st = read_pragma(c, "PRAGMA page_size", &c->page_size, err);
    if (st == ST_OK)
        st = read_pragma(c, "PRAGMA auto_vacuum", &c->auto_vacuum, err);
    if (st == ST_OK && !o->read_only)
        st = start_log(c, err);
    if (st != ST_OK) {
        name_database(err, o->path);
        sqlite_close(c);
        return st;
    }
    sqlite3_wal_hook(c->db, after_commit, c);
    *ret = c;
    return ST_OK;
}
