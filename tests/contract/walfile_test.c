/* The VFS that joins the writes to the log: what is in the files after each commit, what a transaction reads
   of its own, what others see meanwhile, and what is left when a write fails. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "contract/fixture.h"
#include "sql/sqlite.h"
#include "sql/walfile.h"

static struct histogram syncs;
static struct error err;

/* ---- writes, counted and failing ---- */

/* This program's function takes the place of the C library's, for SQLite too. Only large offsets tell the
   log's writes from those of the small files beside it, so a test writes to nothing else while it counts. */
static atomic_int writes;
static atomic_int fail_in = -1; /* so many writes go well, then one fails */
static atomic_int fail_with;

ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    atomic_fetch_add(&writes, 1);
    if (atomic_load(&fail_in) >= 0 && atomic_fetch_sub(&fail_in, 1) == 0) {
        errno = atomic_load(&fail_with);
        return -1;
    }
    return (ssize_t)syscall(SYS_pwrite64, fd, p, n, at);
}

/* ---- connections ---- */

struct conn {
    struct walfile *w;
    sqlite3 *db;
};

static void run(sqlite3 *db, const char *text)
{
    char *msg = NULL;
    CHECK_EQ(sqlite3_exec(db, text, NULL, NULL, &msg), SQLITE_OK);
    if (msg)
        printf("    %s: %s\n", text, msg);
    sqlite3_free(msg);
}

static int64_t ask(sqlite3 *db, const char *text)
{
    sqlite3_stmt *st = NULL;
    int64_t v = INT64_MIN;
    CHECK_EQ(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
    if (sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    CHECK_EQ(sqlite3_finalize(st), SQLITE_OK);
    return v;
}

static struct conn open_joined(const char *pragmas)
{
    struct conn c = {.w = walfile_new(&syncs)};
    CHECK_EQ(
        sqlite3_open_v2(place.path, &c.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, walfile_name(c.w)),
        SQLITE_OK);
    sqlite3_busy_timeout(c.db, 5000);
    run(c.db, pragmas);
    run(c.db, "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=NORMAL");
    run(c.db, "CREATE TABLE IF NOT EXISTS t (k INTEGER PRIMARY KEY, v INTEGER, pad BLOB)");
    return c;
}

static void close_joined(struct conn *c)
{
    CHECK_EQ(sqlite3_close(c->db), SQLITE_OK);
    walfile_free(c->w);
}

static sqlite3 *open_plain(const char *path)
{
    sqlite3 *db = NULL;
    CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    run(db, "PRAGMA wal_autocheckpoint=0");
    return db;
}

/* Rows from..to - 1, each on a page of its own, get v. */
static void put(sqlite3 *db, int from, int to, int v)
{
    char text[256];
    snprintf(text, sizeof text,
             "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %d)"
             "INSERT OR REPLACE INTO t SELECT i, %d, zeroblob(3000) FROM n",
             from, to, v);
    run(db, text);
}

static bool is_sound(sqlite3 *db)
{
    sqlite3_stmt *st = NULL;
    CHECK_EQ(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL), SQLITE_OK);
    bool ok = sqlite3_step(st) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0;
    sqlite3_finalize(st);
    return ok;
}

/* ---- what a crash would leave ---- */

static void copy_file(const char *from, const char *to)
{
    static char block[1 << 16];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while ((n = read(in, block, sizeof block)) > 0)
        CHECK_EQ(write(out, block, (size_t)n), n);
    close(in);
    close(out);
}

/* Opens what is in the files now, without the shared memory: a process that was killed leaves just this. */
static sqlite3 *open_copy(void)
{
    char from[200], to[200], wal[210];
    snprintf(to, sizeof to, "%s/copy.db", place.folder);
    copy_file(place.path, to);
    snprintf(from, sizeof from, "%s-wal", place.path);
    snprintf(wal, sizeof wal, "%s-wal", to);
    copy_file(from, wal);
    sqlite3 *db = open_plain(to);
    run(db, "PRAGMA synchronous=OFF");
    return db;
}

static void expect_in_files(const char *question, int64_t want)
{
    sqlite3 *db = open_copy();
    CHECK_EQ(ask(db, question), want);
    CHECK(is_sound(db));
    sqlite3_close(db);
}

static void every_commit_is_in_the_file(void)
{
    static const char *const levels[] = {"PRAGMA synchronous=NORMAL", "PRAGMA synchronous=FULL"};
    static const int sizes[] = {1, 2, 29, 30, 31, 32, 33, 60, 61, 62, 63, 64, 65, 300, 1};
    struct conn c = open_joined("");
    for (int level = 0; level < 2; level++) {
        run(c.db, levels[level]);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            int v = level * 100 + (int)i + 1;
            run(c.db, "DELETE FROM t");
            put(c.db, 0, sizes[i], v);
            expect_in_files("SELECT count(*) * 1000 + min(v) * (min(v) = max(v)) FROM t",
                            sizes[i] * 1000 + v);
        }
    }
    CHECK(histogram_count(&syncs) > 15);
    close_joined(&c);
}

static void writes_are_joined(void)
{
    struct conn c = open_joined("PRAGMA cache_size=10000");
    put(c.db, 0, 10, 1);
    atomic_store(&writes, 0);
    put(c.db, 0, 5, 2);
    CHECK_EQ(atomic_load(&writes), 1);
    atomic_store(&writes, 0);
    put(c.db, 0, 1000, 3);
    CHECK(atomic_load(&writes) >= 1000 / 31 && atomic_load(&writes) < 50);
    close_joined(&c);
}

static void pages_of_any_size(void)
{
    static const int sizes[] = {512, 1024, 8192, 32768, 65536};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char text[64];
        new_place();
        snprintf(text, sizeof text, "PRAGMA page_size=%d", sizes[i]);
        struct conn c = open_joined(text);
        CHECK_EQ(ask(c.db, "PRAGMA page_size"), sizes[i]);
        for (int v = 0; v < 5; v++) {
            put(c.db, v, 200, v);
            expect_in_files("SELECT count(*) * 100 + max(v) FROM t", 20000 + v);
        }
        close_joined(&c);
    }
}

/* ---- transactions larger than the page cache ---- */

#define ROWS 400

static bool agrees(sqlite3 *db, const int *want)
{
    sqlite3_stmt *st = NULL;
    int n = 0;
    bool ok = true;
    CHECK_EQ(sqlite3_prepare_v2(db, "SELECT k, v FROM t ORDER BY k", -1, &st, NULL), SQLITE_OK);
    while (sqlite3_step(st) == SQLITE_ROW && n < ROWS) {
        ok = ok && sqlite3_column_int(st, 0) == n && sqlite3_column_int(st, 1) == want[n];
        n++;
    }
    return sqlite3_finalize(st) == SQLITE_OK && ok && n == ROWS;
}

static void change_some(sqlite3 *db, int *want, int v)
{
    int from = rand() % ROWS, to = from + 1 + rand() % 60;
    to = to > ROWS ? ROWS : to;
    put(db, from, to, v);
    for (int i = from; i < to; i++)
        want[i] = v;
}

/* Spilled pages are read again, written again, undone to a savepoint, undone as a whole. */
static void pages_that_are_spilled(void)
{
    struct conn c = open_joined("PRAGMA cache_size=8");
    int committed[ROWS] = {0}, now[ROWS], saved[ROWS];
    put(c.db, 0, ROWS, 0);
    srand(3);
    for (int round = 0; round < 30; round++) {
        memcpy(now, committed, sizeof now);
        run(c.db, "BEGIN");
        for (int i = 0; i < 6; i++) {
            change_some(c.db, now, round * 10 + i);
            memcpy(saved, now, sizeof now);
            run(c.db, "SAVEPOINT here");
            change_some(c.db, now, round * 10 + i);
            CHECK(agrees(c.db, now));
            if (rand() % 2) {
                run(c.db, "ROLLBACK TO here");
                memcpy(now, saved, sizeof now);
            }
            run(c.db, "RELEASE here");
            CHECK(agrees(c.db, now));
        }
        if (rand() % 3) {
            run(c.db, "COMMIT");
            memcpy(committed, now, sizeof now);
        } else {
            run(c.db, "ROLLBACK");
        }
        CHECK(agrees(c.db, committed));
        sqlite3 *copy = open_copy();
        CHECK(agrees(copy, committed));
        CHECK(is_sound(copy));
        sqlite3_close(copy);
        if (round % 7 == 6)
            run(c.db, "PRAGMA wal_checkpoint(RESTART)");
    }
    close_joined(&c);
}

/* ---- other connections ---- */

/* Frames that were rolled back never appear in a place that is another's by now. */
static void another_writes_after_a_rollback(void)
{
    struct conn c = open_joined("PRAGMA cache_size=8");
    sqlite3 *other = open_plain(place.path);
    put(c.db, 0, 100, 0);
    for (int i = 1; i <= 40; i++) {
        run(c.db, "BEGIN");
        put(c.db, 0, 12 + i % 20, -i);
        run(c.db, "ROLLBACK");
        put(other, 0, 1 + i, i);
        expect_in_files("SELECT min(v) * 1000 + max(v) FROM t WHERE k < 100", i);
        put(c.db, 100, 100 + i, i);
        expect_in_files("SELECT v FROM t WHERE k = 0", i);
        CHECK_EQ(ask(other, "SELECT max(v) FROM t WHERE k >= 100"), i);
        CHECK_EQ(ask(c.db, "SELECT min(v) FROM t"), 0);
    }
    CHECK(is_sound(c.db));
    sqlite3_close(other);
    close_joined(&c);
}

static atomic_bool done;

/* Every commit changes all rows: whoever sees two values has seen half a commit. */
static void *read_along(void *arg)
{
    int64_t *seen = arg, last = 0;
    sqlite3 *db = open_plain(place.path);
    while (!atomic_load(&done)) {
        int64_t v = ask(db, "SELECT min(v) FROM t WHERE (SELECT count(*) = 80 AND min(v) = max(v) FROM t)");
        CHECK(v >= last);
        *seen += v > last;
        last = v;
    }
    CHECK(is_sound(db));
    sqlite3_close(db);
    return NULL;
}

static void readers_see_whole_commits(void)
{
    pthread_t reader;
    int64_t seen = 0;
    struct conn c = open_joined("PRAGMA cache_size=30");
    put(c.db, 0, 80, 1);
    atomic_store(&done, false);
    CHECK_EQ(pthread_create(&reader, NULL, read_along, &seen), 0);
    for (int v = 2; v < 400; v++) {
        put(c.db, 0, 80, v);
        if (v % 50 == 0)
            run(c.db, "PRAGMA wal_checkpoint(PASSIVE)");
    }
    atomic_store(&done, true);
    pthread_join(reader, NULL);
    CHECK(seen > 0);
    close_joined(&c);
}

static void the_log_starts_over(void)
{
    static const char *const kinds[] = {
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(FULL)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    };
    struct conn c = open_joined("PRAGMA journal_size_limit=100000");
    sqlite3 *other = open_plain(place.path);
    int v = 0;
    for (int i = 0; i < 24; i++) {
        put(c.db, 0, 50 + i, ++v);
        run(i % 2 ? c.db : other, kinds[i / 2 % 4]);
        put(i % 3 ? c.db : other, 0, 5, ++v);
        expect_in_files("SELECT v FROM t WHERE k = 4", v);
        put(c.db, 0, 40, ++v);
        expect_in_files("SELECT sum(v) FROM t WHERE k < 40", 40 * v);
        CHECK_EQ(ask(other, "SELECT v FROM t WHERE k = 39"), v);
    }
    sqlite3_close(other);
    close_joined(&c);
    CHECK_EQ(outside_i64("SELECT sum(v) FROM t WHERE k < 40"), 40 * v);
}

static void a_log_that_was_there_before(void)
{
    struct conn c = open_joined("");
    close_joined(&c);
    sqlite3 *other = open_plain(place.path);
    put(other, 0, 20, 1);
    c = open_joined("");
    put(c.db, 0, 10, 2); /* where this begins is not known */
    atomic_store(&writes, 0);
    put(c.db, 0, 10, 3);
    CHECK_EQ(atomic_load(&writes), 1);
    expect_in_files("SELECT sum(v) FROM t", 40);
    sqlite3_close(other);
    close_joined(&c);
}

/* The log is closed and opened again, other databases come and go. */
static void other_files(void)
{
    char text[256];
    struct conn c = open_joined("");
    put(c.db, 0, 100, 1);
    snprintf(text, sizeof text, "ATTACH '%s/second.db' AS second", place.folder);
    run(c.db, text);
    run(c.db, "PRAGMA second.journal_mode=WAL; CREATE TABLE second.u AS SELECT * FROM main.t");
    run(c.db, "BEGIN; UPDATE main.t SET v = 2; UPDATE second.u SET v = 2; COMMIT");
    expect_in_files("SELECT sum(v) FROM t", 200);
    CHECK_EQ(ask(c.db, "SELECT sum(v) FROM second.u"), 200);
    run(c.db, "DETACH second; DELETE FROM t WHERE k >= 50; VACUUM");
    expect_in_files("SELECT sum(v) FROM t", 100);
    run(c.db, "PRAGMA journal_mode=DELETE");
    put(c.db, 0, 50, 3);
    run(c.db, "PRAGMA journal_mode=WAL");
    put(c.db, 0, 50, 4);
    expect_in_files("SELECT sum(v) FROM t", 200);
    close_joined(&c);
}

/* ---- failing writes ---- */

/* Two statements in a transaction, larger than the cache. Whatever happens, the transaction is whole or not
   there, and has not been committed when a write failed. */
static bool two_statements(sqlite3 *db)
{
    static const char *const texts[] = {
        "BEGIN",
        "UPDATE t SET v = v + 1 WHERE k < 60",
        "SAVEPOINT here",
        "INSERT INTO t SELECT k + 1000, v, zeroblob(3000) FROM t WHERE k < 60",
        "SELECT sum(v) FROM t",
        "UPDATE t SET v = v + 1 WHERE k >= 40",
        "RELEASE here",
        "COMMIT",
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ok = sqlite3_exec(db, texts[i], NULL, NULL, NULL) == SQLITE_OK && ok;
        if (sqlite3_get_autocommit(db)) /* after some errors all is rolled back, after others one may go on */
            return ok;
    }
    run(db, "ROLLBACK");
    return false;
}

static void a_write_fails(void)
{
    static const int reasons[] = {ENOSPC, EIO, EDQUOT};
    struct conn c = open_joined("PRAGMA cache_size=8");
    put(c.db, 0, 100, 0);
    int failed = 0;
    for (int i = 0; i < 2000; i += 1 + i / 20) {
        atomic_store(&fail_with, reasons[i % 3]);
        atomic_store(&fail_in, i);
        bool ok = two_statements(c.db);
        bool met = atomic_exchange(&fail_in, -1) < 0;
        CHECK_EQ(ok, !met);
        failed += !ok;
        static const char question[] = "SELECT count(*) * 1000 + sum(v) FROM t";
        CHECK_EQ(ask(c.db, question), ok ? 160240 : 100000);
        expect_in_files(question, ok ? 160240 : 100000);
        if (ok)
            break;
        if (i % 4 == 0) /* work goes on */
            run(c.db, "UPDATE t SET pad = zeroblob(3001) WHERE k < 20");
    }
    CHECK(failed > 5);
    CHECK_EQ(ask(c.db, "SELECT count(*) FROM t"), 160);
    CHECK(is_sound(c.db));
    close_joined(&c);
}

/* Frames are lost where SQLite does not take it for the transaction's failure: they are not read as something
   else, and the transaction cannot be committed. */
static void what_was_lost_is_not_committed(void)
{
    struct conn c = open_joined("PRAGMA cache_size=8");
    sqlite3_file *log = NULL;
    sqlite3_int64 size;
    put(c.db, 0, 100, 0);
    for (int i = 0; i < 4; i++) {
        run(c.db, "BEGIN; UPDATE t SET v = 1 WHERE k < 30");
        CHECK_EQ(sqlite3_file_control(c.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log), SQLITE_OK);
        atomic_store(&fail_with, EDQUOT);
        atomic_store(&fail_in, 0);
        CHECK_EQ(log->pMethods->xFileSize(log, &size), SQLITE_IOERR_WRITE);
        CHECK_EQ(atomic_load(&fail_in), -1);
        errno = 0;
        if (i < 2)
            CHECK_EQ(sqlite3_exec(c.db, "SELECT sum(v) FROM t", NULL, NULL, NULL), SQLITE_IOERR);
        else
            CHECK_EQ(sqlite3_exec(c.db, "COMMIT", NULL, NULL, NULL), SQLITE_IOERR);
        CHECK_EQ(sqlite3_system_errno(c.db), EDQUOT);
        int last = 0;
        CHECK_EQ(log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &last), SQLITE_OK);
        CHECK_EQ(last, EDQUOT);
        if (!sqlite3_get_autocommit(c.db))
            run(c.db, "ROLLBACK");
        CHECK_EQ(ask(c.db, "SELECT sum(v) FROM t"), 0);
        expect_in_files("SELECT sum(v) FROM t", 0);
    }
    CHECK(is_sound(c.db));
    close_joined(&c);
}

/* Through sql/sqlite.h: that there is no space is told as such, in whichever statement it shows. */
static void no_space_in_a_large_transaction(void)
{
    struct sqlite_options o = {.path = place.path, .cache_bytes = 1 << 16, .sync = SQL_SYNC_NEVER};
    struct sqlite *c = NULL;
    struct rlimit limit, before;
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE_OK(sqlite_open(&o, &c, &err), &err);
    CHECK_OK(sqlite_exec(c, "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER, pad BLOB)", &err), &err);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    for (rlim_t kib = 100; kib < 1500; kib += 70) {
        limit = before;
        limit.rlim_cur = kib << 10;
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
        CHECK_OK(sqlite_begin(c, SQL_WRITE, NULL, &err), &err);
        enum status st = ST_OK;
        for (int i = 0; i < 600 && st == ST_OK; i++)
            st = sqlite_exec(c, "INSERT INTO t (v, pad) VALUES (1, zeroblob(3000))", &err);
        if (st == ST_OK)
            st = sqlite_commit(c, &err);
        CHECK_EQ(st, ST_FULL);
        sqlite_rollback(c);
        CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    }
    CHECK_OK(sqlite_begin(c, SQL_WRITE, NULL, &err), &err);
    CHECK_OK(sqlite_exec(c, "INSERT INTO t (v, pad) VALUES (1, zeroblob(3000))", &err), &err);
    CHECK_OK(sqlite_commit(c, &err), &err);
    CHECK_EQ(outside_i64("SELECT count(*) FROM t"), 1);
    sqlite_close(c);
    sqlite3 *db = open_plain(place.path);
    CHECK(is_sound(db));
    sqlite3_close(db);
}

int main(int argc, char **argv)
{
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(every_commit_is_in_the_file);
    IN_NEW_PLACE(writes_are_joined);
    IN_NEW_PLACE(pages_of_any_size);
    IN_NEW_PLACE(pages_that_are_spilled);
    IN_NEW_PLACE(another_writes_after_a_rollback);
    IN_NEW_PLACE(readers_see_whole_commits);
    IN_NEW_PLACE(the_log_starts_over);
    IN_NEW_PLACE(a_log_that_was_there_before);
    IN_NEW_PLACE(other_files);
    IN_NEW_PLACE(a_write_fails);
    IN_NEW_PLACE(what_was_lost_is_not_committed);
    IN_NEW_PLACE(no_space_in_a_large_transaction);
    return check_done();
}
