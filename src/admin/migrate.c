#include "admin/migrate.h"

#include "sql/driver.h"
#include "sql/remote.h"
#include "store/remote/remote_schema.h"
#include "store/sqlite/schema.h"

#define PATIENCE_MS 10000

static enum status migrate_server(const char *url, struct migration *ret, struct error *err)
{
    ret->to = REMOTE_SCHEMA_VERSION;
    return remote_schema_make(url, &ret->from, &ret->mended, err);
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
