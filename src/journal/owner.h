/* The owner's side of a store with a journal: private to this folder. Each function is what store.h promises
   of the operation of that name, unless it says otherwise.

     owner_reads.c      reads through the memtables, and whether the tables are still ours
     owner_txn.c        transactions: begin, apply, commit, rollback
     owner_progress.c   what the thread has done: settle or undo; freeze, retire
     owner_position.c   positions: the numbers of commits
     owner_requests.c   what the thread does because the owner asks: sync, durability, sweep */
#ifndef LARDER_JOURNAL_OWNER_H
#define LARDER_JOURNAL_OWNER_H

#include "journal/journal_internal.h"
#include "store/replicated.h"

static inline struct memtable *active(const struct journal_store *s)
{
    return s->owner.layers.mem[0];
}

/* ---- owner_reads.c ---- */

enum status owner_get_keys(struct store *base, const struct key_ref *refs, size_t n, store_key_fn *fn,
                           void *arg, struct error *err) MUST_CHECK;
enum status owner_get_items(struct store *base, const struct item_ref *refs, size_t n, store_item_fn *fn,
                            void *arg, struct error *err) MUST_CHECK;
enum status owner_scan_keys(struct store *base, const struct key_scan *q, store_key_fn *fn, void *arg,
                            struct error *err) MUST_CHECK;
enum status owner_scan_items(struct store *base, const struct item_scan *q, store_item_fn *fn, void *arg,
                             struct error *err) MUST_CHECK;
enum status owner_count_items(struct store *base, const struct item_scan *q, int64_t *ret,
                              struct error *err) MUST_CHECK;
enum status owner_due_rows(struct store *base, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                           size_t *ret_n, struct error *err) MUST_CHECK;
enum status owner_count_dead(struct store *base, uint32_t db, int64_t now, int64_t *ret_keys,
                             int64_t *ret_expires, struct error *err) MUST_CHECK;
enum status owner_count_keys(struct store *base, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                             struct error *err) MUST_CHECK;
enum status owner_load_dbs(struct store *base, struct db_row *dbs, size_t n, uint32_t *ret_next_number,
                           struct error *err) MUST_CHECK;

/* A transaction begins: its reads see one state of the tables. On a database server, and where memory has all
   that was declared, the tables are asked only when memory does not know (owner_ready). */
enum status owner_begin_reading(struct journal_store *s, struct error *err) MUST_CHECK;
void owner_end_reading(struct journal_store *s);

/* Whether a transaction that declares this has to begin one of the tables at once. */
bool owner_needs_tables(struct journal_store *s, const struct store_declared *d);

/* Another server has the tables: nothing is read or written any more. */
void owner_lose(struct journal_store *s, const struct error *err);

/* Before the tables are read within a transaction. */
enum status owner_ready(struct journal_store *s, struct error *err) MUST_CHECK;

/* ---- owner_txn.c ---- */

enum status owner_begin(struct store *base, enum store_txn kind, const struct store_declared *d,
                        bool *ret_changed, struct error *err) MUST_CHECK;
enum status owner_apply(struct store *base, struct changes *c, struct error *err) MUST_CHECK;
enum status owner_mark(struct store *base, struct error *err) MUST_CHECK;
enum status owner_undo(struct store *base, struct error *err) MUST_CHECK;
enum status owner_commit(struct store *base, struct error *err) MUST_CHECK;
void owner_rollback(struct store *base);
enum status owner_reserve_ids(struct store *base, int64_t n, int64_t *ret_first,
                              struct error *err) MUST_CHECK;
int64_t owner_last_ticket(const struct store *base);

/* ---- owner_progress.c ---- */

int64_t owner_durable(struct store *base);
enum status owner_progress(struct store *base, struct store_progress *ret, struct error *err) MUST_CHECK;
void owner_on_progress(struct store *base, store_wake_fn *fn, void *arg);
void owner_alone(struct store *base, bool alone);
void owner_ending(struct store *base, int64_t ms);

/* Takes note of what the thread has done, and gives it more to do. Holding the lock. */
void owner_advance(struct journal_store *s);

/* Whether transactions that write are refused until the frozen memtable is applied. Holding the lock. */
bool owner_no_room(struct journal_store *s);

/* Frees the groups that have not been written. Holding the lock. */
void owner_drop_groups(struct journal_store *s);

/* ---- owner_position.c ---- */

extern const struct replicated_ops owner_replicated_ops;

/* ---- owner_requests.c ---- */

enum status owner_sync(struct store *base, struct error *err) MUST_CHECK;
enum status owner_set_durability(struct store *base, enum durability d, struct error *err) MUST_CHECK;
enum status owner_sweep(struct store *base, const struct sweep_budget *b, struct sweep_result *ret,
                        struct error *err) MUST_CHECK;
enum status owner_info(struct store *base, struct store_info *ret, struct error *err) MUST_CHECK;

/* Waits until all that was committed is in the tables, or that was tried once more in vain. A failed group is
   left for store_progress to tell, with what has to be undone. */
enum status owner_drain(struct journal_store *s, struct error *err) MUST_CHECK;

#endif
