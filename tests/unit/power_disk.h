/* A disk in memory that loses power: struct redo_files over files of which it is known what is synced.

   What a crash leaves: of a file's sectors that were written since its last sync any may have got there or
   not, each for itself (512 or 4,096 bytes); its size is the synced one or a later one; of the folder's names
   that changed since its last sync each is as before or as now, for itself, so that a file that was renamed
   may have both names or none. A sync that fails leaves some sectors written and forgets the others, or some
   of the folder's names as they are now. */
#ifndef LARDER_TESTS_POWER_DISK_H
#define LARDER_TESTS_POWER_DISK_H

#include <errno.h>
#include <stdint.h>

#include "base/rand.h"
#include "check.h"
#include "redo/redo_internal.h"

#define SECTOR    512
#define FILE_MOST 65536
#define SECTORS   (FILE_MOST / SECTOR)
#define FILES     48
#define NAMES     96

struct sim_file {
    int opened;
    size_t size, safe_size;
    bool dirty[SECTORS];
    unsigned char now[FILE_MOST], safe[FILE_MOST];
};

struct sim_name {
    char name[32];
    int now, safe; /* the file that it leads to; -1: none */
};

struct sim_disk {
    struct sim_file files[FILES];
    struct sim_name names[NAMES];
    int n;
};

/* One in so many calls fails; 0: none. */
struct sim_failures {
    int sync, write, folder, make, rename, unlink;
};

enum sim_left_out { ALL_SYNCED, NO_RECORD_SYNC, NO_HEAD_SYNC, NO_FOLDER_SYNC, SYNC_FORGIVEN };

static struct sim_disk sim_real;
static struct {
    struct sim_disk *disk;
    struct rand dice;
    int calls, dies_at; /* from that call on the power is off; 0: never */
    struct sim_failures fails;
    enum sim_left_out left_out;
    void (*behind)(void); /* called behind each call of the disk in use */
} sim;

static int sim_roll(int n)
{
    return (int)rand_below(&sim.dice, (uint64_t)n);
}

/* Whether a call fails of which one in so many does. */
static bool sim_fails(int one_in, int e)
{
    if (one_in == 0 || sim_roll(one_in) != 0)
        return false;
    errno = e;
    return true;
}

/* Whether the power is on for another call that changes something. */
static bool sim_is_on(void)
{
    if (sim.disk != &sim_real)
        return true;
    if (sim.dies_at && ++sim.calls >= sim.dies_at) {
        errno = EIO;
        return false;
    }
    return true;
}

static void sim_done(void)
{
    if (sim.disk == &sim_real && sim.behind && !(sim.dies_at && sim.calls >= sim.dies_at))
        sim.behind();
}

static const char *sim_base(const char *path)
{
    return strrchr(path, '/') + 1;
}

static struct sim_name *sim_find(const char *path, bool add)
{
    struct sim_disk *d = sim.disk;
    struct sim_name *unused = NULL;
    for (int i = 0; i < d->n; i++) {
        if (strcmp(d->names[i].name, sim_base(path)) == 0)
            return &d->names[i];
        if (d->names[i].now < 0 && d->names[i].safe < 0)
            unused = &d->names[i];
    }
    if (!add)
        return NULL;
    if (!unused && d->n < NAMES)
        unused = &d->names[d->n++];
    if (!unused)
        abort();
    snprintf(unused->name, sizeof unused->name, "%s", sim_base(path));
    unused->now = unused->safe = -1;
    return unused;
}

static int sim_unused_file(void)
{
    struct sim_disk *d = sim.disk;
    bool used[FILES] = {false};
    for (int i = 0; i < d->n; i++) {
        if (d->names[i].now >= 0)
            used[d->names[i].now] = true;
        if (d->names[i].safe >= 0)
            used[d->names[i].safe] = true;
    }
    for (int i = 0; i < FILES; i++)
        if (!used[i] && !d->files[i].opened)
            return i;
    abort();
}

static int sim_open(const char *path, enum redo_open_mode mode)
{
    if (mode != REDO_OPEN_READ && !sim_is_on())
        return -1;
    struct sim_name *name = sim_find(path, mode == REDO_OPEN_MAKE);
    if (!name || (name->now < 0 && mode != REDO_OPEN_MAKE)) {
        errno = ENOENT;
        return -1;
    }
    if (mode == REDO_OPEN_MAKE && name->now >= 0) {
        errno = EEXIST;
        return -1;
    }
    if (mode == REDO_OPEN_MAKE && sim_fails(sim.fails.make, ENOSPC))
        return -1;
    if (name->now < 0) {
        name->now = sim_unused_file();
        struct sim_file *f = &sim.disk->files[name->now];
        f->size = f->safe_size = 0;
        memset(f->dirty, 0, sizeof f->dirty);
    }
    int fd = name->now;
    sim.disk->files[fd].opened++;
    return fd;
}

static void sim_close(int fd)
{
    sim.disk->files[fd].opened--;
}

static ssize_t sim_read(int fd, void *p, size_t n, uint64_t at)
{
    struct sim_file *f = &sim.disk->files[fd];
    if (at >= f->size)
        return 0;
    if (n > f->size - at)
        n = f->size - at;
    memcpy(p, f->now + at, n);
    return (ssize_t)n;
}

static ssize_t sim_write(int fd, const struct iovec *v, int n, uint64_t at)
{
    if (!sim_is_on())
        return -1;
    struct sim_file *f = &sim.disk->files[fd];
    size_t most = SIZE_MAX, done = 0;
    if (sim_fails(sim.fails.write, ENOSPC)) {
        most = (size_t)sim_roll(3) * 700;
        if (most == 0)
            return -1;
    }
    for (int i = 0; i < n && done < most; i++) {
        size_t k = v[i].iov_len < most - done ? v[i].iov_len : most - done;
        if (at + done + k > FILE_MOST)
            abort();
        memcpy(f->now + at + done, v[i].iov_base, k);
        done += k;
    }
    for (size_t s = at / SECTOR; s < (at + done + SECTOR - 1) / SECTOR; s++)
        f->dirty[s] = true;
    if (at + done > f->size)
        f->size = at + done;
    sim_done();
    return (ssize_t)done;
}

/* Sectors get to the disk, or do not, in units of so many: `all` of them, or each by chance. */
static void sim_settle(const struct sim_file *f, unsigned char *to, size_t unit, int chance)
{
    size_t each = unit / SECTOR;
    for (size_t s = 0; s < (f->size + SECTOR - 1) / SECTOR; s += each) {
        bool any = false;
        for (size_t i = s; i < s + each && !any; i++)
            any = f->dirty[i];
        if (!any || (chance < 100 && sim_roll(100) >= chance))
            continue;
        for (size_t i = s; i < s + each; i++)
            if (f->dirty[i])
                memcpy(to + i * SECTOR, f->now + i * SECTOR, SECTOR);
    }
}

static bool sim_is_left_out(const struct sim_file *f)
{
    bool head = f->dirty[0];
    return sim.left_out == NO_HEAD_SYNC ? head : sim.left_out == NO_RECORD_SYNC ? !head : false;
}

static int sim_sync(int fd)
{
    if (!sim_is_on())
        return -1;
    struct sim_file *f = &sim.disk->files[fd];
    if (sim_is_left_out(f))
        return 0;
    bool fails = sim_fails(sim.fails.sync, EIO);
    if (fails && sim.left_out == SYNC_FORGIVEN) {
        fails = false; /* the system forgets what it could not write, and the log is not told */
        sim_settle(f, f->safe, SECTOR, 50);
    } else {
        sim_settle(f, f->safe, SECTOR, fails ? 50 : 100);
    }
    memset(f->dirty, 0, sizeof f->dirty);
    if (f->size > f->safe_size)
        f->safe_size = f->size;
    sim_done();
    errno = EIO;
    return fails ? -1 : 0;
}

static void sim_fill_stat(int fd, struct redo_stat *ret)
{
    *ret = (struct redo_stat){.size = sim.disk->files[fd].size, .links = 1, .inode = (uint64_t)fd + 1};
}

static int sim_stat(int fd, struct redo_stat *ret)
{
    sim_fill_stat(fd, ret);
    return 0;
}

static int sim_stat_name(const char *path, struct redo_stat *ret)
{
    struct sim_name *name = sim_find(path, false);
    errno = ENOENT;
    if (!name || name->now < 0)
        return -1;
    sim_fill_stat(name->now, ret);
    return 0;
}

static int sim_rename(const char *from, const char *to)
{
    if (!sim_is_on())
        return -1;
    if (sim_fails(sim.fails.rename, EIO))
        return -1;
    struct sim_name *new = sim_find(to, true), *old = sim_find(from, false);
    if (new->now != old->now) { /* else nothing is done, as POSIX has it */
        new->now = old->now;
        old->now = -1;
    }
    sim_done();
    return 0;
}

static int sim_unlink(const char *path)
{
    if (!sim_is_on())
        return -1;
    if (sim_fails(sim.fails.unlink, EIO))
        return -1;
    struct sim_name *name = sim_find(path, false);
    errno = ENOENT;
    if (!name || name->now < 0)
        return -1;
    name->now = -1;
    sim_done();
    return 0;
}

static int sim_sync_folder(const char *path)
{
    (void)path;
    if (!sim_is_on())
        return -1;
    bool fails = sim_fails(sim.fails.folder, EIO);
    for (int i = 0; sim.left_out != NO_FOLDER_SYNC && i < sim.disk->n; i++)
        if (!fails || sim_roll(2))
            sim.disk->names[i].safe = sim.disk->names[i].now;
    sim_done();
    errno = EIO;
    return fails ? -1 : 0;
}

static int sim_list(const char *path, redo_name_fn *fn, void *arg)
{
    (void)path;
    for (int i = 0; i < sim.disk->n; i++) {
        char name[32];
        strcpy(name, sim.disk->names[i].name); /* fn may remove it */
        if (sim.disk->names[i].now >= 0)
            fn(arg, name);
    }
    return 0;
}

static const struct redo_files sim_files = {
    .open = sim_open,
    .close = sim_close,
    .read = sim_read,
    .write = sim_write,
    .sync = sim_sync,
    .stat = sim_stat,
    .stat_name = sim_stat_name,
    .rename = sim_rename,
    .unlink = sim_unlink,
    .sync_folder = sim_sync_folder,
    .list = sim_list,
};

/* What is on the disk when the power comes back, on another disk: only files that have a name then. */
static inline void sim_lose_power(const struct sim_disk *from, struct sim_disk *to)
{
    static const int chances[] = {0, 100, 50, 15, 85};
    int names = chances[sim_roll(5)], sectors = chances[sim_roll(5)];
    size_t unit = sim_roll(2) ? SECTOR : REDO_BLOCK;
    bool named[FILES] = {false};
    to->n = from->n;
    for (int i = 0; i < from->n; i++) {
        to->names[i] = from->names[i];
        if (from->names[i].now != from->names[i].safe && sim_roll(100) >= names)
            to->names[i].now = from->names[i].safe;
        to->names[i].safe = to->names[i].now;
        if (to->names[i].now >= 0)
            named[to->names[i].now] = true;
    }
    for (int i = 0; i < FILES; i++) {
        struct sim_file *t = &to->files[i];
        t->opened = 0;
        if (!named[i])
            continue;
        const struct sim_file *f = &from->files[i];
        t->size = f->size != f->safe_size && sim_roll(2) ? f->safe_size : f->size;
        memset(t->now, 0, f->size);
        memcpy(t->now, f->safe, f->safe_size < t->size ? f->safe_size : t->size);
        sim_settle(f, t->now, unit, sectors);
        memcpy(t->safe, t->now, t->size);
        t->safe_size = t->size;
        memset(t->dirty, 0, sizeof t->dirty);
    }
}

#endif
