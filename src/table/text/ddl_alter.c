/* TABLE.ALTER: one alteration of a schema. */
#include "table/text/ddl.h"
#include "table/text/ddl_internal.h"

struct alteration {
    struct lexer l;
    struct schema *s; /* a copy, with room for one column and one index more */
    enum alter_kind kind;
    uint16_t number;
};

/* ---- columns ---- */

static bool find_column(struct alteration *a, struct slice name, size_t *ret)
{
    int place = schema_column(a->s, name);
    if (place < 0)
        return fault_set(a->l.fault, FAULT_NO_COLUMN, "there is no column %.*s", FAULT_CUT(name));
    *ret = (size_t)place;
    return true;
}

static bool add_column(struct alteration *a)
{
    struct column_words w;
    struct schema *s = a->s;
    struct fault *fault = a->l.fault;
    a->kind = ALTER_ADD_COLUMN;
    if (!ddl_column(&a->l, &w) || !lex_expect_end(&a->l))
        return false;
    struct slice name = w.column.name;
    if (w.primary || w.unique || w.nchecks)
        return fault_set(fault, FAULT_REFUSED,
                         "column %.*s: one that is added has no PRIMARY KEY, UNIQUE (add an index) or CHECK",
                         FAULT_CUT(name));
    if (w.column.not_null && w.column.default_value.kind == VALUE_NULL)
        return fault_set(fault, FAULT_REFUSED,
                         "column %.*s: rows that are there would be NULL; NOT NULL needs a DEFAULT",
                         FAULT_CUT(name));
    if (schema_column(s, name) >= 0)
        return fault_set(fault, FAULT_EXISTS, "column %.*s is there", FAULT_CUT(name));
    if (s->next_column > SCHEMA_NUMBER_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "the table has had %d columns: make it anew",
                         SCHEMA_NUMBER_MAX);
    w.column.id = s->next_column++;
    w.column.missing = w.column.default_value;
    s->columns[s->ncolumns++] = w.column;
    return true;
}

static bool in_parts(const struct key_part *parts, size_t n, size_t column)
{
    for (size_t i = 0; i < n; i++)
        if (parts[i].column == column)
            return true;
    return false;
}

static bool not_in_checks(struct alteration *a, size_t column, const char *what)
{
    struct slice name = a->s->columns[column].name;
    bool *used = arena_alloc(a->l.arena, a->s->ncolumns * sizeof *used);
    for (size_t i = 0; i < a->s->nchecks; i++)
        if (!ddl_uses(a->s->checks[i], a->s, used) || used[column])
            return fault_set(a->l.fault, FAULT_REFUSED, "column %.*s is in CHECK (%.*s) and cannot be %s",
                             FAULT_CUT(name), FAULT_CUT(a->s->checks[i]), what);
    return true;
}

static void close_gap(struct key_part *parts, size_t n, size_t column)
{
    for (size_t i = 0; i < n; i++)
        parts[i].column = (uint16_t)(parts[i].column - (parts[i].column > column));
}

static bool drop_column(struct alteration *a)
{
    struct schema *s = a->s;
    struct slice name;
    size_t at = 0;
    a->kind = ALTER_DROP_COLUMN;
    if (!lex_name(&a->l, "the name of a column", &name) || !lex_expect_end(&a->l) ||
        !find_column(a, name, &at))
        return false;
    if (in_parts(s->key, s->nkey, at))
        return fault_set(a->l.fault, FAULT_REFUSED, "column %.*s is in the primary key and cannot be dropped",
                         FAULT_CUT(name));
    for (size_t i = 0; i < s->nindexes; i++)
        if (in_parts(s->indexes[i].parts, s->indexes[i].nparts, at))
            return fault_set(a->l.fault, FAULT_REFUSED, "column %.*s is in index %.*s and cannot be dropped",
                             FAULT_CUT(name), FAULT_CUT(s->indexes[i].name));
    if (!not_in_checks(a, at, "dropped"))
        return false;
    s->ncolumns--;
    memmove(&s->columns[at], &s->columns[at + 1], (s->ncolumns - at) * sizeof *s->columns);
    close_gap(s->key, s->nkey, at);
    for (size_t i = 0; i < s->nindexes; i++)
        close_gap(s->indexes[i].parts, s->indexes[i].nparts, at);
    return true;
}

static bool rename_column(struct alteration *a)
{
    struct slice name, to;
    size_t at = 0;
    a->kind = ALTER_RENAME_COLUMN;
    if (!lex_name(&a->l, "the name of a column", &name) || !lex_expect(&a->l, "TO") ||
        !lex_name(&a->l, "the new name", &to) || !lex_expect_end(&a->l) || !find_column(a, name, &at))
        return false;
    if (a->s->on_hashes)
        return fault_set(a->l.fault, FAULT_REFUSED,
                         "column %.*s is the field of that name in each hash and cannot be renamed",
                         FAULT_CUT(name));
    int taken = schema_column(a->s, to);
    if (taken >= 0 && (size_t)taken != at)
        return fault_set(a->l.fault, FAULT_EXISTS, "column %.*s is there", FAULT_CUT(to));
    if (!not_in_checks(a, at, "renamed"))
        return false;
    a->s->columns[at].name = to;
    return true;
}

/* ---- indexes ---- */

static bool add_index(struct alteration *a, bool unique)
{
    struct index_words w = {.unique = unique};
    a->kind = ALTER_ADD_INDEX;
    if (!lex_name(&a->l, "the name of an index", &w.name) || !ddl_parts(&a->l, &w) || !lex_expect_end(&a->l))
        return false;
    if (schema_index(a->s, w.name) >= 0)
        return fault_set(a->l.fault, FAULT_EXISTS, "index %.*s is there", FAULT_CUT(w.name));
    a->number = a->s->next_index;
    return ddl_add_index(a->s, &w, INDEX_BUILDING, a->l.arena, a->l.fault);
}

static bool drop_index(struct alteration *a)
{
    struct schema *s = a->s;
    struct slice name;
    a->kind = ALTER_DROP_INDEX;
    if (!lex_name(&a->l, "the name of an index", &name) || !lex_expect_end(&a->l))
        return false;
    int at = schema_index(s, name);
    if (at < 0)
        return fault_set(a->l.fault, FAULT_NO_INDEX, "there is no index %.*s", FAULT_CUT(name));
    a->number = s->indexes[at].number;
    s->nindexes--;
    memmove(&s->indexes[at], &s->indexes[at + 1], (s->nindexes - (size_t)at) * sizeof *s->indexes);
    return true;
}

/* ---- the alteration ---- */

static bool parse(struct alteration *a)
{
    struct lexer *l = &a->l;
    bool add = lex_accept(l, "ADD"), drop = !add && lex_accept(l, "DROP");
    struct token next = lex_peek(l);
    bool named = next.kind == TOKEN_WORD || next.kind == TOKEN_NAME;
    if (add || drop) {
        if (add && lex_at(l, "UNIQUE") && token_is(&next, "INDEX"))
            return lex_pass_two(l) && add_index(a, true);
        if (lex_at(l, "INDEX") && named)
            return lex_next(l) && (add ? add_index(a, false) : drop_index(a));
    } else if (!lex_at(l, "RENAME") || !lex_next(l)) {
        return lex_wrong(l, "ADD, DROP or RENAME");
    } else {
        next = lex_peek(l);
        named = next.kind == TOKEN_NAME || (next.kind == TOKEN_WORD && !token_is(&next, "TO"));
    }
    if (lex_at(l, "COLUMN") && named && !lex_next(l))
        return false;
    return add ? add_column(a) : drop ? drop_column(a) : rename_column(a);
}

/* A copy in the arena, with room for a column and an index more. */
static bool copy(const struct schema *s, struct arena *arena, struct schema *ret, struct fault *fault)
{
    struct buf json = {0};
    struct error err;
    schema_encode(s, &json);
    enum status st = schema_decode(buf_slice(&json), arena, ret, &err);
    buf_release(&json);
    if (st != ST_OK)
        return fault_set(fault, FAULT_REFUSED, "%s", err.text);
    struct column *columns = arena_alloc(arena, (ret->ncolumns + 1) * sizeof *columns);
    memcpy(columns, ret->columns, ret->ncolumns * sizeof *columns);
    ret->columns = columns;
    struct table_index *indexes = arena_alloc(arena, (ret->nindexes + 1) * sizeof *indexes);
    memcpy(indexes, ret->indexes, ret->nindexes * sizeof *indexes);
    ret->indexes = indexes;
    return true;
}

bool ddl_alter(struct slice text, const struct schema *s, struct arena *arena, struct schema *ret,
               enum alter_kind *ret_kind, uint16_t *ret_number, struct fault *fault)
{
    struct alteration a = {.s = ret};
    if (!copy(s, arena, ret, fault) || !lex_begin(&a.l, text, arena, fault) || !parse(&a) ||
        fault->kind != FAULT_NONE)
        return false;
    *ret_kind = a.kind;
    *ret_number = a.number;
    return ddl_finish(ret, fault);
}
