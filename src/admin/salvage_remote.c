/* Salvaging on a database server: what is left out goes to two tables of the same database,
   larder_journal_salvaged and larder_lost. They are made when they are first needed; everything else is one
   transaction, so that the copy is there exactly when the rows are gone from the journal. */
#include "admin/salvage_internal.h"
#include "base/buf.h"
#include "base/mem.h"
#include "store/remote/remote_session.h"

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

static const char trash_items[] =
    "INSERT INTO larder_trash (id, type) SELECT DISTINCT i.id, {type} FROM {table} AS i"
    " WHERE NOT EXISTS (SELECT 1 FROM larder_key AS k WHERE k.id = i.id AND k.type = {type})"
    " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = i.id AND t.type = {type})";

static const char trash_databases[] =
    "INSERT INTO larder_trash (id, type) SELECT DISTINCT k.db, 100 FROM larder_key AS k"
    " WHERE k.db <> " CHECK_HIDDEN_DB
    " AND NOT EXISTS (SELECT 1 FROM larder_db AS d WHERE d.number = k.db)"
    " AND NOT EXISTS (SELECT 1 FROM larder_trash AS t WHERE t.id = k.db AND t.type = 100)";

/* Numbers of items that two of a collection have, and rows of keys that say something else of them. */
static const char *const renumber[REMOTE_DIALECTS][2] = {
    [REMOTE_POSTGRES] = {SALVAGE_TWINS_APART, SALVAGE_COUNT_ANEW},
    [REMOTE_MARIADB] = {
        "UPDATE {table} AS i JOIN " SALVAGE_TWINS " ON i.id = w.id AND i.{key} = w.name"
        " SET i.{ord} = w.fresh WHERE w.twin > 1",
        "UPDATE larder_key AS k JOIN " SALVAGE_COUNTS " ON k.id = w.id"
        " SET k.numbers = " SALVAGE_NUMBERS ", k.size = w.n WHERE " SALVAGE_UNFIT,
    },
};

/* Before and behind what is above every id. */
static const char *const next_id[REMOTE_DIALECTS][2] = {
    [REMOTE_POSTGRES] = {"UPDATE larder_meta SET value = greatest(value::bigint, ", ")::text WHERE name = 'next_id'"},
    [REMOTE_MARIADB] = {"UPDATE larder_meta SET value = greatest(CAST(value AS SIGNED), ", ") WHERE name = 'next_id'"},
};

#define ABOVE_DBS "coalesce((SELECT max(db) + 1 FROM larder_key WHERE db <> " CHECK_HIDDEN_DB "), 0)"

static const char *const numbers[REMOTE_DIALECTS][2] = {
    [REMOTE_POSTGRES] = {
        "UPDATE larder_meta SET value = greatest(value::bigint, " ABOVE_DBS ")::text"
        " WHERE name = 'next_db_number'",
        "UPDATE larder_db SET keys = -1, expires = -1",
    },
    [REMOTE_MARIADB] = {
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

static enum status server_list(struct salvage *v, struct error *err)
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
static enum status server_read_row(struct salvage *v, int64_t seq, struct slice *ret, struct error *err)
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

static enum status server_copy_begin(struct salvage *v, const char *url, struct error *err)
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

static enum status server_copy_row(struct salvage *v, const struct salvage_row *row, struct slice bytes,
                                   struct error *err)
{
    struct rstore *s = store_of(v);
    const struct param p[] = {param_i64(row->seq), param_bytes(bytes), param_bytes(slice_str(row->why))};
    struct request r = {.text = put_row[s->conn->dialect], .params = p, .nparams = 3};
    remote_add(s->conn, &r);
    return rstore_run(s, err);
}

/* They are sent with the next row, or in the end. */
static enum status server_copy_key(struct salvage *v, const struct salvage_row *row, const struct key_row *k,
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

static enum status server_copy_end(struct salvage *v, struct error *err)
{
    struct rstore *s = store_of(v);
    enum status st = rstore_run(s, err);
    if (st == ST_OK)
        fprintf(v->out, "copied to the tables %sjournal_salvaged and %slost\n", s->conn->prefix,
                s->conn->prefix);
    return st;
}

/* ---- the database ---- */

/* Queues a text that was composed, and empties it. */
static void add_composed(struct remote *c, struct buf *text)
{
    buf_add(text, "", 1);
    remote_add_text(c, text->p);
    text->len = 0;
}

/* A server that has lost its connection, and comes back, finds that the tables are no longer its own. */
static enum status server_tidy(struct salvage *v, struct error *err)
{
    struct rstore *s = store_of(v);
    struct buf text = {0};
    remote_add_text(s->conn, trash_databases);
    for (int t = 0; t < ITEM_TABLES; t++) {
        check_add_text(&text, trash_items, (enum item_table)t);
        add_composed(s->conn, &text);
        for (int i = 0; item_numbered((enum item_table)t) && i < 2; i++) {
            check_add_text(&text, renumber[s->conn->dialect][i], (enum item_table)t);
            add_composed(s->conn, &text);
        }
    }
    remote_add_text(s->conn, "DELETE FROM larder_count");
    remote_add_text(s->conn, "DELETE FROM larder_journal");
    buf_addf(&text, "%s", next_id[s->conn->dialect][0]);
    salvage_add_above_ids(&text);
    buf_addf(&text, "%s", next_id[s->conn->dialect][1]);
    add_composed(s->conn, &text);
    for (size_t i = 0; i < sizeof numbers[0] / sizeof numbers[0][0]; i++)
        remote_add_text(s->conn, numbers[s->conn->dialect][i]);
    rstore_add_set_meta(s, "owner", "");
    buf_release(&text);
    return rstore_run(s, err);
}

static enum status server_commit(struct salvage *v, struct error *err)
{
    return store_commit(v->session.store, err);
}

static void server_free(struct salvage *v)
{
    buf_release(&server_of(v)->bytes);
    mem_free(v);
}

struct salvage *salvage_new_remote(void)
{
    static const struct salvage_ops ops = {
        .list = server_list,
        .read = server_read_row,
        .copy_begin = server_copy_begin,
        .copy_row = server_copy_row,
        .copy_key = server_copy_key,
        .copy_end = server_copy_end,
        .tidy = server_tidy,
        .check = remote_check_tables,
        .commit = server_commit,
        .free = server_free,
    };
    struct server_salvage *s = mem_zalloc(sizeof *s);
    s->base.ops = &ops;
    return &s->base;
}
