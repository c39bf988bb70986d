/* Numbers and glob patterns: what is parsed prints back as it was, a match begins with its pattern's literal
   prefix, and no byte outside the input is read. The first byte says how much of the rest is the pattern. */
#include <string.h>

#include "fuzz.h"

#include "base/glob.h"
#include "base/num.h"

static void check_numbers(struct slice s)
{
    int64_t i;
    uint64_t u;
    double d, again;
    long double ld;
    char text[NUM_DOUBLE_CHARS];
    if (num_parse_i64(s, &i))
        CHECK_OR_DIE(slice_eq(slice_of(text, num_format_i64(text, i)), s));
    if (num_parse_u64(s, &u))
        CHECK_OR_DIE(slice_eq(slice_of(text, num_format_u64(text, u)), s));
    if (num_parse_double(s, &d)) {
        size_t n = num_format_double(text, d);
        CHECK_OR_DIE(num_parse_double(slice_of(text, n), &again));
        CHECK_OR_DIE(d == again);
    }
    if (num_parse_long_double(s, &ld))
        CHECK_OR_DIE(num_format_long_double(text, ld) <= sizeof text);
    (void)num_parse_size(s, &u);
    (void)num_parse_duration(s, 1000, &u);
}

static void check_glob(struct slice pattern, struct slice text)
{
    struct slice prefix = glob_prefix(pattern);
    CHECK_OR_DIE(prefix.n <= pattern.n);
    if (glob_match(pattern, text, false))
        CHECK_OR_DIE(text.n >= prefix.n && memcmp(text.p, prefix.p, prefix.n) == 0);
    (void)glob_match(pattern, text, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 256)
        return 0;
    size_t n = data[0] < size - 1 ? data[0] : size - 1;
    /* Blocks of their exact size, so that a read beyond either is caught. */
    char *pattern = malloc(n + 1), *text = malloc(size - n);
    CHECK_OR_DIE(pattern && text);
    memcpy(pattern, data + 1, n);
    memcpy(text, data + 1 + n, size - 1 - n);
    pattern = realloc(pattern, n ? n : 1);
    text = realloc(text, size - 1 - n ? size - 1 - n : 1);
    CHECK_OR_DIE(pattern && text);
    check_numbers(slice_of(pattern, n));
    check_glob(slice_of(pattern, n), slice_of(text, size - 1 - n));
    free(pattern);
    free(text);
    return 0;
}
