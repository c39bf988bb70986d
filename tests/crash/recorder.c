/* clang-format off */
/* A library that is loaded before the C library (LD_PRELOAD) into a program and records what it does to the
   files of one folder: the source of every simulated power loss. The environment says what to do:

     CRASH_FOLDER    the folder, as an absolute path in the very form that the program uses
     CRASH_LOG       the recording, a file that is there in its full size (see recording.h); several processes, and
                     one after the other, may write to the same
     CRASH_KILL_AT   SIGKILL instead of the Nth call that changes a file, the name of one, or syncs
     CRASH_KILL_HALF with any value: if that call is a write, the first half of it is done before
     CRASH_LIE       with any value: syncs are neither done nor recorded, but reported as done; the disk that the
                     tests must notice
     CRASH_FAIL_SYNC a path: while there is a file of that name, syncs fail, as with a disk that is broken. Its
                     content is the begin of the names that are concerned; nothing: all
     CRASH_NO_READS  a path: while there is a file of that name, nothing can be read from the files
     CRASH_FIRST     with any value: that concerns only the program's first thread

   Only one call at a time, over all processes, is done and recorded, so that the order of the recording is
   the order of what happened. Syncs are the exception: they go on beside other calls, and their beginning and
   their end are recorded.

   statx tells of the folder's files that they are the same file wherever they are: what a crash left is
   looked at in copies, and a log belongs to one file.

   Names that end in -shm are left out: that file is memory that processes share, is mapped rather than
   written, and is made anew by whoever opens the database first after a crash. A program that changes the
   folder in a way that is not recorded ends with a message: fallocate, writev, or a shared mapping that can
   be written. (The test also compares what a recording leads to with what is there.) */
/* clang-format on */
#include "recording.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_FDS 65536

static struct {
    bool on;
    bool lie, half;
    const char *no_reads, *fail_sync;
    bool first;
    char folder[PATH_MAX];
    size_t folder_len;
    int fd; /* of the log, which is also the lock between processes; -1: nothing is recorded */
    unsigned char *log;
    size_t capacity;
    uint64_t calls, kill_at;
    pthread_mutex_t lock; /* between threads */
} recorder = {.fd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Which file is open there: its inode number, RECORDING_FOLDER, or 0 for one that is none of ours. */
static _Atomic uint64_t open_files[MAX_FDS];

/* The next library's function of that name, in a variable of its own type. */
#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    char text[PATH_MAX + 128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "recorder: %.*s\n", n, text);
    abort();
}

__attribute__((constructor)) static void start(void)
{
    const char *folder = getenv("CRASH_FOLDER");
    if (!folder)
        return;
    recorder.folder_len = strlen(folder);
    if (recorder.folder_len >= sizeof recorder.folder)
        die("CRASH_FOLDER is too long");
    memcpy(recorder.folder, folder, recorder.folder_len + 1);
    recorder.lie = getenv("CRASH_LIE") != NULL;
    recorder.half = getenv("CRASH_KILL_HALF") != NULL;
    recorder.no_reads = getenv("CRASH_NO_READS");
    recorder.fail_sync = getenv("CRASH_FAIL_SYNC");
    recorder.first = getenv("CRASH_FIRST") != NULL;
    const char *kill_at = getenv("CRASH_KILL_AT");
    recorder.kill_at = kill_at ? strtoull(kill_at, NULL, 10) : 0;
    const char *log = getenv("CRASH_LOG");
    if (log) {
        struct stat sb;
        recorder.fd = open(log, O_RDWR | O_CLOEXEC);
        if (recorder.fd < 0 || fstat(recorder.fd, &sb) != 0)
            die("cannot open %s: %s", log, strerror(errno));
        recorder.capacity = (size_t)sb.st_size;
        recorder.log = mmap(NULL, recorder.capacity, PROT_READ | PROT_WRITE, MAP_SHARED, recorder.fd, 0);
        if (recorder.log == MAP_FAILED)
            die("cannot map %s: %s", log, strerror(errno));
    }
    recorder.on = true;
}

/* ---- what is ours ---- */

/* The name of a path within the folder, or NULL when it is elsewhere or of no concern. */
static const char *name_of(const char *path)
{
    if (!recorder.on || strncmp(path, recorder.folder, recorder.folder_len) != 0 ||
        path[recorder.folder_len] != '/')
        return NULL;
    const char *name = path + recorder.folder_len + 1;
    size_t n = strlen(name);
    if (n >= 4 && strcmp(name + n - 4, "-shm") == 0)
        return NULL;
    if (strchr(name, '/'))
        die("%s is in a folder within the folder", path);
    return name;
}

static uint64_t file_of(int fd)
{
    return fd >= 0 && fd < MAX_FDS ? atomic_load(&open_files[fd]) : 0;
}

static void remember(int fd, uint64_t file)
{
    if (fd >= MAX_FDS)
        die("descriptor %d is too large", fd);
    atomic_store(&open_files[fd], file);
}

/* ---- recording ---- */

/* From here to leave() nobody else changes a recorded file. errno is kept by both. */
static void enter(void)
{
    int e = errno;
    pthread_mutex_lock(&recorder.lock);
    while (recorder.fd >= 0 && flock(recorder.fd, LOCK_EX) != 0)
        if (errno != EINTR)
            die("cannot lock the log: %s", strerror(errno));
    errno = e;
}

static void leave(void)
{
    int e = errno;
    if (recorder.fd >= 0)
        flock(recorder.fd, LOCK_UN);
    pthread_mutex_unlock(&recorder.lock);
    errno = e;
}

/* Where the process dies when its time has come. Returns false when the call should be done by half before.
 */
static bool survive(bool can_be_half)
{
    bool now = ++recorder.calls == recorder.kill_at;
    if (now && can_be_half && recorder.half)
        return false;
    if (now)
        kill(getpid(), SIGKILL);
    return true;
}

/* Adds an entry whose payload comes in two parts; returns its position. */
static uint64_t record(enum recording_kind kind, uint64_t file, uint64_t offset, const void *a, size_t na,
                       const void *b, size_t nb)
{
    if (recorder.fd < 0)
        return 0;
    struct recording_header *h = (struct recording_header *)(void *)recorder.log;
    uint64_t bytes = atomic_load(&h->bytes), count = atomic_load(&h->count);
    uint64_t size = recording_size(na + nb);
    if (RECORDING_HEADER + bytes + size > recorder.capacity)
        die("the recording is full");
    struct recording_entry *e = (struct recording_entry *)(void *)(recorder.log + RECORDING_HEADER + bytes);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    e->kind = kind;
    e->file = file;
    e->offset = offset;
    e->length = na + nb;
    e->time_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (na)
        memcpy(e->payload, a, na);
    if (nb)
        memcpy(e->payload + na, b, nb);
    atomic_store(&h->bytes, bytes + size);
    atomic_store(&h->count, count + 1);
    return count;
}

static void record_name(enum recording_kind kind, uint64_t file, const char *name)
{
    record(kind, file, 0, name, strlen(name), NULL, 0);
}

/* ---- the calls: names ---- */

/* What to do with a file that was opened as `name`. Called between enter() and leave(). */
static void opened(int fd, const char *name, int flags, bool was_there, uint64_t old_size)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0)
        die("cannot stat %s", name);
    remember(fd, sb.st_ino);
    record_name(was_there ? RECORDING_OPENED : RECORDING_CREATED, sb.st_ino, name);
    if (was_there && (flags & O_TRUNC) && old_size > 0)
        record(RECORDING_TRUNCATED, sb.st_ino, 0, NULL, 0, NULL, 0);
}

static int open_any(int (*next)(const char *, int, ...), const char *path, int flags, mode_t mode)
{
    const char *name = name_of(path);
    if (!name) {
        int fd = next(path, flags, mode);
        if (fd >= 0 && recorder.on && strcmp(path, recorder.folder) == 0)
            remember(fd, RECORDING_FOLDER);
        return fd;
    }
    enter();
    struct stat sb;
    bool was_there = stat(path, &sb) == 0;
    if ((flags & O_CREAT && !was_there) || flags & O_TRUNC)
        survive(false);
    int fd = next(path, flags, mode);
    if (fd >= 0)
        opened(fd, name, flags, was_there, was_there ? (uint64_t)sb.st_size : 0);
    leave();
    return fd;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    NEXT(open);
    return open_any(next, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = mode_of(flags, args);
    va_end(args);
    NEXT(open64);
    return open_any(next, path, flags, mode);
}

int close(int fd)
{
    NEXT(close);
    if (file_of(fd))
        remember(fd, 0);
    return next(fd);
}

int unlink(const char *path)
{
    NEXT(unlink);
    const char *name = name_of(path);
    if (!name)
        return next(path);
    enter();
    survive(false);
    int rc = next(path);
    if (rc == 0)
        record_name(RECORDING_UNLINKED, 0, name);
    leave();
    return rc;
}

int rename(const char *old, const char *new)
{
    NEXT(rename);
    const char *from = name_of(old), *to = name_of(new);
    if (!from && !to)
        return next(old, new);
    if (!from || !to)
        die("%s is renamed to %s, across the border of the folder", old, new);
    enter();
    survive(false);
    int rc = next(old, new);
    if (rc == 0)
        record(RECORDING_RENAMED, 0, strlen(from), from, strlen(from), to, strlen(to));
    leave();
    return rc;
}

/* ---- the calls: data ---- */

static ssize_t read_at(ssize_t (*next)(int, void *, size_t, off_t), int fd, void *data, size_t n,
                       off_t offset)
{
    bool fails = !recorder.first || gettid() == getpid();
    if (recorder.no_reads && file_of(fd) && fails && access(recorder.no_reads, F_OK) == 0) {
        errno = ETIMEDOUT; /* EIO is damage to SQLite */
        return -1;
    }
    return next(fd, data, n, offset);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
    NEXT(pread);
    return read_at(next, fd, data, n, offset);
}

ssize_t pread64(int fd, void *data, size_t n, off_t offset)
{
    NEXT(pread64);
    return read_at(next, fd, data, n, offset);
}

static ssize_t write_at(ssize_t (*next)(int, const void *, size_t, off_t), int fd, const void *data, size_t n,
                        off_t offset)
{
    uint64_t file = file_of(fd);
    if (!file)
        return next(fd, data, n, offset);
    enter();
    bool alive = survive(true);
    ssize_t done = next(fd, data, alive ? n : n / 2, offset);
    if (!alive)
        kill(getpid(), SIGKILL);
    if (done > 0)
        record(RECORDING_WRITTEN, file, (uint64_t)offset, data, (size_t)done, NULL, 0);
    leave();
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    NEXT(pwrite);
    return write_at(next, fd, data, n, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t offset)
{
    NEXT(pwrite64);
    return write_at(next, fd, data, n, offset);
}

/* One write of all pieces. */
static ssize_t write_pieces(int fd, const struct iovec *v, int n, off_t offset)
{
    NEXT(pwrite);
    size_t all = 0, at = 0;
    for (int i = 0; i < n; i++)
        all += v[i].iov_len;
    unsigned char *data = malloc(all + 1);
    if (!data)
        die("no memory for a write of %zu bytes", all);
    for (int i = 0; i < n; at += v[i++].iov_len)
        if (v[i].iov_len)
            memcpy(data + at, v[i].iov_base, v[i].iov_len);
    ssize_t done = write_at(next, fd, data, all, offset);
    int e = errno;
    free(data);
    errno = e;
    return done;
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t offset)
{
    NEXT(pwritev);
    return file_of(fd) ? write_pieces(fd, v, n, offset) : next(fd, v, n, offset);
}

ssize_t pwritev64(int fd, const struct iovec *v, int n, off_t offset)
{
    NEXT(pwritev64);
    return file_of(fd) ? write_pieces(fd, v, n, offset) : next(fd, v, n, offset);
}

ssize_t write(int fd, const void *data, size_t n)
{
    NEXT(write);
    uint64_t file = file_of(fd);
    if (!file)
        return next(fd, data, n);
    enter();
    survive(false);
    bool append = fcntl(fd, F_GETFL) & O_APPEND;
    off_t offset = lseek(fd, 0, append ? SEEK_END : SEEK_CUR);
    ssize_t done = next(fd, data, n);
    if (done > 0)
        record(RECORDING_WRITTEN, file, (uint64_t)offset, data, (size_t)done, NULL, 0);
    leave();
    return done;
}

static int truncate_any(int (*next)(int, off_t), int fd, off_t size)
{
    uint64_t file = file_of(fd);
    if (!file)
        return next(fd, size);
    enter();
    survive(false);
    int rc = next(fd, size);
    if (rc == 0)
        record(RECORDING_TRUNCATED, file, (uint64_t)size, NULL, 0, NULL, 0);
    leave();
    return rc;
}

int ftruncate(int fd, off_t size)
{
    NEXT(ftruncate);
    return truncate_any(next, fd, size);
}

int ftruncate64(int fd, off_t size)
{
    NEXT(ftruncate64);
    return truncate_any(next, fd, size);
}

/* Whether the syncs of that file fail now. */
static bool fails_to_sync(int fd)
{
    char link[64], path[PATH_MAX], begin[256];
    int flag = recorder.fail_sync ? openat(AT_FDCWD, recorder.fail_sync, O_RDONLY | O_CLOEXEC) : -1;
    if (flag < 0)
        return false;
    ssize_t n = read(flag, begin, sizeof begin);
    close(flag);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (n < 0 || length < 0)
        return true;
    path[length] = '\0';
    const char *name = name_of(path);
    return !name || strncmp(name, begin, (size_t)n) == 0;
}

static int sync_any(int (*next)(int), int fd)
{
    uint64_t file = file_of(fd);
    if (!file)
        return next(fd);
    if (fails_to_sync(fd)) {
        errno = EIO;
        return -1;
    }
    enter();
    survive(false);
    uint64_t begin = recorder.lie ? 0 : record(RECORDING_SYNCING, file, 0, NULL, 0, NULL, 0);
    leave();
    if (recorder.lie)
        return 0;
    int rc = next(fd);
    if (rc == 0) {
        enter();
        record(RECORDING_SYNCED, file, begin, NULL, 0, NULL, 0);
        leave();
    }
    return rc;
}

int fsync(int fd)
{
    NEXT(fsync);
    return sync_any(next, fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    return sync_any(next, fd);
}

/* ---- which file it is ---- */

int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict ret)
{
    NEXT(statx);
    int rc = next(dir, path, flags, mask, ret);
    if (rc == 0 && name_of(path)) {
        ret->stx_ino = 1;
        ret->stx_mask &= ~STATX_BTIME;
    }
    return rc;
}

/* ---- the calls that are not recorded ---- */

static void refuse(int fd, const char *call)
{
    if (file_of(fd))
        die("%s on a file of %s is not recorded", call, recorder.folder);
}

/* A call that is passed on unless it is about one of our files. */
#define REFUSED(type, name, parameters, arguments)                                                           \
    type name parameters                                                                                     \
    {                                                                                                        \
        NEXT(name);                                                                                          \
        refuse(fd, #name);                                                                                   \
        return next arguments;                                                                               \
    }

REFUSED(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
REFUSED(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int flags), (fd, v, n, at, flags))
REFUSED(ssize_t, pwritev64v2, (int fd, const struct iovec *v, int n, off_t at, int flags),
        (fd, v, n, at, flags))
REFUSED(int, fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
REFUSED(int, fallocate64, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n))
REFUSED(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
REFUSED(int, posix_fallocate64, (int fd, off_t at, off_t n), (fd, at, n))

static void refuse_mapping(int fd, int protection, int flags)
{
    if (!(flags & MAP_ANONYMOUS) && (flags & MAP_SHARED) && (protection & PROT_WRITE))
        refuse(fd, "a mapping for writing");
}

void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    refuse_mapping(fd, protection, flags);
    return next(address, n, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap64);
    refuse_mapping(fd, protection, flags);
    return next(address, n, protection, flags, fd, offset);
}
