/* A database in a folder of its own, and short ways to write and read rows, for the suites of the store. */
#ifndef LARDER_TESTS_CONTRACT_FIXTURE_H
#define LARDER_TESTS_CONTRACT_FIXTURE_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/buf.h"
#include "check.h"
#include "journal/journal.h"
#include "sql/remote.h"
#include "store/store.h"

#define DATABASES 16

static struct {
    char folder[128];
    char path[160];
    char url[512]; /* of the store: the path, or a database server and a prefix or database that nobody has
                      used */
} place;

/* The URL of a database server, when the tests are to run over one. */
static inline const char *server_url(void)
{
    return getenv("LARDER_TEST_URL");
}

static inline int remove_entry(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void leave_place(void)
{
    if (place.folder[0])
        nftw(place.folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    place.folder[0] = '\0';
}

/* On MariaDB every place is a database: what a server asks about its tables is answered from all that a
   database has. */
static inline void new_database(const char *server, int number)
{
    const struct remote_options o = {.url = server, .connect_ms = 10000, .timeout_ms = 60000};
    const char *host = strstr(server, "://") + 3, *name = strchr(host, '/') + 1, *rest = strchrnul(name, '?');
    struct remote *c;
    struct error err;
    char text[128];
    snprintf(text, sizeof text, "CREATE DATABASE t%ld_%d", (long)getpid(), number);
    if (remote_open(&o, &c, &err) != ST_OK || remote_script(c, text, &err) != ST_OK) {
        fprintf(stderr, "%s: %s\n", text, err.text);
        exit(EXIT_FAILURE);
    }
    remote_close(c);
    snprintf(place.url, sizeof place.url, "%.*st%ld_%d%s", (int)(name - server), server, (long)getpid(),
             number, rest);
}

/* A new empty folder for the next test. */
static inline void new_place(void)
{
    const char *tmp = getenv("TMPDIR");
    leave_place();
    snprintf(place.folder, sizeof place.folder, "%s/larder-test-XXXXXX",
             tmp && strlen(tmp) < 90 ? tmp : "/tmp");
    if (!mkdtemp(place.folder)) {
        perror("mkdtemp");
        exit(EXIT_FAILURE);
    }
    snprintf(place.path, sizeof place.path, "%s/larder.db", place.folder);
    static int number;
    const char *server = server_url();
    if (server && strncmp(server, "mysql", 5) == 0)
        new_database(server, ++number);
    else if (server)
        snprintf(place.url, sizeof place.url, "%s%cprefix=t%ld_%d_", server, strchr(server, '?') ? '&' : '?',
                 (long)getpid(), ++number);
    else
        snprintf(place.url, sizeof place.url, "%s", place.path);
}

#define IN_NEW_PLACE(test) (new_place(), RUN(test), leave_place())

static inline struct store_options options(void)
{
    return (struct store_options){
        .url = place.url[0] ? place.url : place.path,
        .durability = DURABILITY_OFF,
        .databases = DATABASES,
        .page_cache = 1 << 20,
        .busy_ms = 50,
        .replay = journal_replay,
    };
}

/* The same for one server alone, where databases differ in that. */
static inline const char *alone_url(void)
{
    static char url[sizeof place.url + 16];
    snprintf(url, sizeof url, "%s%s", place.url, server_url() ? "&mode=exclusive" : "");
    return url;
}

/* ---- SQL from the outside ---- */

static inline struct remote *outside_server(void)
{
    const struct remote_options o = {.url = place.url, .connect_ms = 10000, .timeout_ms = 60000};
    struct remote *c = NULL;
    struct error err;
    CHECK_OK(remote_open(&o, &c, &err), &err);
    if (!c)
        exit(EXIT_FAILURE);
    return c;
}

static inline void outside_on_server(const char *text)
{
    struct error err;
    struct remote *c = outside_server();
    CHECK_OK(remote_script(c, text, &err), &err);
    remote_close(c);
}

static inline enum status take_outside(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

static inline int64_t outside_i64_on_server(const char *text)
{
    struct error err;
    struct remote *c = outside_server();
    int64_t v = INT64_MIN;
    struct request r = {.text = text, .fn = take_outside, .arg = &v};
    remote_add(c, &r);
    CHECK_OK(remote_run(c, &err), &err);
    remote_close(c);
    return v;
}

static inline void outside(const char *text)
{
    if (server_url()) {
        outside_on_server(text);
        return;
    }
    sqlite3 *db = NULL;
    char *msg = NULL;
    CHECK_EQ(sqlite3_open(place.path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK_EQ(sqlite3_exec(db, text, NULL, NULL, &msg), SQLITE_OK);
    if (msg)
        printf("    %s: %s\n", text, msg);
    sqlite3_free(msg);
    sqlite3_close(db);
}

static inline int64_t outside_i64(const char *text)
{
    if (server_url())
        return outside_i64_on_server(text);
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t v = INT64_MIN;
    CHECK_EQ(sqlite3_open(place.path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    CHECK_EQ(sqlite3_prepare_v2(db, text, -1, &st, NULL), SQLITE_OK);
    if (sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return v;
}

/* A number that larder_meta has, as an expression. */
#define META(name) "(SELECT CAST(value AS DECIMAL(20)) FROM larder_meta WHERE name = '" name "')"

/* ---- rows ---- */

static inline struct key_row string_row(uint32_t db, struct slice key, struct slice value)
{
    return (struct key_row){.db = db, .key = key, .type = ROW_STRING, .value = value, .version = 1};
}

/* Applies changes in a transaction of their own. */
static inline enum status apply_now(struct store *s, struct changes *c, struct error *err)
{
    enum status st = store_begin(s, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = store_apply(s, c, err);
    if (st != ST_OK) {
        store_rollback(s);
        return st;
    }
    return store_commit(s, err);
}

static inline enum status put_key_now(struct store *s, struct key_row *k, struct error *err)
{
    struct changes c = {.keys = k, .nkeys = 1};
    return apply_now(s, &c, err);
}

/* Rows copied out of a callback. */
struct rows {
    struct key_row *keys;
    size_t nkeys;
    struct item_row *items;
    size_t nitems;
    size_t stop_after;     /* 0: never; else the callback then answers ... */
    enum status stop_with; /* ... this; ST_OK: ST_CONFLICT */
    struct buf bytes[256];
    size_t nbytes;
};

static inline struct slice keep(struct rows *r, struct slice s)
{
    if (r->nbytes == sizeof r->bytes / sizeof r->bytes[0])
        abort();
    struct buf *b = &r->bytes[r->nbytes++];
    buf_add(b, s.p, s.n);
    return buf_slice(b);
}

static inline enum status stop_status(const struct rows *r)
{
    return r->stop_with ? r->stop_with : ST_CONFLICT;
}

static inline enum status add_key(void *arg, const struct key_row *k)
{
    struct rows *r = arg;
    r->keys = realloc(r->keys, (r->nkeys + 1) * sizeof *r->keys);
    r->keys[r->nkeys] = *k;
    r->keys[r->nkeys].key = keep(r, k->key);
    r->keys[r->nkeys].value = keep(r, k->value);
    r->nkeys++;
    return r->stop_after && r->nkeys >= r->stop_after ? stop_status(r) : ST_OK;
}

static inline enum status add_item(void *arg, const struct item_row *i)
{
    struct rows *r = arg;
    r->items = realloc(r->items, (r->nitems + 1) * sizeof *r->items);
    r->items[r->nitems] = *i;
    r->items[r->nitems].ref.name = keep(r, i->ref.name);
    r->items[r->nitems].value = keep(r, i->value);
    r->nitems++;
    return r->stop_after && r->nitems >= r->stop_after ? stop_status(r) : ST_OK;
}

static inline void rows_release(struct rows *r)
{
    for (size_t i = 0; i < r->nbytes; i++)
        buf_release(&r->bytes[i]);
    free(r->keys);
    free(r->items);
    *r = (struct rows){0};
}

/* A transaction that declares a key, and writes its row. */
static inline void put_locked(struct store *s, uint32_t db, const char *key, const char *value,
                              int64_t version)
{
    struct key_row k = string_row(db, slice_str(key), slice_str(value));
    struct key_ref ref = {db, k.key};
    struct rows r = {0};
    struct error err;
    const struct store_declared d = {.keys = &ref, .nkeys = 1, .fn = add_key, .arg = &r};
    struct changes c = {.keys = &k, .nkeys = 1};
    CHECK_OK(store_begin(s, STORE_WRITE, &d, NULL, &err), &err);
    k.version = version;
    k.seq = r.nkeys ? r.keys[0].seq : 0;
    CHECK_OK(store_apply(s, &c, &err), &err);
    CHECK_OK(store_commit(s, &err), &err);
    rows_release(&r);
}

/* The row under a key into r: whether there is one. */
static inline bool get_key(struct store *s, uint32_t db, struct slice key, struct rows *r)
{
    struct error err;
    struct key_ref ref = {db, key};
    size_t before = r->nkeys;
    CHECK_OK(store_get_keys(s, &ref, 1, add_key, r, &err), &err);
    return r->nkeys > before;
}

/* Keys of tests that number them. */
static inline const char *key_name(int i)
{
    static char text[16];
    snprintf(text, sizeof text, "key%d", i);
    return text;
}

static inline bool has_numbered(struct store *s, int i)
{
    struct rows r = {0};
    bool found = get_key(s, 0, slice_str(key_name(i)), &r);
    rows_release(&r);
    return found;
}

#endif
