/* Private to salvage.c (what is decided and said) and, for each kind of database, what that takes there:
   salvage_sqlite.c and salvage_remote.c. */
#ifndef LARDER_ADMIN_SALVAGE_INTERNAL_H
#define LARDER_ADMIN_SALVAGE_INTERNAL_H

#include <stdio.h>

#include "admin/check_internal.h"
#include "admin/salvage.h"

/* A group that is not in the tables: a row of the journal, or a record of the log. */
struct salvage_row {
    int64_t seq;
    bool damaged, left_out;
    bool unreadable; /* the database itself cannot read it, or it is a hole in the log, behind seq */
    char why[120];   /* it is damaged */
};

struct salvage {
    const struct salvage_ops *ops;
    struct check_session session; /* owned, in a transaction */
    enum salvage_mode mode;
    FILE *out;
    struct salvage_row *rows;
    size_t nrows, cap;
    size_t damaged, left_out;
};

struct salvage_ops {
    /* Adds the numbers of the rows that are not in the tables, in order; holes as damaged ones. */
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
       databases are above all that are in use, collections have as many items as are there, and numbers above
       theirs. What nothing refers to is for the sweeper, keys are to be
       counted by the next server, and the journal is empty. */
    enum status (*tidy)(struct salvage *v, struct error *err);
    enum status (*check)(struct check_session *s, FILE *out, uint64_t *ret_found, struct error *err);
    enum status (*commit)(struct salvage *v, struct error *err); /* and no log is left */
    void (*free)(struct salvage *v); /* all but the session and the rows, and v itself */
};

void salvage_add_row(struct salvage *v, int64_t seq);

/* For tidying, of a table that numbers its items (check_add_text): those that share a number with another
   one, and one that none of their id has; how many an id has, and the number above theirs; rows of keys k
   that say something else. What survives keeps its number, but for one of two that share it. */
#define SALVAGE_TWINS                                                                                        \
    "(SELECT id, {key} AS name, row_number() OVER (PARTITION BY id, {ord} ORDER BY {key}) AS twin,"          \
    "  max({ord}) OVER (PARTITION BY id) + row_number() OVER (PARTITION BY id ORDER BY {ord}, {key})"        \
    "  AS fresh FROM {table} WHERE id IN (SELECT id FROM {table} GROUP BY id"                                \
    "   HAVING count(*) <> count(DISTINCT {ord}))) AS w"
#define SALVAGE_COUNTS "(SELECT id, count(*) AS n, max({ord}) + 1 AS top FROM {table} GROUP BY id) AS w"
#define SALVAGE_UNFIT                                                                                        \
    "k.type = {type} AND (k.size <> w.n OR w.top > coalesce(nullif(k.numbers, 0), k.size)"                   \
    "  OR (k.numbers <> 0 AND k.numbers <= k.size))"
#define SALVAGE_NUMBERS "CASE WHEN w.top = w.n THEN 0 ELSE w.top END"

/* What puts them right, where UPDATE has a FROM. */
#define SALVAGE_TWINS_APART                                                                                  \
    "UPDATE {table} AS i SET {ord} = w.fresh FROM " SALVAGE_TWINS                                            \
    " WHERE i.id = w.id AND i.{key} = w.name AND w.twin > 1"
#define SALVAGE_COUNT_ANEW                                                                                   \
    "UPDATE larder_key AS k SET size = w.n, numbers = " SALVAGE_NUMBERS " FROM " SALVAGE_COUNTS              \
    " WHERE k.id = w.id AND " SALVAGE_UNFIT

/* Keeps what is wrong with a row: a text for every database. */
void salvage_note_damage(struct salvage_row *r, const struct error *why);

/* For tidying: adds what is above every id that is in use, a number for each table that has any. */
void salvage_add_above_ids(struct buf *out);

struct salvage *salvage_new_sqlite(void) __attribute__((returns_nonnull));
struct salvage *salvage_new_remote(void) __attribute__((returns_nonnull));

#endif
