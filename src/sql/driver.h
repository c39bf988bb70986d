/* What the store needs of a database: statements, transactions, and a few things that every database does in
   its own way (noticing other writers, giving space back, making commits durable).

   One driver for each database, found by the scheme of a URL; driver.c lists them. A connection and its
   statements belong to one thread. The texts of statements are the caller's; where databases differ in their
   SQL, the texts are kept side by side by dialect (store/sqlite/schema.c, store/sqlite/sqlite_statements.c).
 */
#ifndef LARDER_SQL_DRIVER_H
#define LARDER_SQL_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/slice.h"
#include "base/status.h"

enum sql_dialect { SQL_SQLITE };
#define SQL_DIALECTS 1

/* When a commit is durable: before it returns, at most a second or so later, or whenever the system likes. A
   crash never leaves a damaged database, whichever it is. */
enum sql_sync { SQL_SYNC_ALWAYS, SQL_SYNC_SECOND, SQL_SYNC_NEVER };

enum sql_txn {
    SQL_READ,
    SQL_WRITE,     /* takes the write lock at once */
    SQL_WRITE_LAZY /* so too, but its commit need not be durable before the next one of another kind */
};

struct sql_options {
    const char *target; /* the URL without its scheme: a path */
    enum sql_sync sync;
    uint64_t cache_bytes;
    uint32_t busy_ms; /* how long to wait for another process's lock, until stop_waiting */
    bool read_only;   /* takes no ownership, creates nothing */
};

struct sql_info {
    uint64_t bytes, free_bytes, wal_bytes;
    uint64_t reconnects; /* times that a lost connection was made anew */
    const struct histogram
        *sync_us; /* of the log's syncs; NULL: nobody here knows. As long as the connection */
    char engine[64];
};

struct sql_driver;

struct sql {
    const struct sql_driver *driver;
};

struct sql_stmt {
    const struct sql_driver *driver;
};

struct sql_driver {
    const char *scheme;
    enum sql_dialect dialect;

    /* Opens the database, creating it when there is none, and takes it for this process alone: ST_LOCKED
       when another process has it. */
    enum status (*open)(const struct sql_options *o, struct sql **ret, struct error *err);
    /* Makes what was committed durable, ends every statement's life. */
    void (*close)(struct sql *c);

    /* Runs statements without parameters or results. */
    enum status (*exec)(struct sql *c, const char *text, struct error *err);
    enum status (*prepare)(struct sql *c, const char *text, struct sql_stmt **ret, struct error *err);
    void (*finalize)(struct sql_stmt *st);

    /* Parameters count from 1, columns from 0. Bound bytes are borrowed until the next reset; a failed bind
       is reported by step. */
    void (*bind_i64)(struct sql_stmt *st, int i, int64_t v);
    void (*bind_double)(struct sql_stmt *st, int i, double v);
    void (*bind_blob)(struct sql_stmt *st, int i, struct slice v);
    void (*bind_text)(struct sql_stmt *st, int i, const char *v);
    enum status (*step)(struct sql_stmt *st, bool *ret_row, struct error *err);
    int64_t (*column_i64)(struct sql_stmt *st, int i);
    double (*column_double)(struct sql_stmt *st, int i);
    struct slice (*column_blob)(struct sql_stmt *st, int i); /* until the next step or reset; text as well */
    void (*reset)(struct sql_stmt *st);
    int64_t (*last_id)(struct sql *c); /* the row number that the last insert gave */
    int64_t (*changed_rows)(struct sql *c);

    /* *ret_others: another process has committed since this was last asked. */
    enum status (*begin)(struct sql *c, enum sql_txn kind, bool *ret_others, struct error *err);
    /* After a failure there is no transaction any more and nothing of it remains, but for ST_UNKNOWN: then
       it is gone from here, and a crash before the next commit may bring it back. */
    enum status (*commit)(struct sql *c, struct error *err);
    void (*rollback)(struct sql *c); /* none running: nothing happens */
    bool (*in_transaction)(struct sql *c);

    /* Everything below runs between transactions. */

    /* From now on a lock that another process holds is ST_BUSY (almost) at once. */
    void (*stop_waiting)(struct sql *c);
    enum status (*set_sync)(struct sql *c, enum sql_sync sync, struct error *err);
    enum status (*sync)(struct sql *c, struct error *err);
    enum status (*info)(struct sql *c, struct sql_info *ret, struct error *err);
    /* One small step of giving unused space back to the system, when there is much of it. */
    enum status (*reclaim)(struct sql *c, uint32_t max_pages, bool *ret_more, struct error *err);
};

extern const struct sql_driver sqlite_driver;

/* The driver for a URL (scheme:target; a bare path is SQLite's) and the target within it. NULL: none. */
const struct sql_driver *sql_driver_for(const char *url, const char **ret_target);

static inline void sql_close(struct sql *c)
{
    if (c)
        c->driver->close(c);
}

static inline MUST_CHECK enum status sql_exec(struct sql *c, const char *text, struct error *err)
{
    return c->driver->exec(c, text, err);
}

static inline MUST_CHECK enum status sql_prepare(struct sql *c, const char *text, struct sql_stmt **ret,
                                                 struct error *err)
{
    return c->driver->prepare(c, text, ret, err);
}

static inline void sql_finalize(struct sql_stmt *st)
{
    if (st)
        st->driver->finalize(st);
}

static inline void sql_bind_i64(struct sql_stmt *st, int i, int64_t v)
{
    st->driver->bind_i64(st, i, v);
}

static inline void sql_bind_double(struct sql_stmt *st, int i, double v)
{
    st->driver->bind_double(st, i, v);
}

static inline void sql_bind_blob(struct sql_stmt *st, int i, struct slice v)
{
    st->driver->bind_blob(st, i, v);
}

static inline void sql_bind_text(struct sql_stmt *st, int i, const char *v)
{
    st->driver->bind_text(st, i, v);
}

static inline MUST_CHECK enum status sql_step(struct sql_stmt *st, bool *ret_row, struct error *err)
{
    return st->driver->step(st, ret_row, err);
}

static inline int64_t sql_column_i64(struct sql_stmt *st, int i)
{
    return st->driver->column_i64(st, i);
}

static inline double sql_column_double(struct sql_stmt *st, int i)
{
    return st->driver->column_double(st, i);
}

static inline struct slice sql_column_blob(struct sql_stmt *st, int i)
{
    return st->driver->column_blob(st, i);
}

static inline void sql_reset(struct sql_stmt *st)
{
    st->driver->reset(st);
}

static inline MUST_CHECK enum status sql_begin(struct sql *c, enum sql_txn kind, bool *ret_others,
                                               struct error *err)
{
    return c->driver->begin(c, kind, ret_others, err);
}

static inline MUST_CHECK enum status sql_commit(struct sql *c, struct error *err)
{
    return c->driver->commit(c, err);
}

static inline void sql_rollback(struct sql *c)
{
    c->driver->rollback(c);
}

/* Steps a statement that returns no rows to its end and resets it. */
enum status sql_run(struct sql_stmt *st, struct error *err) MUST_CHECK;

#endif
