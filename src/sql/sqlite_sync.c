/* How long SQLite's syncs of the log take. A commit's time is that of its pages and of its sync; which of the
   two grows tells a busy processor from a slow disk. SQLite hands out its file, so its sync is led through
   here; all else stays SQLite's own. */
#include "base/clock.h"
#include "sql/sqlite_internal.h"

static int timed_sync(sqlite3_file *f, int flags)
{
    const struct sqlite_syncs *s = (const struct sqlite_syncs *)f->pMethods;
    int64_t start = clock_mono_us();
    int rc = s->real->xSync(f, flags);
    histogram_add_shared(s->us, (uint64_t)(clock_mono_us() - start));
    return rc;
}

void sqlite_time_syncs(struct sqlite *c)
{
    sqlite3_file *log = NULL;
    if (sqlite3_file_control(c->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK || !log ||
        !log->pMethods)
        return;
    c->syncs.real = log->pMethods;
    c->syncs.us = &c->sync_us;
    c->syncs.methods = *log->pMethods;
    c->syncs.methods.xSync = timed_sync;
    log->pMethods = &c->syncs.methods;
}
