/* Reading through memory: up to two memtables, newest first, over the store that has the tables. Each
   function answers as the store's function of the same name would if everything in the memtables had been
   applied, with the same order of rows and the same promises (see store.h), whatever part of the older table
   has been applied already. */
#ifndef LARDER_JOURNAL_MERGE_H
#define LARDER_JOURNAL_MERGE_H

#include "journal/gaps.h"
#include "memtable/memtable.h"
#include "store/store.h"

struct layers {
    struct memtable *mem[2]; /* active, frozen; NULL: none */
    struct store *tables;
    struct gaps *gaps; /* of sorted sets; NULL: none are remembered */
};

enum status merge_get_keys(const struct layers *l, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err) MUST_CHECK;
enum status merge_get_items(const struct layers *l, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err) MUST_CHECK;
enum status merge_scan_keys(const struct layers *l, const struct key_scan *q, store_key_fn *fn, void *arg,
                            struct error *err) MUST_CHECK;
enum status merge_scan_items(const struct layers *l, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err) MUST_CHECK;
enum status merge_count_items(const struct layers *l, const struct item_scan *q, int64_t *ret,
                              struct error *err) MUST_CHECK;
enum status merge_due_rows(const struct layers *l, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err) MUST_CHECK;
enum status merge_count_dead(const struct layers *l, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err) MUST_CHECK;
enum status merge_count_keys(const struct layers *l, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err) MUST_CHECK;

#endif
