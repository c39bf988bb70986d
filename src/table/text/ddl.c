#include "table/text/ddl.h"

#include <stdio.h>

#include "table/check.h"
#include "table/text/ddl_internal.h"

/* Room for one more item behind n in an arena: it doubles whenever n is a power of two. */
static void *room(struct arena *arena, void *items, size_t n, size_t size)
{
    if (n & (n - 1))
        return items;
    void *more = arena_alloc(arena, (n ? 2 * n : 1) * size);
    if (n)
        memcpy(more, items, n * size);
    return more;
}
#define PUSH(arena, items, n) (*((items) = room((arena), (items), (n), sizeof *(items)), &(items)[(n)++]))

/* ---- columns ---- */

static bool parse_type(struct lexer *l, struct slice column, enum column_type *ret)
{
    if (l->token.kind != TOKEN_WORD || !column_type_find(l->token.text, ret))
        return fault_set(
            l->fault, FAULT_SYNTAX,
            "column %.*s needs a type, not '%.*s': INTEGER, REAL, TEXT, BLOB, BOOLEAN, TIMESTAMP or "
            "JSON",
            FAULT_CUT(column), FAULT_CUT(l->token.text));
    bool two_words = lex_at(l, "DOUBLE");
    if (!lex_next(l) || (two_words && lex_at(l, "PRECISION") && !lex_next(l)))
        return false;
    if (!lex_at_sign(l, '('))
        return true;
    do {
        if (!lex_next(l))
            return false;
        if (l->token.kind != TOKEN_NUMBER)
            return lex_wrong(l, "a length");
        if (!lex_next(l))
            return false;
    } while (lex_at_sign(l, ','));
    return lex_expect_sign(l, ')');
}

static bool parse_default(struct lexer *l, struct column *c)
{
    struct value v;
    bool brackets = lex_at_sign(l, '(');
    if (brackets && !lex_next(l))
        return false;
    if (l->token.kind == TOKEN_WORD && l->token.text.n >= 8 &&
        slice_is(slice_of(l->token.text.p, 8), "CURRENT_"))
        return fault_set(l->fault, FAULT_REFUSED, "column %.*s: a DEFAULT is a constant, not %.*s",
                         FAULT_CUT(c->name), FAULT_CUT(l->token.text));
    if (!lex_literal(l, &v) || (brackets && !lex_expect_sign(l, ')')))
        return false;
    c->has_default = true;
    return value_convert(c->type, c->name, &v, l->arena, &c->default_value, l->fault);
}

/* A COLLATE that changes nothing is passed over. */
static bool parse_collate(struct lexer *l)
{
    struct slice name;
    if (!lex_name(l, "the name of a collation", &name))
        return false;
    return slice_is(name, "BINARY") ||
           fault_set(l->fault, FAULT_REFUSED, "COLLATE %.*s: texts are compared as bytes", FAULT_CUT(name));
}

static bool refuse_feature(struct lexer *l)
{
    static const char *const words[] = {
        "AUTOINCREMENT", "AUTO_INCREMENT", "REFERENCES", "FOREIGN", "GENERATED", "AS", "ON", "EXCLUDE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (lex_at(l, words[i]))
            return fault_set(l->fault, FAULT_REFUSED, "tables have no %s", words[i]);
    return lex_wrong(l, "',' or the end");
}

static bool column_word(struct lexer *l, struct column_words *w, struct slice *constraint)
{
    struct column *c = &w->column;
    if (lex_accept(l, "NOT")) {
        c->not_null = true;
        return lex_expect(l, "NULL");
    }
    if (lex_accept(l, "PRIMARY")) {
        w->primary = true;
        w->desc = lex_expect(l, "KEY") && lex_at(l, "DESC");
        if (lex_at(l, "ASC") || lex_at(l, "DESC"))
            return lex_next(l);
        return l->fault->kind == FAULT_NONE;
    }
    if (lex_accept(l, "UNIQUE")) {
        w->unique = true;
        w->unique_name = *constraint;
        return true;
    }
    if (lex_accept(l, "CHECK")) {
        if (w->nchecks > SCHEMA_CHECKS_MAX)
            return fault_set(l->fault, FAULT_TOO_LONG, "a table has at most %d checks", SCHEMA_CHECKS_MAX);
        return lex_brackets(l, &PUSH(l->arena, w->checks, w->nchecks));
    }
    if (lex_accept(l, "CONSTRAINT"))
        return lex_name(l, "the name of a constraint", constraint);
    if (lex_accept(l, "DEFAULT"))
        return parse_default(l, c);
    if (lex_accept(l, "COLLATE"))
        return parse_collate(l);
    return l->fault->kind == FAULT_NONE && (lex_accept(l, "NULL") || refuse_feature(l));
}

bool ddl_column(struct lexer *l, struct column_words *ret)
{
    struct slice constraint = SLICE("");
    *ret = (struct column_words){.unique_name = SLICE("")};
    if (!lex_name(l, "the name of a column", &ret->column.name) ||
        !parse_type(l, ret->column.name, &ret->column.type))
        return false;
    while (l->token.kind != TOKEN_END && !lex_at_sign(l, ','))
        if (!column_word(l, ret, &constraint))
            return false;
    return true;
}

/* ---- keys and indexes ---- */

bool ddl_parts(struct lexer *l, struct index_words *ret)
{
    ret->nparts = 0;
    if (!lex_expect_sign(l, '('))
        return false;
    do {
        struct part_name p = {0};
        if (!lex_name(l, "the name of a column", &p.column) ||
            (lex_accept(l, "COLLATE") && !parse_collate(l)))
            return false;
        p.desc = lex_at(l, "DESC");
        if ((p.desc || lex_at(l, "ASC")) && !lex_next(l))
            return false;
        if (ret->nparts == SCHEMA_PARTS_MAX)
            return fault_set(l->fault, FAULT_TOO_LONG, "a key or an index has at most %d columns",
                             SCHEMA_PARTS_MAX);
        PUSH(l->arena, ret->parts, ret->nparts) = p;
    } while (lex_accept_sign(l, ','));
    return lex_expect_sign(l, ')');
}

static bool resolve_parts(const struct schema *s, const struct index_words *w, struct arena *arena,
                          struct key_part **ret, struct fault *fault)
{
    *ret = arena_alloc(arena, w->nparts * sizeof **ret);
    for (size_t i = 0; i < w->nparts; i++) {
        int place = schema_column(s, w->parts[i].column);
        if (place < 0)
            return fault_set(fault, FAULT_NO_COLUMN, "there is no column %.*s",
                             FAULT_CUT(w->parts[i].column));
        (*ret)[i] = (struct key_part){(uint16_t)place, w->parts[i].desc};
    }
    return true;
}

/* a_b_unique, the columns cut where they are long, with a number behind it where that is taken. */
static struct slice make_name(const struct schema *s, const struct index_words *w, struct arena *arena)
{
    char base[SCHEMA_NAME_MAX + 1] = "", name[SCHEMA_NAME_MAX + 1];
    size_t n = 0, most = SCHEMA_NAME_MAX - 12; /* of _unique and a number */
    for (size_t i = 0; i < w->nparts; i++) {
        if (i && n < most)
            base[n++] = '_';
        size_t take = w->parts[i].column.n < most - n ? w->parts[i].column.n : most - n;
        memcpy(base + n, w->parts[i].column.p, take);
        n += take;
    }
    snprintf(name, sizeof name, "%.*s_unique", (int)n, base);
    for (int i = 2; schema_index(s, slice_str(name)) >= 0; i++)
        snprintf(name, sizeof name, "%.*s_unique_%d", (int)n, base, i);
    return arena_copy(arena, slice_str(name));
}

bool ddl_add_index(struct schema *s, const struct index_words *w, enum index_state state, struct arena *arena,
                   struct fault *fault)
{
    struct table_index x = {
        .name = w->name, .unique = w->unique, .state = state, .nparts = w->nparts, .error = SLICE("")};
    if (s->next_index > SCHEMA_NUMBER_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "the table has had %d indexes: make it anew",
                         SCHEMA_NUMBER_MAX);
    if (!resolve_parts(s, w, arena, &x.parts, fault))
        return false;
    if (!x.name.n)
        x.name = make_name(s, w, arena);
    x.number = s->next_index++;
    s->indexes[s->nindexes++] = x;
    return true;
}

/* ---- tables ---- */

/* What was read of a table; keys and indexes may come before the columns that they name. */
struct table_words {
    struct lexer l;
    struct column *columns;
    size_t ncolumns;
    struct index_words *indexes;
    size_t nindexes;
    struct slice *checks;
    size_t nchecks;
    struct index_words key;
    bool has_key;
};

static bool set_key(struct table_words *t, const struct index_words *key)
{
    if (t->has_key)
        return fault_set(t->l.fault, FAULT_SYNTAX,
                         "a table has one PRIMARY KEY: PRIMARY KEY (a, b) for several columns");
    t->has_key = true;
    t->key = *key;
    return true;
}

static bool add_check(struct table_words *t, struct slice expression)
{
    if (t->nchecks == SCHEMA_CHECKS_MAX)
        return fault_set(t->l.fault, FAULT_TOO_LONG, "a table has at most %d checks", SCHEMA_CHECKS_MAX);
    PUSH(t->l.arena, t->checks, t->nchecks) = expression;
    return true;
}

static bool add_index(struct table_words *t, const struct index_words *w)
{
    if (t->nindexes == SCHEMA_INDEXES_MAX)
        return fault_set(t->l.fault, FAULT_TOO_LONG, "a table has at most %d indexes", SCHEMA_INDEXES_MAX);
    PUSH(t->l.arena, t->indexes, t->nindexes) = *w;
    return true;
}

static bool add_column(struct table_words *t)
{
    struct column_words w;
    if (!ddl_column(&t->l, &w))
        return false;
    struct part_name *parts = arena_alloc(t->l.arena, 2 * sizeof *parts);
    parts[0] = (struct part_name){w.column.name, w.desc};
    parts[1] = (struct part_name){w.column.name, false};
    struct index_words key = {.parts = &parts[0], .nparts = 1};
    struct index_words index = {.name = w.unique_name, .unique = true, .parts = &parts[1], .nparts = 1};
    if ((w.primary && !set_key(t, &key)) || (w.unique && !add_index(t, &index)))
        return false;
    for (size_t i = 0; i < w.nchecks; i++)
        if (!add_check(t, w.checks[i]))
            return false;
    w.column.id = (uint16_t)(t->ncolumns + 1);
    PUSH(t->l.arena, t->columns, t->ncolumns) = w.column;
    return true;
}

/* [UNIQUE] INDEX name "(" parts ")"; the current token is INDEX. */
static bool parse_index(struct table_words *t, bool unique)
{
    struct index_words w = {.unique = unique};
    return lex_next(&t->l) && lex_name(&t->l, "the name of an index", &w.name) && ddl_parts(&t->l, &w) &&
           add_index(t, &w);
}

static bool parse_item(struct table_words *t)
{
    struct lexer *l = &t->l;
    struct token next = lex_peek(l);
    struct index_words w = {.name = SLICE("")};
    struct slice expression;
    bool bracket = next.kind == TOKEN_SIGN && *next.text.p == '(';
    if (lex_at(l, "CONSTRAINT") && (next.kind == TOKEN_NAME || next.kind == TOKEN_WORD)) {
        if (!lex_next(l) || !lex_name(l, "the name of a constraint", &w.name))
            return false;
        next = lex_peek(l);
        bracket = next.kind == TOKEN_SIGN && *next.text.p == '(';
    }
    if (lex_at(l, "PRIMARY") && token_is(&next, "KEY"))
        return lex_pass_two(l) && ddl_parts(l, &w) && set_key(t, &w);
    if (lex_at(l, "CHECK") && bracket)
        return lex_next(l) && lex_brackets(l, &expression) && add_check(t, expression);
    if (lex_at(l, "UNIQUE") && bracket) {
        w.unique = true;
        return lex_next(l) && ddl_parts(l, &w) && add_index(t, &w);
    }
    if (lex_at(l, "UNIQUE") && token_is(&next, "INDEX"))
        return lex_next(l) && parse_index(t, true);
    if (lex_at(l, "FOREIGN") && token_is(&next, "KEY"))
        return refuse_feature(l);
    if (w.name.n)
        return lex_wrong(l, "PRIMARY KEY, UNIQUE or CHECK");
    if (lex_at(l, "INDEX") && (next.kind == TOKEN_NAME || next.kind == TOKEN_WORD))
        return parse_index(t, false);
    return add_column(t);
}

static bool parse_table(struct table_words *t)
{
    do
        if (!parse_item(t))
            return false;
    while (lex_accept_sign(&t->l, ','));
    return t->l.fault->kind == FAULT_NONE && lex_expect_end(&t->l);
}

bool ddl_finish(struct schema *s, struct fault *fault)
{
    if (!schema_check(s, fault))
        return false;
    checks_free(checks_new(s, fault));
    return fault->kind == FAULT_NONE;
}

/* Puts together what was read. */
static bool assemble(struct table_words *t, const struct slice *hash_prefix, struct schema *s)
{
    struct arena *arena = t->l.arena;
    struct fault *fault = t->l.fault;
    if (t->ncolumns > SCHEMA_COLUMNS_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "%zu columns, a table has at most %d", t->ncolumns,
                         SCHEMA_COLUMNS_MAX);
    *s = (struct schema){.columns = t->columns,
                         .ncolumns = t->ncolumns,
                         .nkey = t->key.nparts,
                         .checks = t->checks,
                         .nchecks = t->nchecks,
                         .next_column = (uint16_t)(t->ncolumns + 1),
                         .next_index = 1,
                         .on_hashes = hash_prefix != NULL,
                         .prefix = SLICE("")};
    if (hash_prefix)
        s->prefix = arena_copy(arena, *hash_prefix);
    struct part_name first = {.column = t->ncolumns ? t->columns[0].name : SLICE("")};
    if (hash_prefix && !t->has_key)
        t->key = (struct index_words){.parts = &first, .nparts = s->nkey = 1};
    if (!resolve_parts(s, &t->key, arena, &s->key, fault))
        return false;
    s->indexes = arena_alloc(arena, (t->nindexes + 1) * sizeof *s->indexes);
    for (size_t i = 0; i < t->nindexes; i++)
        if (!ddl_add_index(s, &t->indexes[i], hash_prefix ? INDEX_BUILDING : INDEX_READY, arena, fault))
            return false;
    return ddl_finish(s, fault);
}

bool ddl_table(struct slice text, const struct slice *hash_prefix, struct arena *arena, struct schema *ret,
               struct fault *fault)
{
    struct table_words t = {0};
    return lex_begin(&t.l, text, arena, fault) && parse_table(&t) && assemble(&t, hash_prefix, ret);
}
