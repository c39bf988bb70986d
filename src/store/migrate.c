#include "store/migrate.h"

#include "sql/driver.h"
#include "sql/remote.h"
#include "store/remote_schema.h"
#include "store/schema.h"

#define PATIENCE_MS 10000 /* a large table is changed in one statement */

static enum status migrate_server(const char *url, struct migration *ret, struct error *err)
{
    const struct remote_options o = {.url = url, .connect_ms = PATIENCE_MS, .timeout_ms = 24 * 3600 * 1000};
    struct remote *c;
    enum status st = remote_open(&o, &c, err);
    if (st != ST_OK)
        return st;
    st = remote_schema_migrate(c, &ret->from, &ret->mended, err);
    ret->to = REMOTE_SCHEMA_VERSION;
    remote_close(c);
    return st;
}

static enum status migrate_file(const char *url, struct migration *ret, struct error *err)
{
    struct sql_options o = {.busy_ms = PATIENCE_MS, .sync = SQL_SYNC_ALWAYS};
    const struct sql_driver *driver = sql_driver_for(url, &o.target);
    struct sql *c;
    if (!driver || o.target[0] == '\0')
        return error_set(err, ST_INVALID,
                         "no such kind of database (known: sqlite:PATH, postgres://..., mysql://...)");
    enum status st = driver->open(&o, &c, err);
    if (st != ST_OK)
        return st;
    st = schema_read_version(c, &ret->from, err);
    if (st == ST_OK)
        st = schema_migrate(c, schema_steps, SCHEMA_VERSION, err);
    if (st == ST_OK)
        st = schema_verify(c, err);
    ret->to = SCHEMA_VERSION;
    sql_close(c);
    return st;
}

enum status store_migrate(const char *url, struct migration *ret, struct error *err)
{
    *ret = (struct migration){0};
    return remote_is_url(url) ? migrate_server(url, ret, err) : migrate_file(url, ret, err);
}
