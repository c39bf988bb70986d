/* The store over SQLite: opening, transactions, and what larder_meta and larder_db hold. */
#include "store/sqlite/sqlite_store.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_open.h"

void *sqlite_store_scratch(struct sqlite_store *s, size_t n)
{
    if (n > s->scratch_bytes) {
        s->scratch = mem_realloc(s->scratch, n);
        s->scratch_bytes = n;
    }
    return s->scratch;
}

/* ---- larder_meta ---- */

enum status sqlite_store_get_meta(struct sqlite_store *s, const char *name, int64_t *ret, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_GET_META, &q, err);
    if (st != ST_OK)
        return st;
    bool row;
    sqlite_bind_text(q, 1, name);
    st = sqlite_step(q, &row, err);
    if (st == ST_OK && !row)
        st = error_set(err, ST_CORRUPT, "larder_meta has no %s", name);
    if (st == ST_OK)
        *ret = sqlite_column_i64(q, 0);
    sqlite_reset(q);
    return st;
}

enum status sqlite_store_set_meta(struct sqlite_store *s, const char *name, int64_t v, struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_SET_META, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_text(q, 1, name);
    sqlite_bind_i64(q, 2, v);
    return sqlite_run(q, err);
}

enum status sqlite_store_set_word(struct sqlite_store *s, const char *name, const char *text,
                                  struct error *err)
{
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_SET_META, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_text(q, 1, name);
    sqlite_bind_text(q, 2, text);
    return sqlite_run(q, err);
}

enum status sqlite_store_get_word(struct sqlite_store *s, const char *name, char *ret, size_t cap,
                                  struct error *err)
{
    struct sqlite_stmt *q;
    bool row;
    enum status st = stmt_fixed(s, Q_GET_META, &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_text(q, 1, name);
    st = sqlite_step(q, &row, err);
    struct slice text = st == ST_OK && row ? sqlite_column_blob(q, 0) : (struct slice){0};
    snprintf(ret, cap, "%.*s", (int)text.n, text.n ? text.p : "");
    sqlite_reset(q);
    return st;
}

/* ---- transactions ---- */

static enum sqlite_sync sync_of(enum durability d)
{
    switch (d) {
    case DURABILITY_EVERYSEC:
        return SQL_SYNC_SECOND;
    case DURABILITY_OFF:
        return SQL_SYNC_NEVER;
    case DURABILITY_ALWAYS:
        break;
    }
    return SQL_SYNC_ALWAYS;
}

static enum status do_begin(struct store *base, enum store_txn kind, const struct store_declared *d,
                            bool *ret_changed, struct error *err)
{
    static const enum sqlite_txn kinds[] = {
        [STORE_READ] = SQL_READ,
        [STORE_WRITE] = SQL_WRITE,
        [STORE_WRITE_LAZY] = SQL_WRITE_LAZY,
    };
    struct sqlite_store *s = sqlite_store_of(base);
    bool others = false;
    (void)d;
    enum status st = sqlite_begin(s->sql, kinds[kind], &others, err);
    if (st == ST_OK && s->owner && kind != STORE_READ &&
        (st = sqlite_store_set_word(s, "owner", s->owner, err)) != ST_OK)
        sqlite_rollback(s->sql);
    if (st != ST_OK)
        return st;
    s->marked = false;
    if (others)
        s->next_number = -1;
    if (ret_changed)
        *ret_changed = others;
    return ST_OK;
}

static void do_rollback(struct store *base)
{
    struct sqlite_store *s = sqlite_store_of(base);
    s->next_number = -1;
    sqlite_rollback(s->sql);
}

static enum status do_mark(struct store *base, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    enum status st = s->marked ? sqlite_exec(s->sql, "RELEASE larder_mark", err) : ST_OK;
    if (st == ST_OK)
        st = sqlite_exec(s->sql, "SAVEPOINT larder_mark", err);
    s->marked |= st == ST_OK;
    return st;
}

static enum status do_undo(struct store *base, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    s->next_number = -1;
    return sqlite_exec(s->sql, "ROLLBACK TO larder_mark", err);
}

static enum status do_commit(struct store *base, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    enum status st = sqlite_commit(s->sql, err);
    if (st != ST_OK) {
        s->next_number = -1;
    } else if (s->owner) {
        mem_free(s->owner);
        s->owner = NULL;
    }
    return st;
}

/* Runs fn in the running transaction, or in one of its own. */
static enum status in_transaction(struct sqlite_store *s,
                                  enum status (*fn)(struct sqlite_store *, void *, struct error *), void *arg,
                                  struct error *err)
{
    if (sqlite_in_transaction(s->sql))
        return fn(s, arg, err);
    enum status st = do_begin(&s->base, STORE_WRITE, NULL, NULL, err);
    if (st != ST_OK)
        return st;
    st = fn(s, arg, err);
    if (st == ST_OK)
        return do_commit(&s->base, err);
    do_rollback(&s->base);
    return st;
}

struct id_block {
    int64_t n, first;
};

static enum status take_ids(struct sqlite_store *s, void *arg, struct error *err)
{
    struct id_block *b = arg;
    enum status st = sqlite_store_get_meta(s, "next_id", &b->first, err);
    return st == ST_OK ? sqlite_store_set_meta(s, "next_id", b->first + b->n, err) : st;
}

static enum status do_reserve_ids(struct store *base, int64_t n, int64_t *ret_first, struct error *err)
{
    struct id_block b = {.n = n};
    if (n == 0) /* a question alone needs no room */
        return sqlite_store_get_meta(sqlite_store_of(base), "next_id", ret_first, err);
    enum status st = in_transaction(sqlite_store_of(base), take_ids, &b, err);
    if (st == ST_OK)
        *ret_first = b.first;
    return st;
}

/* ---- databases ---- */

static enum status do_load_dbs(struct store *base, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                               struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_stmt *q;
    enum status st = stmt_fixed(s, Q_LIST_DBS, &q, err);
    if (st != ST_OK)
        return st;
    size_t found = 0;
    bool row;
    while ((st = sqlite_step(q, &row, err)) == ST_OK && row && found < n) {
        if (sqlite_column_i64(q, 0) != (int64_t)found)
            break;
        dbs[found] = (struct db_row){
            .db = (uint32_t)found,
            .number = (uint32_t)sqlite_column_i64(q, 1),
            .keys = sqlite_column_i64(q, 2),
            .expires = sqlite_column_i64(q, 3),
        };
        found++;
    }
    sqlite_reset(q);
    if (st == ST_OK && found < n)
        st = error_set(err, ST_CORRUPT, "larder_db has no row for database %zu", found);
    int64_t next = 0;
    if (st == ST_OK)
        st = sqlite_store_get_meta(s, "next_db_number", &next, err);
    if (st != ST_OK)
        return st;
    s->next_number = next;
    *ret_next_number = (uint32_t)next;
    return ST_OK;
}

/* Gives every logical database below n a row and a number, the new ones an unused one. */
static enum status create_dbs(struct sqlite_store *s, uint32_t n, struct error *err)
{
    int64_t next = 0;
    enum status st = sqlite_store_get_meta(s, "next_db_number", &next, err);
    struct sqlite_stmt *put;
    if (st == ST_OK)
        st = sqlite_prepare(s->sql,
                            "INSERT INTO larder_db (db, number, keys, expires) VALUES (?1, ?2, 0, 0)"
                            " ON CONFLICT DO NOTHING",
                            &put, err);
    if (st != ST_OK)
        return st;
    for (uint32_t db = 0; st == ST_OK && db < n; db++) {
        sqlite_bind_i64(put, 1, db);
        sqlite_bind_i64(put, 2, next);
        st = sqlite_run(put, err);
        if (st == ST_OK && sqlite_changed_rows(s->sql) > 0)
            next++;
    }
    sqlite_finalize(put);
    return st == ST_OK ? sqlite_store_set_meta(s, "next_db_number", next, err) : st;
}

/* ---- opening and closing ---- */

static void do_close(struct store *base)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct error ignored;
    if (s->sql && !s->read_only) {
        sqlite_rollback(s->sql);
        (void)(sqlite_store_set_word(s, "owner", "", &ignored) == ST_OK);
    }
    stmt_finalize_all(s);
    sqlite_close(s->sql);
    mem_free(s->scratch);
    mem_free(s->owner);
    mem_free(s);
}

/* "pid 4711 on host box since 2024-05-01 12:00:00 UTC" */
static void describe_self(char *out, size_t cap)
{
    char host[65] = "?";
    (void)gethostname(host, sizeof host - 1);
    time_t now = (time_t)(clock_wall_us() / 1000000);
    struct tm tm;
    char when[32] = "";
    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(out, cap, "pid %ld on host %s since %s UTC", (long)getpid(), host, when);
}

struct setup {
    uint32_t databases;
    char owner[160];
};

static enum status set_up(struct sqlite_store *s, void *arg, struct error *err)
{
    struct setup *o = arg;
    enum status st = create_dbs(s, o->databases, err);
    return st == ST_OK ? sqlite_store_set_word(s, "owner", o->owner, err) : st;
}

/* All that is needed to read is there, and later to write. Without room for a new owner's name that is put
   off until something else is written. */
static enum status set_up_later(struct sqlite_store *s, const struct setup *o, struct error *err)
{
    struct error why = *err;
    struct db_row *dbs = mem_zalloc((o->databases + 1) * sizeof *dbs);
    uint32_t next;
    enum status st = do_load_dbs(&s->base, dbs, o->databases, &next, err);
    mem_free(dbs);
    if (st != ST_OK) {
        *err = why;
        return why.code;
    }
    s->owner = mem_strdup(o->owner);
    return ST_OK;
}

/* Adds to err who has the database, when its owner row can be read. */
static void name_owner(const struct sqlite_options *o, struct error *err)
{
    struct sqlite_options ro = *o;
    struct error ignored;
    struct sqlite *c;
    struct sqlite_stmt *q;
    bool row;
    ro.read_only = true;
    if (!err || sqlite_open(&ro, &c, &ignored) != ST_OK)
        return;
    if (sqlite_prepare(c, "SELECT value FROM larder_meta WHERE name = 'owner'", &q, &ignored) == ST_OK) {
        if (sqlite_step(q, &row, &ignored) == ST_OK && row) {
            struct slice who = sqlite_column_blob(q, 0);
            if (who.n > 0)
                error_set(err, ST_LOCKED, "%s is in use by another server: %.*s", o->path, (int)who.n, who.p);
        }
        sqlite_finalize(q);
    }
    sqlite_close(c);
}

static const struct store_ops sqlite_store_ops;

struct store *sqlite_store_over(struct sqlite *c)
{
    struct sqlite_store *s = mem_zalloc(sizeof *s);
    s->base.ops = &sqlite_store_ops;
    s->base.journal_rows = &sqlite_journal_rows_ops;
    s->sql = c;
    s->read_only = true; /* until it is ours to write */
    s->next_number = -1;
    return &s->base;
}

enum status sqlite_store_open(const struct store_options *o, struct store **ret, struct error *err)
{
    struct sqlite_options so = {.sync = sync_of(o->durability),
                                .cache_bytes = o->page_cache,
                                .busy_ms = o->busy_ms,
                                .read_only = o->read_only};
    enum status st = sqlite_path(o->url, &so.path, err);
    if (st != ST_OK)
        return st;
    struct sqlite_store *s = sqlite_store_of(sqlite_store_over(NULL));
    st = sqlite_open(&so, &s->sql, err);
    if (st == ST_LOCKED)
        name_owner(&so, err);
    if (st == ST_OK)
        st = o->read_only ? schema_require(s->sql, "reads", err)
                          : schema_migrate(s->sql, schema_steps, SCHEMA_VERSION, err);
    if (st == ST_OK)
        st = schema_verify(s->sql, err);
    if (st == ST_OK && !o->read_only) {
        struct setup setup = {.databases = o->databases};
        describe_self(setup.owner, sizeof setup.owner);
        st = in_transaction(s, set_up, &setup, err);
        if (st == ST_FULL)
            st = set_up_later(s, &setup, err);
        s->read_only = st != ST_OK;
    }
    if (st != ST_OK) {
        do_close(&s->base);
        return st;
    }
    sqlite_stop_waiting(s->sql);
    *ret = &s->base;
    return ST_OK;
}

/* ---- the rest ---- */

static enum status do_info(struct store *base, struct store_info *ret, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_info i;
    enum status st = sqlite_info(s->sql, &i, err);
    if (st != ST_OK)
        return st;
    *ret = (struct store_info){
        .bytes = i.bytes,
        .free_bytes = i.free_bytes,
        .wal_bytes = i.wal_bytes,
        .sync_us = i.sync_us,
    };
    memcpy(ret->engine, i.engine, sizeof ret->engine);
    return ST_OK;
}

static enum status do_set_durability(struct store *base, enum durability d, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    return sqlite_set_sync(s->sql, sync_of(d), err);
}

static enum status do_sync(struct store *base, struct error *err)
{
    struct sqlite_store *s = sqlite_store_of(base);
    return sqlite_sync(s->sql, err);
}

/* There is only ever one. */
static uint64_t do_connection(const struct store *base)
{
    (void)base;
    return 0;
}

static const struct store_ops sqlite_store_ops = {
    .close = do_close,
    .begin = do_begin,
    .get_keys = sqlite_read_get_keys,
    .get_items = sqlite_read_get_items,
    .scan_keys = sqlite_read_scan_keys,
    .scan_items = sqlite_read_scan_items,
    .count_items = sqlite_read_count_items,
    .due_rows = sqlite_read_due_rows,
    .count_dead = sqlite_read_count_dead,
    .count_keys = sqlite_read_count_keys,
    .load_dbs = do_load_dbs,
    .reserve_ids = do_reserve_ids,
    .apply = sqlite_apply,
    .mark = do_mark,
    .undo = do_undo,
    .commit = do_commit,
    .rollback = do_rollback,
    .sweep = sweep_step,
    .info = do_info,
    .set_durability = do_set_durability,
    .sync = do_sync,
    .connection = do_connection,
};
