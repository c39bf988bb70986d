/* A schema or a database for the selftest alone, and sessions in it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "journal/journal.h"
#include "selftest/selftest_internal.h"
#include "sql/url.h"

#define CONNECT_MS 5000
#define BUSY_MS    100
#define DATABASES  4

/* ---- URLs ---- */

/* The URL without what a scratch decides itself. */
static char *plain_url(const char *url)
{
    char *text = mem_strdup(url);
    url_remove_param(text, "mode");
    return text;
}

/* PostgreSQL: schema=NAME. MariaDB: another database. */
static char *url_in(const char *url, enum remote_dialect dialect, const char *name, const char *mode)
{
    char *text = plain_url(url);
    struct buf out = {0};
    if (dialect == REMOTE_POSTGRES)
        url_remove_param(text, "schema");
    char *query = strchr(text, '?'), *authority = strstr(text, "://") + 3;
    size_t head = query ? (size_t)(query - text) : strlen(text);
    char *path = memchr(authority, '/', head - (size_t)(authority - text));
    if (dialect == REMOTE_MARIADB && path)
        buf_addf(&out, "%.*s/%s", (int)(path - text), text, name);
    else
        buf_addf(&out, "%.*s", (int)head, text);
    buf_addf(&out, "?mode=%s", mode);
    if (dialect == REMOTE_POSTGRES)
        buf_addf(&out, "&schema=%s", name);
    if (query && query[1])
        buf_addf(&out, "&%s", query + 1);
    buf_add(&out, "", 1);
    mem_free(text);
    text = mem_strdup(out.p);
    buf_release(&out);
    return text;
}

/* ---- making and removing ---- */

static enum status take_text(void *arg, const struct remote_row *row)
{
    struct slice s = remote_bytes(row, 0);
    snprintf(arg, 160, "%.*s", (int)(s.n > 159 ? 159 : s.n), s.p ? s.p : "");
    return ST_OK;
}

/* It may not be made: what to run so that it may. */
static enum status denied(struct scratch *s, struct error *err)
{
    static const char *const grant_text[REMOTE_DIALECTS] = {
        [REMOTE_POSTGRES] = "SELECT 'GRANT CREATE ON DATABASE ' || quote_ident(current_database()) || ' TO '"
                            " || quote_ident(current_user)",
        [REMOTE_MARIADB] = "SELECT CONCAT('GRANT ALL PRIVILEGES ON `lardertest\\\\_%`.* TO ''',"
                           " REPLACE(CURRENT_USER(), '@', '''@'''), '''')",
    };
    char grant[160] = "";
    struct error ignored;
    struct request r = {.text = grant_text[s->admin->dialect], .fn = take_text, .arg = grant};
    remote_add(s->admin, &r);
    if (remote_run(s->admin, &ignored) != ST_OK)
        grant[0] = '\0';
    return error_set(err, ST_DENIED, "no %s may be made there for the test; run: %s",
                     s->admin->dialect == REMOTE_POSTGRES ? "schema" : "database", grant);
}

enum status scratch_make(const char *url, struct scratch *ret, struct error *err)
{
    uint32_t number;
    char text[128];
    ret->given = plain_url(url);
    enum status st = scratch_session(ret->given, &ret->admin, err);
    if (st != ST_OK)
        return st;
    bool postgres = ret->admin->dialect == REMOTE_POSTGRES;
    rand_secure(&number, sizeof number);
    snprintf(ret->name, sizeof ret->name, "lardertest_%ld_%08" PRIx32, (long)getpid(), number);
    snprintf(text, sizeof text, "CREATE %s %s", postgres ? "SCHEMA" : "DATABASE", ret->name);
    st = remote_script(ret->admin, text, err);
    if (st == ST_DENIED)
        return denied(ret, err);
    ret->made = st == ST_OK;
    ret->url = url_in(url, ret->admin->dialect, ret->name, "shared");
    ret->alone = url_in(url, ret->admin->dialect, ret->name, "exclusive");
    return st;
}

enum status scratch_return(struct scratch *s, struct error *err)
{
    if (s->admin && !s->admin->lost && remote_idle(s->admin))
        return ST_OK;
    remote_close(s->admin);
    s->admin = NULL;
    return scratch_session(s->given, &s->admin, err);
}

enum status scratch_remove(struct scratch *s, struct error *err)
{
    enum status st = s->made ? scratch_return(s, err) : ST_OK;
    char text[128];
    if (s->made && st == ST_OK) {
        bool postgres = s->admin->dialect == REMOTE_POSTGRES;
        snprintf(text, sizeof text, "DROP %s %s%s", postgres ? "SCHEMA" : "DATABASE", s->name,
                 postgres ? " CASCADE" : "");
        st = remote_script(s->admin, text, err);
        for (int i = 0; i < 5 && kept_out(st); i++) /* sessions that were cut are still ending */
            st = remote_script(s->admin, text, err);
    }
    remote_close(s->admin);
    mem_free(s->given);
    mem_free(s->url);
    mem_free(s->alone);
    s->admin = NULL;
    s->given = s->url = s->alone = NULL;
    s->made = false;
    return st;
}

/* ---- sessions ---- */

enum status scratch_session(const char *url, struct remote **ret, struct error *err)
{
    const struct remote_options o = {.url = url, .connect_ms = CONNECT_MS, .timeout_ms = SESSION_MS};
    return remote_open(&o, ret, err);
}

enum status scratch_store(const char *url, bool joins, struct store **ret, struct error *err)
{
    const struct store_options o = {
        .url = url,
        .durability = DURABILITY_ALWAYS,
        .databases = DATABASES,
        .busy_ms = BUSY_MS,
        .timeout_ms = SESSION_MS,
        .replay = journal_replay,
        .joins = joins,
        .accept_untested = true,
    };
    return store_open(&o, ret, err);
}

void scratch_close_plain(struct selftest *t)
{
    remote_close(t->x);
    remote_close(t->y);
    t->x = t->y = NULL;
}

void scratch_close(struct selftest *t)
{
    store_close(t->a);
    store_close(t->b);
    t->a = t->b = NULL;
    scratch_close_plain(t);
}

/* Both, and their table as it is at the beginning of a check. */
static enum status open_plain(struct selftest *t, struct error *err)
{
    scratch_close_plain(t);
    enum status st = scratch_session(t->scratch.url, &t->x, err);
    if (st == ST_OK)
        st = scratch_session(t->scratch.url, &t->y, err);
    if (st == ST_OK)
        st = remote_script(
            t->x, "CREATE TABLE IF NOT EXISTS larder_scratch (n INT PRIMARY KEY, v BIGINT NOT NULL)", err);
    if (st == ST_OK)
        st = remote_script(t->x, "DELETE FROM larder_scratch", err);
    if (st == ST_OK)
        st = remote_script(t->x, "INSERT INTO larder_scratch (n, v) VALUES (1, 0), (2, 0), (3, 0)", err);
    return st;
}

enum status scratch_open(struct selftest *t, struct error *err)
{
    enum status st = ST_OK;
    if (!t->a)
        st = scratch_store(t->scratch.url, t->entered, &t->a, err);
    t->entered |= st == ST_OK;
    if (st == ST_OK && !t->b)
        st = scratch_store(t->scratch.url, true, &t->b, err);
    return st == ST_OK && !t->y ? open_plain(t, err) : st;
}

/* ---- plain SQL ---- */

enum status plain_run(struct remote *c, const char *text, struct error *err)
{
    remote_add_text(c, text);
    return remote_run(c, err);
}

static enum status take_number(void *arg, const struct remote_row *row)
{
    *(int64_t *)arg = remote_i64(row, 0);
    return ST_OK;
}

enum status plain_number(struct remote *c, const char *text, int64_t *ret, struct error *err)
{
    struct request r = {.text = text, .fn = take_number, .arg = ret};
    *ret = INT64_MIN;
    remote_add(c, &r);
    return remote_run(c, err);
}

enum status plain_hurry(struct remote *c, struct error *err)
{
    return plain_run(
        c, c->dialect == REMOTE_POSTGRES ? "SET lock_timeout = 300" : "SET innodb_lock_wait_timeout = 1",
        err);
}

void plain_cut(struct remote *c)
{
    shutdown(remote_socket(c), SHUT_RDWR);
    c->lost = true;
}

enum status plain_soon(struct remote *c, const char *text, struct error *err)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int64_t deadline = clock_mono_us() + (int64_t)SESSION_MS * 1000;
    for (;;) {
        struct error ignored;
        enum status st = plain_run(c, text, err);
        if (!kept_out(st) || clock_mono_us() > deadline)
            return st;
        if (plain_run(c, "ROLLBACK", &ignored) != ST_OK)
            return st;
        nanosleep(&pause, NULL);
    }
}
