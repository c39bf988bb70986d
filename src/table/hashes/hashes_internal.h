/* What the files of tables over hashes share. */
#ifndef LARDER_TABLE_HASHES_INTERNAL_H
#define LARDER_TABLE_HASHES_INTERNAL_H

#include "engine/coll.h"
#include "engine/keeper.h"
#include "table/hashes/hashes.h"
#include "table/keycode.h"

/* The key of a row's hash, in the arena. */
enum status hashes_key_of(const struct rows *r, struct slice name, struct slice *ret) MUST_CHECK;

/* Rows by their names, a row without values: there is none; list: as of hashes_scan. And a row as it would
   lie in larder_row. */
enum status hashes_read(struct rows *r, const struct slice *names, size_t n, struct hash_list *list,
                        struct table_row *ret) MUST_CHECK;
struct item_row hashes_encode(struct rows *r, struct slice name, const struct table_row *row);

/* Names in the lists. */
void hashes_unparsed_name(const struct value *key, int64_t n, struct buf *out);
void hashes_unnamed_name(struct slice prefix, struct slice key, struct buf *out);
#define HASHES_SHOWN_KEY 1000 /* bytes of a key, in the value of its place there */

/* Notes a field that does not parse, or a hash whose key can be no primary key. */
void hash_list_field(struct rows *r, struct hash_list *l, const struct value *key, uint16_t column_id);
void hash_list_unnamed(struct rows *r, struct hash_list *l, struct slice key);

/* Whether there can be one more table over hashes. */
enum status hashes_check_room(struct view *v, struct fault *fault) MUST_CHECK;

/* Writes or removes an entry of a table; name is copied. */
enum status hashes_set_entry(struct view *v, int64_t id, struct slice name, struct slice value,
                             bool there) MUST_CHECK;

static inline bool hashes_prefixed(struct slice key, struct slice prefix)
{
    return key.n >= prefix.n && memcmp(key.p, prefix.p, prefix.n) == 0;
}

#endif
