/* The hidden database: rows that belong to the database as a whole and to no client. It has a fixed number in
   the tables (STORE_HIDDEN_DB), which no SELECT, FLUSHALL, SWAPDB, SCAN or count ever comes to; its rows are
   read and written through the view like all others, in the same transactions, with the same undo.

   Who only looks at one of its rows never locks it, or transactions that run scripts, or write hashes that
   are indexed, would wait for each other: view_peek has the row read, unlocked, with the round trip that
   begins the transaction. Who changes one calls view_hold first: the row is locked then, and a transaction
   that saw it as it is no more runs again (ST_CONFLICT).

   A crash leaves what a crash leaves of any row; an expired one does not exist here, nor does a watched one.
 */
#ifndef LARDER_ENGINE_HIDDEN_H
#define LARDER_ENGINE_HIDDEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "engine/view.h"

enum hidden_row {
    HIDDEN_LIBRARIES, /* "functions": a hash, a library's name -> its code */
    HIDDEN_SCRIPTS,   /* "scripts": a hash, sha1 in hex digits -> the script */
    HIDDEN_FLUSHES,   /* "script-flushes": a string, how often scripts were flushed */
    HIDDEN_KEPT       /* "kept": a string, of which hashes something is kept (keeper.h) */
};
#define HIDDEN_ROWS 4

struct slice hidden_name(enum hidden_row r);

/* What stands for a client's number of the database, for the functions of view.h and coll.h. */
uint32_t view_hidden_db(const struct view *v);

/* Before engine_begin: the batch will look at a row. Not told, it costs a round trip, and a lock in a batch
   that may write. */
void view_peek(struct view *v, enum hidden_row r);

/* Before engine_begin: the batch changes libraries. No other that writes runs beside it, so that nobody runs
   an old function over what was written behind the change; but where no server can keep others out
   (store.certified), since it would come to its commit only in a moment without any write: there a function
   that runs at that moment may be the one from before. */
void view_declare_libraries(struct view *v);

/* Before a row is changed. */
enum status view_hold(struct view *v, enum hidden_row r) MUST_CHECK;

/* One field of a row that is a hash, whether the row is held or not: it needs nothing of the others. The
   value is borrowed until the handler returns. */
enum status view_hidden_field(struct view *v, enum hidden_row r, struct slice name, bool *ret_found,
                              struct slice *ret) MUST_CHECK;

/* The hash of a row (coll.h), NULL when there is none; make: an empty one then. It counts as no look-up. What
   a batch that may write reads of a hash is one state only if nobody else can change it meanwhile: because
   the row is held, or its changes are made alone (view_declare_libraries). */
struct coll;
enum status view_hidden_hash(struct view *v, enum hidden_row r, bool make, struct coll **ret) MUST_CHECK;

/* As which state the running batch sees a row: equal stamps mean the same content. One that was taken stays
   true until the row changes, whoever changes it, and is void when the change that it tells of is undone. */
struct hidden_stamp {
    const struct view *view; /* of the primary, or of a replica */
    uint64_t undone;
    int64_t version; /* 0: there is no row */
};
enum status view_stamp(struct view *v, enum hidden_row r, struct hidden_stamp *ret) MUST_CHECK;

static inline bool stamps_equal(const struct hidden_stamp *a, const struct hidden_stamp *b)
{
    return a->view == b->view && a->undone == b->undone && a->version == b->version;
}

#endif
