#include "replica/consistency.h"

#include <stdio.h>

#include "base/num.h"

static const char *const names[READ_MODES] = {
    [READ_STRONG] = "strong",
    [READ_SESSION] = "session",
    [READ_BOUNDED] = "bounded",
    [READ_EVENTUAL] = "eventual",
};

bool read_mode_parse(struct slice word, enum read_mode *ret)
{
    for (int i = 0; i < READ_MODES; i++) {
        if (slice_is(word, names[i])) {
            *ret = (enum read_mode)i;
            return true;
        }
    }
    return false;
}

const char *read_mode_name(enum read_mode mode)
{
    return names[mode];
}

enum status consistency_parse_bound(struct slice word, int64_t *ret, struct error *err)
{
    int64_t ms;
    if (!num_parse_i64(word, &ms) || ms < 1 || ms > READ_BOUND_MAX_MS)
        return error_set(err, ST_INVALID, "the bound is a whole number of milliseconds from 1 to %d",
                         READ_BOUND_MAX_MS);
    *ret = ms;
    return ST_OK;
}

enum status consistency_parse(struct slice text, struct consistency *ret, struct error *err)
{
    const char *sign = text.n ? memchr(text.p, '=', text.n) : NULL;
    struct slice word = slice_of(text.p, sign ? (size_t)(sign - text.p) : text.n);
    struct consistency c = {0};
    if (!read_mode_parse(word, &c.mode) || (c.mode == READ_BOUNDED) != (sign != NULL))
        return error_set(err, ST_INVALID,
                         "consistency is strong, session, bounded=N (milliseconds) or eventual");
    if (sign) {
        struct slice bound = slice_of(sign + 1, text.n - word.n - 1);
        enum status st = consistency_parse_bound(bound, &c.bound_ms, err);
        if (st != ST_OK)
            return st;
    }
    *ret = c;
    return ST_OK;
}

const char *consistency_text(struct consistency c, char out[CONSISTENCY_TEXT])
{
    if (c.mode == READ_BOUNDED)
        snprintf(out, CONSISTENCY_TEXT, "bounded=%lld", (long long)c.bound_ms);
    else
        snprintf(out, CONSISTENCY_TEXT, "%s", names[c.mode]);
    return out;
}
