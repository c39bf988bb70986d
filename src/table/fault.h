/* What a client asked for and cannot have of a table: a mistake of the client's, never a failure of the
   database (that is an enum status). A function that may meet one returns ST_OK with fault->kind set, and
   has changed nothing. RESP, HTTP and SQL each say it in their own way (code and text); text never ends with
   a full stop. */
#ifndef LARDER_TABLE_FAULT_H
#define LARDER_TABLE_FAULT_H

#include <stdbool.h>

#include "base/slice.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_SYNTAX,   /* SYNTAX      400 syntax            a text that describes a table, or an argument list */
    FAULT_NO_TABLE, /* NOTABLE     404 table_not_found */
    FAULT_EXISTS,   /* EXISTS      409 table_exists      a table, a column or an index of that name */
    FAULT_WRONG_TYPE, /* WRONGTYPE   409 wrong_type        the key is no table */
    FAULT_NO_COLUMN,  /* NOCOLUMN    400 unknown_column */
    FAULT_NO_INDEX,   /* NOINDEX     400 unknown_index */
    FAULT_BAD_TYPE,   /* BADTYPE     400 bad_type          a value that its column cannot hold */
    FAULT_CONSTRAINT, /* CONSTRAINT  422 constraint        NOT NULL, CHECK */
    FAULT_DUPLICATE,  /* DUPLICATE   409 duplicate         a unique index has it under another primary key */
    FAULT_TOO_LONG, /* TOOLONG     400 too_long          a key or an entry beyond KEYCODE_MAX, a schema beyond
                       its limits */
    FAULT_BAD_TOKEN, /* BADTOKEN    400 bad_cursor */
    FAULT_BUILDING,  /* BUILDING    409 building          an index that is not ready yet, or has failed */
    FAULT_REFUSED,   /* REFUSED     409 refused           what such a table cannot do; text says why */
    FAULT_SQL,       /* SQL         400 sql_error         a text of SQL, or what it asks for */
    FAULT_TIMEOUT,   /* SQL         504 sql_timeout */
    FAULT_TOO_LARGE, /* SQL         413 result_too_large */
    FAULT_CANCELLED  /* SQL         409 cancelled */
};

#define FAULT_CHARS 480

struct fault {
    enum fault_kind kind;
    char text[FAULT_CHARS]; /* UTF-8, one line; names and values in it are cut where they are long */
};

/* The arguments of "%.*s" for a name or a value of the client's, cut. */
#define FAULT_CUT(s) ((int)((s).n < 80 ? (s).n : 80)), ((s).n ? (s).p : "")

/* Fills a fault that has none yet (the first one stands). Returns false, so that a failing check is one
   line. */
bool fault_set(struct fault *f, enum fault_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

const char *fault_code(enum fault_kind kind);      /* "NOTABLE", for RESP and SQL */
const char *fault_http_code(enum fault_kind kind); /* "table_not_found" */
int fault_http_status(enum fault_kind kind);

#endif
