#include "query/text.h"

#include "query/query.h"

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

static void advance(struct slice *s, size_t n)
{
    s->p += n;
    s->n -= n;
}

/* The length of a comment at the front, 0: there is none. One without an end goes to the end. */
static size_t comment(struct slice s)
{
    size_t i = 2;
    if (s.n < 2)
        return 0;
    if (s.p[0] == '-' && s.p[1] == '-') {
        while (i < s.n && s.p[i] != '\n')
            i++;
        return i;
    }
    if (s.p[0] != '/' || s.p[1] != '*')
        return 0;
    while (i + 1 < s.n && !(s.p[i] == '*' && s.p[i + 1] == '/'))
        i++;
    return i + 1 < s.n ? i + 2 : s.n;
}

static void skip_space(struct slice *s)
{
    size_t n;
    while (s->n) {
        if (is_space(*s->p))
            advance(s, 1);
        else if ((n = comment(*s)))
            advance(s, n);
        else
            return;
    }
}

/* The length of what stands in quotes, the closing one included. Doubled ones belong to it. */
static size_t quoted(struct slice s, char end)
{
    size_t i = 1;
    while (i < s.n) {
        if (s.p[i] != end)
            i++;
        else if (end != ']' && i + 1 < s.n && s.p[i + 1] == end)
            i += 2;
        else
            return i + 1;
    }
    return s.n;
}

static size_t number(struct slice s)
{
    size_t i = 1;
    while (i < s.n && (in_word(s.p[i]) || s.p[i] == '.' ||
                       ((s.p[i] == '+' || s.p[i] == '-') && (s.p[i - 1] | 32) == 'e')))
        i++;
    return i;
}

struct text_token text_next(struct slice *text)
{
    struct text_token t = {.kind = TEXT_END};
    skip_space(text);
    if (!text->n)
        return t;
    char c = *text->p;
    size_t n = 1;
    t.kind = TEXT_OTHER;
    if (c == '\'') {
        t.kind = TEXT_STRING;
        n = quoted(*text, c);
    } else if (c == '"' || c == '`' || c == '[') {
        t.kind = TEXT_NAME;
        n = quoted(*text, c == '[' ? ']' : c);
    } else if (is_digit(c)) {
        n = number(*text);
    } else if (in_word(c)) {
        t.kind = TEXT_WORD;
        while (n < text->n && in_word(text->p[n]))
            n++;
    }
    t.text = slice_of(text->p, n);
    if (t.kind == TEXT_NAME)
        t.text = slice_of(text->p + 1, n > 1 ? n - 2 : 0);
    advance(text, n);
    return t;
}

struct slice text_skip(struct slice text)
{
    skip_space(&text);
    while (text.n && *text.p == ';') {
        advance(&text, 1);
        skip_space(&text);
    }
    return text;
}

static bool is(const struct text_token *t, const char *word)
{
    return t->kind == TEXT_WORD && slice_is(t->text, word);
}

static bool is_one_of(const struct text_token *t, const char *const *words)
{
    for (; *words; words++)
        if (is(t, *words))
            return true;
    return false;
}

static const char *const reading[] = {"select", "values", "explain", "with", NULL};
static const char *const writing[] = {"insert", "replace", "update", "delete", NULL};
static const char *const defining[] = {"create", "drop", "alter", NULL};
static const char *const transacting[] = {"begin", "commit", "end", "rollback", "savepoint", "release", NULL};

static enum text_statement kind_of(const struct text_token *first)
{
    if (first->kind == TEXT_END)
        return TEXT_EMPTY;
    if (is_one_of(first, reading))
        return TEXT_READS;
    if (is_one_of(first, writing))
        return TEXT_WRITES;
    if (is_one_of(first, defining))
        return TEXT_DEFINES;
    return is_one_of(first, transacting) ? TEXT_TRANSACTS : TEXT_UNKNOWN;
}

/* One character that stands for itself. */
static bool is_char(const struct text_token *t, char c)
{
    return t->kind == TEXT_OTHER && t->text.n == 1 && *t->text.p == c;
}

static void count_parenthesis(const struct text_token *t, int *depth)
{
    *depth += is_char(t, '(') - is_char(t, ')');
}

enum text_statement text_statement(struct slice text, struct slice *ret_rest)
{
    text = text_skip(text);
    struct text_token t = text_next(&text);
    enum text_statement kind = kind_of(&t);
    bool with = is(&t, "with");
    int depth = 0;
    while (t.kind != TEXT_END && !is_char(&t, ';')) {
        count_parenthesis(&t, &depth);
        /* Behind WITH a function may be called replace(): in doubt it writes. */
        if (with && depth == 0 && is_one_of(&t, writing))
            kind = TEXT_WRITES;
        t = text_next(&text);
    }
    *ret_rest = text;
    return kind;
}

bool text_insert_columns(struct slice text, text_name_fn *fn, void *arg)
{
    int depth = 0;
    struct text_token t = text_next(&text);
    while (t.kind != TEXT_END && !(depth == 0 && is(&t, "into"))) {
        count_parenthesis(&t, &depth);
        t = text_next(&text);
    }
    (void)text_next(&text); /* the table, perhaps behind main. and before AS name */
    for (t = text_next(&text); is_char(&t, '.') || is(&t, "as"); t = text_next(&text))
        (void)text_next(&text);
    if (is(&t, "default"))
        return true;
    if (!is_char(&t, '('))
        return false;
    for (t = text_next(&text); t.kind != TEXT_END && !is_char(&t, ')'); t = text_next(&text))
        if (t.kind == TEXT_WORD || t.kind == TEXT_NAME || t.kind == TEXT_STRING)
            fn(arg, t.kind == TEXT_STRING && t.text.n >= 2 ? slice_of(t.text.p + 1, t.text.n - 2) : t.text);
    return true;
}

bool query_may_write(struct slice text)
{
    if (text.n > QUERY_TEXT_MAX) /* it is refused */
        return false;
    for (;;) {
        enum text_statement kind = text_statement(text, &text);
        if (kind == TEXT_WRITES || kind == TEXT_DEFINES)
            return true;
        if (kind == TEXT_EMPTY && !text.n)
            return false;
    }
}
