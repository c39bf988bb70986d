/* An engine over a real SQLite file in a folder of its own, with a store that can be told to fail and a clock
   that stands still: what the tests of engine/ start from. */
#ifndef LARDER_TESTS_WORLD_H
#define LARDER_TESTS_WORLD_H

#include <sqlite3.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "engine/engine.h"
#include "journal/journal.h"
#include "store/fault.h"

#define WORLD_DATABASES 3
#define WORLD_CACHE     65536

struct world {
    char folder[64];
    char file[80];
    size_t cache; /* bytes the cache may take, WORLD_CACHE when 0 */
    bool journal; /* in front of the tables */
    struct store *store;
    struct engine *engine;
    struct view *view;
    struct arena arena; /* of the running call */
    int64_t now;        /* milliseconds */
    struct error err;
};

static inline void world_clock(struct world *w, int64_t now)
{
    w->now = now;
    clock_fake_us(now * 1000);
}

static inline bool world_open(struct world *w)
{
    struct store_options o = {
        .url = w->file,
        .durability = DURABILITY_OFF,
        .databases = WORLD_DATABASES,
        .page_cache = 1 << 20,
        .busy_ms = 1000,
    };
    struct engine_options e = {.databases = WORLD_DATABASES,
                               .cache_memory = w->cache ? w->cache : WORLD_CACHE};
    struct store *inner;
    struct journal_options j = {.max_bytes = 1 << 22, .lag_ms = 20};
    enum status st =
        w->journal ? journal_store_open(&o, &j, &inner, &w->err) : store_open(&o, &inner, &w->err);
    if (!check_ok(st, &w->err, __FILE__, __LINE__, "store_open"))
        return false;
    w->store = fault_new(inner);
    if (!check_ok(engine_new(w->store, &e, &w->engine, &w->err), &w->err, __FILE__, __LINE__, "engine_new"))
        return false;
    w->view = engine_view(w->engine);
    return check_ok(engine_progress(w->engine, &w->err), &w->err, __FILE__, __LINE__, "engine_progress");
}

static inline void world_close(struct world *w)
{
    engine_free(w->engine);
    store_close(w->store);
    w->engine = NULL;
    w->store = NULL;
}

static inline bool world_reopen(struct world *w)
{
    world_close(w);
    return world_open(w);
}

static inline bool world_start(struct world *w)
{
    char folder[sizeof w->folder];
    snprintf(folder, sizeof folder, "%s/larder-test-XXXXXX", P_tmpdir);
    if (!check_that(mkdtemp(folder) != NULL, __FILE__, __LINE__, "mkdtemp"))
        return false;
    snprintf(w->folder, sizeof w->folder, "%s", folder);
    snprintf(w->file, sizeof w->file, "%s/larder.db", folder);
    world_clock(w, 1700000000000);
    return world_open(w);
}

static inline void world_end(struct world *w)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock", "-lock"};
    world_close(w);
    arena_release(&w->arena);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s%s", w->file, suffixes[i]);
        (void)unlink(path);
    }
    CHECK(rmdir(w->folder) == 0);
    clock_fake_us(0);
}

/* One statement on a connection of its own, as another process would run it; the first column of its first
   row, 0 when there is none. */
static inline int64_t world_sql(struct world *w, const char *text)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int64_t result = 0;
    bool ok = sqlite3_open(w->file, &db) == SQLITE_OK && sqlite3_busy_timeout(db, 5000) == SQLITE_OK &&
              sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK;
    int rc = ok ? sqlite3_step(st) : SQLITE_ERROR;
    if (rc == SQLITE_ROW)
        result = sqlite3_column_int64(st, 0);
    if (!check_that(rc == SQLITE_ROW || rc == SQLITE_DONE, __FILE__, __LINE__, text))
        printf("    %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(st);
    sqlite3_close(db);
    return result;
}

/* Each item of every key of a type has a number of its own, below what the key's row says. */
static inline void world_check_numbers(struct world *w, enum row_type type, const char *table)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "SELECT count(*) FROM larder_key AS k WHERE type = %d AND (size IS NOT (SELECT count(DISTINCT ord)"
        " FROM %s WHERE id = k.id AND ord BETWEEN 0 AND coalesce(nullif(k.numbers, 0), k.size) - 1)"
        " OR (numbers <> 0 AND numbers <= size))",
        type, table);
    CHECK_EQ(world_sql(w, text), 0);
}

/* Starts a batch. True when it may write; one that may not has been ended again. */
static inline bool world_begin(struct world *w)
{
    struct error write_err;
    if (engine_begin(w->engine, true, &write_err, &w->err) != ST_OK)
        return false;
    if (write_err.code == ST_OK)
        return true;
    CHECK_OK(engine_commit(w->engine, NULL, &w->err), &w->err);
    return false;
}

static inline void world_enter(struct world *w)
{
    arena_reset(&w->arena);
    engine_enter(w->engine);
}

/* Sweeps until nothing is left to do. */
static inline void world_sweep(struct world *w)
{
    bool more = true;
    uint64_t rows;
    for (int i = 0; more && i < 10000; i++)
        CHECK_OK(engine_sweep(w->engine, 1000, &more, &rows, &w->err), &w->err);
    CHECK(!more);
}

#endif
