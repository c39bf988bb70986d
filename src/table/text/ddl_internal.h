/* Reading the texts that describe tables: tokens, and what columns, keys and indexes have in common. */
#ifndef LARDER_TABLE_TEXT_DDL_INTERNAL_H
#define LARDER_TABLE_TEXT_DDL_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/slice.h"
#include "table/fault.h"
#include "table/schema.h"

#define DDL_TEXT_MAX 262144 /* several times what a schema may be */

/* ---- tokens (ddl_lex.c) ---- */

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,   /* letters, digits, _ */
    TOKEN_NAME,   /* "…", `…` or […] */
    TOKEN_STRING, /* '…' */
    TOKEN_BLOB,   /* x'…' */
    TOKEN_NUMBER, /* without a sign */
    TOKEN_SIGN    /* one character */
};

struct token {
    enum token_kind kind;
    struct slice text; /* as it is written */
    bool spaced;       /* white space or a comment is before it */
};

/* Reads token by token, each once: the time is that of the text's length. */
struct lexer {
    const char *begin, *p, *end;
    struct token token; /* the current one */
    struct arena *arena;
    struct fault *fault; /* set: there is no more to read */
};

/* The first token is the current one, of a copy in the arena. False: not UTF-8, a NUL, too long. */
bool lex_begin(struct lexer *l, struct slice text, struct arena *arena, struct fault *fault);
/* The same for the text of statements, which is not copied, and of which only what is read is looked at. */
bool lex_begin_statement(struct lexer *l, struct slice text, struct arena *arena, struct fault *fault);
bool lex_next(struct lexer *l);
bool lex_pass_two(struct lexer *l); /* the current token and the one behind it */

/* The token behind the current one; TOKEN_END also where there is a fault. */
struct token lex_peek(const struct lexer *l);

bool token_is(const struct token *t, const char *word); /* a TOKEN_WORD, case ignored */
bool lex_at(const struct lexer *l, const char *word);
bool lex_at_sign(const struct lexer *l, char c);

/* Passes over a word or a sign when it is the current token. Also false when the token behind it is none:
   then the fault is set. */
bool lex_accept(struct lexer *l, const char *word);
bool lex_accept_sign(struct lexer *l, char c);

/* The same, and a fault when it is another. */
bool lex_expect(struct lexer *l, const char *word);
bool lex_expect_sign(struct lexer *l, char c);
bool lex_expect_end(struct lexer *l);
/* "expected WHAT, not 'TOKEN' at byte N". False. */
bool lex_wrong(struct lexer *l, const char *what);

/* A name, out of its quotes. what: "the name of a column". */
bool lex_name(struct lexer *l, const char *what, struct slice *ret);

/* A literal: a number with a sign or not, a string, a blob, TRUE, FALSE, NULL. */
bool lex_literal(struct lexer *l, struct value *ret);

/* What stands in brackets, up to the one that closes: white space and comments as one space each. The current
   token is the opening bracket. */
bool lex_brackets(struct lexer *l, struct slice *ret);

/* ---- parts of descriptions (ddl.c) ---- */

struct part_name {
    struct slice column;
    bool desc;
};

/* An index or a key before the columns that it names are known. */
struct index_words {
    struct slice name; /* empty: to be made */
    bool unique;
    struct part_name *parts;
    size_t nparts;
};

/* What a column's own words say beside the column. */
struct column_words {
    struct column column;
    bool primary, desc, unique;
    struct slice unique_name; /* CONSTRAINT name UNIQUE */
    struct slice *checks;
    size_t nchecks;
};

bool ddl_column(struct lexer *l, struct column_words *ret);
/* "(" parts ")" */
bool ddl_parts(struct lexer *l, struct index_words *ret);
/* Adds an index to the schema, which has room for it; it takes the next number. */
bool ddl_add_index(struct schema *s, const struct index_words *w, enum index_state state, struct arena *arena,
                   struct fault *fault);
/* The last look at a schema: schema_check, and whether its checks can be computed. */
bool ddl_finish(struct schema *s, struct fault *fault);

#endif
