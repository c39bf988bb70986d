/* Key codes from whatever bytes: what is read as a code is written again as the same bytes, and what is
   skipped is as long as what is read. */
#include <string.h>

#include "fuzz.h"

#include "table/keycode.h"

/* Takes codes until there is none, in directions that the first byte tells. */
static void check_codes(struct slice input, struct arena *arena)
{
    struct buf again = {0}, prefix = {0};
    uint8_t directions = (uint8_t)input.p[0];
    struct slice rest = slice_of(input.p + 1, input.n - 1), ahead = rest, code;
    for (int i = 0;; i++) {
        bool desc = directions >> (i & 7) & 1;
        struct value v;
        size_t before = rest.n;
        if (!keycode_take(&rest, desc, arena, &v)) {
            CHECK_OR_DIE(rest.n == before);
            break;
        }
        CHECK_OR_DIE(keycode_skip(&ahead, desc, &code) && ahead.n == rest.n && rest.n < before);
        again.len = prefix.len = 0;
        keycode_add(&again, &v, desc);
        CHECK_OR_DIE(slice_eq(buf_slice(&again), code));
        keycode_add_prefix(&prefix, &v, desc);
        CHECK_OR_DIE(prefix.len <= again.len && memcmp(prefix.p, again.p, prefix.len) == 0);
        CHECK_OR_DIE(keycode_behind(&prefix, 0));
        CHECK_OR_DIE(slice_cmp(buf_slice(&prefix), buf_slice(&again)) > 0);
    }
    buf_release(&again);
    buf_release(&prefix);
}

/* The input as two texts, and as two numbers, whose codes are ordered as they are. */
static void check_order(struct slice input)
{
    struct buf a = {0}, b = {0};
    size_t half = input.n / 2;
    struct value x = {.kind = VALUE_BLOB, .s = slice_of(input.p, half)};
    struct value y = {.kind = VALUE_BLOB, .s = slice_of(input.p + half, input.n - half)};
    for (int kind = 0; kind < 4; kind++) {
        bool desc = kind & 1;
        if (kind == 2) {
            int64_t numbers[2] = {0};
            memcpy(numbers, input.p, input.n < 16 ? input.n : 16);
            x = (struct value){.kind = VALUE_INT, .i = numbers[0]};
            y = (struct value){.kind = VALUE_INT, .i = numbers[1]};
        }
        a.len = b.len = 0;
        keycode_add(&a, &x, desc);
        keycode_add(&b, &y, desc);
        int values = value_compare(&x, &y), codes = slice_cmp(buf_slice(&a), buf_slice(&b));
        CHECK_OR_DIE((values < 0) == (desc ? codes > 0 : codes < 0) && (values == 0) == (codes == 0));
    }
    buf_release(&a);
    buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena arena = {0};
    check_codes(slice_of(data, size), &arena);
    check_order(slice_of(data, size));
    arena_release(&arena);
    return 0;
}
