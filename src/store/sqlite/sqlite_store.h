/* Private to the files of the store in an SQLite file: sqlite_store.c (opening, transactions), sqlite_read.c,
   sqlite_apply.c and sqlite_sweep.c. Everyone else sees store/store.h. */
#ifndef LARDER_STORE_SQLITE_SQLITE_STORE_H
#define LARDER_STORE_SQLITE_SQLITE_STORE_H

#include "sql/sqlite.h"
#include "store/journal_rows.h"
#include "store/order.h"

/* Statements with a fixed text, see sqlite_statements.c. */
enum statement {
    Q_GET_KEY,
    Q_GET_SEQ,
    Q_COUNT_EXPIRED,
    Q_COUNT_DEAD_HASHES,
    Q_COUNT_KEYS,
    Q_COUNT_EXPIRES,
    Q_LIST_DBS,
    Q_GET_META,
    Q_SET_META,
    Q_INSERT_KEY,
    Q_UPDATE_SAME_TYPE,
    Q_UPDATE_KEY,
    Q_INSERT_KEY_AT,
    Q_UPSERT_KEY,
    Q_UPDATE_NAMED_KEY,
    Q_DELETE_KEY_AT,
    Q_DELETE_NAMED_KEY,
    Q_PUT_DB,
    Q_PUT_TRASH,
    Q_DEAD_KEYS,
    Q_DB_KEYS,
    Q_DELETE_KEY,
    Q_FIRST_TRASH,
    Q_DELETE_TRASH,
    Q_DUE_ROWS,
    Q_TAKE_OFF_DB,
    Q_JOURNAL_ADD,
    Q_JOURNAL_EACH,
    Q_JOURNAL_DROP,
    Q_JOURNAL_LAST,
    Q_FIXED
};

struct sqlite_store {
    struct store base;
    struct sqlite *sql;
    bool read_only;
    bool marked;         /* the running transaction has a savepoint */
    int64_t next_number; /* larder_meta's next_db_number; -1: has to be read */
    /* Prepared when first used, kept until the end. */
    struct sqlite_stmt *fixed[Q_FIXED];
    struct sqlite_stmt *get_item[ITEM_TABLES], *put_item[ITEM_TABLES], *del_item[ITEM_TABLES],
        *del_range[ITEM_TABLES], *sweep_items[ITEM_TABLES][2];
    struct sqlite_stmt *scan_items[ITEM_TABLES][ITEM_ORDERS][2][2]
                                  [SCAN_ENDS];          /* by order, reverse, begins_with_score, end */
    struct sqlite_stmt *count_items[ITEM_TABLES][2][2]; /* by score or expiry, of one score */
    /* By order, with_value, has_after, has_end, reverse or every_db. */
    struct sqlite_stmt *scan_keys[KEY_ORDERS][2][2][2][2];
    /* Room for sorting and for rows to be swept. */
    void *scratch;
    size_t scratch_bytes;
    char *owner; /* who has the database, while there was no room to say so; else NULL */
};

static inline struct sqlite_store *sqlite_store_of(struct store *s)
{
    return (struct sqlite_store *)s;
}

/* At least n bytes, until the next call. */
void *sqlite_store_scratch(struct sqlite_store *s, size_t n);

/* ---- sqlite_statements.c: each finds or prepares the statement for its purpose ---- */

enum status stmt_fixed(struct sqlite_store *s, enum statement q, struct sqlite_stmt **ret,
                       struct error *err) MUST_CHECK;
enum status stmt_get_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err) MUST_CHECK;
enum status stmt_put_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err) MUST_CHECK;
enum status stmt_del_range(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                           struct error *err) MUST_CHECK;
enum status stmt_del_item(struct sqlite_store *s, enum item_table t, struct sqlite_stmt **ret,
                          struct error *err) MUST_CHECK;
enum status stmt_sweep_items(struct sqlite_store *s, enum item_table t, bool range, struct sqlite_stmt **ret,
                             struct error *err) MUST_CHECK;
enum status stmt_scan_items(struct sqlite_store *s, const struct item_scan *q, enum scan_end end,
                            struct sqlite_stmt **ret, struct error *err) MUST_CHECK;
enum status stmt_count_items(struct sqlite_store *s, const struct item_scan *q, struct sqlite_stmt **ret,
                             struct error *err) MUST_CHECK;
enum status stmt_scan_keys(struct sqlite_store *s, const struct key_scan *q, bool has_end,
                           struct sqlite_stmt **ret, struct error *err) MUST_CHECK;
/* Of a statement for one item: ?1 its id, ?2 its name or position. */
static inline void stmt_bind_ref(struct sqlite_stmt *q, const struct item_ref *r)
{
    sqlite_bind_i64(q, 1, r->id);
    if (item_named(r->table))
        sqlite_bind_blob(q, 2, r->name);
    else
        sqlite_bind_i64(q, 2, r->pos);
}

void stmt_finalize_all(struct sqlite_store *s);

/* ---- sqlite_read.c ---- */

enum status sqlite_read_get_seqs(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                                 struct error *err) MUST_CHECK;
enum status sqlite_read_get_keys(struct store *s, const struct key_ref *refs, size_t n, store_key_fn *fn,
                                 void *arg, struct error *err) MUST_CHECK;
enum status sqlite_read_get_items(struct store *s, const struct item_ref *refs, size_t n, store_item_fn *fn,
                                  void *arg, struct error *err) MUST_CHECK;
enum status sqlite_read_scan_keys(struct store *s, const struct key_scan *q, store_key_fn *fn, void *arg,
                                  struct error *err) MUST_CHECK;
enum status sqlite_read_scan_items(struct store *s, const struct item_scan *q, store_item_fn *fn, void *arg,
                                   struct error *err) MUST_CHECK;
enum status sqlite_read_count_items(struct store *s, const struct item_scan *q, int64_t *ret,
                                    struct error *err) MUST_CHECK;
enum status sqlite_read_due_rows(struct store *s, int64_t now, int64_t after, int64_t *ret_ids, size_t max,
                                 size_t *ret_n, struct error *err) MUST_CHECK;
enum status sqlite_read_count_dead(struct store *s, uint32_t db, int64_t now, int64_t *ret_keys,
                                   int64_t *ret_expires, struct error *err) MUST_CHECK;
enum status sqlite_read_count_keys(struct store *s, uint32_t db, int64_t *ret_keys, int64_t *ret_expires,
                                   struct error *err) MUST_CHECK;

/* ---- sqlite_apply.c ---- */

enum status sqlite_apply(struct store *s, struct changes *c, struct error *err) MUST_CHECK;

/* ---- sqlite_store.c ---- */

/* A store over a connection as it stands, which it will close: nothing is migrated, and the process does not
   become the owner. */
struct store *sqlite_store_over(struct sqlite *c);

enum status sqlite_store_get_meta(struct sqlite_store *s, const char *name, int64_t *ret,
                                  struct error *err) MUST_CHECK;
enum status sqlite_store_set_meta(struct sqlite_store *s, const char *name, int64_t v,
                                  struct error *err) MUST_CHECK;
enum status sqlite_store_get_word(struct sqlite_store *s, const char *name, char *ret, size_t cap,
                                  struct error *err) MUST_CHECK;
enum status sqlite_store_set_word(struct sqlite_store *s, const char *name, const char *text,
                                  struct error *err) MUST_CHECK;

/* ---- sqlite_journal.c ---- */

extern const struct journal_rows_ops sqlite_journal_rows_ops;

/* ---- sqlite_sweep.c ---- */

enum status sweep_step(struct store *s, const struct sweep_budget *b, struct sweep_result *ret,
                       struct error *err) MUST_CHECK;

#endif
