/* The store when the disk, the file or the process fails: every failure has its status and a text, nothing
   half-done remains, and work goes on when the cause is gone. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "admin/check.h"
#include "contract/fixture.h"

extern char **environ;

static struct store *s;
static struct error err;

static enum status open_as(enum durability d)
{
    struct store_options o = options();
    o.durability = d;
    return store_open(&o, &s, &err);
}

static void open_store(void)
{
    CHECK_OK(open_as(DURABILITY_OFF), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

static void close_store(void)
{
    store_close(s);
    s = NULL;
}

static enum status put(const char *key, struct slice value)
{
    struct key_row k = string_row(0, slice_str(key), value);
    struct rows r = {0};
    if (get_key(s, 0, k.key, &r))
        k.seq = r.keys[0].seq;
    rows_release(&r);
    return put_key_now(s, &k, &err);
}

static bool has(const char *key)
{
    struct rows r = {0};
    bool found = get_key(s, 0, slice_str(key), &r);
    rows_release(&r);
    return found;
}

static void expect_healthy(void)
{
    char text[8192] = "";
    bool ok = false;
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_OK(store_check(place.path, f, &ok, &err), &err);
    fclose(f);
    if (!ok) {
        FAIL("the database is healthy");
        printf("%s", text);
    }
}

static off_t size_of(const char *suffix)
{
    char path[256];
    struct stat sb;
    snprintf(path, sizeof path, "%s%s", place.path, suffix);
    return stat(path, &sb) == 0 ? sb.st_size : -1;
}

/* ---- this program in another process, in one of the roles at the end of the file ---- */

static pid_t spawn_role(const char *role, const char *arg, int *ret_out)
{
    char self[] = "/proc/self/exe";
    char *argv[] = {self, strdup(role), place.path, strdup(arg), NULL};
    posix_spawn_file_actions_t actions;
    int fds[2];
    pid_t pid = -1;
    fflush(stdout);
    posix_spawn_file_actions_init(&actions);
    if (ret_out) {
        CHECK_EQ(pipe(fds), 0);
        posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
        posix_spawn_file_actions_addclose(&actions, fds[0]);
    }
    CHECK_EQ(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    if (ret_out) {
        close(fds[1]);
        *ret_out = fds[0];
    }
    free(argv[1]);
    free(argv[3]);
    return pid;
}

#define SKIPPED 77

static int run_role(const char *role)
{
    int status = -1;
    pid_t pid = spawn_role(role, "", NULL);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
        printf("(skipped %s: not permitted here)\n", role);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- no space ---- */

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static char big[50000];

/* Writes until the disk is full, then a while longer; returns how many commits went well. */
static int fill_up(void)
{
    int good = 0, bad = 0;
    for (int i = 0; i < 2000 && bad < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        enum status st = put(key, slice_of(big, sizeof big));
        if (st == ST_OK) {
            good++;
        } else {
            bad++;
            CHECK_EQ(st, ST_FULL);
            CHECK_EQ(err.code, ST_FULL);
            CHECK(strstr(err.text, "no space left for the database") != NULL);
            CHECK(!has(key));
        }
    }
    CHECK(bad > 0);
    return good;
}

static void file_at_its_limit(void)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    open_store();
    CHECK_OK(put("first", SLICE("v")), &err);
    limit_file_size(2 << 20);
    int good = fill_up();
    CHECK(good > 5);
    CHECK(has("first") && has("k0") && has("k5")); /* reads go on */
    struct db_row dbs[DATABASES] = {{0, 0, 1, 0}};
    struct sweep_budget b = {.now = 5, .max_rows = 10, .dbs = dbs, .ndbs = 1};
    struct sweep_result swept;
    enum status st = store_sweep(s, &b, &swept, &err);
    CHECK(st == ST_OK || st == ST_FULL);
    limit_file_size(before.rlim_cur);
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        CHECK_OK(put(key, slice_of(big, sizeof big)), &err);
    }
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 101);
    outside("UPDATE larder_db SET keys = 101 WHERE db = 0");
    close_store();
    expect_healthy();
}

/* A file system that is really full, and has room again. Needs the right to mount one. */
static int role_full(void)
{
    char filler[200];
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", place.folder, "tmpfs", 0, "size=4m") != 0)
        return SKIPPED;
    snprintf(filler, sizeof filler, "%s/filler", place.folder);
    open_store();
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(write(fd, big, sizeof big) == (ssize_t)sizeof big);
    int good = fill_up();
    CHECK(good > 0);
    CHECK(has("k0"));
    CHECK_EQ(unlink(filler), 0);
    close(fd);
    /* Room for a little: smaller writes work again. */
    int again = 0;
    for (int i = 0; i < 5; i++)
        again += put("after", SLICE("v")) == ST_OK;
    CHECK_EQ(again, 5);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), good + 1);
    close_store();
    CHECK(open_as(DURABILITY_ALWAYS) == ST_OK || err.code == ST_FULL);
    close_store();
    return check.checks_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void file_system_is_full(void)
{
    int code = run_role("--full");
    CHECK(code == 0 || code == SKIPPED);
}

/* ---- permissions ---- */

/* As somebody for whom permissions count. */
static bool become_nobody(void)
{
    return geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
}

static int role_readonly_file(void)
{
    struct store_options o = options();
    if (!become_nobody())
        return SKIPPED;
    CHECK_EQ(store_open(&o, &s, &err), ST_READONLY);
    CHECK(strstr(err.text, place.path) != NULL);
    o.read_only = true;
    CHECK_OK(store_open(&o, &s, &err), &err);
    CHECK(has("k"));
    close_store();
    return check.checks_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void read_only_file(void)
{
    open_store();
    CHECK_OK(put("k", SLICE("v")), &err);
    close_store();
    CHECK_EQ(chmod(place.folder, 0777), 0);
    CHECK_EQ(chmod(place.path, 0444), 0);
    int code = run_role("--readonly-file");
    CHECK(code == 0 || code == SKIPPED);
}

static int role_denied(void)
{
    struct store_options o = options();
    if (!become_nobody())
        return SKIPPED;
    enum status st = store_open(&o, &s, &err);
    CHECK(st == ST_DENIED || st == ST_READONLY || st == ST_MISSING);
    CHECK(strlen(err.text) > 20);
    return check.checks_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void no_permission(void)
{
    /* The folder cannot be written: neither a new database nor the log of an old one can be created. */
    CHECK_EQ(chmod(place.folder, 0555), 0);
    int code = run_role("--denied");
    CHECK(code == 0 || code == SKIPPED);
    CHECK_EQ(chmod(place.folder, 0755), 0);
    open_store();
    close_store();
    CHECK_EQ(chmod(place.path, 0666), 0);
    CHECK_EQ(chmod(place.folder, 0555), 0);
    code = run_role("--denied");
    CHECK(code == 0 || code == SKIPPED);
    /* The file may not even be read. */
    CHECK_EQ(chmod(place.folder, 0777), 0);
    CHECK_EQ(chmod(place.path, 0), 0);
    code = run_role("--denied");
    CHECK(code == 0 || code == SKIPPED);
}

/* ---- damage ---- */

static void scribble(off_t from, size_t n)
{
    int fd = open(place.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    memset(big, 0x5a, sizeof big);
    for (size_t done = 0; done < n; done += sizeof big)
        CHECK(pwrite(fd, big, n - done < sizeof big ? n - done : sizeof big, from + (off_t)done) > 0);
    close(fd);
    memset(big, 0, sizeof big);
}

static void not_a_database(void)
{
    scribble(0, 10000);
    CHECK_EQ(open_as(DURABILITY_OFF), ST_CORRUPT);
    CHECK(strstr(err.text, place.path) != NULL);
    bool ok;
    CHECK_EQ(store_check(place.path, stdout, &ok, &err), ST_CORRUPT);
    CHECK_EQ(size_of(""), 10000); /* left as it was */
}

static void damaged_pages(void)
{
    open_store();
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        CHECK_OK(put(key, slice_of(big, 300)), &err);
    }
    close_store();
    off_t size = size_of("");
    scribble(size / 2, (size_t)(size / 4));
    char text[16384];
    bool ok = true;
    FILE *f = fmemopen(text, sizeof text, "w");
    enum status st = store_check(place.path, f, &ok, &err);
    fclose(f);
    CHECK(st == ST_CORRUPT || (st == ST_OK && !ok));
    if (open_as(DURABILITY_OFF) != ST_OK) {
        CHECK_EQ(err.code, ST_CORRUPT);
        return;
    }
    struct rows r = {0};
    int damaged = 0;
    for (int i = 0; i < 500; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        struct key_ref ref = {0, slice_str(key)};
        st = store_get_keys(s, &ref, 1, add_key, &r, &err);
        CHECK(st == ST_OK || st == ST_CORRUPT);
        damaged += st == ST_CORRUPT;
        rows_release(&r);
        struct key_row k = string_row(0, slice_str(key), SLICE("new"));
        st = put_key_now(s, &k, &err);
        CHECK(st != ST_OK); /* it is there already, or nobody can tell */
    }
    CHECK(damaged > 0);
    close_store();
}

static void cut_short(void)
{
    open_store();
    CHECK_OK(put("k", slice_of(big, sizeof big)), &err);
    close_store();
    CHECK_EQ(truncate(place.path, size_of("") - 20000), 0);
    if (open_as(DURABILITY_OFF) == ST_OK) {
        struct rows r = {0};
        struct key_ref ref = {0, SLICE("k")};
        CHECK_EQ(store_get_keys(s, &ref, 1, add_key, &r, &err), ST_CORRUPT);
        rows_release(&r);
        close_store();
    } else {
        CHECK_EQ(err.code, ST_CORRUPT);
    }
}

/* ---- syncs that fail ---- */

/* This program's fdatasync takes the place of the C library's, for SQLite too. */
static atomic_int sync_fails; /* with this errno */

int fdatasync(int fd)
{
    int e = atomic_load(&sync_fails);
    if (e == 0)
        return (int)syscall(SYS_fdatasync, fd);
    errno = e;
    return -1;
}

static void a_commit_that_cannot_be_synced(void)
{
    CHECK_OK(open_as(DURABILITY_ALWAYS), &err);
    CHECK_OK(put("k", SLICE("v")), &err);
    for (int i = 0; i < 3; i++) {
        atomic_store(&sync_fails, EIO);
        CHECK_EQ(put("l", SLICE("v")), ST_UNKNOWN);
        CHECK_EQ(err.code, ST_UNKNOWN);
        CHECK(has("k") && !has("l"));
        atomic_store(&sync_fails, 0);
    }
    CHECK_OK(put("m", SLICE("v")), &err);
    CHECK_OK(put("l", SLICE("v")), &err);
    close_store();
    open_store();
    CHECK(has("k") && has("l") && has("m"));
    close_store();
}

/* Writes every 20 ms, for at most 3 seconds, until one ends so. */
static bool comes_to(enum status want)
{
    for (int i = 0; i < 150; i++) {
        if (put("k", SLICE("v")) == want)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static void a_log_that_cannot_be_synced_every_second(void)
{
    CHECK_OK(open_as(DURABILITY_EVERYSEC), &err);
    CHECK_OK(put("k", SLICE("v")), &err);
    atomic_store(&sync_fails, EIO);
    CHECK_OK(put("k", SLICE("v")), &err); /* nobody has tried yet */
    CHECK(comes_to(ST_IO));
    CHECK(strstr(err.text, "syncing the write-ahead log failed") != NULL);
    CHECK_EQ(store_sync(s, &err), ST_IO);
    CHECK(has("k"));
    atomic_store(&sync_fails, 0);
    CHECK(comes_to(ST_OK));
    close_store();
}

/* ---- files that go away ---- */

static void files_that_lose_their_names(void)
{
    static const char *const suffixes[] = {"", "-wal"};
    for (int i = 0; i < 2; i++) {
        char path[256], aside[280];
        new_place();
        open_store();
        CHECK_OK(put("k", SLICE("v")), &err);
        snprintf(path, sizeof path, "%s%s", place.path, suffixes[i]);
        snprintf(aside, sizeof aside, "%s.aside", path);
        CHECK_EQ(rename(path, aside), 0);
        CHECK_EQ(put("l", SLICE("v")), ST_IO);
        CHECK(strstr(err.text, "removed or replaced") != NULL);
        CHECK(has("k")); /* reads go on */
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        close(fd);
        CHECK_EQ(put("l", SLICE("v")), ST_IO); /* another file in its place is no better */
        CHECK_EQ(rename(aside, path), 0);
        CHECK_OK(put("l", SLICE("v")), &err);
        close_store();
        open_store();
        CHECK(has("k") && has("l"));
        close_store();
    }
}

/* ---- the log and the space ---- */

/* Commits of one row with a large value each. */
static void put_big(int from, int to)
{
    for (int i = from; i < to; i++) {
        struct key_row k = string_row(0, slice_of(&i, sizeof i), slice_of(big, sizeof big));
        if (put_key_now(s, &k, &err) != ST_OK)
            CHECK_OK(err.code, &err);
    }
}

#define MB (UINT64_C(1) << 20)

static void the_log_stays_short(void)
{
    struct store_info info;
    open_store();
    put_big(0, 3000);
    CHECK_OK(store_info(s, &info, &err), &err);
    CHECK(info.bytes > 130 * MB);
    CHECK(info.wal_bytes < 210 * MB);
    /* A reader holds it up; when he is gone it starts over. */
    sqlite3 *db = NULL;
    CHECK_EQ(sqlite3_open(place.path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "BEGIN; SELECT * FROM larder_meta", NULL, NULL, NULL), SQLITE_OK);
    put_big(3000, 5000);
    CHECK_OK(store_info(s, &info, &err), &err);
    CHECK(info.wal_bytes > 100 * MB);
    sqlite3_close(db);
    put_big(5000, 7000);
    CHECK_OK(store_info(s, &info, &err), &err);
    CHECK(info.wal_bytes < 210 * MB);
    close_store();
    CHECK(size_of("-wal") <= 0);
}

static void space_is_given_back(void)
{
    struct store_info before, after;
    open_store();
    struct db_row dbs[DATABASES] = {{0, 0, 1000, 1000}};
    for (int i = 0; i < 1000; i++) {
        struct key_row k = string_row(0, slice_of(&i, sizeof i), slice_of(big, 20000));
        k.expire_at = 1;
        if (put_key_now(s, &k, &err) != ST_OK)
            CHECK_OK(err.code, &err);
    }
    CHECK_OK(store_info(s, &before, &err), &err);
    struct sweep_budget b = {.now = 5, .max_rows = 100, .dbs = dbs, .ndbs = 1};
    struct sweep_result swept = {.more = true};
    int steps = 0;
    while (swept.more && steps++ < 5000)
        if (store_sweep(s, &b, &swept, &err) != ST_OK)
            CHECK_OK(err.code, &err);
    CHECK(steps > 10 && steps < 1000);
    CHECK_OK(store_info(s, &after, &err), &err);
    CHECK(before.bytes > 19 << 20);
    CHECK(after.bytes < 6 << 20);
    close_store();
    CHECK(size_of("") < 6 << 20);
    outside("UPDATE larder_db SET keys = 0, expires = 0 WHERE db = 0");
    expect_healthy();
}

/* ---- crashes ---- */

#define CRASH_KEYS 10

static long number_in(struct slice value)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)value.n, value.p);
    return strtol(text, NULL, 10);
}

/* Commits CRASH_KEYS keys that all have the same number, and a set of as many members, again and again; a
   byte on standard output says that a commit has returned. */
static int role_write(const char *durability)
{
    CHECK_OK(open_as((enum durability)atoi(durability)), &err);
    if (!s)
        return EXIT_FAILURE;
    struct key_row k[CRASH_KEYS];
    char name[CRASH_KEYS][16], value[32];
    struct rows r = {0};
    long n = 0;
    for (int i = 0; i < CRASH_KEYS; i++) {
        snprintf(name[i], sizeof name[i], "k%d", i % 10);
        k[i] = string_row(0, slice_str(name[i]), SLICE(""));
        if (get_key(s, 0, k[i].key, &r)) {
            k[i].seq = r.keys[r.nkeys - 1].seq;
            n = number_in(r.keys[r.nkeys - 1].value);
        }
    }
    for (;;) {
        snprintf(value, sizeof value, "%20ld", ++n);
        struct item_row items[CRASH_KEYS];
        for (int i = 0; i < CRASH_KEYS; i++) {
            k[i].value = slice_str(value);
            items[i] = (struct item_row){.ref = {ITEM_LIST, n, SLICE(""), i}, .value = slice_str(value)};
        }
        struct changes c = {.keys = k, .nkeys = CRASH_KEYS, .items = items, .nitems = CRASH_KEYS};
        if (apply_now(s, &c, &err) != ST_OK || write(STDOUT_FILENO, "x", 1) != 1)
            return EXIT_FAILURE;
    }
}

/* Reads how far a killed writer had come, and that every commit is whole. */
static long read_progress(void)
{
    long n = 0;
    struct rows r = {0};
    for (int i = 0; i < CRASH_KEYS; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%d", i % 10);
        get_key(s, 0, slice_str(name), &r);
    }
    CHECK(r.nkeys == 0 || r.nkeys == CRASH_KEYS);
    for (size_t i = 0; i < r.nkeys; i++) {
        CHECK_SLICE(r.keys[i].value, r.keys[0].value);
        n = number_in(r.keys[i].value);
    }
    for (long id = n; id <= n + 1 && id > 0; id++) {
        struct item_scan q = {.table = ITEM_LIST, .id = id, .order = ITEMS_BY_POS, .limit = 100};
        r.nitems = 0;
        CHECK_OK(store_scan_items(s, &q, add_item, &r, &err), &err);
        CHECK_EQ(r.nitems, id == n ? CRASH_KEYS : 0);
    }
    rows_release(&r);
    return n;
}

static void killed_writers_leave_whole_commits(void)
{
    char drain[4096];
    long reached = 0;
    srand(7);
    for (int round = 0; round < 12; round++) {
        char durability[2] = {(char)('0' + round % 3), '\0'};
        int out;
        pid_t pid = spawn_role("--write", durability, &out);
        long acknowledged = 0;
        struct timespec delay = {.tv_nsec = 1000000L * (1 + rand() % 80)};
        CHECK_EQ(read(out, drain, 1), 1); /* it has begun */
        acknowledged++;
        nanosleep(&delay, NULL);
        CHECK_EQ(kill(pid, SIGKILL), 0);
        ssize_t got;
        while ((got = read(out, drain, sizeof drain)) > 0)
            acknowledged += got;
        close(out);
        CHECK_EQ(waitpid(pid, NULL, 0), pid);
        open_store(); /* the dead one's ownership is gone with it */
        long now = read_progress();
        CHECK(now == reached + acknowledged || now == reached + acknowledged + 1);
        reached = now;
        close_store();
    }
    CHECK(reached > 12);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strncmp(argv[1], "--", 2) == 0) {
        snprintf(place.path, sizeof place.path, "%s", argv[2]);
        snprintf(place.url, sizeof place.url, "%s", argv[2]);
        snprintf(place.folder, sizeof place.folder, "%.*s", (int)(strrchr(argv[2], '/') - argv[2]), argv[2]);
        if (strcmp(argv[1], "--full") == 0)
            return role_full();
        if (strcmp(argv[1], "--readonly-file") == 0)
            return role_readonly_file();
        if (strcmp(argv[1], "--denied") == 0)
            return role_denied();
        return role_write(argv[3]);
    }
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(file_at_its_limit);
    IN_NEW_PLACE(file_system_is_full);
    IN_NEW_PLACE(read_only_file);
    IN_NEW_PLACE(no_permission);
    IN_NEW_PLACE(not_a_database);
    IN_NEW_PLACE(damaged_pages);
    IN_NEW_PLACE(cut_short);
    IN_NEW_PLACE(a_commit_that_cannot_be_synced);
    IN_NEW_PLACE(a_log_that_cannot_be_synced_every_second);
    IN_NEW_PLACE(files_that_lose_their_names);
    IN_NEW_PLACE(the_log_stays_short);
    IN_NEW_PLACE(space_is_given_back);
    IN_NEW_PLACE(killed_writers_leave_whole_commits);
    return check_done();
}
