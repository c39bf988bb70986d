/* SQL: SQLite's own engine over an empty database in memory, whose tables are virtual: those of the selected
   database (src/table/), and larder_keys, larder_strings, larder_hashes, larder_lists, larder_sets,
   larder_zsets, larder_tables, larder_columns, larder_indexes, which can only be read. All of them read and
   write through a view, so that a text sees what its batch has written and is a step of its transaction.

   An engine belongs to one thread: each executor has one, and each thread that answers long queries. It knows
   nothing of sockets and threads: whoever runs a text says where it reads (catalog, view, database), what it
   may take, and where the result goes.

   On the loop (limits.on_loop) a text must be short. What is not allowed there, or takes more than its
   limits, ends with QUERY_MOVE: nothing was written, what the sink was told is void, and the text may run
   again from its beginning on a thread; a text that writes never moves, it ends with a fault.

   A text may have several statements: they are one step. Each reads first, and its writes are collected,
   checked and then written. With a fault behind the first write, ret->wrote is true and the caller has to
   undo the call; else the view is as it was. */
#ifndef LARDER_QUERY_QUERY_H
#define LARDER_QUERY_QUERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"
#include "table/catalog.h"
#include "table/fault.h"
#include "table/value.h"

#define QUERY_TEXT_MAX 1000000 /* bytes of a text */
#define QUERY_ARGS_MAX 32766

struct query_engine;

struct query_limits {
    bool on_loop;
    bool may_write;             /* false: INSERT, UPDATE, DELETE and what changes tables are refused */
    uint64_t rows;              /* read from the view; 0: any number */
    uint64_t steps;             /* of SQLite's machine; 0: any number */
    uint64_t result_bytes;      /* handed to the sink */
    uint64_t write_rows;        /* of one text */
    uint64_t memory;            /* that SQLite may take for it */
    int64_t deadline_us;        /* clock_mono_us; 0: none */
    const _Atomic bool *cancel; /* set by another thread: it ends soon; NULL: nobody can */
};

/* A column of the result. typed: it is a column of a table as it stands, of this type; the values of one that
   is BOOLEAN are VALUE_BOOL. Others have whatever kind each value has. */
struct query_column {
    struct slice name;
    bool typed;
    enum column_type type;
};

/* Where a result goes. begin comes before the rows; when it comes once more, the result before is void: a
   text's result is that of its last statement that has columns. What is given is borrowed for the call; none
   of them may use the view. */
struct query_sink {
    void (*begin)(void *arg, const struct query_column *columns, size_t n);
    void (*row)(void *arg, const struct value *values, size_t n);
    void *arg;
};

struct query {
    struct catalog *catalog;
    struct view *view;
    uint32_t db;
    struct slice text;
    const struct value
        *args; /* of ?, ?1, :name ... in the order of their numbers, counted over all statements */
    size_t nargs;
    struct query_limits limits;
    const struct query_sink *sink;
    /* Called now and then when nothing that the view has given is in use, so that it may be given back: what
       takes long reads more than memory should keep. NULL: it is kept until the call ends. */
    void (*rest)(void *arg);
    void *rest_arg;
};

enum query_outcome { QUERY_DONE, QUERY_FAULT, QUERY_MOVE };

struct query_result {
    enum query_outcome outcome;
    struct fault fault; /* QUERY_FAULT: FAULT_SQL, FAULT_TIMEOUT, FAULT_TOO_LARGE, FAULT_CANCELLED, or a
                           table's own */
    bool wrote;         /* it has changed rows or tables */
    bool builds;        /* an index is to be built behind (table/build/walker.h) */
    int64_t changes;    /* rows inserted, updated, deleted */
    uint64_t rows_read;
};

/* NULL: SQLite has no memory. */
struct query_engine *query_engine_new(void);
void query_engine_free(struct query_engine *e); /* e may be NULL */
size_t query_engine_bytes(const struct query_engine *e);

/* Anything but ST_OK is the database's failure, as the view describes it: the call has to fail. */
enum status query_run(struct query_engine *e, const struct query *q, struct query_result *ret) MUST_CHECK;

/* Whether a text may write, by its words alone: false means that query_run would refuse every write in it. */
bool query_may_write(struct slice text);

/* Once, before SQLite is first used in the process: from then on what query_run takes is counted, by thread;
   what others do with SQLite is not. */
void query_count_memory(void);

#endif
