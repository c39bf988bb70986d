/* A copy of a database in another file. */
#include <string.h>

#include "sql/sqlite_internal.h"

#define STEP_PAGES 4096

enum status sqlite_copy(struct sqlite *c, const char *to, sqlite_copy_fn *fn, void *arg, struct error *err)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    /* Nobody needs half a copy: the caller syncs it when it is whole. */
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF", NULL, NULL, NULL);
    sqlite3_backup *b = rc == SQLITE_OK ? sqlite3_backup_init(db, "main", c->db, "main") : NULL;
    while (b && (rc = sqlite3_backup_step(b, STEP_PAGES)) == SQLITE_OK)
        if (fn)
            fn(arg, sqlite3_backup_pagecount(b) - sqlite3_backup_remaining(b), sqlite3_backup_pagecount(b));
    int finished = sqlite3_backup_finish(b);
    if (rc == SQLITE_DONE || (rc == SQLITE_OK && b))
        rc = finished;
    else if (rc == SQLITE_OK)
        rc = sqlite3_errcode(db);
    enum status st = ST_OK;
    if (rc != SQLITE_OK)
        st = error_set(err, sqlite_status(rc, db ? sqlite3_system_errno(db) : 0), "cannot copy to %s: %s", to,
                       db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    sqlite3_close(db);
    return st;
}
