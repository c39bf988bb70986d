/* Private to check.c (what is asked, and how findings are told), check_sqlite.c and check_remote.c (the
   questions in the database's words), check_relations.c (what takes code to ask), check_session.c (a database
   to look at, with its journal) and salvaging (salvage_internal.h). */
#ifndef LARDER_ADMIN_CHECK_INTERNAL_H
#define LARDER_ADMIN_CHECK_INTERNAL_H

#include "admin/check.h"
#include "base/buf.h"
#include "journal/redo_state.h"
#include "sql/sqlite.h"
#include "store/item_tables.h"
#include "store/journal_rows.h"

#define CHECK_SHOWN 20 /* findings printed of each kind */

/* The hidden database, in texts: rows that larder_db does not know of, and that are in use. */
#define CHECK_HIDDEN_DB "2147483647"
_Static_assert(STORE_HIDDEN_DB == 2147483647u, "CHECK_HIDDEN_DB is the same number");

/* A key row k whose items have no numbers, and that says below which they are. */
#define CHECK_NUMBERS "(k.numbers <> 0 AND k.type NOT IN (2, 4, 5))"

/* A database that is being looked at, in a transaction. */
struct check_session {
    struct sqlite *sql;  /* NULL: a database server's */
    struct store *store; /* over it, and closes it */
    struct journal_state state;
    int64_t pending; /* rows of the journal that are not in the tables */
    bool owned;      /* no server has the database: the transaction may write */
    /* Of a file: the log beside it, how many groups in it are not in the tables, and, unless it is ST_OK, why
       a server would not start on it. */
    struct redo_state redo;
    int64_t in_log;
    struct error refused;
};

/* Opens a database of this version, for this process alone (ST_LOCKED) or to read, and begins. */
enum status check_open(const char *url, bool owned, struct check_session *ret, struct error *err) MUST_CHECK;

/* Opens it in a way in which its tables can be made to say one thing: as they are, when nothing is pending;
   else for this process alone, or, when a server has it, at a moment when no change is half in the tables. */
enum status check_open_settled(const char *url, struct check_session *ret, struct error *err) MUST_CHECK;

/* The same on a database server. */
enum status remote_check_open(const char *url, bool owned, struct check_session *ret,
                              struct error *err) MUST_CHECK;
enum status remote_check_tables(struct check_session *s, FILE *out, uint64_t *ret_found,
                                struct error *err) MUST_CHECK;

/* Rolls back what has not been committed. */
void check_close(struct check_session *s);

/* Reads the rows of the journal and the groups of the log that are pending, prints what is wrong with them,
   and, when the session is owned, brings them into the tables within the transaction. *ret_comparable: the
   tables say one thing now. */
enum status check_journal(struct check_session *s, FILE *out, uint64_t *ret_found, bool *ret_comparable,
                          struct error *err) MUST_CHECK;

/* ---- questions: each is a query that returns one line of text for each thing that is wrong ---- */

struct check {
    const char *title, *text;
};

struct table_check {
    enum item_table table;
    struct check check;
};

/* The words of a kind of database. In numbered and orphans, {table}, {key}, {ord} and {type} stand for an
   item table, its columns of names and of numbers, and the type of its keys. */
struct check_texts {
    const struct check *of_keys; /* and of databases: asked first */
    size_t nkeys;
    const struct table_check *of_tables; /* what only one table has to say */
    size_t ntables;
    /* Of tables that number their items: as many as the key's size says, see key_row.numbers. */
    const char *numbered;
    const char *orphans; /* items that no key row refers to and that are not in the trash */
};

struct findings {
    FILE *out;
    uint64_t n, total; /* of the running question, and of all before it */
    /* Of a question that asks for something else than findings: who takes the lines; else NULL. */
    void (*take)(void *arg, struct slice line);
    void *arg;
};

/* Prints a finding. */
void check_found(struct findings *f, struct slice text);

/* Puts a question to the database: check_found for each line of the answer. */
typedef enum status check_ask_fn(void *arg, const char *text, struct findings *f, struct error *err);

enum status check_one(const char *title, const char *text, check_ask_fn *ask, void *arg, struct findings *f,
                      struct error *err) MUST_CHECK;
enum status check_all(const struct check_texts *k, check_ask_fn *ask, void *arg, struct findings *f,
                      struct error *err) MUST_CHECK;

/* Adds a text about an item table, whose name, columns and type take the place of {table}, {key}, {ord} and
   {type}. */
void check_add_text(struct buf *out, const char *pattern, enum item_table t);

/* Rows and entries of relational tables (check_relations.c). */
enum status check_relations(struct check_session *s, check_ask_fn *ask, void *arg, struct findings *f,
                            struct error *err) MUST_CHECK;

/* All that the tables say of each other. */
enum status check_tables(struct check_session *s, FILE *out, uint64_t *ret_found,
                         struct error *err) MUST_CHECK;

#endif
