/* Who keeps something in step with hashes: the indexes of tables over them (table/hashes.h). The engine does
   not know what a table is; it tells the keeper, before the rows of keys change and within the same call:

     fields of a hash that stays   when it is saved (coll_save), with what the fields were before
     a hash comes or goes          wherever a key's row becomes another one: created, replaced, deleted,
                                   renamed, moved, removed by the sweeper
     the row of a table's key      likewise

   What the keeper writes is in the call's change set, with its undo, and is committed with it or not at all.
   It goes by what is in the tables: a key or a field that has expired counts until its row is removed, which
   is done through the view while anything is kept.

   Which hashes are meant is in a row of the hidden database (HIDDEN_KEPT), with its list of tables. As long
   as there is no such row a change costs one branch. Where tables are shared every transaction that may write
   peeks at it, and who changes it is alone meanwhile (view_keep): a writer never goes by a list that another
   server has changed. Where no server can keep others out (store.certified) one that writes at that moment
   may go by the list from before. */
#ifndef LARDER_ENGINE_KEEPER_H
#define LARDER_ENGINE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/status.h"
#include "engine/coll.h"
#include "engine/view.h"

struct kept; /* what is kept of hashes under a key: the keeper's own */

enum keep_change { KEEP_FIELDS, KEEP_APPEARS, KEEP_VANISHES };

struct view_keeper {
    void *arg;
    /* What is kept of hashes under a key, in the database with this number in the tables. *ret is NULL:
       nothing; else it is valid until the handler returns. */
    enum status (*find)(void *arg, struct view *v, uint32_t number, struct slice key,
                        const struct kept **ret);
    /* Whether a field of that hash matters. */
    bool (*has)(const struct kept *k, struct slice key, struct slice field);
    /* The hash comes, goes, or some of its fields have changed (coll_field_before). */
    enum status (*change)(void *arg, struct view *v, const struct kept *k, struct slice key,
                          struct coll *hash, enum keep_change what);
    /* The row of a key that is or becomes a table's is about to change. */
    enum status (*table)(void *arg, struct view *v, const struct row *was, const struct key_row *now);
};

/* keeper stays the caller's; NULL: nobody keeps anything, and the view does not write where something is. */
void view_set_keeper(struct view *v, const struct view_keeper *keeper);

/* Whether anything is kept of any hash. */
enum status view_keeps_any(struct view *v, bool *ret) MUST_CHECK;

/* Another number whenever the list may be another one than before. */
uint64_t view_kept_epoch(const struct view *v);

/* Sets the list that says what is kept: the value of HIDDEN_KEPT, of at most STORE_INLINE_BYTES. Where tables
   are shared and the transaction is not alone, ST_CONFLICT: it is run again, and will be. */
enum status view_keep(struct view *v, struct slice list) MUST_CHECK;

/* For who finds something in one step and reads it in another: hashes by what is kept of them, keys page by
   page. Others may change both in between. ST_OK: all that is read is one state, because the transaction only
   reads or is alone; else ST_CONFLICT: it is run again, and will be alone. */
enum status view_one_state(struct view *v) MUST_CHECK;

/* ---- for keepers ---- */

/* A field as it is in the tables, expired or not, and as it was before the changes that are told. */
enum status coll_field_now(struct coll *c, struct slice name, bool *ret_found, struct slice *ret) MUST_CHECK;
enum status coll_field_before(struct coll *c, struct slice name, bool *ret_found,
                              struct slice *ret) MUST_CHECK;
bool coll_field_changed(const struct coll *c, struct slice name);

/* The number of a database in the tables, whether one is in use, and the row of a key by it: whatever its
   state, never NULL on success. */
uint32_t view_number(const struct view *v, uint32_t db);
bool view_uses_number(const struct view *v, uint32_t number);
enum status view_row_of(struct view *v, uint32_t number, struct slice key, const struct row **ret) MUST_CHECK;

/* Whether a hash under the prefix may have fields that have expired and are in the tables still. */
enum status view_any_due(struct view *v, uint32_t db, struct slice prefix, bool *ret) MUST_CHECK;

#endif
