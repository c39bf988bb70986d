/* The store on SQLite: who owns the file, what others may do to it meanwhile, versions, views, and what
   `larder check` finds. Failing disks are in disk_test.c. */
#include <spawn.h>

#include "admin/check.h"
#include "contract/fixture.h"
#include "sql/sqlite.h"
#include "store/journal_rows.h"
#include "store/sqlite/schema.h"

extern char **environ;

static struct store *s;
static struct error err;

static void open_store(void)
{
    struct store_options o = options();
    CHECK_OK(store_open(&o, &s, &err), &err);
    if (!s)
        exit(EXIT_FAILURE);
}

static void close_store(void)
{
    store_close(s);
    s = NULL;
}

static void put(const char *key, const char *value)
{
    struct key_row k = string_row(0, slice_str(key), slice_str(value));
    struct rows r = {0};
    if (get_key(s, 0, k.key, &r))
        k.seq = r.keys[0].seq;
    rows_release(&r);
    CHECK_OK(put_key_now(s, &k, &err), &err);
}

/* ---- ownership ---- */

/* In another process, because a process that opens the file twice loses its own locks. */
static int try_to_open(const char *path)
{
    struct store_options o = options();
    struct store *other = NULL;
    o.url = path;
    enum status st = store_open(&o, &other, &err);
    printf("%s\n", st == ST_OK ? "" : err.text);
    store_close(other);
    return (int)st;
}

static int open_in_another_process(char *text, size_t cap)
{
    char self[] = "/proc/self/exe", role[] = "--open";
    char *argv[] = {self, role, place.path, NULL};
    int pipe_fds[2], status = -1;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    CHECK_EQ(pipe(pipe_fds), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipe_fds[0]);
    CHECK_EQ(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(pipe_fds[1]);
    FILE *f = fdopen(pipe_fds[0], "r");
    if (!fgets(text, (int)cap, f))
        text[0] = '\0';
    fclose(f);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_second_server_is_refused(void)
{
    char text[512], pid[32];
    open_store();
    put("k", "v");
    CHECK_EQ(open_in_another_process(text, sizeof text), ST_LOCKED);
    snprintf(pid, sizeof pid, "pid %ld on host", (long)getpid());
    CHECK(strstr(text, place.path) != NULL);
    CHECK(strstr(text, pid) != NULL);
    /* The refused one did us no harm: we go on, and are still protected. */
    put("k", "w");
    CHECK_EQ(open_in_another_process(text, sizeof text), ST_LOCKED);
    close_store();
    CHECK_EQ(open_in_another_process(text, sizeof text), ST_OK);
    CHECK_EQ(outside_i64("SELECT length(value) FROM larder_meta WHERE name = 'owner'"), 0);
}

static void urls_and_paths(void)
{
    char path[256];
    struct store_options o = options();
    struct store *other = NULL;
    const struct {
        const char *url;
        enum status want;
    } bad[] = {
        {"oracle://localhost/x", ST_INVALID},     {"sqlite:", ST_INVALID},    {"", ST_INVALID},
        {"/nonexistent-folder/x.db", ST_MISSING}, {place.folder, ST_INVALID}, {"/dev/null", ST_INVALID},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check.context = bad[i].url;
        o.url = bad[i].url;
        CHECK_EQ(store_open(&o, &other, &err), bad[i].want);
        CHECK(err.text[0] != '\0');
        CHECK_EQ(err.code, bad[i].want);
    }
    check.context = NULL;
    /* Names that SQLite could take for something else. */
    const char *const good[] = {"a?b=c%20#d.db", " x", "\xc3\xa4.db", "sqlite"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(path, sizeof path, "SQLite:%s/%s", place.folder, good[i]);
        o.url = path;
        CHECK_OK(store_open(&o, &other, &err), &err);
        store_close(other);
        CHECK_EQ(access(path + strlen("SQLite:"), F_OK), 0);
        other = NULL;
    }
    CHECK_EQ(chdir(place.folder), 0);
    o.url = "sqlite:file:x?mode=memory";
    CHECK_OK(store_open(&o, &other, &err), &err);
    store_close(other);
    CHECK_EQ(access("file:x?mode=memory", F_OK), 0);
    CHECK_EQ(chdir("/"), 0);
}

static void reading_beside_the_owner(void)
{
    struct store_options o = options();
    struct store *reader = NULL;
    o.read_only = true;
    CHECK_EQ(store_open(&o, &reader, &err), ST_MISSING);
    open_store();
    put("k", "v");
    REQUIRE_OK(store_open(&o, &reader, &err), &err);
    struct rows r = {0};
    CHECK(get_key(reader, 0, SLICE("k"), &r));
    rows_release(&r);
    CHECK_EQ(store_begin(reader, STORE_WRITE, NULL, NULL, &err), ST_READONLY);
    bool changed = true;
    CHECK_OK(store_begin(reader, STORE_READ, NULL, &changed, &err), &err);
    CHECK(!changed);
    store_rollback(reader);
    put("k", "w");
    CHECK_OK(store_begin(reader, STORE_READ, NULL, &changed, &err), &err);
    CHECK(changed);
    store_rollback(reader);
    int64_t id;
    CHECK_EQ(store_reserve_ids(reader, 1, &id, &err), ST_READONLY);
    store_close(reader);
    close_store();
}

/* ---- other writers ---- */

static bool changed_outside(enum store_txn kind)
{
    bool changed = true;
    CHECK_OK(store_begin(s, kind, NULL, &changed, &err), &err);
    store_rollback(s);
    return changed;
}

static void writes_of_others_are_noticed(void)
{
    open_store();
    CHECK(!changed_outside(STORE_WRITE));
    put("a", "1");
    CHECK(!changed_outside(STORE_READ)); /* our own */
    outside("UPDATE larder_key SET value = x'32' WHERE key = x'61'");
    CHECK(changed_outside(STORE_WRITE));
    CHECK(!changed_outside(STORE_WRITE)); /* told once */
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("a"), &r));
    CHECK_SLICE(r.keys[0].value, SLICE("2"));
    rows_release(&r);
    outside("UPDATE larder_key SET value = x'33' WHERE key = x'61'");
    CHECK(changed_outside(STORE_READ));
    outside("SELECT * FROM larder_keys");
    CHECK(!changed_outside(STORE_READ)); /* a reader changes nothing */
    /* What only reorganises the file is no change, nor is what we undo. */
    outside("PRAGMA wal_checkpoint(PASSIVE)");
    CHECK(!changed_outside(STORE_WRITE));
    put("b", "1");
    CHECK(!changed_outside(STORE_WRITE));
    /* A sweep in between does not swallow it. */
    outside("UPDATE larder_key SET expire_at = 1 WHERE key = x'62'");
    struct db_row dbs[DATABASES];
    uint32_t next;
    struct sweep_result swept;
    CHECK_OK(store_load_dbs(s, dbs, DATABASES, &next, &err), &err);
    struct sweep_budget b = {.now = 5, .max_rows = 10, .dbs = dbs, .ndbs = DATABASES};
    CHECK_OK(store_sweep(s, &b, &swept, &err), &err);
    CHECK_EQ(swept.expired, 1);
    CHECK(changed_outside(STORE_WRITE));
    close_store();
}

static void checkpoints_are_no_change(void)
{
    char *big = calloc(1, 60000);
    open_store();
    struct store_info info = {0};
    for (int i = 0; i < 400; i++) {
        struct key_row k = string_row(0, slice_of(&i, sizeof i), slice_of(big, 60000));
        bool changed = true;
        struct changes c = {.keys = &k, .nkeys = 1};
        REQUIRE_OK(store_begin(s, STORE_WRITE, NULL, &changed, &err), &err);
        CHECK(!changed);
        CHECK_OK(store_apply(s, &c, &err), &err);
        CHECK_OK(store_commit(s, &err), &err);
    }
    CHECK_OK(store_info(s, &info, &err), &err);
    CHECK(info.wal_bytes > 4 << 20); /* so that checkpoints have happened */
    close_store();
    free(big);
}

static void put_many(int from, int to)
{
    static char big[60000];
    CHECK_OK(store_begin(s, STORE_WRITE_LAZY, NULL, NULL, &err), &err);
    for (int i = from; i < to; i++) {
        struct key_row k = string_row(0, slice_of(&i, sizeof i), slice_of(big, sizeof big));
        struct changes c = {.keys = &k, .nkeys = 1};
        CHECK_OK(store_apply(s, &c, &err), &err);
    }
    CHECK_OK(store_commit(s, &err), &err);
}

/* Nothing but a checkpoint makes the log short: neither its length nor a commit. A process that reads an old
   state keeps it long, and what it reads is still there; when it has ended the next checkpoint is enough. */
static void bulk_is_checkpointed_when_asked(void)
{
    sqlite3 *db = NULL;
    struct store_info info = {0};
    open_store();
    REQUIRE_OK(store_write_in_bulk(s, NULL, NULL, &err), &err);
    put_many(0, 700); /* more pages than the background would wait for */
    put_many(700, 701);
    uint64_t grown = store_wal_bytes(s);
    CHECK(grown > 700 * UINT64_C(60000));
    CHECK_EQ(sqlite3_open(place.path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "BEGIN; SELECT count(*) FROM larder_key", NULL, NULL, NULL), SQLITE_OK);
    put_many(701, 702);
    CHECK_OK(store_checkpoint(s, &err), &err);
    CHECK(store_wal_bytes(s) > grown);
    CHECK_EQ(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    CHECK_OK(store_checkpoint(s, &err), &err);
    CHECK_EQ(store_wal_bytes(s), 0);
    put_many(702, 703); /* from the log's beginning again */
    CHECK(store_wal_bytes(s) < 1 << 20);
    CHECK_OK(store_info(s, &info, &err), &err);
    CHECK(info.bytes > 700 * UINT64_C(60000));
    close_store();
    open_store();
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_key"), 703);
    close_store();
}

static void a_held_lock_is_busy(void)
{
    sqlite3 *db = NULL;
    open_store();
    put("k", "v");
    CHECK_EQ(sqlite3_open(place.path, &db), SQLITE_OK);
    CHECK_EQ(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    CHECK_EQ(store_begin(s, STORE_WRITE, NULL, NULL, &err), ST_BUSY);
    CHECK_OK(store_begin(s, STORE_READ, NULL, NULL, &err), &err); /* reads go on */
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    rows_release(&r);
    store_rollback(s);
    CHECK_EQ(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    put("k", "w");
    sqlite3_close(db);
    close_store();
}

static void more_databases_later(void)
{
    struct db_row dbs[40];
    uint32_t next;
    open_store();
    struct db_row flushed = {0, DATABASES, 0, 0};
    struct changes c = {.dbs = &flushed, .ndbs = 1};
    CHECK_OK(apply_now(s, &c, &err), &err);
    CHECK_EQ(store_load_dbs(s, dbs, 40, &next, &err), ST_CORRUPT);
    close_store();
    struct store_options o = options();
    o.databases = 40;
    REQUIRE_OK(store_open(&o, &s, &err), &err);
    CHECK_OK(store_load_dbs(s, dbs, 40, &next, &err), &err);
    CHECK_EQ(dbs[0].number, DATABASES);
    CHECK_EQ(dbs[16].number, 17); /* 16 has been used */
    CHECK_EQ(dbs[39].number, 40);
    CHECK_EQ(next, 41);
    close_store();
}

/* ---- versions ---- */

static void a_newer_version_is_refused(void)
{
    struct store_options o = options();
    open_store();
    put("k", "v");
    close_store();
    outside("UPDATE larder_meta SET value = 99 WHERE name = 'schema_version'");
    for (int i = 0; i < 2; i++) {
        o.read_only = i == 1;
        CHECK_EQ(store_open(&o, &s, &err), ST_NEWER);
        CHECK(strstr(err.text, "version 99") != NULL);
        CHECK(strstr(err.text, " 4") != NULL);
    }
    bool ok;
    CHECK_EQ(store_check(place.path, stdout, &ok, &err), ST_NEWER);
    outside("UPDATE larder_meta SET value = 4 WHERE name = 'schema_version'");
    open_store();
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    rows_release(&r);
    close_store();
}

static const struct schema_step next_steps[] = {
    {1, "this is never run"},
    {2, "nor is this"},
    {3, "nor this"},
    {4, "nor this one"},
    {5, "ALTER TABLE larder_db ADD COLUMN note TEXT; UPDATE larder_db SET note = 'x'"},
    {6, "CREATE TABLE larder_new (a INTEGER) STRICT; INSERT INTO larder_new VALUES (7)"},
    {7, "CREATE TABLE larder_other (a INTEGER) STRICT; INSERT INTO nowhere VALUES (7)"},
};

static void migrations_are_all_or_nothing(void)
{
    open_store();
    put("k", "v");
    close_store();
    struct sqlite_options o = {.path = place.path, .cache_bytes = 1 << 20};
    struct sqlite *c = NULL;
    int64_t version = -1;
    REQUIRE_OK(sqlite_open(&o, &c, &err), &err);
    CHECK(schema_migrate(c, next_steps, 7, &err) != ST_OK);
    CHECK_OK(schema_read_version(c, &version, &err), &err);
    CHECK_EQ(version, SCHEMA_VERSION);
    CHECK(sqlite_exec(c, "SELECT note FROM larder_db", &err) != ST_OK);
    CHECK_OK(schema_migrate(c, next_steps, 6, &err), &err);
    CHECK_OK(schema_read_version(c, &version, &err), &err);
    CHECK_EQ(version, 6);
    CHECK_OK(schema_migrate(c, next_steps, 6, &err), &err); /* nothing left to do */
    CHECK_EQ(schema_migrate(c, next_steps, 5, &err), ST_NEWER);
    sqlite_close(c);
    CHECK_EQ(outside_i64("SELECT a FROM larder_new"), 7);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_db WHERE note = 'x'"), DATABASES);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_keys"), 1);
}

/* A file of version 1, with data, becomes one of this version
   where it is. */
static void version_1_is_migrated(void)
{
    struct sqlite_options o = {.path = place.path, .cache_bytes = 1 << 20};
    struct sqlite *c = NULL;
    REQUIRE_OK(sqlite_open(&o, &c, &err), &err);
    REQUIRE_OK(schema_migrate(c, schema_steps, 1, &err), &err);
    sqlite_close(c);
    outside("INSERT INTO larder_db SELECT value, value, value = 0, 0 FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,"
            "11,12,13,14,15]');"
            "UPDATE larder_meta SET value = 16 WHERE name = 'next_db_number';"
            "INSERT INTO larder_key VALUES (1, 0, x'6b', 1, 0, 0, 0, 7, 0, x'76')");
    CHECK_EQ(outside_i64("SELECT count(*) FROM sqlite_schema WHERE name = 'larder_row'"), 0);
    open_store();
    struct rows r = {0};
    CHECK(get_key(s, 0, SLICE("k"), &r));
    rows_release(&r);
    struct key_row t = {.key = SLICE("t"), .type = ROW_TABLE, .id = 1, .value = SLICE("{}"), .version = 1};
    REQUIRE_OK(put_key_now(s, &t, &err), &err);
    close_store();
    CHECK_EQ(outside_i64("SELECT value FROM larder_meta WHERE name = 'schema_version'"), SCHEMA_VERSION);
    CHECK_EQ(
        outside_i64("SELECT count(*) FROM larder_row") + outside_i64("SELECT count(*) FROM larder_entry"), 0);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_keys WHERE key = 'k' AND type = 'string'"), 1);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_keys WHERE key = 't' AND type = 'table'"), 1);
}

/* A file of version 3 with collections: its rows stay as they are, and numbers with holes can be kept from
   then on. */
static void version_3_is_migrated(void)
{
    struct sqlite_options o = {.path = place.path, .cache_bytes = 1 << 20};
    struct sqlite *c = NULL;
    REQUIRE_OK(sqlite_open(&o, &c, &err), &err);
    REQUIRE_OK(schema_migrate(c, schema_steps, 3, &err), &err);
    sqlite_close(c);
    outside("INSERT INTO larder_db SELECT value, value, value = 0, 0 FROM json_each('[0,1,2,3,4,5,6,7,8,9,10,"
            "11,12,13,14,15]');"
            "UPDATE larder_meta SET value = 16 WHERE name = 'next_db_number';"
            "UPDATE larder_meta SET value = 2 WHERE name = 'next_id';"
            "INSERT INTO larder_key VALUES (1, 0, x'6b', 4, 1, 2, 0, 7, 0, x'');"
            "INSERT INTO larder_set VALUES (1, x'61', 0), (1, x'62', 1)");
    open_store();
    struct rows r = {0};
    REQUIRE(get_key(s, 0, SLICE("k"), &r));
    CHECK_EQ(r.keys[0].numbers, 0);
    CHECK_EQ(r.keys[0].size, 2);
    rows_release(&r);
    struct key_row k = {
        .seq = 1, .key = SLICE("k"), .type = ROW_SET, .id = 1, .size = 1, .numbers = 2, .version = 8};
    const struct item_ref gone = {.table = ITEM_SET, .id = 1, .name = SLICE("a")};
    struct changes change = {.keys = &k, .nkeys = 1, .gone = &gone, .ngone = 1};
    REQUIRE_OK(apply_now(s, &change, &err), &err);
    close_store();
    CHECK_EQ(outside_i64("SELECT value FROM larder_meta WHERE name = 'schema_version'"), SCHEMA_VERSION);
    CHECK_EQ(outside_i64("SELECT numbers FROM larder_key WHERE key = x'6b'"), 2);
    CHECK_EQ(outside_i64("SELECT ord FROM larder_set WHERE id = 1"), 1);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_sets WHERE member = 'b'"), 1);
}

static void lives_beside_other_tables(void)
{
    outside("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    open_store();
    put("k", "v");
    close_store();
    CHECK_EQ(outside_i64("SELECT count(*) FROM mine"), 1);
    CHECK_EQ(outside_i64("SELECT count(*) FROM larder_strings WHERE key = 'k' AND value = 'v'"), 1);
}

/* ---- what people see ---- */

static void fill(void)
{
    struct key_row k[] = {
        string_row(0, SLICE("plain"), SLICE("v")),
        {.key = SLICE("hash"), .type = ROW_HASH, .id = 1, .size = 2, .first = 1},
        {.key = SLICE("list"), .type = ROW_LIST, .id = 2, .size = 2, .first = -1},
        {.key = SLICE("set"), .type = ROW_SET, .id = 3, .size = 2},
        {.key = SLICE("zset"), .type = ROW_ZSET, .id = 4, .size = 2},
        {.key = SLICE("long"), .type = ROW_STRING, .id = 5, .size = 20000},
        {.key = SLICE("expired"), .type = ROW_SET, .id = 6, .size = 1, .expire_at = 1},
        {.key = SLICE("deleted"), .type = ROW_NONE, .expire_at = EXPIRE_DELETED},
        {.key = SLICE("later"), .type = ROW_STRING, .expire_at = INT64_C(4102444800000), .value = SLICE("x")},
        {.db = 2, .key = SLICE("swapped"), .type = ROW_STRING, .value = SLICE("y")},
    };
    static char chunk[STORE_CHUNK_BYTES];
    memset(chunk, 'c', sizeof chunk);
    struct item_row items[] = {
        {.ref = {ITEM_HASH, 1, SLICE("f"), 0}, .value = SLICE("1"), .ord = 1},
        {.ref = {ITEM_HASH, 1, SLICE("gone"), 0}, .value = SLICE("2"), .ord = 0, .expire_at = 1},
        {.ref = {ITEM_LIST, 2, SLICE(""), -1}, .value = SLICE("first")},
        {.ref = {ITEM_LIST, 2, SLICE(""), 0}, .value = SLICE("second")},
        {.ref = {ITEM_SET, 3, SLICE("m"), 0}, .ord = 0},
        {.ref = {ITEM_SET, 3, SLICE("n"), 0}, .ord = 1},
        {.ref = {ITEM_ZSET, 4, SLICE("m"), 0}, .score = 1.5, .ord = 0},
        {.ref = {ITEM_ZSET, 4, SLICE("n"), 0}, .score = -2, .ord = 1},
        {.ref = {ITEM_CHUNK, 5, SLICE(""), 0}, .value = {chunk, sizeof chunk}},
        {.ref = {ITEM_CHUNK, 5, SLICE(""), 1}, .value = {"end", 3}},
        {.ref = {ITEM_SET, 6, SLICE("m"), 0}},
    };
    struct db_row dbs[] = {{0, 0, 8, 2}, {1, 2, 1, 0}, {2, 1, 0, 0}};
    struct changes c = {.keys = k, .nkeys = 10, .items = items, .nitems = 11, .dbs = dbs, .ndbs = 3};
    int64_t first;
    CHECK_OK(store_reserve_ids(s, 10, &first, &err), &err);
    CHECK_EQ(first, 1);
    CHECK_OK(apply_now(s, &c, &err), &err);
}

static void views_show_what_lives(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        {"SELECT count(*) FROM larder_keys", 8},
        {"SELECT count(*) FROM larder_keys WHERE key IN ('expired', 'deleted')", 0},
        {"SELECT db FROM larder_keys WHERE key = 'swapped'", 1},
        {"SELECT count(*) FROM larder_keys WHERE type = 'hash' AND key = 'hash' AND size = 1", 1},
        {"SELECT size FROM larder_keys WHERE key = 'plain'", 1},
        {"SELECT expires = '2100-01-01 00:00:00.000' FROM larder_keys WHERE key = 'later'", 1},
        {"SELECT ttl > 1e9 FROM larder_keys WHERE key = 'later'", 1},
        {"SELECT count(*) FROM larder_keys WHERE expires IS NULL AND ttl IS NULL", 7},
        {"SELECT count(*) FROM larder_key JOIN larder_keys AS k ON key_bytes = larder_key.key"
         " WHERE k.key = 'plain'",
         1},
        {"SELECT value = 'v' FROM larder_strings WHERE key = 'plain'", 1},
        {"SELECT length(value) FROM larder_strings WHERE key = 'long'", STORE_CHUNK_BYTES + 3},
        {"SELECT value LIKE 'ccc%cend' FROM larder_strings WHERE key = 'long'", 1},
        {"SELECT count(*) FROM larder_hashes", 1},
        {"SELECT field = 'f' AND value = '1' FROM larder_hashes WHERE key = 'hash'", 1},
        {"SELECT count(*) FROM larder_lists", 2},
        {"SELECT position FROM larder_lists WHERE value = 'second'", 1},
        {"SELECT count(*) FROM larder_sets", 2},
        {"SELECT count(*) FROM larder_zsets WHERE score = -2.0 AND member = 'n'", 1},
    };
    open_store();
    fill();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check.context = cases[i].text;
        CHECK_EQ(outside_i64(cases[i].text), cases[i].want);
    }
    close_store();
}

/* ---- larder check ---- */

/* What store_check writes. */
static bool checked(char *text, size_t cap)
{
    bool ok = false;
    FILE *f = fmemopen(text, cap, "w");
    CHECK_OK(store_check(place.path, f, &ok, &err), &err);
    fclose(f);
    return ok;
}

static void check_finds_damage(void)
{
    static const struct {
        const char *damage, *repair, *finding;
    } cases[] = {
        {"UPDATE larder_db SET keys = 7 WHERE db = 0", "UPDATE larder_db SET keys = 8 WHERE db = 0",
         "database 0 counts 7 keys"},
        {"UPDATE larder_db SET expires = 0 WHERE db = 0", "UPDATE larder_db SET expires = 2 WHERE db = 0",
         "database 0 counts 8 keys, 0 with an expiry"},
        {"UPDATE larder_db SET number = 3 WHERE db = 5", "UPDATE larder_db SET number = 5 WHERE db = 5",
         "databases share number 3"},
        {"UPDATE larder_db SET number = 99 WHERE db = 5", "UPDATE larder_db SET number = 5 WHERE db = 5",
         "database 5 has number 99, which was never given out"},
        {"UPDATE larder_key SET db = 77 WHERE key = x'736574'",
         "UPDATE larder_key SET db = 0 WHERE key = x'736574'", "database number 77 has 1 rows"},
        {"UPDATE larder_key SET id = 0 WHERE type = 5", "UPDATE larder_key SET id = 4 WHERE type = 5",
         "key 'zset' (seq "},
        {"UPDATE larder_key SET id = 1 WHERE type = 5", "UPDATE larder_key SET id = 4 WHERE type = 5",
         "2 keys share id 1"},
        {"UPDATE larder_key SET type = 9 WHERE type = 5", "UPDATE larder_key SET type = 5 WHERE type = 9",
         "has the unknown type 9"},
        {"UPDATE larder_key SET expire_at = -1 WHERE type = 5",
         "UPDATE larder_key SET expire_at = 0 WHERE type = 5", "is half deleted"},
        {"UPDATE larder_key SET size = 3 WHERE type = 2", "UPDATE larder_key SET size = 2 WHERE type = 2",
         "its size is 3, but 2 items are numbered 0 to 1"},
        {"UPDATE larder_set SET ord = 1 WHERE id = 3 AND ord = 0",
         "UPDATE larder_set SET ord = 0 WHERE id = 3 AND member = x'6d'",
         "its size is 2, but 2 items are numbered 1 to 1"},
        {"UPDATE larder_zset SET ord = 5 WHERE ord = 1", "UPDATE larder_zset SET ord = 1 WHERE ord = 5",
         "numbered 0 to 5"},
        {"UPDATE larder_key SET numbers = 7 WHERE type = 4;"
         "UPDATE larder_set SET ord = 7 WHERE id = 3 AND ord = 1",
         "UPDATE larder_key SET numbers = 0 WHERE type = 4;"
         "UPDATE larder_set SET ord = 1 WHERE id = 3 AND ord = 7",
         "its size is 2, but 2 items are numbered 0 to 7, 2 numbers of 7"},
        {"UPDATE larder_key SET numbers = 7 WHERE type = 2; UPDATE larder_hash SET ord = 1",
         "UPDATE larder_key SET numbers = 0 WHERE type = 2; UPDATE larder_hash SET ord = 0 WHERE field = "
         "x'676f6e65'",
         "its size is 2, but 2 items are numbered 1 to 1, 1 numbers of 7"},
        {"UPDATE larder_key SET numbers = 7 WHERE type = 2; UPDATE larder_hash SET ord = -1 WHERE ord = 0",
         "UPDATE larder_key SET numbers = 0 WHERE type = 2; UPDATE larder_hash SET ord = 0 WHERE ord = -1",
         "items are numbered -1 to 1"},
        {"UPDATE larder_key SET numbers = 2 WHERE type = 5", "UPDATE larder_key SET numbers = 0",
         "2 items are numbered 0 to 1, 2 numbers of 2"},
        {"UPDATE larder_key SET numbers = 1 WHERE type = 5", "UPDATE larder_key SET numbers = 0",
         "2 items are numbered 0 to 1, 2 numbers of 1"},
        {"UPDATE larder_key SET numbers = 9 WHERE type = 3", "UPDATE larder_key SET numbers = 0",
         "has numbers below 9, and no items that have any"},
        {"UPDATE larder_key SET numbers = 9 WHERE type = 0", "UPDATE larder_key SET numbers = 0",
         "has numbers below 9, and no items that have any"},
        {"UPDATE larder_list SET pos = 7 WHERE pos = 0", "UPDATE larder_list SET pos = 0 WHERE pos = 7",
         "its places are -1 to 0, but 2 items stand at -1 to 7"},
        {"UPDATE larder_key SET size = 16000 WHERE id = 5", "UPDATE larder_key SET size = 20000 WHERE id = 5",
         " has 16000 bytes, its chunk 0 ends behind them"},
        {"INSERT INTO larder_trash VALUES (3, 4)", "DELETE FROM larder_trash", "which is in the trash"},
        {"INSERT INTO larder_trash VALUES (3, 100)", "DELETE FROM larder_trash",
         "database number 3 is in use and in the trash"},
        {"INSERT INTO larder_hash VALUES (50, x'', 0, 0, x'')", "DELETE FROM larder_hash WHERE id = 50",
         "id 50 has rows in larder_hash, but no key refers to it"},
        {"INSERT INTO larder_chunk VALUES (50, 0, x'')", "DELETE FROM larder_chunk WHERE id = 50",
         "id 50 has rows in larder_chunk"},
        {"UPDATE larder_meta SET value = 3 WHERE name = 'next_id'",
         "UPDATE larder_meta SET value = 11 WHERE name = 'next_id'", "has id 4, which was never given out"},
    };
    char text[8192];
    open_store();
    fill();
    if (!checked(text, sizeof text)) { /* beside a running server */
        FAIL("a healthy database has no findings");
        printf("%s", text);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check.context = cases[i].damage;
        outside(cases[i].damage);
        CHECK(!checked(text, sizeof text));
        if (!strstr(text, cases[i].finding)) {
            FAIL("the finding is named");
            printf("%s", text);
        }
        outside(cases[i].repair);
    }
    check.context = NULL;
    outside("INSERT INTO larder_hash VALUES (50, x'', 0, 0, x'');"
            "INSERT INTO larder_trash VALUES (50, 2), (200, 100)");
    CHECK(checked(text, sizeof text)); /* what is in the trash is no damage */
    outside("UPDATE larder_key SET numbers = 9 WHERE type = 5; UPDATE larder_zset SET ord = 8 WHERE ord = 1");
    CHECK(checked(text, sizeof text)); /* nor are holes in numbers */
    close_store();
    bool ok;
    CHECK_EQ(store_check("sqlite:/nonexistent/x", stdout, &ok, &err), ST_MISSING);
}

/* ---- what others have committed, told without a transaction ---- */

/* Whether a session that reads is told, without a lock, that nothing has changed; then it looks, and what it
   learns must not be more. */
static bool same_then_look(struct store *reader)
{
    bool changed = false, same = store_same(reader);
    CHECK_OK(store_begin(reader, STORE_READ, NULL, &changed, &err), &err);
    store_rollback(reader);
    CHECK(!(same && changed));
    return same;
}

static void sameness_is_told_without_a_lock(void)
{
    struct store_options o = options();
    struct store *reader = NULL;
    open_store();
    put("a", "1");
    o.read_only = true;
    REQUIRE_OK(store_open(&o, &reader, &err), &err);
    CHECK(!same_then_look(reader)); /* nothing was seen yet ... */
    (void)same_then_look(reader);   /* ... nor when the header was first found */
    CHECK(same_then_look(reader));
    put("a", "2"); /* a commit of this process */
    CHECK(!same_then_look(reader));
    CHECK(same_then_look(reader));
    outside("UPDATE larder_key SET value = x'33' WHERE key = x'61'"); /* of another one */
    CHECK(!same_then_look(reader));
    CHECK(same_then_look(reader));
    outside("SELECT * FROM larder_keys");
    CHECK(same_then_look(reader));
    outside("BEGIN IMMEDIATE; DELETE FROM larder_key; ROLLBACK");
    CHECK(same_then_look(reader));
    /* A log that starts over, and the first commit in it. */
    outside("PRAGMA wal_checkpoint(TRUNCATE)");
    (void)same_then_look(reader);
    CHECK(same_then_look(reader));
    outside("UPDATE larder_key SET value = x'34' WHERE key = x'61'");
    CHECK(!same_then_look(reader));
    /* There and back between two looks: the table is as it was, and that it was written is seen. */
    outside("UPDATE larder_key SET value = x'35' WHERE key = x'61'");
    outside("UPDATE larder_key SET value = x'34' WHERE key = x'61'");
    CHECK(!same_then_look(reader));
    CHECK(same_then_look(reader));
    store_close(reader);
    close_store();
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return try_to_open(argv[2]);
    CHECK_MAIN(argc, argv);
    IN_NEW_PLACE(a_second_server_is_refused);
    IN_NEW_PLACE(urls_and_paths);
    IN_NEW_PLACE(reading_beside_the_owner);
    IN_NEW_PLACE(writes_of_others_are_noticed);
    IN_NEW_PLACE(checkpoints_are_no_change);
    IN_NEW_PLACE(sameness_is_told_without_a_lock);
    IN_NEW_PLACE(bulk_is_checkpointed_when_asked);
    IN_NEW_PLACE(a_held_lock_is_busy);
    IN_NEW_PLACE(more_databases_later);
    IN_NEW_PLACE(a_newer_version_is_refused);
    IN_NEW_PLACE(migrations_are_all_or_nothing);
    IN_NEW_PLACE(version_1_is_migrated);
    IN_NEW_PLACE(version_3_is_migrated);
    IN_NEW_PLACE(lives_beside_other_tables);
    IN_NEW_PLACE(views_show_what_lives);
    IN_NEW_PLACE(check_finds_damage);
    return check_done();
}
