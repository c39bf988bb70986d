/* Redis' glob patterns, its corner cases included: an unclosed class ends with the pattern ("[ab" is
   "[ab]", "[^" any byte, "[" none), a reversed range is swapped, bytes are compared as signed in a range,
   and a backslash at the end stands for itself.

   Every element but * takes exactly one byte, so on a mismatch only the last * needs to give way: the time
   is at most pattern times text, whatever the pattern. */
#include "base/glob.h"

#include <stdint.h>

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

static bool same(char a, char b, bool ignore_case)
{
    return a == b || (ignore_case && lower(a) == lower(b));
}

static int signed_byte(char c)
{
    int byte = (unsigned char)c;
    return byte < 128 ? byte : byte - 256;
}

static bool in_range(char from, char to, char c, bool ignore_case)
{
    int lo = signed_byte(from), hi = signed_byte(to), x = signed_byte(c);
    if (lo > hi) {
        int swap = lo;
        lo = hi;
        hi = swap;
    }
    if (ignore_case) {
        lo = lower(lo);
        hi = lower(hi);
        x = lower(x);
    }
    return x >= lo && x <= hi;
}

/* A class, from behind its '[' at i. Returns where the pattern goes on. */
static size_t match_class(struct slice p, size_t i, char c, bool ignore_case, bool *ret)
{
    bool match = false;
    bool negate = i < p.n && p.p[i] == '^';
    if (negate)
        i++;
    for (; i < p.n && p.p[i] != ']'; i++) {
        if (p.p[i] == '\\' && i + 1 < p.n) {
            i++;
            match |= p.p[i] == c;
        } else if (i + 2 < p.n && p.p[i + 1] == '-') {
            match |= in_range(p.p[i], p.p[i + 2], c, ignore_case);
            i += 2;
        } else {
            match |= same(p.p[i], c, ignore_case);
        }
    }
    *ret = match != negate;
    return i < p.n ? i + 1 : i;
}

/* The element at i (not a *) against one byte. Returns where the next element is. */
static size_t match_one(struct slice p, size_t i, char c, bool ignore_case, bool *ret)
{
    switch (p.p[i]) {
    case '?':
        *ret = true;
        return i + 1;
    case '[':
        return match_class(p, i + 1, c, ignore_case, ret);
    case '\\':
        if (i + 1 < p.n)
            i++;
        break;
    default:
        break;
    }
    *ret = same(p.p[i], c, ignore_case);
    return i + 1;
}

bool glob_match(struct slice p, struct slice text, bool ignore_case)
{
    /* To Redis only "*" itself and the empty pattern match nothing at all; "**" does not. */
    if (text.n == 0)
        return p.n == 0 || (p.n == 1 && p.p[0] == '*');

    size_t i = 0, t = 0;
    size_t star = SIZE_MAX, star_text = 0; /* behind the last *, and where in the text it was tried */
    while (t < text.n) {
        if (i < p.n && p.p[i] == '*') {
            star = ++i;
            star_text = t;
            if (star == p.n)
                return true;
            continue;
        }
        bool match = false;
        size_t next = i < p.n ? match_one(p, i, text.p[t], ignore_case, &match) : i;
        if (match) {
            i = next;
            t++;
        } else if (star != SIZE_MAX) {
            i = star;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (i < p.n && p.p[i] == '*')
        i++;
    return i == p.n;
}

struct slice glob_prefix(struct slice pattern)
{
    size_t n = 0;
    while (n < pattern.n && !strchr("*?[\\", pattern.p[n] ? pattern.p[n] : 'x'))
        n++;
    return slice_of(pattern.p, n);
}
