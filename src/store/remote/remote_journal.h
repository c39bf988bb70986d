/* Private to the files of the store on a database server: the rows of the journal, see store/journal_rows.h.
 */
#ifndef LARDER_STORE_REMOTE_REMOTE_JOURNAL_H
#define LARDER_STORE_REMOTE_REMOTE_JOURNAL_H

#include "store/remote/remote_store.h"

enum status rjournal_add(struct store *s, int64_t seq, struct slice row, struct error *err) MUST_CHECK;
enum status rjournal_each(struct store *s, store_journal_fn *fn, void *arg, struct error *err) MUST_CHECK;
enum status rjournal_applied(struct store *s, int64_t seq, struct error *err) MUST_CHECK;
enum status rjournal_drop(struct store *s, int64_t seq, uint32_t max, bool *ret_more,
                          struct error *err) MUST_CHECK;
enum status rjournal_forget(struct store *s, int64_t after, int64_t applied, struct error *err) MUST_CHECK;
enum status rjournal_state(struct store *s, struct journal_state *ret, struct error *err) MUST_CHECK;

enum status rjournal_get_word(struct store *s, const char *name, char *ret, size_t cap,
                              struct error *err) MUST_CHECK;
enum status rjournal_set_word(struct store *s, const char *name, const char *text,
                              struct error *err) MUST_CHECK;

/* Whether it has rows that are not in the tables. */
enum status rjournal_pending(struct rstore *s, bool *ret, struct error *err) MUST_CHECK;

#endif
