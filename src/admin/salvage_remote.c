/* Salvaging on a database server: what is left out goes to two tables of the same database,
   larder_journal_salvaged and larder_lost. They are made when they are first needed; everything else is one
   transaction, so that the copy is there exactly when the rows are gone from the journal. */
#include "admin/salvage_internal.h"
#include "base/buf.h"
#include "base/mem.h"
#include "store/remote/remote_store.h"

struct server_salvage {
    struct salvage base;
    struct buf bytes; /* of the row that was read last */
    bool found;
};

static struct server_salvage *server_of(struct salvage *v)
{
    return (struct server_salvage *)v;
}

static struct rstore *store_of(struct salvage *v)
{
    return rstore_of(v->session.store);
}

/* ---- texts ---- */

/* clang-format off */

static const char *const create[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] =
        "CREATE TABLE IF NOT EXISTS larder_journal_salvaged (salvaged timestamptz NOT NULL DEFAULT now(),"
        " seq bigint NOT NULL, changes bytea NOT NULL, damage text NOT NULL);"
        "CREATE TABLE IF NOT EXISTS larder_lost (salvaged timestamptz NOT NULL DEFAULT now(),"
        " seq bigint NOT NULL, db integer, key bytea NOT NULL, type text NOT NULL, expire_at bigint NOT NULL,"
        " value bytea NOT NULL, certain boolean NOT NULL);",
    [REMOTE_MARIADB] =
        "CREATE TABLE IF NOT EXISTS larder_journal_salvaged (salvaged TIMESTAMP NOT NULL DEFAULT"
        " CURRENT_TIMESTAMP, seq BIGINT NOT NULL, changes LONGBLOB NOT NULL,"
        " damage VARCHAR(200) CHARACTER SET utf8mb4 NOT NULL) ENGINE = InnoDB;"
        "CREATE TABLE IF NOT EXISTS larder_lost (salvaged TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,"
        " seq BIGINT NOT NULL, db INTEGER, `key` LONGBLOB NOT NULL,"
        " type VARCHAR(16) CHARACTER SET utf8mb4 NOT NULL, expire_at BIGINT NOT NULL, value LONGBLOB NOT NULL,"
        " certain BOOLEAN NOT NULL) ENGINE = InnoDB;",
};

static const char *const list_rows[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT seq FROM larder_journal WHERE seq > $1 ORDER BY seq",
    [REMOTE_MARIADB] = "SELECT seq FROM larder_journal WHERE seq > ?1 ORDER BY seq",
};

static const char *const one_row[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT changes FROM larder_journal WHERE seq = $1",
    [REMOTE_MARIADB] = "SELECT changes FROM larder_journal WHERE seq = ?1",
};

static const char *const put_row[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "INSERT INTO larder_journal_salvaged (seq, changes, damage)"
                        " VALUES ($1, $2, convert_from($3, 'UTF8'))",
    [REMOTE_MARIADB] = "INSERT INTO larder_journal_salvaged (seq, changes, damage) VALUES (?1, ?2, ?3)",
};

static const char *const put_lost[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "INSERT INTO larder_lost (seq, db, key, type, expire_at, value, certain) VALUES ($1,"
                        " (SELECT min(d.db) FROM larder_db AS d WHERE d.number = $2), $3,"
                        " convert_from($4, 'UTF8'), $5, $6, $7 = 1)",
    [REMOTE_MARIADB] = "INSERT INTO larder_lost (seq, db, `key`, type, expire_at, value, certain) VALUES (?1,"
                       " (SELECT min(d.db) FROM larder_db AS d WHERE d.number = ?2), ?3, ?4, ?5, ?6, ?7 = 1)",
};

#define ABOVE_ID(table) "coalesce((SELECT max(id) + 1 FROM " table "), 0)"
#define ABOVE_IDS                                                                                            \
    ABOVE_ID("larder_key") ", " ABOVE_ID("larder_chunk") ", " ABOVE_ID("larder_hash") ", "                   \
    ABOVE_ID("larder_list") ", " ABOVE_ID("larder_set") ", " ABOVE_ID("larder_zset") ", "                    \
    ABOVE_ID("larder_zset_block")
#define ABOVE_DBS "coalesce((SELECT max(db) + 1 FROM larder_key), 0)"
#define TRASH(table, type)                                                                                   \
    "INSERT INTO larder_trash (id, type) SELECT DISTINCT i.id, " type " FROM " table " AS i"                 \
    " WHERE NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.id = i.id AND k.type = " type ")"              \
    " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = i.id AND t.type = " type ")"

/* What both say in the same words. */
static const char *const tidying[] = {
    "INSERT INTO larder_trash (id, type) SELECT DISTINCT k.db, 100 FROM larder_key AS k"
    " WHERE NOT EXISTS (SELECT 1 FROM larder_db AS d WHERE d.number = k.db)"
    " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = k.db AND t.type = 100)",
    TRASH("larder_chunk", "1"), TRASH("larder_hash", "2"), TRASH("larder_list", "3"), TRASH("larder_set", "4"),
    TRASH("larder_zset", "5"), TRASH("larder_zset_block", "5"),
    "DELETE FROM larder_count",
    "DELETE FROM larder_journal",
};

static const char *const numbers[REMOTE_DIALECTS][3] = {
    [REMOTE_POSTGRES] = {
        "UPDATE larder_meta SET value = greatest(value::bigint, " ABOVE_IDS ")::text WHERE name = 'next_id'",
        "UPDATE larder_meta SET value = greatest(value::bigint, " ABOVE_DBS ")::text"
        " WHERE name = 'next_db_number'",
        "UPDATE larder_db SET keys = -1, expires = -1",
    },
    [REMOTE_MARIADB] = {
        "UPDATE larder_meta SET value = greatest(CAST(value AS SIGNED), " ABOVE_IDS ") WHERE name = 'next_id'",
        "UPDATE larder_meta SET value = greatest(CAST(value AS SIGNED), " ABOVE_DBS ")"
        " WHERE name = 'next_db_number'",
        "UPDATE larder_db SET `keys` = -1, expires = -1",
    },
};

/* clang-format on */

/* ---- reading ---- */

static enum status take_number(void *arg, const struct remote_row *row)
{
    salvage_add_row(arg, remote_i64(row, 0));
    return ST_OK;
}

static enum status list(struct salvage *v, struct error *err)
{
    struct remote *c = store_of(v)->conn;
    const struct param p[] = {param_i64(v->session.state.applied)};
    struct request r = {
        .text = list_rows[c->dialect], .params = p, .nparams = 1, .fn = take_number, .arg = v};
    remote_add(c, &r);
    return remote_run(c, err);
}

static enum status take_bytes(void *arg, const struct remote_row *row)
{
    struct server_salvage *s = arg;
    buf_add_slice(&s->bytes, remote_bytes(row, 0));
    s->found = true;
    return ST_OK;
}

/* A failure here does not end the store's transaction when nothing was written in it: the rows are all read
   once before that, and those that cannot be are not read again. */
static enum status read_row(struct salvage *v, int64_t seq, struct slice *ret, struct error *err)
{
    struct server_salvage *s = server_of(v);
    struct remote *c = store_of(v)->conn;
    const struct param p[] = {param_i64(seq)};
    struct request r = {.text = one_row[c->dialect], .params = p, .nparams = 1, .fn = take_bytes, .arg = s};
    s->bytes.len = 0;
    s->found = false;
    remote_add(c, &r);
    enum status st = remote_run(c, err);
    *ret = buf_slice(&s->bytes);
    if (st == ST_IO && !c->lost)
        st = ST_CORRUPT;
    return st == ST_OK && !s->found ? error_set(err, ST_CORRUPT, "it cannot be found by its number") : st;
}

/* ---- the copy ---- */

static enum status copy_begin(struct salvage *v, const char *url, struct error *err)
{
    struct rstore *s = store_of(v);
    enum status st = remote_script(s->conn, create[s->conn->dialect], err);
    (void)url;
    if (st == ST_DENIED) {
        struct error why = *err;
        return error_set(
            err, st, "a table for what is left out cannot be made; a role that may is needed: %s", why.text);
    }
    if (st == ST_OK)
        st = rlock_outwait(s, err);
    if (st == ST_OK) {
        rstore_begin_write(s);
        s->dirty = true;
    }
    return st;
}

static enum status copy_row(struct salvage *v, const struct salvage_row *row, struct slice bytes,
                            struct error *err)
{
    struct rstore *s = store_of(v);
    const struct param p[] = {param_i64(row->seq), param_bytes(bytes), param_bytes(slice_str(row->why))};
    struct request r = {.text = put_row[s->conn->dialect], .params = p, .nparams = 3};
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* They are sent with the next row, or in the end. */
static enum status copy_key(struct salvage *v, const struct salvage_row *row, const struct key_row *k,
                            const char *type, struct error *err)
{
    struct remote *c = store_of(v)->conn;
    const struct param p[] = {
        param_i64(row->seq),          param_i64(k->db),        param_bytes(k->key),
        param_bytes(slice_str(type)), param_i64(k->expire_at), param_bytes(k->value),
        param_i64(!row->damaged),
    };
    struct request r = {.text = put_lost[c->dialect], .params = p, .nparams = 7};
    (void)err;
    remote_add(c, &r);
    return ST_OK;
}

static enum status copy_end(struct salvage *v, struct error *err)
{
    struct rstore *s = store_of(v);
    enum status st = rstore_run(s, err);
    if (st == ST_OK)
        fprintf(v->out, "copied to the tables %sjournal_salvaged and %slost\n", s->conn->prefix,
                s->conn->prefix);
    return st;
}

/* ---- the database ---- */

/* A server that has lost its connection, and comes back, finds that the tables are no longer its own. */
static enum status tidy(struct salvage *v, struct error *err)
{
    struct rstore *s = store_of(v);
    for (size_t i = 0; i < sizeof tidying / sizeof tidying[0]; i++)
        remote_add_text(s->conn, tidying[i]);
    for (size_t i = 0; i < sizeof numbers[0] / sizeof numbers[0][0]; i++)
        remote_add_text(s->conn, numbers[s->conn->dialect][i]);
    rstore_add_set_meta(s, "owner", "");
    return rstore_run(s, err);
}

static enum status commit(struct salvage *v, struct error *err)
{
    return store_commit(v->session.store, err);
}

static void free_server(struct salvage *v)
{
    buf_release(&server_of(v)->bytes);
    mem_free(v);
}

struct salvage *salvage_new_remote(void)
{
    static const struct salvage_ops ops = {
        .list = list,
        .read = read_row,
        .copy_begin = copy_begin,
        .copy_row = copy_row,
        .copy_key = copy_key,
        .copy_end = copy_end,
        .tidy = tidy,
        .check = remote_check_tables,
        .commit = commit,
        .free = free_server,
    };
    struct server_salvage *s = mem_zalloc(sizeof *s);
    s->base.ops = &ops;
    return &s->base;
}
