/* What it touches: the source is only read, through a read transaction that is held until all pages are
   copied (SQLite's own log cannot start over meanwhile). A crash leaves FILE.part and what SQLite has beside
   it; the next backup to FILE removes them.

   Segments of the log may be given up while they are read, when a pass has brought their records into the
   tables: then the snapshot is too old for the log, and another one is taken. */
#include "admin/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "journal/redo_state.h"
#include "journal/replay.h"
#include "sql/remote.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"

#define CACHE_BYTES (16u << 20)
#define BUSY_MS     10000
#define TRIES       50
#define RETRY_MS    20
#define PROGRESS_US 1000000

struct backup {
    FILE *out;
    struct sqlite *sql;  /* of the source */
    struct store *store; /* over it, and closes it */
    struct redo_state state;
    struct memtable *tail; /* what the log has behind the snapshot */
    int64_t last;          /* the last number in there */
    size_t groups;
    struct error *err;
    char part[4096];
    int64_t said_us;
};

/* ---- a snapshot, and the log behind it ---- */

static enum status take_record(void *arg, const struct redo_record *r)
{
    struct backup *b = arg;
    if (r->kind == REDO_OUTSIZED) /* it went into the tables behind the snapshot: here the copy ends */
        return ST_STOP;
    b->groups++;
    b->last = r->seq;
    return replay_row(b->tail, r->seq, r->payload, b->err);
}

/* ST_CORRUPT, ST_MISSING: another snapshot may do, because segments went away meanwhile. */
static enum status read_tail(struct backup *b, const char *url, struct error *err)
{
    struct redo_found now;
    enum redo_verdict verdict;
    memtable_free(b->tail);
    b->tail = memtable_new(0);
    b->last = b->state.applied;
    b->groups = 0;
    enum status st = redo_each(b->state.file.path, b->state.known ? &b->state.id : NULL, b->state.applied,
                               take_record, b, err);
    st = status_of_walk(st);
    if (st == ST_OK)
        st = redo_find(b->state.file.path, b->state.known ? &b->state.id : NULL, &now, err);
    if (st == ST_OK)
        st = redo_judge(&b->state, &now, url, &verdict, err);
    return st;
}

static enum status begin(struct backup *b, struct error *err)
{
    sqlite_rollback(b->sql);
    enum status st = sqlite_begin(b->sql, SQL_READ, NULL, err);
    if (st == ST_OK)
        st = schema_require(b->sql, "copies", err);
    return st == ST_OK ? redo_state_read(b->store, &b->state, err) : st;
}

static enum status take_snapshot(struct backup *b, const char *url, struct error *err)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    for (int i = 1;; i++) {
        enum status st = begin(b, err);
        if (st == ST_OK)
            st = read_tail(b, url, err);
        if ((st != ST_CORRUPT && st != ST_MISSING) || i == TRIES)
            return st;
        nanosleep(&pause, NULL);
    }
}

/* ---- the copy ---- */

static void tell_progress(void *arg, int64_t done, int64_t all)
{
    struct backup *b = arg;
    int64_t now = clock_mono_us();
    if (now - b->said_us < PROGRESS_US)
        return;
    b->said_us = now;
    fprintf(b->out, "copied %" PRId64 " of %" PRId64 " pages\n", done, all);
    fflush(b->out);
}

static enum status fail(int e, const char *what, const char *path, struct error *err)
{
    enum status st = e == ENOSPC || e == EDQUOT || e == EFBIG ? ST_FULL
                     : e == EACCES || e == EPERM              ? ST_DENIED
                     : e == EROFS                             ? ST_READONLY
                     : e == ENOENT                            ? ST_MISSING
                                                              : ST_IO;
    return error_set(err, st, "cannot %s %s: %s", what, path, strerror(e));
}

static void remove_part(const struct backup *b)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[sizeof b->part + 16];
        snprintf(name, sizeof name, "%s%s", b->part, ends[i]);
        unlink(name);
    }
}

/* As an owner's who makes a new file; the data is not for everyone. */
static enum status make_part(struct backup *b, struct error *err)
{
    remove_part(b);
    int fd = open(b->part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd < 0)
        return fail(errno, "make", b->part, err);
    close(fd);
    return ST_OK;
}

/* The log's tail, and that this file has no log and no owner. One transaction. */
static enum status complete(struct backup *b, struct store *to, struct error *err)
{
    enum status st = store_begin(to, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = replay_apply(to, b->tail, err);
    if (st == ST_OK && b->last > b->state.applied)
        st = store_journal_applied(to, b->last, err);
    if (st == ST_OK)
        st = redo_state_forget(to, err);
    if (st == ST_OK)
        st = store_set_word(to, "owner", "", err);
    if (st == ST_OK)
        return store_commit(to, err);
    store_rollback(to);
    return st;
}

static enum status complete_part(struct backup *b, struct error *err)
{
    struct sqlite_options o = {.path = b->part, .cache_bytes = CACHE_BYTES, .busy_ms = BUSY_MS};
    struct sqlite *c;
    enum status st = sqlite_open(&o, &c, err);
    if (st != ST_OK)
        return st;
    struct store *to = sqlite_store_over(c);
    st = complete(b, to, err);
    store_close(to);
    return st;
}

static enum status sync_path(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(errno, "open", path, err);
    enum status st = fsync(fd) == 0 ? ST_OK : fail(errno, "sync", path, err);
    close(fd);
    return st;
}

/* Everything is in the file itself: SQLite has removed its log when it was closed. */
static enum status give_name(const struct backup *b, const char *file, bool force, struct error *err)
{
    char log[sizeof b->part + 8], folder[sizeof b->part];
    struct stat sb;
    snprintf(log, sizeof log, "%s-wal", b->part);
    if (stat(log, &sb) == 0)
        return error_set(err, ST_IO, "%s could not be emptied", log);
    enum status st = sync_path(b->part, err);
    if (st != ST_OK)
        return st;
    if (force ? rename(b->part, file) != 0 : link(b->part, file) != 0)
        return fail(errno, force ? "replace" : "make", file, err);
    if (!force)
        unlink(b->part);
    snprintf(folder, sizeof folder, "%s", file);
    return sync_path(dirname(folder), err);
}

static enum status copy(struct backup *b, const char *file, bool force, struct error *err)
{
    enum status st = make_part(b, err);
    b->said_us = clock_mono_us();
    if (st == ST_OK)
        st = sqlite_copy(b->sql, b->part, tell_progress, b, err);
    sqlite_rollback(b->sql);
    if (st == ST_OK)
        st = complete_part(b, err);
    if (st == ST_OK)
        st = give_name(b, file, force, err);
    if (st != ST_OK)
        remove_part(b);
    return st;
}

/* ---- the program's ---- */

static enum status refuse_file(const char *path, const char *file, bool force, struct error *err)
{
    struct stat source, target;
    if (stat(file, &target) != 0)
        return ST_OK;
    if (stat(path, &source) == 0 && source.st_ino == target.st_ino && source.st_dev == target.st_dev)
        return error_set(err, ST_INVALID, "%s is the database itself", file);
    if (!S_ISREG(target.st_mode))
        return error_set(err, ST_INVALID, "%s is no regular file", file);
    return force ? ST_OK : error_set(err, ST_INVALID, "%s is there already; --force replaces it", file);
}

static enum status refuse_server(const char *url, struct error *err)
{
    return error_set(err, ST_INVALID, "backup is for SQLite: this database has its own, %s (docs/backup.md)",
                     strncmp(url, "postgres", 8) == 0 ? "pg_dump" : "mariadb-dump");
}

enum status store_backup(const char *url, const char *file, bool force, FILE *out, struct error *err)
{
    struct sqlite_options o = {.cache_bytes = CACHE_BYTES, .busy_ms = BUSY_MS, .read_only = true};
    struct backup b = {.out = out, .err = err};
    struct stat sb;
    if (remote_is_url(url))
        return refuse_server(url, err);
    if (snprintf(b.part, sizeof b.part, "%s.part", file) >= (int)sizeof b.part)
        return error_set(err, ST_INVALID, "the name of the copy is too long");
    enum status st = sqlite_path(url, &o.path, err);
    if (st == ST_OK)
        st = refuse_file(o.path, file, force, err);
    if (st == ST_OK)
        st = sqlite_open(&o, &b.sql, err);
    if (st != ST_OK)
        return st;
    b.store = sqlite_store_over(b.sql);
    st = take_snapshot(&b, url, err);
    if (st == ST_OK)
        st = copy(&b, file, force, err);
    if (st == ST_OK && stat(file, &sb) == 0)
        fprintf(out, "%s: %lld bytes, with %zu %s of the log\n", file, (long long)sb.st_size, b.groups,
                b.groups == 1 ? "group" : "groups");
    memtable_free(b.tail);
    store_close(b.store);
    return st;
}
