/* What catalog.c, rows.c and rows_write.c share: the catalog, rows as they lie, and what writing one comes
 * to. */
#ifndef LARDER_TABLE_ROWS_INTERNAL_H
#define LARDER_TABLE_ROWS_INTERNAL_H

#include "base/buf.h"
#include "base/map.h"
#include "table/rows.h"

struct known;

struct catalog {
    struct map by_id;
    struct known *old; /* out of the map; freed when no handler can have one any more */
    size_t bytes;      /* of decoded tables, about */
    int64_t version;   /* the greatest that a row got here, or had when it was removed */
    struct buf name;   /* room that is used again and again, for what does not outlive the function */
    struct buf value;
};

/* Whether a row with these values passes the CHECKs of its table, which table_open gave. */
bool table_check(const struct table *t, const struct value *values, struct fault *fault);

/* A row as it lies in the table, expired or not. */
struct stored {
    bool found;
    bool live;
    struct slice name;
    struct table_row row; /* decoded, when found */
};

enum status rows_read(struct rows *r, struct slice name, struct stored *ret) MUST_CHECK;

/* The values are those of a whole row: defaults are in their places. */
bool rows_check(struct rows *r, const struct value *values, struct fault *fault);

/* The version that a row gets next. No row that was here before under the same name had it. */
int64_t rows_next_version(struct rows *r, const struct stored *old);

/* An item of the table as a row under this name. */
enum status rows_take(struct rows *r, struct slice name, bool found, const struct item_row *item,
                      struct stored *ret) MUST_CHECK;

/* The entries of a row, by the indexes' places. */
struct entries {
    struct slice *names; /* p is NULL: the index has none of it */
    bool *unique;
};

/* What is in the place of a unique entry. */
struct holder {
    bool found;
    struct slice row; /* the name of the row that has it */
};

/* What a put needs to know: what lies under its name, its entries and who has them. One round trip. */
struct prepared {
    struct stored old;
    struct entries now;
    struct holder *held;
};
enum status rows_prepare(struct rows *r, const struct value *values, struct slice name, struct prepared *ret,
                         struct fault *fault) MUST_CHECK;

/* What is to be written: a row in the place of another one, or of none. */
struct row_change {
    const struct stored *old;        /* what lies under the name that it had */
    const struct stored *target;     /* of one that moves: what lies under its new name, expired */
    struct slice name;               /* the one that it gets */
    const struct prepared *prepared; /* of these values; NULL: nobody has looked yet */
    struct table_row row;
};

/* Writes a row and its entries, or says why not (FAULT_DUPLICATE, FAULT_TOO_LONG) and has written nothing. An
   expiry that has come: the row is checked, and not there. */
enum status rows_write(struct rows *r, const struct row_change *c, struct fault *fault) MUST_CHECK;

/* Removes what lies under a name, with its entries. */
enum status rows_remove(struct rows *r, const struct stored *s) MUST_CHECK;

/* "DUPLICATE index by_email: (7)", "DUPLICATE PRIMARY KEY: (…)". Values are cut and printable. */
void rows_duplicate(const struct rows *r, const struct table_index *index, const struct value *values,
                    struct fault *fault);

#endif
