/* The factory: which store a URL means. A new kind of database adds a line here. */
#include "sql/remote.h"
#include "store/remote/remote_open.h"
#include "store/sqlite/sqlite_open.h"
#include "store/store.h"

enum status store_open(const struct store_options *o, struct store **ret, struct error *err)
{
    return remote_is_url(o->url) ? remote_store_open(o, ret, err) : sqlite_store_open(o, ret, err);
}
