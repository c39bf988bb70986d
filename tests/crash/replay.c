/* What is on the disk when the power fails: makes it from a recording (recording.h).

     replay RECORDING [BASE]      BASE: a folder with the files that were there when the recording began

   reads lines from standard input, each a crash in the order of their positions,

     POSITION VARIANT SEED FOLDER

   makes the files in FOLDER, which is there and empty, and answers each line with "ok" and how many calls
   were not synced. One pass over the recording serves any number of crashes.

   The model. The system holds what was written in its cache; a sync that has ended has put on the disk what
   was called for before it began. Of everything else a crash leaves any part:

     - The disk takes sectors of 512 bytes. A sector has the contents that the cache had for it at some moment
       since the last sync, or what was there before. So writes may be lost, be torn, or come in another
   order, but no sector is half written.
     - A file's size is kept apart from its data: a file that grew may have its new size and zeros, or the old
   size and nothing of the data. Changes of the size reach the disk in their order, and data that is written
   where a file was cut off only after the cut.
     - Names are lost or kept one by one until the folder is synced, even the name of a file that was synced
   itself.

   VARIANT chooses the part: none, all, not-last (all but the last write), only-last, earlier (all, up to some
   earlier moment), sizes (no data, but the new sizes), random. */
#include "recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR    512
#define MAX_FILES 256
#define MAX_NAMES 16

enum variant { NONE, ALL, NOT_LAST, ONLY_LAST, EARLIER, SIZES, RANDOM, VARIANTS };

static const char *const variant_names[VARIANTS] = {"none",    "all",   "not-last", "only-last",
                                                    "earlier", "sizes", "random"};

struct image {
    unsigned char *p; /* zeros from size on */
    uint64_t size, cap;
};

struct file {
    uint64_t inode;     /* 0: not opened yet */
    struct image disk;  /* what is there for sure */
    uint64_t *unsynced; /* positions of the calls that changed it since */
    size_t n, cap;
};

struct name {
    char text[64]; /* empty: not in use */
    struct file *file;
};

struct step {
    const struct recording_entry *entry;
    struct file *file; /* that was created here */
};

/* The disk after the first `at` entries. */
struct disk {
    struct step *steps;
    uint64_t count, at;
    struct file *files[MAX_FILES];
    size_t nfiles;
    struct name names[MAX_NAMES]; /* that are there for sure */
    uint64_t *unsynced;           /* positions of the calls that changed names since */
    size_t n, cap;
};

struct crash {
    enum variant variant;
    uint64_t seed;    /* state of the random numbers */
    uint64_t last;    /* position of the last unsynced call that changed a file */
    uint64_t earlier; /* the moment up to which everything is there */
    unsigned keep, tear;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("replay: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void *grow(void *p, size_t n)
{
    void *q = realloc(p, n);
    if (!q)
        die("out of memory");
    return q;
}

static void push(uint64_t **items, size_t *n, size_t *cap, uint64_t item)
{
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 64;
        *items = grow(*items, *cap * sizeof **items);
    }
    (*items)[(*n)++] = item;
}

/* splitmix64 */
static uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static bool chance(uint64_t *seed, unsigned percent)
{
    return draw(seed) % 100 < percent;
}

/* ---- images ---- */

static void resize(struct image *m, uint64_t size)
{
    if (size > m->cap) {
        uint64_t cap = size + size / 2;
        m->p = grow(m->p, cap);
        memset(m->p + m->cap, 0, cap - m->cap);
        m->cap = cap;
    }
    if (size < m->size)
        memset(m->p + size, 0, m->size - size);
    m->size = size;
}

static void apply(struct image *m, const struct recording_entry *e)
{
    if (e->kind == RECORDING_TRUNCATED) {
        resize(m, e->offset);
        return;
    }
    if (e->offset + e->length > m->size)
        resize(m, e->offset + e->length);
    memcpy(m->p + e->offset, e->payload, e->length);
}

static struct image copy_of(const struct image *m)
{
    struct image c = {0};
    resize(&c, m->size);
    if (m->size)
        memcpy(c.p, m->p, m->size);
    return c;
}

static void load(struct image *m, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDONLY);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0)
        die("%s was there before the recording: %s", path, strerror(errno));
    resize(m, (uint64_t)sb.st_size);
    for (uint64_t at = 0; at < m->size;) {
        ssize_t got = read(fd, m->p + at, m->size - at);
        if (got <= 0)
            die("cannot read %s", path);
        at += (uint64_t)got;
    }
    close(fd);
}

static void save(const struct image *m, uint64_t size, const char *folder, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
    if (fd < 0)
        die("cannot make %s: %s", path, strerror(errno));
    for (uint64_t at = 0; at < size;) {
        ssize_t done = write(fd, m->p + at, size - at);
        if (done <= 0)
            die("cannot write %s: %s", path, strerror(errno));
        at += (uint64_t)done;
    }
    close(fd);
}

/* ---- what is synced ---- */

/* The newest file of that number, or NULL. */
static struct file *find_file(const struct disk *d, uint64_t inode)
{
    for (size_t i = d->nfiles; i > 0; i--)
        if (d->files[i - 1]->inode == inode)
            return d->files[i - 1];
    return NULL;
}

static struct file *new_file(struct disk *d, uint64_t inode)
{
    if (d->nfiles == MAX_FILES)
        die("too many files");
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        die("out of memory");
    f->inode = inode;
    d->files[d->nfiles++] = f;
    return f;
}

/* The place of a name: where it is, or where it may be put. */
static struct name *place(struct name *names, const unsigned char *text, uint64_t n)
{
    struct name *free_place = NULL;
    for (struct name *at = names; at < names + MAX_NAMES; at++) {
        if (at->text[0] == 0)
            free_place = free_place ? free_place : at;
        else if (strlen(at->text) == n && memcmp(at->text, text, n) == 0)
            return at;
    }
    if (!free_place || n >= sizeof free_place->text)
        die("too many names, or one too long");
    return free_place;
}

static void set_name(struct name *names, const unsigned char *text, uint64_t n, struct file *file)
{
    struct name *at = place(names, text, n);
    memcpy(at->text, text, n);
    at->text[file ? n : 0] = 0;
    at->file = file;
}

static void apply_name(struct name *names, const struct step *s)
{
    const struct recording_entry *e = s->entry;
    if (e->kind == RECORDING_RENAMED) {
        struct file *file = place(names, e->payload, e->offset)->file;
        set_name(names, e->payload, e->offset, NULL);
        if (file) /* else the file's creation is lost, and so is this */
            set_name(names, e->payload + e->offset, e->length - e->offset, file);
    } else {
        set_name(names, e->payload, e->length, s->file);
    }
}

/* Files that were there before the recording: their numbers are known when they are opened. */
static void load_base(struct disk *d, const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        die("cannot open %s: %s", folder, strerror(errno));
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        struct file *f = new_file(d, 0);
        load(&f->disk, folder, entry->d_name);
        set_name(d->names, (const unsigned char *)entry->d_name, strlen(entry->d_name), f);
    }
    closedir(dir);
}

static void was_there(struct disk *d, const struct recording_entry *e)
{
    if (find_file(d, e->file))
        return;
    struct file *f = place(d->names, e->payload, e->length)->file;
    if (!f || f->inode != 0)
        die("%.*s was there before the recording", (int)e->length, (const char *)e->payload);
    f->inode = e->file;
}

/* What came before position `begin` is on the disk from now on. */
static void synced(struct disk *d, uint64_t inode, uint64_t begin)
{
    struct file *f = inode == RECORDING_FOLDER ? NULL : find_file(d, inode);
    uint64_t *items = f ? f->unsynced : d->unsynced;
    size_t *n = f ? &f->n : &d->n, done = 0;
    for (; done < *n && items[done] < begin; done++) {
        if (f)
            apply(&f->disk, d->steps[items[done]].entry);
        else
            apply_name(d->names, &d->steps[items[done]]);
    }
    *n -= done;
    if (done && *n)
        memmove(items, items + done, *n * sizeof *items);
}

static void advance(struct disk *d, uint64_t to)
{
    for (; d->at < to; d->at++) {
        struct step *s = &d->steps[d->at];
        const struct recording_entry *e = s->entry;
        struct file *f;
        switch (e->kind) {
        case RECORDING_OPENED:
            was_there(d, e);
            break;
        case RECORDING_CREATED:
            s->file = new_file(d, e->file);
            push(&d->unsynced, &d->n, &d->cap, d->at);
            break;
        case RECORDING_UNLINKED:
        case RECORDING_RENAMED:
            push(&d->unsynced, &d->n, &d->cap, d->at);
            break;
        case RECORDING_WRITTEN:
        case RECORDING_TRUNCATED:
            f = find_file(d, e->file);
            push(&f->unsynced, &f->n, &f->cap, d->at);
            break;
        case RECORDING_SYNCED:
            synced(d, e->file, e->offset);
            break;
        default:
            break;
        }
    }
}

/* ---- what is not ---- */

enum fate { LOST, KEPT, TORN };

static enum fate fate_of(struct crash *c, uint64_t position)
{
    switch (c->variant) {
    case ALL:
        return KEPT;
    case NOT_LAST:
        return position == c->last ? LOST : KEPT;
    case ONLY_LAST:
        return position == c->last ? KEPT : LOST;
    case EARLIER:
        return position < c->earlier ? KEPT : LOST;
    case RANDOM:
        return chance(&c->seed, c->keep) ? KEPT : chance(&c->seed, c->tear) ? TORN : LOST;
    default:
        return LOST;
    }
}

/* Whether the size that a call gave a file is on the disk, too. */
static bool keeps_size(struct crash *c, enum fate fate)
{
    if (c->variant == SIZES)
        return true;
    if (c->variant != RANDOM)
        return fate == KEPT;
    return chance(&c->seed, fate == KEPT ? 80 : 20);
}

/* A file in two places while its unsynced calls are gone through. */
struct writeback {
    struct crash *crash;
    struct image cache; /* with all calls so far */
    struct image disk;  /* as large as the file has ever been; what counts is ... */
    uint64_t size;      /* ... this much of it */
    uint64_t cut;       /* the file was cut here, and the disk does not know; UINT64_MAX: it was not */
};

/* Lets the disk know where the file was cut. */
static void settle(struct writeback *w)
{
    if (w->cut < w->disk.size)
        memset(w->disk.p + w->cut, 0, w->disk.size - w->cut);
    if (w->cut < w->size)
        w->size = w->cut;
    w->cut = UINT64_MAX;
}

static void put_sector(struct writeback *w, uint64_t at)
{
    if (at >= w->cut)
        settle(w);
    uint64_t end = at + SECTOR < w->cache.size ? at + SECTOR : w->cache.size;
    if (end > w->disk.size)
        resize(&w->disk, end);
    memcpy(w->disk.p + at, w->cache.p + at, end - at);
}

static void put_write(struct writeback *w, const struct recording_entry *e, uint64_t position)
{
    enum fate fate = fate_of(w->crash, position);
    bool grows = e->offset + e->length > w->cache.size;
    apply(&w->cache, e);
    /* A write is torn at one place, or into pieces. */
    bool pieces = chance(&w->crash->seed, 50);
    uint64_t begin = e->offset / SECTOR * SECTOR, end = e->offset + e->length;
    uint64_t tear = begin + draw(&w->crash->seed) % ((end - begin) / SECTOR + 1) * SECTOR;
    for (uint64_t at = begin; at < end; at += SECTOR)
        if (fate == KEPT || (fate == TORN && (pieces ? chance(&w->crash->seed, 50) : at < tear)))
            put_sector(w, at);
    if (grows && keeps_size(w->crash, fate)) {
        settle(w);
        if (w->cache.size > w->disk.size)
            resize(&w->disk, w->cache.size);
        w->size = w->cache.size;
    }
}

static void put_truncate(struct writeback *w, const struct recording_entry *e, uint64_t position)
{
    bool keep = keeps_size(w->crash, fate_of(w->crash, position));
    apply(&w->cache, e);
    if (e->offset < w->cut)
        w->cut = e->offset;
    if (keep) {
        settle(w);
        if (w->cache.size > w->disk.size)
            resize(&w->disk, w->cache.size);
        w->size = w->cache.size;
    }
}

static void save_file(const struct disk *d, struct crash *c, const struct file *f, const char *folder,
                      const char *name)
{
    if (f->n == 0) {
        save(&f->disk, f->disk.size, folder, name);
        return;
    }
    struct writeback w = {c, copy_of(&f->disk), copy_of(&f->disk), f->disk.size, UINT64_MAX};
    for (size_t i = 0; i < f->n; i++) {
        const struct recording_entry *e = d->steps[f->unsynced[i]].entry;
        if (e->kind == RECORDING_WRITTEN)
            put_write(&w, e, f->unsynced[i]);
        else
            put_truncate(&w, e, f->unsynced[i]);
    }
    save(&w.disk, w.size, folder, name);
    free(w.cache.p);
    free(w.disk.p);
}

static size_t make_crash(const struct disk *d, enum variant variant, uint64_t seed, const char *folder)
{
    struct crash c = {.variant = variant, .seed = seed};
    uint64_t first = d->at;
    size_t unsynced = d->n;
    for (size_t i = 0; i < d->nfiles; i++) {
        const struct file *f = d->files[i];
        if (f->n == 0)
            continue;
        unsynced += f->n;
        first = f->unsynced[0] < first ? f->unsynced[0] : first;
        c.last = f->unsynced[f->n - 1] > c.last ? f->unsynced[f->n - 1] : c.last;
    }
    c.earlier = first + draw(&c.seed) % (d->at - first + 1);
    c.keep = (unsigned[]){10, 50, 90}[draw(&c.seed) % 3];
    c.tear = (unsigned[]){0, 50, 100}[draw(&c.seed) % 3];

    struct name names[MAX_NAMES];
    memcpy(names, d->names, sizeof names);
    for (size_t i = 0; i < d->n; i++)
        if (fate_of(&c, d->unsynced[i]) == KEPT)
            apply_name(names, &d->steps[d->unsynced[i]]);
    for (const struct name *n = names; n < names + MAX_NAMES; n++)
        if (n->text[0])
            save_file(d, &c, n->file, folder, n->text);
    return unsynced;
}

/* ---- the program ---- */

static void read_recording(struct disk *d, const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat sb;
    if (fd < 0 || fstat(fd, &sb) != 0)
        die("cannot open %s: %s", path, strerror(errno));
    unsigned char *log = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (log == MAP_FAILED)
        die("cannot map %s: %s", path, strerror(errno));
    struct recording_header *h = (struct recording_header *)(void *)log;
    d->count = atomic_load(&h->count);
    d->steps = calloc(d->count + 1, sizeof *d->steps);
    if (!d->steps)
        die("out of memory");
    const unsigned char *at = log + RECORDING_HEADER;
    for (uint64_t i = 0; i < d->count; i++) {
        d->steps[i].entry = (const struct recording_entry *)(const void *)at;
        at += recording_size(d->steps[i].entry->length);
    }
}

static void release(struct disk *d)
{
    for (size_t i = 0; i < d->nfiles; i++) {
        free(d->files[i]->disk.p);
        free(d->files[i]->unsynced);
        free(d->files[i]);
    }
    free(d->unsynced);
    free(d->steps);
}

static enum variant variant_of(const char *text)
{
    for (int i = 0; i < VARIANTS; i++)
        if (strcmp(variant_names[i], text) == 0)
            return (enum variant)i;
    die("no variant is called %s", text);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3)
        die("usage: replay RECORDING [BASE]");
    struct disk d = {0};
    read_recording(&d, argv[1]);
    if (argc > 2)
        load_base(&d, argv[2]);
    char line[PATH_MAX + 128], folder[PATH_MAX], variant[16];
    while (fgets(line, sizeof line, stdin)) {
        uint64_t position, seed;
        if (sscanf(line, "%" SCNu64 " %15s %" SCNu64 " %4095[^\n]", &position, variant, &seed, folder) != 4)
            die("cannot read the line %s", line);
        if (position < d.at || position > d.count)
            die("%" PRIu64 " is not between %" PRIu64 " and %" PRIu64, position, d.at, d.count);
        advance(&d, position);
        printf("ok %zu\n", make_crash(&d, variant_of(variant), seed, folder));
        fflush(stdout);
    }
    release(&d);
    return 0;
}
