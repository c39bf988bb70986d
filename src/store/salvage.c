#include "store/salvage.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "sql/remote.h"
#include "store/check_internal.h"
#include "store/journal.h"
#include "store/jstore.h"

#define CACHE_BYTES (4u << 20)
#define BUSY_MS     5000

/* A row of the journal that is not in the tables. */
struct row {
    int64_t seq;
    bool damaged, left_out;
    char why[120]; /* it is damaged */
};

struct salvage {
    struct check_session session;
    FILE *out;
    struct row *rows;
    size_t nrows, cap;
    size_t damaged, left_out;
    struct sql_stmt *read_row, *find_db;
    /* The copy of what is left out. */
    char path[4096];
    struct sql *copy;
    struct sql_stmt *put_row, *put_lost, *list_lost;
};

/* ---- reading ---- */

/* Borrowed until the next call. */
static enum status read_row(struct salvage *v, int64_t seq, struct slice *ret, struct error *err)
{
    bool found = false;
    sql_reset(v->read_row);
    sql_bind_i64(v->read_row, 1, seq);
    enum status st = sql_step(v->read_row, &found, err);
    *ret = st == ST_OK && found ? sql_column_blob(v->read_row, 0) : SLICE("");
    return st;
}

/* Whether all of a row makes sense. */
static enum status judge(struct slice row, struct error *why)
{
    struct slice entries;
    struct journal_entry e;
    bool end = false;
    enum status st = journal_open(row, &entries, why);
    while (st == ST_OK && !end)
        st = journal_next(&entries, &e, &end, why);
    return st;
}

/* Lists the rows and looks at each. */
static enum status look(struct salvage *v, struct error *err)
{
    struct sql_stmt *q;
    struct sql *c = v->session.sql;
    enum status st = sql_prepare(c, "SELECT seq FROM larder_journal WHERE seq > ?1 ORDER BY seq", &q, err);
    if (st != ST_OK)
        return st;
    bool more;
    sql_bind_i64(q, 1, v->session.state.applied);
    while ((st = sql_step(q, &more, err)) == ST_OK && more)
        VEC_PUSH(v->rows, v->nrows, v->cap) = (struct row){.seq = sql_column_i64(q, 0)};
    sql_finalize(q);
    if (st == ST_OK)
        st = sql_prepare(c, "SELECT changes FROM larder_journal WHERE seq = ?1", &v->read_row, err);
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++) {
        struct row *r = &v->rows[i];
        struct slice bytes;
        struct error why;
        r->damaged = read_row(v, r->seq, &bytes, &why) != ST_OK || judge(bytes, &why) != ST_OK;
        if (!r->damaged)
            continue;
        snprintf(r->why, sizeof r->why, "%.*s", (int)sizeof r->why - 1, why.text);
        fprintf(v->out, "row %" PRId64 " is damaged: %s\n", r->seq, r->why);
        v->damaged++;
    }
    return st;
}

/* Decides which rows are left out. */
static void choose(struct salvage *v, bool skip)
{
    bool behind = false;
    for (size_t i = 0; i < v->nrows; i++) {
        struct row *r = &v->rows[i];
        behind |= r->damaged;
        r->left_out = r->damaged || (behind && !skip && r->seq > v->session.state.applying);
        v->left_out += r->left_out;
    }
}

/* ---- the copy ---- */

static enum status open_copy(struct salvage *v, const char *url, struct error *err)
{
    static const char tables[] = "CREATE TABLE IF NOT EXISTS larder_journal (seq INTEGER PRIMARY KEY, "
                                 "changes BLOB, damage TEXT) STRICT;"
                                 "CREATE TABLE IF NOT EXISTS lost ("
                                 " seq INTEGER NOT NULL, db INTEGER, key BLOB NOT NULL, type TEXT NOT NULL, "
                                 "expire_at INTEGER NOT NULL,"
                                 " value BLOB, certain INTEGER NOT NULL) STRICT;";
    struct sql_options o = {.cache_bytes = CACHE_BYTES, .busy_ms = BUSY_MS, .target = v->path};
    const char *target;
    const struct sql_driver *driver = sql_driver_for(url, &target);
    snprintf(v->path, sizeof v->path, "%s.salvaged", target);
    enum status st = driver->open(&o, &v->copy, err);
    if (st == ST_OK)
        st = sql_begin(v->copy, SQL_WRITE, NULL, err);
    if (st == ST_OK)
        st = sql_exec(v->copy, tables, err);
    if (st == ST_OK)
        st = sql_prepare(v->copy, "INSERT OR REPLACE INTO larder_journal VALUES (?1, ?2, ?3)", &v->put_row,
                         err);
    if (st == ST_OK)
        st = sql_prepare(v->copy, "INSERT INTO lost VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &v->put_lost, err);
    if (st == ST_OK)
        st = sql_prepare(
            v->copy,
            "SELECT group_concat(name, ', ') || CASE WHEN max(n) > 10 THEN ' and ' || (max(n) - 10)"
            "  || ' more' ELSE '' END FROM (SELECT quote(CAST(substr(key, 1, 60) AS TEXT)) AS name,"
            "  count(*) OVER () AS n FROM lost WHERE seq = ?1 GROUP BY db, key ORDER BY db, key"
            "  LIMIT 10)",
            &v->list_lost, err);
    return st;
}

static const char *type_name(enum row_type t)
{
    static const char *const names[] = {"deleted", "string", "hash", "list", "set", "zset"};
    return (size_t)t < sizeof names / sizeof names[0] ? names[t] : "unknown";
}

/* Which database has this number, as SELECT names it; NULL when none has. */
static enum status bind_db(struct salvage *v, uint32_t number, struct error *err)
{
    bool found;
    sql_bind_i64(v->find_db, 1, number);
    enum status st = sql_step(v->find_db, &found, err);
    if (st == ST_OK && found)
        sql_bind_i64(v->put_lost, 2, sql_column_i64(v->find_db, 0));
    sql_reset(v->find_db);
    return st;
}

static enum status put_lost(struct salvage *v, const struct row *r, const struct key_row *k,
                            struct error *err)
{
    sql_bind_i64(v->put_lost, 1, r->seq);
    enum status st = bind_db(v, k->db, err);
    sql_bind_blob(v->put_lost, 3, k->key);
    sql_bind_text(v->put_lost, 4, type_name(k->type));
    sql_bind_i64(v->put_lost, 5, k->expire_at);
    sql_bind_blob(v->put_lost, 6, k->value);
    sql_bind_i64(v->put_lost, 7, !r->damaged);
    return st == ST_OK ? sql_run(v->put_lost, err) : st;
}

/* The keys that a row changes, as far as it can be read. */
static enum status copy_keys(struct salvage *v, const struct row *r, struct slice bytes, struct error *err)
{
    struct slice entries = journal_entries(bytes);
    struct journal_entry e;
    struct error ignored;
    bool end = false;
    enum status st = ST_OK;
    while (st == ST_OK && journal_next(&entries, &e, &end, &ignored) == ST_OK && !end)
        if (e.kind == JOURNAL_KEY)
            st = put_lost(v, r, &e.key, err);
    return st;
}

static enum status print_lost(struct salvage *v, const struct row *r, struct error *err)
{
    bool found;
    sql_bind_i64(v->list_lost, 1, r->seq);
    enum status st = sql_step(v->list_lost, &found, err);
    struct slice keys = st == ST_OK && found ? sql_column_blob(v->list_lost, 0) : SLICE("");
    if (st == ST_OK)
        fprintf(v->out, "  row %" PRId64 "%s: %.*s\n", r->seq, r->damaged ? ", as far as it can be read" : "",
                keys.n ? (int)keys.n : 7, keys.n ? keys.p : "no keys");
    sql_reset(v->list_lost);
    return st;
}

static enum status copy_row(struct salvage *v, const struct row *r, struct error *err)
{
    struct slice bytes;
    struct error ignored;
    if (read_row(v, r->seq, &bytes, &ignored) != ST_OK)
        bytes = SLICE("");
    sql_bind_i64(v->put_row, 1, r->seq);
    sql_bind_blob(v->put_row, 2, bytes);
    sql_bind_text(v->put_row, 3, r->why);
    enum status st = sql_run(v->put_row, err);
    if (st == ST_OK)
        st = copy_keys(v, r, bytes, err);
    return st == ST_OK ? print_lost(v, r, err) : st;
}

/* It is safe on disk before anything goes from the journal. */
static enum status copy_out(struct salvage *v, const char *url, struct error *err)
{
    enum status st =
        sql_prepare(v->session.sql, "SELECT db FROM larder_db WHERE number = ?1", &v->find_db, err);
    if (st == ST_OK)
        st = open_copy(v, url, err);
    if (st == ST_OK)
        fprintf(v->out, "left out: %zu of %zu %s, which %s these keys:\n", v->left_out, v->nrows,
                v->nrows == 1 ? "row" : "rows", v->left_out == 1 ? "changes" : "change");
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++)
        if (v->rows[i].left_out)
            st = copy_row(v, &v->rows[i], err);
    if (st == ST_OK)
        st = sql_commit(v->copy, err);
    if (st == ST_OK)
        fprintf(v->out, "copied to %s\n", v->path);
    return st;
}

static void close_copy(struct salvage *v)
{
    sql_finalize(v->put_row);
    sql_finalize(v->put_lost);
    sql_finalize(v->list_lost);
    sql_close(v->copy);
}

/* ---- the database ---- */

/* Nothing may be given out twice, whatever part of the damaged rows is in the tables. */
#define ABOVE_ID(table) "coalesce((SELECT max(id) + 1 FROM " table "), 0)"
#define TRASH(table, type)                                                                                   \
    "INSERT OR IGNORE INTO larder_trash (id, type) SELECT DISTINCT id, " type " FROM " table                 \
    " WHERE id NOT IN (SELECT id FROM larder_key WHERE type = " type ");"

static enum status tidy(struct sql *c, struct error *err)
{
    return sql_exec(c,
                    "UPDATE larder_meta SET value = max(value, " ABOVE_ID(
                        "larder_key") ", " ABOVE_ID("larder_chunk") ","
                                                                    " " ABOVE_ID("larder_hash") ", " ABOVE_ID("larder_list") ", " ABOVE_ID("larder_set") ", " ABOVE_ID("larder_zset") ", " ABOVE_ID(
                                                                        "larder_zset_block") ") WHERE name = "
                                                                                             "'next_id';"
                                                                                             "UPDATE "
                                                                                             "larder_meta "
                                                                                             "SET value = "
                                                                                             "max(value, "
                                                                                             "coalesce(("
                                                                                             "SELECT max(db) "
                                                                                             "+ 1 FROM "
                                                                                             "larder_key), "
                                                                                             "0))"
                                                                                             " WHERE name = "
                                                                                             "'next_db_"
                                                                                             "number';"
                                                                                             /* Key rows of a
                                                                                                database that
                                                                                                is not there,
                                                                                                and items that
                                                                                                no key has,
                                                                                                are for the
                                                                                                sweeper. */
                                                                                             "INSERT OR "
                                                                                             "IGNORE INTO "
                                                                                             "larder_trash "
                                                                                             "(id, type) "
                                                                                             "SELECT "
                                                                                             "DISTINCT db, "
                                                                                             "100 FROM "
                                                                                             "larder_key"
                                                                                             " WHERE db NOT "
                                                                                             "IN (SELECT "
                                                                                             "number FROM "
                                                                                             "larder_db)"
                                                                                             ";" TRASH(
                                                                                                 "larder_"
                                                                                                 "chunk",
                                                                                                 "1") TRASH("larder_hash",
                                                                                                            "2")
                                                                                                 TRASH(
                                                                                                     "larder_"
                                                                                                     "list",
                                                                                                     "3") TRASH("larder_set",
                                                                                                                "4")
                                                                                                     TRASH(
                                                                                                         "lar"
                                                                                                         "der"
                                                                                                         "_zs"
                                                                                                         "et",
                                                                                                         "5")
                                                                                                         TRASH(
                                                                                                             "larder_zset_block",
                                                                                                             "5")
                    /* To be counted by the next server. */
                    "UPDATE larder_db SET keys = -1, expires = -1;"
                    "DELETE FROM larder_journal",
                    err);
}

static enum status apply_rest(struct salvage *v, struct error *err)
{
    struct memtable *m = memtable_new(0);
    enum status st = ST_OK;
    for (size_t i = 0; st == ST_OK && i < v->nrows; i++) {
        struct slice bytes;
        if (v->rows[i].left_out)
            continue;
        st = read_row(v, v->rows[i].seq, &bytes, err);
        if (st == ST_OK)
            st = jrecover_row(m, v->rows[i].seq, bytes, err);
    }
    sql_reset(v->read_row);
    if (st == ST_OK)
        st = jrecover_apply(v->session.store, m, err);
    memtable_free(m);
    if (st == ST_OK) /* of those left out, too: no number comes again */
        st = store_journal_applied(v->session.store, v->rows[v->nrows - 1].seq, err);
    if (st == ST_OK)
        st = tidy(v->session.sql, err);
    if (st == ST_OK)
        fprintf(v->out, "applied: %zu %s\n", v->nrows - v->left_out,
                v->nrows - v->left_out == 1 ? "row" : "rows");
    return st;
}

static enum status salvage(struct salvage *v, const char *url, bool skip, bool *ret_ok, struct error *err)
{
    uint64_t found = 0;
    enum status st = look(v, err);
    if (st != ST_OK)
        return st;
    *ret_ok = true;
    if (v->damaged == 0) {
        fprintf(v->out, "nothing is damaged: %zu %s to be applied by the next server\n", v->nrows,
                v->nrows == 1 ? "row" : "rows");
        return ST_OK;
    }
    choose(v, skip);
    st = copy_out(v, url, err);
    if (st == ST_OK)
        st = apply_rest(v, err);
    if (st == ST_OK)
        st = check_tables(&v->session, v->out, &found, err);
    if (st == ST_OK)
        st = sql_commit(v->session.sql, err);
    *ret_ok = found == 0;
    return st;
}

enum status store_salvage(const char *url, bool skip, FILE *out, bool *ret_ok, struct error *err)
{
    struct salvage v = {.out = out};
    if (remote_is_url(url))
        return error_set(err, ST_INVALID,
                         "the journal of a database server is not for salvaging: see docs/servers.md");
    enum status st = check_open(url, true, &v.session, err);
    if (st != ST_OK)
        return st;
    st = salvage(&v, url, skip, ret_ok, err);
    close_copy(&v);
    sql_finalize(v.read_row);
    sql_finalize(v.find_db);
    check_close(&v.session);
    mem_free(v.rows);
    return st;
}
