/* Tables under a journal (journal/): what it keeps in them beside the rows, and what it alone asks of
   them. Its rows are written in the transactions of the tables; journal/encoding.h has their
   format. */
#ifndef LARDER_STORE_JOURNAL_ROWS_H
#define LARDER_STORE_JOURNAL_ROWS_H

#include "store/store.h"

/* What larder_meta says of the journal. */
struct journal_state {
    int64_t applied;  /* up to which seq the tables hold what the journal ever said */
    int64_t applying; /* an earlier version left some of it there, up to this one; 0: nothing */
    int64_t last;     /* the highest seq of its rows; 0: there are none */
};

/* The file that the tables are in, beside which a log can stand (redo/redo.h). */
struct store_file {
    const char *path;  /* as long as the store lives */
    char identity[48]; /* a copy of the file has another ... */
    int64_t cookie;    /* ... and one that a backup was written over another of these */
};

/* A row of the journal. Anything but ST_OK ends the reading, and is returned. */
typedef enum status store_journal_fn(void *arg, int64_t seq, struct slice row);

struct journal_rows_ops {
    enum status (*add)(struct store *s, int64_t seq, struct slice row, struct error *err);
    enum status (*each)(struct store *s, store_journal_fn *fn, void *arg, struct error *err);
    enum status (*applied)(struct store *s, int64_t seq, struct error *err);
    enum status (*drop)(struct store *s, int64_t seq, uint32_t max, bool *ret_more, struct error *err);
    enum status (*forget)(struct store *s, int64_t after, int64_t applied, struct error *err);
    enum status (*state)(struct store *s, struct journal_state *ret, struct error *err);
    enum status (*get_seqs)(struct store *s, const struct key_ref *refs, size_t n, int64_t *ret,
                            struct error *err);
    enum status (*confirm)(struct store *s, struct error *err);
    bool (*same)(struct store *s); /* NULL: it never knows; so the next */
    bool (*others)(struct store *s, uint64_t *seen, bool *ret_others);
    void (*reconnect)(struct store *s); /* NULL: a file */
    enum status (*get_word)(struct store *s, const char *name, char *ret, size_t cap, struct error *err);
    enum status (*set_word)(struct store *s, const char *name, const char *text, struct error *err);
    /* NULL: far */
    enum status (*file)(struct store *s, struct store_file *ret, struct error *err);
    enum status (*new_cookie)(struct store *s, struct error *err);
    enum status (*in_bulk)(struct store *s, void (*meanwhile)(void *arg), void *arg, struct error *err);
    enum status (*checkpoint)(struct store *s, struct error *err);
    uint64_t (*wal_bytes)(struct store *s);
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

/* The tables hold all of what rows up to seq say. */
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

/* After a commit with an unknown outcome: as if it had not taken place. Rows behind `after` go; if the tables
   say that they are complete beyond `after`, they say `applied` again. */
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

/* Only of a store that is not far. Between transactions, too. */
static inline MUST_CHECK enum status store_get_file(struct store *s, struct store_file *ret,
                                                    struct error *err)
{
    return s->journal_rows->file(s, ret, err);
}

/* The same, in a transaction that writes: a cookie that no backup of the file has. */
static inline MUST_CHECK enum status store_new_cookie(struct store *s, struct error *err)
{
    return s->journal_rows->new_cookie(s, err);
}

/* ---- between transactions ---- */

/* ST_OK: no other server has had the tables up to now, or to a moment within this call. Asks the database
   unless it has answered lately (lease.h). ST_LOCKED: another server has; ST_IO: the database does not
   say. */
static inline MUST_CHECK enum status store_confirm(struct store *s, struct error *err)
{
    return s->journal_rows->confirm(s, err);
}

/* Only of a store that is not far, and that writes. From now on it is written in bulk: commits that need not
   be durable (STORE_WRITE_LAZY) become so by store_sync and store_checkpoint alone, and the latter alone
   copies the database's own log into it. What is written goes to the disk evenly, and `meanwhile` (or
   NULL) is called after each mebibyte of it. */
static inline MUST_CHECK enum status store_write_in_bulk(struct store *s, void (*meanwhile)(void *arg),
                                                         void *arg, struct error *err)
{
    return s->journal_rows->in_bulk(s, meanwhile, arg, err);
}

/* Makes everything that was committed durable, and the database's own log short, unless another process reads
   an old state: then it stays as long as it is. A log that starts over looks like a commit to sessions that
   read (store_same, ret_changed): who tells ours from others' counts it among ours. */
static inline MUST_CHECK enum status store_checkpoint(struct store *s, struct error *err)
{
    return s->journal_rows->checkpoint(s, err);
}

/* How long that log is. */
static inline uint64_t store_wal_bytes(struct store *s)
{
    return s->journal_rows->wal_bytes(s);
}

/* Whether the tables are certainly as the last transaction of this session that read has seen them: nobody
   has committed since, this process included. Costs nothing; false when it is not known. */
static inline bool store_same(struct store *s)
{
    return s->journal_rows->same && s->journal_rows->same(s);
}

/* The next transaction is on a new connection, which may be one to another host. */
static inline void store_reconnect(struct store *s)
{
    s->journal_rows->reconnect(s);
}

/* Any thread, of a session that writes: whether others than this session have committed since that was last
   asked with the same *seen (at first 0). False: it is not known. */
static inline bool store_others(struct store *s, uint64_t *seen, bool *ret_others)
{
    return s->journal_rows->others && s->journal_rows->others(s, seen, ret_others);
}

#endif
