/* What a database server must be to be served, and what is done without where it cannot do something.

   Proven are the servers of sql/proof.h. Any other is refused unless that is accepted, and so is one that
   says it is a proven one and lacks what that has. What is missing is found out by trying, once for each
   session (sql/features.h):

     locks of sessions   rows of larder_lock are locked in their place. All servers, and the functions for
                         applications, must do the same: the row `locks` of larder_meta says so from then on,
                         also when the database comes to be on a server that has them. No server can have the
                         tables for itself then (mode=exclusive is refused).
     LISTEN              blocked clients are woken by looking, as on MariaDB.
     SKIP LOCKED         the sweeper waits for rows that clients have locked.

   A crash between making the rows of larder_lock and the row of larder_meta leaves rows that nobody uses. */
#include <stdio.h>

#include "base/log.h"
#include "sql/proof.h"
#include "store/remote/remote_galera.h"
#include "store/remote/remote_session.h"
#include "store/remote/remote_verify.h"

static enum status refuse(const struct rstore *s, const char *what, bool accept, struct error *err)
{
    if (accept) {
        log_warning("this database server has not been proven", "place=\"%s\" reason=\"%s\"", s->conn->place,
                    what);
        return ST_OK;
    }
    return error_set(err, ST_INVALID,
                     "%.50s: %.70s: not proven. larder selftest --store URL tries everything there and leaves"
                     " a mark if all holds; --accept-untested starts without",
                     s->conn->place, what);
}

/* What it lacks, or NULL: a server that says it is a proven one and lacks something is none. */
static enum status judge(struct rstore *s, const char *lacks, bool accept, struct error *err)
{
    struct remote_identity id;
    bool marked = false;
    enum status st = remote_identify(s->conn, &id, err);
    if (st == ST_OK && (lacks || !id.tested))
        st = remote_has_mark(s->conn, &id, &marked, err);
    if (st == ST_DENIED && accept) /* it need not be read then */
        st = ST_OK;
    if (st != ST_OK || marked || (id.tested && !lacks))
        return st;
    return refuse(s, lacks ? lacks : id.text, accept, err);
}

enum status rproof_check(struct rstore *s, bool accept, struct error *err)
{
    return judge(s, NULL, accept, err);
}

/* ---- what it can do ---- */

static enum status take_rows_word(void *arg, const struct remote_row *row)
{
    *(bool *)arg = slice_is(remote_bytes(row, 0), "rows");
    return ST_OK;
}

static enum status read_word(struct rstore *s, struct error *err)
{
    struct request r = {.text = "SELECT value FROM larder_meta WHERE name = 'locks'",
                        .fn = take_rows_word,
                        .arg = &s->lock_rows};
    s->lock_rows = false;
    remote_add(s->conn, &r);
    return remote_run(s->conn, err);
}

static enum status take_count(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

/* As many rows as there are classes of keys, one for whole databases (-1) and one for the sweeper (-2). */
static enum status make_rows(struct rstore *s, struct error *err)
{
    char text[512];
    int64_t n = 0;
    struct request count = {.text = "SELECT count(*) FROM larder_lock", .fn = take_count, .arg = &n};
    remote_add(s->conn, &count);
    enum status st = remote_run(s->conn, err);
    if (st != ST_OK && st != ST_MISSING)
        return st;
    if (n >= STRIPES + 2 && s->lock_rows)
        return ST_OK;
    snprintf(text, sizeof text,
             rtext_postgres(s)
                 ? "CREATE TABLE IF NOT EXISTS larder_lock (n integer PRIMARY KEY);"
                   "INSERT INTO larder_lock SELECT generate_series(-2, %d) ON CONFLICT DO NOTHING;"
                   "INSERT INTO larder_meta (name, value) VALUES ('locks', 'rows')"
                   " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
                 : "INSERT IGNORE INTO larder_lock WITH RECURSIVE s (n) AS (SELECT -2 UNION ALL"
                   " SELECT n + 1 FROM s WHERE n < %d) SELECT n FROM s;"
                   "REPLACE INTO larder_meta (name, value) VALUES ('locks', 'rows')",
             STRIPES - 1);
    st = remote_script(s->conn, text, err);
    if (st == ST_OK) /* functions for applications that were made before they went by that row */
        st = remote_make_code(s->conn, err);
    if (st == ST_DENIED)
        return error_set(err, st,
                         "%.60s has no locks of sessions that work, and no rows to lock in their place: start"
                         " once with a role that may make the table larder_lock",
                         s->conn->place);
    s->lock_rows = st == ST_OK;
    return st;
}

/* The locks of sessions do nothing, or are not to be trusted by those who share the tables. */
static enum status use_rows(struct rstore *s, bool first, struct error *err)
{
    if (s->conn->exclusive)
        return error_set(err, ST_INVALID,
                         "%.60s: mode=exclusive needs locks that belong to sessions, and there are none that"
                         " work; leave it out",
                         s->conn->place);
    return first ? make_rows(s, err) : ST_OK;
}

enum status rproof_try(struct rstore *s, bool first, bool accept, struct error *err)
{
    enum status st = remote_try_features(s->conn, &s->features, err);
    if (st == ST_OK)
        st = read_word(s, err);
    if (st != ST_OK || rgalera(s))
        return st;
    if (!s->features.locks && !s->lock_rows && !first)
        return error_set(err, ST_IO, "%.60s: its locks do not work any more", s->conn->place);
    const char *lacks = !s->features.locks                         ? "its locks of sessions do nothing"
                        : !s->features.skip_locked                 ? "it has no SKIP LOCKED"
                        : rtext_postgres(s) && !s->features.listen ? "it has no LISTEN"
                                                                   : NULL;
    if (lacks && first)
        st = judge(s, lacks, accept, err);
    if (st == ST_OK && (!s->features.locks || s->lock_rows))
        st = use_rows(s, first, err);
    return st;
}
