/* The calls that a log makes of its files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "redo/redo_internal.h"

/* ---- the system's ---- */

static int open_file(const char *path, enum redo_open_mode mode)
{
    int flags = mode == REDO_OPEN_READ    ? O_RDONLY
                : mode == REDO_OPEN_WRITE ? O_RDWR
                                          : O_RDWR | O_CREAT | O_EXCL;
    int fd = open(path, flags | O_CLOEXEC, 0640);
    if (fd >= 0 && mode == REDO_OPEN_READ) /* all heads are read first: the disk goes ahead of who reads on */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    return fd;
}

static void close_file(int fd)
{
    (void)close(fd);
}

static ssize_t read_file(int fd, void *p, size_t n, uint64_t at)
{
    return pread(fd, p, n, (off_t)at);
}

static ssize_t write_file(int fd, const struct iovec *v, int n, uint64_t at)
{
    return pwritev(fd, v, n, (off_t)at);
}

/* What a signal has interrupted has not failed: nothing was reported, and nothing was forgotten. */
static int sync_file(int fd)
{
    int rc;
    do {
        rc = fdatasync(fd);
    } while (rc != 0 && errno == EINTR);
    return rc;
}

static void fill_stat(const struct stat *sb, struct redo_stat *ret)
{
    *ret = (struct redo_stat){
        .size = (uint64_t)sb->st_size, .links = sb->st_nlink, .inode = sb->st_ino, .device = sb->st_dev};
}

static int stat_file(int fd, struct redo_stat *ret)
{
    struct stat sb;
    int rc = fstat(fd, &sb);
    if (rc == 0)
        fill_stat(&sb, ret);
    return rc;
}

static int stat_name(const char *path, struct redo_stat *ret)
{
    struct stat sb;
    int rc = stat(path, &sb);
    if (rc == 0)
        fill_stat(&sb, ret);
    return rc;
}

/* The folder that a file is in; mem_free. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return mem_strdup(".");
    return slash == path ? mem_strdup("/") : mem_strndup(slice_of(path, (size_t)(slash - path)));
}

static int sync_folder(const char *path)
{
    char *folder = folder_of(path);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mem_free(folder);
    if (fd < 0)
        return -1;
    int rc;
    do {
        rc = fsync(fd);
    } while (rc != 0 && errno == EINTR);
    int e = errno;
    (void)close(fd);
    errno = e;
    return rc;
}

static int list_folder(const char *path, redo_name_fn *fn, void *arg)
{
    char *folder = folder_of(path);
    DIR *d = opendir(folder);
    mem_free(folder);
    if (!d)
        return -1;
    for (struct dirent *entry; errno = 0, entry = readdir(d);) /* fn may have set errno */
        fn(arg, entry->d_name);
    int e = errno;
    (void)closedir(d);
    errno = e;
    return e ? -1 : 0;
}

static const struct redo_files system_files = {
    .open = open_file,
    .close = close_file,
    .read = read_file,
    .write = write_file,
    .sync = sync_file,
    .stat = stat_file,
    .stat_name = stat_name,
    .rename = rename,
    .unlink = unlink,
    .sync_folder = sync_folder,
    .list = list_folder,
};

const struct redo_files *redo_files = &system_files;

/* ---- on top of them ---- */

enum status redo_fail(int e, const char *what, const char *path, struct error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (e == ENOSPC || e == EDQUOT || e == EFBIG)
        return error_set(err, ST_FULL, "no space left for the database: cannot %s %s (%s)", what, name,
                         strerror(e));
    if (e == EROFS)
        return error_set(err, ST_READONLY, "the database cannot be written: cannot %s %s (%s)", what, name,
                         strerror(e));
    if (e == EACCES || e == EPERM)
        return error_set(err, ST_DENIED, "no permission to use the database's files: cannot %s %s (%s)", what,
                         name, strerror(e));
    return error_set(err, ST_IO, "reading or writing the database failed: cannot %s %s (%s)", what, name,
                     strerror(e));
}

enum status redo_file_read(int fd, const char *path, void *p, size_t n, uint64_t at, size_t *ret_n,
                           struct error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = redo_files->read(fd, (char *)p + done, n - done, at + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return redo_fail(errno, "read", path, err);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_n = done;
    return ST_OK;
}

int redo_file_write(int fd, struct iovec *v, int n, uint64_t at, uint64_t *ret_n)
{
    *ret_n = 0;
    while (n > 0) {
        ssize_t done = redo_files->write(fd, v, n, at + *ret_n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        *ret_n += (uint64_t)done;
        size_t left = (size_t)done;
        for (; n > 0 && left >= v->iov_len; v++, n--)
            left -= v->iov_len;
        if (n > 0) {
            v->iov_base = (char *)v->iov_base + left;
            v->iov_len -= left;
            if (done == 0)
                return EIO; /* a disk that takes nothing */
        }
    }
    return 0;
}

enum status redo_folder_sync(const char *path, struct error *err)
{
    return redo_files->sync_folder(path) == 0 ? ST_OK : redo_fail(errno, "sync the folder of", path, err);
}
