/* Private to the files over SQLite: sqlite.c (statements, transactions, space) and sqlite_open.c. */
#ifndef LARDER_SQL_SQLITE_INTERNAL_H
#define LARDER_SQL_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "sql/sqlite.h"
#include "sql/wal.h"
#include "sql/walfile.h"
#include "sql/walindex.h"

struct sqlite {
    sqlite3 *db;
    struct wal *wal; /* NULL when read_only */
    int owner_fd;    /* holds the flock; -1 when read_only */
    int spread_fd;   /* of the log, to spread its writes; -1 when they are not */
    bool full;       /* what PRAGMA synchronous stands at: FULL or NORMAL */
    enum sqlite_sync sync;
    int busy_ms; /* how long it waits for locks */
    int64_t data_version;
    int64_t page_size;
    int64_t auto_vacuum;
    sqlite3_stmt *begin_read, *begin_write, *commit, *rollback, *get_data_version, *free_pages, *page_count;
    struct walfile *walfile;    /* NULL when read_only */
    struct wal_header seen;     /* the log's index, when what a transaction saw was last settled ... */
    bool has_seen;              /* ... which it is */
    const volatile void *index; /* the log's index in memory; NULL: not asked for, or not to be had */
    struct histogram sync_us;
};

/* ---- sqlite.c ---- */

/* Whether the system's error means that no more can be written. */
bool sqlite_out_of_space(int e);
enum status sqlite_status(int rc, int sys_errno);

/* Fills err from what the connection says about its last failure. */
enum status sqlite_fail(struct sqlite *c, int rc, struct error *err);

enum status sqlite_compile(struct sqlite *c, const char *text, sqlite3_stmt **ret,
                           struct error *err) MUST_CHECK;

/* The number in the first row and column of a statement, which is then reset. */
enum status sqlite_get_i64(struct sqlite *c, sqlite3_stmt *st, int64_t *ret, struct error *err) MUST_CHECK;

#endif
