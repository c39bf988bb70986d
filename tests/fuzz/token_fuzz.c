/* Tokens and modes from whatever a client sends: what is refused changes nothing, and what is taken is
   written again as what it was read as. */
#include <string.h>

#include "fuzz.h"

#include "replica/consistency.h"
#include "replica/token.h"

static void check_token(struct slice input)
{
    struct position p = {.kind = POSITION_SEQUENCE, .number = 7}, back;
    struct error err = {0};
    char text[TOKEN_TEXT], again[TOKEN_TEXT];
    if (token_read(input, &p, &err) != ST_OK) {
        CHECK_OR_DIE(err.code == ST_INVALID && err.text[0] && p.kind == POSITION_SEQUENCE && p.number == 7);
        return;
    }
    size_t n = token_write(&p, text);
    CHECK_OR_DIE(n < TOKEN_TEXT && n <= input.n); /* shorter by its padding, at most */
    CHECK_OR_DIE(token_read(slice_of(text, n), &back, &err) == ST_OK);
    CHECK_OR_DIE(token_write(&back, again) == n && memcmp(text, again, n) == 0);
}

static void check_consistency(struct slice input)
{
    struct consistency c = {READ_SESSION, 7}, back;
    struct error err = {0};
    char text[CONSISTENCY_TEXT];
    int64_t bound;
    if (consistency_parse_bound(input, &bound, &err) == ST_OK)
        CHECK_OR_DIE(bound >= 1 && bound <= READ_BOUND_MAX_MS);
    if (consistency_parse(input, &c, &err) != ST_OK) {
        CHECK_OR_DIE(err.code == ST_INVALID && c.mode == READ_SESSION && c.bound_ms == 7);
        return;
    }
    CHECK_OR_DIE((c.mode == READ_BOUNDED) == (c.bound_ms > 0));
    CHECK_OR_DIE(consistency_parse(slice_str(consistency_text(c, text)), &back, &err) == ST_OK);
    CHECK_OR_DIE(back.mode == c.mode && back.bound_ms == c.bound_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1);
    CHECK_OR_DIE(copy);
    memcpy(copy, data, size);
    check_token(slice_of(copy, size));
    check_consistency(slice_of(copy, size));
    free(copy);
    return 0;
}
