/* The words that describe tables: what TABLE.CREATE and TABLE.ALTER are told, and the same within CREATE
   TABLE, CREATE INDEX and ALTER TABLE of SQL.

     table   := item ("," item)*
     item    := column | [CONSTRAINT name] constraint | [UNIQUE] INDEX name "(" parts ")"
     constraint := PRIMARY KEY "(" parts ")" | UNIQUE "(" parts ")" | CHECK "(" expression ")"
     column  := name type (NOT NULL | NULL | DEFAULT literal | DEFAULT "(" literal ")" |
                PRIMARY KEY [ASC|DESC] | UNIQUE | CHECK "(" expression ")" | CONSTRAINT name)*
     parts   := name [ASC|DESC] ("," name [ASC|DESC])*
     alter   := ADD [COLUMN] column | DROP [COLUMN] name | RENAME [COLUMN] name TO name |
                ADD [UNIQUE] INDEX name "(" parts ")" | DROP INDEX name

   Names may stand in "…", `…` or […]; key words are not reserved where a name is expected. Literals: numbers,
   '…', x'…', TRUE, FALSE, NULL; CURRENT_TIMESTAMP is refused (defaults are constants). A length behind a type
   (VARCHAR(30)) means nothing, as in SQLite. Comments are those of SQL. UNIQUE makes an index: of the
   constraint's name, else <column>_unique, with _2 behind it when there is one. Names of other constraints
   are forgotten.

   A text has at most 256 KiB; the time is that of its length. */
#ifndef LARDER_TABLE_TEXT_DDL_H
#define LARDER_TABLE_TEXT_DDL_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/slice.h"
#include "table/fault.h"
#include "table/schema.h"

/* The table that a text describes, checked (schema_check, and each CHECK compiles). Everything is in the
   arena, but for names and constants that borrow text. Its indexes are ready. hash_prefix: NULL, or that of a
   table over hashes: then the primary key is the text's first column when it names none, NOT NULL, CHECK and
   UNIQUE are refused, and indexes are INDEX_BUILDING, as hashes may be there. */
bool ddl_table(struct slice text, const struct slice *hash_prefix, struct arena *arena, struct schema *ret,
               struct fault *fault);

enum alter_kind {
    ALTER_ADD_COLUMN,
    ALTER_DROP_COLUMN,
    ALTER_RENAME_COLUMN,
    ALTER_ADD_INDEX,
    ALTER_DROP_INDEX
};

/* Applies one alteration to a copy of a schema: *ret is complete and checked; an index that was added is
   INDEX_BUILDING and has the next number. *ret_kind, and in *ret_number the index's number, say what it was.

   A column that is added may be NOT NULL only with a DEFAULT, and has no PRIMARY KEY, UNIQUE or CHECK.
   Refused: dropping a column that is in the key, an index or a CHECK, renaming one that a CHECK names,
   renaming one of a table over hashes (it is the field of that name). */
bool ddl_alter(struct slice text, const struct schema *s, struct arena *arena, struct schema *ret,
               enum alter_kind *ret_kind, uint16_t *ret_number, struct fault *fault);

/* Which columns an expression names, by place. False: it is none that a CHECK can have. */
bool ddl_uses(struct slice expression, const struct schema *s, bool *ret_used);

/* The statements of SQL that change tables. Names are as the statement has them, not checked. False with no
   fault: it is none of them; only its first words were looked at, and *ret_rest is sql. Else *ret_rest is
   what is behind the statement and its semicolon. What is in *ret borrows sql or the arena.

     CREATE TABLE [IF NOT EXISTS] t (table) [WITHOUT ROWID] [, STRICT]    which our tables are anyway
     CREATE [UNIQUE] INDEX [IF NOT EXISTS] i ON t (parts)
     DROP TABLE [IF EXISTS] t;  DROP INDEX [IF EXISTS] i [ON t]
     ALTER TABLE t RENAME TO name | alter */
enum ddl_kind {
    DDL_CREATE_TABLE,
    DDL_DROP_TABLE,
    DDL_ALTER_TABLE,
    DDL_RENAME_TABLE,
    DDL_CREATE_INDEX,
    DDL_DROP_INDEX
};
struct ddl {
    enum ddl_kind kind;
    bool if_not_exists, if_exists;
    struct slice table; /* DDL_DROP_INDEX: may be empty, an index of any table then */
    struct slice index; /* DDL_CREATE_INDEX, DDL_DROP_INDEX */
    struct slice name;  /* DDL_RENAME_TABLE: the new one */
    struct slice text;  /* what ddl_table or ddl_alter takes */
};
bool ddl_statement(struct slice sql, struct arena *arena, struct ddl *ret, struct slice *ret_rest,
                   struct fault *fault);

#endif
