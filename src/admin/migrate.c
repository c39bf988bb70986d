#include "admin/migrate.h"

#include "sql/remote.h"
#include "sql/sqlite.h"
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
    struct sqlite_options o = {.busy_ms = PATIENCE_MS, .sync = SQL_SYNC_ALWAYS};
    struct sqlite *c;
    enum status st = sqlite_path(url, &o.path, err);
    if (st == ST_OK)
        st = sqlite_open(&o, &c, err);
    if (st != ST_OK)
        return st;
    st = schema_read_version(c, &ret->from, err);
    if (st == ST_OK)
        st = schema_migrate(c, schema_steps, SCHEMA_VERSION, err);
    if (st == ST_OK)
        st = schema_verify(c, err);
    ret->to = SCHEMA_VERSION;
    sqlite_close(c);
    return st;
}

enum status store_migrate(const char *url, struct migration *ret, struct error *err)
{
    *ret = (struct migration){0};
    return remote_is_url(url) ? migrate_server(url, ret, err) : migrate_file(url, ret, err);
}
