/* A connection to a database server: PostgreSQL or MariaDB. What costs there is the round trip, so statements
   are queued and sent together: remote_add says what to run, remote_run sends everything that was added,
   waits for all answers and hands their rows out in order. A statement may carry many rows in one go.

   The texts are the caller's, one for each dialect. PostgreSQL: $1, $2 ...; a parameter with many values is
   an array (unnest). MariaDB has no arrays: in its texts ?1, ?2 ... are values, and {sep|body} is repeated
   for each row, with sep in between: INSERT INTO t VALUES {,|(?1, ?2)}. Names of ours begin with larder_ in
   the texts; a connection with another prefix puts that in its place.

   A connection belongs to one thread. Nothing here waits longer than the time-out: what takes longer is lost,
   and the connection with it. */
#ifndef LARDER_SQL_REMOTE_H
#define LARDER_SQL_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"

enum remote_dialect { REMOTE_POSTGRES, REMOTE_MARIADB };
#define REMOTE_DIALECTS 2

enum param_kind { PARAM_I64, PARAM_DOUBLE, PARAM_BYTES };

/* One value, or one for each row of a request. */
struct param {
    enum param_kind kind;
    bool many;
    union {
        int64_t i64;
        double dbl;
        struct slice bytes;
        const int64_t *i64s;
        const double *dbls;
        const struct slice *slices;
    };
};

static inline struct param param_i64(int64_t v)
{
    return (struct param){.kind = PARAM_I64, .i64 = v};
}

static inline struct param param_double(double v)
{
    return (struct param){.kind = PARAM_DOUBLE, .dbl = v};
}

static inline struct param param_bytes(struct slice v)
{
    return (struct param){.kind = PARAM_BYTES, .bytes = v};
}

static inline struct param param_i64s(const int64_t *v)
{
    return (struct param){.kind = PARAM_I64, .many = true, .i64s = v};
}

static inline struct param param_doubles(const double *v)
{
    return (struct param){.kind = PARAM_DOUBLE, .many = true, .dbls = v};
}

static inline struct param param_slices(const struct slice *v)
{
    return (struct param){.kind = PARAM_BYTES, .many = true, .slices = v};
}

/* A row of an answer. It is borrowed for the call of a remote_row_fn. */
struct remote_row {
    const struct slice *cells; /* NULL in SQL: p is NULL */
    int n;
    bool binary; /* numbers in network order, else in text */
};

int64_t remote_i64(const struct remote_row *row, int column);
double remote_double(const struct remote_row *row, int column);

static inline struct slice remote_bytes(const struct remote_row *row, int column)
{
    return row->cells[column];
}

/* Anything but ST_OK: no more rows of this run are handed out, and remote_run returns that status. */
typedef enum status remote_row_fn(void *arg, const struct remote_row *row);

#define REMOTE_PARAMS 24

struct request {
    const char *text; /* of the connection's dialect */
    const struct param *params;
    int nparams;
    size_t nrows; /* how many values the parameters with many have */
    remote_row_fn *fn;
    void *arg;
    /* When must_change is set: every row must have been there to be changed (PostgreSQL: as many were;
       MariaDB: none was inserted by an INSERT ... ON DUPLICATE KEY UPDATE), else it fails with this text, and
       with the status `unchanged`. */
    const char *must_change;
    enum status unchanged;
    /* MariaDB, an INSERT ... ON DUPLICATE KEY UPDATE of many rows: unless every row was there and is another
       now it is ST_CONFLICT, and what was added behind it is not run. */
    bool guarded;
    int64_t *ret_changed; /* rows changed; may be NULL. Written by remote_run */
};

struct remote;

/* Another's knowledge, which is asked for while an answer does not come. */
typedef bool remote_away_fn(void *arg);

struct remote_ops {
    void (*close)(struct remote *c);
    void (*add)(struct remote *c, const struct request *r);
    enum status (*run)(struct remote *c, struct error *err);
    enum status (*script)(struct remote *c, const char *text, struct error *err);
    bool (*idle)(struct remote *c);
    void (*post)(struct remote *c);
    void (*part)(struct remote *c); /* NULL: statements stand for themselves anyway */
    int (*socket)(const struct remote *c);
    bool (*notified)(struct remote *c); /* NULL: the database does not tell */
};

/* A server that is a node of a Galera cluster, see sql/galera.h. */
struct remote_node {
    bool on;          /* it is one */
    char name[64];    /* of the node */
    char state[32];   /* "Synced", when it was last asked */
    uint32_t size;    /* of the cluster, then */
    uint32_t index;   /* of the node among the others, then */
    uint64_t session; /* the session's number on this node */
};

struct remote {
    const struct remote_ops *ops;
    enum remote_dialect dialect;
    bool exclusive; /* mode=exclusive: one server alone */
    bool lost;      /* nothing but closing works any more */
    bool deadlock;  /* the last failure was one: what the transaction did is undone. MariaDB alone */
    int host;       /* which of the URL's it is, from remote_options.first_host on. MariaDB alone */
    struct remote_node galera;
    uint32_t timeout_ms; /* of an answer */
    /* The owner's, of an open connection: whether the server is known to be away, NULL: nobody knows. Then it
       is not waited for ... */
    remote_away_fn *away;
    void *away_arg;
    bool patient;         /* ... but for this: what became of it could not be told */
    uint64_t round_trips; /* that were waited for */
    char schema[64];      /* where the tables are, PostgreSQL only; empty: as the search path has it */
    char prefix[64];      /* of the tables' names: "larder_" */
    char server[64];      /* "PostgreSQL 15.8" */
    char place[160];      /* "larder on db.example:5432", for messages: no password */
};

struct remote_options {
    const char *url; /* postgres://, postgresql://, mysql://, mariadb:// */
    uint32_t connect_ms;
    uint32_t timeout_ms;
    bool again;     /* this process has had one: that the server is as it must be is known */
    bool replica;   /* of several hosts, one that can only be read ... */
    bool any;       /* ... rather than another */
    int first_host; /* of the URL's, that is tried: modulo their number. MariaDB alone */
};

/* Whether a URL is one of ours. */
bool remote_is_url(const char *url);

/* Whether it says mode=exclusive. */
bool remote_is_exclusive(const char *url);

enum status remote_open(const struct remote_options *o, struct remote **ret, struct error *err) MUST_CHECK;

/* After remote_open has failed with ST_IO: whether the server is there all the same, and does not want this
   connection (the password, the role, the database). Then it does not help to wait. */
bool remote_refuses(const struct remote_options *o);

/* c may be NULL. */
static inline void remote_close(struct remote *c)
{
    if (c)
        c->ops->close(c);
}

/* Queues a statement; everything is copied but for where answers go. */
static inline void remote_add(struct remote *c, const struct request *r)
{
    c->ops->add(c, r);
}

/* A statement without parameters or answer. */
void remote_add_text(struct remote *c, const char *text);

/* Sends what was added since the last run, in one round trip, and waits for the answers. The first failure is
   what is returned; what comes behind it is not run. A transaction that the statements have begun is then
   still open and fails until it is rolled back.
   ST_CONFLICT: a deadlock, a serialization failure or a key that another session has just made, or,
   where servers share the tables of a MariaDB, a lock that was not had in time: when all of it is rolled
   back, the same may work when it is tried again. ST_BUSY: a lock was not had in time. ST_IO with c->lost:
   the connection is gone; whether the server has run what was sent is not known. */
static inline MUST_CHECK enum status remote_run(struct remote *c, struct error *err)
{
    return c->ops->run(c, err);
}

/* What is added next does not belong to one transaction with what was added so far, unless BEGIN says so: it
   still goes out in one round trip. */
static inline void remote_part(struct remote *c)
{
    if (c->ops->part)
        c->ops->part(c);
}

/* Sends what was added and does not wait: the answers are taken, and forgotten, before the next run. For the
   end of a transaction that changed nothing. */
static inline void remote_post(struct remote *c)
{
    c->ops->post(c);
}

/* Runs a text of several statements at once: for schemas. */
static inline MUST_CHECK enum status remote_script(struct remote *c, const char *text, struct error *err)
{
    return c->ops->script(c, text, err);
}

/* What becomes readable when the server has something to say. The connection's. */
static inline int remote_socket(const struct remote *c)
{
    return c->ops->socket(c);
}

/* Whether another session has notified this one, which listens (LISTEN), since the last time. */
static inline bool remote_notified(struct remote *c)
{
    return c->ops->notified && c->ops->notified(c);
}

/* Between transactions: whether the connection still stands, as far as one can see without asking. */
static inline bool remote_idle(struct remote *c)
{
    return !c->lost && c->ops->idle(c);
}

#endif
