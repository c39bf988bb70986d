/* Private to salvage.c (what is decided and said) and, for each kind of database, what that takes there:
   salvage_sqlite.c and salvage_remote.c. */
#ifndef LARDER_ADMIN_SALVAGE_INTERNAL_H
#define LARDER_ADMIN_SALVAGE_INTERNAL_H

#include <stdio.h>

#include "admin/check_internal.h"

/* A row of the journal that is not in the tables. */
struct salvage_row {
    int64_t seq;
    bool damaged, left_out;
    bool unreadable; /* the database itself cannot read it */
    char why[120];   /* it is damaged */
};

struct salvage {
    const struct salvage_ops *ops;
    struct check_session session; /* owned, in a transaction */
    FILE *out;
    struct salvage_row *rows;
    size_t nrows, cap;
    size_t damaged, left_out;
};

struct salvage_ops {
    /* Adds the numbers of the rows that are not in the tables, in order. */
    enum status (*list)(struct salvage *v, struct error *err);
    /* The bytes of a row, borrowed until the next call. One that cannot be read is no reason to give up,
       unless nothing can be (ST_IO). */
    enum status (*read)(struct salvage *v, int64_t seq, struct slice *ret, struct error *err);

    /* The copy of what is left out: opened before anything is written, safe on disk no later than the
       changes of the database. copy_end says where it is. */
    enum status (*copy_begin)(struct salvage *v, const char *url, struct error *err);
    enum status (*copy_row)(struct salvage *v, const struct salvage_row *r, struct slice bytes,
                            struct error *err);
    enum status (*copy_key)(struct salvage *v, const struct salvage_row *r, const struct key_row *k,
                            const char *type, struct error *err);
    enum status (*copy_end)(struct salvage *v, struct error *err);

    /* Nothing may be given out twice, whatever part of the damaged rows is in the tables: ids and numbers of
       databases are above all that are in use. What nothing refers to is for the sweeper, keys are to be
       counted by the next server, and the journal is empty. */
    enum status (*tidy)(struct salvage *v, struct error *err);
    enum status (*check)(struct check_session *s, FILE *out, uint64_t *ret_found, struct error *err);
    enum status (*commit)(struct salvage *v, struct error *err);
    void (*free)(struct salvage *v); /* all but the session and the rows, and v itself */
};

void salvage_add_row(struct salvage *v, int64_t seq);

/* For tidying: adds what is above every id that is in use, a number for each table that has any. */
void salvage_add_above_ids(struct buf *out);

struct salvage *salvage_new_sqlite(void) __attribute__((returns_nonnull));
struct salvage *salvage_new_remote(void) __attribute__((returns_nonnull));

#endif
