/* The words of a text of SQL, as far as they have to be known before SQLite sees it: where a statement
   begins, what kind it is, which columns an INSERT names. */
#ifndef LARDER_QUERY_TEXT_H
#define LARDER_QUERY_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

enum text_kind {
    TEXT_END,
    TEXT_WORD,   /* a key word or a name */
    TEXT_NAME,   /* a name in "", `` or [] */
    TEXT_STRING, /* '…' */
    TEXT_OTHER   /* a number, a parameter, or one character */
};

struct text_token {
    enum text_kind kind;
    struct slice text; /* as it stands; of a TEXT_NAME what is between the quotes, doubled ones included */
};

/* Takes the next token off the front; comments and white space are passed over. */
struct text_token text_next(struct slice *text);

/* What is behind white space, comments and semicolons. */
struct slice text_skip(struct slice text);

enum text_statement {
    TEXT_EMPTY,
    TEXT_READS,   /* SELECT, VALUES, EXPLAIN, and WITH that is none of the next */
    TEXT_WRITES,  /* INSERT, REPLACE, UPDATE, DELETE, also behind WITH */
    TEXT_DEFINES, /* CREATE, DROP, ALTER */
    TEXT_TRANSACTS /* BEGIN, COMMIT, END, ROLLBACK, SAVEPOINT, RELEASE */,
    TEXT_UNKNOWN
};

/* Of the first statement. *ret_rest: behind its semicolon. */
enum text_statement text_statement(struct slice text, struct slice *ret_rest);

/* Which columns an INSERT gives values for: calls fn for each name of its list. True: it has a list (that of
   DEFAULT VALUES is empty). */
typedef void text_name_fn(void *arg, struct slice name);
bool text_insert_columns(struct slice text, text_name_fn *fn, void *arg);

#endif
