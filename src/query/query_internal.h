/* Private to query/: an engine, the text that it runs, and what its parts tell each other. */
#ifndef LARDER_QUERY_QUERY_INTERNAL_H
#define LARDER_QUERY_QUERY_INTERNAL_H

#include <sqlite3.h>

#include "query/memory.h"
#include "query/query.h"
#include "table/rows.h"

#define LOOP_LENGTH      (16 << 20) /* bytes of a value, on the loop ... */
#define THREAD_LENGTH    (64 << 20) /* ... and elsewhere */
#define PROGRESS_STEPS   200        /* of SQLite's machine, between two looks at the limits */
#define TABLES_MAX       500        /* declared at a time */
#define SQLITE_ARGS_MAX  100        /* of a function */
#define CACHE_STATEMENTS 32
#define CACHE_TEXT       4096

/* A table as SQLite knows it. It is as the catalog had it when it was declared; before a statement runs, the
   ones that it uses are compared with what they are by then, and declared anew if need be. */
struct query_table {
    sqlite3_vtab base;
    struct query_engine *e;
    uint32_t db;
    int64_t id, version;
    uint64_t serial; /* the how many-th that was declared */
    char name[SCHEMA_NAME_MAX + 1];
    const struct table *table; /* while a statement runs that uses it; NULL: it has not been compared */
    uint64_t run;              /* ... for which statement that was */
};

/* A statement that SQLite has prepared. */
struct statement {
    sqlite3_stmt *stmt;
    char *text; /* all that followed, by which it is found again; NULL: it is not kept */
    size_t ntext;
    size_t length; /* of the statement itself, in text */
    bool off_loop; /* what it does may take long: recursion, functions */
    bool writes;   /* INSERT, UPDATE, DELETE */
    char **tables; /* names of those that it uses */
    size_t ntables, tables_cap;
    uint64_t declared; /* tables of a higher serial are others than those it was prepared with */
    uint64_t used;     /* when, for the cache */
};

enum query_stop {
    STOP_NONE,
    STOP_MOVE, /* it takes too much for the loop */
    STOP_ROWS, /* more rows than a text may read */
    STOP_TIMEOUT,
    STOP_CANCEL,
    STOP_RESULT
};

struct row_change;

struct query_engine {
    sqlite3 *db;
    struct query_table **tables;
    size_t ntables, tables_cap;
    const struct table *declaring; /* what the next CREATE VIRTUAL TABLE stands for */
    bool internal;                 /* SQLite runs what this engine asks for, not a client */
    struct statement cache[CACHE_STATEMENTS];
    uint64_t clock; /* counts statements that ran */
    struct statement *preparing;
    struct memory_budget budget;
    sqlite3 *plain;       /* a database with SQLite's own functions; NULL: it was not needed yet */
    sqlite3_stmt *printf; /* there, with so many arguments */
    int printf_args;
    /* of the running text */
    const struct query *q;
    struct query_result *ret;
    enum status status; /* of the view, as soon as it is not ST_OK everything ends */
    enum query_stop stop;
    struct fault fault;
    struct arena arena; /* of the running statement */
    uint64_t steps;
    uint64_t rows_max;
    uint64_t result_bytes;
    bool writing; /* the text has a statement that writes: it cannot move */
    /* of the running statement */
    struct row_change *changes;
    size_t nchanges, changes_cap;
    size_t change_bytes;
    uint64_t written; /* rows, of the text so far */
    struct slice statement_text;
    const bool *given; /* by the table's columns and _expires: an INSERT names them; NULL: not looked yet */
    bool restart;      /* it has to be prepared again with lax, and run from its beginning */
    bool lax;          /* promise no order, and no single rows */
    /* of all texts */
    uint64_t declared;  /* how often a table was declared */
    int64_t kept_bytes; /* what SQLite has of earlier texts */
};

/* ---- engine.c ---- */

/* Whether the text may go on behind n more steps (of the size of SQLite's): else e->stop says why not. */
bool query_tick(struct query_engine *e, uint64_t n);

/* The same behind n more rows read. */
bool query_count_rows(struct query_engine *e, uint64_t n);

/* Around what is asked of the view. */
struct memory_budget *query_leave(struct query_engine *e);
int query_return(struct query_engine *e, struct memory_budget *was,
                 enum status st); /* SQLITE_OK, or an error */

/* The error that ends a virtual table's call: the reason is in the engine. */
int query_refuse(struct query_engine *e, enum fault_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- guard.c ---- */
int guard_authorize(void *arg, int action, const char *a, const char *b, const char *schema,
                    const char *trigger);

/* ---- functions.c ---- */
int functions_register(struct query_engine *e);

/* ---- printf.c ---- */
void sql_printf(sqlite3_context *ctx, int argc, sqlite3_value **argv);

/* ---- declare.c ---- */

/* The declared table of that name that is as the catalog has it now; NULL with e->fault: there is none. */
struct query_table *declare_table(struct query_engine *e, const char *name);
struct query_table *declared_table(const struct query_engine *e, const char *name);

/* Whether a declared table is as the catalog has it now; it is good for the running statement then. */
bool declared_still(struct query_engine *e, struct query_table *t);
/* Drops what is not any more as it was declared. True: there was such. */
bool declare_drop_stale(struct query_engine *e);

/* The table of a name, case ignored; NULL and a fault: there is none. */
enum status declare_open(struct query_engine *e, struct slice name, const struct table **ret,
                         struct fault *fault) MUST_CHECK;
void declare_forget_all(struct query_engine *e);

/* Of a virtual table that is being made: its columns. */
int declare_own(struct query_engine *e, const char *text);

/* ---- table_vtab.c, redis_vtab.c, listing_vtab.c ---- */
extern const sqlite3_module table_module;
int redis_register(struct query_engine *e);
int listing_register(struct query_engine *e);

/* Whether a table of SQL is one that can only be read. */
bool redis_has(const char *name);
bool listing_has(const char *name);

/* ---- values.c ---- */

/* The value as SQLite gives it; bytes are borrowed, or copied when arena is given. */
struct value value_from_sqlite(sqlite3_value *v, struct arena *arena);
void value_to_sqlite(sqlite3_context *ctx, const struct value *v);

/* ---- write.c ---- */
int write_collect(struct query_table *t, int argc, sqlite3_value **argv);
enum status write_apply(struct query_engine *e);
void write_forget(struct query_engine *e);
void write_release(struct query_engine *e);

/* ---- define.c ---- */

/* Runs the statement at the front of the text, which changes tables, and takes it off. */
enum status define_run(struct query_engine *e, struct slice *text) MUST_CHECK;

/* ---- statements.c ---- */

/* The first statement of a text, prepared, and its tables as they are now. NULL: e->fault, e->status or
   e->stop. */
struct statement *statement_get(struct query_engine *e, struct slice text, struct statement *spare);
void statement_done(struct query_engine *e, struct statement *s);
void statement_release(struct statement *s);
void statement_uses(struct statement *s, const char *table);

/* What SQLite's failure means: fills e->fault unless the reason is known. */
void statement_failed(struct query_engine *e, int rc);

#endif
