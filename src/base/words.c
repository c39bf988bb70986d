#include "base/words.h"

#include <ctype.h>

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* What stands behind a backslash within double quotes, at s[i]; returns how many bytes it took. */
static size_t unescape(struct slice s, size_t i, char *ret)
{
    char c = s.p[i];
    if (c == 'x' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0) {
        *ret = (char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
        return 3;
    }
    *ret = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c == 'b' ? '\b' : c == 'a' ? '\a' : c;
    return 1;
}

/* A quoted part that starts behind its opening quote at *i, appended to out. False: it never ends, or
   something other than white space follows it. */
static bool take_quoted(struct slice s, size_t *i, char quote, char *out, size_t *n)
{
    while (*i < s.n && s.p[*i] != quote) {
        char c = s.p[(*i)++];
        if (c == '\\' && quote == '"' && *i < s.n)
            *i += unescape(s, *i, &c);
        else if (c == '\\' && quote == '\'' && *i < s.n && s.p[*i] == '\'')
            c = s.p[(*i)++];
        out[(*n)++] = c;
    }
    if (*i == s.n)
        return false;
    (*i)++;
    return *i == s.n || isspace((unsigned char)s.p[*i]);
}

bool words_split(struct slice s, struct arena *arena, struct slice **ret_words, int *ret_count)
{
    /* Every word takes a byte and all but the last a separator; no word grows by being unescaped. */
    struct slice *words = arena_alloc(arena, (s.n / 2 + 1) * sizeof *words);
    char *out = arena_alloc(arena, s.n + 1);
    int count = 0;
    size_t i = 0;
    for (;;) {
        while (i < s.n && isspace((unsigned char)s.p[i]))
            i++;
        if (i == s.n)
            break;
        size_t n = 0;
        while (i < s.n && !isspace((unsigned char)s.p[i])) {
            char c = s.p[i++];
            if (c != '"' && c != '\'')
                out[n++] = c;
            else if (!take_quoted(s, &i, c, out, &n))
                return false;
        }
        words[count++] = slice_of(out, n);
        out += n;
    }
    *ret_words = words;
    *ret_count = count;
    return true;
}

void words_quote(struct buf *out, struct slice word)
{
    buf_add(out, "\"", 1);
    for (size_t i = 0; i < word.n; i++) {
        char c = word.p[i];
        const char *at = c ? strchr("\nn\rr\tt\bb\aa", c) : NULL;
        if (c == '"' || c == '\\')
            buf_addf(out, "\\%c", c);
        else if (at && (unsigned char)c < ' ')
            buf_addf(out, "\\%c", at[1]);
        else if (c < ' ' || c == 127)
            buf_addf(out, "\\x%02x", (unsigned)(unsigned char)c);
        else
            buf_add(out, &c, 1);
    }
    buf_add(out, "\"", 1);
}
