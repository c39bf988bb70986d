/* Statements of SQL that make, change and drop tables: where they end, which table they are about, and what
   of them ddl_table and ddl_alter read. */
#include "table/text/ddl.h"
#include "table/text/ddl_internal.h"

/* ---- what a statement is ---- */

/* Which statement begins here; the lexer is behind the words that say so. */
static bool find_kind(struct lexer *l, enum ddl_kind *ret, bool *ret_unique, bool *ret_temporary)
{
    *ret_unique = *ret_temporary = false;
    if (lex_accept(l, "CREATE")) {
        *ret_unique = lex_accept(l, "UNIQUE");
        *ret_temporary = !*ret_unique && (lex_accept(l, "TEMP") || lex_accept(l, "TEMPORARY"));
        *ret = DDL_CREATE_TABLE;
        if (!*ret_unique && lex_accept(l, "TABLE"))
            return true;
        *ret = DDL_CREATE_INDEX;
        return lex_accept(l, "INDEX");
    }
    if (lex_accept(l, "DROP")) {
        *ret = DDL_DROP_TABLE;
        if (lex_accept(l, "TABLE"))
            return true;
        *ret = DDL_DROP_INDEX;
        return lex_accept(l, "INDEX");
    }
    *ret = DDL_ALTER_TABLE;
    return lex_accept(l, "ALTER") && lex_accept(l, "TABLE");
}

/* [main.] name */
static bool take_name(struct lexer *l, const char *what, struct slice *ret)
{
    if (!lex_name(l, what, ret))
        return false;
    if (!lex_at_sign(l, '.'))
        return true;
    if (!slice_is(*ret, "main"))
        return fault_set(l->fault, FAULT_REFUSED,
                         "there is no database %.*s: a client's is the one it has selected", FAULT_CUT(*ret));
    return lex_next(l) && lex_name(l, what, ret);
}

static bool at_end(const struct lexer *l)
{
    return l->token.kind == TOKEN_END || lex_at_sign(l, ';');
}

/* Up to the end of the statement: what is left of it. */
static bool take_rest(struct lexer *l, struct slice *ret)
{
    const char *from = l->token.kind == TOKEN_END ? l->end : l->token.text.p, *to = from;
    while (!at_end(l)) {
        to = l->p;
        if ((size_t)(to - from) > DDL_TEXT_MAX)
            return fault_set(l->fault, FAULT_TOO_LONG, "a statement of more than %d bytes", DDL_TEXT_MAX);
        if (!lex_next(l))
            return false;
    }
    *ret = slice_of(from, (size_t)(to - from));
    return true;
}

/* "(" ... ")", as it is written, with or without them. */
static bool take_brackets(struct lexer *l, bool with, struct slice *ret)
{
    size_t depth = 0;
    const char *from = l->token.text.p;
    if (!lex_at_sign(l, '('))
        return lex_wrong(l, "'('");
    for (;;) {
        depth += lex_at_sign(l, '(');
        depth -= lex_at_sign(l, ')');
        const char *behind = l->p;
        if (depth == 0) {
            *ret = with ? slice_of(from, (size_t)(behind - from))
                        : slice_of(from + 1, (size_t)(behind - from - 2));
            return lex_next(l);
        }
        if ((size_t)(behind - from) > DDL_TEXT_MAX)
            return fault_set(l->fault, FAULT_TOO_LONG, "a statement of more than %d bytes", DDL_TEXT_MAX);
        if (!lex_next(l))
            return false;
        if (at_end(l))
            return lex_wrong(l, "')'");
    }
}

/* ---- the statements ---- */

static bool if_exists(struct lexer *l, bool *ret)
{
    *ret = lex_at(l, "IF");
    return !*ret || (lex_next(l) && lex_expect(l, "EXISTS"));
}

static bool if_not_exists(struct lexer *l, bool *ret)
{
    *ret = lex_at(l, "IF");
    return !*ret || (lex_next(l) && lex_expect(l, "NOT") && lex_expect(l, "EXISTS"));
}

/* WITHOUT ROWID and STRICT are what our tables are anyway. */
static bool table_options(struct lexer *l)
{
    if (at_end(l))
        return true;
    do {
        if (lex_at(l, "STRICT") ? !lex_next(l) : !lex_expect(l, "WITHOUT") || !lex_expect(l, "ROWID"))
            return false;
    } while (lex_accept_sign(l, ','));
    return l->fault->kind == FAULT_NONE;
}

static bool create_table(struct lexer *l, bool temporary, struct ddl *d)
{
    if (temporary)
        return fault_set(l->fault, FAULT_REFUSED, "there are no temporary tables; EXPIRE a table");
    if (!if_not_exists(l, &d->if_not_exists) || !take_name(l, "the name of a table", &d->table))
        return false;
    if (lex_at(l, "AS"))
        return fault_set(l->fault, FAULT_REFUSED,
                         "CREATE TABLE AS is not possible: name the columns, then INSERT");
    return take_brackets(l, false, &d->text) && table_options(l);
}

/* A name as ddl_alter reads it again. */
static void add_quoted(struct buf *out, struct slice name)
{
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < name.n; i++)
        buf_add(out, name.p[i] == '"' ? "\"\"" : &name.p[i], name.p[i] == '"' ? 2 : 1);
    buf_add(out, "\"", 1);
}

static void set_text(struct lexer *l, struct ddl *d, const char *words, struct slice parts)
{
    struct buf text = {0};
    buf_addf(&text, "%s ", words);
    add_quoted(&text, d->index);
    buf_add_slice(&text, parts);
    d->text = arena_copy(l->arena, buf_slice(&text));
    buf_release(&text);
}

static bool create_index(struct lexer *l, bool unique, struct ddl *d)
{
    struct slice parts = SLICE("");
    if (!if_not_exists(l, &d->if_not_exists) || !take_name(l, "the name of an index", &d->index) ||
        !lex_expect(l, "ON") || !take_name(l, "the name of a table", &d->table) ||
        !take_brackets(l, true, &parts))
        return false;
    if (lex_at(l, "WHERE"))
        return fault_set(l->fault, FAULT_REFUSED, "there are no indexes of some rows (WHERE)");
    set_text(l, d, unique ? "ADD UNIQUE INDEX" : "ADD INDEX", parts);
    return true;
}

static bool drop_index(struct lexer *l, struct ddl *d)
{
    if (!if_exists(l, &d->if_exists) || !take_name(l, "the name of an index", &d->index))
        return false;
    if (lex_at(l, "ON") && (!lex_next(l) || !take_name(l, "the name of a table", &d->table)))
        return false;
    set_text(l, d, "DROP INDEX", SLICE(""));
    return true;
}

static bool alter_table(struct lexer *l, struct ddl *d)
{
    if (!take_name(l, "the name of a table", &d->table))
        return false;
    struct token next = lex_peek(l);
    if (!lex_at(l, "RENAME") || !token_is(&next, "TO"))
        return take_rest(l, &d->text);
    d->kind = DDL_RENAME_TABLE;
    return lex_pass_two(l) && take_name(l, "the new name", &d->name);
}

static bool parse(struct lexer *l, bool unique, bool temporary, struct ddl *d)
{
    switch (d->kind) {
    case DDL_CREATE_TABLE:
        return create_table(l, temporary, d);
    case DDL_CREATE_INDEX:
        return create_index(l, unique, d);
    case DDL_DROP_TABLE:
        return if_exists(l, &d->if_exists) && take_name(l, "the name of a table", &d->table);
    case DDL_DROP_INDEX:
        return drop_index(l, d);
    default:
        return alter_table(l, d);
    }
}

bool ddl_statement(struct slice sql, struct arena *arena, struct ddl *ret, struct slice *ret_rest,
                   struct fault *fault)
{
    struct fault ignored = {0};
    struct lexer l;
    bool unique, temporary;
    *ret = (struct ddl){.table = SLICE(""), .index = SLICE(""), .name = SLICE(""), .text = SLICE("")};
    *ret_rest = sql;
    if (!lex_begin_statement(&l, sql, arena, &ignored))
        return false;
    while (lex_at_sign(&l, ';') && lex_next(&l))
        continue;
    if (!find_kind(&l, &ret->kind, &unique, &temporary) || ignored.kind != FAULT_NONE)
        return false;
    l.fault = fault;
    if (!parse(&l, unique, temporary, ret))
        return false;
    if (!at_end(&l))
        return lex_wrong(&l, "';' or the end");
    *ret_rest = slice_of(l.p, (size_t)(l.end - l.p));
    return true;
}
