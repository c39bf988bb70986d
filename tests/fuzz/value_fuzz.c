/* Values from whatever text: what a column takes is printed, put into JSON and into a key, and comes back as
   it was; what it refuses is told in one line of UTF-8. */
#include <math.h>
#include <string.h>

#include "fuzz.h"

#include "table/keycode.h"
#include "table/value.h"

static bool same(const struct value *x, const struct value *y)
{
    return x->kind == y->kind && value_compare(x, y) == 0;
}

static void check_line(const struct fault *fault)
{
    size_t n = strlen(fault->text), step;
    CHECK_OR_DIE(fault->kind == FAULT_BAD_TYPE && n > 0);
    for (size_t i = 0; i < n; i += step) {
        step = utf8_length(fault->text + i, n - i);
        CHECK_OR_DIE(step && (uint8_t)fault->text[i] >= ' ');
    }
}

static void check_printed(enum column_type t, const struct value *v, struct arena *arena)
{
    struct buf out = {0};
    struct fault fault = {0};
    struct value back;
    struct json j;
    const char *why;
    size_t at;
    value_print(&out, t, v);
    if (v->kind != VALUE_NULL)
        CHECK_OR_DIE(value_parse(t, SLICE("c"), buf_slice(&out), arena, &back, &fault) && same(v, &back));
    out.len = 0;
    value_add_json(&out, t, v);
    CHECK_OR_DIE(json_check(buf_slice(&out), &j, &why, &at));
    CHECK_OR_DIE(value_read_json(t, &j, arena, &back) && same(v, &back));
    out.len = 0;
    keycode_add(&out, v, true);
    struct slice code = buf_slice(&out);
    CHECK_OR_DIE(keycode_take(&code, true, arena, &back) && code.n == 0 && same(v, &back));
    buf_release(&out);
}

/* Whatever a value is made of, converting it twice is converting it once. */
static void check_conversions(const struct value *v, struct arena *arena)
{
    for (int t = 0; t < COLUMN_TYPES; t++) {
        struct fault fault = {0};
        struct value once, twice;
        if (!value_convert((enum column_type)t, SLICE("c"), v, arena, &once, &fault)) {
            check_line(&fault);
            continue;
        }
        CHECK_OR_DIE(once.kind == VALUE_NULL || once.kind == column_kind((enum column_type)t));
        CHECK_OR_DIE(value_convert((enum column_type)t, SLICE("c"), &once, arena, &twice, &fault));
        CHECK_OR_DIE(same(&once, &twice));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct slice text = slice_of(copy, size);
    struct arena arena = {0};
    for (int t = 0; t < COLUMN_TYPES; t++) {
        struct fault fault = {0};
        struct value v;
        if (!value_parse((enum column_type)t, SLICE("c"), text, &arena, &v, &fault)) {
            check_line(&fault);
            continue;
        }
        check_printed((enum column_type)t, &v, &arena);
        check_conversions(&v, &arena);
    }
    double d = 0;
    memcpy(&d, copy, size < sizeof d ? size : sizeof d);
    check_conversions(&(struct value){.kind = VALUE_REAL, .d = d}, &arena);
    check_conversions(&(struct value){.kind = VALUE_BLOB, .s = text}, &arena);
    arena_release(&arena);
    free(copy);
    return 0;
}
