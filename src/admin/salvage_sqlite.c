/* Salvaging in a file: what is left out goes to another SQLite database beside it, NAME.salvaged, which is
   committed first. Groups are rows of larder_journal and, behind those, records of the log (redo/redo.h),
   which are kept in memory. */
#include <stdlib.h>
#include <string.h>

#include "admin/salvage_internal.h"
#include "base/mem.h"
#include "base/vec.h"
#include "journal/redo_state.h"

#define CACHE_BYTES (4u << 20)
#define BUSY_MS     5000

struct log_group {
    int64_t seq;
    char *bytes;
    size_t n;
};

struct file_salvage {
    struct salvage base;
    struct redo_state state;
    struct log_group *groups; /* by seq */
    size_t ngroups, cap_groups;
    int64_t last; /* that was listed */
    bool fits;    /* the log goes on where the tables end */
    struct sqlite_stmt *read_row, *find_db;
    char path[4096];
    struct sqlite *copy;
    struct sqlite_stmt *put_row, *put_lost;
};

static struct file_salvage *file_of(struct salvage *v)
{
    return (struct file_salvage *)v;
}

/* ---- reading ---- */

/* Adds a record of the log, or a hole behind the last one. */
static enum status take_record(void *arg, const struct redo_record *r, const struct error *damage)
{
    struct file_salvage *f = arg;
    struct salvage *v = &f->base;
    if (damage) {
        salvage_add_row(v, f->last + 1);
        v->rows[v->nrows - 1].unreadable = true;
        salvage_note_damage(&v->rows[v->nrows - 1], damage);
        return ST_OK;
    }
    if (r->seq <= f->last || r->kind == REDO_OUTSIZED)
        return ST_OK;
    char *bytes = mem_alloc(r->payload.n + 1);
    memcpy(bytes, r->payload.p, r->payload.n);
    VEC_PUSH(f->groups, f->ngroups, f->cap_groups) = (struct log_group){r->seq, bytes, r->payload.n};
    salvage_add_row(v, r->seq);
    f->last = r->seq;
    return ST_OK;
}

static enum status list_log(struct file_salvage *f, struct error *err)
{
    struct redo_found found;
    struct error ignored;
    enum status st = redo_state_read(f->base.session.store, &f->state, err);
    if (st != ST_OK)
        return st;
    if (redo_find(f->state.file.path, NULL, &found, &ignored) == ST_OK)
        f->fits = found.tables <= f->state.applied;
    if (!f->fits)
        fprintf(f->base.out,
                "the log does not go on where the tables end: what is between them is in neither\n");
    return redo_scan(f->state.file.path, take_record, f, err);
}

static enum status list_rows(struct file_salvage *f, struct error *err)
{
    struct sqlite_stmt *q;
    bool more;
    enum status st = sqlite_prepare(f->base.session.sql,
                                    "SELECT seq FROM larder_journal WHERE seq > ?1 ORDER BY seq", &q, err);
    if (st != ST_OK)
        return st;
    sqlite_bind_i64(q, 1, f->last);
    while ((st = sqlite_step(q, &more, err)) == ST_OK && more)
        salvage_add_row(&f->base, f->last = sqlite_column_i64(q, 0));
    sqlite_finalize(q);
    return st;
}

static enum status file_list(struct salvage *v, struct error *err)
{
    struct file_salvage *f = file_of(v);
    struct sqlite *c = v->session.sql;
    f->last = v->session.state.applied;
    enum status st = v->mode == SALVAGE_DISCARD ? ST_OK : list_rows(f, err);
    if (st == ST_OK)
        st = list_log(f, err);
    if (st == ST_OK)
        st = sqlite_prepare(c, "SELECT changes FROM larder_journal WHERE seq = ?1", &f->read_row, err);
    if (st == ST_OK)
        st = sqlite_prepare(c, "SELECT db FROM larder_db WHERE number = ?1", &f->find_db, err);
    return st;
}

static int by_seq(const void *a, const void *b)
{
    const struct log_group *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static enum status file_read_row(struct salvage *v, int64_t seq, struct slice *ret, struct error *err)
{
    struct file_salvage *f = file_of(v);
    struct sqlite_stmt *q = f->read_row;
    bool found = false;
    const struct log_group key = {.seq = seq}, *g = NULL;
    if (f->ngroups)
        g = bsearch(&key, f->groups, f->ngroups, sizeof key, by_seq);
    if (g) {
        *ret = slice_of(g->bytes, g->n);
        return ST_OK;
    }
    sqlite_reset(q);
    sqlite_bind_i64(q, 1, seq);
    enum status st = sqlite_step(q, &found, err);
    *ret = st == ST_OK && found ? sqlite_column_blob(q, 0) : SLICE("");
    return st == ST_IO ? ST_CORRUPT : st; /* a page that cannot be read is this row's misfortune */
}

/* ---- the copy ---- */

static enum status file_copy_begin(struct salvage *v, const char *url, struct error *err)
{
    static const char tables[] = "CREATE TABLE IF NOT EXISTS larder_journal (seq INTEGER PRIMARY KEY, "
                                 "changes BLOB, damage TEXT) STRICT;"
                                 "CREATE TABLE IF NOT EXISTS lost ("
                                 " seq INTEGER NOT NULL, db INTEGER, key BLOB NOT NULL, type TEXT NOT NULL, "
                                 "expire_at INTEGER NOT NULL,"
                                 " value BLOB, certain INTEGER NOT NULL) STRICT;";
    struct file_salvage *f = file_of(v);
    struct sqlite_options o = {.cache_bytes = CACHE_BYTES, .busy_ms = BUSY_MS, .path = f->path};
    const char *path;
    enum status st = sqlite_path(url, &path, err);
    if (st != ST_OK)
        return st;
    snprintf(f->path, sizeof f->path, "%s.salvaged", path);
    st = sqlite_open(&o, &f->copy, err);
    if (st == ST_OK)
        st = sqlite_begin(f->copy, SQL_WRITE, NULL, err);
    if (st == ST_OK)
        st = sqlite_exec(f->copy, tables, err);
    if (st == ST_OK)
        st = sqlite_prepare(f->copy, "INSERT OR REPLACE INTO larder_journal VALUES (?1, ?2, ?3)", &f->put_row,
                            err);
    if (st == ST_OK)
        st = sqlite_prepare(f->copy, "INSERT INTO lost VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", &f->put_lost,
                            err);
    return st;
}

static enum status file_copy_row(struct salvage *v, const struct salvage_row *r, struct slice bytes,
                                 struct error *err)
{
    struct sqlite_stmt *q = file_of(v)->put_row;
    sqlite_bind_i64(q, 1, r->seq);
    sqlite_bind_blob(q, 2, bytes);
    sqlite_bind_text(q, 3, r->why);
    return sqlite_run(q, err);
}

/* Which database has this number, as SELECT names it; NULL when none has. */
static enum status bind_db(struct file_salvage *f, uint32_t number, struct error *err)
{
    bool found;
    sqlite_bind_i64(f->find_db, 1, number);
    enum status st = sqlite_step(f->find_db, &found, err);
    if (st == ST_OK && found)
        sqlite_bind_i64(f->put_lost, 2, sqlite_column_i64(f->find_db, 0));
    sqlite_reset(f->find_db);
    return st;
}

static enum status file_copy_key(struct salvage *v, const struct salvage_row *r, const struct key_row *k,
                                 const char *type, struct error *err)
{
    struct file_salvage *f = file_of(v);
    struct sqlite_stmt *q = f->put_lost;
    sqlite_bind_i64(q, 1, r->seq);
    enum status st = bind_db(f, k->db, err);
    sqlite_bind_blob(q, 3, k->key);
    sqlite_bind_text(q, 4, type);
    sqlite_bind_i64(q, 5, k->expire_at);
    sqlite_bind_blob(q, 6, k->value);
    sqlite_bind_i64(q, 7, !r->damaged);
    return st == ST_OK ? sqlite_run(q, err) : st;
}

static enum status file_copy_end(struct salvage *v, struct error *err)
{
    struct file_salvage *f = file_of(v);
    enum status st = sqlite_commit(f->copy, err);
    if (st == ST_OK)
        fprintf(v->out, "copied to %s\n", f->path);
    return st;
}

/* ---- the database ---- */

static enum status file_tidy(struct salvage *v, struct error *err)
{
    struct buf text = {0};
    bool whole = v->mode == SALVAGE_DISCARD || (v->mode == SALVAGE_APPLY && file_of(v)->fits);
    if (whole) /* passes are whole: so are the tables without the log, and with all of it */
        return ST_OK;
    buf_addf(&text, "UPDATE larder_meta SET value = max(value, ");
    salvage_add_above_ids(&text);
    buf_addf(&text, ") WHERE name = 'next_id';"
                    "UPDATE larder_meta SET value = max(value, coalesce((SELECT max(db) + 1 FROM larder_key"
                    "  WHERE db <> " CHECK_HIDDEN_DB "), 0)) WHERE name = 'next_db_number';"
                    "INSERT OR IGNORE INTO larder_trash (id, type) SELECT DISTINCT db, 100 FROM larder_key"
                    " WHERE db <> " CHECK_HIDDEN_DB " AND db NOT IN (SELECT number FROM larder_db);");
    for (int t = 0; t < ITEM_TABLES; t++)
        check_add_text(&text,
                       "INSERT OR IGNORE INTO larder_trash (id, type) SELECT DISTINCT id, {type} FROM {table}"
                       " WHERE id NOT IN (SELECT id FROM larder_key WHERE type = {type});",
                       (enum item_table)t);
    for (int t = 0; t < ITEM_TABLES; t++)
        if (item_numbered((enum item_table)t))
            check_add_text(&text, SALVAGE_TWINS_APART ";" SALVAGE_COUNT_ANEW ";", (enum item_table)t);
    buf_addf(&text, "UPDATE larder_db SET keys = -1, expires = -1;"
                    "DELETE FROM larder_journal");
    buf_add(&text, "", 1);
    sqlite_reset(file_of(v)->read_row); /* it would still be reading what is deleted */
    enum status st = sqlite_exec(v->session.sql, text.p, err);
    buf_release(&text);
    return st;
}

/* The log goes when the database does without it, durably. */
static enum status file_commit(struct salvage *v, struct error *err)
{
    enum status st = redo_state_close(v->session.store, err);
    if (st == ST_OK)
        st = sqlite_commit(v->session.sql, err);
    return st == ST_OK ? redo_remove(file_of(v)->state.file.path, err) : st;
}

static void file_free(struct salvage *v)
{
    struct file_salvage *f = file_of(v);
    sqlite_finalize(f->put_row);
    sqlite_finalize(f->put_lost);
    sqlite_close(f->copy);
    sqlite_finalize(f->read_row);
    sqlite_finalize(f->find_db);
    for (size_t i = 0; i < f->ngroups; i++)
        mem_free(f->groups[i].bytes);
    mem_free(f->groups);
    mem_free(f);
}

struct salvage *salvage_new_sqlite(void)
{
    static const struct salvage_ops ops = {
        .list = file_list,
        .read = file_read_row,
        .copy_begin = file_copy_begin,
        .copy_row = file_copy_row,
        .copy_key = file_copy_key,
        .copy_end = file_copy_end,
        .tidy = file_tidy,
        .check = check_tables,
        .commit = file_commit,
        .free = file_free,
    };
    struct file_salvage *f = mem_zalloc(sizeof *f);
    f->base.ops = &ops;
    return &f->base;
}
