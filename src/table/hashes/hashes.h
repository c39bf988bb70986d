/* Tables over hashes: ON HASH PREFIX p. Every hash whose key begins with the prefix is a row: its primary key
   is the rest of the key, its columns are the fields of their names. What clients do with hashes keeps the
   indexes in step, in the same transaction, whatever the command: see engine/keeper.h, and hashes_new.

   Nothing is ever refused. A field that is missing is NULL, and so is one whose text its column's type does
   not have. Those are listed, and so are hashes that can have no entry:

     larder_entry (id, name)
       index number ‖ codes            as of any table (rowcode.h)
       HASHES_UNPARSED ‖ key ‖ n       n > 0: the field of the column with id n does not parse
                                       n < 0: the entry of the index with number -n would be too long
       HASHES_UNNAMED ‖ BLOB ‖ n       a hash whose key is no UTF-8, or longer than HASHES_KEY_MAX: its
                                       beginning, and a number made of all of it; value: the key

   Entries are a function of the hashes as they are in the tables: a key or a field that has expired counts
   until it is removed, through the view. A reader fetches each hash and looks again; where expired fields are
   waiting to be removed it goes by the hashes alone, because an entry that is not there cannot be found
   (hashes_scan). Foreign SQL that writes hashes leaves entries as they were: TABLE.REBUILD mends that.

   A crash leaves a hash and its entries as some commit left both. */
#ifndef LARDER_TABLE_HASHES_H
#define LARDER_TABLE_HASHES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "base/status.h"
#include "table/rows.h"

#define HASHES_UNPARSED 32001
#define HASHES_UNNAMED  32002
#define HASHES_KEY_MAX  900 /* bytes of a primary key's code: entries and lists have room for it */
#define HASHES_TABLES   256 /* tables over hashes, in all databases together */

/* ---- keeping entries ---- */

/* What keeps the entries of tables over hashes in step with what goes through a view: the view's keeper from
   here on, until hashes_free. */
struct hashes;
struct hashes *hashes_new(struct view *v);
void hashes_free(struct hashes *h);

/* Makes a table (r has none yet). *ret_builds: there are many hashes already, and its indexes are to be built
   behind; else they are ready. */
enum status hashes_create(struct rows *r, uint32_t db, struct slice name, struct schema *s, bool *ret_builds,
                          struct fault *fault) MUST_CHECK;

/* ---- reading ---- */

/* As the functions of rows.h. */
enum status hashes_get_many(struct rows *r, const struct slice *names, size_t n,
                            struct table_row *ret) MUST_CHECK;

/* A row as it would lie in larder_row, encoded into the arena. */
enum status hashes_item(struct rows *r, struct slice name, bool *ret_found, struct item_row *ret) MUST_CHECK;

/* As view_scan_items: of ITEM_ROW by name, which are made of the hashes, without those that have expired; or
   of the entries of one index, ITEM_ENTRY, made of the hashes where that is necessary. list: NULL, or for who
   builds an index: fields that have expired and are in the tables count, as they do for entries, and what is
   not as the table says is noted there. */
struct hash_list;
enum status hashes_scan(struct rows *r, const struct item_scan *q, struct hash_list *list, store_item_fn *fn,
                        void *arg) MUST_CHECK;

/* A row that an entry names is not there, or is not as the entry says: it has expired, or somebody else's SQL
   has changed the hash (ST_OK); or another server has, since the entry was read (ST_CONFLICT). */
enum status hashes_missed(struct rows *r, struct slice name) MUST_CHECK;

/* ---- writing: they are commands on the hash ---- */

/* Makes the hash of a row what values say: fields whose value changes from old's (NULL: there is no hash)
   are written, those that become NULL are removed; other fields stay. from: the row's name before, when it
   gets another one. FAULT_WRONG_TYPE: the key holds something else. */
struct hash_write {
    struct slice name, from; /* from.p is NULL: the same */
    const struct table_row *old;
    const struct table_row *row; /* its version is not used */
};
enum status hashes_write(struct rows *r, const struct hash_write *w, struct fault *fault) MUST_CHECK;
enum status hashes_remove(struct rows *r, struct slice name) MUST_CHECK;

/* The version of a row: its key's. */
enum status hashes_version(struct rows *r, struct slice name, int64_t *ret) MUST_CHECK;

/* ---- lists ---- */

/* One thing that is not as the table says: a field (column is its place, >= 0), an entry that is too long
   (column is -1, index its place), or a hash whose key cannot be a primary key (both are -1). */
struct hash_flaw {
    struct slice key; /* of the hash, whole; of the last kind it may be cut */
    int column, index;
};
typedef enum status hash_flaw_fn(void *arg, const struct hash_flaw *f);

/* Calls fn for up to limit of them behind *after (empty: from the first), which moves; it is empty at the
   end. */
enum status hashes_flaws(struct rows *r, uint32_t limit, struct buf *after, hash_flaw_fn *fn,
                         void *arg) MUST_CHECK;

/* Whether a name is one of those that after may be. */
bool hashes_is_flaw(struct slice name);

/* Takes up to max off the lists. */
enum status hashes_clear_lists(struct rows *r, uint32_t max) MUST_CHECK;

/* ---- for who looks at hashes by itself ---- */

/* The primary key that a hash's key means, and whether it can be one. */
bool hashes_key_value(struct slice prefix, struct slice key, struct value *ret);

/* What a field's text is in a column. False: it does not parse, and counts as NULL. */
bool hashes_value(const struct column *c, struct slice text, struct arena *arena, struct value *ret);

/* ---- for who builds an index ---- */

/* The entry of a row, or its place in the list of those that have none. Never fails. */
void hashes_entry(const struct schema *s, const struct table_index *i, const struct value *values,
                  struct buf *out);

/* What a walk over hashes found that belongs to the lists, in view_arena; zeroed is empty. hashes_list writes
   it there, and takes nothing off. */
struct hash_list {
    struct listed_hash *first;
};
enum status hashes_list(struct rows *r, const struct hash_list *l) MUST_CHECK;

#endif
