/* SQLite: one file, owned by one process, in WAL mode. How it is opened and owned is in
   sqlite_open.c, how its log is kept short in wal.c.

   Durable: synchronous=FULL syncs the log at every commit. With SQL_SYNC_SECOND and SQL_SYNC_NEVER it is
   NORMAL rather than OFF: commits do not sync, but checkpoints do, so that a crash of the machine loses the
   last commits and never the database. */
#include "sql/sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sql/sqlite_internal.h"

struct sqlite_stmt {
    struct sqlite *conn;
    sqlite3_stmt *st;
    int bind_rc; /* of the first bind that failed */
};

/* ---- errors ---- */

bool sqlite_out_of_space(int e)
{
    return e == ENOSPC || e == EDQUOT || e == EFBIG;
}

enum status sqlite_status(int rc, int sys_errno)
{
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ST_FULL;
    case SQLITE_READONLY:
        return (rc == SQLITE_READONLY_DBMOVED) ? ST_IO : ST_READONLY;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ST_BUSY;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
        return ST_CORRUPT;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return ST_DENIED;
    case SQLITE_CANTOPEN:
        if (sqlite_out_of_space(sys_errno))
            return ST_FULL;
        return sys_errno == ENOENT ? ST_MISSING : ST_DENIED;
    case SQLITE_IOERR:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
        return sqlite_out_of_space(sys_errno) ? ST_FULL : ST_IO;
    case SQLITE_TOOBIG:
        return ST_INVALID;
    default:
        return ST_INTERNAL;
    }
}

static const char *explain(enum status st)
{
    switch (st) {
    case ST_FULL:
        return "no space left for the database";
    case ST_READONLY:
        return "the database cannot be written";
    case ST_BUSY:
        return "another process holds the database's lock";
    case ST_CORRUPT:
        return "the database is damaged, or no SQLite database";
    case ST_DENIED:
        return "no permission to use the database's files";
    case ST_IO:
        return "reading or writing the database failed";
    default:
        return "database error";
    }
}

/* The system's reason for an error in reading or writing: the connection does not always keep it, but each
   file does. */
static int system_errno(struct sqlite *c, int rc)
{
    int e = sqlite3_system_errno(c->db);
    if (e != 0 || (rc & 0xff) != SQLITE_IOERR)
        return e;
    sqlite3_file *log = NULL;
    sqlite3_file_control(c->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log && log->pMethods)
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &e);
    if (e == 0)
        sqlite3_file_control(c->db, "main", SQLITE_FCNTL_LAST_ERRNO, &e);
    return e;
}

static enum status log_is_cut(struct error *err)
{
    return error_set(err, ST_IO, "the database's -wal file was cut short while it was in use");
}

enum status sqlite_fail(struct sqlite *c, int rc, struct error *err)
{
    int ext = (rc & 0xff) == (sqlite3_errcode(c->db) & 0xff) ? sqlite3_extended_errcode(c->db) : rc;
    if (ext == SQLITE_IOERR_SHORT_READ || /* SQLite says that of the log alone */
        ((rc & 0xff) == SQLITE_IOERR && c->walfile && walfile_is_cut(c->walfile)))
        return log_is_cut(err);
    int e = system_errno(c, ext);
    enum status st = sqlite_status(ext, e);
    bool sys = e != 0 && ((ext & 0xff) == SQLITE_IOERR || (ext & 0xff) == SQLITE_CANTOPEN);
    return error_set(err, st, "%s: %s%s%s%s", explain(st), sqlite3_errmsg(c->db), sys ? " (" : "",
                     sys ? strerror(e) : "", sys ? ")" : "");
}

/* ---- statements ---- */

enum status sqlite_exec(struct sqlite *c, const char *text, struct error *err)
{
    int rc = sqlite3_exec(c->db, text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ST_OK : sqlite_fail(c, rc, err);
}

enum status sqlite_compile(struct sqlite *c, const char *text, sqlite3_stmt **ret, struct error *err)
{
    int rc = sqlite3_prepare_v3(c->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return rc == SQLITE_OK ? ST_OK : sqlite_fail(c, rc, err);
}

enum status sqlite_prepare(struct sqlite *c, const char *text, struct sqlite_stmt **ret, struct error *err)
{
    sqlite3_stmt *st;
    enum status rc = sqlite_compile(c, text, &st, err);
    if (rc != ST_OK)
        return rc;
    struct sqlite_stmt *s = mem_zalloc(sizeof *s);
    s->conn = c;
    s->st = st;
    *ret = s;
    return ST_OK;
}

void sqlite_finalize(struct sqlite_stmt *s)
{
    if (!s)
        return;
    sqlite3_finalize(s->st);
    mem_free(s);
}

static void bound(struct sqlite_stmt *s, int rc)
{
    if (rc != SQLITE_OK && s->bind_rc == SQLITE_OK)
        s->bind_rc = rc;
}

void sqlite_bind_i64(struct sqlite_stmt *s, int i, int64_t v)
{
    bound(s, sqlite3_bind_int64(s->st, i, v));
}

void sqlite_bind_double(struct sqlite_stmt *s, int i, double v)
{
    bound(s, sqlite3_bind_double(s->st, i, v));
}

void sqlite_bind_blob(struct sqlite_stmt *s, int i, struct slice v)
{
    /* A NULL pointer would bind NULL, which is something else than no bytes. */
    bound(s, sqlite3_bind_blob64(s->st, i, v.n ? v.p : "", v.n, SQLITE_STATIC));
}

void sqlite_bind_text(struct sqlite_stmt *s, int i, const char *v)
{
    bound(s, sqlite3_bind_text(s->st, i, v, -1, SQLITE_STATIC));
}

enum status sqlite_step(struct sqlite_stmt *s, bool *ret_row, struct error *err)
{
    *ret_row = false;
    if (s->bind_rc != SQLITE_OK)
        return sqlite_fail(s->conn, s->bind_rc, err);
    int rc = sqlite3_step(s->st);
    if (rc == SQLITE_ROW) {
        *ret_row = true;
        return ST_OK;
    }
    return rc == SQLITE_DONE ? ST_OK : sqlite_fail(s->conn, rc, err);
}

int64_t sqlite_column_i64(struct sqlite_stmt *s, int i)
{
    return sqlite3_column_int64(s->st, i);
}

double sqlite_column_double(struct sqlite_stmt *s, int i)
{
    return sqlite3_column_double(s->st, i);
}

struct slice sqlite_column_blob(struct sqlite_stmt *s, int i)
{
    sqlite3_stmt *st = s->st;
    const void *p = sqlite3_column_blob(st, i);
    return slice_of(p, p ? (size_t)sqlite3_column_bytes(st, i) : 0);
}

void sqlite_reset(struct sqlite_stmt *s)
{
    sqlite3_reset(s->st); /* repeats the step's error, which has been reported */
    s->bind_rc = SQLITE_OK;
}

enum status sqlite_run(struct sqlite_stmt *s, struct error *err)
{
    bool row;
    enum status st;
    do
        st = sqlite_step(s, &row, err);
    while (st == ST_OK && row);
    sqlite_reset(s);
    return st;
}

int64_t sqlite_last_id(struct sqlite *c)
{
    return sqlite3_last_insert_rowid(c->db);
}

int64_t sqlite_changed_rows(struct sqlite *c)
{
    return sqlite3_changes64(c->db);
}

/* ---- transactions ---- */

static enum status run_raw(struct sqlite *c, sqlite3_stmt *st, struct error *err)
{
    int rc = sqlite3_step(st);
    enum status ret = rc == SQLITE_DONE || rc == SQLITE_ROW ? ST_OK : sqlite_fail(c, rc, err);
    sqlite3_reset(st);
    return ret;
}

enum status sqlite_get_i64(struct sqlite *c, sqlite3_stmt *st, int64_t *ret, struct error *err)
{
    int rc = sqlite3_step(st);
    enum status s = rc == SQLITE_ROW ? ST_OK : sqlite_fail(c, rc, err);
    if (s == ST_OK)
        *ret = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return s;
}

bool sqlite_in_transaction(const struct sqlite *c)
{
    /* db is NULL when opening failed before it was there. */
    return c->db && sqlite3_get_autocommit(c->db) == 0;
}

/* Only between transactions; takes effect when it is compiled, so it cannot be a kept statement. */
static enum status set_level(struct sqlite *c, bool full, struct error *err)
{
    if (c->full == full)
        return ST_OK;
    enum status st = sqlite_exec(c, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err);
    if (st == ST_OK)
        c->full = full;
    return st;
}

/* Writes to files that have lost their names would be lost with the process. */
static enum status check_files(struct sqlite *c, struct error *err)
{
    int moved = 0;
    if (sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved)
        return error_set(err, ST_IO, "the database file was removed or replaced while it was in use");
    if (walfile_is_cut(c->walfile))
        return log_is_cut(err);
    if (walfile_is_doubtful(c->walfile))
        return error_set(err, ST_IO,
                         "syncing the write-ahead log failed: the server has to be started again");
    return wal_healthy(c->wal, err);
}

void sqlite_rollback(struct sqlite *c)
{
    if (!sqlite_in_transaction(c))
        return; /* SQLite rolls back by itself after some errors */
    sqlite3_step(c->rollback);
    sqlite3_reset(c->rollback);
}

static enum status begin_write(struct sqlite *c, bool lazy, struct error *err)
{
    if (!c->wal)
        return error_set(err, ST_READONLY, "the database was opened for reading only");
    enum status st = check_files(c, err);
    if (st != ST_OK)
        return st;
    wal_keep_short(c->wal, c->db, c->busy_ms);
    st = set_level(c, c->sync == SQL_SYNC_ALWAYS && !lazy, err);
    return st == ST_OK ? run_raw(c, c->begin_write, err) : st;
}

/* ---- what others have committed, without a lock (walindex.h) ---- */

bool sqlite_same(struct sqlite *c)
{
    sqlite3_file *f = NULL;
    if (!c->index && sqlite3_file_control(c->db, "main", SQLITE_FCNTL_FILE_POINTER, &f) == SQLITE_OK)
        c->index = walindex_find(f);
    if (!c->has_seen)
        return false;
    struct wal_header now = walindex_read(c->index);
    return walindex_equal(&now, &c->seen);
}

bool sqlite_others(struct sqlite *c, uint64_t *seen, bool *ret_others)
{
    return c->walfile && walfile_others(c->walfile, seen, ret_others);
}

/* A transaction that reads has begun, and has fixed what it sees: that is known when the header was the same
   before and after. */
static void note_header(struct sqlite *c, const struct wal_header *before)
{
    c->seen = walindex_read(c->index);
    c->has_seen = walindex_equal(&c->seen, before);
}

static enum status ask_others(struct sqlite *c, bool *ret_others, struct error *err)
{
    int64_t version = 0;
    enum status st = sqlite_get_i64(c, c->get_data_version, &version, err);
    if (st != ST_OK)
        return st;
    *ret_others = version != c->data_version;
    c->data_version = version;
    return ST_OK;
}

enum status sqlite_begin(struct sqlite *c, enum sqlite_txn kind, bool *ret_others, struct error *err)
{
    assert(!sqlite_in_transaction(c));
    struct wal_header before = {0};
    if (c->index)
        before = walindex_read(c->index);
    c->has_seen = false;
    enum status st =
        kind == SQL_READ ? run_raw(c, c->begin_read, err) : begin_write(c, kind == SQL_WRITE_LAZY, err);
    if (st != ST_OK || !ret_others)
        return st;
    st = ask_others(c, ret_others, err); /* also fixes what a read transaction sees */
    if (st != ST_OK)
        sqlite_rollback(c);
    else if (c->index && kind == SQL_READ)
        note_header(c, &before);
    return st;
}

enum status sqlite_commit(struct sqlite *c, struct error *err)
{
    if (!sqlite_in_transaction(c))
        return error_set(err, ST_INTERNAL, "commit without a transaction");
    int rc = sqlite3_step(c->commit);
    if (rc == SQLITE_DONE) {
        sqlite3_reset(c->commit);
        return ST_OK;
    }
    int ext = sqlite3_extended_errcode(c->db);
    enum status st = sqlite_fail(c, rc, err);
    sqlite3_reset(c->commit);
    sqlite_rollback(c);
    if (ext == SQLITE_IOERR_FSYNC) {
        /* The transaction is in the log; whether on the disk is not known. The next commit overwrites it. */
        st = ST_UNKNOWN;
        if (err)
            err->code = st;
    }
    return st;
}

/* ---- durability, size, space ---- */

/* The log is shorter than what was written to it: another process has cut it, or has brought all of it into
   the database and emptied it. The next write tells: it goes behind the gap, or to the beginning. This one
   leaves everything as it is. */
static enum status try_log(struct sqlite *c, struct error *err)
{
    int64_t version = 0;
    sqlite3_stmt *get = NULL;
    char text[64];
    enum status st = begin_write(c, true, err);
    if (st != ST_OK)
        return st;
    st = sqlite_compile(c, "PRAGMA user_version", &get, err);
    if (st == ST_OK)
        st = sqlite_get_i64(c, get, &version, err);
    sqlite3_finalize(get);
    snprintf(text, sizeof text, "PRAGMA user_version=%lld", (long long)version);
    if (st == ST_OK)
        st = sqlite_exec(c, text, err);
    if (st == ST_OK)
        return sqlite_commit(c, err);
    sqlite_rollback(c);
    return st;
}

enum status sqlite_sync(struct sqlite *c, struct error *err)
{
    if (!c->wal)
        return ST_OK;
    enum status st = check_files(c, err);
    if (st == ST_OK && !wal_is_complete(c->wal))
        st = try_log(c, err);
    return st == ST_OK ? wal_sync(c->wal, err) : st;
}

/* A process that is about to let the lock go has a moment: SQLite sleeps a millisecond and tries once
   more. */
void sqlite_stop_waiting(struct sqlite *c)
{
    c->busy_ms = 1;
    sqlite3_busy_timeout(c->db, c->busy_ms);
}

enum status sqlite_set_sync(struct sqlite *c, enum sqlite_sync sync, struct error *err)
{
    enum status st = sqlite_sync(c, err); /* a stricter promise holds for what is there already */
    if (st != ST_OK)
        return st;
    c->sync = sync;
    if (c->wal)
        wal_set_syncing(c->wal, sync == SQL_SYNC_SECOND);
    return ST_OK;
}

enum status sqlite_write_in_bulk(struct sqlite *c, struct meanwhile m, struct error *err)
{
    const char *path = sqlite3_filename_wal(sqlite3_db_filename(c->db, "main"));
    c->spread_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (c->spread_fd < 0)
        return error_set(err, ST_IO, "cannot open the write-ahead log: %s", strerror(errno));
    wal_by_owner(c->wal);
    walfile_spread(c->walfile, c->spread_fd, c->owner_fd, m);
    return ST_OK;
}

uint64_t sqlite_log_bytes(const struct sqlite *c)
{
    return c->wal ? (uint64_t)wal_pages(c->wal) * (uint64_t)c->page_size : 0;
}

enum status sqlite_checkpoint(struct sqlite *c, struct error *err)
{
    enum status st = check_files(c, err);
    if (st != ST_OK)
        return st;
    int rc = wal_checkpoint(c->wal, c->db, c->busy_ms);
    return rc == SQLITE_OK ? ST_OK : sqlite_fail(c, rc, err);
}

enum status sqlite_info(struct sqlite *c, struct sqlite_info *ret, struct error *err)
{
    int64_t pages = 0, unused = 0;
    enum status st = sqlite_get_i64(c, c->page_count, &pages, err);
    if (st == ST_OK)
        st = sqlite_get_i64(c, c->free_pages, &unused, err);
    if (st != ST_OK)
        return st;
    struct stat sb;
    const char *wal_path = sqlite3_filename_wal(sqlite3_db_filename(c->db, "main"));
    ret->bytes = (uint64_t)pages * (uint64_t)c->page_size;
    ret->free_bytes = (uint64_t)unused * (uint64_t)c->page_size;
    ret->wal_bytes = stat(wal_path, &sb) == 0 ? (uint64_t)sb.st_size : 0;
    ret->sync_us = &c->sync_us;
    snprintf(ret->engine, sizeof ret->engine, "sqlite %s", sqlite3_libversion());
    return ST_OK;
}

/* Free pages are reused by whatever is written next, so a reasonable number of them is left alone: below
   RECLAIM_MIN, or a quarter of the file. */
#define RECLAIM_MIN 1024

enum status sqlite_reclaim(struct sqlite *c, uint32_t max_pages, bool *ret_more, struct error *err)
{
    int64_t pages = 0, unused = 0;
    *ret_more = false;
    if (c->auto_vacuum == 0) /* a file that was made without it gives nothing back */
        return ST_OK;
    enum status st = sqlite_get_i64(c, c->free_pages, &unused, err);
    if (st != ST_OK || unused < RECLAIM_MIN)
        return st;
    st = sqlite_get_i64(c, c->page_count, &pages, err);
    if (st != ST_OK || unused < pages / 4)
        return st;
    st = begin_write(c, true, err);
    if (st != ST_OK)
        return st;
    char text[64];
    snprintf(text, sizeof text, "PRAGMA incremental_vacuum(%u)", max_pages);
    st = sqlite_exec(c, text, err);
    if (st != ST_OK) {
        sqlite_rollback(c);
        return st;
    }
    int64_t left = unused;
    st = sqlite_get_i64(c, c->free_pages, &left, err);
    if (st != ST_OK) {
        sqlite_rollback(c);
        return st;
    }
    *ret_more = left < unused;
    return sqlite_commit(c, err);
}
