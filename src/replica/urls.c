#include "replica/urls.h"

#include <string.h>

#include "base/hide.h"
#include "base/mem.h"
#include "sql/remote.h"
#include "sql/url.h"

static bool is_postgres(const struct url *u)
{
    return strncmp(u->scheme, "postgres", 8) == 0;
}

/* Whether two parts of URLs contradict each other. What a URL leaves out has a default that is not known
   here. */
static bool differ(const char *a, const char *b)
{
    return a && b && strcmp(a, b) != 0;
}

static bool params_differ(const struct url *a, const struct url *b, const char *name)
{
    const char *x = url_param(a, name), *y = url_param(b, name);
    return strcmp(x ? x : "", y ? y : "") != 0;
}

/* Whether a server can be a replica of the store. shown: its URL, for messages. */
static enum status check_pair(const struct url *store, const struct url *replica, const char *shown,
                              struct error *err)
{
    if (is_postgres(store) != is_postgres(replica))
        return error_set(err, ST_INVALID,
                         "--replica: %.100s cannot be a replica of the store: one is PostgreSQL, the other "
                         "MariaDB",
                         shown);
    if (replica->nhosts > 1)
        return error_set(err, ST_INVALID,
                         "--replica: %.100s names several hosts: give --replica once for each", shown);
    if (differ(store->database, replica->database))
        return error_set(err, ST_INVALID,
                         "--replica: %.100s: a replica has the database of the store, \"%.40s\"", shown,
                         store->database);
    if (params_differ(store, replica, "prefix") || params_differ(store, replica, "schema"))
        return error_set(err, ST_INVALID, "--replica: %.100s: prefix and schema must be those of the store",
                         shown);
    if (url_param(replica, "mode"))
        return error_set(err, ST_INVALID, "--replica: %.100s: mode is the store's to say", shown);
    return ST_OK;
}

static enum status check_one(const struct url *store, const char *url, struct error *err)
{
    char shown[256];
    struct url u;
    hide_password(shown, sizeof shown, url);
    if (!remote_is_url(url))
        return error_set(err, ST_INVALID,
                         "--replica: %.100s is no database server: expected postgres://... or mysql://...",
                         shown);
    enum status st = url_parse(url, &u, err);
    if (st != ST_OK)
        return st;
    st = check_pair(store, &u, shown, err);
    url_release(&u);
    return st;
}

static enum status check_all(const char *store, const struct replica_urls *r, struct error *err)
{
    struct url u;
    enum status st = url_parse(store, &u, err);
    if (st != ST_OK)
        return st;
    for (uint32_t i = 0; i < r->n && st == ST_OK; i++)
        st = check_one(&u, r->urls[i], err);
    url_release(&u);
    return st;
}

static enum status split(struct replica_urls *r, struct error *err)
{
    char *save = NULL;
    for (char *url = strtok_r(r->text, " ", &save); url; url = strtok_r(NULL, " ", &save)) {
        if (r->n == REPLICAS_MAX)
            return error_set(err, ST_INVALID, "--replica: there may be at most %d", REPLICAS_MAX);
        r->urls[r->n++] = url;
    }
    return ST_OK;
}

enum status replica_urls_read(const char *store, const char *list, struct replica_urls *ret,
                              struct error *err)
{
    *ret = (struct replica_urls){0};
    if (!list[0])
        return ST_OK;
    if (!remote_is_url(store))
        return error_set(err, ST_INVALID,
                         "--replica: SQLite has no replicas. This server answers reads from memory and its "
                         "own file: every one is strong");
    if (remote_is_exclusive(store))
        return error_set(err, ST_INVALID,
                         "--replica: with mode=exclusive this server answers reads from memory: every one is "
                         "strong, and replicas are not read from");
    ret->text = mem_strdup(list);
    enum status st = split(ret, err);
    if (st == ST_OK)
        st = check_all(store, ret, err);
    if (st != ST_OK)
        replica_urls_release(ret);
    return st;
}

void replica_urls_release(struct replica_urls *u)
{
    mem_free(u->text);
    *u = (struct replica_urls){0};
}
