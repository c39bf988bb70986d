/* Tokens of the texts that describe tables. */
#include "proto/json.h"
#include "table/text/ddl.h"
#include "table/text/ddl_internal.h"

#define BRACKETS_MAX 64 /* within each other */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static size_t offset(const struct lexer *l)
{
    return (size_t)(l->p - l->begin);
}

/* ---- one token ---- */

/* White space and comments. */
static bool skip_space(struct lexer *l)
{
    while (l->p < l->end) {
        size_t left = (size_t)(l->end - l->p);
        if (is_space(*l->p)) {
            l->p++;
        } else if (left >= 2 && l->p[0] == '-' && l->p[1] == '-') {
            const char *line = memchr(l->p, '\n', left);
            l->p = line ? line + 1 : l->end;
        } else if (left >= 2 && l->p[0] == '/' && l->p[1] == '*') {
            const char *close = memmem(l->p + 2, left - 2, "*/", 2);
            if (!close)
                return fault_set(l->fault, FAULT_SYNTAX, "a comment has no end, from byte %zu on", offset(l));
            l->p = close + 2;
        } else {
            break;
        }
    }
    return true;
}

/* Up to behind the closing quote; it stands twice where it is meant itself. */
static bool skip_quoted(struct lexer *l, char close)
{
    size_t from = offset(l);
    const char *p = l->p + 1;
    while (p && p < l->end) {
        p = memchr(p, close, (size_t)(l->end - p));
        if (!p)
            break;
        if (close == ']' || p + 1 == l->end || p[1] != close) {
            l->p = p + 1;
            return true;
        }
        p += 2;
    }
    return fault_set(l->fault, FAULT_SYNTAX, "a quote has no end, from byte %zu on", from);
}

static void skip_digits(struct lexer *l)
{
    while (l->p < l->end && is_digit(*l->p))
        l->p++;
}

static bool skip_number(struct lexer *l)
{
    const char *from = l->p;
    skip_digits(l);
    if (l->p < l->end && *l->p == '.') {
        l->p++;
        skip_digits(l);
    }
    if (l->p < l->end && (*l->p == 'e' || *l->p == 'E')) {
        const char *p = l->p + 1;
        if (p < l->end && (*p == '+' || *p == '-'))
            p++;
        if (p < l->end && is_digit(*p)) {
            l->p = p;
            skip_digits(l);
        }
    }
    if (l->p == l->end || !is_letter(*l->p))
        return true;
    struct slice text = slice_of(from, (size_t)(l->p + 1 - from));
    return fault_set(l->fault, FAULT_SYNTAX, "'%.*s' is no number, at byte %zu", FAULT_CUT(text),
                     (size_t)(from - l->begin));
}

/* Whatever kind of token begins at p. */
static bool skip_token(struct lexer *l, enum token_kind *ret)
{
    char c = *l->p;
    if (is_letter(c)) {
        *ret = TOKEN_WORD;
        if ((c == 'x' || c == 'X') && l->end - l->p > 1 && l->p[1] == '\'') {
            *ret = TOKEN_BLOB;
            l->p++;
            return skip_quoted(l, '\'');
        }
        while (l->p < l->end && (is_letter(*l->p) || is_digit(*l->p)))
            l->p++;
        return true;
    }
    if (is_digit(c) || (c == '.' && l->end - l->p > 1 && is_digit(l->p[1]))) {
        *ret = TOKEN_NUMBER;
        return skip_number(l);
    }
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
        *ret = c == '\'' ? TOKEN_STRING : TOKEN_NAME;
        return skip_quoted(l, c == '[' ? ']' : c);
    }
    *ret = TOKEN_SIGN;
    if (!memchr("(),;.+-*/%<>=!&|~", c, 17))
        return fault_set(l->fault, FAULT_SYNTAX, "unexpected character at byte %zu", offset(l));
    l->p++;
    return true;
}

bool lex_next(struct lexer *l)
{
    const char *was = l->p;
    l->token = (struct token){.kind = TOKEN_END, .text = SLICE("")};
    if (!skip_space(l))
        return false;
    l->token.spaced = l->p > was;
    if (l->p == l->end)
        return true;
    const char *from = l->p;
    enum token_kind kind;
    if (!skip_token(l, &kind))
        return false;
    l->token.kind = kind;
    l->token.text = slice_of(from, (size_t)(l->p - from));
    return true;
}

bool lex_pass_two(struct lexer *l)
{
    if (!lex_next(l))
        return false;
    return lex_next(l);
}

bool lex_begin_statement(struct lexer *l, struct slice text, struct arena *arena, struct fault *fault)
{
    if (!text.n)
        text = SLICE("");
    *l = (struct lexer){.begin = text.p, .p = text.p, .end = text.p + text.n, .arena = arena, .fault = fault};
    return lex_next(l);
}

bool lex_begin(struct lexer *l, struct slice text, struct arena *arena, struct fault *fault)
{
    if (text.n > DDL_TEXT_MAX)
        return fault_set(fault, FAULT_TOO_LONG, "a description of %zu bytes, at most %d are possible", text.n,
                         DDL_TEXT_MAX);
    for (size_t i = 0, n; i < text.n; i += n) {
        n = utf8_length(text.p + i, text.n - i);
        if (n == 0 || text.p[i] == '\0')
            return fault_set(fault, FAULT_SYNTAX, "%s at byte %zu", n ? "a NUL byte" : "this is not UTF-8",
                             i);
    }
    return lex_begin_statement(l, arena_copy(arena, text), arena, fault);
}

/* ---- looking at tokens ---- */

bool token_is(const struct token *t, const char *word)
{
    return t->kind == TOKEN_WORD && slice_is(t->text, word);
}

struct token lex_peek(const struct lexer *l)
{
    struct fault ignored = {0};
    struct lexer ahead = *l;
    ahead.fault = &ignored;
    (void)lex_next(&ahead);
    return ahead.token;
}

bool lex_at(const struct lexer *l, const char *word)
{
    return token_is(&l->token, word);
}

bool lex_at_sign(const struct lexer *l, char c)
{
    return l->token.kind == TOKEN_SIGN && *l->token.text.p == c;
}

bool lex_accept(struct lexer *l, const char *word)
{
    return lex_at(l, word) && lex_next(l);
}

bool lex_accept_sign(struct lexer *l, char c)
{
    return lex_at_sign(l, c) && lex_next(l);
}

bool lex_wrong(struct lexer *l, const char *what)
{
    if (l->token.kind == TOKEN_END)
        return fault_set(l->fault, FAULT_SYNTAX, "expected %s, not the end", what);
    return fault_set(l->fault, FAULT_SYNTAX, "expected %s, not %.*s, at byte %zu", what,
                     FAULT_CUT(l->token.text), (size_t)(l->token.text.p - l->begin));
}

bool lex_expect(struct lexer *l, const char *word)
{
    return lex_at(l, word) ? lex_next(l) : lex_wrong(l, word);
}

bool lex_expect_sign(struct lexer *l, char c)
{
    const char what[] = {'\'', c, '\'', '\0'};
    return lex_at_sign(l, c) ? lex_next(l) : lex_wrong(l, what);
}

bool lex_expect_end(struct lexer *l)
{
    return l->token.kind == TOKEN_END || lex_wrong(l, "the end");
}

/* ---- names and literals ---- */

/* Without its quotes; one that stands twice stands once. */
static struct slice unquote(struct slice text, struct arena *arena)
{
    char close = text.p[text.n - 1];
    struct slice inner = slice_of(text.p + 1, text.n - 2);
    if (close == ']' || !inner.n || !memchr(inner.p, close, inner.n))
        return inner;
    char *to = arena_alloc(arena, inner.n);
    size_t n = 0;
    for (size_t i = 0; i < inner.n; i++) {
        to[n++] = inner.p[i];
        i += inner.p[i] == close;
    }
    return slice_of(to, n);
}

bool lex_name(struct lexer *l, const char *what, struct slice *ret)
{
    if (l->token.kind == TOKEN_WORD)
        *ret = l->token.text;
    else if (l->token.kind == TOKEN_NAME)
        *ret = unquote(l->token.text, l->arena);
    else
        return lex_wrong(l, what);
    return lex_next(l);
}

static int hex_digit(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_blob(struct lexer *l, struct value *ret)
{
    struct slice hex = slice_of(l->token.text.p + 2, l->token.text.n - 3);
    char *to = arena_alloc(l->arena, hex.n / 2 + 1);
    for (size_t i = 0; i < hex.n; i += 2) {
        int high = hex_digit(hex.p[i]), low = i + 1 < hex.n ? hex_digit(hex.p[i + 1]) : -1;
        if (high < 0 || low < 0)
            return lex_wrong(l, "pairs of hexadecimal digits");
        to[i / 2] = (char)(high << 4 | low);
    }
    *ret = (struct value){.kind = VALUE_BLOB, .s = slice_of(to, hex.n / 2)};
    return true;
}

static bool read_number(struct lexer *l, bool negative, struct value *ret)
{
    struct slice digits = l->token.text;
    char *to = arena_alloc(l->arena, digits.n + 1);
    memcpy(to + 1, digits.p, digits.n);
    to[0] = '-';
    struct slice text = slice_of(negative ? to : to + 1, digits.n + negative);
    enum column_type t = COLUMN_INTEGER;
    for (size_t i = 0; i < digits.n; i++)
        t = is_digit(digits.p[i]) ? t : COLUMN_REAL;
    return value_parse(t, SLICE("DEFAULT"), text, l->arena, ret, l->fault);
}

bool lex_literal(struct lexer *l, struct value *ret)
{
    bool negative = lex_at_sign(l, '-');
    *ret = (struct value){0};
    if ((negative || lex_at_sign(l, '+')) && (!lex_next(l) || l->token.kind != TOKEN_NUMBER))
        return lex_wrong(l, "a number");
    if (l->token.kind == TOKEN_NUMBER) {
        if (!read_number(l, negative, ret))
            return false;
    } else if (l->token.kind == TOKEN_STRING) {
        *ret = (struct value){.kind = VALUE_TEXT, .s = unquote(l->token.text, l->arena)};
    } else if (l->token.kind == TOKEN_BLOB) {
        if (!read_blob(l, ret))
            return false;
    } else if (lex_at(l, "TRUE") || lex_at(l, "FALSE")) {
        *ret = (struct value){.kind = VALUE_BOOL, .i = lex_at(l, "TRUE")};
    } else if (!lex_at(l, "NULL")) {
        return lex_wrong(l, "a constant");
    }
    return lex_next(l);
}

/* ---- expressions ---- */

static bool collect(struct lexer *l, struct buf *out)
{
    size_t depth = 0;
    if (!lex_at_sign(l, '('))
        return lex_wrong(l, "'('");
    for (;;) {
        if (lex_at_sign(l, '(') && ++depth > BRACKETS_MAX)
            return fault_set(l->fault, FAULT_TOO_LONG, "more than %d brackets within each other",
                             BRACKETS_MAX);
        if (lex_at_sign(l, ')') && --depth == 0)
            break;
        if (!lex_next(l))
            return false;
        if (l->token.kind == TOKEN_END || lex_at_sign(l, ';'))
            return lex_wrong(l, "')'");
        if (lex_at_sign(l, ')') && depth == 1)
            continue;
        if (l->token.spaced && out->len)
            buf_add(out, " ", 1);
        buf_add_slice(out, l->token.text);
    }
    return out->len ? lex_next(l) : lex_wrong(l, "an expression");
}

bool lex_brackets(struct lexer *l, struct slice *ret)
{
    struct buf out = {0};
    bool ok = collect(l, &out);
    if (ok)
        *ret = arena_copy(l->arena, buf_slice(&out));
    buf_release(&out);
    return ok;
}

bool ddl_uses(struct slice expression, const struct schema *s, bool *ret_used)
{
    struct arena arena = {0};
    struct fault ignored = {0};
    struct lexer l = {0};
    struct buf text = {0};
    struct slice same = SLICE("");
    memset(ret_used, 0, s->ncolumns * sizeof *ret_used);
    buf_add(&text, "(", 1);
    buf_add_slice(&text, expression);
    buf_add(&text, ")", 1);
    bool sound = lex_begin(&l, buf_slice(&text), &arena, &ignored) && lex_brackets(&l, &same) &&
                 lex_expect_end(&l) && slice_eq(same, expression);
    for (bool ok = sound && lex_begin(&l, expression, &arena, &ignored); ok && l.token.kind != TOKEN_END;
         ok = lex_next(&l)) {
        bool quoted = l.token.kind == TOKEN_NAME;
        if (!quoted && l.token.kind != TOKEN_WORD)
            continue;
        int column = schema_column(s, quoted ? unquote(l.token.text, &arena) : l.token.text);
        if (column >= 0)
            ret_used[column] = true;
    }
    buf_release(&text);
    arena_release(&arena);
    return sound;
}
