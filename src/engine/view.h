/* What handlers read and write: rows, as this batch sees them. Nothing here is SQL, nothing is a socket.

   A read looks in memory (rows this batch changed, then cached rows), then in the tables. A write changes
   rows in memory only; engine.c brings what a batch changed into the tables in one transaction and only then
   lets the replies leave. Writes are undone command by command (a handler that fails midway leaves no trace)
   and batch by batch (so does a commit that fails).

   Expiry is checked here, on every read and write, against the batch's one clock value: an expired, a deleted
   and an absent key are the same to a handler, and writing to any of them creates the key anew. The items of
   what was replaced go to the trash in the same transaction.

   Rows are borrowed: valid until the next write to the same key, at most until the handler returns.

   Failures (enum status) are the database's. A handler passes them on: `if ((st = ...) != ST_OK) return st;`.
   Client mistakes (a wrong type, a bad number) are no failures but replies, see exec/command.h. */
#ifndef LARDER_ENGINE_VIEW_H
#define LARDER_ENGINE_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rand.h"
#include "base/slice.h"
#include "base/status.h"
#include "engine/row.h"
#include "store/store.h"

struct view;

/* ---- time and databases ---- */

/* The batch's clock, milliseconds since the epoch: the only "now" a handler may use for expiry. */
int64_t view_now(const struct view *v);

/* The same in microseconds: what versions are made of. */
int64_t view_now_us(const struct view *v);

/* The running command, of several in a call, has changed something. */
bool view_wrote(const struct view *v);

/* How many databases there are. Every `db` below is a logical one, less than this. */
uint32_t view_databases(const struct view *v);

/* The running call's number: another call of this view has another. The steps of one call have the same. */
uint64_t view_call(const struct view *v);

/* Where a failure of the running call is described, for those who find what is wrong with a row. */
struct error *view_error(struct view *v);

/* Randomness for handlers; seeded by tests. */
struct rand *view_rand(struct view *v);

/* ---- keys ---- */

/* The live row under a key, or NULL. */
enum status view_get(struct view *v, uint32_t db, struct slice key, const struct row **ret) MUST_CHECK;

/* Whether the look-ups from here on count as hits and misses. They do for a command that only reads; any
   other says so for the keys that it reads as such a command would. */
void view_count_lookups(struct view *v, bool on);

/* What this command asks for from here on is not used by it: the rows' idle time goes on. */
void view_look_only(struct view *v);

/* Seconds since a row was last asked for by a command that uses it. */
int64_t view_idle_seconds(const struct view *v, const struct row *r);

/* Whether other servers write to the same tables. If so, before engine_begin: a key that the batch will use
   (borrowed until its end); or that it changes whole databases. What is not declared costs a round trip. */
bool view_shared(const struct view *v);

bool view_wants_declarations(const struct view *v); /* where reads are round trips, shared or not */
void view_declare(struct view *v, uint32_t db, struct slice key);
void view_declare_everything(struct view *v);

/* The same of items of the key's collection, if it has one: names are the n arguments behind the key. */
void view_declare_items(struct view *v, uint32_t db, struct slice key, const struct slice *names, int n);
void view_undeclare(struct view *v); /* the batch does not begin */

/* Whoever declares keys: the batch will use more than their rows, as most commands do, or their few items
   alone; what was read of them is still true at the commit, though only others are written. */
void view_declare_more(struct view *v, bool few_items);
void view_declare_tied(struct view *v);

/* Where reads are near: a key of which a command of the batch will ask for the row, if memory does not have
   that; and that the batch will hardly ask for anything but such rows: then it begins without the tables if
   memory has all of them. */
struct prefetch;
bool view_declare_missing(struct view *v, struct prefetch *e); /* whether it has not */
void view_declare_rows_only(struct view *v);

/* In the middle of a batch: the rows of keys that turned up, and were declared, come in one round trip. */
enum status view_fetch_declared(struct view *v) MUST_CHECK;

/* A key that a command of this batch will ask for: its row is brought near the processor while others run.
   view_prefetch begins, with what the next two steps take, each a few commands later. view_prefetch_now: the
   command is next, and what it asks for as exactly this slice need not be hashed again. Until the next call
   or the end of the batch e and the bytes of its key stay as they are; NULL: it is not known. Only
   hints. */
struct prefetch {
    struct slice key;
    uint32_t number; /* of the database, in the tables */
    uint32_t hash;
    /* What view_declare_missing has found, and when. */
    struct row *row;
    uint64_t changes;
    struct slice item; /* of a large collection, which the command will ask for: see coll_prefetch */
    int64_t id;
    uint32_t item_hash;
};

struct prefetch view_prefetch(const struct view *v, uint32_t db, struct slice key);
void view_prefetch_soon(const struct view *v, const struct prefetch *e);
void view_prefetch_next(const struct view *v, const struct prefetch *e);
void view_prefetch_now(struct view *v, const struct prefetch *e);

/* What a key becomes. version and seq are the view's business. */
struct row_draft {
    enum row_type type;
    struct slice value; /* copied; only for a string of at most STORE_INLINE_BYTES, see view_set_string */
    int64_t id, size, first, numbers; /* as in struct key_row; a string without chunks has 0 in each */
    int64_t expire_at;
    enum row_form form;
};

/* Up to where Redis keeps a collection in its compact form: how many items, and bytes of each name and value.
   By enum row_type. */
struct form_limit {
    int64_t items;
    uint64_t bytes;
};
const struct form_limit *view_form_limit(const struct view *v, enum row_type type);
void view_set_form_limit(struct view *v, enum row_type type, struct form_limit limit);

/* Creates or replaces a key. The items of a live or expired predecessor with another id go to the trash. */
enum status view_put(struct view *v, uint32_t db, struct slice key, const struct row_draft *d) MUST_CHECK;

/* Deletes a key, whatever its size in constant time. *ret_existed (may be NULL): it was live. */
enum status view_del(struct view *v, uint32_t db, struct slice key, bool *ret_existed) MUST_CHECK;

/* Gives a live key another expiry (EXPIRE_NEVER to persist) and a new version. The caller has checked that it
   is live and that the moment is in the future; a moment that has come means view_del. */
enum status view_expire(struct view *v, uint32_t db, struct slice key, int64_t expire_at) MUST_CHECK;

/* Moves a live key's row to another name and/or database, replacing what is there, in constant time: its
   items stay where they are. The expiry goes along. */
enum status view_move(struct view *v, uint32_t from_db, struct slice from, uint32_t to_db,
                      struct slice to) MUST_CHECK;

/* Writes something that no client sees, so that the commit shows whether the database can be written. */
enum status view_probe(struct view *v) MUST_CHECK;

/* The entries of one index of a table (ROW_INDEX) go to the trash, in constant time. */
void view_discard_index(struct view *v, int64_t id, uint16_t number);

/* A fresh id for a collection. */
enum status view_new_id(struct view *v, int64_t *ret) MUST_CHECK;

/* The version of a live key, 0 when there is none: it changes whenever the key does. */
enum status view_version(struct view *v, uint32_t db, struct slice key, int64_t *ret) MUST_CHECK;

/* Over tables that other servers write to: the version of a row whose key is not there now (deleted or
   expired), until it is swept. 0: there is none. */
enum status view_tombstone(struct view *v, uint32_t db, struct slice key, int64_t *ret) MUST_CHECK;

/* A key that a client watches. touched: it has appeared since, or its database was exchanged; all other
   changes show in its version. */
struct view_watch {
    struct map_link link; /* first; of the entries of one key, one is in the map */
    uint32_t db;
    struct slice key; /* the caller's, until view_unwatch */
    bool touched;
    bool unsettled;                 /* it was in the batch that is running */
    bool in_call;                   /* ... and in its running call */
    uint64_t number;                /* of that, as it was then */
    struct view_watch *prev, *next; /* of the same key, from the one that is in the map */
    struct map *map;                /* the view's */
};

/* The caller sets db and key, and keeps the entry where it is until view_unwatch. */
void view_watch(struct view *v, struct view_watch *w);
void view_unwatch(struct view_watch *w);

/* ---- keys that clients wait for ---- */

/* While on, the view remembers each key under which a list or a sorted set appears. */
void view_watch_ready(struct view *v, bool on);

/* Takes one of them out, oldest first; false when there is none. *ret_all: any key may be meant (databases
   were exchanged). key is valid until the batch ends. */
bool view_next_ready(struct view *v, uint32_t *ret_db, struct slice *ret_key, bool *ret_all);

/* ---- strings ---- */

/* The whole value of a string row: borrowed from the row, or read into arena when it is in chunks. */
enum status view_string(struct view *v, const struct row *r, struct arena *arena,
                        struct slice *ret) MUST_CHECK;

/* Bytes [off, off + len) of a string row, which has that many. Reads only the chunks it needs. */
enum status view_string_range(struct view *v, const struct row *r, int64_t off, int64_t len,
                              struct arena *arena, struct slice *ret) MUST_CHECK;

/* The same bytes piece by piece, without gathering them: a piece is only valid inside fn. fn must not use the
   view. */
typedef enum status view_piece_fn(void *arg, struct slice piece);
enum status view_string_each(struct view *v, const struct row *r, int64_t off, int64_t len, view_piece_fn *fn,
                             void *arg) MUST_CHECK;

/* Sets a key to a string of any length, inline or in chunks. value must stay until the batch has been
   committed (argv does; so does arena memory from view_arena). */
enum status view_set_string(struct view *v, uint32_t db, struct slice key, struct slice value,
                            int64_t expire_at) MUST_CHECK;

/* The same for a string that was put together from bits, which Redis keeps raw; without an expiry. */
enum status view_set_raw_string(struct view *v, uint32_t db, struct slice key, struct slice value) MUST_CHECK;

/* Overwrites bytes of a string from off on, which grows as needed, a gap filled with zeros; an absent key
   counts as empty. Keeps the expiry. Costs what it writes, not what the string holds. The same rule for
   data's lifetime. */
enum status view_write_range(struct view *v, uint32_t db, struct slice key, int64_t off,
                             struct slice data) MUST_CHECK;

/* Memory that lives until this batch has been committed. */
struct arena *view_arena(struct view *v);

/* ---- many keys ---- */

/* One page of SCAN: calls fn for live keys among the next at least `count` rows below *cursor (0 starts),
   newest rows first, and sets *cursor for the next page, 0 at the end. A key that is there from the first
   page to the last is returned, whatever is written meanwhile: rows keep their seq, and new rows come above
   every cursor. */
typedef enum status view_key_fn(void *arg, struct slice key, const struct key_row *row);
enum status view_scan(struct view *v, uint32_t db, int64_t *cursor, uint32_t count, view_key_fn *fn,
                      void *arg) MUST_CHECK;

/* Every live key that starts with prefix, in byte order. */
enum status view_each_key(struct view *v, uint32_t db, struct slice prefix, view_key_fn *fn,
                          void *arg) MUST_CHECK;

/* Every live table of a database, in byte order, with its schema as the row's value. Costs what there is of
   tables, not of keys. */
enum status view_each_table(struct view *v, uint32_t db, view_key_fn *fn, void *arg) MUST_CHECK;

/* Keys that start with prefix, from one (p is NULL: the first) to before another (p is NULL: to the last). */
struct key_range {
    struct slice prefix, from, to;
    bool reverse; /* the last one first */
};

/* Calls fn for the live keys among the next `rows` rows of a range, in byte order, or (reverse) against it,
   behind *after (p is NULL: from the first); rows come without values. *after becomes the last key looked at,
   a copy in arena; its p is NULL at the end. */
enum status view_page_keys(struct view *v, uint32_t db, const struct key_range *range, uint32_t rows,
                           struct arena *arena, struct slice *after, view_key_fn *fn, void *arg) MUST_CHECK;

/* Any live key, copied to arena; ret->p is NULL when the database has none. */
enum status view_random_key(struct view *v, uint32_t db, struct arena *arena, struct slice *ret) MUST_CHECK;

/* Live keys of a database, and how many of them have an expiry. Constant time but for the expired rows that
   wait to be swept. */
enum status view_db_size(struct view *v, uint32_t db, int64_t *ret_keys, int64_t *ret_expires) MUST_CHECK;

/* Empties a database in constant time: it gets a fresh number, the old one goes to the trash. */
enum status view_flush_db(struct view *v, uint32_t db) MUST_CHECK;

/* Exchanges two databases in constant time. */
enum status view_swap_db(struct view *v, uint32_t a, uint32_t b) MUST_CHECK;

/* ---- items of collections and chunks ---- */

/* One item or none: value and name are borrowed until the handler returns. */
enum status view_item(struct view *v, const struct item_ref *ref, bool *ret_found,
                      struct item_row *ret) MUST_CHECK;

/* Several at once, of any named tables, in one round trip where reads are far: ret[i] for refs[i]. */
enum status view_get_items(struct view *v, const struct item_ref *refs, size_t n, bool *ret_found,
                           struct item_row *ret) MUST_CHECK;

/* Which of several named items there are: ret[i] for names[i], none of which is there twice. */
enum status view_has_items(struct view *v, enum item_table table, int64_t id, const struct slice *names,
                           size_t n, bool *ret) MUST_CHECK;

/* value and name must stay until the batch has been committed. */
enum status view_put_item(struct view *v, const struct item_row *row) MUST_CHECK;
enum status view_add_item(struct view *v, const struct item_row *row) MUST_CHECK; /* known not to exist */
enum status view_del_item(struct view *v, const struct item_ref *ref) MUST_CHECK;

/* Items in order, this batch's own changes included. fn must not write. */
enum status view_scan_items(struct view *v, const struct item_scan *q, store_item_fn *fn,
                            void *arg) MUST_CHECK;

/* Reads items of a list, at n positions from first on, that commands will ask for one after the other; *ret:
   memory takes items of their size. */
enum status view_read_ahead(struct view *v, int64_t id, int64_t first, uint32_t n, bool *ret) MUST_CHECK;

/* How many members a range BY_SCORE holds, see store_count_items. */
enum status view_count_items(struct view *v, const struct item_scan *q, int64_t *ret) MUST_CHECK;

#endif
