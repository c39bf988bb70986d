/* Lines of words, as redis.conf and inline commands have them: separated by white space, "double quotes" with
   backslash escapes (\n \r \t \b \a \xHH, any other byte for itself), 'single quotes' with \' alone. */
#ifndef LARDER_BASE_WORDS_H
#define LARDER_BASE_WORDS_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

/* False: unbalanced quotes, or something stuck to a closing quote. The words are copies in arena. */
bool words_split(struct slice line, struct arena *arena, struct slice **ret_words, int *ret_count);

/* The word in double quotes, unprintable bytes escaped: words_split gives it back. */
void words_quote(struct buf *out, struct slice word);

#endif
