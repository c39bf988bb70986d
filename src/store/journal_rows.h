/* Tables under a journal (journal/): what it keeps in them beside the rows, and what it alone asks of
   them. Its rows are written in the transactions of the tables; journal/encoding.h has their
   format. */
#ifndef LARDER_STORE_JOURNAL_ROWS_H
#define LARDER_STORE_JOURNAL_ROWS_H

#include "store/store.h"

/* What larder_meta says of the journal. */
struct journal_state {
    int64_t applied;  /* up to which seq the tables hold what the journal ever said */
    int64_t applying; /* up to which they hold some of it; 0: nothing beyond applied */
    int64_t last;     /* the highest seq of its rows; 0: there are none */
};

/* A row of the journal. Anything but ST_OK ends the reading, and is returned. */
typedef enum status store_journal_fn(void *arg, int64_t seq, struct slice row);

struct journal_rows_ops {
    enum status (*add)(struct store *s, int64_t seq, struct slice row, struct error *err);
    enum status (*each)(struct store *s, store_journal_fn *fn, void *arg, struct error *err);
    enum status (*applying)(struct store *s, int64_t seq, struct error *err);
    enum status (*applied)(struct store *s, int64_t seq, struct error *err);
    enum status (*drop)(struct store *s, int64_t seq, uint32_t max, bool *ret_more, struct error *err);
    enum status (*forget)(struct store *s, int64_t after, int64_t applied, struct error *err);
    enum status (*state)(struct store *s, struct journal_state *ret, struct error *err);
    enum status (*get_seqs)(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                            struct error *err);
    enum status (*confirm)(struct store *s, struct error *err);
    enum status (*get_word)(struct store *s, const char *name, char *ret, size_t cap, struct error *err);
    enum status (*set_word)(struct store *s, const char *name, const char *text, struct error *err);
};

/* ---- within the running transaction ---- */

/* Adds a row to the journal. */
static inline MUST_CHECK enum status store_journal_add(struct store *s, int64_t seq, struct slice row,
                                                       struct error *err)
{
    return s->journal_rows->add(s, seq, row, err);
}

/* Every row of the journal, in order. */
static inline MUST_CHECK enum status store_journal_each(struct store *s, store_journal_fn *fn, void *arg,
                                                        struct error *err)
{
    return s->journal_rows->each(s, fn, arg, err);
}

/* The tables hold a part of what rows up to seq say: larder_meta says so from now on. */
static inline MUST_CHECK enum status store_journal_applying(struct store *s, int64_t seq, struct error *err)
{
    return s->journal_rows->applying(s, seq, err);
}

/* They hold all of it. */
static inline MUST_CHECK enum status store_journal_applied(struct store *s, int64_t seq, struct error *err)
{
    return s->journal_rows->applied(s, seq, err);
}

/* Removes up to max rows up to seq. *ret_more: there may be more of them. */
static inline MUST_CHECK enum status store_journal_drop(struct store *s, int64_t seq, uint32_t max,
                                                        bool *ret_more, struct error *err)
{
    return s->journal_rows->drop(s, seq, max, ret_more, err);
}

/* After a commit with an unknown outcome: as if it had not taken place. Rows behind `after` go, and
   the tables are complete up to `applied`. */
static inline MUST_CHECK enum status store_journal_forget(struct store *s, int64_t after, int64_t applied,
                                                          struct error *err)
{
    return s->journal_rows->forget(s, after, applied, err);
}

static inline MUST_CHECK enum status store_journal_state(struct store *s, struct journal_state *ret,
                                                         struct error *err)
{
    return s->journal_rows->state(s, ret, err);
}

/* The seqs of key rows, into ret[0..n); 0: there is none. */
static inline MUST_CHECK enum status store_get_seqs(struct store *s, const struct key_ref *refs, size_t n,
                                                    int64_t *ret, struct error *err)
{
    return s->journal_rows->get_seqs(s, refs, n, ret, err);
}

/* A row of larder_meta that may be missing (then it is empty), and what does not fit is cut off. */
static inline MUST_CHECK enum status store_get_word(struct store *s, const char *name, char *ret, size_t cap,
                                                    struct error *err)
{
    return s->journal_rows->get_word(s, name, ret, cap, err);
}

static inline MUST_CHECK enum status store_set_word(struct store *s, const char *name, const char *text,
                                                    struct error *err)
{
    return s->journal_rows->set_word(s, name, text, err);
}

/* ---- between transactions ---- */

/* ST_OK: no other server has had the tables up to now, or to a moment within this call. Asks the database
   unless it has answered lately (lease.h). ST_LOCKED: another server has; ST_IO: the database does not
   say. */
static inline MUST_CHECK enum status store_confirm(struct store *s, struct error *err)
{
    return s->journal_rows->confirm(s, err);
}

#endif
