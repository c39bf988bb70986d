/* The rows of the tables, as they pass between the engine, the journal and the stores: store/sqlite/schema.h
   describes the tables. */
#ifndef LARDER_STORE_ROWS_H
#define LARDER_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* Values of larder_key.type and larder_trash.type: they are in the tables, so they never change. */
enum row_type {
    ROW_NONE = 0, /* a deleted key */
    ROW_STRING = 1,
    ROW_HASH = 2,
    ROW_LIST = 3,
    ROW_SET = 4,
    ROW_ZSET = 5,
    ROW_TABLE = 6,   /* a relational table: value is its schema, and id owns its rows and entries */
    ROW_DB = 100,    /* only in larder_trash: id is the number of a flushed database */
    ROW_INDEX = 1000 /* only in larder_trash, plus the number of an index (1 to ROW_INDEX_MAX) of the table
                        with this id: the entries whose names begin with it, in two bytes, big-endian */
};

#define ROW_INDEX_MAX 30000

/* The tables that hold the items of one key, each by the id in the key's row. store/item_tables.c says which
   columns and orders each of them has. The numbers are in the journal, so they never change. */
enum item_table {
    ITEM_CHUNK, /* a long string, in pieces of STORE_CHUNK_BYTES */
    ITEM_HASH,
    ITEM_LIST,
    ITEM_SET,
    ITEM_ZSET,
    ITEM_ZBLOCK, /* rank blocks of large sorted sets: pos is a block's number, score and value the place it
                    begins at, ord how many members it has */
    ITEM_ROW,    /* rows of tables: name is the code of the primary key (table/keycode.h) */
    ITEM_ENTRY   /* entries of their indexes: name is the number of the index and the code of its columns */
};
#define ITEM_TABLES 8

/* In which orders the items of one id can be gone through. */
enum item_order {
    ITEMS_BY_NAME,
    ITEMS_BY_POS,
    ITEMS_BY_ORD,
    ITEMS_BY_SCORE,
    ITEMS_BY_EXPIRY /* those that have one */
};
#define ITEM_ORDERS 5

/* A string longer than this does not live in its key row but in larder_chunk, so that no command's cost
   depends on the size of the value it deletes, expires, renames or changes a part of. A chunk that is
   missing, or shorter than its place in the string, counts as zeros: a bitmap costs what was set in it. */
#define STORE_INLINE_BYTES 65536
#define STORE_CHUNK_BYTES  16384

/* What one item may take, name and value together: no database has rows without end (SQLite's end at a
   billion bytes). */
#define STORE_ITEM_BYTES ((size_t)900 * 1000 * 1000)

/* The number of the hidden database (engine/hidden.h): no row of larder_db has it, and no other database ever
   gets it. It is in the tables, so it never changes; the greatest that an INTEGER column of theirs holds. */
#define STORE_HIDDEN_DB 2147483647u

/* expire_at: 0 never, -1 deleted, else milliseconds since the epoch. */
#define EXPIRE_NEVER   0
#define EXPIRE_DELETED (-1)

/* Rows that are in memory only have a seq from here on (see journal/owner_txn.c); they get another one,
   below, when they come into the table. Numbers up to 2^53 stay exact in clients that take a cursor for a
   double. */
#define STORE_PROVISIONAL ((int64_t)1 << 52)

struct key_ref {
    uint32_t db; /* the database's number in the tables, not the one a client selects */
    struct slice key;
};

struct key_row {
    /* The row's own number: ascending in order of creation, never changed; 0 = not in the table. */
    int64_t seq;
    uint32_t db;
    struct slice key;
    enum row_type type;
    int64_t id;   /* of its items; 0 = none (a short string, a deleted key) */
    int64_t size; /* items; bytes of a string in chunks */
    /* The column `first` has another meaning for each type; code that only carries rows copies it as it
       is. */
    union {
        int64_t first;
        int64_t first_pos;    /* of a list: the position of its first item */
        int64_t first_expiry; /* of a hash: no field expires before this moment; 0: none does */
        int64_t next_block;   /* of a sorted set: the next rank block's number; 0: it has no blocks */
    };
    int64_t
        numbers; /* of a hash, set or sorted set: its items have an ord below it, each another one. 0: they
                    have those from 0 to size - 1, as all others have 0 here; else it is beyond size */
    struct slice value;
    int64_t version;
    int64_t expire_at;
    int64_t ticket; /* of the change set that made it what it is, see store_commit; 0: it is durable */
    bool fresh;     /* in a change set: the tables do not have it, though its seq is given */
};

struct item_ref {
    enum item_table table;
    int64_t id;
    struct slice name; /* one of these, see item_named */
    int64_t pos;
};

/* Of what follows ref, a table has some columns (item_has); the others are zero. */
struct item_row {
    struct item_ref ref;
    struct slice value;
    double score;
    int64_t expire_at;
    int64_t ord; /* of named items: numbers those of one id, see key_row.numbers. A scan BY_SCORE reads the
                    index alone and does not tell it: -1 */
    bool fresh;  /* in a change set: no such item was there before */
};

/* Every item of one id between two places, both included: positions of a table whose items are found by
   position, or scores, with the names of the first and the last, of one that can be scanned by score. It is
   not a state of rows: it removes what was there before its change set, whose rows come behind its ranges. */
struct item_range {
    enum item_table table;
    int64_t id;
    enum item_order order;           /* ITEMS_BY_POS or ITEMS_BY_SCORE */
    int64_t min, max;                /* by position */
    double min_score, max_score;     /* by score ... */
    struct slice min_name, max_name; /* ... and, among those that have it, by name */
};

/* One logical database: which number its rows carry, how many rows it has (expired ones that are not swept
   yet included, deleted ones not), and how many of those have an expiry. */
struct db_row {
    uint32_t db;     /* as SELECT names it */
    uint32_t number; /* as larder_key.db has it */
    int64_t keys;
    int64_t expires;
};

/* Items (or a whole flushed database) that nothing refers to any more; the sweeper removes them. */
struct trash_row {
    int64_t id;
    enum row_type type;
};

/* What a batch did to rows: the last state of each. Everything is borrowed until store_apply returns.
   store_apply brings it into the tables: a key row with seq 0 is inserted and gets its seq, any other is
   updated by its seq (and key: a seq that stands for another key now is an error of ours, ST_INTERNAL). */
struct changes {
    struct key_row *keys; /* at most one for each (db, key); their order is kept */
    size_t nkeys;
    const struct item_range *ranges; /* removed first, in one transaction with everything below */
    size_t nranges;
    const struct item_row *items; /* inserted or replaced */
    size_t nitems;
    const struct item_ref *gone; /* removed; a ref is in items or in gone, not in both */
    size_t ngone;
    const struct trash_row *trash;
    size_t ntrash;
    const struct db_row *dbs; /* replaced */
    size_t ndbs;
    int64_t next_id; /* ids below it are taken, see store_reserve_ids; 0: nothing new */
    /* Rows may come again after a crash: every row is brought to its state whatever the tables have. Deleted
       keys (ROW_NONE) lose their row. A key row with the seq 0, or a provisional one, is found by its name;
       should another seq stand for another key by now, the row gets a new one (on a database server, also
       when the tables have no such row). The order of all rows is kept. Where rows turn out not to be where
       their numbers say, a database server may answer ST_CONFLICT: it works when the same is tried again. */
    bool replay;
    bool appeared; /* a list or a sorted set is there now where there was none */
    bool last;     /* the transaction is committed behind it, and reads nothing any more */
};

#endif
