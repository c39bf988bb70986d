/* Tokens of finds from whatever a client sends: none but the find's own is taken, and whatever name one has,
   the range that is left stays within the find's and bounds stay short enough for every index. Patterns of
   LIKE, up to the first NUL of the input, against the text behind it: as a slow and simple matcher says. */
#include <string.h>

#include "fuzz.h"

#include "table/find_internal.h"

static struct column columns[] = {{.name = {"a", 1}, .id = 1, .type = COLUMN_TEXT},
                                  {.name = {"b", 1}, .id = 2, .type = COLUMN_INTEGER}};
static struct key_part parts[] = {{.column = 0, .desc = true}, {.column = 1}};
static struct table_index by_a = {.name = {"by_a", 4}, .number = 300, .parts = parts, .nparts = 1};
static const struct table table = {
    .id = 5,
    .name = {"t", 1},
    .schema = {.columns = columns, .ncolumns = 2, .key = parts, .nkey = 2, .indexes = &by_a, .nindexes = 1}};

static void check_place(const struct find *f, const struct find_place *place)
{
    struct find_range whole, rest;
    struct slice after = slice_of(place->after, place->nafter);
    find_range_make(&table.schema, f, &whole);
    find_range_make(&table.schema, f, &rest);
    find_range_behind(&rest, f->reverse, after);
    CHECK_OR_DIE(rest.min.len <= KEYCODE_MAX && rest.max.len <= KEYCODE_MAX);
    CHECK_OR_DIE(slice_cmp(buf_slice(&rest.min), buf_slice(&whole.min)) >= 0);
    CHECK_OR_DIE(!whole.has_max || slice_cmp(buf_slice(&rest.max), buf_slice(&whole.max)) <= 0);
    if (!rest.empty && f->reverse)
        CHECK_OR_DIE(slice_cmp(buf_slice(&rest.max), after) <= 0);
    if (!rest.empty && !f->reverse)
        CHECK_OR_DIE(slice_cmp(buf_slice(&rest.min), after) > 0);
    find_range_release(&whole);
    find_range_release(&rest);
}

static void check_token(const struct find *f, struct slice input)
{
    struct arena arena = {0};
    struct fault fault = {0};
    struct find_place place, back;
    struct buf token = {0};
    if (find_resume(&table, f, input, &arena, &place, &fault)) {
        check_place(f, &place);
        find_token(&table, f, &place, &token);
        CHECK_OR_DIE(token.len <= input.n);
    } else {
        CHECK_OR_DIE(fault.kind == FAULT_BAD_TOKEN);
    }
    /* The same bytes as a name: few others come past the check. */
    place = (struct find_place){.begun = true};
    place.nafter = (uint16_t)(input.n < KEYCODE_MAX ? input.n : KEYCODE_MAX);
    memcpy(place.after, input.p, place.nafter);
    token.len = 0;
    fault = (struct fault){0};
    find_token(&table, f, &place, &token);
    CHECK_OR_DIE(find_resume(&table, f, buf_slice(&token), &arena, &back, &fault));
    CHECK_OR_DIE(back.nafter == place.nafter && memcmp(back.after, place.after, place.nafter) == 0);
    check_place(f, &back);
    buf_release(&token);
    arena_release(&arena);
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static size_t character(struct slice s)
{
    size_t n = 1;
    while (n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
        n++;
    return n;
}

static struct slice behind(struct slice s, size_t n)
{
    return slice_of(s.p + n, s.n - n);
}

/* Every way that a % can go. */
static bool like(struct slice text, struct slice pattern)
{
    if (!pattern.n)
        return !text.n;
    if (*pattern.p == '%') {
        if (like(text, behind(pattern, 1)))
            return true;
        return text.n && like(behind(text, character(text)), pattern);
    }
    if (!text.n)
        return false;
    if (*pattern.p == '_')
        return like(behind(text, character(text)), behind(pattern, 1));
    return fold(*text.p) == fold(*pattern.p) && like(behind(text, 1), behind(pattern, 1));
}

static void check_like(struct slice input)
{
    const char *nul = memchr(input.p, 0, input.n);
    size_t n = nul ? (size_t)(nul - input.p) : input.n;
    struct slice pattern = slice_of(input.p, n), text = nul ? behind(input, n + 1) : slice_of(input.p, 0);
    bool got = find_like(text, pattern);
    if (pattern.n <= 8 && text.n <= 12)
        CHECK_OR_DIE(got == like(text, pattern));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct value eq = {.kind = VALUE_TEXT, .s = {"x", 1}};
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    struct slice input = slice_of(copy, size);
    for (int i = 0; i < 4; i++) {
        struct find f = {.index = i & 1 ? &by_a : NULL, .eq = &eq, .neq = 1, .reverse = i & 2};
        check_token(&f, input);
    }
    check_like(input);
    free(copy);
    return 0;
}
