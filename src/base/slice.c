#include "base/slice.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool slice_is(struct slice s, const char *word)
{
    size_t i = 0;
    for (; i < s.n; i++) {
        if (word[i] == '\0' || lower(s.p[i]) != lower(word[i]))
            return false;
    }
    return word[i] == '\0';
}
