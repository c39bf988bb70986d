#include "sql/proof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The versions that the tests run, and those between them. */
#define POSTGRES_FIRST 15
#define POSTGRES_LAST  18
#define MARIADB_SERIES "10.11."

/* PostgreSQL: and how many things are there that only others have who speak of themselves as PostgreSQL. */
static const char *const who_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT version()",
    [REMOTE_MARIADB] = "SELECT @@version, @@version_comment",
};

static const char strangers_text[] = "SELECT (SELECT count(*) FROM pg_proc WHERE proname = 'aurora_version') "
                                     "+ (SELECT count(*) FROM pg_settings"
                                     " WHERE name ~ '^(apg_|aurora|alloydb|google_|yb_|polar|neon[.])')";

static enum status take_who(void *arg, const struct remote_row *row)
{
    struct remote_identity *id = arg;
    struct slice a = remote_bytes(row, 0), b = row->n > 1 ? remote_bytes(row, 1) : (struct slice){0};
    const char *on = a.n ? memmem(a.p, a.n, " on ", 4) : NULL;
    int n = (int)(on ? (size_t)(on - a.p) : a.n);
    snprintf(id->text, sizeof id->text, "%.*s%s%.*s%s", n > 60 ? 60 : n, a.p ? a.p : "", b.n ? " (" : "",
             (int)(b.n > 60 ? 60 : b.n), b.p ? b.p : "", b.n ? ")" : "");
    return ST_OK;
}

static enum status take_number(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

/* "PostgreSQL 15.8 (Debian ...)", and not "PostgreSQL 15.2-YB-2.25.0". */
static bool is_tested_postgres(const char *text)
{
    static const char name[] = "PostgreSQL ";
    char *end;
    if (strncmp(text, name, sizeof name - 1) != 0)
        return false;
    long major = strtol(text + sizeof name - 1, &end, 10);
    if (major < POSTGRES_FIRST || major > POSTGRES_LAST || *end != '.')
        return false;
    strtol(end + 1, &end, 10);
    return *end == '\0' || *end == ' ';
}

static bool is_tested_mariadb(const char *text)
{
    return strncmp(text, MARIADB_SERIES, sizeof MARIADB_SERIES - 1) == 0 && strstr(text, "-MariaDB");
}

bool remote_is_tested(enum remote_dialect dialect, const char *text)
{
    return dialect == REMOTE_POSTGRES ? is_tested_postgres(text) : is_tested_mariadb(text);
}

enum status remote_identify(struct remote *c, struct remote_identity *ret, struct error *err)
{
    int64_t strangers = 0;
    *ret = (struct remote_identity){0};
    struct request who = {.text = who_text[c->dialect], .fn = take_who, .arg = ret};
    remote_add(c, &who);
    enum status st = remote_run(c, err);
    if (st != ST_OK)
        return st;
    ret->tested = remote_is_tested(c->dialect, ret->text);
    if (c->dialect != REMOTE_POSTGRES || !ret->tested)
        return ST_OK;
    struct request more = {.text = strangers_text, .fn = take_number, .arg = &strangers};
    remote_add(c, &more);
    st = remote_run(c, err);
    ret->tested = st == ST_OK && strangers == 0;
    return c->lost ? st : ST_OK;
}

/* ---- the mark ---- */

static const char make_text[] =
    "CREATE TABLE IF NOT EXISTS larder_tested (server VARCHAR(160) PRIMARY KEY, level INT NOT NULL,"
    " larder VARCHAR(40) NOT NULL)";

static const char *const drop_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "DELETE FROM larder_tested WHERE server = convert_from($1, 'UTF8')",
    [REMOTE_MARIADB] = "DELETE FROM larder_tested WHERE server = ?1",
};

static const char *const put_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "INSERT INTO larder_tested (server, level, larder) VALUES (convert_from($1, 'UTF8'),"
                        " $2::bigint, convert_from($3, 'UTF8'))",
    [REMOTE_MARIADB] = "INSERT INTO larder_tested (server, level, larder) VALUES (?1, ?2, ?3)",
};

static const char *const find_text[REMOTE_DIALECTS] = {
    [REMOTE_POSTGRES] = "SELECT count(*) FROM larder_tested WHERE server = convert_from($1, 'UTF8')"
                        " AND level >= $2",
    [REMOTE_MARIADB] = "SELECT count(*) FROM larder_tested WHERE server = ?1 AND level >= ?2",
};

/* The row of this server, with one of the texts: ?1 is what it says of itself, ?2 the level, ?3 our version.
 */
static void add_row(struct remote *c, const char *text, int nparams, const struct remote_identity *id,
                    void *found)
{
    const struct param p[] = {param_bytes(slice_str(id->text)), param_i64(PROOF_LEVEL),
                              param_bytes(slice_str(LARDER_VERSION))};
    struct request r = {
        .text = text, .params = p, .nparams = nparams, .fn = found ? take_number : NULL, .arg = found};
    remote_add(c, &r);
}

enum status remote_has_mark(struct remote *c, const struct remote_identity *id, bool *ret, struct error *err)
{
    int64_t found = 0;
    add_row(c, find_text[c->dialect], 2, id, &found);
    enum status st = remote_run(c, err);
    *ret = st == ST_OK && found > 0;
    return st == ST_MISSING ? ST_OK : st;
}

enum status remote_drop_mark(struct remote *c, const struct remote_identity *id, struct error *err)
{
    add_row(c, drop_text[c->dialect], 1, id, NULL);
    enum status st = remote_run(c, err);
    return st == ST_MISSING ? ST_OK : st;
}

enum status remote_put_mark(struct remote *c, const struct remote_identity *id, struct error *err)
{
    remote_add_text(c, make_text);
    enum status st = remote_run(c, err);
    if (st == ST_OK)
        st = remote_drop_mark(c, id, err);
    if (st != ST_OK)
        return st;
    add_row(c, put_text[c->dialect], 3, id, NULL);
    return remote_run(c, err);
}
