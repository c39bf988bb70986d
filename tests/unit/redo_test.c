/* The redo log on real files: what was appended is read again; what was damaged, taken away or failed is
 * told. */
#include "redo/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "redo/redo_internal.h"

#define SMALL (16 * REDO_BLOCK) /* bytes of a segment */

static char folder[64], path[80];
static struct error err;

static struct redo_id id_of(unsigned char n)
{
    struct redo_id id = {{n, 1, 2, 3}};
    return id;
}

static struct redo *open_log(unsigned char id, unsigned char old, int64_t from, int64_t tables)
{
    struct redo_options o = {.path = path,
                             .id = id_of(id),
                             .old = id_of(old),
                             .from = from,
                             .tables = tables,
                             .segment_bytes = SMALL,
                             .keep_bytes = 8 * SMALL};
    struct redo *r = NULL;
    CHECK_OK(redo_open(&o, &r, &err), &err);
    return r;
}

/* A payload that its number and length tell. */
static struct slice payload_of(int64_t seq, size_t n)
{
    static struct buf b;
    b.len = 0;
    char *p = buf_reserve(&b, n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(seq * 31 + (int64_t)(i * 7));
    return slice_of(p, n);
}

static enum status put(struct redo *r, int64_t seq, size_t n, bool sync)
{
    return redo_append(r, REDO_GROUP, seq, payload_of(seq, n), sync, &err);
}

static void put_all(struct redo *r, int64_t first, int64_t last, size_t n)
{
    for (int64_t seq = first; seq <= last; seq++)
        CHECK_OK(put(r, seq, n, true), &err);
}

struct seen {
    int64_t first, last;
    int n, wrong;
};

static enum status see(void *arg, const struct redo_record *rec)
{
    struct seen *s = arg;
    s->first = s->n++ == 0 ? rec->seq : s->first;
    s->wrong += rec->seq <= s->last || !slice_eq(rec->payload, payload_of(rec->seq, rec->payload.n));
    s->last = rec->seq;
    return ST_OK;
}

static struct seen each(unsigned char id, int64_t after, enum status want)
{
    struct seen s = {0};
    struct redo_id i = id_of(id);
    CHECK_EQ(redo_each(path, &i, after, see, &s, &err), want);
    CHECK_EQ(s.wrong, 0);
    return s;
}

static int segments(void)
{
    struct redo_found f;
    CHECK_OK(redo_find(path, NULL, &f, &err), &err);
    return (int)f.segments;
}

static bool is_found(unsigned char id)
{
    struct redo_found f;
    struct redo_id i = id_of(id);
    CHECK_OK(redo_find(path, &i, &f, &err), &err);
    return f.ours;
}

/* Changes a byte of a segment; -1 cuts it there instead. */
static void damage(uint64_t number, off_t at, int by)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(path, number, name);
    int fd = open(name, O_RDWR);
    CHECK(fd >= 0);
    unsigned char c = 0;
    if (by < 0) {
        CHECK_EQ(ftruncate(fd, at), 0);
    } else {
        CHECK_EQ(pread(fd, &c, 1, at), 1);
        c = (unsigned char)(c + by);
        CHECK_EQ(pwrite(fd, &c, 1, at), 1);
    }
    close(fd);
}

static void take_away(uint64_t number)
{
    char name[REDO_NAME_BYTES];
    redo_segment_name(path, number, name);
    CHECK_EQ(unlink(name), 0);
}

static void finish(struct redo *r)
{
    CHECK_OK(redo_close(r, true, &err), &err);
    CHECK_EQ(segments(), 0);
}

static void reads_what_was_appended(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    for (int i = 1; i < 40; i++)
        CHECK_OK(redo_append(r, i % 5 ? REDO_GROUP : REDO_OUTSIZED, i * 10,
                             payload_of(i * 10, (size_t)i * 413), i % 3 == 0, &err),
                 &err);
    struct redo_info info;
    redo_info(r, &info);
    CHECK_EQ(info.durable, 390);
    CHECK(info.bytes == info.appended && info.on_disk > info.bytes);
    CHECK_OK(redo_close(r, false, &err), &err);
    struct seen s = each(1, 0, ST_OK);
    CHECK_EQ(s.n, 39);
    CHECK_EQ(s.last, 390);
    s = each(1, 250, ST_OK);
    CHECK_EQ(s.first, 260);
    CHECK_EQ(each(2, 0, ST_CORRUPT).n, 0);
    struct redo_found f;
    CHECK_OK(redo_find(path, NULL, &f, &err), &err);
    CHECK(f.any && f.segments > 2);
    CHECK_EQ(f.last, 390);
    r = open_log(2, 1, 391, 0);
    put_all(r, 391, 400, 10);
    s = each(2, 0, ST_OK);
    CHECK_EQ(s.n, 49);
    finish(r);
}

static void is_found_by_the_id_before_while_fresh(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 10);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(2, 1, 4, 0);
    struct redo_found f;
    CHECK_OK(redo_find(path, NULL, &f, &err), &err);
    CHECK(memcmp(&f.id, &(struct redo_id){{2, 1, 2, 3}}, 16) == 0 && is_found(1) && is_found(2));
    CHECK_EQ(f.last, 3);
    CHECK_EQ(each(1, 0, ST_OK).n, 3); /* larder_meta has not heard of it */
    CHECK_EQ(each(2, 0, ST_OK).n, 3);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(3, 1, 4, 0); /* the start behind that one */
    CHECK_EQ(segments(), 3);
    CHECK_OK(redo_find(path, NULL, &f, &err), &err);
    CHECK(is_found(1) && is_found(3) && !is_found(7));
    CHECK_EQ(each(1, 0, ST_OK).n, 3);
    CHECK_EQ(each(3, 0, ST_OK).n, 3);
    put_all(r, 4, 4, 10);
    CHECK_EQ(each(1, 0, ST_CORRUPT).n, 0); /* from here on it counts */
    CHECK_OK(redo_close(r, false, &err), &err);
    struct redo_options o = {
        .path = path, .id = id_of(4), .old = id_of(1), .from = 4, .segment_bytes = SMALL};
    CHECK_EQ(redo_open(&o, &r, &err), ST_CORRUPT);
    CHECK_OK(redo_remove(path, &err), &err);
}

/* One start told larder_meta and appended nothing, the next one did not get so far. */
static void is_found_by_the_id_between(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 10);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(2, 1, 4, 0);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(3, 2, 4, 0);
    CHECK(is_found(2) && is_found(3));
    CHECK_EQ(each(2, 0, ST_OK).n, 3);
    finish(r);
}

static int syncs, left; /* of the folder; segments at the first of them */
static const struct redo_files *files;

static int see_sync(const char *p)
{
    if (syncs++ == 0)
        left = segments();
    return files->sync_folder(p);
}

/* A crash of the machine may leave any name that was removed since the last sync of the folder: never an
   older segment without the newest, whose id larder_meta has. */
static void the_newest_is_removed_last(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 10);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(2, 1, 4, 0);
    put_all(r, 4, 5, 10);
    files = redo_files;
    struct redo_files seen = *files;
    seen.sync_folder = see_sync;
    syncs = 0;
    redo_files = &seen;
    CHECK_OK(redo_close(r, true, &err), &err);
    redo_files = files;
    CHECK_EQ(syncs, 2);
    CHECK_EQ(left, 1);
    CHECK_EQ(segments(), 0);
}

static void begins_behind_what_counts(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 9, 100);
    CHECK_OK(redo_close(r, false, &err), &err);
    r = open_log(2, 1, 6, 0); /* 6 to 9 are void from now on */
    CHECK_EQ(each(2, 0, ST_OK).last, 5);
    put_all(r, 7, 8, 5);
    struct seen s = each(2, 0, ST_OK);
    CHECK_EQ(s.n, 7);
    CHECK_EQ(s.last, 8);
    finish(r);
}

/* Nothing says of the last record that it was durable: its sync may have failed. */
static void writes_again_what_may_not_be_on_the_disk(void)
{
    for (int unsynced = 1; unsynced <= 3; unsynced++) {
        struct redo *r = open_log(1, 0, 1, 0);
        put_all(r, 1, 4, 100);
        for (int64_t seq = 5; seq < 4 + unsynced; seq++)
            CHECK_OK(put(r, seq, 100, false), &err);
        CHECK_OK(redo_close(r, false, &err), &err);
        r = open_log(2, 1, 4 + unsynced, 0);
        for (int64_t k = unsynced == 1 ? 4 : 5; k < 4 + unsynced; k++)
            damage(1, k * (off_t)REDO_BLOCK + 80, 1);
        CHECK_EQ(each(2, 0, ST_OK).last, 3 + unsynced);
        put_all(r, 9, 9, 100);
        CHECK_EQ(each(2, 0, ST_OK).n, 4 + unsynced);
        CHECK_OK(redo_close(r, false, &err), &err);
        damage(1, 3 * (off_t)REDO_BLOCK + 80, 1);
        CHECK_EQ(each(2, 0, ST_CORRUPT).n, 2);
        CHECK_OK(redo_remove(path, &err), &err);
    }
}

static void gives_segments_up_and_uses_them_again(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    struct redo_info info;
    bool more = false;
    for (int64_t seq = 1; seq <= 1000; seq++) {
        CHECK_OK(put(r, seq, (size_t)(seq * 37 % 9000), true), &err);
        if (seq % 50 == 0)
            CHECK_OK(redo_applied(r, seq - 7, &err), &err);
        do {
            CHECK_OK(redo_prepare(r, &more, &err), &err);
        } while (more);
        if (seq % 97 == 0)
            CHECK_EQ(each(1, seq / 50 * 50, ST_OK).last, seq / 50 * 50 == seq ? 0 : seq);
    }
    redo_info(r, &info);
    CHECK(info.on_disk < 40 * SMALL);
    CHECK_EQ(each(1, 993, ST_OK).n, 7);
    /* What is missing in front must be in the tables. */
    CHECK_EQ(each(1, 10, ST_CORRUPT).n, 0);
    finish(r);
}

static void gives_a_long_record_a_segment_of_its_own(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 1, 10);
    put_all(r, 2, 2, 5 * SMALL);
    put_all(r, 3, 3, 10);
    CHECK_EQ(segments(), 3);
    CHECK_EQ(each(1, 0, ST_OK).n, 3);
    CHECK_OK(redo_applied(r, 3, &err), &err);
    CHECK_EQ(segments(), 1);
    finish(r);
}

/* Five records of a block each, then a new segment begins with the sixth when it is asked for. */
static void write_five(bool next)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 5, 100);
    if (next)
        put_all(r, 6, 6, SMALL);
    CHECK_OK(redo_close(r, false, &err), &err);
}

static void expect_damage(const char *what, int n)
{
    check.context = what;
    CHECK_EQ(each(1, 0, ST_CORRUPT).n, n);
    check.context = NULL;
    CHECK_OK(redo_remove(path, &err), &err);
}

static void tells_damage_from_a_torn_end(void)
{
    const off_t payload = 80;
    for (int64_t k = 1; k <= 5; k++) {
        write_five(false);
        damage(1, k * (off_t)REDO_BLOCK + payload, 1);
        if (k < 5) {
            expect_damage("a record in the middle", (int)k - 1);
        } else {
            CHECK_EQ(each(1, 0, ST_OK).n, 4); /* nothing tells that it was durable */
            CHECK_OK(redo_remove(path, &err), &err);
        }
    }
    write_five(true);
    damage(1, 5 * (off_t)REDO_BLOCK + payload, 1);
    expect_damage("the last of a segment, with another one behind it", 4);
    write_five(false);
    damage(1, 7 * (off_t)REDO_BLOCK, -1);
    expect_damage("a segment cut behind its records", 5);
    write_five(false);
    damage(1, 3 * (off_t)REDO_BLOCK + 100, -1);
    expect_damage("a segment cut within them", 2);
    write_five(true);
    char name[REDO_NAME_BYTES], other[REDO_NAME_BYTES];
    redo_segment_name(path, 1, name);
    CHECK_EQ(unlink(name), 0);
    expect_damage("the first segment is missing", 0);
    write_five(true);
    redo_segment_name(path, 2, other);
    CHECK_EQ(rename(name, other), 0);
    CHECK_EQ(each(1, 0, ST_CORRUPT).n, 0); /* a name that is not its own */
    struct redo_found f;
    CHECK_EQ(redo_find(path, NULL, &f, &err), ST_CORRUPT);
    CHECK_OK(redo_remove(path, &err), &err);
    write_five(false);
    damage(1, 20, 1);
    CHECK_EQ(redo_find(path, NULL, &f, &err), ST_CORRUPT);
    expect_damage("a head", 0);
    write_five(false);
    damage(1, 0, -1);
    expect_damage("an empty file", 0);
}

/* ---- calls that fail ---- */

static struct redo_files failing;
static const struct redo_files *real;
static atomic_int fail_sync, fail_write, fail_open; /* errno, once for syncs and writes */

/* Nothing here loses power: what the disk would be waited for is not asked of it. */
static int failing_sync(int fd)
{
    (void)fd;
    int e = atomic_exchange(&fail_sync, 0);
    errno = e;
    return e ? -1 : 0;
}

static int no_folder_sync(const char *p)
{
    (void)p;
    return 0;
}

static ssize_t failing_write(int fd, const struct iovec *v, int n, uint64_t at)
{
    int e = atomic_exchange(&fail_write, 0);
    errno = e;
    return e ? -1 : real->write(fd, v, n, at);
}

static int failing_open(const char *p, enum redo_open_mode mode)
{
    errno = fail_open;
    return fail_open && mode == REDO_OPEN_MAKE ? -1 : real->open(p, mode);
}

static uint64_t taken; /* a segment that goes when the folder has been read; 0: none does */

static int take_and_list(const char *p, redo_name_fn *fn, void *arg)
{
    int rc = real->list(p, fn, arg);
    char name[REDO_NAME_BYTES];
    redo_segment_name(path, taken, name);
    if (taken)
        CHECK_EQ(unlink(name), 0);
    taken = 0;
    return rc;
}

static void tells_that_one_went_away_meanwhile(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 20, 50);
    struct redo_found f;
    taken = 1;
    CHECK_EQ(redo_find(path, NULL, &f, &err), ST_MISSING); /* whoever reads beside a server tries again */
    taken = 2;
    each(1, 15, ST_MISSING);
    finish(r);
}

static enum status note_damage(void *arg, const struct redo_record *rec, const struct error *damage)
{
    *(int *)arg += !rec && damage->code == ST_CORRUPT;
    return ST_OK;
}

/* The one before it knows of it; a recycled segment has an old end, which says nothing. */
static void tells_that_the_newest_is_missing(void)
{
    for (int recycled = 0; recycled < 2; recycled++) {
        struct redo *r = open_log(1, 0, 1, 0);
        put_all(r, 1, 60, 3000);
        if (recycled) {
            CHECK_OK(redo_applied(r, 60, &err), &err);
            put_all(r, 61, 120, 3000);
        }
        int64_t after = recycled ? 60 : 0;
        CHECK_OK(redo_close(r, false, &err), &err);
        CHECK_EQ(each(1, after, ST_OK).last, after + 60);
        uint64_t *numbers;
        size_t n;
        int damages = 0;
        CHECK_OK(redo_list(path, &numbers, &n, NULL, NULL, &err), &err);
        CHECK(n >= 4);
        take_away(numbers[n - 1]);
        CHECK(each(1, after, ST_CORRUPT).last < after + 60);
        CHECK(strstr(err.text, "is missing") != NULL);
        CHECK_OK(redo_scan(path, note_damage, &damages, &err), &err);
        CHECK_EQ(damages, 1);
        mem_free(numbers);
        CHECK_OK(redo_remove(path, &err), &err);
    }
}

static int refuse_unlink(const char *p)
{
    (void)p;
    errno = EIO;
    return -1;
}

/* A crash may leave a segment under a spare one's name, too: what cannot be removed is never written. */
static void writes_no_spare_segment_that_stays(void)
{
    const struct redo_files *before = redo_files;
    struct redo_files stuck = *before;
    char name[REDO_NAME_BYTES], spare[REDO_NAME_BYTES];
    CHECK_OK(redo_close(open_log(1, 0, 1, 0), false, &err), &err);
    struct redo *r = open_log(2, 1, 1, 0);
    put_all(r, 1, 3, 50);
    CHECK_OK(redo_close(r, false, &err), &err);
    redo_segment_name(path, 2, name);
    for (uint64_t k = 1; k <= 3; k += 2) {
        redo_spare_name(path, k, spare);
        CHECK_EQ(link(name, spare), 0);
    }
    stuck.unlink = refuse_unlink;
    redo_files = &stuck;
    r = open_log(3, 2, 4, 0);
    put_all(r, 4, 60, 3000);
    CHECK_OK(redo_applied(r, 3, &err), &err); /* renamed to a name of its own, not to one that it has */
    CHECK_EQ(each(3, 3, ST_OK).n, 57);
    put_all(r, 61, 120, 3000);
    CHECK_EQ(each(3, 3, ST_OK).n, 117);
    redo_files = before;
    finish(r);
}

static void begins_another_epoch_when_a_sync_fails(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 50);
    fail_sync = EIO;
    CHECK_EQ(put(r, 4, 50, true), ST_UNKNOWN);
    CHECK_EQ(each(1, 0, ST_OK).last, 4); /* it may be there */
    CHECK_OK(redo_sync(r, &err), &err);  /* of what counts, all is durable */
    fail_open = ENOSPC;
    CHECK_EQ(put(r, 4, 60, true), ST_FULL);
    fail_open = 0;
    fail_sync = EIO; /* of the new head */
    CHECK_EQ(put(r, 4, 60, true), ST_IO);
    CHECK_EQ(put(r, 5, 70, true), ST_OK);
    struct seen s = each(1, 0, ST_OK);
    CHECK_EQ(s.n, 4);
    CHECK_EQ(s.last, 5);
    fail_sync = EIO;
    CHECK_EQ(put(r, 6, 50, true), ST_UNKNOWN);
    CHECK_OK(redo_renew(r, &err), &err);
    CHECK_EQ(each(1, 0, ST_OK).last, 5); /* it cannot come back, though nothing follows */
    int n = segments();
    CHECK_OK(redo_renew(r, &err), &err);
    CHECK_EQ(segments(), n);
    finish(r);
}

static void never_leaves_a_gap_behind_what_was_not_synced(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 50);
    CHECK_OK(put(r, 4, 50, false), &err);
    CHECK_OK(put(r, 5, 50, false), &err);
    fail_sync = EIO;
    CHECK_EQ(redo_sync(r, &err), ST_UNKNOWN);
    CHECK_EQ(redo_sync(r, &err), ST_LOST);
    CHECK_EQ(put(r, 6, 50, false), ST_LOST);
    CHECK_OK(put(r, 4, 50, false), &err);
    CHECK_EQ(put(r, 6, 50, true), ST_LOST);
    CHECK_OK(put(r, 5, 50, false), &err);
    CHECK_OK(put(r, 6, 50, true), &err);
    CHECK_EQ(each(1, 0, ST_OK).n, 6);
    /* The other way: the tables have it. */
    CHECK_OK(put(r, 7, 50, false), &err);
    fail_sync = EIO;
    CHECK_EQ(put(r, 8, 50, true), ST_UNKNOWN);
    CHECK_EQ(put(r, 8, 50, true), ST_LOST);
    CHECK_OK(redo_applied(r, 7, &err), &err);
    CHECK_OK(put(r, 8, 50, true), &err);
    CHECK_EQ(each(1, 7, ST_OK).n, 1);
    finish(r);
}

static void says_that_the_disk_is_full(void)
{
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 2, 50);
    fail_write = ENOSPC;
    CHECK_EQ(put(r, 3, 50, true), ST_FULL);
    CHECK(strstr(err.text, "no space left for the database"));
    fail_write = EINTR;
    CHECK_OK(put(r, 3, 50, true), &err);
    fail_open = ENOSPC;
    CHECK_EQ(put(r, 4, SMALL, true), ST_FULL);
    CHECK_OK(put(r, 4, 50, true), &err); /* there is room for this one */
    fail_open = 0;
    CHECK_OK(put(r, 5, SMALL, true), &err);
    CHECK_EQ(each(1, 0, ST_OK).n, 5);
    finish(r);
}

static void acknowledges_nothing_without_its_files(void)
{
    for (int how = 0; how < 3; how++) {
        struct redo *r = open_log(1, 0, 1, 0);
        put_all(r, 1, 3, 50);
        char name[REDO_NAME_BYTES];
        redo_segment_name(path, 1, name);
        if (how == 0)
            CHECK_EQ(unlink(name), 0);
        else if (how == 1)
            damage(1, 2 * (off_t)REDO_BLOCK, -1);
        else
            CHECK_EQ(rename(name, path), 0); /* noticed when a segment is begun, or a second has passed */
        if (how == 2)
            CHECK_EQ(put(r, 4, SMALL, true), ST_IO);
        else
            CHECK_EQ(put(r, 4, 50, true), ST_UNKNOWN);
        CHECK_EQ(put(r, 4, 50, true), ST_IO);
        CHECK_OK(redo_applied(r, 2, &err), &err);
        CHECK_EQ(put(r, 4, 50, true), ST_IO);
        CHECK_OK(redo_applied(r, 3, &err), &err);
        CHECK_OK(put(r, 4, 50, true), &err); /* what was taken is not needed any more */
        CHECK_EQ(each(1, 3, ST_OK).n, 1);
        finish(r);
        unlink(path);
    }
}

static void writes_nothing_beside_another_database(void)
{
    char away[sizeof path + 8];
    snprintf(away, sizeof away, "%s.away", path);
    close(real->open(path, REDO_OPEN_MAKE));
    struct redo *r = open_log(1, 0, 1, 0);
    put_all(r, 1, 3, 50);
    CHECK_OK(redo_applied(r, 3, &err), &err); /* nothing in the log is needed */
    CHECK_EQ(rename(path, away), 0);
    CHECK_EQ(put(r, 4, SMALL, true), ST_IO);
    close(real->open(path, REDO_OPEN_MAKE));
    for (int i = 0; i < 5; i++)
        CHECK_EQ(put(r, 4, 50, true), ST_IO);
    CHECK_EQ(segments(), 1);
    CHECK_EQ(rename(away, path), 0);
    CHECK_OK(put(r, 4, 50, true), &err);
    CHECK_EQ(each(1, 3, ST_OK).n, 1);
    finish(r);
    unlink(path);
}

/* ---- threads ---- */

static atomic_int_fast64_t appended;

static void *append_many(void *arg)
{
    for (int64_t seq = 1; seq <= 2000; seq++) {
        CHECK_OK(put(arg, seq, (size_t)(seq * 53 % 5000), seq % 8 == 0), &err);
        atomic_store(&appended, seq);
    }
    return NULL;
}

static void is_prepared_and_applied_by_another_thread(void)
{
    atomic_store(&appended, 0);
    struct redo *r = open_log(1, 0, 1, 0);
    pthread_t t;
    REQUIRE(pthread_create(&t, NULL, append_many, r) == 0);
    struct error e;
    for (int64_t done = 0; done < 2000;) {
        bool more;
        CHECK_OK(redo_prepare(r, &more, &e), &e);
        int64_t now = atomic_load(&appended);
        if (now >= done + 100 || now == 2000) {
            CHECK_OK(redo_applied(r, now - 5, &e), &e);
            done = now;
        }
        if (!more)
            usleep(100);
    }
    pthread_join(t, NULL);
    CHECK_EQ(each(1, 1995, ST_OK).n, 5);
    finish(r);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    strcpy(folder, "/tmp/larder-redo-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/larder.db", folder);
    real = redo_files;
    failing = *real;
    failing.sync = failing_sync;
    failing.sync_folder = no_folder_sync;
    failing.write = failing_write;
    failing.open = failing_open;
    failing.list = take_and_list;
    redo_files = &failing;
    RUN(reads_what_was_appended);
    RUN(is_found_by_the_id_before_while_fresh);
    RUN(is_found_by_the_id_between);
    RUN(the_newest_is_removed_last);
    RUN(begins_behind_what_counts);
    RUN(writes_again_what_may_not_be_on_the_disk);
    RUN(gives_segments_up_and_uses_them_again);
    RUN(gives_a_long_record_a_segment_of_its_own);
    RUN(tells_damage_from_a_torn_end);
    RUN(tells_that_the_newest_is_missing);
    RUN(tells_that_one_went_away_meanwhile);
    RUN(writes_no_spare_segment_that_stays);
    RUN(begins_another_epoch_when_a_sync_fails);
    RUN(never_leaves_a_gap_behind_what_was_not_synced);
    RUN(says_that_the_disk_is_full);
    RUN(acknowledges_nothing_without_its_files);
    RUN(writes_nothing_beside_another_database);
    RUN(is_prepared_and_applied_by_another_thread);
    unlink(path);
    rmdir(folder);
    return check_done();
}
